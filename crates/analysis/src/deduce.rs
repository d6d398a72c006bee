//! What the figures say together: the deductions that a person would make by hand from a table of patterns.
//!
//! For: seek cost, scaling with depth, write cache, ceilings, and what limits each row ("IO Performance Benchmarking
//! 101"). Not for: a figure alone, nor figures that a finding invalidates or renames: from those nothing follows.

use crate::case::asked_depth;
use crate::checks::{Evidence, evidence};
use crate::findings::{CaseAnswers, about};
use model::job::{Pattern, Percent, Stream};
use model::report::{Deduction, Measured, Rates};
use model::units::{show_block, show_ns, show_rate};
use stats::ratio::Ratio;
use std::collections::BTreeMap;

/// Ratio from which two rates are called different, where their runs carry it: below, nobody would act on it.
const DIFFERENT: f64 = 1.1;

/// A result that means what its name says.
struct Row<'a> {
    name: &'a str,
    stream: &'a Stream,
    rates: &'a Rates,
    /// Operations per second of each run.
    runs: Vec<f64>,
}

impl Row<'_> {
    fn is(&self, pattern: Pattern, read_percent: u8) -> bool {
        let access = &self.stream.access;
        access.pattern() == Some(pattern) && access.read_percent() == Some(Percent::whole(read_percent))
    }

    /// Bytes of an operation, where all have the same.
    fn block_bytes(&self) -> Option<u32> {
        self.stream.access.block_bytes()
    }

    fn is_alone(&self) -> bool {
        asked_depth(self.stream) <= 1.0
    }

    /// `4K random read`.
    fn describe_work(&self) -> String {
        self.stream.access.describe()
    }
}

/// Every deduction that the figures allow, in a fixed order.
pub(crate) fn deduce(answered: &[CaseAnswers], results: &[Measured]) -> Vec<Deduction> {
    let rows: Vec<Row> = answered.iter().zip(results).filter_map(|(a, m)| row(a, m)).collect();
    let mut out = Vec::new();
    for read_percent in [100, 0] {
        out.extend(seek(&rows, read_percent));
    }
    for read_percent in [100, 0] {
        out.extend(scaling(&rows, read_percent));
    }
    out.extend(write_cache(&rows));
    out.extend(throughput(&rows));
    out.extend(processing(&rows));
    out.extend(limits(results));
    out
}

/// Rows stand for one stream alone; streams that ran beside one another explain nothing about a device at rest.
fn row<'a>(answered: &'a CaseAnswers, measured: &'a Measured) -> Option<Row<'a>> {
    let phase = answered.case.job.phases.get(answered.case.phase)?;
    let alone = phase.streams.len() == 1 && answered.case.has_storage();
    let rates = measured.total.as_ref().filter(|t| t.iops > 0.0 && t.mb_per_s > 0.0)?;
    // What a job holds back says nothing about what the storage can do.
    (alone && answered.is_sound() && answered.case.stream.is_unheld()).then_some(Row {
        name: &measured.name,
        stream: &answered.case.stream,
        rates,
        runs: measured.runs.iter().map(|r| r.iops).collect(),
    })
}

