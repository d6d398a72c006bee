//! Values of keys that are words, names or short lists: `rw`, `cache`, `sharing`, `engine`, `batch`, paths, CPUs, NUMA
//! nodes and priorities. Each value has a parser, such as [`sharing`], and a formatter for the same text, such as
//! [`Sharing::to_flag`].
//!
//! The plan finds out which engines, CPUs and nodes exist.

use super::number::{any_of, count, decimal, quoted_excerpt, reject, size, time, whole, word, word_of};
use super::{EngineSpec, Rw};
use crate::job::{
    ALL_ERRORS, Arrivals, Batch, Cache, Content, Create, Every, Filling, Flow, IoPriority, Kind, Layout,
    MemoryNodes, OpPriority, Options, Sharing, Verify,
};
use crate::spec::number::{
    MAX_BATCH, MAX_BLOCK_BYTES, MAX_CPU, MAX_DEPTH, MAX_NAME, MAX_NODE, MAX_PATH, MAX_RUN, MAX_SPLIT,
    MAX_SYNCS, MAX_TARGETS, MAX_TIME_NS,
};

/// Seed of stamps. It is fixed, so that a later invocation of fathom can check the writes of an
/// earlier one.
const STAMPS_SEED: u64 = 0x6661_7468_6f6d_2076;
/// Maximum number of hex digits of a pattern.
const MAX_PATTERN: usize = 1024;

impl Rw {
    /// All values with the text that a user types, the same as in fio.
    pub const WORDS: [(&'static str, Self); 10] = [
        ("read", Self::Read),
        ("write", Self::Write),
        ("rw", Self::Rw),
        ("randread", Self::Randread),
        ("randwrite", Self::Randwrite),
        ("randrw", Self::Randrw),
        ("trim", Self::Trim),
        ("randtrim", Self::Randtrim),
        ("trimwrite", Self::Trimwrite),
        ("randtrimwrite", Self::Randtrimwrite),
    ];

    /// Returns the value of the key `rw` for this pattern, such as `randread`.
    pub fn word(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }

    /// Whether offsets are random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Randread | Self::Randwrite | Self::Randrw | Self::Randtrim | Self::Randtrimwrite)
    }

    /// Whether a write follows each trim.
    pub fn writes_after_trims(self) -> bool {
        matches!(self, Self::Trimwrite | Self::Randtrimwrite)
    }

    /// Whether directions are mixed.
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::Rw | Self::Randrw)
    }
}

impl EngineSpec {
    /// Formats the engine as typed: `io_uring:sqpoll=1`.
    pub fn to_flag(&self) -> String {
        if self.options.is_empty() {
            self.name.clone()
        } else {
            format!("{}:{}", self.name, format_options(&self.options))
        }
    }
}

