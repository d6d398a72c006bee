//! The terminal of a view: takes it, reads its keys, draws on it, and restores it.
//!
//! The view uses the alternate screen, so the text on the normal screen is preserved. Keys are read without echo and without waiting for
//! Enter; Ctrl-C and Ctrl-Z still send signals. The process keeps the terminal's original modes, so that every exit restores them once: the
//! normal end, a stop, a panic.

use output::stream;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::symbols::bar;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::getpgrp;
use rustix::stdio::stderr;
use rustix::termios::{
    Action, LocalModes, OptionalActions, Termios, tcflow, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;
use std::cell::Cell;
use std::io;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, TryLockError};
use std::time::{Duration, Instant};

/// Escape sequences that switch to the alternate screen and hide the cursor.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Escape sequences that reset colours, clear the screen (for terminals without an alternate screen), show the cursor
/// and return to the normal screen.
const RESTORE: &[u8] = b"\x1b[0m\x1b[H\x1b[2J\x1b[?25h\x1b[?1049l";
/// Escape sequences that reset colours and clear the screen.
const EMPTY: &[u8] = b"\x1b[0m\x1b[2J";
/// Maximum wait, before fathom exits, for a terminal whose output the user has stopped (Ctrl-S).
const PATIENCE: Duration = Duration::from_millis(200);

/// Whether a view has the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the terminal was restored for good, so that no view may take it.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Locked while bytes are written to the terminal.
static WRITING: Mutex<()> = Mutex::new(());
/// The controlling terminal, and its modes before the first view.
static ORIGINAL_MODES: OnceLock<(Keys, Termios)> = OnceLock::new();
static PANIC_HOOK: Once = Once::new();

/// Returns whether a view may use the terminal: true if this process is in the foreground of its
/// controlling terminal. Also true without a controlling terminal: the view gets no keys then, but
/// it may write to another terminal.
pub(super) fn is_ours() -> bool {
    Keys::open().is_none_or(|keys| is_in_foreground(&keys))
}

fn is_in_foreground(keys: &Keys) -> bool {
    tcgetpgrp(keys.file()).is_ok_and(|front| front == getpgrp())
}

/// Returns columns and rows of standard error; 0 if it is not a terminal.
pub(super) fn size() -> (u16, u16) {
    tcgetwinsize(stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row))
}

/// Takes the terminal for a view. Returns false if it is not available now.
pub(super) fn take(keys: Option<&Keys>) -> bool {
    if IS_OVER.load(Ordering::SeqCst) || keys.is_some_and(|keys| !is_in_foreground(keys)) {
        return false;
    }
    PANIC_HOOK.call_once(restore_before_panic_message);
    let _guard = lock_writes();
    if let Some(keys) = keys {
        if ORIGINAL_MODES.get().is_none()
            && let (Ok(modes), Some(file)) = (tcgetattr(keys.file()), Keys::open())
        {
            let _ = ORIGINAL_MODES.set((file, modes));
        }
        if let Some((_, modes)) = ORIGINAL_MODES.get() {
            let mut without_lines = modes.clone();
            without_lines.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            let _ = tcsetattr(keys.file(), OptionalActions::Now, &without_lines);
        }
    }
    IS_TAKEN.store(true, Ordering::SeqCst);
    stream::write(stderr(), TAKE).is_ok()
}

/// Whether a view has the terminal.
pub(super) fn is_taken() -> bool {
    IS_TAKEN.load(Ordering::SeqCst)
}

/// Returns whether the terminal was restored for good.
pub(super) fn is_over() -> bool {
    IS_OVER.load(Ordering::SeqCst)
}

/// Writes to the terminal if a view has it. Returns false if no view has it, or if it accepts no output.
pub(super) fn write(bytes: &[u8]) -> bool {
    let _guard = lock_writes();
    is_taken() && has_room(Duration::ZERO) && stream::write(stderr(), bytes).is_ok()
}

/// Clears the screen. Returns false in the same cases as [`write()`].
pub(super) fn clear() -> bool {
    write(EMPTY)
}

