//! What was found at a time: where it lies on the plots of a result.
//!
//! For: cliffs, throttles, warm-up and disturbed runs, as findings and runs tell them. Not for: finding any.

use model::check_id::CheckId;
use model::finding::{Finding, Outcome};
use model::report::{Measured, Report};

/// Checks that know the second of what they found, and a word for it.
const TIMED_CHECKS: [(CheckId, &str); 3] =
    [(CheckId::E02, "cliff"), (CheckId::D15, "drive hot"), (CheckId::D19, "credits spent")];

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
    pub(super) fn from_result(report: &Report, result: &Measured) -> Self {
        let is_about = |f: &&Finding| f.outcome == Outcome::Finding && f.about.contains(&result.name);
        let found = |id: CheckId| report.findings.iter().filter(is_about).filter(move |f| f.id == id);
        let number = |f: &Finding, key: &str| f.evidence.get(key).copied().filter(|v| v.is_finite());
        let at = |(id, word): &(CheckId, &str)| -> Vec<Mark> {
            let mark = |f: &Finding| {
                let run = number(f, "run")?.max(0.0) as u32;
                Some(Mark { run, second: number(f, "at_s")?, words: format!("{word} ({id})") })
            };
            found(*id).filter_map(mark).collect()
        };
        let warm = found(CheckId::E03).filter_map(|f| number(f, "warmup_s")).fold(0.0, f64::max);
        let counting = result.disturbed.iter().filter(|d| d.counts);
        Self {
            marks: TIMED_CHECKS.iter().flat_map(at).collect(),
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

#[test]
fn what_knows_its_second_lies_there_and_nothing_else_does() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/valid.json");
    let mut report: Report = serde_json::from_str(golden)?;
    let result = report.results.first().ok_or("no result")?.clone();
    let like = report.findings.first().ok_or("no finding")?.clone();
    let found = |id, evidence: &[(&str, f64)]| Finding {
        id,
        outcome: Outcome::Finding,
        about: vec![result.name.clone()],
        evidence: evidence.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect(),
        ..like.clone()
    };
    let second = [("run", 1.0), ("at_s", 2.5)];
    report.findings = vec![
        found(CheckId::D15, &second),
        found(CheckId::E02, &second),
        found(CheckId::D19, &[("until_ns", 1e9)]),
        found(CheckId::A16, &second),
    ];
    let events = Events::from_result(&report, &result);
    let marks: Vec<(u32, f64, &str)> =
        events.marks.iter().map(|m| (m.run, m.second, m.words.as_str())).collect();
    assert_eq!(marks, [(1, 2.5, "cliff (E02)"), (1, 2.5, "drive hot (D15)")]);
    Ok(())
}
