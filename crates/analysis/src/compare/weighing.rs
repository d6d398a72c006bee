//! Weighing: what the runs of two sides say about one number.
//!
//! The word comes from Welch's 95 % interval of the ratio on logarithms, or from a bootstrap over runs for percentiles, in this order:
//! 1. `FASTER`, `SLOWER`: the interval lies beyond the margin, that is unlikely by chance among all numbers (Holm), and the ranks of the
//!    runs confirm it.
//! 2. `SAME`: the interval lies within the tolerance, and so does the median of all pairs of runs.
//! 3. `CANNOT TELL`: there is no interval, the ranks contradict it, or it allows half as much again.
//! 4. `NO DIFFERENCE SEEN`: all else. The interval says how large the difference may be at most.

use super::margin::{
    MARGIN, MARGIN_OF_LONE_SESSIONS, MARGIN_OF_PERCENTILE, SAYS_NOTHING, TOLERANCE, TOLERANCE_OF_TAIL,
};
use super::measures::Measure;
use super::{Options, Runs};
use model::comparison::{Answer, Metric};
use model::units::show_share;
use stats::comparison::{ALLOWED, Shift};
use stats::sample::mean;
use stats::{comparison, intervals};

/// Pairs of sessions of one side from which their 95th percentile is less than the largest.
const SURE_OF_FLOOR: f64 = 0.95;

/// What the runs say, before it is known how many numbers are looked at.
pub(super) struct Weighed {
    measure: Measure,
    /// Logarithms of all runs.
    a: Vec<f64>,
    b: Vec<f64>,
    shift: Option<Shift>,
    /// Of the logarithm of the ratio.
    interval: Option<[f64; 2]>,
    /// Ends of an interval of the logarithm of the ratio, each of which by itself holds as surely as `interval`.
    bounds: Option<[f64; 2]>,
    margin: f64,
    tolerance: f64,
    floor: Option<f64>,
    by_ranks: f64,
    p_ranks: Option<f64>,
}

/// Weighs a number, with the margin of the options.
pub(super) fn weigh(measure: Measure, options: &Options) -> Weighed {
    let logs = |side: &[Vec<f64>]| side.iter().flatten().map(|v| v.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(&measure.a), logs(&measure.b));
    let shift = Shift::new(&a, &b);
    let drawn = measure.percentile && a.len().min(b.len()) >= intervals::FEWEST;
    let between = |tail: f64| {
        shift.and_then(|s| {
            if drawn { intervals::interval(&a, &b, s.degrees(), tail) } else { Some(s.between(tail)) }
        })
    };
    let (interval, bounds) = (between(ALLOWED / 2.0), between(ALLOWED));
    let floor = floor(&measure.a, &measure.b);
    let least = if measure.percentile { MARGIN_OF_PERCENTILE } else { MARGIN };
    let knows_floor = floor.is_some() || options.runs != Runs::Apart;
    let usual = if knows_floor { MARGIN } else { MARGIN_OF_LONE_SESSIONS };
    let margin = least.max(options.margin.unwrap_or(usual)).max(floor.unwrap_or(0.0));
    let usual = if measure.tail { TOLERANCE_OF_TAIL } else { TOLERANCE };
    let tolerance = margin.max(options.margin.unwrap_or(usual));
    Weighed {
        by_ranks: comparison::shift(&a, &b).unwrap_or(f64::NAN),
        p_ranks: comparison::chance(&a, &b),
        margin,
        tolerance,
        floor,
        measure,
        a,
        b,
        shift,
        interval,
        bounds,
    }
}

