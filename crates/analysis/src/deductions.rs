//! Deductions: the conclusions that a person would draw from a table of results.
//!
//! 1. Between results: the cost of a seek, scaling with depth, the write cache, the highest rates,
//!    and the limiter of each row, as in the article "IO Performance Benchmarking 101". Figures
//!    that a finding invalidates are left out. Figures that a finding relabels are used only for
//!    the limiters.
//! 2. Within a result: a burst, that is the bytes that the storage wrote fast before it fell to its lasting rate.

use crate::case::{Case, CaseRun, requested_depth};
#[cfg(test)]
use crate::checks::shaped;
use crate::checks::{Evidence, evidence};
use crate::figures::kernel_text::sensors_below;
use crate::figures::steadiness::find_steps_of_run;
use crate::figures::time_series::{intervals_of, series_of_runs};
use crate::findings::{CaseAnswers, join_names};
use crate::verdict::Judged;
use model::evidence::{BlockStat, Moment, TEMPERATURES};
use model::job::{Kind, Pattern, Percent, Stream};
use model::machine::{Layer, LayerKind};
use model::record::Interval;
#[cfg(test)]
use model::record::Record;
use model::report::{Deduction, Measured, Rates};
use model::units::{show_block, show_bytes, show_ns, show_rate};
use stats::change::Step;
use stats::comparison::Ratio;
use stats::series::Series;
use std::collections::BTreeMap;

/// Two rates are different if one is at least this many times the other. A smaller ratio would change no decision.
const MIN_RATIO: f64 = 1.1;

/// A result that measured what its name claims.
struct ResultRow<'a> {
    name: &'a str,
    stream: &'a Stream,
    rates: &'a Rates,
    /// Operations per second of each run.
    runs: Vec<f64>,
}

impl ResultRow<'_> {
    fn has_access(&self, pattern: Pattern, read_percent: u8) -> bool {
        let access = &self.stream.access;
        access.pattern() == Some(pattern) && access.read_percent() == Some(Percent::whole(read_percent))
    }

    /// Returns the block size; `None` if sizes differ.
    fn block_bytes(&self) -> Option<u32> {
        self.stream.access.block_bytes()
    }

    fn has_depth_one(&self) -> bool {
        requested_depth(self.stream) <= 1.0
    }

    /// Describes the work without its load: `4K random read`.
    fn describe_work(&self) -> String {
        self.stream.access.describe()
    }
}

/// Returns all deductions from independent jobs. Empty for a quick session (`--quick`): deductions need the variation
/// between runs.
pub(crate) fn deduce_from_jobs(judged: &Judged) -> Vec<Deduction> {
    match judged.record.header.plan.quick_ns {
        Some(_) => Vec::new(),
        None => [deduce(judged.answered, judged.results), find_bursts(judged.answered)].concat(),
    }
}

/// Returns every deduction between results that the figures allow, in a fixed order.
fn deduce(answered: &[CaseAnswers], results: &[Measured]) -> Vec<Deduction> {
    let rows: Vec<ResultRow> = answered.iter().zip(results).filter_map(|(a, m)| row_if_sound(a, m)).collect();
    let mut out = Vec::new();
    for read_percent in [100, 0] {
        out.extend(deduce_seek(&rows, read_percent));
    }
    for read_percent in [100, 0] {
        out.extend(deduce_scaling(&rows, read_percent));
    }
    out.extend(deduce_write_cache(&rows));
    out.extend(deduce_highest_rate(&rows, Pattern::Sequential));
    out.extend(deduce_highest_rate(&rows, Pattern::Random));
    out.extend(list_limiters(results));
    out
}

/// Returns the row of a result that measured what its name claims; `None` for other results:
///
/// - without a rate or without storage,
/// - of a stream that did not run alone,
/// - that a finding relabels or invalidates,
/// - of a stream that does not submit as fast as its depth allows: with a rate, pauses or waits for other operations.
fn row_if_sound<'a>(answered: &'a CaseAnswers, measured: &'a Measured) -> Option<ResultRow<'a>> {
    let phase = answered.case.job.phases.get(answered.case.phase_index)?;
    let alone = phase.streams.len() == 1 && answered.case.has_storage();
    let rates = measured.total.as_ref().filter(|t| t.iops > 0.0 && t.mb_per_s > 0.0)?;
    (alone && answered.is_sound() && answered.case.stream.submits_without_waiting()).then_some(ResultRow {
        name: &measured.name,
        stream: &answered.case.stream,
        rates,
        runs: measured.runs.iter().map(|r| r.iops).collect(),
    })
}

