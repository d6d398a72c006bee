//! The data that streams write, how compressible they are, and the patterns that reads are verified against.
//!
//! Data are unique and incompressible unless the job asks for compressible or repetitive data. With a repeated buffer,
//! storage that compresses or deduplicates would write almost nothing. The crate `random` supplies the bytes.

use crate::units::show_bytes;
pub use random::{fill, split_mix};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// The block size in bytes of most compressors and deduplicators in storage.
const BLOCK_BYTES: usize = 4096;
/// Number of bytes at the beginning of each block that are unique even in fully compressible data. Without unique bytes
/// all blocks would be copies of each other.
const UNIQUE_BYTES: usize = 16;
/// Number of recently written blocks that can be copied.
const POOL: usize = 64;
/// Number of bytes that [`measure`] inspects. 4096 blocks give the shares to within one or two percent.
const MEASURED_BYTES: usize = 4096 * BLOCK_BYTES;

/// Fills the write buffers of one worker.
#[derive(Clone, Debug)]
pub struct Maker {
    recipe: Recipe,
}

#[derive(Clone, Debug)]
enum Recipe {
    Unique { key: u64 },
    Shaped(Box<Shaped>),
    Zeros,
    File { bytes: Arc<[u8]>, next: usize },
}

impl Maker {
    /// Selects the recipe for `data`. `file_bytes` is the content of the file that [`Data::File`]
    /// names. Makers of random data make different data if their seeds differ.
    ///
    /// # Errors
    /// A message if a share is above 100 %, or a file is missing or empty.
    pub fn new(data: &Data, file_bytes: Option<Arc<[u8]>>, seed: u64) -> Result<Self, String> {
        let key = split_mix(seed);
        let recipe = match data {
            Data::Random { compress_percent: 0, dedup_percent: 0, .. } => Recipe::Unique { key },
            Data::Random { compress_percent, dedup_percent, dedup_set_bytes, .. } => {
                let set = dedup_set_bytes.map(|bytes| (bytes / BLOCK_BYTES as u64).max(1));
                Recipe::Shaped(Box::new(Shaped::new(*compress_percent, *dedup_percent, set, key)?))
            }
            Data::Zeros => Recipe::Zeros,
            Data::Counting => Recipe::File { bytes: (0..=u8::MAX).collect(), next: 0 },
            Data::File(path) => match file_bytes {
                Some(bytes) if !bytes.is_empty() => Recipe::File { bytes, next: 0 },
                Some(_) => return Err(format!("{path} is empty; name a file with bytes to write")),
                None => return Err(format!("{path} was not read, so its bytes cannot be written")),
            },
        };
        Ok(Self { recipe })
    }

    /// Returns the sets from which the maker draws copies.
    pub fn sets(&self) -> &[Set] {
        if let Recipe::Shaped(shaped) = &self.recipe { &shaped.sets } else { &[] }
    }

    /// Replaces the sets from which the maker draws copies. They may be the sets of several workers. Has no effect on
    /// data without copies.
    pub fn replace_sets(&mut self, sets: &Arc<[Set]>) {
        if let Recipe::Shaped(shaped) = &mut self.recipe {
            shaped.sets = Arc::clone(sets);
        }
    }

    /// Fills the buffer of the next write. Allocates nothing. About 80 GB/s for unique and incompressible data.
    #[inline]
    pub fn fill(&mut self, buffer: &mut [u8]) {
        match &mut self.recipe {
            Recipe::Unique { key } => {
                *key = key.wrapping_add(1);
                fill(buffer, *key);
            }
            Recipe::Shaped(shaped) => buffer.chunks_mut(BLOCK_BYTES).for_each(|block| shaped.fill(block)),
            Recipe::Zeros => buffer.fill(0),
            Recipe::File { bytes, next } => *next = copy_repeatedly(bytes, *next, buffer),
        }
    }
}

/// Copies `bytes` repeatedly, starting at `next`; returns where to continue.
fn copy_repeatedly(bytes: &[u8], mut next: usize, mut buffer: &mut [u8]) -> usize {
    while !buffer.is_empty() {
        let piece = &bytes[next..bytes.len().min(next + buffer.len())];
        let (head, rest) = std::mem::take(&mut buffer).split_at_mut(piece.len());
        head.copy_from_slice(piece);
        buffer = rest;
        next = (next + piece.len()) % bytes.len();
    }
    next
}

