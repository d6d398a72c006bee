//! Head-room: a running load as a share of the capacities that were measured on the same device.
//!
//! The capacities come from reports. Each is the device's rate for one class of requests
//! (direction, size, sequential or random), and 1 / rate is the time of one request of the class.
//! The counters of a load show its rate and mean size by direction, but neither the single sizes
//! nor whether it is sequential. So the load is compared under three assumptions that hold for
//! disks and flash: a larger request takes no less time than a smaller one, and no more than the
//! same bytes in smaller ones; a sequential request takes no more time than a random one. With `c`
//! the rate and `b` the size of a class, and `s` the mean size of the load, the time of one request
//! is:
//!
//! - at most: the shortest time that a class shows. That is 1 / c for a class with requests as
//!   large or larger, and s / (b c) for a class with smaller ones. For sequential requests, random
//!   classes count too. So a class that was measured with too few operations in flight to reach the
//!   limit of the device is replaced by a better one.
//! - at least: the longer of two times. One is the "at most" time of the next smaller measured
//!   size. The other is the "at most" time of the next larger measured size, times s / (that size).
//!
//! If the order is unknown, the shorter time of both orders is the lower bound and the longer one
//! the upper bound. Block events show which requests are random: they continue none of the last 64.
//! These requests are compared with random classes only (if there are any), by their own mean size.
//! The other requests may be sequential or pieces of large random ones that the kernel split, so
//! both orders count for them. The shares of both kinds of requests are added.
//!
//! Directions may overlap in a device or exclude each other: the load is at least the largest share
//! and at most their sum. `%util` says nothing about head-room and is not used.

use crate::case::whole_disk;
use crate::checks::SAME_REQUEST_BYTES;
use crate::limiter;
use model::job::{Mix, Pattern, Stream};
use model::machine::{Capacity, Direction, KnownBy, Layer, LayerKind, Place, SameBy};
use model::plan::Plan;
use model::report::{Ending, Measured, Report, Verdict};
use model::watch::{DeviceInterval, Latencies, Latency, Load, MeasuredIn, Requests};
use std::cmp::Ordering;

/// Up to this number of requests per second, a direction counts as unused.
const IN_USE_PER_S: f64 = 1e-9;

/// Smallest mean size of a request in bytes: a sector.
const SMALLEST_BYTES: f64 = 512.0;

/// Requests of one direction that are compared with the same classes.
struct Part {
    /// Share of the requests of the direction.
    share: f64,
    /// Mean size in bytes.
    bytes: f64,
    /// Whether the requests are known to be random.
    is_random: bool,
}

/// Splits the requests of a direction, of this mean size, by their order in the block events.
fn parts_by_order(bytes: f64, events: Option<&Latency>) -> Vec<Part> {
    let random = events.and_then(|e| Some((1.0 - e.sequential_percent? / 100.0, e.random_bytes?)));
    let Some((share, random_bytes)) = random else {
        return vec![Part { share: 1.0, bytes, is_random: false }];
    };
    let mut parts = vec![Part { share, bytes: random_bytes, is_random: true }];
    let rest = 1.0 - share;
    if rest > 0.0 {
        // Counters and events end at slightly different times, so the difference may be too small.
        let bytes = ((bytes - share * random_bytes) / rest).max(SMALLEST_BYTES);
        parts.push(Part { share: rest, bytes, is_random: false });
    }
    parts
}

/// The best result of one class.
#[derive(Clone, Debug, PartialEq)]
struct Class {
    best: Capacity,
    /// Index of its session.
    session: usize,
}

impl Class {
    fn bytes(&self) -> f64 {
        self.best.request_bytes as f64
    }

    fn bytes_per_s(&self) -> f64 {
        self.bytes() * self.best.requests_per_s
    }

    /// The time of a request.
    fn time(&self) -> RequestTime<'_> {
        RequestTime { seconds: 1.0 / self.best.requests_per_s, class: self }
    }

    /// The time that `bytes` take in requests of this class.
    fn time_of_bytes(&self, bytes: f64) -> RequestTime<'_> {
        RequestTime { seconds: bytes / self.bytes_per_s(), class: self }
    }
}

/// The time of a request, and the class that shows it.
#[derive(Clone, Copy)]
struct RequestTime<'c> {
    seconds: f64,
    class: &'c Class,
}

