//! Pure data of fathom: every value that passes from one stage to the next, and the text of kernel files read into it.
//!
//! For: types with serde, their arithmetic, their parsers. Not for: reading a file, asking a kernel, judging, printing.
//!
//! The flow is `Request -> Plan -> Record -> Report -> bytes`; [`plan`], [`record`] and [`report`] are those stages.
#![forbid(unsafe_code)]

pub mod captured;
pub mod command;
pub mod comparison;
pub mod diskspd;
pub mod errno;
pub mod evidence;
pub mod figures;
pub mod finding;
pub mod fleet;
pub mod gate;
pub mod histogram;
pub mod history;
pub mod job;
pub mod machine;
pub mod name;
pub mod payload;
pub mod plan;
pub mod profile;
pub mod record;
pub mod replay;
pub mod report;
pub mod spec;
pub mod stamp;
pub mod study;
pub mod sweep;
pub mod units;
pub mod verification;
pub mod watch;

/// A value that was looked at, or the reason why it could not be. Missing is never zero.
pub type Known<T> = Result<T, String>;
