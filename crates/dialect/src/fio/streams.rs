//! Translates a job of fio into one stream, or into one for each clone: engine, data, threads,
//! verification, priorities, tolerated errors and logs. [`super::phases`] decides which jobs run at
//! the same time, [`super::files`] the region of the files, and [`super::access`] the blocks.

use super::access::{self, ParsedRw};
use super::options::{OPTIONS, OTHER_ENGINES};
use super::value::{self, Size, mask};
use super::{files, rates};
use crate::fio::files::Increment;
use crate::fio::job_file::{Environment, Fault, Job, LOGS, Times, is_time_based, times};
use crate::fio::rates::rules;
use crate::options::ToolOption;
use model::errno::{by_direction, ignored_errors};
use model::job::{
    ALL_ERRORS, Advice, Batch, Cache, Clones, Content, Create, Every, IgnoredError, IoPriority, Kind,
    OpPriority, Options, Order, Sharing, Verify,
};
use model::spec::number::{MAX_DEPTH, MAX_STREAMS, MAX_TARGETS, MAX_WORKERS};
use model::spec::{EngineSpec, LogKind, LogValue, Logs, StreamSpec, values};
use sys::thread::is_beyond;

/// The default engine.
const ENGINE: &str = "psync";
/// Default size of the set of blocks from which duplicates are copied, as a percentage of the job's size.
const WORKING_SET_PERCENT: u64 = 5;

