//! Heat: shades of a map, from nothing to the best.
//!
//! For: which shade a value has. Not for: the map.

/// Shades that there are.
const MAP_SHADES: f64 = 9.0;

/// The shade of a share of the best: 0 to 8.
pub(crate) fn map_shade(share: f64) -> usize {
    if share.is_finite() { (share.clamp(0.0, 1.0) * MAP_SHADES).min(MAP_SHADES - 1.0) as usize } else { 0 }
}

#[test]
fn shades_go_from_nothing_to_all() {
    assert_eq!([0.0, 0.1, 0.5, 0.99, 1.0, 7.0, -1.0, f64::NAN].map(map_shade), [0, 0, 4, 8, 8, 8, 0, 0]);
}
