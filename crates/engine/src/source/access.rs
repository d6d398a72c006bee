//! An access compiled for the targets of a lane: lines, targets, directions and sizes drawn for
//! every operation.
//!
//! 1. As in Iometer's access specifications, the line is drawn first, then the direction, the size
//!    and the place.
//! 2. A line with a pause is drawn once for a whole burst. A line may have replies: operations in
//!    the opposite direction, one after each operation. A trim may be followed by a write of the
//!    same bytes. Replies and these writes do not count as operations of the burst.
//! 3. All lines of a lane share one position per target, so a sequential operation continues from
//!    the previous operation, whichever line it was of. Workers share the positions of interlocked
//!    lines, and directions may have separate positions.
//! 4. Plain accesses (one line, one size, one target) use [`Sequential`] and [`Random`], which cost
//!    less per operation.
//! 5. [`Turns`] alternates between several accesses. The first operation of a turn waits until all
//!    operations of the previous turn have completed. If the access has pauses or periods, the turn
//!    also begins a burst. Each access continues where it was at the end of its last turn.
//! 6. [`Strided`] uses one zone of the span at a time. Workers begin at zones that are spread over
//!    the span, and each visits all zones. Only sequential blocks of one size use the incomplete
//!    zone at the end of the span, because other operations could reach beyond the span.

use crate::source::draw::{Kinds, Lengths, WeightedDraw};
use crate::source::order::{ForwardWalk, LastOp, NextOffset, Walk};
use crate::source::sharing::SharedPosition;
use crate::source::span::{Span, Target};
use crate::source::submit_times::{DrawsKind, Pause};
use crate::source::wrappers::{EvenSpread, Syncs};
use crate::source::{Op, Source, WorkerContext};
use model::job::{
    self, Access, Kind, Order, Positions, Sharing, Sizes, Start, Steps, Stream, Strided as Zones, Turn,
};
use model::payload::split_mix;
use model::spec::number::MAX_INTERLEAVED;
use model::units::{show_bytes, show_counted};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// An access compiled for the targets of a lane.
pub(super) struct Lines {
    /// Draws the line of the next burst or operation.
    weighted_draw: WeightedDraw,
    compiled: Vec<Line>,
    files: Vec<File>,
    target_choice: TargetChoice,
    rng: Xoshiro256PlusPlus,
    /// Whether one of the lines has a position that workers share.
    is_shared: bool,
    /// The line of the current burst.
    line: usize,
    /// Number of operations that remain in the current burst.
    left_in_burst: u32,
    /// Start of the current burst in ns, as in [`Op::AT`]. Used only if bursts begin at fixed times.
    clock_ns: u64,
    reply: Option<Reply>,
    /// The operation to repeat at the same offset, and the number of repetitions left; `None` if
    /// none is left.
    repeated: Option<(Op, u32)>,
}

/// One line of an access, with all settings that do not depend on the target.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
struct Line {
    kinds: Kinds,
    /// Sizes by the index of the kind; `None` for kinds that are never drawn.
    lengths: [Option<Lengths>; 3],
    burst: u32,
    pause: Pause,
    /// Whether bursts begin at fixed times instead of after a pause.
    by_period: bool,
    reply_bytes: u32,
    /// Flags of each trim and of the write that follows it; `None` if no write follows a trim.
    pair: Option<u8>,
    /// Whether each direction has its own position.
    has_own_positions: bool,
    /// Number of consecutive operations: the first is at a random place, the others follow it
    /// sequentially.
    consecutive: u32,
    /// Number of consecutive operations that remain before the next random place.
    left_of_consecutive: u32,
    /// For each direction, the probability that an operation continues sequentially after the previous one; `None` if run lengths are
    /// not random.
    continue_chance: Option<[f64; 3]>,
    /// Whether all directions restart when one of them reaches the end.
    restarts: bool,
    /// Number of interleaved positions.
    interleaved: u32,
    /// Number of operations at the same offset.
    operations_per_offset: u32,
    /// Whether the direction is drawn only when a random place is drawn, and then applies to all
    /// operations until the next random place.
    mix_by_run: bool,
    /// The direction of all operations until the next random place is drawn. Used only with
    /// `mix_by_run`, otherwise `None`.
    run_kind: Option<Kind>,
}

