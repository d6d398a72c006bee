//! DISKSPD's text: the profile under "Input parameters", then the tables of results, followed by fathom's verdict.

use super::{DirectionFilter, Figures, Lane, Span, Topology, measured_spans, requested_profile};
use crate::formats::diskspd;
use crate::formats::fio::verdict;
use crate::view::numbers::{device_rate, short_bytes};
use crate::{Detail, Style};
use model::diskspd::{Cache, Distribution, Profile, Target, Throughput, TimeSpan};
use model::distinct;
use model::figures::ObservedCpu;
use model::report::Report;
use model::units::show_count;
use std::io::{self, Write};

type Out<'o> = &'o mut dyn Write;

const STARS: &str = "*******************************************************************************";
/// Percentiles of the table, each with its name.
const PERCENTILES: [(f64, &str); 13] = [
    (0.25, "25th"),
    (0.50, "50th"),
    (0.75, "75th"),
    (0.90, "90th"),
    (0.95, "95th"),
    (0.99, "99th"),
    (0.999, "3-nines"),
    (0.9999, "4-nines"),
    (0.99999, "5-nines"),
    (0.999_999, "6-nines"),
    (0.999_999_9, "7-nines"),
    (0.999_999_99, "8-nines"),
    (0.999_999_999, "9-nines"),
];

/// Writes DISKSPD's text, followed by fathom's verdict unless the style is [`crate::Detail::Brief`].
pub(super) fn write_text(report: &Report, style: Style, to: Out) -> io::Result<()> {
    let profile = requested_profile(report);
    let spans = measured_spans(report, &profile);
    write!(to, "{}", profile_text(&profile))?;
    let topology = Topology::from_report(report);
    let cpus = spans.first().map(|s| s.cpus.as_slice()).unwrap_or_default();
    write!(to, "{}", diskspd::system_text(report, &topology, cpus))?;
    for (number, span) in (1..).zip(&spans) {
        writeln!(to, "\nResults for timespan {number}:\n{STARS}")?;
        write_span(span, &topology, to)?;
    }
    if spans.len() > 1 {
        write_totals(&spans, to)?;
    }
    if style.detail == Detail::Brief {
        return Ok(());
    }
    write!(to, "\n{}{}", rates_above_and_below(report), verdict(report))
}

/// Returns two lines for each result that has a rate: what the test did, and what the device below
/// completed, also for other processes. Includes results that a finding invalidates.
pub fn rates_above_and_below(report: &Report) -> String {
    let mut out = String::new();
    for result in &report.results {
        let Some(total) = result.total.as_ref().filter(|total| total.iops > 0.0) else { continue };
        let size = short_bytes((total.mb_per_s * 1e6 / total.iops).round() as u64);
        out += &format!("front end, {}: {} x {size} per second\n", result.name, show_count(total.iops));
        let rate = device_rate(result);
        out += &format!("back end, {}: {rate} per second (the device, for all processes)\n", result.name);
    }
    out
}

pub(super) fn write_span(span: &Span, topology: &Topology, to: Out) -> io::Result<()> {
    if span.seconds <= 0.0 {
        return writeln!(
            to,
            "The test was interrupted before the measurements began. No results are displayed."
        );
    }
    writeln!(to, "\nactual test time:\t{:.2}s", span.seconds)?;
    writeln!(to, "thread count:\t\t{}", span.thread_count())?;
    if span.requested.threads > 0 && span.requested.requests > 0 {
        writeln!(to, "request count:\t\t{}", span.requested.requests)?;
    }
    write_cpus(&span.cpus, topology, to)?;
    for (which, name) in [
        (DirectionFilter::Total, "Total"),
        (DirectionFilter::Read, "Read"),
        (DirectionFilter::Write, "Write"),
    ] {
        writeln!(to, "\n{name} IO")?;
        write_section(which, span, to)?;
    }
    if span.requested.latency { write_percentiles(span, to) } else { Ok(()) }
}

