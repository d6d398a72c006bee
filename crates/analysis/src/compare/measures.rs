//! Measures: the numbers that two results have in common, one value per run.
//!
//! For: rate, percentiles and CPU time of every run of both sides. Not for: what they say.

use super::checks::e18_sum_of_peaks;
use super::sides::{One, Pooled};
use model::job::{Kind, Pattern, Stream};
use model::report::RunFigures;

/// Percentiles that are compared.
const RANKS: [&str; 3] = [MEDIAN, TAIL, "99.9"];
const MEDIAN: &str = "50";
/// The one that answers where the rate was asked for.
const TAIL: &str = "99";

/// A number on both sides, one value per run, the runs of each session by themselves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) more_is_better: bool,
    /// Whether it is a percentile: its values are known to a bucket of the histogram, and rarely normal.
    pub(super) percentile: bool,
    /// Whether it is a percentile from p99 on, which a few operations decide.
    pub(super) tail: bool,
    pub(super) a: Vec<Vec<f64>>,
    pub(super) b: Vec<Vec<f64>>,
}

type OfRun<'r> = dyn Fn(&RunFigures) -> Option<f64> + 'r;

/// What a number is called, and how it is read from a run.
struct Reading<'r> {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    /// Which percentile it is, one of [`RANKS`]; `None` for what is none.
    rank: Option<&'static str>,
    of: Box<OfRun<'r>>,
}

/// The measures of a pair, the one that answers first; and those that only some runs have, with the reason.
pub(super) fn measures(a: &Pooled, b: &Pooled) -> (Vec<Measure>, Vec<String>) {
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for reading in readings(a, b) {
        let values = |side: &Pooled| -> Vec<Vec<Option<f64>>> {
            let positive = |v: &f64| v.is_finite() && *v > 0.0;
            let of = |r: &RunFigures| (reading.of)(r).filter(positive);
            side.iter().map(|one| one.result.runs.iter().map(of).collect()).collect()
        };
        let (a, b) = (values(a), values(b));
        let runs = || a.iter().chain(&b).flatten();
        let missing = runs().filter(|v| v.is_none()).count();
        if missing == 0 && !a.concat().is_empty() && !b.concat().is_empty() {
            let whole = |side: Vec<Vec<Option<f64>>>| {
                side.into_iter().map(|s| s.into_iter().flatten().collect()).collect()
            };
            let Reading { name, unit, more_is_better, rank, .. } = reading;
            let (percentile, tail) = (rank.is_some(), rank.is_some_and(|rank| rank != MEDIAN));
            all.push(Measure { name, unit, more_is_better, percentile, tail, a: whole(a), b: whole(b) });
        } else if missing < runs().count() {
            // Without the runs that have too few operations for it, it would be a number of the others.
            left_out.push(format!("{}: {missing} of {} runs do not have it", reading.name, runs().count()));
        }
    }
    (all, left_out)
}

fn readings<'r>(a: &'r Pooled, b: &'r Pooled) -> Vec<Reading<'r>> {
    let streams: Vec<&Stream> = a.iter().chain(b).filter_map(|one| stream(*one)).collect();
    let mut all = vec![rate(&streams)];
    for kind in Kind::ALL {
        all.extend(RANKS.iter().map(|rank| percentile(kind, rank)));
    }
    all.push(Reading {
        name: "CPU per operation".into(),
        unit: "ns",
        more_is_better: false,
        rank: None,
        of: Box::new(|r| r.cpu_ns_per_op),
    });
    let made_up = |r: &Reading| a.iter().chain(b).any(|one| e18_sum_of_peaks::contradicts(*one, &r.name));
    all.retain(|r| r.rank.is_none() || !made_up(r));
    // The rate of an open loop is what was asked for. What it costs to be served is the answer: the tail.
    if streams.iter().any(|s| s.is_open_loop()) {
        let tail = |r: &Reading| r.rank == Some(TAIL) && has(a, r) && has(b, r);
        if let Some(at) = all.iter().position(tail) {
            let first = all.remove(at);
            all.insert(0, first);
        }
    }
    all
}

fn has(side: &Pooled, reading: &Reading) -> bool {
    let runs = || side.iter().flat_map(|one| &one.result.runs);
    runs().next().is_some() && runs().all(|r| (reading.of)(r).is_some())
}

/// The stream that a result is of.
fn stream(one: One<'_>) -> Option<&Stream> {
    one.result.job.phases.get(one.result.phase as usize)?.streams.get(one.result.stream as usize)
}

/// Bytes where it is sequential, or where operations are of several sizes; else operations, and where no data is moved.
fn rate<'r>(streams: &[&Stream]) -> Reading<'r> {
    let sizes: Vec<Option<u32>> = streams.iter().map(|s| s.access.block_bytes()).collect();
    let one_size = sizes.windows(2).all(|w| w[0] == w[1]) && sizes.iter().all(Option::is_some);
    let sequential = |s: &&Stream| s.access.pattern() == Some(Pattern::Sequential);
    let moves = streams.iter().all(|s| !s.moves_no_data());
    let in_bytes = moves && (streams.iter().any(sequential) || !one_size);
    Reading {
        name: if in_bytes { "MB/s".into() } else { "IOPS".into() },
        unit: if in_bytes { "MB/s" } else { "IOPS" },
        more_is_better: true,
        rank: None,
        of: Box::new(move |r| Some(if in_bytes { r.mb_per_s } else { r.iops })),
    }
}

fn percentile<'r>(kind: Kind, rank: &'static str) -> Reading<'r> {
    Reading {
        name: format!("{} p{rank}", kind.word()),
        unit: "ns",
        more_is_better: false,
        rank: Some(rank),
        of: Box::new(move |r| {
            r.percentiles_ns.get(kind.word())?.get(rank).copied().flatten().map(|ns| ns as f64)
        }),
    }
}
