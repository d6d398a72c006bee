//! A report of `fathom time`: what a command did, in at most eight lines. `--verbose` adds all
//! figures.

use crate::page::Page;
use crate::view::findings::affects_number;
use crate::view::report::{describe_ending, describe_origin};
use crate::view::results::command_table;
use crate::view::table::or_dash;
use model::command::{CommandResult, CommandResults, CommandRun, DeviceUse, Exit, Syncs};
use model::finding::{Outcome, Severity};
use model::report::Report;
use model::units::{show_bytes, show_count, show_ns, show_share};
use model::{Known, distinct};

/// Maximum number of devices with a line in the short report.
const MAX_DEVICES: usize = 1;
/// Maximum number of findings in the line of the verdict.
const MAX_NAMES: usize = 2;
/// If there are several commands, at most this many of them get a line.
const MAX_COMMANDS: usize = 4;

/// Prints the part of the report that follows the answer. With `all`, adds every run, the answer of every check, and the
/// figures that the short report leaves out.
pub(super) fn show(out: &mut Page, report: &Report, results: &CommandResults, all: bool) {
    if let Some(ending) = describe_ending(report) {
        out.paragraph(&ending);
    }
    match results.commands.as_slice() {
        [one] => show_command(out, report, one),
        several => {
            for command in several.iter().take(MAX_COMMANDS) {
                out.line(&format!("  {}: {}", command.command, describe_times(command)));
            }
            if several.len() > MAX_COMMANDS {
                out.line(&format!("  and {} more (--verbose)", several.len() - MAX_COMMANDS));
            }
            show_verdict(out, report);
        }
    }
    if all {
        out.line("");
        out.table(&command_table(results));
        out.line("");
        for finding in &report.checks {
            let word = match finding.outcome {
                Outcome::Finding => finding.severity.map_or("note", Severity::effect),
                Outcome::NotChecked => "not checked",
                Outcome::Holds => "holds",
            };
            out.prose(&format!("  {} {} ({word})  ", finding.id, finding.name), "    ", &finding.sentence);
        }
        for (what, value) in results.commands.iter().filter_map(|one| one.runs.last()).flat_map(detail_rows) {
            out.prose(&format!("  {what}  "), "    ", &value);
        }
        for (what, why) in results.commands.iter().filter_map(|one| one.runs.last()).flat_map(unknown_figures)
        {
            out.prose("  Not known  ", "    ", &format!("{what}: {why}"));
        }
        for note in &report.notes {
            out.prose("  Note  ", "    ", note);
        }
        if let Some(session) = &report.session {
            out.prose("  Session  ", "    ", session);
        }
    }
    if let Some(origin) = describe_origin(report) {
        fact(out, "when", &origin);
    }
}

/// Prints a command with the figures of its last run, because the last run predicts future runs best.
fn show_command(out: &mut Page, report: &Report, command: &CommandResult) {
    let sentence = out.paint(&command.sentence, "1");
    out.paragraph(&sentence);
    let Some(run) = command.runs.last() else { return };
    if command.runs.len() > 1 {
        fact(out, "time", &format!("{}; the last run:", describe_times(command)));
    }
    let memory = run.peak_bytes.as_ref().map_or_else(Clone::clone, |bytes| show_bytes(*bytes));
    let cpu = [run.user_seconds, run.system_seconds].map(time);
    let used = format!("{}; CPU {} user, {} system; peak memory {memory}", time(run.seconds), cpu[0], cpu[1]);
    fact(out, "used", &used);
    fact(out, "calls", &format!("{}; {}", describe_calls(run), describe_syncs(&run.syncs)));
    let moved_bytes = |device: &DeviceUse| device.read_bytes.saturating_add(device.written_bytes);
    let mut devices: Vec<&DeviceUse> = run.devices.iter().flatten().filter(|d| moved_bytes(d) > 0).collect();
    // Of devices with as many bytes, the topmost comes first.
    devices.sort_by_key(|device| std::cmp::Reverse(moved_bytes(device)));
    for device in devices.into_iter().take(MAX_DEVICES) {
        fact(out, &device.name, &describe_device(device));
    }
    fact(out, "limiter", &format!("{}: {}", command.limiter.name, command.limiter.sentence));
    show_verdict(out, report);
}

/// Prints a fact, which begins in the same column for all names of up to seven characters.
fn fact(out: &mut Page, name: &str, text: &str) {
    out.prose(&format!("  {name:7}  "), "    ", text);
}

/// Formats a time; zero is `0 s`.
fn time(seconds: f64) -> String {
    if seconds == 0.0 { "0 s".into() } else { show_ns(seconds * 1e9) }
}

