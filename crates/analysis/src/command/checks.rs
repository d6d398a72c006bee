//! The checks of `fathom time`: those of the catalogue that need no engine of fathom, with the same ids and names.
//!
//! Each function answers one check about one run of a command. [`run_checks`] asks all of them; [`check_repeats`] asks whether the runs of
//! a command agree.

use super::figures::{self, snapshot_at};
use crate::checks::{
    ARRIVED_FROM, Answer as CheckAnswer, CACHED_ABOVE, CPU_WAIT_ABOVE, Detail, Evidence, FOREIGN_ABOVE,
    OUTER_CGROUPS_HIDDEN, show_part,
};
use crate::figures::kernel_text::{MIN_TICKS, stolen_ticks};
use crate::findings;
use model::Known;
use model::command::{Command, CommandRun, FilesState, NamedFiles};
use model::evidence::{
    BACKLOG_BYTES, IO_LIMIT_KINDS, LIMITS, Moment, hides_outer_cgroups, unreadable_limits,
};
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::record::{CommandRecord, Record};
use model::report::Limiter;
use model::units::{show_bytes, show_ns, show_share};
use stats::intervals::FEWEST_RUNS;
use stats::sample::{mean, variance};
use std::borrow::Cow;

/// Minimum share for a finding: of reads that the page cache served, or of writes that were still in
/// the page cache.
const CACHE_SHARE: f64 = CACHED_ABOVE.0;

/// Fewer bytes than this do not matter: read or written bytes, holes of a file, or traffic of other processes.
pub(super) const MIN_BYTES: u64 = 1 << 20;

/// Other processes disturb the run if they did at least this share of the reads.
const FOREIGN_SHARE: f64 = FOREIGN_ABOVE.0;

/// If tasks waited for a CPU, or for memory, for at least this share of the time, the run was noticeably longer.
const CPU_WAIT_SHARE: f64 = CPU_WAIT_ABOVE.0;

/// Shortest run in which waiting for a CPU is noticeable.
const CPU_WAIT_SECONDS: f64 = 0.1;

/// Returns the answer of a check that found no problem. [`to_checked`] writes its sentence from the check's `belief`.
fn holds() -> CheckAnswer {
    holds_with("")
}

/// Returns the answer of a check whose `belief` is true only within a tolerance.
fn holds_with(sentence: impl Into<Cow<'static, str>>) -> CheckAnswer {
    CheckAnswer::Holds(sentence.into(), Evidence::new())
}

/// Returns the answer of a check that found a problem.
fn found(severity: Severity, sentence: String) -> CheckAnswer {
    CheckAnswer::Finding(Detail::new(severity, sentence, Evidence::new()))
}

/// Returns a finding if `is_found`, otherwise that the check holds.
#[expect(clippy::unnecessary_wraps, reason = "the functions that end with it may return an error")]
fn found_if(is_found: bool, severity: Severity, sentence: impl FnOnce() -> String) -> Known<CheckAnswer> {
    Ok(if is_found { found(severity, sentence()) } else { holds() })
}

/// Runs the checks on one run of a command.
pub(super) fn run_checks(
    record: &Record,
    command: &Command,
    run: &CommandRun,
    limiter: &Limiter,
    seen: &CommandRecord,
) -> Vec<Checked> {
    let answers: [(CheckId, Known<CheckAnswer>); 13] = [
        (CheckId::A01, check_page_cache(run)),
        (CheckId::A04, check_stored_bytes(run, "holes", |before| Some(before.hole_bytes))),
        (
            CheckId::A10,
            check_stored_bytes(run, "ranges that were never written", |before| before.unwritten_bytes),
        ),
        (CheckId::A08, check_easy_data(command, run, seen)),
        (CheckId::A09, check_still_in_memory(run, seen)),
        (CheckId::A11, check_memory_below(record, run)),
        (CheckId::A12, check_lower_layer(record, run)),
        (CheckId::D01, check_foreign_io(record, run)),
        (CheckId::D02, check_backlog(run)),
        (CheckId::D04, check_limit(run, limiter, seen)),
        (CheckId::D08, check_cpu_wait(run)),
        (CheckId::D10, check_stolen_time(seen)),
        (CheckId::D14, check_memory_wait(run)),
    ];
    answers.into_iter().filter_map(|(id, answer)| to_checked(id, command, &answer)).collect()
}

