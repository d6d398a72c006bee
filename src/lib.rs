//! fathom measures storage and checks whether the number means what you think it means.
//!
//! Data flows through five stages, each a value:
//! 1. [`request`]: what the user asked for.
//! 2. [`plan`]: every setting resolved.
//! 3. record: the observations, made by [`run`] and stored by [`history::session`].
//! 4. report: the conclusions (crate `analysis`).
//! 5. bytes: the output (crate `report`).
//!
//! No stage reaches back.
#![forbid(unsafe_code)]

mod block_events;
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