/// A target with the state of each line.
struct File {
    /// Index of the file among the worker's files.
    index: u16,
    /// Last operation of each position. [`Line::position`] is the index.
    last: [LastOp; 3],
    places: Vec<LineState>,
}

/// The state of one line on one target.
struct LineState {
    span: Span,
    next_offset: NextOffset,
    walk: Walk,
    /// Last operations of the interleaved positions: three for each position, one per direction.
    /// Empty if positions are not interleaved.
    interleaved_last: Vec<LastOp>,
}

/// How the next target is selected.
enum TargetChoice {
    One,
    RoundRobin { next: usize },
    Random,
    Weighted(WeightedDraw),
    Turns(TargetTurns),
}

/// Selects targets of a group, in order or at random, each for several consecutive operations.
/// After a pass over all bytes of a target, the next target replaces it in the group. If no target is
/// left, the group shrinks. When it is empty, all passes begin again.
struct TargetTurns {
    drawn: bool,
    operations: u32,
    open: usize,
    group: Vec<usize>,
    /// Index of the current target in the group.
    at: usize,
    /// Number of operations that remain on the current target before another one is selected.
    left: u32,
    /// Index of the target that enters the group next.
    next: usize,
    /// For each target the bytes of a pass.
    pass: Vec<u64>,
    /// For each target the bytes that remain of the current pass.
    rest: Vec<u64>,
    /// Size of the smallest operation in bytes. With fewer bytes left, a pass is over.
    least: u64,
}

/// The second operation of a pair.
#[derive(Clone, Copy)]
enum Reply {
    /// A reply in the opposite direction.
    Opposite { line: usize, file: usize, request: Kind },
    /// The write of the same bytes after a trim.
    WriteAfterTrim(Op),
}

impl Lines {
    /// Compiles an access for its targets. Fails if the access does not fit the targets or has invalid numbers.
    pub(super) fn new(
        stream: &job::Stream,
        targets: &[Target],
        context: &WorkerContext,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        let lines: Vec<&job::Line> = stream.access.lines.iter().filter(|l| l.weight > 0).collect();
        let weighted_draw = WeightedDraw::new(lines.iter().map(|l| l.weight), "the access's lines")?;
        let align = targets.iter().map(|t| t.align).max().unwrap_or(1);
        // With a depth of 1 the trim has completed before the write is submitted.
        let flags = if stream.depth > 1 { Op::PAIR } else { 0 };
        let compiled = |line: &&job::Line| Line::new(line, align, flags);
        let compiled: Vec<Line> = lines.iter().map(compiled).collect::<Result<_, _>>()?;
        let line_count = lines.len();
        let file = |target: &Target| {
            let place = |(i, (plan, line))| {
                // The index of a shared position depends only on line and target, so it is the same for all workers.
                let shared_position = || context.stream_state.position(target.index * line_count + i);
                LineState::new(&stream.access, plan, line, target, context, shared_position)
            };
            let places =
                lines.iter().copied().zip(&compiled).enumerate().map(place).collect::<Result<_, _>>()?;
            let index = u16::try_from(target.index)
                .map_err(|_| "a stream has at most 65536 targets; divide it into several".to_owned())?;
            Ok::<File, String>(File { index, last: [LastOp::NONE; 3], places })
        };
        let files: Vec<File> = targets.iter().map(file).collect::<Result<_, _>>()?;
        let pass = files.iter().map(|f| f.places.first().map_or(0, |place| place.span.bytes)).collect();
        let least = compiled.iter().map(Line::least).min().unwrap_or(1);
        let target_choice =
            TargetChoice::new(&stream.sharing, targets.len(), context.worker, || (pass, least))?;
        let is_shared = files.iter().flat_map(|f| &f.places).any(|p| p.walk.is_shared());
        Ok(Self {
            weighted_draw,
            compiled,
            files,
            target_choice,
            rng,
            is_shared,
            line: 0,
            left_in_burst: 0,
            clock_ns: 0,
            reply: None,
            repeated: None,
        })
    }

    /// Returns whether the next operation is the second one of a pair.
    pub(super) fn owes_a_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// Ends the current burst: the next operation begins another one.
    pub(super) fn begin_burst(&mut self) {
        (self.left_in_burst, self.repeated) = (0, None);
    }

