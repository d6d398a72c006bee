//! Tests of the users of devices and files.

use super::*;
use crate::fixture::put;
use std::fs;

/// A disk `sda` with one partition, a volume `dm-0`, and the files of a test.
fn fixture(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let base = [
        ("proc/self/mountinfo", "1 0 8:16 / / rw - ext4 /dev/sdb rw\n"),
        ("proc/swaps", "Filename Type Size Used Priority\n"),
        ("sys/class/block/sda/dev", "8:0\n"),
        ("sys/class/block/sda/sda1/partition", "1\n"),
        ("sys/class/block/sda1/dev", "8:1\n"),
        ("sys/class/block/dm-0/dev", "253:0\n"),
        ("sys/class/block/dm-0/dm/name", "vg-data\n"),
    ];
    for (path, text) in base.iter().chain(files) {
        put(dir.path(), path, text);
    }
    dir
}

fn user(files: &[(&str, &str)]) -> String {
    let dir = fixture(files);
    match device(&Root::at(dir.path().to_owned()), "sda").unwrap_or_else(|why| panic!("{why}")) {
        Use::By(user) => user,
        Use::Unused | Use::CannotTell(_) | Use::NeedsConsent(_) => String::new(),
    }
}

#[test]
fn each_kind_of_user_is_named() {
    assert_eq!(user(&[]), "");
    let mounted = "1 0 8:1 / /data rw - xfs /dev/sda1 rw\n";
    assert_eq!(user(&[("proc/self/mountinfo", mounted)]), "sda1 is mounted on /data as xfs");
    let btrfs = "1 0 0:40 / /b rw - btrfs /dev/sda rw\n";
    assert_eq!(user(&[("proc/self/mountinfo", btrfs)]), "sda is mounted on /b as btrfs");
    let swap = "Filename Type Size Used Priority\n/dev/sda1 partition 1 0 -2\n";
    assert_eq!(user(&[("proc/swaps", swap)]), "sda1 is swap space in use");
    let held = user(&[("sys/class/block/sda1/holders/dm-0", "")]);
    assert_eq!(held, "sda1 is part of dm-0 (vg-data)");
    let member = user(&[("sys/fs/btrfs/1234/devices/sda1", "")]);
    assert_eq!(member, "sda1 is part of the mounted btrfs 1234");
    let image = user(&[("sys/class/block/loop3/loop/backing_file", "/dev/sda1\n")]);
    assert_eq!(image, "sda1 is the backing file of loop3");
    let exported = user(&exported("/dev/sda1\n"));
    let place = "/sys/kernel/config/nvmet/subsystems/nqn/namespaces/1";
    assert_eq!(exported, format!("sda1 is exported to other machines ({place})"));
}

/// An NVMe target with one namespace.
fn exported(path: &'static str) -> [(&'static str, &'static str); 2] {
    [
        ("sys/kernel/config/nvmet/subsystems/nqn/namespaces/1/enable", "1\n"),
        ("sys/kernel/config/nvmet/subsystems/nqn/namespaces/1/device_path", path),
    ]
}

