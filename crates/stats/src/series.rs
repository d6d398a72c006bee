//! A series: rates of equal weight, one after another.
//!
//! For: what questions about time (warm-up, steps, drift, independence) are asked of. Not for: the answers, nor how a run becomes a
//! series (`run_series`).

/// Steps below which a series says nothing: ten observations are the least that any rule here takes.
pub const FEWEST_STEPS: usize = 10;

/// Operations per second over a run's measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// ns from the workers' start to the first step.
    pub from_ns: f64,
    /// Length of a step in ns.
    pub step_ns: f64,
    /// One rate per step.
    pub rates: Vec<f64>,
}

impl Series {
    /// Length of all in seconds.
    pub fn seconds(&self) -> f64 {
        self.step_ns * self.rates.len() as f64 / 1e9
    }

    /// Seconds from the first step to the beginning of another.
    pub fn second_of(&self, step: usize) -> f64 {
        self.step_ns * step as f64 / 1e9
    }
}

/// A share that depends on how long a run is: from a minute on, from ten seconds on, and below. A second holds the odd pause
/// of a scheduler, a minute hardly any.
pub struct ByLength {
    /// The share from a minute on.
    pub minute: f64,
    /// The share from ten seconds on.
    pub ten_seconds: f64,
    /// The share of what is shorter than ten seconds.
    pub shorter: f64,
}

impl ByLength {
    /// The share for a run.
    pub fn share_for(&self, series: &Series) -> f64 {
        self.at(series.seconds())
    }

    /// The share for so many seconds. A window of a minute may end a few ms before it.
    pub fn at(&self, seconds: f64) -> f64 {
        match seconds {
            s if s >= 59.5 => self.minute,
            s if s >= 9.9 => self.ten_seconds,
            _ => self.shorter,
        }
    }
}