    /// Resets all positions; an order that visits each block once begins another pass.
    pub(super) fn begin_again(&mut self) {
        self.repeated = None;
        self.compiled.iter_mut().for_each(|line| (line.left_of_consecutive, line.run_kind) = (0, None));
        for file in &mut self.files {
            file.last = [LastOp::NONE; 3];
            file.places.iter_mut().for_each(|place| place.next_offset.begin_again());
            file.places.iter_mut().for_each(|place| place.interleaved_last.fill(LastOp::NONE));
        }
    }

    /// Returns the next operation.
    #[inline]
    pub(super) fn next(&mut self) -> Op {
        self.next_as(Line::kind)
    }

    /// Returns the next operation. `kind` draws its direction, unless it is a reply or a
    /// repetition. Compiled for each closure, so that drawing a direction costs no check.
    #[inline]
    fn next_as(&mut self, kind: impl FnOnce(&Line, &mut Xoshiro256PlusPlus) -> Kind) -> Op {
        if let Some(reply) = self.reply.take() {
            return self.reply_op(reply);
        }
        if let Some((op, left)) = self.repeated.take() {
            return self.repeat(op, left);
        }
        let mut op = Op::NONE;
        if self.left_in_burst == 0 {
            self.line = self.weighted_draw.draw(&mut self.rng);
            let line = &self.compiled[self.line];
            self.left_in_burst = line.burst;
            if !line.pause.is_none() {
                (op.at_ns, op.flags) = line.begin_burst(&mut self.clock_ns, &mut self.rng);
            }
        }
        self.left_in_burst -= 1;
        let line = &mut self.compiled[self.line];
        let target = self.target_choice.draw(self.files.len(), &mut self.rng);
        let file = &mut self.files[target];
        op.file = file.index;
        op.kind = kind(line, &mut self.rng);
        op.length = line.lengths[op.kind as usize].as_ref().map_or(0, |l| l.draw(&mut self.rng));
        let place = &mut file.places[self.line];
        let mut size = u64::from(op.length);
        let position = line.position(op.kind);
        let last = if place.interleaved_last.is_empty() {
            &mut file.last[position]
        } else {
            let run = self.rng.random_range(0..line.interleaved) as usize;
            &mut place.interleaved_last[run * file.last.len() + position]
        };
        let drawn = if line.continues(op.kind, *last, &mut self.rng) {
            None
        } else {
            place.next_offset.draw(place.span.align, &mut size, &mut self.rng)
        };
        if line.mix_by_run {
            // All sizes are equal here, so the place fits in any direction.
            if drawn.is_some() && line.run_kind.is_some() {
                op.kind = line.kinds.draw(&mut self.rng);
            }
            line.run_kind = Some(op.kind);
        }
        let is_drawn = drawn.is_some();
        let mut start = drawn.unwrap_or_else(|| {
            if let Some(lengths) = line.lengths[op.kind as usize].as_ref().filter(|l| l.varies()) {
                size = lengths.fitting(size, place.walk.left(*last), &mut self.rng);
            }
            place.walk.next(*last, size)
        });
        op.length = size as u32;
        if line.restarts && !is_drawn && last.is_after(start) {
            start = place.walk.next(LastOp::NONE, size);
            file.last = [LastOp::NONE; 3];
            file.last[position] = LastOp::at(start, size);
        } else {
            *last = LastOp::at(start, size);
        }
        if let TargetChoice::Turns(turns) = &mut self.target_choice {
            turns.count(target, size);
        }
        op.offset = place.span.base + start;
        if line.operations_per_offset > 1 {
            self.repeated = Some((op, line.operations_per_offset - 1));
        }
        if op.kind == Kind::Trim {
            if let Some(flags) = line.pair {
                self.reply = Some(Reply::WriteAfterTrim(Op { kind: Kind::Write, flags, at_ns: 0, ..op }));
                op.flags |= flags;
            }
        } else if line.reply_bytes > 0 {
            self.reply = Some(Reply::Opposite { line: self.line, file: target, request: op.kind });
        }
        op
    }

