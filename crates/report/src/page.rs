//! Text for people: wrapped paragraphs, tables that fit a width, and number formats that several formats share.
//!
//! A [`Table`] that is too wide gives way in three steps: it shortens long names, drops columns in a given order, and
//! finally prints one value per line.

use crate::Style;
use comfy_table::{CellAlignment, ColumnConstraint, LineStyle, TableStyle, Width};
use model::finding::CheckId;
use model::report::{Latency, Measured, Verdict};
use model::units::{MIB, show_count, show_ns, show_rate, show_share};
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Relative half width of an interval from which the value loses digits.
const WIDE_INTERVAL: f64 = 0.1;
/// Relative half width of an interval from which the value keeps a single digit.
const VERY_WIDE_INTERVAL: f64 = 1.0;

/// Text of limited width that is built line by line.
pub(crate) struct Page {
    text: String,
    colour: bool,
    width: usize,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { text: String::new(), colour: style.colour, width: style.width }
    }

    /// Returns an empty page with the same style.
    pub(crate) fn empty(&self) -> Self {
        Self { text: String::new(), ..*self }
    }

    /// Returns the width.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes the text.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.text.as_bytes())
    }

    /// Adds an empty line, unless the last one is empty or there is no line.
    pub(crate) fn gap(&mut self) {
        if !self.ends_with_gap() {
            self.line("");
        }
    }

    /// Whether the last line is empty or there is no line.
    pub(crate) fn ends_with_gap(&self) -> bool {
        self.text.is_empty() || self.text.ends_with("\n\n")
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Adds the lines of another page.
    pub(crate) fn append(&mut self, other: &Self) {
        self.text += &other.text;
    }

    /// Adds a line, which is wrapped if it is too long.
    pub(crate) fn line(&mut self, text: &str) {
        if display_width(text) <= self.width {
            self.text += text;
            self.text.push('\n');
            return;
        }
        let indent = &text[..text.len() - text.trim_start().len()];
        self.prose(indent, &format!("{indent}  "), text);
    }

    /// Adds a wrapped paragraph with indented continuation lines.
    pub(crate) fn prose(&mut self, first: &str, indent: &str, text: &str) {
        self.text += &prose(self.width, first, indent, text);
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.prose("", "  ", text);
    }

    /// Adds an indented paragraph.
    pub(crate) fn note(&mut self, text: &str) {
        self.prose("  ", "    ", text);
    }

    /// Adds the legend of a table.
    pub(crate) fn legend(&mut self, text: &str) {
        self.prose("", "", text);
    }

    /// Adds a paragraph next to its name.
    pub(crate) fn field(&mut self, name: &str, text: &str) {
        self.prose(&format!("{name:<8}"), "        ", text);
    }

    /// Adds a table with the columns that fit, and the names of the others.
    pub(crate) fn table(&mut self, table: &Table) {
        self.indented_table("", table);
    }

    /// Adds a table with the columns that fit, without the names of the others.
    pub(crate) fn narrow_table(&mut self, table: &Table) {
        for line in table.lines(self.width).0 {
            self.line(&line);
        }
    }

    /// Adds a paragraph of at most `most` lines. `…` replaces the words that do not fit.
    pub(crate) fn prose_within(&mut self, most: usize, first: &str, indent: &str, text: &str) {
        let cut = |kept: &str| {
            prose(self.width, first, indent, &format!("{} …", kept.trim_end_matches([',', ';', ':'])))
        };
        let mut kept = text;
        let mut wrapped = prose(self.width, first, indent, text);
        while wrapped.lines().count() > most {
            let Some((shorter, _)) = kept.rsplit_once(' ') else { break };
            kept = shorter;
            wrapped = cut(kept);
        }
        // The end of a clause reads better than half a clause.
        let clause =
            kept.rfind([',', ';', ':']).filter(|at| *at > kept.len() * 2 / 3 && kept.len() < text.len());
        self.text += &clause.map_or(wrapped, |at| cut(&kept[..at]));
    }

    /// Adds an indented table with the columns that fit, and the names of the others.
    pub(crate) fn indented_table(&mut self, indent: &str, table: &Table) {
        let (lines, left_out) = table.lines(self.width.saturating_sub(display_width(indent)));
        for line in lines {
            self.line(&format!("{indent}{line}"));
        }
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            let notice = format!("Columns that do not fit: {left_out}; --format json has them.");
            self.paragraph(&notice);
        }
    }

    pub(crate) fn paint(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Formats a percentile, or `-` if too few operations support it.
pub(crate) fn percentile(latency: &Latency, name: &str) -> String {
    let value = latency.percentiles.get(name).copied().flatten();
    value.map_or_else(|| "-".into(), |ns| show_ns(ns as f64))
}

/// Formats a value with the digits that its interval supports, after `~` if digits were removed.
pub(crate) fn supported(value: f64, interval: Option<[f64; 2]>) -> String {
    let share = match interval {
        Some([low, high]) if value > 0.0 => (high - low) / 2.0 / value,
        _ => 0.0,
    };
    let digits = match share {
        s if s >= VERY_WIDE_INTERVAL => 1,
        s if s >= WIDE_INTERVAL => 2,
        _ => return show_rate(value),
    };
    let scale = 10_f64.powi(value.log10().floor() as i32 + 1 - digits);
    let rounded = (value / scale).round() * scale;
    // Removes decimals too: 1.23 becomes 1.2 or 1.
    let places = usize::try_from(digits - 1 - value.log10().floor() as i32).unwrap_or(0);
    if places > 0 { format!("~{rounded:.places$}") } else { format!("~{}", show_count(rounded)) }
}

/// Returns the verdict on a row, with its accepted findings. A void result is invalid, even if an older
/// version judged it otherwise.
pub(crate) fn verdict_mark(result: &Measured) -> String {
    let word = match result.verdict {
        _ if result.void => "invalid",
        Verdict::Valid => "valid",
        Verdict::Suspect => "suspect",
        Verdict::Invalid => "invalid",
    };
    word.to_owned() + &accepted(&result.accepted)
}

/// `, accepted: A04, D01`: the accepted findings that affect a number; empty without any.
pub(crate) fn accepted(ids: &[CheckId]) -> String {
    if ids.is_empty() { String::new() } else { format!(", accepted: {}", CheckId::list(ids, ", ")) }
}

/// Mark after a figure whose result is suspect, in tables where a row has several figures.
pub(crate) const SUSPECT_MARK: &str = "*";
/// Explains the mark.
pub(crate) const SUSPECT_MARK_MEANING: &str =
    "* = suspect; void = withheld, because a finding invalidates it";

/// Returns the verdict on a row of several results: that of the worst.
pub(crate) fn worst_verdict_mark<'m>(results: impl Iterator<Item = &'m Measured>) -> String {
    results.max_by_key(|r| (r.void, r.verdict)).map_or_else(String::new, verdict_mark)
}

