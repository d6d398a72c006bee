//! Commands that do not measure: `fathom devices`, shell completions, manual pages.

use crate::disk::{Device, Disk, Image};
use crate::stage::{Outcome, Stage, is_root, names, skip, tool};
use serde_json::{Value, json};
use std::path::Path;

fn nothing() -> &'static Path {
    Path::new("")
}

/// The device of this name.
#[track_caller]
fn device(out: &Outcome, name: &str) -> Value {
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let seen: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"));
    let all = seen["devices"].as_array().unwrap();
    all.iter().find(|d| d["name"] == name).unwrap_or_else(|| panic!("no {name}: {all:#?}")).clone()
}

#[test]
fn devices_lists_a_loop_device_with_its_file_and_mounts() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(free) = Device::on(&stage.file("free", 8), Image::Direct) else { return };
    let words = "devices --format json";
    let shown = device(&stage.fathom(words, nothing()), free.name());
    assert_eq!((&shown["kind"], &shown["bytes"]), (&"loop".into(), &(8 << 20).into()));
    assert_eq!(shown["backing_file"], free.image.to_str().unwrap());
    assert_eq!(shown["backing_direct"], true);
    // On some machines, the kernel hides the files of some processes even from root.
    let is_hidden = |why: &str| why.contains("the kernel does not show the open files of");
    let used_by = &shown["used_by"];
    assert!(*used_by == json!({ "Ok": null }) || used_by["Err"].as_str().is_some_and(is_hidden), "{shown:#}");
    let scheduler = std::fs::read_to_string(format!("/sys/block/{}/queue/scheduler", free.name())).unwrap();
    let chosen = shown["queue"]["scheduler"]["Ok"].as_str().unwrap();
    assert!(
        scheduler.trim() == chosen || scheduler.contains(&format!("[{chosen}]")),
        "{chosen} of {scheduler}"
    );

    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let inside = device(&disk.fathom(&stage, words, nothing()), disk.name());
    let mounts = inside["mounts"]["Ok"].as_array().unwrap();
    assert!(
        mounts.iter().any(|m| m["point"] == disk.dir.to_str().unwrap() && m["kind"] == "ext4"),
        "{inside:#}"
    );
    // Outside of the mount's private namespace, the device is still reported as used.
    let outside = device(&stage.fathom(words, nothing()), disk.name());
    assert_eq!(outside["mounts"]["Ok"], Value::Array(Vec::new()));
    assert!(outside["used_by"]["Ok"].as_str().unwrap().contains("mount namespace"), "{outside:#}");

    let text = stage.fathom("devices", nothing()).stdout;
    let line = text.lines().find(|l| l.starts_with(&format!("{}  ", free.name()))).unwrap();
    assert!(line.contains("8 MiB, loop device"), "{text}");
}

#[test]
fn devices_are_found_by_kernel_name_unless_a_file_has_it() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(free) = Device::on(&stage.file("free", 8), Image::Direct) else { return };
    let name = free.name();
    let node = format!("/dev/{name}");
    for words in [
        format!("bench {name} --explain"),
        format!("run {name} --explain"),
        format!("sweep {name} --explain"),
        format!("layers {name} --explain"),
        format!("limit {name} --explain"),
        format!("doctor {name}"),
        format!("watch {name} 100ms 1"),
    ] {
        let out = stage.fathom(&words, nothing());
        assert_eq!(out.code, Some(0), "{words}: {out:?}");
        assert!(out.stdout.contains(&node), "{words}: {out:?}");
    }
    let capture = stage.path("x.capture");
    let out = stage.fathom(&format!("capture {name} --time 200ms -o {}", capture.display()), nothing());
    assert!(out.code == Some(0) && out.stdout.contains(&format!("of {name} in")), "{out:?}");
    // Overwriting needs --destroy, as for the path.
    let out = stage.fathom(&format!("run {name} --rw randwrite --time 100ms --runs 1"), nothing());
    assert!(out.code != Some(0) && out.stderr.contains("--destroy"), "{out:?}");

    let facts = stage.fathom(&format!("devices {name}"), nothing()).stdout;
    for line in [
        "capacity        8 MiB (8388608 bytes)",
        "logical block   512 bytes",
        "write cache ",
        "discard ",
        "FUA ",
    ] {
        assert!(facts.contains(&format!("\n    {line}")), "{line}: {facts}");
    }
    let shown = device(&stage.fathom(&format!("devices {node} {name} --format json"), nothing()), name);
    assert_eq!(shown["queue"]["zoned"]["Ok"], "none");
    let unknown = stage.fathom("devices no-such-disk", nothing());
    assert!(unknown.code == Some(2) && unknown.stderr.contains("`fathom devices` lists"), "{unknown:?}");
    let unknown = stage.fathom("bench no-such-disk", nothing());
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("`fathom devices` lists the disks"),
        "{unknown:?}"
    );

    // If a file has the name of a device, the file is used, and a message names both.
    std::fs::rename(stage.file("copy", 1), stage.folder("cwd").join(name)).unwrap();
    let out = stage.fathom(&format!("run {name} --explain"), nothing());
    let note = format!("{name} means the file in the current directory; for the block device type {node}");
    assert!(out.code == Some(0) && out.stderr.contains(&note), "{out:?}");
    assert!(!out.stdout.contains(&node), "{out:?}");
    let out = stage.fathom(&format!("devices {name}"), nothing());
    assert!(out.code == Some(2) && out.stderr.contains("is not a block device"), "{out:?}");
}

