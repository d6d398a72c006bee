//! Prepared targets: the files and devices of the plan, ready to be opened by workers.
//!
//! 1. `OpenTarget::prepare` makes or opens each target once. `open_others` waits for the files of other hosts and writes
//!    this host's part of shared ones.
//! 2. Before a run: checks that the target is still the planned one and unused, evicts it, and
//!    waits until dirty pages are written back. For rows of `fathom layers` that read a device,
//!    finds the blocks in which the device stores the file, and proves them by their content.
//! 3. After a run: makes the writes stable.

use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live::{Live, RemainingTime};
use crate::run::Measurement;
use engine::source::{Pieces, own_blocks};
use machine::kept_file::Made;
use machine::root::Root;
use machine::test_file::TestFile;
use machine::{extents, kept_file, page_cache, safety};
use model::evidence::Moment;
use model::fleet::FleetRank;
use model::job::{Cache, OwnBlocks, Phase, Shared, Stream, TaskNumber};
use model::plan::{Common, MadeFor, Plan, Role, Target};
use model::record::{SyncFailure, SyncedBy, Trial, WorkerEnd};
use model::{Known, name};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A prepared target.
pub struct OpenTarget {
    target: Target,
    made: Option<TestFile>,
    /// Descriptor for checking pages, evicting and syncing; `None` if nothing is touched, or until another host has made the file.
    handle: Option<File>,
    bytes: u64,
    notes: Vec<String>,
    /// The parts that are read; `None` means all.
    pieces: Option<Pieces>,
    /// Whether the file existed and was empty before fathom filled it.
    found_empty: bool,
    /// Mark of a file that fathom made and keeps; `None` for other files. This must be the last field, because dropping it completes the
    /// mark after all other fields are closed.
    _writing: Option<machine::mark::Writing>,
}

