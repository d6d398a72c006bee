//! What this process may do here, found out without doing it.
//!
//! For: interfaces and counters that a measurement or a check would use. Not for: targets (that is `safety`).

use crate::async_io::{self, IoUringDenied};
use crate::cgroup;
use crate::error::describe;
use crate::root::Root;
use model::Known;
use rustix::fs::{Access, AtFlags, StatVfsMountFlags, accessat, statvfs};
use rustix::process::{Resource, getrlimit};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

/// A trace point of the block layer, below tracefs; where it can be switched on, all can.
const TRACE_POINT: &str = "events/block/block_rq_issue/enable";
const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// What is allowed, or why it is not.
#[derive(Clone, Debug)]
pub struct Rights {
    /// A ring of io_uring can be set up.
    pub io_uring: Result<(), IoUringDenied>,
    /// What would allow io_uring; `None` where it is allowed, and where nothing here would help.
    pub io_uring_advice: Option<&'static str>,
    /// A context of libaio can be set up.
    pub libaio: Known<()>,
    /// `/sys` is mounted read-only, as in a container, so that its settings can only be changed outside.
    pub sys_is_read_only: bool,
    /// A cgroup of our own can be made: the version of its hierarchy.
    pub cgroup: Known<u8>,
    /// Trace points of the block layer can be switched on.
    pub tracing: Known<()>,
    /// Devices, by kernel name, that can be opened for reading.
    pub devices: Vec<(String, Known<()>)>,
    /// Files that may be open at once; `None` where there is no limit.
    pub open_files: Option<u64>,
    /// Memory that may be locked, in bytes; `None` where there is no limit or we are exempt.
    pub locked_bytes: Option<u64>,
}

/// Finds out, for these devices too.
pub fn look<'a>(root: &Root, devices: impl Iterator<Item = &'a str>) -> Rights {
    let exempt = rustix::process::geteuid().is_root();
    let io_uring = async_io::io_uring(root);
    Rights {
        io_uring_advice: io_uring.as_ref().err().and_then(|denied| denied.advice(root)),
        io_uring,
        libaio: async_io::libaio(),
        sys_is_read_only: statvfs(root.path("/sys"))
            .is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::RDONLY)),
        cgroup: cgroup::allowed(root),
        tracing: tracing(),
        devices: devices.map(|name| (name.to_owned(), readable(root, name))).collect(),
        open_files: getrlimit(Resource::Nofile).current,
        locked_bytes: getrlimit(Resource::Memlock).current.filter(|_| !exempt),
    }
}

/// As `capture` and `watch` find it: where tracefs is not mounted, root gets a mount of its own that no path shows.
fn tracing() -> Known<()> {
    let tracefs = sys::tracefs::directory()?;
    accessat(&tracefs, TRACE_POINT, Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|e| format!("{TRACE_POINT} of tracefs: {}", describe(&e.into())))
}

/// Opening does no I/O to a disk; whether it is allowed is more than its permission bits say.
fn readable(root: &Root, name: &str) -> Known<()> {
    // Slashes in names of devices are exclamation marks in /sys.
    let path = root.path(&format!("/dev/{}", name.replace('!', "/")));
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(&path);
    opened.map(drop).map_err(|e| format!("{}: {}", model::name::shown(&path), describe(&e)))
}

#[test]
fn what_is_not_there_is_not_allowed_and_says_so() {
    let rights = look(&Root::at("/nonexistent-prefix".into()), ["none"].into_iter());
    assert!(rights.cgroup.is_err());
    assert_eq!(rights.tracing.is_ok(), crate::tracer::Tracer::new(1 << 16).is_ok(), "{:?}", rights.tracing);
    assert!(rights.devices[0].1.as_ref().is_err_and(|why| why.contains("no such file")), "{rights:?}");
    assert!(rights.open_files.is_none_or(|n| n > 0));
    println!("{:?}", look(&Root::real(), ["loop0"].into_iter()));
}
