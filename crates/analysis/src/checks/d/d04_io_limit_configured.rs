//! D04: cgroup limits on the I/O of the target's devices. Compares the rate with every limit of all cgroups above
//! fathom; a limit that matches limits the result, any other limit or weight is a note. Limits of a hypervisor or
//! a cloud appear in no file (D05, D19).

use crate::checks::prelude::*;
use model::evidence::LIMITS;
use model::record::StreamEnd;

/// Share by which a rate may stay below the limit that it waits for. One operation at a time loses a part of each
/// slice (91 % were seen).
const TOLERANCE_BELOW: f64 = 0.1;
/// Share by which a rate may exceed its limit.
const TOLERANCE_ABOVE: f64 = 0.05;
/// Time whose budget may pass in addition to a limit. The kernel distributes budgets in slices of 100 ms (20 ms
/// on some disks), and a run can start with one slice and end in the next.
const BURST_NS: f64 = 200e6;

pub(in crate::checks) const CHECK: Check = Check {
    id: CheckId::D04,
    name: "IO_LIMIT_CONFIGURED",
    belief: "no cgroup limits fathom's I/O",
    reads: "`io.max`, `io.latency`, `io.weight`, `blkio.throttle.*_device` and similar files of every cgroup \
            above fathom; the rates of the windows, over all streams.",
    formula: formula!(
        "If a rate is between {least} and {most} of a limit on one of the target's devices, plus what passes \
         in {burst} (two slices of the kernel's throttle), it is that limit: biased, and the limit is named \
         as the limiter of the result. Any other limit on these devices, and any weight other than the \
         default, is a note.",
        least = Share(1.0 - TOLERANCE_BELOW),
        most = Share(1.0 + TOLERANCE_ABOVE),
        burst = Ns(BURST_NS)
    ),
    provoke: "mkdir /sys/fs/cgroup/blkio/slow && echo '254:0 400' > /sys/fs/cgroup/blkio/slow/blkio.throttle.read_iops_device\n\
              echo $$ > /sys/fs/cgroup/blkio/slow/cgroup.procs && fathom run --rw randread .",
    fix: "Start fathom outside the cgroup (`systemd-run --scope`, or move the shell), or lift the limit.",
    accept: "Accept it if the limit belongs to what you want to measure.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| limited("/sys/fs/cgroup/io.max: 254:0 rbps=max wbps=max riops=10000 wiops=max")),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
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
}

impl Limit {
    /// Whether a rate over `ns` matches the limit, with the tolerances above.
    pub(crate) fn is_reached_by(&self, per_s: f64, ns: f64) -> bool {
        (1.0 - TOLERANCE_BELOW..=1.0 + TOLERANCE_ABOVE + BURST_NS / ns.max(1.0))
            .contains(&(per_s / self.per_s))
    }

    /// Describes the limit, such as `reads to 1,000 IOPS (/sys/fs/cgroup/...)`.
    pub(crate) fn describe(&self) -> String {
        let per_s = match self.unit {
            LimitUnit::Bytes => format!("{}/s", show_bytes(self.per_s as u64)),
            LimitUnit::Operations => format!("{} IOPS", show_count(self.per_s)),
        };
        format!("{}s to {per_s} ({})", self.kind.word(), self.file)
    }
}

/// The limits of the target's devices.
#[derive(Default)]
struct Limits {
    hard: Vec<Limit>,
    /// Descriptions of weights, latency targets and similar settings.
    soft: Vec<String>,
}

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let limits = limits(case)?;
    if limits.hard.is_empty() && limits.soft.is_empty() {
        return holds("No cgroup limits these operations.", evidence([]));
    }
    if let Some((limit, rate)) = nearest(case, &limits) {
        let numbers = evidence([("limit_per_s", limit.per_s), ("rate_per_s", rate)]);
        return finding!(
            Severity::Biased,
            numbers,
            "A cgroup limits {}: you measured that limit.",
            limit.describe()
        );
    }
    let mut settings: Vec<String> = limits.hard.iter().map(Limit::describe).collect();
    settings.extend(limits.soft);
    finding!(
        Severity::Note,
        evidence([]),
        "A cgroup controls the I/O of this device: {}.",
        settings.join("; ")
    )
}

/// Returns the sentence and the numbers of the limit that the result reached, or `None`.
pub(super) fn reached(case: &Case) -> Option<(String, Evidence)> {
    match evaluate(case) {
        Ok(Answer::Finding(f)) if f.severity == Severity::Biased => Some((f.sentence, f.evidence)),
        _ => None,
    }
}

/// Returns the operations per second that the hard limits allow for the mix of this case, or `None` without a
/// limit.
pub(crate) fn most_iops(case: &Case) -> Option<f64> {
    let all: u64 = [Kind::Read, Kind::Write, Kind::Trim].map(|kind| case.in_windows(kind).ops).iter().sum();
    let allowed_iops = |limit: &Limit| {
        let done = case.in_windows(limit.kind);
        let part = if limit.unit == LimitUnit::Bytes { done.bytes } else { done.ops };
        (part > 0).then(|| limit.per_s * all as f64 / part as f64)
    };
    limits(case).ok()?.hard.iter().filter_map(allowed_iops).min_by(f64::total_cmp)
}

