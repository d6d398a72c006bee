//! Carrying a workload out: sources of operations, the one hot loop, and the engines it is compiled for.
//!
//! For: turning a stream of the plan into stamped, counted operations. Not for: choosing targets, preparing files, judging.
//!
//! Section by section: [`source`] says which operation is next, `hot` is the loop, [`tally`] what it counts into,
//! [`engines`] the kernel interfaces, [`workers`] the threads and what passes between them and the collector.
//! Beside them [`verifier`] writes and reads back through the same engines, and measures nothing.
#![forbid(unsafe_code)]

mod barrier;
mod by_target;
pub mod engines;
pub mod facts;
mod hot;
pub mod interface;
mod lane;
mod link;
pub mod outcome;
mod priorities;
pub mod probe;
mod recorder;
pub mod refusal;
pub mod source;
pub mod spec;
pub mod tally;
mod thread_io;
pub mod verifier;
pub mod worker;
pub mod workers;

#[cfg(test)]
mod tests;
