//! Unknown flags: what to type instead of one that another tool has, that another command takes, or that is spelt as elsewhere.
//!
//! For: the tip below the error. Not for: accepting such a flag, nor for slips of a letter, for which clap offers the nearest flag.

use super::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use model::shell;
use model::spec::counterpart::{self, Counterpart};
use model::spec::keys::{self, Key, TARGET};
use std::path::Path;

/// Adds to an error what was meant by an unknown flag of this command line, where that is known; and keeps what was typed in one line.
pub(super) fn advise(error: &mut clap::Error, words: &[String]) {
    for kind in [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue] {
        if let Some(ContextValue::String(typed)) = error.get(kind) {
            let shown = model::name::shown(Path::new(typed));
            error.insert(kind, ContextValue::String(shown));
        }
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(tip) = tip(flag, words) else { return };
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// What DISKSPD means by a word such as `-o32`, where that can be typed.
pub(super) fn in_diskspd(word: &str) -> Option<String> {
    let meant = counterpart::in_diskspd(word.strip_prefix('-')?).filter(|m| !m.values.is_empty())?;
    Some(of_tool(&meant, Some("run")))
}

fn tip(flag: &str, words: &[String]) -> Option<String> {
    let at = words.iter().position(|word| flag.starts_with('-') && word.starts_with(flag))?;
    let word = words.get(at)?;
    let bare = word.trim_start_matches('-');
    let (name, value) = bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value)));
    let next = words.get(at + 1).map(String::as_str).filter(|next| !next.starts_with('-'));
    let values: Vec<&str> = value.map_or_else(|| next.into_iter().chain([""]).collect(), |v| vec![v]);
    let cli = Cli::command();
    let command = words.iter().skip(1).map(String::as_str).find(|word| cli.find_subcommand(word).is_some());
    if let Some(meant) = counterpart::in_fio(name, &values) {
        return Some(of_tool(&meant, command));
    }
    if let Some(key) = keys::find(&name.replace('_', "-")) {
        let value = if key.is_switch() { "true" } else { values.first().copied().unwrap_or_default() };
        return Some(of_key(key, value, word.starts_with(&flag_of(key)), command));
    }
    let glued = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    Some(of_tool(&counterpart::in_diskspd(glued)?, command))
}

/// What a flag of another tool is here.
fn of_tool(meant: &Counterpart, command: Option<&str>) -> String {
    let Counterpart { tool, name, key, values } = meant;
    let theirs = format!("{}'s {name} is {}", tool.word(), flag_of(key));
    let words = typed(key, values);
    match command {
        _ if values.is_empty() => format!("{theirs}; type {} {}", flag_of(key), key.value),
        Some(command) if reads(command, &words) => format!("{theirs}; type {}", shell::line(&words)),
        Some(command) if takers(key).contains(&command.to_owned()) => {
            format!(
                "{theirs}, which fathom {command} does not take in this form; type fathom run {}",
                shell::line(&words)
            )
        }
        Some(command) => {
            format!("{theirs}, which fathom {command} does not take; type fathom run {}", shell::line(&words))
        }
        None => format!("{theirs}; type fathom run {}", shell::line(&words)),
    }
}

/// What to type for a key of ours that was spelt otherwise, or that this command does not take.
fn of_key(key: &Key, value: &str, is_spelt: bool, command: Option<&str>) -> String {
    let words = typed(key, &[value.to_owned()]);
    match command {
        Some(command) if reads(command, &words) => {
            format!("the flag is {}; type {}", flag_of(key), shell::line(&words))
        }
        Some(command) if is_spelt || !takers(key).contains(&command.to_owned()) => {
            let takers: Vec<String> = takers(key).iter().map(|taker| format!("fathom {taker}")).collect();
            format!("fathom {command} does not take {}; it is a flag of {}", flag_of(key), takers.join(", "))
        }
        _ => format!("the flag is {}; type fathom run {} {}", flag_of(key), flag_of(key), key.value),
    }
}

/// Commands that take a key as a flag: from the table, as an axis, or with a parser of their own.
fn takers(key: &Key) -> Vec<String> {
    let cli = Cli::command();
    let takes = |c: &&clap::Command| c.get_arguments().any(|flag| flag.get_long() == Some(key.name));
    cli.get_subcommands().filter(takes).map(|c| c.get_name().to_owned()).collect()
}

/// Whether a command understands these words.
fn reads(command: &str, words: &[String]) -> bool {
    let line = ["fathom", command].into_iter().chain(words.iter().map(String::as_str));
    Cli::try_parse_from(line).is_ok()
}

/// How a key is typed.
fn flag_of(key: &Key) -> String {
    if key.name == TARGET { "TARGET".into() } else { format!("--{}", key.name) }
}

