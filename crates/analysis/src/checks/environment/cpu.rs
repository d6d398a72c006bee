//! CPU time of the workers (D06, D07, D08, D10, D11, D12, D21).
//!
//! The figures of each check:
//! - D06: the time that the busiest worker was on a CPU or waited for one; the rate as a share of fathom's own ceiling,
//!   which the self test measures without storage.
//! - D07: the cost of fathom's loop as a share of the median latency.
//! - D08: the time that workers were ready but waited for a CPU, without pauses by a quota (D11).
//! - D10: the CPU ticks that the hypervisor took.
//! - D11: the time in which the kernel throttled fathom's cgroup.
//! - D12: the wake-up time from the deepest sleep that pays off between two operations. It also reads the governors.
//! - D21: the NUMA nodes of the workers, compared with those of the target's devices.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{path_values, quota_pauses, stolen_ticks};
use crate::strategy::disturbed::STOLEN_ABOVE;
use model::evidence::{CPU_STAT, GOVERNORS, LIMITS, NODES, SLEEPS, hides_outer_cgroups};
use model::job::{MemoryNodes, Placement};
use model::record::{PREPARES_AHEAD, WorkerEnd};
use std::ops::RangeInclusive;

/// If a worker is on a CPU or waits for one for more than this share of its time, its waiting for storage is negligible.
pub(crate) const CPU_BOUND_ABOVE: Share = Share(0.9);
/// The self test measures fathom's own ceiling before the first run. Above this share of the ceiling, the result is the
/// rate of fathom instead of the storage.
const CEILING_ABOVE: Share = Share(0.8);

