//! Which rows a profile or a list is about.
//!
//! For: `--from`, `--to`, `--task`. Not for: reading them.

use crate::names::{Names, Task};
use crate::row::Row;
use model::captured::Restriction;

/// A restriction with what is known already of each task.
#[derive(Debug)]
pub(super) struct Within {
    restriction: Restriction,
    tasks: Vec<bool>,
}

/// The rows that a restriction means, for whoever lists them.
#[derive(Debug)]
pub struct Selection(Within);

impl Selection {
    /// By what was said.
    pub fn new(restriction: &Restriction) -> Self {
        Self(Within::new(restriction))
    }

    /// Whether a row is meant.
    pub fn has(&mut self, row: &Row, names: &Names) -> bool {
        self.0.has(row, names)
    }
}

impl Within {
    pub(super) fn new(restriction: &Restriction) -> Self {
        Self { restriction: restriction.clone(), tasks: Vec::new() }
    }

    pub(super) fn has(&mut self, row: &Row, names: &Names) -> bool {
        let Restriction { from_ns, to_ns, task } = &self.restriction;
        if from_ns.is_some_and(|from| row.issue_ns < from) || to_ns.is_some_and(|to| row.issue_ns >= to) {
            return false;
        }
        let Some(word) = task else { return true };
        // Tasks are numbered as they come, so what is known of the first ones stays.
        let new = names.all_tasks().get(self.tasks.len()..).unwrap_or_default();
        self.tasks.extend(new.iter().map(|task: &Task| task.is(word)));
        self.tasks.get(row.task as usize).copied().unwrap_or(false)
    }

    /// How much of so long a capture it is.
    pub(super) fn duration_ns(&self, captured_ns: u64) -> u64 {
        let to = self.restriction.to_ns.map_or(captured_ns, |to| to.min(captured_ns));
        to.saturating_sub(self.restriction.from_ns.unwrap_or(0))
    }
}
