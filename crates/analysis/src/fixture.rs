//! Forged records for the tests of this crate: an honest session, and settings that each make the record wrong in one
//! way. The numbers are round.

use model::evidence::{Extents, FileState, Moment, Pages, Probe, Room, Snapshot, TargetState};
use model::histogram::Histogram;
use model::job::{Access, Arrivals, Cache, Job, Kind, Pace, Pattern, Phase, Stream};
use model::machine::{Cgroup, DirectIo, FileSystem, Layer, LayerKind, Machine, Place};
use model::plan::{LatencyTarget, Plan, Role};
use model::record::{
    Ceiling, Cell, Clock, End, Header, Interval, Issued, KindEnd, OpenLoop, Record, Run, RunEnd, RunEnding,
    RunStart, SelfTest, Stops, StreamEnd, SyncFailure, SyncedBy, ThreadIo, WorkerEnd, Written,
};
use model::{Known, evidence};
use std::collections::BTreeMap;

const WINDOW_NS: u64 = 1_000_000_000;
const PAGE: u64 = 4096;
const CGROUP: &str = "/sys/fs/cgroup/blkio/fathom";

/// One job and the observations of its runs. `Fixture::honest()` is a quiet virtio disk below ext4, 4 KiB direct random
/// reads at depth 32, five runs of 10,000 operations in a second and a tenth more as warm-up.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // Knobs, each turned alone.
pub(crate) struct Fixture {
    pub(crate) name: String,
    /// Number of copies of the job.
    pub(crate) jobs: usize,
    pub(crate) runs: u32,
    /// Operations in the window of a run.
    pub(crate) ops: u64,
    pub(crate) read_percent: u8,
    pub(crate) pattern: Pattern,
    pub(crate) block_bytes: u32,
    pub(crate) depth: u32,
    pub(crate) workers: u32,
    pub(crate) engine: &'static str,
    pub(crate) cache: Cache,
    pub(crate) role: Role,
    /// Counted operations in flight.
    pub(crate) depth_seen: f64,
    /// Latency of all operations; if `None`, it follows from Little's law.
    pub(crate) latency_ns: Option<u64>,
    /// Bytes at the device per byte issued.
    pub(crate) delivered: f64,
    /// Whether the final sync writes the data that the page cache still held.
    pub(crate) sync_works: bool,
    /// Operations per device request.
    pub(crate) merged: u64,
    /// Share of each latency that is spent in the device.
    pub(crate) device_time_share: f64,
    /// Requests of 4 KiB by other processes, per run, in the job's direction.
    pub(crate) foreign_ios: u64,
    /// Share of a loop device's bytes that arrive at the disk below it; `None` without a loop device.
    pub(crate) leaf_share: Option<f64>,
    /// Share of the moved bytes (at most the span) that are in the page cache when a run stops.
    pub(crate) cached_share: f64,
    /// Share of the same moved bytes that are dirty when a run stops.
    pub(crate) dirty_share: f64,
    pub(crate) hole_share: f64,
    pub(crate) encoded_share: f64,
    pub(crate) no_fiemap: bool,
    pub(crate) kind: &'static str,
    pub(crate) options: &'static str,
    pub(crate) direct: Option<DirectIo>,
    pub(crate) ram: Option<&'static str>,
    /// Whether the file system has no device below it.
    pub(crate) nothing_below: bool,
    pub(crate) iostats_off: bool,
    pub(crate) stat_unreadable: bool,
    pub(crate) cgroup: bool,
    pub(crate) cgroup_counts_nothing: bool,
    pub(crate) cpu_share: f64,
    pub(crate) no_cpu_times: bool,
    pub(crate) errors: u64,
    pub(crate) short: u64,
    pub(crate) sync_ns: Option<u64>,
    /// Error number of the final sync of the first run; 0 if it succeeded.
    pub(crate) sync_errno: i32,
    pub(crate) virtual_by: Known<Option<String>>,
    /// Time per operation of fathom's own loop and of its interface; `None` without a self test.
    pub(crate) tool_ns: Option<[f64; 2]>,
    /// Arrivals per second of an open loop, and the lateness of every operation in ns (`None`: not recorded); `None` for a
    /// closed loop.
    pub(crate) open_loop: Option<(f64, Option<u64>)>,
}

