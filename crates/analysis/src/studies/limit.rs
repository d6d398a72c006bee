//! The conclusions of `fathom limit`: a row for each load, the knee, and the highest load that
//! meets the latency target.
//!
//! 1. A load meets the target if its runs prove that the latency from the scheduled start,
//!    including fathom's own lateness, is within the target.
//! 2. A load misses the target if its runs prove that the service time alone is beyond the target,
//!    or that the storage is overloaded.
//! 3. Each proof is strict enough that at most 5 % of all searches err (`strategy::limit`).
//! 4. The answer is the highest load that meets the target below the lowest that misses it. Without
//!    a target, the answer is the latency at 70 % of the capacity.

use super::{Conclusion, GatedResult, Question, Subject};
use crate::case::CaseRun;
use crate::checks::most_iops;
use crate::figures::{PERCENTILES, is_late};
use crate::findings::{self, CaseAnswers};
use crate::runs::{Summary, capacity_of, summaries};
use crate::strategy::limit::{self as strategy, MeasuredLoad};
use crate::verdict::{Judged, ReasonedVerdict, ReportHead, limiter_of};
use model::finding::{CheckId, Checked, Outcome};
use model::histogram::{FEWEST_ABOVE_PERCENTILE, Histogram};
use model::job::Kind;
use model::plan::LatencyTarget;
use model::record::Record;
use model::report::{AnswerWord, Headline, Measured, ReportAnswer, Verdict};
use model::study::{Knee, LoadCurve, LoadPoint, LoadState, MetLoad, Studied, UndecidedReason};
use model::units::{show_count, show_ns, show_share};
use stats::{intervals, knee};
use std::collections::BTreeMap;

/// Share of the capacity at which the latency is quoted if the user set no latency target.
const QUOTED_SHARE: f64 = 0.7;

/// A load is quoted if it is at most this far from the share [`QUOTED_SHARE`] of the capacity.
const MAX_DISTANCE_FROM_QUOTED: f64 = 0.02;

/// The number of random arrivals varies, so an advised run has time for this many times the operations that it needs.
const SPARE_OPERATIONS: f64 = 1.2;

/// Up to this ratio of the missed load to the met load, the answer is narrow, and it does not mention an open load in between.
const NARROW_RATIO: f64 = 1.05;

impl Question for LatencyTarget {
    fn conclude(&self, judged: &Judged) -> Studied {
        // One of several hosts has only a part of each load, so it has no curve.
        if judged.record.header.plan.fleet_rank.is_some() && judged.record.fleet.is_none() {
            return Studied::Jobs;
        }
        build_curve(judged.record, self, judged.answered, judged.results).into()
    }

    /// Two kinds of findings are expected: that a load is an overload or was submitted late, and
    /// that the closed loop hides the tail. At the load whose latency is the headline, overload and
    /// lateness are not expected, because they are part of the quoted number.
    fn is_expected(&self, record: &Record, answered: &[CaseAnswers], finding: &Checked) -> bool {
        if finding.outcome != Outcome::Finding {
            return false;
        }
        let is_about_loads = match finding.id {
            CheckId::E10 | CheckId::E11 => true,
            CheckId::E09 => false,
            _ => return false,
        };
        let capacity = capacity_of(record).filter(|_| self.latency_ns.is_none());
        let is_quoted = |offered: u64| {
            capacity.is_some_and(|c| (offered as f64 / c - QUOTED_SHARE).abs() <= MAX_DISTANCE_FROM_QUOTED)
        };
        let is_shown = |a: &CaseAnswers| match a.case.offered_iops {
            Some(offered) => is_about_loads && !is_quoted(offered),
            None => !is_about_loads,
        };
        let is_shown_result = |name: &String| answered.iter().any(|a| a.case.name == *name && is_shown(a));
        finding.about.iter().all(is_shown_result)
    }

    fn why_expected(&self) -> &'static str {
        "do not count for the verdict, because `fathom limit` offers high loads on purpose, and its bounds include the lateness"
    }
}

