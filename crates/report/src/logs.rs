//! Logs with a line for each operation or interval: the log files that a plan requests, and the
//! requests of a capture.
//!
//! - fathom's log as CSV (RFC 4180): a row per operation, or per interval, worker and kind. Times
//!   are in ns from the start of the phase, including warm-up; an empty field is unknown.
//! - The files of fio's `write_lat_log`, `write_bw_log`, `write_iops_log`, `write_hist_log` and
//!   `write_iolog`, with the names, columns and units of fio 3.33 (its HOWTO, "Log File Formats",
//!   and stat.c). One difference: averages cover intervals of equal length, counted from the start
//!   of the measurement. In fio, an interval ends with the first operation that completes after
//!   the interval's length, and the next interval begins there.
//! - [`EventLine`]: a request of a capture as a line of text or CSV.

use csv::{Terminator, WriterBuilder};
use model::captured::Op;
use model::figures::{Interval, Operation, Rows, WorkerLog};
use model::job::{IoPriority, Kind};
use model::plan::Plan;
use model::spec::{LogKind, LogValue, Logs};
use std::collections::BTreeMap;
use std::io::Write;

/// A log file that a plan requests.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// Where the log is written; `model::name::path` turns this text into a path.
    pub path: String,
    what: LogContent,
}

#[derive(Clone, Debug)]
enum LogContent {
    /// All operations, or the figures of all intervals, as CSV. Has the names of the results, indexed by job, phase and stream.
    Csv(Vec<Vec<Vec<String>>>),
    Fio(FioLog),
}

/// Returns the log files that a plan requests.
pub fn log_files(plan: &Plan) -> Vec<LogFile> {
    let own = plan.op_log.iter().map(|path| {
        let names = plan.jobs.iter().map(|job| {
            let phases = job.phases.iter().enumerate();
            let of_phase = |(at, phase): (usize, &model::job::Phase)| {
                (0..phase.streams.len()).map(|stream| job.result_name(at, stream)).collect()
            };
            phases.map(of_phase).collect()
        });
        LogFile { path: path.clone(), what: LogContent::Csv(names.collect()) }
    });
    let typed = fio_logs(plan).into_iter().map(|(path, file)| LogFile { path, what: LogContent::Fio(file) });
    own.chain(typed).collect()
}

impl LogFile {
    /// Returns the content of the file, from the logs of all workers.
    pub fn content(&self, logs: &[WorkerLog]) -> Vec<u8> {
        match &self.what {
            LogContent::Csv(names) => csv_content(names, logs),
            LogContent::Fio(file) => file.content(logs),
        }
    }
}

const CSV_HEADINGS: [&str; 12] = [
    "run",
    "name",
    "worker",
    "direction",
    "end_ns",
    "operations",
    "bytes",
    "mean_latency_ns",
    "max_latency_ns",
    "mean_service_ns",
    "target",
    "offset",
];

/// Returns all logs, one after another. `names[job][phase][stream]` is the name of a result.
fn csv_content(names: &[Vec<Vec<String>>], logs: &[WorkerLog]) -> Vec<u8> {
    let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = out.write_record(CSV_HEADINGS);
    for log in logs {
        let name = names.get(log.job).and_then(|job| job.get(log.phase)?.get(log.stream));
        let name = name.map_or("", String::as_str);
        let who = [log.run.to_string(), name.to_owned(), log.number.to_string()];
        match &log.rows {
            Rows::Each(all) => all.iter().for_each(|one| {
                let _ = out.write_record(who.iter().chain(&operation_fields(one)));
            }),
            Rows::Intervals(intervals) => intervals.all.iter().for_each(|one| {
                let _ = out.write_record(who.iter().chain(&interval_fields(one)));
            }),
        }
    }
    out.into_inner().unwrap_or_default()
}

fn operation_fields(one: &Operation) -> [String; 9] {
    [
        one.kind.word().into(),
        one.end_ns.to_string(),
        "1".into(),
        one.length.to_string(),
        one.latency_ns.to_string(),
        one.latency_ns.to_string(),
        one.service_ns.to_string(),
        one.file.to_string(),
        one.offset.to_string(),
    ]
}

