//! What was found at a time: where it lies on the plots of a result.
//!
//! For: cliffs, warm-up and disturbed runs, as findings and runs tell them. Not for: finding any.

use model::check_id::CheckId;
use model::finding::{Finding, Outcome};
use model::report::{Measured, Report};

/// What lies on the plots of a result.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// What happened at a second of a run.
    pub(super) marks: Vec<Mark>,
    /// Runs that others disturbed and that count all the same, with what they did.
    pub(super) foreign: Vec<(u32, String)>,
    /// Runs whose mean has warm-up in it, and its seconds.
    pub(super) warm_up: Vec<(u32, f64)>,
}

/// What happened at a second of a run.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) run: u32,
    pub(super) second: f64,
    pub(super) words: String,
}

impl Events {
    /// Of a result of a report.
    pub(super) fn of(report: &Report, result: &Measured) -> Self {
        let is_about = |f: &&Finding| f.outcome == Outcome::Finding && f.about.contains(&result.name);
        let found = |id: CheckId| report.findings.iter().filter(is_about).filter(move |f| f.id == id);
        let number = |f: &Finding, key: &str| f.evidence.get(key).copied().filter(|v| v.is_finite());
        let cliffs = found(CheckId::E02).filter_map(|f| {
            let run = number(f, "run")?.max(0.0) as u32;
            Some(Mark { run, second: number(f, "at_s")?, words: "cliff (E02)".into() })
        });
        let warm = found(CheckId::E03).filter_map(|f| number(f, "warmup_s")).fold(0.0, f64::max);
        let counting = result.disturbed.iter().filter(|d| d.counts);
        Self {
            marks: cliffs.collect(),
            foreign: counting
                .map(|d| (d.run, d.why.clone().unwrap_or_else(|| "in a disturbed round".into())))
                .collect(),
            warm_up: if warm > 0.0 {
                result.runs.iter().map(|r| (r.run, warm)).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Whether others disturbed this run.
    pub(super) fn is_disturbed(&self, run: u32) -> bool {
        self.foreign.iter().any(|(disturbed, _)| *disturbed == run)
    }
}
