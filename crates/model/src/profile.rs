//! Profiles: named lists of tests that reproduce well-known tools, and the layout that such a tool gives its
//! results.
//!
//! Sources: CrystalDiskMark 9 (`CrystalDiskMark.cpp`, presets Default, NVMe SSD, Peak, Real World, Demo) and the
//! article "IO Performance Benchmarking 101" (the six common usage patterns). ATTO Disk Benchmark 4 (0.5 KB to 64
//! MB, queue depth 4, 256 MB). IO500 (`src/phase_ior_easy.c`, `src/phase_ior_hard.c`: the options that it calls IOR
//! with). AS SSD Benchmark 2: <https://ssd-tester.com/text_score.php> (tests, sizes, score) and reviews that name
//! its block sizes.

use crate::job::Pattern::{self, Random, Sequential};
use crate::job::{Cache, Layout, Mix, Options, PerKind, Sizes, StopRule};
use crate::spec::{EngineSpec, JobSpec, Rw, StreamSpec};
use crate::units::{GIB, MIB, show_block};
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// One test of a profile. It is measured once for each direction of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Order of offsets.
    pub pattern: Pattern,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Operations in flight per worker.
    pub depth: u32,
    /// Number of worker threads.
    pub workers: u32,
    /// The tool's name of the test. Empty if this is the usual name, such as `RND4K Q32T1`, or the percentage of
    /// `rewrites`.
    pub called: &'static str,
    /// The only direction of the test, as a read share in percent; `None` for all directions of the profile.
    pub only: Option<u8>,
    /// Number of bytes from the beginning of the target that the test uses unless `--size` is given; `None` for the
    /// whole target.
    pub span_bytes: Option<u64>,
    /// Whether a block size that is too small for direct I/O is raised. Otherwise a test with such a block size is omitted.
    pub raises_block_size: bool,
    /// Whether the tool shows the mean latency instead of the rate.
    pub latency: bool,
    /// The files of the test's workers.
    pub files: Files,
    /// Cache mode; `None` for the default of the engine.
    pub cache: Option<Cache>,
    /// For a test that writes the whole span once and then reads it once: the compressibility of the data in percent. The test writes
    /// first, so that the content of the reads is known. `None` for other tests.
    pub rewrites: Option<u8>,
}

/// The files of the workers of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// One file for all workers of a host.
    Host,
    /// One file for each task of all hosts, like IOR. A task is a worker, and `--workers` is the number of tasks per
    /// host. Each host reads files that another host wrote.
    Own,
    /// One file for all tasks of all hosts, with this layout. Each host reads parts that another host wrote.
    Shared(Layout),
}

/// A named list of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile, as typed after `--profile`.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// The tests, in the order of the table.
    pub tests: &'static [Test],
    /// Shares of reads in percent, in the order of the table: 100 for reads, 0 for writes, 70 for the usual mix.
    pub read_percents: &'static [u8],
    /// Index of the test whose first direction is the headline.
    pub headline: usize,
    /// How the tool shows its results; `None` if fathom's table has the same content.
    pub style: Option<ToolStyle>,
}

/// How a tool shows its results, as part of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolStyle {
    /// The imitated product, such as `ATTO Disk Benchmark`.
    pub tool: &'static str,
    /// Whether the layout has bars or a score.
    pub kind: LayoutKind,
    /// Differences from the tool, in sentences.
    pub differs: &'static [&'static str],
}

const fn test(pattern: Pattern, block_kib: u32, depth: u32, workers: u32) -> Test {
    Test {
        pattern,
        block_bytes: block_kib * 1024,
        depth,
        workers,
        called: "",
        only: None,
        span_bytes: None,
        raises_block_size: false,
        latency: false,
        files: Files::Host,
        cache: None,
        rewrites: None,
    }
}

/// Creates a test like those of IOR: each task makes sequential transfers, one at a time.
const fn ior(called: &'static str, files: Files) -> Test {
    Test { called, files, ..test(Sequential, 2048, 1, 1) }
}

/// Bytes per transfer of IO500's ior-hard, which is deliberately not aligned.
const IOR_HARD_BYTES: u32 = 47_008;

