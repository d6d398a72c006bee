//! A03: direct I/O on a file that does not support it. Decides by statx, the mount options and the file
//! attributes. A02 checks whether direct I/O really happened.

use crate::checks::prelude::*;
#[cfg(test)]
use model::machine::DirectIo;

pub(super) const CHECK: Check = Check {
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
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        let none = DirectIo { memory_align: 0, offset_align: 0 };
        crate::fixture::Fixture { direct: Some(none), ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { direct: None, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.stream.cache.is_direct() || !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let mut not_stated = None;
    for place in case.places() {
        if let Some(why) = place.without_direct() {
            return detail!(
                Severity::Rename,
                evidence([]),
                "This target does not support direct I/O ({why}): its I/O goes through the page cache."
            )
            .relabelled(Rename::Medium("page cache".into()))
            .found();
        }
        if place.direct.is_none() {
            not_stated = Some(format!("{} does not report whether it supports direct I/O", place.kind()));
        }
    }
    match not_stated {
        Some(why) => Err(why),
        None if case.places().next().is_none() => Err("the record does not contain the device chain of the \
                                                       target"
            .into()),
        None => holds("The file system reports that the target supports direct I/O.", evidence([])),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn a_data_journal_and_tmpfs_do_not_support_direct_io() {
    let journal = Fixture { options: "rw,data=journal", ..Fixture::honest() };
    assert_eq!(CHECK.severity(&journal.record()), Some(Severity::Rename));
    let tmpfs = Fixture { kind: "tmpfs", ram: Some("tmpfs"), direct: None, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&tmpfs.record()), Some(Severity::Rename));
}
