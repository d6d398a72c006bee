//! B04: more written to the device than was asked for.
//!
//! For: what journal, metadata and copies add until the final sync has ended. Not for: writes of others (D01), nor what a
//! drive does inside itself.

use crate::case::{Case, CaseRun, share};
use crate::checks::b::{INCIDENTAL_BYTES, has_partial_pages, incidental_bytes, page_bytes};
use crate::checks::{Answer, Ask, Check, Detail, Earlier, Page, evidence, formula};
use model::Known;
use model::check_id::CheckId;
use model::evidence::{BlockStat, Moment, Snapshot};
use model::finding::Severity;
use model::job::Kind;
use model::machine::Layer;
use model::units::{show_bytes, show_rate};

/// Bytes written per byte asked above which the file system's own writing is part of the result. Overwriting with direct I/O
/// stays below 1.05 on ext4 and xfs, and one small write made stable at a time needs 1.7 and more.
const BIASED_ABOVE: f64 = 1.2;

pub(super) const CHECK: Check = Check {
    id: CheckId::B04,
    name: "WRITE_AMPLIFIED",
    belief: "the device wrote what was asked for and no more",
    page: Page {
        reads: "The `stat` file of the disk from the start of a run to the end of its final sync, the same while nothing ran \
                (the idle watch), bytes charged to fathom's own cgroup, and our own count of bytes written.",
        formula: formula!(
            "The larger of (device bytes - what the disk wrote in as much time of the idle watch) and the bytes charged to \
             us, divided by the bytes written: biased above {BIASED_ABOVE}. {odd} per run never counts. Overwriting stays \
             below 1.05 on ext4 and xfs; 4 KiB with O_DSYNC takes 1.8, and 2.9 into holes. Not asked where D01 found others.",
            odd = show_bytes(INCIDENTAL_BYTES)
        ),
        provoke: "`fathom run --rw randwrite --bs 4k --depth 1 --cache direct-dsync DIR`: each write is followed by the \
                  journal's.",
        fix: "For the device alone, overwrite an allocated file without --cache sync, or measure the block device itself.",
        accept: "This is what the file system costs, and it is part of what an application gets: accept it for that question.",
    },
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
    let asked = case.issued(Kind::Write).bytes;
    if asked == 0 {
        return Err("no write completed".into());
    }
    let layers = case.shared()?;
    let mut device = 0.0;
    for ran in &case.runs {
        device += net_bytes(case, ran, &layers)?;
    }
    // Only a lower bound: the journal is charged to the root group in version 1, and to nobody while it is synced.
    let own = case.own().map_or(0.0, |own| own.bytes[1] as f64);
    let written = device.max(own);
    let ratio = share(written, asked as f64);
    let numbers = evidence([
        ("written_bytes", asked as f64),
        ("device_write_bytes", device),
        ("charged_write_bytes", own),
        ("bytes_per_byte_written", ratio),
    ]);
    let odd = incidental_bytes(case) as f64;
    let tops = case.tops()?;
    if !case.sharers_moving(&tops, Kind::Write).is_empty() {
        // Even if all that the others did not write themselves were this stream's.
        let most = (device - case.submitted_by_sharers(Kind::Write, &tops).least as f64).max(0.0);
        if share(most, asked as f64) > BIASED_ABOVE && most - asked as f64 > odd {
            return Err(case.why_shared()?);
        }
        let numbers = evidence([("written_bytes", asked as f64), ("device_write_bytes_at_most", most)]);
        return Ok(Answer::Holds("The device wrote little more than was asked for.", numbers));
    }
    if ratio <= BIASED_ABOVE || written - asked as f64 <= odd {
        return Ok(Answer::Holds("The device wrote little more than was asked for.", numbers));
    }
    Ok(Answer::Finding(Detail::new(
        Severity::Biased,
        format!(
            "The device wrote {} bytes for each byte that was asked for ({} for {}): {}.",
            show_rate(ratio),
            show_bytes(written as u64),
            show_bytes(asked),
            cause(case)
        ),
        numbers,
    )))
}

/// What may have added the bytes. Only a file system has a journal, metadata and copies of its own.
fn cause(case: &Case) -> String {
    let mut causes = Vec::new();
    let page = page_bytes(case);
    if !case.stream.cache.is_direct() && has_partial_pages(case, page) {
        causes.push(format!(
            "the page cache writes whole pages of {} where parts of them changed",
            show_bytes(page)
        ));
    }
    let mut kinds: Vec<&str> =
        case.places().filter(|p| p.file_system.is_some()).map(model::machine::Place::kind).collect();
    kinds.dedup();
    if !kinds.is_empty() {
        causes
            .push(format!("journal, metadata or copies of {} are part of this result", kinds.join(" and ")));
    }
    if causes.is_empty() {
        return "no file system of this job lies above the device, so another program or a layer below it wrote the rest".into();
    }
    causes.join("; ")
}

/// Bytes that the layers wrote from a run's start to the end of its final sync, less what they write in that time anyway.
fn net_bytes(case: &Case, ran: &CaseRun, layers: &[&Layer]) -> Known<f64> {
    let (start, synced) = (ran.at(Moment::Start)?, ran.at(Moment::Synced)?);
    let bytes = written(layers, start, synced)?;
    let ns = synced.at_ns.saturating_sub(start.at_ns) as f64;
    Ok((bytes as f64 - ns * idle_rate(case, layers)).max(0.0))
}

/// Bytes per ns that the layers wrote while nothing was measured; 0 where there was no idle watch, and then D01 alone says
/// whether others wrote.
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

/// Synchronous writes, where D01 cannot tell a journal from others.
#[cfg(test)]
fn synchronous() -> Fixture {
    Fixture { cache: model::job::Cache::DirectDsync, ..Fixture::honest_write() }
}

#[test]
fn a_quarter_more_biases_and_a_tenth_more_is_silent() {
    let at = |delivered| CHECK.severity(&Fixture { delivered, ..synchronous() }.record());
    assert_eq!(at(1.3), Some(Severity::Biased));
    assert_eq!(at(1.15), None);
}

#[test]
fn only_a_file_system_has_a_journal_and_the_page_cache_writes_whole_pages() {
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
fn what_the_disk_writes_anyway_is_not_the_file_systems() {
    let mut record = Fixture { foreign_ios: 8_800, ..synchronous() }.record();
    assert_eq!(CHECK.severity(&record), Some(Severity::Biased));
    // While idle it wrote as much: 34 MiB in the 1.1 s of a run.
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
fn where_others_were_found_it_is_silent() {
    let others = Fixture { foreign_ios: 30_000, ..Fixture::honest_write() };
    assert_eq!(CHECK.answer(&others.record()), Ok(Answer::DoesNotApply));
}
