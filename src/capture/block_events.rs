//! The kernel's block events of some devices while they come: an instance of the tracer that is emptied often.
//!
//! For: requests in the order of their issue, as somebody wants them while they are made. Not for: what is made of them
//! ([`crate::watch`], [`crate::run`], [`crate::capture`]), nor what events mean (the crate `capture`).

use crate::failure::Failure;
use capture::names::Names;
use capture::row::Row;
use capture::trace::event::{Decoder, Event, OF_REQUESTS, Step};
use capture::trace::merge::Merge;
use capture::trace::pair::{Pairing, Scope};
use machine::resolve::resolve;
use machine::root::Root;
use machine::tracer::{Tracer, process_of, remove_leftovers};
use model::captured::{Partition, Unit};
use model::evidence::SECTOR_BYTES;
use model::machine::{Layer, LayerKind, Place};
use model::{Known, name};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;

/// Bytes of buffer for each CPU.
const BUFFER_BYTES: u64 = 4 << 20;
/// How long requests wait for an older one to complete, so that their order is that of their issue.
const WAIT_NS: u64 = 50_000_000;
/// Tasks that are told apart before all begins anew: their numbers come again, and memory is bounded.
const MOST_TASKS: usize = 1 << 14;
/// The end of a bio, of devices that have no requests.
const BIO_ENDS: (&str, Step) = ("block_bio_complete", Step::Completed);

/// An instance of the tracer at work.
pub(crate) struct BlockEvents {
    tracer: Tracer,
    decoder: Decoder,
    merge: Merge,
    devices: Vec<(Traced, Pairing)>,
    page: Vec<u8>,
    /// When it began; times of requests count from there.
    pub(crate) start_ns: u64,
    /// When the reading before this one began: what is older is there.
    sure_until_ns: u64,
}

impl BlockEvents {
    /// Records these devices from now on, for somebody who wants requests soon. What killed processes left is removed first: it would go on
    /// recording.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn begin(devices: &[Traced]) -> Known<Self> {
        remove_leftovers();
        let tracer = Tracer::new(BUFFER_BYTES).map_err(|e| e.to_string())?;
        let mut new = Self::with(tracer, devices)?;
        new.devices.iter_mut().for_each(|(_, pairing)| pairing.wait_at_most(WAIT_NS));
        Ok(new)
    }

    /// Records these devices from now on by this instance. Requests come in the order of their issue, however long an older one takes.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn with(mut tracer: Tracer, devices: &[Traced]) -> Known<Self> {
        let mut formats = Vec::new();
        // Insertions always: a request that waited is issued by whoever comes along, and only that event has its own task.
        for (event, step) in OF_REQUESTS.into_iter().chain([BIO_ENDS]) {
            let all: Vec<String> =
                devices.iter().filter_map(|of| Some(format!("({})", of.filter(step, event)?))).collect();
            if !all.is_empty() {
                formats.push((step, tracer.record(event, &all.join(" || ")).map_err(|e| e.to_string())?));
            }
        }
        let header = tracer.header_page().map_err(|e| e.to_string())?;
        let decoder = Decoder::new(&header, &formats)
            .map_err(|why| format!("the kernel's trace is not understood: {why}"))?;
        tracer.begin().map_err(|e| e.to_string())?;
        let start_ns = now_ns();
        let paired =
            |of: &Traced| (of.clone(), Pairing::new(Scope { unit: of.unit, span: of.span(), start_ns }));
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

    /// Empties all buffers, and hands the requests on that are surely in order, each with the index of its device.
    ///
    /// # Errors
    /// Why a buffer cannot be read.
    pub(crate) fn drain(&mut self, each: &mut dyn FnMut(usize, &Row, &Names)) -> Known<()> {
        let begun_ns = now_ns();
        self.read()?;
        let sure_ns = std::mem::replace(&mut self.sure_until_ns, begun_ns);
        self.hand_on(sure_ns, each);
        let names = &self.decoder.names;
        for (at, (_, pairing)) in self.devices.iter_mut().enumerate() {
            pairing.hand_on(sure_ns, &mut |row| each(at, row, names));
        }
        Ok(())
    }

    /// Ends recording, and hands the rest on.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub(crate) fn end(&mut self, each: &mut dyn FnMut(usize, &Row, &Names)) -> Known<()> {
        self.tracer.end().map_err(|e| e.to_string())?;
        self.read()?;
        self.hand_on(u64::MAX, each);
        let names = &self.decoder.names;
        for (at, (_, pairing)) in self.devices.iter_mut().enumerate() {
            pairing.finish(&mut |row| each(at, row, names));
        }
        Ok(())
    }

    fn read(&mut self) -> Known<()> {
        let (decoder, waiting) = (&mut self.decoder, self.merge.waiting());
        let root = Root::real();
        let mut ask = |tid| process_of(&root, tid);
        let drained = self.tracer.drain(&mut self.page, |page| decoder.page(page, &mut ask, waiting));
        drained.map_err(|e| e.to_string())
    }

    fn hand_on(&mut self, before_ns: u64, each: &mut dyn FnMut(usize, &Row, &Names)) {
        let (devices, names) = (&mut self.devices, &mut self.decoder.names);
        // Rows refer to names that are there when they are handed on.
        let mut rows = Vec::new();
        self.merge.before(before_ns, |event| {
            for (at, (traced, pairing)) in devices.iter_mut().enumerate() {
                if let Some(event) = of_device(event, traced) {
                    pairing.take(&event, names, &mut |row| rows.push(*row));
                    rows.drain(..).for_each(|row| each(at, &row, names));
                }
            }
        });
    }

    /// Events lost so far, as pages say.
    pub(crate) fn lost(&self) -> u64 {
        self.decoder.lost
    }

    /// Events lost so far, by the kernel's own count.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn lost_by_kernel(&self) -> Known<u64> {
        let lost = self.tracer.lost().map_err(|e| e.to_string())?;
        Ok(lost.overrun.saturating_add(lost.dropped))
    }

    /// Events that were read.
    pub(crate) fn count(&self) -> u64 {
        self.decoder.events
    }

    /// What requests refer to.
    pub(crate) fn names(&self) -> &Names {
        &self.decoder.names
    }

    /// What belongs together on the first device.
    pub(crate) fn pairing(&mut self) -> Option<&mut Pairing> {
        self.devices.first_mut().map(|(_, pairing)| pairing)
    }

    /// Whether it has told apart as many tasks as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.decoder.names.all_tasks().len() > MOST_TASKS
    }
}

