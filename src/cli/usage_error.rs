//! Errors of the command line, each with what to type instead in its first line.
//!
//! clap finds the error. [`advise`] rewrites these kinds:
//! 1. an unknown option: the first advice of [`OPTION_RULES`], otherwise the most similar option;
//! 2. an unknown command: a recipe, a file to show, run or measure, or the most similar command;
//! 3. an invalid value of an option: the values that resemble it, or all if none does;
//! 4. a missing argument or second value: the complete line;
//! 5. a needless value, or two options that conflict: what to leave out.
//!
//! A suggested command line is parsed before it is printed. One that fathom would refuse is not suggested.
//!
//! [`find_long_dash`] finds options that were pasted from a web page.

use super::{Cli, find_tool};
use crate::capture::capture_file::is_capture;
use crate::files::{self, Small};
use crate::recipes::RECIPES;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use dialect::options::{How, ToolOption};
use dialect::{MAX_FILE_BYTES, detect_tool, language_of_path};
use model::name;
use model::profile::{PROFILES, Profile};
use model::record::MAGIC;
use model::spec::foreign::Tool;
use model::spec::keys::{self, Counterpart, Key, TARGET};
use model::spec::number::any_of;
use model::units::parse_duration_ns;
use std::ffi::OsString;
use std::iter;
use std::path::Path;

/// A message suggests the most similar name if its similarity, from 0 to 1, is at least this.
const LIKENESS: f64 = 0.6;
/// An argument has the name of an option if they are at least this similar.
const LIKENESS_OF_ARGUMENT: f64 = 0.8;

/// Returns how similar two words are, from 0 to 1.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(one, other)
}

/// Returns the item that resembles a typed word most; `None` if no item is similar enough for a typing error.
pub(super) fn most_similar<T>(items: impl Iterator<Item = T>, likeness: impl Fn(&T) -> f64) -> Option<T> {
    let nearest = items.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&nearest) >= LIKENESS).then_some(nearest)
}

/// Rewrites an error so that its first line names what to type. Text that the user typed is shown in one line, without control characters.
pub(super) fn advise(mut error: clap::Error, words: &[String]) -> clap::Error {
    for kind in [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue] {
        if let Some(ContextValue::String(typed)) = error.get(kind) {
            let shown = name::shown(Path::new(typed));
            error.insert(kind, ContextValue::String(shown));
        }
    }
    let cli = Cli::command();
    let command = words.iter().skip(1).find_map(|word| cli.find_subcommand(word));
    let Some(message) = describe_error(&error, words, command) else { return error };
    let name = command.map_or_else(String::new, |command| format!(" {}", command.get_name()));
    clap::Error::raw(error.kind(), format!("{message}\n\nFor more information, try 'fathom{name} --help'.\n"))
}

/// Returns the message for the kinds of errors that the header of this file lists; `None` for other kinds.
fn describe_error(error: &clap::Error, words: &[String], command: Option<&clap::Command>) -> Option<String> {
    let typed = |kind| match error.get(kind) {
        Some(ContextValue::String(typed)) => Some(typed.as_str()),
        Some(ContextValue::Strings(all)) => all.first().map(String::as_str),
        _ => None,
    };
    let usage = || match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => {
            Some(usage.to_string().trim_start_matches("Usage:").trim().to_owned())
        }
        _ => None,
    };
    let name = command.map(clap::Command::get_name);
    let (option, value) = (typed(ContextKind::InvalidArg), typed(ContextKind::InvalidValue));
    Some(match error.kind() {
        ErrorKind::UnknownArgument => match option? {
            option if option.starts_with('-') => {
                let unknown = Unknown::new(option, words, command);
                explain_unknown_option(&unknown, typed(ContextKind::SuggestedArg))
            }
            argument => {
                let advice = usage().map_or_else(String::new, |usage| format!("type {usage}"));
                format!("'{argument}' is one argument too many: {advice}")
            }
        },
        ErrorKind::InvalidSubcommand => {
            explain_unknown_command(typed(ContextKind::InvalidSubcommand)?, words)
        }
        ErrorKind::InvalidValue => {
            let (option, value) = (option?, value?);
            let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return None };
            if value.is_empty() && valid.is_empty() {
                return Some(format!("'{option}' needs a value"));
            }
            format!("'{value}' is not a value of {option}: type {}", any_of(&similar_values(value, valid)))
        }
        ErrorKind::ValueValidation => {
            let (option, value) = (option?, value?);
            format!("'{value}' is not a value of {option}: {}", correct_notation(option, value, name?)?)
        }
        ErrorKind::TooFewValues => complete_two_values(option?, name?, words)?,
        ErrorKind::TooManyValues => format!("{0} takes no value: type {0}", option?),
        ErrorKind::ArgumentConflict => match (option?, typed(ContextKind::PriorArg)?) {
            (option, prior) if option == prior => format!("{option} is typed twice: type it once"),
            (option, prior) => format!("'{option}' cannot be used with '{prior}': leave one of them out"),
        },
        ErrorKind::MissingRequiredArgument => {
            let line = complete_capture(name?, words).or_else(usage)?;
            format!("fathom {} needs {}: type {line}", name?, option?)
        }
        _ => return None,
    })
}

/// Names what to type instead of an unknown command.
fn explain_unknown_command(word: &str, words: &[String]) -> String {
    let rest: Vec<String> = words.iter().skip_while(|typed| *typed != word).skip(1).cloned().collect();
    let exists = Path::new(word).exists();
    let bench = || complete_line(&["bench", word], &rest);
    let instead = match word {
        "version" => "fathom --version".to_owned(),
        "iostat" | "iotop" | "top" => "fathom watch".to_owned(),
        "fileio" => complete_line(&["api"], &rest),
        "plot" | "graph" => "fathom show last -o page.html".to_owned(),
        "slow" | "why" | "check" => complete_line(&["doctor"], &rest),
        "report" | "open" | "view" if !exists && rest.is_empty() => "fathom show last".to_owned(),
        "report" | "open" | "view" if !exists => complete_line(&["show"], &rest),
        "steady" if !exists => complete_line(&["run", "--until", "steady"], &rest),
        "info" if !exists => {
            let devices = complete_line(&["devices"], &rest);
            format!("{devices} for the disks, or fathom show last for the last report")
        }
        _ if RECIPES.iter().any(|recipe| recipe.name == word) => {
            let recipe = complete_line(&["recipe", word], &rest);
            if exists { format!("{recipe}, or {} to measure the existing {word}", bench()) } else { recipe }
        }
        _ => complete_for_file(word, &rest).unwrap_or_else(|| match most_similar_command(word) {
            _ if exists => bench(),
            Some(similar) => complete_line(&[similar.as_str()], &rest),
            None => "fathom --help".to_owned(),
        }),
    };
    format!("unknown command '{word}': type {instead}")
}

