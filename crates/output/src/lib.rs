//! The only ways out of the program: failures with their exit codes, standard output and error, and output files.
//!
//! Everything that is printed goes through [`stdout`] or [`stderr`], so that foreign text cannot control the terminal and no
//! disk is written by a mistaken redirection. Everything that is written goes through [`files`].
#![forbid(unsafe_code)]

pub mod failure;
pub mod files;
pub mod session_directories;
pub mod stderr;
pub mod stdout;
pub mod stream;
