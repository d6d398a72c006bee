//! The engine of a stream: finds it, checks its options, and replaces io_uring if the kernel or a sandbox denies it.
//!
//! 1. If the user named io_uring, the stream is refused, with the alternative in the syntax that the user typed.
//! 2. A stream with the default engine uses libaio at the same depth. The stream, its origin and every report name the
//!    cause.
//! 3. If libaio cannot do the stream's work, the whole plan is refused with a command that works.
//!
//! The number of workers never changes. Job files get the same refusals as flags. The refusal of an unknown engine, option or cache mode
//! has the line in the job file.

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::{Draft, DraftJob};
use crate::request::{JobSource, Request, Work};
use dialect::Tool;
use engine::engines::{self, ENGINES, Entry, TakesNumber};
use model::job::{Cache, EngineFallback, Stream, SyncCall};
use model::machine::Machine;
use model::spec::number::MAX_WORKERS;
use model::spec::{EngineSpec, JobSpec, Problem, StreamSpec};
use model::{evidence, name};

/// The engine that may be denied.
pub(super) const WANTED: &str = "io_uring";
/// The engine that replaces io_uring.
const FALLBACK: &str = "libaio";
/// Flags that a suggested command replaces.
const REPLACED_FLAGS: [&str; 3] = ["--engine", "--depth", "--workers"];

/// Finds what denies io_uring on this machine; `None` if io_uring works.
pub(super) fn find_denial(machine: &Machine) -> Option<&str> {
    machine.fact(evidence::IO_URING).ok().filter(|cause| !cause.is_empty())
}

/// The engine for fathom's own work, such as filling a target: libaio if io_uring is denied.
pub(super) fn default_engine(denial: Option<&str>) -> Option<&'static Entry> {
    engines::find(if denial.is_some() { FALLBACK } else { WANTED })
}

/// Why libaio cannot do the work of a stream; `None` if it can.
pub(super) fn why_unable(stream: &Stream) -> Option<&'static str> {
    let able = engines::find(FALLBACK).map_or(&[][..], |engine| engine.kinds);
    if stream.kinds().any(|kind| !able.contains(&kind)) {
        return Some("libaio, which could replace it, has no trims");
    }
    if stream.flush.is_some_and(|flush| flush.call == SyncCall::SyncFileRange) {
        return Some("libaio, which could replace it, has no sync_file_range");
    }
    if stream.depth > 1 && !stream.cache.is_direct() {
        return Some("libaio, which could replace it, does buffered operations one at a time");
    }
    machine::rights::libaio().is_err().then_some("libaio, which could replace it, cannot be used here either")
}

