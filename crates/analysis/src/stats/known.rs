//! Series whose truth is known.
//!
//! For: tests of what is concluded from series. Not for: anything else.

use model::payload::split_mix;

/// Normal numbers from a seed (Box and Muller).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = split_mix(self.0);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Around 1, with this deviation and this correlation of neighbours (AR(1)).
pub(crate) fn flat(n: usize, deviation: f64, rho: f64, seed: u64) -> Vec<f64> {
    let mut noise = Noise(seed.wrapping_mul(0x9e37).wrapping_add(1));
    let mut last = noise.normal();
    let step = (1.0 - rho * rho).sqrt();
    let mut next = || {
        last = rho * last + step * noise.normal();
        (1.0 + deviation * last).max(0.01)
    };
    (0..n).map(|_| next()).collect()
}
