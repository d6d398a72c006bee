//! Recording: the loop that empties the kernel's buffers into a file.
//!
//! For: reading often enough that nothing is lost, and seldom enough that it costs little. Not for: judging what came of it.

use super::subject::Subject;
use super::{Outcome, Request, cannot_write, refused};
use crate::block_events::now_ns;
use crate::failure::Failure;
use crate::{signals, stderr};
use capture::file::Writer;
use capture::names::Names;
use capture::row::Row;
use capture::trace::event::{Decoder, OF_BIOS, OF_REQUESTS, Step};
use capture::trace::merge::Merge;
use capture::trace::pair::{Pairing, Scope};
use machine::host;
use machine::root::Root;
use machine::tracer::{Tracer, process_of};
use model::Known;
use model::captured::{Ending, Origin, Unit};
use model::units::show_ns;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the buffers are emptied.
const EVERY: Duration = Duration::from_millis(50);
/// How long rows may wait for a block to be full: a killed capture loses no more.
const KEPT_WITHIN_NS: u64 = 2_000_000_000;

/// What is on its way from the kernel to the file.
struct Recording<'r> {
    tracer: Tracer,
    decoder: Decoder,
    merge: Merge,
    pairing: Pairing,
    sink: Sink<'r>,
    page: Vec<u8>,
    /// When the reading before this one began: what is older is there.
    sure_until_ns: u64,
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
pub(super) fn record(tracer: Tracer, subject: &Subject, request: &Request) -> Result<Outcome, Failure> {
    let gone = Arc::new(AtomicBool::new(false));
    let stop = signals::watch_until_gone(&gone, || {})
        .map_err(|e| Failure::Refused(format!("signals cannot be waited for: {e}")))?;
    let (mut recording, origin) = begin(tracer, subject, request)?;
    let until =
        request.time_ns.map_or_else(|| "until Ctrl-C".into(), |ns| format!("for {}", show_ns(ns as f64)));
    stderr::say(&format!("capturing {} {until}{}", subject.words(), subject.words_of_others()));
    let start_ns = recording.sure_until_ns;
    let recorded = recording.run(&stop, start_ns);
    let ended = recorded.and_then(|()| recording.end(subject, start_ns, &stop));
    let outcome = ended.and_then(|ending| recording.close(ending, origin, &stop));
    gone.store(true, Ordering::Relaxed);
    outcome
}

fn begin<'r>(
    mut tracer: Tracer,
    subject: &Subject,
    request: &'r Request,
) -> Result<(Recording<'r>, Origin), Failure> {
    let formats = events(&mut tracer, subject)?;
    let decoder = Decoder::new(&tracer.header_page()?, &formats)
        .map_err(|why| Failure::Refused(format!("the kernel's trace is not understood: {why}")))?;
    tracer.begin()?;
    let (before, stat, after) = read_counters(subject);
    let origin = Origin { stat: Some(stat), ..origin(subject, request) };
    let writer = File::create(&request.output).and_then(|to| Writer::new(to, &origin));
    let writer = writer.map_err(|e| cannot_write(&request.output, &e))?;
    let mut pairing =
        Pairing::new(Scope { unit: subject.traced.unit, span: subject.traced.span(), start_ns: before });
    pairing.counters_read_first(before, after);
    let page = vec![0; decoder.page_bytes()];
    let sink = Sink { writer, request, failed: None, of_others: 0, of_unknown: 0 };
    let merge = Merge::default();
    Ok((Recording { tracer, decoder, merge, pairing, sink, page, sure_until_ns: before }, origin))
}

/// Has the events recorded, and gives their formats.
fn events(tracer: &mut Tracer, subject: &Subject) -> Result<Vec<(Step, String)>, Failure> {
    let of: &[(&str, Step)] = if subject.traced.unit == Unit::Bios { &OF_BIOS } else { &OF_REQUESTS };
    let mut formats = Vec::new();
    // Insertions always: a request that waited is issued by whoever comes along, and only that event has its own task.
    for (event, step) in of {
        let Some(filter) = subject.traced.filter(*step, event) else { continue };
        formats.push((*step, tracer.record(event, &filter).map_err(|e| refused(&e.into()))?));
    }
    Ok(formats)
}

