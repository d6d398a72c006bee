//! Targets in use: files and devices that any program uses are not written under any name. They are compared by device
//! and inode. Only the planned target is written.

use crate::disk::{Background, Device, Disk, Image, make};
use crate::stage::{Outcome, Stage, is_root, skip, tool};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SHORT: &str = "--rw randwrite --size 16m --time 100ms --warmup 0 --runs 1 --quiet";
/// Run time that is long enough for a test to act between the start of the first run and that of the second.
const TWO_RUNS: &str = "--size 16m --time 1s --warmup 0 --runs 2";

fn destroy(stage: &Stage, target: &Path) -> Outcome {
    stage.fathom(&format!("run {SHORT} --destroy {0}", target.display()), target)
}

pub(crate) fn sum(path: &Path) -> String {
    tool(&[&"cksum", &path]).unwrap()
}

/// Fails unless the program refused with all these words.
#[track_caller]
pub(crate) fn refused(out: &Outcome, words: &[&str]) {
    assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{out:?}");
    for word in words {
        assert!(out.stderr.contains(word), "'{word}' is not in: {}", out.stderr);
    }
}

/// Fails unless writing to the target is refused with all these words, and the target is unchanged.
#[track_caller]
fn refused_and_whole(stage: &Stage, target: &Path, words: &[&str]) {
    let before = sum(target);
    refused(&destroy(stage, target), words);
    assert_eq!(sum(target), before, "it was written");
}

/// Waits until the kernel or a process in the background has reached a state.
#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the file system is unmounted, and fails unless it is intact.
#[track_caller]
pub(crate) fn sound(image: &Path) {
    until("it is unmounted", || tool(&[&"losetup", &"--associated", &image]).is_ok_and(|l| l.is_empty()));
    tool(&[&"e2fsck", &"-fn", &image]).unwrap();
}

/// Text without its line breaks.
pub(crate) fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn hard_link(stage: &Stage, file: &Path) -> PathBuf {
    let link = stage.path("another-name");
    fs::hard_link(file, &link).unwrap();
    link
}

/// Starts a Python process that executes `statements` and then waits. Returns when it has executed them. The path is
/// `sys.argv[1]`.
pub(crate) fn python(stage: &Stage, statements: &str, path: &Path) -> Background {
    let ready = stage.path("python-is-ready");
    let script = format!(
        "import os, sys, time\n{statements}\nopen('{}', 'w').close()\nwhile True: time.sleep(60)",
        ready.display()
    );
    let mut command = Command::new("python3");
    command.args(["-c", &script]).arg(path);
    let program = Background::start(&mut command);
    until("it is ready", || ready.exists());
    fs::remove_file(&ready).unwrap();
    program
}

#[test]
fn hung_network_files_of_other_programs_do_not_block() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    // The server dies after one read (slow_reads.py), so the open file hangs.
    let Some(disk) = Disk::slow(&stage, "forgets 1") else { return };
    let dead = stage.path("dead");
    let script = format!(
        "exec python3 -c \"import os, time; f = os.open('file', os.O_RDWR); os.pread(f, 1, 0); open('{}', 'w'); time.sleep(999)\"",
        dead.display()
    );
    let _holds = disk.spawn_sh(&script);
    until("the server is dead", || dead.exists());
    // Processes that wait for the dead server end with the mount. Drop the mount first, even if the test fails.
    let _server = disk;
    // The users of this file are found among all open files.
    let file = stage.file("data", 16);
    let _writer = python(&stage, "f = open(sys.argv[1], 'r+b')", &file);
    refused(&destroy(&stage, &file), &["open for writing by python3"]);
}

#[test]
fn mounted_image_is_refused_under_a_second_name() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("echo kept > keep && sync");
    let image = stage.path("image");
    let link = hard_link(&stage, &image);
    fs::remove_file(&image).unwrap();
    let words = ["in use", disk.name(), "is mounted on", "in the mount namespace of"];
    refused(&destroy(&stage, &link), &words);
    // Inside the namespace the mount is visible.
    let inside = disk.fathom(&stage, &format!("run {SHORT} --destroy {}", link.display()), &link);
    refused(&inside, &[disk.name(), "which is mounted on"]);
    assert_eq!(disk.sh("cat keep"), "kept");
    drop(disk);
    sound(&link);
}

