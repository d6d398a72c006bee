//! `fathom compare`: its flags.

use super::common::{self, OutputArgs, brief_is_known, detail, formats_of};
use super::gates::{InconclusiveArgs, SlowerArgs, share};
use super::headings::{OUTPUT, WHAT};
use crate::compare::Request;
use crate::failure::Failure;
use analysis::compare::Options;
use model::comparison::{Comparison, Comparisons};
use model::finding::CheckId;
use report::Format;

/// Tell whether B is faster than A, slower or the same, or how large a difference may be at most.
///
/// With several (A B C ...) each is compared with the first, in one table with a column for each.
/// A and B are what `fathom show` takes (a file, an id or a part of one, last, last~1), or a JSON report that -o wrote.
/// Several sessions of one configuration are one side: with commas (a,b,c), or from one to another with all between (a..b).
/// Their runs are pooled, and the differences between those sessions are the noise floor: what differs without any change.
///
/// FASTER and SLOWER: the 95 % interval of the ratio B/A lies beyond the margin, and the ranks of the runs agree; that takes at
/// least 4 runs on each side. SAME: the whole interval lies within the tolerance of 5 %, or 10 % from p99 on. NO DIFFERENCE SEEN:
/// neither is shown; it says how large a difference may be at most, and how many runs would halve that. CANNOT TELL: the runs say
/// nothing. INCOMPARABLE: the workloads differ, with what differs. INVALID: a side has no number.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes, by the first word: 0 compared, or PASS; 1 FAIL (slower by more than --fail-if-slower allows) or INVALID (a side has no number); 2 usage, or INCOMPARABLE; 4 INCONCLUSIVE (--fail-if-slower cannot be told), unless --inconclusive says what that counts as. Of several the worst decides."
)]
pub struct Args {
    /// Baseline
    a: String,
    /// Compared with A, each by itself
    #[arg(required = true)]
    b: Vec<String>,
    /// Smallest difference that matters, in percent: both margin and tolerance. At least 1 %, for percentiles 2 % [default: a
    /// margin of 5 for one session against one, else 1; a tolerance of 5, or 10 from p99 on]
    #[arg(long, value_name = "PERCENT", help_heading = WHAT, value_parser = share)]
    margin: Option<f64>,
    #[command(flatten)]
    slower: SlowerArgs,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    /// Accept a finding by its id; may be repeated. E14 compares numbers of different work all the same. A finding of a result, such as
    /// D01, shows the number that it invalidates; both sides must rest on the same ones, and --fail-if-slower decides only if they
    /// are typed here
    #[arg(long, value_name = "ID", help_heading = OUTPUT, value_parser = acceptable)]
    accept: Vec<CheckId>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Comparison>())]
    format: &'static Format,
    #[command(flatten)]
    files: OutputArgs,
    /// Show everything: every number, every finding, which checks were not possible and which passed
    #[arg(long, help_heading = OUTPUT, conflicts_with = "brief")]
    verbose: bool,
    /// Show the table alone
    #[arg(long, help_heading = OUTPUT)]
    brief: bool,
}

/// The check of a result, or E14, with this id.
fn acceptable(text: &str) -> Result<CheckId, String> {
    match text.parse()? {
        CheckId::E14 => Ok(CheckId::E14),
        _ => common::acceptable(text),
    }
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// [`Failure::Usage`] where --brief is asked of a format that has no short form, or a flag is about a gate that was not asked.
    pub fn request(self) -> Result<Request, Failure> {
        match self.b.as_slice() {
            [_] => self.files.check::<Comparison>()?,
            _ => self.files.check::<Comparisons>()?,
        }
        brief_is_known(self.brief, self.format, self.files.formats::<Comparison>(self.format))?;
        let (fail_if_slower, inconclusive) = (self.slower.slower(), self.inconclusive.counts_as());
        if inconclusive.is_some() && fail_if_slower.is_none() {
            return Err(Failure::Usage(
                "--inconclusive says what a gate counts as that cannot be told; type --fail-if-slower too, or leave it out"
                    .into(),
            ));
        }
        let options = Options {
            margin: self.margin,
            accept_differences: self.accept.contains(&CheckId::E14),
            accept: self.accept.into_iter().filter(|id| *id != CheckId::E14).collect(),
            fail_if_slower,
            inconclusive,
            version: env!("CARGO_PKG_VERSION").into(),
            ..Options::default()
        };
        let detail = detail(self.brief, self.verbose);
        let replace = self.files.replace();
        Ok(Request {
            a: self.a,
            others: self.b,
            options,
            format: self.format,
            detail,
            outputs: self.files.output,
            replace,
        })
    }
}
