//! Zones: where operations go, as stretches of even density.
//!
//! For: a distribution of offsets that a job can say, and how far it is from what was seen. Not for: which one comes after which.

/// Bins that a span is counted in.
const BIN_COUNT: u64 = 4096;
/// Sectors that bins are multiples of at least: 4 KiB.
const MIN_BIN_SECTORS: u64 = 8;
/// Most sectors of a span: 2 ZiB, which no device has.
const MAX_SPAN_SECTORS: u64 = 1 << 52;
/// Most zones that are told.
const MAX_ZONES: usize = 48;
/// Distance (Kolmogorov-Smirnov) at which zones are good enough: this, or what draws of one distribution differ by in nineteen cases of
/// twenty, times the root of their number, and no more than the last.
const NEAR_DISTANCE: f64 = 0.004;
const CHANCE_FACTOR: f64 = 1.36;
const FAR_DISTANCE: f64 = 0.1;

/// Operations by where they begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    /// First sector of the first bin.
    pub(super) first: u64,
    /// Sectors of a bin.
    pub(super) width: u64,
    counts: Vec<u64>,
}

/// A stretch of even density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Zone {
    /// How many bins it has.
    pub(super) bins: u64,
    /// Operations that begin there.
    pub(super) operations: u64,
}

impl Bins {
    /// Over the sectors from the first to the one behind the last; bins begin and end at multiples of so many.
    pub(super) fn over(first: u64, behind: u64, align: u64) -> Self {
        let unit = align.max(MIN_BIN_SECTORS);
        let first = first / unit * unit;
        let sectors = behind.saturating_sub(first).clamp(1, MAX_SPAN_SECTORS);
        let width = sectors.div_ceil(BIN_COUNT).next_multiple_of(unit);
        Self { first, width, counts: vec![0; sectors.div_ceil(width) as usize] }
    }

    pub(super) fn add(&mut self, sector: u64) {
        let bin = (sector.saturating_sub(self.first) / self.width) as usize;
        if let Some(count) = self.counts.get_mut(bin) {
            *count += 1;
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// From the first bin with operations to the one behind the last; all where there are none.
    pub(super) fn filled(&self) -> (usize, usize) {
        let first = self.counts.iter().position(|count| *count > 0).unwrap_or(0);
        let last = self.counts.iter().rposition(|count| *count > 0);
        (first, last.map_or(self.counts.len(), |last| last + 1))
    }

    /// Zones of the bins from one to another, and the largest difference of the two distribution functions.
    pub(super) fn zones(&self, (from, behind): (usize, usize)) -> (Vec<Zone>, f64) {
        let counts = self.counts.get(from..behind).unwrap_or_default();
        let mut sums = vec![0_u64];
        sums.extend(counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        let all = sums.last().copied().unwrap_or(0).max(1) as f64;
        let near = (CHANCE_FACTOR / all.sqrt()).clamp(NEAR_DISTANCE, FAR_DISTANCE);
        let mut edges = vec![0, counts.len()];
        let mut distance = 0.0;
        // Divided where it is furthest from what was seen, until it is near enough (Douglas and Peucker, 1973).
        while edges.len() <= MAX_ZONES {
            let worst = edges.windows(2).map(|w| furthest(&sums, w[0], w[1])).enumerate();
            let Some((at, (edge, off))) = worst.max_by(|a, b| a.1.1.total_cmp(&b.1.1)) else { break };
            distance = off / all;
            if distance <= near || edges.len() == MAX_ZONES {
                break;
            }
            edges.insert(at + 1, edge);
        }
        let zone = |w: &[usize]| Zone { bins: (w[1] - w[0]) as u64, operations: sums[w[1]] - sums[w[0]] };
        (edges.windows(2).map(zone).collect(), distance)
    }
}

/// The bin between two at which a straight line is furthest from the sums, and how far.
fn furthest(sums: &[u64], from: usize, behind: usize) -> (usize, f64) {
    let (low, high) = (sums[from] as f64, sums[behind] as f64);
    let off = |at: usize| {
        let line = low + (high - low) * (at - from) as f64 / (behind - from) as f64;
        (at, (sums[at] as f64 - line).abs())
    };
    (from + 1..behind).map(off).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((from, 0.0))
}

#[test]
fn two_zones_are_found_where_they_are() {
    let mut bins = Bins::over(0, 4096 * 8, 8);
    // The first quarter gets three quarters.
    (0..300_000_u64).for_each(|at| bins.add(at * 7919 % 1024 * 8));
    (0..100_000_u64).for_each(|at| bins.add((1024 + at * 7919 % 3072) * 8));
    let (zones, distance) = bins.zones(bins.filled());
    assert_eq!(zones, [Zone { bins: 1024, operations: 300_000 }, Zone { bins: 3072, operations: 100_000 }]);
    assert!(distance < 0.004, "{distance}");
    // One hot place in the middle of nothing.
    let mut hot = Bins::over(0, 1 << 30, 1);
    (0..1000).for_each(|_| hot.add(1 << 29));
    hot.add(0);
    hot.add((1 << 30) - 1);
    let (zones, distance) = hot.zones(hot.filled());
    assert!(zones.contains(&Zone { bins: 1, operations: 1000 }) && distance < 0.004, "{zones:?}");
    assert_eq!(Bins::over(5, 5, 8).zones((0, 1)).0.len(), 1);
}
