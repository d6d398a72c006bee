//! A capture: the profile of the load.

use crate::view::numbers::{percentile, short_bytes};
use crate::view::table::{Columns, Table, or_dash};
use model::captured::{
    Arrivals, Captured, Depth, Flushes, Footprint, Op, Operation, Origin, Profile, RequestFilter, RowUnit,
    Sequence, Sizes, Task,
};
use model::units::{show_bytes, show_count, show_counted, show_ns, show_rate, show_share};

/// Maximum number of tasks with a line; the JSON has more tasks.
const MAX_TASKS: usize = 10;

/// Returns each aspect of the load as a name and a sentence.
pub(crate) fn describe_aspects(captured: &Captured) -> Vec<(&'static str, String)> {
    let profile = &captured.profile;
    let mut out: Vec<(&str, String)> = Vec::new();
    let sized = profile.operations.iter().filter(|one| one.op != Op::Flush);
    out.extend(sized.filter_map(|one| {
        Some(("sizes", format!("{}: {}", one.op.word(), describe_sizes(one.sizes.as_ref()?))))
    }));
    let ordered = profile.operations.iter();
    out.extend(ordered.filter_map(|one| {
        Some(("order", format!("{}: {}", one.op.word(), describe_sequence(one.sequence.as_ref()?))))
    }));
    out.push(("footprint", describe_footprint(&profile.footprint)));
    let unknown = || "not known: the file has no completions".to_owned();
    out.push(("depth", profile.depth.as_ref().map_or_else(unknown, describe_depth)));
    out.extend(describe_queueing(&profile.operations).map(|text| ("queue", text)));
    out.extend(profile.arrivals.iter().map(|one| ("arrivals", describe_arrivals(one))));
    out.extend(describe_flushes(&profile.flushes).map(|text| ("flushes", text)));
    out.extend(capture_remarks(profile).into_iter().map(|text| ("note", text)));
    let of_files = captured.ending.as_ref().and_then(|ending| ending.of_files);
    out.extend(of_files.map(|files| ("note", files.describe())));
    let unseen = captured.ending.as_ref().map(|ending| ending.without_issue).filter(|n| *n > 0);
    out.extend(unseen.map(|n| {
        let text = "without a recorded issue, for example of requests in flight at the start; not shown";
        ("note", format!("{} {text}", show_counted(n, "completion")))
    }));
    out
}

/// Describes the captured device, the duration and the start of the capture, and whether its rows
/// are requests, bios or logged operations.
pub(crate) fn describe_origin(captured: &Captured) -> String {
    let Origin { device, partition, unit, imported, .. } = &captured.origin;
    let mut facts = match (partition, device, imported) {
        (Some(part), Some(disk), _) => vec![format!("{} of {}", part.name, disk.name)],
        (_, Some(device), _) => vec![device.name.clone()],
        (_, None, Some(tool)) => vec![format!("{} ({tool})", captured.origin.named_path)],
        _ => vec![captured.origin.named_path.clone()],
    };
    if let Some(device) = device {
        facts.extend(device.model.clone());
        facts.extend(device.serial.as_ref().map(|serial| format!("serial {serial}")));
        facts.push(show_bytes(device.bytes));
    }
    facts.push(format!("for {}", show_ns(captured.profile.duration_ns as f64)));
    if !captured.origin.started.is_empty() {
        facts.push(format!("from {}", captured.origin.started));
    }
    facts.push(match unit {
        RowUnit::Requests => "requests as the driver got them".into(),
        RowUnit::Bios => "bios as they were queued".into(),
        RowUnit::Operations => "operations as they were logged".into(),
    });
    facts.extend(captured.origin.pid.map(|pid| format!("only process {pid}")));
    facts.join(", ")
}

/// Describes the filter on the requests.
pub(crate) fn describe_filter(by: &RequestFilter) -> String {
    let mut limits = Vec::new();
    limits.extend(by.from_ns.map(|ns| format!("from {}", show_ns(ns as f64))));
    limits.extend(by.to_ns.map(|ns| format!("to {}", show_ns(ns as f64))));
    limits.extend(by.task.as_ref().map(|task| format!("of task {task}")));
    format!("Shown: only requests {}", limits.join(", "))
}

