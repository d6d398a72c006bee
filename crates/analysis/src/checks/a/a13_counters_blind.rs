//! A13: counters that could not be read or do not count. It has no finding: its answer "not checked" keeps a
//! result without device counters from being called valid.

use crate::checks::prelude::*;

/// Checks that decide whether a stream's bytes arrived at the device. They may fail if streams share the device.
const ARRIVED: [CheckId; 3] = [CheckId::A01, CheckId::A02, CheckId::A09];

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::A13,
    name: "COUNTERS_BLIND",
    belief: "the kernel counted the device's I/O",
    reads: "The `stat` file and queue/iostats of every device directly below the file system.",
    formula: formula!(
        "Not checked if a counter is missing, unreadable or disabled (queue/iostats is 0), or if no block \
         device is known: FUSE, network file systems, zfs. Also not checked if several streams use one \
         device at the same time and A01, A02 or A09 cannot tell this stream's part. The check has no \
         finding: a number that could not be compared with a device is never called valid."
    ),
    provoke: "`echo 0 > /sys/block/X/queue/iostats` and `fathom run --rw randread DIR` on that disk.",
    fix: "Enable the counters: `echo 1 > /sys/block/X/queue/iostats`. For a network or FUSE file system, \
          measure on the machine that has the disks as well.",
    accept: "",
    ask: Ask::After(&ARRIVED, evaluate),
    #[cfg(test)]
    fires: None,
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let device = case.tops().and_then(|tops| case.counted_together(&tops));
    let device = device.map_err(|why| format!("this number could not be compared with the device: {why}"))?;
    if !case.sharers(&case.tops()?).is_empty() {
        let unknown = ARRIVED.iter().find_map(|id| earlier.answer(*id)?.as_ref().err());
        if let Some(why) = unknown {
            return Err(format!("this number could not be compared with the device: {why}"));
        }
    }
    let total = device.total();
    let numbers = evidence([("device_bytes", total.bytes as f64), ("device_ios", total.ios as f64)]);
    holds("The kernel counted the device's I/O.", numbers)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn disabled_counters_and_a_stack_without_devices_are_not_checked() {
    let off = CHECK.answer(&Fixture { iostats_off: true, ..Fixture::honest() }.record());
    assert!(off.is_err_and(|why| why.contains("iostats is 0")));
    let fuse = CHECK.answer(&Fixture { nothing_below: true, ..Fixture::honest() }.record());
    assert!(fuse.is_err_and(|why| why.contains("fuse")));
}

#[test]
fn memory_and_the_null_engine_are_not_checked() {
    let tmpfs = Fixture { ram: Some("tmpfs"), ..Fixture::honest() };
    assert_eq!(CHECK.answer(&tmpfs.record()), Ok(Answer::DoesNotApply));
    let null = Fixture { role: model::plan::Role::None, engine: "null", ..Fixture::honest() };
    assert_eq!(CHECK.answer(&null.record()), Ok(Answer::DoesNotApply));
}
