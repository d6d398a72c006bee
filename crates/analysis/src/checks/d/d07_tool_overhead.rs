//! D07: what fathom itself takes of each operation.
//!
//! For: the cost of our own loop, measured before the first run, against the latencies. Not for: the kernel's part, nor
//! engines that move no bytes.

use crate::case::Case;
use crate::checks::{Answer, Check, Found, Page, evidence};
use model::Known;
use model::finding::Severity;
use model::job::Kind;
use model::units::{show_ns, show_share};

/// Share of an operation's time from which our own part is no side matter.
const OVERHEAD_FROM: f64 = 0.1;

pub(super) const CHECK: Check = Check {
    id: "D07",
    name: "TOOL_OVERHEAD",
    belief: "what the tool itself takes can be neglected",
    page: Page {
        reads: "The self test before the first run: ns per operation of fathom's own loop with the engine null; the medians of the \
                measured latencies.",
        formula: "Time of the loop by the smaller median of reads and writes: above 10 % fathom is visible in its own figure.",
        provoke: "fathom run --rw randread --bs 512 --engine mmap --size 16m .   # some hundred ns each",
        repair: "Compare such figures only with others of fathom, or ask for a larger `--bs`. Accept it with `--accept D07` where \
                 only the difference of two such figures matters.",
    },
    ask: look,
    #[cfg(test)]
    fires: Some(|| {
        let quick = crate::forge::Forge { latency_ns: Some(150), ..crate::forge::Forge::honest() };
        crate::forge::Forge { depth: 1, depth_seen: 1.0, ..quick }.record()
    }),
    #[cfg(test)]
    blind: || crate::forge::Forge { tool_ns: None, ..crate::forge::Forge::honest() }.record(),
};

fn look(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let own_ns = case.ceiling()?.loop_ns.clone()?;
    let kinds = Kind::MOVING.iter().filter_map(|k| case.latency(*k)?.quantile_ns(0.5));
    let median = kinds.min().ok_or("no operation completed within a measured window")? as f64;
    let part = own_ns / median.max(1.0);
    let numbers = evidence([("tool_ns", own_ns), ("median_ns", median), ("share", part)]);
    if part <= OVERHEAD_FROM {
        return Ok(Answer::Holds("What fathom takes of each operation can be neglected.", numbers));
    }
    Ok(Answer::Finding(Found {
        severity: Severity::Biased,
        sentence: format!(
            "fathom itself takes {} of each operation, {} of its median of {}.",
            show_ns(own_ns),
            show_share(part),
            show_ns(median)
        ),
        cure: "Compare such figures only with others of fathom, or ask for a larger --bs.".into(),
        evidence: numbers,
        renames: None,
    }))
}