    /// Returns another operation at the place of `op`, with a newly drawn direction. `left` operations remain, including this one.
    fn repeat(&mut self, op: Op, left: u32) -> Op {
        let kinds = &self.compiled[self.line].kinds;
        let op = Op { kind: kinds.draw(&mut self.rng), at_ns: 0, flags: 0, ..op };
        self.repeated = (left > 1).then_some((op, left - 1));
        op
    }

    fn reply_op(&mut self, reply: Reply) -> Op {
        let (line, file, request) = match reply {
            Reply::WriteAfterTrim(op) => return op,
            Reply::Opposite { line, file, request } => (line, file, request),
        };
        let kind = if request == Kind::Read { Kind::Write } else { Kind::Read };
        let length = self.compiled[line].reply_bytes;
        let file = &mut self.files[file];
        let place = &file.places[line];
        // A reply shares the position of its request.
        let last = &mut file.last[self.compiled[line].position(request)];
        let start = place.walk.next(*last, u64::from(length));
        *last = LastOp::at(start, u64::from(length));
        Op { offset: place.span.base + start, length, file: file.index, kind, ..Op::NONE }
    }
}

impl DrawsKind for Lines {
    fn next_of(&mut self, kind: Kind) -> Op {
        self.next_as(|_, _| kind)
    }
}

impl Source for Lines {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.next();
        }
    }

    fn look_ahead(&self) -> usize {
        // With a shared position, draw one operation at a time: the other workers would skip places that this
        // worker drew ahead.
        if self.is_shared { 1 } else { crate::source::LOOK_AHEAD }
    }
}

impl Line {
    fn new(line: &job::Line, target_align: u64, pair_flags: u8) -> Result<Self, String> {
        let kinds = Kinds::new(line.mix)?;
        // Replies have their own size, so do not use `job::Line::does`, which includes replies.
        let lengths = |kind, sizes| {
            kinds.does(kind).then(|| Lengths::new(sizes, line.align_bytes, target_align)).transpose()
        };
        let lengths = [
            lengths(Kind::Read, &line.sizes.read)?,
            lengths(Kind::Write, &line.sizes.write)?,
            lengths(Kind::Trim, &line.sizes.trim)?,
        ];
        let pause = Pause::new(line)?;
        let is_mixed = matches!(kinds, Kinds::Drawn { .. });
        let has_own_positions = line.positions != Positions::Shared && is_mixed;
        let continue_chance = line
            .chances_to_continue()
            .ok_or("a line needs a mean run length of 1 or more operations, and shares of random operations from 0 to 100 %")?;
        let mix_by_run = line.mix_by_run && is_mixed;
        let mut drawn = line.drawn_sizes().map(Sizes::fixed);
        let first = drawn.next().flatten();
        let is_of_one_size = first.is_some() && drawn.all(|size| size == first);
        let has_replies = line.has_pairs() || line.reply_bytes > 0;
        if (mix_by_run || line.times > 1) && (!is_of_one_size || has_replies) {
            return Err("repeated offsets (times) and runs of one direction (mix-by-run) need one size for all operations, no replies and no writes after trims; change these, or remove times and mix-by-run".into());
        }
        Ok(Self {
            kinds,
            lengths,
            // A line with a pause is drawn once per burst, any other line for each operation.
            burst: if pause.is_none() { 1 } else { line.burst.max(1) },
            pause,
            by_period: line.by_period,
            reply_bytes: line.reply_bytes,
            pair: line.has_pairs().then_some(pair_flags),
            has_own_positions,
            consecutive: line.consecutive,
            left_of_consecutive: 0,
            continue_chance: continue_chance.iter().any(|chance| *chance > 0.0).then_some(continue_chance),
            restarts: has_own_positions && line.positions == Positions::OwnRestart,
            interleaved: line.interleaved.clamp(1, MAX_INTERLEAVED),
            operations_per_offset: line.times,
            mix_by_run,
            run_kind: None,
        })
    }

    /// Returns `at_ns` and `flags` of the first operation of a burst. Advances the clock if bursts
    /// begin at fixed times.
    fn begin_burst(&self, clock_ns: &mut u64, rng: &mut Xoshiro256PlusPlus) -> (u64, u8) {
        let drawn = self.pause.draw(rng);
        if !self.by_period {
            return (drawn, Op::AFTER);
        }
        *clock_ns = clock_ns.saturating_add(drawn);
        (*clock_ns, Op::AT | Op::DRAINED)
    }