/// Writes a row for each CPU. Sockets and nodes have a column if the machine has several. Cores have one if a core has
/// several CPUs.
fn write_cpus(cpus: &[ObservedCpu], topology: &Topology, to: Out) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let several = [
        (Topology::numbers(&topology.sockets).len() > 1, "Socket | ", 9, 7),
        (Topology::numbers(&topology.nodes).len() > 1, "Node | ", 7, 5),
        (topology.has_threads(), "Core | ", 7, 5),
    ];
    let shown = |which: usize| several[which].0;
    let head: String = several.iter().filter(|(is, ..)| *is).map(|(_, head, ..)| *head).collect();
    let width: usize = several.iter().filter(|(is, ..)| *is).map(|(.., width, _)| *width).sum();
    let border = "-".repeat(40 + width);
    writeln!(to, "\n{head}CPU |  Usage |  User  | Kernel |  Idle\n{border}")?;
    let mut sums = [0.0; 4];
    for cpu in cpus {
        let places = [
            topology.sockets.get(&cpu.cpu).map(u32::to_string),
            topology.nodes.get(&cpu.cpu).map(u32::to_string),
            topology.cores.get(&cpu.cpu).map(usize::to_string),
        ];
        for (at, place) in places.into_iter().enumerate().filter(|(at, _)| shown(*at)) {
            write!(to, "{:>width$}| ", place.unwrap_or_else(|| "N/A".into()), width = several[at].3)?;
        }
        let shares = cpu_percents(cpu);
        sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        writeln!(to, "{:4}| {}", cpu.cpu, join_shares(shares))?;
    }
    let means = sums.map(|sum| sum / cpus.len() as f64);
    writeln!(to, "{border}\n{:width$}avg.| {}", "", join_shares(means))
}

fn join_shares(shares: [f64; 4]) -> String {
    shares.map(|share| format!("{share:6.2}%")).join("| ")
}

/// Returns total, user, kernel and idle time in percent.
pub(super) fn cpu_percents(cpu: &ObservedCpu) -> [f64; 4] {
    let [user, kernel, idle] = [cpu.user, cpu.kernel, cpu.idle].map(|ticks| ticks as f64);
    let all = (user + kernel + idle).max(1.0);
    [user + kernel, user, kernel, idle].map(|part| 100.0 * part / all)
}

impl Span {
    /// Returns the number of requested threads. If no target was requested, returns the number of
    /// lanes instead.
    pub(super) fn thread_count(&self) -> u64 {
        if self.requested.targets.is_empty() {
            self.lanes.len() as u64
        } else {
            self.requested.thread_count()
        }
    }

    /// Returns the number of complete buckets in the requested duration.
    pub(super) fn buckets(&self) -> usize {
        (u64::from(self.requested.duration_s) * 1000 / u64::from(self.requested.bucket_ms.max(1))) as usize
    }
}

