//! The fingerprint of a result: the circumstances that its number depends on, and what differs between two results.
//!
//! 1. [`fingerprint`] lists the circumstances as named values (aspects): the work, the engine, the targets, the machine.
//! 2. [`compare_aspects`] compares two lists. Some differences make the results different work, others are only shown.
//! 3. [`setting_aspects`] lists the fields of the job's streams, except names, files, and which figures are recorded. So results count as
//!    different work even if they differ only in a setting that step 1 leaves out or shortens.
//! 4. [`result_differences`] compares the findings that relabel the results or bias one of them, and [`acceptance_difference`] those that
//!    the user accepted.

use crate::compare::SideResult;
use crate::findings;
use model::comparison::Difference;
use model::finding::{CheckId, Checked, Severity};
use model::job::{Data, Line, Pace, Phase, Stream};
use model::machine::{Layer, LayerKind, Place};
use model::report::{Measured, Report};
use model::spec::{StreamSpec, values};
use model::units::{show_bytes, show_ns};
use model::{Known, evidence};
use serde_json::Value;
use std::collections::BTreeSet;

/// Queue settings that change how a device handles requests.
const QUEUE_SETTINGS: [&str; 8] = [
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "nomerges",
    "write_cache",
    "io_poll",
    "wbt_lat_usec",
];

/// The aspect for engines that differ because one of them replaced a denied default engine.
pub(super) const AVAILABLE_ENGINE: &str = "available engine";

/// A named circumstance that the number of a result depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aspect {
    name: String,
    value: Known<String>,
    /// Note about a denied default engine that this engine replaced. Messages add it to the value. It is not compared.
    fallback_note: Option<String>,
    /// Whether results with different values measured different work.
    changes_work: bool,
}

/// Lists the circumstances of a result.
pub(super) fn fingerprint(report: &Report, result: &Measured) -> Vec<Aspect> {
    let mut all = Vec::new();
    let phase = result.job.phases.get(result.phase as usize);
    if let Some((phase, stream)) = phase.and_then(|p| Some((p, p.streams.get(result.stream as usize)?))) {
        let settings = StreamSpec { resolved: stream.clone(), ..StreamSpec::default() };
        all.extend(work_aspects(&settings).map(|(name, value)| aspect(name, value, true)));
        all.push(aspect("concurrent streams", describe_other_streams(phase, result.stream as usize), true));
        all.push(engine_aspect(stream));
        all.extend(execution_aspects(phase, &settings).map(|(name, value)| aspect(name, value, false)));
        let places = stream.targets.iter().enumerate();
        all.extend(places.flat_map(|(i, at)| place_aspects(i, report.machine.places.get(*at))));
    }
    all.extend(machine_aspects(report));
    all
}

/// Fields of a stream that are not compared as settings, because they do not change the work:
/// names, files, and which figures are recorded. The span and the first byte, which depend on the sizes of the
/// targets, are aspects of [`fingerprint`].
const NOT_COMPARED: [&str; 9] = [
    "access.offset_bytes",
    "access.span_bytes",
    "each_worker_ns",
    "engine_fallback",
    "log_interval_ns",
    "name",
    "replay.file",
    "targets",
    "verify.content.stamps.seed",
];

/// Fields of a stream that [`fingerprint`] covers for the result's own stream. [`setting_aspects`] skips
/// them for this stream.
const STATED_FIELDS: [&str; 7] = ["batch", "delay_ns", "ends_others", "engine", "limit", "options", "place"];

/// Fields that do not change the work, so that they may be the subject of the comparison, like
/// those in [`STATED_FIELDS`].
const SAME_WORK_SETTINGS: [&str; 8] = [
    "advice",
    "ignored_errors",
    "max_errors",
    "max_latency_ns",
    "min_rate",
    "op_priorities",
    "steady",
    "think_spin_ns",
];

