//! Long tests, for `./test --long`: how often a check fires without a reason, and how often it stays silent with one.
//!
//! Hundreds of honest runs, each provocation many times, a hundred kills, ten thousand sessions. `FATHOM_LONG_RUNS` is the number of honest runs;
//! each provocation gets a tenth as many. A quick try uses 10.

use crate::disk::{Disk, Image};
use crate::group::Group;
use crate::history;
use crate::scene::{self, Scene};
use crate::stage::{Outcome, Report, Stage, is_root, tool, wait};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Honest runs by default.
const HONEST_RUNS: usize = 200;
/// Honest runs for each repetition of a provocation.
const RUNS_PER_PROVOCATION: usize = 10;
/// Size of the test file, far above the CPU caches. It is written once.
const FILE_MIB: usize = 256;
/// Three short runs with a JSON report, so that checks that need several runs are included.
const SHORT: &str = "--time 300ms --warmup 50ms --runs 3 --quiet --format json";
/// Severities that change what a number means. A note may be true of any run here.
const ACTING: &[&str] = &["void", "rename", "biased"];

/// The axes of an honest workload. Each combination is one shape.
const ORDERS: &[&str] = &["randread", "randwrite", "read", "write"];
const SIZES: &[&str] = &["4k", "16k", "64k", "1m"];
const DEPTHS: &[u32] = &[1, 4, 32];
const CACHES: &[&str] = &["direct", "direct-dsync", "direct-sync"];
/// Distance between the shapes of consecutive runs, so that few runs already mix all axes. Prime to the number of shapes.
const STRIDE: usize = 55;

/// A workload that its storage can serve.
#[derive(Clone, Copy, Debug)]
struct Shape {
    order: &'static str,
    size: &'static str,
    depth: u32,
    cache: &'static str,
}

/// A finding that acts on the number of an honest run, and is true on this kind of machine.
struct ExpectedFinding {
    id: &'static str,
    applies_to: fn(&Shape) -> bool,
    why: &'static str,
}

/// The reason for findings that fio's rates at the same time confirm.
const HOST: &str =
    "the host of a virtual disk takes writes at rates that differ by a factor of five within seconds";

const EXPECTED_FINDINGS: &[ExpectedFinding] = &[
    ExpectedFinding {
        id: "B05",
        applies_to: Shape::waits_for_syncs,
        why: "a file system carries out stable writes of one file one at a time",
    },
    ExpectedFinding {
        id: "B05",
        applies_to: |s| s.depth > 1 && s.writes(),
        why: "the host of a virtual disk takes writes as fast as one thread hands them over",
    },
    // fio at the same depth had an `aqu-sz` of 9 to 12.
    ExpectedFinding {
        id: "B05",
        applies_to: |s| s.depth > 4 && s.size == "4k",
        why: "a disk that answers within tens of us is not kept 32 deep by one CPU, by fio neither",
    },
    // After a small program wrote with O_DIRECT for 0.3 s, its fsync took 0.3 s too.
    ExpectedFinding {
        id: "C06",
        applies_to: |s| s.writes() && s.cache == "direct",
        why: "the host of a virtual disk holds direct writes in memory until a flush, which takes a good part of a short run",
    },
    ExpectedFinding {
        id: "D06",
        applies_to: |_| true,
        why: "on few CPUs a fast disk leaves a worker no time to spare",
    },
    ExpectedFinding {
        id: "D07",
        applies_to: Shape::writes,
        why: "data that are new in each write take time to make, compared with a host that accepts them within tens of us",
    },
    ExpectedFinding {
        id: "D28",
        applies_to: |s| s.cache != "direct",
        why: "the host of a virtual machine takes memory that is free",
    },
    ExpectedFinding { id: "E02", applies_to: Shape::writes, why: HOST },
    ExpectedFinding { id: "E06", applies_to: Shape::writes, why: HOST },
    ExpectedFinding { id: "E07", applies_to: Shape::writes, why: HOST },
    ExpectedFinding {
        id: "E09",
        applies_to: |_| true,
        why: "the host of a virtual disk answers nothing for tens of ms now and then",
    },
];

impl Shape {
    fn for_run(run: usize) -> Self {
        let mut rest = run * STRIDE;
        let mut take = |of: usize| {
            let at = rest % of;
            rest /= of;
            at
        };
        Self {
            order: ORDERS[take(ORDERS.len())],
            size: SIZES[take(SIZES.len())],
            depth: DEPTHS[take(DEPTHS.len())],
            cache: CACHES[take(CACHES.len())],
        }
    }