/// An event as it is about this device; `None` where it is about another one.
fn of_device(event: &Event, traced: &Traced) -> Option<Event> {
    if event.step == Step::Lost {
        return Some(*event);
    }
    let step = match (traced.unit, event.step) {
        // What is asked for is all there is.
        (Unit::Bios, Step::Asked) => Step::Issued,
        (_, step) => step,
    };
    (u64::from(event.device) == traced.number).then_some(Event { step, ..*event })
}

/// The clock that the tracer stamps with.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A whole device in the kernel's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Its number as the kernel keeps it inside: 12 bits and 20.
    pub(crate) number: u64,
    /// What its events are about.
    pub(crate) unit: Unit,
    /// The part of it that is meant.
    pub(crate) partition: Option<Partition>,
}

impl Traced {
    /// The device of a layer: of a partition its disk, where the events of that are; `None` where the kernel does not say enough.
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
        let unit = if disk.device.contains_key("mq") { Unit::Requests } else { Unit::Bios };
        Some(Self { number, unit, partition })
    }

    /// First sector and number of sectors, where a part of it is meant.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        self.partition.as_ref().map(|part| (part.first_sector, part.sectors))
    }

    /// The filter by which the tracer records this step; `None` where it is of no use here.
    pub(crate) fn filter(&self, step: Step, event: &str) -> Option<String> {
        let device = format!("dev == {}", self.number);
        match (self.unit, step) {
            (Unit::Bios, Step::Asked) => Some(device),
            (Unit::Bios, _) => event.starts_with("block_bio").then_some(device),
            // A flush before it, or FUA: by how it begins, since the kernel looks for other patterns behind the end of the text too.
            (_, Step::Asked) => Some(format!("{device} && (rwbs ~ \"F*\" || rwbs ~ \"WF*\")")),
            _ => event.starts_with("block_rq").then_some(device),
        }
    }
}

