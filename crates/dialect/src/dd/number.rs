//! Numbers as dd takes them: `4k`, `1MB`, `2x80`, and with a `B` behind a plain unit as a number of bytes.
//!
//! For: operands of dd. Not for: sizes as fathom takes them (`model::units`), where `k` and `kB` are the same.

/// What an operand says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Its factors and units multiplied.
    pub(super) value: u64,
    /// Whether a `B` says that it counts bytes, where it would count blocks.
    pub(super) is_bytes: bool,
}

/// Letters of units, from 1024 (or 1000) up; beyond the sixth nothing fits.
const LETTERS: &str = "KMGTPE";

/// Reads a number, or a product of several.
pub(super) fn parse(text: &str) -> Result<Number, String> {
    let factors =
        text.split('x').map(|part| factor(part).ok_or_else(|| format!("'{text}' is no number of dd's")));
    let mut product = Number { value: 1, is_bytes: false };
    for number in factors {
        let number = number?;
        product.is_bytes |= number.is_bytes;
        product.value =
            product.value.checked_mul(number.value).ok_or_else(|| format!("'{text}' is too large"))?;
    }
    Ok(product)
}

fn factor(text: &str) -> Option<Number> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let value: u64 = number.parse().ok()?;
    let (unit, is_bytes) = match unit {
        "" | "c" => (1, false),
        "w" => (2, false),
        "b" => (512, false),
        "B" => (1, true),
        unit => letters(unit)?,
    };
    Some(Number { value: value.checked_mul(unit)?, is_bytes })
}

/// `k`, `K`, `KiB` are 1024, `kB`, `KB` are 1000; so with the letters after it.
fn letters(unit: &str) -> Option<(u64, bool)> {
    let first = unit.chars().next()?;
    let letter = if first == 'k' { 'K' } else { first };
    let power = LETTERS.find(letter)? as u32 + 1;
    match unit.get(1..)? {
        "" => Some((1024_u64.checked_pow(power)?, false)),
        "iB" => Some((1024_u64.checked_pow(power)?, true)),
        "B" => Some((1000_u64.checked_pow(power)?, true)),
        _ => None,
    }
}

#[test]
fn units_are_those_of_dd() {
    let of = |text: &str| parse(text).ok().map(|n| (n.value, n.is_bytes));
    for (text, value, is_bytes) in [
        ("512", 512, false),
        ("1c", 1, false),
        ("3w", 6, false),
        ("2b", 1024, false),
        ("4k", 4096, false),
        ("4K", 4096, false),
        ("4kB", 4000, true),
        ("1MiB", 1 << 20, true),
        ("1M", 1 << 20, false),
        ("7E", 7 << 60, false),
        ("2x80x18b", 2 * 80 * 18 * 512, false),
        ("10B", 10, true),
    ] {
        assert_eq!(of(text), Some((value, is_bytes)), "{text}");
    }
    for text in ["", "x", "k", "-1", "1.5k", "4q", "16E", "99999999999999999999", "0x10 ", "1kk", "1é"] {
        assert_eq!(of(text), None, "{text}");
    }
    assert_eq!(of("0x10"), Some((0, false)), "as dd, which takes x for times");
}
