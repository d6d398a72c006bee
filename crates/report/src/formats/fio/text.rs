//! fio's text and its terse lines.
//!
//! fathom's verdict follows the text. Terse lines (versions 2 to 5) have fields between semicolons, a line for each job. An unknown value
//! is an empty field, so that the following fields keep their places.

use super::job::{
    CALL_LEVELS, COLUMNS, DEPTH_LEVELS, DIRECTIONS, Depths, Direction, Group, Job, LatencyShares, Member,
    RateSamples, TERSE_PERCENTILES, cpu_percent, ctime, disk_totals, end_time, idleness, jobs,
    named_directions, util_percent,
};
use super::{VERSION, options};
use crate::view::findings::{MAX_SHOWN, rest_summary, shown_checks, worst_findings};
use crate::{Detail, Style};
use model::finding::Severity;
use model::histogram::Distribution;
use model::job::{Kind, Quantity, Sizes, Stream};
use model::report::{Measured, Report};
use model::spec::FioLayout;
use std::io::{self, Write};

/// Columns for the percentiles of a line, as in fio: 80 less the margin.
const PERCENTILE_TABLE_WIDTH: usize = 73;
/// Maximum number of digits of a latency; larger numbers are printed in thousands.
const LATENCY_DIGITS: usize = 6;
/// Maximum number of shares of latencies on a line.
const SHARES_PER_LINE: usize = 5;

type Out<'o> = &'o mut dyn Write;

/// Writes fio's text, followed by fathom's verdict unless the style is [`crate::Detail::Brief`].
pub(super) fn write_text(report: &Report, style: Style, to: Out) -> io::Result<()> {
    let jobs = jobs(report);
    write_job_intro(&jobs, to)?;
    let when = end_time(report, &jobs).map_or_else(String::new, |at| format!(": {}", ctime(&at)));
    for job in &jobs {
        write_job(job, &jobs, &format!("{}{when}", process_number(report)), to)?;
    }
    for group in 0..jobs.last().map_or(0, |job| job.group + 1) {
        write_group(&jobs, group, to)?;
    }
    write_disks(&jobs, to)?;
    write_idleness(&jobs, to)?;
    if style.detail == Detail::Brief { Ok(()) } else { write!(to, "\n{}", verdict(report)) }
}

/// Writes the lines that fio prints before it measures.
fn write_job_intro(jobs: &[Job], to: Out) -> io::Result<()> {
    for (job, member) in jobs.iter().flat_map(|job| job.members.iter().map(move |member| (job, member))) {
        let stream = member.stream;
        let layout = job.layout();
        let size = |kind| format!("({}) {}", initial(kind), size_limits(stream, kind, &layout));
        let sizes = DIRECTIONS.map(size).join(", ");
        let (rw, engine) = (options::rw(&stream.access), options::engine(&stream.engine));
        let (name, depth) = (member.name(), typed_depth(member).unwrap_or(stream.depth));
        writeln!(to, "{name}: (g={}): rw={rw}, bs={sizes}, ioengine={engine}, iodepth={depth}", job.group)?;
        if stream.workers > 1 {
            writeln!(to, "...")?;
        }
    }
    let threads: u64 = jobs.iter().map(Job::workers).sum();
    let word = if threads == 1 { "thread" } else { "threads" };
    writeln!(to, "{VERSION}\nStarting {threads} {word}")?;
    let is_capped = |member: &&Member| member.stream.depth == 1 && typed_depth(member).is_some_and(|n| n > 1);
    for _ in jobs.iter().flat_map(|job| &job.members).filter(is_capped) {
        writeln!(
            to,
            "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1"
        )?;
    }
    writeln!(to)
}

/// Returns the depth that the user typed; `None` if the user typed none. A synchronous engine does
/// not reach this depth, but fio prints it.
fn typed_depth(member: &Member) -> Option<u32> {
    let typed = member.observed.typed.as_ref()?;
    let mut options = typed.stream.options.iter().chain(&typed.defaults);
    options.find(|(name, _)| name == "iodepth")?.1.parse().ok()
}

fn initial(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "R",
        Kind::Write => "W",
        Kind::Trim => "T",
        Kind::Sync => "S",
    }
}

