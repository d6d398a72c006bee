//! Sums over an interval for `fathom watch`: how long requests took on each device, and the requests of each process.

use crate::row::{Ends, Flags, Names, Row, RowKind};
use model::captured::{Op, RowUnit};
use model::histogram::Histogram;
use model::watch::{Latencies, Latency, ProcessRequests, RequestFigures};
use std::collections::BTreeMap;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// Requests of the current interval.
#[derive(Debug, Default)]
pub struct Interval {
    /// Whether `processes` has threads, by thread id, instead of processes.
    by_thread: bool,
    /// For each device: whether its rows are requests or bios, and the latencies of these rows.
    devices: Vec<(RowUnit, DeviceCounts)>,
    processes: BTreeMap<u32, ProcessCounts>,
}

/// Latencies of a device's requests, and how many of them were sequential.
#[derive(Debug, Default)]
struct DeviceCounts {
    reads: MovedCounts,
    writes: MovedCounts,
    discard: Histogram,
    flush: Histogram,
}

/// Latencies of a device's requests in one direction, and the numbers of sequential and of random requests.
#[derive(Debug, Default)]
struct MovedCounts {
    latency: Histogram,
    sequential: u64,
    random: u64,
    random_bytes: u64,
    /// Where the most recent requests ended.
    ends: Ends,
}

/// Requests of a process or thread.
#[derive(Debug, Default)]
struct ProcessCounts {
    read: DirectionCounts,
    write: DirectionCounts,
    flushes: u64,
    /// Sum of the latencies of all requests except flushes, in ns, including their wait in the scheduler.
    in_flight_ns: u64,
}

/// Requests of a process or thread in one direction.
#[derive(Debug, Default)]
struct DirectionCounts {
    requests: u64,
    bytes: u64,
    sequential: u64,
    /// Number of requests of each size in bytes.
    sizes: BTreeMap<u64, u64>,
    /// Where the most recent requests ended, by device.
    ends: BTreeMap<usize, Ends>,
}

impl Interval {
    /// Creates an empty interval for devices with these units.
    pub fn new(units: impl IntoIterator<Item = RowUnit>, by_thread: bool) -> Self {
        let devices = units.into_iter().map(|unit| (unit, DeviceCounts::default())).collect();
        Self { by_thread, devices, processes: BTreeMap::new() }
    }

    /// Adds a request of a device. Ignores requests whose completion is unknown.
    pub fn add(&mut self, device: usize, row: &Row, names: &Names) {
        let (Some(flags), Some(ns)) = (names.flags_at(row.flags), row.latency_ns) else { return };
        // Include the wait in the scheduler, as the device's own mean times do.
        let ns = ns.saturating_add(row.queued_ns.unwrap_or(0));
        let Some((unit, times)) = self.devices.get_mut(device) else { return };
        if flags.kind == RowKind::Request {
            times.add(flags.op(row.sectors), row, ns);
        }
        let task = names.task_at(row.task);
        let id = task.and_then(|task| if self.by_thread { Some(task.tid) } else { task.pid });
        if let Some(id) = id {
            let process = self.processes.entry(id).or_default();
            process.add(device, row, flags, ns);
            // The row of a bio includes its flush. On a device with requests, the requested flush is a separate row.
            let has_flush = flags.op(row.sectors) == Op::Write && (flags.has_preflush() || flags.has_fua());
            process.flushes += u64::from(*unit == RowUnit::Bios && has_flush);
        }
    }

    /// Returns the latencies of each device since the last call, and resets them.
    pub fn take_latencies(&mut self) -> Vec<Latencies> {
        self.devices.iter_mut().map(|(_, times)| times.take()).collect()
    }

    /// Returns the requests of each process since the last call, which was `seconds` ago.
    pub fn take_processes(&mut self, seconds: f64) -> BTreeMap<u32, ProcessRequests> {
        // Remove processes without requests since the last call.
        self.processes.retain(|_, process| !process.is_idle());
        self.processes.iter_mut().map(|(id, process)| (*id, process.take(seconds))).collect()
    }
}

impl DeviceCounts {
    fn add(&mut self, op: Op, row: &Row, ns: u64) {
        match op {
            Op::Read => self.reads.add(row, ns),
            Op::Write | Op::Zeroes => self.writes.add(row, ns),
            Op::Discard => self.discard.record(ns),
            Op::Flush => self.flush.record(ns),
            Op::Other => {}
        }
    }

