//! Reads small files of `/proc`, `/sys` and `/dev`, of the running machine or of a recorded copy below a directory.
//!
//! Each failure has a reason as text. Anything can be mounted over `/proc` and `/sys`. So on the running machine a path counts only if
//! the kernel's own file system is mounted there.

use crate::error::describe;
use model::Known;
use model::units::show_bytes;
use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Maximum size in bytes of a file in `/proc` or `/sys`. `/proc/PID/maps` of a large database has up to 26 MB (262,144 lines).
const MAX_FILE_BYTES: u64 = 32 << 20;
/// `PROC_SUPER_MAGIC`, which identifies the file system of `/proc`.
const PROCFS: i64 = 0x9fa0;
/// `SYSFS_MAGIC`, which identifies the file system of `/sys`.
const SYSFS: i64 = 0x6265_6572;
/// Directory of the cgroups. Other file systems are mounted below it, and `mountinfo` names them.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Directories of `/sys` that show devices. The kernel mounts nothing below them.
const DEVICES: [&str; 5] = ["block", "bus", "class", "dev", "devices"];

/// The directory below which all kernel paths are read.
#[derive(Clone, Debug)]
pub struct Root {
    prefix: PathBuf,
}

impl Root {
    /// Returns the root of the running machine.
    pub fn real() -> Self {
        Self { prefix: PathBuf::from("/") }
    }

    /// Returns the root of a recorded copy of a machine below `prefix`.
    pub fn at(prefix: PathBuf) -> Self {
        Self { prefix }
    }

    /// Returns the path to read for the kernel path `path`, which is absolute.
    pub fn path(&self, path: &str) -> PathBuf {
        self.prefix.join(path.trim_start_matches('/'))
    }

    /// Returns the path to read, or an error if the kernel's own file system is not mounted there. Another
    /// file system mounted over `/proc` or `/sys` proves nothing.
    fn genuine(&self, path: &str) -> Known<PathBuf> {
        let mut names = path.split('/').filter(|n| !n.is_empty());
        let (place, magic, name) = match (self.is_real(), names.next(), names.next()) {
            (true, Some("proc"), _) => ("/proc".to_owned(), PROCFS, "proc"),
            // Some containers mount each directory of sysfs separately.
            (true, Some("sys"), Some(dir)) if !path.starts_with(CGROUPS) => {
                (format!("/sys/{dir}"), SYSFS, "sysfs")
            }
            _ => return Ok(self.path(path)),
        };
        match statfs(&place) {
            Ok(found) if found.f_type == magic => {
                let found = self.path(path);
                if name == "sysfs"
                    && DEVICES.iter().any(|dir| place.ends_with(&format!("/{dir}")))
                    && is_covered(&found)
                {
                    return Err(format!("something is mounted over {path}"));
                }
                Ok(found)
            }
            Ok(_) => Err(format!("{place} is not on the kernel's file system {name}")),
            Err(e) => Err(describe(&e.into())),
        }
    }

    /// Returns the whole text of a file. Bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// # Errors
    /// The reason: no such file, permission denied, too large, ...
    pub fn read(&self, path: &str) -> Known<String> {
        // Most of these files fit into this buffer. The kernel reports their size as 0, and an empty vector
        // would grow in many small steps.
        let mut bytes = Vec::with_capacity(4096);
        let file = File::open(self.genuine(path)?).map_err(|e| describe(&e))?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| describe(&e))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("larger than {}", show_bytes(MAX_FILE_BYTES)));
        }
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// Returns the trimmed text of a file; `None` if the file is empty or cannot be read.
    pub fn word(&self, path: &str) -> Option<String> {
        let text = self.read(path).ok()?;
        let word = text.trim().trim_matches('\0').trim();
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// Returns all names in a directory, sorted. Bytes that are not UTF-8 are replaced by U+FFFD.
    ///
    /// # Errors
    /// Why the directory cannot be listed completely.
    pub fn list(&self, path: &str) -> Known<Vec<String>> {
        let entries = fs::read_dir(self.genuine(path)?).map_err(|e| describe(&e))?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<String>>>().map_err(|e| describe(&e))?;
        names.sort();
        Ok(names)
    }

    /// Returns the names in a directory, as [`Root::list`]; none if there is no such directory.
    ///
    /// # Errors
    /// Why the directory cannot be listed. A search for users must not treat this as "no user".
    pub(crate) fn list_if_there(&self, dir: &str) -> Known<Vec<String>> {
        match self.list(dir) {
            Err(why) if why == "no such file" => Ok(Vec::new()),
            listed => listed.map_err(|why| format!("{dir}: {why}")),
        }
    }

    /// Returns the paths that match a pattern, sorted. Each name in the pattern may contain one
    /// `*`, which matches any characters.
    ///
    /// # Errors
    /// Why the directory before the first `*` cannot be listed. Nothing is then known about
    /// matches.
    pub fn matches(&self, pattern: &str) -> Known<Vec<String>> {
        let mut found = vec![String::new()];
        let mut listed = false;
        for part in pattern.split('/').filter(|p| !p.is_empty()) {
            let Some((head, tail)) = part.split_once('*') else {
                for path in &mut found {
                    *path += &format!("/{part}");
                }
                continue;
            };
            let mut deeper = Vec::new();
            for dir in &found {
                let names = match self.list(dir) {
                    Ok(names) => names,
                    Err(why) if !listed => return Err(format!("{dir}: {why}")),
                    Err(_) => continue,
                };
                let fits = |n: &String| n.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail));
                deeper.extend(names.into_iter().filter(fits).map(|n| format!("{dir}/{n}")));
            }
            (found, listed) = (deeper, true);
        }
        found.retain(|path| self.has(path));
        Ok(found)
    }

    /// Returns the first line of each file as `path: text`. Ignores files that vanish or cannot be read, if
    /// at least one can be read.
    ///
    /// # Errors
    ///
    /// The first reason if files exist and none of them can be read.
    pub fn first_lines(&self, paths: &[String]) -> Known<String> {
        let (mut out, mut refused) = (String::new(), None);
        for path in paths {
            match self.read(path) {
                Ok(text) => out += &format!("{path}: {}\n", text.lines().next().unwrap_or_default()),
                Err(why) => refused = refused.or_else(|| Some(format!("{path}: {why}"))),
            }
        }
        refused.filter(|_| out.is_empty()).map_or(Ok(out), Err)
    }

    /// Returns the path of a file or directory with all symbolic links resolved, as a path without the prefix of the recorded copy.
    pub fn canonical(&self, path: &str) -> Option<String> {
        let prefix = self.prefix.canonicalize().ok()?;
        let found = self.genuine(path).ok()?.canonicalize().ok()?;
        Some(format!("/{}", found.strip_prefix(prefix).ok()?.to_str()?))
    }

    /// Returns the target of a symbolic link as it is written.
    ///
    /// # Errors
    /// Why the link cannot be read.
    pub fn link(&self, path: &str) -> Known<String> {
        let target = fs::read_link(self.genuine(path)?).map_err(|e| describe(&e))?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// Whether a file or directory exists at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.genuine(path).is_ok_and(|path| path.exists())
    }

    /// Whether a path is a directory. True also if this is unknown.
    pub(crate) fn is_dir(&self, path: &str) -> bool {
        self.genuine(path).map_or(true, |path| path.metadata().map_or(true, |found| found.is_dir()))
    }

    /// Returns `major:minor` of the block device at a path such as `/dev/mapper/data`. A recorded copy has no device nodes, so there the
    /// name of the device decides.
    pub fn device_number(&self, device: &str) -> Option<String> {
        if let Ok(metadata) = fs::metadata(self.path(device))
            && metadata.file_type().is_block_device()
        {
            return Some(number_of(metadata.rdev()));
        }
        let name = Path::new(device).file_name()?.to_str()?;
        self.word(&format!("/sys/class/block/{name}/dev")).filter(|_| !self.is_real())
    }

    fn is_real(&self) -> bool {
        self.prefix == Path::new("/")
    }
}

