//! Any access: lines, targets, directions and sizes drawn for every operation.
//!
//! For: what `plain` does not do. Not for: syncs and times, which are put around a source.
//!
//! As in Iometer's access specifications: the line is drawn, then the direction, the size, the place. A line with a pause is
//! kept for its burst. A reply is an operation in the opposite direction behind each; trims have none, but may have a write of
//! their own bytes behind them. Bursts count neither. All lines of a lane share one position per target, so that sequential is always after the operation before;
//! only lines whose workers interlock have one of their own, together, and directions may have one each.

use super::by_kind::OfKind;
use super::common::Head;
use super::draw::{Choice, Kinds, Lengths};
use super::next_offset::NextOffset;
use super::pause::Pause;
use super::span::{Span, Target};
use super::walk::{Last, Walk};
use super::{Op, Share, Source};
use model::job::{self, Kind, Order, PerKind, Positions, Sharing, Sizes, Start, Steps};
use model::spec::number::MAX_INTERLEAVED;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// An access compiled for the targets of a lane.
pub(super) struct Lines {
    choice: Choice,
    pub(super) rows: Vec<Line>,
    pub(super) files: Vec<File>,
    pick: Pick,
    rng: Xoshiro256PlusPlus,
    /// Whether workers share a position of one of the lines.
    is_shared: bool,
    /// The line of the present burst, and its operations left.
    line: usize,
    left: u32,
    /// When the present burst is to begin, in ns since the first operation, where bursts begin by a clock.
    pub(super) clock_ns: u64,
    reply: Option<Reply>,
    /// The operation whose place is touched again, and how often.
    again: Option<(Op, u32)>,
}

/// One line of it, as far as it is the same for all targets.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct Line {
    pub(super) kinds: Kinds,
    /// By the index of the kind; those that are not drawn have none.
    lengths: [Option<Lengths>; 3],
    burst: u32,
    pause: Pause,
    /// Whether bursts begin by a clock, so long after each other.
    by_period: bool,
    pub(super) reply_bytes: u32,
    /// Flags of each trim and of the write behind it; `None` where none follows.
    pair: Option<u8>,
    /// Whether each direction goes on from its own last operation.
    own: bool,
    /// Operations from each random place on, and how many of them are left.
    row: u32,
    left_in_row: u32,
    /// By direction, the chance that an operation continues after the last one; `None` if rows have no random lengths.
    goes_on: Option<[f64; 3]>,
    /// Whether all directions begin again where one reaches the end.
    restarts: bool,
    /// Positions that operations go on from in turn.
    interleaved: u32,
    /// Operations on each place.
    times: u32,
    /// Whether the direction is drawn at random places alone; then the last one drawn.
    by_run: bool,
    of_run: Option<Kind>,
}

/// A target with the state of each line on it.
pub(super) struct File {
    /// Its index among the worker's files.
    pub(super) index: u16,
    /// By [`Line::position`].
    last: [Last; 3],
    pub(super) places: Vec<Place>,
}

/// One line on one target.
pub(super) struct Place {
    pub(super) span: Span,
    pub(super) next_offset: NextOffset,
    pub(super) walk: Walk,
    /// Where the last operation of each of several runs was, three directions each; empty where there is one run.
    heads: Vec<Last>,
}

/// Which target is next.
enum Pick {
    One,
    RoundRobin { next: usize },
    Random,
    Weighted(Choice),
    Turns(Turns),
}

/// Rows of operations on the targets of a group. A target leaves its group when a pass over it is done; the next one takes its place.
struct Turns {
    drawn: bool,
    operations: u32,
    open: usize,
    /// The targets of the group, the place of the present one among them, and the operations left of its row.
    group: Vec<usize>,
    at: usize,
    left: u32,
    /// The first target that was in no group of this pass.
    next: usize,
    /// Of each target: the bytes of a pass, and the bytes left of the present one.
    pass: Vec<u64>,
    rest: Vec<u64>,
    /// The smallest operation.
    least: u64,
}

/// The second half of a transaction.
#[derive(Clone, Copy)]
enum Reply {
    /// In the opposite direction, behind a request.
    Opposite { line: usize, file: usize, request: Kind },
    /// Of the same bytes: the operation itself.
    Same(Op),
}

