//! The format `markdown`: for comments on changes, forums, and documents.
//!
//! For: what stands between other people's text. Not for: everything; that is `json`.

mod comparison;
mod devices;
mod diagnosis;
mod pages;
mod plan;
mod report;
mod session_table;
mod sessions;
mod verified;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "markdown",
    extension: "md",
    content: Content::Text,
    has_brief: true,
    report: Some(Writer {
        about: "verdict, table and three findings, for a comment; with --brief one block for a forum",
        write: report::write_report,
    }),
    comparison: Some(Writer {
        about: "answer and table, for a comment on a change",
        write: comparison::write_comparison,
    }),
    comparisons: Some(Writer {
        about: "answers and one table, for a comment on a change",
        write: comparison::write_several,
    }),
    plan: Some(Writer { about: "settings with their origins, for a comment", write: plan::write_plan }),
    sessions: Some(Writer { about: "a table for a document", write: sessions::write_list }),
    session_table: Some(Writer {
        about: "a table for a document",
        write: session_table::write_session_table,
    }),
    pages: Some(Writer {
        about: "whole pages; without an ID those of docs/reference/checks.md",
        write: pages::write_check_pages,
    }),
    diagnosis: Some(Writer {
        about: "the worst first, then a table, for a comment",
        write: diagnosis::write_diagnosis,
    }),
    devices: Some(Writer { about: "a table for a document", write: devices::write_devices }),
    verified: Some(Writer { about: "for a comment", write: verified::write_verification }),
    watched: None,
    load_over_time: None,
    captured: None,
    fitted: None,
};

/// Text as code within a line.
fn code(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let marks = backticks_around(&line, 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{marks}{gap}{line}{gap}{marks}")
}

/// Text as a block of code.
fn fenced(text: &str) -> String {
    let marks = backticks_around(text, 3);
    format!("{marks}\n{text}\n{marks}\n")
}

/// More marks than stand in a row within the text, so that nothing in it ends the code.
fn backticks_around(text: &str, least: usize) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(least.max(longest + 1))
}

#[test]
fn nothing_in_code_ends_it() {
    assert_eq!(code("fathom bench /data"), "`fathom bench /data`");
    assert_eq!((code("a`b"), code("`a\n`")), ("``a`b``".into(), "`` `a ` ``".into()));
    assert_eq!(fenced("x"), "```\nx\n```\n");
    assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````\n");
}