impl OpenTarget {
    /// Makes or opens a target.
    ///
    /// # Errors
    /// Why the file cannot be made or opened.
    pub fn prepare(
        root: &Root,
        plan: &Plan,
        index: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Failure> {
        let mut target = plan.targets[index].clone();
        let path = &name::path(&target.path);
        let Made { mut writing, found_empty } =
            make_planned_file(root, plan.host_seed(), &mut target, stop, progress)?;
        let mut users = plan.streams().filter(|stream| stream.targets.contains(&index));
        if let Some(writing) = &mut writing
            && !users.any(|stream| stream.renews_file() || stream.moves_no_data())
        {
            writing.set_max_bytes(target.bytes);
        }
        let common = plan.common(index);
        let (made, handle) = match target.role {
            Role::None => (None, None),
            // Another host makes this file. It is opened when all hosts have made their files.
            Role::Made if common.is_some_and(|c| !plan.is_rank(c.maker)) => (None, None),
            Role::Made => {
                safety::check_planned_path(root, path, target.identity.as_ref())?;
                let made = match common {
                    Some(common) if target.made_for == MadeFor::All => {
                        TestFile::begin_common(path, &common.name, target.bytes)?
                    }
                    _ => {
                        let limit = Duration::from_nanos(plan.making_ns);
                        let common_name = common.map(|common| common.name.as_str());
                        TestFile::make(
                            path,
                            common_name,
                            target.bytes,
                            plan.host_seed(),
                            limit,
                            stop,
                            progress,
                        )?
                    }
                };
                let handle = made.file().try_clone().map_err(|e| refuse(path, &e))?;
                (Some(made), Some(handle))
            }
            // For writing, `safety` claims the device while the process lives, so that it cannot be mounted.
            Role::Device => {
                let planned = target.identity.as_ref();
                let file = safety::open_device(root, path, planned, target.writable, Cache::Buffered)?;
                (None, Some(file))
            }
            Role::File => {
                safety::check_planned_path(root, path, target.identity.as_ref())?;
                (None, Some(File::open(path).map_err(|e| refuse(path, &e))?))
            }
        };
        let mut notes = made.as_ref().map_or(Vec::new(), |made| made.notes().to_vec());
        if let Some(file) = handle.as_ref().filter(|_| target.role != Role::Made) {
            safety::check_planned_file(root, path, file, target.identity.as_ref())?;
            if target.writable {
                notes.extend(safety::refuse_users(root, path, file, target.unseen_users)?);
            }
        }
        notes.extend(
            target
                .other_names
                .iter()
                .map(|name| format!("{name} and {} are the same target, which is used once", target.path)),
        );
        let bytes = made.as_ref().map_or(target.bytes, TestFile::bytes);
        Ok(Self { target, made, handle, bytes, notes, pieces: None, found_empty, _writing: writing })
    }

    /// Opens a file that another host made. The error names the file and the host `maker` if the
    /// file is missing. `ended` is set if the measurement ends early.
    ///
    /// # Errors
    /// Why the file cannot be opened.
    pub fn find(&mut self, common: &Common, maker: &str, ended: &Arc<AtomicBool>) -> Result<(), Failure> {
        let path = &name::path(&self.target.path);
        let made = TestFile::open_common(path, &common.name, maker, ended)?;
        self.handle = Some(made.file().try_clone().map_err(|e| refuse(path, &e))?);
        self.bytes = made.bytes();
        self.made = Some(made);
        Ok(())
    }

    /// Writes this host's parts of a shared file.
    ///
    /// # Errors
    /// Why the parts cannot be written.
    pub fn fill_parts(
        &mut self,
        parts: impl Iterator<Item = Range<u64>>,
        total: u64,
        seed: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Failure> {
        let Some(made) = &mut self.made else { return Ok(()) };
        Ok(made.fill_parts(parts, total, seed, stop, progress)?)
    }

    /// Inspects a shared file after all hosts have written it.
    pub fn check_storage(&mut self) {
        if let Some(made) = &mut self.made {
            made.check_storage();
            self.notes.extend(made.notes().iter().cloned());
        }
    }

    /// Alignment of offsets and lengths that direct I/O to the target needs, in bytes.
    pub fn align(&self) -> u32 {
        self.target.block_bytes
    }

    /// Usable bytes.
    pub fn bytes(&self) -> u64 {
        self.pieces.as_ref().map_or(self.bytes, Pieces::bytes)
    }

    /// Restricts reads to these pieces. Streams address the pieces as one contiguous range.
    pub fn read_at(&mut self, pieces: Pieces) {
        self.pieces = Some(pieces);
    }

    /// The pieces that are read; `None` means all bytes.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.pieces.as_ref()
    }

    /// Notes made while the target was prepared.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The descriptor for checking pages, evicting and syncing; `None` if nothing is touched or the file is not open yet.
    pub fn handle(&self) -> Option<&File> {
        self.handle.as_ref()
    }

    /// Checks that the target may still be read or written: its path leads to the planned file, and, for a write, no process has begun to
    /// use it. Files that fathom made need no check. Users that cannot be detected were reported at the preparation.
    ///
    /// # Errors
    /// If the path leads elsewhere or nowhere, another process uses the target, or this cannot be determined any more.
    pub fn may_be_used(&self, root: &Root, write: bool) -> Result<(), Failure> {
        // A file that fathom made remains the same while it is open, even if its name changes.
        if matches!(self.target.role, Role::Made | Role::None) {
            return Ok(());
        }
        let path = &name::path(&self.target.path);
        safety::check_planned_path(root, path, self.target.identity.as_ref())?;
        if let Some(file) = self.handle.as_ref().filter(|_| write) {
            safety::refuse_new_users(root, path, file, self.target.unseen_users)?;
        }
        Ok(())
    }

    /// Locks a target that fathom did not make, as long as this process has it open. With `is_shared`, other processes may
    /// lock it in the same way. Does nothing on file systems without locks.
    ///
    /// # Errors
    /// If another process has locked it.
    pub fn lock(&self, is_shared: bool) -> Result<(), Failure> {
        let Some(file) = self.handle.as_ref().filter(|_| self.target.role != Role::Made) else {
            return Ok(());
        };
        let how = if is_shared {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        match flock(file, how) {
            Err(Errno::WOULDBLOCK) => Err(Failure::Refused(format!(
                "{} is in use (locked by another program), so it is not written; name another target",
                self.target.path
            ))),
            _ => Ok(()),
        }
    }

    /// Opens the target again for a worker.
    ///
    /// # Errors
    /// Why it cannot be opened: no direct I/O, no write permission, or replaced by something else.
    pub fn open(&self, root: &Root, cache: Cache, write: bool) -> Result<File, Failure> {
        self.try_open(root, cache, write)?
            .map_err(|e| refuse_flags(&name::path(&self.target.path), cache, &e))
    }

    /// Returns whether the target cannot be opened for writing in this cache mode because it has no direct I/O.
    ///
    /// # Errors
    /// As [`Self::open`], if the target cannot be opened for another reason.
    pub fn refuses_direct(&self, root: &Root, cache: Cache) -> Result<bool, Failure> {
        match self.try_open(root, cache, true)? {
            Ok(_) => Ok(false),
            Err(e) if is_direct_refusal(cache, &e) => Ok(true),
            Err(e) => Err(refuse_flags(&name::path(&self.target.path), cache, &e)),
        }
    }

    /// Opens the target in a cache mode. The inner error is the one of `open(2)`.
    fn try_open(&self, root: &Root, cache: Cache, write: bool) -> Result<io::Result<File>, Failure> {
        let path = &name::path(&self.target.path);
        if write && !self.target.writable {
            return Err(Failure::Refused(format!("{} was planned for reading only", name::shown(path))));
        }
        let planned = self.target.identity.as_ref();
        if let Some(made) = &self.made {
            return Ok(made.reopen(cache, write));
        }
        if self.target.role == Role::Device {
            return Ok(Ok(safety::open_device(root, path, planned, write, cache)?));
        }
        safety::check_planned_path(root, path, planned)?;
        let opened = safety::open_file(path, write, cache);
        if let Ok(file) = &opened {
            safety::check_planned_file(root, path, file, planned)?;
        }
        Ok(opened)
    }
}

/// Makes the file that the plan creates, if it creates one, and reads the identity of the new file. Marks a file that fathom made as being
/// written.
fn make_planned_file(
    root: &Root,
    seed: u64,
    target: &mut Target,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Made, Failure> {
    let path = &name::path(&target.path);
    let Some(create) = target.create else {
        let may_be_ours = target.role == Role::File && target.writable;
        let writing = may_be_ours.then(|| machine::mark::Writing::begin(path)).flatten();
        if target.only_by_mark && writing.is_none() {
            return Err(Failure::Refused(format!(
                "{}: not overwritten: fathom could not renew its mark on this file, perhaps because another program has just written to it; type --destroy={} to overwrite the file",
                name::shown(path),
                name::quoted(&target.path)
            )));
        }
        return Ok(Made { writing, found_empty: false });
    };
    // At the path is either no file, or the one that the plan found.
    let kept = kept_file::make(root, path, create, target.identity.as_ref(), seed, stop, progress)?;
    let made = machine::identity::from_path(path).map_err(|e| refuse(path, &e))?;
    target.identity = Some(machine::stack::with_identifiers(root, made));
    Ok(kept)
}

impl Drop for OpenTarget {
    fn drop(&mut self) {
        let path = &name::path(&self.target.path);
        let planned = self.target.identity.as_ref();
        let is_planned = |now: io::Result<model::machine::Identity>| {
            now.is_ok_and(|now| planned.is_some_and(|p| p.is_same(&now)))
        };
        let is_removed = self.target.create.is_some_and(|create| create.unlink);
        if is_removed && is_planned(machine::identity::from_path(path)) {
            // If removal fails, the file remains, and a later invocation may use it. A file that was empty before fathom filled it remains,
            // empty.
            let _ = if self.found_empty {
                File::options().write(true).open(path).and_then(|file| {
                    // The path may be another file by now.
                    if is_planned(machine::identity::from_file(&file)) { file.set_len(0) } else { Ok(()) }
                })
            } else {
                std::fs::remove_file(path)
            };
        }
    }
}

fn refuse(path: &Path, error: &io::Error) -> Failure {
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {}", sys::error_advice::other_owner_advice()),
        _ => sys::cause(error).to_owned(),
    };
    Failure::Refused(format!("{} cannot be opened: {error}{fix}", name::shown(path)))
}

/// Whether an open failed because the file system has no direct I/O.
fn is_direct_refusal(cache: Cache, error: &io::Error) -> bool {
    let refusals = [Errno::INVAL, Errno::OPNOTSUPP].map(Errno::raw_os_error);
    cache.is_direct() && error.raw_os_error().is_some_and(|errno| refusals.contains(&errno))
}

/// Describes why a target cannot be opened in a cache mode.
pub(crate) fn refuse_flags(path: &Path, cache: Cache, error: &io::Error) -> Failure {
    if is_direct_refusal(cache, error) {
        return Failure::Refused(format!(
            "{}: its file system refuses direct I/O ({error}); type --cache buffered, which measures the \
             page cache",
            name::shown(path)
        ));
    }
    refuse(path, error)
}

/// Longest wait for write-back before a run.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

impl Measurement {
    /// Checks that the targets of a phase are still the planned ones, and that no other process has begun to use a target that the phase
    /// writes.
    pub(crate) fn targets_may_be_used(&self, phase: &Phase) -> Result<(), Failure> {
        for (index, ready) in self.targets.iter().enumerate() {
            if phase.streams.iter().any(|stream| stream.targets.contains(&index)) {
                ready.may_be_used(&self.root, is_changed(phase, index))?;
            }
        }
        Ok(())
    }

    /// Prepares the page cache before a cold run of `job`, or of all jobs if `job` is `None`:
    /// evicts the targets, and waits for write-back. Returns notes about what failed. Does nothing
    /// if runs are not cold.
    pub(crate) fn evict_and_wait(&mut self, job: Option<usize>) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.plan.cold {
            return notes;
        }
        for (index, ready) in self.targets.iter().enumerate() {
            let target = &self.plan.targets[index];
            // Reads by other hosts must not come from this host's cache either.
            let by_others = self.plan.common(index).is_some();
            if job.is_some_and(|j| !self.plan.jobs[j].touches(index)) && !by_others {
                continue;
            }
            // The remaining pages of a device that is only read belong to its file system.
            let has_file_system_pages = target.role == Role::Device && !target.writable;
            let Some(handle) = ready.handle() else { continue };
            if let Err(why) = page_cache::write_back(handle) {
                notes.push(format!(
                    "the dirty data of the file system of {} could not be written back: {why}",
                    target.path
                ));
            }
            match page_cache::evict(handle) {
                Ok(pages) if pages.cached > 0 && !has_file_system_pages => {
                    let stayed = pages.cached;
                    notes.push(format!("pages of {} that remained in the page cache: {stayed}", target.path));
                }
                Ok(_) => {}
                Err(why) => notes.push(format!("it is unknown whether {} was evicted: {why}", target.path)),
            }
        }
        notes.extend(page_cache::settle(&self.root, SETTLE_LIMIT, &self.stop).note());
        notes
    }

    /// Makes the writes of a phase stable.
    pub(crate) fn sync_targets(
        &mut self,
        phase: &Phase,
        opened: Instant,
        workers: &[WorkerEnd],
        notes: &mut Vec<String>,
    ) -> Result<SyncOutcome, Failure> {
        let start = last_completion(opened, workers);
        let mut synced = false;
        let mut failures = Vec::new();
        // A target that is only read may be on a file system that has no sync, such as squashfs.
        for (target, ready) in self.targets.iter().enumerate().filter(|(at, _)| is_changed(phase, *at)) {
            let Some(handle) = ready.handle() else { continue };
            synced = true;
            if let Err(e) = handle.sync_data() {
                notes.push(format!("the final sync of {} failed: {e}", self.path_of(target)));
                let errno = e.raw_os_error().unwrap_or(0);
                failures.push(SyncFailure { target, call: SyncedBy::FinalSync, errno });
            }
        }
        for (target, errno) in self.close_errors.take() {
            let failure = SyncFailure { target, call: SyncedBy::Close, errno };
            if !failures.contains(&failure) {
                let path = self.path_of(target);
                notes.push(format!("closing {path} failed: {}", io::Error::from_raw_os_error(errno)));
                failures.push(failure);
            }
        }
        // If no target has a file, nothing was synced, and the engine's clock may differ from the machine's.
        let took = if synced { start.elapsed().as_nanos() as u64 } else { 0 };
        self.store_snapshot(Moment::Synced, Some(phase))?;
        Ok(SyncOutcome { took_ns: failures.is_empty().then_some(took), failures })
    }

    /// The path of a target, as the plan has it.
    pub(crate) fn path_of(&self, target: usize) -> &str {
        self.plan.targets.get(target).map_or("a target", |target| target.path.as_str())
    }
}

/// The outcome of the sync after a phase.
#[derive(Default)]
pub(crate) struct SyncOutcome {
    /// Time from the last completion until all writes were stable, in ns; 0 if nothing was synced,
    /// `None` after a failure. It includes the time in which workers end and counters are read,
    /// because dirty pages reach the device meanwhile.
    pub(crate) took_ns: Option<u64>,
    /// Failed syncs, and failed closes of the workers' files.
    pub(crate) failures: Vec<SyncFailure>,
}

/// Returns whether a phase changes a target.
fn is_changed(phase: &Phase, target: usize) -> bool {
    phase.streams.iter().any(|stream| stream.changes_targets() && stream.targets.contains(&target))
}

/// Returns when the last worker ended. This may be in the future if the workers' clock differs from the machine's.
fn last_completion(opened: Instant, workers: &[WorkerEnd]) -> Instant {
    let wall_ns = workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
    opened.checked_add(Duration::from_nanos(wall_ns)).unwrap_or(opened)
}

/// Shows the time that the session has `left` or, if that is unknown, the progress of a step that began at `since`.
pub(super) fn show_progress(live: &Live, left: Option<RemainingTime>, since: Instant, done: u64, total: u64) {
    match left {
        Some(left) => live.tick(left),
        None => live.tick_step(done, total, RemainingTime::by(since, done, total)),
    }
}

/// Opens the files of other hosts, and writes this host's parts of shared ones. Shows `left`, the
/// remaining time of the session, if known.
pub(crate) fn open_others(
    plan: &Plan,
    targets: &mut [OpenTarget],
    fleet: &Fleet,
    stop: &Arc<AtomicBool>,
    live: &Live,
    left: Option<RemainingTime>,
) -> Result<(), Failure> {
    let named = |at: usize| Some((at, plan.common(at)?));
    let common: Vec<(usize, &Common)> = (0..plan.targets.len()).filter_map(named).collect();
    if common.is_empty() {
        return Ok(());
    }
    let interrupted = |why: Failure| if stop.load(Ordering::Relaxed) { Failure::Interrupted } else { why };
    live.step_of("waiting for the test files of the other hosts", left);
    fleet.all_made()?;
    for (at, file) in common.iter().filter(|(_, file)| !plan.is_rank(file.maker)) {
        targets[*at].find(file, &fleet.name(file.maker), stop).map_err(interrupted)?;
    }
    let shared: Vec<usize> =
        common.iter().map(|c| c.0).filter(|at| plan.targets[*at].made_for == MadeFor::All).collect();
    for at in &shared {
        let parts = parts(plan, *at)?;
        let total = parts.iter().map(Parts::bytes).sum();
        live.step_of(&format!("writing this host's part of {}", plan.targets[*at].path), left);
        let since = Instant::now();
        let mut progress = |done: u64, total: u64| show_progress(live, left, since, done, total);
        let places = parts.into_iter().flat_map(Parts::places);
        targets[*at].fill_parts(places, total, plan.host_seed(), stop, &mut progress).map_err(interrupted)?;
    }
    if shared.is_empty() {
        return Ok(());
    }
    // A part that is not written yet would be a hole.
    live.step_of("waiting for the other hosts' parts of the test file", left);
    fleet.all_made()?;
    for at in shared {
        targets[at].check_storage();
    }
    Ok(())
}

/// Bytes of a file that this host writes.
enum Parts {
    /// The blocks of a worker, and the offset in the file to which they are relative.
    Blocks(OwnBlocks, u64),
    /// Bytes that belong to no worker.
    Rest(Range<u64>),
}

impl Parts {
    fn bytes(&self) -> u64 {
        match self {
            Self::Blocks(blocks, _) => blocks.bytes(),
            Self::Rest(rest) => rest.end - rest.start,
        }
    }

