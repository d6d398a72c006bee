//! What was meant by a name of another tool.
//!
//! For: telling whoever types it what to type here. Not for: accepting such a name, since one that means the same in most cases
//! would be wrong in the others.

use super::JobSpec;
use super::foreign::{Foreign, Tool};
use super::keys::{KEYS, Key};

/// A name of another tool, and what says the same here.
#[derive(Clone, Debug)]
pub struct Counterpart {
    /// Whose name it is.
    pub tool: Tool,
    /// The name as it is typed there: `--iodepth`, `-b`.
    pub name: String,
    /// The key of that meaning.
    pub key: &'static Key,
    /// Its values, which the key reads; none where what was typed has no counterpart.
    pub values: Vec<String>,
}

impl Counterpart {
    fn new(key: &'static Key, foreign: &Foreign, value: &str) -> Self {
        let reads = |values: &Vec<String>| {
            !values.is_empty() && key.say(&mut JobSpec::default(), values.iter().map(String::as_str)).is_ok()
        };
        let dashes = if foreign.tool == Tool::Diskspd { "-" } else { "--" };
        let values = Some((foreign.here)(value)).filter(reads).unwrap_or_default();
        Self { tool: foreign.tool, name: format!("{dashes}{}", foreign.name), key, values }
    }
}

/// The meaning of an option of fio or of a name that several other tools use. `values` are what may be its value, the likeliest first.
pub fn in_other_tools(name: &str, values: &[&str]) -> Option<Counterpart> {
    let all = named(Tool::Fio).chain(named(Tool::Other));
    best(all.filter(|(_, f)| f.name == name).flat_map(|(key, foreign)| {
        let unsaid = values.is_empty().then_some("");
        values.iter().copied().chain(unsaid).map(move |value| Counterpart::new(key, foreign, value))
    }))
}

/// What an option of DISKSPD's means, with its value right behind it and without its dash: `b4K`.
pub fn in_diskspd(word: &str) -> Option<Counterpart> {
    let mut all: Vec<(usize, Counterpart)> = named(Tool::Diskspd)
        .filter_map(|(key, f)| Some((f.name.len(), Counterpart::new(key, f, word.strip_prefix(f.name)?))))
        .collect();
    // -rs30 is not -r with the value s30.
    all.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    best(all.into_iter().map(|(_, meant)| meant))
}

fn named(tool: Tool) -> impl Iterator<Item = (&'static Key, &'static Foreign)> {
    let all = KEYS.iter().flat_map(|key| key.elsewhere.iter().map(move |foreign| (key, foreign)));
    all.filter(move |(_, foreign)| foreign.tool == tool)
}

/// The first that has values, else the first to which some can be added.
fn best(all: impl Iterator<Item = Counterpart>) -> Option<Counterpart> {
    let all: Vec<Counterpart> = all.collect();
    let said = all.iter().find(|m| !m.values.is_empty());
    said.or_else(|| all.iter().find(|m| !m.key.is_switch())).cloned()
}

#[test]
fn every_example_is_read_by_its_key() {
    let mut names: Vec<String> = Vec::new();
    for key in KEYS {
        for foreign in key.elsewhere {
            let typed = foreign.typed();
            let meant = match foreign.tool {
                Tool::Fio | Tool::Other => in_other_tools(foreign.name, &[foreign.example]),
                Tool::Diskspd => in_diskspd(typed.trim_start_matches('-')),
            };
            let meant = meant.unwrap_or_else(|| panic!("{typed}"));
            assert_eq!(meant.key.name, key.name, "{typed}");
            assert!(!meant.values.is_empty(), "{typed}");
            assert!(
                foreign.tool != Tool::Fio || super::keys::find(foreign.name).is_none(),
                "{typed} is ours"
            );
            names.push(typed);
        }
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "no name is there twice");
}

#[test]
fn values_have_the_unit_and_the_words_of_fathom() {
    let said = |meant: Option<Counterpart>| {
        let meant = meant.map(|m| (m.key.name, m.values.join(" ")));
        meant.unwrap_or_else(|| ("nothing", String::new()))
    };
    for (name, value, key, here) in [
        ("runtime", "60", "time", "60s"),
        ("runtime", "2m", "time", "2m"),
        ("ramp_time", "500ms", "warmup", "500ms"),
        ("thinktime", "100", "think", "100us"),
        ("startdelay", "5", "delay", "5s"),
        ("rwmixwrite", "30", "mix", "70"),
        ("rwmixwrite", "130", "mix", ""),
        ("ioengine", "psync", "engine", "sync"),
        ("ioengine", "sync", "engine", "rw"),
        ("ioengine", "rados", "engine", ""),
        ("direct", "0", "cache", "buffered"),
        ("buffered", "0", "cache", "direct"),
        ("filename", "/dev/sdb:/dev/s\\:d", "target", "/dev/sdb /dev/s:d"),
        ("random_distribution", "zoned:60/10:40/90", "random", "zones:60/10,40/90"),
        ("sync_file_range", "wait_before,write:8", "sync-file-range", "8"),
        ("cpus_allowed_policy", "shared", "nothing", ""),
        ("frobnicate", "1", "nothing", ""),
    ] {
        assert_eq!(said(in_other_tools(name, &[value])), (key, here.into()), "{name}={value}");
    }
    for (word, key, here) in [
        ("b64K", "bs", "64K"),
        ("d60", "time", "60s"),
        ("w0", "mix", "100"),
        ("r", "rw", "randread"),
        ("r8k", "align", "8k"),
        ("rs30", "random", "mixed:30"),
        ("si", "start", "interlocked"),
        ("Sh", "cache", "direct-dsync"),
        ("g100", "limit-bandwidth", "100000"),
        ("g100i", "limit-iops", "100"),
        ("j5", "think", "5ms"),
        ("b", "bs", ""),
        ("Q", "nothing", ""),
    ] {
        assert_eq!(said(in_diskspd(word)), (key, here.into()), "-{word}");
    }
}
