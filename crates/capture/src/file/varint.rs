//! Numbers of as many bytes as they need: seven bits each, the lowest first.
//!
//! For: the columns of a block. Not for: anything whose length must be known.

/// Writes a number.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A difference as a number without a sign, small where it is small.
pub(super) fn folded(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The difference again.
pub(super) fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes that are read from.
#[derive(Debug)]
pub(super) struct Bytes<'b> {
    pub(super) rest: &'b [u8],
}

impl<'b> Bytes<'b> {
    /// The next number; `None` where there is none, or it is no number of ours.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for (at, &byte) in rest.iter().enumerate().take(9) {
            number |= u64::from(byte & 0x7f) << (7 * (at + 1));
            if byte < 0x80 {
                self.rest = &rest[at + 1..];
                return Some(number);
            }
        }
        None
    }

    /// So many bytes.
    pub(super) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

#[test]
fn numbers_come_back_and_what_is_cut_off_is_none() {
    for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
        let mut out = Vec::new();
        put(&mut out, number);
        assert_eq!(Bytes { rest: &out }.number(), Some(number));
        assert_eq!(Bytes { rest: &out[..out.len() - 1] }.number(), None, "{number}");
    }
    for difference in [0, -1, 1, i64::MIN, i64::MAX] {
        assert_eq!(unfolded(folded(difference)), difference);
    }
    assert_eq!(Bytes { rest: &[0xff; 20] }.number(), None);
}
