//! What other tools call a key, and how they write its value.
//!
//! For: the columns of the table of keys that say so. Not for: finding a name in it ([`super::counterpart`]), nor for reading whole
//! files or command lines of other tools.

/// A tool whose names people have in their fingers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Options with one dash or two, their values behind `=` or a space; the same names in its job files.
    Fio,
    /// Options of one dash, their values right behind them.
    Diskspd,
    /// Names that several other tools and people use, with two dashes.
    Other,
}

/// What a tool calls a key.
#[derive(Debug)]
pub struct Foreign {
    /// Which one has the name.
    pub tool: Tool,
    /// Its name there, without dashes.
    pub name: &'static str,
    /// A value as it is written there; empty where there is none.
    pub example: &'static str,
    /// From a value there to the values here; none where it means something else, or fathom has no such thing.
    pub(super) here: fn(&str) -> Vec<String>,
}

/// An option of fio's.
pub(super) const fn fio(name: &'static str, example: &'static str, here: fn(&str) -> Vec<String>) -> Foreign {
    Foreign { tool: Tool::Fio, name, example, here }
}

/// A name that several other tools use.
pub(super) const fn other(
    name: &'static str,
    example: &'static str,
    here: fn(&str) -> Vec<String>,
) -> Foreign {
    Foreign { tool: Tool::Other, name, example, here }
}

/// An option of DISKSPD's.
pub(super) const fn diskspd(
    name: &'static str,
    example: &'static str,
    here: fn(&str) -> Vec<String>,
) -> Foreign {
    Foreign { tool: Tool::Diskspd, name, example, here }
}

impl Tool {
    /// What it is called.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Diskspd => "DISKSPD",
            Self::Other => "other tools",
        }
    }
}

impl Foreign {
    /// A value as it is typed there on a command line, and here as an example.
    pub fn typed(&self) -> String {
        match (self.tool, self.example) {
            (Tool::Fio | Tool::Other, "") => format!("--{}", self.name),
            (Tool::Fio | Tool::Other, example) => format!("--{}={example}", self.name),
            (Tool::Diskspd, example) => format!("-{}{example}", self.name),
        }
    }
}

/// As it is.
pub(super) fn same(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

/// A number of some unit, unless it names one.
fn unit(text: &str, unit: &str) -> Vec<String> {
    let bare = text.bytes().all(|b| b.is_ascii_digit());
    vec![if bare { format!("{text}{unit}") } else { text.to_owned() }]
}

/// Seconds unless another unit is said.
pub(super) fn seconds(text: &str) -> Vec<String> {
    unit(text, "s")
}

/// Milliseconds, as all pauses of DISKSPD.
pub(super) fn milliseconds(text: &str) -> Vec<String> {
    unit(text, "ms")
}

/// Microseconds unless another unit is said.
pub(super) fn microseconds(text: &str) -> Vec<String> {
    unit(text, "us")
}

/// What is left of a hundred: the reads of a share of writes.
pub(super) fn rest(text: &str) -> Vec<String> {
    let share = text.trim().parse::<u8>().ok();
    share.and_then(|s| 100_u8.checked_sub(s)).map(|s| s.to_string()).into_iter().collect()
}

/// A value that stands for any of some words; nothing for others.
fn if_one_of(text: &str, words: &[&str], value: &str) -> Vec<String> {
    if words.contains(&text) { vec![value.to_owned()] } else { Vec::new() }
}

/// A switch that is on.
pub(super) fn on(text: &str) -> Vec<String> {
    if_one_of(text, &["", "1", "true"], "true")
}

/// A word for an option that has no value.
pub(super) fn alone(text: &str, word: &str) -> Vec<String> {
    if_one_of(text, &[""], word)
}

/// The words of fio's `rw`, which has two for a mix.
pub(super) fn fio_rw(text: &str) -> Vec<String> {
    same(if text == "readwrite" { "rw" } else { text })
}

/// Paths between colons; a colon of a name has a backslash before it.
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

/// Laws of fio's `random_distribution`.
pub(super) fn fio_law(text: &str) -> Vec<String> {
    if text == "random" {
        return same("uniform");
    }
    let zones = text.strip_prefix("zoned:").or_else(|| text.strip_prefix("zoned_abs:"));
    zones.map_or_else(|| same(text), colon_zones)
}

/// Shares of operations in zones, with colons between them.
pub(super) fn colon_zones(text: &str) -> Vec<String> {
    vec![format!("zones:{}", text.replace(':', ","))]
}

/// fio's engines by what they call.
pub(super) fn fio_engine(text: &str) -> Vec<String> {
    match text {
        "sync" => same("rw"),
        "psync" => same("sync"),
        "vsync" => same("preadv"),
        "pvsync" | "pvsync2" => same("vsync"),
        "falloc" => same("fallocate"),
        "io_uring" | "libaio" | "posixaio" | "mmap" | "ftruncate" | "null" => same(text),
        _ => Vec::new(),
    }
}

/// fio's `direct`; `buffered` is its opposite.
pub(super) fn fio_direct(text: &str, direct: &str, buffered: &str) -> Vec<String> {
    match text {
        "" | "1" => same(direct),
        "0" => same(buffered),
        _ => Vec::new(),
    }
}

/// fio's `sync`.
pub(super) fn fio_sync(text: &str) -> Vec<String> {
    match text {
        "1" | "sync" => same("sync"),
        "dsync" => same("dsync"),
        "0" | "none" => same("buffered"),
        _ => Vec::new(),
    }
}

/// Letters of DISKSPD's `-S`: without buffering, written through, both, or mapped.
pub(super) fn diskspd_cache(text: &str) -> Vec<String> {
    match text {
        "" | "u" => same("direct"),
        "h" | "uw" | "wu" => same("direct-dsync"),
        "b" => same("buffered"),
        "w" | "bw" | "wb" => same("dsync"),
        "m" => same("mmap"),
        _ => Vec::new(),
    }
}

/// DISKSPD's `-g`: bytes per millisecond, so the same with the unit that a second makes of them; `i` behind it means operations.
pub(super) fn per_millisecond(text: &str) -> Vec<String> {
    let per_second = text.parse::<u64>().ok().and_then(|bytes| bytes.checked_mul(1000));
    per_second.map(|bytes| bytes.to_string()).into_iter().collect()
}
