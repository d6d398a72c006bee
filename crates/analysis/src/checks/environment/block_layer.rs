//! The block layer between the operations and the device: limits, time and settings (D04, D05, D22).
//!
//! D04 compares the rate with every I/O limit of all cgroups above fathom. If the rate is at a limit, that limit decided
//! the result; any other limit or weight is a note. Limits of a hypervisor or a cloud appear in no file (D05, D19).
//! D22 compares the scheduler, merging, completion CPU (`rq_affinity`) and request size of every device with the
//! defaults of its class, and, for I/O through the page cache, read-ahead and writeback throttling.
//!
//! D05 finds latency above the device: in a limit, a queue, a lock or a journal.
//! 1. Computes the mean time of an operation in the device. Each operation of a merged request takes the whole time of the request.
//! 2. Subtracts this time from the mean latency, and also the workers' time on a CPU (D06) and waiting for one (D08).
//! 3. Compares the rest with thresholds. The kernel counts whole milliseconds, so the rest has a lower and an upper bound.
//!
//! D05 applies only to direct I/O that reached the device.

use super::cpu::waited_for_cpu;
use super::file_system::is_remote;
use crate::checks::io_as_requested::has_queue;
use crate::checks::prelude::*;
use crate::figures::{RATED_KINDS, kernel_text, traffic};
use model::evidence::{IO_LIMIT_KINDS, LIMITS, unreadable_limits};
use model::record::StreamEnd;

/// Largest share by which a rate is below a limit and still counts as limited by it. With one operation at a time, a part
/// of each time slice is lost (91 % of the limit were observed).
const TOLERANCE_BELOW: f64 = 0.1;
/// Largest share by which a rate exceeds a limit and still counts as limited by it.
const TOLERANCE_ABOVE: f64 = 0.05;
/// A run may exceed the limit by what the limit allows in this time. The kernel distributes budgets in slices of 100 ms (20 ms on
/// some disks), and a run can start with one slice and end in the next.
const BURST_NS: f64 = 200e6;

pub(in crate::checks) const IO_LIMIT_CONFIGURED: Check = Check {
    id: CheckId::D04,
    name: "IO_LIMIT_CONFIGURED",
    belief: "no cgroup limits fathom's I/O",
    reads: "`io.max`, `io.latency`, `io.weight`, `blkio.throttle.*_device` and similar files of every cgroup \
            above fathom; the rates of the windows, over all streams; the counters of a device that gets only \
            a part of the work.",
    formula: formula!(
        "Compares the rate with each limit that a cgroup above fathom sets on the target's devices.\n\
         - Biased if the rate is between {least} and {most} of a limit: the rate has reached the limit, \
         which is named as the limiter of the result. The upper bound also allows what the limit lets \
         through in {burst}, two time slices of the kernel's throttle. If only a part of the work goes to the \
         limited device, its rate is what it completed; not checked if that is unknown.\n\
         - A note for any other limit on these devices in a direction of the job, for a latency target, \
         and for a weight other than the default.\n\
         - Not checked if no limit was found on the known devices, and a limited device may be in an \
         unknown part of the stack.\n\
         - Not checked if no limit was found, and a limit cannot be read or cgroups above fathom are not \
         visible, as in a container.\n\
         - Limits of devices do not apply to a network file system, or to a file system of a virtual \
         machine's host.",
        least = Share(1.0 - TOLERANCE_BELOW),
        most = Share(1.0 + TOLERANCE_ABOVE),
        burst = Ns(BURST_NS)
    ),
    provoke: "mkdir /sys/fs/cgroup/blkio/slow && echo '254:0 400' > /sys/fs/cgroup/blkio/slow/blkio.throttle.read_iops_device\n\
              echo $$ > /sys/fs/cgroup/blkio/slow/cgroup.procs && fathom run --rw randread .",
    fix: "Raise or lift the limit, or start fathom outside the cgroup (`systemd-run --scope`, or move the shell).",
    accept: "Accept it if the limit belongs to what you want to measure.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_io_limit_configured),
    #[cfg(test)]
    fires: Some(|| limited("/sys/fs/cgroup/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max")),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].facts.remove(LIMITS);
        record
    },
};

/// The unit that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LimitUnit {
    Bytes,
    Operations,
}

/// A limit on a device in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) kind: Kind,
    pub(crate) unit: LimitUnit,
    pub(crate) per_s: f64,
    file: String,
    /// Number of the limited device, such as `8:0`.
    device: String,
}

impl Limit {
    /// Whether a rate over `ns` is at the limit, within [`TOLERANCE_BELOW`], [`TOLERANCE_ABOVE`] and [`BURST_NS`].
    pub(crate) fn is_reached_by(&self, per_s: f64, ns: f64) -> bool {
        (1.0 - TOLERANCE_BELOW..=1.0 + TOLERANCE_ABOVE + BURST_NS / ns.max(1.0))
            .contains(&(per_s / self.per_s))
    }

    /// Describes the limit, such as `reads to 1,000 IOPS (/sys/fs/cgroup/...)`.
    pub(crate) fn describe(&self) -> String {
        self.describe_with("to")
    }

    /// Describes the limit with these words before the number, such as `limited to`.
    fn describe_with(&self, words: &str) -> String {
        let per_s = match self.unit {
            LimitUnit::Bytes => format!("{}/s", show_bytes(self.per_s as u64)),
            LimitUnit::Operations => format!("{} IOPS", show_count(self.per_s)),
        };
        format!("{}s {words} {per_s} ({})", self.kind.word(), self.file)
    }

    /// Whether all work of a case goes to the limited device.
    fn covers(&self, case: &Case) -> bool {
        case.places()
            .all(|place| !place.tops.is_empty() && place.tops.iter().all(|top| self.is_below(place, *top)))
    }

    /// Whether all work of a layer goes to the limited device.
    fn is_below(&self, place: &Place, layer: usize) -> bool {
        // Layers come before the layers below them, also in a damaged record.
        let below_next = |l: &Layer| !l.below.is_empty() && l.below.iter().all(|next| *next > layer);
        place.layers.get(layer).is_some_and(|l| {
            l.number == self.device || below_next(l) && l.below.iter().all(|next| self.is_below(place, *next))
        })
    }
}

/// The reason that D04 gives if no visible cgroup limits I/O, but the cgroups above the visible ones are hidden.
pub(crate) const OUTER_CGROUPS_HIDDEN: &str =
    "no visible cgroup limits I/O, but the cgroups above the visible ones are hidden, as in a container";

/// The limits of the target's devices.
#[derive(Default)]
struct Limits {
    hard: Vec<Limit>,
    /// Descriptions of weights, latency targets and similar settings.
    soft: Vec<String>,
}