#[test]
fn image_mounted_in_a_container_is_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let image = stage.path("c");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    if let Err(why) = make("ext4", &image) {
        return skip(&why);
    }
    let script = "mkdir x; mount --bind .. x; d=$(losetup --find --show x/c); mount \"$d\" \"$1\"; losetup --detach \"$d\"";
    let Some(container) = Disk::served(&stage, &["losetup"], script) else { return };
    container.sh("echo kept > keep && sync");
    refused(&destroy(&stage, &image), &["in use", "the backing file of loop", "in the mount namespace of"]);
    let verify = format!("verify --size 16m --quiet --destroy {}", image.display());
    refused(&stage.fathom(&verify, &image), &["the backing file of loop"]);
    assert_eq!(container.sh("cat keep"), "kept");
    drop(container);
    sound(&image);
}

#[test]
fn backing_files_of_stacked_loop_devices_are_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(lower) = Device::new(&stage, 64, Image::Direct) else { return };
    let Some(upper) = Device::on(&lower.path, Image::Buffered) else { return };
    refused_and_whole(&stage, &lower.image, &[lower.name()]);
    refused_and_whole(&stage, &lower.path, &["the backing file of", upper.name()]);
    drop(upper);

    // A read-only loop device does not write its file, but counts as a user.
    let file = stage.file("read", 16);
    let reader = Device::attach(&[&"--read-only"], &file).unwrap();
    let link = hard_link(&stage, &file);
    fs::remove_file(&file).unwrap();
    refused_and_whole(&stage, &link, &["the backing file of", reader.name()]);
}

#[test]
fn loop_device_is_refused_while_its_file_is_in_use() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(whole) = Device::new(&stage, 64, Image::Direct) else { return };
    // Only the second half of the image is in use.
    let half = Device::attach(&[&"--offset", &"32MiB"], &whole.image).unwrap();
    refused_and_whole(&stage, &whole.path, &["also", half.name()]);
    let Some(over) = Device::on(&whole.path, Image::Buffered) else { return };
    refused_and_whole(&stage, &over.path, &["is backed by", "also", half.name()]);
}

#[test]
fn disk_is_refused_while_a_partition_is_in_use_and_its_sibling_is_not() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Device::new(&stage, 64, Image::Direct) else { return };
    let (one, two) = match (disk.partition(1, 2048, 32768), disk.partition(2, 40960, 65536)) {
        (Ok(one), Ok(two)) => (one, two),
        (Err(why), _) | (_, Err(why)) => return skip(&why),
    };
    let Some(user) = Device::on(&two, Image::Buffered) else { return };
    refused_and_whole(&stage, &disk.path, &["p2 is the backing file of", user.name()]);
    let before = sum(&one);
    let other = destroy(&stage, &one);
    assert!(matches!(other.code, Some(0 | 1)) && sum(&one) != before, "{other:?}");
    let both = format!("run {SHORT} --destroy {0} --destroy {1} {0} {1}", disk.path.display(), one.display());
    drop(user);
    let both = stage.fathom(&both, Path::new(""));
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(both.stderr.contains("is stored on"), "{both:?}");
}

/// A program that has a device or file open for writing until it is killed.
fn writer_of(stage: &Stage, path: &Path) -> Background {
    let opened = stage.path("opened");
    let _ = fs::remove_file(&opened);
    let line =
        format!("exec 5<> '{}' && echo open > '{}' && exec sleep 60", path.display(), opened.display());
    let writer = Background::start(Command::new("sh").args(["-c", &line]));
    until("it is open", || opened.exists());
    writer
}

