//! A case: one stream of one job at one load, with all evidence that a check may read about it.
//!
//! Every count is the sum over the complete runs of the case: what fathom issued, what the kernel charged to fathom's cgroup, and what
//! the devices completed. A count that is missing comes with the reason. The checks judge the counts.

pub(crate) mod ledger;
mod sharing;

use crate::runs;
use ledger::charged_twice;
use model::Known;
use model::evidence::{
    BlockFlow, BlockStat, CgroupIo, Extents, IO_LIMIT_KINDS, LIMITS, Moment, Probe, Snapshot, TargetState,
    cgroup_v1, cgroup_v2, hides_outer_cgroups, unreadable_limits,
};
use model::fleet::FleetRank;
use model::histogram::Histogram;
use model::job::{Job, Kind, Sharing, Stream, SyncCall};
use model::machine::{Cgroup, FileSystem, Layer, LayerKind, Machine, Place};
use model::plan::{Role, Target};
use model::record::{Ceiling, OpenLoop, Record, Run, RunEnd, StreamEnd, SyncFailure, WorkerEnd};
use model::units::{show_count, show_share};
pub(crate) use sharing::{AMPLIFICATION, JOINING_ENGINE, amplified, new_page_bytes};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The bytes that a device moved and the issued bytes may differ by this share and still be the same I/O.
pub(crate) const SAME_BYTES_WITHIN: f64 = 0.01;

/// Minimum share of the bytes moved for fathom that the kernel must charge to fathom's cgroup. With a smaller share, the counters of the
/// cgroup are not used: with cgroup v1, recent kernels count only after a limit was once set on the disk.
pub(crate) const MIN_CHARGED_SHARE: f64 = 0.01;

/// One stream of one job with its complete runs. If the strategy chooses loads, the runs are those at one load.
#[derive(Clone)]
pub struct Case<'a> {
    /// The record with all runs and snapshots.
    pub record: &'a Record,
    /// The host that ran the job; `None` if the record has no host.
    pub machine: Option<&'a Machine>,
    /// Index of the job in the plan.
    pub job_index: usize,
    /// The load in operations per second that the strategy chose; `None` if the job sets its own pace.
    pub offered_iops: Option<u64>,
    /// The job, with the chosen load as its pace.
    pub job: Cow<'a, Job>,
    /// Index of the phase in the job.
    pub phase_index: usize,
    /// Index of the stream in the phase.
    pub stream_index: usize,
    /// The stream, with the chosen load as its pace.
    pub stream: Cow<'a, Stream>,
    /// Name of the case's result.
    pub name: String,
    /// The complete runs that the result is based on. [`Case::with_runs`] replaces them.
    pub runs: Arc<[CaseRun<'a>]>,
    /// Earlier complete runs that are no part of the result: before the steady state, or before the winner of a sweep was measured again.
    pub earlier_runs: Vec<CaseRun<'a>>,
    /// Attempts that a later attempt at the same run replaced.
    pub replaced_attempts: Vec<CaseRun<'a>>,
    /// Number of rounds measured with `--until steady`, if the last rounds are not steady; otherwise `None`.
    pub unsteady_rounds: Option<usize>,
    /// Ends of all runs of the case, including failed ones.
    pub ends: Vec<&'a RunEnd>,
    /// Indices of the streams whose operations are added up: the case's own stream, and after [`Case::with_sharers`]
    /// all streams that share its devices.
    members: Vec<usize>,
    /// The `stat` files that each stream of the phase uses, in the order of the streams; see [`sharing::UsedFiles`].
    used_files: Arc<[sharing::UsedFiles<'a>]>,
    /// The targets of the streams in `members`, each with its index in the plan.
    targets: Vec<(usize, &'a Target)>,
    sums: Sums,
}

/// Values over all runs of a case. Most checks need them, so each value is computed once: a session may have thousands of runs.
#[derive(Clone, Default)]
struct Sums {
    /// For each `iostats` file that was 0 at a snapshot, the first run with such a snapshot.
    switched_off: OnceCell<BTreeMap<String, u32>>,
    top_io_of_all_streams: OnceCell<Known<BlockStat>>,
    own_io: OnceCell<Known<CgroupIo>>,
    latencies: OnceCell<BTreeMap<Kind, Histogram>>,
}

/// Divides a part by the total; 0 if the total is 0.
pub(crate) fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}

/// Returns the counters of writes for writes, and those of reads for any other kind.
pub(crate) fn flow_of(stat: &BlockStat, kind: Kind) -> BlockFlow {
    if kind == Kind::Write { stat.write } else { stat.read }
}

/// Returns the index in the counts of a cgroup: 1 for writes, 0 for any other kind.
pub(crate) fn cgroup_slot(kind: Kind) -> usize {
    usize::from(kind == Kind::Write)
}

/// Returns the requested number of operations in flight of a stream. Computed in floating point, because the product
/// could overflow in a forged plan.
pub(crate) fn requested_depth(stream: &Stream) -> f64 {
    f64::from(stream.depth) * f64::from(stream.workers) * stream.lanes() as f64
}

/// Returns the cases of a record, in the order of the plan and of ascending load. Leaves out jobs that only other hosts
/// measured.
pub(crate) fn cases(record: &Record) -> Vec<Case<'_>> {
    let plan = &record.header.plan;
    (0..plan.jobs.len()).filter(|at| plan.participates(*at)).flat_map(|at| cases_of_job(record, at)).collect()
}

/// Returns the cases of one job.
pub(crate) fn cases_of_job(record: &Record, at: usize) -> Vec<Case<'_>> {
    let mut out = Vec::new();
    let loads = loads(record, at);
    for (phase, planned) in record.header.plan.jobs.get(at).iter().flat_map(|j| j.phases.iter().enumerate()) {
        for index in 0..planned.streams.len() {
            out.extend(loads.iter().filter_map(|load| Case::new(record, at, phase, index, *load)));
        }
    }
    out
}

/// Returns the loads at which a job ran, in ascending order. A single `None` for a job that sets its own pace, even if
/// it did not run. Empty if the strategy chooses the loads and did not run the job.
fn loads(record: &Record, at: usize) -> Vec<Option<u64>> {
    let runs = record.runs.iter().filter(|r| r.start.job == at);
    let mut loads: Vec<Option<u64>> = runs.map(|r| r.start.offered_iops).collect();
    loads.sort_unstable();
    loads.dedup();
    let has_chosen_loads = record.header.plan.study.latency_target().is_some() && at > 0;
    if loads.is_empty() && !has_chosen_loads {
        loads.push(None);
    }
    loads
}

/// Returns the job with this load as its pace. In a session of one of several hosts, the pace is the host's part of the
/// load.
fn job_at_load<'r>(record: &'r Record, job: &'r Job, load: Option<u64>) -> Cow<'r, Job> {
    let Some(load) = load else { return Cow::Borrowed(job) };
    let is_merged = record.fleet.is_some();
    let iops = if is_merged { load as f64 } else { record.header.plan.host_load(load) };
    let mut job = job.clone();
    job.streams_mut().for_each(|s| s.pace = s.pace.offering(iops));
    Cow::Owned(job)
}

