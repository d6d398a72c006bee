//! What the blocks of the file are: never written, inline, encoded, or shared (A04, A06, A07, A21).
//!
//! All four read the extent map of the file (FIEMAP). A04 measures the share of holes and unwritten extents at the
//! start and end of each run, or before the first run if no run completed. A06 finds files whose bytes are in the
//! inode or share a block with other files. A07 finds compressed and encrypted extents before each run and, if the job
//! writes, after the run's final sync. A21 finds extents shared with a copy or snapshot, and files that gain extents during
//! a run: their writes go to new blocks.

use crate::checks::prelude::*;

/// Share of never written bytes that is harmless: one block at the end of a 4 MiB file.
pub(crate) const UNWRITTEN_ABOVE: Share = Share(0.001);

pub(super) const HOLES_READ: Check = Check {
    id: CheckId::A04,
    name: "HOLES_READ",
    belief: "the bytes that were read are on the disk",
    reads: "The extents of the measured region of the file before the first run and at the start and end of \
            every run (FIEMAP): holes, and extents that were allocated but never written. If the check \
            already fires before the first run, fathom measures nothing.",
    formula: formula!(
        "Invalid if bytes never written / bytes of the region > {UNWRITTEN_ABOVE}, which is one block at the \
         end of a file of a few mebibytes. The kernel answers such reads with zeros without asking the disk, \
         even with O_DIRECT. Each turn is judged by its own region. Block devices have no extents; A05 checks \
         their data."
    ),
    provoke: "`truncate -s 1g FILE` or `fallocate -l 1g FILE`, then `fathom run --rw randread FILE`.",
    fix: "Name the directory and let fathom make its own test file. Or, if the contents of the file are worthless, write \
          it once: `fathom run --rw write --bs 1m --runs 1 --passes 1 --destroy FILE FILE`.",
    accept: "Accept it only to measure how fast the kernel answers reads of holes: no disk is involved.",
    applies: |case| case.does(Kind::Read) && case.on_device() && !case.on_block_devices(),
    ask: Ask::Alone(|case| ask_each_turn(case, Kind::Read, check_holes_read)),
    #[cfg(test)]
    fires: Some(|| Fixture { hole_share: 1.0, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { no_fiemap: true, ..Fixture::honest() }.record(),
};

fn check_holes_read(case: &Case) -> Known<Answer> {
    let has_runs = !case.runs.is_empty();
    let (maps, completeness) =
        split_known(if has_runs { case.extents() } else { case.extents_before_runs() });
    let known_share_at_start = never_written_share(&maps);
    let share_at_start = known_share_at_start.unwrap_or(0.0);
    let share_at_end = never_written_share(&case.extents_at_ends()).unwrap_or(share_at_start);
    let had_holes_at_start = share_at_start > UNWRITTEN_ABOVE;
    let share_unwritten = if had_holes_at_start { share_at_start } else { share_at_end };
    if !had_holes_at_start {
        completeness?;
        known_share_at_start.ok_or("the map of the file's extents is empty")?;
    }
    let numbers = evidence([("never_written_share", share_unwritten)]);
    if share_unwritten <= UNWRITTEN_ABOVE {
        let sentence = if share_unwritten > 0.0 {
            "Almost every byte that was read is stored on the disk."
        } else {
            "Every byte that was read is stored on the disk."
        };
        return holds(sentence, numbers);
    }
    let share = show_share(share_unwritten);
    let sentence = match (has_runs, had_holes_at_start) {
        (false, _) => format!(
            "{share} of the region to read was never written: the kernel returns zeros without reading the \
             disk."
        ),
        (true, true) => format!(
            "{share} of the region that was read had never been written: the kernel returned zeros without \
             reading the disk."
        ),
        (true, false) => format!(
            "{share} of the region became a hole while it was read: from then on, the kernel returned zeros \
             without reading the disk."
        ),
    };
    Detail::new(Severity::Invalidates, sentence, numbers).found()
}

/// Returns the largest share of never written bytes in any of the extent maps; `None` if all are empty.
fn never_written_share(maps: &[Extents]) -> Option<f64> {
    let share_of =
        |map: &Extents| share(map.hole_bytes as f64 + map.unwritten_bytes as f64, map.span_bytes as f64);
    maps.iter().filter(|map| map.span_bytes > 0).map(share_of).max_by(f64::total_cmp)
}

/// Harmless share of bytes in the inode or in shared blocks: the packed tail of a file of some hundred blocks.
const INLINE_ABOVE: Share = Share(0.01);

pub(super) const INLINE_OR_TAIL: Check = Check {
    id: CheckId::A06,
    name: "INLINE_OR_TAIL",
    belief: "the file has data blocks of its own",
    reads: "The extents of the file at the start of each run (FIEMAP): those marked as stored in the inode \
            or packed with other files.",
    formula: formula!(
        "Relabelled if bytes in such extents / bytes of the file > {INLINE_ABOVE}. The packed tail of a file \
         of some hundred blocks stays below. For a file in its inode, the share is 100 %."
    ),
    provoke: "`mkfs.ext4 -O inline_data IMAGE`, mount it, `head -c 100 /dev/urandom > FILE`, and `fathom run \
              --rw randread --bs 50 --cache buffered FILE`.",
    fix: "Measure a file of at least a few mebibytes, or name the directory and let fathom make its own \
          file.",
    accept: "Accept it if you want to measure tiny files.",
    applies: |case| case.on_device() && !case.on_block_devices(),
    ask: Ask::Alone(check_inline_or_tail),
    #[cfg(test)]
    fires: Some(|| with_inline(1 << 30)),
    #[cfg(test)]
    blind: || Fixture { no_fiemap: true, ..Fixture::honest() }.record(),
};

fn check_inline_or_tail(case: &Case) -> Known<Answer> {
    let (extents, completeness) = split_known(case.extents());
    let part = extents.iter().map(|e| share(e.inline_bytes as f64, e.span_bytes as f64)).fold(0.0, f64::max);
    let numbers = evidence([("inline_share", part)]);
    if part <= INLINE_ABOVE {
        completeness?;
        return holds("The file has data blocks of its own.", numbers);
    }
    detail!(
        Severity::Relabels,
        numbers,
        "{} of the file is stored in its inode or in a block shared with other files, not in data blocks of \
         its own.",
        show_share(part)
    )
    .relabelled(Rename::Medium("inside the inode".into()))
    .found()
}

/// Above this share of compressed or encrypted bytes, the bytes on the device are no longer those of the file.
pub(crate) const ENCODED_ABOVE: Share = Share(0.01);

pub(super) const ENCODED_EXTENTS: Check = Check {
    id: CheckId::A07,
    name: "ENCODED_EXTENTS",
    belief: "the bytes on the disk are the bytes of the file",
    reads: "The extents of the file at the start of each run and after its final sync (FIEMAP): those marked \
            as encoded or encrypted. Also the bytes that fathom issued and the bytes that the device moved.",
    formula: formula!(
        "Biased if bytes in such extents / bytes of the file > {ENCODED_ABOVE}. A smaller share changes no \
         rate by more than the usual variation."
    ),
    provoke: "On btrfs: `btrfs property set DIR compression zstd`, then `fathom run --rw randwrite \
              --compress 50 --cache buffered DIR`.",
    fix: "Measure in a directory without compression and encryption (`btrfs property set DIR compression \
          none`, `chattr -c`).",
    accept: "Accept it if your real data are stored like this and compress as well as the test data \
             (--compress).",
    applies: |case| case.on_device() && !case.on_block_devices(),
    ask: Ask::Alone(check_encoded_extents),
    #[cfg(test)]
    fires: Some(|| Fixture { encoded_share: 1.0, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { no_fiemap: true, ..Fixture::honest() }.record(),
};

fn check_encoded_extents(case: &Case) -> Known<Answer> {
    let (part, completeness) = encoded_share(case);
    let issued = case.issued_total().bytes;
    let mut numbers = evidence([("encoded_share", part), ("issued_bytes", issued as f64)]);
    if part <= ENCODED_ABOVE {
        completeness?;
        let sentence = if part > 0.0 {
            "Almost none of the file is stored compressed or encrypted."
        } else {
            "The file is stored neither compressed nor encrypted."
        };
        return holds(sentence, numbers);
    }
    let mut sentence =
        format!("{} of the file is stored compressed or encrypted, which costs CPU time.", show_share(part));
    if let Ok(device) = case.device_io() {
        let bytes = device.total().bytes;
        sentence +=
            &format!(" fathom issued {}, and the disk moved {}.", show_bytes(issued), show_bytes(bytes));
        numbers.insert("device_bytes".into(), bytes as f64);
    }
    Detail::new(Severity::Biases, sentence, numbers).found()
}

/// Returns the largest known share of encoded bytes at the start of any run and, if the stream writes, after any run's final sync, because
/// the file system may encode written data only then. The second value is the reason if a share is unknown.
fn encoded_share(case: &Case) -> (f64, Known<()>) {
    let (mut maps, mut completeness) = split_known(case.extents());
    if case.does(Kind::Write) {
        let (pairs, pairs_known) = split_known(case.extents_over_runs());
        maps.extend(pairs.into_iter().map(|(_, after)| after));
        completeness = completeness.and(pairs_known);
    }
    (maps.iter().map(encoded_share_of).fold(0.0, f64::max), completeness)
}

/// Returns the share of a file that is stored compressed or encrypted.
pub(super) fn encoded_share_of(extents: &Extents) -> f64 {
    share(extents.encoded_bytes as f64, extents.span_bytes as f64)
}

/// Harmless share of bytes that the file shares with a copy or a snapshot.
const SHARED_ABOVE: Share = Share(0.01);
/// Minimum factor by which the number of extents must grow in a run. An overwrite in place does not change the number.
const GROWN_FROM: f64 = 2.0;
/// Minimum number of additional extents. Fewer are harmless.
const FEWEST_NEW: u64 = 16;
pub(super) const SHARED_EXTENTS: Check = Check {
    id: CheckId::A21,
    name: "SHARED_EXTENTS",
    belief: "overwriting happens in place",
    reads: "The number of extents of the file and which of them are shared, at the start of each run and \
            after its final sync (FIEMAP).",
    formula: formula!(
        "Compares the extents of the file before and after each run. An overwrite in place neither changes \
         their number nor writes to shared ones.\n\
         - Biased if shared bytes / bytes of the file > {SHARED_ABOVE} before a run.\n\
         - Biased if the file has at least {GROWN_FROM} times as many extents after a run as before, and \
         at least {FEWEST_NEW} more.\n\
         - The number of extents is ignored if more than {UNWRITTEN_ABOVE} of the file was never written \
         or not allocated yet (filling it splits extents in place, B16), if more than {ENCODED_ABOVE} is \
         stored compressed (such extents are short, A07), or if the job trims."
    ),
    provoke: "On XFS: `cp --reflink=always FILE COPY` and `fathom run --rw randwrite --destroy FILE FILE`. \
              Or `fathom run --rw randwrite DIR` on btrfs.",
    fix: "Measure a file without copies and snapshots; on btrfs use `chattr +C` on the empty directory.",
    accept: "Accept it if you want to measure copy-on-write.",
    applies: |case| case.does(Kind::Write) && case.on_device() && !case.on_block_devices(),
    ask: Ask::Alone(check_shared_extents),
    #[cfg(test)]
    fires: Some(|| stored(1 << 29, 1)),
    #[cfg(test)]
    blind: || Fixture { no_fiemap: true, ..Fixture::honest_write() }.record(),
};

fn check_shared_extents(case: &Case) -> Known<Answer> {
    let trims = case.does(Kind::Trim) || case.issued(Kind::Trim).ops > 0;
    let (mut shared, mut grown) = (0.0_f64, None);
    let (pairs, completeness) = split_known(case.extents_over_runs());
    for (before, after) in pairs {
        let span = before.span_bytes as f64;
        shared = shared.max(share(before.shared_bytes as f64, span));
        let unwritten = share(before.hole_bytes as f64 + before.unwritten_bytes as f64, span)
            + share(before.delayed_bytes as f64, span);
        let has_grown = before.count.max(1) as f64 * GROWN_FROM <= after.count as f64
            && after.count.saturating_sub(before.count) >= FEWEST_NEW;
        // Compressed extents are at most 128 KiB long, even if they are contiguous (A07).
        let encoded = share(after.encoded_bytes as f64, span) > ENCODED_ABOVE;
        if has_grown && unwritten <= UNWRITTEN_ABOVE && !encoded && !trims {
            grown = grown.or(Some((before.count, after.count)));
        }
    }
    let mut numbers = evidence([("shared_share", shared)]);
    if let Some((before, after)) = grown {
        numbers.insert("extents_before".into(), before as f64);
        numbers.insert("extents_after".into(), after as f64);
    }
    let counts = grown.map(|(before, after)| {
        let [before, after] = [before, after].map(|count| show_count(count as f64));
        format!("its extent count grew from {before} to {after}")
    });
    let sentence = match (shared > SHARED_ABOVE, counts) {
        (false, None) => {
            completeness?;
            return holds("The file was overwritten in place.", numbers);
        }
        (true, counts) => {
            let counts = counts.map(|c| format!(" ({c})")).unwrap_or_default();
            format!(
                "{} of the file is shared with a copy or a snapshot, so writes go to new blocks{counts}.",
                show_share(shared)
            )
        }
        (false, Some(counts)) => format!("The file was not overwritten in place: {counts} during a run."),
    };
    Detail::new(Severity::Biases, sentence, numbers).found()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn encoded_extents_are_not_holes_and_writes_do_not_apply() {
    let encoded = Fixture { encoded_share: 1.0, ..Fixture::honest() };
    assert!(matches!(HOLES_READ.answer(&encoded.record()), Ok(Answer::Holds(..))));
    let write = Fixture { hole_share: 1.0, ..Fixture::honest_write() };
    assert_eq!(HOLES_READ.answer(&write.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn holes_punched_during_the_run_are_found() {
    let record = super::with_extents(&Fixture::honest(), |moment, e| {
        if moment == model::evidence::Moment::Stop {
            e.hole_bytes = e.span_bytes / 2;
        }
    });
    let Ok(Answer::Finding(f)) = HOLES_READ.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("while it was read"), "{}", f.sentence);
}

#[test]
fn a04_does_not_apply_to_block_devices() {
    let device = Fixture { role: model::plan::Role::Device, no_fiemap: true, ..Fixture::honest() };
    assert_eq!(HOLES_READ.answer(&device.record()), Ok(Answer::DoesNotApply));
}

#[cfg(test)]
fn with_inline(bytes: u64) -> model::record::Record {
    super::with_extents(&Fixture::honest(), |_, e| e.inline_bytes = bytes)
}

#[test]
fn a_packed_tail_is_accepted_and_an_inline_file_is_relabelled() {
    assert_eq!(INLINE_OR_TAIL.severity(&with_inline(1 << 23)), None, "0.8 %");
    assert_eq!(INLINE_OR_TAIL.severity(&with_inline(1 << 24)), Some(Severity::Relabels));
}

#[test]
fn block_devices_have_no_inline_files() {
    let device = Fixture { role: model::plan::Role::Device, no_fiemap: true, ..Fixture::honest() };
    assert_eq!(INLINE_OR_TAIL.answer(&device.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn more_than_one_percent_biases_and_names_the_bytes() {
    let at = |encoded_share| ENCODED_EXTENTS.answer(&Fixture { encoded_share, ..Fixture::honest() }.record());
    assert!(matches!(at(0.01), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = at(0.02) else { panic!("silent") };
    assert!(f.sentence.contains("the disk moved") && f.severity == Severity::Biases, "{}", f.sentence);
}

#[test]
fn writes_are_checked_after_the_final_sync() {
    use model::evidence::Moment;
    let late = super::with_extents(&Fixture::honest_write(), |moment, e| {
        if moment == Moment::Synced {
            e.encoded_bytes = e.span_bytes;
        }
    });
    assert_eq!(ENCODED_EXTENTS.severity(&late), Some(Severity::Biases));
    let mut unseen = Fixture::honest_write().record();
    unseen.runs[0].evidence.retain(|s| s.moment != Moment::Synced);
    assert!(ENCODED_EXTENTS.answer(&unseen).is_err());
}

/// A file with `shared` shared bytes and `after` extents after each run.
#[cfg(test)]
fn stored(shared: u64, after: u64) -> model::record::Record {
    super::with_extents(&Fixture::honest_write(), move |moment, e| {
        e.shared_bytes = shared;
        if moment == Moment::Synced {
            e.count = after;
        }
    })
}

#[test]
fn more_than_one_percent_shared_biases() {
    assert_eq!(SHARED_EXTENTS.severity(&stored(10_000_000, 1)), None);
    let Ok(Answer::Finding(f)) = SHARED_EXTENTS.answer(&stored(1 << 30, 958)) else { panic!("silent") };
    assert!(f.sentence.contains("grew from 1 to 958"), "{}", f.sentence);
    let read = super::with_extents(&Fixture::honest(), |_, e| e.shared_bytes = e.span_bytes);
    assert_eq!(SHARED_EXTENTS.answer(&read), Ok(Answer::DoesNotApply));
}

#[test]
fn a_growing_number_of_extents_biases() {
    assert_eq!(SHARED_EXTENTS.severity(&stored(0, 16)), None);
    assert_eq!(SHARED_EXTENTS.severity(&stored(0, 17)), Some(Severity::Biases));
    let allocating = super::with_extents(&Fixture::honest_write(), |moment, e| {
        e.unwritten_bytes = e.span_bytes;
        if moment == Moment::Synced {
            e.count = 900;
        }
    });
    assert_eq!(SHARED_EXTENTS.severity(&allocating), None, "unwritten extents are split in place");
    let compressed = super::with_extents(&Fixture::honest_write(), |moment, e| {
        if moment == Moment::Synced {
            (e.count, e.encoded_bytes) = (8_192, e.span_bytes);
        }
    });
    assert_eq!(SHARED_EXTENTS.severity(&compressed), None, "compressed extents are short");
}

#[test]
fn a_file_without_a_map_after_the_run_is_not_checked() {
    let mut record = Fixture::honest_write().record();
    record.runs[0].evidence.retain(|s| s.moment != Moment::Synced);
    assert!(SHARED_EXTENTS.answer(&record).is_err());
}
