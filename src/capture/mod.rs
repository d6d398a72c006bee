//! `fathom capture`: records every request that a target's device gets, or converts another tool's trace, into a capture
//! file.
//!
//! 1. `block_events` finds the device and reads the kernel's block events.
//! 2. The recording loop empties the kernel's buffers every 50 ms and writes the requests to the file.
//! 3. With `--extents`, the finished capture is rewritten with only the requests within the files. Their extents are read
//!    before and after it, so the whole device is captured until then.
//!
//! `capture_file` shows captures, `replay` repeats them, `fit` makes jobs from them.

pub mod capture_file;
pub mod fit;
pub(crate) mod replay;

use crate::block_events::{self, BlockEvents, Subject, now_ns};
use crate::failure::INTERRUPTED;
use crate::failure::{Failure, cause};
use crate::files::output;
use crate::files::output::{Outlet, Replace, Rules, Spared};
use crate::{files, signals, stderr, stdout};
use capture::capture_file::Writer;
use capture::completeness::completeness;
use capture::file_requests::Within;
use capture::foreign::{Language, Trouble};
use capture_file::{BUFFER_BYTES, cannot_write, device_name};
use machine::extents::FileExtents;
use machine::root::Root;
use machine::tracer::Tracer;
use machine::{extents, host, tracer};
use model::captured::{Ending, OfFiles, Origin, Unit};
use model::units::{show_bytes, show_count, show_ns};
use model::{Known, name};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, BufWriter, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trace::row::{Names, Row};

/// A request to capture or convert.
#[derive(Clone, Debug)]
pub struct Request {
    /// Device, file or directory.
    pub target: PathBuf,
    /// A trace of another tool to convert instead.
    pub import: Option<PathBuf>,
    /// Keep only the requests of this process.
    pub pid: Option<u32>,
    /// Keep only requests within the extents of the file, or of the files below the directory.
    pub extents: bool,
    /// Record insertions too.
    pub queue: bool,
    /// Buffer of each CPU.
    pub buffer_bytes: u64,
    /// How long; `None` means until a signal.
    pub time_ns: Option<u64>,
    /// The capture file.
    pub output: PathBuf,
    /// Which file it may replace.
    pub replace: Replace,
}

/// The outcome of a capture.
struct Outcome {
    origin: Origin,
    ending: Ending,
    /// Whether a signal ended it early.
    interrupted: bool,
}

/// Captures, and prints the outcome.
///
/// # Errors
/// [`Failure::Usage`] if the target has no single device, or the file may not be written; [`Failure::Refused`] if the
/// machine does not allow it.
pub fn capture(request: &Request) -> Result<ExitCode, Failure> {
    if let Some(from) = &request.import {
        return import(from, request);
    }
    let subject = block_events::find(&Root::real(), &request.target)?;
    if let Some(pid) = request.pid.filter(|pid| tracer::process_of(&Root::real(), *pid).0 != Some(*pid)) {
        return Err(Failure::Usage(format!("--pid {pid}: there is no such process; `ps` shows all")));
    }
    if request.queue && subject.traced.unit == Unit::Bios {
        return Err(Failure::Usage(format!(
            "--queue: {} has no I/O scheduler in which requests could wait; leave it out, or name a device below it",
            subject.layer.name
        )));
    }
    for name in tracer::remove_leftovers() {
        stderr::say(&format!("removed the tracer instance {name} of a killed fathom"));
    }
    let tracer = tracer::Tracer::new(request.buffer_bytes).map_err(|e| refused(&e.to_string()))?;
    let place = place(request)?;
    if subject.holds(&Root::real(), &request.output) {
        stderr::say(&format!(
            "{} is on {} itself, so its own writes are captured too; name a file elsewhere, such as in /dev/shm",
            name::shown(&request.output),
            subject.layer.name
        ));
    }
    let begin = request.extents.then(|| locate_files(request)).transpose()?;
    let outcome = record_requests(tracer, &subject, request, &place)?;
    let outcome = match begin {
        Some(begin) => keep_file_requests(&begin, request, &place, outcome)?,
        None => outcome,
    };
    print_outcome(&request.output, &outcome)?;
    let complete = completeness(&outcome.origin, Some(&outcome.ending)).word != "incomplete";
    Ok(match (outcome.interrupted, complete) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, complete) => ExitCode::from(u8::from(!complete)),
    })
}

