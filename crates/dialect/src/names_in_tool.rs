//! Translates messages into the option names of the tool whose command line was typed.
//!
//! A message names a setting of fathom, as in `{limit-bandwidth}` or `--limit-bandwidth 50m`. The translation replaces the setting by the
//! tool's own option: `rate=50m`. If the tool has no such option, the user cannot type the setting, so the message calls it "fathom's
//! setting" and drops the hyphens. Commands of fathom in backquotes are not changed.

use crate::diskspd::options::OPTIONS as DISKSPD;
use crate::fio::ENGINES as FIO_ENGINES;
use crate::fio::options::OPTIONS as FIO;
use crate::iometer::options::{HEADINGS, OPTIONS as IOMETER};
use crate::options::ToolOption;
use crate::{SECOND_NS, Tool};
use model::spec::{JobSpec, keys};
use model::units::parse_duration_ns;

/// The tool's option for a setting of fathom, as it is typed but without a value: `-o` for `depth`.
/// `None` if the tool has no such option.
fn option_of(tool: Tool, setting: &str) -> Option<String> {
    let (tables, prefix): (&[&[ToolOption]], _) = match tool {
        Tool::Fio => (&[FIO], ""),
        Tool::Diskspd => (&[DISKSPD], "-"),
        Tool::Iometer => (&[IOMETER, HEADINGS], ""),
        Tool::Fathom => (&[], ""),
    };
    let sets = |option: &&&ToolOption| option.settings.split(' ').any(|one| one == setting);
    tables
        .iter()
        .flat_map(|table| table.iter())
        .find(|option| sets(&option))
        .map(|option| format!("{prefix}{}", option.name))
}

/// A setting with its value as typed for the tool: `rate=50m`, `-o32`.
pub(crate) fn format_for_tool(tool: Tool, key: &str, value: Option<&str>) -> String {
    let glue = match tool {
        Tool::Fio => "=",
        Tool::Diskspd => "",
        Tool::Iometer | Tool::Fathom => " ",
    };
    match (tool, key, value) {
        (Tool::Fio, "random", Some("once")) => return "norandommap=0".into(),
        (Tool::Fio, "random", Some("uniform")) => return "norandommap=1".into(),
        _ => {}
    }
    let known = option_of(tool, key);
    let value = value.and_then(|value| translated(tool, key, value));
    match (known, value) {
        (Some(option), Some(value)) => format!("{option}{glue}{value}"),
        (Some(option), None) => option,
        (None, Some(value)) => format!("fathom's setting {key} ({value})"),
        (None, None) => format!("fathom's setting {key}"),
    }
}

/// A value as the tool writes it; `None` if the tool's option takes other values.
fn translated(tool: Tool, key: &str, value: &str) -> Option<String> {
    match (tool, key) {
        (Tool::Fio, "engine") => {
            let (name, options) = value.split_once(':').unwrap_or((value, ""));
            // Of several engines of fio with the same name in fathom, take the last: pvsync2 has
            // more options than pvsync.
            let name = FIO_ENGINES.iter().rfind(|(_, here)| *here == name).map_or(name, |(of_fio, _)| of_fio);
            options.is_empty().then(|| name.to_owned())
        }
        (Tool::Fio, "cache") => match value {
            "direct" => Some("1".into()),
            "buffered" => Some("0".into()),
            _ => None,
        },
        (Tool::Fio, "cold" | "evict-each-pass" | "serialize-overlap" | "zeros" | "ends-others") => {
            Some(if value == "true" { "1" } else { "0" }.into())
        }
        (Tool::Diskspd, "depth" | "bs" | "size" | "offset" | "stride" | "workers" | "seed" | "cpus") => {
            Some(value.into())
        }
        // These options take whole seconds.
        (Tool::Diskspd, "time" | "warmup" | "cooldown") => parse_duration_ns(value)
            .ok()
            .filter(|ns| ns.is_multiple_of(SECOND_NS))
            .map(|ns| (ns / SECOND_NS).to_string()),
        (Tool::Diskspd, "cache") => {
            let letters =
                [("direct", "u"), ("buffered", "b"), ("dsync", "bw"), ("direct-dsync", "uw"), ("mmap", "m")];
            letters.iter().find(|(mode, _)| *mode == value).map(|(_, letters)| (*letters).into())
        }
        (
            Tool::Fio,
            "stride" | "hole" | "backwards" | "positions" | "consecutive" | "clones" | "create" | "start",
        )
        | (Tool::Diskspd | Tool::Iometer, _) => None,
        _ => Some(value.into()),
    }
}

