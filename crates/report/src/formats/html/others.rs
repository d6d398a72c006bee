//! Pages of everything that is no measurement and no comparison: tables under a first word.
//!
//! For: verifications, diagnoses, plans, lists, checks, and devices. Not for: measurements.

use super::comparison::head;
use super::foot::repeat;
use super::page::{card, facts, page};
use super::table;
use super::words::micro;
use crate::command;
use crate::format::Style;
use crate::formats::text::{devices, plan, sessions, verified};
use crate::parts::parts;
use crate::table::Table;
use crate::verified::notes;
use askama::Template;
use model::finding::{Diagnosis, Look, Outcome, Pages, Severity};
use model::history::Listing;
use model::machine::{BlockDevice, Devices};
use model::plan::Explained;
use model::verification::{Verifications, Verified};
use std::io::{self, Write};

/// Reports that do not say which version made them were made by this one.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const NOTHING: &[&str] = &[];

/// A page with its head and cards.
pub(super) fn put(to: &mut dyn Write, title: &str, eye: &[String], sections: &[String]) -> io::Result<()> {
    let sections: Vec<String> = sections.iter().filter(|s| !s.is_empty()).cloned().collect();
    to.write_all(page(VERSION, &format!("{title} · fathom"), eye, &sections).as_bytes())
}

/// `1 session`, `2 sessions`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn commands(words: &'static str, line: String) -> String {
    card("Repeat it", NOTHING, &repeat(vec![(words, line)]))
}

/// Writes what came of a verification.
pub(super) fn verification(all: &Verifications, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let word = all.verdict().word();
    let headline = all.only().map_or_else(|| verified::together(all), verified::headline);
    let rest = headline.strip_prefix(word).unwrap_or(&headline).trim().to_owned();
    let mut sections = vec![head(word, word, &rest, &[])];
    let mut eye = vec!["verify".to_owned()];
    if let Some(of) = all.only() {
        eye.push(of.target.clone());
        let damage = damage(of);
        if !damage.is_empty() {
            sections.push(card("Damage", NOTHING, &facts(&damage)));
        }
        sections.push(card("What there is to know", NOTHING, &facts(&known(of))));
    } else {
        eye.push(counted(all.hosts.len(), "host"));
        for on in &all.hosts {
            let told = match &on.outcome {
                Ok(of) => {
                    let first = [
                        ("verdict".to_owned(), verified::headline(of)),
                        ("target".into(), of.target.clone()),
                    ];
                    first.into_iter().chain(damage(of)).chain(known(of)).collect()
                }
                Err(why) => vec![("verdict".to_owned(), why.clone())],
            };
            sections.push(card(on.host.as_deref().unwrap_or_default(), NOTHING, &facts(&told)));
        }
    }
    put(to, &format!("{word} · verify"), &eye, &sections)
}

/// What is damaged.
fn damage(of: &Verified) -> Vec<(String, String)> {
    verified::damage(of).into_iter().map(|words| ("damage".to_owned(), words)).collect()
}

/// What there is to know beside it.
fn known(of: &Verified) -> Vec<(String, String)> {
    let notes = notes(of).into_iter().map(|note| format!("{note}.")).chain(verified::rates(of));
    notes.map(|words| ("note".to_owned(), words)).collect()
}

/// Writes what was seen of a place.
pub(super) fn diagnosis(of: &Diagnosis, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let looks = || of.groups.iter().flat_map(|g| &g.looks);
    let count = |outcome| looks().filter(|l| l.outcome == outcome).count();
    let acting: Vec<&Look> =
        of.worst_first().into_iter().filter(|l| l.severity != Some(Severity::Note)).collect();
    let word = if acting.is_empty() { "OK" } else { "FINDINGS" };
    let like = if acting.is_empty() { "OK" } else { "SUSPECT" };
    let counted = format!(
        "{} findings, {} not checked, {} in order.",
        count(Outcome::Finding),
        count(Outcome::NotChecked),
        count(Outcome::Holds)
    );
    let mut sections = vec![head(word, like, &of.chain, &[counted])];
    let todo = acting.iter().map(|look| {
        let cure = if look.cure.is_empty() { "nothing can be done about it here" } else { &look.cure };
        (look.about.clone(), micro(&format!("{}\n{cure}", look.sentence)))
    });
    let todo: Vec<_> = todo.collect();
    if !todo.is_empty() {
        sections.push(card("Before you measure", NOTHING, &facts(&todo)));
    }
    for group in &of.groups {
        let mut rows =
            Table::new(&["what", "answer", "seen", "what to do"], &[]).aligned(1, true).aligned(2, true);
        rows.add_all(
            group
                .looks
                .iter()
                .map(|look| [look.about.clone(), answer(look), look.sentence.clone(), look.cure.clone()]),
        );
        sections.push(card(&group.heading, NOTHING, &table::table(&group.heading, &rows)));
    }
    sections
        .push(commands("Look again:", command::line(&["fathom".into(), "doctor".into(), of.target.clone()])));
    put(to, &format!("{word} · doctor"), &["doctor".into(), of.target.clone()], &sections)
}