/// Formats the options of an engine as typed: `iopoll,sqpoll=1`.
pub fn format_options(options: &Options) -> String {
    let one = |(name, value): (&String, &Option<u64>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    join_with_commas(options.iter().map(one))
}

/// Parses order and direction.
///
/// # Errors
/// Another word was typed. The message lists the valid ones.
pub fn rw(text: &str) -> Result<Rw, String> {
    word(text, &Rw::WORDS)
}

/// Parses a cache mode.
///
/// # Errors
/// Another word was typed. The message lists the valid ones.
pub fn cache(text: &str) -> Result<Cache, String> {
    word(text, &Cache::WORDS)
}

/// Parses the layout of a file for the workers of all hosts.
///
/// # Errors
/// What is wrong and what to type.
pub fn layout(text: &str) -> Result<Layout, String> {
    match text.trim() {
        "segmented" => Ok(Layout::Segmented),
        "strided" => Ok(Layout::Strided),
        other => size(other, 1, u64::MAX)
            .map(Layout::Blocks)
            .map_err(|_| reject(other, "is not a layout; type segmented, strided or a block size")),
    }
}

/// Parses how a missing file is created: its size and its content.
///
/// # Errors
/// What is wrong and what to type.
pub fn create(text: &str) -> Result<Create, String> {
    let (kept, unlink) = text.strip_suffix(UNLINK).map_or((text, false), |kept| (kept, true));
    let (bytes, with) = kept.split_once(',').unwrap_or((kept, ""));
    let filling = if with.is_empty() { Filling::Data } else { word(with, &Filling::WORDS)? };
    Ok(Create { bytes: size(bytes, 1, u64::MAX)?, filling, unlink })
}

/// Suffix for a file that is removed at the end.
const UNLINK: &str = ",unlink";

impl Create {
    /// Formats the size and the content of a file in the form that [`create`] parses.
    pub fn to_flag(self) -> String {
        format!("{},{}{}", self.bytes, self.filling.word(), if self.unlink { UNLINK } else { "" })
    }
}

/// Parses a share of the operations of concurrent streams: weight, group, and pause of a worker that is ahead.
///
/// # Errors
/// What is wrong and what to type.
pub fn flow(text: &str) -> Result<Flow, String> {
    let parts: Vec<&str> = text.split(',').take(4).collect();
    if parts.len() > 3 {
        return Err(reject(text, "has too many parts; type WEIGHT,GROUP,PAUSE, such as 3,0,100us"));
    }
    Ok(Flow {
        weight: count(parts.first().unwrap_or(&""), 1, MAX_WEIGHT)?,
        group: parts.get(1).map_or(Ok(0), |part| count(part, 0, u32::MAX))?,
        pause_ns: parts.get(2).map_or(Ok(0), |part| time(part, 0, MAX_TIME_NS))?,
    })
}

/// Maximum weight of a stream (`flow`) and of a target (`sharing`).
const MAX_WEIGHT: u32 = 1_000_000;

/// Parses the gaps between arrivals.
///
/// # Errors
/// What is wrong and what to type.
pub fn arrivals(text: &str) -> Result<Arrivals, String> {
    let known = any_of(&[POISSON, CONSTANT, "batch:8", "on-off:2ms/30ms"]);
    let wrong = || reject(text, &format!("is not a valid value; type {known}"));
    let typed = text.trim();
    match typed.split_once(':') {
        None if typed == POISSON => Ok(Arrivals::Poisson),
        None if typed == CONSTANT => Ok(Arrivals::Constant),
        Some(("batch", mean)) => {
            let mean = decimal(mean).filter(|mean| (1.0..=MAX_BATCH).contains(mean));
            mean.map(|mean| Arrivals::Batch { mean }).ok_or_else(|| {
                reject(
                    text,
                    "is not a batch; type the mean number of arrivals at once, 1 or more, such as batch:8",
                )
            })
        }
        Some(("on-off", times)) => {
            let (on, off) = times.split_once('/').ok_or_else(wrong)?;
            Ok(Arrivals::OnOff { on_ns: time(on, 1, MAX_TIME_NS)?, off_ns: time(off, 1, MAX_TIME_NS)? })
        }
        _ => Err(wrong()),
    }
}

/// Parses the number of writes before a sync call: a whole number, or a mean.
///
/// # Errors
/// What is wrong and what to type.
pub fn every(text: &str) -> Result<Every, String> {
    if !text.contains('.') {
        return count(text, 1, u32::MAX).map(Every::writes);
    }
    let mean = decimal(text).filter(|mean| (1.0 / MAX_SYNCS..=MAX_SYNCS).contains(mean));
    let parts = mean.map(|mean| (mean * MAX_SYNCS).round() as u32);
    let parts = parts.ok_or_else(|| {
        reject(text, "is not a valid number; type a number from 0.0001 to 10000, such as 8 or 2.9")
    })?;
    let common = greatest_common_divisor(parts, MAX_SYNCS as u32);
    Ok(Every { writes: parts / common, calls: MAX_SYNCS as u32 / common })
}

/// Returns the greatest common divisor; 1 if both numbers are 0.
fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

/// Parses the mean length of sequential runs, in operations.
///
/// # Errors
/// What is wrong and what to type.
pub fn mean_operations(text: &str) -> Result<f64, String> {
    let mean = decimal(text).filter(|mean| (1.0..=MAX_RUN).contains(mean));
    mean.ok_or_else(|| {
        reject(text, "is not a valid length; type the mean number of operations of a sequential run, 1 or more, such as 3.5")
    })
}

impl Arrivals {
    /// Formats the value in the form that [`arrivals`] parses.
    pub fn to_flag(self) -> String {
        match self {
            Self::Poisson => POISSON.into(),
            Self::Constant => CONSTANT.into(),
            Self::Batch { mean } => format!("batch:{mean}"),
            Self::OnOff { on_ns, off_ns } => format!("on-off:{on_ns}ns/{off_ns}ns"),
        }
    }
}

const POISSON: &str = "poisson";
const CONSTANT: &str = "constant";

/// Parses `true` and `false`, for job languages without booleans.
///
/// # Errors
/// Another word was typed. The message lists both valid ones.
pub fn switch(text: &str) -> Result<bool, String> {
    word(text, &[("true", true), ("false", false)])
}

/// Parses how operations are divided among targets.
///
/// # Errors
/// What is wrong and what to type.
pub fn sharing(text: &str) -> Result<Sharing, String> {
    let typed = text.trim();
    match typed.split_once(':') {
        None if typed == "each" => Ok(Sharing::Each),
        None if typed == "round-robin" => Ok(Sharing::RoundRobin),
        None if typed == "random" => Ok(Sharing::Random),
        // The number of operations in a row on each target, and the number of targets in a group.
        Some((order @ ("round-robin" | "random"), numbers)) => {
            let (operations, open) = numbers.split_once(':').unwrap_or((numbers, ""));
            let operations = count(operations, 1, u32::MAX)?;
            let open = if open.is_empty() { MAX_TARGETS as u32 } else { count(open, 1, MAX_TARGETS as u32)? };
            Ok(Sharing::Turns { drawn: order == "random", operations, open })
        }
        Some(("weighted", weights)) => {
            let weights: Vec<u32> = weights
                .split(',')
                .take(MAX_TARGETS + 1)
                .map(|w| count(w, 1, MAX_WEIGHT))
                .collect::<Result<_, _>>()?;
            if weights.len() > MAX_TARGETS {
                return Err(format!(
                    "there are too many weights; type {MAX_TARGETS} at most, one per target"
                ));
            }
            Ok(Sharing::Weighted(weights))
        }
        _ => {
            let known = any_of(&["each", "round-robin", "random", "round-robin:8", "weighted:3,1"]);
            Err(reject(text, &format!("is not a valid value; type {known}")))
        }
    }
}

impl Sharing {
    /// Formats the value in the form that [`sharing`] parses: `weighted:3,1`.
    pub fn to_flag(&self) -> String {
        match self {
            Self::Each => "each".into(),
            Self::RoundRobin => "round-robin".into(),
            Self::Random => "random".into(),
            Self::Weighted(weights) => {
                format!("weighted:{}", join_with_commas(weights.iter().map(u32::to_string)))
            }
            Self::Turns { drawn, operations, open } => {
                let order = if *drawn { "random" } else { "round-robin" };
                format!("{order}:{operations}:{open}")
            }
        }
    }
}

pub(super) fn join_with_commas(pieces: impl Iterator<Item = String>) -> String {
    pieces.collect::<Vec<_>>().join(",")
}

/// Parses an engine with its options.
///
/// # Errors
/// What is wrong and what to type.
pub fn engine(text: &str) -> Result<EngineSpec, String> {
    let (name, list) = text.trim().split_once(':').map_or((text.trim(), None), |(n, l)| (n, Some(l)));
    let wordy = |w: &str| {
        !w.is_empty()
            && w.len() <= MAX_NAME
            && w.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    if !wordy(name) {
        return Err(reject(text, "is not an engine; type a name, such as io_uring or io_uring:sqpoll=1"));
    }
    let mut options = Options::new();
    for piece in list.into_iter().flat_map(|l| l.split(',')) {
        let (option, number) = piece.split_once('=').map_or((piece, None), |(o, n)| (o, Some(n)));
        let option = option.trim();
        if !wordy(option) {
            return Err(reject(
                piece,
                &format!("is not an option; type options after a colon, such as {name}:a,b=1"),
            ));
        }
        let number = number.map(|n| whole(n, 0, u64::MAX)).transpose()?;
        if options.insert(option.into(), number).is_some() {
            return Err(format!("option {} is given twice; type it once", quoted_excerpt(option)));
        }
    }
    Ok(EngineSpec { name: name.into(), options })
}

/// Parses the number of operations submitted per call, and of completions waited for.
///
/// # Errors
/// What is wrong and what to type.
pub fn batch(text: &str) -> Result<Batch, String> {
    let (submit, complete) = text.split_once(',').unwrap_or((text, "1"));
    let number = |word: &str| {
        count(word, 1, MAX_DEPTH).map_err(|_| {
            reject(
                word,
                &format!("is not a batch; type one or two numbers from 1 to {MAX_DEPTH}, such as 32 or 32,8"),
            )
        })
    };
    Ok(Batch { submit: number(submit)?, complete: number(complete)? })
}

/// Parses the number of failed operations after which a worker gives up.
///
/// # Errors
/// What is wrong and what to type.
pub fn max_errors(text: &str) -> Result<u64, String> {
    if text == "all" { Ok(ALL_ERRORS) } else { count(text, 1, u32::MAX).map(u64::from) }
}

/// Formats a limit in the form that [`max_errors`] parses.
pub fn format_max_errors(errors: u64) -> String {
    if errors == ALL_ERRORS { "all".into() } else { errors.to_string() }
}

/// Parses a name for tables.
///
/// # Errors
/// What is wrong and what to type.
pub fn name(text: &str) -> Result<String, String> {
    let fits =
        !text.trim().is_empty() && text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control);
    if fits {
        return Ok(text.trim().into());
    }
    Err(reject(text, &format!("is not a name; type 1 to {MAX_NAME} printable characters")))
}

/// Parses the content for verification: `stamps` or `pattern:HEX`.
///
/// # Errors
/// What is wrong and what to type.
pub fn verify(text: &str) -> Result<Verify, String> {
    let content = match text.split_once(':') {
        None if text == "stamps" => Content::Stamps { seed: STAMPS_SEED },
        Some(("pattern", hex)) => Content::Pattern { bytes: hex_bytes(hex)?, offsets: Vec::new() },
        _ => {
            return Err(reject(text, "is not a kind of verification; type stamps or pattern:deadbeef"));
        }
    };
    Ok(Verify { content, checks: true, back: None, fatal: false })
}

impl Verify {
    /// Formats the value in the form that [`verify`] parses.
    pub fn to_flag(&self) -> String {
        match &self.content {
            Content::Stamps { .. } => "stamps".into(),
            Content::Pattern { bytes, .. } => {
                let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
                let hex = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
                format!("pattern:{}", hex.collect::<String>())
            }
        }
    }
}

fn hex_bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let fits =
        digits.is_ascii() && digits.len().is_multiple_of(2) && (2..=MAX_PATTERN).contains(&digits.len());
    let pairs = (0..digits.len() / 2).map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok());
    let bytes = if fits { pairs.collect::<Option<Vec<u8>>>() } else { None };
    bytes.ok_or_else(|| {
        reject(
            text,
            "is not a pattern; type up to 512 bytes with two hex digits each, such as pattern:deadbeef",
        )
    })
}

