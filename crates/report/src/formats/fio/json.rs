//! fio's JSON: `json`, and `json+` with all latency bins. Keys, types and layout equal fio's, because scripts also read it with text tools.

use super::job::{
    CALL_LEVELS, DEPTH_LEVELS, Depths, Direction, Group, Job, LatencyShares, cpu_percent, ctime, disk_totals,
    elapsed_ns, end_time, idleness, jobs, util_percent,
};
use super::{VERSION, options};
use model::figures::ObservedDisk;
use model::finding::Outcome;
use model::histogram::Distribution;
use model::job::{Quantity, Steadied, Steady};
use model::report::{Report, Verdict};
use model::spec::{FioLayout, Options};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes fio's JSON; with `plus`, adds all latency bins.
pub(super) fn write(report: &Report, plus: bool, to: &mut dyn Write) -> io::Result<()> {
    let jobs = jobs(report);
    let mut all = json!({ "fio version": VERSION });
    if let Some(at) = end_time(report, &jobs) {
        all["timestamp"] = at.timestamp().as_second().into();
        all["timestamp_ms"] = at.timestamp().as_millisecond().into();
        all["time"] = ctime(&at).into();
    }
    let defaults = options::default_options(&jobs);
    if !defaults.is_empty() {
        all["global options"] = options_json(defaults);
    }
    all["jobs"] = jobs.iter().map(|job| job_json(job, &jobs, plus)).collect();
    let disks = disk_totals(&jobs);
    if !disks.is_empty() {
        all["disk_util"] = disks.iter().map(disk_json).collect();
    }
    if let Some((system, each)) = idleness(&jobs) {
        all["cpu_idleness"] = json!({ "system": system });
        for (cpu, percent) in each {
            all["cpu_idleness"][format!("cpu-{cpu}")] = percent.into();
        }
    }
    all["fathom"] = verdict_json(report);
    writeln!(to, "{}", fio_layout(&all, ""))
}

fn job_json(job: &Job, all: &[Job], plus: bool) -> Value {
    let mut out = json!({
        "jobname": job.name(),
        "groupid": job.group,
        "error": job.error(),
        // A finished job has no time left.
        "eta": 0,
        "elapsed": elapsed_ns(all).div_ceil(1_000_000_000),
        "job options": options_json(options::job_options(job)),
    });
    let layout = job.layout();
    for (word, direction) in job.directions() {
        let group = Group::from_jobs(all, job.group, word).unwrap_or_default();
        out[word] = direction_json(&direction, &group, &layout, plus);
    }
    if !job.mixed {
        let sync = job.sync();
        let has_percentiles = layout.clat_percentiles || layout.lat_percentiles;
        let lat = latency_json(&sync, has_percentiles.then_some(&layout), plus);
        out["sync"] = json!({ "total_ios": job.fsync_count(), "lat_ns": lat });
    }
    add_costs(job, &mut out);
    add_shares(job, &mut out);
    let errors = job.errors();
    if !errors.is_empty() {
        out["total_err"] = errors.values().fold(0, |sum: u64, n| sum.saturating_add(*n)).into();
        out["first_error"] = job.error().into();
    }
    // fio leaves out the following keys for a job that only creates its files.
    if job.first().stream.limit.operations != Some(0) {
        out["latency_depth"] = job.depth().into();
        // As in fio, the target is in ns and the window in us.
        let [target, window] = job.latency_target().map_or([0, 0], |t| [t.ns, t.window_ns / 1000]);
        out["latency_target"] = target.into();
        out["latency_percentile"] = job.latency_target().map_or(100.0, |t| t.percent).into();
        out["latency_window"] = window.into();
    }
    if !layout.description.is_empty() {
        out["desc"] = layout.description.clone().into();
    }
    if let Some((rule, observed)) = job.steadied() {
        out["steadystate"] = steadied_json(rule, observed);
    }
    out["fathom"] = fathom_json(job);
    out
}

