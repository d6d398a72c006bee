//! Verification: data that can be told from any other when they are read, and which operations are checked.
//!
//! For: what is written and what is expected, by the position of each byte. Not for: `fathom verify`, which keeps what it wrote over a
//! crash ([`crate::verification`]), nor for carrying it out (the engine).

use random::{fill, split_mix};
use serde::{Deserialize, Serialize};

/// Bytes that have their content together, from a multiple of them on.
const UNIT_BYTES: usize = 512;
/// What a pattern has in place of the offset of its operation.
const OFFSET_BYTES: usize = 8;

/// What a stream writes to be checked, and which of its reads are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verify {
    /// What stands in the blocks.
    pub content: Content,
    /// Whether its reads are checked.
    pub checks: bool,
    /// It reads what the stream of this index wrote in the phase before, each block as often; `None` where it does its own work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<usize>,
    /// Whether the first difference ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fatal: bool,
}

/// What stands in blocks that are checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Bytes that nothing but this position has, whoever writes them and whenever.
    Stamps {
        /// Data of other seeds differ.
        seed: u64,
    },
    /// The same bytes over and over, from the beginning of each operation.
    Pattern {
        /// Them.
        bytes: Vec<u8>,
        /// Where the offset of the operation stands among them, as a number of 8 bytes, the lowest first.
        offsets: Vec<usize>,
    },
}

impl Content {
    /// Writes what an operation at this offset has.
    pub fn put(&self, offset: u64, data: &mut [u8]) {
        match self {
            Self::Stamps { seed } => {
                each_unit(offset, data.len(), |unit, inside, at| {
                    data[at].copy_from_slice(&of_unit(*seed, unit)[inside]);
                });
            }
            Self::Pattern { bytes, offsets } => {
                let once = pattern(bytes, offsets, offset);
                if !once.is_empty() {
                    data.chunks_mut(once.len()).for_each(|chunk| chunk.copy_from_slice(&once[..chunk.len()]));
                }
            }
        }
    }

    /// Where data that were read at this offset differ from it first, in bytes from their beginning.
    pub fn difference(&self, offset: u64, data: &[u8]) -> Option<usize> {
        let mut first: Option<usize> = None;
        let mut note = |at: usize, are: &[u8], should: &[u8]| {
            if first.is_none() && are != should {
                first = are.iter().zip(should).position(|(a, b)| a != b).map(|inside| at + inside);
            }
        };
        match self {
            Self::Stamps { seed } => each_unit(offset, data.len(), |unit, inside, at| {
                note(at.start, &data[at], &of_unit(*seed, unit)[inside]);
            }),
            Self::Pattern { bytes, offsets } => {
                let once = pattern(bytes, offsets, offset);
                let length = once.len().max(1);
                for (number, chunk) in data.chunks(length).enumerate() {
                    note(number * length, chunk, once.get(..chunk.len()).unwrap_or_default());
                }
            }
        }
        first
    }
}

/// Calls for each unit that an operation touches: its number, the part of it, and the part of the operation.
fn each_unit(
    offset: u64,
    length: usize,
    mut each: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let size = UNIT_BYTES as u64;
    let mut at = 0;
    while at < length {
        let position = offset + at as u64;
        let inside = (position % size) as usize;
        let bytes = (UNIT_BYTES - inside).min(length - at);
        each(position / size, inside..inside + bytes, at..at + bytes);
        at += bytes;
    }
}

fn of_unit(seed: u64, unit: u64) -> [u8; UNIT_BYTES] {
    let mut bytes = [0; UNIT_BYTES];
    fill(&mut bytes, split_mix(seed ^ split_mix(unit)));
    bytes
}

fn pattern(bytes: &[u8], offsets: &[usize], offset: u64) -> Vec<u8> {
    let mut once = bytes.to_vec();
    for at in offsets {
        if let Some(place) = once.get_mut(*at..at.saturating_add(OFFSET_BYTES)) {
            place.copy_from_slice(&offset.to_le_bytes());
        }
    }
    once
}

#[test]
fn what_was_put_is_found_again_however_it_is_cut() {
    let stamps = Content::Stamps { seed: 7 };
    let mut whole = vec![0; 4096];
    stamps.put(512, &mut whole);
    assert_eq!(stamps.difference(512, &whole), None);
    for (from, to) in [(0, 4096), (1, 2), (500, 700), (511, 513), (512, 1024)] {
        assert_eq!(stamps.difference(512 + from as u64, &whole[from..to]), None, "{from}..{to}");
        let mut part = vec![0; to - from];
        stamps.put(512 + from as u64, &mut part);
        assert_eq!(part, whole[from..to]);
    }
    whole[1000] ^= 1;
    assert_eq!(stamps.difference(512, &whole), Some(1000));
    assert_eq!(stamps.difference(1024, &whole[..512]), Some(0), "data of another place");
    assert_eq!(Content::Stamps { seed: 8 }.difference(512, &whole), Some(0), "data of another seed");
}

#[test]
fn a_pattern_begins_with_each_operation_and_may_hold_its_offset() {
    let content = Content::Pattern { bytes: b"ab--------c".to_vec(), offsets: vec![2] };
    let mut data = vec![0; 30];
    content.put(513, &mut data);
    assert_eq!(&data[..13], b"ab\x01\x02\0\0\0\0\0\0cab");
    assert_eq!(content.difference(513, &data), None);
    assert_eq!(content.difference(512, &data), Some(2));
    data[29] ^= 1;
    assert_eq!(content.difference(513, &data), Some(29));
    assert_eq!(Content::Pattern { bytes: Vec::new(), offsets: Vec::new() }.difference(0, &[]), None);
}