    /// Returns whether the next operation continues sequentially after the previous one. If so, no
    /// place is drawn.
    #[inline]
    fn continues(&mut self, kind: Kind, last: LastOp, rng: &mut Xoshiro256PlusPlus) -> bool {
        if let Some(chances) = self.continue_chance {
            let chance = chances[kind as usize];
            // A direction that always continues (chance 1) begins at the first place.
            return chance >= 1.0 || (!last.is_none() && rng.random::<f64>() < chance);
        }
        let begins = self.left_of_consecutive == 0;
        self.left_of_consecutive =
            if begins { self.consecutive.saturating_sub(1) } else { self.left_of_consecutive - 1 };
        !begins
    }

    /// Draws the direction of the next operation.
    #[inline]
    fn kind(&self, rng: &mut Xoshiro256PlusPlus) -> Kind {
        self.run_kind.unwrap_or_else(|| self.kinds.draw(rng))
    }

    /// Returns the index of the position that a kind uses.
    #[inline]
    fn position(&self, kind: Kind) -> usize {
        if self.has_own_positions { kind as usize } else { 0 }
    }

    /// Returns whether the line has none of these: runs of consecutive operations, interleaved or
    /// separate positions, repeated offsets, runs of one direction, pauses, replies, writes after trims.
    fn is_plain(&self) -> bool {
        let has_reply = self.reply_bytes > 0 || self.pair.is_some();
        let has_runs = self.consecutive > 1 || self.continue_chance.is_some() || self.interleaved > 1;
        let is_special =
            self.has_own_positions || self.mix_by_run || has_runs || self.operations_per_offset > 1;
        !is_special && !has_reply && self.pause.is_none()
    }

    /// Returns the smallest size of an operation that is not a reply.
    fn least(&self) -> u64 {
        self.lengths.iter().flatten().map(Lengths::least).min().map_or(1, u64::from)
    }

    /// Returns the largest size of an operation that is not a reply.
    fn most(&self) -> u64 {
        self.lengths.iter().flatten().map(Lengths::most).max().map_or(1, u64::from)
    }

    /// Returns a size that violates the alignment of a target; `None` if all sizes are aligned.
    fn misfit(&self, align: u64) -> Option<u64> {
        let reply = u64::from(self.reply_bytes);
        self.lengths
            .iter()
            .flatten()
            .find_map(|l| l.misfit(align))
            .or((!reply.is_multiple_of(align)).then_some(reply))
    }
}

impl LineState {
    fn new(
        access: &job::Access,
        plan: &job::Line,
        line: &Line,
        target: &Target,
        context: &WorkerContext,
        shared_position: impl FnOnce() -> Arc<SharedPosition>,
    ) -> Result<Self, String> {
        let (least, most) = (line.least(), line.most());
        if let Some(size) = line.misfit(target.align) {
            return Err(target.misfit("a size", size));
        }
        let largest = most.max(u64::from(line.reply_bytes));
        let mut span = target.span(access.offset_bytes, access.span_bytes, largest)?;
        let steps = match &plan.order {
            Order::Sequential(steps) => Some(*steps),
            _ => None,
        };
        let align = match (plan.align_bytes, steps) {
            (0, Some(_)) => 1,
            (0, None) => least,
            (align, _) => align,
        };
        // If the alignment overflows, use one that is larger than the span: only offset 0 fits then.
        span.align = align.checked_next_multiple_of(target.align).unwrap_or(target.align << 32);
        let (worker, workers) = (context.worker, context.workers);
        if line.has_own_positions && steps.is_some_and(|s| s.start == Start::Interlocked) && workers > 1 {
            return Err(
                "workers that share one position cannot have a separate position for each direction; choose another --start"
                    .into(),
            );
        }
        let steps = steps.unwrap_or(Steps { start: Start::Spread, ..Steps::default() });
        let fixed = least == most && line.reply_bytes == 0;
        let walk = Walk::new(span, steps, least, fixed, worker, workers, shared_position);
        let next_offset =
            NextOffset::new(plan, span, least..=most, target.index, worker, workers, &context.stream_state)?;
        // The interleaved sequential positions of all workers together start evenly spread over the
        // span.
        let runs = if line.interleaved > 1 { line.interleaved } else { 0 };
        let drawn = !matches!(plan.order, Order::Sequential(_) | Order::Mixed(_));
        let begin = |run: u32| {
            let part = u128::from(run) * u128::from(workers) + u128::from(worker);
            let parts = u128::from(runs) * u128::from(workers);
            if drawn { LastOp::NONE } else { LastOp::at((u128::from(span.bytes) * part / parts) as u64, 0) }
        };
        let interleaved_last = (0..runs).flat_map(|run| [begin(run); 3]).collect();
        Ok(Self { span, next_offset, walk, interleaved_last })
    }
}

