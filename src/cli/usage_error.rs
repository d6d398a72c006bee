//! Errors of the command line, each with what to type instead in its first line.
//!
//! clap finds the error. [`advise`] rewrites these kinds:
//! 1. an unknown option: another tool's option, a different spelling, a command or a value typed as
//!    an option, a negative value, an extra argument, or the most similar option;
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
use std::path::Path;

/// A message suggests the most similar name if its similarity, from 0 to 1, is at least this.
pub(super) const LIKENESS: f64 = 0.6;

/// Rewrites an error so that its first line names what to type. Text that the user typed is shown in one line, without control characters.
pub(super) fn advise(mut error: clap::Error, words: &[String]) -> clap::Error {
    for kind in [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue] {
        if let Some(ContextValue::String(typed)) = error.get(kind) {
            let shown = model::name::shown(Path::new(typed));
            error.insert(kind, ContextValue::String(shown));
        }
    }
    let command = find_command(words);
    let Some(message) = describe_error(&error, words, command.as_ref()) else { return error };
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
    let name = command.map(clap::Command::get_name);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let option = typed(ContextKind::InvalidArg)?;
            if !option.starts_with('-') {
                return Some(explain_extra_argument(option, error));
            }
            let similar = typed(ContextKind::SuggestedArg)
                .filter(|similar| strsim::normalized_damerau_levenshtein(option, similar) >= LIKENESS);
            let advice = complete_fio_line(words)
                .or_else(|| flag_of_fathom(option))
                .or_else(|| explain_other_name(option, words, command))
                .or_else(|| explain_needless(option, words, command))
                .or_else(|| explain_watch_option(option, words, command))
                .or_else(|| explain_option(option, words))
                .or_else(|| argument_as_option(option, words, command))
                .or_else(|| compare_targets(option, words, command))
                .or_else(|| command_as_option(option, words, name))
                .or_else(|| value_as_option(option, command))
                .or_else(|| explain_negative_value(option, words, name))
                .or_else(|| name_other_commands(option, name))
                .or_else(|| similar.map(|similar| format!("type {similar}")))
                .unwrap_or_else(|| match name {
                    Some(command) => format!("type fathom {command} --help for the options of this command"),
                    None => "type fathom --help for all commands".into(),
                });
            Some(format!("unknown option '{option}': {advice}"))
        }
        ErrorKind::InvalidSubcommand => {
            let word = typed(ContextKind::InvalidSubcommand)?;
            Some(explain_unknown_command(word, words))
        }
        ErrorKind::InvalidValue => {
            let (option, value) = (typed(ContextKind::InvalidArg)?, typed(ContextKind::InvalidValue)?);
            let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return None };
            if value.is_empty() && valid.is_empty() {
                return Some(format!("'{option}' needs a value"));
            }
            Some(format!(
                "'{value}' is not a value of {option}: type {}",
                any_of(&similar_values(value, valid))
            ))
        }
        ErrorKind::ValueValidation => {
            let (option, value) = (typed(ContextKind::InvalidArg)?, typed(ContextKind::InvalidValue)?);
            Some(format!("'{value}' is not a value of {option}: {}", correct_notation(option, value, name?)?))
        }
        ErrorKind::TooFewValues => {
            let option = typed(ContextKind::InvalidArg)?;
            let (flag, form) = option.split_once(' ')?;
            let at = words.iter().position(|word| word == flag)?;
            let form = form.trim_matches(|c| "<>.".contains(c)).split('>').next()?;
            let after = words.get(at + 1).filter(|word| !word.starts_with('-'))?;
            // A word before the flag is the target if it is no option and no option's value.
            let before = words[..at]
                .iter()
                .skip(2)
                .last()
                .filter(|_| words[..at].iter().skip(2).all(|word| !word.starts_with('-')));
            let line: Vec<String> = before.into_iter().chain([after]).cloned().collect();
            let other = if line.len() == 1 { format!(" {form}") } else { String::new() };
            Some(format!(
                "{flag} needs two values: type fathom {} {flag} {}{other}",
                name?,
                name::line(&line)
            ))
        }
        ErrorKind::TooManyValues => {
            let option = typed(ContextKind::InvalidArg)?;
            Some(format!("{option} takes no value: type {option}"))
        }
        ErrorKind::ArgumentConflict => {
            let (option, prior) = (typed(ContextKind::InvalidArg)?, typed(ContextKind::PriorArg)?);
            if option == prior {
                return Some(format!("{option} is typed twice: type it once"));
            }
            Some(format!("'{option}' cannot be used with '{prior}': leave one of them out"))
        }
        ErrorKind::MissingRequiredArgument => {
            let line = complete_capture(name?, words).or_else(|| usage_line(error))?;
            Some(format!("fathom {} needs {}: type {line}", name?, typed(ContextKind::InvalidArg)?))
        }
        _ => None,
    }
}

