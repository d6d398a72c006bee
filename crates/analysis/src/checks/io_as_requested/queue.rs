//! Whether the operations in flight were in the device's queue (B05, B09, B10, B18).
//!
//! All but B10 read fathom's mean number of operations in flight. B05 compares this mean, and the device's own count, with
//! the requested depth (not for depth 1). B09 compares the mean with the requests that the queues accept. B10 notes
//! several fast workers on a device with a single hardware queue, whose lock may limit the rate. B18 applies Little's law:
//! the sum of latencies divided by the window must equal the mean operations in flight, which fathom counts separately.

use super::layers_with_queues;
use super::requests::least_shared_requests_per_op;
use crate::checks::prelude::*;
use crate::checks::{HEADROOM_BELOW, busiest_worker_cpu_share, waited_for_cpu};

/// Share of the requested depth that must be in flight on average.
const REACHED_FROM: f64 = 0.5;
/// Up to this mean number of operations in flight per worker, each worker does one at a time. The excess above 1 allows
/// for rounding.
const ONE_AT_A_TIME: f64 = 1.05;
/// The fix if operations wait for a limit in a layer above the device.
const LIFT_THE_LIMIT: &str =
    "Operations wait above the device for the limit that D04 names: raise or lift this limit.";
/// A worker that is on a CPU or waits for one for less than this share of its time does not limit the queue.
const SPARE_CPU_BELOW: Share = Share(0.5);