/// Returns the smallest and largest block size of a direction: `4096B-4096B`.
fn size_limits(stream: &Stream, kind: Kind, layout: &FioLayout) -> String {
    let sizes = stream.access.lines.iter().map(|line| match kind {
        Kind::Write => &line.sizes.write,
        Kind::Trim => &line.sizes.trim,
        Kind::Read | Kind::Sync => &line.sizes.read,
    });
    let least = sizes.clone().map(Sizes::least).min().unwrap_or(0);
    let most = sizes.map(Sizes::most).max().unwrap_or(0);
    [least, most].map(|size| size_in_both_units(layout, size.into())[0].clone()).join("-")
}

/// Returns `: pid=1234`. The session id ends with the process id. Empty without a session.
fn process_number(report: &Report) -> String {
    let id = report.session.as_deref().and_then(|path| path.rsplit('/').next()?.split('.').next());
    let number = id.and_then(|id| id.rsplit('-').next()?.parse::<u32>().ok());
    number.map_or_else(String::new, |number| format!(": pid={number}"))
}

fn write_job(job: &Job, all: &[Job], when: &str, to: Out) -> io::Result<()> {
    let error = match job.error() {
        0 => " 0".to_owned(),
        // An error without a number comes from fathom and is in the notes of the report.
        -1 => "-1 (the run ended early, without an error number)".to_owned(),
        number => format!("{number:2} ({})", io::Error::from_raw_os_error(number as i32)),
    };
    let (name, group, workers) = (job.name(), job.group, job.workers());
    writeln!(to, "{name}: (groupid={group}, jobs={workers}): err={error}{when}")?;
    if job.is_empty() {
        return Ok(());
    }
    let layout = job.layout();
    if !layout.description.is_empty() {
        writeln!(to, "  Description  : [{}]", layout.description)?;
    }
    for (word, direction) in job.directions().iter().filter(|(_, direction)| direction.ops > 0) {
        let group = Group::from_jobs(all, job.group, word).unwrap_or_default();
        write_direction(word, direction, &group, &layout, to)?;
    }
    write_shares(job, to)?;
    let sync = job.sync();
    if sync.count > 0 {
        writeln!(to, "  fsync/fdatasync/sync_file_range:")?;
        write_latencies("sync", &sync, to)?;
        write_percentiles("sync", &sync, &layout, to)?;
    }
    write_costs(job, to)?;
    write_depths(job, to)?;
    write_steadied(job, &layout, to)
}

/// Writes whether the job became steady, if it has a steady-state rule.
fn write_steadied(job: &Job, layout: &FioLayout, to: Out) -> io::Result<()> {
    let Some((rule, observed)) = job.steadied() else { return Ok(()) };
    let mean = |quantity| observed.spread(quantity).mean;
    let [rate, decimal] = rate_in_both_units(layout, mean(Quantity::Bandwidth));
    let (iops, criterion) = (scaled_rate(mean(Quantity::Iops)), observed.criterion(rule).unwrap_or(0.0));
    let attained = if observed.attained { "yes" } else { "no" };
    let how = if rule.slope { "slope" } else { "mean dev" };
    let (what, sign) = (rule.quantity.word(), if rule.percent { "%" } else { "" });
    writeln!(
        to,
        "  steadystate  : attained={attained}, bw={rate} ({decimal}), iops={iops}, {what} {how}={criterion:.3}{sign}"
    )
}

