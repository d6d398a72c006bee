//! `fathom layers`: its flags.

use crate::cli::shared_flags::{Measuring, ReportArgs, check_job, target_parser};
use crate::failure::Failure;
use crate::request::{Request, Work};
use crate::show::Showing;
use stats::intervals::FEWEST_RUNS;
use std::path::PathBuf;

/// Run the same workload at every layer of a target to show what each layer costs: devices, file system, page cache.
///
/// The workload is 8 KiB random reads and writes unless --bs and --rw change it. It runs on each block device in the target's stack that
/// can be opened (reads only), then in three ways through the file system: with direct I/O, with direct I/O and a sync in each write, and
/// through the page cache. The report has the device's own counts next to fathom's. A device is read at the blocks in which the file is
/// stored. If these blocks are unknown (btrfs, volumes, RAID), the row of the device is omitted with the reason.
///
/// By default the kernel writes dirty pages to the device after half a minute. With --time 36s, the figures of
/// buffered writes include this write-back.
///
/// An existing file or device is only read, unless --destroy names it.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory, file or block device [default: the current directory]
    #[arg(value_parser = target_parser())]
    target: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    /// Returns the request.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<(Request, Showing), Failure> {
        let request = self.measuring.request(Work::Layers, self.target);
        if let Some(runs) = request.job.runs.filter(|r| *r < FEWEST_RUNS as u32) {
            return Err(Failure::Usage(format!(
                "--runs {runs}: too few runs to distinguish the cost of a layer from noise; type --runs {FEWEST_RUNS} or more"
            )));
        }
        check_job(&request.job)?;
        Ok((request, self.report.showing()?))
    }
}
