//! Sources: which operation is next.
//!
//! For: compiling a stream of the plan into endless supplies of operations. Not for: submitting them, nor their data.
//! A source fills a batch at a time, so a virtual call is paid once for many operations and the loop never waits for one.
//!
//! [`lanes`] is the way in. `lines` does any access and `plain` the plain ones; `flush`, `pace`, `flow` and `serial` are put around them.
//! `bursts` pauses by a time; `by_kind` is a mix whose directions have rates of their own; `strided` is any access in one zone of its span at
//! a time, `turns` are several accesses one after another. `walk` is sequential order, `next_offset` the
//! random orders with `zipf`, `scatter` and `map`; `span` is what they lie on, `pause` draws think times and `arrive` bursts of arrivals,
//! and `placed` finds a span that is stored in pieces, `shared` the part of a span that is one worker's among those of all hosts; `each_pass` evicts what a pass
//! begins with. `replay` is a load that was captured, and comes from elsewhere.

mod alias;
mod arrive;
mod bursts;
mod by_kind;
mod common;
mod draw;
mod each_pass;
mod evenly;
mod flow;
mod flush;
mod lines;
mod map;
mod next_offset;
mod pace;
mod pause;
mod placed;
mod plain;
pub mod replay;
mod scatter;
mod serial;
mod shared;
mod span;
mod strided;
mod turns;
mod walk;
mod zipf;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod theory;

pub use common::Common;
pub use flow::Group;
pub use placed::{Pieces, Placed};
pub use shared::{lanes_of_task, own_blocks};

use lines::Lines;
use model::job::{Clones, Kind, Pace, Sharing, Stream};
use model::payload::split_mix;
use next_offset::NextOffset;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use span::Target;
use std::collections::HashSet;
use std::sync::Arc;

/// One operation to come. 32 bytes, copied and never shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// First byte.
    pub offset: u64,
    /// A time in ns whose meaning `flags` says; 0 without [`Op::AT`] and [`Op::AFTER`]. With [`Op::CHOSEN`] the source's own.
    pub at_ns: u64,
    /// Bytes; 0 for a sync.
    pub length: u32,
    /// Index of the file among the worker's files.
    pub file: u16,
    /// What it does.
    pub kind: Kind,
    /// Conditions of submitting it: [`Op::AT`], [`Op::AFTER`], [`Op::DRAINED`], [`Op::PAIR`], [`Op::SHARED`], [`Op::SERIAL`],
    /// [`Op::CHOSEN`], [`Op::EVICTED`]. Mostly none.
    pub flags: u8,
}

impl Op {
    /// Not before `at_ns` since the lane's first operation. In an open loop its latency counts from there.
    pub const AT: u8 = 1;
    /// Not before `at_ns` have passed since the lane's last completion, with nothing of the lane in flight.
    pub const AFTER: u8 = 2;
    /// Not while anything of the lane is in flight.
    pub const DRAINED: u8 = 4;
    /// A trim, or the operation right behind one: that not before the trim has completed.
    pub const PAIR: u8 = 8;
    /// Not while the source holds it back ([`Source::hold`]).
    pub const SHARED: u8 = 16;
    /// Not while bytes that it is about are those of an operation of the lane in flight.
    pub const SERIAL: u8 = 32;
    /// Which one it is is asked when there is room for it ([`Source::choose`]).
    pub const CHOSEN: u8 = 64;
    /// Its file is evicted from the page cache right before ([`Source::evict`]).
    pub const EVICTED: u8 = 128;

    /// A read of nothing, to fill places with.
    pub const NONE: Self = Self { offset: 0, at_ns: 0, length: 0, file: 0, kind: Kind::Read, flags: 0 };
}

/// Most operations that a source is asked for at once.
pub const LOOK_AHEAD: usize = 64;

/// What a source answers that is asked for its next operation when there is room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one, which was due at this time in ns since the beginning.
    Now(Op, u64),
    /// None before this time.
    At(u64),
    /// None before something completes.
    Later,
    /// None any more.
    End,
}

/// An endless supply of operations, unless it is asked for each ([`Op::CHOSEN`]).
pub trait Source: Send {
    /// Overwrites all of `ops` with the next operations.
    fn refill(&mut self, ops: &mut [Op]);

    /// How many operations may be drawn ahead of their submission. Fewer where workers share a position.
    fn look_ahead(&self) -> usize {
        LOOK_AHEAD
    }

    /// Asked right before an operation with [`Op::SHARED`] would be submitted: `None` where it may be, and is counted; else the time
    /// in ns after which to ask again, 0 for as soon as anything happens.
    fn hold(&self) -> Option<u64> {
        None
    }

    /// Told that the next operation that it chooses is the first of a call to the kernel; those that it chooses behind that are in the
    /// same call.
    fn begin_call(&mut self) {}

    /// Asked in place of an operation with [`Op::CHOSEN`], at this time in ns since the beginning.
    fn choose(&mut self, _now_ns: u64) -> Choice {
        Choice::End
    }

    /// Told of each completion, where the loop looks at single operations.
    fn completed(&mut self, _op: &Op, _now_ns: u64) {}

