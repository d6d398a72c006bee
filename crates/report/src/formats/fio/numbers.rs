//! Numbers as fio writes them.
//!
//! For: `13.2k`, `51.6MiB/s`. Not for: which number stands where.

use model::fio_layout::FioLayout;

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Digits that a number has at most, unless it says otherwise.
const MAX_DIGITS: usize = 4;

/// A plain number in steps of 1000, with so many digits at most.
pub(super) fn scaled_count(value: u64, digits: usize) -> String {
    scaled(value, digits, 1000, &DECIMAL, "")
}

/// Operations per second.
pub(super) fn scaled_rate(value: f64) -> String {
    scaled_count(value as u64, MAX_DIGITS)
}

/// Units of sizes and rates, as `kb_base` and `unit_base` ask for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Units {
    /// Steps of 1000 come first.
    pub(super) decimal_first: bool,
    /// Rates are in bits.
    pub(super) bits: bool,
}

impl Units {
    pub(super) fn from_layout(layout: &FioLayout) -> Self {
        Self { decimal_first: layout.decimal_first, bits: layout.bits }
    }

    /// Bytes in steps of 1024 and of 1000: `1984KiB (2032kB)`.
    pub(super) fn bytes(self, value: u64) -> [String; 2] {
        self.both(value, "B")
    }

    /// A rate in both: `51.6MiB/s (54.1MB/s)`.
    pub(super) fn rate(self, bytes_per_s: f64) -> [String; 2] {
        let bytes = bytes_per_s as u64;
        if self.bits { self.both(bytes.saturating_mul(8), "bit/s") } else { self.both(bytes, "B/s") }
    }

    fn both(self, value: u64, unit: &str) -> [String; 2] {
        let binary = scaled(value, MAX_DIGITS, 1024, &BINARY, unit);
        let decimal = scaled(value, MAX_DIGITS, 1000, &DECIMAL, unit);
        if self.decimal_first { [decimal, binary] } else { [binary, decimal] }
    }
}

/// The number in the smallest of the steps that leaves it no more digits than these, with decimals where there is room for them.
fn scaled(value: u64, digits: usize, base: u64, steps: &[&str; 7], unit: &str) -> String {
    let mut step = 0;
    let mut rest = value as f64;
    let mut whole = value;
    while whole.to_string().len() > digits && step + 1 < steps.len() {
        whole /= base;
        rest /= base as f64;
        step += 1;
    }
    let room = digits.saturating_sub(whole.to_string().len());
    let decimals = if step == 0 || room <= 1 { 0 } else { room - 1 };
    if decimals == 0 {
        // fio rounds a half up.
        rest = (rest + 0.5).floor();
    }
    format!("{rest:.decimals$}{}{unit}", steps[step])
}

#[test]
fn numbers_look_as_fio_prints_them() {
    let units = Units::default();
    let [binary, decimal] = units.rate(54_067_200.0);
    assert_eq!((binary.as_str(), decimal.as_str()), ("51.6MiB/s", "54.1MB/s"));
    assert_eq!(units.bytes(540_672), ["528KiB", "541kB"]);
    assert_eq!(units.bytes(1 << 20), ["1024KiB", "1049kB"]);
    assert_eq!(units.rate(2_031_616_000.0), ["1938MiB/s", "2032MB/s"]);
    let other = Units { decimal_first: true, bits: true };
    assert_eq!(other.rate(54_067_200.0), ["433Mbit/s", "413Mibit/s"]);
    assert_eq!(other.bytes(540_672), ["541kB", "528KiB"]);
    assert_eq!([9481.9, 13_200.0, 496_000.0, 0.0].map(scaled_rate), ["9481", "13.2k", "496k", "0"]);
    assert_eq!((scaled_count(1_047, 6), scaled_count(1_744_999, 6)), ("1047".into(), "1745.0k".into()));
    assert_eq!(units.bytes(u64::MAX)[0], "16.0EiB");
}
