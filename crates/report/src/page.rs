//! Text for people: wrapped paragraphs, and tables that fit a width.
//!
//! A [`Table`] that is too wide is fitted in three steps: shorten long names and the cells of a chosen column, drop columns
//! in a given order, and finally print one value per line.

use crate::Style;
use crate::view::table::{DEVICE_LEGEND, Table, has_device_column};
use comfy_table::{CellAlignment, LineStyle, TableStyle};
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text of limited width that is built line by line.
pub(crate) struct Page {
    text: String,
    colour: bool,
    width: usize,
    /// Whether the page already explains the columns of the device.
    explains_device: bool,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { text: String::new(), colour: style.colour, width: style.width, explains_device: false }
    }

    /// Returns an empty page with the same style.
    pub(crate) fn empty(&self) -> Self {
        Self { text: String::new(), ..*self }
    }

    /// Returns the maximum width of a line, in columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes the text.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.text.as_bytes())
    }

    /// Adds an empty line, unless the last line is empty or the page has no line yet.
    pub(crate) fn gap(&mut self) {
        if !self.ends_with_gap() {
            self.line("");
        }
    }

    /// Whether the last line is empty or the page has no line yet.
    pub(crate) fn ends_with_gap(&self) -> bool {
        self.text.is_empty() || self.text.ends_with("\n\n")
    }

    /// Returns the number of lines.
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

    /// Adds a line, even if it is too long: code must remain in one line so that it can be pasted.
    pub(crate) fn unwrapped_line(&mut self, code: &str) {
        self.text += code;
        self.text.push('\n');
    }

    /// Adds a wrapped paragraph with indented continuation lines.
    pub(crate) fn prose(&mut self, first: &str, indent: &str, text: &str) {
        self.text += &prose(self.width, first, indent, text);
    }

    /// Adds a wrapped paragraph with indented continuation lines, whose code between backticks is not wrapped.
    pub(crate) fn prose_with_code(&mut self, first: &str, indent: &str, text: &str) {
        self.text += &prose_with_code(self.width, first, indent, text);
    }

    /// Adds a paragraph whose lines after the first are indented.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.prose("", "  ", text);
    }

    /// Adds an indented paragraph.
    pub(crate) fn note(&mut self, text: &str) {
        self.prose("  ", "    ", text);
    }

    /// Adds the legend of a table: a paragraph without indents.
    pub(crate) fn legend(&mut self, text: &str) {
        self.prose("", "", text);
    }

    /// Adds a short name and a paragraph next to it.
    pub(crate) fn field(&mut self, name: &str, text: &str) {
        self.prose(&format!("{name:<8}"), "        ", text);
    }

    /// Adds a table with the columns that fit, and a sentence that names the dropped columns.
    pub(crate) fn table(&mut self, table: &Table) {
        self.indented_table("", table);
    }

    /// Adds a table with the columns that fit. Does not name the dropped columns.
    pub(crate) fn narrow_table(&mut self, table: &Table) {
        for line in table.lines(self.width).0 {
            self.line(&line);
        }
        self.explain_device(&table.shown_headings(self.width));
    }

    /// Adds the legend of the columns of the device, below the first table of the page that has such a column.
    fn explain_device(&mut self, headings: &[&str]) {
        if !self.explains_device && has_device_column(headings) {
            self.legend(&format!("{DEVICE_LEGEND}."));
            self.explains_device = true;
        }
    }

    /// Adds a paragraph of at most `max_lines` lines. `…` replaces the words that do not fit.
    pub(crate) fn prose_within(&mut self, max_lines: usize, first: &str, indent: &str, text: &str) {
        let cut = |kept: &str| {
            prose(self.width, first, indent, &format!("{} …", kept.trim_end_matches([',', ';', ':'])))
        };
        let mut kept = text;
        let mut wrapped = prose(self.width, first, indent, text);
        while wrapped.lines().count() > max_lines {
            let Some((shorter, _)) = kept.rsplit_once(' ') else { break };
            kept = without_bare_number(shorter);
            wrapped = cut(kept);
        }
        // End at a clause if possible, because half a clause is hard to read. A comma in a number ends no clause.
        let ends_clause = |at: usize| kept[at + 1..].is_empty() || kept[at + 1..].starts_with(' ');
        let clause = kept.rmatch_indices([',', ';', ':']).map(|(at, _)| at).find(|at| ends_clause(*at));
        let clause = clause.filter(|at| *at > kept.len() * 2 / 3 && kept.len() < text.len());
        self.text += &clause.map_or(wrapped, |at| cut(&kept[..at]));
    }

    /// Adds an indented table with the columns that fit, and a sentence that names the dropped
    /// columns.
    pub(crate) fn indented_table(&mut self, indent: &str, table: &Table) {
        let width = self.width.saturating_sub(display_width(indent));
        let (lines, left_out) = table.lines(width);
        for line in lines {
            self.line(&format!("{indent}{line}"));
        }
        self.explain_device(&table.shown_headings(width));
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            let notice = format!("Columns that do not fit: {left_out}; --format json has them.");
            self.paragraph(&notice);
        }
    }

    /// Colours text if the page has colours. `code` has the parameters of the escape sequence, such
    /// as `1;32`.
    pub(crate) fn paint(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Maximum width of prose: longer lines are hard to read.
pub(crate) const MAX_PROSE_WIDTH: usize = 110;
/// Replaces the removed part of a word.
pub(crate) const ELLIPSIS: char = '…';

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
    rest.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, after)| after)).into()
}

