//! Pages of checks as text: all as a table, some as they are.
//!
//! For: reading. Not for: documents; those are in Markdown.

use crate::format::Style;
use crate::parts::{is_command, parts};
use crate::prose::prose;
use model::check_page::{CheckPage, Pages};
use std::io::{self, Write};

pub(super) fn write(pages: &Pages, _: Style, to: &mut dyn Write) -> io::Result<()> {
    if pages.all {
        return to.write_all(table(pages).as_bytes());
    }
    let some: Vec<String> = pages.pages.iter().map(text_page).collect();
    to.write_all(some.join("\n").as_bytes())
}

fn table(pages: &Pages) -> String {
    let width = pages.pages.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut out =
        String::from("Every check puts a belief to the test. `fathom explain ID` tells more of one.\n");
    for group in pages.groups() {
        out += &format!("\n{}\n", group[0].group);
        for check in group {
            let first = format!("  {:<4} {:width$}  ", check.id, check.name);
            out += &prose(&first, &" ".repeat(first.len()), check.belief);
        }
    }
    out
}

fn text_page(check: &CheckPage) -> String {
    let mut out = format!("{} {}\n", check.id, check.name);
    out += &prose("  The belief: ", "    ", check.belief);
    out += &format!("  The group: {}\n", check.group);
    for (heading, text) in parts(check) {
        out += &format!("\n  {heading}\n");
        for line in text.lines() {
            out += &text_line(heading, line);
        }
    }
    if let Some(flag) = &check.accept {
        out += &format!("\n  To accept it for the exit code: {flag}\n");
    }
    out
}

fn text_line(heading: &str, line: &str) -> String {
    if line.is_empty() {
        return "\n".into();
    }
    if is_command(heading, line) { format!("      {}\n", line.trim()) } else { prose("    ", "    ", line) }
}

#[test]
fn commands_of_a_page_keep_their_form() {
    use crate::parts::TO_FIRE;
    assert_eq!(text_line("Formula", "  fathom run  --bs 4k"), "      fathom run  --bs 4k\n");
    assert_eq!(text_line(TO_FIRE, "fathom run --bs 4k"), "      fathom run --bs 4k\n");
    assert_eq!(text_line(TO_FIRE, "A sentence."), "    A sentence.\n");
    assert_eq!(text_line(TO_FIRE, "`a` and `b`"), "    `a` and `b`\n");
    assert_eq!(text_line("Formula", "a > 1"), "    a > 1\n");
}