#[test]
fn exports_of_devices_below_volumes_and_of_files_are_found_and_unknown_ones_forbid_writing() -> io::Result<()>
{
    // An NVMe target exports a member of a volume.
    let mut files = vec![("sys/class/block/dm-0/slaves/sda1", "")];
    files.extend(exported("/dev/sda1\n"));
    let dir = fixture(&files);
    let found = device(&Root::at(dir.path().to_owned()), "dm-0");
    assert!(
        matches!(&found, Ok(Use::By(user)) if user.starts_with("dm-0 is stored on sda1, and sda1 is exported")),
        "{found:?}"
    );
    // A file that a loop device uses too.
    let mut files = vec![
        ("image", ""),
        ("sys/class/block/loop1/dev", "7:1\n"),
        ("sys/class/block/loop1/loop/backing_file", "/image\n"),
    ];
    files.extend(exported("/image\n"));
    let dir = fixture(&files);
    let found = device(&Root::at(dir.path().to_owned()), "loop1");
    let start = "loop1 is backed by a file that is also exported";
    assert!(matches!(&found, Ok(Use::By(user)) if user.starts_with(start)), "{found:?}");
    fs::remove_dir_all(dir.path().join("sys/class/block/loop1"))?;
    let file = File::open(dir.path().join("image"))?;
    let found = direct_user_of_file(&Root::at(dir.path().to_owned()), &file);
    assert!(matches!(&found, Ok(Use::By(user)) if user.starts_with("exported")), "{found:?}");
    // The exported file is unknown, so it may be any file or device. The kernel has exported files open for writing, so only a file with
    // leases is known to be unused.
    let (_dir, root) = machine(&exported("/gone\n"));
    let unknown = |why: &String| why.contains("namespaces/1 is unknown: /gone: no such file");
    assert!(device(&root, "sda").is_err_and(|why| unknown(&why)));
    assert!(direct_user_of_file(&root, &File::open("/dev/null")?).is_err_and(|why| unknown(&why)));
    let with_leases = tempfile::NamedTempFile::new()?.into_temp_path();
    assert_eq!(direct_user_of_file(&root, &File::open(&with_leases)?), Ok(Use::Unused));
    // Hidden exports need consent, and a user that was found is named.
    let loaded = ("sys/module/nvmet/refcnt", "0\n");
    let (_dir, root) = machine(&[loaded]);
    let is_hidden = |found: Result<Use, String>| matches!(found, Ok(Use::NeedsConsent(why)) if why.contains("no configfs"));
    assert!(is_hidden(device(&root, "sda")));
    assert!(is_hidden(direct_user_of_file(&root, &File::open("/dev/null")?)));
    assert_eq!(direct_user_of_file(&root, &File::open(&with_leases)?), Ok(Use::Unused));
    let found = user(&[loaded, ("sys/class/block/loop3/loop/backing_file", "/dev/sda1\n")]);
    assert_eq!(found, "sda1 is the backing file of loop3");
    Ok(())
}

#[test]
fn containers_overlapping_partitions_and_shared_backing_files_are_found() {
    let dir =
        fixture(&[("proc/7/mountinfo", "1 0 8:1 / /in rw - xfs /dev/sda1 rw\n"), ("proc/7/comm", "sh\n")]);
    crate::fixture::link(dir.path(), "mnt:[1]", "proc/self/ns/mnt");
    crate::fixture::link(dir.path(), "mnt:[2]", "proc/7/ns/mnt");
    let root = Root::at(dir.path().to_owned());
    let by = |sentence: &str| Ok(Use::By(sentence.to_owned()));
    let elsewhere = "sda1 is mounted on /in as xfs in the mount namespace of sh (7)";
    assert_eq!(device(&root, "sda"), by(elsewhere));

    let mounted = "1 0 8:1 / /data rw - xfs /dev/sda1 rw\n";
    let parts = |start: &str| {
        let dir = fixture(&[("proc/self/mountinfo", mounted)]);
        put(dir.path(), "sys/devices/sda/sda/dev", "8:0\n");
        put(dir.path(), "sys/devices/sda/sda/sda2/dev", "8:2\n");
        put(dir.path(), "sys/devices/sda/sda/sda2/partition", "2\n");
        put(dir.path(), "sys/class/block/sda/sda2/partition", "2\n");
        crate::fixture::link(dir.path(), "../../devices/sda/sda/sda2", "sys/class/block/sda2");
        for (name, start, size) in [("sda1", "0", "10"), ("sda2", start, "10")] {
            put(dir.path(), &format!("sys/class/block/{name}/start"), start);
            put(dir.path(), &format!("sys/class/block/{name}/size"), size);
        }
        device(&Root::at(dir.path().to_owned()), "sda2")
    };
    assert_eq!(parts("9"), by("sda1 is mounted on /data as xfs"));
    assert!(!matches!(parts("10"), Ok(Use::By(_))));

    let files = [
        ("sys/class/block/loop1/dev", "7:1\n"),
        ("sys/class/block/loop1/loop/backing_file", "/image\n"),
        ("sys/class/block/loop2/dev", "7:2\n"),
        ("sys/class/block/loop2/loop/backing_file", "/image\n"),
        ("image", ""),
    ];
    let dir = fixture(&files);
    let root = Root::at(dir.path().to_owned());
    assert_eq!(
        device(&root, "loop1"),
        by("loop1 is backed by a file that is also the backing file of loop2")
    );
    // The file of loop2 is unknown, so it may be on any device.
    put(dir.path(), "sys/class/block/loop2/loop/backing_file", "/gone (deleted)\n");
    assert!(device(&root, "sda").is_err_and(|why| why.contains("the backing file of loop2 is unknown")));
}

