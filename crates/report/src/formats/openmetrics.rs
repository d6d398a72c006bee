//! The format `openmetrics`: metrics for monitoring systems, in the text format of OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! The textfile collector of node_exporter reads these files with the parser of the older Prometheus text format. Both parsers accept this
//! output: only gauges and counters, each family in one piece, `TYPE`, `UNIT` and `HELP` before its samples, and `# EOF` at the end.
//!
//! - A report has gauges: verdicts and conditions as 0 and 1, rates with their 95 % intervals, latencies by quantile.
//!   Every sample has the labels `title` (what was measured) and `target`, so that the files of several measurements
//!   can be collected together. A result without a number has only a verdict, so an alert must react to a missing series
//!   or to the verdict.
//! - A watched interval has counters since the device appeared, in seconds and bytes, and gauges of
//!   the present state. Readers can compute rates over any time. Processes are left out, because
//!   every new process id would create a new series.

use crate::view::results::directions;
use crate::{Content, Format, Style, writer};
use model::evidence::BlockStat;
use model::report::{AnswerWord, Ending, Measured, Report, Verdict};
use model::study::Studied;
use model::verdict::Gate;
use model::watch::{Watched, WatchedDevice};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "openmetrics",
    extension: "prom",
    content: Content::Text,
    report: writer("results and verdicts as gauges, for monitoring", write_report),
    watched: writer("totals and the present load, for monitoring", write_watched),
    ..Format::NONE
};

/// The last line of the output.
const EOF: &[u8] = b"# EOF\n";

/// Escapes the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Nanoseconds per second.
const NS_PER_SECOND: f64 = 1e9;
const VERDICTS: [Verdict; 3] = [Verdict::Valid, Verdict::Suspect, Verdict::Invalid];
/// The possible answers to a condition.
const OUTCOMES: [AnswerWord; 4] =
    [AnswerWord::Pass, AnswerWord::Fail, AnswerWord::Inconclusive, AnswerWord::Invalid];

/// Names and values of labels, in the order of output.
type Labels = Vec<(&'static str, String)>;

/// The metric type: readers compute the rate of a counter, and use the value of a gauge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricType {
    Counter,
    Gauge,
}

/// A metric family.
struct Family {
    name: &'static str,
    kind: MetricType,
    /// The base unit, with which the name ends; empty without a unit.
    unit: &'static str,
    help: &'static str,
    samples: Vec<(Labels, f64)>,
}

impl Family {
    fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricType::Gauge, unit, help, samples: Vec::new() }
    }

    /// Adds a sample, unless its value is unknown.
    fn add(&mut self, labels: &Labels, value: Option<f64>) {
        self.samples.extend(value.filter(|v| v.is_finite()).map(|v| (labels.clone(), v)));
    }

    /// Adds a sample for each state: 1 for the current state (`now`), 0 for the others.
    fn add_states(
        &mut self,
        labels: &Labels,
        label: &'static str,
        states: impl Iterator<Item = &'static str>,
        now: &str,
    ) {
        for state in states {
            self.add(&with(labels, &[(label, state)]), Some(f64::from(u8::from(state == now))));
        }
    }

    /// Writes the family; nothing without samples.
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let Self { name, kind, unit, help, samples } = self;
        if samples.is_empty() {
            return Ok(());
        }
        let (kind, suffix) = match kind {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Gauge => ("gauge", ""),
        };
        writeln!(to, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(to, "# UNIT {name} {unit}")?;
        }
        writeln!(to, "# HELP {name} {help}")?;
        for (labels, value) in samples {
            let pairs: Vec<String> =
                labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escape(text))).collect();
            writeln!(to, "{name}{suffix}{{{}}} {value}", pairs.join(","))?;
        }
        Ok(())
    }
}

/// Numbers repeated names: `a`, `a #2`. Readers reject two samples with the same labels.
#[derive(Default)]
struct UniqueNames(HashMap<String, u32>);

impl UniqueNames {
    fn next(&mut self, name: &str) -> String {
        let count = self.0.entry(name.to_owned()).and_modify(|n| *n += 1).or_insert(1);
        if *count > 1 { format!("{name} #{count}") } else { name.to_owned() }
    }
}

