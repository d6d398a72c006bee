//! `fathom watch`: shows the activity of block devices, CPUs and processes, interval after interval.
//!
//! 1. Resolves the targets to block devices. A device whose node is missing, as in a container, is found by its kernel name.
//! 2. Waits for the end of the interval and samples the counters (crate `machine`). Devices may appear, disappear, or be replaced.
//! 3. Computes figures and conclusions (`analysis::watch`).
//! 4. Shows them on the whole terminal or as lines, replaces `.prom` files each interval, and writes `.html` pages every 10 seconds and at
//!    the end.

mod processes;

use crate::block_events::TracedDevice;
use crate::failure::Failure;
use crate::files::output;
use crate::files::output::{Outlet, ProtectedPaths, Replace, Rules};
use crate::live::{KeyAction, WatchView};
use crate::{history, live, signals, stdout};
use analysis::watch;
use analysis::watch::RequestSizeLimit;
use analysis::watch::head_room::Limits;
use machine::devices;
use machine::devices::DiskCounters;
use machine::processes::SampledTasks;
use machine::resolve::{resolve as place_of, resolve_device};
use machine::root::Root;
use model::evidence::BlockStat;
use model::history::Entry;
use model::machine::{KnownBy, Layer, LayerKind, Place, SameBy};
use model::verdict::Verdict;
use model::watch::{
    Conclusion, DeviceInterval, Latencies, Layout, LoadOverTime, MeasuredBefore, Rule, Watched, WatchedDevice,
};
use model::{Known, name};
use processes::{Busiest, Calls, Events};
use report::{Format, Style, TEXT};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often to check for the end and to empty the event buffers.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// If a partition makes at least this share of its disk's requests, the block events of the
/// partition also describe the disk.
const NEARLY_ALL: f64 = 0.95;

/// The user's request.
#[derive(Debug)]
pub struct Request {
    /// Devices by kernel name or path, files and directories; empty means all disks in use.
    pub targets: Vec<PathBuf>,
    /// Time between two samples.
    pub interval: Duration,
    /// Number of intervals; `None` means until a signal.
    pub count: Option<u64>,
    /// The only process to watch; `None` for all.
    pub pid: Option<u32>,
    /// Whether to record the kernel's block events, if permitted.
    pub events: bool,
    /// Whether to count the system calls of processes.
    pub calls: bool,
    /// Whether to print lines even on a terminal, instead of drawing on it.
    pub plain: bool,
    /// The parts of an interval, and the devices, to show.
    pub selection: Selection,
    /// Layout of the text.
    pub layout: Layout,
    /// Format on standard output.
    pub format: &'static Format,
    /// Files to write: `.prom` at every interval, `.html` every 10 seconds and at the end.
    pub outputs: Vec<PathBuf>,
    /// Which files the outputs may replace.
    pub replace: Replace,
}

/// Watches until the last interval, a signal, or a closed pipe.
///
/// # Errors
/// If a target cannot be watched, or the output cannot be written.
pub fn watch(request: &Request) -> Result<ExitCode, Failure> {
    let root = Root::real();
    let sampled = sampled_tasks(&root, request.pid)?;
    let targets = resolve(&root, &request.targets)?;
    let mut shown = Shown::new(request, &targets)?;
    let measured =
        history::capacities().map_err(|why| format!("the history cannot be read: {}", why.message()));
    let gone = Arc::new(AtomicBool::new(false));
    let stop = signals::watch_until_gone(&gone, live::restore_terminal)?;
    let devices = Devices::new(&root, targets, measured, request.selection)?;
    let watched = run(request, sampled, devices, &mut shown, &stop);
    gone.store(true, Ordering::Relaxed);
    watched
}

