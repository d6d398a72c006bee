//! The figures of one run of a command, and the sentence that describes them.
//!
//! 1. The command's own bytes are those that the kernel charged to it and its ended descendants (`/proc/PID/io`).
//! 2. A device's counters include all processes.
//! 3. Pages that other processes dirtied are all dirtied pages of the machine (`nr_dirtied` of `/proc/vmstat`) minus the command's.
//! 4. The kernel charges write-back to no process: written bytes of a device that are not the command's data belong to other processes or to
//!    the file system's journal.
//! 5. Read bytes that no device delivered came from the page cache, or are zeros of ranges that were never written. They are unknown if the
//!    two cannot be told apart, or if the page cache did not have as many bytes of the named files.

use crate::case::whole_disk;
use crate::figures::kernel_text::{number_of_key, pressure_us};
use model::Known;
use model::command::{
    Command, CommandEnd, CommandIo, CommandRun, DeviceUse, Exit, FilesState, FinalSync, Interface,
    NamedFiles, Requests, Stream, Syncs,
};
use model::evidence::{BlockStat, Moment, Snapshot, cgroup_v1, cgroup_v2, meminfo_bytes};
use model::machine::{Layer, Machine, Place};
use model::record::{CommandRecord, Record, Run};
use model::units::{show_bytes, show_ns, show_rate};
use std::collections::BTreeMap;

/// A part of at most this share hardly changes a result about the whole.
const NEGLIGIBLE_SHARE: f64 = 0.02;

/// Dirty bytes that even an idle machine may have. Fewer bytes never change a result.
const NEGLIGIBLE_BYTES: u64 = 4 << 20;

/// The kernel counts the memory of a process for each CPU, and adds the counts up with a delay. So two files of the same process may give
/// sizes that differ by this much.
const FLOOR_TOLERANCE_BYTES: u64 = 2 << 20;

/// Computes the figures of a run from its end and the snapshots around it.
pub(super) fn build_command_run(record: &Record, seen: &CommandRecord) -> CommandRun {
    let CommandRecord { end, run } = *seen;
    let [start, stop, synced] =
        [Moment::Start, Moment::Stop, Moment::Synced].map(|moment| snapshot_at(run, moment));
    let seconds = end.wall_ns as f64 / 1e9;
    let machine = record.header.hosts.first();
    let tops = topmost_devices(machine, run);
    let devices = match end.named.iter().find_map(|one| one.hidden_device_reason.clone()) {
        Some(why) => Err(why),
        None => use_of_devices(machine, &tops, [&start, &stop, &synced], seconds),
    };
    let dirty = [&start, &stop, &synced].map(|snapshot| snapshot.clone().and_then(dirty_bytes));
    let others_dirtied = dirtied_by_others(&start, &stop, end);
    let wrote = written_bytes(end, &dirty[0]);
    let dirty_at_end = dirty_bytes_at_end(end, &wrote, &dirty, &others_dirtied);
    // Data of other processes that the final sync may have written: dirty before the command began,
    // or dirtied until the end of the sync.
    let others_synced = others_dirtied.clone().and_then(|during| {
        let after = dirtied_between(&stop, &synced, end)?;
        Ok(dirty[0].clone()?.saturating_add(during).saturating_add(after))
    });
    let sync_seconds = match &end.final_sync {
        FinalSync::NotNeeded => Ok(0.0),
        FinalSync::Done(ns) => Ok(*ns as f64 / 1e9),
        FinalSync::Off => Err("--no-sync".to_owned()),
        FinalSync::Skipped => Err("a signal ended the final sync".to_owned()),
        FinalSync::Failed(why) => Err(format!("the final sync failed: {why}")),
    };
    let charged = charged_bytes(machine, &tops, &start, &stop);
    let foreign_read = foreign_read_bytes(machine, &tops, &devices, &charged, end);
    let reached = bytes_that_reached_devices(&wrote, &tops, &devices, &dirty_at_end);
    CommandRun {
        seconds,
        exit: end.exit,
        user_seconds: end.user_ns as f64 / 1e9,
        system_seconds: end.system_ns as f64 / 1e9,
        peak_bytes: {
            let floor = end.peak_floor_bytes.saturating_add(FLOOR_TOLERANCE_BYTES).next_multiple_of(1 << 20);
            if end.peak_bytes >= floor {
                Ok(end.peak_bytes)
            } else {
                Err(format!("below {}", show_bytes(floor)))
            }
        },
        moved: end.moved.clone(),
        cached_read_bytes: cached_read_bytes(end),
        unused_read_ahead_bytes: unused_read_ahead_bytes(end),
        foreign_written_bytes: foreign_written_bytes(&tops, &devices, &reached),
        written_at_end_bytes: reached,
        stable_mb_per_s: stable_rate(end, &wrote, seconds, &sync_seconds, &others_synced),
        dirty_at_end_bytes: dirty_at_end,
        sync_seconds,
        machine_dirty_bytes: dirty,
        syncs: end.traced.clone().and_then(|traced| {
            // Syncs in a ring or an asynchronous context are no system calls, so they are not counted.
            if traced.async_contexts > 0 {
                return Err("the command used asynchronous I/O, whose syncs are not counted".into());
            }
            Ok(Syncs {
                calls: traced.syncs,
                sync_opens: traced.sync_opens,
                median_ns: traced.sync_median_ns,
                p99_ns: traced.sync_p99_ns,
                max_ns: traced.sync_max_ns,
                total_ns: traced.sync_total_ns,
                covered_ns: traced.sync_covered_ns,
            })
        }),
        interface: describe_interface(end),
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

/// Returns the snapshot of a run at a moment.
pub(super) fn snapshot_at(run: &Run, moment: Moment) -> Known<&Snapshot> {
    let found = run.evidence.iter().find(|snapshot| snapshot.moment == moment);
    found.ok_or_else(|| "the session lacks a snapshot of the run".to_owned())
}

/// Returns the topmost devices of the named files and of the current directory. Leaves out a device that mostly did the
/// work of one above it in this run: the disk of a loop device's image repeats the reads of the loop device.
pub(super) fn topmost_devices<'m>(machine: Option<&'m Machine>, run: &Run) -> Vec<&'m Layer> {
    let places = || machine.into_iter().flat_map(|machine| &machine.places);
    let tops_of = |place: &'m Place| place.tops.iter().filter_map(|at| place.layers.get(*at));
    let snapshots =
        snapshot_at(run, Moment::Start).and_then(|start| Ok((start, snapshot_at(run, Moment::Stop)?)));
    let moved_bytes = |layer: &Layer| {
        let (start, stop) = snapshots.as_ref().ok()?;
        Some(BlockStat::between(start, stop, &layer.stat_file).ok()?.total().bytes)
    };
    let works_for_upper = |layer: &Layer| {
        places().any(|place| {
            let is_top = |one: &Layer| tops_of(place).any(|top| top.name == one.name);
            let is_below = !is_top(layer) && place.layers.iter().any(|one| one.name == layer.name);
            let upper: Option<u64> = tops_of(place).map(moved_bytes).sum();
            let is_idle_above = upper
                .zip(moved_bytes(layer))
                .is_some_and(|(upper, own)| upper as f64 <= NEGLIGIBLE_SHARE * own as f64);
            is_below && !is_idle_above
        })
    };
    let mut tops: Vec<&Layer> = Vec::new();
    for layer in places().flat_map(tops_of) {
        if tops.iter().all(|known| known.name != layer.name) && !works_for_upper(layer) {
            tops.push(layer);
        }
    }
    tops
}

