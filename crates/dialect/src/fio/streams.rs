//! Streams: a job of fio's as one stream of ours, or as one for each clone.
//!
//! For: engines, files, ends, data and threads. Not for: which jobs run at once ([`super::phases`]), nor blocks ([`super::access`]).

use super::access::{self, Way};
use super::around::Around;
use super::checked::checked;
use super::jobs::{Fault, Job};
use super::logs::logs;
use super::names;
use super::options::OTHER_ENGINES;
use super::rates;
use super::value::{Bare, list, mask};
use model::job::{Advice, Batch, Cache, Clones, Create, Filling, Options, Sharing, Sizes};
use model::spec::limits::{MAX_DEPTH, MAX_WORKERS};
use model::spec::{EngineSpec, StreamSpec, parsers};

/// The engine where none is said.
const ENGINE: &str = "psync";

/// Engines of fio's that are carried out, and what each is called here.
pub(super) const ENGINES: &[(&str, &str)] = &[
    ("sync", "rw"),
    ("psync", "sync"),
    ("pvsync", "vsync"),
    ("pvsync2", "vsync"),
    ("libaio", "libaio"),
    ("io_uring", "io_uring"),
    ("posixaio", "posixaio"),
    ("mmap", "mmap"),
    ("splice", "splice"),
    ("null", "null"),
];
/// Those of them that have several operations in flight.
const DEEP: [&str; 4] = ["libaio", "io_uring", "posixaio", "null"];
/// Switches of engines, and the engines that have each.
pub(super) const ENGINE_OPTIONS: &[(&str, &[&str])] = &[
    ("hipri", &["io_uring", "pvsync2"]),
    ("uncached", &["io_uring", "pvsync2"]),
    ("nowait", &["pvsync2"]),
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

/// Times of a job in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) ramp: u64,
    pub(super) delay: u64,
    /// `None` where it ends by what it has moved.
    pub(super) runtime: Option<u64>,
}

/// What a job is as streams.
pub(super) fn streams(job: &Job, around: &dyn Around) -> Result<Streams, Fault> {
    let way = access::way(job)?;
    let mut one = StreamSpec { name: Some(name(job)?), ..StreamSpec::default() };
    access::say(job, &way, &mut one)?;
    let deep = engine(job, &mut one)?;
    depth(job, deep, &mut one)?;
    rates::pace(job, &way, &mut one)?;
    one.advice = advice(job, &way, &one)?;
    let (verify, back) = checked(job, &way, around)?;
    one.verify = verify;
    durability_and_data(job, &way, &mut one)?;
    place(job, &mut one)?;
    let times = times(job)?;
    one.delay = Some(times.delay).filter(|d| *d > 0);
    one.log_interval = logs(job)?.map(|logs| logs.interval_ns());
    let files = names::files(job)?;
    region(job, &way, files, times, &mut one)?;
    sharing(job, files, &mut one)?;
    Ok(Streams { all: clones(job, &one, files)?, times, back })
}

fn name(job: &Job) -> Result<String, Fault> {
    parsers::name(job.name()).map_err(|why| job.fault("name", why))
}

