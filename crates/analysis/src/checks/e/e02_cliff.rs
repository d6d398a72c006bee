//! E02: a rate that stepped from one level to another within a run. Reports the levels and the time of the step,
//! and derives from the device's latency before and after whether the cause is in the device or above it.

use crate::checks::prelude::*;
use crate::figures::steadiness::{Cliff, STEP_FROM, cliff, steps};
use crate::figures::time_series::{Course, courses};
use stats::change::{Change, SURELY, Step};
use stats::series::Series;

/// Least size of a step that relabels the result: the mean is then a rate that the storage never had. A smaller step biases it.
const RENAMED_FROM: Share = Share(0.20);

pub(super) const CHECK: Check = Check {
    id: CheckId::E02,
    name: "CLIFF",
    belief: "the rate was one rate",
    reads: "fathom's own intervals (up to 32 a second). For the cause, the `stat` file of the topmost \
            device, read every half second during the run.",
    formula: formula!(
        "The split of a run whose sides differ most on a logarithmic scale (E-divisive) is a step if both \
         means and both medians differ: by {minute} in runs of a minute or more, {ten} from ten seconds on, \
         {shorter} below, and by at least {sure} + {more}/n standard errors of n steps, widened by the \
         correlation of neighbours, half of the change at once (false alarms on noise below 1 % in \
         simulations). Each level is searched again, so a burst with two cliffs has three levels. If most \
         runs have a step of {RENAMED_FROM} or more, the levels become the result's name; otherwise it is \
         biased. The device's mean latency before and after shows the cause, if its counters were read twice \
         on each side. If it changed by at least the square root of the factor of the rate, the cause is in \
         or below the device (its fast cache is full, garbage collection, heat, a cloud's credits). \
         Otherwise it is above (a cgroup limit, the CPU, the file system).",
        minute = Share(STEP_FROM.minute),
        ten = Share(STEP_FROM.ten_seconds),
        shorter = Share(STEP_FROM.shorter),
        sure = SURELY.0,
        more = SURELY.1
    ),
    provoke: "`fathom run --rw randread --time 10s --runs 1 DIR`, and after 5 s in another shell a limit on \
              its cgroup: `echo \"MAJ:MIN 1000\" > \
              /sys/fs/cgroup/blkio/.../blkio.throttle.read_iops_device`. On a drive with a fast cache: \
              `fathom run --rw write --bs 1m --size 100g --time 5m --runs 1 DIR`.",
    fix: "Quote each level separately instead of the mean: --warmup past the step for the lasting rate, \
          --time before it for the burst. `fathom show --explain FILE` prints the rate for each second.",
    accept: "Accept it if you want the mixture, such as for a job that runs once.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        super::shaped(
            &crate::fixture::Fixture::honest(),
            25,
            1,
            |_, t| if t < 0.5 { 20_000.0 } else { 1_000.0 },
        )
    }),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn evaluate(case: &Case) -> Known<Answer> {
    if case.stream.load_changes() {
        return Ok(Answer::DoesNotApply);
    }
    let all_series = courses(case)?;
    let Some(cliff) = cliff(&all_series) else {
        return if all_series.iter().any(|c| steps(c) == Change::Unclear) {
            Err("the rate changes within a run, but in a way that could be chance or a slow drift; a longer \
                 run would settle it"
                .into())
        } else {
            let least = all_series.first().map_or(0.0, |c| STEP_FROM.share_for(c));
            holds("The rate stayed on one level within each run.", evidence([("smallest_step_share", least)]))
        };
    };
    let (Some(ran), Some(series)) = (case.runs.get(cliff.run), all_series.get(cliff.run)) else {
        return Ok(Answer::DoesNotApply);
    };
    Ok(Answer::Finding(finding(case, ran, series, &cliff)))
}

fn finding(case: &Case, ran: &CaseRun, series: &Series, cliff: &Cliff) -> Detail {
    let step = cliff.largest();
    let second = series.second_of(step.at);
    let latencies = device_latencies(case, ran, series, cliff);
    let cause = cause(&step, &latencies);
    let (runs, runs_with_step) = (case.runs.len(), cliff.runs);
    // A name describes the result, so most of its runs must have a step.
    let named = step.size() >= RENAMED_FROM && 2 * runs_with_step > runs;
    let severity = if named { Severity::Rename } else { Severity::Biased };
    let runs_note =
        if runs > 1 { format!(" ({runs_with_step} of {runs} runs have such a step)") } else { String::new() };
    let levels = cliff.in_words(series);
    let [a, b] = latencies.unwrap_or([f64::NAN; 2]);
    detail!(
        severity,
        evidence([
            ("before_iops", step.before),
            ("after_iops", step.after),
            ("at_s", second),
            ("run", f64::from(ran.run.start.repeat)),
            ("steps", cliff.steps.len() as f64),
            ("runs_with_a_step", runs_with_step as f64),
            ("device_latency_before_ns", a),
            ("device_latency_after_ns", b),
        ]),
        "In run {} the rate was {levels}{runs_note}: the mean describes {}. {cause}",
        ran.run.start.repeat.saturating_add(1),
        if cliff.steps.len() == 1 { "neither" } else { "none of them" }
    )
    .relabelled(named.then_some(Rename::Condition(levels)))
}

