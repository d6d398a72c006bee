//! Compares DISKSPD's formats with the text and the XML that its own tests publish (`UnitTests/ResultParser`, `UnitTests/XmlResultParser`,
//! MIT licence), byte for byte if both have the same figures, and checks the paths that readers use.

use super::xml::Lines;
use super::{DirectionFilter, Figures, Lane, Span, Topology, profile, text, xml};
use model::diskspd::{Cache, Distribution, Flush, Profile, Range, Target, Throughput, TimeSpan};
use model::figures::{Observed, ObservedCpu, ObservedLane, ObservedLaneKind, ObservedTarget};
use model::histogram::{Distribution as Latencies, Histogram};
use model::job::Kind;
use model::record::Bucket;
use model::report::Report;
use model::spec::TypedResult;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

fn of_one(target: Target) -> Profile {
    let span = TimeSpan { targets: vec![target], ..TimeSpan::default() };
    Profile { spans: vec![span], ..Profile::default() }
}

#[test]
fn a_profile_in_text_equals_that_of_diskspd() {
    let expected = "\nCommand Line: \n\nInput parameters:\n\n\ttimespan:   1\n\t-------------\n\tduration: 10s\n\twarm up time: 5s\n\tcool down time: 0s\n\trandom seed: 0\n\tpath: ''\n\t\tthink time: 0ms\n\t\tburst size: 0\n\t\tusing software cache\n\t\tusing hardware write cache, writethrough off\n\t\tperforming read test\n\t\tblock size: 64KiB\n\t\tusing sequential I/O (stride: 64KiB)\n\t\tnumber of outstanding I/O operations per thread: 2\n\t\tthreads per file: 1\n\t\tusing I/O Completion Ports\n\t\tIO priority: normal\n\n";
    assert_eq!(profile(&of_one(Target::default())), expected);
}

