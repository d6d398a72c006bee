//! Sweeps that measure their cells in order, the presets `iops` and `pts`: layout, rates compared with fio, what ends a sweep, the rounds of the
//! SNIA specification, and resuming.

use crate::disk::{Device, Disk, Image};
use crate::group::Group;
use crate::stage::{Outcome, Stage, is_root, skip, wait_long};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const READS: &str = "blkio.throttle.read_iops_device";
const READ_BYTES: &str = "blkio.throttle.read_bps_device";

fn nothing() -> &'static Path {
    Path::new("")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn sizes(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|c| c["block_bytes"].as_u64().unwrap()).collect()
}

/// ` 512   B blocks:   76.7 IO/s,  38.3 KiB/s (314.1 kbit/s)`: number and unit of the size, then operations per second.
fn line(text: &str) -> Option<(u64, f64)> {
    let (size, rest) = text.strip_prefix(' ')?.split_once(" blocks: ")?;
    let (count, unit) = (size.get(..3)?.trim(), size.get(3..)?);
    let scale = match unit {
        "   B" => 1,
        " KiB" => 1 << 10,
        " MiB" => 1 << 20,
        " GiB" => 1 << 30,
        _ => return None,
    };
    let (iops, rest) = rest.split_once(" IO/s, ")?;
    let (bytes, bits) = rest.split_once("/s (")?;
    let bits = bits.strip_suffix("bit/s)")?;
    let ((value, unit), (bit_value, _)) = (bytes.rsplit_once(' ')?, bits.split_at_checked(5)?);
    // 1,023.9 KiB/s is one character wider than its column, as in the output of the program iops.
    let columns = iops.len() >= 6 && matches!(bytes.len(), 9 | 10) && bits.len() == 7;
    let numbers = [iops, value, bit_value].map(|n| n.trim().parse::<f64>().ok());
    let known = matches!(unit, "B" | "KiB" | "MiB" | "GiB" | "TiB");
    (columns && known && numbers.iter().all(Option::is_some))
        .then_some((count.parse::<u64>().ok()? * scale, numbers[0]?))
}

/// A raw loop device, and a cgroup with a limit for reads from it.
fn throttled(stage: &Stage, file: &str, limit: &str) -> Option<(Disk, Group)> {
    let disk = Disk::bare(stage, Some(Device::on(&stage.file("image", 64), Image::Direct)?))?;
    let group = Group::limited(&disk, &("blkio", file, limit))?;
    Some((disk, group))
}

fn inside(stage: &Stage, (disk, group): &(Disk, Group), words: &str) -> Outcome {
    wait_long(&mut stage.command(&[disk.enter(), group.enter()].concat(), words, &disk.device))
}

#[test]
fn iops_doubles_sizes_from_512_bytes_with_32_threads() {
    let stage = Stage::shared();
    let list = stage.fathom("sweep --preset iops --engine sim --list", nothing());
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert_eq!(lines.first(), Some(&"randread 1 x 512 B direct, sim, 32 workers"), "{list:?}");
    assert!(lines.contains(&"randread 1 x 16M direct, sim, 32 workers"), "no cap of 64 MiB: {}", list.stdout);
    let sequential = stage.fathom("sweep --preset iops --engine sim --pattern sequential --list", nothing());
    assert!(sequential.stdout.starts_with("read 1 x 512 B direct"), "{}", sequential.stdout);
    let out = stage.fathom("sweep --preset iops --engine sim --bs 512..4k --time 50ms --quiet", nothing());
    let lines: Vec<(u64, f64)> = out.stdout.lines().filter_map(line).collect();
    // Thirty-two threads, each one operation of 100 us at a time.
    assert_eq!(lines, [512, 1024, 2048, 4096].map(|size| (size, 320_000.0)), "{}", out.stdout);
    assert!(out.stdout.contains("\nsim, 32 threads:\n"), "{}", out.stdout);
    // The first lines name the size with the highest rate.
    let head: Vec<&str> = out.stdout.lines().take(4).collect();
    let best = "  Random reads: depth 1, 4 KiB, 32 workers: 1,311 MB/s (best seen of 4 cells).";
    assert!(head.iter().any(|line| line.starts_with(best)), "{}", out.stdout);
    let csv = stage
        .fathom("sweep --preset iops --engine sim --bs 512,1k --time 50ms --quiet --format csv", nothing());
    assert_eq!(csv.stdout.lines().count(), 3, "{}", csv.stdout);
    let rows: Vec<Vec<&str>> = csv.stdout.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!((rows[0][10], rows[2][1]), ("iops", "1024"), "{}", csv.stdout);
    assert!((rows[1][10].parse::<f64>().unwrap() / 320_000.0 - 1.0).abs() < 0.01, "{}", csv.stdout);
}

