//! What a check is: a question about a case, with its page, and the words that it answers with.
//!
//! For: what every check is made of, so that a check needs no other one. Not for: which checks there are (the table, `checks`), nor
//! merging answers into findings (`findings`).

use crate::case::Case;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use std::collections::BTreeMap;

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
impl Check {
    /// What it says about the first case of a record.
    pub(crate) fn answer(&self, record: &model::record::Record) -> Known<Answer> {
        (self.ask)(&crate::case::cases(record)[0])
    }

    /// The severity with which it fires, if it does.
    pub(crate) fn severity(&self, record: &model::record::Record) -> Option<Severity> {
        match self.answer(record) {
            Ok(Answer::Finding(f)) => Some(f.severity),
            _ => None,
        }
    }
}