fn answer(look: &Look) -> String {
    let id = look.check.map_or_else(String::new, |id| format!(" {id}"));
    match (look.outcome, look.severity) {
        (Outcome::Holds, _) => "OK".into(),
        (Outcome::NotChecked, _) => "NOT CHECKED".into(),
        (Outcome::Finding, severity) => format!("{}{id}", severity.unwrap_or(Severity::Note).effect()),
    }
}

/// Writes what would be measured.
pub(super) fn explained(of: &Explained, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let Explained { plan, machine, cost } = of;
    let mut settings = Table::new(&["setting", "value", "from"], &[]).aligned(1, true);
    settings.add_all(plan.origins.iter().map(|o| [o.setting.clone(), o.value.clone(), o.from.clone()]));
    let jobs = plan.jobs.iter().enumerate().map(|(at, job)| {
        let mark = if at == plan.headline { " (headline)" } else { "" };
        (format!("{}{mark}", job.name), plan::streams(job).collect::<Vec<_>>().join("\n"))
    });
    let jobs: Vec<_> =
        jobs.chain(plan::remarks(&plan.study).into_iter().map(|words| ("note".to_owned(), words))).collect();
    let mut chains: Vec<String> = machine.places.iter().map(model::machine::Place::chain).collect();
    chains.dedup();
    let sections = [
        head("PLAN", "", &plan::headline(plan), &[cost.sentence()]),
        card(
            "Settings, and where each is from",
            NOTHING,
            &table::table("Settings, and where each is from", &settings),
        ),
        card("Workloads", NOTHING, &facts(&jobs)),
        commands("Measure it, without --explain:", command::line(&plan.command)),
    ];
    put(to, "plan", &[vec![plan.title.clone()], chains].concat(), &sections)
}

/// Writes a list of sessions.
pub(super) fn listing(of: &Listing, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let problems = of.entries.iter().filter_map(|e| Some((e.id.clone(), e.problem.clone()?)));
    let foot: Vec<(String, String)> =
        problems.chain(sessions::foot(of).into_iter().map(|words| ("note".to_owned(), words))).collect();
    let body = if of.entries.is_empty() {
        String::new()
    } else {
        table::table("Sessions, newest first", &sessions::table(&of.entries))
    };
    let sections = [
        head("SESSIONS", "", &counted(of.entries.len(), "session"), &[]),
        card("Sessions, newest first", NOTHING, &format!("{body}{}", facts(&foot))),
    ];
    put(to, "sessions", &["list".into()], &sections)
}

#[derive(Template)]
#[template(path = "check.html")]
struct Check<'p> {
    parts: Vec<(&'static str, &'p str)>,
}

/// Writes pages of checks.
pub(super) fn pages(of: &Pages, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let title = match of.pages.as_slice() {
        [only] => format!("{} {}", only.id, only.name),
        all => counted(all.len(), "check"),
    };
    let mut sections = vec![head("CHECKS", "", &title, &[])];
    for check in &of.pages {
        let body = Check { parts: parts(check).collect() }.render().unwrap_or_default();
        let accept = check.accept.as_ref().map(|flag| format!("To accept it for the exit code: {flag}."));
        let lead: Vec<String> =
            std::iter::once(format!("Assumption: {}.", check.belief.trim_end_matches('.')))
                .chain(accept)
                .collect();
        sections.push(card(&format!("{} {}", check.id, check.name), &lead, &body));
    }
    put(to, &title, &["explain".into()], &sections)
}

/// Writes the block devices of a machine.
pub(super) fn of_devices(of: &Devices, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let headings = ["device", "what it is", "queue", "who uses it"];
    let mut rows = Table::new(&headings, &[]).aligned(1, true).aligned(2, true).aligned(3, true);
    rows.add_all(of.devices.iter().map(device));
    let empty = (!of.empty.is_empty()).then(|| format!("Without a size: {}.", of.empty.join(", ")));
    let lead: Vec<String> = empty.into_iter().collect();
    let sections = [
        head("DEVICES", "", &counted(of.devices.len(), "block device"), &[]),
        card("Block devices", &lead, &table::table("Block devices", &rows)),
    ];
    put(to, "devices", &["devices".into()], &sections)
}

fn device(device: &BlockDevice) -> [String; 4] {
    let mounted = devices::mounts(&device.mounts).map(|mounts| format!("mounted on {mounts}"));
    let users = [mounted, devices::used(device)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    [device.name.clone(), devices::heading(device), devices::queue(&device.queue), users]
}