/// Supported engines of fio, and their names in fathom.
pub(crate) const ENGINES: &[(&str, &str)] = &[
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

/// Engines with several operations in flight.
const DEEP: [&str; 5] = ["vsync", "libaio", "io_uring", "posixaio", "null"];

/// The streams of a job, and its times.
pub(super) struct Streams {
    pub(super) all: Vec<StreamSpec>,
    pub(super) times: Times,
    /// Whether a later phase reads the written blocks back.
    pub(super) reads_back: bool,
}

/// Translates a job into its streams.
pub(super) fn streams(job: &Job, environment: &dyn Environment) -> Result<Streams, Fault> {
    let rw = access::parse_rw(job)?;
    let mut stream = StreamSpec { name: Some(name(job)?), ..StreamSpec::default() };
    access::set_blocks(job, &rw, &mut stream)?;
    let deep = engine(job, &rw, environment, &mut stream)?;
    depth(job, &rw, deep, &mut stream)?;
    rates::pace(job, &rw, &mut stream)?;
    advise(job, &rw, &mut stream);
    let (verify, back) = verification(job, &rw, environment)?;
    stream.resolved.verify = verify;
    let why = "the rates decide which blocks a mix writes, so fathom cannot read them back; type do_verify=0, or a job for each direction";
    job.refuse_if(back && rates::has_rate_per_direction(&stream), "verify", why)?;
    durability_and_data(job, &rw, &mut stream)?;
    place(job, environment, &mut stream)?;
    priorities(job, &rw, &mut stream)?;
    let times = times(job)?;
    rules(job, &rw, &mut stream)?;
    let checks = back || stream.resolved.verify.as_ref().is_some_and(|verify| verify.checks);
    errors(job, &rw, checks, &mut stream)?;
    ends_and_logs(job, times, &mut stream)?;
    let files = files::files(job)?;
    files::refuse_directories(job, environment)?;
    stream.resolved.access.strided = access::strided_zones(job, &rw, files, &stream)?;
    let increment = files::region(job, &rw, files, environment, times, &mut stream)?;
    stream.resolved.evicts_each_pass = evicts_each_pass(job, &rw, files, &stream)?;
    sharing(job, files, &mut stream)?;
    Ok(Streams { all: clones(job, &stream, files, increment, environment)?, times, reads_back: back })
}

/// Sets the start delay, the interval of the logs, and whether the end of the job ends other jobs.
pub(super) fn ends_and_logs(job: &Job, times: Times, stream: &mut StreamSpec) -> Result<(), Fault> {
    stream.resolved.delay_ns = times.delay;
    stream.resolved.ends_others = job.on("exitall", false)?;
    stream.resolved.log_interval_ns = logs(job)?.map(|logs| logs.interval_ns());
    Ok(())
}

pub(super) fn name(job: &Job) -> Result<String, Fault> {
    values::name(job.name()).map_err(|why| job.fault("name", why))
}

/// Sets the engine, its options and the open mode. Returns whether the engine takes several operations at a time.
pub(super) fn engine(
    job: &Job,
    rw: &ParsedRw,
    environment: &dyn Environment,
    stream: &mut StreamSpec,
) -> Result<bool, Fault> {
    let engine = job.engine().unwrap_or(ENGINE);
    let Some((_, name)) = ENGINES.iter().find(|(fio_name, _)| *fio_name == engine) else {
        let other = OTHER_ENGINES.iter().find(|other| other.name == engine);
        let why = other.map_or(
            "fio has no such engine; type psync, libaio, io_uring, posixaio, mmap or null",
            |other| other.why,
        );
        return Err(job.fault("ioengine", why));
    };
    let why = "ioengine=ftruncate only writes; type rw=write or randwrite";
    job.refuse_if(engine == "ftruncate" && !rw.only_writes(), "rw", why)?;
    // fio does trims synchronously if the engine has no asynchronous ones.
    let trims_in_call = ["libaio", "posixaio"].contains(&engine) && rw.directions().contains(&2);
    if trims_in_call && rw.writes() {
        let why = format!(
            "{engine} has no asynchronous trims, so fathom does not mix them with writes; type ioengine=io_uring or psync"
        );
        return Err(job.fault("ioengine", why));
    }
    let options = engine_options(job, engine, environment)?;
    let name = if trims_in_call { &"sync" } else { name };
    stream.engine = Some(EngineSpec { name: (*name).into(), options });
    stream.cache = match *name {
        // The engine null opens no file.
        "null" => None,
        "mmap" => Some(Cache::Mmap),
        _ => Some(cache(job)?),
    };
    let locks_memory = job.number("lockmem")?.is_some_and(|bytes| bytes > 0);
    let is_cached = stream.cache.is_some_and(|cache| !cache.is_direct());
    let why = "fathom cannot lock memory to make the page cache smaller; type direct=1, or limit the memory of fathom's cgroup and remove the option";
    job.refuse_if(locks_memory && is_cached, "lockmem", why)?;
    Ok(DEEP.contains(&engine) && !trims_in_call)
}

fn engine_options(job: &Job, engine: &str, environment: &dyn Environment) -> Result<Options, Fault> {
    let mut options = Options::new();
    let mut put = |name: &str, number: Option<u64>| options.insert(name.into(), number);
    let is_uring = engine == "io_uring";
    if is_uring {
        if !job.on("fixedbufs", false)? {
            put("plain-buffers", None);
        }
        if !job.on("registerfiles", false)? {
            put("plain-files", None);
        }
        let cpu = job.number("sqthread_poll_cpu")?;
        if job.on("sqthread_poll", false)? {
            let cpus: Vec<u32> = cpu.into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect();
            refuse_missing_cpus(job, "sqthread_poll_cpu", &cpus, environment)?;
            put("sqpoll", cpu);
        }
    }
    for ToolOption { name, engines, .. } in OPTIONS.iter().filter(|option| !option.engines.is_empty()) {
        if !job.on(name, false)? {
            continue;
        }
        let why = format!(
            "the option works only with ioengine={}; type that engine, or remove the option",
            engines.join(" or ")
        );
        job.refuse_if(!engines.contains(&engine), name, why)?;
        match *name {
            "hipri" => put(if is_uring { "iopoll" } else { "hipri" }, None),
            "uncached" => put("dontcache", None),
            "nowait" | "atomic" => put(name, None),
            // Only io_uring has the other options. They were set above.
            _ => None,
        };
    }
    Ok(options)
}

/// The cache mode. `direct` and `buffered` are opposite names of one switch; `sync` is combined
/// with it.
fn cache(job: &Job) -> Result<Cache, Fault> {
    let direct = match job.last("direct", "buffered") {
        Some("direct") => job.on("direct", false)?,
        Some(_) => !job.on("buffered", true)?,
        None => false,
    };
    Ok(match (job.text("sync").unwrap_or("none"), direct) {
        ("none" | "0", true) => Cache::Direct,
        ("none" | "0", false) => Cache::Buffered,
        ("dsync", true) => Cache::DirectDsync,
        ("dsync", false) => Cache::Dsync,
        (_, true) => Cache::DirectSync,
        (_, false) => Cache::Sync,
    })
}

/// Sets the advice to the kernel about the order of accesses. By default this is the actual order. As in fio, any hint
/// that is not off gives a mapping the advice of the actual order. Without the advice `random`, a page fault also maps and reads the
/// neighbouring pages.
pub(super) fn advise(job: &Job, rw: &ParsedRw, stream: &mut StreamSpec) {
    let actual = if rw.kind.is_random() { Advice::Random } else { Advice::Sequential };
    let hint = match job.text("fadvise_hint").unwrap_or("1") {
        "0" | "false" | "none" => None,
        "random" => Some(Advice::Random),
        "sequential" => Some(Advice::Sequential),
        _ => Some(actual),
    };
    // Direct I/O does not use the page cache, and some engines open no file.
    stream.resolved.advice = hint.filter(|_| stream.cache.is_some_and(|cache| !cache.is_direct()));
    if let (Some(Cache::Mmap), Some(_), Some(engine)) =
        (stream.cache, stream.resolved.advice, &mut stream.engine)
    {
        let word = if rw.kind.is_random() { "random" } else { "sequential" };
        engine.options.insert(word.into(), None);
    }
}

/// Whether fio evicts the files of a job before the run. With `pre_read` fio does not.
pub(super) fn invalidates(job: &Job) -> Result<bool, Fault> {
    Ok(job.on("invalidate", true)? && !job.on("pre_read", false)?)
}

/// Whether fio evicts a file from the page cache before each further pass. This happens when a
/// sequential job reaches the end, when a random map is full, and when the file is opened for
/// another loop.
fn evicts_each_pass(job: &Job, rw: &ParsedRw, files: u32, stream: &StreamSpec) -> Result<bool, Fault> {
    let is_cached = stream.cache.is_some_and(|cache| !cache.is_direct() && cache != Cache::Mmap);
    // With a random map, fio visits each block once in a pass.
    let has_map = stream.random == Some(Order::Once);
    let is_in_order = stream.random.is_none();
    let has_another_pass = if is_time_based(job)? {
        has_map || (is_in_order && stream.steps.hole_bytes == 0 && stream.resolved.access.strided.is_none())
    } else {
        let region = stream.size.map(|size| size.saturating_mul(files.into()));
        let is_more = stream.resolved.limit.bytes.zip(region).is_some_and(|(amount, region)| amount > region);
        let goes_beyond = is_more && files::has_io_size(job)?;
        (has_map || is_in_order) && (job.count("loops", 1)?.unwrap_or(1) > 1 || goes_beyond)
    };
    // A negative step undoes the advance of the operation, so the job stays at one block and no pass ends.
    let repeats_block = is_in_order && rw.step < 0 && !stream.steps.backwards;
    Ok(invalidates(job)? && is_cached && has_another_pass && !repeats_block)
}

/// Sets how many operations are in flight, and how many one call submits and waits for.
pub(super) fn depth(job: &Job, rw: &ParsedRw, deep: bool, stream: &mut StreamSpec) -> Result<(), Fault> {
    let typed = job.count("iodepth", 1)?.unwrap_or(1);
    let why = format!("a job has at most {MAX_DEPTH} operations in flight; type a smaller depth");
    job.refuse_if(typed > MAX_DEPTH, "iodepth", why)?;
    // Synchronous engines have one operation in flight. fio prints a note about it.
    let depth = if deep { typed } else { 1 };
    let submit = match job.count("iodepth_batch", 0)?.unwrap_or(1) {
        0 => depth,
        n => n.min(depth),
    };
    // A full queue drains to this depth before it is refilled.
    let low = job.count("iodepth_low", 0)?.filter(|n| *n > 0).unwrap_or(depth);
    // fio treats 0 as 1 when anything is in flight.
    let least = job.count("iodepth_batch_complete_min", 0)?.unwrap_or(1).max(1);
    let complete = least.max(depth.saturating_sub(low)).min(depth);
    // Overlapping reads do not wait for each other in fio.
    if job.on("serialize_overlap", false)? && depth > 1 && rw.directions() != [0] {
        stream.set("serialize-overlap", "true").map_err(|why| job.fault("iodepth", why))?;
    }
    stream.depth = Some(depth);
    stream.batch = Some(Batch { submit, complete });
    Ok(())
}

pub(super) fn durability_and_data(job: &Job, rw: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    let fsync = job.count("fsync", 0)?.filter(|n| *n > 0);
    let fdatasync = job.count("fdatasync", 0)?.filter(|n| *n > 0);
    // If fsync and fdatasync are due after the same write, fio runs only fsync.
    let fdatasync = fdatasync.filter(|fdatasync| fsync.is_none_or(|fsync| fdatasync % fsync > 0));
    let why = "fathom uses one kind of sync in a job; type only fsync or only fdatasync, or an fdatasync that is a multiple of fsync";
    job.refuse_if(fsync.is_some() && fdatasync.is_some(), "fdatasync", why)?;
    let compress = job.percent("buffer_compress_percentage")?.filter(|percent| *percent > 0);
    let dedup = job.percent("dedupe_percentage")?.filter(|percent| *percent > 0);
    let zeros = job.on("zero_buffers", false)?;
    // Only check the values: fathom flushes the writes at the end of every run anyway.
    for option in ["end_fsync", "fsync_on_close", "end_syncfs"] {
        job.on(option, false)?;
    }
    if !rw.writes() {
        // As in fio, the following options apply only to writes.
        return Ok(());
    }
    (stream.fsync, stream.fdatasync) = (fsync.map(Every::writes), fdatasync.map(Every::writes));
    if stream.resolved.verify.is_some() {
        // The verification defines the data of verified blocks.
        return Ok(());
    }
    if zeros {
        stream.zeros = true;
    } else {
        (stream.compress, stream.dedup) = (compress, dedup);
        stream.dedup_set = dedup.map_or(Ok(None), |dedup| dedup_set_bytes(job, dedup))?;
        if job.on("dedupe_global", false)? {
            let why = "the option needs a working set; type dedupe_percentage=30 and dedupe_mode=working_set too, or remove the option";
            stream.dedup_set.ok_or_else(|| job.fault("dedupe_global", why))?;
            stream.dedup_shared = true;
        }
    }
    Ok(())
}

/// Bytes of the set of blocks from which duplicates are copied. As in fio, the set is a percentage of the
/// job's size. `None` if the job has no such set.
fn dedup_set_bytes(job: &Job, dedup: u8) -> Result<Option<u64>, Fault> {
    if job.text("dedupe_mode") != Some("working_set") {
        return Ok(None);
    }
    let option = "dedupe_working_set_percentage";
    let percent = job.number(option)?.unwrap_or(WORKING_SET_PERCENT);
    let is_over = percent + u64::from(dedup) > 100;
    job.refuse_if(is_over, option, "the sum with dedupe_percentage exceeds 100; type a smaller percentage")?;
    let Some(Size::Bytes(size)) = job.size("size")? else {
        return Err(job.fault(option, "a percentage needs size in bytes; type size=1g too"));
    };
    let bytes = (u128::from(size) * u128::from(percent) / 100) as u64 / 4096 * 4096;
    job.refuse_if(bytes == 0, option, "the working set is smaller than 4 KiB; type a larger percentage")?;
    Ok(Some(bytes))
}

/// As in fio, refuses CPUs beyond the last one that the machine has. The kernel would ignore them if other CPUs of the list exist.
fn refuse_missing_cpus(
    job: &Job,
    option: &str,
    cpus: &[u32],
    environment: &dyn Environment,
) -> Result<(), Fault> {
    let present = environment.present_cpus();
    let missing = cpus.iter().find(|cpu| is_beyond(**cpu, &present));
    missing.map_or(Ok(()), |cpu| {
        Err(job.fault(option, format!("there is no CPU {cpu}; type some of {}", present.trim())))
    })
}

pub(super) fn place(job: &Job, environment: &dyn Environment, stream: &mut StreamSpec) -> Result<(), Fault> {
    let cpus = match job.last("cpus_allowed", "cpumask") {
        Some("cpumask") => Some(("cpumask", mask(job.text("cpumask").unwrap_or_default()))),
        // fio separates CPUs with `:` too.
        Some(option) => Some((option, Ok(job.text(option).unwrap_or_default().replace(':', ",")))),
        None => None,
    };
    if let Some((option, text)) = cpus {
        let read = text.and_then(|text| values::cpus(&mut stream.resolved.place.cpus, &text));
        read.map_err(|why| job.fault(option, why))?;
        refuse_missing_cpus(job, option, &stream.resolved.place.cpus, environment)?;
    }
    stream.resolved.place.split = job.text("cpus_allowed_policy") == Some("split");
    let why = "split needs a list of CPUs; type cpus_allowed too";
    job.refuse_if(
        stream.resolved.place.split && stream.resolved.place.cpus.is_empty(),
        "cpus_allowed_policy",
        why,
    )?;
    stream.resolved.place.nice = job.parse("nice", values::nice)?;
    stream.resolved.place.io_priority = io_priority(job)?;
    nodes(job, environment, stream)
}

/// Binds threads to the CPUs of NUMA nodes, even if `cpus_allowed` names other CPUs. Also sets the nodes where the memory of the threads
/// is allocated.
fn nodes(job: &Job, environment: &dyn Environment, stream: &mut StreamSpec) -> Result<(), Fault> {
    let all = |list: &str| if list == "all" { environment.nodes() } else { Ok(list.into()) };
    if let Some(text) = job.text("numa_cpu_nodes") {
        let fault = |why: String| job.fault("numa_cpu_nodes", why);
        let list = all(text).map_err(fault)?;
        let mut nodes = Vec::new();
        let wrong = |_| fault(format!("{text} is not a list of NUMA nodes; type their numbers, such as 0-1"));
        values::cpus(&mut nodes, &list).map_err(wrong)?;
        stream.resolved.place.cpus.clear();
        stream.resolved.place.split = false;
        for node in nodes {
            let cpus = environment.cpus_of_node(node).map_err(fault)?;
            // A node with only memory has no CPUs.
            if !cpus.is_empty() {
                values::cpus(&mut stream.resolved.place.cpus, &cpus).map_err(fault)?;
            }
        }
        if stream.resolved.place.cpus.is_empty() {
            return Err(fault("these nodes have no CPUs; type nodes with CPUs".into()));
        }
    }
    let Some(text) = job.text("numa_mem_policy").filter(|text| *text != "default") else { return Ok(()) };
    let fault = |why: String| job.fault("numa_mem_policy", why);
    let policy = match text.split_once(':') {
        None if text == "interleave" => format!("interleave:{}", environment.nodes().map_err(fault)?),
        Some((how, list)) => format!("{how}:{}", all(list).map_err(fault)?),
        None => text.into(),
    };
    stream.resolved.place.memory = Some(values::memory_nodes(&policy).map_err(fault)?);
    Ok(())
}

/// The I/O priority of `prioclass` and `prio`; `None` if neither is set; class 0 counts as not set. `prio` alone means
/// the best-effort class.
fn io_priority(job: &Job) -> Result<Option<IoPriority>, Fault> {
    let level = job.number("prio")?.map(|level| priority_level(job, "prio", level)).transpose()?;
    let class = match job.number("prioclass")?.filter(|class| *class > 0) {
        None if level.is_none() => return Ok(None),
        class => class.unwrap_or(BEST_EFFORT),
    };
    let level = level.unwrap_or(0);
    job.refuse_if(class == IDLE && level > 0, "prio", "the idle class has no levels; remove prio")?;
    priority_of_class(class, level).map(Some).ok_or_else(|| job.fault("prioclass", NO_CLASS))
}

/// The numbers of the priority classes in fio.
const REAL_TIME: u64 = 1;
const BEST_EFFORT: u64 = 2;
const IDLE: u64 = 3;
/// The error about a class with another number.
const NO_CLASS: &str = "there is no such class; type 1, 2 or 3";

/// The priority of a class and a level; `None` if there is no such class. The idle class has no levels.
fn priority_of_class(class: u64, level: u8) -> Option<IoPriority> {
    match class {
        REAL_TIME => Some(IoPriority::Realtime(level)),
        BEST_EFFORT => Some(IoPriority::BestEffort(level)),
        IDLE => Some(IoPriority::Idle),
        _ => None,
    }
}

/// Checks the level of a priority: the kernel has levels 0 to 7.
fn priority_level(job: &Job, option: &str, level: u64) -> Result<u8, Fault> {
    let level = u8::try_from(level).ok().filter(|level| *level < 8);
    level.ok_or_else(|| job.fault(option, "the level is out of range; type a level from 0 (highest) to 7"))
}

/// Sets the order in which operations use the files. With `openfiles` the files form groups of that size.
/// The groups are used one after another. `file_service_type=sequential` has groups of one file.
fn sharing(job: &Job, files: u32, stream: &mut StreamSpec) -> Result<(), Fault> {
    let typed = job.text("file_service_type").unwrap_or("roundrobin");
    let (order, count) = typed.split_once(':').map_or((typed, None), |(order, count)| (order, Some(count)));
    let fault = |why: &str| job.fault("file_service_type", why);
    let operations = match count.map(|text| job.units("file_service_type").whole(text)) {
        None => 1,
        Some(Ok(count)) => u32::try_from(count.max(1))
            .map_err(|_| fault("the number is too large; type a smaller number"))?,
        Some(Err(why)) => return Err(fault(&why)),
    };
    let open = job.count("openfiles", 1)?.map_or(files, |open| open.min(files));
    let sharing = match order {
        "roundrobin" if operations == 1 && open == files => Sharing::RoundRobin,
        "random" if operations == 1 && open == files => Sharing::Random,
        "roundrobin" | "random" => Sharing::Turns { drawn: order == "random", operations, open },
        "sequential" => Sharing::Turns { drawn: false, operations: 1, open: 1 },
        "zipf" | "pareto" | "normal" | "gauss" if files > 1 => {
            return Err(fault(
                "fathom chooses all files equally often; type roundrobin, random or sequential",
            ));
        }
        "zipf" | "pareto" | "normal" | "gauss" => Sharing::RoundRobin,
        _ => return Err(fault("fio has no such value; type roundrobin, random or sequential")),
    };
    if files > 1 {
        stream.resolved.sharing = sharing;
    }
    Ok(())
}

/// The numbers of clones in the order in which fio makes and reports them: first 0, then from the last down to 1.
pub(super) fn clone_numbers(count: u32) -> impl Iterator<Item = u32> {
    std::iter::once(0).chain((1..count).rev())
}

/// One stream for all clones if they are alike and reported together, otherwise one for each clone.
fn clones(
    job: &Job,
    template: &StreamSpec,
    files: u32,
    increment: Increment,
    environment: &dyn Environment,
) -> Result<Vec<StreamSpec>, Fault> {
    let count = job.count("numjobs", 1)?.unwrap_or(1);
    let why = format!("a job has at most {MAX_WORKERS} clones; type a smaller number");
    job.refuse_if(count > MAX_WORKERS, "numjobs", why)?;
    let is_grouped = job.on("group_reporting", false)?;
    let is_null = template.create.is_none() && template.cache.is_none();
    let targets = |clone: u32| if is_null { Vec::new() } else { files::paths(job, clone, files) };
    let has_own_files = !is_null && files::own_files(job);
    // Clones with different offsets or sizes have different blocks, and a state file counts the writes of one clone. Such clones need a
    // stream each. Reports in fio's formats still combine a group into one result.
    let need_own_streams = verifies(job) || increment.bytes > 0 || files::filesize_range(job)?.is_some();
    if count == 1 || !is_grouped || need_own_streams {
        let fix = if need_own_streams { "type a smaller numjobs" } else { "type group_reporting too" };
        let why = format!("fathom reports at most {MAX_STREAMS} clones separately; {fix}");
        job.refuse_if(count as usize > MAX_STREAMS, "numjobs", why)?;
        let has_length = files::file_size(job)?.is_some();
        let files_and_loops = u64::from(files) * u64::from(job.count("loops", 1)?.unwrap_or(1));
        let clone = |clone: u32| {
            let first = template.resolved.access.offset_bytes;
            let offset = increment.offset(first, clone);
            let mut stream = StreamSpec { target: targets(clone), ..template.clone() };
            stream.resolved.access.offset_bytes = offset;
            if has_length {
                // The length of the file is the same for all clones. A clone uses the part after its own offset.
                stream.size = template.size.map(|size| size.saturating_sub(offset - first));
                let why = "a clone begins at or beyond filesize; type a smaller increment, or fewer clones";
                job.refuse_if(stream.size == Some(0), "offset_increment", why)?;
                if !files::has_io_size(job)? {
                    let within = stream.size.map(|size| size.saturating_mul(files_and_loops));
                    stream.resolved.limit.bytes = template
                        .resolved
                        .limit
                        .bytes
                        .map(|bytes| within.map_or(bytes, |most| bytes.min(most)));
                }
            } else {
                stream.create =
                    template.create.map(|c| Create { bytes: c.bytes.saturating_add(offset - first), ..c });
            }
            if offset > 0 {
                files::end_after_one_pass_with_holes(job, &mut stream)?;
            }
            files::draw_sizes(job, if has_own_files { clone } else { 0 }, files, environment, &mut stream)?;
            Ok(stream)
        };
        return clone_numbers(count).map(clone).collect();
    }
    let target: Vec<String> = (0..if has_own_files { count } else { 1 }).flat_map(targets).collect();
    let why = format!("the clones may have at most {MAX_TARGETS} files; type a filename, or fewer clones");
    job.refuse_if(target.len() > MAX_TARGETS, "numjobs", why)?;
    let all = |n: u64| n.saturating_mul(u64::from(count));
    let mut stream = StreamSpec {
        target,
        limit_iops: template.limit_iops.map(|limit| limit.times(count.into())),
        rate: template.rate.map(|n| n * f64::from(count)),
        limit_bandwidth: template.limit_bandwidth.map(|limit| limit.times(count.into())),
        ..template.clone()
    };
    stream.give("workers").workers = count;
    stream.resolved.clones = Some(if has_own_files { Clones::Own } else { Clones::Same });
    stream.resolved.limit.bytes = stream.resolved.limit.bytes.map(all);
    stream.resolved.limit.operations = stream.resolved.limit.operations.map(all);
    Ok(vec![stream])
}

/// Verification methods of fio that store a header in the block, most of them with a checksum.
const METHODS_WITH_HEADER: &str = "md5 crc64 crc32 crc32c-intel crc32c crc16 crc7 sha1 sha256 sha512 sha3-224 sha3-256 sha3-384 sha3-512 xxhash meta pattern_hdr";

/// Seed of the data in verified blocks if `randseed` is not typed.
const SEED: u64 = 0x6669_6f20_7665_7266;

/// Whether a job has a method of verification.
pub(super) fn verifies(job: &Job) -> bool {
    !matches!(job.text("verify"), None | Some("none" | "0"))
}

/// Returns the content of the blocks, with whether reads are compared with it (`None` if the job sets no content), and whether a later
/// phase reads the blocks back.
fn verification(
    job: &Job,
    rw: &ParsedRw,
    environment: &dyn Environment,
) -> Result<(Option<Verify>, bool), Fault> {
    let read = |option: &str| job.parse(option, |text| pattern(text, environment));
    let content_only = |content| Verify { content, checks: false, back: None, fatal: false };
    let verify_pattern = read("verify_pattern")?;
    let content = match job.text("verify").unwrap_or("none") {
        "0" | "none" => return Ok((read("buffer_pattern")?.map(content_only), false)),
        "pattern" => verify_pattern
            .ok_or_else(|| job.fault("verify", "there is no pattern; type verify_pattern=0xdeadbeef too"))?,
        "null" => {
            return Err(job.fault("verify", "nothing is compared; type verify=crc32c, or remove verify"));
        }
        known if METHODS_WITH_HEADER.split(' ').any(|one| one == known) => {
            let seed = job.number("randseed")?.unwrap_or(SEED);
            verify_pattern.unwrap_or(Content::Stamps { seed })
        }
        _ => {
            return Err(job.fault(
                "verify",
                "fio has no such method; type verify=crc32c, md5, sha256, xxhash or pattern",
            ));
        }
    };
    let (reads_back, only_verifies) = (job.on("do_verify", true)?, job.on("verify_only", false)?);
    // A read in a mix may find a block that was not written yet.
    let checks = only_verifies || rw.directions() == [0];
    let fatal = job.on("verify_fatal", false)?;
    let back = reads_back && rw.writes() && !only_verifies;
    let verify = Verify { content, checks, back: None, fatal };
    Ok((Some(verify), back))
}

/// Maximum length of a pattern. fio 3.33 allows 512 bytes, later versions a whole block.
const MAX_PATTERN_BYTES: usize = 64 << 10;
/// Bytes of an offset in a pattern.
const OFFSET_BYTES: usize = 8;

/// Parses a pattern: strings, contents of files, numbers, and `%o` for the offset of the operation.
fn pattern(text: &str, environment: &dyn Environment) -> Result<Content, String> {
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' => {
                let (inside, rest) = quoted(rest, '"')?;
                bytes.extend(inside.bytes());
                rest
            }
            '\'' => {
                let (file, rest) = quoted(rest, '\'')?;
                bytes.extend(
                    environment
                        .bytes(file, MAX_PATTERN_BYTES)
                        .map_err(|e| format!("{file} cannot be read: {e}; type the name of a file"))?,
                );
                rest
            }
            '%' => {
                let rest = rest
                    .strip_prefix("%o")
                    .ok_or("only %o, the offset, is supported; type %o or a number")?;
                offsets.push(bytes.len());
                bytes.extend([0; OFFSET_BYTES]);
                rest
            }
            _ => pattern_number(rest, &mut bytes)?,
        };
        if bytes.len() > MAX_PATTERN_BYTES {
            return Err(format!("the pattern has more than {MAX_PATTERN_BYTES} bytes; type fewer bytes"));
        }
    }
    if bytes.is_empty() {
        Err("the pattern is empty; type 0xdeadbeef or \"abc\"".into())
    } else {
        Ok(Content::Pattern { bytes, offsets })
    }
}

