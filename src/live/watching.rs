//! The view of `fathom watch`: a terminal that is drawn on at every interval, and its keys.
//!
//! For: taking the terminal, giving it back, `q` and `p`. Not for: what is shown ([`super::observed`]), nor how ([`super::draw`]).
//!
//! It has no thread: whoever watches has nothing to do between two looks but to ask for keys.

use super::canvas::Canvas;
use super::draw::draw_observed;
use super::keys::{Key, Keys};
use super::look::Look;
use super::observed::Observed;
use super::{mode, terminal};
use crate::signals;
use model::watch::Watched;
use std::io;
use std::time::Duration;

/// What a key asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    /// To go on as it is.
    Nothing,
    /// To watch no longer.
    End,
    /// Plain lines from now on.
    Plain,
}

/// A view on its terminal, until it is dropped.
pub(crate) struct Watching {
    canvas: Canvas,
    keys: Option<Keys>,
    look: Look,
    observed: Observed,
}

impl Watching {
    /// Takes the terminal; `None` where there is none that somebody looks at.
    ///
    /// # Errors
    /// Where signals cannot be taken.
    pub(crate) fn start(interval: Duration) -> io::Result<Option<Self>> {
        let Some(look) = mode::of_watching() else { return Ok(None) };
        signals::around_stops(terminal::give_back, terminal::lose)?;
        let observed = Observed::every(interval);
        let mut view = Self { canvas: Canvas::default(), keys: Keys::open(), look, observed };
        view.take();
        Ok(Some(view))
    }

    /// Shows an interval.
    pub(crate) fn show(&mut self, watched: &Watched) {
        self.observed.take(watched);
        self.draw();
    }

    /// What was typed; keeps the screen as it should be meanwhile.
    pub(crate) fn obey(&mut self) -> KeyAction {
        if !terminal::is_taken() {
            // It was stopped, and goes on.
            self.take();
        } else if self.canvas.is_resized() {
            self.draw();
        }
        // What is typed while somebody else has the terminal is theirs.
        let Some(keys) = self.keys.as_ref().filter(|_| terminal::is_taken()) else {
            return KeyAction::Nothing;
        };
        let Some(typed) = keys.read() else {
            // The terminal is gone.
            self.keys = None;
            return KeyAction::Nothing;
        };
        let asked = typed.into_iter().find_map(|key| match key {
            Key::End => Some(KeyAction::End),
            Key::Plain => Some(KeyAction::Plain),
            Key::Help => None,
        });
        asked.unwrap_or(KeyAction::Nothing)
    }

    fn take(&mut self) {
        if terminal::take(self.keys.as_ref()) {
            self.canvas.forget();
            self.draw();
        }
    }

    fn draw(&mut self) {
        let (observed, look) = (&self.observed, self.look);
        self.canvas.draw(|frame| draw_observed(frame, observed, look));
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        terminal::give_back_for_good();
    }
}