fn write_direction(
    word: &str,
    direction: &Direction,
    group: &Group,
    layout: &FioLayout,
    to: Out,
) -> io::Result<()> {
    let [rate, decimal] = rate_in_both_units(layout, direction.bytes_per_s);
    let [bytes, _] = size_in_both_units(layout, direction.bytes);
    // fathom resets no zones.
    let zones = if word == Kind::Write.word() { "; 0 zone resets" } else { "" };
    let iops = scaled_rate(direction.iops);
    writeln!(
        to,
        "  {word}: IOPS={iops}, BW={rate} ({decimal})({bytes}/{}msec){zones}",
        direction.runtime_ms
    )?;
    for (name, all) in [("clat", &direction.clat), (" lat", &direction.lat)] {
        if all.count > 0 {
            write_latencies(name, all, to)?;
        }
    }
    let kind = if layout.lat_percentiles { "lat" } else { "clat" };
    for ([class, level], latency) in &direction.priorities {
        write_latencies(&format!("{kind} prio {class}/{level}"), latency, to)?;
    }
    for (name, all, is_shown) in
        [("clat", &direction.clat, layout.clat_percentiles), ("lat", &direction.lat, layout.lat_percentiles)]
    {
        if is_shown {
            write_percentiles(name, all, layout, to)?;
        }
    }
    for ([class, level], latency) in &direction.priorities {
        let share = 100.0 * latency.count as f64 / direction.clat.count.max(1) as f64;
        if layout.clat_percentiles || layout.lat_percentiles {
            write_percentiles(
                &format!("{kind} prio {class}/{level} ({share:.2}% of IOs)"),
                latency,
                layout,
                to,
            )?;
        }
    }
    write_samples(direction, group, layout, to)
}

/// Writes minimum, maximum, mean and standard deviation in a common unit, which is chosen as in fio.
fn write_latencies(name: &str, latency: &Distribution, to: Out) -> io::Result<()> {
    let deviation = latency.deviation_ns();
    let above =
        |min: u64, max: u64, least: f64| latency.min_ns > min && latency.max_ns > max && deviation > least;
    let (unit, by) = if above(2_000_000, 99_999_999, 1e6) {
        ("msec", 1_000_000)
    } else if above(2000, 99_999, 1000.0) {
        ("usec", 1000)
    } else {
        ("nsec", 1)
    };
    let [min, max] = [latency.min_ns, latency.max_ns].map(|ns| scaled_count(ns / by, LATENCY_DIGITS));
    let [mean, deviation] = [latency.mean_ns, deviation].map(|ns| ns / by as f64);
    writeln!(to, "    {name} ({unit}): min={min}, max={max}, avg={mean:5.2}, stdev={deviation:5.2}")
}

fn write_percentiles(name: &str, latency: &Distribution, layout: &FioLayout, to: Out) -> io::Result<()> {
    let ranks = layout.ranks.iter();
    let values: Vec<(f64, u64)> =
        ranks.filter_map(|rank| Some((*rank, latency.quantile_ns(rank / 100.0)?))).collect();
    let decimals = layout.rank_decimals;
    let rank_width = decimals + 3;
    let (Some((_, least)), Some((_, most))) = (values.first(), values.last()) else { return Ok(()) };
    let (unit, by) = match (least, most) {
        (2_000_001.., 100_000_000..) => ("msec", 1_000_000),
        (2_001.., 100_000..) => ("usec", 1_000),
        _ => ("nsec", 1),
    };
    let width = (most / by).to_string().len().max(5);
    let per_line = (PERCENTILE_TABLE_WIDTH / (decimals + 10 + width)).max(1);
    writeln!(to, "    {name} percentiles ({unit}):")?;
    for (at, line) in values.chunks(per_line).enumerate() {
        let cells: Vec<String> = line
            .iter()
            .map(|(rank, ns)| format!("{rank:rank_width$.decimals$}th=[{:width$}]", ns.div_ceil(by)))
            .collect();
        let more = if (at + 1) * per_line < values.len() { "," } else { "" };
        writeln!(to, "     | {}{more}", cells.join(", "))?;
    }
    Ok(())
}

/// Writes statistics of the rate over samples of at least half a second; nothing if the runs were shorter.
fn write_samples(direction: &Direction, group: &Group, layout: &FioLayout, to: Out) -> io::Result<()> {
    if direction.bw.count == 0 {
        return Ok(());
    }
    let RateSamples { count, min, max, mean, deviation } = direction.bw;
    let share = direction.bw.percent_of(group.bytes_per_s);
    // As in fio, the rate is never in bits, and large rates are in `MiB` even if they are divided
    // by 1000.
    let base: u32 = if layout.decimal_first { 1000 } else { 1024 };
    let (unit, by) = match (mean > f64::from(base).powi(2), layout.decimal_first) {
        (true, _) => ("MiB", base),
        (false, true) => ("kB", 1),
        (false, false) => ("KiB", 1),
    };
    let [mean, deviation] = [mean, deviation].map(|kib| kib / f64::from(by));
    let [min, max] = [min, max].map(|kib| kib / u64::from(by));
    writeln!(
        to,
        "   bw ({unit:>5}/s): min={min:5}, max={max:5}, per={share:.2}%, avg={mean:5.2}, stdev={deviation:5.2}, samples={count}"
    )?;
    let RateSamples { count, min, max, mean, deviation } = direction.iops_samples;
    writeln!(
        to,
        "   iops        : min={min:5}, max={max:5}, avg={mean:5.2}, stdev={deviation:5.2}, samples={count}"
    )
}