fn by_time(a: &RequestTime, b: &RequestTime) -> Ordering {
    a.seconds.total_cmp(&b.seconds)
}

/// The measured result that gives the lower bound of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct NearestLimit {
    /// The result, in the direction that uses the largest share of the device.
    pub capacity: Capacity,
    /// Where the result was measured, and when.
    pub session: MeasuredIn,
    /// Bytes per second of the load in this direction.
    pub load_bytes_per_s: f64,
    /// The highest throughput that was measured in this direction, in bytes per second.
    pub highest_bytes_per_s: f64,
    /// Size of the requests that reached the highest throughput, in bytes.
    pub highest_request_bytes: u64,
}

/// The measured capacities of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    classes: Vec<Class>,
    sessions: Vec<MeasuredIn>,
    same_by: SameBy,
}

impl Limits {
    /// The limits of a device from capacities with their sessions, the newest first. The highest rate of a class counts. `None` if no capacity
    /// is of this device.
    pub fn from_capacities(device: &KnownBy, measured: &[(MeasuredIn, Capacity)]) -> Option<Self> {
        let mut limits = Self { classes: Vec::new(), sessions: Vec::new(), same_by: SameBy::Serial };
        for (session, capacity) in measured {
            let Some(same_by) = capacity.device.same_as(device) else { continue };
            limits.same_by = same_by;
            limits.add(session, capacity);
        }
        limits.forget_unused();
        (!limits.classes.is_empty()).then_some(limits)
    }

    /// The sessions from which the capacities come.
    pub fn sessions(&self) -> &[MeasuredIn] {
        &self.sessions
    }

    /// How the device was recognised.
    pub fn same_by(&self) -> SameBy {
        self.same_by
    }

    /// Whether a cgroup limited one of the results.
    pub fn is_throttled(&self) -> bool {
        self.classes.iter().any(|c| c.best.throttled)
    }

    fn add(&mut self, session: &MeasuredIn, capacity: &Capacity) {
        let session = self.sessions.iter().position(|s| s == session).unwrap_or_else(|| {
            self.sessions.push(session.clone());
            self.sessions.len() - 1
        });
        let class = Class { best: capacity.clone(), session };
        let kind = |c: &Capacity| (c.direction, c.sequential, c.request_bytes);
        match self.classes.iter_mut().find(|c| kind(&c.best) == kind(capacity)) {
            Some(known) if known.best.requests_per_s >= capacity.requests_per_s => {}
            Some(known) => *known = class,
            None => self.classes.push(class),
        }
    }

    /// Removes the sessions from which no class comes.
    fn forget_unused(&mut self) {
        let used = |at: usize| self.classes.iter().any(|c| c.session == at);
        let kept: Vec<usize> = (0..self.sessions.len()).filter(|at| used(*at)).collect();
        for class in &mut self.classes {
            class.session = kept.iter().position(|at| *at == class.session).unwrap_or(0);
        }
        self.sessions = kept.iter().map(|at| self.sessions[*at].clone()).collect();
    }

    /// The bounds of a load as a share of these limits, and the measured result that gives the lower bound. The result is
    /// `None` without requests in a measured direction. `events` has the order of the requests, if it is known.
    pub fn compare(
        &self,
        interval: &DeviceInterval,
        events: Option<&Latencies>,
    ) -> (Load, Option<NearestLimit>) {
        let mut load = Load {
            at_least_percent: 0.0,
            at_most_percent: Some(0.0),
            not_measured: Vec::new(),
            throttled: self.is_throttled(),
            same_by: self.same_by,
            sessions: self.sessions.clone(),
        };
        let mut nearest: Option<(&Class, f64)> = None;
        for direction in Direction::ALL {
            let requests = requests_in(interval, direction);
            let Some(bytes) = requests.request_bytes.filter(|_| requests.per_s > IN_USE_PER_S) else {
                continue;
            };
            let events = events.and_then(|all| all.in_direction(direction));
            let Some([least, most]) = self.request_times(direction, &parts_by_order(bytes, events)) else {
                load.not_measured.push(direction);
                continue;
            };
            let [at_least, at_most] = [least, most].map(|time| time.seconds * requests.per_s * 100.0);
            if at_least > load.at_least_percent {
                load.at_least_percent = at_least;
                nearest = Some((least.class, bytes * requests.per_s));
            }
            load.at_most_percent = load.at_most_percent.map(|sum| sum + at_most);
        }
        if !load.not_measured.is_empty() {
            load.at_most_percent = None;
        }
        if let Some((class, _)) = nearest {
            load.sessions[..=class.session].rotate_right(1);
        }
        (load, nearest.and_then(|(class, load_bytes_per_s)| self.nearest(class, load_bytes_per_s)))
    }