fn interval_fields(one: &Interval) -> [String; 9] {
    [
        one.kind.word().into(),
        one.end_ns.to_string(),
        one.operations.to_string(),
        one.bytes.to_string(),
        (one.latency_ns / one.operations.max(1)).to_string(),
        one.max_ns.to_string(),
        String::new(),
        String::new(),
        String::new(),
    ]
}

const MS_NS: u64 = 1_000_000;
/// fio has 2^6 latency buckets for each power of two (stat.h).
const BUCKET_BITS: u32 = 6;
/// Number of fio's latency buckets (stat.h).
const BUCKETS: usize = 29 << BUCKET_BITS;

/// A log file of fio: its kind, and the workers in it.
#[derive(Clone, Debug)]
struct FioLog {
    logs: Logs,
    kind: LogKind,
    /// fio's serial number of each worker whose operations are in the file, from 1, with the paths of
    /// the worker's targets.
    workers: Vec<(u32, Vec<String>)>,
    /// Start of the measurement, in ns since the start of the phase: when both delay and ramp are
    /// over, as in fio.
    from_ns: u64,
    io_priority: Option<IoPriority>,
    /// Priorities that only some operations have. [`LogLine::op_priority_index`] selects one.
    op_priorities: Vec<IoPriority>,
}

/// Returns the requested files with their names.
fn fio_logs(plan: &Plan) -> Vec<(String, FioLog)> {
    let mut all: Vec<(String, FioLog)> = Vec::new();
    let Some(typed) = &plan.typed else { return all };
    // A plan for fio has one job. fio numbers the workers consecutively over all phases.
    let phases = plan.jobs.first().map_or(&[][..], |job| &job.phases);
    let mut last = 0;
    for (phase, text) in phases.iter().zip(&typed.phases) {
        // In fio, the thread that wrote also reads back. In fathom, a separate stream reads back. Such
        // a stream gets no worker number and no log here.
        let own = phase.streams.iter().zip(text).filter(|(stream, _)| stream.reads_back().is_none());
        for (stream, text) in own {
            let first = last + 1;
            last += stream.workers;
            let Some(logs) = &text.logs else { continue };
            let path = |at: &usize| plan.targets.get(*at).map(|t| t.path.clone());
            let has_typed_paths = logs.paths.len() == stream.targets.len();
            let targets: Vec<String> = if has_typed_paths {
                logs.paths.clone()
            } else {
                stream.targets.iter().filter_map(path).collect()
            };
            for ((kind, prefix), worker) in
                logs.files.iter().flat_map(|file| (first..=last).map(move |worker| (file, worker)))
            {
                let worker_suffix = if logs.together { String::new() } else { format!(".{worker}") };
                let path = match kind {
                    LogKind::Iolog => prefix.clone(),
                    _ => format!("{prefix}_{}{worker_suffix}.log", kind.word()),
                };
                if let Some((_, file)) = all.iter_mut().find(|(other, _)| *other == path) {
                    file.workers.push((worker, targets.clone()));
                    continue;
                }
                let file = FioLog {
                    logs: logs.clone(),
                    kind: *kind,
                    workers: vec![(worker, targets.clone())],
                    from_ns: stream.delay_ns.max(phase.warmup_ns),
                    io_priority: stream.place.io_priority,
                    op_priorities: stream.op_priorities.iter().map(|one| one.priority).collect(),
                };
                all.push((path, file));
            }
        }
    }
    all
}

/// The values of a line in a log of fio.
struct LogLine {
    ms: u64,
    value: u64,
    /// Maximum latency in the interval, in ns. Written only if the log has such a column.
    largest: u64,
    kind: Kind,
    bytes: u64,
    offset: u64,
    issued_ns: u64,
    /// Index of the operation's priority in `op_priorities`, from 1; 0 if the operation has the
    /// priority of its stream.
    op_priority_index: u8,
}

