//! Names that other tools give to a key, and how their values translate to fathom's.

/// A tool whose option names many users know by heart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Options with one dash or two, their values after `=` or a space; the same names in its job files.
    Fio,
    /// Options with one dash, followed directly by their values.
    Diskspd,
    /// Names that several other tools and people use, with two dashes.
    Other,
}

/// A tool's name for a key.
#[derive(Debug)]
pub struct Foreign {
    /// Program, or group of programs, that uses the name.
    pub tool: Tool,
    /// The name in the tool, without dashes.
    pub name: &'static str,
    /// A value in the tool's syntax; empty without a value.
    pub example: &'static str,
    /// Converts the value.
    pub(super) to_fathom: ToFathom,
}

/// Converts a value of a tool to fathom's values; empty if the value means something else, or fathom has no equivalent.
type ToFathom = fn(&str) -> Vec<String>;

/// Creates the entry of an option of fio.
pub(super) const fn fio(name: &'static str, example: &'static str, to_fathom: ToFathom) -> Foreign {
    Foreign { tool: Tool::Fio, name, example, to_fathom }
}

/// Creates the entry of a name that several other tools use.
pub(super) const fn other(name: &'static str, example: &'static str, to_fathom: ToFathom) -> Foreign {
    Foreign { tool: Tool::Other, name, example, to_fathom }
}

/// Creates the entry of an option of DISKSPD.
pub(super) const fn diskspd(name: &'static str, example: &'static str, to_fathom: ToFathom) -> Foreign {
    Foreign { tool: Tool::Diskspd, name, example, to_fathom }
}

impl Tool {
    /// Returns the tool's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Diskspd => "DISKSPD",
            Self::Other => "other tools",
        }
    }
}

impl Foreign {
    /// Returns the tool's command line option with an example value.
    pub fn typed(&self) -> String {
        match (self.tool, self.example) {
            (Tool::Fio | Tool::Other, "") => format!("--{}", self.name),
            (Tool::Fio | Tool::Other, example) => format!("--{}={example}", self.name),
            (Tool::Diskspd, example) => format!("-{}{example}", self.name),
        }
    }
}

/// Returns the value unchanged.
pub(super) fn unchanged(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

/// Adds a unit to a number that has none.
fn with_default_unit(text: &str, unit: &str) -> Vec<String> {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    vec![if bare { format!("{text}{unit}") } else { text.to_owned() }]
}

/// Appends the unit `s` to a number without a unit.
pub(super) fn seconds(text: &str) -> Vec<String> {
    with_default_unit(text, "s")
}

/// Appends the unit `ms` to a number without a unit, because all pauses of DISKSPD are in milliseconds.
pub(super) fn milliseconds(text: &str) -> Vec<String> {
    with_default_unit(text, "ms")
}

/// Appends the unit `us` to a number without a unit.
pub(super) fn microseconds(text: &str) -> Vec<String> {
    with_default_unit(text, "us")
}

/// Converts a share of writes in percent to the share of reads.
pub(super) fn remainder_to_100(text: &str) -> Vec<String> {
    let share = text.trim().parse::<u8>().ok();
    share.and_then(|s| 100_u8.checked_sub(s)).map(|s| s.to_string()).into_iter().collect()
}

/// Returns `value` if the text is one of these words, otherwise nothing.
fn if_one_of(text: &str, words: &[&str], value: &str) -> Vec<String> {
    if words.contains(&text) { vec![value.to_owned()] } else { Vec::new() }
}

/// Returns `true` for a switch that is on, otherwise nothing.
pub(super) fn switch_on(text: &str) -> Vec<String> {
    if_one_of(text, &["", "1", "true"], "true")
}

/// Returns `word` for an option without a value, otherwise nothing.
pub(super) fn word_without_value(text: &str, word: &str) -> Vec<String> {
    if_one_of(text, &[""], word)
}

/// Converts the words of fio's `rw`, which has two words for a mix.
pub(super) fn fio_rw(text: &str) -> Vec<String> {
    unchanged(if text == "readwrite" { "rw" } else { text })
}

/// Splits paths at colons. A backslash escapes a colon in a name.
pub(super) fn fio_paths(text: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = c == '\\' && chars.peek() == Some(&':');
        match paths.last_mut() {
            Some(path) if c != ':' => path.extend(if escaped { chars.next() } else { Some(c) }),
            _ => paths.push(String::new()),
        }
    }
    paths
}

/// Converts fio's `random_distribution`.
pub(super) fn fio_distribution(text: &str) -> Vec<String> {
    if text == "random" {
        return unchanged("uniform");
    }
    let zones = text.strip_prefix("zoned:").or_else(|| text.strip_prefix("zoned_abs:"));
    zones.map_or_else(|| unchanged(text), colon_zones)
}

/// Converts zones separated by colons: `60/10:40/90`.
pub(super) fn colon_zones(text: &str) -> Vec<String> {
    vec![format!("zones:{}", text.replace(':', ","))]
}

/// Converts an engine of fio to the engine of fathom that makes the same calls.
pub(super) fn fio_engine(text: &str) -> Vec<String> {
    match text {
        "sync" => unchanged("rw"),
        "psync" => unchanged("sync"),
        "vsync" => unchanged("preadv"),
        "pvsync" | "pvsync2" => unchanged("vsync"),
        "falloc" => unchanged("fallocate"),
        "io_uring" | "libaio" | "posixaio" | "mmap" | "splice" | "ftruncate" | "null" => unchanged(text),
        _ => Vec::new(),
    }
}

/// Converts fio's `direct`. For `buffered`, which has the opposite meaning, the caller swaps the two words.
pub(super) fn fio_direct(text: &str, direct: &str, buffered: &str) -> Vec<String> {
    match text {
        "" | "1" => unchanged(direct),
        "0" => unchanged(buffered),
        _ => Vec::new(),
    }
}

/// Converts fio's `sync`.
pub(super) fn fio_sync(text: &str) -> Vec<String> {
    match text {
        "1" | "sync" => unchanged("sync"),
        "dsync" => unchanged("dsync"),
        "0" | "none" => unchanged("buffered"),
        _ => Vec::new(),
    }
}

/// Converts the letters of DISKSPD's `-S`: `u` unbuffered, `b` buffered, `w` write-through, `h` for `uw`, `m` mapped.
pub(super) fn diskspd_cache(text: &str) -> Vec<String> {
    match text {
        "" | "u" => unchanged("direct"),
        "h" | "uw" | "wu" => unchanged("direct-dsync"),
        "b" => unchanged("buffered"),
        "w" | "bw" | "wb" => unchanged("dsync"),
        "m" => unchanged("mmap"),
        _ => Vec::new(),
    }
}

/// Converts DISKSPD's `-g` from bytes per millisecond to bytes per second. Returns nothing for a
/// value with the suffix `i`, which limits operations instead.
pub(super) fn per_millisecond(text: &str) -> Vec<String> {
    let per_second = text.parse::<u64>().ok().and_then(|bytes| bytes.checked_mul(1000));
    per_second.map(|bytes| bytes.to_string()).into_iter().collect()
}
