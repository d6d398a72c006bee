//! D09: latencies that cluster at the kernel's scheduler tick although the device was much faster. Counts
//! latencies near one, two or three ticks, for every tick rate that kernels use, and compares them with
//! neighbouring bands.

use super::d08_runqueue_wait as d08;
use crate::checks::prelude::*;
use crate::figures::kernel_text;

/// Tick rates that kernels are built with. No file that every user may read names the rate in use.
const RATES_HZ: [u32; 4] = [100, 250, 300, 1000];
/// Multiples of the tick that are checked.
const TICKS: [u32; 3] = [1, 2, 3];
/// Largest distance of a latency from a tick: wide enough for the wake-up, narrow enough to be rare by chance.
const WITHIN: Share = Share(0.03);
/// Share of the operations at ticks above which the result is biased.
const BIASED_ABOVE: Share = Share(0.2);
/// Factor by which ticks must hold more latencies than neighbouring bands of the same width. A broad distribution
/// fills all bands alike.
const ABOVE_NEIGHBOURS: f64 = 3.0;
/// Share of a tick that a request may take in the device. A slower device does not wait for the tick.
const DEVICE_BELOW: f64 = 0.5;
/// Share of the time in which some task of the machine must have waited for a CPU: only then does the tick decide
/// which task runs next. The workers' own wait is not enough, because the kernel threads that complete an
/// operation wait too. With one busy loop on each CPU, 96 % of stable writes took one tick while their worker
/// waited for 1 % of its time.
const READY_FROM: Share = Share(0.2);
/// Fewest latencies for a share.
const LEAST_OPS: u64 = 100;

pub(super) const CHECK: Check = Check {
    id: CheckId::D09,
    name: "TICK_QUANTISED",
    belief: "latencies are those of the storage, not of the scheduler's tick",
    reads: "The latency histograms; the mean time of a request in `/sys/block/*/stat` of the top device; the \
            time that tasks of the machine waited for a CPU (`/proc/pressure/cpu`, or the workers' own wait \
            in `/proc/thread-self/schedstat` if that does not exist).",
    formula: formula!(
        "More than {BIASED_ABOVE} of the latencies are within {WITHIN} of one, two or three ticks of 10, 4, \
         3.33 or 1 ms, and {ABOVE_NEIGHBOURS} times as many as in the neighbouring bands, while a request \
         took less than {DEVICE_BELOW} ticks in the device and some task of the machine waited for a CPU in \
         at least {READY_FROM} of the time. A device that takes 4 ms itself does not fire. Below {LEAST_OPS} \
         latencies it is not checked."
    ),
    provoke: "for i in $(seq 0 $(($(nproc) - 1))); do taskset -c $i timeout 9 sh -c 'while :; do :; done' & done\n\
              nice -n 5 fathom run --rw randwrite --cache direct-dsync --depth 1 --time 2s --runs 1 .",
    fix: "Stop other users of the CPUs, or give the workers their own CPUs (--cpus).",
    accept: "Accept it if you want to measure a busy machine.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| at_a_tick(4_000_000, 0.01, 0.9)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

const NOT_AT_TICKS: &str = "Latencies do not cluster at the kernel's tick.";

/// Shares of the latencies at one tick rate.
struct AtTicks {
    hz: u32,
    part: f64,
    neighbours: f64,
}

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let total = case.device()?.total();
    let histograms: Vec<Histogram> = Kind::ALL.iter().filter_map(|k| case.latency(*k)).collect();
    let ops = histograms.iter().map(Histogram::count).fold(0, u64::saturating_add);
    if ops < LEAST_OPS {
        return Err(format!("{ops} operations are too few to see whether they cluster at a tick"));
    }
    let device_ns = share(total.ms as f64 * 1e6, total.ios as f64);
    let is_much_faster = |hz: &u32| device_ns < DEVICE_BELOW * tick_ns(*hz);
    let candidates = RATES_HZ.into_iter().filter(is_much_faster).map(|hz| at_ticks(&histograms, ops, hz));
    let strongest = candidates
        .filter(|g| g.part > BIASED_ABOVE && g.part > ABOVE_NEIGHBOURS * g.neighbours)
        .max_by(|a, b| a.part.total_cmp(&b.part));
    let numbers = evidence([("device_ns", device_ns)]);
    let Some(strongest) = strongest else { return holds(NOT_AT_TICKS, numbers) };
    // All operations of a busy worker may take 3 ms by themselves. A tick matters only to a task that waits for a
    // CPU.
    if kernel_text::waited(case, kernel_text::CPU).or_else(|_| d08::waited(case))? < READY_FROM {
        return holds(NOT_AT_TICKS, numbers);
    }
    finding!(
        Severity::Biased,
        evidence([
            ("tick_hz", f64::from(strongest.hz)),
            ("at_ticks_share", strongest.part),
            ("beside_share", strongest.neighbours),
            ("device_ns", device_ns),
        ]),
        "{} of the latencies are at the kernel's tick of {} or a multiple, although a request took only {} \
         in the device.",
        show_share(strongest.part),
        show_ns(tick_ns(strongest.hz)),
        show_ns(device_ns)
    )
}

fn tick_ns(hz: u32) -> f64 {
    1e9 / f64::from(hz)
}

/// Returns the share of the latencies at the first ticks, and in the fuller of the bands below and above.
fn at_ticks(histograms: &[Histogram], ops: u64, hz: u32) -> AtTicks {
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

/// A record in which all latencies are equal, with this share of them inside the device and tasks that waited
/// this share of the time for a CPU.
#[cfg(test)]
fn at_a_tick(latency_ns: u64, device_time_share: f64, ready: f64) -> model::record::Record {
    let latency_ns = Some(latency_ns);
    let fixture = crate::fixture::Fixture {
        latency_ns,
        device_time_share,
        runs: 1,
        ..crate::fixture::Fixture::honest()
    };
    let mut record = fixture.record();
    kernel_text::fixture(&mut record, kernel_text::CPU, ready);
    record
}

#[test]
fn latencies_at_a_tick_bias_and_others_are_silent() {
    let at = |ns| CHECK.severity(&at_a_tick(ns, 0.01, 0.9));
    assert_eq!((at(4_000_000), at(8_050_000)), (Some(Severity::Biased), Some(Severity::Biased)));
    assert_eq!((at(4_400_000), at(1_500_000), at(180_000)), (None, None, None));
}

#[test]
fn a_slow_device_and_a_busy_worker_are_silent() {
    assert_eq!(CHECK.severity(&at_a_tick(4_000_000, 0.01, 0.1)), None);
    assert_eq!(CHECK.severity(&at_a_tick(4_000_000, 0.9, 0.9)), None);
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
    assert_eq!(CHECK.severity(&record), None);
    let few = crate::fixture::Fixture { ops: 50, runs: 1, ..crate::fixture::Fixture::honest() };
    assert!(CHECK.answer(&few.record()).is_err());
}
