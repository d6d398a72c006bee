//! DISKSPD: its command lines and XML profiles as jobs. An option that Linux does not support is refused by its name, with the reason and
//! what to type instead.
//!
//! `command` or `xml` reads a profile. `validate` checks the profile by DISKSPD's rules, and for settings that fathom or Linux does not
//! support. This module turns the profile into phases and streams. [`options`] is the table of all options. The reference is DISKSPD's
//! source and published tests, since it does not run on Linux.

mod command;
pub mod options;
mod validate;
mod xml;

pub use self::command::{Ask, CommandLine, Environment};
use crate::names_in_tool::format_for_tool;
use crate::trouble::{COMMAND_LINE, Diagnostic, Trouble};
use crate::{Language, Objections, SECOND_NS, Tool};
use model::diskspd::{
    Cache as TargetCache, Distribution, Flush, Pool, Profile, Target, Throughput, TimeSpan,
};
use model::job::{
    Advice, Cache, Create, Every, Filling, IoPriority, Mix, Options, Order, PerKind, Sharing, Sizes, Start,
    Think, Zone, ZoneSize,
};
use model::spec::conditions::RateLimit;
use model::spec::{EngineSpec, JobSpec, PhaseSpec, Rw, StreamSpec, Typed, TypedStream};
use std::ops::Range;

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Diskspd, extension: "xml", parse };

/// Reads an XML profile.
fn parse(name: &str, text: &str, objections: Objections) -> Result<JobSpec, Trouble> {
    let (profile, source) = xml::read(name, text, &[])?;
    let line = CommandLine { profile, source, ..CommandLine::default() };
    let mut job = job(&line, &[], objections)?.unwrap_or_default();
    // `fathom run` may repeat the job, and reports all workers together.
    job.streams_mut().for_each(|stream| stream.resolved.each_worker_ns = None);
    Ok(job)
}

/// The job of a command line. By default, threads are bound to the CPUs of `cpus` in turn. `None` if the profile is only printed;
/// unsupported settings are then allowed.
///
/// # Errors
/// All errors, each with its place and what to type instead.
pub fn job(line: &CommandLine, cpus: &[u32], objections: Objections) -> Result<Option<JobSpec>, Trouble> {
    let (mut diagnostics, warnings) = validate::validate(line);
    if line.ask != Ask::Profile {
        diagnostics.extend(validate::refused(line));
    }
    line.source.refuse_errors(diagnostics)?;
    if line.ask == Ask::Profile {
        return Ok(None);
    }
    let mut job = job_spec(&line.profile, cpus);
    let problems = job.check().into_iter().chain(objections(&job));
    let diagnostics: Vec<Diagnostic> = problems
        .map(|problem| {
            let message = problem.spelled(|key, value| format_for_tool(Tool::Diskspd, key, value));
            // No option begins with NUL, so on a command line the whole text is marked.
            Diagnostic::new(line.source.place(problem.phase, problem.stream, "\0"), message)
        })
        .collect();
    line.source.refuse_errors(diagnostics)?;
    job.remarks = line.remarks.iter().cloned().chain(warnings).collect();
    Ok(Some(job))
}

const MS_NS: u64 = 1_000_000;

/// Translates a profile into a job. Threads are bound to `cpus` in turn by default.
fn job_spec(profile: &Profile, cpus: &[u32]) -> JobSpec {
    let phases: Vec<PhaseSpec> = profile.spans.iter().map(|span| phase(span, cpus)).collect();
    let typed = phases.iter().map(|phase| vec![TypedStream::default(); phase.streams.len()]).collect();
    JobSpec {
        seed: profile.spans.first().map(|span| span.seed.into()),
        typed: Some(Typed { phases: typed, profile: Some(profile.clone()), ..Typed::default() }),
        phases,
        ..JobSpec::default()
    }
}

fn phase(span: &TimeSpan, cpus: &[u32]) -> PhaseSpec {
    let mut streams = Vec::new();
    for pool in span.pools() {
        let targets =
            || pool.targets.iter().filter_map(|(at, weight)| Some((span.targets.get(*at)?, *weight)));
        // The targets of one thread differ only in path and weight, so the first one describes all. Other differences were refused.
        let Some((first, _)) = targets().next() else { continue };
        let mut one = stream(span, first, &pool);
        one.target = targets().map(|(target, _)| target.path.clone()).collect();
        one.resolved.place.cpus = bound_to(span, cpus, &pool.threads);
        one.resolved.place.split = !one.resolved.place.cpus.is_empty();
        streams.push(one);
    }
    PhaseSpec {
        time: Some(u64::from(span.duration_s) * SECOND_NS),
        warmup: Some(u64::from(span.warmup_s) * SECOND_NS),
        cooldown: Some(u64::from(span.cooldown_s) * SECOND_NS),
        streams,
    }
}