impl TargetChoice {
    fn new(
        sharing: &Sharing,
        targets: usize,
        worker: u32,
        pass: impl FnOnce() -> (Vec<u64>, u64),
    ) -> Result<Self, String> {
        Ok(match sharing {
            Sharing::Weighted(weights) if weights.len() != targets => {
                return Err(format!(
                    "the stream has {} for {}; give one weight per target",
                    show_counted(weights.len() as u64, "weight"),
                    show_counted(targets as u64, "target")
                ));
            }
            _ if targets == 1 => Self::One,
            // Workers that begin at the same target would collide at every target.
            Sharing::Each | Sharing::RoundRobin => Self::RoundRobin { next: worker as usize % targets },
            Sharing::Random => Self::Random,
            Sharing::Turns { drawn, operations, open } => {
                let (pass, least) = pass();
                Self::Turns(TargetTurns::new(*drawn, *operations, *open as usize, pass, least))
            }
            Sharing::Weighted(weights) => {
                Self::Weighted(WeightedDraw::new(weights.iter().copied(), "the targets")?)
            }
        })
    }

    #[inline]
    fn draw(&mut self, targets: usize, rng: &mut Xoshiro256PlusPlus) -> usize {
        match self {
            Self::One => 0,
            Self::RoundRobin { next } => {
                let now = *next;
                *next = if now + 1 == targets { 0 } else { now + 1 };
                now
            }
            Self::Random => rng.random_range(0..targets),
            Self::Weighted(weights) => weights.draw(rng),
            Self::Turns(turns) => turns.draw(rng),
        }
    }
}

impl TargetTurns {
    fn new(drawn: bool, operations: u32, open: usize, pass: Vec<u64>, least: u64) -> Self {
        let rest = pass.clone();
        let mut turns =
            Self { drawn, operations, open, group: Vec::new(), at: 0, left: 0, next: 0, pass, rest, least };
        turns.begin_pass();
        turns
    }

    fn begin_pass(&mut self) {
        self.next = self.open.clamp(1, self.pass.len());
        self.group = (0..self.next).collect();
        // The first draw advances the index to the first target.
        self.at = self.group.len() - 1;
        self.left = 0;
    }

    fn draw(&mut self, rng: &mut Xoshiro256PlusPlus) -> usize {
        if self.left == 0 {
            let count = self.group.len();
            self.at = if self.drawn { rng.random_range(0..count) } else { (self.at + 1) % count };
            self.left = self.operations.max(1);
        }
        self.left -= 1;
        self.group.get(self.at).copied().unwrap_or(0)
    }

    /// Counts the bytes of an operation on a target. If no operation fits into the rest of the
    /// target's pass, the pass ends: the next target replaces this one in the group.
    fn count(&mut self, target: usize, bytes: u64) {
        let (Some(rest), Some(pass)) = (self.rest.get_mut(target), self.pass.get(target)) else { return };
        *rest = rest.saturating_sub(bytes);
        if *rest >= self.least {
            return;
        }
        *rest = *pass;
        self.left = 0;
        if self.next < self.pass.len() {
            self.group[self.at] = self.next;
            self.next += 1;
        } else {
            self.group.remove(self.at);
            // The following target has moved to this index. Step back, because the next draw advances.
            self.at = (self.at + self.group.len()).saturating_sub(1);
            if self.group.is_empty() {
                self.begin_pass();
            }
        }
    }
}

