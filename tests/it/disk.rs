//! Disks for tests: an image file as a loop device, with a file system that is mounted in a private namespace.
//!
//! Everything is removed at the end of the test, even after a kill. The kernel clears the loop device itself (autoclear). The mount is in the
//! namespace of a process that ends with its standard input. Programs that serve a mount end in the same way.

use crate::stage::{Outcome, Running, Stage, fill, skip, tool, wait};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether a loop device uses direct I/O on its image.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    Direct,
    Buffered,
}

/// Held while a loop device is attached. Two `losetup` or `mount -o loop` may find the same free device. The one that fails to get it keeps
/// it open for writing for 0.2 s (util-linux 2.38), so the device looks in use.
static ATTACHING: Mutex<()> = Mutex::new(());

/// Prevents other tests from attaching a loop device while the guard lives.
pub(crate) fn lock_attaching() -> MutexGuard<'static, ()> {
    ATTACHING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loop device on an image file.
pub(crate) struct Device {
    pub(crate) path: PathBuf,
    pub(crate) image: PathBuf,
}

/// A mounted file system on a loop device.
pub(crate) struct Disk {
    /// The mount point inside the namespace.
    pub(crate) dir: PathBuf,
    pub(crate) device: PathBuf,
    room: Room,
    /// Detached after the namespace is gone, if no mount does that.
    _held: Option<Device>,
}

/// A process that keeps a mount namespace.
pub(crate) struct Room {
    keeper: Child,
    door: Option<ChildStdin>,
}

impl Device {
    /// A loop device on a new image of `mib` MiB. Skips the test and returns `None` if the machine has none.
    pub(crate) fn new(stage: &Stage, mib: usize, image: Image) -> Option<Self> {
        let file = stage.path("image");
        File::create(&file).unwrap().set_len((mib as u64) << 20).unwrap();
        Self::on(&file, image)
    }

    /// A loop device on an existing image.
    pub(crate) fn on(file: &Path, image: Image) -> Option<Self> {
        Self::at(file, image, 0)
    }

    /// A loop device on an existing image, from byte `offset`. Skips the test and returns `None` if the machine has none.
    pub(crate) fn at(file: &Path, image: Image, offset: u64) -> Option<Self> {
        let direct = if image == Image::Direct { "--direct-io=on" } else { "--direct-io=off" };
        let offset = offset.to_string();
        // Write pending data of the image to its disk now: later they would count as foreign traffic.
        let _ = tool(&[&"sync", &"-f", &file]);
        let device = Self::attach(&[&direct, &"--offset", &offset], file).map_err(|why| skip(&why)).ok()?;
        // A killed test may have left partitions.
        device.remove_partitions();
        Some(device)
    }

    /// Attaches a loop device to a file or device, with these options of `losetup`.
    pub(crate) fn attach(words: &[&dyn AsRef<OsStr>], over: &Path) -> Result<Self, String> {
        let _lock = lock_attaching();
        let path =
            tool(&[&[&"losetup" as &dyn AsRef<OsStr>], words, &[&"--find", &"--show", &over]].concat())?;
        Ok(Self { path: path.into(), image: over.to_owned() })
    }

    /// A partition of `sectors` sectors of 512 bytes, without a partition table. Returns its node.
    pub(crate) fn partition(&self, number: u32, first: u64, sectors: u64) -> Result<PathBuf, String> {
        let [of, first, sectors] = [u64::from(number), first, sectors].map(|n| n.to_string());
        tool(&[&"addpart", &self.path, &of, &first, &sectors])?;
        let node = PathBuf::from(format!("{}p{number}", self.path.display()));
        if node.exists() {
            Ok(node)
        } else {
            Err("no program creates device nodes of partitions here".into())
        }
    }

    /// Removes partitions of a loop device without a partition table: the kernel keeps them even after the file is detached.
    fn remove_partitions(&self) {
        let Ok(entries) = std::fs::read_dir(format!("/sys/block/{}", self.name())) else { return };
        for entry in entries.flatten() {
            if let Ok(number) = std::fs::read_to_string(entry.path().join("partition")) {
                let _ = tool(&[&"delpart", &self.path, &number.trim()]);
            }
        }
    }

    /// Kernel name: `loop3`.
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    /// Checksum of the device's content.
    pub(crate) fn checksum(&self) -> String {
        tool(&[&"sync", &"-f", &self.image]).unwrap();
        tool(&[&"cksum", &self.image]).unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.remove_partitions();
        // If the device is mounted, this marks it for detaching after the unmount.
        let _ = tool(&[&"losetup", &"--detach", &self.path]);
    }
}

/// Whether a ring can ask a block device for a discard (`BLOCK_URING_CMD_DISCARD`, Linux 6.12).
pub(crate) fn rings_discard() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let version: Vec<u32> = release.split(['.', '-']).take(2).map(|n| n.parse().unwrap_or(0)).collect();
    version >= vec![6, 12]
}

