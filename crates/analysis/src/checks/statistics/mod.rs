//! Group E: time and statistics.
//!
//! This file lists the checks of the group, and has helpers that several of them use.

mod latencies;
mod mean_of_rates;
mod open_loop;
pub(super) mod runs;
mod steadiness;
mod too_short;

use crate::case::Case;
use crate::checks::Check;
use crate::figures::steadiness::find_cliff;
use crate::figures::time_series::series_of_runs;
#[cfg(test)]
use model::job::Kind;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    steadiness::NOT_STEADY,
    steadiness::CLIFF,
    steadiness::WARMUP_IN_MEAN,
    steadiness::FEW_INDEPENDENT,
    runs::FEW_RUNS,
    runs::RUNS_DISAGREE,
    latencies::BIMODAL,
    latencies::TAIL_UNSUPPORTED,
    latencies::COORDINATED_OMISSION,
    open_loop::GENERATOR_LATE,
    open_loop::OVERLOADED,
    too_short::TOO_SHORT,
    too_short::FRESH_FLASH,
    mean_of_rates::MEAN_OF_RATES,
];

/// A measurement of this many seconds or more is long.
const LONG_S: f64 = 10.0;

/// Whether a measurement is long. Windows of ten seconds are measured as slightly less.
fn is_long(seconds: f64) -> bool {
    seconds >= LONG_S - 0.1
}

/// Whether a run has a step (E02). Then E01, E03, E07 and E09 do not apply: the two levels of such a run look like a drift, a warm-up,
/// two groups of latencies, or stalls.
fn has_step(case: &Case) -> bool {
    series_of_runs(case).is_ok_and(|all| find_cliff(&all).is_some())
}

/// A record with `rows` intervals over `seconds` seconds. `rate` maps the index of a run and the elapsed share of its time (0 to 1) to
/// operations per second. The totals match the intervals.
#[cfg(test)]
pub(crate) fn shaped(
    fixture: &crate::fixture::Fixture,
    rows: u64,
    seconds: u64,
    rate: impl Fn(u32, f64) -> f64,
) -> model::record::Record {
    let mut record = fixture.record();
    let kind = if fixture.read_percent == 0 { Kind::Write } else { Kind::Read };
    let span = seconds * 1_000_000_000;
    for run in &mut record.runs {
        let row = run.intervals[0].clone();
        let cell = row.cells[&kind];
        let length = span / rows;
        run.intervals.clear();
        let mut total = 0;
        for i in 0..rows {
            let share = (i as f64 + 0.5) / rows as f64;
            let ops = (rate(run.start.repeat, share) * length as f64 / 1e9).round() as u64;
            total += ops;
            let mut new = row.clone();
            (new.start_ns, new.end_ns) = (100_000_000 + i * length, 100_000_000 + (i + 1) * length);
            new.cells.insert(kind, model::record::Cell { ops, bytes: ops * 4096, ..cell });
            run.intervals.push(new);
        }
        let end = run.end.as_mut().unwrap();
        end.workers.iter_mut().for_each(|w| w.wall_ns = span + 100_000_000);
        end.at_ns = run.start.at_ns + span + 100_000_000;
        let (from, stop) = (run.evidence[0].at_ns, run.evidence[1].at_ns.max(end.at_ns));
        run.evidence[1].at_ns = stop.max(from + span + 100_000_000);
        let stream = &mut end.streams[0];
        stream.window_ns = span;
        let kinds = stream.kinds.get_mut(&kind).unwrap();
        (kinds.bytes, kinds.latency) = (total * 4096, model::histogram::Histogram::new());
        (0..total).for_each(|_| kinds.latency.record(fixture.latency_ns.unwrap_or(100_000)));
    }
    record
}

/// The honest record without intervals.
#[cfg(test)]
fn without_intervals() -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    record.runs.iter_mut().for_each(|r| r.intervals.clear());
    record
}

/// The rate of a replay follows its capture. The rate of a load that is switched on and off follows
/// the switch.
#[test]
fn checks_of_steadiness_skip_loads_that_change_by_design() {
    use model::finding::CheckId;
    for check in
        CHECKS.iter().filter(|c| [CheckId::E01, CheckId::E02, CheckId::E03, CheckId::E04].contains(&c.id))
    {
        let record = check.fires.unwrap_or_else(|| panic!("{} is never made to fire", check.name))();
        let with_on_off_load = |off_ns: u64| {
            let mut record = record.clone();
            let arrivals = model::job::Arrivals::OnOff { on_ns: 10_000_000, off_ns };
            record.header.plan.jobs[0].phases[0].streams[0].pace =
                model::job::Pace::Open { iops: 10_000.0, arrivals };
            record
        };
        let quick = check.severity(&with_on_off_load(10_000_000));
        assert!(check.severity(&record).is_some() && quick.is_some(), "{}", check.name);
        let mut replayed = record.clone();
        crate::figures::replay::make_replay(&mut replayed, model::job::ReplayPace::Timed, |_| {});
        for changing in [replayed, with_on_off_load(1_000_000_000)] {
            let answer = check.answer(&changing);
            assert!(matches!(answer, Ok(super::Answer::DoesNotApply)), "{}", check.name);
        }
    }
}
