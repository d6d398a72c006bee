//! Streams: a job of fio's as one stream of ours, or as one for each clone.
//!
//! For: engines, data and threads. Not for: which jobs run at once ([`super::phases`]), for how long ([`super::times`]), which part of files
//! ([`super::region`]), nor blocks ([`super::access`]).

use super::access::{self, ParsedRw};
use super::around::Around;
use super::checked::checked;
use super::errors::errors;
use super::jobs::{Fault, Job};
use super::logs::logs;
use super::names;
use super::options::OTHER_ENGINES;
use super::priorities::priorities;
use super::rates;
use super::region::{self, Increment};
use super::rules::rules;
use super::times::{Times, is_time_based, times};
use super::value::{Size, list, mask};
use super::zones;
use model::job::{Advice, Batch, Cache, Clones, Create, Every, IoPriority, Options, Order, Sharing};
use model::spec::limits::{MAX_DEPTH, MAX_WORKERS};
use model::spec::{EngineSpec, StreamSpec, parsers, place as of_place};

/// The engine where none is said.
const ENGINE: &str = "psync";

/// Share of the size that copies are of where none is said.
const WORKING_SET_PERCENT: u64 = 5;

/// Engines of fio's that are carried out, and what each is called here.
pub(super) const ENGINES: &[(&str, &str)] = &[
    ("sync", "rw"),
    ("psync", "sync"),
    ("vsync", "preadv"),
    ("pvsync", "vsync"),
    ("pvsync2", "vsync"),
    ("libaio", "libaio"),
    ("io_uring", "io_uring"),
    ("posixaio", "posixaio"),
    ("mmap", "mmap"),
    ("splice", "splice"),
    ("ftruncate", "ftruncate"),
    ("falloc", "fallocate"),
    ("null", "null"),
];
/// Those of them that have several operations in flight.
const DEEP: [&str; 5] = ["vsync", "libaio", "io_uring", "posixaio", "null"];
/// Switches of engines, and the engines that have each.
pub(super) const ENGINE_OPTIONS: &[(&str, &[&str])] = &[
    ("hipri", &["io_uring", "pvsync2"]),
    ("uncached", &["io_uring", "pvsync2"]),
    ("nowait", &["pvsync2"]),
    ("atomic", &["libaio", "io_uring", "pvsync2"]),
    ("fixedbufs", &["io_uring"]),
    ("registerfiles", &["io_uring"]),
    ("sqthread_poll", &["io_uring"]),
];

/// The streams of a job, and when it ends.
pub(super) struct Streams {
    pub(super) all: Vec<StreamSpec>,
    pub(super) times: Times,
    /// Whether others read back what they wrote, when they are over.
    pub(super) back: bool,
}

/// What a job is as streams.
pub(super) fn streams(job: &Job, around: &dyn Around) -> Result<Streams, Fault> {
    let way = access::way(job)?;
    let mut one = StreamSpec { name: Some(name(job)?), ..StreamSpec::default() };
    access::say(job, &way, &mut one)?;
    let deep = engine(job, &way, &mut one)?;
    depth(job, deep, &mut one)?;
    rates::pace(job, &way, &mut one)?;
    one.advice = advice(job, &way, &one)?;
    advise_mapping(&way, &mut one);
    let (verify, back) = checked(job, &way, around)?;
    one.verify = verify;
    durability_and_data(job, &way, &mut one)?;
    place(job, &mut one)?;
    nodes(job, around, &mut one)?;
    priorities(job, &way, &mut one)?;
    let times = times(job)?;
    rules(job, &way, &mut one)?;
    let checks = back || one.verify.as_ref().is_some_and(|verify| verify.checks);
    errors(job, &way, checks, &mut one)?;
    if !job.text("exit_what").is_none_or(|what| ["group", "stonewall", "all"].contains(&what)) {
        return Err(job.fault("exit_what", "it is group, stonewall or all; type one of them"));
    }
    one.ends_others = job.on("exitall", false)?.then_some(true);
    one.delay = Some(times.delay).filter(|d| *d > 0);
    one.log_interval = logs(job)?.map(|logs| logs.interval_ns());
    let files = names::files(job)?;
    names::refuse_directories(job, around)?;
    one.strided = zones::strided_zones(job, &way, files, &one)?;
    let increment = region::region(job, &way, (files, around), times, &mut one)?;
    one.evict_each_pass = evicts_each_pass(job, &way, files, &one)?.then_some(true);
    sharing(job, files, &mut one)?;
    Ok(Streams { all: clones(job, &one, files, increment)?, times, back })
}

