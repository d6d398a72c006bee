//! Sources: which operation is next.
//!
//! 1. [`lanes`] compiles a stream of the plan into one source per lane. A source fills a batch at a
//!    time, so one virtual call serves many operations.
//! 2. `access` draws lines, targets, directions and sizes. `order` finds the offset, with the
//!    random draws of `draw`, in the part of the target that `span` describes.
//! 3. Sources wrap other sources: `submit_times` adds times and rates, `wrappers` adds syncs,
//!    serial overlaps and evictions, `sharing` limits workers to their shares of the operations.
//! 4. `replay` follows a captured load.

mod access;
mod draw;
mod order;
pub mod replay;
mod sharing;
mod span;
mod submit_times;
mod wrappers;

#[cfg(test)]
mod tests;

use access::Lines;
use model::job::{Clones, Kind, Pace, Sharing, Stream};
use model::payload::split_mix;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
pub use sharing::Group;
pub use sharing::StreamState;
use span::Target;
pub use span::{Pieces, in_pieces, lanes_of_task, own_blocks};
use std::collections::HashSet;
use std::sync::Arc;

/// A planned operation. It has 24 bytes and is always copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Offset of the first byte.
    pub offset: u64,
    /// A time in ns. Its meaning depends on `flags`: see [`Op::AT`] and [`Op::AFTER`]. With
    /// [`Op::CHOSEN`] only the source uses this field. Without these flags it is 0.
    pub at_ns: u64,
    /// Length in bytes; 0 for a sync.
    pub length: u32,
    /// Index of the file among the worker's files.
    pub file: u16,
    /// The direction: read, write, trim or sync.
    pub kind: Kind,
    /// Conditions of the submission: [`Op::AT`], [`Op::AFTER`], [`Op::DRAINED`], [`Op::PAIR`], [`Op::SHARED`], [`Op::SERIAL`],
    /// [`Op::CHOSEN`], [`Op::EVICTED`]. Usually 0.
    pub flags: u8,
}

impl Op {
    /// Do not submit the operation earlier than `at_ns` after the end of the worker's start delay.
    /// In an open loop the latency counts from this time.
    pub const AT: u8 = 1;
    /// Do not submit the operation earlier than `at_ns` after the lane's last completion, nor while any operation of the lane is in
    /// flight.
    pub const AFTER: u8 = 2;
    /// Do not submit the operation while an operation of the lane is in flight.
    pub const DRAINED: u8 = 4;
    /// A trim, or the write after it. The write waits for the trim.
    pub const PAIR: u8 = 8;
    /// Do not submit the operation while the source holds it back ([`Source::admit_or_wait_ns`]).
    pub const SHARED: u8 = 16;
    /// Do not submit the operation while an overlapping operation of the lane is in flight.
    pub const SERIAL: u8 = 32;
    /// A placeholder. The source chooses the operation when the lane has room ([`Source::choose`]).
    pub const CHOSEN: u8 = 64;
    /// Evict the operation's file from the page cache directly before the submission ([`Source::evict`]).
    pub const EVICTED: u8 = 128;

    /// An empty read, as a placeholder.
    pub const NONE: Self = Self { offset: 0, at_ns: 0, length: 0, file: 0, kind: Kind::Read, flags: 0 };
}

/// Maximum number of operations per refill.
pub const LOOK_AHEAD: usize = 64;

/// What a source chooses when its lane has room for an operation. Times count from the end of the
/// worker's start delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Submit this operation. The second field is the time at which it was due, in ns.
    Now(Op, u64),
    /// Submit no operation before this time, in ns.
    At(u64),
    /// Submit no operation before another one completes.
    AfterCompletion,
    /// There are no more operations.
    End,
}

/// A supply of operations. It never ends, except if the source chooses each operation ([`Op::CHOSEN`]).
pub trait Source: Send {
    /// Overwrites all of `ops` with the next operations.
    fn refill(&mut self, ops: &mut [Op]);

    /// Returns how many operations may be drawn at once, before they are submitted; 1 if workers
    /// share a position.
    fn look_ahead(&self) -> usize {
        LOOK_AHEAD
    }

    /// Called directly before the submission of an operation with [`Op::SHARED`]. Returns `None` to allow the operation and count it.
    /// Otherwise returns the ns after which to ask again, or 0 to ask after any completion.
    fn admit_or_wait_ns(&self) -> Option<u64> {
        None
    }

    /// Called once for each submitting call, before its first choice. All further choices up to the next
    /// `begin_call` belong to the same call.
    fn begin_call(&mut self) {}

    /// Chooses the operation for a placeholder with [`Op::CHOSEN`]. `now_ns` is the time since the
    /// end of the worker's start delay.
    fn choose(&mut self, _now_ns: u64) -> Choice {
        Choice::End
    }

    /// Called for each completion if the loop records single operations.
    fn completed(&mut self, _op: &Op, _now_ns: u64) {}

    /// Evicts a file, directly before an operation with [`Op::EVICTED`] is submitted.
    fn evict(&self, _file: u16) {}
}

