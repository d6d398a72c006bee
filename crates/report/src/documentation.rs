//! The guide and the pages of checks as text for a terminal.
//!
//! `chapter` reads the part of Markdown that the guide uses, line by line. Code stays unchanged. Paragraphs and list
//! items are wrapped, links become their text, and images are left out. A table is drawn if it fits, if necessary with
//! a wrapped last column. Otherwise each row becomes a paragraph. `page_parts` and `is_command` are shared with the
//! other formats that print pages of checks.

use crate::Style;
use crate::page::{Page, display_width, prose};
use crate::view::table::Table;
use model::finding::{CheckPage, Pages};
use std::io;
use std::io::Write;

/// The marker of a fenced code block.
const FENCE: &str = "```";

/// Renders a chapter for a terminal of this width.
pub fn chapter(markdown: &str, width: usize) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    // Whether the last paragraph belonged to a list item. Further paragraphs of an item are
    // indented, but are not code.
    let mut in_list = false;
    while let Some(line) = lines.next() {
        let text = line.trim();
        if let Some(fence_indent) = text.strip_prefix(FENCE).map(|_| line.len() - line.trim_start().len()) {
            for code in lines.by_ref().take_while(|code| code.trim() != FENCE) {
                let code = code.get(fence_indent.min(code.len() - code.trim_start().len())..).unwrap_or(code);
                out += format!("    {code}").trim_end();
                out.push('\n');
            }
        } else if line.starts_with("    ") && !in_list {
            out += &format!("{}\n", line.trim_end());
        } else if text.is_empty() {
            out.push('\n');
        } else if text.starts_with('#') {
            in_list = false;
            out += &format!("{}\n", strip_marks(text));
        } else if text.starts_with('|') {
            let mut rows = vec![cells(text)];
            while let Some(row) = lines.next_if(|next| next.trim_start().starts_with('|')) {
                rows.push(cells(row.trim()));
            }
            out += &draw_table(&rows, width);
        } else if !text.starts_with("<!--") && !text.starts_with("![") {
            let indent = line.len() - line.trim_start().len();
            let mark = item_mark(text);
            in_list = mark > 0 || (in_list && indent > 0);
            let mut paragraph = text[mark..].to_owned();
            while let Some(next) = lines.next_if(|next| continues(next)) {
                paragraph += &format!(" {}", next.trim());
            }
            let indent = " ".repeat(indent);
            let first = format!("{indent}{}", &text[..mark]);
            let hanging = format!("{indent}{}", " ".repeat(mark));
            out += &prose(width, &first, &hanging, &strip_marks(&paragraph));
        }
    }
    out
}

/// Returns the length of `- `, `* ` or `1. ` at the beginning of a list item, or 0.
fn item_mark(text: &str) -> usize {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_bullet = text.starts_with("- ") || text.starts_with("* ");
    match digits {
        0 if is_bullet => 2,
        1.. if text[digits..].starts_with(". ") => digits + 2,
        _ => 0,
    }
}

/// Whether a line belongs to the paragraph before it.
fn continues(line: &str) -> bool {
    let text = line.trim();
    let begins_another =
        ["#", "|", FENCE, "<!--"].iter().any(|mark| text.starts_with(mark)) || item_mark(text) > 0;
    !text.is_empty() && !begins_another
}

/// Returns the cells of a row of a table. `\|` is a bar within a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\0");
    let row = row.strip_prefix('|').unwrap_or(&row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(|cell| strip_marks(&cell.trim().replace('\0', "|"))).collect()
}

