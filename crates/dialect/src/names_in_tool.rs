//! Translates messages into the option names of the tool whose command line was typed.
//!
//! A message names a setting of fathom, as in `{limit-bandwidth}` or `--limit-bandwidth 50m`. Here it gets the name of the tool's own
//! option: `rate=50m`. A setting that the tool lacks loses its hyphens and is called a setting of fathom, since the user cannot type it.
//! Commands of fathom in backquotes are left alone.

use crate::Tool;
use model::spec::{JobSpec, keys};

/// Options of fio by the setting that each sets.
pub(crate) const FIO: &[(&str, &str)] = &[
    ("rw", "rw"),
    ("mix", "rwmixread"),
    ("bs", "bs"),
    ("depth", "iodepth"),
    ("size", "size"),
    ("offset", "offset"),
    ("target", "filename"),
    ("create", "fallocate"),
    ("sharing", "file_service_type"),
    ("random", "random_distribution"),
    ("align", "blockalign"),
    ("stride", "rw"),
    ("hole", "rw"),
    ("backwards", "rw"),
    ("start", "offset_increment"),
    ("positions", "rw"),
    ("consecutive", "rw"),
    ("times", "rw_sequencer"),
    ("strided", "zonesize"),
    ("replay", "read_iolog"),
    ("pace", "replay_no_stall"),
    ("speed", "replay_time_scale"),
    ("replay-scale", "replay_scale"),
    ("replay-align", "replay_align"),
    ("replay-skip", "replay_skip"),
    ("rate", "rate_iops"),
    ("arrivals", "rate_process"),
    ("limit-iops", "rate_iops"),
    ("limit-bandwidth", "rate"),
    ("flow", "flow"),
    ("serialize-overlap", "serialize_overlap"),
    ("think", "thinktime"),
    ("burst", "thinktime_blocks"),
    ("burst-time", "thinktime_iotime"),
    ("think-spin", "thinktime_spin"),
    ("delay", "startdelay"),
    ("batch", "iodepth_batch"),
    ("ops", "number_ios"),
    ("bytes", "io_size"),
    ("time", "runtime"),
    ("warmup", "ramp_time"),
    ("passes", "loops"),
    ("steady-state", "steadystate"),
    ("latency-target", "latency_target"),
    ("min-rate", "rate_min"),
    ("max-latency", "max_latency"),
    ("max-errors", "continue_on_error"),
    ("ignore-errors", "ignore_error"),
    ("ends-others", "exitall"),
    ("fsync", "fsync"),
    ("fdatasync", "fdatasync"),
    ("sync-file-range", "sync_file_range"),
    ("compress", "buffer_compress_percentage"),
    ("dedup", "dedupe_percentage"),
    ("dedup-set", "dedupe_working_set_percentage"),
    ("dedup-shared", "dedupe_global"),
    ("zeros", "zero_buffers"),
    ("data", "buffer_pattern"),
    ("workers", "numjobs"),
    ("clones", "numjobs"),
    ("cpus", "cpus_allowed"),
    ("pin", "cpus_allowed_policy"),
    ("memory-nodes", "numa_mem_policy"),
    ("nice", "nice"),
    ("io-priority", "prio"),
    ("op-priority", "cmdprio_percentage"),
    ("seed", "randseed"),
    ("cold", "invalidate"),
    ("evict-each-pass", "invalidate"),
    ("advice", "fadvise_hint"),
    ("cache", "direct"),
    ("engine", "ioengine"),
    ("verify", "verify"),
    ("op-log", "write_lat_log"),
    ("op-log-interval", "log_avg_msec"),
];

/// Options of DISKSPD by the setting that each sets.
const DISKSPD: &[(&str, &str)] = &[
    ("rw", "-w"),
    ("mix", "-w"),
    ("bs", "-b"),
    ("depth", "-o"),
    ("size", "-f"),
    ("offset", "-B"),
    ("create", "-c"),
    ("random", "-r"),
    ("align", "-r"),
    ("stride", "-s"),
    ("start", "-T"),
    ("run-length", "-rs"),
    ("limit-iops", "-g"),
    ("limit-bandwidth", "-g"),
    ("think", "-j"),
    ("burst", "-i"),
    ("time", "-d"),
    ("warmup", "-W"),
    ("cooldown", "-C"),
    ("sharing", "-O"),
    ("workers", "-t"),
    ("cpus", "-a"),
    ("pin", "-a"),
    ("io-priority", "-I"),
    ("dedup", "-Z"),
    ("compress", "-Z"),
    ("zeros", "-Z"),
    ("data", "-Z"),
    ("counting", "-Z"),
    ("seed", "-z"),
    ("cache", "-S"),
    ("advice", "-f"),
    ("fsync", "-N"),
    ("times", "-p"),
];

