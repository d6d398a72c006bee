//! Results of jobs and commands: the table with a row for each direction, the hosts, a replay next to its original, and the table with a
//! row for each run of a command.

use crate::view::numbers::{device_rate, half_width, percentile, verdict_mark, with_supported_digits};
use crate::view::table::{Columns, Table, or_dash};
use model::command::{CommandIo, CommandResults, CommandRun};
use model::fleet::{Fairness, FleetFigures, HostFigures, HostRate};
use model::replay::{Figure, FitCheck, ReplayComparison};
use model::report::{Figures, Measured, Rates, Report, Verdict};
use model::study::Studied;
use model::units::{show_bytes, show_change, show_count, show_ns, show_rate, show_share};
use std::collections::BTreeMap;

/// Whether the report is about jobs themselves (independent jobs or a profile), not a study of them.
pub(crate) fn is_of_jobs(report: &Report) -> bool {
    matches!(report.study, Studied::Jobs | Studied::Profile(_))
}

/// Whether the report is about several jobs, each with its row.
pub(crate) fn has_rows_of_jobs(report: &Report) -> bool {
    is_of_jobs(report) && report.results.len() > 1
}

/// A row of a result: the result as a whole, or one of its directions.
#[derive(Default)]
struct ResultRow<'r> {
    name: String,
    /// The result, only in its first row.
    result: Option<&'r Measured>,
    /// Whether the result has no numbers.
    is_empty: bool,
    rates: Option<Rates>,
    figures: Option<&'r Figures>,
    /// Whether the row is about sync calls, which move no data and share the depth of the writes.
    is_sync: bool,
}

impl<'r> ResultRow<'r> {
    fn with_figures(self, figures: &'r Figures) -> Self {
        let Figures { iops, mb_per_s, mib_per_s, iops_interval, mb_per_s_interval, .. } = *figures;
        let rates = Rates { iops, mb_per_s, mib_per_s, iops_interval, mb_per_s_interval, iops_median: None };
        Self { rates: Some(rates), figures: Some(figures), ..self }
    }

    /// Returns the row of one of several directions.
    fn of_direction(word: &str, figures: &'r Figures) -> Self {
        Self { name: format!("  its {word}s"), is_sync: word == "sync", ..Self::default() }
            .with_figures(figures)
    }

    /// Returns a cell: `-` if the result has no numbers, empty if this row does not have the value.
    fn cell(&self, value: Option<String>) -> Option<String> {
        value.or_else(|| self.is_empty.then(|| "-".into()))
    }

    /// Returns a rate with the digits that the interval of the IOPS supports.
    fn rate(&self, of_row: fn(&Rates) -> f64) -> Option<String> {
        let rates = self.rates.as_ref()?;
        let (rate, iops) = (of_row(rates), rates.iops);
        let ends = rates.iops_interval.filter(|_| iops > 0.0);
        Some(with_supported_digits(rate, ends.map(|ends| ends.map(|end| end / iops * rate))))
    }

    /// Returns a rate in bytes, which a sync does not have.
    fn byte_rate(&self, of_row: fn(&Rates) -> f64) -> Option<String> {
        self.rate(of_row).filter(|_| !self.is_sync)
    }

    fn half_width(&self) -> Option<String> {
        self.rates.as_ref().map(|rates| half_width(rates.iops, rates.iops_interval))
    }

    fn percentile(&self, rank: &str) -> Option<String> {
        self.cell(self.figures.map(|figures| percentile(&figures.latency_ns.percentiles, rank)))
    }

    /// Returns the name of the limiter without its article: with the article, the longest name would not fit the width.
    fn limiter(&self) -> Option<String> {
        let result = self.result.filter(|r| !r.void && r.limiter.name != "not judged")?;
        Some(result.limiter.shown_name().replace("the ", ""))
    }
}