impl Conclusion for LoadCurve {
    /// Returns the results of the capacity and of the loads up to the first that missed the target. Loads beyond it are
    /// not quoted.
    fn quoted<'m>(&self, results: &'m [Measured]) -> Vec<&'m Measured> {
        let first_miss = self.latency_target.as_ref().and_then(|p| p.missed_iops).unwrap_or(u64::MAX);
        let loads = self.points.iter().filter(|p| p.offered_iops <= first_miss).map(|p| p.result);
        let quoted: Vec<usize> = self.capacity_result.into_iter().chain(loads).collect();
        results.iter().enumerate().filter(|(at, _)| quoted.contains(at)).map(|(_, result)| result).collect()
    }

    fn headline_results(&self) -> Option<&[usize]> {
        Some(&self.headline_results)
    }

    /// Returns the head of the report, about the load that the answer depends on.
    fn head(&self, judged: &Judged, quoted: &[&Measured]) -> ReportHead {
        let headline = build_headline(judged.record, self, judged.answered);
        let first = self.headline_results.first().and_then(|at| judged.results.get(*at));
        let mut head = judged.head_about(headline, first, quoted);
        if head.headline.value.is_none() {
            head.verdict = ReasonedVerdict::new(Verdict::Invalid, self.sentence.clone());
            // Without an answer, the number of valid loads does not matter.
            head.counts.sentence = None;
        }
        // Nothing limits a load below the capacity; the limiter is that of the closed loop.
        ReportHead { limiter: limiter_of(judged.headline_job_result()), ..head }
    }

    fn answer(&self) -> Option<ReportAnswer> {
        let met = self.latency_target.as_ref()?;
        let word = match (met.met_iops, met.missed_iops, find_open_loads(self, met).next()) {
            (Some(_), ..) => AnswerWord::Met,
            (None, Some(_), None) => AnswerWord::Missed,
            (None, ..) => AnswerWord::CannotTell,
        };
        Some(ReportAnswer { word, sentence: self.sentence.clone() })
    }

    fn subject(&self, _record: &Record, _answered: &[CaseAnswers]) -> Subject<'_> {
        let capacity = || self.capacity_result.map(GatedResult::with_all_runs).into_iter().collect();
        self.latency_target
            .as_ref()
            .map_or_else(|| Subject::Results(capacity()), |target| Subject::Load(self, target))
    }
}

/// Makes a row for each offered load, the knee, and the answer about the latency target.
fn build_curve(
    record: &Record,
    latency_target: &LatencyTarget,
    answered: &[CaseAnswers],
    results: &[Measured],
) -> LoadCurve {
    // Each of several hosts has a limit for its part of the load.
    let limit_iops = answered.iter().find_map(|a| most_iops(&a.case)).filter(|_| record.fleet.is_none());
    let done = [false, true].into_iter().flat_map(|loads| summaries(record, loads));
    let done: Vec<_> = done.map(|run| Summary { limit_iops, ..run }).collect();
    let measured = strategy::points(&done, latency_target);
    let capacity_result =
        answered.iter().position(|a| a.case.offered_iops.is_none() && !a.case.runs.is_empty());
    let closed = capacity_result.and_then(|i| results.get(i)).filter(|r| !r.void);
    let total = closed.and_then(|r| r.total.as_ref());
    let capacity_iops = total.map(|t| limit_iops.map_or(t.iops, |limit| t.iops.min(limit)));
    let mut points: Vec<LoadPoint> = Vec::new();
    for (result, (answered, figures)) in answered.iter().zip(results).enumerate() {
        let Some(point) = measured.iter().find(|p| Some(p.offered) == answered.case.offered_iops) else {
            continue;
        };
        let built = build_point(answered, figures, point, latency_target);
        let share = capacity_iops.map(|c| point.offered as f64 / c);
        points.push(LoadPoint { result, share, ..built });
    }
    let sound = measured.into_iter().filter(|p| !is_void(&points, p.offered)).collect::<Vec<_>>();
    // Without a curve, the loads of a search are too far apart to show a knee.
    let curve = if latency_target.curve { strategy::curve_points(&sound) } else { Vec::new() };
    let knee = knee::find_knee(&curve).map(|k| Knee {
        iops: k.iops,
        share: capacity_iops.map(|c| k.iops / c),
        reached: k.reached,
    });
    let curve = LoadCurve {
        capacity_iops,
        capacity_interval: total.and_then(|t| t.iops_interval),
        capacity_result,
        knee,
        latency_target: latency_target
            .latency_ns
            .map(|latency_ns| find_met_load(&points, latency_target, latency_ns)),
        points,
        sentence: String::new(),
        headline_results: Vec::new(),
    };
    let quoted = find_quoted_load(&curve);
    let (answer_point, sentence) = match &curve.latency_target {
        Some(met) => {
            let end = met.met_iops.or(met.missed_iops);
            (end.and_then(|iops| point_at(&curve, iops)), describe_target(&curve, met, &sound))
        }
        None => (quoted, describe_quoted_latency(quoted, &percentile_name(latency_target.quantile))),
    };
    let headline_results = answer_point.map_or(capacity_result, |p| Some(p.result)).into_iter().collect();
    LoadCurve { headline_results, sentence, ..curve }
}

fn is_void(points: &[LoadPoint], offered: u64) -> bool {
    points.iter().any(|p| p.offered_iops == offered && p.state == LoadState::Void)
}

