//! Reads numbers from the kernel's text files: CPU times, pressure, temperatures of drives, links of devices, and the host's load in a run.
//!
//! Pressure (`/proc/pressure/*`) is independent evidence of waiting: the time in which tasks wait in the kernel, for I/O, a CPU or memory.
//! It does not include the time in which tasks wait for a program in user space.

use crate::case::{Case, CaseRun, share};
use model::Known;
use model::evidence::{CPU_STAT, Moment, SECTOR_BYTES, Snapshot};
use model::figures::ObservedCpu;
use model::machine::Layer;
use model::report::HostFigures;
use std::collections::BTreeMap;

/// Number of fields in the first line of `/proc/stat` that add up to all time: user, nice, system, idle, iowait, irq,
/// softirq, steal. Later fields are already included in user and nice.
const CPU_TIME_FIELDS: usize = 8;

/// Indices of the fields for idle time, and for idle time with I/O in flight.
const IDLE: usize = 3;
const IOWAIT: usize = 4;

/// Returns the number after a key, in text with one key per line (`/proc/vmstat`, `cpu.stat`).
///
/// # Errors
/// That the key is missing, or has no number.
pub(crate) fn number_of_key(text: &str, key: &str) -> Known<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let value = lines.find_map(|mut parts| (parts.next() == Some(key)).then(|| parts.next()));
    let value = value.flatten().ok_or_else(|| format!("the kernel shows no {key}"))?;
    value.parse().map_err(|_| format!("{key} is not a number: '{value}'"))
}

/// Returns the total of a line (`some`, `full`) of a pressure file, in us.
///
/// # Errors
/// That the line is missing, or has no number.
pub(crate) fn pressure_us(text: &str, line: &str) -> Known<u64> {
    let values = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '));
    let total = values.and_then(|w| w.split_ascii_whitespace().find_map(|w| w.strip_prefix("total=")));
    total.and_then(|t| t.parse().ok()).ok_or_else(|| format!("a pressure file has no total of '{line}'"))
}

/// Returns the paths and values of text that has a line `path: value` for each file.
pub(crate) fn path_values(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|l| l.split_once(": ")).map(|(path, value)| (path.trim(), value.trim()))
}

/// Returns two sums over all CPUs since the machine started: the stolen ticks, and all ticks.
///
/// # Errors
/// That the kernel does not count them.
pub(crate) fn stolen_ticks(snapshot: &Snapshot) -> Known<[u64; 2]> {
    let fields = cpu_ticks(snapshot.text("/proc/stat")?)?;
    let steal = fields.get(CPU_TIME_FIELDS - 1).ok_or("/proc/stat has no stolen time")?;
    Ok([*steal, fields.iter().fold(0, |sum, n| sum.saturating_add(*n))])
}

/// Returns two sums over all CPUs since the machine started: the ticks in which a CPU was neither idle nor waiting for I/O, and all ticks.
///
/// # Errors
/// That the kernel does not count them.
pub(crate) fn busy_ticks(snapshot: &Snapshot) -> Known<[u64; 2]> {
    let fields = cpu_ticks(snapshot.text("/proc/stat")?)?;
    let all = fields.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let [idle, waiting] = [IDLE, IOWAIT].map(|at| fields.get(at).copied());
    let (idle, waiting) = idle.zip(waiting).ok_or("/proc/stat has no idle time")?;
    Ok([all.saturating_sub(idle.saturating_add(waiting)), all])
}

/// Returns the ticks of all CPUs together since the machine started, by field: user, nice, system and so on.
pub(crate) fn cpu_ticks(text: &str) -> Known<Vec<u64>> {
    let line = text.lines().find_map(|l| l.strip_prefix("cpu "));
    let fields = line.ok_or("/proc/stat has no line of all CPUs")?.split_ascii_whitespace();
    Ok(fields.take(CPU_TIME_FIELDS).filter_map(|w| w.parse().ok()).collect())
}