pub(super) fn name(job: &Job) -> Result<String, Fault> {
    parsers::name(job.name()).map_err(|why| job.fault("name", why))
}

/// The engine with its options and the open mode; whether it takes several operations at a time.
pub(super) fn engine(job: &Job, way: &ParsedRw, one: &mut StreamSpec) -> Result<bool, Fault> {
    let said = job.text("ioengine").unwrap_or(ENGINE);
    let Some((_, name)) = ENGINES.iter().find(|(engine, _)| *engine == said) else {
        let other = OTHER_ENGINES.iter().find(|(engine, ..)| *engine == said);
        let why = other.map_or(
            "fio has no such engine; type psync, libaio, io_uring, posixaio, mmap or null",
            |(_, why, _)| *why,
        );
        return Err(job.fault("ioengine", why));
    };
    if said == "ftruncate" && !way.only_writes() {
        let why = "ioengine=ftruncate sets lengths, each as a write; type rw=write or randwrite";
        return Err(job.fault("rw", why));
    }
    // What the kernel's asynchronous calls cannot do fio does in the call, one after the other.
    let trims_in_call = ["libaio", "posixaio"].contains(&said) && way.directions().contains(&2);
    if trims_in_call && way.writes() {
        let why = format!(
            "{said} has no trims: fio does them in the call, beside its writes in flight; type ioengine=io_uring or psync"
        );
        return Err(job.fault("ioengine", why));
    }
    let options = engine_options(job, said)?;
    let name = if trims_in_call { &"sync" } else { name };
    one.engine = Some(EngineSpec { name: (*name).into(), options });
    one.cache = match *name {
        // Nothing is opened.
        "null" => None,
        "mmap" => Some(Cache::Mmap),
        _ => Some(cache(job)?),
    };
    Ok(DEEP.contains(&said) && !trims_in_call)
}

fn engine_options(job: &Job, engine: &str) -> Result<Options, Fault> {
    let mut options = Options::new();
    let mut put = |name: &str, number: Option<u64>| options.insert(name.into(), number);
    let uring = engine == "io_uring";
    if uring {
        if !job.on("fixedbufs", false)? {
            put("plain-buffers", None);
        }
        if !job.on("registerfiles", false)? {
            put("plain-files", None);
        }
        let cpu = job.number("sqthread_poll_cpu")?;
        if job.on("sqthread_poll", false)? {
            put("sqpoll", cpu);
        }
    }
    for (option, engines) in ENGINE_OPTIONS {
        if !job.on(option, false)? {
            continue;
        }
        if !engines.contains(&engine) {
            let why =
                format!("it goes with ioengine={}; type that engine, or leave it out", engines.join(" or "));
            return Err(job.fault(option, why));
        }
        match *option {
            "hipri" => put(if uring { "iopoll" } else { "hipri" }, None),
            "uncached" => put("dontcache", None),
            "nowait" | "atomic" => put(option, None),
            // The others were put above, where io_uring has them.
            _ => None,
        };
    }
    Ok(options)
}

