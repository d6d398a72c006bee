//! D26: fathom itself stood still.
//!
//! For: stop signals, freezers, debuggers and machines that were paused, which stop all workers and their clocks at once. Not for:
//! waiting for a CPU (D08), a quota (D11), nor a machine that slept and knows it (D13).

use crate::case::{Case, share};
use crate::checks::check::{Answer, Ask, Check, Detail, Page, evidence, formula};
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::units::{show_ns, show_share};

/// Share of the runs' time that changes a rate by less than runs vary.
const BIASED_ABOVE: Share = Share(0.01);
/// Share from which most of what is seen is the stop.
const VOID_ABOVE: Share = Share(0.3);

pub(super) const CHECK: Check = Check {
    id: CheckId::D26,
    name: "STOOD_STILL",
    belief: "fathom itself ran all the time",
    page: Page {
        reads: "The thread that watches the workers sleeps for 10 ms at a time. By how much each sleep took longer, and in \
                `/proc/thread-self/schedstat` how long it waited for a CPU meanwhile.",
        formula: formula!(
            "Sleeps that took 100 ms and more too long, less the waiting for a CPU: biased above {BIASED_ABOVE} of the runs' \
             time, void above {VOID_ABOVE}. 100 ms is ten ticks of the slowest kernel. Workers cannot tell: a stop halts all \
             of them and their clocks, so it looks like a device that answered nothing."
        ),
        provoke: "`fathom run --rw randread --time 3s DIR`, and meanwhile in another terminal `kill -STOP PID; sleep 1; kill -CONT PID`; \
                  or a freezer: `echo FROZEN > freezer.state`.",
        fix: "Measure again, and let nothing stop it: job control (Ctrl-Z), a debugger, a freezer, a snapshot of the virtual \
              machine.",
        accept: "Do not accept it: nothing makes up for the time.",
    },
    ask: Ask::Alone(look),
    #[cfg(test)]
    fires: Some(|| still(500_000_000)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record
            .runs
            .iter_mut()
            .filter_map(|r| r.end.as_mut())
            .for_each(|e| e.still = Some(Err("no schedstat".into())));
        record
    },
};

fn look(case: &Case) -> Known<Answer> {
    if case.runs.is_empty() {
        return Err(crate::case::no_run());
    }
    let (mut total, mut longest, mut times, mut time) = (0.0_f64, 0_u64, 0_u64, 0.0);
    for ran in &case.runs {
        let seen = ran
            .end
            .still
            .clone()
            .unwrap_or_else(|| Err("whether fathom stood still was not recorded".into()))?;
        total += seen.total_ns as f64;
        longest = longest.max(seen.longest_ns);
        times += u64::from(seen.times);
        time += ran.active_ns()? as f64;
    }
    let part = share(total, time);
    let numbers = evidence([
        ("still_ns", total),
        ("longest_ns", longest as f64),
        ("times", times as f64),
        ("share", part),
    ]);
    if part <= BIASED_ABOVE {
        return Ok(Answer::Holds("fathom itself ran all the time.", numbers));
    }
    let often = if times == 1 {
        String::new()
    } else {
        format!(" ({times} times, at most {})", show_ns(longest as f64))
    };
    Ok(Answer::Finding(Detail::new(
        if part > VOID_ABOVE { Severity::Void } else { Severity::Biased },
        format!(
            "fathom itself stood still for {}{often}, {} of the runs' time: it was stopped (a signal, a freezer, a debugger), or the \
             whole machine was. Stalls and gaps over time are that, and not the storage.",
            show_ns(total),
            show_share(part)
        ),
        numbers,
    )))
}

/// The honest record of a program that stood still for so long in one run.
#[cfg(test)]
fn still(ns: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    let seen = model::record::Still { times: 1, longest_ns: ns, total_ns: ns };
    record.runs[0].end.as_mut().unwrap().still = Some(Ok(seen));
    record
}

#[test]
fn a_hundredth_is_nothing_half_a_second_biases_and_most_of_the_time_voids() {
    let at = |ns| CHECK.severity(&still(ns));
    // Five runs of a second.
    assert_eq!(at(40_000_000), None);
    assert_eq!(at(500_000_000), Some(Severity::Biased));
    assert_eq!(at(3_000_000_000), Some(Severity::Void));
}
