//! Help: `fathom help` (a command or a chapter of the guide), `fathom COMMAND -h` (the common flags, one line each), and
//! `fathom -h` (first steps on one screen). `--help` has all flags, grouped and explained.
//!
//! The build script compiles the chapters in, from the pages that `docs/SUMMARY.md` lists. A topic is a command, the path
//! of a chapter, the last part of its path, or its title. A command comes first, and its help names the chapters of the
//! same name.
//!
//! For `-h`, [`shorten`] changes the help that clap prints: flags in [`SHOWN`] get one line, except
//! in the commands where they mean something else ([`has_other_meaning`]); other settings of jobs,
//! flags in [`HIDDEN`] and exit codes are left out. All other flags remain.

use super::Cli;
use crate::cli::shared_flags::find_check;
use crate::cli::usage_error::{has_other_meaning, likeness, most_similar};
use crate::failure::Failure;
use crate::stdout;
use clap::{Command, CommandFactory};
use model::name::visible;
use model::spec::keys;
use output::stream;
use std::process::ExitCode;

/// A chapter of the guide.
struct Chapter {
    /// Title of the part of the guide that has the chapter; empty for chapters after the last part.
    part: &'static str,
    /// Title in the table of contents.
    title: &'static str,
    /// Path of the page below `docs/`, without the extension.
    path: &'static str,
    /// Text in Markdown.
    text: &'static str,
}

/// All chapters, in the order of the guide.
const CHAPTERS: &[Chapter] = include!(concat!(env!("OUT_DIR"), "/chapters.rs"));

/// Print the help of a command, or a chapter of the guide.
///
/// Without TOPIC it lists both. TOPIC is a command (`run`), or the file name or title of a chapter (`containers`, `how-to/ci`,
/// `exit codes`).
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A command or a chapter [default: list them]
    topic: Vec<String>,
}

impl Args {
    /// Prints the topic.
    ///
    /// # Errors
    /// There is no such topic, or it cannot be printed.
    pub fn print(self) -> Result<ExitCode, Failure> {
        let topic = slug(&self.topic.join(" "));
        let text = if topic.is_empty() {
            list_topics()
        } else {
            page(&topic, stream::columns(Some(rustix::stdio::stdout())))?
        };
        stdout::print_text(&text).map(|()| ExitCode::SUCCESS)
    }
}

/// Lists the commands and the chapters.
fn list_topics() -> String {
    let mut out = Cli::command().render_help().to_string();
    out += "\nThe guide (`fathom help CHAPTER`):\n";
    let mut part = "";
    for chapter in CHAPTERS {
        if chapter.part != part {
            part = chapter.part;
            out += &format!("\n{}\n", if part.is_empty() { "More" } else { part });
        }
        out += &format!("  {:<28}{}\n", chapter.path, chapter.title);
    }
    out
}

/// Returns the help of a command, or a chapter.
fn page(topic: &str, width: usize) -> Result<String, Failure> {
    let mut cli = Cli::command();
    cli.build();
    let chapters: Vec<&Chapter> =
        CHAPTERS.iter().filter(|chapter| chapter.names().any(|name| name == topic)).collect();
    if let Some(command) = cli.find_subcommand_mut(topic) {
        let mut out = command.render_long_help().to_string();
        for chapter in chapters {
            out += &format!("\nThe guide has a chapter about it: `fathom help {}`\n", chapter.path);
        }
        return Ok(out);
    }
    match chapters.first() {
        Some(chapter) => Ok(report::chapter(chapter.text, width)),
        None => Err(Failure::Usage(explain_unknown_topic(topic, &cli))),
    }
}