/// The tests of ATTO: transfers of 512 bytes in the first test, and in each later test twice as many bytes as in the
/// previous one.
const ATTO: [Test; 18] = {
    let mut tests = [Test { span_bytes: Some(256 * MIB), ..test(Sequential, 0, 4, 1) }; 18];
    let mut at = 0;
    while at < tests.len() {
        tests[at].block_bytes = 512 << at;
        at += 1;
    }
    tests
};

/// Limits a test to the first GiB, as in AS SSD.
const fn asssd(called: &'static str, test: Test) -> Test {
    Test { called, span_bytes: Some(GIB), ..test }
}

/// The tests of AS SSD's compression benchmark: compressibility from 0 to 100 % in steps of 10 %.
const REWRITES: [Test; 11] = {
    let mut tests = [asssd("", test(Sequential, 16 << 10, 1, 1)); 11];
    let mut at = 0;
    while at < tests.len() {
        tests[at].rewrites = Some(10 * at as u8);
        at += 1;
    }
    tests
};

/// Read shares of the profile with `rewrites`: one table row for each test, which writes first and then
/// reads. The 50 marks both directions and is not a mix.
const BOTH: &[u8] = &[50];
/// Note about the part of AS SSD that fathom omits.
const NO_COPIES: &str = "AS SSD's copy benchmark (ISO, program, game) is left out: it measures how Windows copies files through its cache.";
const CDM: &[Test] = &[
    test(Sequential, 1024, 8, 1),
    test(Sequential, 1024, 1, 1),
    test(Random, 4, 32, 1),
    test(Random, 4, 1, 1),
];

