//! Reports a sweep: the fastest setting of a grid, the cheapest one that is as fast, the knees, and deductions from the other cells.
//!
//! 1. [`replay_search`] replays the runs through [`crate::strategy::sweep`], which chose the cells while measuring.
//! 2. [`decide_race`] judges each work: a winner, a tie, or no answer.
//! 3. A grid whose cells were measured in order has no winner, but rounds and its own table ([`sweep_in_order`]).

use super::{Conclusion, GatedResult, Question, Subject};
use crate::case::{Case, CaseRun};
use crate::checks::evidence;
use crate::findings::CaseAnswers;
use crate::runs::{CellRun, cell_runs};
use crate::strategy::sweep::{BestCellSearch, FEWEST_NOISE_PAIRS, OrderedSweep, Race, RacingCell, Rivals};
use crate::threshold::CANNOT_TELL_ABOVE;
use crate::verdict::{Judged, OTHER_LOAD_GROUP, ReasonedVerdict, ReportHead};
use model::figures::Estimate;
use model::finding::CheckId;
use model::job::Pattern;
use model::plan::Role;
use model::record::{Record, RunEnding};
use model::report::{AnswerWord, Deduction, Headline, Measured, ReportAnswer, Verdict};
use model::spec::axes::{AXES, Scale};
use model::study::Studied;
use model::sweep::{
    BaselineLoss, CellFigures, Chosen, Grid, IN_ORDER, Knee, Measure, Reference, Rounds, Search, Setting,
    Skipped, Sweep, SweptTarget, Until, Work, least_iops,
};
use model::units::{MIB, show_block, show_bytes, show_counted, show_rate, show_share};
use stats::comparison::Shift;
use stats::{intervals, sample};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Above this standard deviation between runs, as a share, single runs are too noisy to show the effect of an axis.
const MAX_NOISE: f64 = 0.1;

/// Minimum number of runs of the reference cell for a line through the rates of these runs.
const FEWEST_REFERENCE_RUNS: usize = 4;

impl Question for Grid {
    fn conclude(&self, judged: &Judged) -> Studied {
        Box::new(build_sweep(judged.record, self, judged.answered)).into()
    }
}

impl Conclusion for Sweep {
    /// Returns the results that the conclusions depend on, each once.
    fn quoted<'m>(&self, results: &'m [Measured]) -> Vec<&'m Measured> {
        let only = || self.works.iter().filter_map(|w| self.only_cell(&w.name));
        let cells = || self.winner.values().chain(self.cheapest.values()).chain(only());
        // A job with several streams has several results, and the cell's index is that of the first.
        let first =
            |r: &Measured| cells().filter_map(|c| results.get(c.result?)).any(|first| first.job == r.job);
        results.iter().filter(|r| self.is_in_order() || first(r)).collect()
    }

    /// Returns the head of the report, about the best cell. Findings about other cells only explain why those cells are
    /// not quoted.
    fn head(&self, judged: &Judged, quoted: &[&Measured]) -> ReportHead {
        let first = quoted_cell(self, judged.results).and_then(|cell| judged.results.get(cell.result?));
        let mut head = judged.head_about(build_headline(self, judged.results), first, quoted);
        if first.is_none() {
            let none = if self.is_in_order() { "No cell was measured." } else { "The grid has no cell." };
            let why = self.works.first().map_or(none, |work| work.sentence.as_str());
            head.verdict = ReasonedVerdict::new(Verdict::Invalid, why.into());
        }
        if let (Verdict::Valid, Some(why)) = (head.verdict.verdict, why_unsteady(self)) {
            head.verdict = ReasonedVerdict::new(Verdict::Suspect, why);
        }
        head
    }

    /// Returns the best setting of the first work, and how certain it is; `None` if the sweep had no choice to make.
    fn answer(&self) -> Option<ReportAnswer> {
        let work = self.works.first()?;
        let word = match work.chosen {
            Chosen::Fastest => AnswerWord::Fastest,
            Chosen::Tied => AnswerWord::Tied,
            Chosen::CannotTell => AnswerWord::CannotTell,
            Chosen::NoChoice => return None,
        };
        let name = |cell: &CellFigures| name_setting(&cell.setting);
        let best = self.winner.get(&work.name);
        let value = |cell: &CellFigures| {
            cell.value(work.measure).map_or_else(String::new, |v| format!(": {}", work.measure.show(v)))
        };
        let named = best.map_or_else(String::new, |cell| format!("{}{}; ", name(cell), value(cell)));
        let cheapest = self.cheapest.get(&work.name).filter(|c| best.is_some_and(|b| b.setting != c.setting));
        let cheapest = cheapest
            .map_or_else(String::new, |c| format!(" The cheapest equally fast setting is {}.", name(c)));
        Some(ReportAnswer { word, sentence: format!("{}: {named}{}{cheapest}", work.name, work.sentence) })
    }

    /// Returns the winner of each work with the runs that its figures use, or every cell of a grid
    /// without winners.
    fn subject(&self, record: &Record, answered: &[CaseAnswers]) -> Subject<'_> {
        let every =
            || self.cells.iter().filter_map(|cell| Some(GatedResult::with_all_runs(cell.result?))).collect();
        let plan = &record.header.plan;
        let Some(grid) = plan.study.grid().filter(|_| !self.winner.is_empty()) else {
            return Subject::Results(every());
        };
        let search = replay_search(record, grid, &cell_runs(record));
        let winners = search.races.iter().filter_map(|race| {
            let winner = race.winner()?;
            let result = answered.iter().position(|a| a.case.job_index == winner.job)?;
            Some(GatedResult { result, cell_runs: Some(winner.figure_runs().to_vec()) })
        });
        Subject::Results(winners.collect())
    }

    /// Returns the size from which random offsets cost nothing, and the effect of the position. Single cells have no
    /// deductions.
    fn deduce(&self, _judged: &Judged) -> Vec<Deduction> {
        deduce(self)
    }
}

/// Builds the report's part about the grid.
fn build_sweep(record: &Record, grid: &Grid, answered: &[CaseAnswers]) -> Sweep {
    if let Search::InOrder(until) = grid.search {
        return sweep_in_order(record, grid, until, answered);
    }
    let runs = cell_runs(record);
    let search = replay_search(record, grid, &runs);
    let result_of = |job: usize| answered.iter().position(|a| a.case.job_index == job);
    let voided = |job: usize| {
        let answers = answered.get(result_of(job)?)?;
        invalidating_checks(answers).next().map(|_| answers)
    };
    let racing_cells = || search.races.iter().flat_map(|race| &race.cells);
    let cells = grid.cells.iter().map(|cell| {
        let racing = racing_cells().find(|racing| racing.job == cell.job);
        cell_figures(&cell.setting, racing, result_of(cell.job))
    });
    let cells: Vec<CellFigures> = cells.collect();
    let figures_of = |racing: &RacingCell| {
        Some(cell_figures(grid.setting(racing.job)?, Some(racing), result_of(racing.job)))
    };
    let chosen_cells = |pick: fn(&Race) -> Option<&RacingCell>| -> BTreeMap<String, CellFigures> {
        let sound = |race: &&Race| race.winner().is_none_or(|winner| voided(winner.job).is_none());
        search
            .races
            .iter()
            .filter(sound)
            .filter_map(|r| Some((r.work.clone(), figures_of(pick(r)?)?)))
            .collect()
    };
    let budget_seconds = match grid.search {
        Search::Adaptive { budget_ns } => Some(budget_ns as f64 / 1e9),
        Search::Exhaustive | Search::InOrder(_) => None,
    };
    Sweep {
        search: if budget_seconds.is_some() { "adaptive" } else { "exhaustive" }.into(),
        preset: grid.preset.clone(),
        seconds: search.spent_ns() as f64 / 1e9,
        budget_seconds,
        tolerance: grid.tolerance,
        skipped: grid.skipped.clone(),
        winner: chosen_cells(|race| race.winner().filter(|_| race.cells.len() > 1)),
        cheapest: chosen_cells(|race| race.cheapest_equal().filter(|_| race.cells.len() > 1)),
        works: search
            .races
            .iter()
            .map(|r| {
                withhold_invalid_winner(
                    build_work(grid, &search, r, &cells, figures_of),
                    r.winner().and_then(|w| voided(w.job)),
                )
            })
            .collect(),
        reference: search.reference().and_then(|job| build_reference(grid, job, &runs)),
        cells,
        target: None,
        rounds: None,
    }
}