/// Draws a table whose first row has the headings and whose second row is the rule. If the table is too wide or has no
/// headings, wraps the last column, or prints each row as a paragraph if the other columns are too wide.
fn draw_table(rows: &[Vec<String>], width: usize) -> String {
    let [headings, _, body @ ..] = rows else { return String::new() };
    let has_headings = headings.iter().any(|heading| !heading.is_empty());
    let mut drawn = Table::new(headings, &[]);
    for (column, _) in headings.iter().enumerate() {
        drawn = drawn.aligned(column, !body.iter().all(|row| is_number(row.get(column))));
    }
    drawn.rows.extend(body.iter().cloned());
    let (lines, _) = drawn.lines(usize::MAX);
    if has_headings && lines.iter().all(|line| display_width(line) <= width) {
        return lines.join("\n") + "\n";
    }
    // The last column is wrapped if the other columns leave enough room.
    let last = headings.len() - 1;
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| display_width(cell)).max();
    let widths: Vec<usize> = (0..last).filter_map(widest).map(|widest| widest + 2).collect();
    let lead: usize = widths.iter().sum();
    let mut out = String::new();
    if lead <= width / 3 {
        let shown = if has_headings { rows.first() } else { None };
        for row in shown.into_iter().chain(body) {
            let cell = |(cell, width): (&String, &usize)| {
                format!("{cell}{}", " ".repeat(width - display_width(cell)))
            };
            let first: String = row.iter().zip(&widths).map(cell).collect();
            out += &prose(width, &first, &" ".repeat(lead), row.get(last).map_or("", String::as_str));
        }
        return out;
    }
    for row in body {
        let [first, others @ ..] = row.as_slice() else { continue };
        out += &prose(width, "", "  ", first);
        for (heading, cell) in headings.iter().skip(1).zip(others).filter(|(_, cell)| !cell.is_empty()) {
            // With two columns, the heading of the second one is obvious.
            let label = if others.len() > 1 && has_headings { format!("{heading}: ") } else { String::new() };
            out += &prose(width, "    ", "    ", &format!("{label}{cell}"));
        }
    }
    out
}