/// States the cost of a random operation beyond its transfer.
fn deduce_seek(rows: &[ResultRow], read_percent: u8) -> Option<Deduction> {
    let random = rows.iter().find(|r| r.has_access(Pattern::Random, read_percent) && r.has_depth_one())?;
    let sequential = rows.iter().filter(|r| r.has_access(Pattern::Sequential, read_percent));
    let sequential = sequential.max_by(|a, b| a.rates.mb_per_s.total_cmp(&b.rates.mb_per_s))?;
    let time_ns = 1e9 / random.rates.iops;
    let transfer_ns = f64::from(random.block_bytes()?) / sequential.rates.mb_per_s * 1e3;
    let seek_ns = time_ns - transfer_ns;
    // The sequential rate of each run, in operations of the random block size.
    let per_operation = sequential.rates.mb_per_s * 1e6 / sequential.rates.iops;
    let scale = per_operation / f64::from(random.block_bytes()?);
    let moved: Vec<f64> = sequential.runs.iter().map(|iops| iops * scale).collect();
    Ratio::from_rates(&random.runs, &moved).is_some_and(|r| r.is_below(1.0)).then(|| {
        deduction(
            "cost of a seek",
            format!(
                "A {} at depth 1 takes {}; moving its bytes at the sequential rate of {} MB/s takes {}. The remaining {} is access latency.",
                random.describe_work(),
                show_ns(time_ns),
                show_rate(sequential.rates.mb_per_s),
                show_ns(transfer_ns),
                show_ns(seek_ns)
            ),
            evidence([("time_ns", time_ns), ("transfer_ns", transfer_ns), ("seek_ns", seek_ns)]),
        )
    })
}

/// States the gain of a queue over one operation at a time.
fn deduce_scaling(rows: &[ResultRow], read_percent: u8) -> Vec<Deduction> {
    let Some(single) = rows.iter().find(|r| r.has_access(Pattern::Random, read_percent) && r.has_depth_one())
    else {
        return Vec::new();
    };
    let same_block = |r: &&ResultRow| r.block_bytes() == single.block_bytes();
    let queued = rows
        .iter()
        .filter(|r| r.has_access(Pattern::Random, read_percent) && !r.has_depth_one())
        .filter(same_block);
    queued.filter_map(|r| deduce_scaling_of_row(single, r)).collect()
}

fn deduce_scaling_of_row(single: &ResultRow, queued: &ResultRow) -> Option<Deduction> {
    let depth = requested_depth(queued.stream);
    let ratio = queued.rates.iops / single.rates.iops;
    let interval = Ratio::from_rates(&queued.runs, &single.runs)?;
    let meaning = match interval {
        r if r.is_below(1.0 / MIN_RATIO) => " Queueing costs more than it gains here.",
        r if r.is_one(MIN_RATIO) => " So a queue gains nothing: the rate is that of one operation at a time.",
        r if r.is_above(depth / 2.0) => " Operations run in parallel.",
        r if r.is_above(1.0) => "",
        _ => " The runs vary too much to show whether a queue gains anything.",
    };
    Some(deduction(
        "scaling with depth",
        format!(
            "{}: {} IOPS with up to {depth:.0} in flight against {} with one, {ratio:.1} times as many.{meaning}",
            queued.describe_work(),
            show_rate(queued.rates.iops),
            show_rate(single.rates.iops)
        ),
        evidence([
            ("depth", depth),
            ("ratio", ratio),
            ("iops", queued.rates.iops),
            ("iops_alone", single.rates.iops),
        ]),
    ))
}

