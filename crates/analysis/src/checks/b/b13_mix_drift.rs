//! B13: shares of directions and operation sizes that differ from the plan. Computes the mean and variance of the
//! plan's random draws, and fires if the counts or bytes of a run's window differ by more than chance and the
//! window's edges allow.

use super::DEVIATIONS;
use crate::checks::prelude::*;
use model::job::{Line, PerKind, Sizes};

/// Full queues that may cross the edges of a window: one at its start, one at its end.
const EDGES: f64 = 2.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::B13,
    name: "MIX_DRIFT",
    belief: "directions and sizes were as requested",
    reads: "Operations and bytes of each direction that completed in each window, and the lines, shares and \
            sizes of the plan.",
    formula: formula!(
        "Each operation draws its line, direction and size independently, so the effect of chance is known: \
         biased if a count or a sum of bytes is off by more than {DEVIATIONS} standard deviations of those \
         draws, in the worst run. {EDGES} full queues may cross the edges of a window. A single size is \
         exact to the byte. Syncs are not drawn and do not count, and neither do shares of directions that \
         have their own rates."
    ),
    provoke: "No option of fathom makes it fire: it checks fathom's own draws, and engines that lose \
              operations of one direction. A session file whose plan has another mix than was measured shows \
              it.",
    fix: "Report it with the session file: this is a bug in fathom, or in an engine that loses operations.",
    accept: "Do not accept it: the number is that of another workload.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| mixed(70)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 0, ..crate::fixture::Fixture::honest() }.record(),
};

/// The deviation of one figure of one run from the plan.
struct Deviation {
    /// The deviation divided by the tolerated one.
    tolerances: f64,
    sentence: String,
    measured: f64,
    planned: f64,
}

fn evaluate(case: &Case) -> Known<Answer> {
    // A replay repeats its capture. Turns are not drawn, and a run may end within one.
    let is_drawn = case.stream.replay.is_none() && case.stream.turns.is_empty();
    if case.stream.kinds().next().is_none() || !is_drawn {
        return Ok(Answer::DoesNotApply);
    }
    let planned_mix = PlannedMix::from_case(case)?;
    let edges = EDGES * asked_depth(&case.stream);
    // If directions have their own rates, those decide the shares.
    let drawable: &[Kind] = if matches!(case.stream.pace, Pace::Each { .. }) {
        &[]
    } else {
        &[Kind::Read, Kind::Write, Kind::Trim]
    };
    let deviations: Vec<Deviation> =
        case.runs.iter().flat_map(|ran| deviations_in_run(ran, &planned_mix, drawable, edges)).collect();
    let worst = deviations.iter().max_by(|a, b| a.tolerances.total_cmp(&b.tolerances));
    let worst = worst.ok_or("no run has operations in a measured window")?;
    let numbers =
        evidence([("got", worst.measured), ("asked", worst.planned), ("tolerances_off", worst.tolerances)]);
    if worst.tolerances <= 1.0 {
        return holds("Directions and sizes were as requested.", numbers);
    }
    Detail::new(Severity::Biased, worst.sentence.clone(), numbers).found()
}

/// Returns the deviations of the shares and sizes in one run, or none if no operation completed.
fn deviations_in_run(
    ran: &CaseRun,
    planned_mix: &PlannedMix,
    drawable: &[Kind],
    edges: f64,
) -> Vec<Deviation> {
    let amount = |kind| ran.in_window(kind);
    let total_ops: f64 = [Kind::Read, Kind::Write, Kind::Trim].iter().map(|k| amount(*k).ops as f64).sum();
    let mut out = Vec::new();
    if total_ops <= 0.0 {
        return out;
    }
    for kind in drawable.iter().copied() {
        let (measured, odds) = (amount(kind).ops as f64, planned_mix.share(kind));
        let spread = (total_ops * odds * (1.0 - odds) * planned_mix.burst_length).max(0.0).sqrt();
        // A direction that is always or never drawn leaves nothing to chance, and the edges do not matter.
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

/// Divides a deviation by the tolerated one, but never by less than the rounding error.
fn tolerances(off: f64, tolerated: f64) -> f64 {
    off / tolerated.max(0.5)
}

/// Weighted sums over all lines of an access pattern, per drawn operation.
struct PlannedMix {
    by_kind: [Moments; 3],
    /// Operations per draw: all operations of a burst use the same line.
    burst_length: f64,
}

/// Sizes of one direction, in bytes.
struct SizeMoments {
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

impl PlannedMix {
    /// Computes the draws of the stream of a case.
    ///
    /// # Errors
    /// Fails if its lines draw no operation.
    fn from_case(case: &Case) -> Known<Self> {
        let align = case.stream.targets.iter();
        let align =
            align.filter_map(|t| case.record.header.plan.targets.get(*t)).map(|t| t.block_bytes).max();
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

/// Returns sizes and their odds. Two sizes with the same mean and variance represent a range.
fn sizes_with_odds(sizes: &Sizes, align: u64, target_align: u32) -> Vec<(f64, f64)> {
    match sizes {
        Sizes::Fixed(size) => vec![(f64::from(*size), 1.0)],
        Sizes::Range(least, most) => {
            // The engine draws multiples of the alignment, or else of the smallest size, rounded up to the
            // target's blocks.
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

/// A record of only reads whose plan requested `read_percent` reads.
#[cfg(test)]
fn mixed(read_percent: u8) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix =
        model::job::Mix::of_percents(read_percent, 0);
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
    let at = |writes| CHECK.severity(&with_writes(mixed(70), writes, 4096));
    // 10,000 reads of 14,286 are 70 %. One standard deviation is 55 operations, and 64 may cross the edges.
    assert_eq!(at(4_286), None);
    assert_eq!(at(4_450), None);
    assert_eq!(at(5_000), Some(Severity::Biased));
}

#[test]
fn a_single_size_is_exact_and_drawn_sizes_vary_within_chance() {
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
fn each_trim_may_have_a_write() {
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
fn replies_count_and_lines_are_drawn_by_weight() {
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
fn a_range_has_the_mean_and_variance_of_its_sizes() {
    // 4, 8, 12, 16 KiB.
    let two = sizes_with_odds(&Sizes::Range(4096, 16384), 0, 512);
    let mean: f64 = two.iter().map(|(s, w)| s * w).sum();
    let square: f64 = two.iter().map(|(s, w)| s * s * w).sum();
    assert!((mean - 10_240.0).abs() < 1e-6, "{mean}");
    let variance = square - mean * mean;
    assert!((variance / (4096.0 * 4096.0) - 1.25).abs() < 1e-9, "{variance}");
}
