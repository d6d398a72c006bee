//! The clocks that time operations (D09, D13).
//!
//! D09 fires if latencies cluster at one, two or three ticks of the kernel's scheduler although the device was much
//! faster. It counts the latencies near these ticks, for every tick rate that kernels use, and compares their number with
//! neighbouring bands. D13 checks whether the machine slept during a run, whether the CPU's counter (TSC) drifted from the
//! kernel's clock, and whether the clock is coarse or expensive to read.

use super::cpu::waited_for_cpu;
use crate::checks::prelude::*;
use crate::figures::kernel_text;
use model::evidence::SUSPENDED;

/// Tick rates that kernels are built with. No file that every user may read names the rate in use.
const RATES_HZ: [u32; 4] = [100, 250, 300, 1000];
/// Multiples of the tick that are checked.
const TICKS: [u32; 3] = [1, 2, 3];
/// Largest distance of a latency from a tick, as a share of the tick: wide enough for the time of a wake-up, and so narrow
/// that few latencies are within it by chance.
const WITHIN: Share = Share(0.03);
/// If more than this share of the latencies is at ticks, the result is biased.
const AT_TICKS_ABOVE: Share = Share(0.2);
/// Minimum ratio of the latencies at ticks to those in neighbouring bands of the same width. A broad distribution
/// fills all bands alike.
const ABOVE_NEIGHBOURS: f64 = 3.0;
/// Maximum time of a request in the device, as a share of a tick. On a slower device, latencies near a tick prove
/// nothing.
const DEVICE_BELOW: f64 = 0.5;
/// Minimum share of the time in which some task of the machine waited for a CPU. Below it, the tick
/// does not decide which task runs next. The workers' own wait is not enough, because the kernel
/// threads that complete an operation wait too: with a busy loop on each CPU, 96 % of stable writes
/// took one tick, while their worker waited for a CPU in only 1 % of its time.
const READY_FROM: Share = Share(0.2);
/// Minimum number of latencies. With fewer, the share at ticks may be chance.
const LEAST_OPS: u64 = 100;