/// Returns the table of operations.
pub(crate) fn operation_table(all: &[Operation]) -> Table {
    let at = |operation: &Operation, rank: &str| {
        or_dash(operation.latency_ns.as_ref(), |all| percentile(&all.percentiles, rank))
    };
    Columns::new(all)
        .borrowed_text("", |operation| operation.op.word())
        .value("requests", |operation| show_count(operation.requests as f64))
        .value("share", |operation| show_share(operation.share))
        .value("IOPS", |operation| show_rate(operation.iops))
        .value("MB/s", |operation| operation.sizes.as_ref().map(|_| show_rate(operation.mb_per_s)))
        .value("size", |operation| operation.sizes.as_ref().map(|sizes| short_bytes(sizes.mean as u64)))
        .value("p50", |operation| at(operation, "50"))
        .value("p99", |operation| at(operation, "99"))
        .value("p99.9", |operation| at(operation, "99.9"))
        .value("max", |operation| or_dash(operation.latency_ns.as_ref(), |all| show_ns(all.max as f64)))
        .table(&["size", "share", "p99.9", "max"])
}

fn describe_sizes(sizes: &Sizes) -> String {
    let frequent: Vec<String> = sizes
        .frequent
        .iter()
        .map(|size| format!("{} {}", short_bytes(size.bytes), show_share(size.share)))
        .collect();
    let quantiles: Vec<String> =
        sizes.percentiles.iter().map(|(name, bytes)| format!("p{name} {}", short_bytes(*bytes))).collect();
    match sizes.frequent.as_slice() {
        [only] if only.share >= 1.0 => format!("all {}", short_bytes(only.bytes)),
        _ => format!(
            "{}; {}; {} to {}",
            frequent.join(", "),
            quantiles.join(", "),
            short_bytes(sizes.min),
            short_bytes(sizes.max)
        ),
    }
}

fn describe_sequence(sequence: &Sequence) -> String {
    let mut text = format!(
        "{} sequential ({} of the bytes)",
        show_share(sequence.share),
        show_share(sequence.byte_share)
    );
    if sequence.runs > 0 {
        let [mean, median, most] = sequence.run_requests.map(number);
        text += &format!(
            "; {} of {mean} requests on average, median {median}, longest {most} ({})",
            show_counted(sequence.runs, "run"),
            show_bytes(sequence.run_bytes[2] as u64)
        );
    }
    if sequence.streams[1] > 0.0 {
        text += &format!("; concurrent streams {:.1}, at most {}", sequence.streams[0], sequence.streams[1]);
    }
    text
}

/// Formats a figure: a whole number without decimals, any other number with decimals.
fn number(figure: f64) -> String {
    if figure.fract() == 0.0 { show_count(figure) } else { show_rate(figure) }
}

fn describe_footprint(footprint: &Footprint) -> String {
    let mut text = format!(
        "{}{} in distinct blocks of {} ({} read, {} written) within {}; each block touched {} times on average",
        if footprint.is_lower_bound { "at least " } else { "" },
        show_bytes(footprint.bytes),
        short_bytes(footprint.block_bytes),
        show_bytes(footprint.read_bytes),
        show_bytes(footprint.write_bytes),
        show_bytes(footprint.span_bytes),
        show_rate(footprint.reuse)
    );
    if let Some(half) = footprint.half_of_requests_in {
        text += &format!("; half of the requests in {} of the device", show_share(half));
    }
    text
}

fn describe_depth(depth: &Depth) -> String {
    let shares: Vec<String> = depth
        .shares
        .iter()
        .filter(|share| share.share >= 0.001)
        .map(|share| match (share.from, share.to) {
            (0, _) => format!("idle {}", show_share(share.share)),
            (from, to) if from == to => format!("{from} {}", show_share(share.share)),
            (from, to) => format!("{from}-{to} {}", show_share(share.share)),
        })
        .collect();
    format!(
        "mean {:.2}, while busy {:.2}, at most {}; share of the time: {}",
        depth.mean,
        depth.busy_mean,
        depth.max,
        shares.join(", ")
    )
}

