//! Evidence in addition to the workers' own counts.
//!
//! 1. Snapshots of counters and file states go to the session file; a probe reads single blocks of each target. If streams touch different
//!    regions of a target, each region has extents and a probe of its own.
//! 2. [`StallWatchdog`] detects that all of fathom or a single worker was stopped. Its thread sleeps for about 10 ms at
//!    a time. If the thread wakes up much later than requested without having waited for a CPU, the whole process was stopped (stop
//!    signal, freezer, paused machine). After each sleep the thread reads the state, tracer and wait channel of the next few workers in
//!    `/proc/self/task`, which shows debuggers, `strace` and freezers. The sleeps differ in length, so that regular stops are sampled in
//!    proportion. D26 judges the result.
//! 3. [`DriverRecorder`] records a replay's requests at the driver, for comparison with the capture, and reports how much longer operations take
//!    above the driver.

use super::Measurement;
use crate::block_events;
use crate::block_events::BlockEvents;
#[cfg(not(feature = "capture"))]
use crate::capture::replay::{Figures, Observed};
use crate::failure::Failure;
use crate::run::target::OpenTarget;
#[cfg(feature = "capture")]
use capture::fit::{Figures, Observed};
use engine::source::Pieces;
use engine::source::replay::ReplayCounts;
use engine::spec::WorkerSpec;
use machine::root::Root;
use machine::snapshot::MeasuredRegion;
use machine::threads::numbered;
use model::captured::Origin;
use model::evidence::{Moment, Probe, Snapshot};
use model::histogram::Histogram;
use model::job::{Cache, Kind, Phase, ReplayPace, Stream};
use model::plan::{InjectedFault, Role};
use model::record::{AtDriver, Frame, Stops, StreamEnd, WorkerStates};
use model::units::show_counted;
use model::{Known, name};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::thread::RunQueue;
use trace::row::Task;

/// Attributes of files whose direct reads go through the page cache. Such files are not probed,
/// because a probe would leave pages in the cache.
const PAGE_CACHED_ATTRIBUTES: [&str; 2] = ["journal_data", "compressed"];

/// Maximum number of regions of a target with a state of their own in a snapshot. A probe of a region takes up to 0.5 s.
const MAX_REGIONS: usize = 16;

impl Measurement {
    /// Takes a snapshot and appends it to the session file. With `stored`, also reads how files are stored; see
    /// [`Self::measured_regions`].
    pub(super) fn store_snapshot(
        &mut self,
        moment: Moment,
        stored: Option<&Phase>,
    ) -> Result<Snapshot, Failure> {
        self.store_snapshot_unless_dead(moment, false, stored)
    }

