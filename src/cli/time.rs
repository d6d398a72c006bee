//! `fathom time`: its flags.

use crate::cli::shared_flags::{HOW_LONG, InconclusiveArgs, OUTPUT, OutputArgs, WHAT, detail, formats_of};
use crate::failure::Failure;
use crate::show::Showing;
use crate::stderr;
use crate::time::{self, OWN_FAILURE, Request};
use clap::value_parser;
use model::command::{Cold, Command, CommandStudy};
use model::name;
use model::report::Report;
use model::verdict::Condition;
use report::Format;
use std::ffi::OsString;
use std::process::ExitCode;

/// Default number of runs of each command with `--compare`. FASTER and SLOWER require four.
const COMPARED_RUNS: u32 = 5;

/// Run a command and report what the storage did meanwhile: bytes from the page cache, bytes that reached the disk, and the limiter.
///
/// The command's input, output, signals and environment are unchanged. The report follows the command's output, on standard error. Run
/// by root, it also has the syncs of the command, the flags with which the command opened files, and whether the device was
/// read sequentially.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "fathom time [FLAGS] -- COMMAND [ARG]...\n       fathom time [FLAGS] --compare 'COMMAND' 'COMMAND'..."
)]
#[command(
    after_help = "Exit codes: that of the command; 128+N after signal N; 126 if it cannot be run, 127 if it is not found; 125 if fathom itself fails, also for wrong flags. With --fail-if, if the command succeeded: 1 FAIL, 4 INCONCLUSIVE. Findings do not change the code."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Args {
    /// Program and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
    /// Compare these shell commands: run them in turns, in random order, and report whether one is faster
    #[arg(long, help_heading = WHAT, value_name = "COMMAND", num_args = 2.., conflicts_with = "command")]
    compare: Vec<String>,
    /// Evict the files that the command names from the page cache before each run
    #[arg(long, help_heading = WHAT)]
    cold: bool,
    /// Drop the page cache of the whole machine before each run (root)
    #[arg(long, help_heading = WHAT, conflicts_with = "cold")]
    drop_caches: bool,
    /// Run this shell command before each run; its time is not measured
    #[arg(long, help_heading = WHAT, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Run this shell command after each run; its time is not measured
    #[arg(long, help_heading = WHAT, value_name = "COMMAND")]
    cleanup: Option<String>,
    /// Leave out the timed final sync, which writes back the data that the command left in the page cache
    #[arg(long, help_heading = WHAT)]
    no_sync: bool,
    /// Load no BPF programs into the kernel (only root can); syncs and the flags of opened files are then not counted
    #[arg(long, help_heading = WHAT)]
    no_trace: bool,
    /// Number of runs; a failed run is the last one [default: 1, with --compare 5]
    #[arg(long, help_heading = HOW_LONG, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Format of the report on standard error
    #[arg(long, help_heading = OUTPUT, default_value = "text", value_parser = formats_of::<Report>())]
    format: &'static Format,
    #[command(flatten)]
    files: OutputArgs,
    /// Show every finding, every run and what is unknown
    #[arg(long, help_heading = OUTPUT)]
    verbose: bool,
    /// Exit with 1 if a command meets this condition, such as time>2s. With several runs the 95 % bounds of the mean decide; exit with 4
    /// if they cannot
    #[arg(long, help_heading = OUTPUT, value_name = "CONDITION", value_parser = parse_conditions)]
    fail_if: Option<Conditions>,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    /// Do not keep the session after the report is printed
    #[arg(long, help_heading = OUTPUT)]
    no_history: bool,
    /// Write back all dirty data and print the time in ns: fathom calls itself with this flag for the final sync
    #[arg(long, hide = true)]
    sync_all: bool,
}

/// The conditions of `--fail-if`.
#[derive(Clone, Debug)]
struct Conditions(Vec<Condition>);

fn parse_conditions(text: &str) -> Result<Conditions, String> {
    let all = model::spec::conditions::conditions(text)?;
    match all.iter().find(|condition| !analysis::command::applies_to_commands(condition)) {
        Some(other) => Err(format!(
            "{} cannot be measured for a command; type a condition such as time>2s",
            other.to_flag()
        )),
        None => Ok(Conditions(all)),
    }
}

/// Returns the first word of a shell command if the shell finds no such program. `None` also for a word with a slash or with characters
/// that the shell may interpret.
fn find_missing_program(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let is_plain =
        word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c)) && !word.starts_with('-');
    if !is_plain {
        return None;
    }
    let found = std::process::Command::new(time::SHELL)
        .args(["-c", "command -v \"$1\"", "sh", word])
        .stdout(std::process::Stdio::null())
        .status();
    found.is_ok_and(|status| !status.success()).then_some(word)
}

impl Args {
    /// Runs the command and reports. Returns the exit code of the command, of a condition, or of a failure of fathom.
    pub fn run(self) -> ExitCode {
        if self.sync_all {
            return time::sync_all();
        }
        // --prepare may make the program.
        if let Some((line, program)) = self.compare.iter().find_map(|l| Some((l, find_missing_program(l)?)))
            && self.prepare.is_none()
        {
            stderr::print(&format!(
                "fathom: --compare {}: there is no program '{program}'; type the name or path of one",
                name::quoted(line)
            ));
            return ExitCode::from(time::NOT_FOUND);
        }
        match self.request() {
            Ok((request, showing)) => time::time(&request, &showing),
            Err(failure) => {
                failure.print();
                ExitCode::from(OWN_FAILURE)
            }
        }
    }

    fn request(self) -> Result<(Request, Showing), Failure> {
        let commands: Vec<Command> = if self.compare.is_empty() {
            let args: Vec<String> = self.command.iter().map(name::text).collect();
            if args.is_empty() {
                return Err(Failure::Usage(
                    "no command to run; type it after --, such as `fathom time -- cp -a src dst`".into(),
                ));
            }
            vec![Command { line: name::line(&args), args }]
        } else {
            let shell = |line: &String| Command {
                line: line.clone(),
                args: vec![time::SHELL.into(), "-c".into(), line.clone()],
            };
            self.compare.iter().map(shell).collect()
        };
        self.files.check::<Report>()?;
        let usual = if commands.len() > 1 { COMPARED_RUNS } else { 1 };
        let cold = match (self.cold, self.drop_caches) {
            (_, true) => Cold::Everything,
            (true, false) => Cold::Named,
            (false, false) => Cold::No,
        };
        let Self { prepare, cleanup, .. } = self;
        let study = CommandStudy { commands, cold, final_sync: !self.no_sync, prepare, cleanup };
        let request = Request {
            study,
            runs: self.runs.unwrap_or(usual),
            trace: !self.no_trace,
            fail_if: self.fail_if.map(|all| all.0).unwrap_or_default(),
            keep: !self.no_history,
        };
        let showing = Showing {
            replace: self.files.replace(),
            outputs: self.files.output,
            detail: detail(false, self.verbose),
            inconclusive: self.inconclusive.inconclusive,
            ..Showing::plain(self.format)
        };
        Ok((request, showing))
    }
}
