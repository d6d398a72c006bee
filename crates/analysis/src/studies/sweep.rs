//! Sweeps: which setting of a grid is the fastest, which is as fast for less, and what follows from the rest.
//!
//! For: the part of a report that is about a grid. Not for: which cell is measured next ([`crate::strategy::sweep`], which this
//! replays), nor for the figures and findings of single cells, which are those of any result.

use super::GatedResult;
use crate::findings::CaseAnswers;
use crate::strategy::sample::{Sample, samples};
use crate::strategy::sweep::{Lane, Race, Search};
use choice::choice;
use model::check_id::CheckId;
use model::job::Pattern;
use model::measure::Measure;
use model::record::{Record, RunEnding};
use model::report::{Answer, AnswerWord, Deduction, Headline, Measured, Verdict};
use model::spec::axes::{AXES, Scale};
use model::steadiness::Estimate;
use model::sweep::{CellFigures, Chosen, Grid, Knee, Loss, Reference, Search as How, Setting, Sweep, Work};
use model::units::{MIB, show_block, show_share};
use stats::welch::Shift;
use stats::{interval, student};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Variability of runs above which single ones say nothing of an axis.
const MOST_SPREAD: f64 = 0.1;
/// Runs of the reference from which a line through them says something.
const FEWEST_LOOKS: usize = 4;

mod choice;
mod in_order;
mod position;

/// The part of the report.
pub(super) fn sweep(record: &Record, grid: &Grid, answered: &[CaseAnswers]) -> Sweep {
    if let How::InOrder(until) = grid.search {
        return in_order::sweep(record, grid, until, answered);
    }
    let runs = samples(record);
    let search = searched(record, grid, &runs);
    let result_of = |job: usize| answered.iter().position(|a| a.case.at == job);
    let voided = |job: usize| {
        let of = answered.get(result_of(job)?)?;
        voided_by(of).next().map(|_| of)
    };
    let lanes = || search.races.iter().flat_map(|r| &r.lanes);
    let cells = grid.cells.iter().map(|cell| {
        let lane = lanes().find(|l| l.job == cell.job);
        figures(&cell.setting, lane, result_of(cell.job))
    });
    let cells: Vec<CellFigures> = cells.collect();
    let of = |lane: &Lane| Some(figures(grid.setting(lane.job)?, Some(lane), result_of(lane.job)));
    let of_works = |pick: fn(&Race) -> Option<&Lane>| -> BTreeMap<String, CellFigures> {
        let sound = |race: &&Race| race.winner().is_none_or(|winner| voided(winner.job).is_none());
        search.races.iter().filter(sound).filter_map(|r| Some((r.work.clone(), of(pick(r)?)?))).collect()
    };
    let budget_seconds = match grid.search {
        How::Adaptive { budget_ns } => Some(budget_ns as f64 / 1e9),
        How::Exhaustive | How::InOrder(_) => None,
    };
    Sweep {
        search: if budget_seconds.is_some() { "adaptive" } else { "exhaustive" }.into(),
        preset: grid.preset.clone(),
        seconds: search.spent_ns() as f64 / 1e9,
        budget_seconds,
        tolerance: grid.tolerance,
        skipped: grid.skipped.clone(),
        winner: of_works(|race| race.winner().filter(|_| race.lanes.len() > 1)),
        cheapest: of_works(|race| race.cheapest().filter(|_| race.lanes.len() > 1)),
        works: search
            .races
            .iter()
            .map(|r| withheld(work((grid, &search), r, &cells, of), r.winner().and_then(|w| voided(w.job))))
            .collect(),
        reference: search.reference().and_then(|job| reference(grid, job, &runs)),
        cells,
        place: None,
        rounds: None,
    }
}

/// What a condition is about that names no cell: the winner of each work by the runs that tell its figures, and every cell where none
/// is sought.
pub(super) fn asked(record: &Record, sweep: &Sweep, answered: &[CaseAnswers]) -> Vec<GatedResult> {
    let every = || sweep.cells.iter().filter_map(|cell| Some(GatedResult::whole(cell.result?))).collect();
    let plan = &record.header.plan;
    let Some(grid) = plan.study.grid().filter(|_| !sweep.winner.is_empty()) else { return every() };
    let search = searched(record, grid, &samples(record));
    let winners = search.races.iter().filter_map(|race| {
        let winner = race.winner()?;
        let result = answered.iter().position(|a| a.case.at == winner.job)?;
        Some(GatedResult { result, told: Some(winner.window_samples().to_vec()) })
    });
    winners.collect()
}

