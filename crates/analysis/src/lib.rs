//! Judgement: a record in, a report out. Touches no machine, and gives the same answer about an old file tomorrow.
//!
//! For: figures with their intervals, the checks, the verdict, what limited a result, what several figures say
//! together, and the strategies that decide what to measure next. Not for: reading files nor laying out a report.
//!
//! [`judge`] is total: whatever a record lacks, there is a report, and it says what was missing.
#![forbid(unsafe_code)]
// Tests know their values and read better as one line per damage.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::needless_for_each))]

mod api;
mod case;
mod change;
pub mod checks;
mod course;
mod deduce;
mod drift;
mod figures;
mod findings;
#[cfg(test)]
mod forge;
mod independent;
mod interval;
mod kernel_text;
mod layers;
mod ledger;
mod limiter;
mod link;
mod modes;
mod mser;
mod name;
mod notes;
mod seconds;
mod series;
mod stalls;
pub mod strategy;
mod two_samples;
mod verdict;

pub use verdict::exit_code;

use findings::Answered;
use model::finding::Finding;
use model::machine::Machine;
use model::record::Record;
use model::report::{FORMAT, Measured, Producer, Report};

/// What the judge must be told beside the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judging {
    /// Ids of findings that the user accepts, in any case.
    pub accept: Vec<String>,
    /// The session file that the record came from.
    pub session: Option<String>,
    /// Version of the program that judges.
    pub version: String,
}

/// Judges a record.
pub fn judge(record: &Record, options: &Judging) -> Report {
    let header = &record.header;
    let cases = case::cases(record).into_iter().filter(|case| !api::is_refused(record, case));
    let answered: Vec<Answered> = cases.map(findings::ask).collect();
    let results: Vec<Measured> = answered.iter().map(measured).collect();
    let mut findings = findings::merge(&answered, &options.accept);
    let accepted = layers::accept(record, &answered, &mut findings);
    let accepted = accepted.into_iter().chain(api::accept(record, &mut findings));
    let headline = verdict::headline(record, &answered, &results);
    let unexpected =
        |f: &&Finding| !layers::is_expected(record, &answered, f) && !api::is_expected(record, f);
    let acting: Vec<Finding> = findings.iter().filter(unexpected).cloned().collect();
    let (verdict, verdict_reason) = verdict::verdict(&headline, &results, &acting);
    let layers = layers::layers(record, &answered, &results, &acting);
    let api = api::api(record, &answered, &results, &acting);
    let mut deductions = deduce::deduce(&answered, &results);
    deductions.extend(layers.iter().flat_map(|l| layers::deduce(l, &results)));
    Report {
        fathom: Producer { format: FORMAT, version: options.version.clone() },
        verdict,
        verdict_reason,
        limiter: verdict::headline_result(record, &answered, &results)
            .map_or_else(limiter::nothing_measured, |r| r.limiter.clone()),
        headline,
        deductions,
        results,
        hosts: header.hosts.iter().map(|h| h.host.clone()).collect(),
        findings,
        notes: accepted.chain(notes::notes(record)).collect(),
        ending: notes::ending(record),
        machine: header.hosts.first().cloned().unwrap_or_else(nowhere),
        title: header.plan.title.clone(),
        started: header.started.clone(),
        session: options.session.clone(),
        layers,
        api,
    }
}

fn measured(answered: &Answered) -> Measured {
    let case = &answered.case;
    let figures = figures::figures(case);
    Measured {
        name: case.name.clone(),
        true_name: name::true_name(case, &answered.renames()),
        phase: case.phase as u32,
        stream: case.index as u32,
        job: case.job.clone(),
        void: answered.is_void(),
        read: figures.read,
        write: figures.write,
        trim: figures.trim,
        sync: figures.sync,
        total: figures.total,
        with_final_sync: figures.with_final_sync,
        cost: figures.cost,
        data: case.runs.iter().find_map(|r| r.stream.data),
        limiter: limiter::limiter(answered),
        runs: figures.runs,
        ledger: ledger::ledger(case),
        series: seconds::seconds(case),
        steadiness: None,
    }
}

/// The machine of a record that names none.
fn nowhere() -> Machine {
    let unknown = || "the record names no host".to_owned();
    Machine {
        host: String::new(),
        kernel: String::new(),
        cpu: Err(unknown()),
        cpus: 0,
        memory_bytes: Err(unknown()),
        virtual_by: Err(unknown()),
        clocksource: Err(unknown()),
        user_id: 0,
        cgroup: Err(unknown()),
        facts: std::collections::BTreeMap::new(),
        places: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
