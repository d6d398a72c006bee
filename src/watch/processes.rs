//! Processes of `fathom watch`: which processes move most data, with which flags their files are open, their requests to the devices, and
//! their system calls.
//!
//! 1. [`Busiest`] samples `/proc`. Sampling takes CPU time in proportion to processes and descriptors, so `Busiest` rests a hundred times
//!    as long as it worked.
//! 2. [`Events`] records block events: the latency of each request, and the process that issued the request. If events are lost, the
//!    figures of their interval are unknown.
//! 3. [`Calls`] counts system calls that move data, with the event `raw_syscalls:sys_enter` in a tracer instance that records only the
//!    shown processes. It also counts their page faults, which mapped files cause instead of calls.

use crate::block_events::{BlockEvents, TracedDevice, now_ns};
use crate::failure::Failure;
use machine::error::MachineError;
use machine::processes;
use machine::processes::{Faults, ProcessIo, ProcessVisibility, SampledTasks, TaskIo, faults};
use machine::resolve::OnDevices;
use machine::root::Root;
use machine::tracer::{Tracer, process_of};
use model::Known;
use model::units::show_counted;
use model::watch::{
    Call, FaultRates, Open, ProcessCalls, ProcessRequests, Processes, WatchedDevice, WatchedProcess,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use sys::tracefs::IO_CALLS;
use trace::interval::Interval;
use trace::pairing::PATIENCE_NS;
use trace::syscall_counter::SyscallCounter;

/// Maximum number of processes that are shown.
const MAX_SHOWN: usize = 5;
/// Rest after a sample, as a multiple of the CPU time that it took.
const REST_FACTOR: u32 = 100;
/// Name of the ended children of a process, whose I/O the kernel counts together.
const CHILDREN: &str = "ended children";

/// Returns the remark about the figures of processes, which is shown once.
pub(super) fn remark(root: &Root) -> String {
    let visibility = ProcessVisibility::of_this_process(root);
    let others = visibility
        .explain(usize::from(!visibility.is_root))
        .map_or_else(String::new, |why| format!("; {why}"));
    format!(
        "processes: bytes of all devices together; writes count when pages become dirty, because the kernel does not record whose data it writes back later{others}"
    )
}

/// Requests to the watched devices by process or thread.
type Requests = BTreeMap<u32, ProcessRequests>;

/// Finds the processes that move most data, or the threads of one process.
pub(super) struct Busiest {
    root: Root,
    sampled: SampledTasks,
    interval: Duration,
    on: OnDevices,
    before: Option<(Instant, ProcessIo)>,
    /// When the processes are sampled again.
    next_sample: Instant,
    /// When the descriptors are read again.
    next_descriptors: Instant,
    /// Flags with which each process had files open at the last check.
    open: BTreeMap<u32, Known<Open>>,
}

impl Busiest {
    /// Starts with a first sample.
    pub(super) fn new(root: &Root, sampled: SampledTasks, interval: Duration, devices: &[String]) -> Self {
        let now = Instant::now();
        let mut busiest = Self {
            root: root.clone(),
            sampled,
            interval,
            on: OnDevices::new(root, devices.to_vec()),
            before: None,
            next_sample: now,
            next_descriptors: now,
            open: BTreeMap::new(),
        };
        // If no process is visible, the next sample reports why.
        let _ = busiest.sample(devices, &mut Events::none());
        (busiest.next_sample, busiest.next_descriptors) = (now, now);
        busiest
    }

    /// Samples the processes; `None` during a rest, and for the first sample, which has nothing to be compared with.
    ///
    /// # Errors
    /// If the only watched process has ended, or no process is visible.
    pub(super) fn sample(
        &mut self,
        devices: &[String],
        events: &mut Events,
    ) -> Result<Option<Processes>, String> {
        let now = Instant::now();
        if now < self.next_sample {
            return Ok(None);
        }
        let began = cpu_time();
        let before = self.before.as_ref().map(|(_, before)| before);
        let seen = ProcessIo::sample(&self.root, self.sampled, before).map_err(|why| match self.sampled {
            SampledTasks::ThreadsOf(pid) => format!("process {pid} has ended"),
            SampledTasks::Processes => format!("no process is visible: {why}"),
        })?;
        self.next_sample = now + self.rest(began);
        let processes = self.before.take().map(|(since, before)| {
            let seconds = now.duration_since(since).as_secs_f64();
            let requests = events.processes();
            let moved = active_processes(&seen, &before, requests.as_ref());
            self.read_processes(&seen, &moved, requests.as_ref(), seconds, devices)
        });
        self.before = Some((now, seen));
        Ok(processes)
    }

    fn read_processes(
        &mut self,
        seen: &ProcessIo,
        moved: &[TaskIo],
        requests: Option<&Requests>,
        seconds: f64,
        devices: &[String],
    ) -> Processes {
        let requested = |m: &TaskIo| own_requests(requests?, m).map(|of| bytes_of(of, seconds));
        let mut moved: Vec<&TaskIo> =
            moved.iter().filter(|m| self.is_shown(m) || requested(m).is_some()).collect();
        let bytes = |m: &TaskIo| requested(m).unwrap_or(0).max(m.counters.storage_bytes());
        moved.sort_by_key(|m| std::cmp::Reverse((bytes(m), m.counters.rchar)));
        let most: Vec<&TaskIo> = moved.iter().take(MAX_SHOWN).copied().collect();
        self.read_descriptors(&most, devices);
        Processes {
            seconds,
            listed: most.into_iter().map(|m| self.process(m, requests, seconds)).collect(),
            unlisted: moved.len().saturating_sub(MAX_SHOWN),
            unreadable: seen.hidden(),
            calls_not_known: None,
        }
    }

    /// Whether to show a process by its counters: only if it read or wrote storage. With `--pid`, every active thread of the watched
    /// process is shown.
    fn is_shown(&self, moved: &TaskIo) -> bool {
        matches!(self.sampled, SampledTasks::ThreadsOf(_)) || moved.counters.storage_bytes() > 0
    }

    /// Reads the descriptors of these processes, except during a rest. Processes without known descriptors are then shown as not checked
    /// yet.
    fn read_descriptors(&mut self, most: &[&TaskIo], devices: &[String]) {
        let now = Instant::now();
        if now < self.next_descriptors {
            return;
        }
        let began = cpu_time();
        self.on.renew(&self.root, devices);
        self.open.clear();
        for moved in most.iter().filter(|m| !m.kernel) {
            let pid = self.pid_of(moved);
            if !self.open.contains_key(&pid) {
                self.open.insert(pid, processes::open_flags_of_process(&self.root, pid, &self.on));
            }
        }
        self.next_descriptors = now + self.rest(began);
    }

    fn process(&self, moved: &TaskIo, requests: Option<&Requests>, seconds: f64) -> WatchedProcess {
        let pid = self.pid_of(moved);
        let mb = |bytes: u64| bytes as f64 / 1e6 / seconds;
        let per_s = |calls: u64| calls as f64 / seconds;
        let counters = &moved.counters;
        let unseen = || Err("the descriptors were not checked yet".to_owned());
        WatchedProcess {
            pid,
            tid: matches!(self.sampled, SampledTasks::ThreadsOf(_)).then_some(moved.id),
            name: if moved.by_children { CHILDREN.to_owned() } else { moved.name.clone() },
            children_of: moved.by_children.then(|| moved.name.clone()),
            kernel: moved.kernel,
            read_mb_per_s: mb(counters.read_bytes),
            write_mb_per_s: mb(counters.write_bytes),
            rchar_mb_per_s: mb(counters.rchar),
            wchar_mb_per_s: mb(counters.wchar),
            read_calls_per_s: per_s(counters.read_calls),
            write_calls_per_s: per_s(counters.write_calls),
            open: if moved.by_children {
                Err("the children have ended".to_owned())
            } else {
                self.open.get(&pid).cloned().unwrap_or_else(unseen)
            },
            calls: None,
            // If all requests were recorded, a process without a record made none.
            requests: requests.map(|all| own_requests(all, moved).copied().unwrap_or_default()),
        }
    }

    fn pid_of(&self, moved: &TaskIo) -> u32 {
        match self.sampled {
            SampledTasks::Processes => moved.id,
            SampledTasks::ThreadsOf(pid) => pid,
        }
    }

    /// Returns how long to rest after a sample. Returns zero if the rest would be shorter than an interval.
    fn rest(&self, began: Duration) -> Duration {
        let rest = cpu_time().saturating_sub(began) * REST_FACTOR;
        if rest > self.interval { rest } else { Duration::ZERO }
    }
}

/// Returns the requests of a process; `None` for the sum of its ended children, whose process ids were different.
fn own_requests<'r>(all: &'r Requests, moved: &TaskIo) -> Option<&'r ProcessRequests> {
    all.get(&moved.id).filter(|_| !moved.by_children)
}