/// Returns the settings of a result's stream, each named by its path in a JSON report (`access.lines[0].times`), and
/// those of the other streams of the job (`phases[0].streams[1].depth`). Streams of other phases did not run at the
/// same time, so their settings do not make the result different work.
pub(super) fn setting_aspects(result: &Measured) -> Vec<Aspect> {
    let mut all = Vec::new();
    for (at, phase) in result.job.phases.iter().enumerate() {
        let is_own_phase = at == result.phase as usize;
        for (number, stream) in phase.streams.iter().enumerate() {
            let is_own = is_own_phase && number == result.stream as usize;
            let prefix = if is_own { String::new() } else { format!("phases[{at}].streams[{number}].") };
            let value = match serde_json::to_value(stream) {
                Ok(value) => value,
                Err(error) => {
                    let settings = aspect(&format!("{prefix}settings"), String::new(), is_own_phase);
                    all.push(Aspect { value: Err(error.to_string()), ..settings });
                    continue;
                }
            };
            let mut leaves = Vec::new();
            add_leaves(String::new(), &value, &mut leaves);
            all.extend(leaves.into_iter().filter_map(|(path, value)| {
                let field = path.split(['.', '[']).next().unwrap_or_default();
                let is_stated = STATED_FIELDS.contains(&field);
                let changes_work = is_own_phase && !is_stated && !SAME_WORK_SETTINGS.contains(&field);
                (!is_own || !is_stated).then(|| aspect(&format!("{prefix}{path}"), value, changes_work))
            }));
        }
    }
    all
}

/// Adds the path and the text of each compared value within a JSON value.
fn add_leaves(path: String, value: &Value, leaves: &mut Vec<(String, String)>) {
    match value {
        _ if NOT_COMPARED.contains(&path.as_str()) => {}
        Value::Object(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            fields.iter().for_each(|(name, field)| add_leaves(format!("{path}{dot}{name}"), field, leaves));
        }
        Value::Array(entries) => {
            let entries = entries.iter().enumerate();
            entries.for_each(|(i, entry)| add_leaves(format!("{path}[{i}]"), entry, leaves));
        }
        Value::String(text) => leaves.push((path, text.clone())),
        _ => leaves.push((path, value.to_string())),
    }
}

/// Returns the differences between two lists of aspects, and the aspects that are unknown on one or
/// both sides.
pub(super) fn compare_aspects(a: &[Aspect], b: &[Aspect]) -> (Vec<Difference>, Vec<String>) {
    let (mut different, mut unknown) = (Vec::new(), Vec::new());
    let missing = |other: &Aspect| Aspect { value: Ok("-".into()), ..other.clone() };
    let find = |all: &[Aspect], one: &Aspect| all.iter().find(|x| x.name == one.name).cloned();
    let mut pairs: Vec<(Aspect, Aspect)> =
        a.iter().map(|x| (x.clone(), find(b, x).unwrap_or_else(|| missing(x)))).collect();
    pairs.extend(b.iter().filter(|y| find(a, y).is_none()).map(|y| (missing(y), y.clone())));
    for (x, y) in pairs {
        match (x.value, y.value) {
            (Ok(a), Ok(b)) if a == b => {}
            (Ok(a), Ok(b)) if x.fallback_note.is_some() || y.fallback_note.is_some() => {
                different.push(Difference {
                    aspect: AVAILABLE_ENGINE.into(),
                    a: a + &x.fallback_note.unwrap_or_default(),
                    b: b + &y.fallback_note.unwrap_or_default(),
                    refuses: true,
                });
            }
            (Ok(a), Ok(b)) => different.push(Difference { aspect: x.name, a, b, refuses: x.changes_work }),
            (Err(why), _) | (_, Err(why)) => unknown.push(format!("{}: {why}", x.name)),
        }
    }
    (different, unknown)
}

fn aspect(name: &str, value: String, changes_work: bool) -> Aspect {
    Aspect { name: name.into(), value: Ok(value), fallback_note: None, changes_work }
}

