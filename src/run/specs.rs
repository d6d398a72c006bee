//! Worker specs: turns a stream of the plan into threads ready to start, each with its sources and open files. Also loads
//! the payloads that streams write.

use super::{Measurement, interval_ns};
use crate::capture::replay;
use crate::failure::Failure;
use crate::files;
use crate::run::target::OpenTarget;
use engine::engines::{self, Entry};
use engine::source::replay::ReplayCounts;
use engine::source::{self, Group, Panicking, Source, StreamState, WorkerContext, WrittenBlocks};
use engine::spec::{ByTargetSpec, WorkerSpec};
use model::job::{
    Advice, Cache, Content, Data, Order, Pace, Phase, Placement, Replay, StopRule, Stream, SyncCall,
    TaskNumber,
};
use model::payload;
use model::payload::{Maker, Set, split_mix};
use model::plan::{InjectedFault, Plan};
use model::record::Written;
use model::units::show_bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use sys::open_file::OpenFile;

/// Operations before the test hook panics.
const HOOK_OPERATIONS: u32 = 500;

/// Largest number of writes that fathom remembers for one stream, to read each block back once. They take about 70 MiB of memory.
const MAX_REMEMBERED: u64 = 1 << 21;

/// Indices of a worker.
#[derive(Clone, Copy)]
struct WorkerIndex {
    /// Index of the stream in the phase.
    stream: usize,
    /// Index of the worker in its stream.
    worker: u32,
    /// Index of the worker in the phase.
    overall: u32,
    /// Index of the worker among all workers that share a file, including those of other hosts.
    task: TaskNumber,
}

/// The stream whose random numbers a stream draws: the stream itself or, if it reads data back, the
/// stream that wrote them.
struct DrawnAs {
    phase: usize,
    stream: usize,
    /// Index of the stream's first worker in the phase.
    first_worker: u32,
}

impl DrawnAs {
    /// Returns the stream whose random numbers the stream with index `stream` draws. `phase_index` is the index of `phase`, and `before` is
    /// the phase before it.
    fn of_stream(before: Option<&Phase>, phase: &Phase, phase_index: usize, stream: usize) -> Self {
        let first_worker =
            |of: &Phase, stream: usize| of.streams.iter().take(stream).map(|s| s.workers).sum();
        let back = phase.streams.get(stream).and_then(Stream::reads_back);
        match (before, back, phase_index.checked_sub(1)) {
            (Some(before), Some(back), Some(phase)) => {
                Self { phase, stream: back, first_worker: first_worker(before, back) }
            }
            _ => Self { phase: phase_index, stream, first_worker: first_worker(phase, stream) },
        }
    }
}

/// Lets workers with shared duplicate blocks (`dedup_shared`) copy from the blocks of all such workers.
fn share_sets(phase: &Phase, specs: &mut [WorkerSpec]) {
    let shares = |spec: &WorkerSpec| {
        phase
            .streams
            .get(spec.stream)
            .is_some_and(|s| matches!(s.data, Data::Random { dedup_shared: true, .. }))
    };
    let sets: Arc<[Set]> =
        specs.iter().filter(|spec| shares(spec)).flat_map(|spec| spec.maker.sets()).copied().collect();
    specs.iter_mut().filter(|spec| shares(spec)).for_each(|spec| spec.maker.replace_sets(&sets));
}

