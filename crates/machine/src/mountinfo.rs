//! What is mounted where: the parser of `/proc/self/mountinfo`.
//!
//! For: mounts as data. Not for: following them to devices. Format: `proc_pid_mountinfo(5)`.

use crate::root::Root;
use model::Known;
use std::collections::BTreeSet;

/// One mount of this process's name space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its id, as statx gives it.
    pub id: u64,
    /// `major:minor` as `stat` shows it for files here.
    pub number: String,
    /// Which directory of the file system is mounted.
    pub root: String,
    /// Where.
    pub point: String,
    /// Options of the mount and, after a comma, of its super block.
    pub options: String,
    /// Options of the super block alone.
    pub super_options: String,
    /// Type of file system.
    pub kind: String,
    /// What is mounted.
    pub source: String,
}

/// The mounts of this process, in the order in which they were made.
///
/// # Errors
/// Why the file cannot be read.
pub fn read(root: &Root) -> Known<Vec<Mount>> {
    root.read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// The mounts of the other mount namespaces that can be seen, as containers have them: each with a process that is in it. Of one in which
/// processes have roots of their own (chroot), that of each root, since a process is shown only what lies below its own.
pub(crate) fn elsewhere(root: &Root) -> Vec<(u32, Vec<Mount>)> {
    let link = |process: &str, name: &str| root.link(&format!("/proc/{process}/{name}")).ok();
    let space = |process: &str| link(process, "ns/mnt").map(|space| (space, link(process, "root")));
    let mut seen: BTreeSet<(String, Option<String>)> = space("self").into_iter().collect();
    let processes = root.list("/proc").unwrap_or_default();
    let mut found = Vec::new();
    for process in processes.iter().filter_map(|p| p.parse().ok()) {
        let Some(own) = space(&format!("{process}")).filter(|own| !seen.contains(own)) else { continue };
        // Of one that ends meanwhile nothing is seen, and the next in the same namespace is asked.
        if let Ok(text) = root.read(&format!("/proc/{process}/mountinfo")) {
            seen.insert(own);
            found.push((process, parse(&text)));
        }
    }
    found
}

/// Mounts from the text of `mountinfo`. Lines that are none are left out.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Optional fields of any number stand before a lone dash.
    let (before, after) = line.split_once(" - ")?;
    let mut left = before.split(' ');
    let id = left.next()?.parse().ok()?;
    let _parent = left.next()?;
    let (number, root, point, options) = (left.next()?, left.next()?, left.next()?, left.next()?);
    let mut right = after.split(' ');
    let (kind, source) = (right.next()?, right.next()?);
    let super_options = unescape(right.next().unwrap_or_default());
    if !number.contains(':') {
        return None;
    }
    Some(Mount {
        id,
        number: number.to_owned(),
        root: unescape(root),
        point: unescape(point),
        options: together(options, &super_options),
        super_options,
        kind: unescape(kind),
        source: unescape(source),
    })
}

/// Mount options, then those of the super block that do not stand there already.
fn together(mount: &str, of_super: &str) -> String {
    let mount = unescape(mount);
    let mut all: Vec<&str> = mount.split(',').collect();
    for option in of_super.split(',').filter(|o| !o.is_empty()) {
        if !all.contains(&option) {
            all.push(option);
        }
    }
    all.join(",")
}

/// Replaces `\040` and its like: space, tab, line feed, backslash and others as three octal digits.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(byte) = bytes.get(i) {
        let octal = bytes.get(i + 1..i + 4).filter(|_| *byte == b'\\').and_then(octal);
        out.push(octal.unwrap_or(*byte));
        i += if octal.is_some() { 4 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn octal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
    u8::from_str_radix(text, 8).ok()
}

impl Mount {
    /// Whether `path` is the mount point or below it.
    pub fn holds(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.point.trim_end_matches('/'));
        rest.is_some_and(|r| r.is_empty() || r.starts_with('/'))
    }
}

/// The mount of a file: by the id that statx gave, else the longest mount point over the path with its device number.
pub(crate) fn mount_of<'m>(
    mounts: &'m [Mount],
    id: Option<u64>,
    number: &str,
    path: &str,
) -> Option<&'m Mount> {
    if let Some(mount) = mounts.iter().find(|m| Some(m.id) == id) {
        return Some(mount);
    }
    // The last of equals hides the others. A subvolume of btrfs has a number that no mount shows, hence the two ways after.
    let longest = |m: &&Mount| m.point.len();
    let same = || mounts.iter().filter(|m| m.number == number);
    let over = || mounts.iter().filter(|m| m.holds(path));
    same()
        .filter(|m| m.holds(path))
        .max_by_key(longest)
        .or_else(|| same().next_back())
        .or_else(|| over().max_by_key(longest))
}