/// Returns the living processes that moved data by their own counters or had requests.
fn active_processes(seen: &ProcessIo, before: &ProcessIo, requests: Option<&Requests>) -> Vec<TaskIo> {
    let mut moved = seen.io_since(before);
    let asked = requests.into_iter().flat_map(BTreeMap::keys);
    let others: Vec<TaskIo> = asked
        .filter(|id| moved.iter().all(|m| m.by_children || m.id != **id))
        .filter_map(|id| seen.without_io(*id))
        .collect();
    moved.extend(others);
    moved
}

/// Bytes of the reads and writes of a process in this many seconds, from their rates.
fn bytes_of(requests: &ProcessRequests, seconds: f64) -> u64 {
    let directions = [requests.read, requests.write];
    let mb: f64 = directions.iter().flatten().map(|of| of.mb_per_s).sum();
    (mb * 1e6 * seconds) as u64
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Size of the kernel's trace buffer for each CPU.
const BUFFER_BYTES: u64 = 4 << 20;
/// Suffix of the name of the tracer instance for calls. The instance for block events has no suffix.
const TRACER_SUFFIX: &str = "calls";
/// The remark about counted system calls, shown once.
pub(super) const REMARK: &str = "--syscalls: each system call costs a shown process about 1 us, and any other process about 100 ns; the calls of a process are counted as soon as it has been shown once";

/// A followed process or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Followed {
    pid: u32,
    /// Thread id; `None` for all threads of the process together.
    tid: Option<u32>,
}