/// Parses a path: any text that the kernel accepts as one.
///
/// # Errors
/// What is wrong and what to type.
pub fn path(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > MAX_PATH || text.contains('\0') {
        return Err(reject(text, "is not a path; type the name of a file, directory or device"));
    }
    Ok(text.into())
}

/// Parses CPUs and adds them to a list: `0-3,8`.
///
/// # Errors
/// What is wrong and what to type.
pub fn cpus(list: &mut Vec<u32>, text: &str) -> Result<(), String> {
    for piece in text.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let number = |t: &str| {
            count(t, 0, MAX_CPU).map_err(|_| reject(t, "is not a CPU; type numbers of CPUs, such as 0-3,8"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(reject(piece, "runs backwards; type the smaller number first"));
        }
        for cpu in first..=last {
            if list.contains(&cpu) {
                return Err(format!("CPU {cpu} is given twice; type it once"));
            }
            list.push(cpu);
        }
    }
    Ok(())
}

/// Parses the NUMA nodes of memory: `bind:0-1`, `prefer:0`, `interleave:0-1`, `local`.
///
/// # Errors
/// What is wrong and what to type.
pub fn memory_nodes(text: &str) -> Result<MemoryNodes, String> {
    let number = |t: &str| {
        count(t, 0, MAX_NODE).map_err(|_| reject(t, "is not a NUMA node; type a number, such as 0"))
    };
    let list = |t: &str| -> Result<Vec<u32>, String> {
        let mut nodes = Vec::new();
        for piece in t.split(',') {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || nodes.iter().any(|n| (first..=last).contains(n)) {
                return Err(reject(t, "is not a list of NUMA nodes; type each once, such as 0-1,3"));
            }
            nodes.extend(first..=last);
        }
        Ok(nodes)
    };
    match text.split_once(':') {
        None if text == "local" => Ok(MemoryNodes::Local),
        Some(("bind", nodes)) => list(nodes).map(MemoryNodes::Bind),
        Some(("prefer", node)) => number(node).map(MemoryNodes::Prefer),
        Some(("interleave", nodes)) => list(nodes).map(MemoryNodes::Interleave),
        _ => Err(reject(text, "is not a policy; type bind:0-1, prefer:0, interleave:0-1 or local")),
    }
}

impl MemoryNodes {
    /// Formats the value in the form that [`memory_nodes`] parses.
    pub fn to_flag(&self) -> String {
        match self {
            Self::Local => "local".into(),
            Self::Bind(nodes) => format!("bind:{}", format_cpus(nodes)),
            Self::Prefer(node) => format!("prefer:{node}"),
            Self::Interleave(nodes) => format!("interleave:{}", format_cpus(nodes)),
        }
    }
}

/// Formats CPUs in the form that [`cpus`] parses, with consecutive numbers as a range: `0-3,8`.
pub fn format_cpus(cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|before, next| before.checked_add(1) == Some(*next));
    join_with_commas(ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        range => join_with_commas(range.iter().map(u32::to_string)),
    }))
}

