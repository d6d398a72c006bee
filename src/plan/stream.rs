//! Streams: fills in the defaults of a workload's stream, and refuses impossible combinations. Only the targets remain
//! open.
//!
//! Settings with a fixed default are parsed into `StreamSpec::resolved` or `line`, and copied as
//! they are. The others are resolved here, because they depend on other settings:
//!
//! - `depth`, `cache` and `batch` on the engine
//! - `size`, `create` and `own` on the target
//! - `shared` on `passes`
//! - `think`, `period` and `burst` on `burst-time`
//!
//! `compress`, `dedup`, `zeros`, `counting` and `data` become a single value.
//!
//! The machine is read only for the CPUs of a NUMA node (`--node`).

use crate::failure::Failure;
use crate::plan::Draft;
use crate::plan::engine::engine_names;
use crate::plan::origins::Origins;
use engine::engines::Entry;
use model::job::{
    Access, Advice, Arrivals, Batch, Bursts, Cache, Clones, Data, Every, Flush, Kind, Line, Mix, Order, Pace,
    PerKind, Placement, ReplayPace, Shared, Sizes, Stream, SyncCall, ThinkLaw, Turn, Verify,
};
use model::spec::conditions::RateLimit;
use model::spec::keys::KEYS;
use model::spec::number::word_of;
use model::spec::{JobSpec, ReplaySpec, Rw, StreamSpec, TurnSpec, values};
use model::units::{show_bytes, show_counted};

/// Slots of an open loop: enough for a stall of about 100 ms at 1000 operations per second.
const OPEN_DEPTH: u32 = 128;

/// Fills a stream's unset settings with defaults, and records the origin of each setting. The
/// targets come later.
pub(super) fn draft(spec: &StreamSpec, origins: &mut Origins) -> Result<Draft, Failure> {
    let engine = choose_engine(spec, origins)?;
    let default_cache = engine.caches.first().copied().unwrap_or(Cache::Direct);
    let cache = origins.choose("--cache", spec.cache, default_cache, |c| c.word().into());
    let (access, flush, turns) = resolve_operations(spec, origins);
    let pace = resolve_pace(spec, &access, origins);
    let usual_depth = default_depth(&pace, &access).min(engine.max_depth);
    let depth = origins.choose("--depth", spec.depth, usual_depth, u32::to_string);
    let typed_workers = spec.has("workers").then_some(spec.resolved.workers);
    let workers = origins.choose("--workers", typed_workers, 1, u32::to_string);
    check_advice(spec, cache)?;
    check_eviction(spec, cache, engine)?;
    let batch = resolve_batch(spec, engine, depth, origins)?;
    let data = resolve_data(spec);
    origins.note("data", (data != Data::default()).then_some(&data), |d| describe_data(d));
    check_verification(spec, engine, &data)?;
    check_rules(spec, engine)?;
    check_priorities(spec, engine)?;
    note_given(spec, origins);
    let mut stream = Stream {
        name: spec.name.clone().unwrap_or_default(),
        access,
        turns,
        shared: spec.shared.map(|layout| Shared { layout, passes: spec.passes }),
        workers,
        depth,
        engine: engine.name.into(),
        options: spec.engine.as_ref().map(|e| e.options.clone()).unwrap_or_default(),
        cache,
        batch,
        pace,
        bursts: timed_bursts(spec),
        flush,
        data,
        place: resolve_cpus(&spec.resolved.place)?,
        ..spec.resolved.clone()
    };
    if let Some(kind) = stream.kinds().find(|k| !engine.kinds.contains(k)) {
        return Err(refuse_kind(engine, kind));
    }
    let kinds: Vec<Kind> = stream.kinds().collect();
    stream.min_rate = stream.min_rate.map(|rule| rule.for_kinds(|kind| kinds.contains(&kind)));
    Ok(Draft { stream, engine, size: typed_span(spec), spec: spec.clone() })
}

/// Returns the default depth. The caller lowers it to the maximum of the engine.
fn default_depth(pace: &Pace, access: &Access) -> u32 {
    match (pace, access.pattern()) {
        (Pace::Open { .. }, _) => OPEN_DEPTH,
        (_, Some(model::job::Pattern::Sequential)) => 8,
        _ => 32,
    }
}

