//! Judging timed commands: from the record of `fathom time` to its report.
//!
//! 1. `figures` turns the end of each run and the snapshots around it into a [`CommandRun`].
//! 2. `sentence` says in one or two sentences what the run did, and where the data came from and went.
//! 3. `limiter` decides what the command waited for.
//! 4. `checks` asks what can be asked without fathom's own engine, with the ids of the catalogue.
//! 5. Several commands are compared by their wall times, as any two results are.

mod checks;
mod figures;
mod limiter;
mod sentence;
#[cfg(test)]
mod tests;

use crate::compare::{self, Timed};
use crate::{Judging, notes, nowhere, verdict};
use model::command::{Command, CommandResult, CommandResults, CommandRun, CommandStudy};
use model::comparison::{Answer as Word, Metric, Pair};
use model::finding::{Finding, Outcome, Severity};
use model::gate::{Condition, Gate, Limit};
use model::limiter::Limiter;
use model::record::{CommandRecord, Record};
use model::report::{Answer, AnswerWord, Counts, FORMAT, Headline, Producer, Report, Verdict};
use model::study::Studied;
use model::units::{show_change, show_ns, show_share};
use stats::interval;

/// Judges a record of `fathom time`.
pub(crate) fn judge(record: &Record, study: &CommandStudy, options: &Judging) -> Report {
    let header = &record.header;
    let mut findings: Vec<Finding> = Vec::new();
    let mut commands = Vec::new();
    for (at, command) in study.commands.iter().enumerate() {
        let seen: Vec<CommandRecord> = record.command_runs(at).collect();
        let runs: Vec<CommandRun> = seen.iter().map(|seen| figures::run(record, seen)).collect();
        let result = result(record, command, runs, seen.last());
        // Figures of one run are shown: the last, which is the most like those that follow.
        if let Some((run, seen)) = result.runs.last().zip(seen.last()) {
            findings.extend(checks::ask(record, command, (run, &result.limiter), seen));
        }
        findings.extend(checks::ask_repeats(command, &successful_seconds(&result.runs)));
        commands.push(result);
    }
    for finding in &mut findings {
        finding.accepted = finding.outcome == Outcome::Finding && options.accept.contains(&finding.id);
    }
    findings.sort_by_key(|finding| (finding.outcome, finding.severity, finding.id));
    let compared = compared(&commands);
    let gates: Vec<Gate> =
        header.plan.fail_if.iter().flat_map(|condition| gates(condition, &commands)).collect();
    let reasoned = reasoned(&commands, &findings);
    let answer = crate::gate::answer(&gates).or_else(|| answer(&commands, &compared));
    let is_open = answer.as_ref().is_some_and(|a| a.word == AnswerWord::Inconclusive);
    let first = commands.first();
    let (per_second, unit) = if first.and_then(|one| one.seconds).is_some_and(|seconds| seconds < 1.0) {
        (1e3, "ms")
    } else {
        (1.0, "s")
    };
    Report {
        fathom: Producer { format: FORMAT, version: options.version.clone() },
        answer,
        counts_as: options.inconclusive.filter(|_| is_open),
        gates,
        quick: None,
        verdict: reasoned.verdict,
        verdict_reason: reasoned.reason,
        verdict_by: reasoned.by,
        counts: Counts::default(),
        busy_machine: Vec::new(),
        headline: Headline {
            name: first.map_or_else(String::new, |one| one.command.clone()),
            value: first.and_then(|one| one.seconds).map(|seconds| seconds * per_second),
            unit: unit.into(),
            interval: first.and_then(|one| one.seconds_interval).map(|ends| ends.map(|end| end * per_second)),
            accepted: Vec::new(),
        },
        limiter: first.map_or_else(unknown, |one| one.limiter.clone()),
        results: Vec::new(),
        deductions: Vec::new(),
        hosts: header.hosts.iter().map(|host| host.host.clone()).collect(),
        fleet: None,
        findings,
        notes: record
            .runs
            .iter()
            .filter_map(|run| run.end.as_ref())
            .flat_map(|end| end.notes.clone())
            .collect(),
        ending: notes::ending(record),
        machine: header.hosts.first().cloned().unwrap_or_else(nowhere),
        title: header.plan.title.clone(),
        command: header.plan.command.clone(),
        started: header.started.clone(),
        session: options.session.clone(),
        words: options.words.clone(),
        study: Studied::Commands(Box::new(CommandResults { commands, compared })),
        preconditioned: None,
        against: None,
    }
}

/// Wall times of the runs that succeeded.
fn successful_seconds(runs: &[CommandRun]) -> Vec<f64> {
    runs.iter().filter(|run| run.exit.is_success()).map(|run| run.seconds).collect()
}

fn result(
    record: &Record,
    command: &Command,
    runs: Vec<CommandRun>,
    last: Option<&CommandRecord>,
) -> CommandResult {
    let mean = interval::mean(&successful_seconds(&runs));
    CommandResult {
        command: command.line.clone(),
        sentence: runs.last().map_or_else(
            || format!("{} was not run to its end.", command.program()),
            |run| sentence::sentence(command, run, last),
        ),
        seconds: mean.map(|mean| mean.value),
        seconds_interval: mean.and_then(|mean| mean.interval),
        limiter: runs
            .last()
            .zip(last)
            .map_or_else(unknown, |(run, last)| limiter::command_limiter(record, run, last)),
        runs,
    }
}

fn unknown() -> Limiter {
    Limiter {
        name: "unknown".into(),
        sentence: "no run ended".into(),
        evidence: std::collections::BTreeMap::new(),
    }
}

