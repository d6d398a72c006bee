//! Series whose truth is known.
//!
//! For: tests of what is concluded from series. Not for: anything else.

use model::payload::split_mix;

/// Uniform and normal numbers from a seed (Box and Muller).
pub struct Noise(
    /// The seed, and with every number the state.
    pub u64,
);

impl Noise {
    /// The next one between 0 and 1, either of them never.
    pub fn uniform(&mut self) -> f64 {
        self.0 = split_mix(self.0);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// The next one, with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Around 1, with this deviation and this correlation of neighbours (AR(1)).
pub fn flat(n: usize, deviation: f64, rho: f64, seed: u64) -> Vec<f64> {
    let mut noise = Noise(seed.wrapping_mul(0x9e37).wrapping_add(1));
    let mut last = noise.normal();
    let step = (1.0 - rho * rho).sqrt();
    let mut next = || {
        last = rho * last + step * noise.normal();
        (1.0 + deviation * last).max(0.01)
    };
    (0..n).map(|_| next()).collect()
}
