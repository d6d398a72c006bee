//! D17: a drive that had to wake before it could answer.
//!
//! For: the first operations of each run against all later ones. Not for: CPUs that sleep (D12), nor slow starts that take
//! longer than a moment (E03).

use crate::case::{Case, CaseRun, no_run, share};
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use crate::threshold::{Ns, Share};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::Kind;
use model::record::Interval;
use model::units::{show_count, show_ns, show_share};

/// How much longer than the median, and than the longest operation of all the rest of the run, the first ones take where
/// something woke.
const TIMES: u64 = 3;
/// What waking takes at least: states that a drive leaves faster are not told apart from the start of our own threads.
const LEAST_NS: u64 = 1_000_000;
/// Runs that must all begin so. One that does is chance: some interval has to hold the longest operation.
const FEWEST_RUNS: usize = 3;
/// What is so long that one run is enough: a disk that spins up. Nothing else makes only the first operation wait that long.
const SPIN_UP_NS: u64 = 1_000_000_000;
/// Intervals that the first one is compared with.
const FEWEST_INTERVALS: usize = 5;
/// Share of the window from which waking matters to the mean.
const BIASES_FROM: Share = Share(0.05);
/// The file that says how long the drive may take to wake.
const TOLERANCE: &str = "pm_qos_latency_tolerance_us";

pub(super) const CHECK: Check = Check {
    id: CheckId::D17,
    name: "POWER_STATE",
    belief: "the drive was awake",
    page: Page {
        reads: "The longest latency of the first interval of each run's window and of all later ones, the medians of the \
                intervals, and `power/pm_qos_latency_tolerance_us` of an NVMe drive where it is shown.",
        formula: formula!(
            "In a run something woke where the longest operation of its first interval took {least} or more, {TIMES} times \
             the median, and {TIMES} times the longest of all later intervals. It is a finding where every run began so and \
             there are {FEWEST_RUNS} runs, or where it took {spin_up}, as a disk that spins up. Biased where waking is \
             {BIASES_FROM} of the windows, else a note. Runs with fewer than {FEWEST_INTERVALS} later \
             intervals are not checked.",
            least = Ns(LEAST_NS as f64),
            spin_up = Ns(SPIN_UP_NS as f64)
        ),
        provoke: "`hdparm -y /dev/sdX; fathom run --rw randread --warmup 0 --runs 1 /dev/sdX` on a spinning disk, which \
                  then has to spin up.",
        fix: "Use a warm-up (`--warmup 1s`), or switch power saving off (`nvme_core.default_ps_max_latency_us=0`, `hdparm -B \
              255`, link power `max_performance`).",
        accept: "Accept it where the drive will sleep in use too.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| woken(&crate::fixture::Fixture::honest(), 80_000_000, 5)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record.runs.iter_mut().for_each(|r| r.intervals.clear());
        record
    },
};

/// How a run began: its first interval's longest operation, the longest of all the rest, and the median.
struct Begin {
    first: u64,
    rest: u64,
    median: u64,
}

impl Begin {
    fn woke(&self) -> bool {
        let times = |ns: u64| ns.saturating_mul(TIMES);
        self.first >= LEAST_NS && self.first >= times(self.median) && self.first >= times(self.rest)
    }
}

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let begins: Vec<Begin> = case.runs.iter().map(|r| begin(case, r)).collect::<Known<_>>()?;
    let longest = begins.iter().map(|b| b.first).max().ok_or_else(no_run)?;
    let woke = begins.iter().filter(|b| b.woke()).count();
    let of_window = share(begins.iter().map(|b| b.first as f64).sum(), case.window_ns());
    let mut numbers = evidence([("runs_that_woke", woke as f64), ("longest_ns", longest as f64)]);
    let layers = || case.places().flat_map(|p| &p.layers);
    numbers
        .extend(layers().find_map(|l| Some((TOLERANCE.to_owned(), l.device_number(TOLERANCE).ok()? as f64))));
    let enough = begins.len() >= FEWEST_RUNS || longest >= SPIN_UP_NS;
    if woke < begins.len() || !enough {
        return Ok(Answer::Holds("The first operations were no slower than later ones.", numbers));
    }
    numbers.insert("share_of_windows".into(), of_window);
    let median = begins.iter().map(|b| b.median).max().unwrap_or(0);
    Ok(Answer::Finding(Detail::new(
        if of_window >= BIASES_FROM { Severity::Biased } else { Severity::Note },
        format!(
            "Each of {} began with an operation that took up to {}, where the median is {}: the drive had to wake. That is {} of \
             the time measured.",
            if woke == 1 { "1 run".to_owned() } else { format!("{} runs", show_count(woke as f64)) },
            show_ns(longest as f64),
            show_ns(median as f64),
            show_share(of_window)
        ),
        numbers,
    )))
}

fn begin(case: &Case, ran: &CaseRun) -> Known<Begin> {
    let mut rows: Vec<&Interval> = ran.run.intervals.iter().filter(|i| i.stream == case.index).collect();
    rows.sort_by_key(|i| i.start_ns);
    let moving = |i: &&Interval| {
        Kind::MOVING.iter().filter_map(|k| i.cells.get(k)).map(|c| (c.2, c.4)).max_by_key(|c| c.1)
    };
    let cells: Vec<(u64, u64)> = rows.iter().filter_map(moving).collect();
    let Some((first, rest)) = cells.split_first().filter(|(_, rest)| rest.len() >= FEWEST_INTERVALS) else {
        return Err("the runs are too short to tell their first operations from the others".into());
    };
    let mut medians: Vec<u64> = rest.iter().map(|c| c.0).collect();
    medians.sort_unstable();
    let median = medians.get(medians.len() / 2).copied().unwrap_or(0);
    Ok(Begin { first: first.1, rest: rest.iter().map(|c| c.1).max().unwrap_or(0), median })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record whose first runs begin with an operation that long.
#[cfg(test)]
fn woken(fixture: &Fixture, ns: u64, runs: usize) -> model::record::Record {
    let mut record = fixture.record();
    for run in record.runs.iter_mut().take(runs) {
        run.intervals[0].cells.values_mut().for_each(|c| c.4 = ns);
    }
    record
}

#[test]
fn every_run_must_begin_so_and_what_takes_long_biases() {
    let honest = Fixture::honest();
    assert_eq!(CHECK.severity(&woken(&honest, 80_000_000, 5)), Some(Severity::Biased), "8 % of each second");
    assert_eq!(CHECK.severity(&woken(&honest, 20_000_000, 5)), Some(Severity::Note), "2 %");
    assert!(matches!(CHECK.answer(&woken(&honest, 80_000_000, 4)), Ok(Answer::Holds(..))));
    // The median of the fixture is 3.15 ms, and so is the longest of all others.
    assert!(matches!(CHECK.answer(&woken(&honest, 9_000_000, 5)), Ok(Answer::Holds(..))));
}

#[test]
fn one_run_tells_only_a_disk_that_spins_up() {
    let one = Fixture { runs: 1, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&woken(&one, 900_000_000, 1)), None);
    assert_eq!(CHECK.severity(&woken(&one, 1_000_000_000, 1)), Some(Severity::Biased));
}

#[test]
fn few_intervals_tell_nothing() {
    let mut record = woken(&Fixture::honest(), 80_000_000, 5);
    record.runs.iter_mut().for_each(|r| r.intervals.truncate(5));
    assert!(CHECK.answer(&record).is_err());
}