/// Records the settings that the user typed, except those with a default that is always shown.
fn note_given(spec: &StreamSpec, origins: &mut Origins) {
    for key in KEYS {
        origins.note(&format!("--{}", key.name), key.shown(spec), String::clone);
    }
}

/// Checks the verification settings: the engine must move data, and no other flag may choose the
/// content of the data.
fn check_verification(spec: &StreamSpec, engine: &Entry, data: &Data) -> Result<(), Failure> {
    let Some(verify) = &spec.resolved.verify else { return Ok(()) };
    let typed = spec.engine.iter().flat_map(|engine| engine.options.keys());
    if let Some(name) = engine.name_without_data(typed)
        && (verify.checks || engine.touches_targets())
    {
        return Err(Failure::Usage(format!(
            "--verify: the engine {name} moves no bytes that could be verified; type another engine, or leave --verify out"
        )));
    }
    if *data != Data::default() {
        return Err(Failure::Usage(
            "--verify writes its own data; leave --compress, --dedup, --zeros, --counting and --data out"
                .into(),
        ));
    }
    Ok(())
}

/// Refuses operation priorities if the engine does not support them.
fn check_priorities(spec: &StreamSpec, engine: &Entry) -> Result<(), Failure> {
    if spec.resolved.op_priorities.is_empty() || engine.takes_priorities {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--op-priority: the engine {} cannot set the priority of single operations; type --engine with one of {}, or --io-priority for all operations",
        engine.name,
        engine_names(|e| e.takes_priorities)
    )))
}

/// Refuses rules that are checked during a run, if the engine's clock is not real time.
fn check_rules(spec: &StreamSpec, engine: &Entry) -> Result<(), Failure> {
    let rules = ["steady-state", "min-rate", "max-latency"];
    match rules.into_iter().find(|key| spec.has(key) && engine.name == "sim") {
        Some(key) => Err(Failure::Usage(format!(
            "--{key}: the engine sim has its own clock, so a run ends before --{key} could be checked; type another engine, such as null"
        ))),
        None => Ok(()),
    }
}

fn choose_engine(spec: &StreamSpec, origins: &mut Origins) -> Result<&'static Entry, Failure> {
    let entry = crate::plan::engine::find(spec).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    let given = spec.engine.as_ref().map(|e| e.name.clone());
    origins.choose("--engine", given, crate::plan::engine::default_engine_name(spec).into(), Clone::clone);
    let options = spec.engine.as_ref().map(|e| &e.options).filter(|o| !o.is_empty());
    origins.note("engine options", options, |o| values::format_options(o));
    Ok(entry)
}

fn refuse_kind(engine: &Entry, kind: Kind) -> Failure {
    Failure::Usage(format!(
        "the engine {} cannot {}; type --engine with one of {}",
        engine.name,
        kind.word(),
        engine_names(|e| e.kinds.contains(&kind))
    ))
}

/// Returns the access lines, the syncs and the turns of a stream. In a stream with turns, each turn has its own lines and syncs, and the
/// returned lines and syncs of the stream summarise all turns.
fn resolve_operations(spec: &StreamSpec, origins: &mut Origins) -> (Access, Option<Flush>, Vec<Turn>) {
    if spec.turns.is_empty() {
        let access = resolve_access(spec, origins);
        let flush = resolve_flush(spec, &access, origins);
        return (access, flush, Vec::new());
    }
    let mut turns = Vec::new();
    for (at, TurnSpec { operations, settings }) in spec.turns.iter().enumerate() {
        let length = operations.unwrap_or(Every::writes(1));
        origins.inside(&format!("turn {}", at + 1), |origins| {
            origins.note("ops", Some(length), |length| length.format_count());
            origins.note("--size", settings.size, |s| show_bytes(*s));
            let mut access = resolve_access(settings, origins);
            access.span_bytes = settings.size.unwrap_or(u64::MAX);
            let flush = resolve_flush(settings, &access, origins);
            note_given(settings, origins);
            turns.push(Turn { operations: length.writes, turns: length.calls, access, flush });
        });
    }
    let (access, flush) = Turn::summarize(&turns);
    (access, flush, turns)
}

