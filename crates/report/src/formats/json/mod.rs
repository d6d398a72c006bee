//! The format `json`: every report as it is.
//!
//! For: programs. Not for: deciding what stands in it: the names of a report are a contract (format 1), which the schema tells to
//! programs, and they are those of the types.

mod verified;
mod watch;

use crate::format::{Content, Format, Style, Writer};
use serde::Serialize;
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "json",
    extension: "json",
    content: Content::Json,
    has_brief: false,
    report: Some(Writer { about: "everything, by the contract of format 1", write }),
    comparison: Some(Writer { about: "everything, for programs", write }),
    comparisons: Some(Writer { about: "everything, for programs", write }),
    plan: None,
    sessions: Some(Writer { about: "an array of sessions, everything about each", write }),
    session_table: Some(Writer { about: "columns, rows and what is left out", write }),
    pages: Some(Writer { about: "whole pages, for programs", write }),
    diagnosis: Some(Writer { about: "everything, for programs", write }),
    devices: Some(Writer { about: "everything, for programs", write }),
    verified: Some(Writer { about: "for programs", write: verified::write }),
    watched: Some(Writer { about: "an object a line: each device, process and remark", write: watch::write }),
    captured: Some(Writer { about: "everything, for programs", write }),
    fitted: Some(Writer { about: "everything, for programs", write }),
};

fn write<K: Serialize + ?Sized>(report: &K, _: Style, mut to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, report)?;
    to.write_all(b"\n")
}

/// The JSON schema (draft 2020-12) of a report, which `tests/schema.rs` generates from its types.
pub const fn schema() -> &'static str {
    include_str!("schema.json")
}
