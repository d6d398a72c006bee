//! The format `cdm`: results in the exact layout of CrystalDiskMark's text, for forums and programs that read it.
//!
//! The line "Comment" has the verdict, and counts the results that have no number or no line. As in
//! CrystalDiskMark, a score is the rate of the fastest run. The latency is the mean of the same
//! run, by Little's law (operations in flight divided by rate); CrystalDiskMark prints the lowest
//! mean latency of all runs instead. Source: the text that CrystalDiskMark 9.0.1 saves
//! (`CDiskMarkDlg::SaveText`, MIT).

use crate::view::lists::count_of;
use crate::{Content, Format, Style};
use model::job::{Pattern, Percent, Stream};
use model::profile::{PROFILES, Test};
use model::report::{Measured, Report, RunFigures};
use model::units::{GIB, MIB};
use std::io::{self, Write};

pub(super) static FORMAT: Format =
    Format::of_measurements("cdm", "txt", Content::Text, "as CrystalDiskMark saves its results", write);

/// Length of a horizontal line in characters.
const WIDTH: usize = 78;
/// Profiles of fathom, and CrystalDiskMark's names for them.
const PROFILE_NAMES: [(&str, &str); 6] = [
    ("cdm", "Default"),
    ("nvme", "Default"),
    ("peak", "Peak"),
    ("real", "Real"),
    ("demo", "Demo"),
    ("mix", "Default"),
];
/// The uid that counts as administrator.
const ROOT: u32 = 0;
/// Nanoseconds per second: the time of a run is printed in seconds, rounded up.
const SECOND_NS: u64 = 1_000_000_000;

/// A result for which CrystalDiskMark's layout has a line.
struct Row<'r> {
    result: &'r Measured,
    stream: &'r Stream,
    pattern: Pattern,
    block_kib: u32,
    reads: Percent,
}

fn write(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Row> = report.results.iter().filter_map(row).collect();
    let rule = "-".repeat(WIDTH);
    let mut out = vec![
        rule.clone(),
        format!("fathom {} in the layout of CrystalDiskMark 9.0.1", report.fathom.version),
        format!("{:>WIDTH$}", "CrystalDiskMark: https://crystalmark.info/"),
        rule,
        "* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]".into(),
        "* KB = 1000 bytes, KiB = 1024 bytes".into(),
        String::new(),
    ];
    let mut shares: Vec<Percent> = rows.iter().map(|r| r.reads).collect();
    shares.sort_by(|a, b| sort_rank(*a).cmp(&sort_rank(*b)).then(b.get().total_cmp(&a.get())));
    shares.dedup();
    for share in shares {
        out.push(heading(share));
        out.extend(rows.iter().filter(|r| r.reads == share).filter_map(line));
        out.push(String::new());
    }
    out.extend(foot(report, &rows));
    to.write_all((out.join("\r\n") + "\r\n").as_bytes())
}

/// Returns the parts of a result's line; `None` if the format has no line for this workload.
fn row(result: &Measured) -> Option<Row<'_>> {
    let [phase] = result.job.phases.as_slice() else { return None };
    let [stream] = phase.streams.as_slice() else { return None };
    let access = &stream.access;
    let block = access.block_bytes().filter(|bytes| bytes.is_multiple_of(1024) && *bytes > 0)?;
    Some(Row {
        result,
        stream,
        pattern: access.pattern()?,
        block_kib: block / 1024,
        reads: access.read_percent()?,
    })
}

/// Sort key: reads first, mixes last.
fn sort_rank(reads: Percent) -> u8 {
    match reads {
        Percent::ALL => 0,
        Percent::NONE => 1,
        _ => 2,
    }
}

fn heading(reads: Percent) -> String {
    match sort_rank(reads) {
        0 => "[Read]".into(),
        1 => "[Write]".into(),
        _ => format!("[Mix] Read {:.0}%/Write {:.0}%", reads.get(), 100.0 - reads.get()),
    }
}

