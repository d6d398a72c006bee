//! A02: direct I/O that the file system accepted but sent through the page cache. Fires if new or dirty pages of
//! the target appeared, if the device saw fewer bytes than were issued, or if btrfs copied direct writes through
//! the page cache.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{grown, keyed};
use model::evidence::Pages;

/// Share of the bytes that may appear as new or dirty pages. Readers of other parts of the file add a few.
const PAGES_ABOVE: Share = Share(0.02);
/// Bytes that other readers may add to the cached pages of one target out of several.
const FEW_BYTES: f64 = (1 << 20) as f64;
/// Share of the bytes written to btrfs that must be dirtied and written back in the same time. The counters cover
/// the whole machine, so a smaller share may belong to other processes. btrfs is known to do this since Linux
/// 6.15.
const COPIED_FROM: Share = Share(0.9);

pub(super) const CHECK: Check = Check {
    id: CheckId::A02,
    name: "DIRECT_FELL_BACK",
    belief: "direct I/O went past the page cache",
    reads: "Pages of the target in the page cache at start and stop of every run (cachestat, or mincore). \
            Also the `stat` files of the devices and the cgroup's counters, compared with the bytes that \
            fathom issued.",
    formula: formula!(
        "Fires if new or dirty pages of the target exceed {PAGES_ABOVE} of the bytes that the run could \
         touch: readers of other parts of the file add a few. Each of several targets is also checked alone, \
         from {few} on. Also fires if the device saw less than {ARRIVED_FROM} of the bytes of a direction, \
         since all direct I/O must reach it. If other streams use the same device, the bytes that it saw for \
         this stream are known within bounds (see A01). Also fires for writes to a btrfs file with checksums \
         if /proc/vmstat counts at least {COPIED_FROM} of them as dirtied and written back in the same time \
         (nr_dirtied, nr_written).",
        few = show_bytes(FEW_BYTES as u64)
    ),
    provoke: "`mkfs.ext4 IMAGE`, `mount -o data=journal IMAGE DIR` and `fathom run --rw randread DIR`; or a \
              directory of btrfs with compression.",
    fix: "Use a file system that does direct I/O for this file: no data journal, no compression, no data \
          checksums (btrfs: `chattr +C` on the empty directory).",
    accept: "Accept it if you want to know how such a file system handles O_DIRECT.",
    ask: Ask::After(&[CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { cached_share: 0.9, ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.stream.cache.is_direct() || !case.on_device() || earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    // If another stream uses the target through the page cache, its pages prove nothing about this stream.
    let pages = if case.shares_pages() {
        Err("another stream uses the target through the page cache".to_owned())
    } else {
        new_pages(case)
    };
    if let Ok(new) = &pages
        && new.share() > PAGES_ABOVE
    {
        let sentence = format!(
            "Direct I/O was requested, but {} used the page cache anyway: {} of {} appeared in it during the \
             runs.",
            file_systems(case),
            show_bytes(new.bytes as u64),
            new.target.and_then(|at| case.path_among_several(at)).unwrap_or("the target")
        );
        return finding(sentence, new.evidence());
    }
    if let Some(dirtied) = copied_by_btrfs(case)? {
        let sentence = format!(
            "Direct writes were requested, but btrfs copied them through the page cache, as it does for \
             files with checksums: this machine dirtied and wrote back {} while fathom wrote {}.",
            show_bytes(dirtied as u64),
            show_bytes(case.issued(Kind::Write).bytes)
        );
        return finding(sentence, evidence([("dirtied_bytes", dirtied)]));
    }
    let mut is_undecided = false;
    for kind in Kind::MOVING {
        let (issued, seen) = (case.issued(kind).bytes, case.at_device(kind)?);
        let share_seen = |seen: u64| if issued == 0 { 1.0 } else { seen as f64 / issued as f64 };
        is_undecided |= share_seen(seen.least) < ARRIVED_FROM;
        let (part, seen) = (share_seen(seen.most), seen.most);
        if part < ARRIVED_FROM {
            let sentence = format!(
                "Direct I/O was requested, but the device saw only {} of the {} bytes: {} handled the rest \
                 in memory.",
                show_share(part),
                kind.word(),
                file_systems(case)
            );
            return finding(
                sentence,
                evidence([("issued_bytes", issued as f64), ("device_bytes", seen as f64)]),
            );
        }
    }
    if is_undecided {
        return case.cannot_tell("whether the device saw all of this stream's I/O");
    }
    let numbers = pages.map_or_else(|_| Evidence::new(), NewPages::evidence);
    holds("Direct I/O reached the device and left nothing in the page cache.", numbers)
}

/// Returns the bytes that were dirtied and written back during direct writes to btrfs, if they match the bytes
/// written. These pages leave the cache after writeback, so counting cached pages does not find them.
fn copied_by_btrfs(case: &Case) -> Known<Option<f64>> {
    let checksums = |place: &Place| {
        let fs = place.file_system.as_ref()?;
        let plain = fs.attributes.iter().any(|a| a == "nocow")
            || fs.options.split([',', ' ']).any(|o| o == "nodatasum" || o == "nodatacow");
        (fs.kind == "btrfs" && !plain).then_some(())
    };
    let written = case.issued(Kind::Write).bytes as f64;
    if written <= 0.0 || case.places().find_map(checksums).is_none() {
        return Ok(None);
    }
    let bytes = |key: &str| -> Known<f64> {
        let pages = sum_over_runs(case, |ran| grown(ran, VMSTAT, |text| keyed(text, key)))?;
        Ok(pages as f64 * VMSTAT_PAGE_BYTES as f64)
    };
    let mut copied = bytes("nr_dirtied")?.min(bytes("nr_written")?);
    if case.others_write() {
        // The counters include pages that other streams dirtied.
        let others = case.of_phase().issued(Kind::Write).bytes as f64 - written;
        if copied >= COPIED_FROM.0 * written && copied - others < COPIED_FROM.0 * written {
            return not_checked(
                "other streams write too, and the kernel counts the pages of all of them together",
            );
        }
        copied -= others;
    }
    Ok((copied >= COPIED_FROM.0 * written).then_some(copied))
}

fn finding(sentence: String, numbers: Evidence) -> Known<Answer> {
    Detail::new(Severity::Rename, sentence, numbers).relabelled(Rename::Medium("page cache".into())).found()
}

/// New pages in the page cache, and the bytes that the stream can have touched.
#[derive(Clone, Copy)]
struct NewPages {
    bytes: f64,
    touchable_bytes: f64,
    /// The target, or `None` for the sum of all targets.
    target: Option<usize>,
}

impl NewPages {
    fn share(self) -> f64 {
        share(self.bytes, self.touchable_bytes)
    }

    fn evidence(self) -> Evidence {
        evidence([("new_page_bytes", self.bytes), ("new_page_share", self.share())])
    }
}

/// Returns the new and dirty pages of the run with the largest share. A block counts once however often it was
/// touched, so the upper limit is the smaller of the bytes moved and the span.
fn new_pages(case: &Case) -> Known<NewPages> {
    let (before, after) = (case.states(Moment::Start)?, case.states(Moment::Stop)?);
    let mut worst = NewPages { bytes: 0.0, touchable_bytes: 1.0, target: None };
    for ((before, after), ran) in before.iter().zip(&after).zip(&case.runs) {
        let mut bytes = Vec::new();
        for (a, b) in before.iter().zip(after) {
            let (a, b) = (a.pages.as_ref().map_err(Clone::clone)?, b.pages.as_ref().map_err(Clone::clone)?);
            let new = b.cached.saturating_sub(a.cached).max(dirty(b).saturating_sub(dirty(a)));
            bytes.push(new as f64 * b.page_bytes as f64);
        }
        let moved: u64 = Kind::MOVING.iter().map(|k| ran.issued(*k).bytes).fold(0, u64::saturating_add);
        let span = case.stream.access.span_bytes.max(1) as f64;
        let all =
            NewPages { bytes: bytes.iter().sum(), touchable_bytes: (moved as f64).min(span), target: None };
        // If only one of several targets fell back, its share of the total is small.
        let touchable_each = (moved as f64 / bytes.len().max(1) as f64).min(span);
        let each = bytes.iter().enumerate().filter(|(_, bytes)| **bytes > FEW_BYTES);
        let each = each.map(|(at, bytes)| NewPages {
            bytes: *bytes,
            touchable_bytes: touchable_each,
            target: Some(at),
        });
        for new in std::iter::once(all).chain(each) {
            if new.share() > worst.share() {
                worst = new;
            }
        }
    }
    Ok(worst)
}

fn dirty(pages: &Pages) -> u64 {
    pages.dirty.unwrap_or(0)
}

fn file_systems(case: &Case) -> String {
    case.places().next().map_or("the target", |p| p.kind()).to_owned()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn a_device_that_saw_too_few_bytes_relabels() {
    let fixture = Fixture { delivered: 0.6, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&fixture.record()), Some(Severity::Rename));
    let written = Fixture { delivered: 0.6, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&written.record()), Some(Severity::Rename));
}

#[test]
fn buffered_io_is_not_checked() {
    let fixture = Fixture { cached_share: 0.9, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&fixture.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn new_pages_suffice_without_device_counters() {
    let fixture = Fixture { cached_share: 0.9, stat_unreadable: true, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&fixture.record()), Some(Severity::Rename));
}

#[test]
fn btrfs_copies_direct_writes_of_files_with_checksums() {
    let fixture = |kind, options, pages: u64| {
        let mut record = Fixture { kind, options, ..Fixture::honest_write() }.record();
        super::snapshots(&mut record, |s| {
            let pages = if s.moment == Moment::Start { 0 } else { pages };
            s.files.insert("/proc/vmstat".into(), Ok(format!("nr_dirtied {pages}\nnr_written {pages}\n")));
        });
        CHECK.severity(&record)
    };
    // 11,000 writes of 4 KiB a run.
    assert_eq!(fixture("btrfs", "rw", 10_000), Some(Severity::Rename));
    assert_eq!(fixture("btrfs", "rw", 9_800), None);
    assert_eq!(fixture("btrfs", "rw,nodatasum", 10_000), None);
    assert_eq!(fixture("ext4", "rw", 10_000), None);
}
