//! A DISKSPD profile: everything that a command line or an XML file of DISKSPD specifies, with its defaults filled
//! in.
//!
//! The crate `dialect` turns a profile into jobs; the output formats of DISKSPD repeat its
//! settings.
//!
//! Source of fields and defaults: DISKSPD 2.2, `Common/Common.h` (`Profile`, `TimeSpan`, `Target`) and
//! `XmlProfileParser/diskspd.xsd`.

use crate::spec::number::MAX_WORKERS;
use serde::{Deserialize, Serialize};

/// A sequence of time spans, and how results are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// The command line, as repeated in the text output.
    pub command: String,
    /// `-v`: whether the text output has more detail.
    pub verbose: bool,
    /// `-P`: operations of a thread after which progress is shown; 0 to show none.
    pub progress: u32,
    /// `-Rxml`: whether results are XML instead of text.
    pub xml: bool,
    /// `PrecreateFiles` in XML profiles: the rule by which files are created before the first time
    /// span; `None` without it.
    pub precreate: Option<String>,
    /// The time spans; at least one.
    pub spans: Vec<TimeSpan>,
}

/// A period with its targets and threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct TimeSpan {
    /// `-d`: length of the measured window in seconds.
    pub duration_s: u32,
    /// `-W`: warm-up in seconds.
    pub warmup_s: u32,
    /// `-C`: cool-down in seconds.
    pub cooldown_s: u32,
    /// `-z`: seed of the random numbers.
    pub seed: u32,
    /// `-F`: threads that each work on all targets; 0 if each target has its own threads.
    pub threads: u32,
    /// `-O`: operations in flight of each thread of `-F`, on all targets together; 0 if each target has its own `-o`.
    pub requests: u32,
    /// `-n`: whether threads are not bound to CPUs.
    pub disable_affinity: bool,
    /// `-a`: processor group and CPU of thread 0, 1, ... of the time span. The list repeats if there are more threads. Empty without
    /// `-a` or without CPUs after it.
    pub affinity: Vec<(u32, u32)>,
    /// `-L`: whether latencies are measured.
    pub latency: bool,
    /// `-D`: whether the deviation of IOPS is reported.
    pub iops: bool,
    /// `-D`: length in ms of the intervals for which IOPS are recorded.
    pub bucket_ms: u32,
    /// `-x`: whether completions are taken by completion routines instead of completion ports.
    pub completion_routines: bool,
    /// `-Zr`: whether each write has new random data.
    pub random_writes: bool,
    /// The targets; at least one.
    pub targets: Vec<Target>,
}

/// A file or device, with the threads and operations that use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Target {
    /// Path of the target. `*1` in an XML profile is the first target of the command line.
    pub path: String,
    /// `-b`: block size in bytes.
    pub block: u32,
    /// `-r` and `-s` with a number: the alignment of random offsets, or the stride of sequential ones; `None` for the
    /// block size.
    pub alignment: Option<u64>,
    /// `-r`, `-rs`: percent of random operations.
    pub random_percent: u32,
    /// `-rd`: how random operations are distributed over the target; `None`: uniformly.
    pub distribution: Option<Distribution>,
    /// `-si`: whether the threads of the target share one sequential position.
    pub interlocked: bool,
    /// `-p`: whether all operations in flight of a thread have the same offset.
    pub parallel: bool,
    /// `-T`: distance in bytes between the first offsets of the target's threads; 0 if not given.
    pub thread_stride: u64,
    /// `-B`: offset in bytes of the first byte that may be touched.
    pub base: u64,
    /// `-f`, or the end of `-B`: the first byte that must not be touched; 0 for the end of the target.
    pub end: u64,
    /// `-c`: size in bytes of the file to create; `None` to use the existing file.
    pub create: Option<u64>,
    /// `-fs`: whether the file is opened with a hint that access is sequential.
    pub sequential_hint: bool,
    /// `-fr`: whether the file is opened with a hint that access is random.
    pub random_hint: bool,
    /// `-ft`: whether the file is opened as a temporary file.
    pub temporary_hint: bool,
    /// `-l`: whether buffers are in large pages.
    pub large_pages: bool,
    /// `-S`: use of the page cache.
    pub cache: Cache,
    /// `-Sw`: whether writes go through to the medium.
    pub write_through: bool,
    /// `-Sm`: whether the file is accessed through a mapping.
    pub mapped: bool,
    /// `-N`: how writes to a mapping are flushed; `None` if they are not.
    pub flush: Option<Flush>,
    /// `-Z`: whether writes contain only zeros.
    pub zeros: bool,
    /// `-ZSIZE`: size in bytes of a random buffer from which writes take their data; 0 if not
    /// given.
    pub buffer: u64,
    /// `-ZSIZE,FILE`: file from which the buffer `-ZSIZE` is filled; `None` if it is filled at
    /// random.
    pub buffer_file: Option<String>,
    /// `-i`: number of operations in a burst; `None` without bursts.
    pub burst: Option<u32>,
    /// `-j`: pause between bursts, in ms; `None` if not given.
    pub think_ms: Option<u32>,
    /// `-g`: limit of each thread's throughput; `None` without a limit.
    pub throughput: Option<Throughput>,
    /// `-o`: operations in flight of each thread.
    pub requests: u32,
    /// `-w`: percent of operations that write.
    pub write_percent: u32,
    /// `-t`: number of threads of this target. Not used with `-F`.
    pub threads: u32,
    /// `-I`: I/O priority, from 1 (very low) to 3 (normal).
    pub priority: u32,
    /// `Weight` in XML profiles: the weight of the target. The operations of a thread are divided among its targets in proportion to
    /// their weights. Only with `-F` and `-O`.
    pub weight: u32,
    /// `ThreadTargets` in XML profiles: the only threads that use this target, each with its
    /// weight, or 0 for the weight of the target. Empty if all threads use the target. Only with `-F`
    /// and `-O`.
    pub thread_targets: Vec<(u32, u32)>,
}

