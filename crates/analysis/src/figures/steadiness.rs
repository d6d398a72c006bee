//! Decides how the rate of a result behaved over time: one state with its numbers. The checks of group E use the same functions. The
//! report shows the SNIA's rule (`snia`) next to the state; the rule does not change it.
//!
//! Within a run:
//! 1. Find the steps. They come first, because a step looks like autocorrelation, which
//!    hides every trend.
//! 2. Remove the warm-up (MSER-5).
//! 3. Fit a line to the rest. The rate is STEADY only if the interval of its drift is within the allowed drift. Otherwise it is UNPROVEN:
//!    no proof of change is not a proof of steadiness.
//!
//! Over runs: each run was prepared anew, so runs are never joined into one long series. Steps
//! between runs are found first. Then two drifts count: the mean of the drifts within runs, and a
//! line that is fitted from the first run to the last with each run as one observation. The rate is
//! STEADY only if both are within the allowed drift.

use crate::case::Case;
use crate::figures::iops;
use crate::figures::time_series::{intervals_of, series_of_runs};
use model::Known;
use model::figures::{Estimate, Snia, State, Steadiness};
use model::units::{show_rate, show_seconds, show_share};
use stats::change::{Change, Step, find_steps};
use stats::sample::mean;
use stats::series::{
    Drift, FEWEST_RUNS, FEWEST_STEPS, Line, MIN_INDEPENDENT, Series, ShareByLength, compare_warm_ups,
    find_drift, find_drift_over_runs, find_warm_up,
};
use stats::steady_state;

/// Minimum size of a step. In a minute, a step of 5 % is visible. A short run on a shared machine may lose a third of its rate for a while,
/// so there a step is at least a halving.
pub(crate) const MIN_STEP: ShareByLength = ShareByLength { minute: 0.05, ten_seconds: 0.20, shorter: 0.50 };
/// Largest drift that is allowed: 5 % over a minute or more, and more in shorter runs, which cannot prove 5 %.
pub(crate) const MAX_DRIFT: ShareByLength = ShareByLength { minute: 0.05, ten_seconds: 0.10, shorter: 0.25 };
/// Largest drift of a steady rate, over a run and over all runs, whatever their length.
const MAX_STEADY_DRIFT: f64 = MAX_DRIFT.minute;
/// Minimum measured time of a steady rate in seconds: a minute over all runs. A window may end a few ms early.
const MIN_STEADY_S: f64 = 59.5;
/// Minimum time in seconds for a drift per minute: half a minute. A window may end a few ms early.
pub(crate) const MIN_PER_MINUTE_S: f64 = 29.5;
/// Minimum number of runs for a step between runs: four on each side.
const MIN_RUNS_FOR_STEPS: usize = 8;
/// Maximum number of runs for a search for steps between runs. The search takes quadratic time.
const MAX_RUNS_FOR_STEPS: usize = 500;
/// A run settles if its rate changes towards the end by less than this share of the change at the beginning.
const SETTLING_SHARE: f64 = 0.5;
/// The longest advised run, as a multiple of the measured one.
const MAX_LONGER: f64 = 20.0;

pub(crate) fn find_steps_of_run(series: &Series) -> Change {
    find_steps(&series.rates, MIN_STEP.for_run(series))
}

/// Runs with steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cliff {
    /// Index of the run with the largest step.
    pub worst_run: usize,
    /// Steps of this run, in order of time.
    pub steps: Vec<Step>,
    /// Number of runs with steps.
    pub run_count: usize,
}

/// Finds the runs with steps; `None` if no run has a step.
pub(crate) fn find_cliff(all_series: &[Series]) -> Option<Cliff> {
    let in_run = |(run, series): (usize, &Series)| Cliff {
        worst_run: run,
        steps: find_steps_of_run(series).steps().to_vec(),
        run_count: 1,
    };
    let all: Vec<Cliff> = all_series.iter().enumerate().map(in_run).filter(|c| !c.steps.is_empty()).collect();
    let run_count = all.len();
    let largest = all.into_iter().max_by(|a, b| a.largest().size().total_cmp(&b.largest().size()))?;
    Some(Cliff { run_count, ..largest })
}

impl Cliff {
    /// Returns the largest of the steps.
    pub(crate) fn largest(&self) -> Step {
        let largest = self.steps.iter().max_by(|a, b| a.size().total_cmp(&b.size()));
        largest.copied().unwrap_or(Step { at: 0, before: 0.0, after: 0.0 })
    }

    /// Describes all levels: `20,000 IOPS until 30.0 s, 5,000 IOPS until 70.0 s and 1,000 IOPS after`.
    pub(crate) fn describe(&self, series: &Series) -> String {
        let until =
            |s: &Step| format!("{} IOPS until {}", show_rate(s.before), show_seconds(series.second_of(s.at)));
        let levels: Vec<String> = self.steps.iter().map(until).collect();
        let last = self.steps.last().map_or(0.0, |s| s.after);
        format!("{} and {} IOPS after", levels.join(", "), show_rate(last))
    }
}

/// The drift within a run.
pub(crate) struct RunDrift {
    /// The drift without the warm-up.
    pub drift: Drift,
    /// Mean operations per second without the warm-up.
    mean_iops: f64,
    /// The allowed drift.
    pub limit: f64,
}

/// The drifts within runs.
pub(crate) struct Drifts {
    /// The drifts of the runs with enough independent observations.
    pub each: Vec<RunDrift>,
    /// Number of runs that were still settling when they ended.
    settling: usize,
    /// Number of runs.
    runs: usize,
}

