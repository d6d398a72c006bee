//! Whether the page cache answered instead of the device (A01, A02, A03).
//!
//! A01 compares the bytes read with the bytes that the device delivered. A02 looks for direct I/O that the file
//! system sent through the page cache: new or dirty pages of the target, too few bytes at the device, or writes
//! that btrfs copied. A03 decides by statx, mount options and file attributes whether a file supports direct
//! I/O at all. Holes (A04) and targets in memory (A11) have their own checks.

use super::extents::{ENCODED_ABOVE, encoded_share_of};
use crate::case::{SAME_BYTES_WITHIN, new_page_bytes};
use crate::checks::io_as_requested::page_bytes;
use crate::checks::prelude::*;
use crate::figures::kernel_text::{growth_in_run, number_of_key};
use model::plan::{Role, Target};

/// If more than this share of the bytes read came from the page cache, the rate is biased. A smaller share can come
/// from pages that other readers left.
pub(crate) const CACHED_ABOVE: Share = Share(0.05);
/// If at least this share of the bytes read came from the page cache, the result is named after the page cache.
pub(crate) const CACHED_RELABELLED_FROM: Share = Share(0.5);
pub(super) const CACHE_SERVED: Check = Check {
    id: CheckId::A01,
    name: "CACHE_SERVED",
    belief: "the reads measured the device, not memory",
    reads: "The `stat` files of the devices below the file system and the io counters of fathom's own \
            cgroup, from start to stop of every run, compared with the bytes that fathom read. Also \
            `read_bytes` in /proc/thread-self/io of each worker.",
    formula: formula!(
        "Share from memory = 1 - bytes that the device delivered / bytes read. For random reads through the \
         page cache that are smaller than a page, it is at least 1 - pages delivered / reads.\n\
         - Relabelled to the page cache if the share is {CACHED_RELABELLED_FROM} or more.\n\
         - Biased if the share is above {CACHED_ABOVE}. A smaller share can come from pages that other \
         readers left.\n\
         - Not checked, instead of a finding, if the device delivered a part of the bytes and more than \
         {ENCODED_ABOVE} of the file is stored compressed or encrypted. The bytes on the disk are then not \
         the bytes of the file.\n\
         - The bytes delivered are the smaller of the device's count and the cgroup's count. If the \
         device's count is within {same} of the bytes read, it counts alone.\n\
         - If other streams of the phase use the same device, the bytes delivered to this stream have a \
         lower and an upper bound. The bounds come from the kernel's count of the reads that each stream's \
         own workers submitted (`read_bytes` in /proc/thread-self/io). A finding gives the smaller share. \
         Not checked if only one of the bounds leads to a finding.\n\
         - Not checked, instead of holds, if reads differ in size, and the missing bytes could be those of more \
         than {CACHED_ABOVE} of the reads.\n\
         - Does not apply if A04 found holes.",
        same = Share(SAME_BYTES_WITHIN)
    ),
    provoke: "`dd if=/dev/urandom of=FILE bs=1M count=256`, `cat FILE > /dev/null` and `fathom run --rw \
              randread --cache buffered FILE`.",
    fix: "Use --cache direct, or a --size well above the memory of the machine.",
    accept: "Accept it if you want to measure the page cache.",
    applies: |case| case.does(Kind::Read) && case.on_device(),
    ask: Ask::Unless(&[CheckId::A04], check_cache_served),
    #[cfg(test)]
    fires: Some(|| Fixture { delivered: 0.02, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_cache_served(case: &Case) -> Known<Answer> {
    let delivered = case.at_device(Kind::Read)?;
    let read = issued_bytes(case, Kind::Read)?;
    let by_bytes = |delivered: u64| (1.0 - delivered as f64 / read as f64).max(0.0);
    let by_pages = |delivered: u64| share_of_small_operations_in_memory(case, Kind::Read, delivered);
    let cached_share = |delivered: u64| by_bytes(delivered).max(by_pages(delivered));
    // Where other streams share the device, both bounds must lead to the same answer.
    let at_most = cached_share(delivered.least);
    let delivered = if at_most <= CACHED_ABOVE { delivered.least } else { delivered.most };
    let share_cached = cached_share(delivered);
    let numbers = evidence([
        ("read_bytes", read as f64),
        ("device_read_bytes", delivered as f64),
        ("cached_share", share_cached),
    ]);
    let Some(severity) = severity_of_cached_share(share_cached) else {
        // A few missing bytes may be most of the small operations.
        let access = &case.stream.access;
        let missing_ops = by_bytes(delivered) * read as f64 / f64::from(access.smallest_bytes().max(1));
        let has_sizes = access.smallest_bytes() < access.largest_bytes();
        if has_sizes && share(missing_ops, case.issued(Kind::Read).ops as f64) > CACHED_ABOVE.0 {
            return not_checked(
                "operations differ in size, and the few bytes that the device did not deliver may be those of \
                 many small reads",
            );
        }
        if at_most <= CACHED_ABOVE {
            let sentence = if share_cached > 0.0 {
                "The device delivered almost all bytes that were read."
            } else {
                "The device delivered all bytes that were read."
            };
            return holds(sentence, numbers);
        }
        return undecided_by_sharing(case, "how many of this stream's reads came from memory");
    };
    let is_encoded = |extents: &Extents| encoded_share_of(extents) > ENCODED_ABOVE;
    let stored = case.states(Moment::Start).unwrap_or_default();
    let whole_targets = stored.iter().flatten().filter_map(|state| state.extents.as_ref()?.as_ref().ok());
    if delivered > 0 && split_known(case.extents()).0.iter().chain(whole_targets).any(is_encoded) {
        return not_checked(
            "the file is stored compressed or encrypted, so the bytes at the device do not show \
             what the cache served",
        );
    }
    let is_relabelled = severity == Severity::Relabels;
    let counts = if by_bytes(delivered) < share_cached {
        format!(
            "{} of the reads came from memory: {} reads are smaller than a page, and the device delivered only {} pages.",
            show_share(share_cached),
            show_count(case.issued(Kind::Read).ops as f64),
            show_count((delivered / page_bytes(case)) as f64)
        )
    } else {
        format!(
            "{} of the bytes read came from memory: {} were read, and the device delivered {}.",
            show_share(share_cached),
            show_bytes(read),
            show_bytes(delivered)
        )
    };
    let consequence = if is_relabelled {
        "This is the speed of the page cache."
    } else {
        "The rate mixes the device and memory."
    };
    detail!(severity, numbers, "{counts} {consequence}")
        .relabelled(is_relabelled.then(|| Rename::Medium("page cache".into())))
        .found()
}

/// Returns the least share of operations that memory answered, for random operations through the page cache that are smaller than a page;
/// 0 for all others. The device moves whole pages, and each page answers at least one operation, so the other operations met a page that
/// was in memory. Sequential operations share their pages on purpose.
pub(super) fn share_of_small_operations_in_memory(case: &Case, kind: Kind, device_bytes: u64) -> f64 {
    let (access, page) = (&case.stream.access, page_bytes(case));
    let is_small = u64::from(access.largest_bytes()) < page && access.pattern() == Some(Pattern::Random);
    if !is_small || case.stream.cache.is_direct() {
        return 0.0;
    }
    let pages = device_bytes as f64 / page as f64;
    (1.0 - share(pages, case.issued(kind).ops as f64)).clamp(0.0, 1.0)
}

/// Returns the severity of a share of cached bytes among the bytes read, or `None` if it is harmless.
pub fn severity_of_cached_share(cached_share: f64) -> Option<Severity> {
    // If the share is not a number, the result does not pass.
    match cached_share {
        share if share <= CACHED_ABOVE.0 => None,
        share if share >= CACHED_RELABELLED_FROM.0 => Some(Severity::Relabels),
        _ => Some(Severity::Biases),
    }
}

/// Above this share of the bytes that the run could touch, new or dirty pages prove that direct I/O
/// used the page cache. Readers of other parts of the file add a few.
const PAGES_ABOVE: Share = Share(0.02);
/// Bytes that other readers may add to the cached pages of one target out of several.
const FEW_BYTES: f64 = (1 << 20) as f64;
/// Minimum share of the bytes written to btrfs that the machine dirties and writes back in the same time. The counters cover
/// the whole machine, so a smaller share may belong to other processes. Since Linux 6.15, btrfs is known to copy direct
/// writes through the page cache.
const COPIED_FROM: Share = Share(0.9);

pub(super) const DIRECT_FELL_BACK: Check = Check {
    id: CheckId::A02,
    name: "DIRECT_FELL_BACK",
    belief: "direct I/O went past the page cache",
    reads: "Pages of the target in the page cache at start and stop of every run (cachestat, or mincore). \
            Also the `stat` files of the devices and the cgroup's counters, compared with the bytes that \
            fathom issued.",
    formula: formula!(
        "Compares the new pages of the target in the page cache with the bytes that the run could touch, \
         and the bytes at the device with the bytes issued.\n\
         - Relabelled to the page cache if new or dirty pages are more than {PAGES_ABOVE} of the bytes \
         that the run could touch. Readers of other parts of the file add fewer. With several targets, \
         each one with more than {few} of such pages is also checked alone.\n\
         - Relabelled if the device moved less than {ARRIVED_FROM} of the bytes of a direction: all direct \
         I/O must reach it.\n\
         - Relabelled for writes to a btrfs file with checksums if the machine dirtied and wrote back at \
         least {COPIED_FROM} of these bytes in the same time (`nr_dirtied` and `nr_written` in \
         /proc/vmstat).\n\
         - Not checked if other streams use the same device and the bounds of this stream's bytes (see \
         A01) do not decide.\n\
         - Pages do not count if another stream uses the target through the page cache.\n\
         - Does not apply if A04 found holes.",
        few = show_bytes(FEW_BYTES as u64)
    ),
    provoke: "`mkfs.ext4 IMAGE`, `mount -o data=journal IMAGE DIR` and `fathom run --rw randread DIR`; or a \
              directory of btrfs with compression.",
    fix: "Use a file system that does direct I/O for this file: no data journal, no compression, no data \
          checksums (btrfs: `chattr +C` on the empty directory).",
    accept: "Accept it if you want to know how such a file system handles O_DIRECT.",
    applies: |case| case.stream.cache.is_direct() && case.on_device(),
    ask: Ask::Unless(&[CheckId::A04], check_direct_fell_back),
    #[cfg(test)]
    fires: Some(|| Fixture { cached_share: 0.9, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_direct_fell_back(case: &Case) -> Known<Answer> {
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
            "Direct I/O was requested, but {} used the page cache anyway: {} of {} appeared in it \
             during a run.",
            name_file_systems(case, &new.targets, " and "),
            show_bytes(new.bytes as u64),
            match new.targets.as_slice() {
                [(_, target)] if case.targets().len() > 1 => target.path.as_str(),
                [_, _, ..] => "the targets",
                _ => "the target",
            }
        );
        return fell_back_finding(sentence, new.evidence());
    }
    let copied = copied_by_btrfs(case);
    if let Ok(Some(dirtied)) = copied {
        let sentence = format!(
            "Direct writes were requested, but btrfs copied them through the page cache, as it does for \
             files with checksums: this machine dirtied and wrote back {} while fathom wrote {}.",
            show_bytes(dirtied as u64),
            show_bytes(case.issued(Kind::Write).bytes)
        );
        return fell_back_finding(sentence, evidence([("dirtied_bytes", dirtied)]));
    }
    let (mut is_undecided, mut completeness) = (false, Ok(()));
    for kind in Kind::MOVING {
        let issued = case.issued(kind).bytes;
        let seen = match case.at_device(kind) {
            Ok(seen) => seen,
            Err(why) => {
                completeness = completeness.and(Err(why));
                continue;
            }
        };
        let share_seen = |seen: u64| if issued == 0 { 1.0 } else { seen as f64 / issued as f64 };
        is_undecided |= share_seen(seen.least) < ARRIVED_FROM;
        let part = share_seen(seen.most);
        if part < ARRIVED_FROM {
            let sentence = format!(
                "Direct I/O was requested, but the device saw only {} of the {} bytes: {} handled the rest \
                 in memory.",
                show_share(part),
                kind.word(),
                // The counters of the devices do not show which of the file systems kept the rest.
                name_file_systems(case, case.targets(), " or ")
            );
            let numbers = evidence([("issued_bytes", issued as f64), ("device_bytes", seen.most as f64)]);
            return fell_back_finding(sentence, numbers);
        }
    }
    completeness?;
    copied?;
    if is_undecided {
        return undecided_by_sharing(case, "whether the device saw all of this stream's I/O");
    }
    let sentence = match &pages {
        Ok(new) if new.bytes > 0.0 => {
            "Direct I/O reached the device and left almost nothing in the page cache."
        }
        Ok(_) => "Direct I/O reached the device and left nothing in the page cache.",
        Err(_) => "Direct I/O reached the device.",
    };
    holds(sentence, pages.map_or_else(|_| Evidence::new(), |new| new.evidence()))
}

/// Returns the bytes that were dirtied and written back during direct writes to btrfs; `None` if
/// they are less than [`COPIED_FROM`] of the bytes written, or if no target is on btrfs with
/// checksums. The pages leave the cache after write-back, so counting cached pages does not find
/// them.
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
        let pages = sum_over_runs(case, |ran| growth_in_run(ran, VMSTAT, |text| number_of_key(text, key)))?;
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

fn fell_back_finding(sentence: String, numbers: Evidence) -> Known<Answer> {
    Detail::new(Severity::Relabels, sentence, numbers).relabelled(Rename::Medium("page cache".into())).found()
}

/// New pages in the page cache, and the bytes that the stream can have touched.
struct NewPages<'a> {
    bytes: f64,
    touchable_bytes: f64,
    /// The targets that the pages belong to, each with its index in the plan.
    targets: Vec<(usize, &'a Target)>,
}

impl NewPages<'_> {
    fn share(&self) -> f64 {
        share(self.bytes, self.touchable_bytes)
    }

    fn evidence(&self) -> Evidence {
        evidence([("new_page_bytes", self.bytes), ("new_page_share", self.share())])
    }
}

/// Finds the run, or the target in a run, whose new and dirty pages are the largest share of the bytes that the stream
/// can have touched. The touched bytes are at most the span and at most the bytes moved, because the stream may touch a
/// block several times.
///
/// # Errors
/// Why the pages of a target are unknown, unless those of the other targets suffice for a finding.
fn new_pages<'a>(case: &Case<'a>) -> Known<NewPages<'a>> {
    let (before, after) = (case.states(Moment::Start)?, case.states(Moment::Stop)?);
    let touchable = |moved: f64, span: u64| moved.min(span.max(1) as f64);
    let mut worst = NewPages { bytes: 0.0, touchable_bytes: 1.0, targets: Vec::new() };
    let mut completeness = Ok(());
    for ((before, after), ran) in before.iter().zip(&after).zip(case.runs.iter()) {
        let moved = Kind::MOVING.iter().map(|k| ran.issued(*k).bytes).fold(0, u64::saturating_add) as f64;
        let moved_each = moved / before.len().max(1) as f64;
        let mut each = Vec::new();
        for ((before, after), (at, target)) in before.iter().zip(after).zip(case.targets()) {
            match (&before.pages, &after.pages) {
                (Ok(before), Ok(after)) => each.push(NewPages {
                    bytes: new_page_bytes(before, after) as f64,
                    touchable_bytes: touchable(moved_each, case.span_bytes_of(*at)),
                    targets: vec![(*at, *target)],
                }),
                (Err(why), _) | (_, Err(why)) => completeness = completeness.and(Err(why.clone())),
            }
        }
        let all = NewPages {
            bytes: each.iter().map(|new| new.bytes).sum(),
            touchable_bytes: touchable(moved, case.span_bytes()),
            targets: each.iter().filter(|new| new.bytes > 0.0).flat_map(|new| new.targets.clone()).collect(),
        };
        // If only one of several targets fell back, its share of the total is small.
        let each = each.into_iter().filter(|new| new.bytes > FEW_BYTES);
        for new in std::iter::once(all).chain(each) {
            if new.share() > worst.share() {
                worst = new;
            }
        }
    }
    if worst.share() <= PAGES_ABOVE {
        completeness?;
    }
    Ok(worst)
}

/// Names the file systems of these targets, each once: `ext4`, or `ext4 and xfs` with the conjunction ` and `.
fn name_file_systems(case: &Case, targets: &[(usize, &Target)], conjunction: &str) -> String {
    let places = targets.iter().filter_map(|(at, _)| case.machine?.places.get(*at));
    let file_systems = places.map(|place| place.file_system.as_ref());
    let names: BTreeSet<&str> =
        file_systems.map(|fs| fs.map_or("the block device", |fs| fs.kind.as_str())).collect();
    if names.is_empty() {
        return "the target".to_owned();
    }
    names.into_iter().collect::<Vec<_>>().join(conjunction)
}

pub(super) const DIRECT_UNSUPPORTED: Check = Check {
    id: CheckId::A03,
    name: "DIRECT_UNSUPPORTED",
    belief: "the target supports direct I/O",
    reads: "statx with STATX_DIOALIGN, the attributes of the file (FS_IOC_GETFLAGS and statx), the mount \
            options and the type of the file system.",
    formula: formula!(
        "Fires if statx reports an alignment of zero, which means that the file does not support direct I/O; \
         if the file system is tmpfs or ramfs; if data go through the journal (data=journal, chattr +j); or \
         if btrfs compresses the file. A file system that reports no alignment is not checked; A02 shows \
         what happened then."
    ),
    provoke: "`fathom run --rw randread /dev/shm`, or a file on ext4 mounted with data=journal.",
    fix: "Measure on a file system that supports direct I/O, or name the block device.",
    accept: "Accept it if you cannot change the file system and want to measure its page cache too.",
    applies: |case| case.stream.cache.is_direct() && case.has_storage(),
    ask: Ask::Alone(check_direct_unsupported),
    #[cfg(test)]
    fires: Some(|| {
        let none = DirectIo { memory_align: 0, offset_align: 0 };
        Fixture { direct: Some(none), ..Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || Fixture { direct: None, ..Fixture::honest() }.record(),
};

fn check_direct_unsupported(case: &Case) -> Known<Answer> {
    let all = case.targets().iter().filter(|(_, target)| target.role != Role::None).count();
    let (mut reasons, mut silent) = (BTreeSet::new(), BTreeSet::new());
    let (mut known, mut without) = (0, 0);
    for place in case.places() {
        known += 1;
        if let Some(why) = place.without_direct() {
            without += 1;
            let names_kind = all <= 1 || why.starts_with(place.kind());
            reasons.insert(if names_kind { why } else { format!("{}: {why}", place.kind()) });
        } else if place.direct.is_none() {
            silent.insert(place.kind());
        }
    }
    if without > 0 {
        let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
        let (do_not_support, its) = match without {
            _ if all <= 1 => ("This target does not support".to_owned(), "its"),
            1 => (format!("1 of {all} targets does not support"), "its"),
            _ if without == all => (format!("None of the {all} targets supports"), "their"),
            _ => (format!("{without} of {all} targets do not support"), "their"),
        };
        let renames = if without < all {
            Rename::Condition("partly page cache".into())
        } else {
            Rename::Medium("page cache".into())
        };
        return detail!(
            Severity::Relabels,
            evidence([]),
            "{do_not_support} direct I/O ({reasons}): {its} I/O goes through the page cache."
        )
        .relabelled(renames)
        .found();
    }
    if known < all {
        return not_checked("the record does not contain the device chain of the target");
    }
    if !silent.is_empty() {
        let (does, it_supports) =
            if silent.len() == 1 { ("does", "it supports") } else { ("do", "they support") };
        let names = silent.into_iter().collect::<Vec<_>>().join(" and ");
        return Err(format!("{names} {does} not report whether {it_supports} direct I/O"));
    }
    holds("The file system reports that the target supports direct I/O.", evidence([]))
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::TargetState;
#[cfg(test)]
use model::machine::DirectIo;

#[test]
fn missing_bytes_of_mixed_sizes_may_be_many_small_reads() {
    let at = |delivered, sizes| {
        let cache = model::job::Cache::Buffered;
        let mut record = Fixture { cache, delivered, ..Fixture::honest() }.record();
        record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].sizes =
            model::job::PerKind::all(sizes);
        CACHE_SERVED.answer(&record)
    };
    let mixed = || model::job::Sizes::Range(512, 65_536);
    assert!(at(0.97, mixed()).is_err_and(|why| why.contains("many small reads")));
    assert!(matches!(at(1.0, mixed()), Ok(Answer::Holds(..))));
    assert!(matches!(at(0.97, model::job::Sizes::Fixed(4096)), Ok(Answer::Holds(..))));
}

#[test]
fn small_random_reads_that_met_pages_in_memory_are_counted() {
    let at = |block_bytes, pattern, delivered| {
        let cache = model::job::Cache::Buffered;
        Fixture { pattern, block_bytes, cache, delivered, ..Fixture::honest() }.record()
    };
    // The device delivered as many bytes as were read, in pages of eight operations.
    let random = at(512, Pattern::Random, 1.0);
    assert_eq!(CACHE_SERVED.severity(&random), Some(Severity::Relabels));
    let Ok(Answer::Finding(found)) = CACHE_SERVED.answer(&random) else { panic!("silent") };
    assert!(found.sentence.starts_with("88 % of the reads came from memory"), "{}", found.sentence);
    assert_eq!(CACHE_SERVED.severity(&at(512, Pattern::Random, 8.0)), None, "a page for each read");
    assert_eq!(CACHE_SERVED.severity(&at(512, Pattern::Sequential, 1.0)), None);
    assert_eq!(CACHE_SERVED.severity(&at(4096, Pattern::Random, 1.0)), None);
}

#[test]
fn the_cached_share_decides_between_biased_and_relabelled() {
    let at = |delivered| CACHE_SERVED.severity(&Fixture { delivered, ..Fixture::honest() }.record());
    assert_eq!(at(0.97), None);
    assert_eq!(at(0.9), Some(Severity::Biases));
    assert_eq!(at(0.5), Some(Severity::Relabels));
    assert_eq!(at(0.0), Some(Severity::Relabels));
    let sentence = |delivered| match CACHE_SERVED.answer(&Fixture { delivered, ..Fixture::honest() }.record())
    {
        Ok(Answer::Finding(f)) => f.sentence,
        other => panic!("{other:?}"),
    };
    assert!(
        sentence(0.901).contains("9.9 %") && !sentence(0.901).contains("speed of the page cache"),
        "{}",
        sentence(0.901)
    );
    assert!(sentence(0.2).contains("speed of the page cache"));
}

#[test]
fn beliefs_that_hold_claim_no_more_than_their_figures() {
    let delivered = |delivered| Fixture { delivered, ..Fixture::honest() }.record();
    assert!(CACHE_SERVED.sentence(&delivered(1.0)).contains("delivered all bytes"));
    assert!(CACHE_SERVED.sentence(&delivered(0.97)).contains("delivered almost all bytes"));
    let few_pages = Fixture { cached_share: 0.01, ..Fixture::honest() }.record();
    assert!(DIRECT_FELL_BACK.sentence(&few_pages).contains("left almost nothing"));
    let mut unknown_pages = Fixture::honest().record();
    assert!(DIRECT_FELL_BACK.sentence(&unknown_pages).contains("left nothing"));
    super::change_snapshots(&mut unknown_pages, |s| {
        s.targets.iter_mut().for_each(|target| target.pages = Err("Permission denied".into()));
    });
    assert!(!DIRECT_FELL_BACK.sentence(&unknown_pages).contains("page cache"));
}

#[test]
fn reads_by_other_processes_do_not_hide_the_cache() {
    let fixture = Fixture { delivered: 0.1, foreign_ios: 5_000, ..Fixture::honest() };
    assert_eq!(CACHE_SERVED.severity(&fixture.record()), Some(Severity::Relabels));
}

#[test]
fn compressed_files_are_not_checked() {
    let fixture = Fixture { delivered: 0.6, encoded_share: 1.0, ..Fixture::honest() };
    assert!(CACHE_SERVED.answer(&fixture.record()).is_err());
}

#[test]
fn a_device_that_saw_too_few_bytes_relabels() {
    let fixture = Fixture { delivered: 0.6, ..Fixture::honest() };
    assert_eq!(DIRECT_FELL_BACK.severity(&fixture.record()), Some(Severity::Relabels));
    let written = Fixture { delivered: 0.6, ..Fixture::honest_write() };
    assert_eq!(DIRECT_FELL_BACK.severity(&written.record()), Some(Severity::Relabels));
}

#[test]
fn a02_does_not_apply_to_buffered_io() {
    let fixture = Fixture { cached_share: 0.9, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert_eq!(DIRECT_FELL_BACK.answer(&fixture.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn new_pages_suffice_without_device_counters() {
    let fixture = Fixture { cached_share: 0.9, stat_unreadable: true, ..Fixture::honest() };
    assert_eq!(DIRECT_FELL_BACK.severity(&fixture.record()), Some(Severity::Relabels));
}

#[test]
fn pages_are_compared_with_the_bytes_of_all_targets() {
    const MIB: u64 = 1 << 20;
    let answer = |spans: &[u64], span_bytes: u64, new_pages: &[Known<u64>]| {
        let mut record = Fixture::honest().record();
        let plan = &mut record.header.plan;
        let target = plan.targets[0].clone();
        plan.targets =
            spans.iter().map(|bytes| model::plan::Target { bytes: *bytes, ..target.clone() }).collect();
        let stream = &mut plan.jobs[0].phases[0].streams[0];
        stream.targets = (0..spans.len()).collect();
        stream.access.span_bytes = span_bytes;
        let places = &mut record.header.hosts[0].places;
        *places = vec![places[0].clone(); spans.len()];
        super::change_snapshots(&mut record, |s| {
            let state = s.targets[0].clone();
            let pages = |new: &Known<u64>| {
                let new = if s.moment == Moment::Start { 0 } else { new.clone()? };
                Ok(model::evidence::Pages { cached: new, ..state.pages.clone()? })
            };
            let all = new_pages.iter().map(|new| TargetState { pages: pages(new), ..state.clone() });
            s.targets = all.collect();
        });
        DIRECT_FELL_BACK.answer(&record)
    };
    let finds = |spans: &[u64], span_bytes, new_pages: &[Known<u64>]| {
        matches!(answer(spans, span_bytes, new_pages), Ok(Answer::Finding(_)))
    };
    // Each run reads 43 MiB in many passes over a file of 1 MiB. 25 pages are 10 % of the file.
    assert!(finds(&[MIB], u64::MAX, &[Ok(25)]));
    assert!(!finds(&[MIB], u64::MAX, &[Ok(5)]));
    // 50 pages are 2.4 % of one span and 1.2 % of both.
    assert!(!finds(&[8 * MIB; 2], 8 * MIB, &[Ok(25), Ok(25)]));
    assert!(finds(&[8 * MIB; 2], 8 * MIB, &[Ok(50), Ok(50)]));
    // All pages of one target are new, and the pages of the other target are unknown.
    let unknown = || Err("Operation not permitted (os error 1)".to_owned());
    assert!(finds(&[8 * MIB; 2], u64::MAX, &[unknown(), Ok(2048)]));
    let few = answer(&[8 * MIB; 2], u64::MAX, &[unknown(), Ok(1)]);
    assert!(matches!(&few, Ok(Answer::Holds(sentence, _)) if !sentence.contains("page cache")), "{few:?}");
}

#[test]
fn btrfs_copies_direct_writes_of_files_with_checksums() {
    let fixture = |kind, options, pages: u64| {
        let mut record = Fixture { kind, options, ..Fixture::honest_write() }.record();
        super::change_snapshots(&mut record, |s| {
            let pages = if s.moment == Moment::Start { 0 } else { pages };
            s.files.insert("/proc/vmstat".into(), Ok(format!("nr_dirtied {pages}\nnr_written {pages}\n")));
        });
        DIRECT_FELL_BACK.severity(&record)
    };
    // 11,000 writes of 4 KiB a run.
    assert_eq!(fixture("btrfs", "rw", 10_000), Some(Severity::Relabels));
    assert_eq!(fixture("btrfs", "rw", 9_800), None);
    assert_eq!(fixture("btrfs", "rw,nodatasum", 10_000), None);
    assert_eq!(fixture("ext4", "rw", 10_000), None);
    let uncounted = |delivered| {
        let mut record = Fixture { kind: "btrfs", delivered, ..Fixture::honest_write() }.record();
        super::change_snapshots(&mut record, |s| drop(s.files.remove("/proc/vmstat")));
        DIRECT_FELL_BACK.answer(&record)
    };
    assert!(matches!(uncounted(0.6), Ok(Answer::Finding(_))), "the device saw too few bytes");
    assert!(uncounted(1.0).is_err());
}

#[test]
fn a_data_journal_and_tmpfs_do_not_support_direct_io() {
    let journal = Fixture { options: "rw,data=journal", ..Fixture::honest() };
    assert_eq!(DIRECT_UNSUPPORTED.severity(&journal.record()), Some(Severity::Relabels));
    let tmpfs = Fixture { kind: "tmpfs", ram: Some("tmpfs"), direct: None, ..Fixture::honest() };
    assert_eq!(DIRECT_UNSUPPORTED.severity(&tmpfs.record()), Some(Severity::Relabels));
}

/// A record of a stream with one target on each of these file systems, in which a part of the bytes reached the device.
#[cfg(test)]
fn with_file_systems(kinds: &[&'static str], delivered: f64) -> model::record::Record {
    let mut record = Fixture { delivered, ..Fixture::honest() }.record();
    let plan = &mut record.header.plan;
    plan.targets = vec![plan.targets[0].clone(); kinds.len()];
    plan.jobs[0].phases[0].streams[0].targets = (0..kinds.len()).collect();
    let place = record.header.hosts[0].places[0].clone();
    record.header.hosts[0].places = kinds
        .iter()
        .map(|kind| {
            let mut place = place.clone();
            place.file_system.as_mut().unwrap().kind = (*kind).into();
            place
        })
        .collect();
    super::change_snapshots(&mut record, |s| s.targets = vec![s.targets[0].clone(); kinds.len()]);
    record
}

#[test]
fn each_file_system_is_named_once_if_direct_io_fell_back() {
    let sentence = |record: &model::record::Record| match DIRECT_FELL_BACK.answer(record) {
        Ok(Answer::Finding(f)) => f.sentence,
        other => panic!("{other:?}"),
    };
    let at_device = |kinds: &[&'static str]| sentence(&with_file_systems(kinds, 0.6));
    assert!(at_device(&["ext4", "ext4"]).contains("bytes: ext4 handled"), "{}", at_device(&["ext4", "ext4"]));
    let two = at_device(&["xfs", "ext4", "xfs"]);
    assert!(two.contains("bytes: ext4 or xfs handled the rest"), "{two}");
    // Only the second of the three targets has new pages.
    let mut one = with_file_systems(&["xfs", "ext4", "xfs"], 1.0);
    one.header.plan.targets[1].path = "/second".into();
    super::change_snapshots(&mut one, |s| {
        let is_stop = s.moment == Moment::Stop;
        if let Ok(pages) = &mut s.targets[1].pages {
            pages.cached = if is_stop { 4096 } else { 0 };
        }
    });
    let one = sentence(&one);
    assert!(one.contains("but ext4 used the page cache") && one.contains("of /second appeared"), "{one}");
}

#[test]
fn targets_without_direct_io_are_counted_and_named_with_their_file_systems() {
    let answer = |kinds: &[&'static str], change: fn(&mut model::record::Record)| {
        let mut record = with_file_systems(kinds, 1.0);
        change(&mut record);
        DIRECT_UNSUPPORTED.answer(&record)
    };
    let sentence = |kinds: &[&'static str]| match answer(kinds, |_| ()) {
        Ok(Answer::Finding(f)) => f.sentence,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        sentence(&["ext4", "tmpfs"]),
        "1 of 2 targets does not support direct I/O (tmpfs keeps its files only in the page cache): its I/O \
         goes through the page cache."
    );
    let all = sentence(&["tmpfs", "ramfs", "tmpfs"]);
    assert!(all.starts_with("None of the 3 targets supports direct I/O (ramfs keeps its files"), "{all}");
    assert!(all.contains("; tmpfs keeps") && all.matches("tmpfs keeps").count() == 1, "{all}");
    let silent = answer(&["fuse.a", "fuse.b"], |record| {
        record.header.hosts[0].places.iter_mut().for_each(|place| place.direct = None);
    });
    assert_eq!(silent, Err("fuse.a and fuse.b do not report whether they support direct I/O".into()));
    let missing = answer(&["ext4", "xfs"], |record| drop(record.header.hosts[0].places.pop()));
    assert!(missing.is_err(), "{missing:?}");
}
