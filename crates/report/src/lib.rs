//! Writes reports of any kind as bytes, in one of the formats.
//!
//! A [`Format`] has a writer for each kind of report that it can write. The functions below find a
//! format by its name or by the extension of a file. `formats` has a file or folder for each format
//! or tool. Several formats share the other modules.
#![forbid(unsafe_code)]

mod documentation;
#[cfg(test)]
mod fixture;
mod formats;
mod logs;
mod page;
mod view;

pub use documentation::chapter;
pub use formats::diskspd::{
    NAME as DISKSPD, XML_NAME as DISKSPD_XML, profile as diskspd_profile, rates_above_and_below,
};
pub use formats::fio::{NAME as FIO, VERSION as FIO_VERSION, aggregate, verdict as fio_verdict};
pub use formats::iometer::NAME as IOMETER;
pub use formats::json::SCHEMAS;
pub use formats::{FORMATS, TEXT};
pub use logs::{EventLine, LogFile, log_files};
use model::captured::Captured;
use model::comparison::{Comparison, Comparisons};
use model::distinct;
use model::finding::{Diagnosis, Pages};
use model::history::{Listing, SessionTable};
use model::machine::Devices;
use model::plan::Explained;
use model::replay::FitCheck;
use model::report::Report;
use model::verification::Verifications;
use model::watch::{LoadOverTime, Watched};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// Width of text in a file or a pipe, in columns.
pub const WIDTH: usize = 80;

/// How much of a report to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Only the table.
    Brief,
    /// The answer, the table and the findings that matter most.
    #[default]
    Usual,
    /// Everything.
    All,
}

/// Options of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour the text. Only text for a terminal may have colours.
    pub colour: bool,
    /// Whether the text includes the ledger of each result; JSON and HTML always do.
    pub ledger: bool,
    /// Whether the text includes the runs second by second; JSON and HTML always do.
    pub time_series: bool,
    /// Maximum width of a line of text.
    pub width: usize,
    /// How much of a measurement or comparison to print. Other reports are always complete.
    pub detail: Detail,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, ledger: false, time_series: false, width: WIDTH, detail: Detail::default() }
    }
}

/// The content of a format, which decides how to escape control characters for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text: a control character is printed as an escape such as `\u{1b}`.
    Text,
    /// JSON: a control character is printed as an escape such as `\u001b`.
    Json,
    /// Anything else, which is written unchanged.
    Bytes,
}

/// A format: a writer for each kind of report, or `None` if it cannot write that kind.
#[derive(Debug)]
pub struct Format {
    /// The word to type after `--format`, such as `csv`.
    pub name: &'static str,
    /// File extension, without the dot.
    pub extension: &'static str,
    /// Kind of content, which decides how control characters are escaped for a terminal.
    pub content: Content,
    /// Whether measurements have a brief form.
    pub has_brief: bool,
    /// A measurement.
    pub report: Option<Writer<Report>>,
    /// Two sides compared with each other.
    pub comparison: Option<Writer<Comparison>>,
    /// Several sides, each compared with the first.
    pub comparisons: Option<Writer<Comparisons>>,
    /// A plan of a measurement.
    pub plan: Option<Writer<Explained>>,
    /// A list of sessions.
    pub sessions: Option<Writer<Listing>>,
    /// A table of sessions, result by result.
    pub session_table: Option<Writer<SessionTable>>,
    /// Pages of checks.
    pub pages: Option<Writer<Pages>>,
    /// A diagnosis of a target before a measurement.
    pub diagnosis: Option<Writer<Diagnosis>>,
    /// The block devices of a machine.
    pub devices: Option<Writer<Devices>>,
    /// A verification.
    pub verified: Option<Writer<Verifications>>,
    /// An interval of `fathom watch`; intervals are written one after another.
    pub watched: Option<Writer<Watched>>,
    /// The load of watched devices over time.
    pub load_over_time: Option<Writer<LoadOverTime>>,
    /// A capture of a device's requests.
    pub captured: Option<Writer<Captured>>,
    /// A fitted job next to its capture.
    pub fitted: Option<Writer<FitCheck>>,
}

impl Format {
    /// Whether the output has no place for the verdict, as those of other tools that are made only of numbers.
    pub fn omits_verdict(&self) -> bool {
        self.name == IOMETER || self.name.starts_with("fio-terse")
    }

    /// A format that writes no kind of report: the base of formats that write only some kinds. The
    /// formats for all or most kinds list each kind, so that the compiler reports a new kind that
    /// they lack.
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