/// Writes the shares of operations by latency, without shares of zero.
fn write_shares(job: &Job, to: Out) -> io::Result<()> {
    let LatencyShares { ns, us, ms } = job.latency_shares();
    for (unit, shares) in [("nsec", &ns[..]), ("usec", &us), ("msec", &ms)] {
        let cells: Vec<String> = LatencyShares::named(shares)
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{name}={share:.2}%"))
            .collect();
        for line in cells.chunks(SHARES_PER_LINE) {
            writeln!(to, "  lat ({unit})   : {}", line.join(", "))?;
        }
    }
    Ok(())
}

fn write_costs(job: &Job, to: Out) -> io::Result<()> {
    let workers = job.costs();
    if workers.wall_ns == 0 {
        return Ok(());
    }
    let [user, system] = cpu_percent(&workers);
    let faults =
        workers.faults.map_or_else(String::new, |[minor, major]| format!(", majf={major}, minf={minor}"));
    writeln!(to, "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={}{faults}", workers.switches)
}

/// Writes the shares of operations by queue depth and of calls by number of operations, as far as
/// they are known, then the numbers of operations, and the latency target.
fn write_depths(job: &Job, to: Out) -> io::Result<()> {
    let mut table = |title: &str, names: [&str; COLUMNS], shares: Option<[f64; COLUMNS]>| -> io::Result<()> {
        let Some(shares) = shares else { return Ok(()) };
        let cells: Vec<String> =
            names.iter().zip(shares).map(|(name, share)| format!("{name}={share:.1}%")).collect();
        writeln!(to, "{title}: {}", cells.join(", "))
    };
    let Depths { level, submit, complete } = Depths::from_job(job);
    table("  IO depths    ", DEPTH_LEVELS, level)?;
    table("     submit    ", CALL_LEVELS, submit)?;
    table("     complete  ", CALL_LEVELS, complete)?;
    // fio always prints three columns. If all directions are reported together, the second and third are 0.
    let mut all: Vec<Direction> = job.directions().into_iter().map(|(_, direction)| direction).collect();
    all.resize_with(DIRECTIONS.len(), Direction::default);
    let joined =
        |count: fn(&Direction) -> u64| all.iter().map(|d| count(d).to_string()).collect::<Vec<_>>().join(",");
    let syncs = job.fsync_count();
    let (total, short) = (joined(|d| d.ops), joined(|d| d.short));
    writeln!(to, "     issued rwts: total={total},{syncs} short={short},0 dropped=0,0,0,0")?;
    // As in fio, the target is in ns and the window in us.
    let [target, window] = job.latency_target().map_or([0, 0], |t| [t.ns, t.window_ns / 1000]);
    let percent = job.latency_target().map_or(100.0, |t| t.percent);
    writeln!(
        to,
        "     latency   : target={target}, window={window}, percentile={percent:.2}%, depth={}",
        job.depth()
    )
}

fn write_group(jobs: &[Job], group: usize, to: Out) -> io::Result<()> {
    writeln!(to, "\nRun status group {group} (all jobs):")?;
    for (word, _) in named_directions(false).into_iter().chain(named_directions(true)) {
        let Some(total) = Group::from_jobs(jobs, group, word) else { continue };
        let layout = jobs.iter().rfind(|job| job.group == group).map(Job::layout).unwrap_or_default();
        let [least, most] = total.job_bytes_per_s.map(|rate| rate_in_both_units(&layout, rate));
        let [rate, decimal] = rate_in_both_units(&layout, total.bytes_per_s);
        let [bytes, bytes_decimal] = size_in_both_units(&layout, total.bytes);
        let [short, long] = total.runtime_ms;
        writeln!(
            to,
            "{:>7}: bw={rate} ({decimal}), {}-{} ({}-{}), io={bytes} ({bytes_decimal}), run={short}-{long}msec",
            word.to_uppercase(),
            least[0],
            most[0],
            least[1],
            most[1],
        )?;
    }
    Ok(())
}

