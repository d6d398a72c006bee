//! The figures of one run: what its end and the snapshots around it say together.
//!
//! Whose bytes they are: what the kernel charged to the command and its ended descendants (`/proc/PID/io`) is its own; a device's counters
//! are everybody's. Data that others made dirty are known by difference: all pages that were dirtied on the machine (`nr_dirtied` of
//! `/proc/vmstat`) less those of the command.

use crate::kernel_text::{keyed, pressure_us};
use model::Known;
use model::command::{
    CommandEnd, CommandRun, DeviceUse, FilesState, FinalSync, Interface, Moved, NamedFiles, Requests, Stream,
    Syncs,
};
use model::evidence::{BlockStat, Moment, Snapshot, cgroup_v1, cgroup_v2, meminfo_bytes};
use model::machine::{Layer, LayerKind, Machine};
use model::record::{CommandRecord, Record};
use model::units::show_bytes;
use std::collections::BTreeMap;

/// Share of what a command wrote up to which others may have added to the final sync without changing its rate much.
const OTHERS_SHARE: f64 = 0.02;
/// Dirty bytes that an idle machine has.
const IDLE_BYTES: u64 = 4 << 20;

pub(super) fn run(record: &Record, seen: &CommandRecord) -> CommandRun {
    let CommandRecord { end, run } = *seen;
    let at = |moment| {
        let found = run.evidence.iter().find(|snapshot| snapshot.moment == moment);
        found.ok_or_else(|| "the session has no snapshot of that moment".to_owned())
    };
    let (start, stop, synced) = (at(Moment::Start), at(Moment::Stop), at(Moment::Synced));
    let seconds = end.wall_ns as f64 / 1e9;
    let machine = record.header.hosts.first();
    let devices = devices(machine, [&start, &stop, &synced], seconds);
    let dirty = [&start, &stop, &synced].map(|snapshot| snapshot.clone().and_then(dirty_bytes));
    let others_dirtied = others_dirtied(&start, &stop, end);
    let dirty_at_end = dirty_at_end(end, &dirty, &others_dirtied);
    let sync_seconds = match &end.final_sync {
        FinalSync::NotNeeded => Ok(0.0),
        FinalSync::Done(ns) => Ok(*ns as f64 / 1e9),
        FinalSync::Off => Err("--no-sync".to_owned()),
        FinalSync::Skipped => Err("Ctrl-C ended the final sync".to_owned()),
        FinalSync::Failed(why) => Err(format!("the final sync failed: {why}")),
    };
    let charged = charged(machine, &start, &stop);
    let foreign_read = foreign_read(machine, &devices, &charged, end);
    CommandRun {
        seconds,
        exit: end.exit,
        user_seconds: end.user_ns as f64 / 1e9,
        system_seconds: end.system_ns as f64 / 1e9,
        peak_bytes: if end.peak_bytes > end.peak_floor_bytes {
            Ok(end.peak_bytes)
        } else {
            Err(format!("below {}", show_bytes(end.peak_floor_bytes.next_multiple_of(1 << 20))))
        },
        moved: end.moved.clone(),
        cached_read_bytes: cached_read(end),
        unused_read_ahead_bytes: unused_read_ahead(end),
        written_at_end_bytes: written(end).and_then(|bytes| Ok(bytes.saturating_sub(dirty_at_end.clone()?))),
        stable_mb_per_s: stable_rate(end, seconds, &sync_seconds, &dirty[0], &others_dirtied),
        dirty_at_end_bytes: dirty_at_end,
        sync_seconds,
        machine_dirty_bytes: dirty,
        syncs: end.traced.clone().map(|traced| Syncs {
            calls: traced.syncs,
            sync_opens: traced.sync_opens,
            median_ns: traced.sync_median_ns,
            p99_ns: traced.sync_p99_ns,
            max_ns: traced.sync_max_ns,
            total_ns: traced.sync_total_ns,
        }),
        interface: interface(end),
        charged_bytes: charged.map(|charged| {
            charged.values().fold([0; 2], |sum, one| [0, 1].map(|at| one[at].saturating_add(sum[at])))
        }),
        foreign_read_bytes: foreign_read,
        devices,
        neighbours: end.neighbours.clone(),
        pressure: ["io", "cpu", "memory"].map(|name| {
            let file = format!("/proc/pressure/{name}");
            let total = |snapshot: &Known<&Snapshot>| pressure_us(snapshot.clone()?.text(&file)?, "some");
            let us = total(&stop)?.saturating_sub(total(&start)?);
            Ok((us as f64 / 1e6 / seconds.max(1e-9)).min(1.0))
        }),
        named: end.named.clone(),
        still_running: end.still_running.clone(),
    }
}

