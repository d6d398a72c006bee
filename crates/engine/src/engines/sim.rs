//! The engine `sim`: a device with known truth, on a clock of its own.
//!
//! For: testing loop, recorder and analysis end to end, with the same answer every time. Not for: imitating any product.
//! Every operation takes [`LATENCY_NS`], any number at once unless it has so many servers, which take operations as they come;
//! time passes only while the loop waits.

use crate::facts::{EngineOption, Number};
use crate::interface::{Done, Engine, Granted, Queue, Time};
use crate::refusal::refusal;
use crate::source::Op;
use crate::spec::WorkerSpec;
use std::collections::VecDeque;
use std::io;

/// What every operation takes.
const LATENCY_NS: u64 = 100_000;
/// Operations that are served at once.
const SERVERS: &str = "servers";

pub(super) const OPTIONS: &[EngineOption] = &[EngineOption {
    name: SERVERS,
    about: "N operations at once, 10,000 a second each; others wait",
    number: Number::Must,
}];

pub(super) struct Sim {
    time: Virtual,
    /// Slots with the time they complete at; constant latency keeps them in order.
    flying: VecDeque<(u64, Done)>,
    data: Vec<u8>,
    /// Operations that are served at once; `None` for any number.
    servers: Option<usize>,
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

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let flying = VecDeque::with_capacity(spec.slots());
        let servers = match spec.options.get(SERVERS).copied().flatten() {
            Some(0) => {
                let why = "a device without servers serves nothing";
                return Err(refusal(io::ErrorKind::InvalidInput, why, "type sim:servers=1 or more"));
            }
            said => said.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        };
        let data = vec![0; spec.slot_bytes as usize];
        Ok((Self { time: Virtual { now_ns: 0 }, flying, data, servers }, Granted::default()))
    }

    fn time(&self) -> &Virtual {
        &self.time
    }
}

impl Queue for Sim {
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        // With constant service servers take turns: the one to be free next is that of the operation so many before.
        let before = self.servers.and_then(|n| self.flying.len().checked_sub(n));
        let free_ns = before.and_then(|i| self.flying.get(i)).map_or(0, |(at, _)| *at);
        let done_ns = self.time.now_ns.max(free_ns) + LATENCY_NS;
        self.flying.push_back((done_ns, Done { slot, result: op.length as i32 }));
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
