//! Recording: the loop that empties the kernel's buffers into a file.
//!
//! For: reading often enough that nothing is lost, and seldom enough that it costs little. Not for: judging what came of it.

use super::subject::Subject;
use super::{Outcome, Place, Request, cannot_write, refused};
use crate::block_events::{BlockEvents, now_ns};
use crate::failure::Failure;
use crate::{signals, stderr};
use capture::file::Writer;
use capture::names::Names;
use capture::row::Row;
use machine::host;
use machine::root::Root;
use machine::tracer::Tracer;
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
pub(super) fn record_requests(
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
    stderr::say(&format!("capturing {} {until}{}", subject.describe(), subject.words_of_others()));
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

/// The device's counters, and the times between which they were read.
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
            std::thread::sleep(EVERY.min(left));
            let sink = &mut self.sink;
            let drained = self.events.drain(&mut |_, row, names| sink.put(row, names));
            drained.map_err(|why| refused(&why))?;
            self.sink.check()?;
            if now_ns().saturating_sub(kept_ns) > KEPT_WITHIN_NS {
                kept_ns = now_ns();
                let kept = self.sink.writer.flush(self.events.names());
                kept.map_err(|e| cannot_write(&self.sink.request.output, &e))?;
            }
        }
        Ok(())
    }

    /// Reads the counters once more, then what is left.
    fn end(&mut self, subject: &Subject, stop: &AtomicBool) -> Result<Ending, Failure> {
        let (before, stat, after) = read_counters(subject);
        if let Some(pairing) = self.events.pairing() {
            pairing.counters_read_last(before, after);
        }
        // What was being counted has its event by then.
        std::thread::sleep(EVERY / 10);
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

    /// Ends the file. The tracer's instance is removed with the rest.
    fn close(self, ending: Ending, origin: Origin, stop: &AtomicBool) -> Result<Outcome, Failure> {
        let Sink { writer, request, .. } = self.sink;
        let written = writer.finish(self.events.names(), &ending).and_then(|file| file.sync_all());
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
