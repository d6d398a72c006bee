//! `fathom run`: its flags.

use super::common::{Measuring, ShowingArgs};
use crate::failure::Failure;
use crate::request::{Request, Work, Workload};
use crate::show::Showing;
use clap::ValueEnum;
use model::job::Pattern;
use model::units::parse_bytes;
use std::path::PathBuf;

/// Measure one workload.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory, file or block device [default: the current directory]
    target: Option<PathBuf>,
    /// Order and direction
    #[arg(long, value_enum, default_value = "randread")]
    rw: Word,
    /// Share of reads in percent, for rw and randrw [default: 50]
    #[arg(long, value_name = "READ%", value_parser = parse_percent)]
    mix: Option<u8>,
    /// Bytes per operation [default: 4k random, 1m sequential]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bs: Option<u64>,
    /// Operations in flight per worker [default: 32 random, 8 sequential]
    #[arg(long)]
    depth: Option<u32>,
    /// Threads [default: 1]
    #[arg(long)]
    workers: Option<u32>,
    /// First byte that may be touched [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    offset: Option<u64>,
    /// Print what would be measured, with the origin of every setting, and stop
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    showing: ShowingArgs,
}

/// The words of `--rw`, as in fio.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Word {
    /// Sequential reads
    Read,
    /// Sequential writes
    Write,
    /// Sequential, mixed by --mix
    Rw,
    /// Random reads
    Randread,
    /// Random writes
    Randwrite,
    /// Random, mixed by --mix
    Randrw,
}

fn parse_percent(text: &str) -> Result<u8, String> {
    let number = text.trim().trim_end_matches('%').parse::<u8>().ok().filter(|p| *p <= 100);
    number.ok_or_else(|| format!("'{text}' is not a share of reads; type a whole number from 0 to 100"))
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<(Request, Showing), Failure> {
        let (pattern, read_percent) = match self.rw {
            Word::Read => (Pattern::Sequential, Some(100)),
            Word::Write => (Pattern::Sequential, Some(0)),
            Word::Rw => (Pattern::Sequential, None),
            Word::Randread => (Pattern::Random, Some(100)),
            Word::Randwrite => (Pattern::Random, Some(0)),
            Word::Randrw => (Pattern::Random, None),
        };
        if self.mix.is_some() && read_percent.is_some() {
            return Err(Failure::Usage(
                "--mix goes with --rw rw or --rw randrw; the other words say the direction alone".into(),
            ));
        }
        let workload = Workload {
            pattern,
            read_percent,
            mix_percent: self.mix,
            block_bytes: self.bs,
            depth: self.depth,
            workers: self.workers,
        };
        let request = self.measuring.request(Work::Workload(workload), self.target, self.offset);
        Ok((request, self.showing.showing(self.explain)?))
    }
}
