//! Errors that stop fathom: a message with what to type instead. The variant decides the exit code.
//!
//! A value that could not be read is not an error: it is kept as a reason inside a result ([`model::Known`]).

use std::io;
use std::path::Path;

/// Why fathom refuses a target or a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The command is wrong, for example because it names a path that does not exist. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The machine or its owner does not allow the command: permission, space, a device in use. Exit code 3.
    #[error("{0}")]
    Refused(String),
    /// A write would destroy the content of a file or device that `--destroy` does not name. Exit code 2.
    #[error("{}", .0.message)]
    NotNamed(NotNamed),
}

/// A file or device that `--destroy` does not name, so it is not overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotNamed {
    /// What happened, and what to type.
    pub message: String,
    /// The name to type after `--destroy`, as text that can represent any bytes.
    pub name: String,
    /// The file or device, for a message that lists several: `PATH`, or `PATH: REASON` if fathom's mark on the file is void.
    pub target: String,
}

impl MachineError {
    /// Builds the error for a failed access to `path`. `what` completes "cannot be ...": "opened for
    /// writing", "accessed".
    pub(crate) fn at(path: &Path, what: &str, error: &io::Error) -> Self {
        let shown = model::name::shown(path);
        match error.kind() {
            // `/proc` answers "not found" when a file is created in it.
            io::ErrorKind::NotFound if path.is_dir() => Self::Refused(format!(
                "{shown} cannot be {what}: its file system does not allow new files; name another directory"
            )),
            io::ErrorKind::NotFound => Self::Usage(format!(
                "{shown} does not exist; name a directory, an existing file or a block device"
            )),
            io::ErrorKind::PermissionDenied => Self::Refused(format!(
                "{shown} cannot be {what}: permission denied; {}",
                sys::error_advice::other_owner_advice()
            )),
            io::ErrorKind::ReadOnlyFilesystem => Self::Refused(format!(
                "{shown} cannot be {what}: its file system is mounted read-only; name a path on a writable file system"
            )),
            io::ErrorKind::ResourceBusy => Self::Refused(format!(
                "{shown} cannot be {what}: the kernel reports it as in use, perhaps mounted in a container; \
                 find its user with `lsof` or `findmnt`"
            )),
            _ => Self::Refused(format!(
                "{shown} cannot be {what}: {error}{}",
                likely_cause(error).unwrap_or_else(|| sys::cause(error))
            )),
        }
    }
}

/// Returns the likely cause of an error and what to do, as text after a semicolon; `None` if unknown.
fn likely_cause(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    Some(match Errno::from_io_error(error)? {
        Errno::NOTDIR => "; a part of the path is a file, not a directory: name a path that exists",
        Errno::LOOP => "; its symbolic links lead in a circle: name the file itself",
        Errno::NAMETOOLONG => "; name a shorter path, or change into its directory first",
        Errno::NXIO | Errno::NODEV => {
            "; the node exists, but its device does not: it was removed or has no driver (`fathom devices` lists all devices)"
        }
        Errno::NOMEDIUM => "; the drive has no medium: insert one",
        Errno::IO => "; the device or its connection may have failed: `dmesg` shows what the kernel reported",
        Errno::STALE | Errno::NOTCONN | Errno::TIMEDOUT | Errno::HOSTDOWN => {
            "; the file system's server does not answer, or no longer has the file: check the server, or mount the file system again"
        }
        _ => return None,
    })
}

/// Returns the text of the error without the number that `io::Error` adds.
pub(crate) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

#[test]
fn the_variant_follows_from_the_kind_of_error() {
    let path = Path::new("/nowhere");
    let absent = MachineError::at(path, "accessed", &io::ErrorKind::NotFound.into());
    let denied = MachineError::at(path, "accessed", &io::ErrorKind::PermissionDenied.into());
    assert!(matches!((absent, &denied), (MachineError::Usage(_), MachineError::Refused(_))));
    assert!(denied.to_string().contains("permission denied"));
}

#[test]
fn errors_of_paths_and_devices_have_a_likely_cause() {
    use rustix::io::Errno;
    let message = |errno: Errno| MachineError::at(Path::new("/dev/x"), "opened", &errno.into()).to_string();
    for (errno, cause) in [
        (Errno::NOTDIR, "; a part of the path is a file"),
        (Errno::NXIO, "; the node exists, but its device does not"),
        (Errno::NOMEDIUM, "; the drive has no medium"),
        (Errno::IO, "`dmesg` shows what the kernel reported"),
        (Errno::MFILE, "limit of open files (`ulimit -n` shows it)"),
    ] {
        assert!(message(errno).contains(cause), "{}", message(errno));
    }
}