/// Shows interval after interval.
fn run(
    request: &Request,
    sampled: SampledTasks,
    mut devices: Devices,
    shown: &mut Shown,
    stop: &AtomicBool,
) -> Result<ExitCode, Failure> {
    let root = &devices.root.clone();
    let Selection { cpu: with_cpu, devices: with_devices, processes: with_processes, .. } = request.selection;
    let mut busiest = Busiest::new(root, sampled, request.interval, &devices.tops());
    let with_events = request.events && (with_devices || with_processes);
    let mut events = if with_events { Events::new(sampled) } else { Events::none() };
    let mut cpu_times = root.read("/proc/stat").ok();
    let mut remarks = if with_devices { devices.first_remarks() } else { Vec::new() };
    if with_processes {
        remarks.push(processes::remark(root));
    }
    remarks.extend(events.follow(&devices.traced()));
    let mut calls = request.calls.then(|| Calls::new(root, request.pid)).transpose()?;
    remarks.extend(calls.as_ref().map(|_| processes::REMARK.to_owned()));
    shown.begin(request)?;
    let mut deadline = Instant::now();
    for number in 0.. {
        deadline = next_deadline(deadline, request.interval);
        let mut drain = || {
            events.drain();
            if let Some(calls) = &mut calls {
                calls.drain();
            }
            shown.handle_keys()
        };
        if request.count == Some(number) || !wait_until(deadline, stop, &mut drain) {
            break;
        }
        let mut seen = devices.sample()?;
        if with_devices {
            remarks.extend(seen.remarks);
        } else {
            seen.devices.clear();
        }
        let cpu_times_before = std::mem::replace(&mut cpu_times, root.read("/proc/stat").ok());
        let cpu_shares =
            cpu_times_before.zip(cpu_times.as_ref()).and_then(|(a, b)| watch::shares(&a, b).ok()?);
        events.add_latencies(&mut seen.devices);
        devices.judge(&mut seen.devices);
        let mut processes =
            if with_processes { busiest.sample(&devices.tops(), &mut events) } else { Ok(None) };
        if let (Some(calls), Ok(Some(processes))) = (&mut calls, &mut processes) {
            calls.add_to(processes);
        }
        remarks.extend(events.follow(&devices.traced()));
        let unseen = processes.as_ref().err().cloned();
        // Stop if the only watched process has ended. If no process is visible at all, continue with devices.
        let ended = request.pid.is_some() && unseen.is_some();
        remarks.extend(unseen.filter(|_| ended || number == 0));
        let watched = Watched {
            is_first: number == 0,
            has_headings: false,
            time: jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string(),
            devices: seen.devices,
            cpu: cpu_shares.filter(|_| with_cpu),
            processes: processes.ok().flatten(),
            remarks: std::mem::take(&mut remarks),
            layout: request.layout,
        };
        if !shown.show(watched)? || ended {
            break;
        }
    }
    shown.write_pages()?;
    Ok(ExitCode::SUCCESS)
}

fn sampled_tasks(root: &Root, pid: Option<u32>) -> Result<SampledTasks, Failure> {
    let Some(pid) = pid else { return Ok(SampledTasks::Processes) };
    if root.has(&format!("/proc/{pid}/task")) {
        return Ok(SampledTasks::ThreadsOf(pid));
    }
    Err(Failure::Usage(format!("--pid {pid}: there is no such process; `ps -e` lists all")))
}

/// The end of the next interval. Ends that have already passed are skipped.
fn next_deadline(deadline: Instant, interval: Duration) -> Instant {
    let next = deadline + interval;
    let now = Instant::now();
    if next > now { next } else { now + interval }
}

/// Waits until `deadline`, and calls `often` meanwhile. Returns false as soon as `stop` is set or `often` returns false.
fn wait_until(deadline: Instant, stop: &AtomicBool, often: &mut dyn FnMut() -> bool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) || !often() {
            return false;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(STOP_CHECK_INTERVAL));
    }
}

/// All watched devices.
struct Devices {
    root: Root,
    all: Vec<Device>,
    targets: Vec<Target>,
    measured: Known<MeasuredBefore>,
    selection: Selection,
    /// Whether the devices were sampled before.
    begun: bool,
}

/// The result of one sample.
struct Sample {
    devices: Vec<WatchedDevice>,
    remarks: Vec<String>,
}

/// A watched device.
struct Device {
    /// The device as it is shown, without figures.
    shown: WatchedDevice,
    /// Measured limits, or the reason if they were not measured. `None` for a partition or memory.
    limits: Option<Known<Limits>>,
    /// Identifiers that relate the device to earlier measurements.
    known_by: KnownBy,
    /// Why the device's counters cannot be used; `None` if they can.
    counters_off_reason: Option<String>,
    /// Sequence number that changes if another device or medium gets this name; `None` before Linux 5.15.
    sequence: Option<String>,
    last: Option<CounterSample>,
    /// The device as named in the kernel's block events; `None` if it cannot be named.
    traced: Option<TracedDevice>,
    /// Rules of the conclusions in the previous interval.
    rules: Vec<Rule>,
}

/// The counters of a device, and when they were read.
struct CounterSample {
    at: Instant,
    counters: BlockStat,
}

impl Devices {
    /// The devices of the targets. Without targets: all disks in use, now and later.
    ///
    /// # Errors
    /// If the kernel shows no counters.
    fn new(
        root: &Root,
        targets: Vec<Target>,
        measured: Known<MeasuredBefore>,
        selection: Selection,
    ) -> Result<Self, Failure> {
        // `ALL` along with other targets means all devices.
        let targets = if selection.unused { Vec::new() } else { targets };
        let mut devices =
            Self { root: root.clone(), all: Vec::new(), targets, measured, selection, begun: false };
        devices.add_target_devices();
        devices.sample()?;
        Ok(devices)
    }

