//! Languages in which workloads are written down: a text in, a [`model::spec::JobSpec`] out.
//!
//! For: reading them, and messages that point at the place. Not for: defaults (the plan) nor for finding files.
#![forbid(unsafe_code)]

pub mod diskspd;
pub mod fio;
pub mod iometer;
pub mod job;
mod names_in_tool;
pub mod trouble;

pub use self::names_in_tool::in_names_of;
pub use self::trouble::Trouble;
use model::spec::{JobSpec, Problem};
use std::borrow::Cow;
use std::path::Path;
use toml::de::DeTable;
pub use trouble::LONG_DASHES;

/// Every language there is.
pub const LANGUAGES: &[Language] = &[job::LANGUAGE, fio::LANGUAGE, diskspd::LANGUAGE, iometer::LANGUAGE];
/// Tools whose command lines are read, by the names that people and programs call them by.
pub const COMMANDS: &[&str] = &["fio", "diskspd", "iometer", "iops"];

/// The language of a file, by the end of its name in whichever case; `None` where that is not one's.
pub fn of_name(path: &Path) -> Option<&'static Language> {
    let extension = path.extension()?;
    LANGUAGES.iter().find(|language| extension.eq_ignore_ascii_case(language.extension))
}

/// The language of a tool; `None` where its files are known and not read.
pub fn of_tool(tool: Tool) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.tool == tool)
}

/// Largest file in bytes; a thousand streams with every setting take a quarter of it.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// What is known outside this crate against a workload, such as an engine that there is not.
pub(crate) type Objections<'o> = &'o dyn Fn(&JobSpec) -> Vec<Problem>;

/// A tool by its job files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// This one: TOML.
    Fathom,
    /// Sections with `key=value`.
    Fio,
    /// A configuration, whose lines are headings and values in turn.
    Iometer,
    /// XML: a profile, or results with their profile.
    Diskspd,
}

impl Tool {
    /// As its users write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fathom => "fathom",
            Self::Fio => "fio",
            Self::Iometer => "Iometer",
            Self::Diskspd => "DISKSPD",
        }
    }
}

/// A line of the table of languages.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Whose it is.
    pub tool: Tool,
    /// How names of its files end, without the point.
    pub extension: &'static str,
    /// Reads a text, of which messages speak by this name. What it gives contradicts itself nowhere, and nobody objects to it.
    pub parse: fn(&str, &str, Objections) -> Result<JobSpec, Trouble>,
}

/// Options of fio's of which a job file of its has one at least.
const OF_FIO: [&str; 15] = [
    "rw",
    "readwrite",
    "ioengine",
    "iodepth",
    "numjobs",
    "bs",
    "blocksize",
    "bssplit",
    "filename",
    "directory",
    "rwmixread",
    "time_based",
    "fill_device",
    "stonewall",
    "verify",
];

/// Tables and keys of ours that no other TOML has: a file with one of them is a job, or was meant to be.
const OF_OURS: [&str; 6] = [job::PHASE, job::STREAM, "rw", "bs", "depth", "workers"];

/// Whose job file these bytes are; `None` for anything else, and for what is larger than any job file.
pub fn what_language(content: &[u8]) -> Option<Tool> {
    if content.len() > MAX_FILE_BYTES {
        return None;
    }
    let text = text(content)?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if is_diskspd(text) {
        Some(Tool::Diskspd)
    } else if is_iometer(text) {
        Some(Tool::Iometer)
    } else if is_fathom(text) {
        Some(Tool::Fathom)
    } else {
        is_fio(text).then_some(Tool::Fio)
    }
}

/// The text of a file; Windows, where two of these tools are at home, writes UTF-16 with a mark before it.
fn text(content: &[u8]) -> Option<Cow<'_, str>> {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units = content.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        String::from_utf16(&units.collect::<Vec<_>>()).ok().map(Cow::Owned)
    };
    let text = match content {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => std::str::from_utf8(content).ok().map(Cow::Borrowed),
    };
    text.filter(|text| !text.contains('\0'))
}

