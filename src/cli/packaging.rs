//! `fathom man` and `fathom completions`: what a package installs along with the program, made from the tables of `--help`.
//!
//! A manual page is made in three steps:
//! 1. `clap_mangen` renders name, synopsis, description and options from the tables of `--help`.
//! 2. The exit codes at the end of a command's help become a section.
//! 3. Sections that `--help` lacks (environment, files, examples, see also) come from the tables below.

use super::Cli;
use crate::cli::shared_flags::one_of;
use crate::failure::Failure;
use crate::files::output::{self, ProtectedPaths, Replace, Rules};
use crate::stdout;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the manual pages of all commands into a directory.
///
/// Without DIR it prints the page of fathom itself: `fathom man | man -l -`. With DIR it writes a page for each command: `fathom man
/// /usr/local/share/man/man1`, then `man fathom-bench`. An existing page is replaced if it is a text file. fathom never writes to a
/// device through a link.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// Existing directory [default: print the page of fathom]
    dir: Option<PathBuf>,
}

impl ManArgs {
    /// Prints the page of fathom itself, or writes the pages of all commands.
    ///
    /// # Errors
    /// If a page must not replace a file, or cannot be written. All files are checked before any is written.
    pub fn write(self) -> Result<ExitCode, Failure> {
        let pages =
            render_pages().map_err(|e| Failure::Refused(format!("a manual page cannot be made: {e}")))?;
        let Some(dir) = self.dir else {
            // A roff page is printed unchanged.
            return stdout::print_bytes(pages.first().map_or(&[], |(_, page)| page.as_slice()))
                .map(|()| ExitCode::SUCCESS);
        };
        if !dir.is_dir() {
            let shown = model::name::shown(&dir);
            return Err(Failure::Usage(format!(
                "{shown} is not a directory; type an existing one, or make it with `mkdir -p {shown}`"
            )));
        }
        let rules = Rules { flag: "man", protected: ProtectedPaths::default(), replace: Replace::OnlyText };
        let places: Vec<PathBuf> = pages.iter().map(|(name, _)| dir.join(name)).collect();
        // Check all files before writing any.
        let outlets = output::decide_all(&places, &rules)?;
        for (outlet, (_, page)) in outlets.iter().zip(&pages) {
            outlet.write(page, &rules)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Renders every page. Each comes with its file name; the page of fathom itself is the first.
fn render_pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    // clap completes command names (`fathom-bench`) only when it builds the command.
    let mut cli = Cli::command();
    cli.build();
    let commands = std::iter::once(&cli).chain(cli.get_subcommands().filter(|c| !c.is_hide_set()));
    commands
        .map(|command| Ok((Man::new(command.clone()).get_filename(), render_page(&cli, command)?)))
        .collect()
}

/// Renders the page of one command.
fn render_page(cli: &Command, command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    man.render_synopsis_section(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    man.render_options_section(&mut bytes)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut bytes)?;
    }
    let mut roff = Roff::new();
    add_exit_codes(&mut roff, cli, command);
    add_definitions(&mut roff, "ENVIRONMENT", &ENVIRONMENT);
    add_definitions(&mut roff, "FILES", &FILES);
    add_examples(&mut roff, command);
    add_references(&mut roff, cli, command);
    roff.to_writer(&mut bytes)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut bytes)?;
    }
    Ok(bytes)
}

/// Returns the exit codes at the end of a command's help, separated by semicolons; `None` if its help has none.
fn exit_codes_in_help(command: &Command) -> Option<String> {
    let help = command.get_after_help()?.to_string();
    let (_, codes) = help.split_once("Exit codes")?.1.split_once(": ")?;
    Some(codes.to_owned())
}

/// Exit codes of the commands that neither measure nor judge.
const OTHER_EXIT_CODES: &str = "0 done; 2 usage; 3 the machine refused.";

/// Adds a list of exit codes. It is the first of these that exists: the codes of the imitated tool,
/// the codes at the end of the command's help, the codes of `fathom` if the command judges,
/// [`OTHER_EXIT_CODES`].
fn add_exit_codes(roff: &mut Roff, cli: &Command, command: &Command) {
    roff.control("SH", ["EXIT STATUS"]);
    let name = command.get_name();
    let of_tool = match name {
        "fio" => Some(
            "0 the jobs ran, whatever the verdict; 1 a job failed, or an option is wrong; 128 interrupted.",
        ),
        "diskspd" | "iometer" => Some(
            "0 the tests ran, whatever the verdict; 1 a test failed, or an option is wrong; 128 interrupted.",
        ),
        _ => None,
    };
    let has_conditions = command.get_arguments().any(|argument| argument.get_long() == Some("fail-if"));
    let judges = has_conditions || ["iops", "show"].contains(&name);
    let codes = of_tool
        .map(str::to_owned)
        .or_else(|| exit_codes_in_help(command))
        .or_else(|| judges.then(|| exit_codes_in_help(cli)).flatten())
        .unwrap_or_else(|| OTHER_EXIT_CODES.to_owned());
    for code in codes.split("; ") {
        let (number, meaning) = code.split_once(' ').unwrap_or((code, ""));
        roff.control("TP", []).text([bold(number)]).text([roman(meaning)]);
    }
}

