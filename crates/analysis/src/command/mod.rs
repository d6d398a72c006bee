//! Judges timed commands: turns the record of `fathom time` into a report.
//!
//! 1. `figures` turns the end of each run and the snapshots around it into a [`CommandRun`], and describes it in a few sentences.
//! 2. `command_limiter` decides what the command waited for: the first cause that its figures support. The causes are, in this order:
//!    a throttle; a CPU, or copying through the page cache; the command's own syncs; the device; the other end of a pipe, or a terminal.
//!    Without a cause, the answer lists the shares of the time.
//! 3. `checks` runs the checks that need no engine of fathom. They have the ids and names of the catalogue.
//!    Every run is checked, and the worst answer of each check counts.
//! 4. Several commands are compared by their wall times, like any two results.

mod checks;
mod figures;
#[cfg(test)]
mod tests;

use crate::checks::{CPU_BOUND_ABOVE, Evidence, LimitUnit, hard_limits};
use crate::compare::{self, CommandTimes};
use crate::exit::explain_suspect;
use crate::{Judging, notes, unknown_machine, verdict};
use checks::{MIN_BYTES, check_repeats, run_checks};
use figures::snapshot_at;
use model::command::{
    Command, CommandResult, CommandResults, CommandRun, CommandStudy, DeviceUse, LEAST_SECONDS, Stream,
};
use model::comparison::{ComparisonAnswer, Metric, Pair};
use model::evidence::{LIMITS, Moment};
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::job::Kind;
use model::record::{CommandRecord, Record};
use model::report::{AnswerWord, Counts, FORMAT, Headline, Limiter, Producer, Report, ReportAnswer, Verdict};
use model::units::{show_change, show_change_ends, show_count, show_ns, show_rate, show_share};
use model::verdict::{Condition, Gate, Limit};
use stats::intervals;
use std::collections::BTreeMap;

/// Judges a record of `fathom time`.
pub(crate) fn judge(record: &Record, study: &CommandStudy, options: &Judging) -> Report {
    let header = &record.header;
    let mut checks: Vec<Checked> = Vec::new();
    let mut commands = Vec::new();
    for (at, command) in study.commands.iter().enumerate() {
        let seen: Vec<CommandRecord> = record.command_runs(at).collect();
        let runs: Vec<CommandRun> =
            seen.iter().map(|seen| figures::build_command_run(record, seen)).collect();
        // The report shows the figures of one run: the last one, because it resembles future runs most. The checks are of
        // all runs, because the mean time is.
        let result = build_result(record, command, runs, seen.last());
        let of_runs = result.runs.iter().zip(&seen);
        checks.extend(worst_of_runs(
            of_runs.map(|(run, seen)| {
                run_checks(record, command, run, &command_limiter(record, run, seen), seen)
            }),
        ));
        checks.extend(check_repeats(command, &successful_seconds(&result.runs)));
        commands.push(result);
    }
    for checked in &mut checks {
        checked.accepted = checked.outcome == Outcome::Finding && options.accept.contains(&checked.id);
    }
    checks.sort_by_key(|checked| (checked.outcome, checked.severity, checked.id));
    let compared = compare_commands(&commands);
    let gates: Vec<Gate> =
        header.plan.fail_if.iter().flat_map(|condition| decide_gates(condition, &commands)).collect();
    let reasoned = verdict_with_reason(&commands, &checks);
    let mut answer =
        crate::gate::combine_gates(&gates).or_else(|| answer_of_comparison(&commands, &compared));
    let ending = notes::ending(record);
    let counts_as = crate::gate::count_undecided(&mut answer, options.inconclusive, &ending);
    let answer = answer.map(|answer| explain_suspect(answer, reasoned.verdict, reasoned.by));
    let first = commands.first();
    let (per_second, unit) = if first.and_then(|one| one.seconds).is_some_and(|seconds| seconds < 1.0) {
        (1e3, "ms")
    } else {
        (1.0, "s")
    };
    Report {
        fathom: Producer { format: FORMAT, version: options.version.clone() },
        answer,
        counts_as,
        gates,
        quick: None,
        verdict: reasoned.verdict,
        verdict_reason: reasoned.reason,
        verdict_by: reasoned.by,
        counts: Counts::default(),
        busy_machine: Vec::new(),
        headline: Headline {
            name: first.map_or_else(String::new, |one| one.command.clone()),
            value: first.and_then(|one| one.seconds).map(|seconds| seconds * per_second),
            unit: unit.into(),
            interval: first.and_then(|one| one.seconds_interval).map(|ends| ends.map(|end| end * per_second)),
            ..Headline::default()
        },
        limiter: first.map_or_else(unknown_limiter, |one| one.limiter.clone()),
        results: Vec::new(),
        deductions: Vec::new(),
        hosts: header.hosts.iter().map(|host| host.host.clone()).collect(),
        fleet: None,
        checks,
        notes: {
            let of_runs = record.runs.iter().flat_map(|run| &run.end).flat_map(|end| &end.notes);
            of_runs.chain(record.end.iter().flat_map(|end| &end.notes)).cloned().collect()
        },
        ending: notes::ending(record),
        machine: header.hosts.first().cloned().unwrap_or_else(unknown_machine),
        files: Vec::new(),
        title: header.plan.title.clone(),
        command: header.plan.command.clone(),
        started: header.started.clone(),
        session: options.session.clone(),
        json_file: None,
        annotations: options.annotations.clone(),
        study: Box::new(CommandResults { commands, compared }).into(),
        preconditioned: None,
        against: None,
    }
}

