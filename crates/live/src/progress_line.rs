//! The progress line: message, bar and time left in one line of standard error.
//!
//! A new step is drawn at once, a change of progress at most eight times a second. Each draw clears the line first. The line is cut to the
//! width of the terminal, because a wrapped line could not be cleared.

use crate::terminal::Theme;
use crate::{Progress, RemainingTime};
use model::name::visible;
use output::stream;
use ratatui::text::Span;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of draws per second while a step progresses.
const DRAWS_PER_S: u32 = 8;
/// Maximum columns of the bar. The bar is shorter if the message needs the room.
const BAR_COLUMNS: usize = 24;
const FEWEST_BAR_COLUMNS: usize = 8;
/// Escape sequence that clears the current line.
const CLEAR: &str = "\r\x1b[K";

/// A progress line on standard error.
pub(super) struct ProgressLine(Mutex<LineState>);

struct LineState {
    is_shown: bool,
    drawn: Option<Instant>,
    message: String,
    /// The time left, if known.
    left: Option<RemainingTime>,
    done: Progress,
    gauge: [&'static str; 2],
}

impl ProgressLine {
    /// Returns a line that is not drawn until [`ProgressLine::show`].
    pub(super) fn hidden() -> Self {
        let gauge = Theme::from_environment().gauge();
        let (message, left, done) = (String::new(), None, Progress::default());
        Self(Mutex::new(LineState { is_shown: false, drawn: None, message, left, done, gauge }))
    }

    /// Returns a line that is drawn.
    pub(super) fn shown() -> Self {
        let line = Self::hidden();
        line.show();
        line
    }

    /// Draws the line from now on.
    pub(super) fn show(&self) {
        self.state().is_shown = true;
    }

    /// Begins a step.
    pub(super) fn step(&self, message: &str, done: Progress, left: Option<RemainingTime>) {
        let mut state = self.state();
        state.message = visible(message).into_owned();
        (state.done, state.left) = (done, left);
        state.draw();
    }

    /// Changes the progress and the time left.
    pub(super) fn tick(&self, done: Progress, left: RemainingTime) {
        let mut state = self.state();
        (state.done, state.left) = (done, Some(left));
        if state.drawn.is_none_or(|at| at.elapsed() >= Duration::from_secs(1) / DRAWS_PER_S) {
            state.draw();
        }
    }

    /// Writes a lasting message, above the line if it is shown.
    pub(super) fn say(&self, message: &str) {
        let mut state = self.state();
        write_stderr(&state.lasting(message));
        state.draw();
    }

    /// Removes the line and stops drawing.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        if state.is_shown && state.drawn.is_some() {
            write_stderr(CLEAR);
        }
        state.is_shown = false;
    }

    fn state(&self) -> MutexGuard<'_, LineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineState {
    /// Returns the text that prints a lasting message. If the progress line is shown, the text clears it first.
    fn lasting(&self, message: &str) -> String {
        let clear = if self.is_shown { CLEAR } else { "" };
        format!("{clear}{}\n", visible(message))
    }

    fn draw(&mut self) {
        if self.is_shown {
            let columns = stream::columns(Some(rustix::stdio::stderr()));
            let left = self.left.map(RemainingTime::describe).unwrap_or_default();
            write_stderr(&format!(
                "{CLEAR}{}",
                render_bar(&self.message, self.done, &left, self.gauge, columns)
            ));
            self.drawn = Some(Instant::now());
        }
    }
}

/// Writes to standard error. An error is ignored: the terminal may be closed.
fn write_stderr(text: &str) {
    let _ = stream::write(rustix::stdio::stderr(), text.as_bytes());
}

