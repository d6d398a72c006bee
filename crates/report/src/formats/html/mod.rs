//! The format `html`: a page with plots for each kind of report, complete in one file.
//!
//! The page loads nothing. It consists of templates (`crates/report/templates/`), one style, one
//! optional script, and drawings as SVG ([`plot`]). Templates escape all text. Only HTML that this
//! module generated is inserted unescaped (`safe`).
//!
//! This file writes the pages that consist of a headline and tables: verifications, diagnoses, plans, lists, checks and
//! devices.

mod observed_load;
mod page;
mod plot;
mod report;
mod results;
mod sessions;
mod size_curves;
mod studies;
mod time_series;

use crate::documentation::page_parts;
use crate::view::findings;
use crate::view::lists::count_of;
use crate::view::report::chains;
use crate::view::table::Columns;
use crate::view::{machine, plan, sessions as session_view, verification};
use crate::{Content, Format, Style, writer};
use askama::Template;
use model::finding::{Diagnosis, DoctorAnswer, Pages};
use model::history::Listing;
use model::machine::Devices;
use model::plan::Explained;
use model::verification::{Verifications, Verified};
use page::{card, facts, head_card, plain_card, repeat_card, with_micro_sign, write_page};
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "html",
    extension: "html",
    content: Content::Text,
    has_brief: false,
    report: writer("a page with plots, complete in one file", report::write_report),
    comparison: writer("a page with every change and its interval", sessions::write_comparison),
    comparisons: writer("a page with every change on every side", sessions::write_several),
    plan: writer("a page of the settings and the workloads", write_plan),
    sessions: writer("a page with a table", write_list),
    session_table: writer("a page with a table", sessions::write_session_table),
    pages: writer("a page with a card for each check", write_check_pages),
    diagnosis: writer("a page with every check", write_diagnosis),
    devices: writer("a page with a table", write_devices),
    verified: writer("a page with the verdict and the damage", write_verification),
    watched: None,
    load_over_time: writer("a page with plots of the load over time", observed_load::write_load),
    captured: writer("a page with plots over time and over the device", observed_load::write_capture),
    fitted: None,
};

/// Returns the card with one command to copy.
fn command_card(purpose: &'static str, line: String) -> String {
    plain_card("Repeat it", &repeat_card(vec![(purpose, line)]))
}

/// Writes the result of a verification.
fn write_verification(all: &Verifications, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let word = all.verdict().word();
    let headline = all
        .only()
        .map_or_else(|| verification::verdict_on_all_hosts(all), verification::verification_headline);
    let rest = headline.strip_prefix(word).unwrap_or(&headline).trim().to_owned();
    let mut sections = vec![head_card(word, word, &rest, &[])];
    let mut header = vec!["verify".to_owned()];
    if let Some(verification) = all.only() {
        header.push(verification.target.clone());
        let damage = damage_facts(verification);
        if !damage.is_empty() {
            sections.push(plain_card("Damage", &facts(&damage)));
        }
        sections.push(plain_card("Details", &facts(&verification_facts(verification))));
    } else {
        header.push(count_of(all.hosts.len(), "host"));
        for on in &all.hosts {
            let outcome_facts = match &on.outcome {
                Ok(verification) => {
                    let first = [
                        ("verdict".to_owned(), verification::verification_headline(verification)),
                        ("target".into(), verification.target.clone()),
                    ];
                    first
                        .into_iter()
                        .chain(damage_facts(verification))
                        .chain(verification_facts(verification))
                        .collect()
                }
                Err(why) => vec![("verdict".to_owned(), why.clone())],
            };
            sections.push(plain_card(on.host.as_deref().unwrap_or_default(), &facts(&outcome_facts)));
        }
    }
    write_page(to, &format!("{word} · verify"), &header, &sections)
}

/// Returns each damage that a verification found.
fn damage_facts(verification: &Verified) -> Vec<(String, String)> {
    verification::damage_items(verification).into_iter().map(|item| ("damage".to_owned(), item)).collect()
}

/// Returns the remarks on a verification.
fn verification_facts(verification: &Verified) -> Vec<(String, String)> {
    let remarks = verification::verification_remarks(verification).into_iter();
    remarks.map(|remark| ("note".to_owned(), remark)).collect()
}

