//! Going on: the plan of an earlier session, made once more and compared with it.
//!
//! For: the same cells at the same place, with every refusal of a first time. Not for: what was measured of it (crate `analysis`).

use crate::failure::Failure;
use crate::request::Request;
use model::machine::Machine;
use model::plan::Plan;
use model::record::Record;

/// The plan of a sweep, from what its own command line says now, and whether its session stays in the history.
///
/// # Errors
/// A usage failure where the same words mean something else today.
pub fn resume_plan(
    word: &str,
    mut request: Request,
    before: &Record,
) -> Result<((Plan, Machine), bool), Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {word}: {why}"));
    let old = &before.header.plan;
    if let Some(part) = old.part {
        return Err(refuse(&format!(
            "it is of {} hosts, and one alone does not go on with it; begin anew",
            part.hosts
        )));
    }
    // Where the seed came from the clock, this is what it said then.
    request.job.seed = Some(old.seed);
    request.flags.push("seed");
    let (mut plan, machine) = super::plan(&request)?;
    // It goes on behind the offsets that were drawn, and repeats none.
    plan.seed_again = None;
    let what = if plan.targets != old.targets {
        "its target is not what it was, or you are in another directory; go there"
    } else if plan.jobs != old.jobs || plan.study != old.study {
        "the same command line would measure other cells now (another file system, another version)"
    } else {
        return Ok(((plan, machine), request.keep));
    };
    Err(refuse(&format!("{what}; or begin anew")))
}
