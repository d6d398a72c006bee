//! The report of `--preset iops`: the lines of that program, and what it does not tell.
//!
//! For: one line per size in the form of the article that made it known (Stärk and Schweizer, "Fundamentals of I/O
//! benchmarking", listings 3 and 4), then latencies, the device's count and the limit of each size. Not for: other sweeps.

use super::map::{self, Marks};
use super::sweep::show_skipped;
use crate::page::{Page, device_rate, percentile, verdict_mark};
use crate::table::Table;
use model::finding::{Outcome, Severity};
use model::measure::Measure;
use model::report::{Measured, Report};
use model::sweep::{CellFigures, Sweep};
use model::units::{show_block, show_rate};

const IOPS_HEADINGS: [&str; 9] =
    ["size", "threads", "verdict", "IOPS", "MB/s", "p50", "p99", "device IOPS", "limited by"];
/// Columns that leave where there is no room, the first of them first.
const IOPS_DROP_ORDER: [usize; 5] = [7, 5, 8, 4, 6];

pub(super) fn show_iops_preset(out: &mut Page, report: &Report, sweep: &Sweep) {
    let threads = thread_counts(sweep);
    for workers in &threads {
        for line in article_lines(report, sweep, *workers) {
            out.line(&line);
        }
        out.line("");
    }
    if threads.len() > 1 {
        let void = |c: &CellFigures| c.result.and_then(|at| report.results.get(at)).is_none_or(|r| r.void);
        let cells: Vec<&CellFigures> = sweep.cells.iter().filter(|c| !void(c)).collect();
        for measure in [Measure::Iops, Measure::Bandwidth] {
            map::show_maps(out, &cells, measure, Marks::default());
        }
    }
    let table = iops_table(report, sweep);
    if !table.is_empty() {
        out.table(&table);
    }
    for knee in sweep.works.iter().flat_map(|w| &w.knees) {
        out.prose("  ", "    ", &format!("{} Each size was measured once.", knee.sentence));
    }
    show_skipped(out, sweep);
    out.line(&format!("  The sweep took {:.0} s.", sweep.seconds));
    out.line("");
}

/// The numbers of threads, in the order of the grid.
fn thread_counts(sweep: &Sweep) -> Vec<u32> {
    let mut all: Vec<u32> = sweep.cells.iter().map(|c| c.setting.workers).collect();
    all.dedup();
    all
}

/// The program's own lines with so many threads.
fn article_lines(report: &Report, sweep: &Sweep, threads: u32) -> Vec<String> {
    let mine = || sweep.cells.iter().filter(|c| c.setting.workers == threads);
    let place = sweep.place.as_ref().map_or_else(
        || sweep.cells.first().map_or_else(String::new, |c| c.setting.engine.clone()),
        |place| {
            let (value, unit) = scaled(place.bytes as f64, 1000.0);
            format!("{}, {value:6.2} {unit}B", place.path)
        },
    );
    let numbers: Vec<Result<f64, String>> = mine().map(|c| rate_or_reason(report, c)).collect();
    // The article has its numbers in a column as wide as the widest.
    let widest = numbers.iter().flatten().map(|iops| format!("{iops:.1}").len()).max().unwrap_or(0).max(6);
    let mut out = vec![format!("{place}, {threads} threads:")];
    for (cell, number) in mine().zip(numbers) {
        let bytes = cell.setting.block_bytes;
        out.push(match number {
            Ok(iops) => article_line(bytes, iops, widest),
            Err(why) => format!(" {} blocks: {why}", padded_size(bytes)),
        });
    }
    out
}

/// `printf(" %3d %3s blocks: %6.1f IO/s, %5.1f %3s/s (%5.1f %4s/s)")`: binary units of bytes, decimal ones of bits.
fn article_line(block_bytes: u32, iops: f64, widest: usize) -> String {
    let bytes = iops * f64::from(block_bytes);
    let (binary, prefix) = scaled(bytes, 1024.0);
    let binary_unit = if prefix.is_empty() { "B".into() } else { format!("{}iB", prefix.to_uppercase()) };
    let (decimal, prefix) = scaled(8.0 * bytes, 1000.0);
    let bits = format!("{prefix}bit");
    let size = padded_size(block_bytes);
    format!(
        " {size} blocks: {iops:widest$.1} IO/s, {binary:5.1} {binary_unit:>3}/s ({decimal:5.1} {bits:>4}/s)"
    )
}