fn check_io_limit_configured(case: &Case) -> Known<Answer> {
    let limits = read_limits(case)?;
    if limits.hard.is_empty() && limits.soft.is_empty() {
        // A limit on another device may apply to the part of the stack that is unknown.
        let why_unknown = case
            .places()
            .filter(|place| may_use_devices(place))
            .find_map(|place| place.unresolved_reason.clone());
        if let Some(why) = why_unknown.filter(|_| limits_any_device(case)) {
            return Err(format!(
                "a cgroup limits a device, and fathom cannot tell whether the target is on it: {why}"
            ));
        }
        if case.places().any(may_use_devices) {
            if let Some(why) = describe_unreadable(case) {
                return Err(why);
            }
            if case.may_hide_limits() {
                return not_checked(OUTER_CGROUPS_HIDDEN);
            }
        }
        return holds("No cgroup limits these operations.", evidence([]));
    }
    let unreadable = describe_unreadable(case).map_or_else(String::new, |why| format!(" Other {why}."));
    if let Some((limit, rate)) = find_reached_limit(case, &limits) {
        let on_device = if limit.covers(case) { "" } else { " on one of the devices" };
        return finding!(
            Severity::Biases,
            evidence([("limit_per_s", limit.per_s), ("rate_per_s", rate)]),
            "A cgroup limits {}: the rate{on_device} is at that limit.{}",
            limit.describe(),
            unreadable
        );
    }
    if let Some(limit) = limits.hard.iter().find(|limit| measure_rate(case, limit).is_none()) {
        return Err(format!(
            "a cgroup limits {}, only a part of the work goes to that device, and its rate is unknown",
            limit.describe()
        ));
    }
    let mut settings: Vec<String> =
        limits.hard.iter().map(|limit| limit.describe_with("limited to")).collect();
    settings.extend(limits.soft);
    finding!(
        Severity::Note,
        evidence([]),
        "A cgroup limits or weights the I/O of this device: {}.{}",
        settings.join("; "),
        unreadable
    )
}

/// Describes the limits on I/O that could not be read; `None` if all were read.
fn describe_unreadable(case: &Case) -> Option<String> {
    unreadable_limits(case.machine?.fact(LIMITS).ok()?, IO_LIMIT_KINDS)
}

/// Whether the rate is at a limit that a cgroup sets on a device that gets all the work (D04).
pub(super) fn reaches_limit(case: &Case) -> bool {
    let limits = read_limits(case).unwrap_or_default();
    find_reached_limit(case, &limits).is_some_and(|(limit, _)| limit.covers(&case.with_sharers()))
}

/// Returns the operations per second that the hard limits allow for the mix of this case, or `None` without a
/// limit. Leaves out limits of a device that gets only a part of the work: how much it gets is unknown.
pub(crate) fn most_iops(case: &Case) -> Option<f64> {
    let all: u64 = RATED_KINDS.map(|kind| case.in_windows(kind).ops).iter().sum();
    let allowed_iops = |limit: &Limit| {
        let done = case.in_windows(limit.kind);
        let part = if limit.unit == LimitUnit::Bytes { done.bytes } else { done.ops };
        (part > 0).then(|| limit.per_s * all as f64 / part as f64)
    };
    let limits = read_limits(case).ok()?;
    limits.hard.iter().filter(|l| l.covers(case)).filter_map(allowed_iops).min_by(f64::total_cmp)
}