#[test]
fn devices_works_without_rights() {
    let stage = Stage::shared();
    let out = stage.fathom_unprivileged("devices", nothing());
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let count = names(Path::new("/sys/class/block")).len();
    assert!(count == 0 || !out.stdout.is_empty());
}

/// The completions that bash offers for the last word.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    let asked = format!(
        "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _fathom fathom '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2]
    );
    tool(&[&"bash", &"-c", &asked]).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let stage = Stage::shared();
    for shell in ["bash", "zsh", "fish"] {
        let out = stage.fathom(&format!("completions {shell}"), nothing());
        assert!(out.code == Some(0) && out.stdout.contains("recipe"), "{shell}: {}", out.stderr);
        std::fs::write(stage.path(shell), out.stdout).unwrap();
    }
    let script = stage.path("bash");
    if tool(&[&"bash", &"-c", &"true"]).is_err() {
        skip("there is no bash");
        return;
    }
    assert_eq!(completed(&script, &["fathom", "rec"]), ["recipe"]);
    assert!(completed(&script, &["fathom", "run", "--fail"]).contains(&"--fail-if".to_owned()));
    assert_eq!(completed(&script, &["fathom", "bench", "--profile", "cd"]), ["cdm"]);
    assert!(completed(&script, &["fathom", "recipe", "post"]).contains(&"postgres-wal".to_owned()));
    assert_eq!(stage.fathom("completions tcsh", nothing()).code, Some(2));
}

#[test]
fn manual_pages_are_replaced_atomically() {
    let stage = Stage::shared();
    let (dir, elsewhere) = (stage.folder("man1"), stage.path("elsewhere"));
    let write = || stage.fathom("man", &dir);
    std::fs::write(dir.join("fathom.1"), ".TH old").unwrap();
    std::fs::write(&elsewhere, "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, dir.join("fathom-list.1")).unwrap();
    let last = dir.join("fathom-watch.1");
    let kept = |what: &str| {
        let out = write();
        assert!(
            matches!(out.code, Some(2 | 3)) && out.stderr.contains(what) && !out.stderr.contains("--force"),
            "{out:?}"
        );
        assert_eq!(std::fs::read(dir.join("fathom.1")).unwrap(), b".TH old", "{what}: all or none");
    };
    std::fs::write(&last, [0xff, 0, 1]).unwrap();
    kept("is not text");
    assert_eq!(std::fs::read(&last).unwrap(), [0xff, 0, 1]);
    std::fs::remove_file(&last).unwrap();
    // A link to a file of the kernel is not followed.
    std::os::unix::fs::symlink("/proc/self/comm", &last).unwrap();
    kept("is on proc");
    std::fs::remove_file(&last).unwrap();
    std::fs::create_dir(&last).unwrap();
    kept("is a directory");
    std::fs::remove_dir(&last).unwrap();
    assert_eq!(write().code, Some(0));
    assert!(dir.join("fathom-list.1").symlink_metadata().unwrap().is_symlink());
    for page in [dir.join("fathom.1"), elsewhere, last] {
        assert!(std::fs::read_to_string(&page).unwrap().contains(".TH fathom"), "{}", page.display());
    }
}

#[test]
fn every_command_has_a_readable_manual_page() {
    let stage = Stage::shared();
    let dir = stage.folder("man1");
    let out = stage.fathom("man", &dir);
    assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (Some(0), "", ""), "{out:?}");
    let pages = names(&dir);
    assert!(
        pages.contains(&dir.join("fathom.1")) && pages.contains(&dir.join("fathom-recipe.1")),
        "{pages:?}"
    );
    let printed = stage.fathom("man", nothing()).stdout;
    assert_eq!(printed, std::fs::read_to_string(dir.join("fathom.1")).unwrap());
    let missing = stage.fathom("man", &stage.path("nowhere"));
    assert!(missing.code == Some(2) && missing.stderr.contains("mkdir -p"), "{missing:?}");
    if tool(&[&"man", &"--version"]).is_err() {
        skip("there is no man");
        return;
    }
    for page in &pages {
        let reported = tool(&[
            &"sh",
            &"-c",
            &"LC_ALL=C MANROFFSEQ= MANWIDTH=80 man --warnings -l \"$0\" 2>&1 >/dev/null",
            page,
        ]);
        assert_eq!(reported, Ok(String::new()), "{}", page.display());
    }
}
