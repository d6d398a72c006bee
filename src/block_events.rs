//! Reads the kernel's block events of some devices continuously from a tracer instance. [`find`]
//! finds the device of a target, and which of its events to record.
//!
//! [`BlockEvents`] pairs the events of each request, and passes the requests on in the order of
//! issue. Crate `trace` decodes the events.

use crate::failure::Failure;
use machine::resolve::resolve;
use machine::root::Root;
use machine::tracer::{Tracer, process_of, remove_leftovers};
use model::captured::{Partition, RowUnit};
use model::evidence::SECTOR_BYTES;
use model::machine::{Layer, LayerKind};
use model::{Known, name};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use trace::pairing::{Merge, Pairing, Scope};
use trace::row::{Names, Row};
use trace::{Decoder, Event, EventKind, REQUEST_EVENTS};

/// Size of the kernel's trace buffer for each CPU.
const BUFFER_BYTES: u64 = 4 << 20;
/// Longest time that a completed request waits for an older one that is still in flight, to keep
/// the order of issue.
const REORDER_NS: u64 = 50_000_000;
/// With more tasks than this in one recording, [`BlockEvents::is_full`] is true. A new recording then bounds the memory.
const MAX_TASKS: usize = 1 << 14;
/// The completion event of a bio. Devices without requests report only bios.
const BIO_ENDS: (&str, EventKind) = ("block_bio_complete", EventKind::Completed);

/// A running instance of the tracer.
pub(crate) struct BlockEvents {
    tracer: Tracer,
    decoder: Decoder,
    merge: Merge,
    devices: Vec<(TracedDevice, Pairing)>,
    page: Vec<u8>,
    /// Start of the recording, by [`now_ns`]. Times of requests count from here.
    pub(crate) start_ns: u64,
    /// Start of the previous drain. All events before this time have been read.
    sure_until_ns: u64,
}

impl BlockEvents {
    /// Records these devices from now on. A completed request waits at most 50 ms for an older one that is still in flight. First removes
    /// tracer instances of killed processes, which would continue to record.
    ///
    /// # Errors
    /// Why it cannot record.
    pub(crate) fn begin(devices: &[TracedDevice]) -> Known<Self> {
        remove_leftovers();
        let tracer = Tracer::new(BUFFER_BYTES).map_err(|e| e.to_string())?;
        let mut new = Self::with(tracer, devices)?;
        new.devices.iter_mut().for_each(|(_, pairing)| pairing.wait_at_most(REORDER_NS));
        Ok(new)
    }

    /// Records these devices with this tracer instance. Passes requests on in the order of their
    /// issue: newer requests wait for an older one, however long it takes.
    ///
    /// # Errors
    /// Why it cannot record.
    pub(crate) fn with(mut tracer: Tracer, devices: &[TracedDevice]) -> Known<Self> {
        let mut formats = Vec::new();
        // Always record insertions: if a request waits in the scheduler, another task issues it, and only the insertion names the task
        // that asked for it.
        for (event, step) in REQUEST_EVENTS.into_iter().chain([BIO_ENDS]) {
            let all: Vec<String> = devices
                .iter()
                .filter_map(|device| Some(format!("({})", device.filter(step, event)?)))
                .collect();
            if !all.is_empty() {
                formats.push((
                    step,
                    tracer.record("block", event, &all.join(" || ")).map_err(|e| e.to_string())?,
                ));
            }
        }
        let header = tracer.header_page().map_err(|e| e.to_string())?;
        let decoder = Decoder::new(&header, &formats)
            .map_err(|why| format!("the kernel's trace has an unknown format: {why}"))?;
        tracer.begin().map_err(|e| e.to_string())?;
        let start_ns = now_ns();
        let paired = |device: &TracedDevice| {
            (device.clone(), Pairing::new(Scope { unit: device.unit, span: device.span(), start_ns }))
        };
        Ok(Self {
            page: vec![0; decoder.page_bytes()],
            tracer,
            decoder,
            merge: Merge::default(),
            devices: devices.iter().map(paired).collect(),
            start_ns,
            sure_until_ns: start_ns,
        })
    }

    /// Empties all buffers, and passes on the requests whose order is certain, each with the index
    /// of its device among those of the recording.
    ///
    /// # Errors
    /// Why a buffer cannot be read.
    pub(crate) fn drain(&mut self, each: &mut dyn FnMut(usize, &Row, &Names)) -> Known<()> {
        let begun_ns = now_ns();
        self.read()?;
        let sure_ns = std::mem::replace(&mut self.sure_until_ns, begun_ns);
        self.pass_on(sure_ns, each);
        let names = &self.decoder.names;
        for (at, (_, pairing)) in self.devices.iter_mut().enumerate() {
            pairing.pass_on(sure_ns, &mut |row| each(at, row, names));
        }
        Ok(())
    }

