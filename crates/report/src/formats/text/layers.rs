//! The table of layers: the same work from the lowest layer up, what the tool counted beside what the device counted.
//!
//! For: a report that compares layers; it stands in place of the table of results. Not for: other reports.

use crate::page::{Page, half_width, short_bytes, supported, verdict_mark};
use crate::table::Table;
use model::check_id::CheckId;
use model::ledger::{Difference, LayerRow, Layers, Pace};
use model::report::Measured;
use model::units::{show_count, show_ns, show_rate};

const LAYER_HEADINGS: [&str; 11] = [
    "layer",
    "verdict",
    "IOPS",
    "±95 %",
    "size",
    "latency",
    "device IOPS",
    "device size",
    "device latency",
    "against",
    "findings",
];
/// Columns that leave where there is no room, the first of them first: the device's size and latency before its rate.
const LAYER_DROP_ORDER: [usize; 8] = [7, 8, 4, 6, 10, 5, 3, 9];
/// Factor from which a rate reads better as a multiple than in percent.
const RATIO_FROM: f64 = 2.0;

pub(super) fn show_layers(out: &mut Page, layers: &Layers, results: &[Measured]) {
    out.table(&layer_table(layers, results));
    out.line("Latencies are means; the device is the topmost one below; changes have their 95 % interval over rounds.");
    for missing in &layers.missing {
        out.prose("  ", "    ", &format!("Not measured: {missing}."));
    }
    out.line("");
}

/// A row for each layer, below the work that was done at it.
pub(super) fn layer_table(layers: &Layers, results: &[Measured]) -> Table {
    let mut table = Table::new(&LAYER_HEADINGS, &LAYER_DROP_ORDER).aligned(1, true).aligned(9, true);
    let mut work = "";
    for row in &layers.rows {
        if row.work != work {
            work = &row.work;
            let mut cells = blank_layer_row();
            cells[0] = format!("{work}:");
            table.add(cells);
        }
        table.add(layer_cells(row, results.get(row.result)));
    }
    table
}

fn blank_layer_row() -> [String; LAYER_HEADINGS.len()] {
    std::array::from_fn(|_| String::new())
}

fn layer_cells(row: &LayerRow, result: Option<&Measured>) -> [String; LAYER_HEADINGS.len()] {
    let mut cells = blank_layer_row();
    cells[0] = format!("  {}", row.name);
    cells[1] = result.map_or_else(String::new, verdict_mark);
    cells[10] = CheckId::list(&row.findings, " ");
    let Some(tool) = &row.tool else {
        "no number".clone_into(&mut cells[2]);
        return cells;
    };
    cells[2] = supported(tool.iops, row.iops_interval);
    cells[3] = half_width(tool.iops, row.iops_interval);
    cells[4] = request_size(tool);
    cells[5] = layer_latency(tool);
    let device = row.device.as_ref();
    cells[6] = device.map_or_else(|| "-".into(), |d| show_count(d.iops));
    cells[7] = device.map_or_else(String::new, request_size);
    cells[8] = device.map_or_else(String::new, layer_latency);
    cells[9] = row.against.as_ref().map_or_else(String::new, describe_difference);
    cells
}

fn request_size(pace: &Pace) -> String {
    pace.bytes.map_or_else(|| "-".into(), |b| short_bytes(b.round() as u64))
}

fn layer_latency(pace: &Pace) -> String {
    pace.latency_ns.map_or_else(|| "-".into(), show_ns)
}

/// `vda -2.1 % (-3.0 to -1.2)`, or `vda x 3.1 (3.0 to 3.2)`.
fn describe_difference(against: &Difference) -> String {
    let multiple = against.factor >= RATIO_FROM;
    let value = |v: f64| if multiple { show_rate(v) } else { format!("{:+.1}", 100.0 * (v - 1.0)) };
    let sign = if multiple { "x " } else { "" };
    let unit = if multiple { "" } else { " %" };
    let interval = match against.interval {
        Some([low, high]) => format!(" ({} to {})", value(low), value(high)),
        None => String::new(),
    };
    format!("{} {sign}{}{unit}{interval}", against.name, value(against.factor))
}