/// Where the capture goes.
struct Place {
    outlet: Outlet,
    rules: Rules,
}

/// Checks whether the output file may be written, without creating it.
fn place(request: &Request) -> Result<Place, Failure> {
    let path = &request.output;
    if output::is_stream(path) {
        return Err(Failure::Usage(format!(
            "-o {}: a capture needs a regular file; type the name of one",
            name::shown(path)
        )));
    }
    let mut spared = Spared::default();
    spared.add(&request.target, "what is captured");
    if let Some(from) = &request.import {
        spared.add(from, "the trace that is converted");
    }
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    Ok(Place { outlet: rules.decide(path)?, rules })
}

/// The tracer's refusal, with the reason why it is needed.
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
        "{}: {}\n{}: {} rows of {device} in {} (ended by {}); {}, {per_row:.1} bytes each\n",
        complete.word.to_uppercase(),
        complete.sentence,
        name::shown(path),
        show_count(ending.rows as f64),
        show_ns(ending.duration_ns as f64),
        ending.why,
        show_bytes(bytes),
    );
    if let Some(pid) = origin.pid {
        text += &format!(
            "Only process {pid}: {} requests of other processes were left out, {} of them of unknown processes\n",
            show_count(ending.of_others as f64),
            show_count(ending.of_unknown as f64)
        );
    }
    if let Some(files) = &ending.of_files {
        text += &format!("{}\n", files.describe());
    }
    text += &format!("`fathom show {}` prints the profile of the load.\n", name::shown(path));
    stdout::text(&text)
}

/// Converts a trace of another tool.
fn import(from: &Path, request: &Request) -> Result<ExitCode, Failure> {
    let (origin, ending) = convert(from, request, &place(request)?)?;
    let out = name::shown(&request.output);
    stdout::text(&format!(
        "{out}: {} rows of {} ({}), {} long\n`fathom show {out}` prints the profile of the load.\n",
        show_count(ending.rows as f64),
        name::shown(from),
        origin.imported.unwrap_or_default(),
        show_ns(ending.duration_ns as f64),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// How often the buffers are emptied.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// How long rows may wait in a partial block: the most that a killed capture loses.
const FLUSH_INTERVAL_NS: u64 = 2_000_000_000;

/// A recording in progress.
struct Recording<'r> {
    events: BlockEvents,
    sink: Sink<'r>,
}

/// Where rows go.
struct Sink<'r> {
    writer: Writer<File>,
    request: &'r Request,
    failed: Option<io::Error>,
    of_others: u64,
    of_unknown: u64,
}

/// Records until the time is over or a signal comes.
fn record_requests(
    tracer: Tracer,
    subject: &Subject,
    request: &Request,
    place: &Place,
) -> Result<Outcome, Failure> {
    let gone = Arc::new(AtomicBool::new(false));
    let stop = signals::watch_until_gone(&gone, || {})
        .map_err(|e| Failure::Refused(format!("signals cannot be waited for: {e}")))?;
    let (mut recording, origin) = begin(tracer, subject, request, place)?;
    let until =
        request.time_ns.map_or_else(|| "until Ctrl-C".into(), |ns| format!("for {}", show_ns(ns as f64)));
    stderr::say(&format!("capturing {} {until}{}", subject.describe(), subject.describe_left_out()));
    let recorded = recording.run(&stop);
    let ended = recorded.and_then(|()| recording.end(subject, &stop));
    let outcome = ended.and_then(|ending| recording.close(ending, origin, &stop));
    gone.store(true, Ordering::Relaxed);
    outcome
}

fn begin<'r>(
    tracer: Tracer,
    subject: &Subject,
    request: &'r Request,
    place: &Place,
) -> Result<(Recording<'r>, Origin), Failure> {
    let begun = BlockEvents::with(tracer, std::slice::from_ref(&subject.traced));
    let mut events = begun.map_err(|why| refused(&why))?;
    let (before, stat, after) = read_counters(subject);
    if let Some(pairing) = events.pairing() {
        pairing.counters_read_first(before, after);
    }
    let origin = Origin { stat: Some(stat), ..origin(subject, request) };
    let writer = Writer::new(place.outlet.begin(&place.rules)?, &origin);
    let writer = writer.map_err(|e| cannot_write(&request.output, &e))?;
    let sink = Sink { writer, request, failed: None, of_others: 0, of_unknown: 0 };
    Ok((Recording { events, sink }, origin))
}