/// The text between two quotes, and the rest.
fn quoted(text: &str, quote: char) -> Result<(&str, &str), String> {
    let inside = text.strip_prefix(quote).unwrap_or(text);
    inside.split_once(quote).ok_or_else(|| format!("a closing {quote} is missing; type it at the end"))
}

/// Parses a number at the beginning of a text, appends it to `bytes`, and returns the rest. The bytes of a hexadecimal number keep their
/// order. A decimal number is appended with its lowest byte first, without its high zero bytes.
fn pattern_number<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Result<&'t str, String> {
    let no_pattern = || "not a pattern; type 0xdeadbeef, \"abc\", 'file', %o or several of them".to_owned();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let mut count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        // Leave the `0` that begins the next number, as in `0xff0x14`.
        if count > 0 && digits[..count].ends_with('0') && digits[count..].starts_with(['x', 'X']) {
            count -= 1;
        }
        let (digits, rest) = digits.split_at(count);
        // If the number of digits is odd, the first digit is a byte.
        let (odd, pairs) = digits.split_at(count % 2);
        let read = |pair: &str| u8::from_str_radix(pair, 16).map_err(|_| no_pattern());
        if !odd.is_empty() {
            bytes.push(read(odd)?);
        }
        for at in (0..pairs.len()).step_by(2) {
            bytes.push(read(&pairs[at..at + 2])?);
        }
        return if count == 0 { Err(no_pattern()) } else { Ok(rest) };
    }
    let sign = usize::from(text.starts_with('-'));
    let mut end = sign + text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    // Leave the `0` that begins a following hexadecimal number, as in `-100xab`.
    if end > sign + 1 && text[..end].ends_with('0') && text[end..].starts_with(['x', 'X']) {
        end -= 1;
    }
    let (digits, rest) = text.split_at(end);
    let value: i32 = digits.parse().map_err(|_| no_pattern())?;
    let all = value.to_le_bytes();
    let used = all.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes.extend(&all[..used]);
    Ok(rest)
}

