//! A12: layers below the one that we talk to which kept the work for themselves.
//!
//! For: stacks, such as a loop device on a cached file. Not for: a single disk, nor memory all the way down (A11).

use crate::case::{Case, share};
use crate::checks::{Answer, Check, Found, Page, Rename, evidence};
use model::Known;
use model::check_id::CheckId;
use model::evidence::BlockFlow;
use model::finding::Severity;
use model::job::Kind;
use model::machine::Layer;
use model::units::{show_bytes, show_share};

/// Share of a layer's bytes that must arrive below.
const ARRIVES_FROM: f64 = 0.95;

pub(super) const CHECK: Check = Check {
    id: CheckId::A12,
    name: "LOWER_LAYER_CACHE",
    belief: "what the top device did, the disks below did too",
    page: Page {
        reads: "The stat files of the top devices and of the disks below them, from start to stop of every run, for the \
                directions that the job uses.",
        formula: "Bytes at the disks / bytes at the top < 95 %: what a layer is asked for must arrive below, or something \
                between kept it. A partition and its disk are one device. RAID levels that write more pass, since only \
                less than was asked for is a cache.",
        provoke: "`losetup -f --show IMAGE` (without --direct-io=on) and `fathom run --rw randread /dev/loopN`.",
        repair: "Set the layer up without its cache (`losetup --direct-io=on`, no bcache, no dm-cache), or measure the \
                disk itself. Accept it where the stack as it is is what you want to know about.",
    },
    ask: look,
    #[cfg(test)]
    fires: Some(|| crate::forge::Forge { leaf_share: Some(0.02), ..crate::forge::Forge::honest() }.record()),
    #[cfg(test)]
    blind: || crate::forge::Forge { stat_unreadable: true, ..crate::forge::Forge::honest_loop() }.record(),
};

fn look(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    // A partition and its disk are one device.
    let (tops, leaves) = (case.shared()?, case.leaves()?);
    if tops.iter().all(|t| leaves.iter().any(|l| l.stat_file == t.stat_file)) {
        return Ok(Answer::DoesNotApply);
    }
    let (top, leaf) = (case.counted(&tops)?, case.counted(&leaves)?);
    let kinds = [(Kind::Read, top.read, leaf.read), (Kind::Write, top.write, leaf.write)];
    let kinds = kinds.into_iter().filter(|(kind, ..)| case.does(*kind));
    for (kind, above, below) in kinds {
        let part = share(below.bytes as f64, above.bytes as f64);
        if above.bytes > 0 && part < ARRIVES_FROM {
            return Ok(Answer::Finding(found(kind, (names(&tops), above), (names(&leaves), below), part)));
        }
    }
    let numbers =
        evidence([("top_bytes", top.total().bytes as f64), ("leaf_bytes", leaf.total().bytes as f64)]);
    Ok(Answer::Holds("What the top device did, the disks below did too.", numbers))
}

fn found(
    kind: Kind,
    (top, above): (String, BlockFlow),
    (leaf, below): (String, BlockFlow),
    part: f64,
) -> Found {
    let word = kind.word();
    Found {
        severity: Severity::Rename,
        sentence: format!(
            "{top} did {} of {word}s and {leaf} below it {} ({}): a cache between them did the work.",
            show_bytes(above.bytes),
            show_bytes(below.bytes),
            show_share(part)
        ),
        cure: format!("Measure {leaf} itself, or set up {top} without that cache (losetup --direct-io=on)."),
        evidence: evidence([
            ("top_bytes", above.bytes as f64),
            ("leaf_bytes", below.bytes as f64),
            ("top_ios", above.ios as f64),
            ("leaf_ios", below.ios as f64),
        ]),
        renames: Some(Rename::Medium(format!("cache below {top}"))),
    }
}

fn names(layers: &[&Layer]) -> String {
    layers.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
use crate::forge::Forge;

#[test]
fn a_stack_that_passes_everything_on_holds_and_a_single_disk_is_not_asked() {
    assert!(matches!(crate::checks::ask_one(&CHECK, &Forge::honest_loop().record()), Ok(Answer::Holds(..))));
    assert_eq!(crate::checks::ask_one(&CHECK, &Forge::honest().record()), Ok(Answer::DoesNotApply));
}
