//! Flags that several commands share.

use crate::failure::Failure;
use crate::request::{Request, Work};
use crate::show::Showing;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use model::job::{Batch, Cache, Options};
use model::plan::Hook;
use model::units::{parse_bytes, parse_duration_ns};
use model::wish::{EngineWish, JobWish, PhaseWish, StreamWish};
use std::path::PathBuf;

/// How a measurement is made.
#[derive(Args, Debug)]
#[command(next_help_heading = "Measuring")]
pub(super) struct Measuring {
    /// Bytes to touch, such as 4g [default: 1g for a file made in a directory, else all there is]
    #[arg(long, value_parser = parse_bytes)]
    size: Option<u64>,
    /// Length of each measured window, such as 3s or 500ms
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ns)]
    time: Option<u64>,
    /// Time before each window in which operations run and do not count
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ns)]
    warmup: Option<u64>,
    /// Times each workload is measured [default: 5]
    #[arg(long)]
    runs: Option<u32>,
    /// Seed of offsets, data and the order of runs [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Interface that carries the operations [default: io_uring]
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    engine: Option<String>,
    /// What the target is opened with [default: direct]
    #[arg(long, value_enum)]
    cache: Option<CacheWord>,
    /// Operations handed over per call, and completions waited for [default: 1,1: each at once]
    #[arg(long, value_name = "SUBMIT[,COMPLETE]", value_parser = parse_batch)]
    batch: Option<Batch>,
    /// Allow overwriting an existing file (its path) or a block device (its name or serial)
    #[arg(long, value_name = "NAME")]
    destroy: Option<String>,
    /// Fault on purpose, for fathom's own tests
    #[arg(long, hide = true, value_enum)]
    test_hook: Option<HookWord>,
}

/// How the result is shown.
#[derive(Args, Debug)]
#[command(next_help_heading = "Showing")]
pub(super) struct ShowingArgs {
    /// Form of the report on standard output
    #[arg(long, default_value = "text", value_parser = format_names())]
    format: String,
    /// Write the report to a file too, its form by the extension; may be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Accept a finding by its id, such as A01, for the exit code; may be repeated
    #[arg(long, value_name = "ID")]
    accept: Vec<String>,
    /// No progress on standard error
    #[arg(long)]
    quiet: bool,
}

/// The words of `--cache`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum CacheWord {
    /// `O_DIRECT`: past the page cache
    Direct,
    /// Through the page cache
    Buffered,
    /// Through the page cache, each write stable before it completes (`O_DSYNC`)
    Sync,
    /// `O_DIRECT` and `O_DSYNC`
    DirectSync,
}

impl From<CacheWord> for Cache {
    fn from(word: CacheWord) -> Self {
        match word {
            CacheWord::Direct => Self::Direct,
            CacheWord::Buffered => Self::Buffered,
            CacheWord::Sync => Self::Sync,
            CacheWord::DirectSync => Self::DirectSync,
        }
    }
}

/// The words of the hidden `--test-hook`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum HookWord {
    PanicWorker,
}

impl From<HookWord> for Hook {
    fn from(word: HookWord) -> Self {
        match word {
            HookWord::PanicWorker => Self::PanicWorker,
        }
    }
}

impl Measuring {
    /// What was said for all streams.
    pub(super) fn job(&self, mut stream: StreamWish) -> JobWish {
        stream.size = self.size;
        stream.engine = self.engine.clone().map(|name| EngineWish { name, options: Options::new() });
        stream.cache = self.cache.map(Into::into);
        stream.batch = self.batch;
        let phase = PhaseWish { time: self.time, warmup: self.warmup, cooldown: None, streams: vec![stream] };
        JobWish { name: None, runs: self.runs, seed: self.seed, phases: vec![phase] }
    }

    /// What was said, with the work and the target that the command adds.
    pub(super) fn request(self, work: Work, target: Option<PathBuf>) -> Request {
        Request {
            command: std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect(),
            work,
            targets: target.into_iter().collect(),
            destroy: self.destroy.into_iter().collect(),
            hook: self.test_hook.map(Into::into),
        }
    }
}

impl ShowingArgs {
    pub(super) fn showing(self, explain: bool) -> Result<Showing, Failure> {
        for id in &self.accept {
            if !analysis::checks::CHECKS.iter().any(|c| c.id.eq_ignore_ascii_case(id)) {
                let known: Vec<&str> = analysis::checks::CHECKS.iter().map(|c| c.id).collect();
                return Err(Failure::Usage(format!(
                    "--accept {id}: there is no such check; there are {}",
                    known.join(" ")
                )));
            }
        }
        for path in &self.output {
            if report::by_extension(path).is_none() {
                let known: Vec<&str> = report::FORMATS.iter().map(|f| f.extension).collect();
                let known = known.join(", .");
                return Err(Failure::Usage(format!(
                    "-o {}: no format has this extension; type .{known}",
                    path.display()
                )));
            }
        }
        let accept = self.accept.iter().map(|id| id.to_ascii_uppercase()).collect();
        Ok(Showing { format: self.format, outputs: self.output, accept, quiet: self.quiet, explain })
    }
}

fn engine_names() -> PossibleValuesParser {
    use clap::builder::PossibleValue;
    PossibleValuesParser::new(
        engine::engines::ENGINES.iter().map(|e| PossibleValue::new(e.name).help(e.about)),
    )
}

fn format_names() -> PossibleValuesParser {
    use clap::builder::PossibleValue;
    PossibleValuesParser::new(report::FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.about)))
}

fn parse_batch(text: &str) -> Result<Batch, String> {
    let number = |word: &str| {
        let n = word.trim().parse::<u32>().ok().filter(|n| *n > 0);
        n.ok_or_else(|| format!("'{word}' is not a number above 0; type one or two, such as 32 or 32,8"))
    };
    let (submit, complete) = text.split_once(',').unwrap_or((text, "1"));
    Ok(Batch { submit: number(submit)?, complete: number(complete)? })
}