impl Measurement {
    /// Makes one spec per worker of a phase; `before` is the preceding phase. Runs with the same `offset_seed` draw the same
    /// offsets.
    pub(super) fn specs(
        &self,
        before: Option<&Phase>,
        phase: &Phase,
        job: usize,
        index: usize,
        run: usize,
        offset_seed: usize,
    ) -> Result<Vec<WorkerSpec>, Failure> {
        let mut specs: Vec<WorkerSpec> = Vec::new();
        let mut groups: BTreeMap<u32, Arc<Group>> = BTreeMap::new();
        for (stream_index, stream) in phase.streams.iter().enumerate() {
            let entry = engines::find(&stream.engine)
                .ok_or_else(|| Failure::Usage(format!("this fathom has no engine {}", stream.engine)))?;
            // All workers and runs of a stream agree on the hot blocks.
            let drawn_as = DrawnAs::of_stream(before, phase, index, stream_index);
            let seed = split_mix(self.plan.host_seed() ^ (drawn_as.phase << 32 | drawn_as.stream) as u64);
            let group = stream.flow.map(|flow| Arc::clone(groups.entry(flow.group).or_default()));
            let evicted = self.evicted(stream)?;
            let stream_state = |seed| {
                let mut state = StreamState::new(seed);
                state.group.clone_from(&group);
                state.files.clone_from(&evicted);
                Arc::new(state)
            };
            let shared = stream_state(seed);
            let first_task = self.plan.first_task(job, stream);
            for worker in 0..stream.workers {
                // Each clone has its own hot blocks and order.
                let stream_state = match stream.clones {
                    Some(_) => stream_state(split_mix(seed ^ u64::from(worker) << 16)),
                    None => Arc::clone(&shared),
                };
                let overall = specs.len() as u32;
                let task = TaskNumber { index: first_task.index + u64::from(worker), ..first_task };
                let number = WorkerIndex { stream: stream_index, worker, overall, task };
                let drawn = u64::from(drawn_as.first_worker) + u64::from(worker);
                let own = |run: usize| {
                    let own = (run as u64) << 40 | (drawn_as.phase as u64) << 32 | drawn;
                    split_mix(self.plan.host_seed() ^ split_mix(own))
                };
                let (seed, of_data) = (own(offset_seed), own(run));
                let context = WorkerContext { worker, workers: stream.workers, seed, stream_state };
                let mut spec = self.spec(phase, stream, entry, number, of_data, &context)?;
                if let Some(writer) = writer_of(before, stream) {
                    let targets: Vec<&OpenTarget> =
                        stream.targets.iter().map(|t| &self.targets[*t]).collect();
                    let written =
                        index.checked_sub(1).and_then(|before| self.written.get(before)?.get(drawn as usize));
                    let writes = written.copied().unwrap_or(0);
                    let sources = || self.sources(&writer, &targets, number, &context);
                    if writes.saturating_mul(stream.workers.into()) <= MAX_REMEMBERED
                        && reads_each_block_once(&writer, &targets)
                    {
                        // Draw twice: once to count the blocks, once to read them.
                        let back = |source| WrittenBlocks::once_each(source, writes);
                        let blocks = sources()?.into_iter().map(|source| back(source).count_distinct()).sum();
                        let read = |source| Box::new(back(source)) as Box<dyn Source>;
                        spec.sources = sources()?.into_iter().map(read).collect();
                        spec.limit.operations = Some(blocks);
                    } else {
                        let read =
                            |source| Box::new(WrittenBlocks::as_often_as_written(source)) as Box<dyn Source>;
                        spec.sources = sources()?.into_iter().map(read).collect();
                        spec.limit.operations = Some(writes);
                    }
                }
                specs.push(spec);
            }
        }
        share_sets(phase, &mut specs);
        Ok(specs)
    }

    /// Returns the files of a stream with `--evict-each-pass`; `None` for other streams.
    fn evicted(&self, stream: &Stream) -> Result<Option<Arc<[File]>>, Failure> {
        if !stream.evicts_each_pass {
            return Ok(None);
        }
        let handles = stream.targets.iter().filter_map(|target| self.targets[*target].handle());
        let files = handles.map(File::try_clone).collect::<Result<Vec<_>, _>>();
        let files = files.map_err(|e| {
            Failure::Refused(format!(
                "--evict-each-pass: a file cannot be opened a second time: {e}{}",
                sys::cause(&e)
            ))
        })?;
        Ok(Some(files.into()))
    }