/// Adds a section of names and their descriptions.
fn add_definitions(roff: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (name, meaning) in rows {
        roff.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
    }
}

/// Adds the examples of a command. The page of `fathom` has the first one of each command.
fn add_examples(roff: &mut Roff, command: &Command) {
    roff.control("SH", ["EXAMPLES"]);
    let is_fathom = command.get_name() == "fathom";
    let mut last = "";
    for (line, meaning) in EXAMPLES {
        let name = line.split(' ').nth(1).unwrap_or_default();
        if if is_fathom { name != last } else { name == command.get_name() } {
            roff.control("TP", []).text([bold(line)]).text([roman(meaning)]);
        }
        last = name;
    }
}

/// Adds references: all commands on the page of `fathom`; elsewhere that page and the imitated tool.
fn add_references(roff: &mut Roff, cli: &Command, command: &Command) {
    roff.control("SH", ["SEE ALSO"]);
    let mut pages = Vec::new();
    if command.get_name() == "fathom" {
        pages.extend(
            cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| format!("fathom-{}(1)", c.get_name())),
        );
    } else {
        pages.push("fathom(1)".to_owned());
        if dialect::COMMANDS.contains(&command.get_name()) {
            pages.push(format!("{}(1)", command.get_name()));
        }
    }
    roff.text([roman(pages.join(", "))]);
}

/// Environment variables that the program reads.
#[rustfmt::skip]
const ENVIRONMENT: [(&str, &str); 9] = [
    ("XDG_DATA_HOME", "Directory that holds fathom/, the sessions. Default: ~/.local/share."),
    ("HOME", "Home directory, used if XDG_DATA_HOME is not set."),
    ("TMPDIR", "Directory for sessions if the data directory cannot be written. Default: /tmp."),
    ("COLUMNS", "Width of text in columns. Default: the width of the terminal, or 80."),
    ("NO_COLOR", "Turns colours off."),
    ("TERM, CI", "There is no live view if TERM is unset or dumb. If CI is set, the live view requires --live."),
    ("LC_ALL, LC_CTYPE, LANG", "Without a UTF-8 locale the live view uses ASCII."),
    ("FATHOM_DESTROY", "Paths, separated by colons, that `fathom fio`, `diskspd` and `iometer` may overwrite, like those of their --destroy=NAME. Other commands have only --destroy."),
    ("FATHOM_UNSEEN_USERS", "Like FATHOM_DESTROY, for paths that fathom may overwrite even if it cannot see all processes of the machine (in a container). Other commands have --unseen-users."),
];

/// Files that the program makes or reads.
#[rustfmt::skip]
const FILES: [(&str, &str); 5] = [
    ("~/.local/share/fathom/sessions/", "Sessions: each file has everything that was measured, with checksums."),
    ("~/.local/share/fathom/history.db", "Index of the sessions. It can be deleted; fathom makes it again."),
    ("/tmp/fathom-UID/", "Sessions, if the data directory cannot be written."),
    (".fathom-test-*", "Test files in a target directory. They are removed at the end. After a crash, the next run in that directory reports the remaining ones."),
    ("/proc, /sys", "Counters and settings of the kernel. Without them more checks report NOT CHECKED."),
];

