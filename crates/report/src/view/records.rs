//! Tables of raw values for spreadsheets and scripts, in SI units and with all digits.
//!
//! A table is filled column by column: each column has a heading, which carries the unit, and a field for each item. An empty field is
//! unknown or withheld.

use super::findings;
use crate::view::numbers::percentile_ns;
use crate::view::results::directions;
use crate::view::table::{Columns, Records};
use model::command::{CommandIo, Syncs};
use model::comparison::{Comparison, Metric, Pair};
use model::distinct;
use model::evidence::Extents;
use model::figures::AtDevice;
use model::finding::{CheckId, Checked, Outcome};
use model::history::{Column, Figure, Listing, SessionRow, SessionTable};
use model::report::{Figures, Measured, Report, Verdict};
use model::study::{Api, ApiRow, Studied};
use model::sweep::{CellFigures, Setting, Sweep};
use model::watch::{DeviceInterval, Latencies, Latency, Requests, Watched, WatchedDevice};
use std::collections::BTreeSet;

/// Returns a known value; `None` if it could not be read.
fn known<T: Copy>(value: &model::Known<T>) -> Option<T> {
    value.as_ref().ok().copied()
}

impl<R> Columns<R> {
    /// Adds the columns `NAME_low` and `NAME_high` of an interval.
    fn ends(self, name: &str, ends: impl Fn(&R) -> Option<[f64; 2]>) -> Self {
        self.value(format!("{name}_low"), |item| ends(item).map(|[low, _]| low))
            .value(format!("{name}_high"), |item| ends(item).map(|[_, high]| high))
    }

    /// Adds a column for each percentile of latency.
    fn percentiles(mut self, prefix: &str, figures: impl for<'r> Fn(&'r R) -> Option<&'r Figures>) -> Self {
        for rank in ["50", "90", "95", "99", "99.9"] {
            let heading = format!("{prefix}p{}_ns", rank.replace('.', "_"));
            self = self.value(heading, |item| percentile_ns(&figures(item)?.latency_ns.percentiles, rank));
        }
        self
    }

    /// Adds the columns that every table of a report ends with: the session, and percentiles under their old names,
    /// which scripts still use.
    fn with_session(
        self,
        report: &Report,
        result: impl for<'r> Fn(&'r R) -> Option<&'r Measured>,
    ) -> Records {
        let old: Vec<usize> =
            (0..self.headings.len()).filter(|at| self.headings[*at].ends_with("p99_9_ns")).collect();
        let session = findings::session_id(report);
        let tags = report.annotations.tags.join(";");
        let mut all = self
            .value("session", |_| session.clone())
            .value("started", |_| report.started.clone())
            .value("target", |item| report.targets_of(result(item)).join(";"))
            .value("tags", |_| tags.clone())
            .records();
        all.headings
            .extend(old.iter().map(|at| all.headings[*at].replace("p99_9", "p99.9")).collect::<Vec<_>>());
        for row in &mut all.rows {
            row.extend(old.iter().map(|at| row[*at].clone()).collect::<Vec<_>>());
        }
        all
    }
}

/// Returns the table of a report.
pub(crate) fn report_records(report: &Report) -> Records {
    match &report.study {
        Studied::Interfaces(api) => interface_records(report, api),
        Studied::Sweep(sweep) if sweep.is_in_order() => cell_records(report, sweep),
        Studied::Commands(results) => {
            let runs = results
                .commands
                .iter()
                .flat_map(|command| command.runs.iter().enumerate().map(move |(at, run)| (command, at, run)));
            Columns::new(runs)
                .borrowed_text("command", |(command, ..)| &command.command)
                .value("run", |(_, at, _)| at + 1)
                .value("exit_code", |(.., run)| run.exit.code())
                .value("seconds", |(.., run)| run.seconds)
                .value("user_seconds", |(.., run)| run.user_seconds)
                .value("system_seconds", |(.., run)| run.system_seconds)
                .value("peak_bytes", |(.., run)| known(&run.peak_bytes))
                .value("read_bytes", |(.., run)| moved(&run.moved, |m| Some(m.read_call_bytes)))
                .value("read_calls", |(.., run)| moved(&run.moved, |m| m.read_calls))
                .value("fetched_bytes", |(.., run)| moved(&run.moved, |m| Some(m.fetched_bytes)))
                .value("cached_read_bytes", |(.., run)| known(&run.cached_read_bytes))
                .value("written_bytes", |(.., run)| moved(&run.moved, |m| Some(m.write_call_bytes)))
                .value("write_calls", |(.., run)| moved(&run.moved, |m| Some(m.write_calls)))
                .value("dirtied_bytes", |(.., run)| moved(&run.moved, |m| Some(m.dirtied_bytes)))
                .value("dirty_at_end_bytes", |(.., run)| known(&run.dirty_at_end_bytes))
                .value("sync_seconds", |(.., run)| known(&run.sync_seconds))
                .value("stable_mb_per_s", |(.., run)| known(&run.stable_mb_per_s))
                .value("syncs", |(.., run)| run.syncs.as_ref().ok().map(Syncs::count))
                .borrowed_text("limited_by", |(command, ..)| &command.limiter.name)
                .value("verdict", |_| report.verdict.word())
                .with_session(report, |_| None)
        }
        Studied::Jobs
        | Studied::Layers(_)
        | Studied::Limit(_)
        | Studied::Sweep(_)
        | Studied::Profile(_)
        | Studied::Targets(_)
        | Studied::Hosts(_) => result_records(report),
    }
}