/// States whether a write cache acknowledges writes, by comparing writes with reads.
fn deduce_write_cache(rows: &[ResultRow]) -> Option<Deduction> {
    let find = |p: u8| rows.iter().find(|r| r.has_access(Pattern::Random, p) && r.has_depth_one());
    let (read, write) = (find(100)?, find(0)?);
    let bytes = read.block_bytes().filter(|b| write.block_bytes() == Some(*b))?;
    let ratio = write.rates.iops / read.rates.iops;
    let block = show_block(u64::from(bytes));
    let interval = Ratio::from_rates(&write.runs, &read.runs)?;
    let meaning = if interval.is_above(MIN_RATIO) {
        format!(
            "are {ratio:.1} times as fast as reads: a write cache probably acknowledges them before they are on the medium"
        )
    } else if interval.is_below(1.0 / MIN_RATIO) {
        format!(
            "take {:.1} times as long as reads: if there is a write cache, it does not hide the cost of writing",
            1.0 / ratio
        )
    } else if interval.is_one(MIN_RATIO) {
        "are as fast as reads: a write cache makes no difference that can be seen".to_owned()
    } else {
        "cannot be distinguished from reads in these runs, so it is unknown whether a write cache helps them"
            .to_owned()
    };
    Some(deduction(
        "write cache",
        format!(
            "Random {block} writes at depth 1 {meaning} ({} against {} IOPS).",
            show_rate(write.rates.iops),
            show_rate(read.rates.iops)
        ),
        evidence([("ratio", ratio), ("write_iops", write.rates.iops), ("read_iops", read.rates.iops)]),
    ))
}

/// States the highest rate of the rows with this pattern: in MB/s if sequential, in operations per second if random.
fn deduce_highest_rate(rows: &[ResultRow], pattern: Pattern) -> Option<Deduction> {
    let in_bytes = pattern == Pattern::Sequential;
    let rate = |row: &ResultRow| if in_bytes { row.rates.mb_per_s } else { row.rates.iops };
    let alike = rows.iter().filter(|r| r.stream.access.pattern() == Some(pattern));
    let top = alike.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let (name, what, unit, key) = if in_bytes {
        ("throughput ceiling", "throughput", "MB/s", "mb_per_s")
    } else {
        ("highest IOPS", "rate", "IOPS", "iops")
    };
    let sentence = format!("Highest {what} measured: {} {unit} ({}).", show_rate(rate(top)), top.name);
    Some(deduction(name, sentence, evidence([(key, rate(top))])))
}

/// Lists the limiters with their rows. Relabelled rows are included, because their limiter is the reason for the label.
fn list_limiters(results: &[Measured]) -> Option<Deduction> {
    let mut by: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for result in results.iter().filter(|r| r.total.is_some() && !r.void) {
        by.entry(&result.limiter.name).or_default().push(result.name.clone());
    }
    let total: usize = by.values().map(Vec::len).sum();
    if total < 2 {
        return None;
    }
    let parts: Vec<String> = by
        .iter()
        .map(|(limiter, names)| match names.len() {
            n if n == total => format!("{limiter} (all {n})"),
            _ => format!("{limiter} ({})", join_names(names)),
        })
        .collect();
    Some(deduction(
        "what limits each row",
        format!("{}.", parts.join("; ")),
        by.iter().map(|(limiter, names)| ((*limiter).to_owned(), names.len() as f64)).collect(),
    ))
}

fn deduction(name: &str, sentence: String, evidence: Evidence) -> Deduction {
    Deduction { name: name.into(), sentence, evidence }
}

/// A run whose write rate fell and did not recover: its writes before and after the first fall (the
/// cliff).
struct Burst<'a> {
    ran: &'a CaseRun<'a>,
    /// Bytes from the first operation to the cliff, including the warm-up, which fills the device's cache too.
    bytes: f64,
    /// Seconds of the measured window until the cliff.
    until_s: f64,
    /// Mean bytes per second of the level before the cliff.
    before: f64,
    /// Bytes per second on each level after the cliff, in order.
    after: Vec<f64>,
}

/// Returns the burst of every result that has one.
fn find_bursts(answered: &[CaseAnswers]) -> Vec<Deduction> {
    answered.iter().filter(|a| !a.is_void()).filter_map(|a| find_burst_of_case(&a.case)).collect()
}

