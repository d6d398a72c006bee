//! `fathom capture` and `fathom fit`: their flags.

use crate::cli::shared_flags::{
    HOW_LONG, OUTPUT, SAFETY, UnseenArgs, WHAT, WHERE, formats_of, target_parser,
};
use model::replay::FitCheck;
use model::units::{parse_bytes, parse_duration_ns};
use report::Format;
use std::ffi::OsString;
use std::path::PathBuf;

/// Record every request to a block device, with its latency and task, in one small file.
///
/// fathom records one layer of the block stack: the named device, or the device below the file system of a file or directory. At the end
/// it compares the requests with the device's own counters and reports how many are missing. `fathom show FILE` prints the profile of
/// the load. Requires root: only root may use the kernel's tracer.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 captured; 1 captured, but events were lost; 2 usage; 3 the machine refused; 130 interrupted before --time was over, the capture is kept."
)]
pub struct CaptureArgs {
    /// Block device, file or directory
    #[arg(required_unless_present = "import", value_parser = target_parser())]
    pub(crate) target: Option<PathBuf>,
    /// Keep only the requests that the threads of this process issued
    #[arg(long, help_heading = WHAT, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Keep only requests to blocks that the file, or a file below the directory, had at the beginning or at the end of the capture.
    /// Flushes, and requests that also reach other blocks, are left out and counted
    #[arg(long, help_heading = WHAT)]
    pub(crate) extents: bool,
    /// Also record how long each request waited in the I/O scheduler, separately from its time at the device
    #[arg(long, help_heading = WHAT)]
    pub(crate) queue: bool,
    /// Convert another tool's trace instead: an iolog of fio (version 2 or 3), blktrace, the text of blkparse, or a CSV file of MSR
    /// Cambridge
    #[arg(long, help_heading = WHAT, value_name = "FILE", conflicts_with_all = ["target", "pid", "extents", "queue", "time", "buffer"])]
    pub(crate) import: Option<PathBuf>,
    /// Size of the kernel's trace buffer for each CPU; type more if events are lost
    #[arg(long, help_heading = WHERE, value_name = "SIZE", default_value = "8m", value_parser = parse_buffer_bytes)]
    pub(crate) buffer: u64,
    /// Length of the capture [default: until Ctrl-C]
    #[arg(long, help_heading = HOW_LONG, value_name = "DURATION", value_parser = parse_duration_ns)]
    pub(crate) time: Option<u64>,
    /// Capture file, preferably not on the captured device
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Also replace a file that is not text, such as a capture
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) force: bool,
}

/// Parses the size of the trace buffer of a CPU, within the kernel's limits.
fn parse_buffer_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if (8 << 10..=4 << 30).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{text} is not between 8k and 4g; type a size such as 8m, which holds about 100,000 events"))
}

/// Fit a job to a capture: a job file that behaves like the captured load, for `fathom run`.
///
/// Each task becomes streams with its sizes, offsets, sequential runs and flushes, in a closed loop with think times or an open loop with
/// arrivals. Each figure in the file has a comment: where it comes from and how well it fits. `fathom run CAPTURE` replays the recorded
/// requests themselves; a fitted job can be read, changed, and run for any time.
///
/// With --check fathom runs the job once on TARGET, captures the device of TARGET meanwhile, and compares both captures, each figure with
/// its goal. This requires root, as `fathom capture` does.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fathom fit db.capture -o job.toml                       write the job
  fathom run job.toml /dev/nvme1n1 --destroy SERIAL       run it
  fathom fit --check db.capture /dev/nvme1n1 --destroy SERIAL
  fathom fit --check db.capture /dev/nvme1n1 --destroy SERIAL --job job.toml

Exit codes: 0 fitted, or all goals are met; 1 a goal is missed, or the capture is cut off or damaged and only its intact part was fitted; 2 usage; 3 the machine refused; 4 no goal is missed, but one cannot be decided; 130 interrupted.")]
pub struct FitArgs {
    /// Capture file from `fathom capture`
    pub(crate) capture: PathBuf,
    /// With --check: block device, file or directory that the job runs on
    #[arg(required_if_eq("check", "true"), value_parser = target_parser())]
    pub(crate) target: Option<PathBuf>,
    /// Run the job on TARGET, and compare it with the capture
    #[arg(long, help_heading = WHAT)]
    pub(crate) check: bool,
    /// With --check: run this job file instead of fitting one
    #[arg(long, help_heading = WHAT, value_name = "FILE", requires = "check")]
    pub(crate) job: Option<PathBuf>,
    /// Job file to write [default: -, standard output]. With --check: also write the comparison to FILE, in the format of its extension
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// With --check: format of the comparison
    #[arg(long, help_heading = OUTPUT, default_value = "text", value_parser = formats_of::<FitCheck>())]
    pub(crate) format: &'static Format,
    /// Also replace a file that is not text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) force: bool,
    /// With --check: allow overwriting an existing file (its path) or a block device (its name or serial)
    #[arg(long, help_heading = SAFETY, value_name = "NAME", requires = "check")]
    pub(crate) destroy: Option<OsString>,
    #[command(flatten)]
    pub(crate) unseen: UnseenArgs,
}