/// Engines that support priorities of single operations.
const PRIORITY_ENGINES: [&str; 2] = ["io_uring", "libaio"];
/// The options for priorities of single operations. Errors name the first of them that the job has.
const PRIORITY_OPTIONS: [&str; 4] = ["cmdprio_percentage", "cmdprio_bssplit", "cmdprio_class", "cmdprio"];

/// Sets which operations have their own priority.
pub(super) fn priorities(job: &Job, rw: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    let Some(typed) = PRIORITY_OPTIONS.into_iter().find(|option| job.text(option).is_some()) else {
        return Ok(());
    };
    let is_able = job.engine().is_some_and(|engine| PRIORITY_ENGINES.contains(&engine));
    let why = "this works only with ioengine=io_uring or libaio; type one of them, or prio and prioclass";
    job.refuse_if(!is_able, typed, why)?;
    let mut all = Vec::new();
    let mix = stream.mix;
    let does =
        |kind: &Kind| rw.directions().contains(&(*kind as usize)) && mix.is_none_or(|mix| mix.does(*kind));
    for kind in Kind::MOVING.into_iter().filter(does) {
        let percent = job.numbers("cmdprio_percentage")?[kind as usize];
        let split =
            job.parse("cmdprio_bssplit", |text| Ok(value::triplet(text)?[kind as usize].map(str::to_owned)))?;
        let split = split.flatten();
        let why = "the option cannot be combined with cmdprio_percentage; type only one of them";
        job.refuse_if(percent > 0 && split.is_some(), "cmdprio_bssplit", why)?;
        let fault = |option| move |why: String| job.fault(option, why);
        if percent > 0 {
            let percent = value::percent(percent).map_err(fault("cmdprio_percentage"))?;
            all.push(OpPriority {
                kind: Some(kind),
                bytes: None,
                percent,
                priority: priority_of(job, kind)?,
            });
        }
        for piece in split.iter().flat_map(|split| split.split(':')) {
            all.extend(size_priority(job, kind, piece)?);
        }
    }
    values::check_op_priorities(&all).map_err(|why| job.fault(typed, why))?;
    stream.resolved.op_priorities = all;
    Ok(())
}

