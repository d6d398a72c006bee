//! What is here and what may be done to it.
//!
//! For: resolving a target down to its devices, deciding whether it may be written, making test files, and keeping kernel
//! text at named moments. Not for: measuring, nor concluding. All readers of `/proc` and `/sys` take a [`root::Root`].
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod error;
pub mod host;
pub mod mountinfo;
pub mod pages;
pub mod resolve;
pub mod rest;
pub mod root;
pub mod safety;
pub mod signature;
pub mod snapshot;
pub mod stack;
pub mod test_file;
