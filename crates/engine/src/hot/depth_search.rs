//! The search for the largest depth that meets a latency target (`latency_target` of fio), while
//! the loop runs.
//!
//! 1. The depth begins at 1 and doubles while a window meets the target.
//! 2. After the first miss it goes halfway between the largest depth that met the target and the
//!    smallest that missed it.
//! 3. Between two windows all operations in flight complete, so that no window contains operations
//!    of another depth.

use crate::hot::{Budget, Loop, Stage};
use crate::interface::Engine;
use crate::link::Block;
use crate::recorder::Recorder;
use model::histogram::Histogram;
use model::job::{FoundDepth, LatencyTarget};

/// After this many consecutive windows that meet the target at the depth directly below a missed
/// depth, the search tries the missed depth again.
const STABLE_WINDOWS: u32 = 3;

/// The state of a worker's search.
pub(super) struct Search {
    target: LatencyTarget,
    /// Maximum depth.
    max_depth: u32,
    depth: u32,
    /// Lower bound of the search: 1 at first, then the largest depth that met the target. A later miss at that depth
    /// lowers the bound by one.
    met: u32,
    /// Exclusive upper bound of the search: the smallest depth that missed the target, or that depth plus one to retry
    /// it. Above `max_depth` if no depth is excluded.
    missed: u32,
    /// Number of consecutive windows at depth `missed - 1` that met the target.
    stable_windows: u32,
    /// Whether the depth has remained unchanged after a window that met the target. The next such window is the final one.
    is_settled: bool,
    /// The stop rule's budget, saved while the worker only waits for its operations in flight; otherwise `None`.
    saved_budget: Option<Budget>,
}

/// The step after a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// Another window.
    Window,
    /// The end: this window is the final one.
    End,
}

impl Search {
    pub(super) fn new(target: LatencyTarget, max_depth: u32) -> Self {
        Self {
            target,
            max_depth,
            depth: 1,
            met: 1,
            missed: max_depth.saturating_add(1),
            stable_windows: 0,
            is_settled: false,
            saved_budget: None,
        }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the depth that the search found.
    pub(super) fn found(&self) -> FoundDepth {
        FoundDepth { depth: self.depth, is_last: self.is_settled }
    }

    /// Judges a window and sets the depth of the next one. Returns the next step; `None` if no
    /// operation completed in the window.
    fn evaluate_window(&mut self, block: &Block) -> Option<Next> {
        let all = || block.lanes.iter().flat_map(|lane| &lane.kinds).map(|tally| &tally.latency);
        let count: u64 = all().map(Histogram::count).sum();
        if count == 0 {
            return None;
        }
        let in_time: u64 = all().map(|latency| latency.count_between(0, self.target.ns)).sum();
        let percent_in_time = 100.0 * in_time as f64 / count as f64;
        Some(if percent_in_time >= self.target.percent { self.target_met() } else { self.target_missed() })
    }

    fn target_met(&mut self) -> Next {
        let before = self.depth;
        self.met = before;
        if before + 1 == self.missed && before < self.max_depth {
            // One miss may be chance, so try the missed depth again after STABLE_WINDOWS windows.
            self.stable_windows += 1;
            if self.stable_windows >= STABLE_WINDOWS {
                self.missed += 1;
                self.stable_windows = 0;
            }
        }
        let next = if self.missed > self.max_depth {
            before.saturating_mul(2)
        } else {
            u32::midpoint(before, self.missed)
        };
        self.depth = next.min(self.max_depth);
        if self.target.searches_whole_run || self.depth != before {
            return Next::Window;
        }
        if self.is_settled {
            return Next::End;
        }
        self.is_settled = true;
        Next::Window
    }

    fn target_missed(&mut self) -> Next {
        (self.stable_windows, self.is_settled) = (0, false);
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
    /// Ends an interval like `close_interval`, and with a search also decides the next window. Returns whether the run is over.
    #[cold]
    pub(super) fn finish_interval(&mut self) -> bool {
        match self.search.take() {
            Some(mut search) if self.stage == Stage::Window => {
                let over = self.continue_search(&mut search);
                self.search = Some(search);
                over
            }
            search => {
                self.search = search;
                self.close_interval()
            }
        }
    }

    fn continue_search(&mut self, search: &mut Search) -> bool {
        if let Some(budget) = search.saved_budget {
            // `must_end` needs the stop rule's budget: the empty one always counts as exhausted.
            let exhausted = std::mem::replace(&mut self.budget, budget);
            if self.in_flight > 0 && !self.must_end() {
                self.budget = exhausted;
                self.extend_interval();
                return false;
            }
            search.saved_budget = None;
            return self.resume_with_depth(search);
        }
        if self.must_end() {
            return self.close_interval();
        }
        match search.evaluate_window(&self.block) {
            None => self.close_interval(),
            Some(Next::End) => {
                // End the window now.
                self.spec.time_ns = 0;
                self.close_interval()
            }
            Some(Next::Window) => {
                // With an empty budget the loop only takes completions. This function is called again after the last one.
                search.saved_budget = Some(std::mem::take(&mut self.budget));
                self.extend_interval();
                // Without operations in flight, no completion follows, so the next call is due at once.
                if self.in_flight == 0 {
                    self.interval_end = self.now;
                }
                false
            }
        }
    }

    /// Begins the next window of the search at the new depth, after all operations in flight have completed. Closes the interval instead of
    /// restarting it if no further operation may begin, or if each window of the search is also an interval of the results
    /// (`searches_whole_run`). Returns whether the run is over.
    fn resume_with_depth(&mut self, search: &Search) -> bool {
        // At the end of the run's window, more operations may be in flight than the new depth allows, so the depth remains.
        if self.in_flight == 0 {
            self.spec.depth = search.depth;
            self.max_in_flight = self.lanes.len() as u32 * search.depth;
        }
        if self.must_end() || search.target.searches_whole_run {
            return self.close_interval();
        }
        self.restart_window();
        false
    }
}

#[cfg(test)]
fn depths(most: u32, meets: impl Fn(u32) -> bool, windows: usize) -> (Vec<u32>, bool) {
    let target = LatencyTarget { ns: 1, percent: 100.0, window_ns: 1, searches_whole_run: false };
    let mut search = Search::new(target, most);
    let mut seen = Vec::new();
    for _ in 0..windows {
        seen.push(search.depth());
        let next = if meets(search.depth()) { search.target_met() } else { search.target_missed() };
        if next == Next::End {
            return (seen, true);
        }
    }
    (seen, false)
}

#[test]
fn the_depth_doubles_until_a_miss_and_is_then_bisected() {
    assert_eq!(depths(32, |d| d <= 12, 50), (vec![1, 2, 4, 8, 16, 12, 14, 13, 12, 12], true));
    assert_eq!(depths(32, |_| true, 50), (vec![1, 2, 4, 8, 16, 32, 32], true));
    assert_eq!(depths(3, |_| true, 50), (vec![1, 2, 3, 3], true));
    assert_eq!(depths(32, |d| d <= 31, 50).0.last(), Some(&31), "just below the first miss");
    // A miss at the depth that seemed final, here in the tenth window, needs a new final window.
    let windows = std::cell::Cell::new(0);
    let meets = |depth| {
        windows.set(windows.get() + 1);
        depth <= 12 && windows.get() != 10
    };
    assert_eq!(depths(32, meets, 50), (vec![1, 2, 4, 8, 16, 12, 14, 13, 12, 12, 11, 11], true));
    // If nothing meets the target, the depth remains 1.
    assert_eq!(depths(32, |_| false, 5), (vec![1; 5], false));
}
