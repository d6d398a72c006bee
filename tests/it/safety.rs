//! Devices and files that are in use or contain data are not written, whatever the command line.

use crate::disk::{Device, Disk, Image, make};
use crate::output::shell;
use crate::stage::{Outcome, Stage, is_root, skip, tool};
use engine::engines::ENGINES;
use model::job::Kind;
use rustix::process::Signal;
use std::os::unix::fs::FileExt;
use std::path::Path;

const SHORT: &str = "--rw randwrite --size 16m --time 100ms --warmup 0 --runs 1 --quiet";

/// Tries to write to a device that --destroy names.
fn write_to(stage: &Stage, device: &Path) -> Outcome {
    stage.fathom(&format!("run {SHORT} --destroy {0}", device.display()), device)
}

/// Fails unless the program refused with these words, and the image is unchanged.
#[track_caller]
fn refused(out: &Outcome, words: &str, device: &Device, before: &str) {
    assert_eq!(out.code, Some(3), "{out:?}");
    let printed = out.stderr.to_lowercase();
    assert!(printed.contains(&words.to_lowercase()), "'{words}' is not in: {}", out.stderr);
    assert_eq!(out.stdout, "");
    assert_eq!(device.checksum(), before, "it was written");
}

/// Fails unless the message asks for --destroy with the name of the target.
#[track_caller]
fn needs_the_name(out: &Outcome) {
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("--destroy"), "{out:?}");
}

#[test]
fn blank_device_is_written_only_when_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let before = device.checksum();
    let unnamed = stage.fathom(&format!("run {SHORT}"), &device.path);
    needs_the_name(&unnamed);
    let other = stage.fathom(&format!("run {SHORT} --destroy /dev/null"), &device.path);
    needs_the_name(&other);
    assert_eq!(device.checksum(), before);
    // First prove that a permitted write happens: otherwise the next tests would pass for a program that never writes.
    let named = write_to(&stage, &device.path);
    assert!(matches!(named.code, Some(0 | 1)), "{named:?}");
    assert_ne!(device.checksum(), before);
}

#[test]
fn no_engine_changes_bytes_outside_the_named_region() {
    let stage = Stage::shared();
    let file = stage.path("region");
    let (mib, content) = (1 << 20, |at: usize| (at % 251) as u8);
    for engine in ENGINES.iter().filter(|e| e.touches_targets() && e.kinds.contains(&Kind::Write)) {
        let before: Vec<u8> = (0..4 * mib).map(content).collect();
        std::fs::write(&file, &before).unwrap();
        let words = format!(
            "run --rw write --bs 64k --offset 1m --size 1m --engine {} --cache {} --time 30ms --warmup 0s --runs 1 --quiet --destroy {}",
            engine.name,
            engine.caches.last().unwrap().word(),
            file.display()
        );
        let out = stage.fathom(&words, &file);
        let after = std::fs::read(&file).unwrap();
        assert_eq!(after.len(), before.len(), "{}: {out:?}", engine.name);
        let is_same = |bytes: std::ops::Range<usize>| after[bytes.clone()] == before[bytes];
        assert!(is_same(0..mib) && is_same(2 * mib..4 * mib), "{}: {out:?}", engine.name);
        if engine.name == "ftruncate" {
            assert!(out.code == Some(2) && is_same(mib..2 * mib), "{out:?}");
        }
    }
}

#[test]
fn reads_do_not_change_a_device() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let before = device.checksum();
    let words = "bench --profile peak --time 100ms --warmup 0 --runs 1 --quiet --format json";
    let out = stage.fathom(words, &device.path);
    // The profile also has writes. Without permission only the reads run.
    let results = out.report().0["results"].clone();
    assert_eq!(results.as_array().map(Vec::len), Some(2), "{out:?}");
    assert!(results[0]["write"].is_null() && results[1]["write"].is_null());
    let out = stage.fathom("run --rw randread --time 100ms --warmup 0 --runs 1 --quiet", &device.path);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert_eq!(device.checksum(), before);
}

