//! A19: a rate above the bandwidth of the link to the storage. Compares the best run with the PCI Express or SATA
//! link of the drives, or with the memory copy rate of the self test if the target is memory.

use crate::checks::prelude::*;
use crate::figures::kernel_text::link;

/// How much faster small blocks are copied than the 1 MiB blocks of the self test, because they stay in the
/// nearest cache.
const NEAREST_CACHE: f64 = 4.0;
/// Engines that pass pages on without copying them.
const WITHOUT_COPY: &[&str] = &["mmap", "splice"];

pub(super) const CHECK: Check = Check {
    id: CheckId::A19,
    name: "ABOVE_CEILING",
    belief: "the link to the storage can carry this rate",
    reads: "For every drive below: `current_link_speed` and `current_link_width` of its PCI function, or \
            `sata_spd`. For a target in memory: the copy rate of fathom's self test. Also the rate of the \
            best run.",
    formula: formula!(
        "A PCI Express lane carries its speed less 2 of 10 bits up to 5 GT/s and less 2 of 130 above, in \
         each direction. A SATA link carries its speed less 2 of 10 bits, both directions together. Several \
         drives carry the sum. Void above that: packet headers take some more percent, so no drive comes \
         near. The limit of memory is workers times the copy rate times {NEAREST_CACHE}, since blocks \
         smaller than the self test's stay in the nearest CPU cache. A virtual disk has no link."
    ),
    provoke: "No command is known on real hardware: a rate above the link comes from a cache, and other \
              checks report that first. The check's tests use recorded link files.",
    fix: "Find out what answers instead of the drive: use --cache direct and a larger --size, and check the \
          cache settings of the controller.",
    accept: "Accept it only if the kernel reports a wrong link (compare `lspci -vv`).",
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A09, CheckId::A12], evaluate),
    #[cfg(test)]
    fires: Some(|| linked(1 << 20, &[("current_link_speed", "8.0 GT/s PCIe"), ("current_link_width", "4")])),
    #[cfg(test)]
    blind: || linked(4096, &[("current_link_speed", "Unknown"), ("current_link_width", "255")]),
};

/// The bandwidth limit of a link or of memory.
struct Ceiling {
    /// Bytes per second in each direction.
    bytes_per_s: f64,
    /// Whether both directions share the bandwidth.
    shared: bool,
    /// The link or memory, for the sentence.
    name: String,
}

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let is_explained = earlier.relabels(CheckId::A01)
        || earlier.finds(CheckId::A02)
        || earlier.finds(CheckId::A09)
        || earlier.finds(CheckId::A12);
    if !case.has_storage() || is_explained {
        return Ok(Answer::DoesNotApply);
    }
    let Some(ceiling) = ceiling(case)? else { return Ok(Answer::DoesNotApply) };
    let rates = Kind::MOVING.map(|kind| best_rate(case, kind));
    let rate = if ceiling.shared { rates.iter().sum() } else { rates.into_iter().fold(0.0, f64::max) };
    let numbers = evidence([("bytes_per_s", rate), ("ceiling_bytes_per_s", ceiling.bytes_per_s)]);
    if rate <= ceiling.bytes_per_s {
        return holds("The link to the storage can carry this rate.", numbers);
    }
    finding!(
        Severity::Void,
        numbers,
        "{} MB/s is more than {} can carry ({} MB/s at most): something in between answered instead.",
        show_rate(rate / 1e6),
        ceiling.name,
        show_rate(ceiling.bytes_per_s / 1e6)
    )
}

/// Returns the bandwidth limit of the targets, or `None` if there is no known limit.
fn ceiling(case: &Case) -> Known<Option<Ceiling>> {
    if case.ram().is_some() {
        if WITHOUT_COPY.contains(&case.stream.engine.as_str()) {
            return Ok(None);
        }
        let copied = case.record.header.self_test.copy_bytes_per_s;
        if !(copied.is_finite() && copied > 0.0) {
            return Err("the self test did not measure the copy rate of memory".into());
        }
        let workers = f64::from(case.stream.workers.max(1));
        let name = "memory copies".to_owned();
        return Ok(Some(Ceiling { bytes_per_s: copied * workers * NEAREST_CACHE, shared: true, name }));
    }
    let leaves = case.leaves()?;
    let links: Known<Vec<Ceiling>> = leaves.iter().map(|leaf| link_ceiling(leaf)).collect();
    let links = match links {
        // A passed-through device has a link. A simulated device has none.
        Err(_) if leaves.iter().all(|l| case.is_virtual(l)) => return Ok(None),
        links => links?,
    };
    Ok(Some(Ceiling {
        bytes_per_s: links.iter().map(|l| l.bytes_per_s).sum(),
        shared: links.iter().all(|l| l.shared),
        name: links.into_iter().map(|l| l.name).collect::<Vec<_>>().join(" and "),
    }))
}