/// Builds the point of a load. The caller sets the index of its result and its share of the capacity.
fn build_point(
    answered: &CaseAnswers,
    figures: &Measured,
    point: &MeasuredLoad,
    latency_target: &LatencyTarget,
) -> LoadPoint {
    let late = merge_lateness(answered);
    let is_invalid = answered.void_by().any(|id| id != CheckId::E10 && id != CheckId::E11);
    let mut state = match () {
        () if is_invalid => LoadState::Void,
        () if answered.is_void() || point.is_overloaded(latency_target) => LoadState::Overload,
        () => LoadState::Served,
    };
    let served = state == LoadState::Served;
    let percentiles = |all: &Histogram| -> BTreeMap<String, Option<u64>> {
        let value = |q: f64| all.supported_quantile_ns(q).filter(|_| served);
        PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), value(*q))).collect()
    };
    let percentiles_ns = percentiles(&point.latency);
    let spoiled = |(name, q): &(&str, f64)| percentiles_ns[*name].is_some_and(|ns| is_late(ns, &late, *q));
    if PERCENTILES.iter().any(spoiled) {
        state = LoadState::Late;
    }
    let achieved = || figures.total.as_ref().filter(|_| state != LoadState::Void);
    let depths: Vec<f64> = figures.runs.iter().filter_map(|r| Some(r.device?.depth_mean)).collect();
    LoadPoint {
        result: 0,
        offered_iops: point.offered,
        achieved_iops: achieved().map(|t| t.iops),
        achieved_interval: achieved().and_then(|t| t.iops_interval),
        share: None,
        runs: figures.runs.len() as u32,
        mean_ns: point.latency.mean_ns().filter(|_| served),
        percentile_intervals_ns: percentile_intervals(answered, &percentiles_ns),
        service_percentiles_ns: percentiles(&point.service),
        percentiles_ns,
        lateness_p99_ns: late.quantile_ns(0.99),
        device_depth: (!depths.is_empty()).then(|| depths.iter().sum::<f64>() / depths.len() as f64),
        state,
        met: match state {
            LoadState::Void => None,
            // A backlog that grows (E11) is overload too, even if the runs were too short to leave operations unserved.
            LoadState::Overload => point.overload_meets(latency_target),
            LoadState::Served | LoadState::Late => point.meets(latency_target),
        },
    }
}

/// Returns the 95 % interval of each percentile in ns, by its name. Leaves out percentiles that
/// have no value, or none in some run.
fn percentile_intervals(
    answered: &CaseAnswers,
    known: &BTreeMap<String, Option<u64>>,
) -> BTreeMap<String, [f64; 2]> {
    let runs: Vec<Histogram> = answered.case.runs.iter().map(merge_latencies).collect();
    let interval_of = |(name, q): &(&str, f64)| {
        known.get(*name).copied().flatten()?;
        let values: Option<Vec<f64>> =
            runs.iter().map(|run| run.supported_quantile_ns(*q).map(|ns| ns as f64)).collect();
        Some(((*name).to_owned(), intervals::mean(&values?)?.interval?))
    };
    PERCENTILES.iter().filter_map(interval_of).collect()
}

/// Returns the latencies of a run, without syncs.
fn merge_latencies(ran: &CaseRun) -> Histogram {
    let mut merged = Histogram::new();
    let moving = ran.stream.kinds.iter().filter(|(kind, _)| **kind != Kind::Sync);
    moving.for_each(|(_, end)| merged.merge(&end.latency));
    merged
}

/// Returns the lateness of the submissions of all directions.
fn merge_lateness(answered: &CaseAnswers) -> Histogram {
    let mut merged = Histogram::new();
    let parts = [Kind::Read, Kind::Write, Kind::Trim].into_iter();
    parts.filter_map(|k| answered.case.open_loop(k)).for_each(|part| merged.merge(&part.lateness));
    merged
}

/// Returns the lowest load that missed the target, and the highest load below it that met the
/// target.
fn find_met_load(points: &[LoadPoint], latency_target: &LatencyTarget, latency_ns: u64) -> MetLoad {
    let loads_that = |met: bool| points.iter().filter(move |p| p.met == Some(met)).map(|p| p.offered_iops);
    let missed_iops = loads_that(false).min();
    let met_iops = loads_that(true).filter(|iops| missed_iops.is_none_or(|missed| *iops < missed)).max();
    MetLoad { percentile: percentile_name(latency_target.quantile), latency_ns, met_iops, missed_iops }
}

/// Returns the name of a percentile without its `p`.
fn percentile_name(quantile: f64) -> String {
    let named = PERCENTILES.iter().find(|(_, q)| (q - quantile).abs() < 1e-9);
    named.map_or_else(|| (100.0 * quantile).to_string(), |(name, _)| (*name).to_owned())
}

/// Returns the point of a load.
fn point_at(curve: &LoadCurve, offered: u64) -> Option<&LoadPoint> {
    curve.points.iter().find(|p| p.offered_iops == offered)
}

/// Returns the load nearest to [`QUOTED_SHARE`], whose latency is quoted; `None` if no load is within
/// [`MAX_DISTANCE_FROM_QUOTED`].
fn find_quoted_load(curve: &LoadCurve) -> Option<&LoadPoint> {
    let distance = |p: &LoadPoint| {
        p.share.map(|s| (s - QUOTED_SHARE).abs()).filter(|distance| *distance <= MAX_DISTANCE_FROM_QUOTED)
    };
    let near = curve.points.iter().filter_map(|p| Some((distance(p)?, p)));
    near.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, p)| p)
}