/// Prints the verdict, the findings that affect numbers, and the number of checks that were not
/// possible.
fn show_verdict(out: &mut Page, report: &Report) {
    // Name a finding once, even if several commands have it.
    let names =
        distinct(report.checks.iter().filter(|f| affects_number(f)).map(|f| format!("{} {}", f.id, f.name)));
    let word = report.verdict.word();
    let unchecked = report.checks.iter().filter(|f| f.outcome == Outcome::NotChecked).count();
    let rest = if unchecked > 0 { format!("; {unchecked} not checked") } else { String::new() };
    let named = match names.len() {
        0 => report.verdict_reason.clone(),
        1..=MAX_NAMES => names.join(", "),
        more => format!("{} and {} more", names[..MAX_NAMES].join(", "), more - MAX_NAMES),
    };
    fact(out, word, &format!("{named}{rest}"));
}

/// Formats the mean time of a command: `1.20 s (95 % interval 1.15 s to 1.26 s over 5 runs)`.
fn describe_times(command: &CommandResult) -> String {
    let Some(seconds) = command.seconds else {
        return match command.runs.last().map(|run| run.exit) {
            Some(Exit::Code(code)) => format!("ended with exit code {code}"),
            Some(Exit::Signal(signal)) => format!("was ended by signal {signal}"),
            None => "was not run to its end".into(),
        };
    };
    let time = show_ns(seconds * 1e9);
    // The mean leaves out failed runs.
    let count = command.runs.iter().filter(|run| run.exit.is_success()).count();
    match command.seconds_interval {
        Some([low, high]) => format!(
            "{time} (95 % interval {} to {} over {count} runs)",
            show_ns(low * 1e9),
            show_ns(high * 1e9)
        ),
        None if count == 1 => format!("{time} (one run: no interval)"),
        None => format!("{time} ({count} runs: no interval)"),
    }
}

fn describe_syncs(syncs: &Known<Syncs>) -> String {
    let Ok(syncs) = syncs else { return "syncs not checked".into() };
    let opened = match syncs.sync_opens {
        0 => String::new(),
        1 => ", 1 open with O_SYNC or O_DSYNC".into(),
        n => format!(", {} opens with O_SYNC or O_DSYNC", show_count(n as f64)),
    };
    if syncs.count() == 0 {
        return if opened.is_empty() { "no syncs".into() } else { format!("no sync calls{opened}") };
    }
    let median = syncs.median_ns.map_or_else(String::new, |ns| format!(" of {}", show_ns(ns as f64)));
    match syncs.calls.iter().next() {
        Some((name, count)) if syncs.calls.len() == 1 => {
            format!("{} {name}{median}{opened}", show_count(*count as f64))
        }
        _ => format!("{} syncs{median}{opened}", show_count(syncs.count() as f64)),
    }
}

/// Describes the read and write calls of a run:
/// `1,024 x 1 MiB read, 1,024 x 1 MiB written, direct`.
fn describe_calls(run: &CommandRun) -> String {
    let Ok(moved) = &run.moved else { return "not known".into() };
    let describe = |calls: Option<u64>, bytes: Option<f64>, word: &str| match (calls, bytes) {
        (None, _) => "reads not counted".to_owned(),
        (_, None) => format!("0 {word}"),
        (Some(calls), Some(bytes)) => format!("{} x {} {word}", show_count(calls as f64), mean_size(bytes)),
    };
    let mut out = describe(moved.read_calls, run.interface.read_call_bytes, "read") + ", ";
    out += &describe(Some(moved.write_calls), run.interface.write_call_bytes, "written");
    if run.interface.direct == Ok(true) {
        out += ", direct";
    }
    if run.interface.asynchronous == Ok(true) {
        out += ", asynchronous";
    }
    out
}

/// Formats a mean size without decimals: `1004 KiB`, `512 B`.
fn mean_size(bytes: f64) -> String {
    match bytes {
        b if b < 10_240.0 => format!("{b:.0} B"),
        b if b < 10_485_760.0 => format!("{:.0} KiB", b / 1024.0),
        b => format!("{:.0} MiB", b / 1_048_576.0),
    }
}

/// If more than this share of the write requests may be flushes, their mean size says nothing.
const MAX_FLUSH_SHARE: f64 = 0.02;

/// Describes what a device did during a run: `read 1,024 x 512 KiB, wrote 0; depth 2.0, busy 87 %`.
fn describe_device(device: &DeviceUse) -> String {
    // Flushes count as writes but move no data.
    let flow = |bytes: u64, requests: u64, flushes: u64| match bytes.checked_div(requests) {
        None | Some(0) => "0".to_owned(),
        Some(_) if flushes as f64 > MAX_FLUSH_SHARE * requests as f64 => {
            format!("{} in {} requests, flushes included", show_bytes(bytes), show_count(requests as f64))
        }
        Some(mean) => format!("{} x {}", show_count(requests as f64), mean_size(mean as f64)),
    };
    let load = device.mean_depth.zip(device.busy_share);
    let load = load.map(|(depth, busy)| format!("; depth {depth:.1}, busy {}", show_share(busy)));
    format!(
        "read {}, wrote {}{}",
        flow(device.read_bytes, device.read_requests, 0),
        flow(device.written_bytes, device.write_requests, device.flushes),
        load.unwrap_or_default()
    )
}