    /// Returns `major:minor` of the topmost devices. The devices below are left out, because they may have other users.
    fn tops(&self) -> Vec<String> {
        self.all.iter().filter(|d| d.shown.level == 0).map(|d| d.shown.number.clone()).collect()
    }

    /// Returns the topmost devices that have block events.
    fn traced(&self) -> Vec<(String, TracedDevice)> {
        let tops = self.all.iter().filter(|d| d.shown.level == 0);
        tops.filter_map(|d| Some((d.shown.number.clone(), d.traced.clone()?))).collect()
    }

    /// Returns the remarks before the first interval: which layers the targets or disks consist of, which sessions measured the limit of
    /// each device (or why its limit is unknown), and whether no disk was used so far.
    fn first_remarks(&self) -> Vec<String> {
        let mut remarks = model::distinct(self.targets.iter().map(Target::chain));
        if self.targets.is_empty() {
            let stacked = self.all.iter().map(|d| &d.shown).filter(|d| !d.below.is_empty());
            remarks.extend(stacked.map(|d| format!("{} is on {}", d.name, d.below.join(", "))));
        }
        remarks.extend(self.all.iter().filter_map(Device::describe_limit));
        if self.all.is_empty() {
            remarks.push("no disk was used so far; disks are shown when they are used".into());
        }
        remarks
    }

    /// Samples the counters of all devices.
    ///
    /// # Errors
    /// If the kernel shows no counters.
    fn sample(&mut self) -> Result<Sample, Failure> {
        let counted = devices::read_disk_stats(&self.root).map_err(|why| {
            Failure::Refused(format!(
                "{why}; if /proc is not mounted, type as root: mount -t proc proc /proc"
            ))
        })?;
        let at = Instant::now();
        let mut remarks = if self.targets.is_empty() { self.renew(&counted) } else { Vec::new() };
        // Devices of the first sample are not new.
        if !std::mem::replace(&mut self.begun, true) {
            remarks.clear();
        }
        for device in &mut self.all {
            remarks.extend(device.detect_replacement(&self.root, &self.measured));
        }
        let devices = self.all.iter_mut().map(|d| {
            let now = counted.iter().find(|c| is_same(c, &d.shown)).map(|c| c.counters);
            d.sample(now, at)
        });
        Ok(Sample { devices: devices.collect(), remarks })
    }

    /// Adds the loads and conclusions to `shown`, the devices of the last sample.
    fn judge(&mut self, shown: &mut [WatchedDevice]) {
        let Self { root, all, .. } = self;
        let events: Vec<Option<Latencies>> = shown.iter().map(|device| events_of(device, shown)).collect();
        for ((device, shown), events) in all.iter_mut().zip(shown).zip(events) {
            device.judge(root, shown, events.as_ref());
        }
    }

    /// Adds the devices below the targets, each once.
    fn add_target_devices(&mut self) {
        for target in &self.targets {
            let levels = levels(&target.place.layers);
            for (at, layer) in target.place.layers.iter().enumerate() {
                if self.all.iter().any(|d| d.shown.number == layer.number) {
                    continue;
                }
                let is_top = target.place.tops.contains(&at);
                // A kernel name is not a path.
                let is_path = is_top && target.typed.exists();
                let to_bench =
                    if is_path { name::shown(&target.typed) } else { format!("/dev/{}", layer.name) };
                let layers = &target.place.layers;
                self.all.push(Device::new(&self.root, layers, layer, levels[at], &to_bench, &self.measured));
                if self.selection.partitions && is_top {
                    self.all.extend(partitions(&self.root, &layer.name, levels[at] + 1, &self.measured));
                }
            }
        }
    }

    /// Adds disks that came into use, and removes those that disappeared.
    fn renew(&mut self, counted: &[DiskCounters]) -> Vec<String> {
        let mut remarks = Vec::new();
        let root = &self.root;
        self.all.retain(|Device { shown: device, .. }| {
            let is_there = counted.iter().any(|c| is_same(c, device))
                && (device.kind == LayerKind::Partition || devices::is_whole(root, &device.name));
            if !is_there {
                remarks.push(format!("{} is gone", device.name));
            }
            is_there
        });
        for new in counted.iter().filter(|c| self.selection.unused || c.counters.was_used()) {
            if self.all.iter().any(|d| d.shown.name == new.name) || !devices::is_whole(root, &new.name) {
                continue;
            }
            let Some(device) = Device::find(root, &new.name, 0, &self.measured) else { continue };
            self.all.push(device);
            if self.selection.partitions {
                self.all.extend(partitions(root, &new.name, 1, &self.measured));
            }
            remarks.push(format!("{} came into use", new.name));
        }
        remarks
    }
}