/// Whether a cell begins like a number or is a dash. A column of such cells is aligned to the right.
fn is_number(cell: Option<&String>) -> bool {
    cell.is_some_and(|cell| {
        cell == "-" || cell.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Returns text without the marks of links and bold type.
fn strip_marks(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let linked = link.split_once("](").and_then(|(shown, address)| {
            let (_, after) = address.split_once(')')?;
            (!shown.contains('[') && before.matches('`').count() % 2 == 0).then_some((shown, after))
        });
        out += before;
        if let Some((shown, after)) = linked {
            out += shown;
            rest = after;
        } else {
            out.push('[');
            rest = link;
        }
    }
    (out + rest).replace("**", "")
}

/// Heading of the part that shows how to trigger a check: mostly commands.
pub(crate) const TO_FIRE: &str = "To see it fire";

/// Returns the parts of a page with their headings.
pub(crate) fn page_parts(page: &CheckPage) -> impl Iterator<Item = (&'static str, &str)> {
    let all: [(_, &str); 4] = [
        ("What it reads", page.reads),
        ("Formula", &page.formula),
        (TO_FIRE, page.provoke),
        ("What to do", &page.advice),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty())
}

/// Whether a line is a command. Commands are not wrapped. Every indented line is a command. A line
/// below [`TO_FIRE`] is one if it contains no backtick and does not end like a sentence. A final
/// dot after a blank is the current directory, the target of a command, and ends no sentence.
pub(crate) fn is_command(heading: &str, line: &str) -> bool {
    let is_sentence = line.ends_with(['.', ':', ';']) && !line.ends_with(" .");
    line.starts_with(' ') || (heading == TO_FIRE && !is_sentence && !line.contains('`'))
}

pub(crate) fn write_check_pages(pages: &Pages, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    if pages.all {
        show_check_table(&mut out, pages);
        return out.write(to);
    }
    for (at, page) in pages.pages.iter().enumerate() {
        if at > 0 {
            out.line("");
        }
        show_check_page(&mut out, page);
    }
    out.write(to)
}

fn show_check_table(out: &mut Page, pages: &Pages) {
    let width = pages.pages.iter().map(|c| c.name.len()).max().unwrap_or(0);
    out.line("Every check tests an assumption. `fathom explain ID` describes a check.");
    for group in pages.groups() {
        out.line("");
        out.line(group[0].group);
        for check in group {
            let first = format!("  {:<4} {:width$}  ", check.id, check.name);
            out.prose(&first, &" ".repeat(first.len()), check.belief);
        }
    }
}

fn show_check_page(out: &mut Page, check: &CheckPage) {
    out.line(&format!("{} {}", check.id, check.name));
    out.prose("  Assumption: ", "    ", check.belief);
    out.line(&format!("  Group: {}", check.group));
    for (heading, text) in page_parts(check) {
        out.line("");
        out.line(&format!("  {heading}"));
        text.lines().for_each(|line| show_page_line(out, heading, line));
    }
    if let Some(flag) = &check.accept {
        out.line("");
        out.line(&format!("  To accept it for the exit code: {flag}"));
    }
}

fn show_page_line(out: &mut Page, heading: &str, line: &str) {
    if line.is_empty() {
        out.line("");
    } else if is_command(heading, line) {
        out.unwrapped_line(&format!("      {}", line.trim()));
    } else if let Some(item) = line.strip_prefix("- ") {
        out.prose_with_code("    - ", "      ", item);
    } else {
        out.prose_with_code("    ", "    ", line);
    }
}

#[test]
fn a_chapter_is_wrapped_except_its_code() {
    let text = "# Title\n\nSee [the checks](checks.md) and\n`[a](b)`, **now**.\n\n- first\n  item\n- second\n\nEnd.\n\n    $ fathom  bench\n\n```sh\n  x |  y\n```\n";
    assert_eq!(
        chapter(text, 80),
        "# Title\n\nSee the checks and `[a](b)`, now.\n\n- first item\n- second\n\nEnd.\n\n    $ fathom  bench\n\n      x |  y\n"
    );
}

#[test]
fn a_table_is_drawn_if_it_fits_and_is_a_list_otherwise() {
    let text = format!("| code | meaning |\n|---|---|\n| `a\\|b` | {} |\n", "word ".repeat(6).trim());
    assert!(chapter(&text, 80).starts_with("code   meaning\n-----"), "{}", chapter(&text, 80));
    let wrapped = "code   meaning\n`a|b`  word word word word\n       word word\n";
    assert_eq!(chapter(&text, 30), wrapped);
    assert_eq!(chapter(&text, 15), "`a|b`\n    word word\n    word word\n    word word\n");
}

#[test]
fn commands_on_a_page_are_not_wrapped() -> io::Result<()> {
    let shown = |heading: &str, line: &str| {
        let (mut out, mut bytes) = (Page::new(Style::default()), Vec::new());
        show_page_line(&mut out, heading, line);
        out.write(&mut bytes).map(|()| String::from_utf8_lossy(&bytes).into_owned())
    };
    assert_eq!(shown("Formula", "  fathom run  --bs 4k")?, "      fathom run  --bs 4k\n");
    assert_eq!(shown(TO_FIRE, "fathom run --bs 4k")?, "      fathom run --bs 4k\n");
    let long = format!("fathom run {}", "--bs 4k ".repeat(20).trim());
    assert_eq!(shown(TO_FIRE, &long)?, format!("      {long}\n"));
    let code = format!("    Type\n    `{long}`,\n    then wait.\n");
    assert_eq!(shown("What to do", &format!("Type `{long}`, then wait."))?, code);
    assert_eq!(shown(TO_FIRE, "fathom run --bs 4k .")?, "      fathom run --bs 4k .\n");
    assert_eq!(shown(TO_FIRE, "A sentence.")?, "    A sentence.\n");
    assert_eq!(shown(TO_FIRE, "`a` and `b`")?, "    `a` and `b`\n");
    assert_eq!(shown("Formula", "a > 1")?, "    a > 1\n");
    let item = format!("    - {}\n      wrapped\n", "word ".repeat(15).trim());
    assert_eq!(shown("Formula", &format!("- {}wrapped", "word ".repeat(15)))?, item);
    Ok(())
}