/// Figures of a cell: from its fresh runs where it was measured beside a winner, else from all.
fn figures(setting: &Setting, lane: Option<&Lane>, result: Option<usize>) -> CellFigures {
    let told = lane.map_or(&[][..], Lane::window_samples);
    let over_runs = |of: fn(&Sample) -> Option<f64>| {
        let values: Vec<f64> = told.iter().filter_map(of).collect();
        // What only some runs have is no figure of all of them.
        interval::mean(&values).filter(|_| values.len() == told.len())
    };
    let mean = over_runs(|s| s.bytes_per_s);
    let latency = over_runs(|s| Some(s.latency_ns?.0));
    let p99 = over_runs(|s| Some(s.p99_ns? as f64));
    let by = match lane.map(Lane::by) {
        Some(Measure::P99) => p99,
        Some(Measure::Latency) => latency,
        Some(Measure::Iops | Measure::Bandwidth) | None => None,
    };
    let mib = |v: f64| v / MIB as f64;
    CellFigures {
        mib_per_s: mean.map(|m| mib(m.value)),
        mb_per_s: mean.map(|m| m.value / 1e6),
        iops: mean.and_then(|m| Some(m.value / lane?.bytes_per_operation()?)),
        interval: mean.and_then(|m| m.interval).map(|i| i.map(mib)),
        latency_p99_ns: p99.map(|m| m.value),
        latency_p99_interval_ns: p99.and_then(|m| m.interval),
        latency_interval_ns: by.and_then(|m| m.interval),
        latency_mean_ns: latency.map(|m| m.value),
        latency_max_ns: told.iter().filter_map(|s| Some(s.latency_ns?.1)).max(),
        runs: told.len(),
        memory_bytes: setting.memory_bytes(),
        cpu_ns_per_mib: lane.and_then(Lane::cpu_ns_per_byte).map(|ns| ns * MIB as f64),
        result,
        setting: setting.clone(),
    }
}

/// The search of a record. One that ran to its end has winners, also where an earlier version ended it by another rule.
fn searched<'g>(record: &Record, grid: &'g Grid, runs: &[Sample]) -> Search<'g> {
    let plan = &record.header.plan;
    let mut search = Search::after(grid, plan.runs, plan.seed, runs);
    if record.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete) {
        search.close();
    }
    search
}

fn work(
    (grid, search): (&Grid, &Search),
    race: &Race,
    cells: &[CellFigures],
    of: impl Fn(&Lane) -> Option<CellFigures>,
) -> Work {
    let winner = race.winner();
    let choice = choice((grid, search), race);
    let cheapest = race.cheapest().filter(|c| winner.is_none_or(|w| w.job != c.job));
    let by_winner = |lane: &Lane| ratio(race.by, winner?.told_by(), lane.told_by());
    let losses = race.baselines.iter().filter_map(|lane| {
        let name = grid.baselines.iter().find(|y| y.job == lane.job)?.name.clone();
        Some(Loss { name, cell: of(lane)?, by_winner: by_winner(lane) })
    });
    // Most cells were measured once: what they say of an axis is no better than a run.
    let best = winner
        .filter(|_| race.spread().is_some_and(|s| s <= MOST_SPREAD) && race.fall().is_none())
        .and_then(|w| grid.setting(w.job));
    let mine: Vec<&CellFigures> = cells.iter().filter(|c| c.setting.work() == race.work).collect();
    Work {
        name: race.work.clone(),
        by: shown_by(grid, &race.work),
        decided: choice.chosen == Chosen::Fastest,
        chosen: choice.chosen,
        faster_at_most: choice.faster_at_most,
        sentence: choice.sentence,
        rivals: choice.rivals,
        runs: race.lanes.iter().map(|l| l.logs.len() + l.fresh.len()).sum(),
        cheapest_by_winner: cheapest.and_then(by_winner),
        baselines: losses.collect(),
        spread: race.spread(),
        knees: best.map_or_else(Vec::new, |b| knees((race.by, grid.tolerance), b, &mine)),
    }
}

/// What takes the number of a cell away, but for what others did to the machine (checks D): cells are measured in turns, so that it did the same to
/// all of them.
fn voided_by(of: &CaseAnswers) -> impl Iterator<Item = CheckId> {
    of.void_by().filter(|id| id.group() != 'D')
}

/// This work, left undecided where a finding takes the number of its winner away: whatever it was compared by is none.
fn withheld(work: Work, voided: Option<&CaseAnswers>) -> Work {
    let Some(of) = voided.filter(|_| matches!(work.chosen, Chosen::Fastest | Chosen::Tied)) else {
        return work;
    };
    let ids: Vec<String> = voided_by(of).map(|id| id.to_string()).collect();
    let sentence = format!("{} that looked best has no number ({})", of.case.job.name, ids.join(", "));
    Work {
        decided: false,
        chosen: Chosen::CannotTell,
        sentence,
        rivals: Vec::new(),
        knees: Vec::new(),
        ..work
    }
}

