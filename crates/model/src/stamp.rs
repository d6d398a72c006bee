//! Stamps: each written block contains the sequence number and the place of its write, so that a later read shows what
//! happened to the write.
//!
//! Storage writes whole sectors of 512 bytes, so every sector has its own stamp: magic, id of the verification, byte
//! offset of the sector, sequence of the write, CRC-32 of the sector, then data derived from these numbers. So every
//! bit of a block is known in advance, and an intact sector at the wrong place still identifies its write.

use crate::payload::{fill, split_mix};
use serde::{Deserialize, Serialize};

/// Bytes per sector, the smallest unit that storage is trusted to write as a whole.
pub const SECTOR: usize = 512;
const MAGIC: u64 = u64::from_le_bytes(*b"fathomV1");
/// Position of the checksum. It is computed with zeros at this position.
const CRC: std::ops::Range<usize> = 32..36;
/// A sector whose head (magic, id and offset) is damaged is reported as [`DamageKind::Flipped`] with at most this many wrong bits, an
/// eighth of the sector. In unrelated data about half of the bits are wrong. A sector with an intact head is reported as flipped with any
/// number of wrong bits.
const MOST_FLIPPED_BITS: u32 = SECTOR as u32;

/// The fields of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Unique id of the verification.
    pub id: u64,
    /// Byte offset of the sector on its target. [`write()`] takes the offset of the block and sets
    /// that of each sector.
    pub offset: u64,
    /// Sequence number of the write, from 1.
    pub sequence: u64,
}

/// The allowed content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Id of the verification.
    pub id: u64,
    /// Byte offset of the block on its target.
    pub offset: u64,
    /// Sequence number of the last write that the block must contain; 0 if the block need not contain a write.
    pub synced: u64,
    /// Sequence number of a later write that was begun. The block may contain this write completely, partly or not at
    /// all. `None` without such a write.
    pub begun: Option<u64>,
}

/// The content of a correct block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sound {
    /// All sectors are from this write; 0 for the content before the first write.
    Whole(u64),
    /// Some sectors are from the write that was begun, the others are older.
    PartOfBegun {
        /// Number of sectors from the write that was begun.
        sectors: u32,
    },
}

/// The damage of a block, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Index of the first damaged sector in the block.
    pub sector: u32,
    /// Number of damaged sectors; all sectors if the whole block is from the wrong write.
    pub sectors: u32,
    /// Number of sectors of the block.
    #[serde(rename = "of")]
    pub block_sectors: u32,
    /// The damage of the first damaged sector.
    #[serde(flatten)]
    pub kind: DamageKind,
}

/// The damage of a sector, or of the whole block (stale, torn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DamageKind {
    /// Bits of the expected sector differ.
    Flipped {
        /// First byte that differs, counted from the beginning of the block.
        byte: u32,
        /// Number of bits that differ in this sector.
        bits: u32,
    },
    /// An intact sector of this verification at the wrong place.
    Misplaced {
        /// Offset in bytes where the sector belongs.
        belongs: u64,
        /// Sequence number of the write that the sector is from.
        sequence: u64,
    },
    /// The whole block is from an older write, so the later write was lost.
    Stale {
        /// Sequence number of the write that was found.
        sequence: u64,
        /// Sequence number of the write that the block must contain.
        expected: u64,
    },
    /// Sectors of the block are from different writes.
    Torn {
        /// Number of sectors from the newest write.
        newest_sectors: u32,
        /// Index of the first sector that the newest write wrote.
        newest_first: u32,
        /// Sequence number of the newest write.
        newest: u64,
        /// Sequence number of the write of the first sector that is not from the newest write; 0 for content from before
        /// the verification.
        other: u64,
    },
    /// An intact sector from a write that was never begun at this place.
    Future {
        /// Sequence number in the stamp of the sector.
        sequence: u64,
    },
    /// An intact sector of another verification.
    Foreign {
        /// The verification's id in the stamp.
        id: u64,
    },
    /// All bytes are zero.
    Zeros,
    /// Bytes that no verification writes.
    Strange,
}

