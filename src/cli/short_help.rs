//! `fathom COMMAND -h`: the flags that most people type, one line each. `--help` has all of them, grouped and explained.
//!
//! [`shorten`] changes the command line that clap prints for `-h`: flags in [`SHOWN`] get one line, the other settings of workloads and the
//! flags in [`HIDDEN`] are left out, and so are exit codes. What a command alone has remains.

use clap::Command;
use model::spec::keys;

/// Flags with their line in `-h`.
const SHOWN: [(&str, &str); 37] = [
    ("rw", "read, write, randread, randwrite, rw, randrw, trim ..."),
    ("mix", "Share of reads in rw and randrw, such as 70%"),
    ("bs", "Block size, such as 4k, or sizes with weights: 4k/60:64k/40"),
    ("size", "Size of the test file, or how much of the target is used"),
    ("depth", "Operations in flight of each worker"),
    ("workers", "Number of threads"),
    ("time", "Length of the measured part of a run"),
    ("runs", "Number of runs"),
    ("warmup", "Time before the measured part of a run"),
    ("rate", "Open loop: operations a second, whatever the storage does"),
    ("cache", "direct, buffered, direct-dsync ..."),
    ("engine", "io_uring, libaio, sync, mmap ..."),
    ("fdatasync", "Call fdatasync after so many writes"),
    ("precondition", "First write the target until its rate settles"),
    ("until", "steady: run rounds until they no longer drift"),
    ("fail-if", "Exit code 1 under a condition, such as 'p99>10ms'"),
    ("profile", "Which tests: cdm, nvme, peak, real, atto, asssd ..."),
    ("budget", "Time to answer in"),
    ("tolerance", "How much faster another setting may be"),
    ("explain", "Print what would be measured, and stop"),
    ("output", "Also write the report to FILE, by its extension: json, html, csv, md"),
    ("destroy", "Allow overwriting this existing file or device"),
    ("verbose", "Show every finding, every run and every check"),
    ("quick", "Take ten seconds, without intervals"),
    ("compare", "Measure several in turns and say which is faster"),
    ("all", "All of them"),
    ("preset", "A known grid: iops, ccsio, iometer, pts, zones"),
    ("p99", "Highest p99 latency, such as 1ms"),
    ("curve", "With a latency target, also measure the load curve"),
    ("by", "What settings are ranked by: iops, bandwidth, p99, latency"),
    ("spec", "Access specifications of Iometer, such as 4k-oltp, or all"),
    ("resume", "Continue an interrupted sweep: its id, or last"),
    ("list", "Print the settings, one a line, and stop"),
    ("state", "Keep in FILE what a later --check has to know"),
    ("check", "Read back what the writer of this state must have left"),
    ("cached", "Read back through the page cache as it is"),
    ("sync_every", "Writes between two syncs"),
];
/// Flags of several commands that only `--help` has.
const HIDDEN: [&str; 34] = [
    "format",
    "force",
    "accept",
    "ledger",
    "brief",
    "no_history",
    "unseen_users",
    "expect_device",
    "live",
    "no_live",
    "quiet",
    "ranks_per_host",
    "hosts",
    "inconclusive",
    "fail_on",
    "fail_if_slower",
    "against",
    "keep",
    "own",
    "shared",
    "p50",
    "p90",
    "p95",
    "p99_9",
    "spec_file",
    "cycle",
    "step",
    "pattern",
    "skipped",
    "list_specs",
    "exhaustive",
    "targets",
    "memory",
    "shift_hosts",
];

/// Heading of all flags.
const HEADING: &str = "Flags";

/// The command line as `-h` prints it.
pub(super) fn shorten(cli: Command) -> Command {
    let names: Vec<String> = cli.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(cli, |cli, name| cli.mut_subcommand(name, shorten_command))
}

fn shorten_command(command: Command) -> Command {
    let more = format!("`fathom {} --help` explains every flag, and the exit codes.", command.get_name());
    command.after_help(more).mut_args(|arg| {
        let id = arg.get_id().as_str().to_owned();
        if arg.is_hide_set() || arg.is_positional() {
            return arg;
        }
        match SHOWN.iter().find(|(shown, _)| *shown == id) {
            Some((_, line)) => {
                arg.help(*line).hide_possible_values(true).hide_default_value(true).help_heading(HEADING)
            }
            None if keys::find(&id).is_some() || HIDDEN.contains(&id.as_str()) => arg.hide(true),
            None => arg.help_heading(HEADING),
        }
    })
}

#[test]
fn the_short_help_of_every_command_fits_forty_lines() {
    use clap::CommandFactory;
    let mut long = Vec::new();
    for command in shorten(super::Cli::command()).get_subcommands_mut() {
        let text = command.render_help().to_string();
        if text.lines().count() > 40 {
            long.push(format!("{} has {} lines:\n{text}", command.get_name(), text.lines().count()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}
