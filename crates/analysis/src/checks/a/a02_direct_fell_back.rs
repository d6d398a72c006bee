//! A02: direct I/O that the file system accepted and then sent through the page cache.
//!
//! For: pages that appeared, and bytes that the device did not see. Not for: what the file system says beforehand (A03).

use crate::case::{Case, share};
use crate::checks::{Answer, Ask, Check, Detail, Earlier, Evidence, Page, Rename, evidence, formula};
use crate::kernel_text::{grown, keyed};
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::evidence::{Moment, Pages};
use model::finding::Severity;
use model::job::Kind;
use model::machine::Place;
use model::units::{show_bytes, show_share};

/// Share of the bytes that may turn up as new or dirty pages: readers of other parts of the file bring in a few.
const PAGES_ABOVE: Share = Share(0.02);
/// Bytes of one of several targets that readers of other parts of it may bring in.
const FEW_BYTES: f64 = (1 << 20) as f64;
/// Share of the bytes that the device must have seen.
const SEEN_FROM: Share = Share(0.95);
/// Share of the bytes written to btrfs that must have been dirtied and written back meanwhile. The counters are those of the whole
/// machine, so less than all is somebody else's perhaps; that btrfs does this at all is known (since Linux 6.15).
const COPIED_FROM: Share = Share(0.9);
/// Bytes of a page in the counters of `/proc/vmstat`; larger pages count as several.
const PAGE_BYTES: f64 = 4096.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::A02,
    name: "DIRECT_FELL_BACK",
    belief: "direct I/O went past the page cache",
    page: Page {
        reads: "Pages of the target in the page cache at start and stop of every run (cachestat, or mincore), and the \
                stat files of the devices and the cgroup's counters against the bytes that fathom issued.",
        formula: formula!(
            "Fires where new or dirty pages of the target are more than {PAGES_ABOVE} of the bytes that could have been \
             touched: readers of other parts bring in a few. Of several targets each is asked for its part, from {few} on. Or where the device saw less than {SEEN_FROM} of the bytes of a \
             direction: past the page cache it must see all of them; where other streams use the same device, what it saw for \
             this stream is known within bounds (see A01). Or, for writes to a file of btrfs with checksums, where \
             /proc/vmstat counts at least {COPIED_FROM} of them as dirtied and written back meanwhile (nr_dirtied, \
             nr_written).",
            few = show_bytes(FEW_BYTES as u64)
        ),
        provoke: "`mkfs.ext4 IMAGE`, `mount -o data=journal IMAGE DIR` and `fathom run --rw randread DIR`; or a directory \
                of btrfs with compression.",
        fix: "Use a file system that does direct I/O for this file: no data journal, no compression, no data checksums \
              (btrfs: `chattr +C` on the empty directory).",
        accept: "Accept it where you want to know what such a file system makes of O_DIRECT.",
    },
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
    // Pages of a target that another stream uses through the page cache are not this stream's.
    let pages = if case.shares_pages() {
        Err("another stream uses the target through the page cache".to_owned())
    } else {
        new_pages(case)
    };
    if let Ok(new) = &pages
        && new.share() > PAGES_ABOVE
    {
        let sentence = format!(
            "Direct I/O was asked for, and {} used the page cache anyway: {} of {} appeared in it during the runs.",
            file_systems(case),
            show_bytes(new.bytes as u64),
            new.target.and_then(|at| case.path_among_several(at)).unwrap_or("the target")
        );
        return Ok(found(sentence, new.evidence()));
    }
    if let Some(dirtied) = copied_by_btrfs(case)? {
        let sentence = format!(
            "Direct writes were asked for, and btrfs copied them into the page cache and wrote them back from there, as it does \
             for files with checksums: {} went that way on this machine while {} were written.",
            show_bytes(dirtied as u64),
            show_bytes(case.issued(Kind::Write).bytes)
        );
        return Ok(found(sentence, evidence([("dirtied_bytes", dirtied)])));
    }
    let mut undecided = false;
    for kind in Kind::MOVING {
        let (issued, seen) = (case.issued(kind).bytes, case.at_device(kind)?);
        let part_of = |seen: u64| if issued == 0 { 1.0 } else { seen as f64 / issued as f64 };
        undecided |= part_of(seen.least) < SEEN_FROM;
        let (part, seen) = (part_of(seen.most), seen.most);
        if part < SEEN_FROM {
            let sentence = format!(
                "Direct I/O was asked for, and the device saw only {} of the {} bytes: {} kept the rest in memory.",
                show_share(part),
                kind.word(),
                file_systems(case)
            );
            return Ok(found(
                sentence,
                evidence([("issued_bytes", issued as f64), ("device_bytes", seen as f64)]),
            ));
        }
    }
    if undecided {
        return Err(format!(
            "whether the device saw all that this stream did is not known: {}",
            case.why_shared()?
        ));
    }
    let numbers = pages.map_or_else(|_| Evidence::new(), New::evidence);
    Ok(Answer::Holds("Direct I/O reached the device and left nothing in the page cache.", numbers))
}