/// Of the reached limits, returns the one that is nearest to the measured rate, with this rate; `None` if no limit is
/// reached.
fn find_reached_limit<'l>(case: &Case, limits: &'l Limits) -> Option<(&'l Limit, f64)> {
    let runs = case.runs.len().max(1) as f64;
    let window_ns = case.window_ns().max(1.0) / runs;
    let rates = limits.hard.iter().filter_map(|limit| Some((limit, measure_rate(case, limit)?)));
    let rates = rates.filter(|(limit, rate)| limit.is_reached_by(*rate, window_ns));
    let distance = |(limit, rate): &(&Limit, f64)| (rate / limit.per_s - 1.0).abs();
    rates.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Returns the mean rate over the runs on the limited device, in the unit of the limit. Adds up all streams that use the
/// device, because they share the limit. If only a part of the work goes to the device, this is the device's own count;
/// `None` if it is unknown.
fn measure_rate(case: &Case, limit: &Limit) -> Option<f64> {
    let all = case.with_sharers();
    if !limit.covers(&all) {
        return measure_rate_of_device(&all, limit);
    }
    let rate_of_stream = |s: &StreamEnd| {
        let end = s.kinds.get(&limit.kind)?;
        let amount = if limit.unit == LimitUnit::Bytes { end.bytes } else { end.latency.count() };
        (s.window_ns > 0).then(|| amount as f64 * 1e9 / s.window_ns as f64)
    };
    let streams = case.runs.iter().flat_map(|r| &r.end.streams).filter(|s| all.has_stream(s.stream));
    Some(streams.filter_map(rate_of_stream).sum::<f64>() / case.runs.len().max(1) as f64)
}

/// Returns the mean rate at which the limited device completed fathom's operations and those of others, from start to stop
/// of the runs; `None` if it is unknown. A limit counts operations before the device splits or merges them, so operations
/// are the device's bytes divided by the mean size of an operation.
fn measure_rate_of_device(case: &Case, limit: &Limit) -> Option<f64> {
    let layers = case.layers(|layer| layer.number == limit.device);
    let bytes = flow_of(&case.layer_io(&layers).ok()?, limit.kind).bytes as f64;
    let seconds = sum_over_runs(case, CaseRun::active_ns).ok()? as f64 / 1e9;
    let issued = case.issued(limit.kind);
    let amount = match limit.unit {
        LimitUnit::Bytes => bytes,
        LimitUnit::Operations if issued.bytes > 0 => bytes * issued.ops as f64 / issued.bytes as f64,
        LimitUnit::Operations => return None,
    };
    (seconds > 0.0).then(|| amount / seconds)
}

/// Returns the limits on the layers below the targets in the directions of this case.
fn read_limits(case: &Case) -> Known<Limits> {
    let text = case.machine.ok_or("the record names no host")?.fact(LIMITS)?;
    let numbers: Vec<&str> = case.places().flat_map(|p| &p.layers).map(|l| l.number.as_str()).collect();
    let mut out = parse_limits(text, &numbers);
    out.hard.retain(|l| case.does(l.kind));
    Ok(out)
}

/// Whether the target may be on a block device of this machine. The program of a FUSE file system may use such a
/// device.
fn may_use_devices(place: &Place) -> bool {
    let is_elsewhere = |kind: &str| is_remote(kind) && !kind.starts_with("fuse");
    !place.file_system.as_ref().is_some_and(|fs| is_elsewhere(&fs.kind))
}

/// Whether a cgroup limits any device in a direction of this case.
fn limits_any_device(case: &Case) -> bool {
    let text = case.machine.and_then(|machine| machine.fact(LIMITS).ok()).unwrap_or_default();
    let settings = text.lines().filter_map(|line| line.rsplit_once(": "));
    let numbers: Vec<&str> = settings.filter_map(|(_, setting)| setting.split(' ').next()).collect();
    parse_limits(text, &numbers).hard.iter().any(|limit| case.does(limit.kind))
}

/// Returns the limits on the device with this `number` (such as `8:0`), from the text of the limits of all cgroups.
pub(crate) fn hard_limits(text: &str, number: &str) -> Vec<Limit> {
    parse_limits(text, &[number]).hard
}

fn parse_limits(text: &str, numbers: &[&str]) -> Limits {
    let mut out = Limits::default();
    for line in text.lines() {
        // The name of a directory may contain a colon and a space. The text of a limit does not.
        let Some((file, setting)) = line.rsplit_once(": ") else { continue };
        let name = file.rsplit('/').next().unwrap_or(file);
        let (device, rest) = setting.split_once(' ').unwrap_or((setting, ""));
        if device.contains(':') && !numbers.contains(&device) {
            continue;
        }
        let throttle = name.strip_prefix("blkio.throttle.").and_then(|n| n.strip_suffix("_device"));
        if let Some(key) = throttle.filter(|key| limited_by(key).is_some()) {
            out.hard.extend(parse_limit(device, key, rest.trim(), file));
        } else if name == "io.max" {
            let parts = rest.split_ascii_whitespace().filter_map(|w| w.split_once('='));
            out.hard.extend(parts.filter_map(|(key, value)| parse_limit(device, key, value, file)));
        } else if name.starts_with("io.") || name.starts_with("blkio.") {
            out.soft.push(format!("{setting} ({file})"));
        }
    }
    out
}

fn parse_limit(device: &str, key: &str, value: &str, file: &str) -> Option<Limit> {
    let (kind, unit) = limited_by(key)?;
    let per_s = value.parse::<u64>().ok().filter(|n| *n > 0)? as f64;
    Some(Limit { kind, unit, per_s, file: file.to_owned(), device: device.to_owned() })
}

/// Returns what a key limits. In cgroup v1, the key is a part of a file name, in v2 a key of `io.max`.
fn limited_by(key: &str) -> Option<(Kind, LimitUnit)> {
    Some(match key {
        "read_bps" | "rbps" => (Kind::Read, LimitUnit::Bytes),
        "write_bps" | "wbps" => (Kind::Write, LimitUnit::Bytes),
        "read_iops" | "riops" => (Kind::Read, LimitUnit::Operations),
        "write_iops" | "wiops" => (Kind::Write, LimitUnit::Operations),
        _ => return None,
    })
}

/// If more than this share of the latency was spent above the device, the result is biased.
const TIME_BIASED_ABOVE: f64 = 0.3;
/// If more than this share of the latency was spent above the device, the result is relabelled.
const TIME_RELABELLED_ABOVE: f64 = 0.7;
/// Time that an operation may spend above the device without a finding: entering the kernel, an interrupt, waking a thread. On drives that
/// answer in some us, this is a large share of the latency.
const TIME_FLOOR_NS: f64 = 20e3;
/// Operations are not split if there are at most this many requests for each.
pub(crate) const ONE_TO_ONE: f64 = 1.1;
/// If the kernel counted at least this share of the time above the device as I/O wait, the finding calls that time I/O
/// wait.
const COUNTED_FROM: f64 = 0.5;
/// The reason that D05 gives if it has no answer because other processes used the device too.
const NOT_ALONE: &str = "the device's time includes requests of other processes (D01)";

pub(super) const TIME_ABOVE_DEVICE: Check = Check {
    id: CheckId::D05,
    name: "TIME_ABOVE_DEVICE",
    belief: "the latency is the latency of the device",
    reads: "Time of requests and flushes in `/sys/block/*/stat` of the top device; the latencies of the \
            stream; CPU time of the workers and their time waiting for a CPU; also `/proc/pressure/io`.",
    formula: formula!(
        "Share above the device = 1 - device time / sum of latencies - share of the workers' time on a CPU \
         - share of their time waiting for a CPU. All are per operation, since the counters include the \
         warm-up.\n\
         - Relabelled if the share is above {TIME_RELABELLED_ABOVE} and more than {floor} per operation \
         (the usual time in the kernel).\n\
         - Biased if the share is above {TIME_BIASED_ABOVE} and more than {floor} per operation.\n\
         - A note, instead of both, if the job includes syncs and no limit was reached (D04): waiting for \
         the journal is part of the number.\n\
         - Not checked if the answer depends on rounding or on split operations. The kernel shows whole \
         ms. The parts of a split operation (more than {ONE_TO_ONE} requests for each) run in parallel, so \
         their sum is an upper bound.\n\
         - Not checked, instead of holds, if other processes used the disk (D01): their device time counts \
         as fathom's, so the time above the device is only a lower bound.\n\
         - Not checked if other streams use the device at the same time, since the device's time for each \
         stream is unknown, or if the job trims.\n\
         - Each operation of a merged request counts the whole time of the request.\n\
         - Applies only to direct I/O of which at least {ARRIVED_FROM} of the bytes reached the device.",
        floor = Ns(TIME_FLOOR_NS)
    ),
    provoke: "mkdir /sys/fs/cgroup/blkio/slow && echo '254:0 1000' > /sys/fs/cgroup/blkio/slow/blkio.throttle.read_iops_device\n\
              echo $$ > /sys/fs/cgroup/blkio/slow/cgroup.procs && fathom run --rw randread --depth 1 .",
    fix: "Remove the cause that the finding names: a limit (D04), a full queue (nr_requests), a file \
          system's journal.",
    accept: "Accept it if you want to measure the whole path down to the device.",
    applies: |case| case.on_device() && case.stream.cache.is_direct(),
    ask: Ask::After(&[CheckId::D01], check_time_above_device),
    #[cfg(test)]
    fires: Some(|| with_device(0.1).record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

/// Where the time of an operation went.
struct TimeParts {
    latency_ns: f64,
    /// Lower and upper bound of the time inside the device.
    device_ns: [f64; 2],
    /// Share of the workers' time on a CPU.
    cpu: f64,
    /// Share of the workers' time in which they waited for a CPU.
    ready: f64,
}

impl TimeParts {
    /// Returns the lower and upper bound of the share of the latency above the device: without the time inside the
    /// device, on a CPU, and waiting for a CPU.
    fn share_above_device(&self) -> [f64; 2] {
        let share_above =
            |device: f64| (1.0 - device / self.latency_ns - self.cpu - self.ready).clamp(0.0, 1.0);
        [share_above(self.device_ns[1]), share_above(self.device_ns[0])]
    }

    /// Whether this share of the latency above the device is large enough for a finding.
    fn exceeds_thresholds(&self, share_above: f64) -> bool {
        share_above > TIME_BIASED_ABOVE && share_above * self.latency_ns > TIME_FLOOR_NS
    }
}

fn check_time_above_device(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let is_shared = earlier.finds(CheckId::D01);
    if !has_arrived(case, is_shared)? {
        return Ok(Answer::DoesNotApply);
    }
    let parts = divide_latency(case, is_shared)?;
    let [least, most] = parts.share_above_device();
    let pressure = kernel_text::pressure_share(case, kernel_text::IO_PRESSURE_FILE).ok();
    let numbers = evidence([
        ("latency_ns", parts.latency_ns),
        ("device_ns", parts.device_ns[1]),
        ("above_share", least),
        ("cpu_share", parts.cpu),
        ("ready_share", parts.ready),
        ("io_pressure_share", pressure.unwrap_or(f64::NAN)),
    ]);
    if !parts.exceeds_thresholds(most) {
        if is_shared {
            // The figures are complete, so a single run must not decide instead.
            return Ok(Answer::Undecided(NOT_ALONE.into()));
        }
        let sentence = if most <= TIME_BIASED_ABOVE {
            "The device and the CPUs account for at least two thirds of the latency."
        } else {
            "Operations spent no more time above the device than the usual overhead of the kernel."
        };
        return holds(sentence, numbers);
    }
    if !parts.exceeds_thresholds(least) {
        return undecided(
            "how much of the latency was spent in the device: the kernel counts whole milliseconds, or the \
             parts of split operations overlap",
        );
    }
    let (is_limited, syncs) = (reaches_limit(case), case.syncs());
    let severity = match least {
        _ if syncs && !is_limited => Severity::Note,
        part if part > TIME_RELABELLED_ABOVE => Severity::Relabels,
        _ => Severity::Biases,
    };
    let renames =
        (severity == Severity::Relabels).then(|| Rename::Condition("mostly waiting above the device".into()));
    detail!(
        severity,
        numbers,
        "{} of the latency was spent neither in the device ({} of {} per operation) nor on a CPU or waiting \
         for one, but above the device: {}.",
        show_share(least),
        show_ns(parts.device_ns[1]),
        show_ns(parts.latency_ns),
        probable_place(is_limited, syncs, pressure.map(|p| p >= COUNTED_FROM * least))
    )
    .relabelled(renames)
    .found()
}

/// Describes the probable place of the time above the device.
fn probable_place(is_limited: bool, syncs: bool, is_io_wait: Option<bool>) -> &'static str {
    match is_io_wait {
        _ if is_limited => "probably at the limit of a cgroup (D04)",
        _ if syncs => "probably in the file system's journal, which a sync waits for",
        Some(true) => {
            "where the kernel counts it as I/O wait, such as a limit, a full queue or a lock of the file \
             system"
        }
        Some(false) => {
            "where the kernel does not count it as I/O wait, such as a program in user space or a helper \
             thread"
        }
        None => "fathom cannot tell where",
    }
}

/// Whether the device moved at least [`ARRIVED_FROM`] of the bytes of fathom's operations.
fn has_arrived(case: &Case, is_shared: bool) -> Known<bool> {
    let (device, issued) = (own_traffic(case, is_shared)?.bytes as f64, case.issued_total().bytes as f64);
    Ok(issued > 0.0 && share(device, issued) >= ARRIVED_FROM)
}

/// Returns the requests and bytes that the device moved for fathom: all of them, unless other processes used it too
/// (`is_shared`, D01).
fn own_traffic(case: &Case, is_shared: bool) -> Known<Amount> {
    let total = case.device_io()?.total();
    let others = match traffic::traffic_of_others(case).into_iter().next() {
        _ if !is_shared => Amount::default(),
        Some(Ok(others)) => others.all(),
        _ => return Err(NOT_ALONE.into()),
    };
    if is_shared && !traffic::has_countable_requests(case) {
        // Requests of large operations cannot be attributed, so it is unknown whether several operations share a
        // request.
        return Err(NOT_ALONE.into());
    }
    Ok(Amount { ops: total.ios.saturating_sub(others.ops), bytes: total.bytes.saturating_sub(others.bytes) })
}

/// Returns where the time of the stream's operations went.
fn divide_latency(case: &Case, is_shared: bool) -> Known<TimeParts> {
    let streams = || case.runs.iter().map(|r| r.stream);
    if case.stream.is_open_loop() && streams().flat_map(|s| s.kinds.values()).any(|k| k.open.is_none()) {
        return Err("the record does not separate lateness from the storage's own time".into());
    }
    if streams().any(|s| s.issued.get(&Kind::Trim).is_some_and(|i| i.ops > 0)) {
        return Err("fathom does not count the time that the device spends on trims".into());
    }
    let issued = case.issued_total().ops as f64;
    let latencies_of = |kinds: &[Kind]| -> Vec<&Histogram> {
        streams().flat_map(|s| kinds.iter().filter_map(|k| s.kinds.get(k))).map(service_latency).collect()
    };
    let ops: f64 = latencies_of(&Kind::MOVING).iter().map(|latencies| latencies.count() as f64).sum();
    let latency: f64 = latencies_of(&Kind::ALL).iter().map(|latencies| latencies.sum_ns() as f64).sum();
    if ops <= 0.0 || latency <= 0.0 || issued <= 0.0 {
        return Err("no operation completed within a measured window".into());
    }
    // Syncs belong to the operations before them, so all times are per operation that moves bytes.
    let latency_ns = latency / ops;
    let device_ns = device_ns(case, issued, is_shared)?.map(|ns| ns.min(latency_ns));
    let (cpu, ready) = shares_of_all_workers(case)?;
    Ok(TimeParts { latency_ns, device_ns, cpu, ready })
}

/// Returns the lower and upper bound of the time inside the device per operation, in ns. Requests
/// of other processes make the bounds larger, never smaller.
fn device_ns(case: &Case, issued: f64, is_shared: bool) -> Known<[f64; 2]> {
    let device = case.device_io()?;
    let total = device.total();
    let (requests, ms) =
        (own_traffic(case, is_shared)?.ops as f64, total.ms as f64 + device.flushes().ms as f64);
    // The milliseconds of each direction, run and device may be off by one.
    let rounding_ms = 2.0 * case.runs.len() as f64 * case.top_layers()?.len() as f64;
    let merged = share(issued, requests).max(1.0);
    let per_op = |ms: f64| ms.max(0.0) * merged * 1e6 / issued;
    let is_split = requests > ONE_TO_ONE * issued && !case.syncs();
    let least =
        if is_split { (ms - rounding_ms).max(0.0) * 1e6 / requests } else { per_op(ms - rounding_ms) };
    Ok([least, per_op(ms + rounding_ms)])
}

/// Returns the shares of the workers' time on a CPU and waiting for one. If the kernel does not count the waiting time,
/// its share is 0, and the time counts as above the device.
fn shares_of_all_workers(case: &Case) -> Known<(f64, f64)> {
    let wall: f64 = case.workers().map(|w| w.wall_ns as f64).sum();
    if wall <= 0.0 {
        return Err("the record does not contain the CPU time of the workers".into());
    }
    let on_cpu: f64 = case.workers().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
    Ok((share(on_cpu, wall), waited_for_cpu(case).unwrap_or(0.0)))
}

/// Default read-ahead in KiB (VM_READAHEAD_PAGES).
const READ_AHEAD_KB: u64 = 128;
/// Default of max_sectors_kb before Linux 6.16, if the hardware allows requests of this size (BLK_DEF_MAX_SECTORS_CAP).
/// Newer kernels have a larger default.
const MAX_SECTORS_KB: u64 = 1280;
/// File with the target latency of writeback throttling.
const THROTTLE_FILE: &str = "wbt_lat_usec";
/// Target latency of writeback throttling in us, for spinning disks and for others (block/blk-wbt.c).
const THROTTLE_US: [u64; 2] = [75_000, 2_000];

pub(super) const SCHEDULER_EFFECTS: Check = Check {
    id: CheckId::D22,
    name: "SCHEDULER_EFFECTS",
    belief: "the block layer has the kernel's default settings",
    reads: "`scheduler`, `nomerges`, `rq_affinity`, `max_sectors_kb`, `read_ahead_kb` and `wbt_lat_usec` in \
            `/sys/block/*/queue/` of the disks and loop devices below, and the number of their hardware \
            queues.",
    formula: formula!(
        "A note lists each setting that differs from the default of the device's class. The defaults are:\n\
         - `scheduler`: `none` with several hardware queues, `none` or `mq-deadline` with one.\n\
         - `nomerges`: 0.\n\
         - `rq_affinity`: 1.\n\
         - `max_sectors_kb`: at least {MAX_SECTORS_KB}, or the hardware's limit if that is less.\n\
         - `read_ahead_kb`, for reads through the page cache: {READ_AHEAD_KB} or twice `optimal_io_size`, \
         whichever is more. Newer kernels set twice `max_sectors_kb` on a rotational disk or loop device \
         without `optimal_io_size`.\n\
         - `wbt_lat_usec`, for writes through the page cache: {spinning} on rotational disks and {others} \
         on other disks. Loop devices may have either value.",
        spinning = THROTTLE_US[0],
        others = THROTTLE_US[1]
    ),
    provoke: "`echo 2 > /sys/block/loop0/queue/nomerges`, and a run on a file system on /dev/loop0.",
    fix: "Report the settings with the number if they are intended, or restore the defaults in \
          /sys/block/*/queue/.",
    accept: "A note needs no --accept. A rule in `/etc/udev/rules.d/` or a tuned profile may have changed \
             the settings.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_scheduler_effects),
    #[cfg(test)]
    fires: Some(|| with_settings(&[("scheduler", "none mq-deadline [bfq]\n")], "1")),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].queue.clear();
        record
    },
};

