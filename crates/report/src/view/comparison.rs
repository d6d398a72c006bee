//! Tables of comparisons that text, Markdown, CSV and HTML share: a row for each number, with two sides or with several.
//!
//! A short table has the first number of each result and all numbers that differ. A full table has all numbers.

use crate::view::lists::{distinct_by, plural};
use crate::view::numbers::change_ends;
use crate::view::table::{Columns, Table, or_dash};
use model::comparison::{
    Comparison, ComparisonAnswer, Comparisons, GateOutcome, Metric, Other, Pair, Side, SlowdownGate, Source,
};
use model::finding::Checked;
use model::units::{show_change, show_share};

/// Returns the legend of a table of two sides. Explains the shown columns and the answers that
/// occur.
pub(crate) fn pair_legend<'p>(pairs: impl IntoIterator<Item = &'p Pair>, columns: &[&str]) -> String {
    let no_difference = |metric: &Metric| metric.answer == ComparisonAnswer::NoDifferenceSeen;
    let has_bound = pairs.into_iter().flat_map(|pair| &pair.metrics).any(no_difference);
    let has = |column: &str| columns.contains(&column);
    let parts = [
        (has("A"), "A and B are geometric means over runs, also for percentiles."),
        (has("visible"), "visible: the smallest difference that is usually detected."),
        (has("runs"), "runs: about how many per side would decide."),
        (has_bound, "NO DIFFERENCE SEEN: the interval bounds a possible difference."),
    ];
    parts.into_iter().filter(|(shown, _)| *shown).map(|(_, part)| part).collect::<Vec<_>>().join(" ")
}

/// Returns the outcome of `--fail-if-slower`, which is printed first. `None` without that option.
/// Also `None` if a side measured another workload and the outcome is neither failed nor invalid:
/// such an outcome decides nothing.
fn shown_gate(
    gate: Option<&SlowdownGate>,
    mut answers: impl Iterator<Item = ComparisonAnswer>,
) -> Option<&SlowdownGate> {
    let gate = gate?;
    let decides = matches!(gate.outcome, GateOutcome::Failed | GateOutcome::Invalid)
        || answers.all(|answer| answer != ComparisonAnswer::Incomparable);
    decides.then_some(gate)
}

/// Returns the table of two sides. With a single result or with `all` it has all numbers, otherwise the first number of each result and
/// those that differ.
pub(crate) fn pair_table(pairs: &[Pair], all: bool) -> Table {
    let is_short = is_short(pairs, all);
    let rows = pairs.iter().flat_map(|pair| {
        let shown =
            pair.metrics.iter().enumerate().filter(move |(at, metric)| !is_short || is_shown(*at, metric));
        let numbers = shown.map(move |(_, metric)| {
            let name = if is_short { number_name(pair, metric) } else { format!("  {}", metric.name) };
            (name, Some(metric), Some(metric.answer))
        });
        // A full table starts each pair with a row for its name. A pair that is not compared has only this row.
        let refusal = pair.metrics.is_empty().then(|| pair.refusal());
        let name = if is_short { pair.name.clone() } else { format!("{}:", pair.name) };
        let first = (!is_short || refusal.is_some()).then_some((name, None, refusal));
        first.into_iter().chain(numbers)
    });
    Columns::new(rows)
        .text("number", |(name, ..)| name.clone())
        .value("A", |(_, metric, _)| metric.map(|m| format_value(m, m.a)))
        .value("B", |(_, metric, _)| metric.map(|m| format_value(m, m.b)))
        .value("change", |(_, metric, _)| metric.map(|m| show_change(m.ratio)))
        .value("95 % interval", |(_, metric, _)| metric.map(|m| or_dash(change_ends(m), |ends| ends)))
        .value("visible", |(_, metric, _)| metric.map(|m| or_dash(m.could_have_seen, show_share)))
        .value("runs", |(_, metric, _)| metric.map(runs_needed))
        .text("answer", |(.., answer)| answer.map(ComparisonAnswer::word))
        .table(&["visible", "runs", "A", "B", "95 % interval"])
}