/// Returns `all` with an empty text for each column that was not requested. The columns are the
/// latencies, the deviations of the rate, and the deviations of the latencies.
fn optional_columns(requested: &TimeSpan, all: [&'static str; 3]) -> [&'static str; 3] {
    let shown = [requested.latency, requested.iops, requested.latency];
    std::array::from_fn(|at| if shown[at] { all[at] } else { "" })
}

fn write_section(which: DirectionFilter, span: &Span, to: Out) -> io::Result<()> {
    let [mean, iops, deviation] =
        optional_columns(&span.requested, ["|  AvgLat  ", "| IopsStdDev ", "| LatStdDev "]);
    writeln!(
        to,
        "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s {mean}{iops}{deviation}|  file"
    )?;
    let dashes = optional_columns(&span.requested, ["-----------", "-------------", "------------"]).concat();
    let border = format!("{}{dashes}------------", "-".repeat(66));
    writeln!(to, "{border}")?;
    for lane in &span.lanes {
        let figures = Figures::from_lanes(which, [lane], span.buckets());
        let row = figure_row(&figures, span);
        writeln!(to, "{:6} | {row} | {} ({})", lane.thread, lane.path, size(lane.bytes))?;
    }
    writeln!(to, "{border}")?;
    writeln!(to, "total:   {}", figure_row(&Figures::from_lanes(which, &span.lanes, span.buckets()), span))
}

fn figure_row(figures: &Figures, span: &Span) -> String {
    let (bytes, count, seconds) = (figures.bytes, figures.count(), span.seconds);
    let mib = bytes as f64 / 1_048_576.0 / seconds;
    let mut row = format!("{bytes:15} | {count:12} | {mib:10.2} | {:10.2}", count as f64 / seconds);
    if span.requested.latency {
        row += &if count > 0 { format!(" | {:8.3}", figures.mean_ms()) } else { format!(" | {:>8}", "N/A") };
    }
    if span.requested.iops {
        row += &match figures.iops_deviation(span.requested.bucket_ms) {
            Some(deviation) => format!(" | {deviation:10.2}"),
            None if count == 0 => format!(" | {:10.2}", 0.0),
            None => format!(" | {:>10}", "N/A"),
        };
    }
    if span.requested.latency {
        row += &if count > 0 { format!(" |  {:8.3}", figures.deviation_ms()) } else { " |       N/A".into() };
    }
    row
}

/// Writes a table for all targets, and if there are several, a table for each target.
fn write_percentiles(span: &Span, to: Out) -> io::Result<()> {
    let paths: Vec<&str> = distinct(span.lanes.iter().map(|lane| lane.path.as_str()));
    for path in paths.iter().filter(|_| paths.len() > 1) {
        writeln!(to, "\nLatency distribution: {path}")?;
        let of_path: Vec<&Lane> = span.lanes.iter().filter(|lane| lane.path == *path).collect();
        write_percentile_table(&of_path, to)?;
    }
    writeln!(to, "\nTotal latency distribution:")?;
    write_percentile_table(&span.lanes.iter().collect::<Vec<_>>(), to)
}

fn write_percentile_table(lanes: &[&Lane], to: Out) -> io::Result<()> {
    writeln!(
        to,
        "  %-ile |  Read (ms) | Write (ms) | Total (ms)\n----------------------------------------------"
    )?;
    let all = [DirectionFilter::Read, DirectionFilter::Write, DirectionFilter::Total]
        .map(|which| Figures::from_lanes(which, lanes.iter().copied(), 0));
    let mut line = |name: &str, value: &dyn Fn(&Figures) -> Option<f64>| {
        let cell = |figures: &Figures| {
            value(figures).map_or_else(|| format!("{:>10}", "N/A"), |ms| format!("{ms:10.3}"))
        };
        let [read, write, total] = [&all[0], &all[1], &all[2]].map(cell);
        writeln!(to, "{name:>7} | {read} | {write} | {total}")
    };
    line("min", &Figures::min_ms)?;
    for (share, name) in PERCENTILES {
        line(name, &|figures| figures.percentile_ms(share))?;
    }
    line("max", &Figures::max_ms)
}

/// Writes the totals of all time spans.
fn write_totals(spans: &[Span], to: Out) -> io::Result<()> {
    writeln!(
        to,
        "\n\nTotals:\n{STARS}\n\ntype   |       bytes     |     I/Os     |    MiB/s   |  I/O per s\n{}",
        "-".repeat(79)
    )?;
    let seconds: f64 = spans.iter().map(|span| span.seconds).sum();
    let lanes = || spans.iter().flat_map(|span| &span.lanes);
    for (which, name) in [
        (DirectionFilter::Write, "write  | "),
        (DirectionFilter::Read, "read   | "),
        (DirectionFilter::Total, "total  | "),
    ] {
        if which == DirectionFilter::Total {
            writeln!(to, "{}", "-".repeat(79))?;
        }
        let figures = Figures::from_lanes(which, lanes(), 0);
        let (bytes, count) = (figures.bytes, figures.count());
        let rates =
            [bytes as f64 / 1_048_576.0, count as f64].map(|n| if seconds > 0.0 { n / seconds } else { 0.0 });
        writeln!(to, "{name}{bytes:15} | {count:12} | {:10.2} | {:10.2}", rates[0], rates[1])?;
    }
    writeln!(to, "\ntotal test time:\t{seconds:.2}s")
}

/// Units of sizes, the largest first.
const SIZE_UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];

