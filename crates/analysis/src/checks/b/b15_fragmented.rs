//! B15: a file in many extents that is read or written sequentially. Compares the mean extent with a limit for
//! spinning disks and one for flash.

use crate::checks::prelude::*;
use model::units::{GIB, MIB};

/// Mean extent below which seeks matter on a spinning disk: reading 16 MiB takes 100 ms, a seek 10 ms.
const SPINNING_BELOW: u64 = 16 * MIB;
/// Mean extent below which requests are cut even without seeks: a usual request is 1 MiB.
const FLASH_BELOW: u64 = MIB;
/// Extents that any file system makes of any file.
const FEW_EXTENTS: u64 = 8;

pub(super) const CHECK: Check = Check {
    id: CheckId::B15,
    name: "FRAGMENTED",
    belief: "the file is contiguous, so sequential access is sequential on the disk",
    reads: "The map of the file's extents before each run (FIEMAP), `queue/rotational` of the disks, and \
            whether the machine is virtual.",
    formula: formula!(
        "Bytes of the file / extents. On a hard disk biased below {spinning} ({seeks} extents per GiB): a \
         seek of 10 ms is then a tenth of the time. On flash, and on virtual disks, whose `rotational` means \
         nothing, a note below {flash} ({cuts} per GiB), where requests are cut. Up to {FEW_EXTENTS} extents \
         are allowed. Only sequential orders.",
        spinning = show_bytes(SPINNING_BELOW),
        seeks = GIB / SPINNING_BELOW,
        flash = show_bytes(FLASH_BELOW),
        cuts = show_count((GIB / FLASH_BELOW) as f64)
    ),
    provoke: "On xfs or btrfs: `cp --reflink=always FILE COPY`, `fathom run --rw randwrite --bs 4k --time 1s \
              --destroy COPY COPY`, then `fathom run --rw read COPY`. `filefrag COPY` shows the extents.",
    fix: "Name a directory with contiguous free space and let fathom make its own file. `e4defrag` or \
          `xfs_fsr` defragment a file.",
    accept: "Accept it if your real file is as fragmented.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| pieces(2_000, "0")),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest_sequential() }.record()
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    let is_sequential = case.stream.access.pattern() == Some(Pattern::Sequential);
    if !is_sequential || !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let extents = case.extents()?;
    // Compressed files are stored in extents of 128 KiB, wherever these are.
    if extents.iter().any(|e| e.encoded_bytes > 0) {
        return not_checked(
            "the file is stored compressed or encrypted, so the number of its extents means nothing",
        );
    }
    let worst = extents.iter().filter(|e| e.count > 0).min_by_key(|e| mean_extent_bytes(e));
    let Some(worst) = worst else { return Err("the map of the file's extents is empty".into()) };
    let is_spinning = is_spinning(case)?;
    let limit = if is_spinning { SPINNING_BELOW } else { FLASH_BELOW };
    let numbers =
        evidence([("extents", worst.count as f64), ("extent_bytes_mean", mean_extent_bytes(worst) as f64)]);
    if worst.count <= FEW_EXTENTS || mean_extent_bytes(worst) >= limit {
        return holds("The file has few extents, so sequential access is sequential on the disk.", numbers);
    }
    finding!(
        if is_spinning { Severity::Biased } else { Severity::Note },
        numbers,
        "The file has {} extents of {} on average, so sequential access {} on the disk.",
        show_count(worst.count as f64),
        show_bytes(mean_extent_bytes(worst)),
        if is_spinning { "needs seeks" } else { "is cut into smaller requests" }
    )
}

/// Returns the mean bytes per extent.
fn mean_extent_bytes(extents: &Extents) -> u64 {
    let stored = extents.span_bytes.saturating_sub(extents.hole_bytes);
    stored.checked_div(extents.count).unwrap_or(u64::MAX)
}

/// Whether a disk below the target really spins.
fn is_spinning(case: &Case) -> Known<bool> {
    let mut is_rotational = false;
    for layer in case.leaves()? {
        is_rotational |= layer.queue_number("rotational")? == 1;
    }
    if !is_rotational {
        return Ok(false);
    }
    // Virtual disks report 1 whatever their host uses.
    let machine = case.machine.ok_or("the record names no host")?;
    Ok(machine.virtual_by.as_ref().map_err(Clone::clone)?.is_none())
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A file of 1 GiB in `count` extents on a disk with this `rotational` flag.
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
fn the_limit_is_stricter_on_a_spinning_disk() {
    let at = |count, rotational| CHECK.severity(&pieces(count, rotational));
    assert_eq!(at(1_100, "0"), Some(Severity::Note));
    assert_eq!(at(1_000, "0"), None);
    assert_eq!(at(70, "1"), Some(Severity::Biased));
    assert_eq!(at(60, "1"), None);
}

#[test]
fn a_virtual_disk_does_not_spin_and_random_access_is_not_checked() {
    let mut record = pieces(70, "1");
    record.header.hosts[0].virtual_by = Ok(Some("kvm".into()));
    assert_eq!(CHECK.severity(&record), None);
    record.header.hosts[0].virtual_by = Err("not known".into());
    assert!(CHECK.answer(&record).is_err());
    assert_eq!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}
