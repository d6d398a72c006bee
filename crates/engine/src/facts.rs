//! Facts of an engine: its name, what it can do, what can be asked of it.
//!
//! For: help, plans and the specs of workers. Not for: the code behind it ([`crate::engines::Entry`]).

use model::job::{Cache, Kind, WITHOUT_DATA};

/// What is known of an engine before it is opened.
#[allow(clippy::struct_excessive_bools, reason = "each is said of its own")]
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// What `--engine` takes.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Whether it moves bytes of a target.
    pub moves_bytes: bool,
    /// Whether operations are over when the call returns that submits them, so that nothing can be prepared meanwhile.
    pub in_the_call: bool,
    /// Whether threads of a library carry its operations out. They live on from run to run with the file table they were
    /// born with, so workers must share theirs.
    pub library_threads: bool,
    /// Most operations it can have in flight per worker, whatever is asked.
    pub max_depth: u32,
    /// Operations submitted per call unless asked otherwise; 0 stands for the whole depth.
    pub default_batch: u32,
    /// What it can do.
    pub kinds: &'static [Kind],
    /// What its files may be opened with; the first is its default.
    pub caches: &'static [Cache],
    /// Whether the kernel can be told a priority of each read and write.
    pub takes_priorities: bool,
    /// What can be asked of it, as in `--engine io_uring:iopoll`.
    pub options: &'static [EngineOption],
}

impl Facts {
    /// Whether it opens targets: it moves their bytes, or changes them without.
    pub fn touches_targets(&self) -> bool {
        self.moves_bytes || WITHOUT_DATA.contains(&self.name)
    }
}

/// Something that can be asked of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOption {
    /// What stands for it behind the colon of `--engine`.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Whether a number follows it.
    pub number: Number,
}

/// Whether a number follows an option, as in `sqpoll=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Never.
    No,
    /// It may.
    May,
    /// Always.
    Must,
}