/// Leaves out the runs of the race if the figures of a cell come from fresh runs, so that findings and figures are about
/// the same runs.
pub(crate) fn leave_out_race(record: &Record, cases: &mut [Case]) {
    let Some(grid) = record.header.plan.study.grid().filter(|g| !matches!(g.search, Search::InOrder(_)))
    else {
        return;
    };
    let search = replay_search(record, grid, &cell_runs(record));
    let racing_cells = search.races.iter().flat_map(|race| race.cells.iter().chain(&race.baselines));
    let first_runs: BTreeMap<usize, usize> =
        racing_cells.map(|racing| (racing.job, racing.first_figure_run())).collect();
    for case in cases {
        let first = first_runs.get(&case.job_index).copied().unwrap_or(0);
        let is_counted = |run: &CaseRun| run.run.start.repeat as usize >= first;
        let (runs, earlier_runs): (Vec<CaseRun>, Vec<CaseRun>) =
            case.runs.iter().copied().partition(is_counted);
        *case = case.with_runs(runs);
        case.earlier_runs = earlier_runs;
    }
}

/// Computes the figures of a cell: from its fresh runs if it has enough of them, otherwise from the runs of the race.
fn cell_figures(setting: &Setting, racing: Option<&RacingCell>, result: Option<usize>) -> CellFigures {
    let runs_used = racing.map_or(&[][..], RacingCell::figure_runs);
    let over_runs = |value: fn(&CellRun) -> Option<f64>| {
        let values: Vec<f64> = runs_used.iter().filter_map(value).collect();
        // A value that only some runs have is not shown.
        intervals::mean(&values).filter(|_| values.len() == runs_used.len())
    };
    let mean = over_runs(|s| s.bytes_per_s);
    let latency = over_runs(|s| s.latency_mean_ns);
    let p99 = over_runs(|s| Some(s.p99_ns? as f64));
    let by = match racing.map(|racing| racing.measure) {
        Some(Measure::P99) => p99,
        Some(Measure::Latency) => latency,
        Some(Measure::Iops | Measure::Bandwidth) | None => None,
    };
    let mib = |v: f64| v / MIB as f64;
    CellFigures {
        mib_per_s: mean.map(|m| mib(m.value)),
        mb_per_s: mean.map(|m| m.value / 1e6),
        iops: mean.and_then(|m| Some(m.value / racing?.bytes_per_operation()?)),
        interval: mean.and_then(|m| m.interval).map(|i| i.map(mib)),
        latency_p99_ns: p99.map(|m| m.value),
        latency_p99_interval_ns: p99.and_then(|m| m.interval),
        latency_interval_ns: by.and_then(|m| m.interval),
        latency_mean_ns: latency.map(|m| m.value),
        latency_max_ns: runs_used.iter().filter_map(|s| s.latency_max_ns).max(),
        runs: runs_used.len(),
        memory_bytes: setting.memory_bytes(),
        cpu_ns_per_mib: racing.and_then(RacingCell::cpu_ns_per_byte).map(|ns| ns * MIB as f64),
        result,
        setting: setting.clone(),
    }
}

/// Replays the search of a record. A complete search has winners, even if an earlier version of
/// fathom ended the search by another rule.
fn replay_search<'g>(record: &Record, grid: &'g Grid, runs: &[CellRun]) -> BestCellSearch<'g> {
    let plan = &record.header.plan;
    let mut search = BestCellSearch::after(grid, plan.runs, plan.seed, runs);
    if record.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete) {
        search.decide_open_races();
    }
    search
}

fn build_work(
    grid: &Grid,
    search: &BestCellSearch,
    race: &Race,
    cells: &[CellFigures],
    figures_of: impl Fn(&RacingCell) -> Option<CellFigures>,
) -> Work {
    let winner = race.winner();
    let choice = decide_race(grid, search, race);
    let cheapest = race.cheapest_equal().filter(|c| winner.is_none_or(|w| w.job != c.job));
    let by_winner =
        |racing: &RacingCell| ratio(race.measure, winner?.figure_scores(), racing.figure_scores());
    let losses = race.baselines.iter().filter_map(|racing| {
        let name = grid.baselines.iter().find(|baseline| baseline.job == racing.job)?.name.clone();
        Some(BaselineLoss { name, cell: figures_of(racing)?, by_winner: by_winner(racing) })
    });
    // Most cells were measured only once, so with noisy runs the axis would show noise.
    let best = winner
        .filter(|_| race.noise().is_some_and(|s| s <= MAX_NOISE) && race.slowdown().is_none())
        .and_then(|w| grid.setting(w.job));
    let cells_of_work: Vec<&CellFigures> = cells.iter().filter(|c| c.setting.work() == race.work).collect();
    Work {
        name: race.work.clone(),
        measure: measure_of_work(grid, &race.work),
        decided: choice.chosen == Chosen::Fastest,
        chosen: choice.chosen,
        faster_at_most: choice.faster_at_most,
        sentence: choice.sentence,
        rivals: choice.rivals,
        runs: race.cells.iter().map(|racing| racing.race_scores.len() + racing.fresh_scores.len()).sum(),
        cheapest_by_winner: cheapest.and_then(by_winner),
        baselines: losses.collect(),
        spread: race.noise(),
        knees: best.map_or_else(Vec::new, |b| find_knees(race.measure, grid.tolerance, b, &cells_of_work)),
    }
}

/// Returns the checks that invalidate the number of a cell. Other load on the machine (group D) does not count: cells are
/// measured in turns, so it affects all cells alike.
fn invalidating_checks(answers: &CaseAnswers) -> impl Iterator<Item = CheckId> {
    answers.void_by().filter(|id| id.group() != OTHER_LOAD_GROUP)
}

/// Returns the work, undecided if a finding invalidates its winner.
fn withhold_invalid_winner(work: Work, voided: Option<&CaseAnswers>) -> Work {
    let Some(answers) = voided.filter(|_| work.chosen != Chosen::NoChoice) else {
        return work;
    };
    let ids: Vec<String> = invalidating_checks(answers).map(|id| id.to_string()).collect();
    let sentence =
        format!("{}, which looked best, has no number ({})", answers.case.job.name, ids.join(", "));
    Work {
        decided: false,
        chosen: Chosen::CannotTell,
        sentence,
        rivals: Vec::new(),
        knees: Vec::new(),
        ..work
    }
}

