//! The machine that fathom runs on: devices, file systems, who uses them, test files and kernel counters.
//!
//! Four groups of modules:
//! 1. `host`, `rights`, `devices`, `stack`, `file_systems`, `resolve`, `extents` and `named_files` find what is there.
//! 2. `identity`, `loop_devices`, `exports`, `in_use`, `signature` and `safety` decide what may be written.
//! 3. `test_file`, `kept_file`, `mark`, `page_cache` and `probe` prepare targets.
//! 4. `snapshot`, `cgroup`, `processes`, `threads` and `tracer` record what the kernel reports.
//!
//! Readers of `/proc` and `/sys` take a [`root::Root`], so that a recorded copy can be read like the running
//! machine. The crate `analysis` interprets what is read here.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod devices;
pub mod error;
mod exports;
pub mod extents;
pub mod file_systems;
#[cfg(test)]
mod fixture;
pub mod host;
pub mod identity;
mod in_use;
pub mod kept_file;
pub mod loop_devices;
pub mod mark;
pub mod named_files;
pub mod page_cache;
pub mod probe;
pub mod processes;
pub mod resolve;
pub mod rights;
pub mod root;
pub mod safety;
pub mod signature;
pub mod snapshot;
pub mod stack;
pub mod test_file;
pub mod threads;
pub mod tracer;
