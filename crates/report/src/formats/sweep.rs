//! The sweep as text: who wins each work, who is as fast for less, what well-known programs lose, and the map of the rest.
//!
//! For: a report about a grid; it stands in place of the table of results. Not for: other reports.

use super::text::{Page, half_width, ruled};
use model::steadiness::Estimate;
use model::sweep::{CellFigures, Setting, Sweep, Work};
use model::units::{show_block, show_bytes, show_count, show_ns, show_rate};

const HEADINGS: [&str; 7] = ["", "setting", "MB/s", "±95 %", "memory", "CPU/MiB", "against the fastest"];
/// Shades of a map, from a small share of the best to all of it.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Most maps of a work: one per way through the page cache, mostly.
const MAPS: usize = 4;
/// Widest map in columns of depths.
const MOST_DEPTHS: usize = 10;
/// Reasons for skipping that are told; `--skipped` and the JSON have all.
const REASONS: usize = 4;

pub(super) fn show(out: &mut Page, sweep: &Sweep) {
    for work in &sweep.works {
        show_work(out, sweep, work);
    }
    if let Some(reference) = &sweep.reference {
        let word = if reference.drifted {
            "the target changed meanwhile, so early and late cells compare less"
        } else {
            "no drift that matters can be told from noise"
        };
        out.prose(
            "  ",
            "    ",
            &format!(
                "Reference: {}, measured {} times, changed by {} over the sweep: {word}.",
                reference.setting.words(),
                reference.runs,
                changed(reference.change.value, reference.change.interval)
            ),
        );
    }
    skipped(out, sweep);
    let budget = sweep.budget_seconds.map_or_else(String::new, |b| format!(" of {b:.0} s"));
    out.line(&format!("  The {} search took {:.0} s{budget}.", sweep.search, sweep.seconds));
    out.line("");
}

fn show_work(out: &mut Page, sweep: &Sweep, work: &Work) {
    out.prose("", "  ", &format!("{}: {}", work.name, work.sentence));
    let Some(winner) = sweep.winner.get(&work.name) else {
        out.line("");
        return;
    };
    let mut table = ruled(&HEADINGS);
    table.add_row(row("fastest", winner, ""));
    if let Some(cheapest) = sweep.cheapest.get(&work.name) {
        if cheapest.setting == winner.setting {
            out.line("  Nothing that costs less is as fast.");
        } else {
            let against = work.cheapest_by_winner.as_ref().map(by);
            table.add_row(row("cheapest", cheapest, &against.unwrap_or_default()));
        }
    }
    for loss in &work.yardsticks {
        table.add_row(row(
            &format!("as {}", loss.name),
            &loss.cell,
            &loss.by_winner.as_ref().map(by).unwrap_or_default(),
        ));
    }
    out.table_of(&table);
    for knee in &work.knees {
        out.line(&format!("  {}", knee.sentence));
    }
    out.line("");
    let mine: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    maps(out, &mine, winner, sweep.cheapest.get(&work.name));
}

fn row(name: &str, cell: &CellFigures, against: &str) -> [String; HEADINGS.len()] {
    let none = || "-".to_owned();
    [
        name.to_owned(),
        format!("{} {}", cell.setting.shape(), cell.setting.way()),
        cell.mb_per_s.map_or_else(none, show_rate),
        half_width(cell.mib_per_s.unwrap_or(0.0), cell.interval),
        show_bytes(cell.memory_bytes),
        cell.cpu_ns_per_mib.map_or_else(none, show_ns),
        against.to_owned(),
    ]
}

/// `-2.1 % (-3.0 to -1.2)`.
fn by(estimate: &Estimate) -> String {
    changed(estimate.value - 1.0, estimate.interval.map(|v| v - 1.0))
}

