//! The checks of a comparison: questions about two sides. They are in the same catalogue as the checks of one
//! result ([`crate::checks`]).
//!
//! - E14 finds sides that did different work, and names everything else that differs, such as the machine.
//! - E15 compares the difference of the headline with the differences between sessions of one side.
//! - E16 lists numbers that differ according to their own confidence interval, but not after correction for multiple tests.
//! - E18 finds percentiles that were added up, in edited and foreign reports: a percentile of all operations cannot be outside the range of
//!   the same percentile of the single runs.

use crate::checks::prelude::*;
use crate::compare::SideResult;
use crate::threshold::{MARGIN, MARGIN_OF_LONE_SESSIONS};
use crate::{compare, findings};
use model::comparison::{ComparisonAnswer, Metric, Pair};
use model::finding::Checked;
use model::report::{Figures, Measured, Report};
use stats::comparison::SIGNIFICANCE;

/// The checks, in the order of the catalogue.
pub(crate) const CHECKS: &[ComparisonCheck] = &[NOT_ALIKE, NOISE_FLOOR, MULTIPLE_LOOKS, SUM_OF_PEAKS];

/// A question about a comparison.
pub(crate) struct ComparisonCheck {
    /// Catalogue id.
    pub(crate) id: CheckId,
    /// Name, such as `NOT_ALIKE`.
    pub(crate) name: &'static str,
    /// An assumption of the user, which the check tests.
    pub(crate) belief: &'static str,
    /// The texts of the check's page, as in [`crate::checks::Check`].
    pub(crate) reads: &'static str,
    pub(crate) formula: fn() -> String,
    pub(crate) provoke: &'static str,
    pub(crate) fix: &'static str,
    pub(crate) accept: &'static str,
    /// Whether `--accept` can accept the finding.
    pub(crate) acceptable: bool,
    /// The function that answers, with the results that each answer is about.
    ask: fn(&Context) -> Vec<NamedAnswer>,
}

/// An answer, and the results that it is about.
pub(super) type NamedAnswer = (Vec<String>, Known<Answer>);

/// The data of a comparison that the checks read.
pub(super) struct Context<'a> {
    /// The reports of A and of B.
    pub(super) sides: [&'a [Report]; 2],
    /// The name of the side that is compared with A: `B`.
    pub(super) name: &'a str,
    /// The compared pairs with their answers.
    pub(super) pairs: &'a [Pair],
    /// For each pair, the aspects that are unknown on one or both sides.
    pub(super) unknown: Vec<Vec<String>>,
    /// Whether E14 is accepted.
    pub(super) is_accepted: bool,
}

impl<'a> Context<'a> {
    /// Returns the number that decides the comparison.
    fn headline(&self) -> Option<(&'a Pair, &'a Metric)> {
        let pair = self.pairs.iter().find(|p| p.headline)?;
        Some((pair, pair.metrics.first()?))
    }

    /// Returns all numbers except the headline.
    fn others(&self) -> impl Iterator<Item = (&'a Pair, &'a Metric)> {
        let all = self.pairs.iter().flat_map(|p| p.metrics.iter().enumerate().map(move |(i, m)| (p, i, m)));
        all.filter(|(p, i, _)| !(p.headline && *i == 0)).map(|(p, _, m)| (p, m))
    }
}

/// Runs all checks. Equal answers about several results become one finding, and the worst findings come first.
pub(super) fn ask(context: &Context) -> Vec<Checked> {
    let mut out: Vec<Checked> = Vec::new();
    for check in CHECKS {
        for (about, answer) in (check.ask)(context) {
            let Some(mut new) = findings::to_checked(check.id, check.name, check.fix, &answer, about) else {
                continue;
            };
            new.accepted = check.acceptable && context.is_accepted;
            let same =
                |f: &&mut Checked| (f.id, f.outcome, &f.sentence) == (new.id, new.outcome, &new.sentence);
            match out.iter_mut().find(same) {
                Some(old) => old.about.extend(new.about),
                None => out.push(new),
            }
        }
    }
    out.sort_by_key(|f| (f.outcome, f.severity, f.id));
    out
}

