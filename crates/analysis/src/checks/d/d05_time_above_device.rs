//! D05: latency spent above the device: in a limit, a queue, a lock or a journal.
//!
//! 1. Divides the device's own time by the operations. Operations merged into one request share its time.
//! 2. Subtracts it from the mean latency, together with the workers' time on a CPU (D06) and waiting for one
//!    (D08).
//! 3. Compares the rest with limits. The kernel counts whole milliseconds, so the rest has a lower and an upper
//!    bound.
//!
//! Applies only to direct I/O that reached the device.

use super::{d04_io_limit_configured as d04, d08_runqueue_wait as d08};
use crate::checks::prelude::*;
use crate::figures::{kernel_text, traffic};
use model::record::StreamEnd;

/// Share of the latency that may be above the device before the result is biased.
const BIASED_ABOVE: f64 = 0.3;
/// Share above which the result is relabelled.
const RENAMED_ABOVE: f64 = 0.7;
/// Time per operation that never counts: entering the kernel, an interrupt, waking a thread. On drives that
/// answer in some us it is a large share.
const FLOOR_NS: f64 = 20e3;
/// Requests per operation up to which operations count as unsplit.
pub(crate) const ONE_TO_ONE: f64 = 1.1;
/// Share of the time above the device that the kernel must have counted as I/O wait to name it so.
const COUNTED_FROM: f64 = 0.5;
/// The reason if other processes used the device too.
const NOT_ALONE: &str = "the device's time includes requests of other processes (D01)";

