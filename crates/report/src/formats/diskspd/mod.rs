//! The formats of DISKSPD: its text and its XML, from results of fathom.
//!
//! Both repeat the requested profile, then print the results of each time span: its threads with
//! their targets ([`Span`]), sums and percentiles ([`Figures`]), and the machine ([`Topology`]).
//! fathom's verdict is a separate element, or follows the text. If too few operations support a
//! percentile, the XML has no element for it, and the text has N/A. The power scheme is empty or
//! N/A. Linux has one processor group. Layout: DISKSPD 2.2, `ResultParser`, `XmlResultParser` and
//! their tests (MIT licence).

#[cfg(test)]
mod tests;
mod text;
mod xml;

pub use self::text::rates_above_and_below;
use self::xml::{Lines, escape};
use crate::{Content, Format};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::diskspd::{Profile, Target, TimeSpan};
use model::evidence::{CORES, NODES, PACKAGES};
use model::figures::{Observed, ObservedCpu, ObservedLaneKind};
use model::histogram::Distribution;
use model::job::{Kind, Line, Order, Stream};
use model::record::Bucket;
use model::report::{Measured, Report};
use std::collections::{BTreeMap, BTreeSet};

/// Version and date of DISKSPD that the output states. The formats are those of this version.
const VERSION: [&str; 2] = ["2.2.0", "2024/6/3"];

/// The name of the text format.
pub const NAME: &str = "diskspd";
/// The name of the XML format.
pub const XML_NAME: &str = "diskspd-xml";

pub(super) static TEXT: Format =
    Format::of_measurements(NAME, "txt", Content::Text, "as DISKSPD prints it", text::write_text);
pub(super) static XML: Format =
    Format::of_measurements(XML_NAME, "xml", Content::Text, "as DISKSPD's XML", |report, _, to| {
        xml::write_xml(report, to)
    });

/// Returns a profile as DISKSPD prints it for `-Rp`.
pub fn profile(profile: &Profile) -> String {
    if profile.xml { xml::profile_xml(profile, 0) } else { text::profile_text(profile) }
}

/// A time span and its results.
#[derive(Debug)]
struct Span {
    /// The requested time span.
    requested: TimeSpan,
    /// Length of the measured window in s; 0 if nothing was measured.
    seconds: f64,
    /// Operations of each thread on each of its targets.
    lanes: Vec<Lane>,
    /// CPU times during the time span.
    cpus: Vec<ObservedCpu>,
}

/// Operations of a thread on a target.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Number of the thread in the results, from 0.
    thread: u32,
    /// Path of the target.
    path: String,
    /// Size of the target in bytes.
    bytes: u64,
    read: ObservedLaneKind,
    write: ObservedLaneKind,
}

/// Returns the DISKSPD profile that the user requested. Without one, returns an equivalent profile, as far as DISKSPD
/// can express the measurement.
fn requested_profile(report: &Report) -> Profile {
    let typed = report.results.iter().find_map(|r| r.observed.as_ref()?.typed.as_ref()?.profile.clone());
    typed.unwrap_or_else(|| Profile {
        command: report.command.get(1..).unwrap_or_default().join(" "),
        spans: groups(report).values().map(|results| span_of_results(results)).collect(),
        ..Profile::default()
    })
}

/// Returns the results of each phase, in order. The key is the index of the job in the report, and
/// of the phase in the job.
pub(in crate::formats) fn groups(report: &Report) -> BTreeMap<(usize, u32), Vec<&Measured>> {
    let mut all: BTreeMap<(usize, u32), Vec<&Measured>> = BTreeMap::new();
    let (mut job, mut before) = (0, None);
    for result in &report.results {
        // Results of a job are ordered by phase and stream.
        let at = (result.phase, result.stream);
        job += usize::from(before.is_some_and(|(name, last)| name != &result.job.name || last >= at));
        before = Some((&result.job.name, at));
        all.entry((job, result.phase)).or_default().push(result);
    }
    all
}

