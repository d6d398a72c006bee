//! The limiter of a result: what kept it from being faster. The strongest evidence decides, in this order:
//!
//! 1. The work itself: no data, no storage, a simulated device ([`from_work`]).
//! 2. The medium that served the operations: memory, or a cache ([`from_memory`], [`from_medium`]).
//! 3. Findings about the CPU and the cgroup ([`from_findings`]).
//! 4. The job's own syncs, rate and pauses, and an engine that submits one operation at a time.
//! 5. Shortages of the machine: memory, a full link ([`from_machine`]).
//! 6. Where operations spent their time: in the device or above it ([`from_waiting`]).

use crate::case::{Case, no_run, requested_depth, share};
use crate::checks::{
    Detail, Evidence, HEADROOM_BELOW, ONE_TO_ONE, Rename, busiest_worker_cpu_share, evidence, one_at_a_time,
    waited_for_cpu,
};
use crate::figures::SIMULATED_ENGINE;
use crate::figures::kernel_text::{self, read_link};
use crate::findings::{CaseAnswers, moves_nothing};
use model::Known;
use model::finding::{CheckId, Severity};
use model::histogram::Histogram;
use model::job::{Kind, Pace};
use model::machine::Layer;
use model::replay::ReplayPace;
use model::report::Limiter;
use model::units::{show_ns, show_rate, show_share};

/// Minimum share of the latency inside the device for the device to be the limiter.
const MIN_DEVICE_SHARE: f64 = 0.7;

/// Minimum share of the requested depth for a queue to be full.
const MIN_FULL_SHARE: f64 = 0.9;

/// The name of the limiter if a cgroup limits the I/O.
pub(crate) const THROTTLE: &str = "throttle";

/// The name of the limiter if operations wait neither in the device nor for a CPU.
const ABOVE_DEVICE: &str = "above the device";

/// Minimum share of a link's rate for the link to be full. Packet headers, commands and pauses take the rest.
const MIN_LINK_SHARE: f64 = 0.83;

/// Minimum share of the workers' time for syncs or pauses to be the limiter.
const MIN_TIME_SHARE: f64 = 0.5;

/// Minimum share of a requested rate for that rate to be the limiter.
const MIN_RATE_SHARE: f64 = 0.9;

/// If tasks waited for memory during at least this share of the time, memory is the limiter.
const MIN_MEMORY_WAIT_SHARE: f64 = 0.1;

/// Finds the limiter of a result.
pub(crate) fn find_limiter(answered: &CaseAnswers) -> Limiter {
    let case = &answered.case;
    if case.runs.is_empty() {
        return unknown(&no_run());
    }
    let known = from_work(case)
        .or_else(|| from_memory(case))
        .or_else(|| from_medium(answered))
        .or_else(|| from_findings(answered))
        .or_else(|| from_syncs(case))
        .or_else(|| from_pace(case))
        .or_else(|| from_engine(case))
        .or_else(|| from_machine(case));
    // One short run does not show where operations spend their time. Settings, findings and facts about the machine are used all the same.
    if known.is_none() && case.record.header.plan.quick_ns.is_some() {
        let why = "One short run does not show what limited the rate; measure without --quick.";
        return limiter_of("not judged", why.into(), evidence([]));
    }
    known.unwrap_or_else(|| from_waiting(case).unwrap_or_else(|why| unknown(&why)))
}

/// Returns the limiter if there is no result.
pub(crate) fn nothing_measured() -> Limiter {
    unknown("nothing was measured")
}

/// Returns the limiter of work that reaches no storage.
fn from_work(case: &Case) -> Option<Limiter> {
    let (name, sentence) = if case.stream.moves_no_data() {
        ("file system", "No data is moved: this is the speed of the file system's metadata.".to_owned())
    } else if case.stream.engine == SIMULATED_ENGINE {
        let why = "No storage is involved: the rate is that of the simulated device, on its own clock.";
        ("simulation", why.to_owned())
    } else {
        let what = moves_nothing(case)?;
        ("tool", format!("No storage is involved ({what}): this is the speed of fathom itself."))
    };
    Some(limiter_of(name, sentence, evidence([])))
}

/// Returns the limiter of targets that are in memory; "not judged" if only some of them are.
fn from_memory(case: &Case) -> Option<Limiter> {
    let ram = case.memory_reason()?;
    let (name, sentence) = if case.is_in_memory() {
        ("memory", format!("The storage is memory ({ram})."))
    } else {
        ("not judged", format!("Some targets are memory ({ram}), and others are not."))
    };
    Some(limiter_of(name, sentence, evidence([])))
}