/// Blocks that can be copied: the first ones that a worker writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// Key of the first block. Each further block has the next key.
    first: u64,
    blocks: u64,
}

impl Set {
    /// Returns the key of a block drawn from all sets, with the same probability for each block; `None` without sets.
    fn draw(sets: &[Self], draw: u64) -> Option<u64> {
        let all = sets.iter().fold(0_u64, |sum, set| sum.saturating_add(set.blocks));
        let mut at = draw.checked_rem(all)?;
        for set in sets {
            if at < set.blocks {
                return Some(set.first.wrapping_add(at));
            }
            at -= set.blocks;
        }
        None
    }
}

/// Makes blocks that can be compressed, or that are copies. A block is a function of its key, so a
/// copy needs only the key.
#[derive(Clone, Debug)]
struct Shaped {
    compress_percent: u8,
    dedup_percent: u8,
    /// The sets from which copies are drawn; if empty, copies are drawn from the pool.
    sets: Arc<[Set]>,
    /// Keys of earlier blocks, as a ring. The first `made` keys are valid; all of them if `made` is at least [`POOL`].
    pool: [u64; POOL],
    made: usize,
    key: u64,
    /// State of the random draws: the counter of splitmix64.
    draws: u64,
}

impl Shaped {
    fn new(
        compress_percent: u8,
        dedup_percent: u8,
        set_blocks: Option<u64>,
        key: u64,
    ) -> Result<Self, String> {
        for (share, word) in [(compress_percent, "compressible"), (dedup_percent, "copies")] {
            if share > 100 {
                return Err(format!("{share} % {word} is not possible; type 0 to 100"));
            }
        }
        let draws = split_mix(!key);
        let sets = set_blocks.map(|blocks| Set { first: key.wrapping_add(1), blocks }).into_iter().collect();
        Ok(Self { compress_percent, dedup_percent, sets, pool: [0; POOL], made: 0, key, draws })
    }

    #[inline]
    fn fill(&mut self, block: &mut [u8]) {
        let key = self.next_key();
        let run = (block.len() * usize::from(self.compress_percent) / 100)
            .min(block.len().saturating_sub(UNIQUE_BYTES));
        let (unique, constant) = block.split_at_mut(block.len() - run);
        fill(unique, key);
        // Never zeros: some storage does not store zeros at all, which saves more than compression.
        constant.fill(key as u8 | 1);
    }

    /// Returns the key of an existing block with a probability of `dedup_percent`, otherwise a new
    /// key. A copy of a block in a set may be written before that block.
    #[inline]
    fn next_key(&mut self) -> u64 {
        if self.dedup_percent > 0 && (self.made > 0 || !self.sets.is_empty()) {
            self.draws = self.draws.wrapping_add(1);
            let draw = split_mix(self.draws);
            // One random word serves two draws: its lower half decides whether to copy, its upper half selects a block
            // of the pool.
            if ((draw & 0xffff_ffff) * 100) >> 32 < u64::from(self.dedup_percent) {
                // For sets, draw another word: the upper half would not select all blocks of a large set with equal
                // probability.
                return Set::draw(&self.sets, split_mix(draw))
                    .unwrap_or_else(|| self.pool[(draw >> 32) as usize % self.made.min(POOL)]);
            }
        }
        self.key = self.key.wrapping_add(1);
        self.pool[self.made % POOL] = self.key;
        // Once the pool is full, only the position in the ring matters.
        self.made = if self.made == 2 * POOL - 1 { POOL } else { self.made + 1 };
        self.key
    }
}

