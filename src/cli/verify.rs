//! `fathom verify`: its flags.

use crate::cli::shared_flags::{
    FleetArgs, HOW_DEEP, HOW_LONG, OUTPUT, OutputArgs, SAFETY, UnseenArgs, WHAT, WHERE, formats_of,
    target_parser,
};
use crate::failure::Failure;
use crate::plan::engine_names;
use clap::value_parser;
use engine::engines;
use model::job::{Cache, Layout};
use model::spec::{EngineSpec, JobSpec, PhaseSpec, StreamSpec, keys};
use model::stamp::SECTOR;
use model::units::parse_bytes;
use model::verification::{MAX_BLOCK_BYTES, Verifications};
use report::Format;
use std::ffi::OsString;
use std::path::PathBuf;

/// Write, read back, and report every block that was lost, torn, misplaced or changed.
///
/// In a directory, fathom makes a test file and removes it at the end. A file or a block device is overwritten only if --destroy names
/// it. With --state, --check can verify the data after a crash. Under mpirun on several hosts, each host writes and reads back its own
/// file, or its part of one.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 verified; 1 damaged; 2 usage; 3 the machine refused, or nothing could be verified; 130 interrupted before any damage was found."
)]
pub struct Args {
    /// Directory, file or block device [default: the current directory; with --check the target of the writer]
    #[arg(value_parser = target_parser())]
    pub(crate) target: Option<PathBuf>,
    /// Bytes per block, a multiple of 512
    #[arg(long, help_heading = WHAT, value_name = "SIZE", value_parser = parse_block, default_value = "64k")]
    pub(crate) bs: u32,
    /// I/O interface, with its options [default: io_uring]
    #[arg(long, help_heading = WHAT, value_name = "NAME[:OPTIONS]", value_parser = parse_engine)]
    pub(crate) engine: Option<EngineSpec>,
    /// How the target is opened: direct, buffered, sync, dsync, direct-sync, direct-dsync or mmap [default: direct]
    #[arg(long, help_heading = WHAT, value_name = "WORD", value_parser = |text: &str| parse_setting("cache", text, |_, s| s.cache))]
    pub(crate) cache: Option<Cache>,
    /// Seed for the order of writes and reads [default: from the clock]
    #[arg(long, help_heading = WHAT)]
    pub(crate) seed: Option<u64>,
    /// After every sync, record in FILE which data are stable, for a later --check
    #[arg(long, help_heading = WHAT, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Write nothing: read back the data that FILE, written with --state, lists as stable
    #[arg(long, help_heading = WHAT, value_name = "FILE", conflicts_with_all = WRITING)]
    pub(crate) check: Option<PathBuf>,
    /// Read back through the page cache without evicting the target first
    #[arg(long, help_heading = WHAT)]
    pub(crate) cached: bool,
    /// Size of the part that is written, such as 4g [default: 1g for a test file in a directory,
    /// otherwise the whole target]
    #[arg(long, help_heading = WHERE, value_parser = |text: &str| parse_setting("size", text, |_, s| s.size))]
    pub(crate) size: Option<u64>,
    /// First byte to use [default: 0]
    #[arg(long, help_heading = WHERE, value_name = "SIZE", value_parser = |text: &str| parse_setting("offset", text, |_, s| Some(s.resolved.access.offset_bytes)))]
    pub(crate) offset: Option<u64>,
    /// One file or device for all hosts; each host has one contiguous part
    #[arg(long, help_heading = WHERE, value_name = "segmented", value_parser = parse_shared)]
    pub(crate) shared: Option<Layout>,
    /// Each host reads back the data of the host N ranks after it [default: 0, its own data]
    #[arg(long, help_heading = WHERE, value_name = "N", value_parser = |text: &str| parse_setting("shift-hosts", text, |_, s| Some(s.resolved.shift_hosts)))]
    pub(crate) shift_hosts: Option<u32>,
    /// Number of times that every block is written, each time in another order
    #[arg(long, help_heading = HOW_LONG, default_value_t = 2, value_parser = value_parser!(u32).range(1..))]
    pub(crate) passes: u32,
    /// Stop writing after this time, and read back what was written
    #[arg(long, help_heading = HOW_LONG, value_name = "DURATION", value_parser = |text: &str| parse_setting("time", text, |p, _| p.time))]
    pub(crate) time: Option<u64>,
    /// Number of writes between two syncs
    #[arg(long, help_heading = HOW_LONG, value_name = "N", default_value_t = 1024, value_parser = value_parser!(u64).range(1..))]
    pub(crate) sync_every: u64,
    /// Number of operations in flight
    #[arg(long, help_heading = HOW_DEEP, value_name = "N", default_value = "16", value_parser = |text: &str| parse_setting("depth", text, |_, s| s.depth))]
    pub(crate) depth: u32,
    /// Format of the result
    #[arg(long, help_heading = OUTPUT, default_value = "text", value_parser = formats_of::<Verifications>())]
    pub(crate) format: &'static Format,
    #[command(flatten)]
    pub(crate) files: OutputArgs,
    /// Print no progress on standard error
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Allow overwriting an existing file (its path) or a block device (its name or serial)
    #[arg(long, help_heading = SAFETY, value_name = "NAME")]
    pub(crate) destroy: Option<OsString>,
    #[command(flatten)]
    pub(crate) unseen: UnseenArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}