fn moved(moved: &model::Known<CommandIo>, count: fn(&CommandIo) -> Option<u64>) -> Option<u64> {
    moved.as_ref().ok().and_then(count)
}

/// A direction of a result.
struct DirectionRow<'r> {
    result: &'r Measured,
    word: &'static str,
    figures: &'r Figures,
}

impl DirectionRow<'_> {
    /// Returns the figures; `None` if a finding invalidates them.
    fn known(&self) -> Option<&Figures> {
        Some(self.figures).filter(|_| !self.result.void)
    }
}

/// Returns a row for each direction of each result; for a sweep, with the setting.
fn result_records(report: &Report) -> Records {
    let of_result =
        |result| directions(result).map(move |(word, figures)| DirectionRow { result, word, figures });
    let rows = report.results.iter().flat_map(of_result);
    let mut columns = Columns::new(rows)
        .borrowed_text("name", |row| &row.result.name)
        .borrowed_text("true_name", |row| &row.result.true_name)
        .borrowed_text("direction", |row| row.word)
        .value("void", |row| row.result.void)
        .value("runs", |row| row.result.runs.len())
        .value("mb_per_s", |row| row.known().map(|f| f.mb_per_s))
        .ends("mb_per_s", |row| row.known()?.mb_per_s_interval)
        .value("iops", |row| row.known().map(|f| f.iops))
        .ends("iops", |row| row.known()?.iops_interval)
        .value("depth_mean", |row| row.known().map(|f| f.depth_mean))
        .percentiles("", DirectionRow::known)
        .borrowed_text("verdict", |row| row.result.verdict.word())
        .borrowed_text("limited_by", |row| &row.result.limiter.name)
        .value("accepted", |row| accepted_ids(Some(row.result)))
        .value("findings", |row| finding_ids(report, row.result));
    if let Some(sweep) = report.study.sweep() {
        let setting = |row: &DirectionRow| {
            let has_row = |cell: &&CellFigures| {
                cell.result.and_then(|at| report.results.get(at)).is_some_and(|r| r.name == row.result.name)
            };
            sweep.cells.iter().find(has_row).map(|cell| &cell.setting)
        };
        columns = columns
            .value("block_bytes", |row| setting(row).map(|s| s.block_bytes))
            .value("depth", |row| setting(row).map(|s| s.depth))
            .value("workers", |row| setting(row).map(|s| s.workers))
            .value("engine", |row| setting(row).map(|s| s.engine.clone()))
            .value("cache", |row| setting(row).map(|s| s.cache.word()))
            .value("work", |row| setting(row).map(Setting::work))
            .value("batch", |row| setting(row)?.batch)
            .value("mode", |row| setting(row)?.mode.clone());
    }
    columns.with_session(report, |row| Some(row.result))
}

/// Returns the ids of the findings about a result.
fn finding_ids(report: &Report, result: &Measured) -> String {
    let is_about = |check: &&Checked| check.outcome == Outcome::Finding && check.about.contains(&result.name);
    let ids: BTreeSet<CheckId> = report.checks.iter().filter(is_about).map(|check| check.id).collect();
    CheckId::list(&ids.into_iter().collect::<Vec<_>>(), " ")
}

/// Returns the ids of the accepted findings that affect the numbers.
fn accepted_ids(result: Option<&Measured>) -> Option<String> {
    result.map(|r| CheckId::list(&r.accepted, " "))
}