impl Device {
    /// Finds a device by its kernel name; `None` if there is no such device.
    fn find(root: &Root, name: &str, level: usize, measured: &Known<MeasuredBefore>) -> Option<Self> {
        let place = resolve_device(root, name)?;
        let layer = place.layers.first()?;
        Some(Self::new(root, &place.layers, layer, level, &format!("/dev/{name}"), measured))
    }

    /// Makes the device of a layer, at this level of its stack.
    fn new(
        root: &Root,
        layers: &[Layer],
        layer: &Layer,
        level: usize,
        to_bench: &str,
        measured: &Known<MeasuredBefore>,
    ) -> Self {
        // A partition has the limits of its disk. A measurement of memory is never VALID.
        let has_limits = !matches!(layer.kind, LayerKind::Partition | LayerKind::Zram | LayerKind::Ram);
        let known_by = KnownBy::from_layer(layer);
        let limits = || -> Known<Limits> {
            let measured = measured.as_ref().map_err(|why| format!("limit unknown: {why}"))?;
            Limits::from_capacities(&known_by, &measured.capacities).ok_or_else(|| {
                let earlier = describe_without_capacity(layer, &measured.without_capacity);
                format!("limit unknown: {earlier}; run `fathom bench {to_bench}`")
            })
        };
        let shown = WatchedDevice {
            name: layer.name.clone(),
            volume: layer.device.get("dm/name").cloned(),
            number: layer.number.clone(),
            kind: layer.kind,
            level,
            below: layer.below.iter().filter_map(|at| Some(layers.get(*at)?.name.clone())).collect(),
            figures: Err("the figures start with the next interval".into()),
            load: None,
            conclusions: Vec::new(),
            counters: None,
            latency: None,
        };
        Self {
            shown,
            limits: has_limits.then(limits),
            known_by,
            counters_off_reason: layer.counters_off_reason(),
            sequence: devices::sequence(root, &layer.name),
            last: None,
            traced: TracedDevice::from_layer(layers, layer),
            rules: Vec::new(),
        }
    }

    /// Describes which sessions measured the limits of the device, or why the limits are unknown. `None` for a partition or memory.
    fn describe_limit(&self) -> Option<String> {
        let known = match self.limits.as_ref()? {
            Err(why) => return Some(format!("{}: {why}", self.shown.name)),
            Ok(limits) => limits,
        };
        let only = (known.same_by() == SameBy::ModelAndSize)
            .then(|| format!(" ({}: another device could be mistaken for it)", self.known_by.kind()));
        let throttled_note = if known.is_throttled() {
            "; a cgroup limited that measurement, so the device itself may be faster"
        } else {
            ""
        };
        let newest = known.sessions().first()?;
        let more = match known.sessions().len() {
            1 => String::new(),
            count => format!(" and of {} more", count - 1),
        };
        let results = if known.is_throttled() { "results" } else { "VALID results" };
        Some(format!(
            "{}: its limits are {results} of session {}{more}; the device is recognised by {}{}{throttled_note}",
            self.shown.name,
            newest.session,
            known.same_by().phrase(),
            only.unwrap_or_default()
        ))
    }

    /// Starts from zero if the name now belongs to another device, medium or file, and returns a remark about the change; otherwise `None`.
    fn detect_replacement(&mut self, root: &Root, measured: &Known<MeasuredBefore>) -> Option<String> {
        let sequence = devices::sequence(root, &self.shown.name);
        if sequence == self.sequence || sequence.is_none() {
            return None;
        }
        *self = Self::find(root, &self.shown.name, self.shown.level, measured)?;
        Some(format!(
            "{} is another device now, or has another medium or file: its figures start from zero",
            self.shown.name
        ))
    }

    /// Returns the device with the figures since the last sample.
    fn sample(&mut self, now: Option<BlockStat>, at: Instant) -> WatchedDevice {
        let before = self.last.take();
        self.last = now.map(|counters| CounterSample { at, counters });
        let figures = match (&self.counters_off_reason, before, now) {
            (Some(why), ..) => Err(why.clone()),
            (_, _, None) => Err("the device no longer exists".into()),
            (_, None, Some(_)) => self.shown.figures.clone(),
            (_, Some(before), Some(now)) => {
                watch::between(&before.counters, &now, at.duration_since(before.at).as_secs_f64())
            }
        };
        WatchedDevice { figures, counters: now, ..self.shown.clone() }
    }