#[test]
fn partition_is_refused_while_its_disk_is_written() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(lower) = Device::new(&stage, 64, Image::Direct) else { return };
    let Some(upper) = Device::on(&lower.path, Image::Buffered) else { return };
    let (one, two) = match (upper.partition(1, 2048, 40960), upper.partition(2, 45056, 40960)) {
        (Ok(one), Ok(two)) => (one, two),
        (Err(why), _) | (_, Err(why)) => return skip(&why),
    };
    for (writes, target) in
        [(&upper.path, &one), (&one, &upper.path), (&lower.path, &one), (&lower.image, &one)]
    {
        let writer = writer_of(&stage, writes);
        // By `sh` or `sleep`.
        refused_and_whole(&stage, target, &["open for writing by s"]);
        drop(writer);
    }
    // A writer of another partition does not matter.
    let writer = writer_of(&stage, &two);
    let before = sum(&one);
    let out = destroy(&stage, &one);
    assert!(matches!(out.code, Some(0 | 1)) && sum(&one) != before, "{out:?}");
    drop(writer);
    // The kernel reports an exclusive claim of the disk, even if no process has it open for writing.
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let claim = File::options().read(true).custom_flags(exclusive).open(&upper.path).unwrap();
    refused_and_whole(&stage, &one, &["the kernel reports it as in use"]);
    drop(claim);
}

#[test]
fn devices_with_hidden_users_need_unseen_users() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let node = node_of(&stage, "node", &device.path);
    fs::set_permissions(&node, PermissionsExt::from_mode(0o666)).unwrap();
    let contained = |words: &str, target: &Path| {
        let prefix = ["unshare", "--pid", "--fork", "--mount-proc"].map(String::from);
        crate::stage::wait(&mut stage.command(&prefix, words, target))
    };
    let named = format!("run {SHORT} --no-history --destroy {0}", node.display());
    let before = sum(&node);
    refused(&contained(&named, &node), &["outside this PID namespace", "--unseen-users"]);
    refused(&stage.fathom_unprivileged(&named, &node), &["it is not written"]);
    let read = contained("run --rw randread --size 16m --time 100ms --warmup 0 --runs 1 --quiet", &node);
    assert!(matches!(read.code, Some(0 | 1)), "{read:?}");
    // --unseen-users must name the device.
    let other = contained(&format!("{named} --unseen-users /dev/null"), &node);
    refused(&other, &["--unseen-users"]);
    assert_eq!(sum(&node), before, "it was written");
    // --unseen-users accepts any path of the device. The plan, the session and the report show the option.
    let allowed = format!("{named} --unseen-users {}", device.path.display());
    let plan = contained(&format!("{allowed} --explain"), &node);
    assert!(plan.stdout.contains("--unseen-users"), "{plan:?}");
    let out = contained(&allowed, &node);
    assert!(matches!(out.code, Some(0 | 1)) && sum(&node) != before, "{out:?}");
    assert!(
        unwrapped(&out.stdout).contains("because --unseen-users or FATHOM_UNSEEN_USERS names it"),
        "{}",
        out.stdout
    );
    // --unseen-users does not allow writing to a device that is visibly in use.
    let writer = writer_of(&stage, &device.path);
    // By `sh` or `sleep`.
    refused(&stage.fathom(&allowed, &node), &["open for writing by s"]);
    drop(writer);
    let words = format!("run --rw randread --size 16m --time 100ms --unseen-users {}", node.display());
    let idle = stage.fathom(&words, &node);
    assert!(idle.code == Some(2) && idle.stderr.contains("does not write to that path"), "{idle:?}");
}

#[test]
fn unseen_users_can_be_set_in_the_environment() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 16, Image::Direct) else { return };
    let before = device.checksum();
    let prefix = ["unshare", "--pid", "--fork", "--mount-proc"].map(String::from);
    let words = format!(
        "fio --name=a --filename={0} --rw=write --bs=64k --size=1m --destroy={0}",
        device.path.display()
    );
    let mut command = stage.command(&prefix, &words, Path::new(""));
    let out = crate::stage::wait(&mut command);
    assert!(out.code != Some(0) && out.stderr.contains("FATHOM_UNSEEN_USERS"), "{out:?}");
    assert_eq!(device.checksum(), before, "it was written");
    let mut command = stage.command(&prefix, &words, Path::new(""));
    let list = format!("/other:{}", device.path.display());
    let out = crate::stage::wait(command.env("FATHOM_UNSEEN_USERS", list));
    assert!(out.code == Some(0) && device.checksum() != before, "{out:?}");
}