/// Returns the requested work. Results with other values measure different work.
fn work_aspects(settings: &StreamSpec) -> impl Iterator<Item = (&'static str, String)> {
    let stream = &settings.resolved;
    let access = &stream.access;
    let lines =
        |describe: fn(&Line) -> String| access.lines.iter().map(describe).collect::<Vec<_>>().join("; ");
    let span = if access.span_bytes == u64::MAX { "all".into() } else { show_bytes(access.span_bytes) };
    let flush = stream.flush.map_or("none".into(), |f| {
        let drain = if f.drain { ", waiting for the writes in flight" } else { "" };
        format!("{}{drain}", f.describe())
    });
    let data = if access.writes() { describe_data(&stream.data) } else { "none".into() };
    [
        (
            "order",
            if stream.turns.is_empty() {
                lines(Line::describe_order)
                    + &access.strided.map_or_else(String::new, |zones| format!(" {}", zones.describe()))
            } else {
                stream.describe()
            },
        ),
        ("direction", lines(Line::direction)),
        ("block size", lines(describe_sizes)),
        ("span", span),
        ("first byte", show_bytes(access.offset_bytes)),
        ("targets", describe_targets(settings)),
        ("depth", describe_depth(settings)),
        ("workers", stream.workers.to_string()),
        ("cache", stream.describe_cache()),
        ("pace", stream.waits().fold(describe_pace(stream.pace), |all, wait| all + ", " + &wait)),
        ("syncs", flush),
        ("data", data),
    ]
    .into_iter()
}

/// Describes the number of targets, and how workers and hosts share them.
fn describe_targets(settings: &StreamSpec) -> String {
    let stream = &settings.resolved;
    let shared = stream.shared.map(|shared| format!(", shared {}", shared.layout.describe()));
    let shift = settings.shown("shift-hosts").map(|hosts| format!(", --shift-hosts {hosts}"));
    let how = settings.shown("sharing").unwrap_or_else(|| "each".into());
    let count = stream.targets.len();
    format!("{count} ({how}{}{})", shared.unwrap_or_default(), shift.unwrap_or_default())
}

fn describe_sizes(line: &Line) -> String {
    let mut sizes: Vec<String> = line.drawn_sizes().map(model::job::Sizes::describe).collect();
    sizes.dedup();
    sizes.join("/")
}

fn describe_pace(pace: Pace) -> String {
    match pace {
        Pace::Closed => "closed loop".into(),
        Pace::Limited { iops, bytes_per_s } => {
            // A limit of 0 is no limit.
            let limits =
                [(iops, "IOPS"), (bytes_per_s, "bytes/s")].into_iter().filter(|(limit, _)| *limit > 0.0);
            let limits: Vec<String> = limits.map(|(limit, unit)| format!("{limit} {unit}")).collect();
            if limits.is_empty() { "closed loop".into() } else { format!("at most {}", limits.join(", ")) }
        }
        Pace::Each { iops, bytes_per_s } => {
            let limits = [(iops, "IOPS"), (bytes_per_s, "bytes/s")];
            let limits: Vec<String> = limits
                .iter()
                .flat_map(|(each, unit)| {
                    each.named().map(move |(kind, limit)| format!("{limit} {unit} for {kind}s"))
                })
                .collect();
            format!("at most {}", limits.join(", "))
        }
        Pace::Open { iops, arrivals } => {
            format!("open loop at {iops} IOPS, {}", arrivals.to_flag())
        }
    }
}

fn describe_depth(settings: &StreamSpec) -> String {
    let target = settings.shown("latency-target").map(|target| format!(" at most, by {target}"));
    format!("{}{}", settings.resolved.depth, target.unwrap_or_default())
}

fn describe_data(data: &Data) -> String {
    match data {
        Data::Random { compress_percent: 0, dedup_percent: 0, .. } => "unique, incompressible".into(),
        Data::Random { compress_percent, dedup_percent, .. } => {
            let copies = data.copies_of();
            format!("{compress_percent} % compressible, {dedup_percent} % copies{copies}")
        }
        Data::Zeros => "zeros".into(),
        Data::Counting => "the bytes 0 to 255".into(),
        Data::File(path) => format!("from {path}"),
    }
}

/// Describes the other streams of the phase.
fn describe_other_streams(phase: &Phase, own: usize) -> String {
    let others = phase.streams.iter().enumerate().filter(|(i, _)| *i != own);
    let streams: Vec<String> = others
        .map(|(_, s)| {
            format!("{}, depth {} x {}, {}", s.access.describe(), s.depth, s.workers, s.cache.word())
        })
        .collect();
    if streams.is_empty() { "none".into() } else { streams.join("; ") }
}