fn check_scheduler_effects(case: &Case) -> Known<Answer> {
    let layers = case.layers(has_queue);
    if layers.is_empty() {
        return not_checked("no block device below the target is known");
    }
    let (mut changes, mut commands) = (Vec::new(), Vec::new());
    for layer in &layers {
        let (settings, restoring): (Vec<String>, Vec<String>) =
            changed_settings(case, layer)?.into_iter().unzip();
        if !settings.is_empty() {
            changes.push(format!("{}: {}", layer.name, settings.join(", ")));
        }
        commands.extend(restoring);
    }
    let numbers = evidence([("devices", layers.len() as f64), ("devices_changed", changes.len() as f64)]);
    if changes.is_empty() {
        return holds("The block layer settings that matter here are the kernel's defaults.", numbers);
    }
    detail!(
        Severity::Note,
        numbers,
        "Block layer settings differ from the kernel's defaults ({}).",
        changes.join("; ")
    )
    .with_fix(format!(
        "Report these settings with the number, or restore the defaults as root: {}.",
        commands.join(", ")
    ))
    .found()
}

/// Describes the settings of a device that differ from the defaults of its class, such as `nomerges 2 (default 0)`, each
/// with the command that restores the default. If the record does not show which of several defaults applies, the text
/// has a command for each default, with its condition.
fn changed_settings(case: &Case, layer: &Layer) -> Known<Vec<(String, String)>> {
    let describe = |file: &str, now: &str, defaults: &[&str]| {
        format!("{file} {now} (default {})", defaults.join(" or "))
    };
    let set = |file: &str, value: &str| format!("`echo {value} > /sys/block/{}/queue/{file}`", layer.name);
    let mut out = Vec::new();
    let schedulers = layer.queue.get("scheduler");
    let schedulers =
        schedulers.ok_or_else(|| format!("the kernel does not show the scheduler of {}", layer.name))?;
    let active_scheduler = active_scheduler(schedulers);
    // If the number of queues is unknown, both `none` and `mq-deadline` count as the default.
    let has_many_queues = layer.device_number("mq").is_ok_and(|queues| queues > 1);
    let is_default = active_scheduler == "none" || (!has_many_queues && active_scheduler == "mq-deadline");
    if !is_default {
        let defaults: &[&str] = if has_many_queues { &["none"] } else { &["none", "mq-deadline"] };
        let (none, deadline) = (set("scheduler", "none"), set("scheduler", "mq-deadline"));
        // Loop devices have no scheduler by default.
        let may_get_deadline = layer.kind != LayerKind::Loop && schedulers.contains("mq-deadline");
        let command = match layer.device_number("mq") {
            _ if has_many_queues || !may_get_deadline => none,
            Ok(_) => deadline,
            Err(_) => format!("{deadline} (with one hardware queue; with several {none})"),
        };
        out.push((describe("scheduler", active_scheduler, defaults), command));
    }
    let mut compare = |file: &str, defaults: &[u64], differs: fn(u64, u64) -> bool| {
        // Old kernels and devices without requests lack some of the files.
        if let Ok(now) = layer.queue_number(file)
            && defaults.iter().all(|default| differs(now, *default))
        {
            let defaults: Vec<String> = defaults.iter().map(u64::to_string).collect();
            let defaults: Vec<&str> = defaults.iter().map(String::as_str).collect();
            let command = match *defaults.as_slice() {
                // -1 restores the default of the device.
                _ if file == THROTTLE_FILE => set(file, "-1"),
                // The second default is that of newer kernels: see `default_read_aheads_kb`.
                [older, newer] => {
                    let (older, newer) = (set(file, older), set(file, newer));
                    let condition = if layer.kind == LayerKind::Loop {
                        ", if the backing disk is rotational"
                    } else {
                        ""
                    };
                    format!("{newer} (on newer kernels such as 6.18{condition}; otherwise {older})")
                }
                _ => set(file, &defaults.concat()),
            };
            out.push((describe(file, &now.to_string(), &defaults), command));
        }
    };
    let other = |now: u64, default: u64| now != default;
    compare("nomerges", &[0], other);
    compare("rq_affinity", &[1], other);
    let most = layer.queue_number("max_hw_sectors_kb").unwrap_or(MAX_SECTORS_KB);
    compare("max_sectors_kb", &[MAX_SECTORS_KB.min(most)], |now, default| now < default);
    if !case.stream.cache.is_direct() {
        if case.does(Kind::Read) {
            compare("read_ahead_kb", &default_read_aheads_kb(layer), other);
        }
        if case.does(Kind::Write) {
            compare(THROTTLE_FILE, &default_throttles_us(layer), other);
        }
    }
    Ok(out)
}