#[test]
fn mounted_device_is_refused_through_another_node() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("echo kept > keep && sync");
    let node = node_of(&stage, "node", &disk.device);
    refused(&destroy(&stage, &node), &["is mounted on", "in the mount namespace of"]);
    assert_eq!(disk.sh("cat keep"), "kept");
}

/// A second node of a device.
fn node_of(stage: &Stage, name: &str, device: &Path) -> PathBuf {
    let node = stage.path(name);
    let number = fs::metadata(device).unwrap().rdev();
    let (major, minor) = (rustix::fs::major(number).to_string(), rustix::fs::minor(number).to_string());
    tool(&[&"mknod", &node, &"b", &major, &minor]).unwrap();
    node
}

/// Swap space in a file, disabled on drop.
struct Swap<'d>(&'d Disk);

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        self.0.sh("swapoff link");
    }
}

#[test]
fn swap_file_is_refused_under_a_second_name() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let script = "dd if=/dev/zero of=swap bs=1M count=32 status=none && chmod 600 swap && mkswap -q swap && ln swap link \
                  && (swapon swap && echo on || echo off)";
    if disk.sh(script) != "on" {
        return skip("this machine does not swap to a file");
    }
    let swap = Swap(&disk);
    let link = disk.dir.join("link");
    let run = || disk.fathom(&stage, &format!("run {SHORT} --destroy {}", link.display()), &link);
    refused(&run(), &["swap"]);
    drop(swap);
    assert!(matches!(run().code, Some(0 | 1)));
}

/// Address (0: any) and protection of mappings.
const MAPPINGS: [(u64, u8); 5] = [
    // Readable and writable.
    (0, 3),
    // Also executable.
    (0, 7),
    // Only writable.
    (0, 2),
    // Only readable, but the program may make it writable later.
    (0, 1),
    // An address so low that /proc/PID/maps pads it with zeros.
    (0x2_0000, 3),
];

/// A program that has a file or device mapped through a writable descriptor, which is closed.
fn mapper_of(stage: &Stage, path: &Path, address: u64, protection: u8) -> Background {
    // MAP_SHARED, and MAP_FIXED at an address.
    let flags = if address == 0 { 1 } else { 0x11 };
    let mapped = format!(
        "import ctypes\nf = os.open(sys.argv[1], os.O_RDWR)\nmmap = ctypes.CDLL(None).mmap\n\
         mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]\n\
         mmap.restype = ctypes.c_void_p\n\
         assert mmap({address} or None, 4096, {protection}, {flags}, f, 0) != ctypes.c_void_p(-1).value\nos.close(f)"
    );
    python(stage, &mapped, path)
}

#[test]
fn file_open_for_writing_is_refused_and_open_for_reading_is_not() {
    let stage = Stage::shared();
    let file = stage.file("data", 32);
    let writer = python(&stage, "f = open(sys.argv[1], 'r+b')", &file);
    refused_and_whole(&stage, &file, &["open for writing by python3", &writer.id().to_string()]);
    refused_and_whole(&stage, &hard_link(&stage, &file), &["open for writing by python3"]);
    drop(writer);
    for (address, protection) in MAPPINGS {
        let mapper = mapper_of(&stage, &file, address, protection);
        refused_and_whole(&stage, &file, &["open for writing by python3", &mapper.id().to_string()]);
    }
    let reader = python(&stage, "f = open(sys.argv[1], 'rb')", &file);
    let out = destroy(&stage, &file);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    drop(reader);
}