/// Returns the topmost device's mean latency before and after the largest step, in ns. Samples across the step
/// belong to both sides and do not count.
fn device_latencies(case: &Case, ran: &CaseRun, series: &Series, cliff: &Cliff) -> Known<[f64; 2]> {
    if !case.has_storage() {
        return Err("the job uses no storage".into());
    }
    let tops = case.tops()?;
    case.alone_on(&tops)?;
    let device = Course::from_run(ran, &tops)?;
    let place = |step: usize| series.from_ns + series.step_ns * step as f64;
    let largest = cliff.largest().at;
    let before = cliff.steps.iter().rev().find(|s| s.at < largest).map_or(0.0, |s| place(s.at));
    let next = cliff.steps.iter().find(|s| s.at > largest).map_or(series.rates.len(), |s| s.at);
    let (at, end) = (place(largest), place(next));
    let mean = |from, to| {
        // An interval across the step shows the same latency for both sides.
        let seen = device
            .within(from, to)
            .ok_or("the device's counters were not read twice on each side of the step")?;
        seen.latency_ns.ok_or_else(|| "the device completed no request on one side of the step".to_owned())
    };
    Ok([mean(before, at)?, mean(at, end)?])
}

fn cause(step: &Step, latencies: &Known<[f64; 2]>) -> String {
    let [before, after] = match latencies {
        Ok(both) => *both,
        Err(why) => return format!("The place of the cause is unknown: {why}."),
    };
    // Halfway on a logarithmic scale between a device that did not change and one that explains the whole step.
    let (rate, device) = (
        (step.before / step.after.max(f64::MIN_POSITIVE)).ln(),
        (after / before.max(f64::MIN_POSITIVE)).ln(),
    );
    let is_in_device = if rate > 0.0 { device >= rate / 2.0 } else { device <= rate / 2.0 };
    let numbers = format!("{} before and {} after", show_ns(before), show_ns(after));
    match (is_in_device, rate > 0.0) {
        (true, true) => format!(
            "The device's own latency rose ({numbers}), so the cause is in it or below: a fast cache that \
             filled, garbage collection, heat, a cloud's credits."
        ),
        (true, false) => {
            format!("The device's own latency fell ({numbers}), so the cause is in it or below.")
        }
        (false, _) => format!(
            "The device's own latency did not follow ({numbers}), so the cause is above it: a cgroup limit, \
             the CPU, the file system."
        ),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use stats::series::flat;

#[cfg(test)]
fn falling(ms_after: f64) -> Detail {
    let ops = 10_000;
    let mut record = super::shaped(&Fixture { runs: 1, ops, ..Fixture::honest() }, 100, 10, |_, t| {
        if t < 0.55 { 2_000.0 } else { 100.0 }
    });
    crate::figures::time_series::look_inside(
        &mut record,
        |t| if t <= 0.55 { 0.04 } else { ms_after },
        |t| {
            if t <= 0.55 { t / 0.55 * 0.95 } else { 0.95 + (t - 0.55) / 9.0 }
        },
    );
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    f
}

#[test]
fn the_device_latency_decides_on_which_side_the_cause_is() {
    let above = falling(0.05);
    assert!(above.sentence.contains("2,000 IOPS until 5.5 s and 100 IOPS after"), "{}", above.sentence);
    assert!(above.sentence.contains("cause is above it"), "{}", above.sentence);
    assert!(matches!(above.renames, Some(Rename::Condition(ref c)) if c.contains("2,000 IOPS until 5.5 s")));
    assert!(falling(1.0).sentence.contains("in it or below"), "{}", falling(1.0).sentence);
}

#[test]
fn counters_across_the_step_give_no_cause() {
    // A step after 0.1 s, and the first sample after 0.5 s.
    let record = super::shaped(&Fixture { runs: 1, ops: 10_000, ..Fixture::honest() }, 100, 1, |_, t| {
        if t < 0.1 { 20_000.0 } else { 4_000.0 }
    });
    let mut sampled = record;
    crate::figures::time_series::look_inside(&mut sampled, |_| 0.05, |t| t);
    let Ok(Answer::Finding(f)) = CHECK.answer(&sampled) else { panic!("silent") };
    assert!(f.sentence.contains("is unknown: the device's counters were not read twice"), "{}", f.sentence);
}

#[test]
fn the_size_of_a_step_decides_the_severity() {
    let stepped = |seconds, after: f64| {
        super::shaped(&Fixture { runs: 1, ops: 100, ..Fixture::honest() }, 100, seconds, move |_, t| {
            let noise = flat(100, 0.02, 0.0, 5)[(t * 100.0) as usize];
            1_000.0 * noise * if t < 0.6 { 1.0 } else { after }
        })
    };
    assert_eq!(CHECK.severity(&stepped(2, 0.55)), None);
    assert_eq!(CHECK.severity(&stepped(2, 0.4)), Some(Severity::Rename));
    assert_eq!(CHECK.severity(&stepped(60, 0.88)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&stepped(60, 0.98)), None);
}

#[test]
fn two_steps_are_reported_with_three_levels() {
    let record = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, 1, |_, t| match t {
        t if t < 0.3 => 20_000.0,
        t if t < 0.6 => 9_000.0,
        _ => 2_000.0,
    });
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    let levels = "20,000 IOPS until 0.3 s, 9,000 IOPS until 0.6 s and 2,000 IOPS after";
    assert!(f.sentence.contains(levels) && f.sentence.contains("none of them"), "{}", f.sentence);
    assert_eq!((f.evidence["before_iops"].round(), f.evidence["steps"]), (9_000.0, 2.0));
}

#[test]
fn a_step_in_a_few_runs_biases_without_relabelling() {
    let rate = |run, t| if run == 3 && t > 0.5 { 1_000.0 } else { 20_000.0 };
    assert_eq!(CHECK.severity(&super::shaped(&Fixture::honest(), 25, 1, rate)), Some(Severity::Biased));
}

#[test]
fn a_step_without_device_counters_has_no_cause() {
    let record = super::shaped(&Fixture { stat_unreadable: true, ..Fixture::honest() }, 25, 1, |_, t| {
        if t < 0.5 { 20_000.0 } else { 1_000.0 }
    });
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("is unknown"), "{}", f.sentence);
}