#[test]
fn a_volume_is_in_use_if_a_loop_device_uses_a_device_below_it() {
    let found = |device_of_loop: &str, files: &[(&str, &str)]| {
        let dir = fixture(files);
        for (name, number) in [("sdc", "8:32"), ("sdc/sdc1", "8:33"), ("sdc/sdc2", "8:34")] {
            let place = format!("sys/devices/sdc/{name}");
            put(dir.path(), &format!("{place}/dev"), number);
            let file = name.rsplit('/').next().unwrap_or(name);
            crate::fixture::link(
                dir.path(),
                &format!("../../../{place}"),
                &format!("sys/class/block/{file}"),
            );
        }
        for (part, start) in [("sdc1", "0"), ("sdc2", "10")] {
            put(dir.path(), &format!("sys/devices/sdc/sdc/{part}/partition"), "1\n");
            put(dir.path(), &format!("sys/devices/sdc/sdc/{part}/start"), start);
            put(dir.path(), &format!("sys/devices/sdc/sdc/{part}/size"), "10\n");
        }
        put(dir.path(), "sys/class/block/dm-0/slaves/sdc1", "");
        put(dir.path(), "sys/class/block/dm-1/dev", "253:1\n");
        put(dir.path(), "sys/class/block/dm-1/slaves/dm-0", "");
        if !device_of_loop.is_empty() {
            put(dir.path(), "sys/class/block/loop3/dev", "7:3\n");
            put(dir.path(), "sys/class/block/loop3/loop/backing_file", &format!("/dev/{device_of_loop}\n"));
        }
        let root = Root::at(dir.path().to_owned());
        ["dm-1", "dm-0", "sdc1"].map(|name| match device(&root, name).unwrap_or_else(|why| panic!("{why}")) {
            Use::By(user) => user,
            Use::Unused | Use::CannotTell(_) | Use::NeedsConsent(_) => String::new(),
        })
    };
    for user in ["sdc", "sdc1"] {
        let own = format!("{user} is the backing file of loop3");
        let below = format!("dm-0 is stored on sdc1, and {own}");
        assert_eq!(found(user, &[]), [format!("dm-1 is stored on dm-0, and {below}"), below, own]);
    }
    // Another partition of the disk, and another volume on the same partition.
    assert_eq!(found("sdc2", &[]), ["", "", ""]);
    let sibling = [
        ("sys/devices/sdc/sdc/sdc1/holders/dm-7", ""),
        ("sys/class/block/dm-7/dev", "253:7\n"),
        ("proc/self/mountinfo", "1 0 253:7 / /data rw - xfs /dev/dm-7 rw\n"),
    ];
    let [upper, lower, part] = found("", &sibling);
    assert_eq!((upper.as_str(), lower.as_str()), ("", ""));
    assert_eq!(part, "sdc1 is part of dm-7, which is mounted on /data as xfs");

    // The file below the volume is also below another loop device.
    let files = [
        ("image", ""),
        ("sys/class/block/loop1/dev", "7:1\n"),
        ("sys/class/block/loop1/loop/backing_file", "/image\n"),
        ("sys/class/block/loop2/dev", "7:2\n"),
        ("sys/class/block/loop2/loop/backing_file", "/image\n"),
        ("sys/class/block/dm-0/slaves/loop1", ""),
    ];
    let dir = fixture(&files);
    let shared =
        "dm-0 is stored on loop1, and loop1 is backed by a file that is also the backing file of loop2";
    assert_eq!(device(&Root::at(dir.path().to_owned()), "dm-0"), Ok(Use::By(shared.into())));
}