/// Returns all time spans.
fn measured_spans(report: &Report, profile: &Profile) -> Vec<Span> {
    let groups: Vec<Vec<&Measured>> = groups(report).into_values().collect();
    let span = |(at, requested): (usize, &TimeSpan)| {
        let observed: Vec<&Observed> =
            groups.get(at).into_iter().flatten().filter_map(|r| r.observed.as_ref()).collect();
        Span {
            requested: requested.clone(),
            seconds: observed.iter().map(|s| s.window_ns).max().unwrap_or(0) as f64 / 1e9,
            lanes: thread_lanes(&observed, requested),
            cpus: observed.first().map(|s| s.cpus.clone()).unwrap_or_default(),
        }
    };
    profile.spans.iter().enumerate().map(span).collect()
}

/// Returns the threads in order, each with its targets in order.
fn thread_lanes(observed: &[&Observed], requested: &TimeSpan) -> Vec<Lane> {
    let mut out = Vec::new();
    let pools = requested.pools();
    let mut first = 0;
    for (stream, observed) in observed.iter().enumerate() {
        let pool = pools.get(stream);
        if observed.lanes.is_empty() {
            // The workers were not counted separately, so print them as one thread.
            let thread = out.last().map_or(0, |lane: &Lane| lane.thread + 1);
            out.push(combined_lane(observed, thread));
        }
        out.extend(observed.lanes.iter().map(|lane| {
            // In the requested profile, each stream is a pool of threads with its own targets.
            let typed = pool.and_then(|pool| requested.targets.get(pool.targets.get(lane.target)?.0));
            let thread =
                lane.worker.checked_sub(first).and_then(|at| pool?.threads.get(at as usize).copied());
            let target = observed.targets.get(lane.target);
            let sum_of_kind = |kind| lane.kinds.get(&kind).cloned().unwrap_or_default();
            Lane {
                thread: thread.unwrap_or(lane.worker),
                path: typed.map(|t| &t.path).or(target.map(|t| &t.path)).cloned().unwrap_or_default(),
                bytes: target.map_or(0, |t| t.bytes),
                read: sum_of_kind(Kind::Read),
                write: sum_of_kind(Kind::Write),
            }
        }));
        first += pool.map_or(0, |pool| pool.threads.len() as u32);
    }
    out.sort_by_key(|lane| lane.thread);
    out
}

fn combined_lane(observed: &Observed, thread: u32) -> Lane {
    let paths: Vec<&str> = observed.targets.iter().map(|t| t.path.as_str()).collect();
    let bytes = observed.targets.iter().fold(0, |sum: u64, t| sum.saturating_add(t.bytes));
    Lane {
        thread,
        path: paths.join(" "),
        bytes,
        read: whole_kind(observed, Kind::Read),
        write: whole_kind(observed, Kind::Write),
    }
}

/// Returns the operations of one kind of all workers on all targets.
pub(in crate::formats) fn whole_kind(observed: &Observed, kind: Kind) -> ObservedLaneKind {
    observed.kinds.get(&kind).map_or_else(ObservedLaneKind::default, |k| ObservedLaneKind {
        bytes: k.bytes,
        latency: k.latency.clone(),
        time_series: Vec::new(),
    })
}

/// Returns an equivalent time span for results that were not requested as a DISKSPD profile.
fn span_of_results(results: &[&Measured]) -> TimeSpan {
    let phase = results.first().and_then(|r| r.job.phases.get(r.phase as usize));
    let seconds = |ns: u64| u32::try_from(ns / 1_000_000_000).unwrap_or(u32::MAX);
    let target = |result: &&Measured| {
        let stream = phase?.streams.get(result.stream as usize)?;
        Some(target_of_stream(stream, result.observed.as_ref()))
    };
    TimeSpan {
        duration_s: phase.map_or(0, |p| seconds(p.time_ns)),
        warmup_s: phase.map_or(0, |p| seconds(p.warmup_ns)),
        cooldown_s: phase.map_or(0, |p| seconds(p.cooldown_ns)),
        latency: true,
        targets: results.iter().filter_map(target).collect(),
        ..TimeSpan::default()
    }
}