/// How far sessions of one side lie apart, as a share: the 95th percentile of all pairs, or the largest where they are few.
/// `None` where each side is one session.
fn floor(a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<f64> {
    let mut apart: Vec<f64> = Vec::new();
    for side in [a, b] {
        let measured = side.iter().filter(|s| !s.is_empty());
        let centres: Vec<f64> =
            measured.map(|s| mean(&s.iter().map(|v| v.ln()).collect::<Vec<_>>())).collect();
        for (i, x) in centres.iter().enumerate() {
            apart.extend(centres[..i].iter().map(|y| (x - y).abs()).filter(|d| d.is_finite()));
        }
    }
    apart.sort_unstable_by(f64::total_cmp);
    let at = (SURE_OF_FLOOR * apart.len() as f64).ceil() as usize;
    apart.get(at.checked_sub(1)?).map(|d| d.exp_m1())
}

impl Weighed {
    /// Chance of such a difference where there is none; 1 where nothing is known.
    pub(super) fn chance(&self) -> f64 {
        self.shift.map_or(1.0, |s| s.chance_beyond(self.margin.ln_1p()))
    }

    /// The answer, with the chance that allows for the others, of which there are so many.
    pub(super) fn answered(self, chance: f64, looks: usize) -> Metric {
        let (answer, why) = self.answer(chance, looks);
        let limits = [self.margin, self.tolerance].map(f64::ln_1p);
        let is_open = matches!(answer, Answer::CannotTell | Answer::NoDifferenceSeen);
        let runs_needed = self.shift.filter(|_| is_open).and_then(|s| s.runs_needed(limits, looks));
        let is_bounded = answer == Answer::NoDifferenceSeen;
        let runs_to_halve = self.shift.filter(|_| is_bounded).and_then(|s| s.runs_to_halve());
        // With too few runs for ranks nothing could have been seen.
        let seeing = self.shift.filter(|_| comparison::least(self.a.len(), self.b.len()) <= ALLOWED);
        Metric {
            name: self.measure.name,
            unit: self.measure.unit.into(),
            more_is_better: self.measure.more_is_better,
            answer,
            why,
            a: mean(&self.a).exp(),
            b: mean(&self.b).exp(),
            ratio: (mean(&self.b) - mean(&self.a)).exp(),
            interval: ratios(self.interval),
            bounds: ratios(self.bounds),
            margin: self.margin,
            tolerance: Some(self.tolerance),
            floor: self.floor,
            could_have_seen: seeing.map(|s| s.visible(limits[0], looks).exp_m1()).filter(|v| v.is_finite()),
            // What these runs could not show takes more of them, whatever their variation says.
            runs_needed: runs_needed.map(|n| n.max(self.a.len().min(self.b.len()) as u32 + 1)),
            runs_to_halve,
            p: self.shift.map(|_| chance),
            p_ranks: self.p_ranks,
            ratio_by_ranks: self.by_ranks.exp(),
            a_runs: self.measure.a.concat(),
            b_runs: self.measure.b.concat(),
        }
    }

    fn answer(&self, chance: f64, looks: usize) -> (Answer, String) {
        let cannot = |why: String| (Answer::CannotTell, why);
        let (Some(_), Some([low, high])) = (self.shift, self.interval) else {
            let few = self.a.len().min(self.b.len());
            return cannot(format!(
                "{few} on a side: it takes three runs on each to know how much they vary"
            ));
        };
        let [margin, tolerance] = [self.margin, self.tolerance].map(f64::ln_1p);
        let grows = low > margin;
        let is_beyond = grows || high < -margin;
        let doubt = is_beyond.then(|| self.doubt(grows)).flatten();
        if is_beyond && doubt.is_none() && chance <= ALLOWED {
            let better = grows == self.measure.more_is_better;
            return (if better { Answer::Faster } else { Answer::Slower }, String::new());
        }
        if low > -tolerance && high < tolerance {
            return if self.by_ranks.abs() < tolerance {
                (Answer::Same, String::new())
            } else {
                cannot("the mean says the same, and the median of the runs does not".into())
            };
        }
        if let Some(why) = doubt {
            return cannot(why);
        }
        let largest = high.exp_m1().max(-low.exp_m1());
        if largest > SAYS_NOTHING {
            return cannot(format!(
                "the runs differ so much from each other that a difference of {} is possible",
                show_share(largest)
            ));
        }
        let by_chance = format!(
            "by itself it differs, and among {looks} numbers one does so by chance (p {chance:.2}, Holm)"
        );
        (Answer::NoDifferenceSeen, if is_beyond { by_chance } else { String::new() })
    }

    /// What the second witness has against a difference.
    fn doubt(&self, grows: bool) -> Option<String> {
        let (n, m) = (self.a.len(), self.b.len());
        let least = comparison::least(n, m);
        if least > ALLOWED {
            return Some(format!(
                "{n} runs against {m}: no order of their ranks is less likely by chance than {}; it takes 4 against 4",
                show_share(least)
            ));
        }
        let p = self.p_ranks.unwrap_or(1.0);
        if p > ALLOWED {
            return Some(format!(
                "the ranks of the runs do not bear it out (p {p:.2}): a few of them make the mean"
            ));
        }
        if self.by_ranks.abs() <= self.margin.ln_1p() || (self.by_ranks > 0.0) != grows {
            return Some("the mean differs, and the median of the runs does not".into());
        }
        let overlap = self.measure.percentile && n.min(m) < intervals::FEWEST && !self.apart();
        overlap.then(|| {
            format!(
                "a percentile of fewer than {} runs on a side differs surely only where no run of one is among those of the other",
                intervals::FEWEST
            )
        })
    }

    /// Whether all runs of one side lie beyond all of the other.
    fn apart(&self) -> bool {
        let ends = |side: &[f64]| {
            side.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)))
        };
        let ((low_a, high_a), (low_b, high_b)) = (ends(&self.a), ends(&self.b));
        high_a < low_b || high_b < low_a
    }
}

