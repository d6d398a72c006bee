//! Evidence: what is kept at which moment, and which targets are probed.
//!
//! For: snapshots into the session file, and single reads of what streams are going to read. Not for: which files a snapshot
//! holds, nor for the reads themselves (crate `machine`).

use super::Measurement;
use crate::failure::Failure;
use crate::target::Ready;
use engine::source::Pieces;
use machine::snapshot::Part;
use model::Known;
use model::evidence::{Moment, Probe, Snapshot};
use model::job::Cache;
use model::plan::{Hook, Role};
use model::record::Frame;
use std::ops::Range;

/// Attributes of files whose direct reads go through the page cache, which a probe must leave as it is.
const CACHED_ANYWAY: [&str; 2] = ["journal_data", "compressed"];

impl Measurement {
    /// Takes a snapshot and appends it.
    pub(super) fn keep(&mut self, moment: Moment, extents: bool) -> Result<Snapshot, Failure> {
        let snapshot = self.watch.take(moment, &self.parts(), extents);
        self.session.append(&Frame::Evidence(Box::new(snapshot.clone())))?;
        Ok(snapshot)
    }

    /// What is open of the targets, with the region that streams touch: what lies between two of them belongs to it too.
    pub(super) fn parts(&self) -> Vec<Option<Part<'_>>> {
        let streams = || self.plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
        let region = |index: usize| {
            let mine = streams().filter(|s| s.targets.contains(&index));
            let regions = mine.map(|s| span(s.access.offset_bytes, s.access.span_bytes, u64::MAX));
            regions.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..u64::MAX)
        };
        let open = self.targets.iter().map(Ready::handle).enumerate();
        open.map(|(index, file)| Some((file?, region(index)))).collect()
    }

    /// Takes the snapshot after preparation, with a probe of what is stored in the targets.
    pub(super) fn keep_prepared(&mut self) -> Result<(), Failure> {
        let mut snapshot = self.watch.take(Moment::AfterPrepare, &self.parts(), true);
        for (index, state) in snapshot.targets.iter_mut().enumerate().filter(|_| !self.stopped()) {
            state.probe = self.probe(index);
        }
        self.last.evidence.push(snapshot.clone());
        self.session.append(&Frame::Evidence(Box::new(snapshot)))
    }

    /// Takes what is taken while workers run: what is new since `last`, which is brought up to date.
    pub(super) fn keep_during(&mut self, last: &mut Snapshot) -> Result<(), Failure> {
        assert!(
            self.plan.hook != Some(Hook::PanicMain),
            "a fault that was put in on purpose (--test-hook panic-main)"
        );
        if self.plan.hook == Some(Hook::NoEvidence) {
            last.at_ns = self.now_ns();
            return Ok(());
        }
        let now = self.watch.during(last);
        last.at_ns = now.at_ns;
        last.files.extend(now.files.clone());
        if now.files.is_empty() {
            return Ok(());
        }
        self.session.append(&Frame::Evidence(Box::new(now)))
    }

    /// With `extents` how files are stored is asked too, which behind writes would flush them.
    /// After a failure the target may answer nothing at all any more, not even how much of it is cached: it is left alone.
    pub(super) fn keep_unless_dead(
        &mut self,
        moment: Moment,
        failed: bool,
        extents: bool,
    ) -> Result<Snapshot, Failure> {
        if !failed {
            return self.keep(moment, extents);
        }
        let snapshot = self.watch.take(moment, &[], false);
        self.session.append(&Frame::Evidence(Box::new(snapshot.clone())))?;
        Ok(snapshot)
    }

    /// Probes a target; `None` where no stream reads it.
    fn probe(&self, index: usize) -> Option<Known<Probe>> {
        let ready = &self.targets[index];
        if self.plan.targets[index].role == Role::None {
            return None;
        }
        let streams = self.plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams);
        let reading = streams.filter(|s| s.targets.contains(&index) && s.access.reads());
        let spans = reading.map(|s| span(s.access.offset_bytes, s.access.span_bytes, ready.bytes()));
        // What lies between two spans belongs to the target too.
        let span = spans.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
        let span = ready.pieces().and_then(Pieces::largest).unwrap_or(span);
        if let Some(why) = self.cached_anyway(index) {
            return Some(Err(why));
        }
        let seed = self.plan.seed ^ (index as u64) << 32;
        let refused = "it cannot be opened for direct reads, and others would fill the page cache";
        let file = ready.open(&self.root, Cache::Direct, false).map_err(|_| refused.to_owned());
        Some(file.and_then(|file| machine::probe::probe_latency(file, span, ready.align(), seed)))
    }

    /// Why direct reads of a target would fill the page cache.
    fn cached_anyway(&self, index: usize) -> Option<String> {
        let place = self.places.get(index)?;
        let through = "direct reads of it go through the page cache";
        if place.direct.is_some_and(|d| d.offset_align == 0) {
            return Some(format!("{through}: it does no direct I/O (statx)"));
        }
        let attributes = place.file_system.iter().flat_map(|f| &f.attributes);
        let found = attributes.into_iter().find(|a| CACHED_ANYWAY.contains(&a.as_str()))?;
        Some(format!("{through}: its file system stores it as {found}"))
    }
}

/// The bytes of a target that a stream touches.
fn span(offset_bytes: u64, span_bytes: u64, target_bytes: u64) -> Range<u64> {
    let start = offset_bytes.min(target_bytes);
    start..start.saturating_add(span_bytes).min(target_bytes)
}

#[test]
fn a_span_ends_with_its_target() {
    assert_eq!(span(4096, u64::MAX, 1 << 20), 4096..1 << 20);
    assert_eq!(span(4096, 8192, 1 << 20), 4096..12_288);
    assert!(span(2 << 20, 4096, 1 << 20).is_empty());
}