/// Returns the medium that served the operations in place of the target, according to a finding.
fn from_medium(answered: &CaseAnswers) -> Option<Limiter> {
    let (medium, found) = answered.found().find_map(|(_, found)| match &found.renames {
        Some(Rename::Medium(medium)) => Some((medium, found)),
        _ => None,
    })?;
    // If memory served the operations and a CPU was busy with them, the CPU is the limiter. The name of the result still
    // names the memory.
    let busy = answered.finding(CheckId::D06).filter(|f| f.severity <= Severity::Relabels);
    Some(busy.map_or_else(|| limiter_by_finding(medium, found), |busy| limiter_by_finding("CPU", busy)))
}

/// Returns the CPU or the limit of a cgroup, according to a finding.
fn from_findings(answered: &CaseAnswers) -> Option<Limiter> {
    // Each check with the mildest severity at which its finding is the limiter. A milder finding is only part of the
    // cause.
    let deciding = [
        (CheckId::D04, Severity::Biases, THROTTLE),
        (CheckId::D11, Severity::Relabels, "CPU quota"),
        (CheckId::D06, Severity::Relabels, "CPU"),
        (CheckId::D08, Severity::Relabels, "run queue"),
    ];
    deciding.into_iter().find_map(|(id, mildest, name)| {
        let found = answered.finding(id).filter(|f| f.severity <= mildest)?;
        Some(limiter_by_finding(name, found))
    })
}

/// Returns the job's own rate, pauses or dependencies, if they are the limiter.
fn from_pace(case: &Case) -> Option<Limiter> {
    let sentence = match case.stream.pace {
        Pace::Open { iops, .. } => {
            format!("Operations arrive at {} per second, whatever the storage does.", show_rate(iops))
        }
        // If the requested rate was not reached, something else is the limiter.
        Pace::Limited { iops, bytes_per_s } if !reaches_rate(case, iops, bytes_per_s) => return None,
        // If a direction has no rate limit, something else is the limiter.
        Pace::Each { .. } if case.stream.access.kinds().any(|kind| !case.stream.pace.limits(kind)) => {
            return None;
        }
        Pace::Limited { .. } | Pace::Each { .. } => {
            format!("The job sets its own rate: {}.", case.stream.describe_delays().join(" and "))
        }
        Pace::Closed if case.stream.flow.is_some() => {
            "The stream waits for other streams whenever it is ahead of its share of the operations."
                .to_owned()
        }
        // A fast replay fills the queue, so something else is the limiter.
        Pace::Closed if case.stream.replay.as_ref().is_some_and(|replay| replay.pace != ReplayPace::Fast) => {
            "The stream replays recorded operations, and the replay's pace decides when each one starts."
                .to_owned()
        }
        Pace::Closed if case.stream.latency_target.is_some() => {
            "The stream has no more operations in flight than its latency target allows.".to_owned()
        }
        Pace::Closed if case.stream.pauses().next().is_some() => return from_pauses(case),
        Pace::Closed if case.stream.waits().next().is_some() && !fills_its_queue(case) => {
            "Operations on the same bytes wait for each other, so that fewer are in flight than requested."
                .to_owned()
        }
        Pace::Closed => return None,
    };
    Some(limiter_of("the job itself", sentence, evidence([])))
}

/// Whether a stream came near one of its rate limits; 0 is no limit.
fn reaches_rate(case: &Case, iops: f64, bytes_per_s: f64) -> bool {
    let done = Kind::MOVING.iter().chain([&Kind::Trim]).map(|k| case.in_windows(*k));
    let (ops, bytes) =
        done.fold((0.0, 0.0), |(ops, bytes), one| (ops + one.ops as f64, bytes + one.bytes as f64));
    let seconds = case.window_ns() / 1e9;
    let near =
        |done: f64, requested: f64| requested > 0.0 && share(done, seconds) >= MIN_RATE_SHARE * requested;
    near(ops, iops) || near(bytes, bytes_per_s)
}