pub(super) const TICK_QUANTISED: Check = Check {
    id: CheckId::D09,
    name: "TICK_QUANTISED",
    belief: "latencies are those of the storage, not of the scheduler's tick",
    reads: "The latency histograms; the mean time of a request in `/sys/block/*/stat` of the top device; the \
            time that tasks of the machine waited for a CPU (`/proc/pressure/cpu`, or the workers' own wait \
            in `/proc/thread-self/schedstat` if that does not exist).",
    formula: formula!(
        "Looks for latencies within {WITHIN} of one, two or three ticks of 10, 4, 3.33 or 1 ms.\n\
         - Biased under four conditions. More than {AT_TICKS_ABOVE} of the latencies are near such ticks. \
         These are more than {ABOVE_NEIGHBOURS} times as many as in the neighbouring bands. A request took \
         less than {DEVICE_BELOW} ticks in the device. Some task of the machine waited for a CPU in at \
         least {READY_FROM} of the time.\n\
         - Not checked with fewer than {LEAST_OPS} latencies.\n\
         - Holds on a device that itself takes 4 ms."
    ),
    provoke: "for i in $(seq 0 $(($(nproc) - 1))); do taskset -c $i timeout 9 sh -c 'while :; do :; done' & done\n\
              nice -n 5 fathom run --rw randwrite --cache direct-dsync --depth 1 --time 2s --runs 1 .",
    fix: "Stop other users of the CPUs, or give the workers their own CPUs (--cpus).",
    accept: "Accept it if you want to measure a busy machine.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_tick_quantised),
    #[cfg(test)]
    fires: Some(|| at_a_tick(4_000_000, 0.01, 0.9)),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

const NOT_AT_TICKS: &str = "Latencies do not cluster at the kernel's tick.";

/// Share of the latencies near the ticks of one rate (`part`), and in the bands next to the ticks (`neighbours`).
struct AtTicks {
    hz: u32,
    part: f64,
    neighbours: f64,
}

fn check_tick_quantised(case: &Case) -> Known<Answer> {
    let total = case.device_io()?.total();
    let histograms: Vec<Histogram> = Kind::ALL.iter().filter_map(|k| case.latency(*k)).collect();
    let ops = histograms.iter().map(Histogram::count).fold(0, u64::saturating_add);
    if ops < LEAST_OPS {
        return Err(format!(
            "{LEAST_OPS} operations are needed to see whether latencies cluster at a tick, and only {ops} \
             completed"
        ));
    }
    let device_ns = share(total.ms as f64 * 1e6, total.ios as f64);
    let is_much_faster = |hz: &u32| device_ns < DEVICE_BELOW * tick_ns(*hz);
    let candidates =
        RATES_HZ.into_iter().filter(is_much_faster).map(|hz| shares_at_ticks(&histograms, ops, hz));
    let strongest = candidates
        .filter(|g| g.part > AT_TICKS_ABOVE && g.part > ABOVE_NEIGHBOURS * g.neighbours)
        .max_by(|a, b| a.part.total_cmp(&b.part));
    let numbers = evidence([("device_ns", device_ns)]);
    let Some(strongest) = strongest else { return holds(NOT_AT_TICKS, numbers) };
    // Operations may really take as long as a tick, such as 3 ms of CPU time. A tick matters only to a task that waits for a CPU.
    if kernel_text::pressure_share(case, kernel_text::CPU_PRESSURE_FILE).or_else(|_| waited_for_cpu(case))?
        < READY_FROM
    {
        return holds(
            "Tasks waited for a CPU too rarely for the kernel's tick to decide latencies.",
            numbers,
        );
    }
    finding!(
        Severity::Biases,
        evidence([
            ("tick_hz", f64::from(strongest.hz)),
            ("at_ticks_share", strongest.part),
            ("beside_share", strongest.neighbours),
            ("device_ns", device_ns),
        ]),
        "{} of the latencies are at {} or a multiple, like ticks of the kernel's scheduler, although a \
         request took only {} in the device.",
        show_share(strongest.part),
        show_ns(tick_ns(strongest.hz)),
        show_ns(device_ns)
    )
}

fn tick_ns(hz: u32) -> f64 {
    1e9 / f64::from(hz)
}

/// Returns the share of the latencies at the [`TICKS`] of a rate, and in the fuller of the bands
/// below and above them.
fn shares_at_ticks(histograms: &[Histogram], ops: u64, hz: u32) -> AtTicks {
    let sum = |from: f64, to: f64| {
        let latencies_at_tick = |k: &u32| {
            let at = |part: f64| (f64::from(*k) * tick_ns(hz) * part) as u64;
            histograms.iter().map(|h| h.count_between(at(from), at(to))).fold(0, u64::saturating_add)
        };
        TICKS.iter().map(latencies_at_tick).fold(0, u64::saturating_add) as f64
    };
    let part = |n: f64| share(n, ops as f64);
    let (below, above) =
        (sum(1.0 - 3.0 * WITHIN.0, 1.0 - WITHIN.0), sum(1.0 + WITHIN.0, 1.0 + 3.0 * WITHIN.0));
    AtTicks { hz, part: part(sum(1.0 - WITHIN.0, 1.0 + WITHIN.0)), neighbours: part(below.max(above)) }
}

/// Two clocks are read one after the other. If their difference changes by at least this much, the machine slept. A reader that loses its
/// CPU in between continues within some tens of ms, and no machine sleeps and wakes in less than this time.
const ASLEEP_NS: u64 = 100_000_000;
/// Drift that the kernel's corrections (at most 500 ppm) and fathom's calibration (5 ppm) cannot explain.
const DRIFT_BIASED_PPM: f64 = 1_000.0;
/// Drift that changes rates by 1 %. A counter with a constant rate does not drift so much.
const DRIFT_VOID_PPM: f64 = 10_000.0;
/// A clock is expensive if reading it takes longer than this. A CPU counter takes some ten ns, a chip on the board a
/// microsecond or more.
pub const EXPENSIVE_CLOCK_PS: u64 = 1_000_000;
/// If reading an expensive clock takes more than this share of the median latency, the check reports it.
const EXPENSIVE_SHARE: Share = Share(0.05);
/// Kernel clocks that only advance with the tick.
const COARSE: &[&str] = &["jiffies", "refined-jiffies"];

pub(super) const BAD_CLOCK: Check = Check {
    id: CheckId::D13,
    name: "BAD_CLOCK",
    belief: "the clock is right",
    reads: "The clock of the time stamps, the cost of reading it (20,000 reads before the first run), its \
            drift against `CLOCK_MONOTONIC_RAW` over the session, the kernel's clock source, and \
            `CLOCK_BOOTTIME - CLOCK_MONOTONIC` at start and stop of each run, which grows while the machine \
            is suspended.",
    formula: formula!(
        "Invalid if the machine slept {asleep} or more in a run, if the clock drifted by more than {void} ppm \
         ({part}), or if the kernel's clock advances only with its tick. Biased if the drift is above \
         {biased} ppm, twice the kernel's largest correction. Also biased if reading the clock takes more \
         than {read} and more than {EXPENSIVE_SHARE} of the median latency.",
        asleep = Ns(ASLEEP_NS as f64),
        void = show_count(DRIFT_VOID_PPM),
        part = Share(DRIFT_VOID_PPM / 1e6),
        biased = show_count(DRIFT_BIASED_PPM),
        read = Ns(EXPENSIVE_CLOCK_PS as f64 / 1e3)
    ),
    provoke: "Suspend the machine during `fathom run --time 60s DIR` (`rtcwake -m mem -s 10`), or boot with \
              `clocksource=hpet tsc=unstable` and run `fathom run --rw randread --depth 1 DIR`. fathom's own \
              tests use made-up records instead.",
    fix: "Keep the machine awake (`systemd-inhibit fathom ...`), let the kernel use its time stamp counter \
          (`dmesg | grep -i tsc`), and measure again.",
    accept: "Do not accept it: no correction exists for a wrong clock. \
             `/sys/devices/system/clocksource/clocksource0/` shows the clock source.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_bad_clock),
    #[cfg(test)]
    fires: Some(|| slept(10_000_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let files = record.runs.iter_mut().flat_map(|r| &mut r.evidence).map(|s| &mut s.files);
        files.for_each(|f| drop(f.insert(SUSPENDED.into(), Err("Invalid argument (os error 22)".into()))));
        record
    },
};

fn check_bad_clock(case: &Case) -> Known<Answer> {
    let clock = &case.record.header.clock;
    let by_counter = clock.name == "tsc";
    let source = case.machine.map(|m| m.clocksource.clone());
    if let Some(Ok(name)) = source.as_ref().filter(|_| !by_counter)
        && COARSE.contains(&name.trim())
    {
        return finding!(
            Severity::Invalidates,
            evidence([]),
            "The kernel's clock ({}) advances only with its tick: it cannot measure latencies.",
            name.trim()
        );
    }
    let slept = slept_ns(case);
    if let Some(ns) = slept.as_ref().ok().copied().filter(|ns| *ns >= ASLEEP_NS) {
        return finding!(
            Severity::Invalidates,
            evidence([("slept_ns", ns as f64)]),
            "The machine slept for {} during a run: the times of this run mean nothing.",
            show_ns(ns as f64)
        );
    }
    let drift = drift_ppm(case, by_counter);
    if let Some(ppm) = drift.as_ref().ok().copied().flatten().filter(|p| p.abs() > DRIFT_BIASED_PPM) {
        let severity = if ppm.abs() > DRIFT_VOID_PPM { Severity::Invalidates } else { Severity::Biases };
        return finding!(
            severity,
            evidence([("drift_ppm", ppm)]),
            "The clock of the time stamps ran {ppm:.0} ppm off the kernel's clock: all times and rates are \
             off by as much."
        );
    }
    let (cost_ns, median) = (clock.cost_ps as f64 / 1e3, least_median_ns(case).ok());
    let part = median.map(|m| cost_ns / m.max(1.0));
    if let Some(part) = part.filter(|p| clock.cost_ps > EXPENSIVE_CLOCK_PS && *p > EXPENSIVE_SHARE) {
        return finding!(
            Severity::Biases,
            evidence([("clock_ns", cost_ns), ("share", part)]),
            "Reading the clock ({}) takes {}, {} of the median latency: each latency includes this.",
            clock.name,
            show_ns(cost_ns),
            show_share(part)
        );
    }
    slept?;
    let numbers = evidence([("clock_ns", cost_ns), ("drift_ppm", drift?.unwrap_or(f64::NAN))]);
    if !by_counter {
        source.ok_or("the record names no host")??;
    }
    holds("No fault of the clock was found, and the machine did not sleep during the runs.", numbers)
}

/// Returns the longest sleep in a run, in ns. The kernel's suspended time is the difference of two clocks read in
/// sequence, so it varies a little and may decrease.
fn slept_ns(case: &Case) -> Known<u64> {
    let suspended_ns = |ran: &CaseRun, moment| {
        let text = ran.snapshot(moment)?.text(SUSPENDED)?.trim();
        text.parse::<u64>().map_err(|_| format!("{SUSPENDED} is not a number: '{text}'"))
    };
    let slept_in_run = |ran: &CaseRun| {
        Ok(suspended_ns(ran, Moment::Stop)?.saturating_sub(suspended_ns(ran, Moment::Start)?))
    };
    let sleeps: Vec<u64> = case.runs.iter().map(slept_in_run).collect::<Known<_>>()?;
    sleeps.into_iter().max().ok_or_else(no_run)
}

/// Returns the drift of the CPU's counter in ppm, or `None` if fathom used the kernel's clock.
fn drift_ppm(case: &Case, by_counter: bool) -> Known<Option<f64>> {
    let end = case.record.end.as_ref();
    let end = end.ok_or("the session was not closed, so the drift of the clock is unknown")?;
    match end.clock_drift_ppm {
        None if by_counter => Err("the session was too short to measure the drift of the clock".into()),
        Some(ppm) if !ppm.is_finite() => Err("the drift of the clock is not a number".into()),
        drift => Ok(drift),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// A record in which all latencies are equal. `device_time_share` of them was spent inside the device, and tasks waited
/// for a CPU for the share `ready` of the time.
#[cfg(test)]
fn at_a_tick(latency_ns: u64, device_time_share: f64, ready: f64) -> Record {
    let latency_ns = Some(latency_ns);
    let fixture = Fixture { latency_ns, device_time_share, runs: 1, ..Fixture::honest() };
    let mut record = fixture.record();
    kernel_text::fixture(&mut record, kernel_text::CPU_PRESSURE_FILE, ready);
    record
}

#[test]
fn latencies_at_a_tick_bias_and_others_are_silent() {
    let at = |ns| TICK_QUANTISED.severity(&at_a_tick(ns, 0.01, 0.9));
    assert_eq!((at(4_000_000), at(8_050_000)), (Some(Severity::Biases), Some(Severity::Biases)));
    assert_eq!((at(4_400_000), at(1_500_000), at(180_000)), (None, None, None));
}

#[test]
fn a_slow_device_and_a_busy_worker_are_silent() {
    assert_eq!(TICK_QUANTISED.severity(&at_a_tick(4_000_000, 0.01, 0.1)), None);
    assert_eq!(TICK_QUANTISED.severity(&at_a_tick(4_000_000, 0.9, 0.9)), None);
}

#[test]
fn a_broad_distribution_is_silent() {
    let mut record = at_a_tick(4_000_000, 0.01, 0.9);
    for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.streams) {
        for kind in end.kinds.values_mut() {
            kind.latency.clear();
            (0..10_000_u64).for_each(|i| kind.latency.record(3_200_000 + i * 200));
        }
    }
    assert_eq!(TICK_QUANTISED.severity(&record), None);
    let few = Fixture { ops: 50, runs: 1, ..Fixture::honest() };
    assert!(TICK_QUANTISED.answer(&few.record()).is_err());
}

/// A record of a machine that slept `ns` in each run after the first.
#[cfg(test)]
fn slept(ns: u64) -> Record {
    let mut record = Fixture::honest().record();
    for snapshot in record.runs.iter_mut().skip(1).flat_map(|r| &mut r.evidence).skip(1) {
        snapshot.files.insert(SUSPENDED.into(), Ok(format!("{ns}\n")));
    }
    record
}

#[cfg(test)]
fn drifted(ppm: Option<f64>) -> Record {
    let mut record = Fixture::honest().record();
    record.end.as_mut().unwrap().clock_drift_ppm = ppm;
    record
}

#[test]
fn a_sleep_of_seconds_is_void_and_jitter_is_silent() {
    assert_eq!(BAD_CLOCK.severity(&slept(3_000_000_000)), Some(Severity::Invalidates));
    assert!(matches!(BAD_CLOCK.answer(&slept(20_000_000)), Ok(Answer::Holds(..))));
    let mut unsteady = slept(0);
    for snapshot in unsteady.runs.iter_mut().filter_map(|r| r.evidence.first_mut()) {
        snapshot.files.insert(SUSPENDED.into(), Ok("120\n".into()));
    }
    assert!(matches!(BAD_CLOCK.answer(&unsteady), Ok(Answer::Holds(..))), "two reads are never at once");
}

#[test]
fn drift_biases_or_is_void_and_unknown_drift_is_not_checked() {
    assert_eq!(BAD_CLOCK.severity(&drifted(Some(-2_000.0))), Some(Severity::Biases));
    assert_eq!(BAD_CLOCK.severity(&drifted(Some(20_000.0))), Some(Severity::Invalidates));
    assert!(matches!(BAD_CLOCK.answer(&drifted(Some(600.0))), Ok(Answer::Holds(..))));
    assert!(BAD_CLOCK.answer(&drifted(None)).is_err());
    let mut killed = Fixture::honest().record();
    killed.end = None;
    assert!(BAD_CLOCK.answer(&killed).is_err());
}

#[test]
fn an_expensive_clock_biases_and_a_coarse_clock_is_void() {
    let with = |cost_ps, latency_ns| {
        let mut record = Fixture { latency_ns: Some(latency_ns), ..Fixture::honest() }.record();
        record.header.clock.cost_ps = cost_ps;
        record
    };
    assert_eq!(BAD_CLOCK.severity(&with(1_500_000, 20_000)), Some(Severity::Biases));
    assert_eq!(BAD_CLOCK.severity(&with(1_500_000, 80_000)), None, "2 % of the median");
    assert_eq!(BAD_CLOCK.severity(&with(900_000, 10_000)), None, "below a microsecond it is D07's");
    let mut coarse = drifted(None);
    coarse.header.clock.name = "clock_monotonic".into();
    coarse.header.hosts[0].clocksource = Ok("jiffies\n".into());
    assert_eq!(BAD_CLOCK.severity(&coarse), Some(Severity::Invalidates));
    coarse.header.hosts[0].clocksource = Ok("kvm-clock\n".into());
    assert!(matches!(BAD_CLOCK.answer(&coarse), Ok(Answer::Holds(..))));
    coarse.header.hosts[0].clocksource = Err("no such file".into());
    assert!(BAD_CLOCK.answer(&coarse).is_err());
}
