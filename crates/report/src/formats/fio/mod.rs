//! The formats of fio 3: its text, its terse lines and its JSON, from results of fathom.
//!
//! A job is one result, or several that fio reports as one, with all of its runs. fathom's verdict
//! is a separate key in JSON and follows the text; terse lines have none. If fathom lacks a figure,
//! the key is left out or has the value that fio prints then: `docs/reference/formats.md` lists
//! these keys.

mod job;
mod json;
mod options;
mod text;

use crate::{Content, Format, Style};
use model::report::Report;
use std::io::{self, Write};
pub use text::verdict;

/// The version of fio whose formats fathom writes.
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
    "as fio's json+, with all latency bins",
    |r, _, to| json::write(r, true, to),
);
pub(super) static TERSE: Format =
    terse("fio-terse", "as fio's terse lines, version 3", |r, _, to| text::write_terse(r, 3, to));
pub(super) static TERSE_2: Format =
    terse("fio-terse-2", "terse lines, version 2", |r, _, to| text::write_terse(r, 2, to));
pub(super) static TERSE_4: Format =
    terse("fio-terse-4", "terse lines, version 4", |r, _, to| text::write_terse(r, 4, to));
pub(super) static TERSE_5: Format =
    terse("fio-terse-5", "terse lines, version 5", |r, _, to| text::write_terse(r, 5, to));

const fn terse(
    name: &'static str,
    about: &'static str,
    write: fn(&Report, Style, &mut dyn Write) -> io::Result<()>,
) -> Format {
    Format::of_measurements(name, "terse", Content::Text, about, write)
}

/// Bandwidth of all jobs together over time, as fio's `--bandwidth-log` writes it.
pub mod aggregate {
    use super::job::{DIRECTIONS, jobs, step_length, steps};
    use model::figures::{Observed, ObservedInterval};
    use model::job::Kind;
    use model::report::Report;

    /// Minimum time that a line covers, in ns: the interval of fio's progress.
    const STEP_NS: u64 = 500_000_000;
    const MS_NS: u64 = 1_000_000;

    /// The names of the files, each with its direction.
    pub const FILES: [(&str, Kind); 3] =
        [("agg-read_bw.log", Kind::Read), ("agg-write_bw.log", Kind::Write), ("agg-trim_bw.log", Kind::Trim)];

    /// Returns the lines of a direction as fio writes them: ms since the first job began, KiB/s, fio's number of the direction, and two
    /// zeros.
    pub fn lines(report: &Report, kind: Kind) -> String {
        let jobs = jobs(report);
        let all = || jobs.iter().flat_map(|job| &job.members).map(|member| member.observed);
        let begin = all().map(window_start_ns).min().unwrap_or(0);
        let shifted = |observed: &Observed| -> Vec<ObservedInterval> {
            let before = window_start_ns(observed) - begin;
            let time_series = observed.kinds.get(&kind).map_or(&[][..], |observed| &observed.time_series);
            time_series
                .iter()
                .map(|s| ObservedInterval { start_ns: s.start_ns.saturating_add(before), ..*s })
                .collect()
        };
        let time_series: Vec<ObservedInterval> = all().flat_map(shifted).collect();
        let step_ns = step_length(&time_series, STEP_NS);
        let direction = DIRECTIONS.iter().position(|known| *known == kind).unwrap_or_default();
        let end = all().map(|observed| observed.ended_ns).max().unwrap_or(0).saturating_sub(begin);
        let line = |until_ns: u64, bytes: f64, ns: u64| {
            let kib = bytes / 1024.0 * 1e9 / ns.max(1) as f64;
            format!("{}, {}, {direction}, 0, 0\n", until_ns / MS_NS, kib as u64)
        };
        let steps = steps(&time_series, step_ns);
        // Leave out an unfinished step: its rate would be too low.
        let step_end_ns = |at: u64| (at + 1).saturating_mul(step_ns);
        let finished: String = steps
            .iter()
            .filter(|(at, _)| step_end_ns(**at) <= end)
            .map(|(at, step)| line(step_end_ns(*at), step.bytes, step_ns))
            .collect();
        if finished.is_empty() {
            // Like fio, write a line even if no step has ended.
            return line(end, steps.values().map(|step| step.bytes).sum(), end);
        }
        finished
    }

    /// Returns the start of the measured window, in ns since the start of the session.
    fn window_start_ns(observed: &Observed) -> u64 {
        observed.ended_ns.saturating_sub(observed.window_ns)
    }
}
