//! Decides how the rate of a result behaved over time: one word, with its numbers. The checks on time use the same functions. The SNIA's
//! rule (`snia`) is printed next to the answer and does not change it.
//!
//! Within a run:
//! 1. Find the steps. They come first, because a step makes neighbours resemble each other so much that no line can be judged.
//! 2. Leave out the warm-up (MSER-5).
//! 3. Fit a line to the rest. The rate is STEADY only if the interval of its drift lies within the allowed drift. Otherwise it is UNPROVEN:
//!    no proof of change is not a proof of steadiness.
//!
//! Over runs: each run was prepared anew, so runs are never joined into one long series. The mean of their drifts counts, and a line is
//! fitted from the first run to the last with each run as one observation. Both must hold.

use crate::case::Case;
use crate::figures::iops;
use crate::figures::time_series::{courses, rows_of};
use model::Known;
use model::figures::{Estimate, Snia, State, Steadiness};
use model::units::{show_rate, show_share};
use stats::change::{Change, Step, change};
use stats::sample::mean;
use stats::series::{
    ByLength, Drift, FEWEST, FEWEST_RUNS, FEWEST_STEPS, Line, Series, drift, over_runs, warm_up, warm_ups,
};
use stats::steady_state;

/// Steps that matter. In a minute, a step of a twentieth is visible (the reference on change points has 5 %). A short run on a machine
/// with neighbours may lose a third for a while, so there only a halving counts.
pub(crate) const STEP_FROM: ByLength = ByLength { minute: 0.05, ten_seconds: 0.20, shorter: 0.50 };
/// Drift that is still allowed: 5 % over a minute or more; more in runs that are too short to prove so little.
pub(crate) const DRIFT_TO: ByLength = ByLength { minute: 0.05, ten_seconds: 0.10, shorter: 0.25 };
/// Drift that is steady, over a run and over all runs, however short they are.
const STEADY_TO: f64 = DRIFT_TO.minute;
/// Seconds of measuring in all below which nothing is called steady. A window may end a few ms early.
const STEADY_FROM_S: f64 = 59.5;
/// Seconds from which a drift is given by the minute: half of one, a few ms early or late.
const A_MINUTE_FROM_S: f64 = 29.5;
/// Runs needed to search for a step among them: four on each side.
const STEP_FROM_RUNS: usize = 8;
/// The most runs for such a search, whose time is quadratic.
const STEP_TO_RUNS: usize = 500;
/// Change over the last quarter of a run by that over the first below which it settles.
const SETTLES_BELOW: f64 = 0.5;
/// Times as long that are still worth advising.
const LONGER_AT_MOST: f64 = 20.0;

/// The steps in a run.
pub(crate) fn steps(course: &Series) -> Change {
    change(&course.rates, STEP_FROM.share_for(course))
}

/// Runs with steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cliff {
    /// Index of the run with the largest step.
    pub run: usize,
    /// Its steps, in the order of time.
    pub steps: Vec<Step>,
    /// How many runs have any.
    pub runs: usize,
}

/// The runs with steps; `None` without one.
pub(crate) fn cliff(courses: &[Series]) -> Option<Cliff> {
    let all: Vec<Cliff> = courses
        .iter()
        .enumerate()
        .map(|(run, course)| Cliff { run, steps: steps(course).steps().to_vec(), runs: 1 })
        .filter(|c| !c.steps.is_empty())
        .collect();
    let runs = all.len();
    let largest = all.into_iter().max_by(|a, b| a.largest().size().total_cmp(&b.largest().size()))?;
    Some(Cliff { runs, ..largest })
}

impl Cliff {
    /// The largest of the steps.
    pub(crate) fn largest(&self) -> Step {
        let largest = self.steps.iter().max_by(|a, b| a.size().total_cmp(&b.size()));
        largest.copied().unwrap_or(Step { at: 0, before: 0.0, after: 0.0 })
    }

    /// All levels: `20,000 IOPS until 30.0 s, 5,000 IOPS until 70.0 s and 1,000 IOPS after`.
    pub(crate) fn in_words(&self, course: &Series) -> String {
        let until = |s: &Step| format!("{} IOPS until {:.1} s", show_rate(s.before), course.second_of(s.at));
        let levels: Vec<String> = self.steps.iter().map(until).collect();
        let last = self.steps.last().map_or(0.0, |s| s.after);
        format!("{} and {} IOPS after", levels.join(", "), show_rate(last))
    }
}

/// The drifts within runs.
pub(crate) struct Drifts {
    /// The drift of each run with enough independent stretches, and the allowed drift.
    pub each: Vec<(Drift, f64)>,
    /// How many runs are still settling.
    settling: usize,
    /// How many runs there are.
    runs: usize,
}

