//! The state of drives and arrays (D15, D16, D17, D23).
//!
//! D15 compares the sensors of the drives with the limits that the drives report. D16 finds PCI Express and
//! SATA links that run slower or narrower than both ends support: biased if the rate uses a large share of the
//! link, otherwise a note. D17 finds a drive that had to wake up: in every run, the longest operation of the
//! first interval is much longer than the median and than all later operations. D23 reads the state of software
//! RAID and bcache before the runs, and `/proc/mdstat` before and after each run.

use super::virtualization::is_virtual;
use crate::checks::prelude::*;
use crate::figures::kernel_text::{Link, read_link, sensors_below};
use model::evidence::{RAID, TEMPERATURES};
use model::record::{Cell, Interval};

/// A drive is hot at this distance from its limit or closer, in thousandths of a degree. Sensors show whole degrees
/// with a delay, and drives begin to slow down just below their maximum.
const NEAR_MILLIDEGREES: i64 = 2_000;

pub(super) const THERMAL: Check = Check {
    id: CheckId::D15,
    name: "THERMAL",
    belief: "the drive was cool enough to sustain this rate",
    reads: "`temp1_input` and `temp1_max` of the sensors of the drives below the target in \
            `/sys/class/hwmon/` (drivers `nvme` and `drivetemp`), at start and stop of each run.",
    formula: formula!(
        "Biased if a sensor comes within {near} degrees Celsius of `temp1_max`, the limit that the drive \
         itself reports. Not checked if a drive below has no sensor or no limit, or if a part of the stack \
         is unknown. Does not apply to a virtual disk without a sensor.",
        near = NEAR_MILLIDEGREES / 1000
    ),
    provoke: "A drive without heat sink, `fathom run --rw write --bs 1m --depth 32 --time 10m --size 64g \
              DIR`, and `watch sensors` in another terminal. Drives without a sensor driver need `modprobe \
              drivetemp` (SATA).",
    fix: "Cool the drive (air, a heat sink) or let it rest, and measure again.",
    accept: "Accept it if the drive will be as warm in use: then this is its sustained speed.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_thermal),
    #[cfg(test)]
    fires: Some(|| heated(NVME, 83_850)),
    #[cfg(test)]
    blind: || Fixture::honest().record(),
};

fn check_thermal(case: &Case) -> Known<Answer> {
    let (hottest, completeness) = find_hottest(case);
    let Some(Sensor { name, reading, limit, run, at_s }) = hottest else {
        // A passed-through drive has a sensor. A simulated drive has none.
        if is_virtual(case) {
            return Ok(Answer::DoesNotApply);
        }
        return completeness.and(not_checked("no drive reports both its temperature and its limit"));
    };
    let numbers = evidence([
        ("degrees", reading as f64 / 1e3),
        ("degrees_max", limit as f64 / 1e3),
        ("run", f64::from(run)),
        ("at_s", at_s),
    ]);
    if limit.saturating_sub(reading) > NEAR_MILLIDEGREES {
        completeness?;
        case.need_resolved_stack()?;
        let (with_sensor, without): (Vec<&Layer>, Vec<&Layer>) =
            lowest_layers(case).into_iter().partition(|drive| drive.device.contains_key("hwmon"));
        // Old sessions do not record which drive a sensor belongs to.
        if with_sensor.is_empty() && without.len() > 1 {
            return not_checked("the session does not record which drive each sensor belongs to");
        }
        let silent = without.first().filter(|_| !with_sensor.is_empty() && !is_virtual(case));
        if let Some(drive) = silent {
            return Err(format!("{} reports no temperature", drive.name));
        }
        return holds(
            "At the start and stop of each run, every drive with a sensor was below its limit.",
            numbers,
        );
    }
    finding!(
        Severity::Biases,
        numbers,
        "The drive's sensor {name} reached {:.0} degrees Celsius, and its limit is {:.0}: at or near its \
         limit, a drive may throttle.",
        reading as f64 / 1e3,
        limit as f64 / 1e3
    )
}

/// Returns each known layer that has no layer below it, once, even if its counters are invalid.
fn lowest_layers<'a>(case: &Case<'a>) -> Vec<&'a Layer> {
    case.layers(|layer| layer.below.is_empty())
}

/// The sensor closest to its limit.
struct Sensor {
    /// Directory and driver, such as `hwmon1 (nvme)`.
    name: String,
    /// Reading and limit, in thousandths of a degree.
    reading: i64,
    limit: i64,
    /// Index of the run and second of its window at which the sensor was read. Sensors are only
    /// read at the start and stop.
    run: u32,
    at_s: f64,
}

