//! A plan as text: what would be measured, with the origin of every setting.
//!
//! For: `--explain` of whatever measures. Not for: planning.

use crate::format::Style;
use crate::prose::{WIDTH, prose};
use model::machine::Machine;
use model::plan::{MissingLayer, Plan, Strategy};
use model::study::Study;
use model::sweep::{Search, Until};
use model::units::show_share;
use std::io::{self, Write};

pub(super) fn write((plan, machine): &(Plan, Machine), _: Style, to: &mut dyn Write) -> io::Result<()> {
    let jobs = match plan.jobs.len() {
        1 => "1 workload".to_owned(),
        n => format!("{n} workloads"),
    };
    let mut out = format!("{}: {jobs}; each {}\n\n", plan.title, repeats(plan));
    out += &settings(plan);
    out.push('\n');
    out += &workloads(plan);
    out += &of_study(&plan.study);
    for place in &machine.places {
        out += &format!("\n{}", prose("", "  ", &place.chain()));
    }
    to.write_all(out.as_bytes())
}

fn settings(plan: &Plan) -> String {
    let mut out = String::new();
    let width = plan.origins.iter().map(|o| o.setting.len()).max().unwrap_or(0);
    let values = plan.origins.iter().map(|o| o.value.len()).max().unwrap_or(0).min(60);
    for o in &plan.origins {
        let row = format!("{:width$}  {:values$}  {}\n", o.setting, o.value, o.from);
        if row.chars().count() <= WIDTH {
            out += &row;
        } else {
            let setting = format!("{:width$}  ", o.setting);
            out += &prose(&setting, &" ".repeat(width + 2), &format!("{} ({})", o.value, o.from));
        }
    }
    out
}

fn workloads(plan: &Plan) -> String {
    let mut out = String::new();
    for (i, job) in plan.jobs.iter().enumerate() {
        let mark = if i == plan.headline { "  (headline)" } else { "" };
        out += &format!("{}{mark}\n", job.name);
        for stream in job.phases.iter().flat_map(|p| &p.streams) {
            let access = stream.access.words();
            out += &format!(
                "    {access}, depth {}, workers {}, {}, {}\n",
                stream.depth,
                stream.workers,
                stream.engine,
                stream.cache.word()
            );
        }
    }
    out
}

/// What a study does otherwise than its name says, and what it leaves out.
fn of_study(study: &Study) -> String {
    let mut out = String::new();
    match study {
        Study::Profile(form) => {
            out += &format!("\nnot as {} does it:\n", form.tool);
            form.differs.iter().for_each(|differs| out += &prose("  ", "    ", differs));
        }
        Study::Interfaces(comparison) => {
            comparison.missing.iter().for_each(|missing| out += &format!("not measured: {missing}\n"));
        }
        Study::Layers(comparison) => {
            let not_measured = |m: &MissingLayer| format!("not measured: {}: {}\n", m.name, m.why);
            comparison.missing.iter().for_each(|missing| out += &not_measured(missing));
        }
        Study::Jobs | Study::Limit(_) | Study::Sweep(_) => {}
    }
    out
}

/// How often each job is measured, in words.
fn repeats(plan: &Plan) -> String {
    match plan.study.grid().map(|g| g.search) {
        Some(Search::Adaptive { .. }) => return "as often as the search asks".into(),
        Some(Search::InOrder(Until::Slow)) => return "once".into(),
        Some(Search::InOrder(Until::Rounds { rounds_at_most, .. })) => {
            return format!("in up to {rounds_at_most} rounds");
        }
        Some(Search::Exhaustive) | None => {}
    }
    match plan.strategy {
        Strategy::Fixed | Strategy::Limit(_) => format!("{} runs", plan.runs),
        Strategy::Precision { share, at_most } => {
            format!("{} to {at_most} runs, until {} to either side", plan.runs, show_share(share))
        }
        Strategy::Steady { at_most } => format!("up to {at_most} rounds, until steady"),
    }
}