    fn places(self) -> Box<dyn Iterator<Item = Range<u64>>> {
        match self {
            Self::Blocks(blocks, base) => {
                Box::new(blocks.places().map(move |place| base + place.start..base + place.end))
            }
            Self::Rest(rest) => Box::new(std::iter::once(rest)),
        }
    }
}

/// The parts of a shared file that this host writes: the parts of its workers in the first stream
/// that shares the file, or the whole file if no stream does. The first host also writes the bytes
/// before and after all parts.
fn parts(plan: &Plan, target: usize) -> Result<Vec<Parts>, Failure> {
    let sharing = |s: &&Stream| s.shared.is_some() && s.targets.contains(&target);
    let bytes = plan.targets[target].bytes;
    let Some((stream, shared)) = plan.streams().find(sharing).and_then(|s| Some((s, s.shared?))) else {
        return Ok(vec![Parts::Rest(0..bytes)]);
    };
    stream_parts(
        stream,
        shared,
        bytes,
        plan.fleet_rank.unwrap_or(FleetRank { rank: 0, hosts: 1, neighbours: 0 }),
    )
    .map_err(Failure::Usage)
}

/// Returns the parts of a shared file that a host writes.
fn stream_parts(stream: &Stream, shared: Shared, bytes: u64, part: FleetRank) -> Result<Vec<Parts>, String> {
    let (workers, base) = (u64::from(stream.workers), stream.access.offset_bytes.min(bytes));
    let tasks = u64::from(part.hosts) * workers;
    let span = (bytes - base).min(stream.access.span_bytes);
    let mut parts = Vec::new();
    let mut whole = 0;
    for worker in 0..workers {
        let task = TaskNumber { index: u64::from(part.rank) * workers + worker, count: tasks };
        let own = own_blocks(stream, shared, span, task)?;
        whole = own.bytes() * tasks;
        parts.push(Parts::Blocks(own, base));
    }
    if part.rank == 0 {
        parts.extend([Parts::Rest(0..base), Parts::Rest(base + whole..bytes)]);
    }
    Ok(parts)
}

impl Measurement {
    /// Finds the blocks of every layer that needs them. Returns a trial with the reason for each layer
    /// for which this fails.
    pub(crate) fn unplaced_layers(&mut self) -> Vec<Trial> {
        let Some(comparison) = self.plan.study.layers() else { return Vec::new() };
        let jobs: Vec<usize> = comparison.layers.iter().filter(|r| r.stored).map(|r| r.job).collect();
        let trial = |job: usize, why: String| Trial {
            job,
            moved_bytes: Err(why.clone()),
            refusal: None,
            calls: Err(why),
        };
        jobs.into_iter().filter_map(|job| Some(trial(job, self.place_layer(job).err()?))).collect()
    }