/// Returns the sensor closest to its limit, or `None` if no sensor reports both a temperature and a limit. The second value
/// is `Err` with the reason if the temperature or the limit of any drive is unknown.
fn find_hottest(case: &Case) -> (Option<Sensor>, Known<()>) {
    let mut hottest: Option<Sensor> = None;
    let mut completeness = case.need_run();
    let samples = case.runs.iter().flat_map(|r| [(r, Moment::Start), (r, Moment::Stop)]);
    for (ran, moment) in samples {
        let text = match ran.snapshot(moment).and_then(|snapshot| snapshot.text(TEMPERATURES)) {
            Ok(text) => text,
            Err(why) => {
                completeness = completeness.and(Err(why));
                continue;
            }
        };
        let sensors = sensors_below(case, text);
        let folder = |drive: &Layer| Some(drive.device.get("hwmon")?.rsplit('/').next()?.to_owned());
        let is_silent = |drive: &&Layer| folder(drive).is_some_and(|name| !sensors.contains_key(&name));
        if let Some(drive) = lowest_layers(case).into_iter().find(is_silent) {
            completeness = completeness.and(Err(format!("{} reports no temperature", drive.name)));
        }
        for (place, sensor) in sensors {
            let (Some(reading), Some(limit)) = (sensor.now, sensor.limit.filter(|m| *m > 0)) else {
                let missing = if sensor.now.is_none() { "temperature" } else { "limit" };
                completeness =
                    completeness.and(Err(format!("the drive's sensor {place} reports no {missing}")));
                continue;
            };
            let headroom = |h: &Sensor| h.limit.saturating_sub(h.reading);
            if hottest.as_ref().is_none_or(|h| limit.saturating_sub(reading) < headroom(h)) {
                let kind = sensor.name.map_or_else(String::new, |n| format!(" ({n})"));
                let window_s = ran.stream.window_ns as f64 / 1e9;
                let at_s = if moment == Moment::Start { 0.0 } else { window_s };
                let name = format!("{place}{kind}");
                hottest = Some(Sensor { name, reading, limit, run: ran.run.start.repeat, at_s });
            }
        }
    }
    (hottest, completeness)
}

/// At this share of the link's bandwidth or above, the link limits the rate. Protocol and queueing take the rest.
const LIMITS_RATE_FROM: Share = Share(0.5);
pub(super) const LINK_DEGRADED: Check = Check {
    id: CheckId::D16,
    name: "LINK_DEGRADED",
    belief: "the link to the drive runs at full speed",
    reads: "`current_link_speed`, `current_link_width`, `max_link_speed` and `max_link_width` of the drive's \
            PCI function, or `sata_spd`, `sata_spd_limit` and `hw_sata_spd_limit` of its SATA link.",
    formula: formula!(
        "Fires if the current speed or width is below the largest one. Biased if the measured rate is at \
         least {LIMITS_RATE_FROM} of what the link carries now (speed times lanes times the part of the bits \
         that are data: 8 of 10 up to 5 GT/s and on SATA, 128 of 130 at higher speeds), since then the link \
         may limit the number; otherwise a note. A virtual disk has no link."
    ),
    provoke: "Put a drive of four lanes into a slot of two, or boot with `libata.force=1.5Gbps`, and run \
              `fathom run --rw read --bs 1m --depth 8 DIR`.",
    fix: "Reseat the drive, use another slot, cable or riser, and check for a limit in the firmware (`lspci \
          -vv`, LnkCap and LnkSta).",
    accept: "Accept it if the drive will stay in that slot, or cannot use the full speed of the port.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_link_degraded),
    #[cfg(test)]
    fires: Some(|| linked(NVME_X2)),
    #[cfg(test)]
    blind: || Fixture::honest().record(),
};

/// The link of a drive.
struct LinkState {
    /// Name of the drive.
    drive: String,
    /// Bytes per second that the link carries now.
    bytes_per_s: f64,
    /// How the link is slower than both ends support; `None` if it runs at full speed.
    degradation: Option<String>,
}

