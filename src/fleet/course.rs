//! The course of a run on all hosts: how many operations each has completed, and which of them complete none any more.
//!
//! For: what signs of life tell of loads, a row of each for whoever watches, and naming storage that hangs on one host while that of others
//! goes on. Pure. Not for: hosts that give no sign of life at all ([`super::post`]), nor for when a hanging worker is given up
//! (`engine::workers`).

use super::letter::Far;
use crate::live::{HostRow, HostState};
use model::units::{show_ns, show_rate};

/// How long a host completes nothing until it is named. With the time between two signs of life that is below five seconds.
const HUNG_AFTER_NS: u64 = 3_000_000_000;
/// Operations that it must have been expected to complete meanwhile, by its rate so far or by that of the others: slow loads rest for longer.
const EXPECTED: f64 = 10.0;
/// How lately another host must have completed something: what stops all of them is not the storage of one.
const LATELY_NS: u64 = 1_000_000_000;

/// Time that the rate of a host is of.
const RATE_OF_NS: u64 = 1_000_000_000;
/// Rows of hosts that are made: more than a terminal has.
const MOST_ROWS: usize = 64;

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
    p99_ns: Option<u64>,
    /// Operations per second lately, and when how many had completed that it was last counted from.
    iops: Option<f64>,
    counted: (u64, u64),
}

impl Host {
    /// What it does, where it is not lost.
    fn state(&self, now_ns: u64) -> HostState {
        match self.grew_ns {
            None => HostState::Waiting,
            Some(at) if self.is_named && now_ns.saturating_sub(at) >= HUNG_AFTER_NS => HostState::Hung,
            Some(_) => HostState::Measuring,
        }
    }

    /// Counts its rate anew, where it is time to.
    fn count(&mut self, at_ns: u64) {
        let (operations, then) = self.counted;
        let passed = at_ns.saturating_sub(then);
        if passed >= RATE_OF_NS {
            self.iops = Some(self.operations.saturating_sub(operations) as f64 * 1e9 / passed as f64);
            self.counted = (self.operations, at_ns);
        }
    }
}

impl Course {
    /// Of so many hosts.
    pub(super) fn for_hosts(size: usize) -> Self {
        Self { hosts: vec![Host::default(); size], ..Self::default() }
    }

    /// A run begins at a time.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.began_ns = at_ns;
        self.hosts.iter_mut().for_each(|host| *host = Host { counted: (0, at_ns), ..Host::default() });
    }

    /// What a host says of its load at a time; `None` where it has none.
    pub(super) fn tell(&mut self, rank: usize, far: Option<Far>, at_ns: u64) {
        let Some(host) = self.hosts.get_mut(rank) else { return };
        let Some(Far { operations, p99_ns }) = far else {
            (host.grew_ns, host.iops) = (None, None);
            return;
        };
        if operations != host.operations || host.grew_ns.is_none() {
            (host.operations, host.grew_ns) = (operations, Some(at_ns.max(self.began_ns)));
        }
        host.p99_ns = p99_ns;
        host.count(at_ns);
    }

    /// A row for each host, of many for those that need a look most: the lost one, those that hang, the slowest, and those that wait.
    pub(super) fn rows(
        &self,
        lost: Option<usize>,
        name: impl Fn(usize) -> String,
        now_ns: u64,
    ) -> Vec<HostRow> {
        let state = |rank: usize, host: &Host| {
            if lost == Some(rank) { HostState::Lost } else { host.state(now_ns) }
        };
        let mut all: Vec<(HostState, usize, &Host)> =
            self.hosts.iter().enumerate().map(|(rank, host)| (state(rank, host), rank, host)).collect();
        let slow = |host: &Host| host.iops.unwrap_or(f64::INFINITY);
        all.sort_by(|(a, rank, one), (b, other_rank, other)| {
            a.cmp(b).then(slow(one).total_cmp(&slow(other))).then(rank.cmp(other_rank))
        });
        all.truncate(MOST_ROWS);
        let row = |(state, rank, host): (HostState, usize, &Host)| HostRow {
            rank,
            name: name(rank),
            iops: host.iops.filter(|_| state != HostState::Lost),
            p99_ns: host.p99_ns.filter(|_| state != HostState::Waiting),
            state,
        };
        all.into_iter().map(row).collect()
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
fn slow_hosts(operations: impl Fn(usize, u64) -> Option<u64>) -> Vec<(u64, String)> {
    let mut course = Course::for_hosts(3);
    course.begin(1_000);
    let mut all = Vec::new();
    for quarter in 1..80 {
        let at_ns = 1_000 + quarter * 250_000_000;
        let far = |rank| operations(rank, quarter).map(|operations| Far { operations, p99_ns: None });
        (0..3).for_each(|rank| course.tell(rank, far(rank), at_ns));
        let told = course.notice(|rank| format!("h{rank}"), at_ns);
        all.extend(told.into_iter().map(|words| (quarter, words)));
    }
    all
}

#[test]
fn storage_that_hangs_is_named_once_and_within_five_seconds() {
    let all = slow_hosts(|rank, quarter| Some(50 * if rank == 1 { quarter.min(20) } else { quarter }));
    let [(quarter, words)] = all.as_slice() else { panic!("{all:?}") };
    assert!((32..=40).contains(quarter), "{quarter}");
    assert!(
        words.starts_with("the storage of h1 does not answer") && words.contains("200 a second"),
        "{words}"
    );
    let never = slow_hosts(|rank, quarter| Some(if rank == 2 { 0 } else { quarter }));
    assert!(never.len() == 1 && never[0].1.contains("h2"), "one that never began: {never:?}");
}

#[test]
fn slow_loads_ended_ones_and_what_stops_all_are_not_named() {
    let slow = slow_hosts(|rank, quarter| Some((quarter + 6 * rank as u64) / 18));
    assert!(slow.is_empty(), "one operation in four seconds and a half: {slow:?}");
    let ended = slow_hosts(|rank, quarter| (rank != 1 || quarter < 20).then_some(quarter * 50));
    assert!(ended.is_empty(), "{ended:?}");
    let all = slow_hosts(|_, quarter| Some(50 * quarter.min(20)));
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn whoever_needs_a_look_has_the_first_row_and_nothing_unknown_is_a_zero() {
    let mut course = Course::for_hosts(300);
    course.begin(0);
    let far = |rank: u64, at: u64| {
        (rank != 299).then_some(Far { operations: at * (100 + rank), p99_ns: Some(5_000) })
    };
    let rows = |course: &Course, lost| course.rows(lost, |rank| format!("h{rank}"), 20_250_000_000);
    assert!(rows(&course, None).iter().all(|row| row.iops.is_none() && row.state == HostState::Waiting));
    for at in 1..=80 {
        // One hangs from the fortieth sign of life on.
        let it = |rank: u64| if rank == 7 { at.min(40) } else { at };
        (0..300).for_each(|rank| course.tell(rank as usize, far(rank, it(rank)), at * 250_000_000));
        course.notice(|rank| format!("h{rank}"), at * 250_000_000);
    }
    let rows = rows(&course, Some(5));
    let first: Vec<(&str, HostState)> =
        rows.iter().take(3).map(|row| (row.name.as_str(), row.state)).collect();
    assert_eq!(first, [("h5", HostState::Lost), ("h7", HostState::Hung), ("h0", HostState::Measuring)]);
    assert_eq!(
        (rows.len(), rows[0].iops, rows[1].iops, rows[2].iops),
        (MOST_ROWS, None, Some(0.0), Some(400.0))
    );
    assert_eq!(rows[2].p99_ns, Some(5_000));
}