/// Makes 16 MiB of data with these settings, and measures how compressible and repetitive the data
/// is. Takes some tens of ms, so it is not for the hot loop.
///
/// # Errors
///
/// Those of [`Maker::new`].
pub fn measure(data: &Data, file_bytes: Option<Arc<[u8]>>, seed: u64) -> Result<Written, String> {
    let mut maker = Maker::new(data, file_bytes, seed)?;
    let mut made = vec![0_u8; MEASURED_BYTES];
    maker.fill(&mut made);
    let blocks = made.as_chunks::<BLOCK_BYTES>().0;
    let mut packed = vec![0_u8; lz4_flex::block::get_maximum_output_size(BLOCK_BYTES)];
    let mut kept = 0;
    for block in blocks {
        // The output buffer has the size that the library requires. If the library refused it anyway, the block would
        // count as incompressible.
        kept += lz4_flex::block::compress_into(block, &mut packed).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
    }
    let distinct = blocks.iter().collect::<HashSet<_>>().len();
    let saved = |left: usize, all: usize| 100.0 * (all - left) as f64 / all as f64;
    Ok(Written { compress_percent: saved(kept, made.len()), dedup_percent: saved(distinct, blocks.len()) })
}

/// The data that a stream writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Random data. It is unique and incompressible except for the shares below.
    Random {
        /// Share of each 4 KiB that a compressor can save, in percent.
        compress_percent: u8,
        /// Share of 4 KiB blocks that are copies of others, in percent.
        dedup_percent: u8,
        /// Size in bytes of the set that copies repeat: the first bytes that a worker writes. `None` if copies
        /// repeat recently written blocks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dedup_set_bytes: Option<u64>,
        /// Whether copies also repeat the sets of all other workers of the phase that have this setting.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        dedup_shared: bool,
    },
    /// Only bytes of value 0.
    Zeros,
    /// The bytes 0 to 255, repeated: as compressible as zeros, but not zeros.
    Counting,
    /// The bytes of this file, repeated.
    File(String),
}

impl Data {
    /// Describes the source of copies, beginning with a blank; empty if copies repeat recent blocks.
    pub fn copies_of(&self) -> String {
        match self {
            Self::Random { dedup_set_bytes: Some(bytes), dedup_shared, .. } => {
                let whose = if *dedup_shared { " that each worker writes" } else { "" };
                format!(" of the first {}{whose}", show_bytes(*bytes))
            }
            _ => String::new(),
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Self::Random { compress_percent: 0, dedup_percent: 0, dedup_set_bytes: None, dedup_shared: false }
    }
}

/// Size and alignment, in bytes, of the units of [`Content::Stamps`].
const UNIT_BYTES: usize = 512;
/// Size of an offset within a pattern, in bytes.
const OFFSET_BYTES: usize = 8;

/// The content that a stream writes for verification, and the reads that it compares with this content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verify {
    /// The content of the blocks.
    pub content: Content,
    /// Whether the stream's reads are compared with the content.
    pub checks: bool,
    /// Index of the stream in the previous phase whose blocks this stream reads back, each as often as it was written.
    /// `None` if this stream has its own work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<usize>,
    /// Whether the first difference ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fatal: bool,
}

/// Content of blocks that are verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Bytes that depend only on the position, so that every writer writes the same bytes at a position.
    Stamps {
        /// Different seeds give different data.
        seed: u64,
    },
    /// A byte pattern, repeated from the beginning of each operation.
    Pattern {
        /// One period, which is repeated to fill each operation.
        bytes: Vec<u8>,
        /// Positions in the pattern at which the offset of the operation is stored, as 8 bytes in little-endian order.
        offsets: Vec<usize>,
    },
}

