//! Flags of gates that several commands share: by how much it may be slower, and what an answer that cannot be told counts as.
//!
//! For: their words. Not for: `--fail-if`, which is a key of a workload, nor deciding anything.

use super::headings::OUTPUT;
use clap::ValueEnum;
use model::report::CountsAs;
use model::spec::number;
use model::verdict::Slower;

/// How much slower B may be.
#[derive(clap::Args, Debug)]
pub(super) struct SlowerArgs {
    /// PASS, FAIL or INCONCLUSIVE, exit code 0, 1 or 4: whether B is slower than A by more than this, in percent. INVALID, exit code 1:
    /// a side has no number
    #[arg(long, value_name = "PERCENT", help_heading = OUTPUT, value_parser = share)]
    fail_if_slower: Option<f64>,
    /// Which numbers count for --fail-if-slower
    #[arg(long, value_enum, help_heading = OUTPUT, default_value = "headline", requires = "fail_if_slower")]
    fail_on: Which,
}

impl SlowerArgs {
    /// What was said.
    pub(super) fn slower(&self) -> Option<Slower> {
        self.fail_if_slower.map(|by| Slower { by, all: self.fail_on == Which::All })
    }
}

/// The words of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// The number that the answer is about
    Headline,
    /// Every number
    All,
}

/// What INCONCLUSIVE counts as.
#[derive(clap::Args, Debug)]
pub(super) struct InconclusiveArgs {
    /// What INCONCLUSIVE counts as for the exit code, 0 or 1 in place of 4; INVALID remains 1
    #[arg(long, value_name = "WORD", help_heading = OUTPUT, value_enum)]
    inconclusive: Option<CountsAsWord>,
}

impl InconclusiveArgs {
    /// What was said.
    pub(super) fn counts_as(&self) -> Option<CountsAs> {
        self.inconclusive.map(|word| match word {
            CountsAsWord::Pass => CountsAs::Pass,
            CountsAsWord::Fail => CountsAs::Fail,
        })
    }
}

/// The words of `--inconclusive`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CountsAsWord {
    Pass,
    Fail,
}

/// A share in percent, as a share. The whole of it would be no limit at all.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match number::share(text)? {
        percent if percent < 100.0 => Ok(percent / 100.0),
        _ => Err(format!("'{text}' is all of it; type less than 100, such as 5%")),
    }
}