/// Checks whether the repeats of a command agree. `seconds` are the wall times of the runs that succeeded.
pub(super) fn check_repeats(command: &Command, seconds: &[f64]) -> Vec<Checked> {
    let answers = [(CheckId::E05, check_run_count(seconds)), (CheckId::E06, Ok(check_spread(seconds)))];
    answers.into_iter().filter_map(|(id, answer)| to_checked(id, command, &answer)).collect()
}

/// Checks whether there are enough runs. A single run makes no claim about the next one, so it is not checked.
fn check_run_count(seconds: &[f64]) -> Known<CheckAnswer> {
    if seconds.len() < 2 {
        return Ok(CheckAnswer::DoesNotApply);
    }
    found_if(seconds.len() < FEWEST_RUNS, Severity::Note, || {
        format!("{} runs do not show how much the time varies; use --runs 5 or more.", seconds.len())
    })
}

fn check_spread(seconds: &[f64]) -> CheckAnswer {
    if seconds.len() < FEWEST_RUNS {
        return CheckAnswer::DoesNotApply;
    }
    let deviation = variance(seconds).sqrt() / mean(seconds);
    let Some(severity) = crate::checks::severity_of_spread(deviation) else { return holds() };
    let (least, most) = seconds.iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(*s), b.max(*s)));
    found(
        severity,
        format!(
            "The runs took from {} to {}, with a standard deviation of {} of their mean. Look for other load or a warm cache \
             (--cold).",
            show_ns(least * 1e9),
            show_ns(most * 1e9),
            show_share(deviation)
        ),
    )
}

fn to_checked(id: CheckId, command: &Command, answer: &Known<CheckAnswer>) -> Option<Checked> {
    let check = crate::checks::all().find(|check| check.id == id)?;
    let mut checked = findings::to_checked(id, check.name, "", answer, vec![command.line.clone()])?;
    if checked.outcome == Outcome::Holds && checked.sentence.is_empty() {
        checked.sentence = format!("Confirmed: {}.", check.belief);
    }
    Some(checked)
}

fn check_page_cache(run: &CommandRun) -> Known<CheckAnswer> {
    let moved = run.moved.as_ref().map_err(Clone::clone)?;
    if moved.read_call_bytes < MIN_BYTES && run.interface.asynchronous != Ok(true) {
        return Ok(CheckAnswer::DoesNotApply);
    }
    let cached = run.cached_read_bytes.clone()?;
    let share = cached as f64 / moved.read_call_bytes as f64;
    found_if(share >= CACHE_SHARE, Severity::Relabels, || {
        let share = show_share(share);
        format!("The page cache served {share} of the reads; --cold evicts the files before each run.")
    })
}

/// Checks for ranges of the named files that read as zeros because their bytes were never stored.
fn check_stored_bytes(
    run: &CommandRun,
    what: &str,
    bytes: impl Fn(&FilesState) -> Option<u64>,
) -> Known<CheckAnswer> {
    let moved = run.moved.as_ref().map_err(Clone::clone)?;
    // A copy may skip the holes of its input and write zeros.
    if moved.read_call_bytes.max(moved.dirtied_bytes) < MIN_BYTES {
        return Ok(CheckAnswer::DoesNotApply);
    }
    let (mut files, mut most) = (0, 0);
    let mut unknown = None;
    for one in &run.named {
        let stored = one.before.as_ref().map_err(Clone::clone).and_then(|before| {
            let amount = bytes(before);
            let why = || format!("the file system does not report the extents of {}", one.path);
            Ok((before, amount.ok_or_else(why)?))
        });
        let (before, amount) = match stored {
            Ok(stored) => stored,
            // Another file may still prove a finding.
            Err(why) => {
                unknown = unknown.or(Some(why));
                continue;
            }
        };
        files += before.files;
        most = most.max(amount);
        if amount >= MIN_BYTES {
            let (amount, all) = (show_bytes(amount), show_bytes(before.bytes));
            return Ok(found(
                Severity::Biases,
                format!(
                    "{amount} of the {all} in {} are {what}: reads of them return zeros without the device.",
                    one.path
                ),
            ));
        }
    }
    match (unknown, files) {
        (Some(why), _) => Err(why),
        (None, 0) => Err("the command line names no existing file".into()),
        _ if most > 0 => Ok(holds_with(format!("Hardly any bytes of the named files are {what}."))),
        _ => Ok(holds_with(format!("The named files have no {what}."))),
    }
}

