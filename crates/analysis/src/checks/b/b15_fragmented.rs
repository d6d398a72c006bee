//! B15: a file that lies in many pieces, read or written in order.
//!
//! For: the number of extents of the file. Not for: where they lie; a disk hides that behind its own map.

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use model::Known;
use model::check_id::CheckId;
use model::evidence::Extents;
use model::finding::Severity;
use model::job::Pattern;
use model::units::{GIB, MIB, show_bytes, show_count};

/// Mean piece below which a spinning disk seeks instead of reading on: 16 MiB take 100 ms, a seek 10 ms.
const SPINNING_BELOW: u64 = 16 * MIB;
/// Mean piece below which even without seeks a request of the usual mebibyte is cut.
const FLASH_BELOW: u64 = MIB;
/// Pieces that any file system makes of any file.
const PIECES: u64 = 8;

pub(super) const CHECK: Check = Check {
    id: CheckId::B15,
    name: "FRAGMENTED",
    belief: "the file lies in one piece, so that sequential is sequential",
    page: Page {
        reads: "The map of the file's extents before each run (FIEMAP), `queue/rotational` of the disks, and whether the machine \
                is virtual.",
        formula: formula!(
            "Bytes of the file / extents. On a spinning disk biased below {spinning} ({seeks} extents per GiB): a seek of 10 \
             ms is then a tenth of the time. On flash, and on a virtual disk, whose `rotational` says nothing, a note below \
             {flash} ({cuts} per GiB), where requests are cut. Up to {PIECES} extents never count. Sequential orders alone.",
            spinning = show_bytes(SPINNING_BELOW),
            seeks = GIB / SPINNING_BELOW,
            flash = show_bytes(FLASH_BELOW),
            cuts = show_count((GIB / FLASH_BELOW) as f64)
        ),
        provoke: "On xfs or btrfs: `cp --reflink=always FILE COPY`, `fathom run --rw randwrite --bs 4k --time 1s --destroy COPY \
                  COPY`, then `fathom run --rw read COPY`; `filefrag COPY` shows the pieces.",
        fix: "Name the directory and let fathom make its own file, where there is free space in one piece; `e4defrag` or \
              `xfs_fsr` defragment a file.",
        accept: "Accept it where the real file is in such pieces.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| pieces(2_000, "0")),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest_sequential() }.record()
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    let sequential = case.stream.access.pattern() == Some(Pattern::Sequential);
    if !sequential || !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let extents = case.extents()?;
    // Compressed files are stored in pieces of 128 KiB by design, wherever those lie.
    if extents.iter().any(|e| e.encoded_bytes > 0) {
        return Err(
            "the file is stored compressed or encrypted, so the number of its pieces says nothing".into()
        );
    }
    let worst = extents.iter().filter(|e| e.count > 0).min_by_key(|e| mean_piece(e));
    let Some(worst) = worst else { return Err("the map of the file's extents is empty".into()) };
    let spins = spins(case)?;
    let limit = if spins { SPINNING_BELOW } else { FLASH_BELOW };
    let numbers =
        evidence([("extents", worst.count as f64), ("extent_bytes_mean", mean_piece(worst) as f64)]);
    if worst.count <= PIECES || mean_piece(worst) >= limit {
        return Ok(Answer::Holds("The file lies in few pieces, so sequential is sequential.", numbers));
    }
    Ok(Answer::Finding(Detail::new(
        if spins { Severity::Biased } else { Severity::Note },
        format!(
            "The file lies in {} pieces of {} on average, so sequential {} on the disk.",
            show_count(worst.count as f64),
            show_bytes(mean_piece(worst)),
            if spins { "means seeks" } else { "operations are cut" }
        ),
        numbers,
    )))
}

/// Mean bytes of an extent.
fn mean_piece(extents: &Extents) -> u64 {
    let stored = extents.span_bytes.saturating_sub(extents.hole_bytes);
    stored.checked_div(extents.count).unwrap_or(u64::MAX)
}

/// Whether a disk below has to move its heads, as far as that can be believed.
fn spins(case: &Case) -> Known<bool> {
    let mut says = false;
    for layer in case.leaves()? {
        says |= layer.queue_number("rotational")? == 1;
    }
    if !says {
        return Ok(false);
    }
    // Virtual disks say 1 whatever is behind them.
    let machine = case.machine.ok_or("the record names no host")?;
    Ok(machine.virtual_by.as_ref().map_err(Clone::clone)?.is_none())
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A gibibyte in so many pieces on a disk that says this of its rotation.
#[cfg(test)]
fn pieces(count: u64, rotational: &str) -> model::record::Record {
    let mut record = Fixture::honest_sequential().record();
    record.header.hosts[0].places[0].layers[0].queue.insert("rotational".into(), rotational.into());
    for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
        if let Some(Ok(extents)) = &mut state.extents {
            extents.count = count;
        }
    }
    record
}

#[test]
fn flash_takes_a_thousand_pieces_and_a_spinning_disk_sixty() {
    let at = |count, rotational| CHECK.severity(&pieces(count, rotational));
    assert_eq!(at(1_100, "0"), Some(Severity::Note));
    assert_eq!(at(1_000, "0"), None);
    assert_eq!(at(70, "1"), Some(Severity::Biased));
    assert_eq!(at(60, "1"), None);
}

#[test]
fn a_virtual_disk_that_says_it_spins_is_not_believed_and_random_is_not_asked() {
    let mut record = pieces(70, "1");
    record.header.hosts[0].virtual_by = Ok(Some("kvm".into()));
    assert_eq!(CHECK.severity(&record), None);
    record.header.hosts[0].virtual_by = Err("not known".into());
    assert!(CHECK.answer(&record).is_err());
    assert_eq!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}