/// Writes the stamp into each sector of a block. A remainder that is shorter than a [`SECTOR`] is
/// left unchanged.
pub fn write(buffer: &mut [u8], stamp: &Stamp) {
    for (at, sector) in (stamp.offset..).step_by(SECTOR).zip(buffer.as_chunks_mut::<SECTOR>().0) {
        write_sector(sector, &Stamp { offset: at, ..*stamp });
    }
}

fn write_sector(sector: &mut [u8; SECTOR], stamp: &Stamp) {
    // Fill the whole sector: this is faster than leaving out the head.
    fill(sector, split_mix(stamp.id ^ split_mix(stamp.offset ^ split_mix(stamp.sequence))));
    let words = [MAGIC, stamp.id, stamp.offset, stamp.sequence];
    for (place, word) in sector.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    let crc = checksum(sector).to_le_bytes();
    sector[CRC].copy_from_slice(&crc);
}

fn checksum(sector: &[u8; SECTOR]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&sector[..CRC.start]);
    crc.update(&[0; CRC.end - CRC.start]);
    crc.update(&sector[CRC.end..]);
    crc.finalize()
}

/// Examines every bit of the whole sectors of a block that was read.
///
/// # Errors
/// The sectors without an intact stamp of this place, if there are any; otherwise the sectors from the wrong write.
pub fn examine(block: &[u8], expected: &Expected) -> Result<Sound, Damage> {
    let (sectors, _) = block.as_chunks::<SECTOR>();
    let block_sectors = sectors.len() as u32;
    let mut broken: Option<Damage> = None;
    let mut tally = Tally::default();
    for (sector, bytes) in (0..).zip(sectors) {
        let within = u64::from(sector) * SECTOR as u64;
        let here = Expected { offset: expected.offset.wrapping_add(within), ..*expected };
        match check_sector(bytes, &here, within as u32) {
            Ok(sequence) => tally.add(sector, sequence, expected),
            Err(kind) => {
                broken.get_or_insert(Damage { sector, sectors: 0, block_sectors, kind }).sectors += 1;
            }
        }
    }
    match broken {
        Some(damage) => Err(damage),
        None => tally.classify(expected, block_sectors),
    }
}

/// Returns the sequence number of the write that a sector is from. If `expected.synced` is 0, returns 0 for a sector
/// without a stamp of this verification. `within` is the sector's offset in the block.
fn check_sector(sector: &[u8; SECTOR], expected: &Expected, within: u32) -> Result<u64, DamageKind> {
    let word = |at: usize| u64::from_le_bytes(sector.as_chunks::<8>().0[at]);
    let [magic, id, offset, sequence] = [word(0), word(1), word(2), word(3)];
    let intact = magic == MAGIC && sector[CRC] == checksum(sector).to_le_bytes();
    if intact && id != expected.id {
        return if expected.synced == 0 { Ok(0) } else { Err(DamageKind::Foreign { id }) };
    }
    if intact && offset != expected.offset {
        return Err(DamageKind::Misplaced { belongs: offset, sequence });
    }
    let is_of_this_place = magic == MAGIC && id == expected.id && offset == expected.offset;
    // A checksum of 32 bits can match by chance, so compare all data.
    if is_of_this_place && count_differences(sector, expected, sequence).0 == 0 {
        return Ok(sequence);
    }
    let likely = [Some(expected.synced), expected.begun, is_of_this_place.then_some(sequence)];
    let nearest =
        likely.into_iter().flatten().filter(|s| *s > 0).map(|s| count_differences(sector, expected, s)).min();
    if let Some((bits, byte)) = nearest
        && (is_of_this_place || bits <= MOST_FLIPPED_BITS)
    {
        return Err(DamageKind::Flipped { byte: within + byte, bits });
    }
    if expected.synced == 0 {
        return Ok(0);
    }
    Err(if sector.iter().all(|b| *b == 0) { DamageKind::Zeros } else { DamageKind::Strange })
}

