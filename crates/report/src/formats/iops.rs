//! The report of `--preset iops`: the lines of that program, and what it does not tell.
//!
//! For: one line per size in the form of the article that made it known (Stärk and Schweizer, "Fundamentals of I/O
//! benchmarking", listings 3 and 4), then latencies, the device's count and the limit of each size. Not for: other sweeps.

use super::sweep::skipped;
use super::text::{Page, device, percentile, ruled};
use model::finding::{Outcome, Severity};
use model::report::{Measured, Report};
use model::sweep::{CellFigures, Sweep};
use model::units::show_block;

const HEADINGS: [&str; 5] = ["size", "p50", "p99", "device IOPS", "limited by"];

pub(super) fn show(out: &mut Page, report: &Report, sweep: &Sweep) {
    for line in lines(report, sweep) {
        out.line(&line);
    }
    out.line("");
    details(out, report, sweep);
    for knee in sweep.works.iter().flat_map(|w| &w.knees) {
        out.line(&format!("  {} Each size was measured once.", knee.sentence));
    }
    skipped(out, sweep);
    out.line(&format!("  The sweep took {:.0} s.", sweep.seconds));
    out.line("");
}

/// The program's own lines.
fn lines(report: &Report, sweep: &Sweep) -> Vec<String> {
    let threads = sweep.cells.first().map_or(0, |c| c.setting.workers);
    let place = sweep.place.as_ref().map_or_else(
        || sweep.cells.first().map_or_else(String::new, |c| c.setting.engine.clone()),
        |place| {
            let (value, unit) = scaled(place.bytes as f64, 1000.0);
            format!("{}, {value:6.2} {unit}B", place.path)
        },
    );
    let numbers: Vec<Result<f64, String>> = sweep.cells.iter().map(|c| number(report, c)).collect();
    // The article has its numbers in a column as wide as the widest.
    let widest = numbers.iter().flatten().map(|iops| format!("{iops:.1}").len()).max().unwrap_or(0).max(6);
    let mut out = vec![format!("{place}, {threads} threads:")];
    for (cell, number) in sweep.cells.iter().zip(numbers) {
        let size = size(cell.setting.block_bytes);
        out.push(match number {
            Ok(iops) => {
                let bytes = iops * f64::from(cell.setting.block_bytes);
                let (binary, prefix) = scaled(bytes, 1024.0);
                let (decimal, bits) = scaled(8.0 * bytes, 1000.0);
                let binary_unit = if prefix.is_empty() { "B".into() } else { format!("{}iB", prefix.to_uppercase()) };
                format!(
                    " {size} blocks: {iops:widest$.1} IO/s, {binary:5.1} {binary_unit:>3}/s ({decimal:5.1} {:>4}/s)",
                    format!("{bits}bit")
                )
            }
            Err(why) => format!(" {size} blocks: {why}"),
        });
    }
    out
}

/// The rate of a cell, or why it has none.
fn number(report: &Report, cell: &CellFigures) -> Result<f64, String> {
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
fn size(bytes: u32) -> String {
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

/// What that program does not tell.
fn details(out: &mut Page, report: &Report, sweep: &Sweep) {
    let mut table = ruled(&HEADINGS);
    let measured = sweep.cells.iter().filter(|c| c.iops.is_some());
    let with_results = measured.filter_map(|c| Some((c, report.results.get(c.result?)?)));
    for (cell, result) in with_results.filter(|(_, r)| !r.void) {
        table.add_row(detail(cell, result));
    }
    if !table.is_empty() {
        out.table_of(&table);
    }
}

fn detail(cell: &CellFigures, result: &Measured) -> [String; HEADINGS.len()] {
    let figures = result.read.as_ref().or(result.write.as_ref());
    let at = |p: &str| figures.map_or_else(|| "-".into(), |f| percentile(&f.latency_ns, p));
    [
        show_block(u64::from(cell.setting.block_bytes)),
        at("50"),
        at("99"),
        device(result),
        result.limiter.name.clone(),
    ]
}

#[test]
fn lines_are_those_of_the_article() {
    assert_eq!(
        (size(512), size(1 << 10), size(16 << 20)),
        ("512   B".into(), "  1 KiB".into(), " 16 MiB".into())
    );
    assert_eq!(size(1536), "1536   B");
    assert_eq!(scaled(999.0, 1000.0), (999.0, ""));
    let (value, prefix) = scaled(1.00e12, 1000.0);
    assert!((value - 1.0).abs() < 1e-12 && prefix == "T");
}
