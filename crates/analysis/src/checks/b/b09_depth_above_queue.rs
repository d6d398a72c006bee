//! B09: more operations in flight than the device's queue takes.
//!
//! For: our own count in flight against the requests that the queues below have. Not for: a depth that was not reached (B05).

use crate::case::Case;
use crate::checks::b::disks;
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::machine::{Layer, LayerKind};
use model::units::{show_count, show_rate};

pub(super) const CHECK: Check = Check {
    id: CheckId::B09,
    name: "DEPTH_ABOVE_QUEUE",
    belief: "the device's queue holds all operations in flight",
    page: Page {
        reads: "`queue/nr_requests`, the number of hardware queues in `mq/` and, for SCSI, `device/queue_depth` of the disks \
                and loop devices below; our own mean of operations in flight. Only direct I/O is checked.",
        formula: formula!(
            "A device takes nr_requests for each hardware queue, and never more than queue_depth; several disks take their \
             sum. A note where more were in flight on average: the rest waited in software, in the latency but not in the \
             device."
        ),
        provoke: "As root on a loop device: `echo 4 > /sys/block/loop0/queue/nr_requests`, then \
                  `fathom run --rw randread --bs 4k --depth 32 DIR` on its file system.",
        fix: "Lower --depth, or raise /sys/block/DISK/queue/nr_requests.",
        accept: "A note needs no --accept; read the latency as that of a queue in software.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| queue(&[("nr_requests", "4\n")], &[("mq", "1")])),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].queue.remove("nr_requests");
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.stream.cache.is_direct() || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let depth = case.depth_mean()?;
    let layers = disks(case)?;
    let mut least: Option<(u64, &str)> = None;
    // A loop device passes requests to the disk below it, so each kind is a bound of its own.
    for kind in [LayerKind::Loop, LayerKind::Disk] {
        let of_kind: Vec<&&Layer> = layers.iter().filter(|l| l.kind == kind).collect();
        let Some(first) = of_kind.first() else { continue };
        let mut takes = 0_u64;
        for layer in &of_kind {
            takes = takes.saturating_add(capacity(layer)?);
        }
        if least.is_none_or(|(l, _)| takes < l) {
            least = Some((takes, &first.name));
        }
    }
    let (takes, name) = least.ok_or("no disk is known below the target")?;
    let numbers = evidence([("depth_mean", depth), ("queue_takes", takes as f64)]);
    if depth <= takes as f64 {
        return Ok(Answer::Holds("The device's queue held all operations in flight.", numbers));
    }
    Ok(Answer::Finding(Detail {
        severity: Severity::Note,
        sentence: format!(
            "{} operations were in flight on average, and the queue of {name} takes {}: the rest waited in software.",
            show_rate(depth),
            show_count(takes as f64)
        ),
        cure: Some(CHECK.page.fix.replace("DISK", name)),
        evidence: numbers,
        renames: None,
    }))
}

/// Requests that a device takes at once.
fn capacity(layer: &Layer) -> Known<u64> {
    let queues = layer.device_number("mq")?.max(1);
    let requests = layer.queue_number("nr_requests")?.saturating_mul(queues);
    // Only SCSI has the file; where it is there it must be a number.
    if layer.device.contains_key("device/queue_depth") {
        return Ok(requests.min(layer.device_number("device/queue_depth")?));
    }
    Ok(requests)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn queue(of_queue: &[(&str, &str)], of_device: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let layer = &mut record.header.hosts[0].places[0].layers[0];
    layer.queue.extend(of_queue.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    layer.device.extend(of_device.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    record
}

#[test]
fn a_scsi_disk_takes_its_own_depth_and_as_many_as_are_in_flight_is_enough() {
    // 31.5 in flight.
    let at = |depth| CHECK.severity(&queue(&[], &[("device/queue_depth", depth)]));
    assert_eq!(at("31\n"), Some(Severity::Note));
    assert_eq!(at("32\n"), None);
    assert!(CHECK.answer(&queue(&[], &[("device/queue_depth", "many")])).is_err());
}

#[test]
fn every_hardware_queue_takes_its_share_and_a_loop_device_is_a_queue_too() {
    let at = |requests, queues| CHECK.severity(&queue(&[("nr_requests", requests)], &[("mq", queues)]));
    assert_eq!(at("8", "4"), None);
    assert_eq!(at("8", "3"), Some(Severity::Note));
    let mut narrow = Fixture::honest_loop().record();
    narrow.header.hosts[0].places[0].layers[0].queue.insert("nr_requests".into(), "2".into());
    let Ok(Answer::Finding(f)) = CHECK.answer(&narrow) else { panic!("silent") };
    assert!(f.sentence.contains("queue of loop0 takes 8"), "{}", f.sentence);
}
