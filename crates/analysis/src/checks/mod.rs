//! The checks: questions asked of every case, one file each.
//!
//! For: the table, and the words that checks answer with. Not for: merging answers into findings (that is `findings`).
//! A new check is one file with a `CHECK` and one line below. Ids are those that users look up; they never change.

mod a01_cache_served;
mod a02_direct_fell_back;
mod a03_direct_unsupported;
mod a04_holes_read;
mod a09_writes_still_in_ram;
mod a11_ram_backed;
mod a12_lower_layer_cache;
mod a13_counters_blind;
mod a18_faster_than_physics;
mod b05_depth_not_reached;
mod b12_errors_counted;
mod b18_little_violated;
mod d01_foreign_io;
mod d06_cpu_bound;
mod d07_tool_overhead;
mod d18_virtual;
mod e05_one_run;
mod e10_generator_late;

use crate::case::Case;
use model::Known;
use model::finding::Severity;
use std::collections::BTreeMap;

/// The id of the check whose silence leaves a number unverified.
pub(crate) const LEDGER: &str = a13_counters_blind::CHECK.id;
/// The id of the check that finds a CPU at its end.
pub(crate) const CPU_BOUND: &str = d06_cpu_bound::CHECK.id;
pub(crate) use b05_depth_not_reached::one_at_a_time;
pub(crate) use d06_cpu_bound::busiest as busiest_worker;

/// Every check, in the order of the catalogue.
pub const CHECKS: &[Check] = &[
    a01_cache_served::CHECK,
    a02_direct_fell_back::CHECK,
    a03_direct_unsupported::CHECK,
    a04_holes_read::CHECK,
    a09_writes_still_in_ram::CHECK,
    a11_ram_backed::CHECK,
    a12_lower_layer_cache::CHECK,
    a13_counters_blind::CHECK,
    a18_faster_than_physics::CHECK,
    b05_depth_not_reached::CHECK,
    b12_errors_counted::CHECK,
    b18_little_violated::CHECK,
    d01_foreign_io::CHECK,
    d06_cpu_bound::CHECK,
    d07_tool_overhead::CHECK,
    d18_virtual::CHECK,
    e05_one_run::CHECK,
    e10_generator_late::CHECK,
];

/// A question about a result.
pub struct Check {
    /// Catalogue id: `A01`.
    pub id: &'static str,
    /// Its name: `CACHE_SERVED`.
    pub name: &'static str,
    /// The belief that it puts to the test.
    pub belief: &'static str,
    /// Asks. An error is the third answer: not checked, and why.
    pub ask: fn(&Case) -> Known<Answer>,
    /// A record on which it fires; `None` where its whole finding is that it cannot see.
    #[cfg(test)]
    pub fires: Option<fn() -> model::record::Record>,
    /// A record in which it cannot see.
    #[cfg(test)]
    pub blind: fn() -> model::record::Record,
}

/// Numbers that an answer rests on.
pub type Evidence = BTreeMap<String, f64>;

/// What a check that could look has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The belief holds, in a sentence without numbers, so that the same answer about many results is one line.
    Holds(&'static str, Evidence),
    /// The belief is false.
    Finding(Found),
    /// The question makes no sense here.
    DoesNotApply,
}

/// A false belief.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How far it acts on the number.
    pub severity: Severity,
    /// What it says to a person.
    pub sentence: String,
    /// What would repair it; empty where nothing can.
    pub cure: String,
    /// The numbers.
    pub evidence: Evidence,
    /// What the number is really about, for [`Severity::Rename`].
    pub renames: Option<Rename>,
}

/// The part of a result's name that was wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Rename {
    /// Not the storage but this: `page cache`. In place of the cache mode.
    Medium(String),
    /// Memory all the way down; stronger than any other medium.
    Memory(String),
    /// Another depth than asked.
    Depth(f64),
    /// A condition that belongs to the name: `limited by CPU`.
    Condition(String),
}

/// Evidence out of pairs. What is no finite number has no form in JSON and is left out.
pub(crate) fn evidence<const N: usize>(pairs: [(&str, f64); N]) -> Evidence {
    pairs.into_iter().filter(|(_, v)| v.is_finite()).map(|(k, v)| (k.to_owned(), v)).collect()
}

#[cfg(test)]
pub(crate) fn ask_one(check: &Check, record: &model::record::Record) -> Known<Answer> {
    let cases = crate::case::cases(record);
    (check.ask)(&cases[0])
}

/// The severity with which a check fires, if it does.
#[cfg(test)]
pub(crate) fn severity(check: &Check, record: &model::record::Record) -> Option<Severity> {
    match ask_one(check, record) {
        Ok(Answer::Finding(f)) => Some(f.severity),
        _ => None,
    }
}

#[test]
fn every_check_fires_on_a_forged_record_is_silent_on_honest_ones_and_not_checked_on_a_blind_one() {
    use crate::forge::Forge;
    for check in CHECKS {
        let id = check.id;
        let fired = check.fires.map(|forged| ask_one(check, &forged()));
        assert!(
            matches!(fired, Some(Ok(Answer::Finding(_)))) || id == LEDGER,
            "{id} does not fire: {fired:?}"
        );
        for (name, honest) in
            [("read", Forge::honest()), ("write", Forge::honest_write()), ("open loop", Forge::honest_open())]
        {
            let answer = ask_one(check, &honest.record());
            let silent = matches!(answer, Ok(Answer::Holds(..) | Answer::DoesNotApply));
            assert!(silent, "{id} is not silent on the honest {name}: {answer:?}");
        }
        let blind = ask_one(check, &(check.blind)());
        assert!(blind.is_err(), "{id} does not say that it is blind: {blind:?}");
        // A check that never applies to an honest record proves nothing by being silent on it.
        let holds = |f: Forge| matches!(ask_one(check, &f.record()), Ok(Answer::Holds(..)));
        assert!(
            [Forge::honest(), Forge::honest_write(), Forge::honest_loop(), Forge::honest_open()]
                .into_iter()
                .any(holds),
            "{id} holds on no honest record"
        );
    }
}

#[test]
fn ids_are_unique_and_sorted_and_files_are_in_the_table() {
    assert!(CHECKS.windows(2).all(|w| w[0].id < w[1].id));
    assert!(
        CHECKS
            .iter()
            .all(|c| !c.belief.is_empty() && c.name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    );
}
