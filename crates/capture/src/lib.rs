//! Block I/O captures: decoding the kernel's trace, the capture file, its profile, its replay, a fitted job,
//! and traces of other tools.
//!
//! Everything works on bytes and rows over `io::Read` and `io::Write`, in bounded memory. Invalid input of
//! any kind leads to rows or an error, never to a panic. The tracer itself is in the crate `machine`, the
//! layout of results in `report`.
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

/// Bytes of the kernel's sectors, whatever the device's own are.
pub const SECTOR: u64 = 512;
