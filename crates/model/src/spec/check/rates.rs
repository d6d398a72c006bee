//! What cannot be said of limits of single directions.
//!
//! For: `limit-iops` and `limit-bandwidth` with a direction in front of a rate. Not for: limits of all directions, nor open loops
//! ([`super`]).

use super::super::{Rw, StreamSpec};
use super::Problem;
use crate::job::Kind;

impl StreamSpec {
    pub(super) fn check_rates(&self, found: &mut Vec<Problem>) {
        let limits = [("limit-iops", self.limit_iops), ("limit-bandwidth", self.limit_bandwidth)];
        let said = limits.map(|(key, limit)| limit.map(|limit| (key, limit.each().copied())));
        let [first, second] = said;
        if let (Some((one, each)), Some((other, beside))) = (first, second)
            && each.is_some() != beside.is_some()
        {
            let message = format!(
                "{{{one}}} and {{{other}}} are one of all operations and one of single directions; type both of one kind"
            );
            found.push(Problem::new(&[one, other], message));
        }
        for (key, each) in said.into_iter().flatten().filter_map(|(key, each)| Some((key, each?))) {
            if !self.lines.is_empty() {
                let message = format!(
                    "{{{key}}} is of a direction, and each {{line}} has directions of its own; type one limit for all, or {{rw}}"
                );
                found.push(Problem::new(&[key, "line"], message));
                continue;
            }
            if !self.turns.is_empty() {
                let message = format!(
                    "{{{key}}} is of a direction, and the operations of a {{turn}} come in their order; type one limit for all, or leave it out"
                );
                found.push(Problem::new(&[key, "turn"], message));
                continue;
            }
            if self.way().writes_after_trims() {
                let message = format!(
                    "{{{key}}} is of a direction, and a write follows each trim; type one limit for both together"
                );
                found.push(Problem::new(&[key, "rw"], message));
                continue;
            }
            let missing = Kind::ALL.into_iter().find(|kind| each.for_kind(*kind) > 0.0 && !self.does(*kind));
            if let Some(kind) = missing {
                let message = format!(
                    "{{{key}}} limits {}s, and {{rw {}}} has none; leave it out, or type {{rw}} with them",
                    kind.word(),
                    self.way().word()
                );
                found.push(Problem::new(&[key, "rw"], message));
            }
            self.check_beside(key, found);
        }
    }

    /// What else decides which operation is next, or when, where directions have rates of their own.
    fn check_beside(&self, key: &'static str, found: &mut Vec<Problem>) {
        if !matches!(self.way(), Rw::Rw | Rw::Randrw) {
            return;
        }
        let beside = [
            ("flow", self.flow.is_some(), "waits for others"),
            ("serialize-overlap", self.serialize_overlap == Some(true), "waits for operations in flight"),
            ("think", self.think.is_some(), "rests"),
            ("times", self.times.is_some_and(|times| times > 1), "stays on a place"),
            ("mix-by-run", self.mix_by_run == Some(true), "keeps a direction"),
        ];
        for (other, _, what) in beside.into_iter().filter(|(_, said, _)| *said) {
            let message = format!(
                "{{{other}}} {what}, whatever the direction, and {{{key}}} chooses the direction that is next; type one limit for all, or leave one of them out"
            );
            found.push(Problem::new(&[other, key], message));
        }
    }
}