impl Drifts {
    /// Returns the drifts of runs without their warm-up.
    pub(crate) fn within(all_series: &[Series]) -> Self {
        let run_drift = |series: &Series| {
            let rates = without_warm_up(series);
            let (drift, mean_iops) = (find_drift(rates)?, mean(rates));
            Some(RunDrift { drift, mean_iops, limit: MAX_DRIFT.for_run(series) })
        };
        Self {
            each: all_series.iter().filter_map(run_drift).collect(),
            settling: all_series.iter().filter(|c| is_settling(c)).count(),
            runs: all_series.len(),
        }
    }

    /// Whether the drift of most runs, with its whole confidence interval, is larger than allowed and in one direction.
    pub(crate) fn most_exceed(&self) -> bool {
        self.holds_for_most(|d, limit| d.exceeds(limit) && d.share < 0.0)
            || self.holds_for_most(|d, limit| d.exceeds(limit) && d.share > 0.0)
    }

    /// Whether most runs were still settling when they ended.
    pub(crate) fn most_are_settling(&self) -> bool {
        2 * self.settling > self.runs
    }

    /// Whether the drift of most runs, with its whole confidence interval, is within the allowed drift.
    pub(crate) fn most_are_within(&self) -> bool {
        self.holds_for_most(Drift::is_within)
    }

    fn holds_for_most(&self, accepts: impl Fn(&Drift, f64) -> bool) -> bool {
        2 * self.each.iter().filter(|run| accepts(&run.drift, run.limit)).count() > self.runs
    }

    /// Returns the mean drift within a run; `None` if a run has too few independent observations.
    fn mean(&self) -> Option<Drift> {
        let count = self.each.len() as f64;
        let sum = |value: fn(&Drift) -> f64| self.each.iter().map(|run| value(&run.drift)).sum::<f64>();
        (self.runs > 0 && self.each.len() == self.runs).then(|| Drift {
            share: sum(|d| d.share) / count,
            half_width: sum(|d| d.half_width * d.half_width).sqrt() / count,
        })
    }
}

/// Returns a series without its warm-up. Returns the whole series if it never settles, or if little would remain.
fn without_warm_up(series: &Series) -> &[f64] {
    let rest = find_warm_up(&series.rates).and_then(|cut| series.rates.get(cut..));
    rest.filter(|r| r.len() >= FEWEST_STEPS).unwrap_or(&series.rates)
}

/// Whether a run approaches a level without reaching it: MSER-5 finds no steady part, the rate changes from quarter to quarter in the same
/// direction and ever less, and the whole change is more than allowed. A fitted line cannot show that, since its residuals form a wave.
fn is_settling(series: &Series) -> bool {
    let n = series.rates.len();
    let quarter = |i: usize| mean(&series.rates[i * n / 4..(i + 1) * n / 4]);
    let levels: [f64; 4] = std::array::from_fn(quarter);
    let [first, second, third] = [0, 1, 2].map(|i| levels[i + 1] - levels[i]);
    let one_way = first * second > 0.0 && second * third > 0.0;
    let slower = second.abs() < first.abs() && third.abs() < second.abs().min(SETTLING_SHARE * first.abs());
    let far = (levels[3] - levels[0]).abs() > MAX_DRIFT.for_run(series) * mean(&series.rates);
    one_way && slower && far && find_warm_up(&series.rates).is_none()
}

/// Judges the steadiness of a case. `None` without runs or without intervals of a run, and for a load that differs
/// between runs or changes over time.
pub(crate) fn steadiness(case: &Case) -> Option<Steadiness> {
    let has_intervals = |r: &crate::case::CaseRun| intervals_of(r).next().is_some();
    let alike = case.runs.windows(2).all(|r| r[0].run.start.offered_iops == r[1].run.start.offered_iops);
    if case.runs.is_empty() || !alike || case.stream.load_changes() || !case.runs.iter().all(has_intervals) {
        return None;
    }
    let rates = case.runs.iter().filter_map(iops).collect();
    Some(judge_steadiness(series_of_runs(case), rates, case.window_ns() / 1e9))
}

/// Judges runs with these series and rates, with a total length in seconds.
pub(crate) fn judge_steadiness(all_series: Known<Vec<Series>>, rates: Vec<f64>, seconds: f64) -> Steadiness {
    let all: &[Series] = all_series.as_deref().unwrap_or_default();
    let (cliff, within, over_runs) = (find_cliff(all), Drifts::within(all), find_drift_over_runs(&rates));
    Observations { all_series, rates, seconds, cliff, within, over_runs }.judge()
}

/// The observations about the runs of a case.
struct Observations {
    all_series: Known<Vec<Series>>,
    /// Operations per second of each run.
    rates: Vec<f64>,
    /// Length of all windows together.
    seconds: f64,
    cliff: Option<Cliff>,
    within: Drifts,
    over_runs: Option<Drift>,
}

impl Observations {
    fn all(&self) -> &[Series] {
        self.all_series.as_deref().unwrap_or_default()
    }

    /// Returns the length of one window in seconds.
    fn run_seconds(&self) -> f64 {
        self.seconds / self.rates.len().max(1) as f64
    }

    fn judge(&self) -> Steadiness {
        let (state, sentence) = self.decide();
        let stepped = state == State::Cliff;
        Steadiness {
            state,
            sentence,
            warm_up_s: match state {
                State::Cliff => 0.0,
                State::WarmUp => self.all().iter().map(Series::seconds).fold(0.0, f64::max),
                _ => compare_warm_ups(self.all()).filter(|b| b.matters).map_or(0.0, |b| b.longest_s),
            },
            drift_per_minute: if stepped { None } else { self.per_minute() },
            snia: self.snia(),
        }
    }