impl Drifts {
    /// The drifts of runs without their warm-up.
    pub(crate) fn within(courses: &[Series]) -> Self {
        let drift_and_limit = |course: &Series| Some((drift(settled(course))?, DRIFT_TO.share_for(course)));
        Self {
            each: courses.iter().filter_map(drift_and_limit).collect(),
            settling: courses.iter().filter(|c| settles(c)).count(),
            runs: courses.len(),
        }
    }

    /// Whether most runs surely drift further than allowed, in one direction.
    pub(crate) fn exceed(&self) -> bool {
        self.most(|d, limit| d.exceeds(limit) && d.share < 0.0)
            || self.most(|d, limit| d.exceeds(limit) && d.share > 0.0)
    }

    /// Whether most runs were still settling when they ended.
    pub(crate) fn settle(&self) -> bool {
        2 * self.settling > self.runs
    }

    /// Whether most runs surely drift no further than allowed.
    pub(crate) fn hold(&self) -> bool {
        self.most(Drift::is_within)
    }

    fn most(&self, is: impl Fn(&Drift, f64) -> bool) -> bool {
        2 * self.each.iter().filter(|(d, limit)| is(d, *limit)).count() > self.runs
    }

    /// The mean drift within a run; `None` if a run has too few independent stretches.
    fn mean(&self) -> Option<Drift> {
        let n = self.each.len() as f64;
        let sum = |of: fn(&Drift) -> f64| self.each.iter().map(|(d, _)| of(d)).sum::<f64>();
        (self.runs > 0 && self.each.len() == self.runs)
            .then(|| Drift { share: sum(|d| d.share) / n, half: sum(|d| d.half * d.half).sqrt() / n })
    }
}

/// A series without its warm-up; all of it if it never settles, or little would remain.
fn settled(course: &Series) -> &[f64] {
    let rest = warm_up(&course.rates).and_then(|cut| course.rates.get(cut..));
    rest.filter(|r| r.len() >= FEWEST_STEPS).unwrap_or(&course.rates)
}

/// Whether a run has no steady part (MSER-5) and approaches a level all along: each quarter changes the rate less than the one before, in
/// one direction, and all of them more than allowed. A line cannot show that, since its residuals form a wave.
fn settles(course: &Series) -> bool {
    let n = course.rates.len();
    let quarter = |i: usize| mean(&course.rates[i * n / 4..(i + 1) * n / 4]);
    let levels: [f64; 4] = std::array::from_fn(quarter);
    let [first, second, third] = [0, 1, 2].map(|i| levels[i + 1] - levels[i]);
    let one_way = first * second > 0.0 && second * third > 0.0;
    let slower = second.abs() < first.abs() && third.abs() < second.abs().min(SETTLES_BELOW * first.abs());
    let far = (levels[3] - levels[0]).abs() > DRIFT_TO.share_for(course) * mean(&course.rates);
    one_way && slower && far && warm_up(&course.rates).is_none()
}

/// The answer for a case; `None` if a run has no series, the runs had different loads, or the load itself changes.
pub(crate) fn steadiness(case: &Case) -> Option<Steadiness> {
    let kept = |r: &crate::case::CaseRun| rows_of(r).next().is_some();
    let alike = case.runs.windows(2).all(|r| r[0].run.start.offered_iops == r[1].run.start.offered_iops);
    if case.runs.is_empty() || !alike || case.stream.load_changes() || !case.runs.iter().all(kept) {
        return None;
    }
    let rates = case.runs.iter().filter_map(iops).collect();
    Some(judge_steadiness(courses(case), rates, case.window_ns() / 1e9))
}

/// The answer for runs with these series and rates, with a total length in seconds.
pub(crate) fn judge_steadiness(courses: Known<Vec<Series>>, rates: Vec<f64>, seconds: f64) -> Steadiness {
    Observed::from_rates(courses, rates, seconds).answer()
}

/// The parts of the answer about the runs of a case.
struct Observed {
    courses: Known<Vec<Series>>,
    /// Operations per second of each run.
    rates: Vec<f64>,
    /// Length of all windows together.
    seconds: f64,
    cliff: Option<Cliff>,
    within: Drifts,
    over_runs: Option<Drift>,
}

impl Observed {
    fn from_rates(courses: Known<Vec<Series>>, rates: Vec<f64>, seconds: f64) -> Self {
        let all: &[Series] = courses.as_deref().unwrap_or_default();
        let (cliff, within) = (cliff(all), Drifts::within(all));
        let over_runs = over_runs(&rates);
        Self { courses, rates, seconds, cliff, within, over_runs }
    }

    fn all(&self) -> &[Series] {
        self.courses.as_deref().unwrap_or_default()
    }

    /// Length of one window in seconds.
    fn of_one_s(&self) -> f64 {
        self.seconds / self.rates.len().max(1) as f64
    }

