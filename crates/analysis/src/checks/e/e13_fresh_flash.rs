//! E13: writes to a flash drive that was just emptied. Compares the bytes written and discarded since the machine
//! started with the drive's capacity. Drives of virtual machines are not checked (D18).

use crate::checks::prelude::*;
use crate::figures::kernel_text::discarded_bytes;

/// Multiple of the capacity that must be written before a drive is no longer fresh (SNIA preconditioning).
const WRITTEN_FROM: f64 = 2.0;
/// Least share of the capacity that must have been discarded for the drive to count as emptied.
const EMPTIED_FROM: Share = Share(0.5);

pub(super) const CHECK: Check = Check {
    id: CheckId::E13,
    name: "FRESH_FLASH",
    belief: "the drive was in the state of normal use",
    reads: "The `stat` file of the lowest devices at the start of the first run: sectors written and \
            discarded since the machine started. Also `queue/rotational` and the capacity.",
    formula: formula!(
        "For writes and trims on drives that are not rotational, outside virtual machines. If less than \
         {WRITTEN_FROM} times the capacity was written since the machine started (SNIA's preconditioning) \
         and at least {EMPTIED_FROM} of it was discarded, the drive was emptied, and the result is \
         relabelled. With {WRITTEN_FROM} times the capacity written, the check holds. In between, the \
         history before the machine started is unknown: the check holds if --precondition wrote the measured \
         region twice and the rate settled after that, otherwise it does not answer."
    ),
    provoke: "`blkdiscard -f /dev/DRIVE && fathom run --rw randwrite --destroy DRIVE /dev/DRIVE`, which \
              erases the drive.",
    fix: "Measure the whole drive with --precondition (`fathom run --rw randwrite --precondition --destroy \
          DRIVE /dev/DRIVE`), which erases it and writes it twice first.",
    accept: "Accept it if you compare fresh drives. Preconditioning then runs the measured job until the \
             rate settles. A file on an emptied drive leaves the rest of it empty, however often it is \
             written.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| drive(1 << 34, 1 << 33)),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest_write() }.record()
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    let changes = case.does(Kind::Write) || case.does(Kind::Trim);
    if !changes || !case.on_device() || !is_flash(case)? {
        return Ok(Answer::DoesNotApply);
    }
    let start = case.runs.first().ok_or_else(crate::case::no_run)?.at(Moment::Start)?;
    let (mut capacity, mut written, mut discarded) = (0_u64, 0_u64, 0_u64);
    for leaf in case.leaves()? {
        let text = start.text(&leaf.stat_file)?;
        capacity = capacity.saturating_add(leaf.bytes);
        written = written.saturating_add(BlockStat::parse(text)?.write.bytes);
        discarded =
            discarded.saturating_add(discarded_bytes(text)?.ok_or("this kernel does not count discards")?);
    }
    let numbers = evidence([
        ("capacity_bytes", capacity as f64),
        ("written_bytes", written as f64),
        ("discarded_bytes", discarded as f64),
    ]);
    if written as f64 >= WRITTEN_FROM * capacity as f64 {
        return holds("The drive was written at least twice since the machine started.", numbers);
    }
    let preconditioned = case.record.preconditioned.as_ref();
    if (discarded as f64) < EMPTIED_FROM.0 * capacity as f64 {
        if preconditioned.is_some_and(|d| d.settled == Some(true)) {
            return holds(
                "Preconditioning wrote the measured region twice and ran until the rate settled.",
                numbers,
            );
        }
        return Err(format!(
            "{} of the drive's {} were written since the machine started; its state before is unknown",
            show_bytes(written),
            show_bytes(capacity)
        ));
    }
    detail!(
        Severity::Rename,
        numbers,
        "The drive was emptied: {} of its {} were discarded since the machine started, and only {} written. \
         A fresh flash drive writes faster than later.{}",
        show_bytes(discarded),
        show_bytes(capacity),
        show_bytes(written),
        if preconditioned.is_some() { " Preconditioning left the rest of it empty." } else { "" }
    )
    .relabelled(Rename::Condition("freshly emptied drive".into()))
    .found()
}

/// Whether the storage below is flash, as far as the machine knows.
///
/// # Errors
/// Fails if that is not known.
pub(super) fn is_flash(case: &Case) -> Known<bool> {
    let machine = case.machine.ok_or("the record names no host")?;
    if machine.virtual_by.as_ref().map_err(Clone::clone)?.is_some() {
        return Ok(false);
    }
    for leaf in case.leaves()? {
        if leaf.queue_number("rotational")? != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A drive of 16 GiB with this many bytes discarded and written since the machine started.
#[cfg(test)]
fn drive(discarded: u64, written: u64) -> model::record::Record {
    let mut record = Fixture::honest_write().record();
    let start = &mut record.runs[0].evidence[0];
    let text = format!("0 0 0 0 9 0 {} 9 0 0 9 5 0 {} 0 0 0\n", written / 512, discarded / 512);
    start.files.insert("/sys/block/vda/stat".into(), Ok(text));
    record
}

#[test]
fn an_emptied_drive_relabels_and_a_used_drive_holds() {
    assert_eq!(CHECK.severity(&drive(1 << 34, 1 << 33)), Some(Severity::Rename));
    assert!(matches!(CHECK.answer(&drive(1 << 34, 1 << 35)), Ok(Answer::Holds(..))));
    assert!(CHECK.answer(&drive(1 << 32, 1 << 33)).is_err_and(|why| why.contains("is unknown")));
}

#[test]
fn preconditioning_holds_unless_most_of_the_drive_was_emptied() {
    use model::record::Preconditioned;
    let conditioned = |discarded, settled| {
        let mut record = drive(discarded, 1 << 33);
        record.preconditioned = Some(Preconditioned { settled, ..Preconditioned::default() });
        record
    };
    assert!(matches!(CHECK.answer(&conditioned(1 << 32, Some(true))), Ok(Answer::Holds(..))));
    assert!(CHECK.answer(&conditioned(1 << 32, Some(false))).is_err());
    let Ok(Answer::Finding(f)) = CHECK.answer(&conditioned(1 << 34, Some(true))) else { panic!("silent") };
    assert!(f.sentence.contains("left the rest of it empty"), "{}", f.sentence);
}

#[test]
fn hard_disks_and_virtual_disks_are_not_checked() {
    let mut disk = drive(1 << 34, 1 << 33);
    disk.header.hosts[0].places[0].layers[0].queue.insert("rotational".into(), "1\n".into());
    assert_eq!(CHECK.answer(&disk), Ok(Answer::DoesNotApply));
    let mut guest = drive(1 << 34, 1 << 33);
    guest.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(CHECK.answer(&guest), Ok(Answer::DoesNotApply));
}