/// Returns the measure that a work shows. Earlier versions ranked by bytes per second, which gives the same order if
/// all operations have one size.
fn measure_of_work(grid: &Grid, work: &str) -> Measure {
    if let Some(measure) = grid.measure_of(work) {
        return measure;
    }
    let settings = || grid.cells.iter().map(|c| &c.setting).filter(|s| s.work() == work);
    let first = settings().next();
    let one_size = settings().all(|s| Some(s.block_bytes) == first.map(|f| f.block_bytes));
    let random = first.is_some_and(|s| s.spec.is_some() || s.is_random());
    if random && one_size { Measure::Iops } else { Measure::Bandwidth }
}

/// Returns the ratio of `other` to `base`, from the scores of their runs; `None` if one has fewer
/// than three runs.
fn ratio(by: Measure, base: &[f64], other: &[f64]) -> Option<Estimate> {
    let shift = Shift::new(base, other)?;
    let (value, [low, high]) = (shift.delta, shift.interval());
    // The better of two latencies has the higher score and the lower value.
    let (value, interval) = if by.is_latency() { (-value, [-high, -low]) } else { (value, [low, high]) };
    Some(Estimate { value: value.exp(), interval: interval.map(f64::exp) })
}

/// Returns the knees of the axes with a scale: for each axis, the value at which the rate stops growing. Latency grows
/// along most axes and has no knee.
fn find_knees(by: Measure, tolerance: f64, winner: &Setting, cells: &[&CellFigures]) -> Vec<Knee> {
    if by.is_latency() {
        return Vec::new();
    }
    let scales = AXES.iter().filter_map(|axis| Some((axis.name, axis.scale?)));
    scales.filter_map(|(name, scale)| find_knee(name, scale, by, tolerance, winner, cells)).collect()
}

/// Returns the knee of one axis, with all other settings as the winner has them: the value from which larger ones gain
/// no more than the tolerance. `None` if only the largest value is such a value.
fn find_knee(
    axis: &str,
    scale: Scale,
    by: Measure,
    tolerance: f64,
    winner: &Setting,
    cells: &[&CellFigures],
) -> Option<Knee> {
    let fixed = (scale.without)(winner);
    let along = cells.iter().filter(|c| (scale.without)(&c.setting) == fixed);
    let mut points: Vec<(u32, f64)> =
        along.filter_map(|c| Some(((scale.value)(&c.setting)?, c.value(by)?))).collect();
    points.sort_by_key(|p| p.0);
    let at = (0..points.len()).find(|at| {
        let most = points[*at..].iter().map(|p| p.1).fold(0.0, f64::max);
        points[*at].1 >= (1.0 - tolerance) * most
    })?;
    let (value, last) = (points[at].0, points.last()?.0);
    (value < last).then(|| Knee {
        axis: axis.into(),
        value,
        sentence: format!(
            "In these runs, no {axis} beyond {} was more than {} faster (largest value measured: {}).",
            (scale.show)(value),
            show_share(tolerance),
            (scale.show)(last)
        ),
    })
}

/// Computes the change of the reference cell's rate over the sweep, from a line through the logarithms of the rates. `None` with too few
/// runs.
fn build_reference(grid: &Grid, job: usize, runs: &[CellRun]) -> Option<Reference> {
    let mut at = 0.0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for run in runs {
        at += run.took_ns as f64;
        points.extend(run.bytes_per_s.filter(|_| run.job == job).map(|rate| (at, rate.ln())));
    }
    if points.len() < FEWEST_REFERENCE_RUNS {
        return None;
    }
    let n = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let squares: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / squares;
    let rest: f64 = points.iter().map(|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sum();
    let half = sample::critical_value(n - 2.0)? * (rest / (n - 2.0) / squares).sqrt() * at;
    let total = slope * at;
    let change = |log: f64| log.exp_m1();
    let interval = [change(total - half), change(total + half)];
    if !interval.iter().all(|v| v.is_finite()) {
        return None;
    }
    Some(Reference {
        setting: grid.setting(job)?.clone(),
        runs: points.len(),
        change: Estimate { value: change(total), interval },
        drifted: interval[0] > grid.tolerance || interval[1] < -grid.tolerance,
    })
}

/// Returns the quoted cell. If the cells are measured in rounds, it is the tracked cell. If they are measured once in
/// order, it is the valid cell with the most operations per second, or the first measured cell if none is valid.
/// Otherwise it is the winner, or the only cell, of the first work that has one.
fn quoted_cell<'s>(sweep: &'s Sweep, results: &[Measured]) -> Option<&'s CellFigures> {
    if let Some(rounds) = &sweep.rounds {
        return sweep.cells.iter().find(|c| c.setting == rounds.tracked && c.result.is_some());
    }
    if sweep.is_in_order() {
        let void = |c: &CellFigures| c.result.and_then(|at| results.get(at)).is_none_or(|r| r.void);
        let measured = || sweep.cells.iter().filter(|c| c.result.is_some());
        let most = measured().filter(|c| c.iops.is_some() && !void(c));
        // Of equally fast cells take the first of the grid.
        let more =
            |a: &&CellFigures, b: &&CellFigures| a.iops.partial_cmp(&b.iops).unwrap_or(Ordering::Equal);
        return most.rev().max_by(more).or(measured().next());
    }
    sweep.works.iter().find_map(|w| sweep.winner.get(&w.name).or_else(|| sweep.only_cell(&w.name)))
}

/// Returns why the means over rounds are not those of a steady state; `None` if they are, or if the rounds had another
/// goal.
fn why_unsteady(sweep: &Sweep) -> Option<String> {
    let rounds = sweep.rounds.as_ref().filter(|r| r.bytes_wanted.is_none())?;
    let met = rounds.rule.is_some_and(|rule| rule.met);
    (!met).then(|| {
        format!(
            "the tracked cell was not steady after {} by the SNIA's rule, so these are not steady-state figures.",
            show_counted(rounds.by_round.len() as u64, "round")
        )
    })
}

/// Returns the number to quote: that of the quoted cell.
fn build_headline(sweep: &Sweep, results: &[Measured]) -> Headline {
    let quoted = quoted_cell(sweep, results).and_then(|cell| Some((cell, results.get(cell.result?)?)));
    let Some((cell, result)) = quoted else {
        return Headline { name: "nothing".into(), unit: "MB/s".into(), ..Headline::default() };
    };
    let by = quoted_by(sweep, cell, result);
    let spec = cell.setting.spec.iter().map(|spec| format!("{spec}, "));
    let what = by.is_latency().then(|| format!("{} of ", by.heading()));
    let (unit, scale) = match by {
        Measure::P99 | Measure::Latency => ("us", 1e-3),
        rate => (rate.heading(), 1.0),
    };
    Headline {
        name: what.into_iter().chain(spec).chain([result.true_name.clone()]).collect(),
        value: cell.value(by).filter(|_| !result.void).map(|v| v * scale),
        unit: unit.into(),
        interval: cell.interval_of(by).filter(|_| !result.void).map(|i| i.map(|v| v * scale)),
        ..Headline::default()
    }
}

