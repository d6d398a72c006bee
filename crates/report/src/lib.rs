//! Formats: takes a report of any kind and writes bytes.
//!
//! `formats` has one file or folder for each format. The other modules hold what several formats share.
#![forbid(unsafe_code)]

mod comparison_rows;
mod documentation;
#[cfg(test)]
mod fixture;
mod format;
mod formats;
mod logs;
mod page;
mod report_view;

pub use documentation::chapter;
pub use format::{Content, Detail, Format, ReportKind, Style, WIDTH, Writer};
pub use formats::diskspd::{NAME as DISKSPD, XML_NAME as DISKSPD_XML, profile as diskspd_profile};
pub use formats::fio::{NAME as FIO, VERSION as FIO_VERSION, aggregate, verdict as fio_verdict};
pub use formats::iometer::NAME as IOMETER;
pub use formats::json::SCHEMAS;
pub use formats::{FORMATS, TEXT};
pub use logs::{EventLine, LogFile, log_files};
use std::path::Path;

/// Returns the formats that write this kind of report, with their writers.
pub fn able<K: ReportKind + ?Sized>() -> impl Iterator<Item = (&'static Format, &'static Writer<K>)> {
    FORMATS.iter().filter_map(|format| Some((*format, K::writer(format)?)))
}

/// Finds a format by name that writes this kind of report.
pub fn find<K: ReportKind + ?Sized>(name: &str) -> Option<&'static Format> {
    able::<K>().map(|(format, _)| format).find(|f| f.name == name)
}

/// Finds the format of a file by extension, among those that write this kind of report.
pub fn by_extension<K: ReportKind + ?Sized>(path: &Path) -> Option<&'static Format> {
    let extension = path.extension()?.to_str()?;
    able::<K>().map(|(format, _)| format).find(|f| f.extension.eq_ignore_ascii_case(extension))
}

/// Finds the format of a file by extension. Prefers `requested` if it has that extension and writes this kind of report.
pub fn of_file<K: ReportKind + ?Sized>(path: &Path, requested: &'static Format) -> Option<&'static Format> {
    let first = by_extension::<K>(path)?;
    Some(if requested.extension == first.extension && K::writer(requested).is_some() {
        requested
    } else {
        first
    })
}

/// Returns the file extensions for this kind of report, for messages: `.txt, .json`.
pub fn extensions<K: ReportKind + ?Sized>() -> String {
    let mut all: Vec<&str> = Vec::new();
    for (format, _) in able::<K>() {
        if !all.contains(&format.extension) {
            all.push(format.extension);
        }
    }
    all.iter().map(|extension| format!(".{extension}")).collect::<Vec<_>>().join(", ")
}

/// Returns the format, if it writes this kind of report.
///
/// # Errors
/// A message with the formats that write this kind.
pub fn that_writes<K: ReportKind + ?Sized>(format: &'static Format) -> Result<&'static Format, String> {
    find::<K>(format.name).ok_or_else(|| {
        let names: Vec<&str> = able::<K>().map(|(format, _)| format.name).collect();
        format!("--format {} cannot write {}; type --format {}", format.name, K::NAME, names.join(" or "))
    })
}