pub(in crate::checks) const CPU_BOUND: Check = Check {
    id: CheckId::D06,
    name: "CPU_BOUND",
    belief: "the storage, not the CPU, limits the number",
    reads: "User and system time of each worker (`getrusage` of the thread) and the time that it was ready \
            but waited for a CPU (`/proc/thread-self/schedstat`, if it exists), compared with the clock. The \
            self test before the first run: a job of the same shape without storage.",
    formula: formula!(
        "Compares the busiest worker's time with the clock, and the rate with that of the self test.\n\
         - Relabelled if the busiest worker was on a CPU or waited for one for more than {CPU_BOUND_ABOVE} \
         of its time: waiting for storage is negligible then.\n\
         - Relabelled if the rate is above {CEILING_ABOVE} of the rate that all workers reach without \
         storage.\n\
         - Not checked, instead of the first rule, for workers that poll for completions: they are busy \
         even while they wait.\n\
         - Does not apply to jobs that a rate, pauses or drains hold back."
    ),
    provoke: "fathom run --rw randread --bs 4k --cache buffered --size 64m --workers 1 .   # twice: the \
              second time all of it is cached",
    fix: "Use more --workers, or a larger --bs; --engine io_uring costs least per operation.",
    accept: "Accept it if you want to measure one busy thread.",
    // With a schedule or a pause, a worker spends its time reading the clock.
    applies: |case| case.has_storage() && case.stream.submits_without_waiting(),
    ask: Ask::Alone(check_cpu_bound),
    #[cfg(test)]
    fires: Some(|| Fixture { cpu_share: 0.99, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { no_cpu_times: true, ..Fixture::honest() }.record(),
};

fn check_cpu_bound(case: &Case) -> Known<Answer> {
    let busiest_worker = shares_by_worker(case).into_iter().max_by(|a, b| a.busy().total_cmp(&b.busy()));
    let busiest_worker = busiest_worker.ok_or("the record does not contain the CPU time of the workers")?;
    let WorkerShares { on_cpu, ready } = busiest_worker;
    let share_of_ceiling = share_of_ceiling(case);
    let numbers = evidence([
        ("busiest_worker_cpu_share", on_cpu),
        ("busiest_worker_ready_share", ready),
        ("share_of_own_ceiling", share_of_ceiling.unwrap_or(f64::NAN)),
    ]);
    let at_ceiling = share_of_ceiling.filter(|share| *share > CEILING_ABOVE);
    if busiest_worker.busy() <= CPU_BOUND_ABOVE && at_ceiling.is_none() {
        return holds("The workers had CPU time to spare.", numbers);
    }
    if let (Some(option), None) = (case.polling_option(), at_ceiling) {
        return Err(format!("workers with option {option} are busy even while they wait for storage"));
    }
    let why = match at_ceiling {
        Some(share) => format!(
            "The rate is {} of the rate that fathom reaches through this interface without storage",
            show_share(share)
        ),
        None if on_cpu > CPU_BOUND_ABOVE => {
            format!("A worker used a CPU for {} of its time", show_share(on_cpu))
        }
        None => format!(
            "A worker used a CPU for {} of its time and waited for one for {}",
            show_share(on_cpu),
            show_share(ready)
        ),
    };
    detail!(Severity::Relabels, numbers, "{why}: the CPU limits the result, not the storage.")
        .with_fix(case.io_uring_denial().map(|_| "Use more --workers, or a larger --bs.".to_owned()))
        .relabelled(Rename::Condition("limited by CPU".into()))
        .found()
}

/// Returns the rate as a share of what all workers can do with no storage, or `None` if that was not measured.
fn share_of_ceiling(case: &Case) -> Option<f64> {
    let ceiling = case.ceiling().ok()?;
    let ns = [&ceiling.loop_ns, &ceiling.interface_ns].into_iter().filter_map(|n| n.as_ref().ok());
    let slowest = ns.copied().max_by(f64::total_cmp).filter(|ns| *ns > 0.0)?;
    let ops: u64 = case.stream.kinds().map(|k| case.in_windows(k).ops).sum();
    let per_worker = ops as f64 / case.window_ns() / f64::from(case.stream.workers.max(1));
    Some(per_worker * slowest).filter(|share| share.is_finite())
}

/// Returns the share of time that the busiest worker was on a CPU, over all runs; `None` if no CPU time was recorded.
pub(crate) fn busiest_worker_cpu_share(case: &Case) -> Option<f64> {
    shares_by_worker(case).into_iter().map(|shares| shares.on_cpu).max_by(f64::total_cmp)
}

/// Shares of a worker's time over all runs.
#[derive(Clone, Copy)]
struct WorkerShares {
    on_cpu: f64,
    /// Share of the time in which the worker was ready and waited for a CPU; 0 if the kernel does
    /// not count it (D08).
    ready: f64,
}

impl WorkerShares {
    /// Returns the share in which the worker did not wait for storage.
    fn busy(self) -> f64 {
        self.on_cpu + self.ready
    }
}

fn shares_by_worker(case: &Case) -> Vec<WorkerShares> {
    let mut sums: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
    for worker in case.workers() {
        let [cpu, ready, wall] = sums.entry(worker.worker).or_default();
        *cpu += worker.user_ns as f64 + worker.system_ns as f64;
        *ready += worker.ready_ns.as_ref().map_or(0.0, |ns| *ns as f64);
        *wall += worker.wall_ns as f64;
    }
    let measured = sums.into_values().filter(|[cpu, _, wall]| *cpu > 0.0 && *wall > 0.0);
    measured.map(|[cpu, ready, wall]| WorkerShares { on_cpu: cpu / wall, ready: ready / wall }).collect()
}

/// If fathom's own loop takes more than this share of the median latency, the result is biased.
const OVERHEAD_ABOVE: Share = Share(0.1);

pub(super) const TOOL_OVERHEAD: Check = Check {
    id: CheckId::D07,
    name: "TOOL_OVERHEAD",
    belief: "fathom's own overhead is negligible",
    reads: "The self test before the first run: ns per operation of fathom's own loop with the engine null; \
            the medians of the measured latencies.",
    formula: formula!(
        "Time of the loop / the smaller median of reads and writes: biased above {OVERHEAD_ABOVE}, \
         because fathom's overhead is then visible in the number. If the workers generate the data \
         of their next writes while they wait for earlier ones, the loop counts only if it takes \
         longer than the median."
    ),
    provoke: "fathom run --rw randread --bs 512 --engine mmap --size 16m .   # some hundred ns per operation",
    fix: "Compare this number only with other numbers from fathom, or use a larger --bs.",
    accept: "Accept it if only the difference from another number of fathom matters.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_tool_overhead),
    #[cfg(test)]
    fires: Some(|| {
        let quick = Fixture { latency_ns: Some(150), ..Fixture::honest() };
        Fixture { depth: 1, depth_seen: 1.0, ..quick }.record()
    }),
    #[cfg(test)]
    blind: || Fixture { tool_ns: None, ..Fixture::honest() }.record(),
};

/// Whether every worker generates the data of its next write while it waits for the current ones.
fn prepares_data_ahead(case: &Case) -> bool {
    let prepares = |worker: &WorkerEnd| worker.used.iter().any(|used| used == PREPARES_AHEAD);
    case.workers().next().is_some() && case.workers().all(prepares)
}

fn check_tool_overhead(case: &Case) -> Known<Answer> {
    let own_ns = case.ceiling()?.loop_ns.clone()?;
    let median = least_median_ns(case)?;
    // Data generated while the device works cost no time unless they take longer than the device.
    let is_hidden = own_ns <= median && prepares_data_ahead(case);
    let part = if is_hidden { 0.0 } else { own_ns / median.max(1.0) };
    let numbers = evidence([("tool_ns", own_ns), ("median_ns", median), ("share", part)]);
    if part <= OVERHEAD_ABOVE {
        return holds("fathom's own overhead is negligible.", numbers);
    }
    finding!(
        Severity::Biases,
        numbers,
        "fathom's own loop takes {} per operation, {} of the median latency of {}.",
        show_ns(own_ns),
        show_share(part),
        show_ns(median)
    )
}

/// Above this share of the workers' time, waiting for a CPU is part of the latencies. Kernel threads also need CPU
/// time: 5.4 % were seen in one of 80 runs on two CPUs that nothing else used.
pub(crate) const CPU_WAIT_ABOVE: Share = Share(0.10);
/// Above this share of the workers' time, waiting for a CPU decides the number.
const CPU_WAIT_VOID_ABOVE: Share = Share(0.30);

pub(in crate::checks) const RUNQUEUE_WAIT: Check = Check {
    id: CheckId::D08,
    name: "RUNQUEUE_WAIT",
    belief: "the workers waited for storage, not for a CPU",
    reads: "`/proc/thread-self/schedstat` of each worker at its start and end: the second field is the time \
            that it was ready but waited for a CPU.",
    formula: formula!(
        "Time waiting for a CPU, without pauses by a quota (D11), divided by the workers' time: above \
         {CPU_WAIT_ABOVE} biased. Above {CPU_WAIT_VOID_ABOVE} void, since the number mostly depends on other \
         users of the CPUs. If the streams of the phase have more workers than the CPUs that these may use \
         (--cpus), fathom competes with itself, and the result is relabelled `limited by CPU` instead."
    ),
    provoke: "for i in $(seq $(nproc)); do timeout 5 sh -c 'while :; do :; done' & done\nfathom run --rw randread --depth 1 .",
    fix: "Stop other users of the CPUs, use fewer --workers, or give the workers their own CPUs (--cpus).",
    accept: "Accept it if you want to measure a busy machine.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_runqueue_wait),
    #[cfg(test)]
    fires: Some(|| waiting(0.2)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let workers = record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers);
        workers.for_each(|w| w.ready_ns = Err("schedstat: no such file".into()));
        record
    },
};

fn check_runqueue_wait(case: &Case) -> Known<Answer> {
    let [ready, wall] = ready_and_wall_ns(case)?;
    let part = share((ready - paused_ns(case)).max(0.0), wall);
    let numbers = evidence([("ready_share", share(ready, wall)), ("ready_share_without_quota", part)]);
    if part <= CPU_WAIT_ABOVE {
        return holds("The time that the workers waited for a CPU is too short to matter.", numbers);
    }
    let (workers, cpus) = workers_and_cpus(case);
    let is_overcommitted = workers > cpus && cpus > 0;
    let (severity, renames) = match part {
        p if p <= CPU_WAIT_VOID_ABOVE => (Severity::Biases, None),
        _ if is_overcommitted => (Severity::Relabels, Some(Rename::Condition("limited by CPU".into()))),
        _ => (Severity::Invalidates, None),
    };
    let why = if is_overcommitted {
        format!("{workers} workers share {cpus} {}.", if cpus == 1 { "CPU" } else { "CPUs" })
    } else {
        "Other threads used the CPUs.".to_owned()
    };
    detail!(
        severity,
        numbers,
        "The workers waited {} of their time for a CPU, not for storage, and the latencies include \
         that wait. {why}",
        show_share(part)
    )
    .relabelled(renames)
    .found()
}

/// Returns the number of workers of the phase that can only run on the stream's CPUs, and the number of these CPUs; 0 CPUs if
/// the machine is unknown.
fn workers_and_cpus(case: &Case) -> (u32, u32) {
    let own: BTreeSet<u32> = case.stream.place.cpus.iter().copied().collect();
    if own.is_empty() {
        let workers = case.phase_streams().iter().map(|stream| stream.workers).sum();
        return (workers, case.machine.map_or(0, |m| m.cpus));
    }
    let is_confined =
        |s: &&Stream| !s.place.cpus.is_empty() && s.place.cpus.iter().all(|cpu| own.contains(cpu));
    let workers = case.phase_streams().iter().filter(is_confined).map(|stream| stream.workers).sum();
    (workers, own.len() as u32)
}

/// Returns the share of the workers' time in which they were ready and waited for a CPU, including pauses by a
/// quota.
///
/// # Errors
/// Fails if that was not counted.
pub(crate) fn waited_for_cpu(case: &Case) -> Known<f64> {
    ready_and_wall_ns(case).map(|[ready, wall]| share(ready, wall))
}

/// Returns two sums over the workers in ns: the time in which they were ready but waited for a CPU, and their whole running time.
fn ready_and_wall_ns(case: &Case) -> Known<[f64; 2]> {
    let (mut ready, mut wall) = (0.0, 0.0);
    for worker in case.workers() {
        ready += *worker.ready_ns.as_ref().map_err(Clone::clone)? as f64;
        wall += worker.wall_ns as f64;
    }
    if wall > 0.0 {
        Ok([ready, wall])
    } else {
        not_checked("the record does not contain the time of the workers")
    }
}

/// Above this share of stolen CPU time, the number is biased. fathom repeats a run above the same share.
const STEAL_ABOVE: Share = Share(STOLEN_ABOVE);
/// Above this share of stolen CPU time, the number mostly depends on the other guests of the host.
const STEAL_VOID_ABOVE: Share = Share(0.10);
/// Minimum number of ticks on all CPUs. With fewer, a single stolen tick could exceed [`STEAL_ABOVE`].
const LEAST_TICKS: u64 = 100;

pub(super) const STEAL: Check = Check {
    id: CheckId::D10,
    name: "STEAL",
    belief: "the host gave this machine its CPUs when needed",
    reads: "The first line of `/proc/stat` at the start and stop of each run: time of all CPUs in ticks of \
            10 ms. The eighth number is the time that the hypervisor took.",
    formula: formula!(
        "Stolen time / all time over the runs: above {STEAL_ABOVE} biased, above {STEAL_VOID_ABOVE} void. One \
         tick per run is allowed, since the counter is rounded. Below {LEAST_TICKS} ticks in total it is not \
         checked."
    ),
    provoke: "`stress-ng --cpu 0` on the host or in a neighbouring guest, then here `fathom run --rw randread .`",
    fix: "Measure while the host is idle, pin the guest's CPUs, or use an instance with dedicated CPUs.",
    accept: "Accept it if you want to measure the crowded host.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_steal),
    #[cfg(test)]
    fires: Some(|| stolen(10, 200)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(STAT)));
        record
    },
};

