//! Options that do not go together, by DISKSPD's own rules and mostly in its own words.
//!
//! For: what it refuses on any system, and what it warns of. Not for: reading options, nor what Linux has not ([`super::here`]).
//!
//! Source: DISKSPD 2.2, `Profile::Validate` in `Common/Common.cpp` (MIT licence).

use super::command::{Ask, CommandLine};
use crate::trouble::Mark;
use model::diskspd::{Cache, Distribution, Target, TimeSpan};

/// Something that is wrong, with the option that it is marked at.
type Wrong = (&'static str, String);

/// Everything that is wrong with a profile, and what it warns of.
pub(super) fn validate(said: &CommandLine) -> (Vec<Mark>, Vec<String>) {
    let (mut marks, mut warnings) = (Vec::new(), Vec::new());
    let all = |why: &str| Mark::new(0..said.source.text.len(), why);
    if said.profile.spans.is_empty() {
        marks.push(all("no timespans specified; write a TimeSpan into the profile"));
    }
    for (at, span) in said.profile.spans.iter().enumerate() {
        if span.targets.is_empty() {
            marks.push(all(
                "you need to provide at least one target; type a file or a device behind the options",
            ));
        }
        for (number, target) in span.targets.iter().enumerate() {
            let mut wrong = of_span(span);
            of_target(span, target, &mut wrong);
            of_order(span, target, &mut wrong);
            wrong.extend(target.distribution.as_ref().and_then(|d| of_distribution(d, target)));
            of_memory(span, target, &mut wrong);
            if said.ask != Ask::Profile && target.path.starts_with('*') {
                let why = format!(
                    "template target '{}' was not substituted - all template targets must be substituted to run a profile; type as many targets",
                    target.path
                );
                wrong.push(("X", why));
            }
            for (option, why) in wrong {
                marks.push(Mark::new(said.source.place(at, number, option), why));
            }
            warnings.extend(warning(span, target).map(str::to_owned));
        }
    }
    warnings.dedup();
    (marks, warnings)
}

fn of_span(span: &TimeSpan) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    if span.disable_affinity && !span.affinity.is_empty() {
        wrong.push(("n", "-n and -a parameters cannot be used together; type one of them".into()));
    }
    wrong
}

fn of_target(span: &TimeSpan, target: &Target, wrong: &mut Vec<Wrong>) {
    let throughput = target.throughput.is_some();
    let (think, burst) = (target.think_ms.unwrap_or(0), target.burst.unwrap_or(0));
    let pooled = span.threads > 0 && span.requests > 0;
    let rules = [
        (
            span.threads > 0 && target.threads > 1,
            "t",
            "-F and -t parameters cannot be used together; type one of them",
        ),
        (
            throughput && span.completion_routines,
            "g",
            "-g throughput control cannot be used with -x completion routines; leave -x out",
        ),
        ((think == 0) != (burst == 0), "i", "need to specify -j<think time> with -i<burst size>; type both"),
        (
            pooled && throughput,
            "g",
            "-g throughput control cannot be used with -O outstanding requests per thread; type -o instead",
        ),
        (
            pooled && think > 0,
            "j",
            "-j think time cannot be used with -O outstanding requests per thread; type -o instead",
        ),
        (
            pooled && target.parallel,
            "p",
            "-p parallel IO cannot be used with -O outstanding requests per thread; type -o instead",
        ),
        (
            pooled && target.weight == 0,
            "O",
            "a non-zero target Weight must be specified; write one from 1 on",
        ),
        (
            pooled && target.thread_targets.iter().any(|(thread, _)| *thread >= span.threads),
            "O",
            "illegal thread specified for ThreadTarget; write one below ThreadCount",
        ),
        (
            !pooled && !target.thread_targets.is_empty(),
            "O",
            "ThreadTargets can only be specified when the timespan ThreadCount and RequestCount are specified; write both",
        ),
        (
            target.end > 0 && target.end <= target.base,
            "f",
            "maximum (-f) target offset must be greater than base (-B); type a larger -f",
        ),
    ];
    wrong.extend(rules.into_iter().filter(|(broken, ..)| *broken).map(|(_, at, why)| (at, why.to_owned())));
}

