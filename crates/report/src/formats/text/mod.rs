//! The format `text`: to read on a terminal, and to paste. It writes every kind of report.

pub(super) mod captured;
mod commands;
pub(super) mod machine;
pub(super) mod plan;
pub(super) mod report;
pub(super) mod results;
pub(super) mod sessions;
mod studies;
pub(super) mod sweep;
pub(super) mod verified;
mod watch;

use crate::{Content, Format, writer};

pub(super) static FORMAT: Format = Format {
    name: "text",
    extension: "txt",
    content: Content::Text,
    has_brief: true,
    report: writer("verdict, table and findings, to read and to paste", report::write_report),
    comparison: writer("answer, table and findings, to read and to paste", sessions::write_comparison),
    comparisons: writer("answers, table and findings, to read and to paste", sessions::write_several),
    plan: writer("every setting with its origin, then the workloads", plan::write_plan),
    sessions: writer("a table to read", sessions::write_list),
    session_table: writer("a table to read", sessions::write_session_table),
    pages: writer("the page of an ID; without an ID, a table", crate::documentation::write_check_pages),
    diagnosis: writer("to read", machine::write_diagnosis),
    devices: writer("to read", machine::write_devices),
    verified: writer("for people", verified::write_verification),
    watched: writer("lines to read", watch::write_watched),
    load_over_time: None,
    captured: writer("the profile of the load, to read", captured::write_capture),
    fitted: writer("a table to read", captured::write_fit_check),
};