/// The first element is a profile or its results, and there are time spans in it.
fn is_diskspd(text: &str) -> bool {
    let mut rest = text;
    // Before the first element come declarations and comments.
    while let Some((start, end)) =
        [("<?", "?>"), ("<!--", "-->")].into_iter().find(|(s, _)| rest.starts_with(s))
    {
        let Some((_, behind)) = rest[start.len()..].split_once(end) else { return false };
        rest = behind.trim_start();
    }
    let is_root = |name: &str| {
        let behind = rest.strip_prefix('<').and_then(|r| r.strip_prefix(name));
        behind.is_some_and(|r| r.starts_with(|c: char| c.is_whitespace() || c == '>'))
    };
    (is_root("Profile") || is_root("Results")) && rest.contains("<TimeSpan")
}

/// It begins with the version, and its headings begin with an apostrophe.
fn is_iometer(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let is_version = first
        .trim_start_matches('\'')
        .strip_prefix("Version ")
        .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
    is_version
        && lines.any(|line| line.starts_with("'TEST SETUP") || line.starts_with("'ACCESS SPECIFICATIONS"))
}

/// A table of which a key is ours.
fn is_fathom(text: &str) -> bool {
    let (table, errors) = DeTable::parse_recoverable(text);
    errors.is_empty() && OF_OURS.iter().any(|key| table.get_ref().contains_key(*key))
}

/// Sections, in them keys with or without a value, and one of these keys at least; before the first section only comments and
/// other files.
fn is_fio(text: &str) -> bool {
    let (mut in_section, mut known) = (false, false);
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with([';', '#']) || line.starts_with("include ") {
            continue;
        }
        if line.starts_with('[') {
            in_section = !line.starts_with("[[") && line.contains(']');
            if !in_section {
                return false;
            }
            continue;
        }
        let key = line.split_once('=').map_or(line, |(key, _)| key).trim();
        if !in_section || key.is_empty() || key.contains(char::is_whitespace) {
            return false;
        }
        known |= OF_FIO.contains(&key);
    }
    known
}

#[cfg(test)]
const FIO: &str =
    "; comment\n# another\ninclude base.inc\n\n[global]\r\nbs=4k\r\n[a job]\nstonewall\nrw = randread\n";

#[cfg(test)]
const ICF: &str = "Version 1.1.0 \n'TEST SETUP ====\n'Test Description\n\t\n'Run Time\n";

#[cfg(test)]
const XML: &str =
    "<?xml version=\"1.0\"?>\n<!-- x -->\n<Profile>\n<TimeSpans><TimeSpan/></TimeSpans></Profile>";

#[test]
fn each_tool_is_told_by_what_its_files_say() {
    let results = XML.replace("<Profile>", "<Results>\n<Profile>") + "</Results>";
    for (text, tool) in [
        (FIO, Tool::Fio),
        ("[x]\nfilename=/dev/sdb\nsize=1g", Tool::Fio),
        (ICF, Tool::Iometer),
        (XML, Tool::Diskspd),
        (&results, Tool::Diskspd),
        ("rw = \"read\"\nbs = \"4k\"\n", Tool::Fathom),
        ("[[phase]]\ntime = 3\n", Tool::Fathom),
    ] {
        assert_eq!(what_language(text.as_bytes()), Some(tool), "{text}");
        assert_eq!(what_language(format!("\u{feff}{text}").as_bytes()), Some(tool), "{text}");
        let wide: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(what_language(&wide), Some(tool), "{text}");
    }
}

#[test]
fn what_is_no_job_is_nobodys() {
    for text in [
        "",
        "hello\n",
        "[package]\nname = \"x\"\n",
        "[section]\nkey=value\n",
        "rw=randread\n[job]\n",
        "[job]\nrw=read\nand then some prose\n",
        "Version 1.1.0\n",
        "<Profile><a/></Profile>",
        "<Profiles><TimeSpan/></Profiles>",
        "<?xml never ends <Profile><TimeSpan>",
        "<html><TimeSpan></html>",
    ] {
        assert_eq!(what_language(text.as_bytes()), None, "{text}");
    }
    assert_eq!(what_language(b"[a]\nrw=read\n\0"), None);
    assert_eq!(what_language(b"[a]\nrw=read\n\xff"), None);
    assert_eq!(what_language(&[0xff, 0xfe, 0x00, 0xd8]), None, "half of a pair");
    let long = format!("{FIO}{}", "# long\n".repeat(MAX_FILE_BYTES / 7));
    assert_eq!(what_language(long.as_bytes()), None);
}
