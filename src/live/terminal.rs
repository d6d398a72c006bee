//! The terminal while a view is on it: taken, drawn on, and given back as it was.
//!
//! For: every way out, so that what must be undone is known to the whole process and is undone once. Not for: what is drawn.
//!
//! The second screen of the terminal is used, so what stood on the first one stands there again. Keys come without a line feed and are
//! not shown; those that make signals still do.

use super::keys::Keys;
use crate::stdout;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::stdio::stderr;
use rustix::termios::{
    Action, LocalModes, OptionalActions, Termios, tcflow, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, TryLockError};
use std::time::{Duration, Instant};

/// To the second screen, without a cursor.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// No colours, an empty screen where there is no second one, the cursor, and back to the first.
const GIVE_BACK: &[u8] = b"\x1b[0m\x1b[H\x1b[2J\x1b[?25h\x1b[?1049l";
/// An empty screen.
const EMPTY: &[u8] = b"\x1b[0m\x1b[2J";
/// Longest wait for a terminal that takes nothing (Ctrl-S), where the program is about to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// Whether a view is on the terminal now.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether nobody may take it again.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Held by whoever writes.
static WRITING: Mutex<()> = Mutex::new(());
/// Its modes as they were at first.
static BEFORE: OnceLock<(Keys, Termios)> = OnceLock::new();
static HOOK: Once = Once::new();

/// Whether keys are typed to this process: it is in the foreground of the terminal that controls it. One without such a terminal, which
/// writes on another, has no keys, and nothing stops it.
pub(super) fn is_ours() -> bool {
    Keys::open().is_none_or(|keys| is_in_front(&keys))
}

fn is_in_front(keys: &Keys) -> bool {
    tcgetpgrp(keys.file()).is_ok_and(|front| front == getpgrp())
}

/// Columns and rows of standard error; none where it is no terminal.
pub(super) fn size() -> (u16, u16) {
    tcgetwinsize(stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row))
}

/// Takes the terminal, or takes it again. False where that is not ours to do now.
pub(super) fn take(keys: Option<&Keys>) -> bool {
    if IS_OVER.load(Ordering::SeqCst) || keys.is_some_and(|keys| !is_in_front(keys)) {
        return false;
    }
    HOOK.call_once(give_back_before_a_panic_is_told);
    let _turn = turn();
    if let Some(keys) = keys {
        if BEFORE.get().is_none()
            && let (Ok(modes), Some(file)) = (tcgetattr(keys.file()), Keys::open())
        {
            let _ = BEFORE.set((file, modes));
        }
        if let Some((_, modes)) = BEFORE.get() {
            let mut without_lines = modes.clone();
            without_lines.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            let _ = tcsetattr(keys.file(), OptionalActions::Now, &without_lines);
        }
    }
    IS_TAKEN.store(true, Ordering::SeqCst);
    stdout::write(stderr(), TAKE).is_ok()
}

/// Whether a view is on it.
pub(super) fn is_taken() -> bool {
    IS_TAKEN.load(Ordering::SeqCst)
}

/// Whether nobody may take it again.
pub(super) fn is_over() -> bool {
    IS_OVER.load(Ordering::SeqCst)
}

/// Draws, where a view is on it and it takes anything. False where it did not.
pub(super) fn write(bytes: &[u8]) -> bool {
    let _turn = turn();
    is_taken() && has_room(Duration::ZERO) && stdout::write(stderr(), bytes).is_ok()
}

/// Empties it, where a view is on it. False where it did not.
pub(super) fn clear() -> bool {
    write(EMPTY)
}

/// Gives it back, where a view is on it; from any thread, also from a panic.
pub(super) fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Whoever writes now may be this very thread, or wait for a terminal that takes nothing.
    let until = Instant::now() + PATIENCE;
    let _turn = loop {
        match WRITING.try_lock() {
            Ok(turn) => break Some(turn),
            Err(TryLockError::Poisoned(turn)) => break Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() > until => break None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // One that was told to take nothing (Ctrl-S) would keep the second screen. The kernel lets go on only what was suspended by a call.
    for action in [Action::OOff, Action::OOn] {
        let _ = tcflow(stderr(), action);
    }
    if has_room(PATIENCE) {
        let _ = stdout::write(stderr(), GIVE_BACK);
    }
    if let Some((keys, modes)) = BEFORE.get() {
        let _ = tcsetattr(keys.file(), OptionalActions::Now, modes);
    }
}

/// Whatever stands on it now, or whatever its modes are, is not known any more: the program was stopped and goes on.
pub(super) fn lose() {
    IS_TAKEN.store(false, Ordering::SeqCst);
}

/// Gives it back for good: the program is about to end, or tells something that must be read.
pub(super) fn give_back_for_good() {
    IS_OVER.store(true, Ordering::SeqCst);
    give_back();
}

fn turn() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn has_room(patience: Duration) -> bool {
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    let mut room = [PollFd::from_borrowed_fd(stderr(), PollFlags::OUT)];
    poll(&mut room, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// A panic is told on the first screen, where it can be read.
fn give_back_before_a_panic_is_told() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back_for_good();
        before(panic);
    }));
}
