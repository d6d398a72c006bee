//! How a process has files on given devices open: past the page cache, synchronously, mapped; and whether it has a ring of io_uring.
//!
//! For: descriptors and mappings at one moment (`proc_pid_fdinfo(5)`, `proc_pid_maps(5)`). Not for: which of them its I/O goes through:
//! that nothing in `/proc` tells.

use crate::identity;
use crate::on_devices::OnDevices;
use crate::root::Root;
use crate::writers::mapping;
use model::Known;
use model::machine::Identity;
use model::watch::Open;
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use sys::open_flags::O_DSYNC;

/// Descriptors that are looked at; a process with more is told with what these say.
const MOST_DESCRIPTORS: usize = 256;
/// Threads that are looked at.
const MOST_THREADS: usize = 64;
/// Where the link of a ring leads.
const RING: &str = "anon_inode:[io_uring]";

/// Looks at a process.
///
/// # Errors
/// Why its descriptors may not be seen.
pub fn open_flags_of_process(root: &Root, pid: u32, on: &OnDevices) -> Known<Open> {
    let dir = format!("/proc/{pid}");
    let names = root.list(&format!("{dir}/fd"))?;
    let mut open = Open::default();
    let mut left = MOST_DESCRIPTORS;
    table(root, &dir, &names, on, &mut open, &mut left);
    // Threads may have descriptors of their own; a table with the same numbers is taken for the same one.
    for task in root.list(&format!("{dir}/task")).unwrap_or_default().iter().take(MOST_THREADS) {
        let task = format!("{dir}/task/{task}");
        let own = root.list(&format!("{task}/fd")).unwrap_or_default();
        if own != names {
            table(root, &task, &own, on, &mut open, &mut left);
        }
    }
    open.mmap = root.read(&format!("{dir}/maps")).is_ok_and(|text| is_mapped(&text, on));
    Ok(open)
}

fn table(root: &Root, dir: &str, names: &[String], on: &OnDevices, open: &mut Open, left: &mut usize) {
    for name in names {
        let Some(less) = left.checked_sub(1) else {
            open.cut = true;
            return;
        };
        *left = less;
        descriptor(root, dir, name, on, open);
    }
}

fn descriptor(root: &Root, dir: &str, name: &str, on: &OnDevices, open: &mut Open) {
    let at = format!("{dir}/fd/{name}");
    let Ok(leads_to) = root.link(&at) else { return };
    if leads_to == RING {
        open.io_uring = true;
    }
    // Sockets, pipes and other nameless things have no path.
    if !leads_to.starts_with('/') {
        return;
    }
    let Ok(what) = identity::remembered(&root.path(&at)) else { return };
    let info = root.read(&format!("{dir}/fdinfo/{name}")).unwrap_or_default();
    let word = |key: &str| info.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
    let is_here = match &what {
        Identity::Device { number, .. } => on.is_device(number),
        Identity::File { device, .. } => on.holds(device, word("mnt_id:").and_then(|id| id.parse().ok())),
    };
    let flags = word("flags:").and_then(|f| u32::from_str_radix(f, 8).ok());
    let Some(flags) = flags.map(OFlags::from_bits_retain).filter(|_| is_here) else { return };
    // A directory, and what is open as a name only, move no data.
    if flags.intersects(OFlags::DIRECTORY | OFlags::PATH) {
        return;
    }
    open.files += 1;
    let direct = flags.contains(OFlags::DIRECT);
    open.direct |= direct;
    open.buffered |= !direct;
    open.sync |= flags.bits().cast_signed() & O_DSYNC != 0;
}

/// Whether a file there is mapped of which nothing is executed: programs and libraries are mapped everywhere.
fn is_mapped(maps: &str, on: &OnDevices) -> bool {
    let all = || maps.lines().filter_map(mapping);
    let number = |file: &Identity| match file {
        Identity::File { device, inode } if *inode > 0 => Some((device.clone(), *inode)),
        _ => None,
    };
    let executed = all().filter(|m| m.permissions.contains('x'));
    let executed: BTreeSet<(String, u64)> = executed.filter_map(|m| number(&m.file)).collect();
    let mut others = all().filter_map(|m| number(&m.file)).filter(|file| !executed.contains(file));
    others.any(|(device, _)| on.holds(&device, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{link, put};

    /// A process with a descriptor of these flags (octal) on a watched file system, and these mappings.
    fn seen(flags: &str, maps: &str) -> Open {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put("data/file", "x");
        let number = match identity::of_path(&dir.path().join("data/file")) {
            Ok(Identity::File { device, .. }) => device,
            other => panic!("{other:?}"),
        };
        put("sys/devices/block/sda/dev", &number);
        link(dir.path(), "../../devices/block/sda", &format!("sys/dev/block/{number}"));
        link(dir.path(), "../../devices/block/sda", "sys/class/block/sda");
        put("proc/self/mountinfo", &format!("20 1 {number} / / rw - ext4 /dev/sda rw\n"));
        link(dir.path(), &dir.path().join("data/file").to_string_lossy(), "proc/7/fd/3");
        put("proc/7/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t20\nino:\t5\n"));
        link(dir.path(), "pipe:[11]", "proc/7/fd/4");
        link(dir.path(), "socket:[12]", "proc/7/fd/5");
        link(dir.path(), "socket:[12]", "proc/7/task/7/fd/3");
        link(dir.path(), "socket:[12]", "proc/7/task/7/fd/4");
        link(dir.path(), "socket:[12]", "proc/7/task/7/fd/5");
        link(dir.path(), RING, "proc/7/task/8/fd/9");
        put("proc/7/maps", &maps.replace("$DEVICE", &hex(&number)));
        let root = Root::at(dir.path().to_owned());
        let on = OnDevices::new(&root, vec![number]);
        open_flags_of_process(&root, 7, &on).unwrap_or_else(|e| panic!("{e}"))
    }

    fn hex(number: &str) -> String {
        let (major, minor) = number.split_once(':').unwrap_or_default();
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        format!("{:02x}:{:02x}", number(major), number(minor))
    }

    #[test]
    fn flags_of_descriptors_are_told_in_words_and_sockets_are_no_files() {
        let direct = format!("{:o}", (OFlags::RDWR | OFlags::DIRECT).bits() | O_DSYNC.cast_unsigned());
        assert_eq!(seen(&direct, "").describe(), "direct, sync, io_uring");
        assert_eq!(seen("0100000", "").describe(), "buffered, io_uring");
        let directory = format!("{:o}", OFlags::DIRECTORY.bits());
        assert_eq!(seen(&directory, "").describe(), "no file open here, io_uring");
        assert_eq!(seen("junk", "").files, 0);
    }

    #[test]
    fn what_is_mapped_and_not_executed_is_told() {
        let line =
            |permissions: &str, inode: u32| format!("7f00-7f01 {permissions} 0 $DEVICE {inode}   /data/x\n");
        assert!(seen("0100000", &line("rw-s", 42)).mmap);
        // A library has parts that are not executed.
        assert!(!seen("0100000", &(line("r--p", 42) + &line("r-xp", 42))).mmap);
        assert!(!seen("0100000", "7f00-7f01 rw-p 0 00:00 0 \njunk\n").mmap);
    }

    #[test]
    fn what_may_not_be_seen_is_a_reason() {
        let nowhere = Root::at("/nonexistent-prefix".into());
        assert!(open_flags_of_process(&nowhere, 7, &OnDevices::default()).is_err());
    }
}