/// Returns the measure by which a cell is quoted: the measure of its work or, in a grid measured in order, that of its
/// access.
fn quoted_by(sweep: &Sweep, cell: &CellFigures, result: &Measured) -> Measure {
    let name = cell.setting.work();
    let work = sweep.works.iter().find(|w| w.name == name).filter(|_| !sweep.is_in_order());
    let stream = result.job.phases.first().and_then(|p| p.streams.first());
    let random = stream.is_some_and(|s| s.access.pattern() == Some(Pattern::Random));
    work.map_or(if random { Measure::Iops } else { Measure::Bandwidth }, |work| work.measure)
}

/// Returns the deductions from several cells: the effect of the position, and the size from which random offsets cost
/// nothing.
fn deduce(sweep: &Sweep) -> Vec<Deduction> {
    let orders = [("read", "randread"), ("write", "randwrite")].into_iter();
    let by_order = orders.filter_map(|(sequential, random)| cost_of_random(sweep, sequential, random));
    sweep.works.iter().filter_map(|w| cost_of_position(sweep, w)).chain(by_order).collect()
}

/// Returns the size from which random offsets are as fast as sequential ones, within the tolerance; `None` if there is
/// no such size.
fn cost_of_random(sweep: &Sweep, sequential: &str, random: &str) -> Option<Deduction> {
    let best = |work: &str| {
        let mut by_size: BTreeMap<u32, f64> = BTreeMap::new();
        for cell in sweep.cells.iter().filter(|c| c.setting.work() == work) {
            let most = by_size.entry(cell.setting.block_bytes).or_insert(0.0);
            *most = most.max(cell.mib_per_s.unwrap_or(0.0));
        }
        by_size
    };
    let (plain, scattered) = (best(sequential), best(random));
    let shares: Vec<(u32, f64)> =
        plain.iter().filter_map(|(size, p)| Some((*size, scattered.get(size)? / p))).collect();
    let free = |at: usize| shares[at..].iter().all(|(_, share)| *share >= 1.0 - sweep.tolerance);
    let at = (0..shares.len()).find(|at| free(*at))?;
    let (size, _) = shares[at];
    let (smallest, share) = *shares.first()?;
    let size_label = |size: u32| show_block(u64::from(size));
    let below = if at == 0 {
        format!("also at {}, the smallest size that was measured", size_label(size))
    } else {
        format!(
            "at {}, {random} reaches {} of the rate of {sequential}",
            size_label(smallest),
            show_share(share)
        )
    };
    Some(Deduction {
        name: "cost of random".into(),
        sentence: format!(
            "{random} is as fast as {sequential} from {} on, each at its best setting; {below}.",
            size_label(size)
        ),
        evidence: evidence([("bytes", f64::from(size)), ("share_at_smallest", share)]),
    })
}

/// Maximum number of rivals that a sentence names. The JSON has all.
const NAMED: usize = 3;

/// A recommended budget is a multiple of this many seconds.
const BUDGET_STEP_S: u64 = 10;

/// How a work was decided.
struct Choice {
    chosen: Chosen,
    sentence: String,
    /// Upper bound on how much faster than the winner any cell may be, as a share; `None` unless the work was decided as
    /// fastest or tied.
    faster_at_most: Option<f64>,
    /// Cells that may be faster than the winner. The cell that may be fastest comes first.
    rivals: Vec<Setting>,
}

/// Judges a race, which may be unfinished.
fn decide_race(grid: &Grid, search: &BestCellSearch, race: &Race) -> Choice {
    let rivals = race.rivals();
    let (chosen, why) = match &rivals {
        _ if race.winner().is_none() => (Chosen::CannotTell, why_unfinished(race)),
        _ if race.cells.len() == 1 => (Chosen::NoChoice, "there is nothing to choose".into()),
        Some(rivals) if race.knows_its_noise() => decide_by_rivals(grid, search, race, rivals),
        _ => (Chosen::CannotTell, why_noise_is_unknown(grid, race)),
    };
    let at_most = rivals.as_ref().map(|r| race.share(r.bound)).filter(|share| share.is_finite());
    let at_most = at_most.filter(|_| matches!(chosen, Chosen::Fastest | Chosen::Tied));
    let settings = |at: &usize| Some(grid.setting(race.cells.get(*at)?.job)?.clone());
    let rivals: Vec<Setting> =
        rivals.iter().flat_map(|rivals| &rivals.within_noise).filter_map(settings).collect();
    let sentence = format!(
        "{why}. {}{}{}.",
        measured_sentence(race),
        rivals_sentence(chosen, &rivals),
        passed_over_sentence(grid, race, chosen)
    );
    Choice { chosen, sentence, faster_at_most: at_most, rivals }
}

fn decide_by_rivals(grid: &Grid, search: &BestCellSearch, race: &Race, rivals: &Rivals) -> (Chosen, String) {
    if let Some(slowdown) = race.slowdown() {
        let change = if race.measure.is_latency() {
            format!(
                "{} of the winner was {} higher",
                race.measure.heading(),
                show_share((-slowdown).exp_m1())
            )
        } else {
            format!("the winner gave {} less", show_share(-slowdown.exp_m1()))
        };
        return (
            Chosen::CannotTell,
            format!(
                "{change} afterwards than while it was chosen, so the target became slower in the meantime; \
                 sweep again when the target is quiet"
            ),
        );
    }
    let tolerance = show_share(grid.tolerance);
    let none_is = |share: &str| format!("no setting is {} (95 % confidence)", race.measure.better_by(share));
    if rivals.above_tolerance == 0 {
        return (Chosen::Fastest, none_is(&tolerance));
    }
    let at_most = race.share(rivals.bound);
    let bound = show_bound(at_most);
    let open = show_counted(rivals.above_tolerance as u64, "setting");
    let more = match grid.search {
        Search::Adaptive { .. } => budget_sentence(search, &tolerance),
        Search::Exhaustive | Search::InOrder(_) => ". More `--runs` may separate them".into(),
    };
    let chosen = if at_most > CANNOT_TELL_ABOVE { Chosen::CannotTell } else { Chosen::Tied };
    let known = if at_most > USELESS_ABOVE {
        "the runs differ too much to bound how much faster another setting is".to_owned()
    } else {
        none_is(&bound)
    };
    (chosen, format!("{known}. {open} may be {}{more}", race.measure.better_by(&tolerance)))
}

/// A larger bound, twice as fast again as the winner, says nothing about the other settings.
const USELESS_ABOVE: f64 = 2.0;

/// Returns a bound, rounded up: `8.3 %`, `12 %`.
fn show_bound(share: f64) -> String {
    let steps = if share >= 0.099 { 100.0 } else { 1000.0 };
    show_share((share * steps).ceil() / steps)
}

/// Names a budget that is likely to be enough: `. --budget 90s is likely to reach 5.0 %`.
fn budget_sentence(search: &BestCellSearch, tolerance: &str) -> String {
    let Some(ns) = search.sufficient_budget_ns() else {
        return format!(". Runs here differ too much to reach {tolerance} within an hour");
    };
    let seconds = ns.div_ceil(1_000_000_000).div_ceil(BUDGET_STEP_S) * BUDGET_STEP_S;
    format!(". `--budget {seconds}s` is likely to reach {tolerance}")
}

