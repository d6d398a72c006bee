//! B18: rate, latency and queue depth that contradict each other. Applies Little's law: the sum of latencies
//! divided by the window must equal the mean operations in flight, which fathom counts separately.

use crate::checks::prelude::*;

/// Error of the clock and of operations that share a time stamp.
const TOLERATED: Share = Share(0.02);
/// Largest allowance for slow operations that cross the edges of a window.
const EDGE_AT_MOST: Share = Share(0.10);

pub(super) const CHECK: Check = Check {
    id: CheckId::B18,
    name: "LITTLE_VIOLATED",
    belief: "rate, latency and depth agree",
    reads: "Latencies of all operations in each window, the window's length, and the integral of operations \
            in flight, which fathom counts separately from the latencies.",
    formula: formula!(
        "Little's law: the sum of latencies / window = mean operations in flight. Void if the two sides \
         differ by more than {TOLERATED}, for the clock and shared stamps, plus the effect of a full queue \
         of the slowest operations across the edges of the window, at most {EDGE_AT_MOST}, or one operation \
         of each slot in a short run. Not checked if operations as slow as the slowest of the run could \
         explain the rest: a stall of half the window across its edge counts in the depth and in no latency."
    ),
    provoke: "No option makes it fire: it checks fathom's own arithmetic. A session file with 50 % more \
              operations in flight shows it.",
    fix: "Check the clock (`fathom doctor`), and report it with the session file: this is a bug in fathom or \
          a fault of the machine's clock.",
    accept: "Do not accept it: one of the numbers is wrong, and fathom cannot tell which.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { latency_ns: Some(2_000_000), ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 0, ..crate::fixture::Fixture::honest() }.record(),
};

/// Both sides of Little's law in one run.
struct Sides {
    depth: f64,
    rate_times_latency: f64,
    tolerated: f64,
    /// The largest gap that operations across the edges can cause if all are as slow as the slowest of the run.
    largest_gap: f64,
    slowest_ns: f64,
    window_ns: f64,
}

impl Sides {
    fn gap(&self) -> f64 {
        share((self.rate_times_latency - self.depth).abs(), self.depth)
    }
}

fn evaluate(case: &Case) -> Known<Answer> {
    let depth = asked_depth(&case.stream);
    let sides: Vec<Sides> = case.runs.iter().filter_map(|r| sides(r, depth)).collect();
    let worst = sides.iter().max_by(|a, b| (a.gap() - a.tolerated).total_cmp(&(b.gap() - b.tolerated)));
    let worst = worst.ok_or("no run has operations in a measured window")?;
    let numbers = evidence([
        ("depth_mean", worst.depth),
        ("rate_times_latency", worst.rate_times_latency),
        ("tolerated_share", worst.tolerated),
    ]);
    if worst.gap() <= worst.tolerated {
        return holds("Rate, latency and depth agree.", numbers);
    }
    if worst.gap() <= worst.largest_gap {
        return Err(format!(
            "an operation took {} and may cross the edge of a window of {}, which is too short to compare \
             rate and latency",
            show_ns(worst.slowest_ns),
            show_ns(worst.window_ns)
        ));
    }
    finding!(
        Severity::Void,
        numbers,
        "Rate times latency gives {} operations in flight, but fathom counted {} ({} apart): rate, latency \
         and depth contradict each other.",
        show_rate(worst.rate_times_latency),
        show_rate(worst.depth),
        show_share(worst.gap())
    )
}

fn sides(ran: &CaseRun, requested_depth: f64) -> Option<Sides> {
    // In an open loop, latency starts before an operation is in flight. Only its service time counts here.
    let histograms = || Kind::ALL.iter().filter_map(|k| Some(service_latency(ran.stream.kinds.get(k)?)));
    let ops: f64 = histograms().map(|h| h.count() as f64).sum();
    let sum_ns: f64 = histograms().map(|h| h.sum_ns() as f64).sum();
    let slowest = histograms().filter_map(Histogram::max_ns).max()?;
    // An operation that ends after the window is not in its latencies, but its time is in the depth.
    let slowest_of_all = ran.stream.issued.values().map(|i| i.max_ns).max().unwrap_or(0).max(slowest) as f64;
    let slowest = slowest as f64;
    let (window, depth_ns) = (ran.stream.window_ns as f64, ran.stream.depth_ns as f64);
    if window <= 0.0 || depth_ns <= 0.0 {
        return None;
    }
    // Operations across an edge count completely on one side of the law and in part on the other. At most a full
    // queue of the slowest operations crosses, and all are rarely that slow, hence the limit.
    let edge = (requested_depth * slowest / depth_ns).min(EDGE_AT_MOST.0).max(requested_depth / ops);
    Some(Sides {
        depth: depth_ns / window,
        rate_times_latency: sum_ns / window,
        tolerated: TOLERATED.0 + edge,
        largest_gap: TOLERATED.0 + requested_depth * slowest_of_all / depth_ns,
        slowest_ns: slowest_of_all,
        window_ns: window,
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn ten_percent_of_difference_is_void_and_one_percent_is_silent() {
    // 31.5 in flight and 10,000 operations a second: 3.15 ms.
    let at = |latency| Fixture { latency_ns: Some(latency), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&at(2_800_000).record()), Some(Severity::Void));
    assert_eq!(CHECK.severity(&at(3_120_000).record()), None);
}

#[test]
fn a_few_slow_operations_across_the_edges_are_accepted() {
    let slow = Fixture { ops: 40, depth_seen: 20.0, latency_ns: Some(400_000_000), ..Fixture::honest() };
    assert_eq!(CHECK.severity(&slow.record()), None);
}

#[test]
fn a_stall_across_the_edge_of_the_window_is_not_checked() {
    // Depth 1 for a second. One operation that ended after the window took 0.8 s of it.
    let mut record =
        Fixture { ops: 200, depth: 1, depth_seen: 1.0, latency_ns: Some(1_000_000), ..Fixture::honest() }
            .record();
    assert_eq!(CHECK.severity(&record), Some(Severity::Void));
    let issued = record
        .runs
        .iter_mut()
        .flat_map(|r| &mut r.end)
        .flat_map(|e| &mut e.streams)
        .flat_map(|s| s.issued.values_mut());
    issued.for_each(|i| i.max_ns = 850_000_000);
    assert!(CHECK.answer(&record).is_err_and(|why| why.contains("850 ms")));
}