/// Examples: the command line, and what it does. The examples of one command are adjacent.
#[rustfmt::skip]
const EXAMPLES: [(&str, &str); 34] = [
    ("fathom bench", "Measures the current directory in about a minute and a half."),
    ("fathom bench --quick /srv/data", "Measures another directory in ten seconds, without confidence intervals."),
    ("fathom run --rw randread --bs 4k --depth 32 /dev/nvme0n1", "Reads a device without changing it."),
    ("fathom run job.toml /srv/data -o report.html", "Runs a job file and writes a page with plots."),
    ("fathom layers /srv/data", "Measures each layer from the device to the page cache."),
    ("fathom limit /srv/data --p99 1ms", "Finds the highest rate with a 99th percentile of at most 1 ms."),
    ("fathom watch /srv/data 5", "Shows every 5 seconds what the devices below a directory do."),
    ("fathom watch --format openmetrics -o /var/lib/prometheus/node-exporter/fathom.prom 15", "Renews a file for node_exporter every 15 seconds."),
    ("fathom time -- cp -a /srv/data /backup", "Runs cp and reports what the disks did meanwhile."),
    ("fathom sweep --rw randread --bs 4k,16k --depth 1,8,32 /srv/data", "Finds the best of six settings."),
    ("fathom api --interface pread,mmap,io_uring /srv/data", "Compares three interfaces."),
    ("fathom recipe etcd /var/lib/etcd", "Reports whether the storage is fast enough for etcd."),
    ("fathom fio --name=t --rw=randread --size=64m --directory=/srv/data", "Runs a command line of fio."),
    ("fathom iops /dev/sda", "Reads blocks of doubling sizes."),
    ("fathom diskspd -c64M -b4K -r -d5 /srv/data/file", "Runs a command line of DISKSPD."),
    ("fathom iometer /c tests.icf /r result.csv /srv/data", "Runs a configuration file of Iometer."),
    ("fathom list", "Lists earlier sessions, newest first."),
    ("fathom show last --verbose", "Prints the last session with all findings."),
    ("fathom compare last~1 last", "Reports whether the last session was faster than the one before it."),
    ("fathom tag last before-upgrade", "Names a session."),
    ("fathom note last 'new firmware'", "Adds a note to a session."),
    ("fathom export last -o report.json", "Writes a report for programs."),
    ("fathom import 20261122-144019-20797.fathom", "Adds a session of another machine."),
    ("fathom delete last --yes", "Removes a session."),
    ("fathom capture /dev/sda -o db.capture --time 1m", "Records every request of a device for a minute. Requires root."),
    ("fathom fit db.capture -o job.toml", "Makes a job file from a capture."),
    ("fathom fit --check db.capture /dev/nvme1n1 --destroy SERIAL", "Runs the job on a device and compares both loads."),
    ("fathom verify --size 1g /srv/data", "Writes a file, reads it back and compares."),
    ("fathom doctor /srv/data", "Lists what would disturb a measurement."),
    ("fathom devices", "Lists the block devices and their users."),
    ("fathom explain A04", "Explains a check."),
    ("fathom completions bash", "Prints the completion script for bash."),
    ("fathom man /usr/local/share/man/man1", "Writes the manual pages into a directory."),
    ("fathom help exit-codes", "Prints a chapter of the guide."),
];

/// Print the script that completes fathom's commands, flags and values in a shell.
///
/// For bash: `fathom completions bash > /usr/share/bash-completion/completions/fathom`, or `source <(fathom completions bash)`. For
/// zsh: `fathom completions zsh > _fathom` in a directory of $fpath. For fish: `fathom completions fish >
/// ~/.config/fish/completions/fathom.fish`.
#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// Shell to print the script for
    #[arg(value_parser = one_of(&SHELLS))]
    shell: Shell,
}

const SHELLS: [(&str, &str, Shell); 3] =
    [("bash", "", Shell::Bash), ("zsh", "", Shell::Zsh), ("fish", "", Shell::Fish)];

impl CompletionsArgs {
    /// Prints the script.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn print(self) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        let mut cli = Cli::command();
        clap_complete::generate(self.shell, &mut cli, "fathom", &mut script);
        stdout::print_bytes(&script).map(|()| ExitCode::SUCCESS)
    }
}

#[test]
fn every_command_has_a_page_that_names_its_flags() {
    let pages = render_pages().unwrap_or_default();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.first(), Some(&"fathom.1"));
    for command in Cli::command().get_subcommands() {
        let name = format!("fathom-{}.1", command.get_name());
        let page = pages.iter().find(|(page_name, _)| *page_name == name);
        let page = page.unwrap_or_else(|| panic!("no {name} in {names:?}"));
        let text = String::from_utf8_lossy(&page.1).replace('\\', "");
        for flag in command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(clap::Arg::get_long) {
            assert!(text.contains(&format!("--{flag}")), "{name}: {flag}");
        }
    }
}

#[test]
fn every_page_has_its_sections_and_examples_that_the_command_line_accepts() {
    for (name, page) in render_pages().unwrap_or_default() {
        let text = String::from_utf8_lossy(&page).into_owned();
        for title in ["\"EXIT STATUS\"", "ENVIRONMENT", "FILES", "EXAMPLES", "\"SEE ALSO\""] {
            let section = text.split_once(&format!("\n.SH {title}\n")).map(|(_, rest)| rest);
            let first = section.and_then(|rest| rest.lines().next());
            assert!(first.is_some_and(|line| !line.starts_with(".SH")), "{name}: {title}");
        }
        assert!(!text.contains("EXTRA"), "{name}");
        // These commands judge a measurement.
        let judges = ["fathom-bench.1", "fathom-iops.1", "fathom-show.1"].contains(&name.as_str());
        assert!(!judges || text.contains("INVALID"), "{name}");
    }
    for (line, _) in EXAMPLES {
        let args: Vec<&str> = line.split(' ').map(|word| word.trim_matches('\'')).collect();
        // A quoted argument counts as several words here, which `note` accepts.
        if let Err(error) = <Cli as clap::Parser>::try_parse_from(&args) {
            panic!("{line}: {error}");
        }
    }
}
