//! A report as gauges: verdicts and conditions as 0 and 1, rates with their 95 % intervals, latencies by quantile.
//!
//! Every sample has the labels `title` (what was measured) and `target`, so that the files of several measurements can be collected
//! together. A result without a number has a verdict and no other sample: an alert on a missing series or on the verdict finds it.

use super::{EOF, escaped, head};
use crate::format::Style;
use model::gate::Gate;
use model::report::{AnswerWord, Ending, Figures, Measured, Report, Verdict};
use model::study::Studied;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// Nanoseconds of a second.
const NS_PER_SECOND: f64 = 1e9;
const VERDICTS: [Verdict; 3] = [Verdict::Valid, Verdict::Suspect, Verdict::Invalid];
/// What a condition can be answered with.
const OUTCOMES: [AnswerWord; 4] =
    [AnswerWord::Pass, AnswerWord::Fail, AnswerWord::Inconclusive, AnswerWord::Invalid];

/// Names and values of labels, in the order in which they are written.
type Labels = Vec<(&'static str, String)>;

/// A metric family.
struct Gauge {
    name: &'static str,
    /// Its base unit, with which its name ends; empty without one.
    unit: &'static str,
    help: &'static str,
    samples: Vec<(Labels, f64)>,
}

impl Gauge {
    fn new(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help, samples: Vec::new() }
    }

    /// Adds a sample, unless its value is unknown.
    fn add(&mut self, labels: &Labels, value: Option<f64>) {
        self.samples.extend(value.filter(|v| v.is_finite()).map(|v| (labels.clone(), v)));
    }

    /// Adds a sample for each state: 1 for the one that holds, 0 for the others.
    fn add_states(
        &mut self,
        labels: &Labels,
        label: &'static str,
        states: impl Iterator<Item = &'static str>,
        now: &str,
    ) {
        for state in states {
            self.add(&with(labels, &[(label, state)]), Some(f64::from(u8::from(state == now))));
        }
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        if self.samples.is_empty() {
            return Ok(());
        }
        head(to, self.name, "gauge", self.unit, self.help)?;
        for (labels, value) in &self.samples {
            let pairs: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            writeln!(to, "{}{{{}}} {value}", self.name, pairs.join(","))?;
        }
        Ok(())
    }
}

/// Numbers names that are used again: `a`, `a #2`. Two samples with the same labels are an error for the reader.
#[derive(Default)]
struct UniqueNames(HashMap<String, u32>);

impl UniqueNames {
    fn next(&mut self, name: &str) -> String {
        let count = self.0.entry(name.to_owned()).and_modify(|n| *n += 1).or_insert(1);
        if *count > 1 { format!("{name} #{count}") } else { name.to_owned() }
    }
}