/// What a random operation costs beyond its transfer.
fn seek(rows: &[Row], read_percent: u8) -> Option<Deduction> {
    let random = rows.iter().find(|r| r.is(Pattern::Random, read_percent) && r.is_alone())?;
    let sequential =
        best(rows.iter().filter(|r| r.is(Pattern::Sequential, read_percent)), |r| r.rates.mb_per_s)?;
    let time_ns = 1e9 / random.rates.iops;
    let transfer_ns = f64::from(random.block_bytes()?) / sequential.rates.mb_per_s * 1e3;
    let seek_ns = time_ns - transfer_ns;
    // Operations per second that the sequential rate is, at the size of the random ones.
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

/// What a queue gains over one operation at a time.
fn scaling(rows: &[Row], read_percent: u8) -> Vec<Deduction> {
    let Some(alone) = rows.iter().find(|r| r.is(Pattern::Random, read_percent) && r.is_alone()) else {
        return Vec::new();
    };
    let same_block = |r: &&Row| r.block_bytes() == alone.block_bytes();
    let queued =
        rows.iter().filter(|r| r.is(Pattern::Random, read_percent) && !r.is_alone()).filter(same_block);
    queued.filter_map(|r| scaled(alone, r)).collect()
}

fn scaled(alone: &Row, queued: &Row) -> Option<Deduction> {
    let depth = asked_depth(queued.stream);
    let ratio = queued.rates.iops / alone.rates.iops;
    let surely = Ratio::from_rates(&queued.runs, &alone.runs)?;
    let meaning = match surely {
        r if r.is_below(1.0 / DIFFERENT) => " Queueing costs more than it gains here.",
        r if r.is_one(DIFFERENT) => " 1.0 means no queueing: the operations are done one after another.",
        r if r.is_above(depth / 2.0) => " Operations are carried out in parallel.",
        r if r.is_above(1.0) => "",
        _ => " The runs vary too much to say whether a queue gains anything.",
    };
    Some(deduction(
        "scaling with depth",
        format!(
            "{}: {} IOPS with {depth:.0} in flight against {} with one, {ratio:.1} times as many.{meaning}",
            queued.describe_work(),
            show_rate(queued.rates.iops),
            show_rate(alone.rates.iops)
        ),
        evidence([
            ("depth", depth),
            ("ratio", ratio),
            ("iops", queued.rates.iops),
            ("iops_alone", alone.rates.iops),
        ]),
    ))
}

/// Whether a write cache acknowledges, seen from writes against reads.
fn write_cache(rows: &[Row]) -> Option<Deduction> {
    let find = |p: u8| rows.iter().find(|r| r.is(Pattern::Random, p) && r.is_alone());
    let (read, write) = (find(100)?, find(0)?);
    let bytes = read.block_bytes().filter(|b| write.block_bytes() == Some(*b))?;
    let ratio = write.rates.iops / read.rates.iops;
    let block = show_block(u64::from(bytes));
    let surely = Ratio::from_rates(&write.runs, &read.runs)?;
    let meaning = if surely.is_above(DIFFERENT) {
        format!(
            "are {ratio:.1} times as fast as reads: a write cache acknowledges them before they are on the medium"
        )
    } else if surely.is_below(1.0 / DIFFERENT) {
        format!("take {:.1} times as long as reads: no write cache hides the cost of writing", 1.0 / ratio)
    } else if surely.is_one(DIFFERENT) {
        "are as fast as reads: a write cache makes no difference that can be seen".to_owned()
    } else {
        "cannot be distinguished from reads in these runs, so whether a write cache helps them is not known"
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

fn throughput(rows: &[Row]) -> Option<Deduction> {
    let top = best(rows.iter().filter(|r| r.stream.access.pattern() == Some(Pattern::Sequential)), |r| {
        r.rates.mb_per_s
    })?;
    let rate = top.rates.mb_per_s;
    Some(deduction(
        "throughput ceiling",
        format!("Highest throughput measured: {} MB/s ({}).", show_rate(rate), top.name),
        evidence([("mb_per_s", rate)]),
    ))
}

fn processing(rows: &[Row]) -> Option<Deduction> {
    let top =
        best(rows.iter().filter(|r| r.stream.access.pattern() == Some(Pattern::Random)), |r| r.rates.iops)?;
    let iops = top.rates.iops;
    Some(deduction(
        "highest IOPS",
        format!("Highest rate measured: {} IOPS ({}).", show_rate(iops), top.name),
        evidence([("iops", iops)]),
    ))
}

/// Which limiter holds back which rows. Renamed rows are among them: their limiter is what renamed them.
fn limits(results: &[Measured]) -> Option<Deduction> {
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
            _ => format!("{limiter} ({})", about(names)),
        })
        .collect();
    Some(deduction(
        "what limits each row",
        format!("{}.", parts.join("; ")),
        by.iter().map(|(limiter, names)| ((*limiter).to_owned(), names.len() as f64)).collect(),
    ))
}

fn best<'r, 'a>(rows: impl Iterator<Item = &'r Row<'a>>, of: fn(&Row) -> f64) -> Option<&'r Row<'a>>
where
    'a: 'r,
{
    rows.max_by(|a, b| of(a).total_cmp(&of(b)))
}

fn deduction(name: &str, sentence: String, evidence: Evidence) -> Deduction {
    Deduction { name: name.into(), sentence, evidence }
}

#[cfg(test)]
use crate::{Judging, fixture, fixture::Fixture, judge};

/// Six rows as in the article: sequential and random at depth 1 and 32, reads and writes.
#[cfg(test)]
fn six(change: impl Fn(&str, Fixture) -> Fixture) -> Vec<Deduction> {
    let mut fixtures = Vec::new();
    for read_percent in [100, 0] {
        let of = |pattern, block_bytes, depth, ops| Fixture {
            name: format!("{pattern:?} {read_percent} {depth}"),
            pattern,
            block_bytes,
            depth,
            depth_seen: f64::from(depth) * 0.97,
            ops,
            read_percent,
            ..Fixture::honest()
        };
        fixtures.push(of(Pattern::Sequential, 512 << 10, 1, 1_000));
        fixtures.push(of(Pattern::Random, 4096, 1, if read_percent == 0 { 25_000 } else { 10_000 }));
        fixtures.push(of(Pattern::Random, 4096, 32, 80_000));
    }
    let fixtures: Vec<Fixture> = fixtures.into_iter().map(|f| change(&f.name.clone(), f)).collect();
    judge(&fixture::together(&fixtures), &Judging::default()).deductions
}

#[test]
fn the_article_is_deduced_with_its_numbers() {
    let all = six(|_, f| f);
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
    // 100 us each, 4096 B at 524.288 MB/s are 7.8 us.
    assert!((all[0].evidence["seek_ns"] - (100_000.0 - 7_812.5)).abs() < 1.0, "{}", all[0].sentence);
    assert!((all[2].evidence["ratio"] - 8.0).abs() < 1e-6 && all[2].sentence.contains("8.0 times"));
    assert!(all[4].sentence.contains("2.5 times as fast"), "{}", all[4].sentence);
    assert!((all[5].evidence["mb_per_s"] - 524.288).abs() < 1e-6);
    assert!((all[6].evidence["iops"] - 80_000.0).abs() < 1e-6);
}

#[test]
fn nothing_follows_from_a_renamed_or_void_figure() {
    let cached = six(|name, f| if name == "Random 100 1" { Fixture { cpu_share: 0.99, ..f } } else { f });
    assert!(cached.iter().filter(|d| d.name == "cost of a seek").all(|d| d.sentence.contains("write")));
    assert!(!cached.iter().any(|d| d.name == "write cache"));
    let failed = six(|_, f| Fixture { errors: 1, ..f });
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn what_the_runs_do_not_carry_is_not_said() {
    // Rates of single runs that vary by a factor of three around a mean that is 13 % lower.
    let mut fixtures = Vec::new();
    for (read_percent, ops) in [(100, 14_500), (0, 12_700)] {
        let name = format!("{read_percent}");
        fixtures.push(Fixture { name, depth: 1, depth_seen: 0.97, ops, read_percent, ..Fixture::honest() });
    }
    let mut record = fixture::together(&fixtures);
    let said = |record: &model::record::Record| {
        let all = judge(record, &Judging::default()).deductions;
        all.into_iter().find(|d| d.name == "write cache").map(|d| d.sentence).unwrap_or_default()
    };
    assert!(said(&record).contains("no write cache hides"), "{}", said(&record));
    for run in record.runs.iter_mut().filter(|r| r.start.job == 1) {
        let window = &mut run.end.as_mut().unwrap().streams[0].window_ns;
        *window = *window * (2 + 3 * u64::from(run.start.repeat)) / 8;
    }
    assert!(said(&record).contains("cannot be distinguished from reads"), "{}", said(&record));
    record.runs.retain(|r| r.start.repeat < 2);
    assert!(
        said(&record).contains("cannot be distinguished from reads"),
        "two runs say nothing: {}",
        said(&record)
    );
}

#[test]
fn a_queue_that_gains_nothing_is_said_plainly() {
    let flat = six(|name, f| if name.ends_with(" 32") { Fixture { ops: 10_000, ..f } } else { f });
    assert!(flat.iter().any(|d| d.name == "scaling with depth" && d.sentence.contains("no queueing")));
}