impl Lines {
    /// Fails where something of the access fits nowhere, or means nothing.
    pub(super) fn new(
        stream: &job::Stream,
        targets: &[Target],
        share: &Share,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        let told: Vec<&job::Line> = stream.access.lines.iter().filter(|l| l.weight > 0).collect();
        let choice = Choice::new(told.iter().map(|l| l.weight), "the access's lines")?;
        let align = targets.iter().map(|t| t.align).max().unwrap_or(1);
        // One at a time it cannot come too early.
        let flags = if stream.depth > 1 { Op::PAIR } else { 0 };
        let row = |told: &&job::Line| Line::new(told, align, flags);
        let rows: Vec<Line> = told.iter().map(row).collect::<Result<_, _>>()?;
        let told_count = told.len();
        let file = |target: &Target| {
            let place = |(i, (told, line))| {
                // The same number for the same line and target, whichever worker asks.
                let head = || share.common.head(target.index * told_count + i);
                Place::new(&stream.access, told, line, target, share, head)
            };
            let places = told.iter().copied().zip(&rows).enumerate().map(place).collect::<Result<_, _>>()?;
            let index = u16::try_from(target.index)
                .map_err(|_| "a stream has at most 65536 targets; divide it into several".to_owned())?;
            Ok::<File, String>(File { index, last: [Last::NONE; 3], places })
        };
        let files: Vec<File> = targets.iter().map(file).collect::<Result<_, _>>()?;
        let pass = files.iter().map(|f| f.places.first().map_or(0, |place| place.span.bytes)).collect();
        let least = rows.iter().map(Line::least).min().unwrap_or(1);
        let pick = Pick::new(&stream.sharing, targets.len(), share.worker, || (pass, least))?;
        let is_shared = files.iter().flat_map(|f| &f.places).any(|p| p.walk.is_shared());
        Ok(Self {
            choice,
            rows,
            files,
            pick,
            rng,
            is_shared,
            line: 0,
            left: 0,
            clock_ns: 0,
            reply: None,
            again: None,
        })
    }

    /// Whether the second half of a transaction is next.
    pub(super) fn owes_a_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// Ends the present burst: what comes next begins another one.
    pub(super) fn begin_burst(&mut self) {
        (self.left, self.again) = (0, None);
    }

    /// Forgets where it was, as if nothing had been drawn; what comes once per pass begins with another pass.
    pub(super) fn begin_again(&mut self) {
        self.again = None;
        self.rows.iter_mut().for_each(|line| (line.left_in_row, line.of_run) = (0, None));
        for file in &mut self.files {
            file.last = [Last::NONE; 3];
            file.places.iter_mut().for_each(|place| place.next_offset.begin_again());
            file.places.iter_mut().for_each(|place| place.heads.fill(Last::NONE));
        }
    }

    /// The next operation.
    #[inline]
    pub(super) fn next(&mut self) -> Op {
        self.next_as(Line::kind)
    }