    /// Evicts a file, right before an operation with [`Op::EVICTED`] is submitted.
    fn evict(&self, _file: u16) {}
}

/// Who asks, where several workers share one stream.
#[derive(Clone, Debug)]
pub struct Share {
    /// Index of the worker in its stream.
    pub worker: u32,
    /// Workers of the stream.
    pub workers: u32,
    /// Seed that no other worker of the session has.
    pub seed: u64,
    /// What all workers of the stream have in common in this run.
    pub common: Arc<Common>,
}

/// The lanes of one worker of a stream: one source per target for [`Sharing::Each`], else one for all targets.
///
/// `target_bytes` are the sizes of the stream's targets, in their order; `target_align` what offsets and lengths must be
/// multiples of on each, 1 where it does not matter. [`Op::file`] counts the targets in the same order. Spans are cut to
/// the targets. Sources of the same stream, seeds and sizes give the same operations.
///
/// # Errors
/// A sentence for people where the stream does not fit its targets or a number in it means nothing.
pub fn lanes(
    stream: &Stream,
    target_bytes: &[u64],
    target_align: &[u32],
    share: &Share,
) -> Result<Vec<Box<dyn Source>>, String> {
    let count = stream.targets.len();
    if count == 0 || target_bytes.len() != count || target_align.len() != count {
        return Err(format!(
            "a stream of {count} targets came with {} sizes and {} alignments; each of its targets, at least one, needs both",
            target_bytes.len(),
            target_align.len()
        ));
    }
    if share.worker >= share.workers {
        return Err(format!("there is no worker {} among {}", share.worker, share.workers));
    }
    let has_pause = stream.access.lines.iter().any(|l| l.weight > 0 && l.delay_ns > 0);
    if has_pause && stream.pace != Pace::Closed {
        return Err("a line with pauses between bursts cannot be paced too; take one of the two away".into());
    }
    let targets: Vec<Target> = target_bytes
        .iter()
        .zip(target_align)
        .enumerate()
        .map(|(index, (&bytes, &align))| Target { index, bytes, align: u64::from(align.max(1)) })
        .collect();
    let each = stream.targets_each();
    if each == 0 || (stream.clones == Some(Clones::Own) && each * share.workers as usize != count) {
        return Err(format!(
            "{count} targets cannot be divided among {} clones; name as many for each",
            share.workers
        ));
    }
    let own = match stream.clones {
        Some(Clones::Own) => share.worker as usize * each,
        _ => 0,
    };
    let targets = targets.get(own..own + each).unwrap_or_default();
    let per_lane = if stream.sharing == Sharing::Each { 1 } else { each };
    let member = match (stream.flow, share.common.group()) {
        (Some(flow), Some(group)) => {
            Some(Arc::new(flow::Member::new(Arc::clone(group), flow, stream.delay_ns > 0)?))
        }
        _ => None,
    };
    let lanes = targets.chunks(per_lane).enumerate();
    let lane = |(lane, targets)| -> Result<Box<dyn Source>, String> {
        let mut source = self::lane(stream, targets, share, lane as u64)?;
        if let Some(bursts) = stream.bursts {
            source = Box::new(bursts::Timed::new(source, bursts));
        } else {
            if stream.serialize_overlap {
                source = Box::new(serial::Serial(source));
            }
            if let Some(member) = &member {
                source = Box::new(flow::Shared { inner: source, member: Arc::clone(member) });
            }
        }
        if let Some(files) = share.common.files().filter(|_| stream.evicts_each_pass) {
            source = Box::new(each_pass::EachPass::new(source, stream, share, (files, target_bytes)));
        }
        Ok(source)
    };
    lanes.map(lane).collect()
}

/// One lane with all that is around it.
fn lane(stream: &Stream, targets: &[Target], share: &Share, lane: u64) -> Result<Box<dyn Source>, String> {
    let seed = split_mix(split_mix(share.seed).wrapping_add(lane));
    // A clone goes its way as if it were alone.
    let alone = Share { worker: 0, workers: 1, seed: share.seed, common: Arc::clone(&share.common) };
    let among = if stream.clones.is_some() { &alone } else { share };
    let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let lanes = stream.lanes() * u64::from(share.workers);
    // Workers next to each other in time, then their lanes.
    let lane = lane * u64::from(share.workers) + u64::from(share.worker);
    let place = pace::Place { lane, lanes, seed: split_mix(!seed) };
    if let Pace::Each { .. } = stream.pace {
        let inner: Box<dyn by_kind::OfKind> = match stream.access.strided {
            Some(zones) => Box::new(strided::Strided::new((stream, zones), targets, among, rng)?),
            None => Box::new(Lines::new(stream, targets, among, rng)?),
        };
        return Ok(Box::new(by_kind::ByKind::new(inner, stream, place)?));
    }
    let mut source: Box<dyn Source> = match stream.access.strided {
        _ if !stream.turns.is_empty() => Box::new(turns::Turns::new(stream, targets, among, seed)?),
        Some(zones) => Box::new(strided::Strided::new((stream, zones), targets, among, rng)?),
        None => shortest(Lines::new(stream, targets, among, rng)?, seed),
    };
    let does = |kind| stream.access.lines.iter().any(|l| l.weight > 0 && l.does(kind));
    // Turns have their own.
    if let Some(flush) = stream.flush.filter(|_| stream.turns.is_empty() && does(Kind::Write)) {
        source = Box::new(flush::Flushed::new(source, flush)?);
    }
    pace::paced(source, stream.pace, place)
}

