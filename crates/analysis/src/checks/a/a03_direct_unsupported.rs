//! A03: direct I/O on a file that does not support it. Decides by statx, the mount options and the file
//! attributes. A02 checks whether direct I/O really happened.

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Detail, Page, Rename, evidence, formula};
use model::Known;
use model::finding::{CheckId, Severity};
#[cfg(test)]
use model::machine::DirectIo;

pub(super) const CHECK: Check = Check {
    id: CheckId::A03,
    name: "DIRECT_UNSUPPORTED",
    belief: "the target can do direct I/O",
    page: Page {
        reads: "statx with STATX_DIOALIGN, the attributes of the file (FS_IOC_GETFLAGS and statx), the mount options and \
                the type of the file system.",
        formula: formula!(
            "Fires where statx gives an alignment of zero, which means that the file cannot do direct I/O; where the file \
             system is tmpfs or ramfs, data go through the journal (data=journal, chattr +j), or btrfs compresses the file. A \
             file system that states nothing is not checked; A02 shows what happens then."
        ),
        provoke: "`fathom run --rw randread /dev/shm`, or a file on ext4 mounted with data=journal.",
        fix: "Measure on a file system that can do direct I/O, or name the block device.",
        accept: "Accept it where the file system is given and the page cache is part of what you measure.",
    },
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
            return Ok(Answer::Finding(Detail {
                severity: Severity::Rename,
                sentence: format!(
                    "This file cannot do direct I/O ({why}), so what was measured went through the page cache."
                ),
                cure: None,
                evidence: evidence([]),
                renames: Some(Rename::Medium("page cache".into())),
            }));
        }
        if place.direct.is_none() {
            not_stated = Some(format!("{} does not say whether it does direct I/O", place.kind()));
        }
    }
    match not_stated {
        Some(why) => Err(why),
        None if case.places().next().is_none() => Err("the place of the target is not in the record".into()),
        None => Ok(Answer::Holds("The file system states that the target does direct I/O.", evidence([]))),
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
