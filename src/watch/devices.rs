//! Devices that are watched: which they are from look to look, and their counters of the look before.
//!
//! For: targets with all layers below them, or all disks that are in use; devices that come, go, or become others. Not for: the
//! formulas (`analysis::watch`).

use super::selection::Selection;
use super::targets::Target;
use crate::failure::Failure;
use crate::traced::Traced;
use analysis::watch::conclusions::{self, RequestSizeLimit};
use analysis::watch::figures;
use analysis::watch::head_room::Limits;
use machine::devices;
use machine::devices::Counted;
use machine::resolve::resolve_device;
use machine::root::Root;
use model::capacity::{Capacity, KnownBy, SameBy};
use model::disk_counters::DiskCounters;
use model::machine::{Layer, LayerKind};
use model::watch::{Conclusion, DeviceInterval, MeasuredIn, Rule, WatchedDevice};
use model::{Known, name};
use std::time::Instant;

/// All of them.
pub(super) struct Devices {
    root: Root,
    all: Vec<Device>,
    targets: Vec<Target>,
    measured: Vec<(MeasuredIn, Capacity)>,
    selection: Selection,
    /// Whether they were looked at before.
    begun: bool,
}

/// What one look came to.
pub(super) struct Sample {
    pub(super) devices: Vec<WatchedDevice>,
    pub(super) remarks: Vec<String>,
}

struct Device {
    name: String,
    /// The name of a device mapper volume.
    volume: Option<String>,
    number: String,
    kind: LayerKind,
    level: usize,
    below: Vec<String>,
    /// What was measured of it; `None` for what has no limit of its own, the reason where nothing was.
    limits: Option<Known<Limits>>,
    /// What it is known by beside its name.
    known_by: KnownBy,
    /// Why its counters say nothing.
    blind: Option<String>,
    /// What tells it from another one of its name.
    sequence: Option<String>,
    last: Option<(Instant, DiskCounters)>,
    /// The device whose events tell of it.
    traced: Option<Traced>,
    /// The rules that applied in the interval before.
    rules: Vec<Rule>,
}

impl Devices {
    /// Those of the targets; where there are none, all disks that are in use, now and later.
    ///
    /// # Errors
    /// Where the kernel shows no counters.
    pub(super) fn new(
        root: &Root,
        targets: Vec<Target>,
        measured: Vec<(MeasuredIn, Capacity)>,
        selection: Selection,
    ) -> Result<Self, Failure> {
        // ALL next to other targets is all devices.
        let targets = if selection.unused { Vec::new() } else { targets };
        let mut devices =
            Self { root: root.clone(), all: Vec::new(), targets, measured, selection, begun: false };
        devices.follow_targets();
        devices.sample()?;
        Ok(devices)
    }

    /// `major:minor` of those that nothing watched is on: what is below them is used by others too.
    pub(super) fn tops(&self) -> Vec<String> {
        self.all.iter().filter(|d| d.level == 0).map(|d| d.number.clone()).collect()
    }

    /// Those, as far as block events tell of them.
    pub(super) fn traced(&self) -> Vec<(String, Traced)> {
        let tops = self.all.iter().filter(|d| d.level == 0);
        tops.filter_map(|d| Some((d.number.clone(), d.traced.clone()?))).collect()
    }

    /// What is to be said before the first interval.
    pub(super) fn begin(&self) -> Vec<String> {
        let mut words: Vec<String> = self.targets.iter().map(Target::chain).collect();
        words.dedup();
        if self.targets.is_empty() {
            let on = self.all.iter().filter(|d| !d.below.is_empty());
            words.extend(on.map(|d| format!("{} is on {}", d.name, d.below.join(", "))));
        }
        words.extend(self.all.iter().filter_map(Device::limit_words));
        if self.all.is_empty() {
            words.push("no disk was in use so far; those that come into use are shown".into());
        }
        words
    }

    /// Looks at their counters.
    ///
    /// # Errors
    /// Where the kernel shows none.
    pub(super) fn sample(&mut self) -> Result<Sample, Failure> {
        let counted = devices::read_disk_stats(&self.root).map_err(|why| {
            Failure::Refused(format!("{why}; `mount -t proc proc /proc` as root shows the counters"))
        })?;
        let at = Instant::now();
        let mut remarks = if self.targets.is_empty() { self.renew(&counted) } else { Vec::new() };
        // What is there at the beginning did not come.
        if !std::mem::replace(&mut self.begun, true) {
            remarks.clear();
        }
        for device in &mut self.all {
            remarks.extend(device.exchanged(&self.root, &self.measured));
        }
        let of = |d: &Device| counted.iter().find(|c| c.name == d.name && c.number == d.number);
        let devices = self.all.iter_mut().map(|d| {
            let now = of(d).map(|c| c.counters);
            d.watched(&self.root, now, at)
        });
        Ok(Sample { devices: devices.collect(), remarks })
    }