/// Returns a figure with the mark of its verdict, for tables where a row has several figures.
pub(crate) fn with_suspect_mark(figure: String, verdict: Verdict) -> String {
    match verdict {
        Verdict::Valid => figure,
        Verdict::Suspect => format!("{figure}{SUSPECT_MARK}"),
        Verdict::Invalid => "void".into(),
    }
}

/// `1,000 to 1,200`, or `-`.
pub(crate) fn interval_ends(interval: Option<[f64; 2]>) -> String {
    let ends = |[low, high]: [f64; 2]| format!("{} to {}", show_rate(low), show_rate(high));
    interval.map_or_else(|| "-".into(), ends)
}

/// Returns half the interval in percent of the value.
pub(crate) fn half_width(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) if value > 0.0 => show_share((high - low) / 2.0 / value),
        _ => "-".into(),
    }
}

/// Returns the rate and size of the requests that the topmost device completed during the runs, from the runs that have it.
pub(crate) fn device_rate(result: &Measured) -> String {
    let Some(seen) = result.at_device() else { return "-".into() };
    match seen.request_bytes() {
        Some(size) => format!("{} x {}", show_count(seen.requests_per_s(seen.iops)), short_bytes(size)),
        None => "0".into(),
    }
}

/// Formats a mean size in few characters: `4K`, `1023K`, `1M`.
pub(crate) fn short_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{}M", b / MIB),
        b if b >= 10 << 10 => format!("{:.0}K", b as f64 / 1024.0),
        b if b >= 1 << 10 => format!("{:.1}K", b as f64 / 1024.0).replace(".0K", "K"),
        b => b.to_string(),
    }
}

/// Maximum width of prose: longer lines are hard to read.
const MAX_PROSE_WIDTH: usize = 110;
/// Replaces the removed part of a word.
const ELLIPSIS: char = '…';

/// Returns the width of text on a terminal: characters may take two columns, and colours none.
pub(crate) fn display_width(text: &str) -> usize {
    plain(text).width()
}

