//! Plans a replay (`--replay`, `fathom run x.capture`): settings that the user did not give come from the capture, and its operations must
//! fit on the target. `capture::replay` reads the file.

use crate::capture::replay::{Scanned, scan};
use crate::failure::Failure;
use crate::plan::Draft;
use crate::plan::engine::engine_names;
use crate::plan::origins::Origins;
use crate::request::Request;
use machine::test_file::MIN_BYTES;
use model::job::{
    Arrivals, Cache, Changes, Create, Filling, Kind, Mix, Order, Original, PerKind, Percent, Replay,
    ReplayPace, Sizes, Stream,
};
use model::name;
use model::plan::{Role, Target};
use model::spec::number::{MAX_BLOCK_BYTES, MAX_DEPTH};
use model::spec::{Rw, StreamSpec};
use model::units::{MIB, show_bytes, show_counted, show_ns};

/// Lowest default depth, unless the buffers allow less.
const MIN_DEPTH: u32 = 32;
/// Most bytes of buffers if no depth is given.
const MAX_BUFFER_BYTES: u64 = 256 * MIB;
/// Smallest share of the operations that a direction gets if it occurs in the capture.
const MIN_SHARE: f64 = 1e-7;
/// Size given to a direction that does not occur in the capture.
const PLACEHOLDER_SIZE: u32 = 4096;

/// The captured load that a stream replays, and the files that its trace names.
pub(crate) struct ReplayPlan {
    replay: Replay,
    files: Vec<String>,
}

/// Completes a replaying stream with the settings of its load. Returns `None` if the stream is not
/// a replay.
pub(crate) fn from_capture(stream: &mut StreamSpec) -> Result<Option<ReplayPlan>, Failure> {
    let Some(given) = stream.replay.clone() else { return Ok(None) };
    let path = &name::path(&given.file);
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(path)));
    let Scanned { has_completions, has_stable_writes, original, files, .. } = scan(path, &given.changes)?;
    if original.operations() == 0 {
        return Err(usage(
            "it has no request that could be replayed; `fathom show` prints the content of a capture".into(),
        ));
    }
    let pace = match given.pace {
        Some(ReplayPace::Dependent) if !has_completions => {
            return Err(usage(
                "it has no completion times, so no request can wait for another; type --pace timed or --pace fast".into(),
            ));
        }
        None if !has_completions => ReplayPace::Timed,
        pace => pace.unwrap_or_default(),
    };
    let largest =
        Kind::MOVING.iter().filter_map(|kind| original.for_kind(*kind)).map(|kind| kind.sizes[1]).max();
    let largest = largest.unwrap_or(u64::from(PLACEHOLDER_SIZE));
    if largest > MAX_BLOCK_BYTES {
        return Err(usage(format!(
            "it has a request of {}, and the largest operation that fathom submits is {}",
            show_bytes(largest),
            show_bytes(MAX_BLOCK_BYTES)
        )));
    }
    let replay = Replay {
        file: given.file,
        pace,
        speed: given.speed.unwrap_or(1.0),
        changes: given.changes,
        dense: false,
        stable_writes: has_stable_writes,
        largest_bytes: largest as u32,
        original,
    };
    let original = &replay.original;
    (stream.rw, stream.mix, stream.bs) =
        (Some(Rw::Randrw), Some(shares(original)), Some(size_ranges(original, largest as u32)));
    stream.random = Some(Order::Mixed((100.0 - original.sequential_percent).round().clamp(1.0, 99.0)));
    // The limit counts no syncs. The source ends the stream, so syncs after the last counted operation are issued too.
    let counted = original.operations() - original.count(Kind::Sync);
    if stream.resolved.limit.operations != Some(0) {
        stream.resolved.limit.operations = Some(counted.max(1));
    }
    stream.depth = stream.depth.or(Some(default_depth(&replay)));
    if pace == ReplayPace::Timed {
        let seconds = replay.expected_ns().unwrap_or(0).max(1) as f64 / 1e9;
        (stream.rate, stream.arrivals) = (Some(counted.max(1) as f64 / seconds), Some(Arrivals::Constant));
    }
    Ok(Some(ReplayPlan { replay, files }))
}

/// Twice the largest number of operations in flight in the original, from [`MIN_DEPTH`] to [`MAX_DEPTH`]. [`MAX_BUFFER_BYTES`] lowers this,
/// but not below the original's number or [`MIN_DEPTH`], whichever is smaller.
fn default_depth(replay: &Replay) -> u32 {
    let twice = replay.original.depth_max.saturating_mul(2).clamp(MIN_DEPTH, MAX_DEPTH);
    let most = MAX_BUFFER_BYTES / u64::from(replay.largest_bytes.max(1));
    twice.min(u32::try_from(most).unwrap_or(u32::MAX)).max(replay.original.depth_max.clamp(1, MIN_DEPTH))
}