#[test]
fn a_stack_that_is_too_deep_or_unreadable_forbids_writing() {
    let loops = MAX_LEVELS + 2;
    let stacked = |count: usize| {
        let dir = fixture(&[]);
        for number in 0..count {
            let at = format!("sys/class/block/loop{number}");
            put(dir.path(), &format!("{at}/dev"), &format!("7:{number}\n"));
            let backing =
                if number == 0 { "/dev/sda\n".into() } else { format!("/dev/loop{}\n", number - 1) };
            put(dir.path(), &format!("{at}/loop/backing_file"), &backing);
        }
        let root = Root::at(dir.path().to_owned());
        user_in_stack(&root, &format!("loop{}", count - 1), None, MAX_LEVELS)
    };
    assert_eq!(stacked(MAX_LEVELS), Ok(None));
    assert!(stacked(loops).is_err_and(|why| why.contains("more than 16 devices")));

    let dir = fixture(&[("sys/class/block/sda/slaves/sdd", "")]);
    let found = device(&Root::at(dir.path().to_owned()), "sda");
    assert!(found.is_err_and(|why| why.contains("no device number of sdd")));

    // A file in place of the directory makes listing fail.
    for unreadable in ["sys/class/block/sda/holders", "sys/class/block/sda/slaves", "sys/fs/btrfs"] {
        let dir = fixture(&[(unreadable, "")]);
        let found = device(&Root::at(dir.path().to_owned()), "sda");
        assert!(found.as_ref().is_err_and(|why| why.contains(unreadable)), "{unreadable}: {found:?}");
    }
}

/// Files of a machine with one process, which has nothing open.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = fixture(files);
    put(dir.path(), "proc/1/maps", "");
    put(dir.path(), "proc/1/task/1/fd/0", "");
    crate::fixture::link(dir.path(), processes::INITIAL_PID_NAMESPACE, "proc/self/ns/pid");
    let root = Root::at(dir.path().to_owned());
    (dir, root)
}

#[test]
fn without_leases_unreadable_swap_and_loop_devices_forbid_writing() -> io::Result<()> {
    // Like files of some file systems, `/dev/null` has no leases.
    let without = File::open("/dev/null")?;
    let path = tempfile::NamedTempFile::new()?.into_temp_path();
    let with = File::open(&path)?;
    let use_of = |root: &Root, file: &File| direct_user_of_file(root, file);
    let (dir, root) = machine(&[]);
    assert_eq!(use_of(&root, &without), Ok(Use::Unused));
    fs::remove_file(dir.path().join("proc/swaps"))?;
    assert_eq!(use_of(&root, &with), Ok(Use::Unused), "the kernel reports no writer");
    assert!(use_of(&root, &without).is_err_and(|why| why.contains("/proc/swaps: no such file")));
    put(dir.path(), "proc/filesystems", "\text4\n");
    assert_eq!(use_of(&root, &without), Ok(Use::Unused), "a kernel without swap");
    put(dir.path(), "sys/class/block/loop1/loop/backing_file", "/gone (deleted)\n");
    put(dir.path(), "sys/class/block/loop1/ro", "0\n");
    assert_eq!(use_of(&root, &with), Ok(Use::Unused), "the kernel reports no writer");
    assert!(use_of(&root, &without).is_err_and(|why| why.contains("the backing file of loop1")));
    // A read-only loop device is not a writer. Without `ro`, loop1 may be read-only.
    fs::remove_file(dir.path().join("sys/class/block/loop1/ro"))?;
    assert!(use_of(&root, &with).is_err_and(|why| why.contains("the backing file of loop1")));
    for source in ["image", "/gone", "/not-\u{fffd}-utf-8"] {
        let mount = format!("1 0 0:50 / /m ro - erofs {source} ro\n");
        let (_dir, root) = machine(&[("proc/self/mountinfo", &mount)]);
        let found = use_of(&root, &with);
        assert!(matches!(&found, Ok(Use::CannotTell(why)) if why.contains(source)), "{source}: {found:?}");
    }
    let (dir, root) = machine(&[]);
    fs::remove_dir_all(dir.path().join("sys/class/block"))?;
    assert!(use_of(&root, &without).is_err() && use_of(&root, &with).is_err());
    Ok(())
}

#[test]
fn unreadable_mounts_forbid_writing() {
    let dir = fixture(&[]);
    fs::remove_file(dir.path().join("proc/self/mountinfo")).unwrap_or_else(|e| panic!("{e}"));
    assert!(device(&Root::at(dir.path().to_owned()), "sda").is_err());
}

mod writers {
    use super::super::*;
    use crate::fixture::{link, put};
    use std::os::unix::fs::PermissionsExt;

