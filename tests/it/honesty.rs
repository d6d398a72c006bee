//! Honest reports: a result that measured something else is relabelled, and an unsupported number is withheld. Each test plays a
//! [`crate::scene`] and reads the report.

use crate::disk::{Device, Disk, Image};
use crate::scene::{self, Scene};
use crate::stage::{Stage, is_root, undisturbed};

/// Short runs whose report is JSON.
const SHORT: &str = "--time 300ms --warmup 50ms --runs 3 --quiet --format json";

#[test]
fn equal_seeds_draw_equal_offsets() {
    let stage = Stage::shared();
    let file = stage.file("data", 16);
    let drawn = |seed: u32| {
        let words =
            format!("run --rw randread --seed {seed} --time 100ms --warmup 0 --runs 1 --quiet --format json");
        stage.fathom(&words, &file).report()
    };
    assert!(!drawn(7).has_answer("B14", "finding"));
    let again = drawn(7);
    assert_eq!(again.expect_answer("B14", "finding")["severity"], "biased");
    assert!(!drawn(8).has_answer("B14", "finding"));
    // B14 compares offsets with the previous session only, and another seed ran in between.
    assert!(!drawn(7).has_answer("B14", "finding"));
    // Blocks of another size, or of a smaller region, have other offsets.
    for other in ["--bs 8k", "--size 8m"] {
        drawn(7);
        let words = format!(
            "run --rw randread {other} --seed 7 --time 100ms --warmup 0 --runs 1 --quiet --format json"
        );
        assert!(!stage.fathom(&words, &file).report().has_answer("B14", "finding"), "{other}");
    }
    // A new file has other blocks, so nothing of it is cached.
    drawn(7);
    std::fs::rename(stage.file("new", 16), &file).unwrap();
    assert!(!drawn(7).has_answer("B14", "finding"));
    assert!(drawn(7).has_answer("B14", "finding"));
}

#[test]
fn fixed_seeds_are_no_finding_without_a_cache_that_holds_the_blocks() {
    let stage = Stage::shared();
    let file = stage.file("data", 16);
    let fio = "fio --name=job --rw=randread --bs=4k --io_size=256k";
    let calls = [
        (format!("{fio} --direct=1 --filename="), false),
        (format!("{fio} --direct=0 --filename="), false),
        (format!("{fio} --direct=0 --invalidate=0 --filename="), true),
        ("diskspd -b4K -r -d1 -W0 -Sh ".into(), false),
    ];
    for (words, expected) in calls {
        let words = format!("{words}{}", file.display());
        for _ in 0..2 {
            let out = stage.fathom(&words, std::path::Path::new(""));
            assert_eq!(out.code, Some(0), "{out:?}");
        }
        let report = stage.fathom("show last --format json", std::path::Path::new("")).report();
        assert_eq!(report.has_answer("B14", "finding"), expected, "{words}: {:#?}", report.answers("B14"));
    }
}

#[test]
fn verdict_covers_all_rows() {
    let stage = Stage::one_per_cpu();
    let (data, sparse) = (stage.file("data", 16), stage.path("sparse"));
    std::fs::File::create(&sparse).unwrap().set_len(16 << 20).unwrap();
    let job = stage.path("job.toml");
    let streams = [("on data", &data), ("on a hole", &sparse)];
    let table = |(name, target): (&str, &std::path::PathBuf)| {
        format!(
            "[[phase]]\n[[phase.stream]]\nname = \"{name}\"\nrw = \"randread\"\ntarget = \"{}\"\n",
            target.display()
        )
    };
    let text: String = streams.into_iter().map(table).collect();
    std::fs::write(&job, format!("time = \"300ms\"\nwarmup = \"50ms\"\nruns = 3\n{text}")).unwrap();

    let out = undisturbed(|| stage.fathom("run --quiet --format json", &job));
    let report = out.report();
    assert_eq!((report.verdict(), out.code), ("INVALID", Some(1)), "{:#}", report.0["counts"]);
    let counts = &report.0["counts"];
    let sentence = counts["sentence"].as_str().unwrap();
    if report.is_disturbed() {
        // If the host takes CPU time, both rows lose their number.
        assert!(sentence.contains("2 without a number"), "{counts:#}");
    } else {
        assert!(!report.0["headline"]["value"].is_null(), "the first row has its number all the same");
        assert!(sentence.contains("1 without a number") && sentence.contains("on a hole"), "{counts:#}");
        assert!(report.0["verdict_reason"].as_str().unwrap().contains("A04"), "{counts:#}");
    }
    report.expect_answer("A04", "finding");

    let accepted = stage.fathom("run --quiet --format json --accept A04", &job);
    let renamed = accepted.report().answers("D06").iter().any(|f| f["outcome"] == "finding");
    let others = accepted.report().is_disturbed();
    assert!(accepted.code == Some(0) || renamed || others, "{:?} {}", accepted.code, accepted.stderr);
}