    fn answer(&self) -> Steadiness {
        let (state, sentence) = self.decide();
        let stepped = state == State::Cliff;
        Steadiness {
            state,
            sentence,
            warm_up_s: match state {
                State::Cliff => 0.0,
                State::WarmUp => self.all().iter().map(Series::seconds).fold(0.0, f64::max),
                _ => warm_ups(self.all()).filter(|b| b.matters).map_or(0.0, |b| b.longest_s),
            },
            drift_per_minute: if stepped { None } else { self.per_minute() },
            snia: self.snia(),
        }
    }

    /// The order matters: see the head of this file.
    fn decide(&self) -> (State, String) {
        if let Some(words) = self.steps_within().or_else(|| self.step_between()) {
            return (State::Cliff, words);
        }
        if self.within.settle() {
            let share = mean(&self.all().iter().filter_map(whole_change).collect::<Vec<_>>());
            let sentence = format!(
                "{} the rate changed by about {}, the most of it at the beginning: no steady part was reached.",
                self.within_what(),
                show_share(share)
            );
            return (State::WarmUp, sentence);
        }
        if self.within.exceed() {
            let sentence = format!(
                "{} the rate {}: by more than {} (95 % confidence).",
                self.within_what(),
                self.how(),
                show_share(self.limit())
            );
            return (State::Drifting, sentence);
        }
        let (count, limit) = (self.rates.len(), DRIFT_TO.at(self.seconds));
        if let Some(over) = self.over_runs.filter(|d| d.exceeds(limit)) {
            let sentence = format!(
                "From the first of {count} runs to the last the rate {}: by more than {} (95 % confidence).",
                in_words(&over),
                show_share(limit)
            );
            return (State::Drifting, sentence);
        }
        match self.proof() {
            Ok(words) => (State::Steady, words),
            Err(words) => (State::Unproven, words),
        }
    }

    fn steps_within(&self) -> Option<String> {
        let cliff = self.cliff.as_ref()?;
        let levels = cliff.in_words(self.all().get(cliff.run)?);
        Some(match (self.rates.len(), cliff.runs) {
            (..=1, _) => format!("The rate was {levels}."),
            (all, with) => format!(
                "{with} of {all} runs {} steps; in run {} the rate was {levels}.",
                if with == 1 { "has" } else { "have" },
                cliff.run + 1
            ),
        })
    }

    fn step_between(&self) -> Option<String> {
        if !(STEP_FROM_RUNS..=STEP_TO_RUNS).contains(&self.rates.len()) {
            return None;
        }
        let found = change(&self.rates, STEP_FROM.at(self.seconds));
        let until = |s: &Step| format!("{} IOPS until run {}", show_rate(s.before), s.at);
        let levels: Vec<String> = found.steps().iter().map(until).collect();
        let last = found.steps().last()?.after;
        Some(format!(
            "From run to run the rate was {} and {} IOPS after.",
            levels.join(", "),
            show_rate(last)
        ))
    }

    /// The drift within a run, of all runs if all have one.
    fn how(&self) -> String {
        let typical = self.within.mean().or_else(|| self.within.each.first().map(|(d, _)| *d));
        typical.map_or_else(String::new, |d| in_words(&d))
    }

    /// The allowed drift within a run.
    fn limit(&self) -> f64 {
        self.all().first().map_or(STEADY_TO, |c| DRIFT_TO.share_for(c))
    }

    /// What is steady.
    ///
    /// # Errors
    /// What is missing for a proof, and what it would take.
    fn proof(&self) -> Result<String, String> {
        let runs = self.rates.len();
        self.courses.as_ref().map_err(|why| format!("Not established: {why}."))?;
        if self.seconds < STEADY_FROM_S {
            return Err(format!(
                "{} of measuring: judging steadiness needs at least one minute of data (--time {}).",
                self.how_long(),
                time(60.0 / runs.max(1) as f64)
            ));
        }
        let within = self.within.mean().ok_or_else(|| self.too_alike())?;
        if !within.is_within(STEADY_TO) {
            return Err(format!(
                "{} the rate {}: a drift of more than {} can be neither shown nor ruled out{}.",
                self.within_what(),
                in_words(&within),
                show_share(STEADY_TO),
                times_longer(&within).map_or_else(String::new, |by| format!(
                    "; runs of about {} would settle it",
                    time(by * self.of_one_s())
                ))
            ));
        }
        let steady = format!("{} the rate {}", self.within_what(), in_words(&within));
        if runs == 1 {
            return Ok(format!("{steady}: by less than {} (95 % confidence).", show_share(STEADY_TO)));
        }
        let Some(over) = self.over_runs else {
            return Err(format!(
                "{steady}; how it goes from run to run takes {FEWEST_RUNS} runs to say, and there are {runs} (--runs 5)."
            ));
        };
        if !over.is_within(STEADY_TO) {
            return Err(format!(
                "{steady}; from the first of {runs} runs to the last it {}, and a drift of more than {} \
                 can be neither shown nor ruled out{}.",
                in_words(&over),
                show_share(STEADY_TO),
                times_longer(&over).map_or_else(String::new, |by| format!(
                    "; about {:.0} runs would settle it",
                    (by * runs as f64).ceil()
                ))
            ));
        }
        Ok(format!(
            "{steady}, and from the first of {runs} runs to the last it {}: by less than {} (95 % \
             confidence).",
            in_words(&over),
            show_share(STEADY_TO)
        ))
    }

