//! A plan: what would be measured, and each setting with its origin.

use crate::view::lists::count_of;
use crate::view::table::{Columns, Table};
use model::job::Job;
use model::plan::{LayerComparison, Plan, Strategy};
use model::study::{InterfaceComparison, Study};
use model::sweep::{Search, Until};
use model::units::show_share;

/// Describes what would be measured, and how often.
pub(crate) fn plan_headline(plan: &Plan) -> String {
    let jobs = count_of(plan.jobs.len(), "workload");
    format!("{}: {jobs}; each {}", plan.title, describe_repeats(plan))
}

/// Returns the settings with their origins.
pub(crate) fn settings_table(plan: &Plan) -> Table {
    Columns::new(&plan.origins)
        .borrowed_text("setting", |origin| &origin.setting)
        .borrowed_text("value", |origin| &origin.value)
        .borrowed_text("from", |origin| &origin.from)
        .table(&[])
}

/// Returns the name of a job, with a remark if its result is the headline.
pub(crate) fn job_title(plan: &Plan, at: usize) -> String {
    let name = plan.jobs.get(at).map_or("", |job| job.name.as_str());
    let mark = if at == plan.headline { " (headline: the number to quote)" } else { "" };
    format!("{name}{mark}")
}

/// Returns a line for each stream of a job.
pub(crate) fn describe_streams(job: &Job) -> impl Iterator<Item = String> {
    job.streams().map(|stream| {
        format!(
            "{}, depth {}, workers {}, {}, {}",
            stream.describe(),
            stream.depth,
            stream.workers,
            stream.engine,
            stream.cache.word()
        )
    })
}

/// Returns remarks about a study: deviations from the imitated tool, and settings that are not measured.
pub(crate) fn plan_remarks(study: &Study) -> Vec<String> {
    match study {
        Study::Profile(form) => form.differs.clone(),
        Study::Interfaces(InterfaceComparison { missing, .. })
        | Study::Layers(LayerComparison { missing, .. }) => {
            missing.iter().map(|missing| format!("not measured: {missing}")).collect()
        }
        Study::Jobs
        | Study::Limit(_)
        | Study::Sweep(_)
        | Study::Targets(_)
        | Study::Hosts(_)
        | Study::Commands(_) => Vec::new(),
    }
}

/// Describes how often each job is measured.
fn describe_repeats(plan: &Plan) -> String {
    match plan.study.grid().map(|g| g.search) {
        Some(Search::Adaptive { .. }) => return "as often as the search decides".into(),
        Some(Search::InOrder(Until::Slow)) => return "once".into(),
        Some(Search::InOrder(Until::Rounds { rounds_at_most, .. })) => {
            return format!("in up to {rounds_at_most} rounds");
        }
        Some(Search::Exhaustive) | None => {}
    }
    match plan.strategy {
        Strategy::Fixed | Strategy::Limit(_) => count_of(plan.runs as usize, "run"),
        Strategy::Precision { share, at_most } => {
            format!("{} to {at_most} runs, until the interval is within ±{}", plan.runs, show_share(share))
        }
        Strategy::Targets(_) => {
            format!("{} runs, then more runs of the tests that vary most", plan.runs)
        }
        Strategy::Steady { at_most } => format!("up to {at_most} rounds, until steady"),
        Strategy::Settle { at_most } => {
            format!("{} runs; if they do not decide, more runs up to {at_most} in total", plan.runs)
        }
    }
}