/// A cell of a grid: measured or skipped.
struct CellRow<'r> {
    setting: &'r Setting,
    cell: Option<&'r CellFigures>,
    result: Option<&'r Measured>,
    skipped_because: &'r str,
}

impl CellRow<'_> {
    fn is_void(&self) -> bool {
        self.result.is_some_and(|r| r.void)
    }

    /// Returns the cell; `None` if it was skipped or a finding invalidates it.
    fn known(&self) -> Option<&CellFigures> {
        self.cell.filter(|_| !self.is_void())
    }

    /// Returns a value of the topmost device; `None` if the value is unknown or a finding
    /// invalidates the cell.
    fn device(&self, value: impl Fn(&AtDevice, f64) -> f64) -> Option<f64> {
        let iops = self.known()?.iops?;
        self.result?.at_device().map(|device| value(&device, iops))
    }

    /// Returns the figures of the reads; if the cell only writes, the figures of the writes.
    fn figures(&self) -> Option<&Figures> {
        let result = self.result.filter(|r| !r.void)?;
        result.read.as_ref().or(result.write.as_ref())
    }

    /// Returns the figures of the writes of a mix.
    fn writes(&self) -> Option<&Figures> {
        self.result.filter(|r| !r.void && r.read.is_some())?.write.as_ref()
    }

    fn mb_per_s_interval(&self) -> Option<[f64; 2]> {
        let cell = self.known()?;
        let per_mib = cell.mb_per_s? / cell.mib_per_s?;
        cell.interval.map(|ends| ends.map(|end| end * per_mib))
    }
}

/// Returns a row for each cell of a sweep in a fixed order, measured or skipped. If the cells were measured in rounds,
/// percentiles and device counts are from all rounds, and the other values from the window.
fn cell_records(report: &Report, sweep: &Sweep) -> Records {
    let measured = sweep.cells.iter().map(|cell| CellRow {
        setting: &cell.setting,
        cell: Some(cell),
        result: cell.result.and_then(|at| report.results.get(at)),
        skipped_because: "",
    });
    let skipped = sweep.skipped.iter().map(|cell| CellRow {
        setting: &cell.setting,
        cell: None,
        result: None,
        skipped_because: &cell.why,
    });
    Columns::new(measured.chain(skipped))
        .value("work", |row| row.setting.work())
        .value("block_bytes", |row| row.setting.block_bytes)
        .value("depth", |row| row.setting.depth)
        .value("workers", |row| row.setting.workers)
        .borrowed_text("engine", |row| &row.setting.engine)
        .borrowed_text("cache", |row| row.setting.cache.word())
        .value("measured", |row| row.cell.is_some_and(|cell| cell.iops.is_some()))
        .value("void", |row| row.cell.map(|_| row.is_void()))
        .value("runs", |row| row.cell.map(|cell| cell.runs))
        .value("mb_per_s", |row| row.known()?.mb_per_s)
        .value("iops", |row| row.known()?.iops)
        .value("latency_mean_ns", |row| row.known()?.latency_mean_ns)
        .value("latency_max_ns", |row| row.known()?.latency_max_ns)
        .percentiles("", CellRow::figures)
        .value("device_iops", |row| row.device(AtDevice::requests_per_s))
        .value("device_mb_per_s", |row| row.device(|device, iops| device.bytes_per_s(iops) / 1e6))
        .value("cpu_ns_per_mib", |row| row.known()?.cpu_ns_per_mib)
        .value("limited_by", |row| row.result.map(|r| r.limiter.name.clone()))
        .borrowed_text("skipped_because", |row| row.skipped_because)
        .ends("mb_per_s", CellRow::mb_per_s_interval)
        // For a mix, columns without a direction have the values of the reads.
        .percentiles("write_", CellRow::writes)
        .value("verdict", |row| row.result.map(|r| r.verdict.word()))
        .value("accepted", |row| accepted_ids(row.result))
        .with_session(report, |row| row.result)
}

/// A row of the comparison of interfaces, with its result.
struct InterfaceRow<'r> {
    api: &'r ApiRow,
    result: Option<&'r Measured>,
}

impl InterfaceRow<'_> {
    /// Returns the figures of the only direction; `None` if a finding invalidates them.
    fn figures(&self) -> Option<&Figures> {
        let result = self.result.filter(|r| !r.void)?;
        result.read.as_ref().or(result.write.as_ref())
    }

    fn percentile(&self, rank: &str) -> Option<u64> {
        percentile_ns(&self.figures()?.latency_ns.percentiles, rank)
    }

    fn stored_before(&self) -> Option<&Extents> {
        self.api.stored_before.as_ref().ok()
    }

    fn stored_after(&self) -> Option<&Extents> {
        self.api.stored_after.as_ref()?.as_ref().ok()
    }
}

