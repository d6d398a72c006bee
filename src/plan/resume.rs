//! Going on: the plan of an earlier session, made once more and held against it.
//!
//! For: the same cells at the same place, with every refusal of a first time. Not for: what was measured of it (crate `analysis`).

use crate::cli::{Cli, Command, SweepSaid};
use crate::failure::Failure;
use clap::Parser;
use model::machine::Machine;
use model::plan::Plan;
use model::record::Record;

/// The plan of a sweep, from its own command line, and whether its session stays in the history.
///
/// # Errors
/// A usage failure where it was no sweep, or where the same words mean something else today.
pub fn again(word: &str, before: &Record) -> Result<((Plan, Machine), bool), Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {word}: {why}"));
    let old = &before.header.plan;
    if old.study.grid().is_none() {
        return Err(refuse("that session is no sweep; name one that `fathom sweep` wrote"));
    }
    let cli = Cli::try_parse_from(old.command.iter().map(|word| model::name::of_text(word)))
        .map_err(|_| refuse("this version does not understand its command line; begin anew"))?;
    let Command::Sweep(args) = cli.command else { return Err(refuse("its command line is no sweep")) };
    let SweepSaid::Measure(mut request, _) = args.said()? else {
        return Err(refuse("its command line measures nothing"));
    };
    request.command.clone_from(&old.command);
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