/// Whether the machine refused the job of a case before the first run.
pub(crate) fn is_refused(record: &Record, case: &Case) -> bool {
    record
        .header
        .self_test
        .trials
        .iter()
        .any(|trial| trial.job == case.job_index && trial.moved_bytes.is_err())
}

impl<'a> Case<'a> {
    fn new(record: &'a Record, at: usize, phase: usize, index: usize, offered: Option<u64>) -> Option<Self> {
        let plan = &record.header.plan;
        let job = job_at_load(record, plan.jobs.get(at)?, offered);
        let streams = &plan.jobs.get(at)?.phases.get(phase)?.streams;
        let rounds = runs::rounds_that_count(record, at);
        let first = rounds.as_ref().map_or(0, |r| r.first_run);
        let same_load = |r: &&Run| r.start.offered_iops == offered;
        let case_run = |run| CaseRun::new(run, index, streams, plan.fleet_rank);
        let all = record.complete_runs(at, phase).filter(same_load).filter_map(case_run);
        let (runs, earlier_runs): (Vec<CaseRun>, Vec<CaseRun>) =
            all.partition(|r| r.run.start.repeat >= first);
        let replaced = record.uncounted_runs.iter().filter(|r| (r.start.job, r.start.phase) == (at, phase));
        let replaced_attempts = replaced.filter(same_load).filter_map(case_run).collect();
        let host = runs.first().map_or(0, |r| r.run.start.host);
        let machine = record.header.hosts.get(host);
        let stream = match &job {
            Cow::Borrowed(_) => Cow::Borrowed(streams.get(index)?),
            Cow::Owned(job) => Cow::Owned(job.phases.get(phase)?.streams.get(index)?.clone()),
        };
        let name = offered.map_or_else(|| job.name.clone(), |iops| load_name(record, iops));
        Some(Self {
            record,
            machine,
            job_index: at,
            offered_iops: offered,
            phase_index: phase,
            stream_index: index,
            stream,
            name: name + &job.stream_suffix(phase, index),
            job,
            runs: runs.into(),
            earlier_runs,
            replaced_attempts,
            unsteady_rounds: rounds.and_then(|r| r.unsteady_rounds),
            ends: record.runs_of(at, phase).filter(same_load).filter_map(|r| r.end.as_ref()).collect(),
            members: vec![index],
            used_files: streams.iter().map(|s| sharing::files_used_by(record, machine, s)).collect(),
            targets: targets_of(record, streams.get(index)),
            sums: Sums::default(),
        })
    }

    /// Returns this case with its last run counted as complete. `None` if the case has a complete run, or if the last run
    /// has no end of this stream.
    pub(crate) fn with_cut_run(&self) -> Option<Self> {
        if !self.runs.is_empty() {
            return None;
        }
        let plan = &self.record.header.plan;
        let streams = &plan.jobs.get(self.job_index)?.phases.get(self.phase_index)?.streams;
        let same_load = |r: &&Run| r.start.offered_iops == self.offered_iops;
        let last = self.record.runs_of(self.job_index, self.phase_index).filter(same_load).last()?;
        Some(self.with_runs([CaseRun::new(last, self.stream_index, streams, plan.fleet_rank)?]))
    }

