//! Characters that stand for a byte of a name where that is no character to be shown.
//!
//! For: the private range, one for each byte. Not for: which bytes need one ([`crate::name`]), nor text for people
//! ([`crate::visible`]).

/// The character that stands for the byte 0; those for the others follow.
const FIRST: u32 = 0x10_ff00;

/// The character that stands for a byte.
pub(crate) fn stand_in(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or_default()
}

/// The byte that a character stands for.
pub(crate) fn byte(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST).and_then(|b| u8::try_from(b).ok())
}
