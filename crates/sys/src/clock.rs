//! The clock of the timestamps: the CPU's time stamp counter if its rate is steady, else `CLOCK_MONOTONIC`.
//!
//! A read takes about 9 ns. Ticks are converted by one multiplication with a 32.32 fixed-point factor, which is measured against
//! `CLOCK_MONOTONIC_RAW`. 2^64 ticks last for centuries.

use std::time::{Duration, Instant};

/// Duration of the comparison with the kernel's clock. The reads at its start and its end are uncertain by 50 ns each,
/// so after 20 ms the factor is right to 5 parts per million.
const CALIBRATION: Duration = Duration::from_millis(20);
/// Reads over which the cost of one read is averaged.
const COST_READS: u32 = 20_000;

/// A calibrated clock; each worker has a copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    tsc: bool,
    /// ns per tick, multiplied by 2^32.
    factor: u64,
    cost_ps: u64,
    /// Ticks and ns at calibration, to measure the drift.
    anchor: (u64, u64),
}

impl Clock {
    /// Chooses and calibrates the clock. With the time stamp counter this takes about 20 ms.
    ///
    /// Returns the clock, and the reason if the counter cannot be used. `steady` is whether the
    /// kernel itself uses the counter: a hypervisor may hide from CPUID that the counter is steady.
    pub fn calibrate(steady: bool) -> (Self, Option<String>) {
        if let Err(why) = tsc_usable(steady) {
            let mut clock = Self { tsc: false, factor: 1 << 32, cost_ps: 0, anchor: (0, 0) };
            clock.cost_ps = clock.measure_cost();
            return (clock, Some(why));
        }
        let (ticks_a, ns_a) = pair();
        std::thread::sleep(CALIBRATION);
        let (ticks_b, ns_b) = pair();
        let factor = (u128::from(ns_b - ns_a) << 32) / u128::from((ticks_b - ticks_a).max(1));
        let mut clock = Self { tsc: true, factor: factor as u64, cost_ps: 0, anchor: (ticks_b, ns_b) };
        clock.cost_ps = clock.measure_cost();
        (clock, None)
    }

    /// Returns `tsc` or `clock_monotonic`.
    pub fn name(&self) -> &'static str {
        if self.tsc { "tsc" } else { "clock_monotonic" }
    }

    /// Returns the measured cost of one read in picoseconds.
    pub fn cost_ps(&self) -> u64 {
        self.cost_ps
    }

    /// Returns the time in ticks. Part of the hot loop.
    #[inline]
    pub fn ticks(&self) -> u64 {
        if self.tsc { read_tsc() } else { kernel_ns(libc::CLOCK_MONOTONIC) }
    }

    /// Converts ticks to ns. Part of the hot loop: one multiplication.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.factor)) >> 32) as u64
    }

    /// Converts ns to ticks.
    pub fn ticks_of(&self, ns: u64) -> u64 {
        ((u128::from(ns) << 32) / u128::from(self.factor.max(1))) as u64
    }

    /// Returns the drift of the counter since calibration, relative to the kernel's raw clock, in parts per million. `None` if the kernel's
    /// clock is used, or if less than a second has passed.
    pub fn drift_ppm(&self) -> Option<f64> {
        let (first_ticks, first_ns) = self.anchor;
        let (ticks, ns) = pair();
        let kernel = (ns - first_ns) as f64;
        if !self.tsc || kernel < 1e9 {
            return None;
        }
        let counted = self.ns(ticks.wrapping_sub(first_ticks)) as f64;
        Some((counted / kernel - 1.0) * 1e6)
    }

    fn measure_cost(&self) -> u64 {
        let start = Instant::now();
        for _ in 0..COST_READS {
            std::hint::black_box(self.ticks());
        }
        (start.elapsed().as_nanos() * 1000 / u128::from(COST_READS)) as u64
    }
}

/// Reads the counter and the kernel's raw clock at nearly the same moment. Tries several times and returns the pair of the fastest try.
fn pair() -> (u64, u64) {
    let tries = (0..8).map(|_| {
        let before = read_tsc();
        let ns = kernel_ns(libc::CLOCK_MONOTONIC_RAW);
        let after = read_tsc();
        (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), ns)
    });
    tries.min_by_key(|(cost, ..)| *cost).map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

fn kernel_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame. Both clocks exist on every Linux, so the call cannot fail; if it did, the zeros
    // above would remain.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Reads the counter without a fence. The compiler keeps the order of calls, but the CPU may read the counter before earlier instructions
/// have finished. That moves a timestamp by tens of ns, at most by a cache miss, while operations take microseconds. `lfence` would make
/// every timestamp wait for all earlier instructions.
#[cfg(target_arch = "x86_64")]
#[inline]
fn read_tsc() -> u64 {
    // SAFETY: every x86-64 CPU has rdtsc, and Linux allows it in user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn read_tsc() -> u64 {
    kernel_ns(libc::CLOCK_MONOTONIC)
}

#[cfg(target_arch = "x86_64")]
fn tsc_usable(steady: bool) -> Result<(), String> {
    use std::arch::x86_64::__cpuid;
    /// Leaf of advanced power management; bit 8 of EDX guarantees a constant rate of the counter in all power states.
    const POWER_LEAF: u32 = 0x8000_0007;
    let invariant = __cpuid(0x8000_0000).eax >= POWER_LEAF && __cpuid(POWER_LEAF).edx & (1 << 8) != 0;
    if invariant || steady {
        Ok(())
    } else {
        Err("the CPU does not report a steady time stamp counter, and the kernel does not use it".into())
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_usable(_: bool) -> Result<(), String> {
    Err("fathom can read no time stamp counter on this CPU architecture".into())
}

#[test]
fn ticks_follow_the_kernel_and_convert_both_ways() {
    let (clock, _) = Clock::calibrate(true);
    let (start, a) = (Instant::now(), clock.ticks());
    std::thread::sleep(Duration::from_millis(50));
    let (elapsed, b) = (start.elapsed().as_nanos() as f64, clock.ticks());
    let ratio = clock.ns(b - a) as f64 / elapsed;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    // The conversion loses less than the ticks of one nanosecond.
    let there_and_back = clock.ticks_of(clock.ns(1_000_000));
    assert!(there_and_back.abs_diff(1_000_000) <= clock.ticks_of(1) + 1, "{there_and_back}");
    assert!(clock.cost_ps() > 0);
}
