//! E07: latencies in two groups, which no mean describes. Looks for a deep valley between two peaks of the
//! latency histogram on a logarithmic axis.

use super::{TIMED, has_step};
use crate::checks::prelude::*;
use stats::bimodality::{FEWEST_OPS, RATIO_FROM, SHARE_FROM, VALLEY_TO, modes};

pub(super) const CHECK: Check = Check {
    id: CheckId::E07,
    name: "BIMODAL",
    belief: "the mean latency is typical",
    reads: "The latency histograms of the measured windows, for each direction, over all runs.",
    formula: formula!(
        "On a logarithmic axis of quarter octaves, smoothed over neighbours, the check looks for a valley at \
         most {VALLEY_TO} times as high as the lower of the neighbouring peaks, with at least {share} of the \
         operations on each side and medians at least a factor of {RATIO_FROM} apart. Fewer than {fewest} \
         operations are not checked. Runs with a step (E02) have two levels and are reported there.",
        share = Share(SHARE_FROM),
        fewest = show_count(FEWEST_OPS as f64)
    ),
    provoke: "`fathom run --rw randread --cache buffered --depth 1 FILE` with about half of FILE in memory \
              (`head -c 512M FILE > /dev/null`).",
    fix: "Quote both medians with their shares instead of the mean, and find the cause of the two groups: \
          cache hits (A01), two drives that share a name, reads mixed with writes.",
    accept: "Accept it if you want to measure such a mixture.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| mixed(40)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 100, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() || has_step(case) {
        return Ok(Answer::DoesNotApply);
    }
    let mut checked = 0;
    for kind in TIMED {
        let Some(latencies) = case.latency(kind).filter(|h| h.count() >= FEWEST_OPS) else { continue };
        checked += 1;
        let Some(groups) = modes(&latencies) else { continue };
        let mean = latencies.mean_ns().unwrap_or(0.0);
        let cached = if has_cache_hits(case) { " The faster group are page cache hits (A01)." } else { "" };
        return finding!(
            Severity::Biased,
            evidence([
                ("fast_ns", groups.fast_ns),
                ("slow_ns", groups.slow_ns),
                ("slow_share", groups.slow_share),
                ("mean_ns", mean),
            ]),
            "Latencies of {}s form two groups: {} take about {} and {} about {}; the mean of {} describes \
             neither.{cached}",
            kind.word(),
            show_share(1.0 - groups.slow_share),
            show_ns(groups.fast_ns),
            show_share(groups.slow_share),
            show_ns(groups.slow_ns),
            show_ns(mean)
        );
    }
    if checked == 0 {
        return Err(format!("no direction has the {FEWEST_OPS} operations that a distribution needs"));
    }
    holds("Latencies form one group.", evidence([]))
}

/// Whether the page cache is known to have answered a part of the reads.
fn has_cache_hits(case: &Case) -> bool {
    let read = case.issued(Kind::Read).bytes as f64;
    case.at_device(Kind::Read).is_ok_and(|delivered| (delivered.most as f64) < ARRIVED_FROM.0 * read)
}

#[cfg(test)]
use crate::fixture::Fixture;

/// 10,000 operations, of which `slow_percent` percent are slow.
#[cfg(test)]
fn mixed(slow_percent: u64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        let latency = &mut end.streams[0].kinds.get_mut(&Kind::Read).unwrap().latency;
        latency.clear();
        (0..10_000).for_each(|i| latency.record(if i % 100 < slow_percent { 400_000 } else { 5_000 } + i));
    }
    record
}

#[test]
fn both_medians_are_reported_and_a_tail_is_not_a_group() {
    let Ok(Answer::Finding(f)) = CHECK.answer(&mixed(40)) else { panic!("silent") };
    assert!((f.evidence["slow_share"] - 0.4).abs() < 0.01, "{:?}", f.evidence);
    assert!(f.sentence.contains("60 % take about") && !f.sentence.contains("A01"), "{}", f.sentence);
    assert_eq!(CHECK.severity(&mixed(8)), None, "8 % are a tail");
    assert_eq!(CHECK.severity(&mixed(100)), None);
}

#[test]
fn two_levels_of_a_run_are_left_to_e02() {
    let stepped = super::shaped(&Fixture::honest(), 25, 1, |_, t| if t < 0.5 { 20_000.0 } else { 1_000.0 });
    assert_eq!(CHECK.answer(&stepped), Ok(Answer::DoesNotApply));
}

#[test]
fn the_sentence_names_a_known_cache() {
    let mut record = mixed(40);
    let cached = Fixture { delivered: 0.4, ..Fixture::honest() }.record();
    for (run, other) in record.runs.iter_mut().zip(cached.runs) {
        run.evidence = other.evidence;
    }
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("A01"), "{}", f.sentence);
}
