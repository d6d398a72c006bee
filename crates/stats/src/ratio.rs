//! One rate by another, and what may be said of it.
//!
//! For: every sentence that calls one result faster, slower or as fast as another one of the same session: it stands only where
//! the 95 % interval of the ratio carries it. Not for: two sessions, which have more witnesses (`compare`).

use crate::welch::Shift;

/// One rate by another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of their geometric means.
    pub value: f64,
    /// Its 95 % interval over the runs of both; `None` with fewer than three on a side, where nothing can be said.
    pub interval: Option<[f64; 2]>,
}

impl Ratio {
    /// The rates of some runs by those of others. `None` where one has no run, or one of no rate.
    pub fn from_rates(rates: &[f64], base: &[f64]) -> Option<Self> {
        let logs = |rates: &[f64]| -> Option<Vec<f64>> {
            let all = rates.iter().all(|r| r.is_finite() && *r > 0.0) && !rates.is_empty();
            all.then(|| rates.iter().map(|r| r.ln()).collect())
        };
        let (rates, base) = (logs(rates)?, logs(base)?);
        let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
        let interval = Shift::new(&base, &rates).map(|shift| shift.interval().map(f64::exp));
        Some(Self { value: (mean(&rates) - mean(&base)).exp(), interval })
    }

    /// Whether it is more than this, by all that the runs say.
    pub fn is_above(&self, limit: f64) -> bool {
        self.interval.is_some_and(|[low, _]| low > limit)
    }

    /// Whether it is less than this, by all that the runs say.
    pub fn is_below(&self, limit: f64) -> bool {
        self.interval.is_some_and(|[_, high]| high < limit)
    }

    /// Whether it differs from 1 by no more than this factor, by all that the runs say.
    pub fn is_one(&self, within: f64) -> bool {
        self.is_above(1.0 / within) && self.is_below(within)
    }
}

#[test]
fn what_overlaps_is_neither_faster_nor_slower_nor_the_same() {
    // The figures of a virtual disk: 12,677 IOPS with a deviation of half of it, against 14,573 with a tenth.
    let shaky = [6_000.0, 9_000.0, 13_000.0, 17_000.0, 27_000.0];
    let calm = [13_000.0, 13_900.0, 14_500.0, 15_300.0, 16_200.0];
    let ratio = Ratio::from_rates(&shaky, &calm).unwrap();
    assert!(
        ratio.value < 1.0 && !ratio.is_below(1.0) && !ratio.is_above(1.0) && !ratio.is_one(1.1),
        "{ratio:?}"
    );
    let half: Vec<f64> = calm.iter().map(|r| r / 2.0).collect();
    assert!(Ratio::from_rates(&half, &calm).unwrap().is_below(1.0 / 1.1));
    assert!(Ratio::from_rates(&calm, &half).unwrap().is_above(1.1));
    assert!(Ratio::from_rates(&[100.0, 101.0, 99.0], &[100.0; 3]).unwrap().is_one(1.1));
}

#[test]
fn two_runs_have_a_ratio_of_which_nothing_is_said() {
    let ratio = Ratio::from_rates(&[9.0, 9.0], &[1.0, 1.0, 1.0]).unwrap();
    assert!(ratio.interval.is_none() && !ratio.is_above(1.0) && !ratio.is_below(99.0));
    assert_eq!(Ratio::from_rates(&[], &[1.0]), None);
    assert_eq!(Ratio::from_rates(&[0.0, 1.0], &[1.0]), None);
}