/// Checks for output that is easier to store than real data: holes in a file that had none before, or zeros, according
/// to the command line.
fn check_easy_data(command: &Command, run: &CommandRun, seen: &CommandRecord) -> Known<CheckAnswer> {
    let had_no_holes = |one: &&NamedFiles| one.before.as_ref().is_ok_and(|before| before.hole_bytes == 0);
    for one in run.named.iter().filter(had_no_holes) {
        if let Ok(after) = &one.after
            && after.hole_bytes >= MIN_BYTES
        {
            let (holes, all) = (show_bytes(after.hole_bytes), show_bytes(after.bytes));
            let sentence =
                format!("{holes} of the {all} in {} are holes: they were never written.", one.path);
            return Ok(found(Severity::Biases, sentence));
        }
    }
    if figures::written_bytes(seen.end, &run.machine_dirty_bytes[0])? < MIN_BYTES {
        return Ok(CheckAnswer::DoesNotApply);
    }
    // The content of other output is unknown, so the check never holds.
    if !seen.end.byte_sources.iter().any(|source| source == "/dev/zero") {
        return Ok(CheckAnswer::DoesNotApply);
    }
    // These programs copy their input. Others, and pipelines, may make other data of it.
    let has_pipes = seen.end.traced.as_ref().is_ok_and(|traced| traced.pipes > 0);
    Ok(if COPYING_PROGRAMS.contains(&command.program()) && !has_pipes {
        let sentence =
            "The command wrote zeros: storage that compresses or skips zeros stores them faster than data.";
        found(Severity::Biases, sentence.into())
    } else {
        let sentence = "The command read /dev/zero. If it wrote these zeros, storage that compresses or skips zeros \
                        stored them faster than data.";
        found(Severity::Note, sentence.into())
    })
}

/// Programs that write what they read.
const COPYING_PROGRAMS: [&str; 5] = ["dd", "cp", "cat", "head", "tee"];

fn check_still_in_memory(run: &CommandRun, seen: &CommandRecord) -> Known<CheckAnswer> {
    let wrote = figures::written_bytes(seen.end, &run.machine_dirty_bytes[0])?;
    if wrote < MIN_BYTES {
        return Ok(CheckAnswer::DoesNotApply);
    }
    let share = run.dirty_at_end_bytes.clone()? as f64 / wrote as f64;
    found_if(share >= CACHE_SHARE, Severity::Relabels, || {
        format!("{} of the writes were still in the page cache when the command ended.", show_share(share))
    })
}

fn check_memory_below(record: &Record, run: &CommandRun) -> Known<CheckAnswer> {
    if let Some((one, memory)) = run.named.iter().find_map(|one| Some((one, one.memory.as_ref()?))) {
        let sentence = format!("{} is in memory ({memory}), not on a disk.", one.path);
        return Ok(found(Severity::Relabels, sentence));
    }
    let devices = run.devices.as_ref().map_err(Clone::clone)?;
    let moved_much = |name: &str| {
        devices.iter().any(|d| d.name == name && d.read_bytes.saturating_add(d.written_bytes) >= MIN_BYTES)
    };
    // The command may have used a file of the current directory that its command line does not name.
    for place in record.header.hosts.first().into_iter().flat_map(|machine| &machine.places) {
        let tops = || place.tops.iter().filter_map(|at| place.layers.get(*at));
        if let (Some(memory), Some(top)) = (&place.ram, tops().find(|top| moved_much(&top.name))) {
            return Ok(found(
                Severity::Relabels,
                format!("{} is in memory ({memory}), not on a disk.", top.name),
            ));
        }
    }
    Ok(holds())
}

/// Lower devices that read more than this factor of what the topmost ones read also read for others, or ahead.
const MOST_BELOW: f64 = 1.02;

