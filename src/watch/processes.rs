//! The processes that move most, from look to look.
//!
//! For: who, how much, how it has files on the watched devices open, and what it asked these for. Not for: reading `/proc` (crate `machine`),
//! nor for the events of requests ([`super::events`]).
//!
//! Looking takes CPU time that grows with the number of processes and of descriptors. It rests a hundred times as long as it worked, so
//! that watching never takes more than a hundredth of a CPU for it.

use super::events::Events;
use machine::processes;
use machine::processes::{Moved, ProcessIo, Whose};
use machine::resolve::OnDevices;
use machine::root::Root;
use model::Known;
use model::watch::{Open, ProcessRequests, Processes, WatchedProcess};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Processes that are shown.
const MOST: usize = 5;
/// How much longer it rests than it worked.
const RESTS: u32 = 100;
/// Instead of a name, for what moved data below a process and has ended.
const CHILDREN: &str = "ended children";
/// What is said of all figures, once.
pub(super) fn remark() -> String {
    let others =
        if rustix::process::geteuid().is_root() { "" } else { "; those of other users only root sees" };
    format!(
        "processes: bytes on all devices; writes count when they are made dirty, and whose the data are that the kernel writes back \
         later cannot be told{others}"
    )
}

/// What processes, or threads, asked the watched devices for.
type Requests = BTreeMap<u32, ProcessRequests>;

/// All processes, or the threads of one.
pub(super) struct Busiest {
    root: Root,
    whose: Whose,
    interval: Duration,
    on: OnDevices,
    before: Option<(Instant, ProcessIo)>,
    /// Until when processes, and their descriptors, are left alone.
    rests: [Instant; 2],
    /// How files were open when they were last looked at.
    open: BTreeMap<u32, Known<Open>>,
}

impl Busiest {
    /// With a first look.
    pub(super) fn new(root: &Root, whose: Whose, interval: Duration, devices: &[String]) -> Self {
        let now = Instant::now();
        let mut busiest = Self {
            root: root.clone(),
            whose,
            interval,
            on: OnDevices::new(root, devices.to_vec()),
            before: None,
            rests: [now, now],
            open: BTreeMap::new(),
        };
        // Where nothing can be seen the next look says why.
        let _ = busiest.sample(devices, &mut Events::none());
        busiest.rests = [now, now];
        busiest
    }

    /// Looks; `None` while it rests.
    ///
    /// # Errors
    /// That the only process that is watched has ended, or why none can be seen.
    pub(super) fn sample(
        &mut self,
        devices: &[String],
        events: &mut Events,
    ) -> Result<Option<Processes>, String> {
        let now = Instant::now();
        if now < self.rests[0] {
            return Ok(None);
        }
        let began = cpu_time();
        let look = ProcessIo::sample(&self.root, self.whose, self.before.as_ref().map(|(_, look)| look));
        let look = look.map_err(|why| match self.whose {
            Whose::ThreadsOf(pid) => format!("process {pid} has ended"),
            Whose::Processes => format!("processes cannot be seen: {why}"),
        })?;
        self.rests[0] = now + self.rest(began);
        let processes = self.before.take().map(|(since, before)| {
            let seconds = now.duration_since(since).as_secs_f64();
            let requests = events.processes();
            let moved = moved_or_asked(&look, &before, requests.as_ref());
            self.to_processes(&look, &moved, requests.as_ref(), (seconds, devices))
        });
        self.before = Some((now, look));
        Ok(processes)
    }

    fn to_processes(
        &mut self,
        look: &ProcessIo,
        moved: &[Moved],
        requests: Option<&Requests>,
        (seconds, devices): (f64, &[String]),
    ) -> Processes {
        let asked = |m: &Moved| own_requests(requests?, m).map(|of| bytes_of(of, seconds));
        let mut moved: Vec<&Moved> = moved.iter().filter(|m| self.is_told(m) || asked(m).is_some()).collect();
        let bytes = |m: &Moved| asked(m).unwrap_or(0).max(m.counters.storage_bytes());
        moved.sort_by_key(|m| std::cmp::Reverse((bytes(m), m.counters.rchar)));
        let most: Vec<&Moved> = moved.iter().take(MOST).copied().collect();
        self.look_at_files(&most, devices);
        Processes {
            seconds,
            most: most.into_iter().map(|m| self.process(m, requests, seconds)).collect(),
            more: moved.len().saturating_sub(MOST),
            hidden: look.hidden(),
            calls_not_known: None,
        }
    }

