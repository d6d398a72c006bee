//! Block I/O as it was seen: the kernel's trace decoded and paired, the capture file, its profile, its
//! requests to be replayed or described by a job, and traces of other tools.
//!
//! For: pure work on bytes and rows, over `io::Read` and `io::Write`. Not for: the tracer itself (crate `machine`), nor for layout
//! (crate `report`). Whatever a file or a kernel buffer holds, the answer is rows or words, never a panic.
#![forbid(unsafe_code)]

pub mod capture_file;
pub mod completeness;
pub mod file_requests;
pub mod fit;
pub mod foreign;
pub mod interval;
pub mod profile;
pub mod replay;
pub mod row;
pub mod trace;

/// Bytes of the sectors that the kernel counts in, whatever the device's own are.
pub const SECTOR: u64 = 512;