/// The typed span in bytes. With turns: from the first offset to the last end, or `None` unless each turn has a span.
fn typed_span(spec: &StreamSpec) -> Option<u64> {
    if spec.turns.is_empty() {
        return spec.size;
    }
    let offset = |settings: &StreamSpec| settings.resolved.access.offset_bytes;
    let ends = spec.turns.iter().map(|turn| Some(offset(&turn.settings).saturating_add(turn.settings.size?)));
    let ends: Option<Vec<u64>> = ends.collect();
    let first = spec.turns.iter().map(|turn| offset(&turn.settings)).min();
    Some(ends?.into_iter().max()?.saturating_sub(first?))
}

fn resolve_access(spec: &StreamSpec, origins: &mut Origins) -> Access {
    let rw = origins.choose("--rw", spec.rw, Rw::Randread, |rw| rw.word().into());
    let lines = if spec.resolved.access.lines.is_empty() {
        vec![plain_line(spec, rw, origins)]
    } else {
        spec.resolved.access.lines.clone()
    };
    Access { lines, ..spec.resolved.access.clone() }
}

/// Returns the access line of a stream that has plain settings instead of `--line`.
fn plain_line(spec: &StreamSpec, rw: Rw, origins: &mut Origins) -> Line {
    let order = if rw.is_random() {
        spec.random.clone().unwrap_or(Order::Random)
    } else {
        Order::Sequential(spec.steps)
    };
    let mix = match rw.fixed_mix() {
        Some(mix) => mix,
        None => origins.choose("--mix", spec.mix, Mix::EVEN, |m| m.describe()),
    };
    let default = PerKind::all(Sizes::Fixed(if rw.is_random() { 4096 } else { 1 << 20 }));
    let sizes = origins.choose("--bs", spec.bs.clone(), default, describe_sizes);
    // With `--burst-time`, the think time separates bursts of the whole stream, not operations of this line.
    let is_paced_by_line = spec.burst_time.is_none();
    let delay = spec.period.as_ref().or(spec.think.as_ref().filter(|_| is_paced_by_line));
    Line {
        order,
        mix,
        sizes,
        burst: spec.burst.filter(|_| is_paced_by_line).unwrap_or(1),
        delay_ns: delay.map_or(0, |think| think.mean_ns),
        delay_law: delay.map_or(ThinkLaw::Fixed, |think| think.law.clone()),
        by_period: spec.period.is_some(),
        writes_after_trims: rw.writes_after_trims(),
        ..spec.line.clone()
    }
}

/// Returns the bursts of `--burst-time`; `None` without it.
fn timed_bursts(spec: &StreamSpec) -> Option<Bursts> {
    let (time_ns, pause) = spec.burst_time.zip(spec.think.as_ref())?;
    Some(Bursts { time_ns, pause_ns: pause.mean_ns, operations: spec.burst })
}

pub(super) fn describe_sizes(sizes: &PerKind<Sizes>) -> String {
    let PerKind { read, write, trim } = sizes;
    if read == write && write == trim {
        return read.describe();
    }
    format!("read {}, write {}, trim {}", read.describe(), write.describe(), trim.describe())
}

fn resolve_pace(spec: &StreamSpec, access: &Access, origins: &mut Origins) -> Pace {
    if let Some(iops) = spec.rate {
        let arrivals = origins.choose("--arrivals", spec.arrivals, Arrivals::default(), |a| a.to_flag());
        return Pace::Open { iops, arrivals };
    }
    let limits = [spec.limit_iops, spec.limit_bandwidth];
    let mut kinds = access.kinds();
    let only = kinds.next().filter(|_| kinds.next().is_none());
    if limits == [None, None] {
        return Pace::Closed;
    }
    // A limit per direction is the total if there is only one direction.
    if only.is_some() || !limits.iter().flatten().any(|limit| limit.each().is_some()) {
        let [iops, bytes_per_s] = limits.map(|limit| match limit {
            Some(RateLimit::All(rate)) => rate,
            Some(RateLimit::Each(each)) => only.map_or(0.0, |kind| each.for_kind(kind)),
            None => 0.0,
        });
        return Pace::Limited { iops, bytes_per_s };
    }
    let [iops, bytes_per_s] =
        limits.map(|limit| limit.and_then(|limit| limit.each().copied()).unwrap_or(PerKind::all(0.0)));
    Pace::Each { iops, bytes_per_s }
}