    /// Why no line could be judged: too few stretches are independent.
    fn too_alike(&self) -> String {
        let independent = |c: &Series| Line::through(settled(c)).map_or(0.0, |l| l.independent());
        let fewest = self.all().iter().map(independent).fold(f64::MAX, f64::min);
        let longer = FEWEST / fewest.max(0.1);
        format!(
            "Not shown: the rate goes in waves, and {} of it holds only {fewest:.1} stretches that are independent of one another; {FEWEST:.0} are \
             needed{}.",
            time(self.of_one_s()),
            if longer <= LONGER_AT_MOST {
                format!(" (--time {})", time(longer * self.of_one_s()))
            } else {
                String::new()
            }
        )
    }

    fn how_long(&self) -> String {
        match self.rates.len() {
            ..=1 => format!("{:.1} s", self.seconds),
            runs => format!("{runs} runs of {:.1} s are {:.1} s", self.of_one_s(), self.seconds),
        }
    }

    fn within_what(&self) -> String {
        let each = if self.rates.len() > 1 { "Within a run of" } else { "Within" };
        format!("{each} {:.1} s", self.of_one_s())
    }

    /// Of the drift within a run and that from run to run, the one that could be larger.
    fn per_minute(&self) -> Option<Estimate> {
        let one = self.of_one_s();
        let runs = self.rates.len() as f64;
        let of = |drift: Drift, seconds: f64| {
            let [value, half] = [drift.share, drift.half].map(|v| v * 60.0 / seconds);
            let interval = [value - half, value + half];
            (interval[0].is_finite() && interval[1].is_finite()).then_some(Estimate { value, interval })
        };
        let within = self.within.mean().filter(|_| one >= A_MINUTE_FROM_S).and_then(|d| of(d, one));
        // From the middle of the first run to that of the last.
        let over = self.over_runs.filter(|_| self.seconds >= A_MINUTE_FROM_S);
        let over = over.and_then(|d| of(d, (runs - 1.0) * one));
        let could_be = |e: &Estimate| e.interval[0].abs().max(e.interval[1].abs());
        within.into_iter().chain(over).max_by(|a, b| could_be(a).total_cmp(&could_be(b)))
    }

    fn snia(&self) -> Option<Snia> {
        match self.all() {
            [only] if self.rates.len() == 1 => steady_state::rule(&steady_state::rounds_of(only)),
            _ => steady_state::rule(&self.rates),
        }
    }
}

/// Change from the first quarter of a run to the last by its mean.
pub(crate) fn whole_change(course: &Series) -> Option<f64> {
    let quarter = course.rates.len() / 4;
    let (first, last) = (course.rates.get(..quarter)?, course.rates.get(course.rates.len() - quarter..)?);
    let mean_rate = mean(&course.rates);
    (mean_rate > 0.0).then(|| (mean(last) - mean(first)) / mean_rate)
}

/// `changed by -1.2 % (-2.0 % to -0.4 %)`: of the mean, with the 95 % interval.
fn in_words(drift: &Drift) -> String {
    // Rounded as it is shown, plus zero: nothing is "-0.0 %".
    let show = |share: f64| show_share((share * 1e3).round() / 1e3 + 0.0);
    let [low, high] = [drift.share - drift.half, drift.share + drift.half].map(show);
    format!("changed by {} ({low} to {high})", show(drift.share))
}

/// How many times longer the run has to be for the interval to lie within the allowed drift: the interval shrinks with the root of the
/// time. `None` if it never will.
fn times_longer(drift: &Drift) -> Option<f64> {
    let allowed = STEADY_TO - drift.share.abs();
    let factor = (drift.half / allowed).powi(2);
    (allowed > 0.0 && factor <= LONGER_AT_MOST).then_some(factor)
}

/// A time as it is typed.
fn time(seconds: f64) -> String {
    if seconds > 300.0 {
        format!("{:.0}m", (seconds / 60.0).ceil())
    } else {
        format!("{:.0}s", seconds.max(1.0).ceil())
    }
}

#[cfg(test)]
mod tests;