#[test]
fn the_mount_is_found_by_id_then_by_number_then_by_path() {
    let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                2 1 0:40 / /data rw - btrfs /dev/sdb rw\n\
                3 1 8:1 / /data/bind rw - ext4 /dev/sda1 rw\n";
    let mounts = parse(text);
    let id = |id, number, path| mount_of(&mounts, id, number, path).map(|m| m.id);
    assert_eq!(id(Some(2), "9:9", "/x"), Some(2));
    assert_eq!(id(None, "8:1", "/data/bind/f"), Some(3));
    assert_eq!(id(None, "8:1", "/etc"), Some(1));
    assert_eq!(id(None, "0:99", "/data/subvolume/f"), Some(2));
    assert_eq!(mount_of(&[], None, "8:1", "/"), None);
}

#[test]
fn lines_of_many_kinds_are_read() {
    let text = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                36 35 98:0 /mnt1 /mnt/with\\040space rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n\
                40 27 0:45 / /fuse rw - fuse.sshfs me@host:/a\\134b rw,user_id=0\n";
    let mounts = parse(text);
    assert_eq!(mounts.len(), 3);
    assert_eq!((mounts[0].id, mounts[0].number.as_str(), mounts[0].kind.as_str()), (27, "254:0", "ext4"));
    assert_eq!(mounts[0].options, "rw,relatime,discard");
    assert_eq!((mounts[1].root.as_str(), mounts[1].point.as_str()), ("/mnt1", "/mnt/with space"));
    assert_eq!(mounts[2].source, "me@host:/a\\b");
    assert!(mounts[1].holds("/mnt/with space/x") && !mounts[1].holds("/mnt/with spaces"));
    assert!(mounts[0].holds("/") && mounts[0].holds("/etc"));
}

#[test]
fn junk_is_left_out_without_a_panic() {
    let junk = [
        "",
        " - ",
        "1 2 3",
        "x 1 2:3 / / rw - a b c",
        "1 1 23 / / rw - a b",
        "\\",
        "\\04",
        "\\999",
        "1 2 3:4 \u{e9}\\0",
    ];
    for line in junk {
        assert_eq!(parse(line), vec![], "{line}");
    }
    assert_eq!(unescape("a\\04"), "a\\04");
    assert_eq!(unescape("\\777\u{e9}\\040"), "\\777\u{e9} ");
}

#[test]
fn a_namespace_is_read_by_way_of_another_process_where_the_first_is_gone() {
    use crate::fixture::{link, put};
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for (process, namespace) in [("self", 1), ("1", 1), ("10", 2), ("11", 2), ("12", 2), ("20", 3)] {
        link(dir.path(), &format!("mnt:[{namespace}]"), &format!("proc/{process}/ns/mnt"));
    }
    // 10 and 20 ended between the one look and the other.
    for process in [11, 12] {
        put(dir.path(), &format!("proc/{process}/mountinfo"), "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
    }
    let found = elsewhere(&Root::at(dir.path().to_owned()));
    let seen: Vec<_> = found.iter().map(|(process, mounts)| (*process, mounts.len())).collect();
    assert_eq!(seen, [(11, 1)]);
}

#[test]
fn a_process_with_a_root_of_its_own_does_not_stand_for_its_namespace() {
    use crate::fixture::{link, put};
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let line = "1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n";
    let all = [
        ("self", 1, "/", ""),
        ("10", 2, "/srv", ""),
        ("11", 2, "/", line),
        ("12", 2, "/srv", ""),
        ("13", 1, "/srv", ""),
    ];
    for (process, namespace, at, mounts) in all {
        link(dir.path(), &format!("mnt:[{namespace}]"), &format!("proc/{process}/ns/mnt"));
        link(dir.path(), at, &format!("proc/{process}/root"));
        put(dir.path(), &format!("proc/{process}/mountinfo"), mounts);
    }
    let found = elsewhere(&Root::at(dir.path().to_owned()));
    let seen: Vec<_> = found.iter().map(|(process, mounts)| (*process, mounts.len())).collect();
    assert_eq!(seen, [(10, 0), (11, 1), (13, 0)]);
}
