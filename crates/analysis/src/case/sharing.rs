//! Decides which streams of a phase use a device, and how much of the device's work belongs to each of them.
//!
//! The counters of a device do not separate streams. Three kinds of evidence do:
//! 1. A device that no other stream of the phase uses: its counters belong to the stream.
//! 2. The kernel's counts for the stream's own workers (`/proc/thread-self/io`): reads and direct writes that they submitted, and pages
//!    that they dirtied. Threads that belong to no worker (threads of a C library, helpers that ended early) are only in the count of the
//!    process. The process's count beyond that of all workers may belong to any stream.
//! 3. The device's counters, minus the lower or the upper bound of what the other streams moved.
//!
//! Evidence 2 and 3 gives a lower and an upper bound. A check answers only if both bounds lead to the same answer.

use super::{Case, SAME_BYTES_WITHIN, flow_of, targets_of, whole_disk};
use model::Known;
use model::evidence::{BlockFlow, Moment, Pages};
use model::job::{Kind, Stream};
use model::machine::{Layer, Machine, Place};
use model::plan::{Role, Target};
use model::record::{Record, ThreadIo};
use std::collections::BTreeSet;

/// Bytes per run that file systems write for their own metadata.
const METADATA_WRITE_BYTES: u64 = 1 << 20;
/// Bytes per run that file systems read for their own metadata.
const METADATA_READ_BYTES: u64 = 128 << 10;
/// The engine that joins neighbouring operations into one call before the kernel sees them.
pub(crate) const JOINING_ENGINE: &str = "preadv";
/// Bytes that ext4 and xfs may write to the device for each written byte, because of inodes and journal.
pub(crate) const AMPLIFICATION: f64 = 1.5;

/// A count of bytes that is known within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Lower bound.
    pub(crate) least: u64,
    /// Upper bound.
    pub(crate) most: u64,
}

impl Bounds {
    /// The bounds of an unknown count.
    const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    /// Returns a count that is known to the byte.
    pub(crate) fn exact(bytes: u64) -> Self {
        Self { least: bytes, most: bytes }
    }

    /// Whether both bounds are the same.
    pub(crate) fn is_exact(self) -> bool {
        self.least == self.most
    }

    fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    fn at_most(self, bytes: u64) -> Self {
        Self { least: self.least.min(bytes), most: self.most.min(bytes) }
    }
}

/// The `stat` files of all layers that a stream uses. `None` if the stream touches no device. Empty if a place is
/// unknown: then the stream may use any device.
pub(super) type UsedFiles<'a> = Option<BTreeSet<&'a str>>;

pub(super) fn files_used_by<'a>(
    record: &'a Record,
    machine: Option<&'a Machine>,
    stream: &Stream,
) -> UsedFiles<'a> {
    if stream.does_nothing() {
        return None;
    }
    let mut out = BTreeSet::new();
    for place in places_of(record, machine, Some(stream)) {
        let Some(place) = place else { return Some(BTreeSet::new()) };
        out.extend(place.layers.iter().map(|l| l.stat_file.as_str()));
    }
    // Memory and file systems without a known device have no counters that another stream shares.
    if out.is_empty() { None } else { Some(out) }
}

/// Returns the place of each target of a stream; `None` for a target that the record does not describe.
fn places_of<'a>(
    record: &'a Record,
    machine: Option<&'a Machine>,
    stream: Option<&Stream>,
) -> impl Iterator<Item = Option<&'a Place>> {
    let on_storage = targets_of(record, stream).into_iter().filter(|(_, t)| t.role != Role::None);
    on_storage.map(move |(at, _)| machine?.places.get(at))
}

impl<'a> Case<'a> {
    /// Returns the streams of this case: its own, and after [`Case::with_sharers`] those that share its devices.
    pub(crate) fn member_streams(&self) -> Vec<&Stream> {
        if self.members.len() == 1 {
            return vec![&self.stream];
        }
        self.members.iter().filter_map(|m| self.stream_at(*m)).collect()
    }