#[test]
fn iops_program_name_accepts_its_own_options() {
    let stage = Stage::shared();
    let file = stage.folder("here").join("file");
    crate::stage::fill(&file, 8);
    let by_name = ["bash", "-c", "exec -a /usr/local/bin/iops \"$0\" \"$@\""].map(str::to_owned);
    let out = crate::stage::wait(&mut stage.command(&by_name, "-n 2 -t 1 -b 8k -p sequential", &file));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    // If other load withholds a number, its row has only the size.
    let sizes: Vec<&str> = out.stdout.lines().filter(|line| line.contains(" blocks: ")).collect();
    assert!(matches!(sizes.as_slice(), [size] if size.starts_with("   8 KiB blocks: ")), "{out:?}");
    assert!(out.stdout.contains(", 2 threads:\n"), "{out:?}");
    for (words, reported) in [("-m", "--format csv"), ("-b x", "'x'"), ("-p sideways", "sideways")] {
        crate::output::check_outcome(&stage.fathom(&format!("iops {words}"), &file), 2, &[reported]);
    }
}

#[test]
#[ignore = "long"]
fn iops_prints_the_published_layout_and_agrees_with_fio() {
    const SIZES: [&str; 3] = ["512", "4k", "64k"];
    if !is_root() {
        return;
    }
    if Command::new("fio").arg("--version").output().is_err() {
        return skip("there is no fio");
    }
    let stage = Stage::watching();
    let Some(place) = throttled(&stage, READS, "$NUMBER 2000") else { return };
    let device = place.0.device.display().to_string();
    let mut seen = Vec::new();
    // On a busy machine a throttle refills its tokens late. Repeat both measurements in that case.
    for _ in 0..3 {
        let mut pairs = Vec::new();
        for bs in SIZES {
            let words = format!("sweep --preset iops --bs {bs} --time 2s --quiet");
            let out = inside(&stage, &place, &words);
            let head = format!("{device},  67.11 MB, 32 threads:");
            assert!(out.stdout.lines().any(|l| l == head), "{head} is not in {}", out.stdout);
            let lines: Vec<(u64, f64)> = out.stdout.lines().filter_map(line).collect();
            let [(_, ours)] = lines.as_slice() else {
                assert!(out.stdout.contains("(D01 "), "only others take a number away: {}", out.stdout);
                continue;
            };
            pairs.push((bs, *ours, fio(&place, &device, bs)));
        }
        if pairs.len() == SIZES.len()
            && pairs.iter().all(|(_, ours, theirs)| (ours / theirs - 1.0).abs() <= 0.05)
        {
            return;
        }
        seen.push(pairs);
    }
    panic!("fathom and fio: {seen:?}, and never all within 5 %");
}

/// Operations per second that fio gets with the same threads and size.
fn fio((disk, group): &(Disk, Group), device: &str, bs: &str) -> f64 {
    let prefix = [disk.enter(), group.enter()].concat();
    let mut command = Command::new(&prefix[0]);
    command.args(&prefix[1..]).arg("fio").args([
        "--name=it",
        "--ioengine=psync",
        "--direct=1",
        "--rw=randread",
        "--numjobs=32",
        "--thread",
        "--group_reporting",
        "--time_based",
        "--runtime=2",
        "--output-format=json",
    ]);
    command.arg(format!("--bs={bs}")).arg(format!("--filename={device}"));
    let out = wait_long(&mut command);
    let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    number(&report["jobs"][0]["read"]["iops"])
}

#[test]
#[ignore = "long"]
fn iops_ends_when_a_quarter_of_the_threads_gets_no_service() {
    if !is_root() {
        return;
    }
    let stage = Stage::watching();
    // 24, 12 and 6 operations per second at 128, 256 and 512 KiB. The sweep ends at a size with fewer than eight.
    let Some(place) = throttled(&stage, READ_BYTES, "$NUMBER 3145728") else { return };
    let out = inside(&stage, &place, "sweep --preset iops --bs 128k..4m --quiet --format json");
    let sweep = &out.report().0["sweep"];
    assert_eq!(sizes(&sweep["cells"]), [128 << 10, 256 << 10, 512 << 10], "{sweep:#}");
    assert_eq!(sizes(&sweep["skipped"]), [1 << 20, 2 << 20, 4 << 20]);
    let why = sweep["skipped"][0]["why"].as_str().unwrap();
    assert!(why.contains("8 or fewer of 32 threads end it"), "{why}");
    assert_eq!((&sweep["search"], sweep["place"]["bytes"].as_u64()), (&"in order".into(), Some(64 << 20)));
}