/// Wraps a paragraph: `first` comes before its first word, `indent` before each further line. Ends
/// with a line feed. Shortens words that do not fit on a line, except code between backticks.
pub(crate) fn prose(width: usize, first: &str, indent: &str, text: &str) -> String {
    let width = width.min(MAX_PROSE_WIDTH);
    if display_width(first) >= width {
        let joined = format!("{} {text}", first.trim());
        return prose(width, "", indent, &joined);
    }
    let deepest = " ".repeat(width / 8);
    let indent = if display_width(indent) > width / 3 { deepest.as_str() } else { indent };
    wrap_words(width, first, indent, &split_words(text))
}

/// Wraps a paragraph like [`prose`], but never breaks code between backticks, so that it can be pasted.
pub(crate) fn prose_with_code(width: usize, first: &str, indent: &str, text: &str) -> String {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    let mut is_code = false;
    for word in split_words(text) {
        let ends_code = word.matches('`').count() % 2 == 1;
        match words.last_mut().filter(|_| is_code) {
            Some(code) => *code = format!("{code} {word}").into(),
            None => words.push(word),
        }
        is_code ^= ends_code;
    }
    wrap_words(width.min(MAX_PROSE_WIDTH), first, indent, &words)
}

/// Breaks lines between words. Shortens words that do not fit on a line, but never code between backticks.
fn wrap_words(width: usize, first: &str, indent: &str, words: &[Cow<'_, str>]) -> String {
    let backticks = |word: &str| word.matches('`').count();
    let mut backticks_left: usize = words.iter().map(|word| backticks(word)).sum();
    let mut is_in_code = false;
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut is_first_word = true;
    for word in words {
        let gap = usize::from(!is_first_word);
        let fits = display_width(&line) + gap + display_width(word) <= width;
        if !fits && (!is_first_word || display_width(&line) > display_width(indent)) {
            out += line.trim_end();
            out.push('\n');
            indent.clone_into(&mut line);
            is_first_word = true;
        }
        if !is_first_word {
            line.push(' ');
        }
        let is_code = is_in_code || word.contains('`');
        line +=
            &if is_code { word.clone() } else { shorten(word, width.saturating_sub(display_width(&line))) };
        backticks_left -= backticks(word);
        // A backtick that is not closed opens no code.
        is_in_code = (is_in_code ^ (backticks(word) % 2 == 1)) && backticks_left > 0;
        is_first_word = false;
    }
    out += &line;
    out.push('\n');
    out
}

/// Removes a number from the end of a cut text, because its unit is cut off.
fn without_bare_number(text: &str) -> &str {
    let cut = text.rsplit_once(' ').filter(|(_, word)| word.ends_with(|c: char| c.is_ascii_digit()));
    cut.map_or(text, |(before, _)| before)
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

/// Shortens a word to `max_width` columns (at least one) by removing its middle, because names
/// differ at their ends. Returns coloured words whole.
pub(crate) fn shorten(word: &str, max_width: usize) -> Cow<'_, str> {
    if display_width(word) <= max_width || word.contains('\x1b') {
        return word.into();
    }
    let room = max_width.saturating_sub(1);
    let head = take_width(word.chars(), room - room / 2);
    let tail: Vec<char> = take_width(word.chars().rev(), room / 2);
    head.into_iter().chain([ELLIPSIS]).chain(tail.into_iter().rev()).collect::<String>().into()
}

/// Returns the leading characters that fit into `room` columns.
fn take_width(letters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= room
    };
    letters.take_while(fits).collect()
}

