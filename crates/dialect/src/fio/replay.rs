//! Replay of a log by a job of fio (`read_iolog` and its options). fio keeps the times of a log by default;
//! here they become arrivals of an open loop.

use super::access::{BOTH, READS};
use super::streams::{self, Streams};
use crate::fio::files;
use crate::fio::job_file::{Environment, Fault, Job, times};
use crate::fio::rates::rules;
use crate::fio::streams::{errors, priorities};
use model::job::ReplayPace;
use model::spec::number::MAX_STREAMS;
use model::spec::{ReplaySpec, StreamSpec, kinds, parsers};

/// Options that define the operations of a job without a log.
const OPERATION_OPTIONS: [&str; 32] = [
    "rw",
    "bs",
    "ba",
    "bsrange",
    "bssplit",
    "size",
    "filesize",
    "io_size",
    "loops",
    "nrfiles",
    "filename",
    "filename_format",
    "file_service_type",
    "rwmixread",
    "rwmixwrite",
    "random_distribution",
    "percentage_random",
    "random_generator",
    "rw_sequencer",
    "norandommap",
    "offset",
    "offset_align",
    "offset_increment",
    "fsync",
    "fdatasync",
    "time_based",
    "fallocate",
    "overwrite",
    "serialize_overlap",
    "group_reporting",
    "end_fsync",
    "fsync_on_close",
];

/// Options that a replay does not support, and what to type instead.
const REFUSED: [(&str, &str); 13] = [
    ("rate", PACED),
    ("rate_iops", PACED),
    ("rate_process", PACED),
    ("thinktime", PACED),
    ("flow", PACED),
    ("latency_target", PACED),
    ("verify", "fathom does not verify a replay; leave it out"),
    ("verify_only", "fathom does not verify a replay; leave it out"),
    ("zonemode", "the log defines the offsets; leave it out"),
    ("number_ios", "a replay ends with its log; type runtime=10, or leave it out"),
    ("ramp_time", "every operation of a replay counts; leave it out"),
    ("create_only", "a replay has no files to create; leave it out"),
    ("buffer_pattern", "fathom writes no pattern in a replay; leave it out"),
];

const PACED: &str =
    "the log defines the times; type replay_time_scale=50 or replay_no_stall=1, or leave it out";
/// Magic number of each blktrace event, without the version in the lowest byte.
const MAGIC: [u8; 3] = [0x65, 0x61, 0x74];

/// Remarks on options that have no effect because the log defines the operations, without duplicates.
pub(super) fn remarks(jobs: &[Job]) -> Vec<String> {
    let mut all: Vec<String> = jobs.iter().filter(|job| job.is_replay()).filter_map(remark).collect();
    all.dedup();
    all
}

