//! What the position on a target costs: the fastest place against the slowest.
//!
//! For: grids that go through offsets in one setting otherwise, such as the zones of a spinning disk. Not for: the rate at each
//! position, which the table has.

use crate::checks::evidence;
use model::measure::Measure;
use model::report::Deduction;
use model::sweep::{CellFigures, Sweep, Work};
use model::units::show_share;

/// The fastest and the slowest position of a work, where their intervals are apart; what is known where they are not. `None`
/// where other things than the position differ, or too little was measured.
pub(super) fn cost(sweep: &Sweep, work: &Work) -> Option<Deduction> {
    let mine: Vec<&CellFigures> = sweep.cells.iter().filter(|c| c.setting.work() == work.name).collect();
    let first = mine.first()?.setting.at_no_position();
    let positions =
        mine.iter().all(|c| c.setting.offset_bytes.is_some() && c.setting.at_no_position() == first);
    if !positions || mine.len() < 2 {
        return None;
    }
    let rate = |c: &&&CellFigures| c.mb_per_s.unwrap_or(0.0);
    let known = || mine.iter().filter(|c| c.interval.is_some() && c.mb_per_s.is_some());
    let fastest = known().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let slowest = known().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let apart = fastest.interval?[0] > slowest.interval?[1];
    let told = |c: &CellFigures| {
        let rate = c.mb_per_s.map_or_else(String::new, |r| Measure::Bandwidth.show(r));
        format!("{rate} MB/s at {}", c.setting.position().unwrap_or_default())
    };
    let share = 1.0 - rate(&slowest) / rate(&fastest);
    let sentence = if apart {
        format!(
            "{}: {} against {}, {} less: how fast it is depends on where on the target it lies.",
            work.name,
            told(fastest),
            told(slowest),
            show_share(share)
        )
    } else {
        format!(
            "{}: from {} to {}, and the intervals of these two overlap: that the position matters cannot be told from noise.",
            work.name,
            told(slowest),
            told(fastest)
        )
    };
    Some(Deduction {
        name: "rate by position".into(),
        sentence,
        evidence: evidence([("share_lost", share), ("positions", mine.len() as f64)]),
    })
}