/// Compares a sector with the sector that the write `sequence` makes. Returns the number of bits that differ, and the
/// index of the first byte that differs; zeros if the sectors are equal.
fn count_differences(sector: &[u8; SECTOR], expected: &Expected, sequence: u64) -> (u32, u32) {
    let mut right = [0; SECTOR];
    write_sector(&mut right, &Stamp { id: expected.id, offset: expected.offset, sequence });
    if *sector == right {
        return (0, 0);
    }
    let bits = sector.iter().zip(&right).map(|(a, b)| (a ^ b).count_ones()).sum();
    let first = sector.iter().zip(&right).position(|(a, b)| a != b).unwrap_or(0);
    (bits, first as u32)
}

/// The writes found in the intact sectors of a block.
#[derive(Default)]
struct Tally {
    sectors: u32,
    newest: u64,
    newest_sectors: u32,
    newest_first: u32,
    /// Sequence number of the write that the first sector is from.
    first: u64,
    /// Index of the first sector that is not from the write `first`, and the sequence number of the write that it is
    /// from; `None` if all sectors are from `first`.
    first_other: Option<(u32, u64)>,
    /// Whether a sector is from a write that the block must not contain.
    has_forbidden: bool,
}

impl Tally {
    fn add(&mut self, sector: u32, sequence: u64, expected: &Expected) {
        if self.sectors == 0 {
            self.first = sequence;
        }
        if self.sectors == 0 || sequence > self.newest {
            (self.newest, self.newest_sectors, self.newest_first) = (sequence, 0, sector);
        }
        if sequence != self.first {
            self.first_other.get_or_insert((sector, sequence));
        }
        self.sectors += 1;
        self.newest_sectors += u32::from(sequence == self.newest);
        self.has_forbidden |= sequence != expected.synced && Some(sequence) != expected.begun;
    }

    fn classify(&self, expected: &Expected, block_sectors: u32) -> Result<Sound, Damage> {
        let Self { newest, newest_sectors, newest_first, .. } = *self;
        let Some((at, sequence)) = self.first_other else {
            return self.classify_uniform(expected, block_sectors);
        };
        // Only the write that was begun may be partly in the block, and only over the last write that the block must
        // contain.
        if !self.has_forbidden {
            return Ok(Sound::PartOfBegun { sectors: newest_sectors });
        }
        // The first sector and this one are from different writes, so one of the two writes is older than the newest.
        let (sector, other) = if self.first == newest { (at, sequence) } else { (0, self.first) };
        let kind = DamageKind::Torn { newest_sectors, newest_first, newest, other };
        Err(Damage { sector, sectors: block_sectors - newest_sectors, block_sectors, kind })
    }

    fn classify_uniform(&self, expected: &Expected, block_sectors: u32) -> Result<Sound, Damage> {
        let sequence = self.newest;
        if !self.has_forbidden {
            return Ok(Sound::Whole(sequence));
        }
        let kind = if sequence < expected.synced {
            DamageKind::Stale { sequence, expected: expected.synced }
        } else {
            DamageKind::Future { sequence }
        };
        Err(Damage { sector: 0, sectors: block_sectors, block_sectors, kind })
    }
}

impl DamageKind {
    /// Returns one word: `flipped`, `misplaced`, `stale`, `torn`, `future`, `foreign`, `zeros`,
    /// `strange`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Flipped { .. } => "flipped",
            Self::Misplaced { .. } => "misplaced",
            Self::Stale { .. } => "stale",
            Self::Torn { .. } => "torn",
            Self::Future { .. } => "future",
            Self::Foreign { .. } => "foreign",
            Self::Zeros => "zeros",
            Self::Strange => "strange",
        }
    }
}

