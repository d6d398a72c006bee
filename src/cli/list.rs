//! `fathom list`: its flags.

use crate::cli::shared_flags::{OUTPUT, WHAT, formats_of};
use crate::history::{self, Filter, ListRequest};
use clap::ValueEnum;
use model::history::{Listing, RowsOf};
use model::report::Verdict;
use report::Format;

/// List earlier sessions, newest first.
///
/// The session files are the truth; an index beside them (history.db, SQLite) makes the list quick, and holds nothing that is
/// not in them. Files that were copied there or removed by hand are noticed. A verdict is that of the version which indexed
/// the session; --rebuild judges all of them again.
///
/// Nothing is ever removed but by `fathom delete`.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = WHAT)]
pub struct Args {
    /// Only those with this in the path of a target
    #[arg(long, value_name = "PATH")]
    target: Option<String>,
    /// Only those with this in the name, model or serial number of a device below
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Only those with this in what was measured or in the name of a job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only those with this verdict
    #[arg(long, value_enum, ignore_case = true)]
    verdict: Option<VerdictWord>,
    /// Only those with this tag
    #[arg(long, value_name = "WORD")]
    tag: Option<String>,
    /// Only those that began then or later: 2026-11-21, or 2026-11-21T16:00
    #[arg(long, value_name = "DATE", value_parser = history::since)]
    since: Option<i64>,
    /// Only those that began then or before; a day counts whole
    #[arg(long, value_name = "DATE", value_parser = history::until)]
    until: Option<i64>,
    /// As one table: what each came to, with a column for each result of the newest one's work (--job chooses another); with
    /// =devices a row for each device, by its newest session
    #[arg(
        long, value_name = "ROWS", help_heading = OUTPUT, value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "sessions"
    )]
    table: Option<RowsWord>,
    /// The newest N of them, 0 for all [default: 40 as text, all otherwise]
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    limit: Option<u32>,
    /// Read and judge every session again first
    #[arg(long, help_heading = OUTPUT)]
    rebuild: bool,
    /// Format of the list
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Listing>())]
    format: &'static Format,
}

/// What `--table` takes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RowsWord {
    /// A row for each session
    Sessions,
    /// A row for each device, by its newest session
    Devices,
}

/// What `--verdict` takes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum VerdictWord {
    Valid,
    Suspect,
    Invalid,
}

impl Args {
    /// Returns the request.
    pub fn request(self) -> ListRequest {
        let verdict = self.verdict.map(|v| match v {
            VerdictWord::Valid => Verdict::Valid,
            VerdictWord::Suspect => Verdict::Suspect,
            VerdictWord::Invalid => Verdict::Invalid,
        });
        let table = self.table.map(|rows| match rows {
            RowsWord::Sessions => RowsOf::Sessions,
            RowsWord::Devices => RowsOf::Devices,
        });
        let Self { target, device, job, tag, since, until, limit, rebuild, format, .. } = self;
        let filter = Filter { target, device, job, verdict, tag, since, until };
        ListRequest { filter, limit, rebuild, table, format }
    }
}