fn find_burst_of_case(case: &Case) -> Option<Deduction> {
    let streams = &case.job.phases.get(case.phase_index)?.streams;
    // Concurrent streams fill the device too, and the device does not count them separately.
    if streams.len() > 1 || case.stream.load_changes() || !case.does(Kind::Write) || !case.has_storage() {
        return None;
    }
    let all_series = series_of_runs(case).ok()?;
    let burst_of_run = |(ran, series)| find_burst(case, ran, series, find_steps_of_run(series).steps());
    let all: Vec<Burst> = case.runs.iter().zip(&all_series).filter_map(burst_of_run).collect();
    // The first run is least affected by earlier writes.
    let first = all.first()?;
    let mb = |rate: &f64| rate / 1e6;
    let then: Vec<String> = first.after.iter().map(|r| format!("then {} MB/s", show_rate(mb(r)))).collect();
    let through = if case.stream.cache.is_direct() { "" } else { ", through the page cache" };
    let numbers = evidence([
        ("burst_bytes", first.bytes),
        ("until_s", first.until_s),
        ("before_mb_per_s", mb(&first.before)),
        ("after_mb_per_s", first.after.last().map_or(f64::NAN, mb)),
        ("runs_with_a_burst", all.len() as f64),
    ]);
    let (context, more) = describe_drive_state(case, first);
    let sentence = format!(
        "{}: {} at {} MB/s, {}{through}{}. {context}",
        case.name,
        show_bytes(first.bytes as u64),
        show_rate(mb(&first.before)),
        then.join(", "),
        describe_other_runs(case, &all),
    );
    Some(Deduction { name: "burst".into(), sentence, evidence: numbers.into_iter().chain(more).collect() })
}

/// Returns the burst of a run; `None` if the rate did not fall, or if it ended no lower than before its first fall.
fn find_burst<'a>(case: &Case, ran: &'a CaseRun, series: &Series, steps: &[Step]) -> Option<Burst<'a>> {
    let fall = steps.iter().position(|s| s.after < s.before)?;
    let edge = |at: usize| series.from_ns + series.step_ns * at as f64;
    let mut edges = vec![edge(0)];
    edges.extend(steps.iter().map(|s| edge(s.at)));
    edges.push(edge(series.rates.len()));
    let levels: Vec<[f64; 2]> =
        edges.windows(2).map(|e| [bytes_written(ran, e[0], e[1]), (e[1] - e[0]) / 1e9]).collect();
    let (head, tail) = levels.split_at(fall + 1);
    let rate = |[bytes, seconds]: &[f64; 2]| bytes / seconds;
    let (before, after) = (rate(head.last()?), tail.iter().map(rate).collect::<Vec<_>>());
    let last = *after.last()?;
    // Bytes outside the window are those of the warm-up and of the cooldown.
    let inside: f64 = levels.iter().map(|l| l[0]).sum();
    let cooldown = last * case.job.phases.get(case.phase_index)?.cooldown_ns as f64 / 1e9;
    let issued = ran.stream.issued.get(&Kind::Write).map_or(0.0, |i| i.bytes as f64);
    let warm_up = (issued - inside - cooldown).max(0.0);
    let bytes = warm_up + head.iter().map(|l| l[0]).sum::<f64>();
    let until_s = head.iter().map(|l| l[1]).sum();
    (last < before).then_some(Burst { ran, bytes, until_s, before, after })
}

/// Returns the bytes written between two times in ns since the workers began.
fn bytes_written(ran: &CaseRun, from_ns: f64, to_ns: f64) -> f64 {
    let bytes_within = |row: &Interval| {
        let (a, b) = (row.start_ns as f64, row.end_ns as f64);
        let inside = (b.min(to_ns) - a.max(from_ns)).max(0.0) / (b - a);
        row.cells.get(&Kind::Write).map_or(0.0, |c| c.bytes as f64 * inside)
    };
    intervals_of(ran).map(bytes_within).sum()
}

/// Names the run of the first burst and counts the runs with a burst, ` (run 1; 3 of 5 runs fell like this, after 5.10
/// GiB to 5.80 GiB)`; empty for a single run.
fn describe_other_runs(case: &Case, all: &[Burst]) -> String {
    let (runs, Some(first)) = (case.runs.len(), all.first()) else { return String::new() };
    if runs == 1 {
        return String::new();
    }
    let number = first.ran.run.start.repeat.saturating_add(1);
    let (least, most) = all.iter().fold((f64::MAX, 0.0_f64), |(l, m), b| (l.min(b.bytes), m.max(b.bytes)));
    let span = match all.len() {
        1 => String::new(),
        _ => format!(", after {} to {}", show_bytes(least as u64), show_bytes(most as u64)),
    };
    format!(" (run {number}; {} of {runs} runs fell like this{span})", all.len())
}

