//! E18: percentiles that were added up. It guards against edited and foreign reports: a percentile of all operations lies between the
//! smallest and the largest of the runs.

use super::{ComparisonCheck, Context, NamedAnswer};
use crate::checks::prelude::*;
use crate::compare::SideResult;
use model::report::{Figures, Measured};

/// Share by which a percentile may be outside: histogram buckets are accurate to 0.8 %.
const SAME: Share = Share(0.01);

pub(super) const CHECK: ComparisonCheck = ComparisonCheck {
    id: CheckId::E18,
    name: "SUM_OF_PEAKS",
    belief: "a percentile of several runs comes from all their operations",
    reads: "The percentiles of each result over all operations, and those of each of its runs.",
    formula: formula!(
        "A percentile of all operations lies between the smallest and the largest of the same percentile of \
         the parts, for any parts: fathom merges histograms. A percentile more than {SAME} outside was added \
         up or comes from another source; percentiles of that name are then not compared. Percentiles are \
         compared run by run: the value shown is the geometric mean over runs, the percentile of a typical \
         run, not that of all operations in each report."
    ),
    provoke: "Add up a percentile in a report by hand: `jq '.results[].read.latency_ns.percentiles[\"99\"] \
              *= 8' a.json > b.json` and `fathom compare a.json b.json`.",
    fix: "Compare the sessions themselves, which have the histograms, instead of edited files.",
    accept: "",
    acceptable: false,
    ask: evaluate,
};

fn evaluate(context: &Context) -> Vec<NamedAnswer> {
    let mut out = Vec::new();
    let mut seen = false;
    for (side, reports) in [("A", context.sides[0]), (context.name, context.sides[1])] {
        for one in reports
            .iter()
            .flat_map(|report| report.results.iter().map(move |result| SideResult { report, result }))
        {
            seen |= one.result.runs.iter().any(|r| !r.percentiles_ns.is_empty());
            let about = vec![one.result.name.clone()];
            out.extend(
                percentiles_outside(one.result)
                    .into_iter()
                    .map(|o| (about.clone(), Ok(Answer::Finding(o.found(side))))),
            );
        }
    }
    if !out.is_empty() {
        return out;
    }
    let answer = Answer::Holds("The percentiles come from all operations.", Evidence::new());
    let unseen = || Err("the reports of an older fathom contain no percentiles of single runs".into());
    vec![(Vec::new(), if seen { Ok(answer) } else { unseen() })]
}

/// Whether the percentile of that name, such as `read p99`, does not come from the runs.
pub(in crate::compare) fn contradicts(one: SideResult, name: &str) -> bool {
    percentiles_outside(one.result).iter().any(|o| o.name == name)
}

/// A percentile outside those of the runs.
struct Outside {
    name: String,
    all_runs_ns: u64,
    runs: [u64; 2],
}

impl Outside {
    fn found(&self, side: &str) -> Detail {
        let [whole, low, high] = [self.all_runs_ns, self.runs[0], self.runs[1]].map(|ns| show_ns(ns as f64));
        detail!(
            Severity::Void,
            Evidence::new(),
            "The {} of {side} is {whole}, but those of its runs are between {low} and {high}: it does not \
             come from these runs.",
            self.name
        )
    }
}

fn percentiles_outside(result: &Measured) -> Vec<Outside> {
    let kinds: [(&str, &Option<Figures>); 4] =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim), ("sync", &result.sync)];
    let percentiles =
        kinds.into_iter().filter_map(|(kind, f)| Some((kind, f.as_ref()?))).flat_map(|(kind, figures)| {
            figures.latency_ns.percentiles.iter().filter_map(move |(rank, ns)| Some((kind, rank, (*ns)?)))
        });
    percentiles
        .filter_map(|(kind, rank, whole)| {
            let percentile_of_run =
                |r: &model::report::RunFigures| r.percentiles_ns.get(kind)?.get(rank).copied().flatten();
            let runs: Vec<u64> = result.runs.iter().map(percentile_of_run).collect::<Option<_>>()?;
            let (low, high) = (*runs.iter().min()?, *runs.iter().max()?);
            let out =
                (whole as f64) < (1.0 - SAME.0) * low as f64 || whole as f64 > (1.0 + SAME.0) * high as f64;
            out.then(|| Outside { name: format!("{kind} p{rank}"), all_runs_ns: whole, runs: [low, high] })
        })
        .collect()
}