    /// A machine with a process that has a file open with these flags, and has these mappings. Returns the directory of the machine, and
    /// the use of the file or of inode 42 on device 8:1.
    fn user(flags: &str, maps: &str) -> (tempfile::TempDir, Use) {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        put(dir.path(), "file", "x");
        let file = dir.path().join("file");
        let what = identity::from_path(&file).unwrap_or_else(|e| panic!("{e}"));
        for pid in [1, 7] {
            put(dir.path(), &format!("proc/{pid}/maps"), "");
            put(dir.path(), &format!("proc/{pid}/task/{pid}/fd/0"), "");
        }
        put(dir.path(), "proc/7/comm", "db\n");
        link(dir.path(), processes::INITIAL_PID_NAMESPACE, "proc/self/ns/pid");
        // Only one thread has the file open, in its own file table.
        link(dir.path(), &file.to_string_lossy(), "proc/7/task/8/fd/3");
        put(dir.path(), "proc/7/task/8/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n"));
        put(dir.path(), "proc/7/maps", maps);
        let device = Identity::File { device: "8:1".into(), inode: 42 };
        let found = writer_of_devices(&Root::at(dir.path().to_owned()), &[what, device]);
        (dir, found)
    }

    #[test]
    fn writers_are_named_and_readers_are_not() {
        let by = Use::By("open for writing by db (7)".into());
        assert_eq!(user("0100002", "").1, by);
        assert_eq!(user("0100001", "").1, by);
        assert_eq!(user("junk", "").1, by);
        assert_eq!(user("0100000", "").1, Use::Unused);
        let line =
            |permissions: &str| format!("7f00-7f01 {permissions} 00000000 08:01 42      /gone (deleted)\n");
        for permissions in ["rw-s", "-w-s", "rwxs", "-wxs"] {
            assert_eq!(user("0100000", &line(permissions)).1, by, "{permissions}");
        }
        for permissions in ["rw-p", "rwxp"] {
            assert_eq!(user("0100000", &line(permissions)).1, Use::Unused, "{permissions}");
        }
        // A long list is searched to its end.
        let long = line("r--p").repeat(80_000) + &line("rw-s");
        assert!(long.len() > 4 << 20);
        assert_eq!(user("0100000", &long).1, by);
        assert_eq!(user("0100000", "junk\n\n7f00-7f01 rw-s\n7f-8 rw-s 0 zz:01 x y\n").1, Use::Unused);
    }

    #[test]
    fn mappings_are_found_by_link_and_by_name_and_count_if_they_can_become_writable() {
        let mapped = |permissions: &str, prepare: &dyn Fn(&Path, &Path)| {
            let line = format!("00500000-00501000 {permissions} 00000000 00:99 5      /dev/a disk\n");
            let (dir, unseen) = user("0100000", &line);
            assert_eq!(unseen, Use::Unused);
            let file = dir.path().join("file");
            prepare(dir.path(), &file);
            let what = [identity::from_path(&file).unwrap_or_else(|e| panic!("{e}"))];
            writer_of_devices(&Root::at(dir.path().to_owned()), &what)
        };
        let by = Use::By("open for writing by db (7)".into());
        let place = "proc/7/map_files/500000-501000";
        let by_link = |dir: &Path, file: &Path| link(dir, &file.to_string_lossy(), place);
        let by_name = |dir: &Path, file: &Path| link(dir, &file.to_string_lossy(), "proc/7/root/dev/a disk");
        let open_for_reading = |dir: &Path, file: &Path| {
            std::fs::create_dir_all(dir.join("proc/7/map_files"))
                .and_then(|()| std::fs::hard_link(file, dir.join(place)))
                .and_then(|()| std::fs::set_permissions(file, PermissionsExt::from_mode(0o400)))
                .unwrap_or_else(|e| panic!("{e}"));
        };
        for permissions in ["rw-s", "r--s", "---s"] {
            assert_eq!(mapped(permissions, &by_link), by, "{permissions}");
            assert_eq!(mapped(permissions, &by_name), by, "{permissions}");
        }
        assert_eq!(mapped("r--s", &open_for_reading), Use::Unused);
        assert_eq!(mapped("r--p", &by_link), Use::Unused);
    }

    #[test]
    fn hidden_files_may_be_in_use() {
        let (dir, _) = user("0100000", "");
        let root = Root::at(dir.path().to_owned());
        let file = [Identity::File { device: "0:0".into(), inode: 0 }];
        assert_eq!(writer_of_devices(&root, &file), Use::Unused);
        put(dir.path(), "proc/9/comm", "x");
        assert!(
            matches!(writer_of_devices(&root, &file), Use::NeedsConsent(why) if why.contains("files of 1"))
        );
        std::fs::remove_dir_all(dir.path().join("proc/9")).unwrap_or_else(|e| panic!("{e}"));
        // Only process 1 may hide its files, and must be listed. If it is not listed, all other processes are hidden too.
        std::fs::remove_dir_all(dir.path().join("proc/1/task")).unwrap_or_else(|e| panic!("{e}"));
        assert!(matches!(writer_of_devices(&root, &file), Use::CannotTell(why) if why.contains("process 1")));
        std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap_or_else(|e| panic!("{e}"));
        assert!(matches!(writer_of_devices(&root, &file), Use::NeedsConsent(_)));
        assert!(matches!(
            writer_of_devices(&Root::at("/nonexistent-prefix".into()), &file),
            Use::NeedsConsent(_)
        ));
    }

    #[test]
    fn this_process_is_the_one_that_proc_shows_as_itself() {
        let (dir, by) = user("0100002", "");
        let root = Root::at(dir.path().to_owned());
        let file = [identity::from_path(&dir.path().join("file")).unwrap_or_else(|e| panic!("{e}"))];
        assert_eq!(writer_of_devices(&root, &file), by);
        std::fs::rename(dir.path().join("proc/self/ns"), dir.path().join("proc/7/ns"))
            .and_then(|()| std::fs::remove_dir(dir.path().join("proc/self")))
            .unwrap_or_else(|e| panic!("{e}"));
        link(dir.path(), "7", "proc/self");
        assert_eq!(writer_of_devices(&root, &file), Use::Unused);
    }

    #[test]
    fn ended_threads_hide_nothing_and_threads_without_visible_files_do() {
        let (dir, _) = user("0100000", "");
        let root = Root::at(dir.path().to_owned());
        let file = [Identity::File { device: "0:0".into(), inode: 0 }];
        // The thread was listed, but has ended.
        link(dir.path(), "/gone", "proc/7/task/9");
        assert_eq!(writer_of_devices(&root, &file), Use::Unused);
        put(dir.path(), "proc/7/task/10/comm", "db\n");
        assert!(matches!(writer_of_devices(&root, &file), Use::NeedsConsent(_)));
    }

    #[test]
    fn a_pid_namespace_or_an_unknown_one_hides_users() {
        let file = [Identity::File { device: "0:0".into(), inode: 0 }];
        for namespace in [Some("pid:[4026532177]"), None] {
            let (dir, _) = user("0100000", "");
            let ours = dir.path().join("proc/self/ns/pid");
            std::fs::remove_file(&ours).unwrap_or_else(|e| panic!("{e}"));
            if let Some(namespace) = namespace {
                link(dir.path(), namespace, "proc/self/ns/pid");
            }
            let found = writer_of_devices(&Root::at(dir.path().to_owned()), &file);
            assert!(matches!(found, Use::NeedsConsent(_)), "{namespace:?}: {found:?}");
        }
        // For a file with leases, the kernel reports writers in all namespaces. For other files it cannot answer.
        let (dir, _) = user("0100000", "");
        let root = Root::at(dir.path().to_owned());
        let null = File::open("/dev/null").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(writer_of_file(&root, &null), Use::Unused);
        std::fs::remove_file(dir.path().join("proc/self/ns/pid")).unwrap_or_else(|e| panic!("{e}"));
        link(dir.path(), "pid:[4026532177]", "proc/self/ns/pid");
        let found = writer_of_file(&root, &null);
        let why =
            "the file's file system has no leases, and processes outside this PID namespace are not visible";
        assert!(matches!(&found, Use::NeedsConsent(text) if text.starts_with(why)), "{found:?}");
        let with_leases = File::open(dir.path().join("file")).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(writer_of_file(&root, &with_leases), Use::Unused);
        // A visible user is named in every environment.
        let (dir, by) = user("0100002", "");
        std::fs::remove_file(dir.path().join("proc/self/ns/pid")).unwrap_or_else(|e| panic!("{e}"));
        let what = identity::from_path(&dir.path().join("file")).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(writer_of_devices(&Root::at(dir.path().to_owned()), &[what]), by);
    }
}
