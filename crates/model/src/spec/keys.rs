//! The table of keys: every setting of a workload once, with its name, help, parser, and its names in other tools.
//!
//! Flags, job files and their documentation are made from this table. The name of a key is its flag without the dashes.
//! Fixed defaults are those of the fields in `Stream` and `Line`. The plan fills in a default that depends on other
//! settings, and the key's help repeats it.
//!
//! Another tool's name for a key is an error, for which [`Counterpart`] suggests the key and value to type instead. These
//! names are no aliases of keys, because some of them mean something slightly different.

use super::foreign::{self, Foreign, Tool, diskspd, fio, other, seconds, unchanged};
use super::number::{count, percent, rate, size, time, time_limit, whole, word, word_of};
use super::{JobSpec, PhaseSpec, StreamSpec};
use crate::errno::{by_direction, format_ignored_errors, ignored_errors};
use crate::job::{Advice, Clones, Line, Order, Positions, Stream};
use crate::spec;
use crate::spec::number::{
    MAX_ATTEMPTS, MAX_BLOCK_BYTES, MAX_DEPTH, MAX_INTERLEAVED, MAX_LINES, MAX_NODE, MAX_RUNS, MAX_SHIFT,
    MAX_TARGETS, MAX_TIME_NS, MAX_WORKERS, MIN_TIME_NS,
};
use crate::spec::{conditions, operations, values};
use crate::units::{show_bytes, show_ns};
use Command::{Api, Bench, Layers, Limit, Run, RunCapture, RunFile, Sweep};
use std::sync::LazyLock;

/// Tests whether a stream has the setting that a key needs, with the message if the setting is missing.
pub(super) type Need = (fn(&StreamSpec) -> bool, &'static str);

/// A setting.
#[derive(Debug)]
pub struct Key {
    /// Name of the key: `limit-iops`.
    pub name: &'static str,
    /// Heading under which help lists the key.
    pub group: Group,
    /// Placeholder of the value in help; empty for a switch.
    pub value: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Commands that have the key as a flag.
    pub taken: &'static [Command],
    /// Commands with another default than the one in `about`, and that default.
    pub defaults: &'static [(Command, &'static str)],
    /// Names in other tools.
    pub elsewhere: &'static [Foreign],
    /// What the key configures (the job, each phase or each stream), and the parser of its value.
    pub set: Set,
    /// Tests whether the key has an effect in a stream, with the message if it has none; `None` if
    /// it always has an effect.
    pub(super) needs: Option<Need>,
}

/// A command that takes keys as flags. `fathom verify` has its own parsers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `fathom run`.
    Run,
    /// `fathom run` with a job file, and `fathom recipe`: keys for repeats, seed, time and preconditioning, which the
    /// user may set in addition to the file.
    RunFile,
    /// `fathom run` with a capture: keys that its requests do not determine.
    RunCapture,
    /// `fathom bench`: keys other than order, sizes and depth, which the profile sets for each test.
    Bench,
    /// `fathom layers`: keys with the same value at every layer.
    Layers,
    /// `fathom limit`: keys of one stream other than rate, pauses and stop rules. The command varies the rate.
    Limit,
    /// `fathom sweep`: keys with the same value for every cell; the others are its axes.
    Sweep,
    /// `fathom api`: keys with the same value for every interface.
    Api,
}

impl Command {
    /// All commands with their names.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("run", Self::Run),
        ("recipe", Self::RunFile),
        ("bench", Self::Bench),
        ("layers", Self::Layers),
        ("limit", Self::Limit),
        ("sweep", Self::Sweep),
        ("api", Self::Api),
    ];

    /// Returns the command of this name; `None` if no command that takes keys has it.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, command)| command)
    }
}

/// What a key configures (the job, each phase or each stream), and the parser of its value.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// Fills a field of the job.
    Job(fn(&mut JobSpec, &str) -> Result<(), String>),
    /// Fills a field of each phase.
    Phase(fn(&mut PhaseSpec, &str) -> Result<(), String>),
    /// Fills a field of each stream.
    Stream(Field),
    /// Fills a list of each stream, with any number of values.
    List(Field),
}

/// The field of a stream that a key fills.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Parses a value into the field; if the field is a list, adds the value.
    parse: fn(&mut StreamSpec, &str) -> Result<(), String>,
    /// Copies the field from the second stream into the first one.
    copy: fn(&mut StreamSpec, &StreamSpec),
    /// Whether two streams have different values.
    differs: fn(&StreamSpec, &StreamSpec) -> bool,
    /// Formats the value for the list of settings in a plan; `None` if a plan lists it under another name, or if there
    /// is no value.
    show: fn(&StreamSpec) -> Option<String>,
    /// Whether a user can also type the default. [`StreamSpec::given`] then has to record that the
    /// key was typed.
    has_default: bool,
}

/// A field that always has a value: without the key, the default of the key.
macro_rules! value {
    ($($at:ident).+, $text:ident => $parse:expr) => { value!($($at).+, true, $text => $parse, |_spec| None) };
    ($($at:ident).+, $text:ident => $parse:expr, $value:ident => $show:expr) => {
        value!($($at).+, true, $text => $parse, |spec| { let $value = &spec.$($at).+; Some(($show).into()) })
    };
    ($($at:ident).+, $default:expr, $text:ident => $parse:expr, |$spec:ident| $show:expr) => {
        Set::Stream(field!($($at).+, $default, |spec, $text| { spec.$($at).+ = $parse?; Ok(()) }, |$spec| $show))
    };
}

/// A field that is `None` unless the key is given.
macro_rules! option {
    ($($at:ident).+, $text:ident => $parse:expr) => { value!($($at).+, false, $text => $parse.map(Some), |_spec| None) };
    ($($at:ident).+, $text:ident => $parse:expr, $value:ident => $show:expr) => {
        value!($($at).+, false, $text => $parse.map(Some), |spec| spec.$($at).+.as_ref().map(|$value| ($show).into()))
    };
}

/// A field that is true or false. Plans list it only if it is `shown`.
macro_rules! switch {
    ($($at:ident).+) => { switch!($($at).+, |_spec| None) };
    ($($at:ident).+, shown) => { switch!($($at).+, |spec| Some(spec.$($at).+.to_string())) };
    ($($at:ident).+, |$spec:ident| $show:expr) => {
        Set::Stream(field!(
            $($at).+,
            true,
            |spec, text| { spec.$($at).+ = values::switch(text)?; Ok(()) },
            |$spec| $show
        ))
    };
}

/// A field with any number of values.
macro_rules! list {
    ($($at:ident).+, $spec:ident, $text:ident => $add:expr) => {
        Set::List(field!($($at).+, false, |$spec, $text| $add, |_spec| None))
    };
    ($($at:ident).+, $spec:ident, $text:ident => $add:expr, $value:ident => $show:expr) => {
        Set::List(field!($($at).+, false, |$spec, $text| $add, |spec| { let $value = &spec.$($at).+; Some($show) }))
    };
}

/// A field of the replay. The first key of a replay creates the replay's request. The plan lists these fields in its
/// part about the replay.
macro_rules! replay {
    ($($at:ident).+, $text:ident => $parse:expr) => {
        Set::Stream(Field {
            parse: |spec, $text| { spec.replay.get_or_insert_default().$($at).+ = $parse?; Ok(()) },
            copy: |to, from| to.replay.clone_from(&from.replay),
            differs: |a, b| {
                let field = |spec: &StreamSpec| spec.replay.clone().unwrap_or_default().$($at).+;
                field(a) != field(b)
            },
            show: |_| None,
            has_default: false,
        })
    };
}

macro_rules! field {
    ($($at:ident).+, $has_default:expr, $parse:expr, $show:expr) => {
        Field {
            parse: $parse,
            copy: |to, from| to.$($at).+.clone_from(&from.$($at).+),
            differs: |a, b| a.$($at).+ != b.$($at).+,
            show: $show,
            has_default: $has_default,
        }
    };
}

