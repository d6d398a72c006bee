//! Bursts: how arrivals of an open loop are drawn.
//!
//! For: from a rate and indices of dispersion of counts to arrivals that have them. Not for: think times ([`super::law`]).
//!
//! IDC(t) = Var N(t) / E N(t) is 1 of independent arrivals at any length, 2 b - 1 of geometric batches of mean b at any length, and rises
//! with the length where there are times off: for an interrupted Poisson process of rate l, on for a share p of the time and changing at
//! rate r, IDC(t) = 1 + 2 l (1 - p) / (p r) g(r t), g(x) = 1 - (1 - exp(-x)) / x (Fischer and Meier-Hellstern, 1993).

use super::law::distance;
use model::histogram::Histogram;
use model::job::Arrivals;
use model::spec::number::MAX_TIME_NS;

/// The two lengths in seconds.
const LENGTHS: [f64; 2] = [0.01, 0.1];
/// Dispersion up to which arrivals count as independent, at either length.
const INDEPENDENT: [f64; 2] = [1.5, 2.0];
/// Dispersion below which they may be even.
const EVEN: f64 = 0.3;
/// Growth from the short length to the long one from which there may be times off, and from which there are where no gaps say more.
const MAY_GROW: f64 = 1.02;
const GROWS: f64 = 1.1;
/// Times between arrivals below which they count as at once, in ns.
const AT_ONCE_NS: f64 = 20_000.0;
/// Changes in the short length beyond and below which nothing can be told.
const CHANGES: (f64, f64) = (0.02, 50.0);

/// Arrivals, and how well they fit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) arrivals: Arrivals,
    /// The largest difference of the distribution functions of the times between them.
    pub(super) distance: Option<f64>,
    /// Index of dispersion of the fit at both lengths.
    pub(super) idc: [f64; 2],
}

/// The arrivals of so many a second, with these gaps and dispersions.
pub(super) fn fit_bursts(rate: f64, gaps: &Histogram, idc: [Option<f64>; 2]) -> Fit {
    let fit = match idc {
        [Some(short), long] => plainer(choose(rate, gaps, short, long.unwrap_or(short)), rate, gaps),
        _ => Fit::new(Arrivals::Poisson, rate, gaps),
    };
    let even = Fit::new(Arrivals::Constant, rate, gaps);
    let is_even = idc[0].is_some_and(|short| short < EVEN) && even.distance < fit.distance;
    if is_even { even } else { fit }
}

fn choose(rate: f64, gaps: &Histogram, short: f64, long: f64) -> Fit {
    if short <= INDEPENDENT[0] && long <= INDEPENDENT[1] {
        return Fit::new(Arrivals::Poisson, rate, gaps);
    }
    let batches = Fit::new(Arrivals::Batch { mean: f64::midpoint(short, 1.0).max(1.0) }, rate, gaps);
    if long <= short * MAY_GROW {
        return batches;
    }
    let times_off = Fit::new(times_off(rate, short, long), rate, gaps);
    let is_nearer = match (times_off.distance, batches.distance) {
        (Some(off), Some(batches)) => off < batches,
        _ => long > short * GROWS,
    };
    if is_nearer { times_off } else { batches }
}

/// Plain arrivals where bursts are not nearer to the times between them.
fn plainer(fit: Fit, rate: f64, gaps: &Histogram) -> Fit {
    let plain = Fit::new(Arrivals::Poisson, rate, gaps);
    match (plain.distance, fit.distance) {
        (Some(plainly), Some(distance)) if plainly <= distance => plain,
        _ => fit,
    }
}

fn times_off(rate: f64, short: f64, long: f64) -> Arrivals {
    // Growth of g from the short to the long one falls from 10 to 1 with the rate of changes.
    let growth = (long - 1.0) / (short - 1.0).max(0.05);
    let (mut low, mut high) = CHANGES;
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        let grows = part(10.0 * middle) / part(middle);
        if grows > growth { low = middle } else { high = middle }
    }
    let changes = (low * high).sqrt() / LENGTHS[0];
    // Where both cannot be met the long one is: it is what queues see.
    let amount = (long - 1.0) / part(changes * LENGTHS[1]);
    let on = 1.0 / (1.0 + amount * changes / (2.0 * rate));
    let ns = |seconds: f64| ((seconds * 1e9).round() as u64).clamp(1, MAX_TIME_NS);
    Arrivals::OnOff { on_ns: ns(1.0 / (changes * (1.0 - on))), off_ns: ns(1.0 / (changes * on)) }
}