    /// Whether all streams of this case bypass the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.member_streams().iter().all(|s| s.cache.is_direct())
    }

    /// Whether a stream of this case makes writes that must be stable before they complete.
    pub(crate) fn any_sync(&self) -> bool {
        self.member_streams().iter().any(|s| s.cache.is_sync())
    }

    /// Returns the largest operation of the streams of this case, in bytes.
    pub(crate) fn largest_bytes(&self) -> u32 {
        self.member_streams().iter().map(|s| s.access.largest_bytes()).max().unwrap_or(0)
    }

    /// This case together with all streams that use its devices, all streams that use the devices
    /// of those streams, and so on. Used for questions about a device instead of a stream, such as
    /// whether other programs used a disk.
    pub(crate) fn with_sharers(&self) -> Self {
        let mut members = self.members.clone();
        let files_of = |stream: &usize| self.used_files.get(*stream).and_then(Option::as_ref);
        let mut used: BTreeSet<&str> = members.iter().filter_map(files_of).flatten().copied().collect();
        loop {
            let joins = |stream: &usize| {
                let files = files_of(stream).filter(|_| !members.contains(stream));
                files.is_some_and(|files| files.is_empty() || files.iter().any(|file| used.contains(file)))
            };
            let more: Vec<usize> = self.stream_indices().filter(joins).collect();
            if more.is_empty() {
                break;
            }
            used.extend(more.iter().filter_map(files_of).flatten());
            members.extend(more);
        }
        if members.len() == self.members.len() {
            return self.clone();
        }
        self.with_members(members)
    }

    /// This case together with all streams of the phase.
    pub(crate) fn of_phase(&self) -> Self {
        self.with_members(self.stream_indices().collect())
    }

    fn with_members(&self, mut members: Vec<usize>) -> Self {
        members.sort_unstable();
        let mut targets: Vec<_> =
            members.iter().flat_map(|m| targets_of(self.record, self.stream_at(*m))).collect();
        targets.sort_by_key(|(at, _)| *at);
        targets.dedup_by_key(|(at, _)| *at);
        Self { members, targets, sums: super::Sums::default(), ..self.clone() }
    }

    /// Returns the reads and writes that each stream of this case issued in a run.
    pub(crate) fn issued_in(&self, ran: &super::CaseRun) -> Vec<super::Amount> {
        let issued = |m: &usize| Kind::MOVING.map(|kind| ran.issued_by(*m, kind));
        self.members.iter().flat_map(issued).collect()
    }

    /// Whether this stream of the phase is one of the streams of this case.
    pub(crate) fn has_stream(&self, stream: usize) -> bool {
        self.members.contains(&stream)
    }

    /// Returns the indices of the streams of the phase.
    fn stream_indices(&self) -> std::ops::Range<usize> {
        0..self.phase_streams().len()
    }

    /// Returns the indices of the streams of the phase that are not streams of this case.
    fn others(&self) -> impl Iterator<Item = usize> {
        self.stream_indices().filter(|stream| !self.members.contains(stream))
    }

    fn stream_at(&self, stream: usize) -> Option<&Stream> {
        self.phase_streams().get(stream)
    }

    /// Returns the place of each target of a stream; `None` for a target that the record does not describe.
    fn places_of(&self, stream: usize) -> impl Iterator<Item = Option<&'a Place>> {
        places_of(self.record, self.machine, self.stream_at(stream))
    }

    /// Returns the other streams of the phase that use one of these layers, or that may use one because a place is unknown.
    pub(crate) fn sharers(&self, layers: &[&Layer]) -> Vec<usize> {
        let uses = |stream: &usize| {
            self.used_files.get(*stream).and_then(Option::as_ref).is_some_and(|files| {
                files.is_empty() || layers.iter().any(|l| files.contains(l.stat_file.as_str()))
            })
        };
        self.others().filter(uses).collect()
    }

    /// Returns the sharers that may move data in this direction. A write through the page cache may read the rest of
    /// the page first.
    pub(crate) fn sharers_moving(&self, layers: &[&Layer], kind: Kind) -> Vec<usize> {
        let moves = |stream: &usize| {
            self.stream_at(*stream).is_none_or(|s| {
                let reads_pages = kind == Kind::Read && s.changes_targets() && !s.cache.is_direct();
                s.kinds().any(|k| k == kind) || s.moves_no_data() || reads_pages
            })
        };
        self.sharers(layers).into_iter().filter(moves).collect()
    }

    /// Checks that no other stream uses these layers.
    ///
    /// # Errors
    /// The streams that use them.
    pub(crate) fn alone_on(&self, layers: &[&Layer]) -> Known<()> {
        let sharers = self.sharers(layers);
        if sharers.is_empty() { Ok(()) } else { Err(self.not_alone(&sharers, layers)) }
    }

    /// Returns why the counters of these layers do not show this stream's part.
    pub(crate) fn not_alone(&self, sharers: &[usize], layers: &[&Layer]) -> String {
        const NAMED: usize = 3;
        let name = |stream: &usize| match self.stream_at(*stream).map(|s| s.name.as_str()) {
            Some(name) if !name.is_empty() => format!("stream {name}"),
            _ => format!("stream {}", stream.saturating_add(1)),
        };
        let mut names: Vec<String> = sharers.iter().take(NAMED).map(name).collect();
        if sharers.len() > NAMED {
            names.push(format!("{} more", sharers.len() - NAMED));
        }
        let (uses, counts) =
            if sharers.len() == 1 { ("uses", "both streams") } else { ("use", "all streams") };
        let layers: Vec<&str> = layers.iter().map(|l| l.name.as_str()).collect();
        format!(
            "{} {uses} {} at the same time, and the kernel counts {counts} together",
            names.join(" and "),
            layers.join(" and ")
        )
    }

    /// Returns why the topmost devices do not show this stream's part: the streams that share them.
    ///
    /// # Errors
    /// Why the devices are not known.
    pub(crate) fn why_shared(&self) -> Known<String> {
        let tops = self.top_layers()?;
        Ok(self.not_alone(&self.sharers(&tops), &tops))
    }

    /// Whether the kernel's counts of all workers are known.
    pub(crate) fn has_worker_counts(&self) -> bool {
        let mut workers = self.runs.iter().flat_map(|ran| &ran.end.workers);
        workers.all(|worker| worker.io.is_ok())
    }

    /// Whether each operation of a stream that reaches a device becomes a request there, or a merge that the kernel
    /// counts. `false` for an engine that joins operations, and for I/O through the page cache: the kernel then makes
    /// larger requests without counting a merge. A file system may answer direct I/O from the page cache, which leaves
    /// pages there.
    pub(crate) fn submits_each_operation(&self, stream: usize) -> bool {
        let Some(planned) = self.stream_at(stream) else { return false };
        let all_targets = &self.record.header.plan.targets;
        let is_file = |t: &usize| all_targets.get(*t).is_none_or(|t| t.role != Role::Device);
        let files: Vec<usize> = planned.targets.iter().copied().filter(is_file).collect();
        planned.cache.is_direct() && planned.engine != JOINING_ENGINE && self.new_pages(&files) == Some(0)
    }

    /// Returns a lower bound of the requests that the streams that share these layers made there. `all` is the flow of
    /// this direction for all streams: each operation became one of its requests or merges. Leaves out a stream unless
    /// [`Case::submits_each_operation`], and all of its bytes reached the layers.
    pub(crate) fn least_requests_of_sharers(&self, kind: Kind, layers: &[&Layer], all: &BlockFlow) -> u64 {
        let submitted = self.submitted(kind);
        let sharers = self.sharers(layers);
        let arrived = |stream: usize| self.submitted_to(stream, &submitted, layers).least;
        // The kernel counts a submission twice if it was refused and repeated.
        let in_all = sharers.iter().copied().chain([self.stream_index]).map(arrived);
        if in_all.fold(0, u64::saturating_add) > all.bytes {
            return 0;
        }
        let operations = |stream: usize| {
            let issued = self.issued_by(stream, kind);
            if arrived(stream) < issued.bytes || !self.submits_each_operation(stream) {
                return 0;
            }
            // A short operation may have moved nothing.
            issued.ops.saturating_sub(self.short_operations(stream, kind))
        };
        sharers.into_iter().map(operations).fold(0, u64::saturating_add).saturating_sub(all.merges)
    }

    /// Returns the operations of a stream of the phase that moved fewer bytes than requested, over all runs.
    fn short_operations(&self, stream: usize, kind: Kind) -> u64 {
        let ends = self.runs.iter().flat_map(|ran| &ran.end.streams).filter(|end| end.stream == stream);
        ends.filter_map(|end| Some(end.issued.get(&kind)?.short)).fold(0, u64::saturating_add)
    }

    /// Whether another stream of the phase writes or trims. The final sync covers all streams.
    pub(crate) fn others_write(&self) -> bool {
        let mut others = self.others().filter_map(|s| self.stream_at(s));
        others.any(|s| s.changes_targets() && !s.does_nothing())
    }

    /// Returns the number of operations of the streams that share these layers, and an upper bound of the total time in
    /// ns that these operations spent in the layers. `None` if there is no bound: the page cache reads ahead and writes
    /// back at other times, or a kind of operation has no latencies.
    pub(crate) fn ops_and_time_of_sharers(&self, layers: &[&Layer]) -> Option<[f64; 2]> {
        let mut sum = [0.0; 2];
        let submitted = Kind::MOVING.map(|kind| (kind, self.submitted(kind)));
        for stream in self.sharers(layers) {
            if !self.stream_at(stream)?.cache.is_direct() {
                let moves = |kind| self.sharers_moving(layers, kind).contains(&stream);
                let is_idle = |(kind, all): &(Kind, Vec<Bounds>)| {
                    !moves(*kind) || self.submitted_to(stream, all, layers).most == 0
                };
                if !submitted.iter().all(is_idle) {
                    return None;
                }
                continue;
            }
            for end in self.runs.iter().flat_map(|r| &r.end.streams).filter(|s| s.stream == stream) {
                for (kind, issued) in end.issued.iter().filter(|(_, issued)| issued.ops > 0) {
                    let timed = end.kinds.get(kind)?;
                    let mean_ns = timed.open.as_ref().map_or(&timed.latency, |o| &o.service).mean_ns()?;
                    sum[0] += issued.ops as f64;
                    sum[1] += issued.ops as f64 * mean_ns;
                }
            }
        }
        Some(sum)
    }

    /// Whether another stream of the phase reads from this mount, or may read from it because a place is unknown.
    pub(crate) fn others_read_from(&self, mount_point: &str) -> bool {
        let on_it = |place: Option<&Place>| {
            place.is_none_or(|p| p.file_system.as_ref().is_some_and(|fs| fs.mount_point == mount_point))
        };
        let reads = |stream: &usize| self.stream_at(*stream).is_some_and(|s| s.access.reads());
        self.others().filter(reads).any(|s| self.places_of(s).any(on_it))
    }

    /// Returns the bytes that the other streams submitted to these layers, added up.
    pub(crate) fn submitted_by_sharers(&self, kind: Kind, layers: &[&Layer]) -> Bounds {
        let (sharers, submitted) = (self.sharers_moving(layers, kind), self.submitted(kind));
        sharers.iter().map(|s| self.submitted_to(*s, &submitted, layers)).fold(Bounds::exact(0), Bounds::plus)
    }

    /// Returns the bytes of a direction that the topmost devices moved for this stream, from start to stop of all runs.
    ///
    /// # Errors
    /// Why the devices were not counted.
    pub(crate) fn at_device(&self, kind: Kind) -> Known<Bounds> {
        let tops = self.top_layers()?;
        let done = flow_of(&self.top_io_of_all_streams()?, kind).bytes;
        let sharers = self.sharers_moving(&tops, kind);
        if sharers.is_empty() {
            return Ok(Bounds::exact(if kind == Kind::Read { self.delivered(done) } else { done }));
        }
        // For all streams together, the device read no more than the kernel charged.
        let charged = if kind == Kind::Read { self.charged_reads() } else { None };
        let done = charged.map_or(done, |charged| charged.min(done));
        let others = self.submitted_by_sharers(kind, &tops);
        let own = if kind == Kind::Write && !self.stream.cache.is_direct() {
            self.written_back()
        } else {
            self.submitted(kind).get(self.stream_index).copied()
        };
        let own = own.unwrap_or(Bounds::UNKNOWN);
        let metadata_bytes = self.metadata_bytes(kind);
        // The kernel counts a submission twice if it was refused and repeated. Counts above what
        // the devices moved are therefore no lower bounds.
        let most_in_all = (done as f64 * (1.0 + SAME_BYTES_WITHIN)) as u64;
        let is_certain = own.least.saturating_add(others.least) <= most_in_all.saturating_add(metadata_bytes);
        let (own_least, others_least) = if is_certain { (own.least, others.least) } else { (0, 0) };
        // Without charges, other programs may have read the rest.
        let rest =
            if kind == Kind::Read && charged.is_none() { 0 } else { self.least_left(kind, done, others) };
        let most = own.most.min(done.saturating_sub(others_least));
        Ok(Bounds { least: own_least.max(rest).min(most), most })
    }

    /// Returns the part of a device's bytes (`done`) that belongs to this stream even if the other streams and the file
    /// systems moved as much as they can.
    pub(crate) fn least_left(&self, kind: Kind, done: u64, others: Bounds) -> u64 {
        let theirs = if kind == Kind::Write {
            amplified(others.most)
        } else {
            others.most.saturating_add((others.most as f64 * SAME_BYTES_WITHIN) as u64)
        };
        done.saturating_sub(theirs).saturating_sub(self.metadata_bytes(kind))
    }

    /// Returns the bytes of metadata that file systems may have moved in all runs.
    fn metadata_bytes(&self, kind: Kind) -> u64 {
        let per_run = if kind == Kind::Write { METADATA_WRITE_BYTES } else { METADATA_READ_BYTES };
        per_run.saturating_mul(self.runs.len() as u64)
    }

    /// Returns the bytes that a device read for fathom, out of `done` bytes of all reads: at most the bytes that the
    /// kernel charged to fathom, if the cgroup counts.
    fn delivered(&self, done: u64) -> u64 {
        let issued = self.issued(Kind::Read).bytes as f64;
        // The device read what fathom issued, so no other program read anything, even if the cgroup
        // counts less.
        if (done as f64 - issued).abs() <= SAME_BYTES_WITHIN * issued {
            return done;
        }
        let own = self.own_io().map(|own| own.bytes[0]).ok().or_else(|| self.charged_reads());
        own.map_or(done, |own| own.min(done))
    }

    /// Returns the bytes that all streams together read from the disks of this stream, as charged to fathom.
    /// `None` if the cgroup does not count.
    fn charged_reads(&self) -> Option<u64> {
        self.charged_reads_on(&self.shared_layers().ok()?)
    }

    /// Returns the bytes of reads that were charged to fathom on these layers, for all streams; `None` if the cgroup does
    /// not count.
    pub(crate) fn charged_reads_on(&self, layers: &[&Layer]) -> Option<u64> {
        self.with_sharers().own_io().ok()?;
        Some(self.charged_together(layers).ok()?.bytes[0])
    }

    /// Returns the bytes of a direction that the workers of each stream of the phase submitted to block devices.
    fn submitted(&self, kind: Kind) -> Vec<Bounds> {
        let count: fn(&ThreadIo) -> u64 =
            if kind == Kind::Read { |io| io.read_bytes } else { |io| io.write_bytes };
        let counted = self.counted_by_all_workers(count);
        let bounds_of = |(stream, counted): (usize, Bounds)| {
            let planned = self.stream_at(stream);
            let is_direct = planned.is_some_and(|s| s.cache.is_direct());
            match kind {
                Kind::Read if !is_direct => counted,
                Kind::Read => counted.at_most(self.issued_by(stream, kind).bytes),
                // The kernel counts a write through the page cache when the page becomes dirty, long before its write-back.
                _ if !is_direct => Bounds::UNKNOWN,
                // A file system may send direct writes through the page cache. Pages that are still in the page cache
                // were not submitted yet.
                _ => {
                    let kept = self.new_pages(planned.map_or(&[][..], |s| &s.targets)).unwrap_or(u64::MAX);
                    let counted = counted.at_most(self.issued_by(stream, kind).bytes);
                    Bounds { least: counted.least.saturating_sub(kept), ..counted }
                }
            }
        };
        counted.into_iter().enumerate().map(bounds_of).collect()
    }

    /// Returns the bytes of pages of these targets that appeared or became dirty from start to stop of all runs; `None` if
    /// that is unknown.
    fn new_pages(&self, targets: &[usize]) -> Option<u64> {
        let states_at = |moment| self.states_of(targets, moment).ok();
        let (before, after) = (states_at(Moment::Start)?, states_at(Moment::Stop)?);
        let mut pairs = before.into_iter().flatten().zip(after.into_iter().flatten());
        pairs.try_fold(0_u64, |sum, (before, after)| {
            let new = new_page_bytes(before.pages.as_ref().ok()?, after.pages.as_ref().ok()?);
            Some(sum.saturating_add(new))
        })
    }

    /// Returns the bytes that a stream of the phase moved on these devices. `submitted` has the bytes that each
    /// stream submitted. If the stream also uses other devices, the lower bound is 0. If it reaches
    /// these devices only through layers above them, nothing is known.
    fn submitted_to(&self, stream: usize, submitted: &[Bounds], layers: &[&Layer]) -> Bounds {
        let is_listed = |layer: &Layer| layers.iter().any(|listed| listed.stat_file == layer.stat_file);
        let (mut uses_only_these, mut reaches_directly) = (true, true);
        for place in self.places_of(stream) {
            let Some(place) = place else { return Bounds::UNKNOWN };
            let mut tops = place.tops.iter().filter_map(|i| place.layers.get(*i));
            // Bytes for a partition go to its disk.
            let is_top_listed = |top: &Layer| is_listed(top) || is_listed(whole_disk(place, top));
            // A layer above a device may cache or multiply the bytes.
            reaches_directly &= tops.clone().any(is_top_listed) || !place.layers.iter().any(is_listed);
            uses_only_these &= tops.all(is_top_listed);
        }
        let all = submitted.get(stream).copied().unwrap_or(Bounds::UNKNOWN);
        match (uses_only_these, reaches_directly) {
            (true, _) => all,
            (false, true) => Bounds { least: 0, ..all },
            (false, false) => Bounds::UNKNOWN,
        }
    }

    /// Returns the kernel's count for the workers of a stream of the phase, over all runs. The upper bound includes the
    /// count of threads that belong to no worker.
    pub(crate) fn counted_by_workers(&self, stream: usize, count: fn(&ThreadIo) -> u64) -> Bounds {
        self.counted_by_all_workers(count).get(stream).copied().unwrap_or(Bounds::UNKNOWN)
    }

    /// Returns, for each stream of the phase, a counter of `/proc/.../io` added up over the stream's workers and over all
    /// runs. The upper bounds include threads that belong to no worker.
    fn counted_by_all_workers(&self, count: fn(&ThreadIo) -> u64) -> Vec<Bounds> {
        let none = if self.runs.is_empty() { None } else { Some(Bounds::exact(0)) };
        let mut sums = vec![none; self.stream_indices().len()];
        for ran in self.runs.iter() {
            let known = ran.end.workers.iter().filter(|worker| worker.stream < sums.len());
            let known = known.filter_map(|worker| Some(count(worker.io.as_ref().ok()?)));
            let all = known.fold(0, u64::saturating_add);
            let at = |moment| ThreadIo::parse(ran.snapshot(moment).ok()?.text("/proc/self/io").ok()?).ok();
            let process = at(Moment::Start).zip(at(Moment::Stop));
            let rest =
                process.map_or(u64::MAX, |(start, stop)| count(&stop.since(start)).saturating_sub(all));
            for (stream, sum) in sums.iter_mut().enumerate() {
                let workers = ran.end.workers.iter().filter(|worker| worker.stream == stream);
                let counts = workers.map(|worker| worker.io.as_ref().ok().map(count));
                let own = counts.reduce(|sum, own| Some(sum?.saturating_add(own?))).flatten();
                let bounds = own.map(|own| Bounds { least: own, most: own.saturating_add(rest) });
                *sum = sum.zip(bounds).map(|(sum, bounds)| sum.plus(bounds));
            }
        }
        sums.into_iter().map(|sum| sum.unwrap_or(Bounds::UNKNOWN)).collect()
    }

    /// Returns the bytes that this stream wrote into the page cache and that were written back before the runs stopped:
    /// the bytes that it dirtied, minus the bytes that are still dirty. `None` if that is unknown.
    fn written_back(&self) -> Option<Bounds> {
        let (start, stop) = (self.own_dirty_bytes(Moment::Start)?, self.own_dirty_bytes(Moment::Stop)?);
        let dirtied = self.counted_by_workers(self.stream_index, |io| io.write_bytes);
        let still_dirty = stop.saturating_sub(start);
        // A large folio counts as dirty as a whole if one of its pages is written, so less may have been written back.
        let issued = self.issued_by(self.stream_index, Kind::Write).bytes as f64;
        let by_page = dirtied.least as f64 <= (1.0 + SAME_BYTES_WITHIN) * issued;
        Some(Bounds {
            least: if by_page { dirtied.least.saturating_sub(still_dirty) } else { 0 },
            most: dirtied.most.saturating_sub(still_dirty),
        })
    }

    /// Returns the dirty bytes of the stream's own targets at a moment, added up over all runs; `None` if they
    /// are unknown, or another stream uses one of the targets through the page cache.
    pub(crate) fn own_dirty_bytes(&self, moment: Moment) -> Option<u64> {
        if self.shares_pages() {
            return None;
        }
        self.states(moment).ok()?.into_iter().flatten().try_fold(0_u64, |sum, state| {
            let pages = state.pages.as_ref().ok()?;
            Some(sum.saturating_add(pages.dirty?.saturating_mul(pages.page_bytes)))
        })
    }

    /// Returns the targets of the case, in the order of [`Case::states`], each with its index in the plan.
    pub(crate) fn targets(&self) -> &[(usize, &'a Target)] {
        &self.targets
    }

    /// Whether another stream of the phase uses one of this stream's targets through the page cache. Cached pages of
    /// the target may then belong to either stream.
    pub(crate) fn shares_pages(&self) -> bool {
        let others = self.others().filter_map(|s| self.stream_at(s));
        let through = others.filter(|s| !s.cache.is_direct() && !s.does_nothing());
        through.flat_map(|s| &s.targets).any(|t| self.targets.iter().any(|(own, _)| own == t))
    }
}

/// Returns the maximum number of bytes or requests that a file system with a journal writes to store this many.
pub(crate) fn amplified(bytes: u64) -> u64 {
    if bytes == u64::MAX { bytes } else { (bytes as f64 * AMPLIFICATION) as u64 }
}

/// Returns the bytes of pages of a target that appeared in the page cache or became dirty.
pub(crate) fn new_page_bytes(before: &Pages, after: &Pages) -> u64 {
    let dirty = after.dirty.unwrap_or(0).saturating_sub(before.dirty.unwrap_or(0));
    after.cached.saturating_sub(before.cached).max(dirty).saturating_mul(after.page_bytes)
}