/// Returns the time of each CPU since the machine started, in ticks; empty if the kernel does not count it.
pub(crate) fn each_cpu(snapshot: &Snapshot) -> Vec<ObservedCpu> {
    let text = snapshot.text("/proc/stat").unwrap_or_default();
    let cpu = |line: &str| {
        let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<u64> =
            rest.split_ascii_whitespace().take(CPU_TIME_FIELDS).map_while(|w| w.parse().ok()).collect();
        // User and nice include the time of guests. Stolen time belongs to no program of this machine.
        let [user, nice, system, idle, waiting, irq, softirq, ..] = ticks[..] else { return None };
        let sum = |all: &[u64]| all.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let (user, kernel, idle) = (sum(&[user, nice]), sum(&[system, irq, softirq]), sum(&[idle, waiting]));
        Some(ObservedCpu { cpu: number.parse().ok()?, user, kernel, idle })
    };
    text.lines().filter_map(cpu).collect()
}

/// The pauses that a CPU quota imposed on a cgroup.
pub(crate) struct QuotaPauses {
    /// Number of pauses.
    pub(crate) times: u64,
    /// Paused time of all threads together.
    pub(crate) ns: u64,
}

/// Returns the pauses that a CPU quota has imposed on fathom's cgroup since the cgroup was created.
///
/// # Errors
/// That the kernel does not count them.
pub(crate) fn quota_pauses(snapshot: &Snapshot) -> Known<QuotaPauses> {
    let text = snapshot.text(CPU_STAT)?;
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|l| l.trim().rsplit_once(' '));
        // A line may start with the path of its file.
        lines.find(|(name, _)| name.split_ascii_whitespace().next_back() == Some(key))?.1.parse::<u64>().ok()
    };
    let missing = || format!("{CPU_STAT} counts no pauses");
    let ns = value("throttled_usec").map(|us| us.saturating_mul(1000)).or_else(|| value("throttled_time"));
    Ok(QuotaPauses { times: value("nr_throttled").ok_or_else(missing)?, ns: ns.ok_or_else(missing)? })
}

/// Returns the growth of a counter from the start to the stop of a run.
///
/// # Errors
/// Why the counter could not be read, or that it went backwards.
pub(crate) fn growth_in_run(ran: &CaseRun, file: &str, read: impl Fn(&str) -> Known<u64>) -> Known<u64> {
    let at = |moment| read(ran.snapshot(moment)?.text(file)?);
    let (before, after) = (at(Moment::Start)?, at(Moment::Stop)?);
    after.checked_sub(before).ok_or_else(|| format!("{file}: a counter went backwards"))
}

/// Index of the discarded sectors in a `stat` file.
const DISCARDED_SECTORS: usize = 13;

/// Returns the bytes discarded since a device was set up; `None` if the kernel does not count them (before 4.18).
///
/// # Errors
/// That the count is not a number.
pub(crate) fn discarded_bytes(stat: &str) -> Known<Option<u64>> {
    let field = stat.split_ascii_whitespace().nth(DISCARDED_SECTORS);
    let sectors = field.map(str::parse::<u64>).transpose();
    let sectors = sectors.map_err(|_| "a stat file has no number of discards")?;
    Ok(sectors.map(|n| n.saturating_mul(SECTOR_BYTES)))
}

const DRIVE_SENSOR_DRIVERS: &[&str] = &["nvme", "drivetemp"];

/// A temperature sensor of a drive, in thousandths of a degree Celsius.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sensor {
    /// Driver of the sensor, if the text has it.
    pub(crate) name: Option<String>,
    /// The temperature, if the text has it.
    pub(crate) now: Option<i64>,
    /// The limit that the drive itself gives, if the text has it.
    pub(crate) limit: Option<i64>,
}

