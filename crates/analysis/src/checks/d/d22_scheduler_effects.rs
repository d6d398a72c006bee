//! D22: settings of the block layer that somebody has changed.
//!
//! For: a list of what differs from the kernel's defaults and touches this workload. Not for: whether that is better or
//! worse, nor for counters that are off (A13) and caches declared away (C01).

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::Kind;
use model::machine::{Layer, LayerKind};

/// Read-ahead of a device that does not ask for more, KiB (VM_READAHEAD_PAGES).
const READ_AHEAD_KB: u64 = 128;
/// Smallest default of the largest request, KiB, where the hardware allows it (BLK_DEF_MAX_SECTORS_CAP, larger since 6.16).
const MAX_SECTORS_KB: u64 = 1280;
/// Latency that write-back throttling aims at, us, for spinning disks and others (block/blk-wbt.c).
const THROTTLE_US: [u64; 2] = [75_000, 2_000];

pub(super) const CHECK: Check = Check {
    id: CheckId::D22,
    name: "SCHEDULER_EFFECTS",
    belief: "the block layer is as the kernel sets it up",
    page: Page {
        reads: "`scheduler`, `nomerges`, `rq_affinity`, `max_sectors_kb`, `read_ahead_kb` and `wbt_lat_usec` in \
                `/sys/block/*/queue/` of the disks and loop devices below, and the number of their hardware queues.",
        formula: formula!(
            "A note that lists each setting that is not the default of the device's class: scheduler `none` with several \
             hardware queues, `none` or `mq-deadline` with one; `nomerges` 0; `rq_affinity` 1; `max_sectors_kb` not below \
             {MAX_SECTORS_KB} or what the hardware takes; where the page cache takes part also `read_ahead_kb` {READ_AHEAD_KB} \
             (or twice `optimal_io_size`) for reads, and `wbt_lat_usec` {spinning} on spinning disks and {others} on others \
             for writes.",
            spinning = THROTTLE_US[0],
            others = THROTTLE_US[1]
        ),
        provoke: "`echo 2 > /sys/block/loop0/queue/nomerges`, and measure a file system on /dev/loop0.",
        fix: "Report them with the number where they are meant, or write the defaults back to /sys/block/*/queue/.",
        accept: "A rule in `/etc/udev/rules.d/` or a tuned profile may have set them. A note needs no --accept.",
    },
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
    let mut seen: Vec<&str> = Vec::new();
    let mut words = Vec::new();
    for layer in case.places().flat_map(|p| &p.layers).filter(|l| has_queue(l)) {
        if seen.contains(&layer.name.as_str()) {
            continue;
        }
        seen.push(&layer.name);
        let changed = changed(case, layer)?;
        if !changed.is_empty() {
            words.push(format!("{}: {}", layer.name, changed.join(", ")));
        }
    }
    if seen.is_empty() {
        return Err("no block device is known below".into());
    }
    let numbers = evidence([("devices", seen.len() as f64), ("devices_changed", words.len() as f64)]);
    if words.is_empty() {
        return Ok(Answer::Holds(
            "The settings of the block layer that matter here are the kernel's defaults.",
            numbers,
        ));
    }
    Ok(Answer::Finding(Detail::new(
        Severity::Note,
        format!("Settings of the block layer are not the kernel's defaults ({}).", words.join("; ")),
        numbers,
    )))
}

/// Whether requests are queued and merged in this layer itself.
fn has_queue(layer: &Layer) -> bool {
    matches!(layer.kind, LayerKind::Disk | LayerKind::Loop)
}

/// What of a device is not the default of its class, each as `nomerges 2 (default 0)`.
fn changed(case: &Case, layer: &Layer) -> Known<Vec<String>> {
    let mut out = Vec::new();
    let scheduler = layer
        .queue
        .get("scheduler")
        .ok_or_else(|| format!("the settings of {} are not shown", layer.name))?;
    let active = active(scheduler);
    // Where nobody counted the queues, both are taken for the default.
    let many = layer.device_number("mq").is_ok_and(|queues| queues > 1);
    let usual = active == "none" || (!many && active == "mq-deadline");
    if !usual {
        let default = if many { "none" } else { "none or mq-deadline" };
        out.push(format!("scheduler {active} (default {default})"));
    }
    let mut compare = |file: &str, default: u64, differs: fn(u64, u64) -> bool| {
        // Old kernels and devices without requests do not have all of them; what is not there cannot be set.
        if let Ok(now) = layer.queue_number(file)
            && differs(now, default)
        {
            out.push(format!("{file} {now} (default {default})"));
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

/// The scheduler in use: the one in brackets, or the only one.
fn active(text: &str) -> &str {
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

/// An honest record whose disk has these settings and so many hardware queues.
#[cfg(test)]
fn set(files: &[(&str, &str)], queues: &str) -> model::record::Record {
    set_for(&Fixture::honest(), files, queues)
}

#[test]
fn defaults_of_one_queue_and_of_many_are_silent() {
    let deadline = ("scheduler", "none [mq-deadline] kyber bfq \n");
    assert!(matches!(CHECK.answer(&set(&[deadline], "1")), Ok(Answer::Holds(..))));
    assert_eq!(CHECK.severity(&set(&[deadline], "8")), Some(Severity::Note));
    let none = [("scheduler", "none\n"), ("max_sectors_kb", "512\n"), ("max_hw_sectors_kb", "512\n")];
    assert!(matches!(CHECK.answer(&set(&none, "8")), Ok(Answer::Holds(..))));
}

#[test]
fn what_was_changed_is_listed_with_its_default() {
    let files = [("nomerges", "2\n"), ("rq_affinity", "1\n"), ("max_sectors_kb", "128\n")];
    let Ok(Answer::Finding(f)) = CHECK.answer(&set(&files, "4")) else { panic!("silent") };
    assert!(
        f.sentence.contains("vda: nomerges 2 (default 0), max_sectors_kb 128 (default 1280)"),
        "{}",
        f.sentence
    );
}

#[test]
fn settings_of_the_page_cache_matter_only_through_it() {
    let ahead = [("read_ahead_kb", "8192\n"), ("wbt_lat_usec", "0\n")];
    let told = |fixture: Fixture| CHECK.severity(&set_for(&fixture, &ahead, "4"));
    assert_eq!(told(Fixture::honest()), None);
    assert_eq!(told(Fixture { cache: Cache::Buffered, ..Fixture::honest() }), Some(Severity::Note));
    assert_eq!(told(Fixture { cache: Cache::Buffered, ..Fixture::honest_write() }), Some(Severity::Note));
    let usual = [("read_ahead_kb", "8192\n"), ("optimal_io_size", "4194304\n"), ("wbt_lat_usec", "2000\n")];
    let buffered = Fixture { cache: Cache::Buffered, read_percent: 50, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&set_for(&buffered, &usual, "4")), None);
}
