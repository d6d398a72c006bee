//! A worker's time from set-up to the last completion.
//!
//! For: everything around the hot loop. Not for: the loop itself (`hot`), nor starting threads ([`crate::workers`]).

use crate::hot::Loop;
use crate::interface::{Engine, Time};
use crate::link::Task;
use crate::outcome::Outcome;
use crate::recorder::Recorder;
use crate::refusal::CannotBegin;
use crate::spec::WorkerSpec;
use crate::thread_io::{Account, of_ring_helpers};
use model::job::{IoPriority, MemoryNodes};
use model::record::ThreadIo;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sys::calls::Calls;
use sys::memory_policy::{self, MemoryPolicy};
use sys::perf::Counters;
use sys::thread::{RunQueue, Usage};

/// Runs a task on an engine, with a look at each operation or without; the function pointers of the engine table.
pub(crate) fn run<E: Engine, R: Recorder>(task: &mut Task) -> Outcome {
    let outcome = whole::<E, R>(task);
    // The others learn of it at once: without this worker the rest is another workload.
    task.link.failed.fetch_or(outcome.error.is_some(), Ordering::Relaxed);
    outcome
}

fn whole<E: Engine, R: Recorder>(task: &mut Task) -> Outcome {
    let opened = settle(&task.spec).and_then(|()| E::open(&mut task.spec));
    let (mut engine, mut granted) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            let why = CannotBegin::of_engine(task.spec.worker, task.spec.engine.name, &e);
            task.link.barrier.fail(why.clone());
            return Outcome::failed(why.sentence);
        }
    };
    // Opened before the start: after it, every microsecond counts.
    let queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
    let waited = || queue.as_ref().map_err(Clone::clone)?.waited_ns().map_err(|e| e.to_string());
    let account = Account::open();
    let has_helpers = task.spec.engine.name == "io_uring";
    if task.spec.fills_ahead() {
        granted.used.push(model::record::PREPARES_AHEAD.into());
    }
    let count_calls = task.spec.count_calls;
    let barrier = Arc::clone(&task.link.barrier);
    let mut turns = Loop::<E, R>::new(task, &mut engine);
    if !barrier.wait() {
        return Outcome::failed("was not started".into());
    }
    let (before, waited_before) = (sys::thread::usage().unwrap_or_default(), waited());
    let io_before = account.read();
    let counters = Counters::start();
    let mut calls = count_calls.then(Calls::start);
    barrier.hold();
    let start = turns.time().now();
    let error = turns.drive(start).err();
    let end = turns.time().now();
    let calls = calls.as_mut().map(|c| c.as_mut().map_err(|e| e.clone())?.end());
    let counted = Some(counters.and_then(|mut c| c.end()));
    let (after, waited_after) = (sys::thread::usage().unwrap_or_default(), waited());
    let helpers = if has_helpers { of_ring_helpers() } else { ThreadIo::default() };
    let io = io_before.and_then(|before| Ok(account.read()?.since(before).plus(helpers)));
    let ready_ns = waited_before.and_then(|before| Ok(waited_after?.saturating_sub(before)));
    let usage = Usage {
        user_ns: after.user_ns - before.user_ns,
        system_ns: after.system_ns - before.system_ns,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        forced_switches: after.forced_switches - before.forced_switches,
        minor_faults: after.minor_faults - before.minor_faults,
        major_faults: after.major_faults - before.major_faults,
    };
    let wall_ns = turns.time().ns(end - start);
    let outcome = turns.close();
    let depth_counts = engine.depth_counts();
    let name = |e| format!("worker {} ({}): {e}", task.spec.worker, task.spec.engine.name);
    let ready_ns = Some(ready_ns);
    let io = Some(io);
    Outcome {
        error: error.map(name),
        granted,
        wall_ns,
        usage,
        counted,
        ready_ns,
        io,
        calls,
        depth_counts,
        ..outcome
    }
}

/// Puts the thread where it belongs before it allocates anything, and has its timers ring when they are due.
fn settle(spec: &WorkerSpec) -> io::Result<()> {
    sys::thread::place(&spec.place.cpus, spec.place.node)?;
    match &spec.place.memory {
        Some(MemoryNodes::Local) => memory_policy::set_memory_policy(MemoryPolicy::Local, &[])?,
        Some(MemoryNodes::Bind(nodes)) => memory_policy::set_memory_policy(MemoryPolicy::Bind, nodes)?,
        Some(MemoryNodes::Prefer(node)) => memory_policy::set_memory_policy(MemoryPolicy::Prefer, &[*node])?,
        Some(MemoryNodes::Interleave(nodes)) => memory_policy::set_memory_policy(MemoryPolicy::Interleave, nodes)?,
        None => spec.place.node.map_or(Ok(()), |node| memory_policy::set_memory_policy(MemoryPolicy::Bind, &[node]))?,
    }
    sys::thread::prefer(spec.place.nice, spec.place.io_priority.map(IoPriority::number))?;
    // Without this the kernel may let a sleeper wait 50 us longer; on refusal it just does.
    let _ = sys::thread::precise_timers();
    Ok(())
}
