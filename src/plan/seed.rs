//! The seed: what decides about offsets and data, and whether it did so just before.
//!
//! For: choosing it, and telling who types one twice. Not for: drawing from it (crate `engine`).

use super::origins::Origins;
use crate::history;
use model::Known;
use model::plan::{Role, Target};

/// The seed, and the session before on one of the targets where that had the same ([`model::plan::Plan::seed_again`]).
pub(super) fn chosen(
    typed: Option<u64>,
    targets: &[Target],
    origins: &mut Origins,
) -> (u64, Option<Known<String>>) {
    let from_clock = jiff::Timestamp::now().as_nanosecond() as u64 >> 10;
    let seed = origins.choose_from("--seed", typed, from_clock, "the clock", u64::to_string);
    // A file of our own is another one each time, and the clock never says the same twice.
    let stays = |t: &&Target| typed.is_some() && matches!(t.role, Role::File | Role::Device);
    let again = targets.iter().filter(stays).find_map(|t| match history::last_on(&t.path) {
        Ok(Some((id, before))) => (before.header.plan.seed == seed).then_some(Ok(id)),
        Ok(None) => None,
        Err(why) => Some(Err(why.words().to_owned())),
    });
    (seed, again)
}