    /// Returns this case with these runs instead of its own.
    pub(crate) fn with_runs(&self, runs: impl Into<Arc<[CaseRun<'a>]>>) -> Self {
        Self { runs: runs.into(), sums: Sums::default(), ..self.clone() }
    }

    /// Returns the syncs and closes that failed after a run, for the targets that this stream writes.
    pub(crate) fn sync_failures<'e>(&self, end: &'e RunEnd) -> impl Iterator<Item = &'e SyncFailure> {
        let written = if self.stream.changes_targets() { self.stream.targets.clone() } else { Vec::new() };
        end.sync_failures.iter().filter(move |failure| written.contains(&failure.target))
    }

    /// Returns why io_uring is denied on this machine. `None` if it is not denied, or if that was not recorded.
    pub fn io_uring_denial(&self) -> Option<&'a str> {
        let cause = self.machine?.fact(model::evidence::IO_URING).ok()?;
        (!cause.is_empty()).then_some(cause)
    }

    /// Whether the operations move data to or from storage.
    pub fn has_storage(&self) -> bool {
        let moves = !self.stream.does_nothing() && !self.stream.moves_no_data();
        moves && self.targets.iter().any(|(_, t)| t.role != Role::None)
    }

    /// Whether a target is storage other than memory, as far as known. If only some targets are, the counters of devices
    /// do not cover the others, and [`Case::top_layers`] fails.
    pub fn on_device(&self) -> bool {
        self.has_storage() && !self.is_in_memory()
    }

    /// Whether every target is known to be memory.
    pub fn is_in_memory(&self) -> bool {
        let mut places = self.places().peekable();
        places.peek().is_some() && places.all(|place| place.ram.is_some())
    }

    /// Returns the reason why a target is memory; `None` if no target is known to be memory.
    pub fn memory_reason(&self) -> Option<&'a str> {
        self.places().find_map(|p| p.ram.as_deref())
    }

    /// Whether the streams of the case do operations of this kind.
    pub fn does(&self, kind: Kind) -> bool {
        self.member_streams().iter().any(|s| s.kinds().any(|k| k == kind))
    }

    /// Whether the stream writes and makes its writes stable. Then the device gets requests of the journal in addition
    /// to the operations.
    pub fn syncs(&self) -> bool {
        self.does(Kind::Write) && (self.stream.cache.is_sync() || self.calls_sync())
    }

    /// Whether the stream makes sync calls, its own or those of the load that it replays.
    pub(crate) fn calls_sync(&self) -> bool {
        self.stream.kinds().any(|kind| kind == Kind::Sync)
    }

    /// Whether every target is a block device.
    pub fn on_block_devices(&self) -> bool {
        self.targets.iter().all(|(_, t)| t.role == Role::Device)
    }

    /// Returns the known places of the targets.
    pub fn places(&self) -> impl Iterator<Item = &'a Place> {
        let machine = self.machine;
        self.targets.iter().filter_map(move |(t, _)| machine?.places.get(*t))
    }

    /// The file system of each target, or why it is unknown. Leaves out targets that are devices.
    pub(crate) fn file_systems(&self) -> Vec<Known<&'a FileSystem>> {
        let file_system_of = |(at, target): &(usize, &Target)| {
            let place = self.machine.and_then(|m| m.places.get(*at));
            let place = place
                .ok_or_else(|| format!("the record does not contain the file system of {}", target.path))?;
            let unknown = || format!("the file system of {} is unknown", place.path);
            let why_unknown = || place.unresolved_reason.clone().unwrap_or_else(unknown);
            place.file_system.as_ref().ok_or_else(why_unknown)
        };
        let files = self.targets.iter().filter(|(_, t)| !matches!(t.role, Role::Device | Role::None));
        files.map(file_system_of).collect()
    }

    /// The topmost block layers, each once.
    ///
    /// # Errors
    /// Why a target has no layer, why the counters of a layer are invalid, or that a target lies on the layer of another.
    pub fn top_layers(&self) -> Known<Vec<&'a Layer>> {
        self.separate_layers(|place| place.tops.iter().filter_map(|i| place.layers.get(*i)).collect())
    }

    /// Returns the layers that other processes may use too: the topmost layers, or the whole disk of a partition.
    ///
    /// # Errors
    /// Why a target has no layer, why the counters of a layer are invalid, or that a target lies on the layer of another.
    pub fn shared_layers(&self) -> Known<Vec<&'a Layer>> {
        self.separate_layers(|place| {
            let tops = place.tops.iter().filter_map(|i| place.layers.get(*i));
            tops.map(|top| whole_disk(place, top)).collect()
        })
    }

    /// [`Case::layers_with_counters`] whose counters may be added up, because no layer does the work of another one.
    fn separate_layers(&self, select: impl Fn(&'a Place) -> Vec<&'a Layer>) -> Known<Vec<&'a Layer>> {
        let layers = self.layers_with_counters(select)?;
        // Several streams are added up by the kernel's charges, which count an operation on both layers too.
        if self.members.len() == 1 {
            self.need_separate_targets()?;
        }
        Ok(layers)
    }

    /// Fails if a target lies on the topmost layer of another one, such as a loop device whose image is on the disk of
    /// another target.
    pub fn need_separate_targets(&self) -> Known<()> {
        let tops_of = |place: &'a Place| place.tops.iter().filter_map(|i| place.layers.get(*i));
        let is_among =
            |layer: &Layer, others: &[&Layer]| others.iter().any(|o| o.stat_file == layer.stat_file);
        let tops: Vec<&Layer> = self.places().flat_map(tops_of).collect();
        for place in self.places() {
            let own: Vec<&Layer> = tops_of(place).collect();
            let is_shared = |layer: &&Layer| is_among(layer, &tops) && !is_among(layer, &own);
            if let Some(layer) = place.layers.iter().find(is_shared) {
                return Err(format!(
                    "{} lies on {}, which is also the device of another target: its counters include the \
                     operations of both",
                    place.path, layer.name
                ));
            }
        }
        Ok(())
    }

    /// Returns the lowest layers, each once.
    ///
    /// # Errors
    /// Why a target has no layer, which part of its stack is unknown, or why the counters of a layer are invalid.
    pub fn lowest_layers(&self) -> Known<Vec<&'a Layer>> {
        self.need_resolved_stack()?;
        self.layers_with_counters(|place| place.lowest_layers().collect())
    }

    /// Checks that the stack below every target is known down to the lowest layer.
    ///
    /// # Errors
    /// The part of the stack that could not be resolved, or why a target has no block device.
    pub fn need_resolved_stack(&self) -> Known<()> {
        match self.places().find_map(|p| p.unresolved_reason.clone()) {
            Some(why) => Err(why),
            None => self.gather(|place| place.lowest_layers().collect()).map(|_| ()),
        }
    }

    /// Returns the layers that `select` picks for the places of the targets, each once.
    ///
    /// # Errors
    /// Why a target has no layer, or why the counters of a layer are invalid.
    fn layers_with_counters(&self, select: impl Fn(&'a Place) -> Vec<&'a Layer>) -> Known<Vec<&'a Layer>> {
        let layers = self.gather(select)?;
        let places: Vec<&Place> = self.places().collect();
        let why_invalid = layers.iter().find_map(|l| {
            places
                .iter()
                .find_map(|p| counters_off_reason(p, l).or_else(|| self.why_switched_off(whole_disk(p, l))))
        });
        why_invalid.map_or(Ok(layers), Err)
    }

    /// Returns why a disk's counters are invalid: they were switched off at a snapshot of a run;
    /// `None` if they are valid. zram ignores the switch.
    fn why_switched_off(&self, disk: &Layer) -> Option<String> {
        let file = disk.iostats_file().filter(|_| disk.kind != LayerKind::Zram)?;
        let number =
            self.sums.switched_off.get_or_init(|| self.find_switched_off()).get(&file)?.saturating_add(1);
        let name = &disk.name;
        Some(format!("{name}/queue/iostats was 0 during run {number}, so the kernel did not count its I/O"))
    }

    /// Returns the `iostats` files that were 0 at a snapshot of a run, each with the first such run.
    fn find_switched_off(&self) -> BTreeMap<String, u32> {
        let files: BTreeSet<String> =
            self.places().flat_map(|place| &place.layers).filter_map(Layer::iostats_file).collect();
        let with_first_run = |file: String| {
            let is_off = |s: &Snapshot| s.text(&file).is_ok_and(|text| text.trim() == "0");
            let first = self.runs.iter().find(|ran| ran.run.evidence.iter().any(is_off))?.run.start.repeat;
            Some((file, first))
        };
        files.into_iter().filter_map(with_first_run).collect()
    }

    /// Returns the layers that `select` picks for the places of the targets, each once, even without valid counters.
    fn gather(&self, select: impl Fn(&'a Place) -> Vec<&'a Layer>) -> Known<Vec<&'a Layer>> {
        let mut out: Vec<&Layer> = Vec::new();
        for (index, target) in &self.targets {
            let place = self.machine.and_then(|m| m.places.get(*index));
            let place =
                place.ok_or_else(|| format!("the record does not contain the devices of {}", target.path))?;
            let layers = select(place);
            if layers.is_empty() {
                let why = place.unresolved_reason.clone();
                return Err(why.unwrap_or_else(|| format!("no block device is known below {}", place.kind())));
            }
            add_each_once(&mut out, layers);
        }
        if out.is_empty() { Err("no target has a block device".into()) } else { Ok(out) }
    }

    /// Returns the layers below the targets that `accepts` selects, each once.
    pub(crate) fn layers(&self, accepts: impl Fn(&Layer) -> bool) -> Vec<&'a Layer> {
        let mut out = Vec::new();
        add_each_once(&mut out, self.places().flat_map(|p| &p.layers).filter(|l| accepts(l)));
        out
    }

    /// Checks that a run completed.
    ///
    /// # Errors
    /// That no run completed.
    pub(crate) fn need_run(&self) -> Known<()> {
        if self.runs.is_empty() { Err(no_run()) } else { Ok(()) }
    }

    /// Returns the I/O that the topmost layers completed in all runs, each run from start to stop.
    ///
    /// # Errors
    /// Why a layer was not counted, or that another stream uses a layer at the same time.
    pub fn device_io(&self) -> Known<BlockStat> {
        self.alone_on(&self.top_layers()?)?;
        self.top_io_of_all_streams()
    }

    /// Returns the I/O that the topmost layers completed in all runs, for all streams.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub(crate) fn top_io_of_all_streams(&self) -> Known<BlockStat> {
        let count = || self.layer_io_of_all_streams(&self.top_layers()?);
        self.sums.top_io_of_all_streams.get_or_init(count).clone()
    }

    /// Returns the I/O that these layers completed in all runs.
    ///
    /// # Errors
    /// Why a layer was not counted, or that another stream uses a layer at the same time.
    pub fn layer_io(&self, layers: &[&Layer]) -> Known<BlockStat> {
        self.alone_on(layers)?;
        self.layer_io_of_all_streams(layers)
    }

    /// Returns the I/O that these layers completed in all runs, for all streams.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub(crate) fn layer_io_of_all_streams(&self, layers: &[&Layer]) -> Known<BlockStat> {
        self.sum_over_runs(BlockStat::default(), |ran| ran.layer_io(layers), |a, b| a.plus(&b))
    }

    /// Returns the share of the runs' time in which a request was in flight, on the busiest of these layers.
    ///
    /// # Errors
    /// Why a layer was not counted, or that another stream uses a layer at the same time.
    pub(crate) fn busiest_share(&self, layers: &[&Layer]) -> Known<f64> {
        let ns = self.sum_over_runs(0.0, |ran| Ok(ran.active_ns()? as f64), |a, b| a + b)?;
        let busy = layers.iter().map(|layer| Ok(self.layer_io(&[*layer])?.busy_ms as f64 * 1e6));
        let busiest = busy.collect::<Known<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
        Ok(share(busiest, ns))
    }

    /// Returns fathom's own I/O on the [`Case::shared_layers`] in all runs: the I/O that the kernel charged to fathom, without
    /// double charges.
    ///
    /// # Errors
    /// Why it was not counted.
    pub fn own_io(&self) -> Known<CgroupIo> {
        let count = || {
            let counted = self.charged()?;
            let twice = charged_twice(self, &counted);
            Ok(CgroupIo {
                bytes: [0, 1].map(|i| counted.bytes[i].saturating_sub(twice.bytes[i])),
                ios: [0, 1].map(|i| counted.ios[i].saturating_sub(twice.ios[i])),
            })
        };
        self.sums.own_io.get_or_init(count).clone()
    }

    /// Returns the I/O that the kernel charged to fathom on the [`Case::shared_layers`] in all runs, including double charges.
    ///
    /// # Errors
    /// Why it was not counted.
    pub fn charged(&self) -> Known<CgroupIo> {
        let own = self.charged_on(&self.shared_layers()?)?;
        self.refuse_idle_cgroup(&own)?;
        Ok(own)
    }

    /// Returns the I/O that the kernel charged to fathom on these layers in all runs, including double charges.
    ///
    /// # Errors
    /// Why it was not counted, or that another stream uses a layer at the same time.
    pub(crate) fn charged_on(&self, layers: &[&Layer]) -> Known<CgroupIo> {
        self.alone_on(layers)?;
        self.charged_together(layers)
    }

    /// Returns the I/O that the kernel charged to fathom on these layers in all runs, for all streams.
    ///
    /// # Errors
    /// Why it was not counted.
    pub(crate) fn charged_together(&self, layers: &[&Layer]) -> Known<CgroupIo> {
        let cgroup = self.machine.ok_or("the record names no host")?.cgroup.as_ref().map_err(Clone::clone)?;
        self.sum_over_runs(CgroupIo::default(), |ran| ran.charged(cgroup, layers), CgroupIo::plus)
    }

    /// Fails if the kernel does not charge this device's I/O to the cgroup: the charge is almost zero,
    /// although the device moved at least half of the issued bytes.
    fn refuse_idle_cgroup(&self, own: &CgroupIo) -> Known<()> {
        let device = self.device_io()?;
        for kind in Kind::MOVING {
            let charged = own.bytes[cgroup_slot(kind)];
            // cgroup v1 charges write-back to the root group, so only direct writes are a proof.
            let is_proof = kind == Kind::Read || self.is_direct();
            let issued = self.issued(kind).bytes as f64;
            let ours = issued.min(flow_of(&device, kind).bytes as f64);
            if is_proof && ours > 0.0 && ours >= 0.5 * issued && (charged as f64) < MIN_CHARGED_SHARE * ours {
                let part = if charged == 0 { "nothing" } else { "hardly anything" };
                return Err(format!("the kernel charges {part} to fathom's cgroup on this device"));
            }
        }
        Ok(())
    }

    /// Returns all operations of a kind that completed in the complete runs, including warm-up and drain.
    pub fn issued(&self, kind: Kind) -> Amount {
        self.members.iter().map(|m| self.issued_by(*m, kind)).fold(Amount::default(), Amount::plus)
    }

    /// Returns all operations of a kind that one stream of the phase completed in the complete runs, including warm-up
    /// and drain.
    pub(crate) fn issued_by(&self, stream: usize, kind: Kind) -> Amount {
        self.runs.iter().map(|r| r.issued_by(stream, kind)).fold(Amount::default(), Amount::plus)
    }

    /// Returns all reads and writes of the complete runs, including warm-up and drain: the operations that move bytes
    /// and become requests.
    pub fn issued_total(&self) -> Amount {
        Kind::MOVING.iter().map(|k| self.issued(*k)).fold(Amount::default(), Amount::plus)
    }

    /// Returns the workers of the case's own stream in all runs.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &'a WorkerEnd> {
        self.runs.iter().flat_map(CaseRun::workers)
    }

    /// Returns all streams of the phase, which run at the same time.
    pub(crate) fn phase_streams(&self) -> &[Stream] {
        self.job.phases.get(self.phase_index).map_or(&[], |phase| &phase.streams)
    }

    /// Whether the stream makes writes stable within the measured time: all of them, or those that a replayed load syncs.
    pub(crate) fn syncs_within_window(&self) -> bool {
        let is_stable = self.stream.flush.is_none_or(|f| f.call != SyncCall::SyncFileRange);
        self.stream.cache.is_sync() || self.calls_sync() && is_stable
    }

    /// Returns the operations and bytes of a kind within the windows of all runs.
    pub fn in_windows(&self, kind: Kind) -> Amount {
        self.runs.iter().map(|r| r.in_window(kind)).fold(Amount::default(), Amount::plus)
    }

    /// Returns the total length of all windows in ns.
    pub fn window_ns(&self) -> f64 {
        self.runs.iter().map(|r| r.stream.window_ns as f64).sum()
    }

    /// Returns the mean operations in flight in the windows, counted independently of the latencies.
    ///
    /// # Errors
    /// That there is no window.
    pub fn depth_mean(&self) -> Known<f64> {
        let window = self.window_ns();
        let depth: f64 = self.runs.iter().map(|r| r.stream.depth_ns as f64).sum();
        if window > 0.0 { Ok(depth / window) } else { Err("no run has a measured window".into()) }
    }

    /// Returns the latencies of a kind in the windows of all runs; `None` without operations.
    pub fn latency(&self, kind: Kind) -> Option<Histogram> {
        let merge_runs =
            |kind: &Kind| merge(self.runs.iter().filter_map(|r| Some(&r.stream.kinds.get(kind)?.latency)));
        let merge_all = || Kind::ALL.iter().filter_map(|kind| Some((*kind, merge_runs(kind)?))).collect();
        self.sums.latencies.get_or_init(merge_all).get(&kind).cloned()
    }

    /// Returns service time and lateness of an open loop in all runs; `None` for a closed loop.
    pub fn open_loop(&self, kind: Kind) -> Option<OpenLoop> {
        let of_runs = self.runs.iter().filter_map(|r| r.stream.kinds.get(&kind)?.open.as_ref());
        let service = merge(of_runs.clone().map(|open| &open.service))?;
        Some(OpenLoop { service, lateness: merge(of_runs.map(|open| &open.lateness))? })
    }

    /// Returns the duration of calls that submitted operations without waiting, in all runs; `None` without such calls.
    pub fn submit(&self) -> Option<Histogram> {
        merge(self.runs.iter().map(|r| &r.stream.submit))
    }

    /// Returns the self test's result for the case's stream: the cost of an operation without storage.
    ///
    /// # Errors
    /// That the self test has no result for the stream.
    pub fn ceiling(&self) -> Known<&'a Ceiling> {
        let tests = &self.record.header.self_test.ceilings;
        let mine = |c: &&Ceiling| {
            (c.job, c.phase, c.stream) == (self.job_index, self.phase_index, self.stream_index)
        };
        tests.iter().find(mine).ok_or_else(|| "the self test has no result for this stream".into())
    }

    /// Adds up a value over the complete runs.
    fn sum_over_runs<T>(
        &self,
        zero: T,
        value: impl Fn(&CaseRun<'a>) -> Known<T>,
        add: impl Fn(T, T) -> T,
    ) -> Known<T> {
        self.need_run()?;
        self.runs.iter().try_fold(zero, |sum, ran| Ok(add(sum, value(ran)?)))
    }
}