/// Mount ids of `/sys` and of its directories that show devices, found once for the thousands of paths that are compared.
static SYS_MOUNTS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let dirs = DEVICES.iter().map(|dir| Path::new("/sys").join(dir)).chain([PathBuf::from("/sys")]);
    dirs.filter_map(|dir| mount_id(&dir)).collect()
});

/// Returns whether a path below `/sys` is covered by another mount: a file system, or another part of sysfs. False on kernels before 5.8,
/// because they do not report mount ids.
fn is_covered(path: &Path) -> bool {
    mount_id(path).is_some_and(|there| !SYS_MOUNTS.contains(&there))
}

/// Returns the kernel's id of the mount that a path is on; `None` if it is not known.
fn mount_id(path: &Path) -> Option<u64> {
    let metadata = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    (metadata.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(metadata.stx_mnt_id)
}

/// Formats a raw device number as `major:minor`.
pub(crate) fn number_of(raw: u64) -> String {
    format!("{}:{}", rustix::fs::major(raw), rustix::fs::minor(raw))
}

#[test]
fn failures_have_a_reason() {
    let root = Root::at(PathBuf::from("/nonexistent-prefix"));
    assert_eq!(root.read("/proc/meminfo"), Err("no such file".to_owned()));
    assert_eq!(root.list("/sys"), Err("no such file".to_owned()));
    assert!(root.link("/sys/x").is_err() && root.word("/sys/x").is_none() && !root.has("/sys"));
}

#[test]
fn files_and_directories_are_read_whole_or_not_at_all() -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir()?;
    let file = File::create(dir.path().join("maps"))?;
    let root = Root::at(dir.path().to_owned());
    file.set_len(MAX_FILE_BYTES)?;
    assert_eq!(root.read("/maps").map(|text| text.len() as u64), Ok(MAX_FILE_BYTES));
    file.set_len(MAX_FILE_BYTES + 1)?;
    assert_eq!(root.read("/maps").map(|text| text.len()), Err("larger than 32 MiB".to_owned()));
    File::create(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff.slice")))?;
    assert_eq!(root.list("/"), Ok(vec!["maps".to_owned(), "\u{fffd}.slice".to_owned()]));
    Ok(())
}

#[test]
fn the_real_root_reads_this_machine() {
    assert!(Root::real().read("/proc/meminfo").is_ok_and(|t| t.contains("MemTotal")));
}

#[test]
fn patterns_match_across_directories_and_a_missing_directory_is_an_error() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    for name in ["cpu0", "cpu1", "cpufreq"] {
        fs::create_dir_all(dir.path().join("cpu").join(name))?;
    }
    fs::write(dir.path().join("cpu/cpu1/governor"), "powersave\nmore\n")?;
    let root = Root::at(dir.path().to_owned());
    let found = root.matches("/cpu/cpu*/governor");
    assert_eq!(found, Ok(vec!["/cpu/cpu1/governor".to_owned()]));
    let lines = root.first_lines(&found.unwrap_or_default());
    assert_eq!(lines, Ok("/cpu/cpu1/governor: powersave\n".to_owned()));
    assert_eq!(root.matches("/cpu/gpu*/governor"), Ok(Vec::new()));
    assert!(root.matches("/hwmon/hwmon*/temp1_input").is_err_and(|why| why.contains("/hwmon: no such")));
    assert!(root.first_lines(&["/none".to_owned()]).is_err());
    assert_eq!(root.first_lines(&[]), Ok(String::new()));
    Ok(())
}
