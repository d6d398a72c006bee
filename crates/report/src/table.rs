//! Tables that fit: words and figures under headings, for a width or for Markdown.
//!
//! For: which columns are shown where not all have room, and one value a line where even the first ones have none. Not for: what
//! stands in a table, nor in which order columns go; that says who makes it.

use crate::prose::{display_width, prose, shorten};
use comfy_table::{CellAlignment, ColumnConstraint, LineStyle, TableStyle, Width};

/// One rule below the headings: frames cost columns, and pasted text has few.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));
/// Fewest columns that a name is cut to, where others need the room.
const MIN_NAME_WIDTH: usize = 24;

/// A table. The first and the last column are words, numbers stand to the right.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headings: Vec<String>,
    left: Vec<bool>,
    least: Vec<usize>,
    leaving: Vec<usize>,
    rows: Vec<Vec<String>>,
    stacked: bool,
    /// A column whose cells are cut to the room that the others leave, and the fewest columns of the terminal that it is cut to.
    cut: Option<(usize, usize)>,
}

impl Table {
    /// Without rows. Where there is no room the columns of `leaving` are left out, the first of them first; the others never.
    pub(crate) fn new<H: AsRef<str>>(headings: &[H], leaving: &[usize]) -> Self {
        let last = headings.len().saturating_sub(1);
        Self {
            headings: headings.iter().map(|h| h.as_ref().to_owned()).collect(),
            left: (0..headings.len()).map(|at| at == 0 || at == last).collect(),
            least: vec![0; headings.len()],
            leaving: leaving.to_vec(),
            rows: Vec::new(),
            stacked: false,
            cut: None,
        }
    }

    /// With the words of each heading under each other where it is drawn, since figures are shorter.
    #[must_use]
    pub(crate) fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    /// With this column's words to the left, or its numbers to the right.
    #[must_use]
    pub(crate) fn aligned(mut self, column: usize, left: bool) -> Self {
        if let Some(side) = self.left.get_mut(column) {
            *side = left;
        }
        self
    }

    /// With at least so many columns of the terminal for this one.
    #[must_use]
    pub(crate) fn at_least(mut self, column: usize, columns: usize) -> Self {
        if let Some(least) = self.least.get_mut(column) {
            *least = columns;
        }
        self
    }

    /// Cuts the cells of this column to the room that the other columns leave, to `least` columns of the terminal at most, before a column
    /// is left out.
    #[must_use]
    pub(crate) fn cut_to(mut self, column: usize, least: usize) -> Self {
        self.cut = Some((column, least));
        self
    }