/// Returns the worst answer of each check over all runs. A finding says in how many runs it was, unless it was in all.
fn worst_of_runs(runs: impl Iterator<Item = Vec<Checked>>) -> Vec<Checked> {
    let mut by_check: BTreeMap<CheckId, Vec<Checked>> = BTreeMap::new();
    let mut count = 0;
    for checked in runs {
        count += 1;
        for one in checked {
            by_check.entry(one.id).or_default().push(one);
        }
    }
    let worst = |answers: Vec<Checked>| {
        let found = answers.iter().filter(|one| one.outcome == Outcome::Finding).count();
        // Of equal answers take that of the last run, whose figures the report shows.
        let mut worst = answers.into_iter().rev().min_by_key(|one| (one.outcome, one.severity))?;
        if worst.outcome == Outcome::Finding && found < count {
            worst.sentence += &format!(" This was in {found} of {count} runs.");
        }
        Some(worst)
    };
    by_check.into_values().filter_map(worst).collect()
}

/// Returns the wall times of the runs that succeeded.
fn successful_seconds(runs: &[CommandRun]) -> Vec<f64> {
    runs.iter().filter(|run| run.exit.is_success()).map(|run| run.seconds).collect()
}

fn build_result(
    record: &Record,
    command: &Command,
    runs: Vec<CommandRun>,
    last: Option<&CommandRecord>,
) -> CommandResult {
    let mean = intervals::mean(&successful_seconds(&runs));
    CommandResult {
        command: command.line.clone(),
        sentence: runs.last().map_or_else(
            || format!("{} did not complete.", command.program()),
            |run| figures::describe_run(record, command, run, last),
        ),
        seconds: mean.map(|mean| mean.value),
        seconds_interval: mean.and_then(|mean| mean.interval),
        limiter: runs
            .last()
            .zip(last)
            .map_or_else(unknown_limiter, |(run, last)| command_limiter(record, run, last)),
        runs,
    }
}

fn unknown_limiter() -> Limiter {
    Limiter { name: "unknown".into(), sentence: "no run ended".into(), evidence: Evidence::new() }
}