/// Makes a file system or another signature, without work that the kernel does later, because that would count as foreign I/O.
pub(crate) fn make(kind: &str, device: &Path) -> Result<String, String> {
    match kind {
        "ext4" => {
            let options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
            tool(&[&"mkfs.ext4", &"-q", &"-F", &"-E", &options, &device])
        }
        // With these options, a kernel thread initialises inode tables later.
        "ext4 lazy" => tool(&[
            &"mkfs.ext4",
            &"-q",
            &"-F",
            &"-b",
            &"1024",
            &"-E",
            &"lazy_itable_init=1,nodiscard",
            &device,
        ]),
        "ext4 inline" => tool(&[&"mkfs.ext4", &"-q", &"-F", &"-O", &"inline_data", &"-I", &"256", &device]),
        "xfs" => tool(&[&"mkfs.xfs", &"-q", &"-f", &"-K", &device]),
        "btrfs" => tool(&[&"mkfs.btrfs", &"-q", &"-f", &"-K", &device]),
        "swap" => tool(&[&"mkswap", &device]),
        "lvm" => tool(&[&"pvcreate", &"--yes", &"--force", &device]),
        other => Err(format!("the tests cannot make {other}")),
    }
}

impl Disk {
    /// A mounted file system. Skips the test and returns `None` if the machine cannot make it.
    pub(crate) fn new(stage: &Stage, kind: &str, image: Image) -> Option<Self> {
        Self::mounted(stage, kind, image, "defaults")
    }

    /// A file system mounted with these options. Skips the test and returns `None` if the machine cannot make it.
    pub(crate) fn mounted(stage: &Stage, kind: &str, image: Image, options: &str) -> Option<Self> {
        // The smallest size of xfs.
        Self::make(stage, kind, &Device::new(stage, 320, image)?, options)
    }

    /// A file system whose device begins `offset` bytes into its image.
    pub(crate) fn on_image(stage: &Stage, kind: &str, image: &Path, offset: u64) -> Option<Self> {
        Self::make(stage, kind, &Device::at(image, Image::Direct, offset)?, "defaults")
    }

    fn make(stage: &Stage, kind: &str, device: &Device, options: &str) -> Option<Self> {
        if let Err(why) = make(kind, &device.path) {
            skip(&why);
            return None;
        }
        let dir = stage.folder("mounted");
        let script = "mount -o \"$3\" \"$1\" \"$2\" && echo ready && exec cat";
        let mut mount = Command::new("sh");
        mount.args(["-c", script, "sh"]).arg(&device.path).arg(&dir).arg(options);
        let room = Room::keep(&mut mount)?;
        // The device is detached with the mount.
        Some(Self { dir, device: device.path.clone(), room, _held: None })
    }

    /// A file system that a script mounts on `$1`. The script gets a directory, `$2`, and a free port, `$3`; its processes end with the
    /// mount. Skips the test and returns `None` if a command is missing or refuses.
    pub(crate) fn served(stage: &Stage, commands: &[&str], script: &str) -> Option<Self> {
        let is_there = |name: &&&str| tool(&[&"sh", &"-c", &"command -v \"$0\"", *name]).is_ok();
        if let Some(missing) = commands.iter().find(|name| !is_there(name)) {
            skip(&format!("there is no {missing}"));
            return None;
        }
        let (dir, own) = (stage.folder("mounted"), stage.folder("served"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let script = format!("set -e; cd \"$2\"; {script}; echo ready; exec cat");
        let mut serve = Command::new("sh");
        serve.args(["-c", &script, "sh"]).args([&dir, &own]).arg(port);
        let _attached = commands.contains(&"losetup").then(lock_attaching);
        let room = Room::keep(&mut serve)?;
        Some(Self { dir, device: PathBuf::new(), room, _held: None })
    }

    /// A file system with one file, `file`, of 64 MiB, whose reads are slow in a manner of `slow_reads.py`. Skips the test and returns
    /// `None` without FUSE.
    pub(crate) fn slow(stage: &Stage, manner: &str) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            skip("there is no /dev/fuse");
            return None;
        }
        let dir = stage.folder("slow");
        let mut server = Command::new("python3");
        server.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/slow_reads.py"));
        server.arg(&dir).arg((64 << 20).to_string()).args(manner.split_whitespace());
        let room = Room::keep(&mut with_high_priority(&server))?;
        Some(Self { dir, device: PathBuf::new(), room, _held: None })
    }

    /// A loop device on a file with slow reads.
    pub(crate) fn slow_device(stage: &Stage, manner: &str) -> Option<Self> {
        let slow = Self::slow(stage, manner)?;
        let device = Device::on(&slow.inside(&slow.dir.join("file")), Image::Buffered)?;
        Some(Self { device: device.path.clone(), _held: Some(device), ..slow })
    }

    /// An empty directory on the machine's disk in a private mount namespace, without its own file system, and optionally a bare device.
    pub(crate) fn bare(stage: &Stage, device: Option<Device>) -> Option<Self> {
        let room = Room::keep(Command::new("sh").args(["-c", "echo ready && exec cat"]))?;
        let path = device.as_ref().map_or(PathBuf::new(), |d| d.path.clone());
        Some(Self { dir: stage.folder("bare"), device: path, room, _held: device })
    }