impl Fixture {
    pub(crate) fn honest() -> Self {
        Self {
            name: "RND4K Q32T1 read".into(),
            jobs: 1,
            runs: 5,
            ops: 10_000,
            read_percent: 100,
            pattern: Pattern::Random,
            block_bytes: 4096,
            depth: 32,
            workers: 1,
            engine: "io_uring",
            cache: Cache::Direct,
            role: Role::Made,
            depth_seen: 31.5,
            latency_ns: None,
            delivered: 1.0,
            sync_works: true,
            merged: 1,
            device_time_share: 0.95,
            foreign_ios: 0,
            leaf_share: None,
            cached_share: 0.0,
            dirty_share: 0.0,
            hole_share: 0.0,
            encoded_share: 0.0,
            no_fiemap: false,
            kind: "ext4",
            options: "rw,relatime",
            direct: Some(DirectIo { memory_align: 512, offset_align: 512 }),
            ram: None,
            nothing_below: false,
            iostats_off: false,
            stat_unreadable: false,
            cgroup: true,
            cgroup_counts_nothing: false,
            cpu_share: 0.4,
            no_cpu_times: false,
            errors: 0,
            short: 0,
            sync_ns: None,
            sync_errno: 0,
            virtual_by: Ok(None),
            tool_ns: Some([20.0, 250.0]),
            open_loop: None,
        }
    }

    /// An open loop that submitted all operations on time.
    pub(crate) fn honest_open() -> Self {
        Self { open_loop: Some((10_000.0, Some(1_000))), ..Self::honest() }
    }

    pub(crate) fn honest_write() -> Self {
        Self { name: "RND4K Q32T1 write".into(), read_percent: 0, sync_ns: Some(1_000_000), ..Self::honest() }
    }

    /// A loop device that passes all I/O on to its disk.
    pub(crate) fn honest_loop() -> Self {
        Self { leaf_share: Some(1.0), ..Self::honest() }
    }

    pub(crate) fn record(&self) -> Record {
        together(&vec![self.clone(); self.jobs])
    }

    fn job(&self) -> Job {
        let span_bytes = 1 << 30;
        let (pattern, block_bytes, read_percent) = (self.pattern, self.block_bytes, self.read_percent);
        let access = Access { span_bytes, ..Access::plain(pattern, block_bytes, read_percent) };
        let pace =
            self.open_loop.map_or(Pace::Closed, |(iops, _)| Pace::Open { iops, arrivals: Arrivals::Poisson });
        let stream = Stream {
            cache: self.cache,
            pace,
            ..Stream::plain(access, self.depth, self.workers, self.engine)
        };
        let phase =
            Phase { warmup_ns: WINDOW_NS / 10, time_ns: WINDOW_NS, cooldown_ns: 0, streams: vec![stream] };
        Job { name: self.name.clone(), phases: vec![phase] }
    }

    fn place(&self) -> Place {
        let loop_top = self.leaf_share.is_some();
        let mut layers = Vec::new();
        if loop_top {
            layers.push(layer("loop0", "7:0", LayerKind::Loop, vec![1]));
        }
        layers.push(layer("vda", "254:0", LayerKind::Disk, Vec::new()));
        let iostats = if self.iostats_off { "0\n" } else { "1\n" };
        layers.iter_mut().for_each(|l| drop(l.queue.insert("iostats".into(), iostats.into())));
        if self.nothing_below {
            layers.clear();
        }
        let fs = FileSystem {
            kind: if self.nothing_below { "fuse" } else { self.kind }.into(),
            source: "/dev/vda".into(),
            mount_point: "/".into(),
            options: self.options.into(),
            attributes: Vec::new(),
            root: "/".into(),
        };
        Place {
            path: "/data".into(),
            file_system: (self.role != Role::Device).then_some(fs),
            tops: if layers.is_empty() { Vec::new() } else { vec![0] },
            layers,
            direct: self.direct,
            ram: self.ram.map(str::to_owned),
            unresolved_reason: self
                .nothing_below
                .then(|| "fuse has no block device that could be seen".into()),
        }
    }