    /// Adds the load and the conclusions.
    fn judge(&mut self, root: &Root, shown: &mut WatchedDevice, events: Option<&Latencies>) {
        shown.load = match (self.limits.as_ref(), &shown.figures) {
            (Some(Ok(limits)), Ok(figures)) => Some(Ok(limits.compare(figures, events).0)),
            (Some(Err(why)), _) => Some(Err(why.clone())),
            // Without figures there is no load.
            (Some(Ok(_)), Err(_)) | (None, _) => None,
        };
        if let Ok(figures) = &shown.figures {
            shown.conclusions = self.conclude(root, figures, events);
        }
    }

    fn conclude(
        &mut self,
        root: &Root,
        figures: &DeviceInterval,
        events: Option<&Latencies>,
    ) -> Vec<Conclusion> {
        let limits = self.limits.as_ref().and_then(|limits| limits.as_ref().ok());
        // Read the queue settings in each interval: the user may change them.
        let kib = |file: &str| -> Option<u64> {
            root.word(&format!("/sys/class/block/{}/queue/{file}", self.shown.name))?.parse().ok()
        };
        let size_limit =
            kib("max_sectors_kb").zip(kib("max_hw_sectors_kb")).map(|(current, hardware)| RequestSizeLimit {
                current: current.saturating_mul(1024),
                hardware: hardware.saturating_mul(1024),
            });
        let mut all = watch::draw_conclusions(&self.shown.name, figures, events, limits, size_limit);
        for conclusion in &mut all {
            conclusion.is_new = !self.rules.contains(&conclusion.rule);
        }
        self.rules = all.iter().map(|conclusion| conclusion.rule).collect();
        all
    }
}

/// Whether these counters belong to this device.
fn is_same(counted: &DiskCounters, device: &WatchedDevice) -> bool {
    counted.name == device.name && counted.number == device.number
}

/// Returns the latencies of a device from its block events; `None` if they are unknown. A disk without events has those of a partition that
/// made nearly all of its requests.
fn events_of(device: &WatchedDevice, all: &[WatchedDevice]) -> Option<Latencies> {
    let makes_nearly_all = |other: &WatchedDevice| {
        let rates =
            |of: &WatchedDevice| Some([of.figures.as_ref().ok()?.read, of.figures.as_ref().ok()?.write]);
        let both = rates(other).zip(rates(device));
        both.is_some_and(|(own, of_disk)| {
            own.iter().zip(of_disk).all(|(own, of_disk)| own.per_s >= NEARLY_ALL * of_disk.per_s)
        })
    };
    let is_source = |other: &&WatchedDevice| {
        other.kind == LayerKind::Partition && other.below.contains(&device.name) && makes_nearly_all(other)
    };
    let known = device.latency.as_ref().or_else(|| all.iter().find(is_source)?.latency.as_ref());
    known?.as_ref().ok().copied()
}

/// The partitions of a disk, one level below it.
fn partitions(root: &Root, disk: &str, level: usize, measured: &Known<MeasuredBefore>) -> Vec<Device> {
    let names = devices::partitions(root, disk);
    names.iter().filter_map(|name| Device::find(root, name, level, measured)).collect()
}

/// Returns the level of each layer: the longest distance from a topmost layer. A layer precedes the layers below it.
fn levels(layers: &[Layer]) -> Vec<usize> {
    let mut levels = vec![0; layers.len()];
    for (at, layer) in layers.iter().enumerate() {
        for below in layer.below.iter().filter(|b| **b > at && **b < layers.len()) {
            levels[*below] = levels[*below].max(levels[at] + 1);
        }
    }
    levels
}

/// A target as typed, and its place.
#[derive(Debug)]
struct Target {
    /// The name or path on the command line.
    typed: PathBuf,
    /// The block devices below the target.
    place: Place,
}

/// Resolves all targets.
///
/// # Errors
/// If a target is neither an existing path nor the kernel's name of a device, or is on no block device.
fn resolve(root: &Root, typed: &[PathBuf]) -> Result<Vec<Target>, Failure> {
    typed.iter().map(|typed| Ok(Target { typed: typed.clone(), place: place(root, typed)? })).collect()
}