    /// The next operation, whose direction is this. Compiled for each way of saying it, so that where it is drawn nothing else is asked.
    #[inline]
    fn next_as(&mut self, kind: impl FnOnce(&Line, &mut Xoshiro256PlusPlus) -> Kind) -> Op {
        if let Some(reply) = self.reply.take() {
            return self.answer(reply);
        }
        if let Some((op, left)) = self.again.take() {
            return self.repeat(op, left);
        }
        let mut op = Op::NONE;
        if self.left == 0 {
            self.line = self.choice.draw(&mut self.rng);
            let line = &self.rows[self.line];
            self.left = line.burst;
            if !line.pause.is_none() {
                (op.at_ns, op.flags) = line.begin_burst(&mut self.clock_ns, &mut self.rng);
            }
        }
        self.left -= 1;
        let line = &mut self.rows[self.line];
        let target = self.pick.draw(self.files.len(), &mut self.rng);
        let file = &mut self.files[target];
        op.file = file.index;
        op.kind = kind(line, &mut self.rng);
        op.length = line.lengths[op.kind as usize].as_ref().map_or(0, |l| l.draw(&mut self.rng));
        let place = &mut file.places[self.line];
        let mut size = u64::from(op.length);
        let position = line.position(op.kind);
        let last = if place.heads.is_empty() {
            &mut file.last[position]
        } else {
            let run = self.rng.random_range(0..line.interleaved) as usize;
            &mut place.heads[run * file.last.len() + position]
        };
        let drawn = if line.goes_on(op.kind, *last, &mut self.rng) {
            None
        } else {
            place.next_offset.draw(place.span.align, &mut size, &mut self.rng)
        };
        if line.by_run {
            // All sizes are the same there, so that the place is one for any direction.
            if drawn.is_some() && line.of_run.is_some() {
                op.kind = line.kinds.draw(&mut self.rng);
            }
            line.of_run = Some(op.kind);
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
            start = place.walk.next(Last::NONE, size);
            file.last = [Last::NONE; 3];
            file.last[position] = Last::at(start, size);
        } else {
            *last = Last::at(start, size);
        }
        if let Pick::Turns(turns) = &mut self.pick {
            turns.count(target, size);
        }
        op.offset = place.span.base + start;
        if line.times > 1 {
            self.again = Some((op, line.times - 1));
        }
        if op.kind == Kind::Trim {
            if let Some(flags) = line.pair {
                self.reply = Some(Reply::Same(Op { kind: Kind::Write, flags, at_ns: 0, ..op }));
                op.flags |= flags;
            }
        } else if line.reply_bytes > 0 {
            self.reply = Some(Reply::Opposite { line: self.line, file: target, request: op.kind });
        }
        op
    }

    /// An operation at the place of `op` once more, in a direction of its own; `left` are still to come, this one included.
    fn repeat(&mut self, op: Op, left: u32) -> Op {
        let kinds = &self.rows[self.line].kinds;
        let op = Op { kind: kinds.draw(&mut self.rng), at_ns: 0, flags: 0, ..op };
        self.again = (left > 1).then_some((op, left - 1));
        op
    }

    fn answer(&mut self, reply: Reply) -> Op {
        let (line, file, request) = match reply {
            Reply::Same(op) => return op,
            Reply::Opposite { line, file, request } => (line, file, request),
        };
        let kind = if request == Kind::Read { Kind::Write } else { Kind::Read };
        let length = self.rows[line].reply_bytes;
        let file = &mut self.files[file];
        let place = &file.places[line];
        // A reply goes on behind its request, from the position of that.
        let last = &mut file.last[self.rows[line].position(request)];
        let start = place.walk.next(*last, u64::from(length));
        *last = Last::at(start, u64::from(length));
        Op { offset: place.span.base + start, length, file: file.index, kind, ..Op::NONE }
    }
}

impl OfKind for Lines {
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
        // What one worker drew ahead of a shared position others would find missing while it waits.
        if self.is_shared { 1 } else { super::LOOK_AHEAD }
    }
}