    fn spec(
        &self,
        phase: &Phase,
        stream: &Stream,
        entry: &'static Entry,
        number: WorkerIndex,
        data_seed: u64,
        context: &WorkerContext,
    ) -> Result<WorkerSpec, Failure> {
        let writes = stream.access.writes();
        let counts_depth = self.plan.typed.as_ref().is_some_and(|typed| typed.counts_depth);
        // The stream may end before its phase. It then does not run while the other streams cool down.
        let begins_ns = stream.delay_ns.saturating_sub(phase.warmup_ns);
        let own_ns = stream.limit.time_ns.map(|ns| begins_ns.saturating_add(ns));
        let own_ns = own_ns.filter(|ns| *ns < phase.time_ns);
        let targets: Vec<&OpenTarget> = stream.targets.iter().map(|t| &self.targets[*t]).collect();
        let mut files = Vec::new();
        let changes = stream.changes_targets();
        for (target, ready) in stream.targets.iter().zip(&targets).filter(|_| entry.touches_targets()) {
            let file = ready.open(&self.root, stream.cache, changes)?;
            advise(&file, stream.advice)?;
            files.push(OpenFile::reporting(file, changes, *target, &self.close_errors));
        }
        let replay = stream.replay.as_ref().map(|replay| (replay, Arc::<ReplayCounts>::default()));
        let sources = match &replay {
            Some((replay, counts)) => vec![self.replayed(stream, replay, &targets, &mut files, counts)?],
            None => self.sources(stream, &targets, number, context)?,
        };
        Ok(WorkerSpec {
            worker: number.overall,
            stream: number.stream,
            engine: entry,
            sources,
            files,
            depth: stream.depth,
            slot_bytes: stream.buffer_bytes(),
            writes,
            options: stream.options.clone(),
            cache: stream.cache,
            sync_call: sync_call(stream),
            open_loop: stream.is_open_loop(),
            delay_ns: stream.delay_ns,
            limit: if replay.is_some() && stream.limit.operations != Some(0) {
                StopRule::default()
            } else {
                part_of(stream.limit, number.worker, stream.workers)
            },
            max_errors: stream.max_errors,
            ignored_errors: stream.ignored_errors.clone(),
            latency_target: stream.latency_target,
            place: place_of(&stream.place, number.worker),
            op_priorities: stream.op_priorities.clone(),
            priority_seed: split_mix(data_seed ^ 0x7072_696f),
            batch: stream.batch,
            warmup_ns: phase.warmup_ns,
            time_ns: own_ns.unwrap_or(phase.time_ns),
            cooldown_ns: if own_ns.is_none() { phase.cooldown_ns } else { 0 },
            interval_ns: stream.latency_target.map_or_else(|| interval_ns(phase), |target| target.window_ns),
            count_calls: false,
            // With at most one operation in flight, the depth has a single value.
            count_depth: counts_depth && u64::from(stream.depth).saturating_mul(stream.lanes()) > 1,
            // `Measurement::spawn` sets it.
            log: false,
            replay: replay.map(|(_, counts)| counts),
            chooses_late: stream.bursts.is_some() || matches!(stream.pace, Pace::Each { .. }),
            by_target: stream
                .separate_bucket_ns()
                .map(|bucket_ns| ByTargetSpec { bucket_ns, targets: targets.len() }),
            spin_ns: stream.think_spin_ns,
            verify: stream.verify.clone(),
            maker: self.payloads.maker(&stream.data, split_mix(data_seed ^ 0x7061_796c))?,
            clock: self.clock,
        })
    }

    /// Returns the source of a replay. Adds a second descriptor of the target to `files` if some
    /// writes must be stable when they complete.
    fn replayed(
        &self,
        stream: &Stream,
        replay: &Replay,
        targets: &[&OpenTarget],
        files: &mut Vec<OpenFile>,
        counts: &Arc<ReplayCounts>,
    ) -> Result<Box<dyn Source>, Failure> {
        has_room(replay, targets)?;
        let stable = stable(stream.cache).filter(|_| replay.stable_writes && !files.is_empty());
        if let (Some(cache), [ready]) = (stable, targets) {
            let changes = stream.changes_targets();
            let file = ready.open(&self.root, cache, changes)?;
            let target = stream.targets.first().copied().unwrap_or_default();
            files.push(OpenFile::reporting(file, changes, target, &self.close_errors));
        }
        Ok(Box::new(replay::source(replay, stream.depth, stable.is_some(), counts)?))
    }