/// Returns the pauses between operations, if they took most of the time.
fn from_pauses(case: &Case) -> Option<Limiter> {
    let requested = requested_depth(&case.stream);
    let working = share(case.depth_mean().ok()?, requested).max(0.0) + share_in_syncs(case);
    let paused = 1.0 - working;
    let sentence = format!("Pauses between operations took {} of the time.", show_share(paused));
    (paused >= MIN_TIME_SHARE)
        .then(|| limiter_of("the job itself", sentence, evidence([("pause_share", paused)])))
}

/// Returns the share of the workers' time that they spent in calls that make writes stable.
fn share_in_syncs(case: &Case) -> f64 {
    let spent = case.latency(Kind::Sync).map_or(0.0, |h| h.sum_ns() as f64);
    share(spent, case.window_ns() * f64::from(case.stream.workers))
}

/// Returns the calls that make writes stable, if they took most of the time. Such a call waits for
/// earlier writes, the device's flush, and the file system's journal.
fn from_syncs(case: &Case) -> Option<Limiter> {
    let flush = case.stream.flush.filter(|_| case.stream.latency_target.is_none())?;
    let (syncs, spent) = (case.latency(Kind::Sync)?, share_in_syncs(case));
    // Far above 100 %, calls overlap, and the share of the time is unknown.
    if !(MIN_TIME_SHARE..=1.0 + MIN_TIME_SHARE).contains(&spent) {
        return None;
    }
    let mean = syncs.sum_ns() as f64 / syncs.count() as f64;
    let mut numbers = evidence([("sync_share", spent.min(1.0)), ("sync_ns_mean", mean)]);
    let device = case.device_io().ok().filter(|d| d.flushes().ios > 0);
    let flushed = device.map(|d| d.flushes().ms as f64 * 1e6 / d.flushes().ios as f64);
    numbers.extend(flushed.map(|ns| ("device_flush_ns_mean".to_owned(), ns)));
    let call = flush.call.word();
    let inside = flushed
        .map_or_else(String::new, |ns| format!("; a flush of the device took {} on average", show_ns(ns)));
    let sentence = format!(
        "{} of the time went into {call}, which took {} on average{inside}.",
        show_share(spent.min(1.0)),
        show_ns(mean)
    );
    Some(limiter_of(call, sentence, numbers))
}

/// Whether about as many operations are in flight as requested; false if the depth is unknown.
fn fills_its_queue(case: &Case) -> bool {
    let requested = case.stream.total_depth() as f64;
    case.depth_mean().is_ok_and(|mean| mean >= MIN_FULL_SHARE * requested)
}

/// Returns the engine, if it submits one operation at a time although more were requested.
fn from_engine(case: &Case) -> Option<Limiter> {
    let reached = case.depth_mean().ok()?;
    one_at_a_time(case, reached).then(|| {
        let requested = requested_depth(&case.stream);
        let sentence = format!(
            "The engine {} kept {} operations in flight, although {requested:.0} were requested.",
            case.stream.engine,
            show_rate(reached)
        );
        limiter_of("tool", sentence, evidence([("asked_depth", requested), ("depth_mean", reached)]))
    })
}

/// Returns a shortage of the machine that limits every job: of memory, or of a link's bandwidth.
fn from_machine(case: &Case) -> Option<Limiter> {
    if let Some(part) = kernel_text::pressure_share(case, kernel_text::MEMORY_PRESSURE_FILE)
        .ok()
        .filter(|p| *p >= MIN_MEMORY_WAIT_SHARE)
    {
        let sentence =
            format!("Tasks of this machine waited for memory for {} of the time.", show_share(part));
        return Some(limiter_of("memory pressure", sentence, evidence([("memory_pressure_share", part)])));
    }
    let (name, rate, ceiling) = full_link(case)?;
    let sentence = format!(
        "The device {name} moved {} MB/s over a link that carries {} MB/s at most.",
        show_rate(rate / 1e6),
        show_rate(ceiling / 1e6)
    );
    let numbers = evidence([("device_bytes_per_s", rate), ("link_bytes_per_s", ceiling)]);
    Some(limiter_of("link", sentence, numbers))
}