fn check_link_degraded(case: &Case) -> Known<Answer> {
    let leaves = lowest_layers(case);
    if leaves.is_empty() {
        return Err("no block device below the target is known".into());
    }
    let state_of_link = |drive: &Layer| -> Known<LinkState> {
        let Link { bytes_per_s, below, .. } = read_link(drive)?;
        Ok(LinkState { drive: drive.name.clone(), bytes_per_s, degradation: below? })
    };
    let (links, completeness) = split_known(Ok(leaves.iter().map(|drive| state_of_link(drive)).collect()));
    let slowest = links.iter().map(|link| link.bytes_per_s).min_by(f64::total_cmp);
    let degraded =
        links.into_iter().filter_map(|link| Some((link.degradation?, link.drive, link.bytes_per_s)));
    // The slowest link limits the rate most.
    let Some((degradation, drive, bytes_per_s)) = degraded.min_by(|a, b| a.2.total_cmp(&b.2)) else {
        // A passed-through drive has a link. A simulated drive has none.
        if completeness.is_err() && is_virtual(case) {
            return Ok(Answer::DoesNotApply);
        }
        completeness?;
        case.need_resolved_stack()?;
        let numbers = evidence([("link_bytes_per_s", slowest.unwrap_or(f64::NAN))]);
        return holds("The links to the drives run at full speed and width.", numbers);
    };
    let moved: f64 = Kind::MOVING.iter().map(|k| case.in_windows(*k).bytes as f64).sum();
    // The bytes are divided evenly among several drives, since nothing shows the real division.
    let rate = moved / (case.window_ns() / 1e9) / leaves.len() as f64;
    let part = rate / bytes_per_s;
    let limits_rate = part >= LIMITS_RATE_FROM;
    let effect = if limits_rate {
        format!("; this rate is {} of what the link carries", show_share(part))
    } else if moved > 0.0 {
        "; this probably did not limit the rate".to_owned()
    } else {
        String::new()
    };
    finding!(
        if limits_rate { Severity::Biases } else { Severity::Note },
        evidence([("link_bytes_per_s", bytes_per_s), ("share_of_link", part)]),
        "The link to {drive} runs {degradation}{effect}."
    )
}

/// Minimum ratio of the longest operation of the first interval to the median later operation, and to the longest later operation.
const WAKE_UP_FACTOR: u64 = 3;
/// Shortest wake-up. Shorter delays look like the start of fathom's threads.
const SHORTEST_WAKE_UP_NS: u64 = 1_000_000;
/// Minimum number of runs, which must all start with a slow operation. In a single run a slow first operation may be
/// chance, because some interval has to contain the longest operation.
const FEWEST_RUNS: usize = 3;
/// A first operation of this length or longer proves a wake-up even with fewer than [`FEWEST_RUNS`] runs: a disk that
/// spins up. Nothing else delays only the first operation by so much.
const SHORTEST_SPIN_UP_NS: u64 = 1_000_000_000;
/// Minimum number of later intervals to compare the first one with.
const FEWEST_INTERVALS: usize = 5;
/// At this share of the measured time or above, waking up the drive biases the mean.
const WAKE_UP_BIASES_FROM: Share = Share(0.05);
/// File with the longest time in us that the kernel lets the drive take to wake up.
const TOLERANCE: &str = "pm_qos_latency_tolerance_us";

pub(super) const POWER_STATE: Check = Check {
    id: CheckId::D17,
    name: "POWER_STATE",
    belief: "the drive was awake",
    reads: "The longest latency of the first interval of each run's window and of all later intervals, the \
            medians of the intervals, and `power/pm_qos_latency_tolerance_us` of an NVMe drive, if \
            available.",
    formula: formula!(
        "Looks for runs that began with a wake-up. In such a run, the longest operation of the first \
         interval took at least {least}, at least {WAKE_UP_FACTOR} times the median, and at least \
         {WAKE_UP_FACTOR} times the longest operation of all later intervals.\n\
         - Biased if every run began with a wake-up, and the wake-ups took at least {WAKE_UP_BIASES_FROM} \
         of the windows.\n\
         - A note if every run began with a wake-up, and they took less.\n\
         - Holds with fewer than {FEWEST_RUNS} runs, unless a wake-up took at least {spin_up}, like that \
         of a disk that spins up.\n\
         - Not checked if a run has fewer than {FEWEST_INTERVALS} later intervals.",
        least = Ns(SHORTEST_WAKE_UP_NS as f64),
        spin_up = Ns(SHORTEST_SPIN_UP_NS as f64)
    ),
    provoke: "`hdparm -y /dev/sdX; fathom run --rw randread --warmup 0 --runs 1 /dev/sdX` on a hard disk, \
              which then must spin up.",
    fix: "Use a warm-up (`--warmup 1s`), or disable power saving (`nvme_core.default_ps_max_latency_us=0`, \
          `hdparm -B 255`, link power `max_performance`).",
    accept: "Accept it if the drive may sleep in production too.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_power_state),
    #[cfg(test)]
    fires: Some(|| woken(&Fixture::honest(), 80_000_000, 5)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.runs.iter_mut().for_each(|r| r.intervals.clear());
        record
    },
};

/// How a run began: the longest operation of its first interval, the longest operation of the later intervals, and the median of the later
/// intervals' medians, in ns.
struct RunBeginning {
    first_max: u64,
    later_max: u64,
    later_median: u64,
}

