//! Strips: shares of the time in a thin row each, over one axis.
//!
//! For: what stands still for a stretch and has no course of its own. Not for: lines over time.

use super::axis::SIDE;
use super::band::rectangle;

/// Part of a row that is left between it and the one above.
const STRIP_GAP: f64 = 0.3;
/// Blocks that are nearer than this, and as high, are one: a thousand of them are no larger than can be seen.
const JOIN_DISTANCE: f64 = 2.0;

/// A row of blocks. A share of zero has a ground without a block on it; a share that is not known has neither.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Strip {
    /// Path of the ground: as high as the whole.
    pub(crate) ground: String,
    /// Path of the blocks, each as high as its share.
    pub(crate) blocks: String,
}

/// Where the middle of a row lies, of so many from the top down.
pub(crate) fn strip_middle(row: usize, rows: usize) -> f64 {
    let [top, bottom] = strip_edges(row, rows);
    f64::midpoint(top, bottom)
}

/// The row of these stretches: `(from, to, share)`.
pub(crate) fn strip(row: usize, rows: usize, stretches: &[(f64, f64, Option<f64>)]) -> Strip {
    let [top, bottom] = strip_edges(row, rows);
    let height = |share: f64| (bottom - share.clamp(0.0, 1.0) * (bottom - top)).round();
    let known = || stretches.iter().filter_map(|(from, to, share)| Some((*from, *to, (*share)?)));
    let path = |blocks: Vec<(f64, f64, f64)>| {
        let blocks = join_blocks(blocks).into_iter().filter(|b| b.2 < bottom.round());
        blocks.map(|(from, to, y)| rectangle([from, y], [to, bottom.round()])).collect()
    };
    Strip {
        ground: path(known().map(|(from, to, _)| (from, to, top.round())).collect()),
        blocks: path(known().map(|(from, to, share)| (from, to, height(share))).collect()),
    }
}

fn strip_edges(row: usize, rows: usize) -> [f64; 2] {
    let each = SIDE / rows.max(1) as f64;
    [each * (row as f64 + STRIP_GAP), each * (row as f64 + 1.0)]
}

/// Neighbours of one height as one.
fn join_blocks(blocks: Vec<(f64, f64, f64)>) -> Vec<(f64, f64, f64)> {
    let mut out: Vec<(f64, f64, f64)> = Vec::new();
    for (from, to, y) in blocks {
        match out.last_mut() {
            Some(last) if from - last.1 <= JOIN_DISTANCE && (y - last.2).abs() < 0.5 => last.1 = to,
            _ => out.push((from, to, y)),
        }
    }
    out
}

#[test]
fn a_block_is_as_high_as_its_share_and_what_is_missing_is_not_zero() {
    let runs = [(0.0, 300.0, Some(0.5)), (320.0, 620.0, Some(0.0)), (640.0, 1000.0, None)];
    let drawn = strip(0, 1, &runs);
    assert_eq!(drawn.blocks, "M0 650H300V1000H0Z", "half of what is below the gap");
    assert_eq!(drawn.ground, "M0 300H300V1000H0ZM320 300H620V1000H320Z", "nothing where it is not known");
    assert_eq!(strip(0, 1, &[]), Strip::default());
    assert_eq!(
        strip(1, 2, &[(0.0, 1000.0, Some(7.0))]).blocks,
        "M0 650H1000V1000H0Z",
        "no more than the whole"
    );
    assert!((strip_middle(0, 2) - 325.0).abs() < 1e-9 && (strip_middle(1, 2) - 825.0).abs() < 1e-9);
}

#[test]
fn a_thousand_neighbours_of_one_height_are_one_block() {
    let runs: Vec<_> = (0..1000).map(|i| (f64::from(i), f64::from(i) + 0.5, Some(0.25))).collect();
    assert_eq!(strip(0, 1, &runs).blocks.matches('M').count(), 1);
}
