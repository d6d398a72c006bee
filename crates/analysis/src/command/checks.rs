//! The checks that can be asked of a command: those that need no engine of fathom's own, with their ids and names of the catalogue.

use super::figures;
use crate::kernel_text::stolen_ticks;
use model::Known;
use model::check_id::CheckId;
use model::command::{Command, CommandRun, FilesState, NamedFiles};
use model::evidence::Moment;
use model::finding::{Finding, Outcome, Severity};
use model::kernel_files::LIMITS;
use model::limiter::Limiter;
use model::record::{CommandRecord, Record};
use model::units::{show_bytes, show_ns, show_share};
use stats::interval::FEWEST_RUNS;
use stats::sample::{mean, variance};
use std::collections::BTreeMap;

/// Share of the reads from which an answer of the page cache changes what the time means.
const CACHE_SHARE: f64 = 0.05;
/// Bytes below which nothing is said of a direction.
const LEAST_BYTES: u64 = 1 << 20;
/// Dirty bytes before a run from which their write-back disturbs it (D02).
const BACKLOG_BYTES: u64 = 64 << 20;
/// Share of the device's reads from which others disturb.
const FOREIGN_SHARE: f64 = 0.05;
/// Share of the time for which tasks wait for a CPU, or the hypervisor takes it, from which the time grows with that.
const CPU_WAIT_SHARE: f64 = 0.1;

/// Share of the bytes of the topmost device from which the lower ones delivered them.
const LOWER_SHARE: f64 = 0.9;
/// Time from which waiting for a CPU shows.
const CPU_WAIT_SECONDS: f64 = 0.1;
/// Ticks of all CPUs from which a share of them says something.
const LEAST_TICKS: u64 = 20;

/// What a check answers.
enum Reply {
    /// The command did nothing that it is about.
    DoesNotApply,
    /// Nothing was found.
    Holds,
    /// What was found.
    Found(Severity, String),
}

/// The reply, or why it cannot be told.
type CheckAnswer = Known<Reply>;

/// A finding if `is_found`.
#[expect(clippy::unnecessary_wraps, reason = "it ends functions that may not be able to tell")]
fn found_if(is_found: bool, severity: Severity, sentence: impl FnOnce() -> String) -> CheckAnswer {
    Ok(if is_found { Reply::Found(severity, sentence()) } else { Reply::Holds })
}

pub(super) fn ask(
    record: &Record,
    command: &Command,
    (run, limiter): (&CommandRun, &Limiter),
    seen: &CommandRecord,
) -> Vec<Finding> {
    let answers: [(CheckId, CheckAnswer); 13] = [
        (CheckId::A01, page_cache(run)),
        (CheckId::A04, stored_nowhere(run, "holes", |before| Some(before.hole_bytes))),
        (
            CheckId::A10,
            stored_nowhere(run, "ranges that were never written", |before| before.unwritten_bytes),
        ),
        (CheckId::A08, easy_data(run, seen)),
        (CheckId::A09, still_in_memory(run, seen)),
        (CheckId::A11, memory_below(run)),
        (CheckId::A12, lower_layer(record, run)),
        (CheckId::D01, foreign_io(run)),
        (CheckId::D02, backlog(run)),
        (CheckId::D04, limited(run, limiter, seen)),
        (CheckId::D08, waited_for_cpu(run)),
        (CheckId::D10, stolen(seen)),
        (CheckId::D14, memory_pressure(run)),
    ];
    answers.into_iter().filter_map(|(id, answer)| finding(id, command, answer)).collect()
}

/// Asks whether the repeats of a command agree. `seconds` are the wall times of the runs that succeeded.
pub(super) fn ask_repeats(command: &Command, seconds: &[f64]) -> Vec<Finding> {
    let answers = [(CheckId::E05, few_runs(seconds)), (CheckId::E06, Ok(runs_disagree(seconds)))];
    answers.into_iter().filter_map(|(id, answer)| finding(id, command, answer)).collect()
}

/// A single run claims nothing about the next one, so it is not asked.
fn few_runs(seconds: &[f64]) -> CheckAnswer {
    if seconds.len() < 2 {
        return Ok(Reply::DoesNotApply);
    }
    found_if(seconds.len() < FEWEST_RUNS, Severity::Note, || {
        format!("{} runs do not show how much its time varies; use --runs 5 or more.", seconds.len())
    })
}

fn runs_disagree(seconds: &[f64]) -> Reply {
    if seconds.len() < FEWEST_RUNS {
        return Reply::DoesNotApply;
    }
    let deviation = variance(seconds).sqrt() / mean(seconds);
    let Some(severity) = crate::checks::severity_of_spread(deviation) else { return Reply::Holds };
    let (least, most) = seconds.iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(*s), b.max(*s)));
    Reply::Found(
        severity,
        format!(
            "Its runs took from {} to {}: they differ by {} of their mean (standard deviation). Find what differs, such as \
             other load or a warm cache (--cold).",
            show_ns(least * 1e9),
            show_ns(most * 1e9),
            show_share(deviation)
        ),
    )
}

