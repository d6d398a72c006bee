//! A20: a disk that the kernel calls rotational but that answers too fast for one. Compares the median latency of
//! random direct reads with the time of half a turn, and with the best time per operation at high depth.

use crate::checks::prelude::*;

/// Half a turn takes 4.17 ms at 7,200 rpm and 2 ms at 15,000 rpm, without the seek.
const FLOOR_NS: u64 = 2_000_000;
/// Time per operation and disk that is too short at any depth. With 32 operations to choose from, disks of 15,000
/// rpm reach some 600 operations per second, 1.6 ms each.
const EACH_FLOOR_NS: f64 = 500_000.0;
/// Smaller spans fit the cache of the disk itself.
const SPAN_FROM_BYTES: u64 = 1 << 30;

pub(super) const CHECK: Check = Check {
    id: CheckId::A20,
    name: "HDD_TOO_FAST",
    belief: "disks that the kernel calls rotational are hard disks",
    reads: "queue/rotational of every disk below, the median of random direct reads, and whether the machine \
            is virtual.",
    formula: formula!(
        "Fires if all disks report rotational = 1 and half of the random reads took less than {floor} (half \
         a turn at 15,000 rpm, without the seek), or less than {each} times the operations in flight per \
         disk (the fastest disks reach 600 per second from a full queue, 1.6 ms each). Biased on real \
         hardware: a cache answered. A note on a virtual disk, whose driver often leaves the flag at its \
         default. Spans below {span} fit the cache of a hard disk and are not judged.",
        floor = Ns(FLOOR_NS as f64),
        each = Ns(EACH_FLOOR_NS),
        span = show_bytes(SPAN_FROM_BYTES)
    ),
    provoke: "`echo 1 > /sys/block/vda/queue/rotational` and `fathom run --rw randread DIR`.",
    fix: "If it is not a hard disk, `echo 0 > /sys/block/X/queue/rotational`. If it is one, find the cache \
          that answers: a RAID controller's, or a host's.",
    accept: "Accept it if you know the kind of disk and the cache that answers.",
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A04, CheckId::A18], evaluate),
    #[cfg(test)]
    fires: Some(|| spinning(&crate::fixture::Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].queue.remove("rotational");
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let is_random = case.stream.access.pattern() == Some(Pattern::Random);
    let applies = is_random && case.does(Kind::Read) && case.stream.cache.is_direct() && case.on_device();
    let is_explained = earlier.relabels(CheckId::A01)
        || [CheckId::A02, CheckId::A04, CheckId::A18].into_iter().any(|id| earlier.finds(id));
    if !applies || is_explained {
        return Ok(Answer::DoesNotApply);
    }
    let leaves = case.leaves()?;
    let spinning: Known<Vec<u64>> = leaves.iter().map(|l| l.queue_number("rotational")).collect();
    if spinning?.contains(&0) {
        return holds("At least one disk below is not rotational.", evidence([]));
    }
    let latency = case.latency(Kind::Read).ok_or("no read completed within a window")?;
    let median = latency.quantile_ns(0.5).ok_or("no read completed within a window")?;
    let span = case.span_bytes();
    let depth_per_disk = (case.depth_mean()? / leaves.len().max(1) as f64).max(1.0);
    let numbers = evidence([
        ("read_p50_ns", median as f64),
        ("depth_per_disk", depth_per_disk),
        ("span_bytes", span as f64),
    ]);
    if median >= FLOOR_NS && median as f64 >= EACH_FLOOR_NS * depth_per_disk {
        return holds("The reads took as long as a hard disk needs.", numbers);
    }
    let is_virtual = leaves.iter().any(|l| case.is_virtual(l));
    if span < SPAN_FROM_BYTES && !is_virtual {
        return Err(format!("a span of {} fits the cache of a hard disk", show_bytes(span)));
    }
    let (severity, cause) = if is_virtual {
        (Severity::Note, "it is a virtual disk, whose flag means nothing for the disks of the host")
    } else {
        (Severity::Biased, "a cache answered, or it is not a hard disk")
    };
    finding!(
        severity,
        numbers,
        "The kernel calls {} rotational, but half of the random reads took {} or less at depth {}: {cause}.",
        layer_names(&leaves),
        show_ns(median as f64),
        show_rate(depth_per_disk)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn spinning(fixture: &Fixture) -> model::record::Record {
    let mut record = fixture.record();
    for layer in &mut record.header.hosts[0].places[0].layers {
        layer.queue.insert("rotational".into(), "1\n".into());
    }
    record
}

#[test]
fn reads_faster_than_half_a_turn_bias_and_are_a_note_on_a_virtual_disk() {
    let at = |depth: u32, ns| {
        let depth_seen = f64::from(depth);
        let fixture = Fixture { depth, depth_seen, latency_ns: Some(ns), ..Fixture::honest() };
        CHECK.severity(&spinning(&fixture))
    };
    assert_eq!(at(1, 2_100_000), None);
    assert_eq!(at(1, 1_900_000), Some(Severity::Biased));
    assert_eq!(at(32, 17_000_000), None);
    assert_eq!(at(32, 15_000_000), Some(Severity::Biased));
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&spinning(&guest)), Some(Severity::Note));
}

#[test]
fn small_spans_and_sequential_reads_are_not_checked() {
    let mut small = spinning(&Fixture::honest());
    small.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 256 << 20;
    assert!(CHECK.answer(&small).is_err());
    assert!(matches!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::Holds(..))));
    let sequential = Fixture { pattern: Pattern::Sequential, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&spinning(&sequential)), Ok(Answer::DoesNotApply));
}