    /// Stops recording, and passes on the remaining requests.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub(crate) fn end(&mut self, each: &mut dyn FnMut(usize, &Row, &Names)) -> Known<()> {
        self.tracer.end().map_err(|e| e.to_string())?;
        self.read()?;
        self.pass_on(u64::MAX, each);
        let names = &self.decoder.names;
        for (at, (_, pairing)) in self.devices.iter_mut().enumerate() {
            pairing.finish(&mut |row| each(at, row, names));
        }
        Ok(())
    }

    fn read(&mut self) -> Known<()> {
        let (decoder, waiting) = (&mut self.decoder, &mut self.merge.waiting);
        let root = Root::real();
        let mut ask = |tid| process_of(&root, tid);
        let drained = self.tracer.drain(&mut self.page, |page| decoder.decode_page(page, &mut ask, waiting));
        drained.map_err(|e| e.to_string())
    }

    fn pass_on(&mut self, before_ns: u64, each: &mut dyn FnMut(usize, &Row, &Names)) {
        let (devices, names) = (&mut self.devices, &mut self.decoder.names);
        // `add_event` may add names, so pass its rows on afterwards.
        let mut rows = Vec::new();
        self.merge.before(before_ns, |event| {
            for (at, (traced, pairing)) in devices.iter_mut().enumerate() {
                if let Some(event) = event_on(event, traced) {
                    pairing.add_event(&event, names, &mut |row| rows.push(*row));
                    rows.drain(..).for_each(|row| each(at, &row, names));
                }
            }
        });
    }

    /// Number of lost events, according to the buffer pages.
    pub(crate) fn lost(&self) -> u64 {
        self.decoder.lost
    }

    /// Number of lost events, according to the kernel's counter.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn lost_by_kernel(&self) -> Known<u64> {
        let lost = self.tracer.lost().map_err(|e| e.to_string())?;
        Ok(lost.overrun.saturating_add(lost.dropped))
    }

    /// Number of events read.
    pub(crate) fn count(&self) -> u64 {
        self.decoder.events
    }

    /// The tasks and flags to which the passed rows refer by number.
    pub(crate) fn names(&self) -> &Names {
        &self.decoder.names
    }

    /// The pairing of the first device's events; `None` if no device is recorded.
    pub(crate) fn pairing(&mut self) -> Option<&mut Pairing> {
        self.devices.first_mut().map(|(_, pairing)| pairing)
    }

    /// Whether more than [`MAX_TASKS`] tasks occurred. The caller should then begin a new
    /// recording.
    pub(crate) fn is_full(&self) -> bool {
        self.decoder.names.all_tasks().len() > MAX_TASKS
    }
}

/// Returns the event as the `Pairing` of a traced device expects it; `None` if the event belongs to another device. Lost events concern every
/// device.
fn event_on(event: &Event, traced: &TracedDevice) -> Option<Event> {
    if event.step == EventKind::Lost {
        return Some(*event);
    }
    let step = match (traced.unit, event.step) {
        // A device without requests has no issue event, so the start of the bio takes its place.
        (RowUnit::Bios, EventKind::FlushRequested) => EventKind::Issued,
        (_, step) => step,
    };
    (u64::from(event.device) == traced.number).then_some(Event { step, ..*event })
}

/// The clock of the tracer's time stamps.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A device as the kernel's block events name it: always a whole device, also for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracedDevice {
    /// Device number as the kernel stores it: 12 bits major, 20 bits minor.
    pub(crate) number: u64,
    /// Whether the device's events describe requests or bios.
    pub(crate) unit: RowUnit,
    /// The recorded partition, if it is not the whole device.
    pub(crate) partition: Option<Partition>,
}

impl TracedDevice {
    /// Returns the device whose events describe a layer; for a partition, its disk. `None` if the kernel does not report the device number
    /// or the start of the partition.
    pub(crate) fn from_layer(layers: &[Layer], layer: &Layer) -> Option<Self> {
        let disk = disk_of(layers, layer)?;
        let partition = if layer.kind == LayerKind::Partition {
            let first_sector = layer.device_number("start").ok()?;
            Some(Partition { name: layer.name.clone(), first_sector, sectors: layer.bytes / SECTOR_BYTES })
        } else {
            None
        };
        let (major, minor) = disk.number.split_once(':')?;
        let number = major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?;
        // A device without hardware queues has no requests (zram, device mapper, RAID).
        let unit = if disk.device.contains_key("mq") { RowUnit::Requests } else { RowUnit::Bios };
        Some(Self { number, unit, partition })
    }

    /// First sector and number of sectors of the recorded partition; `None` for the whole device.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        self.partition.as_ref().map(|part| (part.first_sector, part.sectors))
    }

    /// Returns the tracer's filter for an event; `None` if the device does not need the event.
    pub(crate) fn filter(&self, step: EventKind, event: &str) -> Option<String> {
        let device = format!("dev == {}", self.number);
        match (self.unit, step) {
            (RowUnit::Bios, EventKind::FlushRequested) => Some(device),
            (RowUnit::Bios, _) => event.starts_with("block_bio").then_some(device),
            // Match the `F` of a flush at the start of the text: for a pattern in the middle the kernel reads beyond the end.
            (_, EventKind::FlushRequested) => Some(format!("{device} && (rwbs ~ \"F*\" || rwbs ~ \"WF*\")")),
            _ => event.starts_with("block_rq").then_some(device),
        }
    }
}

