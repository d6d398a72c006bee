//! B13: shares of directions, and sizes, that are not those asked for.
//!
//! For: what completed in each window against the draws of the plan, within what chance allows. Not for: the order of
//! offsets (B14).

use crate::case::{Case, CaseRun, asked_depth, share};
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::{Kind, Line, Pace, PerKind, Sizes};
use model::units::{show_bytes, show_share};

/// Standard deviations that chance may take a run from what was asked: once in 16,000 runs it takes it further.
const DEVIATIONS: f64 = 4.0;
/// Full queues that may lie across the edges of a window: one at its begin, one at its end.
const EDGES: f64 = 2.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::B13,
    name: "MIX_DRIFT",
    belief: "directions and sizes were those that were asked for",
    page: Page {
        reads: "Operations and bytes of each direction that completed in each window, and the lines, shares and sizes of the \
                plan.",
        formula: formula!(
            "Each operation draws its line, direction and size by itself, so chance is known: biased where a count or a sum \
             of bytes is further off than {DEVIATIONS} standard deviations of those draws, for the worst run. {EDGES} full \
             queues may lie across the edges of a window. A single size is exact to the byte. Syncs are not drawn and do not \
             count, nor do shares of directions that have rates of their own."
        ),
        provoke: "No flag of fathom makes it fire: it checks fathom's own draws, and engines that lose operations of one \
                  direction. A session file that has another mix in its plan than was measured shows it.",
        fix: "Report it with the session file: this is a fault of fathom, or of an engine that loses operations.",
        accept: "There is nothing to accept: the number is of another workload.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| mixed(70)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 0, ..crate::fixture::Fixture::honest() }.record(),
};

/// How far one figure of one run is from what was drawn.
struct Off {
    /// By so many of what is tolerated.
    times: f64,
    sentence: String,
    got: f64,
    asked: f64,
}

fn evaluate(case: &Case) -> Known<Answer> {
    // What a replay submits is the capture's, and stands beside it in the report; turns are not drawn, and a run ends within one.
    let is_drawn = case.stream.replay.is_none() && case.stream.turns.is_empty();
    if case.stream.kinds().next().is_none() || !is_drawn {
        return Ok(Answer::DoesNotApply);
    }
    let drawn = Drawn::from_case(case)?;
    let edges = EDGES * asked_depth(&case.stream);
    // Where directions have rates of their own, their shares come of those.
    let drawable: &[Kind] = if matches!(case.stream.pace, Pace::Each { .. }) {
        &[]
    } else {
        &[Kind::Read, Kind::Write, Kind::Trim]
    };
    let offs: Vec<Off> = case.runs.iter().flat_map(|ran| of_run(ran, &drawn, drawable, edges)).collect();
    let worst = offs.iter().max_by(|a, b| a.times.total_cmp(&b.times));
    let worst = worst.ok_or("no run has operations in a measured window")?;
    let numbers = evidence([("got", worst.got), ("asked", worst.asked), ("tolerances_off", worst.times)]);
    if worst.times <= 1.0 {
        return Ok(Answer::Holds("Directions and sizes were those that were asked for.", numbers));
    }
    Ok(Answer::Finding(Detail::new(Severity::Biased, worst.sentence.clone(), numbers)))
}

/// Shares of these directions and sizes of all in one run; nothing where nothing completed.
fn of_run(ran: &CaseRun, drawn: &Drawn, drawable: &[Kind], edges: f64) -> Vec<Off> {
    let amount = |kind| ran.in_window(kind);
    let all: f64 = [Kind::Read, Kind::Write, Kind::Trim].iter().map(|k| amount(*k).ops as f64).sum();
    let mut out = Vec::new();
    if all <= 0.0 {
        return out;
    }
    for kind in drawable.iter().copied() {
        let (got, odds) = (amount(kind).ops as f64, drawn.share(kind));
        let spread = (all * odds * (1.0 - odds) * drawn.bound_together).max(0.0).sqrt();
        // A direction that is never or always drawn has no chance in it, and no edge either.
        let tolerated = if spread > 0.0 { DEVIATIONS * spread + edges } else { 0.0 };
        out.push(Off {
            times: times((got - all * odds).abs(), tolerated),
            sentence: format!(
                "{} of the operations were {}s in run {}, and {} were asked for.",
                show_share(got / all),
                kind.word(),
                ran.run.start.repeat.saturating_add(1),
                show_share(odds)
            ),
            got: got / all,
            asked: odds,
        });
    }
    for kind in Kind::MOVING.into_iter().filter(|_| ran.carries_data()) {
        let (ops, bytes) = (amount(kind).ops as f64, amount(kind).bytes as f64);
        let Some(size) = drawn.size(kind).filter(|_| ops > 0.0) else { continue };
        let spread = (ops * size.variance * drawn.bound_together).max(0.0).sqrt();
        let tolerated = if spread > 0.0 { DEVIATIONS * spread + edges * size.largest } else { 0.0 };
        out.push(Off {
            times: times((bytes - ops * size.mean).abs(), tolerated),
            sentence: format!(
                "A {} moved {} on average in run {}, and {} was asked for.",
                kind.word(),
                show_bytes(share(bytes, ops) as u64),
                ran.run.start.repeat.saturating_add(1),
                show_bytes(size.mean as u64)
            ),
            got: share(bytes, ops),
            asked: size.mean,
        });
    }
    out
}