/// Compares each command except the first with the first.
fn compare_commands(commands: &[CommandResult]) -> Vec<Pair> {
    let Some((first, others)) = commands.split_first() else { return Vec::new() };
    let others: Vec<CommandTimes> = others.iter().map(CommandTimes::new).collect();
    compare::compare_times(&CommandTimes::new(first), &others)
}

/// Returns how the commands compare, as a word and a sentence. `FASTEST` names the first command if all others are
/// slower, or the faster one of two commands.
fn answer_of_comparison(commands: &[CommandResult], compared: &[Pair]) -> Option<ReportAnswer> {
    let (first, others) = commands.split_first()?;
    let metrics: Vec<&Metric> = compared.iter().filter_map(|pair| pair.metrics.first()).collect();
    let answers: Vec<ComparisonAnswer> = metrics.iter().map(|metric| metric.answer).collect();
    let sentences = metrics.iter().zip(others).map(|(metric, other)| {
        let interval = metric
            .interval
            .map_or_else(String::new, |ends| format!(" ({})", show_change_ends(metric.ratio, ends)));
        let change = format!("{} in time{interval}", show_change(metric.ratio));
        let other = &other.command;
        match metric.answer {
            word @ (ComparisonAnswer::Faster | ComparisonAnswer::Slower) => {
                format!("'{other}' is {}: {change}.", word.word())
            }
            ComparisonAnswer::Same => format!("'{other}' takes the SAME time: {change}."),
            ComparisonAnswer::NoDifferenceSeen => {
                let most = metric.at_most().map_or(f64::INFINITY, |[faster, slower]| faster.max(slower));
                format!("'{other}' differs by at most {} either way: {change}.", show_share(most))
            }
            _ => format!("'{other}': {}.", metric.why),
        }
    });
    let (word, fastest) = match answers.as_slice() {
        [] => return None,
        words if words.iter().all(|word| *word == ComparisonAnswer::Slower) => {
            (AnswerWord::Fastest, Some(&first.command))
        }
        [ComparisonAnswer::Faster] => (AnswerWord::Fastest, others.first().map(|other| &other.command)),
        words if words.contains(&ComparisonAnswer::CannotTell) => (AnswerWord::CannotTell, None),
        words if words.iter().all(|word| *word == ComparisonAnswer::Same) => (AnswerWord::Tied, None),
        _ => (AnswerWord::NoDifferenceSeen, None),
    };
    let named =
        fastest.map_or_else(|| format!("Compared with '{}': ", first.command), |name| format!("'{name}'. "));
    Some(ReportAnswer { word, sentence: named + &sentences.collect::<Vec<_>>().join(" ") })
}

/// Returns the verdict by the worst finding. Accepted findings count too: a report with an accepted finding is not
/// VALID.
fn verdict_with_reason(commands: &[CommandResult], checks: &[Checked]) -> verdict::ReasonedVerdict {
    if commands.iter().all(|one| one.runs.is_empty()) {
        return verdict::ReasonedVerdict::new(Verdict::Invalid, "no command completed.".into());
    }
    let acting = checks.iter().filter(|f| f.outcome == Outcome::Finding);
    let worst = acting.filter(|f| f.severity.is_some_and(|s| s < Severity::Note)).min_by_key(|f| f.severity);
    match worst {
        Some(f) => verdict::ReasonedVerdict {
            verdict: Verdict::Suspect,
            reason: format!("{} {}: {}", f.id, f.name, f.sentence),
            by: Some(f.id),
        },
        None => verdict::ReasonedVerdict::new(
            Verdict::Valid,
            "No check found anything that changes what the time means.".into(),
        ),
    }
}

/// Returns the gates of a condition such as `time>2s`: one for the named command, or one for each command.
fn decide_gates(condition: &Condition, commands: &[CommandResult]) -> Vec<Gate> {
    let named = |one: &&CommandResult| condition.result.as_ref().is_none_or(|name| *name == one.command);
    let gates: Vec<Gate> = commands.iter().filter(named).map(|one| decide_gate(condition, one)).collect();
    if gates.is_empty() { vec![crate::gate::gate_without_number(condition, &condition.limit)] } else { gates }
}

