//! fathom measures storage and checks whether the number means what you think it means.
//!
//! Data flows through five stages, each a value:
//! 1. [`request`]: what the user asked for.
//! 2. [`plan`]: every setting resolved.
//! 3. record: the observations, made by [`run`] and stored by [`history::session`].
//! 4. report: the conclusions (crate `analysis`).
//! 5. bytes: the output (crate `report`).
//!
//! A stage uses only the values of the stages before it.
#![forbid(unsafe_code)]

#[cfg_attr(not(feature = "capture"), allow(dead_code, reason = "`fathom capture` uses all of it"))]
mod block_events;
#[cfg(feature = "capture")]
pub mod capture;
#[cfg(not(feature = "capture"))]
#[path = "without_capture.rs"]
pub mod capture;
pub mod cli;
pub mod doctor;
pub mod fleet;
pub mod interfaces;
pub mod plan;
pub mod recipes;
pub mod request;
pub mod run;
pub mod show;
pub mod signals;
pub mod time;
pub mod verify;
pub mod watch;

pub use ::{history, live};
pub use history::session;
pub use output::{failure, files, stderr, stdout};