#[test]
fn every_signature_protects_its_device() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    // xfs and btrfs need at least these sizes.
    for (kind, words, mib) in [
        ("ext4", "ext4", 32),
        ("xfs", "xfs", 320),
        ("btrfs", "btrfs", 128),
        ("swap", "swap", 32),
        ("lvm", "lvm", 32),
    ] {
        let Some(device) = Device::new(&stage, mib, Image::Direct) else { return };
        if let Err(why) = make(kind, &device.path) {
            skip(&why);
            continue;
        }
        let before = device.checksum();
        refused(&write_to(&stage, &device.path), words, &device, &before);
    }
}

#[test]
fn recorded_signatures_protect_their_device() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    // Offsets and bytes that libblkid searches for.
    let by_hand: [(&str, u64, &[u8]); 2] =
        [("LUKS", 0, b"LUKS\xba\xbe\x00\x02\x00\x00\x00\x00\x00\x00\x40\x00"), ("dos", 446, &MBR)];
    for (words, at, bytes) in by_hand {
        let image = stage.path("image");
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(bytes, at).unwrap();
        // The device is in use if a program has it open for writing.
        drop(file);
        let Some(device) = Device::on(&image, Image::Direct) else { return };
        let before = device.checksum();
        refused(&write_to(&stage, &device.path), words, &device, &before);
    }
}

/// A partition table with one Linux partition from sector 2048, and its magic.
const MBR: [u8; 66] = {
    let mut table = [0; 66];
    table[4] = 0x83;
    table[9] = 8;
    table[14] = 1;
    table[64] = 0x55;
    table[65] = 0xaa;
    table
};

#[test]
fn mounted_device_is_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("echo kept > keep && sync");
    for out in [
        disk.fathom(&stage, &format!("run {SHORT} --destroy {}", disk.device.display()), &disk.device),
        // In another mount namespace the mount is not visible, but the kernel still reports the use.
        write_to(&stage, &disk.device),
    ] {
        assert_eq!(out.code, Some(3), "{out:?}");
        assert!(out.stderr.contains("in use") || out.stderr.contains("ext4"), "{out:?}");
    }
    assert_eq!(disk.sh("cat keep"), "kept");
}

#[test]
fn exclusively_opened_device_is_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let before = device.checksum();
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let holder = std::os::unix::fs::OpenOptionsExt::custom_flags(
        std::fs::File::options().read(true).write(true),
        exclusive,
    )
    .open(&device.path)
    .unwrap();
    refused(&write_to(&stage, &device.path), "in use", &device, &before);
    drop(holder);
}

#[test]
fn image_below_a_loop_device_is_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let before = device.checksum();
    refused(&write_to(&stage, &device.image), device.name(), &device, &before);
}

#[test]
fn user_file_is_overwritten_only_when_named() {
    let stage = Stage::shared();
    let file = stage.file("precious", 32);
    let sum = || tool(&[&"cksum", &file]).unwrap();
    let before = sum();
    let out = stage.fathom(&format!("run {SHORT}"), &file);
    needs_the_name(&out);
    assert_eq!(sum(), before);
    let named = write_to(&stage, &file);
    assert!(matches!(named.code, Some(0 | 1)), "{named:?}");
    assert_ne!(sum(), before);
}

#[test]
fn user_data_in_a_file_of_fathom_are_protected() {
    let stage = Stage::shared();
    let measure = "--time 100ms --warmup 0 --runs 1 --attempts 1 --quiet --no-history";
    let makers = [
        (format!("run --create 1m --rw write --bs 64k {measure} own"), "own"),
        (format!("run --create 1m --rw randrw --engine mmap {measure} own"), "own"),
        ("fio --name=a --filename=own --size=1m --rw=write --bs=64k".into(), "own"),
        ("diskspd -c1M -w100 -d1 -W0 own".into(), "own"),
    ];
    for (line, name) in makers {
        let own = stage.path("here").join(name);
        let call = || shell(&stage, &format!("cd \"$D\" && \"$F\" {line}"));
        for _ in 0..3 {
            let out = call();
            assert!(matches!(out.code, Some(0 | 1)), "{line}: {out:?}");
            assert!(!out.stderr.contains("destroy") && own.metadata().unwrap().len() > 0, "{line}: {out:?}");
        }
        // Overwrite the file in place, as an editor or a shell does. Its inode, length and time remain the same.
        let facts = own.metadata().unwrap();
        let theirs = vec![b'u'; facts.len() as usize];
        std::fs::write(&own, &theirs).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&own)
            .unwrap()
            .set_modified(facts.modified().unwrap())
            .unwrap();
        let out = call();
        assert!(
            out.code != Some(0) && out.stderr.contains("something else has written it since"),
            "{line}: {out:?}"
        );
        assert_eq!(std::fs::read(&own).unwrap(), theirs, "{line}");
        std::fs::remove_file(&own).unwrap();
    }
}

