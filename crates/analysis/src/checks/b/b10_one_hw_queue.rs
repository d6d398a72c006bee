//! B10: several fast workers that share the single hardware queue of a device, whose lock may limit the rate.
//! Fires if a disk has one queue and several workers reach a high rate.

use crate::checks::b::disks;
use crate::checks::prelude::*;

/// Least operations per second at which the lock of a queue matters: each submission and each completion takes about a
/// microsecond.
const FAST_FROM: f64 = 200_000.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::B10,
    name: "ONE_HW_QUEUE",
    belief: "CPUs do not wait for each other at the device's queue",
    reads: "The number of directories in `/sys/block/DISK/mq/`, the workers of the stream and its rate. Only \
            direct I/O is checked.",
    formula: formula!(
        "A note if a disk has one hardware queue, several workers use it, and they reach {fast} operations \
         per second. At that rate the queue's lock, about a microsecond for each submission and each \
         completion, is a good part of the time.",
        fast = show_count(FAST_FROM)
    ),
    provoke: "`fathom run --rw randread --depth 32 --batch 32 --workers 4 /dev/loopX` on a loop device of an \
              empty image (`truncate -s 1g image && losetup --find --show image`). Like most virtual disks, \
              it has one entry in `mq/`.",
    fix: "Give a virtual disk more queues (`num-queues=` of virtio-blk or virtio-scsi), or compare with one \
          worker.",
    accept: "A note needs no --accept.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| one_queue(250_000, 4)),
    #[cfg(test)]
    blind: || {
        let mut record = one_queue(1_000, 4);
        record.header.hosts[0].places[0].layers[0].device.remove("mq");
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.stream.cache.is_direct() || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let mut narrow = None;
    for layer in disks(case)? {
        if layer.device_number("mq")? <= 1 {
            narrow = Some(layer);
        }
    }
    let ops: f64 = Kind::MOVING.iter().map(|k| case.in_windows(*k).ops as f64).sum();
    let rate = share(ops, case.window_ns() / 1e9);
    let workers = case.stream.workers;
    let numbers = evidence([("iops", rate), ("workers", f64::from(workers))]);
    let Some(layer) = narrow else {
        return holds("Every disk has more than one hardware queue.", numbers);
    };
    if workers < 2 || rate < FAST_FROM {
        return holds("One hardware queue is enough for this rate.", numbers);
    }
    finding!(
        Severity::Note,
        numbers,
        "{} has one hardware queue, which {workers} workers shared at {} operations per second: the lock of \
         the queue may limit the rate.",
        layer.name,
        show_count(rate)
    )
}

#[cfg(test)]
fn one_queue(ops: u64, workers: u32) -> model::record::Record {
    let fixture = crate::fixture::Fixture { ops, workers, runs: 1, ..crate::fixture::Fixture::honest() };
    let mut record = fixture.record();
    record.header.hosts[0].places[0].layers[0].device.insert("mq".into(), "1".into());
    record
}

#[test]
fn only_several_fast_workers_are_a_note() {
    assert_eq!(CHECK.severity(&one_queue(201_000, 2)), Some(Severity::Note));
    assert_eq!(CHECK.severity(&one_queue(199_000, 2)), None);
    assert_eq!(CHECK.severity(&one_queue(201_000, 1)), None);
}