/// Renders the line, at least one column narrower than the terminal: some terminals wrap a full line.
fn render_bar(message: &str, done: Progress, left: &str, gauge: [&str; 2], columns: usize) -> String {
    let share = done.share().unwrap_or(0.0);
    let message_and_bar = columns.saturating_sub(left.len() + 3);
    let bar = message_and_bar.saturating_sub(Span::raw(message).width());
    let bar = bar.clamp(FEWEST_BAR_COLUMNS, BAR_COLUMNS);
    let full = (share * bar as f64) as usize;
    let line = gauge[0].repeat(full) + &gauge[1].repeat(bar - full);
    let room = message_and_bar.saturating_sub(bar);
    let message = shortened(message, room);
    let padding = " ".repeat(room - Span::raw(&message).width());
    cut(&format!("{message}{padding} {line} {left}"), columns.saturating_sub(1))
}

/// Cuts a text to a width in columns, with `…` at the end. Cuts after a word if possible, because a
/// number that is cut reads as another number.
fn shortened(text: &str, columns: usize) -> String {
    if Span::raw(text).width() <= columns {
        return text.to_owned();
    }
    if let Some(words) = whole_words(text, columns.saturating_sub(2)) {
        return format!("{words} …");
    }
    let text = cut(text, columns.saturating_sub(1));
    if columns > 0 { text + "…" } else { text }
}

/// Returns the first words of a text, as many as fit a width; `None` if the first word does not fit.
pub(super) fn whole_words(text: &str, columns: usize) -> Option<&str> {
    let ends = text.match_indices(' ').map(|(at, _)| text[..at].trim_end());
    ends.take_while(|words| Span::raw(*words).width() <= columns).filter(|words| !words.is_empty()).last()
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
fn a_message_is_printed_before_the_progress_line_is_shown() {
    let line = ProgressLine::hidden();
    assert_eq!(line.state().lasting("a host is lost"), "a host is lost\n");
    line.show();
    assert_eq!(line.state().lasting("a host is lost"), format!("{CLEAR}a host is lost\n"));
}

#[test]
fn progress_line_fits_the_terminal_and_shows_the_completed_share() {
    let gauge = ["#", "-"];
    let half = render_bar("reading", Progress { part: 1, total: 2 }, "3 s left", gauge, 60);
    assert_eq!(half, format!("reading{} {}{} 3 s left", " ".repeat(18), "#".repeat(12), "-".repeat(12)));
    assert_eq!(half.len(), 59);
    assert_eq!(
        render_bar(&"x".repeat(99), Progress { part: 9, total: 3 }, "", gauge, 40),
        format!("{}… {} ", "x".repeat(28), "#".repeat(8))
    );
    let whole =
        render_bar("writing pass 1 of 2", Progress { part: 0, total: 2 }, "at most 4 min left", gauge, 60);
    assert_eq!(whole, format!("writing pass 1 of 2 {} at most 4 min left", "-".repeat(20)));
    // Half a number is another number.
    let cut = |columns| {
        render_bar("run 232 of 1,000  reads", Progress { part: 1, total: 2 }, "1 s left", gauge, columns)
    };
    for columns in 30..60 {
        let line = cut(columns);
        let (message, _) = line.split_once(['#', '-']).unwrap_or((&line, ""));
        let kept = message.trim_end().trim_end_matches(" …");
        assert!(
            ["run", "run 232", "run 232 of", "run 232 of 1,000", "run 232 of 1,000  reads"].contains(&kept),
            "{line}"
        );
    }
    // Each of these characters takes two columns. The total is 0.
    let wide = render_bar("\u{6e2c}\u{5b9a}\u{4e2d}", Progress { part: 0, total: 0 }, "1 s left", gauge, 40);
    assert_eq!(Span::raw(&wide).width(), 39, "{wide}");
    // A terminal narrower than the bar: a wrapped line would be repeated at each draw.
    assert_eq!(render_bar("reading", Progress { part: 1, total: 2 }, "1 s left", gauge, 10), " ####----");
    for columns in 0..60 {
        let narrow =
            render_bar("\u{6e2c}\u{5b9a}", Progress { part: 1, total: 3 }, "1 s left", gauge, columns);
        assert!(Span::raw(&narrow).width() <= columns.saturating_sub(1), "{columns}: {narrow}");
    }
}