fn check_steal(case: &Case) -> Known<Answer> {
    let (mut stolen, mut all) = (0_u64, 0_u64);
    for ran in case.runs.iter() {
        let (before, after) =
            (stolen_ticks(ran.snapshot(Moment::Start)?)?, stolen_ticks(ran.snapshot(Moment::Stop)?)?);
        // The kernel's idle time may decrease by a tick, so a difference may be slightly too small.
        stolen = stolen.saturating_add(after[0].saturating_sub(before[0]));
        all = all.saturating_add(after[1].saturating_sub(before[1]));
    }
    if all < LEAST_TICKS {
        return Err(format!(
            "the runs are too short: the kernel counts CPU time in ticks of 10 ms, and they contain only {all} \
             of the {LEAST_TICKS} ticks that the check needs"
        ));
    }
    let part = stolen as f64 / all as f64;
    let stolen_at_least = stolen.saturating_sub(case.runs.len() as u64) as f64 / all as f64;
    let numbers = evidence([("stolen_share", part), ("stolen_ticks", stolen as f64)]);
    let severity = match stolen_at_least {
        s if s > STEAL_VOID_ABOVE => Severity::Invalidates,
        s if s > STEAL_ABOVE => Severity::Biases,
        _ if stolen == 0 => return holds("The kernel counted no stolen CPU time.", numbers),
        _ => return holds("Too little CPU time was stolen to matter.", numbers),
    };
    finding!(severity, numbers, "The hypervisor took away {} of the CPU time.", show_share(part))
}

