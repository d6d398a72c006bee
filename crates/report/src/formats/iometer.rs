//! The format `iometer-csv`: Iometer's result file.
//!
//! Each test has a row for everything together. Then each manager has rows for itself, its CPUs, each worker and each
//! target of a worker. Columns about packets, and values that were not counted, are empty. In rows with figures, the number
//! of connections, their rate, and their average and maximum time are 0. Raw times are in ns; the column "Processor Speed"
//! gives their unit. A transaction is a request with its reply. Source: Iometer 1.1.0, the header of its result files and
//! its User's Guide.

use super::diskspd::{groups, whole_kind};
use super::local_time;
use crate::{Content, Format};
use jiff::SignedDuration;
use model::figures::{Observed, ObservedCpu, ObservedLaneKind};
use model::job::Kind;
use model::report::{Measured, Report};
use model::spec::TypedResult;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The name of the format.
pub const NAME: &str = "iometer-csv";
/// The version of Iometer whose format fathom writes.
const VERSION: &str = "1.1.0";
/// Columns of the file.
pub(super) const HEADER: &str = "'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,Write IOps,MiBps (Binary),Read MiBps (Binary),Write MiBps (Binary),MBps (Decimal),Read MBps (Decimal),Write MBps (Decimal),Transactions per Second,Connections per Second,Average Response Time,Average Read Response Time,Average Write Response Time,Average Transaction Time,Average Connection Time,Maximum Response Time,Maximum Read Response Time,Maximum Write Response Time,Maximum Transaction Time,Maximum Connection Time,Errors,Read Errors,Write Errors,Bytes Read,Bytes Written,Read I/Os,Write I/Os,Connections,Transactions per Connection,Total Raw Read Response Time,Total Raw Write Response Time,Total Raw Transaction Time,Total Raw Connection Time,Maximum Raw Read Response Time,Maximum Raw Write Response Time,Maximum Raw Transaction Time,Maximum Raw Connection Time,Total Raw Run Time,Starting Sector,Maximum Size,Queue Depth,% CPU Utilization,% User Time,% Privileged Time,% DPC Time,% Interrupt Time,Processor Speed,Interrupts per Second,CPU Effectiveness,Packets/Second,Packet Errors,Segments Retransmitted/Second,0 to 50 uS,50 to 100 uS,100 to 200 uS,200 to 500 uS,0.5 to 1 mS,1 to 2 mS,2 to 5 mS,5 to 10 mS,10 to 15 mS,15 to 20 mS,20 to 30 mS,30 to 50 mS,50 to 100 mS,100 to 200 mS,200 to 500 mS,0.5 to 1 S,1 to 2 s,2 to 4.7 s,4.7 to 5 s,5 to 10 s, >= 10 s";
/// Lower limits of the latency bins, in us.
const BINS_US: [u64; 21] = [
    0, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000, 2_000_000, 4_700_000, 5_000_000, 10_000_000,
];
/// Nanoseconds per second: raw times are in ns.
const NS_PER_SECOND: u64 = 1_000_000_000;
/// Values of the default assignment of an access specification. The file has the index of the value.
const DEFAULT_SPECS: [&str; 4] = ["NONE", "ALL", "DISK", "NET"];

pub(super) static FORMAT: Format =
    Format::of_measurements(NAME, "csv", Content::Text, "as Iometer's result file", |report, _, to| {
        write(report, to)
    });

/// A worker of a test.
struct Worker<'r> {
    result: &'r Measured,
    observed: &'r Observed,
}

fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let typed = report.results.iter().find_map(|r| r.observed.as_ref()?.typed.clone()).unwrap_or_default();
    let mut out = preamble(report, &typed);
    let record = file_setting(&typed, "record").unwrap_or("ALL");
    for results in groups(report).into_values() {
        let workers: Vec<Worker> = results
            .into_iter()
            .filter_map(|result| Some(Worker { result, observed: result.observed.as_ref()? }))
            .collect();
        if workers.is_empty() {
            continue;
        }
        out += &format!("'Results\n{HEADER}\n");
        for row in test_rows(report, &workers, record) {
            out += &row;
            out.push('\n');
        }
        let ended = workers.iter().map(|w| w.observed.ended_ns).max().unwrap_or(0);
        out += &format!("'Time Stamp\n{}\n", stamp(report, ended));
    }
    to.write_all((out + "'End Test\n").as_bytes())
}