fn interface_records(report: &Report, api: &Api) -> Records {
    let rows = api.rows.iter().map(|row| InterfaceRow { api: row, result: report.results.get(row.result) });
    Columns::new(rows)
        .borrowed_text("interface", |row| &row.api.interface)
        .borrowed_text("work", |row| &row.api.work)
        .value("block_bytes", |row| row.api.block_bytes)
        .value("mb_per_s", |row| row.api.mb_per_s)
        .ends("mb_per_s", |row| row.api.mb_per_s_interval)
        .value("iops", |row| row.api.iops)
        .value("synced_mb_per_s", |row| row.api.synced_mb_per_s)
        .ends("synced_mb_per_s", |row| row.api.synced_mb_per_s_interval)
        .value("p50_ns", |row| row.api.p50_ns)
        .value("p90_ns", |row| row.percentile("90"))
        .value("p95_ns", |row| row.percentile("95"))
        .value("p99_ns", |row| row.api.p99_ns)
        .value("p99_9_ns", |row| row.percentile("99.9"))
        .value("user_ns_per_byte", |row| row.api.user_ns_per_byte)
        .value("system_ns_per_byte", |row| row.api.system_ns_per_byte)
        .value("calls_per_mib", |row| known(&row.api.calls_per_mib))
        .value("minor_faults_per_mib", |row| row.api.minor_faults_per_mib)
        .value("major_faults_per_mib", |row| row.api.major_faults_per_mib)
        .value("device_read_per_byte", |row| known(&row.api.device_bytes_per_byte).map(|[read, _]| read))
        .value("device_written_per_byte", |row| known(&row.api.device_bytes_per_byte).map(|[_, wrote]| wrote))
        .value("coverage", |row| row.api.coverage)
        .value("cached_pages_at_start", |row| known(&row.api.cached_pages_at_start))
        .value("extents_before", |row| row.stored_before().map(|s| s.count))
        .value("extents_after", |row| row.stored_after().map(|s| s.count))
        .value("largest_piece_bytes_after", |row| row.stored_after()?.largest_piece_bytes)
        .value("findings", |row| CheckId::list(&row.api.findings, " "))
        .ends("iops", |row| row.figures()?.iops_interval)
        .value("verdict", |row| row.result.map(|r| r.verdict.word()))
        .value("limited_by", |row| row.result.map(|r| r.limiter.name.clone()))
        .value("run_seconds", |row| row.api.run_seconds)
        .value("run_bytes", |row| row.api.run_bytes)
        .value("largest_piece_share_before", |row| row.stored_before()?.largest_share())
        .value("largest_piece_share_after", |row| row.stored_after()?.largest_share())
        .value("accepted", |row| accepted_ids(row.result))
        .with_session(report, |row| row.result)
}

/// A row of the comparison: a number of a pair, or a pair that is not compared.
struct NumberRow<'r> {
    side: &'r str,
    pair: &'r Pair,
    metric: Option<&'r Metric>,
}

/// Returns a row for each number of each side, and one for each result that is not compared, with the reason.
pub(crate) fn comparison_records<'c>(sides: impl Iterator<Item = (&'c str, &'c Comparison)>) -> Records {
    let pairs = sides.flat_map(|(side, comparison)| comparison.pairs.iter().map(move |pair| (side, pair)));
    let rows = pairs.flat_map(|(side, pair)| {
        let refused = pair.metrics.is_empty().then_some(NumberRow { side, pair, metric: None });
        let numbers = pair.metrics.iter().map(move |metric| NumberRow { side, pair, metric: Some(metric) });
        refused.into_iter().chain(numbers)
    });
    let why_refused = |pair: &Pair| pair.refused.clone().unwrap_or_default();
    Columns::new(rows)
        .borrowed_text("side", |row| row.side)
        .borrowed_text("result", |row| &row.pair.name)
        .value("number", |row| row.metric.map(|m| m.name.clone()))
        .value("unit", |row| row.metric.map(|m| m.unit.clone()))
        .value("a", |row| row.metric.map(|m| m.a))
        .value("b", |row| row.metric.map(|m| m.b))
        .value("ratio", |row| row.metric.map(|m| m.ratio))
        .ends("ratio", |row| row.metric?.interval)
        .value("margin", |row| row.metric.map(|m| m.margin))
        .value("answer", |row| row.metric.map_or_else(|| row.pair.refusal(), |m| m.answer).word())
        .value("visible", |row| row.metric?.could_have_seen)
        .value("runs_a", |row| row.metric.map(|m| m.a_runs.len()))
        .value("runs_b", |row| row.metric.map(|m| m.b_runs.len()))
        .value("runs_needed", |row| row.metric?.runs_needed)
        .value("why", |row| row.metric.map_or_else(|| why_refused(row.pair), |m| m.why.clone()))
        .value("tolerance", |row| row.metric?.tolerance)
        .value("runs_to_halve", |row| row.metric?.runs_to_halve)
        .records()
}

