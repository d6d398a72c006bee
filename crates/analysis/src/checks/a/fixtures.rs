//! Forged pieces that several checks of this group need.
//!
//! For: tests. Not for: knobs that checks of other groups turn as well (those are in `fixture`).

use crate::fixture::Fixture;
use model::Known;
use model::evidence::{Extents, Moment, Probe, Snapshot};
use model::record::Record;

/// A record whose single reads found something else.
pub(super) fn probe(fixture: &Fixture, change: impl Fn(&mut Known<Probe>)) -> Record {
    let mut record = fixture.record();
    record.evidence.iter_mut().flat_map(|s| &mut s.targets).filter_map(|t| t.probe.as_mut()).for_each(change);
    record
}

/// A record whose files are stored in another way.
pub(super) fn extents(fixture: &Fixture, change: impl Fn(Moment, &mut Extents)) -> Record {
    let mut record = fixture.record();
    snapshots(&mut record, |s| {
        let moment = s.moment;
        let known = s.targets.iter_mut().filter_map(|t| t.extents.as_mut()?.as_mut().ok());
        known.for_each(|e| change(moment, e));
    });
    record
}

/// Changes every snapshot of every run.
pub(super) fn snapshots(record: &mut Record, change: impl Fn(&mut Snapshot)) {
    record.runs.iter_mut().flat_map(|r| &mut r.evidence).for_each(change);
}

/// A record whose stream touches so many bytes.
pub(super) fn spanning(span: u64, fixture: &Fixture) -> Record {
    let mut record = fixture.record();
    record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = span;
    for target in &mut record.header.plan.targets {
        target.bytes = target.bytes.max(span);
    }
    record
}