    fn take(&mut self) -> Latencies {
        Latencies {
            read: self.reads.take(),
            write: self.writes.take(),
            discard: take_latency(&mut self.discard),
            flush: take_latency(&mut self.flush),
        }
    }
}

/// Returns the latencies since the last call, and resets them; `None` if there are none.
fn take_latency(histogram: &mut Histogram) -> Option<Latency> {
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / NS_PER_MS);
    let latency = histogram.max_ns().map(|max| Latency {
        requests: histogram.count(),
        p50_ms: ms(histogram.supported_quantile_ns(0.5)),
        p99_ms: ms(histogram.supported_quantile_ns(0.99)),
        max_ms: max as f64 / NS_PER_MS,
        sequential_percent: None,
        random_bytes: None,
    });
    histogram.clear();
    latency
}

impl MovedCounts {
    fn add(&mut self, row: &Row, ns: u64) {
        self.latency.record(ns);
        if self.ends.find(row.sector).is_some() {
            self.sequential += 1;
        } else {
            self.random += 1;
            self.random_bytes += row.bytes();
        }
        self.ends.push(row.end());
    }

    /// Returns the latencies since the last call and how sequential the requests were, and resets them.
    fn take(&mut self) -> Option<Latency> {
        let latency = take_latency(&mut self.latency);
        let [sequential, random, bytes] =
            [&mut self.sequential, &mut self.random, &mut self.random_bytes].map(std::mem::take);
        let share = |n: u64, of: u64| (of > 0).then(|| n as f64 / of as f64);
        Some(Latency {
            sequential_percent: share(sequential, sequential + random).map(|share| share * 100.0),
            random_bytes: share(bytes, random),
            ..latency?
        })
    }
}

impl ProcessCounts {
    fn add(&mut self, device: usize, row: &Row, flags: &Flags, ns: u64) {
        let op = flags.op(row.sectors);
        if flags.kind == RowKind::RequestedFlush || op == Op::Flush {
            // The data of a write with a flush is a separate row, so count only the flush here.
            self.flushes += 1;
            return;
        }
        self.in_flight_ns = self.in_flight_ns.saturating_add(ns);
        match op {
            Op::Read => self.read.add(device, row),
            Op::Write => self.write.add(device, row),
            Op::Discard | Op::Zeroes | Op::Flush | Op::Other => {}
        }
    }

    fn is_idle(&self) -> bool {
        [self.read.requests, self.write.requests, self.flushes, self.in_flight_ns] == [0; 4]
    }

    fn take(&mut self, seconds: f64) -> ProcessRequests {
        let flushes = std::mem::take(&mut self.flushes);
        let in_flight_ns = std::mem::take(&mut self.in_flight_ns);
        ProcessRequests {
            read: self.read.take(seconds),
            write: self.write.take(seconds),
            flush_per_s: flushes as f64 / seconds,
            depth_mean: in_flight_ns as f64 / NS_PER_S / seconds,
        }
    }
}

impl DirectionCounts {
    fn add(&mut self, device: usize, row: &Row) {
        let ends = self.ends.entry(device).or_default();
        self.requests += 1;
        self.bytes += row.bytes();
        self.sequential += u64::from(ends.find(row.sector).is_some());
        *self.sizes.entry(row.bytes()).or_default() += 1;
        ends.push(row.end());
    }

