//! The engine `fstream`: streams of the C++ library.
//!
//! For: what a C++ program pays that calls `read` and `write` of `std::fstream`. Not for: direct I/O. It is there only where fathom
//! was built with the feature `cxx`.

use super::streams::{Library, Streams};
use crate::interface::Granted;
use crate::spec::WorkerSpec;
use std::fs::File;
use std::io;
use sys::fstream::Stream;

pub(super) type Fstream = Streams<Stream>;

impl Library for Stream {
    fn opener(_: &WorkerSpec) -> io::Result<(impl Fn(&File) -> io::Result<Self>, Granted)> {
        Ok((Self::new, Granted::default()))
    }
}