const NOT_ALIKE: ComparisonCheck = ComparisonCheck {
    id: CheckId::E14,
    name: "NOT_ALIKE",
    belief: "nothing else differs between the two sides",
    reads: "The jobs of both sides as they ran, the machine, file system and block stack of both, and the \
            findings that invalidate or relabel a result.",
    formula: formula!(
        "Refused, because the work differs: another order, direction, block size, span, first byte, number \
         of targets, depth, workers, cache mode, pace, syncs, data or other setting of the stream, or other \
         concurrent streams. Also refused: a side that a finding invalidates; a side that a finding relabels \
         while the other is not relabelled, such as the page cache (A01) against the device; sessions of one \
         side that differ in anything but accepted findings and the limiter. If one side uses another engine \
         because the default engine was denied there, and nothing else refuses, the answer is CANNOT TELL. \
         Named but not refused: accepted findings (`--accept`) of one side, findings of the groups A and B \
         and D01 that bias one side only, preconditioning, version of fathom, host, kernel, CPU, hypervisor, \
         cgroup limits, file system, mount options, device, its queue, engine, batch, CPUs of the workers, \
         priorities, advice, times, and the limiter of the result (B05, D05, D06, D08, D11). Each of these \
         may be the subject of the comparison. A circumstance that is unknown on one side is not checked."
    ),
    provoke: "fathom run --cache direct -o a.json DIR\n\
              fathom run --cache buffered -o b.json DIR\n\
              fathom compare a.json b.json",
    fix: "Measure both sides alike, or use --accept E14 to compare them anyway.",
    accept: "With --accept E14, the report names the differences, and each answer includes their effect.",
    acceptable: true,
    ask: check_not_alike,
};

fn check_not_alike(context: &Context) -> Vec<NamedAnswer> {
    let mut out = Vec::new();
    for (pair, unknown) in context.pairs.iter().zip(&context.unknown) {
        let mut add = |answer| out.push((vec![pair.name.clone()], answer));
        let findings: Vec<Detail> =
            [find_different_work(pair, context), side_without_number(pair, context), other_differences(pair)]
                .into_iter()
                .flatten()
                .collect();
        if !unknown.is_empty() {
            add(Err(format!("unknown on one or both sides: {}", unknown.join("; "))));
        } else if findings.is_empty() {
            add(holds("Nothing else differs between the two sides.", Evidence::new()));
        }
        for detail in findings {
            add(Ok(Answer::Finding(detail)));
        }
    }
    out
}

fn detail_with_fix(severity: Severity, sentence: String, fix: &str) -> Detail {
    Detail::new(severity, sentence, Evidence::new()).with_fix(fix.to_owned())
}

/// Returns the finding for sides that did different work. If the user accepts it, it relabels the comparison instead of invalidating it.
fn find_different_work(pair: &Pair, context: &Context) -> Option<Detail> {
    let sentence = compare::describe_other_work(&pair.differences, context.name)? + ".";
    Some(if context.is_accepted {
        detail_with_fix(Severity::Relabels, sentence, "")
    } else {
        Detail::new(Severity::Invalidates, sentence, Evidence::new())
    })
}

/// Returns the finding for a side without a number, with several configurations, or with sessions that lack the result.
fn side_without_number(pair: &Pair, context: &Context) -> Option<Detail> {
    let other_work = compare::describe_other_work(&pair.differences, context.name);
    let why = pair.refused.as_ref().filter(|why| other_work.as_ref() != Some(why))?;
    // The reason for a missing number ends with the fix.
    let fix = if pair.no_number { "" } else { "Remove this cause and measure again." };
    Some(detail_with_fix(Severity::Invalidates, format!("{why}."), fix))
}

/// Returns the note on the differences that do not refuse the comparison.
fn other_differences(pair: &Pair) -> Option<Detail> {
    let differences: Vec<String> =
        pair.differences.iter().filter(|d| !d.refuses).map(compare::show_difference).collect();
    let sentence = format!("Other differences between the sides: {}.", differences.join("; "));
    (!differences.is_empty()).then(|| detail_with_fix(Severity::Note, sentence, ""))
}

const NOISE_FLOOR: ComparisonCheck = ComparisonCheck {
    id: CheckId::E15,
    name: "NOISE_FLOOR",
    belief: "two sessions of the same configuration have the same result",
    reads: "The means of the sessions of each side, if a side has several.",
    formula: formula!(
        "The floor is the largest difference between two sessions of one side (from 20 pairs on, the 95th \
         percentile of these differences): both sessions have the same configuration, so this difference \
         occurs without any change. A floor above {margin} replaces that margin, separately for each number. \
         Fires if the difference of the headline is not above the floor. Runs of one session cannot show the floor: \
         changes from one hour to the next, or with a new test file, affect all of them alike. Therefore, \
         if each side is one session, the margin is {lone}, unless you give another.",
        margin = Share(MARGIN),
        lone = Share(MARGIN_OF_LONE_SESSIONS)
    ),
    provoke: "Measure A twice with another load on the disk in between, then `fathom compare A1,A2 B`.",
    fix: "Find what changes between sessions of one configuration, or measure more of them in turns: `fathom \
          compare A1,A2,A3 B1,B2,B3`.",
    accept: "",
    acceptable: false,
    ask: check_noise_floor,
};

