//! The progress line: what is done now, a bar, and the time left, in one line of a terminal that is written over.
//!
//! A step is drawn at once, and changes of its progress at most [`DRAWS_PER_S`] times a second. Words that stay are written in place of the line,
//! which is drawn again below them. The message is cut so that the line fits the terminal.

use super::look::Look;
use crate::stream;
use model::visible::visible;
use ratatui::text::Span;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Draws of mere progress a second, at most.
const DRAWS_PER_S: u32 = 8;
/// Columns of the bar.
const BAR_COLUMNS: usize = 24;
/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// A progress line on standard error.
pub(super) struct Bar(Mutex<State>);

struct State {
    is_shown: bool,
    drawn: Option<Instant>,
    message: String,
    /// Words for the time left.
    left: String,
    /// What is done, and of how much.
    done: (u64, u64),
    gauge: [&'static str; 2],
}

impl Bar {
    /// One that is not drawn until [`Bar::show`].
    pub(super) fn hidden() -> Self {
        let gauge = Look::here().gauge();
        let (message, left, done) = (String::new(), String::new(), (0, 0));
        Self(Mutex::new(State { is_shown: false, drawn: None, message, left, done, gauge }))
    }

    /// One that is drawn.
    pub(super) fn shown() -> Self {
        let bar = Self::hidden();
        bar.show();
        bar
    }

    /// Draws it from now on.
    pub(super) fn show(&self) {
        self.state().is_shown = true;
    }

    /// Begins a step.
    pub(super) fn step(&self, message: &str, done: (u64, u64), left: String) {
        let mut state = self.state();
        state.message = visible(message).into_owned();
        (state.done, state.left) = (done, left);
        state.draw();
    }

    /// Changes the progress of a step.
    pub(super) fn tick(&self, done: (u64, u64), left: String) {
        let mut state = self.state();
        (state.done, state.left) = (done, left);
        if state.drawn.is_none_or(|at| at.elapsed() >= Duration::from_secs(1) / DRAWS_PER_S) {
            state.draw();
        }
    }

    /// Writes something that stays, above the line.
    pub(super) fn say(&self, words: &str) {
        let mut state = self.state();
        if state.is_shown {
            write(&format!("{CLEAR}{}\n", visible(words)));
            state.draw();
        }
    }

    /// Removes the line for good.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        if state.is_shown && state.drawn.is_some() {
            write(CLEAR);
        }
        state.is_shown = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn draw(&mut self) {
        if self.is_shown {
            let columns = stream::columns(Some(rustix::stdio::stderr()));
            write(&format!("{CLEAR}{}", line(&self.message, self.done, &self.left, (self.gauge, columns))));
            self.drawn = Some(Instant::now());
        }
    }
}

/// Terminals that are gone are told nothing.
fn write(text: &str) {
    let _ = stream::write(rustix::stdio::stderr(), text.as_bytes());
}

/// The line, one column narrower than the terminal: some wrap a full one.
fn line(
    message: &str,
    (done, total): (u64, u64),
    left: &str,
    (gauge, columns): ([&str; 2], usize),
) -> String {
    let share = if total > 0 { done.min(total) as f64 / total as f64 } else { 0.0 };
    let full = (share * BAR_COLUMNS as f64) as usize;
    let bar = gauge[0].repeat(full) + &gauge[1].repeat(BAR_COLUMNS - full);
    let room = columns.saturating_sub(BAR_COLUMNS + left.len() + 3);
    let mut message = message.to_owned();
    while Span::raw(&message).width() > room {
        message.pop();
    }
    let padding = " ".repeat(room - Span::raw(&message).width());
    format!("{message}{padding} {bar} {left}")
}

#[test]
fn the_line_fits_the_terminal_and_shows_the_share_that_is_done() {
    let gauge = ["#", "-"];
    let half = line("reading", (1, 2), "3 s left", (gauge, 60));
    assert_eq!(half, format!("reading{} {}{} 3 s left", " ".repeat(18), "#".repeat(12), "-".repeat(12)));
    assert_eq!(half.len(), 59);
    assert_eq!(
        line(&"x".repeat(99), (9, 3), "", (gauge, 40)),
        format!("{} {} ", "x".repeat(13), "#".repeat(24))
    );
    // Characters of two columns, a share of nothing, and a terminal narrower than the bar.
    let wide = line("\u{6e2c}\u{5b9a}\u{4e2d}", (0, 0), "1 s left", (gauge, 40));
    assert_eq!(Span::raw(&wide).width(), 39, "{wide}");
    assert!(line("reading", (1, 2), "1 s left", (gauge, 10)).starts_with(" #"));
}
