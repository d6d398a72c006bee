//! Pages of checks in Markdown: some as they are, all as the document `docs/reference/checks.md`.
//!
//! For: documents. Not for: terminals.

use crate::format::Style;
use crate::parts::{is_command, page_parts};
use model::check_page::{CheckPage, Pages};
use std::io::{self, Write};

pub(super) fn write_check_pages(pages: &Pages, _: Style, to: &mut dyn Write) -> io::Result<()> {
    if pages.all {
        return to.write_all(check_document(pages).as_bytes());
    }
    let some: Vec<String> = pages.pages.iter().map(check_page).collect();
    to.write_all(some.join("\n").as_bytes())
}

fn check_document(pages: &Pages) -> String {
    let mut out = String::from(
        "# Checks\n\n\
         fathom asks these checks of every result. A check answers *holds*, *finding*, or *not checked* with the reason. A finding\n\
         invalidates the number, relabels it, marks it as biased, or is a note. `fathom explain ID` prints one check.\n\n\
         <!-- made by `fathom explain --format markdown > docs/reference/checks.md` -->\n",
    );
    for group in pages.groups() {
        out += &format!("\n## {}\n", group[0].group);
        for check in group {
            out += "\n";
            out += &check_page(check);
        }
    }
    out
}

fn check_page(check: &CheckPage) -> String {
    let mut out =
        format!("### {} {}\n\nAssumption: {}.\n", check.id, check.name, check.belief.trim_end_matches('.'));
    for (heading, text) in page_parts(check) {
        out += &page_part(heading, text);
    }
    if let Some(flag) = &check.accept {
        out += &format!("\nTo accept it for the exit code: `{flag}`.\n");
    }
    out
}

/// One sentence stays a paragraph; of several lines each is an item, and a command is marked as one.
fn page_part(heading: &str, text: &str) -> String {
    let item = |line: &str| match line.trim() {
        command if is_command(heading, line) => format!("`{command}`"),
        said => said.trim_start_matches("- ").to_owned(),
    };
    let lines: Vec<String> = text.lines().filter(|l| !l.trim().is_empty()).map(item).collect();
    match lines.as_slice() {
        [only] => format!("\n**{heading}.** {only}\n"),
        several => {
            format!("\n**{heading}**\n\n- {}\n", several.join("\n- "))
        }
    }
}

#[test]
fn one_line_is_a_paragraph_and_several_are_items() {
    use crate::parts::TO_FIRE;
    assert_eq!(page_part("Formula", "One line."), "\n**Formula.** One line.\n");
    let several = "Make it.\ndd if=/dev/zero of=x\n\n- Look.";
    let items = "- Make it.\n- `dd if=/dev/zero of=x`\n- Look.\n";
    assert_eq!(page_part(TO_FIRE, several), format!("\n**{TO_FIRE}**\n\n{items}"));
}