/// Each command but the first, compared with that.
fn compared(commands: &[CommandResult]) -> Vec<Pair> {
    let Some((first, others)) = commands.split_first() else { return Vec::new() };
    let others: Vec<Timed> = others.iter().map(Timed::new).collect();
    compare::times(&Timed::new(first), &others)
}

/// How the commands compare, in a word and a sentence. `FASTEST` names one command that is: the first if all others are slower, or the other
/// one of two.
fn answer(commands: &[CommandResult], compared: &[Pair]) -> Option<Answer> {
    let (first, others) = commands.split_first()?;
    let metrics: Vec<&Metric> = compared.iter().filter_map(|pair| pair.metrics.first()).collect();
    let words: Vec<Word> = metrics.iter().map(|metric| metric.answer).collect();
    let sentences = metrics.iter().zip(others).map(|(metric, other)| {
        let interval = metric.interval.map_or_else(String::new, |[low, high]| {
            format!(" ({} to {})", show_change(low), show_change(high))
        });
        let change = format!("{} in time{interval}", show_change(metric.ratio));
        let other = &other.command;
        match metric.answer {
            word @ (Word::Faster | Word::Slower) => format!("'{other}' is {}: {change}.", word.word()),
            Word::Same => format!("'{other}' takes the SAME time: {change}."),
            Word::NoDifferenceSeen => {
                let most = metric.interval.map_or(0.0, |[low, high]| (high - 1.0).max(1.0 - low));
                format!("'{other}' differs by at most {} either way: {change}.", show_share(most))
            }
            _ => format!("'{other}': {}.", metric.why),
        }
    });
    let (word, fastest) = match words.as_slice() {
        [] => return None,
        words if words.iter().all(|word| *word == Word::Slower) => {
            (AnswerWord::Fastest, Some(&first.command))
        }
        [Word::Faster] => (AnswerWord::Fastest, others.first().map(|other| &other.command)),
        words if words.contains(&Word::CannotTell) => (AnswerWord::CannotTell, None),
        words if words.iter().all(|word| *word == Word::Same) => (AnswerWord::Tied, None),
        _ => (AnswerWord::NoDifferenceSeen, None),
    };
    let named =
        fastest.map_or_else(|| format!("Compared with '{}': ", first.command), |name| format!("'{name}'. "));
    Some(Answer { word, sentence: named + &sentences.collect::<Vec<_>>().join(" ") })
}

/// The verdict by the worst finding. A finding that is accepted counts too: no report is VALID with it.
fn reasoned(commands: &[CommandResult], findings: &[Finding]) -> verdict::Reasoned {
    if commands.iter().all(|one| one.runs.is_empty()) {
        return verdict::Reasoned::new(Verdict::Invalid, "no command was run to its end.".into());
    }
    let acting = findings.iter().filter(|f| f.outcome == Outcome::Finding);
    let worst = acting.filter(|f| f.severity.is_some_and(|s| s < Severity::Note)).min_by_key(|f| f.severity);
    match worst {
        Some(f) => verdict::Reasoned {
            verdict: Verdict::Suspect,
            reason: format!("{} {}: {}", f.id, f.name, f.sentence),
            by: Some(f.id),
        },
        None => verdict::Reasoned::new(
            Verdict::Valid,
            "No check found anything that changes what the time means.".into(),
        ),
    }
}

/// What became of a condition such as `time>2s`, at every command that it is about: the one that it names, or all.
fn gates(condition: &Condition, commands: &[CommandResult]) -> Vec<Gate> {
    let named = |one: &&CommandResult| condition.result.as_ref().is_none_or(|name| *name == one.command);
    let gates: Vec<Gate> = commands.iter().filter(named).map(|one| gate(condition, one)).collect();
    if gates.is_empty() { vec![crate::gate::nothing(condition)] } else { gates }
}

/// One run decides by its own time, several by the 95 % bounds of their mean.
fn gate(condition: &Condition, one: &CommandResult) -> Gate {
    let limit_ns = condition.limit.value();
    let bounds_ns = one.seconds.map(|seconds| match one.runs.len() {
        1 => [seconds * 1e9; 2],
        _ => one.seconds_interval.unwrap_or([0.0, f64::INFINITY]).map(|bound| bound * 1e9),
    });
    let word = match bounds_ns {
        Some([_, high]) if high <= limit_ns => AnswerWord::Pass,
        Some([low, _]) if low > limit_ns => AnswerWord::Fail,
        _ => AnswerWord::Inconclusive,
    };
    let value = one.seconds.map(|seconds| seconds * 1e9);
    let sentence = match value.zip(bounds_ns) {
        None => format!("{}: no run of {} ended with exit code 0.", condition.to_flag(), one.command),
        Some((value, [low, high])) => {
            let between = match one.runs.len() {
                1 => String::new(),
                _ if high.is_finite() => format!(", 95 % between {} and {}", show_ns(low), show_ns(high)),
                _ => ", two runs have no interval".to_owned(),
            };
            format!("{}: {}{between}; the limit is {}.", one.command, show_ns(value), show_ns(limit_ns))
        }
    };
    Gate {
        condition: condition.to_flag(),
        result: condition.result.clone().unwrap_or_default(),
        number: condition.limit.number(),
        unit: "ns".into(),
        limit: limit_ns,
        value,
        bounds: bounds_ns.filter(|[_, high]| high.is_finite()),
        runs: u32::try_from(one.runs.len()).unwrap_or(u32::MAX),
        runs_needed: None,
        word,
        sentence,
    }
}

/// Whether a condition is one that a command can be asked.
pub fn can_be_asked(condition: &Condition) -> bool {
    matches!(condition.limit, Limit::Time { .. })
}