fn is_rotational(layer: &Layer) -> bool {
    layer.queue_number("rotational").is_ok_and(|r| r == 1)
}

/// Returns the values of `read_ahead_kb` that kernels set. Without `optimal_io_size`, newer kernels (such as 6.18) set twice
/// the largest request on rotational devices. The rotational flag of a loop device may change after the kernel set the value.
fn default_read_aheads_kb(layer: &Layer) -> Vec<u64> {
    let optimal_bytes = layer.queue_number("optimal_io_size").unwrap_or(0);
    let mut defaults = vec![READ_AHEAD_KB.max((optimal_bytes / 1024).saturating_mul(2))];
    let may_rotate = is_rotational(layer) || layer.kind == LayerKind::Loop;
    if let Ok(largest_kb) = layer.queue_number("max_sectors_kb")
        && optimal_bytes == 0
        && may_rotate
        && largest_kb.saturating_mul(2) > READ_AHEAD_KB
    {
        defaults.push(largest_kb.saturating_mul(2));
    }
    defaults
}

/// Returns the values of `wbt_lat_usec` that kernels set. The rotational flag of a loop device may change after the kernel set
/// the value.
fn default_throttles_us(layer: &Layer) -> Vec<u64> {
    match layer.kind {
        LayerKind::Loop => THROTTLE_US.to_vec(),
        _ if is_rotational(layer) => vec![THROTTLE_US[0]],
        _ => vec![THROTTLE_US[1]],
    }
}

/// Returns the scheduler in use: the one in brackets, or the only one.
fn active_scheduler(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(name, _)| name)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::job::Cache;

/// The honest record of 10,000 reads per second with these limits.
#[cfg(test)]
fn limited(text: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    record.header.hosts[0].facts.insert(LIMITS.into(), Ok(text.to_owned()));
    record
}

#[cfg(test)]
fn severity_of_limit(text: &str) -> Option<Severity> {
    IO_LIMIT_CONFIGURED.severity(&limited(text))
}