fn origin(subject: &Subject, request: &Request) -> Origin {
    let host = host::read_host(&Root::real());
    Origin {
        started: jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        asked: model::name::text(&request.target),
        imported: None,
        device: Some(subject.layer.clone()),
        partition: subject.traced.partition.clone(),
        unit: subject.traced.unit,
        clock: "mono".into(),
        queue: request.queue && subject.traced.unit == Unit::Requests,
        pid: request.pid,
        buffer_bytes: request.buffer_bytes,
        host: host.host,
        kernel: host.kernel,
        cpus: host.cpus,
        version: env!("CARGO_PKG_VERSION").into(),
        stat: None,
    }
}

/// The device's counters, with the times before and after the read.
fn read_counters(subject: &Subject) -> (u64, Known<String>, u64) {
    let before = now_ns();
    let text = Root::real().read(&subject.stat_file).map(|text| text.trim().to_owned());
    (before, text, now_ns())
}

impl Recording<'_> {
    fn run(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        let start_ns = self.events.start_ns;
        let until_ns = self.sink.request.time_ns.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
        let mut kept_ns = start_ns;
        while !stop.load(Ordering::Relaxed) && now_ns() < until_ns {
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            std::thread::sleep(DRAIN_INTERVAL.min(left));
            let sink = &mut self.sink;
            let drained = self.events.drain(&mut |_, row, names| sink.put(row, names));
            drained.map_err(|why| refused(&why))?;
            self.sink.check()?;
            if now_ns().saturating_sub(kept_ns) > FLUSH_INTERVAL_NS {
                kept_ns = now_ns();
                let kept = self.sink.writer.flush(self.events.names());
                kept.map_err(|e| cannot_write(&self.sink.request.output, &e))?;
            }
        }
        Ok(())
    }

    /// Reads the counters again, then the remaining events.
    fn end(&mut self, subject: &Subject, stop: &AtomicBool) -> Result<Ending, Failure> {
        let (before, stat, after) = read_counters(subject);
        if let Some(pairing) = self.events.pairing() {
            pairing.counters_read_last(before, after);
        }
        // Give requests that are just being counted time for their event.
        std::thread::sleep(DRAIN_INTERVAL / 10);
        let (events, sink) = (&mut self.events, &mut self.sink);
        events.end(&mut |_, row, names| sink.put(row, names)).map_err(|why| refused(&why))?;
        self.sink.check()?;
        let lost = events.lost_by_kernel().map_err(|why| refused(&why))?;
        let counts = events.pairing().map(|pairing| pairing.counts).unwrap_or_default();
        Ok(Ending {
            why: if stop.load(Ordering::Relaxed) { "a signal" } else { "--time" }.into(),
            duration_ns: before.saturating_sub(events.start_ns),
            events: events.count(),
            lost_events: events.lost().max(lost),
            rows: self.sink.writer.rows(),
            without_issue: counts.without_issue,
            without_completion: counts.without_completion,
            requeued: counts.requeued,
            of_others: self.sink.of_others,
            of_unknown: self.sink.of_unknown,
            completed: counts.completed,
            stat: Some(stat),
            within_sectors: 0,
            of_files: None,
        })
    }

    /// Ends the file. Dropping the rest removes the tracer instance.
    fn close(self, ending: Ending, origin: Origin, stop: &AtomicBool) -> Result<Outcome, Failure> {
        let Sink { writer, request, .. } = self.sink;
        let written = writer.finish(self.events.names(), &ending).and_then(|file| file.sync_all());
        written.map_err(|e| cannot_write(&request.output, &e))?;
        let interrupted = stop.load(Ordering::Relaxed) && request.time_ns.is_some();
        Ok(Outcome { origin, ending, interrupted })
    }
}

