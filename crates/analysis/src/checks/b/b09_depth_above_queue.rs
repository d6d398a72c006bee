//! B09: more operations in flight than the device's queue takes. Compares fathom's mean number of operations in
//! flight with the requests that the queues below accept.

use crate::checks::b::disks;
use crate::checks::prelude::*;

pub(super) const CHECK: Check = Check {
    id: CheckId::B09,
    name: "DEPTH_ABOVE_QUEUE",
    belief: "the device's queue holds all operations in flight",
    reads: "`queue/nr_requests`, the number of hardware queues in `mq/` and, for SCSI, `device/queue_depth` \
            of the disks and loop devices below. Also fathom's own mean of operations in flight. Only direct \
            I/O is checked.",
    formula: formula!(
        "A device takes nr_requests for each hardware queue, and at most queue_depth. Several disks take \
         their sum. A note if more operations were in flight on average: the rest waited in software, which \
         counts in the latency but not in the device."
    ),
    provoke: "As root on a loop device: `echo 4 > /sys/block/loop0/queue/nr_requests`, then `fathom run --rw \
              randread --bs 4k --depth 32 DIR` on its file system.",
    fix: "Lower --depth, or raise /sys/block/DISK/queue/nr_requests.",
    accept: "A note needs no --accept. The latency includes the wait in the software queue.",
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
    let mut narrowest: Option<(u64, &str)> = None;
    // A loop device passes its requests to the disk below, so each kind is a separate limit.
    for kind in [LayerKind::Loop, LayerKind::Disk] {
        let layers_of_kind: Vec<&&Layer> = layers.iter().filter(|l| l.kind == kind).collect();
        let Some(first) = layers_of_kind.first() else { continue };
        let mut accepts = 0_u64;
        for layer in &layers_of_kind {
            accepts = accepts.saturating_add(capacity(layer)?);
        }
        if narrowest.is_none_or(|(l, _)| accepts < l) {
            narrowest = Some((accepts, &first.name));
        }
    }
    let (accepts, name) = narrowest.ok_or("no disk is known below the target")?;
    let numbers = evidence([("depth_mean", depth), ("queue_takes", accepts as f64)]);
    if depth <= accepts as f64 {
        return holds("The device's queue held all operations in flight.", numbers);
    }
    detail!(
        Severity::Note,
        numbers,
        "{} operations were in flight on average, but the queue of {name} takes {}: the rest waited in \
         software.",
        show_rate(depth),
        show_count(accepts as f64)
    )
    .with_cure(CHECK.fix.replace("DISK", name))
    .found()
}

/// Returns the number of requests that a device accepts at once.
fn capacity(layer: &Layer) -> Known<u64> {
    let queues = layer.device_number("mq")?.max(1);
    let requests = layer.queue_number("nr_requests")?.saturating_mul(queues);
    // Only SCSI devices have this file.
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
fn the_queue_depth_of_a_scsi_disk_is_a_limit() {
    // 31.5 in flight.
    let at = |depth| CHECK.severity(&queue(&[], &[("device/queue_depth", depth)]));
    assert_eq!(at("31\n"), Some(Severity::Note));
    assert_eq!(at("32\n"), None);
    assert!(CHECK.answer(&queue(&[], &[("device/queue_depth", "many")])).is_err());
}

#[test]
fn hardware_queues_add_up_and_a_loop_device_is_a_limit() {
    let at = |requests, queues| CHECK.severity(&queue(&[("nr_requests", requests)], &[("mq", queues)]));
    assert_eq!(at("8", "4"), None);
    assert_eq!(at("8", "3"), Some(Severity::Note));
    let mut narrow = Fixture::honest_loop().record();
    narrow.header.hosts[0].places[0].layers[0].queue.insert("nr_requests".into(), "2".into());
    let Ok(Answer::Finding(f)) = CHECK.answer(&narrow) else { panic!("silent") };
    assert!(f.sentence.contains("queue of loop0 takes 8"), "{}", f.sentence);
}
