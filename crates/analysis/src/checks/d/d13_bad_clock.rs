//! D13: a clock that cannot time operations. Checks whether the machine slept during a run, whether the counter
//! drifted from the kernel's clock, and whether the clock is coarse or expensive to read.

use crate::checks::prelude::*;
use model::evidence::SUSPENDED;

/// Shortest sleep of the machine that is not an error of reading two clocks in sequence. A reader that loses its CPU
/// in between continues within some ten ms, and no machine sleeps and wakes in less than this time.
const ASLEEP_NS: u64 = 100_000_000;
/// Drift that the kernel's corrections (at most 500 ppm) and fathom's calibration (5 ppm) cannot explain.
const DRIFT_BIASED_PPM: f64 = 1_000.0;
/// Drift that changes rates by 1 %. A counter with a constant rate does not drift so much.
const DRIFT_VOID_PPM: f64 = 10_000.0;
/// Time that reading a clock may take. A CPU counter takes some ten ns, a chip on the board a microsecond or
/// more.
pub const EXPENSIVE_PS: u64 = 1_000_000;
/// Share of the median above which an expensive clock matters.
const EXPENSIVE_SHARE: Share = Share(0.05);
/// Kernel clocks that only advance with the tick.
const COARSE: &[&str] = &["jiffies", "refined-jiffies"];

pub(super) const CHECK: Check = Check {
    id: CheckId::D13,
    name: "BAD_CLOCK",
    belief: "the clock is right",
    reads: "The clock of the time stamps, the cost of reading it (20,000 reads before the first run), its \
            drift against `CLOCK_MONOTONIC_RAW` over the session, the kernel's clock source, and \
            `CLOCK_BOOTTIME - CLOCK_MONOTONIC` at start and stop of each run, which grows while the machine \
            is suspended.",
    formula: formula!(
        "Void if the machine slept {asleep} or more in a run, if the clock drifted by more than {void} ppm \
         ({part}), or if the kernel's clock advances only with its tick. Biased from {biased} ppm, twice the \
         kernel's largest correction, and if reading the clock takes more than {read} and more than \
         {EXPENSIVE_SHARE} of the median.",
        asleep = Ns(ASLEEP_NS as f64),
        void = show_count(DRIFT_VOID_PPM),
        part = Share(DRIFT_VOID_PPM / 1e6),
        biased = show_count(DRIFT_BIASED_PPM),
        read = Ns(EXPENSIVE_PS as f64 / 1e3)
    ),
    provoke: "Suspend the machine during `fathom run --time 60s DIR` (`rtcwake -m mem -s 10`), or boot with \
              `clocksource=hpet tsc=unstable` and run `fathom run --rw randread --depth 1 DIR`. fathom's own \
              tests use made-up records instead.",
    fix: "Keep the machine awake (`systemd-inhibit fathom ...`), let the kernel use its time stamp counter \
          (`dmesg | grep -i tsc`), and measure again.",
    accept: "Do not accept it: no correction exists for a wrong clock. \
             `/sys/devices/system/clocksource/clocksource0/` shows the clock source.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| slept(10_000_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let files = record.runs.iter_mut().flat_map(|r| &mut r.evidence).map(|s| &mut s.files);
        files.for_each(|f| drop(f.insert(SUSPENDED.into(), Err("Invalid argument (os error 22)".into()))));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let clock = &case.record.header.clock;
    let by_counter = clock.name == "tsc";
    let source = case.machine.map(|m| m.clocksource.clone());
    if let Some(Ok(name)) = source.as_ref().filter(|_| !by_counter)
        && COARSE.contains(&name.trim())
    {
        return finding!(
            Severity::Void,
            evidence([]),
            "The kernel's clock ({}) advances only with its tick: it cannot measure latencies.",
            name.trim()
        );
    }
    let slept = slept_ns(case);
    if let Ok(ns) = slept.as_ref().map(|ns| *ns)
        && ns >= ASLEEP_NS
    {
        return finding!(
            Severity::Void,
            evidence([("slept_ns", ns as f64)]),
            "The machine slept for {} during a run: the times of this run mean nothing.",
            show_ns(ns as f64)
        );
    }
    let drift = drift_ppm(case, by_counter);
    if let Some(ppm) = drift.as_ref().ok().copied().flatten().filter(|p| p.abs() > DRIFT_BIASED_PPM) {
        let severity = if ppm.abs() > DRIFT_VOID_PPM { Severity::Void } else { Severity::Biased };
        return finding!(
            severity,
            evidence([("drift_ppm", ppm)]),
            "The clock of the time stamps ran {ppm:.0} ppm off the kernel's: all times and rates are off by \
             as much."
        );
    }
    let (cost_ns, median) = (clock.cost_ps as f64 / 1e3, least_median_ns(case).ok());
    let part = median.map(|m| cost_ns / m.max(1.0));
    if let Some(part) = part.filter(|p| clock.cost_ps > EXPENSIVE_PS && *p > EXPENSIVE_SHARE) {
        return finding!(
            Severity::Biased,
            evidence([("clock_ns", cost_ns), ("share", part)]),
            "Reading the clock ({}) takes {}, {} of the median: each latency includes this.",
            clock.name,
            show_ns(cost_ns),
            show_share(part)
        );
    }
    slept?;
    let mut numbers = evidence([("clock_ns", cost_ns)]);
    numbers.extend(drift?.map(|ppm| ("drift_ppm".to_owned(), ppm)));
    if !by_counter {
        source.ok_or("the record names no host")??;
    }
    holds("The clock kept time, and the machine did not sleep.", numbers)
}

