//! What is captured of a target: one layer of its block stack.
//!
//! For: from a path to a device, the part of it, and what its events are. Not for: capturing.

use crate::failure::Failure;
use crate::traced::{Traced, disk_of};
use machine::resolve::resolve;
use machine::root::Root;
use model::captured::Unit;
use model::machine::{Layer, Place};
use model::name;
use std::path::Path;

/// The device whose requests are captured.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The whole device: the kernel's events are of that, also for partitions.
    pub(super) layer: Layer,
    /// That device as the kernel's events have it, and the part of it that is meant.
    pub(crate) traced: Traced,
    /// The file of the counters.
    pub(super) stat_file: String,
    /// Names of other layers below or above, which report the same load once more.
    pub(super) beside: Vec<String>,
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
    pub(super) fn describe(&self) -> String {
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
    pub(super) fn words_of_others(&self) -> String {
        if self.beside.is_empty() {
            return String::new();
        }
        format!("; the same load at {} is not captured", self.beside.join(", "))
    }

    /// Whether a file that may not be there yet lies on this device.
    pub(super) fn holds(&self, root: &Root, file: &Path) -> bool {
        let dir = file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        resolve(root, dir).is_ok_and(|place| place.layers.iter().any(|l| l.number == self.layer.number))
    }
}