/// Returns the bandwidth limit of a drive's link.
fn link_ceiling(layer: &Layer) -> Known<Ceiling> {
    let link = link(layer)?;
    let name = format!("{} to {}", link.words, layer.name);
    Ok(Ceiling { bytes_per_s: link.bytes_per_s, shared: link.shared, name })
}

/// Returns the bytes per second of a kind in the window of the best run.
fn best_rate(case: &Case, kind: Kind) -> f64 {
    let rate_of_run = |ran: &CaseRun| {
        crate::case::share(ran.in_window(kind).bytes as f64, ran.stream.window_ns as f64) * 1e9
    };
    case.runs.iter().map(rate_of_run).fold(0.0, f64::max)
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record of 10,000 operations per second over a link described by `files`.
#[cfg(test)]
fn linked(block_bytes: u32, files: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture { block_bytes, ..Fixture::honest() }.record();
    let device = &mut record.header.hosts[0].places[0].layers[0].device;
    device.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    record
}

#[test]
fn a_lane_carries_its_specified_bandwidth() {
    let per_lane = |speed| {
        let record = linked(4096, &[("current_link_speed", speed), ("current_link_width", "1")]);
        let rate = link(&record.header.hosts[0].places[0].layers[0]).unwrap().bytes_per_s;
        (rate / 1e6).round() as u64
    };
    assert_eq!(
        [per_lane("2.5 GT/s PCIe"), per_lane("5.0 GT/s PCIe\n"), per_lane("8.0 GT/s PCIe")],
        [250, 500, 985]
    );
    assert_eq!(per_lane("16.0 GT/s PCIe"), 1969);
}

#[test]
fn a_rate_above_the_ceiling_is_void() {
    // 384 KiB at 10,000/s are 3,932 MB/s; four lanes of the third generation carry 3,938.
    let x4 = [("current_link_speed", "8.0 GT/s PCIe\n"), ("current_link_width", "4\n")];
    assert!(matches!(CHECK.answer(&linked(384 << 10, &x4)), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = CHECK.answer(&linked(385 << 10, &x4)) else { panic!("silent") };
    assert!(
        f.severity == Severity::Void && f.sentence.contains("4 lanes at 8 GT/s to vda"),
        "{}",
        f.sentence
    );
}

#[test]
fn the_sata_link_limits_more_than_the_controller() {
    // A drive reads 560 MB/s through 600; the controller's lane would carry 985.
    let sata =
        [("sata_spd", "6.0 Gbps\n"), ("current_link_speed", "8.0 GT/s PCIe"), ("current_link_width", "1")];
    assert_eq!(CHECK.severity(&linked(56_000, &sata)), None);
    assert_eq!(CHECK.severity(&linked(61_440, &sata)), Some(Severity::Void));
}

#[test]
fn memory_is_compared_with_copying_and_virtual_disks_are_not_checked() {
    let tmpfs = |block_bytes| Fixture { block_bytes, ram: Some("tmpfs"), ..Fixture::honest() };
    // The self test of the fixture copies 10 GB/s.
    assert!(matches!(CHECK.answer(&tmpfs(3 << 20).record()), Ok(Answer::Holds(..))));
    assert_eq!(CHECK.severity(&tmpfs(4 << 20).record()), Some(Severity::Void));
    let mapped = Fixture { engine: "mmap", ..tmpfs(4 << 20) };
    assert_eq!(CHECK.answer(&mapped.record()), Ok(Answer::DoesNotApply));
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(CHECK.answer(&guest.record()), Ok(Answer::DoesNotApply));
}
