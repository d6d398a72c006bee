//! A11: a target that is memory.
//!
//! For: tmpfs, zram, ram disks and loop devices on them. Not for: caches in front of storage (A01, A12).

use crate::case::Case;
use crate::checks::{Answer, Check, Found, Page, Rename, evidence};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;

pub(super) const CHECK: Check = Check {
    id: CheckId::A11,
    name: "RAM_BACKED",
    belief: "the target is a storage device",
    page: Page {
        reads: "The type of the file system (tmpfs, ramfs, hugetlbfs), and the chain of devices below in /sys: zram, ram \
                disks, loop devices on files in memory.",
        formula: "Fires where any link of the chain is memory; there is no threshold. Where the chain could not be \
                followed to its end it is not checked.",
        provoke: "`fathom run --rw randread --cache buffered /dev/shm`, or `losetup -f --show /dev/shm/IMAGE` and a run on \
                that device.",
        repair: "Name a directory or device on the disk that you mean (`findmnt -T PATH` shows where a path is). Accept \
                it where memory is what you want to measure.",
    },
    ask: look,
    #[cfg(test)]
    fires: Some(|| {
        crate::forge::Forge { kind: "tmpfs", ram: Some("tmpfs"), ..crate::forge::Forge::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::forge::Forge { nothing_below: true, ..crate::forge::Forge::honest() }.record(),
};

fn look(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    if let Some(ram) = case.ram() {
        return Ok(Answer::Finding(Found {
            severity: Severity::Rename,
            sentence: format!("This target is memory ({ram}), not a disk."),
            cure: "Name a directory or device on the disk that you mean.".into(),
            evidence: evidence([]),
            renames: Some(Rename::Memory(format!("memory ({ram})"))),
        }));
    }
    case.grounded()?;
    Ok(Answer::Holds("A device that is not memory lies below the target.", evidence([])))
}
