//! The seed: what decides about offsets and data, and whether the session before drew the same offsets.
//!
//! Two sessions draw the same offsets only where seed, file and accesses are the same: another span or another size of operations gives other
//! offsets, and a file that was made anew has other blocks.

use super::origins::Origins;
use crate::history;
use model::Known;
use model::evidence::FileState;
use model::job::{Access, Job, Order};
use model::name;
use model::plan::{Role, Target};
use model::record::Record;
use std::os::unix::fs::MetadataExt;

/// The seed, and the session before on one of the targets if it drew the same offsets ([`model::plan::Plan::seed_again`]).
pub(super) fn chosen(
    typed: Option<u64>,
    (jobs, targets): (&[Job], &[Target]),
    (foreign, cold): (bool, bool),
    origins: &mut Origins,
) -> (u64, Option<Known<String>>) {
    let from_clock = jiff::Timestamp::now().as_nanosecond() as u64 >> 10;
    let seed = origins.choose_from("--seed", typed, from_clock, "the clock", u64::to_string);
    // A file of our own is another one each time, and the clock never gives the same seed twice.
    let stays = |(_, t): &(usize, &Target)| typed.is_some() && matches!(t.role, Role::File | Role::Device);
    // diskspd and fio repeat one seed in each call. Their users asked for no repetition, and the page cache holds none of the blocks.
    let streams = jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
    if foreign && (cold || streams.into_iter().all(|s| s.cache.is_direct())) {
        return (seed, None);
    }
    let again = targets.iter().enumerate().filter(stays).find_map(|(index, target)| {
        match history::last_on(&target.path) {
            Ok(Some((id, before))) => draws_again(seed, (jobs, index, target), &before).then_some(Ok(id)),
            Ok(None) => None,
            Err(why) => Some(Err(why.message().to_owned())),
        }
    });
    (seed, again)
}

/// Whether every stream that draws offsets of a target draws those that it drew in an earlier session.
fn draws_again(seed: u64, (jobs, index, target): (&[Job], usize, &Target), before: &Record) -> bool {
    let plan = &before.header.plan;
    let Some(at) = plan.targets.iter().position(|t| t.path == target.path) else { return false };
    let (now, then) = (drawn(jobs, index), drawn(&plan.jobs, at));
    plan.seed == seed && !now.is_empty() && now == then && is_same_file(target, before, at)
}

/// The accesses that draw offsets of a target, each with the indices that its random numbers depend on.
fn drawn(jobs: &[Job], target: usize) -> Vec<((usize, usize, usize), &Access)> {
    let mut out = Vec::new();
    for (job, of_job) in jobs.iter().enumerate() {
        for (phase, of_phase) in of_job.phases.iter().enumerate() {
            for (stream, of) in of_phase.streams.iter().enumerate() {
                let draws = of.access.lines.iter().any(|l| !matches!(l.order, Order::Sequential(_)));
                if draws && of.targets.contains(&target) {
                    out.push(((job, phase, stream), &of.access));
                }
            }
        }
    }
    out
}

/// Whether a target is the file or device that a session measured. A path may lead to a file that was made anew.
fn is_same_file(target: &Target, before: &Record, at: usize) -> bool {
    let seen = before.runs.iter().flat_map(|r| &r.evidence).find_map(|s| s.targets.get(at)?.file.as_ref());
    match (target.role, seen) {
        (Role::File, Some(Ok(FileState { device, inode, .. }))) => {
            std::fs::metadata(name::path(&target.path))
                .is_ok_and(|now| (now.dev(), now.ino()) == (*device, *inode))
        }
        _ => before.header.plan.targets[at].identity == target.identity,
    }
}