/// Headings of help, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Properties of the work: direction, order, sizes, data, cache mode.
    What,
    /// Targets and their tested bytes.
    Where,
    /// Duration, number of runs, and rules that end them.
    HowLong,
    /// Depth, rate, and threads.
    HowDeep,
    /// Content and destination of the output, and the exit code.
    Output,
    /// What may be overwritten, and which conditions must hold first.
    Safety,
}

impl Group {
    /// All groups, in the order of help.
    pub const ALL: [Self; 6] =
        [Self::What, Self::Where, Self::HowLong, Self::HowDeep, Self::Output, Self::Safety];

    /// Returns the title of the group in help.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::What => "What",
            Self::Where => "Where",
            Self::HowLong => "How long",
            Self::HowDeep => "How deep",
            Self::Output => "Output",
            Self::Safety => "Safety",
        }
    }
}

/// Returns the keys of a command, in the order of help.
pub fn taken_by(command: Command) -> impl Iterator<Item = &'static Key> {
    let groups = Group::ALL.into_iter();
    groups.flat_map(move |g| KEYS.iter().filter(move |k| k.group == g && k.taken.contains(&command)))
}

/// Returns the key of this name; `None` if there is none.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// Key of the stream's targets; on a command line they need no flag.
pub const TARGET: &str = "target";
/// Key of the lines of an access specification.
pub const LINE: &str = "line";
/// Key of a table of turns; only in job files.
pub const TURN: &str = "turn";
/// Key of a number of operations: the limit of a stream, or the length of a turn.
pub const OPS: &str = "ops";
/// Key of the job's name; in a job file, each stream may have a name too.
pub const NAME: &str = "name";

const fn key(
    name: &'static str,
    group: Group,
    value: &'static str,
    about: &'static str,
    taken: &'static [Command],
    set: Set,
) -> Key {
    Key { name, group, value, about, taken, defaults: &[], elsewhere: &[], set, needs: None }
}