fn place(root: &Root, typed: &Path) -> Result<Place, Failure> {
    let without_node = typed.strip_prefix("/dev").ok().filter(|_| !typed.exists());
    let kernel_name = without_node.and_then(|name| Some(name.to_str()?.replace('/', "!")));
    let found = match kernel_name.and_then(|name| resolve_device(root, &name)) {
        Some(place) => place,
        None if is_missing(typed) => return Err(Failure::Usage(explain_missing(typed))),
        None => place_of(root, typed)?,
    };
    if !found.layers.is_empty() {
        return Ok(found);
    }
    let why =
        found.ram.as_ref().map(|ram| format!("the target is in memory ({ram})")).or(found.unresolved_reason);
    let why = why.unwrap_or_else(|| "the kernel shows no block device below the target".into());
    Err(Failure::Usage(format!(
        "{} is on no block device that could be watched: {why}; name a disk, or a file on one (`fathom devices` lists the disks)",
        name::shown(typed)
    )))
}

/// Describes why no limits of a device are known, with the verdicts of the earlier sessions on it, if any.
fn describe_without_capacity(layer: &Layer, sessions: &[Entry]) -> String {
    let is_same = |device: &model::history::Device| {
        let by_name = layer.serial.is_some() || device.name == layer.name;
        by_name && device.serial == layer.serial && device.bytes == layer.bytes
    };
    let own: Vec<&Entry> = sessions.iter().filter(|session| session.devices.iter().any(is_same)).collect();
    let Some(newest) = own.first() else { return "no VALID result of this device".into() };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for session in &own {
        *counts.entry(session.verdict.map_or("without a verdict", Verdict::word)).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!(
        "no session on this device ({}) shows its limit; `fathom show {}` explains the newest",
        counts.join(", "),
        newest.id
    )
}

/// Whether a path is known to lead to no file.
fn is_missing(typed: &Path) -> bool {
    typed.metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

/// Explains a path that leads to no file: its likely cause, and what to type.
fn explain_missing(typed: &Path) -> String {
    let shown = name::shown(typed);
    if typed.parent() == Some(Path::new("")) {
        return format!(
            "{shown}: there is no such file, and no block device of that name; `fathom devices` lists the devices"
        );
    }
    if let Ok(target) = typed.read_link() {
        let target = name::shown(&target);
        return format!("{shown} is a symbolic link to {target}, which does not exist; name another path");
    }
    if typed.starts_with("/dev") {
        return format!(
            "{shown} does not exist: perhaps the device was removed, or has another name; `fathom devices` lists the devices"
        );
    }
    let above = typed.ancestors().skip(1).find(|above| above.is_dir()).map(name::shown);
    let advice = above.map_or_else(
        || "name a directory, an existing file or a block device".to_owned(),
        |above| format!("`fathom watch {above}` watches the device of {above}"),
    );
    format!("{shown} does not exist; {advice}")
}

impl Target {
    /// Describes the stack below the target, as in `/data: ext4 > loop0 > vda`, and its unknown parts. Only devices have counters, so the
    /// remark about a file or directory adds that all figures are of the whole device.
    fn chain(&self) -> String {
        let mut words = vec![self.place.kind().to_owned()];
        words.extend(self.place.layers.iter().map(|layer| layer.name.clone()));
        let unresolved =
            self.place.unresolved_reason.as_ref().map_or(String::new(), |why| format!("; not known: {why}"));
        let whole = if self.place.file_system.is_some() {
            "; all figures are of the whole device, not only of this path"
        } else {
            ""
        };
        format!("{}: {}{unresolved}{whole}", name::shown(&self.typed), words.join(" > "))
    }
}

/// Extension of the files that are replaced at every interval.
const RENEWED: &str = "prom";

/// Time between two versions of a page. Writing a page at every interval would itself be a load.
const PAGE_EVERY: Duration = Duration::from_secs(10);

/// The pages of the load over time.
struct Pages {
    outlets: Vec<Outlet>,
    load: LoadOverTime,
    begun: Instant,
    /// End of the last interval, in s since the start of watching.
    last_end_s: f64,
    written: Instant,
}

/// Where intervals are shown.
struct Shown {
    format: &'static Format,
    /// Whether intervals are printed on standard output. False if the format is that of `.prom` files and such a file is written.
    printed: bool,
    outlets: Vec<Outlet>,
    pages: Pages,
    rules: Rules,
    /// The terminal, if intervals are drawn on it.
    view: Option<WatchView>,
    /// The printed lines; `None` before the first interval.
    lines: Option<Lines>,
}

/// How many lines were printed since the last column headings, and in the last interval.
#[derive(Clone, Copy)]
struct Lines {
    since_headings: usize,
    last_interval: usize,
}

impl Shown {
    /// Decides where intervals are printed, drawn and written.
    ///
    /// # Errors
    /// If a file is neither `.prom` nor `.html`, and as [`output::decide_all`].
    fn new(request: &Request, targets: &[Target]) -> Result<Self, Failure> {
        let is_file = |path: &Path| renewed(path).is_some() || page(path).is_some();
        if let Some(other) = request.outputs.iter().find(|path| !is_file(path)) {
            return Err(Failure::Usage(format!(
                "-o {}: -o writes FILE.{RENEWED}, replaced at every interval, or FILE.html, a page with the load over time; write other formats to a file with `fathom watch --format csv > FILE`",
                name::shown(other)
            )));
        }
        let rules = Rules { flag: "-o", protected: protected_paths(targets), replace: request.replace };
        let outlets = output::decide_all(&request.outputs, &rules)?;
        let (pages, outlets): (Vec<Outlet>, Vec<Outlet>) =
            outlets.into_iter().partition(|outlet| page(outlet.path_as_typed()).is_some());
        let targets = request.targets.iter().map(name::text).collect();
        let now = Instant::now();
        let pages = Pages {
            outlets: pages,
            load: LoadOverTime { targets, ..LoadOverTime::default() },
            begun: now,
            last_end_s: 0.0,
            written: now,
        };
        let is_file_only = request.format.extension == RENEWED && !outlets.is_empty();
        let printed = !is_file_only;
        Ok(Self { format: request.format, printed, outlets, pages, rules, view: None, lines: None })
    }

    /// Takes over the terminal if standard output is one, unless lines or another format than text were requested, or the number of
    /// intervals is limited.
    ///
    /// # Errors
    /// If signals cannot be handled.
    fn begin(&mut self, request: &Request) -> Result<(), Failure> {
        let is_lines = self.format.name != TEXT.name || request.count.is_some() || request.plain;
        if self.printed && !is_lines {
            self.view = WatchView::start(request.interval).map_err(|e| {
                Failure::Refused(format!("fathom cannot handle signals: {e}{}", sys::cause(&e)))
            })?;
        }
        Ok(())
    }

    /// Handles the typed keys. Returns whether to continue.
    fn handle_keys(&mut self) -> bool {
        match self.view.as_mut().map_or(KeyAction::Nothing, WatchView::handle_keys) {
            KeyAction::Nothing => true,
            KeyAction::End => false,
            KeyAction::Plain => {
                self.view = None;
                true
            }
        }
    }

    /// Shows an interval. Returns false if standard output is closed.
    ///
    /// # Errors
    /// If a file or standard output cannot be written.
    fn show(&mut self, mut watched: Watched) -> Result<bool, Failure> {
        watched.has_headings = self.is_headed();
        for outlet in &self.outlets {
            let format = renewed(outlet.path_as_typed()).unwrap_or(self.format);
            outlet.write(&stdout::render_for_file(format, &watched, Style::default())?, &self.rules)?;
        }
        self.pages.add(&watched);
        if self.pages.written.elapsed() >= PAGE_EVERY {
            self.write_pages()?;
        }
        if let Some(view) = &mut self.view {
            view.show(&watched);
            return Ok(true);
        }
        if !self.printed {
            return Ok(true);
        }
        let Some(lines) = stdout::print_next(self.format, &watched)? else { return Ok(false) };
        let before = self.lines.filter(|_| !watched.has_headings).map_or(0, |lines| lines.since_headings);
        self.lines = Some(Lines { since_headings: before + lines, last_interval: lines });
        Ok(true)
    }

    /// Writes the pages of the load so far.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn write_pages(&mut self) -> Result<(), Failure> {
        for outlet in &self.pages.outlets {
            let Some(format) = page(outlet.path_as_typed()) else { continue };
            outlet
                .write(&stdout::render_for_file(format, &self.pages.load, Style::default())?, &self.rules)?;
        }
        self.pages.written = Instant::now();
        Ok(())
    }

    /// Returns whether to print column headings before the next interval: at the beginning, and when the last headings leave the screen.
    fn is_headed(&self) -> bool {
        let Some(Lines { since_headings, last_interval }) = self.lines else { return true };
        stdout::screen_rows().is_some_and(|rows| since_headings + last_interval >= rows)
    }
}

impl Pages {
    fn add(&mut self, watched: &Watched) {
        if self.outlets.is_empty() {
            return;
        }
        let end_s = self.begun.elapsed().as_secs_f64();
        watch::add_interval(&mut self.load, watched, [self.last_end_s, end_s]);
        self.last_end_s = end_s;
    }
}

/// The format of a page of the load over time; `None` for other files.
fn page(path: &Path) -> Option<&'static Format> {
    report::format_by_extension::<LoadOverTime>(path)
}

