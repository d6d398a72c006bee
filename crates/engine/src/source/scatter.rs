//! Orders without memory: a keyed permutation of the numbers below any bound.
//!
//! For: visiting each block once per pass, and scattering ranks over a span. Not for: secrets.
//!
//! A balanced Feistel network permutes the next power of two; numbers that fall outside are walked on until they are inside
//! (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), less than twice on average. Nothing is stored, so a
//! space of 2^40 blocks costs what one of ten costs; a bit map of it would be 128 GiB.

use model::payload::split_mix;

/// Rounds of the network. Four are enough where halves are large (Luby and Rackoff, 1988); of halves of a few bits four
/// leave neighbours related, and eight do not.
const ROUNDS: usize = 8;
/// Bits from which half of the rounds do.
const LARGE: u32 = 16;

/// A permutation of `0..count`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    rounds: usize,
    keys: [u64; ROUNDS],
}

impl Scatter {
    /// Another permutation for each key. `count` is at least 1.
    pub(super) fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let low_bits = bits / 2;
        let mut keys = [0; ROUNDS];
        for (round, k) in keys.iter_mut().enumerate() {
            *k = split_mix(key ^ split_mix(round as u64));
        }
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let rounds = if bits < LARGE { ROUNDS } else { ROUNDS / 2 };
        Self { count, rounds, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), keys }
    }

    /// How many numbers it permutes.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Where number `index` goes; `index` is below the count.
    #[inline]
    pub(super) fn position(&self, index: u64) -> u64 {
        let mut place = index;
        loop {
            place = self.network(place);
            if place < self.count {
                return place;
            }
        }
    }

    #[inline]
    fn network(&self, x: u64) -> u64 {
        let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
        for pair in self.keys[..self.rounds].as_chunks::<2>().0 {
            low ^= mixed(high, pair[0]) & self.low_mask;
            high ^= mixed(low, pair[1]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// 32 bits that depend on all bits of both.
#[inline]
fn mixed(x: u64, key: u64) -> u64 {
    let z = (x ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

#[test]
fn every_number_has_one_place() {
    for count in (1..130).chain([1000, 4096, 4097, 65_537]) {
        for key in 0..5 {
            let scatter = Scatter::new(count, key);
            let mut seen = vec![false; count as usize];
            for i in 0..count {
                assert!(
                    !std::mem::replace(&mut seen[scatter.position(i) as usize], true),
                    "{count} {key} {i}"
                );
            }
        }
    }
    for count in [1 << 40, u64::MAX] {
        let scatter = Scatter::new(count, 1);
        assert!((0..1000).all(|i| scatter.position(i) < count && scatter.position(count - 1 - i) < count));
    }
}

#[test]
fn places_are_even_over_keys_and_neighbours_do_not_stay_together() {
    for count in [3_u64, 10, 100, 33_000, 40_000, 1 << 21] {
        let classes = count.min(100);
        let (mut places, mut distances) = (vec![0_u64; classes as usize], vec![0_u64; classes as usize]);
        for key in 0..2000 * classes {
            let scatter = Scatter::new(count, split_mix(key));
            let (a, b) = (scatter.position(count / 2), scatter.position(count / 2 - 1));
            let distance = (a + count - b) % count;
            assert_ne!(distance, 0);
            places[(a * classes / count) as usize] += 1;
            distances[(distance * classes / count) as usize] += 1;
        }
        // A distance of none does not happen; the first class is smaller by that.
        let weight = |class: u64| {
            let numbers = (class * count).div_ceil(classes)..((class + 1) * count).div_ceil(classes);
            (numbers.end - numbers.start) as f64
        };
        let mut weights: Vec<f64> = (0..classes).map(weight).collect();
        super::theory::fits(&places, &weights);
        weights[0] -= 1.0;
        super::theory::fits(&distances, &weights);
    }
}
