//! Load by other processes, and stops of fathom, during the runs (D01, D26, D27).
//!
//! D01 computes the share of other processes in the traffic of the disk; [`crate::figures::traffic`] decides which
//! requests and bytes are theirs. Bytes and requests each have a share, and the larger one counts. fathom's traffic is
//! the rest of what the disk did, or what fathom issued if that is more. D18 covers neighbours below a virtual disk.
//!
//! D26 finds stops and tracers. A stop signal, a freezer or a paused machine stops all threads; a debugger, `strace` or
//! a freezer may stop single workers. D26 adds up how late a thread that only sleeps woke up, and counts the samples
//! that found a worker stopped or traced. Waiting for a CPU is D08, a quota D11, and a sleep of the machine D13.
//!
//! D27 reports the decisions made while measuring: a disturbed run was repeated (note), or counts because no
//! attempt was undisturbed (biased).

use super::block_layer::reaches_limit;
use super::file_system::find_active_thread;
use crate::case::MIN_CHARGED_SHARE;
use crate::checks::HEADROOM_BELOW;
use crate::checks::prelude::*;
use crate::figures::traffic;
use crate::figures::traffic::{AMPLIFICATION, FLOOR_BYTES, FLOOR_IOS, Traffic};
use crate::strategy::disturbed::{
    FLOOR_BYTES as REPEAT_FLOOR_BYTES, FLOOR_IOS as REPEAT_FLOOR_IOS, MAX_FOREIGN_BYTES_PER_S,
    MAX_FOREIGN_IOS_PER_S, OutsideLoad, STOLEN_ABOVE,
};
use model::record::WorkerStates;
use stats::intervals;

