//! The progress line on a terminal: the current step, a bar and the time left.
//!
//! Each draw clears the line and writes it again. A new step is drawn at once, a change of progress at most [`DRAWS_PER_S`] times a
//! second. A lasting message replaces the line, and the line is drawn again below the message. The step is cut, and on a terminal
//! narrower than the bar the rest of the line too, so that the line never wraps: a wrapped line could not be cleared.

use super::left::Left;
use super::look::Look;
use crate::stream;
use model::visible::visible;
use ratatui::text::Span;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of draws per second while a step progresses.
const DRAWS_PER_S: u32 = 8;
/// Half of a narrow terminal, so that the message stays readable.
const BAR_COLUMNS: usize = 24;
/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// A progress line on standard error.
pub(super) struct Bar(Mutex<BarState>);

struct BarState {
    is_shown: bool,
    drawn: Option<Instant>,
    message: String,
    /// The time left, where it is known.
    left: Option<Left>,
    /// The completed part and the total.
    done: (u64, u64),
    gauge: [&'static str; 2],
}

impl Bar {
    /// Returns a line that is not drawn until [`Bar::show`].
    pub(super) fn hidden() -> Self {
        let gauge = Look::here().gauge();
        let (message, left, done) = (String::new(), None, (0, 0));
        Self(Mutex::new(BarState { is_shown: false, drawn: None, message, left, done, gauge }))
    }

    /// Returns a line that is drawn.
    pub(super) fn shown() -> Self {
        let bar = Self::hidden();
        bar.show();
        bar
    }

    /// Draws the line from now on.
    pub(super) fn show(&self) {
        self.state().is_shown = true;
    }

    /// Begins a step.
    pub(super) fn step(&self, message: &str, done: (u64, u64), left: Option<Left>) {
        let mut state = self.state();
        state.message = visible(message).into_owned();
        (state.done, state.left) = (done, left);
        state.draw();
    }

    /// Changes the progress of a step.
    pub(super) fn tick(&self, done: (u64, u64), left: Left) {
        let mut state = self.state();
        (state.done, state.left) = (done, Some(left));
        if state.drawn.is_none_or(|at| at.elapsed() >= Duration::from_secs(1) / DRAWS_PER_S) {
            state.draw();
        }
    }

    /// Writes a lasting message above the line.
    pub(super) fn say(&self, words: &str) {
        let mut state = self.state();
        if state.is_shown {
            write_stderr(&format!("{CLEAR}{}\n", visible(words)));
            state.draw();
        }
    }

    /// Removes the line and stops drawing.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        if state.is_shown && state.drawn.is_some() {
            write_stderr(CLEAR);
        }
        state.is_shown = false;
    }

    fn state(&self) -> MutexGuard<'_, BarState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BarState {
    fn draw(&mut self) {
        if self.is_shown {
            let columns = stream::columns(Some(rustix::stdio::stderr()));
            let left = self.left.map(Left::describe).unwrap_or_default();
            write_stderr(&format!("{CLEAR}{}", render_bar(&self.message, self.done, &left, (self.gauge, columns))));
            self.drawn = Some(Instant::now());
        }
    }
}

/// Writes to standard error. An error is ignored: the terminal may be closed.
fn write_stderr(text: &str) {
    let _ = stream::write(rustix::stdio::stderr(), text.as_bytes());
}

/// Renders the line, at least one column narrower than the terminal: some terminals wrap a full line.
fn render_bar(
    message: &str,
    (done, total): (u64, u64),
    left: &str,
    (gauge, columns): ([&str; 2], usize),
) -> String {
    let share = if total > 0 { done.min(total) as f64 / total as f64 } else { 0.0 };
    let full = (share * BAR_COLUMNS as f64) as usize;
    let bar = gauge[0].repeat(full) + &gauge[1].repeat(BAR_COLUMNS - full);
    let room = columns.saturating_sub(BAR_COLUMNS + left.len() + 3);
    let message = cut(message, room);
    let padding = " ".repeat(room - Span::raw(&message).width());
    cut(&format!("{message}{padding} {bar} {left}"), columns.saturating_sub(1))
}

/// Cuts a text to a width in columns.
fn cut(text: &str, columns: usize) -> String {
    let mut text = text.to_owned();
    while Span::raw(&text).width() > columns {
        text.pop();
    }
    text
}

#[test]
fn the_line_fits_the_terminal_and_shows_the_share_that_is_done() {
    let gauge = ["#", "-"];
    let half = render_bar("reading", (1, 2), "3 s left", (gauge, 60));
    assert_eq!(half, format!("reading{} {}{} 3 s left", " ".repeat(18), "#".repeat(12), "-".repeat(12)));
    assert_eq!(half.len(), 59);
    assert_eq!(
        render_bar(&"x".repeat(99), (9, 3), "", (gauge, 40)),
        format!("{} {} ", "x".repeat(13), "#".repeat(24))
    );
    // Characters of two columns, and a total of 0.
    let wide = render_bar("\u{6e2c}\u{5b9a}\u{4e2d}", (0, 0), "1 s left", (gauge, 40));
    assert_eq!(Span::raw(&wide).width(), 39, "{wide}");
    // A terminal narrower than the bar: a wrapped line would be repeated at each draw.
    assert_eq!(render_bar("reading", (1, 2), "1 s left", (gauge, 10)), format!(" {}", "#".repeat(8)));
    for columns in 0..60 {
        let narrow = render_bar("\u{6e2c}\u{5b9a}", (1, 3), "1 s left", (gauge, columns));
        assert!(Span::raw(&narrow).width() <= columns.saturating_sub(1), "{columns}: {narrow}");
    }
}
