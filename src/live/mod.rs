//! What is shown while measuring, on standard error.
//!
//! For: progress with the time left on a terminal, plain lines elsewhere. Not for: results.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Somebody who watches, or nobody.
pub enum Live {
    /// A terminal: one line that changes.
    Bar(ProgressBar),
    /// A file or a pipe: a line per step.
    Lines,
    /// `--quiet`.
    Quiet,
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
    pub fn step(&self, words: &str, left: Duration) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(1);
                bar.set_position(0);
                bar.set_message(words.to_owned());
                bar.set_prefix(time_left(left));
            }
            Self::Lines => eprintln!("{words} ({})", time_left(left)),
            Self::Quiet => {}
        }
    }

    /// Begins a step of which nobody knows yet how long it takes.
    pub fn begin(&self, words: &str) {
        match self {
            Self::Bar(_) => self.step(words, Duration::ZERO),
            Self::Lines => eprintln!("{words}"),
            Self::Quiet => {}
        }
    }

    /// Moves on: `done` of `total`, and what is left to wait.
    pub fn tick(&self, done: u64, total: u64, left: Duration) {
        if let Self::Bar(bar) = self {
            bar.set_length(total);
            bar.set_position(done.min(total));
            bar.set_prefix(time_left(left));
        }
    }

    /// Says something that stays.
    pub fn say(&self, words: &str) {
        match self {
            Self::Bar(bar) => bar.println(words),
            Self::Lines => eprintln!("{words}"),
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

fn time_left(left: Duration) -> String {
    match left.as_secs() {
        s if s >= 120 => format!("{} min left", s.div_ceil(60)),
        s => format!("{s} s left"),
    }
}