/// Counts the calls of the shown processes.
pub(super) struct Calls {
    root: Root,
    /// The only watched process, whose threads are shown one by one; `None` if all processes are watched.
    pid: Option<u32>,
    tracer: Tracer,
    counted: SyscallCounter,
    page: Vec<u8>,
    /// Followed processes and threads, with their page faults at the last sample; `None` if these are unknown.
    followed: BTreeMap<Followed, Option<Faults>>,
    /// The process of each thread that made calls; `None` if it is unknown.
    owners: BTreeMap<u32, Option<u32>>,
    since: Instant,
    /// Number of calls lost before this interval.
    lost: u64,
    /// Why counting stopped; `None` while it works.
    broken: Option<String>,
}

impl Calls {
    /// Starts counting. If only one process is watched, follows its threads at once.
    ///
    /// # Errors
    /// If the user may not use the tracer, or the kernel cannot record system calls.
    pub(super) fn new(root: &Root, pid: Option<u32>) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Refused(format!("--syscalls: calls cannot be counted: {why}"));
        let failed = |e: MachineError| refused(e.to_string());
        let mut tracer = Tracer::with_suffix(BUFFER_BYTES, TRACER_SUFFIX).map_err(failed)?;
        let filter: Vec<String> = IO_CALLS.iter().map(|(number, _)| format!("id == {number}")).collect();
        let format = tracer.record("raw_syscalls", "sys_enter", &filter.join(" || "));
        let (format, header) = (format.map_err(failed)?, tracer.header_page().map_err(failed)?);
        let counted = SyscallCounter::new(&header, &format).map_err(|why| refused(why.to_string()))?;
        let mut calls = Self {
            root: root.clone(),
            pid,
            page: vec![0; counted.page_bytes()],
            tracer,
            counted,
            followed: BTreeMap::new(),
            owners: BTreeMap::new(),
            since: Instant::now(),
            lost: 0,
            broken: None,
        };
        calls.follow(Vec::new()).map_err(refused)?;
        Ok(calls)
    }

    /// Reads the calls recorded so far from the tracer.
    pub(super) fn drain(&mut self) {
        let counted = &mut self.counted;
        if let Err(why) = self.tracer.drain(&mut self.page, |page| counted.page(page)) {
            self.broken = Some(why.to_string());
        }
        // Find the process of each thread while the thread still exists.
        let root = &self.root;
        for thread in self.counted.threads() {
            self.owners.entry(thread).or_insert_with(|| process_of(root, thread).0);
        }
    }

    /// Adds the calls to the followed processes, and follows the processes that are shown now.
    pub(super) fn add_to(&mut self, processes: &mut Processes) {
        self.drain();
        let now = Instant::now();
        let seconds = now.duration_since(self.since).max(Duration::from_millis(1)).as_secs_f64();
        let counts = self.counted.take();
        processes.calls_not_known = self.why_unknown();
        let known = processes.calls_not_known.is_none();
        for process in processes.listed.iter_mut().filter(|_| known) {
            let Some(before) = self.followed.get(&followed(process)) else { continue };
            process.calls = Some(ProcessCalls {
                seconds,
                calls: self.calls_of(followed(process), &counts, seconds),
                faults: before.zip(faults(&self.root, process.pid, process.tid)).map(|(before, after)| {
                    FaultRates {
                        major_per_s: after.major.saturating_sub(before.major) as f64 / seconds,
                        minor_per_s: after.minor.saturating_sub(before.minor) as f64 / seconds,
                    }
                }),
            });
        }
        self.owners.clear();
        self.since = now;
        let shown: Vec<Followed> = processes.listed.iter().filter(|p| !p.kernel).map(followed).collect();
        if let Err(why) = self.follow(shown) {
            self.broken = Some(why);
        }
    }

    /// Why the calls of the ending interval are unknown; `None` if they are known.
    fn why_unknown(&mut self) -> Option<String> {
        if self.broken.is_some() {
            return self.broken.clone();
        }
        match self.tracer.lost() {
            Err(why) => Some(why.to_string()),
            Ok(lost) => {
                let lost = self.counted.lost.max(lost.overrun.saturating_add(lost.dropped));
                let now = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
                (now > 0).then(|| format!("the kernel's tracer lost {}", show_counted(now, "call")))
            }
        }
    }

    fn calls_of(&self, of: Followed, counts: &BTreeMap<(u32, u64), u64>, seconds: f64) -> Vec<Call> {
        let is_followed = |thread: u32| match of.tid {
            Some(tid) => tid == thread,
            None => self.owners.get(&thread).copied().flatten() == Some(of.pid),
        };
        let mut all: Vec<Call> = Vec::new();
        for (number, name) in IO_CALLS {
            let of_all = counts
                .iter()
                .filter(|((thread, id), _)| i64::try_from(*id) == Ok(number) && is_followed(*thread));
            let count: u64 = of_all.map(|(_, count)| count).sum();
            if count > 0 {
                all.push(Call { name: name.to_owned(), count, per_s: count as f64 / seconds });
            }
        }
        all.sort_by_key(|call| std::cmp::Reverse(call.count));
        all
    }

    /// Follows only the threads of these processes. If a single process is watched, follows all of its threads instead.
    fn follow(&mut self, mut shown: Vec<Followed>) -> Known<()> {
        if let Some(pid) = self.pid {
            let all = self.threads_of(pid).into_iter();
            shown = all.map(|tid| Followed { pid, tid: Some(tid) }).collect();
        }
        let mut threads: Vec<u32> = Vec::new();
        for one in &shown {
            match one.tid {
                Some(tid) => threads.push(tid),
                None => threads.extend(self.threads_of(one.pid)),
            }
        }
        self.followed = shown.iter().map(|one| (*one, faults(&self.root, one.pid, one.tid))).collect();
        if self.tracer.follow(&threads).map_err(|e| e.to_string())? {
            // Discard records from before the change: they belong to no interval.
            self.drain();
            self.counted.take();
            self.since = Instant::now();
        }
        Ok(())
    }

    fn threads_of(&self, pid: u32) -> Vec<u32> {
        let all = self.root.list(&format!("/proc/{pid}/task")).unwrap_or_default();
        all.iter().filter_map(|name| name.parse().ok()).collect()
    }
}

