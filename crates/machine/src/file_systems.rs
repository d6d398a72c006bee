//! What kind of file system an open file is on, by the `f_type` that `fstatfs(2)` gives.
//!
//! Three questions are answered here. Is it synthetic, so that its files are the kernel itself and nothing may be measured there? Can
//! other machines or programs change a file without this kernel seeing it? Does every write change the times of a file?

use crate::error::{MachineError, describe};
use model::name;
use rustix::fs::{Mode, OFlags, fstatfs};
use std::fs::File;
use std::path::Path;

/// Synthetic file systems, by their numbers (`include/uapi/linux/magic.h` and the sources of the kernel). Reading and writing
/// their files asks or changes the kernel. Their lengths mean nothing, so an empty one cannot be told from a full one.
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
    // Its files are huge pages of memory, and it refuses every write call.
    (0x9584_58f6, "hugetlbfs"),
];

/// File systems of which this machine does not know all users: NFS, CIFS, SMB1 to SMB3, Ceph, 9P, FUSE, AFS, Coda, OCFS2, GFS2, Lustre,
/// those of hypervisors and clusters (vboxsf, vmhgfs, prl_fs, GPFS, OrangeFS, BeeGFS, PanFS), and eCryptfs, which shows the files of
/// another directory under numbers of its own.
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

/// File systems in memory: tmpfs and ramfs. A program that maps a file there, reads a page and then writes it changes no time of the file.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The number of the file system that a file is on.
fn kind(file: &File) -> Result<u64, String> {
    let facts = fstatfs(file).map_err(|e| describe(&e.into()))?;
    Ok(facts.f_type as u64 & 0xffff_ffff)
}

/// Whether other machines, or programs that serve the file system, can use and change a file without this kernel seeing it.
pub(crate) fn is_shared(file: &File) -> Result<bool, String> {
    Ok(SHARED.contains(&kind(file)?))
}

/// Whether every change of a file shows in its times. `false` also if the file system cannot be determined.
pub(crate) fn shows_every_change(file: &File) -> bool {
    kind(file).is_ok_and(|kind| !SHARED.contains(&kind) && !IN_MEMORY.contains(&kind))
}

/// The name of the synthetic file system that an open file or directory is on; `None` on any other.
///
/// # Errors
/// Why the kernel does not report the file system.
pub fn synthetic(file: &File) -> Result<Option<&'static str>, String> {
    let kind = kind(file)?;
    Ok(SYNTHETIC.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name))
}

/// Refuses an open file or directory on a synthetic file system. `path` is its name as the user typed it.
///
/// # Errors
/// [`MachineError::Usage`] with the file system and what to type instead; refused if the file system cannot be determined.
pub fn refuse_synthetic(path: &Path, file: &File) -> Result<(), MachineError> {
    let shown = name::shown(path);
    match synthetic(file) {
        Ok(None) => Ok(()),
        Ok(Some(system)) => Err(MachineError::Usage(format!(
            "{shown} is on {system}, where files are the kernel itself and not stored data, so it is neither measured nor written; \
             name a file, a directory or a block device on storage"
        ))),
        Err(why) => {
            Err(MachineError::Refused(format!("which file system {shown} is on cannot be seen ({why})")))
        }
    }
}

/// Refuses what a path leads to, as [`refuse_synthetic`] does, without opening it for reading, which some of these files answer with
/// an action.
///
/// # Errors
/// As [`refuse_synthetic`], and if nothing is there.
pub fn refuse_synthetic_at(said: &Path, path: &Path) -> Result<(), MachineError> {
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let opened = opened.map_err(|e| MachineError::at(said, "looked at", &e.into()))?;
    refuse_synthetic(said, &File::from(opened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

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
                refusal.is_err_and(|e| e.class() == Class::Usage && e.to_string().contains(system)),
                "{path}"
            );
        }
        assert!(refuse_synthetic_at(&link, &link).is_err_and(|e| e.to_string().contains("an-ordinary-name")));
        assert_eq!(refuse_synthetic_at(dir.path(), dir.path()), Ok(()));
        Ok(())
    }
}