/// A profile without tests, measured with reads and with writes, and shown in fathom's own table.
const PLAIN: Profile =
    Profile { name: "", about: "", tests: &[], read_percents: &[100, 0], headline: 0, style: None };

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "cdm",
        about: "CrystalDiskMark's default: 1 MiB sequential at depth 8 and 1, 4 KiB random at depth 32 and 1",
        tests: CDM,
        ..PLAIN
    },
    Profile {
        name: "nvme",
        about: "CrystalDiskMark's NVMe preset: sequential 1 MiB at depth 8 and 128 KiB at depth 32, 4 KiB random at depth 32 with 16 workers and at depth 1",
        tests: &[
            test(Sequential, 1024, 8, 1),
            test(Sequential, 128, 32, 1),
            test(Random, 4, 32, 16),
            test(Random, 4, 1, 1),
        ],
        ..PLAIN
    },
    Profile {
        name: "peak",
        about: "CrystalDiskMark's Peak Performance: sequential at depth 8, random at depth 32",
        tests: &[test(Sequential, 1024, 8, 1), test(Random, 4, 32, 1)],
        ..PLAIN
    },
    Profile {
        name: "real",
        about: "CrystalDiskMark's Real World Performance: sequential and random, each at depth 1",
        tests: &[test(Sequential, 1024, 1, 1), test(Random, 4, 1, 1)],
        ..PLAIN
    },
    Profile {
        name: "demo",
        about: "CrystalDiskMark's Demo: 1 MiB sequential at depth 8 alone",
        tests: &[test(Sequential, 1024, 8, 1)],
        ..PLAIN
    },
    Profile {
        name: "mix",
        about: "cdm plus a mix of 70 % reads and 30 % writes",
        tests: CDM,
        read_percents: &[100, 0, 70],
        ..PLAIN
    },
    Profile {
        name: "six",
        about: "the six patterns of \"IO Performance Benchmarking 101\": 512 KiB sequential, 4 KiB random at depth 1 and 32",
        tests: &[test(Sequential, 512, 1, 1), test(Random, 4, 1, 1), test(Random, 4, 32, 1)],
        ..PLAIN
    },
    Profile {
        name: "atto",
        about: "ATTO Disk Benchmark: sequential at depth 4 in 256 MiB, sizes doubling from 512 bytes to 64 MiB; with its bars",
        tests: &ATTO,
        // 1 MiB, the block size that other tools quote. The best of all rows would be partly luck.
        headline: 11,
        style: Some(ToolStyle {
            tool: "ATTO Disk Benchmark",
            kind: LayoutKind::Bars,
            differs: &[
                "ATTO writes data that compress to almost nothing; fathom writes incompressible data. Storage that compresses data may be slower here than with ATTO.",
            ],
        }),
        ..PLAIN
    },
    Profile {
        name: "asssd",
        about: "AS SSD Benchmark: 16 MiB sequential, 4 KiB at depth 1 and with 64 threads, access time; with its score",
        tests: &[
            asssd("Seq", test(Sequential, 16 << 10, 1, 1)),
            asssd("4K", test(Random, 4, 1, 1)),
            asssd("4K-64Thrd", test(Random, 4, 1, 64)),
            Test {
                span_bytes: None,
                only: Some(100),
                latency: true,
                ..asssd("Acc.time", test(Random, 4, 1, 1))
            },
            Test {
                block_bytes: 512,
                only: Some(0),
                latency: true,
                raises_block_size: true,
                ..asssd("Acc.time", test(Random, 0, 1, 1))
            },
        ],
        style: Some(ToolStyle {
            tool: "AS SSD Benchmark",
            kind: LayoutKind::Score,
            differs: &[NO_COPIES, "The 64 threads share one file; those of AS SSD have 64 files of 16 MB."],
        }),
        ..PLAIN
    },
    Profile {
        name: "ior-easy",
        about: "IO500's ior-easy: a file for each worker of each host, sequential transfers of 2 MiB; each host reads what another one wrote",
        tests: &[ior("ior-easy", Files::Own)],
        ..PLAIN
    },
    Profile {
        name: "ior-hard",
        about: "IO500's ior-hard: one file for the workers of all hosts, interleaved transfers of 47,008 bytes through the page cache",
        tests: &[Test {
            block_bytes: IOR_HARD_BYTES,
            cache: Some(Cache::Buffered),
            ..ior("ior-hard", Files::Shared(Layout::Strided))
        }],
        ..PLAIN
    },
    Profile {
        name: "asssd-compression",
        about: "AS SSD's compression benchmark: a file written and read back with data that are 0 to 100 % compressible",
        tests: &REWRITES,
        read_percents: BOTH,
        style: Some(ToolStyle {
            tool: "AS SSD Compression-Benchmark",
            kind: LayoutKind::Bars,
            differs: &[
                "Each point writes a file once from end to end and then reads it once; the next point overwrites the file.",
            ],
        }),
        ..PLAIN
    },
];

impl Test {
    /// Returns the directions in which the test is measured: its only one, or all directions of the profile.
    pub fn directions(&self, of_profile: &'static [u8]) -> impl Iterator<Item = u8> {
        let only = self.only;
        of_profile.iter().copied().filter(move |p| only.is_none_or(|o| o == *p))
    }

    /// Returns the name of the test in one direction, such as `RND4K Q32T1 read`. A test with `rewrites` has a single
    /// name, such as `compress 30`.
    pub fn name_of(&self, read_percent: u8) -> String {
        if let Some(percent) = self.rewrites {
            return format!("compress {percent}");
        }
        let mix = Mix::from_percents(read_percent, 0);
        format!("{} {}", self.name(), mix.describe())
    }

    /// Returns the name of the row in the tool's layout: the tool's own name of the test, such as `4K-64Thrd`; without
    /// one, the block size.
    pub fn row_name(&self) -> String {
        self.name_in_tool().unwrap_or_else(|| show_block(self.block_bytes.into()))
    }

    /// Returns the tool's own name of the test: `4K-64Thrd`; `30 %` for a test of the compression benchmark. `None` if the tool uses the
    /// usual name.
    fn name_in_tool(&self) -> Option<String> {
        match (self.rewrites, self.called) {
            (Some(percent), _) => Some(format!("{percent} %")),
            (None, "") => None,
            (None, called) => Some(called.into()),
        }
    }

