//! Formats: a report of any kind in, bytes out.
//!
//! For: one table of formats, one file each. Not for: concluding anything; what is written stands in the report.
#![forbid(unsafe_code)]

mod comparison_rows;
mod documentation;
#[cfg(test)]
mod fixture;
mod formats;
mod key_findings;
mod logs;
mod page;
mod report_view;

pub use documentation::chapter;
pub use formats::diskspd::{NAME as DISKSPD, XML_NAME as DISKSPD_XML, profile as diskspd_profile};
pub use formats::fio::{NAME as FIO, VERSION as FIO_VERSION, aggregate, verdict as fio_verdict};
pub use formats::iometer::NAME as IOMETER;
pub use formats::json::SCHEMAS;
pub use formats::{Content, Detail, Format, ReportKind, Style, WIDTH, Writer};
pub use formats::{FORMATS, TEXT};
pub use logs::{EventLine, LogFile, log_files};
use std::path::Path;

/// The formats that write this kind of report, and how.
pub fn able<K: ReportKind + ?Sized>() -> impl Iterator<Item = (&'static Format, &'static Writer<K>)> {
    FORMATS.iter().filter_map(|format| Some((*format, K::writer(format)?)))
}

/// The format of that name, where it writes this kind of report.
pub fn find<K: ReportKind + ?Sized>(name: &str) -> Option<&'static Format> {
    able::<K>().map(|(format, _)| format).find(|f| f.name == name)
}

/// The format of a file of that name, where it writes this kind of report.
pub fn by_extension<K: ReportKind + ?Sized>(path: &Path) -> Option<&'static Format> {
    let extension = path.extension()?.to_str()?;
    able::<K>().map(|(format, _)| format).find(|f| f.extension.eq_ignore_ascii_case(extension))
}

/// The format of a file of that name: the one that was asked for where its files end so, else the first whose do.
pub fn of_file<K: ReportKind + ?Sized>(path: &Path, said: &'static Format) -> Option<&'static Format> {
    let first = by_extension::<K>(path)?;
    Some(if said.extension == first.extension && K::writer(said).is_some() { said } else { first })
}

/// The extensions of files that hold this kind of report, for messages: `.txt, .json`.
pub fn extensions<K: ReportKind + ?Sized>() -> String {
    let mut all: Vec<&str> = Vec::new();
    for (format, _) in able::<K>() {
        if !all.contains(&format.extension) {
            all.push(format.extension);
        }
    }
    all.iter().map(|extension| format!(".{extension}")).collect::<Vec<_>>().join(", ")
}

/// The format, where it writes this kind of report.
///
/// # Errors
/// Which formats do, for people.
pub fn that_writes<K: ReportKind + ?Sized>(format: &'static Format) -> Result<&'static Format, String> {
    find::<K>(format.name).ok_or_else(|| {
        let names: Vec<&str> = able::<K>().map(|(format, _)| format.name).collect();
        format!("--format {} cannot write {}; type --format {}", format.name, K::NAME, names.join(" or "))
    })
}
