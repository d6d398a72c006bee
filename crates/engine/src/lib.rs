//! Carrying a workload out: sources of operations, the one hot loop, and the engines it is compiled for.
//!
//! For: turning a stream of the plan into stamped, counted operations. Not for: choosing targets, preparing files, judging.
//!
//! Section by section: [`source`] says which operation is next, `hot` is the loop, [`tally`] what it counts into,
//! [`engines`] the kernel interfaces, [`crew`] the threads and what passes between them and the collector.
//! Beside them [`verifier`] writes and reads back through the same engines, and measures nothing.
#![forbid(unsafe_code)]

pub mod crew;
pub mod engines;
mod hot;
mod lane;
pub mod source;
pub mod tally;
pub mod verifier;
pub mod worker;

#[cfg(test)]
mod tests;
