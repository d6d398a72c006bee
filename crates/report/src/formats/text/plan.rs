//! A plan as text: what would be measured, with the origin of every setting (`--explain`).

use crate::Style;
use crate::page::{Page, display_width};
use crate::view::plan::{describe_streams, job_title, plan_headline, plan_remarks};
use model::plan::{Explained, Plan};
use model::study::Study;
use std::io::{self, Write};

pub(super) fn write_plan(explained: &Explained, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let Explained { plan, machine, cost } = explained;
    let mut out = Page::new(style);
    out.paragraph(&plan_headline(plan));
    out.paragraph(&cost.sentence());
    out.line("");
    show_settings(&mut out, plan);
    out.line("");
    for (at, job) in plan.jobs.iter().enumerate() {
        out.line(&job_title(plan, at));
        describe_streams(job).for_each(|line| out.prose("    ", "      ", &line));
    }
    if let Study::Profile(form) = &plan.study {
        out.line("");
        out.line(&format!("differences from {}:", form.tool));
    }
    for remark in plan_remarks(&plan.study) {
        out.note(&remark);
    }
    for place in &machine.places {
        out.line("");
        out.paragraph(&place.chain());
    }
    out.write(to)
}

/// Prints each setting with its value and origin in three columns. A row that is too wide is wrapped, with the origin in parentheses.
fn show_settings(out: &mut Page, plan: &Plan) {
    let width = plan.origins.iter().map(|origin| display_width(&origin.setting)).max().unwrap_or(0);
    // A value of more than 60 columns does not widen the column of values.
    let values = plan.origins.iter().map(|origin| display_width(&origin.value)).max().unwrap_or(0).min(60);
    for origin in &plan.origins {
        let row = format!("{:width$}  {:values$}  {}", origin.setting, origin.value, origin.from);
        if display_width(&row) <= out.width() {
            out.line(&row);
        } else {
            let setting = format!("{:width$}  ", origin.setting);
            out.prose(&setting, &" ".repeat(width + 2), &format!("{} ({})", origin.value, origin.from));
        }
    }
}
