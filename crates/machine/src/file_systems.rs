//! File systems: what is mounted where, what kind each is, and which file holds the data of an overlay's file.
//!
//! 1. The kind is the `f_type` of `fstatfs(2)`. Synthetic file systems are never measured. On shared file systems, other machines or
//!    programs change files without this kernel seeing it. Some file systems do not change the times of a file with every write.
//! 2. Mounts come from `mountinfo` (`proc_pid_mountinfo(5)`), of this and of other mount namespaces.
//! 3. Overlays, and programs that mirror a directory (FUSE, eCryptfs), show files under other device numbers, so one file has two
//!    identities. [`beneath`] and `data_path` find the identity of the file that holds the data.

use crate::error::{MachineError, describe};
use crate::identity;
use crate::root::Root;
use model::evidence::SECTOR_BYTES;
use model::machine::Identity;
use model::{Known, name};
use rustix::fs::{Access, Mode, OFlags, access, fstatfs, statfs};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Synthetic file systems, by their numbers (`include/uapi/linux/magic.h` and the kernel's sources). Reading or writing their files
/// queries or changes the kernel. The lengths of these files mean nothing: a full file may look empty.
const SYNTHETIC: [(u64, &str); 36] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x5a3c_69f0, "apparmorfs"),
    (0x6265_6570, "configfs"),
    (0xcafe_4a11, "bpf"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0x1cd1, "devpts"),
    (0x1980_0202, "mqueue"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x6573_5543, "fusectl"),
    (0x0765_5821, "resctrl"),
    (0x6e73_6673, "nsfs"),
    (0x5049_4446, "pidfs"),
    (0x5049_5045, "pipefs"),
    (0x534f_434b, "sockfs"),
    (0x0904_1934, "anon_inodefs"),
    (0x444d_4142, "dmabuf"),
    (0x5345_434d, "secretmem"),
    (0x454d_444d, "devmem"),
    (0x6759_6969, "rpc_pipefs"),
    (0x6e66_7364, "nfsd"),
    (0x6c6f_6f70, "binder"),
    (0x0a64_7361, "functionfs"),
    (0xaee7_1ee7, "gadgetfs"),
    (0x76a9_f425, "ocfs2_dlmfs"),
    (0xabba_1974, "xenfs"),
    (0x9fa1, "openpromfs"),
    // Files of hugetlbfs are huge pages of memory, and every write call fails.
    (0x9584_58f6, "hugetlbfs"),
];

/// File systems that can have users whom this kernel does not see: NFS, CIFS, SMB1 to SMB3, Ceph, 9P, FUSE, AFS, Coda, OCFS2, GFS2, Lustre,
/// file systems of hypervisors and clusters (vboxsf, vmhgfs, prl_fs, GPFS, OrangeFS, BeeGFS, PanFS), and eCryptfs, which shows the files of
/// another directory under other device numbers.
const SHARED: [u64; 20] = [
    0x6969,
    0xff53_4d42,
    0xfe53_4d42,
    0x517b,
    0x00c3_6400,
    0x0102_1997,
    0x6573_5546,
    0x5346_414f,
    0x7375_7245,
    0x7461_636f,
    0x0116_1970,
    0x0bd0_0bd0,
    0x786f_4256,
    0xbacb_acbc,
    0x7c7c_6673,
    0x4750_4653,
    0x2003_0528,
    0x1983_0326,
    0xaad7_aaea,
    0xf15f,
];

/// File systems in memory: tmpfs and ramfs. A program that maps a file there, reads a page and then writes it
/// changes no time of the file.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// ZFS, f2fs and bcachefs: a compressed file has only its compressed bytes allocated.
const ALLOCATE_COMPRESSED: [u64; 3] = [0x2fc1_2fc1, 0xf2f5_2010, 0xca45_1a4e];