/// Returns the command that a typed word resembles most. Typing errors rarely change the first letter, so a command with the same first
/// letter is preferred.
fn most_similar_command(word: &str) -> Option<String> {
    const SAME_FIRST_LETTER: f64 = 0.1;
    let word = word.to_lowercase();
    let rank = |name: &str| {
        likeness(&word, name)
            + if name.chars().next() == word.chars().next() { SAME_FIRST_LETTER } else { 0.0 }
    };
    let cli = Cli::command();
    // `delete` is permanent, so suggest it only for an evident typing error.
    let is_alike = |name: &&str| likeness(&word, name) >= if *name == "delete" { 0.8 } else { LIKENESS };
    let names = cli.get_subcommands().map(clap::Command::get_name).filter(is_alike);
    names.max_by(|a, b| rank(a).total_cmp(&rank(b))).map(str::to_owned)
}

/// Returns the command line for a file that is a report, a session, a capture or a job file; `None` for other files. The content decides
/// or, if the file does not exist, the extension.
fn complete_for_file(word: &str, rest: &[String]) -> Option<String> {
    let path = Path::new(word);
    let content = match files::read_if_small(path, MAX_FILE_BYTES as u64) {
        Small::Read(content) => content,
        Small::Large | Small::Unreadable => Vec::new(),
        Small::NotRegular => return None,
    };
    let is_report = || {
        let json: serde_json::Value = serde_json::from_slice(&content).unwrap_or_default();
        ["fathom", "headline", "results"].iter().all(|key| json.get(key).is_some())
    };
    let exists = path.exists();
    let is_shown = if exists {
        content.starts_with(MAGIC.as_bytes()) || is_report()
    } else {
        has_extension(path, "json")
    };
    if is_shown || has_extension(path, "fathom") || is_capture(path) {
        return Some(complete_line(&["show", word], rest));
    }
    // Judge only a name that does not exist by its extension: any program may have files with this extension.
    let tool = if exists { detect_tool(&content)? } else { language_of_path(path)?.tool };
    let run = complete_line(&["run", word], rest);
    if tool != dialect::Tool::Fio {
        return Some(run);
    }
    let fio = complete_line(&["fio", word], rest);
    Some(if rest.is_empty() {
        format!("{fio} for fio's output, or {run} for fathom's report")
    } else if accepts("run", &[owned(&[word]).as_slice(), rest].concat()) {
        run
    } else {
        fio
    })
}

fn has_extension(path: &Path, known: &str) -> bool {
    path.extension().is_some_and(|typed| typed.eq_ignore_ascii_case(known))
}

/// Returns the valid values that a typed word resembles; all valid values if there is none. The
/// first of these rules that finds a value decides: the value contains the word; the word begins
/// with a part of the value (`postgres-wal` has two parts); both are spelt nearly alike.
fn similar_values<'v>(typed: &str, valid: &'v [String]) -> Vec<&'v str> {
    // Higher than [`LIKENESS`], which a single suggestion needs: all values that reach this are listed.
    const LIKENESS_OF_EACH: f64 = 0.7;
    let word = typed.to_lowercase();
    let has_part = |valid: &str| valid.split('-').any(|part| part.len() > 2 && word.starts_with(part));
    let is_alike = |valid: &str| likeness(&word, valid) >= LIKENESS_OF_EACH;
    let rules: [&dyn Fn(&str) -> bool; 4] = [&|valid| valid.contains(&word), &has_part, &is_alike, &|_| true];
    let found = |rule: &dyn Fn(&str) -> bool| -> Vec<&'v str> {
        valid.iter().map(String::as_str).filter(|valid| rule(valid)).collect()
    };
    rules.into_iter().map(found).find(|group| !group.is_empty()).unwrap_or_default()
}

/// Returns what to type for a value in another notation, if this command or a sweep accepts the result; otherwise `None`. `1-8` is the
/// range `1..8`, `70:30` are 70 % reads, `>=` is `>`, `1,5g` is `1.5g`, `60sec` is `60s`.
fn correct_notation(option: &str, value: &str, command: &str) -> Option<String> {
    let flag = option.split_once(' ')?.0;
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let parts = value.split_once(['-', ':', '/']).filter(|(a, b)| is_number(a) && is_number(b));
    let reads = parts.filter(|(a, b)| {
        a.parse::<u8>().ok().zip(b.parse().ok()).is_some_and(|(a, b)| a.checked_add(b) == Some(100))
    });
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ends_in_digit = number.trim_end().ends_with(|c: char| c.is_ascii_digit());
    let unit = value[number.len()..].chars().next().filter(|_| ends_in_digit);
    let unit = unit.map(|unit| format!("{}{unit}", number.trim()));
    let here = [
        reads.map(|(reads, _)| reads.to_owned()),
        Some(value.replace(">=", ">").replace("<=", "<")),
        Some(value.replace(',', ".")),
        unit,
    ];
    let several = [
        Some(value.to_owned()).filter(|list| list.contains(',') || list.contains("..")),
        parts.map(|(from, to)| format!("{from}..{to}")),
    ];
    let advice = |command: &str, value: &String| {
        let words = [flag.to_owned(), value.clone()];
        accepts(command, &words).then(|| name::line(&words))
    };
    if let Some(words) = here.iter().chain(&several).flatten().find_map(|value| advice(command, value)) {
        return Some(format!("type {words}"));
    }
    if let Some(advice) = repeat_comparison(flag, value, command) {
        return Some(advice);
    }
    let words = several.iter().flatten().find_map(|value| advice("sweep", value))?;
    Some(format!("fathom {command} measures one value; type fathom sweep {words}"))
}

