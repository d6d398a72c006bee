//! Job languages: fathom's TOML jobs, fio, DISKSPD and Iometer. Each is read into a
//! [`model::spec::JobSpec`], with error messages that point at the place in the text.
#![forbid(unsafe_code)]

pub mod diskspd;
pub mod fio;
pub mod iometer;
pub mod job;
mod names_in_tool;
pub mod options;
pub mod trouble;

pub use self::names_in_tool::in_names_of;
pub use self::trouble::{Trouble, typed_hyphens, with_hyphens};
use model::spec::{JobSpec, Problem};
use std::borrow::Cow;
use std::path::Path;
use toml::de::DeTable;

/// All supported languages.
pub const LANGUAGES: &[Language] = &[job::LANGUAGE, fio::LANGUAGE, diskspd::LANGUAGE, iometer::LANGUAGE];
/// Names of the commands that imitate another tool.
pub const COMMANDS: &[&str] = &["fio", "diskspd", "iometer", "iops"];

/// The language of a file by its extension, case-insensitively; `None` for an unknown one.
pub fn language_of_path(path: &Path) -> Option<&'static Language> {
    let extension = path.extension()?;
    LANGUAGES.iter().find(|language| extension.eq_ignore_ascii_case(language.extension))
}

/// The language of a tool's job files. Every [`Tool`] has one in [`LANGUAGES`].
pub fn language_of_tool(tool: Tool) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.tool == tool)
}

/// Maximum size of a file in bytes. A thousand streams with every setting take a quarter of it.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// ns per second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Checks of a job by the caller, such as whether its engines exist.
pub(crate) type Objections<'o> = &'o dyn Fn(&JobSpec) -> Vec<Problem>;

/// The tool that a job file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// fathom: TOML.
    Fathom,
    /// Sections with `key=value`.
    Fio,
    /// A configuration of headings and values.
    Iometer,
    /// An XML profile, or results that contain one.
    Diskspd,
}

impl Tool {
    /// The name of the tool as its users write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fathom => "fathom",
            Self::Fio => "fio",
            Self::Iometer => "Iometer",
            Self::Diskspd => "DISKSPD",
        }
    }
}

/// A language and how its files are read.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The tool that the language belongs to.
    pub tool: Tool,
    /// The file extension, without the dot.
    pub extension: &'static str,
    /// Parses a text. The arguments are the name of the text in messages, the text, and further checks of the caller. Also checks the job
    /// for contradictions.
    pub parse: fn(&str, &str, Objections) -> Result<JobSpec, Trouble>,
}

/// Options of fio. [`is_fio`] accepts only files that have at least one of them.
const FIO_KEYS: &str = "rw readwrite ioengine iodepth numjobs bs blocksize bssplit filename directory rwmixread time_based fill_device stonewall verify";

/// Tables and keys of fathom's job files. A TOML file with one of them at the top level is a job of
/// fathom.
const FATHOM_KEYS: [&str; 6] = [job::PHASE, job::STREAM, "rw", "bs", "depth", "workers"];

/// Detects the tool of a job file; `None` for other files, and for files larger than [`MAX_FILE_BYTES`].
pub fn detect_tool(content: &[u8]) -> Option<Tool> {
    if content.len() > MAX_FILE_BYTES {
        return None;
    }
    let text = decode(content)?;
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

/// The text of a file: UTF-8, or UTF-16 with a byte order mark as Windows writes it. `None` for
/// anything else, and for text with a NUL.
fn decode(content: &[u8]) -> Option<Cow<'_, str>> {
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

/// Whether the first element is `Profile` or `Results`, and a time span follows.
fn is_diskspd(text: &str) -> bool {
    let mut rest = text;
    // Declarations and comments precede the first element.
    while let Some((start, end)) =
        [("<?", "?>"), ("<!--", "-->")].into_iter().find(|(s, _)| rest.starts_with(s))
    {
        let Some((_, after)) = rest[start.len()..].split_once(end) else { return false };
        rest = after.trim_start();
    }
    let is_root = |name: &str| {
        let after_name = rest.strip_prefix('<').and_then(|r| r.strip_prefix(name));
        after_name.is_some_and(|r| r.starts_with(|c: char| c.is_whitespace() || c == '>'))
    };
    (is_root("Profile") || is_root("Results")) && rest.contains("<TimeSpan")
}

/// Whether a text begins with Iometer's version, and has a heading of the test setup or of access specifications.
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

/// Whether a text is a TOML table with a key of fathom.
fn is_fathom(text: &str) -> bool {
    let (table, errors) = DeTable::parse_recoverable(text);
    errors.is_empty() && FATHOM_KEYS.iter().any(|key| table.get_ref().contains_key(*key))
}

/// Whether a text has only sections of keys, with or without values, and at least one key is in [`FIO_KEYS`]. Only comments and
/// includes may precede the first section.
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
        known |= FIO_KEYS.split(' ').any(|known| known == key);
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
fn each_tool_is_detected_by_content() {
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
        assert_eq!(detect_tool(text.as_bytes()), Some(tool), "{text}");
        assert_eq!(detect_tool(format!("\u{feff}{text}").as_bytes()), Some(tool), "{text}");
        let wide: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(detect_tool(&wide), Some(tool), "{text}");
    }
}

#[test]
fn other_files_have_no_tool() {
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
        assert_eq!(detect_tool(text.as_bytes()), None, "{text}");
    }
    assert_eq!(detect_tool(b"[a]\nrw=read\n\0"), None);
    assert_eq!(detect_tool(b"[a]\nrw=read\n\xff"), None);
    assert_eq!(detect_tool(&[0xff, 0xfe, 0x00, 0xd8]), None, "half of a pair");
    let long = format!("{FIO}{}", "# long\n".repeat(MAX_FILE_BYTES / 7));
    assert_eq!(detect_tool(long.as_bytes()), None);
}
