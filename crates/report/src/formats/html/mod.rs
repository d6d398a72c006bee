//! The format `html`: a page with plots for each kind of report, complete in one file.
//!
//! The page loads nothing. It consists of templates (`crates/report/templates/`), one style, one optional script, and drawings as SVG
//! ([`plot`]). Templates escape all foreign text; only HTML that was made here is inserted unescaped (`safe`).

mod filters;
mod observed_load;
mod page;
mod plot;
mod report;
mod results;
mod sessions;
mod studies;
mod table_pages;
mod time_series;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "html",
    extension: "html",
    content: Content::Text,
    has_brief: false,
    report: Some(Writer { about: "a page with plots, complete in one file", write: report::write_report }),
    comparison: Some(Writer {
        about: "a page with every change and its interval",
        write: sessions::write_comparison,
    }),
    comparisons: Some(Writer {
        about: "a page with every change on every side",
        write: sessions::write_several,
    }),
    plan: Some(Writer { about: "a page of the settings and the workloads", write: table_pages::write_plan }),
    sessions: Some(Writer { about: "a page with a table", write: table_pages::write_list }),
    session_table: Some(Writer { about: "a page with a table", write: sessions::write_session_table }),
    pages: Some(Writer { about: "a page of them", write: table_pages::write_check_pages }),
    diagnosis: Some(Writer {
        about: "a page with everything that was looked at",
        write: table_pages::write_diagnosis,
    }),
    devices: Some(Writer { about: "a page with a table", write: table_pages::write_devices }),
    verified: Some(Writer {
        about: "a page with the verdict and the damage",
        write: table_pages::write_verification,
    }),
    watched: None,
    load_over_time: Some(Writer {
        about: "a page with plots of the load over time",
        write: observed_load::write_load,
    }),
    captured: Some(Writer {
        about: "a page with plots over time and over the device",
        write: observed_load::write_capture,
    }),
    fitted: None,
};