/// Names what to type instead of an unknown command.
fn explain_unknown_command(word: &str, words: &[String]) -> String {
    let rest: Vec<String> = words.iter().skip_while(|typed| *typed != word).skip(1).cloned().collect();
    let exists = Path::new(word).exists();
    let bench = || complete_line(&["bench", word], &rest);
    let instead = match word {
        "version" => "fathom --version".to_owned(),
        "iostat" | "iotop" | "top" => "fathom watch".to_owned(),
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
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&word, name);
    let rank = |name: &str| {
        likeness(name) + if name.chars().next() == word.chars().next() { SAME_FIRST_LETTER } else { 0.0 }
    };
    let cli = Cli::command();
    // What `delete` removes is gone, so it is suggested only for an evident typing error.
    let is_alike = |name: &&str| likeness(name) >= if *name == "delete" { 0.8 } else { LIKENESS };
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
    let has_extension = |known: &str| path.extension().is_some_and(|typed| typed.eq_ignore_ascii_case(known));
    let is_report = || {
        let json: serde_json::Value = serde_json::from_slice(&content).unwrap_or_default();
        ["fathom", "headline", "results"].iter().all(|key| json.get(key).is_some())
    };
    let exists = path.exists();
    let is_shown =
        if exists { content.starts_with(MAGIC.as_bytes()) || is_report() } else { has_extension("json") };
    if is_shown || has_extension("fathom") || is_capture(path) {
        return Some(complete_line(&["show", word], rest));
    }
    // Only a name that does not exist is judged by its extension: any program may have such files.
    let tool = if exists { detect_tool(&content)? } else { language_of_path(path)?.tool };
    let run = complete_line(&["run", word], rest);
    if tool != dialect::Tool::Fio {
        return Some(run);
    }
    let line: Vec<String> = std::iter::once(word.to_owned()).chain(rest.iter().cloned()).collect();
    let fio = complete_line(&["fio", word], rest);
    Some(if rest.is_empty() {
        format!("{fio} for fio's output, or {run} for fathom's report")
    } else if accepts("run", &line) {
        run
    } else {
        fio
    })
}

/// Suggests `fathom fio` for fio's command line without its name.
fn complete_fio_line(words: &[String]) -> Option<String> {
    let line = words.get(1..).filter(|line| line.first().is_some_and(|word| word.starts_with("--")))?;
    let names = || {
        let options = line.iter().filter_map(|word| word.strip_prefix("--"));
        options.map(|option| option.split('=').next().unwrap_or(option))
    };
    let is_of_fio = |name: &str| {
        let mut all = dialect::fio::options::OPTIONS.iter().chain(dialect::fio::options::OWN);
        all.any(|option| option.name == name || option.aliases.contains(&name))
    };
    // Each job of a command line of fio begins with its name.
    let is_job = names().any(|name| name == "name") && names().all(is_of_fio);
    is_job.then(|| format!("these are fio's options; type fathom fio {}", name::line(line)))
}

/// Returns the valid values that a typed word resembles; all valid values if there is none. The
/// first of these rules that finds a value decides: the value contains the word; the word begins
/// with a part of the value (`postgres-wal` has two parts); both are spelt nearly alike.
fn similar_values<'v>(typed: &str, valid: &'v [String]) -> Vec<&'v str> {
    // Above the LIKENESS of a single suggestion, because all values that reach it are listed.
    const LIKENESS_OF_EACH: f64 = 0.7;
    let word = typed.to_lowercase();
    let has_part = |valid: &str| valid.split('-').any(|part| part.len() > 2 && word.starts_with(part));
    let is_alike = |valid: &str| strsim::normalized_damerau_levenshtein(&word, valid) >= LIKENESS_OF_EACH;
    let rules: [&dyn Fn(&str) -> bool; 3] = [&|valid| valid.contains(&word), &has_part, &is_alike];
    let found = |rule: &dyn Fn(&str) -> bool| -> Vec<&'v str> {
        valid.iter().map(String::as_str).filter(|valid| rule(valid)).collect()
    };
    let groups = rules.into_iter().map(found);
    groups.chain([found(&|_| true)]).find(|group| !group.is_empty()).unwrap_or_default()
}

