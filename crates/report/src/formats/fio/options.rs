//! A job as equivalent fio options, for the key `job options` and the first lines of the text.
//!
//! If the user typed options, these are printed. Otherwise the job is translated. Settings without an equivalent option
//! of fio are left out.

use super::job::{Job, Member};
use model::job::{
    Access, Arrivals, Cache, Kind, Line, Order, Pace, Pattern, PerKind, Sizes, Stream, SyncCall, ZoneSize,
};
use model::spec::Options;
use model::units::show_block;

/// The name and value of an option.
type NamedOption = (&'static str, String);

/// Returns the options that the user typed for the last member of a job, as in fio. If the user typed none, returns
/// options that are equivalent to the first member.
pub(super) fn job_options(job: &Job) -> Options {
    let typed = job.members.last().and_then(|member| member.observed.typed.as_ref());
    typed.map_or_else(
        || equivalent_options(job).into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        |typed| typed.stream.options.clone(),
    )
}

/// Returns the options that the user typed for all jobs.
pub(super) fn default_options(jobs: &[Job]) -> Options {
    let typed = jobs.first().and_then(|job| job.first().observed.typed.as_ref());
    typed.map(|typed| typed.defaults.clone()).unwrap_or_default()
}

/// Returns fio options that are equivalent to a job.
fn equivalent_options(job: &Job) -> Vec<NamedOption> {
    let one = job.first();
    let stream = one.stream;
    let mut out = vec![
        ("name", job.name().to_owned()),
        ("rw", rw(&stream.access)),
        ("ioengine", engine(&stream.engine).into()),
        ("iodepth", stream.depth.to_string()),
        ("numjobs", stream.workers.to_string()),
    ];
    out.extend(size_options(&stream.access));
    out.extend(cache_options(stream.cache));
    out.extend(order_options(&stream.access));
    out.extend(target_options(&one));
    out.extend(rate_options(&one));
    out.extend(runtime_options(&one));
    let (submit, complete) = (stream.batch.submit, stream.batch.complete);
    if (submit, complete) != (1, 1) {
        out.push(("iodepth_batch_submit", submit.to_string()));
        out.push(("iodepth_batch_complete_min", complete.to_string()));
    }
    if let Some(flush) = stream.flush.filter(|_| stream.access.writes()) {
        let name = match flush.call {
            SyncCall::Fsync => Some("fsync"),
            SyncCall::Fdatasync => Some("fdatasync"),
            SyncCall::SyncFileRange => None,
        };
        let every = (f64::from(flush.every) / f64::from(flush.calls.max(1))).round().max(1.0);
        out.extend(name.map(|name| (name, every.to_string())));
    }
    out.push(("group_reporting", "1".into()));
    out
}

/// Returns the value of `rw`.
pub(super) fn rw(access: &Access) -> String {
    let kinds: Vec<Kind> = access.kinds().collect();
    let word = match kinds.as_slice() {
        [only] => only.word(),
        [Kind::Write, Kind::Trim] => "trimwrite",
        _ => "rw",
    };
    let is_sequential = access.pattern() == Some(Pattern::Sequential);
    if is_sequential { word.to_owned() } else { format!("rand{word}") }
}

/// Returns the value of `ioengine`, or fathom's name of the engine if fio has no such engine.
pub(super) fn engine(name: &str) -> &str {
    match name {
        "rw" => "sync",
        "sync" => "psync",
        "vsync" => "pvsync2",
        "preadv" => "vsync",
        "fallocate" => "falloc",
        other => other,
    }
}

/// Formats a size as users of fio type it: `4k`.
fn size_text(bytes: u64) -> String {
    show_block(bytes).to_ascii_lowercase()
}

/// Returns the option that sets the block sizes; `None` if no single option can express them.
fn size_options(access: &Access) -> Option<NamedOption> {
    let [line] = access.lines.as_slice() else { return None };
    if let Some(bytes) = access.block_bytes() {
        return Some(("bs", size_text(bytes.into())));
    }
    let PerKind { read, write, trim } = &line.sizes;
    let all = [read, write, trim];
    let same = line.drawn_sizes().all(|sizes| Some(sizes) == line.drawn_sizes().next());
    if same {
        return line.drawn_sizes().next().map(block_size_option);
    }
    let fixed: Option<Vec<String>> = all
        .iter()
        .map(|s| if let Sizes::Fixed(b) = s { Some(size_text((*b).into())) } else { None })
        .collect();
    fixed.map(|sizes| ("bs", sizes.join(",")))
}

fn block_size_option(sizes: &Sizes) -> NamedOption {
    match sizes {
        Sizes::Fixed(bytes) => ("bs", size_text((*bytes).into())),
        Sizes::Range(least, most) => {
            ("bsrange", format!("{}-{}", size_text((*least).into()), size_text((*most).into())))
        }
        Sizes::Split(split) => {
            let all: u64 = split.iter().map(|(_, weight)| u64::from(*weight)).sum();
            let share = |weight: u32| (f64::from(weight) * 100.0 / all.max(1) as f64).round();
            let parts = split
                .iter()
                .map(|(bytes, weight)| format!("{}/{}", size_text((*bytes).into()), share(*weight)));
            ("bssplit", parts.collect::<Vec<_>>().join(":"))
        }
    }
}

fn cache_options(cache: Cache) -> Vec<NamedOption> {
    let mut out = vec![("direct", u8::from(cache.is_direct()).to_string())];
    let sync = match (cache.is_sync(), cache.is_full_sync()) {
        (_, true) => Some("sync"),
        (true, false) => Some("dsync"),
        (false, false) => None,
    };
    out.extend(sync.map(|word| ("sync", word.to_owned())));
    out
}

/// Returns the options for the mix of directions and the order of offsets, as far as fio has such options.
fn order_options(access: &Access) -> Vec<NamedOption> {
    let [line] = access.lines.as_slice() else { return Vec::new() };
    let mut out = Vec::new();
    if line.does(Kind::Read) && line.does(Kind::Write) {
        out.push(("rwmixread", line.mix.read_percent.to_string()));
    }
    out.extend(distribution_option(line));
    if let Some(zones) = access.strided {
        out.push(("zonemode", "strided".into()));
        out.push(("zonesize", size_text(zones.bytes)));
        out.push(("zonerange", size_text(zones.range_bytes)));
        out.push(("zoneskip", size_text(zones.skip_bytes)));
    }
    out
}

fn distribution_option(line: &Line) -> Option<NamedOption> {
    match &line.order {
        // By default, fio accesses each block once.
        Order::Sequential(_) | Order::Once => None,
        Order::Random => Some(("norandommap", "1".into())),
        Order::Mixed(percent) => Some(("percentage_random", percent.to_string())),
        Order::MixedEach(each) => {
            Some(("percentage_random", format!("{},{},{}", each.read, each.write, each.trim)))
        }
        Order::Zipf(theta) => Some(("random_distribution", format!("zipf:{theta}"))),
        Order::Pareto(share) => Some(("random_distribution", format!("pareto:{share}"))),
        Order::Normal(deviation) => Some(("random_distribution", format!("normal:{deviation}"))),
        Order::Zones(zones) => {
            let absolute = zones.iter().any(|z| matches!(z.size, ZoneSize::Bytes(_) | ZoneSize::UpTo(_)));
            let parts = zones.iter().map(|z| match z.size {
                ZoneSize::Percent(percent) => format!("{}/{percent}", z.access_percent),
                ZoneSize::Bytes(bytes) | ZoneSize::UpTo(bytes) => {
                    format!("{}/{}", z.access_percent, size_text(bytes))
                }
            });
            let word = if absolute { "zoned_abs" } else { "zoned" };
            Some(("random_distribution", format!("{word}:{}", parts.collect::<Vec<_>>().join(":"))))
        }
    }
}

/// Returns the options of the target and its region.
fn target_options(member: &Member) -> Vec<NamedOption> {
    let targets = &member.observed.targets;
    let names = |made: bool| -> Option<String> {
        let names = targets.iter().filter(|t| t.is_made == made).map(|t| t.path.replace(':', "\\:"));
        let names = names.collect::<Vec<_>>().join(":");
        (!names.is_empty()).then_some(names)
    };
    let access = &member.stream.access;
    let mut out: Vec<NamedOption> = Vec::new();
    out.extend(names(false).map(|names| ("filename", names)));
    out.extend(names(true).map(|names| ("directory", names)));
    let region_bytes =
        targets.iter().map(|t| t.bytes.saturating_sub(access.offset_bytes).min(access.span_bytes));
    let bytes = region_bytes.fold(0, u64::saturating_add);
    out.extend((bytes > 0).then(|| ("size", size_text(bytes))));
    out.extend((access.offset_bytes > 0).then(|| ("offset", size_text(access.offset_bytes))));
    out
}

/// Returns the options that limit the rate.
fn rate_options(member: &Member) -> Vec<NamedOption> {
    let mut out: Vec<NamedOption> = Vec::new();
    match member.stream.pace {
        Pace::Closed => {}
        Pace::Limited { iops, bytes_per_s } => {
            out.extend((iops > 0.0).then(|| ("rate_iops", format!("{iops:.0}"))));
            out.extend((bytes_per_s > 0.0).then(|| ("rate", format!("{bytes_per_s:.0}"))));
        }
        Pace::Each { iops, bytes_per_s } => {
            let limits = [("rate_iops", iops), ("rate", bytes_per_s)];
            let limited = limits.into_iter().filter(|(_, each)| each.named().next().is_some());
            out.extend(limited.map(|(option, each)| {
                (option, format!("{:.0},{:.0},{:.0}", each.read, each.write, each.trim))
            }));
        }
        Pace::Open { iops, arrivals } => {
            out.push(("rate_iops", format!("{iops:.0}")));
            // fio has no option for arrivals in bursts.
            let word = match arrivals {
                Arrivals::Poisson => Some("poisson"),
                Arrivals::Constant => Some("linear"),
                Arrivals::Batch { .. } | Arrivals::OnOff { .. } => None,
            };
            out.extend(word.map(|word| ("rate_process", word.into())));
        }
    }
    if let Some(flow) = member.stream.flow {
        out.push(("flow", flow.weight.to_string()));
        out.push(("flow_id", flow.group.to_string()));
        out.extend((flow.pause_ns > 0).then(|| ("flow_sleep", (flow.pause_ns / 1000).to_string())));
    }
    out.extend(think_options(member.stream));
    out
}

/// Returns the options of pauses between bursts. A burst ends after a number of operations or after
/// a time.
fn think_options(stream: &Stream) -> Vec<NamedOption> {
    let (pause_ns, operations, time_ns) = match (stream.bursts, stream.access.lines.as_slice()) {
        (Some(bursts), _) => (bursts.pause_ns, bursts.operations, Some(bursts.time_ns)),
        (None, [Line { delay_ns, burst, by_period: false, .. }]) => (*delay_ns, Some(*burst), None),
        _ => return Vec::new(),
    };
    if pause_ns == 0 {
        return Vec::new();
    }
    let mut out = vec![("thinktime", format!("{}us", pause_ns / 1000))];
    out.extend(operations.map(|n| ("thinktime_blocks", n.to_string())));
    out.extend(time_ns.map(|ns| ("thinktime_iotime", time_text(ns))));
    out
}

/// Returns the options for the times and limits of the job.
fn runtime_options(member: &Member) -> Vec<NamedOption> {
    let limit = member.stream.limit;
    let mut out = vec![("runtime", time_text(limit.time_ns.unwrap_or(member.phase.time_ns)))];
    out.extend((member.phase.warmup_ns > 0).then(|| ("ramp_time", time_text(member.phase.warmup_ns))));
    out.extend((member.stream.delay_ns > 0).then(|| ("startdelay", time_text(member.stream.delay_ns))));
    match (limit.operations, limit.bytes) {
        (None, None) => out.push(("time_based", "1".into())),
        (operations, bytes) => {
            out.extend(operations.map(|n| ("number_ios", n.to_string())));
            out.extend(bytes.map(|n| ("io_size", size_text(n))));
        }
    }
    out
}

/// Formats a time: whole seconds without a unit, as users of fio type them, otherwise whole milliseconds, otherwise
/// microseconds, rounded down.
fn time_text(ns: u64) -> String {
    match ns {
        ns if ns.is_multiple_of(1_000_000_000) => (ns / 1_000_000_000).to_string(),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns => format!("{}us", ns / 1000),
    }
}

#[test]
fn engines_have_the_names_of_fio() {
    let names = ["rw", "sync", "vsync", "preadv", "fallocate", "io_uring", "stdio"].map(engine);
    assert_eq!(names, ["sync", "psync", "pvsync2", "vsync", "falloc", "io_uring", "stdio"]);
}

#[test]
fn pauses_between_bursts_of_a_time_or_of_operations_are_thinktimes() {
    use model::job::Bursts;
    let access = Access::plain(Pattern::Random, 4096, 100);
    let mut stream = Stream::plain(access, 1, 1, "sync");
    let options = |stream: &Stream| -> String {
        let all = think_options(stream);
        all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(options(&stream), "");
    (stream.access.lines[0].delay_ns, stream.access.lines[0].burst) = (2_000_000, 8);
    assert_eq!(options(&stream), "thinktime=2000us thinktime_blocks=8");
    stream.access.lines[0].delay_ns = 0;
    let bursts = Bursts { time_ns: 9_000_000_000, pause_ns: 1_000_000, operations: None };
    stream.bursts = Some(bursts);
    assert_eq!(options(&stream), "thinktime=1000us thinktime_iotime=9");
    stream.bursts = Some(Bursts { time_ns: 1_500_000_000, operations: Some(4), ..bursts });
    assert_eq!(options(&stream), "thinktime=1000us thinktime_blocks=4 thinktime_iotime=1500ms");
}