/// The priority that `cmdprio_class` and `cmdprio` give to a kind of operation. As in fio, the default class is real-time.
fn priority_of(job: &Job, kind: Kind) -> Result<IoPriority, Fault> {
    let class = job.by_direction("cmdprio_class", |text| job.units("cmdprio_class").whole(text))?;
    let class = class[kind as usize].unwrap_or(REAL_TIME);
    let level = priority_level(job, "cmdprio", job.numbers("cmdprio")?[kind as usize])?;
    job.refuse_if(class == IDLE && level > 0, "cmdprio", "the idle class has no levels; remove the option")?;
    priority_of_class(class, level).ok_or_else(|| job.fault("cmdprio_class", NO_CLASS))
}

/// Parses a size with its share: `4k/20` has the priority that `cmdprio_class` and `cmdprio` give, `4k/20/1/0` has its own priority. `None`
/// for a share of 0.
fn size_priority(job: &Job, kind: Kind, piece: &str) -> Result<Option<OpPriority>, Fault> {
    let fault = |why: &str| job.fault("cmdprio_bssplit", why);
    let fields: Vec<&str> = piece.split('/').map(str::trim).collect();
    let number = |text: &str| job.units("cmdprio_bssplit").whole(text).map_err(|why| fault(&why));
    let (size, percent, priority) = match *fields.as_slice() {
        [size, percent] => (size, percent, priority_of(job, kind)?),
        [.., hint] if fields.len() == 5 && number(hint)? > 0 => {
            return Err(fault(
                "fathom passes no hints of command duration limits; leave the fifth number out, or type 0",
            ));
        }
        [size, percent, class, level] | [size, percent, class, level, _] => {
            let level = priority_level(job, "cmdprio_bssplit", number(level)?)?;
            let priority = priority_of_class(number(class)?, level).ok_or_else(|| fault(NO_CLASS))?;
            (size, percent, priority)
        }
        _ => {
            return Err(fault(
                "a size needs a percentage, or a percentage, class and level; type 4k/20 or 4k/20/1/0",
            ));
        }
    };
    let bytes = u32::try_from(number(size)?)
        .map_err(|_| fault("the size is not below 4 GiB; type a smaller size"))?;
    let percent = value::percent(number(percent.trim_end_matches('%'))?).map_err(|why| fault(&why))?;
    Ok((percent > 0).then_some(OpPriority { kind: Some(kind), bytes: Some(bytes), percent, priority }))
}