    /// Finds the blocks to read on a layer below the file. Returns a description of them; `None` for a job that reads the file itself.
    pub(crate) fn place_layer(&mut self, job: usize) -> Known<Option<String>> {
        let Some(comparison) = self.plan.study.layers() else { return Ok(None) };
        if !comparison.layers.iter().any(|r| r.job == job && r.stored) {
            return Ok(None);
        }
        let target_of = |job: usize| Some(*self.plan.jobs.get(job)?.streams().next()?.targets.first()?);
        let above = comparison.layers.iter().find(|r| !r.stored).and_then(|r| target_of(r.job));
        let above = above.ok_or("no file on this device is measured, so there are no blocks to read")?;
        let below = target_of(job).ok_or("the row has no target")?;
        let (upper, lower) = (&self.targets[above], &self.targets[below]);
        let handle = upper.handle().ok_or("the file on this device is not open")?;
        let (Some(place), Some(device)) = (self.places.get(above), self.places.get(below)) else {
            return Err("the place of the file or of the device in the stack is unknown".into());
        };
        let number = device.tops.first().and_then(|t| device.layers.get(*t)).map(|l| &l.number);
        let layer = place
            .layers
            .iter()
            .position(|l| Some(&l.number) == number)
            .ok_or("the device is no longer in the stack")?;
        let access = &self.plan.jobs[job].phases[0].streams[0].access;
        let span = access.span_bytes.min(upper.bytes());
        let found = extents::locate_pieces(&self.root, place, handle, span, layer)?;
        let open = lower.open(&self.root, Cache::Direct, false).map_err(|e| e.message().to_owned())?;
        extents::verify_pieces(handle, &open, &found, lower.align())?;
        let largest = access.largest_bytes();
        let pieces = Pieces::new(found.iter().map(|p| p.physical..p.physical + p.bytes), largest);
        if pieces.bytes() == 0 {
            return Err("no block fits into any extent of the file".into());
        }
        self.targets[below].read_at(pieces);
        Ok(Some(format!(
            "this row reads the blocks of the file that the rows above read: {}",
            extents::describe_pieces(&found)
        )))
    }