/// Returns the table of results: a row for each direction. The first row of a result has the verdict.
pub(crate) fn result_table(results: &[Measured]) -> Table {
    Columns::new(results.iter().flat_map(result_rows))
        .text("test", |row| row.name.clone())
        .text("verdict", |row| row.result.map(verdict_mark))
        // Without numbers the first cell is `none`, and the others are `-`.
        .value("MB/s", |row| if row.is_empty { Some("none".into()) } else { row.byte_rate(|r| r.mb_per_s) })
        .value("MiB/s", |row| row.cell(row.byte_rate(|r| r.mib_per_s)))
        .value("IOPS", |row| row.cell(row.rate(|r| r.iops)))
        .value("±95 %", |row| row.cell(row.half_width()))
        .value("p50", |row| row.percentile("50"))
        .value("p99", |row| row.percentile("99"))
        .value("p99.9", |row| row.percentile("99.9"))
        .value("depth", |row| row.cell(row.figures.filter(|_| !row.is_sync).map(|f| show_rate(f.depth_mean))))
        .value("device IOPS", |row| row.cell(row.result.filter(|_| !row.is_empty).map(device_rate)))
        .text("limited by", ResultRow::limiter)
        .table(&["MiB/s", "depth", "device IOPS", "p99.9", "limited by", "p50"])
}

/// Returns the figures of each direction of a result by its name, such as `read`.
pub(crate) fn directions(result: &Measured) -> impl Iterator<Item = (&'static str, &Figures)> {
    let all =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim), ("sync", &result.sync)];
    all.into_iter().filter_map(|(word, figures)| Some((word, figures.as_ref()?)))
}

/// Returns the figures of reads, writes and trims by their names.
pub(crate) fn directions_without_sync(result: &Measured) -> impl Iterator<Item = (&'static str, &Figures)> {
    directions(result).filter(|(word, _)| *word != "sync")
}

/// Returns the figures of the direction with the most operations, except syncs.
pub(crate) fn main_figures(result: &Measured) -> Option<&Figures> {
    directions_without_sync(result).map(|(_, figures)| figures).max_by_key(|figures| figures.ops)
}

/// Returns a row for each direction. If there are several, a row for all of them together comes first.
fn result_rows(result: &Measured) -> Vec<ResultRow<'_>> {
    let parts: Vec<(&str, &Figures)> = directions_without_sync(result).collect();
    let first = ResultRow { name: result.name.clone(), result: Some(result), ..ResultRow::default() };
    if result.void || parts.is_empty() {
        return vec![ResultRow { is_empty: true, ..first }];
    }
    let syncs = result.sync.as_ref().map(|figures| ResultRow::of_direction("sync", figures));
    if let [(_, only)] = parts[..] {
        return [first.with_figures(only)].into_iter().chain(syncs).collect();
    }
    let together = result.total.clone().map(|total| ResultRow { rates: Some(total), ..first });
    let directions = parts.iter().map(|(word, figures)| ResultRow::of_direction(word, figures));
    together.into_iter().chain(directions).chain(syncs).collect()
}

/// Reads and writes of a test, which may be two results.
pub(crate) struct ReadWriteTest<'r> {
    pub(crate) name: &'r str,
    /// The reads and the writes with their results.
    pub(crate) halves: [Option<(&'r Measured, &'r Figures)>; 2],
    /// The result with the worse verdict.
    pub(crate) worst: &'r Measured,
}

/// Returns the tests of these results, each with its own name. `RND4K Q1T1 read` and `RND4K Q1T1 write` are one test,
/// unless one of them both reads and writes.
pub(crate) fn read_write_tests<'r>(results: impl Iterator<Item = &'r Measured>) -> Vec<ReadWriteTest<'r>> {
    let results: Vec<&Measured> = results.collect();
    let mut tests: Vec<ReadWriteTest> = Vec::new();
    for &result in &results {
        let ends = [(" read", &result.write), (" write", &result.read)];
        let name = ends.into_iter().find_map(|(end, other)| {
            let name = result.name.strip_suffix(end).filter(|_| other.is_none())?;
            results.iter().all(|one| one.name != name).then_some(name)
        });
        let name = name.unwrap_or(&result.name);
        let halves = [&result.read, &result.write].map(|f| Some((result, f.as_ref()?)));
        let is_other_half = |test: &&mut ReadWriteTest| {
            test.name == name && test.halves.iter().zip(&halves).all(|(a, b)| a.is_none() || b.is_none())
        };
        if let Some(test) = tests.iter_mut().find(is_other_half) {
            test.halves.iter_mut().zip(halves).for_each(|(known, new)| *known = known.or(new));
            if (result.void, result.verdict) > (test.worst.void, test.worst.verdict) {
                test.worst = result;
            }
        } else {
            tests.push(ReadWriteTest { name, halves, worst: result });
        }
    }
    tests
}

/// Maximum number of rows of hosts. If there are more hosts, the lost and the slowest ones have rows.
pub(crate) const MAX_HOSTS: usize = 64;