/// Decides a condition for a command: a single run by its time, several runs by the 95 % bounds of their mean.
fn decide_gate(condition: &Condition, one: &CommandResult) -> Gate {
    let limit_ns = condition.limit.value();
    let bounds_ns = one.seconds.map(|seconds| match one.runs.len() {
        1 => [seconds * 1e9; 2],
        _ => one.seconds_interval.unwrap_or([0.0, f64::INFINITY]).map(|bound| bound * 1e9),
    });
    let word = match bounds_ns {
        Some([_, high]) if high <= limit_ns => AnswerWord::Pass,
        Some([low, _]) if low > limit_ns => AnswerWord::Fail,
        _ => AnswerWord::Inconclusive,
    };
    let value = one.seconds.map(|seconds| seconds * 1e9);
    let sentence = match value.zip(bounds_ns) {
        None => format!("{}: no run of {} ended with exit code 0.", condition.to_flag(), one.command),
        Some((value, [low, high])) => {
            let between = match one.runs.len() {
                1 => String::new(),
                _ if high.is_finite() => format!(" (95 % interval {} to {})", show_ns(low), show_ns(high)),
                _ => " (too few runs for an interval)".to_owned(),
            };
            format!("{}: {}{between}; the limit is {}.", one.command, show_ns(value), show_ns(limit_ns))
        }
    };
    Gate {
        value,
        bounds: bounds_ns.filter(|[_, high]| high.is_finite()),
        runs: u32::try_from(one.runs.len()).unwrap_or(u32::MAX),
        word,
        sentence,
        ..crate::gate::gate_without_number(condition, &condition.limit)
    }
}

/// Whether a condition can apply to commands.
pub fn applies_to_commands(condition: &Condition) -> bool {
    matches!(condition.limit, Limit::Time { .. })
}

/// With at least this share of one CPU, a command counts as limited by the CPU.
const CPU_BOUND_SHARE: f64 = CPU_BOUND_ABOVE.0;

/// A device is the limiter if it has requests in flight for at least this share of the time.
const DEVICE_BUSY_SHARE: f64 = 0.75;

/// Up to this mean depth, requests count as one at a time.
const MAX_SERIAL_DEPTH: f64 = 1.25;

/// Minimum share of the time in syncs for syncs to be the limiter.
const SYNC_BOUND_SHARE: f64 = 0.5;

/// If the CPU and the device were each busy for less than this share of the time, neither is the limiter.
const IDLE_SHARE: f64 = 0.5;

/// Other processes keep a device busy if they read at least this share of its bytes.
const MOSTLY_FOREIGN_SHARE: f64 = 0.8;

/// Minimum share of the CPU time in the kernel for copying to be the limiter.
const COPYING_FROM: f64 = 0.9;

/// A device takes turns with a CPU only if it was busy for at least this share of the time and moved at least this share of the bytes.
const TAKES_TURNS_SHARE: f64 = 0.2;

/// Minimum bytes through a standard stream for its other end to be the limiter.
const MIN_STREAM_BYTES: u64 = 1 << 20;

/// If at least this share of the bytes was in the page cache, all of them count as cached.
const NEARLY_ALL_SHARE: f64 = 0.95;

/// Minimum length of a run for a CPU share: five of the 4 ms ticks in which many kernels count CPU time.
const MIN_CPU_SECONDS: f64 = 0.02;