/// The devices right below the named files and the current directory, without those below another of them: what a loop device reads, the
/// disk of its image reads too.
pub(super) fn tops(machine: Option<&Machine>) -> Vec<&Layer> {
    let places = || machine.into_iter().flat_map(|machine| &machine.places);
    let lower: Vec<&str> = places()
        .flat_map(|place| place.layers.iter().enumerate().filter(|(at, _)| !place.tops.contains(at)))
        .map(|(_, layer)| layer.name.as_str())
        .collect();
    let mut tops: Vec<&Layer> = Vec::new();
    for layer in places().flat_map(|place| place.tops.iter().filter_map(|at| place.layers.get(*at))) {
        if !lower.contains(&layer.name.as_str()) && tops.iter().all(|known| known.name != layer.name) {
            tops.push(layer);
        }
    }
    tops
}

/// What each device did, the topmost first; devices that did nothing are left out.
///
/// # Errors
/// Returns the reason if nothing is known of what is below, or the counters of a device cannot be read.
fn devices(
    machine: Option<&Machine>,
    [start, stop, synced]: [&Known<&Snapshot>; 3],
    seconds: f64,
) -> Known<Vec<DeviceUse>> {
    let places = &machine.ok_or("the record names no host")?.places;
    if let Some(why) = places.iter().find_map(|place| place.blind.clone()) {
        return Err(why);
    }
    let (start, stop) = (start.clone()?, stop.clone()?);
    let mut out: Vec<DeviceUse> = Vec::new();
    for layer in tops(machine).into_iter().chain(places.iter().flat_map(|place| &place.layers)) {
        let did = BlockStat::between(start, stop, &layer.stat_file)?;
        let after = synced.clone().and_then(|synced| BlockStat::between(stop, synced, &layer.stat_file));
        let synced_bytes = after.map_or(0, |did| did.write.bytes);
        let is_idle = did.read.ios == 0 && did.write.ios == 0 && synced_bytes == 0;
        if !is_idle && !out.iter().any(|known| known.name == layer.name) {
            out.push(DeviceUse::new(layer.name.clone(), &did, synced_bytes, seconds));
        }
    }
    Ok(out)
}

/// Bytes that calls read and no device delivered.
fn cached_read(end: &CommandEnd) -> Known<u64> {
    let moved = end.moved.as_ref().map_err(Clone::clone)?;
    if moved.read_call_bytes == 0 {
        return Ok(0);
    }
    reads_are_of_files(end)?;
    if moved.fetched_bytes > moved.read_call_bytes.saturating_mul(2) {
        return Err("more was fetched than calls read: through mapped memory, or ahead of the calls".into());
    }
    Ok(moved.read_call_bytes.saturating_sub(moved.fetched_bytes))
}

/// Whether all bytes that calls read are of files: the kernel counts those of pipes, terminals and `/dev/zero` too.
fn reads_are_of_files(end: &CommandEnd) -> Known<()> {
    if let Some((one, why)) = end.named.iter().find_map(|one| Some((one, one.blind.as_ref()?))) {
        return Err(format!("what is fetched for {} is not counted: {why}", one.path));
    }
    if let Some(source) = end.byte_sources.first() {
        return Err(format!("it read from {source}, whose bytes count as reads"));
    }
    if matches!(end.stdin, Stream::Pipe) {
        return Err("its standard input is a pipe, whose bytes count as reads".into());
    }
    let is_single = match &end.traced {
        Ok(traced) => traced.started <= 1 || traced.pipes == 0,
        Err(_) => end.single_process.clone()?,
    };
    if !is_single {
        return Err("it consists of several processes, and what these read from pipes counts as reads".into());
    }
    let stored = |one: &NamedFiles| one.before.as_ref().map_or(true, |state| state.bytes > 0);
    if !end.named.iter().any(stored) && end.stdin != Stream::File {
        return Err("its command line names no file that it could have read".into());
    }
    Ok(())
}