/// All keys, in the order of help.
pub const KEYS: &[Key] = &[
    key(
        "rw",
        Group::What,
        "WORD",
        "Order and direction: read, write, rw, randread, randwrite, randrw, trim, randtrim, trimwrite or randtrimwrite, where a write of the same bytes follows each trim [default: randread]",
        &[Run, Layers, Limit, Api],
        option!(rw, t => values::rw(t)),
    )
    .defaults(&[(Layers, "randread, randwrite"), (Api, "read, randread, write, randwrite")])
    .elsewhere(&[fio("readwrite", "randread", foreign::fio_rw), diskspd("r", "", |t| foreign::word_without_value(t, "randread"))]),
    key(
        "mix",
        Group::What,
        "READ%",
        "Share of reads for rw and randrw, or READ/WRITE/TRIM as in 60/30/10 [default: 50]",
        &[Run, Layers, Limit],
        option!(mix, t => operations::mix(t)),
    )
    .elsewhere(&[fio("rwmixread", "70", unchanged), fio("rwmixwrite", "30", foreign::remainder_to_100), diskspd("w", "30", foreign::remainder_to_100)]),
    key(
        "bs",
        Group::What,
        "SIZE",
        "Bytes per operation: 4k, 4k-64k, 4k:60,64k:40 or read=4k,write=8k [default: 4k random, 1m sequential]",
        &[Run, Layers, Limit],
        option!(bs, t => operations::per_kind(t)),
    )
    .defaults(&[(Layers, "8k")])
    .elsewhere(&[fio("blocksize", "4k", unchanged), fio("bssplit", "4k/60:64k/40", unchanged), fio("bsrange", "4k-64k", unchanged), fio("blocksize_range", "4k-64k", unchanged), diskspd("b", "4K", unchanged), other("block-size", "4k", unchanged), other("block", "4k", unchanged)]),
    key(
        "depth",
        Group::HowDeep,
        "N",
        "Operations in flight per worker [default: 32 random, 8 sequential]",
        &[Run, RunCapture, Layers, Limit, Api],
        option!(depth, t => count(t, 1, MAX_DEPTH)),
    )
    .defaults(&[(Api, "8, for interfaces that can have several")])
    .elsewhere(&[fio("iodepth", "32", unchanged), diskspd("o", "32", unchanged), diskspd("O", "32", unchanged), other("qd", "32", unchanged), other("queue-depth", "32", unchanged), other("queuedepth", "32", unchanged)]),
    key(
        "size",
        Group::Where,
        "SIZE",
        "Size of the tested region, such as 4g [default: 1g for a file made in a directory, else the whole target]",
        &[Run, Bench, Layers, Limit, Sweep, Api],
        option!(size, t => size(t, 1, u64::MAX)),
    )
    .defaults(&[(Layers, "1g, or the whole target if it is smaller"), (Api, "2g, or less if the target or the free space is smaller")])
    .elsewhere(&[fio("filesize", "1g", unchanged), diskspd("c", "1G", unchanged), diskspd("f", "1G", unchanged)]),
    key(
        "offset",
        Group::Where,
        "SIZE",
        "First byte of the tested region [default: 0]",
        &[Run, Limit],
        value!(resolved.access.offset_bytes, t => size(t, 0, u64::MAX), v => show_bytes(*v)),
    )
    .elsewhere(&[diskspd("B", "1G", unchanged)]),
    key(
        TARGET,
        Group::Where,
        "PATH",
        "Directory, file or block device, or several [default: those of the command line]",
        &[],
        list!(target, s, t => add_target(s, t)),
    )
    .elsewhere(&[fio("filename", "/dev/sdb", foreign::fio_paths), fio("directory", "/mnt", foreign::fio_paths), other("file", "data", unchanged), other("path", "/mnt", unchanged), other("device", "/dev/sdb", unchanged)]),
    key(
        "create",
        Group::Where,
        "SIZE[,WITH]",
        "Create a missing target as a file of this size, and keep it: 1g has data to read; 1g,blocks (allocated, never written), 1g,hole, 1g,nothing (empty) and 1g,reserved (empty, with space allocated) are for jobs that only write; append ,unlink to remove the file at the end",
        &[Run],
        option!(create, t => values::create(t), v => v.to_flag()),
    ),
    key(
        "sharing",
        Group::Where,
        "WORD",
        "How several targets share the operations: each (its own depth), round-robin, random, round-robin:8:2 (8 operations in a row on each of 2 targets; the next target replaces a finished one) or weighted:3,1 [default: each]",
        &[Run],
        value!(resolved.sharing, t => values::sharing(t), v => v.to_flag()),
    ),
    key(
        "shared",
        Group::Where,
        "WORD",
        "One file for all hosts, with a part for each worker: segmented (one contiguous part each), strided (transfers belong to the workers in turn) or a SIZE (blocks of this size belong to the workers in turn); in a directory the first host creates the file",
        &[Run, Limit],
        option!(shared, t => values::layout(t), v => v.describe()),
    ),
    key(
        "own",
        Group::Where,
        "",
        "A test file for each worker, in a directory [default: one for all workers of a host]",
        &[Run, Limit],
        switch!(own, shown),
    ),
    key(
        "shift-hosts",
        Group::Where,
        "N",
        "Use the part or the test file of the host N ranks later, so that no host reads what it wrote itself [default: 0]",
        &[Run, Limit],
        value!(resolved.shift_hosts, t => count(t, 1, MAX_SHIFT), v => v.to_string()),
    ),
    key(
        LINE,
        Group::What,
        "KEY=VALUE,...",
        "Line of an Iometer access specification, instead of rw, mix, bs and related keys; may be repeated",
        &[Run, Sweep],
        list!(resolved.access.lines, s, t => add_line(s, Line::parse(t)?), v => format!("{} lines", v.len())),
    ),
    key(
        "random",
        Group::What,
        "WORD",
        "How random offsets are drawn: uniform, once, mixed:RANDOM%, zipf:THETA, pareto:H, normal:DEVIATION% or zones:OPS%/SIZE,... [default: uniform]",
        &[Run, Limit, Sweep],
        option!(random, t => operations::random(t), v => operations::show_random(v)),
    )
    .elsewhere(&[fio("random_distribution", "zipf:1.1", foreign::fio_distribution), fio("percentage_random", "30", |t| vec![format!("mixed:{t}")]), fio("norandommap", "1", |t| if foreign::switch_on(t).is_empty() { Vec::new() } else { unchanged("uniform") }), diskspd("rs", "30", |t| vec![format!("mixed:{t}")]), diskspd("rdpct", "60/10:40/90", foreign::colon_zones), diskspd("rdabs", "60/1G:40/9G", foreign::colon_zones)]),
    key(
        "clustered",
        Group::What,
        "",
        "Place the frequent blocks of zipf and pareto next to each other, at the start of the region [default: scattered over the region]",
        &[Run, Limit],
        switch!(line.clustered, shown),
    )
    .needs(|s| matches!(s.random, Some(Order::Zipf(_) | Order::Pareto(_))), "{clustered} places the frequent blocks of a skewed order; type {random zipf:1.1} too, or leave {clustered} out"),
    key(
        "align",
        Group::What,
        "SIZE",
        "Offsets are multiples of this [default: the smallest size of an operation]",
        &[Run, Limit, Sweep],
        value!(line.align_bytes, t => size(t, 1, MAX_BLOCK_BYTES), v => show_bytes(*v)),
    )
    .elsewhere(&[fio("blockalign", "4k", unchanged), fio("ba", "4k", unchanged), diskspd("r", "4k", unchanged)]),
    key(
        "stride",
        Group::What,
        "SIZE",
        "Distance from the start of one sequential operation to the start of the next",
        &[Run, Limit],
        value!(steps.stride_bytes, t => size(t, 1, u64::MAX)),
    )
    .elsewhere(&[diskspd("s", "64k", unchanged)]),
    key(
        "hole",
        Group::What,
        "SIZE",
        "Gap in bytes after each sequential operation",
        &[Run, Limit],
        value!(steps.hole_bytes, t => size(t, 1, u64::MAX)),
    ),
    key(
        "backwards",
        Group::What,
        "",
        "Sequential in descending order of offsets",
        &[Run, Limit],
        switch!(steps.backwards),
    ),
    key(
        "start",
        Group::What,
        "WORD",
        "Where the workers of a sequential stream begin: spread (each at its own part of the region), same (all at the first byte), every:SIZE (each SIZE after the previous one) or interlocked (all continue from one shared position) [default: spread]",
        &[Run, Limit],
        value!(steps.start, t => operations::start(t)),
    )
    .elsewhere(&[fio("offset_increment", "1m", |t| vec![format!("every:{t}")]), diskspd("T", "1m", |t| vec![format!("every:{t}")]), diskspd("si", "", |t| foreign::word_without_value(t, "interlocked"))]),
    key(
        "positions",
        Group::What,
        "WORD",
        "Where an operation of a sequential mix continues: shared (after the last operation), own (after the last one of its own direction) or own-restart (as own, but all directions restart as soon as one reaches the end) [default: shared]",
        &[Run, Limit],
        value!(line.positions, t => word(t, &Positions::WORDS), v => word_of(&Positions::WORDS, v)),
    ),
    key(
        "consecutive",
        Group::What,
        "N",
        "Number of sequential operations from each random offset [default: 1]",
        &[Run, Limit],
        value!(line.consecutive, t => count(t, 1, u32::MAX), v => v.to_string()),
    ),
    key(
        "run-length",
        Group::What,
        "N",
        "Mean length of sequential runs from random offsets, such as 3.5 operations; the lengths are random (geometric)",
        &[Run, Limit],
        option!(line.run_length, t => values::mean_operations(t), v => v.to_string()),
    ),
    key(
        "interleaved",
        Group::What,
        "N",
        "Number of sequential runs at once; each operation continues one of them, drawn at random. Each run begins in its own part of the region; with --run-length or --random mixed, at a random offset [default: 1]",
        &[Run, Limit],
        value!(line.interleaved, t => count(t, 1, MAX_INTERLEAVED), v => v.to_string()),
    ),
    key(
        "times",
        Group::What,
        "N",
        "Operations at each offset before the next one [default: 1]",
        &[Run, Limit],
        value!(line.times, t => count(t, 1, u32::MAX), v => v.to_string()),
    ),
    key(
        "mix-by-run",
        Group::What,
        "",
        "Draw the direction of randrw only at random offsets; operations that continue from there keep the direction; requires random mixed:RANDOM% or run-length",
        &[Run, Limit],
        switch!(line.mix_by_run, shown),
    ),
    key(
        "strided",
        Group::What,
        "SIZE[,RANGE[,SKIP]]",
        "Work in one zone of the region at a time, and continue in the next one after SIZE bytes; a zone has RANGE bytes, and the SKIP bytes after it are not used, as in 64m,256m,2g [default: RANGE as SIZE, SKIP 0]",
        &[Run, Limit],
        option!(resolved.access.strided, t => operations::strided(t), v => v.describe()),
    )
    .elsewhere(&[fio("zonesize", "256m", unchanged)]),
    key(
        "replay",
        Group::What,
        "FILE",
        "Replay the operations of a file that `fathom capture` wrote, or of another tool's trace: fio's iolog, blktrace, blkparse, MSR Cambridge. An iolog without a target uses the file that it names",
        &[Run],
        replay!(file, t => values::path(t)),
    )
    .elsewhere(&[fio("read_iolog", "x.log", unchanged)]),
    key(
        "pace",
        Group::What,
        "WORD",
        "Replay: when operations are submitted: dependent (each at its recorded distance from the last completed operation of its task), timed (at the recorded times, as an open loop) or fast (as soon as the queue has room) [default: dependent, or timed if the file has no completions]",
        &[Run, RunCapture],
        replay!(pace, t => spec::replay_pace(t).map(Some)),
    )
    .elsewhere(&[fio("replay_no_stall", "1", |t| unchanged(if t == "1" { "fast" } else { "timed" }))]),
    key(
        "speed",
        Group::What,
        "NUMBER",
        "Replay: speed factor, such as 2 for twice as fast [default: 1]",
        &[Run, RunCapture],
        replay!(speed, t => spec::replay_speed(t).map(Some)),
    ),
    key(
        "replay-scale",
        Group::What,
        "N",
        "Replay: divide offsets by N, in whole sectors of 512 bytes",
        &[Run, RunCapture],
        replay!(changes.divide, t => whole(t, 1, spec::MAX_REPLAY_DIVISOR)),
    )
    .elsewhere(&[fio("replay_scale", "2", unchanged)]),
    key(
        "replay-align",
        Group::What,
        "SIZE",
        "Replay: round offsets down to multiples of SIZE, a power of two; also round sizes up if the file has requests (blktrace), but not if it has operations of programs (iolog)",
        &[Run, RunCapture],
        replay!(changes.align_bytes, t => spec::replay_align(t)),
    )
    .elsewhere(&[fio("replay_align", "4096", unchanged)]),
    key(
        "replay-skip",
        Group::What,
        "KIND,...",
        "Replay: leave out operations of these kinds: read, write, trim, sync",
        &[Run, RunCapture],
        replay!(changes.skip, t => spec::kinds(t)),
    )
    .elsewhere(&[fio("replay_skip", "write,trim", unchanged)]),
    key(
        "rate",
        Group::HowDeep,
        "IOPS",
        "Open loop: operations that arrive per second, regardless of how fast the target is; latency counts from the arrival",
        &[Run],
        option!(rate, t => rate(t), v => format!("{v} per second, open loop")),
    ),
    key(
        "arrivals",
        Group::HowDeep,
        "WORD",
        "Gaps between arrivals of an open loop: poisson, constant, batch:MEAN (MEAN at once on average, at random times), or on-off:ON/OFF (random arrivals for ON, then none for OFF; both are mean times, as in 2ms/30ms; one worker) [default: poisson]",
        &[Run, Limit],
        option!(arrivals, t => values::arrivals(t)),
    )
    .needs(|s| s.rate.is_some(), "{arrivals} is for an open loop; type {rate} too, or leave {arrivals} out")
    .elsewhere(&[fio("rate_process", "poisson", |t| unchanged(if t == "linear" { "constant" } else { t }))]),
    key(
        "limit-iops",
        Group::HowDeep,
        "IOPS|KIND=IOPS,...",
        "Closed loop with at most this many operations per second; or a limit for single directions, as in write=200, while the others run at full speed",
        &[Run],
        option!(limit_iops, t => conditions::limit_iops(t), v => v.to_flag(|n| n.to_string())),
    )
    .elsewhere(&[fio("rate_iops", "1000", unchanged), diskspd("g", "1000i", |t| t.strip_suffix('i').map(str::to_owned).into_iter().collect())]),
    key(
        "limit-bandwidth",
        Group::HowDeep,
        "SIZE|KIND=SIZE,...",
        "Closed loop with at most this many bytes per second, such as 200m; or a limit for single directions, as in read=100m,write=20m",
        &[Run],
        option!(limit_bandwidth, t => conditions::limit_bandwidth(t), v => v.to_flag(|n| format!("{} per second", show_bytes(n as u64)))),
    )
    .elsewhere(&[diskspd("g", "1000", foreign::per_millisecond)]),
    key(
        "flow",
        Group::HowDeep,
        "WEIGHT[,GROUP[,PAUSE]]",
        "Share of the operations among the streams of the same group that run at once: a worker that is ahead of its share waits for the others, and checks again after PAUSE, as in 3,0,100us [default: GROUP 0, PAUSE 0]",
        &[Run],
        option!(resolved.flow, t => values::flow(t), v => v.describe()),
    ),
    key(
        "serialize-overlap",
        Group::HowDeep,
        "",
        "Never have two operations of a worker in flight on the same bytes: the later one waits for the earlier one",
        &[Run],
        switch!(resolved.serialize_overlap, shown),
    )
    .elsewhere(&[fio("serialize_overlap", "1", |t| if t == "1" { unchanged("true") } else { Vec::new() })]),
    key(
        "think",
        Group::HowDeep,
        "DURATION|LAW",
        "Pause between the end of one burst and the start of the next: a duration such as 100us, or random: exponential:MEAN, lognormal:MEDIAN/MEAN or quantiles:%/DURATION,... from 0 to 100 %, linear between them, as in quantiles:0/2us,50/38us,100/9ms",
        &[Run],
        option!(think, t => conditions::think(t), v => v.describe()),
    )
    .elsewhere(&[fio("thinktime", "100", foreign::microseconds), diskspd("j", "5", foreign::milliseconds)]),
    key(
        "period",
        Group::HowDeep,
        "DURATION|LAW",
        "Time from the start of one burst to the start of the next; takes the same values as think. A late burst begins as soon as the previous one has completed, and later ones catch up",
        &[Run],
        option!(period, t => conditions::think(t), v => v.describe()),
    ),
    key(
        "burst",
        Group::HowDeep,
        "N",
        "Operations in a burst; requires think or period [default: 1]",
        &[Run],
        option!(burst, t => count(t, 1, u32::MAX)),
    )
    .needs(|s| s.think.is_some() || s.period.is_some() || !s.resolved.access.lines.is_empty(), "{burst} is the number of operations after a pause; type {think} too, or leave {burst} out")
    .elsewhere(&[fio("thinktime_blocks", "4", unchanged), diskspd("i", "4", unchanged)]),
    key(
        "burst-time",
        Group::HowDeep,
        "DURATION",
        "Duration of a burst, which ends earlier when it reaches the number of operations of --burst; requires think",
        &[Run],
        option!(burst_time, t => time(t, 1, MAX_TIME_NS), v => show_ns(*v as f64)),
    )
    .needs(|s| s.think.is_some(), "{burst-time} needs a pause; type {think} too, or leave {burst-time} out")
    .elsewhere(&[fio("thinktime_iotime", "9", seconds)]),
    key(
        "think-spin",
        Group::HowDeep,
        "DURATION",
        "Keep the CPU busy for this long at the start of each pause, instead of sleeping",
        &[Run],
        value!(resolved.think_spin_ns, t => time(t, 1, MAX_TIME_NS), v => show_ns(*v as f64)),
    )
    .needs(|s| s.think.is_some(), "{think-spin} needs a pause; type {think} too, or leave {think-spin} out")
    .elsewhere(&[fio("thinktime_spin", "100", foreign::microseconds)]),
    key(
        "delay",
        Group::HowDeep,
        "DURATION",
        "Time from the phase's start to the first operation [default: 0]",
        &[Run],
        value!(resolved.delay_ns, t => time(t, 0, MAX_TIME_NS), v => show_ns(*v as f64)),
    )
    .elsewhere(&[fio("startdelay", "5", seconds)]),
    key(
        "batch",
        Group::HowDeep,
        "SUBMIT[,COMPLETE]",
        "Operations that one call submits, and completions that a worker waits for when the queue is full [default: 1,1]",
        &[Run, RunCapture, Bench, Limit],
        option!(batch, t => values::batch(t)),
    )
    .elsewhere(&[fio("iodepth_batch", "8", unchanged), fio("iodepth_batch_submit", "8", unchanged)]),
    key(
        "ops",
        Group::HowLong,
        "N",
        "Stop after this many operations of all workers, unless the time ends first",
        &[Run],
        option!(resolved.limit.operations, t => whole(t, 1, u64::MAX)),
    )
    .elsewhere(&[fio("number_ios", "1000", unchanged)]),
    key(
        "bytes",
        Group::HowLong,
        "SIZE",
        "Stop after this many bytes of all workers, unless the time ends first",
        &[Run],
        option!(resolved.limit.bytes, t => size(t, 1, u64::MAX)),
    )
    .elsewhere(&[fio("io_size", "10g", unchanged), fio("io_limit", "10g", unchanged)]),
    key(
        "stop-after",
        Group::HowLong,
        "DURATION",
        "End the stream this long after its first operation, even if other streams of its phase continue",
        &[Run],
        option!(resolved.limit.time_ns, t => time(t, MIN_TIME_NS, MAX_TIME_NS), v => show_ns(*v as f64)),
    ),
    key(
        "passes",
        Group::HowLong,
        "N",
        "Stop after this many passes over the region, unless the time ends first",
        &[Run],
        option!(passes, t => count(t, 1, u32::MAX), v => v.to_string()),
    ),
    key(
        "latency-target",
        Group::HowDeep,
        "RULE",
        "Find the largest depth up to --depth that meets a latency target: 500us:99.9%:5s means that 99.9 % of the operations in 5 s take at most 500 us. The figures come from one more window at that depth; append :run to keep varying the depth and count all windows",
        &[Run],
        option!(resolved.latency_target, t => conditions::latency_target(t), v => v.to_flag()),
    )
    .elsewhere(&[fio("latency_target", "500", |t| unchanged(&format!("{t}us:100%:5s")))]),
    key(
        "steady-state",
        Group::HowLong,
        "RULE",
        "End as soon as the rate is steady. iops:10%:60s: all values of the last 60 s are within 10 % of their mean. iops_slope:0.5%:60s: a line through them rises or falls by less than 0.5 % per second. Also with bw and lat. Two more fields are the time to ignore at the start and the time per value, as in iops:10%:60s:30s:5s (without them 0s and 1s). The check stops as soon as one worker of the stream has ended",
        &[Run],
        option!(resolved.steady, t => conditions::steady(t), v => v.to_flag()),
    )
    .elsewhere(&[
        fio("steadystate", "iops:10%", |t| unchanged(&format!("{t}:60s"))),
        fio("ss", "iops:10%", |t| unchanged(&format!("{t}:60s"))),
    ]),
    key(
        "min-rate",
        Group::HowLong,
        "RULE",
        "End with an error as soon as a direction is slower than this over a second: iops:1000 or bw:10m; for each direction iops:read=1000,write=500; over another time bw:10m:5s. The limit is for all workers of a stream together, so the check stops as soon as one of them has ended",
        &[Run],
        option!(resolved.min_rate, t => conditions::min_rate(t), v => v.to_flag()),
    )
    .elsewhere(&[fio("rate_min", "10m", |t| unchanged(&format!("bw:{t}"))), fio("rate_iops_min", "1000", |t| unchanged(&format!("iops:{t}")))]),
    key(
        "max-latency",
        Group::HowLong,
        "DURATION",
        "End with an error as soon as a read, a write or a trim takes longer than this",
        &[Run, RunCapture],
        option!(resolved.max_latency_ns, t => time_limit(t), v => show_ns(*v as f64)),
    )
    .elsewhere(&[fio("max_latency", "10000", foreign::microseconds)]),
    key(
        "max-errors",
        Group::HowLong,
        "N|all",
        "Failed operations after which a worker gives up and the run ends; all: failures never end the run [default: 1000]",
        &[Run, RunCapture],
        value!(resolved.max_errors, t => values::max_errors(t), v => values::format_max_errors(*v)),
    ),
    key(
        "ignore-errors",
        Group::HowLong,
        "[KIND:]ERROR,...",
        "Errors that do not count towards --max-errors, such as EIO, write:ENOSPC, a number, or all; fathom still reports them",
        &[Run],
        value!(resolved.ignored_errors, t => ignored_errors(t), v => format_ignored_errors(v)),
    )
    .elsewhere(&[fio("ignore_error", "EIO,ENOSPC", |t| unchanged(&by_direction(t)))]),
    key(
        "ends-others",
        Group::HowLong,
        "",
        "End the other streams of the phase as soon as this one has ended",
        &[Run],
        switch!(resolved.ends_others, shown),
    )
    .elsewhere(&[fio("exitall", "1", |t| if t == "1" { unchanged("true") } else { Vec::new() })]),
    key(
        "fsync",
        Group::What,
        "N",
        "fsync after this many writes; a number with a fraction, such as 2.9, is the mean",
        &[Run, Limit],
        option!(fsync, t => values::every(t)),
    ),
    key(
        "fdatasync",
        Group::What,
        "N",
        "fdatasync after this many writes; a number with a fraction, such as 2.9, is the mean",
        &[Run, Limit],
        option!(fdatasync, t => values::every(t)),
    ),
    key(
        "sync-file-range",
        Group::What,
        "N",
        "sync_file_range after every N writes (N may be a mean such as 2.5): starts writeback and waits for it, but gives no durability after a crash",
        &[Run, Limit],
        option!(sync_file_range, t => values::every(t)),
    )
    .elsewhere(&[fio("sync_file_range", "write:8", |t| t.rsplit(':').next().map(str::to_owned).into_iter().collect())]),
    key(
        "drain",
        Group::What,
        "",
        "Before each fsync, fdatasync or sync_file_range, wait for the writes in flight; later writes wait until the call returns",
        &[Run, Limit],
        switch!(drain),
    )
    .needs(|s| s.fsync.or(s.fdatasync).or(s.sync_file_range).is_some(), "{drain} needs a sync call; type {fsync} or {fdatasync} too, or leave {drain} out"),
    key(
        "compress",
        Group::What,
        "%",
        "Share of the written data that a compressor can save [default: 0]",
        &[Run, RunCapture, Limit, Sweep],
        option!(compress, t => percent(t)),
    )
    .elsewhere(&[fio("buffer_compress_percentage", "50", unchanged)]),
    key(
        "dedup",
        Group::What,
        "%",
        "Share of the written blocks that are copies of others [default: 0]",
        &[Run, RunCapture, Limit, Sweep],
        option!(dedup, t => percent(t)),
    )
    .elsewhere(&[fio("dedupe_percentage", "30", unchanged)]),
    key(
        "dedup-set",
        Group::What,
        "SIZE",
        "Take copies from the first SIZE bytes that each worker writes, such as 64m [default: from its last 64 blocks]",
        &[Run, RunCapture, Limit],
        option!(dedup_set, t => size(t, 4096, u64::MAX)),
    )
    .needs(|s| s.dedup.is_some(), "{dedup-set} is the source of copies; type {dedup 30} too, or leave {dedup-set} out"),
    key(
        "dedup-shared",
        Group::What,
        "",
        "Take copies from the sets of all workers with this setting, not only from a worker's own",
        &[Run],
        switch!(dedup_shared),
    )
    .needs(|s| s.dedup_set.is_some(), "{dedup-shared} selects the sets for copies; type {dedup-set 64m} too, or leave {dedup-shared} out"),
    key(
        "zeros",
        Group::What,
        "",
        "Write zeros",
        &[Run, RunCapture, Limit],
        switch!(zeros),
    )
    .elsewhere(&[fio("zero_buffers", "1", foreign::switch_on), diskspd("Z", "", foreign::switch_on)]),
    key(
        "counting",
        Group::What,
        "",
        "Write the bytes 0 to 255 repeatedly: as compressible as zeros, but not zeros",
        &[Run, Limit],
        switch!(counting),
    ),
    key(
        "data",
        Group::What,
        "FILE",
        "Write the bytes of this file (at most its first 256 MiB) repeatedly",
        &[Run, RunCapture, Limit],
        option!(data, t => values::path(t)),
    )
    .elsewhere(&[diskspd("Z", "1M,data.bin", |t| t.split_once(',').map(|(_, file)| file.to_owned()).into_iter().collect())]),
    key(
        "workers",
        Group::HowDeep,
        "N",
        "Threads [default: 1]",
        &[Run, Bench, Layers, Limit],
        value!(resolved.workers, t => count(t, 1, MAX_WORKERS)),
    )
    .defaults(&[(Bench, "as in the profile; for ior-easy and ior-hard 1 on each host")])
    .elsewhere(&[fio("numjobs", "4", unchanged), diskspd("t", "4", unchanged), diskspd("F", "4", unchanged), other("threads", "4", unchanged), other("jobs", "4", unchanged)]),
    key(
        "clones",
        Group::HowDeep,
        "WORD",
        "Each worker does the full amount of work instead of a share, with its own pass over the blocks: same (all on the same targets) or own (each on its own part of the targets)",
        &[Run],
        option!(resolved.clones, t => word(t, &Clones::WORDS), v => v.word()),
    ),
    key(
        "cpus",
        Group::HowDeep,
        "LIST",
        "CPUs that the workers may use, such as 0-3,8 [default: all]",
        &[Run, RunCapture, Limit, Sweep],
        list!(resolved.place.cpus, s, t => values::cpus(&mut s.resolved.place.cpus, t), v => values::format_cpus(v)),
    )
    .elsewhere(&[fio("cpus_allowed", "0-3", unchanged), diskspd("a", "0,1", unchanged)]),
    key(
        "pin",
        Group::HowDeep,
        "",
        "Run each worker on a single one of the CPUs, in turn",
        &[Run, RunCapture, Limit, Sweep],
        switch!(resolved.place.split),
    )
    .needs(|s| !s.resolved.place.cpus.is_empty() || s.resolved.place.node.is_some(), "{pin} needs a list of CPUs; type {cpus 0-3} or {node 0} too")
    .elsewhere(&[fio("cpus_allowed_policy", "split", |t| if t == "split" { unchanged("true") } else { Vec::new() })]),
    key(
        "node",
        Group::HowDeep,
        "N",
        "NUMA node of the memory, and of the threads if no CPUs are given",
        &[Run, RunCapture, Limit, Sweep],
        option!(resolved.place.node, t => count(t, 0, MAX_NODE)),
    )
    .elsewhere(&[fio("numa_cpu_nodes", "0", unchanged)]),
    key(
        "memory-nodes",
        Group::HowDeep,
        "POLICY",
        "NUMA nodes of the workers' memory: bind:0-1 (only these), prefer:0 (this one first), interleave:0-1 (in turn), local (that of the CPU) [default: --node]",
        &[Run, RunCapture, Limit, Sweep],
        option!(resolved.place.memory, t => values::memory_nodes(t), v => v.to_flag()),
    )
    .elsewhere(&[fio("numa_mem_policy", "bind:0", unchanged)]),
    key(
        "nice",
        Group::HowDeep,
        "N",
        "Nice value of the workers, -20 to 19",
        &[Run, RunCapture, Limit, Sweep],
        option!(resolved.place.nice, t => values::nice(t), v => v.to_string()),
    ),
    key(
        "io-priority",
        Group::HowDeep,
        "CLASS:N",
        "Priority of the operations for schedulers that have one (bfq, mq-deadline): rt:0 to rt:7, be:0 to be:7, idle",
        &[Run, RunCapture, Limit, Sweep],
        option!(resolved.place.io_priority, t => values::io_priority(t), v => v.to_flag()),
    ),
    key(
        "op-priority",
        Group::HowDeep,
        "[KIND/][SIZE/]PERCENT%=PRIORITY,...",
        "I/O priority of a share of the operations, of one kind or size if given, as in 20%=rt:0 or read/4k/20%=rt:0,write/10%=be:7; for the engines io_uring and libaio",
        &[Run],
        value!(resolved.op_priorities, t => values::op_priorities(t), v => values::format_op_priorities(v)),
    ),
    key(
        NAME,
        Group::Output,
        "TEXT",
        "Name in tables",
        &[Run, Limit],
        Set::Job(|j, t| put(&mut j.name, values::name(t))),
    ),
    key(
        "time",
        Group::HowLong,
        "DURATION",
        "Length of each measured window, such as 3s or 500ms",
        &[Run, RunCapture, RunFile, Bench, Layers, Limit, Sweep, Api],
        Set::Phase(|p, t| put(&mut p.time, time(t, MIN_TIME_NS, MAX_TIME_NS))),
    )
    .elsewhere(&[fio("runtime", "60", seconds), diskspd("d", "60", seconds), other("duration", "60", seconds), other("seconds", "60", seconds)]),
    key(
        "warmup",
        Group::HowLong,
        "DURATION",
        "Time before each window in which operations run and do not count",
        &[Run, Bench, Layers, Limit, Sweep],
        Set::Phase(|p, t| put(&mut p.warmup, time(t, 0, MAX_TIME_NS))),
    )
    .elsewhere(&[fio("ramp_time", "5", seconds), diskspd("W", "5", seconds)]),
    key(
        "cooldown",
        Group::HowLong,
        "DURATION",
        "Time after each window in which operations still run and do not count [default: 0]",
        &[Run, Limit],
        Set::Phase(|p, t| put(&mut p.cooldown, time(t, 0, MAX_TIME_NS))),
    )
    .elsewhere(&[diskspd("C", "3", seconds)]),
    key(
        "runs",
        Group::HowLong,
        "N",
        "Number of measured runs of each workload [default: 5]",
        &[Run, RunCapture, RunFile, Bench, Layers, Limit, Sweep, Api],
        Set::Job(|j, t| put(&mut j.runs, count(t, 1, MAX_RUNS))),
    )
    .defaults(&[(Limit, "3, or more if the runs disagree"), (Sweep, "3 with --exhaustive; else as often as the search asks"), (Api, "by --budget: 3 to 10")])
    .elsewhere(&[fio("loops", "3", unchanged), other("repeat", "3", unchanged), other("iterations", "3", unchanged)]),
    key(
        "precision",
        Group::HowLong,
        "%",
        "Repeat each workload, at least --runs times, until the 95 % interval of its rate is within plus or minus this percentage, such as 2.5%",
        &[Run, RunCapture, RunFile, Bench],
        Set::Job(|j, t| put(&mut j.precision, conditions::precision(t))),
    ),
    key(
        "until",
        Group::HowLong,
        "WORD",
        "steady: measure round after round without a rest until the rate drifts by less than 5 % in five rounds (99 % confidence); only the last five rounds count",
        &[Run, RunCapture, RunFile, Bench],
        Set::Job(|j, t| put(&mut j.until, conditions::until(t))),
    ),
    key(
        "max-runs",
        Group::HowLong,
        "N",
        "Maximum number of runs with precision, until or settle [default: twice --runs with precision, 25 until steady, ten times --runs with settle]",
        &[Run, RunCapture, RunFile, Bench],
        Set::Job(|j, t| put(&mut j.max_runs, count(t, 1, MAX_RUNS))),
    ),
    key(
        "attempts",
        Group::HowLong,
        "N",
        "Maximum number of attempts at a run that other load disturbs; 1 repeats none [default: 3, or 1 if the machine was busy before the first run]",
        &[Run, RunCapture, RunFile, Bench, Limit, Sweep, Layers, Api],
        Set::Job(|j, t| put(&mut j.attempts, count(t, 1, MAX_ATTEMPTS))),
    ),
    key(
        "fail-if",
        Group::Output,
        "CONDITION",
        "Fail if a number is beyond a limit: p99>10ms, sync.p99>10ms, iops<20000 or mb/s<90; several are separated by commas, and 'NAME: p99>1ms' is for one result. The report begins with PASS, FAIL, INVALID or INCONCLUSIVE. A percentile needs 8 runs",
        &[Run, RunCapture, RunFile, Bench, Limit, Sweep, Layers, Api],
        Set::Job(|j, t| put(&mut j.fail_if, conditions::conditions(t))),
    ),
    key(
        "settle",
        Group::HowLong,
        "",
        "If fail-if or fail-if-slower is undecided, add as many runs as should decide the condition, but only once; the 95 % confidence holds for both decisions together",
        &[Run, RunCapture, RunFile, Bench],
        Set::Job(|j, t| put(&mut j.settle, values::switch(t))),
    ),
    key(
        "seed",
        Group::What,
        "N",
        "Seed of offsets, data and the order of runs [default: from the clock]",
        &[Run, RunCapture, RunFile, Bench, Layers, Limit, Sweep, Api],
        Set::Job(|j, t| put(&mut j.seed, whole(t, 0, u64::MAX))),
    )
    .elsewhere(&[fio("randseed", "42", unchanged), diskspd("z", "42", unchanged)]),
    key(
        "precondition",
        Group::What,
        "",
        "Before the first run write the tested region twice from end to end, then run the workload until its rate settles (at most 25 rounds)",
        &[Run, RunFile, Bench],
        Set::Job(|j, t| put(&mut j.precondition, values::switch(t))),
    ),
    key(
        "verify",
        Group::What,
        "CONTENT",
        "Write data that can be verified, and verify what reads return: stamps (different in each block) or pattern:HEX",
        &[Run],
        option!(resolved.verify, t => values::verify(t), v => v.to_flag()),
    ),
    key(
        "read-back",
        Group::What,
        "N",
        "Read and check the blocks that the N-th stream of the previous phase wrote, each as often as it was written; this key combines only with name and op-log-interval",
        &[],
        option!(read_back, t => count(t, 1, u32::MAX)),
    ),
    key(
        "cold",
        Group::What,
        "",
        "Evict every target from the page cache before each run, even an existing file that is used through the page cache",
        &[Run, RunCapture],
        Set::Job(|j, t| put(&mut j.cold, values::switch(t))),
    ),
    key(
        "evict-each-pass",
        Group::What,
        "",
        "Evict a file from the page cache before the second and each further pass over it in a run, as fio does with invalidate=1; requires --cache buffered",
        &[Run],
        switch!(resolved.evicts_each_pass, shown),
    ),
    key(
        "op-log",
        Group::Output,
        "FILE",
        "Write a line for every operation of the measured windows to a file, as CSV: when it completed, its latency, offset and size",
        &[Run, RunCapture],
        Set::Job(|j, t| put(&mut j.op_log, values::path(t))),
    )
    .elsewhere(&[fio("write_lat_log", "FILE", unchanged)]),
    key(
        "op-log-interval",
        Group::Output,
        "DURATION",
        "Write a line to the operation log for every interval of this length instead of every operation: operations, bytes, mean and largest latency of each worker [default: 0]",
        &[Run, RunCapture],
        option!(resolved.log_interval_ns, t => time(t, 0, MAX_TIME_NS)),
    )
    .elsewhere(&[fio("log_avg_msec", "500", foreign::milliseconds)]),
    key(
        "engine",
        Group::What,
        "NAME[:OPTIONS]",
        "I/O interface, with its options as in io_uring:sqpoll=1 [default: io_uring]",
        &[Run, RunCapture, Bench, Layers, Limit],
        option!(engine, t => values::engine(t)),
    )
    .elsewhere(&[fio("ioengine", "libaio", foreign::fio_engine)]),
    key(
        "cache",
        Group::What,
        "WORD",
        "How the target is opened: direct, buffered, sync, dsync, direct-sync, direct-dsync or mmap [default: direct]",
        &[Run, RunCapture, Bench, Limit],
        option!(cache, t => values::cache(t)),
    )
    .elsewhere(&[fio("direct", "1", |t| foreign::fio_direct(t, "direct", "buffered")), fio("buffered", "1", |t| foreign::fio_direct(t, "buffered", "direct")), fio("sync", "1", foreign::fio_sync), diskspd("S", "h", foreign::diskspd_cache)]),
    key(
        "advice",
        Group::What,
        "WORD",
        "Hint to the kernel about the order of accesses through the page cache, which decides how far it reads ahead: sequential or random [default: no hint]",
        &[Run, Limit, Sweep],
        option!(resolved.advice, t => word(t, &Advice::WORDS), v => v.word()),
    )
    .elsewhere(&[fio("fadvise_hint", "sequential", unchanged)]),
];