/// A distance in tolerances; half a unit of rounding is never one.
fn times(off: f64, tolerated: f64) -> f64 {
    off / tolerated.max(0.5)
}

/// Sums over all lines of an access, per operation drawn.
struct Drawn {
    of: [Moments; 3],
    /// How many draws stand or fall together: the operations of a burst have one line.
    bound_together: f64,
}

/// Sizes of one direction in bytes.
struct Size {
    mean: f64,
    variance: f64,
    largest: f64,
}

/// Weight, sum and sum of squares of the sizes.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    sum: f64,
    squares: f64,
    largest: f64,
}

impl Drawn {
    /// What the stream of a case draws.
    ///
    /// # Errors
    /// That its lines say nothing.
    fn from_case(case: &Case) -> Known<Self> {
        let align = case.stream.targets.iter();
        let align =
            align.filter_map(|t| case.record.header.plan.targets.get(*t)).map(|t| t.block_bytes).max();
        let lines = &case.stream.access.lines;
        let mut out = Self { of: [Moments::default(); 3], bound_together: 1.0 };
        for line in lines {
            out.add(line, align.unwrap_or(1).max(1));
            if line.delay_ns > 0 && lines.len() > 1 {
                out.bound_together = out.bound_together.max(f64::from(line.burst));
            }
        }
        if out.all() > 0.0 { Ok(out) } else { Err("the plan draws no operation".into()) }
    }

    /// The share of a direction among all that are drawn.
    fn share(&self, kind: Kind) -> f64 {
        self.of.get(kind as usize).map_or(0.0, |m| m.weight / self.all())
    }

    /// Sizes of a direction; `None` where it is not drawn.
    fn size(&self, kind: Kind) -> Option<Size> {
        let m = self.of.get(kind as usize).filter(|m| m.weight > 0.0)?;
        let mean = m.sum / m.weight;
        // Rounding leaves a trace of variance where there is one size.
        let variance = m.squares / m.weight - mean * mean;
        let variance = if variance > 1e-6 * mean * mean { variance } else { 0.0 };
        Some(Size { mean, variance, largest: m.largest })
    }

    fn all(&self) -> f64 {
        self.of.iter().map(|m| m.weight).sum()
    }

    fn add(&mut self, line: &Line, target_align: u32) {
        let PerKind { read, write, trim } = &line.sizes;
        let drawn = [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)];
        for (kind, sizes) in drawn.into_iter().filter(|(kind, _)| line.mix.does(*kind)) {
            let weight = f64::from(line.weight) * line.mix.share(kind).get();
            for (size, odds) in draws(sizes, line.align_bytes, target_align) {
                self.take(kind, weight * odds, size);
                if kind == Kind::Trim && line.has_pairs() {
                    self.take(Kind::Write, weight * odds, size);
                }
            }
            // Behind each operation one in the opposite direction; of trims they are none.
            let opposite = match kind {
                Kind::Read => Kind::Write,
                Kind::Write => Kind::Read,
                _ => continue,
            };
            if line.reply_bytes > 0 {
                self.take(opposite, weight, f64::from(line.reply_bytes));
            }
        }
    }

    fn take(&mut self, kind: Kind, weight: f64, size: f64) {
        let Some(m) = self.of.get_mut(kind as usize) else { return };
        m.weight += weight;
        m.sum += weight * size;
        m.squares += weight * size * size;
        m.largest = m.largest.max(size);
    }
}