/// `p99 950 us`, with its bounds if lateness matters, or why it has no value.
fn show_latency(point: &LoadPoint, percentile: &str) -> String {
    let service = point.service_percentiles_ns.get(percentile).copied().flatten();
    let is_late = point.is_late_at(percentile);
    match (point.percentiles_ns.get(percentile).copied().flatten(), service, point.state) {
        (Some(ns), Some(service), _) if is_late => {
            format!("p{percentile} {} to {}", show_ns(service as f64), show_ns(ns as f64))
        }
        (Some(ns), ..) => format!("p{percentile} {}", show_ns(ns as f64)),
        (None, _, LoadState::Overload) => "overload".into(),
        (None, _, LoadState::Void) => "invalid".into(),
        (None, _, LoadState::Served | LoadState::Late) => format!("too few operations for p{percentile}"),
    }
}

/// Returns the percentage of operations that a percentile allows to be slower: 1 for `99`.
fn allowed_percent(percentile: &str) -> f64 {
    let percent = 100.0 - percentile.parse::<f64>().unwrap_or(99.0);
    // Remove the error of the subtraction.
    (percent * 1e6).round() / 1e6
}

/// States how many operations a percentile needs, and the length of runs that have them at this load.
fn advise_longer_runs(point: &LoadPoint, percentile: &str) -> String {
    let needed = 100.0 * FEWEST_ABOVE_PERCENTILE / allowed_percent(percentile);
    let rate = point.offered_iops.max(1) as f64 * f64::from(point.runs.max(1));
    let seconds = (SPARE_OPERATIONS * needed / rate).ceil();
    format!("p{percentile} needs {} operations; use --time {seconds:.0}s or longer", show_count(needed))
}

/// States the bounds by which a load was judged. They are rounded outward, so that the text does not contradict the answer.
fn describe_bounds(point: &MeasuredLoad, target: &MetLoad) -> Option<String> {
    let [low, high] = point.slow_share(0)?;
    let (low, high) = ((1e4 * low).floor() / 1e2, (1e4 * high).ceil() / 1e2);
    Some(format!(
        "{low:.2} to {high:.2} % of its operations take longer than {} (each bound with {} confidence), and p{} allows {} %",
        show_ns(target.latency_ns as f64),
        show_share(strategy::CONFIDENCE),
        target.percentile,
        allowed_percent(&target.percentile)
    ))
}

fn describe_target(curve: &LoadCurve, found: &MetLoad, measured: &[MeasuredLoad]) -> String {
    let target = format!("p{} within {}", found.percentile, show_ns(found.latency_ns as f64));
    let load = |p: &LoadPoint| {
        // Runs with too few operations for the percentile may still prove that it is above or within the target.
        let latency = match p.met.filter(|_| p.has_too_few_operations(&found.percentile)) {
            Some(true) => target.clone(),
            Some(false) => format!("p{} above {}", found.percentile, show_ns(found.latency_ns as f64)),
            None => show_latency(p, &found.percentile),
        };
        format!("{} operations/s ({latency})", show_count(p.offered_iops as f64))
    };
    let [met, missed] =
        [found.met_iops, found.missed_iops].map(|iops| iops.and_then(|iops| point_at(curve, iops)));
    // The open load that most is known about: on storage that is not steady, the next load above the answer often has one run only.
    let most_known =
        find_open_loads(curve, found).max_by_key(|p| (p.runs, std::cmp::Reverse(p.offered_iops)));
    let invalid = curve.points.iter().filter(|p| p.state == LoadState::Void).count();
    let open = |p: &LoadPoint| {
        let why = p.undecided_reason(found).map_or_else(String::new, |why| {
            let [_, reason, advice] = why.describe();
            let bounds =
                || describe_bounds(measured.iter().find(|point| point.offered == p.offered_iops)?, found);
            match why {
                UndecidedReason::FewOperations => {
                    format!("its runs are too short, because {}", advise_longer_runs(p, &found.percentile))
                }
                UndecidedReason::MayMeet | UndecidedReason::MayMiss => {
                    format!("{}; {advice}", bounds().unwrap_or_else(|| reason.into()))
                }
                UndecidedReason::Lateness | UndecidedReason::OneRun | UndecidedReason::Overload => {
                    format!("{reason}; {advice}")
                }
            }
        });
        format!("{} is open: {why}", load(p))
    };
    match (met, missed, most_known) {
        (Some(met), Some(missed), between) => {
            let is_narrow = missed.offered_iops as f64 <= NARROW_RATIO * met.offered_iops as f64;
            let between = between.filter(|_| !is_narrow);
            let open = between.map_or_else(String::new, |p| format!(" In between, {}.", open(p)));
            format!("Highest load that meets {target}: {}; {} misses it.{open}", load(met), load(missed))
        }
        (Some(met), None, Some(next)) => {
            format!("{target} is met at {} and below; {}.", load(met), open(next))
        }
        (Some(met), None, None) => {
            format!("{target} is met at {}, the highest load that was offered.", load(met))
        }
        (None, Some(missed), None) => {
            format!("No offered load meets {target}; {} misses it.", load(missed))
        }
        (None, Some(missed), Some(next)) => {
            format!(
                "{} misses {target}; below it, no load is proven to meet it: {}.",
                load(missed),
                open(next)
            )
        }
        (None, None, _) if 2 * invalid > curve.points.len() => {
            let loads = match curve.points.len() {
                all if all == invalid => "all loads".into(),
                all => format!("{invalid} of {all} loads"),
            };
            format!(
                "Findings invalidate {loads}, so nothing is known about {target}; the findings name what to change."
            )
        }
        (None, None, Some(next)) if invalid > 0 => format!(
            "Findings invalidate {invalid} of {} loads and name what to change. No other load is proven to meet {target} or to miss it: {}.",
            curve.points.len(),
            open(next)
        ),
        (None, None, Some(next)) => {
            format!("No load is proven to meet {target} or to miss it: {}.", open(next))
        }
        (None, None, None) => {
            format!(
                "No load was offered, so nothing is known about {target}: the session ended early, or the closed loop completed nothing."
            )
        }
    }
}

