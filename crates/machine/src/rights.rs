//! The rights of this process, tested without using them: io_uring, libaio, cgroups, tracing, reading
//! devices.
//!
//! io_uring and libaio are set up at their smallest size and released again. If io_uring is denied, the cause
//! follows from the errno, `kernel.io_uring_disabled`, the seccomp mode in `/proc/self/status`, and the
//! kernel's release. `safety` decides whether a target may be written.

use crate::cgroup;
use crate::error::describe;
use crate::root::Root;
use model::Known;
use rustix::fs::{Access, AtFlags, CWD, MemfdFlags, StatVfsMountFlags, accessat, memfd_create, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::{fmt, io};
use sys::aio::Aio;
use sys::arena::Arena;
use sys::open_file::OpenFile;
use sys::ring::{Ring, RingOptions};

/// A trace point of the block layer, below tracefs. If it can be switched on, all can.
const TRACE_POINT: &str = "events/block/block_rq_issue/enable";
const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// The rights of this process, with a reason for each missing one.
#[derive(Clone, Debug)]
pub struct Rights {
    /// Whether a ring of io_uring can be set up, or what denies it.
    pub io_uring: Result<(), IoUringDenied>,
    /// What the user can change to allow io_uring; `None` if it is allowed, or if nothing on this machine
    /// would help.
    pub io_uring_advice: Option<&'static str>,
    /// Whether a context of libaio can be set up.
    pub libaio: Known<()>,
    /// Whether `/sys` is mounted read-only, as in a container. The settings in `/sys` can then be changed
    /// only outside of the container.
    pub sys_is_read_only: bool,
    /// Version of the cgroup hierarchy in which a cgroup can be created, or why none can.
    pub cgroup: Known<u8>,
    /// Whether trace points of the block layer can be switched on.
    pub tracing: Known<()>,
    /// For each device, by kernel name, whether it can be opened for reading.
    pub devices: Vec<(String, Known<()>)>,
    /// Maximum number of open files; `None` for no limit.
    pub open_files: Option<u64>,
    /// Maximum locked memory in bytes; `None` for no limit.
    pub locked_bytes: Option<u64>,
}

/// Tests all rights. `devices` are the kernel names of the devices whose reading is tested.
pub fn test_rights<'a>(root: &Root, devices: impl Iterator<Item = &'a str>) -> Rights {
    let exempt = rustix::process::geteuid().is_root();
    let io_uring = io_uring(root);
    Rights {
        io_uring_advice: io_uring.as_ref().err().and_then(|denied| denied.advice(root)),
        io_uring,
        libaio: libaio(),
        sys_is_read_only: statvfs(root.path("/sys"))
            .is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::RDONLY)),
        cgroup: cgroup::check_enter(root),
        tracing: tracing(),
        devices: devices.map(|name| (name.to_owned(), readable_device(root, name))).collect(),
        open_files: getrlimit(Resource::Nofile).current,
        locked_bytes: getrlimit(Resource::Memlock).current.filter(|_| !exempt),
    }
}

/// Tests whether trace points can be switched on. Finds tracefs as `capture` and `watch` do: if it is not
/// mounted, root gets a private mount.
fn tracing() -> Known<()> {
    let tracefs = sys::tracefs::directory()?;
    accessat(&tracefs, TRACE_POINT, Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|e| format!("{TRACE_POINT} of tracefs: {}", describe(&e.into())))
}

/// Tests whether a device can be opened for reading, by opening it: the permission bits alone do
/// not decide. This does no I/O.
fn readable_device(root: &Root, name: &str) -> Known<()> {
    // `/sys` writes `!` for `/` in device names.
    let path = root.path(&format!("/dev/{}", name.replace('!', "/")));
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(&path);
    opened.map(drop).map_err(|e| format!("{}: {}", model::name::shown(&path), describe(&e)))
}

const IO_URING_SYSCTL: &str = "/proc/sys/kernel/io_uring_disabled";
/// `SECCOMP_MODE_FILTER` in the `Seccomp:` line of `/proc/self/status`.
const SECCOMP_FILTER_MODE: &str = "2";
/// The first kernel release with io_uring.
const FIRST_IO_URING_RELEASE: (u32, u32) = (5, 1);