pub(super) const DEPTH_NOT_REACHED: Check = Check {
    id: CheckId::B05,
    name: "DEPTH_NOT_REACHED",
    belief: "as many operations were in flight as requested",
    reads: "fathom's own integral of operations in flight over each window. For direct I/O also requests, \
            bytes and time-in-queue in the `stat` file of the top device.",
    formula: formula!(
        "Mean operations in flight / (depth x workers x targets).\n\
         - Relabelled to the measured depth if the ratio is below {REACHED_FROM}.\n\
         - Relabelled to the depth at the device if the device's own mean depth is below {REACHED_FROM} of \
         the requested depth: the missing operations waited above the device. The device's depth comes \
         from its time-in-queue, corrected for merged requests. This rule applies to direct I/O of which \
         the device moved at least {ARRIVED_FROM} of the bytes.\n\
         - If other streams use the device at the same time, its time-in-queue for all streams / this \
         stream's time is an upper bound of the stream's depth at the device. Relabelled if even this bound \
         is too low, otherwise not checked. The correction for merges then assumes that all merges belong to \
         this stream.\n\
         - Does not apply at depth 1, or if a schedule, pauses or drains hold operations back."
    ),
    provoke: "`fathom run --rw randread --depth 32 --engine sync DIR`, or `--engine libaio --cache \
              buffered`: one operation at a time, whatever --depth requests.",
    fix: "Use --engine io_uring with --cache direct, or more --workers instead of --depth.",
    accept: "Accept it if the application uses this interface. The result's name keeps the true depth.",
    // With a schedule, pauses or drains, the requested depth is only an upper limit.
    applies: |case| case.stream.depth > 1 && case.stream.submits_without_waiting(),
    ask: Ask::After(&[CheckId::D04], check_depth_not_reached),
    #[cfg(test)]
    fires: Some(|| Fixture { depth_seen: 0.98, engine: "sync", ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_depth_not_reached(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let requested = requested_depth(&case.stream);
    let reached = case.depth_mean()?;
    let mut numbers = evidence([("asked_depth", requested), ("depth_mean", reached)]);
    if reached < REACHED_FROM * requested {
        let mut sentence = format!(
            "Depth {requested:.0} was requested, but {} operations were in flight on average.",
            show_rate(reached)
        );
        if one_at_a_time(case, reached) {
            sentence += &format!(
                " Each worker had no more than one in flight: {} apparently completed each operation before it \
                 submitted the next.",
                case.stream.engine
            );
        }
        return depth_finding(sentence, reached, specific_fix(case), numbers);
    }
    if !case.stream.cache.is_direct() || !case.on_device() {
        // Through the page cache the kernel decides the device's queue, so only fathom's own count is checked.
        return holds("The queue was as deep as requested.", numbers);
    }
    // If fewer operations are in the device than in flight, the rest wait in a layer above it.
    let tops = case.top_layers()?;
    let is_shared = !case.sharers(&tops).is_empty();
    let device = case.top_io_of_all_streams()?;
    let issued = case.issued_total();
    let total = device.total();
    // The time of all streams in the queue is an upper bound of this stream's time there.
    let ns = if is_shared {
        case.runs.iter().map(|r| least_active_ns(r, case.stream.delay_ns) as f64).sum()
    } else {
        case.runs.iter().map(|r| r.active_ns().map(|ns| ns as f64)).sum::<Known<f64>>()?
    };
    let device_depth = share(device.queue_ms as f64 * 1e6, ns);
    numbers.extend(evidence([(
        if is_shared { "device_depth_at_most" } else { "device_depth_mean" },
        device_depth,
    )]));
    // If the kernel merges neighbours, fewer and larger requests form the same queue.
    let requests_per_op = if is_shared {
        least_shared_requests_per_op(case)?
    } else {
        share(total.ios as f64, issued.ops as f64).min(1.0)
    };
    let is_ours = is_shared || share(total.bytes as f64, issued.bytes as f64) >= ARRIVED_FROM;
    if is_ours && device_depth < REACHED_FROM * requested * requests_per_op {
        let sentence = format!(
            "The device saw only {} requests{} at a time, although depth {requested:.0} was requested and {} \
             operations were in flight on average.",
            show_rate(device_depth),
            if is_shared { " of all streams together" } else { "" },
            show_rate(reached)
        );
        // Operations above the device wait for the limit, and more operations would change nothing.
        let is_limited = matches!(earlier.answer(CheckId::D04), Some(Ok(Answer::Finding(f))) if f.severity == Severity::Biases);
        let busy_share = case.with_sharers().busiest_share(&tops)?;
        let fix = if is_limited { Some(LIFT_THE_LIMIT.into()) } else { fix_above_device(case, busy_share) };
        return depth_finding(sentence, device_depth, fix, numbers);
    }
    if is_shared {
        return Err(case.why_shared()?);
    }
    holds("The queue was as deep as requested.", numbers)
}

/// Returns a lower bound of the time in which operations of this stream could be in flight. Workers of other streams may
/// run for longer.
fn least_active_ns(ran: &CaseRun, delay_ns: u64) -> u64 {
    let longest = ran.workers().map(|worker| worker.wall_ns).max().unwrap_or(0);
    longest.saturating_sub(delay_ns).max(ran.stream.window_ns)
}

/// Returns the fix for operations that wait above the device. `busy_share` is the share of the time in which the busiest device was busy.
/// If the workers had CPU time to spare, more workers change nothing, because enough operations were in flight.
fn fix_above_device(case: &Case, busy_share: f64) -> Option<String> {
    if !has_spare_cpu(case) {
        return specific_fix(case);
    }
    let cause = if busy_share >= HEADROOM_BELOW.0 {
        "The device was busy, so its queue may be full: compare its nr_requests with --depth."
    } else if case.syncs() && case.on_block_devices() {
        "The device had headroom too. Syncs are the likely cause: compare with the same job without them."
    } else if case.syncs() {
        "The device had headroom too. The rest of the time was probably spent in the file system and its \
         journal, which a sync waits for."
    } else if case.may_hide_limits() {
        "The device had headroom too. A limit that fathom cannot see is likely, such as that of a cgroup \
         outside a container: check `io.max` or `blkio.throttle.*` there, or measure outside the container."
    } else if case.on_block_devices() {
        "The device had headroom too. Its I/O scheduler or another part of the block layer may hold operations \
         back: compare with the scheduler `none` (queue/scheduler)."
    } else {
        "The device had headroom too. A limit or a lock of the file system is likely: compare with reads of \
         the device itself."
    };
    Some(format!(
        "More --workers are unlikely to help: the workers had CPU time to spare, and operations waited above the \
         device. {cause}"
    ))
}

/// Whether the workers are known to have had CPU time to spare.
fn has_spare_cpu(case: &Case) -> bool {
    let busiest = busiest_worker_cpu_share(case).zip(waited_for_cpu(case).ok());
    busiest.is_some_and(|(on_cpu, ready)| on_cpu + ready < SPARE_CPU_BELOW.0)
}

/// Returns a fix in place of `DEPTH_NOT_REACHED.fix`: for a job that already does what that fix advises, or for a
/// machine that denies io_uring. `None` for other jobs.
fn specific_fix(case: &Case) -> Option<String> {
    let denial = case.io_uring_denial();
    let deepest = if denial.is_some() { "libaio" } else { "io_uring" };
    if case.stream.engine == deepest && case.stream.cache.is_direct() {
        // Some limits make the submission itself wait. Then the queue is never full.
        let hidden = if has_spare_cpu(case) && !case.syncs() && case.may_hide_limits() {
            " If that does not raise the rate, a limit that fathom cannot see is likely, such as that of a \
             cgroup outside a container."
        } else {
            ""
        };
        return Some(format!(
            "Engine and cache mode already allow a deep queue: use more --workers, and check the limiter of this \
             result.{hidden}"
        ));
    }
    denial.map(|cause| {
        format!(
            "Use --engine libaio with --cache direct, or more --workers instead of --depth. io_uring is not \
             available here: {cause}."
        )
    })
}

fn depth_finding(sentence: String, depth: f64, fix: Option<String>, numbers: Evidence) -> Known<Answer> {
    Detail::new(Severity::Relabels, sentence, numbers).with_fix(fix).relabelled(Rename::Depth(depth)).found()
}

/// Whether each worker had at most one operation in flight, although the job requested more.
pub(crate) fn one_at_a_time(case: &Case, reached: f64) -> bool {
    case.stream.depth > 1 && reached > 0.0 && reached <= ONE_AT_A_TIME * f64::from(case.stream.workers)
}

pub(super) const DEPTH_ABOVE_QUEUE: Check = Check {
    id: CheckId::B09,
    name: "DEPTH_ABOVE_QUEUE",
    belief: "the device's queue holds all operations in flight",
    reads: "`queue/nr_requests`, the number of hardware queues in `mq/` and, for SCSI, `device/queue_depth` \
            of the disks and loop devices below. Also fathom's own mean of operations in flight. Only direct \
            I/O is checked.",
    formula: formula!(
        "A device accepts nr_requests for each hardware queue, and at most queue_depth. For several disks, \
         these numbers are added up. A note if more operations were in flight on average: the operations \
         beyond this number waited in software, and their latency includes that wait."
    ),
    provoke: "As root on a loop device: `echo 4 > /sys/block/loop0/queue/nr_requests`, then `fathom run --rw \
              randread --bs 4k --depth 32 DIR` on its file system.",
    fix: "Lower --depth, or raise /sys/block/DISK/queue/nr_requests.",
    accept: "A note needs no --accept. The latency includes the wait in the software queue.",
    applies: |case| case.stream.cache.is_direct() && case.on_device(),
    ask: Ask::Alone(check_depth_above_queue),
    #[cfg(test)]
    fires: Some(|| with_queue_files(&[("nr_requests", "4\n")], &[("mq", "1")])),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].queue.remove("nr_requests");
        record
    },
};

fn check_depth_above_queue(case: &Case) -> Known<Answer> {
    let depth = case.depth_mean()?;
    // A disk that is not known may accept more requests.
    let (layers, completeness) = layers_with_queues(case);
    completeness?;
    // A loop device passes its requests to the disk below, so each kind is a separate limit.
    let limit_of_kind = |kind: LayerKind| -> Option<Known<(u64, Vec<&str>)>> {
        let mut layers_of_kind = layers.iter().filter(|layer| layer.kind == kind);
        let names: Vec<&str> = layers_of_kind.clone().map(|layer| layer.name.as_str()).collect();
        let accepts =
            layers_of_kind.try_fold(0_u64, |sum, layer| Ok(sum.saturating_add(layer.accepted_requests()?)));
        (!names.is_empty()).then(|| accepts.map(|accepts| (accepts, names)))
    };
    let limits = [LayerKind::Loop, LayerKind::Disk].into_iter().filter_map(limit_of_kind).collect();
    let (limits, all_counted) = split_known(Ok(limits));
    let Some((accepts, names)) = limits.into_iter().min_by_key(|(accepts, _)| *accepts) else {
        return all_counted.and(not_checked("no disk is known below the target"));
    };
    let numbers = evidence([("depth_mean", depth), ("queue_takes", accepts as f64)]);
    if depth <= accepts as f64 {
        all_counted?;
        return holds("The device's queue held all operations in flight.", numbers);
    }
    let (queue, takes, disk) = match names[..] {
        [name] => (format!("queue of {name}"), "takes", name),
        _ => (format!("queues of {} together", names.join(", ")), "take", "DISK"),
    };
    detail!(
        Severity::Note,
        numbers,
        "{} operations were in flight on average, but the {queue} {takes} {}: the rest waited in software.",
        show_rate(depth),
        show_count(accepts as f64)
    )
    .with_fix(DEPTH_ABOVE_QUEUE.fix.replace("DISK", disk))
    .found()
}

/// Minimum operations per second at which the lock of a queue matters: each submission and each
/// completion holds it for about a microsecond.
const FAST_FROM: f64 = 200_000.0;

pub(super) const ONE_HW_QUEUE: Check = Check {
    id: CheckId::B10,
    name: "ONE_HW_QUEUE",
    belief: "CPUs do not wait for each other at the device's queue",
    reads: "The number of directories in `/sys/block/DISK/mq/`, the workers of the stream and its rate. Only \
            direct I/O is checked.",
    formula: formula!(
        "A note if a disk has one hardware queue, several workers use it, and they reach {fast} operations \
         per second. At that rate the queue's lock, about a microsecond for each submission and each \
         completion, is a good part of the time.",
        fast = show_count(FAST_FROM)
    ),
    provoke: "`fathom run --rw randread --depth 32 --batch 32 --workers 4 /dev/loopX` on a loop device of an \
              empty image (`truncate -s 1g image && losetup --find --show image`). Like most virtual disks, \
              it has one entry in `mq/`.",
    fix: "Give a virtual disk more queues (`num-queues=` of virtio-blk or virtio-scsi), or compare with one \
          worker.",
    accept: "A note needs no --accept.",
    applies: |case| case.stream.cache.is_direct() && case.on_device(),
    ask: Ask::Alone(check_one_hw_queue),
    #[cfg(test)]
    fires: Some(|| one_queue(250_000, 4)),
    #[cfg(test)]
    blind: || {
        let mut record = one_queue(1_000, 4);
        record.header.hosts[0].places[0].layers[0].device.remove("mq");
        record
    },
};

fn check_one_hw_queue(case: &Case) -> Known<Answer> {
    let (layers, mut completeness) = layers_with_queues(case);
    let mut with_one_queue = None;
    for layer in layers {
        match layer.device_number("mq") {
            Ok(0 | 1) => with_one_queue = Some(layer),
            Ok(_) => {}
            Err(why) => completeness = completeness.and(Err(why)),
        }
    }
    let ops: f64 = Kind::MOVING.iter().map(|k| case.in_windows(*k).ops as f64).sum();
    let rate = share(ops, case.window_ns() / 1e9);
    let workers = case.stream.workers;
    let numbers = evidence([("iops", rate), ("workers", f64::from(workers))]);
    let Some(layer) = with_one_queue else {
        completeness?;
        return holds("Every disk has more than one hardware queue.", numbers);
    };
    if workers < 2 || rate < FAST_FROM {
        completeness?;
        return holds("One hardware queue is enough for this load.", numbers);
    }
    finding!(
        Severity::Note,
        numbers,
        "{} has one hardware queue, which {workers} workers shared at {} operations per second: the lock of \
         the queue may limit the rate.",
        layer.name,
        show_count(rate)
    )
}

/// Difference between the two sides of Little's law that the clock and operations with the same time stamp may cause.
const TOLERATED: Share = Share(0.02);
/// Largest difference that is allowed for slow operations across the edges of a window, unless there are few operations.
const EDGE_AT_MOST: Share = Share(0.10);

pub(super) const LITTLE_VIOLATED: Check = Check {
    id: CheckId::B18,
    name: "LITTLE_VIOLATED",
    belief: "rate, latency and depth agree",
    reads: "Latencies of all operations in each window, the window's length, and the integral of operations \
            in flight, which fathom counts separately from the latencies.",
    formula: formula!(
        "Little's law: the sum of latencies / window = mean operations in flight.\n\
         - Invalid if the two sides differ in a run by more than {TOLERATED}, for the clock and operations \
         with the same time stamp, plus an allowance for operations across the edges of the window.\n\
         - The allowance is the requested depth times the slowest latency, divided by the integral of \
         operations in flight. It is at most {EDGE_AT_MOST}, and at least the requested depth / \
         operations.\n\
         - Not checked, instead of invalid, if the allowance explains the difference when it has no \
         maximum and includes the slowest operation of the whole run. The latency of an operation that \
         ends after the window is not in the sum, but its time in flight within the window is in the \
         integral."
    ),
    provoke: "No option makes it fire: it checks fathom's own arithmetic. A session file with 50 % more \
              operations in flight shows it.",
    fix: "Check the clock (`fathom doctor`), and report it with the session file: this is a bug in fathom or \
          a fault of the machine's clock.",
    accept: "Do not accept it: one of the numbers is wrong, and fathom cannot tell which.",
    applies: |_| true,
    ask: Ask::Alone(check_little_violated),
    #[cfg(test)]
    fires: Some(|| Fixture { latency_ns: Some(2_000_000), ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { ops: 0, ..Fixture::honest() }.record(),
};

/// Both sides of Little's law (operations in flight) in one run.
struct Sides {
    depth: f64,
    rate_times_latency: f64,
    tolerated: f64,
    /// The largest gap that operations across the edges can cause if all are as slow as the slowest of the run.
    largest_gap: f64,
    slowest_ns: f64,
    window_ns: f64,
}

impl Sides {
    fn gap(&self) -> f64 {
        share((self.rate_times_latency - self.depth).abs(), self.depth)
    }
}

fn check_little_violated(case: &Case) -> Known<Answer> {
    let depth = requested_depth(&case.stream);
    let sides: Vec<Sides> = case.runs.iter().filter_map(|r| measure_sides(r, depth)).collect();
    let worst = sides.iter().max_by(|a, b| (a.gap() - a.tolerated).total_cmp(&(b.gap() - b.tolerated)));
    let worst = worst.ok_or("no run has operations in a measured window")?;
    let numbers = evidence([
        ("depth_mean", worst.depth),
        ("rate_times_latency", worst.rate_times_latency),
        ("tolerated_share", worst.tolerated),
    ]);
    if worst.gap() <= worst.tolerated {
        return holds("Rate, latency and depth agree.", numbers);
    }
    if worst.gap() <= worst.largest_gap {
        return Err(format!(
            "an operation took {} and may cross the edge of a window of {}, which is too short to compare \
             rate and latency",
            show_ns(worst.slowest_ns),
            show_ns(worst.window_ns)
        ));
    }
    finding!(
        Severity::Invalidates,
        numbers,
        "Rate times latency gives {} operations in flight, but fathom counted {} ({} apart): rate, latency \
         and depth contradict each other.",
        show_rate(worst.rate_times_latency),
        show_rate(worst.depth),
        show_share(worst.gap())
    )
}

fn measure_sides(ran: &CaseRun, requested_depth: f64) -> Option<Sides> {
    // In an open loop, latency starts before an operation is in flight. Only its service time counts here.
    let histograms = || Kind::ALL.iter().filter_map(|k| Some(service_latency(ran.stream.kinds.get(k)?)));
    let ops: f64 = histograms().map(|h| h.count() as f64).sum();
    let sum_ns: f64 = histograms().map(|h| h.sum_ns() as f64).sum();
    let slowest = histograms().filter_map(Histogram::max_ns).max()?;
    // An operation that ends after the window is not in its latencies, but its time is in the depth.
    let slowest_of_all = ran.stream.issued.values().map(|i| i.max_ns).max().unwrap_or(0).max(slowest) as f64;
    let slowest = slowest as f64;
    let (window, depth_ns) = (ran.stream.window_ns as f64, ran.stream.depth_ns as f64);
    if window <= 0.0 || depth_ns <= 0.0 {
        return None;
    }
    // An operation across an edge counts completely on one side of the law and partly on the other. At most a full
    // queue of operations crosses an edge. They are rarely all as slow as the slowest, hence the limit.
    let edge = (requested_depth * slowest / depth_ns).min(EDGE_AT_MOST.0).max(requested_depth / ops);
    Some(Sides {
        depth: depth_ns / window,
        rate_times_latency: sum_ns / window,
        tolerated: TOLERATED.0 + edge,
        largest_gap: TOLERATED.0 + requested_depth * slowest_of_all / depth_ns,
        slowest_ns: slowest_of_all,
        window_ns: window,
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn b05_does_not_apply_to_depth_one() {
    let idle = Fixture { depth: 1, depth_seen: 0.2, ..Fixture::honest() };
    assert_eq!(DEPTH_NOT_REACHED.answer(&idle.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn b05_does_not_apply_to_bursts_that_end_by_count_or_time() {
    use model::job::Bursts;
    let mut record = Fixture { depth_seen: 0.2, ..Fixture::honest() }.record();
    assert!(matches!(DEPTH_NOT_REACHED.answer(&record), Ok(Answer::Finding(_))));
    let mut counted = record.clone();
    counted.header.plan.jobs[0].phases[0].streams[0].access.lines[0].delay_ns = 1;
    assert_eq!(DEPTH_NOT_REACHED.answer(&counted), Ok(Answer::DoesNotApply));
    record.header.plan.jobs[0].phases[0].streams[0].bursts =
        Some(Bursts { time_ns: 1, pause_ns: 1, operations: None });
    assert_eq!(DEPTH_NOT_REACHED.answer(&record), Ok(Answer::DoesNotApply));
}

#[test]
fn operations_that_wait_above_the_device_are_found() {
    let throttled = Fixture { device_time_share: 0.1, ..Fixture::honest() };
    let Ok(Answer::Finding(f)) = DEPTH_NOT_REACHED.answer(&throttled.record()) else { panic!("silent") };
    assert!(f.sentence.contains("The device saw only"), "{}", f.sentence);
    let fix_of = |record: &model::record::Record| match DEPTH_NOT_REACHED.answer(record) {
        Ok(Answer::Finding(f)) => f.fix.unwrap_or_default(),
        other => panic!("{other:?}"),
    };
    let idle = fix_of(&throttled.record());
    assert!(idle.starts_with("More --workers are unlikely to help") && !idle.contains("container"), "{idle}");
    // In a container, a limit outside of it is likely.
    let mut contained = throttled.record();
    contained.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Err("not visible".into()));
    let hidden = fix_of(&contained);
    assert!(hidden.contains("A limit that fathom cannot see is likely"), "{hidden}");
    // Such a limit may also make the submission itself wait.
    for stream in contained.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.streams) {
        stream.depth_ns /= 4;
    }
    let blocked = fix_of(&contained);
    assert!(blocked.contains("more --workers") && blocked.contains("cannot see is likely"), "{blocked}");
    let busy = fix_of(&Fixture { cpu_share: 0.8, ..throttled.clone() }.record());
    assert!(busy.contains("use more --workers"), "{busy}");
    let uncounted = fix_of(&Fixture { no_cpu_times: true, ..throttled.clone() }.record());
    assert!(!uncounted.contains("CPU time to spare"), "{uncounted}");
    // More workers do not lift a limit of a cgroup.
    let mut limited = throttled.record();
    let limit = "/sys/fs/cgroup/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max".to_owned();
    limited.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(limit));
    let Ok(Answer::Finding(f)) = DEPTH_NOT_REACHED.answer(&limited) else { panic!("silent") };
    assert!(f.fix.is_some_and(|fix| fix.contains("D04") && !fix.contains("--workers")));
    // With four merged operations in each request, a quarter of the requested depth at the device is the whole queue.
    let merged = Fixture { device_time_share: 0.9, merged: 4, ..Fixture::honest() };
    assert_eq!(DEPTH_NOT_REACHED.severity(&merged.record()), None);
}

/// The fix if operations wait above the device. `change` changes the record.
#[cfg(test)]
fn fix_of_waiting(fixture: Fixture, change: impl Fn(&mut model::record::Record)) -> String {
    let mut record = Fixture { device_time_share: 0.1, ..fixture }.record();
    change(&mut record);
    match DEPTH_NOT_REACHED.answer(&record) {
        Ok(Answer::Finding(f)) => f.fix.unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_fix_names_the_cause_that_the_job_allows() {
    use model::job::Cache;
    use model::plan::Role;
    let contain = |record: &mut model::record::Record| {
        record.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Err("not visible".into()));
    };
    let stable = || Fixture { cache: Cache::DirectDsync, ..Fixture::honest_write() };
    let journal = fix_of_waiting(stable(), contain);
    assert!(
        journal.contains("journal, which a sync waits for") && !journal.contains("cannot see"),
        "{journal}"
    );
    let synced = fix_of_waiting(Fixture { role: Role::Device, ..stable() }, contain);
    assert!(synced.contains("Syncs are the likely cause") && !synced.contains("journal"), "{synced}");
    // Here the submission itself waits, and the queue is never full.
    let blocked = fix_of_waiting(stable(), |record| {
        contain(record);
        for stream in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.streams) {
            stream.depth_ns /= 4;
        }
    });
    assert!(blocked.contains("more --workers") && !blocked.contains("cannot see"), "{blocked}");
    let device = || Fixture { role: Role::Device, ..Fixture::honest() };
    let raw = fix_of_waiting(device(), |_| ());
    assert!(raw.contains("scheduler") && !raw.contains("file system"), "{raw}");
    let hidden = fix_of_waiting(device(), contain);
    assert!(hidden.contains("cannot see is likely"), "{hidden}");
    let file = fix_of_waiting(Fixture::honest(), |_| ());
    assert!(file.contains("lock of the file system"), "{file}");
}

#[test]
fn several_devices_are_as_busy_as_the_busiest() {
    // Runs of one second on two disks. Each disk was busy for `ms`.
    let fix_at = |ms: u64| {
        fix_of_waiting(Fixture::honest(), |record| {
            let place = &mut record.header.hosts[0].places[0];
            let mut second = place.layers[0].clone();
            second.name = "vdb".into();
            second.number = "254:16".into();
            second.stat_file = "/sys/block/vdb/stat".into();
            place.layers.push(second);
            place.tops.push(1);
            for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
                let busy = if snapshot.moment == Moment::Stop { ms } else { 0 };
                let idle = format!("0 0 0 0 0 0 0 0 0 {busy} 0 0 0 0 0 0 0");
                snapshot.files.insert("/sys/block/vdb/stat".into(), Ok(idle));
                let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
                let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
                fields[9] = busy.to_string();
                *text = fields.join(" ");
            }
        })
    };
    assert!(fix_at(600).contains("had headroom"), "{}", fix_at(600));
    assert!(fix_at(950).contains("its queue may be full"), "{}", fix_at(950));
}

#[test]
fn the_fix_does_not_name_io_uring_if_it_is_denied() {
    let denied = |engine: &'static str| {
        let mut record = Fixture { depth_seen: 0.98, engine, ..Fixture::honest() }.record();
        let fact = "a seccomp filter denies it (EPERM)".to_owned();
        record.header.hosts[0].facts.insert(model::evidence::IO_URING.into(), Ok(fact));
        let Ok(Answer::Finding(finding)) = DEPTH_NOT_REACHED.answer(&record) else { panic!("silent") };
        finding.fix.unwrap_or_default()
    };
    let sync = denied("sync");
    assert!(sync.contains("--engine libaio") && !sync.contains("--engine io_uring"), "{sync}");
    assert!(denied("libaio").contains("more --workers"), "{}", denied("libaio"));
    assert!(!denied("libaio").contains("--engine"), "{}", denied("libaio"));
}

#[cfg(test)]
fn with_queue_files(of_queue: &[(&str, &str)], of_device: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let layer = &mut record.header.hosts[0].places[0].layers[0];
    layer.queue.extend(of_queue.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    layer.device.extend(of_device.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    record
}

#[test]
fn the_queue_depth_of_a_scsi_disk_is_a_limit() {
    // On average, 31.5 operations are in flight.
    let at = |depth| DEPTH_ABOVE_QUEUE.severity(&with_queue_files(&[], &[("device/queue_depth", depth)]));
    assert_eq!(at("31\n"), Some(Severity::Note));
    assert_eq!(at("32\n"), None);
    assert!(DEPTH_ABOVE_QUEUE.answer(&with_queue_files(&[], &[("device/queue_depth", "many")])).is_err());
}

#[test]
fn hardware_queues_add_up_and_a_loop_device_is_a_limit() {
    let at = |requests, queues| {
        DEPTH_ABOVE_QUEUE.severity(&with_queue_files(&[("nr_requests", requests)], &[("mq", queues)]))
    };
    assert_eq!(at("8", "4"), None);
    assert_eq!(at("8", "3"), Some(Severity::Note));
    let mut narrow = Fixture::honest_loop().record();
    narrow.header.hosts[0].places[0].layers[0].queue.insert("nr_requests".into(), "2".into());
    let Ok(Answer::Finding(f)) = DEPTH_ABOVE_QUEUE.answer(&narrow) else { panic!("silent") };
    assert!(f.sentence.contains("queue of loop0 takes 8"), "{}", f.sentence);
    let mut two = with_queue_files(&[("nr_requests", "8")], &[("mq", "1")]);
    let layers = &mut two.header.hosts[0].places[0].layers;
    let twin = Layer { name: "vdb".into(), stat_file: "vdb's".into(), ..layers[0].clone() };
    layers.push(twin);
    let Ok(Answer::Finding(f)) = DEPTH_ABOVE_QUEUE.answer(&two) else { panic!("silent") };
    assert!(f.sentence.contains("queues of vda, vdb together take 16"), "{}", f.sentence);
    assert!(f.fix.is_some_and(|fix| fix.contains("/sys/block/DISK/")));
}

#[cfg(test)]
fn one_queue(ops: u64, workers: u32) -> model::record::Record {
    let fixture = Fixture { ops, workers, runs: 1, ..Fixture::honest() };
    let mut record = fixture.record();
    record.header.hosts[0].places[0].layers[0].device.insert("mq".into(), "1".into());
    record
}

#[test]
fn only_several_fast_workers_are_a_note() {
    assert_eq!(ONE_HW_QUEUE.severity(&one_queue(201_000, 2)), Some(Severity::Note));
    assert_eq!(ONE_HW_QUEUE.severity(&one_queue(199_000, 2)), None);
    assert_eq!(ONE_HW_QUEUE.severity(&one_queue(201_000, 1)), None);
}

#[test]
fn ten_percent_of_difference_is_void_and_one_percent_is_silent() {
    // 31.5 in flight and 10,000 operations a second: 3.15 ms.
    let at = |latency| Fixture { latency_ns: Some(latency), ..Fixture::honest() };
    assert_eq!(LITTLE_VIOLATED.severity(&at(2_800_000).record()), Some(Severity::Invalidates));
    assert_eq!(LITTLE_VIOLATED.severity(&at(3_120_000).record()), None);
}

#[test]
fn a_few_slow_operations_across_the_edges_are_accepted() {
    let slow = Fixture { ops: 40, depth_seen: 20.0, latency_ns: Some(400_000_000), ..Fixture::honest() };
    assert_eq!(LITTLE_VIOLATED.severity(&slow.record()), None);
}

#[test]
fn a_stall_across_the_edge_of_the_window_is_not_checked() {
    // Depth 1 for a second. One operation that ended after the window took 0.8 s of it.
    let mut record =
        Fixture { ops: 200, depth: 1, depth_seen: 1.0, latency_ns: Some(1_000_000), ..Fixture::honest() }
            .record();
    assert_eq!(LITTLE_VIOLATED.severity(&record), Some(Severity::Invalidates));
    let issued = record
        .runs
        .iter_mut()
        .flat_map(|r| &mut r.end)
        .flat_map(|e| &mut e.streams)
        .flat_map(|s| s.issued.values_mut());
    issued.for_each(|i| i.max_ns = 850_000_000);
    assert!(LITTLE_VIOLATED.answer(&record).is_err_and(|why| why.contains("850 ms")));
}

#[test]
fn a_disk_with_an_unknown_number_of_queues_does_not_hide_a_disk_with_one_queue() {
    let next_to_unknown = |mq: &str| {
        let mut record = ONE_HW_QUEUE.fires.unwrap()();
        let place = &mut record.header.hosts[0].places[0];
        let mut unknown = place.layers[0].clone();
        unknown.stat_file = "/sys/block/vdb/stat".into();
        unknown.device.remove("mq");
        place.layers[0].device.insert("mq".into(), mq.into());
        place.layers.push(unknown);
        ONE_HW_QUEUE.answer(&record)
    };
    assert!(matches!(next_to_unknown("1"), Ok(Answer::Finding(_))), "{:?}", next_to_unknown("1"));
    assert!(next_to_unknown("4").is_err_and(|why| why.contains("mq")));
}
