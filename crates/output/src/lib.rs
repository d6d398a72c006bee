//! The only ways out of the program: failures with their exit codes, standard output and error, and output files.
//!
//! Everything that is printed goes through [`stdout`] or [`stderr`]. They replace control
//! characters that fathom did not write itself. They never write to a block device, not even if a
//! stream was redirected to one by mistake. Every report and other output file goes through [`files`].
#![forbid(unsafe_code)]

pub mod failure;
pub mod files;
pub mod session_directories;
pub mod stderr;
pub mod stdout;
pub mod stream;
