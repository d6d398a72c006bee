//! The command line: a file for each command or group of commands, with the flags and their translation into a request. Small commands
//! also run there.

mod api;
mod bench;
#[cfg(feature = "capture")]
pub mod capture;
mod compare;
mod diskspd;
mod explain;
mod fio;
mod help;
mod history;
mod inspect;
mod iometer;
mod layers;
mod limit;
pub mod other_tools;
mod packaging;
mod recipe;
mod run;
mod shared_flags;
mod show;
mod sweep;
mod time;
mod usage_error;
pub mod verify;
mod watch;

#[cfg(not(feature = "capture"))]
use crate::capture;
use crate::time::OWN_FAILURE;
use crate::{stderr, stdout};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
pub use history::ExportAction;
pub use show::{Action as ShowAction, show_report};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
pub use sweep::{Action as SweepAction, repeat_request as sweep_again};

/// Measures storage, and says whether the number means what you think it means.
///
/// fathom compares its numbers with the kernel's own counters. Every report begins with a verdict:
/// VALID, SUSPECT or INVALID. To begin, type `fathom bench`: it measures the current directory, in
/// about a minute and a half.
#[derive(Debug, Parser)]
#[command(
    name = "fathom",
    version,
    max_term_width = 110,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 PASS, or no unaccepted finding invalidates a quoted number or relabels the main one; 1 FAIL (a --fail-if condition failed), INVALID (there is no number to quote, or an unaccepted finding other than other load on the machine invalidates a quoted number), or an unaccepted finding relabels the main number; 2 usage; 3 the machine refused; 4 INCONCLUSIVE (too few or too noisy runs to decide a --fail-if condition), unless --inconclusive sets another code; 130 interrupted, the completed runs are kept."
)]
pub struct Cli {
    /// The command and its flags.
    #[command(subcommand)]
    pub command: Command,
}

/// All commands. The help text of a command is the doc comment of its `Args`. A doc comment here
/// would replace it.
#[allow(missing_docs)]
#[derive(Debug, Subcommand)]
pub enum Command {
    Bench(bench::Args),
    Run(run::Args),
    Layers(layers::Args),
    Limit(limit::Args),
    Watch(watch::Args),
    Time(Box<time::Args>),
    Sweep(Box<sweep::Args>),
    Api(api::Args),
    Recipe(recipe::Args),
    Fio(fio::Args),
    Iops(sweep::IopsArgs),
    Diskspd(diskspd::Args),
    Iometer(iometer::Args),
    List(history::ListArgs),
    Show(show::Args),
    Compare(compare::Args),
    Tag(history::TagArgs),
    Note(history::NoteArgs),
    Export(history::ExportArgs),
    Import(history::ImportArgs),
    Delete(history::DeleteArgs),
    Capture(capture::CaptureArgs),
    Fit(capture::FitArgs),
    Verify(verify::Args),
    Doctor(inspect::DoctorArgs),
    Devices(inspect::DevicesArgs),
    Explain(explain::Args),
    Completions(packaging::CompletionsArgs),
    Man(packaging::ManArgs),
    Help(help::Args),
}

/// Tools that fathom no longer imitates, each with its replacement.
const RETIRED: [(&str, &str); 3] = [
    ("dd", "`fathom time -- dd ...` runs dd itself and reports what the disk did"),
    ("hdparm", "`fathom time -- hdparm ...` runs hdparm itself and reports what the disk did"),
    ("ioping", "`fathom run --rw randread --depth 1 --rate 10 DIR` measures ten single reads a second"),
];

/// Extension of programs on Windows, which copied command lines may have.
const WINDOWS_EXTENSION: &str = ".exe";

/// Returns the tool that a word names; `None` if fathom neither imitates such a tool nor once did.
fn find_tool(word: &OsString) -> Option<&'static str> {
    let word = word.to_str()?;
    let word = word.strip_suffix(WINDOWS_EXTENSION).unwrap_or(word);
    let retired = RETIRED.iter().map(|(name, _)| *name);
    dialect::COMMANDS.iter().copied().chain(retired).find(|name| *name == word)
}

/// Inserts the command if the program was called by another tool's name, and removes `.exe` from the name of a command.
fn insert_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let program = words.first().and_then(|word| Path::new(word).file_name()).map(OsString::from);
    if let Some(name) = program.as_ref().and_then(find_tool) {
        words.splice(..1, ["fathom", name].map(OsString::from));
    } else if let Some(word) = words.get_mut(1)
        && let Some(name) = find_tool(word)
    {
        *word = name.into();
    }
    words
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// The exit code, after printing help, the version or a usage error.
    pub fn read() -> Result<Self, ExitCode> {
        let words = insert_command(std::env::args_os().collect());
        let command = words.get(1).and_then(|word| word.to_str());
        if let Some((name, instead)) = RETIRED.iter().find(|(name, _)| command == Some(name)) {
            stderr::print(&format!("fathom: `fathom {name}` no longer exists: {instead}"));
            return Err(ExitCode::from(2));
        }
        let usage_exit_code = if command == Some("time") { OWN_FAILURE } else { 2 };
        if words.len() == 2 && words[1] == "-h" {
            let printed = stdout::print_text(&help::first_steps());
            return Err(printed.map_or_else(|failure| failure.print(), |()| ExitCode::SUCCESS));
        }
        if let Some(advice) = usage_error::find_long_dash(&words) {
            stderr::print(&format!("fathom: {advice}"));
            return Err(ExitCode::from(usage_exit_code));
        }
        Self::parse_words(&words).map_err(|message| {
            let (plain, coloured) = (message.render().to_string(), message.render().ansi().to_string());
            if message.use_stderr() {
                stderr::print_coloured(plain.trim_end(), coloured.trim_end());
                return ExitCode::from(usage_exit_code);
            }
            stdout::print_coloured(&plain, &coloured)
                .map_or_else(|failure| failure.print(), |()| ExitCode::SUCCESS)
        })
    }

    fn parse_words(words: &[OsString]) -> Result<Self, clap::Error> {
        let is_short = words.iter().take_while(|word| *word != "--").any(|word| word == "-h");
        // Parsing delays the command that `fathom time` measures. Building the flags of all
        // commands takes 2 ms, so build only those of `time`.
        let command = if words.get(1).is_some_and(|word| word == "time") {
            let time = <time::Args as clap::Args>::augment_args(clap::Command::new("time"));
            clap::Command::new("fathom").max_term_width(110).subcommand(time)
        } else {
            Self::command()
        };
        let command = if is_short { help::shorten(command) } else { command };
        let matches = command.try_get_matches_from(words);
        matches.and_then(|matches| Self::from_arg_matches(&matches)).map_err(|error| {
            let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            usage_error::advise(error, &words)
        })
    }
}

#[test]
fn a_program_name_selects_the_command() {
    let parsed = |line: &str| {
        let words = insert_command(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    for line in
        ["/usr/bin/diskspd -w0 f", "diskspd.exe -w0 f", "fathom diskspd -w0 f", "fathom diskspd.exe -w0 f"]
    {
        assert_eq!(parsed(line), "fathom diskspd -w0 f");
    }
    assert_eq!(
        parsed("fathom run diskspd.exe"),
        "fathom run diskspd.exe",
        "the name of a target is unchanged"
    );
    assert_eq!(parsed("fathom"), "fathom");
}