fn write_disks(jobs: &[Job], to: Out) -> io::Result<()> {
    let disks = disk_totals(jobs);
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(to, "\nDisk stats (read/write):")?;
    for disk in &disks {
        let (read, write) = (disk.stat.read, disk.stat.write);
        writeln!(
            to,
            "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%",
            disk.name,
            read.ios,
            write.ios,
            read.merges,
            write.merges,
            read.ms,
            write.ms,
            disk.stat.queue_ms,
            util_percent(disk),
        )?;
    }
    Ok(())
}

/// Writes the idle time of the CPUs.
fn write_idleness(jobs: &[Job], to: Out) -> io::Result<()> {
    let Some((system, each)) = idleness(jobs) else { return Ok(()) };
    writeln!(to, "\nCPU idleness:\n  system: {system:.2}%")?;
    if each.is_empty() {
        return Ok(());
    }
    let each: Vec<String> = each.iter().map(|(_, percent)| format!("{percent:.2}%")).collect();
    writeln!(to, "  percpu: {}", each.join(", "))
}

/// Returns fathom's verdict, which follows fio's text so that parsers find fio's lines in their place.
pub fn verdict(report: &Report) -> String {
    let mut lines = vec![format!("fathom: {}  {}", report.verdict.word(), report.verdict_reason)];
    let by_a_finding = |result: &Measured| {
        let mut checks = report.checks.iter().filter(|f| f.about.contains(&result.name));
        checks.any(|f| f.severity == Some(Severity::Relabels))
    };
    // No finding relabels the results of engines without storage or data. fio's lines about them look like those of real I/O, so name what
    // was measured.
    for result in report.results.iter().filter(|r| r.renamed && !r.void && !by_a_finding(r)) {
        lines.push(format!("  {} is {}", result.name, result.true_name));
    }
    let fallbacks = report.results.iter().flat_map(|r| r.job.streams());
    let mut fallbacks: Vec<String> =
        fallbacks.filter_map(|s| Some(s.engine_fallback.as_ref()?.sentence(&s.engine))).collect();
    fallbacks.sort_unstable();
    fallbacks.dedup();
    lines.extend(fallbacks.iter().map(|sentence| format!("  {sentence}")));
    // The first line contains the finding that decides the verdict.
    for finding in
        worst_findings(report).into_iter().filter(|f| !report.verdict_reason.ends_with(&f.sentence))
    {
        let effect = finding.severity.map_or("", Severity::effect);
        let about = finding.about.join(", ");
        lines.push(format!("  {} {} {effect} {about}: {}", finding.id, finding.name, finding.sentence));
    }
    lines.extend(rest_summary(&shown_checks(report), MAX_SHOWN).map(|rest| format!("  {rest}")));
    lines.join("\n") + "\n"
}

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Default limit of the digits of a number.
const MAX_DIGITS: usize = 4;

/// Formats a number in steps of 1000, with at most `digits` digits.
pub(super) fn scaled_count(value: u64, digits: usize) -> String {
    scaled(value, digits, 1000, &DECIMAL, "")
}

/// Formats a number of operations per second in steps of 1000.
pub(super) fn scaled_rate(value: f64) -> String {
    scaled_count(value as u64, MAX_DIGITS)
}

/// Formats bytes in units of 1024 and of 1000, in the order of the layout: `1984KiB`, `2032kB`.
fn size_in_both_units(layout: &FioLayout, bytes: u64) -> [String; 2] {
    in_both_units(layout, bytes, "B")
}

/// Formats a rate in units of 1024 and of 1000, in the order of the layout: `51.6MiB/s`, `54.1MB/s`.
fn rate_in_both_units(layout: &FioLayout, bytes_per_s: f64) -> [String; 2] {
    let bytes = bytes_per_s as u64;
    let (value, unit) = if layout.bits { (bytes.saturating_mul(8), "bit/s") } else { (bytes, "B/s") };
    in_both_units(layout, value, unit)
}