/// Whether the allocated bytes of a file may be fewer than its data; false if the file system is unknown.
pub(crate) fn allocates_compressed(file: &File) -> bool {
    kind(file).is_ok_and(|kind| ALLOCATE_COMPRESSED.contains(&kind))
}

/// Returns the `f_type` of the file system that a file is on.
fn kind(file: &File) -> Result<u64, String> {
    let metadata = fstatfs(file).map_err(|e| describe(&e.into()))?;
    Ok(metadata.f_type as u64 & 0xffff_ffff)
}

/// Returns whether other machines, or programs that serve the file system, can use and change a file without
/// this kernel seeing it.
pub(crate) fn is_shared(file: &File) -> Result<bool, String> {
    Ok(SHARED.contains(&kind(file)?))
}

/// Returns whether a file is on a file system in memory. False also if the file system is unknown.
pub(crate) fn is_in_memory(file: &File) -> bool {
    kind(file).is_ok_and(|kind| IN_MEMORY.contains(&kind))
}

/// Returns whether every change of a file updates its times. False also if the file system is unknown.
pub(crate) fn shows_every_change(file: &File) -> bool {
    is_shared(file) == Ok(false) && !is_in_memory(file)
}

/// Returns the name of the synthetic file system that contains an open file or directory; `None` on any other
/// file system.
///
/// # Errors
///
/// Why the kernel does not report the file system.
pub fn synthetic(file: &File) -> Result<Option<&'static str>, String> {
    let kind = kind(file)?;
    Ok(SYNTHETIC.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name))
}

/// Refuses an open file or directory on a synthetic file system. `path` is its name as the user typed it.
///
/// # Errors
/// [`MachineError::Usage`] with the file system and what to type instead; [`MachineError::Refused`] if the
/// file system cannot be determined.
pub fn refuse_synthetic(path: &Path, file: &File) -> Result<(), MachineError> {
    let shown = name::shown(path);
    match synthetic(file) {
        Ok(None) => Ok(()),
        Ok(Some(system)) => Err(MachineError::Usage(format!(
            "{shown} is on {system}, where files are interfaces of the kernel and not stored data, so it is neither measured nor written; \
             name a file, a directory or a block device on storage"
        ))),
        Err(why) => Err(MachineError::Refused(format!("the file system of {shown} is unknown ({why})"))),
    }
}

/// Refuses a path on a synthetic file system, like [`refuse_synthetic`], without opening it for reading:
/// opening some of these files makes the kernel act. `typed` is the path as the user typed it.
///
/// # Errors
///
/// As [`refuse_synthetic`], and if the path does not exist.
pub fn refuse_synthetic_at(typed: &Path, path: &Path) -> Result<(), MachineError> {
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let opened = opened.map_err(|e| MachineError::at(typed, "accessed", &e.into()))?;
    refuse_synthetic(typed, &File::from(opened))
}

/// Refuses a directory in which this user cannot make a file. `typed` is the path as the user typed it.
///
/// # Errors
///
/// Why no file can be made there.
pub fn refuse_unwritable(typed: &Path, dir: &Path) -> Result<(), MachineError> {
    match access(dir, Access::WRITE_OK | Access::EXEC_OK) {
        Err(e @ (Errno::ACCESS | Errno::ROFS)) => Err(MachineError::at(typed, "written to", &e.into())),
        // If another reason prevents a file here, creating the file reports it.
        _ => Ok(()),
    }
}

/// One line of `/proc/PID/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Mount id, as statx reports it.
    pub id: u64,
    /// `major:minor` as `stat` shows it for files of this mount.
    pub number: String,
    /// Path, inside the file system, of the directory that is mounted; `/` for the whole file system.
    pub root: String,
    /// Path of the mount point, with the kernel's escapes undone.
    pub point: String,
    /// Options of the mount, followed by those of its super block.
    pub options: String,
    /// Only the options of the super block.
    pub super_options: String,
    /// Type of the file system.
    pub kind: String,
    /// Source of the mount, such as a device.
    pub source: String,
}

