//! Files that overlays and FUSE mounts show under another identity, and output that a shell redirects: none of them is destroyed.

use crate::disk::{Device, Disk, Image};
use crate::output::{RUN, check_outcome, shell};
use crate::stage::{Stage, fill, is_root, skip};
use std::path::Path;

/// A write that is harmless if it is not refused.
const WRITE: &str = "run --rw randwrite --time 200ms --warmup 0 --runs 1 --quiet --no-history";
/// Mounts an overlay on `merged`.
const OVERLAY: &str = "mkdir lower upper work merged && mount -t overlay none -o lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work merged";

#[test]
fn mounted_image_is_refused_through_an_overlay() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh(&format!("{OVERLAY} && mkdir inside && truncate -s 16m upper/image && mkfs.ext4 -q -F upper/image && cp upper/image copy"));
    for (mounted, named) in [("upper", "merged"), ("merged", "upper"), ("merged", "merged")] {
        // Test read-only loop devices too: they do not open the file for writing.
        for how in ["loop,ro", "loop"] {
            disk.sh("cp copy upper/image && sync");
            disk.mount(how, &format!("{mounted}/image"), "inside");
            let sum = || disk.sh("sha256sum < upper/image");
            let before = sum();
            let path = disk.dir.join(named).join("image");
            let out = disk.fathom(&stage, &format!("{WRITE} --destroy {}", path.display()), &path);
            assert_eq!(sum(), before, "{mounted} {named} {how}: {out:?}");
            check_outcome(&out, 3, &["the backing file of loop"]);
            disk.sh("umount inside && e2fsck -f -n upper/image");
        }
    }
    // Both names lead to one file, so the plan has one target.
    let both = format!("run --explain {}", disk.dir.join("upper/image").display());
    let out = disk.fathom(&stage, &both, &disk.dir.join("merged/image"));
    assert_eq!(out.stdout.matches("TARGET").count(), 1, "{out:?}");
    // An unused file is written.
    let path = disk.dir.join("merged/image");
    let out = disk.fathom(&stage, &format!("{WRITE} --destroy {}", path.display()), &path);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    // A program has the file open through the lower path.
    let writer = disk.spawn_sh("exec 5<> upper/image && echo open > opened && sleep 60");
    while !disk.inside(&disk.dir.join("opened")).exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let out = disk.fathom(&stage, &format!("{WRITE} --destroy {}", path.display()), &path);
    drop(writer);
    check_outcome(&out, 3, &["open for writing by"]);
    disk.sh("umount merged");
}

#[test]
fn mounted_image_is_refused_through_a_fuse_mirror() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("mkdir -p real/sub shown inside && bindfs real shown && truncate -s 16m real/sub/image && mkfs.ext4 -q -F real/sub/image && cp real/sub/image copy");
    for (mounted, named) in [("real", "shown"), ("shown", "real"), ("shown", "shown")] {
        // Test read-only loop devices too: they do not open the file for writing.
        for how in ["loop,ro", "loop"] {
            disk.sh("cp copy real/sub/image && sync");
            disk.mount(how, &format!("{mounted}/sub/image"), "inside");
            let sum = || disk.sh("sha256sum < real/sub/image");
            let before = sum();
            let path = disk.dir.join(named).join("sub/image");
            let out = disk.fathom(&stage, &format!("{WRITE} --destroy {}", path.display()), &path);
            assert_eq!(sum(), before, "{mounted} {named} {how}: {out:?}");
            assert!(
                out.code == Some(3)
                    && ["the backing file of loop", "open for writing by"]
                        .iter()
                        .any(|w| out.stderr.contains(w)),
                "{mounted} {named} {how}: {out:?}"
            );
            disk.sh("umount inside && e2fsck -f -n real/sub/image");
        }
    }
    // An unused file is written, by either name. fathom's own access through the FUSE program does not count as use.
    for named in ["shown", "real"] {
        let path = disk.dir.join(named).join("sub/image");
        let out = disk.fathom(&stage, &format!("{WRITE} --destroy {}", path.display()), &path);
        assert!(matches!(out.code, Some(0 | 1)), "{named}: {out:?}");
    }
    // In a container, programs outside may write a file that has no leases.
    disk.sh("head -c 16M /dev/urandom > real/data");
    let path = disk.dir.join("shown/data");
    let contained = |more: &str| {
        let (fathom, path) = (env!("CARGO_BIN_EXE_fathom"), path.display());
        let words = format!("{WRITE} --cache buffered --destroy {path} {more} {path}");
        disk.sh(&format!("unshare --pid --fork --mount-proc {fathom} {words} 2>&1 || true"))
    };
    let before = disk.sh("sha256sum < real/data");
    let out = contained("");
    assert!(out.contains("may be hidden") && out.contains("--unseen-users"), "{out}");
    assert_eq!(disk.sh("sha256sum < real/data"), before, "{out}");
    let out = contained(&format!("--unseen-users {}", path.display()));
    assert!(disk.sh("sha256sum < real/data") != before, "{out}");
    disk.sh("umount shown");
}

