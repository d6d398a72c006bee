//! fio's JSON: `json`, and `json+` with all latency bins. Keys, types and layout equal fio's, because scripts also read it with text tools.

use super::job::{
    CALL_LEVELS, COLUMNS, DEPTH_LEVELS, Depths, Direction, Group, Job, LATENCY_LIMITS, LatencyShares,
    cpu_percent, ctime, disk_totals, elapsed_ns, end_time, idleness, jobs, util_percent,
};
use super::{VERSION, options};
use model::figures::ObservedDisk;
use model::finding::Outcome;
use model::histogram::Distribution;
use model::job::{Quantity, Steadied, Steady};
use model::report::{Report, Verdict};
use model::spec::{FioLayout, Options};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Map, Serializer, Value, json};
use std::io::{self, Write};

/// Writes fio's JSON; with `plus`, adds all latency bins.
pub(super) fn write(report: &Report, plus: bool, to: &mut dyn Write) -> io::Result<()> {
    let jobs = jobs(report);
    let mut all = Map::new();
    all.insert("fio version".into(), VERSION.into());
    all.extend(end_time_keys(report, &jobs));
    let defaults = options::default_options(&jobs);
    if !defaults.is_empty() {
        all.insert("global options".into(), options_json(defaults));
    }
    all.insert("jobs".into(), jobs.iter().map(|job| job_json(job, &jobs, plus)).collect());
    let disks: Vec<Value> = disk_totals(&jobs).iter().map(disk_json).collect();
    if !disks.is_empty() {
        all.insert("disk_util".into(), disks.into());
    }
    if let Some((system, each)) = idleness(&jobs) {
        let each = each.into_iter().map(|(cpu, percent)| (format!("cpu-{cpu}"), percent.into()));
        let all_cpus = std::iter::once(("system".to_owned(), system.into()));
        all.insert("cpu_idleness".into(), all_cpus.chain(each).collect::<Map<_, _>>().into());
    }
    all.insert("fathom".into(), verdict_json(report));
    Value::Object(all).serialize(&mut Serializer::with_formatter(&mut *to, FioFormatter::default()))?;
    to.write_all(b"\n")
}

/// Returns the end of the last run as numbers and as text.
fn end_time_keys(report: &Report, jobs: &[Job]) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(at) = end_time(report, jobs) {
        out.insert("timestamp".into(), at.timestamp().as_second().into());
        out.insert("timestamp_ms".into(), at.timestamp().as_millisecond().into());
        out.insert("time".into(), ctime(&at).into());
    }
    out
}

fn job_json(job: &Job, all: &[Job], plus: bool) -> Value {
    let mut out = Map::new();
    out.insert("jobname".into(), job.name().to_owned().into());
    out.insert("groupid".into(), job.group.into());
    out.insert("error".into(), job.error().into());
    // A finished job has no time left.
    out.insert("eta".into(), 0.into());
    out.insert("elapsed".into(), elapsed_ns(all).div_ceil(1_000_000_000).into());
    out.insert("job options".into(), options_json(options::job_options(job)));
    let layout = job.layout();
    for (word, direction) in job.directions() {
        let group = Group::from_jobs(all, job.group, word).unwrap_or_default();
        out.insert(word.into(), direction_json(&direction, &group, &layout, plus));
    }
    if !job.mixed {
        let sync = job.sync();
        let has_percentiles = layout.clat_percentiles || layout.lat_percentiles;
        let lat = latency_json(&sync, has_percentiles.then_some(&layout), plus);
        out.insert("sync".into(), json!({ "total_ios": job.fsync_count(), "lat_ns": lat }));
    }
    out.extend(cost_keys(job));
    out.extend(depth_keys(job));
    out.extend(share_keys(job));
    let errors = job.errors();
    if !errors.is_empty() {
        let total = errors.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        out.insert("total_err".into(), total.into());
        out.insert("first_error".into(), job.error().into());
    }
    // fio leaves out the following keys for a job that only creates its files.
    if job.first().stream.limit.operations != Some(0) {
        out.insert("latency_depth".into(), job.depth().into());
        // As in fio, the target is in ns and the window in us.
        let [target, window] = job.latency_target().map_or([0, 0], |t| [t.ns, t.window_ns / 1000]);
        let percent = job.latency_target().map_or(100.0, |t| t.percent);
        out.insert("latency_target".into(), target.into());
        out.insert("latency_percentile".into(), percent.into());
        out.insert("latency_window".into(), window.into());
    }
    if !layout.description.is_empty() {
        out.insert("desc".into(), layout.description.clone().into());
    }
    if let Some((rule, seen)) = job.steadied() {
        out.insert("steadystate".into(), steadied_json(rule, seen));
    }
    let own = fathom_json(job);
    out.insert("fathom".into(), own);
    out.into()
}