#[test]
fn virtual_machines_are_detected() {
    let stage = Stage::shared();
    let report = stage.fathom(&format!("run --rw randread {SHORT}"), &stage.file("data", 16)).report();
    let virtual_one = std::fs::read_to_string("/proc/cpuinfo").unwrap().contains("hypervisor");
    report.expect_answer("D18", if virtual_one { "finding" } else { "holds" });
}

#[test]
fn memory_balloon_is_named() {
    let stage = Stage::watching();
    let folder = stage.path("folder");
    std::fs::create_dir(&folder).unwrap();
    // Write a new file, so that every page of it must be allocated.
    let words = "run --rw write --bs 1m --engine sync:new --cache buffered --size 128m --time 60ms --warmup 0s --runs 1";
    let report = stage.fathom(&format!("{words} --quiet --format json"), &folder).report();
    let order = std::fs::read_to_string("/sys/module/page_reporting/parameters/page_reporting_order");
    let reported = order.is_ok_and(|order| !["-1", "10", "11"].contains(&order.trim()));
    if reported {
        let finding = report.expect_answer("D28", "finding");
        assert!(finding["evidence"]["taken_bytes"].as_f64().unwrap() > 1e6, "{finding:#}");
    } else {
        report.expect_answer("D28", "holds");
    }
    let direct = stage.fathom(&format!("run --rw read --bs 1m --size 16m {SHORT}"), &folder).report();
    assert!(!direct.has_answer("D28", "finding"), "it takes no memory");
}

#[test]
fn repeated_reads_are_relabelled_as_page_cache() {
    // The test needs the whole CPU: a concurrent test could take a part of it.
    let Some(out) = scene::CACHED_FILE.play(&Stage::new().watching_as_for_users()) else { return };
    let report = out.report();
    assert!(report.name().contains("page cache"), "{}", report.name());
    let finding = report.expect_answer("A01", "finding");
    assert_eq!(finding["severity"], "rename");
    assert!(!finding["evidence"].as_object().unwrap().is_empty(), "{finding:#}");
    assert_eq!((report.verdict(), out.code), ("SUSPECT", Some(1)), "{}", report.0["verdict_reason"]);

    let Some(accepted) = scene::CACHED_FILE_ACCEPTED.play(&Stage::new().watching_as_for_users()) else {
        return;
    };
    // The CPU may also limit reads from the page cache. That finding was not accepted.
    let others = ["D06"].iter().any(|id| accepted.report().has_answer(id, "finding"));
    assert!(accepted.code == Some(0) || others, "{accepted:?}");
}

#[test]
fn direct_reads_arrive_at_the_device_one_by_one_on_ext4() {
    direct_reads_arrive("ext4");
}

#[test]
fn direct_reads_arrive_at_the_device_one_by_one_on_xfs() {
    direct_reads_arrive("xfs");
}

#[test]
fn direct_reads_arrive_at_the_device_one_by_one_on_btrfs() {
    direct_reads_arrive("btrfs");
}