/// The CPUs to which these threads are bound, in the order of the threads. Thread n of the time span gets CPU n of
/// the list, which repeats. For consecutive threads, returns the list, rotated so that it begins with the CPU of the
/// first thread: the workers of the stream take these CPUs in turn. Empty if the threads are not bound.
fn bound_to(span: &TimeSpan, cpus: &[u32], threads: &[u32]) -> Vec<u32> {
    if span.disable_affinity {
        return Vec::new();
    }
    let mut all: Vec<u32> = span.affinity.iter().map(|(_, cpu)| *cpu).collect();
    if all.is_empty() {
        all = cpus.to_vec();
    }
    let (Some(first), count) = (threads.first().copied(), all.len()) else { return all };
    let cpu_index = |thread: u32| (thread as usize).checked_rem(count).unwrap_or(0);
    let are_consecutive = (first..).zip(threads).all(|(next, thread)| next == *thread);
    if are_consecutive {
        all.rotate_left(cpu_index(first));
        return all;
    }
    threads.iter().filter_map(|thread| all.get(cpu_index(*thread)).copied()).collect()
}

/// The stream of a pool of threads. The targets of the pool differ at most in path and weight, and
/// `target` is the first of them.
fn stream(span: &TimeSpan, target: &Target, pool: &Pool) -> StreamSpec {
    let (workers, targets) = (pool.threads.len() as u32, pool.targets.len() as u32);
    let has_thread_depth = span.threads > 0 && span.requests > 0;
    let depth = if has_thread_depth { span.requests } else { target.requests };
    let depth = if target.mapped { 1 } else { depth };
    // Without -O a thread has this depth on each of its targets.
    let in_flight = if has_thread_depth { depth } else { depth.saturating_mul(targets) };
    let weights = pool.targets.iter().map(|(_, weight)| *weight).collect();
    let mut stream = StreamSpec {
        bs: Some(PerKind::all(Sizes::Fixed(target.block))),
        depth: Some(depth),
        engine: engine(target, in_flight),
        cache: Some(cache(target)),
        create: target.create.map(|bytes| Create { bytes, filling: Filling::Data, unlink: false }),
        think: target.think_ms.map(|ms| Think::fixed(u64::from(ms) * MS_NS)),
        burst: target.burst.map(|burst| (burst / workers.max(1)).max(1)),
        ..StreamSpec::default()
    };
    if targets > 1 {
        stream.give("sharing").sharing =
            if has_thread_depth { Sharing::Weighted(weights) } else { Sharing::Each };
    }
    stream.give("workers").workers = workers;
    stream.resolved.place.io_priority = priority(target);
    stream.resolved.advice = advice(target);
    // With 0 only the totals of each worker are recorded.
    stream.resolved.each_worker_ns = Some(if span.iops { u64::from(span.bucket_ms) * MS_NS } else { 0 });
    order(target, workers, &mut stream);
    region(target, &mut stream);
    limit_rate(target, u64::from(workers) * u64::from(targets), &mut stream);
    if target.write_percent > 0 {
        set_write_data(span, target, &mut stream);
    }
    stream
}

/// Sets the directions of the operations and the order of their offsets.
fn order(target: &Target, workers: u32, stream: &mut StreamSpec) {
    let is_random = target.random_percent > 0;
    let rw = match (is_random, target.write_percent) {
        (false, 0) => Rw::Read,
        (false, 100) => Rw::Write,
        (false, _) => Rw::Rw,
        (true, 0) => Rw::Randread,
        (true, 100) => Rw::Randwrite,
        (true, _) => Rw::Randrw,
    };
    stream.rw = Some(rw);
    let is_mixed = (1..100).contains(&target.write_percent);
    stream.mix = is_mixed.then(|| Mix::from_percents(100 - target.write_percent as u8, 0));
    if is_random {
        stream.line.align_bytes = target.step();
        stream.random = match &target.distribution {
            Some(parts) => {
                let is_partly_sequential = target.random_percent < 100;
                stream.line.run_length =
                    is_partly_sequential.then(|| 100.0 / f64::from(target.random_percent));
                Some(zones(parts))
            }
            None if target.random_percent < 100 => Some(Order::Mixed(target.random_percent.into())),
            None => None,
        };
        // With -rs, each sequential run only reads or only writes.
        stream.line.mix_by_run = is_mixed && target.random_percent < 100;
        return;
    }
    // A stride of 0 repeats one block: `region` reduces the region to this block.
    if target.step() != u64::from(target.block) {
        stream.steps.stride_bytes = target.step();
    }
    if workers > 1 {
        stream.steps.start = match target.thread_stride {
            _ if target.interlocked => Start::Interlocked,
            0 => Start::Same,
            stride => Start::Every(stride),
        };
    }
    if target.parallel && target.requests > 1 && !target.mapped {
        // With -p, all operations in flight of a thread have the same offset.
        stream.line.times = target.requests;
    }
}

fn zones(parts: &Distribution) -> Order {
    let zone = |part: &model::diskspd::Range| Zone {
        access_percent: part.io.into(),
        size: match (parts.percent, part.length) {
            (true, percent) => ZoneSize::Percent(percent as f64),
            (false, 0) => ZoneSize::UpTo(u64::MAX),
            (false, bytes) => ZoneSize::UpTo(bytes),
        },
    };
    Order::Zones(parts.ranges.iter().map(zone).collect())
}