#[test]
fn iops_command_resumes_and_answers_in_its_own_options() {
    let stage = Stage::shared();
    let file = stage.file("data", 16);
    for (printed, flag) in [
        ("-n 0", "-n 0: "),
        ("-b much", "-b much: "),
        ("-t 0", "-t 0s: "),
        ("-p up", "-p up: type random or sequential"),
    ] {
        let out = stage.fathom(&format!("iops {printed}"), &file);
        assert!(
            out.code == Some(2) && out.stderr.contains(flag) && !out.stderr.contains("--workers"),
            "{out:?}"
        );
    }
    for words in ["iops -t 1 -n 2", "sweep --resume last --no-live"] {
        let target = if words.starts_with("iops") { &*file } else { nothing() };
        let mut running = stage.start(words, target);
        running.wait_for_output(if words.starts_with("iops") { "cell 2 of" } else { "cell 3 of" });
        running.signal(rustix::process::Signal::INT);
        let cut = running.end();
        assert_eq!(cut.code, Some(130), "{cut:?}");
        assert_eq!(cut.stderr.contains("cell 1 of"), words.starts_with("iops"), "{words}: {}", cut.stderr);
    }
}

#[test]
fn iops_resumes_after_an_interrupt() {
    let stage = Stage::shared();
    let words = "sweep --preset iops --engine null --bs 512..8k --time 1s --seed 3";
    let mut running = stage.start(words, nothing());
    running.wait_for_output("cell 3 of at most 5");
    running.signal(rustix::process::Signal::INT);
    let cut = running.end();
    assert_eq!(cut.code, Some(130), "{cut:?}");
    assert!(cut.stdout.contains("   8 KiB blocks: no number (no run has ended)"), "{}", cut.stdout);
    let out = stage.fathom("sweep --resume last --format json", nothing());
    assert!(!out.stderr.contains("cell 2 of"), "what was measured is not measured again: {}", out.stderr);
    let cells = out.report().0["sweep"]["cells"].clone();
    assert_eq!(sizes(&cells), [512, 1024, 2048, 4096, 8192]);
    assert!(
        cells.as_array().unwrap().iter().all(|c| c["runs"] == 1 && number(&c["iops"]) > 0.0),
        "{cells:#}"
    );
}

#[test]
fn pts_repeats_rounds_until_the_tracked_cell_is_steady() {
    let stage = Stage::shared();
    let words = "sweep --preset pts --engine sim --bs 4k,512 --time 5ms --quiet";
    let list = stage.fathom("sweep --preset pts --engine sim --list", nothing());
    assert_eq!(list.stdout.lines().count(), 7 * 8, "{list:?}");
    assert!(list.stdout.starts_with("randrw read 16 x 1M"), "shares outside, sizes inside: {}", list.stdout);
    let out = stage.fathom(&format!("{words} --format json"), nothing());
    let report = out.report().0;
    let rounds = &report["sweep"]["rounds"];
    // Every operation takes 100 us, so the device is steady after the minimum of five rounds.
    assert_eq!(rounds["by_round"].as_array().unwrap().len(), 5, "{rounds:#}");
    assert_eq!((&rounds["rule"]["met"], &rounds["window"]), (&true.into(), &serde_json::json!([1, 5])));
    assert!((number(&rounds["window_mean"]) / 320_000.0 - 1.0).abs() < 0.01, "{rounds:#}");
    let cells = report["sweep"]["cells"].as_array().unwrap();
    assert!(cells.len() == 14 && cells.iter().all(|c| c["runs"] == 5), "{cells:#?}");
    let text = stage.fathom("show", &stage.sessions()[0]).stdout;
    for must in ["0/100", "65/35", "Steady state: reached", "no conformance is claimed"] {
        assert!(text.contains(must), "'{must}' is not in {text}");
    }
    assert!(text.lines().any(|l| l.starts_with("4K    valid    320,000  320,000")), "{text}");
}

