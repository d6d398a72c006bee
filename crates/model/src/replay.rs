//! A replay beside its original: what came of carrying a captured load out again.
//!
//! For: figures of both, and in words where they differ and why. Not for: what was meant ([`crate::job::Replay`]), nor what was counted while
//! it ran ([`crate::record::Replayed`]).

use crate::record::Replayed;
use serde::{Deserialize, Serialize};

/// A replay beside its original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayComparison {
    /// The capture, as it was typed.
    pub capture: String,
    /// When requests were submitted: `dependent`, `timed` or `fast`.
    pub pace: String,
    /// What the times of the capture were divided by.
    pub speed: f64,
    /// Where latencies and depth of the replay are seen: `driver`, where its capture saw them, or `program`, whose system calls and wake-ups
    /// they have in them, as in reports that do not say.
    #[serde(default = "by_program")]
    pub seen_at: String,
    /// Figures of both. Of several runs the replay's is the mean, its latencies are those of all together.
    pub figures: Vec<Compared>,
    /// What kept it from following its capture, over all runs; `None` where that was not counted.
    pub counted: Option<Replayed>,
    /// Where latencies are seen, where both differ, and why, in sentences.
    pub differs: Vec<String>,
}

fn by_program() -> String {
    "program".into()
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Which: `elapsed`, `operations`, `IOPS`, `MB/s`, `depth`, `read share`, `read size`, `read p50`, `read p99` ...
    pub name: String,
    /// `ns`, `bytes`, `share`, or empty of plain numbers.
    pub unit: String,
    /// Of the capture, at its own speed; `None` where it is not known.
    pub original: Option<f64>,
    /// Of the replay; `None` where it is not known, or withheld.
    pub replay: Option<f64>,
    /// By how much the replay is more, as a share of the original; `None` where either is not known.
    pub change: Option<f64>,
}

impl Compared {
    /// Both beside each other.
    pub fn from_figures(name: &str, unit: &str, original: Option<f64>, replay: Option<f64>) -> Self {
        let change = original.zip(replay).filter(|(original, _)| *original > 0.0);
        let change = change.map(|(original, replay)| replay / original - 1.0);
        Self { name: name.into(), unit: unit.into(), original, replay, change }
    }
}

#[test]
fn a_report_that_does_not_say_where_latencies_were_seen_is_read() {
    let old = r#"{"capture":"x","pace":"timed","speed":1.0,"figures":[],"counted":null,"differs":[]}"#;
    let read: Option<ReplayComparison> = serde_json::from_str(old).ok();
    assert_eq!(read.map(|replay| replay.seen_at).as_deref(), Some("program"));
}
