//! D17: a drive that had to wake up before it could answer. Fires if in every run the longest operation of the
//! first interval is much longer than the median and than all later operations.

use crate::checks::prelude::*;
use model::record::Interval;

/// Factor by which the first operations must exceed the median and the longest operation of the rest of the run.
const FACTOR: u64 = 3;
/// Shortest wake-up. Faster ones look like the start of fathom's threads.
const LEAST_NS: u64 = 1_000_000;
/// Fewest runs that must all start like this. A single one is chance: some interval has to hold the longest
/// operation.
const FEWEST_RUNS: usize = 3;
/// A wake-up this long needs only a single run: a disk that spins up. Nothing else delays only the first
/// operation by so much.
const SPIN_UP_NS: u64 = 1_000_000_000;
/// Fewest later intervals to compare the first one with.
const FEWEST_INTERVALS: usize = 5;
/// Share of the windows above which the wake-up biases the mean.
const BIASES_FROM: Share = Share(0.05);
/// File with the time that the drive may take to wake up.
const TOLERANCE: &str = "pm_qos_latency_tolerance_us";

pub(super) const CHECK: Check = Check {
    id: CheckId::D17,
    name: "POWER_STATE",
    belief: "the drive was awake",
    reads: "The longest latency of the first interval of each run's window and of all later intervals, the \
            medians of the intervals, and `power/pm_qos_latency_tolerance_us` of an NVMe drive, if \
            available.",
    formula: formula!(
        "The drive woke up in a run if the longest operation of the first interval took {least} or more, \
         {FACTOR} times the median, and {FACTOR} times the longest operation of all later intervals. Fires \
         if every run began so and there are at least {FEWEST_RUNS} runs, or the wake-up took {spin_up}, \
         like a disk that spins up. Biased if waking up took at least {BIASES_FROM} of the windows, \
         otherwise a note. Runs with fewer than {FEWEST_INTERVALS} later intervals are not checked.",
        least = Ns(LEAST_NS as f64),
        spin_up = Ns(SPIN_UP_NS as f64)
    ),
    provoke: "`hdparm -y /dev/sdX; fathom run --rw randread --warmup 0 --runs 1 /dev/sdX` on a hard disk, \
              which then must spin up.",
    fix: "Use a warm-up (`--warmup 1s`), or disable power saving (`nvme_core.default_ps_max_latency_us=0`, \
          `hdparm -B 255`, link power `max_performance`).",
    accept: "Accept it if the drive will also sleep in use.",
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

/// The start of a run: longest operation of the first interval, longest operation of the rest, and median.
struct RunStart {
    first: u64,
    rest: u64,
    median: u64,
}

impl RunStart {
    fn has_woken(&self) -> bool {
        let scaled = |ns: u64| ns.saturating_mul(FACTOR);
        self.first >= LEAST_NS && self.first >= scaled(self.median) && self.first >= scaled(self.rest)
    }
}

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let run_starts: Vec<RunStart> = case.runs.iter().map(|r| run_start(case, r)).collect::<Known<_>>()?;
    let longest = run_starts.iter().map(|b| b.first).max().ok_or_else(no_run)?;
    let woke = run_starts.iter().filter(|b| b.has_woken()).count();
    let share_of_windows = share(run_starts.iter().map(|b| b.first as f64).sum(), case.window_ns());
    let mut numbers = evidence([("runs_that_woke", woke as f64), ("longest_ns", longest as f64)]);
    let layers = || case.places().flat_map(|p| &p.layers);
    numbers
        .extend(layers().find_map(|l| Some((TOLERANCE.to_owned(), l.device_number(TOLERANCE).ok()? as f64))));
    let has_enough_runs = run_starts.len() >= FEWEST_RUNS || longest >= SPIN_UP_NS;
    if woke < run_starts.len() || !has_enough_runs {
        return holds("The first operations were no slower than later ones.", numbers);
    }
    numbers.insert("share_of_windows".into(), share_of_windows);
    let median = run_starts.iter().map(|b| b.median).max().unwrap_or(0);
    finding!(
        if share_of_windows >= BIASES_FROM { Severity::Biased } else { Severity::Note },
        numbers,
        "Each of {} began with an operation that took up to {}, with a median of {}: the drive had to wake \
         up. This took {} of the measured time.",
        if woke == 1 { "1 run".to_owned() } else { format!("{} runs", show_count(woke as f64)) },
        show_ns(longest as f64),
        show_ns(median as f64),
        show_share(share_of_windows)
    )
}

fn run_start(case: &Case, ran: &CaseRun) -> Known<RunStart> {
    let mut rows: Vec<&Interval> = ran.run.intervals.iter().filter(|i| i.stream == case.index).collect();
    rows.sort_by_key(|i| i.start_ns);
    let moving = |i: &&Interval| {
        Kind::MOVING.iter().filter_map(|k| i.cells.get(k)).map(|c| (c.2, c.4)).max_by_key(|c| c.1)
    };
    let cells: Vec<(u64, u64)> = rows.iter().filter_map(moving).collect();
    let Some((first, rest)) = cells.split_first().filter(|(_, rest)| rest.len() >= FEWEST_INTERVALS) else {
        return Err("the runs are too short to compare their first operations with later ones".into());
    };
    let mut medians: Vec<u64> = rest.iter().map(|c| c.0).collect();
    medians.sort_unstable();
    let median = medians.get(medians.len() / 2).copied().unwrap_or(0);
    Ok(RunStart { first: first.1, rest: rest.iter().map(|c| c.1).max().unwrap_or(0), median })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record whose first `runs` runs start with an operation of `ns`.
#[cfg(test)]
fn woken(fixture: &Fixture, ns: u64, runs: usize) -> model::record::Record {
    let mut record = fixture.record();
    for run in record.runs.iter_mut().take(runs) {
        run.intervals[0].cells.values_mut().for_each(|c| c.4 = ns);
    }
    record
}

#[test]
fn a_wake_up_in_every_run_is_found_and_a_long_one_biases() {
    let honest = Fixture::honest();
    assert_eq!(CHECK.severity(&woken(&honest, 80_000_000, 5)), Some(Severity::Biased), "8 % of each second");
    assert_eq!(CHECK.severity(&woken(&honest, 20_000_000, 5)), Some(Severity::Note), "2 %");
    assert!(matches!(CHECK.answer(&woken(&honest, 80_000_000, 4)), Ok(Answer::Holds(..))));
    // The median of the fixture and the longest later operation are 3.15 ms.
    assert!(matches!(CHECK.answer(&woken(&honest, 9_000_000, 5)), Ok(Answer::Holds(..))));
}

#[test]
fn a_single_run_suffices_only_for_a_disk_that_spins_up() {
    let one = Fixture { runs: 1, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&woken(&one, 900_000_000, 1)), None);
    assert_eq!(CHECK.severity(&woken(&one, 1_000_000_000, 1)), Some(Severity::Biased));
}

#[test]
fn few_intervals_are_not_checked() {
    let mut record = woken(&Fixture::honest(), 80_000_000, 5);
    record.runs.iter_mut().for_each(|r| r.intervals.truncate(5));
    assert!(CHECK.answer(&record).is_err());
}
