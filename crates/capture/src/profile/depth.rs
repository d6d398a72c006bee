//! Requests in flight.
//!
//! For: the integral over time of how many were issued and not completed. Not for: those that waited in the scheduler.

use crate::row::Row;
use model::captured::{Depth, DepthShare};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most that are counted in flight; no device takes as many.
const MAX_IN_FLIGHT: usize = 1 << 18;
/// Depths that are told one by one; above, those up to each power of two together.
const MAX_SINGLE_DEPTH: u64 = 2;

/// Requests in flight while rows come in order of issue.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    ends: BinaryHeap<Reverse<u64>>,
    now_ns: u64,
    most: u64,
    /// Time with so many: 0, 1, 2, up to 4, up to 8, ...
    times: Vec<u64>,
    integral: u128,
}

impl InFlight {
    pub(super) fn add(&mut self, row: &Row) {
        let Some(latency) = row.latency_ns else { return };
        self.until(row.issue_ns);
        if self.ends.len() >= MAX_IN_FLIGHT {
            self.ends.pop();
        }
        self.ends.push(Reverse(row.issue_ns.saturating_add(latency)));
        self.most = self.most.max(self.ends.len() as u64);
    }

    /// Lets the time go on.
    fn until(&mut self, at_ns: u64) {
        while let Some(&Reverse(end)) = self.ends.peek().filter(|Reverse(end)| *end <= at_ns) {
            self.pass(end);
            self.ends.pop();
        }
        self.pass(at_ns);
    }

    fn pass(&mut self, to_ns: u64) {
        let passed = to_ns.saturating_sub(self.now_ns);
        let depth = self.ends.len() as u64;
        let class = class(depth);
        if self.times.len() <= class {
            self.times.resize(class + 1, 0);
        }
        self.times[class] += passed;
        self.integral += u128::from(depth) * u128::from(passed);
        self.now_ns = self.now_ns.max(to_ns);
    }

    pub(super) fn finish(mut self, duration_ns: u64) -> Option<Depth> {
        if self.most == 0 {
            return None;
        }
        self.until(u64::MAX - 1);
        // The rest of the time none was in flight.
        let busy: u64 = self.times.iter().skip(1).sum();
        let whole = duration_ns.max(busy);
        let over = |time: u64| if time == 0 { 0.0 } else { self.integral as f64 / time as f64 };
        let (mean, busy_mean) = (over(whole), over(busy));
        if let Some(idle) = self.times.first_mut() {
            *idle = whole - busy;
        }
        let share = |time: u64| if whole == 0 { 0.0 } else { time as f64 / whole as f64 };
        let told = self.times.iter().enumerate().filter(|(_, time)| **time > 0).map(|(class, time)| {
            let (from, to) = bounds(class as u64);
            DepthShare { from, to, share: share(*time) }
        });
        Some(Depth { mean, busy_mean, max: self.most, shares: told.collect() })
    }
}

/// Which class a depth is in.
fn class(depth: u64) -> usize {
    if depth <= MAX_SINGLE_DEPTH { depth as usize } else { depth.next_power_of_two().trailing_zeros() as usize + 1 }
}

/// From which depth to which one it is.
fn bounds(class: u64) -> (u64, u64) {
    if class <= MAX_SINGLE_DEPTH { (class, class) } else { ((1 << (class - 2)) + 1, 1 << (class - 1)) }
}

#[test]
fn depth_is_the_integral_over_the_time() {
    let mut flight = InFlight::default();
    let row = |issue_ns, ns| Row { issue_ns, latency_ns: Some(ns), ..Row::default() };
    for one in [row(10, 20), row(20, 20), row(60, 10)] {
        flight.add(&one);
    }
    let told = flight.finish(100).unwrap_or_default();
    assert_eq!((told.mean, told.busy_mean, told.max), (0.5, 50.0 / 40.0, 2));
    let shares: Vec<(u64, u64, f64)> = told.shares.iter().map(|s| (s.from, s.to, s.share)).collect();
    assert_eq!(shares, [(0, 0, 0.6), (1, 1, 0.3), (2, 2, 0.1)]);
    for depth in 0..200 {
        let (from, to) = bounds(class(depth) as u64);
        assert!((from..=to).contains(&depth), "{depth}");
    }
    assert_eq!(InFlight::default().finish(100), None);
}