/// Returns what to type for a list of values in `fathom api` or `fathom layers`: these compare something else, so a sweep does not replace
/// them. `None` for other commands, or if the command does not accept each value.
fn repeat_comparison(flag: &str, value: &str, command: &str) -> Option<String> {
    const COMPARISONS: [&str; 2] = ["api", "layers"];
    let values: Vec<&str> = value.split(',').map(str::trim).collect();
    let (first, others) = values.split_first().filter(|(_, others)| !others.is_empty())?;
    let words = |one: &str| [flag.to_owned(), one.to_owned()];
    let accepts_all = values.iter().all(|one| accepts(command, &words(one)));
    (COMPARISONS.contains(&command) && accepts_all).then(|| {
        let (line, others) = (name::line(&words(first)), others.join(", "));
        let usual = if flag == "--rw" { "; without --rw it measures several patterns" } else { "" };
        format!(
            "fathom {command} measures one value; type fathom {command} {line}, then repeat it with {others}{usual}"
        )
    })
}

/// Completes the line of an option that needs two values. The word before the option is the first value, unless another option precedes it.
fn complete_two_values(option: &str, command: &str, words: &[String]) -> Option<String> {
    let (flag, form) = option.split_once(' ')?;
    let form = form.trim_matches(|c| "<>.".contains(c)).split('>').next()?;
    let at = words.iter().position(|word| word == flag)?;
    let after = words.get(at + 1).filter(|word| !word.starts_with('-'))?;
    let before = words.get(2..at).unwrap_or_default();
    let target = before.last().filter(|_| before.iter().all(|word| !word.starts_with('-')));
    let listed: Vec<String> = after.split(',').map(str::to_owned).collect();
    if target.is_none() && listed.len() > 1 {
        let values = name::line(&listed);
        return Some(format!(
            "{flag} takes its values without commas: type fathom {command} {flag} {values}"
        ));
    }
    let line: Vec<String> = target.into_iter().chain([after]).cloned().collect();
    let other = if target.is_none() { format!(" {form}") } else { String::new() };
    Some(format!("{flag} needs two values: type fathom {command} {flag} {}{other}", name::line(&line)))
}

/// Completes `fathom capture TARGET` with a file that is named after the target; `None` for other lines.
fn complete_capture(command: &str, words: &[String]) -> Option<String> {
    let [_, typed, target] = words else { return None };
    let file = Path::new(target).file_name().filter(|_| command == "capture" && typed == command)?;
    let file = format!("{}.capture", file.to_string_lossy());
    (!target.starts_with('-'))
        .then(|| name::line(&owned(&["fathom", command, target.as_str(), "-o", file.as_str()])))
}

/// Returns the command line `start` followed by `rest`, or only `start` if fathom would refuse both together.
fn complete_line(start: &[&str], rest: &[String]) -> String {
    let start = owned(start);
    let whole = [start.as_slice(), rest].concat();
    format!("fathom {}", name::line(if parse(&whole).is_ok() { &whole } else { &start }))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Parses a command line, which is given without the word `fathom`.
fn parse(line: &[String]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(iter::once("fathom").chain(line.iter().map(String::as_str)))
}

/// Whether a command accepts these words. Other arguments that it requires may be missing.
fn accepts(command: &str, words: &[String]) -> bool {
    let parsed = parse(&[owned(&[command]).as_slice(), words].concat());
    parsed.err().is_none_or(|error| error.kind() == ErrorKind::MissingRequiredArgument)
}

fn has_flag(command: &clap::Command, long: &str) -> bool {
    command.get_arguments().any(|argument| argument.get_long() == Some(long))
}

/// Returns the commands that have a flag of this name: `fathom run`.
fn commands_with_flag(long: &str) -> Vec<String> {
    let cli = Cli::command();
    let commands = cli.get_subcommands().filter(|command| has_flag(command, long));
    commands.map(|command| format!("fathom {}", command.get_name())).collect()
}

/// An unknown option and its command line.
struct Unknown<'l> {
    /// The option as clap reports it: without its value, and only one letter after a single dash.
    option: &'l str,
    /// The option's word in the command line, its name without dashes, and its value: see [`find_typed`].
    word: &'l str,
    name: &'l str,
    value: Option<&'l str>,
    /// The command line.
    words: &'l [String],
    command: Option<&'l clap::Command>,
}

/// Returns the word of an option, its name without dashes, and its value: after `=`, or the next word unless that is an option. `None` if
/// the option is not in the command line.
fn find_typed<'l>(option: &str, words: &'l [String]) -> Option<(&'l str, &'l str, Option<&'l str>)> {
    let at = words.iter().position(|word| option.starts_with('-') && word.starts_with(option))?;
    let word = words[at].as_str();
    let bare = word.trim_start_matches('-');
    let next = words.get(at + 1).map(String::as_str).filter(|next| !next.starts_with('-'));
    Some(bare.split_once('=').map_or((word, bare, next), |(name, value)| (word, name, Some(value))))
}

impl<'l> Unknown<'l> {
    fn new(option: &'l str, words: &'l [String], command: Option<&'l clap::Command>) -> Self {
        // clap reports the second letter of `-ab` alone.
        let alone = (option, option.trim_start_matches('-'), None);
        let (word, name, value) = find_typed(option, words).unwrap_or(alone);
        Self { option, word, name, value, words, command }
    }

    fn command_name(&self) -> Option<&'l str> {
        self.command.map(clap::Command::get_name)
    }

    fn takes(&self, flag: &str) -> bool {
        self.command.is_some_and(|command| has_flag(command, flag))
    }

    /// Whether the command accepts these words.
    fn accepts(&self, words: &[String]) -> bool {
        self.command_name().is_some_and(|command| accepts(command, words))
    }

    /// Whether a flag is in the command line, with or without a value.
    fn has(&self, flag: &str) -> bool {
        self.words.iter().any(|word| word.split('=').next() == Some(flag))
    }

    /// Returns the text after a single dash, such as `b4K`.
    fn after_dash(&self) -> Option<&'l str> {
        self.word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))
    }
}