/// Returns why the noise is unknown, and what to type.
fn why_noise_is_unknown(grid: &Grid, race: &Race) -> String {
    let advice = match grid.search {
        Search::Adaptive { .. } => "type a longer `--budget`".into(),
        Search::Exhaustive | Search::InOrder(_) => {
            // This number of runs of each cell gives enough repeats.
            let runs = 1 + FEWEST_NOISE_PAIRS.div_ceil(race.cells.len().max(1));
            format!("`--exhaustive --runs {runs}` measures it")
        }
    };
    format!("too few cells were measured more than once, so the noise between runs is unknown; {advice}")
}

/// Returns why there is no winner.
fn why_unfinished(race: &Race) -> String {
    match race.decision {
        Some(_) if race.measure == Measure::P99 => {
            "no run has a p99, which needs a thousand operations; type a longer --time, or --by latency"
                .into()
        }
        Some(_) => "no cell could be measured".into(),
        None => "the search is not complete; `fathom sweep --resume last` continues it".into(),
    }
}

/// Describes the cells of a race: `11 cells were measured and 1 could not be; runs of one cell differ by 2.0 %`.
fn measured_sentence(race: &Race) -> String {
    let all = race.cells.len();
    let seen = race.cells.iter().filter(|racing| !racing.race_scores.is_empty()).count();
    let (of_all, failed) = match (&race.decision, all - seen) {
        (Some(_), 0) => (String::new(), String::new()),
        (Some(_), failed) => (String::new(), format!(" and {failed} could not be")),
        (None, _) => (format!(" of {all}"), String::new()),
    };
    let cells = if all == 1 || (seen == 1 && of_all.is_empty()) { "cell was" } else { "cells were" };
    let spread =
        race.noise().map_or_else(String::new, |s| format!("; runs of one cell differ by {}", show_share(s)));
    format!("{seen}{of_all} {cells} measured{failed}{spread}")
}

/// Lists the rivals of the winner: `. As fast within the noise: 8 x 512K direct, io_uring and 2 more`.
fn rivals_sentence(chosen: Chosen, rivals: &[Setting]) -> String {
    if rivals.is_empty() || !matches!(chosen, Chosen::Fastest | Chosen::Tied) {
        return String::new();
    }
    let names: Vec<String> = rivals.iter().take(NAMED).map(name_setting).collect();
    let more = match rivals.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(". As fast within the noise: {}{more}", names.join("; "))
}

/// Explains why a cheaper cell with similar figures is not the answer: `. In one run, 8 x 256K direct, io_uring had a 3.0 % higher rate
/// than the winner, but had too few runs to confirm that it is as good`.
fn passed_over_sentence(grid: &Grid, race: &Race, chosen: Chosen) -> String {
    let passed_over = race.passed_over().filter(|_| matches!(chosen, Chosen::Fastest | Chosen::Tied));
    let with_setting = passed_over.and_then(|(cell, lead)| Some((cell, lead, grid.setting(cell.job)?)));
    let Some((cell, lead, setting)) = with_setting else { return String::new() };
    let (measure, share) = (race.measure, race.share(lead));
    let amount = match (measure.is_latency(), share >= 0.0) {
        (false, true) => format!("a {} higher rate", show_share(share)),
        (false, false) => format!("a {} lower rate", show_share(-share)),
        (true, true) => format!("a {} lower {}", show_share(share), measure.heading()),
        (true, false) => format!("a {} higher {}", show_share(-share), measure.heading()),
    };
    let (used, all) = (cell.figure_scores().len(), cell.race_scores.len() + cell.fresh_scores.len());
    let runs = match used {
        1 if all == 1 => "one run".to_owned(),
        1 => format!("the first of {all} runs"),
        _ if used == all => format!("{used} runs"),
        _ if cell.has_fresh_runs() => format!("the last {used} of {all} runs"),
        _ => format!("the first {used} of {all} runs"),
    };
    let why = if !cell.has_valid_fresh_runs() {
        ", but had too few runs to confirm that it is as good".to_owned()
    } else if race.winner().is_some_and(RacingCell::has_valid_fresh_runs) {
        let better = measure.better_by(&show_share(grid.tolerance));
        format!("; without the slowest and the fastest runs, the winner is {better}")
    } else {
        ", but the winner was not measured often enough to compare the two".to_owned()
    };
    format!(". In {runs}, {} had {amount} than the winner{why}", name_setting(setting))
}

/// Names a setting: `8 x 512K direct, io_uring`.
fn name_setting(setting: &Setting) -> String {
    format!("{} {}", setting.load(), setting.access_path())
}

fn sweep_in_order(record: &Record, grid: &Grid, until: Until, answered: &[CaseAnswers]) -> Sweep {
    let order = OrderedSweep::after(grid, until, &cell_runs(record));
    let left_out = order.skipped_cells();
    let is_left_out = |job: usize| left_out.iter().any(|(cell, _)| *cell == job);
    let measured = grid.cells.iter().filter(|c| !is_left_out(c.job));
    let result_of = |job: usize| answered.iter().position(|a| a.case.job_index == job);
    let cells: Vec<CellFigures> =
        measured.map(|c| cell_in_order(&c.setting, &order, c.job, result_of(c.job))).collect();
    let too_slow = left_out.iter().filter_map(|(job, slow)| {
        let why = describe_slow_cell(grid.setting(slow.job)?, slow.iops);
        Some(Skipped { setting: grid.setting(*job)?.clone(), why })
    });
    let too_slow: Vec<Skipped> = too_slow.collect();
    let works = if until == Until::Slow { build_works(grid, &cells, answered) } else { Vec::new() };
    Sweep {
        search: IN_ORDER.into(),
        preset: grid.preset.clone(),
        seconds: order.spent_ns() as f64 / 1e9,
        budget_seconds: None,
        tolerance: grid.tolerance,
        skipped: grid.skipped.iter().cloned().chain(too_slow).collect(),
        winner: BTreeMap::new(),
        cheapest: BTreeMap::new(),
        works,
        reference: None,
        target: measured_target(record),
        rounds: build_rounds(grid, until, &order),
        cells,
    }
}

/// Explains why the larger sizes after this cell are left out.
fn describe_slow_cell(setting: &Setting, iops: f64) -> String {
    let least = least_iops(setting.workers);
    format!(
        "{} reached {} operations a second; at {least} or fewer, larger sizes are left out (workers: {})",
        setting.describe(),
        show_rate(iops),
        setting.workers
    )
}

/// Returns the figures of a cell: arithmetic means over its counting runs, as in the SNIA's specification.
fn cell_in_order(setting: &Setting, order: &OrderedSweep, job: usize, result: Option<usize>) -> CellFigures {
    let runs_used: Vec<&CellRun> = order.window_runs(job).collect();
    let mean = |value: fn(&CellRun) -> Option<f64>| {
        let values: Vec<f64> = runs_used.iter().filter_map(|s| value(s)).filter(|v| v.is_finite()).collect();
        (!values.is_empty()).then(|| stats::sample::mean(&values))
    };
    let rate = mean(|s| s.bytes_per_s);
    CellFigures {
        mib_per_s: rate.map(|r| r / MIB as f64),
        mb_per_s: rate.map(|r| r / 1e6),
        iops: rate.map(|r| r / f64::from(setting.block_bytes.max(1))),
        interval: None,
        latency_p99_ns: mean(|s| Some(s.p99_ns? as f64)),
        latency_p99_interval_ns: None,
        latency_interval_ns: None,
        latency_mean_ns: mean(|s| s.latency_mean_ns),
        latency_max_ns: runs_used.iter().filter_map(|s| s.latency_max_ns).max(),
        runs: runs_used.iter().filter(|s| s.bytes_per_s.is_some()).count(),
        memory_bytes: setting.memory_bytes(),
        cpu_ns_per_mib: mean(|s| s.cpu_ns_per_byte).map(|ns| ns * MIB as f64),
        result,
        setting: setting.clone(),
    }
}