/// Sets which errors do not end the job. By default each error counts towards `max-errors`.
pub(super) fn errors(job: &Job, rw: &ParsedRw, checks: bool, stream: &mut StreamSpec) -> Result<(), Fault> {
    let mut ignored = match job.text("continue_on_error") {
        None | Some("none" | "0") => Vec::new(),
        Some(text) => {
            let all = tolerated(job, checks, text)?;
            if rw.directions().iter().all(|direction| all.contains(&Kind::ALL[*direction])) {
                stream.resolved.max_errors = ALL_ERRORS;
            }
            all.into_iter().map(|kind| IgnoredError { kind: Some(kind), errno: None }).collect()
        }
    };
    if stream.resolved.max_errors == ALL_ERRORS {
        ignored.clear();
    }
    if let Some(text) = job.text("ignore_error").map(by_direction).filter(|text| !text.is_empty()) {
        let unknown = "an error is unknown; type names or numbers of errors, such as EIO:ENOSPC,28";
        ignored.extend(ignored_errors(&text).map_err(|_| job.fault("ignore_error", unknown))?);
    }
    stream.resolved.ignored_errors = ignored;
    Ok(())
}

/// Kinds of operations whose errors are tolerated.
fn tolerated(job: &Job, checks: bool, text: &str) -> Result<Vec<Kind>, Fault> {
    match text {
        "all" | "io" | "1" | "" => Ok(Kind::ALL.to_vec()),
        "read" => Ok(vec![Kind::Read]),
        // In fio, every error that is not one of a read is one of a write (`td_error_type`).
        "write" => Ok(vec![Kind::Write, Kind::Trim, Kind::Sync]),
        // fathom cannot tell verification errors from others, so it tolerates all.
        "verify" if checks => Ok(Kind::ALL.to_vec()),
        _ => Err(job.fault(
            "continue_on_error",
            "fio has no such value, or nothing is verified; type none, read, write, io or all",
        )),
    }
}

