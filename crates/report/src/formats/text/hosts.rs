//! The table of growing numbers of hosts: what all bring, and what each.
//!
//! For: a report of `--hosts`; it stands in place of the table of results. Not for: deciding anything, nor single hosts ([`super::fleet`]).

use super::results;
use crate::page::{Page, half_width, percentile, supported, verdict_mark};
use crate::table::Table;
use model::report::Measured;
use model::scaling::{Scaling, ScalingRow};
use model::units::{show_rate, show_share};

const HOST_COUNT_HEADINGS: [&str; 10] =
    ["hosts", "verdict", "MB/s", "IOPS", "±95 %", "p50", "p99", "per host", "efficiency", "±95 %"];
/// Columns that leave where there is no room, the first of them first.
const HOST_COUNT_DROP_ORDER: [usize; 6] = [5, 6, 4, 2, 9, 1];

pub(super) fn show_host_counts(out: &mut Page, scaling: &Scaling, measured: &[Measured], all: bool) {
    let rows = host_count_table(scaling, measured);
    out.table(&rows);
    let rounded = if rows.has("~") { " ~ = rounded, since the interval is wide." } else { "" };
    let legend = format!(
        "Per host: IOPS. Efficiency: that beside the same of the fewest hosts, from runs in turns. The knee is the number of hosts of \
         greatest power, rate by latency.{rounded}"
    );
    out.prose("", "  ", &legend);
    out.line("");
    if all {
        results::show_results(out, measured, &[], all);
    }
}

/// A row for each number of hosts.
pub(super) fn host_count_table(scaling: &Scaling, measured: &[Measured]) -> Table {
    let mut table = Table::new(&HOST_COUNT_HEADINGS, &HOST_COUNT_DROP_ORDER).aligned(1, true);
    table.add_all(scaling.rows.iter().map(|row| host_count_cells(scaling, row, measured.get(row.result))));
    table
}

fn host_count_cells(
    scaling: &Scaling,
    row: &ScalingRow,
    result: Option<&Measured>,
) -> [String; HOST_COUNT_HEADINGS.len()] {
    let mut cells: [String; HOST_COUNT_HEADINGS.len()] = std::array::from_fn(|_| "-".into());
    let is_knee = scaling.knee.is_some_and(|knee| knee.reached && knee.hosts == row.hosts);
    cells[0] = format!("{}{}", row.hosts, if is_knee { " knee" } else { "" });
    let Some(result) = result else { return cells };
    cells[1] = verdict_mark(result);
    let Some(total) = result.total.as_ref().filter(|_| !result.void) else {
        "no number".clone_into(&mut cells[3]);
        return cells;
    };
    cells[2] = supported(total.mb_per_s, total.mb_per_s_interval);
    cells[3] = supported(total.iops, total.iops_interval);
    cells[4] = half_width(total.iops, total.iops_interval);
    // Directions have no common percentile.
    let mut figures = [&result.read, &result.write, &result.trim].into_iter().flatten();
    if let (Some(only), None) = (figures.next(), figures.next()) {
        cells[5] = percentile(&only.latency_ns, "50");
        cells[6] = percentile(&only.latency_ns, "99");
    }
    let words = |value: Option<f64>, of: fn(f64) -> String| value.map_or_else(|| "-".into(), of);
    cells[7] = words(row.iops_per_host, show_rate);
    cells[8] = words(row.efficiency, show_share);
    let half = |[low, high]: [f64; 2]| show_share((high - low) / 2.0);
    cells[9] = row.efficiency_interval.map_or_else(|| "-".into(), half);
    cells
}