/// The engine with its options and the open mode; whether it takes several operations at a time.
fn engine(job: &Job, one: &mut StreamSpec) -> Result<bool, Fault> {
    let said = job.text("ioengine").unwrap_or(ENGINE);
    let Some((_, name)) = ENGINES.iter().find(|(engine, _)| *engine == said) else {
        let other = OTHER_ENGINES.iter().find(|(engine, ..)| *engine == said);
        let why = other.map_or(
            "fio has no such engine; type psync, libaio, io_uring, posixaio, mmap or null",
            |(_, why, _)| *why,
        );
        return Err(job.fault("ioengine", why));
    };
    let options = engine_options(job, said)?;
    one.engine = Some(EngineSpec { name: (*name).into(), options });
    one.cache = match *name {
        // Nothing is opened.
        "null" => None,
        "mmap" => Some(Cache::Mmap),
        _ => Some(cache(job)?),
    };
    Ok(DEEP.contains(&said))
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
            "nowait" => put("nowait", None),
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
fn advice(job: &Job, way: &Way, one: &StreamSpec) -> Result<Option<Advice>, Fault> {
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

fn depth(job: &Job, deep: bool, one: &mut StreamSpec) -> Result<(), Fault> {
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
    let complete = job.count("iodepth_batch_complete_min", 1)?.unwrap_or(1).min(depth);
    one.depth = Some(depth);
    one.batch = Some(Batch { submit, complete });
    Ok(())
}

fn durability_and_data(job: &Job, way: &Way, one: &mut StreamSpec) -> Result<(), Fault> {
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
    for option in ["end_fsync", "fsync_on_close"] {
        job.on(option, false)?;
    }
    if !way.writes() {
        // As in fio, where these are about writes alone.
        return Ok(());
    }
    (one.fsync, one.fdatasync) = (fsync, fdatasync);
    if one.verify.is_some() {
        // What is checked has data of its own.
        return Ok(());
    }
    if zeros {
        one.zeros = Some(true);
    } else {
        (one.compress, one.dedup) = (compress, dedup);
    }
    Ok(())
}

fn place(job: &Job, one: &mut StreamSpec) -> Result<(), Fault> {
    let cpus = match job.last("cpus_allowed", "cpumask") {
        Some("cpumask") => Some(("cpumask", mask(job.text("cpumask").unwrap_or_default()))),
        Some(option) => Some((option, Ok(list(job.text(option).unwrap_or_default())))),
        None => None,
    };
    if let Some((option, text)) = cpus {
        let read = text.and_then(|text| parsers::cpus(&mut one.place.cpus, &text));
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
    if let Some(text) = job.text("numa_cpu_nodes") {
        let node = text.parse().map_err(|_| {
            job.fault("numa_cpu_nodes", "workers of a stream are on one node; type its number")
        })?;
        one.place.node = Some(node);
    }
    Ok(())
}

fn times(job: &Job) -> Result<Times, Fault> {
    if job.text("startdelay").is_some_and(|text| text.contains('-')) {
        return Err(job.fault("startdelay", "a delay is not drawn here; type one time"));
    }
    let runtime = job.time("runtime", Bare::Seconds)?.filter(|t| *t > 0);
    let times = Times {
        ramp: job.time("ramp_time", Bare::Seconds)?.unwrap_or(0),
        delay: job.time("startdelay", Bare::Seconds)?.unwrap_or(0),
        runtime,
    };
    if times.ramp > 0 && times.delay > 0 {
        return Err(job.fault(
            "ramp_time",
            "a ramp behind a delay is not measured from its end; leave startdelay or ramp_time out",
        ));
    }
    for (option, time) in
        [("runtime", runtime.unwrap_or(0)), ("ramp_time", times.ramp), ("startdelay", times.delay)]
    {
        if time > model::spec::limits::MAX_TIME_NS {
            return Err(job.fault(option, "it is more than a day; type less"));
        }
    }
    if job.on("time_based", false)? && runtime.is_none() {
        return Err(job.fault("time_based", "it needs to know for how long; type runtime=60 too"));
    }
    Ok(times)
}

/// How much of each file, what is made where there is none, and what ends it.
fn region(job: &Job, way: &Way, files: u32, times: Times, one: &mut StreamSpec) -> Result<(), Fault> {
    let nothing = one.engine.as_ref().is_some_and(|e| e.name == "null");
    if job.text("filesize").is_some_and(|text| text.contains('-')) {
        return Err(job.fault("filesize", "sizes of files are not drawn; type one size"));
    }
    let (size, each) = (job.bytes("size")?.filter(|s| *s > 0), job.bytes("filesize")?.filter(|s| *s > 0));
    let file = each.or(size.map(|size| size / u64::from(files)));
    if file == Some(0) {
        return Err(job.fault("size", "it leaves nothing for each file; type more"));
    }
    if nothing && file.is_none() {
        return Err(job.fault("size", "the engine null has no file whose size it could take; type size=1g"));
    }
    one.size = file;
    one.offset = job.bytes("offset")?.filter(|o| *o > 0 && !nothing);
    // What is compared was written before: a new file has nothing that could be right.
    let checks = one.verify.as_ref().is_some_and(|verify| verify.checks);
    let makes = job.on("allow_file_create", true)? && !checks;
    if let (false, Some(file), true) = (nothing, file, makes) {
        let bytes = file.saturating_add(one.offset.unwrap_or(0));
        one.create = Some(Create { bytes, filling: filling(job, way)?, unlink: job.on("unlink", false)? });
    }
    ends(job, (size, each), times, one)
}

/// What is in a file that is made: what is only written need not be there before.
fn filling(job: &Job, way: &Way) -> Result<Filling, Fault> {
    if !way.only_writes() || job.on("overwrite", false)? {
        return Ok(Filling::Data);
    }
    match job.text("fallocate").unwrap_or("native") {
        "native" | "posix" | "1" => Ok(Filling::Blocks),
        "none" | "0" => Ok(Filling::Nothing),
        _ => Err(job
            .fault("fallocate", "files are allocated with their length, or not at all; type native or none")),
    }
}

/// What ends it: so many passes, bytes or operations; nothing but the time where it is `time_based`.
fn ends(
    job: &Job,
    (size, each): (Option<u64>, Option<u64>),
    times: Times,
    one: &mut StreamSpec,
) -> Result<(), Fault> {
    one.limit.operations = job.number("number_ios")?.filter(|n| *n > 0);
    if job.on("time_based", false)? {
        return Ok(());
    }
    if times.ramp > 0 && times.runtime.is_none() {
        return Err(job.fault("ramp_time", "fio counts what it moves in the ramp to the size, and fathom does not; type time_based and runtime"));
    }
    let loops = job.count("loops", 1)?.unwrap_or(1);
    let amount =
        job.bytes("io_size")?.filter(|a| *a > 0).or_else(|| size.filter(|_| each.is_some() && each != size));
    let passes_over = amount.zip(size).is_some_and(|(amount, size)| amount > size);
    if one.positions.is_some() && (loops > 1 || passes_over) {
        let option = if loops > 1 { "loops" } else { "io_size" };
        let why = "where one direction of a mix comes to the end, fio begins again with both, and fathom with that one; type time_based and runtime, or less";
        return Err(job.fault(option, why));
    }
    match amount {
        Some(bytes) => {
            // An operation that would go beyond is not begun.
            let least = one.bs.as_ref().map_or(1, |bs| {
                [&bs.read, &bs.write, &bs.trim].map(Sizes::least).into_iter().min().unwrap_or(1)
            });
            let whole = bytes / u64::from(least.max(1)) * u64::from(least);
            if whole == 0 {
                return Err(job.fault("io_size", "it is less than one operation; type more"));
            }
            one.limit.bytes = Some(whole.saturating_mul(u64::from(loops)));
        }
        None => one.passes = Some(loops),
    }
    Ok(())
}

fn sharing(job: &Job, files: u32, one: &mut StreamSpec) -> Result<(), Fault> {
    let said = job.text("file_service_type").unwrap_or("roundrobin");
    let sharing = match said.split(':').next().unwrap_or_default() {
        "roundrobin" if said.split(':').nth(1).is_none_or(|n| n == "1") => Sharing::RoundRobin,
        "random" if !said.contains(':') => Sharing::Random,
        _ if files == 1 => Sharing::RoundRobin,
        _ => {
            return Err(job.fault(
                "file_service_type",
                "files take turns operation by operation, or are drawn; type roundrobin or random",
            ));
        }
    };
    one.sharing = Some(sharing).filter(|_| files > 1);
    Ok(())
}

/// One stream for all clones where they are one result; else one for each.
fn clones(job: &Job, one: &StreamSpec, files: u32) -> Result<Vec<StreamSpec>, Fault> {
    let count = job.count("numjobs", 1)?.unwrap_or(1);
    if count > MAX_WORKERS {
        return Err(job.fault("numjobs", format!("a stream has {MAX_WORKERS} workers at most; type less")));
    }
    let increment = job.bytes("offset_increment")?.unwrap_or(0);
    let grouped = job.on("group_reporting", false)?;
    let nothing = one.create.is_none() && one.cache.is_none();
    let targets = |clone: u32| if nothing { Vec::new() } else { names::paths(job, clone, files) };
    if count == 1 || !grouped {
        if count as usize > model::spec::limits::MAX_STREAMS {
            let most = model::spec::limits::MAX_STREAMS;
            return Err(job.fault(
                "numjobs",
                format!("more than {most} clones are not told apart; type group_reporting too"),
            ));
        }
        let clone = |clone: u32| {
            let offset = one.offset.unwrap_or(0).saturating_add(increment.saturating_mul(u64::from(clone)));
            let create = one
                .create
                .map(|c| Create { bytes: c.bytes.saturating_add(offset - one.offset.unwrap_or(0)), ..c });
            StreamSpec {
                target: targets(clone),
                offset: Some(offset).filter(|o| *o > 0),
                create,
                ..one.clone()
            }
        };
        return Ok((0..count).map(clone).collect());
    }
    if increment > 0 {
        let why =
            "clones that begin at offsets of their own are results of their own; leave group_reporting out";
        return Err(job.fault("offset_increment", why));
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
        limit_iops: one.limit_iops.map(|n| n * f64::from(count)),
        limit_bandwidth: one.limit_bandwidth.map(all),
        ..one.clone()
    };
    stream.limit.bytes = stream.limit.bytes.map(all);
    stream.limit.operations = stream.limit.operations.map(all);
    Ok(vec![stream])
}