fn of_order(span: &TimeSpan, target: &Target, wrong: &mut Vec<Wrong>) {
    let random = target.random_percent > 0;
    let several = span.threads > 1 || target.threads > 1;
    let stride = target.thread_stride > 0;
    let rules = [
        (random && stride, "T", "-T conflicts with -r; leave -T out"),
        (random && target.interlocked, "si", "-si conflicts with -r; type one of them"),
        (random && target.parallel, "p", "-p conflicts with -r; leave -p out"),
        (
            !random && target.distribution.is_some(),
            "rd",
            "random distribution ranges (-rd) do not apply to sequential-only IO patterns; type -r or -rs too",
        ),
        (!random && target.interlocked && stride, "T", "-si conflicts with -T; type one of them"),
        (!random && target.interlocked && target.parallel, "p", "-si conflicts with -p; type one of them"),
        (
            !random && !target.interlocked && stride && !several,
            "T",
            "-T has no effect unless multiple threads per target are used; type -t2 or more, or leave it out",
        ),
    ];
    wrong.extend(rules.into_iter().filter(|(broken, ..)| *broken).map(|(_, at, why)| (at, why.to_owned())));
}

/// What is wrong with shares of operations by parts of the target: the first part that does not fit.
fn of_distribution(all: &Distribution, target: &Target) -> Option<Wrong> {
    let block = u64::from(target.block);
    let (mut io, mut covered) = (0, 0_u64);
    for (at, range) in all.ranges.iter().enumerate() {
        // What is left goes to the end of the target: that part alone has no length.
        let is_rest = range.length == 0 && at + 1 == all.ranges.len();
        if !all.percent && range.length < block && !is_rest {
            return Some((
                "rd",
                format!(
                    "invalid random distribution target range {} - must be a minimum of the specified block size ({block} bytes); type a larger one",
                    range.length
                ),
            ));
        }
        if io + range.io > 100 {
            return Some((
                "rd",
                format!(
                    "invalid random distribution IO% {}: can be at most {} - total must be <= 100%; type a smaller one",
                    range.io,
                    100 - io
                ),
            ));
        }
        if all.percent {
            if covered + range.length > 100 {
                return Some((
                    "rd",
                    format!(
                        "invalid random distribution Target% {}: can be at most {} - total must be <= 100%; type a smaller one",
                        range.length,
                        100 - covered
                    ),
                ));
            }
            if covered + range.length == 100 && io + range.io < 100 {
                let left = 100 - (io + range.io);
                return Some((
                    "rd",
                    format!(
                        "invalid random distribution: the target is covered with {left}% IO left to distribute; type parts of less than 100 %"
                    ),
                ));
            }
        }
        (io, covered) = (io + range.io, covered.saturating_add(range.length));
    }
    (all.percent && covered != 100).then(|| {
        (
            "rd",
            format!(
                "invalid random distribution span: Target% ({covered}%) must total 100%; type a part more"
            ),
        )
    })
}

fn of_memory(span: &TimeSpan, target: &Target, wrong: &mut Vec<Wrong>) {
    if target.buffer > 0 && target.buffer < target.block.into() {
        let why = format!(
            "custom write buffer (-Z) is smaller than the block size. Write buffer size: {} block size: {}; type a larger -Z",
            target.buffer, target.block
        );
        wrong.push(("Z", why));
    }
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
    wrong.extend(rules.into_iter().filter(|(broken, ..)| *broken).map(|(_, at, why)| (at, why.to_owned())));
}

/// What is no error and yet mostly not meant.
fn warning(span: &TimeSpan, target: &Target) -> Option<&'static str> {
    let several = span.threads > 1 || target.threads > 1;
    if target.random_percent > 0 {
        None
    } else if target.interlocked && !several {
        Some("WARNING: single-threaded test, -si ignored")
    } else if !target.interlocked && several && target.thread_stride == 0 {
        Some("WARNING: target access pattern will not be sequential, consider -si")
    } else {
        None
    }
}
