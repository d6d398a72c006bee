//! B04: more bytes written to the device than fathom requested: journal, metadata, copies, whole pages. Compares
//! the device's bytes until the end of the final sync, less its idle traffic, and the bytes charged to fathom
//! with the bytes issued.

use crate::checks::b::{FLOOR_BYTES, has_partial_pages, incidental_bytes, page_bytes};
use crate::checks::prelude::*;

/// Bytes written per requested byte above which the rate is biased. Direct overwrites stay below 1.05 on ext4 and
/// xfs, and small stable writes, one at a time, need 1.7 or more.
const BIASED_ABOVE: f64 = 1.2;

pub(super) const CHECK: Check = Check {
    id: CheckId::B04,
    name: "WRITE_AMPLIFIED",
    belief: "the device wrote little more than the requested bytes",
    reads: "The `stat` file of the disk from the start of a run to the end of its final sync, and during the \
            idle watch. Also the bytes charged to fathom's own cgroup, and fathom's own count of bytes \
            written.",
    formula: formula!(
        "The larger of (device bytes - bytes that the disk wrote in the same time of the idle watch) and the \
         bytes charged to fathom, divided by the bytes written: biased above {BIASED_ABOVE}. {odd} per run \
         are allowed. Overwriting stays below 1.05 on ext4 and xfs; 4 KiB with O_DSYNC takes 1.8, and 2.9 \
         into holes. Does not apply if D01 found other processes.",
        odd = show_bytes(FLOOR_BYTES)
    ),
    provoke: "`fathom run --rw randwrite --bs 4k --depth 1 --cache direct-dsync DIR`: a journal write \
              follows each write.",
    fix: "For the device alone, overwrite an allocated file without --cache sync, or measure the block \
          device itself.",
    accept: "This is the cost of the file system, and an application pays it too: accept it to measure that.",
    ask: Ask::After(&[CheckId::D01], evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { delivered: 1.8, ..synchronous() }.record()),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest_write() }.record()
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() || earlier.finds(CheckId::D01) {
        return Ok(Answer::DoesNotApply);
    }
    let requested = issued_bytes(case, Kind::Write)?;
    let layers = case.shared()?;
    let mut device = 0.0;
    for ran in &case.runs {
        device += net_bytes(case, ran, &layers)?;
    }
    // A lower bound: cgroup v1 charges the journal to the root group, and no group is charged during a sync.
    let own = case.own().map_or(0.0, |own| own.bytes[1] as f64);
    let written = device.max(own);
    let ratio = share(written, requested as f64);
    let numbers = evidence([
        ("written_bytes", requested as f64),
        ("device_write_bytes", device),
        ("charged_write_bytes", own),
        ("bytes_per_byte_written", ratio),
    ]);
    let incidental = incidental_bytes(case) as f64;
    let tops = case.tops()?;
    if !case.sharers_moving(&tops, Kind::Write).is_empty() {
        // The upper bound: all bytes that the other streams did not submit belong to this stream.
        let most = (device - case.submitted_by_sharers(Kind::Write, &tops).least as f64).max(0.0);
        if share(most, requested as f64) > BIASED_ABOVE && most - requested as f64 > incidental {
            return Err(case.why_shared()?);
        }
        let numbers = evidence([("written_bytes", requested as f64), ("device_write_bytes_at_most", most)]);
        return holds("The device wrote little more than the requested bytes.", numbers);
    }
    if ratio <= BIASED_ABOVE || written - requested as f64 <= incidental {
        return holds("The device wrote little more than the requested bytes.", numbers);
    }
    finding!(
        Severity::Biased,
        numbers,
        "The device wrote {} bytes for each requested byte ({} for {}): {}.",
        show_rate(ratio),
        show_bytes(written as u64),
        show_bytes(requested),
        cause(case)
    )
}

/// Describes what may have added the bytes. Only a file system adds a journal, metadata or copies.
fn cause(case: &Case) -> String {
    let mut causes = Vec::new();
    let page = page_bytes(case);
    if !case.stream.cache.is_direct() && has_partial_pages(case, page) {
        causes.push(format!(
            "the page cache writes whole pages of {} even if only a part changed",
            show_bytes(page)
        ));
    }
    let mut kinds: Vec<&str> =
        case.places().filter(|p| p.file_system.is_some()).map(model::machine::Place::kind).collect();
    kinds.dedup();
    if !kinds.is_empty() {
        causes.push(format!("the result includes journal, metadata or copies of {}", kinds.join(" and ")));
    }
    if causes.is_empty() {
        return "the job uses no file system, so another program or a layer below the device wrote the rest"
            .into();
    }
    causes.join("; ")
}