/// Resolves the CPUs of workers. With `--pin` (a CPU for each worker) and without `--cpus`, the workers get the CPUs of `--node`.
fn resolve_cpus(place: &Placement) -> Result<Placement, Failure> {
    let mut resolved = place.clone();
    if let Some(node) = place.node.filter(|_| place.split && place.cpus.is_empty()) {
        let cpus = sys::thread::cpus_of(node);
        resolved.cpus = cpus.map_err(|e| Failure::Usage(format!("--pin --node {node}: {e}")))?;
    }
    Ok(resolved)
}

fn resolve_batch(
    spec: &StreamSpec,
    engine: &Entry,
    depth: u32,
    origins: &mut Origins,
) -> Result<Batch, Failure> {
    if let Some(given) = spec.batch.filter(|b| b.submit > engine.max_depth) {
        return Err(Failure::Usage(format!(
            "--batch {}: the engine {} takes {} at a time; leave --batch out, or type --engine io_uring or libaio",
            given.submit,
            engine.name,
            show_counted(engine.max_depth.into(), "operation")
        )));
    }
    // Checked here, because the default depth of a test or an engine is known only now.
    if let Some(given) = spec.batch.filter(|b| b.submit.max(b.complete) > depth) {
        return Err(Failure::Usage(format!(
            "--batch {},{} is more than the depth {depth}; use a smaller batch, or a larger --depth",
            given.submit, given.complete
        )));
    }
    let format_batch = |b: &Batch| format!("{},{}", b.submit, b.complete);
    let waits = |replay: &ReplaySpec| replay.pace != Some(ReplayPace::Fast);
    let (submit, from) = match engine.default_batch {
        0 => (depth, format!("engine {}", engine.name)),
        // A replay submits together what the captured program submitted together.
        _ if engine.max_depth > 1 && spec.replay.as_ref().is_some_and(waits) => {
            (depth, "operations issued together are submitted in one call".into())
        }
        some => (some, format!("engine {}", engine.name)),
    };
    Ok(origins.choose_from("--batch", spec.batch, Batch { submit, complete: 1 }, &from, format_batch))
}

fn resolve_flush(spec: &StreamSpec, access: &Access, origins: &mut Origins) -> Option<Flush> {
    let given = [
        (SyncCall::Fsync, spec.fsync),
        (SyncCall::Fdatasync, spec.fdatasync),
        (SyncCall::SyncFileRange, spec.sync_file_range),
    ];
    let (call, every) = given.into_iter().find_map(|(call, every)| Some((call, every?)))?;
    let drain = spec.drain;
    let how = if drain { ", drained" } else { "" };
    origins.note(call.word(), Some(every), |every| format!("{}{how}", every.describe()));
    access.writes().then_some(Flush { call, every: every.writes, calls: every.calls, drain })
}

fn resolve_data(spec: &StreamSpec) -> Data {
    match (&spec.data, spec.zeros) {
        (Some(file), _) => Data::File(file.clone()),
        (None, true) => Data::Zeros,
        (None, false) if spec.counting => Data::Counting,
        _ => Data::Random {
            compress_percent: spec.compress.unwrap_or(0),
            dedup_percent: spec.dedup.unwrap_or(0),
            dedup_set_bytes: spec.dedup_set,
            dedup_shared: spec.dedup_shared,
        },
    }
}

fn describe_data(data: &Data) -> String {
    match data {
        Data::Random { compress_percent, dedup_percent, .. } => {
            let origin = data.copies_of();
            format!("random, {compress_percent} % compressible, {dedup_percent} % copies{origin}")
        }
        Data::Zeros => "zeros".into(),
        Data::Counting => "the bytes 0 to 255".into(),
        Data::File(path) => format!("the bytes of {path}"),
    }
}

/// The bytes after which a stream ends: as typed, or after the passes over these spans, whichever comes first. `None` without either.
pub(super) fn limit_bytes(passes: Option<u32>, stream: &Stream, spans: &[u64]) -> Option<u64> {
    let Some(passes) = passes else { return stream.limit.bytes };
    let one: u64 = spans.iter().map(|span| pass_bytes(stream, *span)).sum();
    let clones = if stream.clones == Some(Clones::Same) { u64::from(stream.workers) } else { 1 };
    let all = one.saturating_mul(u64::from(passes)).saturating_mul(clones);
    Some(stream.limit.bytes.map_or(all, |given| given.min(all)).max(1))
}