fn command_limiter(record: &Record, run: &CommandRun, seen: &CommandRecord) -> Limiter {
    let cpu = (run.user_seconds + run.system_seconds) / run.seconds.max(1e-9);
    let busy_share = |device: &DeviceUse| device.busy_share.unwrap_or(0.0);
    // Lower devices that read more than the layers above them requested were busy for others.
    let served_others_below = checks::read_only_below(record, run).is_ok_and(|bytes| bytes >= MIN_BYTES);
    let tops = figures::topmost_devices(record.header.hosts.first(), seen.run);
    let is_top = |device: &DeviceUse| tops.iter().any(|top| top.name == device.name);
    let devices = || run.devices.iter().flatten().filter(|device| !served_others_below || is_top(device));
    let busiest = devices().max_by(|a, b| busy_share(a).total_cmp(&busy_share(b)));
    let busy = busiest.map_or(0.0, busy_share);
    let depth = busiest.and_then(|device| device.mean_depth).unwrap_or(0.0);
    let sync_ns = run.syncs.as_ref().map_or(0, |syncs| syncs.covered_ns.unwrap_or(syncs.total_ns));
    let syncing = sync_ns as f64 / 1e9 / run.seconds.max(1e-9);
    let evidence =
        [("cpu_share", cpu), ("device_busy_share", busy), ("device_depth", depth), ("sync_share", syncing)];
    let limiter = |name: &str, sentence: String| Limiter {
        name: name.into(),
        sentence,
        evidence: evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    };
    let too_short = |seconds: f64| {
        limiter(
            "unknown",
            format!("the run took less than {}, which is too short to tell", show_ns(seconds * 1e9)),
        )
    };
    if run.seconds < MIN_CPU_SECONDS {
        return too_short(MIN_CPU_SECONDS);
    }
    if let Some(limit) = describe_throttle(record, run, seen) {
        return limiter("throttle", format!("a cgroup limits {limit}"));
    }
    if cpu >= CPU_BOUND_SHARE {
        let in_kernel = run.system_seconds / (run.user_seconds + run.system_seconds).max(1e-9);
        let system = show_share(in_kernel);
        let (share, calls) = (show_share(cpu), describe_small_calls(run));
        // The kernel copies. A program that computes from cached data is limited by its own work, and a device such as
        // /dev/urandom by making its bytes.
        let copies =
            in_kernel >= COPYING_FROM && seen.end.byte_sources.iter().all(|source| source == "/dev/zero");
        return match describe_page_cache_copy(run).filter(|_| copies) {
            Some(copying) => limiter("page cache", format!("{copying} kept a CPU busy {share}{calls}")),
            None => limiter("CPU", format!("busy {share}, {system} of that in the kernel{calls}")),
        };
    }
    if run.seconds < LEAST_SECONDS {
        return too_short(LEAST_SECONDS);
    }
    if syncing >= SYNC_BOUND_SHARE {
        let share = show_share(syncing.min(1.0));
        return limiter("syncs", format!("the command waited in its own syncs for {share} of the time"));
    }
    // Whether the share of the command's bytes that came from a device or reached one is surely at least, or surely below,
    // `TAKES_TURNS_SHARE`. Metadata have no bytes here, so a command that moved next to nothing may still keep a device busy.
    let (moved_much, moved_elsewhere) = run.moved.as_ref().map_or((false, false), |moved| {
        let all = moved.read_call_bytes.max(moved.fetched_bytes) + moved.dirtied_bytes;
        let reached = run.written_at_end_bytes.as_ref().ok().copied();
        let is_much = |written: u64| (moved.fetched_bytes + written) as f64 >= TAKES_TURNS_SHARE * all as f64;
        (is_much(reached.unwrap_or(0)), all > MIN_BYTES && !is_much(reached.unwrap_or(moved.dirtied_bytes)))
    });
    // The command left the devices alone while others read from them.
    let device_bytes: u64 = devices()
        .filter(|device| is_top(device))
        .map(|device| device.read_bytes.saturating_add(device.written_bytes))
        .sum();
    let foreign_share = run.foreign_read_bytes.as_ref().map_or(0.0, |bytes| *bytes as f64)
        / (device_bytes as f64).max(MIN_BYTES as f64);
    let is_others = foreign_share >= MOSTLY_FOREIGN_SHARE;
    let busy_for_others = busy >= IDLE_SHARE && (moved_elsewhere || is_others && !figures::used_devices(run));
    let whose = if is_others { ", mostly for other processes" } else { "" };
    match busiest {
        _ if busy_for_others => {}
        Some(device) if busy >= DEVICE_BUSY_SHARE && depth <= MAX_SERIAL_DEPTH => {
            let sentence = describe_one_at_a_time(device, busy * run.seconds) + whose;
            return limiter("one request at a time", sentence);
        }
        Some(device) if busy >= DEVICE_BUSY_SHARE => {
            return limiter(
                "device",
                format!(
                    "{} was busy {} of the time, with {depth:.1} requests in flight{whose}",
                    device.name,
                    show_share(busy)
                ),
            );
        }
        _ => {}
    }
    if moved_much && busy >= TAKES_TURNS_SHARE && depth <= MAX_SERIAL_DEPTH && cpu + busy >= CPU_BOUND_SHARE {
        return limiter(
            "one request at a time",
            format!("a CPU ({}) and the device ({}) took turns", show_share(cpu), show_share(busy)),
        );
    }
    let shares = format!("a CPU was busy {} of the time, a disk {}", show_share(cpu), show_share(busy));
    match find_other_end(record, run, seen) {
        Some((name, other_end)) if busy < IDLE_SHARE || busy_for_others => {
            // How long it waited there and how long it slept is not known.
            let sentence =
                format!("the command waited, probably for {other_end}; a CPU was busy {}", show_share(cpu));
            limiter(name, sentence)
        }
        _ if busy_for_others => limiter(
            "none of these",
            format!(
                "{shares}, but not with the command's data: the command slept or waited for something else, such as a CPU"
            ),
        ),
        _ if cpu >= IDLE_SHARE || busy >= IDLE_SHARE => limiter("several", shares),
        _ => limiter("none of these", format!("{shares}: the command slept or waited for something else")),
    }
}