fn direct_reads_arrive(kind: &str) {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu().watching_as_for_users();
    let Some(disk) = Disk::new(&stage, kind, Image::Direct) else { return };
    let words = format!("run --rw randread --depth 4 --size 64m {SHORT}");
    let report = undisturbed(|| disk.fathom(&stage, &words, &disk.dir)).report();
    for device in report.devices() {
        let of = |name: &str| device[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {device}"));
        let near = |seen: f64, issued: f64| (seen / issued - 1.0).abs() < 0.01;
        assert!(of("issued_ops") > 100.0, "{device}");
        assert!(near(of("ios"), of("issued_ops")) && near(of("bytes"), of("issued_bytes")), "{device}");
    }
    report.expect_answer("A01", "holds");
    assert!(!report.has_answer("A04", "finding") && !report.has_answer("A12", "finding"), "{report:#?}");
    assert!(report.name().ends_with("direct") || report.has_answer("D06", "finding"), "{}", report.name());
    let has_number = report.0["headline"]["value"].as_f64() > Some(0.0);
    assert!(has_number || report.is_disturbed(), "{}", report.0["verdict_reason"]);
    assert_eq!(disk.sh("ls -A | grep -v lost+found || true"), "");
}

#[test]
fn truncated_files_have_no_number() {
    hollow(&scene::TRUNCATED);
}

#[test]
fn allocated_unwritten_files_have_no_number() {
    hollow(&scene::ALLOCATED);
}

fn hollow(scene: &Scene) {
    let Some(out) = scene.play(&Stage::shared()) else { return };
    let report = out.report();
    report.expect_answer("A04", "finding");
    assert_eq!((report.verdict(), out.code), ("INVALID", Some(1)));
    assert!(report.0["headline"]["value"].is_null() && report.0["headline"]["interval"].is_null());
}

#[test]
fn tmpfs_is_reported_as_memory() {
    let Some(out) = scene::MEMORY.play(&Stage::shared()) else { return };
    let report = out.report();
    report.expect_answer("A11", "finding");
    assert!(report.name().contains("memory"), "{}", report.name());
    assert_eq!(out.code, Some(1));
}

#[test]
fn cached_loop_device_is_detected() {
    let Some(out) = scene::CACHED_IMAGE.play(&Stage::new()) else { return };
    let report = out.report();
    report.expect_answer("A12", "finding");
    assert!(report.name().contains("cache below loop"), "{}", report.name());
    assert_eq!(out.code, Some(1));
}

#[test]
fn disabled_counters_do_not_pass() {
    let Some(out) = scene::UNCOUNTED.play(&Stage::shared()) else { return };
    let report = out.report();
    let blind = report.expect_answer("A13", "not_checked");
    assert!(blind["sentence"].as_str().unwrap().contains("iostats"), "{blind:#}");
    for id in ["A01", "A12", "D01"] {
        assert!(!report.has_answer(id, "holds"), "{id} held without counters: {:#?}", report.answers(id));
    }
    assert_ne!(report.verdict(), "VALID");
    assert!(report.devices().iter().all(|d| d.is_null()), "{:#?}", report.devices());
}

#[test]
fn other_load_on_the_disk_is_noticed() {
    let Some(report) = scene::OTHER_LOAD.assert_found(&Stage::watching()) else { return };
    assert_ne!(report.verdict(), "VALID");
}

#[test]
fn synchronous_engines_cannot_claim_a_depth() {
    let Some(out) = scene::WITHOUT_DEPTH.play(&Stage::shared()) else { return };
    let report = out.report();
    report.expect_answer("B05", "finding");
    let name = report.name();
    assert!(name.contains("depth 1,") || name.contains("depth ~1,"), "{name}");
    assert_eq!(out.code, Some(1));
}

#[test]
fn writes_lost_below_a_device_invalidate_the_result() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "xfs", Image::Buffered) else { return };
    // A device of 400 MiB with 8 MiB of room.
    disk.sh("truncate -s 400M thin; fallocate -l $(($(df --output=avail -B1 . | tail -1) - 8388608)) full");
    let Some(device) = Device::on(&disk.inside(&disk.dir.join("thin")), Image::Buffered) else { return };
    let path = device.path.display();
    let words = format!(
        "run --rw write --passes 1 --bs 64k --size 32m --engine mmap --warmup 0 --runs 1 --attempts 1 --destroy {path} \
         --quiet --format json"
    );
    let out = stage.fathom(&words, &device.path);
    assert_eq!(out.code, Some(1), "{out:?}");
    let report = out.report();
    let finding = report.expect_answer("B12", "finding");
    assert!(
        finding["sentence"].as_str().unwrap().contains("final sync failed in 1 of 1 run (first error: EIO"),
        "{finding}"
    );
    assert_eq!(finding["evidence"]["failed_syncs"].as_f64(), Some(1.0), "{finding}");
    assert_eq!(report.verdict(), "INVALID");
}
