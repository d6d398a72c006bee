//! The progress of a run on all hosts: completed operations per host, and hosts whose storage hangs.
//!
//! The progress comes from heartbeats. A host is reported as hung if it has completed nothing for 3 s while another host continues, and
//! if at least ten operations were expected in this time. The expected number follows from the host's own rate so far or, before its tenth
//! operation, from the highest rate of all hosts. [`super::transport`] detects hosts that send no heartbeats at all.

use crate::message::LoadProgress;
use live::{HostProgress, HostState};
use model::units::{show_ns, show_rate};

/// Time without completions after which a host is reported as hung. Including the interval of heartbeats it is less than five seconds.
const HUNG_AFTER_NS: u64 = 3_000_000_000;
/// Minimum number of operations that were expected since the last completion. With fewer, a pause is normal. Also the
/// number of completed operations from which a host's own rate is used instead of the highest rate of all hosts.
const EXPECTED_OPERATIONS: f64 = 10.0;
/// Another host must have completed an operation within this time. If all hosts stop, the cause is not the storage of one host.
const RECENT_NS: u64 = 1_000_000_000;

/// Minimum length of a period over which the rate of a host is counted.
const RATE_PERIOD_NS: u64 = 1_000_000_000;
/// Maximum number of rows, more than a terminal shows.
const ROWS_MAX: usize = 64;

/// The progress of a run on all hosts.
#[derive(Debug, Default)]
pub(super) struct RunProgress {
    began_ns: u64,
    /// Progress by rank.
    hosts: Vec<Host>,
    hung: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Host {
    operations: u64,
    /// When `operations` last grew, in ns of the receiver's clock; `None` without load.
    grew_ns: Option<u64>,
    /// Whether the host was already reported as hung in this run.
    is_reported: bool,
    p99_ns: Option<u64>,
    /// The rate of the last complete rate period, in operations per second; `None` before the end of the first one, and without load.
    iops: Option<f64>,
    /// The number of completed operations and the time in ns at the beginning of the current rate period.
    counted: (u64, u64),
}

impl Host {
    /// Returns the state of a host that is not lost.
    fn state(&self, now_ns: u64) -> HostState {
        match self.grew_ns {
            None => HostState::Waiting,
            Some(at) if self.is_reported && now_ns.saturating_sub(at) >= HUNG_AFTER_NS => HostState::Hung,
            Some(_) => HostState::Measuring,
        }
    }

    /// Updates the rate once per period.
    fn count(&mut self, at_ns: u64) {
        let (operations, then) = self.counted;
        let passed = at_ns.saturating_sub(then);
        if passed >= RATE_PERIOD_NS {
            self.iops = Some(self.operations.saturating_sub(operations) as f64 * 1e9 / passed as f64);
            self.counted = (self.operations, at_ns);
        }
    }
}

impl RunProgress {
    /// The progress on `size` hosts.
    pub(super) fn for_hosts(size: usize) -> Self {
        Self { hosts: vec![Host::default(); size], ..Self::default() }
    }

    /// Begins a run on all hosts.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.began_ns = at_ns;
        self.hosts.iter_mut().for_each(|host| *host = Host { counted: (0, at_ns), ..Host::default() });
    }

    /// Records a heartbeat. `load` is `None` if the host has no load.
    pub(super) fn record_heartbeat(&mut self, rank: usize, load: Option<LoadProgress>, at_ns: u64) {
        let Some(host) = self.hosts.get_mut(rank) else { return };
        let Some(LoadProgress { operations, p99_ns }) = load else {
            (host.grew_ns, host.iops) = (None, None);
            return;
        };
        if operations != host.operations || host.grew_ns.is_none() {
            (host.operations, host.grew_ns) = (operations, Some(at_ns.max(self.began_ns)));
        }
        host.p99_ns = p99_ns;
        host.count(at_ns);
    }

    /// Returns the rows of at most [`ROWS_MAX`] hosts, in this order: the lost host, hung hosts, the others from the
    /// slowest to the fastest, waiting hosts.
    pub(super) fn host_progress(
        &self,
        lost: Option<usize>,
        name: impl Fn(usize) -> String,
        now_ns: u64,
    ) -> Vec<HostProgress> {
        let state = |rank: usize, host: &Host| {
            if lost == Some(rank) { HostState::Lost } else { host.state(now_ns) }
        };
        let mut all: Vec<(HostState, usize, &Host)> =
            self.hosts.iter().enumerate().map(|(rank, host)| (state(rank, host), rank, host)).collect();
        let rate_or_infinite = |host: &Host| host.iops.unwrap_or(f64::INFINITY);
        all.sort_by(|(a, rank, one), (b, other_rank, other)| {
            let by_rate = rate_or_infinite(one).total_cmp(&rate_or_infinite(other));
            a.cmp(b).then(by_rate).then(rank.cmp(other_rank))
        });
        all.truncate(ROWS_MAX);
        let row = |(state, rank, host): (HostState, usize, &Host)| HostProgress {
            rank,
            name: name(rank),
            iops: host.iops.filter(|_| state != HostState::Lost),
            p99_ns: host.p99_ns.filter(|_| state != HostState::Waiting),
            state,
        };
        all.into_iter().map(row).collect()
    }

    /// Returns the completed operations in the last heartbeat of a host.
    pub(super) fn operations(&self, rank: usize) -> u64 {
        self.hosts.get(rank).map_or(0, |host| host.operations)
    }