/// What files are opened with: `direct` and `buffered` are one switch, and `sync` comes to it.
fn cache(job: &Job) -> Result<Cache, Fault> {
    let direct = match job.last("direct", "buffered") {
        Some("direct") => job.on("direct", false)?,
        Some(_) => !job.on("buffered", true)?,
        None => false,
    };
    Ok(match (job.text("sync").unwrap_or("none"), direct) {
        ("none" | "0", true) => Cache::Direct,
        ("none" | "0", false) => Cache::Buffered,
        ("sync" | "1" | "", true) => Cache::DirectSync,
        ("sync" | "1" | "", false) => Cache::Sync,
        ("dsync", true) => Cache::DirectDsync,
        ("dsync", false) => Cache::Dsync,
        _ => return Err(job.fault("sync", "it is no way to open a file; type none, sync or dsync")),
    })
}

/// What the kernel is told about the order of accesses: what the job does, unless it says otherwise.
pub(super) fn advice(job: &Job, way: &ParsedRw, one: &StreamSpec) -> Result<Option<Advice>, Fault> {
    let own = if way.rw.is_random() { Advice::Random } else { Advice::Sequential };
    let said = match job.text("fadvise_hint").unwrap_or("1") {
        "1" | "true" | "" => Some(own),
        "0" | "false" | "none" => None,
        "random" => Some(Advice::Random),
        "sequential" => Some(Advice::Sequential),
        _ => return Err(job.fault("fadvise_hint", "it is no hint; type 0, 1, random or sequential")),
    };
    // Direct I/O goes past what it is about, and so does what opens nothing.
    Ok(said.filter(|_| one.cache.is_some_and(|cache| !cache.is_direct())))
}

/// Tells the kernel the same of a mapping, as fio does by whether the job is random, whatever the hint says else: without it a fault maps and
/// reads what lies around it too.
pub(super) fn advise_mapping(way: &ParsedRw, one: &mut StreamSpec) {
    if let (Some(Cache::Mmap), Some(_), Some(engine)) = (one.cache, one.advice, &mut one.engine) {
        let word = if way.rw.is_random() { "random" } else { "sequential" };
        engine.options.insert(word.into(), None);
    }
}

/// Whether fio evicts a file again where another pass over it begins: where it comes to its end in order, or its map is full, and where
/// it opens the file for another loop.
fn evicts_each_pass(job: &Job, way: &ParsedRw, files: u32, one: &StreamSpec) -> Result<bool, Fault> {
    let in_memory = one.cache.is_some_and(|cache| !cache.is_direct() && cache != Cache::Mmap);
    let is_map = one.random == Some(Order::Once);
    let in_order = one.random.is_none();
    let another = if is_time_based(job)? {
        is_map || (in_order && one.hole.is_none() && one.strided.is_none())
    } else {
        let region = one.size.map(|size| size.saturating_mul(files.into()));
        let is_more = one.limit.bytes.zip(region).is_some_and(|(amount, region)| amount > region);
        let goes_beyond = is_more && region::has_io_size(job)?;
        (is_map || in_order) && (job.count("loops", 1)?.unwrap_or(1) > 1 || goes_beyond)
    };
    let repeats_block = in_order && way.step < 0 && one.backwards.is_none();
    Ok(job.on("invalidate", true)? && in_memory && another && !repeats_block)
}

pub(super) fn depth(job: &Job, deep: bool, one: &mut StreamSpec) -> Result<(), Fault> {
    let asked = job.count("iodepth", 1)?.unwrap_or(1);
    if asked > MAX_DEPTH {
        return Err(
            job.fault("iodepth", format!("a worker has {MAX_DEPTH} operations in flight at most; type less"))
        );
    }
    // As in fio, which says nothing of it.
    let depth = if deep { asked } else { 1 };
    let submit = match job.count("iodepth_batch", 0)?.unwrap_or(1) {
        0 => depth,
        n => n.min(depth),
    };
    // A full queue is emptied down to there before it is filled again.
    let low = job.count("iodepth_low", 0)?.filter(|n| *n > 0).unwrap_or(depth);
    // Of 0 fio makes 1, as soon as anything is in flight.
    let least = job.count("iodepth_batch_complete_min", 0)?.unwrap_or(1).max(1);
    let complete = least.max(depth.saturating_sub(low)).min(depth);
    one.serialize_overlap = (job.on("serialize_overlap", false)? && depth > 1).then_some(true);
    one.depth = Some(depth);
    one.batch = Some(Batch { submit, complete });
    Ok(())
}

