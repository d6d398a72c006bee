//! C03: flushes that were faster than any medium. Compares the mean time of a flush at the lowest disks with a
//! minimum for flash, for spinning disks, or for virtual machines.

use crate::checks::prelude::*;

/// A flash drive programs a page in some hundred us. A faster answer came from memory.
const FLASH_NS: f64 = 60e3;
/// A spinning disk waits for the platter: half a turn at 15,000 rpm is 2 ms.
const SPINNING_NS: f64 = 2e6;
/// In a virtual machine, a flush also takes a round trip to the host.
const VIRTUAL_NS: f64 = 100e3;

pub(super) const CHECK: Check = Check {
    id: CheckId::C03,
    name: "FLUSH_TOO_CHEAP",
    belief: "a flush took as long as a medium needs",
    reads: "Flushes and their ms in `/sys/block/*/stat` of the lowest disks; `queue/write_cache` and \
            `queue/rotational`; whether the machine is virtual.",
    formula: formula!(
        "Time of flushes / flushes, for each disk that reports `write back`. Below {flash} on flash \
         (programming a page takes longer), {spinning} on a hard disk (half a turn at 15,000 rpm) or {guest} \
         in a virtual machine (a round trip to the host and a medium), nothing was written to a medium. The \
         kernel shows whole ms, so each run may be off by one; if that decides, the check does not answer. A \
         note in a virtual machine, where `rotational` means nothing.",
        flash = Ns(FLASH_NS),
        spinning = Ns(SPINNING_NS),
        guest = Ns(VIRTUAL_NS)
    ),
    provoke: "fathom run --rw randwrite --bs 4k --depth 1 --fsync 1 .   # in a virtual machine whose host \
              caches writes",
    fix: "Find out whether the drive or the array protects its cache against power loss, or whether the host \
          honours flushes (cache=none or writethrough rather than cache=unsafe).",
    accept: "Accept it if you know that it does: drives with power-loss protection answer flushes \
             immediately.",
    ask: Ask::After(&[CheckId::C01, CheckId::C02], evaluate),
    #[cfg(test)]
    fires: Some(|| super::with_flushes(&super::stable_writes(), "write back", 11_000, 200)),
    #[cfg(test)]
    blind: || {
        let mut record = super::with_flushes(&super::stable_writes(), "write back", 11_000, 2_000);
        record.header.hosts[0].virtual_by = Err("cpuinfo: not found".into());
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let disks = super::volatile_disks(case)?;
    if disks.is_empty() {
        return holds("The disk reports no volatile cache, so there is nothing to flush.", evidence([]));
    }
    if !case.syncs_itself() || earlier.finds(CheckId::C02) || earlier.finds(CheckId::C01) {
        return Ok(Answer::DoesNotApply);
    }
    let is_virtual = case.machine.ok_or("the record names no host")?.virtual_by.clone()?.is_some();
    let mut slowest = None;
    for disk in disks {
        match time_flushes(case, disk, is_virtual)? {
            Flushes::Credible(ns) => slowest = Some(ns),
            Flushes::TooCheap(finding) => return finding.found(),
            Flushes::None => {}
        }
    }
    // C01 reports missing flushes.
    let Some(ns) = slowest else { return Ok(Answer::DoesNotApply) };
    holds("A flush took long enough to have reached a medium.", evidence([("flush_ns", ns)]))
}

/// The flushes of one disk.
enum Flushes {
    None,
    /// They took this many ns each.
    Credible(f64),
    /// They were faster than any medium: the finding.
    TooCheap(Detail),
}

fn time_flushes(case: &Case, disk: &Layer, is_virtual: bool) -> Known<Flushes> {
    let [count, ms] = super::flushes_of_disk(case, disk, Moment::Stop)?;
    if count == 0 {
        return Ok(Flushes::None);
    }
    let is_spinning = disk.queue_number("rotational")? == 1;
    let minimum_ns = match (is_virtual, is_spinning) {
        (true, _) => VIRTUAL_NS,
        (false, true) => SPINNING_NS,
        (false, false) => FLASH_NS,
    };
    let (flushes, ms, rounding_ms) = (count as f64, ms as f64, case.runs.len() as f64);
    let ns_per_flush = |ms: f64| ms * 1e6 / flushes;
    let numbers = evidence([("flushes", flushes), ("flush_ns", ns_per_flush(ms)), ("least_ns", minimum_ns)]);
    if ns_per_flush(ms - rounding_ms) >= minimum_ns {
        return Ok(Flushes::Credible(ns_per_flush(ms)));
    }
    if ns_per_flush(ms + rounding_ms) >= minimum_ns {
        return Err(format!(
            "{} flushes are too few to time them in whole milliseconds",
            show_count(flushes)
        ));
    }
    let (severity, cause) = if is_virtual {
        (Severity::Note, "the host may not pass flushes on to its disk")
    } else {
        (
            Severity::Biased,
            "the drive answered from its memory, which is safe only with power-loss protection",
        )
    };
    let took = show_ns(ns_per_flush(ms));
    Ok(Flushes::TooCheap(detail!(severity, numbers, "A flush of {} took {took}: {cause}.", disk.name)))
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

#[cfg(test)]
fn at(ms: u64, change: impl Fn(&mut Record)) -> Option<Severity> {
    let mut record = super::with_flushes(&super::stable_writes(), "write back", 11_000, ms);
    change(&mut record);
    CHECK.severity(&record)
}

#[test]
fn flash_spinning_and_virtual_disks_have_their_own_limits() {
    // 11,000 flushes of 60 us are 660 ms.
    assert_eq!((at(600, |_| {}), at(700, |_| {})), (Some(Severity::Biased), None));
    let is_spinning = |r: &mut Record| {
        r.header.hosts[0].places[0].layers[0].queue.insert("rotational".into(), "1\n".into());
    };
    assert_eq!((at(700, is_spinning), at(23_000, is_spinning)), (Some(Severity::Biased), None));
    let is_virtual = |r: &mut Record| r.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!((at(473, is_virtual), at(1_200, is_virtual)), (Some(Severity::Note), None));
}

#[test]
fn few_flushes_are_not_checked() {
    let few = super::with_flushes(&Fixture { ops: 10, ..super::stable_writes() }, "write back", 11, 0);
    let why = CHECK.answer(&few);
    assert!(why.as_ref().is_err_and(|w| w.contains("too few")), "{why:?}");
    let none = super::with_flushes(&super::stable_writes(), "write back", 0, 0);
    assert_eq!(CHECK.answer(&none), Ok(Answer::DoesNotApply));
}
