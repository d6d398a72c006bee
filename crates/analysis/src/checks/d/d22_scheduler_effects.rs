//! D22: block layer settings that differ from the kernel's defaults and affect this workload. Compares the
//! scheduler, merging, request size, read-ahead and writeback throttling of every device with the defaults of its
//! class.

use crate::checks::b::has_queue;
use crate::checks::prelude::*;

/// Default read-ahead in KiB (VM_READAHEAD_PAGES).
const READ_AHEAD_KB: u64 = 128;
/// Smallest default of the largest request in KiB, if the hardware allows it (BLK_DEF_MAX_SECTORS_CAP, larger
/// since Linux 6.16).
const MAX_SECTORS_KB: u64 = 1280;
/// Target latency of writeback throttling in us, for spinning disks and for others (block/blk-wbt.c).
const THROTTLE_US: [u64; 2] = [75_000, 2_000];

pub(super) const CHECK: Check = Check {
    id: CheckId::D22,
    name: "SCHEDULER_EFFECTS",
    belief: "the block layer has the kernel's default settings",
    reads: "`scheduler`, `nomerges`, `rq_affinity`, `max_sectors_kb`, `read_ahead_kb` and `wbt_lat_usec` in \
            `/sys/block/*/queue/` of the disks and loop devices below, and the number of their hardware \
            queues.",
    formula: formula!(
        "A note that lists each setting that differs from the default of the device's class: scheduler \
         `none` with several hardware queues, `none` or `mq-deadline` with one; `nomerges` 0; `rq_affinity` \
         1; `max_sectors_kb` at least {MAX_SECTORS_KB} or the hardware's limit; for I/O through the page \
         cache also `read_ahead_kb` {READ_AHEAD_KB} (or twice `optimal_io_size`) for reads, and \
         `wbt_lat_usec` {spinning} on hard disks and {others} on other disks for writes.",
        spinning = THROTTLE_US[0],
        others = THROTTLE_US[1]
    ),
    provoke: "`echo 2 > /sys/block/loop0/queue/nomerges`, and a run on a file system on /dev/loop0.",
    fix: "Report the settings with the number if they are intended, or restore the defaults in \
          /sys/block/*/queue/.",
    accept: "A note needs no --accept. A rule in `/etc/udev/rules.d/` or a tuned profile may have changed \
             the settings.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| set(&[("scheduler", "none mq-deadline [bfq]\n")], "1")),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].queue.clear();
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let layers = case.layers(has_queue);
    if layers.is_empty() {
        return not_checked("no block device is known below");
    }
    let (mut changes, mut commands) = (Vec::new(), Vec::new());
    for layer in &layers {
        let (settings, restoring): (Vec<String>, Vec<String>) =
            changed_settings(case, layer)?.into_iter().unzip();
        if !settings.is_empty() {
            changes.push(format!("{}: {}", layer.name, settings.join(", ")));
        }
        commands.extend(restoring);
    }
    let numbers = evidence([("devices", layers.len() as f64), ("devices_changed", changes.len() as f64)]);
    if changes.is_empty() {
        return holds("The block layer settings that matter here are the kernel's defaults.", numbers);
    }
    detail!(
        Severity::Note,
        numbers,
        "Block layer settings differ from the kernel's defaults ({}).",
        changes.join("; ")
    )
    .with_cure(format!(
        "Report these settings with the number, or restore the defaults as root: {}.",
        commands.join(", ")
    ))
    .found()
}

