//! Cells: a grid of counts as rectangles, darker where there is more.
//!
//! For: one path for each shade, in which cells of one shade beside each other are one rectangle. Not for: tables of cells
//! ([`super::heat`] has their shades).

use super::axis::SIDE;
use super::line::coordinate;

/// Shades, from the lightest to the darkest.
const CELL_SHADES: usize = 5;

/// The paths of a grid of so many columns and rows, the first row at the bottom, from the lightest on: `(column, row, count)`, by
/// columns and rows that rise. A shade is a part of the logarithm from one to the most that a cell has.
pub(crate) fn count_cells(
    [columns, rows]: [usize; 2],
    of: impl IntoIterator<Item = (usize, usize, u64)>,
) -> [String; CELL_SHADES] {
    let mut grid = vec![0_u64; columns * rows];
    for (column, row, count) in of {
        if column < columns && row < rows {
            grid[row * columns + column] = count;
        }
    }
    let most = grid.iter().copied().max().unwrap_or(0);
    let shade = |count: u64| {
        let share = (count as f64).ln_1p() / (most as f64).ln_1p();
        (count > 0).then(|| ((share * CELL_SHADES as f64).ceil() as usize).clamp(1, CELL_SHADES) - 1)
    };
    let mut paths: [String; CELL_SHADES] = Default::default();
    let (width, height) = (SIDE / columns.max(1) as f64, SIDE / rows.max(1) as f64);
    for (row, counts) in grid.chunks(columns.max(1)).enumerate() {
        let top = SIDE - (row + 1) as f64 * height;
        let mut column = 0;
        for run in counts.chunk_by(|a, b| shade(*a) == shade(*b)) {
            if let Some(path) = run.first().and_then(|count| paths.get_mut(shade(*count)?)) {
                let [left, right] = [column, column + run.len()].map(|at| coordinate(at as f64 * width));
                *path += &format!("M{left} {}H{right}V{}H{left}Z", coordinate(top), coordinate(top + height));
            }
            column += run.len();
        }
    }
    paths
}

#[test]
fn cells_of_one_shade_side_by_side_are_one_and_what_is_empty_is_not_drawn() {
    let paths = count_cells([4, 2], [(0, 0, 1), (1, 0, 1), (3, 1, 1000), (9, 9, 5)]);
    assert_eq!(paths[0], "M0 500H500V1000H0Z");
    assert_eq!(paths[4], "M750 0H1000V500H750Z");
    assert!(paths[1..4].iter().all(String::is_empty));
    assert!(count_cells([0, 0], []).iter().all(String::is_empty));
    assert_eq!(count_cells([1, 1], [(0, 0, 7)])[4], "M0 0H1000V1000H0Z", "a single count is the most");
}
