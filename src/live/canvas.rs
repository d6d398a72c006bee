//! A canvas: what is drawn, up to the point where it is to be seen.
//!
//! For: the whole terminal at the size that it has. Not for: who may draw ([`super::terminal`]), nor what.

use super::terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

/// What was drawn last, so that only what differs is sent.
#[derive(Default)]
pub(super) struct Canvas {
    terminal: Option<Terminal<CrosstermBackend<Screen>>>,
    /// Whether the terminal did not take what was drawn last.
    missed: Rc<Cell<bool>>,
    size: (u16, u16),
}

impl Canvas {
    /// Whatever stands there is not what was drawn.
    pub(super) fn forget(&mut self) {
        self.terminal = None;
    }

    /// Whether the terminal has another size than when it was drawn on.
    pub(super) fn is_resized(&self) -> bool {
        self.size != terminal::size()
    }

    /// Draws, where a view is on the terminal.
    pub(super) fn draw(&mut self, paint: impl FnOnce(&mut Frame)) {
        let size = terminal::size();
        if !terminal::is_taken() || size.0 == 0 || size.1 == 0 {
            return;
        }
        if self.terminal.is_none() || self.size != size {
            self.size = size;
            let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
            let made = Terminal::with_options(
                CrosstermBackend::new(Screen { bytes: Vec::new(), missed: Rc::clone(&self.missed) }),
                TerminalOptions { viewport },
            );
            // By our own hand: that of the library asks the terminal where its cursor is, and waits for an answer.
            self.terminal = made.ok().filter(|_| terminal::clear());
        }
        if let Some(terminal) = &mut self.terminal {
            let _ = terminal.draw(paint);
        }
        if self.missed.replace(false) {
            // What stands there is not known, so all of it is drawn next.
            self.terminal = None;
        }
    }
}

/// Bytes for the terminal.
struct Screen {
    bytes: Vec<u8>,
    /// Set where the terminal did not take it.
    missed: Rc<Cell<bool>>,
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = terminal::write(&self.bytes);
        self.bytes.clear();
        // No error, of which the library would tell the terminal that takes nothing.
        self.missed.set(self.missed.get() || !written);
        Ok(())
    }
}