/// Removes colours from text.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return text.into();
    }
    let mut rest = text.split('\x1b');
    let first = rest.next().unwrap_or_default().to_owned();
    rest.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, unit)| unit)).into()
}

/// Wraps a paragraph: `first` before its first word, `indent` before each further line. Ends with a line feed. Breaks only words
/// that are longer than a line.
pub(crate) fn prose(width: usize, first: &str, indent: &str, text: &str) -> String {
    let width = width.min(MAX_PROSE_WIDTH);
    if display_width(first) >= width {
        let joined = format!("{} {text}", first.trim());
        return prose(width, "", indent, &joined);
    }
    let deepest = " ".repeat(width / 8);
    let indent = if display_width(indent) > width / 3 { deepest.as_str() } else { indent };
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in &split_words(text) {
        let gap = usize::from(!empty);
        let fits = display_width(&line) + gap + display_width(word) <= width;
        if !fits && (!empty || display_width(&line) > display_width(indent)) {
            out += line.trim_end();
            out.push('\n');
            indent.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &shorten(word, width.saturating_sub(display_width(&line)));
        empty = false;
    }
    out += &line;
    out.push('\n');
    out
}

/// Splits text into words, keeping a percent sign with its number.
fn split_words(text: &str) -> Vec<Cow<'_, str>> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.starts_with('%') && number.ends_with(|c: char| c.is_ascii_digit()) => {
                *number += " ";
                *number += word;
            }
            _ => words.push(word.into()),
        }
    }
    words
}

/// Shortens a word to at most `most` columns by removing its middle, because names differ at their ends.
pub(crate) fn shorten(word: &str, most: usize) -> Cow<'_, str> {
    if display_width(word) <= most || word.contains('\x1b') {
        return word.into();
    }
    let room = most.saturating_sub(1);
    let head = take_width(word.chars(), room - room / 2);
    let tail: Vec<char> = take_width(word.chars().rev(), room / 2);
    head.into_iter().chain([ELLIPSIS]).chain(tail.into_iter().rev()).collect::<String>().into()
}

/// Returns as many characters as fit.
fn take_width(letters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= room
    };
    letters.take_while(fits).collect()
}

/// Only a rule below the headings: frames would take columns.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));
/// Minimum width of a shortened name.
const MIN_NAME_WIDTH: usize = 24;

/// A table. The first and the last column are text; numbers are right-aligned.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headings: Vec<String>,
    is_text: Vec<bool>,
    min_widths: Vec<usize>,
    drop_order: Vec<usize>,
    rows: Vec<Vec<String>>,
    stacked: bool,
    /// A column whose cells are shortened to the remaining room, and its minimum width.
    cut: Option<(usize, usize)>,
}

impl Table {
    /// Returns an empty table. If the width is too small, the columns of `drop_order` are dropped in this order.
    pub(crate) fn new<H: AsRef<str>>(headings: &[H], drop_order: &[usize]) -> Self {
        let last = headings.len().saturating_sub(1);
        Self {
            headings: headings.iter().map(|h| h.as_ref().to_owned()).collect(),
            is_text: (0..headings.len()).map(|at| at == 0 || at == last).collect(),
            min_widths: vec![0; headings.len()],
            drop_order: drop_order.to_vec(),
            rows: Vec::new(),
            stacked: false,
            cut: None,
        }
    }

    /// Draws the words of each heading on separate lines, since figures are shorter.
    #[must_use]
    pub(crate) fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    /// Aligns a column to the left or to the right.
    #[must_use]
    pub(crate) fn aligned(mut self, column: usize, left: bool) -> Self {
        if let Some(side) = self.is_text.get_mut(column) {
            *side = left;
        }
        self
    }

    /// Sets the minimum width of a column.
    #[must_use]
    pub(crate) fn at_least(mut self, column: usize, columns: usize) -> Self {
        if let Some(least) = self.min_widths.get_mut(column) {
            *least = columns;
        }
        self
    }

    /// Shortens the cells of this column to the remaining room, down to `least`, before a column
    /// is dropped.
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

    /// Adds a title of the following rows.
    pub(crate) fn add_title(&mut self, title: &str) {
        let blank = self.headings.iter().skip(1).map(|_| String::new());
        self.rows.push(std::iter::once(format!("{title}:")).chain(blank).collect());
    }

