//! Sight: what the view looks at by itself, beside what workers hand in.
//!
//! For: the kernel's counters of the run that goes on, CPU time of its workers, and who else uses the disks. Not for: what they mean
//! (crate `analysis`).

use super::state::Sample;
use analysis::under_way::counters::{Going, SoFar};
use machine::others::Processes;
use machine::root::Root;
use machine::snapshot::Watch;
use machine::threads;
use model::Known;
use model::evidence::Snapshot;
use model::machine::Machine;
use model::plan::Plan;
use model::record::RunStart;
use std::time::{Duration, Instant};

/// How often processes are searched through at most.
const SEARCH_EVERY: Duration = Duration::from_secs(1);
/// Longest rest between two looks: what stands still for longer looks as if it had ended, where a look at processes takes long.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(5);
/// Age of an earlier search from which it says nothing about what goes on now: more than that of the look before, however rare they are.
const SEARCH_IS_OLD: Duration = Duration::from_secs(2 * LONGEST_REST.as_secs());
/// Begin of the names of worker threads.
const WORKER: &str = "fathom-";

/// What is looked at.
pub(super) struct Sight {
    watch: Watch,
    root: Root,
    going: Going,
    workers: Option<Known<Workers>>,
    search: Option<(Instant, Processes)>,
    culprit: Known<String>,
}

/// The workers of the run, with the CPU time of each in ns when it was looked at.
struct Workers {
    at: Instant,
    cpu_ns: Vec<(u32, u64)>,
}

impl Sight {
    /// Of a plan on a machine.
    pub(super) fn new(watch: Watch, plan: &Plan, machine: &Machine) -> Self {
        let going = Going::new(plan, machine);
        let culprit = Err("processes were not searched through yet".into());
        Self { watch, root: Root::real(), going, workers: None, search: None, culprit }
    }

    /// A run begins, with the counters at its start.
    pub(super) fn begin(&mut self, start: RunStart, first: Snapshot) {
        self.going.begin(start, first);
        self.workers = None;
    }

    /// Looks; `None` where nothing can be said since no time has passed.
    pub(super) fn sample(&mut self, so_far: &SoFar) -> Option<Sample> {
        let counted = self.going.sample(self.watch.glance(), so_far)?;
        if matches!(counted.others, Ok(Some(_))) {
            self.search();
        }
        Some(Sample { counted, busiest: self.busiest(), culprit: self.culprit.clone() })
    }

    /// CPU time of the busiest worker since the last look.
    fn busiest(&mut self) -> Known<f64> {
        let root = &self.root;
        let first = || {
            let ids = threads::numbered(root, WORKER)?;
            Ok(Workers { at: Instant::now(), cpu_ns: ids.into_iter().map(|id| (id, 0)).collect() })
        };
        let is_first = self.workers.is_none();
        let workers = self.workers.get_or_insert_with(first).as_mut().map_err(|why| why.clone())?;
        let now = Instant::now();
        let passed_ns = now.duration_since(workers.at).as_nanos() as f64;
        workers.at = now;
        let mut most = None;
        for (id, before) in &mut workers.cpu_ns {
            // One that has ended does nothing any more.
            let Ok(cpu_ns) = sys::thread::cpu_ns_of(*id) else { continue };
            most = most.max(Some(cpu_ns.saturating_sub(*before)));
            *before = cpu_ns;
        }
        match most {
            Some(ns) if !is_first && passed_ns > 0.0 => Ok(ns as f64 / passed_ns),
            _ => Err("no time has passed".into()),
        }
    }

    /// Searches for whoever uses the disks beside us.
    fn search(&mut self) {
        let now = Instant::now();
        let age = self.search.as_ref().map(|(at, _)| now.duration_since(*at));
        if age.is_some_and(|age| age < SEARCH_EVERY) {
            return;
        }
        let before = self.search.take().filter(|_| age.is_some_and(|age| age < SEARCH_IS_OLD));
        let found = Processes::list(&self.root);
        self.culprit = match (&found, &before) {
            (Err(why), _) => Err(why.clone()),
            (Ok(_), None) => Err("processes were searched through only once".into()),
            (Ok(now), Some((_, before))) => who(now, before),
        };
        self.search = found.ok().map(|processes| (now, processes));
    }
}

/// The process that moved most between two looks, `dd (7)`.
fn who(now: &Processes, before: &Processes) -> Known<String> {
    let busy = now.busy_since(before);
    let most = busy.iter().filter(|b| b.io_bytes.is_some_and(|n| n > 0)).max_by_key(|b| b.io_bytes);
    match most {
        Some(busy) => Ok(format!("{} ({})", busy.name, busy.pid)),
        None if now.hidden() > 0 => Err("who it is only root can see".into()),
        None => Err("no process that can be seen moves anything".into()),
    }
}
