//! Checks of a DISKSPD profile: what DISKSPD refuses on any system, what it warns about, and what Linux or
//! fathom cannot do.

use super::command::{Ask, CommandLine};
use crate::diskspd::TARGET;
use crate::diskspd::options::{NON_VOLATILE, REMOTE, ROUTINES, TEMPORARY};
use crate::trouble::Diagnostic;
use model::diskspd::{Cache, Distribution, Flush, Target, TimeSpan};
use model::spec::number::{MAX_BLOCK_BYTES, MAX_DEPTH, MAX_STREAMS, MAX_TARGETS, MAX_WORKERS};
use std::collections::BTreeSet;

/// The option that a diagnostic is about, and the error.
type OptionError = (&'static str, String);

/// The errors and warnings of a profile.
pub(super) fn validate(line: &CommandLine) -> (Vec<Diagnostic>, Vec<String>) {
    let (mut diagnostics, mut warnings) = (Vec::new(), Vec::new());
    let all = |why: &str| Diagnostic::new(0..line.source.text.len(), why);
    if line.profile.spans.is_empty() {
        diagnostics.push(all("no timespans specified; write a TimeSpan into the profile"));
    }
    for (at, span) in line.profile.spans.iter().enumerate() {
        if span.targets.is_empty() {
            diagnostics.push(all(
                "you need to provide at least one target; type a file or a device after the options",
            ));
        }
        for (number, target) in span.targets.iter().enumerate() {
            let distribution = target.distribution.as_ref().and_then(|all| distribution_error(all, target));
            let is_template = line.ask != Ask::Profile && target.path.starts_with('*');
            let template = is_template.then(|| {
                format!(
                    "template target '{}' was not substituted - all template targets must be substituted to run a profile; type a target for each after the options",
                    target.path
                )
            });
            let errors = target_errors(span, target)
                .chain(order_errors(span, target))
                .chain(distribution.map(|why| ("rd", why)))
                .chain(memory_errors(span, target))
                .chain(template.map(|why| ("X", why)));
            diagnostics.extend(
                errors.map(|(option, why)| Diagnostic::new(line.source.place(at, number, option), why)),
            );
            warnings.extend(warnings_of(span, target).map(str::to_owned));
        }
    }
    (diagnostics, model::distinct(warnings))
}

/// The errors of the rules that are broken.
fn broken<const N: usize>(
    rules: [(bool, &'static str, impl Into<String>); N],
) -> impl Iterator<Item = OptionError> {
    rules.into_iter().filter(|(is_broken, ..)| *is_broken).map(|(_, option, why)| (option, why.into()))
}

fn target_errors(span: &TimeSpan, target: &Target) -> impl Iterator<Item = OptionError> {
    let has_throughput = target.throughput.is_some();
    let (think, burst) = (target.think_ms.unwrap_or(0), target.burst.unwrap_or(0));
    let is_pool = span.threads > 0 && span.requests > 0;
    let rules = [
        (
            span.disable_affinity && !span.affinity.is_empty(),
            "n",
            "-n and -a parameters cannot be used together; type one of them",
        ),
        (
            span.threads > 0 && target.threads > 1,
            "t",
            "-F and -t parameters cannot be used together; type one of them",
        ),
        (
            has_throughput && span.completion_routines,
            "g",
            "-g throughput control cannot be used with -x completion routines; leave -x out",
        ),
        ((think == 0) != (burst == 0), "i", "need to specify -j<think time> with -i<burst size>; type both"),
        (
            is_pool && has_throughput,
            "g",
            "-g throughput control cannot be used with -O outstanding requests per thread; type -o instead",
        ),
        (
            is_pool && think > 0,
            "j",
            "-j think time cannot be used with -O outstanding requests per thread; type -o instead",
        ),
        (
            is_pool && target.parallel,
            "p",
            "-p parallel IO cannot be used with -O outstanding requests per thread; type -o instead",
        ),
        (is_pool && target.weight == 0, "O", "a non-zero target Weight must be specified; write at least 1"),
        (
            is_pool && target.thread_targets.iter().any(|(thread, _)| *thread >= span.threads),
            "O",
            "illegal thread specified for ThreadTarget; write a thread number below ThreadCount",
        ),
        (
            !is_pool && !target.thread_targets.is_empty(),
            "O",
            "ThreadTargets can only be specified when the timespan ThreadCount and RequestCount are specified; write both",
        ),
        (
            target.end > 0 && target.end <= target.base,
            "f",
            "maximum (-f) target offset must be greater than base (-B); type a larger -f",
        ),
    ];
    broken(rules)
}

fn order_errors(span: &TimeSpan, target: &Target) -> impl Iterator<Item = OptionError> {
    let is_random = target.random_percent > 0;
    let has_several_threads = span.threads > 1 || target.threads > 1;
    let has_stride = target.thread_stride > 0;
    let rules = [
        (is_random && has_stride, "T", "-T conflicts with -r; leave -T out"),
        (is_random && target.interlocked, "si", "-si conflicts with -r; type one of them"),
        (is_random && target.parallel, "p", "-p conflicts with -r; leave -p out"),
        (
            !is_random && target.distribution.is_some(),
            "rd",
            "random distribution ranges (-rd) do not apply to sequential-only IO patterns; type -r or -rs too",
        ),
        (!is_random && target.interlocked && has_stride, "T", "-si conflicts with -T; type one of them"),
        (!is_random && target.interlocked && target.parallel, "p", "-si conflicts with -p; type one of them"),
        (
            !is_random && !target.interlocked && has_stride && !has_several_threads,
            "T",
            "-T has no effect unless multiple threads per target are used; type -t2 or more, or remove -T",
        ),
    ];
    broken(rules)
}

/// The first error in the shares of operations by parts of the target.
fn distribution_error(all: &Distribution, target: &Target) -> Option<String> {
    let block = u64::from(target.block);
    let (mut io, mut covered) = (0, 0_u64);
    for (at, range) in all.ranges.iter().enumerate() {
        // The last part may have length 0: it then takes the rest of the target.
        let is_rest = range.length == 0 && at + 1 == all.ranges.len();
        if !all.percent && range.length < block && !is_rest {
            return Some(format!(
                "invalid random distribution target range {} - must be a minimum of the specified block size ({block} bytes); type a larger range",
                range.length
            ));
        }
        if io + range.io > 100 {
            return Some(format!(
                "invalid random distribution IO% {}: can be at most {} - total must be <= 100%; type a smaller percentage",
                range.io,
                100 - io
            ));
        }
        if all.percent {
            if covered + range.length > 100 {
                return Some(format!(
                    "invalid random distribution Target% {}: can be at most {} - total must be <= 100%; type a smaller percentage",
                    range.length,
                    100 - covered
                ));
            }
            if covered + range.length == 100 && io + range.io < 100 {
                let left = 100 - (io + range.io);
                return Some(format!(
                    "invalid random distribution: the target is covered with {left}% IO left to distribute; type larger percentages of operations, or smaller parts of the target"
                ));
            }
        }
        (io, covered) = (io + range.io, covered.saturating_add(range.length));
    }
    (all.percent && covered != 100).then(|| {
        format!("invalid random distribution span: Target% ({covered}%) must total 100%; type a part for the rest of the target")
    })
}

fn memory_errors(span: &TimeSpan, target: &Target) -> impl Iterator<Item = OptionError> {
    let is_small = target.buffer > 0 && target.buffer < target.block.into();
    let small_buffer = is_small.then(|| {
        format!(
            "custom write buffer (-Z) is smaller than the block size. Write buffer size: {} block size: {}; type a larger -Z",
            target.buffer, target.block
        )
    });
    let rules = [
        (
            target.mapped && span.completion_routines,
            "x",
            "completion routines (-x) can't be used with memory mapped IO (-Sm); leave -x out",
        ),
        (
            target.mapped && target.cache == Cache::Off,
            "S",
            "unbuffered IO (-Su or -Sh) can't be used with memory mapped IO (-Sm); type one of them",
        ),
        (
            !target.mapped && target.flush.is_some(),
            "N",
            "memory mapped flush mode (-N) can only be specified with memory mapped IO (-Sm); type -Sm too",
        ),
    ];
    small_buffer.map(|why| ("Z", why)).into_iter().chain(broken(rules))
}

/// DISKSPD's warnings about settings that are valid but usually a mistake.
fn warnings_of(span: &TimeSpan, target: &Target) -> impl Iterator<Item = &'static str> {
    let has_several_threads = span.threads > 1 || target.threads > 1;
    let is_sequential = target.random_percent == 0;
    let rules = [
        (
            target.parallel && target.requests == 1,
            "WARNING: -p does not have effect unless outstanding I/O count (-o) is > 1",
        ),
        (target.interlocked && !has_several_threads, "WARNING: single-threaded test, -si ignored"),
        (
            !target.interlocked && has_several_threads && target.thread_stride == 0,
            "WARNING: target access pattern will not be sequential, consider -si",
        ),
    ];
    rules.into_iter().filter(move |(holds, _)| *holds && is_sequential).map(|(_, warning)| warning)
}

/// Largest number of intervals of all threads on all targets. A session stores each of them.
const MAX_BUCKETS: u64 = 200_000;
/// Longest time in seconds: a day.
const MAX_TIME_S: u32 = 86_400;

/// The errors for all settings that Linux or fathom does not support.
pub(super) fn refused(line: &CommandLine) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let seeds: Vec<u32> = line.profile.spans.iter().map(|s| s.seed).collect();
    for (at, span) in line.profile.spans.iter().enumerate() {
        for (number, target) in span.targets.iter().enumerate() {
            let span_refusals = if number == 0 { span_refusals(span, &seeds) } else { Vec::new() };
            let sizes = line.profile.spans.iter().flat_map(|s| &s.targets);
            let mut other = sizes.filter(|t| t.path == target.path).map(|t| t.create);
            let all = span_refusals
                .into_iter()
                .chain(path_refusal(target).map(|why| (TARGET, why)))
                .chain(target_refusals(span, target))
                .chain(other.any(|size| size != target.create).then(|| {
                    ("c", "fathom creates a file once, for the first time span with the file; write the same size into all time spans".to_owned())
                }));
            diagnostics
                .extend(all.map(|(option, why)| Diagnostic::new(line.source.place(at, number, option), why)));
        }
    }
    diagnostics
}

fn span_refusals(span: &TimeSpan, seeds: &[u32]) -> Vec<OptionError> {
    let buckets = u64::from(span.duration_s) * 1000 / u64::from(span.bucket_ms.max(1));
    let lanes =
        span.thread_count().saturating_mul(if span.threads > 0 { span.targets.len() as u64 } else { 1 });
    let times = [("d", span.duration_s), ("W", span.warmup_s), ("C", span.cooldown_s)];
    let too_long = times.into_iter().find(|(_, seconds)| *seconds > MAX_TIME_S);
    let most_targets = if span.threads > 0 { MAX_TARGETS } else { MAX_STREAMS };
    let foreign = span.affinity.iter().find(|(group, _)| *group > 0);
    let threads_of_target = span.threads.max(span.targets.iter().map(|t| t.threads).max().unwrap_or(0));
    let rules = [
        (span.completion_routines, "x", ROUTINES.to_owned()),
        (span.duration_s == 0, "d", "the measured window has no length; type -d1 or more".into()),
        (
            too_long.is_some(),
            too_long.map_or("d", |(option, _)| option),
            format!("the time is longer than {MAX_TIME_S} seconds; type a shorter one"),
        ),
        (
            foreign.is_some(),
            "a",
            "Linux has one processor group; type only the numbers of CPUs, as `lscpu -e` lists them".into(),
        ),
        (
            span.iops && buckets.saturating_mul(lanes) > MAX_BUCKETS,
            "D",
            format!("all threads together record at most {MAX_BUCKETS} intervals; type a longer interval"),
        ),
        (
            seeds.iter().any(|seed| seed != &span.seed),
            "z",
            "fathom uses one seed for all time spans; write the same RandSeed into each time span".into(),
        ),
        (
            span.requests > 0 && span.threads == 0,
            "O",
            "-O only applies to the threads of -F; with -t type -o".into(),
        ),
        (
            threads_of_target > MAX_WORKERS,
            if span.threads > 0 { "F" } else { "t" },
            format!("there are too many threads; type {MAX_WORKERS} at most"),
        ),
        (
            span.targets.len() > most_targets,
            TARGET,
            format!("there are too many targets; type {most_targets} at most"),
        ),
    ];
    let pool = if threads_of_target > MAX_WORKERS { None } else { pool_refusal(span) };
    broken(rules).chain(pool.map(|why| ("O", why))).collect()
}

/// The error in the assignment of targets to the threads of `-F`; `None` if it is valid.
fn pool_refusal(span: &TimeSpan) -> Option<String> {
    let pools = if span.threads > 0 { span.pools() } else { Vec::new() };
    let idle = pools.iter().find(|pool| pool.targets.is_empty()).and_then(|pool| pool.threads.first());
    if let Some(thread) = idle.filter(|_| !span.targets.is_empty()) {
        return Some(format!("thread {thread} has no target; write a ThreadTarget for it, or fewer threads"));
    }
    let target = |at: &usize| span.targets.get(*at);
    let differs = pools.iter().any(|pool| {
        let mut alike = pool.targets.iter().filter_map(|(at, _)| target(at).map(without_path));
        let first = alike.next();
        alike.any(|other| Some(&other) != first.as_ref())
    });
    if differs {
        return Some(
            "the targets of a thread may differ only in path and weight; give each thread such targets with ThreadTarget, or write ThreadsPerFile instead of ThreadCount".into(),
        );
    }
    if pools.len() > MAX_STREAMS {
        return Some(format!(
            "threads have too many different sets of targets; write {MAX_STREAMS} different sets at most"
        ));
    }
    // Threads with different targets become different streams. Streams do not share a position (`-si`), and each stream
    // counts the starting offsets of its threads (`-T`) from 0.
    let mut once = BTreeSet::new();
    let several: BTreeSet<usize> = pools
        .iter()
        .flat_map(|pool| &pool.targets)
        .map(|(at, _)| *at)
        .filter(|at| !once.insert(*at))
        .collect();
    let in_order =
        |target: &Target| target.random_percent == 0 && (target.interlocked || target.thread_stride > 0);
    several.iter().filter_map(target).any(in_order).then(|| {
        "threads with -si or -T need the same targets; leave -si and -T out, or write the same ThreadTargets into all threads".into()
    })
}

/// The target without the settings that may differ within a thread.
fn without_path(target: &Target) -> Target {
    Target { path: String::new(), weight: 1, thread_targets: Vec::new(), ..target.clone() }
}

/// Refuses Windows paths, drives and volumes, and an empty path.
fn path_refusal(target: &Target) -> Option<String> {
    let path = &target.path;
    let is_drive = path.strip_prefix('#').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let mut chars = path.chars();
    let has_letter = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    let is_volume = has_letter && chars.as_str() == ":";
    if has_letter && chars.as_str().starts_with(":\\") {
        Some(format!("{path} is a Windows path; type one of this machine, such as /data/testfile.dat"))
    } else if is_drive {
        Some(format!(
            "{path} is a Windows drive; type the device itself, such as /dev/sdb (`fathom devices` lists them)"
        ))
    } else if is_volume {
        Some(format!(
            "{path} is a Windows volume; type the device below a file system, such as /dev/sdb1 (`lsblk` lists them)"
        ))
    } else {
        path.is_empty().then(|| "a target has no name; type a file or a device".into())
    }
}

fn target_refusals(span: &TimeSpan, target: &Target) -> Vec<OptionError> {
    let is_mixed = (1..100).contains(&target.random_percent);
    let is_non_volatile = matches!(target.flush, Some(Flush::NonVolatile | Flush::NonVolatileNoDrain));
    let has_think = target.think_ms.is_some();
    let rules = [
        (target.cache == Cache::Remote, "S", REMOTE.to_owned()),
        (target.temporary_hint, "f", TEMPORARY.into()),
        (is_non_volatile, "N", NON_VOLATILE.into()),
        (
            target.sequential_hint && target.random_hint,
            "f",
            "the kernel takes only one of the two hints; type -fr or -fs".into(),
        ),
        (
            target.mapped && target.write_through,
            "S",
            "a mapping has no write-through; type -Sm with -Nv, which flushes each write".into(),
        ),
        (
            is_mixed && target.step() < target.block.into(),
            "r",
            "in a mix, sequential operations continue at the end of the last one; type -r with at least the block size"
                .into(),
        ),
        (
            target.throughput.is_some() && has_think,
            "g",
            "DISKSPD ignores -i and -j with -g; leave them out, or leave -g out".into(),
        ),
        (target.parallel && has_think, "p", "-p and -i both define bursts; leave one of them out".into()),
        (
            target.alignment == Some(0) && span.thread_count() > 1,
            "s",
            "with -s0 all threads would use the same block; type -t1 too".into(),
        ),
        (
            u64::from(target.block) > MAX_BLOCK_BYTES,
            "b",
            format!("an operation has at most {MAX_BLOCK_BYTES} bytes; type a smaller -b"),
        ),
        (
            target.random_percent > 0 && target.step() > MAX_BLOCK_BYTES,
            "r",
            format!("an alignment has at most {MAX_BLOCK_BYTES} bytes; type a smaller alignment"),
        ),
        (
            target.requests.max(span.requests) > MAX_DEPTH,
            if span.requests > MAX_DEPTH { "O" } else { "o" },
            format!("too many operations are in flight; type {MAX_DEPTH} at most"),
        ),
        (
            target.create == Some(0),
            "c",
            "a file of 0 bytes has nothing to read or write; type a size, such as -c1G".into(),
        ),
    ];
    broken(rules).collect()
}
