//! A measurement: its main table, its headline, and how it ended.

use crate::view::findings;
use crate::view::numbers::{accepted_suffix, verdict_mark};
use crate::view::results::is_of_jobs;
use crate::view::table::Table;
use crate::view::{results, studies, sweep};
use model::machine::Place;
use model::report::{Ending, Headline, Report};
use model::study::Studied;
use model::units::{show_count, show_rate};

/// Returns the layers of each target, from the file system down to the device. Neighbouring targets
/// with the same layers have one entry.
pub(crate) fn chains(places: &[Place]) -> Vec<String> {
    let mut all: Vec<String> = places.iter().map(Place::chain).collect();
    all.dedup();
    all
}

/// Returns the main table. Without `all`, a load curve has only the loads that matter most.
pub(crate) fn main_table(report: &Report, all: bool) -> Table {
    match &report.study {
        Studied::Layers(layers) => studies::layer_table(layers, &report.results),
        Studied::Limit(curve) => studies::load_table(curve, &report.results, all),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => sweep::first_round_table(report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => sweep::iops_table(report, sweep),
        Studied::Sweep(sweep) => sweep::sweep_table(sweep, report),
        Studied::Interfaces(api) => studies::interface_table(api, &report.results),
        Studied::Targets(targets) => studies::target_table(targets, &report.results),
        Studied::Hosts(scaling) => studies::host_count_table(scaling, &report.results),
        Studied::Commands(results) => results::command_table(results),
        Studied::Jobs | Studied::Profile(_) => results::result_table(&report.results),
    }
}

/// Returns the headline with its number. With several jobs or targets, the interval is in the table. The line then has
/// the name of the headline's row, and the verdict on that row if the headline has a number.
pub(crate) fn describe_headline(report: &Report, paint: impl Fn(&str) -> String) -> String {
    let name = &report.headline.name;
    let has_rows = is_of_jobs(report) || matches!(report.study, Studied::Targets(_) | Studied::Interfaces(_));
    let row = report.headline_result().filter(|_| has_rows && report.results.len() > 1);
    let Some(row) = row else {
        let number = paint(&headline_number(&report.headline, report));
        // The first word may be about another kind of work.
        let has_other_works = report.study.sweep().is_some_and(|sweep| sweep.works.len() > 1);
        let mark = report.headline_result().filter(|_| has_other_works && report.headline.value.is_some());
        return format!(
            "{name}: {number}{}",
            match mark {
                Some(row) => format!(" ({})", verdict_mark(row)),
                None => accepted_suffix(&report.headline.accepted),
            }
        );
    };
    let name = if row.renamed {
        // The name of the row ends with the work, which the true name begins with.
        let work = row.name.rsplit(", ").next().unwrap_or_default();
        let rest = name.strip_prefix(work).and_then(|rest| rest.strip_prefix(", "));
        format!("{}, in fact {}", row.name, rest.unwrap_or(name))
    } else {
        row.name.clone()
    };
    let number = paint(&findings::headline_value(&report.headline));
    match report.headline.value {
        Some(_) => format!("{name}: {number} ({})", verdict_mark(row)),
        None => format!("{name}: {number}{}", accepted_suffix(&row.accepted)),
    }
}

/// Returns how the session ended; `None` if it ended as planned.
pub(crate) fn describe_ending(report: &Report) -> Option<String> {
    match &report.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some("Interrupted: these are the results up to that point.".into()),
        // The reason of the verdict explains why.
        Ending::NotMeasured(_) => Some("Nothing was measured.".into()),
        Ending::Failed(why) => Some(format!("Ended by an error: {why}.")),
        Ending::Cut => Some(
            "The session is incomplete because fathom was killed: these are the results up to that \
             point."
                .into(),
        ),
    }
}

/// Returns the headline's number with its interval, or with the reason why there is no interval. For a load curve, adds the load that missed
/// the target; for rounds, the window.
pub(crate) fn headline_number(headline: &Headline, report: &Report) -> String {
    let Some(value) = headline.value else { return "no number".into() };
    let winner_runs = report.study.sweep().and_then(|s| s.winner.get(&s.works.first()?.name)).map(|c| c.runs);
    let runs = winner_runs.or_else(|| report.results.iter().map(|r| r.runs.len()).max()).unwrap_or(0);
    let number = format!("{} {}", show_rate(value), headline.unit);
    if let Studied::Limit(curve) = &report.study {
        return match curve.latency_target.as_ref().map(|p| p.missed_iops) {
            Some(Some(missed)) => format!("{number}; {} IOPS miss the target", show_count(missed as f64)),
            Some(None) => format!("{number}, and no offered load is proven to miss the target"),
            None => number,
        };
    }
    if let Some([first, last]) = report.study.sweep().and_then(|s| s.rounds.as_ref()?.window) {
        return format!("{number} (mean of rounds {first} to {last})");
    }
    match headline.interval {
        Some([low, high]) => {
            format!("{number} (95 % interval {} to {} over {runs} runs)", show_rate(low), show_rate(high))
        }
        None if runs == 1 => format!("{number} (one run: no interval)"),
        None => format!("{number} ({runs} runs: no interval)"),
    }
}