/// Sizes with their odds. A range is told by two sizes that have its mean and its variance.
fn draws(sizes: &Sizes, align: u64, target_align: u32) -> Vec<(f64, f64)> {
    match sizes {
        Sizes::Fixed(size) => vec![(f64::from(*size), 1.0)],
        Sizes::Range(least, most) => {
            // As the engine does: multiples of the alignment, or of the least where there is none, on the target's blocks.
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
            let all: f64 = sizes.iter().map(|(_, w)| f64::from(*w)).sum();
            let odds = |w: u32| if all > 0.0 { f64::from(w) / all } else { 0.0 };
            sizes.iter().map(|(s, w)| (f64::from(*s), odds(*w))).collect()
        }
    }
}

/// The honest reads, while the plan asked for this share of reads.
#[cfg(test)]
fn mixed(read_percent: u8) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix =
        model::job::Mix::of_percents(read_percent, 0);
    record
}

/// So many writes beside the 10,000 reads of each run.
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
fn chance_is_silent_and_two_per_cent_are_found() {
    let at = |writes| CHECK.severity(&with_writes(mixed(70), writes, 4096));
    // 10,000 reads of 14,286 are 70 %; one standard deviation is 55 operations, and 64 may lie across the edges.
    assert_eq!(at(4_286), None);
    assert_eq!(at(4_450), None);
    assert_eq!(at(5_000), Some(Severity::Biased));
}

#[test]
fn sizes_are_exact_where_there_is_one_and_within_chance_where_they_are_drawn() {
    let at = |sizes: Sizes| {
        let mut record = crate::fixture::Fixture::honest().record();
        record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].sizes.read = sizes;
        CHECK.severity(&record)
    };
    assert_eq!(at(Sizes::Fixed(4096)), None);
    assert_eq!(at(Sizes::Fixed(8192)), Some(Severity::Biased));
    assert_eq!(at(Sizes::Split(vec![(4096, 999), (8192, 1)])), None, "0.1 % of double size is chance");
    assert_eq!(at(Sizes::Split(vec![(4096, 9), (8192, 1)])), Some(Severity::Biased));
    assert_eq!(at(Sizes::Range(4096, 16384)), Some(Severity::Biased));
}

#[test]
fn a_write_comes_with_each_trim() {
    let mut record = crate::fixture::Fixture::honest().record();
    let line = &mut record.header.plan.jobs[0].phases[0].streams[0].access.lines[0];
    (line.mix, line.writes_after_trims) = (model::job::Mix::of_percents(0, 100), true);
    let ends = record.runs.iter_mut().flat_map(|r| &mut r.end).flat_map(|e| &mut e.streams);
    for stream in ends {
        let reads = stream.kinds.remove(&Kind::Read).unwrap_or_default();
        stream.kinds.insert(Kind::Trim, reads);
    }
    assert_eq!(CHECK.severity(&with_writes(record.clone(), 10_000, 4096)), None);
    assert_eq!(CHECK.severity(&with_writes(record.clone(), 9_000, 4096)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&with_writes(record, 10_000, 512)), Some(Severity::Biased));
}

#[test]
fn a_reply_is_half_of_all_and_lines_are_drawn_by_weight() {
    let mut record = crate::fixture::Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].reply_bytes = 512;
    assert_eq!(CHECK.severity(&with_writes(record.clone(), 10_000, 512)), None);
    assert_eq!(CHECK.severity(&with_writes(record, 10_000, 4096)), Some(Severity::Biased));
    let mut lines = crate::fixture::Fixture::honest().record();
    let access = &mut lines.header.plan.jobs[0].phases[0].streams[0].access;
    access.lines.push(access.lines[0].clone());
    (access.lines[0].weight, access.lines[1].weight) = (75, 25);
    access.lines[1].mix = model::job::Mix::of_percents(0, 0);
    assert_eq!(CHECK.severity(&with_writes(lines.clone(), 3_333, 4096)), None);
    assert_eq!(CHECK.severity(&with_writes(lines, 4_000, 4096)), Some(Severity::Biased));
}

#[test]
fn a_range_has_the_mean_and_the_spread_of_its_sizes() {
    // 4, 8, 12, 16 KiB.
    let two = draws(&Sizes::Range(4096, 16384), 0, 512);
    let mean: f64 = two.iter().map(|(s, w)| s * w).sum();
    let square: f64 = two.iter().map(|(s, w)| s * s * w).sum();
    assert!((mean - 10_240.0).abs() < 1e-6, "{mean}");
    let variance = square - mean * mean;
    assert!((variance / (4096.0 * 4096.0) - 1.25).abs() < 1e-9, "{variance}");
}