impl RunBeginning {
    fn has_woken(&self) -> bool {
        let scaled = |ns: u64| ns.saturating_mul(WAKE_UP_FACTOR);
        self.first_max >= SHORTEST_WAKE_UP_NS
            && self.first_max >= scaled(self.later_median)
            && self.first_max >= scaled(self.later_max)
    }
}

fn check_power_state(case: &Case) -> Known<Answer> {
    let beginnings: Vec<RunBeginning> =
        case.runs.iter().map(|r| read_run_beginning(case, r)).collect::<Known<_>>()?;
    let longest = beginnings.iter().map(|b| b.first_max).max().ok_or_else(no_run)?;
    let woke = beginnings.iter().filter(|b| b.has_woken()).count();
    let share_of_windows = share(beginnings.iter().map(|b| b.first_max as f64).sum(), case.window_ns());
    let mut layers = case.places().flat_map(|p| &p.layers);
    let tolerance_us = layers.find_map(|l| l.device_number(TOLERANCE).ok());
    let mut numbers = evidence([
        ("runs_that_woke", woke as f64),
        ("longest_ns", longest as f64),
        (TOLERANCE, tolerance_us.map_or(f64::NAN, |us| us as f64)),
    ]);
    let has_enough_runs = beginnings.len() >= FEWEST_RUNS || longest >= SHORTEST_SPIN_UP_NS;
    if woke < beginnings.len() || !has_enough_runs {
        let sentence = if woke == 0 {
            "No run began with an operation slow enough to be a wake-up."
        } else {
            "Too few runs began with a slow operation to show that the drive had to wake up."
        };
        return holds(sentence, numbers);
    }
    numbers.insert("share_of_windows".into(), share_of_windows);
    let median = beginnings.iter().map(|b| b.later_median).max().unwrap_or(0);
    finding!(
        if share_of_windows >= WAKE_UP_BIASES_FROM { Severity::Biases } else { Severity::Note },
        numbers,
        "{} began with a slow operation (up to {}; the median of later operations is {}): the drive probably \
         had to wake up. This took {} of the measured time.",
        if woke == 1 { "The run".to_owned() } else { format!("Each of {} runs", show_count(woke as f64)) },
        show_ns(longest as f64),
        show_ns(median as f64),
        show_share(share_of_windows)
    )
}

fn read_run_beginning(case: &Case, ran: &CaseRun) -> Known<RunBeginning> {
    let mut rows: Vec<&Interval> =
        ran.run.intervals.iter().filter(|i| i.stream == case.stream_index).collect();
    rows.sort_by_key(|i| i.start_ns);
    let slowest_cell = |row: &&Interval| {
        Kind::MOVING.iter().filter_map(|kind| row.cells.get(kind)).max_by_key(|cell| cell.max_ns).copied()
    };
    let cells: Vec<Cell> = rows.iter().filter_map(slowest_cell).collect();
    let Some((first, later)) = cells.split_first().filter(|(_, later)| later.len() >= FEWEST_INTERVALS)
    else {
        return Err("the runs are too short to compare their first operations with later ones".into());
    };
    let max_ns = |cell: &Cell| cell.max_ns;
    let mut medians: Vec<u64> = later.iter().map(|cell| cell.p50_ns).collect();
    medians.sort_unstable();
    Ok(RunBeginning {
        first_max: max_ns(first),
        later_max: later.iter().map(max_ns).max().unwrap_or(0),
        later_median: medians.get(medians.len() / 2).copied().unwrap_or(0),
    })
}

/// Names of the work that an array can be busy with, in `mdstat` and `md/sync_action`.
const BUSY: &[&str] = &["resync", "recovery", "recover", "check", "reshape", "repair"];
/// bcache states in which reads and writes bypass the configured cache.
const BROKEN_CACHE: &[&str] = &["no cache", "inconsistent"];

pub(super) const RAID_STATE: Check = Check {
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
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_raid_state),
    #[cfg(test)]
    fires: Some(|| on_array(DEGRADED)),
    #[cfg(test)]
    blind: || on_array_with(Err("Permission denied (os error 13)"), &[]),
};

fn check_raid_state(case: &Case) -> Known<Answer> {
    let layers: Vec<&Layer> = case.places().flat_map(|p| &p.layers).collect();
    let arrays: Vec<&Layer> = layers.iter().copied().filter(|l| l.kind == LayerKind::Raid).collect();
    let caches: Vec<(&Layer, &str)> =
        layers.iter().filter_map(|l| Some((*l, l.device.get("bcache/state")?.trim()))).collect();
    if arrays.is_empty() && caches.is_empty() {
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
        let sentence =
            "No array below the target lacked members or was busy, and no bcache had lost its cache.";
        return why_not_read.map_or(holds(sentence, numbers), Err);
    }
    let problems = all_problems.join("; ");
    finding!(Severity::Biases, numbers, "An array or cache below the target is degraded or busy: {problems}.")
}