/// Returns the engine with its options, which may be the subject of the comparison. If fathom chose the engine because
/// the default was denied, the user did not want to compare engines: then a different engine on the other side is reported
/// as the aspect [`AVAILABLE_ENGINE`].
fn engine_aspect(stream: &Stream) -> Aspect {
    let options = values::format_options(&stream.options);
    let colon = if options.is_empty() { "" } else { ":" };
    let fallback = stream.engine_fallback.as_ref();
    Aspect {
        fallback_note: fallback.map(|f| format!(" in place of {}, which was denied ({})", f.wanted, f.cause)),
        ..aspect("engine", format!("{}{colon}{options}", stream.engine), false)
    }
}

/// Returns how the work was executed, which may be the subject of the comparison.
fn execution_aspects(phase: &Phase, settings: &StreamSpec) -> impl Iterator<Item = (&'static str, String)> {
    let stream = &settings.resolved;
    let named = |word: &str, key| settings.shown(key).map(|value| format!("{word} {value}"));
    let cpus = settings.shown("cpus").unwrap_or_else(|| "all".into());
    let node = stream.place.node.map_or(String::new(), |n| format!(", node {n}"));
    let memory = named(", memory", "memory-nodes").unwrap_or_default();
    let split = if stream.place.split { ", one for each worker" } else { "" };
    let priorities = [named("nice", "nice"), named("I/O", "io-priority")];
    let priorities: Vec<String> = priorities.into_iter().flatten().collect();
    let priority = if priorities.is_empty() { "as started".into() } else { priorities.join(", ") };
    let limit = [
        stream.limit.operations.map(|n| format!(" or {n} operations")),
        stream.limit.bytes.map(|n| format!(" or {}", show_bytes(n))),
        named(" or", "stop-after"),
    ];
    let steady = settings.shown("steady-state").map(|rule| format!(" or until it is steady ({rule})"));
    let ended = if phase.streams.iter().any(|s| s.ends_others) { " or with another stream" } else { "" };
    let limit = limit.into_iter().chain([steady]).flatten().collect::<String>();
    let time = show_ns(phase.time_ns as f64) + &limit + ended;
    let seconds = |ns: u64| show_ns(ns as f64);
    [
        ("batch", format!("{},{}", stream.batch.submit, stream.batch.complete)),
        ("CPUs of the workers", cpus + &node + &memory + split),
        ("priority", priority),
        ("time", time),
        ("warm-up", seconds(phase.warmup_ns)),
        ("delay", seconds(stream.delay_ns)),
    ]
    .into_iter()
}

fn machine_aspects(report: &Report) -> Vec<Aspect> {
    let machine = &report.machine;
    let hypervisor = machine.virtual_by.clone().map(|by| by.unwrap_or_else(|| "none".into()));
    let limits = machine.fact(evidence::LIMITS).and_then(|text| match text {
        "" => Ok("none".to_owned()),
        lines => evidence::unreadable_limits(lines, evidence::ALL_LIMIT_KINDS)
            .map_or_else(|| Ok(lines.lines().map(shorten_limit).collect::<Vec<_>>().join("; ")), Err),
    });
    // `Linux 6.18.5 #1 SMP ...`: a release may be built again, with other settings.
    let kernel = machine.kernel.split_once(" #").unwrap_or((&machine.kernel, ""));
    let known = |name: &str, value: Known<String>| Aspect { value, ..aspect(name, String::new(), false) };
    vec![
        aspect(
            "host",
            if report.hosts.is_empty() { machine.host.clone() } else { report.hosts.join(", ") },
            false,
        ),
        aspect("fathom", report.fathom.version.clone(), false),
        aspect("preconditioned", if report.preconditioned.is_some() { "yes" } else { "no" }.into(), false),
        aspect("kernel", kernel.0.to_owned(), false),
        aspect("kernel build", kernel.1.to_owned(), false),
        known("CPU", machine.cpu.clone()),
        aspect("CPUs", machine.cpus.to_string(), false),
        known("hypervisor", hypervisor),
        known("limits", limits),
    ]
}

/// Reduces the path of a limit to the name of its file, `io.max: 8:0 riops=1000`: names of cgroups differ from run to run.
fn shorten_limit(line: &str) -> String {
    // A directory may contain a colon; a limit has none before a space.
    let (path, value) = line.rsplit_once(": ").unwrap_or(("", line));
    let file = path.rsplit('/').next().unwrap_or_default();
    if file.is_empty() { value.to_owned() } else { format!("{file}: {value}") }
}