/// Logarithms of ratios as ratios.
fn ratios(logs: Option<[f64; 2]>) -> Option<[f64; 2]> {
    logs.map(|ends| ends.map(f64::exp)).filter(|ends| ends.iter().all(|v| v.is_finite()))
}

#[cfg(test)]
pub(super) fn rates(a: &[f64], b: &[f64]) -> Measure {
    Measure {
        name: "IOPS".into(),
        unit: "IOPS",
        more_is_better: true,
        percentile: false,
        tail: false,
        a: vec![a.to_vec()],
        b: vec![b.to_vec()],
    }
}

/// How runs are weighed that were measured in turns.
#[cfg(test)]
pub(super) fn in_turns() -> Options {
    Options { runs: Runs::InTurns, ..Options::default() }
}

#[cfg(test)]
fn metric_for(measure: Measure) -> Metric {
    let weighed = weigh(measure, &in_turns());
    let chance = weighed.chance();
    weighed.answered(chance, 1)
}

#[cfg(test)]
const RUNS: [f64; 5] = [9_900.0, 10_100.0, 10_000.0, 9_950.0, 10_050.0];

#[test]
fn the_words_and_their_direction() {
    let times = |factor: f64| RUNS.map(|v| v * factor);
    for (factor, expected) in [
        (1.1, Answer::Faster),
        (0.9, Answer::Slower),
        (1.02, Answer::Same),
        (0.96, Answer::Slower),
        (1.0, Answer::Same),
    ] {
        let metric = metric_for(rates(&RUNS, &times(factor)));
        assert_eq!(metric.answer, expected, "{metric:?}");
        assert!(
            (metric.ratio / factor - 1.0).abs() < 1e-9 && (metric.ratio_by_ranks / factor - 1.0).abs() < 0.01
        );
        assert!(metric.why.is_empty() && metric.runs_needed.is_none() && metric.runs_to_halve.is_none());
        let latency = Measure { more_is_better: false, ..rates(&RUNS, &times(factor)) };
        let turned = match expected {
            Answer::Faster => Answer::Slower,
            Answer::Slower => Answer::Faster,
            other => other,
        };
        assert_eq!(metric_for(latency).answer, turned);
    }
    let typed = Options { margin: Some(0.02), ..in_turns() };
    let weighed = weigh(rates(&RUNS, &times(1.02)), &typed);
    assert_eq!((weighed.margin, weighed.tolerance), (0.02, 0.02), "--margin says both");
}