    /// The open targets, each with one range that contains all bytes that streams of the plan touch, and the different
    /// regions of `streams`; `None` for a target that is not open.
    pub(super) fn measured_regions<'s>(
        &self,
        streams: impl Iterator<Item = &'s Stream>,
    ) -> Vec<Option<MeasuredRegion<'_>>> {
        let streams: Vec<_> = streams.collect();
        let regions = |index: usize| {
            let whole = self.plan.region(index, self.plan.streams()).unwrap_or(0..u64::MAX);
            let mut own: Vec<_> = streams
                .iter()
                .filter(|s| s.targets.contains(&index))
                .flat_map(|s| s.regions())
                .filter(|region| !self.plan.is_same_region(index, region, &whole))
                .collect();
            own.sort_by_key(|region| (region.end - region.start, region.start));
            own.dedup();
            own.truncate(MAX_REGIONS);
            (whole, own)
        };
        let open = self.targets.iter().map(OpenTarget::handle).enumerate();
        open.map(|(index, file)| {
            let (file, (whole, own)) = (file?, regions(index));
            Some((file, whole, own))
        })
        .collect()
    }

    /// Takes the snapshot after preparation, with probes of the stored data.
    pub(super) fn store_prepared(&mut self) -> Result<(), Failure> {
        let regions = self.measured_regions(self.plan.streams());
        let mut snapshot = self.snapshots.take(Moment::AfterPrepare, &regions, true);
        for (index, state) in snapshot.targets.iter_mut().enumerate().filter(|_| !self.is_stopped()) {
            // The regions are probed by size, because a probe leaves its blocks in a cache below the target: the 64 blocks
            // of a small region are few blocks of a larger one. The regions of turns have no probe.
            for region in state.regions.iter_mut().take_while(|_| !self.is_stopped()) {
                let bytes = region.first_byte..region.end_byte;
                if self.plan.streams().any(|s| s.access.region() == bytes) {
                    region.probe = self.probe_region(index, bytes);
                }
            }
            state.probe = self.probe(index);
        }
        self.last_run.evidence.push(snapshot.clone());
        self.session.append(&Frame::Evidence(Box::new(snapshot)))
    }

    /// Records what changed since `last` while workers run, and updates `last`.
    pub(super) fn store_changes(&mut self, last: &mut Snapshot) -> Result<(), Failure> {
        assert!(
            self.plan.injected_fault != Some(InjectedFault::PanicMain),
            "a fault that was injected on purpose (--test-hook panic-main)"
        );
        if self.plan.injected_fault == Some(InjectedFault::NoEvidence) {
            last.at_ns = self.now_ns();
            return Ok(());
        }
        let now = self.snapshots.take_changes(last);
        last.at_ns = now.at_ns;
        last.files.extend(now.files.clone());
        if now.files.is_empty() {
            return Ok(());
        }
        self.session.append(&Frame::Evidence(Box::new(now)))
    }

    /// Takes a snapshot as [`Self::store_snapshot`] does, but without the targets after a failure, because they may no longer answer. With
    /// `stored`, also reads how files are stored, in the regions of the phase's streams; this flushes files that were written.
    pub(super) fn store_snapshot_unless_dead(
        &mut self,
        moment: Moment,
        failed: bool,
        stored: Option<&Phase>,
    ) -> Result<Snapshot, Failure> {
        let streams = stored.map_or(&[][..], |phase| &phase.streams);
        let parts = if failed { Vec::new() } else { self.measured_regions(streams.iter()) };
        let snapshot = self.snapshots.take(moment, &parts, stored.is_some() && !failed);
        self.session.append(&Frame::Evidence(Box::new(snapshot.clone())))?;
        Ok(snapshot)
    }

    /// Probes the range of a target that contains all bytes that streams read; `None` if no stream reads it.
    fn probe(&self, index: usize) -> Option<Known<Probe>> {
        // The gap between two streams' ranges is probed too.
        self.probe_range(index, self.region_read(index)?)
    }

    /// Probes a region of a target; `None` if no stream reads exactly these bytes, or if [`Self::probe`] reads them.
    fn probe_region(&self, index: usize, region: Range<u64>) -> Option<Known<Probe>> {
        let mut reading = self.plan.streams().filter(|s| s.targets.contains(&index) && s.access.reads());
        let is_read = reading.any(|s| s.access.region() == region);
        if !is_read || self.plan.is_same_region(index, &region, &self.region_read(index)?) {
            return None;
        }
        self.probe_range(index, region)
    }

    /// Returns the range of a target that contains all bytes that streams read; `None` if no stream reads it.
    fn region_read(&self, index: usize) -> Option<Range<u64>> {
        self.plan.region(index, self.plan.streams().filter(|s| s.access.reads()))
    }

    /// Probes a range of a target, up to the end of the target; `None` if the target has no bytes.
    fn probe_range(&self, index: usize, range: Range<u64>) -> Option<Known<Probe>> {
        let ready = &self.targets[index];
        if self.plan.targets[index].role == Role::None {
            return None;
        }
        let within = range.start.min(ready.bytes())..range.end.min(ready.bytes());
        let range = ready.pieces().and_then(Pieces::largest).unwrap_or(within);
        if let Some(why) = self.cached_anyway(index) {
            return Some(Err(why));
        }
        let seed = self.plan.seed ^ (index as u64) << 32;
        let refused =
            "the target cannot be opened for direct reads, and buffered reads would fill the page cache";
        let file = ready.open(&self.root, Cache::Direct, false).map_err(|_| refused.to_owned());
        Some(file.and_then(|file| machine::probe::probe_latency(file, range, ready.align(), seed)))
    }

    /// Returns why direct reads of a target would fill the page cache; `None` if they do not.
    fn cached_anyway(&self, index: usize) -> Option<String> {
        let place = self.places.get(index)?;
        let through = "direct reads of the target go through the page cache";
        if place.direct.is_some_and(|d| d.offset_align == 0) {
            return Some(format!("{through}: statx reports no direct I/O"));
        }
        let attributes = place.file_system.iter().flat_map(|f| &f.attributes);
        let found = attributes.into_iter().find(|a| PAGE_CACHED_ATTRIBUTES.contains(&a.as_str()))?;
        Some(format!("{through}: the file has the attribute {found}"))
    }
}