/// A key with its values as words of a command line.
fn typed(key: &Key, values: &[String]) -> Vec<String> {
    if key.name == TARGET {
        return values.to_vec();
    }
    let of = |value: &String| {
        let value = (!key.is_switch()).then(|| value.clone());
        std::iter::once(flag_of(key)).chain(value)
    };
    values.iter().flat_map(of).collect()
}

/// The error of a command line, with its tip.
#[cfg(test)]
fn refused(line: &[&str]) -> String {
    let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    let error = Cli::read_words(&words.iter().map(Into::into).collect::<Vec<_>>());
    error.map_or_else(|e| e.render().to_string(), |_| panic!("{line:?} is understood"))
}

#[test]
fn every_name_of_another_tool_is_told_in_every_command() {
    let cli = Cli::command();
    // Some of them read the command lines of tools, whose names these may be.
    let reads_its_own = |name: &&str| dialect::COMMANDS.contains(name);
    let commands = cli.get_subcommands().map(clap::Command::get_name).filter(|name| !reads_its_own(name));
    let commands: Vec<&str> = commands.collect();
    let names = keys::KEYS.iter().flat_map(|key| key.elsewhere.iter().map(move |f| (key, f.typed())));
    for (at, (key, name)) in names.enumerate() {
        // Each name in `run` and in a quarter of the others, so that each command has every fourth name of each tool.
        let asked = commands.iter().enumerate().filter(|(i, c)| **c == "run" || (i + at) % 4 == 0);
        for (_, command) in asked {
            // There -o is a flag of ours: what it says of a number is another test.
            let has_o = cli
                .find_subcommand(command)
                .is_some_and(|c| c.get_arguments().any(|a| a.get_short() == Some('o')));
            if name.starts_with("-o") && has_o {
                continue;
            }
            let said = refused(&["fathom", command, &name]);
            assert!(said.contains("unexpected argument"), "{command} {name}: {said}");
            let tip = said.lines().find_map(|line| line.trim().strip_prefix("tip: ")).unwrap_or_default();
            assert!(tip.contains(&format!("is {}", flag_of(key))), "{command} {name}: {said}");
            let (_, instead) = tip.split_once("; type ").unwrap_or_default();
            let here = format!("fathom {command} {instead}");
            let line = if instead.starts_with("fathom ") { instead } else { &here };
            let words = line.split(' ').map(|word| word.trim_matches('\''));
            assert!(!instead.is_empty() && Cli::try_parse_from(words).is_ok(), "{command} {name}: {line}");
        }
    }
}

#[test]
fn tips_say_the_flag_the_value_and_the_command() {
    for (line, tip) in [
        ("run --iodepth 32", "fio's --iodepth is --depth; type --depth 32"),
        ("run -iodepth=32", "fio's --iodepth is --depth; type --depth 32"),
        ("run x --runtime=60 --iodepth=3", "fio's --runtime is --time; type --time 60s"),
        ("run --iodepth", "fio's --iodepth is --depth; type --depth N"),
        ("run --ioengine=rados", "fio's --ioengine is --engine; type --engine NAME[:OPTIONS]"),
        ("bench --filename=/dev/sdb", "fio's --filename is TARGET; type /dev/sdb"),
        ("run --filename=a:b", "fio's --filename is TARGET; type a b"),
        ("run -b4K -o32", "DISKSPD's -b is --bs; type --bs 4K"),
        (
            "layers --direct=1",
            "is --cache, which fathom layers does not take; type fathom run --cache direct",
        ),
        (
            "sweep --bssplit=4k/60:8k/40",
            "which fathom sweep does not take in this form; type fathom run --bs 4k/60:8k/40",
        ),
        ("--numjobs=4", "fio's --numjobs is --workers; type fathom run --workers 4"),
        ("run -bs=8k", "the flag is --bs; type --bs 8k"),
        ("run --limit_iops=8k", "the flag is --limit-iops; type --limit-iops 8k"),
        ("run --target x", "the flag is TARGET; type x"),
        (
            "limit --precision 5%",
            "fathom limit does not take --precision; it is a flag of fathom bench, fathom run",
        ),
        ("list --norandommap", "fio's --norandommap is --random, which fathom list does not take"),
    ] {
        let words: Vec<&str> = std::iter::once("fathom").chain(line.split(' ')).collect();
        let said = refused(&words);
        assert!(said.contains(tip) && said.matches("tip: ").count() == 1, "{line}: {said}");
    }
    assert!(!refused(&["fathom", "run", "--dept", "3"]).contains("fio"));
    assert!(!refused(&["fathom", "bench", "a", "time"]).contains("type --time"));
    let said = in_diskspd("-o32").unwrap_or_default();
    assert_eq!(said, "DISKSPD's -o is --depth; type --depth 32");
    assert_eq!(in_diskspd("-oreport"), None);
}