/// The comparison of one or several sides with the first side, A.
pub(crate) struct Compared<'c> {
    /// The version of fathom that compared them.
    pub(crate) version: &'c str,
    /// The outcome of `--fail-if-slower`, which is printed first; `None` if there is none to print.
    pub(crate) gate: Option<&'c SlowdownGate>,
    /// The other sides by name.
    pub(crate) others: Vec<(&'c str, &'c Comparison)>,
    pub(crate) table: Table,
    /// The table of several sides with intervals below their changes, for a small width.
    pub(crate) narrow_table: Option<Table>,
    /// Sentence about the numbers that the table leaves out; `None` if it leaves out none.
    pub(crate) hidden: Option<String>,
    pub(crate) checks: Vec<Checked>,
    /// Number of results: a finding about this many results does not name the results. `usize::MAX`
    /// for several sides, whose findings always name the side.
    pub(crate) results: usize,
}

impl<'c> Compared<'c> {
    pub(crate) fn two_sides(comparison: &'c Comparison, all: bool) -> Self {
        Self {
            version: &comparison.fathom.version,
            gate: shown_gate(comparison.gate.as_ref(), std::iter::once(comparison.answer)),
            others: vec![("B", comparison)],
            table: pair_table(&comparison.pairs, all),
            narrow_table: None,
            hidden: hidden_numbers(&comparison.pairs, all),
            checks: comparison.checks.clone(),
            results: comparison.pairs.len(),
        }
    }

    pub(crate) fn several_sides(comparisons: &'c Comparisons, all: bool) -> Self {
        let others = &comparisons.others;
        Self {
            version: &comparisons.fathom.version,
            gate: shown_gate(comparisons.gate.as_ref(), others.iter().map(|other| other.comparison.answer)),
            others: others.iter().map(|other| (other.name.as_str(), &other.comparison)).collect(),
            table: sides_table(comparisons, all, true),
            narrow_table: Some(sides_table(comparisons, all, false)),
            hidden: hidden_side_numbers(comparisons, all),
            checks: side_checks(comparisons),
            results: usize::MAX,
        }
    }

    /// Returns the legend of a table with these columns; empty if no number is compared.
    pub(crate) fn legend(&self, columns: &[&str]) -> String {
        let pairs = || self.others.iter().flat_map(|(_, comparison)| &comparison.pairs);
        match self.narrow_table {
            _ if pairs().all(|pair| pair.metrics.is_empty()) => String::new(),
            Some(_) => SIDES_LEGEND.into(),
            None => pair_legend(pairs(), columns),
        }
    }

    /// Returns the comparisons whose sentence is not already part of the sentence of
    /// [`Self::gate`].
    pub(crate) fn answers(&self) -> impl Iterator<Item = &'c Comparison> {
        let gate = self.gate;
        let others = self.others.iter().map(|(_, comparison)| *comparison);
        others
            .filter(move |comparison| !gate.is_some_and(|gate| gate.sentence.contains(&comparison.sentence)))
    }

    /// Returns the sentence of a finding and its fix. If [`Self::gate`] or an answer, which are printed first, already
    /// contains the sentence, returns the fix in the place of the sentence; `None` without a fix.
    pub(crate) fn finding_text<'f>(&self, finding: &'f Checked) -> Option<(&'f str, &'f str)> {
        let sentence = finding.sentence.trim_end_matches('.');
        let gate = self.gate.map(|gate| &gate.sentence);
        let answers = self.others.iter().map(|(_, comparison)| &comparison.sentence);
        let is_above = gate.into_iter().chain(answers).any(|above| above.contains(sentence));
        match finding.fix.as_str() {
            fix if !is_above => Some((&finding.sentence, fix)),
            "" => None,
            fix => Some((fix, "")),
        }
    }

    /// Returns all sides by name.
    pub(crate) fn sides(&self) -> impl Iterator<Item = (&'c str, &'c Side)> {
        let first = self.others.first().map(|(_, comparison)| ("A", &comparison.a));
        first.into_iter().chain(self.others.iter().map(|(name, comparison)| (*name, &comparison.b)))
    }

    /// Returns a sentence for each thing that the comparison leaves out.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let is_several = self.narrow_table.is_some();
        let sentences = |(name, comparison): &(&'c str, &'c Comparison)| {
            let of_side = if is_several { format!(" of {name}") } else { String::new() };
            left_out_notes(comparison, name)
                .into_iter()
                .map(move |note| format!("Left out{of_side}: {note}."))
        };
        self.others.iter().flat_map(sentences).collect()
    }
}