fn followed(process: &WatchedProcess) -> Followed {
    Followed { pid: process.pid, tid: process.tid }
}

/// The events of some devices, or why there are none.
pub(super) struct Events {
    /// Whether the user wants events.
    wanted: bool,
    by_thread: bool,
    /// Recorded devices, each with `major:minor` of the shown device.
    devices: Vec<(String, TracedDevice)>,
    recording: Known<Recording>,
}

/// A recording with its results.
struct Recording {
    events: BlockEvents,
    interval: Interval,
    /// When requests were last reported per process.
    reported_at: Instant,
    losses: Losses,
}

/// Events that the kernel lost.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Number of lost events so far.
    lost: u64,
    /// Number of lost events at the start of the interval.
    before: u64,
    /// Number of lost events when requests were last reported per process.
    before_processes: u64,
    /// Time until which a completion may be attributed to the wrong request, in ns.
    unsure_until_ns: u64,
    /// Whether completions were uncertain when requests were last reported per process.
    processes_unsure: bool,
}

impl Events {
    /// The state of a command that records no events.
    pub(super) fn none() -> Self {
        let recording = Err("block events are not recorded".into());
        Self { wanted: false, by_thread: false, devices: Vec::new(), recording }
    }

    /// The state of a command that records events. [`Self::follow`] names the devices.
    pub(super) fn new(sampled: SampledTasks) -> Self {
        let by_thread = matches!(sampled, SampledTasks::ThreadsOf(_));
        Self { wanted: true, by_thread, ..Self::none() }
    }