/// Returns the open loads between the answer and the first miss: their runs prove neither that the load meets the target nor that it misses
/// the target.
fn find_open_loads<'c>(curve: &'c LoadCurve, met: &MetLoad) -> impl Iterator<Item = &'c LoadPoint> {
    let least = met.met_iops.map_or(0, |met| met + 1);
    let end = met.missed_iops.unwrap_or(u64::MAX);
    let between = curve.points.iter().filter(move |p| (least..end).contains(&p.offered_iops));
    between.filter(|p| p.met.is_none() && p.state != LoadState::Void)
}

fn describe_quoted_latency(quoted: Option<&LoadPoint>, percentile: &str) -> String {
    let Some(point) = quoted else {
        return format!("p{percentile} at {} of the capacity was not measured.", show_share(QUOTED_SHARE));
    };
    let load = show_count(point.offered_iops as f64);
    let mut latency = show_latency(point, percentile);
    if point.has_too_few_operations(percentile) {
        latency += &format!("; {}", advise_longer_runs(point, percentile));
    }
    format!("At {} of the capacity ({load} operations/s): {latency}.", show_share(QUOTED_SHARE))
}

/// Returns the number to quote: the highest rate that meets the latency target, otherwise a latency with its load.
fn build_headline(record: &Record, curve: &LoadCurve, answered: &[CaseAnswers]) -> Headline {
    let on = curve.headline_results.first().copied().or(curve.capacity_result).and_then(|i| answered.get(i));
    let work = on.map_or_else(|| "nothing".into(), |a| findings::describe_work(&a.case, &a.renames()));
    if let Some(met) = &curve.latency_target {
        let limit = show_ns(met.latency_ns as f64);
        return Headline {
            name: format!("highest rate with p{} <= {limit}, {work}", met.percentile),
            value: met.met_iops.map(|iops| iops as f64),
            unit: "IOPS".into(),
            ..Headline::default()
        };
    }
    let percentile =
        percentile_name(record.header.plan.study.latency_target().map_or(0.99, |target| target.quantile));
    let point = find_quoted_load(curve);
    let load = point.map_or_else(String::new, |p| format!(" ({}/s)", show_count(p.offered_iops as f64)));
    Headline {
        name: format!("p{percentile} at {} of capacity{load}, {work}", show_share(QUOTED_SHARE)),
        value: point
            .and_then(|p| p.percentiles_ns.get(&percentile).copied().flatten())
            .map(|ns| ns as f64 / 1e3),
        unit: "us".into(),
        ..Headline::default()
    }
}

#[cfg(test)]
use crate::fixture::{Fixture, curve};
#[cfg(test)]
use crate::{Judging, exit_code, judge};
#[cfg(test)]
use model::report::Report;

/// Loads up to a capacity of 10,000, each with its latency; all are served and submitted 1 us late.
#[cfg(test)]
fn loads(measured: &[(u64, u64)]) -> Vec<(u64, Fixture)> {
    let load = |(iops, latency_ns): &(u64, u64)| {
        let depth_seen = *iops as f64 * *latency_ns as f64 / 1e9;
        let fixture =
            Fixture { ops: *iops, latency_ns: Some(*latency_ns), depth_seen, ..Fixture::honest_open() };
        (*iops, fixture)
    };
    measured.iter().map(load).collect()
}

#[cfg(test)]
const MEASURED: [(u64, u64); 4] = [(2_000, 100_000), (5_000, 150_000), (7_000, 400_000), (9_000, 2_000_000)];

#[cfg(test)]
fn curve_of(report: &Report) -> &LoadCurve {
    report.study.curve().unwrap()
}

#[cfg(test)]
fn judged(loads: &[(u64, Fixture)]) -> Report {
    judge(&curve(&Fixture::honest(), loads), &Judging::default())
}

