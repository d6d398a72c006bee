//! What is left to wait.
//!
//! For: the time left as the plan tells it, or as what is done tells, in words. Not for: working out what a plan takes (`analysis::cost`).

use analysis::strategy::cost::TimeLeft;
use std::time::{Duration, Instant};

/// What is left to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// As far as it is known.
    pub time: Duration,
    /// Whether it may be over before.
    pub at_most: bool,
}

impl Left {
    /// As far as what is done of a step tells, which began then.
    pub fn by(since: Instant, done: u64, total: u64) -> Self {
        let rest = total.saturating_sub(done) as f64 / done.max(1) as f64;
        Duration::try_from_secs_f64(since.elapsed().as_secs_f64() * rest).unwrap_or_default().into()
    }

    /// What is left of it after some time.
    #[must_use]
    pub fn after(self, passed: Duration) -> Self {
        Self { time: self.time.saturating_sub(passed), ..self }
    }

    /// `at most 4 min left`, `130 s left`.
    pub(super) fn describe(self) -> String {
        let at_most = if self.at_most { "at most " } else { "" };
        match self.time.as_secs_f64().ceil() as u64 {
            s if s > 180 => format!("{at_most}{} min left", s.div_ceil(60)),
            s => format!("{at_most}{s} s left"),
        }
    }

    /// `at most 4 min left`, `about 130 s left`.
    pub(super) fn sentence(self) -> String {
        if self.at_most { self.describe() } else { format!("about {}", self.describe()) }
    }
}

impl From<TimeLeft> for Left {
    fn from(TimeLeft { ns, at_most }: TimeLeft) -> Self {
        Self { time: Duration::from_nanos(ns), at_most }
    }
}

impl From<Duration> for Left {
    fn from(time: Duration) -> Self {
        Self { time, at_most: false }
    }
}

#[test]
fn what_may_end_before_is_said_so() {
    assert_eq!(Left::from(Duration::from_secs(90)).describe(), "90 s left");
    assert_eq!(Left::from(Duration::from_millis(129_500)).sentence(), "about 130 s left");
    let left = Left { time: Duration::from_secs(200), at_most: true };
    assert_eq!([left.describe(), left.sentence()], ["at most 4 min left"; 2]);
    assert_eq!(left.after(Duration::from_secs(300)).describe(), "at most 0 s left");
}
