//! Group C: whether written data survive a power failure.
//!
//! Has the table of the group, and the counts of syncs and flushes. Flushes are counted only at the lowest
//! layers: device mapper and RAID devices have no request queue, so the kernel does not count theirs.

mod c01_sync_without_flush;
mod c02_barriers_off;
mod c03_flush_too_cheap;
mod c04_no_final_sync;
mod c05_remote_ack;
mod c06_sync_hides_tail;

use crate::case::{Case, CaseRun};
use crate::checks::{Answer, Check, Detail, Evidence, Rename, phase_streams};
use model::Known;
use model::evidence::{BlockStat, Moment};
use model::finding::Severity;
use model::job::Kind;
use model::machine::Layer;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    c01_sync_without_flush::CHECK,
    c02_barriers_off::CHECK,
    c03_flush_too_cheap::CHECK,
    c04_no_final_sync::CHECK,
    c05_remote_ack::CHECK,
    c06_sync_hides_tail::CHECK,
];

/// Number of fields in a `stat` file that counts flushes (Linux 5.5).
const FIELDS_WITH_FLUSHES: usize = 17;

/// Content of `queue/write_cache` for a disk with a volatile cache.
const VOLATILE: &str = "write back";

/// Returns the finding for syncs that do not make data durable. It is a note if the job makes no syncs, so that only
/// the final sync is affected.
fn skipped_syncs(case: &Case, sentence: &str, numbers: Evidence) -> Known<Answer> {
    let sentence = format!("{sentence} Synced data can be lost in a power failure.");
    if !case.syncs_itself() {
        return Detail::new(Severity::Note, sentence, numbers).found();
    }
    let not_durable = Rename::Condition("not durable".into());
    Detail::new(Severity::Rename, sentence, numbers).relabelled(not_durable).found()
}

/// Whether a layer reports a volatile write cache.
///
/// # Errors
/// Fails if the layer does not report it.
fn is_volatile(layer: &Layer) -> Known<bool> {
    let text = layer.queue.get("write_cache");
    let text = text.ok_or_else(|| format!("{}/queue/write_cache does not exist", layer.name))?;
    Ok(text.trim() == VOLATILE)
}

/// Returns the lowest disks that report a volatile write cache.
///
/// # Errors
/// Fails if the disks are unknown or one does not report its cache.
fn volatile_disks<'a>(case: &Case<'a>) -> Known<Vec<&'a Layer>> {
    let mut out = Vec::new();
    for leaf in case.leaves()? {
        if is_volatile(leaf)? {
            out.push(leaf);
        }
    }
    Ok(out)
}

/// Returns the syncs of the stream that must reach the disk: sync calls, and writes that are stable before they
/// complete.
fn syncs_requested(case: &Case) -> u64 {
    let ops_in_run = |ran: &CaseRun, kind| ran.stream.issued.get(&kind).map_or(0, |i| i.ops);
    let calls = if case.syncs_itself() && case.stream.flush.is_some() { Some(Kind::Sync) } else { None };
    let writes = case.stream.cache.is_sync().then_some(Kind::Write);
    let kinds = || calls.into_iter().chain(writes);
    case.runs.iter().flat_map(|r| kinds().map(move |k| ops_in_run(r, k))).fold(0, u64::saturating_add)
}

/// Returns the syncs of the other streams that use these disks at the same time.
fn syncs_of_sharers(case: &Case, disks: &[&Layer]) -> u64 {
    let streams = phase_streams(case);
    let syncs_of_stream = |at: &usize| {
        let stable = streams.get(*at).is_some_and(|s| s.cache.is_sync());
        let writes = if stable { case.issued_by(*at, Kind::Write).ops } else { 0 };
        let syncs = case.runs.iter().flat_map(|r| &r.end.streams).filter(|s| s.stream == *at);
        let syncs = syncs.filter_map(|s| s.issued.get(&Kind::Sync)).map(|i| i.ops);
        syncs.fold(writes, u64::saturating_add)
    };
    case.sharers(disks).iter().map(syncs_of_stream).fold(0, u64::saturating_add)
}

/// Returns the number of flushes of one disk and their ms, over all runs, from the start to `until`.
///
/// # Errors
/// Fails if they were not counted.
fn flushes_of_disk(case: &Case, disk: &Layer, until: Moment) -> Known<[u64; 2]> {
    let mut sum = [0_u64; 2];
    for ran in &case.runs {
        let (start, end) = (ran.at(Moment::Start)?, ran.at(until)?);
        if start.text(&disk.stat_file)?.split_ascii_whitespace().count() < FIELDS_WITH_FLUSHES {
            return Err("this kernel does not count flushes (Linux 5.5 and later do)".into());
        }
        let delta = BlockStat::between(start, end, &disk.stat_file)?;
        sum = [sum[0].saturating_add(delta.flushes), sum[1].saturating_add(delta.flush_ms)];
    }
    Ok(sum)
}

/// A record whose disks report this write cache and complete `flushes` flushes in `ms` ms per run.
#[cfg(test)]
fn with_flushes(
    fixture: &crate::fixture::Fixture,
    write_cache: &str,
    flushes: u64,
    ms: u64,
) -> model::record::Record {
    let mut record = fixture.record();
    let places = record.header.hosts.iter_mut().flat_map(|h| &mut h.places);
    for layer in places.flat_map(|p| &mut p.layers) {
        layer.queue.insert("write_cache".into(), format!("{write_cache}\n"));
    }
    for (i, run) in record.runs.iter_mut().enumerate() {
        for snapshot in &mut run.evidence {
            let times = i as u64 + u64::from(snapshot.moment != Moment::Start);
            for (_, text) in snapshot.files.iter_mut().filter(|(path, _)| path.ends_with("/stat")) {
                let Ok(text) = text else { continue };
                let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
                if let [.., n, t] = &mut fields[..] {
                    (*n, *t) = ((times * flushes).to_string(), (times * ms).to_string());
                }
                *text = fields.join(" ");
            }
        }
    }
    record
}

/// Ten thousand writes, one at a time, each stable before it completes.
#[cfg(test)]
fn stable_writes() -> crate::fixture::Fixture {
    use crate::fixture::Fixture;
    let cache = model::job::Cache::DirectDsync;
    Fixture { cache, depth: 1, depth_seen: 0.95, runs: 2, ..Fixture::honest_write() }
}
