//! Quick searches on real disks compared with measuring every cell: the winner must be as good, within the budget. Finally the winners of
//! both searches are measured in alternation. Needs a quiet machine for a quarter of an hour per target.

use crate::disk::{Disk, Image};
use crate::group::Group;
use crate::stage::{Stage, is_root, wait_long};
use serde_json::Value;

/// How often both searches run at each place.
const TIMES: usize = 10;
/// How often the winner of the adaptive search may be worse.
const WORSE: usize = 1;
/// The grid: its block sizes include some that are slower on any disk.
const GRID: &str = "--rw read --bs 16k..256k --depth 1..8 --size 192m --time 500ms";
/// If the winner has at least this share of the other winner's rate, it counts as equally good. This is the default tolerance.
const AS_GOOD: f64 = 0.95;
/// The longest allowed search, as a multiple of its budget.
const LATE: f64 = 1.1;
/// Runs of each winner, in turns.
const TURNS: usize = 5;

/// A place to search at.
struct Storage<'s> {
    stage: &'s Stage,
    disk: &'s Disk,
    group: Option<&'s Group>,
}

impl Storage<'_> {
    /// Runs a command on this storage, and returns its report.
    fn report(&self, words: &str) -> Value {
        let enter = [self.disk.enter(), self.group.map_or(Vec::new(), Group::enter)].concat();
        let words = format!("{words} --quiet --format json");
        wait_long(&mut self.stage.command(&enter, &words, &self.disk.dir)).report().0
    }

    /// Runs a search, and returns the sweep of its report.
    fn search(&self, how: &str) -> Value {
        self.report(&format!("sweep {GRID} {how}"))["sweep"].take()
    }

    /// The rate of the second setting divided by the rate of the first one, measured in turns.
    fn ratio(&self, settings: [&Value; 2]) -> f64 {
        let rate = |setting: &Value| {
            let words = format!(
                "run --rw read --bs {} --depth {} --size 192m --time 500ms --warmup 100ms --runs 1",
                setting["block_bytes"], setting["depth"]
            );
            let report = self.report(&words);
            report["results"][0]["total"]["mb_per_s"].as_f64().unwrap_or_else(|| panic!("{report:#}"))
        };
        let logs = (0..TURNS).map(|_| rate(settings[1]).ln() - rate(settings[0]).ln());
        (logs.sum::<f64>() / TURNS as f64).exp()
    }
}

fn shape(setting: &Value) -> String {
    format!("{} x {}", setting["depth"], setting["block_bytes"])
}

/// Runs the adaptive and the exhaustive search several times, and prints a line for each pair.
fn compare_searches(name: &str, storage: &Storage) {
    let (mut worse, mut late) = (0, 0);
    for time in 1..=TIMES {
        let (whole, quick) = (storage.search("--exhaustive"), storage.search(""));
        let winners = [&whole, &quick].map(|sweep| &sweep["winner"]["read"]);
        let same = shape(winners[0]) == shape(winners[1]);
        let ratio = if same { 1.0 } else { storage.ratio(winners) };
        let [whole_s, quick_s, budget_s] =
            [&whole["seconds"], &quick["seconds"], &quick["budget_seconds"]].map(|s| s.as_f64().unwrap());
        worse += usize::from(ratio < AS_GOOD);
        late += usize::from(quick_s > LATE * budget_s);
        println!(
            "{name} {time}: {} in {whole_s:.1} s, {} in {quick_s:.1} of {budget_s:.1} s, as fast as {ratio:.3}: {}",
            shape(winners[0]),
            shape(winners[1]),
            quick["works"][0]["sentence"]
        );
    }
    println!("{name}: worse {worse} of {TIMES}, late {late} of {TIMES}");
    assert!(worse <= WORSE && late == 0, "{name}: worse {worse}, late {late} of {TIMES}");
}

#[test]
#[ignore = "long"]
fn quick_search_of_a_disk_finds_the_exhaustive_winner() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::bare(&stage, None) else { return };
    compare_searches("disk", &Storage { stage: &stage, disk: &disk, group: None });
}

#[test]
#[ignore = "long"]
fn quick_search_of_a_throttled_disk_finds_the_exhaustive_winner() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    // This limit slows small blocks; the limit on bytes below slows large ones.
    let limit = ("blkio", "blkio.throttle.read_iops_device", "$NUMBER 4000");
    let Some(group) = Group::limited(&disk, &limit) else { return };
    let bytes = format!("{} {}", disk.number(), 400_000_000);
    std::fs::write(group.dir().join("blkio.throttle.read_bps_device"), bytes).unwrap();
    compare_searches("throttled", &Storage { stage: &stage, disk: &disk, group: Some(&group) });
}