fn target_of_stream(stream: &Stream, observed: Option<&Observed>) -> Target {
    let order = stream.access.lines.first().map(|line: &Line| &line.order);
    let paths: Vec<&str> =
        observed.map(|s| s.targets.iter().map(|t| t.path.as_str()).collect()).unwrap_or_default();
    let reads = stream.access.lines.first().map_or(100.0, |line| line.mix.read_percent.get());
    Target {
        path: paths.join(" "),
        block: stream.access.largest_bytes(),
        random_percent: match order {
            Some(Order::Sequential(_)) | None => 0,
            Some(Order::Mixed(percent)) => *percent as u32,
            Some(Order::MixedEach(each)) => {
                ((reads * each.read + (100.0 - reads) * each.write) / 100.0) as u32
            }
            Some(_) => 100,
        },
        write_percent: (100.0 - reads) as u32,
        requests: stream.depth,
        threads: stream.workers,
        base: stream.access.offset_bytes,
        cache: if stream.cache.is_direct() {
            model::diskspd::Cache::Off
        } else {
            model::diskspd::Cache::Cached
        },
        write_through: stream.cache.is_sync(),
        mapped: stream.cache == model::job::Cache::Mmap,
        ..Target::default()
    }
}

/// A percentile is printed only if at least this many operations took longer.
const MIN_BEYOND: f64 = 10.0;

/// Which directions to sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectionFilter {
    /// Reads and writes.
    Total,
    Read,
    Write,
}

/// Sums over the operations of one or several threads and targets.
#[derive(Clone, Debug, Default)]
struct Figures {
    /// Bytes moved.
    bytes: u64,
    /// Latencies of the operations. Their count is the number of operations.
    latency: Distribution,
    /// Buckets of equal length; empty if not requested.
    time_series: Vec<Bucket>,
}

impl Figures {
    /// Sums the operations of several lanes, and the first `buckets` buckets of each lane. Callers pass the number of
    /// complete buckets, so that an incomplete last bucket is left out.
    fn from_lanes<'l>(
        which: DirectionFilter,
        lanes: impl IntoIterator<Item = &'l Lane>,
        buckets: usize,
    ) -> Self {
        let kinds = |lane: &'l Lane| -> Vec<&'l ObservedLaneKind> {
            match which {
                DirectionFilter::Read => vec![&lane.read],
                DirectionFilter::Write => vec![&lane.write],
                DirectionFilter::Total => vec![&lane.read, &lane.write],
            }
        };
        let all: Vec<&ObservedLaneKind> = lanes.into_iter().flat_map(kinds).collect();
        let mut time_series: Vec<Bucket> = Vec::new();
        for kind in &all {
            let own = &kind.time_series[..kind.time_series.len().min(buckets)];
            if time_series.len() < own.len() {
                time_series.resize(own.len(), Bucket::default());
            }
            time_series.iter_mut().zip(own).for_each(|(sum, one)| *sum = sum.plus(*one));
        }
        Self {
            bytes: all.iter().fold(0, |sum: u64, k| sum.saturating_add(k.bytes)),
            latency: all.iter().map(|k| &k.latency).collect(),
            time_series,
        }
    }

    /// Returns the number of operations.
    fn count(&self) -> u64 {
        self.latency.count
    }

    /// Returns the mean latency in ms; 0 without operations, as in DISKSPD.
    fn mean_ms(&self) -> f64 {
        self.latency.mean_ns / 1e6
    }

    /// Returns the standard deviation of the latencies in ms.
    fn deviation_ms(&self) -> f64 {
        let count = self.count() as f64;
        if count < 1.0 { 0.0 } else { self.latency.deviation_ns() * ((count - 1.0) / count).sqrt() / 1e6 }
    }

    /// Returns the standard deviation of the operations per second over the buckets; `None` without buckets.
    fn iops_deviation(&self, bucket_ms: u32) -> Option<f64> {
        let count = self.time_series.len() as f64;
        if self.time_series.is_empty() {
            return None;
        }
        let mean = self.time_series.iter().map(|b| b.count as f64).sum::<f64>() / count;
        let squares: f64 = self.time_series.iter().map(|b| (b.count as f64 - mean).powi(2)).sum();
        Some((squares / count).sqrt() / (f64::from(bucket_ms) / 1000.0))
    }

    /// Returns a percentile in ms; `None` if fewer than [`MIN_BEYOND`] operations took longer.
    fn percentile_ms(&self, share: f64) -> Option<f64> {
        let supported = (1.0 - share) * self.count() as f64 >= MIN_BEYOND - 1e-9;
        self.latency.quantile_ns(share).filter(|_| supported).map(|ns| ns as f64 / 1e6)
    }

    /// Returns the smallest latency in ms; `None` without operations.
    fn min_ms(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.latency.min_ns as f64 / 1e6)
    }

    /// Returns the largest latency in ms; `None` without operations.
    fn max_ms(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.latency.max_ns as f64 / 1e6)
    }
}