fn put<T>(slot: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *slot = Some(value?);
    Ok(())
}

fn add_target(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    if stream.target.len() == MAX_TARGETS {
        return Err(format!("there are too many targets; type {MAX_TARGETS} at most"));
    }
    stream.target.push(values::path(text)?);
    Ok(())
}

/// Adds a line to a stream.
///
/// # Errors
/// If the stream already has the maximum number of lines.
pub fn add_line(stream: &mut StreamSpec, line: Line) -> Result<(), String> {
    if stream.resolved.access.lines.len() == MAX_LINES {
        return Err(format!("there are too many lines; type {MAX_LINES} at most"));
    }
    stream.resolved.access.lines.push(line);
    Ok(())
}

impl Key {
    const fn defaults(mut self, defaults: &'static [(Command, &'static str)]) -> Self {
        self.defaults = defaults;
        self
    }

    const fn elsewhere(mut self, names: &'static [Foreign]) -> Self {
        self.elsewhere = names;
        self
    }

    const fn needs(mut self, is_met: fn(&StreamSpec) -> bool, message: &'static str) -> Self {
        self.needs = Some((is_met, message));
        self
    }

    /// Returns the help of the key in a command, with the command's default.
    pub fn about_in(&self, command: Command) -> String {
        let own = self.defaults.iter().find(|(by, _)| *by == command);
        own.map_or_else(
            || self.about.to_owned(),
            |(_, default)| {
                let about = self.about.split(" [default: ").next().unwrap_or(self.about);
                format!("{about} [default: {default}]")
            },
        )
    }

    /// Whether the key is a switch, which has no value.
    pub fn is_switch(&self) -> bool {
        self.value.is_empty()
    }

    /// Whether the key may be given several times.
    pub fn is_list(&self) -> bool {
        matches!(self.set, Set::List(_))
    }

    /// Returns the field of a stream that the key fills; `None` for a key of the job or its phases.
    fn field(&self) -> Option<&Field> {
        match &self.set {
            Set::Stream(field) | Set::List(field) => Some(field),
            Set::Job(_) | Set::Phase(_) => None,
        }
    }

    /// Parses a value into the stream's field; if the field is a list, adds the value. A key of the job or its phases
    /// changes nothing.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn parse_into(&self, stream: &mut StreamSpec, text: &str) -> Result<(), String> {
        let Some(field) = self.field() else { return Ok(()) };
        if field.has_default {
            stream.given.insert(self.name);
        }
        (field.parse)(stream, text)
    }

    /// Sets the field of a stream to its default.
    pub fn reset(&self, stream: &mut StreamSpec) {
        if let Some(field) = self.field() {
            stream.given.remove(self.name);
            (field.copy)(stream, &UNCHANGED);
        }
    }

    /// Whether the value in a stream differs from the default.
    pub fn is_set(&self, stream: &StreamSpec) -> bool {
        self.field().is_some_and(|field| (field.differs)(stream, &UNCHANGED))
    }

    /// Formats the value in a stream for the list of settings in a plan; `None` if the key was not
    /// given and has its default value, and for keys that do not belong to a stream.
    pub fn shown(&self, stream: &StreamSpec) -> Option<String> {
        let is_given = stream.given.contains(self.name) || self.is_set(stream);
        self.field().filter(|_| is_given).and_then(|field| (field.show)(stream))
    }

    /// Parses values into a job of one phase with one stream, as on a command line.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn parse_into_job<'t>(
        &self,
        job: &mut JobSpec,
        values: impl IntoIterator<Item = &'t str>,
    ) -> Result<(), String> {
        if job.phases.is_empty() {
            job.phases.push(PhaseSpec::default());
        }
        let Some(phase) = job.phases.first_mut() else { return Ok(()) };
        if phase.streams.is_empty() {
            phase.streams.push(StreamSpec::default());
        }
        for text in values {
            match self.set {
                Set::Job(set) => set(job, text)?,
                Set::Phase(set) => job.phases.iter_mut().try_for_each(|p| set(p, text))?,
                Set::Stream(_) | Set::List(_) => {
                    job.streams_mut().try_for_each(|stream| self.parse_into(stream, text))?;
                }
            }
        }
        Ok(())
    }
}

