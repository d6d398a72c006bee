//! Rows of the table of several sides: a line per number, a column per side.
//!
//! For: cells that text, Markdown and CSV share. Not for: the table of two sides ([`crate::rows`]).

use crate::rows::{interval, is_shown, number_name, value};
use crate::table::Table;
use model::comparison::{Answer, Comparisons, Metric, Other, Pair};
use model::finding::Finding;
use model::units::show_change;

/// What stands below the table.
pub(crate) const SIDES_LEGEND: &str = "A: geometric mean over runs, a percentile being that of a typical run; the others: the change \
                                 against A, its 95 % interval over runs, and the answer.";

/// A number of a result, on every side.
struct Number<'c> {
    name: String,
    /// Of each side but the first.
    sides: Vec<SideNumber<'c>>,
    /// Whether it is told where not all are.
    told: bool,
}

/// A number on a side.
#[derive(Clone, Copy)]
enum SideNumber<'c> {
    Compared(&'c Metric),
    /// Its result is not compared.
    Refused(Answer),
    /// It has none.
    Missing,
}

/// The table. A change has its interval behind it where they are `joined`, else below it; of several results it has the first
/// number of each and those that differ, or all.
pub(crate) fn sides_table(comparisons: &Comparisons, all: bool, joined: bool) -> Table {
    let first = ["number", "A"].map(str::to_owned).into_iter();
    let headings: Vec<String> = first.chain(comparisons.others.iter().map(|o| o.name.clone())).collect();
    let leaving: &[usize] = if joined { &[] } else { &[1] };
    let mut table = Table::new(&headings, leaving);
    for column in 2..headings.len() {
        table = table.aligned(column, true);
    }
    for number in all_numbers(comparisons).iter().filter(|number| all || number.told) {
        let metric = number.sides.iter().find_map(SideNumber::metric);
        let of_a = metric.map_or_else(|| "-".into(), |m| value(m, m.a));
        let name = [number.name.clone(), of_a];
        let changes = number.sides.iter().map(|side| side.change(joined));
        table.add(name.into_iter().chain(changes));
        if !joined && number.sides.iter().any(|side| side.metric().is_some()) {
            let intervals =
                number.sides.iter().map(|side| side.metric().and_then(interval).unwrap_or_default());
            table.add([String::new(), String::new()].into_iter().chain(intervals));
        }
    }
    table
}

/// How many numbers the table does not have; `None` where it has all.
pub(crate) fn hidden_side_numbers(comparisons: &Comparisons, all: bool) -> Option<String> {
    let untold = all_numbers(comparisons).iter().filter(|number| !all && !number.told).count();
    let s = if untold == 1 { "" } else { "s" };
    (untold > 0)
        .then(|| format!("{untold} more number{s}, not FASTER or SLOWER on any side: --verbose shows them"))
}

impl<'c> SideNumber<'c> {
    fn metric(&self) -> Option<&'c Metric> {
        if let Self::Compared(metric) = self { Some(metric) } else { None }
    }

    /// `+5.2 % FASTER`, with its interval between where they are joined.
    fn change(&self, joined: bool) -> String {
        match self {
            Self::Compared(metric) => {
                let between =
                    interval(metric).filter(|_| joined).map(|i| format!(" ({i})")).unwrap_or_default();
                format!("{}{between} {}", show_change(metric.ratio), metric.answer.word())
            }
            Self::Refused(word) => word.word().into(),
            Self::Missing => "-".into(),
        }
    }
}

/// What was found of each side, under its name: `C`, or `C RND4K Q1T1 read` where it is not about all.
pub(crate) fn side_findings(comparisons: &Comparisons) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for Other { name, comparison } in &comparisons.others {
        for finding in &comparison.findings {
            let all = finding.about.is_empty() || finding.about.len() >= comparison.pairs.len();
            let of_results = || finding.about.iter().map(|result| format!("{name} {result}")).collect();
            let about = if all { vec![name.clone()] } else { of_results() };
            let same = |f: &&mut Finding| {
                (f.id, f.outcome, &f.sentence) == (finding.id, finding.outcome, &finding.sentence)
            };
            match out.iter_mut().find(same) {
                Some(known) => known.about.extend(about),
                None => out.push(Finding { about, ..finding.clone() }),
            }
        }
    }
    out.sort_by_key(|f| (f.outcome, f.severity, f.id));
    out
}

/// All numbers of all results, in the order of the first side that has them.
fn all_numbers(comparisons: &Comparisons) -> Vec<Number<'_>> {
    let of_pair = |pair: &Pair| (pair.name.clone(), pair.phase, pair.stream);
    let mut results: Vec<&Pair> = Vec::new();
    for pair in comparisons.others.iter().flat_map(|o| &o.comparison.pairs) {
        if results.iter().all(|known| of_pair(known) != of_pair(pair)) {
            results.push(pair);
        }
    }
    let alone = results.len() == 1;
    let mut out = Vec::new();
    for result in results {
        let pairs: Vec<Option<&Pair>> = comparisons
            .others
            .iter()
            .map(|o| o.comparison.pairs.iter().find(|p| of_pair(p) == of_pair(result)))
            .collect();
        out.extend(result_numbers(result, &pairs, alone));
    }
    out
}

/// The numbers that a result has on any side; one that is compared on none has a line all the same.
fn result_numbers<'c>(result: &Pair, pairs: &[Option<&'c Pair>], alone: bool) -> Vec<Number<'c>> {
    let mut metrics: Vec<&Metric> = Vec::new();
    for metric in pairs.iter().flatten().flat_map(|p| &p.metrics) {
        if metrics.iter().all(|known| known.name != metric.name) {
            metrics.push(metric);
        }
    }
    if metrics.is_empty() {
        let sides = pairs.iter().map(|pair| side_of_pair(*pair, "")).collect();
        return vec![Number { name: result.name.clone(), sides, told: true }];
    }
    let number = |(at, metric): (usize, &&Metric)| {
        let sides: Vec<SideNumber> = pairs.iter().map(|pair| side_of_pair(*pair, &metric.name)).collect();
        let told = alone || sides.iter().any(|side| side.metric().is_some_and(|m| is_shown(at, m)));
        Number { name: number_name(result, metric), sides, told }
    };
    metrics.iter().enumerate().map(number).collect()
}

fn side_of_pair<'c>(pair: Option<&'c Pair>, metric: &str) -> SideNumber<'c> {
    let Some(pair) = pair else { return SideNumber::Missing };
    let found = pair.metrics.iter().find(|m| m.name == metric);
    match found {
        Some(metric) => SideNumber::Compared(metric),
        None if pair.refused.is_some() => SideNumber::Refused(pair.refusal()),
        None => SideNumber::Missing,
    }
}