/// Whether only some numbers of each result are in the table.
fn is_short(pairs: &[Pair], all: bool) -> bool {
    !all && pairs.len() > 1
}

/// Whether a short table includes a number. It includes the first number of each result, and every FASTER or SLOWER one.
fn is_shown(at: usize, metric: &Metric) -> bool {
    at == 0 || matches!(metric.answer, ComparisonAnswer::Faster | ComparisonAnswer::Slower)
}

/// Describes how many numbers the table leaves out; `None` if it has all of them.
fn hidden_numbers(pairs: &[Pair], all: bool) -> Option<String> {
    let numbers = pairs.iter().flat_map(|p| p.metrics.iter().enumerate());
    let hidden = numbers.filter(|(at, metric)| is_short(pairs, all) && !is_shown(*at, metric)).count();
    describe_hidden(hidden, "")
}

/// Returns the full name of a number: `RND4K Q32T1 read p99`.
fn number_name(pair: &Pair, metric: &Metric) -> String {
    let rank = metric.name.split_once(' ').filter(|(kind, _)| pair.name.ends_with(&format!(" {kind}")));
    format!("{} {}", pair.name, rank.map_or(metric.name.as_str(), |(_, rank)| rank))
}

/// Returns about how many runs of each side would decide an open comparison, or `>1000`. Empty if
/// the comparison is decided or has no interval.
fn runs_needed(metric: &Metric) -> String {
    match (metric.answer, metric.runs_needed, metric.interval) {
        (_, Some(runs), _) => runs.to_string(),
        (ComparisonAnswer::CannotTell | ComparisonAnswer::NoDifferenceSeen, None, Some(_)) => ">1000".into(),
        _ => String::new(),
    }
}

/// Formats a value, without the unit if the metric has the name of its unit (IOPS).
pub(crate) fn format_value(metric: &Metric, value: f64) -> String {
    let shown = metric.show(value);
    let bare = shown.strip_suffix(&metric.name).map(str::trim_end);
    bare.map_or_else(|| shown.clone(), str::to_owned)
}

/// Describes a session of a side: `bench cdm, 2026-11-21T10:00:00Z, VALID, FILE`.
pub(crate) fn describe_source(source: &Source) -> String {
    let session = source.session.as_deref().map_or_else(String::new, |s| format!(", {s}"));
    format!("{}, {}, {}{session}", source.title, source.started, source.verdict.word())
}

/// Returns what the comparison leaves out, one sentence each. `other_side` is the name of the side that is not A.
pub(crate) fn left_out_notes(comparison: &Comparison, other_side: &str) -> Vec<String> {
    let of_pairs =
        comparison.pairs.iter().flat_map(|p| p.left_out.iter().map(|w| format!("{}, {w}", p.name)));
    let only = [("A", &comparison.only_in_a), (other_side, &comparison.only_in_b)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty());
    of_pairs.chain(only.map(|(side, names)| format!("only {side} has {}", names.join(", ")))).collect()
}

/// Legend of [`sides_table`].
pub(crate) const SIDES_LEGEND: &str = "A: geometric mean over runs, also for percentiles. Other columns: the change \
                                 against A, its 95 % interval over runs, and the answer.";

