//! The format `text`: to read on a terminal, and to paste.
//!
//! For: every kind of report, a file each. Not for: programs; that is `json`.

mod api;
pub(super) mod captured;
mod commands;
mod comparison;
mod course;
pub(super) mod devices;
pub(super) mod diagnosis;
mod findings;
mod fitted;
mod fleet;
mod hosts;
mod iops;
mod layers;
mod ledger;
mod limit;
pub(super) mod map;
mod pages;
pub(super) mod plan;
mod pts;
pub(super) mod replay;
pub(super) mod report;
mod rerun;
mod results;
mod runs;
pub(super) mod session_table;
pub(super) mod sessions;
mod sweep;
mod targets;
mod tool_results;
pub(super) mod verified;
mod watch;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "text",
    extension: "txt",
    content: Content::Text,
    has_brief: true,
    report: Some(Writer {
        about: "verdict, table and findings, to read and to paste",
        write: report::write_report,
    }),
    comparison: Some(Writer {
        about: "answer, table and findings, to read and to paste",
        write: comparison::write,
    }),
    comparisons: Some(Writer {
        about: "answers, table and findings, to read and to paste",
        write: comparison::write_several,
    }),
    plan: Some(Writer {
        about: "every setting with its origin, then the workloads",
        write: plan::write_plan,
    }),
    sessions: Some(Writer { about: "a table to read", write: sessions::write_list }),
    session_table: Some(Writer { about: "a table to read", write: session_table::write_session_table }),
    pages: Some(Writer { about: "to read; without an ID a table", write: pages::write_check_pages }),
    diagnosis: Some(Writer { about: "to read", write: diagnosis::write_diagnosis }),
    devices: Some(Writer { about: "to read", write: devices::write_devices }),
    verified: Some(Writer { about: "for people", write: verified::write_verification }),
    watched: Some(Writer { about: "lines to read", write: watch::write_watched }),
    load_over_time: None,
    captured: Some(Writer { about: "the profile of the load, to read", write: captured::write_capture }),
    fitted: Some(Writer { about: "a table to read", write: fitted::write_fit_check }),
};
