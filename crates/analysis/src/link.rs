//! Links: what the wire between a device and this machine can carry at most.
//!
//! For: PCI Express and SATA, out of what the kernel says about them. Not for: networks, nor whether a link is slower than it
//! could be.

use model::machine::Layer;

/// Share of a link's bits that is left for data behind packet headers, acknowledgements and credits.
const DATA_SHARE: f64 = 0.92;
/// Up to this rate per lane (GT/s) ten bits carry a byte; above it 130 carry 16 bytes.
const TEN_BITS_TO: f64 = 5.0;

/// Bytes per second that the link of a device can carry; `None` where it has no link that could be seen.
pub(crate) fn ceiling(layer: &Layer) -> Option<f64> {
    let sata = || Some(leading(file(layer, "sata_spd")?)? * 1e9 * 0.8 / 8.0 * DATA_SHARE);
    pci(layer).or_else(sata).filter(|bytes| *bytes > 0.0)
}

fn pci(layer: &Layer) -> Option<f64> {
    let speed = leading(file(layer, "current_link_speed")?)?;
    let width = leading(file(layer, "current_link_width")?)?;
    let coding = if speed <= TEN_BITS_TO { 0.8 } else { 128.0 / 130.0 };
    Some(speed * width * 1e9 * coding / 8.0 * DATA_SHARE)
}

/// The text of a file of the device or of what it hangs on.
fn file<'a>(layer: &'a Layer, name: &str) -> Option<&'a str> {
    let is_it = |path: &str| path.rsplit('/').next() == Some(name);
    layer.device.iter().find(|(path, _)| is_it(path)).map(|(_, text)| text.trim())
}

/// The number that a text begins with: `8.0 GT/s PCIe`, `6.0 Gbps`, `4`.
fn leading(text: &str) -> Option<f64> {
    let number = text.split_ascii_whitespace().next()?.parse::<f64>().ok()?;
    (number.is_finite() && (0.0..1e6).contains(&number)).then_some(number)
}

#[cfg(test)]
fn of(files: &[(&str, &str)]) -> Option<f64> {
    let device = files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    ceiling(&Layer { device, ..Layer::default() }).map(|bytes| (bytes / 1e6).round())
}

#[test]
fn links_are_read_as_the_kernel_writes_them() {
    let pci = |speed, width| of(&[("current_link_speed", speed), ("current_link_width", width)]);
    assert_eq!(pci("8.0 GT/s PCIe\n", "4\n"), Some(3_623.0));
    assert_eq!(pci("5.0 GT/s PCIe", "1"), Some(460.0));
    assert_eq!(of(&[("device/sata_spd", "6.0 Gbps\n")]), Some(552.0));
    assert_eq!(
        (pci("Unknown", "4"), pci("8.0 GT/s PCIe", "0"), pci("nan", "inf"), of(&[])),
        (None, None, None, None)
    );
}
