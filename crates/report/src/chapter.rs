//! A chapter of the guide as text for a terminal.
//!
//! Reads the part of Markdown that the guide uses, line by line. Code stays unchanged. Paragraphs and list items are wrapped, links become
//! their text, and images are left out. A table is drawn if it fits, if need be with its last column wrapped;
//! otherwise each of its rows becomes a paragraph.

use crate::prose::{display_width, prose};
use crate::table::Table;

/// How a fenced block of code begins and ends.
const FENCE: &str = "```";

/// Renders a chapter for a terminal of this width.
pub fn chapter(markdown: &str, width: usize) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    // Whether the last paragraph was an item of a list, whose further paragraphs are indented like code.
    let mut in_list = false;
    while let Some(line) = lines.next() {
        let text = line.trim();
        if let Some(fence) = text.strip_prefix(FENCE).map(|_| line.len() - line.trim_start().len()) {
            for code in lines.by_ref().take_while(|code| code.trim() != FENCE) {
                let code = code.get(fence.min(code.len() - code.trim_start().len())..).unwrap_or(code);
                out += format!("    {code}").trim_end();
                out.push('\n');
            }
        } else if line.starts_with("    ") && !in_list {
            out += &format!("{}\n", line.trim_end());
        } else if text.is_empty() {
            out.push('\n');
        } else if text.starts_with('#') {
            in_list = false;
            out += &format!("{}\n", inline(text));
        } else if text.starts_with('|') {
            let mut rows = vec![cells(text)];
            while let Some(row) = lines.next_if(|next| next.trim_start().starts_with('|')) {
                rows.push(cells(row.trim()));
            }
            out += &table(&rows, width);
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
            out += &prose(width, &first, &hanging, &inline(&paragraph));
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

/// The cells of a row of a table. `\|` is a bar within a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\0");
    let row = row.strip_prefix('|').unwrap_or(&row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(|cell| inline(&cell.trim().replace('\0', "|"))).collect()
}

/// Draws a table with its headings first and its rule second, or its rows one after another if it is too wide.
fn table(rows: &[Vec<String>], width: usize) -> String {
    let [headings, _, body @ ..] = rows else { return String::new() };
    let has_headings = headings.iter().any(|heading| !heading.is_empty());
    let mut drawn = Table::new(headings, &[]);
    for (column, _) in headings.iter().enumerate() {
        drawn = drawn.aligned(column, !body.iter().all(|row| is_number(row.get(column))));
    }
    drawn.add_all(body.iter().map(|row| row.iter().cloned()));
    let (lines, _) = drawn.lines(usize::MAX);
    if has_headings && lines.iter().all(|line| display_width(line) <= width) {
        return lines.join("\n") + "\n";
    }
    // The last column is wrapped if the others leave room for it.
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
            // With two columns it is clear what the second one is.
            let label = if others.len() > 1 && has_headings { format!("{heading}: ") } else { String::new() };
            out += &prose(width, "    ", "    ", &format!("{label}{cell}"));
        }
    }
    out
}

/// Whether a cell is a figure, which is aligned to the right.
fn is_number(cell: Option<&String>) -> bool {
    cell.is_some_and(|cell| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
}

/// Text without the marks of links and bold type.
fn inline(text: &str) -> String {
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

#[test]
fn a_chapter_is_wrapped_and_its_code_is_not() {
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
