//! The knee of a load curve: the load of greatest power.
//!
//! For: where more load begins to cost more latency than it gains, and which load would tell more about that. Not for: promises
//! about a percentile.
//!
//! Power is load by mean latency (L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer
//! communications", ICC 1979). Where it is greatest, a percent more load costs a percent more latency: below less, above
//! more. It needs no axis to be scaled, and so no end of the curve to be chosen, as the distance from a chord does (Kneedle).
//! Known answers: half of the capacity for exponential service at one server (M/M/1), 2 - sqrt(2) = 58.6 % of it for constant
//! service (M/D/1), all of it where neither arrivals nor service vary.

/// A load that was offered, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Operations per second.
    pub(crate) iops: f64,
    /// Mean latency from the intended start in ns; above 0.
    pub(crate) mean_ns: f64,
}

/// The knee of some costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knee {
    /// Operations per second.
    pub(crate) iops: f64,
    /// Whether a higher load was measured, which has less power.
    pub(crate) reached: bool,
}

/// Loads below which there is no curve.
const FEWEST: usize = 3;
/// Share of the greatest power from which a neighbour is on the same flat top: no load between tells more than noise.
const FLAT: f64 = 0.95;
/// Share of the greatest power below which the load beyond is another world, such as overload: no smooth curve leads there.
const CLIFF: f64 = 0.5;

/// The knee of costs in ascending order of load; `None` with fewer than three of them, or one without a number.
///
/// Between measured loads the logarithm of power is drawn as a parabola through the greatest and its neighbours.
pub(crate) fn knee(costs: &[Cost]) -> Option<Knee> {
    let powers = powers(costs)?;
    let at = greatest(&powers)?;
    let three = |i: usize| Some((costs.get(i)?.iops, *powers.get(i)?));
    let around = at.checked_sub(1).and_then(|left| Some([three(left)?, three(at)?, three(at + 1)?]));
    let smooth = around.filter(|[_, middle, right]| right.1 - middle.1 > CLIFF.ln());
    let iops = smooth.and_then(vertex).unwrap_or(costs.get(at)?.iops);
    Some(Knee { iops, reached: at + 1 < costs.len() })
}

/// Logarithms of the powers.
fn powers(costs: &[Cost]) -> Option<Vec<f64>> {
    let powers: Vec<f64> = costs.iter().map(|c| (c.iops / c.mean_ns).ln()).collect();
    (costs.len() >= FEWEST && powers.iter().all(|p| p.is_finite())).then_some(powers)
}

fn greatest(powers: &[f64]) -> Option<usize> {
    Some(powers.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?.0)
}

/// Where the parabola through three points, the middle one highest, has its vertex.
fn vertex([left, middle, right]: [(f64, f64); 3]) -> Option<f64> {
    let (a, b) = (middle.0 - left.0, right.0 - middle.0);
    let (up, down) = ((middle.1 - left.1) / a, (right.1 - middle.1) / b);
    // The slope falls from `up` in the middle of the left side to `down` in the middle of the right one; 0 lies between.
    let x = f64::midpoint(left.0, middle.0) + (a + b) / 2.0 * up / (up - down);
    (up > down && x.is_finite()).then_some(x)
}

/// The load that would tell most about the knee: the middle of a side of it that is wider than `step` and falls, or two steps
/// on where it is the highest load measured, up to `most`. `None` where it is known.
pub(crate) fn next_load(costs: &[Cost], step: f64, most: f64) -> Option<f64> {
    let powers = powers(costs)?;
    let best = greatest(&powers)?;
    let here = costs.get(best)?.iops;
    if best + 1 == costs.len() {
        return Some(here + 2.0 * step).filter(|next| *next <= most);
    }
    let falls = |i: usize| powers.get(i).zip(powers.get(best)).is_some_and(|(p, top)| p - top < FLAT.ln());
    let neighbours = [best.checked_sub(1), Some(best + 1)];
    let sides = neighbours.into_iter().flatten().filter(|i| falls(*i)).filter_map(|i| Some(costs.get(i)?.iops));
    // A little slack, since loads are whole numbers.
    let wide = sides.filter(|there| (there - here).abs() > 1.2 * step);
    wide.max_by(|a, b| (a - here).abs().total_cmp(&(b - here).abs())).map(|there| f64::midpoint(here, there))
}