/// The rules about unknown options. The first that returns what to type decides.
const OPTION_RULES: &[fn(&Unknown) -> Option<String>] = &[
    fio_command_line,
    // Only fathom itself has this flag.
    |unknown| (unknown.option == "--version").then(|| "type fathom --version".into()),
    other_name,
    needless_option,
    glued_number_of_watch,
    argument_of_watch,
    name_in_other_tools,
    key_of_jobs,
    fio_option,
    command_of_other_tool,
    ioping_option,
    diskspd_option,
    argument_as_option,
    targets_to_compare,
    command_as_option,
    value_as_option,
    negative_value,
    |unknown| name_other_commands(unknown.option, unknown.command_name()),
];

/// Names what to type instead of an unknown option. `similar` is clap's suggestion.
fn explain_unknown_option(unknown: &Unknown, similar: Option<&str>) -> String {
    let similar = similar.filter(|similar| likeness(unknown.option, similar) >= LIKENESS);
    let advice = OPTION_RULES.iter().find_map(|rule| rule(unknown));
    let advice = advice.or_else(|| similar.map(|similar| format!("type {similar}")));
    let advice = advice.unwrap_or_else(|| match unknown.command_name() {
        Some(command) => format!("type fathom {command} --help for the options of this command"),
        None => "type fathom --help for all commands".into(),
    });
    format!("unknown option '{}': {advice}", unknown.option)
}

/// Suggests `fathom fio` for a command line of fio, without a command or after `run`.
fn fio_command_line(unknown: &Unknown) -> Option<String> {
    let words = unknown.words.get(1..)?;
    let line = words.split_first().filter(|(first, _)| *first == "run").map_or(words, |(_, rest)| rest);
    let line = Some(line).filter(|line| line.first().is_some_and(|word| word.starts_with("--")))?;
    let names = || {
        let options = line.iter().filter_map(|word| word.strip_prefix("--"));
        options.map(|option| option.split('=').next().unwrap_or(option))
    };
    // Each job of a command line of fio begins with its name.
    let is_job = names().any(|name| name == "name") && names().all(|name| find_fio_option(name).is_some());
    is_job.then(|| format!("these are fio's options; type fathom fio {}", name::line(line)))
}

/// Other names of flags, in addition to those in the table of keys: the other name, the flag, and a value to suggest if the user typed none
/// that fits. The value is empty for a switch.
#[rustfmt::skip]
const OTHER_NAMES: [(&str, &str, &str); 20] = [
    ("output-format", "format",     "json"),
    ("baseline",  "against",        "last"),
    ("write",     "destroy",        "NAME"),
    ("overwrite", "destroy",        "NAME"),
    ("threshold", "fail-if-slower", "10%"),
    ("tolerance", "margin",         "5%"),
    // Of all commands with --fail-if-slower, only `fathom compare` does not take --fail-if.
    ("fail-if",   "fail-if-slower", "10%"),
    ("q",         "quiet",          ""),
    ("silent",    "quiet",          ""),
    ("no-progress", "quiet",        ""),
    ("progress",  "no-live",        ""),
    ("v",         "verbose",        ""),
    ("dry-run",   "explain",        ""),
    ("steady",    "until",          "steady"),
    ("until-steady", "until",       "steady"),
    // sysbench
    ("file-test-mode", "rw",        "randread"),
    ("file-total-size", "size",     "1g"),
    ("file-block-size", "bs",       "16k"),
    ("num-threads", "workers",      "4"),
    ("max-time",  "time",           "60s"),
];

/// Flags that mean something else in these commands than in [`SHOWN`], or than the setting of jobs with this name. In these commands, `-h`
/// shows the first paragraph of `--help`.
const OTHER_MEANING: [(&str, &[&str]); 9] = [
    ("bs", &["api", "sweep", "verify"]),
    ("check", &["fit"]),
    ("cold", &["time"]),
    ("explain", &["show"]),
    ("output", &["capture", "export", "fit"]),
    ("target", &["list"]),
    ("time", &["capture", "verify"]),
    ("until", &["list"]),
    ("verbose", &["compare"]),
];

/// Whether a flag means something else in this command.
pub(super) fn has_other_meaning(flag: &str, command: &str) -> bool {
    OTHER_MEANING.iter().any(|(other, commands)| *other == flag && commands.contains(&command))
}

/// Explains a flag that was typed by one of its [`OTHER_NAMES`]. `None` if this command lacks the flag and another command has the
/// typed name.
fn other_name(unknown: &Unknown) -> Option<String> {
    let (typed, command) = (unknown.name, unknown.command_name()?);
    match typed {
        "dry-run" if !unknown.takes("explain") || has_other_meaning("explain", command) => return None,
        "steady" | "until-steady" if has_other_meaning("until", command) => return None,
        _ => {}
    }
    let of_name = || OTHER_NAMES.iter().filter(|(name, ..)| *name == typed);
    let Some((_, flag, example)) = of_name().find(|(_, flag, _)| unknown.takes(flag)) else {
        let (_, flag, _) = of_name().find(|(name, ..)| keys::find(name).is_none())?;
        let advice = name_other_commands(&format!("--{flag}"), Some(command))?;
        return commands_with_flag(typed).is_empty().then(|| format!("here it is --{flag}; {advice}"));
    };
    if example.is_empty() {
        return Some(format!("type --{flag}"));
    }
    let line = |value: &str| [format!("--{flag}"), value.to_owned()];
    // --against repeats a session, and a JSON report is not a session.
    let report = unknown.value.filter(|value| *flag == "against" && has_extension(Path::new(value), "json"));
    let fits = |value: &&str| report.is_none() && accepts(command, &line(value));
    let line = name::line(&line(unknown.value.filter(fits).unwrap_or(example)));
    Some(match (*flag, report) {
        ("destroy", _) => {
            format!("fathom overwrites only a file or device that --destroy names; type {line}")
        }
        (_, Some(report)) => format!(
            "--against repeats a session of `fathom list`, and {0} is a report; type {line}, or measure first, then fathom compare {0} last",
            name::quoted(report)
        ),
        _ => format!("here it is --{flag}; type {line}"),
    })
}