    /// Writes the test into the spec of a job. `span` is the size of the tested region in bytes.
    pub fn spec(&self, read_percent: u8, span: u64, job: &mut JobSpec) {
        job.name = Some(self.name_of(read_percent));
        let Some(compress) = self.rewrites else {
            return job.streams_mut().for_each(|s| self.fill_stream(read_percent, s));
        };
        let once =
            StopRule { operations: Some((span / u64::from(self.block_bytes)).max(1)), ..StopRule::default() };
        let mut phases = Vec::new();
        for (name, read_percent) in [("write", 0), ("read", 100)] {
            for phase in &job.phases {
                let mut phase = phase.clone();
                for stream in &mut phase.streams {
                    self.fill_stream(read_percent, stream);
                    stream.name = Some(name.into());
                    stream.compress = (read_percent == 0).then_some(compress);
                    stream.resolved.limit = once;
                }
                phases.push(phase);
            }
        }
        job.phases = phases;
    }

    fn fill_stream(&self, read_percent: u8, stream: &mut StreamSpec) {
        let sizes = Sizes::Fixed(self.block_bytes);
        stream.rw = Some(if self.pattern == Random { Rw::Randrw } else { Rw::Rw });
        stream.mix = Some(Mix::from_percents(read_percent, 0));
        stream.bs = Some(PerKind::all(sizes));
        stream.depth = Some(self.depth);
        // The user's value has precedence. Only profiles of IOR accept `--workers` (`takes_workers`).
        // `workers` always has a value, so `give` records that it was set.
        if !stream.has("workers") {
            stream.give("workers").workers = self.workers;
        }
        stream.cache = stream.cache.or(self.cache);
        if self.files == Files::Host {
            return;
        }
        match self.files {
            Files::Shared(layout) => stream.shared = Some(layout),
            _ => stream.own = true,
        }
        // IOR calls pread and pwrite, with one operation in flight.
        stream.engine.get_or_insert_with(|| EngineSpec { name: "sync".into(), options: Options::new() });
        stream.resolved.shift_hosts = u32::from(read_percent == 100);
    }

    /// Returns the tool's name of the test; without one, the usual name: `RND4K Q32T1`.
    pub fn name(&self) -> String {
        if let Some(name) = self.name_in_tool() {
            return name;
        }
        let order = match self.pattern {
            Sequential => "SEQ",
            Random => "RND",
        };
        format!("{order}{} Q{}T{}", show_block(u64::from(self.block_bytes)), self.depth, self.workers)
    }
}

impl Profile {
    /// Returns whether `--workers` sets the number of workers per host.
    pub fn takes_workers(&self) -> bool {
        self.tests.iter().any(|t| t.files != Files::Host)
    }

    /// Returns each direction of each test, in the order of the table: the read share in percent,
    /// and the test.
    pub fn rows(&'static self) -> impl Iterator<Item = (u8, &'static Test)> {
        let has = |p: u8, t: &Test| t.directions(self.read_percents).any(|own| own == p);
        let all = self.read_percents.iter().flat_map(|p| self.tests.iter().map(move |t| (*p, t)));
        all.filter(move |(p, t)| has(*p, t))
    }
}

/// The layout of a tool's results: part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLayout {
    /// The imitated tool, such as `AS SSD Benchmark`.
    pub tool: String,
    /// Whether the layout has bars or a score.
    #[serde(rename = "look")]
    pub kind: LayoutKind,
    /// Rows, in the order of the tool.
    pub rows: Vec<LayoutRow>,
    /// Differences from the tool, in sentences.
    pub differs: Vec<String>,
}

/// Whether a tool shows bars or a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutKind {
    /// Bars, one per number.
    Bars,
    /// Numbers, and a score computed from them.
    Score,
}

/// One row of a tool's layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutRow {
    /// The tool's name of the row: `4K-64Thrd`.
    pub name: String,
    /// Whether the tool shows the mean latency instead of the rate.
    pub latency: bool,
    /// Job and phase that give the read figure; `None` if the row has none.
    pub read: Option<CellSource>,
    /// Job and phase that give the write figure; `None` if the row has none.
    pub write: Option<CellSource>,
}

