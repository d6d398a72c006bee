//! `fathom run`: its flags.

use super::common::{Measuring, ShowingArgs};
use crate::failure::Failure;
use crate::request::{Request, Work};
use crate::show::Showing;
use clap::ValueEnum;
use model::job::{Mix, PerKind, Sizes};
use model::units::parse_bytes;
use model::wish::{Rw, StreamWish};
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
        let rw = match self.rw {
            Word::Read => Rw::Read,
            Word::Write => Rw::Write,
            Word::Rw => Rw::Rw,
            Word::Randread => Rw::Randread,
            Word::Randwrite => Rw::Randwrite,
            Word::Randrw => Rw::Randrw,
        };
        if self.mix.is_some() && rw.fixed_mix().is_some() {
            return Err(Failure::Usage(
                "--mix goes with --rw rw or --rw randrw; the other words say the direction alone".into(),
            ));
        }
        let sizes = |b: u64| Sizes::Fixed(u32::try_from(b).unwrap_or(u32::MAX));
        let wish = StreamWish {
            rw: Some(rw),
            mix: self.mix.map(|read_percent| Mix { read_percent, trim_percent: 0 }),
            bs: self.bs.map(|b| PerKind { read: sizes(b), write: sizes(b), trim: sizes(b) }),
            depth: self.depth,
            workers: self.workers,
            offset: self.offset,
            ..StreamWish::default()
        };
        let job = self.measuring.job(wish);
        let request = self.measuring.request(Work::Flags(job), self.target);
        Ok((request, self.showing.showing(self.explain)?))
    }
}