fn changed(share: f64, [low, high]: [f64; 2]) -> String {
    format!("{} ({:+.1} to {:+.1})", percent(share), 100.0 * low, 100.0 * high)
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// A map of sizes by depths for each setting of everything else, the winner's first. Ways that are measured as one have one.
fn maps(out: &mut Page, cells: &[&CellFigures], winner: &CellFigures, cheapest: Option<&CellFigures>) {
    let mut ways: Vec<(String, Vec<&CellFigures>)> = Vec::new();
    for way in std::iter::once(winner).chain(cells.iter().copied()).map(|c| c.setting.way()) {
        if ways.iter().any(|(known, _)| *known == way) {
            continue;
        }
        let these: Vec<&CellFigures> = cells.iter().copied().filter(|c| c.setting.way() == way).collect();
        let results = |all: &[&CellFigures]| all.iter().map(|c| c.result).collect::<Vec<_>>();
        match ways.iter_mut().find(|(_, known)| results(known) == results(&these)) {
            Some((name, _)) => *name += &format!("; {way}"),
            None => ways.push((way, these)),
        }
    }
    for (way, these) in ways.iter().take(MAPS) {
        map(out, way, these, winner, cheapest);
    }
    if ways.len() > MAPS {
        out.line(&format!("  {} more maps are in the JSON, as cells.", ways.len() - MAPS));
        out.line("");
    }
}

fn map(
    out: &mut Page,
    way: &str,
    cells: &[&CellFigures],
    winner: &CellFigures,
    cheapest: Option<&CellFigures>,
) {
    let mut depths = axis(cells, |s| s.depth);
    let sizes = axis(cells, |s| s.block_bytes);
    if depths.len() * sizes.len() < 2 {
        return;
    }
    depths.truncate(MOST_DEPTHS);
    let head = depths.iter().fold(String::new(), |head, d| head + &format!("{d:>9}"));
    out.line(&format!("  {way}: MB/s by size and depth"));
    out.line(&format!("  {:>6}{head}", ""));
    let best = winner.mb_per_s.unwrap_or(0.0);
    let is = |c: &CellFigures, other: Option<&CellFigures>| other.is_some_and(|o| o.setting == c.setting);
    for size in &sizes {
        let mut line = format!("  {:>6}", show_block(u64::from(*size)));
        for depth in &depths {
            let at = |c: &&&CellFigures| (c.setting.block_bytes, c.setting.depth) == (*size, *depth);
            let Some(cell) = cells.iter().find(at) else {
                line += &format!("{:>9}", "");
                continue;
            };
            let mark = match cell {
                c if is(c, Some(winner)) => '*',
                c if is(c, cheapest) => '=',
                c => shade(c.mb_per_s.unwrap_or(0.0), best),
            };
            let value = cell.mb_per_s.map_or_else(|| "-".into(), show_count);
            line += &format!(" {mark}{value:>7}");
        }
        out.line(line.trim_end());
    }
    out.line("  * fastest, = cheapest as fast; shades are shares of the fastest");
    out.line("");
}

fn axis(cells: &[&CellFigures], of: fn(&Setting) -> u32) -> Vec<u32> {
    let mut all: Vec<u32> = cells.iter().map(|c| of(&c.setting)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn shade(value: f64, best: f64) -> char {
    let share = if best > 0.0 { (value / best).clamp(0.0, 1.0) } else { 0.0 };
    SHADES.get((share * SHADES.len() as f64) as usize).or(SHADES.last()).copied().unwrap_or(' ')
}

/// What was not measured, by reason.
pub(super) fn skipped(out: &mut Page, sweep: &Sweep) {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for cell in &sweep.skipped {
        match reasons.iter_mut().find(|(why, _)| *why == cell.why) {
            Some((_, times)) => *times += 1,
            None => reasons.push((&cell.why, 1)),
        }
    }
    for (why, times) in reasons.iter().take(REASONS) {
        out.prose("  ", "    ", &format!("Skipped {times}: {why}."));
    }
    let more: usize = reasons.iter().skip(REASONS).map(|r| r.1).sum();
    if more > 0 {
        out.line(&format!("  Skipped {more} for other reasons: --skipped names them."));
    }
}

#[test]
fn shades_go_from_nothing_to_all() {
    assert_eq!((shade(0.0, 100.0), shade(50.0, 100.0), shade(100.0, 100.0)), (' ', '▒', '█'));
    assert_eq!((shade(1.0, 0.0), shade(f64::NAN, 1.0)), (' ', ' '));
    assert_eq!(percent(-0.021), "-2.1 %");
}
