//! Operations on bytes that lie in several pieces of a target.
//!
//! For: a span that is drawn from as if it were whole, and then found on the device piece by piece. Not for: where the pieces
//! are (whoever asks says so), nor for which operation is next.

use super::{Op, Source};
use std::ops::Range;

/// Pieces of a target, cut so that each holds a whole number of the largest operations: none of them lies in two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Where each begins when they are thought of as one behind the other.
    starts: Vec<u64>,
    places: Vec<Range<u64>>,
    bytes: u64,
}

impl Pieces {
    /// The pieces at these places, for operations of up to `largest` bytes.
    pub fn new(places: impl IntoIterator<Item = Range<u64>>, largest: u32) -> Self {
        let mut out = Self::default();
        let largest = u64::from(largest.max(1));
        for place in places {
            let bytes = place.end.saturating_sub(place.start) / largest * largest;
            if bytes > 0 {
                out.starts.push(out.bytes);
                out.places.push(place.start..place.start + bytes);
                out.bytes += bytes;
            }
        }
        out
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The largest of them.
    pub fn largest(&self) -> Option<Range<u64>> {
        self.places.iter().max_by_key(|p| p.end - p.start).cloned()
    }

    /// Where an operation that begins at this offset of all pieces really is.
    fn place(&self, offset: u64, length: u64) -> u64 {
        let at = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let (Some(start), Some(place)) = (self.starts.get(at), self.places.get(at)) else { return offset };
        // One that would reach into the next piece ends with its own.
        let room = (place.end - place.start).saturating_sub(length);
        place.start + (offset - start).min(room)
    }
}

/// A source whose offsets count through pieces.
pub struct Placed {
    /// Draws operations on the pieces as one span.
    pub inner: Box<dyn Source>,
    /// Where they are.
    pub pieces: Pieces,
}

impl Source for Placed {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        for op in ops.iter_mut().filter(|op| op.length > 0) {
            op.offset = self.pieces.place(op.offset, op.length.into());
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn hold(&self) -> Option<u64> {
        self.inner.hold()
    }
}

#[test]
fn every_operation_lies_in_one_piece() {
    let pieces = Pieces::new([1_000..1_250, 5_000..5_099, 9_000..9_300], 100);
    assert_eq!((pieces.bytes(), pieces.largest()), (500, Some(9_000..9_300)));
    let at = |offset| pieces.place(offset, 100);
    assert_eq!([0, 100, 200, 300, 400].map(at), [1_000, 1_100, 9_000, 9_100, 9_200]);
    // Off the grid, as where sizes are drawn: kept inside.
    assert_eq!([150, 450].map(at), [1_100, 9_200]);
    assert_eq!(Pieces::new(std::iter::once(7..8), 100).largest(), None);
}