/// Returns the limit that a rate matches best, if one matches.
fn nearest<'l>(case: &Case, limits: &'l Limits) -> Option<(&'l Limit, f64)> {
    let runs = case.runs.len().max(1) as f64;
    let window_ns = case.window_ns().max(1.0) / runs;
    let rates = limits.hard.iter().map(|limit| (limit, rate(case, limit)));
    let rates = rates.filter(|(limit, rate)| limit.is_reached_by(*rate, window_ns));
    let distance = |(limit, rate): &(&Limit, f64)| (rate / limit.per_s - 1.0).abs();
    rates.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Returns the mean rate of a kind over the runs, of all streams that use the device: they share the limit.
fn rate(case: &Case, limit: &Limit) -> f64 {
    let all = case.with_sharers();
    let rate_of_stream = |s: &StreamEnd| {
        let end = s.kinds.get(&limit.kind)?;
        let amount = if limit.unit == LimitUnit::Bytes { end.bytes } else { end.latency.count() };
        (s.window_ns > 0).then(|| amount as f64 * 1e9 / s.window_ns as f64)
    };
    let streams = case.runs.iter().flat_map(|r| &r.end.streams).filter(|s| all.counts(s.stream));
    let sum: f64 = streams.filter_map(rate_of_stream).sum();
    sum / case.runs.len().max(1) as f64
}

/// Returns the limits on the layers below the targets in the directions of this case.
fn limits(case: &Case) -> Known<Limits> {
    let text = case.machine.ok_or("the record names no host")?.fact(LIMITS)?;
    let numbers: Vec<&str> = case.places().flat_map(|p| &p.layers).map(|l| l.number.as_str()).collect();
    let mut out = parse(text, &numbers);
    out.hard.retain(|l| case.does(l.kind));
    Ok(out)
}

/// Returns the limits on a device from the text of the limits of all cgroups.
pub(crate) fn hard_limits(text: &str, number: &str) -> Vec<Limit> {
    parse(text, &[number]).hard
}

fn parse(text: &str, numbers: &[&str]) -> Limits {
    let mut out = Limits::default();
    for line in text.lines() {
        // A directory may contain a colon. The text of a limit has none before its first space.
        let Some((file, setting)) = line.rsplit_once(": ") else { continue };
        let name = file.rsplit('/').next().unwrap_or(file);
        let (device, rest) = setting.split_once(' ').unwrap_or((setting, ""));
        if device.contains(':') && !numbers.contains(&device) {
            continue;
        }
        let throttle = name.strip_prefix("blkio.throttle.").and_then(|n| n.strip_suffix("_device"));
        if let Some(key) = throttle.filter(|key| limited_by(key).is_some()) {
            out.hard.extend(limit(key, rest.trim(), file));
        } else if name == "io.max" {
            let parts = rest.split_ascii_whitespace().filter_map(|w| w.split_once('='));
            out.hard.extend(parts.filter_map(|(key, value)| limit(key, value, file)));
        } else if name.starts_with("io.") || name.starts_with("blkio.") {
            out.soft.push(format!("{setting} ({file})"));
        }
    }
    out
}

fn limit(key: &str, value: &str, file: &str) -> Option<Limit> {
    let (kind, unit) = limited_by(key)?;
    let per_s = value.parse::<u64>().ok().filter(|n| *n > 0)? as f64;
    Some(Limit { kind, unit, per_s, file: file.to_owned() })
}

/// Returns what a key limits: part of a file name in cgroup v1, a key of `io.max` in v2.
fn limited_by(key: &str) -> Option<(Kind, LimitUnit)> {
    Some(match key {
        "read_bps" | "rbps" => (Kind::Read, LimitUnit::Bytes),
        "write_bps" | "wbps" => (Kind::Write, LimitUnit::Bytes),
        "read_iops" | "riops" => (Kind::Read, LimitUnit::Operations),
        "write_iops" | "wiops" => (Kind::Write, LimitUnit::Operations),
        _ => return None,
    })
}

/// The honest record of 10,000 reads per second with these limits.
#[cfg(test)]
fn limited(text: &str) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    record.header.hosts[0].facts.insert(LIMITS.into(), Ok(text.to_owned()));
    record
}

#[cfg(test)]
fn at(text: &str) -> Option<Severity> {
    CHECK.severity(&limited(text))
}

#[test]
fn the_allowed_rate_follows_from_the_mix_and_the_size() {
    let allowed_iops = |line: &str, read_percent| {
        let mut record =
            crate::fixture::Fixture { read_percent, ..crate::fixture::Fixture::honest() }.record();
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
    assert_eq!(at(&format!("{V1} 10400")), Some(Severity::Biased));
    assert_eq!(at(&format!("{V1} 8500")), Some(Severity::Biased), "the burst of a run of one second");
    assert_eq!(at(&format!("{V1} 7000")), Some(Severity::Note));
    assert_eq!(at(&format!("{V1} 11000")), Some(Severity::Biased), "one at a time loses some");
    assert_eq!(at(&format!("{V1} 11500")), Some(Severity::Note));
    // 40.96 MB/s.
    assert_eq!(at("/c/io.max: 254:0 rbps=41000000 wbps=max riops=max wiops=max"), Some(Severity::Biased));
    assert_eq!(at("/c/io.max: 254:0 rbps=82000000 wbps=max riops=max wiops=max"), Some(Severity::Note));
}

#[test]
fn limits_on_other_devices_or_directions_do_not_count() {
    assert_eq!(at("/c/io.max: 8:0 rbps=max wbps=max riops=10000 wiops=max"), None);
    assert_eq!(at("/c/io.max: 254:0 rbps=max wbps=max riops=max wiops=10000"), None);
    assert_eq!(at("/c/cpu.max: 50000 100000"), None);
    assert_eq!(at("/c/io.max: 254:0 rbps=x riops=18446744073709551616 =\n:::\n\n: "), None);
}

#[test]
fn weights_are_a_note() {
    assert_eq!(at("/c/io.weight: default 50"), Some(Severity::Note));
    assert_eq!(at("/c/io.latency: 254:0 target=10000"), Some(Severity::Note));
    assert_eq!(at("/c/io.latency: 8:0 target=10000"), None);
}