/// Above this share of the runs' time, pauses by a quota are part of the latencies: 50 ms in ten seconds.
const PAUSED_ABOVE: Share = Share(0.005);
/// Above this share of the runs' time, pauses by a quota decide the number.
const PAUSED_RELABELLED_ABOVE: Share = Share(0.3);
const NOT_PAUSED: &str = "No quota paused the workers.";
const HARDLY_PAUSED: &str = "A quota paused the workers too briefly to matter.";

pub(in crate::checks) const CPU_QUOTA: Check = Check {
    id: CheckId::D11,
    name: "CPU_QUOTA",
    belief: "no quota paused the test",
    reads: "`nr_throttled` and `throttled_usec` (version 1: `throttled_time`) in `cpu.stat` of fathom's \
            cgroup or the nearest one above that has them, at the start and stop of each run; `cpu.max` and \
            `cpu.cfs_quota_us` of all cgroups above.",
    formula: formula!(
        "Biased if the pauses of all threads, added up, exceed {PAUSED_ABOVE} of the runs' time. Above \
         {PAUSED_RELABELLED_ABOVE} the result is relabelled, since the quota decides it. Without a quota in \
         fathom's cgroup or one above it, there are no pauses. A quota that paused nothing is not reported."
    ),
    provoke: "systemd-run --scope -p CPUQuota=20% fathom run --rw randread --bs 4k --depth 32 .",
    fix: "Start fathom outside that cgroup, or raise its quota (`cpu.max`; in a container its CPU limit).",
    accept: "Accept it if the quota belongs to what you want to measure.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_cpu_quota),
    #[cfg(test)]
    fires: Some(|| with_pauses(3, 300_000)),
    #[cfg(test)]
    blind: || {
        let mut record = with_pauses(0, 0);
        record.header.hosts[0].facts.remove(LIMITS);
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(CPU_STAT)));
        record
    },
};

fn check_cpu_quota(case: &Case) -> Known<Answer> {
    let Some(PausesInRuns { times, paused_ns, passed_ns }) = pauses_in_runs(case)? else {
        return holds(NOT_PAUSED, evidence([]));
    };
    let part = share(paused_ns, passed_ns);
    let numbers = evidence([("pauses", times as f64), ("paused_ns", paused_ns), ("paused_share", part)]);
    if part <= PAUSED_ABOVE {
        let sentence = if times == 0 { NOT_PAUSED } else { HARDLY_PAUSED };
        return holds(sentence, numbers);
    }
    let (severity, renames) = if part > PAUSED_RELABELLED_ABOVE {
        (Severity::Relabels, Some(Rename::Condition("limited by a CPU quota".into())))
    } else {
        (Severity::Biases, None)
    };
    detail!(
        severity,
        numbers,
        "A CPU quota paused fathom's cgroup {} for {} in total, {} of the runs' time.",
        if times == 1 { "once".to_owned() } else { format!("{} times", show_count(times as f64)) },
        show_ns(paused_ns),
        show_share(part)
    )
    .relabelled(renames)
    .found()
}

/// Pauses by a CPU quota: their number, their total time, and the time of the runs.
struct PausesInRuns {
    times: u64,
    paused_ns: f64,
    passed_ns: f64,
}

/// Returns the pauses of all runs, or `None` if they were not counted and no cgroup has a quota.
fn pauses_in_runs(case: &Case) -> Known<Option<PausesInRuns>> {
    let mut sum = PausesInRuns { times: 0, paused_ns: 0.0, passed_ns: 0.0 };
    for ran in case.runs.iter() {
        let (start, stop) = (ran.snapshot(Moment::Start)?, ran.snapshot(Moment::Stop)?);
        let (before, after) = match (quota_pauses(start), quota_pauses(stop)) {
            (Ok(before), Ok(after)) => (before, after),
            // Pauses that are not counted are no problem if no cgroup has a quota.
            (Err(_), _) | (_, Err(_)) if has_no_quota(case) => return Ok(None),
            (Err(why), _) | (_, Err(why)) => return Err(why),
        };
        let backwards = || format!("{CPU_STAT}: the counters went backwards");
        sum.times = sum.times.saturating_add(after.times.checked_sub(before.times).ok_or_else(backwards)?);
        sum.paused_ns += after.ns.checked_sub(before.ns).ok_or_else(backwards)? as f64;
        sum.passed_ns += stop.at_ns.saturating_sub(start.at_ns) as f64;
    }
    if sum.passed_ns > 0.0 { Ok(Some(sum)) } else { Err("no time passed in the runs".into()) }
}

/// Returns how long a quota paused fathom, in ns; 0 if unknown. The kernel counts a paused thread as waiting for a CPU.
pub(super) fn paused_ns(case: &Case) -> f64 {
    pauses_in_runs(case).ok().flatten().map_or(0.0, |p| p.paused_ns)
}

/// Whether the limits of the cgroups are known and none of them limits the CPU.
fn has_no_quota(case: &Case) -> bool {
    let limits = case.machine.ok_or_else(String::new).and_then(|m| m.fact(LIMITS));
    limits.is_ok_and(|text| {
        !text.contains("cpu.max") && !text.contains("cpu.cfs_quota") && !hides_outer_cgroups(text)
    })
}

/// The governor that always requests the highest frequency.
const AT_FULL_CLOCK: &str = "performance";
/// A CPU enters a sleep state if it expects to stay there for about this many times the wake-up time. The
/// kernel's tables have ratios of target residency to exit latency between two and four.
const WORTH_SLEEPING: f64 = 3.0;
/// If a CPU takes at least this share of the median latency to wake up, the check reports the wake-up time.
const WAKING_FROM: Share = Share(0.1);
/// Up to this number of operations in flight per worker, a CPU has time to sleep between completions.
const LOW_DEPTH: f64 = 4.0;

