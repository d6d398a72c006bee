//! One zone of a span at a time.
//!
//! For: any access that is shut in a zone until so many bytes were moved there, and then goes on in the next. Not for: which block of the
//! zone is next, which is drawn as if the zone were all there is.
//!
//! Workers begin at zones that are spread over the span, and each goes around through all of them. What the end of the span cuts off is a
//! zone only for blocks of one size in order, which do not reach its end; a draw could go beyond.

use super::by_kind::OfKind;
use super::lines::Lines;
use super::span::Target;
use super::{Op, Share, Source};
use model::job::{Access, Kind, Order, Start, Steps, Stream, Strided as Zones};
use model::units::show_bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

/// An access with a zone of its own.
pub(super) struct Strided {
    /// Draws operations in the first zone.
    inner: Lines,
    step_bytes: u64,
    /// Bytes after which a zone is left, and the same of the last one.
    quota: u64,
    last_quota: u64,
    zones: u64,
    zone: u64,
    /// Bytes moved in the present zone.
    moved: u64,
}

impl Strided {
    /// Fails where no zone fits, or something of the access has no meaning inside one.
    pub(super) fn new(
        (stream, zones): (&Stream, Zones),
        targets: &[Target],
        share: &Share,
        rng: Xoshiro256PlusPlus,
    ) -> Result<Self, String> {
        let [target] = targets else {
            return Err("zones are those of one target; let each target have a depth of its own".into());
        };
        let access = &stream.access;
        let interlocked =
            |order: &Order| matches!(order, Order::Sequential(Steps { start: Start::Interlocked, .. }));
        if access.lines.iter().any(|l| interlocked(&l.order)) {
            return Err(
                "workers are not in the same zone, so they share no position there; choose another start"
                    .into(),
            );
        }
        let span = target.span(access.offset_bytes, access.span_bytes, access.largest_bytes().into())?.bytes;
        let whole = zones.whole(span);
        if whole == 0 {
            return Err(format!(
                "no zone of {} fits into the {} of target {}; choose smaller zones or a larger span",
                show_bytes(zones.range_bytes),
                show_bytes(span),
                target.index
            ));
        }
        if !zones.step_bytes().is_multiple_of(target.align) {
            return Err(target.misfit("a zone with what is left out behind it", zones.step_bytes()));
        }
        let inside = Access { span_bytes: zones.range_bytes, strided: None, ..access.clone() };
        let alone = Share { worker: 0, workers: 1, seed: share.seed, common: Arc::clone(&share.common) };
        let inner = Lines::new(&Stream { access: inside, ..stream.clone() }, targets, &alone, rng)?;
        let last = access.in_order().map_or(0, |(size, times)| zones.last_bytes(span, size, times));
        let count = whole + u64::from(last > 0);
        let first = (u128::from(count) * u128::from(share.worker) / u128::from(share.workers)) as u64;
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
        // A trim and its write, or a request and its reply, are in one zone.
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

impl OfKind for Strided {
    fn next_of(&mut self, kind: Kind) -> Op {
        self.next(|inner| inner.next_of(kind))
    }
}
