//! Priorities of single operations.
//!
//! For: `cmdprio_percentage`, `cmdprio_class`, `cmdprio` and `cmdprio_bssplit`. Not for: the priority of a whole job ([`super::streams`]).

use super::access::ParsedRw;
use super::jobs::{Fault, Job};
use super::value::triplet;
use model::job::{IoPriority, Kind, OpPriority};
use model::spec::{StreamSpec, priority};

/// Engines that take them.
const PRIORITY_ENGINES: [&str; 2] = ["io_uring", "libaio"];
/// The options, that which says how many first.
const PRIORITY_OPTIONS: [&str; 4] = ["cmdprio_percentage", "cmdprio_bssplit", "cmdprio_class", "cmdprio"];
/// Real-time, as where no class is said.
const CLASS: u64 = 1;

/// Says which operations have a priority of their own.
pub(super) fn priorities(job: &Job, way: &ParsedRw, one: &mut StreamSpec) -> Result<(), Fault> {
    let Some(said) = PRIORITY_OPTIONS.into_iter().find(|option| job.text(option).is_some()) else { return Ok(()) };
    if !job.text("ioengine").is_some_and(|engine| PRIORITY_ENGINES.contains(&engine)) {
        let why = "it goes with ioengine=io_uring or libaio; type one of them, or prio and prioclass";
        return Err(job.fault(said, why));
    }
    let mut all = Vec::new();
    let mix = one.mix;
    let does =
        |kind: &Kind| way.directions().contains(&(*kind as usize)) && mix.is_none_or(|mix| mix.does(*kind));
    for kind in Kind::MOVING.into_iter().filter(does) {
        let percent = cmdprio_number(job, "cmdprio_percentage", kind)?.unwrap_or(0);
        let split = of(job, "cmdprio_bssplit", kind)?;
        if percent > 0 && split.is_some() {
            return Err(job.fault("cmdprio_bssplit", "it excludes cmdprio_percentage; type one of them"));
        }
        let fault = |option| move |why: String| job.fault(option, why);
        if percent > 0 {
            let percent = share(percent).map_err(fault("cmdprio_percentage"))?;
            all.push(OpPriority {
                kind: Some(kind),
                bytes: None,
                percent,
                priority: priority_of(job, kind)?,
            });
        }
        for piece in split.into_iter().flat_map(|split| split.split(':')) {
            all.extend(of_size(job, kind, piece)?);
        }
    }
    priority::check(&all).map_err(|why| job.fault(said, why))?;
    one.op_priorities = Some(all).filter(|all| !all.is_empty());
    Ok(())
}

/// What an option says of a direction: of one value both, of two the second of writes.
fn of<'j>(job: &'j Job, option: &str, kind: Kind) -> Result<Option<&'j str>, Fault> {
    let Some(text) = job.text(option) else { return Ok(None) };
    let said = triplet(text).map_err(|why| job.fault(option, why))?;
    Ok(said.get(kind as usize).copied().flatten())
}

fn cmdprio_number(job: &Job, option: &str, kind: Kind) -> Result<Option<u64>, Fault> {
    let text = of(job, option, kind)?;
    text.map(|text| job.units(option).whole(text)).transpose().map_err(|why| job.fault(option, why))
}

/// A share in whole percent.
fn share(percent: u64) -> Result<u8, String> {
    let fits = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
    fits.ok_or_else(|| "it is no share; type 0 to 100".to_owned())
}

/// The priority that the options say for a direction.
fn priority_of(job: &Job, kind: Kind) -> Result<IoPriority, Fault> {
    let class = cmdprio_number(job, "cmdprio_class", kind)?.unwrap_or(CLASS);
    let level = cmdprio_number(job, "cmdprio", kind)?.unwrap_or(0);
    let fault = |option: &str, why: &str| Err(job.fault(option, why));
    let Some(level) = u8::try_from(level).ok().filter(|level| *level < 8) else {
        return fault("cmdprio", "it is 0 to 7, of which 0 goes first; type such a level");
    };
    match class {
        1 => Ok(IoPriority::Realtime(level)),
        2 => Ok(IoPriority::BestEffort(level)),
        3 if level == 0 => Ok(IoPriority::Idle),
        3 => fault("cmdprio", "the idle class has no levels; leave it out"),
        _ => fault("cmdprio_class", "it is no class; type 1, 2 or 3"),
    }
}

/// `4k/20` with the priority of the options, `4k/20/1/0` with its own; none where the share is.
fn of_size(job: &Job, kind: Kind, piece: &str) -> Result<Option<OpPriority>, Fault> {
    let fault = |why: &str| job.fault("cmdprio_bssplit", why);
    let wrong = || fault("a size has a share, or a share, a class and a level; type 4k/20 or 4k/20/1/0");
    let words: Vec<&str> = piece.split('/').map(str::trim).collect();
    let number = |text: &str| job.units("cmdprio_bssplit").whole(text).map_err(|why| fault(&why));
    let (size, percent, priority) = match *words.as_slice() {
        [size, percent] => (size, percent, priority_of(job, kind)?),
        [.., hint] if words.len() == 5 && number(hint)? > 0 => {
            return Err(fault(
                "hints of command duration limits are not passed on; leave the fifth number out, or type 0",
            ));
        }
        [size, percent, class, level] | [size, percent, class, level, _] => {
            let level = u8::try_from(number(level)?).ok().filter(|level| *level < 8).ok_or_else(wrong)?;
            let priority = match number(class)? {
                1 => IoPriority::Realtime(level),
                2 => IoPriority::BestEffort(level),
                3 => IoPriority::Idle,
                _ => return Err(wrong()),
            };
            (size, percent, priority)
        }
        _ => return Err(wrong()),
    };
    let bytes = u32::try_from(number(size)?).map_err(|_| wrong())?;
    let percent = share(number(percent.trim_end_matches('%'))?).map_err(|why| fault(&why))?;
    Ok((percent > 0).then_some(OpPriority { kind: Some(kind), bytes: Some(bytes), percent, priority }))
}