/// The format of a file that is replaced at every interval; `None` for other files.
fn renewed(path: &Path) -> Option<&'static Format> {
    report::format_by_extension::<Watched>(path).filter(|format| format.extension == RENEWED)
}

/// Protects the watched targets from being overwritten.
fn protected_paths(targets: &[Target]) -> ProtectedPaths {
    let mut protected = ProtectedPaths::default();
    for target in targets {
        protected.add(&target.typed, "watched by this command");
        for layer in &target.place.layers {
            if let Some(file) = &layer.backing_file {
                protected
                    .add(Path::new(file), &format!("the backing file of {}, which is watched", layer.name));
            }
        }
    }
    protected
}

/// Which parts of an interval, and which devices, to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each selects one part")]
pub struct Selection {
    /// Whether to show the line that begins with `avg-cpu`.
    pub cpu: bool,
    /// Whether to show the rows of block devices, with loads and latencies.
    pub devices: bool,
    /// Whether to show the rows of the busiest processes.
    pub processes: bool,
    /// Whether to show the partitions of each device.
    pub partitions: bool,
    /// Whether to show devices that were never used since boot.
    pub unused: bool,
}

#[test]
fn missed_intervals_are_skipped() {
    let now = Instant::now();
    let second = Duration::from_secs(1);
    assert_eq!(next_deadline(now, second), now + second);
    let Some(long_ago) = now.checked_sub(10 * second) else { return };
    assert!(next_deadline(long_ago, second) >= now + second);
}