/// Returns the lines that repeat the test type, the description and the access specifications of
/// the user's file.
fn preamble(report: &Report, typed: &TypedResult) -> String {
    let (kind, about) =
        (file_setting(typed, "test type").unwrap_or("0"), file_setting(typed, "description").unwrap_or(""));
    let mut out = format!(
        "'Test Type,Test Description\n{kind},{}\n'Version\n{VERSION}\n'Time Stamp\n{}\n'Access specifications\n",
        clean_field(about),
        stamp(report, 0)
    );
    for (name, value) in &typed.defaults {
        if name == "specification" {
            let (spec, default) = value.rsplit_once(',').unwrap_or((value, "NONE"));
            let number = DEFAULT_SPECS.iter().position(|d| *d == default).unwrap_or(0);
            out += &format!(
                "'Access specification name,default assignment\n{},{number}\n'size,% of size,% reads,% random,delay,burst,align,reply\n",
                clean_field(spec)
            );
        } else if name == "line" {
            out += &format!("{value}\n");
        }
    }
    out + "'End access specifications\n"
}

/// Returns a setting of the whole Iometer file, such as `record`; `None` if the report lacks it.
fn file_setting<'t>(typed: &'t TypedResult, name: &str) -> Option<&'t str> {
    typed.defaults.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Replaces characters that end a field or a line by blanks.
fn clean_field(text: &str) -> String {
    text.chars().map(|c| if c == ',' || c.is_control() { ' ' } else { c }).collect()
}

/// Formats the time `ns` after the start of the session, such as `2026-11-23 18:00:00:000`. Empty
/// if the start is unknown.
fn stamp(report: &Report, ns: u64) -> String {
    let after = i64::try_from(ns).ok().map(SignedDuration::from_nanos);
    let at = after.and_then(|after| local_time(report, after));
    at.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%S:%3f").to_string())
}

impl Worker<'_> {
    /// Returns an option of the worker as the user's Iometer file states it.
    fn option(&self, name: &str) -> Option<&str> {
        let options = &self.observed.typed.as_ref()?.stream.options;
        options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn name(&self) -> String {
        clean_field(self.option("worker").unwrap_or(&self.result.name))
    }

    fn spec(&self) -> String {
        clean_field(self.option("specification").unwrap_or(&self.result.name))
    }

    /// Whether each request has a reply. Two operations then form a transaction.
    fn has_replies(&self) -> bool {
        let phase = self.result.job.phases.get(self.result.phase as usize);
        let stream = phase.and_then(|p| p.streams.get(self.result.stream as usize));
        stream.is_some_and(|s| s.access.lines.iter().any(|l| l.reply_bytes > 0))
    }

    /// Returns the figures of the target with this index, or of all targets if it is `None`.
    fn figures(&self, target: Option<usize>) -> Figures {
        let lanes = self.observed.lanes.iter().filter(|lane| target.is_none_or(|at| lane.target == at));
        let is_first = target.is_none_or(|at| at == 0);
        let sum_of_kind = |kind: Kind| {
            if !self.observed.lanes.is_empty() {
                return sum(&lanes.clone().filter_map(|l| l.kinds.get(&kind)).collect::<Vec<_>>());
            }
            if is_first { whole_kind(self.observed, kind) } else { ObservedLaneKind::default() }
        };
        let (read, write) = (sum_of_kind(Kind::Read), sum_of_kind(Kind::Write));
        // Errors are counted for each worker, so those of a target are known if the worker has no other target.
        let errors = self.observed.errors.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let known = errors == 0 || target.is_none() || self.observed.targets.len() == 1;
        let seconds = self.observed.window_ns as f64 / NS_PER_SECOND as f64;
        Figures { read, write, seconds, has_replies: self.has_replies(), errors: known.then_some(errors) }
    }
}

/// Sums operations, without time series.
fn sum(kinds: &[&ObservedLaneKind]) -> ObservedLaneKind {
    let bytes = kinds.iter().fold(0, |sum: u64, k| sum.saturating_add(k.bytes));
    let latency = kinds.iter().map(|k| &k.latency).collect();
    ObservedLaneKind { bytes, latency, time_series: Vec::new() }
}

