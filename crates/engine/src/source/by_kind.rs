//! Directions of a mix that have rates of their own.
//!
//! For: which direction is next where some are ahead of their rates, which is known when there is room for an operation: this source is
//! asked for each. Not for: a limit of all operations together ([`super::pace`]), nor where operations go ([`super::lines`]).
//!
//! A direction is drawn as the mix says. Where it is ahead of its rate the one is next that is due first, at once or when its time has
//! come. So a direction without a rate fills the time of the others, and catches up with nothing; those that have one catch up after a
//! stall, as far as they are drawn. This is what fio does.

use super::draw::Kinds;
use super::flush::Syncs;
use super::pace::{Limited, Place};
use super::{Choice, Op, Source};
use model::job::{Kind, Pace, Stream};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Operations of a direction that others choose.
pub(super) trait OfKind: Send {
    /// The next one of this direction, which the access has.
    fn next_of(&mut self, kind: Kind) -> Op;
}

/// A source that chooses the direction of each operation by the time.
pub(super) struct ByKind {
    inner: Box<dyn OfKind>,
    kinds: Kinds,
    /// By the index of the kind; `None` where it has no rate.
    limits: [Option<Limited>; 3],
    syncs: Option<Syncs>,
    rng: Xoshiro256PlusPlus,
    /// An operation that waits until nothing is in flight.
    next: Option<Op>,
    in_flight: u32,
}

impl ByKind {
    /// Fails where something else of the stream chooses operations too, or a rate is none.
    pub(super) fn new(inner: Box<dyn OfKind>, stream: &Stream, place: Place) -> Result<Self, String> {
        let Pace::Each { iops, bytes_per_s } = &stream.pace else {
            return Err("no direction has a rate of its own".into());
        };
        let [line] = stream.access.lines.as_slice() else {
            return Err("rates of directions are those of one line; take the other lines away".into());
        };
        let waits = stream.serialize_overlap || stream.flow.is_some() || stream.bursts.is_some();
        if waits || line.has_pairs() || line.reply_bytes > 0 || line.times > 1 || line.mix_by_run {
            return Err("something else decides which operation is next, beside rates of directions; leave one of them out".into());
        }
        let limit = |kind| Limited::new(iops.for_kind(kind), bytes_per_s.for_kind(kind), place.lanes);
        let limits = [limit(Kind::Read)?, limit(Kind::Write)?, limit(Kind::Trim)?];
        let writes = line.does(Kind::Write);
        let syncs = stream.flush.filter(|_| writes).map(Syncs::new).transpose()?;
        let rng = Xoshiro256PlusPlus::seed_from_u64(place.seed);
        Ok(Self { inner, kinds: Kinds::new(line.mix)?, limits, syncs, rng, next: None, in_flight: 0 })
    }

    /// The direction that is next; else the time in ns at which one is.
    fn kind(&mut self, now_ns: u64) -> Result<Kind, u64> {
        let due_ns =
            |kind: Kind| self.limits.get(kind as usize).and_then(Option::as_ref).map_or(0, Limited::due_ns);
        let drawn = self.kinds.draw(&mut self.rng);
        if due_ns(drawn) <= now_ns {
            return Ok(drawn);
        }
        let kinds = Kind::ALL.into_iter().filter(|kind| self.kinds.does(*kind));
        let first = kinds.min_by_key(|kind| due_ns(*kind)).unwrap_or(drawn);
        if due_ns(first) <= now_ns { Ok(first) } else { Err(due_ns(first)) }
    }

    /// The next operation; else the time in ns at which there is one.
    fn draw(&mut self, now_ns: u64) -> Result<Op, u64> {
        if let Some(sync) = self.syncs.as_mut().and_then(Syncs::next) {
            return Ok(sync);
        }
        let kind = self.kind(now_ns)?;
        let mut op = [self.inner.next_of(kind)];
        if let Some(Some(limit)) = self.limits.get_mut(kind as usize) {
            limit.pay(&op[0]);
        }
        if let Some(syncs) = &mut self.syncs {
            syncs.mark_syncs(&mut op);
        }
        Ok(op[0])
    }
}