/// Returns the longest sleep in a run. The value is the difference of two clocks read in sequence, so it varies a
/// little and may decrease.
fn slept_ns(case: &Case) -> Known<u64> {
    let suspended_ns = |ran: &CaseRun, moment| {
        let text = ran.at(moment)?.text(SUSPENDED)?.trim();
        text.parse::<u64>().map_err(|_| format!("{SUSPENDED} is not a number: '{text}'"))
    };
    let slept_in_run = |ran: &CaseRun| {
        Ok(suspended_ns(ran, Moment::Stop)?.saturating_sub(suspended_ns(ran, Moment::Start)?))
    };
    let sleeps: Vec<u64> = case.runs.iter().map(slept_in_run).collect::<Known<_>>()?;
    sleeps.into_iter().max().ok_or_else(no_run)
}

/// Returns the drift of the counter, or `None` if the kernel's clock is used.
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

/// A record of a machine that slept `ns` in its second run.
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
    assert_eq!(CHECK.severity(&slept(3_000_000_000)), Some(Severity::Void));
    assert!(matches!(CHECK.answer(&slept(20_000_000)), Ok(Answer::Holds(..))));
    let mut unsteady = slept(0);
    for snapshot in unsteady.runs.iter_mut().filter_map(|r| r.evidence.first_mut()) {
        snapshot.files.insert(SUSPENDED.into(), Ok("120\n".into()));
    }
    assert!(matches!(CHECK.answer(&unsteady), Ok(Answer::Holds(..))), "two reads are never at once");
}

#[test]
fn drift_biases_or_is_void_and_unknown_drift_is_not_checked() {
    assert_eq!(CHECK.severity(&drifted(Some(-2_000.0))), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&drifted(Some(20_000.0))), Some(Severity::Void));
    assert!(matches!(CHECK.answer(&drifted(Some(600.0))), Ok(Answer::Holds(..))));
    assert!(CHECK.answer(&drifted(None)).is_err());
    let mut killed = Fixture::honest().record();
    killed.end = None;
    assert!(CHECK.answer(&killed).is_err());
}

#[test]
fn an_expensive_clock_biases_and_a_coarse_clock_is_void() {
    let with = |cost_ps, latency_ns| {
        let mut record = Fixture { latency_ns: Some(latency_ns), ..Fixture::honest() }.record();
        record.header.clock.cost_ps = cost_ps;
        record
    };
    assert_eq!(CHECK.severity(&with(1_500_000, 20_000)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&with(1_500_000, 80_000)), None, "2 % of the median");
    assert_eq!(CHECK.severity(&with(900_000, 10_000)), None, "below a microsecond it is D07's");
    let mut coarse = drifted(None);
    coarse.header.clock.name = "clock_monotonic".into();
    coarse.header.hosts[0].clocksource = Ok("jiffies\n".into());
    assert_eq!(CHECK.severity(&coarse), Some(Severity::Void));
    coarse.header.hosts[0].clocksource = Ok("kvm-clock\n".into());
    assert!(matches!(CHECK.answer(&coarse), Ok(Answer::Holds(..))));
    coarse.header.hosts[0].clocksource = Err("no such file".into());
    assert!(CHECK.answer(&coarse).is_err());
}
