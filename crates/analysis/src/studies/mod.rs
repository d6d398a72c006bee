//! Studies: the questions that several jobs answer together, one file each. This file selects by study: the result, the findings that the
//! study exists to show, the results that it quotes, its answer, and the subject of its conditions.

mod hosts;
mod interfaces;
mod layers;
mod limit;
mod profile;
mod sweep;
mod targets;

use crate::findings::CaseAnswers;
use crate::runs::Sample;
pub(crate) use limit::headline as headline_of_curve;
use model::finding::{CheckId, Finding};
use model::record::Record;
use model::report::{Answer, Deduction, Measured, Report};
use model::study::{LoadCurve, MetLoad, Studied, Study};
pub(crate) use sweep::{first as first_of_grid, headline as headline_of_grid, undecided, unsteady};

/// The result of a record's study. `acting` are the findings that the study does not exist to show.
pub(crate) fn studied(
    record: &Record,
    answered: &[CaseAnswers],
    results: &[Measured],
    acting: &[Finding],
) -> Studied {
    match &record.header.plan.study {
        // Comparisons of targets and hosts use judged results ([`attach_comparison`]).
        Study::Jobs | Study::Targets(_) | Study::Hosts(_) | Study::Commands(_) => Studied::Jobs,
        Study::Layers(comparison) => {
            Studied::Layers(layers::layers(record, comparison, answered, results, acting))
        }
        // One of several hosts has only a part of each load, so it has no curve.
        Study::Limit(_) if record.header.plan.part.is_some() && record.fleet.is_none() => Studied::Jobs,
        Study::Limit(latency_target) => {
            Studied::Limit(limit::limit(record, latency_target, answered, results))
        }
        Study::Sweep(grid) => Studied::Sweep(Box::new(sweep::sweep(record, grid, answered))),
        Study::Interfaces(comparison) => {
            Studied::Interfaces(interfaces::api(record, comparison, answered, results, acting))
        }
        Study::Profile(form) => Studied::Profile(profile::card(form, answered, results)),
    }
}

/// Adds the comparison of its results to a report, if the same tests ran on several targets or numbers of hosts. `jobs` has the job of
/// each result.
pub(crate) fn attach_comparison(record: &Record, jobs: &[usize], mut report: Report) -> Report {
    report.study = match &record.header.plan.study {
        Study::Targets(comparison) => {
            Studied::Targets(targets::compare(&report, comparison, jobs, record.header.plan.headline))
        }
        // The session of a single host has only its runs.
        Study::Hosts(steps) if record.fleet.is_some() => Studied::Hosts(hosts::scaling(&report, steps, jobs)),
        _ => return report,
    };
    report.answer = report.answer.or_else(|| answer(&report.study));
    report
}

/// The quoted results, which the verdict is about.
pub(crate) fn quoted<'m>(studied: &Studied, results: &'m [Measured]) -> Vec<&'m Measured> {
    match studied {
        Studied::Sweep(sweep) => sweep::finalists(sweep, results),
        Studied::Limit(curve) => limit::quoted(curve, results),
        // The table shows each result.
        Studied::Jobs
        | Studied::Layers(_)
        | Studied::Interfaces(_)
        | Studied::Profile(_)
        | Studied::Targets(_)
        | Studied::Hosts(_)
        | Studied::Commands(_) => results.iter().collect(),
    }
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
    /// Its index.
    pub(crate) result: usize,
    /// The runs that count, if those are not all: the runs that chose a cell must not judge it.
    pub(crate) samples: Option<Vec<Sample>>,
}

impl GatedResult {
    /// A result whose runs all count.
    pub(crate) fn with_all_runs(result: usize) -> Self {
        Self { result, samples: None }
    }
}

