//! `fathom capture`: records every request that a target's device gets, or converts another tool's trace, into a capture file.
//!
//! 1. `block_events` finds the device and reads the kernel's block events.
//! 2. The recording loop empties the kernel's buffers every 50 ms and writes the requests to the file.
//! 3. With `--extents`, the loop still captures the whole device. The extents of the files are read before and after the recording. Then
//!    the finished capture is rewritten with only the requests within these extents.

use super::{Trace, open_trace, trouble};
use crate::block_events::{self, BlockEvents, Subject, now_ns};
use crate::capture::capture_file::{self, cannot_write, device_name};
use crate::cli::capture::CaptureArgs;
use crate::failure::{Failure, INTERRUPTED};
use crate::files::output::{self, Outlet, ProtectedPaths, Replace, Rules};
use crate::{signals, stderr, stdout};
use capture::capture_file::Writer;
use capture::completeness::completeness;
use capture::file_requests::FileRequestSelector;
use machine::extents::FileExtents;
use machine::root::Root;
use machine::tracer::Tracer;
use machine::{extents, host, tracer};
use model::captured::{Ending, OfFiles, Origin, RowUnit};
use model::units::{show_bytes, show_count, show_counted, show_ns};
use model::{Known, name};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trace::row::{Names, Row};

/// A recorded capture.
struct Outcome {
    origin: Origin,
    ending: Ending,
    /// Whether a signal ended the capture before `--time` was over. Without `--time` it is false.
    interrupted: bool,
}

/// Captures the requests of the target, or converts another tool's trace. Prints the outcome.
///
/// # Errors
/// [`Failure::Usage`] if the target has no single device; [`Failure::Refused`] if the machine does not allow the capture. Also as
/// [`Rules::decide`] for the output file.
pub fn capture(args: &CaptureArgs) -> Result<ExitCode, Failure> {
    if args.time == Some(0) {
        return Err(Failure::Usage("--time 0 captures nothing; type 60s, or leave --time out".into()));
    }
    if let Some(from) = &args.import {
        return convert(from, args);
    }
    let target = &args.target.clone().unwrap_or_default();
    let root = Root::real();
    let subject = block_events::find(&root, target)?;
    if let Some(pid) = args.pid.filter(|pid| tracer::process_of(&root, *pid).0 != Some(*pid)) {
        return Err(Failure::Usage(format!("--pid {pid}: there is no such process; `ps -e` lists all")));
    }
    if args.queue && subject.traced.unit == RowUnit::Bios {
        return Err(Failure::Usage(format!(
            "--queue: {} has no I/O scheduler in which requests could wait; leave --queue out, or name a device below it",
            subject.layer.name
        )));
    }
    for name in tracer::remove_leftovers() {
        stderr::print(&format!("removed the tracer instance {name} of a killed fathom"));
    }
    let tracer = Tracer::new(args.buffer).map_err(|e| refused(&e.to_string()))?;
    let destination = Destination::decide(args, target, "what is captured")?;
    if subject.holds(&root, &args.output) {
        stderr::print(&format!(
            "{} is on {} itself, so the writes to this file are captured too; name a file elsewhere, such as in /dev/shm",
            name::shown(&args.output),
            subject.layer.name
        ));
    }
    let begin = args.extents.then(|| locate_files(target)).transpose()?;
    if begin.as_ref().is_some_and(|found| found.files == 0) {
        stderr::print(&format!(
            "{} has no files yet; fathom keeps the requests to the files that are there when the capture ends",
            name::shown(target)
        ));
    }
    let tracer_gone = Arc::new(AtomicBool::new(false));
    let stop = signals::watch_until_gone(&tracer_gone, || {})?;
    let recorded = record_requests(tracer, &subject, args, &destination, &stop);
    tracer_gone.store(true, Ordering::Relaxed);
    let mut outcome = recorded?;
    if let Some(begin) = begin {
        keep_file_requests(&begin, &locate_files(target)?, &args.output, &destination, &mut outcome)?;
    }
    print_outcome(&args.output, &outcome)?;
    let is_incomplete = completeness(&outcome.origin, Some(&outcome.ending)).word == "incomplete";
    Ok(ExitCode::from(if outcome.interrupted { INTERRUPTED } else { u8::from(is_incomplete) }))
}

/// Where the capture is written.
struct Destination {
    outlet: Outlet,
    rules: Rules,
}

impl Destination {
    /// Checks whether the output file may be written, without creating it. The output file must not be `source`.
    fn decide(args: &CaptureArgs, source: &Path, what: &str) -> Result<Self, Failure> {
        if output::is_stream(&args.output) {
            return Err(Failure::Usage(format!(
                "-o {}: a capture needs a regular file; type the name of one",
                name::shown(&args.output)
            )));
        }
        let mut protected = ProtectedPaths::default();
        protected.add(source, what);
        let rules = Rules { flag: "-o", protected, replace: Replace::with_force(args.force) };
        Ok(Self { outlet: rules.decide(&args.output)?, rules })
    }
}

