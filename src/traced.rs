//! The device whose block events tell what a layer of a stack does, and which events these are.
//!
//! For: from a layer to the kernel's number, and the filters of its tracer. Not for: recording ([`crate::capture`], [`crate::watch`]).

use capture::trace::Step;
use model::captured::{Partition, Unit};
use model::evidence::SECTOR_BYTES;
use model::machine::{Layer, LayerKind};

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