    fn writes(&self) -> bool {
        self.order.ends_with("write")
    }

    fn waits_for_syncs(&self) -> bool {
        self.cache != "direct" && self.writes()
    }

    fn describe(&self) -> String {
        format!("--rw {} --bs {} --depth {} --cache {}", self.order, self.size, self.depth, self.cache)
    }

    /// Why this check is right to fire on the workload; `None` if it is not.
    fn excuse(&self, id: &str) -> Option<&'static str> {
        EXPECTED_FINDINGS.iter().find(|t| t.id == id && (t.applies_to)(self)).map(|t| t.why)
    }
}

/// Checks that fire if the host takes CPU time.
const BY_THE_HOST: &[&str] = &["D10", "D27"];

/// Ticks that the hypervisor took from all CPUs, read independently of fathom.
fn stolen_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    stat.split_whitespace().nth(8).unwrap().parse().unwrap()
}

/// How many honest runs there are.
fn runs() -> usize {
    let printed = std::env::var("FATHOM_LONG_RUNS").ok();
    printed
        .map_or(HONEST_RUNS, |n| n.parse().unwrap_or_else(|_| panic!("FATHOM_LONG_RUNS is no number: {n}")))
}

/// How often each check fired, by id and severity, and the shapes without an excuse.
#[derive(Default)]
struct Alarms {
    fired: BTreeMap<(String, String), usize>,
    unexcused: BTreeMap<String, Vec<String>>,
}

impl Alarms {
    fn take(&mut self, shape: &Shape, out: &Outcome, stolen: bool) {
        for finding in out.report().0["findings"].as_array().unwrap() {
            if finding["outcome"] != "finding" {
                continue;
            }
            let word = |key: &str| finding[key].as_str().unwrap().to_owned();
            let (id, severity) = (word("id"), word("severity"));
            *self.fired.entry((id.clone(), severity.clone())).or_default() += 1;
            let host = stolen && BY_THE_HOST.contains(&id.as_str());
            if ACTING.contains(&severity.as_str()) && !host && shape.excuse(&id).is_none() {
                let printed = format!("{}: {}", shape.describe(), word("sentence"));
                self.unexcused.entry(id).or_default().push(printed);
            }
        }
    }

    fn table(&self, runs: usize) -> String {
        let mut out = format!("{:4} {:8} fired in {runs} honest runs\n", "id", "severity");
        for ((id, severity), times) in &self.fired {
            let acts = ACTING.contains(&severity.as_str());
            let host = BY_THE_HOST.contains(&id.as_str()).then_some("only where /proc/stat says the same");
            let why =
                EXPECTED_FINDINGS.iter().find(|t| acts && t.id == id).map(|t| t.why).or(host).unwrap_or("");
            writeln!(out, "{id:4} {severity:8} {times:5}  {why}").unwrap();
        }
        out
    }
}

#[test]
#[ignore = "long"]
fn honest_runs_raise_no_findings() {
    let stage = Stage::watching();
    let file = stage.file("data", FILE_MIB);
    let mut alarms = Alarms::default();
    let runs = runs();
    for run in 0..runs {
        let shape = Shape::for_run(run);
        let allowed = if shape.writes() { format!("--destroy {}", file.display()) } else { String::new() };
        let words = format!("run {} {allowed} {SHORT}", shape.describe());
        let before = stolen_ticks();
        let out = stage.fathom(&words, &file);
        assert!(matches!(out.code, Some(0 | 1)), "{}: {out:?}", shape.describe());
        alarms.take(&shape, &out, stolen_ticks() > before);
    }
    println!("{}", alarms.table(runs));
    assert!(alarms.unexcused.is_empty(), "alarms without a reason: {:#?}", alarms.unexcused);
}

/// How often a scene was detected, and how often it could be played.
fn caught(scene: &Scene, times: usize, stage: fn() -> Stage) -> (usize, usize) {
    let (mut caught, mut reported) = (0, 0);
    for _ in 0..times {
        let Some(out) = scene.play(&stage()) else { break };
        reported += 1;
        match serde_json::from_str(&out.stdout) {
            Ok(report) => {
                let report = Report(report);
                let is_caught = report.has_answer(scene.id, scene.answer);
                caught += usize::from(is_caught);
                if !is_caught {
                    println!("{} got by: {:?}", scene.id, report.answers(scene.id));
                }
            }
            Err(_) => println!("{} without a report: {out:?}", scene.id),
        }
    }
    println!("{:4} caught {caught:2} of {reported:2}  {}", scene.id, scene.words);
    (caught, reported)
}