/// Returns the sensors of the drives below a case's targets. The key of a sensor is its folder, such as `hwmon3`. If the session does not
/// record which drive a sensor belongs to, returns the sensors of all drives.
pub(crate) fn sensors_below(case: &Case, text: &str) -> BTreeMap<String, Sensor> {
    let folder = |layer: &Layer| Some(layer.device.get("hwmon")?.rsplit('/').next()?.to_owned());
    let mut layers = case.record.header.hosts.iter().flat_map(|host| &host.places).flat_map(|p| &p.layers);
    let mut sensors = sensors(text);
    if layers.any(|layer| layer.device.contains_key("hwmon")) {
        let below: Vec<String> = case.places().flat_map(|p| &p.layers).filter_map(folder).collect();
        sensors.retain(|place, _| below.contains(place));
    }
    sensors
}

/// Returns the sensors of all drives. The key of a sensor is its folder, such as `hwmon3`.
fn sensors(text: &str) -> BTreeMap<String, Sensor> {
    let mut out: BTreeMap<String, Sensor> = BTreeMap::new();
    for (path, value) in path_values(text) {
        let mut parts = path.rsplit('/');
        let (Some(file), Some(place)) = (parts.next(), parts.next()) else { continue };
        let sensor = out.entry(place.to_owned()).or_default();
        match file {
            "name" => sensor.name = Some(value.to_owned()),
            "temp1_input" => sensor.now = value.parse().ok(),
            "temp1_max" => sensor.limit = value.parse().ok(),
            _ => {}
        }
    }
    // Text without names contains only sensors of drives.
    out.retain(|_, s| s.name.as_deref().is_none_or(|n| DRIVE_SENSOR_DRIVERS.contains(&n)));
    out
}

/// Kernel file with the time in which tasks waited for block devices and network file systems.
pub(crate) const IO_PRESSURE_FILE: &str = "/proc/pressure/io";

/// Kernel file with the time in which tasks waited for a CPU.
pub(crate) const CPU_PRESSURE_FILE: &str = "/proc/pressure/cpu";

/// Kernel file with the time in which tasks waited for memory.
pub(crate) const MEMORY_PRESSURE_FILE: &str = "/proc/pressure/memory";

/// Returns the share of the runs' time in which at least one task of the machine waited, from a pressure file.
///
/// # Errors
/// Why that was not counted.
pub(crate) fn pressure_share(case: &Case, file: &str) -> Known<f64> {
    let (mut stalled_us, mut passed_ns) = (0.0, 0.0);
    for ran in case.runs.iter() {
        let (start, stop) = (ran.snapshot(Moment::Start)?, ran.snapshot(Moment::Stop)?);
        stalled_us += growth_in_run(ran, file, |text| pressure_us(text, "some"))? as f64;
        passed_ns += stop.at_ns.saturating_sub(start.at_ns) as f64;
    }
    if passed_ns > 0.0 {
        Ok(share(stalled_us * 1e3, passed_ns))
    } else {
        Err("no time passed in the runs".into())
    }
}

/// Share of a link's bits that carry data, with 10 bits per byte: SATA, and PCI Express up to 5 GT/s.
const PAYLOAD_OF_TEN_BITS: f64 = 0.8;

/// Share of a link's bits that carry data, with 130 bits per 128: PCI Express with lanes faster than 5 GT/s.
const PAYLOAD_OF_130_BITS: f64 = 128.0 / 130.0;

/// Highest rate per lane in GT/s at which ten bits carry a byte.
const TEN_BITS_MAX_GT_PER_S: f64 = 5.0;

/// Maximum number of lanes of a link. The kernel reports 255 if the width is unknown.
const MAX_LANES: f64 = 64.0;

/// The link of a drive at its current speed and width.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// Bytes per second that the link carries, packet headers included.
    pub(crate) bytes_per_s: f64,
    /// Whether both directions share the rate.
    pub(crate) is_shared: bool,
    /// Describes the link: `a link of 4 lanes at 8 GT/s`.
    pub(crate) description: String,
    /// How the link is slower than both ends support: `on 2 of 4 lanes`. `None` if it runs at full speed, `Err` if the
    /// full speed is unknown.
    pub(crate) below: Known<Option<String>>,
}

