//! Replay of a log by a job of fio (`read_iolog` and its options). fio keeps the times of a log by default;
//! here they become arrivals of an open loop.

use super::access::{BOTH, READS};
use super::streams::{self, Streams};
use crate::fio::files;
use crate::fio::job_file::{Environment, Fault, Job, times};
use crate::fio::options::OPTIONS;
use crate::fio::rates::rules;
use crate::fio::streams::{errors, priorities};
use crate::options::{InReplay, ToolOption};
use model::job::ReplayPace;
use model::spec::number::MAX_STREAMS;
use model::spec::{ReplaySpec, StreamSpec, kinds, values};

/// Magic number of each blktrace event, without the version in the lowest byte.
const MAGIC: [u8; 3] = [0x65, 0x61, 0x74];

/// Remarks on options that have no effect because the log defines the operations, without duplicates.
pub(super) fn remarks(jobs: &[Job]) -> Vec<String> {
    model::distinct(jobs.iter().filter(|job| job.is_replay()).filter_map(remark))
}

fn remark(job: &Job) -> Option<String> {
    let is_typed =
        |option: &&ToolOption| option.in_replay == InReplay::NoEffect && job.text(option.name).is_some();
    let typed: Vec<&str> = OPTIONS.iter().filter(is_typed).map(|option| option.name).collect();
    let verb = if typed.len() == 1 { "has" } else { "have" };
    (!typed.is_empty()).then(|| {
        format!(
            "{} {verb} no effect in a replay: the log of read_iolog defines the operations",
            typed.join(", ")
        )
    })
}

/// The streams of a replay: one for each clone, since one worker replays a log.
pub(super) fn replays(job: &Job, environment: &dyn Environment) -> Result<Streams, Fault> {
    for ToolOption { name, in_replay, .. } in OPTIONS {
        let InReplay::Refused(why) = in_replay else { continue };
        job.refuse_if(is_typed(job, name), name, why)?;
    }
    let redirect = job.text("replay_redirect").filter(|path| !path.is_empty());
    let why = "the log names the files; type replay_redirect=PATH, or remove the option";
    job.refuse_if(redirect.is_none() && job.text("directory").is_some(), "directory", why)?;
    let files = files::split(job.text("read_iolog").unwrap_or_default());
    let mut stream = StreamSpec { name: Some(streams::name(job)?), ..StreamSpec::default() };
    let deep = streams::engine(job, &READS, environment, &mut stream)?;
    streams::depth(job, &READS, deep, &mut stream)?;
    streams::advise(job, &READS, &mut stream);
    streams::durability_and_data(job, &BOTH, &mut stream)?;
    (stream.fsync, stream.fdatasync) = (None, None);
    streams::place(job, environment, &mut stream)?;
    priorities(job, &BOTH, &mut stream)?;
    errors(job, &BOTH, false, &mut stream)?;
    rules(job, &BOTH, &mut stream)?;
    let times = times(job)?;
    streams::ends_and_logs(job, times, &mut stream)?;
    // The engine null accesses no file.
    stream.target = redirect.filter(|_| stream.cache.is_some()).map(str::to_owned).into_iter().collect();
    let count = job.count("numjobs", 1)?.unwrap_or(1);
    let why = format!("fathom replays at most {MAX_STREAMS} logs at once; type a smaller number");
    job.refuse_if(count as usize > MAX_STREAMS, "numjobs", why)?;
    let clone = |clone: u32| -> Result<StreamSpec, Fault> {
        let file = files.get(clone as usize % files.len().max(1)).cloned().unwrap_or_default();
        let is_trace = begins_as_trace(job, &file, environment)?;
        let why = "the device numbers in a trace may belong to other devices now; type replay_redirect=/dev/NAME too";
        job.refuse_if(is_trace && redirect.is_none() && stream.cache.is_some(), "read_iolog", why)?;
        // As in fio, a trace is replayed with its own depth unless iodepth is typed.
        let depth = stream.depth.filter(|_| !(is_trace && deep && job.text("iodepth").is_none()));
        let batch = stream.batch.filter(|_| depth.is_some());
        Ok(StreamSpec { replay: Some(replay_spec(job, &file)?), depth, batch, ..stream.clone() })
    };
    let all = streams::clone_numbers(count).map(clone).collect::<Result<_, _>>()?;
    Ok(Streams { all, times, reads_back: false })
}

fn is_typed(job: &Job, option: &str) -> bool {
    job.text(option).is_some_and(|text| !["0", "false", "none", "linear"].contains(&text))
}

/// The settings of a replay.
fn replay_spec(job: &Job, file: &str) -> Result<ReplaySpec, Fault> {
    let mut replay = ReplaySpec {
        file: values::path(file).map_err(|why| job.fault("read_iolog", why))?,
        ..ReplaySpec::default()
    };
    let stalls = !job.on("replay_no_stall", false)?;
    replay.pace = Some(if stalls { ReplayPace::Timed } else { ReplayPace::Fast });
    // As in fio, the factor has no effect if the times of the log are ignored.
    let percent = job.count("replay_time_scale", 1)?.filter(|_| stalls);
    replay.speed = percent.map(|percent| f64::from(percent) / 100.0);
    let changes = &mut replay.changes;
    changes.divide = job.number("replay_scale")?.unwrap_or(0);
    changes.align_bytes = job.bytes("replay_align")?.unwrap_or(0);
    let is_whole = matches!(changes.align_bytes, 0 | 512..) && (changes.align_bytes.count_ones() <= 1);
    let why = "offsets are whole sectors; type a power of two of at least 512";
    job.refuse_if(!is_whole, "replay_align", why)?;
    let why = "divided offsets may not be whole sectors; type replay_align=4096 too";
    job.refuse_if(changes.divide > 1 && changes.align_bytes == 0, "replay_scale", why)?;
    if let Some(text) = job.text("replay_skip").filter(|text| !text.is_empty()) {
        changes.skip = kinds(text).map_err(|why| job.fault("replay_skip", why))?;
    }
    Ok(replay)
}

/// Whether a file is a blktrace file. Refuses a file that is neither a blktrace file nor an iolog.
fn begins_as_trace(job: &Job, file: &str, environment: &dyn Environment) -> Result<bool, Fault> {
    let fault = |why: &str| job.fault("read_iolog", why);
    if file == "-" {
        return Err(fault(
            "fathom reads a log twice, which standard input does not allow; write the log to a file",
        ));
    }
    let begins = environment
        .bytes(file, b"fio version 3 iolog".len())
        .map_err(|why| fault(&format!("{file}: {why}; type the name of a log")))?;
    match begins.as_slice() {
        b"fio version 2 iolog" | b"fio version 3 iolog" => Ok(false),
        [_, c, b, a, ..] if [*a, *b, *c] == MAGIC => Ok(true),
        [a, b, c, _, ..] if [*a, *b, *c] == MAGIC => Ok(true),
        _ => Err(fault("neither an iolog of version 2 or 3 nor a blktrace file; type the name of one")),
    }
}