fn origin(subject: &Subject, request: &Request) -> Origin {
    let host = host::look(&Root::real());
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

/// The device's counters, and the times between which they were read.
fn read_counters(subject: &Subject) -> (u64, Known<String>, u64) {
    let before = now_ns();
    let text = Root::real().read(&subject.stat_file).map(|text| text.trim().to_owned());
    (before, text, now_ns())
}

impl Recording<'_> {
    fn run(&mut self, stop: &AtomicBool, start_ns: u64) -> Result<(), Failure> {
        let until_ns = self.sink.request.time_ns.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
        let mut kept_ns = start_ns;
        while !stop.load(Ordering::Relaxed) && now_ns() < until_ns {
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            std::thread::sleep(EVERY.min(left));
            self.drain()?;
            if now_ns().saturating_sub(kept_ns) > KEPT_WITHIN_NS {
                kept_ns = now_ns();
                let kept = self.sink.writer.flush(&self.decoder.names);
                kept.map_err(|e| cannot_write(&self.sink.request.output, &e))?;
            }
        }
        Ok(())
    }

    /// Empties all buffers, and takes the events that are surely in order.
    fn drain(&mut self) -> Result<(), Failure> {
        let begun_ns = now_ns();
        let (decoder, waiting) = (&mut self.decoder, self.merge.waiting());
        let root = Root::real();
        let mut ask = |tid| process_of(&root, tid);
        self.tracer.drain(&mut self.page, |page| decoder.page(page, &mut ask, waiting))?;
        let sure = std::mem::replace(&mut self.sure_until_ns, begun_ns);
        self.take_before(sure)
    }

    fn take_before(&mut self, at_ns: u64) -> Result<(), Failure> {
        let (pairing, sink, names) = (&mut self.pairing, &mut self.sink, &mut self.decoder.names);
        // Rows refer to names that are there when they are written.
        let mut rows = Vec::new();
        self.merge.before(at_ns, |event| {
            pairing.take(event, names, &mut |row| rows.push(*row));
            rows.drain(..).for_each(|row| sink.put(&row, names));
        });
        self.sink.check()
    }

    /// Reads the counters once more, then what is left.
    fn end(&mut self, subject: &Subject, start_ns: u64, stop: &AtomicBool) -> Result<Ending, Failure> {
        let (before, stat, after) = read_counters(subject);
        self.pairing.counters_read_last(before, after);
        // What was being counted has its event by then.
        std::thread::sleep(EVERY / 10);
        self.tracer.end()?;
        self.drain()?;
        self.take_before(u64::MAX)?;
        let (sink, names) = (&mut self.sink, &self.decoder.names);
        self.pairing.finish(&mut |row| sink.put(row, names));
        self.sink.check()?;
        let lost = self.tracer.lost()?;
        let counts = self.pairing.counts;
        Ok(Ending {
            why: if stop.load(Ordering::Relaxed) { "a signal" } else { "--time" }.into(),
            duration_ns: before.saturating_sub(start_ns),
            events: self.decoder.events,
            lost_events: self.decoder.lost.max(lost.overrun.saturating_add(lost.dropped)),
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

    /// Ends the file. The tracer's instance is removed with the rest.
    fn close(self, ending: Ending, origin: Origin, stop: &AtomicBool) -> Result<Outcome, Failure> {
        let Sink { writer, request, .. } = self.sink;
        let written = writer.finish(&self.decoder.names, &ending).and_then(|file| file.sync_all());
        written.map_err(|e| cannot_write(&request.output, &e))?;
        let interrupted = stop.load(Ordering::Relaxed) && request.time_ns.is_some();
        Ok(Outcome { origin, ending, interrupted })
    }
}

impl Sink<'_> {
    /// Writes a row, unless it is of a process that was not asked for.
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