/// Returns the failure of a capture for which the kernel delivers no events.
fn refused(why: &str) -> Failure {
    Failure::Refused(format!("requests cannot be captured: {why}"))
}

fn print_outcome(path: &Path, outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { origin, ending, .. } = outcome;
    let complete = completeness(origin, Some(ending));
    let bytes = path.metadata().map_or(0, |facts| facts.len());
    let per_row = if ending.rows == 0 { 0.0 } else { bytes as f64 / ending.rows as f64 };
    let device = device_name(origin).unwrap_or_default();
    let mut text = format!(
        "{}: {}\n{}: {} of {device} in {} (ended by {}); {}, {per_row:.1} bytes for each request\n",
        complete.word.to_uppercase(),
        complete.sentence,
        name::shown(path),
        show_counted(ending.rows, "recorded request"),
        show_ns(ending.duration_ns as f64),
        ending.why,
        show_bytes(bytes),
    );
    if let Some(pid) = origin.pid {
        text += &format!(
            "Only process {pid}: {} left out, {} of them because their process is unknown\n",
            show_counted(ending.of_others, "request"),
            show_count(ending.of_unknown as f64)
        );
    }
    if let Some(files) = &ending.of_files {
        text += &format!("{}\n", files.describe());
    }
    text += &format!("`fathom show {}` prints the profile of the load.\n", name::shown(path));
    stdout::print_text(&text)
}

/// How often the kernel's buffers are emptied.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// How long rows may wait in a partial block. A killed capture loses these rows, and what the kernel's buffers still hold.
const FLUSH_INTERVAL_NS: u64 = 2_000_000_000;

/// Records until `--time` is over or a signal comes.
fn record_requests(
    tracer: Tracer,
    subject: &Subject,
    args: &CaptureArgs,
    destination: &Destination,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let cannot = |e: io::Error| cannot_write(&args.output, &e);
    let begun = BlockEvents::with(tracer, std::slice::from_ref(&subject.traced));
    let mut events = begun.map_err(|why| refused(&why))?;
    let (before, stat, after) = read_counters(subject);
    if let Some(pairing) = events.pairing() {
        pairing.counters_read_first(before, after);
    }
    let host = host::read_host(&Root::real());
    let origin = Origin {
        started: jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        named_path: args.target.as_deref().map(name::text).unwrap_or_default(),
        imported: None,
        device: Some(subject.layer.clone()),
        partition: subject.traced.partition.clone(),
        unit: subject.traced.unit,
        clock: "mono".into(),
        queue: args.queue && subject.traced.unit == RowUnit::Requests,
        pid: args.pid,
        buffer_bytes: args.buffer,
        host: host.host,
        kernel: host.kernel,
        cpus: host.cpus,
        version: env!("CARGO_PKG_VERSION").into(),
        stat: Some(stat),
    };
    let writer = Writer::new(destination.outlet.begin(&destination.rules)?, &origin).map_err(cannot)?;
    let mut sink = Sink { writer, pid: args.pid, failed: None, of_others: 0, of_unknown: 0 };
    let until = args.time.map_or_else(|| "until Ctrl-C".into(), |ns| format!("for {}", show_ns(ns as f64)));
    stderr::print(&format!("capturing {} {until}{}", subject.describe(), subject.describe_left_out()));

    let until_ns = args.time.map_or(u64::MAX, |ns| events.start_ns.saturating_add(ns));
    let mut flushed_ns = events.start_ns;
    while !stop.load(Ordering::Relaxed) && now_ns() < until_ns {
        std::thread::sleep(DRAIN_INTERVAL.min(Duration::from_nanos(until_ns.saturating_sub(now_ns()))));
        events.drain(&mut |_, row, names| sink.put(row, names)).map_err(|why| refused(&why))?;
        sink.failed.take().map_or(Ok(()), Err).map_err(cannot)?;
        if now_ns().saturating_sub(flushed_ns) > FLUSH_INTERVAL_NS {
            flushed_ns = now_ns();
            sink.writer.flush(events.names()).map_err(cannot)?;
        }
    }

    let (before, stat, after) = read_counters(subject);
    if let Some(pairing) = events.pairing() {
        pairing.counters_read_last(before, after);
    }
    // The counters may include a request whose event arrives a moment later.
    std::thread::sleep(DRAIN_INTERVAL / 10);
    events.end(&mut |_, row, names| sink.put(row, names)).map_err(|why| refused(&why))?;
    sink.failed.take().map_or(Ok(()), Err).map_err(cannot)?;
    // The kernel counts lost events too. Either count may miss some of them, so take the larger one.
    let lost_by_kernel = events.lost_by_kernel().map_err(|why| refused(&why))?;
    let counts = events.pairing().map(|pairing| pairing.counts).unwrap_or_default();
    let is_stopped = stop.load(Ordering::Relaxed);
    let ending = Ending {
        why: if is_stopped { "a signal" } else { "--time" }.into(),
        duration_ns: before.saturating_sub(events.start_ns),
        events: events.count(),
        lost_events: events.lost().max(lost_by_kernel),
        rows: sink.writer.rows(),
        without_issue: counts.without_issue,
        without_completion: counts.without_completion,
        requeued: counts.requeued,
        of_others: sink.of_others,
        of_unknown: sink.of_unknown,
        completed: counts.completed,
        stat: Some(stat),
        within_sectors: 0,
        of_files: None,
    };
    let file = sink.writer.finish(events.names(), &ending).map_err(cannot)?;
    file.sync_all().map_err(cannot)?;
    Ok(Outcome { origin, ending, interrupted: is_stopped && args.time.is_some() })
}