#[test]
fn the_allowed_rate_follows_from_the_mix_and_the_size() {
    let allowed_iops = |line: &str, read_percent| {
        let mut record = Fixture { read_percent, ..Fixture::honest() }.record();
        record.header.hosts[0].facts.insert(LIMITS.into(), Ok(format!("/c/io.max: 254:0 {line}")));
        most_iops(&crate::case::cases(&record)[0])
    };
    assert_eq!(allowed_iops("rbps=max wbps=max riops=2000 wiops=max", 100), Some(2_000.0));
    assert_eq!(allowed_iops("rbps=4096000 wbps=max riops=2000 wiops=max", 100), Some(1_000.0));
    assert_eq!(allowed_iops("rbps=max wbps=max riops=max wiops=2000", 100), None, "nothing is written");
}

#[test]
fn both_cgroup_versions_are_read_and_only_matching_limits_bias() {
    const V1: &str = "/sys/fs/cgroup/blkio/a: b/blkio.throttle.read_iops_device: 254:0";
    assert_eq!(severity_of_limit(&format!("{V1} 10400")), Some(Severity::Biases));
    assert_eq!(
        severity_of_limit(&format!("{V1} 8500")),
        Some(Severity::Biases),
        "the burst of a run of one second"
    );
    assert_eq!(severity_of_limit(&format!("{V1} 7000")), Some(Severity::Note));
    assert_eq!(severity_of_limit(&format!("{V1} 11000")), Some(Severity::Biases), "one at a time loses some");
    assert_eq!(severity_of_limit(&format!("{V1} 11500")), Some(Severity::Note));
    // 40.96 MB/s.
    assert_eq!(
        severity_of_limit("/c/io.max: 254:0 rbps=41000000 wbps=max riops=max wiops=max"),
        Some(Severity::Biases)
    );
    assert_eq!(
        severity_of_limit("/c/io.max: 254:0 rbps=82000000 wbps=max riops=max wiops=max"),
        Some(Severity::Note)
    );
}

#[test]
fn a_limit_is_compared_with_the_work_of_its_device() {
    use crate::fixture::two_streams_on_two_disks;
    let limited = |riops: u64| {
        let mut record = two_streams_on_two_disks(&Fixture::honest(), &Fixture::honest());
        // Each run has 10,000 operations on each disk, all of them from the first stream.
        record.header.plan.jobs[0].phases[0].streams.truncate(1);
        record.header.plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
        for end in record.runs.iter_mut().filter_map(|run| run.end.as_mut()) {
            end.streams.truncate(1);
            let reads = end.streams[0].issued.get_mut(&Kind::Read).unwrap();
            (reads.ops, reads.bytes) = (2 * reads.ops, 2 * reads.bytes);
        }
        let limit = format!("/c/io.max: 254:16 rbps=max wbps=max riops={riops} wiops=max");
        record.header.hosts[0].facts.insert(LIMITS.into(), Ok(limit));
        record
    };
    let answer = |record: &model::record::Record| IO_LIMIT_CONFIGURED.answer(record);
    let reached = limited(10_000);
    let Ok(Answer::Finding(found)) = answer(&reached) else { panic!("{:?}", answer(&reached)) };
    assert_eq!(found.severity, Severity::Biases);
    assert!(found.sentence.contains("the rate on one of the devices"), "{}", found.sentence);
    assert!(!reaches_limit(&crate::case::cases(&reached)[0]), "the limit does not explain the whole rate");
    assert_eq!(most_iops(&crate::case::cases(&reached)[0]), None);
    // The limit of one disk is the rate of both.
    assert_eq!(IO_LIMIT_CONFIGURED.severity(&limited(20_000)), Some(Severity::Note));
    let mut uncounted = limited(10_000);
    for snapshot in uncounted.runs.iter_mut().flat_map(|run| &mut run.evidence) {
        snapshot.files.insert("/sys/block/vdb/stat".into(), Err("permission denied".into()));
    }
    assert!(answer(&uncounted).is_err_and(|why| why.contains("a part of the work")));
}

#[test]
fn limits_of_an_unknown_device_are_not_checked() {
    let answer = |text: &str| {
        let mut record = limited(text);
        record.header.hosts[0].places[0].unresolved_reason = Some("the disks below md0 are unknown".into());
        IO_LIMIT_CONFIGURED.answer(&record)
    };
    assert!(answer("/c/io.max: 8:0 riops=10000").is_err_and(|why| why.contains("below md0")));
    assert!(matches!(answer("/c/io.max: 254:0 riops=10000"), Ok(Answer::Finding(_))));
    assert!(matches!(answer("/c/io.max: 8:0 wiops=10000"), Ok(Answer::Holds(..))), "the job only reads");
    assert!(matches!(answer("/c/cpu.max: 50000 100000"), Ok(Answer::Holds(..))));
}

#[test]
fn an_unreadable_limit_is_not_checked_unless_a_limit_was_found() {
    const UNREADABLE: &str = "/c/cpu.max: 50000 100000\nunreadable: /c/io.max (permission denied)\n";
    let answer = IO_LIMIT_CONFIGURED.answer(&limited(UNREADABLE));
    assert!(answer.as_ref().is_err_and(|why| why.contains("/c/io.max (permission denied)")), "{answer:?}");
    let cpu_only = "/c/memory.max: 9000\nunreadable: /c/cpu.max (permission denied)\n";
    assert!(matches!(IO_LIMIT_CONFIGURED.answer(&limited(cpu_only)), Ok(Answer::Holds(..))));
    for (riops, severity) in [(10_000, Severity::Biases), (900_000, Severity::Note)] {
        let found = limited(&format!("/c/a/io.max: 254:0 riops={riops}\n{UNREADABLE}"));
        let Ok(Answer::Finding(detail)) = IO_LIMIT_CONFIGURED.answer(&found) else { panic!("{riops}") };
        assert_eq!(detail.severity, severity);
        assert!(detail.sentence.ends_with("read: /c/io.max (permission denied)."), "{}", detail.sentence);
    }
}

#[test]
fn hidden_limits_are_not_checked_and_leave_the_verdict() {
    use crate::{Judging, judge};
    let mut hidden = Fixture::honest().record();
    let why = "the cgroups above /sys/fs/cgroup are not visible";
    hidden.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Err(why.into()));
    let answer = IO_LIMIT_CONFIGURED.answer(&hidden);
    assert!(answer.as_ref().is_err_and(|told| told.contains(why)), "{answer:?}");
    for text in ["/cg/cgroup.type: domain\n", "/cg/memory.max: 9000\n/cg/cgroup.type: domain\n"] {
        let answer = IO_LIMIT_CONFIGURED.answer(&limited(text));
        assert_eq!(answer, Err(OUTER_CGROUPS_HIDDEN.into()), "{text}");
        let nfs = Fixture { kind: "nfs4", ..Fixture::honest() };
        let mut remote = nfs.record();
        remote.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text.into()));
        assert!(!matches!(IO_LIMIT_CONFIGURED.answer(&remote), Err(why) if why == OUTER_CGROUPS_HIDDEN));
    }
    let seen = limited("/cg/io.max: 254:0 riops=10000\n/cg/cgroup.type: domain\n");
    assert_eq!(IO_LIMIT_CONFIGURED.severity(&seen), Some(Severity::Biases));
    let verdict = |record| judge(&record, &Judging::default()).results[0].verdict;
    assert_eq!(verdict(hidden), verdict(Fixture::honest().record()));
}

