//! D07: fathom's own share of each operation. Compares the cost of its loop, measured before the first run, with
//! the median latency.

use crate::checks::prelude::*;
use model::record::PREPARES_AHEAD;

/// Share of an operation's time above which fathom's own part matters.
const OVERHEAD_FROM: Share = Share(0.1);

pub(super) const CHECK: Check = Check {
    id: CheckId::D07,
    name: "TOOL_OVERHEAD",
    belief: "fathom's own overhead is negligible",
    reads: "The self test before the first run: ns per operation of fathom's own loop with the engine null; \
            the medians of the measured latencies.",
    formula: formula!(
        "Time of the loop / the smaller median of reads and writes: above {OVERHEAD_FROM}, fathom's overhead \
         is visible in the number. Data of large writes that are generated while the queue is full count \
         only if that takes longer than the device."
    ),
    provoke: "fathom run --rw randread --bs 512 --engine mmap --size 16m .   # some hundred ns per operation",
    fix: "Compare such numbers only with others from fathom, or use a larger --bs.",
    accept: "Accept it if only the difference between two such numbers matters.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        let quick = crate::fixture::Fixture { latency_ns: Some(150), ..crate::fixture::Fixture::honest() };
        crate::fixture::Fixture { depth: 1, depth_seen: 1.0, ..quick }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { tool_ns: None, ..crate::fixture::Fixture::honest() }.record(),
};

/// Whether every worker generates the data of its next write while it waits for the current ones.
fn prepares_data_ahead(case: &Case) -> bool {
    let mut workers = stream_workers(case).peekable();
    workers.peek().is_some() && workers.all(|w| w.used.iter().any(|u| u == PREPARES_AHEAD))
}

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let own_ns = case.ceiling()?.loop_ns.clone()?;
    let median = least_median_ns(case)?;
    // Data generated while the device works cost no time unless they take longer than the device.
    let is_hidden = own_ns <= median && prepares_data_ahead(case);
    let part = if is_hidden { 0.0 } else { own_ns / median.max(1.0) };
    let numbers = evidence([("tool_ns", own_ns), ("median_ns", median), ("share", part)]);
    if part <= OVERHEAD_FROM {
        return holds("fathom's own overhead is negligible.", numbers);
    }
    finding!(
        Severity::Biased,
        numbers,
        "fathom's own loop takes {} per operation, {} of the median of {}.",
        show_ns(own_ns),
        show_share(part),
        show_ns(median)
    )
}

#[test]
fn data_generated_while_the_device_works_do_not_count() {
    let slow_loop = || crate::fixture::Fixture {
        tool_ns: Some([40_000.0, 250.0]),
        latency_ns: Some(180_000),
        ..crate::fixture::Fixture::honest_write()
    };
    let severity = |record: &model::record::Record| CHECK.severity(record);
    assert_eq!(severity(&slow_loop().record()), Some(Severity::Biased));
    let prepared_ahead = |fixture: crate::fixture::Fixture| {
        let mut record = fixture.record();
        let workers = record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.workers);
        workers.for_each(|w| w.used.push(PREPARES_AHEAD.into()));
        record
    };
    assert_eq!(severity(&prepared_ahead(slow_loop())), None);
    let slower_loop = crate::fixture::Fixture { tool_ns: Some([190_000.0, 250.0]), ..slow_loop() };
    assert_eq!(severity(&prepared_ahead(slower_loop)), Some(Severity::Biased));
}