    fn machine(&self) -> Machine {
        let files = ["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"];
        let cgroup = Cgroup {
            version: 1,
            dir: CGROUP.into(),
            files: files.iter().map(|f| format!("{CGROUP}/{f}")).collect(),
        };
        Machine {
            host: "fixture".into(),
            kernel: "Linux 6.18.0".into(),
            cpu: Ok("a CPU".into()),
            cpus: 2,
            memory_bytes: Ok(8 << 30),
            virtual_by: self.virtual_by.clone(),
            clocksource: Ok("tsc".into()),
            user_id: 0,
            cgroup: if self.cgroup { Ok(cgroup) } else { Err("no cgroup may be made here".into()) },
            facts: FACTS.iter().map(|(name, text)| ((*name).to_owned(), Ok((*text).to_owned()))).collect(),
            places: vec![self.place()],
        }
    }

    fn kind_of_job(&self) -> Kind {
        if self.read_percent == 0 { Kind::Write } else { Kind::Read }
    }

    /// Operations submitted in a run, with a tenth more for the warm-up.
    fn issued_ops(&self) -> u64 {
        self.ops + self.ops / 10
    }

    fn latency(&self) -> u64 {
        self.latency_ns.unwrap_or((self.depth_seen * WINDOW_NS as f64 / self.ops.max(1) as f64) as u64)
    }

    fn stream_end(&self) -> StreamEnd {
        let (kind, bytes) = (self.kind_of_job(), u64::from(self.block_bytes));
        let mut latency = Histogram::new();
        (0..self.ops).for_each(|_| latency.record(self.latency()));
        let errors = if self.errors > 0 { BTreeMap::from([(5, self.errors)]) } else { BTreeMap::new() };
        let issued = self.issued_ops();
        let issued =
            Issued { ops: issued, bytes: issued * bytes, errors, short: self.short, max_ns: self.latency() };
        StreamEnd {
            steadied: None,
            lanes: Vec::new(),
            replayed: None,
            at_driver: None,
            priorities: Vec::new(),
            common: None,
            stream: 0,
            window_ns: WINDOW_NS,
            depth_ns: if self.ops > 0 { (self.depth_seen * WINDOW_NS as f64) as u64 } else { 0 },
            kinds: BTreeMap::from([(
                kind,
                KindEnd { bytes: self.ops * bytes, latency, open: self.open_parts() },
            )]),
            issued: BTreeMap::from([(kind, issued)]),
            data: (kind == Kind::Write).then_some(Written { compress_percent: 0.2, dedup_percent: 0.0 }),
            submit: self.submit(),
        }
    }

    fn open_parts(&self) -> Option<OpenLoop> {
        let late = self.open_loop?.1?;
        let mut parts = OpenLoop::default();
        for _ in 0..self.ops {
            parts.service.record(self.latency().saturating_sub(late));
            parts.lateness.record(late);
        }
        Some(parts)
    }

    fn run_end(&self, at_ns: u64) -> RunEnd {
        let cpu = if self.no_cpu_times { 0.0 } else { self.cpu_share * WINDOW_NS as f64 };
        let worker = |worker| WorkerEnd {
            worker,
            wall_ns: if self.no_cpu_times { 0 } else { WINDOW_NS },
            user_ns: (cpu / 2.0) as u64,
            system_ns: (cpu / 2.0) as u64,
            ops: self.issued_ops() / u64::from(self.workers.max(1)),
            ready_ns: Ok(WINDOW_NS / 1000),
            ..WorkerEnd::default()
        };
        RunEnd {
            command: None,
            at_ns,
            ending: RunEnding::Complete,
            streams: vec![self.stream_end()],
            workers: (0..self.workers).map(worker).collect(),
            sync_ns: self.sync_ns.filter(|_| self.sync_errno == 0),
            sync_failures: (self.sync_errno != 0)
                .then_some(SyncFailure { target: 0, call: SyncedBy::FinalSync, errno: self.sync_errno })
                .into_iter()
                .collect(),
            process_ns: Some([(cpu / 2.0) as u64; 2]),
            stops: Some(Ok(Stops::default())),
            notes: Vec::new(),
        }
    }

    /// Adds the I/O of a run to the counters.
    fn count(&self, counters: &mut Counters) {
        let i = usize::from(self.kind_of_job() == Kind::Write);
        let ours = (self.issued_ops() as f64 * self.delivered) as u64;
        let device_ms = ours * (self.latency() as f64 * self.device_time_share / 1e6 * 1e3) as u64 / 1_000;
        let bytes = ours * u64::from(self.block_bytes);
        let top =
            [ours / self.merged + self.foreign_ios, bytes + self.foreign_ios * 4096, device_ms / self.merged];
        let leaf = self.leaf_share.unwrap_or(1.0);
        for (slot, value) in [0, 1, 2].into_iter().zip(top) {
            counters.top[i][slot] += value;
            counters.leaf[i][slot] += (value as f64 * leaf) as u64;
        }
        if !self.cgroup_counts_nothing {
            counters.own[i][0] += ours / self.merged;
            counters.own[i][1] += bytes;
        }
    }