/// Adds layers that a list does not have yet.
fn add_each_once<'a>(to: &mut Vec<&'a Layer>, layers: impl IntoIterator<Item = &'a Layer>) {
    for layer in layers {
        if to.iter().all(|l| l.stat_file != layer.stat_file) {
            to.push(layer);
        }
    }
}

/// A run of a case, with its end.
#[derive(Clone, Copy)]
pub struct CaseRun<'a> {
    /// The run with its snapshots.
    pub run: &'a Run,
    /// How the run ended.
    pub end: &'a RunEnd,
    /// Totals of the case's stream in the run.
    pub stream: &'a StreamEnd,
    /// The planned streams of the phase.
    planned: &'a [Stream],
    /// Number of other ranks of the measurement on this kernel. The kernel's counters include their requests.
    ranks_on_same_kernel: u32,
}

/// Operations and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Operations.
    pub ops: u64,
    /// Bytes that the operations moved.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { ops: self.ops.saturating_add(other.ops), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl<'a> CaseRun<'a> {
    fn new(run: &'a Run, index: usize, planned: &'a [Stream], part: Option<FleetRank>) -> Option<Self> {
        let end = run.end.as_ref()?;
        let stream = end.streams.iter().find(|s| s.stream == index)?;
        Some(Self { run, end, stream, planned, ranks_on_same_kernel: part.map_or(0, |part| part.neighbours) })
    }

    /// Whether reads and writes of a stream move data.
    fn moves_data(&self, stream: &StreamEnd) -> bool {
        self.planned.get(stream.stream).is_none_or(|planned| !planned.moves_no_data())
    }

    /// Returns how long the final sync took, in ns: 0 if the run neither wrote nor trimmed, `None` if the sync failed or is missing.
    pub(crate) fn sync_ns(&self) -> Option<u64> {
        let changes = |s: &StreamEnd| {
            [Kind::Write, Kind::Trim].iter().any(|kind| s.issued.get(kind).is_some_and(|i| i.ops > 0))
        };
        let is_unchanged = self.end.sync_failures.is_empty() && !self.end.streams.iter().any(changes);
        self.end.sync_ns.or(is_unchanged.then_some(0))
    }

    /// The snapshot at a moment of this run.
    ///
    /// # Errors
    /// That there is none.
    pub fn snapshot(&self, moment: Moment) -> Known<&'a Snapshot> {
        let found = self.run.evidence.iter().find(|s| s.moment == moment);
        let number = self.run.start.repeat.saturating_add(1);
        found.ok_or_else(|| format!("run {number} has no snapshot at its {}", moment_name(moment)))
    }

    /// Returns the time in ns in which operations could be in flight: the running time of the longest worker, at most
    /// the time between the snapshots at start and stop. The time to start and end threads is left out, because it
    /// would lower the mean depth of the device.
    ///
    /// # Errors
    /// If a snapshot is missing, or no time passed between the two.
    pub fn active_ns(&self) -> Known<u64> {
        let passed = self.passed_ns()?;
        let longest = self.end.workers.iter().map(|w| w.wall_ns).max().filter(|ns| *ns > 0);
        Ok(longest.map_or(passed, |ns| ns.min(passed)))
    }

    /// Returns the time in ns between the snapshots at start and stop.
    ///
    /// # Errors
    /// If a snapshot is missing, or no time passed between the two.
    pub(crate) fn passed_ns(&self) -> Known<u64> {
        let (start, stop) = (self.snapshot(Moment::Start)?, self.snapshot(Moment::Stop)?);
        let passed = stop.at_ns.checked_sub(start.at_ns).filter(|ns| *ns > 0);
        passed.ok_or_else(|| "no time passed between the snapshots at start and stop".into())
    }

    /// Returns the I/O that these layers completed from start to stop.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub fn layer_io(&self, layers: &[&Layer]) -> Known<BlockStat> {
        self.layer_io_until(Moment::Stop, layers)
    }

    /// Returns the I/O that these layers completed from start to `moment`.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub(crate) fn layer_io_until(&self, moment: Moment, layers: &[&Layer]) -> Known<BlockStat> {
        if self.ranks_on_same_kernel > 0 {
            let ranks = match self.ranks_on_same_kernel {
                1 => "1 other rank".to_owned(),
                count => format!("{count} other ranks"),
            };
            return Err(format!(
                "this kernel also runs {ranks} of the measurement, and its counters do not tell the ranks \
                 apart"
            ));
        }
        let (start, stop) = (self.snapshot(Moment::Start)?, self.snapshot(moment)?);
        layers.iter().try_fold(BlockStat::default(), |sum, layer| {
            Ok(sum.plus(&BlockStat::between(start, stop, &layer.stat_file)?))
        })
    }

    /// Returns the I/O that the kernel charged to the cgroup on these layers from start to stop.
    pub(crate) fn charged(&self, cgroup: &Cgroup, layers: &[&Layer]) -> Known<CgroupIo> {
        let (start, stop) = (self.snapshot(Moment::Start)?, self.snapshot(Moment::Stop)?);
        let mut sum = CgroupIo::default();
        for layer in layers {
            let before = read_charge(start, cgroup, &layer.number)?.unwrap_or_default();
            let after = read_charge(stop, cgroup, &layer.number)?
                .ok_or_else(|| format!("fathom's cgroup has no count for {}", layer.name))?;
            let since = |after: [u64; 2], before: [u64; 2]| {
                Some([after[0].checked_sub(before[0])?, after[1].checked_sub(before[1])?])
            };
            let passed = since(after.bytes, before.bytes).zip(since(after.ios, before.ios));
            let (bytes, ios) = passed.ok_or("the counters of fathom's cgroup went backwards")?;
            sum = sum.plus(CgroupIo { bytes, ios });
        }
        Ok(sum)
    }

    /// Returns the workers of the case's own stream.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &'a WorkerEnd> {
        let stream = self.stream.stream;
        self.end.workers.iter().filter(move |worker| worker.stream == stream)
    }

    /// Returns all operations of a kind of the case's own stream in this run. Leaves out reads and writes that move no
    /// data.
    pub fn issued(&self, kind: Kind) -> Amount {
        self.issued_by(self.stream.stream, kind)
    }

    /// Returns all operations of a kind of one stream of the phase in this run. Leaves out reads and writes that move no data.
    pub(crate) fn issued_by(&self, stream: usize, kind: Kind) -> Amount {
        let reaches = |s: &&StreamEnd| s.stream == stream && (kind == Kind::Trim || self.moves_data(s));
        let issued = self.end.streams.iter().find(reaches).and_then(|s| s.issued.get(&kind));
        issued.map_or(Amount::default(), |i| Amount { ops: i.ops, bytes: i.bytes })
    }

    /// Whether the case's own reads and writes move data. If not, their sizes mean nothing.
    pub(crate) fn carries_data(&self) -> bool {
        self.moves_data(self.stream)
    }

    /// Returns the operations of all kinds of the case's own stream, warm-up and drain included.
    pub fn issued_of_all_kinds(&self) -> f64 {
        self.stream.issued.values().map(|i| i.ops as f64).sum()
    }

    /// Returns the operations of a kind within the window, and their bytes, if they move data.
    pub fn in_window(&self, kind: Kind) -> Amount {
        let end = self.stream.kinds.get(&kind);
        end.map_or(Amount::default(), |k| self.amount(k.latency.count(), k.bytes))
    }

    /// Returns the time in ns that rates refer to: the window, or the time in which all hosts had load.
    pub(crate) fn rate_ns(&self) -> u64 {
        self.stream.common.as_ref().map_or(self.stream.window_ns, |common| common.window_ns)
    }

    /// Returns the operations of a kind that completed in the time of [`CaseRun::rate_ns`].
    pub(crate) fn for_rate(&self, kind: Kind) -> Amount {
        let Some(common) = &self.stream.common else { return self.in_window(kind) };
        common.kinds.get(&kind).map_or(Amount::default(), |[ops, bytes]| self.amount(*ops, *bytes))
    }

    fn amount(&self, ops: u64, bytes: u64) -> Amount {
        Amount { ops, bytes: if self.carries_data() { bytes } else { 0 } }
    }
}