/// Checks whether the lowest devices read as much as the topmost.
fn check_lower_layer(record: &Record, run: &CommandRun) -> Known<CheckAnswer> {
    let machine = record.header.hosts.first();
    let devices = run.devices.as_ref().map_err(Clone::clone)?;
    let bytes = |name: &str| devices.iter().find(|d| d.name == name).map_or(0, |d| d.read_bytes);
    let mut least_share = 1.0_f64;
    for place in machine.into_iter().flat_map(|machine| &machine.places) {
        let top: u64 = place.tops.iter().filter_map(|at| place.layers.get(*at)).map(|l| bytes(&l.name)).sum();
        let below: u64 = place.lowest_layers().map(|l| bytes(&l.name)).sum();
        if top >= MIN_BYTES && (below as f64) < ARRIVED_FROM.0 * top as f64 {
            let names: Vec<&str> = place.lowest_layers().map(|l| l.name.as_str()).collect();
            let (top, below, names) = (show_bytes(top), show_bytes(below), names.join(" and "));
            return Ok(found(
                Severity::Relabels,
                format!(
                    "{names} delivered {below} of the {top} that were read: a layer in between has a cache, or returned zeros for ranges that were never written."
                ),
            ));
        }
        if top > 0 {
            least_share = least_share.min(below as f64 / top as f64);
        }
        if top >= MIN_BYTES && below > top.saturating_add(MIN_BYTES) && below as f64 > MOST_BELOW * top as f64
        {
            return Err(format!(
                "the disks below read {}, more than the {} that were read above them: reads of others may hide a cache",
                show_bytes(below),
                show_bytes(top)
            ));
        }
    }
    if least_share < 1.0 {
        return Ok(holds_with(format!("The disks below delivered {} of the reads.", show_part(least_share))));
    }
    Ok(holds())
}

fn check_foreign_io(record: &Record, run: &CommandRun) -> Known<CheckAnswer> {
    let foreign = run.foreign_read_bytes.clone()?;
    let all: u64 = run.moved.as_ref().map_or(0, |moved| moved.fetched_bytes).saturating_add(foreign);
    let is_much =
        |foreign: u64, all: u64| foreign >= MIN_BYTES && foreign as f64 >= FOREIGN_SHARE * all as f64;
    if is_much(foreign, all) {
        let with_io = run.neighbours.iter().filter(|one| one.io_bytes.is_some_and(|bytes| bytes > 0));
        let busy: Vec<&str> = with_io.map(|one| one.name.as_str()).collect();
        let who = if busy.is_empty() {
            String::new()
        } else {
            format!(" (processes with I/O: {})", busy.join(", "))
        };
        let sentence = format!(
            "Other processes read {} from the same devices during the run{who}.",
            show_bytes(foreign)
        );
        let severity = if figures::used_devices(run) { Severity::Biases } else { Severity::Note };
        return Ok(found(severity, sentence));
    }
    let below = read_only_below(record, run)?;
    if is_much(below, all) {
        return Err(format!(
            "the lowest devices read {} that the devices above them did not request: other processes, or the read-ahead of a loop device, may have read them",
            show_bytes(below)
        ));
    }
    let written = run
        .foreign_written_bytes
        .clone()
        .map_err(|why| format!("how much other processes wrote to the same devices is unknown: {why}"))?;
    if is_much(written, run.written_at_end_bytes.as_ref().unwrap_or(&0).saturating_add(written)) {
        return Err(format!(
            "the devices wrote {} that are not the command's data; other processes or the file system's journal may have written them",
            show_bytes(written)
        ));
    }
    if foreign.saturating_add(below).saturating_add(written) > 0 {
        return Ok(holds_with("The disk served too little other I/O to matter."));
    }
    Ok(holds())
}