/// A number of a result, on every side.
struct MetricRow<'c> {
    name: String,
    /// The sides other than the first.
    sides: Vec<SideMetric<'c>>,
    /// Whether a short table includes the number.
    in_short_table: bool,
}

/// A number on one side.
#[derive(Clone, Copy)]
enum SideMetric<'c> {
    Compared(&'c Metric),
    /// The result is not compared.
    Refused(ComparisonAnswer),
    /// The side lacks the number.
    Missing,
}

/// Returns the table of several sides. With a single result or with `all` it has all numbers, otherwise the first
/// number of each result and those that differ. With `is_joined`, an interval is on the same line as its change, otherwise
/// below it.
fn sides_table(comparisons: &Comparisons, all: bool, is_joined: bool) -> Table {
    let first = ["number", "A"].map(str::to_owned).into_iter();
    let headings: Vec<String> = first.chain(comparisons.others.iter().map(|o| o.name.clone())).collect();
    let drop_order: &[usize] = if is_joined { &[] } else { &[1] };
    let mut table = Table::new(&headings, drop_order);
    for column in 2..headings.len() {
        table = table.aligned(column, true);
    }
    for number in metric_rows(comparisons).iter().filter(|number| all || number.in_short_table) {
        let metric = number.sides.iter().find_map(SideMetric::metric);
        let of_a = or_dash(metric, |m| format_value(m, m.a));
        let name = [number.name.clone(), of_a];
        let changes = number.sides.iter().map(|side| side.describe_change(is_joined));
        table.add(name.into_iter().chain(changes));
        if !is_joined && number.sides.iter().any(|side| side.metric().is_some()) {
            let interval = |side: &SideMetric| change_ends(side.metric()?);
            let intervals = number.sides.iter().map(|side| interval(side).unwrap_or_default());
            table.add([String::new(), String::new()].into_iter().chain(intervals));
        }
    }
    table
}

/// Describes how many numbers the table leaves out; `None` if it has all of them.
fn hidden_side_numbers(comparisons: &Comparisons, all: bool) -> Option<String> {
    let hidden = metric_rows(comparisons).iter().filter(|number| !all && !number.in_short_table).count();
    describe_hidden(hidden, " on any side")
}

fn describe_hidden(hidden: usize, on: &str) -> Option<String> {
    let (verb, pronoun) = if hidden == 1 { ("is", "it") } else { ("are", "them") };
    let more = format!("{hidden} more {}", plural(hidden, "number"));
    (hidden > 0).then(|| format!("{more} {verb} neither FASTER nor SLOWER{on}; --verbose shows {pronoun}"))
}

impl<'c> SideMetric<'c> {
    fn metric(&self) -> Option<&'c Metric> {
        if let Self::Compared(metric) = self { Some(metric) } else { None }
    }

    /// Describes the change against A: `+5.2 % FASTER`, with the interval in between if
    /// `is_joined`.
    fn describe_change(&self, is_joined: bool) -> String {
        match self {
            Self::Compared(metric) => {
                let interval = change_ends(metric).filter(|_| is_joined);
                let between = interval.map_or_else(String::new, |ends| format!(" ({ends})"));
                format!("{}{between} {}", show_change(metric.ratio), metric.answer.word())
            }
            Self::Refused(word) => word.word().into(),
            Self::Missing => "-".into(),
        }
    }
}

/// Returns the findings of all sides. Each finding is about its side, `C`, or about results of the side,
/// `C RND4K Q1T1 read`, if the finding does not cover all results.
fn side_checks(comparisons: &Comparisons) -> Vec<Checked> {
    let mut out: Vec<Checked> = Vec::new();
    for Other { name, comparison } in &comparisons.others {
        for finding in &comparison.checks {
            let all = finding.about.is_empty() || finding.about.len() >= comparison.pairs.len();
            let of_results = || finding.about.iter().map(|result| format!("{name} {result}")).collect();
            let about = if all { vec![name.clone()] } else { of_results() };
            let same = |f: &&mut Checked| {
                (f.id, f.outcome, &f.sentence) == (finding.id, finding.outcome, &finding.sentence)
            };
            match out.iter_mut().find(same) {
                Some(known) => known.about.extend(about),
                None => out.push(Checked { about, ..finding.clone() }),
            }
        }
    }
    out.sort_by_key(|f| (f.outcome, f.severity, f.id));
    out
}