    /// Compares a load with its nearest class.
    fn nearest(&self, class: &Class, load_bytes_per_s: f64) -> Option<NearestLimit> {
        let classes = self.classes.iter().filter(|c| c.best.direction == class.best.direction);
        let highest = classes.max_by(|a, b| a.bytes_per_s().total_cmp(&b.bytes_per_s()))?;
        Some(NearestLimit {
            capacity: class.best.clone(),
            session: self.sessions.get(class.session)?.clone(),
            load_bytes_per_s,
            highest_bytes_per_s: highest.bytes_per_s(),
            highest_request_bytes: highest.best.request_bytes,
        })
    }

    /// The lower and the upper bound of the mean time of a request in one direction, each with the class that contributes most to
    /// it; `None` if nothing was measured for the direction.
    fn request_times(&self, direction: Direction, parts: &[Part]) -> Option<[RequestTime<'_>; 2]> {
        let mut sums: Option<[RequestTime<'_>; 2]> = None;
        let mut largest = [0.0; 2];
        for part in parts {
            let orders = self.bounds(direction, part);
            let bounds = orders.reduce(|[least, most], [a, b]| {
                [std::cmp::min_by(least, a, by_time), std::cmp::max_by(most, b, by_time)]
            })?;
            let bounds = bounds.map(|time| RequestTime { seconds: part.share * time.seconds, ..time });
            let sums = sums.get_or_insert(bounds.map(|time| RequestTime { seconds: 0.0, ..time }));
            for ((sum, time), largest) in sums.iter_mut().zip(bounds).zip(&mut largest) {
                sum.seconds += time.seconds;
                if time.seconds > *largest {
                    (*largest, sum.class) = (time.seconds, time.class);
                }
            }
        }
        sums
    }

    /// The least and the most time that a request of this size takes, for each order that was measured: in random order, and
    /// sequentially if the requests may be sequential or nothing random was measured.
    fn bounds<'s>(&'s self, direction: Direction, part: &Part) -> impl Iterator<Item = [RequestTime<'s>; 2]> {
        let bytes = part.bytes;
        let has_random = self.classes.iter().any(|c| c.best.direction == direction && !c.best.sequential);
        let orders = if part.is_random && has_random { &[false][..] } else { &[false, true] };
        orders.iter().copied().filter_map(move |sequential| {
            let is_alike = |c: &&Class| (c.best.direction, c.best.sequential) == (direction, sequential);
            let sizes = || self.classes.iter().filter(is_alike).map(Class::bytes);
            let smaller = sizes().filter(|size| *size <= bytes).max_by(f64::total_cmp);
            let larger = sizes().filter(|size| *size >= bytes).min_by(f64::total_cmp);
            let most = |size: f64| self.max_time(direction, sequential, size);
            let of_larger = |size: f64| {
                let time = most(size)?;
                Some(RequestTime { seconds: time.seconds * bytes / size, ..time })
            };
            let least = [smaller.and_then(most), larger.and_then(of_larger)];
            Some([least.into_iter().flatten().max_by(by_time)?, most(bytes)?])
        })
    }

    /// Returns the longest time that a request of this size may take: the shortest time that a class
    /// shows, among the classes with requests that are not faster. `None` if there is no such class.
    fn max_time(&self, direction: Direction, sequential: bool, bytes: f64) -> Option<RequestTime<'_>> {
        let is_slower = |c: &&Class| c.best.direction == direction && (sequential || !c.best.sequential);
        let time = |c| if Class::bytes(c) >= bytes { Class::time(c) } else { Class::time_of_bytes(c, bytes) };
        self.classes.iter().filter(is_slower).map(time).min_by(by_time)
    }
}

/// The requests of an interval in one direction.
pub(super) fn requests_in(interval: &DeviceInterval, direction: Direction) -> &Requests {
    match direction {
        Direction::Read => &interval.read,
        Direction::Write => &interval.write,
    }
}