/// Returns the bytes that only the lowest devices of a place read: more than its topmost devices read, and more than the command may have
/// read from other places. Of several places, returns the largest number.
pub(super) fn read_only_below(record: &Record, run: &CommandRun) -> Known<u64> {
    let devices = run.devices.as_ref().map_err(Clone::clone)?;
    let read = |name: &str| devices.iter().find(|d| d.name == name).map_or(0, |d| d.read_bytes);
    let fetched = run.moved.as_ref().map_or(0, |moved| moved.fetched_bytes);
    let places = record.header.hosts.first().into_iter().flat_map(|machine| &machine.places);
    let excess = places.map(|place| {
        let top: u64 = place.tops.iter().filter_map(|at| place.layers.get(*at)).map(|l| read(&l.name)).sum();
        let below: u64 = place.lowest_layers().map(|l| read(&l.name)).sum();
        below.saturating_sub(top).saturating_sub(fetched.saturating_sub(top))
    });
    Ok(excess.max().unwrap_or(0))
}

fn check_backlog(run: &CommandRun) -> Known<CheckAnswer> {
    let before = run.machine_dirty_bytes[0].clone()?;
    if (1..BACKLOG_BYTES).contains(&before) {
        return Ok(holds_with("Hardly any older data was waiting to be written."));
    }
    found_if(before >= BACKLOG_BYTES, Severity::Biases, || {
        let before = show_bytes(before);
        format!(
            "{before} of dirty data was in memory before the run, and its write-back competes with the run."
        )
    })
}

fn check_limit(run: &CommandRun, limiter: &Limiter, seen: &CommandRecord) -> Known<CheckAnswer> {
    let start = snapshot_at(seen.run, Moment::Start);
    let limits = start.map_err(|_| "the session has no snapshot of its start")?.text(LIMITS)?;
    run.devices.as_ref().map_err(Clone::clone)?;
    let is_reached = limiter.name == "throttle";
    let fetched = run.moved.as_ref().map_or(0, |moved| moved.fetched_bytes);
    let charged = run.charged_bytes.as_ref().map_or(u64::MAX, |[read, _]| *read);
    if !is_reached && fetched >= MIN_BYTES && charged < fetched / 2 {
        return Err("the kernel charged the command's reads elsewhere, so limits of another cgroup or device may apply".into());
    }
    let unreadable = unreadable_limits(limits, IO_LIMIT_KINDS);
    if let Some(why) = unreadable.clone().filter(|_| !is_reached) {
        return Err(why);
    }
    if !is_reached && hides_outer_cgroups(limits) {
        return Err(OUTER_CGROUPS_HIDDEN.into());
    }
    let unreadable = unreadable.map_or_else(String::new, |why| format!(" Other {why}."));
    found_if(is_reached, Severity::Biases, || {
        format!("The run reached a limit: {}.{unreadable}", limiter.sentence)
    })
}

fn check_cpu_wait(run: &CommandRun) -> Known<CheckAnswer> {
    let share = run.pressure[1].clone()?;
    let is_much = share >= CPU_WAIT_SHARE && run.seconds >= CPU_WAIT_SECONDS;
    found_if(is_much, Severity::Note, || {
        let computed = run.neighbours.iter().filter(|one| one.cpu_ms > 0);
        let busy: Vec<String> =
            computed.map(|one| format!("{} for {}", one.name, show_ns(one.cpu_ms as f64 * 1e6))).collect();
        let who = if busy.is_empty() {
            String::new()
        } else {
            format!("; other processes used CPUs: {}", busy.join(", "))
        };
        format!("Tasks of this machine waited for a CPU for {} of the time{who}.", show_share(share))
    })
}

fn check_stolen_time(seen: &CommandRecord) -> Known<CheckAnswer> {
    let at = |moment| snapshot_at(seen.run, moment).and_then(stolen_ticks);
    let ([steal_before, all_before], [steal_after, all_after]) = (at(Moment::Start)?, at(Moment::Stop)?);
    let (steal, all) = (steal_after.saturating_sub(steal_before), all_after.saturating_sub(all_before));
    if all < MIN_TICKS {
        return Ok(CheckAnswer::DoesNotApply);
    }
    let share = steal as f64 / all as f64;
    found_if(share >= CPU_WAIT_SHARE, Severity::Biases, || {
        format!("The hypervisor took the CPUs away for {} of the time.", show_share(share))
    })
}

fn check_memory_wait(run: &CommandRun) -> Known<CheckAnswer> {
    let share = run.pressure[2].clone()?;
    found_if(share >= CPU_WAIT_SHARE, Severity::Biases, || {
        format!("Tasks of this machine waited for memory for {} of the time.", show_share(share))
    })
}