/// Restores the terminal if a view has it. Any thread may call it, even in a panic.
pub(super) fn restore() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Wait only briefly for the lock. This thread may hold it, or another thread may hold it until the terminal accepts output.
    let until = Instant::now() + PATIENCE;
    let _guard = loop {
        match WRITING.try_lock() {
            Ok(turn) => break Some(turn),
            Err(TryLockError::Poisoned(turn)) => break Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() > until => break None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // Resume output that the user has stopped (Ctrl-S), which would keep the alternate screen. The kernel resumes only
    // output that a call has suspended, so suspend it first.
    for action in [Action::OOff, Action::OOn] {
        let _ = tcflow(stderr(), action);
    }
    if has_room(PATIENCE) {
        let _ = stream::write(stderr(), RESTORE);
    }
    if let Some((keys, modes)) = ORIGINAL_MODES.get() {
        let _ = tcsetattr(keys.file(), OptionalActions::Now, modes);
    }
}

/// Restores the terminal before this process stops at a signal of the terminal (Ctrl-Z). When the
/// process continues, no view has the terminal, so a view takes it again.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub(super) fn restore_on_suspend() -> io::Result<()> {
    let mut signals = Signals::new([SIGTSTP, SIGCONT])?;
    std::thread::Builder::new().name("fathom-stops".into()).spawn(move || {
        for signal in signals.forever() {
            if signal != SIGCONT {
                restore();
                // If the kernel refuses the default action, the process does not stop.
                let _ = sys::process::run_default_action(signal);
            }
            IS_TAKEN.store(false, Ordering::SeqCst);
        }
    })?;
    Ok(())
}

/// Restores the terminal for good, because fathom is about to exit or to print something that the user must read.
pub(super) fn restore_for_good() {
    IS_OVER.store(true, Ordering::SeqCst);
    restore();
}

fn lock_writes() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn has_room(patience: Duration) -> bool {
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    let mut room = [PollFd::from_borrowed_fd(stderr(), PollFlags::OUT)];
    poll(&mut room, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Makes a panic print on the normal screen, where the user can read it.
fn restore_before_panic_message() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore_for_good();
        before(panic);
    }));
}

/// The last drawn screen. Only changed cells are sent to the terminal.
#[derive(Default)]
pub(super) struct Canvas {
    terminal: Option<Terminal<CrosstermBackend<Screen>>>,
    /// Whether the terminal rejected the last draw.
    missed: Rc<Cell<bool>>,
    size: (u16, u16),
}

impl Canvas {
    /// Forgets the last screen, so that all of it is drawn next.
    pub(super) fn forget(&mut self) {
        self.terminal = None;
    }

    /// Whether the size of the terminal has changed.
    pub(super) fn is_resized(&self) -> bool {
        self.size != size()
    }

    /// Draws, if a view has the terminal.
    pub(super) fn draw(&mut self, paint: impl FnOnce(&mut Frame)) {
        let size = size();
        let (columns, rows) = size;
        if !is_taken() || columns == 0 || rows == 0 {
            return;
        }
        if self.terminal.is_none() || self.size != size {
            self.size = size;
            let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
            let made = Terminal::with_options(
                CrosstermBackend::new(Screen { bytes: Vec::new(), missed: Rc::clone(&self.missed) }),
                TerminalOptions { viewport },
            );
            // Clear the screen here, because ratatui would query the cursor position and wait for the terminal's answer.
            self.terminal = made.ok().filter(|_| clear());
        }
        if let Some(terminal) = &mut self.terminal {
            let _ = terminal.draw(paint);
        }
        if self.missed.replace(false) {
            // The content of the screen is unknown, so the next draw sends all of it.
            self.terminal = None;
        }
    }
}

/// Collects bytes for the terminal.
struct Screen {
    bytes: Vec<u8>,
    /// Set if the terminal rejected the bytes.
    missed: Rc<Cell<bool>>,
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = write(&self.bytes);
        self.bytes.clear();
        // A rejected write is no error here, because ratatui would report it.
        self.missed.set(self.missed.get() || !written);
        Ok(())
    }
}

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// End after this run, or at once if pressed again. In `fathom watch`, end.
    End,
    /// Switch to plain progress.
    Plain,
    /// Show or hide the help.
    Help,
}

