//! D23: a software RAID array or bcache below the target that is degraded or busy with its own work. Reads the
//! state of the array before the runs and `/proc/mdstat` before and after each run.

use crate::checks::prelude::*;
use model::evidence::RAID;

/// Work that an array can be busy with (`mdstat`, `md/sync_action`).
const BUSY: &[&str] = &["resync", "recovery", "recover", "check", "reshape", "repair"];
/// bcache states in which reads and writes bypass the configured cache.
const BROKEN_CACHE: &[&str] = &["no cache", "inconsistent"];

pub(super) const CHECK: Check = Check {
    id: CheckId::D23,
    name: "RAID_STATE",
    belief: "the array below is complete and idle",
    reads: "`/proc/mdstat` at start and stop of each run, `md/degraded` and `md/sync_action` of the arrays \
            in the stack, and `bcache/state`.",
    formula: formula!(
        "Biased if an array of the stack lacks members, or resyncs, recovers, checks, repairs or reshapes \
         itself, or if a bcache has lost its cache. There is no threshold: a missing member changes the cost \
         of each operation, and a resync is foreign I/O by the kernel itself."
    ),
    provoke: "`mdadm --manage /dev/md0 --fail /dev/sdX`, or `echo check > /sys/block/md0/md/sync_action`, \
              and a run.",
    fix: "Wait until the array is complete and idle (`watch cat /proc/mdstat`), or replace the member, and \
          measure again.",
    accept: "Accept it if you want to measure the degraded array.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| on_array(DEGRADED)),
    #[cfg(test)]
    blind: || on_array_with(Err("Permission denied (os error 13)"), &[]),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let layers: Vec<&Layer> = case.places().flat_map(|p| &p.layers).collect();
    let arrays: Vec<&Layer> = layers.iter().copied().filter(|l| l.kind == LayerKind::Raid).collect();
    let caches: Vec<(&Layer, &str)> =
        layers.iter().filter_map(|l| Some((*l, l.device.get("bcache/state")?.trim()))).collect();
    if !case.on_device() || (arrays.is_empty() && caches.is_empty()) {
        return Ok(Answer::DoesNotApply);
    }
    let mut all_problems: Vec<String> = Vec::new();
    let mut why_not_read = None;
    for array in &arrays {
        match problems_of_array(case, array) {
            Ok(problems) => all_problems.extend(problems),
            Err(why) => why_not_read = Some(why),
        }
    }
    let broken = caches.iter().filter(|(_, state)| BROKEN_CACHE.contains(state));
    all_problems.extend(broken.map(|(layer, state)| format!("{} reports '{state}'", layer.name)));
    all_problems.sort();
    all_problems.dedup();
    let numbers = evidence([("arrays", arrays.len() as f64), ("caches", caches.len() as f64)]);
    if all_problems.is_empty() {
        return why_not_read.map_or(holds("The arrays below were complete and idle.", numbers), Err);
    }
    finding!(
        Severity::Biased,
        numbers,
        "An array or cache below is degraded or busy: {}.",
        all_problems.join("; ")
    )
}

/// Describes what is wrong with an array, from its own files before the runs and from the summary around each
/// run.
fn problems_of_array(case: &Case, array: &Layer) -> Known<Vec<String>> {
    let mut out = Vec::new();
    let degraded = array.device_number("md/degraded");
    if let Ok(missing) = degraded.as_ref().map(|n| *n)
        && missing > 0
    {
        out.push(format!("{} lacks {missing} of its members", array.name));
    }
    if let Some(action) = array.device.get("md/sync_action").map(|a| a.trim()).filter(|a| BUSY.contains(a)) {
        out.push(format!("{} is busy with {action}", array.name));
    }
    let mut was_read = false;
    let mut why_not_read = format!("{RAID} was not read");
    for snapshot in case.runs.iter().flat_map(|r| [r.at(Moment::Start), r.at(Moment::Stop)]) {
        match snapshot.and_then(|s| s.text(RAID)).and_then(|text| problems_in_mdstat(text, &array.name)) {
            Ok(problems) => {
                was_read = true;
                out.extend(problems);
            }
            Err(why) => why_not_read = why,
        }
    }
    if out.is_empty() && !was_read { Err(why_not_read) } else { Ok(out) }
}