    /// Adds the I/O of the final sync: all data that the page cache still held.
    fn write_back(&self, counters: &mut Counters) {
        if self.cache != Cache::Buffered || !self.sync_works {
            return;
        }
        let rest = (self.issued_ops() as f64 * (1.0 - self.delivered).max(0.0)) as u64;
        for of_device in [&mut counters.top, &mut counters.leaf] {
            of_device[1][0] += rest / self.merged;
            of_device[1][1] += rest * u64::from(self.block_bytes);
        }
    }

    fn snapshot(&self, moment: Moment, at_ns: u64, counters: &Counters) -> Snapshot {
        let mut files = BTreeMap::new();
        let unreadable = || Err("Permission denied (os error 13)".to_owned());
        let stat = |c: &[[u64; 3]; 2]| {
            let [r, w] = c.map(|[ios, bytes, ms]| format!("{ios} 0 {} {ms}", bytes / 512));
            let queue: u64 = c.iter().map(|d| d[2]).sum();
            if self.stat_unreadable { unreadable() } else { Ok(format!("{r} {w} 0 0 {queue} 0 0 0 0 0 0\n")) }
        };
        let (top, leaf) = if self.leaf_share.is_some() { ("loop0", Some("vda")) } else { ("vda", None) };
        files.insert(format!("/sys/block/{top}/stat"), stat(&counters.top));
        leaf.map(|name| files.insert(format!("/sys/block/{name}/stat"), stat(&counters.leaf)));
        // The kernel charges a request on every disk that the request passes.
        let below = self.leaf_share.map(|arrives| ("254:0", arrives));
        let disks = [(if leaf.is_some() { "7:0" } else { "254:0" }, 1.0)].into_iter().chain(below);
        let charged = |slot: usize| {
            let line = |(number, arrives): (&str, f64)| {
                let [r, w] = counters.own.map(|d| (d[slot] as f64 * arrives) as u64);
                format!("{number} Read {r}\n{number} Write {w}\n")
            };
            if self.cgroup_counts_nothing {
                "Total 0\n".to_owned()
            } else {
                disks.clone().map(line).collect()
            }
        };
        files.insert(format!("{CGROUP}/blkio.throttle.io_serviced"), Ok(charged(0)));
        files.insert(format!("{CGROUP}/blkio.throttle.io_service_bytes"), Ok(charged(1)));
        files.extend(system_files(at_ns));
        Snapshot { moment, at_ns, files, targets: vec![self.state(moment)] }
    }

    /// Ten intervals of the same rate.
    fn intervals(&self) -> Vec<Interval> {
        let part = |i: u64, all: u64| all * (i + 1) / 10 - all * i / 10;
        let latency = self.latency();
        let row = |i| {
            let ops = part(i, self.ops);
            let bytes = ops * u64::from(self.block_bytes);
            let cell = Cell { ops, bytes, p50_ns: latency, p99_ns: latency, max_ns: latency };
            Interval {
                stream: 0,
                start_ns: WINDOW_NS / 10 + part(0, WINDOW_NS) * i,
                end_ns: WINDOW_NS / 10 + part(0, WINDOW_NS) * (i + 1),
                depth_ns: (self.depth_seen * WINDOW_NS as f64 / 10.0) as u64,
                cells: BTreeMap::from([(self.kind_of_job(), cell)]),
            }
        };
        (0..10).map(row).collect()
    }

