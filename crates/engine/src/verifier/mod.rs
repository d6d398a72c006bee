//! The verifier: writes the blocks of a verification, and reads them back, through any engine.
//!
//! For: operations in flight as deep as asked, made stable between marks, every block examined. Not for: speed (it is not the
//! hot loop, stamps nothing and measures nothing), nor for deciding which write must be where (`model::verification`).
//!
//! `drive` is the loop; a `Work` says what is next and looks at what came of it.

mod drive;
mod reading;
mod work;
mod writing;

pub use self::reading::{all_lost, read_back};
pub use self::writing::{Writing, write};

use crate::engines::Entry;
use crate::source::{Op, Source};
use crate::spec::WorkerSpec;
use model::job::{Cache, Options};
use std::fs::File;
use sys::clock::Clock;
use sys::open_file::{CloseErrors, OpenFile};
use self::work::Work;

/// How the target is reached.
#[derive(Debug)]
pub struct Through {
    /// The engine.
    pub engine: &'static Entry,
    /// What is asked of it.
    pub options: Options,
    /// What the file was opened with.
    pub cache: Cache,
    /// Operations in flight; fewer where the engine has less.
    pub depth: u32,
    /// The clock that an engine may need.
    pub clock: Clock,
}

/// Has the engine do a work on an open file.
fn run_work(
    through: &Through,
    file: File,
    writes: bool,
    block_bytes: u32,
    work: &mut dyn Work,
) -> Result<(), String> {
    let errors = CloseErrors::default();
    let files = vec![OpenFile::reporting(file, writes, 0, &errors)];
    let spec = WorkerSpec {
        depth: through.depth.clamp(1, through.engine.max_depth),
        slot_bytes: block_bytes,
        writes,
        options: through.options.clone(),
        cache: through.cache,
        ..WorkerSpec::plain(through.engine, vec![Box::new(Nothing)], files, 0, through.clock)?
    };
    self::drive::drive_engine(through.engine, spec, work)?;
    errors.take().iter().for_each(|(_, errno)| work.closed(-errno));
    Ok(())
}

/// Stands where the hot loop would have its operations from.
struct Nothing;

impl Source for Nothing {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op::NONE);
    }
}

#[cfg(test)]
mod tests;