/// Topology of the CPUs; empty if unknown.
#[derive(Clone, Debug, Default)]
struct Topology {
    /// Core of each CPU, numbered from 0 over all packages.
    cores: BTreeMap<u32, usize>,
    /// Package of each CPU.
    sockets: BTreeMap<u32, u32>,
    /// Memory node of each CPU.
    nodes: BTreeMap<u32, u32>,
    /// Number of cores.
    core_count: usize,
}

impl Topology {
    fn from_report(report: &Report) -> Self {
        let of_cpu = |fact: &str| -> BTreeMap<u32, u32> {
            let text = report.machine.fact(fact).unwrap_or_default();
            let pair = |line: &str| {
                let (path, value) = line.split_once(": ")?;
                let cpu = path.split("/cpu").last()?.split('/').next()?.parse().ok()?;
                Some((cpu, value.trim().parse().ok()?))
            };
            text.lines().filter_map(pair).collect()
        };
        let (ids, sockets) = (of_cpu(CORES), of_cpu(PACKAGES));
        let mut known: Vec<(u32, u32)> = Vec::new();
        let mut cores = BTreeMap::new();
        for (cpu, id) in ids {
            // Core numbers are per package.
            let core = (sockets.get(&cpu).copied().unwrap_or(0), id);
            let at = known.iter().position(|k| *k == core).unwrap_or_else(|| {
                known.push(core);
                known.len() - 1
            });
            cores.insert(cpu, at);
        }
        Self { cores, sockets, nodes: memory_nodes(report), core_count: known.len() }
    }

    /// Returns the ids of the sockets or nodes, each once.
    fn numbers(groups: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
        groups.values().copied().collect()
    }

    /// Whether a core has several CPUs.
    fn has_threads(&self) -> bool {
        self.core_count > 0 && self.cores.len() > self.core_count
    }
}

/// Returns the memory node of each CPU. The report has a line `path: 0-3,8` for each node.
fn memory_nodes(report: &Report) -> BTreeMap<u32, u32> {
    let mut out = BTreeMap::new();
    for line in report.machine.fact(NODES).unwrap_or_default().lines() {
        let Some((path, list)) = line.split_once(": ") else { continue };
        let number = path.split("/node").last().and_then(|rest| rest.split('/').next()?.parse().ok());
        let Some(node) = number else { continue };
        for piece in list.trim().split(',') {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
            // A forged file may contain a huge range of CPUs: take at most 8193.
            out.extend((first..=last.min(first.saturating_add(8192))).map(|cpu| (cpu, node)));
        }
    }
    out
}