/// Names the commands that have an option of this name. `None` if no command has it.
fn name_other_commands(option: &str, command: Option<&str>) -> Option<String> {
    let commands = commands_with_flag(option.strip_prefix("--")?);
    let first = commands.first()?;
    Some(match command {
        Some(command) => format!("fathom {command} does not take it; type it with {}", commands.join(", ")),
        None => format!("type it after a command, as in {first} {option}"),
    })
}

/// Options of other programs that fathom does not need, with the reason.
const NEEDLESS: [(&[&str], &str); 2] = [
    (
        &["y", "yes", "assume-yes"],
        "fathom asks no questions, and overwrites only a file or device that --destroy names",
    ),
    (
        &["color", "colour", "no-color", "no-colour"],
        "only a terminal gets colours; the environment variable NO_COLOR=1 turns them off",
    ),
];

/// Explains that fathom does not need an option such as `--yes`.
fn needless_option(unknown: &Unknown) -> Option<String> {
    let (names, why) = NEEDLESS.iter().find(|(names, _)| names.contains(&unknown.name))?;
    let in_ioping = if unknown.name == "y" {
        "; ioping's -y (data sync) is `fathom run --cache dsync`, and -D -y is `fathom run --cache direct-dsync`"
    } else {
        ""
    };
    // `fathom delete` has --yes.
    let is_needless = unknown.command.is_some() && !names.iter().any(|name| unknown.takes(name));
    is_needless.then(|| format!("leave it out: {why}{in_ioping}"))
}

/// Whether an option has the name of an argument.
fn is_argument(option: &str, argument: &str) -> bool {
    likeness(&option.to_uppercase(), argument) >= LIKENESS_OF_ARGUMENT
}

/// Suggests `fathom show last` for `fathom show --session last`: the option has the name of an argument, which is typed without a flag.
fn argument_as_option(unknown: &Unknown) -> Option<String> {
    let command = unknown.command?;
    let names = command.get_positionals().flat_map(|argument| argument.get_value_names().unwrap_or_default());
    let mut names = names.flat_map(|names| names.split(|c: char| !c.is_ascii_alphabetic()));
    let argument = names.find(|known| is_argument(unknown.name, known))?;
    let value = unknown.value.map_or_else(|| argument.to_owned(), name::quoted);
    Some(format!("{argument} has no flag; type fathom {} {value}", command.get_name()))
}

/// Returns the argument of `fathom watch` that an option means: `-n` of other tools, `--once`, or the name of the argument.
fn find_argument_of_watch(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix('-')?.trim_start_matches('-').split('=').next()?;
    match name {
        "n" => Some("INTERVAL"),
        "once" => Some("COUNT"),
        _ => ["INTERVAL", "COUNT"].into_iter().find(|known| is_argument(name, known)),
    }
}

/// Suggests `fathom watch . 2 5` for `fathom watch --interval 2 --count 5 .`: the numbers follow the targets.
fn argument_of_watch(unknown: &Unknown) -> Option<String> {
    unknown.command_name().filter(|command| *command == "watch")?;
    let (argument, words) = (find_argument_of_watch(unknown.option)?, unknown.words);
    let is_number = |word: &str| parse_duration_ns(word).is_ok();
    let value = |wanted: &str| {
        let typed = words.iter().find(|word| find_argument_of_watch(word) == Some(wanted))?;
        find_typed(typed, words)?.2.filter(|value| is_number(value))
    };
    let mut pairs = words.windows(2);
    let typed_number = pairs.find(|pair| !pair[0].starts_with('-') && is_number(&pair[1]));
    let count = if unknown.has("--once") { Some("1") } else { value("COUNT") };
    let (count, default) =
        if argument == "COUNT" { (Some(count.unwrap_or("COUNT")), "1") } else { (count, "INTERVAL") };
    let interval = value("INTERVAL").or(typed_number.map(|pair| pair[1].as_str())).unwrap_or(default);
    let count = count.map_or_else(String::new, |count| format!(" {count}"));
    Some(format!("{argument} has no flag; type fathom watch {}{interval}{count}", watched_targets(words)))
}

/// Letters of `fathom watch` that take no value.
const WATCH_LETTERS: &str = "cdkmNstxyz";

/// Splits a number from the letters before it: `-x1` of iostat, `-n1` of watch(1), `-d0.5` of top.
fn split_glued(word: &str) -> Option<(&str, &str)> {
    let word = word.strip_prefix('-')?;
    let (letters, number) = word.split_at(word.find(|c: char| c.is_ascii_digit() || c == '.')?);
    let is_known = letters.chars().all(|c| c == 'n' || WATCH_LETTERS.contains(c));
    (is_known && parse_duration_ns(number).is_ok()).then_some((letters, number))
}

/// Suggests `fathom watch -x 1` for `fathom watch -x1`, and `fathom watch -d 1 3` for `fathom watch -d1 -n3`. The option is `-n`, or a
/// digit after letters that are options. `None` without a number.
fn glued_number_of_watch(unknown: &Unknown) -> Option<String> {
    unknown.command_name().filter(|command| *command == "watch")?;
    let (option, words) = (unknown.option, unknown.words);
    let is_number = |c: char| c == '.' || c.is_ascii_digit();
    option.strip_prefix('-').filter(|rest| *rest == "n" || rest.chars().all(is_number))?;
    let are_flags = |flags: &&str| flags.chars().all(|c| c == 'n' || WATCH_LETTERS.contains(c));
    let mut letters = String::new();
    let mut numbers: Vec<&str> = Vec::new();
    for pair in words.windows(2) {
        let word = pair[1].as_str();
        if watch_takes_value(&pair[0]) {
            // A negative value is no interval.
            if word == option {
                return None;
            }
            continue;
        }
        let (flags, number) = match split_glued(word) {
            Some((flags, number)) => (flags, Some(number)),
            None if parse_duration_ns(word).is_ok() => ("", Some(word)),
            None => (word.strip_prefix('-').filter(are_flags).unwrap_or_default(), None),
        };
        for flag in flags.chars().filter(|c| *c != 'n') {
            if !letters.contains(flag) {
                letters.push(flag);
            }
        }
        numbers.extend(number);
    }
    numbers.truncate(2);
    let flags = if letters.is_empty() { String::new() } else { format!("-{letters} ") };
    (!numbers.is_empty()).then(|| {
        let numbers = numbers.join(" ");
        format!("INTERVAL has no flag; type fathom watch {flags}{}{numbers}", watched_targets(words))
    })
}

