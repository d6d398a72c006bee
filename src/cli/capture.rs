//! `fathom capture`: its flags.

use crate::capture::Request;
use crate::cli::shared_flags;
use crate::cli::shared_flags::{HOW_LONG, OUTPUT, WHAT, WHERE};
use crate::failure::Failure;
use crate::files::output::Replace;
use model::units::{parse_bytes, parse_duration_ns};
use std::path::PathBuf;

/// Record every request that a block device gets, with its latency and task, in one small file.
///
/// The requests are those of one layer of the block stack: of a device, that device; of a file or directory, the device that its file
/// system is on. At the end they are compared with the device's own counters: complete, or incomplete by how many. `fathom show FILE`
/// prints the profile of the load. Needs root, since only root may use the kernel's tracer.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 captured; 1 captured, but events were lost; 2 usage; 3 the machine refused; 130 interrupted before --time was over, what was captured is kept."
)]
pub struct Args {
    /// Block device, file or directory
    #[arg(required_unless_present = "import", value_parser = shared_flags::parser())]
    target: Option<PathBuf>,
    /// Keep only the requests that the threads of this process issued
    #[arg(long, help_heading = WHAT, value_name = "PID")]
    pid: Option<u32>,
    /// Keep only requests within the extents of the file, or of all files below the directory, as these lie when the capture begins and
    /// when it ends; flushes and what is shared with other places are left out, and counted
    #[arg(long, help_heading = WHAT)]
    extents: bool,
    /// Also keep how long each request waited in the I/O scheduler, apart from its time at the device
    #[arg(long, help_heading = WHAT)]
    queue: bool,
    /// Convert a trace of another tool instead: fio's iolog (version 2 or 3), blktrace, the text of blkparse, or a CSV file of MSR
    /// Cambridge
    #[arg(long, help_heading = WHAT, value_name = "FILE", conflicts_with_all = ["target", "pid", "extents", "queue", "time", "buffer"])]
    import: Option<PathBuf>,
    /// Buffer of each CPU in the kernel; larger where events are lost
    #[arg(long, help_heading = WHERE, value_name = "SIZE", default_value = "8m", value_parser = buffer)]
    buffer: u64,
    /// How long [default: until Ctrl-C]
    #[arg(long, help_heading = HOW_LONG, value_name = "DURATION", value_parser = parse_duration_ns)]
    time: Option<u64>,
    /// The capture file; best not on the device that is captured
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    output: PathBuf,
    /// Replace a file that is there and is no text, such as a capture
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
}

/// Parses the buffer size of a CPU, within the kernel's limits.
fn buffer(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if (8 << 10..=4 << 30).contains(&bytes) {
        return Ok(bytes);
    }
    Err("a buffer has 8k to 4g; type 8m, which holds about 100,000 events".into())
}

impl Args {
    /// Returns the request.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<Request, Failure> {
        if self.time == Some(0) {
            return Err(Failure::Usage("--time 0 captures nothing; type 60s, or leave it out".into()));
        }
        Ok(Request {
            target: self.target.unwrap_or_default(),
            import: self.import,
            pid: self.pid,
            extents: self.extents,
            queue: self.queue,
            buffer_bytes: self.buffer,
            time_ns: self.time,
            output: self.output,
            replace: Replace::by(self.force),
        })
    }
}