/// Returns the start time, `2026/11/23 18:00:00 UTC`; empty if unknown.
fn start_time(report: &Report) -> String {
    let at: Option<Timestamp> = report.started.parse().ok();
    at.map_or_else(String::new, |at| at.to_zoned(TimeZone::UTC).strftime("%Y/%m/%d %H:%M:%S UTC").to_string())
}

/// Returns the number of CPUs whose times were measured; without any, the number of CPUs of the machine.
fn cpu_count(report: &Report, cpus: &[ObservedCpu]) -> usize {
    if cpus.is_empty() { report.machine.cpus as usize } else { cpus.len() }
}

/// Returns the lines about the machine for the text format.
fn system_text(report: &Report, topology: &Topology, observed: &[ObservedCpu]) -> String {
    let mut out = format!(
        "System information:\n\n\tcomputer name: {}\n\tstart time: {}\n\n\tcpu count:\t\t{}\n",
        report.machine.host,
        start_time(report),
        cpu_count(report, observed)
    );
    if topology.core_count > 0 {
        out += &format!("\tcore count:\t\t{}\n", topology.core_count);
    }
    out += "\tgroup count:\t\t1\n";
    for (groups, name) in [(&topology.nodes, "node"), (&topology.sockets, "socket")] {
        if !groups.is_empty() {
            out += &format!("\t{name} count:\t\t{}\n", Topology::numbers(groups).len());
        }
    }
    out + "\n\tactive power scheme:\tN/A\n"
}

/// Returns the bit mask of the CPUs. Leaves out CPUs above 127.
fn cpu_mask(cpus: impl Iterator<Item = u32>) -> String {
    let bits = cpus.filter(|cpu| *cpu < 128).fold(0_u128, |bits, cpu| bits | 1 << cpu);
    format!("0x{bits:x}")
}

/// Adds the XML element that describes the machine.
fn system_xml(report: &Report, topology: &Topology, observed: &[ObservedCpu], lines: &mut Lines) {
    lines.within("System", |lines| {
        lines.value("ComputerName", &report.machine.host);
        lines.within("Tool", |lines| {
            lines.value("Version", VERSION[0]);
            lines.value("VersionDate", VERSION[1]);
        });
        lines.value("RunTime", start_time(report));
        lines.line("<PowerScheme Name=\"\" Guid=\"\"/>");
        let count = cpu_count(report, observed);
        lines.within("ProcessorTopology", |lines| {
            let active = cpu_mask(observed.iter().map(|c| c.cpu));
            lines.line(format_args!(
                "<Group Group=\"0\" MaximumProcessors=\"{count}\" ActiveProcessors=\"{count}\" ActiveProcessorMask=\"{active}\"/>"
            ));
            for (groups, name) in [(&topology.nodes, "Node"), (&topology.sockets, "Socket")] {
                write_cpu_groups(groups, name, lines);
            }
            for core in 0..topology.core_count {
                let of_core = topology.cores.iter().filter(|(_, c)| **c == core).map(|(cpu, _)| *cpu);
                lines.line(format_args!("<Core Group=\"0\" Core=\"{core}\" Mask=\"{}\"/>", escape(&cpu_mask(of_core))));
            }
        });
    });
}

/// Adds nodes or sockets, each with its CPUs.
fn write_cpu_groups(groups: &BTreeMap<u32, u32>, name: &str, lines: &mut Lines) {
    for number in Topology::numbers(groups) {
        let mask = cpu_mask(groups.iter().filter(|(_, n)| **n == number).map(|(cpu, _)| *cpu));
        lines.with(name, &format!(" {name}=\"{number}\""), |lines| {
            lines.line(format_args!("<Group Group=\"0\" Mask=\"{mask}\"/>"));
        });
    }
}