/// The controlling terminal, from which keys are read.
pub(super) struct Keys(OwnedFd);

impl Keys {
    /// Opens the controlling terminal; `None` without one.
    pub(super) fn open() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        open("/dev/tty", flags, Mode::empty()).ok().map(Self)
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the keys typed so far; `None` if the terminal is gone.
    fn read(&self) -> Option<Vec<Key>> {
        let mut bytes = [0_u8; 64];
        match rustix::io::read(&self.0, &mut bytes) {
            Ok(0) => None,
            Ok(count) => Some(keys(bytes.get(..count).unwrap_or_default())),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Some(Vec::new()),
            Err(_) => None,
        }
    }
}

/// Returns the keys typed so far. While another process has the terminal, returns none: the keys are for that process. If the terminal
/// is gone, sets `keys` to `None`, because further reads would only use CPU time.
pub(super) fn read_keys(keys: &mut Option<Keys>) -> Vec<Key> {
    let Some(source) = keys.as_ref().filter(|_| is_taken()) else { return Vec::new() };
    let typed = source.read();
    if typed.is_none() {
        *keys = None;
    }
    typed.unwrap_or_default()
}

/// Parses the bytes of one read. Returns no key if they contain an escape sequence, such as that of an arrow key.
fn keys(bytes: &[u8]) -> Vec<Key> {
    if bytes.contains(&0x1b) {
        return Vec::new();
    }
    let key = |byte: &u8| match byte {
        b'q' | b'Q' => Some(Key::End),
        b'p' | b'P' => Some(Key::Plain),
        b'h' | b'H' | b'?' => Some(Key::Help),
        _ => None,
    };
    bytes.iter().filter_map(key).collect()
}

/// Characters and colours of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Theme {
    /// Whether to use characters beyond ASCII.
    pub(super) unicode: bool,
    /// Whether to use colours.
    pub(super) colours: bool,
}

/// Bar heights in ASCII.
const PLAIN_BARS: bar::Set<'_> = bar::Set {
    full: "#",
    seven_eighths: "%",
    three_quarters: "*",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: ":",
    one_eighth: ".",
    empty: "_",
};

impl Theme {
    /// Returns the theme for standard error, by locale and environment.
    pub(super) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
        Self {
            unicode: locale.is_some_and(|l| is_utf8(&l)),
            colours: stream::has_colours(&std::io::stderr()),
        }
    }

    /// Returns the bar heights. Zero is a line, because a blank means unknown.
    pub(super) fn bars(self) -> bar::Set<'static> {
        if self.unicode { bar::Set { empty: PLAIN_BARS.empty, ..bar::NINE_LEVELS } } else { PLAIN_BARS }
    }

    /// Characters for the completed and the remaining part of a gauge.
    pub(super) fn gauge(self) -> [&'static str; 2] {
        if self.unicode { ["█", "░"] } else { ["#", "-"] }
    }
}

/// Returns whether a locale uses UTF-8, such as `C.UTF-8` and `de_DE.utf8`.
fn is_utf8(locale: &str) -> bool {
    let lower = locale.to_ascii_lowercase();
    lower.contains("utf-8") || lower.contains("utf8")
}

#[test]
fn only_q_p_and_h_have_actions() {
    assert_eq!(keys(b"q"), [Key::End]);
    assert_eq!(keys(b"hxP"), [Key::Help, Key::Plain]);
    assert!(keys(b"\x1b[A\x1bOHq").is_empty() && keys(b"").is_empty() && keys(&[0xff, 0]).is_empty());
}

#[test]
fn only_utf8_locales_use_unicode() {
    assert!(["C.UTF-8", "de_DE.utf8", "en_US.UTF-8@euro"].iter().all(|l| is_utf8(l)));
    assert!(["C", "POSIX", "de_DE.ISO-8859-15", ""].iter().all(|l| !is_utf8(l)));
    let plain = Theme { unicode: false, colours: false };
    let bars = plain.bars();
    let all = [bars.full, bars.half, bars.empty, plain.gauge()[0], plain.gauge()[1]];
    assert!(all.iter().all(|symbol| symbol.is_ascii()));
}
