//! Sweeps: the cells of a grid, searches with a known winner, refusals, and resumed sessions.

use crate::disk::{Disk, Image};
use crate::stage::{Outcome, Stage, is_root};
use serde_json::Value;
use std::fs::File;
use std::path::Path;

/// The simulated device takes 100 us for every operation, so the most operations in flight win.
const SIM: &str = "sweep --engine sim --time 100ms --seed 7 --quiet --format json";

fn nothing() -> &'static Path {
    Path::new("")
}

/// The grid's part of a report.
fn sweep(out: &Outcome) -> Value {
    out.report().0["sweep"].clone()
}

fn shape(cell: &Value) -> (u64, u64) {
    (cell["block_bytes"].as_u64().unwrap(), cell["depth"].as_u64().unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn ccsio_has_285_cells_and_names_15_skipped_ones() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    let list = stage.fathom("sweep --preset ccsio --list", &folder);
    let skipped = stage.fathom("sweep --preset ccsio --skipped", &folder);
    assert_eq!((list.code, list.stdout.lines().count()), (Some(0), 285), "{}", list.stderr);
    assert_eq!((skipped.code, skipped.stdout.lines().count()), (Some(0), 15), "{}", skipped.stderr);
    let count = |out: &str, words: &str| out.lines().filter(|l| l.contains(words)).count();
    assert_eq!(count(&list.stdout, "unbuffered-sequential"), 2 * 57);
    assert_eq!(count(&list.stdout, " buffered-sequential"), 57, "reads only");
    assert!(list.stdout.contains("the same as unbuffered"), "{}", list.stdout);
    assert_eq!(count(&skipped.stdout, "16 x 16M"), 5);
    assert!(skipped.stdout.lines().all(|l| l.contains("more than --memory (64 MiB)")), "{}", skipped.stdout);
    assert_eq!((stage.sessions().len(), crate::stage::names(&folder).len()), (0, 0), "nothing is measured");
    assert_eq!(stage.fathom("sweep --preset ccsio --explain", &folder).code, Some(0));
    let more = stage.fathom("sweep --preset ccsio --memory 256m --list", &folder);
    assert_eq!(more.stdout.lines().count(), 300);
    // The preset has 285 cells and the two baselines `cp` and `dd` in each direction, and no cell shares the job of another one.
    let classic = stage.fathom("sweep --preset ccsio-classic --explain", &folder).stdout;
    assert!(classic.starts_with("sweep ccsio-classic: 289 workloads; each 1 run"), "{classic}");
    assert!(classic.contains("1.00 s a run"), "{classic}");
}

#[test]
fn every_axis_in_help_gives_cells() {
    let stage = Stage::shared();
    let places = [stage.folder("one"), stage.folder("two")];
    let help = stage.fathom("sweep --help", Path::new("")).stdout;
    let axes = help.split("\nAxes:\n").nth(1).and_then(|rest| rest.split("\nWhere:\n").next());
    let axes = axes.unwrap_or_default();
    let axes: Vec<&str> =
        axes.lines().filter_map(|l| l.trim().strip_prefix("--")?.split(' ').next()).collect();
    assert!(axes.len() >= 10, "{help}");
    for axis in axes {
        let values = match axis {
            "bs" => "4k,8k",
            "depth" => "8,16",
            "workers" | "batch" | "targets" => "1,2",
            "engine" => "io_uring,libaio",
            "cache" => "direct,buffered",
            "rw" => "read,write",
            "mix" => "100,70",
            "spec" => "database,file-server",
            "target" => &format!("{},{}", places[0].display(), places[1].display()),
            "offset" => "0%,50%",
            other => panic!("--{other}: two values of the new axis belong here"),
        };
        let work = match axis {
            "spec" => "",
            "rw" => "--bs 4k",
            "bs" => "--rw read",
            "mix" => "--bs 4k --rw randrw",
            _ => "--bs 4k --rw read",
        };
        let depth = if axis == "depth" { "" } else { "--depth 8" };
        // The axis is followed by its values.
        let (one, other) = (places[0].display().to_string(), places[1].as_path());
        let (one, other) = if axis == "target" { (String::new(), nothing()) } else { (one, other) };
        let words = format!("sweep --list {work} {depth} --{axis} {values} {one}");
        let out = stage.fathom(&words, other);
        let cells: std::collections::BTreeSet<&str> = out.stdout.lines().collect();
        assert_eq!((out.code, cells.len()), (Some(0), 2), "{words}: {out:?}");
    }
}

#[test]
fn fastest_cell_of_a_known_device_wins_with_its_true_rate() {
    let stage = Stage::one_per_cpu();
    let out = stage.fathom(&format!("{SIM} --rw read --bs 4k..64k --depth 1..8"), nothing());
    assert_eq!(out.code, Some(0), "{out:?}");
    let report = out.report();
    let sweep = &report.0["sweep"];
    let winner = &sweep["winner"]["read"];
    assert_eq!(shape(winner), (64 << 10, 8), "{winner:#}");
    // Eight operations of 64 KiB every 100 us. Only the last operations may be late.
    assert!((number(&winner["iops"]) / 80_000.0 - 1.0).abs() < 0.01, "{winner:#}");
    assert!((number(&winner["mib_per_s"]) / 5_000.0 - 1.0).abs() < 0.01 && winner["runs"] == 5, "{winner:#}");
    assert_eq!(sweep["cheapest"]["read"]["block_bytes"], winner["block_bytes"], "nothing cheaper is as fast");
    assert_eq!(sweep["works"][0]["decided"], true, "{:#}", sweep["works"]);
    let cells = sweep["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 5 * 4);
    for cell in cells {
        let (bs, depth) = shape(cell);
        let truth = bs as f64 * depth as f64 * 10_000.0 / f64::from(1 << 20);
        assert!((number(&cell["mib_per_s"]) / truth - 1.0).abs() < 0.02, "{cell:#}");
    }
    assert_eq!((report.verdict(), &report.0["headline"]["unit"]), ("VALID", &Value::from("MB/s")));
    let again = stage.show().report().0;
    assert_eq!(again["sweep"], *sweep, "a session shown again says the same");
}

#[test]
fn tolerance_decides_which_settings_are_equally_fast() {
    let stage = Stage::shared();
    let answer = |tolerance: &str| {
        let words = format!("{SIM} --rw read --bs 64k --depth 4..8+1 {tolerance}");
        let out = stage.fathom(&words, nothing());
        assert_eq!(out.code, Some(0), "{out:?}");
        out.report().0
    };
    // Each step of the depth makes the simulated device at least an eighth faster.
    let usual = answer("");
    let (sweep, work) = (&usual["sweep"], &usual["sweep"]["works"][0]);
    assert_eq!((shape(&sweep["winner"]["read"]), number(&sweep["tolerance"])), ((64 << 10, 8), 0.05));
    assert_eq!(shape(&sweep["cheapest"]["read"]), (64 << 10, 8), "nothing cheaper is within 5 %");
    assert!(number(&work["faster_at_most"]) < 0.0, "the winner is faster than all others: {work:#}");
    let sentence = usual["answer"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("8 x 64K direct, sim: 5,2"), "{sentence}");
    assert!(sentence.contains("no setting is more than 5.0 % faster (95 % confidence)"), "{sentence}");
    let wide = answer("--tolerance 30%");
    let (sweep, work) = (&wide["sweep"], &wide["sweep"]["works"][0]);
    assert_eq!((number(&sweep["tolerance"]), &work["decided"]), (0.3, &true.into()));
    let best = 5242.88;
    let winner = number(&sweep["winner"]["read"]["mb_per_s"]);
    assert!(best / winner < 1.3 && number(&work["faster_at_most"]) <= 0.3, "{work:#}");
    assert!(shape(&sweep["cheapest"]["read"]).1 < 8, "{:#}", sweep["cheapest"]);
    let sentence = wide["answer"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("no setting is more than 30 % faster (95 % confidence)"), "{sentence}");
    assert!(sentence.contains("The cheapest equally fast setting is "), "{sentence}");
}

#[test]
fn undecided_search_uses_its_budget_and_reports_what_is_known() {
    let stage = Stage::one_per_cpu();
    let file = stage.file("disk", 64);
    let budget_s = 15.0;
    let words =
        "sweep --rw read --bs 64k --depth 57..64+1 --time 500ms --budget 15s --tolerance 0.1% --format json";
    let before = std::time::Instant::now();
    let out = stage.fathom(words, &file);
    let took_s = before.elapsed().as_secs_f64();
    assert!((0.8 * budget_s..1.1 * budget_s).contains(&took_s), "{took_s} s: {}", out.stderr);
    assert!(out.stderr.contains("It takes at most 15 s. It writes nothing."), "{}", out.stderr);
    let report = out.report().0;
    let work = &report["sweep"]["works"][0];
    // These depths keep any disk busy, so all cells are equally fast; and no disk is constant within the tolerance of 0.1 %.
    let at_most = number(&work["faster_at_most"]);
    assert!(at_most > 0.001 && work["decided"] == false, "{work:#}");
    // On a very busy machine the bound says nothing.
    assert_eq!(work["chosen"], if at_most > 0.5 { "cannot_tell" } else { "tied" }, "{work:#}");
    let sentence = work["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("no setting is more than ") && sentence.contains(" % faster (95 % confidence)"),
        "{sentence}"
    );
    assert!(sentence.contains("`--budget ") || sentence.contains("within an hour"), "{sentence}");
    assert_eq!(report["sweep"]["winner"]["read"]["runs"], 5, "{:#}", report["sweep"]["winner"]);
    let again = stage.show().report().0;
    assert_eq!(again["sweep"], report["sweep"], "a session shown again has the same answer");
}

#[test]
fn default_grid_takes_less_than_two_minutes() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    for words in ["sweep --explain", "sweep --preset ccsio --explain", "sweep --rw read --explain"] {
        let out = stage.fathom(words, &folder);
        let announced = out.stdout.split("It takes at most ").nth(1).unwrap_or_else(|| panic!("{out:?}"));
        let seconds: Vec<&str> = announced.split_whitespace().take(2).collect();
        assert!(
            seconds[1].starts_with('s') && seconds[0].parse::<u32>().unwrap() < 120,
            "{words}: {seconds:?}"
        );
    }
}

#[test]
fn requested_measure_decides_the_winner() {
    let stage = Stage::shared();
    // Eight servers of 100 us each: further operations wait, which raises the latency but not the rate.
    let words = SIM.replace("--engine sim", "--engine sim:servers=8");
    let of = |more: &str| {
        let out =
            stage.fathom(&format!("{words} --rw randread --bs 4k,64k --depth 2,8,64 {more}"), nothing());
        assert_eq!(out.code, Some(0), "{out:?}");
        out.report().0
    };
    let bytes = of("--by bandwidth");
    assert_eq!(bytes["sweep"]["winner"]["randread"]["block_bytes"], 65536, "{:#}", bytes["sweep"]["winner"]);
    assert_eq!(bytes["headline"]["unit"], "MB/s");
    let operations = of("");
    assert_eq!(operations["sweep"]["works"][0]["by"], "iops", "what random work is about");
    assert_eq!(operations["headline"]["unit"], "IOPS");
    assert_eq!(
        shape(&operations["sweep"]["cheapest"]["randread"]),
        (4096, 8),
        "{:#}",
        operations["sweep"]["cheapest"]
    );
    let latency = of("--by p99 --exhaustive");
    let winner = &latency["sweep"]["winner"]["randread"];
    assert!(winner["depth"].as_u64() < Some(64), "{winner:#}");
    assert!(winner["latency_interval_ns"].is_array(), "{winner:#}");
    let (name, value) = (&latency["headline"]["name"], number(&latency["headline"]["value"]));
    assert!(name.as_str().unwrap().starts_with("p99 of ") && latency["headline"]["unit"] == "us", "{name}");
    assert!((90.0..400.0).contains(&value), "{value}");
    let shown = stage.fathom("show last --verbose", nothing()).stdout;
    assert!(shown.contains("p99 by size and depth"), "{shown}");
}

#[test]
fn positions_are_shares_of_the_target() {
    let stage = Stage::shared();
    let file = stage.file("disk", 16);
    let words = "sweep --offset 0%,50%,99% --rw read --bs 64k --depth 1 --time 50ms --exhaustive --quiet --format json";
    let out = stage.fathom(words, &file);
    let report = out.report().0;
    let cells = report["sweep"]["cells"].as_array().unwrap();
    let begins: Vec<u64> = cells.iter().map(|c| c["offset_bytes"].as_u64().unwrap()).collect();
    assert_eq!(begins, [0, 8 << 20, (16 << 20) * 99 / 100 / 4096 * 4096], "{out:?}");
    for cell in cells {
        let result = &report["results"][cell["result"].as_u64().unwrap() as usize];
        let access = &result["job"]["phases"][0]["streams"][0]["access"];
        assert_eq!(access["offset_bytes"], cell["offset_bytes"], "{access:#}");
        assert!(number(&cell["mib_per_s"]) > 0.0, "{cell:#}");
    }
    assert!(
        report["deductions"].as_array().unwrap().iter().any(|d| d["name"] == "rate by position"),
        "{:#}",
        report["deductions"]
    );
    let shown = stage.fathom("show last", nothing()).stdout;
    // Bars are relative to the best valid value.
    let has_valid = report["results"].as_array().unwrap().iter().any(|result| result["void"] != true);
    assert!(shown.contains("MB/s by position") && shown.contains("█") == has_valid, "{shown}");
    // An offset beyond the end of the file gives no cell. An offset with less than a block after it gives none either.
    let skipped = stage.fathom("sweep --offset 4m,20m --rw read --bs 64k --depth 1 --skipped", &file);
    assert_eq!(skipped.stdout.lines().count(), 1, "{skipped:?}");
    assert!(
        skipped.stdout.contains("at 20 MiB") && skipped.stdout.contains("only 0 B remain"),
        "{skipped:?}"
    );
}

#[test]
fn zones_cover_the_target_from_start_to_end() {
    let stage = Stage::shared();
    let list = stage.fathom("sweep --preset zones --engine sim --list", nothing());
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert_eq!((list.code, lines.len()), (Some(0), 21), "{list:?}");
    assert_eq!(lines[0], "read 8 x 1M direct, sim, at 0 %");
    assert_eq!(lines[20], "read 8 x 1M direct, sim, at 99 %", "{lines:?}");
}

#[test]
fn targets_as_an_axis_are_measured_separately() {
    // Other load on the disk would invalidate the values that the table shows.
    let stage = Stage::new();
    let places = [stage.folder("one"), stage.folder("two")];
    let both = format!("{},{}", places[0].display(), places[1].display());
    let words = format!(
        "sweep --target {both} --rw read --bs 64k --depth 1 --size 16m --time 50ms --exhaustive --quiet"
    );
    let report = stage.fathom(&format!("{words} --format json"), nothing()).report().0;
    let cells = report["sweep"]["cells"].as_array().unwrap();
    let on: Vec<&str> = cells.iter().map(|c| c["target"].as_str().unwrap()).collect();
    assert_eq!(on, [places[0].to_str().unwrap(), places[1].to_str().unwrap()]);
    for cell in cells {
        let result = &report["results"][cell["result"].as_u64().unwrap() as usize];
        let targets = &result["job"]["phases"][0]["streams"][0]["targets"];
        assert_eq!(targets.as_array().map(Vec::len), Some(1), "{targets:#}");
    }
    let shown = stage.fathom("show last", nothing()).stdout;
    assert!(shown.contains("MB/s of every device at each device's best setting"), "{shown}");
    let listed = stage.fathom("list --table=devices --format json", nothing()).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let best = &listed["best_settings"][0];
    assert_eq!((&best["work"], &best["settings"][0]), (&"read".into(), &"1 x 64K direct, io_uring".into()));
    let named: Vec<&str> =
        best["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(named, on, "{listed:#}");
    let mixed = stage.fathom(&words, &places[0]);
    assert!(mixed.code == Some(2) && mixed.stderr.contains("after --target"), "{mixed:?}");
    let counted = stage.fathom(&format!("{words} --targets 1,2"), nothing());
    assert!(counted.code == Some(2) && counted.stderr.contains("type one of them"), "{counted:?}");
}

#[test]
fn a_target_without_a_valid_number_has_a_row_with_the_reason() {
    let stage = Stage::shared();
    let (dir, holes) = (stage.folder("one"), stage.path("holes"));
    File::create(&holes).unwrap().set_len(16 << 20).unwrap();
    let words = format!(
        "sweep --target {},{} --rw read --bs 64k --depth 1 --size 16m --time 50ms --exhaustive --quiet",
        dir.display(),
        holes.display()
    );
    stage.fathom(&words, nothing());
    let listed = stage.fathom("list --table=devices --format json", nothing()).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let row = &listed["best_settings"][0]["rows"][1];
    assert_eq!((&row["name"], &row["best"]), (&holes.to_str().unwrap().into(), &Value::Null), "{listed:#}");
    assert!(row["void_by"].to_string().contains("A04"), "{row:#}");
    let shown = stage.fathom("show last", nothing()).stdout;
    assert!(shown.contains("void by"), "{shown}");
}

#[test]
fn directions_are_searched_separately_and_exhaustive_search_measures_all() {
    let stage = Stage::shared();
    let words = format!("{SIM} --rw read,randwrite --bs 4k,8k --depth 2,4 --exhaustive --runs 4");
    let sweep = sweep(&stage.fathom(&words, nothing()));
    assert_eq!(sweep["search"], "exhaustive");
    assert_eq!(shape(&sweep["winner"]["read"]), (8192, 4), "by bytes per second");
    assert_eq!(
        shape(&sweep["winner"]["randwrite"]),
        (4096, 4),
        "by operations, and the smaller one of two that are equal"
    );
    for cell in sweep["cells"].as_array().unwrap() {
        assert!(number(&cell["runs"]) >= 4.0, "{cell:#}");
    }
}

#[test]
fn a_cell_measured_once_can_win_but_not_a_single_cell() {
    let stage = Stage::shared();
    let words = format!("{SIM} --rw read,write --bs 4k..64k --depth 1..8 --exhaustive --runs 1");
    let once = stage.fathom(&words, nothing()).report().0;
    for (at, work) in ["read", "write"].into_iter().enumerate() {
        assert_eq!(shape(&once["sweep"]["winner"][work]), (64 << 10, 8), "{:#}", once["sweep"]["works"]);
        assert_eq!(once["sweep"]["works"][at]["chosen"], "fastest", "{:#}", once["sweep"]["works"]);
    }
    assert_eq!(once["answer"]["word"], "FASTEST", "{:#}", once["answer"]);
    let one = stage.fathom(&format!("{SIM} --rw read --bs 4k --depth 4"), nothing()).report().0;
    let work = &one["sweep"]["works"][0];
    assert_eq!(
        (&work["chosen"], one["sweep"]["winner"].get("read")),
        (&"no_choice".into(), None),
        "{work:#}"
    );
    assert!((number(&one["headline"]["value"]) / 163.84 - 1.0).abs() < 0.02, "{:#}", one["headline"]);
    assert!(one.get("answer").is_none(), "{:#}", one["answer"]);
}

#[test]
fn text_names_the_winner_and_draws_the_map() {
    let stage = Stage::shared();
    let words =
        "sweep --engine sim --rw read --bs 4k..32k --depth 1..64 --memory 1m --time 100ms --quiet --verbose";
    let out = stage.fathom(words, nothing());
    // On a busy machine another cell may use less CPU time and be quoted along with the winner. VALID is then on a separate line.
    for must in [
        "FASTEST  Reads: depth 64, 16 KiB, direct, sim: ",
        "\nVALID  ",
        "16K sequential read, depth 64",
        "fastest",
        "MB/s by size and depth",
        "*",
        "Skipped 1",
    ] {
        assert!(out.stdout.contains(must), "'{must}' is not in {}", out.stdout);
    }
}

#[test]
fn interrupted_sweep_resumes() {
    let stage = Stage::one_per_cpu();
    let words = "sweep --engine null --rw read --bs 4k..64k --depth 1 --workers 1,2 --time 300ms --seed 3 --budget 10s";
    let mut running = stage.start(words, nothing());
    running.wait_for_output("cell 4 of 10");
    running.signal(rustix::process::Signal::INT);
    let cut = running.end();
    assert_eq!(cut.code, Some(130), "{cut:?}");
    assert!(cut.stdout.contains("CANNOT TELL") && cut.stdout.contains("--resume last"), "{}", cut.stdout);
    let first = stage.sessions();
    let kept = std::fs::read(&first[0]).unwrap();

    let out = stage.fathom("sweep --resume last --format json", nothing());
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(!out.stderr.contains("cell 3 of 10"), "what was measured is not measured again: {}", out.stderr);
    let report = out.report().0;
    let runs: u64 =
        report["sweep"]["cells"].as_array().unwrap().iter().map(|c| c["runs"].as_u64().unwrap()).sum();
    assert!(runs >= 10 && report["sweep"]["winner"]["read"]["runs"] == 5, "{:#}", report["sweep"]["winner"]);
    assert_eq!(std::fs::read(&first[0]).unwrap(), kept, "the old session is left as it was");

    let done = stage.fathom("sweep --resume last", nothing());
    assert!(done.code == Some(2) && done.stderr.contains("that sweep is complete"), "{done:?}");
}

#[test]
fn killed_sweep_resumes() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    let words = "sweep --rw read --bs 64k..256k --depth 1,2 --size 32m --time 250ms --budget 10s";
    let mut running = stage.start(words, &folder);
    running.wait_for_output("cell 4 of 6");
    running.signal(rustix::process::Signal::KILL);
    running.end();
    // A resumed sweep refuses settings that the session defines, and settings that a resume cannot have.
    for more in
        ["--bs 4k", "--time 1s", "--explain", "--expect-device sda", "--no-history", "--fail-if p99>1ms"]
    {
        let out = stage.fathom(&format!("sweep --resume last {more}"), nothing());
        assert!(
            out.code == Some(2) && out.stderr.contains("the session defines what is measured"),
            "{more}: {out:?}"
        );
    }
    let out = stage.fathom("sweep --resume last --quiet --format json", nothing());
    let report = out.report().0;
    assert_eq!(report["ending"]["how"], "complete", "{}", out.stderr);
    assert_eq!(report["sweep"]["cells"].as_array().unwrap().len(), 6);
    assert!(report["sweep"]["winner"]["read"]["mib_per_s"].is_number());
}

#[test]
fn disk_has_a_winner_per_direction_and_losses_of_cp_and_dd() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let words = "sweep --bs 512,64k..256k --depth 1,4 --cache direct,buffered --size 64m --time 250ms --budget 25s --quiet --format json";
    let out = disk.fathom(&stage, words, &disk.dir);
    let report = out.report().0;
    let sweep = &report["sweep"];
    for work in ["read", "write"] {
        let winner = &sweep["winner"][work];
        assert!(number(&winner["mib_per_s"]) > 0.0 && winner["interval"].is_array(), "{winner:#}");
        assert!(number(&sweep["cheapest"][work]["memory_bytes"]) <= number(&winner["memory_bytes"]));
    }
    for work in sweep["works"].as_array().unwrap() {
        let names: Vec<&str> =
            work["yardsticks"].as_array().unwrap().iter().map(|y| y["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["cp", "dd"]);
    }
    let reports = report["results"].as_array().unwrap();
    for (name, bytes) in [("cp: 128K", 131_072.0), ("dd: 512", 512.0)] {
        for work in ["read", "write"] {
            let mine = |r: &&Value| {
                let called = r["name"].as_str().unwrap();
                called.starts_with(&name[..2]) && called.contains(work)
            };
            let result = reports.iter().find(mine).unwrap_or_else(|| panic!("no {name} {work}"));
            let (figures, ledger) = (&result[work], &result["ledger"][work]);
            assert!(
                (number(&figures["mb_per_s"]) * 1e6 / number(&figures["iops"]) - bytes).abs() < 1.0,
                "{figures:#}"
            );
            let first = &ledger["layers"][0];
            // Reads start with a cold cache, so the device serves each once. Writes go to a new file, which grows.
            if work == "read" {
                assert!(number(&first["difference"]) > -0.05, "{name}: {ledger:#}");
            } else {
                let options = &result["job"]["phases"][0]["streams"][0]["options"];
                assert!(options.get("grow").is_some(), "{name}: {options}");
            }
        }
    }
    // On a file system with 4 KiB blocks, cells of 512 bytes are skipped; with 512-byte blocks they are measured.
    let cells = sweep["cells"].as_array().unwrap().len() + sweep["skipped"].as_array().unwrap().len();
    assert_eq!(cells, 2 * 2 * 4 * 2);
    assert!(report["results"].as_array().unwrap().iter().all(|r| r["ledger"].is_object()));
}

#[test]
fn impossible_grids_are_refused_with_a_fix() {
    let stage = Stage::shared();
    let folder = stage.folder("place");
    for (words, must) in [
        ("--bs 64k..4k", "smaller value first"),
        ("--depth 1..", "whole number"),
        ("--rw read,read", "twice"),
        ("--runs 5", "--exhaustive"),
        ("--mix 70", "--rw randrw"),
        ("--random zipf:1.1 --rw read", "--random has no effect"),
        ("--compress 50 --rw read", "--compress has no effect"),
        ("--budget 1s", "--budget"),
        ("--memory 1k", "--memory"),
        ("--engine sync --depth 2,4", "at most 1 operation in flight"),
        ("--bs 1..1m --depth 1..16384 --workers 1..1024", "cells"),
        ("--engine warp", "no such engine"),
        ("--resume nowhere", "nowhere"),
        ("--exhaustive --budget 5m", "--budget"),
        ("--tolerance 0", "from 0.1 to 50"),
        ("--tolerance 80%", "from 0.1 to 50"),
        ("--preset pts --tolerance 5%", "leave --tolerance out"),
    ] {
        let target = if words.contains("--resume") { nothing() } else { &folder };
        let out = stage.fathom(&format!("sweep {words} --quiet"), target);
        assert!(out.code == Some(2) && out.stderr.contains(must), "{words}: {out:?}");
    }
    assert_eq!(stage.sessions().len(), 0);
}

#[test]
fn sweep_of_a_sparse_file_is_refused() {
    let stage = Stage::shared();
    let file = stage.path("sparse");
    std::fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let out = stage.fathom(
        "sweep --rw randread --bs 4k,8k --depth 4 --exhaustive --runs 3 --time 60s --quiet --format json",
        &file,
    );
    let report = out.report().0;
    assert_eq!((&report["answer"]["word"], out.code), (&"INVALID".into(), Some(1)), "{:#}", report["answer"]);
    let sentence = report["answer"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("A04") && sentence.contains("nothing was measured"), "{sentence}");
    assert_eq!(report["sweep"]["winner"], serde_json::json!({}));
}

#[test]
fn cells_measured_once_above_the_winner_are_not_distinguished() {
    let stage = Stage::one_per_cpu();
    let out = stage.fathom(
        "sweep --rw read --bs 64k,1m --depth 1,8 --cache direct,buffered --size 64m --exhaustive --runs 1 --time 150ms --warmup 0 --quiet --format json",
        &stage.folder("place"),
    );
    let report = out.report().0;
    let work = &report["sweep"]["works"][0];
    let cells = report["sweep"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8, "{cells:#?}");
    // If other load withholds the number of every cell, there is no winner.
    let best = report["sweep"]["winner"]["read"]["mib_per_s"].as_f64().unwrap_or(f64::INFINITY);
    // A single run does not show how much two runs differ. The repeats of the reference cell show this, and the winner is measured again.
    assert!(work["spread"].as_f64() > Some(0.0), "{work:#}");
    let mut word = report["answer"]["word"].as_str().unwrap();
    if word == "INVALID" {
        // The page cache may have served a buffered cell. The answer to the question is then in the sentence.
        assert_eq!(out.code, Some(1), "{:#}", report["answer"]);
        let sentence = report["answer"]["sentence"].as_str().unwrap();
        word = sentence
            .split_once("As measured: ")
            .map_or("", |(_, rest)| rest.split([',', '.']).next().unwrap_or(""));
    }
    let above =
        cells.iter().filter_map(|cell| cell["mib_per_s"].as_f64()).filter(|rate| *rate > best).count();
    match word {
        "FASTEST" => assert_eq!(above, 0, "{work:#}"),
        "TIED" => assert!(above <= work["rivals"].as_array().unwrap().len(), "{work:#}"),
        other => assert_eq!(other, "CANNOT TELL", "{:#}", report["answer"]),
    }
}