/// The loads of a curve over a capacity of one, with the mean time in the system that theory has for each.
#[cfg(test)]
fn curve(shares: &[f64], time: impl Fn(f64) -> f64) -> Vec<Cost> {
    shares.iter().map(|s| Cost { iops: *s, mean_ns: time(*s) }).collect()
}

/// The standard loads, and what `next_load` adds to them.
#[cfg(test)]
fn measured(time: impl Fn(f64) -> f64) -> Vec<Cost> {
    let mut costs = curve(&[0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95], &time);
    while let Some(load) = next_load(&costs, 0.025, 1.1) {
        assert!(costs.len() < 12 && costs.iter().all(|c| (c.iops - load).abs() > 1e-9), "{costs:?}");
        costs.push(Cost { iops: load, mean_ns: time(load) });
        costs.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    }
    costs
}

/// Mean time in M/D/c by Cosmetatos' approximation (1976): exact for one server, within a percent or two for more.
#[cfg(test)]
fn md(servers: u32, load: f64) -> f64 {
    let c = f64::from(servers);
    // Erlang's C by his B, server by server.
    let b = (1..=servers).fold(1.0, |b, k| load * c * b / (f64::from(k) + load * c * b));
    let wait = b / (1.0 - load * (1.0 - b)) / (c * (1.0 - load));
    let correction = 1.0 + (1.0 - load) * (c - 1.0) * ((4.0 + 5.0 * c).sqrt() - 2.0) / (16.0 * c * load);
    1.0 + if servers == 1 { wait / 2.0 } else { wait / 2.0 * correction }
}

#[test]
fn known_curves_have_their_known_knee() {
    let overloaded = |time: f64, load: f64| if load < 1.0 { time } else { 1e6 };
    let at = |time: &dyn Fn(f64) -> f64| knee(&measured(|load| overloaded(time(load), load))).unwrap().iops;
    let exponential = at(&|load| 1.0 / (1.0 - load));
    assert!((exponential - 0.5).abs() < 0.01, "{exponential}");
    let constant = at(&|load| md(1, load));
    assert!((constant - (2.0 - 2_f64.sqrt())).abs() < 0.01, "{constant}");
    // The truth on a fine grid.
    let fine: Vec<f64> = (1..1000).map(|i| f64::from(i) / 1000.0).collect();
    for servers in [2, 4, 16, 64] {
        let truth = knee(&curve(&fine, |load| md(servers, load))).unwrap().iops;
        let got = at(&|load| md(servers, load));
        assert!((got / truth - 1.0).abs() < 0.02, "{servers} servers: {got} for {truth}");
        assert!(truth > 0.6, "more servers bear more load");
    }
}

#[test]
fn what_neither_varies_nor_queues_bends_at_its_capacity() {
    // A closed loop that says a little more or less than what is served moves the loads, and not the knee.
    for truth in [0.98, 1.0, 1.02] {
        let found = knee(&measured(|load| if load <= truth { 1.0 } else { 1e4 })).unwrap();
        assert!(found.reached && found.iops <= truth && found.iops > truth - 0.04, "{found:?} for {truth}");
    }
    let found = knee(&measured(|_| 1.0)).unwrap();
    assert!(!found.reached && (found.iops - 1.1).abs() < 0.051, "{found:?}");
}

#[test]
fn few_loads_or_foolish_ones_have_no_knee() {
    assert_eq!(knee(&curve(&[0.1, 0.5], |_| 1.0)), None);
    assert_eq!(knee(&curve(&[0.0, 0.5, 0.9], |_| 1.0)), None);
    assert_eq!(knee(&curve(&[0.1, 0.5, 0.9], |_| 0.0)), None);
    assert_eq!(next_load(&[], 0.1, 1.0), None);
    let falling = knee(&curve(&[0.1, 0.5, 0.9], |load| load * load)).unwrap();
    assert_eq!(falling, Knee { iops: 0.1, reached: true });
}