/// What denies io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoUringDenied {
    /// The sysctl `kernel.io_uring_disabled` with this value.
    Sysctl(String),
    /// A seccomp filter that answers EPERM, as in container runtimes.
    SeccompDenies,
    /// A seccomp filter that answers ENOSYS on a kernel that has io_uring.
    SeccompHides,
    /// A kernel of this release, which is older than io_uring.
    OldKernel(String),
    /// A kernel of this release, which is new enough but answers ENOSYS although there is no seccomp filter.
    NotBuiltIn(String),
    /// EPERM although there is no filter and the sysctl allows io_uring.
    Sandbox,
    /// Another error, as text.
    Other(String),
}

impl fmt::Display for IoUringDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(level) => write!(f, "sysctl kernel.io_uring_disabled is {level} (EPERM)"),
            Self::SeccompDenies => {
                write!(f, "a seccomp filter denies it (EPERM), as the default profile of containers does")
            }
            Self::SeccompHides => {
                write!(f, "a seccomp filter hides it (ENOSYS), as if the kernel were too old for it")
            }
            Self::OldKernel(release) => {
                let (major, minor) = FIRST_IO_URING_RELEASE;
                write!(f, "kernel {release} is too old (ENOSYS): io_uring came with Linux {major}.{minor}")
            }
            Self::NotBuiltIn(release) => write!(f, "kernel {release} was built without it (ENOSYS)"),
            Self::Sandbox => write!(f, "a sandbox or a security module denies it (EPERM)"),
            Self::Other(why) => write!(f, "the kernel refuses it: {why}"),
        }
    }
}

impl IoUringDenied {
    /// Returns what the user can change to allow io_uring; `None` if nothing on this machine would help.
    pub fn advice(&self, root: &Root) -> Option<&'static str> {
        match self {
            Self::Sysctl(_) if may_set_sysctl(root) => Some("sysctl kernel.io_uring_disabled=0"),
            Self::Sysctl(_) => Some("as root, outside of any container: sysctl kernel.io_uring_disabled=0"),
            Self::SeccompDenies | Self::SeccompHides => Some(
                "start the container with a seccomp profile that allows io_uring (docker run --security-opt seccomp=FILE)",
            ),
            Self::OldKernel(_) | Self::NotBuiltIn(_) | Self::Sandbox | Self::Other(_) => None,
        }
    }
}

/// Tests io_uring by setting up the smallest ring.
///
/// # Errors
///
/// What denies it.
pub fn io_uring(root: &Root) -> Result<(), IoUringDenied> {
    let ring = with_memory_file(|arena, files| Ring::new(arena, files, &RingOptions::default()).map(drop));
    ring.map_err(|error| denial_cause(root, &error))
}

/// Tests libaio by setting up a context for one operation.
///
/// # Errors
///
/// The kernel's reason as text.
pub fn libaio() -> Known<()> {
    with_memory_file(|arena, files| Aio::new(arena, files, false).map(drop)).map_err(|error| describe(&error))
}

/// Returns whether this process may change the sysctl `kernel.io_uring_disabled`.
fn may_set_sysctl(root: &Root) -> bool {
    accessat(CWD, root.path(IO_URING_SYSCTL), Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

fn with_memory_file(set_up: impl FnOnce(Arena, Vec<OpenFile>) -> io::Result<()>) -> io::Result<()> {
    // The test uses a file in memory, because a minimal container has no /dev.
    let file = File::from(memfd_create("fathom", MemfdFlags::CLOEXEC)?);
    set_up(Arena::new(1, rustix::param::page_size())?, vec![OpenFile::new(file, false)])
}

fn denial_cause(root: &Root, error: &io::Error) -> IoUringDenied {
    let is_filtered = || status_value(root, "Seccomp:").as_deref() == Some(SECCOMP_FILTER_MODE);
    let release = || rustix::system::uname().release().to_string_lossy().into_owned();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => match root.word(IO_URING_SYSCTL) {
            Some(level) if level == "2" || (level == "1" && !is_filtered()) => IoUringDenied::Sysctl(level),
            _ if is_filtered() => IoUringDenied::SeccompDenies,
            _ => IoUringDenied::Sandbox,
        },
        Some(Errno::NOSYS) => match release() {
            release if is_older_than_io_uring(&release) => IoUringDenied::OldKernel(release),
            _ if is_filtered() => IoUringDenied::SeccompHides,
            release => IoUringDenied::NotBuiltIn(release),
        },
        _ => IoUringDenied::Other(describe(error)),
    }
}

/// Returns a value of `/proc/self/status`.
fn status_value(root: &Root, key: &str) -> Option<String> {
    let text = root.read("/proc/self/status").ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()))
}