/// Returns the mounts of this process, in the order in which they were made.
///
/// # Errors
/// Why `/proc/self/mountinfo` cannot be read.
pub fn read(root: &Root) -> Known<Vec<Mount>> {
    root.read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// Returns the mounts of all other visible mount namespaces, such as those of containers, each with the id of a process in it. A process
/// with another root (chroot) sees only the mounts below that root, so a namespace is read once for each root of its processes.
///
/// # Errors
/// Why the processes cannot be listed, or the mounts of a visible namespace cannot be read.
pub(crate) fn other_namespaces(root: &Root) -> Known<Vec<(u32, Vec<Mount>)>> {
    let link = |process: &str, name: &str| root.link(&format!("/proc/{process}/{name}")).ok();
    let namespace = |process: &str| Some((link(process, "ns/mnt")?, link(process, "root")));
    let mut known: BTreeSet<(String, Option<String>)> = namespace("self").into_iter().collect();
    let mut unread = BTreeMap::new();
    let mut found = Vec::new();
    let processes = root.list("/proc").map_err(|why| format!("/proc: {why}"))?;
    for process in processes.iter().filter_map(|p| p.parse().ok()) {
        let Some(new) = namespace(&format!("{process}")).filter(|own| !known.contains(own)) else { continue };
        let path = format!("/proc/{process}/mountinfo");
        match root.read(&path) {
            Ok(text) => {
                unread.remove(&new);
                known.insert(new);
                found.push((process, parse(&text)));
            }
            // If a process ends, the next one in the same namespace is read instead.
            Err(_) if !root.has(&path) || namespace(&format!("{process}")).as_ref() != Some(&new) => {}
            Err(why) => {
                unread.insert(new, format!("{path}: {why}"));
            }
        }
    }
    unread.into_values().next().map_or(Ok(found), Err)
}

/// Parses the text of `mountinfo`. Ignores lines that are not mounts.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Any number of optional fields precede a lone dash.
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
        options: join_options(options, &super_options),
        super_options,
        kind: unescape(kind),
        source: unescape(source),
    })
}

/// Joins the mount options and those of the super block, each once.
fn join_options(mount: &str, super_options: &str) -> String {
    let mount = unescape(mount);
    let mut all: Vec<&str> = mount.split(',').collect();
    for option in super_options.split(',').filter(|o| !o.is_empty()) {
        if !all.contains(&option) {
            all.push(option);
        }
    }
    all.join(",")
}

/// Replaces octal escapes such as `\040`: space, tab, line feed, backslash and others.
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
    pub fn contains(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.point.trim_end_matches('/'));
        rest.is_some_and(|r| r.is_empty() || r.starts_with('/'))
    }
}

/// Returns the mount of a file: the mount with the `id` that statx reports. Without an id: of the mounts that have the file's device number
/// and contain the path, the one with the longest mount point.
pub(crate) fn mount_of<'m>(
    mounts: &'m [Mount],
    id: Option<u64>,
    number: &str,
    path: &str,
) -> Option<&'m Mount> {
    if let Some(mount) = mounts.iter().find(|m| Some(m.id) == id) {
        return Some(mount);
    }
    // The last of several mounts at one point hides the others. No mount shows the device number of a btrfs subvolume. If no mount fits,
    // use the last mount with the number, or else the mount with the longest mount point above the path.
    let longest = |m: &&Mount| m.point.len();
    let same = || mounts.iter().filter(|m| m.number == number);
    let over = || mounts.iter().filter(|m| m.contains(path));
    same()
        .filter(|m| m.contains(path))
        .max_by_key(longest)
        .or_else(|| same().next_back())
        .or_else(|| over().max_by_key(longest))
}