#[test]
fn file_of_a_killed_writer_needs_its_name_again() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let own = here.join("own");
    let measure = "--warmup 0 --runs 1 --attempts 1 --quiet --no-history";
    // Run each command for a long time, which a signal ends early, and for a short time.
    let run =
        |time: &str| format!("run --create 1m --rw randwrite {measure} --time {time} {}", own.display());
    let diskspd = |seconds: &str| format!("diskspd -c1M -w100 -W0 -d{seconds} {}", own.display());
    for (long, short) in [(run("20s"), run("50ms")), (diskspd("20"), diskspd("1"))] {
        for (signal, is_killed) in [(Signal::TERM, false), (Signal::KILL, true)] {
            let running = stage.start(&long, Path::new(""));
            let is_written = || std::fs::read(&own).is_ok_and(|data| data.iter().any(|byte| *byte != 0));
            while !is_written() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            running.signal(signal);
            running.end();
            let out = stage.fathom(&short, Path::new(""));
            let words =
                out.stderr.contains("has not marked it as complete") && out.stderr.contains("--destroy");
            assert_eq!(words, is_killed, "{signal:?}: {out:?}");
            assert_eq!(out.stdout.is_empty(), is_killed, "{signal:?}: {out:?}");
            std::fs::remove_file(&own).unwrap();
        }
    }
}

#[test]
fn every_front_end_refuses_kernel_files() {
    let stage = Stage::shared();
    // Writing this file would rename the program.
    let target = "/proc/self/comm";
    for line in [
        format!("run --rw randwrite --destroy {target}"),
        "run --rw randread".into(),
        "bench --quick".into(),
        "limit".into(),
        "sweep".into(),
        "layers".into(),
        "api".into(),
        "recipe etcd".into(),
        format!("verify --destroy {target}"),
        "fio --name=a --size=4k --rw=read --filename".into(),
        format!("fio --name=a --size=4k --rw=write --destroy={target} --filename"),
        "diskspd -d1".into(),
    ] {
        let sep = if line.ends_with("--filename") { "=" } else { " " };
        let out = shell(&stage, &format!("cd \"$D\"; \"$F\" {line}{sep}{target}"));
        assert!(matches!(out.code, Some(1 | 2)), "{line}: {out:?}");
        assert!(out.stderr.contains("is on proc"), "{line}: {out:?}");
    }
    let out = stage.fathom("bench --quick", Path::new("/sys/kernel"));
    assert!(out.code == Some(2) && out.stderr.contains("is on sysfs"), "{out:?}");
}

#[test]
fn empty_existing_file_is_kept() {
    let stage = Stage::shared();
    let run = |line: &str| {
        let out = shell(&stage, &format!("cd \"$D\"; {line}"));
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        stage.path("here/own").metadata().ok().map(|facts| facts.len())
    };
    let measure = "\"$F\" run --create 1m,unlink --rw write --time 60ms --warmup 0 --runs 1 --attempts 1 --quiet --no-history own";
    assert_eq!(run(&format!("touch own; {measure}")), Some(0), "the user's, as it was");
    assert_eq!(run(&format!("rm own; {measure}")), None, "fathom's own");
    assert_eq!(
        run(&format!(
            "\"$F\" run --create 1m --rw write --time 60ms --warmup 0 --runs 1 --quiet --no-history own; {measure}"
        )),
        None
    );
}