#[test]
fn the_highest_load_that_meets_the_target_is_the_headline() {
    let report = judged(&loads(&MEASURED));
    let load = curve_of(&report);
    assert_eq!(
        load.latency_target.as_ref().map(|p| (p.met_iops, p.missed_iops)),
        Some((Some(7_000), Some(9_000)))
    );
    assert_eq!((report.headline.value, report.headline.unit.as_str()), (Some(7_000.0), "IOPS"));
    assert_eq!(report.headline.name, "highest rate with p99 <= 1.00 ms, 4K random read, direct");
    assert_eq!((load.headline_results.as_slice(), load.capacity_result), ([3].as_slice(), Some(0)));
    assert!((load.points[2].share.unwrap() - 0.7).abs() < 1e-9 && load.points[2].device_depth.is_some());
    let (p99, [low, high]) =
        (load.points[2].percentiles_ns["99"].unwrap() as f64, load.points[2].percentile_intervals_ns["99"]);
    assert!(low <= 1.01 * p99 && p99 <= 1.01 * high && load.points[2].achieved_interval.is_some());
    assert!(
        load.sentence.contains("7,000 operations/s (p99 ") && load.sentence.contains("9,000"),
        "{}",
        load.sentence
    );
    // Power is greatest at 5,000. At all other loads it is far lower.
    assert!((load.knee.unwrap().iops - 5_000.0).abs() < 1.0 && load.knee.unwrap().reached);
    assert_eq!((report.verdict, exit_code(&report)), (Verdict::Valid, 0), "{}", report.verdict_reason);
}

#[test]
fn a_load_above_a_cgroup_limit_is_never_the_answer() {
    let answer = |riops: &str| {
        let mut record = curve(&Fixture::honest(), &loads(&MEASURED));
        let text = format!("/c/io.max: 254:0 rbps=max wbps=max riops={riops} wiops=max");
        record.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text));
        let report = judge(&record, &Judging::default());
        let load = curve_of(&report);
        let met = load.latency_target.as_ref().and_then(|met| met.met_iops);
        (met, load.points[2].state, load.capacity_iops.unwrap() as u64)
    };
    assert_eq!(answer("7000"), (Some(7_000), LoadState::Served, 7_000));
    assert_eq!(answer("6900"), (Some(5_000), LoadState::Overload, 6_900));
}

#[test]
fn overload_invalidates_only_its_own_load() {
    let mut with = loads(&MEASURED);
    with[3] = (
        12_000,
        Fixture { ops: 10_000, latency_ns: Some(90_000), depth_seen: 0.9, ..Fixture::honest_open() },
    );
    let report = judged(&with);
    let point = curve_of(&report).points.last().unwrap();
    assert_eq!((point.state, point.met, point.mean_ns), (LoadState::Overload, Some(false), None));
    assert!(point.percentiles_ns.values().all(Option::is_none) && point.achieved_iops.is_some());
    assert!(point.percentile_intervals_ns.is_empty(), "what is withheld has no interval");
    let e10 = report.checks.iter().find(|f| f.id == CheckId::E10 && f.outcome == Outcome::Finding).unwrap();
    assert!(e10.accepted && report.notes.iter().any(|n| n.contains("E10")));
    assert_eq!(
        (report.verdict, report.headline.value),
        (Verdict::Valid, Some(7_000.0)),
        "{}",
        report.verdict_reason
    );
}

#[test]
fn an_invalid_load_is_never_the_answer() {
    let mut with = loads(&MEASURED);
    with[2].1.errors = 1;
    let report = judged(&with);
    let load = curve_of(&report);
    assert_eq!((load.points[2].state, load.points[2].met), (LoadState::Void, None));
    assert_eq!(load.latency_target.as_ref().and_then(|p| p.met_iops), Some(5_000));
    assert!(
        report.counts.sentence.as_ref().is_some_and(|s| s.contains("70 %") && s.contains("without a number")),
        "{:?}",
        report.counts
    );
    assert_eq!(exit_code(&report), 1, "a quoted load is invalid");
}

#[test]
fn latency_with_lateness_is_an_upper_bound_and_without_it_a_lower_one() {
    let point = |latency_ns, service_ns| {
        let mut with = loads(&MEASURED);
        let late = Some((9_000.0, Some(latency_ns - service_ns)));
        let seen = 9_000.0 * service_ns as f64 / 1e9;
        with[3].1 =
            Fixture { open_loop: late, latency_ns: Some(latency_ns), depth_seen: seen, ..with[3].1.clone() };
        let report = judged(&with);
        let curve = curve_of(&report);
        let point = curve.points[3].clone();
        (point.met, point.state, point.lateness_share("99").unwrap(), curve.sentence.clone())
    };
    let (met, state, share, sentence) = point(2_000_000, 700_000);
    assert_eq!((met, state), (None, LoadState::Late), "the service time meets it, and the latency does not");
    assert!((share - 0.65).abs() < 0.02 && sentence.contains("p99 700 us to 2.00 ms"), "{share} {sentence}");
    assert!(sentence.contains("--depth"), "{sentence}");
    let (met, state, ..) = point(900_000, 300_000);
    assert_eq!((met, state), (Some(true), LoadState::Late), "in spite of the lateness");
    let (met, state, _, sentence) = point(2_000_000, 1_500_000);
    assert_eq!((met, state), (Some(false), LoadState::Late), "without the lateness too");
    assert!(sentence.contains("p99 1.50 ms to 2.00 ms) misses it"), "{sentence}");
}

