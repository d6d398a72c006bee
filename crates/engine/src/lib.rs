//! Runs workloads: sources of operations, the hot loop, and the engines it is compiled for.
//!
//! 1. [`source`] turns a stream of the plan into lanes of operations.
//! 2. [`workers`] starts the threads. Each thread (`worker`) runs the hot loop (`hot`), which is
//!    compiled for each engine.
//! 3. [`engines`] are the kernel interfaces that execute the operations; [`interface`] defines what
//!    an engine is.
//! 4. The loop counts into the blocks of [`link`], which travel to the collector; `recorder`
//!    handles single operations for logs and verification.
//! 5. [`verifier`] writes and reads back through the same engines, and measures nothing.
#![forbid(unsafe_code)]

pub mod engines;
mod hot;
pub mod interface;
pub mod link;
mod recorder;
pub mod source;
pub mod spec;
pub mod verifier;
mod worker;
pub mod workers;

#[cfg(test)]
mod tests;