/// Shares of directions. A direction that occurs keeps at least a tiny share, because without writes the file is opened
/// read-only.
fn shares(original: &Original) -> Mix {
    let counts = [Kind::Read, Kind::Write, Kind::Trim].map(|kind| original.count(kind) as f64);
    let all: f64 = counts.iter().sum();
    if all == 0.0 {
        return Mix::from_percents(100, 0);
    }
    let [reads, writes, trims] =
        counts.map(|count| if count > 0.0 { count.max(all * MIN_SHARE) } else { 0.0 });
    let percent = |count: f64| Percent::nearest(100.0 * count / (reads + writes + trims)).unwrap_or_default();
    let trim_percent = percent(trims);
    let read_percent = if writes == 0.0 { trim_percent.rest(Percent::NONE) } else { percent(reads) };
    Mix { read_percent, trim_percent }
}

/// Smallest and largest size of each direction, reduced to `largest`. Only sizes of trims can be larger than that: trims have no buffer.
fn size_ranges(original: &Original, largest: u32) -> PerKind<Sizes> {
    let range = |kind: Kind| {
        let Some([least, most]) = original.for_kind(kind).map(|kind| kind.sizes) else {
            return Sizes::Fixed(PLACEHOLDER_SIZE.min(largest));
        };
        let [least, most] = [least, most].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX).min(largest));
        if least == most { Sizes::Fixed(most) } else { Sizes::Range(least, most) }
    };
    PerKind { read: range(Kind::Read), write: range(Kind::Write), trim: range(Kind::Trim) }
}

/// Makes a drafted stream the replay of a capture.
pub(crate) fn apply_capture(
    request: &Request,
    from_capture: ReplayPlan,
    draft: &mut Draft,
    origins: &mut Origins,
) -> Result<(), Failure> {
    let ReplayPlan { mut replay, files } = from_capture;
    let given = draft.spec.replay.as_ref();
    let pace = given.and_then(|given| given.pace);
    let from =
        if replay.pace == ReplayPace::Timed { "the capture has no completion times" } else { "default" };
    origins.choose_from("--pace", pace, replay.pace, from, |pace| pace.word().into());
    origins.choose("--speed", given.and_then(|given| given.speed), 1.0, f64::to_string);
    let Changes { divide, align_bytes, skip, .. } = &replay.changes;
    origins.note("--replay-scale", Some(*divide).filter(|n| *n > 0), u64::to_string);
    origins.note("--replay-align", Some(*align_bytes).filter(|n| *n > 0), |n| show_bytes(*n));
    let kinds = |skip: &Vec<Kind>| skip.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(",");
    origins.note("--replay-skip", Some(skip).filter(|skip| !skip.is_empty()), |skip| kinds(skip));
    let original = &replay.original;
    origins.record("capture", &describe_original(original), &replay.file);
    name_files(request, &replay, files, draft)?;
    let stream = &mut draft.stream;
    if stream.moves_no_data() {
        return Err(Failure::Usage(format!(
            "--engine {} moves no data, which a replay must do; type another engine",
            stream.engine
        )));
    }
    // In a directory, fathom makes a file with room for the blocks that the capture touches.
    let named =
        draft.spec.target.first().map(|path| name::path(path)).or_else(|| request.targets.first().cloned());
    let is_made = draft.engine.touches_targets() && named.is_none_or(|path| path.is_dir());
    if is_made {
        draft.size = Some(original.footprint_bytes.max(MIN_BYTES).next_multiple_of(MIB));
    }
    replay.dense = is_made;
    if replay.stable_writes && stream.cache == Cache::Mmap {
        return Err(Failure::Usage(
            "--cache mmap: the capture has FUA writes, which are stable when they complete, and a memory mapping has no such writes; type --cache direct".into(),
        ));
    }
    stream.replay = Some(Box::new(replay));
    match stream.kinds().find(|kind| !draft.engine.kinds.contains(kind)) {
        Some(kind) => Err(Failure::Usage(format!(
            "the capture has {}s, which the engine {} cannot do; type --engine with one of {}",
            kind.word(),
            stream.engine,
            engine_names(|e| e.kinds.contains(&kind))
        ))),
        None => Ok(()),
    }
}