/// Returns the first device with a full link: its name, its rate, and the rate of the link in bytes per second. The
/// rate includes the work of all streams.
fn full_link<'a>(case: &Case<'a>) -> Option<(&'a str, f64, f64)> {
    let case = &case.with_sharers();
    let ns: f64 = case.runs.iter().map(|r| r.active_ns().ok().map(|ns| ns as f64)).sum::<Option<f64>>()?;
    let full = |leaf: &&'a Layer| {
        let ceiling = read_link(leaf).ok()?.bytes_per_s;
        let rate = share(case.layer_io(&[*leaf]).ok()?.total().bytes as f64 * 1e9, ns);
        (rate >= MIN_LINK_SHARE * ceiling).then_some((leaf.name.as_str(), rate, ceiling))
    };
    case.lowest_layers().ok()?.iter().find_map(full)
}

/// Decides whether operations spend their time inside the device or above it.
fn from_waiting(case: &Case) -> Known<Limiter> {
    let tops = case.top_layers()?;
    if !case.sharers(&tops).is_empty() {
        return from_waiting_on_shared_device(case, &tops);
    }
    let device = case.device_io()?;
    let total = device.total();
    let latency_ns = mean_latency_ns(case).ok_or("no operation completed within a measured window")?;
    let issued = case.issued_total().ops as f64;
    if total.ios == 0 || issued <= 0.0 {
        return Err("the device completed nothing while operations were in flight".into());
    }
    // Counters include the warm-up, but latencies are from the window only, so each is divided by its own number of operations.
    // Merged operations share the time of their request. The parts of a split operation wait in parallel, so their sum
    // is only an upper bound.
    let requests = total.ios as f64;
    let per_op = requests / issued;
    let divisor = if per_op <= ONE_TO_ONE { requests } else { issued };
    let device_ns = total.ms as f64 * 1e6 / divisor + device.flushes().ms as f64 * 1e6 / issued;
    // A stream with one operation in flight either waits for the operation or computes. While it computed, the device
    // may have read ahead or written back, and the stream did not wait for that.
    let is_serial = requested_depth(&case.stream) <= f64::from(case.stream.workers);
    let computed =
        busiest_worker_cpu_share(case).filter(|_| is_serial && !case.stream.cache.is_direct()).unwrap_or(0.0);
    let inside = share(device_ns, latency_ns).min(1.0 - computed.min(1.0));
    let mut numbers = evidence([
        ("device_ns", device_ns),
        ("latency_ns", latency_ns),
        ("device_share", inside),
        ("requests_per_operation", per_op),
    ]);
    numbers.extend(busiest_worker_cpu_share(case).map(|c| ("busiest_worker_cpu_share".to_owned(), c)));
    let times = format!("{} of {} per operation", show_ns(inside * latency_ns), show_ns(latency_ns));
    if computed > inside {
        let sentence = format!(
            "The busiest worker was on a CPU for {} of its time, longer than it waited for the device.",
            show_share(computed)
        );
        return Ok(limiter_of("CPU", sentence, numbers));
    }
    if inside < MIN_DEVICE_SHARE {
        return limiter_above_device(case, inside, &times, per_op, numbers);
    }
    // Each request took much less time than the operation.
    if per_op > ONE_TO_ONE && !case.syncs() && share(device_ns / per_op, latency_ns) < MIN_DEVICE_SHARE {
        let sentence = format!(
            "Each operation became {} requests to the device, which took {} each; an operation took {}.",
            show_rate(per_op),
            show_ns(device_ns / per_op),
            show_ns(latency_ns)
        );
        return Ok(limiter_of("device, split operations", sentence, numbers));
    }
    let sentence = format!("{} of the latency was spent in the device ({times}).", show_share(inside));
    Ok(limiter_of("device", sentence, numbers))
}

/// Decides whether a stream spends its time inside a device that other streams share. Answers
/// "device" only if this follows even when all latency of the other streams is counted as time in the device.
fn from_waiting_on_shared_device(case: &Case, tops: &[&Layer]) -> Known<Limiter> {
    let device = case.top_io_of_all_streams()?;
    let (requests, device_ns) = (device.total().ios, (device.total().ms + device.flushes().ms) as f64 * 1e6);
    let issued = case.issued_total().ops;
    let latency_ns = mean_latency_ns(case).ok_or("no operation completed within a measured window")?;
    let Some([others_ops, others_ns]) = case.ops_and_time_of_sharers(tops) else {
        return Err(case.why_shared()?);
    };
    // Parts of a split operation are in the device at the same time.
    let is_split = requests as f64 > ONE_TO_ONE * (issued as f64 + others_ops);
    let inside = share(device_ns - others_ns, latency_ns * issued as f64).min(1.0);
    if is_split || inside < MIN_DEVICE_SHARE {
        return Err(case.why_shared()?);
    }
    let sentence = format!(
        "At least {} of the latency was spent in the device, which other streams shared.",
        show_share(inside)
    );
    Ok(limiter_of(
        "device",
        sentence,
        evidence([("device_share_at_least", inside), ("latency_ns", latency_ns)]),
    ))
}

