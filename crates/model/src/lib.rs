//! Pure data of fathom: every value that passes from one stage to the next, and the text of kernel files read into it.
//!
//! For: types with serde, their arithmetic, their parsers. Not for: reading a file, asking a kernel, judging, printing.
//!
//! The flow is `Request -> Plan -> Record -> Report -> bytes`; [`plan`], [`record`] and [`report`] are those stages.
#![forbid(unsafe_code)]

pub mod annotations;
pub mod answer;
pub mod api;
pub mod capacity;
pub mod captured;
pub mod check_id;
pub mod check_page;
pub mod command;
pub mod comparison;
pub mod cost;
pub mod course;
pub mod depth_counts;
pub mod device_figures;
pub mod devices;
pub mod diagnosis;
pub mod disk_counters;
pub mod diskspd;
pub mod distribution;
pub mod entry;
pub mod errno;
pub mod evidence;
pub mod explained;
pub mod finding;
pub mod fio_layout;
pub mod fitted;
pub mod fleet;
pub mod gate;
pub mod histogram;
pub mod host_figures;
pub mod identity;
pub mod job;
pub mod kernel_files;
pub mod ledger;
pub mod limiter;
pub mod load;
pub mod machine;
pub mod measure;
pub mod name;
pub mod not_measured;
pub mod observed;
pub mod op_log;
pub mod payload;
pub mod plan;
pub mod producer;
pub mod profile;
pub mod quick;
pub mod record;
pub mod replay;
pub mod report;
pub mod scaling;
pub mod session_table;
pub mod shell;
pub mod spec;
pub mod stamp;
mod stand_in;
pub mod steadiness;
pub mod study;
pub mod sweep;
pub mod targets;
pub mod tool_layout;
pub mod typed;
pub mod units;
pub mod verdict;
pub mod verification;
pub mod verified;
pub mod visible;
pub mod watch;

/// A value that was looked at, or the reason why it could not be. Missing is never zero.
pub type Known<T> = Result<T, String>;