/// A worker's place among the workers of its stream.
#[derive(Clone, Debug)]
pub struct WorkerContext {
    /// Index of the worker in its stream.
    pub worker: u32,
    /// Number of workers of the stream.
    pub workers: u32,
    /// Seed of this worker, unique in the session.
    pub seed: u64,
    /// State that all workers of the stream share in this run.
    pub stream_state: Arc<StreamState>,
}

impl WorkerContext {
    /// Returns the context of a worker that acts as the only one of its stream.
    fn alone(&self) -> Self {
        Self { worker: 0, workers: 1, ..self.clone() }
    }
}

/// Builds the lanes of one worker of a stream: one source per target for [`Sharing::Each`], else one for all targets.
///
/// `target_bytes` are the sizes of the stream's targets in order, and `target_align` the alignment of offsets and lengths on each, 1 for
/// none. [`Op::file`] is the index of a target in the same order. Spans are limited to the targets. The same stream, seeds and sizes give
/// the same operations.
///
/// # Errors
/// A message if the stream does not fit its targets or has invalid numbers.
pub fn lanes(
    stream: &Stream,
    target_bytes: &[u64],
    target_align: &[u32],
    context: &WorkerContext,
) -> Result<Vec<Box<dyn Source>>, String> {
    let count = stream.targets.len();
    if count == 0 || target_bytes.len() != count || target_align.len() != count {
        return Err(format!(
            "a stream of {count} targets came with {} sizes and {} alignments; it needs at least one target, and a size and an alignment for each",
            target_bytes.len(),
            target_align.len()
        ));
    }
    if context.worker >= context.workers {
        return Err(format!("there is no worker {} among {}", context.worker, context.workers));
    }
    if stream.pauses().next().is_some() && stream.pace != Pace::Closed {
        return Err(
            "a stream with pauses between bursts cannot have a rate too; remove the pauses or the rate"
                .into(),
        );
    }
    let targets: Vec<Target> = target_bytes
        .iter()
        .zip(target_align)
        .enumerate()
        .map(|(index, (&bytes, &align))| Target { index, bytes, align: u64::from(align.max(1)) })
        .collect();
    let each = stream.targets_each();
    if each == 0 || (stream.clones == Some(Clones::Own) && each * context.workers as usize != count) {
        return Err(format!(
            "{count} targets cannot be divided equally among {0} clones; name a multiple of {0} targets",
            context.workers
        ));
    }
    let own = match stream.clones {
        Some(Clones::Own) => context.worker as usize * each,
        _ => 0,
    };
    let targets = targets.get(own..own + each).unwrap_or_default();
    let per_lane = if stream.sharing == Sharing::Each { 1 } else { each };
    let member = match (stream.flow, &context.stream_state.group) {
        (Some(flow), Some(group)) => {
            Some(Arc::new(sharing::Member::new(Arc::clone(group), flow, stream.delay_ns > 0)?))
        }
        _ => None,
    };
    let lanes = targets.chunks(per_lane).enumerate();
    let lane = |(lane, targets)| -> Result<Box<dyn Source>, String> {
        let mut source = self::lane(stream, targets, context, lane as u64)?;
        if let Some(bursts) = stream.bursts {
            source = Box::new(submit_times::TimedBursts::new(source, bursts));
        } else {
            if stream.serialize_overlap {
                source = Box::new(wrappers::Serial(source));
            }
            if let Some(member) = &member {
                source = Box::new(sharing::GroupMember { inner: source, member: Arc::clone(member) });
            }
        }
        if let Some(files) = context.stream_state.files.clone().filter(|_| stream.evicts_each_pass) {
            source = Box::new(wrappers::EachPass::new(source, stream, context, files, target_bytes));
        }
        Ok(source)
    };
    lanes.map(lane).collect()
}

/// Builds the source of one lane, with its rate and syncs.
fn lane(
    stream: &Stream,
    targets: &[Target],
    context: &WorkerContext,
    lane: u64,
) -> Result<Box<dyn Source>, String> {
    let seed = split_mix(split_mix(context.seed).wrapping_add(lane));
    let alone = context.alone();
    let among = if stream.clones.is_some() { &alone } else { context };
    let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let lanes = stream.lanes() * u64::from(context.workers);
    // Arrival times alternate between the workers first, then between the lanes of a worker.
    let lane = lane * u64::from(context.workers) + u64::from(context.worker);
    let place = submit_times::LanePlace { lane, lanes, seed: split_mix(!seed) };
    if let Pace::Each { iops, bytes_per_s } = stream.pace {
        let inner: Box<dyn submit_times::DrawsKind> = match stream.access.strided {
            Some(zones) => Box::new(access::Strided::new(stream, zones, targets, among, rng)?),
            None => Box::new(Lines::new(stream, targets, among, rng)?),
        };
        return Ok(Box::new(submit_times::RatesByKind::new(inner, stream, iops, bytes_per_s, place)?));
    }
    let mut source: Box<dyn Source> = match stream.access.strided {
        _ if !stream.turns.is_empty() => Box::new(access::Turns::new(stream, targets, among, seed)?),
        Some(zones) => Box::new(access::Strided::new(stream, zones, targets, among, rng)?),
        None => access::cheapest(Lines::new(stream, targets, among, rng)?, seed),
    };
    let does = |kind| stream.access.lines.iter().any(|l| l.weight > 0 && l.does(kind));
    // Accesses that take turns add their own syncs.
    if let Some(flush) = stream.flush.filter(|_| stream.turns.is_empty() && does(Kind::Write)) {
        source = Box::new(wrappers::Flushed::new(source, flush)?);
    }
    submit_times::paced(source, stream.pace, place)
}