pub(super) fn durability_and_data(job: &Job, way: &ParsedRw, one: &mut StreamSpec) -> Result<(), Fault> {
    let fsync = job.count("fsync", 0)?.filter(|n| *n > 0);
    let fdatasync = job.count("fdatasync", 0)?.filter(|n| *n > 0);
    if fsync.is_some() && fdatasync.is_some() {
        return Err(
            job.fault("fdatasync", "a stream makes its writes stable by one call; type fsync or fdatasync")
        );
    }
    let share = |option: &str| -> Result<Option<u8>, Fault> {
        let share = |n: u64| {
            let fits = u8::try_from(n).ok().filter(|n| *n <= 100);
            fits.ok_or_else(|| job.fault(option, "it is no share; type 0 to 100"))
        };
        Ok(job.number(option)?.map(share).transpose()?.filter(|n| *n > 0))
    };
    let (compress, dedup) = (share("buffer_compress_percentage")?, share("dedupe_percentage")?);
    let zeros = job.on("zero_buffers", false)?;
    // Whether it is said or not, every run ends with a flush of what it wrote.
    for option in ["end_fsync", "fsync_on_close", "end_syncfs"] {
        job.on(option, false)?;
    }
    if !way.writes() {
        // As in fio, where these are about writes alone.
        return Ok(());
    }
    (one.fsync, one.fdatasync) = (fsync.map(Every::writes), fdatasync.map(Every::writes));
    if one.verify.is_some() {
        // What is checked has data of its own.
        return Ok(());
    }
    if zeros {
        one.zeros = Some(true);
    } else {
        (one.compress, one.dedup) = (compress, dedup);
        one.dedup_set = dedup.map_or(Ok(None), |dedup| set_of_copies(job, dedup))?;
        if job.on("dedupe_global", false)? {
            let why = "it is about working sets; type dedupe_percentage=30 and dedupe_mode=working_set too, or leave it out";
            one.dedup_set.ok_or_else(|| job.fault("dedupe_global", why))?;
            one.dedup_shared = Some(true);
        }
    }
    Ok(())
}

/// Bytes that copies are of: in fio a share of the size.
fn set_of_copies(job: &Job, dedup: u8) -> Result<Option<u64>, Fault> {
    match job.text("dedupe_mode").unwrap_or("repeat") {
        "repeat" => return Ok(None),
        "working_set" => {}
        _ => return Err(job.fault("dedupe_mode", "it is no way to copy; type repeat or working_set")),
    }
    let share = "dedupe_working_set_percentage";
    let percent = job.number(share)?.unwrap_or(WORKING_SET_PERCENT);
    if percent + u64::from(dedup) > 100 {
        return Err(
            job.fault(share, "what copies are of is no copy, so both are 100 together at most; type less")
        );
    }
    let Some(Size::Bytes(size)) = job.size("size")? else {
        return Err(job.fault(share, "it is a share of the size; type size=1g or the like"));
    };
    let bytes = (u128::from(size) * u128::from(percent) / 100) as u64 / 4096 * 4096;
    if bytes == 0 {
        return Err(job.fault(share, "it is less than a block of 4 KiB; type more"));
    }
    Ok(Some(bytes))
}

pub(super) fn place(job: &Job, one: &mut StreamSpec) -> Result<(), Fault> {
    let cpus = match job.last("cpus_allowed", "cpumask") {
        Some("cpumask") => Some(("cpumask", mask(job.text("cpumask").unwrap_or_default()))),
        Some(option) => Some((option, Ok(list(job.text(option).unwrap_or_default())))),
        None => None,
    };
    if let Some((option, text)) = cpus {
        let read = text.and_then(|text| of_place::cpus(&mut one.place.cpus, &text));
        read.map_err(|why| job.fault(option, why))?;
    }
    match job.text("cpus_allowed_policy") {
        None | Some("shared") => {}
        Some("split") if one.place.cpus.is_empty() => {
            return Err(
                job.fault("cpus_allowed_policy", "it divides CPUs that are named; type cpus_allowed too")
            );
        }
        Some("split") => one.place.split = true,
        Some(_) => return Err(job.fault("cpus_allowed_policy", "it is shared or split; type one of them")),
    }
    if let Some(text) = job.text("nice") {
        one.place.nice = Some(of_place::nice(text).map_err(|why| job.fault("nice", why))?);
    }
    one.place.io_priority = io_priority(job)?;
    Ok(())
}

