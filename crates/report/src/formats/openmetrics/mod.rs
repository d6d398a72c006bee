//! The format `openmetrics`: metrics for monitoring systems, in the text format of OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! The textfile collector of node_exporter reads these files with the parser of the older Prometheus text format. Both parsers accept what is
//! written here: only gauges and counters, each family in one piece, `TYPE`, `UNIT` and `HELP` before its samples, and `# EOF` at the end.

mod report;
mod watch;

use crate::format::{Content, Format, Writer};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "openmetrics",
    extension: "prom",
    content: Content::Text,
    report: Some(Writer {
        about: "results and verdicts as gauges, for monitoring",
        write: report::write_report,
    }),
    watched: Some(Writer {
        about: "totals and the present load, for monitoring",
        write: watch::write_watched,
    }),
    ..Format::NONE
};

/// The last line.
const EOF: &[u8] = b"# EOF\n";

/// The lines before the samples of a metric family. `unit` is empty for a count; otherwise the name ends with it.
fn head(to: &mut dyn Write, name: &str, kind: &str, unit: &str, help: &str) -> io::Result<()> {
    writeln!(to, "# TYPE {name} {kind}")?;
    if !unit.is_empty() {
        writeln!(to, "# UNIT {name} {unit}")?;
    }
    writeln!(to, "# HELP {name} {help}")
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