#[test]
fn programs_of_other_users_count_even_if_hidden() {
    if !is_root() {
        return;
    }
    // Run alone: loop devices of other tests may have backing files without a visible name, which a user without rights cannot find.
    let stage = Stage::new();
    let folder = stage.unprivileged_folder("theirs");
    let file = folder.join("data");
    crate::stage::fill(&file, 32);
    let words = format!("run {SHORT} --destroy {}", file.display());
    let writer = python(&stage, "f = open(sys.argv[1], 'r+b')", &file);
    // The owner of a file may ask the kernel whether it is open.
    std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
    refused(&stage.fathom_unprivileged(&words, &file), &["open for writing by", "not visible"]);
    drop(writer);
    // A user who may write the file but does not own it cannot ask the kernel, so only --unseen-users allows writing.
    std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    let before = sum(&file);
    refused(&stage.fathom_unprivileged(&words, &file), &["only the file's owner may ask", "--unseen-users"]);
    assert_eq!(sum(&file), before, "it was written");
    let out = stage.fathom_unprivileged(&format!("{words} --unseen-users {}", file.display()), &file);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert!(unwrapped(&out.stdout).contains("only the file's owner may ask"), "{out:?}");
}

#[test]
fn device_open_for_writing_is_refused_with_the_program() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let writer = python(&stage, "f = os.open(sys.argv[1], os.O_WRONLY)", &device.path);
    refused_and_whole(&stage, &device.path, &["open for writing by python3", &writer.id().to_string()]);
    drop(writer);
    let writer = python(&stage, "f = os.open(sys.argv[1], os.O_RDWR)", &device.image);
    refused_and_whole(&stage, &device.path, &["open for writing by python3"]);
    drop(writer);
    for (address, protection) in MAPPINGS {
        let mapper = mapper_of(&stage, &device.path, address, protection);
        refused_and_whole(&stage, &device.path, &["open for writing by python3", &mapper.id().to_string()]);
    }
    let out = destroy(&stage, &device.path);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
}

/// Measures two runs with `command`, and acts when the first one begins. Fails unless the second run is refused with
/// all texts of `refusal`, the first run is kept and reported, and `victim` is unchanged.
#[track_caller]
fn exchanged(
    stage: &Stage,
    target: &Path,
    command: &str,
    exchange: impl FnOnce(),
    victim: &Path,
    refusal: &[&str],
) {
    let run = stage.start(command, target);
    until("the first run begins", || {
        let begun = |p: &PathBuf| fs::read_to_string(p).is_ok_and(|t| t.contains("{\"run_start\":"));
        stage.sessions().iter().any(begun)
    });
    exchange();
    let before = victim.exists().then(|| sum(victim));
    let out = run.end();
    assert_eq!(out.code, Some(3), "{out:?}");
    for text in refusal {
        assert!(unwrapped(&out.stdout).contains(text), "'{text}': {out:?}");
    }
    assert_eq!(victim.exists().then(|| sum(victim)), before, "the other file was written");
    let report = stage.show().report();
    assert_eq!(report.0["results"][0]["runs"].as_array().map(Vec::len), Some(1), "{report:?}");
}

fn renamed_over(rw: &str) {
    let stage = Stage::shared();
    let (target, other) = (stage.file("target", 32), stage.file("other", 32));
    let aside = stage.path("aside");
    let named = if rw == "randread" { String::new() } else { format!("--destroy {}", target.display()) };
    let rename = || {
        fs::rename(&target, &aside).unwrap();
        fs::rename(&other, &target).unwrap();
    };
    let words = format!("run --rw {rw} {TWO_RUNS} {named}");
    exchanged(&stage, &target, &words, rename, &target, &["has changed since the plan was made", "inode"]);
}

#[test]
fn replaced_write_target_is_not_touched() {
    renamed_over("randwrite");
}

#[test]
fn replaced_read_target_is_not_measured() {
    renamed_over("randread");
}

#[test]
fn results_are_kept_when_the_target_is_removed() {
    let stage = Stage::shared();
    let target = stage.file("target", 32);
    let remove = || fs::remove_file(&target).unwrap();
    exchanged(
        &stage,
        &target,
        &format!("run --rw randread {TWO_RUNS}"),
        remove,
        &target,
        &["is no longer there"],
    );
}