/// Threads on the CPUs of NUMA nodes, whatever CPUs are named, and where their memory comes from.
pub(super) fn nodes(job: &Job, around: &dyn Around, one: &mut StreamSpec) -> Result<(), Fault> {
    let all = |list: &str| if list == "all" { around.nodes() } else { Ok(list.into()) };
    if let Some(text) = job.text("numa_cpu_nodes") {
        let fault = |why: String| job.fault("numa_cpu_nodes", why);
        let list = all(text).map_err(fault)?;
        let mut nodes = Vec::new();
        let wrong = |_| fault(format!("{text} is no list of NUMA nodes; type their numbers, such as 0-1"));
        of_place::cpus(&mut nodes, &list).map_err(wrong)?;
        one.place.cpus.clear();
        one.place.split = false;
        for node in nodes {
            let cpus = around.cpus_of_node(node).map_err(fault)?;
            // A node of memory alone has none.
            if !cpus.is_empty() {
                of_place::cpus(&mut one.place.cpus, &cpus).map_err(fault)?;
            }
        }
        if one.place.cpus.is_empty() {
            return Err(fault("these nodes have no CPUs; type others".into()));
        }
    }
    let Some(text) = job.text("numa_mem_policy").filter(|text| *text != "default") else { return Ok(()) };
    let fault = |why: String| job.fault("numa_mem_policy", why);
    let policy = match text.split_once(':') {
        None if text == "interleave" => format!("interleave:{}", around.nodes().map_err(fault)?),
        Some((how, list)) => format!("{how}:{}", all(list).map_err(fault)?),
        None => text.into(),
    };
    one.place.memory = Some(of_place::memory_nodes(&policy).map_err(fault)?);
    Ok(())
}

/// Class and level; whoever says a level alone means the class of everybody.
fn io_priority(job: &Job) -> Result<Option<IoPriority>, Fault> {
    let level = job.number("prio")?;
    let text = match (job.number("prioclass")?, level) {
        (None | Some(0), None) => return Ok(None),
        (Some(1), level) => format!("rt:{}", level.unwrap_or(0)),
        (None | Some(0 | 2), level) => format!("be:{}", level.unwrap_or(0)),
        (Some(3), None | Some(0)) => "idle".into(),
        (Some(3), Some(_)) => return Err(job.fault("prio", "the idle class has no levels; leave it out")),
        (Some(_), _) => return Err(job.fault("prioclass", "it is no class; type 1, 2 or 3")),
    };
    of_place::io_priority(&text).map(Some).map_err(|why| job.fault("prio", why))
}

/// Which file is next. With `openfiles` the files form groups, one after another, and a sequential order is groups of one file.
fn sharing(job: &Job, files: u32, one: &mut StreamSpec) -> Result<(), Fault> {
    let (order, count) = match job.text("file_service_type").unwrap_or("roundrobin").split_once(':') {
        Some((order, count)) => (order, Some(count)),
        None => (job.text("file_service_type").unwrap_or("roundrobin"), None),
    };
    let fault = |why: &str| job.fault("file_service_type", why);
    let operations = match count.map(|text| job.units("file_service_type").whole(text)) {
        None => 1,
        Some(Ok(count)) => u32::try_from(count.max(1)).map_err(|_| fault("it is too many; type less"))?,
        Some(Err(why)) => return Err(fault(&why)),
    };
    let open = job.count("openfiles", 1)?.map_or(files, |open| open.min(files));
    let sharing = match order {
        "roundrobin" if operations == 1 && open == files => Sharing::RoundRobin,
        "random" if operations == 1 && open == files => Sharing::Random,
        "roundrobin" | "random" => Sharing::Turns { drawn: order == "random", operations, open },
        "sequential" => Sharing::Turns { drawn: false, operations: 1, open: 1 },
        "zipf" | "pareto" | "normal" | "gauss" if files > 1 => {
            return Err(fault("files are drawn alike here; type roundrobin, random or sequential"));
        }
        "zipf" | "pareto" | "normal" | "gauss" => Sharing::RoundRobin,
        _ => return Err(fault("fio has no such order; type roundrobin, random or sequential")),
    };
    one.sharing = Some(sharing).filter(|_| files > 1);
    Ok(())
}