impl std::fmt::Display for Damage {
    /// Writes a sentence without the offset of the block, which the caller prints before it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.kind.word())?;
        match self.kind {
            DamageKind::Flipped { byte, bits: 1 } => write!(f, "one bit differs, in byte {byte}")?,
            DamageKind::Flipped { byte, bits } => write!(f, "{bits} bits differ, the first in byte {byte}")?,
            DamageKind::Misplaced { belongs, sequence } => {
                write!(f, "this is the data that write {sequence} put at offset {belongs}")?;
            }
            DamageKind::Stale { sequence, expected } => {
                let later = match expected.saturating_sub(sequence) {
                    1 => "the next one".into(),
                    lag => format!("{lag} writes later"),
                };
                write!(f, "this is the data of write {sequence}; write {expected}, {later}, was lost")?;
            }
            DamageKind::Torn { newest_sectors, newest_first, newest, other } => {
                let old =
                    if other == 0 { "before the verification".into() } else { format!("write {other}") };
                return write!(
                    f,
                    "{newest_sectors} of {} sectors, starting with sector {newest_first}, from write {newest}; \
                     the first of the others from {old}",
                    self.block_sectors
                );
            }
            DamageKind::Future { sequence } => {
                write!(f, "this is the data of write {sequence}, which was never begun")?;
            }
            DamageKind::Foreign { id } => {
                write!(f, "another verification, with id {id:016x}, wrote this data")?;
            }
            DamageKind::Zeros => f.write_str("only zeros")?,
            DamageKind::Strange => f.write_str("this is not recognizable as data of a verification")?,
        }
        if self.sectors == self.block_sectors {
            return Ok(());
        }
        write!(
            f,
            " (damaged sectors: {} of {}, starting with sector {})",
            self.sectors, self.block_sectors, self.sector
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 8 * SECTOR;
    const ID: u64 = 77;
    const AT: u64 = 40 * SECTOR as u64;
    const EXPECTED: Expected = Expected { id: ID, offset: AT, synced: 20, begun: None };

    fn block(id: u64, offset: u64, sequence: u64) -> Vec<u8> {
        let mut block = vec![0xee; BLOCK];
        write(&mut block, &Stamp { id, offset, sequence });
        block
    }

    /// The first half of one block and the second half of another.
    fn halves(a: &[u8], b: &[u8]) -> Vec<u8> {
        [&a[..BLOCK / 2], &b[BLOCK / 2..]].concat()
    }

    #[track_caller]
    fn damage(block: &[u8], expected: &Expected) -> Damage {
        let damage = examine(block, expected).expect_err("it is damaged");
        println!("{damage}");
        damage
    }

    #[test]
    fn a_written_block_is_intact() {
        assert_eq!(examine(&block(ID, AT, 20), &EXPECTED), Ok(Sound::Whole(20)));
    }

    #[test]
    fn every_flipped_bit_is_located() {
        let mut block = block(ID, AT, 20)[..2 * SECTOR].to_vec();
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            let found = examine(&block, &EXPECTED).map_err(|d| (d.kind, d.sector, d.sectors));
            let byte = (bit / 8) as u32;
            assert_eq!(
                found,
                Err((DamageKind::Flipped { byte, bits: 1 }, byte / SECTOR as u32, 1)),
                "bit {bit}"
            );
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn misplaced_stale_and_foreign_blocks_name_their_origin() {
        let kind = |block: Vec<u8>| damage(&block, &EXPECTED).kind;
        assert_eq!(kind(block(ID, 0, 3)), DamageKind::Misplaced { belongs: 0, sequence: 3 });
        assert_eq!(kind(block(ID, AT, 12)), DamageKind::Stale { sequence: 12, expected: 20 });
        assert_eq!(kind(block(ID, AT, 21)), DamageKind::Future { sequence: 21 });
        assert_eq!(kind(block(9, AT, 20)), DamageKind::Foreign { id: 9 });
        assert_eq!(kind(vec![0; BLOCK]), DamageKind::Zeros);
        assert_eq!(kind(vec![0xa5; BLOCK]), DamageKind::Strange);
        let mut random = vec![0; BLOCK];
        fill(&mut random, 1);
        assert_eq!(kind(random), DamageKind::Strange);
    }

    #[test]
    fn a_lost_write_is_counted_from_the_one_that_was_found() {
        let found = |sequence| damage(&block(ID, AT, sequence), &EXPECTED).to_string();
        assert_eq!(found(19), "stale: this is the data of write 19; write 20, the next one, was lost");
        assert_eq!(found(12), "stale: this is the data of write 12; write 20, 8 writes later, was lost");
    }

    #[test]
    fn a_torn_block_names_the_newer_part() {
        let (new, old) = (block(ID, AT, 20), block(ID, AT, 12));
        for (torn, sector, newest_first) in [(halves(&new, &old), 4, 0), (halves(&old, &new), 0, 4)] {
            let found = damage(&torn, &EXPECTED);
            let kind = DamageKind::Torn { newest_sectors: 4, newest_first, newest: 20, other: 12 };
            assert_eq!(found, Damage { sector, sectors: 4, block_sectors: 8, kind });
        }
    }

    #[test]
    fn partly_damaged_blocks_are_reported() {
        let zeroed = halves(&block(ID, AT, 20), &[0; BLOCK]);
        assert_eq!(
            damage(&zeroed, &EXPECTED),
            Damage { sector: 4, sectors: 4, block_sectors: 8, kind: DamageKind::Zeros }
        );
        let mut worse = halves(&block(ID, AT, 12), &block(ID, AT, 20));
        worse[SECTOR + 100] ^= 3;
        let kind = DamageKind::Flipped { byte: SECTOR as u32 + 100, bits: 2 };
        assert_eq!(damage(&worse, &EXPECTED), Damage { sector: 1, sectors: 1, block_sectors: 8, kind });
    }

    #[test]
    fn a_begun_write_may_be_complete_partial_or_absent() {
        let expected = Expected { begun: Some(25), ..EXPECTED };
        let (new, old) = (block(ID, AT, 25), block(ID, AT, 20));
        assert_eq!(examine(&old, &expected), Ok(Sound::Whole(20)));
        assert_eq!(examine(&new, &expected), Ok(Sound::Whole(25)));
        assert_eq!(examine(&halves(&new, &old), &expected), Ok(Sound::PartOfBegun { sectors: 4 }));
        assert_eq!(examine(&halves(&old, &new), &expected), Ok(Sound::PartOfBegun { sectors: 4 }));
        // All other content still counts as damage.
        let kind = |block: Vec<u8>| damage(&block, &expected).kind;
        assert_eq!(kind(block(ID, AT, 12)), DamageKind::Stale { sequence: 12, expected: 20 });
        assert_eq!(kind(block(ID, AT, 22)), DamageKind::Future { sequence: 22 });
        assert_eq!(kind(halves(&new, &block(ID, AT, 12))).word(), "torn");
        assert_eq!(kind(halves(&[0; BLOCK], &new)), DamageKind::Zeros);
    }

    #[test]
    fn before_the_first_write_only_damaged_stamps_are_errors() {
        let expected = Expected { synced: 0, begun: Some(5), ..EXPECTED };
        let new = block(ID, AT, 5);
        for before in [vec![0; BLOCK], vec![0xa5; BLOCK], block(9, AT, 5)] {
            assert_eq!(examine(&before, &expected), Ok(Sound::Whole(0)));
            assert_eq!(examine(&halves(&new, &before), &expected), Ok(Sound::PartOfBegun { sectors: 4 }));
        }
        let mut flipped = new.clone();
        flipped[700] ^= 1;
        assert_eq!(damage(&flipped, &expected).kind, DamageKind::Flipped { byte: 700, bits: 1 });
        let misplaced = damage(&block(ID, 0, 3), &expected).kind;
        assert_eq!(misplaced, DamageKind::Misplaced { belongs: 0, sequence: 3 });
    }
}