    /// Returns all reports of hung storage so far.
    pub(super) fn hung(&self) -> &[String] {
        &self.hung
    }

    /// Returns a report for each host that completes nothing while others do. Each host is reported
    /// once per run.
    pub(super) fn report_hung(&mut self, name: impl Fn(usize) -> String, now_ns: u64) -> Vec<String> {
        let rate = |host: &Host| {
            let ran = host.grew_ns?.saturating_sub(self.began_ns);
            (ran > 0).then(|| host.operations as f64 / ran as f64)
        };
        let quickest = self.hosts.iter().filter_map(rate).fold(0.0, f64::max);
        let since = |host: &Host| host.grew_ns.map(|at| now_ns.saturating_sub(at));
        let any_continues =
            self.hosts.iter().any(|h| h.operations > 0 && since(h).is_some_and(|ns| ns < RECENT_NS));
        let mut reports = Vec::new();
        for (rank, host) in self.hosts.iter_mut().enumerate() {
            let Some(silent) = since(host).filter(|ns| *ns >= HUNG_AFTER_NS) else { continue };
            let own = rate(host).filter(|_| host.operations as f64 >= EXPECTED_OPERATIONS);
            let usual = own.unwrap_or(quickest);
            if host.is_reported || !any_continues || EXPECTED_OPERATIONS > usual * silent as f64 {
                continue;
            }
            host.is_reported = true;
            reports.push(format!(
                "the storage of {} does not answer: no operation has completed for {} ({} into the run), although {} a second are usual; other hosts continue",
                name(rank),
                show_ns(silent as f64),
                show_ns(now_ns.saturating_sub(self.began_ns) as f64),
                show_rate(usual * 1e9)
            ));
        }
        self.hung.extend(reports.iter().cloned());
        reports
    }
}

/// Returns the reports of hung hosts, each with the number of the quarter second in which it came. `operations` takes a rank and a quarter
/// second, and returns the operations completed by then; `None` without load.
#[cfg(test)]
fn hung_reports(operations: impl Fn(usize, u64) -> Option<u64>) -> Vec<(u64, String)> {
    let mut progress = RunProgress::for_hosts(3);
    progress.begin(1_000);
    let mut all = Vec::new();
    for quarter in 1..80 {
        let at_ns = 1_000 + quarter * 250_000_000;
        let load =
            |rank| operations(rank, quarter).map(|operations| LoadProgress { operations, p99_ns: None });
        (0..3).for_each(|rank| progress.record_heartbeat(rank, load(rank), at_ns));
        let reports = progress.report_hung(|rank| format!("h{rank}"), at_ns);
        all.extend(reports.into_iter().map(|words| (quarter, words)));
    }
    all
}

#[test]
fn hung_storage_is_reported_once_within_five_seconds() {
    let all = hung_reports(|rank, quarter| Some(50 * if rank == 1 { quarter.min(20) } else { quarter }));
    let [(quarter, words)] = all.as_slice() else { panic!("{all:?}") };
    assert!((32..=40).contains(quarter), "{quarter}");
    assert!(
        words.starts_with("the storage of h1 does not answer") && words.contains("200 a second"),
        "{words}"
    );
    let never = hung_reports(|rank, quarter| Some(if rank == 2 { 0 } else { quarter }));
    assert!(never.len() == 1 && never[0].1.contains("h2"), "one that never began: {never:?}");
}

#[test]
fn slow_loads_ended_loads_and_global_stops_are_not_reported() {
    let slow = hung_reports(|rank, quarter| Some((quarter + 6 * rank as u64) / 18));
    assert!(slow.is_empty(), "one operation in four seconds and a half: {slow:?}");
    let ended = hung_reports(|rank, quarter| (rank != 1 || quarter < 20).then_some(quarter * 50));
    assert!(ended.is_empty(), "{ended:?}");
    let all = hung_reports(|_, quarter| Some(50 * quarter.min(20)));
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn rows_begin_with_hosts_that_need_attention_and_show_unknown_rates_as_unknown() {
    let mut progress = RunProgress::for_hosts(300);
    progress.begin(0);
    let load = |rank: u64, at: u64| {
        (rank != 299).then_some(LoadProgress { operations: at * (100 + rank), p99_ns: Some(5_000) })
    };
    let rows = |progress: &RunProgress, lost| {
        progress.host_progress(lost, |rank| format!("h{rank}"), 20_250_000_000)
    };
    assert!(rows(&progress, None).iter().all(|row| row.iops.is_none() && row.state == HostState::Waiting));
    for at in 1..=80 {
        // One host completes nothing after the fortieth heartbeat.
        let it = |rank: u64| if rank == 7 { at.min(40) } else { at };
        (0..300).for_each(|rank| {
            progress.record_heartbeat(rank as usize, load(rank, it(rank)), at * 250_000_000);
        });
        progress.report_hung(|rank| format!("h{rank}"), at * 250_000_000);
    }
    let rows = rows(&progress, Some(5));
    let first: Vec<(&str, HostState)> =
        rows.iter().take(3).map(|row| (row.name.as_str(), row.state)).collect();
    assert_eq!(first, [("h5", HostState::Lost), ("h7", HostState::Hung), ("h0", HostState::Measuring)]);
    assert_eq!(
        (rows.len(), rows[0].iops, rows[1].iops, rows[2].iops),
        (ROWS_MAX, None, Some(0.0), Some(400.0))
    );
    assert_eq!(rows[2].p99_ns, Some(5_000));
}