fn check_noise_floor(context: &Context) -> Vec<NamedAnswer> {
    let Some((pair, metric)) = context.headline() else { return Vec::new() };
    let about = vec![pair.name.clone()];
    let Some(floor) = metric.floor else {
        let why = format!(
            "each side is one session, so the difference between two sessions of one configuration is \
             unknown, and a change of up to {} counts as no difference; give several sessions on each side: A1,A2,A3 B1,B2,B3",
            show_share(metric.margin)
        );
        return vec![(about, Err(why))];
    };
    // Symmetric: half and double are the same effect.
    let effect = metric.ratio.ln().abs().exp_m1();
    let numbers = evidence([("floor_share", floor), ("difference_share", effect)]);
    if effect > floor {
        let sentence = "Sessions of one side differ less from each other than the two sides do.";
        return vec![(about, holds(sentence, numbers))];
    }
    let found = detail!(
        Severity::Biases,
        numbers,
        "{} differs by {}, but sessions of one side differ by up to {} without any change.",
        metric.name,
        show_share(effect),
        show_share(floor)
    );
    vec![(about, Ok(Answer::Finding(found)))]
}

const MULTIPLE_LOOKS: ComparisonCheck = ComparisonCheck {
    id: CheckId::E16,
    name: "MULTIPLE_LOOKS",
    belief: "a difference in one of many numbers is not due to chance",
    reads: "The p-values of all numbers of the comparison except the headline.",
    formula: formula!(
        "Of 20 numbers that do not differ, about one seems to differ according to its 95 % interval, by chance. Holm's \
         procedure therefore raises the p-values until the probability of any false answer is below {allowed}. The \
         headline was chosen before the measurement and is judged separately. Fires if a number is beyond \
         the margin according to its own interval, but not after the correction.",
        allowed = Share(SIGNIFICANCE)
    ),
    provoke: "`fathom compare` of two sessions of `fathom bench --profile cdm` on a disk with neighbours, \
              which has more than thirty numbers.",
    fix: "Measure only the number that matters (`fathom run` makes it the headline), or use more --runs.",
    accept: "Do not quote the one number that differs.",
    acceptable: false,
    ask: check_multiple_looks,
};

fn check_multiple_looks(context: &Context) -> Vec<NamedAnswer> {
    let count = context.others().count();
    if count < 2 {
        return Vec::new();
    }
    let held_back: Vec<String> = context
        .others()
        .filter(|(_, m)| is_corrected_away(m))
        .map(|(p, m)| format!("{} {}", p.name, m.name))
        .collect();
    let numbers = evidence([("looks", count as f64), ("held_back", held_back.len() as f64)]);
    let answer = if held_back.is_empty() {
        Answer::Holds("The correction for multiple tests changes no answer.".into(), numbers)
    } else {
        Answer::Finding(detail!(
            Severity::Biases,
            numbers,
            "The comparison has {count} numbers in addition to the headline, and some differ by chance. Not \
             significant after correction for multiple tests: {}.",
            held_back.join(", ")
        ))
    };
    vec![(Vec::new(), Ok(answer))]
}

/// Whether a number differs by more than the margin according to its own interval, but no longer
/// after the correction for all numbers.
fn is_corrected_away(metric: &Metric) -> bool {
    let beyond = metric
        .interval
        .is_some_and(|[low, high]| low > 1.0 + metric.margin || high < 1.0 / (1.0 + metric.margin));
    matches!(metric.answer, ComparisonAnswer::CannotTell | ComparisonAnswer::NoDifferenceSeen)
        && beyond
        && metric.p.is_some_and(|p| p > SIGNIFICANCE)
}

/// Share by which a percentile may be outside the range of the same percentile of its runs: histogram buckets are accurate to 0.8 %.
const MAX_OUTSIDE: Share = Share(0.01);

