//! `fathom layers`: the same work on each layer from the disk to the page cache, and the ledger of each row.

use crate::disk::{Device, Disk, Image};
use crate::stage::{Outcome, Stage, is_root, undisturbed};
use serde_json::Value;

/// Short runs: a comparison needs three rounds.
const SHORT: &str = "--time 300ms --warmup 50ms --runs 3 --quiet";

/// Rows by name and work.
fn row<'r>(report: &'r Value, name: &str, work: &str) -> &'r Value {
    let rows = report["layers"]["rows"].as_array().unwrap();
    let found = rows.iter().find(|r| r["name"] == name && r["work"] == work);
    found.unwrap_or_else(|| panic!("no row '{name}, {work}': {rows:#?}"))
}

/// The result of a row.
fn result<'r>(report: &'r Value, row: &Value) -> &'r Value {
    &report["results"][row["result"].as_u64().unwrap() as usize]
}

fn missing(report: &Value) -> Vec<&str> {
    report["layers"]["missing"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The bytes that a device completed, relative to the issued bytes.
fn difference(entry: &Value) -> f64 {
    assert!(entry["counted"]["ios"].as_u64() > Some(0), "{entry:#}");
    number(&entry["difference"])
}

#[test]
fn file_system_on_a_loop_device_has_every_row() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let words = format!("layers --size 64m {SHORT} --format json");
    let report = undisturbed(|| disk.fathom(&stage, &words, &disk.dir)).report().0;
    let device = disk.name().to_owned();

    let lowest = row(&report, &device, "random reads");
    let direct = row(&report, "ext4 direct", "random reads");
    let cached = row(&report, "ext4 buffered", "random reads");
    for (row, below) in [(direct, device.as_str()), (cached, "ext4 direct")] {
        assert_eq!(row["against"]["name"], below, "{row:#}");
        assert!(row["against"]["interval"].is_array() && number(&row["against"]["factor"]) > 0.0, "{row:#}");
    }
    for row in [lowest, direct] {
        let (tool, seen) = (&row["tool"], &row["device"]);
        assert!((number(&seen["iops"]) / number(&tool["iops"]) - 1.0).abs() < 0.01, "{row:#}");
        assert!((number(&seen["bytes"]) / 8192.0 - 1.0).abs() < 0.01, "{row:#}");
        assert!(number(&tool["latency_ns"]) > 0.0 && number(&seen["latency_ns"]) > 0.0, "{row:#}");
    }
    let asked = number(&cached["tool"]["iops"]);
    assert!(number(&cached["device"]["iops"]) < 0.001 * asked, "memory answers: {cached:#}");

    let gathered = row(&report, "ext4 buffered", "random writes");
    let late = &gathered["device_with_sync"];
    let size = number(&late["bytes"]) / number(&late["ios"]);
    assert!(size > 2.0 * 8192.0, "writes of 8 KiB arrive in larger requests: {gathered:#}");
    assert!(number(&gathered["device"]["iops"]) < number(&gathered["tool"]["iops"]), "{gathered:#}");
    row(&report, "ext4 direct", "random writes");
    let synced = row(&report, "ext4 direct + sync", "random writes");
    assert_eq!(synced["against"]["name"], "ext4 direct");

    let reasons = missing(&report);
    assert!(reasons.iter().any(|m| m.starts_with(&format!("{device}, random writes"))), "{reasons:?}");
    assert!(!reasons.iter().any(|m| m.starts_with("ext4")), "{reasons:?}");
}

#[test]
fn device_row_reads_where_the_file_is_stored() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    // The file system starts 1 MiB into an image of holes. Only reads of the file's own blocks find written data.
    let image = stage.path("image");
    std::fs::File::create(&image).unwrap().set_len(321 << 20).unwrap();
    let Some(disk) = Disk::on_image(&stage, "ext4", &image, 1 << 20) else { return };
    let words = format!("layers --rw randread --size 64m {SHORT} --format json");
    let report = disk.fathom(&stage, &words, &disk.dir).report().0;
    let lowest = result(&report, row(&report, disk.name(), "random reads"));
    let below = &lowest["ledger"]["read"]["layers"][1];
    assert!(difference(below) > -0.05, "what was never written reaches no disk: {below:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("64 MiB in "), "where it was read is said: {notes}");
}

#[test]
fn file_systems_without_block_mapping_are_reported() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "btrfs", Image::Direct) else { return };
    let words = format!("layers --rw randread --size 64m {SHORT} --format json");
    let report = disk.fathom(&stage, &words, &disk.dir).report().0;
    row(&report, "btrfs direct", "random reads");
    let rows = report["layers"]["rows"].as_array().unwrap();
    assert!(!rows.iter().any(|r| r["name"] == disk.name()), "{rows:#?}");
    let reasons = missing(&report);
    let printed = reasons.iter().any(|m| m.starts_with(disk.name()) && m.contains("its own address space"));
    assert!(printed, "{reasons:?}");
}