pub(super) const CHECK: Check = Check {
    id: CheckId::D05,
    name: "TIME_ABOVE_DEVICE",
    belief: "the latency is the latency of the device",
    reads: "Time of requests and flushes in `/sys/block/*/stat` of the top device; the latencies of the \
            stream; CPU time of the workers and their time waiting for a CPU; also `/proc/pressure/io`.",
    formula: formula!(
        "1 - device time / sum of latencies - share of the workers' time on a CPU - share waiting for one, \
         all per operation, since the counters include the warm-up. Above {BIASED_ABOVE} and {floor} per \
         operation (the time in the kernel), the latency is biased; above {RENAMED_ABOVE}, the result is \
         relabelled. Only for direct I/O of which at least {ARRIVED_FROM} of the bytes reached the device. \
         With other processes on the disk (D01), their device time counts as fathom's: the time above the \
         device is then a lower bound, and the check never holds. Operations merged into one request share \
         its time. Parts of a split operation (more than {ONE_TO_ONE} requests for each) run in parallel, so \
         their sum is an upper bound. The kernel shows whole ms; if that or a split decides, the check does \
         not answer. If the job includes syncs and no limit was reached, waiting for the journal is part of \
         the number: a note. Not checked if other streams use the device at the same time, since the \
         device's time for each stream is unknown.",
        floor = Ns(FLOOR_NS)
    ),
    provoke: "mkdir /sys/fs/cgroup/blkio/slow && echo '254:0 1000' > /sys/fs/cgroup/blkio/slow/blkio.throttle.read_iops_device\n\
              echo $$ > /sys/fs/cgroup/blkio/slow/cgroup.procs && fathom run --rw randread --depth 1 .",
    fix: "Remove the cause that the finding names: a limit (D04), a full queue (nr_requests), a file \
          system's journal.",
    accept: "Accept it if you want to measure the whole path down to the device.",
    ask: Ask::After(&[CheckId::D01], evaluate),
    #[cfg(test)]
    fires: Some(|| with_device(0.1).record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

/// Where the time of an operation went.
struct Split {
    latency_ns: f64,
    /// Lower and upper bound of the time inside the device.
    device_ns: [f64; 2],
    /// Shares of the workers' time on a CPU and waiting for one.
    cpu: f64,
    ready: f64,
}

impl Split {
    /// Returns the lower and upper bound of the share spent neither in the device nor on a CPU.
    fn above(&self) -> [f64; 2] {
        let share_above =
            |device: f64| (1.0 - device / self.latency_ns - self.cpu - self.ready).clamp(0.0, 1.0);
        [share_above(self.device_ns[1]), share_above(self.device_ns[0])]
    }

    /// Whether a share above the device is large enough to count.
    fn is_above(&self, part: f64) -> bool {
        part > BIASED_ABOVE && part * self.latency_ns > FLOOR_NS
    }

    fn numbers(&self) -> Evidence {
        evidence([
            ("latency_ns", self.latency_ns),
            ("device_ns", self.device_ns[1]),
            ("above_share", self.above()[0]),
            ("cpu_share", self.cpu),
            ("ready_share", self.ready),
        ])
    }
}

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let is_shared = earlier.finds(CheckId::D01);
    if !case.on_device() || !case.stream.cache.is_direct() || !arrived(case, is_shared)? {
        return Ok(Answer::DoesNotApply);
    }
    let split = split(case, is_shared)?;
    let [least, most] = split.above();
    let mut numbers = split.numbers();
    let pressure = kernel_text::waited(case, kernel_text::IO);
    numbers.extend(pressure.as_ref().ok().map(|p| ("io_pressure_share".to_owned(), *p)));
    if !split.is_above(most) && is_shared {
        return Err(NOT_ALONE.into());
    }
    if !split.is_above(most) {
        let sentence = if most <= BIASED_ABOVE {
            "The device and the CPUs account for at least two thirds of the latency."
        } else {
            "The time above the device is only the usual overhead of the kernel."
        };
        return holds(sentence, numbers);
    }
    if !split.is_above(least) {
        return not_checked(
            "fathom cannot tell how much of the latency was spent in the device: the kernel counts whole \
             milliseconds, and the parts of split operations in parallel",
        );
    }
    let limited = d04::reached(case).is_some();
    let syncs = case.syncs();
    let severity = match least {
        _ if syncs && !limited => Severity::Note,
        part if part > RENAMED_ABOVE => Severity::Rename,
        _ => Severity::Biased,
    };
    let renames =
        (severity == Severity::Rename).then(|| Rename::Condition("mostly waiting above the device".into()));
    detail!(
        severity,
        numbers,
        "{} of the latency was spent neither in the device ({} of {} per operation) nor waiting for a CPU, \
         but above the device: {}.",
        show_share(least),
        show_ns(split.device_ns[1]),
        show_ns(split.latency_ns),
        probable_place(limited, syncs, pressure.ok().map(|p| p >= COUNTED_FROM * least))
    )
    .relabelled(renames)
    .found()
}

/// Describes the probable place of the time above the device.
fn probable_place(limited: bool, syncs: bool, is_io_wait: Option<bool>) -> &'static str {
    match is_io_wait {
        _ if limited => "at the limit of a cgroup (D04)",
        _ if syncs => "in the file system's journal, which a sync waits for",
        Some(true) => {
            "where the kernel counts it as I/O wait, such as a limit, a full queue or a lock of the file \
             system"
        }
        Some(false) => {
            "where the kernel does not count it as I/O wait, such as a program in user space or a helper \
             thread"
        }
        None => "fathom cannot tell where",
    }
}

/// Whether the device moved the bytes of fathom's operations.
fn arrived(case: &Case, is_shared: bool) -> Known<bool> {
    let (device, issued) = (own(case, is_shared)?.bytes as f64, case.issued_total().bytes as f64);
    Ok(issued > 0.0 && share(device, issued) >= ARRIVED_FROM)
}

/// Returns what the device did for fathom: everything, unless other processes used it (D01).
fn own(case: &Case, is_shared: bool) -> Known<Amount> {
    let total = case.device()?.total();
    let others = match traffic::of_others(case).into_iter().next() {
        _ if !is_shared => Amount::default(),
        Some(Ok(others)) => others.all(),
        _ => return Err(NOT_ALONE.into()),
    };
    if is_shared && !traffic::comparable(case) {
        // Requests of large operations cannot be attributed, so it is unknown whether several share one.
        return Err(NOT_ALONE.into());
    }
    Ok(Amount { ops: total.ios.saturating_sub(others.ops), bytes: total.bytes.saturating_sub(others.bytes) })
}