/// A source that reads back what another source writes: the same blocks in the same order.
pub struct WrittenBlocks {
    writer: Box<dyn Source>,
    distinct: Option<Distinct>,
}

/// The blocks that were already read. Used only if each block is read once.
struct Distinct {
    blocks: HashSet<(u16, u64, u32)>,
    /// How many of the `writes` first writes are not drawn yet. At 0, further reads may repeat blocks.
    left: u64,
}

impl WrittenBlocks {
    /// Reads each block as often as it was written.
    pub fn as_often_as_written(writer: Box<dyn Source>) -> Self {
        Self { writer, distinct: None }
    }

    /// Reads each block of the first `writes` writes once.
    pub fn once_each(writer: Box<dyn Source>, writes: u64) -> Self {
        Self {
            writer,
            distinct: Some(Distinct { blocks: HashSet::with_capacity(writes as usize), left: writes }),
        }
    }

    /// Returns the number of different blocks of [`Self::once_each`], by drawing all of them.
    pub fn count_distinct(mut self) -> u64 {
        while self.distinct.as_ref().is_some_and(|distinct| distinct.left > 0) {
            self.next_read();
        }
        self.distinct.map_or(0, |distinct| distinct.blocks.len() as u64)
    }

    /// Returns the next write as a read, or [`Op::NONE`] if its block was already read.
    fn next_read(&mut self) -> Op {
        // Draw one operation at a time, so that none is lost. Only sources with writes are read back, so the loop finds a write.
        let mut drawn = [Op::NONE];
        for _ in 0..MAX_BETWEEN_WRITES {
            self.writer.refill(&mut drawn);
            if drawn[0].kind == Kind::Write {
                break;
            }
        }
        let op = Op { kind: Kind::Read, at_ns: 0, flags: 0, ..drawn[0] };
        if let Some(distinct) = self.distinct.as_mut().filter(|distinct| distinct.left > 0) {
            distinct.left -= 1;
            if !distinct.blocks.insert((op.file, op.offset, op.length)) {
                return Op::NONE;
            }
        }
        op
    }
}

impl Source for WrittenBlocks {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.next_read();
            // Skip a block that was already read.
            while op.length == 0 {
                *op = self.next_read();
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.writer.look_ahead()
    }
}

/// Maximum number of operations that are drawn to find the next write of a mix. With 1 % writes, the probability that none of them is a
/// write is about 10^-44.
const MAX_BETWEEN_WRITES: usize = 10_000;

/// A source without operations, for engines that are set up outside the hot loop.
pub(crate) struct NoOperations;

impl Source for NoOperations {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op::NONE);
    }
}

/// A source that panics, to test how a panicking worker is handled.
pub struct Panicking {
    /// The source of the operations.
    pub inner: Box<dyn Source>,
    /// Number of operations before the panic.
    pub left: u32,
}

impl Source for Panicking {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        self.left = self.left.saturating_sub(ops.len() as u32);
        assert!(self.left > 0, "a fault injected on purpose (--test-hook panic-worker)");
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn admit_or_wait_ns(&self) -> Option<u64> {
        self.inner.admit_or_wait_ns()
    }

    fn evict(&self, file: u16) {
        self.inner.evict(file);
    }
}

#[cfg(test)]
struct Blocks(std::vec::IntoIter<u64>);

#[cfg(test)]
impl Source for Blocks {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            let offset = self.0.next().unwrap_or(0) * 4096;
            *op = Op { offset, length: 4096, kind: Kind::Write, ..Op::NONE };
        }
    }
}

#[test]
fn a_block_that_was_written_twice_is_read_back_once() {
    let writer = || Box::new(Blocks(vec![3, 1, 3, 3, 2, 1, 9].into_iter()));
    assert_eq!(WrittenBlocks::once_each(writer(), 6).count_distinct(), 3);
    let mut once = WrittenBlocks::once_each(writer(), 6);
    let mut each = WrittenBlocks::as_often_as_written(writer());
    let (mut blocks, mut writes) = ([Op::NONE; 3], [Op::NONE; 6]);
    once.refill(&mut blocks);
    each.refill(&mut writes);
    assert_eq!(blocks.map(|op| (op.kind, op.offset >> 12)), [3, 1, 2].map(|block| (Kind::Read, block)));
    assert_eq!(writes.map(|op| op.offset >> 12), [3, 1, 3, 3, 2, 1]);
    // Drawing beyond the last block must terminate.
    once.refill(&mut blocks);
}