/// Returns the figures of each device, the topmost first. Leaves out idle devices.
///
/// # Errors
/// Why the devices are unknown, or why the counters of one cannot be read.
fn use_of_devices(
    machine: Option<&Machine>,
    tops: &[&Layer],
    [start, stop, synced]: [&Known<&Snapshot>; 3],
    seconds: f64,
) -> Known<Vec<DeviceUse>> {
    let places = &machine.ok_or("the record names no host")?.places;
    if let Some(why) = places.iter().find_map(|place| place.unresolved_reason.clone()) {
        return Err(why);
    }
    let (start, stop) = (start.clone()?, stop.clone()?);
    let mut out: Vec<DeviceUse> = Vec::new();
    for layer in tops.iter().copied().chain(places.iter().flat_map(|place| &place.layers)) {
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

/// Returns the bytes that read calls returned from the page cache: those that no device delivered, without the zeros that the
/// kernel returned for holes and ranges that were never written.
///
/// # Errors
/// Why the reads are unknown. Also if files with such ranges were read only in part, because that part may or may not
/// include the ranges, and if more bytes are missing from the devices than the page cache had of the files.
fn cached_read_bytes(end: &CommandEnd) -> Known<u64> {
    let moved = end.moved.as_ref().map_err(Clone::clone)?;
    if moved.read_call_bytes == 0 {
        return Ok(0);
    }
    check_that_reads_are_of_files(end)?;
    let undelivered = moved.read_call_bytes.saturating_sub(moved.fetched_bytes);
    let files = || end.named.iter().filter_map(|one| one.before.as_ref().ok());
    let never_written: u64 =
        files().map(|state| state.hole_bytes.saturating_add(state.unwritten_bytes.unwrap_or(0))).sum();
    let was_cached: Option<u64> = files().map(|state| state.cached_bytes).sum();
    // The devices may have delivered mapped memory, and the page cache the bytes of the calls.
    if end.major_faults.unwrap_or(0) > 0
        && moved.fetched_bytes > NEGLIGIBLE_BYTES
        && was_cached.is_none_or(|bytes| !is_negligible(bytes, moved.read_call_bytes))
    {
        return Err("page faults read storage, so the reads of the devices may be of mapped memory".into());
    }
    if undelivered == 0 {
        return Ok(0);
    }
    if is_negligible(never_written, undelivered) {
        return check_against_cached_pages(end, undelivered, was_cached);
    }
    // Which of two files with data was read, and which one was written, is unknown.
    let holding_data = files().filter(|state| state.bytes > 0).count();
    if holding_data > 1 && moved.dirtied_bytes >= MIN_DESCRIBED_BYTES {
        return Err(
            "a file has ranges that were never written, and the command may have read or written it".into()
        );
    }
    let most_zeros = undelivered.min(never_written);
    let least_zeros = was_cached.map_or(0, |cached| undelivered.saturating_sub(cached));
    let reads_whole_files = moved.read_call_bytes >= files().map(|state| state.bytes).sum();
    if reads_whole_files || is_negligible(most_zeros.saturating_sub(least_zeros), undelivered) {
        return check_against_cached_pages(end, undelivered - most_zeros, was_cached);
    }
    Err("the files have ranges that were never written, and how many bytes were read from these is unknown"
        .into())
}

/// Returns the bytes that no device delivered, if the page cache can have had them: if the pages of the named files that
/// were cached before the run hold as many bytes. Block devices may have been read several times, as `hdparm -T` does. Of
/// directories, and on kernels without `cachestat`, the cached pages before the run are unknown: then no device may have
/// delivered much, and the files below a directory may have no holes.
///
/// # Errors
/// That the bytes may have come from elsewhere: from files that were read twice, from compressed data, or from devices
/// such as `/dev/urandom`.
fn check_against_cached_pages(end: &CommandEnd, undelivered: u64, was_cached: Option<u64>) -> Known<u64> {
    // Opening the files below a directory before the run would have cached their metadata.
    if end.named.iter().any(|one| one.before.is_err()) {
        let fetched = end.moved.as_ref().map_or(0, |moved| moved.fetched_bytes);
        let holes = end.sparse_bytes_below.unwrap_or(u64::MAX);
        return if is_negligible(fetched, undelivered) && is_negligible(holes, undelivered) {
            Ok(undelivered)
        } else {
            Err("what the page cache had of the files below a directory before the run is unknown".into())
        };
    }
    let is_unlimited = |one: &NamedFiles| one.path.starts_with("/dev/");
    let from_files = end.named.iter().any(|one| one.before.as_ref().is_ok_and(|state| state.bytes > 0));
    let Some(was_cached) = was_cached.filter(|_| from_files && !end.named.iter().any(is_unlimited)) else {
        return Ok(undelivered);
    };
    if is_negligible(undelivered.saturating_sub(was_cached), undelivered) {
        return Ok(undelivered);
    }
    Err(format!(
        "the page cache had only {} of the named files before the run: the command read bytes twice, compressed data, or something else",
        show_bytes(was_cached)
    ))
}

/// Checks that the command read files by calls, and that all bytes of its read calls came from
/// files. The kernel also counts reads of pipes, terminals and `/dev/zero`.
///
/// # Errors
/// Why the bytes of read calls may not be bytes of files, or why the command read files without calls.
fn check_that_reads_are_of_files(end: &CommandEnd) -> Known<()> {
    if let Some((one, why)) = end.named.iter().find_map(|one| Some((one, one.hidden_device_reason.as_ref()?)))
    {
        return Err(format!("reads from {} are not counted: {why}", one.path));
    }
    if let Some(source) = end.byte_sources.first() {
        return Err(format!("the command read from {source}, whose bytes count as reads"));
    }
    if matches!(end.stdin, Stream::Pipe) {
        return Err("the command's standard input is a pipe, whose bytes count as reads".into());
    }
    match &end.traced {
        Ok(traced) if traced.async_contexts > 0 => {
            return Err("asynchronous reads of cached data are not counted".into());
        }
        Ok(traced) if traced.started > 1 && traced.pipes > 0 => {
            return Err("the command started several processes, whose reads from pipes count as reads".into());
        }
        Err(_) if !end.single_process.clone()? => {
            return Err("processes started during the run, perhaps by the command (only root can tell), and their reads from pipes count as reads".into());
        }
        _ => {}
    }
    let stored = |one: &NamedFiles| one.before.as_ref().map_or(true, |state| state.bytes > 0);
    if !end.named.iter().any(stored) && end.stdin != Stream::File {
        return Err("the command line names no file that the command could have read".into());
    }
    if end.moved.as_ref().is_ok_and(|moved| moved.fetched_bytes > moved.read_call_bytes.saturating_mul(2)) {
        return Err(
            "the devices delivered more than twice the bytes of the read calls: through mapped memory, asynchronous reads or read-ahead".into(),
        );
    }
    Ok(())
}

/// Returns the read-ahead that the command did not use, as far as it is visible: fetched bytes beyond the bytes of read
/// calls.
fn unused_read_ahead_bytes(end: &CommandEnd) -> Known<u64> {
    let moved = end.moved.as_ref().map_err(Clone::clone)?;
    if moved.fetched_bytes == 0 {
        return Ok(0);
    }
    check_that_reads_are_of_files(end)?;
    // Reads from the page cache would hide the same number of unused read-ahead bytes.
    let states: Known<Vec<FilesState>> = end.named.iter().map(|one| one.before.clone()).collect();
    let cached: u64 = states?.iter().map(|state| state.cached_bytes.unwrap_or(0)).sum();
    if cached > 0 && moved.fetched_bytes < moved.read_call_bytes {
        return Err("parts of the files were in the page cache before the run".into());
    }
    Ok(moved.fetched_bytes.saturating_sub(moved.read_call_bytes))
}

/// Returns the bytes that the command wrote to storage or to the page cache, without the bytes that it truncated again.
/// `dirty_at_start` are the dirty bytes of the machine before the run.
///
/// # Errors
/// Why the counts are unknown, or that the truncated bytes may have been dirty before the run: the kernel counts them for
/// the process that truncates, and not for the one that wrote them.
pub(super) fn written_bytes(end: &CommandEnd, dirty_at_start: &Known<u64>) -> Known<u64> {
    let moved: CommandIo = end.moved.clone()?;
    let most_older = dirty_at_start.as_ref().map_or(u64::MAX, |bytes| *bytes).min(moved.cancelled_bytes);
    if is_negligible(most_older, moved.dirtied_bytes) {
        return Ok(moved.dirtied_bytes.saturating_sub(moved.cancelled_bytes));
    }
    Err(format!(
        "the command truncated {} of dirty data, which may have been older than the command",
        show_bytes(moved.cancelled_bytes)
    ))
}

/// Returns the dirty bytes of the machine, including those in write-back.
fn dirty_bytes(snapshot: &Snapshot) -> Known<u64> {
    let text = snapshot.text("/proc/meminfo")?;
    Ok(meminfo_bytes(text, "Dirty")?.saturating_add(meminfo_bytes(text, "Writeback")?))
}

/// Returns the bytes that other processes and the kernel made dirty while the command ran. If their part is unknown, but
/// the whole machine dirtied few bytes, returns all of these: an upper bound.
///
/// # Errors
/// Why the part of other processes is unknown: direct writes of the command are among its bytes, but not among the
/// machine's dirty pages.
fn dirtied_by_others(start: &Known<&Snapshot>, stop: &Known<&Snapshot>, end: &CommandEnd) -> Known<u64> {
    let all = dirtied_between(start, stop, end)?;
    let own = end.moved.clone()?.dirtied_bytes;
    let opened_direct = end.traced.as_ref().is_ok_and(|traced| traced.direct_opens > 0);
    // The kernel adds up the page counts of the CPUs with a delay.
    if !opened_direct && own <= all.saturating_add(NEGLIGIBLE_BYTES) {
        return Ok(all.saturating_sub(own));
    }
    if is_negligible(all, own) {
        return Ok(all);
    }
    Err("some of the command's writes may have bypassed the page cache, so it is unknown how many dirty pages belong to other programs".into())
}

/// Returns the bytes that were made dirty in the page cache, by any process.
fn dirtied_between(from: &Known<&Snapshot>, to: &Known<&Snapshot>, end: &CommandEnd) -> Known<u64> {
    let pages =
        |snapshot: &Known<&Snapshot>| number_of_key(snapshot.clone()?.text("/proc/vmstat")?, "nr_dirtied");
    Ok(pages(to)?.saturating_sub(pages(from)?).saturating_mul(end.page_bytes))
}

/// Returns the written bytes that were still in memory when the command ended: the dirty pages of the files on its
/// command line. If these files neither grew by about the written bytes nor have as many dirty pages, the command also
/// wrote elsewhere, or overwrote data: returns the growth of the machine's dirty pages.
///
/// # Errors
/// If that growth may be due to other processes: they dirtied pages, or the machine had dirty pages at the start.
fn dirty_bytes_at_end(
    end: &CommandEnd,
    wrote: &Known<u64>,
    machine_dirty: &[Known<u64>; 3],
    others: &Known<u64>,
) -> Known<u64> {
    let wrote = wrote.clone()?;
    if wrote == 0 {
        return Ok(0);
    }
    let in_files: u64 = end.named.iter().filter_map(|one| one.after.as_ref().ok()?.dirty_bytes).sum();
    // The command wrote nothing to other files, or all that it wrote is dirty in these.
    if files_grew_by(end).max(in_files) as f64 >= (1.0 - NEGLIGIBLE_SHARE) * wrote as f64 {
        return Ok(in_files.min(wrote));
    }
    let grown = machine_dirty[1].clone()?.saturating_sub(machine_dirty[0].clone()?);
    if is_negligible(others.clone()?, wrote) && is_negligible(machine_dirty[0].clone()?, wrote) {
        return Ok(grown.min(wrote));
    }
    Err("memory also held dirty pages of other programs".into())
}

/// Returns the bytes by which the named files grew, without holes. Leaves out files whose dirty
/// pages are unknown.
fn files_grew_by(end: &CommandEnd) -> u64 {
    let data = |state: &FilesState| state.bytes.saturating_sub(state.hole_bytes);
    let grown = |one: &NamedFiles| {
        let (before, after) = (one.before.as_ref().ok()?, one.after.as_ref().ok()?);
        after.dirty_bytes?;
        Some(data(after).saturating_sub(data(before)))
    };
    end.named.iter().filter_map(grown).sum()
}

/// Whether `part` is so small that it hardly changes a result about `whole` bytes.
fn is_negligible(part: u64, whole: u64) -> bool {
    part <= NEGLIGIBLE_BYTES || part as f64 <= NEGLIGIBLE_SHARE * whole as f64
}

/// Returns the rate in MB/s until all bytes were stable; unknown if the final sync also wrote much data of other
/// processes.
fn stable_rate(
    end: &CommandEnd,
    wrote: &Known<u64>,
    seconds: f64,
    sync_seconds: &Known<f64>,
    others: &Known<u64>,
) -> Known<f64> {
    let wrote = wrote.clone()?;
    if wrote == 0 {
        return Err("the command wrote nothing to storage".into());
    }
    let foreign = others.clone()?;
    let limit = (NEGLIGIBLE_SHARE * wrote as f64).max(NEGLIGIBLE_BYTES as f64).min(wrote as f64 / 2.0);
    if end.final_sync != FinalSync::NotNeeded && foreign as f64 > limit {
        return Err("the final sync may also have written data of other programs".into());
    }
    Ok(wrote as f64 / 1e6 / (seconds + sync_seconds.clone()?))
}

fn describe_interface(end: &CommandEnd) -> Interface {
    let mean = |bytes: u64, calls: u64| (calls > 0).then(|| bytes as f64 / calls as f64);
    let moved = end.moved.as_ref().ok();
    let traced = || end.traced.as_ref().map_err(Clone::clone);
    let sequential = |at: usize| -> Known<f64> {
        let traced = traced()?;
        if let Some(why) = &traced.requests_unknown {
            return Err(why.clone());
        }
        let Requests { count, sequential } = traced.requests[at];
        if count == 0 {
            return Err("no device got a request in this direction".into());
        }
        Ok(sequential as f64 / count as f64)
    };
    Interface {
        read_call_bytes: moved.and_then(|m| mean(m.read_call_bytes, m.read_calls?)),
        write_call_bytes: moved.and_then(|m| mean(m.write_call_bytes, m.write_calls)),
        direct: traced().map(|t| t.direct_opens > 0),
        asynchronous: traced().map(|t| t.async_contexts > 0),
        sequential_reads: sequential(0),
        sequential_writes: sequential(1),
    }
}

/// Returns the bytes that other processes read from the command's devices: the device's reads minus the charges of the
/// command's cgroup, and minus the bytes that were fetched for the command beyond these charges: a process may have left
/// the cgroup, or the cgroup counts nothing.
fn foreign_read_bytes(
    machine: Option<&Machine>,
    tops: &[&Layer],
    devices: &Known<Vec<DeviceUse>>,
    charged: &Known<BTreeMap<String, [u64; 2]>>,
    end: &CommandEnd,
) -> Known<u64> {
    let devices = devices.as_ref().map_err(Clone::clone)?;
    let read = |top: &Layer| devices.iter().find(|d| d.name == top.name).map_or(0, |d| d.read_bytes);
    let (mut foreign, mut own) = (0_u64, 0_u64);
    for top in tops {
        let charges = charged.as_ref().ok().zip(disk_number(machine, top));
        let charged = charges.and_then(|(charged, number)| charged.get(&number)).map_or(0, |[read, _]| *read);
        foreign = foreign.saturating_add(read(top).saturating_sub(charged));
        own = own.saturating_add(charged.min(read(top)));
    }
    if foreign == 0 {
        return Ok(0);
    }
    Ok(foreign.saturating_sub(end.moved.clone()?.fetched_bytes.saturating_sub(own)))
}

/// Returns the bytes written by the command that had reached the topmost devices when it ended: the bytes that were no
/// longer dirty. They may differ from the bytes that the devices wrote, because a file system may compress. If the
/// devices wrote nothing, returns 0 for up to [`NEGLIGIBLE_BYTES`] of clean bytes.
///
/// # Errors
/// Why the written or the dirty bytes are unknown. Also if the devices wrote nothing although more bytes are clean: then
/// the command wrote elsewhere.
fn bytes_that_reached_devices(
    wrote: &Known<u64>,
    tops: &[&Layer],
    devices: &Known<Vec<DeviceUse>>,
    dirty_at_end: &Known<u64>,
) -> Known<u64> {
    let clean = wrote.clone()?.saturating_sub(dirty_at_end.clone()?);
    match devices {
        // These few bytes may be dirty pages of a file that is not on the command line, such as the log of the command.
        Ok(devices) if written_by_tops(tops, devices) == 0 && clean <= NEGLIGIBLE_BYTES => Ok(0),
        Ok(devices) if written_by_tops(tops, devices) == 0 => {
            Err("the devices below the named files wrote nothing, so the command wrote elsewhere".into())
        }
        _ => Ok(clean),
    }
}

fn written_by_tops(tops: &[&Layer], devices: &[DeviceUse]) -> u64 {
    let is_top = |device: &&DeviceUse| tops.iter().any(|top| top.name == device.name);
    devices.iter().filter(is_top).map(|device| device.written_bytes).sum()
}

/// Returns the bytes that the topmost devices wrote in addition to the command's data.
fn foreign_written_bytes(
    tops: &[&Layer],
    devices: &Known<Vec<DeviceUse>>,
    reached: &Known<u64>,
) -> Known<u64> {
    let devices = devices.as_ref().map_err(Clone::clone)?;
    let all = written_by_tops(tops, devices);
    if all == 0 { Ok(0) } else { Ok(all.saturating_sub(reached.clone()?)) }
}

/// Returns the bytes read and written that the kernel charged to the cgroup on the topmost devices, by device number.
pub(super) fn charged_bytes(
    machine: Option<&Machine>,
    tops: &[&Layer],
    start: &Known<&Snapshot>,
    stop: &Known<&Snapshot>,
) -> Known<BTreeMap<String, [u64; 2]>> {
    let cgroup = machine.ok_or("the record names no host")?.cgroup.as_ref().map_err(Clone::clone)?;
    let file = cgroup.files.first().ok_or("the cgroup has no file that counts I/O")?;
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
    Ok(device_numbers(machine, tops).into_iter().map(grown).collect())
}

/// Returns the device numbers of the topmost devices, each once; for a partition, the device number of its disk.
pub(super) fn device_numbers(machine: Option<&Machine>, tops: &[&Layer]) -> Vec<String> {
    let mut out: Vec<String> = tops.iter().filter_map(|top| disk_number(machine, top)).collect();
    out.sort();
    out.dedup();
    out
}

/// Returns the device number of a layer; for a partition, that of its disk, because the kernel limits and charges the disk.
fn disk_number(machine: Option<&Machine>, top: &Layer) -> Option<String> {
    let mut places = machine.into_iter().flat_map(|machine| &machine.places);
    places.find_map(|place| {
        let layer = place.layers.iter().find(|layer| layer.name == top.name)?;
        Some(whole_disk(place, layer).number.clone())
    })
}

/// The report describes reads or writes of at least this many bytes. Fewer bytes may be reads of the program's libraries.
const MIN_DESCRIBED_BYTES: u64 = 1 << 20;

/// If neither reads nor writes reach [`MIN_DESCRIBED_BYTES`], this constant takes its place.
const MIN_DESCRIBED_BYTES_OF_SMALL: u64 = 64 << 10;

/// If reads from disks are at most this share of all reads, they may be reads of the program's
/// libraries. These may be on another disk than the program's files.
const MAX_LIBRARIES_SHARE: f64 = 0.02;

/// Describes a run: what it read and wrote, and a failure.
pub(super) fn describe_run(
    record: &Record,
    command: &Command,
    run: &CommandRun,
    seen: Option<&CommandRecord>,
) -> String {
    let program = command.program();
    let tops: Vec<&str> = seen.map_or_else(Vec::new, |seen| {
        let tops = topmost_devices(record.header.hosts.first(), seen.run);
        tops.into_iter().map(|top| top.name.as_str()).collect()
    });
    let took = show_ns(run.seconds * 1e9);
    let ended = match run.exit {
        Exit::Code(0) => String::new(),
        Exit::Code(code) => format!(" and ended with exit code {code}"),
        Exit::Signal(signal) => format!(" and was ended by signal {signal}"),
    };
    let mut out: Vec<String> = Vec::new();
    let most = run.moved.as_ref().map_or(0, |m| m.read_call_bytes.max(m.fetched_bytes).max(m.dirtied_bytes));
    let min_bytes =
        if most >= MIN_DESCRIBED_BYTES { MIN_DESCRIBED_BYTES } else { MIN_DESCRIBED_BYTES_OF_SMALL };
    let read = describe_read(run, &tops, seen, min_bytes);
    let wrote = describe_written(run, &tops, seen, min_bytes);
    match (&read, &wrote) {
        (Some(read), Some(wrote)) => {
            out.push(format!("{program} read {read}."));
            out.push(format!("It wrote {wrote}."));
        }
        (Some(read), None) => out.push(format!("{program} read {read}.")),
        (None, Some(wrote)) => out.push(format!("{program} wrote {wrote}.")),
        (None, None) => match &run.moved {
            Ok(moved) if moved.read_call_bytes.max(moved.write_call_bytes) >= MIN_DESCRIBED_BYTES => out.push(format!(
                "{program} took {took}{ended}. Its calls read {} and wrote {}; nothing was counted on storage.",
                amount_of(moved.read_call_bytes),
                amount_of(moved.write_call_bytes)
            )),
            Ok(_) => out.push(format!("{program} took {took}{ended}. Its calls moved next to no data.")),
            Err(why) => out.push(format!("{program} took {took}{ended}. Its I/O is unknown: {why}.")),
        },
    }
    // Without reads and writes, the sentence above already reports how the command ended.
    if !ended.is_empty() && (read.is_some() || wrote.is_some()) {
        out.push(format!("It took {took}{ended}."));
    }
    if is_asynchronous(run) && read.is_none() {
        out.push("Asynchronous reads of cached data are not counted.".into());
    }
    if let [first, others @ ..] = run.still_running.as_slice() {
        out.push(match others.len() {
            0 => format!("Still running: {first}; its I/O is not counted."),
            more => format!("Still running: {first} and {more} more; their I/O is not counted."),
        });
    }
    out.join(" ")
}

/// Whether the command set up asynchronous I/O, as far as known. Its calls then do not show what it read and synced.
fn is_asynchronous(run: &CommandRun) -> bool {
    run.interface.asynchronous == Ok(true)
}

/// Describes what the command read: `512 MiB in 840 ms (639 MB/s); none of it came from vda: the page cache had all of
/// it`.
fn describe_read(
    run: &CommandRun,
    tops: &[&str],
    seen: Option<&CommandRecord>,
    min_bytes: u64,
) -> Option<String> {
    let moved = run.moved.as_ref().ok()?;
    // Read-ahead that the command did not use is no part of its reads.
    let fetched_as_reads = if run.unused_read_ahead_bytes.is_ok() { 0 } else { moved.fetched_bytes };
    let bytes = moved.read_call_bytes.max(fetched_as_reads);
    let is_from_byte_source =
        seen.is_some_and(|seen| !seen.end.byte_sources.is_empty()) && moved.fetched_bytes < min_bytes;
    if bytes < min_bytes || is_from_byte_source {
        return None;
    }
    let rate = show_rate(bytes as f64 / 1e6 / run.seconds.max(1e-9));
    let took = show_ns(run.seconds * 1e9);
    let amount = format!("{} in {took} ({rate} MB/s)", amount_of(bytes));
    let disk_of_files = file_device(run, |one| one.before.as_ref().is_ok_and(|before| before.bytes > 0));
    let fetched = moved.fetched_bytes;
    let held_data = |one: &NamedFiles| one.before.as_ref().is_ok_and(|before| before.bytes > 0);
    let read_disk = if fetched as f64 <= MAX_LIBRARIES_SHARE * bytes as f64 {
        "a disk".to_owned()
    } else {
        let charged = run.charged_bytes.as_ref().map_or(0, |[read, _]| *read);
        device_names(run, tops, held_data, Delivered { bytes: fetched, charged }, |device| device.read_bytes)
    };
    let read_files = || run.named.iter().filter(|one| held_data(one));
    // The reads came from memory only if no file on a disk could be read.
    let memory = read_files()
        .all(|one| one.memory.is_some())
        .then(|| read_files().find_map(|one| one.memory.as_ref()))
        .flatten();
    let zeros = |cached: u64| moved.read_call_bytes.saturating_sub(fetched).saturating_sub(cached);
    Some(match &run.cached_read_bytes {
        Ok(cached) if zeros(*cached) > 0 => {
            let from_disk = match fetched {
                0 => format!("none of it came from {disk_of_files}"),
                _ => format!("{} came from {read_disk}", amount_of(fetched)),
            };
            let from_cache = match cached {
                0 => String::new(),
                _ => format!(", the page cache had {}", amount_of(*cached)),
            };
            let zeros = amount_of(zeros(*cached));
            format!(
                "{amount}; {from_disk}{from_cache}, and {zeros} had never been written, which reads as zeros"
            )
        }
        Ok(_) if fetched == 0 && memory.is_some() => {
            format!(
                "{amount}; all of it came from memory ({}): no disk was read",
                memory.map_or("", String::as_str)
            )
        }
        Ok(cached) if fetched == 0 => {
            let cached = if *cached >= bytes { "all of it".to_owned() } else { amount_of(*cached) };
            format!("{amount}; none of it came from {disk_of_files}: the page cache had {cached}")
        }
        Ok(_) if fetched >= bytes => format!("{amount}; all of it came from {read_disk}"),
        Ok(cached) => {
            let keeper =
                memory.map_or_else(|| "the page cache".into(), |memory| format!("memory ({memory})"));
            format!(
                "{amount}; {} came from {read_disk}, and {keeper} had {}",
                amount_of(fetched),
                amount_of(*cached)
            )
        }
        Err(_) if is_asynchronous(run) => {
            let from_disk = if fetched == 0 { "nothing".to_owned() } else { amount_of(fetched) };
            format!(
                "at least {} in {took}; {from_disk} came from {read_disk}, and asynchronous reads of cached data are not counted",
                amount_of(bytes)
            )
        }
        // The bytes of calls do not include reads of mapped memory.
        Err(_) if moved.read_call_bytes as f64 <= MAX_LIBRARIES_SHARE * fetched as f64 => {
            format!("{amount}; all of it came from {read_disk}")
        }
        Err(_) if fetched >= moved.read_call_bytes => {
            format!("at least {amount}; {} came from {read_disk}", amount_of(fetched))
        }
        // The command's calls may also have read pipes.
        Err(_) if fetched == 0 => format!("{amount} by calls; nothing came from {disk_of_files}"),
        Err(_) => format!("{amount} by calls; {} came from {read_disk}", amount_of(fetched)),
    })
}

/// Describes what the command wrote: `1 GiB in 410 ms (2,600 MB/s); 12 MiB had reached vda. Making the rest stable took
/// another 3.20 s: 298 MB/s in all`.
fn describe_written(
    run: &CommandRun,
    tops: &[&str],
    seen: Option<&CommandRecord>,
    min_bytes: u64,
) -> Option<String> {
    let moved = run.moved.as_ref().ok()?;
    // If the truncated bytes may have been older, the bytes are an upper bound, and what had reached a device is unknown.
    let bytes = written_bytes(seen?.end, &run.machine_dirty_bytes[0]).unwrap_or(moved.dirtied_bytes);
    let bytes_after = |one: &NamedFiles| one.after.as_ref().map_or(0, |after| after.bytes);
    let grew = |one: &NamedFiles| bytes_after(one) > one.before.as_ref().map_or(0, |before| before.bytes);
    let is_dirty = |state: &FilesState| state.dirty_bytes > Some(0);
    let is_written = |one: &NamedFiles| grew(one) || one.after.as_ref().is_ok_and(is_dirty);
    let in_memory = || run.named.iter().filter(|one| one.memory.is_some());
    let grown_bytes = |one: &NamedFiles| {
        bytes_after(one).saturating_sub(one.before.as_ref().map_or(0, |before| before.bytes))
    };
    let memory = in_memory().filter(|one| grew(one)).find_map(|one| one.memory.as_ref());
    let to_memory = in_memory().map(grown_bytes).fold(0, u64::saturating_add);
    let shown = if bytes < min_bytes && memory.is_some() { to_memory } else { bytes };
    if shown < min_bytes {
        return None;
    }
    let took = show_ns(run.seconds * 1e9);
    let calls = moved.write_call_bytes;
    let amount = if is_asynchronous(run) {
        format!("{} in {took}", amount_of(shown))
    } else if calls > 0 && calls < bytes / 2 {
        // A call of a few bytes dirties a whole page, and mapped memory is written without calls.
        format!("{} by calls and dirtied {} of pages in {took}", amount_of(calls), amount_of(bytes))
    } else if calls / 2 > bytes && bytes >= min_bytes {
        let calls = amount_of(calls);
        format!("{} in {took}; its calls wrote {calls}, to the same pages or elsewhere", amount_of(bytes))
    } else {
        let rate = show_rate(shown as f64 / 1e6 / run.seconds.max(1e-9));
        format!("{} in {took} ({rate} MB/s)", amount_of(shown))
    };
    if let Some(memory) = memory.filter(|_| bytes < min_bytes) {
        return Some(format!("{amount} to memory ({memory}): no disk was written"));
    }
    let reached_bytes = run.written_at_end_bytes.as_ref().map_or(0, |bytes| *bytes);
    let delivered = Delivered { bytes: reached_bytes, charged: 0 };
    let to = device_names(run, tops, is_written, delivered, |device| device.written_bytes);
    let reached = match (&run.written_at_end_bytes, &run.dirty_at_end_bytes) {
        (Ok(0), _) => format!("none of it had reached {}", file_device(run, is_written)),
        (Ok(_), Ok(0)) => format!("all of it had reached {to}"),
        (Ok(reached), _) => format!("{} had reached {to}", amount_of(*reached)),
        (Err(why), _) => format!("how much had reached {to} is not known: {why}"),
    };
    let is_rest_dirty = !matches!(run.dirty_at_end_bytes, Ok(0));
    let sync = match (&run.sync_seconds, &run.stable_mb_per_s) {
        (Ok(seconds), Ok(rate)) if is_rest_dirty => format!(
            ". Making the rest stable took another {}: {} MB/s in all",
            show_ns(seconds * 1e9),
            show_rate(*rate)
        ),
        (Ok(seconds), Err(why)) if is_rest_dirty && seen?.end.final_sync != FinalSync::NotNeeded => {
            format!(". The final sync took {}, and no rate follows from it: {why}", show_ns(seconds * 1e9))
        }
        (Err(why), _) if is_rest_dirty => {
            format!(". How long it takes to make the rest stable was not measured: {why}")
        }
        _ => String::new(),
    };
    Some(format!("{amount}; {reached}{sync}"))
}

/// Whether the command itself may have waited for its devices: it moved data from or to them, or made syncs.
pub(super) fn used_devices(run: &CommandRun) -> bool {
    let moved = run.moved.as_ref();
    let moved_bytes = moved.map_or(u64::MAX, |moved| moved.fetched_bytes.saturating_add(moved.dirtied_bytes));
    let charged_bytes = run.charged_bytes.as_ref().map_or(0, |[read, written]| read.saturating_add(*written));
    let syncs = run.syncs.as_ref().map_or(0, |syncs| syncs.count().saturating_add(syncs.sync_opens));
    moved_bytes.max(charged_bytes) >= MIN_DESCRIBED_BYTES_OF_SMALL || syncs > 0
}

/// Formats an amount as `512 MiB` or `1.25 GiB`, without `.00`.
fn amount_of(bytes: u64) -> String {
    show_bytes(bytes).replace(".00 ", " ")
}

/// Bytes that went from devices to the command, or from it to devices.
#[derive(Clone, Copy)]
struct Delivered {
    bytes: u64,
    /// What the kernel charged to the command's cgroup for them on the topmost devices; 0 if it charges nothing.
    charged: u64,
}

/// Names the topmost devices that moved these bytes, without those that moved next to nothing: those of the used files, if
/// they moved as many bytes, otherwise all. `a disk` if these devices moved too few bytes: then the command used others,
/// such as that of its libraries.
fn device_names(
    run: &CommandRun,
    tops: &[&str],
    is_used: impl Fn(&NamedFiles) -> bool,
    delivered: Delivered,
    moved_bytes: impl Fn(&DeviceUse) -> u64,
) -> String {
    let of_files: Vec<&str> =
        run.named.iter().filter(|one| is_used(one)).filter_map(|one| one.device.as_deref()).collect();
    let name_those = |names: &[&str]| {
        let devices = || run.devices.iter().flatten().filter(|device| names.contains(&device.name.as_str()));
        let all: u64 = devices().map(&moved_bytes).sum();
        let is_enough = all as f64 >= (1.0 - NEGLIGIBLE_SHARE) * delivered.bytes as f64;
        let moved_much = |device: &&DeviceUse| moved_bytes(device) as f64 > NEGLIGIBLE_SHARE * all as f64;
        let names: Vec<&str> = devices().filter(moved_much).map(|device| device.name.as_str()).collect();
        (is_enough && !names.is_empty()).then(|| names.join(" and "))
    };
    // The devices' own counts may be those of other programs.
    let is_charged = delivered.charged == 0
        || delivered.charged as f64 >= (1.0 - NEGLIGIBLE_SHARE) * delivered.bytes as f64;
    let named = name_those(&of_files).or_else(|| name_those(tops)).filter(|_| is_charged);
    named.unwrap_or_else(|| {
        if run.devices.iter().flatten().any(|d| moved_bytes(d) > 0) { "a disk" } else { "the disk" }.into()
    })
}

/// Returns the device that stores the first of these files, or `the disk`.
fn file_device(run: &CommandRun, is_used: impl Fn(&NamedFiles) -> bool) -> String {
    let device = run.named.iter().filter(|one| is_used(one)).find_map(|one| one.device.clone());
    device.unwrap_or_else(|| "the disk".into())
}
