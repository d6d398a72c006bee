//! Formats: a report or a comparison in, bytes out.
//!
//! For: one table of formats, one file each. Not for: concluding anything; what is printed stands in the report.
#![forbid(unsafe_code)]

pub mod comparison;
mod formats;
pub mod prose;

pub use formats::json::schema;
use model::report::Report;
use std::path::Path;

/// How bytes may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colour are wanted: on a terminal only.
    pub colour: bool,
    /// Whether the text shows the ledger of each result too; the JSON always has it.
    pub ledger: bool,
    /// Whether the course of the runs is wanted, second by second; only the text leaves it out by itself.
    pub course: bool,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What `--format` takes.
    pub name: &'static str,
    /// Extension of files, without the point.
    pub extension: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Renders a report.
    pub render: fn(&Report, Style) -> Vec<u8>,
}

impl Format {
    /// Whether text in it is quoted as JSON does.
    pub fn is_json(&self) -> bool {
        self.name == "json"
    }
}

/// Every format there is.
pub const FORMATS: &[Format] = &[
    Format {
        name: "text",
        extension: "txt",
        about: "verdict, table and findings, to read and to paste",
        render: formats::text::render,
    },
    Format {
        name: "json",
        extension: "json",
        about: "everything, by the contract of format 1",
        render: formats::json::render,
    },
    Format {
        name: "csv",
        extension: "csv",
        about: "the table, one row per result and direction, or per interface and work",
        render: formats::csv::render,
    },
];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|f| f.name == name)
}

/// The format for a file of that name.
pub fn by_extension(path: &Path) -> Option<&'static Format> {
    let extension = path.extension()?.to_str()?;
    FORMATS.iter().find(|f| f.extension.eq_ignore_ascii_case(extension))
}
