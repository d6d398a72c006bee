//! A plan in Markdown: what would be measured, for whoever is asked whether it should be.
//!
//! For: the settings with their origins, and the workloads. Not for: planning.

use super::code;
use crate::command;
use crate::format::Style;
use crate::formats::text::plan::{plan_headline, plan_remarks, streams};
use crate::table::{Table, escaped};
use model::explained::Explained;
use std::io::{self, Write};

pub(super) fn write_plan(explained: &Explained, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let Explained { plan, machine, cost } = explained;
    let mut table = Table::new(&["setting", "value", "from"], &[]).aligned(1, true);
    table.add_all(plan.origins.iter().map(|o| [o.setting.clone(), o.value.clone(), o.from.clone()]));
    let mut out = format!(
        "**{}**\n\n{}\n\n{}\n",
        escaped(&plan_headline(plan)),
        escaped(&cost.sentence()),
        table.markdown()
    );
    for (at, job) in plan.jobs.iter().enumerate() {
        let mark = if at == plan.headline { " (headline)" } else { "" };
        let streams = streams(job).collect::<Vec<_>>().join("; ");
        out += &format!("- {}\n", escaped(&format!("{}{mark}: {streams}", job.name)));
    }
    for words in plan_remarks(&plan.study) {
        out += &format!("- {}\n", escaped(&words));
    }
    out.push('\n');
    let chains = machine.places.iter().map(|place| escaped(&place.chain()));
    let lines: Vec<String> =
        [code(&command::command_line(&plan.command))].into_iter().chain(chains).collect();
    out += &format!("{}\n", lines.join("  \n"));
    to.write_all(out.as_bytes())
}