/// If other processes cause more than this share of a disk's traffic, the number is biased.
pub(crate) const FOREIGN_ABOVE: Share = Share(0.05);
/// If other processes cause more than this share of a disk's traffic, the number mostly depends on them.
const FOREIGN_VOID_ABOVE: Share = Share(0.30);
pub(super) const FOREIGN_IO: Check = Check {
    id: CheckId::D01,
    name: "FOREIGN_IO",
    belief: "no other process used the disk",
    reads: "`/sys/block/*/stat` at the start and stop of each run, of the whole disk and of every disk below \
            it (those of a loop device, a volume or an array). The charges to fathom's own cgroup on each \
            disk (`blkio.throttle.io_service_bytes` and `io_serviced`, or `io.stat`). The bytes and \
            operations that fathom issued. The names of kernel threads (see D03), to name one that may have \
            caused the traffic.",
    formula: formula!(
        "Share of others = traffic of others / (traffic of others + traffic of fathom). Requests and bytes \
         each have a share. The larger one counts, on the worst disk.\n\
         - Invalid above {FOREIGN_VOID_ABOVE}.\n\
         - Biased above {FOREIGN_ABOVE}.\n\
         - Biased at most if fathom's rate has reached the limit of a cgroup (D04): then other processes \
         did not reduce it. A note if the disk was also busy for less than {HEADROOM_BELOW} of the time.\n\
         - Traffic of others is what the disk did, less what was charged to fathom (for writes, less what \
         fathom issued if that is more). Without charges, the direct I/O that fathom issued is subtracted \
         instead.\n\
         - Traffic of fathom is the rest of what the disk did, or what fathom issued if that is more.\n\
         - Up to {FLOOR_IOS} requests and {floor} per run do not count: a commit, a log line. Requests do \
         not count at all if operations are larger than {one}, since the device may split them.\n\
         - Journal and inodes may multiply fathom's writes by {AMPLIFICATION}. Only reads are judged if \
         the job writes synchronously, or writes to a file system other than ext2, ext3, ext4, xfs, vfat, \
         exfat and f2fs, because it is not known how much the file system writes in addition.\n\
         - On the disks below a loop device, a volume or an array, writes are judged only if the session \
         writes nothing, not even a test file: later writeback is charged to no process. Below a loop \
         device, only I/O charged to fathom's cgroup counts as fathom's.\n\
         - Not checked, without a finding, if more than {FOREIGN_ABOVE} of the bytes are extra writes that \
         may be the file system's own.\n\
         - Not checked, without a finding, if fathom's part is unknown: for buffered I/O without charges, \
         below a loop device if less than {charged} of the reads was charged to fathom, and below a layer \
         that reads and writes for itself (parity, thin and cached volumes, bcache).",
        one = show_bytes(u64::from(traffic::MAX_BYTES_OF_ONE_REQUEST)),
        charged = Share(MIN_CHARGED_SHARE),
        floor = show_bytes(FLOOR_BYTES)
    ),
    provoke: "dd if=/dev/vda of=/dev/null iflag=direct bs=1M & fathom run --rw randread .",
    fix: "Stop other users of the disk (`iotop -o`, `pidstat -d 1`), and measure again.",
    accept: "Accept it if the neighbour belongs to what you want to measure.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_foreign_io),
    #[cfg(test)]
    fires: Some(|| Fixture { foreign_ios: 9_000, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_foreign_io(case: &Case) -> Known<Answer> {
    // Other streams of this job are not other processes.
    let case = &case.with_sharers();
    let mut disks = Vec::new();
    let mut not_counted = None;
    // The list begins with the whole disk, followed by the disks below it.
    for (at, traffic) in traffic::traffic_of_others(case).into_iter().enumerate() {
        match traffic {
            Ok(traffic) => disks.push(ForeignIo::new(case, traffic, at > 0)),
            Err(why) => not_counted = not_counted.or(Some(why)),
        }
    }
    // Of equally bad disks take the first, which is the topmost.
    let worst = disks.iter().filter(|disk| disk.severity().is_some()).min_by_key(|disk| disk.severity());
    if let Some(worst) = worst {
        // Kernel threads that initialise or move data mostly write.
        let thread = find_active_thread(case).ok().flatten().filter(|_| worst.mostly_writes());
        let found = thread.map_or_else(|| worst.finding(), |thread| worst.finding_with(thread));
        return Ok(Answer::Finding(found));
    }
    if let Some(why) = not_counted.or_else(|| disks.iter().find_map(ForeignIo::unattributed)) {
        return Err(why);
    }
    let top = disks.into_iter().next().ok_or_else(no_run)?;
    let sentence = match (top.traffic.all() == Amount::default(), top.traffic.is_inferred) {
        (true, false) => "No other process used the disk.",
        (true, true) => "The disk did no more than fathom issued, so no other process used it (inferred).",
        (false, false) => "Other processes used the disk too little to matter.",
        (false, true) => {
            "The disk did little more than fathom issued, so other processes used it too little to matter \
             (inferred)."
        }
    };
    holds(sentence, top.numbers())
}

/// Traffic of other processes and of fathom on a disk.
struct ForeignIo {
    traffic: Traffic,
    is_below: bool,
    /// fathom's requests and bytes.
    own: Amount,
    /// Share of other processes in the requests. `None` if requests cannot be compared, because large operations are
    /// split.
    ios_share: Option<f64>,
    bytes_share: f64,
    unattributed_share: f64,
    /// The larger of `ios_share` and `bytes_share`. A share of traffic that is too small to count is left out.
    deciding_share: f64,
    /// Whether `ios_share` decides, not `bytes_share`.
    requests_decide: bool,
    limited: Option<Limited>,
}

/// The state of the disk if fathom's rate has reached the limit of a cgroup.
#[derive(Clone, Copy)]
struct Limited {
    /// Whether the disk certainly had headroom.
    has_headroom: bool,
}

impl ForeignIo {
    fn new(case: &Case, traffic: Traffic, is_below: bool) -> Self {
        let runs = case.runs.len() as u64;
        let (foreign, total, issued) = (traffic.all(), traffic.total, case.issued_total());
        // fathom's part is at least what it issued. If the page cache answered, the device did almost nothing for fathom,
        // and any neighbour's share of the device's traffic would be large.
        let own = Amount {
            ops: total.ios.saturating_sub(foreign.ops).max(issued.ops),
            bytes: total.bytes.saturating_sub(foreign.bytes).max(issued.bytes),
        };
        let share_of = |others: u64, own: u64| share(others as f64, others as f64 + own as f64);
        let ios_share = traffic::has_countable_requests(case).then(|| share_of(foreign.ops, own.ops));
        let bytes_share = share_of(foreign.bytes, own.bytes);
        let floor = FLOOR_BYTES.saturating_mul(runs);
        let has_enough_ios = foreign.ops > FLOOR_IOS.saturating_mul(runs);
        let counted_ios_share = ios_share.filter(|_| has_enough_ios).unwrap_or(0.0);
        let counted_bytes_share = if foreign.bytes > floor { bytes_share } else { 0.0 };
        let unattributed = traffic.unattributed_bytes;
        Self {
            is_below,
            own,
            ios_share,
            bytes_share,
            unattributed_share: if unattributed > floor { share_of(unattributed, own.bytes) } else { 0.0 },
            deciding_share: counted_ios_share.max(counted_bytes_share),
            requests_decide: counted_ios_share > counted_bytes_share,
            limited: reaches_limit(case)
                .then_some(Limited { has_headroom: traffic.busy_share < HEADROOM_BELOW.0 }),
            traffic,
        }
    }

    fn severity(&self) -> Option<Severity> {
        let severity = match self.deciding_share {
            s if s > FOREIGN_VOID_ABOVE => Severity::Invalidates,
            s if s > FOREIGN_ABOVE => Severity::Biases,
            _ => return None,
        };
        Some(match self.limited {
            Some(Limited { has_headroom: true }) => Severity::Note,
            Some(Limited { has_headroom: false }) => Severity::Biases,
            None => severity,
        })
    }

    /// Returns why the writes of other processes cannot be distinguished from the file system's own; `None` if these
    /// writes are too few to matter.
    fn unattributed(&self) -> Option<String> {
        (self.unattributed_share > FOREIGN_ABOVE.0).then(|| {
            format!(
                "{} wrote {} more than fathom requested, and the kernel does not show whether for other \
                 processes, or for the file system and its journal",
                self.traffic.disks,
                show_bytes(self.traffic.unattributed_bytes)
            )
        })
    }

    /// Whether other processes wrote at least as much as they read.
    fn mostly_writes(&self) -> bool {
        self.traffic.write.bytes > 0 && self.traffic.write.bytes >= self.traffic.read.bytes
    }

    /// Returns the finding with a kernel thread that may have caused the traffic.
    fn finding_with(&self, (thread, action): (&str, &str)) -> Detail {
        let mut found = self.finding();
        found.sentence += &format!(" The kernel thread {thread} {action}, and may have caused this traffic.");
        let fix = format!(
            "{} If the traffic continues, wait until the thread has ended (`ps -e | grep {thread}`).",
            FOREIGN_IO.fix
        );
        found.with_fix(fix)
    }

    fn numbers(&self) -> Evidence {
        let foreign = self.traffic.all();
        let mut numbers = evidence([
            ("device_bytes", self.traffic.total.bytes as f64),
            ("device_ios", self.traffic.total.ios as f64),
            ("foreign_bytes", foreign.bytes as f64),
            ("own_bytes", self.own.bytes as f64),
            ("foreign_bytes_share", self.bytes_share),
        ]);
        if self.severity().is_some() {
            numbers.insert("foreign_share".into(), self.deciding_share);
        }
        if let Some(ios_share) = self.ios_share {
            numbers.insert("foreign_ios".into(), foreign.ops as f64);
            numbers.insert("own_ios".into(), self.own.ops as f64);
            numbers.insert("foreign_ios_share".into(), ios_share);
        }
        numbers
    }

    fn finding(&self) -> Detail {
        let disk = if self.is_below { &self.traffic.disks } else { "the device" };
        let how = if self.traffic.is_inferred { " (inferred from what fathom issued)" } else { "" };
        let foreign = self.traffic.all();
        let (others, own) = if self.requests_decide {
            (show_counted(foreign.ops, "request"), show_count(self.own.ops as f64))
        } else {
            (show_bytes(foreign.bytes), show_bytes(self.own.bytes))
        };
        let limited = match self.limited {
            Some(Limited { has_headroom: true }) => {
                " A cgroup's limit explains fathom's rate (D04), and the device had headroom: other \
                 processes did not reduce the rate."
            }
            Some(Limited { has_headroom: false }) => " A cgroup's limit explains fathom's rate (D04).",
            None => "",
        };
        detail!(
            self.severity().unwrap_or(Severity::Note),
            self.numbers(),
            "Other processes used {disk} during the runs{how}: they caused {others} and fathom {own}, so their \
             share was {}.{limited}",
            show_share(self.deciding_share)
        )
    }
}

/// Above this share of the runs' time, stops of fathom change the number by more than runs differ from each other.
const STOPPED_ABOVE: Share = Share(0.01);
/// Above this share of the runs' time, stops of fathom decide the number.
const STOPPED_VOID_ABOVE: Share = Share(0.3);

/// One-sided confidence of the bound on the share of stopped samples.
const CONFIDENCE: Share = Share(0.95);

pub(super) const STOOD_STILL: Check = Check {
    id: CheckId::D26,
    name: "STOOD_STILL",
    belief: "neither fathom nor a worker was stopped or traced",
    reads: "The thread that watches the workers sleeps for 10 ms at a time. It records how much longer each \
            sleep took, how long it waited for a CPU in that time (`/proc/thread-self/schedstat`), and after \
            each sleep the state, the tracer and the wait channel of up to four workers in turn \
            (`/proc/self/task/TID/status` and `wchan`).",
    formula: formula!(
        "Adds up the sleeps of the watching thread that took at least 100 ms too long (its wait for a CPU \
         does not count), and the samples that found a worker stopped or traced. 100 ms is ten ticks of \
         the slowest kernel.\n\
         - Invalid if the delays total more than {STOPPED_VOID_ABOVE} of the runs' time.\n\
         - Invalid if certainly more than {STOPPED_VOID_ABOVE} of the samples found a worker stopped \
         (exact bound at {CONFIDENCE}).\n\
         - Biased if the delays total more than {STOPPED_ABOVE} of the runs' time.\n\
         - Biased if any sample found a worker stopped (state T or t, or in a freezer) or traced.\n\
         - Not checked, without a finding, if the sleeps or the state of the workers could not be read.\n\
         - The workers themselves cannot detect a stop: it halts all of them, and to them it looks like a \
         device that does not answer."
    ),
    provoke: "`fathom run --rw randread --time 3s DIR`, and at the same time in another terminal `kill -STOP \
              PID; sleep 1; kill -CONT PID`. Or a freezer: `echo FROZEN > freezer.state`. Or a tracer: \
              `strace -f fathom run --rw randread DIR`.",
    fix: "Measure again without anything that stops fathom: job control (Ctrl-Z), a debugger, a freezer, a \
          snapshot of the virtual machine.",
    accept: "Do not accept it: no correction exists for the lost time.",
    applies: |_| true,
    ask: Ask::Alone(check_stood_still),
    #[cfg(test)]
    fires: Some(|| still(500_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record
            .runs
            .iter_mut()
            .filter_map(|r| r.end.as_mut())
            .for_each(|e| e.stops = Some(Err("no schedstat".into())));
        record
    },
};

fn check_stood_still(case: &Case) -> Known<Answer> {
    case.need_run()?;
    let stall_in_run = |ran: &CaseRun| {
        ran.end.stops.clone().unwrap_or_else(|| Err("stops of fathom were not recorded".into()))
    };
    let stalls = case.runs.iter().map(stall_in_run).collect::<Known<Vec<_>>>()?;
    let total_ns: f64 = stalls.iter().map(|stall| stall.total_ns as f64).sum();
    let longest_ns = stalls.iter().map(|stall| stall.longest_ns).max().unwrap_or(0) as f64;
    let times: u64 = stalls.iter().map(|stall| u64::from(stall.count)).sum();
    let active_ns = sum_over_runs(case, CaseRun::active_ns)? as f64;
    let mut workers = stalls.into_iter().filter_map(|stall| stall.workers);
    let workers: Known<WorkerStates> =
        workers.try_fold(WorkerStates::default(), |sum, states| Ok(add_states(sum, states?)));
    let part = share(total_ns, active_ns);
    let mut numbers = evidence([
        ("still_ns", total_ns),
        ("longest_ns", longest_ns),
        ("times", times as f64),
        ("share", part),
    ]);
    if let Ok(states) = &workers {
        numbers.insert("worker_samples".into(), states.samples as f64);
        numbers.insert("worker_samples_stopped".into(), states.stopped as f64);
        numbers.insert("worker_samples_traced".into(), states.traced as f64);
    }
    let whole_process = (part > STOPPED_ABOVE).then(|| {
        let repetitions = if times == 1 {
            String::new()
        } else {
            format!(" ({times} times, the longest {})", show_ns(longest_ns))
        };
        let sentence = format!(
            "fathom itself stood still for {}{repetitions}, {} of the runs' time: probably a signal, a \
             freezer or a debugger stopped it, or the whole machine stopped. Stalls and gaps in the time \
             series may come from this stop, not from the storage.",
            show_ns(total_ns),
            show_share(part)
        );
        (if part > STOPPED_VOID_ABOVE { Severity::Invalidates } else { Severity::Biases }, sentence)
    });
    let single_workers = workers.as_ref().ok().and_then(describe_stopped_workers);
    let worst = [whole_process, single_workers].into_iter().flatten().min_by_key(|(severity, _)| *severity);
    if let Some((severity, sentence)) = worst {
        return Detail::new(severity, sentence, numbers).found();
    }
    workers?;
    let sentence =
        "fathom did not stop for long enough to matter, and no sample found a worker stopped or traced.";
    holds(sentence, numbers)
}

/// Adds the samples of one run to those of earlier runs.
fn add_states(sum: WorkerStates, states: WorkerStates) -> WorkerStates {
    WorkerStates {
        samples: sum.samples.saturating_add(states.samples),
        stopped: sum.stopped.saturating_add(states.stopped),
        traced: sum.traced.saturating_add(states.traced),
        tracer: sum.tracer.or(states.tracer),
    }
}

/// Returns the severity and a sentence if workers were stopped or traced, or `None` if no sample found that.
fn describe_stopped_workers(states: &WorkerStates) -> Option<(Severity, String)> {
    if states.stopped == 0 && states.traced == 0 {
        return None;
    }
    let (stopped_at_least, _) = intervals::exact_bounds(states.stopped, states.samples, CONFIDENCE.0);
    let severity =
        if stopped_at_least > STOPPED_VOID_ABOVE.0 { Severity::Invalidates } else { Severity::Biases };
    let stopped = format!(
        "{} of {} found a worker stopped ({})",
        show_count(states.stopped as f64),
        show_counted(states.samples, "sample"),
        show_share(share(states.stopped as f64, states.samples as f64))
    );
    let sentence = match &states.tracer {
        Some(tracer) if states.stopped == 0 => format!(
            "{tracer} traced fathom's workers. No sample found a worker stopped, but tracing can slow every \
             system call."
        ),
        Some(tracer) => format!(
            "{tracer} traced fathom's workers, and {stopped}: the rate and the latencies include the \
             time of each stop."
        ),
        None => format!(
            "A signal, a debugger or a freezer stopped fathom's workers: {stopped}. The rate and the \
             latencies include the time of each stop."
        ),
    };
    Some((severity, sentence))
}

/// Maximum number of disturbed runs that a sentence lists.
const NAMED: usize = 3;

pub(super) const RUNS_DISTURBED: Check = Check {
    id: CheckId::D27,
    name: "RUNS_DISTURBED",
    belief: "nothing outside fathom disturbed a counted run",
    reads: "fathom's decision after each run. It reads the snapshots at the start and stop of the run: \
            `/sys/block/*/stat` of the whole disk and of the disks below it, compared with the charges to \
            fathom's cgroup (see D01), stolen time in `/proc/stat`, and the limits of the cgroups above \
            fathom.",
    formula: formula!(
        "fathom decides after each run whether something outside fathom disturbed it. The thresholds are \
         rates, since the same traffic is a smaller share of a faster run.\n\
         - A run is disturbed if other processes move more than {rate} MB/s and {floor} on one of its \
         disks, or more than {MAX_FOREIGN_IOS_PER_S} requests per second and {REPEAT_FLOOR_IOS} requests. \
         Only reads count if the session writes to a file system whose own writes are unknown (see D01).\n\
         - A run is disturbed if more than {stolen} of all CPU time is stolen, or if a limit changed since \
         before the first run.\n\
         - fathom repeats a disturbed run at the end of its round, at most twice unless --attempts is \
         given. It never repeats runs of `--until steady` and of a sweep with a fixed order of cells, \
         because a repeat would change the state of the device.\n\
         - Biased if a disturbed run counts. The first attempt at a run counts if all attempts were \
         disturbed, or if fathom repeated nothing because a third of all attempts were disturbed or the \
         disk was as busy before the first run.\n\
         - A note if disturbed runs were repeated and an undisturbed attempt counts: the last one.\n\
         - Not checked, without a finding, if the traffic, the stolen time or the limits are unknown.",
        rate = MAX_FOREIGN_BYTES_PER_S / 1e6,
        floor = show_bytes(REPEAT_FLOOR_BYTES),
        stolen = Share(STOLEN_ABOVE)
    ),
    provoke: "dd if=/dev/vda of=/dev/null iflag=direct bs=1M & fathom run --rw randread .",
    fix: "Stop other users of the disk (`iotop -o`, `pidstat -d 1`), keep the limits unchanged, and measure \
          again.",
    accept: "Accept it if the neighbour belongs to what you want to measure.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_runs_disturbed),
    #[cfg(test)]
    fires: Some(|| disturbed(&[1])),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_runs_disturbed(case: &Case) -> Known<Answer> {
    let counting: Vec<&CaseRun> = case.runs.iter().filter(|r| r.run.disturbed.is_some()).collect();
    let repeated: Vec<&CaseRun> =
        case.replaced_attempts.iter().filter(|r| r.run.disturbed.is_some()).collect();
    let numbers = evidence([
        ("disturbed_runs", counting.len() as f64),
        ("runs", case.runs.len() as f64),
        ("disturbed_attempts_left_out", repeated.len() as f64),
    ]);
    if !counting.is_empty() {
        return finding!(
            Severity::Biases,
            numbers,
            "Something outside fathom disturbed {}: {}.",
            match case.runs.len() {
                1 => "the only run".into(),
                all => format!("{} of {all} counted runs", counting.len()),
            },
            describe_disturbed_runs(&counting)
        );
    }
    if !repeated.is_empty() {
        let runs = describe_disturbed_runs(&repeated);
        return detail!(
            Severity::Note,
            numbers,
            "Something outside fathom disturbed runs, which were repeated: {runs}."
        )
        .with_fix(String::new())
        .found();
    }
    case.need_run()?;
    let outside = OutsideLoad::from_runs(case);
    match outside.why_unknown().as_slice() {
        [] => holds("Neither other load nor a changed limit disturbed the runs.", numbers),
        reasons => Err(reasons.join("; ")),
    }
}

/// Describes disturbed runs, such as `run 2 (240 MB/s of other processes on vda)`.
fn describe_disturbed_runs(runs: &[&CaseRun]) -> String {
    let describe_run = |ran: &&CaseRun| {
        let by = ran.run.disturbed.as_ref()?;
        Some(format!("run {} ({})", ran.run.start.repeat.saturating_add(1), by.describe()))
    };
    let mut all: Vec<String> = runs.iter().take(NAMED).filter_map(describe_run).collect();
    if runs.len() > NAMED {
        all.push(format!("and {} more", runs.len() - NAMED));
    }
    all.join("; ")
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn with_foreign_at(foreign_ios: u64) -> Option<Severity> {
    FOREIGN_IO.severity(&Fixture { foreign_ios, ..Fixture::honest() }.record())
}

#[test]
fn a_few_requests_are_silent_more_bias_and_many_are_void() {
    assert_eq!(with_foreign_at(40), None);
    assert_eq!(with_foreign_at(400), None, "3.5 %");
    assert_eq!(with_foreign_at(1_500), Some(Severity::Biases));
    assert_eq!(with_foreign_at(9_000), Some(Severity::Invalidates));
}

#[test]
fn without_a_cgroup_direct_io_is_inferred_and_buffered_io_is_not_checked() {
    let without = || Fixture { cgroup: false, ..Fixture::honest() };
    let Ok(Answer::Finding(f)) = FOREIGN_IO.answer(&Fixture { foreign_ios: 9_000, ..without() }.record())
    else {
        panic!("silent")
    };
    assert!(f.sentence.contains("inferred"));
    assert!(matches!(FOREIGN_IO.answer(&without().record()), Ok(Answer::Holds(..))));
    let buffered = Fixture { cache: model::job::Cache::Buffered, ..without() };
    assert!(FOREIGN_IO.answer(&buffered.record()).is_err());
}

#[test]
fn a_cgroup_that_does_not_count_is_ignored() {
    let idle = Fixture { cgroup_counts_nothing: true, ..Fixture::honest() };
    let Ok(Answer::Holds(sentence, _)) = FOREIGN_IO.answer(&idle.record()) else { panic!("fires") };
    assert!(sentence.contains("inferred"));
}

#[test]
fn the_journal_of_own_writes_is_not_foreign() {
    let journal = Fixture { foreign_ios: 4_000, ..Fixture::honest_write() };
    assert_eq!(FOREIGN_IO.severity(&journal.record()), None);
    let others = Fixture { foreign_ios: 30_000, ..Fixture::honest_write() };
    assert_eq!(FOREIGN_IO.severity(&others.record()), Some(Severity::Invalidates));
}

#[test]
fn traffic_on_a_lower_disk_counts_and_the_topmost_disk_is_named() {
    let sentence = |record| match FOREIGN_IO.answer(&record) {
        Ok(Answer::Finding(f)) => (f.severity, f.sentence),
        other => panic!("{other:?}"),
    };
    let (severity, both) = sentence(Fixture { foreign_ios: 9_000, ..Fixture::honest_loop() }.record());
    assert!(severity == Severity::Invalidates && both.contains("used the device during"), "{both}");
    let (severity, below) = sentence(traffic::with_foreign_requests(&Fixture::honest_loop(), 0, 9_000));
    assert!(severity == Severity::Invalidates && below.contains("used vda during"), "{below}");
}

#[test]
fn writes_that_may_belong_to_the_file_system_are_not_checked() {
    let answer_for = |fixture: Fixture| FOREIGN_IO.answer(&fixture.record());
    let journal = answer_for(Fixture { foreign_ios: 4_000, ..Fixture::honest_write() });
    assert!(journal.is_err_and(|why| why.contains("more than fathom requested")));
    assert!(matches!(
        answer_for(Fixture { foreign_ios: 400, ..Fixture::honest_write() }),
        Ok(Answer::Holds(..))
    ));
    let stable = Fixture { cache: model::job::Cache::DirectDsync, ..Fixture::honest_write() };
    assert!(answer_for(Fixture { foreign_ios: 30_000, ..stable }).is_err());
    let below = Fixture { leaf_share: Some(1.0), ..Fixture::honest_write() };
    assert!(
        FOREIGN_IO
            .answer(&traffic::with_foreign_requests(&below, 4, 9_000))
            .is_err_and(|why| why.starts_with("vda wrote"))
    );
    assert!(matches!(answer_for(below), Ok(Answer::Holds(..))));
}

/// Returns the sentence and the evidence of the answer. Panics unless the answer is a finding or a
/// belief that holds.
#[cfg(test)]
fn figures(record: &model::record::Record) -> (String, Evidence) {
    match FOREIGN_IO.answer(record) {
        Ok(Answer::Finding(f)) => (f.sentence, f.evidence),
        Ok(Answer::Holds(sentence, evidence)) => (sentence.into_owned(), evidence),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_shares_follow_from_the_figures() {
    let large = || Fixture { block_bytes: 1 << 20, ..Fixture::honest() };
    let cached = Fixture { delivered: 0.2, foreign_ios: 9_000, ..Fixture::honest() };
    for record in [
        Fixture { foreign_ios: 9_000, ..Fixture::honest() }.record(),
        Fixture { foreign_ios: 40, ..Fixture::honest() }.record(),
        Fixture { foreign_ios: 9_000, cgroup: false, ..Fixture::honest() }.record(),
        Fixture { foreign_ios: 30_000, ..Fixture::honest_write() }.record(),
        Fixture { foreign_ios: 900, ..large() }.record(),
        traffic::with_foreign_requests(&Fixture::honest_loop(), 0, 9_000),
        cached.record(),
    ] {
        let (sentence, e) = figures(&record);
        for unit in ["bytes", "ios"] {
            let Some(part) = e.get(&format!("foreign_{unit}_share")) else { continue };
            let (others, own) = (e[&format!("foreign_{unit}")], e[&format!("own_{unit}")]);
            assert!((part - others / (others + own)).abs() < 1e-9, "{sentence} {e:?}");
        }
        let Some(deciding) = e.get("foreign_share") else {
            assert!(!sentence.contains("share was"), "{sentence} {e:?}");
            continue;
        };
        assert!(sentence.contains(&format!("share was {}.", show_share(*deciding))), "{sentence} {e:?}");
        let parts = ["foreign_bytes_share", "foreign_ios_share"].map(|name| e.get(name));
        assert!(parts.contains(&Some(deciding)), "{e:?}");
    }
    let (sentence, e) = figures(&Fixture { foreign_ios: 9_000, ..large() }.record());
    assert!(!e.contains_key("foreign_ios_share") && !sentence.contains("requests"), "{sentence} {e:?}");
}

#[test]
fn the_sentence_has_the_share_that_decides() {
    let finding = |ops: u64, bytes: u64| {
        let record = Fixture { block_bytes: 65_536, ops: 100, runs: 1, ..Fixture::honest() }.record();
        let case = &crate::case::cases(&record)[0];
        let read = Amount { ops, bytes };
        let total = BlockFlow { ios: 110 + ops, bytes: 110 * 65_536 + bytes, ..BlockFlow::default() };
        let traffic = Traffic {
            disks: "vda".into(),
            read,
            write: Amount::default(),
            unattributed_bytes: 0,
            total,
            is_inferred: false,
            busy_share: 1.0,
        };
        let foreign = ForeignIo::new(case, traffic, false);
        (foreign.severity(), foreign.finding())
    };
    // 48 requests are too few to count, although their share is 30 %. Their bytes are enough.
    let (severity, found) = finding(FLOOR_IOS, FLOOR_BYTES + 4096);
    assert_eq!(severity, Some(Severity::Biases));
    assert!(found.sentence.contains("share was 13 %"), "{}", found.sentence);
    assert!((found.evidence["foreign_share"] - found.evidence["foreign_bytes_share"]).abs() < 1e-9);
    // One request more, and the requests decide.
    let (severity, found) = finding(FLOOR_IOS + 1, FLOOR_BYTES + 4096);
    assert_eq!(severity, Some(Severity::Invalidates));
    assert!(found.sentence.contains("49 requests and fathom 110"), "{}", found.sentence);
}

#[test]
fn a_kernel_thread_that_may_have_caused_the_writes_is_named() {
    // Slot 0 of the disk's statistics has reads, slot 4 has writes.
    let found = |slot: usize, thread: &str| {
        let kind = if thread.starts_with("btrfs") { "btrfs" } else { "ext4" };
        let fixture = Fixture { kind, ..Fixture::honest() };
        let mut record = traffic::with_foreign_requests(&fixture, slot, 9_000);
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            snapshot.files.insert(model::evidence::HOUSEKEEPERS.into(), Ok(format!("9: {thread}\n")));
        }
        let Ok(Answer::Finding(f)) = FOREIGN_IO.answer(&record) else { panic!("silent") };
        (f.sentence, f.fix.unwrap_or_default())
    };
    let (sentence, fix) = found(4, "ext4lazyinit");
    assert!(sentence.contains("ext4lazyinit was writing"), "{sentence}");
    assert!(fix.starts_with(FOREIGN_IO.fix) && fix.contains("`ps -e | grep ext4lazyinit`"), "{fix}");
    let (sentence, fix) = found(4, "btrfs-balance");
    assert!(sentence.contains("btrfs-balance was moving"), "{sentence} {fix}");
    // No thread is named if other processes mostly read, or if the thread always exists.
    for (slot, thread) in [(0, "ext4lazyinit"), (4, "kswapd0")] {
        let (sentence, fix) = found(slot, thread);
        assert!(!sentence.contains("kernel thread") && fix.is_empty(), "{sentence} {fix}");
    }
}

#[test]
fn others_are_a_note_below_a_reached_limit_with_headroom() {
    let limited = |riops: &str, busy: &str| {
        let mut record = Fixture { foreign_ios: 9_000, ..Fixture::honest() }.record();
        let text = format!("/c/io.max: 254:0 rbps=max wbps=max riops={riops} wiops=max");
        record.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text));
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
            let mut fields: Vec<&str> = text.split_ascii_whitespace().collect();
            fields[9] = if snapshot.moment == model::evidence::Moment::Stop { busy } else { "0" };
            *text = fields.join(" ");
        }
        FOREIGN_IO.severity(&record)
    };
    assert_eq!(limited("10000", "300"), Some(Severity::Note));
    assert_eq!(
        limited("10000", "1100"),
        Some(Severity::Biases),
        "the device may have been busy all the time"
    );
    assert_eq!(limited("50000", "300"), Some(Severity::Invalidates), "the limit was not reached");
}

/// The honest record of a program that stood still for `ns` in one run.
#[cfg(test)]
fn still(ns: u64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let stall = model::record::Stops { count: 1, longest_ns: ns, total_ns: ns, workers: None };
    record.runs[0].end.as_mut().unwrap().stops = Some(Ok(stall));
    record
}

#[test]
fn a_short_stop_is_silent_a_longer_one_biases_and_most_of_the_time_is_void() {
    let at = |ns| STOOD_STILL.severity(&still(ns));
    // Five runs of a second.
    assert_eq!(at(40_000_000), None);
    assert_eq!(at(500_000_000), Some(Severity::Biases));
    assert_eq!(at(3_000_000_000), Some(Severity::Invalidates));
}

#[test]
fn a_tracer_or_a_stopped_worker_biases_and_many_stopped_samples_are_void() {
    let record = |states: Known<WorkerStates>| {
        let mut record = Fixture::honest().record();
        let stops = model::record::Stops { workers: Some(states), ..Default::default() };
        record.runs[2].end.as_mut().unwrap().stops = Some(Ok(stops));
        record
    };
    let states = |stopped, traced| WorkerStates { samples: 100, stopped, traced, tracer: None };
    let at = |states| STOOD_STILL.severity(&record(Ok(states)));
    assert_eq!(at(states(0, 0)), None);
    assert_eq!(at(states(1, 0)), Some(Severity::Biases));
    assert_eq!(at(states(33, 0)), Some(Severity::Biases), "a third is not surely more than 30 %");
    assert_eq!(at(states(60, 0)), Some(Severity::Invalidates));
    let gdb = WorkerStates { tracer: Some("gdb (pid 7)".into()), ..states(0, 3) };
    let Ok(Answer::Finding(f)) = STOOD_STILL.answer(&record(Ok(gdb))) else { panic!("silent") };
    assert!(f.severity == Severity::Biases && f.sentence.starts_with("gdb (pid 7) traced"), "{}", f.sentence);
    assert!(STOOD_STILL.answer(&record(Err("no /proc".into()))).is_err_and(|why| why == "no /proc"));
}

/// The honest record with these runs disturbed.
#[cfg(test)]
fn disturbed(runs: &[usize]) -> model::record::Record {
    use model::record::{Disturbance, Disturbed};
    let mut record = Fixture::honest().record();
    for run in runs {
        let by = vec![Disturbance::StolenCpu { share: 0.2 }];
        record.runs[*run].disturbed = Some(Disturbed { attempt: 0, disturbances: by });
    }
    record
}

#[test]
fn a_disturbed_run_biases_and_a_repeated_one_is_a_note() {
    let mut record = disturbed(&[1, 2, 3, 4]);
    let Ok(Answer::Finding(f)) = RUNS_DISTURBED.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biases);
    assert!(
        f.sentence.contains("4 of 5 counted runs") && f.sentence.contains("; and 1 more"),
        "{}",
        f.sentence
    );
    for run in &mut record.runs[1..] {
        let repeated = model::record::Run { disturbed: None, ..run.clone() };
        record.uncounted_runs.push(std::mem::replace(run, repeated));
    }
    let Ok(Answer::Finding(f)) = RUNS_DISTURBED.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Note);
    assert!(f.sentence.contains("repeated: run 2 (the hypervisor took 20 %"), "{}", f.sentence);
}

#[test]
fn files_without_the_limits_are_not_checked() {
    let mut record = Fixture::honest().record();
    let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut record.evidence);
    snapshots.for_each(|s| drop(s.files.remove(model::evidence::LIMITS)));
    assert!(RUNS_DISTURBED.answer(&record).is_err_and(|why| why.contains("limits")));
}