fn describe_queueing(all: &[Operation]) -> Option<String> {
    let describe = |operation: &Operation| {
        let latency = operation.queued_ns.as_ref()?;
        let [p50, p99] = ["50", "99"].map(|name| percentile(&latency.percentiles, name));
        Some(format!(
            "{}: {} waited in the scheduler, p50 {p50}, p99 {p99}",
            operation.op.word(),
            show_count(latency.count as f64)
        ))
    };
    let text: Vec<String> = all.iter().filter_map(describe).collect();
    (!text.is_empty()).then(|| text.join("; "))
}

fn describe_arrivals(arrivals: &Arrivals) -> String {
    let dispersion = |figure: Option<f64>| or_dash(figure, show_rate);
    format!(
        "{}: every {} on average, p50 {}, p99 {}; dispersion (1 = random) {} in 10 ms, {} in 100 ms",
        arrivals.requests_of,
        show_ns(arrivals.gap_ns.mean),
        percentile(&arrivals.gap_ns.percentiles, "50"),
        percentile(&arrivals.gap_ns.percentiles, "99"),
        dispersion(arrivals.idc_10ms),
        dispersion(arrivals.idc_100ms)
    )
}

fn describe_flushes(flushes: &Flushes) -> Option<String> {
    if flushes.at_device + flushes.requested + flushes.with_data == 0 {
        return None;
    }
    let count = |n: u64| show_count(n as f64);
    let mut text = format!("{} at the device", count(flushes.at_device));
    if flushes.requested + flushes.with_data > 0 {
        text += &format!(
            "; requests: {} alone, {} with a write",
            count(flushes.requested),
            count(flushes.with_data)
        );
    }
    if let Some(latency) = &flushes.requested_ns {
        text += &format!(
            "; p50 {}, p99 {}",
            percentile(&latency.percentiles, "50"),
            percentile(&latency.percentiles, "99")
        );
    }
    let describe_task = |task: &model::captured::FlushingTask| {
        format!(
            "{}:{} {} (one per {} writes)",
            task.name,
            task.tid,
            count(task.requested),
            show_rate(task.writes_per_flush)
        )
    };
    let tasks: Vec<String> = flushes.tasks.iter().map(describe_task).collect();
    if !tasks.is_empty() {
        text += &format!("; by {}", tasks.join(", "));
    }
    Some(text)
}

/// Returns a remark for each group of requests that distorts figures or has no known owner.
fn capture_remarks(profile: &Profile) -> Vec<String> {
    let share = |part: u64| {
        let share = show_share(part as f64 / profile.requests as f64);
        format!("{} ({share})", show_counted(part, "request"))
    };
    let all = [
        (profile.of_kernel_workers, "by kernel workers, for example write-back; the cause is unknown"),
        (profile.failed, "failed"),
        (profile.without_completion, "without a completion in the file"),
        (
            profile.late,
            "completed so late that the file has them after later requests; order, depth and arrivals exclude them",
        ),
    ];
    all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", share(n))).collect()
}

/// Returns the table of tasks.
pub(crate) fn task_table(all: &[Task]) -> Table {
    let mb = |bytes: u64| show_rate(bytes as f64 / 1e6);
    Columns::new(all.iter().take(MAX_TASKS))
        .text("task", |task| format!("{}:{}", task.name, task.tid))
        .value("requests", |task| show_count(task.requests as f64))
        .value("share", |task| show_share(task.share))
        .value("reads", |task| show_count(task.reads as f64))
        .value("MB read", |task| mb(task.read_bytes))
        .value("writes", |task| show_count(task.writes as f64))
        .value("MB written", |task| mb(task.write_bytes))
        .value("overlap", |task| or_dash(task.overlapping, show_share))
        .value("think p50", |task| {
            or_dash(task.think_ns.as_ref(), |think| percentile(&think.percentiles, "50"))
        })
        .table(&["overlap", "MB read", "MB written", "think p50"])
        .stacked()
}