/// Whether a kernel release is older than io_uring.
fn is_older_than_io_uring(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < FIRST_IO_URING_RELEASE
}

#[test]
fn missing_interfaces_are_reported_as_not_allowed() {
    let rights = test_rights(&Root::at("/nonexistent-prefix".into()), ["none"].into_iter());
    assert!(rights.cgroup.is_err());
    assert_eq!(rights.tracing.is_ok(), crate::tracer::Tracer::new(1 << 16).is_ok(), "{:?}", rights.tracing);
    assert!(rights.devices[0].1.as_ref().is_err_and(|why| why.contains("no such file")), "{rights:?}");
    assert!(rights.open_files.is_none_or(|n| n > 0));
    println!("{:?}", test_rights(&Root::real(), ["loop0"].into_iter()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::put;

    fn cause_with(errno: Errno, files: &[(&str, &str)]) -> IoUringDenied {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        for (path, text) in files {
            put(dir.path(), path, text);
        }
        denial_cause(&Root::at(dir.path().to_owned()), &io::Error::from(errno))
    }

    #[test]
    fn the_cause_follows_from_errno_sysctl_and_seccomp() {
        let filtered = ("proc/self/status", "Name:\tfathom\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        let unfiltered = ("proc/self/status", "Name:\tfathom\nSeccomp:\t0\n");
        let sysctl = |level: &'static str| ("proc/sys/kernel/io_uring_disabled", level);
        assert_eq!(cause_with(Errno::PERM, &[filtered, sysctl("0\n")]), IoUringDenied::SeccompDenies);
        assert_eq!(cause_with(Errno::PERM, &[filtered]), IoUringDenied::SeccompDenies);
        assert_eq!(cause_with(Errno::PERM, &[filtered, sysctl("2\n")]), IoUringDenied::Sysctl("2".into()));
        assert_eq!(cause_with(Errno::PERM, &[unfiltered, sysctl("1\n")]), IoUringDenied::Sysctl("1".into()));
        assert_eq!(cause_with(Errno::PERM, &[filtered, sysctl("1\n")]), IoUringDenied::SeccompDenies);
        assert_eq!(cause_with(Errno::PERM, &[unfiltered, sysctl("0\n")]), IoUringDenied::Sandbox);
        assert_eq!(cause_with(Errno::PERM, &[]), IoUringDenied::Sandbox);
        assert_eq!(cause_with(Errno::NOSYS, &[filtered]), IoUringDenied::SeccompHides);
        assert!(matches!(cause_with(Errno::NOSYS, &[unfiltered]), IoUringDenied::NotBuiltIn(_)));
        assert!(matches!(cause_with(Errno::NOMEM, &[filtered]), IoUringDenied::Other(_)));
    }

    #[test]
    fn releases_before_5_1_are_too_old() {
        assert!(
            is_older_than_io_uring("4.19.0-27-amd64")
                && is_older_than_io_uring("5.0.21")
                && is_older_than_io_uring("3.10.0-1160.el7")
        );
        assert!(
            !is_older_than_io_uring("5.1.0")
                && !is_older_than_io_uring("6.18.5-cloud")
                && !is_older_than_io_uring("10.0")
        );
    }

    #[test]
    fn without_io_uring_in_the_kernel_no_sysctl_is_advised() {
        let root = Root::at("/nonexistent-prefix".into());
        let advice = |denied: IoUringDenied| denied.advice(&root).unwrap_or_default();
        for denied in [
            IoUringDenied::SeccompHides,
            IoUringDenied::OldKernel("4.4".into()),
            IoUringDenied::NotBuiltIn("6.1".into()),
            IoUringDenied::SeccompDenies,
        ] {
            assert!(!advice(denied.clone()).contains("sysctl"), "{denied:?}");
        }
        // The file of the sysctl does not exist here, so the sysctl cannot be changed from here.
        assert!(advice(IoUringDenied::Sysctl("2".into())).starts_with("as root, outside"));
    }
}
