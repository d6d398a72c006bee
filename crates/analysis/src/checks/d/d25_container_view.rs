//! D25: a container or sandbox that hides a part of the machine. Notes targets on an overlay, and facts that the
//! kernel or the container runtime refused to show.

use crate::checks::prelude::*;
use model::machine::Machine;

/// Error texts of the kernel or a container runtime that refuses to show an existing file.
const REFUSALS: &[&str] = &["permission denied", "operation not permitted", "read-only file system"];
/// Largest number of names in a sentence.
const MOST_NAMES: usize = 4;

pub(super) const CHECK: Check = Check {
    id: CheckId::D25,
    name: "CONTAINER_VIEW",
    belief: "fathom sees the whole machine",
    reads: "The file systems of the targets (containers use an overlay), the point where their chains could \
            not be followed, and the reasons for facts that could not be read: limits, governors, firmware \
            names, fathom's own cgroup.",
    formula: formula!(
        "A note if a target is on an overlay, or if access to a fact was denied (permission denied, not \
         permitted). A file that does not exist is no sign of a container: many machines lack it. The \
         finding lists what fathom could not see; checks that need it answer NOT CHECKED."
    ),
    provoke: "`docker run --rm -v $PWD/fathom:/fathom debian /fathom run --rw randread --size 64m /var/tmp`.",
    fix: "Measure outside the container, or on a volume (`-v /data:/data`) instead of the container's own \
          layers.",
    accept: "A note needs no --accept.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| Fixture { kind: "overlay", ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].facts.clear();
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let machine = case.machine.ok_or("the record names no host")?;
    if machine.places.is_empty() {
        return Err("the record does not contain the device chains of the targets".into());
    }
    let overlay = case.places().find(|p| p.kind() == "overlay");
    let refused_facts = refused_facts(machine);
    let numbers = evidence([("refused", refused_facts.len() as f64)]);
    if overlay.is_none() && refused_facts.is_empty() {
        if machine.facts.is_empty() {
            return Err("this session contains no facts about the machine".into());
        }
        return holds("No access to facts about the machine was denied.", numbers);
    }
    if let Some(place) = overlay.filter(|place| place.blind.is_none() && refused_facts.is_empty()) {
        return finding!(
            Severity::Note,
            numbers,
            "{} is in an overlay, like the file system of a container. fathom followed it to the device that \
             holds the data.",
            place.path
        );
    }
    let mut sentence = String::from("fathom sees only part of the machine");
    if let Some(place) = overlay {
        sentence += &format!(": {} is on the layers of a container", place.path);
        sentence += &place.blind.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    }
    if !refused_facts.is_empty() {
        let names = refused_facts.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
        let more = refused_facts.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {} more", show_count(more as f64)) } else { String::new() };
        sentence +=
            &format!("{} access to {names}{more} was denied", if overlay.is_some() { ";" } else { ":" });
    }
    Detail::new(Severity::Note, sentence + ".", numbers).found()
}

/// Returns the names of the refused facts.
fn refused_facts(machine: &Machine) -> Vec<&str> {
    let refused = |why: &String| {
        let why = why.to_lowercase();
        REFUSALS.iter().any(|r| why.contains(r))
    };
    let facts = machine.facts.iter().filter_map(|(name, f)| Some((name.as_str(), f.as_ref().err()?)));
    let others = [
        ("the memory's size", machine.memory_bytes.as_ref().err()),
        ("the clock source", machine.clocksource.as_ref().err()),
        ("its own cgroup", machine.cgroup.as_ref().err()),
    ];
    let others = others.into_iter().filter_map(|(name, why)| Some((name, why?)));
    facts.chain(others).filter(|(_, why)| refused(why)).map(|(name, _)| name).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::LIMITS;
#[cfg(test)]
use model::evidence::PRODUCT;
#[cfg(test)]
use model::evidence::SLEEPS;
#[cfg(test)]
use model::evidence::VENDOR;

#[cfg(test)]
fn refused(names: &[&str], why: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let facts = &mut record.header.hosts[0].facts;
    names.iter().for_each(|name| drop(facts.insert((*name).into(), Err(why.into()))));
    record
}

#[test]
fn refused_facts_are_listed_and_missing_files_are_silent() {
    let denied = refused(&[LIMITS], "Permission denied (os error 13)");
    let Ok(Answer::Finding(f)) = CHECK.answer(&denied) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Note);
    assert!(f.sentence.ends_with(&format!("machine: access to {LIMITS} was denied.")), "{}", f.sentence);
    assert!(matches!(CHECK.answer(&refused(&[VENDOR, PRODUCT], "no such file")), Ok(Answer::Holds(..))));
}

#[test]
fn long_lists_are_cut_and_overlays_name_what_they_hide() {
    let mut record = refused(&[LIMITS, PRODUCT, SLEEPS, VENDOR], "Operation not permitted (os error 1)");
    let machine = &mut record.header.hosts[0];
    machine.cgroup = Err("/sys/fs/cgroup: Read-only file system (os error 30)".into());
    machine.places[0].blind = Some("overlay: its directories cannot be seen from here".into());
    machine.places[0].file_system.as_mut().unwrap().kind = "overlay".into();
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("/data is on the layers of a container (overlay: its"), "{}", f.sentence);
    assert!(f.sentence.ends_with(" and 1 more was denied."), "{}", f.sentence);
    // An overlay that fathom followed to its device hides nothing.
    let Ok(Answer::Finding(f)) = CHECK.answer(&Fixture { kind: "overlay", ..Fixture::honest() }.record())
    else {
        panic!("silent")
    };
    assert!(
        f.sentence.contains("/data is in an overlay") && !f.sentence.contains("only part"),
        "{}",
        f.sentence
    );
    let tmpfs = Fixture { kind: "tmpfs", ram: Some("tmpfs"), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&tmpfs.record()), None);
}