pub(super) const CLOCKING: Check = Check {
    id: CheckId::D12,
    name: "CLOCKING",
    belief: "the CPUs are awake and at full clock",
    reads: "`/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`, the exit latencies of the sleep states \
            in `/sys/devices/system/cpu/cpu0/cpuidle/`, the median latency, and the mean operations in flight.",
    formula: formula!(
        "A note if a governor is not `performance`, or if waking up takes at least {WAKING_FROM} of the \
         median while at most {LOW_DEPTH} operations per worker are in flight. CPUs sleep only if it pays \
         off, so the check assumes the deepest state whose exit latency is at most 1/{WORTH_SLEEPING} of the \
         median. The real cost is not measured, hence never more than a note."
    ),
    provoke: "`cpupower frequency-set -g powersave && fathom run --rw randread --depth 1 DIR`, on bare \
              metal.",
    fix: "Run `cpupower frequency-set -g performance`, and `cpupower idle-set -D 2` to avoid deep sleep, and \
          measure again.",
    accept: "A note needs no --accept. Keep the setting if the machine has it in production too, and compare only \
             results with the same setting.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_clocking),
    #[cfg(test)]
    fires: Some(|| {
        with_fact(GOVERNORS, Ok("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: powersave\n"))
    }),
    #[cfg(test)]
    blind: || with_fact(GOVERNORS, Ok("")),
};

fn check_clocking(case: &Case) -> Known<Answer> {
    let machine = case.machine.ok_or("the record names no host")?;
    let governors = machine.fact(GOVERNORS)?;
    if governors.is_empty() {
        return not_checked(
            "the kernel shows no frequency governor; in a virtual machine, the host chooses the frequency",
        );
    }
    let slower_governors: BTreeSet<&str> =
        path_values(governors).map(|(_, g)| g).filter(|g| *g != AT_FULL_CLOCK).collect();
    let waking = machine.fact(SLEEPS).and_then(|sleeps| find_waking_time(case, sleeps));
    let known_waking = waking.as_ref().ok().copied().flatten();
    let mut causes = Vec::new();
    if !slower_governors.is_empty() {
        let names: Vec<&str> = slower_governors.into_iter().collect();
        causes.push(format!("the CPUs may run below full clock (governor: {})", names.join(" and ")));
    }
    if let Some(Waking { ns, median_ns }) = known_waking.filter(|w| w.ns >= WAKING_FROM.0 * w.median_ns) {
        causes.push(format!(
            "waking a CPU that sleeps between two operations takes about {} of the median latency of {}",
            show_ns(ns),
            show_ns(median_ns)
        ));
    }
    let numbers = known_waking.map_or_else(Evidence::new, |waking| {
        evidence([("waking_ns", waking.ns), ("median_ns", waking.median_ns)])
    });
    if causes.is_empty() {
        waking?;
        return holds(
            "All governors request full clock, and waking up from sleep takes too little time to matter.",
            numbers,
        );
    }
    finding!(
        Severity::Note,
        numbers,
        "Power saving may be part of these latencies: {}.",
        causes.join(", and ")
    )
}

/// The time to wake up from the deepest sleep state that pays off between two operations.
#[derive(Clone, Copy)]
struct Waking {
    ns: f64,
    /// Median latency of the operations in ns.
    median_ns: f64,
}

/// Returns the wake-up time, or `None` if operations leave no time to sleep or no sleep state pays off.
fn find_waking_time(case: &Case, sleeps: &str) -> Known<Option<Waking>> {
    let median_ns = least_median_ns(case)?;
    if case.depth_mean()? / f64::from(case.stream.workers.max(1)) > LOW_DEPTH {
        return Ok(None);
    }
    let mut deepest = None;
    for (path, text) in path_values(sleeps) {
        let us: f64 = text.parse().map_err(|_| format!("{path} is not a number: '{text}'"))?;
        let ns = us * 1e3;
        if ns.is_finite() && ns * WORTH_SLEEPING <= median_ns {
            deepest = Some(ns.max(deepest.unwrap_or(0.0)));
        }
    }
    Ok(deepest.map(|ns| Waking { ns, median_ns }))
}

/// File with the NUMA node of a device.
const NODE_OF_DEVICE: &str = "device/numa_node";

pub(super) const NUMA_REMOTE: Check = Check {
    id: CheckId::D21,
    name: "NUMA_REMOTE",
    belief: "the workers run on the device's NUMA node",
    reads: "`device/numa_node` of the lowest devices, `/sys/devices/system/node/node*/cpulist`, and the \
            placement of the workers and their memory in the plan (--cpus, --node, --memory-nodes).",
    formula: formula!(
        "A note if the machine has several NUMA nodes and a worker or its memory may be on a node without a \
         device of the target. It is only a note because the cost of the distance differs from machine to \
         machine."
    ),
    provoke: "On a machine with two sockets: `fathom run --rw randread --depth 1 DIR`, which leaves the \
              choice to the kernel.",
    fix: "Place the workers on the device's node: `--node N`, with N from `cat \
          /sys/block/nvme0n1/device/numa_node`.",
    accept: "A note needs no --accept.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_numa_remote),
    #[cfg(test)]
    fires: Some(|| on_two_nodes(&Placement::default(), "1\n")),
    #[cfg(test)]
    blind: || on_two_nodes(&Placement::default(), "-1\n"),
};

/// A NUMA node.
#[derive(Debug, PartialEq)]
struct Node {
    number: u32,
    /// Ranges of CPUs. Empty for a node with only memory.
    cpus: Vec<RangeInclusive<u32>>,
}

