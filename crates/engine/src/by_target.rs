//! What a worker did on each of its targets, operation by operation.
//!
//! For: lanes that share several targets, whose blocks know no target, and stretches of time too short to give the collector a block
//! for each. Not for: lanes of one target by longer stretches, which the collector tells apart ([`crate::tally`]) at no cost in the loop.

use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use model::record::{Bucket, LaneEnd, LaneKind};

/// The operations of each target and kind. All memory is taken before the first one.
pub(crate) struct ByTarget {
    /// 0 where there are totals alone.
    stretch_ns: u64,
    /// ns from the worker's start to its measured window.
    from_ns: u64,
    targets: Vec<[LaneKind; Kind::MOVING.len()]>,
}

impl ByTarget {
    /// `None` where it is not asked for.
    pub(crate) fn from_spec(spec: &WorkerSpec) -> Option<Self> {
        let by_target = spec.by_target?;
        let stretches = spec.time_ns.div_ceil(by_target.stretch_ns.max(1));
        let course = if by_target.stretch_ns > 0 { stretches as usize } else { 0 };
        let kind = || LaneKind { course: vec![Bucket::default(); course], ..LaneKind::default() };
        Some(Self {
            stretch_ns: by_target.stretch_ns,
            from_ns: spec.warmup_ns.max(spec.delay_ns),
            targets: (0..by_target.targets).map(|_| std::array::from_fn(|_| kind())).collect(),
        })
    }

    /// Keeps an operation of the measured window that ended so many ns after the worker's start.
    pub(crate) fn count(&mut self, op: &Op, end_ns: u64, latency_ns: u64) {
        let of = self.targets.get_mut(usize::from(op.file)).and_then(|kinds| kinds.get_mut(op.kind as usize));
        let Some(of) = of else { return };
        of.bytes += u64::from(op.length);
        of.latency.record(latency_ns);
        // What ends with the window, or a little later, belongs to its last stretch.
        let at = end_ns.saturating_sub(self.from_ns).checked_div(self.stretch_ns).unwrap_or(0) as usize;
        let last = of.course.len().saturating_sub(1);
        if let Some(bucket) = of.course.get_mut(at.min(last)) {
            *bucket = bucket.plus(Bucket(1, latency_ns, latency_ns, latency_ns, (latency_ns as f64).powi(2)));
        }
    }

    /// What all came to, for the worker of this number; kinds of which nothing completed are not in it.
    pub(crate) fn ends(&self, worker: u32) -> Vec<LaneEnd> {
        let end = |(lane, of): (u32, &[LaneKind; Kind::MOVING.len()])| {
            let kinds = Kind::MOVING.into_iter().zip(of).filter(|(_, kind)| !kind.latency.is_empty());
            LaneEnd { worker, lane, kinds: kinds.map(|(kind, of)| (kind, of.clone())).collect() }
        };
        (0..).zip(&self.targets).map(end).collect()
    }
}

#[test]
fn operations_are_told_apart_by_target_and_stretch() {
    use crate::spec::Apart;
    let by_target = Some(Apart { stretch_ns: 100, targets: 2 });
    let spec = WorkerSpec { by_target, warmup_ns: 1000, time_ns: 250, ..crate::tests::spec("sim", 1, 250) };
    let mut all = ByTarget::from_spec(&spec).expect("it is asked for");
    let op = |file, kind| Op { file, kind, length: 512, ..Op::NONE };
    for (file, kind, end) in [
        (0, Kind::Read, 1000),
        (0, Kind::Read, 1099),
        (0, Kind::Read, 1100),
        (1, Kind::Write, 1260),
        (7, Kind::Read, 1000),
    ] {
        all.count(&op(file, kind), end, 40);
    }
    let ends = all.ends(3);
    let of = |end: &LaneEnd, kind| {
        let of = &end.kinds[&kind];
        (end.worker, end.lane, of.bytes, of.course.iter().map(|b| b.0).collect::<Vec<_>>())
    };
    assert_eq!(of(&ends[0], Kind::Read), (3, 0, 3 * 512, vec![2, 1, 0]));
    assert_eq!(of(&ends[1], Kind::Write), (3, 1, 512, vec![0, 0, 1]));
    assert_eq!((ends.len(), ends[0].kinds.len(), ends[1].kinds.len()), (2, 1, 1));
    let totals = WorkerSpec { by_target: Some(Apart { stretch_ns: 0, targets: 1 }), ..spec };
    let mut all = ByTarget::from_spec(&totals).expect("it is asked for");
    all.count(&op(0, Kind::Read), 1000, 40);
    let read = &all.ends(0)[0].kinds[&Kind::Read];
    assert_eq!((read.latency.count(), read.course.len()), (1, 0));
}