/// A stream for which no key was given.
static UNCHANGED: LazyLock<StreamSpec> = LazyLock::new(StreamSpec::default);

impl StreamSpec {
    /// Whether the key was given, or its value differs from the default. For a switch, whether it is on: a switch that is
    /// typed off has no effect, so `drain = false` is allowed with turns.
    pub fn has(&self, name: &str) -> bool {
        let Some(key) = find(name) else { return name == TURN && !self.turns.is_empty() };
        key.is_set(self) || (!key.is_switch() && self.given.contains(name))
    }

    /// Returns [`Key::shown`] of the key with this name; `None` also if there is no such key.
    pub fn shown(&self, name: &str) -> Option<String> {
        find(name)?.shown(self)
    }

    /// Parses the value of a key of streams.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        find(name).map_or(Ok(()), |key| key.parse_into(self, text))
    }

    /// Records the key as typed, even if its value will be the default. Returns the settings, where the caller sets the
    /// value.
    pub fn give(&mut self, name: &'static str) -> &mut Stream {
        self.given.insert(name);
        &mut self.resolved
    }

    /// Sets these keys to their defaults.
    pub fn reset(&mut self, names: &[&str]) {
        names.iter().filter_map(|name| find(name)).for_each(|key| key.reset(self));
    }
}

