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

use crate::{Content, Format, Writer};

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
        write: sessions::write_comparison,
    }),
    comparisons: Some(Writer {
        about: "answers, table and findings, to read and to paste",
        write: sessions::write_several,
    }),
    plan: Some(Writer {
        about: "every setting with its origin, then the workloads",
        write: plan::write_plan,
    }),
    sessions: Some(Writer { about: "a table to read", write: sessions::write_list }),
    session_table: Some(Writer { about: "a table to read", write: sessions::write_session_table }),
    pages: Some(Writer {
        about: "to read; without an ID a table",
        write: crate::documentation::write_check_pages,
    }),
    diagnosis: Some(Writer { about: "to read", write: machine::write_diagnosis }),
    devices: Some(Writer { about: "to read", write: machine::write_devices }),
    verified: Some(Writer { about: "for people", write: verified::write_verification }),
    watched: Some(Writer { about: "lines to read", write: watch::write_watched }),
    load_over_time: None,
    captured: Some(Writer { about: "the profile of the load, to read", write: captured::write_capture }),
    fitted: Some(Writer { about: "a table to read", write: captured::write_fit_check }),
};
