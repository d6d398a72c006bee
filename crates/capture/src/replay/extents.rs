//! Extents: which parts of a device were touched, and the same moved together.
//!
//! For: placing a load on a smaller target, in the order that it has, what is adjacent staying so. Not for: how often something was touched.

/// Sectors of a block: what is touched in part counts whole, so that what was aligned to 4 KiB stays so.
const BLOCK_SECTORS: u64 = 8;
/// Most extents that are kept apart. With more, those close to each other become one, in ever larger blocks.
const MAX_EXTENTS: usize = 1 << 20;
/// Extents that are gathered before they are put in order.
const MAX_GATHERED: usize = MAX_EXTENTS * 2;

/// Parts that were touched.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    /// First and behind the last, in blocks; in order and apart up to `settled`.
    all: Vec<(u64, u64)>,
    settled: usize,
    /// By how many bits blocks are larger than they need be.
    coarse: u32,
}

impl Extents {
    /// Adds a part.
    pub(super) fn add(&mut self, sector: u64, sectors: u32) {
        let first = sector / BLOCK_SECTORS;
        let behind = sector.saturating_add(u64::from(sectors)).div_ceil(BLOCK_SECTORS);
        let part = self.coarser((first, behind));
        match self.all.last_mut() {
            // What goes on where the last one ended makes most of many loads.
            Some(last) if last.1 == part.0 => last.1 = part.1,
            Some(last) if last.0 <= part.0 && part.1 <= last.1 => {}
            _ => self.all.push(part),
        }
        if self.all.len() >= MAX_GATHERED.max(self.settled * 2) {
            self.settle();
        }
    }

    fn coarser(&self, (first, behind): (u64, u64)) -> (u64, u64) {
        let mask = (1_u64 << self.coarse) - 1;
        (first & !mask, behind.saturating_add(mask) & !mask)
    }

    /// Puts all in order, and makes one of what touches.
    fn settle(&mut self) {
        loop {
            self.all.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.all.len().min(MAX_EXTENTS));
            for part in self.all.drain(..) {
                match merged.last_mut() {
                    Some(last) if part.0 <= last.1 => last.1 = last.1.max(part.1),
                    _ => merged.push(part),
                }
            }
            self.all = merged;
            if self.all.len() <= MAX_EXTENTS {
                break;
            }
            self.coarse += 1;
            let mut all = std::mem::take(&mut self.all);
            for part in &mut all {
                *part = self.coarser(*part);
            }
            self.all = all;
        }
        self.settled = self.all.len();
    }

    /// All of it moved together.
    pub(super) fn dense(mut self) -> Dense {
        self.settle();
        let mut sum = 0;
        let moved = self.all.into_iter().map(|(first, behind)| {
            let from = sum;
            sum += behind - first;
            (first * BLOCK_SECTORS, from * BLOCK_SECTORS)
        });
        let moved = moved.collect();
        Dense { moved, sectors: sum * BLOCK_SECTORS }
    }
}

/// Parts moved together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dense {
    /// First sector of each, and where it is moved to.
    moved: Vec<(u64, u64)>,
    /// Sum of their lengths.
    pub(super) sectors: u64,
}

impl Dense {
    /// Where a sector is moved to; what lies between two parts to the beginning of the second.
    pub(super) fn place(&self, sector: u64) -> u64 {
        let behind = self.moved.partition_point(|(first, _)| *first <= sector);
        let next = self.moved.get(behind).map_or(self.sectors, |(_, to)| *to);
        match behind.checked_sub(1).and_then(|at| self.moved.get(at)) {
            Some((first, to)) => to.saturating_add(sector - first).min(next),
            None => 0,
        }
    }
}

#[test]
fn order_and_neighbours_stay() {
    let mut extents = Extents::default();
    for (sector, sectors) in [(800, 8), (16, 8), (24, 16), (803, 2), (80_001, 1), (16, 8)] {
        extents.add(sector, sectors);
    }
    let dense = extents.dense();
    assert_eq!(dense.sectors, 24 + 8 + 8);
    // Blocks of 8 sectors: 16 to 40, 800 to 808, 80,000 to 80,008.
    let placed = [16, 24, 39, 800, 803, 80_001].map(|sector| dense.place(sector));
    assert_eq!(placed, [0, 8, 23, 24, 27, 33]);
    // A discard from before the first to between the last two.
    assert_eq!((dense.place(0), dense.place(5000)), (0, 32));
    assert_eq!(dense.place(u64::MAX), 40);
}

#[test]
fn many_extents_become_fewer_and_larger_and_lose_nothing() {
    let mut extents = Extents::default();
    let many = MAX_GATHERED as u64 + 10;
    (0..many).for_each(|at| extents.add(at * 16, 8));
    let dense = extents.dense();
    assert!(dense.moved.len() <= MAX_EXTENTS && dense.sectors >= many * 8);
    let places = (0..many).map(|at| dense.place(at * 16));
    assert!(places.clone().zip(places.skip(1)).all(|(a, b)| b >= a + 8));
}