/// A sleep that ends at least this late is a stall, not counting the time that the thread waited
/// for a CPU. Timers alone are late by a tick at most, which is up to 10 ms.
const STALL_FROM: Duration = Duration::from_millis(100);
/// Lengths of successive sleeps: 10 ms on average. After the last one, the first one follows again.
const NAPS_MS: [u64; 4] = [7, 12, 9, 12];
/// Most workers whose state is read after a sleep. Each costs about 20 us.
const WORKERS_AT_ONCE: usize = 4;
/// Wait channels of a frozen thread (cgroup v1 and v2).
const FREEZERS: [&str; 2] = ["__refrigerator", "do_freezer_trap"];
/// How often the thread's CPU wait is read. Frequent reads make sure that lateness is compared with the wait in the same period.
const ACCOUNT_EVERY: Duration = Duration::from_millis(100);

/// The watchdog thread, ended when dropped.
pub(super) struct StallWatchdog {
    is_over: Arc<AtomicBool>,
    thread: Option<io::Result<JoinHandle<Known<Stops>>>>,
}

impl StallWatchdog {
    pub(super) fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_over);
        let sleep = move || Sleeper::begin().until(&of_thread);
        let thread = std::thread::Builder::new().name("fathom-watchdog".into()).spawn(sleep);
        Self { is_over, thread: Some(thread) }
    }

    /// Returns the observed stops.
    ///
    /// # Errors
    /// Why the watchdog could not observe, or cannot separate stops from waits for a CPU.
    pub(super) fn end(mut self) -> Known<Stops> {
        let thread = self.thread.take().ok_or("the watchdog thread has ended")?;
        let thread = thread.map_err(|e| format!("fathom cannot start a thread: {e}"))?;
        self.is_over.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err("the watchdog thread failed".into()))
    }
}

impl Drop for StallWatchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Measures how late the watchdog thread wakes up.
struct Sleeper {
    queue: Known<RunQueue>,
    seen: Stops,
    workers: Known<Sampler>,
    /// When the thread's CPU wait was last read.
    read_at: Instant,
    /// The thread's CPU wait at `read_at`, in ns.
    waited_ns: u64,
}

impl Sleeper {
    fn begin() -> Self {
        let queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
        let workers = Ok(Sampler::new());
        let read_at = Instant::now();
        let mut sleeper = Self { queue, seen: Stops::default(), workers, read_at, waited_ns: 0 };
        sleeper.waited_ns = sleeper.read_wait_ns();
        sleeper
    }

