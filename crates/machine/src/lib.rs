//! What is here, and what may be done to it: targets, file systems, block stacks, test files, kernel counters.
//!
//! For: looking at a machine, guarding it, preparing it, and keeping what its kernel says. Not for: measuring (the crate
//! `engine`) nor concluding (the crate `analysis`). Readers of `/proc` and `/sys` take a [`root::Root`], so that trees
//! recorded elsewhere can be read as if they were here.
#![forbid(unsafe_code)]

pub mod async_io;
pub mod cgroup;
mod device;
pub mod device_name;
pub mod devices;
pub mod disk_stats;
pub mod error;
pub mod extents;
mod facts;
pub mod file_extents;
mod file_status;
pub mod file_systems;
#[cfg(test)]
mod fixture;
pub mod host;
pub mod identity;
mod in_use;
pub mod kept_file;
pub mod kept_mark;
pub mod leftovers;
pub mod limits;
pub mod loops;
pub mod marks;
pub mod mountinfo;
pub mod named_files;
pub mod on_devices;
pub mod open_files;
pub mod others;
pub mod overlays;
pub mod pages;
pub mod probe;
pub mod process_io;
pub mod resolve;
pub mod rest;
pub mod rights;
pub mod root;
pub mod safety;
mod same_content;
pub mod signature;
pub mod snapshot;
mod stack;
pub mod stored;
pub mod test_file;
pub mod threads;
pub mod tracer;
mod usage;
mod writers;
