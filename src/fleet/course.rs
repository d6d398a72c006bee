//! The course of a run on all hosts: how many operations each has completed, and which of them complete none any more.
//!
//! For: what signs of life tell of loads, and naming storage that hangs on one host while that of others goes on. Pure. Not for: hosts
//! that give no sign of life at all ([`super::post`]), nor for when a hanging worker is given up (`engine::workers`).

use model::units::{show_ns, show_rate};

/// How long a host completes nothing until it is named. With the time between two signs of life that is below five seconds.
const HUNG_AFTER_NS: u64 = 3_000_000_000;
/// Operations that it must have been expected to complete meanwhile, by its rate so far or by that of the others: slow loads rest for longer.
const EXPECTED: f64 = 10.0;
/// How lately another host must have completed something: what stops all of them is not the storage of one.
const LATELY_NS: u64 = 1_000_000_000;

/// How far a run is.
#[derive(Debug, Default)]
pub(super) struct Course {
    began_ns: u64,
    /// By rank.
    hosts: Vec<Host>,
    hung: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Host {
    operations: u64,
    /// When that last grew, in ns of our clock; `None` where no load goes on.
    grew_ns: Option<u64>,
    is_named: bool,
}

impl Course {
    /// Of so many hosts.
    pub(super) fn of(size: usize) -> Self {
        Self { hosts: vec![Host::default(); size], ..Self::default() }
    }

    /// A run begins at a time.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.began_ns = at_ns;
        self.hosts.iter_mut().for_each(|host| *host = Host::default());
    }

    /// What a host says of its load at a time; `None` where it has none.
    pub(super) fn tell(&mut self, rank: usize, operations: Option<u64>, at_ns: u64) {
        let Some(host) = self.hosts.get_mut(rank) else { return };
        let Some(operations) = operations else {
            host.grew_ns = None;
            return;
        };
        if operations != host.operations || host.grew_ns.is_none() {
            (host.operations, host.grew_ns) = (operations, Some(at_ns.max(self.began_ns)));
        }
    }

    /// Operations that a host told of last.
    pub(super) fn operations(&self, rank: usize) -> u64 {
        self.hosts.get(rank).map_or(0, |host| host.operations)
    }

    /// All that was told of hosts whose storage did not answer.
    pub(super) fn hung(&self) -> &[String] {
        &self.hung
    }

    /// Names the hosts that complete nothing any more while others do; each once in a run.
    pub(super) fn notice(&mut self, name: impl Fn(usize) -> String, now_ns: u64) -> Vec<String> {
        let rate = |host: &Host| {
            let ran = host.grew_ns?.saturating_sub(self.began_ns);
            (ran > 0).then(|| host.operations as f64 / ran as f64)
        };
        let quickest = self.hosts.iter().filter_map(rate).fold(0.0, f64::max);
        let since = |host: &Host| host.grew_ns.map(|at| now_ns.saturating_sub(at));
        let goes_on =
            self.hosts.iter().any(|h| h.operations > 0 && since(h).is_some_and(|ns| ns < LATELY_NS));
        let mut told = Vec::new();
        for (rank, host) in self.hosts.iter_mut().enumerate() {
            let Some(silent) = since(host).filter(|ns| *ns >= HUNG_AFTER_NS) else { continue };
            let own = rate(host).filter(|_| host.operations as f64 >= EXPECTED);
            let usual = own.unwrap_or(quickest);
            if host.is_named || !goes_on || EXPECTED > usual * silent as f64 {
                continue;
            }
            host.is_named = true;
            told.push(format!(
                "the storage of {} does not answer: no operation has completed there for {}, {} into the run, after {} a second; other hosts go on",
                name(rank),
                show_ns(silent as f64),
                show_ns(now_ns.saturating_sub(self.began_ns) as f64),
                show_rate(usual * 1e9)
            ));
        }
        self.hung.extend(told.iter().cloned());
        told
    }
}

/// What is told of hosts by their operations at each quarter of a second.
#[cfg(test)]
fn told(operations: impl Fn(usize, u64) -> Option<u64>) -> Vec<(u64, String)> {
    let mut course = Course::of(3);
    course.begin(1_000);
    let mut all = Vec::new();
    for quarter in 1..80 {
        let at_ns = 1_000 + quarter * 250_000_000;
        (0..3).for_each(|rank| course.tell(rank, operations(rank, quarter), at_ns));
        let told = course.notice(|rank| format!("h{rank}"), at_ns);
        all.extend(told.into_iter().map(|words| (quarter, words)));
    }
    all
}

#[test]
fn storage_that_hangs_is_named_once_and_within_five_seconds() {
    let all = told(|rank, quarter| Some(50 * if rank == 1 { quarter.min(20) } else { quarter }));
    let [(quarter, words)] = all.as_slice() else { panic!("{all:?}") };
    assert!((32..=40).contains(quarter), "{quarter}");
    assert!(
        words.starts_with("the storage of h1 does not answer") && words.contains("200 a second"),
        "{words}"
    );
    let never = told(|rank, quarter| Some(if rank == 2 { 0 } else { quarter }));
    assert!(never.len() == 1 && never[0].1.contains("h2"), "one that never began: {never:?}");
}

#[test]
fn slow_loads_ended_ones_and_what_stops_all_are_not_named() {
    let slow = told(|rank, quarter| Some((quarter + 6 * rank as u64) / 18));
    assert!(slow.is_empty(), "one operation in four seconds and a half: {slow:?}");
    let ended = told(|rank, quarter| (rank != 1 || quarter < 20).then_some(quarter * 50));
    assert!(ended.is_empty(), "{ended:?}");
    let all = told(|_, quarter| Some(50 * quarter.min(20)));
    assert!(all.is_empty(), "{all:?}");
}
