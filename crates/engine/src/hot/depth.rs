//! Depth under a latency target: how many operations may be in flight, found while the loop runs.
//!
//! For: the search, and what the loop does between two of its windows. Not for: the loop's turns, in which nothing of it is: the depth is a
//! number to them.
//!
//! As fio's `latency_target`: from one operation in flight it doubles while a window meets the target, and goes halfway between the largest
//! depth that met it and the smallest that missed it behind the first miss. Between two windows what is in flight completes, so that no
//! window has operations of another depth.

use super::Loop;
use super::stage::Stage;
use crate::interface::Engine;
use crate::recorder::Recorder;
use crate::tally::Block;
use model::histogram::Histogram;
use model::job::{FoundDepth, LatencyTarget};

/// Windows that meet the target at the largest known depth before a larger one is tried once more.
const STABLE: u32 = 3;

/// The search of a worker.
pub(super) struct Search {
    target: LatencyTarget,
    /// The largest depth that may be.
    most: u32,
    depth: u32,
    /// The largest that met the target, and the smallest that missed it; beyond the most where none has.
    met: u32,
    missed: u32,
    stable: u32,
    /// Whether the next window at an unchanged depth is the one whose figures stand.
    last: bool,
    /// What the stop rule still allows, while nothing may be submitted until all that is in flight has completed.
    left: Option<(u64, u64)>,
}

/// What comes behind a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// Another one.
    Window,
    /// Nothing: this one stands.
    End,
}

impl Search {
    pub(super) fn new(target: LatencyTarget, most: u32) -> Self {
        Self {
            target,
            most,
            depth: 1,
            met: 1,
            missed: most.saturating_add(1),
            stable: 0,
            last: false,
            left: None,
        }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// What was found, in the end.
    pub(super) fn found(&self) -> FoundDepth {
        FoundDepth { depth: self.depth, is_last: self.last }
    }

    /// Takes a window into account: `None` where nothing completed in it.
    fn judge(&mut self, block: &Block) -> Option<Next> {
        let all = || block.lanes.iter().flat_map(|lane| &lane.kinds).map(|tally| &tally.latency);
        let count: u64 = all().map(Histogram::count).sum();
        if count == 0 {
            return None;
        }
        let fast: u64 = all().map(|latency| latency.count_between(0, self.target.ns)).sum();
        let share = 100.0 * fast as f64 / count as f64;
        Some(if share >= self.target.percent { self.meets() } else { self.misses() })
    }

    fn meets(&mut self) -> Next {
        let before = self.depth;
        self.met = before;
        if before + 1 == self.missed && before < self.most {
            // A depth that was missed once may have been so by chance.
            self.stable += 1;
            if self.stable >= STABLE {
                self.missed += 1;
                self.stable = 0;
            }
        }
        let next = if self.missed > self.most {
            before.saturating_mul(2)
        } else {
            u32::midpoint(before, self.missed)
        };
        self.depth = next.min(self.most);
        if self.target.goes_on || self.depth != before {
            return Next::Window;
        }
        if self.last {
            return Next::End;
        }
        self.last = true;
        Next::Window
    }

    fn misses(&mut self) -> Next {
        self.stable = 0;
        if self.depth > 1 {
            self.missed = self.depth;
            if self.depth == self.met {
                self.met -= 1;
            }
            self.depth = u32::midpoint(self.depth, self.met).max(1);
        }
        Next::Window
    }
}

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// At an edge: what `close_interval` does, and where the depth is searched for what follows from the window. True when all is over.
    #[cold]
    pub(super) fn at_edge(&mut self) -> bool {
        match self.search.take() {
            Some(mut search) if self.stage == Stage::Window => {
                let over = self.searches(&mut search);
                self.search = Some(search);
                over
            }
            search => {
                self.search = search;
                self.close_interval()
            }
        }
    }

    fn searches(&mut self, search: &mut Search) -> bool {
        if let Some(left) = search.left {
            let exhausted = std::mem::replace(&mut self.left, left);
            if self.in_flight > 0 && !self.must_end() {
                self.left = exhausted;
                self.pass_edge();
                return false;
            }
            search.left = None;
            return self.go_on_at(search);
        }
        if self.must_end() {
            return self.close_interval();
        }
        match search.judge(&self.block) {
            None => self.close_interval(),
            Some(Next::End) => {
                // This is the end of the window.
                self.spec.time_ns = 0;
                self.close_interval()
            }
            Some(Next::Window) => {
                // Nothing more is allowed, so the loop only takes what completes, and comes back here when that is all.
                search.left = Some(std::mem::take(&mut self.left));
                self.pass_edge();
                if self.in_flight == 0 {
                    self.edge = self.now;
                }
                false
            }
        }
    }

    /// What was in flight has completed, or the window is over: the next window at its depth, or none.
    fn go_on_at(&mut self, search: &Search) -> bool {
        // At the end of the window more may be on its way than would be allowed.
        if self.in_flight == 0 {
            self.spec.depth = search.depth;
            self.full = self.lanes.len() as u32 * search.depth;
        }
        if self.must_end() || search.target.goes_on {
            return self.close_interval();
        }
        self.begin_window_again();
        false
    }
}

#[cfg(test)]
fn depths(most: u32, meets: impl Fn(u32) -> bool, windows: usize) -> (Vec<u32>, bool) {
    let target = LatencyTarget { ns: 1, percent: 100.0, window_ns: 1, goes_on: false };
    let mut search = Search::new(target, most);
    let mut seen = Vec::new();
    for _ in 0..windows {
        seen.push(search.depth());
        let next = if meets(search.depth()) { search.meets() } else { search.misses() };
        if next == Next::End {
            return (seen, true);
        }
    }
    (seen, false)
}

#[test]
fn the_depth_doubles_up_to_a_miss_and_is_halved_in_between() {
    assert_eq!(depths(32, |d| d <= 12, 50), (vec![1, 2, 4, 8, 16, 12, 14, 13, 12, 12], true));
    assert_eq!(depths(32, |_| true, 50), (vec![1, 2, 4, 8, 16, 32, 32], true));
    assert_eq!(depths(3, |_| true, 50), (vec![1, 2, 3, 3], true));
    assert_eq!(depths(32, |d| d <= 31, 50).0.last(), Some(&31), "beyond the first miss at the most");
    // Nothing meets it: it stays at one, as long as it may.
    assert_eq!(depths(32, |_| false, 5), (vec![1; 5], false));
}
