//! E14: the two sides did different work, or ran on different machines. The finding names everything that differs.

use super::{ComparisonCheck, Context, NamedAnswer};
use crate::checks::prelude::*;
use crate::compare;
use model::comparison::Pair;

pub(super) const CHECK: ComparisonCheck = ComparisonCheck {
    id: CheckId::E14,
    name: "NOT_ALIKE",
    belief: "nothing else differs between the two sides",
    reads: "The jobs of both sides as they ran, the machine, file system and block stack of both, and the \
            findings that invalidate or relabel a result.",
    formula: formula!(
        "Refused, because the work differs: another order, direction, block size, span, first byte, number \
         of targets, depth, workers, cache mode, pace, syncs or data, or other concurrent streams. Also \
         refused: a side that a finding invalidates; a side that a finding relabels while the other is not \
         relabelled, such as the page cache (A01) against the device; sessions of one side that differ in \
         anything. If the sides rest on different accepted findings (`--accept`), or one side uses another \
         engine because the default engine was denied there, and nothing else refuses, the answer is CANNOT \
         TELL. Named, because it may be the subject of the comparison: host, kernel, CPU, hypervisor, cgroup \
         limits, file system, mount options, device, its queue, engine, batch, CPUs of the workers, times, \
         and the limiter of the result (B05, D05, D06, D08, D11). A circumstance that is unknown on one side \
         is not checked."
    ),
    provoke: "fathom run --cache direct -o a.json DIR\n\
              fathom run --cache buffered -o b.json DIR\n\
              fathom compare a.json b.json",
    fix: "Measure both sides alike, or use --accept E14 to compare them anyway.",
    accept: "With --accept E14 the differences are named, and the answers cover them as well.",
    acceptable: true,
    ask: evaluate,
};

fn evaluate(context: &Context) -> Vec<NamedAnswer> {
    let mut out = Vec::new();
    for (pair, unknown) in context.pairs.iter().zip(&context.unknown) {
        let mut add = |answer| out.push((vec![pair.name.clone()], answer));
        let findings: Vec<Detail> =
            [other_work(pair, context), side_without_number(pair, context), labelled_differences(pair)]
                .into_iter()
                .flatten()
                .collect();
        if !unknown.is_empty() {
            add(Err(format!("unknown on one or both sides: {}", unknown.join("; "))));
        } else if findings.is_empty() {
            add(holds("Nothing else differs between the two sides.", Evidence::new()));
        }
        for found in findings {
            add(Ok(Answer::Finding(found)));
        }
    }
    out
}

fn found(severity: Severity, sentence: String, cure: &str) -> Detail {
    Detail::new(severity, sentence, Evidence::new()).with_cure(cure.to_owned())
}

/// Returns the finding for sides that did different work, accepted or not.
fn other_work(pair: &Pair, context: &Context) -> Option<Detail> {
    let sentence = compare::other_work(&pair.differences, context.name)? + ".";
    Some(if context.accepted {
        found(Severity::Rename, sentence, "")
    } else {
        Detail::new(Severity::Void, sentence, Evidence::new())
    })
}

/// Returns the finding for a side without a number, or with several different sessions.
fn side_without_number(pair: &Pair, context: &Context) -> Option<Detail> {
    let other_work = compare::other_work(&pair.differences, context.name);
    let why = pair.refused.as_ref().filter(|why| other_work.as_ref() != Some(why))?;
    Some(found(Severity::Void, format!("{why}."), "Measure again without that."))
}

fn labelled_differences(pair: &Pair) -> Option<Detail> {
    let differences: Vec<String> =
        pair.differences.iter().filter(|d| !d.refuses).map(compare::show_difference).collect();
    let sentence = format!("Other differences between the sides: {}.", differences.join("; "));
    (!differences.is_empty()).then(|| found(Severity::Note, sentence, ""))
}