impl FioLog {
    /// Returns the content of the file, from the logs of all workers.
    fn content(&self, logs: &[WorkerLog]) -> Vec<u8> {
        let mut out = Vec::new();
        let of_worker = |log: &WorkerLog| self.workers.iter().find(|(number, _)| *number == log.number);
        for (log, (_, targets)) in logs.iter().filter_map(|log| Some((log, of_worker(log)?))) {
            let epoch_ms = if self.logs.unix_epoch { log.began_unix_ms } else { 0 };
            match self.kind {
                // The log has no lines, because the completion latency includes the submission.
                LogKind::Slat => {}
                LogKind::Iolog => self.write_iolog(&log.rows, targets, &mut out),
                LogKind::ClatHist => self.write_histograms(&log.rows, epoch_ms, &mut out),
                kind => {
                    let lines = match (&log.rows, self.interval_ms()) {
                        (Rows::Each(all), 0) => {
                            all.iter().filter(|o| is_logged(o.kind)).map(|o| self.operation_line(o)).collect()
                        }
                        (rows, ms) => self.interval_lines(rows, ms, kind),
                    };
                    for line in &lines {
                        self.write_line(line, epoch_ms, &mut out);
                    }
                }
            }
        }
        out
    }

    fn interval_ms(&self) -> u64 {
        match self.kind {
            LogKind::Bw => self.logs.bandwidth_ms,
            LogKind::Iops => self.logs.iops_ms,
            _ => self.logs.latency_ms,
        }
    }

    /// Returns the time since the start of the measurement, in ns.
    fn since_start_ns(&self, end_ns: u64) -> u64 {
        end_ns.saturating_sub(self.from_ns)
    }

    fn operation_line(&self, one: &Operation) -> LogLine {
        let bytes = u64::from(one.length);
        let value = match self.kind {
            // The unit is 1000 bytes per second, as in fio, although averaged values are in KiB per second.
            LogKind::Bw => (bytes * 1_000_000).checked_div(one.latency_ns).unwrap_or(0),
            LogKind::Iops => 1,
            _ => one.latency_ns,
        };
        let end_ns = self.since_start_ns(one.end_ns);
        // Like fio, only the log of completion latencies has issue times. In other logs this column
        // is 0.
        let has_issue = self.kind == LogKind::Clat;
        LogLine {
            ms: end_ns / MS_NS,
            value,
            largest: 0,
            kind: one.kind,
            bytes,
            offset: one.offset,
            issued_ns: if has_issue { end_ns.saturating_sub(one.service_ns) } else { 0 },
            op_priority_index: one.share,
        }
    }

    fn interval_lines(&self, rows: &Rows, ms: u64, kind: LogKind) -> Vec<LogLine> {
        let ms = ms.max(1);
        let is_rate = matches!(kind, LogKind::Bw | LogKind::Iops);
        let intervals = rows.intervals(self.from_ns, ms.saturating_mul(MS_NS));
        let last_ms = self.since_start_ns(intervals.last_ns) / MS_NS;
        let line = |i: model::figures::Interval| {
            let end_ms = self.since_start_ns(i.end_ns) / MS_NS;
            // If the job ended within the last interval, leave out the interval's rate, which would be too low. Keep
            // the interval's latency, with the time at which the job ended.
            let is_whole = end_ms <= last_ms + 1;
            if is_rate && !is_whole {
                return None;
            }
            let mean = (i.latency_ns + i.operations / 2).checked_div(i.operations).unwrap_or(0);
            let (value, largest) = match (kind, self.logs.value) {
                (LogKind::Bw, _) => (i.bytes * 1000 / ms / 1024, 0),
                (LogKind::Iops, _) => (i.operations * 1000 / ms, 0),
                (_, LogValue::Largest) => (i.max_ns, 0),
                _ => (mean, i.max_ns),
            };
            // fio writes a rate with a time 1 ms before the end of its interval.
            let ms = if is_rate { end_ms.saturating_sub(1) } else { end_ms.min(last_ms) };
            Some(LogLine {
                ms,
                value,
                largest,
                kind: i.kind,
                bytes: 0,
                offset: 0,
                issued_ns: 0,
                op_priority_index: 0,
            })
        };
        intervals.all.into_iter().filter(|i| is_logged(i.kind)).filter_map(line).collect()
    }