/// Finds the glossary's entries for a term, one per line; `None` if the glossary does not have the term.
///
/// An entry is `- **Term**: text`, and may name several terms: `- **VALID, INVALID**: text`.
pub(super) fn find_term(term: &str) -> Option<String> {
    let chapter = CHAPTERS.iter().find(|chapter| chapter.path == "glossary")?;
    let term = term.trim().to_lowercase();
    let meanings = chapter.text.split("\n- **").skip(1).filter_map(|entry| {
        let (terms, meaning) = entry.split_once("**: ")?;
        let has_term = terms.split(", ").any(|one| one.to_lowercase() == term);
        has_term.then(|| format!("{terms}: {}\n", meaning.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    let meanings: String = meanings.collect();
    (!meanings.is_empty()).then_some(meanings)
}

/// Makes the message about a topic that does not exist. It names the check of that name or, if
/// there is none, the most similar topic that is similar enough.
fn explain_unknown_topic(topic: &str, cli: &clap::Command) -> String {
    let shown = visible(topic);
    if let Ok(check) = find_check(&topic.replace('-', "_")) {
        return format!("'{shown}' is a check: type `fathom explain {}`", check.id);
    }
    let commands = cli.get_subcommands().map(|command| command.get_name().to_owned());
    let topics = commands.chain(CHAPTERS.iter().flat_map(Chapter::names));
    let nearest = most_similar(topics, |name| likeness(topic, name));
    let similar =
        nearest.map_or_else(String::new, |name| format!("; the most similar is `fathom help {name}`"));
    format!("there is no command or chapter '{shown}'{similar}; `fathom help` lists all")
}

impl Chapter {
    /// The names of a chapter: its path, the last part of its path, and its title.
    fn names(&self) -> impl Iterator<Item = String> {
        let last = self.path.rsplit('/').next().unwrap_or(self.path);
        [slug(last), slug(self.path), slug(self.title)].into_iter()
    }
}

/// A name in the form used for comparison: lower case, with `-` for spaces and `_`, without the
/// extension of a page.
fn slug(name: &str) -> String {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    name.strip_suffix(".md").unwrap_or(&name).to_owned()
}

/// Flags that `-h` shows, each with its line of help. The names are clap's ids: settings of jobs have hyphens, other flags underscores.
const SHOWN: [(&str, &str); 38] = [
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
    ("fdatasync", "Call fdatasync after this many writes"),
    ("precondition", "First write the target until its rate settles"),
    ("until", "steady: run rounds until they no longer drift"),
    ("fail-if", "Exit code 1 under a condition, such as 'p99>10ms'"),
    ("fail_if_slower", "Exit code 1 if slower than the other side by more than this percentage"),
    ("profile", "Which tests: cdm, nvme, six, peak, real, atto ..."),
    ("budget", "Time limit from start to report"),
    ("tolerance", "Count settings as equally fast up to this difference"),
    ("explain", "Print what would be measured, and stop"),
    ("output", "Also write the report to FILE, by its extension: json, html, csv, md"),
    ("destroy", "Allow overwriting this existing file or device"),
    ("verbose", "Show every finding, every run and every check"),
    ("quick", "Take ten seconds, without confidence intervals"),
    ("compare", "Measure these in turns and report which is faster"),
    ("all", "All interfaces"),
    ("preset", "A known grid: iops, ccsio, iometer, pts, zones"),
    ("p99", "Latency target: a p99 of at most this, such as 1ms"),
    ("curve", "With a latency target, also measure the load curve"),
    ("by", "Rank settings by iops, bandwidth, p99 or latency"),
    ("spec", "Access specifications of Iometer, such as 4k-oltp, or all"),
    ("resume", "Continue an interrupted sweep: its id, or last"),
    ("list", "Print the list, one per line, and stop"),
    ("state", "Record in FILE which data are stable, for --check"),
    ("check", "Read back the data that a state file lists as stable"),
    ("cached", "Read back through the page cache without evicting it"),
    ("sync_every", "Writes between two syncs"),
];
/// Flags that only `--help` shows, apart from settings of jobs.
#[rustfmt::skip]
const HIDDEN: [&str; 33] = [
    "format", "force", "accept", "ledger", "brief", "no_history", "unseen_users", "expect_device", "live", "no_live", "quiet",
    "ranks_per_host", "hosts", "inconclusive", "fail_on", "against", "keep", "own", "shared", "p50", "p90", "p95",
    "p99_9", "spec_file", "cycle", "step", "pattern", "skipped", "list_specs", "exhaustive", "targets", "memory", "shift_hosts",
];

/// Heading of all flags in `-h`.
const HEADING: &str = "Flags";

/// Shortens the help of every command to that of `-h`.
pub(super) fn shorten(cli: Command) -> Command {
    let names: Vec<String> = cli.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(cli, |cli, name| cli.mut_subcommand(name, shorten_command))
}

fn shorten_command(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let has_exit_codes = command.get_after_help().is_some_and(|help| help.to_string().contains("Exit codes"));
    let codes = if has_exit_codes { ", and the exit codes" } else { "" };
    command.after_help(format!("`fathom {name} --help` explains every flag{codes}.")).mut_args(|arg| {
        let id = arg.get_id().as_str().to_owned();
        if arg.is_hide_set() || arg.is_positional() {
            return arg;
        }
        match SHOWN.iter().find(|(shown, _)| *shown == id) {
            _ if has_other_meaning(&id, &name) => arg.help_heading(HEADING),
            Some((_, line)) => {
                arg.help(*line).hide_possible_values(true).hide_default_value(true).help_heading(HEADING)
            }
            None if keys::find(&id).is_some() || HIDDEN.contains(&id.as_str()) => arg.hide(true),
            None => arg.help_heading(HEADING),
        }
    })
}

/// The first steps of `fathom -h`: command lines, and what they do.
const STEPS: [(&str, &str); 5] = [
    ("fathom bench", "the standard benchmarks, in a minute and a half"),
    ("fathom run --rw randread --bs 4k --depth 32", "one workload"),
    ("fathom recipe etcd", "is this fast enough for etcd? `fathom recipe` lists more"),
    ("fathom doctor", "what would distort a result here"),
    ("fathom limit --p99 1ms", "the highest rate that meets a latency target"),
];
/// Columns of `fathom -h`.
const WIDTH: usize = 80;

/// The text of `fathom -h`.
pub(super) fn first_steps() -> String {
    let mut out = String::from(
        "Measures storage, and says whether the number means what you think it means.\n\n\
         Usage: fathom COMMAND [FLAGS] [TARGET]\n\n\
         TARGET is a directory, a file or a block device; default: current directory.\n\
         Existing files and devices are only read, unless --destroy names them. Try:\n\n",
    );
    for (typed, does) in STEPS {
        out += &format!("  {typed}\n      {does}\n");
    }
    out += "\nOther commands:\n";
    out += &list_other_commands();
    out += "`fathom COMMAND --help` lists the flags, `fathom help` all commands and a guide.\n";
    out
}

/// Lists the commands that are not among the first steps.
fn list_other_commands() -> String {
    let cli = Cli::command();
    let named = |name: &str| STEPS.iter().any(|(typed, _)| typed.split(' ').nth(1) == Some(name));
    let (mut out, mut line) = (String::new(), String::from(" "));
    for name in cli.get_subcommands().map(clap::Command::get_name).filter(|name| !named(name)) {
        if line.len() + 1 + name.len() > WIDTH {
            out += &format!("{line}\n");
            line = " ".into();
        }
        line += &format!(" {name}");
    }
    out + &line + "\n"
}

#[test]
fn every_chapter_is_found_by_its_names() {
    assert!(CHAPTERS.len() > 15, "{}", CHAPTERS.len());
    for chapter in CHAPTERS {
        let text = page(chapter.path, 80).unwrap_or_default();
        assert_eq!(text, report::chapter(chapter.text, 80));
        assert!(text.starts_with("# "), "{text}");
        assert!(list_topics().contains(&format!("  {} ", chapter.path)), "{}", chapter.path);
        // A command of the same name comes first, and names the chapter.
        for name in chapter.names() {
            let text = page(&name, 80).unwrap_or_default();
            let is_a_chapter = text.starts_with("# ");
            assert!(
                is_a_chapter || text.contains(&format!("`fathom help {}`", chapter.path)),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn terms_of_reports_are_in_the_glossary() {
    assert_eq!(find_term("no such term"), None);
    let terms = ["headline", "void", "cell", "depth", "valid", "INVALID", "suspect", "p99", "ledger"];
    let answers = ["FASTEST", "TIED", "KS", "IDC", "CANNOT TELL", "no difference seen", "synced"];
    for term in terms.into_iter().chain(answers) {
        let meaning = find_term(term).unwrap_or_default();
        assert!(
            meaning.to_lowercase().contains(&term.to_lowercase()) && meaning.lines().count() == 1,
            "{term}: {meaning}"
        );
    }
}

#[test]
fn a_term_with_two_entries_has_both() {
    // The glossary has two entries: a part of a run, and a word for how the rate changes.
    let meaning = find_term("warm-up").unwrap_or_default();
    assert!(
        meaning.lines().count() == 2 && meaning.contains("\nWarm-up: the first part of a run"),
        "{meaning}"
    );
}

#[test]
fn an_unknown_topic_suggests_the_nearest() {
    for (typed, answer) in [
        ("exit-code", "`fathom help exit-codes`"),
        ("sweeep", "`fathom help sweep`"),
        ("cache_served", "`fathom explain A01`"),
        ("a\u{1b}b", "'a\\u{1b}b'"),
    ] {
        let why =
            page(&slug(typed), 80).err().map(|failure| failure.message().to_owned()).unwrap_or_default();
        assert!(why.contains(answer), "{typed}: {why}");
    }
    let why = page("nosuch", 80).err().map(|failure| failure.message().to_owned());
    assert_eq!(why.as_deref(), Some("there is no command or chapter 'nosuch'; `fathom help` lists all"));
}

/// Makes the tables of `docs/reference/settings.md`: every flag of `fathom run` by heading, the keys that only job files have, and the
/// engines.
#[cfg(test)]
fn render_settings() -> String {
    use model::spec::keys::{Command, KEYS, find};
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let cli = Cli::command();
    let run = cli.find_subcommand("run").unwrap_or(&cli);
    let mut out = String::new();
    let flags: Vec<_> =
        run.get_arguments().filter(|flag| !flag.is_hide_set() && !flag.is_positional()).collect();
    let mut headings: Vec<&str> = flags.iter().filter_map(|flag| flag.get_help_heading()).collect();
    let mut seen = std::collections::HashSet::new();
    headings.retain(|heading| seen.insert(*heading));
    for heading in headings {
        out += &format!("\n## {heading}\n\n| flag | value | meaning |\n|---|---|---|\n");
        for flag in flags.iter().filter(|flag| flag.get_help_heading() == Some(heading)) {
            let name = flag.get_long().unwrap_or_default();
            let takes_value = flag.get_action().takes_values();
            let names = flag.get_value_names().filter(|_| takes_value);
            let value = names.map_or_else(String::new, |names| format!("`{}`", names.join(" ")));
            let mut meaning = flag.get_help().map(ToString::to_string).unwrap_or_default();
            if find(name).is_none() {
                meaning += " (a flag only)";
            }
            out += &format!("| `--{name}` | {} | {} |\n", cell(&value), cell(&meaning));
        }
    }
    out += "\n## In job files only\n\n| key | value | meaning |\n|---|---|---|\n";
    for key in KEYS.iter().filter(|key| !key.taken.contains(&Command::Run)) {
        let value = if key.is_switch() { "true" } else { key.value };
        out += &format!("| `{}` | `{}` | {} |\n", key.name, cell(value), cell(key.about));
    }
    out += "\n## Engines\n\n| `--engine` | meaning |\n|---|---|\n";
    for line in crate::cli::shared_flags::list_engines().lines() {
        let (name, about) = line.trim_start().trim_start_matches("- ").split_once(": ").unwrap_or((line, ""));
        out += &format!("| `{}` | {} |\n", cell(name), cell(about));
    }
    out + "\n"
}

#[test]
#[cfg_attr(not(feature = "cxx"), ignore = "the page lists the engine of the feature cxx too")]
fn the_page_of_settings_has_every_flag_of_run() {
    const MARK: &str = "<!-- made by the test of src/cli/help.rs -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/settings.md");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let (before, _) = kept.split_once(MARK).unwrap_or((kept.as_str(), ""));
    let now = format!("{before}{MARK}{}", render_settings());
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(path, &now).unwrap_or_else(|e| panic!("{path}: {e}"));
        return;
    }
    // Not `assert_eq`: it would print both pages.
    assert!(kept == now, "renew it: FATHOM_BLESS=1 cargo test -p fathom-io --lib page_of_settings");
}

#[test]
fn the_short_help_of_every_command_fits_forty_lines() {
    use clap::CommandFactory;
    let mut long = Vec::new();
    for command in shorten(crate::cli::Cli::command()).get_subcommands_mut() {
        let text = command.render_help().to_string();
        if text.lines().count() > 40 {
            long.push(format!("{} has {} lines:\n{text}", command.get_name(), text.lines().count()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
#[cfg_attr(not(feature = "capture"), ignore = "needs every command")]
fn the_short_help_describes_the_flags_of_its_command() {
    let cli = shorten(Cli::command());
    let command = |name: &str| cli.find_subcommand(name).unwrap_or_else(|| panic!("{name}"));
    for (name, flag, part) in [
        ("capture", "output", "Capture file"),
        ("capture", "time", "Length of the capture"),
        ("export", "output", "A directory"),
        ("fit", "check", "compare it with the capture"),
        ("list", "target", "in the path of a target"),
        ("list", "until", "began at this time or earlier"),
        ("show", "explain", "second by second"),
        ("time", "cold", "Evict the files"),
        ("verify", "bs", "a multiple of 512"),
        ("verify", "time", "Stop writing after this time"),
        ("run", "time", "Length of the measured part"),
    ] {
        let arg = command(name).get_arguments().find(|arg| arg.get_id() == flag && !arg.is_hide_set());
        let line = arg.and_then(|arg| arg.get_help()).map(ToString::to_string).unwrap_or_default();
        assert!(line.contains(part), "{name} --{flag}: {line}");
    }
    for (name, has_codes) in [("bench", false), ("compare", true)] {
        let end = command(name).get_after_help().map(ToString::to_string).unwrap_or_default();
        assert_eq!(end.contains("exit codes"), has_codes, "{end}");
    }
}

#[test]
fn first_steps_fit_a_screen_and_name_every_command() {
    let text = first_steps();
    assert!(text.lines().count() <= 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    for command in Cli::command().get_subcommands() {
        assert!(text.contains(&format!(" {}", command.get_name())), "{}: {text}", command.get_name());
    }
}

#[test]
fn every_step_can_be_typed() {
    use clap::Parser;
    for (typed, _) in STEPS {
        assert!(Cli::try_parse_from(typed.split(' ')).is_ok(), "{typed}");
    }
}