#[test]
fn a_default_counts_as_typed_only_if_its_key_was_given() {
    let mut stream = StreamSpec::default();
    (stream.resolved.delay_ns, stream.resolved.workers) = (0, 1);
    assert!(["delay", "workers"].iter().all(|key| !stream.has(key) && stream.shown(key).is_none()));
    assert_eq!(stream.set("delay", "0s"), Ok(()));
    stream.give("workers").workers = 1;
    assert!(stream.has("delay") && stream.shown("delay").is_some() && stream.has("workers"));
    stream.reset(&["delay", "workers"]);
    assert_eq!(stream, StreamSpec::default());
    stream.turns = vec![super::TurnSpec::default(), super::TurnSpec::default()];
    assert_eq!(stream.set("drain", "false"), Ok(()));
    assert!(!stream.has("drain") && stream.check().iter().all(|p| !p.keys.contains(&"drain")));
}

/// Returns a valid value for a key, other than the key's default.
#[cfg(test)]
pub(super) fn example(key: &Key) -> &'static str {
    match (key.name, key.value) {
        ("rw", _) => "randrw",
        ("sharing", _) => "round-robin",
        ("shared", _) => "strided",
        ("random", _) => "once",
        ("start", _) => "same",
        ("arrivals", _) => "constant",
        ("clones" | "positions", _) => "own",
        ("think" | "period", _) => "exponential:2ms",
        ("cache", _) => "mmap",
        ("advice", _) => "random",
        ("until", _) => "steady",
        ("fail-if", _) => "p99>10ms",
        ("latency-target", _) => "500us:99%:5s",
        ("steady-state", _) => "iops:10%:60s",
        ("min-rate", _) => "bw:10m",
        ("verify", _) => "stamps",
        ("io-priority", _) => "be:2",
        ("memory-nodes", _) => "bind:0",
        ("dedup-set", _) => "64k",
        ("nice", _) => "5",
        ("pace", _) => "fast",
        ("op-priority", _) => "20%=rt:0",
        ("replay-align", _) => "4k",
        ("replay-skip", _) => "trim",
        (_, "KEY=VALUE,...") => "bs=4k",
        (_, "LIST") => "0-3,8",
        (_, "DURATION") => "500ms",
        (_, "") => "true",
        _ => "32",
    }
}