/// Describes the drive in the run of a burst: its temperature, and the bytes written to the drive before the run.
fn describe_drive_state(case: &Case, burst: &Burst) -> (String, Evidence) {
    let mut numbers = Evidence::new();
    let heat = match drive_temperatures(case, burst.ran) {
        Some([start, stop]) => {
            numbers.extend(evidence([("degrees_at_start", start), ("degrees_at_stop", stop)]));
            format!(
                "The drive had {start:.0} degrees Celsius at the start of the run and {stop:.0} at its end"
            )
        }
        None => "The drive's temperature is unknown".to_owned(),
    };
    let wear = match written_before(case, burst.ran) {
        Some((bytes, names, since)) => {
            numbers.insert("device_written_before_bytes".into(), bytes as f64);
            format!("{} had been written to {names} since {since}", show_bytes(bytes))
        }
        None => "how much was written to the device before is unknown".to_owned(),
    };
    (format!("{heat}; {wear}; the kernel does not report the drive's wear (smartctl -a does)."), numbers)
}

/// Returns the temperatures of the target's drive that was hottest at the end of a run: at the run's start and stop.
fn drive_temperatures(case: &Case, ran: &CaseRun) -> Option<[f64; 2]> {
    let at = |moment| Some(sensors_below(case, ran.snapshot(moment).ok()?.text(TEMPERATURES).ok()?));
    let (start, stop) = (at(Moment::Start)?, at(Moment::Stop)?);
    let both = stop.iter().filter_map(|(place, sensor)| Some([start.get(place)?.now?, sensor.now?]));
    both.max_by_key(|[_, stop]| *stop).map(|pair| pair.map(|t| t as f64 / 1e3))
}

/// Returns the bytes written to the target's own devices before the run, the names of the devices, and the time from which the devices
/// count, such as `the machine started`. Leaves out disks below a loop device: they have other data.
fn written_before(case: &Case, ran: &CaseRun) -> Option<(u64, String, &'static str)> {
    let start = ran.snapshot(Moment::Start).ok()?;
    let written_bytes =
        |layer: &&Layer| Some(BlockStat::parse(start.text(&layer.stat_file).ok()?).ok()?.write.bytes);
    let devices = case.shared_layers().ok()?;
    let bytes =
        devices.iter().map(written_bytes).try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))?;
    let names: Vec<&str> = devices.iter().map(|l| l.name.as_str()).collect();
    let from_start = devices.iter().all(|l| l.kind == LayerKind::Disk);
    let since = match names.len() {
        _ if from_start => "the machine started",
        1 => "it was set up",
        _ => "they were set up",
    };
    Some((bytes, names.join(" and "), since))
}

/// Ten seconds of 4 KiB writes: 20,000 per second in the first 60 %, then 5,000, after a warm-up of 2,000 operations.
#[cfg(test)]
fn falling(runs: u32) -> Record {
    let fixture = Fixture { runs, ops: 10_000, ..Fixture::honest_write() };
    let mut record = shaped(&fixture, 100, 10, |_, t| if t < 0.6 { 20_000.0 } else { 5_000.0 });
    for issued in record.runs.iter_mut().flat_map(|r| &mut r.end.as_mut().unwrap().streams) {
        let window = issued.kinds[&Kind::Write].bytes;
        issued.issued.get_mut(&Kind::Write).unwrap().bytes = window + 2_000 * 4096;
    }
    record
}

#[cfg(test)]
fn deductions(record: &Record) -> Vec<Deduction> {
    crate::case::cases(record).iter().filter_map(find_burst_of_case).collect()
}

#[cfg(test)]
use crate::{Judging, fixture, fixture::Fixture, judge};

/// The deductions from six rows as in "IO Performance Benchmarking 101": sequential and random at depths 1 and 32, reads and writes.
#[cfg(test)]
fn six_rows(change: impl Fn(&str, Fixture) -> Fixture) -> Vec<Deduction> {
    let mut fixtures = Vec::new();
    for read_percent in [100, 0] {
        let fixture_with = |pattern, block_bytes, depth, ops| Fixture {
            name: format!("{pattern:?} {read_percent} {depth}"),
            pattern,
            block_bytes,
            depth,
            depth_seen: f64::from(depth) * 0.97,
            ops,
            read_percent,
            ..Fixture::honest()
        };
        fixtures.push(fixture_with(Pattern::Sequential, 512 << 10, 1, 1_000));
        fixtures.push(fixture_with(
            Pattern::Random,
            4096,
            1,
            if read_percent == 0 { 25_000 } else { 10_000 },
        ));
        fixtures.push(fixture_with(Pattern::Random, 4096, 32, 80_000));
    }
    let fixtures: Vec<Fixture> = fixtures.into_iter().map(|f| change(&f.name.clone(), f)).collect();
    judge(&fixture::together(&fixtures), &Judging::default()).deductions
}

