//! All unsafe code of fathom: safe, owned types over Linux facilities, one file each.
//!
//! For: rings, arenas, clocks, and system calls that no maintained crate offers safely. Not for: policy; nothing here
//! decides what is measured. Depends on none of our crates. Every unsafe block says why it is sound.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod aio;
pub mod allocator;
pub mod arena;
pub mod cachestat;
pub mod calls;
mod cause;
pub mod children;
pub mod clock;
pub mod default_action;
pub mod done;
pub mod fanotify;
mod fault;
pub mod fiemap;
#[cfg(feature = "cxx")]
pub mod fstream;
pub mod granted;
pub mod io_calls;
pub mod ioctl;
pub mod lease;
pub mod mapping;
pub mod memory_file;
pub mod memory_policy;
pub mod named_file;
pub mod open_file;
pub mod open_flags;
pub mod perf;
pub mod pipe;
pub mod posix_aio;
pub mod readahead;
pub mod ring;
pub mod slots;
pub mod stable;
pub mod standard;
pub mod stdio;
pub mod stream;
pub mod thread;

pub use cause::cause;
pub mod tracefs;
pub mod user;
pub mod vectors;