    /// Reads blocks into the page cache: those of a job that shows the effect of the cache, and
    /// those of streams with fio's `pre_read`. Returns the reason for each target that could not be
    /// read.
    pub(crate) fn warm(&self, job: usize) -> Vec<String> {
        let layers = self.plan.study.layers();
        let shows_cache = layers.is_some_and(|all| all.layers.iter().any(|r| r.job == job && r.warm));
        let typed = |phase: usize, stream: usize| self.plan.typed.as_ref()?.phases.get(phase)?.get(stream);
        let is_read =
            |phase, stream| shows_cache || typed(phase, stream).is_some_and(|typed| typed.pre_reads);
        let phases = self.plan.jobs[job].phases.iter().enumerate();
        let streams = phases.flat_map(|(at, phase)| {
            phase.streams.iter().enumerate().filter(move |(stream, _)| is_read(at, *stream))
        });
        let fill = |target: &usize, access: &model::job::Access| {
            let handle = self.targets.get(*target)?.handle()?;
            page_cache::fill(handle, access.offset_bytes, access.span_bytes, &self.stop).err()
        };
        streams.flat_map(|(_, s)| s.targets.iter().filter_map(move |t| fill(t, &s.access))).collect()
    }
}

#[test]
fn a_marked_file_is_refused_after_another_program_wrote_it() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = dir.path().join("data");
    std::fs::write(&path, "of another program").unwrap_or_else(|e| panic!("{e}"));
    let new = Target::new(name::text(&path), Role::File, 18);
    let mut target = Target { writable: true, only_by_mark: true, ..new };
    let prepared = |target: &mut Target| {
        make_planned_file(&Root::real(), 0, target, &AtomicBool::new(false), &mut |_, _| ()).map(|_| ())
    };
    assert!(prepared(&mut target).is_err_and(|why| why.message().contains("--destroy")));
    target.only_by_mark = false;
    assert!(prepared(&mut target).is_ok());
}