/// The source of a figure: the first stream of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSource {
    /// Index of the job.
    pub job: usize,
    /// Index of the phase in the job.
    pub phase: usize,
}

/// Results in the layout of a well-known tool: part of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResults {
    /// The imitated tool, such as `AS SSD Benchmark`.
    pub tool: String,
    /// Rows, in the order of the tool.
    pub rows: Vec<ToolRow>,
    /// The score; `None` if the tool has none.
    pub score: Option<Score>,
    /// Differences from the tool, in sentences.
    pub differs: Vec<String>,
}

/// One row of results in a tool's layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRow {
    /// The tool's name of the row: `4K-64Thrd`.
    pub name: String,
    /// `MB/s` of 10^6 bytes, or `ms` for a mean latency.
    pub unit: String,
    /// The read figure; `None` if the row has none.
    pub read: Option<ToolCell>,
    /// The write figure; `None` if the row has none.
    pub write: Option<ToolCell>,
}

/// One number of a result in a tool's layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCell {
    /// Index of the result that the number is from.
    pub result: usize,
    /// For a rate, the median over the runs; for a latency, the mean. `None` if a finding invalidates the number, or nothing completed.
    pub value: Option<f64>,
    /// Smallest and largest value over the runs; `None` for a latency, or with fewer than two runs.
    pub range: Option<[f64; 2]>,
    /// The verdict of the findings about this result.
    pub verdict: Verdict,
}

/// The score of a tool, in the tool's points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// Weighted sum of the sequential, 4K and 4K-64Thrd reads.
    pub read: Points,
    /// Weighted sum of the sequential, 4K and 4K-64Thrd writes.
    pub write: Points,
    /// Weighted sum of the sequential, 4K and 4K-64Thrd reads and writes.
    pub total: Points,
}

/// Points with their range and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Points {
    /// The points; `None` if they are withheld.
    pub value: Option<f64>,
    /// The points from the slowest runs of all numbers, and the points from the fastest runs; `None` if a number
    /// has only one run.
    pub range: Option<[f64; 2]>,
    /// `VALID` if all numbers of the score are valid, `INVALID` if one is missing, otherwise `SUSPECT`.
    pub verdict: Verdict,
    /// Why the points are withheld; `None` if they are not.
    pub withheld: Option<String>,
}

#[test]
fn test_names_follow_the_usual_form() {
    assert_eq!(CDM[2].name(), "RND4K Q32T1");
    let six = PROFILES.iter().find(|p| p.name == "six");
    assert_eq!(six.map(|p| p.rows().count()), Some(6));
}

/// Findings refer to results by name.
#[test]
fn row_names_of_a_profile_are_unique() {
    for profile in PROFILES {
        let mut names: Vec<String> = profile.rows().map(|(p, t)| t.name_of(p)).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{}", profile.name);
        assert!(profile.headline < profile.tests.len(), "{}", profile.name);
    }
}

#[test]
fn atto_doubles_from_half_a_kilobyte_to_64_mib() {
    let atto = PROFILES.iter().find(|p| p.name == "atto");
    let sizes: Vec<u64> = atto.map_or(&[][..], |p| p.tests).iter().map(|t| t.block_bytes.into()).collect();
    assert_eq!((sizes.first(), sizes.last(), sizes.len()), (Some(&512), Some(&(64 * MIB)), 18));
    assert!(sizes.windows(2).all(|w| w[1] == 2 * w[0]));
}

#[test]
fn a_rewriting_test_writes_everything_and_then_reads_it() {
    let mut job = JobSpec::default();
    job.phases.push(crate::spec::PhaseSpec { streams: vec![StreamSpec::default()], ..Default::default() });
    REWRITES[3].spec(50, GIB, &mut job);
    let streams: Vec<&StreamSpec> = job.phases.iter().flat_map(|p| &p.streams).collect();
    assert_eq!(streams.len(), 2);
    assert!(streams.iter().all(|s| s.resolved.limit.operations == Some(64)));
    assert_eq!((streams[0].compress, streams[1].compress), (Some(30), None));
    assert_eq!(streams[1].mix, Some(Mix::from_percents(100, 0)));
}