/// Describes what is wrong with an array, from its own files before the runs and from `/proc/mdstat` before and after each
/// run.
fn problems_of_array(case: &Case, array: &Layer) -> Known<Vec<String>> {
    let mut out = Vec::new();
    if let Some(missing) = array.device_number("md/degraded").ok().filter(|missing| *missing > 0) {
        out.push(format!("{} lacks {missing} of its members", array.name));
    }
    if let Some(action) = array.device.get("md/sync_action").map(|a| a.trim()).filter(|a| BUSY.contains(a)) {
        out.push(format!("{} is busy with {action}", array.name));
    }
    let mut completeness = case.need_run();
    for snapshot in case.runs.iter().flat_map(|r| [r.snapshot(Moment::Start), r.snapshot(Moment::Stop)]) {
        match snapshot.and_then(|s| s.text(RAID)).and_then(|text| problems_in_mdstat(text, &array.name)) {
            Ok(problems) => out.extend(problems),
            Err(why) => completeness = completeness.and(Err(why)),
        }
    }
    if out.is_empty() { completeness.map(|()| out) } else { Ok(out) }
}

/// Describes what is wrong with an array according to the text of `/proc/mdstat`: a line that begins with the name of the
/// array, followed by indented lines.
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

/// The sensors of a Samsung 970 EVO Plus, as the driver `nvme` shows them, and of a CPU, which is no drive.
#[cfg(test)]
const NVME: &str = "/sys/class/hwmon/hwmon1/name: coretemp
/sys/class/hwmon/hwmon1/temp1_crit: 100000
/sys/class/hwmon/hwmon1/temp1_input: 99000
/sys/class/hwmon/hwmon1/temp1_max: 100000
/sys/class/hwmon/hwmon3/name: nvme
/sys/class/hwmon/hwmon3/temp1_alarm: 0
/sys/class/hwmon/hwmon3/temp1_crit: 84850
/sys/class/hwmon/hwmon3/temp1_input: NOW
/sys/class/hwmon/hwmon3/temp1_max: 84850
/sys/class/hwmon/hwmon3/temp1_min: -273150
";
/// The sensor of a SATA drive as `drivetemp` shows it, without a file `name`.
#[cfg(test)]
const SATA: &str = "/sys/class/hwmon/hwmon0/temp1_crit: 70000
/sys/class/hwmon/hwmon0/temp1_input: NOW
/sys/class/hwmon/hwmon0/temp1_lcrit: 0
/sys/class/hwmon/hwmon0/temp1_max: 60000
";

/// A record in which the sensors of `text` show `millidegrees` at the stop of the last run, and 41.85 degrees before.
#[cfg(test)]
fn heated(text: &str, millidegrees: i64) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(TEMPERATURES.into(), Ok(text.replace("NOW", "41850")));
    }
    let last = record.runs.last_mut().and_then(|r| r.evidence.last_mut()).unwrap();
    last.files.insert(TEMPERATURES.into(), Ok(text.replace("NOW", &millidegrees.to_string())));
    record
}

#[test]
fn a_drive_near_its_limit_biases() {
    assert_eq!(THERMAL.severity(&heated(NVME, 82_850)), Some(Severity::Biases));
    let Ok(Answer::Finding(found)) = THERMAL.answer(&heated(NVME, 82_850)) else {
        panic!("nothing was found")
    };
    assert_eq!((found.evidence["run"], found.evidence["at_s"]), (4.0, 1.0), "the end of the last run");
    assert!(matches!(THERMAL.answer(&heated(NVME, 81_850)), Ok(Answer::Holds(..))));
    assert_eq!(THERMAL.severity(&heated(SATA, 61_000)), Some(Severity::Biases));
    assert!(matches!(THERMAL.answer(&heated(SATA, 55_000)), Ok(Answer::Holds(..))));
}

#[test]
fn a_hot_drive_of_another_target_does_not_count() {
    let other = "/sys/class/hwmon/hwmon7/name: nvme\n/sys/class/hwmon/hwmon7/temp1_input: 30000\n\
                 /sys/class/hwmon/hwmon7/temp1_max: 84850\n";
    let below = |folder: &str| {
        let mut record = heated(&format!("{NVME}{other}"), 83_850);
        let mut place = record.header.hosts[0].places[0].clone();
        place.path = "/other".into();
        place.layers[0].device.insert("hwmon".into(), "/sys/class/hwmon/hwmon3".into());
        let own = &mut record.header.hosts[0].places[0].layers[0].device;
        own.insert("hwmon".into(), format!("/sys/class/hwmon/{folder}"));
        record.header.hosts[0].places.push(place);
        record
    };
    assert!(matches!(THERMAL.answer(&below("hwmon7")), Ok(Answer::Holds(..))));
    assert_eq!(THERMAL.severity(&below("hwmon3")), Some(Severity::Biases));
    let mut without = below("hwmon7");
    without.header.hosts[0].places[0].layers[0].device.remove("hwmon");
    assert!(THERMAL.answer(&without).is_err());
}