    fn write_line(&self, line: &LogLine, epoch_ms: u64, out: &mut Vec<u8>) {
        let Logs { offset, priority, issue_time, value, .. } = &self.logs;
        // Writing to memory cannot fail.
        let _ = write!(out, "{}, {}", epoch_ms + line.ms, line.value);
        if *value == LogValue::Both {
            let _ = write!(out, ", {}", line.largest);
        }
        let _ = write!(out, ", {}, {}", direction_code(line.kind), line.bytes);
        if *offset {
            let _ = write!(out, ", {}", line.offset);
        }
        let own =
            usize::from(line.op_priority_index).checked_sub(1).and_then(|at| self.op_priorities.get(at));
        let io_priority = own.copied().or(self.io_priority);
        let _ = if *priority {
            write!(out, ", 0x{:04x}", io_priority.map_or(0, IoPriority::number))
        } else {
            write!(out, ", {}", u8::from(matches!(io_priority, Some(IoPriority::Realtime(_)))))
        };
        if *issue_time {
            let _ = write!(out, ", {}", line.issued_ns);
        }
        out.push(b'\n');
    }

    /// Writes the operations in the order of submission, with times in us since the measurement
    /// began. Like fio, leaves out syncs.
    fn write_iolog(&self, rows: &Rows, targets: &[String], out: &mut Vec<u8>) {
        let Rows::Each(all) = rows else { return };
        let issued = |one: &Operation| self.since_start_ns(one.end_ns).saturating_sub(one.service_ns) / 1000;
        let mut all: Vec<&Operation> = all.iter().filter(|o| is_logged(o.kind)).collect();
        all.sort_by_key(|one| issued(one));
        let (first, last) = (all.first().map_or(0, |o| issued(o)), all.last().map_or(0, |o| issued(o)));
        let _ = writeln!(out, "fio version 3 iolog");
        for (action, us) in [("add", 0), ("open", first)] {
            for path in targets {
                let _ = writeln!(out, "{us} {path} {action}");
            }
        }
        for one in all {
            if let Some(path) = targets.get(usize::from(one.file)) {
                let (us, action) = (issued(one), one.kind.word());
                let _ = writeln!(out, "{us} {path} {action} {} {}", one.offset, one.length);
            }
        }
        for path in targets {
            let _ = writeln!(out, "{last} {path} close");
        }
    }

    /// Writes a line for each direction and each window with operations. The last window may be
    /// shorter.
    fn write_histograms(&self, rows: &Rows, epoch_ms: u64, out: &mut Vec<u8>) {
        let Rows::Each(all) = rows else { return };
        let mut windows: BTreeMap<Kind, HistogramWindow> = BTreeMap::new();
        for one in all.iter().filter(|o| is_logged(o.kind)) {
            let ms = self.since_start_ns(one.end_ns) / MS_NS;
            let window = windows.entry(one.kind).or_insert_with(|| HistogramWindow::new(ms));
            window.counts[fio_bucket(one.latency_ns)] += 1;
            (window.bytes, window.last_ms) = (one.length, ms);
            let passed = ms - window.began_ms.min(ms);
            if passed >= self.logs.histogram_ms {
                window.write(epoch_ms, one.kind, self.logs.coarseness, out);
                *window = HistogramWindow::new(ms - (passed - self.logs.histogram_ms));
            }
        }
        for (kind, window) in windows.iter().filter(|(_, window)| window.counts.iter().any(|n| *n > 0)) {
            window.write(epoch_ms, *kind, self.logs.coarseness, out);
        }
    }
}

/// The histogram of the current window.
struct HistogramWindow {
    began_ms: u64,
    last_ms: u64,
    /// Length of the last operation in the window, in bytes.
    bytes: u32,
    counts: Vec<u64>,
}