/// Maximum number of stacked overlays that are followed.
pub(crate) const MAX_OVERLAYS: usize = 8;
/// `OVERLAYFS_SUPER_MAGIC` of `include/uapi/linux/magic.h`.
pub(crate) const OVERLAY_MAGIC: u64 = 0x794c_7630;
/// `FUSE_SUPER_MAGIC` of `include/uapi/linux/magic.h`.
const FUSE_MAGIC: u64 = 0x6573_5546;
/// `ECRYPTFS_SUPER_MAGIC` of `include/uapi/linux/magic.h`.
const ECRYPTFS_MAGIC: u64 = 0xf15f;

/// Returns the file that holds the data of a path in an overlay. If that file is in an overlay too,
/// the file that holds its data follows, and so on. Empty if the path is in no overlay.
///
/// # Errors
///
/// Why these files are not visible.
pub fn beneath(root: &Root, path: &Path) -> Known<Vec<PathBuf>> {
    let mut all = Vec::new();
    // `path` may be `/proc/self/fd/N`, which is a link to the path of the open file.
    let mut at = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    while magic(&at)? == OVERLAY_MAGIC {
        if all.len() == MAX_OVERLAYS {
            return Err("too many overlays on top of each other".into());
        }
        let id = mount_id(&at).ok_or("the kernel does not report the mount of the file")?;
        let mounts = read(root).map_err(|why| format!("/proc/self/mountinfo: {why}"))?;
        let mount = mounts
            .iter()
            .find(|m| m.id == id)
            .ok_or("the mount of the file is not visible to this process")?;
        at = layer_file(root, mount, &at).ok_or_else(|| hidden_reason(mount))?;
        all.push(at.clone());
    }
    Ok(all)
}

/// Returns the identity of the file at a path, and of each file that holds its data. Two paths with a common
/// identity are the same file.
pub fn identities(root: &Root, path: &Path) -> Vec<Identity> {
    let beneath = beneath(root, path).unwrap_or_default();
    std::iter::once(path.to_owned())
        .chain(beneath)
        .filter_map(|path| identity::from_path(&path).ok())
        .collect()
}

/// Returns why the directories of an overlay cannot be found.
pub(crate) fn hidden_reason(mount: &Mount) -> String {
    let dirs = directories(&mount.super_options);
    if dirs.iter().any(|dir| !dir.starts_with('/')) {
        return "overlay: its mount options have relative paths of its directories, which cannot be followed from here".into();
    }
    "overlay: its directories cannot be seen from here (as in a container)".into()
}

/// Returns the file of the same name in the directory that a FUSE or eCryptfs file system mirrors. Both files usually hold the same data,
/// but users of the returned file are not visible on the FUSE or eCryptfs mount. `None` if there is no such file, as with sshfs.
pub(crate) fn mirrored_file(root: &Root, path: &Path) -> Option<PathBuf> {
    let at = path.canonicalize().ok()?;
    if !matches!(magic(&at), Ok(FUSE_MAGIC | ECRYPTFS_MAGIC)) {
        return None;
    }
    let id = mount_id(&at)?;
    let mounts = read(root).ok()?;
    let mount = mounts.iter().find(|m| m.id == id)?;
    first_existing(root, mount, &at, vec![mount.source.clone()])
}

fn magic(path: &Path) -> Known<u64> {
    let metadata = statfs(path).map_err(|e| describe(&e.into()))?;
    Ok(metadata.f_type as u64 & 0xffff_ffff)
}

fn mount_id(path: &Path) -> Option<u64> {
    identity::status_by_path(path).ok()?.mount_id
}

/// Returns the file that holds the data of a path in an overlay: the one in the first directory of the overlay that has the path. The upper
/// directory precedes the lower ones. `None` if no directory is visible: in a container the directory names lead back into the overlay
/// itself.
pub(crate) fn layer_file(root: &Root, mount: &Mount, path: &Path) -> Option<PathBuf> {
    first_existing(root, mount, path, directories(&mount.super_options))
}