    /// Adds the rows of a table with the same columns.
    pub(crate) fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a cell contains this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.rows.iter().any(|row| row.iter().skip(1).any(|cell| cell.contains(text)))
    }

    /// Draws the table in `width` columns. Returns its lines and the dropped headings. Shortens long names first, then drops columns, and
    /// finally prints one value per line.
    pub(crate) fn lines(&self, width: usize) -> (Vec<String>, Vec<&str>) {
        let mut shown = self.filled_columns();
        let full_table = self.draw(&shown);
        if all_fit(&full_table, width) {
            return (full_table, Vec::new());
        }
        let short = self.with_short_names(width);
        for leaves in std::iter::once(None).chain(self.drop_order.iter().map(Some)) {
            shown.retain(|column| Some(column) != leaves);
            let lines = short.draw_to_width(&shown, width);
            if all_fit(&lines, width) {
                return (lines, self.left_out(&shown));
            }
        }
        (self.one_value_a_line(&shown, width), self.left_out(&shown))
    }

    /// Whether the table fits `width` without printing one value per line.
    pub(crate) fn is_table_in(&self, width: usize) -> bool {
        let mut shown = self.filled_columns();
        if all_fit(&self.draw(&shown), width) {
            return true;
        }
        let short = self.with_short_names(width);
        std::iter::once(None).chain(self.drop_order.iter().map(Some)).any(|leaves| {
            shown.retain(|column| Some(column) != leaves);
            all_fit(&short.draw_to_width(&shown, width), width)
        })
    }

    /// Returns all rows.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Returns the heading of a column.
    pub(crate) fn heading(&self, column: usize) -> &str {
        self.headings.get(column).map_or("", String::as_str)
    }

    /// Whether a column is text.
    pub(crate) fn is_left(&self, column: usize) -> bool {
        self.is_text.get(column).copied().unwrap_or(true)
    }

    /// Returns the first column and all non-empty columns; all columns if there is no row.
    pub(crate) fn filled_columns(&self) -> Vec<usize> {
        let has = |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        (0..self.headings.len()).filter(|at| *at == 0 || self.is_empty() || has(*at)).collect()
    }

    fn left_out(&self, shown: &[usize]) -> Vec<&str> {
        let gone = self.filled_columns().into_iter().filter(|at| !shown.contains(at));
        gone.filter_map(|at| self.headings.get(at)).map(String::as_str).collect()
    }

    /// Returns the table with long names shortened for this width.
    fn with_short_names(&self, width: usize) -> Self {
        let most = (width * 2 / 5).max(MIN_NAME_WIDTH);
        let mut short = self.clone();
        for name in short.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = shorten(name, most).into_owned();
        }
        short
    }

    /// Draws the table with the column of [`Self::cut_to`] as narrow as `width` requires.
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
            let left = self.is_text.get(*at).copied().unwrap_or(true);
            column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
            if let Some(least) = self.min_widths.get(*at).filter(|least| **least > 0) {
                let least = Width::Fixed(u16::try_from(least + 1).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Prints each name and its values with their headings below.
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

    /// Returns a Markdown table, with aligned columns in the source.
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
            if self.is_text[at] { format!(" {text}{gap} |") } else { format!(" {gap}{text} |") }
        };
        let line = |row: &[String]| -> String {
            let cells = widths.iter().enumerate().map(|column| cell(column, row));
            format!("|{}\n", cells.collect::<String>())
        };
        let rule = widths.iter().zip(&self.is_text).map(|(width, left)| {
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

/// Escapes the characters that have a meaning in Markdown.
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
fn a_wide_interval_removes_digits() {
    let shown =
        |value: f64, share: f64| supported(value, Some([value * (1.0 - share), value * (1.0 + share)]));
    assert_eq!((shown(12_677.0, 0.05), shown(12_677.0, 1.87)), ("12,677".into(), "~10,000".into()));
    assert_eq!((shown(12_677.0, 0.19), shown(14_573.0, 0.39)), ("~13,000".into(), "~15,000".into()));
    assert_eq!(
        (shown(53.12, 0.2), shown(1.234, 0.2), shown(1.234, 1.5)),
        ("~53".into(), "~1.2".into(), "~1".into())
    );
    assert_eq!((shown(0.0123, 0.2), shown(99.6, 0.4)), ("~0.012".into(), "~100".into()));
    assert_eq!(
        (supported(78_912.0, None), supported(0.0, Some([0.0, 0.0]))),
        ("78,912".into(), "0.00".into())
    );
    assert_eq!(supported(f64::NAN, Some([0.0, 1.0])), "NaN");
}

#[test]
fn a_figure_has_its_mark_and_a_void_one_no_number() {
    let marked = |verdict| with_suspect_mark("1,234".into(), verdict);
    assert_eq!([Verdict::Valid, Verdict::Suspect, Verdict::Invalid].map(marked), ["1,234", "1,234*", "void"]);
}

#[test]
fn lines_fit_the_width_and_words_are_not_broken() {
    let text = "word ".repeat(60);
    for width in [20, 40, 80, 110, 200] {
        let all = prose(width, "* ", "  ", &text);
        let lines: Vec<&str> = all.lines().collect();
        assert!(lines[0].starts_with("* word") && lines[1].starts_with("  word"));
        assert!(lines.iter().all(|l| display_width(l) <= width.min(MAX_PROSE_WIDTH) && !l.ends_with(' ')));
        assert_eq!(all.matches("word").count(), 60);
    }
    assert_eq!(prose(80, "* ", "  ", ""), "* \n");
    assert_eq!(prose(20, "", "", "it is no more than 3.0 % faster"), "it is no more than\n3.0 % faster\n");
}

#[test]
fn overlong_words_keep_their_ends_and_indents_leave_room() {
    let path = format!("/var/{}/20260314.fathom", "x".repeat(200));
    let all = prose(40, &" ".repeat(30), &" ".repeat(34), &format!("Session {path}"));
    assert!(all.lines().all(|l| display_width(l) <= 40), "{all}");
    assert!(all.contains("/var/x") && all.contains('…') && all.ends_with("14.fathom\n"), "{all}");
    assert_eq!(shorten("short", 5), "short");
    assert_eq!(shorten("abcdefghij", 5), "ab…ij");
    assert_eq!(display_width(&shorten("ああああああ", 6)), 5);
    assert_eq!(shorten("abc", 0), "…");
}

#[test]
fn colours_take_no_columns() {
    assert_eq!((display_width("\x1b[1;32mVALID\x1b[0m ok"), display_width("あ")), (8, 2));
    let painted = format!("\x1b[1m{}\x1b[0m", "word ".repeat(30).trim());
    let seen: String = plain(&prose(40, "", "", &painted)).into_owned();
    assert_eq!(seen, prose(40, "", "", &"word ".repeat(30)));
}

#[test]
fn an_empty_column_is_neither_shown_nor_reported_as_missing() {
    let mut table = Table::new(&["test", "synced", "MB/s"], &[1]);
    table.add(["a".into(), String::new(), "1".into()]);
    assert_eq!(
        table.lines(80),
        (vec!["test  MB/s".into(), "-----------".into(), "a     1".into()], Vec::new())
    );
    assert!(table.lines(3).1.is_empty());
}

#[test]
fn columns_are_dropped_in_order_down_to_one_value_per_line() {
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
fn long_names_are_shortened_before_columns_are_dropped() {
    let mut table = example_table();
    table.add(["n".repeat(70), "1".into(), "1".into(), "1 us".into(), "device".into()]);
    let (lines, left_out) = table.lines(80);
    assert!(left_out.is_empty() && lines[4].contains("n…n"), "{lines:?}");
    assert!(table.lines(200).0[4].contains(&"n".repeat(70)));
}

#[test]
fn a_column_is_shortened_before_another_is_dropped() {
    let mut table = Table::new(&["id", "target", "MB/s"], &[0]).cut_to(1, 6);
    table.add(["1234".into(), "/a/long/path/of/a/target".into(), "512".into()]);
    let at = |width| table.lines(width);
    assert!(at(40).0[2].contains("/a/long/path/of/a/target"), "{:?}", at(40));
    let (lines, left_out) = at(26);
    assert!(left_out.is_empty() && lines[2].contains('…') && all_fit(&lines, 26), "{lines:?}");
    assert_eq!(at(14).1, ["id"], "{:?}", at(14));
}

#[test]
fn markdown_columns_are_aligned_and_foreign_text_is_escaped() {
    let mut table = Table::new(&["test", "MB/s", "why"], &[]);
    table.add(["a|b".into(), "1,210".into(), "~<x>\n`y`".into()]);
    let expected = "| test |  MB/s | why                |\n\
                | :--- | ----: | :----------------- |\n\
                | a\\|b | 1,210 | \\~\\<x\\> \\`y\\`     |\n";
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('-', "");
    assert_eq!(squeeze(&table.markdown()), squeeze(expected));
    let widths: Vec<usize> = table.markdown().lines().map(display_width).collect();
    assert!(widths.windows(2).all(|w| w[0] == w[1]), "{}", table.markdown());
}
