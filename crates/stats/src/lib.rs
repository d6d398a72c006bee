//! Statistics: formulas over plain numbers, each with the paper or book it comes from.
//!
//! A crate of its own, so that it is optimized in debug builds too: tests draw millions of samples with it.
#![forbid(unsafe_code)]
// Tests know their values.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bimodality;
pub mod change;
pub mod comparison;
pub mod intervals;
pub mod knee;
pub mod sample;
pub mod series;
pub mod steady_state;
#[cfg(test)]
mod tests;