/// Sends the operations of a trace to the file that the trace names, unless the user names a target. A missing file is created if it is
/// written. Refuses a trace of several files.
fn name_files(
    request: &Request,
    replay: &Replay,
    files: Vec<String>,
    draft: &mut Draft,
) -> Result<(), Failure> {
    if files.len() > 1 {
        return Err(Failure::Usage(format!(
            "{}: its operations are on {} files, such as {} and {}, and a replay uses a single one; make fio write a log for each job and file",
            replay.file,
            files.len(),
            files[0],
            files[1]
        )));
    }
    let is_named =
        !draft.spec.target.is_empty() || !request.targets.is_empty() || !draft.engine.touches_targets();
    let original = &replay.original;
    if is_named || files.is_empty() {
        return Ok(());
    }
    let filling = if original.count(Kind::Read) > 0 { Filling::Data } else { Filling::Blocks };
    let writes = original.count(Kind::Write) > 0;
    draft.spec.create = writes.then_some(Create { bytes: original.end_bytes, filling, unlink: false });
    draft.spec.target = files;
    Ok(())
}

/// Example: `98,026 operations of vda in 12.1 s, 6 tasks, 1.5 GiB touched`.
fn describe_original(original: &Original) -> String {
    format!(
        "{} of {} in {}, {}, {} touched",
        show_counted(original.operations(), "operation"),
        original.device,
        show_ns(original.elapsed_ns as f64),
        show_counted(original.tasks.into(), "task"),
        show_bytes(original.footprint_bytes)
    )
}

/// Decides whether a replay keeps the captured offsets or packs the touched blocks without gaps
/// (`dense`), or refuses a target that is too small. Replays in another tool's language keep all
/// offsets.
pub(crate) fn place_on_target(
    stream: &mut Stream,
    targets: &[&Target],
    is_foreign: bool,
) -> Result<(), Failure> {
    let is_direct = stream.cache.is_direct();
    let Some(replay) = &mut stream.replay else { return Ok(()) };
    let original = &replay.original;
    let [target] = targets else {
        return Err(Failure::Usage("a replay needs a single target; name one".into()));
    };
    let align = if is_direct { target.block_bytes.max(1) } else { 1 };
    if !original.align_bytes.is_multiple_of(align) && align > original.align_bytes {
        return Err(Failure::Usage(format!(
            "{} has requests at multiples of {} bytes, and direct I/O to {} needs multiples of {align}; name a target with smaller blocks, or type --cache buffered",
            replay.file, original.align_bytes, target.path
        )));
    }
    if target.role == Role::Made {
        return Ok(());
    }
    replay.dense = original.end_bytes > target.bytes;
    if replay.dense && is_foreign {
        return Err(Failure::Usage(format!(
            "the operations of {} end at {}, and {} has {}; name a larger target, or divide the offsets by replay_scale with replay_align",
            replay.file,
            show_bytes(original.end_bytes),
            target.path,
            show_bytes(target.bytes)
        )));
    }
    if replay.dense && original.footprint_bytes > target.bytes {
        return Err(Failure::Usage(format!(
            "{} touches {} of data, but {} has only {}; name a target of at least {}",
            replay.file,
            show_bytes(original.footprint_bytes),
            target.path,
            show_bytes(target.bytes),
            show_bytes(original.footprint_bytes)
        )));
    }
    Ok(())
}

#[test]
fn absent_directions_have_no_share() {
    let mix = |reads: u64, writes: u64, trims: u64| {
        let kinds = [(Kind::Read, reads), (Kind::Write, writes), (Kind::Trim, trims)];
        let kind = |(kind, operations)| model::job::OriginalKind {
            kind,
            operations,
            bytes: 0,
            sizes: [4096; 2],
            p50_ns: None,
            p99_ns: None,
        };
        shares(&Original { kinds: kinds.map(kind).to_vec(), ..Original::default() })
    };
    assert_eq!(mix(5, 0, 0), Mix::from_percents(100, 0));
    assert_eq!(
        [mix(0, 5, 0), mix(0, 0, 5), mix(3, 1, 0), mix(0, 0, 0)].map(Mix::describe),
        ["write", "trim", "75/25", "read"]
    );
    for (reads, writes, trims) in [(u64::MAX, 1, 0), (1, 1, u64::MAX), (u64::MAX, 0, 1), (1, 0, u64::MAX)] {
        let mix = mix(reads, writes, trims);
        let does = [Kind::Read, Kind::Write, Kind::Trim].map(|kind| mix.does(kind));
        assert_eq!(does, [reads > 0, writes > 0, trims > 0], "{mix:?}");
    }
}
