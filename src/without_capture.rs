//! Takes the place of `capture/` in a build without the feature `capture`: recognises captures, and refuses to use them.
#![allow(clippy::unused_self, reason = "the functions have the signatures of those that they replace")]

use crate::failure::Failure;
use std::ffi::OsString;
use std::path::Path;

fn left_out<T>(what: &str) -> Result<T, Failure> {
    Err(Failure::Usage(format!(
        "{what} needs the feature `capture`, without which this fathom was built; build it with `cargo build --release --features capture`"
    )))
}

/// Not in this build: it needs the feature `capture`.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<OsString>,
}

pub use {Args as CaptureArgs, Args as FitArgs};

/// `fathom capture`.
pub mod record {
    use crate::failure::Failure;
    use std::process::ExitCode;

    /// Refuses to capture.
    ///
    /// # Errors
    /// Always.
    pub fn capture(_: &super::CaptureArgs) -> Result<ExitCode, Failure> {
        super::left_out("`fathom capture`")
    }
}

/// The format of a trace. This build has none.
#[derive(Debug)]
pub(crate) enum Language {}

impl Language {
    pub(crate) fn name(&self) -> &'static str {
        match *self {}
    }
}

/// Recognises no trace.
pub(crate) fn trace_language(_: &Path) -> Option<Language> {
    None
}

/// Capture files.
pub mod capture_file {
    use super::left_out;
    use crate::failure::Failure;
    use crate::files;
    use crate::files::output::Replace;
    use crate::request::CaptureRequest;
    use std::path::Path;
    use std::process::ExitCode;

    /// Name of the export format.
    pub const IOLOG: &str = "iolog";

    /// Whether a file is a capture, by its first bytes.
    pub(crate) fn is_capture(path: &Path) -> bool {
        files::begins_with(path, b"fathom capture ")
    }

    /// Refuses to show a capture.
    ///
    /// # Errors
    /// Always.
    pub fn show(_: &CaptureRequest) -> Result<ExitCode, Failure> {
        left_out("showing a capture")
    }

    /// Refuses to export a capture.
    ///
    /// # Errors
    /// Always.
    pub fn export(_: &Path, _: &Path, _: Replace) -> Result<ExitCode, Failure> {
        left_out("exporting a capture")
    }
}

/// `fathom fit`.
pub mod fit {
    use crate::failure::Failure;
    use std::process::ExitCode;

    /// Refuses to fit a job.
    ///
    /// # Errors
    /// Always.
    pub fn fit(_: &super::FitArgs) -> Result<ExitCode, Failure> {
        super::left_out("`fathom fit`")
    }
}

/// Replays, which are refused.
pub(crate) mod replay {
    use super::left_out;
    use crate::failure::Failure;
    use engine::source::replay::{Replay as Source, ReplayCounts};
    use model::captured::Origin;
    use model::histogram::Histogram;
    use model::job::{Changes, Kind, Original, Replay};
    use std::path::Path;
    use std::sync::Arc;
    use trace::row::{Names, Row, Task};

    /// The result of reading a capture for a replay, which this build cannot do.
    pub(crate) struct Scanned {
        pub(crate) has_completions: bool,
        pub(crate) has_stable_writes: bool,
        pub(crate) original: Original,
        pub(crate) files: Vec<String>,
    }

    /// Refuses to read a capture or a trace.
    pub(crate) fn scan(_: &Path, _: &Changes) -> Result<Scanned, Failure> {
        left_out("the replay of a capture")
    }

    /// Refuses to replay.
    pub(crate) fn source(_: &Replay, _: u32, _: bool, _: &Arc<ReplayCounts>) -> Result<Source, Failure> {
        left_out("the replay of a capture")
    }

    /// Requests of a replay at the driver. Always empty, because no replay runs.
    #[derive(Default)]
    pub(crate) struct Observed(Histogram);

    /// The figures of a replay's requests at the driver.
    #[derive(Default)]
    pub(crate) struct Figures {
        pub(crate) counts: [u64; Kind::ALL.len()],
        pub(crate) depth: Option<f64>,
        pub(crate) latencies: [Histogram; Kind::ALL.len()],
    }

    impl Observed {
        pub(crate) fn new(_: &Origin, _: u64) -> Self {
            Self::default()
        }

        pub(crate) fn add(&mut self, _: &[Row], _: &Names, _: &dyn Fn(&Task) -> bool) {}

        pub(crate) fn latency(&self, _: Kind) -> &Histogram {
            &self.0
        }

        pub(crate) fn finish(self) -> Figures {
            Figures::default()
        }
    }
}

#[test]
fn left_out_commands_name_the_feature() {
    use crate::cli::{Cli, Command};
    use clap::Parser;
    for line in ["fathom capture vda -o x --time 1s", "fathom fit --check x.capture vda", "fathom fit --help"]
    {
        let parsed = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"));
        let refused = match parsed.command {
            Command::Capture(args) => record::capture(&args),
            Command::Fit(args) => fit::fit(&args),
            other => panic!("{other:?}"),
        };
        assert!(refused.is_err_and(|why| why.message().contains("--features capture")), "{line}");
    }
}
