//! The stall watchdog: whether fathom and each of its workers ran all the time.
//!
//! A thread does nothing but sleep for about 10 ms and look. It finds two kinds of stops:
//!
//! 1. A stop signal, a freezer or a paused machine stops all threads at once, and their clocks with them: no worker can tell it from a
//!    slow device. The thread then wakes up much later than it asked for, without having waited for a CPU.
//! 2. A debugger, `strace` or a freezer can stop a single worker. After each sleep the thread reads the state, the tracer and the wait
//!    channel of the next few workers in `/proc/self/task`. The sleeps differ in length, so that stops at regular intervals are met as
//!    often as they last.
//!
//! Workers count waiting for a CPU themselves (D08); D26 judges what this thread saw.

use machine::root::Root;
use machine::threads::numbered;
use model::Known;
use model::record::{Still, WorkerStates};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::thread::RunQueue;

/// Lateness that is no mere timer: a tick is 10 ms at most, and a paused machine is gone for longer than this.
const STILL_FROM: Duration = Duration::from_millis(100);
/// How long it sleeps, in turn: 10 ms on average.
const NAPS_MS: [u64; 4] = [7, 12, 9, 12];
/// Most workers whose state is read after a sleep: each costs about 20 us.
const WORKERS_AT_ONCE: usize = 4;
/// Wait channels of a thread that a freezer holds (cgroup v1 and v2).
const FREEZERS: [&str; 2] = ["__refrigerator", "do_freezer_trap"];
/// How often the account of waiting is read, so that a late return is compared with the waiting of its own time.
const ACCOUNT_EVERY: Duration = Duration::from_millis(100);

/// The thread that sleeps; ended where this is dropped.
pub(super) struct StillWatch {
    is_over: Arc<AtomicBool>,
    thread: Option<io::Result<JoinHandle<Known<Still>>>>,
}

impl StillWatch {
    pub(super) fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_over);
        let sleep = move || Sleeper::begin().until(&of_thread);
        let thread = std::thread::Builder::new().name("fathom-still".into()).spawn(sleep);
        Self { is_over, thread: Some(thread) }
    }

    /// What it saw.
    ///
    /// # Errors
    /// Why there was nobody to see it, or waiting for a CPU cannot be told from standing still.
    pub(super) fn end(mut self) -> Known<Still> {
        let thread = self.thread.take().ok_or("it has ended")?;
        let thread = thread.map_err(|e| format!("fathom cannot start a thread: {e}"))?;
        self.is_over.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err("the thread that sleeps has ended".into()))
    }
}

impl Drop for StillWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Watches itself sleep.
struct Sleeper {
    queue: Known<RunQueue>,
    seen: Still,
    workers: Known<Sampler>,
    /// When the account was last read, and ns of waiting by then.
    account: (Instant, u64),
}

impl Sleeper {
    fn begin() -> Self {
        let queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
        let workers = Ok(Sampler::new());
        let mut sleeper = Self { queue, seen: Still::default(), workers, account: (Instant::now(), 0) };
        sleeper.account.1 = sleeper.waited_ns();
        sleeper
    }

    fn until(mut self, is_over: &AtomicBool) -> Known<Still> {
        let mut woken = Instant::now();
        for nap in NAPS_MS.into_iter().cycle().map(Duration::from_millis) {
            if let Ok(workers) = &mut self.workers
                && let Err(why) = workers.sample()
            {
                self.workers = Err(why);
            }
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            std::thread::park_timeout(nap);
            // From one return to the next, so that no moment is left out.
            let now = Instant::now();
            self.returned((now - woken).saturating_sub(nap));
            woken = now;
        }
        self.seen.workers = Some(self.workers.map(|workers| workers.seen));
        let counts = self.queue.and_then(|q| q.waited_ns().map_err(|e| e.to_string()));
        counts.map(|_| self.seen)
    }

    /// Keeps by how much a sleep took longer than asked, less the time that this thread waited for a CPU.
    fn returned(&mut self, late: Duration) {
        if late < STILL_FROM && self.account.0.elapsed() < ACCOUNT_EVERY {
            return;
        }
        let waited = self.waited_ns();
        let waiting = Duration::from_nanos(waited.saturating_sub(self.account.1));
        self.account = (Instant::now(), waited);
        self.note(late, waiting);
    }

    fn note(&mut self, late: Duration, waiting: Duration) {
        let still = late.saturating_sub(waiting);
        if still >= STILL_FROM {
            let ns = still.as_nanos() as u64;
            self.seen.times += 1;
            self.seen.longest_ns = self.seen.longest_ns.max(ns);
            self.seen.total_ns = self.seen.total_ns.saturating_add(ns);
        }
    }

