//! D02: dirty data that wait to be written when a run starts. Adds the dirty and writeback pages of the whole
//! machine at the start of each run.

use crate::checks::prelude::*;
use model::evidence::{BACKLOG_BYTES, meminfo_bytes};

pub(super) const CHECK: Check = Check {
    id: CheckId::D02,
    name: "DIRTY_BACKLOG",
    belief: "no older data were waiting to be written",
    reads: "`Dirty` and `Writeback` in `/proc/meminfo` at the start of each run, after fathom's own \
            writeback.",
    formula: formula!(
        "Their sum above {backlog} at the start of any run: the kernel writes it out during the run. An idle \
         machine always has less. (A share of the memory would mean less: what counts is the disk's time.)",
        backlog = show_bytes(BACKLOG_BYTES)
    ),
    provoke: "head -c 256M /dev/zero > /var/tmp/dirty; fathom run /mnt   # with /mnt on another file system \
              than /var/tmp",
    fix: "Wait until the data are written (`sync`), stop background writers, and measure again.",
    accept: "Accept it if these data belong to another disk. `grep -e Dirty -e Writeback /proc/meminfo` \
             shows how much is left.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with_dirt(200 << 10, 0)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(MEMINFO)));
        record
    },
};

const MEMINFO: &str = "/proc/meminfo";

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let mut worst = None;
    for ran in &case.runs {
        let text = ran.at(Moment::Start)?.text(MEMINFO)?;
        let bytes = meminfo_bytes(text, "Dirty")?.saturating_add(meminfo_bytes(text, "Writeback")?);
        worst = worst.max(Some(bytes));
    }
    let bytes = worst.ok_or_else(no_run)?;
    let numbers = evidence([("backlog_bytes", bytes as f64)]);
    if bytes <= BACKLOG_BYTES {
        return holds("Too little older data was waiting to be written to matter.", numbers);
    }
    finding!(
        Severity::Biased,
        numbers,
        "{} of older data were waiting to be written to disk.",
        show_bytes(bytes)
    )
}

/// A record with this many KiB of dirty and writeback pages at the start of every run.
#[cfg(test)]
fn with_dirt(dirty: u64, writeback: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = format!("MemTotal: 8388608 kB\nDirty: {dirty} kB\nWriteback: {writeback} kB\n");
        snapshot.files.insert(MEMINFO.into(), Ok(text));
    }
    record
}

#[test]
fn dirty_and_writeback_pages_add_up() {
    let at = |dirty, writeback| CHECK.severity(&with_dirt(dirty, writeback));
    assert_eq!((at(60 << 10, 0), at(0, 60 << 10)), (None, None));
    assert_eq!(at(40 << 10, 40 << 10), Some(Severity::Biased));
    assert_eq!(at(u64::MAX / 1024, u64::MAX / 1024), Some(Severity::Biased));
}