#[test]
fn the_deductions_of_the_article_have_its_numbers() {
    let all = six_rows(|_, f| f);
    let names: Vec<&str> = all.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "cost of a seek",
            "cost of a seek",
            "scaling with depth",
            "scaling with depth",
            "write cache",
            "throughput ceiling",
            "highest IOPS",
            "what limits each row"
        ]
    );
    // Each read takes 100 us. At 524.288 MB/s, moving its 4096 B takes 7.8 us of that.
    assert!((all[0].evidence["seek_ns"] - (100_000.0 - 7_812.5)).abs() < 1.0, "{}", all[0].sentence);
    assert!((all[2].evidence["ratio"] - 8.0).abs() < 1e-6 && all[2].sentence.contains("8.0 times"));
    assert!(all[4].sentence.contains("2.5 times as fast"), "{}", all[4].sentence);
    assert!((all[5].evidence["mb_per_s"] - 524.288).abs() < 1e-6);
    assert!((all[6].evidence["iops"] - 80_000.0).abs() < 1e-6);
}

#[test]
fn relabelled_and_invalid_figures_allow_no_deduction() {
    let cached =
        six_rows(|name, f| if name == "Random 100 1" { Fixture { cpu_share: 0.99, ..f } } else { f });
    assert!(cached.iter().filter(|d| d.name == "cost of a seek").all(|d| d.sentence.contains("write")));
    assert!(!cached.iter().any(|d| d.name == "write cache"));
    let failed = six_rows(|_, f| Fixture { errors: 1, ..f });
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn noisy_runs_allow_no_deduction() {
    // Writes are 12 % slower than reads. Below, window lengths of 0.25 to 1.75 s make the write rates vary by a factor of
    // seven, which hides the difference.
    let mut fixtures = Vec::new();
    for (read_percent, ops) in [(100, 14_500), (0, 12_700)] {
        let name = format!("{read_percent}");
        fixtures.push(Fixture { name, depth: 1, depth_seen: 0.97, ops, read_percent, ..Fixture::honest() });
    }
    let mut record = fixture::together(&fixtures);
    let write_cache_sentence = |record: &model::record::Record| {
        let all = judge(record, &Judging::default()).deductions;
        all.into_iter().find(|d| d.name == "write cache").map(|d| d.sentence).unwrap_or_default()
    };
    assert!(
        write_cache_sentence(&record).contains("it does not hide the cost of writing"),
        "{}",
        write_cache_sentence(&record)
    );
    for run in record.runs.iter_mut().filter(|r| r.start.job == 1) {
        let window = &mut run.end.as_mut().unwrap().streams[0].window_ns;
        *window = *window * (2 + 3 * u64::from(run.start.repeat)) / 8;
    }
    assert!(
        write_cache_sentence(&record).contains("cannot be distinguished from reads"),
        "{}",
        write_cache_sentence(&record)
    );
    record.runs.retain(|r| r.start.repeat < 2);
    assert!(
        write_cache_sentence(&record).contains("cannot be distinguished from reads"),
        "two runs are too few: {}",
        write_cache_sentence(&record)
    );
}

#[test]
fn a_queue_without_gain_is_reported() {
    let flat = six_rows(|name, f| if name.ends_with(" 32") { Fixture { ops: 10_000, ..f } } else { f });
    assert!(
        flat.iter().any(|d| d.name == "scaling with depth" && d.sentence.contains("a queue gains nothing"))
    );
}

#[test]
fn a_cliff_of_writes_is_a_burst_with_its_bytes_and_two_rates() {
    let all = deductions(&falling(1));
    let [burst] = all.as_slice() else { panic!("{all:?}") };
    let known = 4096.0 * (2_000.0 + 20_000.0 * 6.0);
    assert!((burst.evidence["burst_bytes"] / known - 1.0).abs() < 0.01, "{burst:?}");
    assert!((burst.evidence["before_mb_per_s"] - 81.92).abs() < 0.1, "{burst:?}");
    assert!((burst.evidence["after_mb_per_s"] - 20.48).abs() < 0.1, "{burst:?}");
    assert!(
        burst.sentence.starts_with("RND4K Q32T1 write: 476.56 MiB at 81.9 MB/s, then 20.5 MB/s. "),
        "{}",
        burst.sentence
    );
    assert!(
        burst.sentence.contains(
            "The drive's temperature is unknown; 48 GiB had been written to vda since the machine started"
        ),
        "{}",
        burst.sentence
    );
}

#[test]
fn the_burst_of_the_first_run_is_reported_with_the_number_of_others() {
    let mut record = falling(3);
    // The rate of the second run stayed on its level.
    let flat = shaped(&Fixture { runs: 3, ..Fixture::honest_write() }, 100, 10, |_, _| 20_000.0);
    record.runs[1].intervals.clone_from(&flat.runs[1].intervals);
    let all = deductions(&record);
    assert!(
        all[0].sentence.contains("(run 1; 2 of 3 runs fell like this, after 476.56 MiB to 476.56 MiB)"),
        "{all:?}"
    );
}

#[test]
fn a_second_cliff_is_a_third_rate_and_a_recovery_is_no_burst() {
    let shape = |rate: fn(f64) -> f64| {
        deductions(&shaped(&Fixture { runs: 1, ..Fixture::honest_write() }, 100, 10, |_, t| rate(t)))
    };
    let twice = shape(|t| {
        if t < 0.4 {
            20_000.0
        } else if t < 0.7 {
            8_000.0
        } else {
            2_000.0
        }
    });
    assert!(twice[0].sentence.contains("at 81.9 MB/s, then 32.8 MB/s, then 8.19 MB/s. "), "{twice:?}");
    assert!((twice[0].evidence["until_s"] - 4.0).abs() < 1e-6, "{twice:?}");
    assert!((twice[0].evidence["after_mb_per_s"] - 8.192).abs() < 0.1, "{twice:?}");
    let back = shape(|t| if (0.4..0.7).contains(&t) { 2_000.0 } else { 20_000.0 });
    assert_eq!(back, []);
}

#[test]
fn a_loop_device_quotes_its_own_bytes_not_those_of_its_disk() {
    let mut record =
        shaped(&Fixture { runs: 1, leaf_share: Some(1.0), ..Fixture::honest_write() }, 100, 10, |_, t| {
            if t < 0.6 { 20_000.0 } else { 5_000.0 }
        });
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/loop0/stat"].clone().unwrap();
        let mut fields: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        // 1 GiB in sectors.
        fields[6] = (fields[6].parse::<u64>().unwrap() % 1_000 + (1 << 21)).to_string();
        snapshot.files.insert("/sys/block/loop0/stat".into(), Ok(fields.join(" ")));
    }
    let all = deductions(&record);
    assert!(all[0].sentence.contains("1.00 GiB had been written to loop0 since it was set up"), "{all:?}");
}

