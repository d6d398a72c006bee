//! The knee of a load curve: the load with the greatest power.
//!
//! Power is load divided by mean latency (L. Kleinrock, "Power and deterministic rules of thumb for probabilistic
//! problems in computer communications", ICC 1979). At the maximum, one percent more load costs one percent more
//! latency. Below the maximum it costs less, above it more. Unlike the distance from a chord (Kneedle), power
//! needs no scaled axis and no chosen end of the curve.
//!
//! 1. [`find_knee`] fits a parabola to the logarithms of the greatest powers and returns its vertex.
//! 2. [`next_load`] returns the load that would narrow the knee down most.
//!
//! Known results: half the capacity for exponential service at one server (M/M/1), 2 - sqrt(2) = 58.6 % for constant service (M/D/1), the
//! full capacity if neither arrivals nor service vary.

/// A point of a load curve: an offered load and its latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Operations per second.
    pub iops: f64,
    /// Mean latency from the intended start, in ns; above 0.
    pub mean_latency_ns: f64,
}

/// The knee of a load curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Load at the knee in operations per second.
    pub iops: f64,
    /// Whether a higher load with less power was measured. Otherwise the true knee may be higher.
    pub reached: bool,
}

/// Minimum number of loads of a curve.
const MIN_LOADS: usize = 3;
/// The parabola is fitted to the loads whose power is at least this share of the greatest power. The gap between two such loads is not
/// divided by a further load. With a lower value, the knee is biased towards the side on which power falls more slowly. With a higher
/// value, noise dominates.
const MIN_POWER_SHARE: f64 = 0.9;

/// Returns the knee of a curve. Its points are in ascending order of load. `None` with fewer than
/// three loads, or if a power is zero or not finite.
///
/// The knee is the vertex of the least-squares parabola through the logarithms of the greatest powers, so that no single load decides. The
/// outermost loads with these powers limit the knee. If fewer than three loads have at least 90 % of the greatest power, as before a cliff,
/// or if the parabola has no maximum, the knee is the load with the greatest power.
pub fn find_knee(points: &[CurvePoint]) -> Option<Knee> {
    let powers = log_powers(points)?;
    let at = find_greatest(&powers)?;
    let (best_load, greatest) = (points.get(at)?.iops, *powers.get(at)?);
    let fitted = || {
        let near_greatest = |(_, power): &(&CurvePoint, &f64)| **power - greatest >= MIN_POWER_SHARE.ln();
        points.iter().zip(&powers).filter(near_greatest).map(|(point, power)| (point.iops, *power))
    };
    let vertex =
        vertex(&fitted().map(|(load, power)| (load / best_load - 1.0, power - greatest)).collect::<Vec<_>>());
    let (low, high) =
        fitted().fold((best_load, best_load), |(low, high), (load, _)| (low.min(load), high.max(load)));
    let iops = vertex.map_or(best_load, |x| (best_load * (1.0 + x)).max(low).min(high));
    Some(Knee { iops, reached: at + 1 < points.len() })
}

/// Returns the logarithms of the powers; `None` with fewer than [`MIN_LOADS`], or if one is not finite.
fn log_powers(points: &[CurvePoint]) -> Option<Vec<f64>> {
    let powers: Vec<f64> = points.iter().map(|point| (point.iops / point.mean_latency_ns).ln()).collect();
    (points.len() >= MIN_LOADS && powers.iter().all(|p| p.is_finite())).then_some(powers)
}

/// Returns the index of the greatest power; `None` without powers.
fn find_greatest(powers: &[f64]) -> Option<usize> {
    Some(powers.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?.0)
}

/// Returns the position of the vertex of the least-squares parabola through some points; `None`
/// with fewer than [`MIN_LOADS`] points, without a vertex, or if the vertex is a minimum.
fn vertex(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |term: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| term(*x, *y)).sum::<f64>() / n;
    let (x1, y1) = (mean(&|x, _| x), mean(&|_, y| y));
    let x2 = mean(&|x, _| x * x);
    // Covariances of x, x^2 and y: the normal equations without their constant.
    let (xx, xq, qq) =
        (mean(&|x, _| x * x) - x1 * x1, mean(&|x, _| x * x * x) - x1 * x2, mean(&|x, _| x.powi(4)) - x2 * x2);
    let (xy, qy) = (mean(&|x, y| x * y) - x1 * y1, mean(&|x, y| x * x * y) - x2 * y1);
    let determinant = xx * qq - xq * xq;
    let (slope, bend) = ((xy * qq - qy * xq) / determinant, (qy * xx - xy * xq) / determinant);
    let at = -slope / (2.0 * bend);
    (points.len() >= MIN_LOADS && bend < 0.0 && at.is_finite()).then_some(at)
}

/// Returns the load to measure next, in operations per second; `None` if the knee is known, or if the curve has no knee.
///
/// 1. If the highest measured load has the greatest power, the next load is two `step`s higher; `None` if that is above `most`.
/// 2. Otherwise the next load is in the middle between the load with the greatest power and one of its two neighbours.
/// 3. A neighbour counts if its power is much lower (`MIN_POWER_SHARE`) and its load more than 1.2 `step`s away. Of two neighbours, the
///    farther one is used. If no neighbour counts, the knee is known.
pub fn next_load(points: &[CurvePoint], step: f64, most: f64) -> Option<f64> {
    let powers = log_powers(points)?;
    let at = find_greatest(&powers)?;
    let (best_load, greatest) = (points.get(at)?.iops, *powers.get(at)?);
    if at + 1 == points.len() {
        return Some(best_load + 2.0 * step).filter(|next| *next <= most);
    }
    let is_lower = |i: &usize| powers.get(*i).is_some_and(|power| power - greatest < MIN_POWER_SHARE.ln());
    let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let loads = neighbours.filter(is_lower).filter_map(|i| Some(points.get(i)?.iops));
    // Allow 20 % more, because loads are whole numbers.
    let far = loads.filter(|load| (load - best_load).abs() > 1.2 * step);
    far.max_by(|a, b| (a - best_load).abs().total_cmp(&(b - best_load).abs()))
        .map(|load| f64::midpoint(best_load, load))
}

