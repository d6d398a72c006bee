//! D16: a PCI Express or SATA link to a drive that runs slower or narrower than both ends support. Biased if the
//! rate uses a large share of the degraded link, otherwise a note.

use crate::checks::d::d18_virtual::is_virtual;
use crate::checks::prelude::*;
use crate::figures::kernel_text::link;

/// Least share of the link's bandwidth at which the link limits the rate. Protocol and queueing take the rest.
const HOLDS_BACK_FROM: Share = Share(0.5);
pub(super) const CHECK: Check = Check {
    id: CheckId::D16,
    name: "LINK_DEGRADED",
    belief: "the link to the drive runs at full speed",
    reads: "`current_link_speed`, `current_link_width`, `max_link_speed` and `max_link_width` of the drive's \
            PCI function, or `sata_spd`, `sata_spd_limit` and `hw_sata_spd_limit` of its SATA link.",
    formula: formula!(
        "Fires if the current speed or width is below the largest one. Biased if the measured rate is at \
         least {HOLDS_BACK_FROM} of what the link carries now (speed times lanes, less 2 of 10 bits up to 5 \
         GT/s and on SATA, 2 of 130 above), since then the link limits the number; otherwise a note. A \
         virtual disk has no link."
    ),
    provoke: "Put a drive of four lanes into a slot of two, or boot with `libata.force=1.5Gbps`, and run \
              `fathom run --rw read --bs 1m --depth 8 DIR`.",
    fix: "Reseat the drive, use another slot, cable or riser, and check for a limit in the firmware (`lspci \
          -vv`, LnkCap and LnkSta).",
    accept: "Accept it if the drive will stay in that slot, or is too old for the port.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| linked(NVME_X2)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture::honest().record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let leaves: Vec<&Layer> = case.places().flat_map(model::machine::Place::leaves).collect();
    if leaves.is_empty() {
        return Err("no block device is known below".into());
    }
    let link_state = |layer: &Layer| -> Known<(f64, Option<String>)> {
        let link = link(layer)?;
        Ok((link.bytes_per_s, link.below?))
    };
    let links: Known<Vec<_>> = leaves.iter().map(|leaf| Ok((*leaf, link_state(leaf)?))).collect();
    let links = match links {
        // A passed-through drive has a link. A simulated drive has none.
        Err(_) if is_virtual(case) => return Ok(Answer::DoesNotApply),
        links => links?,
    };
    let degraded =
        links.iter().find_map(|(layer, (carries, below))| Some((layer, *carries, below.as_ref()?)));
    let Some((layer, carries, degradation)) = degraded else {
        let slowest = links.iter().map(|(_, (carries, _))| *carries).min_by(f64::total_cmp);
        let numbers = evidence([("link_bytes_per_s", slowest.unwrap_or(f64::NAN))]);
        return holds("The links to the drives run at full speed and width.", numbers);
    };
    let moved: f64 = Kind::MOVING.iter().map(|k| case.in_windows(*k).bytes as f64).sum();
    // The bytes are divided evenly among several drives, since nothing shows the real division.
    let rate = moved / (case.window_ns() / 1e9) / leaves.len() as f64;
    let part = rate / carries;
    let limits_rate = part >= HOLDS_BACK_FROM;
    let effect = if limits_rate {
        format!("; this rate is {} of what the link carries", show_share(part))
    } else if moved > 0.0 {
        "; this did not limit the rate".to_owned()
    } else {
        String::new()
    };
    finding!(
        if limits_rate { Severity::Biased } else { Severity::Note },
        evidence([("link_bytes_per_s", carries), ("share_of_link", part)]),
        "The link to {} runs {degradation}{effect}.",
        layer.name
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A drive for four lanes of PCI Express 3.0 in a slot with two, as `/sys/block/nvme0n1/device/device/` shows it.
#[cfg(test)]
const NVME_X2: &[(&str, &str)] = &[
    ("current_link_speed", "8.0 GT/s PCIe\n"),
    ("current_link_width", "2\n"),
    ("max_link_speed", "8.0 GT/s PCIe\n"),
    ("max_link_width", "4\n"),
];
#[cfg(test)]
const NVME_X4: &[(&str, &str)] = &[
    ("current_link_speed", "16.0 GT/s PCIe\n"),
    ("current_link_width", "4\n"),
    ("max_link_speed", "16.0 GT/s PCIe\n"),
    ("max_link_width", "4\n"),
];

/// Reads of 64 KiB at 10,000 per second, 655 MB/s, over a link described by `files`.
#[cfg(test)]
fn linked(files: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture { block_bytes: 65_536, ..Fixture::honest() }.record();
    let device = &mut record.header.hosts[0].places[0].layers[0].device;
    device.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    record
}

#[test]
fn a_narrow_link_biases_only_if_it_limits_the_rate() {
    // Two lanes carry 1.97 GB/s, and 655 MB/s are a third of that. One lane of PCI Express 2.0 carries 500 MB/s.
    assert_eq!(CHECK.severity(&linked(NVME_X2)), Some(Severity::Note));
    let narrow =
        [NVME_X2[2], NVME_X2[3], ("current_link_speed", "5.0 GT/s PCIe"), ("current_link_width", "1")];
    let Ok(Answer::Finding(f)) = CHECK.answer(&linked(&narrow)) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biased);
    assert!(f.sentence.contains("at 5 GT/s of 8 and on 1 of 4 lanes"), "{}", f.sentence);
    assert!(matches!(CHECK.answer(&linked(NVME_X4)), Ok(Answer::Holds(..))));
}

#[test]
fn a_slow_sata_link_biases() {
    let slow = [("sata_spd", "3.0 Gbps\n"), ("sata_spd_limit", "6.0 Gbps\n")];
    assert_eq!(CHECK.severity(&linked(&slow)), Some(Severity::Biased));
    for limit in ["3.0 Gbps\n", "<unknown>\n"] {
        let full = linked(&[("sata_spd", "3.0 Gbps\n"), ("sata_spd_limit", limit)]);
        assert!(matches!(CHECK.answer(&full), Ok(Answer::Holds(..))), "{limit}");
    }
}

#[test]
fn an_unknown_link_is_not_checked_and_virtual_disks_do_not_apply() {
    let unknown = [NVME_X2[0], NVME_X2[1], NVME_X2[2], ("max_link_width", "Unknown")];
    assert!(CHECK.answer(&linked(&unknown)).is_err());
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(CHECK.answer(&guest.record()), Ok(Answer::DoesNotApply));
}