/// The capacities in a report, for the devices of its plan's targets.
///
/// The session must have ended as planned: the cause of an early end may also have disturbed earlier results. The session's
/// verdict does not matter, because it is only the verdict of the worst result. A result is a capacity if all of this holds:
/// - It is VALID under its requested name, or SUSPECT and limited by a cgroup. The capacity is then marked as `throttled`.
/// - It has one stream with one size and one direction, with direct I/O, in a closed loop without a rate limit or syncs.
/// - The topmost device moved the requested bytes.
///
/// The figures of a capacity are those of the device: completed requests, and their mean size.
pub fn capacities(plan: &Plan, report: &Report) -> Vec<Capacity> {
    if report.ending != Ending::Complete {
        return Vec::new();
    }
    report
        .results
        .iter()
        .filter_map(|result| capacity_of_result(plan, &report.machine.places, result))
        .collect()
}

fn capacity_of_result(plan: &Plan, places: &[Place], result: &Measured) -> Option<Capacity> {
    let throttled = is_throttled(result);
    if result.void || (!throttled && (result.verdict != Verdict::Valid || result.renamed)) {
        return None;
    }
    let [phase] = result.job.phases.as_slice() else { return None };
    let [stream] = phase.streams.as_slice() else { return None };
    let (direction, sequential) = direction_and_order(stream)?;
    let device = find_device(plan, places, stream)?;
    let (rates, at_device) = (result.total.as_ref()?, result.at_device()?);
    let moved = at_device.bytes_per_s(rates.iops) / (rates.mb_per_s * 1e6);
    if !moved.is_finite() || (moved - 1.0).abs() > SAME_REQUEST_BYTES {
        return None;
    }
    let requests_per_s = at_device.requests_per_s(rates.iops);
    let request_bytes = at_device.request_bytes().filter(|bytes| *bytes > 0)?;
    (requests_per_s.is_finite() && requests_per_s > 0.0).then(|| Capacity {
        device: KnownBy::from_layer(device),
        direction,
        sequential,
        request_bytes,
        requests_per_s,
        in_flight: stream.total_depth(),
        throttled,
    })
}

/// Whether the result is SUSPECT because it measured the limit of a cgroup.
fn is_throttled(result: &Measured) -> bool {
    result.verdict == Verdict::Suspect && result.limiter.name == limiter::THROTTLE
}

/// The direction of a stream's requests and whether they are sequential; `None` if the requests are of several kinds, use the page
/// cache, are synced, or have a rate limit.
fn direction_and_order(stream: &Stream) -> Option<(Direction, bool)> {
    if !stream.submits_without_waiting()
        || stream.flush.is_some()
        || !stream.cache.is_direct()
        || stream.cache.is_sync()
    {
        return None;
    }
    if stream.does_nothing() || stream.moves_no_data() {
        return None;
    }
    let [line] = stream.access.lines.as_slice() else { return None };
    stream.access.block_bytes()?;
    let direction = match line.mix {
        mix if mix == Mix::from_percents(100, 0) => Direction::Read,
        mix if mix == Mix::from_percents(0, 0) => Direction::Write,
        _ => return None,
    };
    Some((direction, stream.access.pattern()? == Pattern::Sequential))
}