/// Returns a row for each session; lists are joined by semicolons.
pub(crate) fn session_records(listing: &Listing) -> Records {
    let join = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(";");
    Columns::new(&listing.entries)
        .borrowed_text("id", |entry| &entry.id)
        .value("started", |entry| entry.started.clone())
        .value("verdict", |entry| entry.verdict_word().map(str::to_owned))
        .borrowed_text("ending", |entry| entry.unplanned_ending().unwrap_or("complete"))
        .value("title", |entry| entry.title.clone())
        .value("headline", |entry| entry.headline.as_ref().map(|h| h.name.clone()))
        .value("value", |entry| entry.headline.as_ref()?.value)
        .value("unit", |entry| entry.headline.as_ref().map(|h| h.unit.clone()))
        .value("low", |entry| entry.headline.as_ref()?.interval.map(|[low, _]| low))
        .value("high", |entry| entry.headline.as_ref()?.interval.map(|[_, high]| high))
        .value("targets", |entry| entry.targets.join(";"))
        .value("devices", |entry| join(&mut entry.devices.iter().map(|d| d.name.clone())))
        .value("jobs", |entry| entry.jobs.join(";"))
        .value("runs", |entry| entry.runs)
        .value("hosts", |entry| entry.hosts.join(";"))
        .value("fingerprint", |entry| entry.fingerprint.clone())
        .value("findings", |entry| join(&mut entry.findings.iter().map(|f| f.id.to_string())))
        .value("version", |entry| entry.version.clone())
        .value("tags", |entry| entry.annotations.tags.join(";"))
        .value("notes", |entry| join(&mut entry.annotations.notes.iter().map(|n| n.text.clone())))
        .borrowed_text("path", |entry| &entry.path)
        .records()
}

/// A row of the table of sessions, with the report of its session if the table has reports.
struct ReportedRow<'t> {
    row: &'t SessionRow,
    report: Option<&'t Report>,
}

impl ReportedRow<'_> {
    /// Returns the figure in column `at` of the table, if it belongs to the result `name` and has this unit.
    fn figure(&self, at: usize, name: &str, unit: &str) -> Option<&Figure> {
        self.row
            .figures
            .get(at)?
            .as_ref()
            .filter(|figure| (figure.name.as_str(), figure.unit.as_str()) == (name, unit))
    }

    /// Returns the true name of the result. For a study, whose results are not in the table, returns the name of the headline.
    fn true_name(&self, figure: &Figure) -> Option<&str> {
        let report = self.report?;
        let result = report.results.iter().find(|result| result.name == figure.name);
        Some(result.map_or(report.headline.name.as_str(), |result| result.true_name.as_str()))
    }
}

