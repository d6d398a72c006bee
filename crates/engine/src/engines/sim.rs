//! The engine `sim`: a device with known truth, on a clock of its own.
//!
//! For: testing loop, recorder and analysis end to end, with the same answer every time. Not for: imitating any product.
//! Every operation takes [`LATENCY_NS`], any number at once; time passes only while the loop waits.

use super::{Done, Engine, Granted, Time};
use crate::source::Op;
use crate::worker::Spec;
use std::collections::VecDeque;
use std::io;

/// What every operation takes.
const LATENCY_NS: u64 = 100_000;

pub(super) struct Sim {
    time: Virtual,
    /// Slots with the time they complete at; constant latency keeps them in order.
    flying: VecDeque<(u64, Done)>,
    data: Vec<u8>,
}

/// Time that passes only while the loop waits; a tick is a nanosecond.
pub(super) struct Virtual {
    now_ns: u64,
}

impl Time for Virtual {
    fn now(&self) -> u64 {
        self.now_ns
    }

    fn ns(&self, ticks: u64) -> u64 {
        ticks
    }

    fn ticks_of(&self, ns: u64) -> u64 {
        ns
    }
}

impl Engine for Sim {
    type Time = Virtual;

    fn open(spec: &mut Spec) -> io::Result<(Self, Granted)> {
        let flying = VecDeque::with_capacity(spec.slots());
        Ok((
            Self { time: Virtual { now_ns: 0 }, flying, data: vec![0; spec.slot_bytes as usize] },
            Granted::default(),
        ))
    }

    fn time(&self) -> &Virtual {
        &self.time
    }

    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        self.flying.push_back((self.time.now_ns + LATENCY_NS, Done { slot, result: op.length as i32 }));
    }

    fn submit(&mut self, wait: u32) -> io::Result<()> {
        if let Some((at, _)) = (wait as usize).checked_sub(1).and_then(|i| self.flying.get(i)) {
            self.time.now_ns = self.time.now_ns.max(*at);
        }
        Ok(())
    }

    /// Time passes to the next completion, or to the end of the pause.
    fn pause(&mut self, ns: u64) -> io::Result<()> {
        let end = self.time.now_ns + ns.max(1);
        self.time.now_ns = self.flying.front().map_or(end, |(at, _)| end.min(*at)).max(self.time.now_ns);
        Ok(())
    }

    fn reap(&mut self, done: &mut [Done]) -> usize {
        let ready = self.flying.iter().take_while(|(at, _)| *at <= self.time.now_ns).count().min(done.len());
        for (place, (_, d)) in done.iter_mut().zip(self.flying.drain(..ready)) {
            *place = d;
        }
        ready
    }
}
