//! Sizes of requests.
//!
//! For: quantiles that are exact, and the sizes that are most frequent. Not for: anything but sizes.

use super::figures::share;
use model::captured::{Share, Sizes};
use std::collections::BTreeMap;

/// Sizes that are told apart: all that a kernel makes. What comes beyond counts as the largest below it.
const MAX_DISTINCT_SIZES: usize = 1 << 16;
/// Most frequent sizes that are told.
const FREQUENT: usize = 6;
/// The least share at which a size is told as frequent.
const LEAST_SHARE: f64 = 0.005;
const SIZE_PERCENTILES: [(&str, f64); 4] = [("10", 0.1), ("50", 0.5), ("90", 0.9), ("99", 0.99)];

/// How often each size occurred, in sectors.
#[derive(Debug, Default)]
pub(super) struct Counted {
    counts: BTreeMap<u32, u64>,
    last: (u32, u64),
}

impl Counted {
    pub(super) fn add(&mut self, sectors: u32) {
        // Mostly the same again.
        if sectors == self.last.0 {
            self.last.1 += 1;
            return;
        }
        self.keep();
        self.last = (sectors, 1);
    }

    fn keep(&mut self) {
        let (sectors, count) = std::mem::take(&mut self.last);
        if count == 0 {
            return;
        }
        let known = self.counts.len() < MAX_DISTINCT_SIZES || self.counts.contains_key(&sectors);
        let below = || self.counts.range(..sectors).next_back().map_or(sectors, |(size, _)| *size);
        let sectors = if known { sectors } else { below() };
        *self.counts.entry(sectors).or_default() += count;
    }

    /// `None` where nothing has a size.
    pub(super) fn finish(mut self) -> Option<Sizes> {
        self.keep();
        let all: u64 = self.counts.values().sum();
        let (min, max) = (*self.counts.keys().next()?, *self.counts.keys().next_back()?);
        if max == 0 {
            return None;
        }
        let bytes = |sectors: u32| u64::from(sectors) * crate::SECTOR;
        let sum: f64 = self.counts.iter().map(|(size, count)| bytes(*size) as f64 * *count as f64).sum();
        let quantile = |q: f64| {
            let rank = (q * all as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            let mut found = self.counts.iter().find(|(_, count)| {
                seen += **count;
                seen >= rank
            });
            found.take().map_or(0, |(size, _)| bytes(*size))
        };
        let percentiles = SIZE_PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), quantile(*q))).collect();
        let mut frequent: Vec<Share> = self
            .counts
            .iter()
            .map(|(size, count)| Share { bytes: bytes(*size), share: share(*count, all) })
            .collect();
        frequent.sort_by(|a, b| b.share.total_cmp(&a.share));
        frequent.retain(|size| size.share >= LEAST_SHARE);
        frequent.truncate(FREQUENT);
        Some(Sizes { mean: sum / all as f64, min: bytes(min), percentiles, max: bytes(max), frequent })
    }
}