/// A change of a target and the lines that express it.
type Changed = (fn(&mut Target), &'static str);

const LINES: &[Changed] = &[
    (
        |t| t.thread_stride = 100 << 10,
        "number of outstanding I/O operations per thread: 2|thread stride size: 100KiB|IO priority: normal",
    ),
    (|t| t.end = 2000 << 10, "per thread: 2|max file size: 1.95MiB|IO priority"),
    (|t| t.base = 2 << 20, "per thread: 2|base file offset: 2MiB|IO priority"),
    (
        |t| t.throughput = Some(Throughput::BytesPerMs(1000)),
        "IO priority: normal|throughput rate-limited to 1000 B/ms|",
    ),
    (
        |t| t.throughput = Some(Throughput::Iops(1000)),
        "IO priority: normal|throughput rate-limited to 1000 IOPS|",
    ),
    (
        |t| t.write_percent = 30,
        "writethrough off|performing mix test (read/write ratio: 70/30)|block size: 64KiB",
    ),
    (|t| t.write_percent = 100, "writethrough off|performing write test|block size: 64KiB"),
    (
        |t| t.buffer = 12_341_234,
        "writethrough off|write buffer size: 11.77MiB|write buffer source: random fill|performing read test",
    ),
    (
        |t| (t.buffer, t.buffer_file) = (12_341_234, Some("x:\\foo\\bar.dat".into())),
        "write buffer size: 11.77MiB|write buffer source: 'x:\\foo\\bar.dat'|performing read test",
    ),
    (
        |t| t.random_percent = 100,
        "block size: 64KiB|using random I/O (alignment: 64KiB)|number of outstanding",
    ),
    (
        |t| t.random_percent = 60,
        "block size: 64KiB|using mixed random/sequential I/O (60% random) (alignment/stride: 64KiB)|number of outstanding",
    ),
    (|t| t.interlocked = true, "using interlocked sequential I/O (stride: 64KiB)|"),
    (
        |t| t.cache = Cache::Off,
        "burst size: 0|software cache disabled|using hardware write cache, writethrough off",
    ),
    (
        |t| (t.cache, t.write_through) = (Cache::Off, true),
        "software cache disabled|hardware write cache disabled, writethrough on|performing",
    ),
    (
        |t| t.cache = Cache::Remote,
        "local software cache disabled, remote cache enabled|using hardware write cache",
    ),
    (
        |t| t.write_through = true,
        "using software cache|hardware and software write caches disabled, writethrough on|performing",
    ),
    (
        |t| (t.mapped, t.flush) = (true, Some(Flush::View)),
        "memory mapped I/O enabled, flush mode: FlushViewOfFile|performing",
    ),
    (|t| t.zeros = true, "zeroing write buffers|performing"),
    (|t| t.parallel = true, "using parallel async I/O|performing"),
    (|t| t.random_hint = true, "using FILE_FLAG_RANDOM_ACCESS hint|IO priority"),
    (|t| t.sequential_hint = true, "using FILE_FLAG_SEQUENTIAL_SCAN hint|IO priority"),
    (|t| t.priority = 1, "IO priority: very low|"),
    (|t| (t.think_ms, t.burst) = (Some(5), Some(7)), "think time: 5ms|burst size: 7|using software cache"),
];

#[test]
fn each_setting_has_its_line_in_its_place() {
    for (change, lines) in LINES {
        let mut target = Target::default();
        change(&mut target);
        let text = text::target_text(&target, false, true, false);
        let lines = lines.replace('|', "\n\t\t");
        assert!(text.contains(lines.trim_end_matches('\t')), "{lines}: {text}");
    }
}

#[test]
fn parts_of_a_target_have_begin_and_end() {
    let ranges =
        |all: &[(u32, u64)]| all.iter().map(|(io, length)| Range { io: *io, length: *length }).collect();
    let percent = Target {
        distribution: Some(Distribution::from_ranges(true, ranges(&[(10, 10), (10, 10), (0, 10)]))),
        random_percent: 100,
        ..Target::default()
    };
    let lines = text::target_text(&percent, false, true, false);
    let expected = "\t\tIO Distribution:\n\t\t    10% of IO => [ 0% -  10%) of target\n\t\t    10% of IO => [10% -  20%) of target\n\t\t     0% of IO => [20% -  30%) of target\n\t\t    80% of IO => [30% - 100%) of target\n";
    assert!(lines.ends_with(expected), "{lines}");
    let parts = Distribution::from_ranges(false, ranges(&[(10, 1 << 30), (0, 100 << 30)]));
    let absolute = Target { distribution: Some(parts), ..percent };
    let lines = text::target_text(&absolute, false, true, false);
    let expected = "\t\t    10% of IO => [     0    -      1GiB)\n\t\t     0% of IO => [     1GiB -    101GiB)\n\t\t    90% of IO => [   101GiB -       end)\n";
    assert!(lines.ends_with(expected), "{lines}");
}

/// The target in DISKSPD's test of its XML.
fn of_test() -> Target {
    Target {
        path: "testfile1.dat".into(),
        cache: Cache::Off,
        write_through: true,
        throughput: Some(Throughput::Iops(1000)),
        ..Target::default()
    }
}

#[test]
fn a_profile_in_xml_equals_that_of_diskspd() {
    let mut lines = Lines::new(0);
    xml::profile_target(&of_test(), &mut lines);
    let expected = "<Target>\n  <Path>testfile1.dat</Path>\n  <BlockSize>65536</BlockSize>\n  <BaseFileOffset>0</BaseFileOffset>\n  <SequentialScan>false</SequentialScan>\n  <RandomAccess>false</RandomAccess>\n  <TemporaryFile>false</TemporaryFile>\n  <UseLargePages>false</UseLargePages>\n  <DisableOSCache>true</DisableOSCache>\n  <WriteThrough>true</WriteThrough>\n  <WriteBufferContent>\n    <Pattern>sequential</Pattern>\n  </WriteBufferContent>\n  <ParallelAsyncIO>false</ParallelAsyncIO>\n  <StrideSize>65536</StrideSize>\n  <InterlockedSequential>false</InterlockedSequential>\n  <ThreadStride>0</ThreadStride>\n  <MaxFileSize>0</MaxFileSize>\n  <RequestCount>2</RequestCount>\n  <WriteRatio>0</WriteRatio>\n  <Throughput unit=\"IOPS\">1000</Throughput>\n  <ThreadsPerFile>1</ThreadsPerFile>\n  <IOPriority>3</IOPriority>\n  <Weight>1</Weight>\n</Target>\n";
    assert_eq!(lines.text, expected);
    let whole = profile(&Profile { xml: true, ..of_one(Target::default()) });
    let begin = "<Profile>\n  <Progress>0</Progress>\n  <ResultFormat>xml</ResultFormat>\n  <Verbose>false</Verbose>\n  <TimeSpans>\n    <TimeSpan>\n      <CompletionRoutines>false</CompletionRoutines>\n      <MeasureLatency>false</MeasureLatency>\n      <CalculateIopsStdDev>false</CalculateIopsStdDev>\n      <DisableAffinity>false</DisableAffinity>\n      <Duration>10</Duration>\n      <Warmup>5</Warmup>\n      <Cooldown>0</Cooldown>\n      <ThreadCount>0</ThreadCount>\n      <RequestCount>0</RequestCount>\n      <IoBucketDuration>1000</IoBucketDuration>\n      <RandSeed>0</RandSeed>\n      <Targets>\n        <Target>\n          <Path></Path>\n          <BlockSize>65536</BlockSize>\n";
    assert!(whole.starts_with(begin), "{whole}");
    assert!(
        whole.ends_with("        </Target>\n      </Targets>\n    </TimeSpan>\n  </TimeSpans>\n</Profile>\n")
    );
}

fn bucket(count: u64, [min_ns, max_ns]: [u64; 2], sum_ns: u64, sum_of_squares: f64) -> Bucket {
    Bucket { count, min_ns, max_ns, sum_ns, sum_of_squares }
}

/// Returns `count` completed operations of `ns` each.
fn kind(bytes: u64, count: u64, ns: u64, time_series: Vec<Bucket>) -> ObservedLaneKind {
    let mut latency = Histogram::new();
    for _ in 0..count {
        latency.record(ns);
    }
    ObservedLaneKind { bytes, latency: Latencies::from(&latency), time_series }
}

/// The time span in DISKSPD's test of its text: 4 MiB read and 2 MiB written in 120 s, one read in each of ten seconds.
fn of_test_span(latency: bool) -> Span {
    let second = |count| vec![bucket(count, [100, 100], 100 * count, 10_000.0); 10];
    let lane = Lane {
        thread: 0,
        path: "testfile1.dat".into(),
        bytes: 10 << 20,
        read: kind(4 << 20, 6, 2_000_000, second(1)),
        write: kind(2 << 20, 10, 4_000_000, second(0)),
    };
    let requested = TimeSpan { iops: !latency, latency, targets: vec![of_test()], ..TimeSpan::default() };
    let cpus = vec![ObservedCpu { cpu: 0, user: 30, kernel: 25, idle: 45 }];
    Span { requested, seconds: 120.0, lanes: vec![lane], cpus }
}

fn text_of(span: &Span) -> String {
    let mut out = Vec::new();
    text::write_span(span, &Topology::default(), &mut out).unwrap_or_else(|e| panic!("{e}"));
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn results_in_text_equal_those_of_diskspd() {
    let border = "-".repeat(91);
    let head = format!(
        "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s | IopsStdDev |  file\n{border}\n"
    );
    let expected = format!(
        "\nactual test time:\t120.00s\nthread count:\t\t1\n\nCPU |  Usage |  User  | Kernel |  Idle\n----------------------------------------\n   0|  55.00%|  30.00%|  25.00%|  45.00%\n----------------------------------------\navg.|  55.00%|  30.00%|  25.00%|  45.00%\n\nTotal IO\n{head}     0 |         6291456 |           16 |       0.05 |       0.13 |       0.00 | testfile1.dat (10MiB)\n{border}\ntotal:           6291456 |           16 |       0.05 |       0.13 |       0.00\n\nRead IO\n{head}     0 |         4194304 |            6 |       0.03 |       0.05 |       0.00 | testfile1.dat (10MiB)\n{border}\ntotal:           4194304 |            6 |       0.03 |       0.05 |       0.00\n\nWrite IO\n{head}     0 |         2097152 |           10 |       0.02 |       0.08 |       0.00 | testfile1.dat (10MiB)\n{border}\ntotal:           2097152 |           10 |       0.02 |       0.08 |       0.00\n"
    );
    assert_eq!(text_of(&of_test_span(false)), expected);
}

#[test]
fn latencies_have_columns_and_unsupported_percentiles_are_missing() {
    let mut span = of_test_span(true);
    let text = text_of(&span);
    assert!(text.contains("|  I/O per s |  AvgLat  | LatStdDev |  file\n"), "{text}");
    assert!(text.contains("       0.13 |    3.250 |     0.968 | testfile1.dat (10MiB)\n"), "{text}");
    assert!(text.contains("    min |      2.000 |      4.000 |      2.000\n   25th |        N/A |        N/A |      2.000\n   50th |        N/A |        N/A |        N/A\n"), "{text}");
    assert!(
        text.ends_with(
            "9-nines |        N/A |        N/A |        N/A\n    max |      2.000 |      4.000 |      4.000\n"
        ),
        "{text}"
    );
    // A million operations support the percentile with five nines, but none above it.
    span.lanes[0].read = kind(1 << 30, 1_000_000, 2_000_000, Vec::new());
    span.lanes[0].write = ObservedLaneKind::default();
    let text = text_of(&span);
    assert!(
        text.contains("5-nines |      2.000 |        N/A |      2.000\n6-nines |        N/A |"),
        "{text}"
    );
    assert!(text.contains("Write IO") && text.contains(" |       N/A | testfile1.dat"), "{text}");
    // Each of two targets has its own table.
    let other = Lane { path: "b".into(), thread: 1, ..span.lanes[0].clone() };
    span.lanes.push(other);
    let text = text_of(&span);
    let tables = [
        "\nLatency distribution: testfile1.dat\n",
        "\nLatency distribution: b\n",
        "\nTotal latency distribution:\n",
    ];
    assert!(tables.iter().all(|t| text.contains(t)), "{text}");
    span.seconds = 0.0;
    assert!(text_of(&span).starts_with("The test was interrupted before the measurements began."));
}

#[test]
fn deviations_of_the_rate_use_complete_buckets() {
    let buckets = [10, 20, 30, 7].map(|count| bucket(count, [1, 2], 3, 4.0)).to_vec();
    let lane = Lane { read: kind(0, 67, 1000, buckets), ..Lane::default() };
    // The last bucket is incomplete.
    let figures = Figures::from_lanes(DirectionFilter::Read, [&lane], 3);
    let deviation = figures.iops_deviation(500).unwrap_or(0.0);
    assert!((deviation - 2.0 * (200.0_f64 / 3.0).sqrt()).abs() < 1e-9, "{deviation}");
    assert_eq!(Figures::from_lanes(DirectionFilter::Write, [&lane], 3).iops_deviation(500), None);
}

#[test]
fn characters_that_are_invalid_in_xml_are_replaced() {
    assert_eq!(xml::escape("a<b>&\"c\"\n\u{1b}[0m\u{85}"), "a&lt;b&gt;&amp;&quot;c&quot; ?[0m?");
}

/// Returns a report of two threads on two files, with two time spans.
fn report() -> Report {
    let text = include_str!("../../../tests/golden/valid.json");
    let mut report = Report::from_json(text).unwrap_or_else(|e| panic!("{e}"));
    let time_series = vec![bucket(500, [1000, 9000], 1_500_000, 5e9); 2];
    let lane = |worker, target| ObservedLane {
        worker,
        target,
        kinds: BTreeMap::from([
            (Kind::Read, kind(4_096_000, 1000, 3_000_000, time_series.clone())),
            (Kind::Write, kind(409_600, 100, 5_000_000, Vec::new())),
        ]),
    };
    let targets = ["a.dat", "b.dat"];
    let target =
        |path: &str| Target { path: path.into(), random_percent: 100, block: 4096, ..Target::default() };
    let span = TimeSpan {
        threads: 2,
        latency: true,
        iops: true,
        duration_s: 2,
        targets: targets.map(target).to_vec(),
        ..TimeSpan::default()
    };
    let observed = Observed {
        targets: targets.map(|p| ObservedTarget { path: p.into(), is_made: false, bytes: 1 << 20 }).to_vec(),
        window_ns: 2_000_000_000,
        lanes: vec![lane(0, 0), lane(0, 1), lane(1, 0), lane(1, 1)],
        cpus: [0, 1].map(|cpu| ObservedCpu { cpu, user: 30, kernel: 25, idle: 45 }).to_vec(),
        typed: Some(TypedResult {
            profile: Some(Profile { xml: true, spans: vec![span], ..Profile::default() }),
            ..TypedResult::default()
        }),
        ..Observed::default()
    };
    report.results.truncate(1);
    report.results[0].observed = Some(observed);
    report
}

/// Returns the elements at a path.
fn found<'a, 'i>(root: Node<'a, 'i>, path: &str) -> Vec<Node<'a, 'i>> {
    path.split('/').skip(1).fold(vec![root], |parts, name| {
        parts.iter().flat_map(|part| part.children().filter(|child| child.has_tag_name(name))).collect()
    })
}

fn text<'a>(node: &Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default()
}

/// Paths that Process-DiskSpd.ps1 and VMFleet use, the number of elements, and the text of the first one.
const PATHS: &[(&str, usize, &str)] = &[
    ("Results/System/ComputerName", 1, ""),
    ("Results/TimeSpan/TestTimeSeconds", 1, "2.00"),
    ("Results/TimeSpan/ThreadCount", 1, "2"),
    ("Results/TimeSpan/ProcCount", 1, "2"),
    ("Results/TimeSpan/Thread/Target/ReadCount", 4, "1000"),
    ("Results/TimeSpan/Thread/Target/WriteCount", 4, "100"),
    ("Results/TimeSpan/Thread/Target/ReadBytes", 4, "4096000"),
    ("Results/TimeSpan/Thread/Target/WriteBytes", 4, "409600"),
    ("Results/TimeSpan/Thread/Target/BytesCount", 4, "4505600"),
    ("Results/TimeSpan/Thread/Target/IOCount", 4, "1100"),
    ("Results/TimeSpan/Thread/Target/Path", 4, "a.dat"),
    ("Results/TimeSpan/Iops/ReadIopsStdDev", 1, "0.000"),
    ("Results/TimeSpan/Latency/AverageReadMilliseconds", 1, "3.000"),
    ("Results/TimeSpan/Latency/AverageWriteMilliseconds", 1, "5.000"),
    ("Results/TimeSpan/Latency/AverageTotalMilliseconds", 1, "3.182"),
    ("Results/TimeSpan/Latency/ReadLatencyStdev", 1, "0.000"),
    ("Results/TimeSpan/Latency/Bucket/Percentile", 108, "0"),
    ("Results/TimeSpan/Latency/Bucket/TotalMilliseconds", 101, "3.000"),
    ("Results/TimeSpan/CpuUtilization/Average/UsagePercent", 1, "55.00"),
    ("Results/TimeSpan/CpuUtilization/Average/KernelPercent", 1, "25.00"),
    ("Results/TimeSpan/CpuUtilization/CPU/UsagePercent", 2, "55.00"),
    ("Results/TimeSpan/CpuUtilization/CPU/KernelPercent", 2, "25.00"),
    ("Results/Profile/TimeSpans/TimeSpan/DisableAffinity", 1, "false"),
    ("Results/Profile/TimeSpans/TimeSpan/Targets/Target/Random", 2, "4096"),
    ("Results/Profile/TimeSpans/TimeSpan/Targets/Target/WriteRatio", 2, "0"),
    ("Results/Profile/TimeSpans/TimeSpan/Targets/Target/RequestCount", 2, "2"),
    ("Results/Profile/TimeSpans/TimeSpan/Targets/Target/BlockSize", 2, "4096"),
    ("Results/Fathom/Verdict", 1, "VALID"),
];

#[test]
fn readers_of_the_xml_find_their_elements() {
    let mut out = Vec::new();
    xml::write_xml(&report(), &mut out).unwrap_or_else(|e| panic!("{e}"));
    let xml = String::from_utf8_lossy(&out).into_owned();
    // Process-DiskSpd.ps1 checks the first line before it continues.
    assert_eq!((xml.lines().next(), xml.lines().last()), (Some("<Results>"), Some("</Results>")));
    let document = Document::parse(&xml).unwrap_or_else(|e| panic!("{e}"));
    let root = document.root_element();
    for (path, count, first) in PATHS {
        let found = found(root, path);
        assert_eq!(found.len(), *count, "{path}");
        assert!(first.is_empty() || text(&found[0]) == *first, "{path}: {}", text(&found[0]));
    }
    // VMFleet reads percentiles by position: 0, 1 ... 99, and the nines.
    let ranks: Vec<&str> =
        found(root, "Results/TimeSpan/Latency/Bucket/Percentile").iter().map(text).collect();
    let nines = ["99.9", "99.99", "99.999", "99.9999", "99.99999", "99.999999", "99.9999999", "100"];
    assert!((0..100).all(|p| ranks[p] == p.to_string()) && ranks[100..] == nines, "{ranks:?}");
    let buckets = found(root, "Results/TimeSpan/Latency/Bucket");
    assert!(found(buckets[106], "Bucket/ReadMilliseconds").is_empty(), "too few operations support it");
    assert!(xml.contains("<Bucket SampleMillisecond=\"1000\" Read=\"2000\" Write=\"0\" Total=\"2000\" ReadMinLatencyMilliseconds=\"0.001\" ReadMaxLatencyMilliseconds=\"0.009\" ReadAvgLatencyMilliseconds=\"0.003\""));
}
