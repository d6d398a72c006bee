//! The part of a target that an access may touch, and the grid on it.
//!
//! For: cutting the span to the target and rounding to its grid. Not for: which place comes next.

use model::units::show_bytes;

/// Bytes of a target that may be touched. Offsets are counted from `base` on and are multiples of `align`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// First byte, counted from the target's.
    pub(super) base: u64,
    /// Bytes from there.
    pub(super) bytes: u64,
    /// Distance of the grid's points; at least 1.
    pub(super) align: u64,
}

impl Span {
    /// The largest multiple of the alignment that is not above `bytes`.
    #[inline]
    pub(super) fn down(self, bytes: u64) -> u64 {
        if self.align.is_power_of_two() { bytes & !(self.align - 1) } else { bytes - bytes % self.align }
    }

    /// The smallest multiple of the alignment that is not below `bytes`; all ones where 64 bits do not hold it.
    #[inline]
    pub(super) fn up(self, bytes: u64) -> u64 {
        bytes.checked_add(self.align - 1).map_or(u64::MAX, |b| self.down(b))
    }

    /// Last byte at which an operation of a size that fits may begin, the grid aside.
    #[inline]
    pub(super) fn room(self, size: u64) -> u64 {
        self.bytes.saturating_sub(size)
    }

    /// Points of the grid at which an operation of a size that fits may begin; at least 1.
    #[inline]
    pub(super) fn starts(self, size: u64) -> u64 {
        if self.align.is_power_of_two() {
            // One when both are whole: 2^64 - 1 bytes, one byte apart, one byte long.
            (self.room(size) >> self.align.trailing_zeros()).saturating_add(1)
        } else {
            self.room(size) / self.align + 1
        }
    }
}

/// A target as a lane sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Its index among the stream's targets, which is that of its file among the worker's.
    pub(super) index: usize,
    /// Its size.
    pub(super) bytes: u64,
    /// What offsets and lengths must be multiples of; at least 1.
    pub(super) align: u64,
}

impl Target {
    /// The span on the target, cut to it, without a grid. Fails where operations of `largest` bytes do not fit.
    pub(super) fn span(&self, offset_bytes: u64, span_bytes: u64, largest: u64) -> Result<Span, String> {
        let bytes = span_bytes.min(self.bytes.saturating_sub(offset_bytes));
        if largest > bytes {
            return Err(format!(
                "no block of {} fits into the {} from offset {offset_bytes} of target {}; \
                 choose smaller blocks, a larger target or another offset",
                show_bytes(largest),
                show_bytes(bytes),
                self.index
            ));
        }
        if !offset_bytes.is_multiple_of(self.align) {
            return Err(self.misfit("an offset", offset_bytes));
        }
        Ok(Span { base: offset_bytes, bytes, align: 1 })
    }

    /// Says that a number is none that the target takes.
    pub(super) fn misfit(&self, what: &str, bytes: u64) -> String {
        format!(
            "target {} takes only multiples of {} bytes, and {what} of {bytes} bytes is none; \
             choose such a multiple, or go through the page cache",
            self.index, self.align
        )
    }
}