#[test]
fn a_drive_without_a_sensor_hides_no_hot_drive_and_does_not_pass() {
    let next_to_unknown = |millidegrees| {
        let mut record = heated(NVME, millidegrees);
        let place = &mut record.header.hosts[0].places[0];
        let mut unknown = place.layers[0].clone();
        (unknown.name, unknown.stat_file) = ("vdb".into(), "/sys/block/vdb/stat".into());
        place.layers[0].device.insert("hwmon".into(), "/sys/class/hwmon/hwmon3".into());
        place.layers.push(unknown);
        THERMAL.answer(&record)
    };
    assert!(matches!(next_to_unknown(83_850), Ok(Answer::Finding(_))));
    assert!(next_to_unknown(40_000).is_err_and(|why| why.starts_with("vdb reports no temperature")));
    // A sensor that was hot at the start of a run and not read at its stop.
    let mut unread = heated(NVME, 41_850);
    let evidence = &mut unread.runs[0].evidence;
    evidence[0].files.insert(TEMPERATURES.into(), Ok(NVME.replace("NOW", "84000")));
    evidence.last_mut().unwrap().files.remove(TEMPERATURES);
    assert_eq!(THERMAL.severity(&unread), Some(Severity::Biases));
}

#[test]
fn every_drive_needs_a_temperature_and_a_limit() {
    let with_second = |sensor: &str, records_sensors: bool, millidegrees| {
        let mut record = heated(&format!("{NVME}{sensor}"), millidegrees);
        let place = &mut record.header.hosts[0].places[0];
        let mut second = place.layers[0].clone();
        (second.name, second.stat_file) = ("vdb".into(), "/sys/block/vdb/stat".into());
        if records_sensors {
            place.layers[0].device.insert("hwmon".into(), "/sys/class/hwmon/hwmon3".into());
            second.device.insert("hwmon".into(), "/sys/class/hwmon/hwmon7".into());
        }
        place.layers.push(second);
        THERMAL.answer(&record)
    };
    let (input, max) =
        ("/sys/class/hwmon/hwmon7/temp1_input: 30000\n", "/sys/class/hwmon/hwmon7/temp1_max: 84850\n");
    let name = "/sys/class/hwmon/hwmon7/name: nvme\n";
    let both = format!("{name}{input}{max}");
    assert!(matches!(with_second(&both, true, 40_000), Ok(Answer::Holds(..))));
    for (sensor, missing) in [
        (format!("{name}{input}"), "hwmon7 reports no limit"),
        (format!("{name}{max}"), "hwmon7 reports no temperature"),
        (String::new(), "vdb reports no temperature"),
    ] {
        let answer = with_second(&sensor, true, 40_000);
        assert!(answer.as_ref().is_err_and(|why| why.contains(missing)), "{missing}: {answer:?}");
        assert!(matches!(with_second(&sensor, true, 83_850), Ok(Answer::Finding(_))), "{missing}");
    }
    // A session that does not record which drive a sensor belongs to.
    assert!(with_second(&both, false, 40_000).is_err());
}

#[test]
fn an_unknown_part_of_the_stack_may_hold_a_hot_drive_or_a_slow_link() {
    let partly_unknown = |mut record: model::record::Record| {
        record.header.hosts[0].places[0].unresolved_reason = Some("the disks below md0 are unknown".into());
        record
    };
    for (check, honest, found) in [
        (&THERMAL, heated(NVME, 40_000), heated(NVME, 83_850)),
        (&LINK_DEGRADED, linked(NVME_X4), linked(NVME_X2)),
    ] {
        let answer = check.answer(&partly_unknown(honest));
        assert!(answer.as_ref().is_err_and(|why| why.contains("below md0")), "{answer:?}");
        assert_eq!(check.severity(&partly_unknown(found.clone())), check.severity(&found));
    }
}

#[test]
fn missing_sensors_are_not_checked_and_virtual_disks_do_not_apply() {
    assert!(THERMAL.answer(&Fixture::honest().record()).is_err());
    assert!(THERMAL.answer(&heated("/sys/class/hwmon/hwmon0/temp1_input: NOW\n", 99_000)).is_err());
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(THERMAL.answer(&guest.record()), Ok(Answer::DoesNotApply));
    let mut through = heated(NVME, 84_000);
    through.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(THERMAL.severity(&through), Some(Severity::Biases), "a passed-through drive");
}

