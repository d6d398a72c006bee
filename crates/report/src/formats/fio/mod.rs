//! The formats of fio 3: its text, its lines between semicolons and its JSON, from results of fathom.
//!
//! For: programs and people that read those. Not for: anything that fio has no word for but the verdict, which stands in a key of its
//! own, and at the end of the text. Each result is a job, all its runs together. Where fathom has no such figure the key is left out,
//! or what fio itself prints of what it did not measure stands there: `docs/reference/formats.md` says which.

pub mod aggregate;
mod job;
mod json;
mod options;
mod text;

use crate::formats::{Content, Format};
pub use text::verdict;

/// The version whose formats these are, as programs expect it.
pub const VERSION: &str = "fio-3.33";

/// The name of the format that is its text.
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
