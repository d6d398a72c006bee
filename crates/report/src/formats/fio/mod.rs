//! The formats of fio 3: its text, its terse lines and its JSON, from results of fathom.
//!
//! Each result is a job, all its runs together. fathom's verdict is a separate key, or follows the text. If fathom lacks a figure, the key
//! is left out or has the value that fio prints for it: `docs/reference/formats.md` lists them.

pub mod aggregate;
mod job;
mod json;
mod options;
mod text;

use crate::format::{Content, Format};
pub use text::verdict;

/// The version of fio whose formats these are.
pub const VERSION: &str = "fio-3.33";

/// The name of the text format.
pub const NAME: &str = "fio";

pub(super) static NORMAL: Format =
    Format::of_measurements(NAME, "txt", Content::Text, "as fio prints it", text::write_text);
pub(super) static JSON: Format =
    Format::of_measurements("fio-json", "json", Content::Json, "as fio's JSON", |r, _, to| {
        json::write(r, false, to)
    });
pub(super) static JSON_PLUS: Format = Format::of_measurements(
    "fio-json+",
    "json",
    Content::Json,
    "the same with all latencies, as fio's json+",
    |r, _, to| json::write(r, true, to),
);
pub(super) static TERSE: Format = Format::of_measurements(
    "fio-terse",
    "terse",
    Content::Text,
    "as fio's terse lines, version 3",
    |r, _, to| text::write_terse(r, 3, to),
);
pub(super) static TERSE_2: Format =
    Format::of_measurements("fio-terse-2", "terse", Content::Text, "the same, version 2", |r, _, to| {
        text::write_terse(r, 2, to)
    });
pub(super) static TERSE_4: Format =
    Format::of_measurements("fio-terse-4", "terse", Content::Text, "the same, version 4", |r, _, to| {
        text::write_terse(r, 4, to)
    });
pub(super) static TERSE_5: Format =
    Format::of_measurements("fio-terse-5", "terse", Content::Text, "the same, version 5", |r, _, to| {
        text::write_terse(r, 5, to)
    });