fn watch_takes_value(flag: &str) -> bool {
    let is_named = |argument: &clap::Arg| {
        let short = argument.get_short().map(|letter| format!("-{letter}"));
        let long = argument.get_long().map(|name| format!("--{name}"));
        argument.get_action().takes_values() && [short, long].iter().flatten().any(|name| name == flag)
    };
    let cli = Cli::command();
    cli.find_subcommand("watch").is_some_and(|watch| watch.get_arguments().any(is_named))
}

/// Returns the targets in a command line of `fathom watch`, each with a space after it.
fn watched_targets(line: &[String]) -> String {
    let words: Vec<&str> = line.iter().map(String::as_str).skip_while(|word| *word != "watch").collect();
    let is_target = |before: &str, word: &str| {
        !word.starts_with('-') && parse_duration_ns(word).is_err() && !watch_takes_value(before)
    };
    let targets = words.windows(2).filter(|pair| is_target(pair[0], pair[1]));
    targets.map(|pair| name::quoted(pair[1]) + " ").collect()
}

/// Suggests how to compare targets for `--compare A B` in a command that measures and does not take it.
fn targets_to_compare(unknown: &Unknown) -> Option<String> {
    if unknown.option != "--compare" || !unknown.takes("destroy") {
        return None;
    }
    let (words, name) = (unknown.words, unknown.command_name()?);
    let at = words.iter().position(|word| word == unknown.option)?;
    let (before, after) = (&words[1..at], &words[at + 1..]);
    let count = after.iter().take_while(|word| !word.starts_with('-')).count();
    let (typed, after) = after.split_at(count);
    let mut targets = typed.to_vec();
    targets.resize(count.max(2), "TARGET".to_owned());
    let mut advice =
        format!("fathom {name} does not take it; type fathom bench --compare {}", name::line(&targets));
    let measure = |target: &str, last: &[&str]| {
        let line = [before, after, owned(&[target]).as_slice(), owned(last).as_slice()].concat();
        parse(&line).is_ok().then(|| format!("fathom {}", name::line(&line)))
    };
    let last: &[&str] = if unknown.takes("against") { &["--against", "last"] } else { &[] };
    if let [a, b] = targets.as_slice()
        && let Some((a, b)) = measure(a, &[]).zip(measure(b, last))
    {
        let compare = if last.is_empty() { ", then fathom compare last~1 last" } else { "" };
        advice += &format!(", or to compare this workload: {a}, then {b}{compare}");
    }
    Some(advice)
}

/// Suggests `fathom bench` for `fathom --bench`.
fn command_as_option(unknown: &Unknown) -> Option<String> {
    let (option, command) = (unknown.option, unknown.command_name());
    let cli = Cli::command();
    let meant = cli.find_subcommand(option.trim_start_matches('-'))?.get_name();
    // `fathom verify . --explain` asks for the plan, not for `fathom explain`, which takes no target.
    if command.is_some() && meant == "explain" {
        return None;
    }
    let rest = unknown.words.iter().skip(1).filter(|word| *word != option && Some(word.as_str()) != command);
    let rest: Vec<String> = rest.cloned().collect();
    if accepts(meant, &rest) {
        let line = [owned(&[meant]), rest].concat();
        return Some(format!("type fathom {}", name::line(&line)));
    }
    Some(format!("{meant} is a command; type fathom {meant} --help for its options"))
}

/// Suggests `--format json` for `--json`.
fn value_as_option(unknown: &Unknown) -> Option<String> {
    let cli = Cli::command();
    let value = unknown.option.trim_start_matches('-').to_lowercase();
    let takes = |arg: &&clap::Arg| {
        arg.get_long().is_some() && arg.get_possible_values().iter().any(|known| known.matches(&value, true))
    };
    let command = unknown.command.or_else(|| cli.find_subcommand("bench"))?;
    let mut options = command.get_arguments().filter(takes);
    let long = options.next()?.get_long()?;
    let after = match unknown.command {
        Some(_) => String::new(),
        None => format!(" after a command, as in fathom bench --{long} {value}"),
    };
    options.next().is_none().then(|| format!("type --{long} {value}{after}"))
}

/// Explains negative values such as `--time -3s`.
fn negative_value(unknown: &Unknown) -> Option<String> {
    let (option, words) = (unknown.option, unknown.words);
    let is_number = option[1..].starts_with(|c: char| c.is_ascii_digit());
    let at = words.iter().position(|word| word.starts_with(option))?;
    let before = words.get(at.checked_sub(1)?).filter(|before| is_number && before.starts_with("--"))?;
    let line = [before.clone(), words[at][1..].to_owned()];
    unknown.accepts(&line).then(|| format!("{before} must not be negative; type {}", name::line(&line)))
}