/// Returns the time before the read in ns, the text of the device's counters, and the time after.
fn read_counters(subject: &Subject) -> (u64, Known<String>, u64) {
    let before = now_ns();
    let text = Root::real().read(&subject.stat_file).map(|text| text.trim().to_owned());
    (before, text, now_ns())
}

/// The capture file that is written, and how many requests were left out.
struct Sink {
    writer: Writer<File>,
    /// The only process whose requests are kept, if one was typed.
    pid: Option<u32>,
    failed: Option<io::Error>,
    of_others: u64,
    of_unknown: u64,
}

impl Sink {
    /// Writes a row, unless `--pid` names another process.
    fn put(&mut self, row: &Row, names: &Names) {
        if let Some(pid) = self.pid {
            let task = names.task_at(row.task);
            if task.is_none_or(|task| task.pid != Some(pid) && task.tid != pid) {
                self.of_others += 1;
                self.of_unknown += u64::from(task.is_none_or(|task| task.pid.is_none()));
                return;
            }
        }
        if self.failed.is_none() {
            self.failed = self.writer.push(row, names).err();
        }
    }
}

/// Finds the extents of the target, or of all files below it.
///
/// # Errors
/// [`Failure::Usage`] if the extents are unknown.
fn locate_files(target: &Path) -> Result<FileExtents, Failure> {
    let shown = name::shown(target);
    extents::locate_file_extents(target).map_err(|why| {
        Failure::Usage(format!(
            "--extents: the extents of {shown} are unknown: {why}; leave --extents out to capture the whole device"
        ))
    })
}

/// Rewrites the finished capture so that it has only the requests within the files' extents. An
/// extent counts if it existed at the beginning or at the end. If rewriting fails, the whole
/// capture remains.
fn keep_file_requests(
    begin: &FileExtents,
    end: &FileExtents,
    path: &Path,
    destination: &Destination,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let at_end = OfFiles {
        files: end.files,
        stretches: end.device_ranges.len() as u64,
        bytes: end.device_ranges.iter().map(|(begin, end)| end - begin).sum(),
        unplaced_bytes: end.unplaced_bytes,
        ..OfFiles::default()
    };
    let mut selector = FileRequestSelector::new(&begin.device_ranges, &end.device_ranges, at_end);
    let mut reader = capture_file::open(path)?;
    let cannot = |e: io::Error| cannot_write(path, &e);
    // The replaced file is the capture that this command has just written.
    let rules = Rules { replace: Replace::Anything, ..destination.rules.clone() };
    let growing = destination.outlet.grow(&rules)?;
    let mut writer = growing.file().and_then(|to| Writer::new(to, &outcome.origin)).map_err(cannot)?;
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        for row in rows {
            if selector.selects(row) {
                writer.push(row, names).map_err(cannot)?;
            }
        }
    }
    if let Some(damage) = &reader.damage {
        return Err(Failure::Refused(format!(
            "--extents: {} cannot be rewritten: it is {damage}; it still has the requests of the whole device",
            name::shown(path)
        )));
    }
    outcome.ending.of_files = Some(selector.counts);
    outcome.ending.rows = writer.rows();
    writer.finish(&reader.names, &outcome.ending).map_err(cannot)?;
    growing.finish(&rules)
}

/// Converts a trace of another tool, and prints the outcome.
fn convert(from: &Path, args: &CaptureArgs) -> Result<ExitCode, Failure> {
    let destination = Destination::decide(args, from, "the trace that is converted")?;
    let Trace { language, files, origin } = open_trace(from)?;
    let cannot = |e: io::Error| cannot_write(&args.output, &e);
    // A partial conversion is useless and must replace nothing.
    let growing = destination.outlet.grow(&destination.rules)?;
    let to = BufWriter::new(growing.file().map_err(cannot)?);
    let writer = RefCell::new(Writer::new(to, &origin).map_err(cannot)?);
    let mut put = |row: &Row, names: &Names| writer.borrow_mut().push(row, names);
    let converted = language.convert(Trace::readers(files), &mut put);
    let (names, ending) = converted.map_err(|why| trouble(from, why, "converted"))?;
    writer.into_inner().finish(&names, &ending).map_err(cannot)?;
    growing.finish(&destination.rules)?;
    let out = name::shown(&args.output);
    stdout::print_text(&format!(
        "{out}: {} of {} ({}), {} long\n`fathom show {out}` prints the profile of the load.\n",
        show_counted(ending.rows, "request"),
        name::shown(from),
        origin.imported.unwrap_or_default(),
        show_ns(ending.duration_ns as f64),
    ))?;
    Ok(ExitCode::SUCCESS)
}