    fn until(mut self, is_over: &AtomicBool) -> Known<Stops> {
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
            // Measure from each return to the next one, so that no time is left out.
            let now = Instant::now();
            self.check_lateness((now - woken).saturating_sub(nap));
            woken = now;
        }
        self.seen.workers = Some(self.workers.map(|workers| workers.seen));
        let counts = self.queue.and_then(|q| q.waited_ns().map_err(|e| e.to_string()));
        counts.map(|_| self.seen)
    }

    /// Counts a stall if a sleep was late by [`STALL_FROM`] or more, without the time that this thread waited for a CPU.
    fn check_lateness(&mut self, late: Duration) {
        if late < STALL_FROM && self.read_at.elapsed() < ACCOUNT_EVERY {
            return;
        }
        let waited_ns = self.read_wait_ns();
        let waiting = Duration::from_nanos(waited_ns.saturating_sub(self.waited_ns));
        (self.read_at, self.waited_ns) = (Instant::now(), waited_ns);
        self.note(late, waiting);
    }

    fn note(&mut self, late: Duration, waiting: Duration) {
        let unexplained = late.saturating_sub(waiting);
        if unexplained >= STALL_FROM {
            let ns = unexplained.as_nanos() as u64;
            self.seen.count += 1;
            self.seen.longest_ns = self.seen.longest_ns.max(ns);
            self.seen.total_ns = self.seen.total_ns.saturating_add(ns);
        }
    }

    fn read_wait_ns(&self) -> u64 {
        self.queue.as_ref().ok().and_then(|q| q.waited_ns().ok()).unwrap_or(0)
    }
}

/// Samples the states of the workers in turn.
struct Sampler {
    root: Root,
    begun: Instant,
    /// When to list the workers next. Several lists are needed at first, because a worker gets its name shortly after it begins.
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
                    // `Root::read` checks that /proc is the kernel's own. Repeating this check for `wchan` would cost CPU time 100 times
                    // a second.
                    let wait_channel = std::fs::read_to_string(self.root.path(&format!("{dir}/wchan")));
                    self.add(&status, wait_channel.ok().as_deref().map(str::trim));
                }
                // The worker has ended.
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

/// How often the trace buffers are emptied.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// How long to wait at the end for events that are not in the buffers yet.
const DRAIN_WAIT: Duration = Duration::from_millis(5);
/// Fewest operations for a median.
const MIN_OPERATIONS: u64 = 20;

/// Records the requests of a running replay.
pub(super) struct DriverRecorder {
    recording: Known<Recording>,
    due: Instant,
    /// Receives the overhead between caller and driver; `None` if no operation waits for completions.
    overhead_sink: Option<Arc<ReplayCounts>>,
}

struct Recording {
    events: BlockEvents,
    observed: Observed,
}

impl DriverRecorder {
    /// Starts recording requests if the phase is a replay.
    pub(super) fn begin(measurement: &Measurement, phase: &Phase, specs: &[WorkerSpec]) -> Option<Self> {
        let replay = phase.streams.iter().find_map(|stream| stream.replay.as_ref())?;
        let is_dependent = replay.pace == ReplayPace::Dependent;
        let overhead_sink = specs.iter().find_map(|spec| spec.replay.clone()).filter(|_| is_dependent);
        let reaches_targets = specs.iter().all(|spec| spec.engine.touches_targets());
        let recording = if reaches_targets {
            Recording::begin(measurement, phase)
        } else {
            Err("the engine sends no requests to devices".into())
        };
        Some(Self { recording, due: Instant::now() + DRAIN_INTERVAL, overhead_sink })
    }

    /// Reads the requests recorded so far, and passes to the replay, for each kind, how much longer
    /// operations took than their requests at the driver. Does nothing until the next interval is
    /// due. `above` has the latencies of the operations.
    pub(super) fn follow(&mut self, above: &StreamEnd) {
        let Ok(recording) = &mut self.recording else { return };
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + DRAIN_INTERVAL;
        if let Err(why) = recording.drain() {
            self.recording = Err(why);
            return;
        }
        let Some(counts) = &self.overhead_sink else { return };
        for (kind, end) in &above.kinds {
            if let Some(ns) = driver_overhead_ns(&end.latency, recording.observed.latency(*kind)) {
                counts.set_outside_driver_ns(*kind, ns);
            }
        }
    }

    /// Ends the recording and returns its result.
    pub(super) fn end(self) -> Known<AtDriver> {
        std::thread::sleep(DRAIN_WAIT);
        self.recording?.end()
    }
}