    fn follow_targets(&mut self) {
        for target in &self.targets {
            let levels = levels(&target.place.layers);
            for (at, layer) in target.place.layers.iter().enumerate() {
                if self.all.iter().any(|d| d.number == layer.number) {
                    continue;
                }
                let is_top = target.place.tops.contains(&at);
                // A kernel name is no path.
                let is_path = is_top && target.said.exists();
                let to_bench =
                    if is_path { name::shown(&target.said) } else { format!("/dev/{}", layer.name) };
                let place = (&target.place.layers[..], layer, levels[at]);
                self.all.push(Device::new(&self.root, place, &to_bench, &self.measured));
                if self.selection.partitions && is_top {
                    let partitions = partitions(&self.root, layer, levels[at] + 1, &self.measured);
                    self.all.extend(partitions);
                }
            }
        }
    }

    /// Disks that came into use, and those that are gone.
    fn renew(&mut self, counted: &[Counted]) -> Vec<String> {
        let mut remarks = Vec::new();
        let root = &self.root;
        self.all.retain(|device| {
            let is_there = counted.iter().any(|c| c.name == device.name && c.number == device.number)
                && (device.kind == LayerKind::Partition || devices::is_whole(root, &device.name));
            if !is_there {
                remarks.push(format!("{} is gone", device.name));
            }
            is_there
        });
        for new in counted.iter().filter(|c| self.selection.unused || c.counters.was_used()) {
            if self.all.iter().any(|d| d.name == new.name) || !devices::is_whole(root, &new.name) {
                continue;
            }
            let Some(place) = resolve_device(root, &new.name) else { continue };
            let Some(layer) = place.layers.first() else { continue };
            let to_bench = format!("/dev/{}", new.name);
            self.all.push(Device::new(root, (&place.layers, layer, 0), &to_bench, &self.measured));
            if self.selection.partitions {
                self.all.extend(partitions(root, layer, 1, &self.measured));
            }
            remarks.push(format!("{} came into use", new.name));
        }
        remarks
    }
}

impl Device {
    /// One of a stack, at a level of it.
    fn new(
        root: &Root,
        (layers, layer, level): (&[Layer], &Layer, usize),
        to_bench: &str,
        measured: &[(MeasuredIn, Capacity)],
    ) -> Self {
        // A partition shares the limits of its disk, and memory has none that is ever VALID.
        let has_limits = !matches!(layer.kind, LayerKind::Partition | LayerKind::Zram | LayerKind::Ram);
        let known_by = KnownBy::from_layer(layer);
        let limits = || {
            Limits::from_capacities(&known_by, measured)
                .ok_or_else(|| format!("limit unknown: run `fathom bench {to_bench}`"))
        };
        Self {
            name: layer.name.clone(),
            volume: layer.device.get("dm/name").cloned(),
            number: layer.number.clone(),
            kind: layer.kind,
            level,
            below: names_below(layers, layer),
            limits: has_limits.then(limits),
            known_by,
            blind: layer.blind(),
            sequence: devices::sequence(root, &layer.name),
            last: None,
            traced: Traced::from_layer(layers, layer),
            rules: Vec::new(),
        }
    }

    /// What its load is compared with.
    fn limit_words(&self) -> Option<String> {
        let known = match self.limits.as_ref()? {
            Err(why) => return Some(format!("{}: {why}", self.name)),
            Ok(limits) => limits,
        };
        let only = (known.same_by() == SameBy::ModelAndSize)
            .then(|| format!(" ({}: another one would be taken for it)", self.known_by.kind()));
        let held = if known.is_throttled() {
            "; a cgroup's limit was measured, which holds for that cgroup and not for others"
        } else {
            ""
        };
        let names: Vec<&str> = known.sessions().iter().map(|s| s.session.as_str()).collect();
        Some(format!(
            "{}: measured in {}; known by {}{}{held}",
            self.name,
            names.join(", "),
            known.same_by().phrase(),
            only.unwrap_or_default()
        ))
    }