impl Sink<'_> {
    /// Writes a row, unless it belongs to a process that is excluded.
    fn put(&mut self, row: &Row, names: &Names) {
        if let Some(pid) = self.request.pid {
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

    fn check(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), |e| Err(cannot_write(&self.request.output, &e)))
    }
}

/// Finds the extents of the files.
///
/// # Errors
/// [`Failure::Usage`] if the target has no extents.
fn locate_files(request: &Request) -> Result<FileExtents, Failure> {
    let found = extents::locate_file_extents(&request.target).map_err(|why| {
        Failure::Usage(format!(
            "--extents: the extents of {} are unknown: {why}; leave --extents out to capture its whole device",
            name::shown(&request.target)
        ))
    })?;
    if found.files == 0 {
        stderr::say(&format!(
            "{} has no file yet; the files at the end of the capture count",
            name::shown(&request.target)
        ));
    }
    Ok(found)
}

/// Keeps only the requests within the extents that were also there at the beginning.
fn keep_file_requests(
    begin: &FileExtents,
    request: &Request,
    place: &Place,
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    let end = locate_files(request)?;
    let bytes = end.stretches.iter().map(|(begin, end)| end - begin).sum();
    let at_end = OfFiles {
        files: end.files,
        stretches: end.stretches.len() as u64,
        bytes,
        unplaced_bytes: end.unplaced_bytes,
        ..OfFiles::default()
    };
    let mut within = Within::new(&begin.stretches, &end.stretches, at_end);
    // If it fails, the whole capture is still there.
    rewrite(request, place, &mut within, &mut outcome)?;
    Ok(outcome)
}

fn rewrite(
    request: &Request,
    place: &Place,
    within: &mut Within,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let mut reader = capture_file::open(&request.output)?;
    let cannot = |e: &std::io::Error| cannot_write(&request.output, e);
    // The replaced file is the capture that this call has just written.
    let rules = Rules { replace: Replace::Anything, ..place.rules.clone() };
    let growing = place.outlet.grow(&rules)?;
    let mut writer =
        growing.file().and_then(|to| Writer::new(to, &outcome.origin)).map_err(|e| cannot(&e))?;
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        for row in rows {
            if within.keeps(row) {
                writer.push(row, names).map_err(|e| cannot(&e))?;
            }
        }
        // Later blocks add names that would not match the waiting rows.
        writer.flush(names).map_err(|e| cannot(&e))?;
    }
    if let Some(damage) = &reader.damage {
        return Err(Failure::Refused(format!(
            "{} cannot be read again: it is {damage}",
            name::shown(&request.output)
        )));
    }
    outcome.ending.of_files = Some(within.seen);
    outcome.ending.rows = writer.rows();
    writer.finish(&reader.names, &outcome.ending).map_err(|e| cannot(&e))?;
    growing.finish(&rules)
}

/// Converts a trace. Returns its header and trailer.
fn convert(from: &Path, request: &Request, place: &Place) -> Result<(Origin, Ending), Failure> {
    let Trace { language, files, origin } = open_trace(from)?;
    let refuse = |e: &std::io::Error| cannot_write(&request.output, e);
    // A partial conversion is useless and must replace nothing.
    let growing = place.outlet.grow(&place.rules)?;
    let to = growing.file().map_err(|e| refuse(&e))?;
    let writer = RefCell::new(Writer::new(BufWriter::new(to), &origin).map_err(|e| refuse(&e))?);
    let files = Trace::readers(files);
    let converted = language.convert(files, &mut |row, names: &Names| writer.borrow_mut().push(row, names));
    let (names, ending) = match converted {
        Ok(done) => done,
        Err(why) => {
            return Err(match why {
                Trouble::Foreign(why) => Failure::Usage(format!("{}: {why}", name::shown(from))),
                Trouble::Io(e) => {
                    Failure::Refused(format!("{} cannot be converted: {e}{}", name::shown(from), cause(&e)))
                }
            });
        }
    };
    writer.into_inner().finish(&names, &ending).map_err(|e| refuse(&e))?;
    growing.finish(&place.rules)?;
    Ok((origin, ending))
}

