//! Whether the operations were performed as planned: failures, shares and division among workers (B12, B13,
//! B17).
//!
//! B12 counts the errors of every run of the job, including runs that errors ended. A failed sync of a target
//! that the stream wrote counts like a failed operation: the kernel accepted the writes but could not store
//! them. B13 computes the mean and variance of the plan's random draws, and fires if the counts or bytes of a
//! run's window differ by more than chance and the window's edges allow. B17 compares when the workers of a
//! stream ended and how many operations each did.

use super::DEVIATIONS;
use crate::checks::prelude::*;
use crate::figures::{RATED_KINDS, count_errors};
use model::errno;
use model::job::{Line, PerKind, Sizes};
use model::record::{Issued, SyncFailure, SyncedBy};
use std::cmp::Reverse;

/// Maximum number of error numbers that a sentence lists. The session file contains all of them.
const NAMED: usize = 3;

pub(super) const ERRORS_COUNTED: Check = Check {
    id: CheckId::B12,
    name: "ERRORS_COUNTED",
    belief: "every operation succeeded",
    reads: "The result of every operation from the kernel, in every run, including runs that errors ended: \
            errors by number, and operations that moved fewer bytes than requested. With --verify, reads of \
            unexpected data are errors too. Also the results of the final sync and the close of each target.",
    formula: formula!(
        "Void from the first failed or short operation, and from the first failed sync or close of a target \
         that the stream writes. No share is harmless: a failed operation is often the fastest, and a test \
         should reveal a device that fails one operation in a million. After a failed sync, writes that \
         counted as done may be lost."
    ),
    provoke: "As root: `truncate -s 1g IMAGE`, `losetup -f --show IMAGE`, `truncate -s 512m IMAGE`, then \
              `fathom run --rw randread /dev/loopN`: reads beyond the end fail with EIO.",
    fix: "Check the kernel log (`dmesg`) for the device, the free space for ENOSPC, and whether --bs and \
          --offset suit the target for EINVAL. For EILSEQ, the notes give the place: the data there are \
          damaged or were not written by this workload.",
    accept: "Accept it only if you want to measure failures.",
    applies: |_| true,
    ask: Ask::Alone(check_errors_counted),
    #[cfg(test)]
    fires: Some(|| Fixture { errors: 7, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { runs: 0, ..Fixture::honest() }.record(),
};

fn check_errors_counted(case: &Case) -> Known<Answer> {
    let streams = case.ends.iter().flat_map(|e| &e.streams).filter(|s| s.stream == case.stream_index);
    let issued_by_kind: Vec<&Issued> = streams.flat_map(|s| s.issued.values()).collect();
    let errors = count_errors(case);
    let failed = errors.values().fold(0_u64, |a, b| a.saturating_add(*b));
    let short = issued_by_kind.iter().fold(0_u64, |sum, i| sum.saturating_add(i.short));
    let sync_failures: Vec<&SyncFailure> = case.ends.iter().flat_map(|end| case.sync_failures(end)).collect();
    let mut numbers = evidence([("failed_ops", failed as f64), ("short_ops", short as f64)]);
    if !sync_failures.is_empty() {
        numbers.insert("failed_syncs".into(), sync_failures.len() as f64);
    }
    if failed == 0 && short == 0 && sync_failures.is_empty() {
        if issued_by_kind.is_empty() {
            return Err("no run recorded the results of its operations".into());
        }
        return holds("Every operation moved all its bytes.", numbers);
    }
    let mut sentences: Vec<String> = describe_failed_calls(case, &sync_failures).into_iter().collect();
    if failed > 0 || short > 0 {
        sentences.push(format!(
            "Failed operations: {}{}; short operations: {}. Such operations are often faster than complete \
             ones.",
            show_count(failed as f64),
            list_errors(errors),
            show_count(short as f64)
        ));
    }
    Detail::new(Severity::Invalidates, sentences.join(" "), numbers).found()
}

/// Describes the syncs and closes that failed after runs: for each call, the number of runs and the first error. `None` if
/// none failed.
fn describe_failed_calls(case: &Case, failures: &[&SyncFailure]) -> Option<String> {
    let mut calls = Vec::new();
    for call in [SyncedBy::FinalSync, SyncedBy::Close] {
        let Some(first) = failures.iter().find(|failure| failure.call == call) else { continue };
        let runs = case.ends.iter().filter(|end| case.sync_failures(end).any(|f| f.call == call)).count();
        calls.push(format!(
            "{} failed in {} of {} (first error: {})",
            call.name(),
            show_count(runs as f64),
            show_counted(case.ends.len() as u64, "run"),
            errno::describe_errno(first.errno)
        ));
    }
    let calls = (!calls.is_empty()).then(|| calls.join(", and the "))?;
    Some(format!("The {calls}: writes that the kernel had accepted may be lost."))
}

/// Lists the most frequent errors with their counts, and the number of all others: ` (7 with EIO, input/output error)`. Empty
/// without errors.
fn list_errors(errors: BTreeMap<i32, u64>) -> String {
    let mut by_count: Vec<(i32, u64)> = errors.into_iter().collect();
    by_count.sort_by_key(|(_, count)| Reverse(*count));
    let (named, others) = by_count.split_at(by_count.len().min(NAMED));
    let name = |(number, n): &(i32, u64)| {
        format!("{} with {}", show_count(*n as f64), errno::describe_errno(*number))
    };
    let mut parts: Vec<String> = named.iter().map(name).collect();
    let more = others.iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
    if more > 0 {
        parts.push(format!("and {} more", show_count(more as f64)));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Number of full queues that may cross the edges of a window: one at its start, one at its end.
const EDGES: f64 = 2.0;

pub(super) const MIX_DRIFT: Check = Check {
    id: CheckId::B13,
    name: "MIX_DRIFT",
    belief: "directions and sizes were as requested",
    reads: "Operations and bytes of each direction that completed in each window, and the lines, shares and \
            sizes of the plan.",
    formula: formula!(
        "Compares the operations and bytes of each direction with the plan, in the worst run. Each \
         operation draws its line, direction and size independently, so the effect of chance is known.\n\
         - Biased if a count or a sum of bytes is off by more than {DEVIATIONS} standard deviations of \
         those draws plus {EDGES} full queues, which may cross the edges of a window.\n\
         - Biased if the bytes of a direction with a single size are not exact, since nothing is left to \
         chance.\n\
         - Syncs are not drawn and do not count. Shares of directions that have their own rates do not \
         count either."
    ),
    provoke: "No option of fathom makes it fire: it checks fathom's own draws, and engines that lose \
              operations of one direction. A session file whose plan has a different mix from the \
              measured one shows it.",
    fix: "Report it with the session file: this is a bug in fathom, or in an engine that loses operations.",
    accept: "Do not accept it: the number is that of another workload.",
    // A replay repeats its capture. If targets take turns, they are not drawn, and a run may end
    // within a turn.
    applies: |case| {
        let is_drawn = case.stream.replay.is_none() && case.stream.turns.is_empty();
        is_drawn && case.stream.kinds().next().is_some()
    },
    ask: Ask::Alone(check_mix_drift),
    #[cfg(test)]
    fires: Some(|| mixed(70)),
    #[cfg(test)]
    blind: || Fixture { ops: 0, ..Fixture::honest() }.record(),
};

/// How far one figure of one run differs from the plan.
struct Deviation {
    /// The difference divided by the tolerated difference.
    tolerances: f64,
    sentence: String,
    measured: f64,
    planned: f64,
}

fn check_mix_drift(case: &Case) -> Known<Answer> {
    let planned_mix = PlannedMix::from_case(case)?;
    let edges = EDGES * requested_depth(&case.stream);
    // If directions have their own rates, those decide the shares.
    let drawable: &[Kind] = if matches!(case.stream.pace, Pace::Each { .. }) { &[] } else { &RATED_KINDS };
    let deviations: Vec<Deviation> =
        case.runs.iter().flat_map(|ran| deviations_in_run(ran, &planned_mix, drawable, edges)).collect();
    let worst = deviations.iter().max_by(|a, b| a.tolerances.total_cmp(&b.tolerances));
    let worst = worst.ok_or("no run has operations in a measured window")?;
    let numbers =
        evidence([("got", worst.measured), ("asked", worst.planned), ("tolerances_off", worst.tolerances)]);
    if worst.tolerances <= 1.0 {
        return holds("Directions and sizes were as requested.", numbers);
    }
    Detail::new(Severity::Biases, worst.sentence.clone(), numbers).found()
}

/// Returns how far each share and each mean size of one run is from the plan. Empty if no operation completed.
fn deviations_in_run(
    ran: &CaseRun,
    planned_mix: &PlannedMix,
    drawable: &[Kind],
    edges: f64,
) -> Vec<Deviation> {
    let amount = |kind| ran.in_window(kind);
    let total_ops: f64 = RATED_KINDS.iter().map(|k| amount(*k).ops as f64).sum();
    let mut out = Vec::new();
    if total_ops <= 0.0 {
        return out;
    }
    for kind in drawable.iter().copied() {
        let (measured, odds) = (amount(kind).ops as f64, planned_mix.share(kind));
        let spread = (total_ops * odds * (1.0 - odds) * planned_mix.burst_length).max(0.0).sqrt();
        // If a direction is always or never drawn, nothing is left to chance, and the edges do not matter.
        let tolerated = if spread > 0.0 { DEVIATIONS * spread + edges } else { 0.0 };
        out.push(Deviation {
            tolerances: tolerances((measured - total_ops * odds).abs(), tolerated),
            sentence: format!(
                "{} of the operations were {}s in run {}, but the plan has {}.",
                show_share(measured / total_ops),
                kind.word(),
                ran.run.start.repeat.saturating_add(1),
                show_share(odds)
            ),
            measured: measured / total_ops,
            planned: odds,
        });
    }
    for kind in Kind::MOVING.into_iter().filter(|_| ran.carries_data()) {
        let (ops, bytes) = (amount(kind).ops as f64, amount(kind).bytes as f64);
        let Some(size) = planned_mix.size_of(kind).filter(|_| ops > 0.0) else { continue };
        let spread = (ops * size.variance * planned_mix.burst_length).max(0.0).sqrt();
        let tolerated = if spread > 0.0 { DEVIATIONS * spread + edges * size.largest } else { 0.0 };
        out.push(Deviation {
            tolerances: tolerances((bytes - ops * size.mean).abs(), tolerated),
            sentence: format!(
                "A {} moved {} on average in run {}, but the plan has {}.",
                kind.word(),
                show_bytes(share(bytes, ops) as u64),
                ran.run.start.repeat.saturating_add(1),
                show_bytes(size.mean as u64)
            ),
            measured: share(bytes, ops),
            planned: size.mean,
        });
    }
    out
}

/// Divides a difference by the tolerated difference, or by the rounding error if that is larger.
fn tolerances(off: f64, tolerated: f64) -> f64 {
    off / tolerated.max(0.5)
}

/// The operations and sizes that the plan's random draws should give: weighted sums over all lines
/// of the access pattern.
struct PlannedMix {
    by_kind: [Moments; 3],
    /// Operations per draw: all operations of a burst use the same line.
    burst_length: f64,
}

/// Mean, variance and largest value of the sizes of one direction, in bytes.
struct SizeMoments {
    mean: f64,
    variance: f64,
    largest: f64,
}

/// Sums over the sizes of one direction: of their weights, and of the sizes and their squares, each times its weight. Also
/// the largest size.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    sum: f64,
    squares: f64,
    largest: f64,
}

impl PlannedMix {
    /// Adds up the lines of the case's stream.
    ///
    /// # Errors
    /// Fails if the lines draw no operation.
    fn from_case(case: &Case) -> Known<Self> {
        let targets = case.stream.targets.iter().filter_map(|t| case.record.header.plan.targets.get(*t));
        let align = targets.map(|t| t.block_bytes).max();
        let lines = &case.stream.access.lines;
        let mut out = Self { by_kind: [Moments::default(); 3], burst_length: 1.0 };
        for line in lines {
            out.add_line(line, align.unwrap_or(1).max(1));
            if line.delay_ns > 0 && lines.len() > 1 {
                out.burst_length = out.burst_length.max(f64::from(line.burst));
            }
        }
        if out.total_weight() > 0.0 { Ok(out) } else { Err("the plan draws no operation".into()) }
    }

    /// Returns the share of a direction among all drawn operations.
    fn share(&self, kind: Kind) -> f64 {
        self.by_kind.get(kind as usize).map_or(0.0, |m| m.weight / self.total_weight())
    }

    /// Returns the sizes of a direction, or `None` if it is not drawn.
    fn size_of(&self, kind: Kind) -> Option<SizeMoments> {
        let m = self.by_kind.get(kind as usize).filter(|m| m.weight > 0.0)?;
        let mean = m.sum / m.weight;
        // Rounding errors can leave a small variance even for a single size.
        let variance = m.squares / m.weight - mean * mean;
        let variance = if variance > 1e-6 * mean * mean { variance } else { 0.0 };
        Some(SizeMoments { mean, variance, largest: m.largest })
    }

    fn total_weight(&self) -> f64 {
        self.by_kind.iter().map(|m| m.weight).sum()
    }

    fn add_line(&mut self, line: &Line, target_align: u32) {
        let PerKind { read, write, trim } = &line.sizes;
        let sizes_by_kind = [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)];
        for (kind, sizes) in sizes_by_kind.into_iter().filter(|(kind, _)| line.mix.does(*kind)) {
            let weight = f64::from(line.weight) * line.mix.share(kind).get();
            for (size, odds) in sizes_with_odds(sizes, line.align_bytes, target_align) {
                self.add_size(kind, weight * odds, size);
                if kind == Kind::Trim && line.has_pairs() {
                    self.add_size(Kind::Write, weight * odds, size);
                }
            }
            // A reply in the opposite direction follows each read or write, but not a trim.
            let opposite = match kind {
                Kind::Read => Kind::Write,
                Kind::Write => Kind::Read,
                _ => continue,
            };
            if line.reply_bytes > 0 {
                self.add_size(opposite, weight, f64::from(line.reply_bytes));
            }
        }
    }

    fn add_size(&mut self, kind: Kind, weight: f64, size: f64) {
        let Some(m) = self.by_kind.get_mut(kind as usize) else { return };
        m.weight += weight;
        m.sum += weight * size;
        m.squares += weight * size * size;
        m.largest = m.largest.max(size);
    }
}

/// Returns sizes and their odds. A range is represented by two sizes with its mean and variance.
fn sizes_with_odds(sizes: &Sizes, align: u64, target_align: u32) -> Vec<(f64, f64)> {
    match sizes {
        Sizes::Fixed(size) => vec![(f64::from(*size), 1.0)],
        Sizes::Range(least, most) => {
            // The engine draws multiples of the alignment, or of the smallest size if there is no
            // alignment. This unit is rounded up to the target's blocks.
            let unit_bytes = if align > 0 { align } else { u64::from(*least) };
            let unit =
                unit_bytes.checked_next_multiple_of(u64::from(target_align)).unwrap_or(unit_bytes).max(1);
            let low = u64::from(*least).div_ceil(unit).max(1);
            let high = (u64::from(*most) / unit).max(low);
            let (middle, count) = ((low + high) as f64 / 2.0, (high - low + 1) as f64);
            let deviation = ((count * count - 1.0) / 12.0).sqrt();
            let unit = unit as f64;
            vec![((middle - deviation) * unit, 0.5), ((middle + deviation) * unit, 0.5)]
        }
        Sizes::Split(sizes) => {
            let total_weight: f64 = sizes.iter().map(|(_, w)| f64::from(*w)).sum();
            let odds = |w: u32| if total_weight > 0.0 { f64::from(w) / total_weight } else { 0.0 };
            sizes.iter().map(|(s, w)| (f64::from(*s), odds(*w))).collect()
        }
    }
}

/// Harmless share of a run by which one worker ends before another.
const TAIL_ABOVE: Share = Share(0.02);
/// Nanoseconds that a busy machine may take to wake the threads: some time slices of the scheduler.
const TAIL_NS: u64 = 50_000_000;
/// A stream of the phase that ends before this share of another stream's time leaves that stream alone for the rest.
const STREAM_ENDED_BELOW: f64 = 0.9;
/// The load was uneven if the least busy worker completed less than this share of the busiest
/// worker's operations.
const UNEVEN_BELOW: f64 = 0.8;
/// The number is biased if the least busy worker completed less than this share of the busiest
/// worker's operations. Besides the storage, having more workers than CPUs can cause this.
const IDLE_BELOW: f64 = 0.5;
pub(super) const IDLE_TAIL: Check = Check {
    id: CheckId::B17,
    name: "IDLE_TAIL",
    belief: "all workers loaded the target for the whole run",
    reads: "For each worker of all streams of the phase, the time between its first and last clock stamp, \
            and the operations that it completed.",
    formula: formula!(
        "Compares the times and the operations of the workers of a stream, and the times of the streams of \
         a phase.\n\
         - Biased if another stream of the phase ended before {ended} of this stream's time.\n\
         - Biased if the first worker ended before the last one by more than {TAIL_ABOVE} of the run, by more \
         than {wake}, and by more than twice the slowest operation: less is waking and draining.\n\
         - Biased if the least busy worker did less than {IDLE_BELOW} of the busiest one's operations, a note \
         below {UNEVEN_BELOW}. A difference of up to {DEVIATIONS} standard deviations of such counts is chance.",
        ended = Share(STREAM_ENDED_BELOW),
        wake = Ns(TAIL_NS as f64)
    ),
    provoke: "`fathom run --rw randread --bs 4k --depth 1 --workers 3 --engine sync --cache buffered --cpus \
              0-1 --pin DIR`: two workers share a CPU, and one has its own.",
    fix: "Give every worker its own CPU (--cpus, --pin), or use more --depth instead of --workers.",
    accept: "Accept it if you want to measure unequal clients.",
    applies: |_| true,
    ask: Ask::Alone(check_idle_tail),
    #[cfg(test)]
    fires: Some(|| uneven(&[2_750, 2_750, 2_750, 1_000], 0)),
    #[cfg(test)]
    blind: || Fixture { no_cpu_times: true, ..Fixture::honest() }.record(),
};

/// The imbalance between the workers of one run.
struct Imbalance {
    /// Operations of the least busy worker divided by those of the busiest, or 1 if chance explains the
    /// difference.
    least_by_most: f64,
    /// Time between the end of the first worker and that of the last, or 0 if waking and draining explain it.
    tail_ns: f64,
    /// `tail_ns` as a share of the run.
    tail_share: f64,
}

fn check_idle_tail(case: &Case) -> Known<Answer> {
    let imbalances: Vec<Imbalance> = case.runs.iter().map(measure_imbalance).collect::<Known<_>>()?;
    let least_by_most = imbalances.iter().map(|s| s.least_by_most).min_by(f64::total_cmp);
    let tail = imbalances.iter().max_by(|a, b| a.tail_share.total_cmp(&b.tail_share));
    let (Some(least_by_most), Some(tail)) = (least_by_most, tail) else { return Err(no_run()) };
    let numbers = evidence([
        ("least_by_most_ops", least_by_most),
        ("tail_share", tail.tail_share),
        ("tail_ns", tail.tail_ns),
    ]);
    if let Some((name, part)) = case.runs.iter().find_map(|ran| find_stream_that_ended_early(case, ran)) {
        let fix = "Give the streams the same --time instead of sizes or counts, or measure them in phases of \
                   their own.";
        return detail!(
            Severity::Biases,
            numbers,
            "The stream {name} ended after {} of the time in which this stream ran: the rest was measured \
             without its load.",
            show_share(part)
        )
        .with_fix(Some(fix.into()))
        .found();
    }
    if tail.tail_share > 0.0 {
        return finding!(
            Severity::Biases,
            numbers,
            "The first worker ended {} before the last ({} of the run): the target had less load in that \
             time.",
            show_ns(tail.tail_ns),
            show_share(tail.tail_share)
        );
    }
    if least_by_most >= UNEVEN_BELOW {
        return holds("The workers shared the load evenly, and none ended early enough to count.", numbers);
    }
    finding!(
        if least_by_most < IDLE_BELOW { Severity::Biases } else { Severity::Note },
        numbers,
        "Workers shared the load unevenly: the least busy one did {} of the busiest one's operations.",
        show_share(least_by_most)
    )
}

/// Returns the name of a stream of the phase that ended early in a run, and after which part of the time from the phase's start to the end
/// of the case's own stream. `None` if all other streams ran for nearly as long. Short differences are waking and draining.
fn find_stream_that_ended_early(case: &Case, ran: &CaseRun) -> Option<(String, f64)> {
    let end_ns = |at: usize, stream: &Stream| {
        let workers = ran.end.workers.iter().filter(|worker| worker.stream == at);
        Some(stream.delay_ns.saturating_add(workers.map(|worker| worker.wall_ns).max()?))
    };
    let streams = case.phase_streams();
    let own_end_ns = end_ns(case.stream_index, streams.get(case.stream_index)?)?;
    let others = streams.iter().enumerate().filter(|(at, _)| *at != case.stream_index);
    let ends = others.filter_map(|(at, stream)| Some((at, stream, end_ns(at, stream)?)));
    let (at, stream, ended_ns) = ends.min_by_key(|(.., ended_ns)| *ended_ns)?;
    let part = share(ended_ns as f64, own_end_ns as f64);
    let is_early = part < STREAM_ENDED_BELOW && own_end_ns.saturating_sub(ended_ns) > TAIL_NS;
    let name = || if stream.name.is_empty() { format!("{}", at + 1) } else { stream.name.clone() };
    is_early.then(|| (name(), part))
}

fn measure_imbalance(ran: &CaseRun) -> Known<Imbalance> {
    let walls = || ran.workers().map(|w| w.wall_ns);
    let (Some(first), Some(last)) = (walls().min(), walls().max()) else {
        return Err("no worker recorded when it ended".into());
    };
    if first == 0 {
        return Err("a worker did not record how long it ran".into());
    }
    let ops = || ran.workers().map(|w| w.ops);
    let (fewest, most) = (ops().min().unwrap_or(0), ops().max().unwrap_or(0));
    if most == 0 {
        return Err("workers did not record how many operations they completed".into());
    }
    let slowest = ran.stream.issued.values().map(|i| i.max_ns).max().unwrap_or(0);
    let gap = last - first;
    let tolerated_gap = TAIL_NS.max(slowest.saturating_mul(2)).max((TAIL_ABOVE.0 * last as f64) as u64);
    let tail_ns = if gap > tolerated_gap { gap as f64 } else { 0.0 };
    let by_chance = DEVIATIONS * (fewest as f64 + most as f64).sqrt();
    let differs = (most - fewest) as f64 > by_chance;
    Ok(Imbalance {
        least_by_most: if differs { share(fewest as f64, most as f64) } else { 1.0 },
        tail_ns,
        tail_share: share(tail_ns, last as f64),
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn short_operations_are_void_and_errors_are_named() {
    let Ok(Answer::Finding(f)) = ERRORS_COUNTED.answer(&Fixture { errors: 7, ..Fixture::honest() }.record())
    else {
        panic!("silent")
    };
    assert!(f.sentence.contains("EIO"), "{}", f.sentence);
    assert_eq!(
        ERRORS_COUNTED.severity(&Fixture { short: 1, ..Fixture::honest() }.record()),
        Some(Severity::Invalidates)
    );
}

#[test]
fn a_failed_sync_is_void_only_for_the_stream_that_wrote() {
    let failed = Fixture { sync_errno: 28, ..Fixture::honest_write() };
    let Ok(Answer::Finding(f)) = ERRORS_COUNTED.answer(&failed.record()) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Invalidates);
    assert!(
        f.sentence.contains("final sync failed in ")
            && f.sentence.contains("(first error: ENOSPC")
            && !f.sentence.contains("operations"),
        "{f:?}"
    );
    let reads = Fixture { sync_errno: 5, ..Fixture::honest() };
    assert!(matches!(ERRORS_COUNTED.answer(&reads.record()), Ok(Answer::Holds(..))));
    let mut another = failed.record();
    for end in another.runs.iter_mut().filter_map(|run| run.end.as_mut()) {
        end.sync_failures.iter_mut().for_each(|failure| failure.target = 1);
    }
    assert!(matches!(ERRORS_COUNTED.answer(&another), Ok(Answer::Holds(..))), "a target of another stream");
}

#[test]
fn each_failed_call_has_its_own_count_of_runs_and_first_error() {
    let mut record = Fixture { sync_errno: 5, ..Fixture::honest_write() }.record();
    let ends = record.runs.iter_mut().filter_map(|run| run.end.as_mut());
    // The final sync fails in the first run. In the other four runs, the close fails for two workers.
    for (run, end) in ends.enumerate() {
        let failure = |call, errno| SyncFailure { target: 0, call, errno };
        end.sync_failures = match run {
            0 => vec![failure(SyncedBy::FinalSync, 5)],
            _ => vec![failure(SyncedBy::Close, 28), failure(SyncedBy::Close, 5)],
        };
    }
    let Ok(Answer::Finding(f)) = ERRORS_COUNTED.answer(&record) else { panic!("silent") };
    assert!(
        f.sentence.starts_with("The final sync failed in 1 of 5 runs (first error: EIO"),
        "{}",
        f.sentence
    );
    assert!(
        f.sentence.contains("), and the close failed in 4 of 5 runs (first error: ENOSPC"),
        "{}",
        f.sentence
    );
    assert_eq!(f.evidence.get("failed_syncs"), Some(&9.0));
}

#[test]
fn the_most_frequent_errors_are_listed_and_the_others_are_counted() {
    let sentence = |errors: &[(i32, u64)]| {
        let mut record = Fixture { runs: 1, errors: 1, ..Fixture::honest() }.record();
        let ends = record.runs.iter_mut().filter_map(|run| run.end.as_mut());
        let issued = ends.flat_map(|end| &mut end.streams).flat_map(|stream| stream.issued.values_mut());
        issued.for_each(|issued| issued.errors = errors.iter().copied().collect());
        match ERRORS_COUNTED.answer(&record) {
            Ok(Answer::Finding(f)) => f.sentence,
            other => panic!("{other:?}"),
        }
    };
    let five = sentence(&[(250, 1), (5, 2), (251, 3), (28, 40), (252, 9)]);
    assert!(five.starts_with("Failed operations: 55 (40 with ENOSPC"), "{five}");
    assert!(
        five.contains("; 9 with errno 252; 3 with errno 251; and 3 more); short operations: 0."),
        "{five}"
    );
    let three = sentence(&[(250, 1), (251, 2), (252, 1)]);
    assert!(three.contains("4 (2 with errno 251; 1 with errno 250; 1 with errno 252);"), "{three}");
}

/// A record of only reads whose plan requested `read_percent` percent of reads.
#[cfg(test)]
fn mixed(read_percent: u8) -> model::record::Record {
    let mut record = Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix =
        model::job::Mix::from_percents(read_percent, 0);
    record
}

/// Adds `writes` writes to the 10,000 reads of each run.
#[cfg(test)]
fn with_writes(mut record: model::record::Record, writes: u64, bytes: u64) -> model::record::Record {
    let ends = record.runs.iter_mut().flat_map(|r| &mut r.end).flat_map(|e| &mut e.streams);
    for stream in ends {
        let mut end = model::record::KindEnd { bytes: writes * bytes, ..Default::default() };
        (0..writes).for_each(|_| end.latency.record(1_000));
        stream.kinds.insert(Kind::Write, end);
    }
    record
}

#[test]
fn deviations_within_chance_are_silent_and_larger_ones_bias() {
    let at = |writes| MIX_DRIFT.severity(&with_writes(mixed(70), writes, 4096));
    // 10,000 reads of 14,286 are 70 %. One standard deviation is 55 operations, and 64 may cross the edges.
    assert_eq!(at(4_286), None);
    assert_eq!(at(4_450), None);
    assert_eq!(at(5_000), Some(Severity::Biases));
}

#[test]
fn a_single_size_is_exact_and_drawn_sizes_vary_within_chance() {
    let at = |sizes: Sizes| {
        let mut record = Fixture::honest().record();
        record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].sizes.read = sizes;
        MIX_DRIFT.severity(&record)
    };
    assert_eq!(at(Sizes::Fixed(4096)), None);
    assert_eq!(at(Sizes::Fixed(8192)), Some(Severity::Biases));
    assert_eq!(at(Sizes::Split(vec![(4096, 999), (8192, 1)])), None, "0.1 % of double size is chance");
    assert_eq!(at(Sizes::Split(vec![(4096, 9), (8192, 1)])), Some(Severity::Biases));
    assert_eq!(at(Sizes::Range(4096, 16384)), Some(Severity::Biases));
}

#[test]
fn each_trim_may_have_a_write() {
    let mut record = Fixture::honest().record();
    let line = &mut record.header.plan.jobs[0].phases[0].streams[0].access.lines[0];
    (line.mix, line.writes_after_trims) = (model::job::Mix::from_percents(0, 100), true);
    let ends = record.runs.iter_mut().flat_map(|r| &mut r.end).flat_map(|e| &mut e.streams);
    for stream in ends {
        let reads = stream.kinds.remove(&Kind::Read).unwrap_or_default();
        stream.kinds.insert(Kind::Trim, reads);
    }
    assert_eq!(MIX_DRIFT.severity(&with_writes(record.clone(), 10_000, 4096)), None);
    assert_eq!(MIX_DRIFT.severity(&with_writes(record.clone(), 9_000, 4096)), Some(Severity::Biases));
    assert_eq!(MIX_DRIFT.severity(&with_writes(record, 10_000, 512)), Some(Severity::Biases));
}

#[test]
fn replies_count_and_lines_are_drawn_by_weight() {
    let mut record = Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].reply_bytes = 512;
    assert_eq!(MIX_DRIFT.severity(&with_writes(record.clone(), 10_000, 512)), None);
    assert_eq!(MIX_DRIFT.severity(&with_writes(record, 10_000, 4096)), Some(Severity::Biases));
    let mut lines = Fixture::honest().record();
    let access = &mut lines.header.plan.jobs[0].phases[0].streams[0].access;
    access.lines.push(access.lines[0].clone());
    (access.lines[0].weight, access.lines[1].weight) = (75, 25);
    access.lines[1].mix = model::job::Mix::from_percents(0, 0);
    assert_eq!(MIX_DRIFT.severity(&with_writes(lines.clone(), 3_333, 4096)), None);
    assert_eq!(MIX_DRIFT.severity(&with_writes(lines, 4_000, 4096)), Some(Severity::Biases));
}

#[test]
fn a_range_has_the_mean_and_variance_of_its_sizes() {
    // 4, 8, 12, 16 KiB.
    let two = sizes_with_odds(&Sizes::Range(4096, 16384), 0, 512);
    let mean: f64 = two.iter().map(|(s, w)| s * w).sum();
    let square: f64 = two.iter().map(|(s, w)| s * s * w).sum();
    assert!((mean - 10_240.0).abs() < 1e-6, "{mean}");
    let variance = square - mean * mean;
    assert!((variance / (4096.0 * 4096.0) - 1.25).abs() < 1e-9, "{variance}");
}

/// A record with one worker for each entry of `ops`, which is the worker's number of operations. The last worker ends `early_ns` before the
/// others.
#[cfg(test)]
fn uneven(ops: &[u64], early_ns: u64) -> model::record::Record {
    let workers = ops.len() as u32;
    let mut record = Fixture { workers, ..Fixture::honest() }.record();
    for end in record.runs.iter_mut().flat_map(|r| &mut r.end) {
        end.workers.iter_mut().zip(ops).for_each(|(w, n)| w.ops = *n);
        end.workers.last_mut().into_iter().for_each(|w| w.wall_ns -= early_ns);
    }
    record
}

#[test]
fn a_small_share_of_the_load_biases_and_a_larger_one_is_a_note() {
    let at = |last| IDLE_TAIL.severity(&uneven(&[2_750, 2_750, 2_750, last], 0));
    assert_eq!(at(1_300), Some(Severity::Biases));
    assert_eq!(at(2_000), Some(Severity::Note));
    assert_eq!(at(2_400), None);
    // Chance explains ten against four.
    assert_eq!(IDLE_TAIL.severity(&uneven(&[10, 4], 0)), None);
}

#[test]
fn a_stream_that_ends_early_biases_the_others() {
    let answers = |part: f64| {
        let mut record = crate::fixture::two_streams(&Fixture::honest(), &Fixture::honest());
        for end in record.runs.iter_mut().flat_map(|run| &mut run.end) {
            for worker in end.workers.iter_mut().filter(|worker| worker.stream == 1) {
                worker.wall_ns = (worker.wall_ns as f64 * part) as u64;
            }
        }
        let cases = crate::case::cases(&record);
        [0, 1].map(|at| {
            let answers = crate::findings::ask_all(&cases[at]);
            match answers.into_iter().find(|(check, _)| check.id == IDLE_TAIL.id).unwrap().1 {
                Ok(Answer::Finding(found)) => Some((found.severity, found.sentence)),
                _ => None,
            }
        })
    };
    assert_eq!(answers(0.95), [None, None]);
    let [long, short] = answers(0.08);
    let (severity, sentence) = long.unwrap();
    assert!(severity == Severity::Biases && sentence.contains("ended after 8.0 %"), "{sentence}");
    assert_eq!(short, None, "its load was complete while it ran");
}

#[test]
fn a_worker_that_ends_early_biases_and_draining_does_not() {
    let at = |early| IDLE_TAIL.severity(&uneven(&[2_750; 4], early));
    assert_eq!(at(100_000_000), Some(Severity::Biases));
    assert_eq!(at(40_000_000), None);
}

#[test]
fn workers_without_operation_counts_are_not_checked() {
    assert!(IDLE_TAIL.answer(&uneven(&[0; 4], 0)).is_err());
}