/// Bytes of one pass over a span: as many operations as fit into the span or, with `--strided`, into its zones.
fn pass_bytes(stream: &Stream, span: u64) -> u64 {
    let size = u64::from(stream.access.smallest_bytes().max(1));
    let times = stream.access.times_each();
    if let Some(zones) = stream.access.strided {
        let last = stream.access.bytes_in_last_zone(zones, span);
        return zones.whole(span).saturating_mul(zones.moved(size * times)).saturating_add(last);
    }
    let step = match stream.access.lines.first().map(|l| &l.order) {
        Some(Order::Sequential(steps)) if steps.stride_bytes > 0 => steps.stride_bytes,
        Some(Order::Sequential(steps)) => size.saturating_add(steps.hole_bytes),
        _ => size,
    };
    let fits = span.checked_sub(size).map_or(0, |rest| rest / step.max(1) + 1);
    fits.saturating_mul(size).saturating_mul(times)
}

/// Refuses `--advice` if the stream bypasses the page cache.
fn check_advice(spec: &StreamSpec, cache: Cache) -> Result<(), Failure> {
    let Some(advice) = spec.resolved.advice.filter(|_| cache.is_direct()) else { return Ok(()) };
    Err(Failure::Usage(format!(
        "--advice {} affects the page cache, which --cache {} bypasses; type --cache buffered, or leave --advice out",
        word_of(&Advice::WORDS, &advice),
        cache.word()
    )))
}

/// Refuses `--evict-each-pass` if it could evict nothing: there are no files, or they bypass the page cache or are mapped.
fn check_eviction(spec: &StreamSpec, cache: Cache, engine: &Entry) -> Result<(), Failure> {
    if !spec.has("evict-each-pass") {
        return Ok(());
    }
    let why = match cache {
        _ if !engine.touches_targets() => {
            return Err(Failure::Usage(format!(
                "--evict-each-pass: the engine {} has no files to evict; leave --evict-each-pass out",
                engine.name
            )));
        }
        Cache::Mmap => "maps the files, whose mapped pages are not evicted",
        cache if cache.is_direct() => "bypasses the page cache",
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!(
        "--evict-each-pass evicts the page cache, and --cache {} {why}; type --cache buffered, or leave --evict-each-pass out",
        cache.word()
    )))
}

/// Resolves a stream that reads another one's blocks: it gets the writer's settings without those in [`NOT_READ_BACK`]. Other streams are
/// unchanged.
///
/// # Errors
/// A usage failure if there is no such stream, or if its blocks cannot be verified.
pub(super) fn resolve_read_back(
    spec: &JobSpec,
    phase: usize,
    stream: &StreamSpec,
) -> Result<StreamSpec, Failure> {
    let Some(number) = stream.read_back else { return Ok(stream.clone()) };
    let fault = |why: &str| Err(Failure::Usage(format!("read-back = {number}: {why}")));
    let index = number.saturating_sub(1) as usize;
    let before = phase.checked_sub(1).and_then(|before| spec.phases.get(before)?.streams.get(index));
    let Some(writer) = before else {
        return fault(
            "the previous phase has no such stream; type the number of a stream in that phase, counted from 1",
        );
    };
    let rw = match writer.rw {
        Some(Rw::Write | Rw::Rw | Rw::Trimwrite) => Rw::Read,
        Some(Rw::Randwrite | Rw::Randrw | Rw::Randtrimwrite) => Rw::Randread,
        _ => return fault("that stream writes nothing; type the number of one that writes"),
    };
    let Some(verify) = &writer.resolved.verify else {
        return fault("that stream writes no data that can be verified; write verify = \"stamps\" into it");
    };
    let limits = [writer.limit_iops, writer.limit_bandwidth];
    if matches!(writer.rw, Some(Rw::Rw | Rw::Randrw)) && limits.iter().flatten().any(|l| l.each().is_some()) {
        return fault(
            "that stream has a rate limit for each direction, so timing decides which blocks it writes; type one limit for all directions",
        );
    }
    let verify = Verify { checks: true, back: Some(index), ..verify.clone() };
    let mut reader = StreamSpec {
        name: stream.name.clone().or_else(|| writer.name.clone()),
        rw: Some(rw),
        bs: writer.bs.clone().map(|bs| PerKind::all(bs.write)),
        ..writer.clone()
    };
    reader.reset(&NOT_READ_BACK);
    reader.resolved.verify = Some(verify);
    reader.resolved.log_interval_ns = stream.resolved.log_interval_ns;
    Ok(reader)
}

