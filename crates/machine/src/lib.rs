//! What is here, and what may be done to it: targets, file systems, block stacks, test files, kernel counters.
//!
//! For: looking at a machine, guarding it, preparing it, and keeping what its kernel says. Not for: measuring (the crate
//! `engine`) nor concluding (the crate `analysis`). Readers of `/proc` and `/sys` take a [`root::Root`], so that trees
//! recorded elsewhere can be read as if they were here.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod devices;
pub mod error;
pub mod extents;
pub mod file_systems;
#[cfg(test)]
mod fixture;
pub mod host;
pub mod identity;
mod in_use;
pub mod kept_file;
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
mod stack;
pub mod test_file;
pub mod threads;
pub mod tracer;
