//! The foot of a measurement's page: how to repeat it, what the figures say together, the machine and the settings.
//!
//! For: whoever wants to know how the numbers came about. Not for: the numbers.

use super::filters;
use super::page::{card, facts, folded};
use super::words::with_micro_sign;
use crate::command;
use askama::Template;
use model::machine::Place;
use model::report::Report;
use model::units::show_bytes;
use serde_json::Value;

/// Results whose settings are told one by one.
const MAX_JOBS: usize = 12;

#[derive(Template)]
#[template(path = "repeat.html")]
struct RepeatCommands {
    commands: Vec<(&'static str, String)>,
}

/// Commands to copy, each with what it does.
pub(super) fn repeat_card(commands: Vec<(&'static str, String)>) -> String {
    RepeatCommands { commands }.render().unwrap_or_default()
}

/// Everything below the checks.
pub(super) fn foot_cards(report: &Report) -> String {
    let mut out = String::new();
    let derived = report.deductions.iter().map(|d| (d.name.clone(), with_micro_sign(&d.sentence)));
    let derived = facts(&derived.collect::<Vec<_>>());
    if !derived.is_empty() {
        out += &card::<&str>("Derived from these results", &[], &derived);
    }
    let commands = repeat_commands(report);
    if !commands.is_empty() {
        out += &card::<&str>("Repeat it", &[], &repeat_card(commands));
    }
    out + &card::<&str>(
        "Where and how",
        &[],
        &format!("{}{}", facts(&machine_facts(report)), folded("Settings", &settings_table(report))),
    )
}

/// The commands that measure and show it again.
fn repeat_commands(report: &Report) -> Vec<(&'static str, String)> {
    let mut commands = Vec::new();
    let measured = command::command_line(&report.command);
    if !measured.is_empty() {
        commands.push(("Measure it again:", measured));
    }
    if let Some(id) = command::session_id(report) {
        let words = |rest: &[&str]| {
            model::shell::line(
                &[&["fathom"], rest].concat().iter().map(|w| (*w).to_owned()).collect::<Vec<_>>(),
            )
        };
        commands.push(("Check and show this session again:", words(&["show", &id, "--verbose"])));
        commands.push(("Compare a later session with it:", words(&["compare", &id, "last"])));
    }
    commands
}

/// The target, the machine, and what the user says about it.
fn machine_facts(report: &Report) -> Vec<(String, String)> {
    let m = &report.machine;
    let unknown = || "unknown".to_owned();
    let mut out: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() && out.last().is_none_or(|last| (last.0.as_str(), &last.1) != (name, &value)) {
            out.push((name.to_owned(), value));
        }
    };
    for place in &m.places {
        add("Target", Place::chain(place));
    }
    add("Host", m.host.clone());
    add("Kernel", m.kernel.clone());
    add("CPU", format!("{}, {} CPUs", m.cpu.clone().unwrap_or_else(|_| unknown()), m.cpus));
    add("Memory", m.memory_bytes.as_ref().map_or_else(|_| unknown(), |b| show_bytes(*b)));
    add("Measured", format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title));
    for note in &report.notes {
        add("Note", with_micro_sign(note));
    }
    add("Tags", report.words.tags.join(" "));
    for note in &report.words.notes {
        add("Comment", format!("{}: {}", note.at, note.text));
    }
    add("Session", report.session.clone().unwrap_or_else(|| "not kept".into()));
    out
}

/// The job of each result as it was carried out: what the JSON has, a line per value.
fn settings_table(report: &Report) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for result in report.results.iter().take(MAX_JOBS) {
        rows.push((result.name.clone(), result.true_name.clone()));
        if let Ok(job) = serde_json::to_value(&result.job) {
            flatten("", &job, &mut rows);
        }
    }
    let rest = report.results.len().saturating_sub(MAX_JOBS);
    if rest > 0 {
        rows.push(("more".into(), format!("{rest} more results are in the JSON")));
    }
    facts(&rows)
}

/// Values under the names that lead to them.
fn flatten(name: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(all) => all.iter().for_each(|(key, value)| flatten(&below(key), value, rows)),
        Value::Array(all) if all.iter().any(|v| v.is_object() || v.is_array()) => {
            all.iter().enumerate().for_each(|(at, value)| flatten(&below(&at.to_string()), value, rows));
        }
        Value::Array(all) if all.is_empty() => {}
        Value::Null => {}
        Value::String(text) => rows.push((name.to_owned(), text.clone())),
        other => rows.push((name.to_owned(), other.to_string())),
    }
}
