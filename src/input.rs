//! Input files: reading whole what somebody named.
//!
//! For: sessions, reports, job files, contents and states, whatever is behind their names. Not for: opening them (crate `sys`).

use std::io::{self, Read};
use std::path::Path;
pub(crate) use sys::open_file::{kind, open};

/// The bytes of a regular file, where there are no more than so many.
///
/// # Errors
/// As [`open`], and for more bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {}", model::units::show_bytes(most))));
    }
    Ok(bytes)
}

/// What a path leads to, as far as it may be a small file.
pub(crate) enum Small {
    /// It is one, of these bytes.
    Read(Vec<u8>),
    /// A regular file of more bytes, of which none was read: it may be about to be measured.
    Large,
    /// A directory, a device, or whatever else is no regular file.
    NoFile,
    /// Nothing is there, or it may not be read.
    Unread,
}

/// The bytes of a regular file, where there are no more than so many; of a larger one none is touched.
pub(crate) fn small(path: &Path, most: u64) -> Small {
    match std::fs::metadata(path) {
        Err(_) => Small::Unread,
        Ok(facts) if !facts.is_file() => Small::NoFile,
        Ok(facts) if facts.len() > most => Small::Large,
        Ok(_) => read(path, most).map_or(Small::Unread, Small::Read),
    }
}

/// The text of a regular file, where there are no more than so many bytes.
///
/// # Errors
/// As [`read`], and for bytes that are no UTF-8.
pub(crate) fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::other("it is no text in UTF-8"))
}

#[test]
fn what_is_no_regular_file_is_named_and_nothing_waits() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
    let socket = dir.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket)?;
    let why = |path: &Path| read(path, 10).map_or_else(|e| e.to_string(), |_| "read".into());
    let table = [
        (fifo.as_path(), "a FIFO"),
        (socket.as_path(), "a socket"),
        (dir.path(), "a directory"),
        (Path::new("/dev/zero"), "a character device"),
        (Path::new("/proc/self/maps"), "of the kernel's (proc)"),
    ];
    for (path, word) in table {
        assert!(why(path).contains(word), "{}", why(path));
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "0123456789")?;
    assert_eq!((read(&file, 10)?.len(), why(&file)), (10, "read".into()));
    std::fs::write(&file, "0123456789a")?;
    assert!(why(&file).contains("more than 10 B"), "{}", why(&file));
    Ok(())
}