    /// Of all processes those that moved data of storage; of one every thread that did anything.
    fn is_told(&self, moved: &Moved) -> bool {
        matches!(self.whose, Whose::ThreadsOf(_)) || moved.counters.storage_bytes() > 0
    }

    /// Looks at the descriptors of these, unless it rests; of what it has not seen it then says so.
    fn look_at_files(&mut self, most: &[&Moved], devices: &[String]) {
        let now = Instant::now();
        if now < self.rests[1] {
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
        self.rests[1] = now + self.rest(began);
    }

    fn process(&self, moved: &Moved, requests: Option<&Requests>, seconds: f64) -> WatchedProcess {
        let pid = self.pid_of(moved);
        let mb = |bytes: u64| bytes as f64 / 1e6 / seconds;
        let per_s = |calls: u64| calls as f64 / seconds;
        let counters = &moved.counters;
        let unseen = || Err("its descriptors were not looked at yet".to_owned());
        WatchedProcess {
            pid,
            tid: matches!(self.whose, Whose::ThreadsOf(_)).then_some(moved.id),
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
                Err("they have ended".to_owned())
            } else {
                self.open.get(&pid).cloned().unwrap_or_else(unseen)
            },
            calls: None,
            // Who has none asked for nothing, where all were seen.
            requests: requests.map(|all| own_requests(all, moved).copied().unwrap_or_default()),
        }
    }

    fn pid_of(&self, moved: &Moved) -> u32 {
        match self.whose {
            Whose::Processes => moved.id,
            Whose::ThreadsOf(pid) => pid,
        }
    }

    /// How long to rest from now on: not at all where that is shorter than an interval.
    fn rest(&self, began: Duration) -> Duration {
        let rest = cpu_time().saturating_sub(began) * RESTS;
        if rest > self.interval { rest } else { Duration::ZERO }
    }
}

/// The requests of a process itself. Those of its ended children had their own ids.
fn own_requests<'r>(all: &'r Requests, moved: &Moved) -> Option<&'r ProcessRequests> {
    all.get(&moved.id).filter(|_| !moved.by_children)
}

/// Those that moved something by their own counters, and those that had requests; who is gone by now is not among them.
fn moved_or_asked(look: &ProcessIo, before: &ProcessIo, requests: Option<&Requests>) -> Vec<Moved> {
    let mut moved = look.moved_since(before);
    let asked = requests.into_iter().flat_map(BTreeMap::keys);
    let others: Vec<Moved> = asked
        .filter(|id| moved.iter().all(|m| m.by_children || m.id != **id))
        .filter_map(|id| look.still(*id))
        .collect();
    moved.extend(others);
    moved
}

/// Bytes of requests.
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

#[test]
fn this_test_is_among_the_threads_of_its_process_and_one_that_is_not_there_has_ended() {
    let root = Root::real();
    let interval = Duration::from_secs(1);
    let mut own = Busiest::new(&root, Whose::ThreadsOf(std::process::id()), interval, &[]);
    assert!(std::fs::read("/proc/self/stat").is_ok_and(|text| !text.is_empty()));
    own.rests = [Instant::now(); 2];
    let seen = own
        .sample(&[], &mut Events::none())
        .unwrap_or_else(|e| panic!("{e}"))
        .unwrap_or_else(|| panic!("it rests"));
    assert!(seen.most.iter().all(|p| p.pid == std::process::id() && p.tid.is_some()), "{seen:?}");
    assert!(seen.most.iter().any(|p| p.read_calls_per_s > 0.0), "{seen:?}");
    let mut gone = Busiest::new(&root, Whose::ThreadsOf(u32::MAX), interval, &[]);
    assert_eq!(gone.sample(&[], &mut Events::none()), Err(format!("process {} has ended", u32::MAX)));
}
