//! D12: CPUs that save power while they wait for the storage. Checks the frequency governors, and compares the
//! wake-up time from the deepest sleep that pays off between two operations with the median latency.

use crate::checks::prelude::*;
use crate::figures::kernel_text::entries;
use model::evidence::{GOVERNORS, SLEEPS};

/// The governor that always requests the highest frequency.
const AT_FULL_CLOCK: &str = "performance";
/// A CPU enters a sleep state if it expects to stay there for about this many times the wake-up time. The
/// kernel's tables have ratios of target residency to exit latency between two and four.
const WORTH_SLEEPING: f64 = 3.0;
/// Share of the median that a wake-up may take before it is reported.
const WAKING_FROM: Share = Share(0.1);
/// Operations in flight per worker up to which a CPU has time to sleep between completions.
const LOW_DEPTH: f64 = 4.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::D12,
    name: "CLOCKING",
    belief: "the CPUs are awake and at full clock",
    reads: "`/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`, the exit latencies of the sleep states \
            in `/sys/devices/system/cpu/cpu0/cpuidle/`, and the median latency.",
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
    accept: "A note needs no --accept. Keep the setting if the machine will work like this, and compare only \
             with the same setting.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with(GOVERNORS, Ok("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: powersave\n"))),
    #[cfg(test)]
    blind: || with(GOVERNORS, Ok("")),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let machine = case.machine.ok_or("the record names no host")?;
    let governors = machine.fact(GOVERNORS)?;
    if governors.is_empty() {
        return not_checked(
            "the kernel does not show the frequency of the CPUs; in a virtual machine the host chooses it",
        );
    }
    let slower_governors: BTreeSet<&str> =
        entries(governors).map(|(_, g)| g).filter(|g| *g != AT_FULL_CLOCK).collect();
    let waking = machine.fact(SLEEPS).and_then(|sleeps| waking(case, sleeps));
    let costly_waking =
        waking.as_ref().ok().copied().flatten().filter(|(ns, median)| *ns >= WAKING_FROM.0 * median);
    let mut causes = Vec::new();
    if !slower_governors.is_empty() {
        let names: Vec<&str> = slower_governors.into_iter().collect();
        causes.push(format!("the governor {} chooses the frequency of the CPUs", names.join(" and ")));
    }
    if let Some((ns, median)) = costly_waking {
        causes.push(format!(
            "waking a CPU that sleeps between two operations takes about {} of the median of {}",
            show_ns(ns),
            show_ns(median)
        ));
    }
    let numbers = match waking.as_ref().ok().copied().flatten() {
        Some((ns, median)) => evidence([("waking_ns", ns), ("median_ns", median)]),
        None => evidence([]),
    };
    if causes.is_empty() {
        waking?;
        return holds("The CPUs run at full clock and do not sleep deeply.", numbers);
    }
    finding!(Severity::Note, numbers, "Power saving is part of these latencies: {}.", causes.join(", and "))
}

/// Returns the wake-up time in ns from the deepest sleep state that pays off between two operations, and the
/// median latency. `None` if operations leave no time to sleep or no state is cheap enough.
fn waking(case: &Case, sleeps: &str) -> Known<Option<(f64, f64)>> {
    let median = least_median_ns(case)?;
    if case.depth_mean()? / f64::from(case.stream.workers.max(1)) > LOW_DEPTH {
        return Ok(None);
    }
    let mut deepest = None;
    for (path, text) in entries(sleeps) {
        let us: f64 = text.parse().map_err(|_| format!("{path} is not a number: '{text}'"))?;
        let ns = us * 1e3;
        if ns.is_finite() && ns * WORTH_SLEEPING <= median {
            deepest = Some(ns.max(deepest.unwrap_or(0.0)));
        }
    }
    Ok(deepest.map(|ns| (ns, median)))
}

#[cfg(test)]
use crate::fixture::Fixture;

/// One operation at a time, 100 us each, on a machine with this fact.
#[cfg(test)]
fn with(fact: &str, text: Result<&str, &str>) -> model::record::Record {
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
fn wake_ups_above_a_tenth_of_the_median_are_a_note() {
    assert_eq!(CHECK.severity(&with(SLEEPS, Ok(&sleeps(10)))), Some(Severity::Note));
    assert!(matches!(CHECK.answer(&with(SLEEPS, Ok(&sleeps(2)))), Ok(Answer::Holds(..))));
    let mut deep = Fixture::honest().record();
    deep.header.hosts[0].facts.insert(SLEEPS.into(), Ok(sleeps(900)));
    assert!(matches!(CHECK.answer(&deep), Ok(Answer::Holds(..))), "a busy CPU does not sleep");
}

#[test]
fn a_governor_is_reported_even_if_sleep_states_are_unknown() {
    let two = "/a/cpu0: powersave\n/a/cpu1: powersave\n/a/cpu2: schedutil\n";
    let mut record = with(GOVERNORS, Ok(two));
    record.header.hosts[0].facts.insert(SLEEPS.into(), Err("Permission denied".into()));
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("powersave and schedutil"), "{}", f.sentence);
    assert!(CHECK.answer(&with(SLEEPS, Err("Permission denied"))).is_err());
    assert!(CHECK.answer(&with(SLEEPS, Ok("/a/state1/latency: soon\n"))).is_err());
}