/// Describes what is wrong with an array according to the summary: a line with its name, then indented lines.
fn problems_in_mdstat(text: &str, name: &str) -> Known<Vec<String>> {
    let mut lines = text.lines().skip_while(|l| l.split(" : ").next().map(str::trim) != Some(name));
    lines.next().ok_or_else(|| format!("{RAID} does not list {name}"))?;
    let mut out = Vec::new();
    for line in lines.take_while(|l| l.starts_with(char::is_whitespace)) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        for field in &fields {
            let members =
                field.strip_prefix('[').and_then(|w| w.strip_suffix(']')).and_then(|w| w.split_once('/'));
            let Some((all, present)) = members else { continue };
            if let (Ok(all), Ok(present)) = (all.parse::<u32>(), present.parse::<u32>())
                && present < all
            {
                out.push(format!("{name} lacks {} of its members", all - present));
            }
        }
        // `resync=DELAYED` and `resync=PENDING` are one field, and the array is not busy yet.
        let busy = fields.windows(2).find(|w| w[1] == "=" && BUSY.contains(&w[0]));
        out.extend(busy.map(|w| format!("{name} is busy with {}", w[0])));
    }
    Ok(out)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
const COMPLETE: &str = "Personalities : [raid1] [raid6] [raid5] [raid4]
md0 : active raid1 sdb1[1] sda1[0]
      976630336 blocks super 1.2 [2/2] [UU]
      \tresync=DELAYED
      bitmap: 0/8 pages [0KB], 65536KB chunk

md1 : active raid5 sdc1[0] sdd1[1]
      3906764800 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/2] [UU_]

unused devices: <none>
";
#[cfg(test)]
const DEGRADED: &str = "Personalities : [raid1]
md0 : active raid1 sda1[0]
      976630336 blocks super 1.2 [2/1] [U_]
      bitmap: 3/8 pages [12KB], 65536KB chunk

unused devices: <none>
";
#[cfg(test)]
const CHECKING: &str = "Personalities : [raid6] [raid5] [raid4]
md0 : active raid5 sdd1[3] sdc1[1] sdb1[0]
      1953260544 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/3] [UUU]
      [==>..................]  check = 12.6% (37043392/976630272) finish=127.5min speed=33440K/sec

unused devices: <none>
";

#[cfg(test)]
fn on_array_with(mdstat: Result<&str, &str>, files: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let layer = &mut record.header.hosts[0].places[0].layers[0];
    (layer.name, layer.kind) = ("md0".into(), LayerKind::Raid);
    layer.device.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(RAID.into(), mdstat.map(str::to_owned).map_err(str::to_owned));
    }
    record
}

/// A record of the array md0 with this summary.
#[cfg(test)]
fn on_array(mdstat: &str) -> model::record::Record {
    on_array_with(Ok(mdstat), &[("md/degraded", "0\n"), ("md/sync_action", "idle\n")])
}

#[test]
fn only_the_state_of_the_targets_array_counts() {
    let Ok(Answer::Finding(f)) = CHECK.answer(&on_array(DEGRADED)) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biased);
    assert!(f.sentence.contains("md0 lacks 1 of its members"), "{}", f.sentence);
    let Ok(Answer::Finding(f)) = CHECK.answer(&on_array(CHECKING)) else { panic!("silent") };
    assert!(f.sentence.ends_with(": md0 is busy with check."), "{}", f.sentence);
    assert!(matches!(CHECK.answer(&on_array(COMPLETE)), Ok(Answer::Holds(..))), "md1 is not below");
    assert_eq!(CHECK.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}

#[test]
fn the_state_before_the_runs_suffices_without_a_summary() {
    let busy = on_array_with(Err("gone"), &[("md/degraded", "1\n"), ("md/sync_action", "recover\n")]);
    let Ok(Answer::Finding(f)) = CHECK.answer(&busy) else { panic!("silent") };
    assert!(f.sentence.contains("busy with recover; md0 lacks 1"), "{}", f.sentence);
    assert!(CHECK.answer(&on_array_with(Err("gone"), &[("md/degraded", "0\n")])).is_err());
    assert!(CHECK.answer(&on_array("Personalities :\nunused devices: <none>\n")).is_err());
}

#[test]
fn a_lost_cache_biases() {
    let with = |state: &str| {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].device.insert("bcache/state".into(), state.into());
        record
    };
    assert_eq!(CHECK.severity(&with("no cache\n")), Some(Severity::Biased));
    assert!(matches!(CHECK.answer(&with("dirty\n")), Ok(Answer::Holds(..))));
}