/// Sets the offset and the size of the region.
fn region(target: &Target, stream: &mut StreamSpec) {
    let end = match (target.end, target.create) {
        (0, create) => create,
        // Bytes beyond the end of the file are not accessed.
        (end, create) => Some(create.map_or(end, |bytes| end.min(bytes))),
    };
    stream.resolved.access.offset_bytes = target.base;
    let is_cut = target.end > 0 || target.base > 0;
    stream.size = end.filter(|_| is_cut).map(|end| end.saturating_sub(target.base).max(1));
    if target.alignment == Some(0) && target.random_percent == 0 {
        stream.size = Some(target.block.into());
    }
}

/// Limits the throughput. DISKSPD's limit applies to each thread on each target, the limit of the stream to all of them together.
fn limit_rate(target: &Target, lanes: u64, stream: &mut StreamSpec) {
    match target.throughput {
        Some(Throughput::Iops(iops)) => {
            stream.limit_iops = Some(RateLimit::All(f64::from(iops) * lanes as f64));
        }
        Some(Throughput::BytesPerMs(bytes)) => {
            stream.limit_bandwidth = Some(RateLimit::All(f64::from(bytes) * 1000.0 * lanes as f64));
        }
        None => {}
    }
}

/// The engine of a thread: `mmap` for mapped targets, otherwise `sync` for one request in flight. `None`
/// means fathom's default engine.
fn engine(target: &Target, in_flight: u32) -> Option<EngineSpec> {
    let name = match in_flight {
        _ if target.mapped => "mmap",
        1 => "sync",
        _ => return None,
    };
    Some(EngineSpec { name: name.into(), options: Options::new() })
}

fn cache(target: &Target) -> Cache {
    match (target.cache, target.write_through) {
        _ if target.mapped => Cache::Mmap,
        (TargetCache::Off, false) => Cache::Direct,
        (TargetCache::Off, true) => Cache::DirectDsync,
        (_, false) => Cache::Buffered,
        (_, true) => Cache::Dsync,
    }
}

/// The advice about read-ahead; `None` without a hint, and for direct I/O, which does not read
/// ahead.
fn advice(target: &Target) -> Option<Advice> {
    match (target.random_hint, target.sequential_hint) {
        _ if target.cache == TargetCache::Off => None,
        (true, _) => Some(Advice::Random),
        (false, true) => Some(Advice::Sequential),
        (false, false) => None,
    }
}

fn priority(target: &Target) -> Option<IoPriority> {
    match target.priority {
        1 => Some(IoPriority::Idle),
        2 => Some(IoPriority::BestEffort(7)),
        _ => None,
    }
}

/// Sets the contents of writes, and their flushes.
fn set_write_data(span: &TimeSpan, target: &Target, stream: &mut StreamSpec) {
    match &target.buffer_file {
        Some(file) if target.buffer > 0 => stream.data = Some(file.clone()),
        _ if target.buffer > 0 => {
            // With -Z, writes repeat random data of this size, at least 4 KiB.
            (stream.dedup, stream.dedup_set) = (Some(100), Some(target.buffer.max(4096)));
        }
        _ if target.zeros => stream.zeros = true,
        _ if span.random_writes => {}
        _ => stream.counting = true,
    }
    if target.flush == Some(Flush::View) {
        stream.fsync = Some(Every::writes(1));
    }
}

/// Used in place of an option, for a diagnostic about the target itself.
const TARGET: &str = "#";

/// A text with the places of its options and targets.
#[derive(Clone, Debug, Default)]
struct Source {
    name: String,
    text: String,
    /// The words of a command line.
    words: Vec<(String, Range<usize>)>,
    /// The targets of each time span of an XML profile.
    targets: Vec<Vec<Range<usize>>>,
}

impl Source {
    fn parse(words: &[String]) -> Self {
        let mut source = Self { name: COMMAND_LINE.into(), ..Self::default() };
        for word in words {
            let start = source.text.len();
            source.text += word;
            source.words.push((word.clone(), start..source.text.len()));
            source.text.push(' ');
        }
        source.text = source.text.trim_end().to_owned();
        source
    }

    /// Returns the place of a target of an XML profile. On a command line, returns the place of the last
    /// option that begins with `option`, or of the target if `option` is [`TARGET`]. If there is no such
    /// place, returns the whole text.
    fn place(&self, span: usize, target: usize, option: &str) -> Range<usize> {
        let of_xml = self.targets.get(span).and_then(|targets| targets.get(target));
        let mut targets = self.words.iter().filter(|(word, _)| !word.starts_with('-'));
        let mut words = self.words.iter().rev();
        let word = if option == TARGET {
            targets.nth(target)
        } else {
            words.find(|(word, _)| word.strip_prefix('-').is_some_and(|w| w.starts_with(option)))
        };
        of_xml.or(word.map(|(_, place)| place)).cloned().unwrap_or(0..self.text.len())
    }

    fn refuse_errors(&self, diagnostics: Vec<Diagnostic>) -> Result<(), Trouble> {
        Trouble::refuse_errors(&self.name, &self.text, diagnostics)
    }
}

#[cfg(test)]
mod tests;