fn first_existing(root: &Root, mount: &Mount, path: &Path, directories: Vec<String>) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let inside = whole.strip_prefix(&mount.point).ok()?;
    // If only a part of the overlay is mounted, `mount.root` is the path of that part inside the overlay.
    let inside = Path::new(mount.root.trim_start_matches('/')).join(inside);
    let found_path = directories.into_iter().filter(|dir| dir.starts_with('/'));
    let found_path = found_path.map(|dir| root.path(&dir).join(&inside)).find(|path| path.exists())?;
    (mount_id(&found_path) != Some(mount.id)).then_some(found_path)
}

/// Returns the path outside of an overlay that holds the data of a path inside of it.
///
/// * A regular file: the file of that name in the highest directory that has it. Opening the path for writing
///   copies the file to the upper directory.
/// * A directory: the upper directory of the overlay, because new files are created there.
///
/// # Errors
/// Why the path is not visible, or why the file at that path is possibly not the one that the overlay shows.
pub(crate) fn data_path(root: &Root, mount: &Mount, path: &Path) -> Known<PathBuf> {
    let upper = directories(&mount.super_options).into_iter().next().filter(|_| has_upper(mount));
    let upper = upper.filter(|dir| dir.starts_with('/')).map(|dir| root.path(&dir));
    if !path.is_file()
        && let Some(upper) = &upper
    {
        let is_outside = upper.exists() && mount_id(upper) != Some(mount.id);
        return if is_outside { Ok(upper.clone()) } else { Err(hidden_reason(mount)) };
    }
    let found_path = layer_file(root, mount, path).ok_or_else(|| hidden_reason(mount))?;
    if let (Ok(shown), Ok(found)) = (path.metadata(), found_path.metadata())
        && shown.is_file()
    {
        let in_upper = upper.is_some_and(|upper| found_path.starts_with(upper));
        doubt(root, mount, &shown, &found, in_upper).map_or(Ok(()), Err)?;
    }
    Ok(found_path)
}

/// Returns why the file of the same name in an overlay's directories possibly does not hold the data of the file that the overlay shows;
/// `None` without a doubt.
fn doubt(root: &Root, mount: &Mount, shown: &Metadata, found: &Metadata, in_upper: bool) -> Option<String> {
    let size_and_time = |file: &Metadata| (file.len(), file.mtime(), file.mtime_nsec());
    if size_and_time(shown) != size_and_time(found) {
        return Some(
            "overlay: the file of the same name in the overlay's directories has another size or time: it is being written, or it is \
             another file because a directory above it was renamed"
                .into(),
        );
    }
    if is_on(root, mount, "metacopy") && found.blocks() * SECTOR_BYTES < found.len() {
        return Some(
            "overlay: with metacopy a file may have its attributes in one directory and its data in another"
                .into(),
        );
    }
    if is_on(root, mount, "index") && !in_upper && found.nlink() > 1 {
        return Some(
            "overlay: with index, a file with several names may have been copied to the upper directory under another name".into(),
        );
    }
    None
}

/// Returns whether an option of an overlay is on. The mount options list an option only if its value differs from the default of the kernel
/// module.
fn is_on(root: &Root, mount: &Mount, option: &str) -> bool {
    let typed =
        mount.super_options.split(',').filter_map(|o| o.split_once('=')).find(|(key, _)| *key == option);
    match typed {
        Some((_, value)) => value == "on",
        None => root.word(&format!("/sys/module/overlay/parameters/{option}")).as_deref() == Some("Y"),
    }
}

/// Whether an overlay has an upper directory, and so is writable.
fn has_upper(mount: &Mount) -> bool {
    mount.super_options.split(',').any(|o| o.starts_with("upperdir="))
}

/// Returns the directories of an overlay: the upper one, then the lower ones from the top.
pub(crate) fn directories(options: &str) -> Vec<String> {
    let mut upper = Vec::new();
    let mut lower = Vec::new();
    for (key, value) in options.split(',').filter_map(|o| o.split_once('=')) {
        match key {
            "upperdir" => upper.push(value.to_owned()),
            "lowerdir" | "lowerdir+" => lower.extend(value.split(':').map(str::to_owned)),
            _ => {}
        }
    }
    upper.extend(lower);
    upper
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
    assert!(mounts[1].contains("/mnt/with space/x") && !mounts[1].contains("/mnt/with spaces"));
    assert!(mounts[0].contains("/") && mounts[0].contains("/etc"));
}