impl Line {
    fn new(line: &job::Line, target_align: u64, pair_flags: u8) -> Result<Self, String> {
        let kinds = Kinds::new(line.mix)?;
        // Not by Line::does: that counts replies too, and their size is their own.
        let lengths = |kind, sizes| {
            kinds.does(kind).then(|| Lengths::new(sizes, line.align_bytes, target_align)).transpose()
        };
        let lengths = [
            lengths(Kind::Read, &line.sizes.read)?,
            lengths(Kind::Write, &line.sizes.write)?,
            lengths(Kind::Trim, &line.sizes.trim)?,
        ];
        // Without a pause a burst would only bind operations together that are to be drawn each for itself.
        let pause = Pause::new(line)?;
        let burst = if pause.is_none() { 1 } else { line.burst.max(1) };
        let own = line.positions != Positions::Shared && matches!(kinds, Kinds::Drawn { .. });
        let restarts = own && line.positions == Positions::OwnRestart;
        let reply_bytes = line.reply_bytes;
        let goes_on = match (line.run_length, &line.order) {
            (Some(length), _) => [1.0 - 1.0 / length; 3],
            (None, Order::MixedEach(PerKind { read, write, trim })) => {
                [read, write, trim].map(|percent| 1.0 - percent / 100.0)
            }
            (None, _) => [0.0; 3],
        };
        if !goes_on.iter().all(|chance| (0.0..=1.0).contains(chance))
            || line.run_length.is_some_and(f64::is_infinite)
        {
            return Err("runs have one operation at least; give a mean length of 1 or more".into());
        }
        let interleaved = line.interleaved.clamp(1, MAX_INTERLEAVED);
        let pair = line.has_pairs().then_some(pair_flags);
        let (row, times) = (line.consecutive, line.times);
        let by_run = line.mix_by_run && matches!(kinds, Kinds::Drawn { .. });
        let mut drawn = line.drawn_sizes().map(Sizes::fixed);
        let first = drawn.next().flatten();
        let is_of_one_size = first.is_some() && drawn.all(|size| size == first);
        if (by_run || times > 1) && (!is_of_one_size || pair.is_some() || reply_bytes > 0) {
            return Err("operations on one place, and runs of one direction, need one size for all and no replies; leave times and mix-by-run out".into());
        }
        let (left_in_row, of_run) = (0, None);
        Ok(Self {
            kinds,
            lengths,
            burst,
            pause,
            by_period: line.by_period,
            reply_bytes,
            pair,
            own,
            row,
            left_in_row,
            goes_on: goes_on.iter().any(|chance| *chance > 0.0).then_some(goes_on),
            restarts,
            interleaved,
            times,
            by_run,
            of_run,
        })
    }

    /// When the next burst begins, and what that time counts from; the clock goes on where bursts begin by it.
    fn begin_burst(&self, clock_ns: &mut u64, rng: &mut Xoshiro256PlusPlus) -> (u64, u8) {
        let drawn = self.pause.draw(rng);
        if !self.by_period {
            return (drawn, Op::AFTER);
        }
        *clock_ns = clock_ns.saturating_add(drawn);
        (*clock_ns, Op::AT | Op::DRAINED)
    }

    /// Whether the next operation is one of a row that has begun, so that none is drawn.
    #[inline]
    fn goes_on(&mut self, kind: Kind, last: Last, rng: &mut Xoshiro256PlusPlus) -> bool {
        if let Some(chances) = self.goes_on {
            let chance = chances[kind as usize];
            // A direction that is never random begins at the beginning.
            return chance >= 1.0 || (!last.is_none() && rng.random::<f64>() < chance);
        }
        let begins = self.left_in_row == 0;
        self.left_in_row = if begins { self.row.saturating_sub(1) } else { self.left_in_row - 1 };
        !begins
    }

    /// The direction of the next operation.
    #[inline]
    fn kind(&self, rng: &mut Xoshiro256PlusPlus) -> Kind {
        self.of_run.unwrap_or_else(|| self.kinds.draw(rng))
    }

    /// Index of the position that an operation of a kind goes on from.
    #[inline]
    fn position(&self, kind: Kind) -> usize {
        if self.own { kind as usize } else { 0 }
    }

    /// Whether no rows, positions of directions, pauses or replies bend its order.
    pub(super) fn is_plain(&self) -> bool {
        let has_reply = self.reply_bytes > 0 || self.pair.is_some();
        let has_rows = self.row > 1 || self.goes_on.is_some() || self.interleaved > 1;
        let is_bent = self.own || self.by_run || has_rows || self.times > 1;
        !is_bent && !has_reply && self.pause.is_none()
    }

    /// The smallest size that is drawn, replies aside.
    pub(super) fn least(&self) -> u64 {
        self.lengths.iter().flatten().map(Lengths::least).min().map_or(1, u64::from)
    }

    /// The largest, replies aside.
    pub(super) fn most(&self) -> u64 {
        self.lengths.iter().flatten().map(Lengths::most).max().map_or(1, u64::from)
    }

    /// A size that is no multiple of what a target takes, if there is one.
    fn misfit(&self, align: u64) -> Option<u64> {
        let reply = u64::from(self.reply_bytes);
        self.lengths
            .iter()
            .flatten()
            .find_map(|l| l.misfit(align))
            .or((!reply.is_multiple_of(align)).then_some(reply))
    }
}