/// Returns the file system, device and queue settings of the target with this index.
fn place_aspects(index: usize, place: Option<&Place>) -> Vec<Aspect> {
    let Some(place) = place else { return Vec::new() };
    let named =
        |name: &str| if index == 0 { name.to_owned() } else { format!("{name} of target {}", index + 1) };
    let fs = place.file_system.as_ref();
    let options = fs.map_or("none".into(), |f| {
        let mut options: Vec<&str> =
            f.options.split(',').chain(f.attributes.iter().map(String::as_str)).collect();
        options.sort_unstable();
        options.dedup();
        options.join(",")
    });
    let chain: Vec<String> = place.layers.iter().map(describe_layer).chain(place.ram.clone()).collect();
    let mut all = vec![
        aspect(&named("file system"), place.kind().into(), false),
        aspect(&named("mount options"), options, false),
        aspect(&named("device"), if chain.is_empty() { "none".into() } else { chain.join(" on ") }, false),
    ];
    let top = place.tops.first().and_then(|t| place.layers.get(*t));
    // A partition has the queue of its disk.
    let queue = top.filter(|l| !l.queue.is_empty()).or_else(|| place.lowest_layers().next());
    all.extend(queue.iter().flat_map(|layer| {
        let set = QUEUE_SETTINGS.iter().filter_map(|file| Some((file, layer.queue.get(*file)?)));
        set.map(|(file, value)| aspect(&named(&format!("queue/{file}")), value.trim().to_owned(), false))
    }));
    all
}

/// Describes a layer by what remains after a reboot: kind, driver, model, serial number, size, and the cache mode of a loop device. A name
/// may change, so it is included only without a serial number, and never for a loop device.
fn describe_layer(layer: &Layer) -> String {
    let kind = match layer.kind {
        LayerKind::Disk => "",
        LayerKind::Partition => "partition",
        LayerKind::Loop => "loop",
        LayerKind::Zram => "zram",
        LayerKind::Ram => "memory",
        LayerKind::DeviceMapper => "device mapper",
        LayerKind::Raid => "raid",
        LayerKind::Virtual => "virtual",
    };
    // The number of a loop device is arbitrary.
    let name = (layer.kind != LayerKind::Loop && layer.serial.is_none()).then_some(layer.name.as_str());
    let how = layer.backing_direct.map(|direct| if direct { "direct" } else { "buffered" });
    let parts =
        [name, Some(kind), layer.driver.as_deref(), layer.model.as_deref(), layer.serial.as_deref(), how];
    let mut parts: Vec<&str> = parts.into_iter().flatten().filter(|p| !p.is_empty()).collect();
    let size = show_bytes(layer.bytes);
    parts.push(&size);
    parts.join(" ")
}

/// Findings that relabel a result by its limiter or by the depth that it reached. The work is the same, and the limiter
/// may be the subject of the comparison.
const SAME_WORK_IDS: &[CheckId] = &[CheckId::B05, CheckId::D05, CheckId::D06, CheckId::D08, CheckId::D11];

/// The aspect of the findings in [`SAME_WORK_IDS`].
pub(super) const LIMITED_BY: &str = "what limited it";

/// The aspect of all other relabelling findings.
pub(super) const MEASURED: &str = "what was measured";

/// The aspect of findings that the user accepted.
pub(super) const ACCEPTED: &str = "accepted findings";

/// Returns the difference between two results that depend on different accepted findings; `None` if
/// both depend on the same. The user accepted the findings, so the results are compared.
pub(super) fn acceptance_difference(a: SideResult, b: SideResult) -> Option<Difference> {
    let ids = |one: SideResult| match one.result.accepted.as_slice() {
        [] => "none".to_owned(),
        ids => CheckId::list(ids, ", "),
    };
    let (a, b) = (ids(a), ids(b));
    (a != b).then(|| Difference { aspect: ACCEPTED.into(), a, b, refuses: false })
}