fn check_numa_remote(case: &Case) -> Known<Answer> {
    let machine = case.machine.ok_or("the record names no host")?;
    let nodes = parse_nodes(machine.fact(NODES)?)?;
    match nodes.len() {
        0 => return Err("the kernel shows no NUMA nodes".into()),
        1 => return holds("All CPUs are on the same NUMA node.", evidence([("nodes", 1.0)])),
        _ => {}
    }
    let at_device = device_nodes(case)?;
    let at_workers = worker_nodes(&case.stream.place, &nodes);
    let numbers = evidence([("nodes", nodes.len() as f64), ("worker_nodes", at_workers.len() as f64)]);
    if at_workers.is_subset(&at_device) {
        return holds("The workers are on the NUMA node of the device.", numbers);
    }
    let list = |all: &BTreeSet<u32>| {
        let numbers = all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        format!("{} {numbers}", if all.len() == 1 { "node" } else { "nodes" })
    };
    detail!(
        Severity::Note,
        numbers,
        "The workers and their memory may be on NUMA {}, but the target's storage is on {}: operations \
         may cross between nodes.",
        list(&at_workers),
        list(&at_device)
    )
    .with_fix(format!("Use --node {}.", at_device.first().copied().unwrap_or(0)))
    .found()
}

/// Parses the nodes and their CPUs from lines `path: 0-3,8`.
fn parse_nodes(text: &str) -> Known<Vec<Node>> {
    let node = |(path, list): (&str, &str)| {
        let number = path.rsplit('/').find_map(|part| part.strip_prefix("node")?.parse().ok());
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        };
        let parts = list.split(',').filter(|part| !part.trim().is_empty());
        let cpus = parts.map(range).collect::<Option<_>>();
        let bad_list = || format!("{path} is not a list of CPUs: '{list}'");
        number.zip(cpus).map(|(number, cpus)| Node { number, cpus }).ok_or_else(bad_list)
    };
    path_values(text).map(node).collect()
}

/// Returns the nodes of the target's devices.
fn device_nodes(case: &Case) -> Known<BTreeSet<u32>> {
    let node_of = |device: &Layer| {
        // -1 means that the device belongs to no node or the firmware does not name it.
        let node = device.device.get(NODE_OF_DEVICE).and_then(|text| text.trim().parse().ok());
        node.ok_or_else(|| format!("the NUMA node of {} is unknown", device.name))
    };
    let nodes: BTreeSet<u32> =
        case.places().flat_map(Place::lowest_layers).map(node_of).collect::<Known<_>>()?;
    if nodes.is_empty() { Err("no block device below the target is known".into()) } else { Ok(nodes) }
}

/// Returns the nodes on which a worker or its memory may be.
fn worker_nodes(place: &Placement, nodes: &[Node]) -> BTreeSet<u32> {
    let mut out: BTreeSet<u32> = match &place.memory {
        None => place.node.into_iter().collect(),
        Some(MemoryNodes::Bind(nodes) | MemoryNodes::Interleave(nodes)) => nodes.iter().copied().collect(),
        Some(MemoryNodes::Prefer(node)) => [*node].into(),
        // The memory is on the nodes of the threads.
        Some(MemoryNodes::Local) => BTreeSet::new(),
    };
    let any_cpu = place.cpus.is_empty();
    if let (true, Some(node)) = (any_cpu, place.node) {
        out.insert(node);
        return out;
    }
    for node in nodes {
        let is_on_node = |cpu: &u32| node.cpus.iter().any(|range| range.contains(cpu));
        if (any_cpu && !node.cpus.is_empty()) || place.cpus.iter().any(is_on_node) {
            out.insert(node.number);
        }
    }
    out
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn waiting_for_a_cpu_is_not_waiting_for_storage() {
    let mut record = Fixture { cpu_share: 0.8, ..Fixture::honest() }.record();
    assert_eq!(CPU_BOUND.severity(&record), None);
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok(worker.wall_ns / 8);
    }
    assert_eq!(CPU_BOUND.severity(&record), Some(Severity::Relabels));
}

#[test]
fn the_cpu_time_of_polling_workers_does_not_relabel() {
    for option in ["iopoll", "hipri"] {
        let polling = |cpu_share, interface_ns| {
            let tool_ns = Some([20.0, interface_ns]);
            let mut record = Fixture { cpu_share, tool_ns, ..Fixture::honest() }.record();
            record.header.plan.jobs[0].phases[0].streams[0].options.insert(option.into(), None);
            record
        };
        let answer = CPU_BOUND.answer(&polling(1.0, 50_000.0));
        assert!(answer.as_ref().is_err_and(|why| why.contains(option)), "{answer:?}");
        assert!(matches!(CPU_BOUND.answer(&polling(0.5, 50_000.0)), Ok(Answer::Holds(..))));
        assert_eq!(CPU_BOUND.severity(&polling(1.0, 90_000.0)), Some(Severity::Relabels));
    }
}

#[test]
fn a_rate_near_fathoms_ceiling_relabels() {
    // 10,000 operations per second take 0.1 ms each.
    let near = Fixture { tool_ns: Some([20.0, 90_000.0]), ..Fixture::honest() };
    assert_eq!(CPU_BOUND.severity(&near.record()), Some(Severity::Relabels));
    let far = Fixture { tool_ns: Some([20.0, 50_000.0]), ..Fixture::honest() };
    assert_eq!(CPU_BOUND.severity(&far.record()), None);
}