/// Returns the limiter of operations that spend much of their time above the device.
fn limiter_above_device(
    case: &Case,
    inside: f64,
    times: &str,
    per_op: f64,
    mut numbers: Evidence,
) -> Known<Limiter> {
    let only = format!("Only {} of the latency was spent in the device ({times})", show_share(inside));
    if case.syncs() && !case.on_block_devices() {
        let sentence = format!("{only}; a sync also waits for the file system and its journal.");
        return Ok(limiter_of("file system", sentence, numbers));
    }
    // A buffered write that is made stable at once is not written back later.
    if !case.stream.cache.is_direct() && !case.syncs() {
        return Err(format!(
            "the page cache reads ahead and writes back later, so the time in the device ({times}) does not \
             show what operations waited for"
        ));
    }
    if per_op < 1.0 / ONE_TO_ONE {
        let sentence =
            format!("{only}; the kernel merged {} operations into each request.", show_rate(1.0 / per_op));
        return Ok(limiter_of("merging", sentence, numbers));
    }
    // The CPU time of polling workers does not show whether they wait for storage.
    if let Some(option) = case.polling_option() {
        return Err(format!(
            "workers with option {option} are always on a CPU, so their CPU time shows nothing, and only the \
             time in the device ({times}) is known"
        ));
    }
    let ready = waited_for_cpu(case).unwrap_or(0.0);
    let cpu = busiest_worker_cpu_share(case).unwrap_or(0.0);
    numbers.extend(evidence([("ready_share", ready)]));
    let rest = 1.0 - inside - ready - cpu;
    let (name, cause) = if ready >= cpu.max(rest) {
        ("run queue", format!("the workers waited {} of their time for a CPU", show_share(ready)))
    } else if cpu >= rest {
        ("CPU", format!("the busiest worker was on a CPU for {} of its time", show_share(cpu)))
    } else {
        (
            ABOVE_DEVICE,
            "the rest was spent above the device: in the kernel, at a configured limit or in a queue"
                .to_owned(),
        )
    };
    // A limit keeps both the waiting workers and the device idle. If the stream syncs, the syncs are the more likely cause.
    let has_headroom = || {
        let busy = case.top_layers().and_then(|tops| case.busiest_share(&tops));
        busy.is_ok_and(|busy| busy < HEADROOM_BELOW)
    };
    let may_be_hidden = name == ABOVE_DEVICE && !case.syncs() && case.may_hide_limits();
    let hidden = if may_be_hidden && rest >= MIN_DEVICE_SHARE && has_headroom() {
        " A limit that fathom cannot see is likely, such as that of a cgroup outside a container."
    } else {
        ""
    };
    Ok(limiter_of(name, format!("{only}; {cause}.{hidden}"), numbers))
}

/// Returns the mean time of an operation that moves bytes. The time of the syncs is divided among these operations.
fn mean_latency_ns(case: &Case) -> Option<f64> {
    let moving = |(kind, _): &&(Kind, Histogram)| Kind::MOVING.contains(kind);
    let histograms: Vec<_> = [Kind::Read, Kind::Write, Kind::Sync]
        .into_iter()
        .filter_map(|k| Some((k, case.latency(k)?)))
        .collect();
    let ops: f64 = histograms.iter().filter(moving).map(|(_, h)| h.count() as f64).sum();
    let sum: f64 = histograms.iter().map(|(_, h)| h.sum_ns() as f64).sum();
    (ops > 0.0 && sum > 0.0).then(|| sum / ops)
}

fn limiter_by_finding(name: &str, found: &Detail) -> Limiter {
    limiter_of(name, found.sentence.clone(), found.evidence.clone())
}

fn limiter_of(name: &str, sentence: String, evidence: Evidence) -> Limiter {
    Limiter { name: name.into(), sentence, evidence }
}