/// Use of the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// `-Sb`: all caching.
    #[default]
    Cached,
    /// `-Sr`: only the cache of a file server.
    Remote,
    /// `-Su`: none.
    Off,
}

/// How writes to a mapping are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// `-Nv`: by flushing the view of the file.
    View,
    /// `-Nn`: by flushing non-volatile memory.
    NonVolatile,
    /// `-Ni`: by flushing non-volatile memory, without waiting until the data is stable.
    NonVolatileNoDrain,
}

impl Flush {
    /// All values with their names in DISKSPD's XML and in its text.
    pub const ALL: [(&'static str, &'static str, Self); 3] = [
        ("ViewOfFile", "FlushViewOfFile", Self::View),
        ("NonVolatileMemory", "FlushNonVolatileMemory", Self::NonVolatile),
        ("NonVolatileMemoryNoDrain", "FlushNonVolatileMemory with no drain", Self::NonVolatileNoDrain),
    ];

    /// Returns the name in XML.
    pub fn in_xml(self) -> &'static str {
        Self::ALL.iter().find(|(.., flush)| *flush == self).map_or("", |(xml, ..)| xml)
    }

    /// Returns the name in text.
    pub fn in_text(self) -> &'static str {
        Self::ALL.iter().find(|(.., flush)| *flush == self).map_or("", |(_, text, _)| text)
    }
}

/// The throughput limit of each thread on each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Throughput {
    /// Bytes per millisecond.
    BytesPerMs(u32),
    /// Operations of one block per second.
    Iops(u32),
}

/// The shares of the random operations that go to consecutive parts of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Whether lengths are percent of the target; bytes otherwise.
    pub percent: bool,
    /// The parts, including the remainder after the given ones.
    pub ranges: Vec<Range>,
}

/// A part of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Percent of the random operations that go to this part.
    pub io: u32,
    /// Length of the part in the unit that `Distribution::percent` sets; 0 for the rest of the
    /// target.
    pub length: u64,
}

impl Distribution {
    /// Makes a distribution from these parts. The rest of the target gets the rest of the operations.
    pub fn from_ranges(percent: bool, mut ranges: Vec<Range>) -> Self {
        let given: u64 = ranges.iter().map(|r| u64::from(r.io)).sum();
        let length = ranges.iter().fold(0_u64, |sum, r| sum.saturating_add(r.length));
        if given < 100 {
            let length = if percent { 100_u64.saturating_sub(length) } else { 0 };
            ranges.push(Range { io: 100 - given as u32, length });
        }
        Self { percent, ranges }
    }
}

impl Default for TimeSpan {
    fn default() -> Self {
        Self {
            duration_s: 10,
            warmup_s: 5,
            cooldown_s: 0,
            seed: 0,
            threads: 0,
            requests: 0,
            disable_affinity: false,
            affinity: Vec::new(),
            latency: false,
            iops: false,
            bucket_ms: 1000,
            completion_routines: false,
            random_writes: false,
            targets: Vec::new(),
        }
    }
}

/// Default of `-b`: the block size in bytes.
pub const BLOCK: u32 = 64 << 10;
/// Default of `-I`: normal I/O priority.
pub const PRIORITY: u32 = 3;