/// Returns the topmost device below all targets of a stream, or the disk of a partition. `None` if the targets are on
/// several devices.
fn find_device<'p>(plan: &Plan, places: &'p [Place], stream: &Stream) -> Option<&'p Layer> {
    let mut found: Option<&Layer> = None;
    for target in &stream.targets {
        plan.targets.get(*target)?;
        let place = places.get(*target)?;
        let [top] = place.tops.as_slice() else { return None };
        let disk = whole_disk(place, place.layers.get(*top)?);
        // The disk of a partition may be unknown.
        let layer = Some(disk).filter(|disk| disk.kind != LayerKind::Partition)?;
        if found.is_some_and(|other| other.number != layer.number) {
            return None;
        }
        found = Some(layer);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> KnownBy {
        KnownBy { serial: Some("S".into()), bytes: 1 << 40, ..KnownBy::default() }
    }

    fn capacity(direction: Direction, sequential: bool, kib: u64, per_s: f64) -> Capacity {
        Capacity {
            device: disk(),
            direction,
            sequential,
            request_bytes: kib << 10,
            requests_per_s: per_s,
            in_flight: 32,
            throttled: false,
        }
    }

    fn session(id: &str) -> MeasuredIn {
        MeasuredIn { session: id.into(), started: None }
    }

    fn limits(all: &[(&str, Capacity)]) -> Limits {
        let all: Vec<(MeasuredIn, Capacity)> = all.iter().map(|(id, c)| (session(id), c.clone())).collect();
        Limits::from_capacities(&disk(), &all).unwrap()
    }

    fn requests(per_s: f64, kib: f64) -> Requests {
        let bytes = kib * 1024.0;
        let bytes_per_s = per_s * bytes;
        Requests {
            per_s,
            mb_per_s: bytes_per_s / 1e6,
            mib_per_s: bytes_per_s / 1_048_576.0,
            request_bytes: (per_s > 0.0).then_some(bytes),
            await_ms: None,
            merged_per_s: 0.0,
            merged_percent: None,
        }
    }

    fn load(limits: &Limits, read: Requests, write: Requests) -> (f64, Option<f64>) {
        load_with_events(limits, read, write, None)
    }

    fn load_with_events(
        limits: &Limits,
        read: Requests,
        write: Requests,
        events: Option<&Latencies>,
    ) -> (f64, Option<f64>) {
        let interval = DeviceInterval {
            seconds: 1.0,
            read,
            write,
            discard: None,
            flush: None,
            depth_mean: 0.0,
            in_flight: 0,
            util_percent: 99.0,
        };
        let (load, _) = limits.compare(&interval, events);
        (load.at_least_percent.round(), load.at_most_percent.map(f64::round))
    }

    const NONE: f64 = 0.0;

    #[test]
    fn a_load_of_a_measured_class_has_an_exact_share() {
        let limits = limits(&[("a", capacity(Direction::Read, false, 4, 2000.0))]);
        let still = requests(NONE, 0.0);
        for (rate, percent) in [(500.0, 25.0), (1000.0, 50.0), (1500.0, 75.0), (2000.0, 100.0), (0.0, 0.0)] {
            assert_eq!(load(&limits, requests(rate, 4.0), still), (percent, Some(percent)), "{rate}");
        }
    }

    #[test]
    fn a_size_between_two_classes_has_a_share_between_theirs() {
        let limits = limits(&[
            ("a", capacity(Direction::Read, false, 4, 10_000.0)),
            ("a", capacity(Direction::Read, false, 64, 2_500.0)),
        ]);
        // A request of 16 KiB takes at least as long as one of 4 KiB (1/10000 s) or a quarter of one of 64 KiB (1/10000 s), and at most as long
        // as four of 4 KiB or one of 64 KiB (1/2500 s).
        assert_eq!(load(&limits, requests(1000.0, 16.0), requests(NONE, 0.0)), (10.0, Some(40.0)));
        // Below all measured sizes, a request takes at most as long as one of 4 KiB, and at least its share of the bytes. Above them, the rules
        // are reversed.
        assert_eq!(load(&limits, requests(5000.0, 1.0), requests(NONE, 0.0)), (13.0, Some(50.0)));
        assert_eq!(load(&limits, requests(500.0, 256.0), requests(NONE, 0.0)), (20.0, Some(80.0)));
    }

    #[test]
    fn bounds_allow_any_order_and_directions_that_exclude_each_other() {
        let limits = limits(&[
            ("a", capacity(Direction::Read, false, 4, 1_000.0)),
            ("a", capacity(Direction::Read, true, 4, 10_000.0)),
            ("b", capacity(Direction::Write, false, 4, 2_000.0)),
        ]);
        assert_eq!(load(&limits, requests(500.0, 4.0), requests(200.0, 4.0)), (10.0, Some(60.0)));
        assert_eq!(limits.sessions().len(), 2);
    }

    #[test]
    fn random_requests_are_compared_with_random_results_only() {
        let limits = limits(&[
            ("a", capacity(Direction::Read, false, 4, 1_000.0)),
            ("a", capacity(Direction::Read, true, 1024, 200.0)),
        ]);
        let with_order = |limits: &Limits, sequential_percent: f64, random_kib: Option<f64>, kib: f64| {
            let read = Latency {
                requests: 960,
                p50_ms: None,
                p99_ms: None,
                max_ms: 9.0,
                sequential_percent: Some(sequential_percent),
                random_bytes: random_kib.map(|kib| kib * 1024.0),
            };
            let events = Latencies { read: Some(read), ..Latencies::default() };
            load_with_events(limits, requests(960.0, kib), requests(NONE, 0.0), Some(&events))
        };
        // Sequential requests of 4 KiB may take no longer than random ones.
        let any_order = (2.0, Some(96.0));
        assert_eq!(load(&limits, requests(960.0, 4.0), requests(NONE, 0.0)), any_order);
        assert_eq!(with_order(&limits, 100.0, None, 4.0), any_order);
        assert_eq!(with_order(&limits, 0.0, Some(4.0), 4.0), (96.0, Some(96.0)));
        assert_eq!(with_order(&limits, 50.0, Some(4.0), 4.0), (49.0, Some(96.0)));
        // The other requests have 1 MiB, which take at least as long as random ones of 4 KiB.
        assert!(matches!(with_order(&limits, 50.0, Some(4.0), 514.0), (96.0, _)));
        let classes = limits.classes.iter().filter(|c| c.best.sequential).cloned().collect();
        let sequential_only = Limits { classes, ..limits.clone() };
        assert_eq!(with_order(&sequential_only, 0.0, Some(4.0), 4.0), (2.0, Some(480.0)));
    }

    #[test]
    fn a_load_below_a_result_is_at_most_all_of_it_whatever_else_was_measured() {
        // One sequential stream of 128 KiB reached less than deep random requests of half the size.
        let limits = limits(&[
            ("new", capacity(Direction::Read, true, 128, 5_000.0)),
            ("old", capacity(Direction::Read, false, 64, 30_000.0)),
            ("old", capacity(Direction::Read, false, 1024, 2_000.0)),
            ("older", capacity(Direction::Read, true, 256, 12_000.0)),
        ]);
        let still = || requests(NONE, 0.0);
        assert_eq!(load(&limits, requests(15_000.0, 128.0), still()), (94.0, Some(100.0)));
        assert_eq!(load(&limits, requests(12_000.0, 128.0), still()), (75.0, Some(80.0)));
        assert_eq!(load(&limits, requests(6_000.0, 192.0), still()), (40.0, Some(60.0)));
        assert_eq!(load(&limits, requests(1_000.0, 1024.0), still()), (8.0, Some(50.0)));
        assert_eq!(load(&limits, requests(4_000.0, 16.0), still()), (3.0, Some(13.0)));
    }

    #[test]
    fn the_session_that_gives_the_lower_bound_is_named_first() {
        let limits = limits(&[
            ("new", capacity(Direction::Write, false, 4, 1_000.0)),
            ("old", capacity(Direction::Read, false, 4, 1_000.0)),
        ]);
        let order = |read: f64, write: f64| {
            let interval = DeviceInterval {
                seconds: 1.0,
                read: requests(read, 4.0),
                write: requests(write, 4.0),
                discard: None,
                flush: None,
                depth_mean: 0.0,
                in_flight: 0,
                util_percent: 99.0,
            };
            let (load, nearest) = limits.compare(&interval, None);
            let sessions = load.sessions.into_iter().map(|s| s.session).collect::<Vec<_>>().join(" ");
            (sessions, nearest.map(|n| n.session.session))
        };
        assert_eq!(order(500.0, 100.0), ("old new".into(), Some("old".into())));
        assert_eq!(order(100.0, 500.0), ("new old".into(), Some("new".into())));
        assert_eq!(order(NONE, NONE), ("new old".into(), None));
    }

    #[test]
    fn an_unmeasured_direction_leaves_the_upper_bound_open() {
        let limits = limits(&[("a", capacity(Direction::Read, false, 4, 1_000.0))]);
        assert_eq!(load(&limits, requests(500.0, 4.0), requests(1.0, 4.0)), (50.0, None));
        assert_eq!(load(&limits, requests(NONE, 4.0), requests(1.0, 4.0)), (0.0, None));
    }

    #[test]
    fn the_highest_rate_of_a_class_counts_and_only_its_session_is_named() {
        let limits = limits(&[
            ("new", capacity(Direction::Read, false, 4, 900.0)),
            ("old", capacity(Direction::Read, false, 4, 1_000.0)),
        ]);
        assert_eq!(limits.sessions(), [session("old")]);
        assert_eq!(load(&limits, requests(100.0, 4.0), requests(NONE, 0.0)), (10.0, Some(10.0)));
        let other = KnownBy { serial: Some("T".into()), ..disk() };
        assert_eq!(
            Limits::from_capacities(&other, &[(session("a"), capacity(Direction::Read, false, 4, 1.0))]),
            None
        );
    }
}