fn unknown(why: &str) -> Limiter {
    limiter_of("unknown", format!("The limiting factor is not known: {why}."), evidence([]))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn limiter_from(fixture: &Fixture) -> Limiter {
    limiter_of_record(&fixture.record())
}

#[cfg(test)]
fn limiter_of_record(record: &model::record::Record) -> Limiter {
    let mut cases = crate::case::cases(record);
    find_limiter(&crate::findings::ask(cases.remove(0)))
}

#[test]
fn each_limiter_follows_from_its_evidence() {
    use model::job::Cache;
    let honest = Fixture::honest;
    for (name, fixture) in [
        ("device", honest()),
        ("above the device", Fixture { device_time_share: 0.6, cpu_share: 0.02, ..honest() }),
        ("CPU", Fixture { device_time_share: 0.4, cpu_share: 0.6, ..honest() }),
        ("merging", Fixture { device_time_share: 0.4, merged: 4, cpu_share: 0.02, ..honest() }),
        ("file system", Fixture { device_time_share: 0.4, cache: Cache::Dsync, ..Fixture::honest_write() }),
        ("page cache", Fixture { delivered: 0.0, cache: Cache::Buffered, ..honest() }),
        ("CPU", Fixture { delivered: 0.0, cache: Cache::Buffered, cpu_share: 0.97, ..honest() }),
        ("memory", Fixture { ram: Some("zram0"), ..honest() }),
        ("CPU", Fixture { cpu_share: 0.97, ..honest() }),
        ("tool", Fixture { engine: "sync", depth_seen: 0.99, ..honest() }),
        ("tool", Fixture { role: model::plan::Role::None, engine: "null", ..honest() }),
        ("simulation", Fixture { role: model::plan::Role::None, engine: "sim", ..honest() }),
        ("unknown", Fixture { stat_unreadable: true, ..honest() }),
        ("unknown", Fixture { runs: 0, ..honest() }),
        ("unknown", Fixture { ops: 0, ..honest() }),
    ] {
        let limiter = limiter_from(&fixture);
        assert_eq!(limiter.name, name, "{}", limiter.sentence);
    }
    assert!(limiter_from(&honest()).sentence.contains("95 %"), "{}", limiter_from(&honest()).sentence);
    let mut polling = Fixture { device_time_share: 0.4, cpu_share: 0.6, ..honest() }.record();
    polling.header.plan.jobs[0].phases[0].streams[0].options.insert("iopoll".into(), None);
    let limiter = limiter_of_record(&polling);
    assert!(limiter.name == "unknown" && limiter.sentence.contains("option iopoll"), "{}", limiter.sentence);
}

/// Writes, each followed by a sync that takes `sync_ns`.
#[cfg(test)]
fn synced(call: model::job::SyncCall, sync_ns: u64, drain: bool) -> model::record::Record {
    use model::job::{Cache, Flush};
    let depth_seen = 0.1;
    let fixture =
        Fixture { depth: 1, depth_seen, ops: 1_000, cache: Cache::Buffered, ..Fixture::honest_write() };
    let mut record = Fixture { cpu_share: 0.05, ..fixture }.record();
    record.header.plan.jobs[0].phases[0].streams[0].flush = Some(Flush { call, every: 1, calls: 1, drain });
    for stream in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.streams) {
        let mut kind = stream.kinds[&Kind::Write].clone();
        kind.latency = Histogram::new();
        (0..1_000).for_each(|_| kind.latency.record(sync_ns));
        stream.kinds.insert(Kind::Sync, kind);
    }
    record
}

#[test]
fn syncs_that_take_most_of_the_time_are_the_limiter() {
    use model::job::SyncCall::{Fdatasync, Fsync};
    // 1,000 calls in a window of 1 s.
    for drain in [false, true] {
        let log = limiter_of_record(&synced(Fdatasync, 850_000, drain));
        assert_eq!(log.name, "fdatasync", "{}", log.sentence);
        assert!(log.sentence.contains("85 %") && log.sentence.contains("850 us"), "{}", log.sentence);
    }
    assert_eq!(limiter_of_record(&synced(Fsync, 700_000, true)).name, "fsync");
    let short = limiter_of_record(&synced(Fsync, 20_000, true));
    assert!(short.name != "fsync" && short.name != "the job itself", "{}: {}", short.name, short.sentence);
}