impl Source for ByKind {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op { flags: Op::CHOSEN, ..Op::NONE });
    }

    fn look_ahead(&self) -> usize {
        1
    }

    fn choose(&mut self, now_ns: u64) -> Choice {
        let op = match self.next.take().map_or_else(|| self.draw(now_ns), Ok) {
            Ok(op) => op,
            Err(due_ns) => return Choice::At(due_ns),
        };
        if op.flags & Op::DRAINED != 0 && self.in_flight > 0 {
            self.next = Some(op);
            return Choice::Later;
        }
        self.in_flight += 1;
        Choice::Now(Op { flags: Op::CHOSEN, at_ns: 0, ..op }, now_ns)
    }

    fn completed(&mut self, _op: &Op, _now_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
fn mixed(pace: Pace) -> Box<dyn Source> {
    let mut access = model::job::Access::plain(model::job::Pattern::Random, 4096, 50);
    access.span_bytes = 1 << 20;
    let stream = Stream { pace, ..Stream::plain(access, 1, 1, "null") };
    let common = std::sync::Arc::new(super::Common::new(3));
    let share = super::Share { worker: 0, workers: 1, seed: 7, common };
    super::lanes(&stream, &[1 << 20], &[512], &share).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

#[cfg(test)]
fn each(read: f64, write: f64) -> model::job::PerKind<f64> {
    model::job::PerKind { read, write, trim: 0.0 }
}

#[cfg(test)]
fn kinds_over_time(pace: Pace, at_ns: impl Iterator<Item = u64>) -> Vec<(u64, Kind)> {
    let mut source = mixed(pace);
    at_ns
        .filter_map(|ns| match source.choose(ns) {
            Choice::Now(op, due_ns) => Some((due_ns, op.kind)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_direction_keeps_to_its_rate_while_the_other_fills_the_time() {
    const MS: u64 = 1_000_000;
    let pace = Pace::Each { iops: each(0.0, 200.0), bytes_per_s: each(0.0, 0.0) };
    // Asked every 100 us: some operation goes each time.
    let ops = kinds_over_time(pace, (0..10_000).map(|n| n * MS / 10));
    assert_eq!(ops.len(), 10_000);
    let writes = |until: u64| ops.iter().filter(|(ns, kind)| *ns < until && *kind == Kind::Write).count();
    for until in [100 * MS, 500 * MS, 1000 * MS] {
        let asked = (until / (5 * MS)) as usize;
        assert!(asked.abs_diff(writes(until)) <= 1, "{} writes until {until}", writes(until));
    }
    // Behind a stall of half a second it makes up for what it missed, by turns as they are drawn.
    let stalled = kinds_over_time(pace, (0..4000).map(|n| if n < 1000 { n } else { n + 500 * MS }));
    let caught_up = stalled.iter().filter(|(_, kind)| *kind == Kind::Write).count();
    assert_eq!(caught_up, 101, "100 in half a second, and the first");
}

#[test]
fn where_all_are_ahead_the_first_that_is_due_goes_at_its_time() {
    let pace = Pace::Each { iops: each(10.0, 0.0), bytes_per_s: each(0.0, 4096.0 * 20.0) };
    let mut source = mixed(pace);
    let (mut now, mut ops) = (0, Vec::new());
    while ops.len() < 60 {
        match source.choose(now) {
            Choice::Now(op, _) => ops.push((now, op.kind)),
            Choice::At(ns) => now = ns,
            other => panic!("{other:?}"),
        }
    }
    let times = |kind| ops.iter().filter(|(_, is)| *is == kind).map(|(ns, _)| *ns).collect::<Vec<_>>();
    let (reads, writes) = (times(Kind::Read), times(Kind::Write));
    assert!(reads.iter().zip(0..).all(|(ns, n)| *ns == n * 100_000_000), "{reads:?}");
    assert!(writes.iter().zip(0..).all(|(ns, n)| *ns == n * 50_000_000), "{writes:?}");
}

#[test]
fn syncs_come_behind_their_writes_and_wait_for_them() {
    use model::job::{Access, Flush, Pattern, SyncCall};
    let mut access = Access::plain(Pattern::Random, 4096, 50);
    access.span_bytes = 1 << 20;
    let pace = Pace::Each { iops: each(0.0, 1000.0), bytes_per_s: each(0.0, 0.0) };
    let flush = Some(Flush { call: SyncCall::Fsync, every: 2, calls: 1, drain: true });
    let mut stream = Stream { pace, flush, ..Stream::plain(access, 1, 1, "null") };
    let common = std::sync::Arc::new(super::Common::new(3));
    let share = super::Share { worker: 0, workers: 1, seed: 7, common };
    let lanes = |stream: &Stream| super::lanes(stream, &[1 << 20], &[512], &share);
    let mut source = lanes(&stream).unwrap_or_else(|e| panic!("{e}")).remove(0);
    let (mut kinds, mut in_flight, mut drained) = (Vec::new(), 0_u32, 0);
    for now_ns in (0..1000).map(|n| n * 500_000) {
        let op = loop {
            match source.choose(now_ns) {
                Choice::Now(op, _) => break op,
                Choice::Later => {
                    assert!(in_flight > 0, "it waits for nothing");
                    drained += 1;
                    (0..std::mem::take(&mut in_flight)).for_each(|_| source.completed(&Op::NONE, now_ns));
                }
                other => panic!("{other:?}"),
            }
        };
        in_flight += 1;
        kinds.push(op.kind);
    }
    let mut writes = 0;
    for (kind, next) in kinds.iter().zip(&kinds[1..]).filter(|(kind, _)| **kind == Kind::Write) {
        writes += 1;
        assert_eq!(*next == Kind::Sync, writes % 2 == 0, "{kind:?} {next:?} behind {writes} writes");
    }
    assert!(writes > 200 && drained >= writes / 2, "{writes} writes, {drained} waits");
    stream.serialize_overlap = true;
    assert!(lanes(&stream).is_err());
    stream.serialize_overlap = false;
    stream.access.lines[0].times = 2;
    assert!(lanes(&stream).is_err_and(|why| why.contains("leave one of them out")));
}