/// Bytes that were dirtied and written back while btrfs was written to directly, where they are as many as we wrote. Pages of
/// such writes are gone when they are written, so nothing of them is left to be seen in the cache.
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
        let pages = case.runs.iter().map(|ran| grown(ran, "/proc/vmstat", |text| keyed(text, key)));
        Ok(pages.sum::<Known<u64>>()? as f64 * PAGE_BYTES)
    };
    let mut through = bytes("nr_dirtied")?.min(bytes("nr_written")?);
    if case.others_write() {
        // Pages that other streams made dirty are in the same counters.
        let others = case.of_phase().issued(Kind::Write).bytes as f64 - written;
        if through >= COPIED_FROM.0 * written && through - others < COPIED_FROM.0 * written {
            return Err(
                "other streams write too, and the kernel counts the pages of all of them together".into()
            );
        }
        through -= others;
    }
    Ok((through >= COPIED_FROM.0 * written).then_some(through))
}

fn found(sentence: String, numbers: Evidence) -> Answer {
    Answer::Finding(Detail {
        severity: Severity::Rename,
        sentence,
        cure: None,
        evidence: numbers,
        renames: Some(Rename::Medium("page cache".into())),
    })
}

/// What appeared in the page cache, against what could have.
#[derive(Clone, Copy)]
struct New {
    bytes: f64,
    of: f64,
    /// Which of several targets; `None` where all of them are meant.
    target: Option<usize>,
}

impl New {
    fn share(self) -> f64 {
        share(self.bytes, self.of)
    }

    fn evidence(self) -> Evidence {
        evidence([("new_page_bytes", self.bytes), ("new_page_share", self.share())])
    }
}

/// The worst run's new and dirty pages. Bytes count once however often they were touched, hence the smaller of two.
fn new_pages(case: &Case) -> Known<New> {
    let (before, after) = (case.states(Moment::Start)?, case.states(Moment::Stop)?);
    let mut worst = New { bytes: 0.0, of: 1.0, target: None };
    for ((before, after), ran) in before.iter().zip(&after).zip(&case.runs) {
        let mut bytes = Vec::new();
        for (a, b) in before.iter().zip(after) {
            let (a, b) = (a.pages.as_ref().map_err(Clone::clone)?, b.pages.as_ref().map_err(Clone::clone)?);
            let new = b.cached.saturating_sub(a.cached).max(dirty(b).saturating_sub(dirty(a)));
            bytes.push(new as f64 * b.page_bytes as f64);
        }
        let moved: u64 = Kind::MOVING.iter().map(|k| ran.issued(*k).bytes).fold(0, u64::saturating_add);
        let span = case.stream.access.span_bytes.max(1) as f64;
        let all = New { bytes: bytes.iter().sum(), of: (moved as f64).min(span), target: None };
        // One of several targets that fell back is little of the whole.
        let of_each = (moved as f64 / bytes.len().max(1) as f64).min(span);
        let each = bytes.iter().enumerate().filter(|(_, bytes)| **bytes > FEW_BYTES);
        let each = each.map(|(at, bytes)| New { bytes: *bytes, of: of_each, target: Some(at) });
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
fn a_device_that_saw_too_little_is_enough() {
    let fixture = Fixture { delivered: 0.6, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&fixture.record()), Some(Severity::Rename));
    let written = Fixture { delivered: 0.6, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&written.record()), Some(Severity::Rename));
}

#[test]
fn buffered_io_is_not_asked() {
    let fixture = Fixture { cached_share: 0.9, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&fixture.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn pages_tell_even_where_the_device_is_not_counted() {
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
