//! Replay of a log by a job of fio (`read_iolog` and its options). fio keeps the times of a log unless told
//! otherwise; here they become arrivals of an open loop.

use super::access::{BOTH, READS};
use super::streams::{self, Streams};
use crate::fio::files;
use crate::fio::job_file::{Environment, Fault, Job, times};
use crate::fio::rates::rules;
use crate::fio::streams::{errors, logs, priorities};
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
    ("verify", "what a log reads and writes is not compared; leave it out"),
    ("verify_only", "what a log reads and writes is not compared; leave it out"),
    ("zonemode", "a log has offsets of its own; leave it out"),
    ("number_ios", "a log is carried out to its end; type runtime=10, or leave it out"),
    ("ramp_time", "a log has no part that does not count; leave it out"),
    ("create_only", "a log makes no files; leave it out"),
    ("buffer_pattern", "what a log writes is not told by a pattern; leave it out"),
];

const PACED: &str =
    "a log has times of its own; type replay_time_scale=50 or replay_no_stall=1, or leave it out";
/// Magic number of each event of blktrace, without the version in the lowest byte.
const MAGIC: [u8; 3] = [0x65, 0x61, 0x74];

/// Remarks on options that define operations although a log does, without duplicates.
pub(super) fn remarks(jobs: &[Job]) -> Vec<String> {
    let mut all: Vec<String> = jobs.iter().filter(|job| job.is_replay()).filter_map(remark).collect();
    all.dedup();
    all
}

fn remark(job: &Job) -> Option<String> {
    let said = |option: &&&str| job.text(option).is_some() && **option != "group_reporting";
    let said: Vec<&str> = OPERATION_OPTIONS.iter().filter(said).copied().collect();
    let verb = if said.len() == 1 { "changes" } else { "change" };
    (!said.is_empty()).then(|| {
        format!("{} {verb} nothing in a replay: its operations are those of read_iolog", said.join(", "))
    })
}

/// The streams of a replay: one for each clone, since one worker replays a log.
pub(super) fn replays(job: &Job, environment: &dyn Environment) -> Result<Streams, Fault> {
    if let Some((option, why)) = REFUSED.iter().find(|(option, _)| is_typed(job, option)) {
        return Err(job.fault(option, *why));
    }
    let redirect = job.text("replay_redirect").filter(|path| !path.is_empty());
    if redirect.is_none() && job.text("directory").is_some() {
        let why = "a log names its files by itself; type replay_redirect=PATH, or leave it out";
        return Err(job.fault("directory", why));
    }
    let files = files::split(job.text("read_iolog").unwrap_or_default());
    let mut one = StreamSpec { name: Some(streams::name(job)?), ..StreamSpec::default() };
    let deep = streams::engine(job, &READS, &mut one)?;
    streams::depth(job, deep, &mut one)?;
    one.serialize_overlap = None;
    one.advice = streams::advice(job, &READS, &one)?;
    streams::advise_mapping(&READS, &mut one);
    streams::durability_and_data(job, &BOTH, &mut one)?;
    (one.fsync, one.fdatasync) = (None, None);
    streams::place(job, &mut one)?;
    streams::nodes(job, environment, &mut one)?;
    priorities(job, &BOTH, &mut one)?;
    errors(job, &BOTH, false, &mut one)?;
    rules(job, &BOTH, &mut one)?;
    let times = times(job)?;
    one.delay = Some(times.delay).filter(|delay| *delay > 0);
    one.ends_others = job.on("exitall", false)?.then_some(true);
    one.log_interval = logs(job)?.map(|logs| logs.interval_ns());
    // The engine null accesses nothing.
    one.target = redirect.filter(|_| one.cache.is_some()).map(str::to_owned).into_iter().collect();
    let count = job.count("numjobs", 1)?.unwrap_or(1);
    if count as usize > MAX_STREAMS {
        return Err(
            job.fault("numjobs", format!("{MAX_STREAMS} logs are carried out at once at most; type less"))
        );
    }
    let clone = |clone: usize| -> Result<StreamSpec, Fault> {
        let file = files.get(clone % files.len().max(1)).cloned().unwrap_or_default();
        let is_trace = begins_as_trace(job, &file, environment)?;
        if is_trace && redirect.is_none() && one.cache.is_some() {
            let why = "a trace names its devices by numbers, which may be those of others by now; type replay_redirect=/dev/NAME too";
            return Err(job.fault("read_iolog", why));
        }
        // As in fio a trace has its own depth by default.
        let depth = one.depth.filter(|_| !(is_trace && deep && job.text("iodepth").is_none()));
        let batch = one.batch.filter(|_| depth.is_some());
        Ok(StreamSpec { replay: Some(replay_spec(job, &file)?), depth, batch, ..one.clone() })
    };
    let all = (0..count as usize).map(clone).collect::<Result<_, _>>()?;
    Ok(Streams { all, times, back: false })
}

fn is_typed(job: &Job, option: &str) -> bool {
    job.text(option).is_some_and(|text| !["0", "false", "none", "linear"].contains(&text))
}

/// The settings of a replay.
fn replay_spec(job: &Job, file: &str) -> Result<ReplaySpec, Fault> {
    let mut said = ReplaySpec {
        file: parsers::path(file).map_err(|why| job.fault("read_iolog", why))?,
        ..ReplaySpec::default()
    };
    let stalls = !job.on("replay_no_stall", false)?;
    said.pace = Some(if stalls { ReplayPace::Timed } else { ReplayPace::Fast });
    // As in fio it has no effect if the times of the log are ignored.
    let percent = job.count("replay_time_scale", 1)?.filter(|_| stalls);
    said.speed = percent.map(|percent| f64::from(percent) / 100.0);
    let changes = &mut said.changes;
    changes.divide = job.number("replay_scale")?.unwrap_or(0);
    changes.align_bytes = job.bytes("replay_align")?.unwrap_or(0);
    if changes.align_bytes > 0 && !(changes.align_bytes.is_power_of_two() && changes.align_bytes >= 512) {
        return Err(job.fault("replay_align", "offsets are whole sectors; type a power of two from 512 on"));
    }
    if changes.divide > 1 && changes.align_bytes == 0 {
        let why = "divided offsets are not those of sectors any more; type replay_align=4096 too";
        return Err(job.fault("replay_scale", why));
    }
    if let Some(text) = job.text("replay_skip").filter(|text| !text.is_empty()) {
        changes.skip = kinds(text).map_err(|why| job.fault("replay_skip", why))?;
    }
    Ok(said)
}

/// Whether a file is a trace of blktrace; refused if it is no log of fio either.
fn begins_as_trace(job: &Job, file: &str, environment: &dyn Environment) -> Result<bool, Fault> {
    let fault = |why: &str| job.fault("read_iolog", why);
    if file == "-" {
        return Err(fault("a log is read twice, and standard input cannot be; write it to a file"));
    }
    let begins = environment
        .bytes(file, b"fio version 3 iolog".len())
        .map_err(|why| fault(&format!("{file}: {why}")))?;
    match begins.as_slice() {
        b"fio version 2 iolog" | b"fio version 3 iolog" => Ok(false),
        [_, c, b, a, ..] if [*a, *b, *c] == MAGIC => Ok(true),
        [a, b, c, _, ..] if [*a, *b, *c] == MAGIC => Ok(true),
        _ => Err(fault(
            "it is neither an iolog of version 2 or 3 nor a file of blktrace; type the name of one",
        )),
    }
}