fn in_both_units(layout: &FioLayout, value: u64, unit: &str) -> [String; 2] {
    let binary = scaled(value, MAX_DIGITS, 1024, &BINARY, unit);
    let decimal = scaled(value, MAX_DIGITS, 1000, &DECIMAL, unit);
    if layout.decimal_first { [decimal, binary] } else { [binary, decimal] }
}

/// Formats a number with the smallest unit prefix that leaves at most `digits` digits, with decimals if they fit.
fn scaled(value: u64, digits: usize, base: u64, steps: &[&str; 7], unit: &str) -> String {
    let mut step = 0;
    let mut rest = value as f64;
    let mut integer = value;
    while integer.to_string().len() > digits && step + 1 < steps.len() {
        integer /= base;
        rest /= base as f64;
        step += 1;
    }
    let room = digits.saturating_sub(integer.to_string().len());
    let decimals = if step == 0 || room <= 1 { 0 } else { room - 1 };
    if decimals == 0 {
        // fio rounds half up.
        rest = (rest + 0.5).floor();
    }
    format!("{rest:.decimals$}{}{unit}", steps[step])
}

/// Lowest terse version whose lines have fio's version and the disks.
const VERSION_AND_DISKS_FROM: u8 = 3;
/// Terse versions whose lines include trims.
const WITH_TRIMS: [u8; 3] = [2, 4, 5];
/// Terse version whose lines include samples of operations per second.
const WITH_SAMPLES: u8 = 5;

/// Writes the lines of a terse version.
pub(super) fn write_terse(report: &Report, version: u8, to: &mut dyn Write) -> io::Result<()> {
    let jobs = jobs(report);
    for job in &jobs {
        let mut fields = vec![version.to_string()];
        if version >= VERSION_AND_DISKS_FROM {
            fields.push(VERSION.into());
        }
        // A semicolon in a name would shift the following fields.
        fields.push(job.name().replace(';', ","));
        fields.push(job.group.to_string());
        fields.push(job.error().to_string());
        let layout = job.layout();
        let has_direction = |word: &str| word != Kind::Trim.word() || WITH_TRIMS.contains(&version);
        for (word, direction) in job.directions().iter().filter(|(word, _)| has_direction(word)) {
            let group = Group::from_jobs(&jobs, job.group, word).unwrap_or_default();
            fields.extend(direction_fields(direction, &group, &layout, version));
        }
        fields.extend(cost_fields(job));
        fields.extend(share_fields(job));
        if version >= VERSION_AND_DISKS_FROM {
            fields.extend(disk_fields(&jobs));
        }
        if !layout.description.is_empty() {
            // As in fio, version 2 has the description on a separate line.
            let begin = if version == 2 { "\n" } else { "" };
            if let Some(last) = fields.last_mut() {
                last.push_str(begin);
            }
            fields.push(layout.description);
        }
        writeln!(to, "{}", fields.join(";"))?;
    }
    Ok(())
}

fn direction_fields(direction: &Direction, group: &Group, layout: &FioLayout, version: u8) -> Vec<String> {
    let mut out = vec![
        (direction.bytes >> 10).to_string(),
        (direction.bytes_per_s as u64 >> 10).to_string(),
        (direction.iops as u64).to_string(),
        direction.runtime_ms.to_string(),
    ];
    out.extend(latency_fields(&Distribution::default()));
    out.extend(latency_fields(&direction.clat));
    out.extend(percentile_fields(direction, layout));
    out.extend(latency_fields(&direction.lat));
    let RateSamples { count, min, max, mean, deviation } = direction.bw;
    let share = direction.bw.percent_of(group.bytes_per_s);
    out.extend([
        min.to_string(),
        max.to_string(),
        format!("{share:.6}%"),
        format!("{mean:.6}"),
        format!("{deviation:.6}"),
    ]);
    if version == WITH_SAMPLES {
        out.push(count.to_string());
        let RateSamples { count, min, max, mean, deviation } = direction.iops_samples;
        out.extend([
            min.to_string(),
            max.to_string(),
            format!("{mean:.6}"),
            format!("{deviation:.6}"),
            count.to_string(),
        ]);
    }
    out
}