/// Returns the cgroup's count for a device number; `None` if the cgroup's files do not list the device.
fn read_charge(snapshot: &Snapshot, cgroup: &Cgroup, number: &str) -> Known<Option<CgroupIo>> {
    let text = |suffix: &str| {
        let file = cgroup.files.iter().find(|f| f.ends_with(suffix));
        snapshot.text(file.ok_or_else(|| format!("fathom's cgroup has no {suffix}"))?)
    };
    if cgroup.version == 2 {
        return Ok(cgroup_v2(text("io.stat")?).get(number).copied());
    }
    let bytes = cgroup_v1(text("io_service_bytes")?).get(number).copied();
    let ios = cgroup_v1(text("io_serviced")?).get(number).copied();
    Ok(bytes.zip(ios).map(|(bytes, ios)| CgroupIo { bytes, ios }))
}

fn moment_name(moment: Moment) -> &'static str {
    match moment {
        Moment::Start => "start",
        Moment::Stop => "stop",
        Moment::Synced => "final sync",
        _ => "preparation",
    }
}

impl<'a> Case<'a> {
    /// Returns the probe of the stream's region in each of its targets (single reads before the first run), with the
    /// index of the target.
    ///
    /// # Errors
    /// That the session has no snapshot from before the runs.
    pub fn probes(&self) -> Known<Vec<Known<(usize, &'a Probe)>>> {
        let prepared = self.prepared()?;
        let reading = || self.record.header.plan.streams().filter(|s| s.access.reads());
        let probe_of = |target: &usize| {
            let state = prepared.targets.get(*target);
            let own = self.own_region(*target, reading());
            match state.and_then(|s| own.map_or(s.probe.as_ref(), |own| s.region(&own)?.probe.as_ref())) {
                Some(Ok(probe)) => Ok((*target, probe)),
                Some(Err(why)) => Err(format!("no blocks were read before the runs: {why}")),
                None if state.is_some_and(|s| s.probe.is_some()) => {
                    Err(format!("blocks were sampled before the runs {TOGETHER}"))
                }
                None => Err("no blocks were sampled before the runs".to_owned()),
            }
        };
        Ok(self.stream.targets.iter().map(probe_of).collect())
    }