/// Returns the link of a drive. If the controller of a SATA drive also has a link, the SATA link is returned, because
/// it is slower.
///
/// # Errors
/// That the kernel shows no link, or no valid number for it.
pub(crate) fn read_link(layer: &Layer) -> Known<Link> {
    let text = |key: &str| layer.device.get(key).map(|t| t.trim());
    if let Some(now) = text("sata_spd").and_then(leading) {
        let limits =
            ["sata_spd_limit", "hw_sata_spd_limit"].into_iter().filter_map(|key| leading(text(key)?));
        let best = limits.max_by(f64::total_cmp).filter(|best| now < *best);
        return Ok(Link {
            bytes_per_s: now * 1e9 * PAYLOAD_OF_TEN_BITS / 8.0,
            is_shared: true,
            description: format!("a SATA link of {now} Gbit/s"),
            below: Ok(best.map(|best| format!("at {now} Gbit/s of {best}"))),
        });
    }
    let read = |key: &str| {
        let text = text(key).ok_or_else(|| format!("the kernel shows no link to {}", layer.name))?;
        leading(text).ok_or_else(|| format!("{}/{key} is not a number: '{text}'", layer.name))
    };
    let (speed, lanes) = (read("current_link_speed")?, read("current_link_width")?);
    if lanes > MAX_LANES {
        let name = &layer.name;
        return Err(format!(
            "the kernel reports {lanes} lanes for the link to {name}, and no link has that many"
        ));
    }
    let degradation = || {
        let (best_speed, most_lanes) = (read("max_link_speed")?, read("max_link_width")?);
        let slow = (speed < best_speed).then(|| format!("at {speed} GT/s of {best_speed}"));
        let narrow = (lanes < most_lanes).then(|| format!("on {lanes} of {most_lanes} lanes"));
        let both: Vec<String> = slow.into_iter().chain(narrow).collect();
        Ok((!both.is_empty()).then(|| both.join(" and ")))
    };
    let lane_word = if lanes > 1.0 { "lanes" } else { "lane" };
    let payload = if speed <= TEN_BITS_MAX_GT_PER_S { PAYLOAD_OF_TEN_BITS } else { PAYLOAD_OF_130_BITS };
    Ok(Link {
        bytes_per_s: speed * 1e9 * payload / 8.0 * lanes,
        is_shared: false,
        description: format!("a link of {lanes} {lane_word} at {speed} GT/s"),
        below: degradation(),
    })
}