/// What a work is told by. Earlier versions ranked by bytes per second, which is the same order where all operations have one size.
fn shown_by(grid: &Grid, work: &str) -> Measure {
    if let Some(said) = grid.measures.get(work) {
        return *said;
    }
    let mine = || grid.cells.iter().map(|c| &c.setting).filter(|s| s.work() == work);
    let first = mine().next();
    let one_size = mine().all(|s| Some(s.block_bytes) == first.map(|f| f.block_bytes));
    let random = first.is_some_and(|s| s.spec.is_some() || s.is_random());
    if random && one_size { Measure::Iops } else { Measure::Bandwidth }
}

/// One value by another; `None` where one has fewer than three runs.
fn ratio(by: Measure, base: &[f64], other: &[f64]) -> Option<Estimate> {
    let shift = Shift::new(base, other)?;
    let (value, [low, high]) = (shift.delta, shift.interval());
    // The better of two latencies has the higher score and the lower value.
    let (value, interval) = if by.is_latency() { (-value, [-high, -low]) } else { (value, [low, high]) };
    Some(Estimate { value: value.exp(), interval: interval.map(f64::exp) })
}

/// From where on the axes that rise gain nothing in rate; how low a latency is rises with most of them, and has none.
fn knees((by, tolerance): (Measure, f64), winner: &Setting, cells: &[&CellFigures]) -> Vec<Knee> {
    if by.is_latency() {
        return Vec::new();
    }
    let scales = AXES.iter().filter_map(|axis| Some((axis.name, axis.scale?)));
    scales.filter_map(|(name, scale)| knee((name, scale), (by, tolerance), winner, cells)).collect()
}

/// From where on an axis gains nothing, everything else as the winner has it.
fn knee(
    (axis, scale): (&str, Scale),
    (by, tolerance): (Measure, f64),
    winner: &Setting,
    cells: &[&CellFigures],
) -> Option<Knee> {
    let fixed = (scale.without)(winner);
    let along = cells.iter().filter(|c| (scale.without)(&c.setting) == fixed);
    let mut points: Vec<(u32, f64)> =
        along.filter_map(|c| Some(((scale.of)(&c.setting)?, c.value(by)?))).collect();
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
            "{axis} beyond {} gains less than {} (looked at up to {}).",
            (scale.show)(value),
            show_share(tolerance),
            (scale.show)(last)
        ),
    })
}

/// A line through the logarithms of the reference's rates over the time of the sweep.
fn reference(grid: &Grid, job: usize, runs: &[Sample]) -> Option<Reference> {
    let mut at = 0.0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for run in runs {
        at += run.took_ns as f64;
        points.extend(run.bytes_per_s.filter(|_| run.job == job).map(|rate| (at, rate.ln())));
    }
    if points.len() < FEWEST_LOOKS {
        return None;
    }
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let squares: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / squares;
    let rest: f64 = points.iter().map(|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sum();
    let half = student::factor(n - 2.0)? * (rest / (n - 2.0) / squares).sqrt() * at;
    let whole = slope * at;
    let change = |log: f64| log.exp_m1();
    let interval = [change(whole - half), change(whole + half)];
    if !interval.iter().all(|v| v.is_finite()) {
        return None;
    }
    Some(Reference {
        setting: grid.setting(job)?.clone(),
        runs: points.len(),
        change: Estimate { value: change(whole), interval },
        drifted: interval[0] > grid.tolerance || interval[1] < -grid.tolerance,
    })
}

/// The results that the conclusions rest on, each once.
pub(crate) fn finalists<'m>(sweep: &Sweep, results: &'m [Measured]) -> Vec<&'m Measured> {
    let only = || sweep.works.iter().filter_map(|w| sweep.only_cell(&w.name));
    let cells = || sweep.winner.values().chain(sweep.cheapest.values()).chain(only());
    // A job of several streams has several results, and the cell names the first.
    let first = |r: &Measured| cells().filter_map(|c| results.get(c.result?)).any(|first| first.job == r.job);
    results.iter().filter(|r| sweep.is_in_order() || first(r)).collect()
}

/// The cell that is quoted: the winner of the first work that has one. In order none wins: there it is the tracked one, or the
/// one of most operations a second that holds.
fn best<'s>(sweep: &'s Sweep, results: &[Measured]) -> Option<&'s CellFigures> {
    if let Some(rounds) = &sweep.rounds {
        return sweep.cells.iter().find(|c| c.setting == rounds.tracked && c.result.is_some());
    }
    if sweep.is_in_order() {
        let void = |c: &CellFigures| c.result.and_then(|at| results.get(at)).is_none_or(|r| r.void);
        let measured = || sweep.cells.iter().filter(|c| c.result.is_some());
        let most = measured().filter(|c| c.iops.is_some() && !void(c));
        // Of equals the first, which is the smallest.
        let more =
            |a: &&CellFigures, b: &&CellFigures| a.iops.partial_cmp(&b.iops).unwrap_or(Ordering::Equal);
        return most.rev().max_by(more).or(measured().next());
    }
    sweep.works.iter().find_map(|w| sweep.winner.get(&w.name).or_else(|| sweep.only_cell(&w.name)))
}

