//! Links: what the wire between a device and this machine can carry, and whether it could carry more.
//!
//! For: PCI Express and SATA, out of what the kernel says about them. Not for: networks, nor what becomes of it.

use model::Known;
use model::machine::Layer;

/// Share of a link's bits that is data where ten of them carry a byte: SATA, and PCI Express up to 5 GT/s.
const TEN_BITS: f64 = 0.8;
/// Share of a link's bits that is data where 130 of them carry 128: PCI Express on lanes faster than 5 GT/s.
const OF_130_BITS: f64 = 128.0 / 130.0;
/// Up to this rate per lane, GT/s, ten bits carry a byte.
const TEN_BITS_UP_TO: f64 = 5.0;
/// More lanes than this are the kernel's word for "unknown".
const MOST_LANES: f64 = 64.0;

/// A link as it runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// Bytes per second that fit through, before packets' headers.
    pub(crate) bytes_per_s: f64,
    /// Whether both directions share them.
    pub(crate) shared: bool,
    /// `a link of 4 lanes at 8 GT/s`.
    pub(crate) words: String,
    /// What it is below its best, `on 2 of 4 lanes`; `None` where nothing is, a reason where its best is not known.
    pub(crate) below: Known<Option<String>>,
}

/// The link of a drive. A SATA link is the narrower one where its controller has a link as well.
///
/// # Errors
/// That the kernel shows none, or what about it is no number.
pub(crate) fn link(layer: &Layer) -> Known<Link> {
    let text = |key: &str| layer.device.get(key).map(|t| t.trim());
    if let Some(now) = text("sata_spd").and_then(leading) {
        let limits =
            ["sata_spd_limit", "hw_sata_spd_limit"].into_iter().filter_map(|key| leading(text(key)?));
        let best = limits.max_by(f64::total_cmp).filter(|best| now < *best);
        return Ok(Link {
            bytes_per_s: now * 1e9 * TEN_BITS / 8.0,
            shared: true,
            words: format!("a SATA link of {now} Gbit/s"),
            below: Ok(best.map(|best| format!("at {now} Gbit/s of {best}"))),
        });
    }
    let read = |key: &str| {
        let text = text(key).ok_or_else(|| format!("the kernel shows no link to {}", layer.name))?;
        leading(text).ok_or_else(|| format!("{}/{key} is no number: '{text}'", layer.name))
    };
    let (speed, lanes) = (read("current_link_speed")?, read("current_link_width")?);
    if lanes > MOST_LANES {
        let name = &layer.name;
        return Err(format!("the link to {name} has {lanes} lanes by the kernel's word, which none has"));
    }
    let below = || {
        let (best_speed, most_lanes) = (read("max_link_speed")?, read("max_link_width")?);
        let slow = (speed < best_speed).then(|| format!("at {speed} GT/s of {best_speed}"));
        let narrow = (lanes < most_lanes).then(|| format!("on {lanes} of {most_lanes} lanes"));
        let both: Vec<String> = slow.into_iter().chain(narrow).collect();
        Ok((!both.is_empty()).then(|| both.join(" and ")))
    };
    let payload = if speed <= TEN_BITS_UP_TO { TEN_BITS } else { OF_130_BITS };
    Ok(Link {
        bytes_per_s: speed * 1e9 * payload / 8.0 * lanes,
        shared: false,
        words: format!("a link of {lanes} lanes at {speed} GT/s"),
        below: below(),
    })
}

/// The positive number that a text begins with: `8.0 GT/s PCIe`, `6.0 Gbps`, `4`.
fn leading(text: &str) -> Option<f64> {
    let number: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

#[cfg(test)]
fn parse_width(files: &[(&str, &str)]) -> Known<f64> {
    let device = files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    link(&Layer { device, ..Layer::default() }).map(|l| (l.bytes_per_s / 1e6).round())
}

#[test]
fn links_are_read_as_the_kernel_writes_them() {
    let pci = |speed, width| parse_width(&[("current_link_speed", speed), ("current_link_width", width)]);
    assert_eq!(pci("8.0 GT/s PCIe\n", "4\n"), Ok(3_938.0));
    assert_eq!(pci("5.0 GT/s PCIe", "1"), Ok(500.0));
    assert_eq!(parse_width(&[("sata_spd", "6.0 Gbps\n"), ("current_link_speed", "8.0 GT/s")]), Ok(600.0));
    for bad in [
        pci("Unknown", "4"),
        pci("8.0 GT/s PCIe", "0"),
        pci("8.0", "255"),
        pci("nan", "inf"),
        parse_width(&[]),
    ] {
        assert!(bad.is_err());
    }
}