#[test]
fn pts_preconditions_a_file_with_two_passes() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    let small = "--size 16m --time 200ms --quiet --format json";
    let out = stage.fathom(&format!("sweep --preset pts-latency --bs 4k --mix 100,0 {small}"), &folder);
    let report = out.report().0;
    assert_eq!(report["preconditioned"]["filled_bytes"], 32 << 20, "{}", report["preconditioned"]);
    assert_eq!(
        report["preconditioned"]["rounds"].as_array().map(Vec::len),
        Some(0),
        "its rounds are the sweep's"
    );
    let rounds = &report["sweep"]["rounds"];
    let done = rounds["by_round"].as_array().unwrap().len();
    assert!((5..=25).contains(&done) && rounds["variable"] == "latency_mean_ns", "{rounds:#}");
    let met = rounds["rule"]["met"] == true;
    assert!(met || (done == 25 && report["verdict"] != "VALID"), "{rounds:#}");
    for cell in report["sweep"]["cells"].as_array().unwrap() {
        assert!(number(&cell["latency_max_ns"]) >= number(&cell["latency_mean_ns"]), "{cell:#}");
    }
    let out = stage.fathom(&format!("sweep --preset pts-wsat {small}"), &folder);
    let report = out.report().0;
    assert!(report["preconditioned"].is_null(), "saturation is what is left without it");
    let rounds = &report["sweep"]["rounds"];
    assert!(number(&rounds["bytes_written"]) >= f64::from(64 << 20), "four times its size: {rounds:#}");
}

#[test]
#[ignore = "long"]
fn pts_resumes_and_preconditions_only_new_files() {
    let stage = Stage::watching();
    let theirs = stage.file("theirs", 16);
    let words = "sweep --preset pts-latency --bs 4k --mix 65,0 --time 200ms --seed 3";
    // An existing file keeps its state between runs; fathom's own file is made again.
    for (target, again) in [(theirs.clone(), false), (stage.folder("place"), true)] {
        let words = if again {
            format!("{words} --size 16m")
        } else {
            format!("{words} --destroy {}", theirs.display())
        };
        let mut running = stage.start(&words, &target);
        running.wait_for_output("round 2 of at most 25");
        running.signal(rustix::process::Signal::INT);
        let cut = running.end();
        assert!(cut.code == Some(130) && cut.stdout.contains("Steady state: not reached"), "{cut:?}");
        let out = stage.fathom("sweep --resume last --format json", nothing());
        assert_eq!(out.stderr.contains("writing 32 MiB from end to end"), again, "{}", out.stderr);
        let report = out.report().0;
        assert_eq!(report["preconditioned"]["filled_bytes"], 32 << 20);
        let rounds = report["sweep"]["rounds"]["by_round"].as_array().unwrap().len();
        let runs = report["results"][0]["runs"].as_array().unwrap().len();
        assert!(rounds >= 5 && runs == rounds, "{rounds} rounds, {runs} runs");
    }
}

#[test]
fn several_thread_counts_give_a_surface() {
    let stage = Stage::shared();
    let words = "sweep --preset iops --engine sim --bs 4k,64k --workers 1,8 --time 50ms --seed 3 --quiet";
    let out = stage.fathom(words, Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    for must in [
        " 1 threads:",
        " 8 threads:",
        "direct, sim: IOPS by size and workers",
        "direct, sim: MB/s by size and workers",
    ] {
        assert!(out.stdout.contains(must), "'{must}' is not in {}", out.stdout);
    }
    let report = stage.show().report().0;
    for cell in report["sweep"]["cells"].as_array().unwrap() {
        let truth = 10_000.0 * cell["workers"].as_f64().unwrap();
        let iops = cell["iops"].as_f64().unwrap();
        assert!((iops / truth - 1.0).abs() < 0.1, "each worker does one in 100 us: {cell:#}");
    }
}

#[test]
fn options_that_conflict_with_an_order_are_refused() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    for (words, code, must) in [
        ("--preset iops --rw randwrite", 2, "--pattern"),
        ("--preset iops --budget 5m", 2, "--budget"),
        ("--preset iops --exhaustive", 2, "--exhaustive"),
        ("--preset iops --depth 1,2", 2, "--depth"),
        ("--preset iops --by p99", 2, "leave --by out"),
        ("--preset iops --offset 0%,50%", 2, "leave --offset out"),
        ("--preset pts --workers 1,2", 2, "one number of --workers"),
        ("--preset iops --runs 2", 2, "--runs"),
        ("--pattern random", 2, "--preset iops"),
        ("--preset pts --pattern random", 2, "--preset iops"),
        ("--preset pts --bs 8k", 2, "include that size in --bs"),
        ("--preset pts --mix 100", 2, "0 in --mix"),
    ] {
        let out = stage.fathom(&format!("sweep {words} --quiet"), &folder);
        assert!(out.code == Some(code) && out.stderr.contains(must), "{words}: {out:?}");
    }
    let theirs = stage.file("theirs", 16);
    let out = stage.fathom("sweep --preset pts --quiet", &theirs);
    assert!(out.stderr.contains("type --destroy") && out.code != Some(0), "{out:?}");
    assert_eq!(stage.sessions().len(), 0);
}
