//! Pseudo-random data that neither compresses nor deduplicates, and [`split_mix`], which turns a
//! number into a random-looking one. Neither is for cryptography. Compressible data is in
//! `model::payload`.
//!
//! This is a separate crate so that it is optimized even in debug builds: it generates every byte that is written.

/// Number of words that are generated together. They fill at most half of the vector registers of any x86-64 CPU, so the compiler keeps
/// them in registers.
const LANES: usize = 16;
/// Size of a chunk of [`LANES`] words in bytes.
const CHUNK_BYTES: usize = LANES * 8;

/// Fills `buffer` with data that is unique for `key`. About 80 GB/s on one core if the buffer is in the core's cache.
///
/// Keys that differ in any bit give unrelated data. So keys may be consecutive numbers, such as
/// `hash(seed) + n` for block `n`.
pub fn fill(buffer: &mut [u8], key: u64) {
    let (chunks, rest) = buffer.as_chunks_mut();
    fill_chunks(chunks, key);
    if !rest.is_empty() {
        // The rest of the buffer has its own key, so that it does not repeat the first chunk.
        let mut last = [0; CHUNK_BYTES];
        fill_chunks(std::slice::from_mut(&mut last), !key);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Fills whole chunks. Each word of a chunk comes from its own counter. For each chunk the same step
/// is added to all counters, with one addition per vector register. A random word of xorshift, a new
/// one for each chunk, hides the regularity of the counters.
fn fill_chunks(chunks: &mut [[u8; CHUNK_BYTES]], key: u64) {
    let base = split_mix(key);
    let mut counters = [0; LANES];
    for (lane, counter) in (0..).zip(&mut counters) {
        *counter = split_mix(base.wrapping_add(lane));
    }
    let other = |n: usize| split_mix(base.wrapping_add((LANES + n) as u64));
    // The step is odd, so that a counter repeats only after 2^64 chunks. Xorshift must not start at zero.
    let (step, mut common) = (other(0) | 1, other(1) | 1);
    for chunk in chunks {
        common ^= common << 13;
        common ^= common >> 7;
        common ^= common << 17;
        for counter in &mut counters {
            *counter = counter.wrapping_add(step);
        }
        for (word, counter) in chunk.as_chunks_mut::<8>().0.iter_mut().zip(&counters) {
            *word = (counter ^ common).to_le_bytes();
        }
    }
}

/// Returns the first output of splitmix64 (Steele, Lea, Flood 2014) for the seed `key`. Each bit of
/// `key` affects all bits of the result.
#[inline]
pub fn split_mix(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn buffers_are_unique_and_half_of_their_bits_are_set() {
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

#[test]
fn keys_that_differ_in_one_bit_give_different_data_of_any_length() {
    let made = |key: u64, length: usize| {
        let mut buffer = vec![0; length];
        fill(&mut buffer, key);
        buffer
    };
    for bit in 0..64 {
        assert_ne!(made(7, 64), made(7 ^ 1 << bit, 64), "bit {bit}");
    }
    // The bytes after the last whole chunk are filled too.
    for length in 1..1000 {
        let (once, twice) = (made(7, length), made(8, length));
        assert!(length < 16 || (0..length - 7).all(|at| once[at..at + 8] != twice[at..at + 8]), "{length}");
    }
}

#[test]
fn words_and_chunks_are_not_correlated() {
    let mut buffer = vec![0; 1 << 20];
    fill(&mut buffer, 3);
    // Counters alone would give few different values at a fixed distance. A compressor that looks for tables of numbers could use that.
    for distance in [8, 64, CHUNK_BYTES] {
        let mut seen = [0_u32; 256];
        for (at, byte) in buffer.iter().enumerate().skip(distance) {
            seen[usize::from(byte.wrapping_sub(buffer[at - distance]))] += 1;
        }
        let all = f64::from(seen.iter().sum::<u32>());
        let bits: f64 = seen.iter().map(|n| f64::from(*n) / all).map(|p| -p * p.log2()).sum();
        assert!(bits > 7.9, "{bits} bits of 8 at a distance of {distance}");
    }
}