/// Returns the works with their knees, without cells that a finding invalidates.
fn build_works(grid: &Grid, cells: &[CellFigures], answered: &[CaseAnswers]) -> Vec<Work> {
    let void = |c: &CellFigures| c.result.and_then(|at| answered.get(at)).is_some_and(CaseAnswers::is_void);
    let work_named = |name: String| {
        let valid: Vec<&CellFigures> =
            cells.iter().filter(|c| c.setting.work() == name && !void(c) && c.mib_per_s.is_some()).collect();
        let is_random = grid.cells.iter().any(|c| c.setting.work() == name && c.setting.is_random());
        // Sizes differ, so bytes per second rank them. Of equally fast cells take the first of the grid.
        let faster = |a: &&&CellFigures, b: &&&CellFigures| {
            a.mb_per_s.partial_cmp(&b.mb_per_s).unwrap_or(Ordering::Equal)
        };
        let best = valid.iter().rev().max_by(faster).copied();
        let knees = best.map_or_else(Vec::new, |best| {
            find_knees(Measure::Bandwidth, grid.tolerance, &best.setting, &valid)
        });
        Work {
            sentence: describe_best_once(best, valid.len()),
            measure: if is_random { Measure::Iops } else { Measure::Bandwidth },
            name,
            chosen: Chosen::NoChoice,
            faster_at_most: None,
            decided: false,
            rivals: Vec::new(),
            runs: valid.iter().map(|c| c.runs).sum(),
            spread: None,
            cheapest_by_winner: None,
            baselines: Vec::new(),
            knees,
        }
    };
    grid.works().into_iter().map(work_named).collect()
}

/// Describes the best of several cells that were measured once each, and how certain it is.
fn describe_best_once(best: Option<&CellFigures>, cells: usize) -> String {
    let Some((cell, mb_per_s)) = best.and_then(|cell| Some((cell, cell.mb_per_s?))) else {
        return "No cell has a number.".into();
    };
    let Setting { block_bytes, depth, workers, .. } = cell.setting;
    let seen = if cells == 1 {
        "the only cell with a number).".to_owned()
    } else {
        format!(
            "best seen of {cells} cells). Each cell was measured once, so a slightly slower one may be as fast."
        )
    };
    format!(
        "depth {depth}, {}, {}: {} MB/s ({seen}",
        show_bytes(block_bytes.into()),
        show_counted(workers.into(), "worker"),
        show_rate(mb_per_s)
    )
}

/// Returns the measured target. A test file has the size that it reached.
fn measured_target(record: &Record) -> Option<SweptTarget> {
    let target = record.header.plan.targets.iter().enumerate().find(|(_, t)| t.role != Role::None);
    let (at, target) = target?;
    let made_bytes = record.runs.first().and_then(|r| r.start.target_bytes.get(at)).copied();
    Some(SweptTarget { path: target.path.clone(), bytes: made_bytes.unwrap_or(target.bytes) })
}

fn build_rounds(grid: &Grid, until: Until, order: &OrderedSweep) -> Option<Rounds> {
    let Until::Rounds { tracked, variable, bytes, rounds_at_most } = until else { return None };
    Some(Rounds {
        tracked: grid.setting(tracked)?.clone(),
        variable,
        by_round: order.tracked_values(),
        at_most: rounds_at_most,
        bytes_wanted: bytes,
        bytes_written: order.written_bytes(),
        window: order.window(),
        window_mean: order.window_mean(),
        rule: order.snia(),
    })
}

/// Returns the difference between the fastest and the slowest position of a work, and whether their
/// intervals overlap. `None` if cells differ in more than the position, or too little was measured.
fn cost_of_position(sweep: &Sweep, work: &Work) -> Option<Deduction> {
    let cells: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    let first = cells.first()?.setting.at_no_position();
    let positions =
        cells.iter().all(|c| c.setting.offset_bytes.is_some() && c.setting.at_no_position() == first);
    if !positions || cells.len() < 2 {
        return None;
    }
    let rate = |c: &&&CellFigures| c.mb_per_s.unwrap_or(0.0);
    let known = || cells.iter().filter(|c| c.interval.is_some() && c.mb_per_s.is_some());
    let fastest = known().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let slowest = known().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let apart = fastest.interval?[0] > slowest.interval?[1];
    let rate_at = |c: &CellFigures| {
        let rate = c.mb_per_s.map_or_else(String::new, |r| Measure::Bandwidth.show(r));
        format!("{rate} at {}", c.setting.position().unwrap_or_default())
    };
    let share = 1.0 - rate(&slowest) / rate(&fastest);
    let sentence = if apart {
        format!(
            "{}: {} against {}, {} less: the rate depends on the position on the target.",
            work.name,
            rate_at(fastest),
            rate_at(slowest),
            show_share(share)
        )
    } else {
        format!(
            "{}: {} against {}; their 95 % intervals overlap, so the difference may be noise.",
            work.name,
            rate_at(slowest),
            rate_at(fastest)
        )
    };
    Some(Deduction {
        name: "rate by position".into(),
        sentence,
        evidence: evidence([("share_lost", share), ("positions", cells.len() as f64)]),
    })
}

#[test]
fn a_bound_is_rounded_up() {
    let shown: Vec<String> = [0.0801, 0.0994, 0.121, 0.05].into_iter().map(show_bound).collect();
    assert_eq!(shown, ["8.1 %", "10 %", "13 %", "5.0 %"]);
}

#[cfg(test)]
mod tests {
    //! Tests of the report of a sweep: forged records whose cells have known rates.

    use super::*;
    use crate::fixture::{Fixture, together};
    use crate::{Judging, exit_code, judge};
    use model::finding::{CheckId, Outcome};
    use model::report::{Report, Verdict};
    use model::sweep::{Baseline, Cell, Skipped};

    fn setting(depth: u32, rw: &str) -> Setting {
        Setting::plain(rw, 4096, depth)
    }

    /// Returns a sweep of random reads, with the depth and the operations per second of each cell, and `cp` as a
    /// baseline: three runs of each in the race, and five fresh ones.
    fn record(cells: &[(u32, u64)]) -> Record {
        let fixture = |(depth, ops): &(u32, u64)| {
            let setting = setting(*depth, "randread");
            let depth_seen = f64::from(*depth) * 0.98;
            Fixture {
                name: setting.describe(),
                depth: *depth,
                ops: *ops,
                depth_seen,
                runs: 8,
                ..Fixture::honest()
            }
        };
        let mut fixtures: Vec<Fixture> = cells.iter().map(fixture).collect();
        fixtures.push(Fixture {
            name: "cp".into(),
            depth: 1,
            ops: 5_000,
            depth_seen: 0.98,
            runs: 8,
            ..Fixture::honest()
        });
        let mut record = together(&fixtures);
        record.runs.sort_by_key(|r| r.start.repeat);
        let cell =
            |(job, (depth, _)): (usize, &(u32, u64))| Cell { setting: setting(*depth, "randread"), job };
        let cp = Baseline { name: "cp".into(), setting: setting(1, "randread"), job: cells.len() };
        let too_much =
            Skipped { setting: setting(4096, "randread"), why: "its buffers take too much".into() };
        record.header.plan.runs = 3;
        record.header.plan.study = Grid {
            preset: None,
            cells: cells.iter().enumerate().map(cell).collect(),
            skipped: vec![too_much],
            baselines: vec![cp],
            search: Search::Exhaustive,
            tolerance: 0.03,
            measures: BTreeMap::new(),
        }
        .into();
        record
    }