/// A name of another tool, and fathom's equivalent.
#[derive(Clone, Debug)]
pub struct Counterpart {
    /// Program, or group of programs, that the name comes from.
    pub tool: Tool,
    /// The name as typed in the tool: `--iodepth`, `-b`.
    pub name: String,
    /// The key with the same meaning.
    pub key: &'static Key,
    /// The values for the key; empty if the typed value has no equivalent.
    pub values: Vec<String>,
}

impl Counterpart {
    fn new(key: &'static Key, foreign: &Foreign, value: &str) -> Self {
        let reads = |values: &Vec<String>| {
            !values.is_empty()
                && key.parse_into_job(&mut JobSpec::default(), values.iter().map(String::as_str)).is_ok()
        };
        let dashes = if foreign.tool == Tool::Diskspd { "-" } else { "--" };
        let values = Some((foreign.to_fathom)(value)).filter(reads).unwrap_or_default();
        Self { tool: foreign.tool, name: format!("{dashes}{}", foreign.name), key, values }
    }
}

/// Finds the equivalent of an option of fio, or of a name that several other tools use; `None` if
/// there is none. `values` are possible values, the likeliest first.
pub fn in_other_tools(name: &str, values: &[&str]) -> Option<Counterpart> {
    let all = names_of_tool(Tool::Fio).chain(names_of_tool(Tool::Other));
    best_candidate(all.filter(|(_, f)| f.name == name).flat_map(|(key, foreign)| {
        let without_value = values.is_empty().then_some("");
        values.iter().copied().chain(without_value).map(move |value| Counterpart::new(key, foreign, value))
    }))
}

