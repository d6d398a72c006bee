//! The checks: questions asked of every case, one file each.
//!
//! For: the table, and the words that checks answer with. Not for: merging answers into findings (that is `findings`).
//! A new check is one file with a `CHECK` and one line below. Ids are those that users look up; they never change.

mod a;
mod b;
mod c;
mod d;
mod e;

use crate::case::Case;
use crate::compare::checks as compare;
use model::Known;
use model::check_id::CheckId;
use model::check_page::CheckPage;
use model::finding::Severity;
use std::collections::BTreeMap;

pub(crate) use b::b05_depth_not_reached::one_at_a_time;
pub(crate) use d::d06_cpu_bound::busiest as busiest_worker;
pub(crate) use d::d08_runqueue_wait::waited as waited_for_cpu;
#[cfg(test)]
pub(crate) use e::shaped;

/// The groups of the catalogue: what each asks, and its checks.
const GROUPS: &[(&str, &[Check])] = &[
    ("Did the I/O reach the device at all?", a::CHECKS),
    ("Was it the I/O you asked for?", b::CHECKS),
    ("Is what was written there after a power cut?", c::CHECKS),
    ("Interference and environment", d::CHECKS),
    ("Time and statistics", e::CHECKS),
];

/// What the checks of comparisons ask.
const OF_COMPARISONS: &str = "May two results be compared?";

/// Every check of a result, in the order of the catalogue.
pub fn all() -> impl Iterator<Item = &'static Check> {
    GROUPS.iter().flat_map(|(_, checks)| *checks)
}

/// The pages of every check that one can read about: those of results, then those of comparisons.
pub fn pages() -> impl Iterator<Item = CheckPage> {
    let results = GROUPS.iter().flat_map(|(group, checks)| checks.iter().map(move |c| (*group, c)));
    let results = results.map(|(group, c)| page(c.id, c.name, group, c.belief, &c.page, true));
    let compared = compare::CHECKS.iter();
    results.chain(compared.map(|c| page(c.id, c.name, OF_COMPARISONS, c.belief, &c.page, c.acceptable)))
}

fn page(
    id: CheckId,
    name: &'static str,
    group: &'static str,
    belief: &'static str,
    of: &Page,
    acceptable: bool,
) -> CheckPage {
    let Page { reads, formula, provoke, repair } = *of;
    let accept = acceptable.then(|| format!("--accept {id}"));
    CheckPage { id, name, group, belief, reads, formula, provoke, repair, accept }
}

/// A question about a result.
pub struct Check {
    /// Catalogue id.
    pub id: CheckId,
    /// Its name: `CACHE_SERVED`.
    pub name: &'static str,
    /// The belief that it puts to the test.
    pub belief: &'static str,
    /// What a reader who wants to know more is told.
    pub page: Page,
    /// Asks. An error is the third answer: not checked, and why.
    pub ask: fn(&Case) -> Known<Answer>,
    /// A record on which it fires; `None` where its whole finding is that it cannot see.
    #[cfg(test)]
    pub fires: Option<fn() -> model::record::Record>,
    /// A record in which it cannot see.
    #[cfg(test)]
    pub blind: fn() -> model::record::Record,
}

/// The page of a check, beside its belief: sentences for people, in Markdown without headings.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Kernel files, system calls and counts of our own that it looks at.
    pub reads: &'static str,
    /// The formula, with every threshold and why it is that.
    pub formula: &'static str,
    /// Commands that make it fire, to see it for oneself.
    pub provoke: &'static str,
    /// What to do about it, and when to accept it instead.
    pub repair: &'static str,
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

/// Checks that no forged machine can reach, and why: hardware that it has not, or an option that nobody asked for. About an honest
/// record they may say that they cannot see, and their own tests show that they hold where they apply.
#[cfg(test)]
const UNREACHED: &[(CheckId, &str)] = &[
    (CheckId::A19, "a drive that shows its link"),
    (CheckId::B08, "polling must be asked for, and needs a disk that polls"),
    (CheckId::D15, "a drive that shows its temperature"),
    (CheckId::D16, "a drive that shows its link"),
    (CheckId::D23, "an array of several drives"),
];

#[test]
fn every_check_fires_on_a_forged_record_is_silent_on_honest_ones_and_not_checked_on_a_blind_one() {
    use crate::forge::Forge;
    for check in all() {
        let id = check.id;
        let unreached = UNREACHED.iter().any(|(hard, _)| *hard == id);
        let fired = check.fires.map(|forged| ask_one(check, &forged()));
        assert!(
            matches!(fired, Some(Ok(Answer::Finding(_)))) || id == CheckId::A13,
            "{id} does not fire: {fired:?}"
        );
        for (name, honest) in [
            ("read", Forge::honest()),
            ("write", Forge::honest_write()),
            ("open loop", Forge::honest_open()),
            ("sequential read", Forge::honest_sequential()),
        ] {
            let answer = ask_one(check, &honest.record());
            let silent = matches!(answer, Ok(Answer::Holds(..) | Answer::DoesNotApply))
                || (unreached && answer.is_err());
            assert!(silent, "{id} is not silent on the honest {name}: {answer:?}");
        }
        let blind = ask_one(check, &(check.blind)());
        assert!(blind.is_err(), "{id} does not say that it is blind: {blind:?}");
        // A check that never applies to an honest record proves nothing by being silent on it.
        let holds = |f: Forge| matches!(ask_one(check, &f.record()), Ok(Answer::Holds(..)));
        assert!(
            [
                Forge::honest(),
                Forge::honest_write(),
                Forge::honest_loop(),
                Forge::honest_open(),
                Forge::honest_sequential()
            ]
            .into_iter()
            .any(holds)
                || unreached,
            "{id} holds on no honest record"
        );
    }
}

#[test]
fn ids_are_unique_and_sorted_and_files_are_in_the_table() {
    let checks: Vec<&Check> = all().collect();
    assert!(checks.windows(2).all(|w| w[0].id < w[1].id));
    let loud = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    assert!(checks.iter().all(|c| !c.belief.is_empty() && loud(c.name)));
    let told: Vec<CheckId> = pages().map(|c| c.id).collect();
    let ids: std::collections::BTreeSet<CheckId> = told.iter().copied().collect();
    assert_eq!(ids.len(), told.len(), "a check of comparisons has an id of its own");
    assert!(ids.iter().eq(CheckId::ALL), "an id without a check, or a check without an id");
}
