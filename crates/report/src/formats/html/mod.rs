//! The format `html`: a page for people who would rather look than read.
//!
//! For: one file for every kind of report that has everything in it and loads nothing: templates that read as HTML
//! (`crates/report/templates/`), one style, one script that nothing needs, and drawings as SVG ([`plot`]). Not for: concluding anything,
//! nor for programs; that is `json`.
//!
//! Everything that comes from outside passes a template, which escapes it; only what was made here is put in as it is (`safe`).

mod captured;
mod comparison;
mod course;
mod directions;
mod events;
mod filters;
mod findings;
mod foot;
mod grid;
mod head;
mod hosts;
mod intervals;
mod latency;
mod ledger;
mod limit;
mod load;
mod others;
mod page;
mod plot;
mod report;
mod results;
mod strips;
mod studies;
mod sweep;
mod table;
mod timeline;
mod together;
mod words;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "html",
    extension: "html",
    content: Content::Text,
    has_brief: false,
    report: Some(Writer { about: "a page with plots, complete in one file", write: report::write_report }),
    comparison: Some(Writer {
        about: "a page with every change and its interval",
        write: comparison::write_comparison,
    }),
    comparisons: Some(Writer {
        about: "a page with every change on every side",
        write: comparison::write_several,
    }),
    plan: Some(Writer { about: "a page of the settings and the workloads", write: others::write_plan }),
    sessions: Some(Writer { about: "a page with a table", write: others::write_list }),
    session_table: Some(Writer { about: "a page with a table", write: together::write_session_table }),
    pages: Some(Writer { about: "a page of them", write: others::write_check_pages }),
    diagnosis: Some(Writer {
        about: "a page with everything that was looked at",
        write: others::write_diagnosis,
    }),
    devices: Some(Writer { about: "a page with a table", write: others::write_devices }),
    verified: Some(Writer {
        about: "a page with the verdict and the damage",
        write: others::write_verification,
    }),
    watched: None,
    load_over_time: Some(Writer {
        about: "a page with plots of the load over time",
        write: load::write_load,
    }),
    captured: Some(Writer {
        about: "a page with plots over time and over the device",
        write: captured::write_capture,
    }),
    fitted: None,
};
