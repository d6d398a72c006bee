//! Languages in which workloads are written down: a text in, a [`model::spec::JobSpec`] out.
//!
//! For: reading them, and messages that point at the place. Not for: defaults (the plan) nor for finding files.
#![forbid(unsafe_code)]

pub mod job;
pub mod trouble;

pub use trouble::Trouble;
