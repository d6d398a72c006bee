//! The format `csv`: tables for spreadsheets and scripts.
//!
//! For: what has rows. Not for: findings and their evidence; those are in `json`.

mod comparison;
mod report;
mod session_table;
mod sessions;
mod watch;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "csv",
    extension: "csv",
    content: Content::Text,
    has_brief: false,
    report: Some(Writer {
        about: "the table, one row per result and direction, or per interface and work",
        write: report::write_report,
    }),
    comparison: Some(Writer { about: "a line per number", write: comparison::write_comparison }),
    comparisons: Some(Writer { about: "a line per number and side", write: comparison::write_several }),
    plan: None,
    sessions: Some(Writer {
        about: "a line per session, lists joined by semicolons",
        write: sessions::write_list,
    }),
    session_table: Some(Writer {
        about: "a line per session or device, four fields per result",
        write: session_table::write_session_table,
    }),
    pages: None,
    diagnosis: None,
    devices: None,
    verified: None,
    watched: Some(Writer { about: "a line per interval and device", write: watch::write_watched }),
    load_over_time: None,
    captured: None,
    fitted: None,
};
