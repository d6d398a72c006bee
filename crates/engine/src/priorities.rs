//! Priorities of single operations: drawing them, and latencies apart by them.
//!
//! For: the loop that looks at each operation. Not for: telling the kernel (the engines).

use crate::source::Op;
use crate::spec::WorkerSpec;
use model::histogram::Histogram;
use model::job::{IoPriority, Kind, OpPriority};
use model::record::PriorityEnd;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws whether an operation has a priority of its own, and keeps the latencies of each.
pub(crate) struct Priorities {
    shares: Vec<OpPriority>,
    random: Xoshiro256PlusPlus,
    /// Of each slot the number of the share that its operation is of, from 1; 0 for none.
    of_slot: Vec<u8>,
    /// Of each such number the latencies of each kind.
    latencies: Vec<[Histogram; Kind::MOVING.len()]>,
    /// What the operations of no share have.
    own: Option<IoPriority>,
}

impl Priorities {
    /// `None` where no operation has one of its own.
    pub(crate) fn from_spec(spec: &WorkerSpec) -> Option<Self> {
        let shares = spec.op_priorities.clone();
        (!shares.is_empty()).then(|| Self {
            random: Xoshiro256PlusPlus::seed_from_u64(spec.priority_seed),
            of_slot: vec![0; spec.slots()],
            latencies: vec![Default::default(); shares.len() + 1],
            own: spec.place.io_priority,
            shares,
        })
    }

    /// Draws for the operation on a slot.
    pub(crate) fn draw(&mut self, slot: u32, op: &Op) {
        let drawn: u8 = self.random.random_range(0..100);
        let mut below = 0;
        let is_hit = |one: &OpPriority| {
            let is_of = one.is_of(op.kind, op.length);
            below += if is_of { one.percent } else { 0 };
            is_of && drawn < below
        };
        self.of_slot[slot as usize] = self.shares.iter().position(is_hit).map_or(0, |at| at as u8 + 1);
    }

    /// Number of the share that the operation on a slot is of, from 1; 0 for none.
    pub(crate) fn share(&self, slot: u32) -> u8 {
        self.of_slot[slot as usize]
    }

    /// What the kernel is told of the operation on a slot; 0 for nothing.
    pub(crate) fn number(&self, slot: u32) -> u16 {
        let share = usize::from(self.share(slot)).checked_sub(1).and_then(|at| self.shares.get(at));
        share.map_or(0, |one| one.priority.number() as u16)
    }

    /// Keeps a latency.
    pub(crate) fn count(&mut self, slot: u32, kind: Kind, ns: u64) {
        let share = usize::from(self.share(slot));
        if let Some(latency) = self.latencies[share].get_mut(kind as usize) {
            latency.record(ns);
        }
    }

    /// What all came to; shares of the same priority together.
    pub(crate) fn ends(&self) -> Vec<PriorityEnd> {
        let own = std::iter::once(self.own);
        let priorities = own.chain(self.shares.iter().map(|one| Some(one.priority)));
        let mut all: Vec<PriorityEnd> = Vec::new();
        for (priority, latencies) in priorities.zip(&self.latencies) {
            for (kind, latency) in Kind::MOVING.into_iter().zip(latencies).filter(|(_, l)| l.count() > 0) {
                PriorityEnd::add(&mut all, &PriorityEnd { kind, priority, latency: latency.clone() });
            }
        }
        all
    }
}

#[test]
fn shares_are_drawn_as_often_as_they_say_and_told_apart() {
    let spec = crate::tests::spec("sim", 1, 1_000_000);
    let share = |kind, bytes, percent, priority| OpPriority { kind, bytes, percent, priority };
    let (high, low) = (IoPriority::Realtime(0), IoPriority::BestEffort(7));
    let op_priorities = vec![
        share(Some(Kind::Read), None, 20, high),
        share(None, Some(8192), 30, low),
        share(None, None, 5, high),
    ];
    let spec = WorkerSpec { op_priorities, priority_seed: 1, ..spec };
    let mut all = Priorities::from_spec(&spec).expect("there are shares");
    let rounds = 20_000;
    for (kind, length) in [(Kind::Read, 4096), (Kind::Write, 8192), (Kind::Trim, 4096)] {
        for _ in 0..rounds {
            all.draw(0, &Op { length, kind, ..Op::NONE });
            assert_eq!(all.number(0) == 0, all.share(0) == 0);
            all.count(0, kind, 10);
        }
    }
    let ends = all.ends();
    let share = |kind, priority| {
        let end = ends.iter().find(|end| end.kind == kind && end.priority == priority);
        end.map_or(0.0, |end| end.latency.count() as f64 / f64::from(rounds))
    };
    // Four standard deviations of a share of 25 % are 1.2 %.
    for (kind, priority, due) in [
        (Kind::Read, Some(high), 0.25),
        (Kind::Read, None, 0.75),
        (Kind::Write, Some(low), 0.3),
        (Kind::Write, Some(high), 0.05),
        (Kind::Write, None, 0.65),
    ] {
        assert!(
            (share(kind, priority) - due).abs() < 0.015,
            "{kind:?} {priority:?}: {}",
            share(kind, priority)
        );
    }
    assert!(ends.iter().all(|end| end.kind != Kind::Trim), "trims have none");
}