    /// Runs the program inside.
    pub(crate) fn fathom(&self, stage: &Stage, words: &str, target: &Path) -> Outcome {
        wait(&mut stage.command(&self.room.enter(), words, target))
    }

    /// Starts the program inside.
    pub(crate) fn start(&self, stage: &Stage, words: &str, target: &Path) -> Running {
        Running::start(&mut stage.command(&self.room.enter(), words, target))
    }

    /// Runs a shell command inside, in the mounted directory.
    pub(crate) fn sh(&self, script: &str) -> String {
        let cd = format!("cd '{}' && {script}", self.dir.display());
        let enter = self.room.enter();
        let words: Vec<&dyn AsRef<OsStr>> = enter.iter().map(|w| w as &_).collect();
        tool(&[words.as_slice(), &[&"sh", &"-c", &cd]].concat()).unwrap()
    }

    /// Mounts an image inside, with these options.
    pub(crate) fn mount(&self, options: &str, image: &str, on: &str) {
        let _lock = lock_attaching();
        self.sh(&format!("mount -o {options} {image} {on}"));
    }

    /// Starts a shell command inside, which runs until it is killed.
    pub(crate) fn spawn_sh(&self, script: &str) -> Background {
        let cd = format!("cd '{}' && {script}", self.dir.display());
        let enter = self.room.enter();
        let mut command = Command::new(&enter[0]);
        Background::start(command.args(&enter[1..]).args(["sh", "-c", &cd]))
    }

    /// Makes a file full of bytes on the file system.
    pub(crate) fn file(&self, name: &str, mib: usize) -> PathBuf {
        let path = self.dir.join(name);
        fill(&self.inside(&path), mib);
        path
    }

    /// Kernel name of the device below the file system: `loop3`.
    pub(crate) fn name(&self) -> &str {
        self.device.file_name().unwrap().to_str().unwrap()
    }

    /// Disables the kernel's counters of the device while the guard lives: a loop device keeps this setting when it gets another image.
    pub(crate) fn disable_counters(&self) -> Switched {
        self.switch("iostats", "0")
    }

    /// `major:minor` of the device below the file system.
    pub(crate) fn number(&self) -> String {
        std::fs::read_to_string(format!("/sys/block/{}/dev", self.name())).unwrap().trim().to_owned()
    }

    /// Writes a setting of the device's queue while the guard lives.
    pub(crate) fn switch(&self, file: &str, value: &str) -> Switched {
        Switched::new(format!("/sys/block/{}/queue/{file}", self.name()).into(), value)
    }

    /// The prefix of a command that runs inside.
    pub(crate) fn enter(&self) -> Vec<String> {
        self.room.enter()
    }

    /// A path inside, as seen from outside.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap();
        Path::new("/proc").join(self.room.keeper.id().to_string()).join("root").join(below)
    }
}

/// The same command with the highest priority, so that other load does not change waiting times.
pub(crate) fn with_high_priority(command: &Command) -> Command {
    let mut ahead = Command::new("chrt");
    ahead.args(["--rr", "10"]).arg(command.get_program()).args(command.get_args());
    command.get_envs().filter_map(|(key, value)| Some((key, value?))).for_each(|(key, value)| {
        ahead.env(key, value);
    });
    ahead
}

/// A kernel setting that is restored on drop.
pub(crate) struct Switched(PathBuf, String);

impl Switched {
    fn new(file: PathBuf, value: &str) -> Self {
        let before = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        std::fs::write(&file, value).unwrap();
        Self(file, before)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.0, &self.1);
    }
}

/// A background process, ended on drop with all of its children.
pub(crate) struct Background(Child);

impl Background {
    /// Starts a command that runs until it is killed.
    pub(crate) fn start(command: &mut Command) -> Self {
        // Its own process group, so that its children end with it.
        Self(command.process_group(0).stdin(Stdio::null()).spawn().unwrap())
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

impl Room {
    /// Starts a command in its own mount namespace. It must print `ready` and run until its input ends. It is also the first process of a
    /// process namespace, so that the kernel ends its children with it.
    pub(crate) fn keep(command: &mut Command) -> Option<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]);
        unshare.arg(command.get_program());
        unshare.args(command.get_args()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = unshare.spawn().unwrap();
        let door = keeper.stdin.take();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let room = Self { keeper, door };
        if line.trim() != "ready" {
            skip(&format!("{unshare:?} did not succeed"));
            return None;
        }
        Some(room)
    }

    /// The prefix of a command that runs inside.
    pub(crate) fn enter(&self) -> Vec<String> {
        ["nsenter", "--mount", "--target"]
            .map(str::to_owned)
            .into_iter()
            .chain([self.keeper.id().to_string()])
            .collect()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(self.door.take());
        let _ = self.keeper.wait();
    }
}