/// Parses an I/O priority: `rt:0` to `rt:7`, `be:0` to `be:7`, `idle`.
///
/// # Errors
/// What is wrong and what to type.
pub fn io_priority(text: &str) -> Result<IoPriority, String> {
    let level = |level: &str| level.parse().ok().filter(|level: &u8| *level < 8 && text.len() == 4);
    let read = match text.split_once(':') {
        Some(("rt", number)) => level(number).map(IoPriority::Realtime),
        Some(("be", number)) => level(number).map(IoPriority::BestEffort),
        None if text == "idle" => Some(IoPriority::Idle),
        _ => None,
    };
    read.ok_or_else(|| {
        reject(text, "is not a priority; type rt:0 to rt:7, be:0 to be:7 or idle; 0 is the highest")
    })
}

impl IoPriority {
    /// Formats the value in the form that [`io_priority`] parses.
    pub fn to_flag(self) -> String {
        match self {
            Self::Realtime(level) => format!("rt:{level}"),
            Self::BestEffort(level) => format!("be:{level}"),
            Self::Idle => "idle".into(),
        }
    }
}

/// Parses a nice value: -20 to 19.
///
/// # Errors
/// What is wrong and what to type.
pub fn nice(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|n: &i32| (-20..20).contains(n) && *text == n.to_string());
    number.ok_or_else(|| reject(text, "is not a nice value; type -20 to 19; -20 is the highest priority"))
}

