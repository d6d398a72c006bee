//! What rows of layers need before each run: the blocks that a device is read at, and what a buffered row finds in the cache.
//!
//! For: finding the very blocks that the place's own target is stored in, since writes may move them, proving them by what stands
//! there, and filling the page cache. Not for: the maps themselves (crate `machine`). What nobody ever wrote is answered by the
//! layers below without a disk, so the first bytes of a device say nothing.

use super::Measurement;
use engine::source::Pieces;
use machine::{extents, page_cache};
use model::Known;
use model::job::Cache;
use model::record::Trial;
use model::study::Study;

impl Measurement {
    /// Tries to find the blocks of every row that needs them. Only what cannot be found is told.
    pub(super) fn unplaced_rows(&mut self) -> Vec<Trial> {
        let Study::Layers(comparison) = &self.plan.study else { return Vec::new() };
        let jobs: Vec<usize> = comparison.layers.iter().filter(|r| r.stored).map(|r| r.job).collect();
        let trial = |job: usize, why: String| Trial {
            job,
            moved_bytes: Err(why.clone()),
            refusal: None,
            calls: Err(why),
        };
        jobs.into_iter().filter_map(|job| Some(trial(job, self.place_row(job).err()?))).collect()
    }

    /// Finds the blocks that a row reads, where it is one of a device below, and says where they are.
    pub(super) fn place_row(&mut self, job: usize) -> Known<Option<String>> {
        let Study::Layers(comparison) = &self.plan.study else { return Ok(None) };
        if !comparison.layers.iter().any(|r| r.job == job && r.stored) {
            return Ok(None);
        }
        let target_of =
            |job: usize| Some(*self.plan.jobs.get(job)?.phases.first()?.streams.first()?.targets.first()?);
        let above = comparison.layers.iter().find(|r| !r.stored).and_then(|r| target_of(r.job));
        let above =
            above.ok_or("nothing that is stored on it is measured, so nobody knows which blocks to read")?;
        let below = target_of(job).ok_or("it has no target")?;
        let (upper, lower) = (&self.targets[above], &self.targets[below]);
        let handle = upper.handle().ok_or("what is stored on it is not open")?;
        let (Some(place), Some(device)) = (self.places.get(above), self.places.get(below)) else {
            return Err("where it is in the stack is not known".into());
        };
        let number = device.tops.first().and_then(|t| device.layers.get(*t)).map(|l| &l.number);
        let layer = place
            .layers
            .iter()
            .position(|l| Some(&l.number) == number)
            .ok_or("it is not in the stack any more")?;
        let access = &self.plan.jobs[job].phases[0].streams[0].access;
        let span = access.span_bytes.min(upper.bytes());
        let found = extents::pieces(&self.root, place, handle, span, layer)?;
        let open = lower.open(&self.root, Cache::Direct, false).map_err(|e| e.message().to_owned())?;
        extents::prove(handle, &open, &found, lower.align())?;
        let largest = access.largest_bytes();
        let pieces = Pieces::new(found.iter().map(|p| p.physical..p.physical + p.bytes), largest);
        if pieces.bytes() == 0 {
            return Err("no block fits into any of the pieces that the file is stored in".into());
        }
        self.targets[below].read_at(pieces);
        Ok(Some(format!(
            "it is read where that is stored which the rows above read: {}",
            extents::show(&found)
        )))
    }

    /// Reads what a job is about to touch into the page cache, where it is there to show what the cache does.
    pub(super) fn warm(&self, job: usize) -> Vec<String> {
        let Study::Layers(comparison) = &self.plan.study else { return Vec::new() };
        if !comparison.layers.iter().any(|r| r.job == job && r.warm) {
            return Vec::new();
        }
        let streams = self.plan.jobs[job].phases.iter().flat_map(|p| &p.streams);
        let fill = |target: &usize, access: &model::job::Access| {
            let handle = self.targets.get(*target)?.handle()?;
            page_cache::fill(handle, access.offset_bytes, access.span_bytes, &self.stop).err()
        };
        streams.flat_map(|s| s.targets.iter().filter_map(move |t| fill(t, &s.access))).collect()
    }
}
