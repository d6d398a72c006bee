//! Tells whether another process opened a file and wrote to it meanwhile: `fanotify(7)`, a watch on one inode.
//!
//! The kernel reports each open and each close of a descriptor that could write, with the process that did it. Without
//! privileges it gives the process id 0 for every process but the caller. The last close of a file may be done by a kernel thread,
//! also for the caller's own descriptors, so a close by another process counts only if another process also opened the file.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// Size of `struct fanotify_event_metadata`: length (4 bytes), version (1), reserved (1), header length (2), mask (8),
/// descriptor (4), process (4).
const HEADER_BYTES: usize = 24;
/// Room for several events. The kernel merges equal ones.
const BUFFER_BYTES: usize = 4096;

/// A watch on a file.
#[derive(Debug)]
pub struct Watch {
    group: File,
}

impl Watch {
    /// Watches a file from now on. Descriptors that others opened before are not reported.
    ///
    /// # Errors
    /// `EPERM` without privileges before kernel 5.13 and in containers that deny the call, `EOPNOTSUPP` or `ENODEV` on file systems
    /// whose files cannot be named in events.
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
        if answer == 0 { Ok(Self { group }) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether another process opened the file and closed a descriptor that could write, since the watch began. Reports each event
    /// once, so this may be asked once.
    ///
    /// # Errors
    /// What reading the events answers.
    pub fn others_wrote(mut self) -> io::Result<bool> {
        let own = std::process::id();
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
                // What was lost may have been another's.
                let lost = mask & libc::FAN_Q_OVERFLOW != 0;
                let other = number(20) != own;
                opened |= lost || (other && mask & libc::FAN_OPEN != 0);
                closed |= lost || (other && mask & libc::FAN_CLOSE_WRITE != 0);
                let event_bytes = (number(0) as usize).clamp(HEADER_BYTES, events.len());
                events = &events[event_bytes..];
            }
        }
    }
}

#[test]
fn only_a_write_of_another_process_is_reported() -> io::Result<()> {
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
        let watch = match Watch::begin(&file) {
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
