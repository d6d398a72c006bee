//! E08: percentiles with too few operations beyond them. Names the withheld percentiles of the table and the
//! number of operations that they need.

use super::TIMED;
use crate::checks::prelude::*;

/// The percentiles of the table in addition to the median. Higher ones are only in the JSON, as `null` if
/// withheld.
const SHOWN: [(&str, f64); 2] = [("99", 0.99), ("99.9", 0.999)];
/// Operations that must lie beyond a percentile.
const BEYOND: f64 = 10.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::E08,
    name: "TAIL_UNSUPPORTED",
    belief: "a few operations are enough for the tail",
    reads: "The number of operations in the measured windows, for each direction, over all runs.",
    formula: formula!(
        "A percentile p of n operations is withheld if n (1 - p) is below {BEYOND}: then it depends on \
         single operations. p99 needs {p99} operations, p99.9 needs {p999}, p99.99 needs {p9999}. These are \
         minimums: operations that wait for each other count for less.",
        p99 = show_count(BEYOND / 0.01),
        p999 = show_count(BEYOND / 0.001),
        p9999 = show_count(BEYOND / 0.0001)
    ),
    provoke: "`fathom run --rw randread --depth 1 --time 1s --runs 1 DIR` on a hard disk, which serves about \
              100 operations per second.",
    fix: "Use a longer --time or more --runs.",
    accept: "A note needs no --accept. It changes neither number nor exit code; fathom only withholds the \
             percentiles.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { ops: 200, runs: 1, ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 0, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let ops_by_kind: Vec<u64> = TIMED.iter().filter_map(|k| Some(case.latency(*k)?.count())).collect();
    let fewest = *ops_by_kind.iter().min().ok_or("no operation completed within a measured window")?;
    let withheld: Vec<&(&str, f64)> =
        SHOWN.iter().filter(|(_, q)| (fewest as f64) * (1.0 - q) < BEYOND - 1e-6).collect();
    let numbers = evidence([("operations", fewest as f64), ("withheld", withheld.len() as f64)]);
    let Some((_, hardest)) = withheld.last() else {
        return holds("There are enough operations for the percentiles of the table.", numbers);
    };
    let names: Vec<&str> = withheld.iter().map(|(name, _)| *name).collect();
    detail!(
        Severity::Note,
        numbers,
        "{} operations are too few for p{}, which would depend on single operations: withheld.",
        show_count(fewest as f64),
        names.join(" and p")
    )
    .with_cure(format!("{} {} operations are needed.", CHECK.fix, show_count(BEYOND / (1.0 - hardest))))
    .found()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn ten_operations_beyond_a_percentile_suffice() {
    let with_ops = |ops| Fixture { ops, runs: 1, ..Fixture::honest() }.record();
    assert_eq!(CHECK.severity(&with_ops(10_000)), None);
    assert_eq!(CHECK.severity(&with_ops(9_990)), Some(Severity::Note));
    let Ok(Answer::Finding(f)) = CHECK.answer(&with_ops(500)) else { panic!("silent") };
    assert!(f.sentence.contains("p99 and p99.9") && f.cure.as_ref().unwrap().contains("10,000"), "{f:?}");
}