/// Returns what to type for a value in another notation, if this command or a sweep accepts the result: `1-8` is the range `1..8`,
/// `70:30` are 70 % reads, `>=` is `>`, `1,5g` is `1.5g`, `60sec` is `60s`.
fn correct_notation(option: &str, value: &str, command: &str) -> Option<String> {
    let flag = option.split_once(' ')?.0;
    let is_two_parts =
        |(a, b): &(&str, &str)| [a, b].iter().all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    let parts = value.split_once(['-', ':', '/']).filter(is_two_parts);
    let reads = parts.filter(|(a, b)| {
        a.parse::<u8>().ok().zip(b.parse().ok()).is_some_and(|(a, b)| a.checked_add(b) == Some(100))
    });
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = value[number.len()..].chars().next().map(|unit| format!("{}{unit}", number.trim()));
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
    let words = |value: String| [flag.to_owned(), value];
    let advice = |command: &str, value: &Option<String>| {
        let words = words(value.clone()?);
        accepts(command, &words).then(|| name::line(&words))
    };
    let for_this = here.iter().chain(&several).find_map(|value| advice(command, value));
    let for_this = for_this.map(|words| format!("type {words}"));
    for_this.or_else(|| {
        let words = several.iter().find_map(|value| advice("sweep", value))?;
        Some(format!("fathom {command} measures one value; type fathom sweep {words}"))
    })
}