/// Returns the line of a result; `None` without a number.
fn line(row: &Row) -> Option<String> {
    let best = fastest_run(row.result)?;
    let order = if row.pattern == Pattern::Random { "RND" } else { "SEQ" };
    let (size, unit) =
        if row.block_kib >= 1024 { (row.block_kib / 1024, "MiB") } else { (row.block_kib, "KiB") };
    let latency_us = if best.iops > 0.0 { best.depth_mean / best.iops * 1e6 } else { 0.0 };
    Some(format!(
        "  {order} {size:4}{unit} (Q={:3}, T={:2}): {:9.3} MB/s [{:9.1} IOPS] <{latency_us:9.2} us>",
        row.stream.depth, row.stream.workers, best.mb_per_s, best.iops
    ))
}

/// Returns the fastest run of a result; `None` if the result has no number.
fn fastest_run(result: &Measured) -> Option<&RunFigures> {
    let has_number = result.total.is_some() && !result.void;
    let runs = result.runs.iter().filter(|run| has_number && run.mb_per_s > 0.0);
    runs.max_by(|a, b| a.mb_per_s.total_cmp(&b.mb_per_s))
}

/// Returns CrystalDiskMark's name for the profile whose tests are exactly these rows, otherwise
/// `Custom`.
fn profile_name(rows: &[Row]) -> &'static str {
    let is = |row: &Row, test: &Test| {
        (row.pattern, row.block_kib * 1024, row.stream.depth, row.stream.workers)
            == (test.pattern, test.block_bytes, test.depth, test.workers)
    };
    let fits = |name: &str| {
        let tests = PROFILES.iter().find(|p| p.name == name).map_or(&[][..], |p| p.tests);
        tests.iter().all(|t| rows.iter().any(|r| is(r, t)))
            && rows.iter().all(|r| tests.iter().any(|t| is(r, t)))
    };
    PROFILE_NAMES.iter().find(|(name, _)| fits(name)).map_or("Custom", |(_, called)| *called)
}

fn foot(report: &Report, rows: &[Row]) -> Vec<String> {
    let span = rows.iter().map(|r| r.stream.access.span_bytes).max().unwrap_or(0);
    let size = if span.is_multiple_of(GIB) && span > 0 {
        format!("{} GiB", span / GIB)
    } else {
        format!("{} MiB", span / MIB)
    };
    let runs = rows.iter().map(|r| r.result.runs.len()).max().unwrap_or(0);
    let place = report.machine.places.first().map_or_else(String::new, |place| format!(" [{}]", place.path));
    let time_ns = rows.iter().flat_map(|r| &r.result.job.phases).map(|p| p.time_ns).max().unwrap_or(0);
    let admin = if report.machine.user_id == ROOT { " [Admin]" } else { "" };
    let kernel: Vec<&str> = report.machine.kernel.split_whitespace().take(2).collect();
    vec![
        format!("Profile: {}", profile_name(rows)),
        format!("   Test: {size} (x{runs}){place}"),
        format!("   Mode:{admin}"),
        format!("   Time: Measure {} sec / Interval 0 sec ", time_ns.div_ceil(SECOND_NS)),
        format!("   Date: {}", local_date(&report.started)),
        format!("     OS: {}", kernel.join(" ")),
        format!("Comment: {}", comment(report, rows)),
    ]
}

/// Formats `2026-03-14T05:09:26+01:00` as `2026/03/14 5:09:26`.
fn local_date(started: &str) -> String {
    let Some((day, rest)) = started.split_once('T') else { return started.to_owned() };
    let time: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ':').collect();
    format!("{} {}", day.replace('-', "/"), time.strip_prefix('0').unwrap_or(&time))
}

/// Returns the verdict and the number of results that have no number or no line.
fn comment(report: &Report, rows: &[Row]) -> String {
    let lacking = report.results.len() - rows.len();
    let void = rows.iter().filter(|row| fastest_run(row.result).is_none()).count();
    let mut out = format!("fathom: {}", report.verdict.word());
    for (number, why) in [(void, "without a number"), (lacking, "that CrystalDiskMark has no line for")] {
        if number > 0 {
            out += &format!(", {} {why}", count_of(number, "result"));
        }
    }
    out + "; scores are the fastest of the runs, as in CrystalDiskMark"
}

#[test]
fn dates_and_headings_are_those_of_crystaldiskmark() {
    assert_eq!(local_date("2026-03-14T05:09:26+01:00"), "2026/03/14 5:09:26");
    assert_eq!(heading(Percent::whole(70)), "[Mix] Read 70%/Write 30%");
    assert_eq!([100, 0, 70].map(|p| sort_rank(Percent::whole(p))), [0, 1, 2]);
}
