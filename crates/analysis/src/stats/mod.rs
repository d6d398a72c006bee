//! Statistics: formulas over plain numbers, each with the paper or the book that it is from.
//!
//! For: the floor that everything else here stands on. Not for: runs, records and reports, of which nothing here knows.

pub(crate) mod autocorrelation;
pub(crate) mod batch_means;
pub(crate) mod bimodality;
pub(crate) mod bootstrap;
pub(crate) mod change;
pub(crate) mod drift;
pub(crate) mod holm;
pub(crate) mod interval;
pub(crate) mod knee;
#[cfg(test)]
pub(crate) mod known;
pub(crate) mod median_interval;
pub(crate) mod mser;
pub mod preconditioned;
pub(crate) mod proportion;
pub(crate) mod ranks;
pub(crate) mod ratio;
#[cfg(test)]
mod reference;
pub mod rounds;
pub(crate) mod sample;
pub(crate) mod sample_size;
pub(crate) mod series;
pub(crate) mod snia;
pub(crate) mod student;
pub(crate) mod two_samples;
pub(crate) mod warm_up;
pub(crate) mod welch;