/// Builds a curve for a capacity of 1 from the theoretical mean time in the system at each load.
#[cfg(test)]
fn build_curve(shares: &[f64], mut time: impl FnMut(f64) -> f64) -> Vec<CurvePoint> {
    shares.iter().map(|s| CurvePoint { iops: *s, mean_latency_ns: time(*s) }).collect()
}

/// Measures the standard loads and the ones that `next_load` adds.
#[cfg(test)]
fn measure(mut time: impl FnMut(f64) -> f64) -> Vec<CurvePoint> {
    let mut points = build_curve(&[0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95], &mut time);
    while let Some(load) = next_load(&points, 0.025, 1.1) {
        assert!(points.len() < 16 && points.iter().all(|c| (c.iops - load).abs() > 1e-9), "{points:?}");
        points.push(CurvePoint { iops: load, mean_latency_ns: time(load) });
        points.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    }
    points
}

/// Mean time in M/D/c by Cosmetatos' approximation (1976): exact for one server, within a percent or two for more.
#[cfg(test)]
fn mean_time(servers: u32, load: f64) -> f64 {
    let c = f64::from(servers);
    // Erlang's C formula from his B formula, server by server.
    let b = (1..=servers).fold(1.0, |b, k| load * c * b / (f64::from(k) + load * c * b));
    let wait = b / (1.0 - load * (1.0 - b)) / (c * (1.0 - load));
    let correction = 1.0 + (1.0 - load) * (c - 1.0) * ((4.0 + 5.0 * c).sqrt() - 2.0) / (16.0 * c * load);
    1.0 + if servers == 1 { wait / 2.0 } else { wait / 2.0 * correction }
}

#[test]
fn known_curves_have_the_known_knee() {
    let overloaded = |time: f64, load: f64| if load < 1.0 { time } else { 1e6 };
    let at =
        |time: &dyn Fn(f64) -> f64| find_knee(&measure(|load| overloaded(time(load), load))).unwrap().iops;
    let exponential = at(&|load| 1.0 / (1.0 - load));
    assert!((exponential - 0.5).abs() < 0.01, "{exponential}");
    let constant = at(&|load| mean_time(1, load));
    assert!((constant - (2.0 - 2_f64.sqrt())).abs() < 0.01, "{constant}");
    // The true knee on a fine grid.
    let fine: Vec<f64> = (1..1000).map(|i| f64::from(i) / 1000.0).collect();
    for servers in [2, 4, 16, 64] {
        let truth = find_knee(&build_curve(&fine, |load| mean_time(servers, load))).unwrap().iops;
        let got = at(&|load| mean_time(servers, load));
        assert!((got / truth - 1.0).abs() < 0.02, "{servers} servers: {got} for {truth}");
        assert!(truth > 0.6, "more servers bear more load");
    }
}

#[test]
fn noise_moves_the_knee_by_less_than_five_percent_in_90_percent_of_cases() {
    // Means with an error of 2 %, as from a few thousand operations.
    let mut state = 1;
    let mut noise = || {
        let mut uniform = || {
            state = model::payload::split_mix(state);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0.02 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0)).exp()
    };
    for servers in [1, 4, 16] {
        let fine: Vec<f64> = (1..1000).map(|i| f64::from(i) / 1000.0).collect();
        let truth = find_knee(&build_curve(&fine, |load| mean_time(servers, load))).unwrap().iops;
        let mut near = |_: &u32| {
            let points = measure(|load| if load < 1.0 { noise() * mean_time(servers, load) } else { 1e6 });
            (find_knee(&points).unwrap().iops / truth - 1.0).abs() < 0.05
        };
        let hits = (0..200).filter(|i| near(i)).count();
        assert!(hits >= 180, "{servers} servers: {hits} of 200");
    }
}

#[test]
fn without_variation_the_knee_is_the_capacity() {
    // A small error of the measured capacity moves the loads, not the knee.
    for truth in [0.98, 1.0, 1.02] {
        let found = find_knee(&measure(|load| if load <= truth { 1.0 } else { 1e4 })).unwrap();
        assert!(found.reached && found.iops <= truth && found.iops > truth - 0.04, "{found:?} for {truth}");
    }
    let found = find_knee(&measure(|_| 1.0)).unwrap();
    assert!(!found.reached && (found.iops - 1.1).abs() < 0.051, "{found:?}");
}

#[test]
fn too_few_or_invalid_loads_have_no_knee() {
    assert_eq!(find_knee(&build_curve(&[0.1, 0.5], |_| 1.0)), None);
    assert_eq!(find_knee(&build_curve(&[0.0, 0.5, 0.9], |_| 1.0)), None);
    assert_eq!(find_knee(&build_curve(&[0.1, 0.5, 0.9], |_| 0.0)), None);
    assert_eq!(next_load(&[], 0.1, 1.0), None);
    let falling = find_knee(&build_curve(&[0.1, 0.5, 0.9], |load| load * load)).unwrap();
    assert_eq!(falling, Knee { iops: 0.1, reached: true });
}
