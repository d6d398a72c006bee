//! The kernel's tracer while a command runs: an instance of its own.
//!
//! Making and removing an instance takes the kernel tens of ms, enabling its events too. So it is made once for all runs of a session, while
//! the rest is prepared, and removed while the report is made. Between runs it records nothing. During a run a thread empties its
//! buffers.

use capture::trace::command::{CommandTrace, EVENTS, Kind};
use machine::tracer::{Tracer, remove_leftovers};
use model::Known;
use model::command::Traced;
use model::machine::{Machine, Place};
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// How often the buffers are emptied.
const DRAIN_EVERY: Duration = Duration::from_millis(20);

/// The tracer of a session.
pub(super) struct Tracing {
    state: RefCell<State>,
}

enum State {
    /// A thread makes it.
    Preparing(JoinHandle<Known<Box<Prepared>>>),
    /// It records nothing now.
    Ready(Box<Prepared>),
    /// There is none: why, or that a run has it.
    Without(String),
}

/// An instance with its events, which record nothing until a run begins.
struct Prepared {
    tracer: Tracer,
    header: String,
    formats: Vec<(Kind, String)>,
    flags: [u64; 2],
}

/// A run that is traced.
pub(super) struct Running {
    stop: Sender<()>,
    stopped: Receiver<()>,
    thread: JoinHandle<(Known<Traced>, Box<Prepared>)>,
}

impl Tracing {
    /// Starts to make a tracer for the devices of a machine.
    pub(super) fn prepare(machine: &Machine) -> Self {
        let devices: Vec<String> = machine
            .places
            .iter()
            .flat_map(Place::leaves)
            .filter_map(|layer| {
                let (major, minor) = layer.number.split_once(':')?;
                Some(format!("dev == {}", major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?))
            })
            .collect();
        let tsc = machine.clocksource.as_deref().is_ok_and(|clock| clock.trim() == "tsc");
        let thread = spawn(move || Prepared::new(&devices, tsc).map(Box::new));
        Self { state: RefCell::new(State::Preparing(thread)) }
    }

    /// No tracer, for this reason.
    pub(super) fn without(why: &str) -> Self {
        Self { state: RefCell::new(State::Without(why.into())) }
    }

    /// Starts to trace the processes that the calling thread starts from now on, and all requests of the devices.
    ///
    /// # Errors
    /// Returns why this user may not, or the kernel cannot.
    pub(super) fn begin(&self) -> Known<Running> {
        let prepared = match self.state.replace(State::Without("a run has the tracer".into())) {
            State::Ready(prepared) => Ok(prepared),
            State::Preparing(thread) => {
                thread.join().unwrap_or_else(|_| Err("the thread of the tracer panicked".into()))
            }
            State::Without(why) => Err(why),
        };
        prepared.and_then(Running::begin).inspect_err(|why| {
            self.state.replace(State::Without(why.clone()));
        })
    }

    /// Ends tracing a run and returns what was seen.
    ///
    /// # Errors
    /// Returns why that is not known.
    pub(super) fn end(&self, running: Running) -> Known<Traced> {
        let _ = running.stop.send(());
        let _ = running.stopped.recv();
        let (seen, prepared) =
            running.thread.join().map_err(|_| "the thread of the tracer panicked".to_owned())?;
        self.state.replace(State::Ready(prepared));
        seen
    }

    /// Starts to remove the tracer.
    pub(super) fn remove(self) -> Removing {
        Removing(spawn(move || drop(self)))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // An instance that is still being made would be left behind.
        if let State::Preparing(thread) = self.state.replace(State::Without("the session is over".into())) {
            let _ = thread.join();
        }
    }
}

/// A tracer that is being removed.
pub(super) struct Removing(JoinHandle<()>);

impl Removing {
    /// Waits until it is gone.
    pub(super) fn finish(self) {
        let _ = self.0.join();
    }
}

impl Prepared {
    fn new(devices: &[String], tsc: bool) -> Known<Self> {
        remove_leftovers();
        let mut tracer = Tracer::quick(tsc).map_err(|e| e.to_string())?;
        let bits = |flags: rustix::fs::OFlags| u64::from(flags.bits());
        let flags =
            [bits(rustix::fs::OFlags::DIRECT), bits(rustix::fs::OFlags::SYNC | rustix::fs::OFlags::DSYNC)];
        let mut formats = Vec::new();
        for (group, name, kind) in EVENTS {
            let filter = match kind {
                Kind::Open => format!("flags & {}", flags[0] | flags[1]),
                Kind::Request if devices.is_empty() => continue,
                Kind::Request => devices.join(" || "),
                // The tracer takes this as "no filter".
                _ => "0".to_owned(),
            };
            match tracer.record_of(group, name, &filter) {
                Ok(text) => formats.push((kind, text)),
                // Not every architecture has open and pipe.
                Err(_) if name.ends_with("_open") || name.ends_with("_pipe") => {}
                Err(why) => return Err(why.to_string()),
            }
        }
        let header = tracer.header_page().map_err(|e| e.to_string())?;
        tracer.begin().and_then(|()| tracer.end()).map_err(|e| e.to_string())?;
        Ok(Self { tracer, header, formats, flags })
    }
}

impl Running {
    fn begin(mut prepared: Box<Prepared>) -> Known<Self> {
        let parent = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let Prepared { header, formats, flags, .. } = &*prepared;
        let mut trace = CommandTrace::new(header, formats, parent, *flags).map_err(|why| why.to_string())?;
        let mut page = vec![0; trace.page_bytes()];
        // What was recorded before is not of this run.
        prepared.tracer.drain(&mut page, |_| ()).map_err(|e| e.to_string())?;
        let lost_before = lost(&prepared.tracer)?;
        let (stop, is_to_stop) = channel();
        let (has_stopped, stopped) = channel();
        let (has_begun, begun) = channel();
        let thread = spawn(move || {
            let tracer = &mut prepared.tracer;
            // Only now, since the start of this thread would count as one of the command.
            let mut drained = tracer.resume().map_err(|e| e.to_string());
            let _ = has_begun.send(());
            while is_to_stop.recv_timeout(DRAIN_EVERY) == Err(RecvTimeoutError::Timeout) {
                drained = drained.and_then(|()| drain(tracer, &mut trace, &mut page));
            }
            let ended = tracer.end().map_err(|e| e.to_string());
            let _ = has_stopped.send(());
            let seen = drained
                .and(ended)
                .and_then(|()| drain(tracer, &mut trace, &mut page))
                .and_then(|()| lost(tracer))
                .and_then(|lost| match trace.lost.max(lost.saturating_sub(lost_before)) {
                    0 => Ok(trace.finish()),
                    lost => Err(format!("the kernel's tracer lost {lost} events")),
                });
            (seen, prepared)
        });
        let _ = begun.recv();
        Ok(Self { stop, stopped, thread })
    }
}

fn drain(tracer: &mut Tracer, trace: &mut CommandTrace, page: &mut [u8]) -> Known<()> {
    tracer.drain(page, |page| trace.page(page)).map_err(|e| e.to_string())?;
    trace.settle();
    Ok(())
}

/// Events that the kernel did not keep so far.
fn lost(tracer: &Tracer) -> Known<u64> {
    let lost = tracer.lost().map_err(|e| e.to_string())?;
    Ok(lost.overrun.saturating_add(lost.dropped))
}