/// Returns the message about an option that begins with a long dash; `None` if there is none, or a file has that name. The advice is the
/// whole line with hyphens or, if that is wrong too, the advice about it.
pub(super) fn find_long_dash(words: &[OsString]) -> Option<String> {
    // The command line of an imitated tool has the rules of that tool.
    if words.get(1).and_then(find_tool).is_some_and(|tool| tool != "iops") {
        return None;
    }
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let corrected = |word: &OsString| word.to_str().and_then(dialect::with_hyphens);
    let typed = words[..end].iter().skip(1).find(|word| corrected(word).is_some())?.to_string_lossy();
    let mut line = words.to_vec();
    for word in &mut line[..end] {
        if let Some(corrected) = corrected(word) {
            *word = corrected.into();
        }
    }
    let advice = match Cli::parse_words(&line) {
        Err(error) if error.use_stderr() => {
            let message = error.render().to_string();
            message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
        _ => {
            let arguments: Vec<String> = line.iter().skip(1).map(name::text).collect();
            format!("type fathom {}", name::line(&arguments))
        }
    };
    Some(format!("'{typed}' begins with a long dash, as web pages print it; {advice}"))
}

/// Describes fathom's equivalent of a DISKSPD option such as `-o32`, if it has one.
pub(super) fn explain_diskspd_option(word: &str) -> Option<String> {
    let equivalent = keys::in_diskspd(word.strip_prefix('-')?).filter(|m| !m.values.is_empty())?;
    let cli = Cli::command();
    Some(describe_equivalent(&equivalent, &Unknown::new(word, &[], cli.find_subcommand("run"))))
}

/// Describes fathom's equivalent of an option of fio, or of a name that several other tools use.
fn name_in_other_tools(unknown: &Unknown) -> Option<String> {
    // Without `=`, the next word may be the value or an argument.
    let without_value = (!unknown.word.contains('=')).then_some("");
    let values: Vec<&str> = unknown.value.into_iter().chain(without_value).collect();
    Some(describe_equivalent(&keys::in_other_tools(unknown.name, &values)?, unknown))
}

/// Describes a key of fathom that was spelt differently, or that this command does not accept.
fn key_of_jobs(unknown: &Unknown) -> Option<String> {
    let key = keys::find(&unknown.name.replace('_', "-"))?;
    let value = if key.is_switch() { "true" } else { unknown.value.unwrap_or_default() };
    let command = unknown.command_name();
    if command == Some("watch")
        && key.name == "time"
        && let Some(advice) = advise_time(unknown, value)
    {
        return Some(format!("type {advice}"));
    }
    let words = to_words(key, &[value.to_owned()]);
    let (flag, line) = (spelling(key), name::line(&words));
    Some(match command {
        _ if key.name == TARGET => {
            format!("a target has no flag; type fathom {} {line}", command.unwrap_or("run"))
        }
        Some(_) if unknown.accepts(&words) => format!("the flag is {flag}; type {line}"),
        Some(command) if unknown.word.starts_with(&flag) || !unknown.takes(key.name) => {
            let commands = commands_with_flag(key.name);
            let takes = |command: &&str| accepts(command.trim_start_matches("fathom "), &words);
            let mut all = iter::once("fathom run").chain(commands.iter().map(String::as_str));
            // Without a valid value there is no line to type.
            let advice = all.find(takes).map_or_else(
                || format!("it is a flag of {}", commands.join(", ")),
                |other| format!("type {other} {line}"),
            );
            format!("fathom {command} does not take {flag}; {advice}")
        }
        _ => format!("the flag is {flag}; type fathom run {flag} {}", key.value),
    })
}

fn find_fio_option(name: &str) -> Option<&'static ToolOption> {
    let mut all = dialect::fio::options::OPTIONS.iter().chain(dialect::fio::options::OWN);
    all.find(|option| option.names().any(|known| known == name))
}

/// Explains an option of fio that no single flag of fathom replaces. `None` if a command of fathom has a flag of this name.
fn fio_option(unknown: &Unknown) -> Option<String> {
    let name = unknown.name;
    let option = find_fio_option(name).filter(|_| commands_with_flag(name).is_empty())?;
    Some(explain_handling(Tool::Fio, option, &format!("-{name}")))
}

/// Explains an option of DISKSPD such as `n`, `D500` or `Rxml`. The longest name that fits decides.
fn diskspd_option(unknown: &Unknown) -> Option<String> {
    let typed = unknown.after_dash()?;
    if let Some(equivalent) = keys::in_diskspd(typed) {
        return Some(describe_equivalent(&equivalent, unknown));
    }
    let is_value = |option: &ToolOption, rest: &str| {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        !option.value.is_empty() && (is_number || option.name == "R")
    };
    let fits = |option: &&ToolOption| {
        let is_letter = option.name.starts_with(|c: char| c.is_ascii_alphabetic());
        let rest = typed.strip_prefix(option.name).filter(|_| is_letter);
        rest.is_some_and(|rest| rest.is_empty() || is_value(option, rest))
    };
    let all = dialect::diskspd::options::OPTIONS.iter().filter(fits);
    Some(explain_handling(Tool::Diskspd, all.max_by_key(|option| option.name.len())?, typed))
}

/// Describes how the imitation of a tool handles an option that no single flag of fathom replaces. `typed` is the option without its first
/// dash.
fn explain_handling(tool: Tool, option: &ToolOption, typed: &str) -> String {
    let (theirs, about) = (format!("{}'s -{typed}", tool.word()), option.about);
    let flags: Vec<String> = option.settings.split_whitespace().map(|key| format!("--{key}")).collect();
    match option.how {
        How::Honoured if flags.is_empty() => {
            format!("only `fathom {}` has {theirs} ({about}); leave it out", tool.word().to_lowercase())
        }
        How::Honoured => format!("{theirs} ({about}) is {} here", flags.join(", ")),
        How::NoEffect => format!("leave {theirs} out: {about}"),
        How::Only(_) | How::Refused => format!("{theirs}: {about}"),
    }
}

/// Options of ioping: the letter, fathom's key, and the key's value; `None` if the next word has the value.
const IOPING: [(&str, &str, Option<&str>); 8] = [
    ("s", "bs", None),
    ("S", "size", None),
    ("w", "time", None),
    ("l", "limit-bandwidth", None),
    ("C", "cache", Some("buffered")),
    ("D", "cache", Some("direct")),
    ("W", "rw", Some("randwrite")),
    ("Y", "cache", Some("sync")),
];

/// Explains a letter of ioping, whose value is the next word. A value of DISKSPD directly follows its letter.
fn ioping_option(unknown: &Unknown) -> Option<String> {
    let letter = unknown.after_dash()?;
    let (_, key, value) = IOPING.iter().find(|(name, ..)| *name == letter)?;
    let number = unknown.value.filter(|next| next.starts_with(|c: char| c.is_ascii_digit()));
    let value = match (value, number) {
        (None, Some(seconds)) if *key == "time" && seconds.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{seconds}s")
        }
        (None, Some(number)) => number.to_owned(),
        (Some(value), None) => (*value).to_owned(),
        _ => return None,
    };
    let name = format!("-{letter}");
    let equivalent = Counterpart { tool: Tool::Other, name, key: keys::find(key)?, values: vec![value] };
    let advice = describe_equivalent(&equivalent, unknown);
    Some(advice.replacen("here it is ", &format!("ioping's -{letter} is "), 1))
}