/// Returns whether the job became steady, and the values that decided it.
fn steadied_json(rule: &Steady, observed: &Steadied) -> Value {
    let spread = observed.spread(rule.quantity);
    let sign = if rule.percent { "%" } else { "" };
    // As in fio, a window with too few values is filled with zeros.
    let window = rule.count();
    let integers = |values: &[f64]| -> Vec<u64> {
        let zeros = std::iter::repeat_n(0, window.saturating_sub(values.len()));
        values.iter().map(|v| *v as u64).chain(zeros).collect()
    };
    let mean = |values: &[f64]| (values.iter().sum::<f64>() / values.len().max(window) as f64) as u64;
    let mut data = json!({
        "bw_mean": mean(&observed.bytes_per_s),
        "iops_mean": mean(&observed.iops),
        "iops": integers(&observed.iops),
        "bw": integers(&observed.bytes_per_s),
    });
    if rule.quantity == Quantity::Latency {
        data["lat_mean"] = mean(&observed.latency_ns).into();
        data["lat"] = integers(&observed.latency_ns).into();
    }
    json!({
        "ss": format!("{}:{:.6}{sign}", rule.name(), rule.limit),
        "duration": rule.window_ns / 1_000_000_000,
        "attained": u8::from(observed.attained),
        "criterion": format!("{:.6}{sign}", observed.criterion(rule).unwrap_or(0.0)),
        "max_deviation": if rule.slope { 0.0 } else { spread.deviation },
        "slope": if rule.slope { spread.slope } else { 0.0 },
        "data": data,
    })
}

fn options_json(options: Options) -> Value {
    Value::Object(options.into_iter().map(|(name, value)| (name, value.into())).collect())
}

/// Returns fathom's keys of a job: the worst verdict of its results, their true names, and whether a result was relabelled or has no
/// number.
fn fathom_json(job: &Job) -> Value {
    let results = || job.members.iter().map(|member| member.result);
    let verdict = results().map(|result| result.verdict).max().map(Verdict::word);
    let mut names: Vec<&str> = results().map(|result| result.true_name.as_str()).collect();
    names.dedup();
    json!({
        "verdict": verdict,
        "true_name": names.join("; "),
        "renamed": results().any(|result| result.renamed),
        "void": results().any(|result| result.void),
    })
}

fn direction_json(direction: &Direction, group: &Group, layout: &FioLayout, plus: bool) -> Value {
    let clat = layout.clat_percentiles.then_some(layout);
    let lat = layout.lat_percentiles.then_some(layout);
    let (bw, iops) = (&direction.bw, &direction.iops_samples);
    let mut out = json!({
        "io_bytes": direction.bytes,
        "io_kbytes": direction.bytes >> 10,
        "bw_bytes": direction.bytes_per_s as u64,
        "bw": direction.bytes_per_s as u64 >> 10,
        "iops": direction.iops,
        "runtime": direction.runtime_ms,
        "total_ios": direction.ops,
        "short_ios": direction.short,
        // fathom drops no operations.
        "drop_ios": 0,
        // The completion latency includes the time in the submit call.
        "slat_ns": latency_json(&Distribution::default(), None, plus),
        "clat_ns": latency_json(&direction.clat, clat, plus),
        "lat_ns": latency_json(&direction.lat, lat, plus),
    });
    if !direction.priorities.is_empty() {
        let kind = if layout.lat_percentiles { "lat_ns" } else { "clat_ns" };
        let one = |([class, level], latencies): &([u32; 2], Distribution)| {
            let latencies = latency_json(latencies, lat.or(clat), plus);
            json!({ "prioclass": class, "prio": level, kind: latencies })
        };
        out["prios"] = direction.priorities.iter().map(one).collect();
    }
    let rates = [
        ("bw_min", Value::from(bw.min)),
        ("bw_max", bw.max.into()),
        ("bw_agg", bw.percent_of(group.bytes_per_s).into()),
        ("bw_mean", bw.mean.into()),
        ("bw_dev", bw.deviation.into()),
        ("bw_samples", bw.count.into()),
        ("iops_min", iops.min.into()),
        ("iops_max", iops.max.into()),
        ("iops_mean", iops.mean.into()),
        ("iops_stddev", iops.deviation.into()),
        ("iops_samples", iops.count.into()),
    ];
    for (key, value) in rates {
        out[key] = value;
    }
    out
}