/// Returns where the time of the stream's operations went.
fn split(case: &Case, is_shared: bool) -> Known<Split> {
    let streams = || case.runs.iter().map(|r| r.stream);
    if case.stream.is_open_loop() && streams().flat_map(|s| s.kinds.values()).any(|k| k.open.is_none()) {
        return Err("the record does not separate lateness from the storage's own time".into());
    }
    if streams().any(|s| s.issued.get(&Kind::Trim).is_some_and(|i| i.ops > 0)) {
        return Err("the device counters do not include the time of trims".into());
    }
    let issued = case.issued_total().ops as f64;
    let (ops, latency) =
        (latency_totals(streams(), &Kind::MOVING)[0], latency_totals(streams(), &Kind::ALL)[1]);
    if ops <= 0.0 || latency <= 0.0 || issued <= 0.0 {
        return Err("no operation completed within a measured window".into());
    }
    // Syncs belong to the operations before them, so all times are per operation that moves bytes.
    let latency_ns = latency / ops;
    let device_ns = device_ns(case, issued, is_shared)?.map(|ns| ns.min(latency_ns));
    let (cpu, ready) = cpu(case)?;
    Ok(Split { latency_ns, device_ns, cpu, ready })
}

/// Returns the lower and upper bound of the time inside the device per operation. Requests of other processes
/// only add to it.
fn device_ns(case: &Case, issued: f64, is_shared: bool) -> Known<[f64; 2]> {
    let device = case.device()?;
    let total = device.total();
    let (requests, ms) = (own(case, is_shared)?.ops as f64, total.ms as f64 + device.flush_ms as f64);
    // The count of each direction, run and device may be off by one.
    let rounding_ms = 2.0 * case.runs.len() as f64 * case.tops()?.len() as f64;
    let merged = share(issued, requests).max(1.0);
    let per_op = |ms: f64| ms.max(0.0) * merged * 1e6 / issued;
    let is_split = requests > ONE_TO_ONE * issued && !case.syncs();
    let least =
        if is_split { (ms - rounding_ms).max(0.0) * 1e6 / requests } else { per_op(ms - rounding_ms) };
    Ok([least, per_op(ms + rounding_ms)])
}

/// Returns the count and sum of the latencies of these kinds in the windows, from the submission on, also in an
/// open loop.
fn latency_totals<'a>(streams: impl Iterator<Item = &'a StreamEnd>, kinds: &[Kind]) -> [f64; 2] {
    let mut sum = [0.0; 2];
    for end in streams.flat_map(|s| kinds.iter().filter_map(|k| s.kinds.get(k))) {
        let latencies = service_latency(end);
        sum[0] += latencies.count() as f64;
        sum[1] += latencies.sum_ns() as f64;
    }
    sum
}

/// Returns the shares of the workers' time on a CPU and waiting for one. Without a kernel count of the second, it
/// is 0 and counts as above the device.
fn cpu(case: &Case) -> Known<(f64, f64)> {
    let workers = || stream_workers(case);
    let wall: f64 = workers().map(|w| w.wall_ns as f64).sum();
    if wall <= 0.0 {
        return Err("the record does not contain the CPU time of the workers".into());
    }
    let on: f64 = workers().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
    Ok((share(on, wall), d08::waited(case).unwrap_or(0.0)))
}

#[cfg(test)]
use crate::fixture::Fixture;

/// The honest record with little CPU time and this share of the latency inside the device.
#[cfg(test)]
fn with_device(device_time_share: f64) -> Fixture {
    Fixture { device_time_share, cpu_share: 0.02, ..Fixture::honest() }
}

#[cfg(test)]
fn at(fixture: &Fixture) -> Option<Severity> {
    CHECK.severity(&fixture.record())
}

#[test]
fn the_share_above_the_device_decides_the_severity() {
    assert_eq!(at(&with_device(0.93)), None);
    assert_eq!(at(&with_device(0.72)), None);
    assert_eq!(at(&with_device(0.65)), Some(Severity::Biased));
    assert_eq!(at(&with_device(0.1)), Some(Severity::Rename));
    // Operations merged into one request share its time.
    assert_eq!(at(&Fixture { merged: 4, ..with_device(0.93) }), None);
}

