//! Keys: what is typed while a view is shown.
//!
//! For: bytes of a terminal as what they ask for. Not for: Ctrl-C and Ctrl-Z, which the terminal makes signals of.

use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// To let the run end and no other begin.
    End,
    /// To go to the plain progress.
    Plain,
    /// Help, or none any more.
    Help,
}

/// Where keys are typed.
pub(super) struct Keys(OwnedFd);

impl Keys {
    /// The terminal that controls this process; `None` where there is none.
    pub(super) fn open() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        open("/dev/tty", flags, Mode::empty()).ok().map(Self)
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What was typed by now; `None` where nothing can be typed any more.
    pub(super) fn read(&self) -> Option<Vec<Key>> {
        let mut bytes = [0_u8; 64];
        match rustix::io::read(&self.0, &mut bytes) {
            Ok(0) => None,
            Ok(count) => Some(keys(bytes.get(..count).unwrap_or_default())),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Some(Vec::new()),
            Err(_) => None,
        }
    }
}

/// The keys of some bytes. Those of a key that sends several, such as an arrow, ask for nothing.
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

#[test]
fn three_keys_ask_for_something_and_no_other_does() {
    assert_eq!(keys(b"q"), [Key::End]);
    assert_eq!(keys(b"hxP"), [Key::Help, Key::Plain]);
    assert!(keys(b"\x1b[A\x1bOHq").is_empty() && keys(b"").is_empty() && keys(&[0xff, 0]).is_empty());
}