/// Its result.
pub(crate) fn first<'m>(sweep: &Sweep, results: &'m [Measured]) -> Option<&'m Measured> {
    results.get(best(sweep, results)?.result?)
}

/// Why means over rounds are not those of a steady state, where rounds were to end in one.
pub(crate) fn unsteady(sweep: &Sweep) -> Option<String> {
    let rounds = sweep.rounds.as_ref().filter(|r| r.bytes_wanted.is_none())?;
    let met = rounds.rule.is_some_and(|rule| rule.met);
    (!met).then(|| {
        format!(
            "the tracked cell was not steady after {} rounds by the SNIA's rule, so these are no figures of a steady state.",
            rounds.by_round.len()
        )
    })
}

/// Which setting is the best and how sure that is, of the work that is quoted; `None` where nothing was sought.
pub(crate) fn answer(sweep: &Sweep) -> Option<Answer> {
    let work = sweep.works.first()?;
    let word = match work.chosen {
        Chosen::Fastest => AnswerWord::Fastest,
        Chosen::Tied => AnswerWord::Tied,
        Chosen::CannotTell => AnswerWord::CannotTell,
        Chosen::NoChoice => return None,
    };
    let name = |cell: &CellFigures| format!("{} {}", cell.setting.shape(), cell.setting.way());
    let best = sweep.winner.get(&work.name);
    let value = |cell: &CellFigures| {
        let unit = if work.by.is_latency() { String::new() } else { format!(" {}", work.by.heading()) };
        cell.value(work.by).map_or_else(String::new, |v| format!(": {}{unit}", work.by.show(v)))
    };
    let named = best.map_or_else(String::new, |cell| format!("{}{}; ", name(cell), value(cell)));
    let cheapest = sweep.cheapest.get(&work.name).filter(|c| best.is_some_and(|b| b.setting != c.setting));
    let cheapest = cheapest.map_or_else(String::new, |c| format!(" The cheapest as fast is {}.", name(c)));
    Some(Answer { word, sentence: format!("{}: {named}{}{cheapest}", work.name, work.sentence) })
}

/// The verdict where no cell has won.
pub(crate) fn undecided(sweep: &Sweep) -> (Verdict, String) {
    let none = if sweep.is_in_order() { "No cell was measured." } else { "The grid has no cell." };
    let why = sweep.works.first().map_or(none, |w| w.sentence.as_str());
    (Verdict::Invalid, why.into())
}

/// The number that would be quoted: the first work's winner.
pub(crate) fn headline(sweep: &Sweep, results: &[Measured]) -> Headline {
    let nothing = Headline {
        name: "nothing".into(),
        value: None,
        unit: "MB/s".into(),
        interval: None,
        accepted: Vec::new(),
    };
    let Some((cell, result)) = best(sweep, results).zip(first(sweep, results)) else {
        return nothing;
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
        accepted: Vec::new(),
    }
}

/// What a cell is quoted by: what its work is ranked by, and in order, where none is, what its access is about.
fn quoted_by(sweep: &Sweep, cell: &CellFigures, result: &Measured) -> Measure {
    let name = cell.setting.work();
    let work = sweep.works.iter().find(|w| w.name == name).filter(|_| !sweep.is_in_order());
    let stream = result.job.phases.first().and_then(|p| p.streams.first());
    let random = stream.is_some_and(|s| s.access.pattern() == Some(Pattern::Random));
    work.map_or(if random { Measure::Iops } else { Measure::Bandwidth }, |work| work.by)
}

/// What several cells say together: from which size on it does not matter that offsets are random, and what the position does.
pub(crate) fn deduce(sweep: &Sweep) -> Vec<Deduction> {
    let mut out: Vec<Deduction> = sweep.works.iter().filter_map(|w| position::cost(sweep, w)).collect();
    for (sequential, random) in [("read", "randread"), ("write", "randwrite")] {
        out.extend(cost_of_random(sweep, sequential, random));
    }
    out
}

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
    let words = |size: u32| show_block(u64::from(size));
    let below = if at == 0 {
        format!("also at {}, the smallest size that was measured", words(size))
    } else {
        format!("at {} {} is left of it", words(smallest), show_share(share))
    };
    Some(Deduction {
        name: "cost of random".into(),
        sentence: format!(
            "{random} is as fast as {sequential} from {} on, each at its best setting; {below}.",
            words(size)
        ),
        evidence: crate::checks::evidence([("bytes", f64::from(size)), ("share_at_smallest", share)]),
    })
}

#[cfg(test)]
mod tests;