    fn state(&self, moment: Moment) -> TargetState {
        let span = 1_u64 << 30;
        let after = moment == Moment::Stop;
        let moved = self.issued_ops() * u64::from(self.block_bytes);
        let pages = |share: f64| if after { (share * moved.min(span) as f64) as u64 / PAGE } else { 0 };
        // Reads that the device did not deliver came from the page cache.
        let kept = if self.cache == Cache::Buffered { (1.0 - self.delivered).max(0.0) } else { 0.0 };
        let share = self.cached_share.max(self.dirty_share).max(kept);
        let (cached, dirty) = (pages(share), Some(pages(self.dirty_share)));
        let part = |share: f64| (share * span as f64) as u64;
        let extents = Extents {
            span_bytes: span,
            count: 1,
            physical_align: Some(1 << 20),
            hole_bytes: part(self.hole_share),
            encoded_bytes: part(self.encoded_share),
            ..Extents::default()
        };
        let extents =
            if self.no_fiemap { Err("Operation not supported (os error 95)".into()) } else { Ok(extents) };
        TargetState {
            pages: Ok(Pages { page_bytes: PAGE, cached, dirty }),
            backing: None,
            extents: (moment != Moment::Stop || self.kind_of_job() == Kind::Read).then_some(extents),
            file: (self.role != Role::Device).then(|| {
                let (bytes, allocated_bytes) = (span, span - part(self.hole_share));
                Ok(FileState {
                    device: 65_024,
                    inode: 12,
                    links: 1,
                    bytes,
                    allocated_bytes,
                    modified_ns: 1,
                    changed_ns: Some(1),
                })
            }),
            room: Some(Ok(Room { total_bytes: 100 << 30, free_bytes: 50 << 30 })),
            probe: (moment == Moment::AfterPrepare).then(|| {
                let ns: Vec<u64> = (0..64).map(|i| 80_000 + 100 * (i % 7)).collect();
                Ok(Probe { block_bytes: PAGE, zero_blocks: 0, first_ns: ns.clone(), again_ns: ns })
            }),
            regions: Vec::new(),
        }
    }
}

/// Totals since the machine started: per direction requests, bytes, ms; for the cgroup requests, bytes.
#[derive(Default)]
struct Counters {
    top: [[u64; 3]; 2],
    leaf: [[u64; 3]; 2],
    own: [[u64; 2]; 2],
}

impl Counters {
    /// Counters of a disk that was overwritten more than twice since the machine started.
    fn in_use() -> Self {
        let written = [[0; 3], [1 << 20, 3 << 34, 1 << 20]];
        Self { top: written, leaf: written, ..Self::default() }
    }
}

/// Time that submitting an operation takes.
pub(crate) const SUBMIT_NS: u64 = 5_000;

impl Fixture {
    /// Sequential reads of 64 KiB, eight in flight.
    pub(crate) fn honest_sequential() -> Self {
        Self {
            name: "SEQ64K Q8T1 read".into(),
            pattern: Pattern::Sequential,
            // The runs move fewer bytes than the span, so that no block is read twice.
            block_bytes: 1 << 16,
            depth: 8,
            depth_seen: 7.9,
            ..Self::honest()
        }
    }

    /// Times of the calls that submit without waiting; empty if only one operation may be in flight.
    fn submit(&self) -> Histogram {
        let mut submit = Histogram::new();
        (0..if self.depth > 1 { self.ops } else { 0 }).for_each(|_| submit.record(SUBMIT_NS));
        submit
    }
}