/// The whole device that a layer is, or is a part of.
pub(crate) fn disk_of<'l>(layers: &'l [Layer], layer: &'l Layer) -> Option<&'l Layer> {
    match layer.kind {
        LayerKind::Partition => layer.below.first().and_then(|at| layers.get(*at)),
        _ => Some(layer),
    }
}

/// The device whose requests are captured.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The whole device: the kernel's events are of that, also for partitions.
    pub(crate) layer: Layer,
    /// That device as the kernel's events have it, and the part of it that is meant.
    pub(crate) traced: Traced,
    /// The file of the counters.
    pub(crate) stat_file: String,
    /// Names of other layers below or above, which report the same load once more.
    pub(crate) beside: Vec<String>,
}

/// Finds the device that a target is on.
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
            return Err(usage(format!("it is on several devices; name one of them: {}", names.join(", "))));
        }
    };
    let Some(top) = top else {
        let why = place.blind.or(place.ram).unwrap_or_else(|| "no block device is below it".into());
        return Err(usage(format!("there is no block device whose requests could be captured: {why}")));
    };
    let disk = disk_of(&place.layers, top)
        .ok_or_else(|| usage(format!("the disk of {} cannot be found", top.name)))?;
    subject(&place, top, disk).ok_or_else(|| {
        Failure::Refused(format!("the kernel does not say enough of {} to capture it", top.name))
    })
}

fn subject(place: &Place, top: &Layer, disk: &Layer) -> Option<Subject> {
    let traced = Traced::from_layer(&place.layers, top)?;
    let beside = place.layers.iter().filter(|l| l.number != disk.number && l.number != top.number);
    Some(Subject {
        layer: disk.clone(),
        traced,
        stat_file: top.stat_file.clone(),
        beside: beside.map(|l| l.name.clone()).collect(),
    })
}

impl Subject {
    /// What is captured, in words.
    pub(crate) fn describe(&self) -> String {
        let device = match &self.traced.partition {
            Some(part) => format!("{} (of {})", part.name, self.layer.name),
            None => self.layer.name.clone(),
        };
        match self.traced.unit {
            Unit::Bios => format!("the bios of {device}, which has no requests,"),
            _ => format!("the requests of {device}"),
        }
    }

    /// What is not, since it reports the same load once more; nothing where there is nothing else.
    pub(crate) fn words_of_others(&self) -> String {
        if self.beside.is_empty() {
            return String::new();
        }
        format!("; the same load at {} is not captured", self.beside.join(", "))
    }

    /// Whether a file that may not be there yet lies on this device.
    pub(crate) fn holds(&self, root: &Root, file: &Path) -> bool {
        let dir = file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        resolve(root, dir).is_ok_and(|place| place.layers.iter().any(|l| l.number == self.layer.number))
    }
}

#[test]
fn a_partition_is_told_by_the_events_of_its_disk() {
    let layer =
        |name: &str, number: &str| Layer { name: name.into(), number: number.into(), ..Layer::default() };
    let mut disk = layer("vda", "253:16");
    disk.device.insert("mq".into(), String::new());
    let mut part =
        Layer { kind: LayerKind::Partition, below: vec![1], bytes: 8 << 20, ..layer("vda1", "253:17") };
    part.device.insert("start".into(), "2048".into());
    let layers = [part, disk];
    let of_part = Traced::from_layer(&layers, &layers[0]).unwrap_or_else(|| panic!("none"));
    assert_eq!((of_part.number, of_part.span()), (253 << 20 | 16, Some((2048, 16384))));
    let of_disk = Traced::from_layer(&layers, &layers[1]).unwrap_or_else(|| panic!("none"));
    assert_eq!((of_disk.unit, of_disk.span()), (Unit::Requests, None));
    let filter = of_disk.filter(Step::Issued, "block_rq_issue");
    assert_eq!(filter.as_deref(), Some("dev == 265289744"));
    assert_eq!(of_disk.filter(Step::Completed, "block_bio_complete"), None);
    // Who has bios alone needs all of them.
    let zram = layer("zram0", "252:0");
    let bios = Traced::from_layer(&[], &zram).and_then(|zram| zram.filter(Step::Asked, "block_bio_queue"));
    assert_eq!(bios.as_deref(), Some("dev == 264241152"));
}