    fn judged(record: &Record) -> (Report, Sweep) {
        let report = judge(record, &Judging::default());
        let sweep = report.study.sweep().unwrap().clone();
        (report, sweep)
    }

    fn grid(record: &mut Record) -> &mut Grid {
        let model::study::Study::Sweep(grid) = &mut record.header.plan.study else { panic!("no grid") };
        grid
    }

    #[test]
    fn the_fastest_wins_and_the_cheapest_as_fast_is_named() {
        let record = record(&[(1, 4_000), (8, 9_900), (32, 10_000), (64, 9_950)]);
        let (report, sweep) = judged(&record);
        let (winner, cheapest) = (&sweep.winner["randread"], &sweep.cheapest["randread"]);
        assert_eq!((winner.setting.depth, cheapest.setting.depth), (32, 8), "{:#?}", sweep.works);
        assert_eq!((report.headline.unit.as_str(), report.verdict), ("IOPS", Verdict::Valid));
        // The rate counts all issued operations: the 10,000 of the window of one second, and a tenth more.
        assert!((winner.iops.unwrap() / 11_000.0 - 1.0).abs() < 1e-9, "{winner:?}");
        let work = &sweep.works[0];
        let by = work.cheapest_by_winner.unwrap();
        assert!((by.value - 0.99).abs() < 1e-6, "{by:?}");
        assert!((work.baselines[0].by_winner.unwrap().value - 0.5).abs() < 1e-6);
        let knee = work.knees.iter().find(|k| k.axis == "depth").unwrap();
        assert_eq!(knee.value, 8, "{knee:?}");
        assert!(sweep.skipped.len() == 1 && sweep.cells.len() == 4);
        assert_eq!(exit_code(&report), 0);
    }

    #[test]
    fn only_quoted_cells_decide_the_verdict() {
        let mut bad = record(&[(1, 4_000), (32, 10_000)]);
        for run in bad.runs.iter_mut().filter(|r| r.start.job == 0) {
            run.end.as_mut().unwrap().streams[0]
                .issued
                .values_mut()
                .for_each(|i| i.errors = BTreeMap::from([(5, 9)]));
        }
        let (report, _) = judged(&bad);
        let found = report.checks.iter().find(|f| f.id == CheckId::B12 && f.outcome == Outcome::Finding);
        assert_eq!(found.map(|f| f.about.len()), Some(1), "it is there");
        assert_eq!((report.verdict, report.counts.invalid), (Verdict::Valid, 0), "and not about the winner");
    }

    #[test]
    fn findings_about_a_winner_are_about_the_runs_of_its_figures() {
        let mut early = record(&[(1, 4_000), (32, 10_000)]);
        let depth_one = record(&[(1, 4_000), (1, 10_000)]);
        for (run, shallow) in early.runs.iter_mut().zip(depth_one.runs) {
            if run.start.job == 1 && run.start.repeat < 3 {
                *run = shallow;
            }
        }
        let (report, sweep) = judged(&early);
        let winner = &report.results[sweep.winner["randread"].result.unwrap()];
        assert_eq!((winner.runs.len(), winner.uncounted_runs.len(), winner.verdict), (5, 3, Verdict::Valid));
        early.runs.retain(|run| run.start.repeat < 3);
        let (report, sweep) = judged(&early);
        let found = &report.results[sweep.cells[1].result.unwrap()];
        assert_eq!(
            (found.runs.len(), found.verdict),
            (3, Verdict::Suspect),
            "the runs without a finding are gone"
        );
    }

    #[test]
    fn a_winner_that_falls_back_leaves_the_work_undecided() {
        let mut slower = record(&[(1, 4_000), (32, 10_000)]);
        for run in slower.runs.iter_mut().filter(|r| r.start.job == 1 && r.start.repeat >= 3) {
            run.end.as_mut().unwrap().streams[0].issued.values_mut().for_each(|i| i.bytes /= 2);
        }
        let (_, sweep) = judged(&slower);
        let work = &sweep.works[0];
        assert!(!work.decided && work.sentence.contains("50 % less afterwards"), "{}", work.sentence);
        let (_, sweep) = judged(&record(&[(1, 4_000), (32, 10_000)]));
        assert!(!sweep.works[0].sentence.contains("less afterwards"), "{}", sweep.works[0].sentence);
    }

    #[test]
    fn a_search_that_was_cut_has_cells_and_no_winner() {
        let mut cut = record(&[(1, 4_000), (8, 9_900), (32, 10_000)]);
        cut.runs.truncate(4);
        cut.end.as_mut().unwrap().ending = RunEnding::Interrupted;
        let (report, sweep) = judged(&cut);
        assert_eq!((report.verdict, report.headline.value), (Verdict::Invalid, None));
        assert!(sweep.winner.is_empty() && sweep.cells.iter().any(|c| c.mib_per_s.is_some()));
        assert!(report.verdict_reason.contains("--resume last"), "{}", report.verdict_reason);
        let empty = Record { runs: Vec::new(), ..cut };
        assert!(judged(&empty).1.cells.iter().all(|c| c.mib_per_s.is_none() && c.runs == 0));
    }

    #[test]
    fn indistinguishable_cells_are_named_and_a_single_cell_does_not_win() {
        let mut near = record(&[(1, 4_000), (8, 9_990), (32, 10_000)]);
        for run in &mut near.runs {
            let vary = |bytes: u64| bytes / 1_000 * [1_002, 998, 1_000][run.start.repeat as usize % 3];
            let streams = &mut run.end.as_mut().unwrap().streams;
            streams[0].issued.values_mut().for_each(|i| i.bytes = vary(i.bytes));
        }
        let work = &judged(&near).1.works[0];
        assert_eq!((work.chosen, work.decided), (Chosen::Fastest, true), "{}", work.sentence);
        assert_eq!(work.rivals.iter().map(|s| s.depth).collect::<Vec<_>>(), [8], "{}", work.sentence);
        assert!(work.sentence.contains("As fast within the noise: 8 x 4K"), "{}", work.sentence);

        let (report, sweep) = judged(&record(&[(32, 10_000)]));
        assert_eq!((sweep.works[0].chosen, sweep.winner.len()), (Chosen::NoChoice, 0));
        assert!(report.headline.value.is_some() && report.verdict == Verdict::Valid, "{report:#?}");
    }