/// The figures of a row.
#[derive(Clone, Debug, Default)]
struct Figures {
    read: ObservedLaneKind,
    write: ObservedLaneKind,
    seconds: f64,
    has_replies: bool,
    /// Errors of both directions; `None` if it is unknown how many of a worker's errors belong to
    /// this row.
    errors: Option<u64>,
}

impl Figures {
    fn plus(&self, other: &Self) -> Self {
        Self {
            read: sum(&[&self.read, &other.read]),
            write: sum(&[&self.write, &other.write]),
            seconds: self.seconds.max(other.seconds),
            has_replies: self.has_replies || other.has_replies,
            errors: self.errors.zip(other.errors).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// The fields around the figures of a row.
#[derive(Clone, Debug, Default)]
struct Row {
    kind: &'static str,
    name: String,
    spec: String,
    /// How many managers, workers and disks the row is about; `None` for an empty field.
    counts: [Option<usize>; 3],
    /// Starting sector, maximum size and queue depth.
    place: [String; 3],
    /// Busy, user and kernel time in percent; `None` for empty fields.
    cpu: Option<[f64; 3]>,
    /// Whether the row has raw times.
    has_raw_times: bool,
}

/// Returns the figures of all workers, and the name of their access specification: empty if the workers have different ones.
fn combine(workers: &[&Worker]) -> (Figures, String) {
    let all = workers.iter().map(|w| w.figures(None)).reduce(|sum, next| sum.plus(&next));
    let specs: BTreeSet<String> = workers.iter().map(|w| w.spec()).collect();
    (all.unwrap_or_default(), if specs.len() == 1 { specs.into_iter().collect() } else { String::new() })
}

/// Returns all rows of a test.
fn test_rows(report: &Report, workers: &[Worker], record: &str) -> Vec<String> {
    let Some(first) = workers.first() else { return Vec::new() };
    if record == "NONE" {
        return Vec::new();
    }
    let mut managers: BTreeMap<Option<usize>, Vec<&Worker>> = BTreeMap::new();
    for worker in workers {
        let number = worker.option("manager number").and_then(|number| number.parse().ok());
        managers.entry(number).or_default().push(worker);
    }
    let (all, spec) = combine(&workers.iter().collect::<Vec<_>>());
    let disks = workers.iter().map(|w| w.observed.targets.len()).sum();
    let counts = [Some(managers.len()), Some(workers.len()), Some(disks)];
    let cpu = mean_cpu_percents(&first.observed.cpus);
    let row = Row { kind: "ALL", name: "All".into(), spec, counts, cpu, ..Row::default() };
    let mut out = vec![line(&row, Some(&all))];
    if record != "NO_MANAGERS" {
        out.extend(managers.values().flat_map(|workers| manager_rows(report, workers, record)));
    }
    out
}

/// Returns the rows of a manager: the manager itself, the CPUs of its host, its workers, and their targets.
fn manager_rows(report: &Report, workers: &[&Worker], record: &str) -> Vec<String> {
    let Some(first) = workers.first() else { return Vec::new() };
    let (all, spec) = combine(workers);
    let disks = workers.iter().map(|w| w.observed.targets.len()).sum();
    let name = clean_field(first.option("manager").unwrap_or(&report.machine.host));
    let (counts, cpu) = ([None, Some(workers.len()), Some(disks)], mean_cpu_percents(&first.observed.cpus));
    let row = Row { kind: "MANAGER", name, spec, counts, cpu, has_raw_times: true, ..Row::default() };
    let mut out = vec![line(&row, Some(&all))];
    for cpu in &first.observed.cpus {
        let row = Row {
            kind: "PROCESSOR",
            name: format!("CPU {}", cpu.cpu),
            cpu: Some(cpu_percents(cpu)),
            ..Row::default()
        };
        out.push(line(&row, None));
    }
    for worker in workers.iter().filter(|_| record != "NO_WORKERS") {
        let place = ["first sector", "sectors", "outstanding"]
            .map(|name| worker.option(name).unwrap_or("").to_owned());
        let (spec, targets) = (worker.spec(), worker.observed.targets.len());
        let row = Row {
            kind: "WORKER",
            name: worker.name(),
            spec: spec.clone(),
            counts: [None, None, Some(targets)],
            place: place.clone(),
            cpu: None,
            has_raw_times: true,
        };
        out.push(line(&row, Some(&worker.figures(None))));
        for (at, target) in worker.observed.targets.iter().enumerate().filter(|_| record != "NO_TARGETS") {
            let row = Row {
                kind: "DISK",
                name: clean_field(&target.path),
                spec: spec.clone(),
                place: place.clone(),
                has_raw_times: true,
                ..Row::default()
            };
            // A worker may access several targets in one lane, which does not count them
            // separately.
            let known = targets == 1 || worker.observed.lanes.len() >= targets;
            out.push(line(&row, known.then(|| worker.figures(Some(at))).as_ref()));
        }
    }
    out
}

/// Returns busy, user and kernel time in percent.
fn cpu_percents(cpu: &ObservedCpu) -> [f64; 3] {
    let all = (cpu.user + cpu.kernel + cpu.idle).max(1) as f64;
    [cpu.user + cpu.kernel, cpu.user, cpu.kernel].map(|ticks| 100.0 * ticks as f64 / all)
}

fn mean_cpu_percents(cpus: &[ObservedCpu]) -> Option<[f64; 3]> {
    let sums = cpus.iter().map(cpu_percents).reduce(|a, b| [0, 1, 2].map(|i| a[i] + b[i]))?;
    Some(sums.map(|sum| sum / cpus.len() as f64))
}

/// Returns a row, with empty fields for unknown values.
fn line(row: &Row, figures: Option<&Figures>) -> String {
    let count = |n: Option<usize>| n.map_or_else(String::new, |n| n.to_string());
    let mut fields = vec![row.kind.to_owned(), row.name.clone(), row.spec.clone()];
    fields.extend(row.counts.map(count));
    match figures {
        Some(figures) => fields.extend(measured_fields(figures, row.has_raw_times)),
        // The measured fields take 39 columns, from the rate to the measured time.
        None => fields.extend(std::iter::repeat_n(String::new(), 39)),
    }
    fields.extend(row.place.iter().cloned());
    let cpu = row
        .cpu
        .map_or_else(|| [const { String::new() }; 3], |cpu| cpu.map(|percent| format!("{percent:.6}")));
    fields.extend(cpu);
    // DPC time and interrupt time are empty, because fathom counts interrupts as kernel time. Interrupts per second are empty, too.
    fields.extend([String::new(), String::new()]);
    fields.push(if row.has_raw_times { NS_PER_SECOND.to_string() } else { String::new() });
    fields.push(String::new());
    let effectiveness = figures.zip(row.cpu).filter(|(_, cpu)| cpu[0] > 0.0);
    fields.push(effectiveness.map_or_else(String::new, |(f, cpu)| {
        let ops = (f.read.latency.count + f.write.latency.count) as f64;
        format!("{:.6}", ops / f.seconds.max(f64::MIN_POSITIVE) / cpu[0])
    }));
    fields.extend(std::iter::repeat_n(String::new(), 3));
    let bin = |at: usize| match figures {
        Some(f) => {
            let from = BINS_US[at].saturating_mul(1000);
            let to = BINS_US.get(at + 1).map_or(u64::MAX, |us| us.saturating_mul(1000));
            let [reads, writes] = [&f.read, &f.write].map(|all| all.latency.count_between(from, to));
            reads.saturating_add(writes).to_string()
        }
        None => String::new(),
    };
    fields.extend((0..BINS_US.len()).map(bin));
    fields.join(",")
}

/// Returns the fields from the rate (IOps) to the measured time (Total Raw Run Time).
fn measured_fields(figures: &Figures, has_raw_times: bool) -> Vec<String> {
    let Figures { read, write, seconds, has_replies, errors } = figures;
    let all = sum(&[read, write]);
    let three = [&all, read, write];
    let seconds_or_one = if *seconds > 0.0 { *seconds } else { 1.0 };
    let float = |value: f64| format!("{value:.6}");
    let per_second = |n: f64| float(n / seconds_or_one);
    let ms = |ns: f64| float(ns / 1e6);
    let mut out: Vec<String> = three.map(|s| per_second(s.latency.count as f64)).to_vec();
    out.extend(three.map(|s| per_second(s.bytes as f64 / 1_048_576.0)));
    out.extend(three.map(|s| per_second(s.bytes as f64 / 1e6)));
    // Without replies, each operation is a transaction. With replies, two operations are one
    // transaction, and its times are unknown.
    let plain = !has_replies;
    let of_plain = |value: String| if plain { value } else { String::new() };
    let transactions = all.latency.count as f64 / if plain { 1.0 } else { 2.0 };
    out.extend([per_second(transactions), float(0.0)]);
    out.extend(three.map(|s| ms(s.latency.mean_ns)));
    out.extend([of_plain(ms(all.latency.mean_ns)), float(0.0)]);
    out.extend(three.map(|s| ms(s.latency.max_ns as f64)));
    out.extend([of_plain(ms(all.latency.max_ns as f64)), float(0.0)]);
    let known = errors.map_or_else(String::new, |n| n.to_string());
    // Errors are not counted by direction.
    let each = if *errors == Some(0) { "0".to_owned() } else { String::new() };
    out.extend([known, each.clone(), each]);
    out.extend([read.bytes, write.bytes, read.latency.count, write.latency.count, 0].map(|n| n.to_string()));
    out.push(String::new());
    if !has_raw_times {
        out.extend(std::iter::repeat_n(String::new(), 9));
        return out;
    }
    let integer = |ns: f64| format!("{ns:.0}");
    let total = |kind: &ObservedLaneKind| integer(kind.latency.mean_ns * kind.latency.count as f64);
    out.extend([total(read), total(write), of_plain(total(&all)), "0".into()]);
    out.extend([read.latency.max_ns.to_string(), write.latency.max_ns.to_string()]);
    out.extend([
        of_plain(all.latency.max_ns.to_string()),
        "0".into(),
        integer(seconds * NS_PER_SECOND as f64),
    ]);
    out
}

#[test]
fn each_row_has_a_field_for_each_column() {
    let columns = HEADER.split(',').count();
    assert_eq!((columns, BINS_US.len()), (80, 21));
    let mut histogram = model::histogram::Histogram::new();
    for ns in [40_000, 60_000, 20_000_000_000] {
        histogram.record(ns);
    }
    let read = ObservedLaneKind { bytes: 3 << 20, latency: (&histogram).into(), time_series: Vec::new() };
    let write = ObservedLaneKind::default();
    let figures = Figures { read, write, seconds: 2.0, has_replies: false, errors: Some(0) };
    for has_raw_times in [true, false] {
        let row = Row { kind: "WORKER", has_raw_times, cpu: Some([50.0, 20.0, 30.0]), ..Row::default() };
        let line = line(&row, Some(&figures));
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), columns, "{line}");
        let at = |name: &str| fields[HEADER.split(',').position(|c| c == name).unwrap_or(0)];
        assert_eq!((at("IOps"), at("Read MiBps (Binary)"), at("Read I/Os")), ("1.500000", "1.500000", "3"));
        assert_eq!((at("0 to 50 uS"), at("50 to 100 uS"), at(" >= 10 s")), ("1", "1", "1"));
        assert_eq!((at("% CPU Utilization"), at("CPU Effectiveness")), ("50.000000", "0.030000"));
        assert_eq!(at("Total Raw Run Time"), if has_raw_times { "2000000000" } else { "" });
        assert_eq!((at("Errors"), at("Write Errors"), at("Packets/Second")), ("0", "0", ""));
    }
    assert_eq!(line(&Row::default(), None).split(',').count(), columns);
}

#[test]
fn errors_of_workers_that_measured_nothing_are_summed() -> Result<(), Box<dyn std::error::Error>> {
    let report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    let result = report.results.first().ok_or("no result")?;
    let observed = Observed { errors: [(5, 1)].into(), ..Observed::default() };
    let worker = Worker { result, observed: &observed };
    assert_eq!(combine(&[&worker, &worker]).0.errors, Some(2));
    Ok(())
}