#[test]
fn pauses_and_rates_limit_only_if_they_take_most_of_the_time() {
    use model::job::{Bursts, Stream};
    let kinds_of_bursts: [fn(&mut Stream); 2] = [
        |s| s.access.lines[0].delay_ns = 1_000,
        |s| s.bursts = Some(Bursts { time_ns: 5_000, pause_ns: 1_000, operations: None }),
    ];
    for pause in kinds_of_bursts {
        let paused = |depth_seen| {
            let mut record = Fixture { depth: 1, depth_seen, ..Fixture::honest() }.record();
            pause(&mut record.header.plan.jobs[0].phases[0].streams[0]);
            limiter_of_record(&record)
        };
        let (most, hardly) = (paused(0.2), paused(0.97));
        assert_eq!(most.name, "the job itself");
        assert!(most.sentence.contains("80 %"), "{}", most.sentence);
        assert_eq!(hardly.name, "device", "{}", hardly.sentence);
    }
    // 10,000 operations of 4 KiB a second.
    let limited = |iops, bytes_per_s| {
        let mut record = Fixture::honest().record();
        record.header.plan.jobs[0].phases[0].streams[0].pace = Pace::Limited { iops, bytes_per_s };
        limiter_of_record(&record).name
    };
    assert_eq!(limited(10_000.0, 0.0), "the job itself");
    assert_eq!(limited(0.0, 41e6), "the job itself");
    assert_eq!(limited(20_000.0, 0.0), "device", "the storage is slower than the limit");
    assert_eq!(limited(20_000.0, 100e6), "device");
    let replayed = |pace| limiter_of_record(&crate::figures::replay::replaying(pace, |_| {}, None)).name;
    assert_eq!(replayed(ReplayPace::Dependent), "the job itself");
    assert_eq!(replayed(ReplayPace::Fast), "device", "a fast replay waits for no recorded time");
}

#[test]
fn overlapping_operations_limit_if_the_queue_is_not_full() {
    use model::spec::StreamSpec;
    let limiter_at = |depth_seen| {
        let mut record = Fixture { depth_seen, ..Fixture::honest() }.record();
        let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
        let mut typed = StreamSpec { resolved: stream.clone(), ..StreamSpec::default() };
        typed.set("serialize-overlap", "true").unwrap_or_else(|why| panic!("{why}"));
        *stream = typed.resolved;
        limiter_of_record(&record)
    };
    let (full, waiting) = (limiter_at(31.9), limiter_at(9.0));
    assert_eq!(
        (full.name.as_str(), waiting.name.as_str()),
        ("device", "the job itself"),
        "{}",
        full.sentence
    );
    assert!(waiting.sentence.contains("wait for each other"), "{}", waiting.sentence);
}

#[test]
fn a_device_that_reads_ahead_of_a_busy_cpu_is_no_limit() {
    use model::job::Cache::Buffered;
    let ahead = |cpu_share| Fixture {
        depth: 1,
        depth_seen: 0.98,
        cache: Buffered,
        merged: 32,
        cpu_share,
        ..Fixture::honest()
    };
    let busy = limiter_from(&ahead(0.84));
    assert!(busy.name == "CPU" && busy.sentence.contains("84 %"), "{}: {}", busy.name, busy.sentence);
    assert_ne!(limiter_from(&ahead(0.02)).name, "CPU");
}