/// Returns a row for each session or device. Each result has its own columns: value, interval and verdict, and the true name if the table
/// has the reports. A field is empty if the session did not measure the result.
pub(crate) fn session_table_records(sessions: &SessionTable) -> Records {
    let reports = sessions.reports.iter().map(Some).chain(std::iter::repeat(None));
    let rows = sessions.rows.iter().zip(reports).map(|(row, report)| ReportedRow { row, report });
    let mut all = Columns::new(rows)
        .borrowed_text("session", |one| &one.row.session)
        .value("started", |one| one.row.started.clone())
        .value("verdict", |one| one.row.verdict.map(Verdict::word))
        .value("device", |one| one.row.device.clone())
        .value("targets", |one| one.row.targets.join(";"))
        .value("tags", |one| one.row.tags.join(";"));
    let mut names_so_far = BTreeSet::new();
    for (at, column) in sessions.columns.iter().enumerate() {
        // Sessions of different work share a column in tables for people. Here each result has its own columns.
        let figures = sessions.rows.iter().filter_map(|row| row.figures.get(at)?.as_ref());
        let names = if column.name == Column::MAIN {
            distinct(figures.map(|figure| (figure.name.as_str(), figure.unit.as_str())))
        } else {
            vec![(column.name.as_str(), column.unit.as_str())]
        };
        for (name, unit) in names {
            let figure = |one: &ReportedRow| one.figure(at, name, unit).cloned();
            let heading = format!("{name} {unit}");
            // One name may have figures in two units.
            let title = if names_so_far.insert(name.to_owned()) { name.to_owned() } else { heading.clone() };
            all = all
                .value(heading.clone(), |one| figure(one)?.value)
                .value(format!("{heading} low"), |one| figure(one)?.interval.map(|[low, _]| low))
                .value(format!("{heading} high"), |one| figure(one)?.interval.map(|[_, high]| high))
                .value(format!("{title} verdict"), |one| figure(one).map(|f| f.verdict.word()));
            if !sessions.reports.is_empty() {
                all = all.value(format!("{title} measured"), |one| {
                    one.true_name(one.figure(at, name, unit)?).map(str::to_owned)
                });
            }
        }
    }
    all.records()
}

/// Picks the figures of a direction.
type OfDirection<All, One> = fn(&All) -> Option<One>;

/// Returns a row for each device in an interval.
pub(crate) fn watch_records(watched: &Watched) -> Records {
    let shown = watched.devices.iter().filter(|d| !watched.layout.active_only || d.is_active());
    let mut all = Columns::new(shown.map(|d| (d, d.figures.as_ref().ok())))
        .value("time", |_| watched.time.clone())
        .borrowed_text("device", |(device, _)| &device.name)
        .value("level", |(device, _)| device.level)
        .value("seconds", |(_, figures)| figures.map(|f| f.seconds));
    let directions: [(&str, OfDirection<DeviceInterval, Requests>); 3] =
        [("read", |f| Some(f.read)), ("write", |f| Some(f.write)), ("discard", |f| f.discard)];
    for (name, of_direction) in directions {
        let requests = |figures: Option<&DeviceInterval>| figures.and_then(of_direction);
        all = all
            .value(format!("{name}_per_s"), |(_, f)| requests(*f).map(|r| r.per_s))
            .value(format!("{name}_mb_per_s"), |(_, f)| requests(*f).map(|r| r.mb_per_s))
            .value(format!("{name}_request_bytes"), |(_, f)| requests(*f)?.request_bytes)
            .value(format!("{name}_await_ms"), |(_, f)| requests(*f)?.await_ms);
        if name != "discard" {
            all = all
                .value(format!("{name}_merged_per_s"), |(_, f)| requests(*f).map(|r| r.merged_per_s))
                .value(format!("{name}_merged_percent"), |(_, f)| requests(*f)?.merged_percent);
        }
    }
    let load = |device: &WatchedDevice| device.load.clone()?.ok();
    let mut all = all
        .value("flush_per_s", |(_, figures)| figures.and_then(|f| f.flush).map(|f| f.per_s))
        .value("flush_await_ms", |(_, figures)| figures.and_then(|f| f.flush)?.await_ms)
        .value("depth_mean", |(_, figures)| figures.map(|f| f.depth_mean))
        .value("in_flight", |(_, figures)| figures.map(|f| f.in_flight))
        .value("util_percent", |(_, figures)| figures.map(|f| f.util_percent))
        .value("load_at_least_percent", |(device, _)| load(device).map(|l| l.at_least_percent))
        .value("load_at_most_percent", |(device, _)| load(device)?.at_most_percent)
        .value("load_session", |(device, _)| load(device)?.sessions.first().map(|s| s.session.clone()));
    let directions: [(&str, OfDirection<Latencies, Latency>); 4] =
        [("read", |l| l.read), ("write", |l| l.write), ("discard", |l| l.discard), ("flush", |l| l.flush)];
    for (name, of_direction) in directions {
        let latency = |device: &WatchedDevice| of_direction(device.latency.as_ref()?.as_ref().ok()?);
        all = all
            .value(format!("{name}_p50_ms"), |(device, _)| latency(device)?.p50_ms)
            .value(format!("{name}_p99_ms"), |(device, _)| latency(device)?.p99_ms)
            .value(format!("{name}_max_ms"), |(device, _)| latency(device).map(|l| l.max_ms));
    }
    Records { has_headings: watched.is_first, ..all.records() }
}
