//! F01: hosts that did not start at the same time, or whose clocks are too inaccurate to tell. Compares the time
//! between the first and the last start, and the error of the clocks, with the time in which all hosts ran.

use super::{host_names, hosts, runs};
use crate::checks::prelude::*;

/// Share of the time in which all hosts ran by which starts may differ. Runs differ by more than that effect on
/// the rate.
const APART_ABOVE: Share = Share(0.01);

pub(super) const CHECK: Check = Check {
    id: CheckId::F01,
    name: "HOSTS_APART",
    belief: "all hosts began at the same time",
    reads: "For each run, the first operation of every host by its own clock (CLOCK_MONOTONIC), and the \
            offset of that clock from rank 0's before and after the run. Offsets come from round trips over \
            the network, of which the shortest counts.",
    formula: formula!(
        "Compares the time between the first operations of the first and of the last host with the time in \
         which all hosts ran. A clock may be off by half of the shortest round trip, or by its drift between \
         the two readings, whichever is more. If the difference or the error is more than {APART_ABOVE} of \
         the time in which all hosts ran, in most runs, the number is biased: part of it is the load of only \
         some hosts. Not checked if the clocks were not read."
    ),
    provoke: "`mpirun -np 2 --bind-to none taskset -c 0 fathom run --rw randread --time 20ms \
              --ranks-per-host 2 DIR`: ranks that wait for one CPU begin one after the other.",
    fix: "Use a longer --time, leave a CPU free for fathom on each host, and use a network with less load \
          for MPI (`--mca btl_tcp_if_include`).",
    accept: "Accept it if your hosts also start one after the other.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| super::with(|f| f.runs.iter_mut().for_each(|r| r.spread_ns = Some(30_000_000)))),
    #[cfg(test)]
    blind: || super::with(|f| f.runs.iter_mut().for_each(|r| r.clock_error_ns = None)),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let hosts = hosts(case);
    if hosts.is_empty() {
        return Ok(Answer::DoesNotApply);
    }
    let known: Vec<(u64, u64, u64, usize)> = runs(case)
        .into_iter()
        .filter_map(|run| Some((run.spread_ns?, run.clock_error_ns?, run.common_ns, run.last? as usize)))
        .collect();
    if known.is_empty() {
        return Err(format!("no run began on all {} hosts with their clocks read", hosts.len()));
    }
    let share_apart = |(spread, error, common, _): &(u64, u64, u64, usize)| {
        (*spread).max(*error) as f64 / (*common).max(1) as f64
    };
    let apart = known.iter().filter(|run| share_apart(run) > APART_ABOVE).count();
    // There is at least one.
    let Some(worst) = known.iter().max_by(|a, b| share_apart(a).total_cmp(&share_apart(b))) else {
        return Ok(Answer::DoesNotApply);
    };
    let (spread, error, _, last) = *worst;
    let numbers = evidence([
        ("apart_ns", spread as f64),
        ("clock_error_ns", error as f64),
        ("worst_share", share_apart(worst)),
        ("runs", known.len() as f64),
        ("runs_apart", apart as f64),
    ]);
    if 2 * apart <= known.len() {
        return holds("All hosts began at the same time, by accurate clocks.", numbers);
    }
    let share = show_share(share_apart(worst));
    let in_runs = format!("In {apart} of {} runs", known.len());
    let sentence = if error > spread {
        format!(
            "{in_runs}, fathom cannot tell whether hosts began together: at worst their clocks are accurate \
             to {}, which is {share} of the time in which all ran.",
            show_ns(error as f64)
        )
    } else {
        format!(
            "{in_runs}, hosts did not begin together: at worst the last one ({}) began {} after the first, \
             which is {share} of the time in which all ran.",
            host_names(case, &[last]),
            show_ns(spread as f64)
        )
    };
    Detail::new(Severity::Biased, sentence, numbers).found()
}

#[test]
fn starts_that_differ_in_most_runs_bias() {
    let severity = |spread, error, common| {
        CHECK.severity(&super::with(|f| {
            for run in &mut f.runs {
                (run.spread_ns, run.clock_error_ns, run.common_ns) = (Some(spread), Some(error), common);
            }
        }))
    };
    assert_eq!(severity(9_000_000, 1_000, 1_000_000_000), None);
    assert_eq!(severity(11_000_000, 1_000, 1_000_000_000), Some(Severity::Biased));
    assert_eq!(severity(1_000, 11_000_000, 1_000_000_000), Some(Severity::Biased));
    assert_eq!(severity(11_000_000, 1_000, 10_000_000_000), None, "a longer run tolerates more");
    let unknown = super::with(|f| f.runs.iter_mut().for_each(|r| r.clock_error_ns = Some(90_000_000)));
    let Ok(Answer::Finding(found)) = CHECK.answer(&unknown) else { panic!("silent") };
    assert!(found.sentence.contains("cannot tell"), "{}", found.sentence);
    assert_eq!(
        CHECK.severity(&super::with(|f| f.runs[0].spread_ns = Some(90_000_000))),
        None,
        "one run of five"
    );
}