/// Returns whether the job became steady, and the values that decided it.
fn steadied_json(rule: &Steady, seen: &Steadied) -> Value {
    let spread = seen.spread(rule.quantity);
    let sign = if rule.percent { "%" } else { "" };
    // As in fio, a window with too few values is filled with zeros.
    let window = rule.count();
    let integers = |values: &[f64]| -> Vec<u64> {
        let zeros = std::iter::repeat_n(0, window.saturating_sub(values.len()));
        values.iter().map(|v| *v as u64).chain(zeros).collect()
    };
    let mean = |values: &[f64]| (values.iter().sum::<f64>() / values.len().max(window) as f64) as u64;
    let mut data = json!({
        "bw_mean": mean(&seen.bytes_per_s),
        "iops_mean": mean(&seen.iops),
        "iops": integers(&seen.iops),
        "bw": integers(&seen.bytes_per_s),
    });
    if rule.quantity == Quantity::Latency {
        data["lat_mean"] = mean(&seen.latency_ns).into();
        data["lat"] = integers(&seen.latency_ns).into();
    }
    json!({
        "ss": format!("{}:{:.6}{sign}", rule.name(), rule.limit),
        "duration": rule.window_ns / 1_000_000_000,
        "attained": u8::from(seen.attained),
        "criterion": format!("{:.6}{sign}", seen.criterion(rule).unwrap_or(0.0)),
        "max_deviation": if rule.slope { 0.0 } else { spread.deviation },
        "slope": if rule.slope { spread.slope } else { 0.0 },
        "data": data,
    })
}

fn options_json(options: Options) -> Value {
    Value::Object(options.into_iter().map(|(name, value)| (name, value.into())).collect())
}

/// Returns fathom's keys of a job: the worst verdict of its results, with all their names.
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
        // fathom drops no samples.
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
    let rates = json!({
        "bw_min": bw.min,
        "bw_max": bw.max,
        "bw_agg": bw.percent_of(group.bytes_per_s),
        "bw_mean": bw.mean,
        "bw_dev": bw.deviation,
        "bw_samples": bw.count,
        "iops_min": iops.min,
        "iops_max": iops.max,
        "iops_mean": iops.mean,
        "iops_stddev": iops.deviation,
        "iops_samples": iops.count,
    });
    if let (Some(out), Value::Object(rates)) = (out.as_object_mut(), rates) {
        out.extend(rates);
    }
    out
}

/// Returns latencies, with percentiles if `percentiles` is given, and in `json+` with all bins in addition.
fn latency_json(latency: &Distribution, percentiles: Option<&FioLayout>, plus: bool) -> Value {
    let mut out = Map::new();
    out.insert("min".into(), latency.min_ns.into());
    out.insert("max".into(), latency.max_ns.into());
    out.insert("mean".into(), latency.mean_ns.into());
    out.insert("stddev".into(), latency.deviation_ns().into());
    out.insert("N".into(), latency.count.into());
    if let Some(layout) = percentiles.filter(|_| latency.count > 0) {
        let at = |rank: &f64| Some((format!("{rank:.6}"), latency.quantile_ns(rank / 100.0)?.into()));
        out.insert("percentile".into(), Value::Object(layout.ranks.iter().filter_map(at).collect()));
        if plus {
            let bins = latency.bins.iter().map(|(ns, count)| (ns.to_string(), (*count).into()));
            out.insert("bins".into(), Value::Object(bins.collect()));
        }
    }
    out.into()
}

/// Returns the costs of a job. Unknown costs are left out.
fn cost_keys(job: &Job) -> Map<String, Value> {
    let workers = job.costs();
    let mut out = Map::new();
    if workers.wall_ns == 0 {
        return out;
    }
    let [user, system] = cpu_percent(&workers);
    out.insert("job_runtime".into(), (workers.wall_ns / 1_000_000).into());
    out.insert("usr_cpu".into(), user.into());
    out.insert("sys_cpu".into(), system.into());
    out.insert("ctx".into(), workers.switches.into());
    if let Some([minor, major]) = workers.faults {
        out.insert("majf".into(), major.into());
        out.insert("minf".into(), minor.into());
    }
    out
}

/// Returns the shares by depth, as far as they are known.
fn depth_keys(job: &Job) -> Map<String, Value> {
    let table = |names: [&str; COLUMNS], shares: [f64; COLUMNS]| -> Value {
        Value::Object(
            names.into_iter().zip(shares).map(|(name, share)| (name.to_owned(), share.into())).collect(),
        )
    };
    let Depths { level, submit, complete } = Depths::from_job(job);
    let all = [
        ("iodepth_level", DEPTH_LEVELS, level),
        ("iodepth_submit", CALL_LEVELS, submit),
        ("iodepth_complete", CALL_LEVELS, complete),
    ];
    all.into_iter().filter_map(|(key, names, shares)| Some((key.to_owned(), table(names, shares?)))).collect()
}

fn share_keys(job: &Job) -> Map<String, Value> {
    let latencies = job.latencies();
    let LatencyShares { ns, us, ms } =
        LatencyShares::from_distributions(&latencies.iter().collect::<Vec<_>>());
    let table = |shares: &[f64]| -> Value {
        let names = LATENCY_LIMITS.iter().map(u64::to_string).chain([">=2000".to_owned()]);
        Value::Object(names.zip(shares).map(|(name, share)| (name, (*share).into())).collect())
    };
    let all = [("latency_ns", table(&ns)), ("latency_us", table(&us)), ("latency_ms", table(&ms))];
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
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

/// Returns fathom's verdict: the first lines of its own report, and each finding.
fn verdict_json(report: &Report) -> Value {
    let findings: Vec<Value> = report
        .findings
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
                "cure": f.cure,
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

/// fio's layout of JSON: a space before each colon, and six decimals.
#[derive(Default)]
struct FioFormatter(PrettyFormatter<'static>);

impl Formatter for FioFormatter {
    fn write_f64<W: ?Sized + Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        write!(to, "{value:.6}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}
