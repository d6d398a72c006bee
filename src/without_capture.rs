//! Takes the place of `capture/` in a build without the feature `capture`: recognises captures, and refuses to use them.
#![allow(clippy::unused_self, reason = "the functions have the signatures of those that they replace")]

use crate::failure::Failure;
use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;

/// The refusal to do what this build leaves out.
pub(crate) fn left_out(what: &str) -> Failure {
    Failure::Usage(format!(
        "{what} is not in this fathom, which was built without the feature `capture`; build it with `cargo build --release --features capture`"
    ))
}

/// `fathom capture`. The command line refuses it, so there is no request.
///
/// # Errors
/// None.
pub fn capture(request: &Infallible) -> Result<ExitCode, Failure> {
    match *request {}
}

/// The format of a trace. This build knows none.
#[derive(Debug)]
pub(crate) enum Language {}

impl Language {
    pub(crate) fn name(&self) -> &'static str {
        match *self {}
    }
}

/// The format of a trace. This build recognises none.
pub(crate) fn trace_language(_: &Path) -> Option<Language> {
    None
}

/// Capture files.
pub mod capture_file {
    use super::left_out;
    use crate::failure::Failure;
    use crate::files;
    use crate::files::output::Replace;
    use model::captured::Restriction;
    use report::Format;
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;

    /// Name of the export format.
    pub const IOLOG: &str = "iolog";

    /// Whether a file is a capture, by its first bytes.
    pub(crate) fn is_capture(path: &Path) -> bool {
        files::begins_with(path, b"fathom capture ")
    }

    /// A request to show a capture.
    #[derive(Debug)]
    pub struct Request {
        /// The capture.
        pub file: PathBuf,
        /// Which of its requests to include.
        pub restriction: Restriction,
        /// Format on standard output.
        pub format: &'static Format,
        /// Additional output files.
        pub outputs: Vec<PathBuf>,
        /// Which files they may replace.
        pub replace: Replace,
        /// List the requests instead of the profile.
        pub events: Option<Events>,
    }

    /// The format of listed requests.
    #[derive(Debug)]
    pub struct Events;

    impl Events {
        /// Any format: the capture is refused later.
        ///
        /// # Errors
        /// None.
        pub fn from_format(_: &Format, _: &[PathBuf]) -> Result<Self, Failure> {
            Ok(Self)
        }
    }

    /// Refuses to show a capture.
    ///
    /// # Errors
    /// Always.
    pub fn show(_: &Request) -> Result<ExitCode, Failure> {
        Err(left_out("showing a capture"))
    }

    /// A request to export a capture.
    #[derive(Debug)]
    pub struct Export {
        /// The capture.
        pub file: PathBuf,
        /// The log.
        pub to: PathBuf,
        /// Which file it may replace.
        pub replace: Replace,
    }

    /// Refuses to export a capture.
    ///
    /// # Errors
    /// Always.
    pub fn export(_: &Export) -> Result<ExitCode, Failure> {
        Err(left_out("exporting a capture"))
    }
}

/// `fathom fit`, which the command line refuses.
pub mod fit {
    use crate::failure::Failure;
    use std::convert::Infallible;
    use std::process::ExitCode;

    /// There is none.
    pub enum Action {
        /// Never made: the command line refuses it.
        Fit(Infallible),
        /// As [`Self::Fit`].
        Check(Infallible),
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn fit(request: &Infallible) -> Result<ExitCode, Failure> {
        match *request {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn check(request: &Infallible) -> Result<ExitCode, Failure> {
        match *request {}
    }
}

/// Replays, which are refused.
pub(crate) mod replay {
    use super::left_out;
    use crate::failure::Failure;
    use engine::source::replay::{Counts, Replay as Source};
    use model::captured::Origin;
    use model::histogram::Histogram;
    use model::job::{Changes, Kind, Original, Replay};
    use std::path::Path;
    use std::sync::Arc;
    use trace::row::{Names, Row, Task};

    /// A load. There is none.
    pub(crate) enum Load {}

    impl Load {
        pub(crate) fn operations(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn has_completions(&self) -> bool {
            match *self {}
        }

        pub(crate) fn has_stable_writes(&self) -> bool {
            match *self {}
        }
    }

    /// A load after the first pass.
    pub(crate) struct Scanned {
        pub(crate) load: Load,
        pub(crate) original: Original,
        pub(crate) files: Vec<String>,
    }

    /// Refuses to read a capture or a trace.
    pub(crate) fn scan(_: &Path, _: &Changes) -> Result<Scanned, Failure> {
        Err(left_out("the replay of a capture"))
    }

    /// Refuses to replay.
    pub(crate) fn source(_: &Replay, _: u32, _: bool, _: &Arc<Counts>) -> Result<Source, Failure> {
        Err(left_out("the replay of a capture"))
    }

    /// The requests of a replay at the driver. No replay runs, so it stays empty.
    #[derive(Default)]
    pub(crate) struct Observed(Histogram);

    /// The figures of these requests.
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