    /// Decides the state and its sentence. The first that applies: steps within or between runs, runs that never settle, a drift within
    /// runs, a drift over runs, a proof of a steady rate.
    fn decide(&self) -> (State, String) {
        if let Some(sentence) = self.steps_within().or_else(|| self.step_between()) {
            return (State::Cliff, sentence);
        }
        if self.within.most_are_settling() {
            let changes = self.all().iter().filter_map(whole_change);
            let share = mean(&changes.map(|change| change.share()).collect::<Vec<_>>());
            let sentence = format!(
                "{} the rate changed by about {}, mostly at the beginning: no steady part was reached.",
                self.describe_span(),
                show_share(share)
            );
            return (State::WarmUp, sentence);
        }
        if self.within.most_exceed() {
            let sentence = format!(
                "{} the rate {}: by more than {} (95 % confidence).",
                self.describe_span(),
                self.describe_drift(),
                show_share(self.max_drift())
            );
            return (State::Drifting, sentence);
        }
        let (count, limit) = (self.rates.len(), MAX_DRIFT.for_seconds(self.seconds));
        if let Some(over) = self.over_runs.filter(|d| d.exceeds(limit)) {
            let sentence = format!(
                "From the first of {count} runs to the last the rate {}: by more than {} (95 % confidence).",
                describe_change(&over),
                show_share(limit)
            );
            return (State::Drifting, sentence);
        }
        match self.prove_steady() {
            Ok(sentence) => (State::Steady, sentence),
            Err(sentence) => (State::Unproven, sentence),
        }
    }

    fn steps_within(&self) -> Option<String> {
        let cliff = self.cliff.as_ref()?;
        let levels = cliff.describe(self.all().get(cliff.worst_run)?);
        Some(match (self.rates.len(), cliff.run_count) {
            (..=1, _) => format!("The rate was {levels}."),
            (all, with) => format!(
                "{with} of {all} runs {} steps; in run {} the rate was {levels}.",
                if with == 1 { "has" } else { "have" },
                cliff.worst_run + 1
            ),
        })
    }

    fn step_between(&self) -> Option<String> {
        if !(MIN_RUNS_FOR_STEPS..=MAX_RUNS_FOR_STEPS).contains(&self.rates.len()) {
            return None;
        }
        let found = find_steps(&self.rates, MIN_STEP.for_seconds(self.seconds));
        let until = |s: &Step| format!("{} IOPS until run {}", show_rate(s.before), s.at);
        let levels: Vec<String> = found.steps().iter().map(until).collect();
        let last = found.steps().last()?.after;
        let levels = levels.join(", ");
        Some(format!("From run to run the rate was {levels} and {} IOPS after.", show_rate(last)))
    }

    /// Describes the mean drift within a run, or the drift of the first run that has one.
    fn describe_drift(&self) -> String {
        let typical = self.within.mean().or_else(|| self.within.each.first().map(|run| run.drift));
        typical.map_or_else(String::new, |d| describe_change(&d))
    }

    /// Returns the allowed drift within a run.
    fn max_drift(&self) -> f64 {
        self.all().first().map_or(MAX_STEADY_DRIFT, |c| MAX_DRIFT.for_run(c))
    }

    /// Returns the sentence that proves a steady rate.
    ///
    /// # Errors
    /// Why there is no proof, and what to type.
    fn prove_steady(&self) -> Result<String, String> {
        let runs = self.rates.len();
        self.all_series.as_ref().map_err(|why| format!("Not established: {why}."))?;
        if self.seconds < MIN_STEADY_S {
            return Err(format!(
                "{} of measuring: judging steadiness needs at least one minute of data (--time {}).",
                self.describe_length(),
                format_time(60.0 / runs.max(1) as f64)
            ));
        }
        let within = self.within.mean().ok_or_else(|| self.explain_unknown_drift())?;
        if !within.is_within(MAX_STEADY_DRIFT) {
            return Err(format!(
                "{} the rate {}: a drift of more than {} can be neither shown nor ruled out{}.",
                self.describe_span(),
                describe_change(&within),
                show_share(MAX_STEADY_DRIFT),
                times_longer(&within).map_or_else(String::new, |by| format!(
                    "; runs of about {} would decide it",
                    format_time(by * self.run_seconds())
                ))
            ));
        }
        let steady = format!("{} the rate {}", self.describe_span(), describe_change(&within));
        if runs == 1 {
            return Ok(format!("{steady}: by less than {} (95 % confidence).", show_share(MAX_STEADY_DRIFT)));
        }
        let Some(over) = self.over_runs else {
            return Err(format!(
                "{steady}; judging the change from run to run takes {FEWEST_RUNS} runs, and there are {runs} (--runs 5)."
            ));
        };
        if !over.is_within(MAX_STEADY_DRIFT) {
            return Err(format!(
                "{steady}; from the first of {runs} runs to the last it {}, and a drift of more than {} \
                 can be neither shown nor ruled out{}.",
                describe_change(&over),
                show_share(MAX_STEADY_DRIFT),
                times_longer(&over).map_or_else(String::new, |by| format!(
                    "; about {:.0} runs would decide it",
                    (by * runs as f64).ceil()
                ))
            ));
        }
        Ok(format!(
            "{steady}, and from the first of {runs} runs to the last it {}: by less than {} (95 % \
             confidence).",
            describe_change(&over),
            show_share(MAX_STEADY_DRIFT)
        ))
    }

    /// Explains why no drift is known: too few intervals are independent.
    fn explain_unknown_drift(&self) -> String {
        let independent =
            |c: &Series| Line::fit_rates(without_warm_up(c)).map_or(0.0, |l| l.count_independent());
        let fewest = self.all().iter().map(independent).fold(f64::MAX, f64::min);
        let longer = MIN_INDEPENDENT / fewest.max(0.1);
        format!(
            "The drift is unknown: the rate varies in waves, and {} of measuring contain only {fewest:.1} independent observations; {MIN_INDEPENDENT:.0} are needed{}.",
            format_time(self.run_seconds()),
            if longer <= MAX_LONGER {
                format!(" (--time {})", format_time(longer * self.run_seconds()))
            } else {
                String::new()
            }
        )
    }