/// Labels with more of them at the end.
fn with(labels: &Labels, more: &[(&'static str, &str)]) -> Labels {
    labels.iter().cloned().chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

pub(super) fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    for gauge in session_gauges(report).iter().chain(&result_gauges(report)).chain(&command_gauges(report)) {
        gauge.write(to)?;
    }
    to.write_all(EOF)
}

/// Labels of the measurement, with the targets of one result or of all.
fn report_labels(report: &Report, result: Option<&Measured>) -> Labels {
    let target = report.targets_of(result).join(";");
    vec![("title", report.title.clone()), ("target", target)]
}

/// What concerns the session as a whole.
fn session_gauges(report: &Report) -> [Gauge; 5] {
    let labels = report_labels(report, None);
    let mut started = Gauge::new(
        "fathom_started_timestamp_seconds",
        "seconds",
        "When the measurement began, in seconds since 1970.",
    );
    let at = report.started.parse::<jiff::Timestamp>().ok();
    started.add(&labels, at.map(|at| at.as_second() as f64));
    let mut complete = Gauge::new("fathom_complete", "", "Whether the measurement ended as planned.");
    complete.add(&labels, Some(f64::from(u8::from(report.ending == Ending::Complete))));
    let mut verdict = Gauge::new("fathom_verdict", "", "The worst verdict of the results that are quoted.");
    verdict.add_states(&labels, "verdict", VERDICTS.into_iter().map(Verdict::word), report.verdict.word());
    let mut answer = Gauge::new("fathom_answer", "", "The answer, if the command asks a question.");
    if let Some(given) = &report.answer {
        answer.add(&with(&labels, &[("answer", given.word.word())]), Some(1.0));
    }
    let mut condition = Gauge::new("fathom_condition", "", "The outcome of each condition of --fail-if.");
    let mut seen = HashSet::new();
    for Gate { condition: text, result, number, word, .. } in &report.gates {
        let labels = with(
            &labels,
            &[("condition", text.as_str()), ("result", result.as_str()), ("number", number.as_str())],
        );
        // The same condition may have been typed twice.
        if !seen.insert(labels.clone()) {
            continue;
        }
        let outcomes = OUTCOMES.into_iter().map(AnswerWord::word);
        condition.add_states(&labels, "outcome", outcomes, word.word());
    }
    [started, complete, verdict, answer, condition]
}

/// Verdict, rates and latencies of each result.
fn result_gauges(report: &Report) -> [Gauge; 8] {
    let mut verdict = Gauge::new("fathom_result_verdict", "", "The verdict of a result.");
    let ops = "Operations per second: geometric mean over runs.";
    let bytes = "Bytes per second: geometric mean over runs.";
    let (low, high) = ("Lower end of its 95 % interval.", "Upper end of its 95 % interval.");
    let mut rates = [
        Gauge::new("fathom_operations_per_second", "", ops),
        Gauge::new("fathom_operations_per_second_low", "", low),
        Gauge::new("fathom_operations_per_second_high", "", high),
        Gauge::new("fathom_bytes_per_second", "", bytes),
        Gauge::new("fathom_bytes_per_second_low", "", low),
        Gauge::new("fathom_bytes_per_second_high", "", high),
    ];
    let mut latency = Gauge::new(
        "fathom_latency_seconds",
        "seconds",
        "Time that this share of the operations did not exceed; absent if too few operations support it.",
    );
    let mut names = UniqueNames::default();
    for result in &report.results {
        let name = names.next(&result.name);
        let labels = with(&report_labels(report, Some(result)), &[("result", name.as_str())]);
        let word = result.verdict.word();
        verdict.add_states(&labels, "verdict", VERDICTS.into_iter().map(Verdict::word), word);
        if result.void {
            continue;
        }
        for (direction, figures) in directions(result) {
            let labels = with(&labels, &[("direction", direction)]);
            let end = |ends: Option<[f64; 2]>, at: usize| ends.map(|ends| ends[at]);
            let bytes = |mb: f64| mb * 1e6;
            let values = [
                Some(figures.iops),
                end(figures.iops_interval, 0),
                end(figures.iops_interval, 1),
                Some(bytes(figures.mb_per_s)),
                end(figures.mb_per_s_interval, 0).map(bytes),
                end(figures.mb_per_s_interval, 1).map(bytes),
            ];
            rates.iter_mut().zip(values).for_each(|(gauge, value)| gauge.add(&labels, value));
            let percentiles = figures.latency_ns.percentiles.iter();
            for (rank, ns) in percentiles.filter_map(|(rank, ns)| Some((rank.parse::<f64>().ok()?, (*ns)?))) {
                // Rounded: 99.9 / 100 is not 0.999 as a binary number.
                let quantile = ((rank * 1e6).round() / 1e8).to_string();
                latency
                    .add(&with(&labels, &[("quantile", quantile.as_str())]), Some(ns as f64 / NS_PER_SECOND));
            }
        }
    }
    let [ops, ops_low, ops_high, bytes, bytes_low, bytes_high] = rates;
    [verdict, ops, ops_low, ops_high, bytes, bytes_low, bytes_high, latency]
}

fn directions(result: &Measured) -> impl Iterator<Item = (&'static str, &Figures)> {
    let all =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim), ("sync", &result.sync)];
    all.into_iter().filter_map(|(direction, figures)| Some((direction, figures.as_ref()?)))
}