impl Default for Target {
    fn default() -> Self {
        Self {
            path: String::new(),
            block: BLOCK,
            alignment: None,
            random_percent: 0,
            distribution: None,
            interlocked: false,
            parallel: false,
            thread_stride: 0,
            base: 0,
            end: 0,
            create: None,
            sequential_hint: false,
            random_hint: false,
            temporary_hint: false,
            large_pages: false,
            cache: Cache::Cached,
            write_through: false,
            mapped: false,
            flush: None,
            zeros: false,
            buffer: 0,
            buffer_file: None,
            burst: None,
            think_ms: None,
            throughput: None,
            requests: 2,
            write_percent: 0,
            threads: 1,
            priority: PRIORITY,
            weight: 1,
            thread_targets: Vec::new(),
        }
    }
}

/// Threads that work on the same targets with the same weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Indices of the threads in the time span, ascending.
    pub threads: Vec<u32>,
    /// Index and weight of each target.
    pub targets: Vec<(usize, u32)>,
}

impl TimeSpan {
    /// Groups the threads by their targets. Without `-F` a group has the `-t` threads of one
    /// target. With `-F` a group has the threads with the same targets; groups are in the order of
    /// their first threads. Ignores threads beyond [`MAX_WORKERS`]: of each target, or with `-F` of
    /// the time span.
    pub fn pools(&self) -> Vec<Pool> {
        let mut pools: Vec<Pool> = Vec::new();
        if self.threads == 0 {
            let mut first = 0_u32;
            for (at, target) in self.targets.iter().enumerate() {
                let end = first.saturating_add(target.threads.min(MAX_WORKERS));
                pools.push(Pool { threads: (first..end).collect(), targets: vec![(at, 1)] });
                first = end;
            }
            return pools;
        }
        for thread in 0..self.threads.min(MAX_WORKERS) {
            let share = |(at, target): (usize, &Target)| Some((at, target.weight_for(thread)?));
            let targets: Vec<_> = self.targets.iter().enumerate().filter_map(share).collect();
            match pools.iter_mut().find(|pool| pool.targets == targets) {
                Some(pool) => pool.threads.push(thread),
                None => pools.push(Pool { threads: vec![thread], targets }),
            }
        }
        pools
    }

    /// Returns the number of threads of the time span, on all targets together.
    pub fn thread_count(&self) -> u64 {
        match self.threads {
            0 => self.targets.iter().map(|t| u64::from(t.threads)).sum(),
            threads => threads.into(),
        }
    }
}

impl Target {
    /// Returns the target's weight for this thread of `-F`; `None` if the thread does not use the target.
    fn weight_for(&self, thread: u32) -> Option<u32> {
        if self.thread_targets.is_empty() {
            return Some(self.weight);
        }
        let (_, weight) = self.thread_targets.iter().find(|(own, _)| *own == thread)?;
        Some(if *weight > 0 { *weight } else { self.weight })
    }

    /// Returns the alignment of random offsets, or the stride of sequential ones.
    pub fn step(&self) -> u64 {
        self.alignment.unwrap_or_else(|| self.block.into())
    }
}

#[test]
fn remaining_operations_go_to_the_remaining_target() {
    let lengths = |percent, ranges: &[(u32, u64)]| {
        let ranges = ranges.iter().map(|(io, length)| Range { io: *io, length: *length }).collect();
        let all = Distribution::from_ranges(percent, ranges).ranges;
        all.iter().map(|r| (r.io, r.length)).collect::<Vec<_>>()
    };
    assert_eq!(lengths(true, &[(10, 10), (10, 10), (0, 10)]), [(10, 10), (10, 10), (0, 10), (80, 70)]);
    assert_eq!(lengths(false, &[(10, 1 << 30)]), [(10, 1 << 30), (90, 0)]);
    assert_eq!(lengths(true, &[(100, 40)]), [(100, 40)]);
}

#[test]
fn threads_with_the_same_targets_are_one_pool() {
    let target = |weight, threads: &[(u32, u32)]| Target {
        weight,
        thread_targets: threads.to_vec(),
        threads: 2,
        ..Target::default()
    };
    let all = vec![target(3, &[]), target(1, &[(0, 0), (2, 0)]), target(1, &[(1, 9)])];
    let pooled = TimeSpan { threads: 3, requests: 4, targets: all.clone(), ..TimeSpan::default() };
    let pools_of =
        |span: &TimeSpan| -> Vec<_> { span.pools().into_iter().map(|p| (p.threads, p.targets)).collect() };
    assert_eq!(pools_of(&pooled), [(vec![0, 2], vec![(0, 3), (1, 1)]), (vec![1], vec![(0, 3), (2, 9)])]);
    let own = TimeSpan { targets: all[..2].to_vec(), ..TimeSpan::default() };
    assert_eq!(pools_of(&own), [(vec![0, 1], vec![(0, 1)]), (vec![2, 3], vec![(1, 1)])]);
}