    fn sources(
        &self,
        stream: &Stream,
        targets: &[&OpenTarget],
        number: WorkerIndex,
        context: &WorkerContext,
    ) -> Result<Vec<Box<dyn Source>>, Failure> {
        let bytes: Vec<u64> = targets.iter().map(|t| t.bytes()).collect();
        let align: Vec<u32> =
            targets.iter().map(|t| if stream.cache.is_direct() { t.align() } else { 1 }).collect();
        let mut sources =
            source::lanes_of_task(stream, &bytes, &align, context, number.task).map_err(Failure::Usage)?;
        if let Some(pieces) = targets.first().and_then(|t| t.pieces()) {
            sources = sources.into_iter().map(|source| source::in_pieces(source, pieces.clone())).collect();
        }
        if self.plan.injected_fault == Some(InjectedFault::PanicWorker) && number.overall == 0 {
            let inner = sources.remove(0);
            sources.insert(0, Box::new(Panicking { inner, left: HOOK_OPERATIONS }));
        }
        Ok(sources)
    }
}

/// The sync call of a stream. Flushes in a capture concern the device's cache, for which a data sync is enough.
fn sync_call(stream: &Stream) -> SyncCall {
    let usual = if stream.replay.is_some() { SyncCall::Fdatasync } else { SyncCall::Fsync };
    stream.flush.map_or(usual, |flush| flush.call)
}

/// Returns the cache mode that also makes writes stable when they complete; `None` if `cache` does
/// so already, or if it is mmap, which cannot.
fn stable(cache: Cache) -> Option<Cache> {
    match cache {
        Cache::Direct => Some(Cache::DirectDsync),
        Cache::Buffered => Some(Cache::Dsync),
        Cache::Sync | Cache::Dsync | Cache::DirectSync | Cache::DirectDsync | Cache::Mmap => None,
    }
}

/// Refuses a target that is smaller than a replay needs.
fn has_room(replay: &Replay, targets: &[&OpenTarget]) -> Result<(), Failure> {
    let needed = if replay.dense { replay.original.footprint_bytes } else { replay.original.end_bytes };
    let Some(small) = targets.iter().find(|ready| ready.handle().is_some() && ready.bytes() < needed) else {
        return Ok(());
    };
    Err(Failure::Refused(format!(
        "the replay of {} needs {}, and its target has {}; name a larger target",
        replay.file,
        show_bytes(needed),
        show_bytes(small.bytes())
    )))
}

/// The stream of the preceding phase whose blocks are read back, without its pace, flow, syncs and bursts; `None` for a stream that reads
/// nothing back. The pauses of access lines remain, because their lengths are drawn from the same random numbers as the blocks.
/// [`WrittenBlocks`] ignores these pauses.
fn writer_of(before: Option<&Phase>, stream: &Stream) -> Option<Stream> {
    let back = stream.reads_back()?;
    let mut writer = before?.streams.get(back)?.clone();
    (writer.pace, writer.flow, writer.flush, writer.bursts) = (Pace::Closed, None, None, None);
    Some(writer)
}

/// Whether to read back each written block once: if a stream with one lane wrote a single pass, but not with `Order::Once`, which writes
/// each block only once anyway. Otherwise, blocks are read back as often as they were written, as in fio.
fn reads_each_block_once(writer: &Stream, targets: &[&OpenTarget]) -> bool {
    let access = &writer.access;
    let room = |ready: &&OpenTarget| ready.bytes().saturating_sub(access.offset_bytes).min(access.span_bytes);
    let pass = targets.iter().map(room).fold(0, u64::saturating_add);
    let is_one_pass = writer.limit.bytes.is_none_or(|bytes| bytes <= pass);
    let once = access.lines.iter().any(|line| line.order == Order::Once);
    is_one_pass && !once && writer.lanes() == 1
}

/// Advises the kernel about the order of access to the whole file.
fn advise(file: &File, advice: Option<Advice>) -> Result<(), Failure> {
    let advice = match advice {
        None => return Ok(()),
        Some(Advice::Sequential) => rustix::fs::Advice::Sequential,
        Some(Advice::Random) => rustix::fs::Advice::Random,
    };
    rustix::fs::fadvise(file, 0, None, advice)
        .map_err(|e| Failure::Refused(format!("--advice: posix_fadvise failed: {e}; leave --advice out")))
}

