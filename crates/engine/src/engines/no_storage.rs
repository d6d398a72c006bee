//! The engines `null` and `sim`, which use no storage.
//!
//! `null` completes every operation at its submission, to measure fathom itself. `sim` is a device with known behaviour and its own
//! clock, to test loop, recorder and analysis. Each of its operations takes [`LATENCY_NS`]. Unless the option `servers` limits them, any
//! number of operations runs at once. The clock advances only while the loop waits.

use crate::interface::{Done, Engine, Granted, Queue, Time, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, WorkerSpec};
use std::collections::VecDeque;
use std::io;
use sys::clock::Clock;
use sys::slots::take_ready;

pub(super) struct Null {
    clock: Clock,
    queued: Vec<Done>,
    data: Vec<u8>,
}

impl Engine for Null {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let data = vec![0; spec.slot_bytes as usize];
        Ok((Self { clock: spec.clock, queued: Vec::with_capacity(spec.slots()), data }, Granted::default()))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl Queue for Null {
    /// All slots share one buffer: no data is moved.
    #[inline]
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        self.queued.push(Done { slot, result: op.length as i32 });
    }

    #[inline]
    fn submit(&mut self, _wait: u32) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        take_ready(&mut self.queued, done)
    }
}

/// Service time of every operation in ns.
const LATENCY_NS: u64 = 100_000;
/// Name of the option that limits how many operations the device serves at once.
const SERVERS: &str = "servers";

pub(super) const SIM_OPTIONS: &[EngineOption] = &[EngineOption::with_number(
    SERVERS,
    "serve at most N operations at once, so N x 10,000 per second; the others wait",
)];

pub(super) struct Sim {
    time: VirtualClock,
    /// Operations in flight with their completion times, in order of completion. This is also the
    /// order of submission, because all take the same service time.
    flying: VecDeque<(u64, Done)>,
    data: Vec<u8>,
    /// Maximum number of operations served at once; `None` if unlimited.
    servers: Option<usize>,
}

/// A clock that advances only while the loop waits; a tick is a nanosecond.
pub(super) struct VirtualClock {
    now_ns: u64,
}

impl Time for VirtualClock {
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
    type Time = VirtualClock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let flying = VecDeque::with_capacity(spec.slots());
        let servers = match spec.options.get(SERVERS).copied().flatten() {
            Some(0) => {
                let why = "option servers: a device with 0 servers completes nothing";
                return Err(refusal(io::ErrorKind::InvalidInput, why, "type sim:servers=1 or more"));
            }
            servers => servers.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        };
        let data = vec![0; spec.slot_bytes as usize];
        Ok((Self { time: VirtualClock { now_ns: 0 }, flying, data, servers }, Granted::default()))
    }

    fn time(&self) -> &VirtualClock {
        &self.time
    }
}

impl Queue for Sim {
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        // The service time is constant, so the operation that was queued `servers` places earlier frees the next server.
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

    /// Advances the clock to the next completion, or to the end of the pause.
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