/// g.
fn part(x: f64) -> f64 {
    1.0 - (1.0 - (-x).exp()) / x
}

impl Fit {
    fn new(arrivals: Arrivals, rate: f64, gaps: &Histogram) -> Self {
        let share: Box<dyn Fn(f64) -> f64> = match arrivals {
            Arrivals::Poisson => Box::new(move |ns| 1.0 - (-rate * ns / 1e9).exp()),
            Arrivals::Constant => Box::new(move |ns| f64::from(u8::from(ns >= 1e9 / rate * 0.999))),
            Arrivals::Batch { mean } => Box::new(move |ns| 1.0 - (-rate / mean * ns / 1e9).exp() / mean),
            Arrivals::OnOff { on_ns, off_ns } => {
                let (ends, begins) = (1e9 / on_ns as f64, 1e9 / off_ns as f64);
                let fast = rate * (ends + begins) / begins;
                let (sum, root) =
                    (fast + begins + ends, ((fast + begins + ends).powi(2) - 4.0 * fast * begins).sqrt());
                let (first, second) = (f64::midpoint(sum, root), f64::midpoint(sum, -root));
                let share = (fast - second) / (first - second);
                Box::new(move |ns| {
                    let s = ns / 1e9;
                    1.0 - share * (-first * s).exp() - (1.0 - share) * (-second * s).exp()
                })
            }
        };
        // What no device tells apart counts as at once, where that is far below the mean.
        let from_ns = AT_ONCE_NS.min(0.1 * 1e9 / rate);
        let distance = (gaps.count() > 0).then(|| distance(gaps, &share, from_ns));
        Self { arrivals, distance, idc: LENGTHS.map(|length| dispersion(arrivals, rate, length)) }
    }
}

/// By theory.
fn dispersion(arrivals: Arrivals, rate: f64, length: f64) -> f64 {
    match arrivals {
        Arrivals::Poisson => 1.0,
        Arrivals::Constant => 0.0,
        Arrivals::Batch { mean } => 2.0 * mean - 1.0,
        Arrivals::OnOff { on_ns, off_ns } => {
            let (on_ns, off_ns) = (on_ns as f64, off_ns as f64);
            let (changes, on) = (1e9 / on_ns + 1e9 / off_ns, on_ns / (on_ns + off_ns));
            1.0 + 2.0 * rate * (1.0 - on) / (on * changes) * part(changes * length)
        }
    }
}

/// Dispersion of a share of arrivals that are drawn from them at random.
pub(super) fn thinned(idc: Option<f64>, share: f64) -> Option<f64> {
    idc.map(|idc| 1.0 + share * (idc - 1.0))
}

#[test]
fn what_was_drawn_by_a_law_is_found_by_its_dispersion() {
    let none = Histogram::new();
    assert_eq!(fit_bursts(100.0, &none, [Some(1.02), Some(0.97)]).arrivals, Arrivals::Poisson);
    assert_eq!(fit_bursts(100.0, &none, [None, None]).arrivals, Arrivals::Poisson);
    let batches = fit_bursts(100.0, &none, [Some(7.0), Some(7.1)]).arrivals;
    assert!(matches!(batches, Arrivals::Batch { mean } if (mean - 4.0).abs() < 1e-9), "{batches:?}");
    for (on_ns, off_ns) in [(5_000_000, 15_000_000), (2_000_000, 200_000_000), (40_000_000, 60_000_000)] {
        let truth = Arrivals::OnOff { on_ns, off_ns };
        let idc = LENGTHS.map(|length| Some(dispersion(truth, 2000.0, length)));
        let fit = fit_bursts(2000.0, &none, idc);
        let Arrivals::OnOff { on_ns: on, off_ns: off } = fit.arrivals else { panic!("{fit:?}") };
        let near = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.02;
        assert!(near(on, on_ns) && near(off, off_ns), "{on_ns} {off_ns}: {fit:?}");
    }
    assert_eq!(thinned(Some(9.0), 0.5), Some(5.0));
}