/// A drive for four lanes of PCI Express 3.0 in a slot with two, as `/sys/block/nvme0n1/device/device/` shows it.
#[cfg(test)]
const NVME_X2: &[(&str, &str)] = &[
    ("current_link_speed", "8.0 GT/s PCIe\n"),
    ("current_link_width", "2\n"),
    ("max_link_speed", "8.0 GT/s PCIe\n"),
    ("max_link_width", "4\n"),
];
#[cfg(test)]
const NVME_X4: &[(&str, &str)] = &[
    ("current_link_speed", "16.0 GT/s PCIe\n"),
    ("current_link_width", "4\n"),
    ("max_link_speed", "16.0 GT/s PCIe\n"),
    ("max_link_width", "4\n"),
];

/// Reads of 64 KiB at 10,000 per second, 655 MB/s, over a link described by `files`.
#[cfg(test)]
fn linked(files: &[(&str, &str)]) -> model::record::Record {
    let mut record = Fixture { block_bytes: 65_536, ..Fixture::honest() }.record();
    let device = &mut record.header.hosts[0].places[0].layers[0].device;
    device.extend(files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    record
}

#[test]
fn a_narrow_link_biases_only_if_it_limits_the_rate() {
    // Two lanes carry 1.97 GB/s, and 655 MB/s are a third of that. One lane of PCI Express 2.0 carries 500 MB/s.
    assert_eq!(LINK_DEGRADED.severity(&linked(NVME_X2)), Some(Severity::Note));
    let narrow =
        [NVME_X2[2], NVME_X2[3], ("current_link_speed", "5.0 GT/s PCIe"), ("current_link_width", "1")];
    let Ok(Answer::Finding(f)) = LINK_DEGRADED.answer(&linked(&narrow)) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biases);
    assert!(f.sentence.contains("at 5 GT/s of 8 and on 1 of 4 lanes"), "{}", f.sentence);
    assert!(matches!(LINK_DEGRADED.answer(&linked(NVME_X4)), Ok(Answer::Holds(..))));
}

#[test]
fn a_drive_below_several_targets_carries_the_whole_rate() {
    let mut record = linked(&[("sata_spd", "6.0 Gbps\n"), ("sata_spd_limit", "12.0 Gbps\n")]);
    let one = LINK_DEGRADED.answer(&record);
    assert!(matches!(&one, Ok(Answer::Finding(f)) if f.severity == Severity::Biases), "{one:?}");
    let plan = &mut record.header.plan;
    plan.targets = vec![plan.targets[0].clone(); 4];
    plan.jobs[0].phases[0].streams[0].targets = vec![0, 1, 2, 3];
    let place = record.header.hosts[0].places[0].clone();
    record.header.hosts[0].places = vec![place; 4];
    assert_eq!(LINK_DEGRADED.answer(&record), one);
}

#[test]
fn a_slow_sata_link_biases() {
    let slow = [("sata_spd", "3.0 Gbps\n"), ("sata_spd_limit", "6.0 Gbps\n")];
    assert_eq!(LINK_DEGRADED.severity(&linked(&slow)), Some(Severity::Biases));
    for limit in ["3.0 Gbps\n", "<unknown>\n"] {
        let full = linked(&[("sata_spd", "3.0 Gbps\n"), ("sata_spd_limit", limit)]);
        assert!(matches!(LINK_DEGRADED.answer(&full), Ok(Answer::Holds(..))), "{limit}");
    }
}

#[test]
fn an_unknown_link_is_not_checked_and_virtual_disks_do_not_apply() {
    let unknown = [NVME_X2[0], NVME_X2[1], NVME_X2[2], ("max_link_width", "Unknown")];
    assert!(LINK_DEGRADED.answer(&linked(&unknown)).is_err());
    let guest = Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() };
    assert_eq!(LINK_DEGRADED.answer(&guest.record()), Ok(Answer::DoesNotApply));
    let next_to_unknown = |files| {
        let mut record = linked(files);
        let place = &mut record.header.hosts[0].places[0];
        let mut unknown = place.layers[0].clone();
        (unknown.stat_file, unknown.device) = ("/sys/block/vdb/stat".into(), BTreeMap::new());
        place.layers.insert(0, unknown);
        LINK_DEGRADED.answer(&record)
    };
    assert!(matches!(next_to_unknown(NVME_X2), Ok(Answer::Finding(_))), "{:?}", next_to_unknown(NVME_X2));
    assert!(next_to_unknown(NVME_X4).is_err());
}

