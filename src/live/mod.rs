//! What is shown while measuring, on standard error.
//!
//! For: progress with the time left on a terminal, plain lines elsewhere. Not for: results.

use crate::stderr;
use analysis::cost::TimeLeft;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::visible::visible;
use std::io::IsTerminal;
use std::time::Duration;

/// Somebody who watches, or nobody.
pub enum Live {
    /// A terminal: one line that changes.
    Bar(ProgressBar),
    /// A file or a pipe: a line per step.
    Lines,
    /// Nobody is told anything.
    Quiet,
}

/// What is left to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// As far as the plan tells.
    pub time: Duration,
    /// Whether it may be over before.
    pub at_most: bool,
}

impl Left {
    /// What is left of it after some time.
    #[must_use]
    pub fn after(self, passed: Duration) -> Self {
        Self { time: self.time.saturating_sub(passed), ..self }
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

impl Live {
    /// Chooses by where standard error goes.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
        // The template is a constant; where it were wrong, the default one is shown.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg} {bar:24} {prefix}") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// Begins a step, with how much there is of it in all and what is left to wait.
    pub fn step(&self, words: &str, left: impl Into<Left>) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(1);
                bar.set_position(0);
                bar.set_message(visible(words).into_owned());
                bar.set_prefix(in_words(left.into()));
            }
            Self::Lines => stderr::say(&format!("{words} ({})", in_words(left.into()))),
            Self::Quiet => {}
        }
    }

    /// Begins a step of which nobody knows yet how long it takes.
    pub fn begin(&self, words: &str) {
        match self {
            Self::Bar(_) => self.step(words, Duration::ZERO),
            Self::Lines => stderr::say(words),
            Self::Quiet => {}
        }
    }

    /// Moves on: `done` of `total`, and what is left to wait.
    pub fn tick(&self, done: u64, total: u64, left: impl Into<Left>) {
        if let Self::Bar(bar) = self {
            bar.set_length(total);
            bar.set_position(done.min(total));
            bar.set_prefix(in_words(left.into()));
        }
    }

    /// Says something that stays.
    pub fn say(&self, words: &str) {
        match self {
            Self::Bar(bar) => bar.println(visible(words)),
            Self::Lines => stderr::say(words),
            Self::Quiet => {}
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn in_words(left: Left) -> String {
    let at_most = if left.at_most { "at most " } else { "" };
    match left.time.as_secs() {
        s if s >= 120 => format!("{at_most}{} min left", s.div_ceil(60)),
        s => format!("{at_most}{s} s left"),
    }
}

#[test]
fn what_may_end_before_is_said_so() {
    assert_eq!(in_words(Duration::from_secs(90).into()), "90 s left");
    let left = Left { time: Duration::from_secs(200), at_most: true };
    assert_eq!(in_words(left), "at most 4 min left");
    assert_eq!(in_words(left.after(Duration::from_secs(300))), "at most 0 s left");
}