/// Returns the name of the limiter and what is at the other end of a standard stream, if the command's data went through
/// that stream. `None` if little data did, or for a command of several processes.
fn find_other_end(
    record: &Record,
    run: &CommandRun,
    seen: &CommandRecord,
) -> Option<(&'static str, &'static str)> {
    let moved = run.moved.as_ref().ok()?;
    let is_one_process = match &seen.end.traced {
        Ok(traced) => traced.started <= 1,
        Err(_) => seen.end.single_process == Ok(true),
    };
    if !is_one_process {
        return None;
    }
    let reads_files = run.named.iter().any(|one| one.before.as_ref().map_or(true, |before| before.bytes > 0));
    let args = &record.header.plan.study.commands()?.commands.get(seen.run.start.job)?.args;
    let writes_elsewhere =
        args.iter().any(|arg| arg.contains("/dev/null")) || run.named.iter().any(|one| one.memory.is_some());
    let out = moved.write_call_bytes.saturating_sub(moved.dirtied_bytes);
    let into = moved.read_call_bytes.saturating_sub(moved.fetched_bytes);
    match (seen.end.stdin, seen.end.stdout) {
        (Stream::Pipe, _) if into > MIN_STREAM_BYTES && !reads_files => {
            Some(("the other end of a pipe", "the program that writes its input"))
        }
        (_, Stream::Pipe) if out > MIN_STREAM_BYTES && !writes_elsewhere => {
            Some(("the other end of a pipe", "the program that reads its output"))
        }
        (_, Stream::Terminal) if out > MIN_STREAM_BYTES && !writes_elsewhere => {
            Some(("terminal", "the terminal, which shows its output"))
        }
        _ => None,
    }
}