#[test]
fn limits_of_devices_do_not_apply_to_remote_file_systems() {
    let answer = |kind: &str| {
        let mut record = limited("/c/io.max: 8:0 riops=10000");
        let place = &mut record.header.hosts[0].places[0];
        (place.layers, place.tops) = (Vec::new(), Vec::new());
        place.unresolved_reason = Some(format!("{kind} has no block device that could be seen"));
        place.file_system.as_mut().unwrap().kind = kind.into();
        IO_LIMIT_CONFIGURED.answer(&record)
    };
    for remote in ["nfs4", "cifs", "virtiofs"] {
        assert!(matches!(answer(remote), Ok(Answer::Holds(..))), "{remote}: {:?}", answer(remote));
    }
    // The program of a FUSE file system may use a limited device, and gfs2 and overlay may be on one.
    for local in ["fuse.bindfs", "fuse.sshfs", "fuseblk", "gfs2", "overlay"] {
        assert!(answer(local).is_err_and(|why| why.contains("no block device")), "{local}");
    }
}

#[test]
fn limits_on_other_devices_or_directions_do_not_count() {
    assert_eq!(severity_of_limit("/c/io.max: 8:0 rbps=max wbps=max riops=10000 wiops=max"), None);
    assert_eq!(severity_of_limit("/c/io.max: 254:0 rbps=max wbps=max riops=max wiops=10000"), None);
    assert_eq!(severity_of_limit("/c/cpu.max: 50000 100000"), None);
    assert_eq!(severity_of_limit("/c/io.max: 254:0 rbps=x riops=18446744073709551616 =\n:::\n\n: "), None);
}

#[test]
fn weights_are_a_note() {
    assert_eq!(severity_of_limit("/c/io.weight: default 50"), Some(Severity::Note));
    assert_eq!(severity_of_limit("/c/io.latency: 254:0 target=10000"), Some(Severity::Note));
    assert_eq!(severity_of_limit("/c/io.latency: 8:0 target=10000"), None);
}

/// The honest record with little CPU time and this share of the latency inside the device.
#[cfg(test)]
fn with_device(device_time_share: f64) -> Fixture {
    Fixture { device_time_share, cpu_share: 0.02, ..Fixture::honest() }
}

#[cfg(test)]
fn severity_of_time_above(fixture: &Fixture) -> Option<Severity> {
    TIME_ABOVE_DEVICE.severity(&fixture.record())
}

#[test]
fn the_share_above_the_device_decides_the_severity() {
    assert_eq!(severity_of_time_above(&with_device(0.93)), None);
    assert_eq!(severity_of_time_above(&with_device(0.72)), None);
    assert_eq!(severity_of_time_above(&with_device(0.65)), Some(Severity::Biases));
    assert_eq!(severity_of_time_above(&with_device(0.1)), Some(Severity::Relabels));
    // Each operation of a merged request takes the whole time of the request.
    assert_eq!(severity_of_time_above(&Fixture { merged: 4, ..with_device(0.93) }), None);
}

#[test]
fn a_belief_that_holds_claims_no_more_than_its_figures() {
    let pass = |fixture: Fixture| match TIME_ABOVE_DEVICE.answer(&fixture.record()) {
        Ok(Answer::Holds(sentence, evidence)) => (sentence, evidence["above_share"]),
        other => panic!("{other:?}"),
    };
    let (sentence, above) = pass(with_device(0.72));
    assert!(
        above > 0.2 && 1.0 - above >= 2.0 / 3.0 && sentence.contains("two thirds"),
        "{above}: {sentence}"
    );
    let quick = Fixture { depth: 1, depth_seen: 0.9, latency_ns: Some(30_000), ..with_device(0.45) };
    let (sentence, above) = pass(quick);
    assert!(above > 0.4 && sentence.contains("overhead of the kernel"), "{above}: {sentence}");
}

#[test]
fn cpu_time_and_waiting_for_a_cpu_do_not_count() {
    assert_eq!(severity_of_time_above(&Fixture { cpu_share: 0.5, ..with_device(0.4) }), None);
    let mut record = with_device(0.4).record();
    for worker in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers) {
        worker.ready_ns = Ok(worker.wall_ns / 2);
    }
    assert_eq!(TIME_ABOVE_DEVICE.severity(&record), None);
}

#[test]
fn small_reads_on_a_fast_drive_are_silent() {
    let quick = |ns| Fixture { depth: 1, depth_seen: 0.9, latency_ns: Some(ns), ..with_device(0.45) };
    assert_eq!(
        (severity_of_time_above(&quick(30_000)), severity_of_time_above(&quick(60_000))),
        (None, Some(Severity::Biases))
    );
}

#[test]
fn rounding_to_milliseconds_is_not_checked() {
    let few = Fixture { ops: 10, latency_ns: Some(200_000), ..with_device(0.1) };
    let why = TIME_ABOVE_DEVICE.answer(&few.record());
    assert!(why.as_ref().is_err_and(|w| w.contains("whole milliseconds")), "{why:?}");
}