#[test]
fn a_belief_that_holds_claims_no_more_than_its_figures() {
    let pass = |fixture: Fixture| match CHECK.answer(&fixture.record()) {
        Ok(Answer::Holds(sentence, evidence)) => (sentence, evidence["above_share"]),
        other => panic!("{other:?}"),
    };
    let (sentence, above) = pass(with_device(0.72));
    assert!(
        above > 0.2 && 1.0 - above >= 2.0 / 3.0 && sentence.contains("two thirds"),
        "{above}: {sentence}"
    );
    let quick = Fixture { depth: 1, depth_seen: 0.9, latency_ns: Some(30_000), ..with_device(0.45) };
    let (sentence, above) = pass(quick);
    assert!(above > 0.4 && sentence.contains("overhead of the kernel"), "{above}: {sentence}");
}

#[test]
fn cpu_time_and_waiting_for_a_cpu_do_not_count() {
    assert_eq!(at(&Fixture { cpu_share: 0.5, ..with_device(0.4) }), None);
    let mut record = with_device(0.4).record();
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok(worker.wall_ns / 2);
    }
    assert_eq!(CHECK.severity(&record), None);
}

#[test]
fn small_reads_on_a_fast_drive_are_silent() {
    let quick = |ns| Fixture { depth: 1, depth_seen: 0.9, latency_ns: Some(ns), ..with_device(0.45) };
    assert_eq!((at(&quick(30_000)), at(&quick(60_000))), (None, Some(Severity::Biased)));
}

#[test]
fn rounding_to_milliseconds_is_not_checked() {
    let few = Fixture { ops: 10, latency_ns: Some(200_000), ..with_device(0.1) };
    let why = CHECK.answer(&few.record());
    assert!(why.as_ref().is_err_and(|w| w.contains("whole milliseconds")), "{why:?}");
}

#[test]
fn cached_and_buffered_operations_are_not_checked() {
    use model::job::Cache;
    let cached = Fixture { delivered: 0.02, ..with_device(0.9) };
    assert_eq!(CHECK.answer(&cached.record()), Ok(Answer::DoesNotApply));
    let buffered = Fixture { cache: Cache::Buffered, ..with_device(0.1) };
    assert_eq!(CHECK.answer(&buffered.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn other_processes_do_not_hide_time_above_the_device() {
    let with_others = |share| Fixture { foreign_ios: 9_000, ..with_device(share) };
    assert_eq!(at(&with_others(0.1)), Some(Severity::Rename));
    let hidden = CHECK.answer(&with_others(0.93).record());
    assert!(hidden.as_ref().is_err_and(|why| why.contains("D01")), "{hidden:?}");
}

#[test]
fn the_sentence_names_the_probable_place() {
    let answer_after = |change: &dyn Fn(&mut model::record::Record), fixture: Fixture| {
        let mut record = fixture.record();
        change(&mut record);
        match CHECK.answer(&record) {
            Ok(Answer::Finding(f)) => (f.severity, f.sentence),
            other => panic!("{other:?}"),
        }
    };
    let limit = |r: &mut model::record::Record| {
        let text = "/c/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max".to_owned();
        r.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text));
    };
    let (severity, sentence) = answer_after(&limit, with_device(0.1));
    assert!(severity == Severity::Rename && sentence.contains("D04"), "{sentence}");
    let dsync = Fixture {
        cache: model::job::Cache::DirectDsync,
        read_percent: 0,
        sync_ns: Some(1_000_000),
        ..with_device(0.1)
    };
    let (severity, sentence) = answer_after(&|_| {}, dsync);
    assert!(severity == Severity::Note && sentence.contains("journal"), "{sentence}");
    let (_, sentence) = answer_after(&|r| kernel_text::fixture(r, kernel_text::IO, 0.9), with_device(0.1));
    assert!(sentence.contains("counts it as I/O wait"), "{sentence}");
    let (_, sentence) = answer_after(&|_| {}, with_device(0.1));
    assert!(sentence.contains("user space"), "{sentence}");
}
