//! Pseudo-random words and bytes.
//!
//! For: data that no compressor and no deduplicator makes smaller, and seeds. Not for: secrets or statistics; this is xorshift. Nor for what
//! is written where it is to be compressible (`model::payload`).
//! A crate of its own, since every byte that is written comes from here: it is optimized, where most of fathom is built quickly.

/// Lanes run side by side so that the compiler uses vector registers.
const LANES: usize = 8;

/// Fills `buffer` with data that no other `key` gives. About 20 GB/s on one core.
///
/// Keys that differ in any bit give unrelated data; use (seed + position of the data in the session) as the key.
pub fn fill(buffer: &mut [u8], key: u64) {
    let mut state = [0_u64; LANES];
    for (lane, s) in state.iter_mut().enumerate() {
        // xorshift must not start at zero; splitmix64 gives zero for one input in 2^64, hence the bit.
        *s = split_mix(key.wrapping_mul(LANES as u64).wrapping_add(lane as u64)) | 1;
    }
    let (chunks, rest) = buffer.as_chunks_mut::<{ LANES * 8 }>();
    for chunk in chunks {
        step(&mut state);
        let (words, _) = chunk.as_chunks_mut::<8>();
        for (word, s) in words.iter_mut().zip(&state) {
            *word = s.to_le_bytes();
        }
    }
    step(&mut state);
    for (byte, word) in rest.iter_mut().zip(state.iter().flat_map(|s| s.to_le_bytes())) {
        *byte = word;
    }
}

#[inline]
fn step(state: &mut [u64; LANES]) {
    for s in state {
        *s ^= *s << 13;
        *s ^= *s >> 7;
        *s ^= *s << 17;
    }
}

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): spreads every bit of the input over the output.
#[inline]
pub fn split_mix(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn buffers_are_unique_and_full_of_bits() {
    let mut seen = std::collections::HashSet::new();
    let mut buffer = vec![0_u8; 4096 + 13];
    for key in 0..200 {
        fill(&mut buffer, key);
        for block in buffer.as_chunks::<512>().0 {
            assert!(seen.insert(*block), "a block of key {key} was there before");
        }
        let ones: u32 = buffer.iter().map(|b| b.count_ones()).sum();
        assert!((f64::from(ones) / (buffer.len() * 8) as f64 - 0.5).abs() < 0.02);
    }
}