impl Content {
    /// Writes the content of an operation at this offset.
    pub fn put(&self, offset: u64, data: &mut [u8]) {
        match self {
            Self::Stamps { seed } => {
                for_each_unit(offset, data.len(), |unit, inside, at| {
                    data[at].copy_from_slice(&unit_content(*seed, unit)[inside]);
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

    /// Compares data that was read at this offset. Returns the index of the first wrong byte of
    /// `data`; `None` if all bytes are right.
    pub fn difference(&self, offset: u64, data: &[u8]) -> Option<usize> {
        let mut first: Option<usize> = None;
        let mut note = |at: usize, are: &[u8], should: &[u8]| {
            if first.is_none() && are != should {
                first = are.iter().zip(should).position(|(a, b)| a != b).map(|inside| at + inside);
            }
        };
        match self {
            Self::Stamps { seed } => for_each_unit(offset, data.len(), |unit, inside, at| {
                note(at.start, &data[at], &unit_content(*seed, unit)[inside]);
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

/// Calls `visit` for each unit that an operation touches, with the index of the unit in the file, the touched range
/// within the unit, and the same range within the operation.
fn for_each_unit(
    offset: u64,
    length: usize,
    mut visit: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let size = UNIT_BYTES as u64;
    let mut at = 0;
    while at < length {
        let position = offset + at as u64;
        let inside = (position % size) as usize;
        let bytes = (UNIT_BYTES - inside).min(length - at);
        visit(position / size, inside..inside + bytes, at..at + bytes);
        at += bytes;
    }
}

fn unit_content(seed: u64, unit: u64) -> [u8; UNIT_BYTES] {
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

/// How compressible and repetitive the written data is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Written {
    /// Share of the bytes that an LZ compressor saves, block by block of 4 KiB, in percent.
    pub compress_percent: f64,
    /// Share of the 4 KiB blocks that are copies of others, in percent.
    pub dedup_percent: f64,
}

#[cfg(test)]
fn measure_shares(compress_percent: u8, dedup_percent: u8) -> Written {
    let data = Data::Random { compress_percent, dedup_percent, dedup_set_bytes: None, dedup_shared: false };
    measure(&data, None, 7).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn data_have_the_requested_compressibility_and_repetition() {
    for (compress, dedup) in [(0, 0), (10, 5), (50, 30), (90, 95), (100, 0), (0, 50), (25, 100)] {
        let Written { compress_percent, dedup_percent } = measure_shares(compress, dedup);
        // The random part grows by 0.5 % in LZ4, and LZ4 needs some bytes to encode a run of equal bytes.
        assert!((compress_percent - f64::from(compress)).abs() < 1.5, "{compress}: {compress_percent}");
        // Five standard deviations of 4096 draws.
        let p = f64::from(dedup) / 100.0;
        let bound = 0.1 + 500.0 * (p * (1.0 - p) / 4096.0).sqrt();
        assert!((dedup_percent - f64::from(dedup)).abs() < bound, "{dedup}: {dedup_percent}");
    }
}

#[test]
fn small_writes_are_made_like_large_ones() {
    let data =
        Data::Random { compress_percent: 50, dedup_percent: 40, dedup_set_bytes: None, dedup_shared: false };
    let mut maker = Maker::new(&data, None, 1).unwrap_or_else(|e| panic!("{e}"));
    let (mut seen, mut copies) = (HashSet::new(), 0);
    for _ in 0..5000 {
        let mut write = [0_u8; 512];
        maker.fill(&mut write);
        assert!(write[256..].iter().all(|b| *b == write[511]) && write[511] != 0);
        assert!(write[..256].iter().collect::<HashSet<_>>().len() > 64);
        copies += usize::from(!seen.insert(write));
    }
    assert!((copies as f64 / 5000.0 - 0.4).abs() < 5.0 * (0.24_f64 / 5000.0).sqrt(), "{copies}");
    for bytes in 0..64 {
        maker.fill(&mut vec![0; bytes]);
    }
}

#[test]
fn copies_of_a_set_repeat_only_its_first_blocks() {
    const SET: usize = 16;
    let set_bytes = Some((SET * BLOCK_BYTES) as u64);
    let data = Data::Random {
        compress_percent: 0,
        dedup_percent: 50,
        dedup_set_bytes: set_bytes,
        dedup_shared: false,
    };
    let mut maker = Maker::new(&data, None, 1).unwrap_or_else(|e| panic!("{e}"));
    let mut counts: std::collections::HashMap<[u8; 16], usize> = std::collections::HashMap::new();
    for _ in 0..4096 {
        let mut block = [0; BLOCK_BYTES];
        maker.fill(&mut block);
        *counts.entry(std::array::from_fn(|i| block[i])).or_default() += 1;
    }
    let often: Vec<usize> = counts.values().copied().filter(|n| *n > 1).collect();
    assert_eq!(often.len(), SET, "blocks outside the set are written once");
    // Half of the 4096 writes repeat one of 16 blocks: 128 writes of each block. 60 is more than five standard deviations.
    assert!(often.iter().all(|n| n.abs_diff(128) < 60), "{often:?}");
    assert!(counts.len().abs_diff(2048) < 160, "{}", counts.len());
    // With a set as large as all written data the share converges later: a block that is copied before it was
    // written counts as new.
    let large = Data::Random {
        compress_percent: 0,
        dedup_percent: 50,
        dedup_set_bytes: Some(1 << 30),
        dedup_shared: false,
    };
    let few = measure(&large, None, 7).unwrap_or_else(|e| panic!("{e}")).dedup_percent;
    assert!(few < 5.0, "{few}");
}

#[test]
fn workers_with_shared_sets_copy_each_others_blocks() {
    const SET: usize = 16;
    let dedup_set_bytes = Some((SET * BLOCK_BYTES) as u64);
    let data = Data::Random { compress_percent: 0, dedup_percent: 50, dedup_set_bytes, dedup_shared: true };
    let mut makers = [1, 2, 3].map(|seed| Maker::new(&data, None, seed).unwrap_or_else(|e| panic!("{e}")));
    let sets: Arc<[Set]> = makers.iter().flat_map(Maker::sets).copied().collect();
    assert_eq!(sets.len(), 3);
    for maker in &mut makers {
        maker.replace_sets(&sets);
    }
    let mut counts: std::collections::HashMap<[u8; 16], usize> = std::collections::HashMap::new();
    let mut block = [0; BLOCK_BYTES];
    for _ in 0..4096 {
        makers[0].fill(&mut block);
        *counts.entry(std::array::from_fn(|i| block[i])).or_default() += 1;
    }
    let often: Vec<usize> = counts.values().copied().filter(|n| *n > 1).collect();
    assert_eq!(often.len(), 3 * SET, "one maker copies blocks of all three");
    // Half of the 4096 writes repeat one of 48 blocks: 43 writes of each block. 34 is more than five standard deviations.
    assert!(often.iter().all(|n| n.abs_diff(43) < 34), "{often:?}");
}

#[test]
fn file_content_continues_across_writes() {
    let bytes: Arc<[u8]> = (0..7_u8).collect();
    let file = Data::File("seven".into());
    let mut maker = Maker::new(&file, Some(bytes), 1).unwrap_or_else(|e| panic!("{e}"));
    let mut written = Vec::new();
    for length in [3, 0, 20, 7, 1] {
        let mut write = vec![0xff; length];
        maker.fill(&mut write);
        written.extend(write);
    }
    assert_eq!(written, (0..31).map(|i| i % 7).collect::<Vec<u8>>());
    assert!(Maker::new(&file, None, 1).is_err_and(|e| e.contains("seven")));
    assert!(Maker::new(&file, Some(Arc::new([])), 1).is_err_and(|e| e.contains("empty")));
}

#[test]
fn counting_bytes_are_0_to_255_repeated() {
    let mut maker = Maker::new(&Data::Counting, None, 1).unwrap_or_else(|e| panic!("{e}"));
    for _ in 0..2 {
        let mut write = [9; 512];
        maker.fill(&mut write);
        assert!(write.iter().zip((0..=u8::MAX).cycle()).all(|(byte, counted)| *byte == counted));
    }
}

#[test]
fn zeros_are_written_and_invalid_shares_are_rejected() {
    let mut maker = Maker::new(&Data::Zeros, None, 1).unwrap_or_else(|e| panic!("{e}"));
    let mut write = [1_u8; 100];
    maker.fill(&mut write);
    assert_eq!(write, [0; 100]);
    let zeros = measure(&Data::Zeros, None, 1).unwrap_or_else(|e| panic!("{e}"));
    assert!(zeros.compress_percent > 99.0 && zeros.dedup_percent > 99.0);
    for (compress_percent, dedup_percent) in [(101, 0), (0, 101)] {
        let data =
            Data::Random { compress_percent, dedup_percent, dedup_set_bytes: None, dedup_shared: false };
        assert!(Maker::new(&data, None, 1).is_err());
    }
}

#[test]
fn makers_with_different_seeds_share_no_blocks() {
    let mut seen = HashSet::new();
    for seed in 0..50 {
        let mut maker = Maker::new(&Data::default(), None, seed).unwrap_or_else(|e| panic!("{e}"));
        for _ in 0..50 {
            let mut write = [0_u8; 4096];
            maker.fill(&mut write);
            assert!(seen.insert(write), "seed {seed} repeats a block");
        }
    }
}

#[test]
fn content_is_verified_in_pieces_of_any_size() {
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
fn a_pattern_restarts_with_each_operation_and_may_contain_its_offset() {
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