#[test]
fn invalid_lines_are_left_out() {
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
fn a_namespace_is_read_through_another_process_if_the_first_is_gone() {
    use crate::fixture::{link, put};
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for (process, namespace) in [("self", 1), ("1", 1), ("10", 2), ("11", 2), ("12", 2), ("20", 3)] {
        link(dir.path(), &format!("mnt:[{namespace}]"), &format!("proc/{process}/ns/mnt"));
    }
    // Processes 10 and 20 ended between the two readings.
    for process in [11, 12] {
        put(dir.path(), &format!("proc/{process}/mountinfo"), "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
    }
    let root = Root::at(dir.path().to_owned());
    let seen = |found: Vec<(u32, Vec<Mount>)>| -> Vec<(u32, usize)> {
        found.iter().map(|(process, mounts)| (*process, mounts.len())).collect()
    };
    assert_eq!(other_namespaces(&root).map(seen), Ok(vec![(11, 1)]));
    // A directory in place of the file makes reading fail. Another process of the same namespace may show its mounts.
    put(dir.path(), "proc/10/mountinfo/unreadable", "");
    assert_eq!(other_namespaces(&root).map(seen), Ok(vec![(11, 1)]));
    put(dir.path(), "proc/20/mountinfo/unreadable", "");
    assert!(other_namespaces(&root).is_err_and(|why| why.contains("/proc/20/mountinfo")));
    assert!(other_namespaces(&Root::at("/nonexistent-prefix".into())).is_err());
}

#[test]
fn a_chrooted_process_does_not_represent_its_namespace() {
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
    let found = other_namespaces(&Root::at(dir.path().to_owned())).unwrap_or_else(|e| panic!("{e}"));
    let seen: Vec<_> = found.iter().map(|(process, mounts)| (*process, mounts.len())).collect();
    assert_eq!(seen, [(10, 0), (11, 1), (13, 0)]);
}

#[test]
fn overlays_name_their_directories_from_the_top() {
    let options = "rw,lowerdir=/c:/b:/a,upperdir=/up,workdir=/work";
    assert_eq!(directories(options), ["/up", "/c", "/b", "/a"]);
    assert_eq!(directories("ro,lowerdir+=/x,lowerdir+=/y"), ["/x", "/y"]);
}

#[test]
fn the_highest_directory_that_has_a_file_wins() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    crate::fixture::put(dir.path(), "lower/sub/both", "x");
    crate::fixture::put(dir.path(), "lower/sub/low", "x");
    crate::fixture::put(dir.path(), "upper/sub/both", "x");
    let mounts = parse(
        "1 0 0:40 / /m rw - overlay o rw,lowerdir=/lower,upperdir=/upper\n\
         2 0 0:40 /sub /bound rw - overlay o rw,lowerdir=/lower,upperdir=/upper\n\
         3 0 0:41 / /r rw - overlay o rw,lowerdir=lower\n",
    );
    let layered = |at: usize, path: &str| layer_file(&root, &mounts[at], Path::new(path));
    let is = |path: &str| Some(dir.path().join(path));
    assert_eq!(layered(0, "/m/sub/both"), is("upper/sub/both"));
    assert_eq!(layered(0, "/m/sub/low"), is("lower/sub/low"));
    assert_eq!(layered(1, "/bound/both"), is("upper/sub/both"));
    assert_eq!(
        (layered(0, "/m/none"), layered(0, "/elsewhere"), layered(2, "/r/sub/low")),
        (None, None, None)
    );
    assert!(
        hidden_reason(&mounts[2]).contains("relative") && hidden_reason(&mounts[0]).contains("container")
    );
    assert_eq!(beneath(&root, dir.path()), Ok(Vec::new()), "in no overlay");
}

#[test]
fn new_files_are_on_the_upper_directory_and_doubtful_files_are_unresolved() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    let at = |name: &str| dir.path().join(name);
    for name in ["lower/sub/file", "other"] {
        crate::fixture::put(dir.path(), name, "x");
    }
    std::fs::create_dir_all(at("upper")).unwrap_or_else(|e| panic!("{e}"));
    // In this test nothing is mounted, so the lower directory serves as the merged one.
    let mount = |options: &str| {
        let point = at("lower").display().to_string();
        parse(&format!("1 0 0:40 / {point} rw - overlay o {options}")).remove(0)
    };
    let usual = mount("rw,lowerdir=/lower,upperdir=/upper,workdir=/w");
    assert_eq!(
        data_path(&root, &usual, &at("lower/sub")),
        Ok(at("upper")),
        "no upper directory has the directory"
    );
    assert_eq!(data_path(&root, &usual, &at("lower/sub/file")), Ok(at("lower/sub/file")));
    let read_only = mount("ro,lowerdir=/lower:/second");
    assert_eq!(data_path(&root, &read_only, &at("lower/sub")), Ok(at("lower/sub")));
    let hidden = mount("rw,lowerdir=/lower,upperdir=/elsewhere,workdir=/w");
    assert!(data_path(&root, &hidden, &at("lower/sub")).is_err_and(|why| why.contains("container")));

    // A file with two names, one whose data are elsewhere, and another file with the same name.
    let metadata = |name: &str| at(name).metadata().unwrap_or_else(|e| panic!("{e}"));
    std::fs::hard_link(at("lower/sub/file"), at("link")).unwrap_or_else(|e| panic!("{e}"));
    let (two_names, index) = (metadata("link"), mount("rw,lowerdir=/lower,upperdir=/upper,index=on"));
    assert!(doubt(&root, &index, &two_names, &two_names, false).is_some_and(|why| why.contains("index")));
    assert_eq!(doubt(&root, &index, &two_names, &two_names, true), None);
    assert_eq!(doubt(&root, &usual, &two_names, &two_names, false), None);
    let file = std::fs::File::create(at("sparse")).unwrap_or_else(|e| panic!("{e}"));
    file.set_len(1 << 20).unwrap_or_else(|e| panic!("{e}"));
    crate::fixture::put(dir.path(), "sys/module/overlay/parameters/metacopy", "Y\n");
    let sparse = metadata("sparse");
    assert!(doubt(&root, &usual, &sparse, &sparse, true).is_some_and(|why| why.contains("metacopy")));
    let off = mount("rw,lowerdir=/lower,upperdir=/upper,metacopy=off");
    assert_eq!(doubt(&root, &off, &sparse, &sparse, true), None);
    assert!(
        doubt(&root, &off, &sparse, &metadata("other"), true).is_some_and(|why| why.contains("another file"))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_refused_by_their_file_system_and_stored_files_are_not() -> std::io::Result<()>
    {
        let dir = tempfile::tempdir()?;
        let link = dir.path().join("an-ordinary-name");
        std::os::unix::fs::symlink("/proc/self/status", &link)?;
        for (path, system) in
            [("/proc/version", "proc"), ("/sys/kernel", "sysfs"), ("/proc/self/ns/pid", "nsfs")]
        {
            let refusal = refuse_synthetic_at(Path::new(path), Path::new(path));
            assert!(
                refusal.is_err_and(|e| matches!(&e, MachineError::Usage(why) if why.contains(system))),
                "{path}"
            );
        }
        assert!(refuse_synthetic_at(&link, &link).is_err_and(|e| e.to_string().contains("an-ordinary-name")));
        assert_eq!(refuse_synthetic_at(dir.path(), dir.path()), Ok(()));
        Ok(())
    }
}
