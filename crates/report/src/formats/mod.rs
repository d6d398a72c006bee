//! The table of formats: one file each.
//!
//! For: which formats there are. Not for: what a format is ([`crate::format`]).

mod cdm;
mod csv;
pub(crate) mod diskspd;
pub(crate) mod fio;
mod html;
pub(crate) mod iometer;
pub(crate) mod json;
mod markdown;
mod openmetrics;
mod text;

use model::captured::Captured;
use model::check_page::Pages;
use model::comparison::{Comparison, Comparisons};
use model::devices::Devices;
use model::diagnosis::Diagnosis;
use model::entry::Listing;
use model::explained::Explained;
use model::fitted::FitCheck;
use model::report::Report;
use model::session_table::SessionTable;
use model::verified::Verifications;
use model::watch::{LoadOverTime, Watched};
use std::io::Write;
use std::{fmt, io};

/// Every format there is.
pub const FORMATS: &[&Format] = &[
    TEXT,
    &json::FORMAT,
    &csv::FORMAT,
    &markdown::FORMAT,
    &html::FORMAT,
    &cdm::FORMAT,
    &fio::NORMAL,
    &fio::JSON,
    &fio::JSON_PLUS,
    &fio::TERSE,
    &fio::TERSE_2,
    &fio::TERSE_4,
    &fio::TERSE_5,
    &openmetrics::FORMAT,
    &diskspd::TEXT,
    &diskspd::XML,
    &iometer::FORMAT,
];

/// The format for people, which writes every kind of report.
pub const TEXT: &Format = &text::FORMAT;

/// Columns of a text that is not for a terminal: a file, or a pipe.
pub const WIDTH: usize = 80;

/// How much of a report is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The table alone.
    Brief,
    /// The answer, the table and the findings that matter most.
    #[default]
    Usual,
    /// Everything that has a form to read.
    All,
}

/// How a report may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colour are wanted: on a terminal only.
    pub colour: bool,
    /// Whether the text shows the ledger of each result too; the JSON always has it.
    pub ledger: bool,
    /// Whether the course of the runs is wanted, second by second; only the text leaves it out by itself.
    pub course: bool,
    /// Columns that no line of text is wider than.
    pub width: usize,
    /// How much is shown; of measurements and comparisons, since the others are short.
    pub detail: Detail,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, ledger: false, course: false, width: WIDTH, detail: Detail::default() }
    }
}

/// What a format is made of, and so what has to be done to it before it may reach a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text in which a control character may be shown by its number.
    Text,
    /// Text in which one is quoted as JSON does.
    Json,
    /// Anything else, which is not touched.
    Bytes,
}

/// A line of the table: one way to write, by kinds of report. `None` where it has no way to write that kind.
#[derive(Debug)]
pub struct Format {
    /// What `--format` takes.
    pub name: &'static str,
    /// Extension of files, without the point.
    pub extension: &'static str,
    /// What it is made of.
    pub content: Content,
    /// Whether a measurement has a short form in it.
    pub has_brief: bool,
    /// What came of a measurement.
    pub report: Option<Writer<Report>>,
    /// Two sides compared with each other.
    pub comparison: Option<Writer<Comparison>>,
    /// Several sides, each compared with the first.
    pub comparisons: Option<Writer<Comparisons>>,
    /// What would be measured, and where.
    pub plan: Option<Writer<Explained>>,
    /// Sessions of the history.
    pub sessions: Option<Writer<Listing>>,
    /// What sessions came to, result by result.
    pub session_table: Option<Writer<SessionTable>>,
    /// What there is to be told of checks.
    pub pages: Option<Writer<Pages>>,
    /// What was seen of a place before anything is measured there.
    pub diagnosis: Option<Writer<Diagnosis>>,
    /// The block devices of a machine.
    pub devices: Option<Writer<Devices>>,
    /// What came of a verification.
    pub verified: Option<Writer<Verifications>>,
    /// An interval of a machine that is watched; one is written behind the other.
    pub watched: Option<Writer<Watched>>,
    /// The load of devices over the time that they were watched.
    pub load_over_time: Option<Writer<LoadOverTime>>,
    /// What was captured of a device.
    pub captured: Option<Writer<Captured>>,
    /// A fitted job beside its capture.
    pub fitted: Option<Writer<FitCheck>>,
}

impl Format {
    /// Writes no kind of report: what formats for readers of one kind are made from. Those that are fathom's own say of each kind how they
    /// write it, so that the compiler asks about a new one.
    pub(crate) const NONE: Self = Self {
        name: "",
        extension: "",
        content: Content::Text,
        has_brief: false,
        report: None,
        comparison: None,
        comparisons: None,
        plan: None,
        sessions: None,
        session_table: None,
        pages: None,
        diagnosis: None,
        devices: None,
        verified: None,
        watched: None,
        load_over_time: None,
        captured: None,
        fitted: None,
    };

    /// Writes what came of a measurement, and nothing else, as most tools whose formats these are.
    pub(crate) const fn of_measurements(
        name: &'static str,
        extension: &'static str,
        content: Content,
        about: &'static str,
        write: fn(&Report, Style, &mut dyn Write) -> io::Result<()>,
    ) -> Self {
        Self { name, extension, content, report: Some(Writer { about, write }), ..Self::NONE }
    }
}

/// How a format writes one kind of report.
pub struct Writer<K: ?Sized> {
    /// One line for `--help`.
    pub about: &'static str,
    /// Writes it, piece by piece where it likes to.
    pub write: fn(&K, Style, &mut dyn Write) -> io::Result<()>,
}

impl<K: ?Sized> fmt::Debug for Writer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about)
    }
}

/// What formats write, each in a way of its own.
pub trait ReportKind: 'static {
    /// What it is called, with its article.
    const NAME: &'static str;

    /// How a format writes it; `None` where it cannot.
    fn writer(format: &Format) -> Option<&Writer<Self>>;
}

/// Gives each kind its field.
macro_rules! kinds {
    ($($kind:ty: $field:ident, $name:literal;)*) => {$(
        impl ReportKind for $kind {
            const NAME: &'static str = $name;

            fn writer(format: &Format) -> Option<&Writer<Self>> {
                format.$field.as_ref()
            }
        }
    )*};
}

kinds! {
    Report: report, "a report";
    Comparison: comparison, "a comparison";
    Explained: plan, "a plan";
    Comparisons: comparisons, "a comparison of several";
    Listing: sessions, "a list of sessions";
    SessionTable: session_table, "a table of sessions";
    Pages: pages, "pages of checks";
    Diagnosis: diagnosis, "a diagnosis";
    Devices: devices, "block devices";
    Verifications: verified, "what came of a verification";
    Watched: watched, "what is watched";
    LoadOverTime: load_over_time, "a load over time";
    Captured: captured, "a capture";
    FitCheck: fitted, "a fitted job beside its capture";
}

impl Format {
    /// Writes a report.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the format cannot write one of its kind, or what refused to be written to.
    pub fn write<K: ReportKind + ?Sized>(
        &self,
        report: &K,
        style: Style,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let writer = K::writer(self).ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, format!("it cannot write {}", K::NAME))
        })?;
        (writer.write)(report, style, to)
    }

    /// A report as a whole.
    ///
    /// # Errors
    /// As [`Format::write`].
    pub fn bytes<K: ReportKind + ?Sized>(&self, report: &K, style: Style) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(report, style, &mut bytes)?;
        Ok(bytes)
    }
}