/// Parses shares of operations with their priorities.
///
/// # Errors
/// What is wrong and what to type.
pub fn op_priorities(text: &str) -> Result<Vec<OpPriority>, String> {
    let all: Vec<OpPriority> =
        text.split(',').take(MAX_SPLIT + 1).map(op_priority).collect::<Result<_, _>>()?;
    if all.len() > MAX_SPLIT {
        return Err(format!("there are too many shares; type {MAX_SPLIT} at most"));
    }
    check_op_priorities(&all)?;
    Ok(all)
}

/// Checks that shares of the same operations do not sum to more than 100 %.
///
/// # Errors
/// The shares that sum to more, and what to type.
pub fn check_op_priorities(all: &[OpPriority]) -> Result<(), String> {
    let most = |kind: Kind| {
        let percent_of = |bytes: Option<u32>| -> u32 {
            let same = all.iter().filter(|one| one.kind.is_none_or(|k| k == kind) && one.bytes == bytes);
            same.map(|one| u32::from(one.percent)).sum()
        };
        percent_of(None)
            + all.iter().filter_map(|one| one.bytes).map(|bytes| percent_of(Some(bytes))).max().unwrap_or(0)
    };
    if Kind::MOVING.into_iter().any(|kind| most(kind) > 100) {
        return Err("the shares of the same operations sum to more than 100 %; type smaller shares".into());
    }
    Ok(())
}