/// A table has only a rule below its headings, because frames would take up columns.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));
/// Minimum width of a shortened name.
const MIN_NAME_WIDTH: usize = 24;

impl Table {
    /// Draws the table in `width` columns. Returns its lines and the dropped headings. First
    /// shortens names and the cells that [`Self::cut_to`] chose, then drops columns, and finally
    /// prints one value per line.
    pub(crate) fn lines(&self, width: usize) -> (Vec<String>, Vec<&str>) {
        let (lines, shown) = self.fit(width);
        let lines = lines.unwrap_or_else(|| self.one_value_a_line(&shown, width));
        (lines, self.left_out(&shown))
    }

    /// Whether the table fits `width` without printing one value per line.
    pub(crate) fn is_table_in(&self, width: usize) -> bool {
        self.fit(width).0.is_some()
    }

    /// Shortens long names and drops columns until the table fits `width`. Returns its lines and
    /// the remaining columns. The lines are `None` if the table does not fit even then.
    fn fit(&self, width: usize) -> (Option<Vec<String>>, Vec<usize>) {
        let mut shown = self.filled_columns();
        let full_table = self.draw(&shown);
        if all_fit(&full_table, width) {
            return (Some(full_table), shown);
        }
        let short = self.with_short_names(width);
        for leaves in std::iter::once(None).chain(self.drop_order.iter().map(Some)) {
            shown.retain(|column| Some(column) != leaves);
            let lines = short.draw_to_width(&shown, width);
            if all_fit(&lines, width) {
                return (Some(lines), shown);
            }
        }
        (None, shown)
    }

    /// Returns the headings of the columns that a page of this width shows.
    pub(crate) fn shown_headings(&self, width: usize) -> Vec<&str> {
        self.fit(width).1.into_iter().map(|at| self.headings[at].as_str()).collect()
    }

    fn left_out(&self, shown: &[usize]) -> Vec<&str> {
        let gone = self.filled_columns().into_iter().filter(|at| !shown.contains(at));
        gone.map(|at| self.headings[at].as_str()).collect()
    }