/// Returns latencies. If operations completed and `percentiles` is given, includes percentiles, and
/// with `plus` also all bins.
fn latency_json(latency: &Distribution, percentiles: Option<&FioLayout>, plus: bool) -> Value {
    let mut out = json!({
        "min": latency.min_ns,
        "max": latency.max_ns,
        "mean": latency.mean_ns,
        "stddev": latency.deviation_ns(),
        "N": latency.count,
    });
    if let Some(layout) = percentiles.filter(|_| latency.count > 0) {
        let at = |rank: &f64| Some((format!("{rank:.6}"), latency.quantile_ns(rank / 100.0)?.into()));
        out["percentile"] = Value::Object(layout.ranks.iter().filter_map(at).collect());
        if plus {
            let bins = latency.bins.iter().map(|(ns, count)| (ns.to_string(), (*count).into()));
            out["bins"] = Value::Object(bins.collect());
        }
    }
    out
}

/// Adds the costs of a job. Unknown costs are left out.
fn add_costs(job: &Job, out: &mut Value) {
    let workers = job.costs();
    if workers.wall_ns == 0 {
        return;
    }
    let [user, system] = cpu_percent(&workers);
    out["job_runtime"] = (workers.wall_ns / 1_000_000).into();
    out["usr_cpu"] = user.into();
    out["sys_cpu"] = system.into();
    out["ctx"] = workers.switches.into();
    if let Some([minor, major]) = workers.faults {
        out["majf"] = major.into();
        out["minf"] = minor.into();
    }
}

/// Adds the shares of operations by queue depth and of calls by number of operations,
/// as far as they are known, and the shares of operations by latency.
fn add_shares(job: &Job, out: &mut Value) {
    let Depths { level, submit, complete } = Depths::from_job(job);
    for (key, names, shares) in [
        ("iodepth_level", DEPTH_LEVELS, level),
        ("iodepth_submit", CALL_LEVELS, submit),
        ("iodepth_complete", CALL_LEVELS, complete),
    ] {
        let Some(shares) = shares else { continue };
        out[key] = names.into_iter().zip(shares).map(|(name, share)| (name.to_owned(), share)).collect();
    }
    let LatencyShares { ns, us, ms } = job.latency_shares();
    for (key, shares) in [("latency_ns", &ns[..]), ("latency_us", &us), ("latency_ms", &ms)] {
        out[key] = LatencyShares::named(shares).collect();
    }
}

fn disk_json(disk: &ObservedDisk) -> Value {
    let stat = &disk.stat;
    json!({
        "name": disk.name,
        "read_ios": stat.read.ios,
        "write_ios": stat.write.ios,
        "read_merges": stat.read.merges,
        "write_merges": stat.write.merges,
        "read_ticks": stat.read.ms,
        "write_ticks": stat.write.ms,
        "in_queue": stat.queue_ms,
        "util": util_percent(disk),
    })
}

/// Returns fathom's verdict: what the first lines of a report state, and each check that found
/// something or was not possible.
fn verdict_json(report: &Report) -> Value {
    let findings: Vec<Value> = report
        .checks
        .iter()
        .filter(|f| f.outcome != Outcome::Holds)
        .map(|f| {
            json!({
                "id": f.id,
                "name": f.name,
                "outcome": f.outcome,
                "severity": f.severity,
                "about": f.about,
                "sentence": f.sentence,
                "cure": f.fix,
                "accepted": f.accepted,
            })
        })
        .collect();
    json!({
        "version": report.fathom.version,
        "verdict": report.verdict,
        "verdict_reason": report.verdict_reason,
        "counts": report.counts,
        "answer": report.answer,
        "gates": report.gates,
        "headline": report.headline,
        "limiter": report.limiter,
        "findings": findings,
        "notes": report.notes,
        "ending": report.ending,
        "session": report.session,
    })
}

/// Returns JSON in fio's layout: a line for each value, a space before each colon, and six decimals.
fn fio_layout(value: &Value, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let block = |open: char, lines: Vec<String>, close: char| match lines.as_slice() {
        [] => format!("{open}{close}"),
        lines => format!("{open}\n{}\n{indent}{close}", lines.join(",\n")),
    };
    match value {
        Value::Array(all) => {
            block('[', all.iter().map(|one| format!("{inner}{}", fio_layout(one, &inner))).collect(), ']')
        }
        Value::Object(all) => {
            let line = |(name, one): (&String, &Value)| {
                format!("{inner}{} : {}", Value::from(name.as_str()), fio_layout(one, &inner))
            };
            block('{', all.iter().map(line).collect(), '}')
        }
        Value::Number(number) if number.is_f64() => format!("{:.6}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}