#[test]
fn image_is_refused_through_an_anonymous_fuse_mirror() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("mkdir real shown inside gone && mount --bind real gone && bindfs gone shown && umount -l gone && truncate -s 16m real/image && mkfs.ext4 -q -F real/image");
    // A file with a file system in its middle. Its first bytes do not show that.
    disk.sh("truncate -s 24m real/middle && mkfs.ext4 -q -F -E offset=8388608 real/middle 16m && head -c 8M /dev/urandom > real/data");
    let shown = |name: &str| disk.dir.join("shown").join(name);
    let run = |name: &str, more: &str| {
        let path = shown(name);
        disk.fathom(&stage, &format!("{WRITE} --cache buffered --destroy {} {more}", path.display()), &path)
    };
    for (image, options) in [("image", "loop,ro"), ("image", "loop"), ("middle", "loop,ro,offset=8388608")] {
        disk.mount(options, &format!("real/{image}"), "inside");
        let sum = || disk.sh(&format!("sha256sum < real/{image}"));
        let before = sum();
        // --unseen-users does not allow the write either.
        for more in [String::new(), format!("--unseen-users {}", shown(image).display())] {
            let out = run(image, &more);
            assert_eq!(sum(), before, "{image} {options}: {out:?}");
            check_outcome(&out, 3, &["hold the same file system"]);
        }
        disk.sh("umount inside");
    }
    // The image is not mounted here, but the FUSE program may show it to others.
    disk.sh("cp real/image copy");
    check_outcome(&run("image", ""), 3, &["holds ext4", "--unseen-users"]);
    disk.sh("cmp copy real/image");
    let out = run("image", &format!("--unseen-users {}", shown("image").display()));
    assert!(
        matches!(out.code, Some(0 | 1)) && disk.sh("cmp -s copy real/image || echo written") == "written",
        "{out:?}"
    );
    // Files with plain data are written as usual.
    let out = run("data", "");
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    disk.sh("umount shown");
}

#[test]
fn target_is_not_overwritten_by_a_report_through_an_overlay() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh(&format!(
        "{OVERLAY} && yes text | head -c 4M > upper/data.json && sync && cp upper/data.json copy"
    ));
    for (target, report) in [("upper", "merged"), ("merged", "upper")] {
        let of = |name: &str| disk.dir.join(name).join("data.json");
        let words = format!(
            "run --cache buffered --time 50ms --warmup 0 --runs 1 --quiet --no-history --force -o {}",
            of(report).display()
        );
        check_outcome(&disk.fathom(&stage, &words, &of(target)), 2, &["a target of this command"]);
        disk.sh("cmp copy upper/data.json");
    }
    disk.sh("umount merged");
}

#[test]
fn file_mounted_without_a_loop_device_is_in_use() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::bare(&stage, None) else { return };
    disk.sh("mkdir files inside && head -c 1M /dev/urandom > files/a && mkfs.erofs image files > /dev/null 2>&1 && cp image copy");
    let mount = r#"python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(os.path.abspath("image").encode(), b"inside", b"erofs", 1, None): sys.exit(os.strerror(ctypes.get_errno()))' && echo mounted || true"#;
    if !disk.sh(mount).contains("mounted") {
        return skip("this kernel mounts no erofs from a file");
    }
    let image = disk.dir.join("image");
    let out = disk.fathom(&stage, &format!("{WRITE} --destroy {}", image.display()), &image);
    disk.sh("cmp copy image && umount inside");
    check_outcome(&out, 3, &["mounted on", "erofs"]);
}