/// Returns the positive number that a text begins with: `8.0 GT/s PCIe`, `6.0 Gbps`, `4`.
fn leading(text: &str) -> Option<f64> {
    let number: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// Minimum number of ticks of 10 ms on all CPUs for a share: one tick is then at most 5 %.
pub(crate) const MIN_TICKS: u64 = 20;

/// Returns the host's load in a run. A value that was not counted is `None`.
pub(crate) fn host_figures(ran: &CaseRun) -> HostFigures {
    let Ok(passed) = ran.passed_ns().map(|ns| ns as f64) else { return HostFigures::default() };
    let pressure = |file: &str| {
        let us = growth_in_run(ran, file, |text| pressure_us(text, "some")).ok()?;
        Some(share(us as f64 * 1e3, passed).min(1.0))
    };
    HostFigures {
        worker_cpu: busiest_worker_share(ran, passed),
        cpu: busy_cpu_share(ran).ok(),
        io_pressure: pressure(IO_PRESSURE_FILE),
        cpu_pressure: pressure(CPU_PRESSURE_FILE),
        memory_pressure: pressure(MEMORY_PRESSURE_FILE),
        quota_paused: paused_ns(ran).ok().map(|ns| share(ns, passed)),
    }
}

/// Returns the CPU share of the busiest worker; `None` without times, or if workers have a virtual clock (engine
/// `sim`).
fn busiest_worker_share(ran: &CaseRun, passed_ns: f64) -> Option<f64> {
    let workers = ran.workers().filter(|w| w.wall_ns > 0 && w.wall_ns as f64 <= passed_ns);
    let shares = workers.map(|w| share(w.user_ns.saturating_add(w.system_ns) as f64, w.wall_ns as f64));
    let busiest = shares.max_by(f64::total_cmp);
    // A thread uses one CPU at a time. A share slightly above 1 is a rounding error of two clocks.
    busiest.filter(|share| *share > 0.0 && *share < 1.05).map(|share| share.min(1.0))
}

fn busy_cpu_share(ran: &CaseRun) -> Known<f64> {
    let (before, after) =
        (busy_ticks(ran.snapshot(Moment::Start)?)?, busy_ticks(ran.snapshot(Moment::Stop)?)?);
    // Times of CPUs that are idle may go back by a tick.
    let [busy, all] = [0, 1].map(|at| after[at].saturating_sub(before[at]));
    if all < MIN_TICKS {
        return Err("the kernel counts in ticks of 10 ms, and too few passed".into());
    }
    Ok(share(busy as f64, all as f64).min(1.0))
}

fn paused_ns(ran: &CaseRun) -> Known<f64> {
    let (before, after) =
        (quota_pauses(ran.snapshot(Moment::Start)?)?, quota_pauses(ran.snapshot(Moment::Stop)?)?);
    after.ns.checked_sub(before.ns).map(|ns| ns as f64).ok_or_else(|| "the counters went backwards".into())
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Gives every run of a record this pressure, as a share of the time.
#[cfg(test)]
pub(crate) fn fixture(record: &mut model::record::Record, file: &str, part: f64) {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let us = (snapshot.at_ns as f64 / 1e3 * part) as u64;
        let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\nfull avg10=0.00 total=0\n");
        snapshot.files.insert(file.into(), Ok(text));
    }
}

#[cfg(test)]
fn link_mb_per_s(files: &[(&str, &str)]) -> Known<f64> {
    let device = files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    read_link(&Layer { device, ..Layer::default() }).map(|l| (l.bytes_per_s / 1e6).round())
}

#[cfg(test)]
fn host_figures_from(record: &model::record::Record) -> HostFigures {
    let case = &crate::case::cases(record)[0];
    host_figures(&case.runs[1])
}

#[cfg(test)]
fn with_ticks(fields: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    for run in &mut record.runs {
        for snapshot in &mut run.evidence {
            let text = if snapshot.moment == Moment::Stop { fields } else { "cpu  0 0 0 0 0 0 0 0 0 0\n" };
            snapshot.files.insert("/proc/stat".into(), Ok(text.into()));
        }
    }
    record
}

#[test]
fn keys_pressures_and_entries_are_read_and_missing_ones_are_errors() {
    assert_eq!(number_of_key("pswpin 7\npswpout 12\n", "pswpout"), Ok(12));
    assert!(number_of_key("pswpin 7\n", "pswp").is_err() && number_of_key("pswpin x\n", "pswpin").is_err());
    let psi =
        "some avg10=0.00 avg60=0.10 avg300=0.00 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
    assert_eq!((pressure_us(psi, "some"), pressure_us(psi, "full")), (Ok(4711), Ok(9)));
    assert!(pressure_us("", "some").is_err() && pressure_us("some total=x", "some").is_err());
    let lines: Vec<_> = path_values("/sys/a: 1\nnothing\n/sys/b: two words\n").collect();
    assert_eq!(lines, [("/sys/a", "1"), ("/sys/b", "two words")]);
}

#[test]
fn each_cpu_line_gives_times_and_other_lines_none() {
    let (files, targets) = (std::collections::BTreeMap::new(), Vec::new());
    let mut snapshot = Snapshot { moment: Moment::Start, at_ns: 0, files, targets };
    let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 1 0 0 1 0 0 0\ncpu2 x\nctxt 5\n";
    snapshot.files.insert("/proc/stat".into(), Ok(stat.into()));
    let all = each_cpu(&snapshot);
    let times = |cpu, user, kernel, idle| ObservedCpu { cpu, user, kernel, idle };
    assert_eq!(all, [times(0, 3, 16, 9), times(11, 1, 0, 1)]);
}

#[test]
fn sensors_of_drives_are_selected_and_bad_numbers_are_unknown() {
    let text = "/sys/class/hwmon/hwmon1/name: coretemp\n/sys/class/hwmon/hwmon1/temp1_input: 99000\n\
                /sys/class/hwmon/hwmon3/name: nvme\n/sys/class/hwmon/hwmon3/temp1_input: 41850\n\
                /sys/class/hwmon/hwmon3/temp1_max: hot\n";
    let seen = sensors(text);
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["hwmon3"]);
    assert_eq!((seen["hwmon3"].now, seen["hwmon3"].limit), (Some(41_850), None));
}