/// Returns the differences in the findings that relabel the results, and in those that bias only one of them.
pub(super) fn result_differences(a: SideResult, b: SideResult) -> Vec<Difference> {
    let (of_a, of_b) = (relabelling_findings(a), relabelling_findings(b));
    let only = |x: &BTreeSet<NamedFinding>, y: &_, same_work: bool| -> Vec<NamedFinding> {
        x.difference(y).filter(|(id, _)| SAME_WORK_IDS.contains(id) == same_work).cloned().collect()
    };
    let mut out = Vec::new();
    for (aspect, same_work) in [(MEASURED, false), (LIMITED_BY, true)] {
        let (left, right) = (only(&of_a, &of_b, same_work), only(&of_b, &of_a, same_work));
        if left.is_empty() && right.is_empty() {
            continue;
        }
        out.push(Difference {
            aspect: aspect.into(),
            a: describe_results(a, &left),
            b: describe_results(b, &right),
            refuses: !same_work,
        });
    }
    let biases = |one| {
        let found =
            findings_about(one, Severity::Biases).filter(|f| !f.accepted && changes_what_was_measured(f.id));
        found.map(|f| (f.id, f.name.clone())).collect::<BTreeSet<NamedFinding>>()
    };
    let (of_a, of_b) = (biases(a), biases(b));
    let list = |ids: Vec<&NamedFinding>| match ids.as_slice() {
        [] => "nothing".to_owned(),
        ids => ids.iter().map(|(id, name)| format!("{id} {name}")).collect::<Vec<_>>().join(", "),
    };
    if of_a != of_b {
        let (a, b) = (list(of_a.difference(&of_b).collect()), list(of_b.difference(&of_a).collect()));
        out.push(Difference { aspect: BIASED_BY.into(), a, b, refuses: false });
    }
    out
}

/// The aspect of findings that bias only one of the results.
const BIASED_BY: &str = "biased by";

/// Whether a finding that biases a number means that the storage had other work, so that a difference may come from there.
fn changes_what_was_measured(id: CheckId) -> bool {
    matches!(id.group(), 'A' | 'B') || id == CheckId::D01
}

/// Id and name of a finding.
type NamedFinding = (CheckId, String);

fn relabelling_findings(one: SideResult) -> BTreeSet<NamedFinding> {
    findings_about(one, Severity::Relabels).map(|f| (f.id, f.name.clone())).collect()
}

/// Names a result with the findings that relabel it: `4K random read, depth 32, page cache (A01 CACHE_SERVED)`.
fn describe_results(one: SideResult, findings: &[NamedFinding]) -> String {
    let ids: Vec<String> = findings.iter().map(|(id, name)| format!("{id} {name}")).collect();
    let ids = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    format!("{}{ids}", one.result.true_name)
}

/// Returns why a result has no number; `None` if it has one.
pub(super) fn why_no_number(one: SideResult) -> Option<String> {
    let which = format!("{} ({})", one.result.name, one.report.started);
    if let Some(f) = findings_about(one, Severity::Invalidates).find(|f| !f.accepted) {
        let sentence = f.sentence.trim_end_matches('.');
        return Some(format!("{} {} invalidates {which}: {sentence}", f.id, f.name));
    }
    if one.result.void {
        return Some(format!("{which} is invalid"));
    }
    one.result.total.is_none().then(|| format!("{which} has no number: {}", one.report.verdict_reason))
}

fn findings_about(one: SideResult<'_>, severity: Severity) -> impl Iterator<Item = &Checked> {
    findings::findings_about(&one.report.checks, &one.result.name, severity)
}

#[test]
fn a_missing_limit_is_not_shown_as_zero() {
    let limited = |iops, bytes_per_s| describe_pace(Pace::Limited { iops, bytes_per_s });
    assert_eq!(limited(100.0, 0.0), "at most 100 IOPS");
    assert_eq!(limited(0.0, 4096.0), "at most 4096 bytes/s");
    assert_eq!(limited(0.0, 0.0), "closed loop");
    let mut iops = model::job::PerKind::all(0.0);
    iops.write = 200.0;
    let each = describe_pace(Pace::Each { iops, bytes_per_s: model::job::PerKind::all(0.0) });
    assert_eq!(each, "at most 200 IOPS for writes");
}