impl HistogramWindow {
    fn new(began_ms: u64) -> Self {
        Self { began_ms, last_ms: began_ms, bytes: 0, counts: vec![0; BUCKETS] }
    }

    /// Writes the window, with `epoch_ms` added to the time.
    fn write(&self, epoch_ms: u64, kind: Kind, coarseness: u32, out: &mut Vec<u8>) {
        let _ = write!(out, "{}, {}, {}", epoch_ms + self.last_ms, direction_code(kind), self.bytes);
        for some in self.counts.chunks(1 << coarseness.min(BUCKET_BITS)) {
            let _ = write!(out, ", {}", some.iter().sum::<u64>());
        }
        out.push(b'\n');
    }
}

/// Returns fio's bucket of a latency in ns.
fn fio_bucket(ns: u64) -> usize {
    let power = ns.checked_ilog2().unwrap_or(0);
    if power <= BUCKET_BITS {
        return ns as usize;
    }
    let error_bits = power - BUCKET_BITS;
    let base = ((error_bits + 1) << BUCKET_BITS) as usize;
    let offset = ((ns >> error_bits) & ((1 << BUCKET_BITS) - 1)) as usize;
    (base + offset).min(BUCKETS - 1)
}

/// Whether fio logs this kind of operation.
fn is_logged(kind: Kind) -> bool {
    kind != Kind::Sync
}

fn direction_code(kind: Kind) -> u8 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Trim | Kind::Sync => 2,
    }
}

/// Bytes of a sector in the kernel's counts.
const SECTOR: u64 = 512;

/// A request of a capture.
#[derive(Clone, Copy, Debug)]
pub struct EventLine<'r> {
    /// Time of issue, in ns since the start of the capture.
    pub issue_ns: u64,
    /// Time from issue to completion; `None` if the completion was not observed.
    pub latency_ns: Option<u64>,
    /// Time from insertion into the scheduler to issue; `None` if no insertion was recorded.
    pub queued_ns: Option<u64>,
    /// The operation.
    pub op: Op,
    /// Whether this is a flush that a task or file system requested, as opposed to one that the device received.
    pub asked: bool,
    /// The kernel's letters for the operation and its flags, such as `WS`.
    pub letters: &'r str,
    /// Negative `errno`, or 0.
    pub error: i32,
    /// First sector; a sector has 512 bytes.
    pub sector: u64,
    /// Length in sectors of 512 bytes.
    pub sectors: u32,
    /// Name of the task.
    pub task: &'r str,
    /// Thread id.
    pub tid: u32,
    /// Process id, if known.
    pub pid: Option<u32>,
}

impl EventLine<'_> {
    /// Returns the heading of text lines.
    pub fn heading() -> String {
        format!(
            "{:>13} {:>11} {:<6} {:>15} {:>9}  {}\n",
            "issue s", "latency us", "rwbs", "offset", "bytes", "task"
        )
    }

    /// Returns the heading of CSV lines.
    pub fn csv_heading() -> String {
        "issue_ns,latency_ns,queued_ns,op,asked,rwbs,error,offset_bytes,bytes,task,tid,pid\r\n".into()
    }

    /// Returns a text line of at most 80 columns if names are short. Rare values follow the task.
    pub fn text(&self) -> String {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        let latency = self.latency_ns.map_or_else(|| "-".into(), us);
        let queued = self.queued_ns.map_or_else(String::new, |ns| format!(" queued {} us", us(ns)));
        let asked = if self.asked { " asks" } else { "" };
        let error = if self.error == 0 { String::new() } else { format!(" error {}", self.error) };
        format!(
            "{:>13.6} {latency:>11} {:<6} {:>15} {:>9}  {}:{}{asked}{queued}{error}\n",
            self.issue_ns as f64 / 1e9,
            self.letters,
            self.sector.saturating_mul(SECTOR),
            u64::from(self.sectors) * SECTOR,
            self.task,
            self.tid,
        )
    }

    /// Returns a CSV line; unknown values are empty.
    pub fn csv(&self) -> String {
        let known = |figure: Option<u64>| figure.map_or_else(String::new, |figure| figure.to_string());
        format!(
            "{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
            self.issue_ns,
            known(self.latency_ns),
            known(self.queued_ns),
            self.op.word(),
            u8::from(self.asked),
            quote(self.letters),
            self.error,
            self.sector.saturating_mul(SECTOR),
            u64::from(self.sectors) * SECTOR,
            quote(self.task),
            self.tid,
            known(self.pid.map(u64::from)),
        )
    }
}