#[test]
fn a_backlog_inside_fathom_leaves_a_load_open() {
    let late = Some((7_000.0, Some(300_000)));
    let mut with = loads(&MEASURED);
    with[2].1 = Fixture { open_loop: late, depth_seen: 0.7, ..with[2].1.clone() };
    let mut record = curve(&Fixture::honest(), &with);
    // Latency from the scheduled start grows by 0.6 % of the time, and the service time does not.
    let growing = crate::checks::shaped(&Fixture::honest_open(), 20, 1, |_, _| 7_000.0);
    for run in record.runs.iter_mut().filter(|run| run.start.offered_iops == Some(7_000)) {
        run.intervals.clone_from(&growing.runs[0].intervals);
        for row in &mut run.intervals {
            row.cells.values_mut().for_each(|cell| cell.p50_ns = 100_000 + row.end_ns / 166);
        }
    }
    let report = judge(&record, &Judging::default());
    let point = &curve_of(&report).points[2];
    assert_eq!((point.state, point.met), (LoadState::Overload, None), "{:?}", report.checks);
}

#[test]
fn a_load_above_the_first_miss_is_no_answer() {
    let odd = [(2_000, 100_000), (5_000, 1_500_000), (7_000, 400_000), (9_000, 2_000_000)];
    let report = judged(&loads(&odd));
    let latency_target = curve_of(&report).latency_target.as_ref().unwrap();
    assert_eq!(
        (latency_target.met_iops, latency_target.missed_iops),
        (Some(2_000), Some(5_000)),
        "{}",
        report.verdict_reason
    );
    assert_eq!(report.headline.value, Some(2_000.0));
}

#[test]
fn without_a_target_a_latency_is_quoted_with_its_load() {
    let mut record = curve(&Fixture::honest(), &loads(&MEASURED));
    let arrivals = model::job::Arrivals::Poisson;
    super::set_latency_target(
        &mut record,
        LatencyTarget { quantile: 0.99, latency_ns: None, arrivals, curve: true },
    );
    let report = judge(&record, &Judging::default());
    assert_eq!(report.headline.name, "p99 at 70 % of capacity (7,000/s), 4K random read, direct");
    assert!((report.headline.value.unwrap() / 400.0 - 1.0).abs() < 0.01 && report.headline.unit == "us");
    assert!(curve_of(&report).points.iter().all(|p| p.met.is_none()));
    record.runs.retain(|r| r.start.offered_iops != Some(7_000));
    let report = judge(&record, &Judging::default());
    assert_eq!((report.headline.value, exit_code(&report)), (None, 1));
    assert!(report.verdict_reason.contains("70 %"), "{}", report.verdict_reason);
}

#[test]
fn a_target_that_no_load_meets_has_no_number_and_a_reason() {
    let report = judged(&loads(&[(2_000, 3_000_000), (5_000, 4_000_000)]));
    assert_eq!((report.verdict, report.headline.value, exit_code(&report)), (Verdict::Invalid, None, 1));
    assert!(report.verdict_reason.contains("No offered load") && report.verdict_reason.contains("2,000"));
    let undecided = judged(&loads(&[(20, 300_000), (50, 400_000)]));
    assert_eq!(
        (undecided.verdict, undecided.headline.value),
        (Verdict::Invalid, None),
        "met by luck, perhaps"
    );
    assert!(undecided.verdict_reason.contains("--time"), "{}", undecided.verdict_reason);
    let mut invalid = loads(&[(20, 300_000), (50, 400_000), (70, 400_000)]);
    invalid[1..].iter_mut().for_each(|(_, fixture)| fixture.errors = 1);
    let reason = judged(&invalid).verdict_reason;
    assert!(reason.contains("Findings invalidate 2 of 3 loads"), "{reason}");
    // The cause comes before the advice for the others.
    invalid[1].1.errors = 0;
    let reason = judged(&invalid).verdict_reason;
    assert!(
        reason.contains("Findings invalidate 1 of 3 loads") && reason.contains("No other load"),
        "{reason}"
    );
}

