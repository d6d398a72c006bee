//! fathom measures storage, and says whether the number means what you think it means.
//!
//! One way through, each stage a value: [`request`] (said) -> [`plan`] (meant) -> record (seen, [`run`] and [`session`])
//! -> report (concluded, crate `analysis`) -> bytes (shown, crate `report`). No stage reaches back.
#![forbid(unsafe_code)]

pub mod capture;
pub mod cli;
pub mod doctor;
pub mod failure;
pub mod files;
pub mod fleet;
pub mod history;
pub mod live;
pub mod plan;
pub mod request;
pub mod run;
pub mod session;
pub mod show;
pub mod signals;
pub mod stderr;
pub mod stdout;
pub mod time;
pub mod verify;
pub mod watch;