#[test]
fn pressure_is_a_share_of_the_runs_and_missing_files_are_errors() {
    let mut record = crate::fixture::Fixture::honest().record();
    assert_eq!(pressure_share(&crate::case::cases(&record)[0], IO_PRESSURE_FILE), Ok(0.0));
    fixture(&mut record, IO_PRESSURE_FILE, 0.25);
    assert!(
        pressure_share(&crate::case::cases(&record)[0], IO_PRESSURE_FILE)
            .is_ok_and(|s| (s - 0.25).abs() < 1e-3)
    );
    record.runs[1].evidence[0].files.insert(IO_PRESSURE_FILE.into(), Ok("some avg10=0.00\n".into()));
    assert!(pressure_share(&crate::case::cases(&record)[0], IO_PRESSURE_FILE).is_err());
}

#[test]
fn links_are_read_as_the_kernel_writes_them() {
    let pci = |speed, width| link_mb_per_s(&[("current_link_speed", speed), ("current_link_width", width)]);
    assert_eq!(pci("8.0 GT/s PCIe\n", "4\n"), Ok(3_938.0));
    assert_eq!(pci("5.0 GT/s PCIe", "1"), Ok(500.0));
    assert_eq!(link_mb_per_s(&[("sata_spd", "6.0 Gbps\n"), ("current_link_speed", "8.0 GT/s")]), Ok(600.0));
    for bad in [
        pci("Unknown", "4"),
        pci("8.0 GT/s PCIe", "0"),
        pci("8.0", "255"),
        pci("nan", "inf"),
        link_mb_per_s(&[]),
    ] {
        assert!(bad.is_err());
    }
}

#[test]
fn host_shares_refer_to_the_run_and_iowait_is_idle() {
    let mut record = with_ticks("cpu  30 0 20 100 40 5 5 0 0 0\n");
    fixture(&mut record, IO_PRESSURE_FILE, 0.25);
    let host = host_figures_from(&record);
    assert!(host.cpu.is_some_and(|share| (share - 0.3).abs() < 1e-9), "{host:?}");
    assert!(host.io_pressure.is_some_and(|share| (share - 0.25).abs() < 1e-3), "{host:?}");
    assert!(host.worker_cpu.is_some_and(|share| share > 0.0 && share <= 1.0), "{host:?}");
}

#[test]
fn uncounted_host_figures_are_none() {
    let mut record = with_ticks("cpu  1 0 1 2 0 0 0 0 0 0\n");
    assert_eq!(host_figures_from(&record).cpu, None, "four ticks are rounding");
    for run in &mut record.runs {
        run.evidence.iter_mut().for_each(|snapshot| snapshot.files.clear());
        for worker in run.end.iter_mut().flat_map(|end| &mut end.workers) {
            worker.wall_ns = worker.wall_ns.saturating_mul(1000);
        }
    }
    assert!(host_figures_from(&record).is_unknown(), "{:?}", host_figures_from(&record));
    record.runs.iter_mut().for_each(|run| run.evidence.clear());
    assert!(host_figures_from(&record).is_unknown());
}