/// Read-ahead that was not used, as far as it shows: what was fetched beyond all that calls read.
fn unused_read_ahead(end: &CommandEnd) -> Known<u64> {
    let moved = end.moved.as_ref().map_err(Clone::clone)?;
    if moved.fetched_bytes == 0 {
        return Ok(0);
    }
    reads_are_of_files(end)?;
    // What was in the page cache before was read from there, so it hides as much read-ahead.
    let states: Known<Vec<FilesState>> = end.named.iter().map(|one| one.before.clone()).collect();
    let cached: u64 = states?.iter().map(|state| state.cached_bytes.unwrap_or(0)).sum();
    if cached > 0 && moved.fetched_bytes < moved.read_call_bytes {
        return Err("parts of the files were in the page cache before".into());
    }
    Ok(moved.fetched_bytes.saturating_sub(moved.read_call_bytes))
}

/// Bytes that it wrote to storage, or to the page cache before it: without those that it cut off again.
pub(super) fn written(end: &CommandEnd) -> Known<u64> {
    end.moved.clone().map(|moved: Moved| moved.dirtied_bytes.saturating_sub(moved.cancelled_bytes))
}

/// Dirty bytes of the machine, those being written back included.
fn dirty_bytes(snapshot: &Snapshot) -> Known<u64> {
    let text = snapshot.text("/proc/meminfo")?;
    Ok(meminfo_bytes(text, "Dirty")?.saturating_add(meminfo_bytes(text, "Writeback")?))
}

/// Bytes that other processes and the kernel made dirty while the command ran.
fn others_dirtied(start: &Known<&Snapshot>, stop: &Known<&Snapshot>, end: &CommandEnd) -> Known<u64> {
    let dirtied = |snapshot: &Known<&Snapshot>| keyed(snapshot.clone()?.text("/proc/vmstat")?, "nr_dirtied");
    let all = dirtied(stop)?.saturating_sub(dirtied(start)?).saturating_mul(4096);
    Ok(all.saturating_sub(end.moved.clone()?.dirtied_bytes))
}

/// What of the written data was still in memory when the command ended: by the pages of the files that it names, else by the machine's
/// dirty pages, if others have no part in these.
fn dirty_at_end(end: &CommandEnd, machine: &[Known<u64>; 3], others: &Known<u64>) -> Known<u64> {
    let wrote = written(end)?;
    if wrote == 0 {
        return Ok(0);
    }
    let in_files: u64 = end.named.iter().filter_map(|one| one.after.as_ref().ok()?.dirty_bytes).sum();
    if in_files > 0 {
        return Ok(in_files.min(wrote));
    }
    let grown = machine[1].clone()?.saturating_sub(machine[0].clone()?);
    if is_small(others.clone()?, wrote) && is_small(machine[0].clone()?, wrote) {
        return Ok(grown.min(wrote));
    }
    Err("other programs made data dirty too".into())
}

fn is_small(others: u64, wrote: u64) -> bool {
    others <= IDLE_BYTES || others as f64 <= OTHERS_SHARE * wrote as f64
}

/// Bytes over the time until all of them were stable; not known if the final sync wrote much of others.
fn stable_rate(
    end: &CommandEnd,
    seconds: f64,
    sync_seconds: &Known<f64>,
    dirty_before: &Known<u64>,
    others: &Known<u64>,
) -> Known<f64> {
    let wrote = written(end)?;
    if wrote == 0 {
        return Err("it wrote nothing to storage".into());
    }
    let foreign = dirty_before.clone()?.saturating_add(others.clone()?);
    let limit = (OTHERS_SHARE * wrote as f64).max(IDLE_BYTES as f64).min(wrote as f64 / 2.0);
    if end.final_sync != FinalSync::NotNeeded && foreign as f64 > limit {
        return Err("the final sync also wrote data of other programs".into());
    }
    Ok(wrote as f64 / 1e6 / (seconds + sync_seconds.clone()?))
}