/// The subject of a condition that names no result: the answer of the study, or each result if the study has none.
pub(crate) fn subject<'s>(record: &Record, studied: &'s Studied, answered: &[CaseAnswers]) -> Subject<'s> {
    match studied {
        Studied::Limit(curve) => match &curve.latency_target {
            Some(target) => Subject::Load(curve, target),
            None => {
                Subject::Results(curve.capacity_result.map(GatedResult::with_all_runs).into_iter().collect())
            }
        },
        Studied::Sweep(sweep) => Subject::Results(sweep::gated_results(record, sweep, answered)),
        Studied::Jobs
        | Studied::Layers(_)
        | Studied::Interfaces(_)
        | Studied::Profile(_)
        | Studied::Targets(_)
        | Studied::Hosts(_)
        | Studied::Commands(_) => {
            Subject::Results((0..answered.len()).map(GatedResult::with_all_runs).collect())
        }
    }
}

/// The answer of the study, if it has one.
pub(crate) fn answer(studied: &Studied) -> Option<Answer> {
    match studied {
        Studied::Sweep(sweep) => sweep::answer(sweep),
        Studied::Limit(curve) => limit::answer(curve),
        Studied::Interfaces(api) => Some(interfaces::answer(api)),
        Studied::Targets(targets) => targets::answer(targets),
        Studied::Hosts(scaling) => hosts::answer(scaling),
        Studied::Jobs | Studied::Layers(_) | Studied::Profile(_) | Studied::Commands(_) => None,
    }
}

/// Whether the study exists to show this finding.
pub(crate) fn is_expected(record: &Record, answered: &[CaseAnswers], finding: &Finding) -> bool {
    match &record.header.plan.study {
        Study::Layers(comparison) => layers::is_expected(comparison, answered, finding),
        Study::Limit(latency_target) => limit::is_expected(record, latency_target, answered, finding),
        Study::Interfaces(_) => interfaces::is_expected(finding),
        Study::Jobs
        | Study::Sweep(_)
        | Study::Profile(_)
        | Study::Targets(_)
        | Study::Hosts(_)
        | Study::Commands(_) => false,
    }
}

/// Accepts the expected findings. Returns a note about them.
pub(crate) fn accept(record: &Record, answered: &[CaseAnswers], findings: &mut [Finding]) -> Option<String> {
    let mut ids: Vec<CheckId> = Vec::new();
    for finding in findings.iter_mut().filter(|f| is_expected(record, answered, f)) {
        finding.accepted = true;
        ids.push(finding.id);
    }
    ids.sort();
    ids.dedup();
    let shown = match &record.header.plan.study {
        _ if ids.is_empty() => return None,
        Study::Layers(_) => layers::SHOWN,
        Study::Limit(_) => limit::SHOWN,
        Study::Interfaces(_) => interfaces::SHOWN,
        Study::Jobs
        | Study::Sweep(_)
        | Study::Profile(_)
        | Study::Targets(_)
        | Study::Hosts(_)
        | Study::Commands(_) => return None,
    };
    Some(format!("findings of {} {shown}", CheckId::list(&ids, ", ")))
}

/// Deductions from the study, in addition to those from its results.
pub(crate) fn deduce(studied: &Studied, results: &[Measured]) -> Vec<Deduction> {
    match studied {
        Studied::Sweep(sweep) => sweep::deduce(sweep),
        Studied::Layers(layers) => layers::deduce(layers, results),
        Studied::Jobs
        | Studied::Limit(_)
        | Studied::Interfaces(_)
        | Studied::Profile(_)
        | Studied::Targets(_)
        | Studied::Hosts(_)
        | Studied::Commands(_) => Vec::new(),
    }
}

#[cfg(test)]
use crate::fixture::{Fixture, curve};

/// Turns a record into one of a load curve.
#[cfg(test)]
pub(crate) fn latency_target(record: &mut Record, latency_target: model::plan::LatencyTarget) {
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
    layers.study = Study::Layers(model::plan::LayerComparison::default());
    let text = serde_json::to_string(&layers).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["layers"]["rungs"].is_array() && json.get("sweep").is_none(), "{json:#}");
    assert_eq!(serde_json::from_str::<model::plan::Plan>(&text).unwrap(), layers);
}