impl Place {
    fn new(
        access: &job::Access,
        told: &job::Line,
        line: &Line,
        target: &Target,
        share: &Share,
        head: impl FnOnce() -> Arc<Head>,
    ) -> Result<Self, String> {
        let (least, most) = (line.least(), line.most());
        if let Some(size) = line.misfit(target.align) {
            return Err(target.misfit("a size", size));
        }
        let largest = most.max(u64::from(line.reply_bytes));
        let mut span = target.span(access.offset_bytes, access.span_bytes, largest)?;
        let steps = match &told.order {
            Order::Sequential(steps) => Some(*steps),
            _ => None,
        };
        let align = match (told.align_bytes, steps) {
            (0, Some(_)) => 1,
            (0, None) => least,
            (align, _) => align,
        };
        // An alignment beyond all numbers leaves the first byte alone, as any beyond the span does.
        span.align = align.checked_next_multiple_of(target.align).unwrap_or(target.align << 32);
        let who = (share.worker, share.workers);
        if line.own && steps.is_some_and(|s| s.start == Start::Interlocked) && share.workers > 1 {
            return Err(
                "workers that share one position cannot have one for each direction; choose another start"
                    .into(),
            );
        }
        let steps = steps.unwrap_or(Steps { start: Start::Spread, ..Steps::default() });
        let fixed = least == most && line.reply_bytes == 0;
        let walk = Walk::new(span, steps, least, fixed, who, head);
        let next_offset =
            NextOffset::new(&told.order, span, (least, most), target.index, who, &share.common)?;
        // Runs that are not drawn begin at parts of their own, those of all workers apart.
        let runs = if line.interleaved > 1 { line.interleaved } else { 0 };
        let drawn = !matches!(told.order, Order::Sequential(_) | Order::Mixed(_));
        let begin = |run: u32| {
            let part = u128::from(run) * u128::from(share.workers) + u128::from(share.worker);
            let parts = u128::from(runs) * u128::from(share.workers);
            if drawn { Last::NONE } else { Last::at((u128::from(span.bytes) * part / parts) as u64, 0) }
        };
        let heads = (0..runs).flat_map(|run| [begin(run); 3]).collect();
        Ok(Self { span, next_offset, walk, heads })
    }
}

impl Pick {
    fn new(
        sharing: &Sharing,
        targets: usize,
        worker: u32,
        pass: impl FnOnce() -> (Vec<u64>, u64),
    ) -> Result<Self, String> {
        Ok(match sharing {
            Sharing::Weighted(weights) if weights.len() != targets => {
                return Err(format!(
                    "{} weights are given for {targets} targets; give one each",
                    weights.len()
                ));
            }
            _ if targets == 1 => Self::One,
            // Workers that begin at the same target would go around in step and meet at each.
            Sharing::Each | Sharing::RoundRobin => Self::RoundRobin { next: worker as usize % targets },
            Sharing::Random => Self::Random,
            Sharing::Turns { drawn, operations, open } => {
                Self::Turns(Turns::new((*drawn, *operations, *open as usize), pass()))
            }
            Sharing::Weighted(weights) => {
                Self::Weighted(Choice::new(weights.iter().copied(), "the targets")?)
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
            Self::Weighted(choice) => choice.draw(rng),
            Self::Turns(turns) => turns.draw(rng),
        }
    }
}

impl Turns {
    fn new((drawn, operations, open): (bool, u32, usize), (pass, least): (Vec<u64>, u64)) -> Self {
        let rest = pass.clone();
        let mut turns =
            Self { drawn, operations, open, group: Vec::new(), at: 0, left: 0, next: 0, pass, rest, least };
        turns.begin_pass();
        turns
    }

    fn begin_pass(&mut self) {
        self.next = self.open.clamp(1, self.pass.len());
        self.group = (0..self.next).collect();
        // The first draw moves on to the first target.
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

    /// Counts an operation on a target, which leaves the group if no further operation fits into its pass.
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
            // The one that followed has its place now.
            self.at = (self.at + self.group.len()).saturating_sub(1);
            if self.group.is_empty() {
                self.begin_pass();
            }
        }
    }
}