/// Other names of flags that the table of keys does not have. Each has the flag, and a value to suggest if the user typed none that fits;
/// the value of a switch is empty.
#[rustfmt::skip]
const OTHER_NAMES: [(&str, &str, &str); 19] = [
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

/// Suggests `fathom --version` for `fathom doctor --version`, because only fathom itself has this flag.
fn flag_of_fathom(option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let mut cli = Cli::command();
    // clap adds --version when it builds the command.
    cli.build();
    let has_flag = cli.get_arguments().any(|flag| flag.get_long() == Some(name));
    has_flag.then(|| format!("type fathom {option}"))
}

/// Explains a flag that was typed by one of its [`OTHER_NAMES`]. `None` if this command lacks the flag and another command has the
/// typed name.
fn explain_other_name(option: &str, words: &[String], command: Option<&clap::Command>) -> Option<String> {
    let (typed, value) = find_typed(option, words)?;
    let command = command?;
    let takes = |flag: &str| command.get_arguments().any(|argument| argument.get_long() == Some(flag));
    let prints_plan = || takes("explain") && !has_other_meaning("explain", command.get_name());
    if typed == "dry-run" && !prints_plan() {
        return None;
    }
    if typed.ends_with("steady") && has_other_meaning("until", command.get_name()) {
        return None;
    }
    let of_name = || OTHER_NAMES.iter().filter(|(name, ..)| *name == typed);
    let Some((_, flag, example)) = of_name().find(|(_, flag, _)| takes(flag)) else {
        let (_, flag, _) = of_name().find(|(name, ..)| keys::find(name).is_none())?;
        if !commands_with_flag(typed).is_empty() {
            return None;
        }
        let advice = name_other_commands(&format!("--{flag}"), Some(command.get_name()))?;
        return Some(format!("here it is --{flag}; {advice}"));
    };
    if example.is_empty() {
        return Some(format!("type --{flag}"));
    }
    let line = |value: &str| [format!("--{flag}"), value.to_owned()];
    // --against repeats a session, and a JSON report is none.
    let report = value.filter(|value| {
        *flag == "against"
            && Path::new(value).extension().is_some_and(|typed| typed.eq_ignore_ascii_case("json"))
    });
    let fits = |value: &&str| report.is_none() && accepts(command.get_name(), &line(value));
    let line = name::line(&line(value.filter(fits).unwrap_or(example)));
    Some(match (*flag, report) {
        ("destroy", _) => {
            format!("fathom overwrites only a file or device that --destroy names; type {line}")
        }
        (_, Some(report)) => format!(
            "--against repeats a session of `fathom list`, and {0} is a report; type {line}, or measure first, then fathom compare {0} last",
            name::line(&[report.to_owned()])
        ),
        _ => format!("here it is --{flag}; type {line}"),
    })
}

/// Explains that fathom needs no such option as `--yes`.
fn explain_needless(option: &str, words: &[String], command: Option<&clap::Command>) -> Option<String> {
    let (typed, _) = find_typed(option, words)?;
    let (names, why) = NEEDLESS.iter().find(|(names, _)| names.contains(&typed))?;
    // `fathom delete` has --yes.
    let mut flags = command?.get_arguments().filter_map(clap::Arg::get_long);
    let is_flag = flags.any(|flag| names.contains(&flag));
    let in_ioping = if typed == "y" {
        "; ioping's -y (data sync) is `fathom run --cache dsync`, and -D -y is `fathom run --cache direct-dsync`"
    } else {
        ""
    };
    (!is_flag).then(|| format!("leave it out: {why}{in_ioping}"))
}

/// Suggests how to compare targets for `--compare A B` in a command that measures and does not take it.
fn compare_targets(option: &str, words: &[String], command: Option<&clap::Command>) -> Option<String> {
    let command = command.filter(|_| option == "--compare")?;
    let takes = |flag: &str| command.get_arguments().any(|argument| argument.get_long() == Some(flag));
    if !takes("destroy") {
        return None;
    }
    let at = words.iter().position(|word| word == option)?;
    let typed = words[at + 1..].iter().take_while(|word| !word.starts_with('-')).count();
    let (before, targets, after) = (&words[1..at], &words[at + 1..at + 1 + typed], &words[at + 1 + typed..]);
    let targets = targets.iter().cloned().chain(["TARGET".to_owned(), "TARGET".to_owned()]);
    let targets: Vec<String> = targets.take(typed.max(2)).collect();
    let name = command.get_name();
    let mut advice =
        format!("fathom {name} does not take it; type fathom bench --compare {}", name::line(&targets));
    let measure = |target: &String, last: &[&str]| {
        let last = last.iter().map(|word| (*word).to_owned());
        let line = [before, after, std::slice::from_ref(target)].concat().into_iter().chain(last);
        let line: Vec<String> = std::iter::once("fathom".to_owned()).chain(line).collect();
        Cli::try_parse_from(&line).is_ok().then(|| name::line(&line))
    };
    let last: &[&str] = if takes("against") { &["--against", "last"] } else { &[] };
    if let [a, b] = targets.as_slice()
        && let Some((a, b)) = measure(a, &[]).zip(measure(b, last))
    {
        let compare = if last.is_empty() { ", then fathom compare last~1 last" } else { "" };
        advice += &format!(", or to compare this workload: {a}, then {b}{compare}");
    }
    Some(advice)
}

/// Returns the command line of these words with the rest of the typed line, or without it if fathom would refuse the whole.
fn complete_line(start: &[&str], rest: &[String]) -> String {
    let start = || std::iter::once("fathom").chain(start.iter().copied()).map(str::to_owned);
    let whole: Vec<String> = start().chain(rest.iter().cloned()).collect();
    if Cli::try_parse_from(&whole).is_ok() {
        name::line(&whole)
    } else {
        name::line(&start().collect::<Vec<_>>())
    }
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

/// Completes `fathom capture TARGET` with a file that is named after the target; `None` for other lines.
fn complete_capture(command: &str, words: &[String]) -> Option<String> {
    let [_, typed, target] = words else { return None };
    let file = Path::new(target).file_name().filter(|_| command == "capture" && typed == command)?;
    let file = format!("{}.capture", file.to_string_lossy());
    let line: Vec<String> =
        ["fathom", command, target.as_str(), "-o", file.as_str()].map(str::to_owned).into();
    (!target.starts_with('-')).then(|| name::line(&line))
}

/// Returns the typed command. `None` if no word is the name of a command.
fn find_command(words: &[String]) -> Option<clap::Command> {
    let cli = Cli::command();
    words.iter().skip(1).find_map(|word| cli.find_subcommand(word)).cloned()
}

/// Returns the usage line of an error, without its heading. `None` if the error has none.
fn usage_line(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    Some(usage.to_string().trim_start_matches("Usage:").trim().to_owned())
}

/// Answers an argument that is one too many with the usage line.
fn explain_extra_argument(argument: &str, error: &clap::Error) -> String {
    let advice = usage_line(error).map_or_else(String::new, |usage| format!("type {usage}"));
    format!("'{argument}' is one argument too many: {advice}")
}

/// An argument has the name of an option if they are at least this similar, from 0 to 1.
const LIKENESS_OF_ARGUMENT: f64 = 0.8;

/// Returns the argument of `fathom watch` that an option stands for, also in other tools.
fn watch_argument(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix('-')?.trim_start_matches('-').split('=').next()?;
    let upper = name.to_uppercase();
    let is_alike =
        |known: &&str| strsim::normalized_damerau_levenshtein(&upper, known) >= LIKENESS_OF_ARGUMENT;
    match name {
        "n" => Some("INTERVAL"),
        "once" => Some("COUNT"),
        _ => ["INTERVAL", "COUNT"].into_iter().find(is_alike),
    }
}

/// Suggests `fathom watch . 2 5` for `fathom watch --interval 2 --count 5 .`: the numbers follow the targets.
fn explain_watch_option(option: &str, words: &[String], command: Option<&clap::Command>) -> Option<String> {
    command.filter(|command| command.get_name() == "watch")?;
    let argument = watch_argument(option)?;
    let value = |wanted: &str| {
        let typed = words.iter().find(|word| watch_argument(word) == Some(wanted))?;
        find_typed(typed, words)?.1.filter(|value| parse_duration_ns(value).is_ok())
    };
    let is_interval = |pair: &&[String]| !pair[0].starts_with('-') && parse_duration_ns(&pair[1]).is_ok();
    let typed_number = || words.windows(2).find(is_interval).map(|pair| pair[1].as_str());
    let is_once = words.iter().any(|word| word == "--once");
    let count = if is_once { Some("1") } else { value("COUNT") };
    let needs_count = argument == "COUNT";
    let default = if needs_count { "1" } else { "INTERVAL" };
    let interval = value("INTERVAL").or_else(typed_number).unwrap_or(default);
    let count =
        count.or(needs_count.then_some("COUNT")).map_or_else(String::new, |count| format!(" {count}"));
    Some(format!("{argument} has no flag; type fathom watch {}{interval}{count}", watched_targets(words)))
}

/// Returns the targets in a command line of `fathom watch`, each with a space after it.
fn watched_targets(line: &[String]) -> String {
    let cli = Cli::command();
    let takes_value = |flag: &str| {
        let is_named = |argument: &clap::Arg| {
            let short = argument.get_short().map(|letter| format!("-{letter}"));
            let long = argument.get_long().map(|name| format!("--{name}"));
            short.as_deref() == Some(flag) || long.as_deref() == Some(flag)
        };
        let watch = cli.find_subcommand("watch");
        watch.is_some_and(|w| w.get_arguments().any(|a| a.get_action().takes_values() && is_named(a)))
    };
    let mut before = "";
    let mut targets = String::new();
    for word in line.iter().skip_while(|word| *word != "watch").skip(1) {
        let is_number = parse_duration_ns(word).is_ok();
        if !word.starts_with('-') && !is_number && !takes_value(before) {
            targets += &format!("{} ", name::line(std::slice::from_ref(word)));
        }
        before = word;
    }
    targets
}

/// Suggests `fathom show last` for `fathom show --session last`: the option has the name of an argument, which is typed without a flag.
fn argument_as_option(option: &str, words: &[String], command: Option<&clap::Command>) -> Option<String> {
    let command = command?;
    let (name, value) = find_typed(option, words)?;
    let name = name.to_uppercase();
    let names = command.get_positionals().flat_map(|argument| argument.get_value_names().unwrap_or_default());
    let names = names.flat_map(|names| names.split(|c: char| !c.is_ascii_alphabetic()));
    let is_alike =
        |known: &&str| strsim::normalized_damerau_levenshtein(&name, known) >= LIKENESS_OF_ARGUMENT;
    let argument = names.into_iter().find(is_alike)?;
    let value = value.map_or_else(|| argument.to_owned(), |value| name::line(&[value.to_owned()]));
    Some(format!("{argument} has no flag; type fathom {} {value}", command.get_name()))
}

/// Returns the name of an option as typed, without dashes, and its value: after `=`, or the next word unless that is an option.
fn find_typed<'w>(option: &str, words: &'w [String]) -> Option<(&'w str, Option<&'w str>)> {
    let at = words.iter().position(|word| option.starts_with('-') && word.starts_with(option))?;
    let bare = words[at].trim_start_matches('-');
    let next = words.get(at + 1).map(String::as_str).filter(|next| !next.starts_with('-'));
    Some(bare.split_once('=').map_or((bare, next), |(name, value)| (name, Some(value))))
}

/// Suggests `fathom bench` for `fathom --bench`.
fn command_as_option(option: &str, words: &[String], command: Option<&str>) -> Option<String> {
    let cli = Cli::command();
    let equivalent = cli.find_subcommand(option.trim_start_matches('-'))?.get_name();
    // `fathom verify . --explain` asks for the plan, not for `fathom explain`, which takes no target.
    if command.is_some() && equivalent == "explain" {
        return None;
    }
    let rest = words.iter().skip(1).filter(|word| *word != option && Some(word.as_str()) != command);
    let line: Vec<String> = std::iter::once(equivalent.to_owned()).chain(rest.cloned()).collect();
    if accepts(equivalent, &line[1..]) {
        return Some(format!("type fathom {}", name::line(&line)));
    }
    Some(format!("{equivalent} is a command; type fathom {equivalent} --help for its options"))
}

/// Suggests `--format json` for `--json`.
fn value_as_option(option: &str, command: Option<&clap::Command>) -> Option<String> {
    let cli = Cli::command();
    let value = option.trim_start_matches('-');
    let takes = |arg: &&clap::Arg| {
        arg.get_long().is_some() && arg.get_possible_values().iter().any(|known| known.matches(value, true))
    };
    let value = &value.to_lowercase();
    let example = cli.find_subcommand("bench")?;
    let mut options = command.unwrap_or(example).get_arguments().filter(takes);
    let long = options.next()?.get_long()?;
    let after = match command {
        Some(_) => String::new(),
        None => format!(" after a command, as in fathom bench --{long} {value}"),
    };
    options.next().is_none().then(|| format!("type --{long} {value}{after}"))
}

/// Explains negative values such as `--time -3s`.
fn explain_negative_value(option: &str, words: &[String], command: Option<&str>) -> Option<String> {
    let is_number = option[1..].starts_with(|c: char| c.is_ascii_digit());
    let at = words.iter().position(|word| word.starts_with(option))?;
    let before = words.get(at.checked_sub(1)?).filter(|before| is_number && before.starts_with("--"))?;
    let line = [before.clone(), words[at][1..].to_owned()];
    let accepted = command.is_some_and(|command| accepts(command, &line));
    accepted.then(|| format!("{before} must not be negative; type {}", name::line(&line)))
}

/// Returns the message about an option that begins with a long dash; `None` if there is none, or a file has that name. The advice is the
/// whole line with hyphens or, if that is wrong too, the advice about it.
pub(super) fn find_long_dash(words: &[OsString]) -> Option<String> {
    // These tools' command lines are read by their own rules.
    let reads_line = |tool: &&str| *tool != "iops";
    if words.get(1).and_then(find_tool).is_some_and(|tool| reads_line(&tool)) {
        return None;
    }
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (options, rest) = words.split_at(end);
    let corrected = |word: &OsString| word.to_str().and_then(dialect::with_hyphens);
    let typed = options.iter().skip(1).find(|word| corrected(word).is_some())?.to_string_lossy();
    let line: Vec<OsString> = options
        .iter()
        .map(|word| corrected(word).map_or_else(|| word.clone(), OsString::from))
        .chain(rest.iter().cloned())
        .collect();
    let advice = match Cli::parse_words(&line) {
        Err(error) if error.use_stderr() => {
            let message = error.render().to_string();
            let first = message.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
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
    Some(describe_equivalent(&equivalent, Some("run"), &[]))
}

/// Explains another tool's option, or an option of fathom that was spelt differently or typed with another command.
fn explain_option(flag: &str, words: &[String]) -> Option<String> {
    let word = words.iter().find(|word| flag.starts_with('-') && word.starts_with(flag))?;
    let (name, value) = find_typed(flag, words)?;
    let values: Vec<&str> = if word.contains('=') {
        value.into_iter().collect()
    } else {
        value.into_iter().chain([""]).collect()
    };
    let cli = Cli::command();
    let command = words.iter().skip(1).map(String::as_str).find(|word| cli.find_subcommand(word).is_some());
    if let Some(equivalent) = keys::in_other_tools(name, &values) {
        return Some(describe_equivalent(&equivalent, command, words));
    }
    if let Some(key) = keys::find(&name.replace('_', "-")) {
        let value = if key.is_switch() { "true" } else { values.first().copied().unwrap_or_default() };
        return Some(describe_key(key, value, word.starts_with(&spelling(key)), command, words));
    }
    if let Some(advice) = explain_fio_option(name) {
        return Some(advice);
    }
    let glued = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    explain_letter(glued, value)
        .or_else(|| explain_ioping_option(glued, value, command, words))
        .or_else(|| Some(describe_equivalent(&keys::in_diskspd(glued)?, command, words)))
        .or_else(|| Some(explain_handling(Tool::Diskspd, find_diskspd_option(glued)?, glued)))
}

/// Explains an option of fio that no single flag of fathom replaces. `None` if a command of fathom has a flag of this name.
fn explain_fio_option(name: &str) -> Option<String> {
    if !commands_with_flag(name).is_empty() {
        return None;
    }
    let mut all = dialect::fio::options::OPTIONS.iter().chain(dialect::fio::options::OWN);
    let option = all.find(|option| option.name == name || option.aliases.contains(&name))?;
    Some(explain_handling(Tool::Fio, option, &format!("-{name}")))
}

/// Finds an option of DISKSPD, given without its dash and with its value: `n`, `D500`, `Rxml`. The longest name that fits decides.
fn find_diskspd_option(glued: &str) -> Option<&'static ToolOption> {
    let is_value = |option: &ToolOption, rest: &str| {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        !option.value.is_empty() && (is_number || option.name == "R")
    };
    let fits = |option: &&ToolOption| {
        let is_letter = option.name.starts_with(|c: char| c.is_ascii_alphabetic());
        let rest = glued.strip_prefix(option.name).filter(|_| is_letter);
        rest.is_some_and(|rest| rest.is_empty() || is_value(option, rest))
    };
    let all = dialect::diskspd::options::OPTIONS.iter().filter(fits);
    all.max_by_key(|option| option.name.len())
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

/// Options of ioping, each with fathom's key. Without a value of the key, the number in the next word is the value.
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

/// Explains a letter with ioping's value, which is a word of its own. DISKSPD's values directly follow the letter.
fn explain_ioping_option(
    letter: &str,
    next: Option<&str>,
    command: Option<&str>,
    line: &[String],
) -> Option<String> {
    let (_, key, value) = IOPING.iter().find(|(name, ..)| *name == letter)?;
    let number = next.filter(|next| next.starts_with(|c: char| c.is_ascii_digit()));
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
    let advice = describe_equivalent(&equivalent, command, line);
    Some(advice.replacen("here it is ", &format!("ioping's -{letter} is "), 1))
}

/// Explains a letter that means something else in DISKSPD than in hdparm and ioping, if its value is not DISKSPD's.
fn explain_letter(letter: &str, value: Option<&str>) -> Option<String> {
    let value = value?;
    let pace = match letter {
        "t" | "T" if value.starts_with('/') => {
            let line = name::line(&["hdparm".into(), format!("-{letter}"), value.into()]);
            return Some(format!("for hdparm's -{letter} type fathom time -- {line}"));
        }
        // DISKSPD's size of a file is glued to the letter.
        "c" => " --rate 10".to_owned(),
        "i" => rate_of_interval(value)?,
        // A rate test has no pauses.
        "R" => " --time 3s".to_owned(),
        _ => return None,
    };
    Some(format!("for ioping's -{letter} type fathom run --rw randread --depth 1{pace}"))
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

#[test]
fn an_interval_of_ioping_is_a_rate() {
    for (interval, flag) in [
        ("1", Some(" --rate 1")),
        ("0.1", Some(" --rate 10")),
        ("250ms", Some(" --rate 4")),
        ("3", Some(" --rate 0.333333")),
        ("0", Some("")),
        ("0.0", Some("")),
        ("9999999", None),
        ("d", None),
    ] {
        assert_eq!(rate_of_interval(interval).as_deref(), flag, "{interval}");
    }
}

/// Flags of `fathom bench` that conflict with --quick: it has no time for them, or sets them itself.
#[rustfmt::skip]
pub(super) const NOT_QUICK: [&str; 13] = [
    "against", "compare", "time", "warmup", "runs", "precision", "until", "max-runs", "attempts", "fail-if",
    "fail_if_slower", "settle", "precondition",
];

/// Returns what to type for another tool's time, which is that of all its work; `None` for commands to which `--time` gives nearly the
/// same meaning. `line` is the typed command line.
fn advise_time(command: &str, value: &str, line: &[String]) -> Option<String> {
    let is_typed = |flag: &str| line.iter().any(|word| word.split('=').next() == Some(flag));
    match command {
        "bench" if is_typed("--quick") => Some("--quick alone, which has its own times".into()),
        "bench" if !NOT_QUICK.iter().any(|flag| is_typed(&format!("--{}", flag.replace('_', "-")))) => {
            Some(format!(
                "--quick, which takes 10 s for each target, or --time {value}, which is the time of each run"
            ))
        }
        "sweep" | "limit" | "api" => Some(format!(
            "--budget {value}, which is the time of all runs together, or --time {value}, which is that of each run"
        )),
        "watch" => {
            let seconds = parse_duration_ns(value).ok()?.div_ceil(1_000_000_000).max(1);
            let targets = watched_targets(line);
            Some(format!(
                "fathom watch {targets}1 {seconds}, which is an interval of 1 s and the number of intervals"
            ))
        }
        _ => None,
    }
}

/// Returns the flag that a command needs to take a key, or an empty text; `None` if it does not take the key in this line.
fn flag_for(command: &str, key: &str, line: &[String]) -> Option<&'static str> {
    let is_typed = |flag: &str| line.iter().any(|word| word == flag);
    let profile = find_typed("--profile", line).and_then(|(_, value)| value);
    let is_profile = |p: &&Profile| profile.is_none_or(|typed| p.name.eq_ignore_ascii_case(typed));
    match (command, key) {
        // The tests of most profiles define their threads, and some have a single operation in flight.
        ("bench", "workers") => PROFILES.iter().find(is_profile)?.takes_workers().then_some(""),
        ("bench", "batch") => None,
        ("sweep", "runs") if !is_typed("--exhaustive") => Some("--exhaustive "),
        _ => Some(""),
    }
}

/// Describes fathom's equivalent of another tool's option. `line` is the typed command line.
fn describe_equivalent(equivalent: &Counterpart, command: Option<&str>, line: &[String]) -> String {
    let Counterpart { tool, name, key, values } = equivalent;
    let theirs = match tool {
        Tool::Other if key.name == TARGET => "here it is TARGET, without a flag".into(),
        Tool::Other => format!("here it is {}", spelling(key)),
        tool => format!("{}'s {name} is {}", tool.word(), spelling(key)),
    };
    let words = to_words(key, values);
    let time = values.first().filter(|_| key.name == "time" && accepts("run", &words));
    if let Some(advice) = command.zip(time).and_then(|(command, time)| advise_time(command, time, line)) {
        return format!("{theirs}; type {advice}");
    }
    match command {
        _ if !accepts(command.unwrap_or("run"), &words) && !accepts("run", &words) || values.is_empty() => {
            format!("{theirs}; type {} {}", spelling(key), key.value)
        }
        Some(command) if key.name == TARGET && accepts(command, &words) => {
            format!("{theirs}; type fathom {command} {}", name::line(&words))
        }
        Some(command) if accepts(command, &words) => match flag_for(command, key.name, line) {
            Some(flag) => format!("{theirs}; type {flag}{}", name::line(&words)),
            None => format!(
                "{theirs}, which the tests of fathom {command} define; type fathom run {}",
                name::line(&words)
            ),
        },
        Some(command) if commands_with_flag(key.name).contains(&format!("fathom {command}")) => {
            format!(
                "{theirs}, which fathom {command} does not take in this form; type fathom run {}",
                name::line(&words)
            )
        }
        Some(command) => {
            format!("{theirs}, which fathom {command} does not take; type fathom run {}", name::line(&words))
        }
        None => format!("{theirs}; type fathom run {}", name::line(&words)),
    }
}

/// Describes a key of fathom that was spelt differently, or that this command does not accept. `is_spelt`: the user typed its exact name.
/// `line` is the typed command line.
fn describe_key(key: &Key, value: &str, is_spelt: bool, command: Option<&str>, line: &[String]) -> String {
    let words = to_words(key, &[value.to_owned()]);
    let for_watch = command.filter(|command| *command == "watch" && key.name == "time");
    if let Some(advice) = for_watch.and_then(|command| advise_time(command, value, line)) {
        return format!("type {advice}");
    }
    match command {
        _ if key.name == TARGET => {
            format!("a target has no flag; type fathom {} {}", command.unwrap_or("run"), name::line(&words))
        }
        Some(command) if accepts(command, &words) => {
            format!("the flag is {}; type {}", spelling(key), name::line(&words))
        }
        Some(command) if is_spelt || !commands_with_flag(key.name).contains(&format!("fathom {command}")) => {
            let not_taken = format!("fathom {command} does not take {}", spelling(key));
            let commands = commands_with_flag(key.name);
            let takes = |command: &&String| accepts(command.trim_start_matches("fathom "), &words);
            // Without a valid value there is no line to type.
            match ["fathom run".to_owned()].iter().chain(&commands).find(takes) {
                Some(other) => format!("{not_taken}; type {other} {}", name::line(&words)),
                None => format!("{not_taken}; it is a flag of {}", commands.join(", ")),
            }
        }
        _ => format!("the flag is {}; type fathom run {} {}", spelling(key), spelling(key), key.value),
    }
}

/// Returns the commands that have a flag of this name: `fathom run`.
fn commands_with_flag(long: &str) -> Vec<String> {
    let cli = Cli::command();
    let takes = |c: &&clap::Command| c.get_arguments().any(|flag| flag.get_long() == Some(long));
    cli.get_subcommands().filter(takes).map(|c| format!("fathom {}", c.get_name())).collect()
}

/// Whether a command accepts these words. Other arguments that it requires may be missing.
fn accepts(command: &str, words: &[String]) -> bool {
    let line = ["fathom", command].into_iter().chain(words.iter().map(String::as_str));
    Cli::try_parse_from(line).err().is_none_or(|e| e.kind() == ErrorKind::MissingRequiredArgument)
}

/// Returns a key as it is typed.
fn spelling(key: &Key) -> String {
    if key.name == TARGET { "TARGET".into() } else { format!("--{}", key.name) }
}

/// Returns a key with its values as words of a command line.
fn to_words(key: &Key, values: &[String]) -> Vec<String> {
    if key.name == TARGET {
        return values.to_vec();
    }
    let flag_and_value = |value: &String| {
        let value = (!key.is_switch()).then(|| value.clone());
        std::iter::once(spelling(key)).chain(value)
    };
    values.iter().flat_map(flag_and_value).collect()
}

#[cfg(test)]
mod tests;