#[test]
#[ignore = "long"]
fn provoked_problems_are_found_each_time() {
    let times = (runs() / RUNS_PER_PROVOCATION).max(1);
    // On a shared machine, the background load of a scene may start late.
    let is_missed = |(caught, reported): (usize, usize)| caught * 10 < reported * 9;
    let scenes = [scene::PLAYED_ELSEWHERE, scene::PLAYED_HERE].concat();
    let (mut alone, together): (Vec<&Scene>, Vec<&Scene>) =
        scenes.iter().filter(|s| scene::wanted(s)).partition(|s| s.is_alone);
    // Scenes wait for their turns. A scene that other load hid is played again alone.
    std::thread::scope(|threads| {
        let play = |scene| (scene, threads.spawn(move || caught(scene, times, Stage::shared)));
        let playing: Vec<_> = together.into_iter().map(play).collect();
        alone.extend(
            playing.into_iter().filter_map(|(scene, of)| is_missed(of.join().unwrap()).then_some(scene)),
        );
    });
    println!("by themselves:");
    let missed: Vec<&str> = alone
        .into_iter()
        .filter(|scene| is_missed(caught(scene, times, Stage::watching)))
        .map(|scene| scene.id)
        .collect();
    assert!(missed.is_empty(), "caught less than nine times of ten: {missed:?}");
}

/// Pairs of measurements that are compared.
const PAIRS: usize = 20;
/// The number of repetitions: fewer if fewer honest runs are requested.
pub(crate) fn pairs() -> usize {
    (PAIRS * runs() / HONEST_RUNS).max(1)
}

/// The compared measurement: the defaults except the time.
const PAIR: &str = "run --rw randread --depth 32 --size 128m --time 1s --quiet --format json";

/// Measures on the disk, in a cgroup if one is given, and returns the rate.
fn one_side(stage: &Stage, disk: &Disk, group: Option<&Group>, to: &str) -> f64 {
    let enter = [disk.enter(), group.map_or(Vec::new(), Group::enter)].concat();
    let words = format!("{PAIR} -o {}", stage.path(to).display());
    let report = wait(&mut stage.command(&enter, &words, &disk.dir)).report();
    report.0["headline"]["value"].as_f64().unwrap_or_else(|| panic!("no number: {report:#?}"))
}