/// Keys of the writer that do not apply to the reader, which reads at full speed until it has read
/// everything.
#[rustfmt::skip]
const NOT_READ_BACK: [&str; 25] = [
    "mix", "positions", "read-back", "rate", "arrivals", "limit-iops", "limit-bandwidth", "flow",
    "serialize-overlap", "evict-each-pass", "think", "period", "burst", "burst-time", "think-spin",
    "fsync", "fdatasync", "sync-file-range", "drain", "ops", "bytes", "stop-after", "passes", "delay",
    "op-log-interval",
];

#[test]
fn a_pass_has_as_many_operations_as_fit() {
    use model::job::{Access, Mix, Pattern, Steps, Strided};
    let mut stream = Stream::plain(Access::plain(Pattern::Sequential, 1 << 20, 100), 1, 1, "sync");
    assert_eq!(pass_bytes(&stream, (10 << 20) + 5), 10 << 20);
    // As in fio: 85 operations of 1 MiB with holes of 512 KiB fit into 128 MiB.
    stream.access.lines[0].order = Order::Sequential(Steps { hole_bytes: 512 << 10, ..Steps::default() });
    assert_eq!(pass_bytes(&stream, 128 << 20), 85 << 20);
    assert_eq!(pass_bytes(&stream, 5), 0);
    let mut zones = Stream::plain(Access::plain(Pattern::Sequential, 1 << 20, 100), 1, 1, "sync");
    let strided = |bytes: u64| Some(Strided { bytes, range_bytes: 8 << 20, skip_bytes: 24 << 20 });
    zones.access.strided = strided(3 << 20);
    assert_eq!(pass_bytes(&zones, (64 + 8) << 20), 9 << 20);
    assert_eq!(pass_bytes(&zones, (64 + 2) << 20), 8 << 20, "of the last zone there are two blocks");
    zones.access.strided = strided((3 << 20) + 1);
    assert_eq!(pass_bytes(&zones, 64 << 20), 8 << 20, "the last of a zone is done whole");
    let mut pairs = stream.clone();
    pairs.access.lines[0].mix = Mix::from_percents(0, 100);
    pairs.access.lines[0].writes_after_trims = true;
    assert_eq!(pass_bytes(&pairs, 128 << 20), 170 << 20, "fio trims 85 and writes 85");
    let mut repeated = stream.clone();
    repeated.access.lines[0].times = 4;
    assert_eq!(pass_bytes(&repeated, 128 << 20), 4 * (85 << 20), "four operations at each offset");
    let clones = Stream { workers: 3, clones: Some(Clones::Same), ..stream };
    assert_eq!(limit_bytes(Some(2), &clones, &[128 << 20]), Some(6 * (85 << 20)));
    assert_eq!(limit_bytes(None, &clones, &[128 << 20]), None);
}

#[test]
fn a_stream_reads_back_without_the_pauses_of_its_writer() {
    use model::spec::PhaseSpec;
    let resolved = |pauses: &[(&str, &str)]| {
        let mut writer = StreamSpec { rw: Some(Rw::Randwrite), ..StreamSpec::default() };
        assert_eq!(writer.set("verify", "stamps"), Ok(()));
        for (key, value) in pauses {
            assert_eq!(writer.set(key, value), Ok(()));
        }
        let reader = StreamSpec { read_back: Some(1), ..StreamSpec::default() };
        let phase = |stream: &StreamSpec| PhaseSpec { streams: vec![stream.clone()], ..PhaseSpec::default() };
        let spec = JobSpec { phases: vec![phase(&writer), phase(&reader)], ..JobSpec::default() };
        resolve_read_back(&spec, 1, &reader).unwrap_or_else(|e| panic!("{e:?}"))
    };
    let plain = resolved(&[]);
    assert_eq!(plain.rw, Some(Rw::Randread));
    assert_eq!(resolved(&[("period", "10ms"), ("burst", "4")]), plain);
    assert_eq!(resolved(&[("think", "10ms"), ("burst-time", "1s"), ("think-spin", "1ms")]), plain);
}