/// Ten times as far from their mean as [`RUNS`], times the factor.
#[cfg(test)]
fn wide(factor: f64) -> [f64; 5] {
    RUNS.map(|v| (10_000.0 + (v - 10_000.0) * 10.0) * factor)
}

#[test]
fn what_is_neither_shown_to_differ_nor_to_be_the_same_has_a_bound() {
    let near = RUNS.map(|v| 10_000.0 + (v - 10_000.0) * 4.0);
    let open = metric_for(rates(&near, &near.map(|v| v * 1.01)));
    assert_eq!((open.answer, open.why.as_str()), (Answer::NoDifferenceSeen, ""), "{open:?}");
    let [faster, slower] = open.at_most().unwrap();
    assert!((0.04..0.08).contains(&faster) && (0.02..0.06).contains(&slower), "{open:?}");
    assert!(open.runs_needed > Some(5) && (10..20).contains(&open.runs_to_halve.unwrap()), "{open:?}");
    assert!(open.bound().unwrap().starts_with("at most "), "{open:?}");
    // For a time the same ratio is the other way round.
    let time = metric_for(Measure { more_is_better: false, ..rates(&near, &near.map(|v| v * 1.01)) });
    assert_eq!(time.at_most(), Some([slower, faster]));
    // A few per cent and perhaps less than the margin: it is not slower.
    let small = metric_for(rates(&near, &near.map(|v| v * 1.05)));
    assert_eq!(small.answer, Answer::NoDifferenceSeen, "{small:?}");
    assert!(small.bound().unwrap().ends_with("faster and not slower"), "{small:?}");
    // A range that allows anything says nothing.
    let far = wide(1.0).map(|v| 10_000.0 + (v - 10_000.0) * 4.0);
    let nothing = metric_for(rates(&far, &far.map(|v| v * 1.01)));
    assert_eq!((nothing.answer, nothing.runs_to_halve), (Answer::CannotTell, None), "{nothing:?}");
    assert!(nothing.why.contains("is possible"), "{nothing:?}");
}

#[test]
fn tails_have_a_wider_tolerance() {
    let tolerance =
        |tail| weigh(Measure { tail, percentile: true, ..rates(&RUNS, &RUNS) }, &in_turns()).tolerance;
    assert!(
        (tolerance(false) - TOLERANCE).abs() < 1e-9 && (tolerance(true) - TOLERANCE_OF_TAIL).abs() < 1e-9
    );
}

#[test]
fn a_difference_that_is_one_by_itself_alone_is_not_seen_among_many() {
    let weighed = weigh(rates(&wide(1.0), &wide(1.2)), &in_turns());
    assert!(weighed.chance() < ALLOWED, "{}", weighed.chance());
    let among = weighed.answered(0.2, 40);
    assert_eq!(among.answer, Answer::NoDifferenceSeen);
    assert!(among.why.contains("among 40 numbers"), "{among:?}");
}

#[test]
fn three_against_three_are_never_told_apart_and_four_are() {
    let of = |n: usize, factor: f64| RUNS[..n].iter().map(|v| v * factor).collect::<Vec<f64>>();
    let three = metric_for(rates(&of(3, 1.0), &of(3, 2.0)));
    assert_eq!(three.answer, Answer::CannotTell);
    assert!(three.why.contains("4 against 4") && three.runs_needed == Some(4), "{three:?}");
    assert_eq!(three.could_have_seen, None);
    assert_eq!(metric_for(rates(&of(4, 1.0), &of(4, 2.0))).answer, Answer::Faster);
    assert_eq!(metric_for(rates(&of(3, 1.0), &of(5, 2.0))).answer, Answer::Faster, "chance 3.6 %");
    let two = metric_for(rates(&of(2, 1.0), &of(5, 2.0)));
    assert_eq!((two.answer, two.interval, two.runs_needed), (Answer::CannotTell, None, None));
    // Three may well be the same.
    assert_eq!(metric_for(rates(&[1e4; 3], &[1e4; 3])).answer, Answer::Same);
}