/// The source of an access that costs least per operation.
fn shortest(lines: Lines, seed: u64) -> Box<dyn Source> {
    plain(&lines, seed).unwrap_or_else(|| Box::new(lines))
}

/// A source for one line of one size on one target, where the access is no more than that.
fn plain(lines: &Lines, seed: u64) -> Option<Box<dyn Source>> {
    let ([line], [file]) = (lines.rows.as_slice(), lines.files.as_slice()) else { return None };
    let [place] = file.places.as_slice() else { return None };
    let size = line.most();
    if line.least() != size || !line.is_plain() {
        return None;
    }
    let first = Op { offset: place.span.base, length: size as u32, file: file.index, ..Op::NONE };
    let (kinds, rng) = (line.kinds, Xoshiro256PlusPlus::seed_from_u64(seed));
    match &place.next_offset {
        NextOffset::Walk => {
            let walk = place.walk.straight(size)?;
            Some(Box::new(plain::Sequential { first, walk, kinds, rng }))
        }
        NextOffset::Uniform(uniform) => {
            let (align, count) = (place.span.align, uniform.count(size));
            Some(Box::new(plain::Random { first, align, count, kinds, rng }))
        }
        _ => None,
    }
}

/// What another source writes, to be read: the same blocks in the same order.
pub struct Back {
    writer: Box<dyn Source>,
    once: Option<Once>,
}

/// The blocks that were read, if each is to be read once.
struct Once {
    blocks: HashSet<(u16, u64, u32)>,
    /// Writes that may still be drawn: after them a block may come again, since none is left.
    left: u64,
}

impl Back {
    /// Reads each write, as often as its block was written.
    pub fn each(writer: Box<dyn Source>) -> Self {
        Self { writer, once: None }
    }

    /// Reads each block once that one of the first `writes` wrote.
    pub fn each_block(writer: Box<dyn Source>, writes: u64) -> Self {
        Self { writer, once: Some(Once { blocks: HashSet::with_capacity(writes as usize), left: writes }) }
    }

    /// How many blocks that is; it draws all of them.
    pub fn blocks(mut self) -> u64 {
        while self.once.as_ref().is_some_and(|once| once.left > 0) {
            self.read();
        }
        self.once.map_or(0, |once| once.blocks.len() as u64)
    }

    /// The next write, as a read.
    fn read(&mut self) -> Op {
        // One by one, so that none is drawn in vain. A source that never writes is none that is read back.
        let mut drawn = [Op::NONE];
        for _ in 0..MOST_BETWEEN_WRITES {
            self.writer.refill(&mut drawn);
            if drawn[0].kind == Kind::Write {
                break;
            }
        }
        let op = Op { kind: Kind::Read, at_ns: 0, flags: 0, ..drawn[0] };
        if let Some(once) = self.once.as_mut().filter(|once| once.left > 0) {
            once.left -= 1;
            if !once.blocks.insert((op.file, op.offset, op.length)) {
                return Op::NONE;
            }
        }
        op
    }
}

impl Source for Back {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.read();
            // A block that was read before.
            while op.length == 0 {
                *op = self.read();
            }
        }
    }

    fn look_ahead(&self) -> usize {
        self.writer.look_ahead()
    }
}

/// Operations that come between two writes of a mix at most: of one percent of writes there are fewer but once in 10^43.
const MOST_BETWEEN_WRITES: usize = 10_000;

/// Panics after some hundred operations: the fault that fathom's own tests put in.
pub struct Panicking(pub Box<dyn Source>, pub u32);

impl Source for Panicking {
    fn refill(&mut self, ops: &mut [Op]) {
        self.0.refill(ops);
        self.1 = self.1.saturating_sub(ops.len() as u32);
        assert!(self.1 > 0, "a fault that was put in on purpose (--test-hook panic-worker)");
    }

    fn look_ahead(&self) -> usize {
        self.0.look_ahead()
    }

    fn hold(&self) -> Option<u64> {
        self.0.hold()
    }

    fn evict(&self, file: u16) {
        self.0.evict(file);
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
    assert_eq!(Back::each_block(writer(), 6).blocks(), 3);
    let mut once = Back::each_block(writer(), 6);
    let mut each = Back::each(writer());
    let (mut blocks, mut writes) = ([Op::NONE; 3], [Op::NONE; 6]);
    once.refill(&mut blocks);
    each.refill(&mut writes);
    assert_eq!(blocks.map(|op| (op.kind, op.offset >> 12)), [3, 1, 2].map(|block| (Kind::Read, block)));
    assert_eq!(writes.map(|op| op.offset >> 12), [3, 1, 3, 3, 2, 1]);
    // The loop draws ahead of its last operation; that must end.
    once.refill(&mut blocks);
}
