//! A fitted job beside the load that it was fitted to.
//!
//! For: figures of both, each with its goal, and the answer to whether all are met. Not for: the job ([`crate::spec`]).

use serde::Serialize;

/// The version of the JSON.
pub const FORMAT: u32 = 1;

/// What came of running a fitted job beside its capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitCheck {
    /// Of this JSON: [`FORMAT`].
    pub format: u32,
    /// The capture as it was typed.
    pub capture: String,
    /// The job file as it was typed; `None` where it was fitted for this.
    pub job: Option<String>,
    /// What the job ran on, as it was typed.
    pub target: String,
    /// Whether all goals are met.
    pub word: Word,
    /// Whether all goals are met, in a sentence.
    pub sentence: String,
    /// Figures of both.
    pub figures: Vec<Figure>,
    /// What is to be known about them.
    pub notes: Vec<String>,
}

/// Whether all goals are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Word {
    /// All of them.
    #[serde(rename = "MET")]
    Met,
    /// At least one is not.
    #[serde(rename = "MISSED")]
    Missed,
    /// None is missed, and at least one could not be told.
    #[serde(rename = "CANNOT TELL")]
    CannotTell,
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// `per_s`, `bytes_per_s`, `ns`, `in_flight`, `ks`.
    pub unit: String,
    /// Of the capture; `None` where it is not known, and of a distance.
    pub original: Option<f64>,
    /// Of the job.
    pub fit: Option<f64>,
    /// How far they are apart: a share of the original, or a distance (Kolmogorov-Smirnov) from 0 to 1.
    pub difference: Option<f64>,
    /// How far they may be.
    pub goal: f64,
    /// Whether it is no further; `None` where that cannot be told.
    pub met: Option<bool>,
    /// Why it cannot.
    pub why: Option<String>,
}

impl Figure {
    /// Two values of which the second may differ by this share of the first.
    pub fn share(name: &str, unit: &str, [original, fit]: [Option<f64>; 2], goal: f64) -> Self {
        let difference = match (original, fit) {
            (Some(original), Some(fit)) if original > 0.0 => Some(fit / original - 1.0),
            (Some(_), Some(0.0)) => Some(0.0),
            _ => None,
        };
        let why = difference.is_none().then(|| match (original, fit) {
            (None, _) => "the capture does not say".to_owned(),
            (_, None) => "the job has too few".to_owned(),
            _ => "the capture has none".to_owned(),
        });
        let met = difference.map(|difference| difference.abs() <= goal);
        Self { name: name.into(), unit: unit.into(), original, fit, difference, goal, met, why }
    }

    /// A distance of two distributions.
    pub fn distance(name: &str, distance: Result<f64, String>, goal: f64) -> Self {
        let (difference, why) = match distance {
            Ok(distance) => (Some(distance), None),
            Err(why) => (None, Some(why)),
        };
        let met = difference.map(|difference| difference <= goal);
        Self { name: name.into(), unit: "ks".into(), original: None, fit: None, difference, goal, met, why }
    }
}

impl FitCheck {
    /// The answer of some figures, as a word and as a sentence.
    pub fn answer(figures: &[Figure]) -> (Word, String) {
        let names = |of: Option<bool>| -> Vec<&str> {
            figures.iter().filter(|figure| figure.met == of).map(|figure| figure.name.as_str()).collect()
        };
        let (missed, unknown) = (names(Some(false)), names(None));
        let untold = if unknown.is_empty() {
            String::new()
        } else {
            format!("; cannot be told: {}", unknown.join(", "))
        };
        let met = names(Some(true)).len();
        if missed.is_empty() {
            let word = if unknown.is_empty() && met > 0 { Word::Met } else { Word::CannotTell };
            return (word, format!("{met} of {} goals are met{untold}", figures.len()));
        }
        let sentence =
            format!("{met} of {} goals are met, missed: {}{untold}", figures.len(), missed.join(", "));
        (Word::Missed, sentence)
    }
}

impl Word {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "MET",
            Self::Missed => "MISSED",
            Self::CannotTell => "CANNOT TELL",
        }
    }
}

#[test]
fn a_goal_that_cannot_be_told_is_not_met() {
    let near = Figure::share("rate", "per_s", [Some(100.0), Some(101.0)], 0.02);
    let far = Figure::share("depth", "in_flight", [Some(2.0), Some(1.0)], 0.2);
    let blind = Figure::share("read p50", "ns", [None, Some(1.0)], 0.1);
    let none = Figure::share("flushes", "per_s", [Some(0.0), Some(0.0)], 0.05);
    assert_eq!([near.met, far.met, blind.met, none.met], [Some(true), Some(false), None, Some(true)]);
    assert_eq!(Figure::share("flushes", "per_s", [Some(0.0), Some(3.0)], 0.05).met, None);
    let told = |figures: &[Figure]| FitCheck::answer(figures).0;
    assert_eq!(told(&[near.clone(), none]), Word::Met);
    assert_eq!(told(&[near.clone(), blind.clone()]), Word::CannotTell);
    assert_eq!(
        FitCheck::answer(&[near, far, blind]).1,
        "1 of 3 goals are met, missed: depth; cannot be told: read p50"
    );
    assert_eq!(told(&[]), Word::CannotTell);
    assert_eq!(Figure::distance("offsets", Err("a file".into()), 0.03).met, None);
}