#[test]
fn temperatures_are_reported_if_the_drive_has_a_sensor() {
    let mut record = falling(1);
    for (snapshot, degrees) in record.runs[0].evidence.iter_mut().zip([38_000, 71_000]) {
        let text =
            format!("/sys/class/hwmon/hwmon3/name: nvme\n/sys/class/hwmon/hwmon3/temp1_input: {degrees}\n");
        snapshot.files.insert(TEMPERATURES.into(), Ok(text));
    }
    let all = deductions(&record);
    assert!(
        all[0].sentence.contains("38 degrees Celsius at the start of the run and 71 at its end"),
        "{all:?}"
    );
}

#[test]
fn reads_and_rates_that_do_not_fall_are_no_burst() {
    let shape =
        |fixture: &Fixture, rate: fn(f64) -> f64| deductions(&shaped(fixture, 100, 10, |_, t| rate(t)));
    let fall = |t| if t < 0.6 { 20_000.0 } else { 5_000.0 };
    let rise = |t| if t < 0.6 { 5_000.0 } else { 20_000.0 };
    let write = Fixture { runs: 1, ..Fixture::honest_write() };
    assert_eq!(shape(&Fixture { runs: 1, ..Fixture::honest() }, fall), []);
    assert_eq!(shape(&write, rise), []);
    assert_eq!(shape(&write, |_| 20_000.0), []);
    assert_eq!(shape(&write, fall).len(), 1);
}