/// The time that each command took.
fn command_gauges(report: &Report) -> [Gauge; 3] {
    let all = "Wall time of a command: geometric mean over its complete runs.";
    let mut gauges = [
        Gauge::new("fathom_command_seconds", "seconds", all),
        Gauge::new("fathom_command_low_seconds", "seconds", "Lower end of its 95 % interval."),
        Gauge::new("fathom_command_high_seconds", "seconds", "Upper end of its 95 % interval."),
    ];
    if let Studied::Commands(results) = &report.study {
        let mut names = UniqueNames::default();
        for command in &results.commands {
            let name = names.next(&command.command);
            let labels = with(&report_labels(report, None), &[("command", name.as_str())]);
            let ends = command.seconds_interval;
            let values = [command.seconds, ends.map(|ends| ends[0]), ends.map(|ends| ends[1])];
            gauges.iter_mut().zip(values).for_each(|(gauge, value)| gauge.add(&labels, value));
        }
    }
    gauges
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tried = Result<(), Box<dyn std::error::Error>>;
    type Pairs = Vec<(String, String)>;
    /// Family, labels and value.
    type Sample = (String, Pairs, f64);

    fn text(report: &Report) -> Result<String, Box<dyn std::error::Error>> {
        let mut bytes = Vec::new();
        write_report(report, Style::default(), &mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }

    /// Splits a sample into its family, its labels and its value, as a parser of either format does.
    fn sample(line: &str) -> Option<(&str, Pairs, f64)> {
        let (family, rest) = line.split_once('{')?;
        let mut letters = rest.chars();
        let (mut labels, mut name) = (Vec::new(), String::new());
        while let Some(letter) = letters.next() {
            match letter {
                '}' => break,
                ',' => name.clear(),
                '=' => {
                    (letters.next()? == '"').then_some(())?;
                    let mut value = String::new();
                    loop {
                        match letters.next()? {
                            '"' => break,
                            '\\' => value.push(match letters.next()? {
                                'n' => '\n',
                                same @ ('"' | '\\') => same,
                                _ => return None,
                            }),
                            letter => value.push(letter),
                        }
                    }
                    labels.push((name.clone(), value));
                }
                letter => name.push(letter),
            }
        }
        Some((family, labels, letters.as_str().strip_prefix(' ')?.parse().ok()?))
    }

    /// Checks the grammar that both parsers share, and returns the samples.
    fn samples(text: &str) -> Result<Vec<Sample>, String> {
        let mut out = Vec::new();
        let (mut families, mut seen) = (HashSet::new(), HashSet::new());
        let (mut family, mut step) = (String::new(), "");
        let body = text.strip_suffix("# EOF\n").ok_or("the last line is not # EOF")?;
        for line in body.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words.as_slice() {
                ["#", "TYPE", name, "gauge"] if step != "TYPE" && step != "UNIT" => {
                    family = (*name).to_owned();
                    step = "TYPE";
                    if !families.insert(family.clone()) {
                        return Err(format!("{family} is in two pieces"));
                    }
                }
                ["#", "UNIT", name, unit]
                    if *name == family && step == "TYPE" && name.ends_with(&format!("_{unit}")) =>
                {
                    step = "UNIT";
                }
                ["#", "HELP", name, help]
                    if *name == family && (step == "TYPE" || step == "UNIT") && !help.contains('\\') =>
                {
                    step = "HELP";
                }
                _ => {
                    let (name, labels, value) = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
                    let in_order = name == family && (step == "HELP" || step == "sample");
                    if !in_order || !seen.insert((name.to_owned(), labels.clone())) {
                        return Err(format!("out of order or there twice: {line}"));
                    }
                    step = "sample";
                    out.push((name.to_owned(), labels, value));
                }
            }
        }
        Ok(out)
    }

    fn golden(name: &str) -> Result<Report, Box<dyn std::error::Error>> {
        let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    #[test]
    fn every_family_has_its_type_and_help_first_and_no_sample_is_there_twice() -> Tried {
        let mut report = golden("valid")?;
        report.results.push(report.results[0].clone());
        report.title = "a \"b\"\\\nc".into();
        let all = samples(&text(&report)?)?;
        let title = ("title".to_owned(), report.title.clone());
        assert!(all.iter().all(|(_, labels, _)| labels.contains(&title)), "{all:?}");
        let named = |name: &str| all.iter().filter(|(family, ..)| family == name).collect::<Vec<_>>();
        let iops = report.results[0].read.as_ref().ok_or("no reads")?.iops;
        let (_, labels, value) = named("fathom_operations_per_second")[0];
        assert!((value - iops).abs() < 1e-6, "{value} {iops}");
        assert!(labels.contains(&("target".into(), "/data".into())), "{labels:?}");
        let again = ("result".to_owned(), format!("{} #2", report.results[0].name));
        assert!(all.iter().any(|(_, labels, _)| labels.contains(&again)));
        let quantiles: HashSet<&str> = named("fathom_latency_seconds")
            .iter()
            .filter_map(|(_, labels, _)| labels.iter().find(|(name, _)| name == "quantile"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert!(quantiles.contains("0.99") && quantiles.contains("0.999"), "{quantiles:?}");
        let sum: f64 = named("fathom_verdict").iter().map(|(.., value)| value).sum();
        assert_eq!((named("fathom_verdict").len(), sum), (3, 1.0));
        assert!(named("fathom_started_timestamp_seconds")[0].2 > 1.7e9);
        Ok(())
    }

    #[test]
    fn a_result_without_a_number_has_its_verdict_alone() -> Tried {
        let mut report = golden("invalid")?;
        report.results.iter_mut().for_each(|result| result.void = true);
        let all = samples(&text(&report)?)?;
        let of_results = all.iter().filter(|(_, labels, _)| labels.iter().any(|(name, _)| name == "result"));
        assert!(of_results.clone().count() > 0);
        assert!(of_results.clone().all(|(family, ..)| family == "fathom_result_verdict"), "{all:?}");
        samples(&text(&golden("cut")?)?)?;
        Ok(())
    }
}