#[test]
fn ledger_names_every_layer_and_agrees_without_caching() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let words = format!("run --rw randread --bs 8k --depth 4 --size 64m {SHORT} --format json");
    let out = disk.fathom(&stage, &words, &disk.dir);
    let read = &out.report().0["results"][0]["ledger"]["read"];
    let layers = read["layers"].as_array().unwrap();
    assert_eq!(layers[0]["name"], disk.name());
    assert!(difference(&layers[0]).abs() < 0.01, "{read:#}");
    assert!(layers.len() > 1 && layers[1]["step"] == 1, "what is below the loop device: {read:#}");
    // Other processes may also use the disk below, so its counters can only be larger.
    assert!(difference(&layers[1]) > -0.01, "{read:#}");

    let text = disk.fathom(&stage, &format!("show --ledger {}", stage.sessions()[0].display()), "".as_ref());
    let (_, ledger) = text.stdout.split_once("\nledger ").unwrap_or_else(|| panic!("no ledger: {text:?}"));
    let below = layers[1]["name"].as_str().unwrap();
    for words in ["issued by fathom", "fathom's cgroup", disk.name(), below, "agrees"] {
        assert!(ledger.contains(words), "{words} is missing: {ledger}");
    }
}

#[test]
fn layers_accepts_the_page_cache_row_and_reports_it() {
    // Reads of other processes on the disk would hide that the page cache served the row.
    let stage = Stage::new();
    let dir = stage.folder("place");
    let out = stage.fathom(&format!("layers --rw randread --size 64m {SHORT} --format json"), &dir);
    let report = out.report();
    let finding = report.expect_answer("A01", "finding");
    assert_eq!(finding["accepted"], true, "{finding:#}");
    let about = finding["about"].as_array().unwrap();
    assert!(about.iter().all(|name| name.as_str().unwrap().contains("buffered")), "{finding:#}");
    let notes = report.0["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().contains("do not count for the verdict")), "{notes:?}");
    assert!(!report.0["verdict_reason"].as_str().unwrap().contains("A01"), "{}", report.0["verdict_reason"]);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "no file is left");
}

#[test]
fn user_devices_are_only_read_unless_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    crate::stage::fill(&device.image, 64);
    let before = device.checksum();
    let out = stage.fathom(&format!("layers {SHORT} --format json"), &device.path);
    let report = out.report().0;
    row(&report, &format!("{} direct", device.name()), "random reads");
    row(&report, &format!("{} buffered", device.name()), "random reads");
    let refused = missing(&report);
    assert!(refused.iter().any(|m| m.contains("random writes") && m.contains("--destroy")), "{refused:?}");
    assert_eq!(device.checksum(), before);

    let words = format!("layers --rw randwrite --destroy {} {SHORT} --format json", device.name());
    let report = stage.fathom(&words, &device.path).report().0;
    let written = row(&report, &format!("{} direct", device.name()), "random writes");
    let write = &result(&report, written)["ledger"]["write"];
    assert!(difference(&write["layers"][0]).abs() < 0.01, "{write:#}");
    assert_ne!(device.checksum(), before);
}

#[test]
fn user_files_are_written_when_named_as_typed() {
    let stage = Stage::shared();
    let file = stage.file("mine", 64);
    let before = std::fs::read(&file).unwrap();
    let named = |destroy: &str| {
        let words = format!("layers --rw randwrite {destroy} {SHORT} --format json mine");
        let mut command = stage.command(&[], &words, "".as_ref());
        crate::stage::wait(command.current_dir(stage.path("")))
    };
    let refused = named("");
    assert!(refused.code == Some(3) && refused.stderr.contains("--destroy"), "{refused:?}");
    assert!(std::fs::read(&file).unwrap() == before, "it was written");
    let report = named("--destroy mine").report().0;
    assert_eq!(report["layers"]["rows"].as_array().unwrap().len(), 3, "{:#}", report["layers"]);
    assert!(std::fs::read(&file).unwrap() != before, "it was not written");
}

#[test]
fn incomparable_layers_are_refused_with_a_fix() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let refused = |words: &str, expected: &str| {
        let Outcome { code, stderr, .. } = stage.fathom(&format!("layers {words}"), &dir);
        assert!(code == Some(2) && stderr.contains(expected), "{words}: {code:?} {stderr}");
    };
    refused("--runs 2", "--runs 3");
    refused("--rw trim", "randwrite");
    refused("--engine null", "moves no bytes");
    refused("--destroy sda", "--destroy has no effect");
}