/// Options that disable a kind of log.
const DISABLED: [(&str, LogKind); 3] =
    [("disable_lat", LogKind::Lat), ("disable_slat", LogKind::Slat), ("disable_clat", LogKind::Clat)];
/// Maximum coarseness of a histogram: 2^6 buckets become one.
const MAX_COARSENESS: u64 = 6;

/// The requested logs; `None` if no log is requested.
pub(super) fn logs(job: &Job) -> Result<Option<Logs>, Fault> {
    let mut logs = Logs::default();
    for (option, kinds) in LOGS {
        let Some(prefix) = job.text(option) else { continue };
        let prefix = if prefix.is_empty() { job.name() } else { prefix };
        for kind in kinds {
            let disabled = DISABLED.iter().find(|(_, log)| log == kind);
            if !disabled.map_or(Ok(false), |(switch, _)| job.on(switch, false))? {
                logs.files.push((*kind, prefix.to_owned()));
            }
        }
    }
    // As in fio, a replay writes no log of its operations.
    if let Some(file) = job.text("write_iolog").filter(|file| !file.is_empty() && !job.is_replay()) {
        logs.files.push((LogKind::Iolog, file.to_owned()));
    }
    let average = job.number("log_avg_msec")?.unwrap_or(0);
    let at_most = |option| Ok(job.number(option)?.map_or(average, |ms| ms.min(average)));
    (logs.latency_ms, logs.bandwidth_ms, logs.iops_ms) =
        (average, at_most("bwavgtime")?, at_most("iopsavgtime")?);
    logs.histogram_ms = job.number("log_hist_msec")?.unwrap_or(0);
    logs.coarseness = match job.number("log_hist_coarseness")?.unwrap_or(0) {
        coarse @ 0..=MAX_COARSENESS => coarse as u32,
        _ => return Err(job.fault("log_hist_coarseness", "the number is out of range; type 0 to 6")),
    };
    logs.value = log_value(job)?;
    logs.offset = job.on("log_offset", false)?;
    logs.priority = job.on("log_prio", false)?;
    logs.issue_time = job.on("log_issue_time", false)?;
    logs.unix_epoch = job.on("log_unix_epoch", false)? || job.on("log_alternate_epoch", false)?;
    logs.together = !job.on("per_job_logs", true)?;
    // Without an interval fio writes an empty file.
    let is_empty = logs.files.iter().any(|(kind, _)| *kind == LogKind::ClatHist) && logs.histogram_ms == 0;
    let why = "a histogram log needs an interval; type log_hist_msec=1000 too";
    job.refuse_if(is_empty, "write_hist_log", why)?;
    let has_latencies = logs.files.iter().any(|(kind, _)| *kind == LogKind::Lat || *kind == LogKind::Clat);
    let lacks = logs.issue_time && !(logs.offset && has_latencies);
    job.refuse_if(lacks, "log_issue_time", "the option needs write_lat_log and log_offset=1; type both")?;
    Ok(Some(logs).filter(|logs| !logs.files.is_empty()))
}