    /// Returns how the bytes of the stream's region in each of its targets were stored after preparation, before the
    /// first run.
    ///
    /// # Errors
    /// That the session has no snapshot from before the runs.
    pub fn extents_before_runs(&self) -> Known<Vec<Known<Extents>>> {
        let prepared = self.prepared()?;
        let regions = self.own_regions();
        let extents = |(at, own): (&usize, &Option<_>)| {
            extents_in(prepared.targets.get(*at), own.as_ref(), " before the runs")
        };
        Ok(self.stream.targets.iter().zip(&regions).map(extents).collect())
    }

    /// Returns the bytes of a target that the stream may touch; `None` if they are the range that contains all bytes
    /// that these streams touch.
    fn own_region<'s>(&self, target: usize, streams: impl Iterator<Item = &'s Stream>) -> Option<Range<u64>> {
        let plan = &self.record.header.plan;
        let whole = plan.region(target, streams)?;
        Some(self.stream.access.region()).filter(|own| !plan.is_same_region(target, own, &whole))
    }

    /// Returns the result of [`Self::own_region`] for each of the stream's targets and the streams of all jobs.
    fn own_regions(&self) -> Vec<Option<Range<u64>>> {
        let streams = || self.record.header.plan.streams();
        self.stream.targets.iter().map(|target| self.own_region(*target, streams())).collect()
    }

    /// Returns this case for each turn of the stream, as if the stream repeated only that turn; empty without turns. The
    /// counts remain those of all turns.
    pub(crate) fn of_turns(&self) -> Vec<Self> {
        let of_turn = |turn| Self { stream: Cow::Owned(self.stream.with_turn(turn)), ..self.clone() };
        self.stream.turns.iter().map(of_turn).collect()
    }

    /// Returns how long the final syncs of all runs took together, in ns; `None` if one of them failed or is missing.
    pub(crate) fn sync_ns(&self) -> Option<f64> {
        self.runs.iter().map(|ran| Some(ran.sync_ns()? as f64)).sum()
    }

    /// Returns the snapshot of the session at a moment before the first run.
    pub(crate) fn snapshot_before_runs(&self, moment: Moment) -> Option<&'a Snapshot> {
        self.record.evidence.iter().find(|s| s.moment == moment)
    }

    fn prepared(&self) -> Known<&'a Snapshot> {
        let prepared = self.snapshot_before_runs(Moment::AfterPrepare);
        prepared.ok_or_else(|| "the record has no snapshot from before the runs".into())
    }

    /// Returns the traffic of other processes on the disks during the probes; `None` if it was not counted.
    pub fn foreign_amount_during_probes(&self) -> Option<Amount> {
        // fathom read the probes between these two snapshots.
        let before = self.snapshot_before_runs(Moment::AfterPrepare)?;
        let after = self.snapshot_before_runs(Moment::IdleStart)?;
        let mut all = Amount::default();
        for layer in self.shared_layers().ok()? {
            let flow = BlockStat::between(before, after, &layer.stat_file).ok()?.total();
            all = all.plus(Amount { ops: flow.ios, bytes: flow.bytes });
        }
        let probes = |t: &'a TargetState| t.regions.iter().map(|r| &r.probe).chain([&t.probe]);
        for probe in before.targets.iter().flat_map(probes).filter_map(|probe| probe.as_ref()?.as_ref().ok())
        {
            let ops = (probe.first_ns.len() as u64).saturating_add(probe.again_ns.len() as u64);
            all.ops = all.ops.saturating_sub(ops);
            all.bytes = all.bytes.saturating_sub(ops.saturating_mul(probe.block_bytes));
        }
        Some(all)
    }

    /// Returns how the bytes of the stream's region in each of its targets are stored, in pairs: at the start of each run
    /// and after the run's final sync.
    ///
    /// # Errors
    /// That a run lacks one of the two snapshots.
    pub fn extents_over_runs(&self) -> Known<Vec<Known<(Extents, Extents)>>> {
        let pairs = self.extents()?.into_iter().zip(self.extents_at(Moment::Synced)?);
        Ok(pairs.map(|(before, after)| Ok((before?, after?))).collect())
    }

    /// Returns the states of the targets at a moment of each run.
    ///
    /// # Errors
    /// That a run has no snapshot at this moment, or that the snapshot lacks a target.
    pub fn states(&self, moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        let touched: Vec<usize> = self.targets.iter().map(|(t, _)| *t).collect();
        self.states_of(&touched, moment)
    }

    pub(crate) fn states_of(&self, targets: &[usize], moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        let states_in = |ran: &CaseRun<'a>| {
            let snapshot = ran.snapshot(moment)?;
            let states: Option<Vec<_>> = targets.iter().map(|t| snapshot.targets.get(*t)).collect();
            states.ok_or_else(|| "the page cache was not sampled".to_owned())
        };
        self.need_run()?;
        self.runs.iter().map(states_in).collect()
    }

    /// Returns how the bytes of the stream's region in each of its targets are stored at the start of each run.
    ///
    /// # Errors
    /// That a run has no snapshot at its start.
    pub fn extents(&self) -> Known<Vec<Known<Extents>>> {
        self.extents_at(Moment::Start)
    }

    /// Returns how the bytes of the stream's region in each of its targets are stored at a moment of each run.
    ///
    /// # Errors
    /// That a run has no snapshot at this moment.
    pub(crate) fn extents_at(&self, moment: Moment) -> Known<Vec<Known<Extents>>> {
        let when = if moment == Moment::Synced { " after the final sync" } else { "" };
        let states = self.states_of(&self.stream.targets, moment)?;
        let regions = self.own_regions();
        let of_run = |states: Vec<&TargetState>| {
            let states = states.into_iter().zip(&regions);
            states.map(|(state, own)| extents_in(Some(state), own.as_ref(), when)).collect::<Vec<_>>()
        };
        Ok(states.into_iter().flat_map(of_run).collect())
    }

    /// Returns how the bytes of the stream's regions are stored when each run stops, as far as known. A run that wrote
    /// has none, because reading the extents would flush the file.
    pub fn extents_at_ends(&self) -> Vec<Extents> {
        split_known(self.extents_at(Moment::Stop)).0
    }

    /// Returns the dirty bytes that fathom discarded before they were written, from the start of each run to its final sync. If other
    /// streams write too, this is the count of the stream's own workers, or of all streams if the workers' counts are not exact. Bytes
    /// that other processes discard are not included: the kernel charges them to those processes.
    ///
    /// # Errors
    /// Why the kernel's count could not be read.
    pub fn cancelled_bytes(&self) -> Known<u64> {
        if self.others_write() {
            let own = self.counted_by_workers(self.stream_index, |io| io.cancelled_write_bytes);
            if own.is_exact() {
                return Ok(own.least);
            }
        }
        let cancelled_in = |ran: &CaseRun| {
            let count = |moment| read_cancelled_bytes(ran.snapshot(moment)?);
            let passed = count(Moment::Synced)?.checked_sub(count(Moment::Start)?);
            passed.ok_or_else(|| "/proc/self/io: the count of cancelled writes went backwards".into())
        };
        self.sum_over_runs(0, cancelled_in, u64::saturating_add)
    }

    /// Returns the bytes that the topmost layers wrote from the start of each run to its final sync.
    ///
    /// # Errors
    /// Why they were not counted.
    pub fn synced_write_bytes(&self) -> Known<u64> {
        let tops = self.top_layers()?;
        let written_in = |ran: &CaseRun| {
            written_between(&tops, ran.snapshot(Moment::Start)?, ran.snapshot(Moment::Synced)?)
        };
        self.sum_over_runs(0, written_in, u64::saturating_add)
    }

    /// Returns the index in the plan and the place of each of the stream's targets; the place is `None` if the record has none.
    pub fn own_places(&self) -> impl Iterator<Item = (usize, Option<&'a Place>)> {
        self.stream.targets.iter().map(|t| (*t, self.machine.and_then(|m| m.places.get(*t))))
    }

    /// Whether cgroups may have limits that fathom cannot see, as in a container.
    pub(crate) fn may_hide_limits(&self) -> bool {
        let limits = self.machine.and_then(|machine| machine.facts.get(LIMITS));
        let is_incomplete =
            |text: &String| hides_outer_cgroups(text) || unreadable_limits(text, IO_LIMIT_KINDS).is_some();
        limits.is_some_and(|limits| limits.as_ref().map_or(true, is_incomplete))
    }

    /// Returns the option of the engine that requests polled completions; `None` without one.
    pub(crate) fn polling_option(&self) -> Option<&str> {
        let is_polling = |option: &&str| ["iopoll", "hipri"].contains(option);
        self.stream.options.keys().map(String::as_str).find(is_polling)
    }

    /// Whether a disk is virtual, as far as known.
    pub fn is_virtual(&self, layer: &Layer) -> bool {
        let by_driver =
            layer.driver.as_deref().is_some_and(|d| d.starts_with("virtio") || d.starts_with("xen"));
        by_driver || self.machine.is_some_and(|m| matches!(m.virtual_by, Ok(Some(_))))
    }

    /// Returns the number of bytes that the stream may touch, over all its targets. If several hosts share a file and
    /// this is the session of one of them, returns only this host's part.
    pub fn span_bytes(&self) -> u64 {
        self.stream.targets.iter().map(|target| self.span_bytes_of(*target)).fold(0, u64::saturating_add)
    }

    /// Returns the planned share of the operations for each of the stream's targets: by weight if the targets have weights, otherwise
    /// equal.
    pub(crate) fn shares_of_targets(&self) -> Vec<f64> {
        let equal = vec![1; self.stream.targets.len()];
        let weights = match &self.stream.sharing {
            Sharing::Weighted(weights) if weights.len() == equal.len() => weights,
            _ => &equal,
        };
        let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        weights.iter().map(|weight| share(f64::from(*weight), sum)).collect()
    }

    /// Returns the bytes of one target that the stream may touch.
    pub(crate) fn span_bytes_of(&self, target: usize) -> u64 {
        let (access, plan) = (&self.stream.access, &self.record.header.plan);
        // A span of the whole target has no length in the plan.
        let rest = plan.targets.get(target).map_or(u64::MAX, |t| t.bytes.saturating_sub(access.offset_bytes));
        let span = access.span_bytes.min(rest);
        match (self.stream.shared, &self.record.fleet) {
            (Some(_), None) => {
                let tasks = plan.first_task(self.job_index, &self.stream).count;
                span / (tasks / u64::from(self.stream.workers.max(1))).max(1)
            }
            _ => span,
        }
    }

    /// Returns the largest number of bytes that the stream read in one run.
    pub fn largest_run_read_bytes(&self) -> u64 {
        self.runs.iter().filter_map(|r| Some(r.stream.issued.get(&Kind::Read)?.bytes)).max().unwrap_or(0)
    }
}