    /// Begins anew where another device, medium or file has its name now.
    fn exchanged(&mut self, root: &Root, measured: &[(MeasuredIn, Capacity)]) -> Option<String> {
        let sequence = devices::sequence(root, &self.name);
        if sequence == self.sequence || sequence.is_none() {
            return None;
        }
        let place = resolve_device(root, &self.name)?;
        let layer = place.layers.first()?;
        let to_bench = format!("/dev/{}", self.name);
        *self = Self::new(root, (&place.layers, layer, self.level), &to_bench, measured);
        Some(format!(
            "{} is another device, or has another medium or file: its figures begin anew",
            self.name
        ))
    }

    fn watched(&mut self, root: &Root, now: Option<DiskCounters>, at: Instant) -> WatchedDevice {
        let before = self.last.take();
        self.last = now.map(|counters| (at, counters));
        let figures = match (&self.blind, before, now) {
            (Some(why), ..) => Err(why.clone()),
            (_, _, None) => Err("it is not there any more".into()),
            (_, None, Some(_)) => Err("its figures begin with the next interval".into()),
            (_, Some((since, a)), Some(b)) => {
                figures::between(&a, &b, at.duration_since(since).as_secs_f64())
            }
        };
        let load = match (self.limits.as_ref(), &figures) {
            (Some(Ok(limits)), Ok(figures)) => Some(Ok(limits.load(figures))),
            (Some(Err(why)), _) => Some(Err(why.clone())),
            // Without figures there is no load, whatever the limit.
            (Some(Ok(_)), Err(_)) | (None, _) => None,
        };
        let conclusions =
            figures.as_ref().map_or_else(|_| Vec::new(), |figures| self.conclude(root, figures));
        WatchedDevice {
            name: self.name.clone(),
            volume: self.volume.clone(),
            number: self.number.clone(),
            kind: self.kind,
            level: self.level,
            below: self.below.clone(),
            figures,
            load,
            conclusions,
            counters: now,
            latency: None,
        }
    }
}

impl Device {
    fn conclude(&mut self, root: &Root, figures: &DeviceInterval) -> Vec<Conclusion> {
        let limits = self.limits.as_ref().and_then(|limits| limits.as_ref().ok());
        // The user may raise it meanwhile, so each interval reads it.
        let kib = |file: &str| -> Option<u64> {
            root.word(&format!("/sys/class/block/{}/queue/{file}", self.name))?.parse().ok()
        };
        let size_limit =
            kib("max_sectors_kb").zip(kib("max_hw_sectors_kb")).map(|(current, hardware)| RequestSizeLimit {
                current: current.saturating_mul(1024),
                hardware: hardware.saturating_mul(1024),
            });
        let mut all = conclusions::draw(&self.name, figures, limits, size_limit);
        for conclusion in &mut all {
            conclusion.is_new = !self.rules.contains(&conclusion.rule);
        }
        self.rules = all.iter().map(|conclusion| conclusion.rule).collect();
        all
    }
}

/// The partitions of a disk, at a level below it.
fn partitions(root: &Root, disk: &Layer, level: usize, measured: &[(MeasuredIn, Capacity)]) -> Vec<Device> {
    let all = devices::partitions(root, &disk.name).into_iter().filter_map(|name| {
        let place = resolve_device(root, &name)?;
        let layer = place.layers.first()?;
        Some(Device::new(root, (&place.layers, layer, level), &format!("/dev/{name}"), measured))
    });
    all.collect()
}

fn names_below(layers: &[Layer], layer: &Layer) -> Vec<String> {
    layer.below.iter().filter_map(|at| Some(layers.get(*at)?.name.clone())).collect()
}

/// Longest way from a top, of each layer; all stand before what is below them.
fn levels(layers: &[Layer]) -> Vec<usize> {
    let mut levels = vec![0; layers.len()];
    for (at, layer) in layers.iter().enumerate() {
        for below in layer.below.iter().filter(|b| **b > at && **b < layers.len()) {
            levels[*below] = levels[*below].max(levels[at] + 1);
        }
    }
    levels
}

#[test]
fn layers_stand_below_the_deepest_that_is_on_them() {
    let layer = |below: &[usize]| Layer { below: below.to_vec(), ..Layer::default() };
    assert_eq!(levels(&[layer(&[1, 2]), layer(&[2]), layer(&[])]), [0, 1, 2]);
    // A stack that contradicts itself ends.
    assert_eq!(levels(&[layer(&[1]), layer(&[0, 9])]), [0, 1]);
}