/// The facts of an honest machine.
const FACTS: &[(&str, &str)] = &[
    (evidence::LIMITS, ""),
    (evidence::GOVERNORS, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: performance\n"),
    (evidence::SLEEPS, ""),
    (evidence::VENDOR, "ACME\n"),
    (evidence::PRODUCT, "Server 1\n"),
    (evidence::LIBRARIES, "/usr/lib/libc.so.6\n"),
    (evidence::PAGE_REPORTING, ""),
    (evidence::NODES, "/sys/devices/system/node/node0/cpulist: 0-1\n"),
];

/// The machine's own counters at a time: two CPUs, nearly idle, nothing swapped, nothing dirty, no pressure.
fn system_files(at_ns: u64) -> BTreeMap<String, Known<String>> {
    let jiffies = at_ns / 10_000_000;
    let pressure =
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    let memory = "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\nDirty: 0 kB\nWriteback: 0 kB\n";
    let vmstat = "nr_dirty 0\nnr_writeback 0\nnr_dirty_threshold 300000\nnr_dirty_background_threshold 150000\n\
                  nr_dirtied 0\nnr_written 0\nnr_file_pages 100000\npgmajfault 0\npswpin 0\npswpout 0\n";
    let io =
        "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
    let texts = [
        ("/proc/meminfo", memory.to_owned()),
        ("/proc/vmstat", vmstat.to_owned()),
        ("/proc/stat", format!("cpu  {0} 0 {0} {1} 0 0 0 0 0 0\n", jiffies / 4, jiffies * 3 / 2)),
        ("/proc/pressure/io", pressure.to_owned()),
        ("/proc/pressure/cpu", pressure.to_owned()),
        ("/proc/pressure/memory", pressure.to_owned()),
        ("/proc/self/io", io.to_owned()),
        (evidence::LIMITS, String::new()),
        (evidence::HOUSEKEEPERS, String::new()),
        (evidence::THREADS, "100: fathom\n101: fathom-0\n".to_owned()),
        (evidence::TEMPERATURES, String::new()),
        (evidence::RAID, "Personalities :\nunused devices: <none>\n".to_owned()),
        (evidence::CPU_STAT, "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n".to_owned()),
        (evidence::SUSPENDED, "0\n".to_owned()),
    ];
    texts.into_iter().map(|(name, text)| (name.to_owned(), Ok(text))).collect()
}

/// The queue of an honest solid-state disk without a volatile cache.
const QUEUE: &[(&str, &str)] = &[
    ("iostats", "1"),
    ("io_poll", "0"),
    ("logical_block_size", "512"),
    ("max_sectors_kb", "1280"),
    ("max_segments", "254"),
    ("nomerges", "0"),
    ("nr_requests", "256"),
    ("physical_block_size", "4096"),
    ("read_ahead_kb", "128"),
    ("rotational", "0"),
    ("scheduler", "[none] mq-deadline"),
    ("write_cache", "write through"),
];

fn layer(name: &str, number: &str, kind: LayerKind, below: Vec<usize>) -> Layer {
    let offset = (kind == LayerKind::Loop).then(|| ("loop/offset".to_owned(), "0".to_owned()));
    Layer {
        name: name.into(),
        number: number.into(),
        kind,
        bytes: 1 << 34,
        stat_file: format!("/sys/block/{name}/stat"),
        queue: QUEUE.iter().map(|(k, v)| ((*k).to_owned(), format!("{v}\n"))).collect(),
        device: [("mq", "4"), ("alignment_offset", "0"), ("device/numa_node", "0")]
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .chain(offset)
            .collect(),
        below,
        ..Layer::default()
    }
}

/// A session of several jobs on the machine of the first.
pub(crate) fn together(fixtures: &[Fixture]) -> Record {
    let first = &fixtures[0];
    let mut counters = Counters::in_use();
    let mut at_ns = 5 * WINDOW_NS;
    let mut runs = Vec::new();
    for (job, fixture) in fixtures.iter().enumerate() {
        for repeat in 0..fixture.runs {
            let start = RunStart {
                job,
                phase: 0,
                repeat,
                attempt: 0,
                offered_iops: None,
                host: 0,
                at_ns,
                target_bytes: vec![1 << 30],
            };
            let before = fixture.snapshot(Moment::Start, at_ns, &counters);
            fixture.count(&mut counters);
            at_ns += WINDOW_NS + WINDOW_NS / 10;
            let after = fixture.snapshot(Moment::Stop, at_ns, &counters);
            let end = fixture.run_end(at_ns);
            let mut evidence = vec![before, after];
            if fixture.kind_of_job() == Kind::Write {
                fixture.write_back(&mut counters);
                evidence.push(fixture.snapshot(Moment::Synced, at_ns + 1_000_000, &counters));
            }
            let intervals = fixture.intervals();
            runs.push(Run { start, intervals, evidence, end: Some(end), disturbed: None });
        }
    }
    let header = Header {
        format: model::record::FORMAT,
        version: "0.0.0".into(),
        started: "2026-01-01T00:00:00+00:00".into(),
        plan: plan(fixtures),
        hosts: vec![first.machine()],
        clock: Clock { name: "tsc".into(), reason: None, cost_ps: 9_000 },
        self_test: self_test(fixtures),
    };
    let end = End { ending: RunEnding::Complete, notes: Vec::new(), clock_drift_ppm: Some(1.0) };
    let prepared = first.snapshot(Moment::AfterPrepare, WINDOW_NS, &Counters::in_use());
    let evidence = vec![prepared];
    Record {
        header,
        evidence,
        preconditioned: None,
        runs,
        uncounted_runs: Vec::new(),
        fleet: None,
        end: Some(end),
    }
}

/// A closed loop and loads that were offered, three runs of each.
pub(crate) fn curve(closed: &Fixture, loads: &[(u64, Fixture)]) -> Record {
    let all = std::iter::once(closed).chain(loads.iter().map(|(_, fixture)| fixture));
    let mut record = together(&all.map(|f| Fixture { runs: 3, ..f.clone() }).collect::<Vec<_>>());
    for run in &mut record.runs {
        run.start.offered_iops = run.start.job.checked_sub(1).map(|load| loads[load].0);
        run.start.job = run.start.job.min(1);
    }
    let latency_target = LatencyTarget {
        quantile: 0.99,
        latency_ns: Some(1_000_000),
        arrivals: Arrivals::Poisson,
        curve: true,
    };
    crate::studies::set_latency_target(&mut record, latency_target);
    record.header.plan.jobs.truncate(2);
    record.header.self_test.ceilings.retain(|c| c.job < 2);
    record
}

fn self_test(fixtures: &[Fixture]) -> SelfTest {
    let ceiling = |(job, [own, interface]): (usize, [f64; 2])| {
        let (loop_ns, interface_ns) = (Ok(own), Ok(interface));
        Ceiling { job, phase: 0, stream: 0, loop_ns, interface_ns }
    };
    let tried = fixtures.iter().enumerate().filter_map(|(job, f)| Some((job, f.tool_ns?)));
    SelfTest { copy_bytes_per_s: 1e10, ceilings: tried.map(ceiling).collect(), trials: Vec::new() }
}

fn plan(fixtures: &[Fixture]) -> Plan {
    let target = crate::idle::target("/data".into(), fixtures[0].role, 1 << 30);
    let jobs = fixtures.iter().map(Fixture::job).collect();
    Plan { runs: fixtures[0].runs, ..crate::idle::plan(target, jobs) }
}

/// The first disk of every fixture, and another one for streams that share nothing.
const DISKS: [[&str; 2]; 2] = [["vda", "254:0"], ["vdb", "254:16"]];

/// A session in which both streams run at once on the same disk. The kernel counted the I/O of their workers.
pub(crate) fn two_streams(first: &Fixture, second: &Fixture) -> Record {
    merge(record(first), record(second))
}

/// A session in which both streams run at once, each on its own disk.
pub(crate) fn two_streams_on_two_disks(first: &Fixture, second: &Fixture) -> Record {
    let mut other = record(second);
    let renamed = |text: &str| {
        let [[disk, number], [other, other_number]] = DISKS;
        text.replace(disk, other).replace(number, other_number)
    };
    for layer in other.header.hosts[0].places.iter_mut().flat_map(|p| &mut p.layers) {
        (layer.name, layer.number) = (renamed(&layer.name), renamed(&layer.number));
        layer.stat_file = renamed(&layer.stat_file);
    }
    for snapshot in other.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut other.evidence) {
        let files = std::mem::take(&mut snapshot.files).into_iter();
        snapshot.files = files.map(|(name, text)| (renamed(&name), text.map(|t| renamed(&t)))).collect();
    }
    merge(record(first), other)
}