#[cfg(test)]
mod capacity_tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::{Judging, judge};
    use model::job::{Cache, Flush, Pace, SyncCall};

    fn capacities_after(change: impl Fn(&mut Report)) -> Vec<Capacity> {
        let record = Fixture::honest().record();
        let mut report = judge(&record, &Judging::default());
        change(&mut report);
        capacities(&record.header.plan, &report)
    }

    #[test]
    fn an_honest_result_is_a_capacity_with_the_figures_of_the_device() {
        let all = capacities_after(|_| {});
        let report = judge(&Fixture::honest().record(), &Judging::default());
        let [one] = &all[..] else { panic!("{all:?}: {:?}", report.verdict_reason) };
        assert_eq!((one.direction, one.sequential, one.request_bytes), (Direction::Read, false, 4096));
        let iops = report.results[0].total.as_ref().map_or(0.0, |t| t.iops);
        assert!((one.requests_per_s / iops - 1.0).abs() < 0.01, "{one:?} of {iops}");
    }

    #[test]
    fn a_session_that_ended_early_has_no_capacity() {
        let endings =
            [Ending::Interrupted, Ending::Failed("x".into()), Ending::NotMeasured("x".into()), Ending::Cut];
        for ending in endings {
            assert!(capacities_after(|r| r.ending = ending.clone()).is_empty(), "{ending:?}");
        }
    }

    #[test]
    fn a_valid_result_of_an_invalid_session_is_a_capacity_and_its_invalid_ones_are_not() {
        let all = capacities_after(|report| {
            let invalid = Measured { void: true, verdict: Verdict::Invalid, ..report.results[0].clone() };
            report.results.push(invalid);
            report.verdict = Verdict::Invalid;
        });
        assert_eq!(all.len(), 1, "{all:?}");
    }

    #[test]
    fn invalid_and_limited_results_are_no_capacity() {
        let stream = |report: &mut Report, change: fn(&mut Stream)| {
            change(&mut report.results[0].job.phases[0].streams[0]);
        };
        assert!(capacities_after(|r| r.results[0].verdict = Verdict::Suspect).is_empty());
        let held_back = capacities_after(|r| {
            r.results[0].verdict = Verdict::Suspect;
            r.results[0].limiter.name = limiter::THROTTLE.into();
        });
        assert!(held_back.len() == 1 && held_back[0].throttled && !capacities_after(|_| {})[0].throttled);
        assert!(capacities_after(|r| r.results[0].renamed = true).is_empty());
        assert!(capacities_after(|r| r.results[0].void = true).is_empty());
        assert!(
            capacities_after(|r| r.results[0].runs.iter_mut().for_each(|run| run.device = None)).is_empty()
        );
        assert!(capacities_after(|r| stream(r, |s| s.cache = Cache::Buffered)).is_empty());
        assert!(
            capacities_after(|r| stream(r, |s| s.pace = Pace::Limited { iops: 5.0, bytes_per_s: 0.0 }))
                .is_empty()
        );
        assert!(
            capacities_after(|r| stream(r, |s| s.access.lines[0].mix = Mix::from_percents(70, 0))).is_empty()
        );
        assert!(
            capacities_after(|r| stream(r, |s| s.flush =
                Some(Flush { call: SyncCall::default(), every: 1, calls: 1, drain: false })))
            .is_empty()
        );
        // A device that moved other bytes than the request: something in between answered.
        assert!(
            capacities_after(|r| for run in &mut r.results[0].runs {
                run.device = run.device.map(|d| model::report::DeviceFigures {
                    bytes: d.bytes / 10,
                    ios: d.ios / 10,
                    ..d
                });
            })
            .is_empty()
        );
        assert!(
            capacities_after(|r| r.machine.places.iter_mut().for_each(|p| p.tops = Vec::new())).is_empty()
        );
    }
}
