//! Pages of checks as text: all as a table, some as they are.
//!
//! For: reading. Not for: documents; those are in Markdown.

use crate::format::Style;
use crate::page::Page;
use crate::parts::{is_command, page_parts};
use model::check_page::{CheckPage, Pages};
use std::io::{self, Write};

pub(super) fn write_check_pages(pages: &Pages, style: Style, to: &mut dyn Write) -> io::Result<()> {
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
    out.line("Every check tests an assumption. `fathom explain ID` describes one.");
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
        out.line(&format!("      {}", line.trim()));
    } else {
        out.prose("    ", "    ", line);
    }
}

#[test]
fn commands_of_a_page_keep_their_form() -> io::Result<()> {
    use crate::parts::TO_FIRE;
    let shown = |heading: &str, line: &str| {
        let (mut out, mut bytes) = (Page::new(Style::default()), Vec::new());
        show_page_line(&mut out, heading, line);
        out.write(&mut bytes).map(|()| String::from_utf8_lossy(&bytes).into_owned())
    };
    assert_eq!(shown("Formula", "  fathom run  --bs 4k")?, "      fathom run  --bs 4k\n");
    assert_eq!(shown(TO_FIRE, "fathom run --bs 4k")?, "      fathom run --bs 4k\n");
    assert_eq!(shown(TO_FIRE, "A sentence.")?, "    A sentence.\n");
    assert_eq!(shown(TO_FIRE, "`a` and `b`")?, "    `a` and `b`\n");
    assert_eq!(shown("Formula", "a > 1")?, "    a > 1\n");
    Ok(())
}
