//! Strided: zones of a span that are worked in one at a time, with gaps between them if need be.
//!
//! For: where zones lie, and how much is moved in each. Not for: which block of a zone is next ([`super::order`]), nor zones that get
//! shares of the operations all the time, which are an order.

use crate::units::show_block;
use serde::{Deserialize, Serialize};

/// Zones one behind the other from the span's first byte on, around at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strided {
    /// Bytes after which the next zone is begun with, all directions together.
    pub bytes: u64,
    /// Bytes of a zone; fewer than are moved in it are gone over again.
    pub range_bytes: u64,
    /// Bytes left out behind each zone.
    #[serde(default)]
    pub skip_bytes: u64,
}

impl Strided {
    /// Bytes from the beginning of a zone to that of the next; at least 1.
    pub fn step_bytes(&self) -> u64 {
        self.range_bytes.saturating_add(self.skip_bytes).max(1)
    }

    /// How many zones lie wholly in a span of so many bytes.
    pub fn whole(&self, span_bytes: u64) -> u64 {
        span_bytes.checked_sub(self.range_bytes).map_or(0, |rest| rest / self.step_bytes() + 1)
    }

    /// Bytes of the zone that the span's end cuts off; 0 where it cuts none.
    pub fn cut_off(&self, span_bytes: u64) -> u64 {
        span_bytes.saturating_sub(self.whole(span_bytes).saturating_mul(self.step_bytes()))
    }

    /// What operations of one size, each done so many times over, move in the zone that is cut off where they go through it in order.
    pub fn last_bytes(&self, span_bytes: u64, size: u64, times: u64) -> u64 {
        let fit = self.cut_off(span_bytes) / size.max(1);
        fit.saturating_mul(size).saturating_mul(times).min(self.moved(size.saturating_mul(times)))
    }

    /// What is moved in a zone by operations of one size: the last of them is done whole.
    pub fn moved(&self, size: u64) -> u64 {
        self.bytes.checked_next_multiple_of(size.max(1)).unwrap_or(u64::MAX)
    }

    /// `in zones of 1G`, `in zones of 1G (256M each), 2G apart`.
    pub fn describe(&self) -> String {
        let each = if self.bytes == self.range_bytes {
            String::new()
        } else {
            format!(" ({} each)", show_block(self.bytes))
        };
        let apart = match self.skip_bytes {
            0 => String::new(),
            skip => format!(", {} apart", show_block(skip)),
        };
        format!("in zones of {}{each}{apart}", show_block(self.range_bytes))
    }
}

#[test]
fn zones_lie_one_behind_the_other_and_the_end_cuts_the_last() {
    let strided = Strided { bytes: 10, range_bytes: 16, skip_bytes: 4 };
    let at = |span| (strided.whole(span), strided.cut_off(span));
    assert_eq!(
        [0, 15, 16, 19, 20, 21, 35, 36, 41].map(at),
        [(0, 0), (0, 15), (1, 0), (1, 0), (1, 0), (1, 1), (1, 15), (2, 0), (2, 1)]
    );
    assert_eq!((strided.moved(4), strided.moved(5)), (12, 10));
    assert_eq!(
        (strided.last_bytes(27, 4, 1), strided.last_bytes(35, 4, 1), strided.last_bytes(27, 4, 2)),
        (4, 12, 8)
    );
    assert_eq!(strided.describe(), "in zones of 16 (10 each), 4 apart");
    assert_eq!(Strided { bytes: 4096, range_bytes: 4096, skip_bytes: 0 }.describe(), "in zones of 4K");
    let far = Strided { bytes: u64::MAX, range_bytes: u64::MAX, skip_bytes: u64::MAX };
    assert_eq!((far.whole(u64::MAX), far.cut_off(u64::MAX), far.moved(4096)), (1, 0, u64::MAX));
}