/// A worker's part of a stop rule. The first workers take the remainder.
fn part_of(limit: StopRule, worker: u32, workers: u32) -> StopRule {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    let part = |whole: u64| whole / workers + u64::from(worker < whole % workers);
    StopRule { operations: limit.operations.map(part), bytes: limit.bytes.map(part), ..limit }
}

/// The CPUs of a worker: all CPUs of the stream or, with `split`, a single one. Consecutive workers get consecutive CPUs of the list.
pub(super) fn place_of(place: &Placement, worker: u32) -> Placement {
    if !place.split || place.cpus.is_empty() {
        return place.clone();
    }
    let own = place.cpus[worker as usize % place.cpus.len()];
    Placement { cpus: vec![own], ..place.clone() }
}

/// Largest number of bytes read of a payload file: far beyond any compressor's window, and little memory.
const MAX_BYTES: u64 = 256 << 20;

/// Contents of payload files by their paths in the plan, and measured properties of written data.
#[derive(Default)]
pub(super) struct Payloads {
    files: BTreeMap<String, Arc<[u8]>>,
    measured: Vec<(Data, Written)>,
}

impl Payloads {
    /// Reads all payload files of the plan.
    ///
    /// # Errors
    /// A file that cannot be read or is empty, by name.
    pub(super) fn load(plan: &Plan) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for stream in plan.streams() {
            if let Data::File(path) = &stream.data
                && !files.contains_key(path)
            {
                files.insert(path.clone(), read(path)?);
            }
        }
        Ok(Self { files, measured: Vec::new() })
    }

    /// Returns the maker of a worker's data. No other worker of the session may have this seed.
    pub(super) fn maker(&self, data: &Data, seed: u64) -> Result<Maker, Failure> {
        Maker::new(data, self.file(data), seed).map_err(Failure::Usage)
    }

    /// Returns the measured properties of a stream's data; `None` if it moves no data, or the data cannot be measured.
    pub(super) fn written(&mut self, stream: &Stream, seed: u64) -> Option<Written> {
        if stream.moves_no_data() {
            return None;
        }
        match stream.verify.as_ref().map(|verify| &verify.content) {
            // The same bytes repeat, like those of a file.
            Some(Content::Pattern { bytes, .. }) => {
                let over_and_over = Data::File(String::new());
                payload::measure(&over_and_over, Some(bytes.as_slice().into()), seed).ok()
            }
            _ => self.measured(&stream.data, seed),
        }
    }

    /// Returns the measured properties of data; `None` if they cannot be measured. Measures equal data once.
    pub(super) fn measured(&mut self, data: &Data, seed: u64) -> Option<Written> {
        if let Some((_, known)) = self.measured.iter().find(|(d, _)| d == data) {
            return Some(*known);
        }
        let written = payload::measure(data, self.file(data), seed).ok()?;
        self.measured.push((data.clone(), written));
        Some(written)
    }

    fn file(&self, data: &Data) -> Option<Arc<[u8]>> {
        if let Data::File(path) = data { self.files.get(path).cloned() } else { None }
    }
}

fn read(path: &str) -> Result<Arc<[u8]>, Failure> {
    let fail = |e: &dyn std::fmt::Display| {
        Failure::Usage(format!("--data {path}: {e}; name a file that can be read and is not empty"))
    };
    let mut bytes = Vec::new();
    files::open(path.as_ref())
        .and_then(|f| f.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(|e| fail(&e))?;
    if bytes.is_empty() { Err(fail(&"the file is empty")) } else { Ok(bytes.into()) }
}

#[test]
fn parts_of_a_limit_sum_to_the_whole() {
    let whole = StopRule { operations: Some(10), ..StopRule::default() };
    let parts: Vec<u64> = (0..4).filter_map(|w| part_of(whole, w, 4).operations).collect();
    assert_eq!(parts, [3, 3, 2, 2]);
}

#[test]
fn pinned_workers_take_the_cpus_in_turn() {
    let place = Placement { cpus: vec![0, 2], split: true, ..Placement::default() };
    let cpus: Vec<Vec<u32>> = (0..3).map(|w| place_of(&place, w).cpus).collect();
    assert_eq!(cpus, [[0], [2], [0]]);
    let shared = Placement { split: false, ..place };
    assert_eq!(place_of(&shared, 1).cpus, [0, 2]);
}