    #[test]
    fn a_cheaper_cell_with_similar_figures_has_a_reason() {
        let mut near = record(&[(8, 9_400), (32, 10_000)]);
        for run in near.runs.iter_mut().filter(|r| r.start.job == 1 && r.start.repeat >= 3) {
            let streams = &mut run.end.as_mut().unwrap().streams;
            streams[0].issued.values_mut().for_each(|i| i.bytes = i.bytes / 100 * 95);
        }
        let (_, sweep) = judged(&near);
        let cheapest = &sweep.cheapest["randread"];
        assert_eq!(cheapest.setting.depth, 8, "five fresh runs confirm it: {}", sweep.works[0].sentence);
        // The search ended before the cheaper cell was measured again.
        near.runs.retain(|r| r.start.job != 0 || r.start.repeat < 3);
        let (_, sweep) = judged(&near);
        let (work, cheapest) = (&sweep.works[0], &sweep.cheapest["randread"]);
        assert_eq!((work.chosen, cheapest.setting.depth), (Chosen::Fastest, 32), "{}", work.sentence);
        assert!(work.sentence.starts_with("no setting is more than 3.0 % faster"), "{}", work.sentence);
        let why =
            " had a 1.1 % lower rate than the winner, but had too few runs to confirm that it is as good.";
        assert!(work.sentence.contains(". In 3 runs, ") && work.sentence.ends_with(why), "{}", work.sentence);
    }

    #[test]
    fn a_cheaper_cell_that_was_measured_again_is_compared_by_the_printed_mean() {
        let mut near = record(&[(8, 9_500), (32, 10_000)]);
        // The printed rate of a cell is the geometric mean of its runs: 0.95^4 x 1.22 of the winner's, to the power of 1/5.
        for run in near.runs.iter_mut().filter(|r| r.start.job == 0 && r.start.repeat == 7) {
            let streams = &mut run.end.as_mut().unwrap().streams;
            streams[0].issued.values_mut().for_each(|i| i.bytes = i.bytes / 95 * 122);
        }
        let (_, sweep) = judged(&near);
        let (work, rates) = (&sweep.works[0], [0, 1].map(|at: usize| sweep.cells[at].mb_per_s.unwrap()));
        assert!((rates[0] / rates[1] - 0.9987).abs() < 1e-4, "{rates:?}");
        assert_eq!(sweep.cheapest["randread"].setting.depth, 32, "{}", work.sentence);
        let (runs, lead) = (". In the last 5 of 8 runs, ", " had a 0.1 % lower rate than the winner");
        let why = "; without the slowest and the fastest runs, the winner is more than 3.0 % faster.";
        assert!(work.sentence.contains(runs), "{}", work.sentence);
        assert!(work.sentence.ends_with(&format!("{lead}{why}")), "{}", work.sentence);
        // The winner has only four fresh runs.
        near.runs.retain(|r| r.start.job != 1 || r.start.repeat < 7);
        let (_, sweep) = judged(&near);
        let why = ", but the winner was not measured often enough to compare the two.";
        let sentence = &sweep.works[0].sentence;
        assert!(sentence.ends_with(&format!("{lead}{why}")), "{sentence}");
    }

    #[test]
    fn a_cheaper_cell_with_a_similar_latency_has_a_reason() {
        let mut near = record(&[(8, 2_500), (32, 10_200)]);
        grid(&mut near).measures = [("randread".to_owned(), Measure::Latency)].into();
        // The search ended after two fresh runs of the cheaper cell.
        near.runs.retain(|r| r.start.job != 0 || r.start.repeat < 5);
        let (_, sweep) = judged(&near);
        let sentence = &sweep.works[0].sentence;
        let lead = " had a 2.0 % higher mean latency than the winner";
        let why = ", but had too few runs to confirm that it is as good.";
        assert!(sentence.contains(". In the first 3 of 5 runs, "), "{sentence}");
        assert!(sentence.ends_with(&format!("{lead}{why}")), "{sentence}");
    }

    #[test]
    fn too_few_repeats_give_no_winner_but_advice() {
        let mut once = record(&[(1, 4_000), (8, 9_990), (32, 10_000)]);
        once.header.plan.runs = 1;
        // One run of each cell, and killed before the winner was measured again.
        once.runs.retain(|r| r.start.repeat == 0);
        let (_, sweep) = judged(&once);
        let work = &sweep.works[0];
        assert_eq!((work.chosen, work.decided), (Chosen::CannotTell, false), "{}", work.sentence);
        assert!(work.sentence.contains("`--exhaustive --runs 3` measures it"), "{}", work.sentence);
    }

    #[test]
    fn a_forged_grid_has_a_report() {
        let mut odd = record(&[(1, 4_000), (8, 9_900)]);
        let made_up = grid(&mut odd);
        made_up.cells[0].job = usize::MAX;
        made_up.baselines[0].job = 77;
        made_up.cells[1].setting.block_bytes = 0;
        judged(&odd);
        grid(&mut odd).cells.clear();
        assert_eq!(judged(&odd).0.verdict, Verdict::Invalid);
    }

    #[test]
    fn cells_of_one_target_keep_the_measure_of_their_work() {
        let mut record = record(&[(1, 4_000), (8, 9_900)]);
        let grid = grid(&mut record);
        // The name of a specification may contain the word that comes before the target.
        for cell in &mut grid.cells {
            cell.setting.spec = Some("Data on SSD".into());
            cell.setting.target = Some("/mnt/a".into());
        }
        grid.measures = [("Data on SSD".to_owned(), Measure::P99)].into();
        let (_, sweep) = judged(&record);
        assert_eq!(
            (sweep.works[0].name.as_str(), sweep.works[0].measure),
            ("Data on SSD on /mnt/a", Measure::P99)
        );
        let settings = sweep.settings(|_| Vec::new());
        assert!(settings[0].iter().all(|one| one.work == "Data on SSD"), "{settings:?}");
        let void = sweep.settings(|_| vec![CheckId::D08]);
        assert!(
            void[0].iter().all(|one| one.value.is_none() && one.invalidated_by == [CheckId::D08]),
            "{void:?}"
        );
    }

    #[test]
    fn random_costs_nothing_from_some_size_on() {
        let cell = |bs: u32, rw: &str, rate: f64| CellFigures {
            latency_p99_ns: None,
            latency_p99_interval_ns: None,
            latency_interval_ns: None,
            latency_mean_ns: None,
            latency_max_ns: None,
            setting: Setting { block_bytes: bs, ..setting(8, rw) },
            mib_per_s: Some(rate),
            mb_per_s: None,
            iops: None,
            interval: None,
            runs: 1,
            memory_bytes: 0,
            cpu_ns_per_mib: None,
            result: None,
        };
        let (_, mut sweep) = judged(&record(&[(1, 4_000)]));
        let grid = [(4 << 10, 500.0, 100.0), (64 << 10, 900.0, 600.0), (1 << 20, 1_000.0, 990.0)];
        sweep.cells =
            grid.iter().flat_map(|(bs, s, r)| [cell(*bs, "read", *s), cell(*bs, "randread", *r)]).collect();
        let deductions = deduce(&sweep);
        assert!(deductions[0].sentence.contains("as fast as read from 1M on"), "{}", deductions[0].sentence);
        assert!(
            deductions[0].sentence.contains("at 4K, randread reaches 20 %"),
            "{}",
            deductions[0].sentence
        );
        sweep.cells.retain(|c| c.setting.rw == "read");
        assert!(deduce(&sweep).is_empty());
    }
}