    fn take(&mut self, seconds: f64) -> Option<RequestFigures> {
        let Self { requests, bytes, sequential, sizes, ends } = std::mem::take(self);
        self.ends = ends;
        let half = requests.div_ceil(2);
        let mut below = 0;
        let median = sizes.iter().find(|(_, count)| {
            below += **count;
            below >= half
        });
        let (median, least, most) = (median?.0, sizes.first_key_value()?.0, sizes.last_key_value()?.0);
        Some(RequestFigures {
            per_s: requests as f64 / seconds,
            mb_per_s: bytes as f64 / 1e6 / seconds,
            p50_bytes: *median,
            min_bytes: *least,
            max_bytes: *most,
            sequential_percent: sequential as f64 / requests as f64 * 100.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Task;

    /// A request of process `pid` at this sector that took `us` microseconds.
    fn row(names: &mut Names, pid: u32, letters: &str, sector: u64, sectors: u32, us: u64) -> Row {
        let task = Task { tid: pid + 1, pid: Some(pid), ..Task::default() };
        Row {
            latency_ns: Some(us * 1000),
            sector,
            sectors,
            flags: names.flags(&Flags::parse(letters)),
            task: names.task(&task),
            ..Row::default()
        }
    }

    #[test]
    fn devices_have_latencies_and_processes_have_sizes_and_depth() {
        let mut names = Names::default();
        let mut interval = Interval::new([RowUnit::Bios, RowUnit::Requests], false);
        for at in 0..2000 {
            // One request in four begins where the previous one ended. They take 1 to 2000 us.
            let sector = if at % 4 == 1 { (at - 1) * 1000 + 8 } else { at * 1000 };
            interval.add(1, &row(&mut names, 40, "R", sector, 8, at + 1), &names);
        }
        interval.add(1, &row(&mut names, 41, "WS", 0, 256, 5), &names);
        interval.add(1, &row(&mut names, 41, "FF", 0, 0, 700), &names);
        // A commit of a journal, as a bio and as a request.
        interval.add(0, &row(&mut names, 42, "FWFS", 0, 8, 5), &names);
        interval.add(1, &row(&mut names, 43, "FWFS", 0, 8, 5), &names);
        // A request that never completed has no latency.
        interval.add(1, &Row { latency_ns: None, ..row(&mut names, 41, "R", 0, 8, 0) }, &names);
        let (devices, processes) = (interval.take_latencies(), interval.take_processes(2.0));
        assert_eq!(devices[0].read, None);
        let read = devices[1].read.unwrap_or_else(|| panic!("{devices:?}"));
        assert_eq!((read.requests, read.max_ms), (2000, 2.0));
        let near = |ms: Option<f64>, is: f64| ms.is_some_and(|ms| (ms - is).abs() < is * 0.01);
        assert!(near(read.p50_ms, 1.0) && near(read.p99_ms, 1.98), "{read:?}");
        assert_eq!((read.sequential_percent, read.random_bytes), (Some(25.0), Some(4096.0)));
        let flush = devices[1].flush.map(|f| (f.requests, f.p50_ms, f.max_ms));
        assert_eq!(flush, Some((1, None, 0.7)), "one request has no percentiles");
        let reader = &processes[&40];
        // 2000 requests of 1.0005 ms on average in 2 s.
        assert!((reader.depth_mean - 1.0005).abs() < 1e-9, "{reader:?}");
        let figures = reader.read.map(|r| (r.per_s, r.p50_bytes, r.max_bytes, r.sequential_percent));
        assert_eq!(figures, Some((1000.0, 4096, 4096, 25.0)));
        let writer = &processes[&41];
        assert_eq!((writer.read, writer.flush_per_s), (None, 0.5));
        assert_eq!(writer.write.map(|w| w.mb_per_s), Some(0.065_536));
        let flushes_in_10_s = [42, 43].map(|id| (processes[&id].flush_per_s * 10.0).round() as u32);
        assert_eq!(flushes_in_10_s, [5, 0]);
    }

    #[test]
    fn an_interval_keeps_only_the_last_ends_of_the_previous_interval() {
        let mut names = Names::default();
        let mut interval = Interval::new([RowUnit::Requests], true);
        interval.add(0, &row(&mut names, 7, "R", 0, 8, 1), &names);
        let first = interval.take_processes(1.0);
        interval.add(0, &row(&mut names, 7, "R", 8, 8, 1), &names);
        let second = interval.take_processes(1.0);
        let sequential = |processes: &BTreeMap<u32, ProcessRequests>| {
            processes.get(&8).and_then(|p| Some(p.read?.sequential_percent))
        };
        assert_eq!((sequential(&first), sequential(&second)), (Some(0.0), Some(100.0)));
        assert!(interval.take_processes(1.0).is_empty());
        let [latencies] = interval.take_latencies()[..] else { panic!() };
        let order = latencies.read.map(|read| (read.requests, read.sequential_percent, read.random_bytes));
        assert_eq!(order, Some((2, Some(50.0), Some(4096.0))));
        assert_eq!(interval.take_latencies(), [Latencies::default()]);
    }
}