    /// Records these devices from now on. Returns a remark if this fails, and at the first recording.
    pub(super) fn follow(&mut self, devices: &[(String, TracedDevice)]) -> Option<String> {
        let is_full = self.recording.as_ref().is_ok_and(|recording| recording.events.is_full());
        if !self.wanted || devices.is_empty() || (self.devices == devices && !is_full) {
            return None;
        }
        let is_first = self.devices.is_empty();
        self.devices = devices.to_vec();
        // Remove the old instance first: the new one gets the same name, which contains the process id.
        self.recording = Err(String::new());
        self.recording = Recording::begin(devices, self.by_thread);
        match &self.recording {
            Err(why) => {
                self.wanted = false;
                Some(format!(
                    "latency percentiles and the requests of each process are unknown: they require the kernel's block events: {why}"
                ))
            }
            Ok(_) if is_first => Some(
                "latencies and requests of processes come from the kernel's block events, which cost about 1 us of CPU time per request; --no-events disables them"
                    .into(),
            ),
            Ok(_) => None,
        }
    }

    /// Reads the events recorded so far from the tracer.
    pub(super) fn drain(&mut self) {
        if let Ok(recording) = &mut self.recording
            && let Err(why) = recording.drain()
        {
            self.recording = Err(why);
        }
    }

    /// Adds the request latencies in the ending interval to the devices.
    pub(super) fn add_latencies(&mut self, shown: &mut [WatchedDevice]) {
        if let Ok(recording) = &mut self.recording
            && let Err(why) = recording.end_interval()
        {
            self.recording = Err(why);
        }
        let why = match &mut self.recording {
            // Events were not requested, or a remark has already reported the failure: report nothing.
            _ if !self.wanted => return,
            Err(why) => why.clone(),
            Ok(recording) => {
                let unknown = recording.losses.interval_gap(now_ns());
                let all = recording.interval.take_latencies();
                for ((number, _), latencies) in self.devices.iter().zip(all) {
                    let known = unknown.clone().map_or(Ok(latencies), Err);
                    let shown = shown.iter_mut().filter(|device| device.number == *number);
                    shown.for_each(|device| device.latency = Some(known.clone()));
                }
                return;
            }
        };
        let top = |device: &&mut WatchedDevice| device.level == 0;
        shown.iter_mut().filter(top).for_each(|device| device.latency = Some(Err(why.clone())));
    }

    /// Requests of processes since the last call; `None` if unknown.
    pub(super) fn processes(&mut self) -> Option<BTreeMap<u32, ProcessRequests>> {
        let recording = self.recording.as_mut().ok()?;
        let since = std::mem::replace(&mut recording.reported_at, Instant::now());
        let seconds = recording.reported_at.duration_since(since).max(Duration::from_millis(1)).as_secs_f64();
        let processes = recording.interval.take_processes(seconds);
        recording.losses.processes_are_known(now_ns()).then_some(processes)
    }
}