/// Removes the kernel's counts of the workers, as in a session of an older version.
pub(crate) fn without_worker_counts(mut record: Record) -> Record {
    let ends = record.runs.iter_mut().filter_map(|r| r.end.as_mut());
    ends.flat_map(|e| &mut e.workers).for_each(|w| w.io = WorkerEnd::default().io);
    record
}

/// The session of a fixture with the kernel's count of its worker: reads and direct writes that reached the device, and pages made dirty.
fn record(fixture: &Fixture) -> Record {
    let mut record = fixture.record();
    let issued = fixture.issued_ops() * u64::from(fixture.block_bytes);
    let delivered = (fixture.issued_ops() as f64 * fixture.delivered) as u64 * u64::from(fixture.block_bytes);
    let io = match (fixture.kind_of_job(), fixture.cache.is_direct()) {
        (Kind::Read, _) => ThreadIo { rchar: issued, read_bytes: delivered, ..ThreadIo::default() },
        (_, true) => ThreadIo { wchar: issued, write_bytes: delivered, ..ThreadIo::default() },
        _ => ThreadIo { wchar: issued, write_bytes: issued, ..ThreadIo::default() },
    };
    let mut process = ThreadIo::default();
    for run in &mut record.runs {
        run.end.as_mut().unwrap().workers[0].io = Ok(io);
        for snapshot in &mut run.evidence {
            if snapshot.moment == Moment::Stop {
                process = process.plus(io);
            }
            snapshot.files.insert("/proc/self/io".into(), Ok(text(process)));
        }
    }
    record
}

