//! Block I/O captures: the capture file, its profile, its replay, a fitted job, and traces of other tools.
//!
//! Everything works on bytes and rows over `io::Read` and `io::Write`, in bounded memory. Invalid input of
//! any kind leads to rows or an error, never to a panic. Crate `trace` decodes the kernel's trace,
//! crate `report` has the layout of results.
#![forbid(unsafe_code)]

pub mod capture_file;
pub mod completeness;
pub mod file_requests;
pub mod fit;
pub mod foreign;
pub mod profile;
pub mod replay;