/// Describes a command that only copied from or to the page cache.
fn describe_page_cache_copy(run: &CommandRun) -> Option<&'static str> {
    let moved = run.moved.as_ref().ok()?;
    let is_most = |part: u64, all: u64| all > MIN_BYTES && part as f64 >= NEARLY_ALL_SHARE * all as f64;
    if is_most(*run.cached_read_bytes.as_ref().unwrap_or(&0), moved.read_call_bytes) {
        return Some("copying from it");
    }
    let dirty = *run.dirty_at_end_bytes.as_ref().unwrap_or(&0);
    is_most(dirty, moved.dirtied_bytes).then_some("copying to it")
}

/// Minimum number of calls in a direction for their size to matter.
const MANY_CALLS: u64 = 10_000;

/// Largest mean size of small calls, in bytes.
const SMALL_CALL_BYTES: f64 = 16_384.0;

/// Describes the calls of each direction in which they are many and small on average.
fn describe_small_calls(run: &CommandRun) -> String {
    let Ok(moved) = &run.moved else { return String::new() };
    let directions = [
        (Kind::Read, moved.read_calls, run.interface.read_call_bytes),
        (Kind::Write, Some(moved.write_calls), run.interface.write_call_bytes),
    ];
    let small = directions.into_iter().filter_map(|(kind, calls, bytes)| {
        let calls = calls.filter(|calls| *calls >= MANY_CALLS)?;
        let bytes = bytes.filter(|bytes| *bytes <= SMALL_CALL_BYTES)?;
        let (calls, bytes) = (show_count(calls as f64), show_rate(bytes));
        Some(format!("{calls} {} calls of {bytes} bytes", kind.word()))
    });
    let small: Vec<String> = small.collect();
    if small.is_empty() { String::new() } else { format!("; it made {}", small.join(" and ")) }
}

fn describe_one_at_a_time(device: &DeviceUse, busy_seconds: f64) -> String {
    let requests = device.read_requests + device.write_requests;
    let each = show_ns(busy_seconds * 1e9 / requests.max(1) as f64);
    format!("{} got one request at a time, {each} each", device.name)
}

/// Describes the limit that the command's rate on a device has reached. A limit applies to the processes of its cgroup, so
/// it is compared with what the kernel charged to the command's cgroup, if it charged anything.
fn describe_throttle(record: &Record, run: &CommandRun, seen: &CommandRecord) -> Option<String> {
    let text = snapshot_at(seen.run, Moment::Start).ok()?.text(LIMITS).ok()?;
    let machine = record.header.hosts.first();
    let places = machine.into_iter().flat_map(|machine| &machine.places);
    let layers: Vec<_> = places.flat_map(|place| &place.layers).collect();
    let at = |moment| snapshot_at(seen.run, moment);
    let tops = figures::topmost_devices(machine, seen.run);
    let charged = figures::charged_bytes(machine, &tops, &at(Moment::Start), &at(Moment::Stop));
    for number in figures::device_numbers(machine, &tops) {
        let name = layers.iter().find(|layer| layer.number == number).map(|layer| &layer.name)?;
        let Some(device) = run.devices.iter().flatten().find(|device| device.name == *name) else { continue };
        let counts =
            |charged: &&[u64; 2]| charged.iter().any(|bytes| *bytes > 0) || !figures::used_devices(run);
        let charged = charged.as_ref().ok().and_then(|charged| charged.get(&number)).filter(counts);
        for limit in hard_limits(text, &number) {
            let is_read = limit.kind == Kind::Read;
            let (bytes, requests) = if is_read {
                (device.read_bytes, device.read_requests)
            } else {
                (device.written_bytes, device.write_requests)
            };
            let own = charged.map_or(bytes, |charged| charged[usize::from(!is_read)]).min(bytes);
            let amount = match limit.unit {
                LimitUnit::Bytes => own as f64,
                LimitUnit::Operations => requests as f64 * own as f64 / (bytes as f64).max(1.0),
            };
            if limit.is_reached_by(amount / run.seconds.max(1e-9), run.seconds * 1e9) {
                return Some(limit.describe());
            }
        }
    }
    None
}