#[test]
fn d05_does_not_apply_to_cached_and_buffered_operations() {
    use model::job::Cache;
    let cached = Fixture { delivered: 0.02, ..with_device(0.9) };
    assert_eq!(TIME_ABOVE_DEVICE.answer(&cached.record()), Ok(Answer::DoesNotApply));
    let buffered = Fixture { cache: Cache::Buffered, ..with_device(0.1) };
    assert_eq!(TIME_ABOVE_DEVICE.answer(&buffered.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn other_processes_do_not_hide_time_above_the_device() {
    let with_others = |share| Fixture { foreign_ios: 9_000, ..with_device(share) };
    assert_eq!(severity_of_time_above(&with_others(0.1)), Some(Severity::Relabels));
    let hidden = TIME_ABOVE_DEVICE.answer(&with_others(0.93).record());
    assert!(hidden.as_ref().is_err_and(|why| why.contains("D01")), "{hidden:?}");
}

#[test]
fn the_sentence_names_the_probable_place() {
    let answer_after = |change: &dyn Fn(&mut model::record::Record), fixture: Fixture| {
        let mut record = fixture.record();
        change(&mut record);
        match TIME_ABOVE_DEVICE.answer(&record) {
            Ok(Answer::Finding(f)) => (f.severity, f.sentence),
            other => panic!("{other:?}"),
        }
    };
    let limit = |r: &mut model::record::Record| {
        let text = "/c/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max".to_owned();
        r.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text));
    };
    let (severity, sentence) = answer_after(&limit, with_device(0.1));
    assert!(severity == Severity::Relabels && sentence.contains("D04"), "{sentence}");
    let dsync = Fixture {
        cache: model::job::Cache::DirectDsync,
        read_percent: 0,
        sync_ns: Some(1_000_000),
        ..with_device(0.1)
    };
    let (severity, sentence) = answer_after(&|_| {}, dsync);
    assert!(severity == Severity::Note && sentence.contains("journal"), "{sentence}");
    let (_, sentence) =
        answer_after(&|r| kernel_text::fixture(r, kernel_text::IO_PRESSURE_FILE, 0.9), with_device(0.1));
    assert!(sentence.contains("counts it as I/O wait"), "{sentence}");
    let (_, sentence) = answer_after(&|_| {}, with_device(0.1));
    assert!(sentence.contains("user space"), "{sentence}");
}

#[cfg(test)]
fn with_settings_on(fixture: &Fixture, files: &[(&str, &str)], queues: &str) -> model::record::Record {
    let mut record = fixture.record();
    let layer = &mut record.header.hosts[0].places[0].layers[0];
    layer.queue.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    layer.device.insert("mq".into(), queues.into());
    record
}

/// An honest record whose disk has these settings and this many hardware queues.
#[cfg(test)]
fn with_settings(files: &[(&str, &str)], queues: &str) -> model::record::Record {
    with_settings_on(&Fixture::honest(), files, queues)
}

#[test]
fn defaults_for_one_and_for_several_queues_are_silent() {
    let deadline = ("scheduler", "none [mq-deadline] kyber bfq \n");
    assert!(matches!(SCHEDULER_EFFECTS.answer(&with_settings(&[deadline], "1")), Ok(Answer::Holds(..))));
    assert_eq!(SCHEDULER_EFFECTS.severity(&with_settings(&[deadline], "8")), Some(Severity::Note));
    let none = [("scheduler", "none\n"), ("max_sectors_kb", "512\n"), ("max_hw_sectors_kb", "512\n")];
    assert!(matches!(SCHEDULER_EFFECTS.answer(&with_settings(&none, "8")), Ok(Answer::Holds(..))));
}

#[test]
fn changed_settings_are_listed_with_their_defaults() {
    let files = [("nomerges", "2\n"), ("rq_affinity", "1\n"), ("max_sectors_kb", "128\n")];
    let Ok(Answer::Finding(f)) = SCHEDULER_EFFECTS.answer(&with_settings(&files, "4")) else {
        panic!("silent")
    };
    assert!(
        f.sentence.contains("vda: nomerges 2 (default 0), max_sectors_kb 128 (default 1280)"),
        "{}",
        f.sentence
    );
}

#[test]
fn the_fix_has_the_command_that_applies() {
    const TWO_SCHEDULERS: &str = "`echo mq-deadline > /sys/block/vda/queue/scheduler` (with one hardware queue; with several `echo none > \
         /sys/block/vda/queue/scheduler`).";
    const TWO_READ_AHEADS: &str = "`echo 2560 > /sys/block/vda/queue/read_ahead_kb` (on newer kernels such as 6.18; otherwise `echo 128 > \
         /sys/block/vda/queue/read_ahead_kb`).";
    const OF_LOOP: &str =
        "(on newer kernels such as 6.18, if the backing disk is rotational; otherwise `echo 128 > ";
    let bfq = ("scheduler", "none mq-deadline [bfq]");
    let with_fix = |kind, files: &[(&str, &str)], queues: Option<&str>| {
        let fixture = Fixture { cache: Cache::Buffered, read_percent: 50, ..Fixture::honest() };
        let mut record = with_settings_on(&fixture, files, queues.unwrap_or_default());
        let layer = &mut record.header.hosts[0].places[0].layers[0];
        layer.kind = kind;
        if queues.is_none() {
            layer.device.remove("mq");
        }
        match SCHEDULER_EFFECTS.answer(&record) {
            Ok(Answer::Finding(found)) => found.fix.unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    };
    let (disk, looped) = (LayerKind::Disk, LayerKind::Loop);
    for (kind, files, queues, end) in [
        (disk, vec![bfq], Some("1"), ": `echo mq-deadline > /sys/block/vda/queue/scheduler`."),
        (disk, vec![bfq], Some("8"), ": `echo none > /sys/block/vda/queue/scheduler`."),
        (
            disk,
            vec![("scheduler", "none [bfq]")],
            Some("1"),
            ": `echo none > /sys/block/vda/queue/scheduler`.",
        ),
        (looped, vec![bfq], Some("1"), ": `echo none > /sys/block/vda/queue/scheduler`."),
        (disk, vec![bfq], None, TWO_SCHEDULERS),
        (disk, vec![("rotational", "1"), ("read_ahead_kb", "8")], Some("1"), TWO_READ_AHEADS),
        (looped, vec![("read_ahead_kb", "8")], Some("1"), OF_LOOP),
        (disk, vec![("read_ahead_kb", "8")], Some("1"), ": `echo 128 > /sys/block/vda/queue/read_ahead_kb`."),
        (looped, vec![("wbt_lat_usec", "0")], Some("1"), ": `echo -1 > /sys/block/vda/queue/wbt_lat_usec`."),
        (disk, vec![("nomerges", "2")], Some("1"), ": `echo 0 > /sys/block/vda/queue/nomerges`."),
    ] {
        let fix = with_fix(kind, &files, queues);
        assert!(fix.contains(end), "{kind:?} {files:?} {queues:?}: {fix}");
    }
}

#[test]
fn page_cache_settings_matter_only_for_buffered_io() {
    let ahead = [("read_ahead_kb", "8192\n"), ("wbt_lat_usec", "0\n")];
    let severity_with =
        |fixture: Fixture| SCHEDULER_EFFECTS.severity(&with_settings_on(&fixture, &ahead, "4"));
    assert_eq!(severity_with(Fixture::honest()), None);
    assert_eq!(severity_with(Fixture { cache: Cache::Buffered, ..Fixture::honest() }), Some(Severity::Note));
    assert_eq!(
        severity_with(Fixture { cache: Cache::Buffered, ..Fixture::honest_write() }),
        Some(Severity::Note)
    );
    let defaults =
        [("read_ahead_kb", "8192\n"), ("optimal_io_size", "4194304\n"), ("wbt_lat_usec", "2000\n")];
    let buffered = Fixture { cache: Cache::Buffered, read_percent: 50, ..Fixture::honest() };
    assert_eq!(SCHEDULER_EFFECTS.severity(&with_settings_on(&buffered, &defaults, "4")), None);
}

#[test]
fn values_that_the_kernel_set_for_rotational_and_loop_devices_are_silent() {
    let severity = |kind: LayerKind, rotational: &str, sectors: &str, ahead: &str, throttle: &str| {
        let files = [
            ("rotational", rotational),
            ("max_sectors_kb", sectors),
            ("read_ahead_kb", ahead),
            ("optimal_io_size", "0"),
            ("wbt_lat_usec", throttle),
        ];
        let fixture = Fixture { cache: Cache::Buffered, read_percent: 50, ..Fixture::honest() };
        let mut record = with_settings_on(&fixture, &files, "4");
        record.header.hosts[0].places[0].layers[0].kind = kind;
        SCHEDULER_EFFECTS.severity(&record)
    };
    for (kind, rotational, sectors, ahead, throttle) in [
        (LayerKind::Disk, "1", "4096", "8192", "75000"),
        (LayerKind::Disk, "1", "1280", "128", "75000"),
        (LayerKind::Loop, "1", "1280", "2560", "2000"),
        (LayerKind::Loop, "0", "1280", "2560", "75000"),
        (LayerKind::Loop, "0", "1280", "128", "2000"),
    ] {
        let found = severity(kind, rotational, sectors, ahead, throttle);
        assert_eq!(found, None, "{kind:?} {rotational} {ahead} {throttle}");
    }
    for (kind, rotational, ahead, throttle) in [
        (LayerKind::Disk, "0", "8192", "2000"),
        (LayerKind::Disk, "1", "4096", "75000"),
        (LayerKind::Disk, "1", "8192", "2000"),
        (LayerKind::Loop, "0", "128", "0"),
    ] {
        let found = severity(kind, rotational, "4096", ahead, throttle);
        assert_eq!(found, Some(Severity::Note), "{kind:?} {rotational} {ahead} {throttle}");
    }
}
