//! The command line: one file per command, each its flags and their translation into a request. Nothing else.

mod api;
mod bench;
mod common;
mod compare;
mod delete;
mod doctor;
mod explain;
mod export;
mod import;
mod layers;
mod limit;
mod list;
mod note;
mod run;
mod show;
mod sweep;
mod tag;
mod verify;

use clap::{Parser, Subcommand};
pub use sweep::Said as SweepSaid;

/// Measures storage, and says whether the number means what you think it means.
///
/// Every report begins with a verdict that was earned against the kernel's own counters: VALID, SUSPECT or INVALID.
/// With no command line to remember: `fathom bench` measures where you stand, in about a minute and a half.
#[derive(Debug, Parser)]
#[command(name = "fathom", version, max_term_width = 110, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 measured, and nothing void or renamed; 1 measured, but a finding voids or renames the headline; 2 usage; 3 the machine refused; 130 interrupted, what was measured is kept."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
// What is said here of a command hides the page that stands with its flags.
#[allow(missing_docs)]
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the canonical patterns of a place, repeated and judged
    Bench(bench::Args),
    /// Measure one workload
    Run(run::Args),
    /// Measure the same work at every layer of a place, and what each layer costs
    Layers(layers::Args),
    /// Measure latency against offered load, and find the highest rate that keeps a promise
    Limit(limit::Args),
    /// Find the best setting: block size x depth x workers x engine x cache mode
    Sweep(Box<sweep::Args>),
    /// Move the same bytes through every programming interface, and say which one to use
    Api(api::Args),
    List(list::Args),
    /// Judge and print a session again
    Show(show::Args),
    /// Tell whether B is faster than A, slower, the same, or whether that cannot be told
    Compare(compare::Args),
    Tag(tag::Args),
    Note(note::Args),
    Export(export::Args),
    Import(import::Args),
    Delete(delete::Args),
    /// Write, read back, and name every block that was lost, torn, misplaced or changed
    Verify(verify::Args),
    /// Look at a place before measuring it: what would spoil a number, and what repairs that
    Doctor(doctor::Args),
    /// Say what a check looks at, by which formula, how to see it fire and what repairs it
    Explain(explain::Args),
}
