//! Statistics: formulas over plain numbers, each with the paper or the book that it is from.
//!
//! For: what every conclusion stands on. Not for: runs, records and reports, of which nothing here knows.
//! A crate of its own, since tests draw some million samples with it: it is optimized there, where most of fathom is built quickly.
#![forbid(unsafe_code)]
// Tests know their values.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod autocorrelation;
pub mod batch_means;
pub mod best;
pub mod bimodality;
pub mod bootstrap;
pub mod change;
pub mod drift;
pub mod holm;
pub mod interval;
pub mod knee;
pub mod known;
pub mod median_interval;
pub mod mser;
pub mod preconditioned;
pub mod proportion;
pub mod ranks;
pub mod ratio;
#[cfg(test)]
mod reference;
pub mod rounds;
pub mod sample;
pub mod sample_size;
pub mod series;
pub mod snia;
pub mod student;
pub mod two_samples;
pub mod warm_up;
pub mod welch;
