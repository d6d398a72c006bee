//! Test types: the ways in which Iometer goes through workers, targets and outstanding I/Os.
//!
//! For: their words, what each of them goes through, and by which steps. Not for: what they make of the targets at hand, which
//! the plan finds out.
//!
//! Sources: Iometer 1.1.0, `PageSetup.cpp` (words, first values and steps) and `GalileoView.cpp` (what is done).

use super::number::shown;

/// A test type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// All workers on all targets, once.
    Normal,
    /// All workers on one target, on two, ..., on all.
    Targets,
    /// One worker on all targets, two, ..., all.
    Workers,
    /// One worker on one target, on two, ...; when it has all of them the next worker begins. All computers at the same time.
    IncrementParallel,
    /// One worker on one target, on two, ...; when it has all of them the next worker begins. One computer after another.
    IncrementSerial,
    /// Each number of workers on each number of targets.
    WorkersAndTargets,
    /// All workers on all targets with one operation in flight, with more, ...
    Outstanding,
    /// All workers with one operation in flight, with more, ..., on each number of targets.
    OutstandingAndTargets,
}

impl Cycle {
    /// All of them with the tool's words.
    pub const ALL: [(&'static str, Self); 8] = [
        ("NORMAL", Self::Normal),
        ("CYCLE_TARGETS", Self::Targets),
        ("CYCLE_WORKERS", Self::Workers),
        ("INCREMENT_TARGETS_PARALLEL", Self::IncrementParallel),
        ("INCREMENT_TARGETS_SERIAL", Self::IncrementSerial),
        ("CYCLE_WORKERS_AND_TARGETS", Self::WorkersAndTargets),
        ("CYCLE_OUTSTANDING_IOS", Self::Outstanding),
        ("CYCLE_OUTSTANDING_IOS_AND_TARGETS", Self::OutstandingAndTargets),
    ];

    /// Reads a word in any case.
    ///
    /// # Errors
    /// What was wrong and what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        let word = text.trim().replace('-', "_").to_ascii_uppercase();
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, cycle)| *cycle).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(word, _)| *word).collect();
            format!("{} is no test type; type one of {}", shown(text), known.join(", "))
        })
    }

    /// The tool's word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, cycle)| *cycle == self).map_or("", |(word, _)| *word)
    }

    /// What it does here, where one computer measures.
    pub fn about(self) -> &'static str {
        match self {
            Self::Normal => "all workers on all targets, once",
            Self::Targets => "all workers on a rising number of targets",
            Self::Workers => "a rising number of workers on all targets",
            Self::IncrementParallel => {
                "one target more for one worker at a time, worker after worker; the same as INCREMENT_TARGETS_SERIAL here, since they differ by the order of several computers"
            }
            Self::IncrementSerial => {
                "one target more for one worker at a time, worker after worker; the same as INCREMENT_TARGETS_PARALLEL here, since they differ by the order of several computers"
            }
            Self::WorkersAndTargets => "each number of workers on each number of targets",
            Self::Outstanding => "all workers on all targets with a rising number of outstanding I/Os",
            Self::OutstandingAndTargets => "each number of outstanding I/Os on each number of targets",
        }
    }

    /// Whether the number of targets rises.
    pub fn has_targets(self) -> bool {
        self.increments()
            || matches!(self, Self::Targets | Self::WorkersAndTargets | Self::OutstandingAndTargets)
    }

    /// Whether the number of workers rises by itself.
    pub fn has_workers(self) -> bool {
        matches!(self, Self::Workers | Self::WorkersAndTargets)
    }

    /// Whether the number of outstanding I/Os rises.
    pub fn has_outstanding(self) -> bool {
        matches!(self, Self::Outstanding | Self::OutstandingAndTargets)
    }

    /// Whether targets are given to one worker after another.
    pub fn increments(self) -> bool {
        matches!(self, Self::IncrementParallel | Self::IncrementSerial)
    }
}

/// By which law a number rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// By the same each time: 3, 5, 7, 9.
    Linear,
    /// By the same factor each time: 1, 2, 4, 8.
    Exponential,
}

impl Step {
    /// Reads a word in any case.
    ///
    /// # Errors
    /// What was wrong and what to type.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "linear" => Ok(Self::Linear),
            "exponential" => Ok(Self::Exponential),
            _ => Err(format!("{} is no way to step; type linear or exponential", shown(text))),
        }
    }

    /// The tool's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Linear => "LINEAR",
            Self::Exponential => "EXPONENTIAL",
        }
    }

    /// Numbers from the first on, none above the last. A step that would not rise ends it.
    pub fn values(self, first: u32, last: u32, by: u32) -> impl Iterator<Item = u32> {
        let next = move |value: &u32| {
            let next = match self {
                Self::Linear => value.checked_add(by),
                Self::Exponential => value.checked_mul(by),
            };
            next.filter(|n| n > value)
        };
        std::iter::successors(Some(first), next).take_while(move |v| *v <= last)
    }
}

#[test]
fn the_words_of_the_tool_are_taken_in_any_case() {
    for (word, cycle) in Cycle::ALL {
        assert_eq!((Cycle::parse(&word.to_lowercase()), cycle.word()), (Ok(cycle), word));
        assert!(!cycle.about().is_empty());
    }
    assert_eq!(Cycle::parse("cycle-workers"), Ok(Cycle::Workers));
    assert!(Cycle::parse("sideways").is_err_and(|e| e.contains("; type one of NORMAL")));
    assert!(Step::parse("cubic").is_err_and(|e| e.contains("; type linear")));
}

#[test]
fn steps_are_those_of_the_guide_and_end() {
    let all = |step: Step, (first, last, by)| step.values(first, last, by).collect::<Vec<_>>();
    assert_eq!(all(Step::Linear, (3, 9, 2)), [3, 5, 7, 9]);
    assert_eq!(all(Step::Exponential, (1, 8, 2)), [1, 2, 4, 8]);
    assert_eq!(all(Step::Exponential, (1, 9, 1)), [1], "what does not rise ends");
    assert_eq!(all(Step::Linear, (u32::MAX - 1, u32::MAX, 2)), [u32::MAX - 1]);
}