/// The option of Iometer, or the heading of its configuration files, by the setting that each sets.
const IOMETER: &[(&str, &str)] = &[
    ("time", "/t"),
    ("warmup", "'Ramp Up Time"),
    ("depth", "'Number of outstanding IOs"),
    ("size", "'Disk maximum size"),
    ("offset", "'Disk maximum size"),
    ("line", "'size,% of size,% reads,% random,delay,burst,align,reply"),
    ("bs", "'size,% of size,% reads,% random,delay,burst,align,reply"),
    ("mix", "'size,% of size,% reads,% random,delay,burst,align,reply"),
    ("random", "'size,% of size,% reads,% random,delay,burst,align,reply"),
    ("align", "'size,% of size,% reads,% random,delay,burst,align,reply"),
    ("workers", "'Worker"),
    ("target", "'Target"),
    ("seed", "'use fixed seed"),
    ("compress", "'Data pattern"),
    ("dedup", "'Data pattern"),
];

/// Engines that have another name in fio.
const ENGINES: &[(&str, &str)] =
    &[("rw", "sync"), ("sync", "psync"), ("preadv", "vsync"), ("vsync", "pvsync2"), ("fallocate", "falloc")];

/// A setting with its value as typed for the tool: `rate=50m`, `-o32`.
pub(crate) fn format_for_tool(tool: Tool, key: &str, value: Option<&str>) -> String {
    let (names, glue) = match tool {
        Tool::Fio => (FIO, "="),
        Tool::Diskspd => (DISKSPD, ""),
        Tool::Iometer => (IOMETER, " "),
        Tool::Fathom => (&[] as &[_], " "),
    };
    let known = names.iter().find(|(setting, _)| *setting == key).map(|(_, option)| *option);
    let value = value.and_then(|value| translated(tool, key, value));
    match (known, value) {
        (Some(option), Some(value)) => format!("{option}{glue}{value}"),
        (Some(option), None) => option.into(),
        (None, Some(value)) => format!("fathom's setting {key} ({value})"),
        (None, None) => format!("fathom's setting {key}"),
    }
}

/// A value as the tool writes it; `None` if its option takes other values.
fn translated(tool: Tool, key: &str, value: &str) -> Option<String> {
    match (tool, key) {
        (Tool::Fio, "engine") => {
            let (name, options) =
                value.split_once(':').map_or((value, ""), |(name, options)| (name, options));
            let name = ENGINES.iter().find(|(here, _)| *here == name).map_or(name, |(_, there)| there);
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
        (Tool::Diskspd, "time" | "warmup" | "cooldown") => Some(value.trim_end_matches('s').into()),
        (
            Tool::Fio,
            "stride" | "hole" | "backwards" | "positions" | "consecutive" | "clones" | "create" | "start",
        )
        | (Tool::Diskspd | Tool::Iometer, _) => None,
        _ => Some(value.into()),
    }
}

/// A message with the names of the tool in place of flags of fathom.
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

/// Removes fathom's settings in parentheses, such as " (`--bs`)", which users of another tool cannot type.
pub(crate) fn without_settings(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(start) = out.find(" (`--") {
        let length = out[start..].find(')').map_or(out.len() - start, |end| end + 1);
        out.replace_range(start..start + length, "");
    }
    out
}

/// The setting at the beginning of a text, and the rest of the text.
fn flag(text: &str) -> Option<(&'static keys::Key, &str)> {
    let end = text.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(text.len());
    let key = keys::find(text.get(..end)?)?;
    Some((key, text.get(end..)?))
}

/// The value of a setting at the beginning of a text, if there is one that the setting takes, and the rest of the text.
fn value<'t>(key: &keys::Key, text: &'t str) -> (Option<&'t str>, &'t str) {
    let Some(after) = text.strip_prefix([' ', '=']).filter(|_| !key.is_switch()) else { return (None, text) };
    let end = after.find(|c: char| c.is_whitespace() || ";,)`\'\"".contains(c)).unwrap_or(after.len());
    let word = after[..end].trim_end_matches([':', '.']);
    let is_word_of_prose = word.chars().all(char::is_alphabetic)
        && !["rw", "engine", "cache", "sharing", "random", "arrivals", "advice", "start", "clones"]
            .contains(&key.name);
    let takes = !word.is_empty() && !is_word_of_prose && key.say(&mut JobSpec::default(), [word]).is_ok();
    if takes { (Some(word), &after[word.len()..]) } else { (None, text) }
}

#[test]
fn settings_in_parentheses_are_removed() {
    let text = "limit of each (`--limit-iops`, `--rate`), or 0 (off) (`--bs`)";
    assert_eq!(without_settings(text), "limit of each, or 0 (off)");
}

#[test]
fn every_translated_setting_exists() {
    for (setting, _) in FIO.iter().chain(DISKSPD).chain(IOMETER) {
        assert!(keys::find(setting).is_some(), "{setting}");
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
    assert_eq!(in_names_of(Tool::Diskspd, "type --depth 32 or --time 10s"), "type -o32 or -d10");
    assert_eq!(in_names_of(Tool::Iometer, "a longer --time"), "a longer /t");
}