/// Maximum number of CPUs whose files are searched.
const MAX_CPUS: u32 = 4096;

/// An open trace.
pub(crate) struct Trace {
    /// Its format.
    pub(crate) language: Language,
    /// Its files: one for each CPU for blktrace, otherwise one.
    pub(crate) files: Vec<BufReader<File>>,
    /// Header of a capture made from it.
    pub(crate) origin: Origin,
}

/// Bytes that suffice to recognise a trace.
const HEADER_BYTES: u64 = 512;

/// The format of a trace, by its first bytes; `None` for other or unreadable files.
pub(crate) fn trace_language(path: &Path) -> Option<Language> {
    let mut begins = Vec::new();
    files::open(path).ok()?.take(HEADER_BYTES).read_to_end(&mut begins).ok()?;
    Language::detect(&begins)
}

/// Opens a trace.
///
/// # Errors
/// [`Failure::Usage`] if its format is unknown or it cannot be read.
pub(crate) fn open_trace(from: &Path) -> Result<Trace, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(from)));
    let open = |path: &Path| -> Result<BufReader<File>, Failure> {
        let file = files::open(path).map_err(|e| usage(format!("{e}{}", cause(&e))))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    };
    let mut first = open(from)?;
    let begins = first.fill_buf().map_err(|e| usage(e.to_string()))?;
    let language = Language::detect(begins).ok_or_else(|| {
        usage("its format is unknown; type an iolog of fio (--write_iolog), a file of blktrace or blkparse, or a CSV file of MSR Cambridge".into())
    })?;
    let mut files = vec![first];
    for other in siblings(from).into_iter().filter(|_| language == Language::Blktrace) {
        files.push(open(&other)?);
    }
    let origin = Origin {
        asked: name::text(from),
        imported: Some(language.name().into()),
        unit: language.unit(),
        queue: language == Language::Blktrace || language == Language::Blkparse,
        version: env!("CARGO_PKG_VERSION").into(),
        ..Origin::default()
    };
    Ok(Trace { language, files, origin })
}

impl Trace {
    /// Its files as readers.
    pub(crate) fn readers(files: Vec<BufReader<File>>) -> Vec<Box<dyn BufRead>> {
        files.into_iter().map(|file| Box::new(file) as Box<dyn BufRead>).collect()
    }
}

/// The other files of a trace: blktrace writes one for each CPU, `sda.blktrace.0`, `sda.blktrace.1`, ...
fn siblings(from: &Path) -> Vec<PathBuf> {
    const BEFORE: &[u8] = b".blktrace.";
    let name = from.file_name().unwrap_or_default().as_bytes();
    let Some(at) = name.windows(BEFORE.len()).rposition(|part| part == BEFORE) else {
        return Vec::new();
    };
    let stem = &name[..at + BEFORE.len()];
    let file_name = |cpu: u32| OsString::from_vec([stem, cpu.to_string().as_bytes()].concat());
    let all = (0..MAX_CPUS).map(|cpu| from.with_file_name(file_name(cpu)));
    all.filter(|path| path != from && path.is_file()).collect()
}

#[test]
fn blktrace_files_of_all_cpus_are_found() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join(OsString::from_vec(b"x.blktrace.y\xff".to_vec()));
    std::fs::create_dir(&folder)?;
    let files = ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.12", "sdb.blktrace.2", "sda.blktrace.x"];
    files.iter().try_for_each(|name| std::fs::write(folder.join(name), ""))?;
    let others = |name: &str| siblings(&folder.join(name));
    assert_eq!(others("sda.blktrace.1"), [folder.join("sda.blktrace.0"), folder.join("sda.blktrace.12")]);
    assert_eq!((others("sdb.blktrace.2"), others("plain")), (Vec::new(), Vec::new()));
    Ok(())
}