/// The verdict of `compare` about b against a.
fn compared(stage: &Stage) -> Value {
    let [a, b] = ["a.json", "b.json"].map(|name| stage.path(name).display().to_string());
    let out = stage.fathom(&format!("compare {a} {b} --format json"), Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    out.report().0
}

/// The answers of all pairs, with B limited to this share of A's rate.
fn answers(allowed: Option<f64>) -> Option<Vec<Value>> {
    if !is_root() {
        return None;
    }
    let stage = Stage::watching();
    let disk = Disk::new(&stage, "ext4", Image::Direct)?;
    let mut all = Vec::new();
    for _ in 0..pairs() {
        let rate = one_side(&stage, &disk, None, "a.json");
        let value = format!("$NUMBER {}", (rate * allowed.unwrap_or(1.0)) as u64);
        let limit = ("blkio", "blkio.throttle.read_iops_device", value.as_str());
        let group = match allowed {
            Some(_) => Some(Group::limited(&disk, &limit)?),
            None => None,
        };
        one_side(&stage, &disk, group.as_ref(), "b.json");
        let answer = compared(&stage);
        println!("{}", answer["sentence"]);
        all.push(answer);
    }
    Some(all)
}

fn count(answers: &[Value], word: &str) -> usize {
    answers.iter().filter(|a| a["answer"] == word).count()
}

#[test]
#[ignore = "long"]
fn equal_measurements_rarely_differ() {
    let Some(all) = answers(None) else { return };
    let wrong = count(&all, "FASTER") + count(&all, "SLOWER");
    println!("{wrong} of {} pairs of the same were told apart", all.len());
    assert!(wrong <= all.len().div_ceil(PAIRS), "{all:#?}");
}

#[test]
#[ignore = "long"]
fn ten_percent_slowdown_is_found_or_the_needed_runs_are_given() {
    let Some(all) = answers(Some(0.9)) else { return };
    let seen = count(&all, "SLOWER");
    println!("SLOWER said of {seen} of {} pairs with a tenth less", all.len());
    let open = all.iter().filter(|a| a["answer"] != "SLOWER");
    let honest = |a: &&Value| {
        a["answer"] == "CANNOT TELL" && a["pairs"][0]["metrics"][0]["runs_needed"].as_u64().is_some()
    };
    assert!(seen * 10 >= all.len() * 9 || open.clone().all(|a| honest(&a)), "{all:#?}");
}

#[test]
#[ignore = "long"]
fn hundred_kills_lose_no_completed_run() {
    history::kills(&Stage::watching(), 100);
}

#[test]
#[ignore = "long"]
fn ten_thousand_sessions_are_listed() {
    history::list_many(&Stage::watching(), 10_000);
}

#[test]
fn first_runs_mix_all_axes_and_all_runs_cover_every_shape() {
    let all = ORDERS.len() * SIZES.len() * DEPTHS.len() * CACHES.len();
    let words = |runs: usize| {
        (0..runs).map(|r| Shape::for_run(r).describe()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(words(all).len(), all);
    let first: String = words(20).into_iter().collect();
    assert!(
        ORDERS.iter().chain(SIZES).chain(CACHES).all(|word| first.contains(&format!(" {word}"))),
        "{first}"
    );
}

/// Pairs of each comparison with a real program.
const COPIES: usize = 10;
/// Maximum deviation of the median of the pairs.
const OFF: f64 = 0.10;
/// The data to copy.
const COPY_MIB: usize = 256;

/// File in which some guest kernels have the delay, in ms, before they return free memory to the host.
const GIVEN_BACK_AFTER_MS: &str = "/sys/module/page_reporting/parameters/min_free_ms";
/// Longer than the test takes.
const LONG_MS: &str = "300000";

/// Makes a virtual machine keep its free memory until dropped. Otherwise it must request memory from the host again. That makes a buffered
/// copy up to three times slower (D28), most of all after a long pause. Does nothing if the kernel has no such setting.
struct KeptMemory(Option<String>);

impl KeptMemory {
    fn new() -> Self {
        let before = std::fs::read_to_string(GIVEN_BACK_AFTER_MS).ok();
        if before.is_some() {
            std::fs::write(GIVEN_BACK_AFTER_MS, LONG_MS).unwrap();
        }
        Self(before)
    }
}

impl Drop for KeptMemory {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            std::fs::write(GIVEN_BACK_AFTER_MS, before.trim()).unwrap();
        }
    }
}

/// A program with its arguments.
type Words<'w> = &'w [&'w dyn AsRef<std::ffi::OsStr>];

/// MB/s of a program that copies the data and makes them stable. The copy both reads and writes; `other_half` is the time in s of the half
/// that is not measured.
fn copied(words: Words, then: Option<Words>, other_half: f64) -> f64 {
    (COPY_MIB << 20) as f64 / 1e6 / (took(words) + then.map_or(0.0, took) - other_half)
}

/// Seconds that a tool takes.
fn took(words: Words) -> f64 {
    let start = std::time::Instant::now();
    tool(words).unwrap();
    start.elapsed().as_secs_f64()
}

/// Seconds that dd needs to copy blocks in memory if its input and output block sizes differ.
fn copying_of_dd(from: &str) -> f64 {
    let null = "of=/dev/null";
    let both = took(&[&"dd", &from, &null, &"ibs=512", &"obs=128k"])
        + took(&[&"dd", &"if=/dev/zero", &null, &"ibs=1M", &"obs=512", &format!("count={COPY_MIB}")]);
    let neither = took(&[&"dd", &from, &null, &"bs=512"])
        + took(&[&"dd", &"if=/dev/zero", &null, &"bs=1M", &format!("count={COPY_MIB}")]);
    (both - neither) / 2.0
}

/// MB/s at which fathom generates the data of a write row. No sync is included.
fn data_generation_mb_per_s(stage: &Stage, cell: &Value) -> f64 {
    let bytes = cell["block_bytes"].as_u64().unwrap();
    let words = format!(
        "run --engine null --rw write --bs {bytes} --depth 1 --size {COPY_MIB}m --ops {} --warmup 0 --runs 1 --quiet --format json",
        ((COPY_MIB as u64) << 20) / bytes
    );
    let report = stage.fathom(&words, Path::new("")).report().0;
    report["results"][0]["total"]["mb_per_s"].as_f64().unwrap()
}

#[test]
#[ignore = "long"]
fn rows_of_cp_and_dd_are_as_fast_as_the_programs() {
    let stage = Stage::new();
    let _kept = KeptMemory::new();
    let (folder, source) = (stage.folder("place"), stage.file("source", COPY_MIB));
    let new = stage.path("new");
    // The source stays in memory, so that reading it takes no time.
    let cached = std::path::PathBuf::from(format!("/dev/shm/fathom-copy-{}", std::process::id()));
    std::fs::copy(&source, &cached).unwrap();
    let evict = format!("of={}", source.display());
    let (from, to) = (format!("if={}", source.display()), format!("of={}", new.display()));
    // One side of dd uses its default of 512 bytes. The other side uses 128 KiB, which costs hardly any time.
    let (little, count) = ("128k", format!("count={}", (COPY_MIB << 20) / (128 << 10)));
    let (ibs, obs, bs) = (format!("ibs={little}"), format!("obs={little}"), format!("bs={little}"));
    let (mut table, mut worst) = (String::new(), 0.0_f64);
    for (name, work) in [("cp", "read"), ("cp", "write"), ("dd", "read"), ("dd", "write")] {
        let real = || {
            let _ = std::fs::remove_file(&new);
            tool(&[&"sync"]).unwrap();
            tool(&[&"dd", &evict, &"oflag=nocache", &"conv=notrunc,fdatasync", &"count=0"]).unwrap();
            // A cell of a sweep ends when its writes are stable, so sync here too.
            let flush: Words = &[&"sync", &new];
            match (name, work) {
                ("cp", "read") => copied(&[&"cp", &source, &"/dev/null"], None, 0.0),
                ("cp", _) => {
                    let reading = took(&[&"cp", &cached, &"/dev/null"]);
                    copied(&[&"cp", &cached, &new], Some(flush), reading)
                }
                ("dd", "read") => {
                    let copying = copying_of_dd(&format!("if={}", cached.display()));
                    copied(&[&"dd", &from, &"of=/dev/null", &"ibs=512", &obs], None, copying)
                }
                _ => {
                    let making = took(&[&"dd", &"if=/dev/zero", &"of=/dev/null", &bs, &count]);
                    copied(&[&"dd", &"if=/dev/zero", &to, &ibs, &"obs=512", &count], Some(flush), making)
                }
            }
        };
        let ours = || {
            let words = format!(
                "sweep --bs 1m --depth 1 --rw {work} --size {COPY_MIB}m --exhaustive --runs 1 --time 1s --quiet --format json"
            );
            // Both programs read the same file, because the host may read another file at another speed.
            let target = if work == "read" { &source } else { &folder };
            let report = stage.fathom(&words, target).report().0;
            let rows = report["sweep"]["works"][0]["yardsticks"].as_array().unwrap().clone();
            let row =
                rows.iter().find(|y| y["name"] == name).unwrap_or_else(|| panic!("no {name}: {rows:?}"));
            let rate = row["cell"]["mb_per_s"].as_f64().unwrap();
            // Subtract the half that is not measured: making the data for fathom, reading them for cp and dd.
            if work == "read" {
                rate
            } else {
                1.0 / (1.0 / rate - 1.0 / data_generation_mb_per_s(&stage, &row["cell"]))
            }
        };
        let pairs: Vec<(f64, f64)> = (0..COPIES).map(|_| (real(), ours())).collect();
        let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let mut all: Vec<f64> = pairs.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            f64::midpoint(all[COPIES / 2 - 1], all[COPIES / 2])
        };
        let (real, ours, ratio) = (median(&|p| p.0), median(&|p| p.1), median(&|p| p.1 / p.0));
        worst = worst.max((ratio - 1.0).abs());
        writeln!(
            table,
            "{name} {work}: {real:.0} MB/s, fathom {ours:.0} MB/s, {:+.1} %",
            (ratio - 1.0) * 100.0
        )
        .unwrap();
    }
    let _ = std::fs::remove_file(&cached);
    println!("{table}");
    assert!(worst <= OFF, "{table}");
}