/// Describes how evenly the hosts share the rate.
pub(crate) fn describe_fairness(fair: &Fairness) -> String {
    if fair.sentence.is_empty() {
        return format!("The slowest host has {} of the mean rate.", show_share(fair.slowest_share_of_mean));
    }
    fair.sentence.clone()
}

/// Returns the hosts that ran a job with their rates, ordered by rank, and how many hosts are left
/// out. With many hosts, returns only the slowest. With `with_lost`, includes the lost hosts, which
/// have no rate.
pub(crate) fn slowest_hosts<'f>(
    fleet: &'f FleetFigures,
    result: &str,
    with_lost: bool,
) -> (Vec<(&'f HostFigures, Option<&'f HostRate>)>, usize) {
    let rate = |host: &'f HostFigures| host.results.iter().find(|r| r.name == result);
    let hosts = fleet.hosts.iter().map(|host| (host, rate(host)));
    let mut hosts: Vec<(&HostFigures, Option<&HostRate>)> =
        hosts.filter(|(host, rate)| rate.is_some() || with_lost && host.verdict.is_none()).collect();
    let all = hosts.len();
    let iops = |rate: Option<&HostRate>| rate.and_then(|r| r.iops).unwrap_or(0.0);
    hosts.sort_by(|(_, a), (_, b)| iops(*a).total_cmp(&iops(*b)));
    hosts.truncate(MAX_HOSTS);
    hosts.sort_by_key(|(host, _)| host.rank);
    let others = all - hosts.len();
    (hosts, others)
}

/// Returns a table with a row for each host, or only the slowest of many, and the number of hosts without a row.
pub(crate) fn host_table(fleet: &FleetFigures, result: &str) -> (Table, usize) {
    let (hosts, more) = slowest_hosts(fleet, result, true);
    let number = |rate: Option<&HostRate>, value: fn(&HostRate) -> Option<f64>, show: fn(f64) -> String| {
        or_dash(rate.and_then(value), show)
    };
    let table = Columns::new(hosts)
        .text("host", |(host, _)| host.name.clone())
        .text("verdict", |(host, rate)| {
            let lost = || host.verdict.map_or("lost", Verdict::word);
            rate.map_or_else(lost, |rate| rate.verdict.word())
        })
        .value("MB/s", |(_, rate)| number(*rate, |r| r.mb_per_s, show_rate))
        .value("IOPS", |(_, rate)| number(*rate, |r| r.iops, show_rate))
        .value("share", |(_, rate)| number(*rate, |r| r.share, show_share))
        .value("p50", |(_, rate)| or_dash(*rate, |r| host_latency(&r.p50_ns)))
        .value("p99", |(_, rate)| or_dash(*rate, |r| host_latency(&r.p99_ns)))
        .value("CPU per op", |(_, rate)| number(*rate, |r| r.cpu_ns_per_op, show_ns))
        .text("limited by", |(_, rate)| or_dash(*rate, |r| r.limiter.replace("the ", "")))
        .table(&["CPU per op", "limited by", "p50"]);
    (table, more)
}

/// Formats a latency of a host: `180 us`, with several directions `read 180 us, write 2.1 ms`.
fn host_latency(latencies: &BTreeMap<String, Option<u64>>) -> String {
    let latency_or_dash = |ns: &Option<u64>| or_dash(*ns, |ns| show_ns(ns as f64));
    match latencies.iter().collect::<Vec<_>>().as_slice() {
        [] => "-".into(),
        [(_, ns)] => latency_or_dash(ns),
        several => {
            let each: Vec<String> =
                several.iter().map(|(kind, ns)| format!("{kind} {}", latency_or_dash(ns))).collect();
            each.join(", ")
        }
    }
}

/// Numbers of this size or larger are printed without decimals.
const NO_DECIMALS_FROM: f64 = 1000.0;

/// Returns the caption of [`replay_table`].
pub(crate) fn replay_caption(replay: &ReplayComparison) -> String {
    format!("{} and its replay, --pace {}, --speed {}", replay.capture, replay.pace, replay.speed)
}

/// Returns a row for each figure.
pub(crate) fn replay_table(replay: &ReplayComparison) -> Table {
    Columns::new(&replay.figures)
        .text("figure", |figure| figure.name.clone())
        .value("original", |figure| or_dash(figure.original, |value| in_unit(value, &figure.unit)))
        .value("replay", |figure| or_dash(figure.replay, |value| in_unit(value, &figure.unit)))
        .value("change", |figure| or_dash(figure.change, |change| show_change(1.0 + change)))
        .table(&[])
}