/// Returns how many tasks the table leaves out, and how many requests they made; empty if it has
/// all tasks.
pub(crate) fn describe_other_tasks(profile: &Profile) -> String {
    let listed = profile.tasks.get(MAX_TASKS..).unwrap_or_default();
    let tasks = profile.other_tasks.tasks + listed.len() as u64;
    let requests = profile.other_tasks.requests + listed.iter().map(|task| task.requests).sum::<u64>();
    match tasks {
        0 => String::new(),
        n => format!("and {} with {}", show_counted(n, "more task"), show_counted(requests, "request")),
    }
}

#[cfg(test)]
use model::captured::Latency;

#[cfg(test)]
fn latency(ns: u64) -> Latency {
    let percentiles = [("50", Some(ns)), ("99", Some(ns * 3)), ("99.9", None)];
    let percentiles = percentiles.map(|(name, ns)| (name.to_owned(), ns)).into();
    Latency { count: 1000, min: ns / 2, mean: ns as f64, percentiles, max: ns * 9 }
}

#[cfg(test)]
fn read() -> Operation {
    let share = |bytes, share| model::captured::SizeShare { bytes, share };
    Operation {
        op: Op::Read,
        requests: 138_181,
        share: 0.97,
        bytes: 1 << 30,
        iops: 34_543.2,
        mb_per_s: 142.1,
        fua: 0,
        read_ahead: 0,
        metadata: 0,
        synchronous: 0,
        sizes: Some(Sizes {
            mean: 4403.0,
            min: 512,
            percentiles: [("50".to_owned(), 4096)].into(),
            max: 1 << 20,
            frequent: vec![share(4096, 0.9), share(65_536, 0.1)],
        }),
        sequence: Some(Sequence {
            share: 0.1,
            runs: 3,
            run_requests: [3.5, 3.0, 9.0],
            streams: [0.5, 2.0],
            ..Sequence::default()
        }),
        latency_ns: Some(latency(85_300)),
        queued_ns: Some(latency(900)),
    }
}

#[cfg(test)]
pub(crate) fn captured() -> Captured {
    let task = Task {
        name: "kworker/u8:12-ev".into(),
        tid: 1_234_567,
        pid: None,
        kernel: true,
        requests: 138_181,
        share: 0.97,
        reads: 138_181,
        read_bytes: 1 << 30,
        writes: 0,
        write_bytes: 0,
        overlapping: None,
        think_ns: Some(latency(38_000)),
    };
    let profile = Profile {
        requests: 142_000,
        duration_ns: 4_000_000_000,
        operations: vec![read()],
        arrivals: vec![Arrivals {
            requests_of: "all".into(),
            gap_ns: latency(12_000),
            idc_10ms: Some(2018.3),
            idc_100ms: None,
        }],
        flushes: Flushes {
            at_device: 12,
            requested: 9,
            requested_ns: Some(latency(1_200_000)),
            ..Flushes::default()
        },
        tasks: vec![task],
        of_kernel_workers: 138_181,
        ..Profile::default()
    };
    Captured {
        format: model::captured::FORMAT,
        file: "x.capture".into(),
        origin: Origin {
            named_path: "sda.blktrace.0".into(),
            imported: Some("blktrace".into()),
            ..Origin::default()
        },
        ending: Some(model::captured::Ending { without_issue: 3, ..Default::default() }),
        damage: Some("cut off at byte 4096: its end is missing".into()),
        completeness: model::captured::Completeness {
            word: "unknown".into(),
            sentence: "imported from blktrace: there are no counters of the device to compare it with".into(),
            counters: Vec::new(),
        },
        filter: Some(RequestFilter { task: Some("postgres".into()), ..RequestFilter::default() }),
        profile,
    }
}
