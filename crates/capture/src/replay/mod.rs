//! Replaying a capture: what its requests are to whoever carries them out again, and what each waits for.
//!
//! For: pure work on rows, in memory that does not grow with their number: one pass that finds out what the load is like ([`Scan`]), a
//! second one that makes steps of it ([`Steps`]). Not for: submitting them (crate `engine`).
//!
//! A request waits for the last one of its task that had completed before it was issued, and then as long as it did. Where it is known
//! who asked for flushes, these are replayed, and not what the device got for them.

mod chain;
mod extents;
pub(crate) mod operations;
mod scan;
mod steps;

pub use self::scan::{Load, Scan};
pub use self::steps::{ReplaySettings, Step, Steps};

#[cfg(test)]
mod tests;