/// Returns the layer itself or, for a partition, its disk; `None` if that disk is unknown.
pub(crate) fn disk_of<'l>(layers: &'l [Layer], layer: &'l Layer) -> Option<&'l Layer> {
    match layer.kind {
        LayerKind::Partition => layer.below.first().and_then(|at| layers.get(*at)),
        _ => Some(layer),
    }
}

/// The device whose requests are captured.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The whole device, which the kernel also names in events of partitions.
    pub(crate) layer: Layer,
    /// The same device in the kernel's events, with the captured partition.
    pub(crate) traced: TracedDevice,
    /// The file with the counters of the captured device or partition.
    pub(crate) stat_file: String,
    /// Names of other layers whose counters report the same load again.
    pub(crate) left_out: Vec<String>,
}

/// Finds the device of a target.
pub(crate) fn find(root: &Root, target: &Path) -> Result<Subject, Failure> {
    let place = resolve(root, target)?;
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(target)));
    let top = match place.tops.as_slice() {
        [top] => place.layers.get(*top),
        [] => None,
        several => {
            let names =
                several.iter().filter_map(|at| place.layers.get(*at)).map(|l| format!("/dev/{}", l.name));
            let names: Vec<String> = names.collect();
            return Err(usage(format!(
                "the target is on several devices; name one of these: {}",
                names.join(", ")
            )));
        }
    };
    let Some(top) = top else {
        let why = place
            .unresolved_reason
            .or(place.ram)
            .unwrap_or_else(|| "no block device is below the target".into());
        return Err(usage(format!("there is no block device to capture: {why}")));
    };
    let disk = disk_of(&place.layers, top)
        .ok_or_else(|| usage(format!("the disk of {} cannot be found; name the disk itself", top.name)))?;
    let traced = TracedDevice::from_layer(&place.layers, top).ok_or_else(|| {
        Failure::Refused(format!(
            "{} cannot be captured: /sys has no device number or no start sector for it",
            top.name
        ))
    })?;
    let left_out = place.layers.iter().filter(|l| l.number != disk.number && l.number != top.number);
    Ok(Subject {
        layer: disk.clone(),
        traced,
        stat_file: top.stat_file.clone(),
        left_out: left_out.map(|l| l.name.clone()).collect(),
    })
}

impl Subject {
    /// Describes what is captured, as in `the requests of vda1 (of vda)`.
    pub(crate) fn describe(&self) -> String {
        let device = match &self.traced.partition {
            Some(part) => format!("{} (of {})", part.name, self.layer.name),
            None => self.layer.name.clone(),
        };
        match self.traced.unit {
            RowUnit::Bios => format!("the bios of {device}, which has no requests,"),
            _ => format!("the requests of {device}"),
        }
    }

    /// Describes the layers left out because they report the same load again; empty if there are none.
    pub(crate) fn describe_left_out(&self) -> String {
        if self.left_out.is_empty() {
            return String::new();
        }
        format!("; the same load on {} is not captured", self.left_out.join(", "))
    }

    /// Whether a file, which may not exist yet, is on this device.
    pub(crate) fn holds(&self, root: &Root, file: &Path) -> bool {
        let dir = file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        resolve(root, dir).is_ok_and(|place| place.layers.iter().any(|l| l.number == self.layer.number))
    }
}

#[test]
fn a_partition_uses_the_events_of_its_disk() {
    let layer =
        |name: &str, number: &str| Layer { name: name.into(), number: number.into(), ..Layer::default() };
    let mut disk = layer("vda", "253:16");
    disk.device.insert("mq".into(), String::new());
    let mut part =
        Layer { kind: LayerKind::Partition, below: vec![1], bytes: 8 << 20, ..layer("vda1", "253:17") };
    part.device.insert("start".into(), "2048".into());
    let layers = [part, disk];
    let of_part = TracedDevice::from_layer(&layers, &layers[0]).unwrap_or_else(|| panic!("none"));
    assert_eq!((of_part.number, of_part.span()), (253 << 20 | 16, Some((2048, 16384))));
    let of_disk = TracedDevice::from_layer(&layers, &layers[1]).unwrap_or_else(|| panic!("none"));
    assert_eq!((of_disk.unit, of_disk.span()), (RowUnit::Requests, None));
    let filter = of_disk.filter(EventKind::Issued, "block_rq_issue");
    assert_eq!(filter.as_deref(), Some("dev == 265289744"));
    assert_eq!(of_disk.filter(EventKind::Completed, "block_bio_complete"), None);
    // The filter of a device with only bios selects all bios.
    let zram = layer("zram0", "252:0");
    let bios = TracedDevice::from_layer(&[], &zram)
        .and_then(|zram| zram.filter(EventKind::FlushRequested, "block_bio_queue"));
    assert_eq!(bios.as_deref(), Some("dev == 264241152"));
}