/// Returns minimum, maximum, mean and standard deviation in us.
fn latency_fields(latency: &Distribution) -> [String; 4] {
    let us = |ns: f64| format!("{:.6}", ns / 1e3);
    [
        (latency.min_ns / 1000).to_string(),
        (latency.max_ns / 1000).to_string(),
        us(latency.mean_ns),
        us(latency.deviation_ns()),
    ]
}

/// Returns percentiles in us: of the total latency if the layout includes its percentiles, otherwise
/// of the completion latency. All are 0 without operations.
fn percentile_fields(direction: &Direction, layout: &FioLayout) -> Vec<String> {
    let from = if layout.lat_percentiles { &direction.lat } else { &direction.clat };
    let at = |rank: &f64| format!("{rank:.6}%={}", from.quantile_ns(rank / 100.0).unwrap_or(0) / 1000);
    let has_percentiles = layout.clat_percentiles || layout.lat_percentiles;
    let mut out: Vec<String> = layout.ranks.iter().filter(|_| has_percentiles).map(at).collect();
    out.resize(TERSE_PERCENTILES, "0%=0".into());
    out
}

fn cost_fields(job: &Job) -> [String; 5] {
    let workers = job.costs();
    let [user, system] = cpu_percent(&workers);
    let faults = |at: usize| workers.faults.map_or_else(String::new, |faults| faults[at].to_string());
    let switches = workers.switches.to_string();
    [format!("{user:.6}%"), format!("{system:.6}%"), switches, faults(1), faults(0)]
}

/// Returns the shares of operations by queue depth, empty if unknown, and by latency in us and ms.
fn share_fields(job: &Job) -> Vec<String> {
    let level = Depths::from_job(job).level;
    let mut out: Vec<String> = (0..COLUMNS)
        .map(|at| level.map_or_else(String::new, |shares| format!("{:.1}%", shares[at])))
        .collect();
    let LatencyShares { ns, mut us, ms } = job.latency_shares();
    // A terse line has no columns for nanoseconds.
    us[0] += ns.iter().sum::<f64>();
    out.extend(us.iter().chain(&ms).map(|share| format!("{share:.2}%")));
    out
}

fn disk_fields(jobs: &[Job]) -> Vec<String> {
    let mut out = Vec::new();
    for disk in disk_totals(jobs) {
        let (read, write) = (disk.stat.read, disk.stat.write);
        let util = util_percent(&disk);
        out.push(disk.name);
        out.extend(
            [read.ios, write.ios, read.merges, write.merges, read.ms, write.ms, disk.stat.queue_ms]
                .map(|n| n.to_string()),
        );
        out.push(format!("{util:.2}%"));
    }
    out
}

#[test]
fn numbers_are_formatted_as_in_fio() {
    let layout = FioLayout::default();
    let [binary, decimal] = rate_in_both_units(&layout, 54_067_200.0);
    assert_eq!((binary.as_str(), decimal.as_str()), ("51.6MiB/s", "54.1MB/s"));
    assert_eq!(size_in_both_units(&layout, 540_672), ["528KiB", "541kB"]);
    assert_eq!(size_in_both_units(&layout, 1 << 20), ["1024KiB", "1049kB"]);
    assert_eq!(rate_in_both_units(&layout, 2_031_616_000.0), ["1938MiB/s", "2032MB/s"]);
    let other = FioLayout { decimal_first: true, bits: true, ..FioLayout::default() };
    assert_eq!(rate_in_both_units(&other, 54_067_200.0), ["433Mbit/s", "413Mibit/s"]);
    assert_eq!(size_in_both_units(&other, 540_672), ["541kB", "528KiB"]);
    assert_eq!([9481.9, 13_200.0, 496_000.0, 0.0].map(scaled_rate), ["9481", "13.2k", "496k", "0"]);
    assert_eq!((scaled_count(1_047, 6), scaled_count(1_744_999, 6)), ("1047".into(), "1745.0k".into()));
    assert_eq!(size_in_both_units(&layout, u64::MAX)[0], "16.0EiB");
}