    /// Describes the measured time: `60.0 s`, or `5 runs of 1.0 s are 5.0 s` for several runs.
    fn describe_length(&self) -> String {
        let [each, all] = [self.run_seconds(), self.seconds].map(show_seconds);
        match self.rates.len() {
            ..=1 => all,
            runs => format!("{runs} runs of {each} are {all}"),
        }
    }

    /// Begins a sentence about the time within a run: `Within 60.0 s`, or `Within a run of 60.0 s` for several runs.
    fn describe_span(&self) -> String {
        let each = if self.rates.len() > 1 { "Within a run of" } else { "Within" };
        format!("{each} {}", show_seconds(self.run_seconds()))
    }

    /// Returns the drift per minute. There may be two: the drift within a run of at least half a
    /// minute, and the drift from run to run over at least half a minute of all runs. Returns the
    /// one whose 95 % interval reaches further from 0; `None` if there is neither.
    fn per_minute(&self) -> Option<Estimate> {
        let one = self.run_seconds();
        let runs = self.rates.len() as f64;
        let by_minute = |drift: Drift, seconds: f64| {
            let [value, half] = [drift.share, drift.half_width].map(|v| v * 60.0 / seconds);
            let interval = [value - half, value + half];
            (interval[0].is_finite() && interval[1].is_finite()).then_some(Estimate { value, interval })
        };
        let within = self.within.mean().filter(|_| one >= MIN_PER_MINUTE_S).and_then(|d| by_minute(d, one));
        // The time from the middle of the first run to the middle of the last.
        let over = self.over_runs.filter(|_| self.seconds >= MIN_PER_MINUTE_S);
        let over = over.and_then(|d| by_minute(d, (runs - 1.0) * one));
        let could_be = |e: &Estimate| e.interval[0].abs().max(e.interval[1].abs());
        within.into_iter().chain(over).max_by(|a, b| could_be(a).total_cmp(&could_be(b)))
    }

    /// Applies the SNIA's rule to a single run divided into rounds, or to several runs, each as one
    /// round.
    fn snia(&self) -> Option<Snia> {
        match self.all() {
            [only] if self.rates.len() == 1 => {
                steady_state::apply_snia(&steady_state::divide_into_rounds(only))
            }
            _ => steady_state::apply_snia(&self.rates),
        }
    }
}

/// The change of the rate within a run, in operations per second.
pub(crate) struct RateChange {
    /// The rate at the start of the fitted line, or the mean rate of the first quarter.
    pub from: f64,
    /// The rate at the end of the fitted line, or the mean rate of the last quarter.
    pub to: f64,
    /// The mean rate of the run; for a fitted line, without the warm-up.
    pub mean: f64,
}

impl RateChange {
    /// Returns the change divided by the mean.
    pub(crate) fn share(&self) -> f64 {
        (self.to - self.from) / self.mean
    }
}

impl RunDrift {
    /// Returns the change along the fitted line, from the end of the warm-up to the end of the run.
    pub(crate) fn change(&self) -> RateChange {
        let end = |share: f64| self.mean_iops * (1.0 + share);
        RateChange {
            from: end(-self.drift.share / 2.0),
            to: end(self.drift.share / 2.0),
            mean: self.mean_iops,
        }
    }
}

/// Returns the change from the first quarter of a run to the last.
pub(crate) fn whole_change(series: &Series) -> Option<RateChange> {
    let quarter = series.rates.len() / 4;
    let (first, last) = (series.rates.get(..quarter)?, series.rates.get(series.rates.len() - quarter..)?);
    let change = RateChange { from: mean(first), to: mean(last), mean: mean(&series.rates) };
    (change.mean > 0.0).then_some(change)
}

/// Describes a drift, divided by the mean, with its 95 % interval: `changed by -1.2 % (-2.0 % to -0.4 %)`.
fn describe_change(drift: &Drift) -> String {
    // Round as printed and add zero, so that no share is printed as "-0.0 %".
    let show = |share: f64| show_share((share * 1e3).round() / 1e3 + 0.0);
    let [low, high] = [drift.share - drift.half_width, drift.share + drift.half_width].map(show);
    format!("changed by {} ({low} to {high})", show(drift.share))
}

/// Returns the factor by which a run must be longer for its interval to lie within the allowed drift. The interval
/// shrinks with the root of the time. `None` if that takes too long or never happens.
fn times_longer(drift: &Drift) -> Option<f64> {
    let allowed = MAX_STEADY_DRIFT - drift.share.abs();
    let factor = (drift.half_width / allowed).powi(2);
    (allowed > 0.0 && factor <= MAX_LONGER).then_some(factor)
}