fn remark(job: &Job) -> Option<String> {
    let is_typed = |option: &&&str| job.text(option).is_some() && **option != "group_reporting";
    let typed: Vec<&str> = OPERATION_OPTIONS.iter().filter(is_typed).copied().collect();
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
    if let Some((option, why)) = REFUSED.iter().find(|(option, _)| is_typed(job, option)) {
        return Err(job.fault(option, *why));
    }
    let redirect = job.text("replay_redirect").filter(|path| !path.is_empty());
    if redirect.is_none() && job.text("directory").is_some() {
        let why = "the log names the files; type replay_redirect=PATH, or leave it out";
        return Err(job.fault("directory", why));
    }
    let files = files::split(job.text("read_iolog").unwrap_or_default());
    let mut stream = StreamSpec { name: Some(streams::name(job)?), ..StreamSpec::default() };
    let deep = streams::engine(job, &READS, &mut stream)?;
    streams::depth(job, deep, &mut stream)?;
    stream.resolved.serialize_overlap = false;
    stream.resolved.advice = streams::advice(job, &READS, &stream)?;
    streams::advise_mapping(&READS, &mut stream);
    streams::durability_and_data(job, &BOTH, &mut stream)?;
    (stream.fsync, stream.fdatasync) = (None, None);
    streams::place(job, &mut stream)?;
    streams::nodes(job, environment, &mut stream)?;
    priorities(job, &BOTH, &mut stream)?;
    errors(job, &BOTH, false, &mut stream)?;
    rules(job, &BOTH, &mut stream)?;
    let times = times(job)?;
    streams::ends_and_logs(job, times, &mut stream)?;
    // The engine null accesses nothing.
    stream.target = redirect.filter(|_| stream.cache.is_some()).map(str::to_owned).into_iter().collect();
    let count = job.count("numjobs", 1)?.unwrap_or(1);
    if count as usize > MAX_STREAMS {
        return Err(job.fault(
            "numjobs",
            format!("fathom replays at most {MAX_STREAMS} logs at once; type a smaller number"),
        ));
    }
    let clone = |clone: usize| -> Result<StreamSpec, Fault> {
        let file = files.get(clone % files.len().max(1)).cloned().unwrap_or_default();
        let is_trace = begins_as_trace(job, &file, environment)?;
        if is_trace && redirect.is_none() && stream.cache.is_some() {
            let why = "the device numbers in a trace may belong to other devices now; type replay_redirect=/dev/NAME too";
            return Err(job.fault("read_iolog", why));
        }
        // As in fio a trace has its own depth by default.
        let depth = stream.depth.filter(|_| !(is_trace && deep && job.text("iodepth").is_none()));
        let batch = stream.batch.filter(|_| depth.is_some());
        Ok(StreamSpec { replay: Some(replay_spec(job, &file)?), depth, batch, ..stream.clone() })
    };
    let all = (0..count as usize).map(clone).collect::<Result<_, _>>()?;
    Ok(Streams { all, times, reads_back: false })
}

fn is_typed(job: &Job, option: &str) -> bool {
    job.text(option).is_some_and(|text| !["0", "false", "none", "linear"].contains(&text))
}

/// The settings of a replay.
fn replay_spec(job: &Job, file: &str) -> Result<ReplaySpec, Fault> {
    let mut replay = ReplaySpec {
        file: parsers::path(file).map_err(|why| job.fault("read_iolog", why))?,
        ..ReplaySpec::default()
    };
    let stalls = !job.on("replay_no_stall", false)?;
    replay.pace = Some(if stalls { ReplayPace::Timed } else { ReplayPace::Fast });
    // As in fio it has no effect if the times of the log are ignored.
    let percent = job.count("replay_time_scale", 1)?.filter(|_| stalls);
    replay.speed = percent.map(|percent| f64::from(percent) / 100.0);
    let changes = &mut replay.changes;
    changes.divide = job.number("replay_scale")?.unwrap_or(0);
    changes.align_bytes = job.bytes("replay_align")?.unwrap_or(0);
    if changes.align_bytes > 0 && !(changes.align_bytes.is_power_of_two() && changes.align_bytes >= 512) {
        return Err(
            job.fault("replay_align", "offsets are whole sectors; type a power of two of at least 512")
        );
    }
    if changes.divide > 1 && changes.align_bytes == 0 {
        let why = "divided offsets may not be whole sectors; type replay_align=4096 too";
        return Err(job.fault("replay_scale", why));
    }
    if let Some(text) = job.text("replay_skip").filter(|text| !text.is_empty()) {
        changes.skip = kinds(text).map_err(|why| job.fault("replay_skip", why))?;
    }
    Ok(replay)
}

/// Whether a file is a blktrace file. A file that is not an iolog either is refused.
fn begins_as_trace(job: &Job, file: &str, environment: &dyn Environment) -> Result<bool, Fault> {
    let fault = |why: &str| job.fault("read_iolog", why);
    if file == "-" {
        return Err(fault(
            "fathom reads a log twice, which standard input does not allow; write it to a file",
        ));
    }
    let begins = environment
        .bytes(file, b"fio version 3 iolog".len())
        .map_err(|why| fault(&format!("{file}: {why}")))?;
    match begins.as_slice() {
        b"fio version 2 iolog" | b"fio version 3 iolog" => Ok(false),
        [_, c, b, a, ..] if [*a, *b, *c] == MAGIC => Ok(true),
        [a, b, c, _, ..] if [*a, *b, *c] == MAGIC => Ok(true),
        _ => Err(fault("it is neither an iolog of version 2 or 3 nor a blktrace file; type the name of one")),
    }
}