#[test]
fn percentiles_of_few_runs_must_not_overlap_and_those_of_many_are_drawn() {
    let latency = |a: &[f64], b: &[f64]| Measure { more_is_better: false, percentile: true, ..rates(a, b) };
    let apart = metric_for(latency(&RUNS, &RUNS.map(|v| v * 1.1)));
    assert_eq!((apart.answer, apart.margin), (Answer::Slower, MARGIN_OF_PERCENTILE));
    let touching = [9_900.0, 10_900.0, 10_800.0, 10_850.0, 10_950.0, 10_870.0, 10_880.0];
    let touching: Vec<f64> = touching[1..6].iter().map(|v: &f64| (v - 750.0).powi(12) / 1e44).collect();
    let few = metric_for(latency(&RUNS.map(|v: f64| v.powi(12) / 1e44), &touching));
    assert_eq!(few.answer, Answer::CannotTell, "{few:?}");
    let many = [RUNS.as_slice(), &[9_980.0, 10_020.0]].concat();
    let drawn = metric_for(latency(&many, &many.iter().map(|v| v * 1.1).collect::<Vec<_>>()));
    let [low, high] = drawn.interval.unwrap();
    assert!(drawn.answer == Answer::Slower && low < 1.1 && 1.1 < high, "{drawn:?}");
}

#[test]
fn sessions_of_one_side_that_differ_widen_the_margin() {
    let sessions = |factors: &[f64]| factors.iter().map(|f| RUNS.map(|v| v * f).to_vec()).collect::<Vec<_>>();
    let apart = Measure { a: sessions(&[1.0, 1.06]), b: sessions(&[1.1, 1.1]), ..rates(&[], &[]) };
    let metric = metric_for(apart);
    assert!(metric.floor.is_some_and(|f| (f - 0.06).abs() < 1e-9) && Some(metric.margin) == metric.floor);
    assert_eq!(metric.answer, Answer::NoDifferenceSeen, "{metric:?}");
    let alike = Measure { a: sessions(&[1.0, 1.001]), b: sessions(&[1.1, 1.1]), ..rates(&[], &[]) };
    assert_eq!(metric_for(alike).answer, Answer::Faster);
    assert_eq!(metric_for(rates(&RUNS, &RUNS)).floor, None);
}

#[test]
fn the_margin_is_wider_where_nothing_tells_how_far_sessions_lie_apart() {
    let per_thousand = |measure, margin| {
        (1e3 * weigh(measure, &Options { margin, ..Options::default() }).margin).round() as u32
    };
    let lone = || rates(&RUNS, &RUNS);
    let several = || Measure { a: vec![RUNS.to_vec(), RUNS.to_vec()], ..rates(&[], &RUNS) };
    let percentile = Measure { percentile: true, ..several() };
    let margins = [per_thousand(lone(), None), per_thousand(several(), None), per_thousand(percentile, None)];
    assert_eq!(margins, [50, 10, 20]);
    // What was typed is taken, but for what the numbers cannot bear.
    assert_eq!([0.0, 0.02, 0.2].map(|asked| per_thousand(lone(), Some(asked))), [10, 20, 200]);
}

#[test]
fn an_outlier_does_not_make_a_difference() {
    // The mean of the logarithms moves by a third, and the ranks do not move.
    let mut odd = RUNS;
    odd[2] = 60_000.0;
    let metric = metric_for(rates(&RUNS, &odd));
    assert_eq!(metric.answer, Answer::CannotTell, "{metric:?}");
    assert!((metric.ratio_by_ranks - 1.0).abs() < 0.02 && metric.ratio > 1.3);
}
