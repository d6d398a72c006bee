//! Reads small files of `/proc`, `/sys` and `/dev`: those of the running machine, or of a recorded copy below
//! a directory.
//!
//! Each failure has a reason in words. On the running machine a path counts only if the kernel's own file
//! system is mounted there, since anything can be mounted over `/proc` and `/sys`.

use crate::error::describe;
use model::Known;
use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Largest kernel file in bytes. `/proc/stat` of the largest machines is smaller.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// `PROC_SUPER_MAGIC`.
const PROCFS: i64 = 0x9fa0;
/// `SYSFS_MAGIC`.
const SYSFS: i64 = 0x6265_6572;
/// Control groups: separate file systems are mounted below this directory, and `mountinfo` names them.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Directories of `/sys` that show devices. The kernel mounts nothing below them.
const DEVICES: [&str; 5] = ["block", "bus", "class", "dev", "devices"];

/// The directory that paths of the machine start from.
#[derive(Clone, Debug)]
pub struct Root {
    prefix: PathBuf,
}

impl Root {
    /// This machine.
    pub fn real() -> Self {
        Self { prefix: PathBuf::from("/") }
    }

    /// A recorded copy of a machine below `prefix`.
    pub fn at(prefix: PathBuf) -> Self {
        Self { prefix }
    }

    /// Returns where `path` is found. `path` is absolute, as on the machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.prefix.join(path.trim_start_matches('/'))
    }

    /// Returns where `path` is found, or an error if the kernel's own file system is not mounted there:
    /// anything can be mounted over `/proc` and `/sys`, and its content proves nothing.
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
            Ok(_) => Err(format!("{place} is not of the kernel's file system {name}")),
            Err(e) => Err(describe(&e.into())),
        }
    }

    /// Returns the text of a file. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// The reason in words: no such file, permission denied, ...
    pub fn read(&self, path: &str) -> Known<String> {
        // Most of these files fit. The kernel reports their size as 0, and an empty vector would grow in many
        // small steps.
        let mut bytes = Vec::with_capacity(4096);
        let file = File::open(self.genuine(path)?).map_err(|e| describe(&e))?;
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(|e| describe(&e))?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// Returns the trimmed text of a file; `None` if the file is missing or empty.
    pub fn word(&self, path: &str) -> Option<String> {
        let text = self.read(path).ok()?;
        let word = text.trim().trim_matches('\0').trim();
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// Returns the names in a directory, sorted.
    ///
    /// # Errors
    /// The reason in words.
    pub fn list(&self, path: &str) -> Known<Vec<String>> {
        let entries = fs::read_dir(self.genuine(path)?).map_err(|e| describe(&e))?;
        let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    }

    /// Returns the paths that match a pattern, sorted. A `*` stands for any part of a name, once in each
    /// name.
    ///
    /// # Errors
    /// Why the directory before the first `*` cannot be listed, so that nothing is known about matches.
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

    /// Returns the first line of each file as `path: text`. Files that vanish or cannot be read are left out
    /// as long as one of them can.
    ///
    /// # Errors
    /// The first reason, if there are files and none of them can be read.
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

    /// Returns the path of a file or directory with all symbolic links resolved, as on the machine.
    pub fn canonical(&self, path: &str) -> Option<String> {
        let prefix = self.prefix.canonicalize().ok()?;
        let found = self.genuine(path).ok()?.canonicalize().ok()?;
        Some(format!("/{}", found.strip_prefix(prefix).ok()?.to_str()?))
    }

    /// Returns the target of a symbolic link as it is written.
    ///
    /// # Errors
    /// The reason in words.
    pub fn link(&self, path: &str) -> Known<String> {
        let target = fs::read_link(self.genuine(path)?).map_err(|e| describe(&e))?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// Whether a file or directory exists at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.genuine(path).is_ok_and(|path| path.exists())
    }

    /// Returns `major:minor` of the block device at a path such as `/dev/mapper/data`. A copy has no device
    /// nodes, so its names decide.
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

/// Whether a path below `/sys` leads into a foreign mount: a file system, or another part of sysfs, that
/// covers what the kernel shows there. Kernels before 5.8 do not report it.
fn is_covered(path: &Path) -> bool {
    let mount = |path: &Path| {
        let metadata = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        (metadata.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(metadata.stx_mnt_id)
    };
    let Some(there) = mount(path) else { return false };
    let expected = DEVICES.iter().map(|dir| Path::new("/sys").join(dir)).chain([PathBuf::from("/sys")]);
    expected.filter_map(|dir| mount(&dir)).all(|id| id != there)
}

/// `major:minor` of a raw device number.
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