/// The latency in a log line about several operations: their mean, their maximum, or both.
fn log_value(job: &Job) -> Result<LogValue, Fault> {
    // `log_window_value` is the newer name of `log_max_value`.
    let option = job.last("log_window_value", "log_max_value").unwrap_or("log_window_value");
    match (option, job.text(option)) {
        ("log_window_value", Some("max")) => Ok(LogValue::Largest),
        ("log_window_value", Some("both")) => Ok(LogValue::Both),
        ("log_window_value", _) | (_, None) => Ok(LogValue::Mean),
        _ => Ok(if job.on(option, false)? { LogValue::Largest } else { LogValue::Mean }),
    }
}

#[test]
fn patterns_are_read_as_fio_reads_them() {
    use crate::fio::job_file::Machine;
    let read = |text: &str| pattern(text, &Machine);
    let bytes = |bytes: &[u8]| Ok(Content::Pattern { bytes: bytes.to_vec(), offsets: Vec::new() });
    // The examples of fio's lib/pattern.c.
    assert_eq!(read("\"abcd\""), bytes(b"abcd"));
    assert_eq!(read("-1024"), bytes(&[0x00, 0xfc, 0xff, 0xff]));
    assert_eq!(read("66"), bytes(&[0x42]));
    assert_eq!(read("0xFF0X1"), bytes(&[0xff, 0x01]));
    assert_eq!(read("\"123\"0xFFeeCC"), bytes(&[0x31, 0x32, 0x33, 0xff, 0xee, 0xcc]));
    let seventh = vec![0xf6, 0xff, 0xff, 0xff, 0xab, 0x31, 0, 0, 0, 0, 0, 0, 0, 0, 0x32];
    let with_offset = Content::Pattern { bytes: seventh, offsets: vec![6] };
    assert_eq!(read("-100xab\"1\"%o\"2\""), Ok(with_offset));
    assert_eq!(read("0"), bytes(&[0]));
    for bad in [
        "",
        "abc",
        "\"abc",
        "%x",
        "0x",
        "9999999999",
        "'/nowhere/at/all'",
        &format!("\"{}\"", "a".repeat(MAX_PATTERN_BYTES + 1)),
    ] {
        assert!(read(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}