/// Returns the lines under "Input parameters".
pub(super) fn profile_text(profile: &Profile) -> String {
    let mut out = format!("\nCommand Line: {}\n\nInput parameters:\n\n", profile.command);
    if profile.verbose {
        out += "\tusing verbose mode\n";
    }
    for (number, span) in (1..).zip(&profile.spans) {
        out += &format!("\ttimespan: {number:3}\n\t-------------\n");
        out += &span_text(span);
        out += "\n";
    }
    out
}

/// Formats a size in the largest unit that it reaches.
pub(super) fn size(bytes: u64) -> String {
    size_in(bytes, 0)
}

/// Formats a size in the largest unit that it reaches, right-aligned to `width`, except plain bytes.
fn size_in(bytes: u64, width: usize) -> String {
    let unit = SIZE_UNITS.iter().find(|(shift, _)| bytes >= 1 << shift);
    match unit {
        None => bytes.to_string(),
        Some((shift, name)) if bytes.is_multiple_of(1 << shift) => format!("{:width$}{name}", bytes >> shift),
        Some((shift, name)) => format!("{:width$.2}{name}", bytes as f64 / (1_u64 << shift) as f64),
    }
}

fn span_text(span: &TimeSpan) -> String {
    let mut out = format!(
        "\tduration: {}s\n\twarm up time: {}s\n\tcool down time: {}s\n",
        span.duration_s, span.warmup_s, span.cooldown_s
    );
    let pooled = span.threads > 0;
    let has_depth = !pooled || span.requests == 0;
    let lines = [
        (span.disable_affinity, "\taffinity disabled\n".to_owned()),
        (span.latency, "\tmeasuring latency\n".into()),
        (span.iops, format!("\tgathering IOPS at intervals of {}ms\n", span.bucket_ms)),
        (true, format!("\trandom seed: {}\n", span.seed)),
        (
            pooled,
            format!(
                "\tthread pool with {} threads\n\tnumber of outstanding I/O operations per thread: {}\n",
                span.threads, span.requests
            ),
        ),
        (!span.affinity.is_empty(), {
            let cpus: Vec<String> = span.affinity.iter().map(|(group, cpu)| format!("{group}/{cpu}")).collect();
            format!("\tadvanced affinity round robin (group/core): {}\n", cpus.join(", "))
        }),
        (
            span.random_writes,
            "\tgenerating random data for each write IO\n\t  WARNING: this increases the CPU cost of issuing writes and should only\n\t           be compared to other results using the -Zr flag\n"
                .into(),
        ),
    ];
    out.extend(lines.into_iter().filter(|(is_so, _)| *is_so).map(|(_, line)| line));
    out.extend(span.targets.iter().map(|t| target_text(t, !pooled, has_depth, span.completion_routines)));
    out
}

/// Returns the lines of a target. `has_threads` and `has_depth`: whether the target has its own
/// threads and queue depth instead of those of the pool. `has_routines`: whether DISKSPD would use
/// completion routines.
pub(super) fn target_text(target: &Target, has_threads: bool, has_depth: bool, has_routines: bool) -> String {
    let mut out = match target.path.strip_prefix('*') {
        Some(number) => format!("\tpath: template target '{number}'\n"),
        None => format!("\tpath: '{}'\n", target.path),
    };
    let mut add = |line: String| out += &format!("\t\t{line}\n");
    add(format!("think time: {}ms", target.think_ms.unwrap_or(0)));
    add(format!("burst size: {}", target.burst.unwrap_or(0)));
    caching_text(target, &mut add);
    data_text(target, &mut add);
    if target.parallel {
        add("using parallel async I/O".into());
    }
    add(match target.write_percent {
        0 => "performing read test".into(),
        100 => "performing write test".into(),
        percent => format!("performing mix test (read/write ratio: {}/{percent})", 100 - percent.min(100)),
    });
    add(format!("block size: {}", size(target.block.into())));
    add(order_text(target));
    if has_depth {
        add(format!("number of outstanding I/O operations per thread: {}", target.requests));
    } else {
        add(format!("relative IO weight in thread pool: {}", target.weight));
    }
    region_text(target, &mut add);
    if has_threads {
        add(format!("threads per file: {}", target.threads));
        if target.requests > 1 {
            let how = if has_routines {
                "completion routines (ReadFileEx/WriteFileEx)"
            } else {
                "I/O Completion Ports"
            };
            add(format!("using {how}"));
        }
    }
    add(format!(
        "IO priority: {}",
        match target.priority {
            1 => "very low",
            2 => "low",
            3 => "normal",
            _ => "unknown",
        }
    ));
    match target.throughput {
        Some(Throughput::Iops(iops)) => add(format!("throughput rate-limited to {iops} IOPS")),
        Some(Throughput::BytesPerMs(bytes)) => add(format!("throughput rate-limited to {bytes} B/ms")),
        None => {}
    }
    if let Some(parts) = &target.distribution {
        add("IO Distribution:".into());
        out += &distribution_text(parts, "\t\t");
    }
    out
}