/// If io_uring is denied, replaces it by libaio in the streams that have the default engine.
///
/// # Errors
/// [`Failure::Refused`] if the user named io_uring, or if libaio cannot do the work.
pub(super) fn replace_denied(
    request: &Request,
    jobs: &mut [DraftJob],
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<(), Failure> {
    let Some(cause) = denial else { return Ok(()) };
    let Some(entry) = engines::find(FALLBACK) else { return Ok(()) };
    // An open loop of `limit` has more operations in flight than the typed job.
    let closed = jobs.first().and_then(|job| Some(&job.phases.first()?.drafts.first()?.stream));
    let operations_in_flight = |stream: &Stream| u64::from(stream.depth) * u64::from(stream.workers);
    let closed_in_flight =
        closed.map(operations_in_flight).filter(|_| matches!(request.work, Work::Limit(_)));
    let in_flight = |stream: &Stream| closed_in_flight.unwrap_or_else(|| operations_in_flight(stream));
    let drafts = jobs.iter_mut().flat_map(|job| &mut job.phases).flat_map(|phase| &mut phase.drafts);
    let mut is_replaced = false;
    for draft in drafts.filter(|draft| draft.engine.name == WANTED) {
        let why = why_unable(&draft.stream);
        if draft.spec.engine.is_some() {
            return Err(refuse_named(request, draft, in_flight(&draft.stream), cause, why));
        }
        if let Some(why) = why {
            return Err(Failure::Refused(format!(
                "cannot use {WANTED}: {cause}; {why}; {}",
                command_that_works(request, &draft.stream, in_flight(&draft.stream))
            )));
        }
        draft.engine = entry;
        draft.stream.engine = FALLBACK.into();
        draft.stream.engine_fallback = Some(EngineFallback { wanted: WANTED.into(), cause: cause.into() });
        is_replaced = true;
    }
    if is_replaced {
        origins.replace_engine(WANTED, FALLBACK, cause);
    }
    Ok(())
}

/// The failure of a stream for which the user named io_uring, which is denied. `why` is the reason why libaio cannot do the stream's work,
/// if it cannot.
fn refuse_named(request: &Request, draft: &Draft, in_flight: u64, cause: &str, why: Option<&str>) -> Failure {
    let (named, instead) = match &request.source {
        Some(JobSource::CommandOf(Tool::Fio)) => ("ioengine=io_uring".to_owned(), "ioengine=libaio"),
        Some(JobSource::File(file, Tool::Fathom)) => {
            (format!("{}: engine = \"io_uring\"", name::text(file)), "engine = \"libaio\"")
        }
        Some(JobSource::File(file, _)) => {
            (format!("{}: ioengine=io_uring", name::text(file)), "ioengine=libaio")
        }
        _ => ("--engine io_uring".to_owned(), "--engine libaio"),
    };
    let is_fio = matches!(request.source, Some(JobSource::CommandOf(Tool::Fio)));
    // In a fio command, recommend libaio even if it cannot reach the depth of buffered files: fio accepts that depth.
    let advice = match why {
        Some(why) if !is_fio => format!("{why}; {}", command_that_works(request, &draft.stream, in_flight)),
        _ if draft.stream.kinds().any(|kind| kind == model::job::Kind::Trim) && is_fio => {
            "type ioengine=psync, since libaio has no trims".into()
        }
        _ => format!("type {instead}"),
    };
    Failure::Refused(format!("{named}: {cause}; {advice}"))
}

/// Returns what to type for the same work without io_uring: a command, or a change of the job file.
/// The number of operations in flight remains the same, unless the workload defines its own
/// workers, or is verified or replayed.
fn command_that_works(request: &Request, stream: &Stream, in_flight: u64) -> String {
    let in_flight = in_flight.min(u64::from(MAX_WORKERS));
    match &request.source {
        Some(JobSource::CommandOf(Tool::Diskspd))
            if !request.command.iter().any(|word| word.starts_with("-X")) =>
        {
            format!("type: {}", use_single_requests(&request.command, stream.depth))
        }
        Some(JobSource::CommandOf(Tool::Diskspd) | JobSource::File(_, Tool::Diskspd)) => {
            "set RequestCount to 1 in the profile, and use more threads".into()
        }
        Some(JobSource::CommandOf(Tool::Iometer) | JobSource::File(_, Tool::Iometer)) => {
            "set 'Queue Depth' to 1 in the configuration file, and use more workers".into()
        }
        Some(JobSource::File(file, Tool::Fio)) => {
            format!("write into {}: ioengine=psync, iodepth=1, numjobs={in_flight}", name::text(file))
        }
        Some(JobSource::File(file, Tool::Fathom)) => {
            format!("write into {}: engine = \"sync\", depth = 1, workers = {in_flight}", name::text(file))
        }
        _ => {
            let subcommand = request.command.get(1).map_or("", String::as_str);
            let flags = match (&request.work, subcommand) {
                (Work::Profile(_), _) | (_, "recipe") => "--engine sync".to_owned(),
                (_, "verify") => "--engine sync --depth 1".to_owned(),
                _ if stream.replay.is_some() => "--engine sync --depth 1".to_owned(),
                _ => format!("--engine sync --depth 1 --workers {in_flight}"),
            };
            format!("type: {}", name::line(&replace_flags(&request.command, split_words(&flags))))
        }
    }
}

fn split_words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// A fathom command line with these flags instead of those in [`REPLACED_FLAGS`].
fn replace_flags(command: &[String], flags: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut all = command.iter();
    while let Some(word) = all.next() {
        if word == "--" {
            out.extend(flags.iter().cloned().chain([word.clone()]).chain(all.cloned()));
            return out;
        }
        if REPLACED_FLAGS.contains(&word.as_str()) {
            all.next();
        } else if !REPLACED_FLAGS
            .iter()
            .any(|flag| word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
        {
            out.push(word.clone());
        }
    }
    out.extend(flags);
    out
}

/// Returns a DISKSPD command line with one request per thread and `depth` times as many threads.
fn use_single_requests(command: &[String], depth: u32) -> String {
    let more = |count: &str| {
        count.parse::<u32>().map_or_else(|_| count.to_owned(), |n| n.saturating_mul(depth).to_string())
    };
    let mut out: Vec<String> = Vec::new();
    let mut has_threads = false;
    let mut options: Vec<String> = vec!["-o1".into()];
    for word in command {
        if let Some(count) = word.strip_prefix("-t").or_else(|| word.strip_prefix("-F")) {
            has_threads = true;
            out.push(format!("{}{}", &word[..2], more(count)));
        } else if !(word.starts_with("-o") || word.starts_with("-O")) {
            out.push(word.clone());
        }
    }
    if !has_threads {
        options.push(format!("-t{depth}"));
    }
    // Options come before targets.
    let at = out.iter().skip(1).position(|word| word.starts_with('-')).map_or(out.len(), |at| at + 1);
    out.splice(at..at, options);
    name::line(&out)
}

/// Lists the names of the engines for which `is_able` returns true.
pub(crate) fn engine_names(is_able: impl Fn(&Entry) -> bool) -> String {
    ENGINES.iter().filter(|entry| is_able(entry)).map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a stream's default engine.
pub(super) fn default_engine_name(spec: &StreamSpec) -> &'static str {
    if spec.cache == Some(Cache::Mmap) { "mmap" } else { "io_uring" }
}

/// Finds unsupported engines, options and cache modes in a job.
pub(crate) fn find_problems(job: &JobSpec) -> Vec<Problem> {
    let streams = job.phases.iter().enumerate().flat_map(|(phase, spec)| {
        spec.streams.iter().enumerate().map(move |(stream, given)| (phase, stream, given))
    });
    let wrong = streams.filter_map(|(phase, stream, given)| {
        let problem = find(given).err()?;
        Some(Problem { phase, stream, ..problem })
    });
    wrong.collect()
}

/// Finds the engine of a stream, and checks its options.
pub(super) fn find(given: &StreamSpec) -> Result<&'static Entry, Problem> {
    let problem =
        |keys: &[&'static str], message| Problem { keys: keys.to_vec(), phase: 0, stream: 0, message };
    let name = given.engine.as_ref().map_or(default_engine_name(given), |e| &e.name);
    let entry = engines::find(name).ok_or_else(|| {
        let known = engine_names(|_| true);
        problem(&["engine"], format!("{{engine {name}}}: there is no such engine; type one of {known}"))
    })?;
    if let Some(asked) = &given.engine {
        check_options(entry, asked)
            .map_err(|why| problem(&["engine"], format!("{{engine {name}}}: {why}")))?;
    }
    if let Some(cache) = given.cache.filter(|c| !entry.caches.contains(c)) {
        let known: Vec<&str> = entry.caches.iter().map(|c| c.word()).collect();
        let message = format!(
            "{{cache {}}}: the engine {name} works only with {}; type another cache mode, or another {{engine}}",
            cache.word(),
            known.join(", ")
        );
        return Err(problem(&["cache", "engine"], message));
    }
    Ok(entry)
}

/// Refuses unknown options, which must not appear to have an effect, and options with a missing or needless number.
fn check_options(entry: &Entry, asked: &EngineSpec) -> Result<(), String> {
    for (name, value) in &asked.options {
        let Some(option) = entry.options.iter().find(|o| o.name == name) else {
            let known: Vec<&str> = entry.options.iter().map(|o| o.name).collect();
            return Err(match known.as_slice() {
                [] => format!("it has no options; leave '{name}' out"),
                known => format!("it has no option '{name}'; it has {}", known.join(", ")),
            });
        };
        match (option.number, value) {
            (TakesNumber::No, Some(_)) => {
                return Err(format!("option '{name}' takes no number; type {name} alone"));
            }
            (TakesNumber::Required, None) => {
                return Err(format!("option '{name}' needs a number; type {name}=N"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::job::{Access, Cache, Pattern};

    fn stream(depth: u32, cache: Cache) -> Stream {
        Stream { cache, ..Stream::plain(Access::plain(Pattern::Random, 4096, 100), depth, 1, WANTED) }
    }

    #[test]
    fn libaio_replaces_direct_work_at_any_depth_and_buffered_work_at_depth_one() {
        assert_eq!(why_unable(&stream(64, Cache::Direct)), None);
        assert_eq!(why_unable(&stream(64, Cache::DirectSync)), None);
        assert_eq!(why_unable(&stream(1, Cache::Buffered)), None);
        assert!(why_unable(&stream(2, Cache::Dsync)).is_some_and(|why| why.contains("one at a time")));
        let mut trims = stream(8, Cache::Direct);
        trims.access.lines[0].mix = model::job::Mix::from_percents(0, 100);
        assert!(why_unable(&trims).is_some_and(|why| why.contains("trims")));
    }

    #[test]
    fn advice_is_in_the_language_of_the_job_file_and_never_in_a_capture() {
        let command = split_words("fathom run job /data");
        let advice = |source: JobSource| {
            let request = Request { command: command.clone(), source: Some(source), ..Request::default() };
            command_that_works(&request, &stream(4, Cache::Buffered), 4)
        };
        for (tool, part) in [
            (Tool::Fathom, "write into job: engine = \"sync\", depth = 1, workers = 4"),
            (Tool::Fio, "write into job: ioengine=psync, iodepth=1, numjobs=4"),
            (Tool::Diskspd, "set RequestCount to 1 in the profile"),
            (Tool::Iometer, "set 'Queue Depth' to 1 in the configuration file"),
        ] {
            let advice = advice(JobSource::File("job".into(), tool));
            assert!(advice.contains(part), "{advice}");
        }
        let advice = advice(JobSource::Capture("job".into()));
        assert!(advice.starts_with("type: fathom run job /data --engine sync --depth 1"), "{advice}");
    }

    #[test]
    fn a_command_keeps_everything_but_engine_depth_and_workers() {
        let command =
            split_words("fathom run --depth=8 --rw randread --engine io_uring --cache buffered -- dir");
        let flags = split_words("--engine sync --depth 1 --workers 8");
        assert_eq!(
            replace_flags(&command, flags).join(" "),
            "fathom run --rw randread --cache buffered --engine sync --depth 1 --workers 8 -- dir"
        );
        let diskspd = split_words("fathom diskspd -b4K -o8 -t2 -r file");
        assert_eq!(use_single_requests(&diskspd, 8), "fathom diskspd -o1 -b4K -t16 -r file");
        assert_eq!(
            use_single_requests(&split_words("fathom diskspd -d1 file"), 2),
            "fathom diskspd -o1 -t2 -d1 file"
        );
        assert_eq!(
            use_single_requests(&split_words("fathom diskspd file"), 2),
            "fathom diskspd file -o1 -t2"
        );
    }
}