#[test]
fn d06_does_not_apply_to_the_null_engine() {
    let null = Fixture { role: model::plan::Role::None, engine: "null", cpu_share: 1.0, ..Fixture::honest() };
    assert_eq!(CPU_BOUND.answer(&null.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn the_fix_does_not_name_io_uring_if_it_is_denied() {
    let mut record = Fixture { cpu_share: 0.99, ..Fixture::honest() }.record();
    let fact = "kernel 4.19.0 is too old (ENOSYS)".to_owned();
    record.header.hosts[0].facts.insert(model::evidence::IO_URING.into(), Ok(fact));
    let Ok(Answer::Finding(found)) = CPU_BOUND.answer(&record) else { panic!("silent") };
    assert!(found.fix.is_some_and(|fix| !fix.contains("io_uring")));
}

#[test]
fn data_generated_while_the_device_works_do_not_count() {
    let slow_loop =
        || Fixture { tool_ns: Some([40_000.0, 250.0]), latency_ns: Some(180_000), ..Fixture::honest_write() };
    let severity = |record: &model::record::Record| TOOL_OVERHEAD.severity(record);
    assert_eq!(severity(&slow_loop().record()), Some(Severity::Biases));
    let prepared_ahead = |fixture: Fixture| {
        let mut record = fixture.record();
        let workers = record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers);
        workers.for_each(|w| w.used.push(PREPARES_AHEAD.into()));
        record
    };
    assert_eq!(severity(&prepared_ahead(slow_loop())), None);
    let slower_loop = Fixture { tool_ns: Some([190_000.0, 250.0]), ..slow_loop() };
    assert_eq!(severity(&prepared_ahead(slower_loop)), Some(Severity::Biases));
}

/// The honest record with workers that were ready but waited for a CPU for `part` of their time.
#[cfg(test)]
fn waiting(part: f64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok((worker.wall_ns as f64 * part) as u64);
    }
    record
}

#[test]
fn waiting_biases_and_a_lot_is_void() {
    let at = |part| RUNQUEUE_WAIT.severity(&waiting(part));
    assert_eq!((at(0.09), at(0.11), at(0.29)), (None, Some(Severity::Biases), Some(Severity::Biases)));
    assert_eq!(at(0.31), Some(Severity::Invalidates));
}

#[test]
fn more_workers_than_cpus_relabel() {
    let mut record = waiting(0.5);
    record.header.plan.jobs[0].phases[0].streams[0].workers = 8;
    let Ok(Answer::Finding(f)) = RUNQUEUE_WAIT.answer(&record) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Relabels);
    assert!(f.sentence.contains("8 workers share 2 CPUs"), "{}", f.sentence);
}

#[test]
fn workers_that_share_the_cpus_of_their_streams_relabel() {
    let answer = |change: &dyn Fn(&mut Vec<Stream>)| {
        let mut record = waiting(0.5);
        change(&mut record.header.plan.jobs[0].phases[0].streams);
        let Ok(Answer::Finding(f)) = RUNQUEUE_WAIT.answer(&record) else { panic!("silent") };
        (f.severity, f.sentence)
    };
    let on_one_cpu = |workers: u32, stream: &Stream| Stream {
        workers,
        place: Placement { cpus: vec![0], ..Placement::default() },
        ..stream.clone()
    };
    let (severity, sentence) = answer(&|streams: &mut Vec<Stream>| streams[0] = on_one_cpu(2, &streams[0]));
    assert_eq!(severity, Severity::Relabels);
    assert!(sentence.contains("2 workers share 1 CPU."), "{sentence}");
    let (severity, sentence) = answer(&|streams: &mut Vec<Stream>| {
        streams[0] = on_one_cpu(1, &streams[0]);
        streams.push(streams[0].clone());
    });
    assert_eq!(severity, Severity::Relabels);
    assert!(sentence.contains("2 workers share 1 CPU."), "{sentence}");
    // The second stream may use other CPUs.
    let (severity, _) = answer(&|streams: &mut Vec<Stream>| {
        streams.push(streams[0].clone());
        streams[0] = on_one_cpu(1, &streams[0]);
    });
    assert_eq!(severity, Severity::Invalidates);
}

#[test]
fn pauses_by_a_quota_do_not_count() {
    let mut record = with_pauses(5, 400_000);
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok(420_000_000);
    }
    assert_eq!(RUNQUEUE_WAIT.severity(&record), None);
}

#[cfg(test)]
const STAT: &str = "/proc/stat";

/// A record whose runs each have `steal` stolen ticks out of `all`.
#[cfg(test)]
fn stolen(steal: u64, all: u64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for (i, run) in record.runs.iter_mut().enumerate() {
        for snapshot in &mut run.evidence {
            let times = i as u64 + u64::from(snapshot.moment == Moment::Stop);
            let text =
                format!("cpu  5 0 5 {} 0 0 0 {} 0 0\ncpu0 1 1\n", times * (all - steal), times * steal);
            snapshot.files.insert(STAT.into(), Ok(text));
        }
    }
    record
}

#[test]
fn one_tick_per_run_is_silent_more_bias_and_many_are_void() {
    let at = |steal, all| STEAL.severity(&stolen(steal, all));
    assert_eq!((at(1, 60), at(2, 200), at(4, 200)), (None, None, Some(Severity::Biases)));
    assert_eq!((at(20, 200), at(22, 200)), (Some(Severity::Biases), Some(Severity::Invalidates)));
}

#[test]
fn short_runs_are_not_checked() {
    assert!(STEAL.answer(&stolen(1, 15)).is_err());
}

/// A record whose runs each have `pauses` pauses of `us` us in total.
#[cfg(test)]
pub(super) fn with_pauses(pauses: u64, us: u64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for (i, run) in record.runs.iter_mut().enumerate() {
        for snapshot in &mut run.evidence {
            let times = i as u64 + u64::from(snapshot.moment == Moment::Stop);
            let text = format!(
                "usage_usec 1\nnr_periods {times}\nnr_throttled {}\nthrottled_usec {}\n",
                times * pauses,
                times * us
            );
            snapshot.files.insert(CPU_STAT.into(), Ok(text));
        }
    }
    record
}

#[test]
fn more_than_half_a_percent_biases_and_cgroup_v1_counts_in_ns() {
    // A run lasts 1.1 s.
    let at = |us| CPU_QUOTA.severity(&with_pauses(1, us));
    assert_eq!((at(5_000), at(6_000), at(400_000)), (None, Some(Severity::Biases), Some(Severity::Relabels)));
    let mut record = with_pauses(1, 6_000);
    for text in record.runs.iter_mut().flat_map(|r| &mut r.evidence).filter_map(|s| s.files.get_mut(CPU_STAT))
    {
        *text = text.clone().map(|t| t.replace("throttled_usec ", "throttled_time "));
    }
    assert_eq!(CPU_QUOTA.severity(&record), None, "6 us");
}