#[test]
fn limits_and_pressure_of_the_machine_are_limiters_with_numbers() {
    let limiter_of = |change: &dyn Fn(&mut model::record::Record), fixture: &Fixture| {
        let mut record = fixture.record();
        change(&mut record);
        let limiter = limiter_of_record(&record);
        (limiter.name, limiter.sentence)
    };
    let throttled = |r: &mut model::record::Record| {
        let text = "/c/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max".to_owned();
        r.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text));
    };
    let (name, sentence) = limiter_of(&throttled, &Fixture { device_time_share: 0.02, ..Fixture::honest() });
    assert!(name == "throttle" && sentence.contains("10,000 IOPS"), "{name}: {sentence}");

    let crowded = |part: f64| {
        move |r: &mut model::record::Record| {
            for worker in r.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
                worker.ready_ns = Ok((worker.wall_ns as f64 * part) as u64);
            }
        }
    };
    let slow = Fixture { device_time_share: 0.5, cpu_share: 0.1, ..Fixture::honest() };
    assert_eq!(limiter_of(&crowded(0.4), &slow).0, "run queue");
    assert_eq!(limiter_of(&crowded(0.28), &slow).0, "run queue");
    assert_eq!(limiter_of(&crowded(0.06), &slow).0, "above the device");
    let unreadable = |r: &mut model::record::Record| {
        r.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Err("hidden".into()));
    };
    let idle = Fixture { device_time_share: 0.02, cpu_share: 0.02, ..Fixture::honest() };
    let (hidden, seen) = (limiter_of(&unreadable, &idle), limiter_of(&|_| (), &idle));
    assert!(hidden.0 == "above the device" && hidden.1.contains("cannot see is likely"), "{}", hidden.1);
    assert!(seen.0 == "above the device" && !seen.1.contains("likely"), "{}", seen.1);
    // The device was busy for 950 ms of each second, so its own queue may be full.
    let full_queue = |r: &mut model::record::Record| {
        unreadable(r);
        for snapshot in r.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
            let mut fields: Vec<&str> = text.split_ascii_whitespace().collect();
            fields[9] = if snapshot.moment == model::evidence::Moment::Stop { "950" } else { "0" };
            *text = fields.join(" ");
        }
    };
    let full = limiter_of(&full_queue, &idle);
    assert!(full.0 == "above the device" && !full.1.contains("likely"), "{}", full.1);
    // Writes that are made stable wait for syncs. A block device has no file system and no journal.
    let stable = Fixture {
        role: model::plan::Role::Device,
        cache: model::job::Cache::DirectDsync,
        device_time_share: 0.02,
        cpu_share: 0.02,
        ..Fixture::honest_write()
    };
    let synced = limiter_of(&unreadable, &stable);
    let names_other_cause = synced.1.contains("likely") || synced.1.contains("file system");
    assert!(synced.0 == "above the device" && !names_other_cause, "{}", synced.1);
    assert_eq!(
        limiter_of(&crowded(0.06), &Fixture::honest()).0,
        "device",
        "a finding that only biases limits nothing"
    );

    let quota = |us: &'static str| {
        move |r: &mut model::record::Record| {
            for (i, snapshot) in r.runs.iter_mut().flat_map(|r| &mut r.evidence).enumerate() {
                let text = format!("nr_throttled {i}\nthrottled_usec {}{us}\n", i + 1);
                snapshot.files.insert(model::evidence::CPU_STAT.into(), Ok(text));
            }
        }
    };
    assert_eq!(limiter_of(&quota("00000"), &Fixture::honest()).0, "device");
    assert_eq!(limiter_of(&quota("000000"), &Fixture::honest()).0, "CPU quota");

    let pressed =
        |r: &mut model::record::Record| kernel_text::fixture(r, kernel_text::MEMORY_PRESSURE_FILE, 0.2);
    let (name, sentence) = limiter_of(&pressed, &Fixture::honest());
    assert!(name == "memory pressure" && sentence.contains("20 %"), "{name}: {sentence}");
}

#[test]
fn a_full_link_is_named_and_one_with_room_is_not() {
    // 10,000 operations of 64 KiB a second are 655 MB/s.
    let with_lanes = |width: &str| {
        let mut record = Fixture { block_bytes: 64 << 10, ..Fixture::honest() }.record();
        let files = &mut record.header.hosts[0].places[0].layers[0].device;
        files.insert("current_link_speed".into(), "5.0 GT/s PCIe\n".into());
        files.insert("current_link_width".into(), format!("{width}\n"));
        let limiter = limiter_of_record(&record);
        (limiter.name, limiter.sentence)
    };
    assert_eq!(with_lanes("2").0, "device");
    let (name, sentence) = with_lanes("1");
    assert!(name == "link" && sentence.contains("500 MB/s"), "{name}: {sentence}");
}

#[test]
fn split_operations_are_distinguished_from_a_slow_device() {
    // Four requests for each operation, each with a third of its latency.
    let mut record = Fixture { cpu_share: 0.02, ..Fixture::honest() }.record();
    let mut done = 0_u64;
    for run in &mut record.runs {
        for snapshot in &mut run.evidence {
            let text = format!("{done} 0 {} {} 0 0 0 0 0 0 0 0 0 0 0 0 0", done * 2, done * 105 / 100);
            snapshot.files.insert("/sys/block/vda/stat".into(), Ok(text));
            done += if snapshot.moment == model::evidence::Moment::Start { 44_000 } else { 0 };
        }
    }
    let limiter = limiter_of_record(&record);
    assert!(limiter.sentence.contains("became 4.00 requests"), "{}: {}", limiter.name, limiter.sentence);
}