#[test]
fn a_load_with_too_few_operations_has_figures_that_agree_with_its_word() {
    let sentence = |loads: &[(u64, u64)]| {
        let report = judged(&self::loads(loads));
        let target = curve_of(&report).latency_target.clone().unwrap();
        (target.met_iops, target.missed_iops, curve_of(&report).sentence.clone())
    };
    // 300 slow operations prove a miss, and 600 fast ones prove that the target is met.
    let (_, missed, text) = sentence(&[(100, 3_000_000), (5_000, 4_000_000)]);
    assert_eq!(missed, Some(100));
    assert!(text.contains("100 operations/s (p99 above 1.00 ms) misses it"), "{text}");
    let (met, _, text) = sentence(&[(200, 300_000)]);
    assert_eq!(met, Some(200));
    assert!(text.contains("200 operations/s (p99 within 1.00 ms)"), "{text}");
    let (_, _, text) = sentence(&[(20, 300_000)]);
    let advice = "its runs are too short, because p99 needs 1,000 operations; use --time 20s or longer";
    assert!(text.contains(advice), "{text}");
}

#[test]
fn a_quoted_latency_with_too_few_operations_has_an_advice() {
    let mut record = curve(&Fixture::honest(), &loads(&MEASURED));
    let arrivals = model::job::Arrivals::Poisson;
    super::set_latency_target(
        &mut record,
        LatencyTarget { quantile: 0.9999, latency_ns: None, arrivals, curve: true },
    );
    let sentence = curve_of(&judge(&record, &Judging::default())).sentence.clone();
    let advice = "too few operations for p99.99; p99.99 needs 100,000 operations; use --time 6s or longer";
    assert!(sentence.contains(advice), "{sentence}");
}

#[test]
fn an_open_load_has_the_bounds_by_which_it_was_judged() {
    // The mean of 7,000 operations is always 400 us.
    for (slow, fast_ns, why) in
        [(100, 376_800, UndecidedReason::MayMeet), (55, 387_300, UndecidedReason::MayMiss)]
    {
        let mut latencies = Histogram::new();
        (0..7_000).for_each(|op| latencies.record(if op < slow { 2_000_000 } else { fast_ns }));
        let mut record = curve(&Fixture::honest(), &loads(&MEASURED));
        for run in record.runs.iter_mut().filter(|run| run.start.offered_iops == Some(7_000)) {
            for end in run.end.as_mut().unwrap().streams[0].kinds.values_mut() {
                end.latency = latencies.clone();
                end.open.as_mut().unwrap().service = latencies.clone();
            }
        }
        let report = judge(&record, &Judging::default());
        let curve = curve_of(&report);
        let point = &curve.points[2];
        assert_eq!(point.undecided_reason(curve.latency_target.as_ref().unwrap()), Some(why), "{point:?}");
        let bounds = "% of its operations take longer than 1.00 ms (each bound with 99 % confidence), and p99 allows 1 %";
        assert!(curve.sentence.contains(bounds), "{}", curve.sentence);
    }
}

#[test]
fn of_the_open_loads_the_one_with_the_most_runs_is_named() {
    let mut latencies = Histogram::new();
    (0..5_000).for_each(|op| latencies.record(if op < 55 { 2_000_000 } else { 130_000 }));
    let measured = [(2_000, 100_000), (4_000, 120_000), (5_000, 150_000), (7_000, 400_000)];
    let sentence_if = |has_answer: bool| {
        let mut record = curve(&Fixture::honest(), &loads(&measured));
        let has_all_runs = |load: Option<u64>| load == Some(5_000) || (has_answer && load == Some(2_000));
        record.runs.retain(|run| run.start.repeat == 0 || has_all_runs(run.start.offered_iops));
        for run in record.runs.iter_mut().filter(|run| run.start.offered_iops == Some(5_000)) {
            for end in run.end.as_mut().unwrap().streams[0].kinds.values_mut() {
                end.latency = latencies.clone();
                end.open.as_mut().unwrap().service = latencies.clone();
            }
        }
        curve_of(&judge(&record, &Judging::default())).sentence.clone()
    };
    let sentence = sentence_if(false);
    let beginning = "No load is proven to meet p99 within 1.00 ms or to miss it: 5,000 operations/s (";
    assert!(sentence.starts_with(beginning), "{sentence}");
    let sentence = sentence_if(true);
    assert!(sentence.starts_with("p99 within 1.00 ms is met at 2,000 operations/s ("), "{sentence}");
    assert!(
        sentence.contains(" and below; 5,000 operations/s ("),
        "the load of 4,000 has one run: {sentence}"
    );
}

#[test]
fn a_curve_that_was_cut_off_keeps_its_loads_and_a_forged_one_does_not_panic() {
    let complete = curve(&Fixture::honest(), &loads(&MEASURED));
    for runs in 0..complete.runs.len() {
        let mut record = complete.clone();
        record.runs.truncate(runs);
        let points = curve_of(&judge(&record, &Judging::default())).points.len();
        assert_eq!(points, runs.saturating_sub(3).div_ceil(3), "{runs} runs");
    }
    let mut forged = complete;
    forged.runs.iter_mut().for_each(|r| r.start.offered_iops = Some(0));
    judge(&forged, &Judging::default());
    forged.header.plan.jobs.truncate(1);
    forged.runs.iter_mut().for_each(|r| (r.start.job, r.start.offered_iops) = (0, Some(u64::MAX)));
    judge(&forged, &Judging::default());
}