#[test]
fn a_counter_is_only_needed_with_a_quota() {
    let mut record = with_pauses(0, 0);
    let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
    snapshots.for_each(|s| drop(s.files.insert(CPU_STAT.into(), Ok("usage_usec 5\n".into()))));
    assert!(matches!(CPU_QUOTA.answer(&record), Ok(Answer::Holds(..))));
    record.header.hosts[0].facts.insert(LIMITS.into(), Ok("/c/cpu.max: 20000 100000\n".into()));
    assert!(CPU_QUOTA.answer(&record).is_err());
}

/// One operation at a time, 100 us each, on a machine with this fact.
#[cfg(test)]
fn with_fact(fact: &str, text: Result<&str, &str>) -> model::record::Record {
    let fixture = Fixture { depth: 1, depth_seen: 1.0, latency_ns: Some(100_000), ..Fixture::honest() };
    let mut record = fixture.record();
    let text = text.map(str::to_owned).map_err(str::to_owned);
    record.header.hosts[0].facts.insert(fact.into(), text);
    record
}

/// Sleep states as a server with `intel_idle` shows them.
#[cfg(test)]
fn sleeps(second_us: u32) -> String {
    let dir = "/sys/devices/system/cpu/cpu0/cpuidle";
    format!("{dir}/state0/latency: 0\n{dir}/state1/latency: {second_us}\n{dir}/state2/latency: 133\n")
}

#[test]
fn wake_ups_of_a_tenth_of_the_median_are_a_note() {
    assert_eq!(CLOCKING.severity(&with_fact(SLEEPS, Ok(&sleeps(10)))), Some(Severity::Note));
    assert!(matches!(CLOCKING.answer(&with_fact(SLEEPS, Ok(&sleeps(2)))), Ok(Answer::Holds(..))));
    let mut deep = Fixture::honest().record();
    deep.header.hosts[0].facts.insert(SLEEPS.into(), Ok(sleeps(900)));
    assert!(matches!(CLOCKING.answer(&deep), Ok(Answer::Holds(..))), "a busy CPU does not sleep");
}

#[test]
fn a_governor_is_reported_even_if_sleep_states_are_unknown() {
    let two = "/a/cpu0: powersave\n/a/cpu1: powersave\n/a/cpu2: schedutil\n";
    let mut record = with_fact(GOVERNORS, Ok(two));
    record.header.hosts[0].facts.insert(SLEEPS.into(), Err("Permission denied".into()));
    let Ok(Answer::Finding(f)) = CLOCKING.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("powersave and schedutil"), "{}", f.sentence);
    assert!(CLOCKING.answer(&with_fact(SLEEPS, Err("Permission denied"))).is_err());
    assert!(CLOCKING.answer(&with_fact(SLEEPS, Ok("/a/state1/latency: soon\n"))).is_err());
}

/// A record of a machine with two sockets, with workers at `place` and a device on node `device`.
#[cfg(test)]
fn on_two_nodes(place: &Placement, device: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let dir = "/sys/devices/system/node";
    let text = format!("{dir}/node0/cpulist: 0-15,32-47\n{dir}/node1/cpulist: 16-31,48-63\n");
    let machine = &mut record.header.hosts[0];
    machine.facts.insert(NODES.into(), Ok(text));
    machine.places[0].layers[0].device.insert(NODE_OF_DEVICE.into(), device.into());
    record.header.plan.jobs[0].phases[0].streams[0].place = place.clone();
    record
}

#[test]
fn only_workers_bound_to_the_devices_node_are_local() {
    let near = [
        Placement { node: Some(1), ..Placement::default() },
        Placement { cpus: vec![16, 31, 63], ..Placement::default() },
    ];
    for place in near {
        assert!(
            matches!(NUMA_REMOTE.answer(&on_two_nodes(&place, "1\n")), Ok(Answer::Holds(..))),
            "{place:?}"
        );
        assert_eq!(NUMA_REMOTE.severity(&on_two_nodes(&place, "0\n")), Some(Severity::Note), "{place:?}");
    }
    let both = Placement { cpus: vec![16, 47], ..Placement::default() };
    assert_eq!(NUMA_REMOTE.severity(&on_two_nodes(&both, "1\n")), Some(Severity::Note));
    let bound_to = |memory| Placement { node: Some(1), memory: Some(memory), ..Placement::default() };
    assert_eq!(NUMA_REMOTE.severity(&on_two_nodes(&bound_to(MemoryNodes::Local), "1\n")), None);
    assert_eq!(NUMA_REMOTE.severity(&on_two_nodes(&bound_to(MemoryNodes::Bind(vec![1])), "1\n")), None);
    for memory in [MemoryNodes::Prefer(0), MemoryNodes::Interleave(vec![0, 1])] {
        assert_eq!(NUMA_REMOTE.severity(&on_two_nodes(&bound_to(memory), "1\n")), Some(Severity::Note));
    }
}

#[test]
fn nodes_without_cpus_are_parsed_and_bad_lists_are_errors() {
    assert_eq!(parse_nodes("/n/node2/cpulist: \n"), Ok(vec![Node { number: 2, cpus: Vec::new() }]));
    assert_eq!(
        parse_nodes("/n/node0/cpulist: 0,4-7\n"),
        Ok(vec![Node { number: 0, cpus: vec![0..=0, 4..=7] }])
    );
    assert!(parse_nodes("/n/node0/cpulist: 0-x\n").is_err() && parse_nodes("/n/cpulist: 0\n").is_err());
    let mut none = Fixture::honest().record();
    none.header.hosts[0].facts.insert(NODES.into(), Ok(String::new()));
    assert!(NUMA_REMOTE.answer(&none).is_err());
}
