//! Which system calls the shown processes make, by `raw_syscalls:sys_enter` in an instance of the tracer that follows their threads alone.
//!
//! For: `--syscalls`: counts of the calls that move data, and page faults beside them, which mapped files make instead of calls. Not for: what
//! the bytes of events mean (the crate `capture`).

use crate::failure::Failure;
use capture::trace::command::Calls as Counted;
use machine::processes::{Faults, faults};
use machine::root::Root;
use machine::tracer::{Tracer, process_of};
use model::Known;
use model::units::show_count;
use model::watch::{Call, FaultRates, ProcessCalls, Processes, WatchedProcess};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use sys::io_calls::IO_CALLS;

/// Bytes of buffer for each CPU.
const BUFFER_BYTES: u64 = 4 << 20;
/// What tells the instance from that of block events.
const WORD: &str = "calls";
/// What is said of it, once.
pub(super) const REMARK: &str = "--syscalls: each call of a process that is shown costs it about 1 us more, and each call of any other one some 100 ns; \
     processes are followed from the interval on in which they are first shown";

/// A process or a thread as it is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Followed {
    pid: u32,
    /// `None` for all of its threads together.
    tid: Option<u32>,
}

/// Their calls.
pub(super) struct Calls {
    root: Root,
    /// The only process that is watched, thread by thread.
    pid: Option<u32>,
    tracer: Tracer,
    counted: Counted,
    page: Vec<u8>,
    /// Who is followed since the last look, with the faults until then.
    followed: BTreeMap<Followed, Option<Faults>>,
    /// The process of each thread that made calls.
    owners: BTreeMap<u32, Option<u32>>,
    since: Instant,
    /// Calls that were lost before.
    lost: u64,
    /// Why nothing is counted any more.
    broken: Option<String>,
}

impl Calls {
    /// Begins; the threads of the only process that is watched are followed at once.
    ///
    /// # Errors
    /// Why this user may not, or the kernel cannot.
    pub(super) fn new(root: &Root, pid: Option<u32>) -> Result<Self, Failure> {
        let refused = |why: String| Failure::Refused(format!("--syscalls: calls cannot be counted: {why}"));
        let mut tracer = Tracer::with_name(BUFFER_BYTES, WORD).map_err(|e| refused(e.to_string()))?;
        let filter: Vec<String> = IO_CALLS.iter().map(|(number, _)| format!("id == {number}")).collect();
        let format = tracer.record_of("raw_syscalls", "sys_enter", &filter.join(" || "));
        let format = format.map_err(|e| refused(e.to_string()))?;
        let header = tracer.header_page().map_err(|e| refused(e.to_string()))?;
        let counted = Counted::new(&header, &format).map_err(|why| refused(why.to_string()))?;
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

    /// Takes what was recorded so far.
    pub(super) fn drain(&mut self) {
        let counted = &mut self.counted;
        if let Err(why) = self.tracer.drain(&mut self.page, |page| counted.page(page)) {
            self.broken = Some(why.to_string());
        }
        // Who they are is asked while they live.
        let root = &self.root;
        for thread in self.counted.threads() {
            self.owners.entry(thread).or_insert_with(|| process_of(root, thread).0);
        }
    }

    /// Tells the calls of processes that were followed, and follows those that are shown.
    pub(super) fn tell(&mut self, processes: &mut Processes) {
        self.drain();
        let now = Instant::now();
        let seconds = now.duration_since(self.since).max(Duration::from_millis(1)).as_secs_f64();
        let counts = self.counted.take();
        processes.calls_not_known = self.why_unknown();
        let known = processes.calls_not_known.is_none();
        for process in processes.most.iter_mut().filter(|_| known) {
            let Some(before) = self.followed.get(&followed(process)) else { continue };
            process.calls = Some(ProcessCalls {
                seconds,
                calls: self.calls_of(followed(process), &counts, seconds),
                faults: before.zip(self.faults_of(followed(process))).map(|(a, b)| rates(a, b, seconds)),
            });
        }
        self.owners.clear();
        self.since = now;
        let shown: Vec<Followed> = processes.most.iter().filter(|p| !p.kernel).map(followed).collect();
        if let Err(why) = self.follow(shown) {
            self.broken = Some(why);
        }
    }

    /// Why the calls of the interval that ends are not known.
    fn why_unknown(&mut self) -> Option<String> {
        if self.broken.is_some() {
            return self.broken.clone();
        }
        match self.tracer.lost() {
            Err(why) => Some(why.to_string()),
            Ok(lost) => {
                let lost = self.counted.lost.max(lost.overrun.saturating_add(lost.dropped));
                let now = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
                (now > 0).then(|| format!("the kernel's tracer lost {} calls", show_count(now as f64)))
            }
        }
    }

    fn calls_of(&self, of: Followed, counts: &BTreeMap<(u32, u64), u64>, seconds: f64) -> Vec<Call> {
        let is_of = |thread: u32| match of.tid {
            Some(tid) => tid == thread,
            None => self.owners.get(&thread).copied().flatten() == Some(of.pid),
        };
        let mut all: Vec<Call> = Vec::new();
        for (number, name) in IO_CALLS {
            let of_all =
                counts.iter().filter(|((thread, id), _)| i64::try_from(*id) == Ok(number) && is_of(*thread));
            let count: u64 = of_all.map(|(_, count)| count).sum();
            if count > 0 {
                all.push(Call { name: name.to_owned(), count, per_s: count as f64 / seconds });
            }
        }
        all.sort_by_key(|call| std::cmp::Reverse(call.count));
        all
    }

    fn faults_of(&self, of: Followed) -> Option<Faults> {
        faults(&self.root, of.pid, of.tid)
    }

    /// Follows the threads of these, and no others; where only one process is watched, all of its threads.
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
        self.followed = shown.iter().map(|one| (*one, self.faults_of(*one))).collect();
        if self.tracer.follow(&threads).map_err(|e| e.to_string())? {
            // What was recorded until then belongs to no interval.
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

fn rates(before: Faults, after: Faults, seconds: f64) -> FaultRates {
    let per_s = |a: u64, b: u64| b.saturating_sub(a) as f64 / seconds;
    FaultRates {
        major_per_s: per_s(before.major, after.major),
        minor_per_s: per_s(before.minor, after.minor),
    }
}