/// Completes the reason if only the range that contains the regions of all streams was read. Most of that range may hold
/// data even if the stream's own region holds none.
const TOGETHER: &str =
    "only in the range that contains the regions of all streams, and this stream's region is smaller";

/// Returns the extents in the state of a target: those of the region `own`, or with `None` those of the whole measured
/// range. `when` completes the error `the extents of the file were not read`.
fn extents_in(state: Option<&TargetState>, own: Option<&Range<u64>>, when: &str) -> Known<Extents> {
    let extents = state.and_then(|state| state.extents.clone());
    let extents = extents.unwrap_or_else(|| Err(format!("the extents of the file were not read{when}")));
    match own.map(|own| state.and_then(|state| state.region(own))) {
        None => extents,
        Some(Some(region)) => region.extents.clone(),
        Some(None) => extents.and_then(|_| Err(format!("the extents of the file were read {TOGETHER}"))),
    }
}

/// Splits values into the known ones, and the first reason why a value is unknown.
pub(crate) fn split_known<T>(values: Known<Vec<Known<T>>>) -> (Vec<T>, Known<()>) {
    let (mut known, mut unknown) = (Vec::new(), Ok(()));
    for value in values.unwrap_or_else(|why| vec![Err(why)]) {
        match value {
            Ok(value) => known.push(value),
            Err(why) => unknown = unknown.and(Err(why)),
        }
    }
    (known, unknown)
}

