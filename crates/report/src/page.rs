//! What pages of text are made of: lines, paragraphs, tables, colour, and the forms of numbers that several of them share.
//!
//! For: every format that people read. Not for: what is told, nor in which order.

use crate::prose::prose;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use model::report::{Latency, Measured};
use model::units::{MIB, show_count, show_ns, show_share};
use std::io::{self, Write};

/// One rule below the headings: frames cost columns, and pasted text has few.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// Text under way.
pub(crate) struct Page {
    text: String,
    colour: bool,
}

/// A table with one rule below its headings; the first and the last column are words, and numbers stand to the right.
pub(crate) fn ruled(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(RULED).set_header(headings.iter().copied());
    for (i, column) in table.column_iter_mut().enumerate() {
        let left = i == 0 || i + 1 == headings.len();
        column.set_padding((0, 1));
        column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

impl Page {
    pub(crate) fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    /// Writes what is on it.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.text.as_bytes())
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// A paragraph broken at the width, its further lines indented.
    pub(crate) fn prose(&mut self, first: &str, indent: &str, text: &str) {
        self.text += &prose(first, indent, text);
    }

    pub(crate) fn table_of(&mut self, table: &Table) {
        for line in table.to_string().lines() {
            self.line(line.trim_end());
        }
    }

    pub(crate) fn paint(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A percentile by its name, `-` where too few operations support it.
pub(crate) fn percentile(latency: &Latency, name: &str) -> String {
    let value = latency.percentiles.get(name).copied().flatten();
    value.map_or_else(|| "-".into(), |ns| show_ns(ns as f64))
}

/// Half the interval in percent of the value.
pub(crate) fn half_width(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) if value > 0.0 => show_share((high - low) / 2.0 / value),
        _ => "-".into(),
    }
}

/// What the topmost device completed per second and of which size, in the same time; from the runs that have it.
pub(crate) fn device(result: &Measured) -> String {
    let Some(seen) = result.at_device() else { return "-".into() };
    match seen.request_bytes() {
        Some(size) => format!("{} x {}", show_count(seen.requests_per_s(seen.iops)), short_bytes(size)),
        None => "0".into(),
    }
}

/// A mean size in few letters: `4K`, `1023K`, `1M`.
pub(crate) fn short_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{}M", b / MIB),
        b if b >= 10 << 10 => format!("{:.0}K", b as f64 / 1024.0),
        b if b >= 1 << 10 => format!("{:.1}K", b as f64 / 1024.0).replace(".0K", "K"),
        b => b.to_string(),
    }
}