    /// Returns a format that writes only measurements, as the formats of other tools do.
    pub(crate) const fn of_measurements(
        name: &'static str,
        extension: &'static str,
        content: Content,
        about: &'static str,
        write: fn(&Report, Style, &mut dyn Write) -> io::Result<()>,
    ) -> Self {
        Self { name, extension, content, report: writer(about, write), ..Self::NONE }
    }
}

/// Writes one kind of report.
pub struct Writer<K: ?Sized> {
    /// One line for `--help`.
    pub about: &'static str,
    /// Writes a report.
    pub write: fn(&K, Style, &mut dyn Write) -> io::Result<()>,
}

/// Makes the entry of a [`Format`] for one kind of report, from its help and the function that
/// writes it.
#[expect(clippy::unnecessary_wraps, reason = "formats list the kinds that they cannot write as None")]
pub(crate) const fn writer<K: ?Sized>(
    about: &'static str,
    write: fn(&K, Style, &mut dyn Write) -> io::Result<()>,
) -> Option<Writer<K>> {
    Some(Writer { about, write })
}

impl<K: ?Sized> fmt::Debug for Writer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about)
    }
}

/// A kind of report that formats write.
pub trait ReportKind: 'static {
    /// Name with an article, for messages.
    const NAME: &'static str;

    /// Returns the writer of a format for this kind, or `None`.
    fn writer(format: &Format) -> Option<&Writer<Self>>;
}

/// Implements [`ReportKind`] for each kind: the field of [`Format`] with its writer, and the kind's name.
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
    Comparisons: comparisons, "a comparison of several sides";
    Listing: sessions, "a list of sessions";
    SessionTable: session_table, "a table of sessions";
    Pages: pages, "pages of checks";
    Diagnosis: diagnosis, "a diagnosis";
    Devices: devices, "block devices";
    Verifications: verified, "the result of a verification";
    Watched: watched, "intervals of watched devices";
    LoadOverTime: load_over_time, "a load over time";
    Captured: captured, "a capture";
    FitCheck: fitted, "a fitted job with its capture";
}

impl Format {
    /// Writes a report.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the format cannot write this kind, or the error of the destination.
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

    /// Returns a report as bytes.
    ///
    /// # Errors
    /// As [`Format::write`].
    pub fn bytes<K: ReportKind + ?Sized>(&self, report: &K, style: Style) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(report, style, &mut bytes)?;
        Ok(bytes)
    }
}

/// Returns the formats that write this kind of report, with their writers.
pub fn formats_that_write<K: ReportKind + ?Sized>()
-> impl Iterator<Item = (&'static Format, &'static Writer<K>)> {
    FORMATS.iter().filter_map(|format| Some((*format, K::writer(format)?)))
}

/// Finds a format by name that writes this kind of report.
pub fn find_format<K: ReportKind + ?Sized>(name: &str) -> Option<&'static Format> {
    formats_that_write::<K>().map(|(format, _)| format).find(|f| f.name == name)
}

/// Returns the first format that has the extension of a file and writes this kind of report.
pub fn format_by_extension<K: ReportKind + ?Sized>(path: &Path) -> Option<&'static Format> {
    let extension = path.extension()?.to_str()?;
    formats_that_write::<K>().map(|(format, _)| format).find(|f| f.extension.eq_ignore_ascii_case(extension))
}

/// Returns the format for a file by its extension: `requested` if it has this extension and writes
/// this kind of report, otherwise the one that [`format_by_extension`] finds. `None` if that finds none.
pub fn format_of_file<K: ReportKind + ?Sized>(
    path: &Path,
    requested: &'static Format,
) -> Option<&'static Format> {
    let first = format_by_extension::<K>(path)?;
    Some(if requested.extension == first.extension && K::writer(requested).is_some() {
        requested
    } else {
        first
    })
}

/// Returns the file extensions for this kind of report, for messages: `.txt, .json`.
pub fn file_extensions<K: ReportKind + ?Sized>() -> String {
    distinct(formats_that_write::<K>().map(|(format, _)| format!(".{}", format.extension))).join(", ")
}

/// Returns the format, if it writes this kind of report.
///
/// # Errors
/// A message with the formats that write this kind.
pub fn require_writer<K: ReportKind + ?Sized>(format: &'static Format) -> Result<&'static Format, String> {
    find_format::<K>(format.name).ok_or_else(|| {
        let names: Vec<&str> = formats_that_write::<K>().map(|(format, _)| format.name).collect();
        format!("--format {} cannot write {}; type --format {}", format.name, K::NAME, names.join(" or "))
    })
}