fn op_priority(text: &str) -> Result<OpPriority, String> {
    let wrong =
        || reject(text, "is not a share with a priority; type one such as 20%=rt:0 or read/4k/20%=be:7");
    let (which, priority) = text.split_once('=').ok_or_else(wrong)?;
    let priority = io_priority(priority.trim())?;
    let mut words: Vec<&str> = which.split('/').map(str::trim).collect();
    let percent = words.pop().and_then(|word| word.strip_suffix('%')).ok_or_else(wrong)?;
    let percent = percent.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(wrong)?;
    let kind = words.first().and_then(|word| Kind::MOVING.into_iter().find(|kind| kind.word() == *word));
    let bytes = match (kind, words.as_slice()) {
        (Some(_), [_]) | (None, []) => None,
        (Some(_), [_, text]) | (None, [text]) => Some(size(text, 1, MAX_BLOCK_BYTES)? as u32),
        _ => return Err(wrong()),
    };
    Ok(OpPriority { kind, bytes, percent, priority })
}

/// Formats the shares of operations with their priorities, in the form that [`op_priorities`]
/// parses.
pub fn format_op_priorities(all: &[OpPriority]) -> String {
    let one = |one: &OpPriority| {
        let kind = one.kind.map_or_else(String::new, |kind| format!("{}/", kind.word()));
        let bytes = one.bytes.map_or_else(String::new, |bytes| format!("{bytes}/"));
        format!("{kind}{bytes}{}%={}", one.percent, one.priority.to_flag())
    };
    all.iter().map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn words_are_parsed_from_their_formatted_form() {
    for (word, value) in Rw::WORDS {
        assert_eq!((rw(word), value.word()), (Ok(value), word));
    }
    for (word, value) in Cache::WORDS {
        assert_eq!((cache(word), value.word()), (Ok(value), word));
    }
    assert!(cache("warm").is_err_and(|e| e.contains("buffered, sync")));
    for word in ["poisson", "constant", "batch:3.5", "on-off:2000000ns/30000000ns"] {
        assert_eq!(arrivals(word).map(Arrivals::to_flag).as_deref(), Ok(word));
    }
    assert_eq!(arrivals("on-off:2ms/30ms"), arrivals("on-off:2000000ns/30000000ns"));
    for bad in ["", "batch", "batch:0.5", "batch:x", "on-off:2ms", "on-off:0/1ms", "often:1"] {
        assert!(arrivals(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert_eq!((every("8"), every("2.9")), (Ok(Every::writes(8)), Ok(Every { writes: 29, calls: 10 })));
    assert_eq!(
        (every("0.3").map(Every::format_count), every("2.0")),
        (Ok("0.3".into()), Ok(Every::writes(2)))
    );
    for bad in ["0", "0.0", "-1", "1e3", "x", "99999.5"] {
        assert!(every(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert_eq!((mean_operations("3.5"), mean_operations("0.5").is_err()), (Ok(3.5), true));
    for word in ["each", "round-robin", "random", "weighted:3,1", "weighted:7"] {
        assert_eq!(sharing(word).map(|s| s.to_flag()).as_deref(), Ok(word));
    }
}

#[test]
fn engines_take_options() {
    let spec = engine("io_uring:iopoll,sqpoll=1").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(spec.name, "io_uring");
    assert_eq!(spec.options, Options::from([("iopoll".into(), None), ("sqpoll".into(), Some(1))]));
    for bad in ["", ":x", "io_uring:", "io_uring:a,a", "io_uring:a=b", "a b"] {
        assert!(engine(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn lists_are_read_and_limited() {
    assert_eq!(flow("3"), Ok(Flow { weight: 3, group: 0, pause_ns: 0 }));
    assert_eq!(flow("3,2,100us"), Ok(Flow { weight: 3, group: 2, pause_ns: 100_000 }));
    assert!(
        ["", "0", "1,x", "1,2,3,4", "1,,1s"].iter().all(|bad| flow(bad).is_err_and(|e| e.contains("; type")))
    );
    assert_eq!(batch("32,8"), Ok(Batch { submit: 32, complete: 8 }));
    assert_eq!(batch("32"), Ok(Batch { submit: 32, complete: 1 }));
    assert!(batch("0").is_err() && batch("1,2,3").is_err());
    assert_eq!(sharing("weighted:3,1"), Ok(Sharing::Weighted(vec![3, 1])));
    let turns = Sharing::Turns { drawn: true, operations: 8, open: 2 };
    assert_eq!((sharing("random:8:2"), turns.to_flag().as_str()), (Ok(turns.clone()), "random:8:2"));
    assert!(sharing("round-robin:0").is_err() && sharing("round-robin:1:0").is_err());
    assert!(sharing("weighted").is_err() && sharing("weighted:0").is_err());
    assert!(name("a\u{1b}[2J").is_err() && name(" ").is_err() && path("a\0").is_err() && path("").is_err());
}

#[test]
fn placements_are_parsed_from_their_formatted_form() {
    for word in ["0", "0-3,8", "5,2-3", "3,2,1"] {
        let mut list = Vec::new();
        assert_eq!((cpus(&mut list, word), format_cpus(&list).as_str()), (Ok(()), word));
    }
    for word in ["local", "bind:0-1,4", "prefer:3", "interleave:0-1"] {
        assert_eq!(memory_nodes(word).map(|m| m.to_flag()).as_deref(), Ok(word));
    }
    for bad in
        ["", "local:0", "bind", "bind:", "bind:1-0", "bind:0,0", "prefer:0-1", "interleave:x", "bind:1024"]
    {
        assert!(memory_nodes(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert_eq!((format_cpus(&[u32::MAX, 0]), format_cpus(&[])), ("4294967295,0".into(), String::new()));
}

#[test]
fn cpus_are_lists_of_numbers_and_ranges() {
    let mut list = Vec::new();
    assert_eq!((cpus(&mut list, "0-3,8"), list.as_slice()), (Ok(()), [0, 1, 2, 3, 8].as_slice()));
    for bad in ["", "3-1", "a", "99999", "0-3,2", "1-"] {
        assert!(cpus(&mut Vec::new(), bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn priority_shares_are_parsed_from_their_formatted_form() {
    use crate::job::IoPriority;
    let all = op_priorities("read/4k/20%=rt:0,10%=be:7").unwrap_or_default();
    let [first, second] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((first.kind, first.bytes, first.percent), (Some(Kind::Read), Some(4096), 20));
    assert_eq!((second.kind, second.bytes, second.priority), (None, None, IoPriority::BestEffort(7)));
    assert!(
        first.is_of(Kind::Read, 4096) && !first.is_of(Kind::Read, 8192) && !first.is_of(Kind::Write, 4096)
    );
    assert!(second.is_of(Kind::Write, 1) && !second.is_of(Kind::Trim, 1));
    assert_eq!(format_op_priorities(&all), "read/4096/20%=rt:0,10%=be:7");
    assert_eq!(op_priorities(&format_op_priorities(&all)), Ok(all));
    for bad in ["", "20%", "20=rt:0", "0%=rt:0", "101%=rt:0", "trim/5%=rt:0", "4k/read/5%=rt:0", "5%=rt:9"] {
        assert!(op_priorities(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert!(op_priorities("60%=rt:0,read/4k/50%=be:7").is_err_and(|e| e.contains("100 %")));
    assert!(op_priorities("read/60%=rt:0,write/50%=be:7").is_ok());
}