/// Explains a letter of hdparm or ioping that DISKSPD has too, if the value is not in DISKSPD's form.
fn command_of_other_tool(unknown: &Unknown) -> Option<String> {
    let (letter, value) = (unknown.after_dash()?, unknown.value?);
    let more_flags = match letter {
        "t" | "T" if value.starts_with('/') => {
            let target = name::quoted(value);
            return Some(format!("for hdparm's -{letter} type fathom time -- hdparm -{letter} {target}"));
        }
        // In DISKSPD, the size of the file directly follows this letter.
        "c" => " --rate 10".to_owned(),
        "i" => rate_of_interval(value)?,
        // A rate test has no pauses.
        "R" => " --time 3s".to_owned(),
        _ => return None,
    };
    Some(format!("for ioping's -{letter} type fathom run --rw randread --depth 1{more_flags}"))
}

/// Returns the flag for one operation in each interval, with a space before it; empty for an interval of 0. `None` if the interval is not
/// valid, or the rate rounds to 0.
fn rate_of_interval(interval: &str) -> Option<String> {
    let ns = parse_duration_ns(interval).ok()?;
    if ns == 0 {
        return Some(String::new());
    }
    let rate = (1e15 / ns as f64).round() / 1e6;
    (rate > 0.0).then(|| format!(" --rate {rate}"))
}

/// Flags of `fathom bench` that conflict with --quick: it has no time for them, or sets them itself.
#[rustfmt::skip]
pub(super) const NOT_QUICK: [&str; 13] = [
    "against", "compare", "time", "warmup", "runs", "precision", "until", "max-runs", "attempts", "fail-if",
    "fail_if_slower", "settle", "precondition",
];

/// Returns what to type for the time setting of another tool, which covers all work of that tool. `None` for commands in which `--time`
/// means nearly the same.
fn advise_time(unknown: &Unknown, value: &str) -> Option<String> {
    let is_not_quick = |flag: &&str| unknown.has(&format!("--{}", flag.replace('_', "-")));
    Some(match unknown.command_name()? {
        "bench" if unknown.has("--quick") => "--quick alone, which has its own times".into(),
        "bench" if !NOT_QUICK.iter().any(is_not_quick) => {
            format!(
                "--quick, which takes 10 s for each target, or --time {value}, which is the time of each run"
            )
        }
        "sweep" | "limit" | "api" => format!(
            "--budget {value}, which is the time of all runs together, or --time {value}, which is that of each run"
        ),
        "watch" => {
            let seconds = parse_duration_ns(value).ok()?.div_ceil(1_000_000_000).max(1);
            let line = format!("fathom watch {}1 {seconds}", watched_targets(unknown.words));
            format!("{line}, which is an interval of 1 s and the number of intervals")
        }
        _ => return None,
    })
}

/// Returns the flag that a command needs to take a key, or an empty text; `None` if it does not take the key in this line.
fn flag_for(unknown: &Unknown, key: &str) -> Option<&'static str> {
    let profile = find_typed("--profile", unknown.words).and_then(|(.., value)| value);
    let is_profile = |p: &&Profile| profile.is_none_or(|typed| p.name.eq_ignore_ascii_case(typed));
    match (unknown.command_name()?, key) {
        // The tests of most profiles define their threads, and some have a single operation in flight.
        ("bench", "workers") => PROFILES.iter().find(is_profile)?.takes_workers().then_some(""),
        ("bench", "batch") => None,
        ("sweep", "runs") if !unknown.has("--exhaustive") => Some("--exhaustive "),
        _ => Some(""),
    }
}

/// Describes fathom's equivalent of another tool's option.
fn describe_equivalent(equivalent: &Counterpart, unknown: &Unknown) -> String {
    let Counterpart { tool, name, key, values } = equivalent;
    let flag = spelling(key);
    let theirs = match tool {
        Tool::Other if key.name == TARGET => "here it is TARGET, without a flag".into(),
        Tool::Other => format!("here it is {flag}"),
        tool => format!("{}'s {name} is {flag}", tool.word()),
    };
    let words = to_words(key, values);
    let (typed, is_accepted, is_for_run) =
        (name::line(&words), unknown.accepts(&words), accepts("run", &words));
    if values.is_empty() || !(is_accepted || is_for_run) {
        return format!("{theirs}; type {flag} {}", key.value);
    }
    let time = values.first().filter(|_| key.name == "time" && is_for_run);
    if let Some(advice) = time.and_then(|time| advise_time(unknown, time)) {
        return format!("{theirs}; type {advice}");
    }
    let Some(command) = unknown.command_name() else {
        return format!("{theirs}; type fathom run {typed}");
    };
    let why = match flag_for(unknown, key.name) {
        Some(_) if is_accepted && key.name == TARGET => {
            return format!("{theirs}; type fathom {command} {typed}");
        }
        Some(needed) if is_accepted => return format!("{theirs}; type {needed}{typed}"),
        None if is_accepted => format!("the tests of fathom {command} define"),
        _ if unknown.takes(key.name) => format!("fathom {command} does not take in this form"),
        _ => format!("fathom {command} does not take"),
    };
    format!("{theirs}, which {why}; type fathom run {typed}")
}

/// Returns a key as it is typed.
fn spelling(key: &Key) -> String {
    if key.name == TARGET { "TARGET".into() } else { format!("--{}", key.name) }
}

/// Returns a key with its values as words of a command line.
fn to_words(key: &Key, values: &[String]) -> Vec<String> {
    let flag = (key.name != TARGET).then(|| spelling(key));
    let words = |value: &String| flag.clone().into_iter().chain((!key.is_switch()).then(|| value.clone()));
    values.iter().flat_map(words).collect()
}

#[cfg(test)]
mod tests;