fn interface(end: &CommandEnd) -> Interface {
    let mean = |bytes: u64, calls: u64| (calls > 0).then(|| bytes as f64 / calls as f64);
    let moved = end.moved.as_ref().ok();
    let traced = || end.traced.as_ref().map_err(Clone::clone);
    let sequential = |at: usize| -> Known<f64> {
        let Requests { count, sequential } = traced()?.requests[at];
        if count == 0 {
            return Err("no device got such a request".into());
        }
        Ok(sequential as f64 / count as f64)
    };
    Interface {
        read_call_bytes: moved.and_then(|m| mean(m.read_call_bytes, m.read_calls)),
        write_call_bytes: moved.and_then(|m| mean(m.write_call_bytes, m.write_calls)),
        direct: traced().map(|t| t.direct_opens > 0),
        asynchronous: traced().map(|t| t.async_contexts > 0),
        sequential_reads: sequential(0),
        sequential_writes: sequential(1),
    }
}

/// What others read from the devices that the command reads, next to its own part: by the charges of its cgroup for each device, else by all
/// that was fetched for it.
fn foreign_read(
    machine: Option<&Machine>,
    devices: &Known<Vec<DeviceUse>>,
    charged: &Known<BTreeMap<String, [u64; 2]>>,
    end: &CommandEnd,
) -> Known<u64> {
    let devices = devices.as_ref().map_err(Clone::clone)?;
    let read = |top: &Layer| devices.iter().find(|d| d.name == top.name).map_or(0, |d| d.read_bytes);
    let Ok(charged) = charged else {
        let all: u64 = tops(machine).into_iter().map(read).sum();
        return Ok(all.saturating_sub(end.moved.clone()?.fetched_bytes));
    };
    let of_one = |top: &Layer| {
        let [own, _] = *charged.get(&whole_number(machine, top)?)?;
        (own > 0).then(|| read(top).saturating_sub(own))
    };
    Ok(tops(machine).into_iter().filter_map(of_one).sum())
}

/// Bytes that the kernel charged to the cgroup, read and written, on each of the devices right below.
fn charged(
    machine: Option<&Machine>,
    start: &Known<&Snapshot>,
    stop: &Known<&Snapshot>,
) -> Known<BTreeMap<String, [u64; 2]>> {
    let cgroup = machine.ok_or("the record names no host")?.cgroup.as_ref().map_err(Clone::clone)?;
    let file = cgroup.files.first().ok_or("the cgroup has no file that counts")?;
    let charges = |snapshot: &Known<&Snapshot>| -> Known<BTreeMap<String, [u64; 2]>> {
        let text = snapshot.clone()?.text(file)?;
        Ok(match cgroup.version {
            1 => cgroup_v1(text),
            _ => cgroup_v2(text).into_iter().map(|(device, io)| (device, io.bytes)).collect(),
        })
    };
    let (before, after) = (charges(start)?, charges(stop)?);
    let grown = |number: String| {
        let at = |charges: &BTreeMap<String, [u64; 2]>| charges.get(&number).copied().unwrap_or_default();
        let (a, b) = (at(&before), at(&after));
        (number.clone(), [0, 1].map(|at| b[at].saturating_sub(a[at])))
    };
    Ok(numbers(machine).into_iter().map(grown).collect())
}

/// The numbers of the whole devices right below, each once.
pub(super) fn numbers(machine: Option<&Machine>) -> Vec<String> {
    let mut out: Vec<String> =
        tops(machine).into_iter().filter_map(|top| whole_number(machine, top)).collect();
    out.sort();
    out.dedup();
    out
}

/// The number of the whole device that a layer is or is a part of: a partition has the limits and the charges of its disk.
fn whole_number(machine: Option<&Machine>, top: &Layer) -> Option<String> {
    if top.kind != LayerKind::Partition {
        return Some(top.number.clone());
    }
    let mut places = machine.into_iter().flat_map(|machine| &machine.places);
    places.find_map(|place| {
        let partition = place.layers.iter().find(|layer| layer.name == top.name)?;
        Some(place.layers.get(*partition.below.first()?)?.number.clone())
    })
}