    fn waited_ns(&self) -> u64 {
        self.queue.as_ref().ok().and_then(|q| q.waited_ns().ok()).unwrap_or(0)
    }
}

/// Samples the states of the workers in turn.
struct Sampler {
    root: Root,
    begun: Instant,
    /// When the workers are listed next: they take their names a moment after they begin.
    list_at: Duration,
    ids: Vec<u32>,
    next: usize,
    seen: WorkerStates,
}

impl Sampler {
    fn new() -> Self {
        Self {
            root: Root::real(),
            begun: Instant::now(),
            list_at: Duration::ZERO,
            ids: Vec::new(),
            next: 0,
            seen: WorkerStates::default(),
        }
    }

    /// Samples the next few workers.
    ///
    /// # Errors
    /// Why states cannot be read.
    fn sample(&mut self) -> Known<()> {
        let passed = self.begun.elapsed();
        if passed >= self.list_at {
            self.ids = numbered(&self.root, "fathom-")?;
            self.list_at = (2 * passed).max(Duration::from_millis(10));
        }
        for _ in 0..self.ids.len().min(WORKERS_AT_ONCE) {
            self.next = (self.next + 1) % self.ids.len();
            let dir = format!("/proc/self/task/{}", self.ids[self.next]);
            match self.root.read(&format!("{dir}/status")) {
                Ok(status) => {
                    // Reading the status has shown that /proc is the kernel's own. Asking again, a hundred times a second, costs CPU.
                    let wait_channel = std::fs::read_to_string(self.root.path(&format!("{dir}/wchan")));
                    self.add(&status, wait_channel.ok().as_deref().map(str::trim));
                }
                // It has ended.
                Err(_) if !self.root.has(&dir) => {}
                Err(why) => return Err(format!("the state of a worker cannot be read: {dir}/status: {why}")),
            }
        }
        Ok(())
    }

    /// Counts a sample: the text of `status`, and the wait channel.
    fn add(&mut self, status: &str, wait_channel: Option<&str>) {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let is_stopped = field("State:").is_some_and(|state| state.starts_with(['T', 't']));
        let is_frozen = wait_channel.is_some_and(|channel| FREEZERS.contains(&channel));
        self.seen.samples += 1;
        self.seen.stopped += u64::from(is_stopped || is_frozen);
        if let Some(pid) = field("TracerPid:").filter(|pid| *pid != "0") {
            self.seen.traced += 1;
            let root = &self.root;
            self.seen.tracer.get_or_insert_with(|| {
                let name = root.word(&format!("/proc/{pid}/comm"));
                name.map_or_else(|| format!("pid {pid}"), |name| format!("{name} (pid {pid})"))
            });
        }
    }
}

#[test]
fn a_stopped_a_frozen_and_a_traced_worker_are_told_from_one_that_waits() {
    let mut sampler = Sampler::new();
    let status =
        |state: &str, tracer: u32| format!("Name:\tfathom-0\nState:\t{state}\nTracerPid:\t{tracer}\n");
    sampler.add(&status("D (disk sleep)", 0), Some("io_schedule"));
    sampler.add(&status("S (sleeping)", 0), None);
    assert_eq!(sampler.seen, WorkerStates { samples: 2, ..WorkerStates::default() });
    sampler.add(&status("T (stopped)", 0), None);
    sampler.add(&status("D (disk sleep)", 0), Some("__refrigerator"));
    sampler.add(&status("S (sleeping)", 0), Some("do_freezer_trap"));
    sampler.add(&status("t (tracing stop)", 2), None);
    sampler.add(&status("R (running)", u32::MAX), None);
    assert_eq!((sampler.seen.samples, sampler.seen.stopped, sampler.seen.traced), (7, 4, 2));
    assert!(sampler.seen.tracer.is_some_and(|name| name.contains("pid 2")));
}

#[test]
fn what_is_late_and_did_not_wait_for_a_cpu_stood_still() {
    let mut watch = Sleeper::begin();
    let ms = Duration::from_millis;
    watch.note(ms(99), ms(0));
    watch.note(ms(1_000), ms(950));
    assert_eq!(watch.seen, Still::default());
    watch.note(ms(1_000), ms(100));
    watch.note(ms(200), ms(0));
    let seen = Still { times: 2, longest_ns: 900_000_000, total_ns: 1_100_000_000, workers: None };
    assert_eq!(watch.seen, seen);
}