/// One stream for all clones where they are one result; else one for each.
fn clones(job: &Job, one: &StreamSpec, files: u32, increment: Increment) -> Result<Vec<StreamSpec>, Fault> {
    let count = job.count("numjobs", 1)?.unwrap_or(1);
    if count > MAX_WORKERS {
        return Err(job.fault("numjobs", format!("a stream has {MAX_WORKERS} workers at most; type less")));
    }
    let grouped = job.on("group_reporting", false)?;
    let nothing = one.create.is_none() && one.cache.is_none();
    let targets = |clone: u32| if nothing { Vec::new() } else { names::paths(job, clone, files) };
    // Clones that begin at offsets of their own have blocks of their own; in fio's formats a group is one result in any case.
    if count == 1 || !grouped || increment.bytes > 0 {
        if count as usize > model::spec::limits::MAX_STREAMS {
            let most = model::spec::limits::MAX_STREAMS;
            return Err(job.fault(
                "numjobs",
                format!("more than {most} clones are not told apart; type group_reporting too"),
            ));
        }
        let has_length = job.bytes("filesize")?.is_some_and(|bytes| bytes > 0);
        let clone = |clone: u32| {
            let first = one.offset.unwrap_or(0);
            let offset = increment.offset(first, clone);
            let mut stream =
                StreamSpec { target: targets(clone), offset: Some(offset).filter(|o| *o > 0), ..one.clone() };
            if has_length {
                // The file keeps its length, so the clone has what follows its offset.
                stream.size = one.size.map(|size| size.saturating_sub(offset - first));
                if stream.size == Some(0) {
                    let why = "a clone begins beyond the filesize; type less, or fewer clones";
                    return Err(job.fault("offset_increment", why));
                }
                if !region::has_io_size(job)? {
                    let within = stream.size.map(|size| size.saturating_mul(u64::from(files)));
                    stream.limit.bytes =
                        one.limit.bytes.map(|bytes| within.map_or(bytes, |most| bytes.min(most)));
                }
            } else {
                stream.create =
                    one.create.map(|c| Create { bytes: c.bytes.saturating_add(offset - first), ..c });
            }
            Ok(stream)
        };
        return (0..count).map(clone).collect();
    }
    let own = !nothing && names::own_files(job);
    let target: Vec<String> = (0..if own { count } else { 1 }).flat_map(targets).collect();
    if target.len() > model::spec::limits::MAX_TARGETS {
        let most = model::spec::limits::MAX_TARGETS;
        return Err(
            job.fault("numjobs", format!("a stream has {most} targets at most; type a filename, or less"))
        );
    }
    let all = |n: u64| n.saturating_mul(u64::from(count));
    let mut stream = StreamSpec {
        target,
        workers: Some(count),
        clones: Some(if own { Clones::Own } else { Clones::Same }),
        limit_iops: one.limit_iops.map(|limit| limit.times(count.into())),
        rate: one.rate.map(|n| n * f64::from(count)),
        limit_bandwidth: one.limit_bandwidth.map(|limit| limit.times(count.into())),
        ..one.clone()
    };
    stream.limit.bytes = stream.limit.bytes.map(all);
    stream.limit.operations = stream.limit.operations.map(all);
    Ok(vec![stream])
}