    /// Adds a row, a cell for each heading.
    pub(crate) fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Changes every cell of a column.
    pub(crate) fn edit(&mut self, column: usize, change: impl Fn(&str) -> String) {
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = change(cell);
        }
    }

    /// Adds rows.
    pub(crate) fn add_all<R: IntoIterator<Item = String>>(&mut self, rows: impl IntoIterator<Item = R>) {
        rows.into_iter().for_each(|row| self.add(row));
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether this stands in a value.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.rows.iter().any(|row| row.iter().skip(1).any(|cell| cell.contains(text)))
    }

    /// The lines in so many columns, and the headings that are left out. Long names give way first, then columns; at last there is
    /// one value a line.
    pub(crate) fn lines(&self, width: usize) -> (Vec<String>, Vec<&str>) {
        let mut shown = self.filled_columns();
        let whole = self.draw(&shown);
        if all_fit(&whole, width) {
            return (whole, Vec::new());
        }
        let short = self.with_short_names(width);
        for leaves in std::iter::once(None).chain(self.leaving.iter().map(Some)) {
            shown.retain(|column| Some(column) != leaves);
            let lines = short.draw_to_width(&shown, width);
            if all_fit(&lines, width) {
                return (lines, self.left_out(&shown));
            }
        }
        (self.one_value_a_line(&shown, width), self.left_out(&shown))
    }

    /// Whether it is a table in so many columns, and not one value a line.
    pub(crate) fn is_table_in(&self, width: usize) -> bool {
        let mut shown = self.filled_columns();
        if all_fit(&self.draw(&shown), width) {
            return true;
        }
        let short = self.with_short_names(width);
        std::iter::once(None).chain(self.leaving.iter().map(Some)).any(|leaves| {
            shown.retain(|column| Some(column) != leaves);
            all_fit(&short.draw_to_width(&shown, width), width)
        })
    }

    /// Its rows, for forms that have room for all of them.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The heading of a column.
    pub(crate) fn heading(&self, column: usize) -> &str {
        self.headings.get(column).map_or("", String::as_str)
    }

    /// Whether a column is of words.
    pub(crate) fn is_left(&self, column: usize) -> bool {
        self.left.get(column).copied().unwrap_or(true)
    }

    /// Columns in which something stands, and that of the names; all where there is no row.
    pub(crate) fn filled_columns(&self) -> Vec<usize> {
        let has = |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        (0..self.headings.len()).filter(|at| *at == 0 || self.is_empty() || has(*at)).collect()
    }

    fn left_out(&self, shown: &[usize]) -> Vec<&str> {
        let gone = self.filled_columns().into_iter().filter(|at| !shown.contains(at));
        gone.filter_map(|at| self.headings.get(at)).map(String::as_str).collect()
    }

    /// The table with long names cut to what such a width has room for.
    fn with_short_names(&self, width: usize) -> Self {
        let most = (width * 2 / 5).max(MIN_NAME_WIDTH);
        let mut short = self.clone();
        for name in short.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = shorten(name, most).into_owned();
        }
        short
    }

    /// The lines, with the column of [`Self::cut_to`] as narrow as `width` requires.
    fn draw_to_width(&self, shown: &[usize], width: usize) -> Vec<String> {
        let lines = self.draw(shown);
        let excess = lines.iter().map(|line| display_width(line)).max().unwrap_or(0).saturating_sub(width);
        let Some((column, least)) = self.cut.filter(|(column, _)| shown.contains(column) && excess > 0)
        else {
            return lines;
        };
        let widest =
            self.rows.iter().filter_map(|row| Some(display_width(row.get(column)?))).max().unwrap_or(0);
        let mut narrow = self.clone();
        for cell in narrow.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = shorten(cell, widest.saturating_sub(excess).max(least)).into_owned();
        }
        narrow.draw(shown)
    }

    fn draw(&self, shown: &[usize]) -> Vec<String> {
        let pick = |cells: &[String]| -> Vec<String> {
            shown.iter().map(|at| cells.get(*at).cloned().unwrap_or_default()).collect()
        };
        let mut table = comfy_table::Table::new();
        let mut headings = pick(&self.headings);
        if self.stacked {
            headings = headings.iter().map(|heading| heading.replace(' ', "\n")).collect();
        }
        table.load_style(RULED).set_header(headings);
        table.add_rows(self.rows.iter().map(|row| pick(row)));
        for (column, at) in table.column_iter_mut().zip(shown) {
            column.set_padding((0, 1));
            let left = self.left.get(*at).copied().unwrap_or(true);
            column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
            if let Some(least) = self.least.get(*at).filter(|least| **least > 0) {
                let least = Width::Fixed(u16::try_from(least + 1).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Names, and below each its values with their headings.
    fn one_value_a_line(&self, shown: &[usize], width: usize) -> Vec<String> {
        let values = shown.get(1..).unwrap_or_default();
        let heading = |at: usize| self.headings.get(at).map_or("", String::as_str);
        let widest = values.iter().map(|at| display_width(heading(*at))).max().unwrap_or(0);
        let mut out = String::new();
        for row in &self.rows {
            let name = shown.first().and_then(|at| row.get(*at)).map_or("", String::as_str);
            if !name.is_empty() {
                out += &prose(width, &name[..name.len() - name.trim_start().len()], "  ", name);
            }
            for (at, value) in values.iter().filter_map(|at| Some((*at, row.get(*at)?))) {
                if value.is_empty() {
                    continue;
                }
                let head = heading(at);
                let gap = " ".repeat(widest.saturating_sub(display_width(head)));
                out += &prose(width, &format!("    {head}{gap}  "), "      ", value);
            }
        }
        out.lines().map(str::to_owned).collect()
    }

    /// As a table of Markdown, its columns under each other in the source too.
    pub(crate) fn markdown(&self) -> String {
        let escape = |cells: &[String]| -> Vec<String> { cells.iter().map(|c| escaped(c.trim())).collect() };
        let head = escape(&self.headings);
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| escape(row)).collect();
        let all = || std::iter::once(&head).chain(&rows);
        let width_of = |at: usize| all().filter_map(|row| row.get(at)).map(|c| display_width(c)).max();
        let widths: Vec<usize> = (0..head.len()).map(|at| width_of(at).unwrap_or(0).max(3)).collect();
        let cell = |(at, width): (usize, &usize), row: &[String]| {
            let text = row.get(at).map_or("", String::as_str);
            let gap = " ".repeat(width.saturating_sub(display_width(text)));
            if self.left[at] { format!(" {text}{gap} |") } else { format!(" {gap}{text} |") }
        };
        let line = |row: &[String]| -> String {
            let cells = widths.iter().enumerate().map(|column| cell(column, row));
            format!("|{}\n", cells.collect::<String>())
        };
        let rule = widths.iter().zip(&self.left).map(|(width, left)| {
            let dashes = "-".repeat(width - 1);
            if *left { format!(" :{dashes} |") } else { format!(" {dashes}: |") }
        });
        let rule = format!("|{}\n", rule.collect::<String>());
        line(&head) + &rule + &rows.iter().map(|row| line(row)).collect::<String>()
    }
}

fn all_fit(lines: &[String], width: usize) -> bool {
    lines.iter().all(|line| display_width(line) <= width)
}

/// Text that no reader of Markdown takes for marks: names are foreign text.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '~' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
fn example_table() -> Table {
    let mut table = Table::new(&["test", "MB/s", "depth", "p99", "limited by"], &[2, 4]);
    table.add(["RND4K Q32T1 read", "323", "31.7", "901 us", "device"].map(str::to_owned));
    table.add(["  reads of it", "1,210", "", "12.1 ms", "CPU of fathom"].map(str::to_owned));
    table
}

#[test]
fn a_column_in_which_nothing_stands_is_neither_shown_nor_missed() {
    let mut table = Table::new(&["test", "synced", "MB/s"], &[1]);
    table.add(["a".into(), String::new(), "1".into()]);
    assert_eq!(
        table.lines(80),
        (vec!["test  MB/s".into(), "-----------".into(), "a     1".into()], Vec::new())
    );
    assert!(table.lines(3).1.is_empty());
}

#[test]
fn columns_leave_in_their_order_and_at_last_there_is_one_value_a_line() {
    let table = example_table();
    let (all, none) = table.lines(80);
    assert!(none.is_empty() && all[0].ends_with("limited by") && all.len() == 4, "{all:?}");
    let (fewer, left_out) = table.lines(52);
    assert_eq!(left_out, ["depth"], "{fewer:?}");
    let (fewer, left_out) = table.lines(40);
    assert_eq!(left_out, ["depth", "limited by"], "{fewer:?}");
    let (list, left_out) = table.lines(24);
    assert_eq!(left_out, ["depth", "limited by"]);
    let expected = [
        "RND4K Q32T1 read",
        "    MB/s  323",
        "    p99   901 us",
        "  reads of it",
        "    MB/s  1,210",
        "    p99   12.1 ms",
    ];
    assert_eq!(list, expected);
    for width in 20..90 {
        assert!(all_fit(&table.lines(width).0, width), "{width}");
    }
}

#[test]
fn a_long_name_gives_way_before_a_column_does() {
    let mut table = example_table();
    table.add(["n".repeat(70), "1".into(), "1".into(), "1 us".into(), "device".into()]);
    let (lines, left_out) = table.lines(80);
    assert!(left_out.is_empty() && lines[4].contains("n…n"), "{lines:?}");
    assert!(table.lines(200).0[4].contains(&"n".repeat(70)));
}

#[test]
fn a_column_is_cut_to_the_room_that_is_left_before_another_is_left_out() {
    let mut table = Table::new(&["id", "target", "MB/s"], &[0]).cut_to(1, 6);
    table.add(["1234".into(), "/a/long/path/of/a/target".into(), "512".into()]);
    let at = |width| table.lines(width);
    assert!(at(40).0[2].contains("/a/long/path/of/a/target"), "{:?}", at(40));
    let (lines, left_out) = at(26);
    assert!(left_out.is_empty() && lines[2].contains('…') && all_fit(&lines, 26), "{lines:?}");
    assert_eq!(at(14).1, ["id"], "{:?}", at(14));
}

#[test]
fn markdown_has_its_columns_under_each_other_and_foreign_text_is_no_mark() {
    let mut table = Table::new(&["test", "MB/s", "why"], &[]);
    table.add(["a|b".into(), "1,210".into(), "~<x>\n`y`".into()]);
    let said = "| test |  MB/s | why                |\n\
                | :--- | ----: | :----------------- |\n\
                | a\\|b | 1,210 | \\~\\<x\\> \\`y\\`     |\n";
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('-', "");
    assert_eq!(squeeze(&table.markdown()), squeeze(said));
    let widths: Vec<usize> = table.markdown().lines().map(display_width).collect();
    assert!(widths.windows(2).all(|w| w[0] == w[1]), "{}", table.markdown());
}