impl Recording {
    fn begin(devices: &[(String, TracedDevice)], by_thread: bool) -> Known<Self> {
        let traced: Vec<TracedDevice> = devices.iter().map(|(_, of)| of.clone()).collect();
        Ok(Self {
            events: BlockEvents::begin(&traced)?,
            interval: Interval::new(devices.iter().map(|(_, device)| device.unit), by_thread),
            reported_at: Instant::now(),
            losses: Losses::default(),
        })
    }

    /// Adds the available events to the interval.
    fn drain(&mut self) -> Known<()> {
        let (events, interval) = (&mut self.events, &mut self.interval);
        events.drain(&mut |at, row, names| interval.add(at, row, names))?;
        self.losses.add_losses(self.events.lost(), now_ns());
        Ok(())
    }

    /// Adds the last events of an interval, and the kernel's count of lost events.
    fn end_interval(&mut self) -> Known<()> {
        self.drain()?;
        self.losses.add_losses(self.events.lost_by_kernel()?, now_ns());
        Ok(())
    }
}

impl Losses {
    /// Updates the number of lost events.
    fn add_losses(&mut self, lost: u64, now_ns: u64) {
        if lost > self.lost {
            self.lost = lost;
            self.unsure_until_ns = now_ns.saturating_add(PATIENCE_NS);
        }
    }

    /// Returns why the ending interval has no figures; `None` if it has them. Then begins the next interval.
    fn interval_gap(&mut self, now_ns: u64) -> Option<String> {
        let lost = self.lost - std::mem::replace(&mut self.before, self.lost);
        if lost > 0 {
            return Some(format!("the kernel's tracer lost {}", show_counted(lost, "event")));
        }
        (now_ns < self.unsure_until_ns).then(|| {
            "the kernel's tracer lost events earlier, and requests in flight at that time may be mistaken for others".into()
        })
    }

    /// Whether the requests since the last call are known: no events were lost, and no completion is uncertain.
    fn processes_are_known(&mut self, now_ns: u64) -> bool {
        let lost = self.lost - std::mem::replace(&mut self.before_processes, self.lost);
        let was_unsure = std::mem::replace(&mut self.processes_unsure, now_ns < self.unsure_until_ns);
        lost == 0 && !was_unsure && !self.processes_unsure
    }
}

#[test]
fn threads_are_sampled_and_a_missing_process_has_ended() {
    let root = Root::real();
    let interval = Duration::from_secs(1);
    let mut own = Busiest::new(&root, SampledTasks::ThreadsOf(std::process::id()), interval, &[]);
    assert!(std::fs::read("/proc/self/stat").is_ok_and(|text| !text.is_empty()));
    (own.next_sample, own.next_descriptors) = (Instant::now(), Instant::now());
    let seen = own
        .sample(&[], &mut Events::none())
        .unwrap_or_else(|e| panic!("{e}"))
        .unwrap_or_else(|| panic!("it rests"));
    assert!(seen.listed.iter().all(|p| p.pid == std::process::id() && p.tid.is_some()), "{seen:?}");
    assert!(seen.listed.iter().any(|p| p.read_calls_per_s > 0.0), "{seen:?}");
    let mut gone = Busiest::new(&root, SampledTasks::ThreadsOf(u32::MAX), interval, &[]);
    assert_eq!(gone.sample(&[], &mut Events::none()), Err(format!("process {} has ended", u32::MAX)));
}

#[test]
fn lost_events_make_figures_unknown() {
    let mut losses = Losses::default();
    losses.add_losses(0, 1);
    assert_eq!(losses.interval_gap(2), None);
    assert!(losses.processes_are_known(2));
    losses.add_losses(137, 10);
    let why = losses.interval_gap(20).unwrap_or_default();
    assert!(why.contains("lost 137 events"), "{why}");
    let why = losses.interval_gap(30).unwrap_or_default();
    assert!(why.contains("may be mistaken"), "{why}");
    assert!(!losses.processes_are_known(30));
    let later = 11 + PATIENCE_NS;
    assert_eq!(losses.interval_gap(later), None);
    assert!(!losses.processes_are_known(later), "a part of that time");
    assert!(losses.processes_are_known(later));
}
