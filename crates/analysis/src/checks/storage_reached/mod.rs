//! Group A: whether the I/O reached the device at all.
//!
//! This file lists the checks of the group, and has test records that several of them use.

pub(super) mod cacheable;
mod content;
mod extents;
mod file_changed;
mod late_writes;
mod ledger;
mod lower_layer_cache;
pub(super) mod page_cache;
mod target_place;
mod too_fast;

use crate::checks::Check;
#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::Known;
#[cfg(test)]
use model::evidence::{Extents, Moment, Probe, Snapshot};
#[cfg(test)]
use model::record::Record;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    page_cache::CACHE_SERVED,
    page_cache::DIRECT_FELL_BACK,
    page_cache::DIRECT_UNSUPPORTED,
    extents::HOLES_READ,
    content::ZERO_DATA,
    extents::INLINE_OR_TAIL,
    extents::ENCODED_EXTENTS,
    content::PAYLOAD_TOO_EASY,
    late_writes::WRITES_STILL_IN_RAM,
    late_writes::NEVER_WRITTEN,
    target_place::RAM_BACKED,
    lower_layer_cache::LOWER_LAYER_CACHE,
    ledger::COUNTERS_BLIND,
    target_place::WRONG_PLACE,
    cacheable::SPAN_FITS_CACHE,
    cacheable::RE_READS,
    cacheable::FIRST_TOUCH,
    too_fast::FASTER_THAN_PHYSICS,
    too_fast::ABOVE_CEILING,
    too_fast::HDD_TOO_FAST,
    extents::SHARED_EXTENTS,
    ledger::LEDGER_DISAGREES,
    file_changed::FILE_CHANGED,
    ledger::UNACCOUNTED,
];

/// A record in which `change` changed the probes: the single reads before the runs.
#[cfg(test)]
fn with_probe(fixture: &Fixture, change: impl Fn(&mut Known<Probe>)) -> Record {
    let mut record = fixture.record();
    record.evidence.iter_mut().flat_map(|s| &mut s.targets).filter_map(|t| t.probe.as_mut()).for_each(change);
    record
}

/// A record in which `change` changed the extent maps. It gets the moment of each map.
#[cfg(test)]
fn with_extents(fixture: &Fixture, change: impl Fn(Moment, &mut Extents)) -> Record {
    let mut record = fixture.record();
    change_snapshots(&mut record, |s| {
        let moment = s.moment;
        let known = s.targets.iter_mut().filter_map(|t| t.extents.as_mut()?.as_mut().ok());
        known.for_each(|e| change(moment, e));
    });
    record
}

/// Changes every snapshot of every run.
#[cfg(test)]
fn change_snapshots(record: &mut Record, change: impl Fn(&mut Snapshot)) {
    record.runs.iter_mut().flat_map(|r| &mut r.evidence).for_each(change);
}