/// Returns the figures that the short report of eight lines leaves out.
fn detail_rows(run: &CommandRun) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if let Ok(syncs) = &run.syncs
        && syncs.count() > 0
    {
        let names: Vec<String> =
            syncs.calls.iter().map(|(name, count)| format!("{} {name}", show_count(*count as f64))).collect();
        let duration = |ns: Option<u64>| or_dash(ns, |ns| show_ns(ns as f64));
        out.push((
            "Syncs",
            format!(
                "{}; median {}, p99 {}, longest {}, total {}",
                names.join(", "),
                duration(syncs.median_ns),
                duration(syncs.p99_ns),
                duration(syncs.max_ns),
                show_ns(syncs.total_ns as f64)
            ),
        ));
    }
    for device in run.devices.iter().flatten() {
        out.push((
            "Device",
            format!(
                "{}: read {}, wrote {}; merged requests: {} read, {} written; {} written in the final sync",
                device.name,
                show_bytes(device.read_bytes),
                show_bytes(device.written_bytes),
                show_count(device.read_merges as f64),
                show_count(device.write_merges as f64),
                show_bytes(device.synced_bytes)
            ),
        ));
    }
    for (what, share) in [
        ("Sequential reads at the device", &run.interface.sequential_reads),
        ("Sequential writes at the device", &run.interface.sequential_writes),
        ("Time in which some task of the machine waited for I/O", &run.pressure[0]),
        ("Time in which some task of the machine waited for a CPU", &run.pressure[1]),
    ] {
        out.extend(share.as_ref().ok().map(|share| (what, show_share(*share))));
    }
    if let Ok([read, written]) = run.charged_bytes {
        let charged = format!("{} read, {} written", show_bytes(read), show_bytes(written));
        out.push(("Charged to the command's cgroup by the kernel", charged));
    }
    if let Ok(written) = run.foreign_written_bytes {
        out.push(("Written by other programs or the file system's journal", show_bytes(written)));
    }
    let dirty = run.machine_dirty_bytes.each_ref();
    let [before, end, synced] = dirty.map(|known| or_dash(known.as_ref().ok(), |bytes| show_bytes(*bytes)));
    out.push((
        "Dirty pages of the machine",
        format!("{before} before the command, {end} at its end, {synced} after the final sync"),
    ));
    for one in &run.neighbours {
        let moved = one.io_bytes.map_or_else(String::new, |bytes| format!(", {} moved", show_bytes(bytes)));
        out.push((
            "Other busy process",
            format!("{}: CPU {}{moved}", one.name, show_ns(one.cpu_ms as f64 * 1e6)),
        ));
    }
    out
}

/// Returns the name of each unknown figure with the reason.
fn unknown_figures(run: &CommandRun) -> Vec<(&'static str, String)> {
    let calls = run.moved.as_ref().is_ok_and(|moved| moved.read_calls.is_none()).then(|| {
        "the kernel adds its own reads at the start of a program, and only root can see how many".to_owned()
    });
    let all: [(&str, Option<String>); 10] = [
        ("what the devices did", run.devices.as_ref().err().cloned()),
        ("what the command moved", run.moved.as_ref().err().cloned()),
        ("number of read calls", calls),
        ("reads answered by the page cache", run.cached_read_bytes.as_ref().err().cloned()),
        ("unused read-ahead", run.unused_read_ahead_bytes.as_ref().err().cloned()),
        ("writes that were still in memory", run.dirty_at_end_bytes.as_ref().err().cloned()),
        ("what other programs wrote to the devices", run.foreign_written_bytes.as_ref().err().cloned()),
        ("rate until all data was stable", run.stable_mb_per_s.as_ref().err().cloned()),
        ("syncs and how files were opened", run.syncs.as_ref().err().cloned()),
        ("I/O charged to the command's cgroup", run.charged_bytes.as_ref().err().cloned()),
    ];
    all.into_iter().filter_map(|(what, why)| Some((what, why?))).collect()
}

#[test]
fn files_opened_for_synchronous_writes_are_named_with_and_without_sync_calls() {
    let describe = |calls: &[(&str, u64)], sync_opens| {
        let calls = calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        describe_syncs(&Ok(Syncs {
            calls,
            sync_opens,
            median_ns: Some(1_000_000),
            p99_ns: None,
            max_ns: None,
            total_ns: 0,
            covered_ns: None,
        }))
    };
    assert_eq!(describe(&[], 0), "no syncs");
    assert_eq!(describe(&[], 1), "no sync calls, 1 open with O_SYNC or O_DSYNC");
    assert_eq!(describe(&[], 2), "no sync calls, 2 opens with O_SYNC or O_DSYNC");
    let one = describe(&[("fsync", 3)], 2);
    assert!(one.starts_with("3 fsync of 1") && one.ends_with(", 2 opens with O_SYNC or O_DSYNC"), "{one}");
    let two = describe(&[("fsync", 3), ("fdatasync", 1)], 0);
    assert!(two.starts_with("4 syncs of 1") && !two.contains("O_SYNC"), "{two}");
    assert_eq!(describe_syncs(&Err("only root can count them".into())), "syncs not checked");
}