/// Describes the settings of a device that differ from the defaults of its class, such as `nomerges 2 (default
/// 0)`, each with the command that restores the default.
fn changed_settings(case: &Case, layer: &Layer) -> Known<Vec<(String, String)>> {
    let change = |file: &str, now: &str, defaults: &[&str]| {
        let command = format!("`echo {} > /sys/block/{}/queue/{file}`", defaults[0], layer.name);
        (format!("{file} {now} (default {})", defaults.join(" or ")), command)
    };
    let mut out = Vec::new();
    let scheduler = layer
        .queue
        .get("scheduler")
        .ok_or_else(|| format!("the kernel does not show the queue settings of {}", layer.name))?;
    let active_scheduler = active_scheduler(scheduler);
    // If the number of queues is unknown, both schedulers count as the default.
    let has_many_queues = layer.device_number("mq").is_ok_and(|queues| queues > 1);
    let is_default = active_scheduler == "none" || (!has_many_queues && active_scheduler == "mq-deadline");
    if !is_default {
        let defaults: &[&str] = if has_many_queues { &["none"] } else { &["none", "mq-deadline"] };
        out.push(change("scheduler", active_scheduler, defaults));
    }
    let mut compare = |file: &str, default: u64, differs: fn(u64, u64) -> bool| {
        // Old kernels and devices without requests lack some of the files.
        if let Ok(now) = layer.queue_number(file)
            && differs(now, default)
        {
            out.push(change(file, &now.to_string(), &[&default.to_string()]));
        }
    };
    let other = |now: u64, default: u64| now != default;
    compare("nomerges", 0, other);
    compare("rq_affinity", 1, other);
    let most = layer.queue_number("max_hw_sectors_kb").unwrap_or(MAX_SECTORS_KB);
    compare("max_sectors_kb", MAX_SECTORS_KB.min(most), |now, default| now < default);
    if !case.stream.cache.is_direct() {
        let optimal = layer.queue_number("optimal_io_size").unwrap_or(0) / 1024;
        if case.does(Kind::Read) {
            compare("read_ahead_kb", READ_AHEAD_KB.max(optimal.saturating_mul(2)), other);
        }
        if case.does(Kind::Write) {
            let spins = layer.queue_number("rotational").is_ok_and(|r| r == 1);
            compare("wbt_lat_usec", if spins { THROTTLE_US[0] } else { THROTTLE_US[1] }, other);
        }
    }
    Ok(out)
}

/// Returns the scheduler in use: the one in brackets, or the only one.
fn active_scheduler(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(name, _)| name)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::job::Cache;

#[cfg(test)]
fn set_for(fixture: &Fixture, files: &[(&str, &str)], queues: &str) -> model::record::Record {
    let mut record = fixture.record();
    let layer = &mut record.header.hosts[0].places[0].layers[0];
    layer.queue.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    layer.device.insert("mq".into(), queues.into());
    record
}

/// An honest record whose disk has these settings and this many hardware queues.
#[cfg(test)]
fn set(files: &[(&str, &str)], queues: &str) -> model::record::Record {
    set_for(&Fixture::honest(), files, queues)
}

#[test]
fn defaults_for_one_and_for_several_queues_are_silent() {
    let deadline = ("scheduler", "none [mq-deadline] kyber bfq \n");
    assert!(matches!(CHECK.answer(&set(&[deadline], "1")), Ok(Answer::Holds(..))));
    assert_eq!(CHECK.severity(&set(&[deadline], "8")), Some(Severity::Note));
    let none = [("scheduler", "none\n"), ("max_sectors_kb", "512\n"), ("max_hw_sectors_kb", "512\n")];
    assert!(matches!(CHECK.answer(&set(&none, "8")), Ok(Answer::Holds(..))));
}

#[test]
fn changed_settings_are_listed_with_their_defaults() {
    let files = [("nomerges", "2\n"), ("rq_affinity", "1\n"), ("max_sectors_kb", "128\n")];
    let Ok(Answer::Finding(f)) = CHECK.answer(&set(&files, "4")) else { panic!("silent") };
    assert!(
        f.sentence.contains("vda: nomerges 2 (default 0), max_sectors_kb 128 (default 1280)"),
        "{}",
        f.sentence
    );
}

#[test]
fn page_cache_settings_matter_only_for_buffered_io() {
    let ahead = [("read_ahead_kb", "8192\n"), ("wbt_lat_usec", "0\n")];
    let severity_with = |fixture: Fixture| CHECK.severity(&set_for(&fixture, &ahead, "4"));
    assert_eq!(severity_with(Fixture::honest()), None);
    assert_eq!(severity_with(Fixture { cache: Cache::Buffered, ..Fixture::honest() }), Some(Severity::Note));
    assert_eq!(
        severity_with(Fixture { cache: Cache::Buffered, ..Fixture::honest_write() }),
        Some(Severity::Note)
    );
    let defaults =
        [("read_ahead_kb", "8192\n"), ("optimal_io_size", "4194304\n"), ("wbt_lat_usec", "2000\n")];
    let buffered = Fixture { cache: Cache::Buffered, read_percent: 50, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&set_for(&buffered, &defaults, "4")), None);
}