    /// Returns the table with long names shortened for this width.
    fn with_short_names(&self, width: usize) -> Self {
        let max_width = (width * 2 / 5).max(MIN_NAME_WIDTH);
        let mut short = self.clone();
        for name in short.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = shorten(name, max_width).into_owned();
        }
        short
    }

    /// Draws the table. If it is wider than `width`, shortens the cells of the column that [`Self::cut_to`] chose.
    fn draw_to_width(&self, shown: &[usize], width: usize) -> Vec<String> {
        let lines = self.draw(shown);
        let excess = lines.iter().map(|line| display_width(line)).max().unwrap_or(0).saturating_sub(width);
        let Some((column, min_width)) = self.cut.filter(|(column, _)| shown.contains(column) && excess > 0)
        else {
            return lines;
        };
        let widest =
            self.rows.iter().filter_map(|row| Some(display_width(row.get(column)?))).max().unwrap_or(0);
        let mut narrow = self.clone();
        for cell in narrow.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = shorten(cell, widest.saturating_sub(excess).max(min_width)).into_owned();
        }
        narrow.draw(shown)
    }

    fn draw(&self, shown: &[usize]) -> Vec<String> {
        let pick = |cells: &[String]| -> Vec<String> {
            shown.iter().map(|at| cells.get(*at).cloned().unwrap_or_default()).collect()
        };
        let mut table = comfy_table::Table::new();
        let mut headings = pick(&self.headings);
        if self.is_stacked {
            headings = headings.iter().map(|heading| heading.replace(' ', "\n")).collect();
        }
        table.load_style(RULED).set_header(headings);
        table.add_rows(self.rows.iter().map(|row| pick(row)));
        for (column, at) in table.column_iter_mut().zip(shown) {
            column.set_padding((0, 1));
            column.set_cell_alignment(if self.is_left_aligned[*at] {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            });
        }
        table.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Returns a line with the name of each row, followed by a line for each value with its
    /// heading.
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
}

fn all_fit(lines: &[String], width: usize) -> bool {
    lines.iter().all(|line| display_width(line) <= width)
}

#[cfg(test)]
fn example_table() -> Table {
    let mut table = Table::new(&["test", "MB/s", "depth", "p99", "limited by"], &[2, 4]);
    table.add(["RND4K Q32T1 read", "323", "31.7", "901 us", "device"].map(str::to_owned));
    table.add(["  reads of it", "1,210", "", "12.1 ms", "CPU of fathom"].map(str::to_owned));
    table
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
fn code_is_neither_broken_nor_shortened() {
    let code = "`echo '254:0 400' > /sys/fs/cgroup/x/io.max`";
    let wrapped =
        prose_with_code(40, "  ", "  ", &format!("In a cgroup type {code}, then `fathom run` at 3.0 % more"));
    assert_eq!(wrapped, format!("  In a cgroup type\n  {code},\n  then `fathom run` at 3.0 % more\n"));
    let long = format!("/sys/{}", "x".repeat(60));
    for code in [format!("`{long}`"), format!("`cat {long} > b`")] {
        let wrapped = prose(40, "", "", &format!("Type {code}, then repeat"));
        assert!(wrapped.contains(&long), "{wrapped}");
        assert!(prose_with_code(40, "", "", &code).contains(&long));
    }
    assert!(!prose(40, "", "", &format!("It`s {long} and {long}")).contains(&long));
    // An unclosed backtick hides no text.
    assert_eq!(prose_with_code(40, "", "", "an `open end"), "an `open end\n");
}

#[test]
fn a_cut_text_ends_after_a_word_and_a_whole_figure() {
    let text = "D04 IO_LIMIT_CONFIGURED biases it and 2 other results: A cgroup limits reads to 1,000 IOPS and \
                20.5 MiB/s, writes to 98 % of 12:30, and more of it; see `fathom explain D04` for the rule";
    for width in 30..110 {
        let mut out = Page::new(Style { width, ..Style::default() });
        out.prose_within(2, "  ", "    ", text);
        let shown = out.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(kept) = shown.strip_suffix(" …") else { continue };
        let rest = text.strip_prefix(kept).unwrap_or_else(|| panic!("{width}: {shown}"));
        let after_mark = rest.strip_prefix([',', ';', ':']);
        assert!(after_mark.unwrap_or(rest).starts_with(' '), "{width}: {shown}");
        let has_number = kept.ends_with(|c: char| c.is_ascii_digit());
        assert!(!has_number || after_mark.is_some(), "{width}: a figure without its unit: {shown}");
    }
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