fn text(io: ThreadIo) -> String {
    format!(
        "rchar: {}\nwchar: {}\nsyscr: 0\nsyscw: 0\nread_bytes: {}\nwrite_bytes: {}\ncancelled_write_bytes: 0\n",
        io.rchar, io.wchar, io.read_bytes, io.write_bytes
    )
}

/// Adds the stream of another session to the first one's phase.
fn merge(mut record: Record, other: Record) -> Record {
    let mut target = other.header.plan.targets[0].clone();
    target.path = "/other".into();
    record.header.plan.targets.push(target);
    record.header.hosts[0].places.push(other.header.hosts[0].places[0].clone());
    let streams = &mut record.header.plan.jobs[0].phases[0].streams;
    streams.push(Stream { targets: vec![1], ..other.header.plan.jobs[0].phases[0].streams[0].clone() });
    for (stream, name) in streams.iter_mut().zip(["first", "second"]) {
        stream.name = name.into();
    }
    for ceiling in other.header.self_test.ceilings {
        record.header.self_test.ceilings.push(Ceiling { stream: 1, ..ceiling });
    }
    for (run, theirs) in record.runs.iter_mut().zip(other.runs) {
        let (end, their_end) = (run.end.as_mut().unwrap(), theirs.end.unwrap());
        end.streams.extend(their_end.streams.into_iter().map(|s| StreamEnd { stream: 1, ..s }));
        end.workers.extend(their_end.workers.into_iter().map(|w| WorkerEnd { stream: 1, ..w }));
        end.sync_ns = end.sync_ns.max(their_end.sync_ns);
        run.start.target_bytes.push(1 << 30);
        run.intervals.extend(theirs.intervals.into_iter().map(|i| Interval { stream: 1, ..i }));
        if run.evidence.len() < theirs.evidence.len() {
            // A stream that only reads has no final sync.
            let mut synced = run.evidence[1].clone();
            (synced.moment, synced.at_ns) = (Moment::Synced, theirs.evidence[2].at_ns);
            run.evidence.push(synced);
        }
        let last = theirs.evidence.len() - 1;
        for (at, snapshot) in run.evidence.iter_mut().enumerate() {
            add(snapshot, &theirs.evidence[at.min(last)]);
        }
    }
    for (snapshot, theirs) in record.evidence.iter_mut().zip(&other.evidence) {
        add(snapshot, theirs);
    }
    record
}

/// Adds the targets and counters of another snapshot of the same moment.
fn add(snapshot: &mut Snapshot, other: &Snapshot) {
    snapshot.targets.extend(other.targets.iter().cloned());
    for (name, theirs) in &other.files {
        let counts = name.ends_with("/stat") && name.starts_with("/sys/block") || name == "/proc/self/io";
        match (snapshot.files.get_mut(name), theirs) {
            (Some(Ok(ours)), Ok(theirs)) if counts => {
                *ours = ours.split('\n').zip(theirs.split('\n')).map(|(a, b)| add_words(a, b)).collect();
            }
            (Some(Ok(ours)), Ok(theirs)) if name.starts_with(CGROUP) => *ours = add_charges(ours, theirs),
            (Some(_), _) => {}
            (None, theirs) => drop(snapshot.files.insert(name.clone(), theirs.clone())),
        }
    }
}

/// Adds the numbers of two lines, word by word. Other words are those of `ours`.
fn add_words(ours: &str, theirs: &str) -> String {
    let pairs = ours.split_ascii_whitespace().zip(theirs.split_ascii_whitespace());
    let sum = |(a, b): (&str, &str)| match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => (a + b).to_string(),
        _ => a.to_owned(),
    };
    pairs.map(sum).collect::<Vec<_>>().join(" ") + "\n"
}

/// Adds the charges of two cgroup files for each disk and direction: `254:0 Read 4096`.
fn add_charges(ours: &str, theirs: &str) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in ours.lines().chain(theirs.lines()) {
        let (key, number) = line.rsplit_once(' ').unwrap();
        *sums.entry(key.to_owned()).or_default() += number.parse::<u64>().unwrap();
    }
    sums.iter().map(|(key, sum)| format!("{key} {sum}")).collect::<Vec<_>>().join("\n") + "\n"
}
