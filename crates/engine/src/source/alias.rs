//! One of many by weight, in one draw, one look and no branch.
//!
//! For: choices that are made for every operation. Not for: weights that change.
//!
//! Walker's alias method ("An efficient method for generating discrete random variables with general distributions", 1977)
//! with Vose's way of building the table (1991). The library's table decides with a branch that no processor predicts, and
//! an operation makes up to four such choices; this one selects.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::select_unpredictable;

/// Indices with their weights.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    cells: Vec<Cell>,
}

/// Below `keep` of 2^64 the cell's own index, else another.
#[derive(Clone, Copy, Debug)]
struct Cell {
    keep: u64,
    other: u32,
}

impl Alias {
    /// `None` where a weight is no number from 0 up, or none is above 0.
    pub(super) fn new(weights: &[f64]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        let count = u32::try_from(weights.len()).ok()?;
        if !(sum.is_finite() && sum > 0.0 && weights.iter().all(|w| *w >= 0.0)) {
            return None;
        }
        // In units of an even share: cells below one are filled up from those above.
        let mut shares: Vec<f64> = weights.iter().map(|w| w / sum * f64::from(count)).collect();
        // What rounding leaves over keeps its own index, which is the nearest to what it should have.
        let mut cells: Vec<Cell> = (0..count).map(|own| Cell { keep: u64::MAX, other: own }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|i| shares[*i as usize] < 1.0);
        while let (Some(low), Some(high)) = (small.pop(), large.pop()) {
            let share = shares[low as usize];
            cells[low as usize] = Cell { keep: (share * 2_f64.powi(64)) as u64, other: high };
            shares[high as usize] -= 1.0 - share;
            let rest = if shares[high as usize] < 1.0 { &mut small } else { &mut large };
            rest.push(high);
        }
        // Rounding must not give a chance to what has none.
        let heaviest = (0..count).max_by(|a, b| weights[*a as usize].total_cmp(&weights[*b as usize]))?;
        for (cell, _) in cells.iter_mut().zip(weights).filter(|(c, w)| **w == 0.0 && c.keep == u64::MAX) {
            *cell = Cell { keep: 0, other: heaviest };
        }
        Some(Self { cells })
    }

    /// An index. The bias of a draw is below 2^-50.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        // The upper word is the cell, evenly; the lower word is how far into the cell.
        let wide = u128::from(rng.random::<u64>()) * self.cells.len() as u128;
        let (own, far) = ((wide >> 64) as usize, wide as u64);
        let cell = &self.cells[own];
        select_unpredictable(far < cell.keep, own, cell.other as usize)
    }
}

#[test]
fn indices_come_by_weight_and_never_without() {
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    let long: Vec<f64> = (1..=1000).map(|k| f64::from(k % 7)).collect();
    for weights in [&[3.0][..], &[1.0, 2.0, 0.0, 5.0], &[0.0, 1e300, 1e299], &[1e-300, 0.0], &long] {
        let alias = Alias::new(weights).unwrap_or_else(|| panic!("{weights:?}"));
        let mut seen = vec![0; weights.len()];
        for _ in 0..200_000 {
            seen[alias.draw(&mut rng)] += 1;
        }
        super::theory::fits(&seen, weights);
    }
    for weights in [&[][..], &[0.0], &[1.0, -1.0, 1.0], &[f64::NAN], &[f64::INFINITY, 1.0], &[1e308, 1e308]] {
        assert!(Alias::new(weights).is_none(), "{weights:?}");
    }
}