fn finding(id: CheckId, command: &Command, answer: CheckAnswer) -> Option<Finding> {
    let check = crate::checks::all().find(|check| check.id == id)?;
    let (outcome, severity, sentence) = match answer {
        Ok(Reply::DoesNotApply) => return None,
        Ok(Reply::Found(severity, sentence)) => (Outcome::Finding, Some(severity), sentence),
        Ok(Reply::Holds) => (Outcome::Holds, None, format!("Confirmed: {}.", check.belief)),
        Err(why) => (Outcome::NotChecked, None, why),
    };
    Some(Finding {
        id,
        name: check.name.into(),
        outcome,
        severity,
        about: vec![command.line.clone()],
        sentence,
        cure: String::new(),
        evidence: BTreeMap::new(),
        accepted: false,
    })
}

fn page_cache(run: &CommandRun) -> CheckAnswer {
    let moved = run.moved.as_ref().map_err(Clone::clone)?;
    if moved.read_call_bytes < LEAST_BYTES {
        return Ok(Reply::DoesNotApply);
    }
    let cached = run.cached_read_bytes.clone()?;
    let share = cached as f64 / moved.read_call_bytes as f64;
    found_if(share >= CACHE_SHARE, Severity::Rename, || {
        let share = show_share(share);
        format!("The page cache answered {share} of what it read; --cold evicts the files before each run.")
    })
}

/// Bytes of named files that are read as zeros, since no storage holds them.
fn stored_nowhere(run: &CommandRun, what: &str, bytes: impl Fn(&FilesState) -> Option<u64>) -> CheckAnswer {
    let moved = run.moved.as_ref().map_err(Clone::clone)?;
    // A copy may skip the holes of its input and write zeros.
    if moved.read_call_bytes.max(moved.dirtied_bytes) < LEAST_BYTES {
        return Ok(Reply::DoesNotApply);
    }
    let mut files = 0;
    for one in &run.named {
        let before = one.before.as_ref().map_err(Clone::clone)?;
        let amount = bytes(before)
            .ok_or_else(|| format!("the file system does not say how {} is stored", one.path))?;
        files += before.files;
        if amount >= LEAST_BYTES {
            let (amount, all) = (show_bytes(amount), show_bytes(before.bytes));
            return Ok(Reply::Found(
                Severity::Biased,
                format!(
                    "{amount} of the {all} of {} are {what}: they are read as zeros without the device.",
                    one.path
                ),
            ));
        }
    }
    if files == 0 { Err("its command line names no file that was there".into()) } else { Ok(Reply::Holds) }
}

/// Output that is easier to store than data: holes in a file that the command made, or zeros, as far as the command line tells.
fn easy_data(run: &CommandRun, seen: &CommandRecord) -> CheckAnswer {
    let made = |one: &&NamedFiles| one.before.as_ref().is_ok_and(|before| before.hole_bytes == 0);
    for one in run.named.iter().filter(made) {
        if let Ok(after) = &one.after
            && after.hole_bytes >= LEAST_BYTES
        {
            let (holes, all) = (show_bytes(after.hole_bytes), show_bytes(after.bytes));
            let sentence =
                format!("{holes} of the {all} of {} are holes: they were never written.", one.path);
            return Ok(Reply::Found(Severity::Biased, sentence));
        }
    }
    if figures::written(seen.end)? < LEAST_BYTES {
        return Ok(Reply::DoesNotApply);
    }
    let is_zero = seen.end.byte_sources.iter().any(|source| source == "/dev/zero");
    // What the data of any other command are like is not known: so it never holds.
    Ok(if is_zero {
        let sentence =
            "It wrote zeros: storage that compresses, or leaves zeros out, takes these faster than data.";
        Reply::Found(Severity::Biased, sentence.into())
    } else {
        Reply::DoesNotApply
    })
}

fn still_in_memory(run: &CommandRun, seen: &CommandRecord) -> CheckAnswer {
    let wrote = figures::written(seen.end)?;
    if wrote < LEAST_BYTES {
        return Ok(Reply::DoesNotApply);
    }
    let share = run.dirty_at_end_bytes.clone()? as f64 / wrote as f64;
    found_if(share >= CACHE_SHARE, Severity::Rename, || {
        format!("{} of what it wrote was still in the page cache when it ended.", show_share(share))
    })
}

fn memory_below(run: &CommandRun) -> CheckAnswer {
    if let Some((one, memory)) = run.named.iter().find_map(|one| Some((one, one.memory.as_ref()?))) {
        let sentence = format!("{} is memory ({memory}) and no disk.", one.path);
        return Ok(Reply::Found(Severity::Rename, sentence));
    }
    run.devices.as_ref().map_err(Clone::clone)?;
    Ok(Reply::Holds)
}

