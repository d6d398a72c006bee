//! Plain tools: dd, hdparm and ioping, each carried out as it does it, with its lines, and what the disk did meanwhile.
//!
//! For: loops that no job says: a copy from one place to another, and reads that a line is printed for. Not for: their languages
//! (crate `dialect`), nor for workloads, which are planned, measured and judged.
//!
//! What tells a disk from a cache is the same for all three: counters of the kernel before and after (`look`).

mod buffer;
pub mod dd;
pub mod hdparm;
pub mod ioping;
mod look;
pub mod may_write;
mod words;
