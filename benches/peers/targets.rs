//! Targets of the comparison: files on the disk, in the page cache and in memory, and a loop device.
//!
//! Both tools use the same bytes. If a signal ends the comparison, its files remain in the named directory as `fathom-peers-...`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// All targets. Each is made when it is first needed.
pub(crate) struct Targets {
    disk: TempDir,
    memory: Option<TempDir>,
    device: Option<(PathBuf, File)>,
    file_mib: u64,
}

/// A target of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// No target, for the engine `null`.
    None,
    /// A file that is completely in the page cache.
    Cached,
    /// A file on tmpfs.
    Memory,
    /// A loop device with direct I/O on its file.
    Loop,
    /// The file of [`Self::Cached`], on the disk.
    Disk,
}

impl Targets {
    /// Prepares to make targets in a directory on the disk to compare on.
    pub(crate) fn new(dir: &Path, file_mib: u64) -> Result<Self, String> {
        let disk = tempfile::Builder::new().prefix("fathom-peers-").tempdir_in(dir);
        let disk = disk.map_err(|e| format!("{}: {e}; name another --dir", dir.display()))?;
        Ok(Self { disk, memory: None, device: None, file_mib })
    }

    /// Directory for files that are removed at the end.
    pub(crate) fn scratch(&self) -> &Path {
        self.disk.path()
    }

    /// Makes a target ready to be read, and returns its path. The error is the reason why this machine cannot have the target.
    pub(crate) fn ready(&mut self, target: Target) -> Result<Option<PathBuf>, String> {
        match target {
            Target::None => Ok(None),
            Target::Disk => self.file().map(Some),
            Target::Cached => {
                let path = self.file()?;
                let read = File::open(&path).and_then(|mut f| std::io::copy(&mut f, &mut std::io::sink()));
                read.map_err(|e| format!("{}: {e}", path.display()))?;
                Ok(Some(path))
            }
            Target::Memory => {
                let dir = match self.memory.take() {
                    Some(dir) => dir,
                    None => tempfile::tempdir_in("/dev/shm").map_err(|e| format!("/dev/shm: {e}"))?,
                };
                let path = dir.path().join("data");
                self.memory = Some(dir);
                make_file(&path, self.file_mib.div_ceil(4)).map(|()| Some(path))
            }
            Target::Loop => self.device().map(Some),
        }
    }

    fn file(&self) -> Result<PathBuf, String> {
        let path = self.disk.path().join("data");
        make_file(&path, self.file_mib).map(|()| path)
    }

    fn device(&mut self) -> Result<PathBuf, String> {
        if let Some((device, _)) = &self.device {
            return Ok(device.clone());
        }
        let image = self.disk.path().join("image");
        make_file(&image, self.file_mib.div_ceil(4))?;
        let mut command = Command::new("losetup");
        let out = command.args(["--direct-io=on", "--find", "--show"]).arg(&image).output();
        let out = out.map_err(|e| format!("losetup: {e}"))?;
        if !out.status.success() {
            return Err(format!("losetup: {}", String::from_utf8_lossy(&out.stderr).trim()));
        }
        let device = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
        let held = File::open(&device);
        // An open device is only marked for detaching. The kernel detaches it when this process ends, in whatever way.
        let _ = Command::new("losetup").arg("--detach").arg(&device).status();
        self.device = Some((device.clone(), held.map_err(|e| format!("{}: {e}", device.display()))?));
        Ok(device)
    }
}

/// Makes a file of incompressible bytes, unless it exists.
fn make_file(path: &Path, mib: u64) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let make = || {
        let mut random = File::open("/dev/urandom")?;
        let mut file = File::create(path)?;
        let mut block = vec![0; 1 << 20];
        for _ in 0..mib {
            random.read_exact(&mut block)?;
            file.write_all(&block)?;
        }
        file.sync_all()
    };
    make().map_err(|e| {
        let _ = std::fs::remove_file(path);
        format!("{}: {e}", path.display())
    })
}