const SUM_OF_PEAKS: ComparisonCheck = ComparisonCheck {
    id: CheckId::E18,
    name: "SUM_OF_PEAKS",
    belief: "a percentile of several runs comes from all their operations",
    reads: "The percentiles of each result over all operations, and those of each of its runs.",
    formula: formula!(
        "A percentile of all operations lies between the smallest and the largest of the same percentile of \
         the parts, for any parts: fathom merges histograms. A percentile more than {MAX_OUTSIDE} outside was added \
         up or comes from another source; percentiles of that name are then not compared. Percentiles are \
         compared run by run: the value shown is the geometric mean over runs, the percentile of a typical \
         run, not that of all operations in each report."
    ),
    provoke: "Add up a percentile in a report by hand: `jq '.results[].read.latency_ns.percentiles[\"99\"] \
              *= 8' a.json > b.json` and `fathom compare a.json b.json`.",
    fix: "Compare the sessions themselves, which have the histograms, instead of edited files.",
    accept: "",
    acceptable: false,
    ask: check_sum_of_peaks,
};

fn check_sum_of_peaks(context: &Context) -> Vec<NamedAnswer> {
    let mut out = Vec::new();
    let mut has_percentiles_of_runs = false;
    for (side, reports) in [("A", context.sides[0]), (context.name, context.sides[1])] {
        for one in reports
            .iter()
            .flat_map(|report| report.results.iter().map(move |result| SideResult { report, result }))
        {
            has_percentiles_of_runs |= one.result.runs.iter().any(|r| !r.percentiles_ns.is_empty());
            let about = vec![one.result.name.clone()];
            out.extend(
                find_stray_percentiles(one.result)
                    .into_iter()
                    .map(|o| (about.clone(), Ok(Answer::Finding(o.describe(side))))),
            );
        }
    }
    if !out.is_empty() {
        return out;
    }
    let answer = Answer::Holds("The percentiles come from all operations.".into(), Evidence::new());
    let missing = || Err("the reports contain no percentiles of single runs".into());
    vec![(Vec::new(), if has_percentiles_of_runs { Ok(answer) } else { missing() })]
}

/// Whether the percentile `name`, such as `read p99`, cannot come from the runs of the result.
pub(super) fn contradicts(one: SideResult, name: &str) -> bool {
    find_stray_percentiles(one.result).iter().any(|o| o.name == name)
}

/// A percentile that is outside the range of the same percentile of the runs.
struct StrayPercentile {
    name: String,
    /// The percentile of all operations.
    all_ns: u64,
    /// The lowest and the highest value of the same percentile among the runs.
    runs_ns: [u64; 2],
}

impl StrayPercentile {
    fn describe(&self, side: &str) -> Detail {
        let [whole, low, high] = [self.all_ns, self.runs_ns[0], self.runs_ns[1]].map(|ns| show_ns(ns as f64));
        detail!(
            Severity::Invalidates,
            Evidence::new(),
            "The {} of {side} is {whole}, but that of each run is between {low} and {high}: the value does \
             not come from these runs.",
            self.name
        )
    }
}

/// Returns the figures of a result for one kind of operation.
pub(crate) fn figures_of(result: &Measured, kind: Kind) -> Option<&Figures> {
    let figures = match kind {
        Kind::Read => &result.read,
        Kind::Write => &result.write,
        Kind::Trim => &result.trim,
        Kind::Sync => &result.sync,
    };
    figures.as_ref()
}

/// Returns the percentiles of a result that cannot come from its runs.
fn find_stray_percentiles(result: &Measured) -> Vec<StrayPercentile> {
    let kinds = Kind::ALL.into_iter().filter_map(|kind| Some((kind.word(), figures_of(result, kind)?)));
    let percentiles = kinds.flat_map(|(kind, figures)| {
        figures.latency_ns.percentiles.iter().filter_map(move |(rank, ns)| Some((kind, rank, (*ns)?)))
    });
    percentiles
        .filter_map(|(kind, rank, whole)| {
            let percentile_of_run =
                |r: &model::report::RunFigures| r.percentiles_ns.get(kind)?.get(rank).copied().flatten();
            let runs: Vec<u64> = result.runs.iter().map(percentile_of_run).collect::<Option<_>>()?;
            let (low, high) = (*runs.iter().min()?, *runs.iter().max()?);
            let is_outside = (whole as f64) < (1.0 - MAX_OUTSIDE.0) * low as f64
                || whole as f64 > (1.0 + MAX_OUTSIDE.0) * high as f64;
            let name = format!("{kind} p{rank}");
            is_outside.then_some(StrayPercentile { name, all_ns: whole, runs_ns: [low, high] })
        })
        .collect()
}
