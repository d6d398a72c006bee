//! Each block once where operations have several sizes: what was touched is kept in a map.
//!
//! For: random orders of mixed sizes that leave nothing out and touch nothing twice, as fio's random map has them. Not for: one size,
//! which takes no map ([`super::next_offset`]).
//!
//! An operation begins at the first free block behind one that is drawn, as in fio, so that what is free stays together, and is cut off
//! where the next one is not. Workers have a stretch of the span each, so that none needs to ask another.

use super::scatter::Scatter;
use model::payload::split_mix;

/// Blocks of a map at most: 1 GiB of memory.
const MOST_BLOCKS: u64 = 1 << 33;

/// The blocks of a worker.
#[derive(Debug)]
pub(super) struct Map {
    seed: u64,
    pass: u64,
    /// Number of its first block.
    first: u64,
    /// A bit for each, set where it was touched in this pass.
    touched: Vec<u64>,
    /// How many are free.
    free: u64,
    /// The order in which blocks are drawn, and how many were.
    order: Scatter,
    drawn: u64,
}

impl Map {
    /// For the blocks of one of several workers. Fails where there are more than a map has room for, or none.
    pub(super) fn new(seed: u64, (worker, workers): (u64, u64), blocks: u64) -> Result<Self, String> {
        let edge = |at: u64| (u128::from(blocks) * u128::from(at) / u128::from(workers.max(1))) as u64;
        let (first, behind) = (edge(worker), edge(worker + 1));
        let count = behind - first;
        if count == 0 || count > MOST_BLOCKS {
            return Err(format!(
                "each block once with several sizes takes a map of 1 to {MOST_BLOCKS} blocks per worker, and worker {worker} has \
                 {count}; choose one size, larger blocks or another span"
            ));
        }
        let seed = split_mix(seed ^ worker);
        let touched = vec![0; count.div_ceil(64) as usize];
        Ok(Self { seed, pass: 0, first, touched, free: count, order: Scatter::new(count, seed), drawn: 0 })
    }

    /// Lets the next block be the first of another pass.
    pub(super) fn end_pass(&mut self) {
        self.free = 0;
    }

    /// The first of so many blocks, and how many there are until one that was touched.
    #[inline]
    pub(super) fn next(&mut self, most: u64) -> (u64, u64) {
        let count = self.order.count();
        if self.free == 0 {
            self.touched.fill(0);
            self.free = count;
            self.drawn = count;
        }
        if self.drawn == count {
            self.pass += 1;
            self.drawn = 0;
            self.order = Scatter::new(count, self.seed.wrapping_add(self.pass));
        }
        let drawn = self.order.position(self.drawn);
        self.drawn += 1;
        let block = self.free_from(drawn, count).or_else(|| self.free_from(0, drawn)).unwrap_or(drawn);
        let end = block.saturating_add(most.max(1)).min(count);
        let run = (block..end).take_while(|b| !self.is_touched(*b)).count() as u64;
        for taken in block..block + run {
            self.touched[(taken / 64) as usize] |= 1 << (taken % 64);
        }
        self.free -= run;
        (self.first + block, run)
    }

    /// The first free block from one on, before another one.
    fn free_from(&self, from: u64, behind: u64) -> Option<u64> {
        let mut at = from;
        while at < behind {
            // Bits above the place that was asked for; a whole word that is touched is passed at once.
            let left = !(self.touched[(at / 64) as usize] >> (at % 64));
            let skip = u64::from(left.trailing_zeros());
            if skip < 64 - at % 64 {
                return Some(at + skip).filter(|block| *block < behind);
            }
            at += 64 - at % 64;
        }
        None
    }

    fn is_touched(&self, block: u64) -> bool {
        self.touched[(block / 64) as usize] >> (block % 64) & 1 == 1
    }
}

#[test]
fn workers_together_touch_every_block_once_in_each_pass() -> Result<(), String> {
    for (blocks, workers) in [(1, 1), (64, 1), (1000, 3), (130, 130)] {
        let mut maps = Vec::new();
        for worker in 0..workers {
            maps.push(Map::new(7, (worker, workers), blocks)?);
        }
        for pass in 1..4_u32 {
            let mut times = vec![0; blocks as usize];
            for (worker, map) in (0..).zip(&mut maps) {
                let share = blocks * (worker + 1) / workers - blocks * worker / workers;
                let mut done = 0;
                for size in (1..).map(|n: u64| 1 + n * 7 % 13) {
                    let (first, run) = map.next(size);
                    assert!((1..=size).contains(&run));
                    times[first as usize..(first + run) as usize].iter_mut().for_each(|t| *t += 1);
                    done += run;
                    if done >= share {
                        break;
                    }
                }
                assert_eq!(done, share, "pass {pass}");
            }
            assert!(times.iter().all(|t| *t == 1), "{blocks} blocks of {workers} workers: {times:?}");
        }
    }
    assert!(Map::new(7, (2, 3), 2).is_ok() && Map::new(7, (0, 3), 2).is_err());
    Ok(())
}
