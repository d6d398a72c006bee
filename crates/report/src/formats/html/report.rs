//! The page of a measurement: which parts it has, and in which order.
//!
//! For: verdict and number first, then what changes its meaning, then the pictures, at last how it came about. Not for: the parts.

use super::page::{card, page};
use super::words::time;
use super::{findings, foot, grid, head, hosts, limit, results, studies, sweep, table};
use crate::format::Style;
use crate::formats::text::replay;
use crate::formats::text::report::table as text_table;
use crate::rows;
use crate::table::Table;
use crate::worst;
use model::report::{Measured, Report};
use model::study::Studied;
use model::units::show_rate;
use std::io::{self, Write};

/// Writes it.
pub(super) fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let told = worst::shown_findings(report);
    let (study, below) = study_cards(report);
    let mut sections = vec![head::hero_card(report, &told)];
    sections.extend(gate_card(report));
    sections.push(study);
    sections.extend(report.results.iter().filter(|result| !result.void).filter_map(replay_card));
    sections.push(findings::acting_card(report, &told));
    sections.push(below);
    sections.extend(hosts::hosts_card(report));
    sections.extend(rerun_card(report));
    sections.push(findings::other_cards(report, &told));
    sections.push(foot::foot_cards(report));
    sections.retain(|section| !section.is_empty());
    to.write_all(page(&report.fathom.version, &tab_title(report), &eyebrow(report), &sections).as_bytes())
}

/// The name of the tab: what is known from its first words alone.
fn tab_title(report: &Report) -> String {
    let number = report
        .headline
        .value
        .map_or_else(|| "no number".into(), |v| format!("{} {}", show_rate(v), report.headline.unit));
    format!("{} · {number} · {} · fathom", report.verdict.word(), report.headline.name)
}

/// What stands above everything.
fn eyebrow(report: &Report) -> Vec<String> {
    let mut chains: Vec<String> = report.machine.places.iter().map(model::machine::Place::chain).collect();
    chains.dedup();
    [vec![report.title.clone()], chains, vec![report.started.clone()], report.words.tags.clone()].concat()
}

/// What the measurement was for: the picture that answers it, and what belongs below the findings.
fn study_cards(report: &Report) -> (String, String) {
    match &report.study {
        Studied::Jobs | Studied::Profile(_) => {
            let is_one = report.results.len() == 1;
            let all = if is_one { String::new() } else { all_results_table(report) };
            (
                if is_one { single_result_tiles(report) } else { grid_card(report) },
                format!("{}{all}", results::result_cards(report)),
            )
        }
        Studied::Layers(layers) => {
            let figures =
                card::<&str>("All figures", &[], &table::table("Every layer", &text_table(report, true)));
            (studies::layers_card(report, layers), format!("{}{figures}", results::result_cards(report)))
        }
        Studied::Limit(curve) => (limit::load_curve_card(report, curve), String::new()),
        Studied::Sweep(of) if of.is_in_order() || of.rounds.is_some() => {
            let cells = table::table("Every cell", &text_table(report, true));
            (card::<&str>("Every cell", &[], &cells), sweep::sweep_cards(report, of))
        }
        Studied::Sweep(of) => (sweep::sweep_cards(report, of), String::new()),
        Studied::Interfaces(api) => (studies::interfaces_card(report, api), String::new()),
        Studied::Targets(targets) => (studies::targets_card(report, targets), results::result_cards(report)),
        Studied::Commands(results) => {
            let lead: Vec<&str> = results.commands.iter().map(|one| one.sentence.as_str()).collect();
            let runs = table::table("Every run", &text_table(report, true));
            (card("Commands", &lead, &runs), String::new())
        }
        Studied::Hosts(scaling) => (hosts::host_count_card(report, scaling), results::result_cards(report)),
    }
}

/// The grid of reads and writes, and what a well-known tool would show.
fn grid_card(report: &Report) -> String {
    let mut body = grid::test_grid(&report.results);
    let mut lead = vec!["MB/s = 10^6 bytes per second; the bar is its share of the fastest.".to_owned()];
    if let Studied::Profile(shown) = &report.study {
        lead.extend(shown.differs.iter().cloned());
        if let Some(score) = &shown.score {
            let points = |p: &model::tool_layout::Points| p.value.map_or_else(|| "-".into(), show_rate);
            lead.push(format!(
                "Score of {}: read {}, write {}, total {}.",
                shown.tool,
                points(&score.read),
                points(&score.write),
                points(&score.total)
            ));
        }
    }
    if body.is_empty() {
        lead.clear();
        body = table::table("Every result", &text_table(report, true));
    }
    card("Every test", &lead, &body)
}

/// Figures of the only result.
fn single_result_tiles(report: &Report) -> String {
    report.results.first().map_or_else(String::new, head::tiles)
}

fn all_results_table(report: &Report) -> String {
    let lead = [
        "Latency from submission to completion; - where too few operations support it; ~ rounded, since the interval is wide.",
    ];
    card("All figures", &lead, &table::table("Every result", &text_table(report, true)))
}

/// A replay beside its original.
fn replay_card(result: &Measured) -> Option<String> {
    let of = result.replay.as_deref()?;
    let heading = replay::heading(of);
    Some(card(&heading, &of.differs, &table::table("Every figure of both", &replay::replay_table(of))))
}

/// Each condition with what came of it.
fn gate_card(report: &Report) -> Option<String> {
    let mut of = Table::new(&["condition", "answer", "result", "measured", "limit", "sentence"], &[])
        .aligned(1, true)
        .aligned(2, true);
    for gate in &report.gates {
        let show =
            |v: f64| if gate.unit == "ns" { time(v) } else { format!("{} {}", show_rate(v), gate.unit) };
        of.add([
            gate.condition.clone(),
            gate.word.word().into(),
            gate.result.clone(),
            gate.value.map_or_else(|| "-".into(), show),
            show(gate.limit),
            gate.sentence.clone(),
        ]);
    }
    (!of.is_empty())
        .then(|| card::<&str>("Conditions", &[], &table::table("Every condition and its answer", &of)))
}

/// An earlier session that was measured again beside this one.
fn rerun_card(report: &Report) -> Option<String> {
    let rerun = report.against.as_ref()?;
    let lead =
        [format!("{}: {}", rerun.beside.answer.word(), rerun.beside.sentence), rows::PAIR_LEGEND.to_owned()];
    let heading = format!("Against {}, measured again in turns", rerun.session);
    let body = format!(
        "{}{}",
        super::comparison::ratios(&rerun.beside.pairs),
        table::table("Every number of both", &rows::pair_table(&rerun.beside.pairs, true))
    );
    Some(card(&heading, &lead, &body))
}