/// Returns the fastest source for an access: [`Sequential`] or [`Random`] if the access is plain.
pub(super) fn cheapest(lines: Lines, seed: u64) -> Box<dyn Source> {
    plain_source(&lines, seed).unwrap_or_else(|| Box::new(lines))
}

/// Returns a source for one line of one size on one target; `None` for any other access.
fn plain_source(lines: &Lines, seed: u64) -> Option<Box<dyn Source>> {
    let ([line], [file]) = (lines.compiled.as_slice(), lines.files.as_slice()) else { return None };
    let [place] = file.places.as_slice() else { return None };
    let size = line.most();
    if line.least() != size || !line.is_plain() {
        return None;
    }
    let first = Op { offset: place.span.base, length: size as u32, file: file.index, ..Op::NONE };
    let (kinds, rng) = (line.kinds, Xoshiro256PlusPlus::seed_from_u64(seed));
    match &place.next_offset {
        NextOffset::Walk => {
            let walk = place.walk.forward(size)?;
            Some(Box::new(Sequential { first, walk, kinds, rng }))
        }
        NextOffset::Uniform(uniform) => {
            let (align, count) = (place.span.align, uniform.count(size));
            Some(Box::new(Random { first, align, count, kinds, rng }))
        }
        _ => None,
    }
}

/// Draws sequential blocks.
struct Sequential {
    /// An operation at the first byte of the span.
    first: Op,
    walk: ForwardWalk,
    kinds: Kinds,
    rng: Xoshiro256PlusPlus,
}

impl Source for Sequential {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            let kind = self.kinds.draw(&mut self.rng);
            *op = Op { offset: self.first.offset + self.walk.take(), kind, ..self.first };
        }
    }
}

/// Draws random blocks.
struct Random {
    /// An operation at the first byte of the span.
    first: Op,
    align: u64,
    count: u64,
    kinds: Kinds,
    rng: Xoshiro256PlusPlus,
}

impl Source for Random {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            let place = self.rng.random_range(0..self.count) * self.align;
            let kind = self.kinds.draw(&mut self.rng);
            *op = Op { offset: self.first.offset + place, kind, ..self.first };
        }
    }
}

/// Several accesses in turn, each with its own syncs.
pub(super) struct Turns {
    accesses: Vec<TurnAccess>,
    current: usize,
    /// Flags of the next operation if it begins a turn.
    first_flags: u8,
}

/// One of the accesses that take turns.
struct TurnAccess {
    lines: Lines,
    length: EvenSpread,
    syncs: Option<Syncs>,
}

impl Turns {
    /// Compiles the accesses. Fails if one does not fit its targets or has invalid numbers.
    pub(super) fn new(
        stream: &Stream,
        targets: &[Target],
        context: &WorkerContext,
        seed: u64,
    ) -> Result<Self, String> {
        let access = |(at, turn): (u64, &Turn)| {
            let seed = split_mix(seed ^ split_mix(at));
            TurnAccess::new(
                &stream.with_turn(turn),
                turn,
                targets,
                context,
                Xoshiro256PlusPlus::seed_from_u64(seed),
            )
        };
        let accesses = (0..).zip(&stream.turns).map(access).collect::<Result<_, _>>()?;
        Ok(Self { accesses, current: 0, first_flags: 0 })
    }

    #[inline]
    fn next(&mut self) -> Op {
        let count = self.accesses.len();
        let access = &mut self.accesses[self.current];
        if let Some(sync) = access.syncs.as_mut().and_then(Syncs::next) {
            return sync;
        }
        if access.length.take_due() {
            let previous = self.current;
            self.current = if self.current + 1 == count { 0 } else { self.current + 1 };
            self.first_flags = Op::DRAINED;
            let clock_ns = self.accesses[previous].lines.clock_ns;
            self.accesses[self.current].lines.begin_burst();
            // All accesses share one clock.
            self.accesses[self.current].lines.clock_ns = clock_ns;
        }
        let access = &mut self.accesses[self.current];
        let mut op = access.lines.next();
        op.flags |= std::mem::take(&mut self.first_flags);
        access.length.count();
        if let Some(syncs) = &mut access.syncs {
            syncs.count_writes(std::slice::from_mut(&mut op));
        }
        op
    }
}

