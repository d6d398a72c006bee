//! `think`: a pause, or the law that pauses are drawn by, in words.
//!
//! For: `100us`, `exponential:100us`, `lognormal:38us/161us`, `quantiles:0/2us,50/38us,100/9ms`. Not for: drawing (the engine).

use super::limits::{MAX_QUANTILES, MAX_TIME_NS};
use super::number::{share, shown, time};
use crate::job::{Quantile, Think, ThinkLaw};

const EXPONENTIAL: &str = "exponential";
const LOGNORMAL: &str = "lognormal";
const QUANTILES: &str = "quantiles";

/// A pause or its law.
///
/// # Errors
/// What was wrong and what to type.
pub fn think(text: &str) -> Result<Think, String> {
    let Some((law, value)) = text.trim().split_once(':') else {
        return time(text, 1, MAX_TIME_NS).map(Think::fixed);
    };
    match law {
        EXPONENTIAL => Ok(Think { mean_ns: time(value, 1, MAX_TIME_NS)?, law: ThinkLaw::Exponential }),
        LOGNORMAL => lognormal(value),
        QUANTILES => quantiles(value),
        _ => Err(format!(
            "{} is not a valid value; type a duration such as 100us, exponential:100us, lognormal:38us/161us or quantiles:0/2us,50/38us,100/9ms",
            shown(text)
        )),
    }
}

fn lognormal(text: &str) -> Result<Think, String> {
    let Some((median, mean)) = text.split_once('/') else {
        return Err(format!(
            "{} has one time; type median and mean, such as lognormal:38us/161us",
            shown(text)
        ));
    };
    let (median_ns, mean_ns) = (time(median, 1, MAX_TIME_NS)?, time(mean, 1, MAX_TIME_NS)?);
    if median_ns >= mean_ns {
        return Err(format!(
            "{} has a mean that is not above its median; type a larger mean, such as lognormal:38us/161us",
            shown(text)
        ));
    }
    Ok(Think { mean_ns, law: ThinkLaw::Lognormal { median_ns } })
}

fn quantiles(text: &str) -> Result<Think, String> {
    let mut all: Vec<Quantile> = Vec::new();
    for piece in text.split(',') {
        let Some((percent, ns)) = piece.split_once('/') else {
            return Err(format!(
                "{} is no quantile; type percent and duration, such as 50/38us",
                shown(piece)
            ));
        };
        let one = Quantile { percent: share(percent)?, ns: time(ns, 0, MAX_TIME_NS)? };
        if all.last().is_some_and(|last| last.percent >= one.percent || last.ns > one.ns) {
            return Err(format!(
                "{} comes behind a larger one; type shares and durations that rise, such as 0/2us,50/38us,100/9ms",
                shown(piece)
            ));
        }
        all.push(one);
        if all.len() > MAX_QUANTILES {
            return Err(format!("there are too many quantiles; type {MAX_QUANTILES} at most"));
        }
    }
    let reaches =
        |at: Option<&Quantile>, percent: f64| at.is_some_and(|q| (q.percent - percent).abs() < 1e-9);
    if all.len() < 2 || !reaches(all.first(), 0.0) || !reaches(all.last(), 100.0) {
        return Err(format!(
            "{} does not say the shortest and the longest; type quantiles from 0 to 100, such as 0/2us,50/38us,100/9ms",
            shown(text)
        ));
    }
    let think = Think::quantiles(all);
    if think.mean_ns == 0 {
        return Err(format!("{} are no pauses; type a longer one, or leave it out", shown(text)));
    }
    Ok(think)
}

/// As [`think`] reads it.
pub fn of_think(think: &Think) -> String {
    let ns = |ns: u64| format!("{ns}ns");
    match &think.law {
        ThinkLaw::Fixed => ns(think.mean_ns),
        ThinkLaw::Exponential => format!("{EXPONENTIAL}:{}", ns(think.mean_ns)),
        ThinkLaw::Lognormal { median_ns } => format!("{LOGNORMAL}:{}/{}", ns(*median_ns), ns(think.mean_ns)),
        ThinkLaw::Quantiles(all) => {
            let one = |q: &Quantile| format!("{}/{}", q.percent, ns(q.ns));
            format!("{QUANTILES}:{}", all.iter().map(one).collect::<Vec<_>>().join(","))
        }
    }
}

#[test]
fn laws_are_read_as_they_are_written() {
    let us = |us: u64| us * 1000;
    assert_eq!(think("100us"), Ok(Think::fixed(us(100))));
    assert_eq!(
        think("lognormal:38us/161us"),
        Ok(Think { mean_ns: us(161), law: ThinkLaw::Lognormal { median_ns: us(38) } })
    );
    // A quarter of 10 us, a quarter of 30 us, half of 120 us.
    assert_eq!(think("quantiles:0/0,25/20us,50/40us,100/200us").map(|t| t.mean_ns), Ok(us(70)));
    for text in
        ["100us", "exponential:2ms", "lognormal:38us/161us", "quantiles:0/2us,50/38us,99.5/1ms,100/9ms"]
    {
        let said = think(text);
        assert_eq!(said.clone().map(|t| of_think(&t)).and_then(|t| think(&t)), said, "{text}");
    }
    for (bad, word) in [
        ("", "duration"),
        ("0", "too short"),
        ("gamma:1ms", "exponential:100us"),
        ("exponential:0", "too short"),
        ("lognormal:38us", "median and mean"),
        ("lognormal:2us/1us", "not above"),
        ("quantiles:50/1us", "shortest and the longest"),
        ("quantiles:0/5us,100/1us", "larger one"),
        ("quantiles:0/5us,0/6us,100/7us", "larger one"),
        ("quantiles:0/0,100/0", "no pauses"),
        ("quantiles:0,100", "no quantile"),
    ] {
        let said = think(bad).map_or_else(|e| e, |t| format!("{t:?}"));
        assert!(said.contains(word) && said.contains("; type"), "{bad}: {said}");
    }
}