/// Flags that conflict with --check, which writes nothing and takes the written blocks from the
/// state file.
#[rustfmt::skip]
const WRITING: [&str; 11] = [
    "size", "offset", "bs", "shared", "passes", "time", "sync_every", "seed", "state", "destroy",
    "unseen_users",
];

impl Args {
    /// Refuses `--cached` along with a cache mode that bypasses the page cache.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub(crate) fn check_cached(&self) -> Result<(), Failure> {
        if self.cached && self.cache.is_none_or(Cache::is_direct) {
            return Err(Failure::Usage(
                "--cached requires a --cache that is not direct, such as buffered: direct reads bypass the page cache"
                    .into(),
            ));
        }
        Ok(())
    }
}

fn parse_block(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text)?;
    let block = u32::try_from(bytes)
        .ok()
        .filter(|b| (1..=MAX_BLOCK_BYTES).contains(b) && (*b as usize).is_multiple_of(SECTOR));
    block.ok_or_else(|| {
        format!("'{text}' is not a multiple of {SECTOR} bytes up to 1g; type a size such as 4k or 64k")
    })
}

/// Accepts only the segmented layout: each host verifies one part of the file.
fn parse_shared(text: &str) -> Result<Layout, String> {
    match parse_setting("shared", text, |_, s| s.shared)? {
        Layout::Segmented => Ok(Layout::Segmented),
        _ => Err(format!(
            "'{text}' is not possible, since each host verifies one contiguous part of the file; type segmented"
        )),
    }
}

/// Accepts only engines that move bytes: others leave nothing to verify.
fn parse_engine(text: &str) -> Result<EngineSpec, String> {
    let engine = parse_setting("engine", text, |_, s| s.engine.clone())?;
    let entry = engines::find(&engine.name);
    match entry.map_or(Some(engine.name.clone()), |entry| entry.name_without_data(engine.options.keys())) {
        None => Ok(engine),
        Some(name) => Err(format!(
            "the engine {name} moves no data that could be verified; type one of {}",
            engine_names(|e| e.moves_bytes)
        )),
    }
}

/// Parses a setting with the parser of its key, as other commands do.
fn parse_setting<T>(
    key: &str,
    text: &str,
    take: impl FnOnce(&PhaseSpec, &StreamSpec) -> Option<T>,
) -> Result<T, String> {
    let unusable = || format!("'{text}' is not a value of {key}");
    let mut job = JobSpec::default();
    keys::find(key).ok_or_else(unusable)?.parse_into_job(&mut job, [text])?;
    let phase = job.phases.first();
    phase.and_then(|phase| take(phase, phase.streams.first()?)).ok_or_else(unusable)
}
