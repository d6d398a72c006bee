//! Flows: what one stage hands to the next, as wide as it is.
//!
//! For: the ledger from what was issued down to the devices, by operations or by bytes. Not for: whether stages agree.

use super::axis::SIDE;
use super::line::coordinate;

/// Width of the widest stage.
const FLOW_WIDTH: f64 = 960.0;
/// Part of a stage's height that is its bar; the rest leads to the next one.
const BAR_SHARE: f64 = 0.5;
/// Between layers that stand side by side.
const FLOW_GAP: f64 = 12.0;

/// The bars of stages from the top down and what leads from each to the next. A stage is of one part, or of several side by side, and
/// has none where it was not counted.
pub(crate) struct Flow {
    /// Path of the bars.
    pub(crate) bars: String,
    /// Path of what is between them.
    pub(crate) between: String,
}

/// Draws them.
pub(crate) fn flow(stages: &[Vec<f64>]) -> Flow {
    let most = stages.iter().map(|parts| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let each = SIDE / stages.len().max(1) as f64;
    let mut out = Flow { bars: String::new(), between: String::new() };
    let mut above: Option<[f64; 3]> = None;
    for (at, parts) in stages.iter().enumerate() {
        let top = each * at as f64;
        let bottom = top + BAR_SHARE * each;
        let sum: f64 = parts.iter().sum();
        if parts.is_empty() || most <= 0.0 {
            continue;
        }
        let gaps = FLOW_GAP * (parts.len() - 1) as f64;
        let width = FLOW_WIDTH * sum / most;
        let left = (SIDE - width - gaps) / 2.0;
        let mut x = left;
        for part in parts {
            let wide = FLOW_WIDTH * part / most;
            out.bars += &flow_bar(x, top, wide.max(2.0), bottom);
            x += wide + FLOW_GAP;
        }
        if let Some([from, to, y]) = above {
            let right = left + width + gaps;
            let [from, to, y, left, right, top] = [from, to, y, left, right, top].map(coordinate);
            out.between += &format!("M{from} {y}H{to}L{right} {top}H{left}Z");
        }
        above = Some([left, left + width + gaps, bottom]);
    }
    out
}

fn flow_bar(x: f64, top: f64, wide: f64, bottom: f64) -> String {
    let [x, top, to, bottom] = [x, top, x + wide, bottom].map(coordinate);
    format!("M{x} {top}H{to}V{bottom}H{x}Z")
}

#[test]
fn a_stage_is_as_wide_as_its_part_of_the_widest() {
    let flow = flow(&[vec![100.0], vec![50.0]]);
    assert_eq!(flow.bars, "M20 0H980V250H20ZM260 500H740V750H260Z");
    assert_eq!(flow.between, "M20 250H980L740 500H260Z");
}

#[test]
fn legs_stand_side_by_side_and_what_was_not_counted_is_left_out() {
    let drawn = flow(&[vec![100.0], Vec::new(), vec![50.0, 50.0]]);
    assert_eq!(drawn.bars.matches('M').count(), 3);
    assert_eq!(drawn.between.matches('M').count(), 1, "{}", drawn.between);
    assert_eq!(flow(&[vec![0.0], vec![0.0]]).bars, "");
}