#[test]
fn a_layer_is_below_the_deepest_user() {
    let layer = |below: &[usize]| Layer { below: below.to_vec(), ..Layer::default() };
    assert_eq!(levels(&[layer(&[1, 2]), layer(&[2]), layer(&[])]), [0, 1, 2]);
    // A cycle in a stack does not cause an endless loop.
    assert_eq!(levels(&[layer(&[1]), layer(&[0, 9])]), [0, 1]);
}

#[test]
fn the_remark_about_a_path_says_that_figures_are_of_the_whole_device() {
    let file_system = model::machine::FileSystem {
        kind: "ext4".into(),
        source: "/dev/vda".into(),
        mount_point: "/".into(),
        options: "rw".into(),
        attributes: Vec::new(),
        root: "/".into(),
    };
    let layers = vec![Layer { name: "vda".into(), ..Layer::default() }];
    let device = Place { layers, ..Place::default() };
    let path = Place { file_system: Some(file_system), ..device.clone() };
    let chain = |place: Place| Target { typed: "/x".into(), place }.chain();
    assert_eq!(chain(path), "/x: ext4 > vda; all figures are of the whole device, not only of this path");
    assert_eq!(chain(device), "/x: block device > vda");
}

#[test]
fn earlier_sessions_that_show_no_limit_are_counted_by_their_verdict() {
    let session = |id: &str, serial: &str, verdict: Option<Verdict>| {
        let device = model::history::Device {
            name: "sda".into(),
            model: None,
            serial: Some(serial.into()),
            bytes: 1 << 30,
        };
        Entry { id: id.into(), devices: vec![device], verdict, ..Entry::default() }
    };
    let layer = Layer { name: "sdb".into(), serial: Some("x".into()), bytes: 1 << 30, ..Layer::default() };
    let suspect = Some(Verdict::Suspect);
    let sessions = [
        session("3", "x", suspect),
        session("2", "y", None),
        session("1", "x", None),
        session("0", "x", suspect),
    ];
    assert_eq!(
        describe_without_capacity(&layer, &sessions),
        "no session on this device (2 SUSPECT, 1 without a verdict) shows its limit; `fathom show 3` explains the newest"
    );
    assert_eq!(describe_without_capacity(&layer, &sessions[1..2]), "no VALID result of this device");
    let unnamed = Layer { serial: None, ..layer };
    assert_eq!(describe_without_capacity(&unnamed, &sessions), "no VALID result of this device");
}

#[test]
fn targets_without_a_device_are_refused() {
    let root = Root::real();
    let why = |path: &str| match place(&root, Path::new(path)) {
        Err(Failure::Usage(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(why("no-such-disk").contains("no block device of that name"));
    assert_eq!(
        why("/nowhere/at/all"),
        "/nowhere/at/all does not exist; `fathom watch /` watches the device of /"
    );
    let removed = "/dev/no-such-disk does not exist: perhaps the device was removed, or has another name; `fathom devices`";
    assert!(why("/dev/no-such-disk").starts_with(removed), "{}", why("/dev/no-such-disk"));
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap_or_else(|e| panic!("{e}"));
    let linked = why(&link.to_string_lossy());
    assert!(linked.contains("is a symbolic link to /nowhere, which does not exist"), "{linked}");
    assert!(why("/proc/stat").contains("no block device that could be watched"));
}
