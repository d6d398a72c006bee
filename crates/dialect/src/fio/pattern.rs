//! Patterns: what `buffer_pattern` and `verify_pattern` say of the bytes of a block.
//!
//! For: fio's strings, numbers, files and offsets, one behind another (its lib/pattern.c). Not for: what becomes of them
//! ([`super::checked`]).

use super::around::Around;

/// Longest pattern: fio 3.33 has 512 bytes, later ones take whole blocks.
const MAX_PATTERN_BYTES: usize = 64 << 10;
/// What an offset takes.
const OFFSET_BYTES: usize = 8;

/// Bytes, and the places among them where the offset of an operation stands.
pub(super) type Pattern = (Vec<u8>, Vec<usize>);

/// Reads a pattern.
pub(super) fn pattern(text: &str, around: &dyn Around) -> Result<Pattern, String> {
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' => {
                let (inside, behind) = quoted(rest, '"')?;
                bytes.extend(inside.bytes());
                behind
            }
            '\'' => {
                let (file, behind) = quoted(rest, '\'')?;
                bytes.extend(
                    around
                        .bytes(file, MAX_PATTERN_BYTES)
                        .map_err(|e| format!("{file} cannot be read: {e}; type the name of a file"))?,
                );
                behind
            }
            '%' => {
                let behind = rest
                    .strip_prefix("%o")
                    .ok_or("only %o stands for something, the offset; type it or a number")?;
                offsets.push(bytes.len());
                bytes.extend([0; OFFSET_BYTES]);
                behind
            }
            _ => pattern_number(rest, &mut bytes)?,
        };
        if bytes.len() > MAX_PATTERN_BYTES {
            return Err(format!("it has more than {MAX_PATTERN_BYTES} bytes; type fewer"));
        }
    }
    if bytes.is_empty() {
        Err("it has no bytes; type 0xdeadbeef or \"abc\"".into())
    } else {
        Ok((bytes, offsets))
    }
}

/// What stands between two quotes, and what is behind them.
fn quoted(text: &str, quote: char) -> Result<(&str, &str), String> {
    let inside = text.strip_prefix(quote).unwrap_or(text);
    inside.split_once(quote).ok_or_else(|| format!("it does not end; type {quote} behind it"))
}

/// A number, and what is behind it: bytes in their order where it is hexadecimal, else the lowest first.
fn pattern_number<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Result<&'t str, String> {
    let not = || "it is no pattern; type 0xdeadbeef, \"abc\", 'file', %o or several of them".to_owned();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let mut count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        // The zero of the next one: 0xff0x14.
        if count > 0 && digits[..count].ends_with('0') && digits[count..].starts_with(['x', 'X']) {
            count -= 1;
        }
        let (digits, behind) = digits.split_at(count);
        // An odd one stands alone at the beginning.
        let (odd, pairs) = digits.split_at(count % 2);
        let read = |pair: &str| u8::from_str_radix(pair, 16).map_err(|_| not());
        if !odd.is_empty() {
            bytes.push(read(odd)?);
        }
        for at in (0..pairs.len()).step_by(2) {
            bytes.push(read(&pairs[at..at + 2])?);
        }
        return if count == 0 { Err(not()) } else { Ok(behind) };
    }
    let sign = usize::from(text.starts_with('-'));
    let mut end = sign + text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    // The zero of a hexadecimal one behind it: -100xab.
    if end > sign + 1 && text[..end].ends_with('0') && text[end..].starts_with(['x', 'X']) {
        end -= 1;
    }
    let (digits, behind) = text.split_at(end);
    let value: i32 = digits.parse().map_err(|_| not())?;
    let all = value.to_le_bytes();
    let used = all.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes.extend(&all[..used]);
    Ok(behind)
}

#[test]
fn patterns_are_read_as_fio_reads_them() {
    use super::around::Here;
    let of = |text: &str| pattern(text, &Here).map(|(bytes, _)| bytes);
    // The examples of fio's lib/pattern.c.
    assert_eq!(of("\"abcd\""), Ok(b"abcd".to_vec()));
    assert_eq!(of("-1024"), Ok(vec![0x00, 0xfc, 0xff, 0xff]));
    assert_eq!(of("66"), Ok(vec![0x42]));
    assert_eq!(of("0xFF0X1"), Ok(vec![0xff, 0x01]));
    assert_eq!(of("\"123\"0xFFeeCC"), Ok(vec![0x31, 0x32, 0x33, 0xff, 0xee, 0xcc]));
    let seventh = vec![0xf6, 0xff, 0xff, 0xff, 0xab, 0x31, 0, 0, 0, 0, 0, 0, 0, 0, 0x32];
    assert_eq!(pattern("-100xab\"1\"%o\"2\"", &Here), Ok((seventh, vec![6])));
    assert_eq!(of("0"), Ok(vec![0]));
    for bad in [
        "",
        "abc",
        "\"abc",
        "%x",
        "0x",
        "9999999999",
        "'/nowhere/at/all'",
        &format!("\"{}\"", "a".repeat(MAX_PATTERN_BYTES + 1)),
    ] {
        assert!(of(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}
