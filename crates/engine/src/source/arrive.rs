//! Arrivals that come in bursts.
//!
//! For: times of an open loop in which several operations come at once, or which is off at times. Not for: even and independent
//! arrivals ([`super::pace`]), nor waiting.

use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Batches at exponential distances, of geometric size.
#[derive(Debug)]
pub(super) struct Batches {
    /// Mean distance of batches in ns.
    gap_ns: f64,
    /// Chance that an operation begins a batch.
    begins: f64,
    rng: Xoshiro256PlusPlus,
}

impl Batches {
    /// Of operations that are so many ns apart in the mean, so many of them in a batch.
    pub(super) fn new(mean_ns: f64, batch: f64, rng: Xoshiro256PlusPlus) -> Result<Self, String> {
        if !(batch >= 1.0 && batch.is_finite()) {
            return Err(format!("a batch of {batch} arrivals is none; give 1 or more"));
        }
        Ok(Self { gap_ns: mean_ns * batch, begins: 1.0 / batch, rng })
    }

    /// From the last operation to the next, in ns.
    pub(super) fn next(&mut self) -> f64 {
        if self.rng.random::<f64>() < self.begins { exponential(self.gap_ns, &mut self.rng) } else { 0.0 }
    }
}

/// At random while on, none while off.
#[derive(Debug)]
pub(super) struct OnOff {
    /// Mean distance of operations while it is on, in ns.
    gap_ns: f64,
    on_ns: f64,
    off_ns: f64,
    /// How long it is still on.
    left_ns: f64,
    /// Time off that has passed already when it begins.
    begins_ns: f64,
    rng: Xoshiro256PlusPlus,
}

impl OnOff {
    /// Of operations that are so many ns apart in the mean, times off among them. It begins as if it had always been there.
    pub(super) fn new(
        mean_ns: f64,
        (on_ns, off_ns): (u64, u64),
        mut rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        if on_ns == 0 {
            return Err("arrivals that are never on are none; give a time above 0".into());
        }
        let (on_ns, off_ns) = (on_ns as f64, off_ns as f64);
        let share_on = on_ns / (on_ns + off_ns);
        // What is left of an exponential time is as long as a new one.
        let is_on = rng.random::<f64>() < share_on;
        let begins_ns = if is_on { 0.0 } else { exponential(off_ns, &mut rng) };
        let left_ns = exponential(on_ns, &mut rng);
        Ok(Self { gap_ns: mean_ns * share_on, on_ns, off_ns, left_ns, begins_ns, rng })
    }

    /// From the last operation to the next, in ns.
    pub(super) fn next(&mut self) -> f64 {
        let mut on = exponential(self.gap_ns, &mut self.rng);
        let mut passed = std::mem::take(&mut self.begins_ns);
        while on > self.left_ns {
            on -= self.left_ns;
            passed += self.left_ns + exponential(self.off_ns, &mut self.rng);
            self.left_ns = exponential(self.on_ns, &mut self.rng);
        }
        self.left_ns -= on;
        passed + on
    }
}

fn exponential(mean: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    mean * Distribution::<f64>::sample(&Exp1, rng)
}