/// Returns all numbers of all results, in the order of the first side that has them.
fn metric_rows(comparisons: &Comparisons) -> Vec<MetricRow<'_>> {
    let of_pair = |pair: &Pair| (pair.name.clone(), pair.phase, pair.stream);
    let pairs = comparisons.others.iter().flat_map(|o| &o.comparison.pairs);
    let results: Vec<&Pair> = distinct_by(pairs, |one, other| of_pair(one) == of_pair(other));
    let is_only_result = results.len() == 1;
    let mut out = Vec::new();
    for result in results {
        let pairs: Vec<Option<&Pair>> = comparisons
            .others
            .iter()
            .map(|o| o.comparison.pairs.iter().find(|p| of_pair(p) == of_pair(result)))
            .collect();
        out.extend(metric_rows_of_result(result, &pairs, is_only_result));
    }
    out
}

/// Returns the numbers that a result has on any side; a result that is compared on no side still has a line.
fn metric_rows_of_result<'c>(
    result: &Pair,
    pairs: &[Option<&'c Pair>],
    is_only_result: bool,
) -> Vec<MetricRow<'c>> {
    let all = pairs.iter().flatten().flat_map(|pair| &pair.metrics);
    let metrics: Vec<&Metric> = distinct_by(all, |one, other| one.name == other.name);
    if metrics.is_empty() {
        let sides = pairs.iter().map(|pair| side_of_pair(*pair, "")).collect();
        return vec![MetricRow { name: result.name.clone(), sides, in_short_table: true }];
    }
    let number = |(at, metric): (usize, &&Metric)| {
        let sides: Vec<SideMetric> = pairs.iter().map(|pair| side_of_pair(*pair, &metric.name)).collect();
        let in_short_table =
            is_only_result || sides.iter().any(|side| side.metric().is_some_and(|m| is_shown(at, m)));
        MetricRow { name: number_name(result, metric), sides, in_short_table }
    };
    metrics.iter().enumerate().map(number).collect()
}

fn side_of_pair<'c>(pair: Option<&'c Pair>, metric: &str) -> SideMetric<'c> {
    let Some(pair) = pair else { return SideMetric::Missing };
    let found = pair.metrics.iter().find(|m| m.name == metric);
    match found {
        Some(metric) => SideMetric::Compared(metric),
        None if pair.refused.is_some() => SideMetric::Refused(pair.refusal()),
        None => SideMetric::Missing,
    }
}

#[test]
fn a_number_is_named_by_its_result_without_repeated_words() -> Result<(), serde_json::Error> {
    let golden = include_str!("../../tests/comparison/slower.json");
    let comparison: Comparison = serde_json::from_str(golden)?;
    let pair = &comparison.pairs[0];
    let names: Vec<String> = pair.metrics.iter().map(|metric| number_name(pair, metric)).collect();
    assert_eq!(names[..2], ["RND4K Q4T1 read IOPS", "RND4K Q4T1 read p50"]);
    assert_eq!(names[4], "RND4K Q4T1 read CPU per operation");
    // With several results: the first number of each, and those that differ.
    let two = [pair.clone(), pair.clone()];
    let rows = |all| pair_table(&two, all).markdown().lines().count() - 2;
    assert_eq!((rows(true), rows(false)), (12, 8));
    assert_eq!(hidden_numbers(&two, false).as_deref().map(|text| &text[..14]), Some("2 more numbers"));
    assert!(hidden_numbers(&two, true).is_none() && hidden_numbers(&two[..1], false).is_none());
    Ok(())
}