/// Returns the bytes that the layers wrote from the start of a run to the end of its final sync, less their idle
/// traffic.
fn net_bytes(case: &Case, ran: &CaseRun, layers: &[&Layer]) -> Known<f64> {
    let (start, synced) = (ran.at(Moment::Start)?, ran.at(Moment::Synced)?);
    let bytes = written(layers, start, synced)?;
    let ns = synced.at_ns.saturating_sub(start.at_ns) as f64;
    Ok((bytes as f64 - ns * idle_rate(case, layers)).max(0.0))
}

/// Returns the bytes per ns that the layers wrote during the idle watch, or 0 without one. In that case only D01
/// finds writes by other processes.
fn idle_rate(case: &Case, layers: &[&Layer]) -> f64 {
    let at = |moment| case.record.evidence.iter().find(|s| s.moment == moment);
    let (Some(start), Some(end)) = (at(Moment::IdleStart), at(Moment::IdleEnd)) else { return 0.0 };
    let ns = end.at_ns.saturating_sub(start.at_ns) as f64;
    written(layers, start, end).map_or(0.0, |bytes| share(bytes as f64, ns))
}

fn written(layers: &[&Layer], from: &Snapshot, to: &Snapshot) -> Known<u64> {
    layers.iter().try_fold(0_u64, |sum, layer| {
        Ok(sum.saturating_add(BlockStat::between(from, to, &layer.stat_file)?.write.bytes))
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Synchronous writes, for which D01 cannot separate a journal from other processes.
#[cfg(test)]
fn synchronous() -> Fixture {
    Fixture { cache: model::job::Cache::DirectDsync, ..Fixture::honest_write() }
}

#[test]
fn thirty_percent_extra_biases_and_fifteen_percent_is_silent() {
    let at = |delivered| CHECK.severity(&Fixture { delivered, ..synchronous() }.record());
    assert_eq!(at(1.3), Some(Severity::Biased));
    assert_eq!(at(1.15), None);
}

#[test]
fn the_sentence_names_file_system_and_page_cache_only_where_they_are() {
    use model::job::Cache;
    use model::plan::Role;
    let sentence = |fixture: Fixture| match CHECK.answer(&Fixture { delivered: 1.8, ..fixture }.record()) {
        Ok(Answer::Finding(found)) => found.sentence,
        other => panic!("{other:?}"),
    };
    assert!(sentence(synchronous()).contains("copies of ext4"));
    let raw = sentence(Fixture { role: Role::Device, ..synchronous() });
    assert!(!raw.contains("copies") && raw.contains("no file system"), "{raw}");
    let buffered = |role| Fixture { role, block_bytes: 512, cache: Cache::Dsync, ..synchronous() };
    let pages = sentence(buffered(Role::Device));
    assert!(pages.contains("whole pages of 4 KiB") && !pages.contains("copies"), "{pages}");
    let both = sentence(buffered(Role::Made));
    assert!(both.contains("whole pages of 4 KiB") && both.contains("copies of ext4"), "{both}");
}

#[test]
fn idle_writes_do_not_count() {
    let mut record = Fixture { foreign_ios: 8_800, ..synchronous() }.record();
    assert_eq!(CHECK.severity(&record), Some(Severity::Biased));
    // The disk wrote as much while idle: 34 MiB in the 1.1 s of a run.
    let stat = |bytes: u64| format!("0 0 0 0 0 0 {} 0 0 0 0\n", bytes / 512);
    for (moment, at_ns, bytes) in [(Moment::IdleStart, 0, 0), (Moment::IdleEnd, 1_000_000_000, 40_u64 << 20)]
    {
        let mut snapshot = record.evidence[0].clone();
        (snapshot.moment, snapshot.at_ns) = (moment, at_ns);
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(stat(bytes)));
        record.evidence.push(snapshot);
    }
    assert_eq!(CHECK.severity(&record), None);
}

#[test]
fn it_is_silent_if_d01_found_other_processes() {
    let others = Fixture { foreign_ios: 30_000, ..Fixture::honest_write() };
    assert_eq!(CHECK.answer(&others.record()), Ok(Answer::DoesNotApply));
}