#[test]
fn replaced_device_node_is_not_touched() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let other = stage.file("other", 64);
    let Some(other) = Device::on(&other, Image::Direct) else { return };
    let node = node_of(&stage, "node", &device.path);
    let make_anew = || {
        fs::remove_file(&node).unwrap();
        node_of(&stage, "node", &other.path);
    };
    let words = format!("run --rw randwrite {TWO_RUNS} --destroy {}", node.display());
    exchanged(
        &stage,
        &node,
        &words,
        make_anew,
        &other.path,
        &["has changed since the plan was made", "and is device 7:"],
    );
}

#[test]
fn replaced_loop_backing_file_is_not_measured() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let (first, second) = (stage.file("first", 32), stage.file("second", 32));
    let device = Device::attach(&[&"--read-only"], &first).unwrap();
    // Replace the device's file with LOOP_CHANGE_FD, which the kernel allows even while the device is read.
    let words = "import fcntl\nfcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x4C06, os.open(sys.argv[2], os.O_RDONLY))";
    let change = || {
        let script = format!("import os, sys\n{words}");
        tool(&[&"python3", &"-c", &script, &device.path, &second]).unwrap();
    };
    let words = format!("run --rw randread {TWO_RUNS}");
    exchanged(
        &stage,
        &device.path,
        &words,
        change,
        &second,
        &["has changed since the plan was made", "a loop over inode"],
    );
}

#[test]
fn file_with_the_name_of_a_removed_image_is_not_inspected_as_the_image() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 32, Image::Direct) else { return };
    let says_other_file = || {
        let out = stage.fathom(&format!("run --rw randread {TWO_RUNS} --quiet"), &device.path);
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        let sessions: Vec<String> = stage.sessions().iter().map(|p| fs::read_to_string(p).unwrap()).collect();
        sessions.iter().any(|session| session.contains("is not the file below the loop device"))
    };
    assert!(!says_other_file());
    // The kernel shows this name for an image without a name.
    fs::remove_file(&device.image).unwrap();
    stage.file("image (deleted)", 16);
    assert!(says_other_file());
}

#[test]
fn several_names_of_a_file_are_one_target() {
    let stage = Stage::shared();
    let file = stage.file("data", 32);
    let link = hard_link(&stage, &file);
    let soft = stage.path("soft");
    std::os::unix::fs::symlink(&file, &soft).unwrap();
    let names = [&file, &link, &soft, &file].map(|p| p.display().to_string()).join(" ");
    let words = format!(
        "run --rw randread --depth 8 --engine io_uring --time 500ms --warmup 0 --runs 1 --quiet {names}"
    );
    let once = stage.fathom(&format!("{words} --format json"), Path::new(""));
    let depth = once.report().0["results"][0]["read"]["depth_mean"].as_f64().unwrap();
    assert!(depth <= 8.1, "{depth} in flight");
    let report = once.report();
    assert_eq!(report.answers("A15")[0]["evidence"]["span_bytes"].as_f64(), Some(33_554_432.0), "{report:?}");
    let text = stage.fathom(&format!("{words} --verbose"), Path::new(""));
    assert!(unwrapped(&text.stdout).contains("are the same target, which is used once"), "{text:?}");
    // Two different files are two targets.
    let second = stage.file("second", 32);
    let both = stage.fathom(&format!("{words} {}", second.display()), Path::new(""));
    // `.../second and .../data are the same target, which is used once` would be wrong.
    assert!(!both.stdout.contains("second and"), "{both:?}");
}

#[test]
fn two_nodes_of_a_device_are_one_target() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let node = node_of(&stage, "node", &device.path);
    let words = format!("run {SHORT} --depth 4 --destroy {0} {0} {1}", device.path.display(), node.display());
    let out = stage.fathom(&words, Path::new(""));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert!(unwrapped(&out.stdout).contains("are the same target, which is used once"), "{out:?}");
}