/// Returns a row for each figure of a fitted job.
pub(crate) fn fit_table(fit: &FitCheck) -> Table {
    // A distance between distributions (Kolmogorov-Smirnov) has the unit `ks`. Other differences
    // are shares.
    let is_distance = |figure: &Figure| figure.unit == "ks";
    let difference = |figure: &Figure, difference: f64| {
        if is_distance(figure) {
            format!("KS {difference:.4}")
        } else {
            format!("{:+.1} %", 100.0 * difference)
        }
    };
    let goal = |figure: &Figure| {
        if is_distance(figure) {
            format!("<= {}", figure.goal)
        } else {
            format!("+-{:.0} %", 100.0 * figure.goal)
        }
    };
    let met = |figure: &Figure| figure.met.map_or("?", |met| if met { "yes" } else { "NO" });
    Columns::new(&fit.figures)
        .text("figure", |figure| figure.name.clone())
        .value("original", |figure| or_dash(figure.original, |value| in_unit(value, &figure.unit)))
        .value("fit", |figure| or_dash(figure.fit, |value| in_unit(value, &figure.unit)))
        .value("difference", |figure| or_dash(figure.difference, |value| difference(figure, value)))
        .value("goal", |figure| goal(figure))
        .text("met", |figure| met(figure))
        .table(&[])
}

/// Formats a figure of a replay or a fitted job.
fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => show_ns(value),
        "bytes" => show_bytes(value.round() as u64),
        "bytes_per_s" => format!("{}/s", show_bytes(value.round() as u64)),
        "share" => show_share(value),
        _ if value >= NO_DECIMALS_FROM => show_count(value),
        _ => show_rate(value),
    }
}

/// Returns a row for each run.
pub(crate) fn command_table(results: &CommandResults) -> Table {
    let seconds = |seconds: f64| show_ns(seconds * 1e9);
    let moved = |run: &CommandRun, amount: fn(&CommandIo) -> u64| {
        or_dash(run.moved.as_ref().map(amount).ok(), show_bytes)
    };
    let runs = results
        .commands
        .iter()
        .flat_map(|command| command.runs.iter().enumerate().map(move |(at, run)| (command, at, run)));
    Columns::new(runs)
        .text("command", |(command, at, _)| (*at == 0).then(|| command.command.clone()))
        .value("run", |(_, at, _)| at + 1)
        .value("time", |(.., run)| seconds(run.seconds))
        .value("user", |(.., run)| seconds(run.user_seconds))
        .value("system", |(.., run)| seconds(run.system_seconds))
        .value("read", |(.., run)| moved(run, |m| m.read_call_bytes))
        .value("from cache", |(.., run)| {
            or_dash(run.cached_read_bytes.as_ref().ok(), |bytes| show_bytes(*bytes))
        })
        .value("written", |(.., run)| moved(run, |m| m.dirtied_bytes))
        .value("sync", |(.., run)| or_dash(run.sync_seconds.as_ref().ok(), |s| seconds(*s)))
        .text("stable MB/s", |(.., run)| or_dash(run.stable_mb_per_s.as_ref().ok(), |rate| show_rate(*rate)))
        .table(&["user", "system", "sync", "from cache"])
}

#[test]
fn every_test_has_its_own_name() -> Result<(), Box<dyn std::error::Error>> {
    let golden: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    let mixed = golden.results.iter().find(|result| result.read.is_some() && result.write.is_some());
    let mixed = mixed.ok_or("no mix")?.clone();
    let [read, write] = [(true, false), (false, true)].map(|(reads, writes)| Measured {
        read: mixed.read.clone().filter(|_| reads),
        write: mixed.write.clone().filter(|_| writes),
        ..mixed.clone()
    });
    let names = |results: &[(&str, &Measured)]| -> Vec<String> {
        let named =
            |(name, result): &(&str, &Measured)| Measured { name: (*name).into(), ..(*result).clone() };
        let results: Vec<Measured> = results.iter().map(named).collect();
        read_write_tests(results.iter()).iter().map(|test| test.name.to_owned()).collect()
    };
    assert_eq!(names(&[("a read", &read), ("a write", &write)]), ["a"]);
    assert_eq!(names(&[("a read", &mixed), ("a write", &mixed)]), ["a read", "a write"]);
    assert_eq!(names(&[("a", &mixed), ("a read", &read)]), ["a", "a read"]);
    Ok(())
}