/// Adds the lines about the region of a target, and the hints about its use.
fn region_text(target: &Target, add: &mut dyn FnMut(String)) {
    for (bytes, what) in [
        (target.base, "base file offset"),
        (target.end, "max file size"),
        (target.thread_stride, "thread stride size"),
    ] {
        if bytes > 0 {
            add(format!("{what}: {}", size(bytes)));
        }
    }
    for (hint, name) in [
        (target.sequential_hint, "FILE_FLAG_SEQUENTIAL_SCAN"),
        (target.random_hint, "FILE_FLAG_RANDOM_ACCESS"),
        (target.temporary_hint, "FILE_ATTRIBUTE_TEMPORARY"),
    ] {
        if hint {
            add(format!("using {name} hint"));
        }
    }
}

fn caching_text(target: &Target, add: &mut dyn FnMut(String)) {
    add(match target.cache {
        Cache::Cached => "using software cache",
        Cache::Remote => "local software cache disabled, remote cache enabled",
        Cache::Off => "software cache disabled",
    }
    .into());
    add(match (target.write_through, target.cache) {
        (false, _) => "using hardware write cache, writethrough off",
        (true, Cache::Off) => "hardware write cache disabled, writethrough on",
        (true, _) => "hardware and software write caches disabled, writethrough on",
    }
    .into());
    if target.mapped {
        let flush =
            target.flush.map_or_else(String::new, |flush| format!(", flush mode: {}", flush.in_text()));
        add(format!("memory mapped I/O enabled{flush}"));
    }
}

fn data_text(target: &Target, add: &mut dyn FnMut(String)) {
    if target.zeros {
        add("zeroing write buffers".into());
    }
    if target.buffer > 0 {
        add(format!("write buffer size: {}", size(target.buffer)));
        add(match &target.buffer_file {
            Some(file) => format!("write buffer source: '{file}'"),
            None => "write buffer source: random fill".into(),
        });
    }
}

fn order_text(target: &Target) -> String {
    let step = size(target.step());
    match target.random_percent {
        100 => format!("using random I/O (alignment: {step})"),
        0 if target.interlocked => format!("using interlocked sequential I/O (stride: {step})"),
        0 => format!("using sequential I/O (stride: {step})"),
        percent => {
            format!("using mixed random/sequential I/O ({percent}% random) (alignment/stride: {step})")
        }
    }
}

/// Returns the shares of operations by part of the target, one per line.
fn distribution_text(parts: &Distribution, indent: &str) -> String {
    let (mut out, mut at) = (String::new(), 0_u64);
    for part in &parts.ranges {
        let end = at.saturating_add(part.length);
        out += indent;
        if parts.percent {
            out += &format!("   {:3}% of IO => [{at:2}% - {end:3}%) of target\n", part.io);
        } else {
            let from = if at == 0 { "     0   ".to_owned() } else { size_in(at, 6) };
            let to = if part.length == 0 { "      end".to_owned() } else { size_in(end, 6) };
            out += &format!("   {:3}% of IO => [{from} - {to})\n", part.io);
        }
        at = end;
    }
    out
}