/// Finds the equivalent of a DISKSPD option, given without its dash and with its value, `b4K`;
/// `None` if there is none.
pub fn in_diskspd(word: &str) -> Option<Counterpart> {
    let mut all: Vec<(usize, Counterpart)> = names_of_tool(Tool::Diskspd)
        .filter_map(|(key, f)| Some((f.name.len(), Counterpart::new(key, f, word.strip_prefix(f.name)?))))
        .collect();
    // Longest names first: -rs30 is -rs with the value 30, not -r with the value s30.
    all.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    best_candidate(all.into_iter().map(|(_, meant)| meant))
}

fn names_of_tool(tool: Tool) -> impl Iterator<Item = (&'static Key, &'static Foreign)> {
    let all = KEYS.iter().flat_map(|key| key.elsewhere.iter().map(move |foreign| (key, foreign)));
    all.filter(move |(_, foreign)| foreign.tool == tool)
}

/// Returns the first candidate with values, otherwise the first whose key takes values; `None`
/// without either.
fn best_candidate(all: impl Iterator<Item = Counterpart>) -> Option<Counterpart> {
    let all: Vec<Counterpart> = all.collect();
    let with_values = all.iter().find(|m| !m.values.is_empty());
    with_values.or_else(|| all.iter().find(|m| !m.key.is_switch())).cloned()
}

#[test]
fn keys_accept_the_example_in_their_help() {
    let mut names: Vec<&str> = KEYS.iter().map(|k| k.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KEYS.len(), "no name is there twice");
    for key in KEYS {
        assert_eq!(find(key.name).map(|k| k.name), Some(key.name));
        let parse = |text: &'static str| key.parse_into_job(&mut JobSpec::default(), [text]);
        assert_eq!(
            key.is_switch(),
            parse("true").is_ok() && parse("1").is_err_and(|e| e.contains("true")),
            "{}",
            key.name
        );
        let mut job = JobSpec::default();
        let value = example(key);
        key.parse_into_job(&mut job, [value]).unwrap_or_else(|e| panic!("{}: {e}", key.name));
        let unchanged = JobSpec {
            phases: vec![PhaseSpec { streams: vec![StreamSpec::default()], ..Default::default() }],
            ..Default::default()
        };
        assert_ne!(job, unchanged, "{} is read into its place", key.name);
        if !matches!(key.name, "name" | "target" | "data" | "engine" | "op-log" | "replay") {
            let refused = key.parse_into_job(&mut JobSpec::default(), ["\u{e9}"]);
            assert!(refused.is_err_and(|e| e.contains("; type")), "{}", key.name);
        }
    }
}

#[test]
fn help_lists_every_word() {
    for (word, _) in super::Rw::WORDS {
        assert!(find("rw").is_some_and(|k| k.about.contains(word)), "{word}");
    }
    for (word, _) in crate::job::Cache::WORDS {
        assert!(find("cache").is_some_and(|k| k.about.contains(word)), "{word}");
    }
}

#[test]
fn keys_accept_translated_examples() {
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
                foreign.tool != Tool::Fio || crate::spec::keys::find(foreign.name).is_none(),
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
fn foreign_values_are_translated() {
    let key_and_values = |meant: Option<Counterpart>| {
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
        assert_eq!(key_and_values(in_other_tools(name, &[value])), (key, here.into()), "{name}={value}");
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
        assert_eq!(key_and_values(in_diskspd(word)), (key, here.into()), "-{word}");
    }
}