#[test]
fn the_slowest_of_two_slow_links_is_named() {
    let mut record = linked(&[("sata_spd", "3.0 Gbps\n"), ("sata_spd_limit", "6.0 Gbps\n")]);
    let mut faster = linked(NVME_X2).header.hosts[0].places[0].layers[0].clone();
    (faster.name, faster.stat_file) = ("vdb".into(), "/sys/block/vdb/stat".into());
    record.header.hosts[0].places[0].layers.insert(0, faster);
    let Ok(Answer::Finding(found)) = LINK_DEGRADED.answer(&record) else { panic!("silent") };
    assert!(found.sentence.starts_with("The link to vda runs at 3 Gbit/s of 6;"), "{}", found.sentence);
}

/// A record whose first `runs` runs start with an operation of `ns`.
#[cfg(test)]
fn woken(fixture: &Fixture, ns: u64, runs: usize) -> model::record::Record {
    let mut record = fixture.record();
    for run in record.runs.iter_mut().take(runs) {
        run.intervals[0].cells.values_mut().for_each(|c| c.max_ns = ns);
    }
    record
}

#[test]
fn a_wake_up_in_every_run_is_found_and_a_long_one_biases() {
    let honest = Fixture::honest();
    assert_eq!(
        POWER_STATE.severity(&woken(&honest, 80_000_000, 5)),
        Some(Severity::Biases),
        "8 % of each second"
    );
    assert_eq!(POWER_STATE.severity(&woken(&honest, 20_000_000, 5)), Some(Severity::Note), "2 %");
    let Ok(Answer::Holds(sentence, _)) = POWER_STATE.answer(&woken(&honest, 80_000_000, 4)) else {
        panic!("four of five runs suffice")
    };
    assert!(sentence.starts_with("Too few runs began with a slow operation"), "{sentence}");
    // The median of the fixture and the longest later operation are 3.15 ms.
    assert!(matches!(POWER_STATE.answer(&woken(&honest, 9_000_000, 5)), Ok(Answer::Holds(..))));
}

#[test]
fn a_single_run_suffices_only_for_a_disk_that_spins_up() {
    let one = Fixture { runs: 1, ..Fixture::honest() };
    assert_eq!(POWER_STATE.severity(&woken(&one, 900_000_000, 1)), None);
    assert_eq!(POWER_STATE.severity(&woken(&one, 1_000_000_000, 1)), Some(Severity::Biases));
}

#[test]
fn few_intervals_are_not_checked() {
    let mut record = woken(&Fixture::honest(), 80_000_000, 5);
    record.runs.iter_mut().for_each(|r| r.intervals.truncate(5));
    assert!(POWER_STATE.answer(&record).is_err());
}

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
    let Ok(Answer::Finding(f)) = RAID_STATE.answer(&on_array(DEGRADED)) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biases);
    assert!(f.sentence.contains("md0 lacks 1 of its members"), "{}", f.sentence);
    let Ok(Answer::Finding(f)) = RAID_STATE.answer(&on_array(CHECKING)) else { panic!("silent") };
    assert!(f.sentence.ends_with(": md0 is busy with check."), "{}", f.sentence);
    assert!(matches!(RAID_STATE.answer(&on_array(COMPLETE)), Ok(Answer::Holds(..))), "md1 is not below");
    assert_eq!(RAID_STATE.answer(&Fixture::honest().record()), Ok(Answer::DoesNotApply));
}

#[test]
fn the_state_before_the_runs_suffices_without_a_summary() {
    let busy = on_array_with(Err("gone"), &[("md/degraded", "1\n"), ("md/sync_action", "recover\n")]);
    let Ok(Answer::Finding(f)) = RAID_STATE.answer(&busy) else { panic!("silent") };
    assert!(f.sentence.contains("busy with recover; md0 lacks 1"), "{}", f.sentence);
    assert!(RAID_STATE.answer(&on_array_with(Err("gone"), &[("md/degraded", "0\n")])).is_err());
    assert!(RAID_STATE.answer(&on_array("Personalities :\nunused devices: <none>\n")).is_err());
    let mut unread = on_array(COMPLETE);
    unread.runs[1].evidence.last_mut().unwrap().files.remove(RAID);
    assert!(RAID_STATE.answer(&unread).is_err(), "a member may have failed in the second run");
}

#[test]
fn a_lost_cache_biases() {
    let with = |state: &str| {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places[0].layers[0].device.insert("bcache/state".into(), state.into());
        record
    };
    assert_eq!(RAID_STATE.severity(&with("no cache\n")), Some(Severity::Biases));
    assert!(matches!(RAID_STATE.answer(&with("dirty\n")), Ok(Answer::Holds(..))));
}