#[test]
fn messages_are_never_written_to_a_target_or_disk() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let file = stage.path("data");
    fill(&file, 4);
    let before = std::fs::read(&file).unwrap();
    let run = "run --cache buffered --time 50ms --warmup 0 --runs 1";
    for sent in ["2<>", "2>>"] {
        let out = shell(&stage, &format!("\"$F\" {run} {0} {sent} {0}", file.display()));
        assert!(out.code == Some(2) && out.stdout.contains("a target of this command"), "{out:?}");
        assert!(std::fs::read(&file).unwrap() == before, "{sent}");
    }
    let Some(device) = Device::new(&stage, 16, Image::Direct) else { return };
    let before = device.checksum();
    for words in ["--frob", run, "explain Z99"] {
        let out = shell(&stage, &format!("\"$F\" {words} \"$D\" 2<> {}", device.path.display()));
        assert!(out.stdout.contains("standard error is a block device"), "{out:?}");
        assert_eq!(device.checksum(), before, "{words}");
    }
}

#[test]
fn failed_conversions_replace_nothing() {
    let stage = Stage::shared();
    let good = "128166372003061629,hm,0,Read,383496192,32768,413\n";
    for (name, text) in [("good.csv", good.to_owned()), ("bad.csv", format!("{good}not,a,line\n"))] {
        std::fs::write(stage.path(name), text).unwrap();
    }
    let of = |line: &str| shell(&stage, &format!("cd {} && {line}", stage.path("").display()));
    let kept = of(
        "ln -s old.log link.log; for to in old.log link.log; do echo old > old.log; \"$F\" capture --import bad.csv -o $to && echo converted; cat old.log; done; ls -l link.log",
    );
    assert_eq!(kept.stdout.matches("old\n").count(), 2, "{kept:?}");
    assert!(!kept.stdout.contains("converted") && kept.stdout.contains("link.log -> old.log"), "{kept:?}");
    assert_eq!(of("\"$F\" capture --import good.csv -o x.capture").code, Some(0));
    let cut = of(
        "head -c 20 x.capture > cut.capture; echo old > old.log; \"$F\" export cut.capture -o old.log && echo exported; cat old.log",
    );
    assert!(cut.stdout.ends_with("old\n") && !cut.stdout.contains("exported"), "{cut:?}");
    assert!(matches!(of("\"$F\" export x.capture -o link.log").code, Some(0)));
    assert!(std::fs::read_to_string(stage.path("old.log")).unwrap().contains("fio version"));
}

#[test]
fn output_of_a_timed_command_is_protected() {
    let stage = Stage::shared();
    fill(&stage.path("precious"), 2);
    let of = |line: &str| shell(&stage, &format!("cd {} && {line}", stage.path("").display()));
    let made = of("\"$F\" time -- dd if=precious of=backup bs=1M");
    assert_eq!(made.code, Some(0), "{made:?}");
    for line in [
        "\"$F\" fio --name=a --filename=backup --rw=write --size=2m",
        "\"$F\" run --rw write --create 4m backup --time 50ms --runs 1 --quiet",
        "\"$F\" run --rw read --create 4m,unlink backup --time 50ms --runs 1 --quiet",
        "\"$F\" diskspd -w100 -c4M -d1 -W0 backup",
    ] {
        let out = of(line);
        assert_eq!(of("cmp precious backup").code, Some(0), "{line}: {out:?}");
    }
}

#[test]
fn only_sessions_can_be_annotated() {
    let stage = Stage::shared();
    assert!(matches!(stage.fathom(RUN, &stage.folder("here")).code, Some(0 | 1)));
    let file = stage.path("plain");
    fill(&file, 1);
    for path in
        ["/dev/zero", "/proc/kmsg", &file.display().to_string(), &stage.path("here").display().to_string()]
    {
        for words in ["tag", "note"] {
            let out = shell(&stage, &format!("timeout 20 \"$F\" {words} {path} word"));
            assert!(matches!(out.code, Some(2 | 3)), "{words} {path}: {out:?}");
            assert!(!Path::new(&format!("{path}.words.json")).exists(), "{words} {path}");
        }
    }
}