impl TurnAccess {
    fn new(
        alone: &Stream,
        turn: &Turn,
        targets: &[Target],
        context: &WorkerContext,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        if alone.access.lines.iter().any(|l| l.has_pairs() || l.reply_bytes > 0) {
            return Err(
                "a turn could end between the two operations of a pair; remove the replies, or the writes after trims"
                    .into(),
            );
        }
        let length = EvenSpread::new(turn.operations, turn.turns).filter(|_| turn.turns <= turn.operations);
        let length = length.ok_or("one of the turns has no operation; give each turn 1 or more")?;
        let writes = |line: &job::Line| line.weight > 0 && line.does(Kind::Write);
        let flush = turn.flush.filter(|_| alone.access.lines.iter().any(writes));
        let syncs = flush.map(Syncs::new).transpose()?;
        let lines = Lines::new(alone, targets, context, rng)?;
        Ok(Self { lines, length, syncs })
    }
}

impl Source for Turns {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.next();
        }
    }
}

/// An access that uses one zone at a time.
pub(super) struct Strided {
    /// Draws operations in the first zone.
    inner: Lines,
    step_bytes: u64,
    /// Bytes to move in a zone before the next zone begins, for all zones except the last.
    quota: u64,
    /// Bytes to move in the last zone.
    last_quota: u64,
    zones: u64,
    zone: u64,
    /// Bytes moved in the current zone.
    moved: u64,
}

impl Strided {
    /// Compiles an access in zones. Fails if no zone fits, or the access cannot be limited to one zone.
    pub(super) fn new(
        stream: &Stream,
        zones: Zones,
        targets: &[Target],
        context: &WorkerContext,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        let [target] = targets else {
            return Err("zones need a single target; type --sharing each, or name one target".into());
        };
        let access = &stream.access;
        let interlocked =
            |order: &Order| matches!(order, Order::Sequential(Steps { start: Start::Interlocked, .. }));
        if access.lines.iter().any(|l| interlocked(&l.order)) {
            return Err(
                "workers use different zones, so they cannot share a position; choose another --start".into(),
            );
        }
        let span = target.span(access.offset_bytes, access.span_bytes, access.largest_bytes().into())?.bytes;
        let full_zones = zones.whole(span);
        if full_zones == 0 {
            return Err(format!(
                "no zone of {} fits into the {} of target {}; choose smaller zones or a larger span",
                show_bytes(zones.range_bytes),
                show_bytes(span),
                target.number()
            ));
        }
        if !zones.step_bytes().is_multiple_of(target.align) {
            return Err(target.misfit("a zone and the gap after it", zones.step_bytes()));
        }
        let inside = Access { span_bytes: zones.range_bytes, strided: None, ..access.clone() };
        let inner = Lines::new(&Stream { access: inside, ..stream.clone() }, targets, &context.alone(), rng)?;
        let last = access.bytes_in_last_zone(zones, span);
        let count = full_zones + u64::from(last > 0);
        let first = (u128::from(count) * u128::from(context.worker) / u128::from(context.workers)) as u64;
        Ok(Self {
            inner,
            step_bytes: zones.step_bytes(),
            quota: zones.bytes,
            last_quota: if last > 0 { last } else { zones.bytes },
            zones: count,
            zone: first,
            moved: 0,
        })
    }

    #[inline]
    fn next(&mut self, draw: impl FnOnce(&mut Lines) -> Op) -> Op {
        let quota = if self.zone + 1 == self.zones { self.last_quota } else { self.quota };
        // A pair of operations stays in one zone.
        if self.moved >= quota && !self.inner.owes_a_reply() {
            self.zone = if self.zone + 1 == self.zones { 0 } else { self.zone + 1 };
            self.moved = 0;
            self.inner.begin_again();
        }
        let op = draw(&mut self.inner);
        self.moved += u64::from(op.length);
        Op { offset: op.offset + self.zone * self.step_bytes, ..op }
    }
}

impl Source for Strided {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = self.next(Lines::next);
        }
    }
}

impl DrawsKind for Strided {
    fn next_of(&mut self, kind: Kind) -> Op {
        self.next(|inner| inner.next_of(kind))
    }
}
