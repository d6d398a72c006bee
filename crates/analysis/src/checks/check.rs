//! What a check is: a question about a case, with its page, and the words that it answers with.
//!
//! For: what every check is made of, so that a check needs no other one. Not for: which checks there are (the table, `checks`), nor
//! merging answers into findings (`findings`).

use crate::case::Case;
use model::Known;
use model::finding::{CheckId, Severity};
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
    /// How it is asked.
    pub ask: Ask,
    /// A record on which it fires; `None` where its whole finding is that it cannot see.
    #[cfg(test)]
    pub fires: Option<fn() -> model::record::Record>,
    /// A record in which it cannot see.
    #[cfg(test)]
    pub blind: fn() -> model::record::Record,
}

/// How a check is asked. An error is the third answer: not checked, and why.
pub enum Ask {
    /// About the case alone.
    Alone(fn(&Case) -> Known<Answer>),
    /// After these checks, whose answers it is given: what one of them explains is not found a second time.
    After(&'static [CheckId], fn(&Case, &Earlier) -> Known<Answer>),
}

/// Answers of checks about one case.
pub(crate) type Answers = BTreeMap<CheckId, Known<Answer>>;

/// What the checks answered that another one is asked after.
pub struct Earlier<'a> {
    named: &'static [CheckId],
    answers: &'a Answers,
}

impl Earlier<'_> {
    /// What a check answered; `None` of those that are not named, whose turn may come later.
    pub(crate) fn answer(&self, id: CheckId) -> Option<&Known<Answer>> {
        self.named.contains(&id).then(|| self.answers.get(&id)).flatten()
    }

    /// Whether it has a finding.
    pub(crate) fn finds(&self, id: CheckId) -> bool {
        matches!(self.answer(id), Some(Ok(Answer::Finding(_))))
    }

    /// Whether it has a finding that takes the name of the result.
    pub(crate) fn renames(&self, id: CheckId) -> bool {
        matches!(self.answer(id), Some(Ok(Answer::Finding(f))) if f.renames.is_some())
    }

    /// Whether its belief is known to hold.
    pub(crate) fn holds(&self, id: CheckId) -> bool {
        matches!(self.answer(id), Some(Ok(Answer::Holds(..))))
    }
}

impl Check {
    /// The checks that it is asked after.
    pub(crate) fn after(&self) -> &'static [CheckId] {
        match self.ask {
            Ask::Alone(_) => &[],
            Ask::After(named, _) => named,
        }
    }

    /// Asks it, with the answers so far.
    pub(crate) fn ask(&self, case: &Case, answers: &Answers) -> Known<Answer> {
        match self.ask {
            Ask::Alone(ask) => ask(case),
            Ask::After(named, ask) => ask(case, &Earlier { named, answers }),
        }
    }
}

/// The formula of a page, as `format!` has it: a threshold is named by its constant (`{BIASED_ABOVE}`) and not typed again.
macro_rules! formula {
    ($($text:tt)*) => {
        || format!($($text)*)
    };
}
pub(crate) use formula;

/// The page of a check, beside its belief: sentences for people, in Markdown without headings.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Kernel files, system calls and counts of our own that it looks at.
    pub reads: &'static str,
    /// The formula, with every threshold, out of the constant that is compared with, and why it is that.
    pub formula: fn() -> String,
    /// Commands that make it fire, to see it for oneself.
    pub provoke: &'static str,
    /// What to do about it. Findings say the same, but where one has a [`Detail::cure`] of its own.
    pub fix: &'static str,
    /// When to accept it instead, and what else the page says of that.
    pub accept: &'static str,
}

/// Numbers that an answer rests on.
pub type Evidence = BTreeMap<String, f64>;

/// What a check that could look has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The belief holds, in a sentence without numbers, so that the same answer about many results is one line.
    Holds(&'static str, Evidence),
    /// The belief is false.
    Finding(Detail),
    /// The question makes no sense here.
    DoesNotApply,
}

/// A false belief.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// How far it acts on the number.
    pub severity: Severity,
    /// What it says to a person.
    pub sentence: String,
    /// What to do about it where this case needs other words than [`Page::fix`]: its names, its numbers, or none.
    pub cure: Option<String>,
    /// The numbers.
    pub evidence: Evidence,
    /// What the number is really about, for [`Severity::Rename`].
    pub renames: Option<Rename>,
}

impl Detail {
    /// A false belief that takes nothing from the name, and whose page says what to do.
    pub(crate) fn new(severity: Severity, sentence: String, evidence: Evidence) -> Self {
        Self { severity, sentence, cure: None, evidence, renames: None }
    }
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
        let case = &crate::case::cases(record)[0];
        let mut earlier = Answers::new();
        if !self.after().is_empty() {
            earlier
                .extend(crate::findings::ask_all(case).into_iter().map(|(check, answer)| (check.id, answer)));
        }
        self.ask(case, &earlier)
    }

    /// The severity with which it fires, if it does.
    pub(crate) fn severity(&self, record: &model::record::Record) -> Option<Severity> {
        match self.answer(record) {
            Ok(Answer::Finding(f)) => Some(f.severity),
            _ => None,
        }
    }
}

#[test]
fn a_check_is_told_what_it_names_and_nothing_else() {
    let holds = || Ok(Answer::Holds("it does", evidence([])));
    let answers = Answers::from([(CheckId::A04, holds()), (CheckId::A13, holds())]);
    let earlier = Earlier { named: &[CheckId::A04, CheckId::A07], answers: &answers };
    assert!(earlier.holds(CheckId::A04) && !earlier.finds(CheckId::A04));
    assert_eq!([CheckId::A07, CheckId::A13].map(|id| earlier.answer(id)), [None, None]);
}