/// Writes the HTML page of `fathom doctor`: what to fix first, then each group of observations.
fn write_diagnosis(diagnosis: &Diagnosis, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let problems: Vec<&DoctorAnswer> =
        diagnosis.worst_first().into_iter().filter(|l| l.affects_measurement()).collect();
    let word = if problems.is_empty() { "OK" } else { "FINDINGS" };
    // A diagnosis has no verdict. FINDINGS has the colour of SUSPECT.
    let colour_word = if problems.is_empty() { "OK" } else { "SUSPECT" };
    let counts = machine::count_answers(diagnosis) + ".";
    let names: Vec<String> = problems.iter().map(|answer| answer.about.clone()).collect();
    let conclusion = machine::conclude_diagnosis(diagnosis, &names);
    let mut sections = vec![head_card(word, colour_word, &diagnosis.chain, &[conclusion, counts])];
    let todo = problems.iter().map(|answer| {
        let fix = if answer.fix.is_empty() { "no fix is known" } else { &answer.fix };
        (answer.about.clone(), with_micro_sign(&format!("{}\n{fix}", answer.sentence)))
    });
    let todo: Vec<_> = todo.collect();
    if !todo.is_empty() {
        sections.push(plain_card("Before you measure", &facts(&todo)));
    }
    for group in &diagnosis.groups {
        let rows = Columns::new(&group.answers)
            .borrowed_text("what", |answer| &answer.about)
            .text("answer", |answer| machine::describe_answer(answer))
            .borrowed_text("seen", |answer| &answer.sentence)
            .borrowed_text("what to do", |answer| &answer.fix)
            .table(&[]);
        sections.push(plain_card(&group.heading, &page::table(&group.heading, &rows)));
    }
    sections.push(command_card("Check again:", findings::fathom_command(["doctor", &diagnosis.target])));
    write_page(to, &format!("{word} · doctor"), &["doctor".into(), diagnosis.target.clone()], &sections)
}

/// Writes the HTML page of `--explain`: settings with their origins, workloads and cost.
fn write_plan(explained: &Explained, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let Explained { plan, machine, cost } = explained;
    let settings = plan::settings_table(plan);
    let jobs = plan.jobs.iter().enumerate().map(|(at, job)| {
        (plan::job_title(plan, at), plan::describe_streams(job).collect::<Vec<_>>().join("\n"))
    });
    let jobs: Vec<_> = jobs
        .chain(plan::plan_remarks(&plan.study).into_iter().map(|note| ("note".to_owned(), note)))
        .collect();
    let sections = [
        head_card("PLAN", "", &plan::plan_headline(plan), &[cost.sentence()]),
        plain_card("Settings and their origins", &page::table("Settings and their origins", &settings)),
        plain_card("Workloads", &facts(&jobs)),
        command_card("Measure it, without --explain:", findings::command_line(&plan.command)),
    ];
    write_page(to, "plan", &[vec![plan.title.clone()], chains(&machine.places)].concat(), &sections)
}

/// Writes a list of sessions.
fn write_list(listing: &Listing, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let problems = listing.entries.iter().filter_map(|e| Some((e.id.clone(), e.problem.clone()?)));
    let foot: Vec<(String, String)> = problems
        .chain(session_view::list_foot(listing).into_iter().map(|note| ("note".to_owned(), note)))
        .collect();
    let body = if listing.entries.is_empty() {
        String::new()
    } else {
        page::table("Sessions, newest first", &session_view::list_table(&listing.entries))
    };
    let sections = [
        head_card("SESSIONS", "", &count_of(listing.entries.len(), "session"), &[]),
        plain_card("Sessions, newest first", &format!("{body}{}", facts(&foot))),
    ];
    write_page(to, "sessions", &["list".into()], &sections)
}

#[derive(Template)]
#[template(path = "check.html")]
struct Check<'p> {
    parts: Vec<(&'static str, &'p str)>,
}

/// Writes the HTML page of `fathom explain`, with a card for each check.
fn write_check_pages(pages: &Pages, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let title = match pages.pages.as_slice() {
        [only] => format!("{} {}", only.id, only.name),
        all => count_of(all.len(), "check"),
    };
    let mut sections = vec![head_card("CHECKS", "", &title, &[])];
    for check in &pages.pages {
        let body = Check { parts: page_parts(check).collect() }.render().unwrap_or_default();
        let accept = check.accept.as_ref().map(|flag| format!("To accept it for the exit code: {flag}."));
        let lead: Vec<String> =
            std::iter::once(format!("Assumption: {}.", check.belief.trim_end_matches('.')))
                .chain(accept)
                .collect();
        sections.push(card(&format!("{} {}", check.id, check.name), &lead, &body));
    }
    write_page(to, &title, &["explain".into()], &sections)
}

/// Writes the block devices of a machine.
fn write_devices(devices: &Devices, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let rows = machine::device_table(devices);
    let empty = (!devices.empty.is_empty()).then(|| format!("Without a size: {}.", devices.empty.join(", ")));
    let lead: Vec<String> = empty.into_iter().collect();
    let sections = [
        head_card("DEVICES", "", &count_of(devices.devices.len(), "block device"), &[]),
        card("Block devices", &lead, &page::table("Block devices", &rows)),
    ];
    write_page(to, "devices", &["devices".into()], &sections)
}