/// Returns the median latency of operations minus the median latency of their requests at the
/// driver, in ns. `None` with too few of either.
fn driver_overhead_ns(above: &Histogram, at_driver: &Histogram) -> Option<u64> {
    let median = |of: &Histogram| of.supported_quantile_ns(0.5).filter(|_| of.count() >= MIN_OPERATIONS);
    Some(median(above)?.saturating_sub(median(at_driver)?))
}

impl Recording {
    fn begin(measurement: &Measurement, phase: &Phase) -> Known<Self> {
        let [stream] = phase.streams.as_slice() else {
            return Err(
                "other streams run at the same time, and the kernel does not report which stream issued a request".into()
            );
        };
        let [target] = stream.targets.as_slice() else { return Err("the stream has several targets".into()) };
        let path = measurement.plan.targets.get(*target).map(|target| name::path(&target.path));
        let path = path.filter(|path| path.exists()).ok_or("the path of the target does not exist")?;
        let subject = block_events::find(&measurement.root, &path).map_err(|why| why.message().to_owned())?;
        let events = BlockEvents::begin(std::slice::from_ref(&subject.traced))?;
        let origin = Origin { unit: subject.traced.unit, ..Origin::default() };
        Ok(Self { events, observed: Observed::new(&origin, 0) })
    }

    fn drain(&mut self) -> Known<()> {
        let (events, observed) = (&mut self.events, &mut self.observed);
        events.drain(&mut |_, row, names| observed.add(std::slice::from_ref(row), names, &is_ours))
    }

    fn end(mut self) -> Known<AtDriver> {
        let (events, observed) = (&mut self.events, &mut self.observed);
        events.end(&mut |_, row, names| observed.add(std::slice::from_ref(row), names, &is_ours))?;
        let lost = events.lost().max(events.lost_by_kernel()?);
        if lost > 0 {
            return Err(format!("the kernel's tracer lost {}", show_counted(lost, "event")));
        }
        let Figures { counts, latencies, depth, .. } = self.observed.finish();
        let kinds = Kind::ALL.into_iter().zip(counts.into_iter().zip(latencies));
        Ok(AtDriver { depth, kinds: kinds.filter(|(_, (count, _))| *count > 0).collect() })
    }
}

/// Whether a task is a worker of this run.
fn is_ours(task: &Task) -> bool {
    is_worker_of(task, std::process::id())
}

/// Whether a task is a worker of the run in process `pid`, or a kernel worker that io_uring created for it.
pub(crate) fn is_worker_of(task: &Task, pid: u32) -> bool {
    let number =
        |prefix: &str| task.name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    (number("fathom-") || number("iou-wrk-")) && task.pid.is_none_or(|of| of == pid)
}

#[test]
fn stopped_frozen_and_traced_workers_are_detected() {
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
fn lateness_without_cpu_wait_is_a_stop() {
    let mut watch = Sleeper::begin();
    let ms = Duration::from_millis;
    watch.note(ms(99), ms(0));
    watch.note(ms(1_000), ms(950));
    assert_eq!(watch.seen, Stops::default());
    watch.note(ms(1_000), ms(100));
    watch.note(ms(200), ms(0));
    let seen = Stops { count: 2, longest_ns: 900_000_000, total_ns: 1_100_000_000, workers: None };
    assert_eq!(watch.seen, seen);
}

#[test]
fn driver_overhead_is_the_difference_of_medians() {
    let histogram = |ns: u64, count: u64| {
        let mut histogram = Histogram::default();
        (0..count).for_each(|_| histogram.record(ns));
        histogram
    };
    let way = driver_overhead_ns(&histogram(120_000, 50), &histogram(80_000, 50)).unwrap_or_default();
    assert!((39_000..41_000).contains(&way), "{way}");
    // The driver reports longer latencies than the caller: no overhead.
    assert_eq!(driver_overhead_ns(&histogram(80_000, 50), &histogram(120_000, 50)), Some(0));
    assert_eq!(driver_overhead_ns(&histogram(120_000, 50), &histogram(80_000, 19)), None);
}