/// Formats a time as a user types it.
fn format_time(seconds: f64) -> String {
    if seconds > 300.0 {
        format!("{:.0}m", (seconds / 60.0).ceil())
    } else {
        format!("{:.0}s", seconds.max(1.0).ceil())
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the state of runs with known rates.

    use crate::figures::steadiness::*;
    use stats::series::generate_series;

    /// Returns the steadiness of `runs` runs of `seconds`, whose rate depends on the run and on the share of its time
    /// that has passed. Each series has one value per second, but at least a hundred values.
    fn steadiness_of(
        runs: usize,
        seconds: f64,
        deviation: f64,
        rate: impl Fn(usize, f64) -> f64,
    ) -> Steadiness {
        let n = (seconds as usize).max(100);
        let series_of_run = |run: usize| {
            let noise = generate_series(n, deviation, 0.0, run as u64 + 7).into_iter().enumerate();
            let rates = noise.map(|(i, v)| 1000.0 * v * rate(run, i as f64 / n as f64)).collect();
            Series { from_ns: 0.0, step_ns: seconds * 1e9 / n as f64, rates }
        };
        let all: Vec<Series> = (0..runs).map(series_of_run).collect();
        let rates = all.iter().map(|c| mean(&c.rates)).collect();
        judge_steadiness(Ok(all), rates, seconds * runs as f64)
    }

    #[test]
    fn a_long_quiet_run_is_steady_with_its_drift_by_the_minute() {
        let s = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 + 0.01 * t);
        assert_eq!(s.state, State::Steady, "{}", s.sentence);
        let drift = s.drift_per_minute.unwrap();
        assert!(drift.interval[0] < 0.005 && drift.interval[1] > 0.005, "{drift:?}");
        assert!((drift.value - f64::midpoint(drift.interval[0], drift.interval[1])).abs() < 1e-12);
        assert!(s.sentence.starts_with("Within 120.0 s the rate changed by"), "{}", s.sentence);
        assert!(s.warm_up_s <= 0.0 && s.snia.is_some_and(|s| s.met && s.rounds == 5));
    }

    #[test]
    fn short_runs_are_unproven_and_report_the_needed_time() {
        for seconds in [0.3, 1.0, 5.0] {
            let s = steadiness_of(5, seconds, 0.01, |_, _| 1.0);
            assert_eq!(s.state, State::Unproven);
            assert!(s.sentence.contains("(--time 12s)"), "{}", s.sentence);
            assert_eq!(s.drift_per_minute, None, "{seconds} s do not show the drift of a minute");
            assert!(s.snia.is_some_and(|s| s.met), "the rule of the SNIA is not mixed with ours");
        }
        let none = judge_steadiness(Err("the run is too short for that".into()), vec![9.0], 0.1);
        assert_eq!(none.sentence, "Not established: the run is too short for that.");
    }

    #[test]
    fn noise_and_waves_report_how_much_longer_it_takes() {
        let noisy = steadiness_of(1, 120.0, 0.10, |_, _| 1.0);
        assert!(noisy.sentence.contains("neither shown nor ruled out; runs of about"), "{}", noisy.sentence);
        let waves = steadiness_of(1, 120.0, 0.01, |_, t| 1.0 + 0.3 * (t * 12.0).sin());
        assert!(
            waves.sentence.contains("varies in waves") && waves.sentence.contains("(--time "),
            "{}",
            waves.sentence
        );
        assert_eq!((noisy.state, waves.state), (State::Unproven, State::Unproven));
    }

    #[test]
    fn drift_from_run_to_run_counts() {
        let steady = steadiness_of(5, 60.0, 0.01, |_, _| 1.0);
        assert_eq!(steady.state, State::Steady, "{}", steady.sentence);
        assert!(steady.sentence.contains("from the first of 5 runs to the last"), "{}", steady.sentence);
        let falling = steadiness_of(5, 60.0, 0.01, |run, _| 1.0 - 0.03 * run as f64);
        assert_eq!(falling.state, State::Drifting, "{}", falling.sentence);
        assert!(falling.drift_per_minute.is_some_and(|d| d.interval[1] < 0.0), "{falling:?}");
        let two = steadiness_of(2, 60.0, 0.01, |_, _| 1.0);
        assert!(two.state == State::Unproven && two.sentence.contains("takes 3 runs"), "{}", two.sentence);
        let uneven = steadiness_of(5, 60.0, 0.01, |run, _| [1.0, 0.8, 1.2, 0.9, 1.1][run]);
        assert!(
            uneven.state == State::Unproven && uneven.sentence.contains("neither shown"),
            "{}",
            uneven.sentence
        );
        let used_up = steadiness_of(10, 6.0, 0.01, |run, _| if run < 5 { 3.0 } else { 1.0 });
        assert_eq!(used_up.state, State::Cliff, "{}", used_up.sentence);
        assert!(used_up.sentence.contains("IOPS until run 5 and"), "{}", used_up.sentence);
    }

    #[test]
    fn every_level_of_a_cliff_is_reported_without_a_drift() {
        let s = steadiness_of(1, 120.0, 0.02, |_, t| {
            if t < 0.25 {
                20.0
            } else if t < 0.6 {
                5.0
            } else {
                1.0
            }
        });
        assert_eq!((s.state, s.drift_per_minute), (State::Cliff, None), "{}", s.sentence);
        assert!(
            s.sentence.contains("IOPS until 30.0 s, ") && s.sentence.contains("IOPS until 72.0 s and "),
            "{}",
            s.sentence
        );
        let one = steadiness_of(5, 60.0, 0.02, |run, t| if run == 2 && t > 0.5 { 0.5 } else { 1.0 });
        assert!(one.sentence.starts_with("1 of 5 runs has steps; in run 3"), "{}", one.sentence);
    }

    #[test]
    fn a_steady_fall_is_a_drift_and_a_slowing_one_a_warm_up() {
        let falling = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 - 0.3 * t);
        assert_eq!(falling.state, State::Drifting, "{}", falling.sentence);
        let settling = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 + (-2.0 * t).exp());
        assert_eq!(settling.state, State::WarmUp, "{}", settling.sentence);
        assert!((settling.warm_up_s - 120.0).abs() < 1e-9);
        let warm = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 + (-12.0 * t).exp());
        assert_eq!(warm.state, State::Steady, "{}", warm.sentence);
        assert!((15.0..=60.0).contains(&warm.warm_up_s), "{}", warm.warm_up_s);
    }

    mod error_rates {
        //! Simulations with a known truth: how often the statistics of steadiness err.
        //!
        //! Every test run checks bounds. `cargo test --release -p fathom-io-analysis error_rates -- --ignored --nocapture` prints the table of
        //! `docs/how-it-works/statistics.md`. Series have one value a second. The noise is normal and autoregressive of order one: rho is the
        //! correlation of neighbours.

        use crate::figures::steadiness;
        use crate::figures::steadiness::MIN_STEP;
        use model::figures::State::{Cliff, Drifting, Steady, Unproven, WarmUp};
        use model::figures::{State, Steadiness};
        use stats::change::find_steps;
        use stats::intervals::half_width;
        use stats::sample::mean;
        use stats::series::{Noise, Series, find_drift_over_runs, generate_series};
        use stats::{intervals, steady_state};

        const STATES: [State; 5] = [Steady, Drifting, Cliff, WarmUp, Unproven];

        /// The rate at a second, without noise.
        type Rate = fn(f64) -> f64;

        /// A series around 1.0: noise times the rate.
        #[derive(Clone, Copy)]
        struct Scene {
            seconds: usize,
            deviation: f64,
            rho: f64,
            rate: Rate,
        }

        impl Scene {
            fn draw(&self, seed: u64) -> Vec<f64> {
                let mut values = generate_series(self.seconds, self.deviation, self.rho, seed);
                values.iter_mut().enumerate().for_each(|(i, v)| *v *= (self.rate)(i as f64));
                values
            }

            /// Returns the answer for one run.
            fn judge(&self, seed: u64) -> Steadiness {
                let rates = self.draw(seed);
                let all = vec![mean(&rates)];
                steadiness::judge_steadiness(
                    Ok(vec![Series { from_ns: 0.0, step_ns: 1e9, rates }]),
                    all,
                    self.seconds as f64,
                )
            }

            /// Returns how often each state is the answer, in the order of [`STATES`].
            fn states(&self, draws: u64) -> [f64; 5] {
                let mut counts = [0.0; 5];
                for seed in 0..draws {
                    let state = self.judge(seed).state;
                    STATES.iter().zip(&mut counts).filter(|(s, _)| **s == state).for_each(|(_, c)| *c += 1.0);
                }
                counts.map(|c| c / draws as f64)
            }

            /// Returns how often a step is found `within` seconds of the truth, and how often there is more than one
            /// step.
            fn step_at(&self, truth: usize, within: usize, draws: u64) -> [f64; 2] {
                let limit = MIN_STEP.for_seconds(self.seconds as f64);
                let found: Vec<Vec<usize>> = (0..draws)
                    .map(|seed| find_steps(&self.draw(seed), limit).steps().iter().map(|s| s.at).collect())
                    .collect();
                let hit = found.iter().filter(|at| at.iter().any(|a| a.abs_diff(truth) <= within)).count();
                let more = found.iter().filter(|at| at.len() > 1).count();
                [hit, more].map(|n| n as f64 / draws as f64)
            }
        }

        fn flat_scene(seconds: usize, deviation: f64, rho: f64) -> Scene {
            Scene { seconds, deviation, rho, rate: |_| 1.0 }
        }

        /// Draws `draws` runs, some of which get no interval. Returns the share of the intervals that contain the truth, the share of runs
        /// without an interval, and the mean half width of the intervals.
        fn within_a_run(n: usize, rho: f64, draws: u64) -> [f64; 3] {
            let given: Vec<(f64, f64)> = (0..draws)
                .filter_map(|seed| {
                    let values = generate_series(n, 0.05, rho, seed);
                    Some((mean(&values) - 1.0, half_width(&values)?))
                })
                .collect();
            let covers = given.iter().filter(|(off, half)| off.abs() <= *half).count() as f64;
            let count = given.len() as f64;
            [covers / count, 1.0 - count / draws as f64, mean(&given.iter().map(|g| g.1).collect::<Vec<_>>())]
        }

        /// Returns the rates of `count` runs, which vary around 1.0 by this deviation.
        fn runs(count: usize, deviation: f64, seed: u64) -> Vec<f64> {
            let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(77));
            (0..count).map(|_| (deviation * noise.normal()).exp()).collect()
        }

        /// Returns the share of the intervals over runs that contain the truth: of the geometric mean, and of the median.
        fn over_the_runs(count: usize, deviation: f64, draws: u64) -> [Option<f64>; 2] {
            let covers = |interval: &dyn Fn(&[f64]) -> Option<[f64; 2]>| {
                let given: Vec<[f64; 2]> =
                    (0..draws).filter_map(|seed| interval(&runs(count, deviation, seed))).collect();
                let hit = given.iter().filter(|i| i[0] <= 1.0 && i[1] >= 1.0).count();
                (!given.is_empty()).then(|| hit as f64 / given.len() as f64)
            };
            [
                covers(&|values| stats::intervals::mean(values)?.interval),
                covers(&|values| Some(intervals::median_of_runs(values)?.interval)),
            ]
        }

        /// Returns the rates of runs of a minute. Each run is slower than the one before by `share`, apart from noise.
        fn decaying(count: usize, share: f64, deviation: f64, seed: u64) -> Vec<f64> {
            let each = runs(count, deviation, seed);
            each.iter().enumerate().map(|(i, v)| v * (1.0 - share).powi(i as i32)).collect()
        }

        /// Draws `draws` sessions of `count` runs of a minute. The rates fall from run to run as in [`decaying`] and are flat within a run.
        /// Returns the share of sessions in each state, in the order of [`STATES`], and two more shares of sessions: the last five runs
        /// meet the SNIA's rule, and any five successive runs meet it.
        fn over_rounds(count: usize, share: f64, deviation: f64, draws: u64) -> ([f64; 5], [f64; 2]) {
            let (mut states, mut rule) = ([0.0; 5], [0.0; 2]);
            for seed in 0..draws {
                let rates = decaying(count, share, deviation, seed);
                let series_of_run = |(i, level): (usize, &f64)| Series {
                    from_ns: 0.0,
                    step_ns: 1e9,
                    rates: generate_series(60, 0.02, 0.0, seed * 100 + i as u64)
                        .iter()
                        .map(|v| v * level)
                        .collect(),
                };
                let answer = steadiness::judge_steadiness(
                    Ok(rates.iter().enumerate().map(series_of_run).collect()),
                    rates.clone(),
                    60.0 * count as f64,
                );
                STATES
                    .iter()
                    .zip(&mut states)
                    .filter(|(s, _)| **s == answer.state)
                    .for_each(|(_, c)| *c += 1.0);
                let any = (5..=count).any(|n| steady_state::apply_snia(&rates[..n]).is_some_and(|s| s.met));
                rule[0] += f64::from(u8::from(answer.snia.is_some_and(|s| s.met)));
                rule[1] += f64::from(u8::from(any));
            }
            (states.map(|c| c / draws as f64), rule.map(|c| c / draws as f64))
        }

        /// Returns the rate of a run that starts at twice its final rate and approaches that rate.
        fn warming<const SECONDS: u32>(at: f64) -> f64 {
            1.0 + (-at / f64::from(SECONDS)).exp()
        }

        #[test]
        fn intervals_within_a_run_hold_the_truth() {
            let [covers, withheld, _] = within_a_run(120, 0.0, 1500);
            assert!((0.92..=0.985).contains(&covers) && withheld < 0.01, "{covers} {withheld}");
            let [covers, ..] = within_a_run(120, 0.5, 1000);
            assert!(covers >= 0.92, "{covers}");
            // With a correlation this high, most intervals are withheld.
            let [_, withheld, _] = within_a_run(120, 0.95, 300);
            assert!(withheld >= 0.9, "{withheld}");
        }

        #[test]
        fn intervals_over_runs_hold_the_truth() {
            for count in [3, 5, 10] {
                let [Some(covers), median] = over_the_runs(count, 0.03, 4000) else { panic!("withheld") };
                assert!((0.935..=0.965).contains(&covers), "{count}: {covers}");
                assert!(median.is_none_or(|m| m >= 0.94), "{count}: {median:?}");
            }
        }

        #[test]
        fn cliffs_are_found_at_the_right_second() {
            let cases: [(f64, usize, usize, Rate); 3] = [
                (0.05, 75, 0, |at| if at < 75.0 { 1.0 } else { 1.0 / 3.0 }),
                (0.02, 80, 2, |at| if at < 80.0 { 1.0 } else { 0.94 }),
                (0.03, 80, 2, |at| if at < 80.0 { 1.0 } else { 0.90 }),
            ];
            for (deviation, at, off, rate) in cases {
                let [hit, more] = Scene { seconds: 120, deviation, rho: 0.0, rate }.step_at(at, off, 100);
                assert!(hit >= 0.95 && more <= 0.02, "{at} {deviation}: {hit} {more}");
            }
        }

        #[test]
        fn noise_is_no_cliff_and_quiet_noise_is_steady() {
            for (rho, deviation) in [(0.0, 0.02), (0.0, 0.1), (0.5, 0.05), (0.8, 0.1), (0.95, 0.1)] {
                let [steady, drifting, cliff, ..] = flat_scene(120, deviation, rho).states(100);
                assert!(
                    cliff <= if rho > 0.9 { 0.05 } else { 0.01 } && drifting <= 0.03,
                    "rho {rho}: {cliff} {drifting}"
                );
                assert!(deviation > 0.02 || steady >= 0.95, "{steady}");
            }
        }

        #[test]
        fn a_decay_of_two_percent_per_round_is_never_steady_although_the_snia_rule_passes() {
            for (count, deviation) in [(5, 0.002), (5, 0.005), (10, 0.005), (25, 0.005)] {
                let ([steady, ..], [met, any]) = over_rounds(count, 0.02, deviation, 12);
                assert!(steady <= 0.0, "{count} runs, {deviation}: {steady}");
                assert!(met >= 0.9 && any >= 0.9, "{count} runs, {deviation}: {met} {any}");
            }
        }

        #[test]
        fn a_warm_up_is_left_out_and_the_rest_is_steady() {
            let [steady, drifting, cliff, ..] =
                Scene { seconds: 120, deviation: 0.03, rho: 0.0, rate: warming::<10> }.states(100);
            assert!(steady >= 0.8 && drifting + cliff <= 0.05, "{steady} {drifting} {cliff}");
            let long = Scene { seconds: 120, deviation: 0.03, rho: 0.0, rate: warming::<60> }.states(60);
            assert!(long[0] <= 0.0 && long[3] >= 0.95, "{long:?}");
        }

        /// Number of simulated series per row of the tables.
        const DRAWS: u64 = 2000;

        #[test]
        #[ignore = "prints the tables of docs/how-it-works/statistics.md; takes a minute"]
        fn tables() {
            print_within_a_run();
            print_over_the_runs();
            print_steps();
            print_states();
            print_rounds();
            print_drift();
        }

        fn percent(share: f64) -> String {
            format!("{:.1}", 100.0 * share)
        }

        fn print_within_a_run() {
            println!(
                "| n | rho | covered, % of those given | withheld, % | mean half width, % |\n|---|---|---|---|---|"
            );
            for n in [60, 120] {
                for rho in [0.0, 0.5, 0.8, 0.95] {
                    let [covers, withheld, half] = within_a_run(n, rho, 10 * DRAWS);
                    println!(
                        "| {n} | {rho} | {} | {} | {} |",
                        percent(covers),
                        percent(withheld),
                        percent(half)
                    );
                }
            }
        }

        fn print_over_the_runs() {
            println!(
                "\n| runs | deviation | geometric mean covered, % | median covered, % |\n|---|---|---|---|"
            );
            for count in [3, 5, 6, 10, 20] {
                for deviation in [0.03, 0.3] {
                    let [of_mean, of_median] = over_the_runs(count, deviation, 10 * DRAWS);
                    let show = |v: Option<f64>| v.map_or("-".into(), percent);
                    println!("| {count} | {deviation} | {} | {} |", show(of_mean), show(of_median));
                }
            }
        }

        fn print_steps() {
            println!(
                "\n| step at 80 s of 120 | deviation | rho | found within 2 s, % | more than one, % |\n|---|---|---|---|---|"
            );
            let steps: [(&str, Rate); 3] = [
                ("-6 %", |at| if at < 80.0 { 1.0 } else { 0.94 }),
                ("-10 %", |at| if at < 80.0 { 1.0 } else { 0.90 }),
                ("to a third", |at| if at < 80.0 { 1.0 } else { 1.0 / 3.0 }),
            ];
            for (name, rate) in steps {
                for (deviation, rho) in [(0.02, 0.0), (0.03, 0.0), (0.05, 0.0), (0.05, 0.5), (0.1, 0.5)] {
                    let [hit, more] = Scene { seconds: 120, deviation, rho, rate }.step_at(80, 2, DRAWS);
                    println!("| {name} | {deviation} | {rho} | {} | {} |", percent(hit), percent(more));
                }
            }
        }

        fn print_states() {
            println!(
                "\n| one run | s | deviation | rho | STEADY | DRIFTING | CLIFF | WARM-UP | UNPROVEN |\n|---|---|---|---|---|---|---|---|---|"
            );
            let flat: Rate = |_| 1.0;
            let scenes: [(&str, usize, f64, f64, Rate); 20] = [
                ("flat", 120, 0.02, 0.0, flat),
                ("flat", 120, 0.05, 0.0, flat),
                ("flat", 120, 0.10, 0.0, flat),
                ("flat", 120, 0.03, 0.5, flat),
                ("flat", 120, 0.05, 0.5, flat),
                ("flat", 300, 0.05, 0.5, flat),
                ("flat", 120, 0.05, 0.8, flat),
                ("flat", 120, 0.05, 0.95, flat),
                ("flat", 120, 0.3, 0.95, flat),
                ("flat", 30, 0.02, 0.0, flat),
                ("to a third at 75 s", 120, 0.05, 0.0, |at| if at < 75.0 { 1.0 } else { 1.0 / 3.0 }),
                ("-6 % at 80 s", 120, 0.02, 0.0, |at| if at < 80.0 { 1.0 } else { 0.94 }),
                ("half at 40 s, a tenth at 80 s", 120, 0.05, 0.3, |at| {
                    [1.0, 0.5, 0.1][(at / 40.0) as usize % 3]
                }),
                ("double at 40 s, half at 80 s", 120, 0.05, 0.3, |at| {
                    [1.0, 2.0, 0.5][(at / 40.0) as usize % 3]
                }),
                ("warm-up, time 10 s", 120, 0.03, 0.0, warming::<10>),
                ("warm-up, time 20 s", 120, 0.03, 0.0, warming::<20>),
                ("warm-up, time 60 s", 120, 0.03, 0.0, warming::<60>),
                ("decay 2 % a minute", 120, 0.02, 0.0, |at| 1.0 - 0.02 * at / 60.0),
                ("decay 4 % a minute", 120, 0.02, 0.0, |at| 1.0 - 0.04 * at / 60.0),
                ("decay 10 % a minute", 120, 0.02, 0.0, |at| 1.0 - 0.10 * at / 60.0),
            ];
            for (name, seconds, deviation, rho, rate) in scenes {
                let states = Scene { seconds, deviation, rho, rate }.states(DRAWS / 2).map(percent);
                println!("| {name} | {seconds} | {deviation} | {rho} | {} |", states.join(" | "));
            }
        }

        fn print_rounds() {
            println!(
                "\n| runs of a minute | loss a round | deviation of runs | STEADY | DRIFTING | CLIFF | WARM-UP | UNPROVEN | SNIA met at the end | by any five |\n|---|---|---|---|---|---|---|---|---|---|"
            );
            for share in [0.0, 0.02] {
                for count in [3, 5, 10, 25] {
                    for deviation in [0.002, 0.01, 0.03] {
                        let (states, rule) = over_rounds(count, share, deviation, DRAWS / 10);
                        let (states, rule) = (states.map(percent).join(" | "), rule.map(percent).join(" | "));
                        println!("| {count} | {:.0} % | {deviation} | {states} | {rule} |", 100.0 * share);
                    }
                }
            }
        }

        fn print_drift() {
            println!("\n| runs | deviation | drift over runs covered, % |\n|---|---|---|");
            for count in [3, 5, 10] {
                for deviation in [0.01, 0.1] {
                    let covers = |seed| {
                        find_drift_over_runs(&runs(count, deviation, seed))
                            .is_some_and(|d| d.share.abs() <= d.half_width)
                    };
                    let hit =
                        (0..10 * DRAWS).filter(|seed| covers(*seed)).count() as f64 / (10 * DRAWS) as f64;
                    println!("| {count} | {deviation} | {} |", percent(hit));
                }
            }
        }
    }
}