/// Returns the bytes that layers wrote between two snapshots.
///
/// # Errors
/// Why a layer was not counted.
pub(crate) fn written_between(layers: &[&Layer], from: &Snapshot, to: &Snapshot) -> Known<u64> {
    layers.iter().try_fold(0_u64, |sum, layer| {
        Ok(sum.saturating_add(BlockStat::between(from, to, &layer.stat_file)?.write.bytes))
    })
}

fn read_cancelled_bytes(snapshot: &Snapshot) -> Known<u64> {
    const FILE: &str = "/proc/self/io";
    let line = snapshot.text(FILE)?.lines().find_map(|l| l.strip_prefix("cancelled_write_bytes:"));
    let number = line.and_then(|value| value.trim().parse().ok());
    number.ok_or_else(|| format!("{FILE} has no count of cancelled writes"))
}

/// Merges histograms. `None` without any latency, or if a forged file has more latencies than a `u64` can count.
fn merge<'h>(parts: impl Iterator<Item = &'h Histogram> + Clone) -> Option<Histogram> {
    parts.clone().map(Histogram::count).try_fold(0_u64, u64::checked_add).filter(|count| *count > 0)?;
    let mut merged = Histogram::new();
    parts.for_each(|part| merged.merge(part));
    Some(merged)
}

/// Returns the targets of a stream, each once and with its index in the plan.
fn targets_of<'a>(record: &'a Record, stream: Option<&Stream>) -> Vec<(usize, &'a Target)> {
    let mut touched: Vec<usize> = stream.iter().flat_map(|s| s.targets.iter().copied()).collect();
    touched.sort_unstable();
    touched.dedup();
    touched.into_iter().filter_map(|t| Some((t, record.header.plan.targets.get(t)?))).collect()
}

/// Returns the disk of a partition, otherwise the layer itself. Cgroups are charged for the disk, and I/O on its other
/// partitions disturbs a run.
pub(crate) fn whole_disk<'a>(place: &'a Place, layer: &'a Layer) -> &'a Layer {
    let below = || place.layers.get(*layer.below.first()?);
    if layer.kind == LayerKind::Partition { below().unwrap_or(layer) } else { layer }
}

/// Returns why a layer's counters are invalid; `None` if they are valid. The switch `iostats` of a disk also switches
/// the counters of its partitions.
pub(crate) fn counters_off_reason(place: &Place, layer: &Layer) -> Option<String> {
    layer.counters_off_reason().or_else(|| whole_disk(place, layer).counters_off_reason())
}

/// Names a load: `70 % of capacity: 12,600/s` or `open loop at 12,600/s`.
fn load_name(record: &Record, iops: u64) -> String {
    let rate = format!("{}/s", show_count(iops as f64));
    match runs::capacity_of(record) {
        Some(capacity) => format!("{} of capacity: {rate}", show_share(iops as f64 / capacity)),
        None => format!("open loop at {rate}"),
    }
}

/// Returns the reason for a job without a complete run.
pub(crate) fn no_run() -> String {
    "none of its runs completed".into()
}

#[cfg(test)]
mod tests;
