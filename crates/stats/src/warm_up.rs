//! The beginning of runs, compared with the rest of them.
//!
//! For: how long a warm-up was, and how much the mean would move without it. Not for: where it ends in one series (`mser`).

use crate::autocorrelation::correlation_time;
use crate::mser::warm_up;
use crate::sample::{mean, variance};
use crate::series::{ByLength, Series};

/// Change of the mean from which the beginning matters: 1 % of a minute's mean, more where seconds are noisy themselves.
pub const MATTERS_FROM: ByLength = ByLength { minute: 0.01, ten_seconds: 0.02, shorter: 0.05 };
/// Standard errors of the rest that the change must exceed, so that noise at the beginning is no warm-up.
pub const SURELY: f64 = 3.0;

/// The beginnings of all runs that have a steady part behind them, together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUps {
    /// Mean rate with it.
    pub whole: f64,
    /// Mean rate without it.
    pub rest: f64,
    /// Its mean length in seconds.
    pub seconds: f64,
    /// The longest one in seconds.
    pub longest_s: f64,
    /// Whether most runs have one that is surely unlike the rest and moves the mean.
    pub matters: bool,
}

/// A run with its beginning cut off.
struct Cut {
    whole: f64,
    rest: f64,
    /// Variance of the mean of the rest.
    uncertain: f64,
    seconds: f64,
}

/// The beginnings of these runs; `None` where no run has a steady part.
pub fn warm_ups(courses: &[Series]) -> Option<WarmUps> {
    let cuts: Vec<Cut> = courses.iter().filter_map(cut).collect();
    if cuts.is_empty() {
        return None;
    }
    let of = |value: &dyn Fn(&Cut) -> f64| mean(&cuts.iter().map(value).collect::<Vec<_>>());
    let (whole, rest) = (of(&|c| c.whole), of(&|c| c.rest));
    let error = (of(&|c| c.uncertain) / cuts.len() as f64).sqrt();
    let warm = cuts.iter().filter(|c| c.seconds > 0.0).count();
    let matters_from = courses.first().map_or(1.0, |c| MATTERS_FROM.share_for(c));
    Some(WarmUps {
        whole,
        rest,
        seconds: of(&|c| c.seconds),
        longest_s: cuts.iter().map(|c| c.seconds).fold(0.0, f64::max),
        matters: 2 * warm > courses.len()
            && (whole / rest - 1.0).abs() > matters_from
            && (whole - rest).abs() > SURELY * error,
    })
}

fn cut(course: &Series) -> Option<Cut> {
    let at = warm_up(&course.rates)?;
    let rest = course.rates.get(at..)?;
    let kept = mean(rest);
    (kept > 0.0).then(|| Cut {
        whole: mean(&course.rates),
        rest: kept,
        uncertain: variance(rest) * correlation_time(rest) / rest.len() as f64,
        seconds: course.second_of(at),
    })
}