/// A message with the option names of the tool in place of fathom's flags.
pub fn in_names_of(tool: Tool, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_command = false;
    let mut rest = text;
    while let Some(at) = rest.find(['`', '-']) {
        let (before, from) = rest.split_at(at);
        out += before;
        if let Some(after) = from.strip_prefix('`') {
            // Commands of fathom are not changed.
            is_command = !is_command && after.starts_with("fathom ");
            out.push('`');
            rest = after;
            continue;
        }
        let is_start = !out.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '=');
        let flag = from.strip_prefix("--").filter(|_| is_start && !is_command).and_then(flag);
        let Some((key, after)) = flag else {
            out.push('-');
            rest = &from[1..];
            continue;
        };
        let (value, after) = value(key, after);
        out += &format_for_tool(tool, key.name, value);
        rest = after;
    }
    out + rest
}

/// The setting at the beginning of a text, and the rest of the text.
fn flag(text: &str) -> Option<(&'static keys::Key, &str)> {
    let end = text.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(text.len());
    let key = keys::find(text.get(..end)?)?;
    Some((key, text.get(end..)?))
}

/// The value at the beginning of a text, and the rest of the text. `None` if the text does not begin with a value that the setting takes.
fn value<'t>(key: &keys::Key, text: &'t str) -> (Option<&'t str>, &'t str) {
    let Some(after) = text.strip_prefix([' ', '=']).filter(|_| !key.is_switch()) else { return (None, text) };
    let end = after.find(|c: char| c.is_whitespace() || ";,)`\'\"".contains(c)).unwrap_or(after.len());
    let word = after[..end].trim_end_matches([':', '.']);
    let is_word_of_prose = word.chars().all(char::is_alphabetic)
        && !["rw", "engine", "cache", "sharing", "random", "arrivals", "advice", "start", "clones"]
            .contains(&key.name);
    let takes =
        !word.is_empty() && !is_word_of_prose && key.parse_into_job(&mut JobSpec::default(), [word]).is_ok();
    if takes { (Some(word), &after[word.len()..]) } else { (None, text) }
}

#[test]
fn settings_of_the_tables_exist() {
    let tables = [FIO, DISKSPD, IOMETER, HEADINGS];
    for option in tables.iter().flat_map(|table| table.iter()) {
        for setting in option.settings.split_terminator(' ') {
            assert!(keys::find(setting).is_some(), "{}: {setting}", option.name);
        }
    }
}

#[test]
fn messages_have_the_option_names_of_the_tool() {
    for (text, expected) in [
        (
            "--limit-bandwidth limits writes, and --rw randrw has none",
            "rate limits writes, and rw=randrw has none",
        ),
        ("type --engine io_uring or libaio", "type ioengine=io_uring or libaio"),
        ("type --engine vsync, not --engine rw", "type ioengine=pvsync2, not ioengine=sync"),
        (
            "the engine sync does not work with --cache direct;",
            "the engine sync does not work with direct=1;",
        ),
        ("use a larger --size, or (--depth 32)", "use a larger size, or (iodepth=32)"),
        (
            "type --destroy=f; `fathom run --depth 8` measures",
            "type --destroy=f; `fathom run --depth 8` measures",
        ),
        ("--runs 5 of a-b --x", "fathom's setting runs (5) of a-b --x"),
    ] {
        assert_eq!(in_names_of(Tool::Fio, text), expected);
    }
    assert_eq!(
        in_names_of(Tool::Fio, "a larger --size, or --random once,"),
        "a larger size, or norandommap=0,"
    );
    assert_eq!(in_names_of(Tool::Fio, "not --random zipf:1.1"), "not random_distribution=zipf:1.1");
    assert_eq!(in_names_of(Tool::Diskspd, "type --depth 32 or --time 10s"), "type -o32 or -d10");
    assert_eq!(
        in_names_of(Tool::Diskspd, "longer (`--time 10m`), not --time 500ms"),
        "longer (`-d600`), not -d"
    );
    assert_eq!(in_names_of(Tool::Diskspd, "--cache buffered or --cache direct"), "-Sb or -Su");
    assert_eq!(in_names_of(Tool::Iometer, "a longer --time"), "a longer /t");
}