#[test]
fn only_targets_of_writing_streams_are_changed() {
    use model::job::{Access, Pattern};
    let stream = |read_percent, targets: &[usize]| {
        let access = Access::plain(Pattern::Random, 4096, read_percent);
        Stream { targets: targets.to_vec(), ..Stream::plain(access, 1, 1, "sync") }
    };
    let streams = vec![stream(100, &[0, 1]), stream(0, &[1, 2])];
    let phase = Phase { warmup_ns: 0, time_ns: 1, cooldown_ns: 0, streams };
    assert_eq!([0, 1, 2, 3].map(|target| is_changed(&phase, target)), [false, true, true, false]);
}

#[test]
fn sync_time_begins_at_the_last_completion() {
    let worker = |wall_ns| WorkerEnd { wall_ns, ..WorkerEnd::default() };
    let opened = Instant::now();
    let last = last_completion(opened, &[worker(1_000_000), worker(3_000_000), worker(2_000_000)]);
    assert_eq!(last - opened, Duration::from_millis(3));
}

#[test]
fn all_hosts_write_each_byte_of_the_file_once() {
    use model::job::{Access, Layout, Pattern};
    let bytes = 1 << 20;
    for layout in [Layout::Segmented, Layout::Strided, Layout::Blocks(20_000)] {
        let mut stream = Stream::plain(Access::plain(Pattern::Sequential, 10_000, 100), 1, 3, "sync");
        (stream.access.offset_bytes, stream.access.span_bytes) = (70_000, u64::MAX);
        let mut written = vec![0_u8; bytes as usize];
        for rank in 0..2 {
            let part = FleetRank { rank, hosts: 2, neighbours: 0 };
            let parts = stream_parts(&stream, Shared { layout, passes: None }, bytes, part)
                .unwrap_or_else(|why| panic!("{why}"));
            for byte in parts.into_iter().flat_map(Parts::places).flatten() {
                written[byte as usize] += 1;
            }
        }
        assert!(written.iter().all(|times| *times == 1), "{layout:?}");
    }
}

#[test]
fn only_a_target_without_direct_io_refuses_it() {
    let error = |errno: Errno| io::Error::from(errno);
    assert!(is_direct_refusal(Cache::Direct, &error(Errno::INVAL)));
    assert!(is_direct_refusal(Cache::DirectSync, &error(Errno::OPNOTSUPP)));
    assert!(!is_direct_refusal(Cache::Buffered, &error(Errno::INVAL)));
    for errno in [Errno::MFILE, Errno::ROFS, Errno::ACCESS, Errno::NOSPC] {
        assert!(!is_direct_refusal(Cache::Direct, &error(errno)), "{errno}");
    }
    // A directory cannot be opened for writing, whatever the cache mode.
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let target = Target { writable: true, ..Target::new(name::text(dir.path()), Role::File, 0) };
    let ready = OpenTarget {
        target,
        made: None,
        handle: None,
        bytes: 0,
        notes: Vec::new(),
        pieces: None,
        found_empty: false,
        _writing: None,
    };
    let why = ready.refuses_direct(&Root::real(), Cache::Direct);
    assert!(why.as_ref().is_err_and(|why| why.message().contains("cannot be opened")), "{why:?}");
}
