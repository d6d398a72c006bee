//! fathom measures storage, and says whether the number means what you think it means.
//!
//! One way through, each stage a value: [`request`] (said) -> [`plan`] (meant) -> record (seen, [`run`] and [`session`])
//! -> report (concluded, crate `analysis`) -> bytes (shown, crate `report`). No stage reaches back.
#![forbid(unsafe_code)]

mod allowed;
mod block_events;
pub mod capture;
mod capture_file;
pub mod captured;
pub mod cli;
pub mod collector;
pub mod compare;
mod content;
pub mod devices;
pub mod doctor;
pub mod explain;
pub mod failure;
pub mod fit;
pub mod fleet;
pub mod foreign;
pub mod history;
mod input;
pub mod interfaces;
pub mod live;
pub mod op_log;
pub mod output;
pub mod plan;
pub mod recipes;
mod replay;
pub mod request;
pub mod run;
pub mod session;
pub mod show;
pub mod signals;
pub mod spared;
pub mod stderr;
pub mod stdout;
mod stream;
pub mod target;
pub mod time;
mod trace;
mod traced;
pub mod verify;
pub mod watch;
mod whole;