/// Returns labels with more appended.
fn with(labels: &Labels, more: &[(&'static str, &str)]) -> Labels {
    labels.iter().cloned().chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    for gauge in session_gauges(report).iter().chain(&result_gauges(report)).chain(&command_gauges(report)) {
        gauge.write(to)?;
    }
    to.write_all(EOF)
}

/// Returns the labels of the measurement, with the targets of `result`, or of all results if it is `None`.
fn report_labels(report: &Report, result: Option<&Measured>) -> Labels {
    let target = report.targets_of(result).join(";");
    vec![("title", report.title.clone()), ("target", target)]
}

/// Returns the gauges of the whole session.
fn session_gauges(report: &Report) -> [Family; 5] {
    let labels = report_labels(report, None);
    let mut started = Family::gauge(
        "fathom_started_timestamp_seconds",
        "seconds",
        "When the measurement began, in seconds since 1970.",
    );
    let at = report.started.parse::<jiff::Timestamp>().ok();
    started.add(&labels, at.map(|at| at.as_second() as f64));
    let mut complete = Family::gauge("fathom_complete", "", "Whether the measurement ended as planned.");
    complete.add(&labels, Some(f64::from(u8::from(report.ending == Ending::Complete))));
    let mut verdict =
        Family::gauge("fathom_verdict", "", "The worst verdict of the results that are quoted.");
    verdict.add_states(&labels, "verdict", VERDICTS.into_iter().map(Verdict::word), report.verdict.word());
    let mut answer = Family::gauge("fathom_answer", "", "The answer, if the command asks a question.");
    if let Some(given) = &report.answer {
        answer.add(&with(&labels, &[("answer", given.word.word())]), Some(1.0));
    }
    let mut condition = Family::gauge("fathom_condition", "", "The outcome of each condition of --fail-if.");
    let mut seen = HashSet::new();
    for Gate { condition: text, result, metric_name, word, .. } in &report.gates {
        let labels = with(
            &labels,
            &[("condition", text.as_str()), ("result", result.as_str()), ("number", metric_name.as_str())],
        );
        // The same condition may have been typed twice.
        if !seen.insert(labels.clone()) {
            continue;
        }
        let outcomes = OUTCOMES.into_iter().map(AnswerWord::word);
        condition.add_states(&labels, "outcome", outcomes, word.word());
    }
    [started, complete, verdict, answer, condition]
}

/// Returns the verdict, rates and latencies of each result.
fn result_gauges(report: &Report) -> [Family; 8] {
    let mut verdict = Family::gauge("fathom_result_verdict", "", "The verdict of a result.");
    let ops = "Operations per second: geometric mean over runs.";
    let bytes = "Bytes per second: geometric mean over runs.";
    let (low, high) = ("Lower end of the 95 % interval.", "Upper end of the 95 % interval.");
    let mut rates = [
        Family::gauge("fathom_operations_per_second", "", ops),
        Family::gauge("fathom_operations_per_second_low", "", low),
        Family::gauge("fathom_operations_per_second_high", "", high),
        Family::gauge("fathom_bytes_per_second", "", bytes),
        Family::gauge("fathom_bytes_per_second_low", "", low),
        Family::gauge("fathom_bytes_per_second_high", "", high),
    ];
    let mut latency = Family::gauge(
        "fathom_latency_seconds",
        "seconds",
        "Latency that this share of the operations did not exceed; absent if too few operations support it.",
    );
    let mut names = UniqueNames::default();
    for result in &report.results {
        let name = names.next(&result.name);
        let labels = with(&report_labels(report, Some(result)), &[("result", name.as_str())]);
        let word = result.verdict.word();
        verdict.add_states(&labels, "verdict", VERDICTS.into_iter().map(Verdict::word), word);
        if result.void {
            continue;
        }
        for (direction, figures) in directions(result) {
            let labels = with(&labels, &[("direction", direction)]);
            let end = |ends: Option<[f64; 2]>, at: usize| ends.map(|ends| ends[at]);
            let bytes = |mb: f64| mb * 1e6;
            let values = [
                Some(figures.iops),
                end(figures.iops_interval, 0),
                end(figures.iops_interval, 1),
                Some(bytes(figures.mb_per_s)),
                end(figures.mb_per_s_interval, 0).map(bytes),
                end(figures.mb_per_s_interval, 1).map(bytes),
            ];
            rates.iter_mut().zip(values).for_each(|(gauge, value)| gauge.add(&labels, value));
            let percentiles = figures.latency_ns.percentiles.iter();
            for (rank, ns) in percentiles.filter_map(|(rank, ns)| Some((rank.parse::<f64>().ok()?, (*ns)?))) {
                // Round, because 99.9 / 100 is not exactly 0.999 in binary.
                let quantile = ((rank * 1e6).round() / 1e8).to_string();
                latency
                    .add(&with(&labels, &[("quantile", quantile.as_str())]), Some(ns as f64 / NS_PER_SECOND));
            }
        }
    }
    let [ops, ops_low, ops_high, bytes, bytes_low, bytes_high] = rates;
    [verdict, ops, ops_low, ops_high, bytes, bytes_low, bytes_high, latency]
}

/// Returns the mean time of each command, with the 95 % interval of the mean.
fn command_gauges(report: &Report) -> [Family; 3] {
    let all = "Wall time of a command: geometric mean over its complete runs.";
    let mut gauges = [
        Family::gauge("fathom_command_seconds", "seconds", all),
        Family::gauge("fathom_command_low_seconds", "seconds", "Lower end of the 95 % interval."),
        Family::gauge("fathom_command_high_seconds", "seconds", "Upper end of the 95 % interval."),
    ];
    if let Studied::Commands(results) = &report.study {
        let mut names = UniqueNames::default();
        for command in &results.commands {
            let name = names.next(&command.command);
            let labels = with(&report_labels(report, None), &[("command", name.as_str())]);
            let ends = command.seconds_interval;
            let values = [command.seconds, ends.map(|ends| ends[0]), ends.map(|ends| ends[1])];
            gauges.iter_mut().zip(values).for_each(|(gauge, value)| gauge.add(&labels, value));
        }
    }
    gauges
}

/// Milliseconds per second.
const MS_PER_SECOND: f64 = 1000.0;

/// A metric of a device, computed from `/sys/block/NAME/stat`.
struct DeviceMetric {
    name: &'static str,
    /// The base unit, with which the name ends; empty for a count.
    unit: &'static str,
    help: &'static str,
    value: fn(&BlockStat) -> Option<f64>,
}

const fn metric(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&BlockStat) -> Option<f64>,
) -> DeviceMetric {
    DeviceMetric { name, unit, help, value }
}

/// All counters, named like those of node_exporter.
const COUNTERS: [DeviceMetric; 16] = [
    metric("fathom_disk_reads_completed", "", "Reads completed.", |c| Some(c.read.ios as f64)),
    metric("fathom_disk_reads_merged", "", "Reads merged into others.", |c| Some(c.read.merges as f64)),
    metric("fathom_disk_read_bytes", "bytes", "Bytes read.", |c| Some(c.read.bytes as f64)),
    metric("fathom_disk_read_time_seconds", "seconds", "Time of all reads together.", |c| {
        Some(c.read.ms as f64 / MS_PER_SECOND)
    }),
    metric("fathom_disk_writes_completed", "", "Writes completed.", |c| Some(c.write.ios as f64)),
    metric("fathom_disk_writes_merged", "", "Writes merged into others.", |c| Some(c.write.merges as f64)),
    metric("fathom_disk_written_bytes", "bytes", "Bytes written.", |c| Some(c.write.bytes as f64)),
    metric("fathom_disk_write_time_seconds", "seconds", "Time of all writes together.", |c| {
        Some(c.write.ms as f64 / MS_PER_SECOND)
    }),
    metric("fathom_disk_discards_completed", "", "Discards completed.", |c| Some(c.discard?.ios as f64)),
    metric("fathom_disk_discards_merged", "", "Discards merged into others.", |c| {
        Some(c.discard?.merges as f64)
    }),
    metric("fathom_disk_discarded_bytes", "bytes", "Bytes discarded.", |c| Some(c.discard?.bytes as f64)),
    metric("fathom_disk_discard_time_seconds", "seconds", "Time of all discards together.", |c| {
        Some(c.discard?.ms as f64 / MS_PER_SECOND)
    }),
    metric("fathom_disk_flush_requests", "", "Flushes completed.", |c| Some(c.flush?.ios as f64)),
    metric("fathom_disk_flush_requests_time_seconds", "seconds", "Time of all flushes together.", |c| {
        Some(c.flush?.ms as f64 / MS_PER_SECOND)
    }),
    metric(
        "fathom_disk_io_time_weighted_seconds",
        "seconds",
        "Time in flight of all requests together.",
        |c| Some(c.queue_ms as f64 / MS_PER_SECOND),
    ),
    metric(
        "fathom_disk_io_time_seconds",
        "seconds",
        "Time with at least one request in flight: not the utilization of a device that serves several requests at once.",
        |c| Some(c.busy_ms as f64 / MS_PER_SECOND),
    ),
];

fn write_watched(watched: &Watched, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let counters = COUNTERS.iter().map(|counter| device_family(watched, MetricType::Counter, counter));
    let in_flight = metric("fathom_disk_io_now", "", "Requests in flight.", |c| Some(c.in_flight as f64));
    let in_flight = device_family(watched, MetricType::Gauge, &in_flight);
    let gauges = [in_flight, load_gauge(watched), latency_gauge(watched)];
    counters.chain(gauges).try_for_each(|family| family.write(to))?;
    to.write_all(EOF)
}

/// Returns a metric family with a sample for each device whose value is known.
fn device_family(watched: &Watched, kind: MetricType, metric: &DeviceMetric) -> Family {
    let mut out = Family { kind, ..Family::gauge(metric.name, metric.unit, metric.help) };
    for device in &watched.devices {
        out.add(&device_label(device), device.counters.as_ref().and_then(metric.value));
    }
    out
}

fn device_label(device: &WatchedDevice) -> Labels {
    vec![("device", device.name.clone())]
}

fn load_gauge(watched: &Watched) -> Family {
    let mut out = Family::gauge(
        "fathom_disk_load_ratio",
        "ratio",
        "Load of the last interval as a share of the capacity that fathom measured on this device.",
    );
    for device in &watched.devices {
        let Some(Ok(load)) = &device.load else { continue };
        for (bound, percent) in [("at_least", Some(load.at_least_percent)), ("at_most", load.at_most_percent)]
        {
            let labels = with(&device_label(device), &[("bound", bound)]);
            out.add(&labels, percent.map(|percent| percent / 100.0));
        }
    }
    out
}

/// Returns the latencies of the last interval from the kernel's block events; unknown ones are omitted.
fn latency_gauge(watched: &Watched) -> Family {
    let mut out = Family::gauge(
        "fathom_disk_interval_latency_seconds",
        "seconds",
        "Latency that this share of the requests in the last interval did not exceed.",
    );
    for device in &watched.devices {
        let Some(Ok(all)) = &device.latency else { continue };
        for (direction, latency) in all.all() {
            for (share, ms) in
                [("0.5", latency.p50_ms), ("0.99", latency.p99_ms), ("1", Some(latency.max_ms))]
            {
                let labels = with(&device_label(device), &[("direction", direction), ("share", share)]);
                out.add(&labels, ms.map(|ms| ms / MS_PER_SECOND));
            }
        }
    }
    out
}

#[test]
fn counters_are_totals_in_base_units_and_uncounted_metrics_are_omitted() -> io::Result<()> {
    let text = |watched: &Watched| -> io::Result<String> {
        let mut bytes = Vec::new();
        write_watched(watched, Style::default(), &mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_default())
    };
    let mut watched = crate::fixture::watched();
    let all = text(&watched)?;
    let expected = "# TYPE fathom_disk_read_time_seconds counter\n# UNIT fathom_disk_read_time_seconds seconds\n\
                    # HELP fathom_disk_read_time_seconds Time of all reads together.\n\
                    fathom_disk_read_time_seconds_total{device=\"loop0\"} 0.005\n";
    assert!(all.contains(expected), "{all}");
    assert!(all.contains("fathom_disk_read_bytes_total{device=\"vda\"} 40960\n"), "{all}");
    assert!(all.contains("fathom_disk_load_ratio{device=\"loop0\",bound=\"at_most\"} 0.4\n"), "{all}");
    let p99 =
        "fathom_disk_interval_latency_seconds{device=\"loop0\",direction=\"read\",share=\"0.99\"} 0.00031\n";
    assert!(all.contains(p99), "{all}");
    assert!(!all.contains("direction=\"flush\",share=\"0.99\""), "{all}");
    assert!(all.ends_with("\n# EOF\n") && all.matches("# EOF").count() == 1);
    // The name ends with the unit.
    assert!(COUNTERS.iter().all(|m| m.name.ends_with(m.unit)));
    for device in &mut watched.devices {
        device.counters = BlockStat::parse("1 2 3 4 5 6 7 8 9 10 11").ok();
        device.load = Some(Err("limit unknown".into()));
        device.latency = Some(Err("lost".into()));
    }
    watched.devices[0].name = "a\"\\b".into();
    let old = text(&watched)?;
    assert!(
        !old.contains("discard")
            && !old.contains("flush")
            && !old.contains("load")
            && !old.contains("latency"),
        "{old}"
    );
    assert!(old.contains("{device=\"a\\\"\\\\b\"} 1\n"), "{old}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tried = Result<(), Box<dyn std::error::Error>>;
    type Pairs = Vec<(String, String)>;
    /// Family, labels and value.
    type Sample = (String, Pairs, f64);

    fn text(report: &Report) -> Result<String, Box<dyn std::error::Error>> {
        let mut bytes = Vec::new();
        write_report(report, Style::default(), &mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }

    /// Splits a sample into its family, its labels and its value, as a parser of either format does.
    fn sample(line: &str) -> Option<(&str, Pairs, f64)> {
        let (family, rest) = line.split_once('{')?;
        let mut letters = rest.chars();
        let (mut labels, mut name) = (Vec::new(), String::new());
        while let Some(letter) = letters.next() {
            match letter {
                '}' => break,
                ',' => name.clear(),
                '=' => {
                    (letters.next()? == '"').then_some(())?;
                    let mut value = String::new();
                    loop {
                        match letters.next()? {
                            '"' => break,
                            '\\' => value.push(match letters.next()? {
                                'n' => '\n',
                                same @ ('"' | '\\') => same,
                                _ => return None,
                            }),
                            letter => value.push(letter),
                        }
                    }
                    labels.push((name.clone(), value));
                }
                letter => name.push(letter),
            }
        }
        Some((family, labels, letters.as_str().strip_prefix(' ')?.parse().ok()?))
    }

    /// Checks the grammar that both parsers share, and returns the samples.
    fn samples(text: &str) -> Result<Vec<Sample>, String> {
        let mut out = Vec::new();
        let (mut families, mut seen) = (HashSet::new(), HashSet::new());
        let (mut family, mut step) = (String::new(), "");
        let body = text.strip_suffix("# EOF\n").ok_or("the last line is not # EOF")?;
        for line in body.lines() {
            let parts: Vec<&str> = line.splitn(4, ' ').collect();
            match parts.as_slice() {
                ["#", "TYPE", name, "gauge"] if step != "TYPE" && step != "UNIT" => {
                    family = (*name).to_owned();
                    step = "TYPE";
                    if !families.insert(family.clone()) {
                        return Err(format!("{family} is in two pieces"));
                    }
                }
                ["#", "UNIT", name, unit]
                    if *name == family && step == "TYPE" && name.ends_with(&format!("_{unit}")) =>
                {
                    step = "UNIT";
                }
                ["#", "HELP", name, help]
                    if *name == family && (step == "TYPE" || step == "UNIT") && !help.contains('\\') =>
                {
                    step = "HELP";
                }
                _ => {
                    let (name, labels, value) = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
                    let in_order = name == family && (step == "HELP" || step == "sample");
                    if !in_order || !seen.insert((name.to_owned(), labels.clone())) {
                        return Err(format!("out of order or there twice: {line}"));
                    }
                    step = "sample";
                    out.push((name.to_owned(), labels, value));
                }
            }
        }
        Ok(out)
    }

    fn golden(name: &str) -> Result<Report, Box<dyn std::error::Error>> {
        let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    #[test]
    fn every_family_starts_with_type_and_help_and_samples_are_unique() -> Tried {
        let mut report = golden("valid")?;
        report.results.push(report.results[0].clone());
        report.title = "a \"b\"\\\nc".into();
        let all = samples(&text(&report)?)?;
        let title = ("title".to_owned(), report.title.clone());
        assert!(all.iter().all(|(_, labels, _)| labels.contains(&title)), "{all:?}");
        let named = |name: &str| all.iter().filter(|(family, ..)| family == name).collect::<Vec<_>>();
        let iops = report.results[0].read.as_ref().ok_or("no reads")?.iops;
        let (_, labels, value) = named("fathom_operations_per_second")[0];
        assert!((value - iops).abs() < 1e-6, "{value} {iops}");
        assert!(labels.contains(&("target".into(), "/data".into())), "{labels:?}");
        let second = ("result".to_owned(), format!("{} #2", report.results[0].name));
        assert!(all.iter().any(|(_, labels, _)| labels.contains(&second)));
        let quantiles: HashSet<&str> = named("fathom_latency_seconds")
            .iter()
            .filter_map(|(_, labels, _)| labels.iter().find(|(name, _)| name == "quantile"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert!(quantiles.contains("0.99") && quantiles.contains("0.999"), "{quantiles:?}");
        let sum: f64 = named("fathom_verdict").iter().map(|(.., value)| value).sum();
        assert_eq!((named("fathom_verdict").len(), sum), (3, 1.0));
        assert!(named("fathom_started_timestamp_seconds")[0].2 > 1.7e9);
        Ok(())
    }

    #[test]
    fn a_result_without_a_number_has_only_its_verdict() -> Tried {
        let mut report = golden("invalid")?;
        report.results.iter_mut().for_each(|result| result.void = true);
        let all = samples(&text(&report)?)?;
        let of_results = all.iter().filter(|(_, labels, _)| labels.iter().any(|(name, _)| name == "result"));
        assert!(of_results.clone().count() > 0);
        assert!(of_results.clone().all(|(family, ..)| family == "fathom_result_verdict"), "{all:?}");
        samples(&text(&golden("cut")?)?)?;
        Ok(())
    }
}
