//! Studies: the questions that several jobs answer together, one file each.
//!
//! A study implements [`Question`] for its part of the plan and [`Conclusion`] for its part of the report. [`question`],
//! [`conclusion`] and [`forgives_other_load`] are the only places that list the studies. The default of each method is the behaviour for
//! independent jobs.

mod hosts;
mod interfaces;
mod layers;
mod limit;
mod profile;
pub(crate) mod sweep;
mod targets;

use crate::deductions;
use crate::findings::CaseAnswers;
use crate::runs::CellRun;
use crate::verdict::{Judged, ReportHead};
use model::finding::{CheckId, Checked};
use model::record::Record;
use model::report::{Deduction, Measured, Report, ReportAnswer};
use model::study::{LoadCurve, MetLoad, Studied, Study};
use std::collections::BTreeSet;

/// The question of a study, as the plan states it.
pub(crate) trait Question {
    /// Returns the result of the study.
    fn conclude(&self, _judged: &Judged) -> Studied {
        Studied::Jobs
    }

    /// Compares the judged results of a report, if the same tests ran on several targets or numbers of hosts. `jobs` has the job of each
    /// result.
    fn compare(&self, _record: &Record, _report: &Report, _jobs: &[usize]) -> Option<Studied> {
        None
    }

    /// Whether the study exists to show this finding. An expected finding does not affect a number.
    fn is_expected(&self, _record: &Record, _answered: &[CaseAnswers], _finding: &Checked) -> bool {
        false
    }

    /// Returns the end of the note about the expected findings: the text after their ids.
    fn why_expected(&self) -> &'static str {
        ""
    }
}

/// The result of a study, as the report contains it.
pub(crate) trait Conclusion {
    /// Returns the quoted results, which the verdict is about.
    fn quoted<'m>(&self, results: &'m [Measured]) -> Vec<&'m Measured> {
        results.iter().collect()
    }

    /// Returns the indices of the results that the headline depends on; `None` if it depends only on the quoted result that
    /// has the headline's name.
    fn headline_results(&self) -> Option<&[usize]> {
        None
    }

    /// Returns the headline, verdict, counts and limiter of the report.
    fn head(&self, judged: &Judged, quoted: &[&Measured]) -> ReportHead {
        judged.head_of_results(quoted)
    }

    /// Returns the answer to the question, if the study has one.
    fn answer(&self) -> Option<ReportAnswer> {
        None
    }

    /// Returns the subject of a condition that names no result.
    fn subject(&self, _record: &Record, answered: &[CaseAnswers]) -> Subject<'_> {
        Subject::Results((0..answered.len()).map(GatedResult::with_all_runs).collect())
    }

    /// Returns the deductions from several results.
    fn deduce(&self, judged: &Judged) -> Vec<Deduction> {
        deductions::deduce_from_jobs(judged)
    }
}

/// Jobs without a common question. Commands (`fathom time`) have their own judge.
struct Independent;

impl Question for Independent {}

impl Conclusion for Independent {
    fn head(&self, judged: &Judged, quoted: &[&Measured]) -> ReportHead {
        judged.head_of_jobs(quoted)
    }
}

/// Returns the question of a plan.
pub(crate) fn question(study: &Study) -> &dyn Question {
    match study {
        Study::Jobs | Study::Commands(_) => &Independent,
        Study::Layers(comparison) => comparison,
        Study::Limit(latency_target) => latency_target,
        Study::Sweep(grid) => grid,
        Study::Interfaces(comparison) => comparison,
        Study::Profile(layout) => layout,
        Study::Targets(comparison) => comparison,
        Study::Hosts(steps) => steps,
    }
}

/// Returns the result of a report's study.
pub(crate) fn conclusion(studied: &Studied) -> &dyn Conclusion {
    match studied {
        Studied::Jobs | Studied::Commands(_) => &Independent,
        Studied::Layers(layers) => layers,
        Studied::Limit(curve) => curve,
        Studied::Sweep(sweep) => sweep.as_ref(),
        Studied::Interfaces(api) => api,
        Studied::Profile(results) => results,
        Studied::Targets(targets) => targets,
        Studied::Hosts(scaling) => scaling,
    }
}

/// Whether the session is SUSPECT instead of INVALID if other load on the machine is the only
/// reason why a result has no number, as in [`Judged::head_of_jobs`].
pub(crate) fn forgives_other_load(studied: &Studied) -> bool {
    use Studied::{Hosts, Interfaces, Jobs, Profile, Targets};
    matches!(studied, Jobs | Profile(_) | Interfaces(_) | Targets(_) | Hosts(_))
}

/// Adds the comparison of a study's results to the report.
pub(crate) fn attach_comparison(record: &Record, jobs: &[usize], mut report: Report) -> Report {
    if let Some(compared) = question(&record.header.plan.study).compare(record, &report, jobs) {
        report.answer = report.answer.or_else(|| conclusion(&compared).answer());
        report.study = compared;
    }
    report
}

/// The subject of a condition that names no result.
pub(crate) enum Subject<'s> {
    /// Each of these results.
    Results(Vec<GatedResult>),
    /// The highest rate that meets the latency target.
    Load(&'s LoadCurve, &'s MetLoad),
}

/// A result that a condition is about.
pub(crate) struct GatedResult {
    /// Index of the result.
    pub(crate) result: usize,
    /// The runs that count; `None` for all. The runs that chose a cell must not judge it.
    pub(crate) cell_runs: Option<Vec<CellRun>>,
}

impl GatedResult {
    /// Returns a result whose runs all count.
    pub(crate) fn with_all_runs(result: usize) -> Self {
        Self { result, cell_runs: None }
    }
}

/// Accepts the expected findings. Returns a note about them.
pub(crate) fn accept(record: &Record, answered: &[CaseAnswers], checks: &mut [Checked]) -> Option<String> {
    let question = question(&record.header.plan.study);
    let mut ids: BTreeSet<CheckId> = BTreeSet::new();
    for finding in checks.iter_mut().filter(|f| question.is_expected(record, answered, f)) {
        finding.accepted = true;
        ids.insert(finding.id);
    }
    let list = CheckId::list(&Vec::from_iter(ids), ", ");
    (!list.is_empty()).then(|| format!("findings of {list} {}", question.why_expected()))
}

#[cfg(test)]
use crate::fixture::{Fixture, curve};

/// Turns a record into one of a load curve.
#[cfg(test)]
pub(crate) fn set_latency_target(record: &mut Record, latency_target: model::plan::LatencyTarget) {
    record.header.plan.strategy = model::plan::Strategy::Limit(latency_target);
    record.header.plan.study = Study::Limit(latency_target);
}

#[test]
fn studies_survive_serialization() {
    let plan = curve(&Fixture::honest(), &[(2_000, Fixture::honest_open())]).header.plan;
    let text = serde_json::to_string(&plan).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["strategy"]["limit"]["quantile"].is_number() && json.get("study").is_none(), "{json:#}");
    assert_eq!(serde_json::from_str::<model::plan::Plan>(&text).unwrap(), plan);
    let mut layers = Fixture::honest().record().header.plan;
    layers.study = model::plan::LayerComparison::default().into();
    let text = serde_json::to_string(&layers).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["layers"]["rungs"].is_array() && json.get("sweep").is_none(), "{json:#}");
    assert_eq!(serde_json::from_str::<model::plan::Plan>(&text).unwrap(), layers);
}