/// The rate of a cell, or why it has none.
fn rate_or_reason(report: &Report, cell: &CellFigures) -> Result<f64, String> {
    let result = cell.result.and_then(|at| report.results.get(at));
    if let Some(result) = result.filter(|r| r.void) {
        let is_reason = |f: &&model::finding::Finding| {
            f.outcome == Outcome::Finding
                && f.severity == Some(Severity::Void)
                && f.about.contains(&result.name)
        };
        let ids: Vec<String> =
            report.findings.iter().filter(is_reason).map(|f| format!("{} {}", f.id, f.name)).collect();
        return Err(format!("no number ({})", ids.join(", ")));
    }
    cell.iops.ok_or_else(|| "no number (no run of it has ended)".into())
}

/// `512   B`, `  4 KiB`.
fn padded_size(bytes: u32) -> String {
    const UNITS: [(&str, u32); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let (unit, scale) = UNITS.into_iter().find(|(_, u)| bytes.is_multiple_of(*u)).unwrap_or(("B", 1));
    format!("{:>3} {unit:>3}", bytes / scale)
}

/// A value below the base with the letter of its power: `kMGTP`.
fn scaled(mut value: f64, base: f64) -> (f64, &'static str) {
    let mut prefix = "";
    for next in ["k", "M", "G", "T", "P"] {
        if value < base {
            break;
        }
        value /= base;
        prefix = next;
    }
    (value, prefix)
}

/// A row per size with what the program's own lines do not tell: latencies, the device's count and what limits it.
pub(super) fn iops_table(report: &Report, sweep: &Sweep) -> Table {
    let mut table = Table::new(&IOPS_HEADINGS, &IOPS_DROP_ORDER).aligned(2, true);
    let several = thread_counts(sweep).len() > 1;
    let measured = sweep.cells.iter().filter(|c| c.iops.is_some());
    let with_results = measured.filter_map(|c| Some((c, report.results.get(c.result?)?)));
    for (cell, result) in with_results.filter(|(_, r)| !r.void) {
        table.add(iops_row(cell, result, several));
    }
    table
}

/// A row; the threads where they differ.
fn iops_row(cell: &CellFigures, result: &Measured, several: bool) -> [String; IOPS_HEADINGS.len()] {
    let figures = result.read.as_ref().or(result.write.as_ref());
    let at = |p: &str| figures.map_or_else(|| "-".into(), |f| percentile(&f.latency_ns, p));
    [
        show_block(u64::from(cell.setting.block_bytes)),
        if several { cell.setting.workers.to_string() } else { String::new() },
        verdict_mark(result),
        cell.iops.map_or_else(|| "-".into(), show_rate),
        cell.mb_per_s.map_or_else(|| "-".into(), show_rate),
        at("50"),
        at("99"),
        device_rate(result),
        result.limiter.name.clone(),
    ]
}

#[test]
fn lines_are_word_for_word_those_of_the_article() {
    // Listing 3, whose leading blank went where a size has three digits; its rates had more digits than it shows.
    for (bytes, iops, said) in [
        (512, 76.68, " 512   B blocks:   76.7 IO/s,  38.3 KiB/s (314.1 kbit/s)"),
        (1 << 10, 84.447, "   1 KiB blocks:   84.4 IO/s,  84.4 KiB/s (691.8 kbit/s)"),
        (16 << 10, 79.2, "  16 KiB blocks:   79.2 IO/s,   1.2 MiB/s ( 10.4 Mbit/s)"),
        (128 << 10, 76.0, " 128 KiB blocks:   76.0 IO/s,   9.5 MiB/s ( 79.7 Mbit/s)"),
        (2 << 20, 25.325, "   2 MiB blocks:   25.3 IO/s,  50.6 MiB/s (424.9 Mbit/s)"),
    ] {
        assert_eq!(article_line(bytes, iops, 6), said);
    }
    // Listing 4, where the widest rate has seven letters.
    for (bytes, iops, said) in [
        (512, 21556.8, " 512   B blocks: 21556.8 IO/s,  10.5 MiB/s ( 88.3 Mbit/s)"),
        (32 << 10, 7621.1, "  32 KiB blocks:  7621.1 IO/s, 238.2 MiB/s (  2.0 Gbit/s)"),
        (512 << 10, 448.7, " 512 KiB blocks:   448.7 IO/s, 224.3 MiB/s (  1.9 Gbit/s)"),
    ] {
        assert_eq!(article_line(bytes, iops, 7), said);
    }
}

#[test]
fn sizes_have_the_largest_unit_that_divides_them() {
    assert_eq!(
        (padded_size(512), padded_size(1 << 10), padded_size(16 << 20)),
        ("512   B".into(), "  1 KiB".into(), " 16 MiB".into())
    );
    assert_eq!(padded_size(1536), "1536   B");
    assert_eq!(scaled(999.0, 1000.0), (999.0, ""));
    let (value, prefix) = scaled(1.00e12, 1000.0);
    assert!((value - 1.0).abs() < 1e-12 && prefix == "T");
}
