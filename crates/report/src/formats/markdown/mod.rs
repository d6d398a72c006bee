//! The format `markdown`: for comments on changes, and for documents.
//!
//! For: what stands between other people's text. Not for: everything; that is `json`.

mod comparison;
mod pages;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "markdown",
    extension: "md",
    content: Content::Text,
    report: None,
    comparison: Some(Writer {
        about: "answer and table, for a comment on a change",
        write: comparison::write,
    }),
    plan: None,
    sessions: None,
    pages: Some(Writer { about: "whole pages; without an ID those of docs/checks.md", write: pages::write }),
    diagnosis: None,
    verified: None,
};
