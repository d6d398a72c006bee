//! Flushes: how often syncs were asked for, and how often the disks were told to empty their caches.
//!
//! For: the checks of this group. Not for: opinions. Flushes are looked up at the lowest layers only: the kernel counts them
//! for devices with a queue of requests, and device mapper or RAID in between have none.

use crate::case::{Case, CaseRun};
use model::Known;
use model::evidence::{BlockStat, Moment};
use model::job::Kind;
use model::machine::Layer;

/// Numbers in a `stat` file from which it counts flushes (Linux 5.5).
const FIELDS_WITH_FLUSHES: usize = 17;

/// What a disk with a volatile cache says in `queue/write_cache`.
const VOLATILE: &str = "write back";

/// Whether a layer says that it keeps writes in a volatile cache.
///
/// # Errors
/// That it does not say.
pub(super) fn is_volatile(layer: &Layer) -> Known<bool> {
    let text = layer.queue.get("write_cache");
    let text = text.ok_or_else(|| format!("{}/queue/write_cache is not there", layer.name))?;
    Ok(text.trim() == VOLATILE)
}

/// The disks below that say so.
///
/// # Errors
/// Why the disks are not known, or that one does not say.
pub(super) fn volatile<'a>(case: &Case<'a>) -> Known<Vec<&'a Layer>> {
    let mut out = Vec::new();
    for leaf in case.leaves()? {
        if is_volatile(leaf)? {
            out.push(leaf);
        }
    }
    Ok(out)
}

/// Syncs of the stream, each of which has to reach the disk: calls, and writes that are stable before they complete.
pub(super) fn asked(case: &Case) -> u64 {
    let of = |ran: &CaseRun, kind| ran.stream.issued.get(&kind).map_or(0, |i| i.ops);
    let calls = if case.syncs_itself() && case.stream.flush.is_some() { Some(Kind::Sync) } else { None };
    let writes = case.stream.cache.is_sync().then_some(Kind::Write);
    let kinds = || calls.into_iter().chain(writes);
    case.runs.iter().flat_map(|r| kinds().map(move |k| of(r, k))).fold(0, u64::saturating_add)
}

/// Syncs of the other streams that use these disks at the same time.
pub(super) fn of_sharers(case: &Case, disks: &[&Layer]) -> u64 {
    let streams = case.job.phases.get(case.phase).map_or(&[][..], |p| &p.streams);
    let of_stream = |at: &usize| {
        let stable = streams.get(*at).is_some_and(|s| s.cache.is_sync());
        let writes = if stable { case.issued_by(*at, Kind::Write).ops } else { 0 };
        let syncs = case.runs.iter().flat_map(|r| &r.end.streams).filter(|s| s.stream == *at);
        let syncs = syncs.filter_map(|s| s.issued.get(&Kind::Sync)).map(|i| i.ops);
        syncs.fold(writes, u64::saturating_add)
    };
    case.sharers(disks).iter().map(of_stream).fold(0, u64::saturating_add)
}

/// Flushes of one disk in all runs, from the start to a later moment: how many, and their ms.
///
/// # Errors
/// Why they were not counted.
pub(super) fn counted(case: &Case, disk: &Layer, until: Moment) -> Known<[u64; 2]> {
    let mut sum = [0_u64; 2];
    for ran in &case.runs {
        let (start, end) = (ran.at(Moment::Start)?, ran.at(until)?);
        if start.text(&disk.stat_file)?.split_ascii_whitespace().count() < FIELDS_WITH_FLUSHES {
            return Err("this kernel counts no flushes (they are there from Linux 5.5)".into());
        }
        let delta = BlockStat::between(start, end, &disk.stat_file)?;
        sum = [sum[0].saturating_add(delta.flushes), sum[1].saturating_add(delta.flush_ms)];
    }
    Ok(sum)
}

/// A record whose disks have this cache, and per run so many flushes that take so many ms together.
#[cfg(test)]
pub(super) fn fixture(
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

/// Ten thousand writes, each of them stable before it completes, one at a time.
#[cfg(test)]
pub(super) fn stable_writes() -> crate::fixture::Fixture {
    use crate::fixture::Fixture;
    let cache = model::job::Cache::DirectDsync;
    Fixture { cache, depth: 1, depth_seen: 0.95, runs: 2, ..Fixture::honest_write() }
}
