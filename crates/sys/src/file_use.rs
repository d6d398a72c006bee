//! Use of a file by other processes: leases (`fcntl(2)`) and `fanotify(7)`.
//!
//! [`is_open_for_writing`] takes a read lease and gives it back at once: the kernel refuses the lease if any process has the file open
//! for writing.
//!
//! [`WriteWatch`] reports whether another process opened a file and wrote to it. The kernel reports the process of each open, and of each
//! close of a writable descriptor. Without privileges it reports process 0 for every process except the caller. A kernel thread may do
//! the last close of a file, also for the caller's own descriptors. Therefore a close by another process counts only if another process
//! also opened the file.

use crate::check;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};

/// `F_SETSIG` of `asm-generic/fcntl.h`; `libc` does not define it for every target.
const F_SETSIG: libc::c_int = 10;

/// Returns whether any process has the file open for writing, in any namespace and under any name. A writable shared mapping counts too.
/// `file` must be open for reading only.
///
/// # Errors
/// `EACCES` without ownership of the file or `CAP_LEASE`, `EINVAL` on file systems without leases.
pub fn is_open_for_writing(file: &File) -> io::Result<bool> {
    // If another process opens the file for writing meanwhile, the kernel sends a signal, by default one that ends the process.
    lease_fcntl(file, F_SETSIG, libc::SIGURG)?;
    let taken = lease_fcntl(file, libc::F_SETLEASE, libc::F_RDLCK);
    let answer = match taken {
        Ok(()) => {
            lease_fcntl(file, libc::F_SETLEASE, libc::F_UNLCK)?;
            Ok(false)
        }
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(e) => Err(e),
    };
    lease_fcntl(file, F_SETSIG, 0)?;
    answer
}

fn lease_fcntl(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: these commands take an int and touch no memory of this process; the descriptor is open.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Size of `struct fanotify_event_metadata`: length (4 bytes), version (1), reserved (1), header length (2), mask (8),
/// descriptor (4), process (4).
const HEADER_BYTES: usize = 24;
/// Size of the buffer for events in bytes. The kernel merges equal events, so there are seldom many.
const BUFFER_BYTES: usize = 4096;

/// A watch on a file.
#[derive(Debug)]
pub struct WriteWatch {
    group: File,
}

impl WriteWatch {
    /// Starts to watch a file. Misses a writer that opened the file before, unless another process opens the file during the watch.
    ///
    /// # Errors
    /// `EPERM` without privileges before kernel 5.13 and in containers that deny the call; `EOPNOTSUPP` or `ENODEV` on file systems whose
    /// files cannot be named in events.
    pub fn begin(file: &File) -> io::Result<Self> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_FID | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
        // SAFETY: the call takes two numbers.
        let group = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) };
        if group < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let group = unsafe { File::from_raw_fd(group) };
        let mask = libc::FAN_OPEN | libc::FAN_CLOSE_WRITE;
        // SAFETY: both descriptors are open; without a path the second one names the file itself.
        let answer = unsafe {
            libc::fanotify_mark(
                group.as_raw_fd(),
                libc::FAN_MARK_ADD,
                mask,
                file.as_raw_fd(),
                std::ptr::null(),
            )
        };
        check(answer)?;
        Ok(Self { group })
    }

    /// Returns whether another process opened the file and closed a writable descriptor since the watch began, or may have done so, because
    /// events were lost. Consumes the watch, because the kernel reports each event once.
    ///
    /// # Errors
    ///
    /// An error of reading the events.
    pub fn others_wrote(mut self) -> io::Result<bool> {
        let own_pid = std::process::id();
        let (mut opened, mut closed) = (false, false);
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            let length = match self.group.read(&mut buffer) {
                Ok(length) => length,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(opened && closed),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let mut events = &buffer[..length];
            while let Some(header) = events.get(..HEADER_BYTES) {
                let number =
                    |at: usize| header[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
                let mask = header[8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
                // If events were lost, one of them may be from another process.
                let has_lost_events = mask & libc::FAN_Q_OVERFLOW != 0;
                let is_other = number(20) != own_pid;
                opened |= has_lost_events || (is_other && mask & libc::FAN_OPEN != 0);
                closed |= has_lost_events || (is_other && mask & libc::FAN_CLOSE_WRITE != 0);
                let event_bytes = (number(0) as usize).clamp(HEADER_BYTES, events.len());
                events = &events[event_bytes..];
            }
        }
    }
}

#[test]
fn a_writer_is_detected_and_a_reader_is_not() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("fathom-lease-{}", std::process::id()));
    std::fs::write(&path, "x")?;
    let read_only = File::open(&path)?;
    assert!(!is_open_for_writing(&read_only)?);
    let reader = File::open(&path)?;
    assert!(!is_open_for_writing(&read_only)?);
    let writer = File::options().append(true).open(&path)?;
    assert!(is_open_for_writing(&read_only)?);
    drop((writer, reader));
    assert!(!is_open_for_writing(&read_only)?);
    std::fs::remove_file(&path)?;
    assert!(is_open_for_writing(&File::open("/dev/null")?).is_err());
    Ok(())
}

#[test]
fn only_writes_of_other_processes_are_reported() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("fathom-fanotify-{}", std::process::id()));
    std::fs::write(&path, "x")?;
    let file = File::open(&path)?;
    let shell = |line: &str| {
        let done = std::process::Command::new("sh").args(["-c", line, "sh"]).arg(&path).status();
        assert!(done.is_ok_and(|status| status.success()), "{line}");
    };
    for (foreign, expected) in
        [(None, false), (Some("cat \"$1\" > /dev/null"), false), (Some("echo y >> \"$1\""), true)]
    {
        let watch = match WriteWatch::begin(&file) {
            Ok(watch) => watch,
            Err(e) => {
                eprintln!("skipped: no fanotify here: {e}");
                break;
            }
        };
        for _ in 0..100 {
            drop(File::options().append(true).open(&path)?);
        }
        foreign.into_iter().for_each(shell);
        assert_eq!(watch.others_wrote()?, expected, "{foreign:?}");
    }
    std::fs::remove_file(&path)
}