/// Returns a CSV field, quoted if necessary (RFC 4180).
fn quote(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[test]
fn operations_and_intervals_have_the_same_columns() {
    let kind = model::job::Kind::Read;
    let log = |rows| WorkerLog { run: 1, job: 0, phase: 0, stream: 0, number: 2, began_unix_ms: 0, rows };
    let mut each = Rows::new(0, 0);
    let one = Operation {
        end_ns: 9,
        latency_ns: 4,
        service_ns: 3,
        offset: 512,
        length: 8,
        file: 1,
        kind,
        share: 0,
    };
    each.append(&[one, Operation { latency_ns: 8, ..one }]);
    let names = [vec![vec!["a, b".to_owned()]]];
    let text = |rows| String::from_utf8(csv_content(&names, &[log(rows)])).unwrap_or_default();
    let intervals = Rows::Intervals(each.intervals(0, 10));
    assert_eq!(text(each).lines().nth(2), Some("1,\"a, b\",2,read,9,1,8,8,8,3,1,512"));
    assert_eq!(text(intervals).lines().nth(1), Some("1,\"a, b\",2,read,10,2,16,6,8,,,"));
}

#[test]
fn a_request_is_one_line_of_text_and_of_csv() {
    let line = EventLine {
        issue_ns: 1_500_000_000,
        latency_ns: Some(85_300),
        queued_ns: None,
        op: Op::Write,
        asked: false,
        letters: "FWFSM",
        error: -5,
        sector: 229_396,
        sectors: 2,
        task: "a,\"b\"",
        tid: 7,
        pid: None,
    };
    let text = line.text();
    assert!(text.contains("1.500000 ") && text.contains("85.3") && text.ends_with("a,\"b\":7 error -5\n"));
    assert_eq!(line.csv(), "1500000000,85300,,write,0,FWFSM,-5,117450752,1024,\"a,\"\"b\"\"\",7,\r\n");
    assert_eq!(EventLine::csv_heading().matches(',').count(), 11);
    let unseen = EventLine { latency_ns: None, asked: true, error: 0, task: "postgres", ..line };
    assert!(unseen.text().contains(" - ") && unseen.text().ends_with("postgres:7 asks\n"));
    assert!(unseen.text().trim_end().len() <= 80 && EventLine::heading().trim_end().len() <= 80);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example_log(operations: &[(u64, u64, Kind)]) -> WorkerLog {
        let mut rows = Rows::new(0, 0);
        let each = |(end_ns, latency_ns, kind): &(u64, u64, Kind)| Operation {
            end_ns: *end_ns,
            latency_ns: *latency_ns,
            service_ns: *latency_ns,
            offset: 8192,
            length: 4096,
            file: 0,
            kind: *kind,
            share: u8::from(*kind == Kind::Write),
        };
        rows.append(&operations.iter().map(each).collect::<Vec<_>>());
        WorkerLog { run: 1, job: 0, phase: 0, stream: 0, number: 1, began_unix_ms: 1_000_000, rows }
    }

    fn content(kind: LogKind, logs: Logs, log: &WorkerLog) -> String {
        let workers = vec![(1, vec!["/f".into()])];
        let op_priorities = vec![IoPriority::Realtime(3)];
        let file = FioLog { logs, kind, workers, from_ns: 0, io_priority: None, op_priorities };
        String::from_utf8(file.content(std::slice::from_ref(log))).unwrap_or_default()
    }

    #[test]
    fn each_operation_has_the_requested_columns() {
        let log = example_log(&[(1_500_000, 50_000, Kind::Write), (2_000_000, 1, Kind::Sync)]);
        let plain = Logs::default();
        assert_eq!(content(LogKind::Lat, plain.clone(), &log), "1, 50000, 1, 4096, 1\n");
        assert_eq!(content(LogKind::Bw, plain.clone(), &log), "1, 81920, 1, 4096, 1\n");
        assert_eq!(content(LogKind::Iops, plain.clone(), &log), "1, 1, 1, 4096, 1\n");
        assert_eq!(content(LogKind::Slat, plain, &log), "");
        let all =
            Logs { offset: true, priority: true, issue_time: true, unix_epoch: true, ..Logs::default() };
        let line = "1000001, 50000, 1, 4096, 8192, 0x2003, 1450000\n";
        assert_eq!(content(LogKind::Clat, all.clone(), &log), line);
        assert_eq!(content(LogKind::Lat, all, &log), line.replace("1450000", "0"));
    }

    #[test]
    fn rates_cover_whole_intervals_and_the_last_latency_ends_with_the_job() {
        let log = example_log(&[
            (100 * MS_NS, 10, Kind::Read),
            (400 * MS_NS, 21, Kind::Read),
            (600 * MS_NS, 7, Kind::Read),
            (700 * MS_NS, 9, Kind::Write),
        ]);
        let logs =
            |value| Logs { latency_ms: 500, bandwidth_ms: 500, iops_ms: 500, value, ..Logs::default() };
        let plain = logs(LogValue::Mean);
        assert_eq!(
            content(LogKind::Lat, plain.clone(), &log),
            "500, 16, 0, 0, 0\n700, 7, 0, 0, 0\n700, 9, 1, 0, 0\n"
        );
        assert_eq!(content(LogKind::Iops, plain.clone(), &log), "499, 4, 0, 0, 0\n");
        assert_eq!(content(LogKind::Bw, plain, &log), "499, 16, 0, 0, 0\n");
        let first = |value| content(LogKind::Clat, logs(value), &log).lines().next().map(str::to_owned);
        assert_eq!(first(LogValue::Largest).as_deref(), Some("500, 21, 0, 0, 0"));
        assert_eq!(first(LogValue::Both).as_deref(), Some("500, 16, 21, 0, 0, 0"));
    }

    #[test]
    fn histograms_count_every_operation_once() {
        let all: Vec<_> = (1..=100).map(|i| (i * MS_NS, i * 100, Kind::Read)).collect();
        let log = example_log(&all);
        let text = |coarseness| {
            let logs = Logs { histogram_ms: 30, coarseness, ..Logs::default() };
            content(LogKind::ClatHist, logs, &log)
        };
        let rows: Vec<Vec<u64>> =
            text(0).lines().map(|line| line.split(", ").filter_map(|n| n.parse().ok()).collect()).collect();
        assert!(rows.iter().all(|row| row.len() == 3 + BUCKETS));
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [31, 61, 91, 100]);
        assert_eq!(rows.iter().map(|row| row[3..].iter().sum::<u64>()).sum::<u64>(), 100);
        assert_eq!(text(3).lines().next().map(|l| l.split(", ").count()), Some(3 + BUCKETS / 8));
    }

    #[test]
    fn an_iolog_lists_operations_in_the_order_of_submission() {
        let log =
            example_log(&[(9_000, 2_000, Kind::Read), (10_000, 8_000, Kind::Write), (11_000, 1, Kind::Sync)]);
        let expected = "fio version 3 iolog\n0 /f add\n2 /f open\n2 /f write 8192 4096\n7 /f read 8192 4096\n7 /f close\n";
        assert_eq!(content(LogKind::Iolog, Logs::default(), &log), expected);
    }

    #[test]
    fn buckets_are_those_of_fio() {
        // From fio's plat_val_to_idx.
        assert_eq!(
            [0, 63, 64, 127, 128, 129, 130, 1 << 20].map(fio_bucket),
            [0, 63, 64, 127, 128, 128, 129, 960]
        );
        assert_eq!(fio_bucket(u64::MAX), BUCKETS - 1);
    }
}