/// Whether the lowest devices read as much as the topmost.
fn lower_layer(record: &Record, run: &CommandRun) -> CheckAnswer {
    let machine = record.header.hosts.first();
    let devices = run.devices.as_ref().map_err(Clone::clone)?;
    let bytes = |name: &str| devices.iter().find(|d| d.name == name).map_or(0, |d| d.read_bytes);
    for place in machine.into_iter().flat_map(|machine| &machine.places) {
        let top: u64 = place.tops.iter().filter_map(|at| place.layers.get(*at)).map(|l| bytes(&l.name)).sum();
        let below: u64 = place.leaves().map(|l| bytes(&l.name)).sum();
        if top >= LEAST_BYTES && (below as f64) < LOWER_SHARE * top as f64 {
            let names: Vec<&str> = place.leaves().map(|l| l.name.as_str()).collect();
            let (top, below, names) = (show_bytes(top), show_bytes(below), names.join(" and "));
            return Ok(Reply::Found(
                Severity::Rename,
                format!(
                    "Of {top} that were read, {names} delivered {below}: a layer in between has a cache."
                ),
            ));
        }
    }
    Ok(Reply::Holds)
}

fn foreign_io(run: &CommandRun) -> CheckAnswer {
    let foreign = run.foreign_read_bytes.clone()?;
    let all: u64 = run.moved.as_ref().map_or(0, |moved| moved.fetched_bytes).saturating_add(foreign);
    let is_much = foreign >= LEAST_BYTES && foreign as f64 >= FOREIGN_SHARE * all as f64;
    found_if(is_much, Severity::Biased, || {
        let moved = run.neighbours.iter().filter(|one| one.io_bytes.is_some_and(|bytes| bytes > 0));
        let busy: Vec<&str> = moved.map(|one| one.name.as_str()).collect();
        let who = if busy.is_empty() { String::new() } else { format!("; busy were {}", busy.join(", ")) };
        format!("Others read {} from the same devices meanwhile{who}.", show_bytes(foreign))
    })
}

fn backlog(run: &CommandRun) -> CheckAnswer {
    let before = run.machine_dirty_bytes[0].clone()?;
    found_if(before >= BACKLOG_BYTES, Severity::Biased, || {
        let before = show_bytes(before);
        format!("{before} of other programs were dirty when it began, and are written back meanwhile.")
    })
}

fn limited(run: &CommandRun, limiter: &Limiter, seen: &CommandRecord) -> CheckAnswer {
    let start = seen.run.evidence.iter().find(|snapshot| snapshot.moment == Moment::Start);
    start.ok_or("the session has no snapshot of its start")?.text(LIMITS)?;
    run.devices.as_ref().map_err(Clone::clone)?;
    found_if(limiter.name == "throttle", Severity::Biased, || {
        format!("This is a limit: {}.", limiter.sentence)
    })
}

fn waited_for_cpu(run: &CommandRun) -> CheckAnswer {
    let share = run.pressure[1].clone()?;
    let is_much = share >= CPU_WAIT_SHARE && run.seconds >= CPU_WAIT_SECONDS;
    found_if(is_much, Severity::Note, || {
        let computed = run.neighbours.iter().filter(|one| one.cpu_ms > 0);
        let busy: Vec<String> =
            computed.map(|one| format!("{} for {}", one.name, show_ns(one.cpu_ms as f64 * 1e6))).collect();
        let who =
            if busy.is_empty() { String::new() } else { format!("; others computed: {}", busy.join(", ")) };
        format!("Tasks of this machine waited for a CPU for {} of the time{who}.", show_share(share))
    })
}

fn stolen(seen: &CommandRecord) -> CheckAnswer {
    let at = |moment| {
        let found = seen.run.evidence.iter().find(|snapshot| snapshot.moment == moment);
        found.ok_or_else(|| "the session has no snapshot of that moment".to_owned()).and_then(stolen_ticks)
    };
    let ([steal_before, all_before], [steal_after, all_after]) = (at(Moment::Start)?, at(Moment::Stop)?);
    let (steal, all) = (steal_after.saturating_sub(steal_before), all_after.saturating_sub(all_before));
    if all < LEAST_TICKS {
        return Ok(Reply::DoesNotApply);
    }
    let share = steal as f64 / all as f64;
    found_if(share >= CPU_WAIT_SHARE, Severity::Biased, || {
        format!("The hypervisor took the CPUs away for {} of the time.", show_share(share))
    })
}

fn memory_pressure(run: &CommandRun) -> CheckAnswer {
    let share = run.pressure[2].clone()?;
    found_if(share >= CPU_WAIT_SHARE, Severity::Biased, || {
        format!("Tasks of this machine waited for memory for {} of the time.", show_share(share))
    })
}
