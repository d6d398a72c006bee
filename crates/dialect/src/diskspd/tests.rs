//! Tests of DISKSPD's command lines and of the jobs that they become. Expected states are from the tables of DISKSPD's own tests
//! (`UnitTests/CmdLineParser`, `UnitTests/XmlProfileParser`, MIT licence), expressed in the types of this crate.

mod xml;

use super::{Ask, CommandLine, Environment, job};
use crate::trouble::Trouble;
use model::diskspd::{Cache, Flush, Profile, Target, Throughput, TimeSpan};
use model::job::{Advice, IoPriority, Mix, Order, Start};
use model::spec::conditions::RateLimit;
use model::spec::{JobSpec, Rw, StreamSpec};

/// The seed of `-z` without a number.
const CLOCK: u32 = 4711;

fn environment(read: &dyn Fn(&str) -> Result<String, String>) -> Environment<'_> {
    Environment { read, clock: CLOCK }
}

fn parse_line(line: &str) -> Result<CommandLine, Trouble> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    CommandLine::parse(&words, &environment(&|file| Err(format!("there is no {file}"))))
}

fn parse_job(line: &str) -> Result<JobSpec, Trouble> {
    Ok(job(&parse_line(line)?, &[0, 1, 2], &|_| Vec::new())?.unwrap_or_default())
}

fn profile(line: &str) -> Profile {
    parse_line(line).unwrap_or_else(|e| panic!("{line}: {e}")).profile
}

fn span(options: &str) -> TimeSpan {
    profile(&format!("{options} testfile.dat")).spans.remove(0)
}

fn stream(options: &str) -> StreamSpec {
    let line = format!("{options} testfile.dat");
    parse_job(&line).unwrap_or_else(|e| panic!("{line}: {e}")).phases.remove(0).streams.remove(0)
}

/// Whether a command line is accepted.
fn is_accepted(options: &str) -> bool {
    parse_job(&format!("{options} testfile.dat")).is_ok()
}

/// The error text; empty if the job is accepted.
fn refusal_text(parse_job: Result<JobSpec, Trouble>) -> String {
    parse_job.err().map(|e| e.to_string()).unwrap_or_default()
}

/// The error text of these options.
#[track_caller]
fn wrong(options: &str) -> String {
    let line = format!("{options} testfile.dat");
    parse_job(&line).err().unwrap_or_else(|| panic!("{line} is accepted")).to_string()
}

/// Options, and a check of the resulting state.
type Row = (&'static str, fn(&TimeSpan, &Target) -> bool);

/// States from DISKSPD's tables in `UnitTests/CmdLineParser`.
const STATES: &[Row] = &[
    ("-a", |s, _| s.affinity.is_empty() && !s.disable_affinity),
    ("-ag", |s, _| s.affinity.is_empty() && !s.disable_affinity),
    ("-a1,4,6", |s, _| s.affinity == [(0, 1), (0, 4), (0, 6)]),
    ("-ag0,1,4,6", |s, _| s.affinity == [(0, 1), (0, 4), (0, 6)]),
    ("-ag0,1,4,6,g1,2,5,7", |s, _| s.affinity == [(0, 1), (0, 4), (0, 6), (1, 2), (1, 5), (1, 7)]),
    ("-ag0,1,4,6 -ag1,2,5,7", |s, _| s.affinity == [(0, 1), (0, 4), (0, 6), (1, 2), (1, 5), (1, 7)]),
    ("-b4K -w84 -a1,4,6", |s, t| (t.block, t.write_percent, s.affinity.len()) == (4096, 84, 3)),
    ("-B5m", |_, t| (t.base, t.end) == (5 << 20, 0)),
    ("-B5m:1m", |_, t| (t.base, t.end) == (5 << 20, 6 << 20)),
    ("-B5m -f6m", |_, t| (t.base, t.end) == (5 << 20, 6 << 20)),
    ("-fs", |_, t| t.sequential_hint && !t.random_hint && !t.temporary_hint),
    ("-fr", |_, t| !t.sequential_hint && t.random_hint && !t.temporary_hint),
    ("-ft", |_, t| !t.sequential_hint && !t.random_hint && t.temporary_hint),
    ("-frst", |_, t| t.sequential_hint && t.random_hint && t.temporary_hint),
    ("-h", |_, t| t.cache == Cache::Off && t.write_through),
    ("-Sh", |_, t| t.cache == Cache::Off && t.write_through),
    ("-S", |_, t| t.cache == Cache::Off && !t.write_through),
    ("-Su", |_, t| t.cache == Cache::Off && !t.write_through),
    ("-Sr", |_, t| t.cache == Cache::Remote && !t.write_through),
    ("-Sb", |_, t| t.cache == Cache::Cached && !t.write_through),
    ("-Sw", |_, t| t.cache == Cache::Cached && t.write_through),
    ("-Sbw", |_, t| t.cache == Cache::Cached && t.write_through),
    ("-Suw", |_, t| t.cache == Cache::Off && t.write_through),
    ("-Swu", |_, t| t.cache == Cache::Off && t.write_through),
    ("-Sm", |_, t| t.mapped && t.flush.is_none()),
    ("-Sm -Nv", |_, t| t.mapped && t.flush == Some(Flush::View)),
    ("-Sm -Nn", |_, t| t.mapped && t.flush == Some(Flush::NonVolatile)),
    ("-Sm -Ni", |_, t| t.mapped && t.flush == Some(Flush::NonVolatileNoDrain)),
    ("-n", |s, _| s.disable_affinity),
    ("-x", |s, _| s.completion_routines),
    ("-z1234", |s, _| s.seed == 1234),
    ("-z", |s, _| s.seed == CLOCK),
    ("-C12 -W345", |s, _| (s.cooldown_s, s.warmup_s) == (12, 345)),
    ("-d12 -P345", |s, _| s.duration_s == 12),
    ("-D", |s, _| s.iops && s.bucket_ms == 1000),
    ("-D250", |s, _| s.iops && s.bucket_ms == 250),
    ("-p", |_, t| t.parallel),
    ("-l", |_, t| t.large_pages),
    ("-o123 -B512k", |_, t| (t.requests, t.base) == (123, 512 << 10)),
    ("-c23 -f4M", |_, t| (t.create, t.end) == (Some(23), 4 << 20)),
    ("-i23 -j567", |_, t| (t.burst, t.think_ms) == (Some(23), Some(567))),
    ("-F23 -g567", |s, t| s.threads == 23 && t.throughput == Some(Throughput::BytesPerMs(567))),
    ("-r23M", |_, t| (t.random_percent, t.alignment) == (100, Some(23 << 20))),
    ("-s567K", |_, t| (t.random_percent, t.alignment) == (0, Some(567 << 10))),
    ("-b128K -s", |_, t| t.alignment == Some(128 << 10)),
    ("-s2b -b8k", |_, t| (t.block, t.alignment) == (8192, Some(16_384))),
    ("-t23 -T512K", |_, t| (t.threads, t.thread_stride) == (23, 512 << 10)),
    ("-I2", |_, t| t.priority == 2),
    ("-L", |s, _| s.latency),
    ("-Z", |_, t| t.zeros && t.buffer == 0),
    ("-Zr", |s, t| s.random_writes && !t.zeros && t.buffer == 0),
    ("-Z2M", |_, t| (t.buffer, t.buffer_file.is_none()) == (2 << 20, true)),
    ("-Z3M,x:\\foo\\bar.baz", |_, t| {
        t.buffer == 3 << 20 && t.buffer_file.as_deref() == Some("x:\\foo\\bar.baz")
    }),
    ("-si", |_, t| t.interlocked && t.alignment == Some(65_536)),
    ("-si567K", |_, t| t.interlocked && t.alignment == Some(567 << 10)),
    ("-F23 -O8", |s, _| (s.threads, s.requests) == (23, 8)),
    ("-b128K -g10i", |_, t| t.throughput == Some(Throughput::Iops(10))),
    ("-b128K -g1024", |_, t| t.throughput == Some(Throughput::BytesPerMs(1024))),
    ("-rs50", |_, t| (t.random_percent, t.alignment) == (50, None)),
    ("-rs50 -r8k", |_, t| (t.random_percent, t.alignment) == (50, Some(8192))),
    ("-r8k -rs50", |_, t| (t.random_percent, t.alignment) == (50, Some(8192))),
    ("-rs50 -r", |_, t| (t.random_percent, t.alignment) == (50, Some(65_536))),
    ("-r -rs50", |_, t| (t.random_percent, t.alignment) == (50, Some(65_536))),
    ("-rs100 -r", |_, t| t.random_percent == 100),
    ("-rs100 -r8k", |_, t| t.random_percent == 100),
    ("-r -rs100", |_, t| t.random_percent == 100),
    ("-r8k -rs100", |_, t| t.random_percent == 100),
    ("-rdpct10/10:10/10:0/10 -r", |_, t| {
        t.distribution.as_ref().is_some_and(|d| d.percent && d.ranges.len() == 4)
    }),
    ("-rdabs10/1G:10/1G:0/100G -r", |_, t| {
        t.distribution.as_ref().is_some_and(|d| !d.percent && d.ranges.len() == 4 && d.ranges[3].length == 0)
    }),
    ("-rdpct90/10 -rs50 -r8k", |_, t| t.random_percent == 50 && t.distribution.is_some()),
];

/// Command lines that DISKSPD refuses in its tables.
const REFUSED: &[&str] = &[
    "-ag0",
    "-agg",
    "-ag,0,1,2",
    "-a1,",
    "-ag1,0,",
    "-ag1,0,g",
    "-ag1,0,g2",
    "-ax",
    "-ag0,300",
    "-ag70000,1",
    "-B5m:1m -f6m",
    "-B5m:1m -B5m:1m",
    "-B5m:1m -B5m",
    "-B5m -B5m",
    "-f5m -f6m",
    "-B5mx",
    "-B5m:",
    "-B5m:j",
    "-B5m:1x",
    "-B5m:1mx",
    "-Sub",
    "-Sbu",
    "-Sru",
    "-Smu",
    "-Sb -h",
    "-h -Sb",
    "-Sm -h",
    "-Suw -h",
    "-h -Suw",
    "-S -Su",
    "-Sb -Sb",
    "-Sm -Sm",
    "-Sx",
    "-n -a1,2",
    "-gi100",
    "-g0",
    "-g0i",
    "-g",
    "-gi",
    "-g100x",
    "-rs50 -s8k",
    "-s8k -rs50",
    "-rs50 -s",
    "-s -rs50",
    "-r -s",
    "-s -r",
    "-rs50 -s -r",
    "-s -rs50 -r",
    "-s -r -rs50",
    "-rs50 -s8k -r",
    "-s8k -rs50 -r",
    "-s8k -r -rs50",
    "-rs50 -s -r8k",
    "-s -rs50 -r8k",
    "-s -r8k -rs50",
    "-s -s8k",
    "-s8k -s",
    "-s -s",
    "-s8k -s8k",
    "-r -r8k",
    "-r8k -r",
    "-r -r",
    "-r8k -r8k",
    "-r8k -r4k",
    "-rs0 -r",
    "-rs0 -r8k",
    "-rs0 -s",
    "-rs0 -s8k",
    "-rdpct90/10 -s",
    "-rdpct90/10",
    "-rd -r",
    "-rdfoo -r",
    "-rdpctBAD -r",
    "-rdpct10/ -r",
    "-rdpct60/10:60/10 -r",
    "-rdabs60/10g:60/10g -r",
    "-rdpct10/50:10/50 -r",
    "-rdpct10/50:10/60 -r",
    "-rdabs10/10 -r",
    "-w",
    "-w101",
    "-r0",
    "-T0",
    "-t0",
    "-o0",
    "-F0",
    "-I4",
    "-I0",
    "-R",
    "-Rfoo",
    "-vx",
    "-zx",
    "-b",
    "-b4G",
    "-F2 -t2",
    "-i5",
    "-j5",
    "-F2 -O2 -g5",
    "-F2 -O2 -i5 -j5",
    "-F2 -O2 -p",
    "-r -T4k",
    "-r -si",
    "-r -p",
    "-si -T4k -t2",
    "-si -p",
    "-T4k",
    "-Nv",
    "-Z4k",
    "-f1m -B2m",
    "-q",
];

#[test]
fn defaults_are_those_of_diskspd() {
    let all = profile("testfile.dat");
    assert_eq!((all.verbose, all.progress, all.xml, all.spans.len()), (false, 0, false, 1));
    let span = &all.spans[0];
    assert_eq!((span.duration_s, span.warmup_s, span.cooldown_s, span.seed), (10, 5, 0, 0));
    assert_eq!((span.threads, span.requests, span.bucket_ms), (0, 0, 1000));
    assert!(!span.disable_affinity && span.affinity.is_empty() && !span.latency && !span.iops);
    let expected = Target { path: "testfile.dat".into(), ..Target::default() };
    assert_eq!(span.targets, [expected]);
    assert_eq!((span.targets[0].block, span.targets[0].requests, span.targets[0].threads), (65_536, 2, 1));
}

#[test]
fn states_equal_those_of_diskspd_s_tables() {
    for (options, holds) in STATES {
        let span = span(options);
        assert!(holds(&span, &span.targets[0]), "{options}: {span:?}");
    }
    assert_eq!(STATES.len(), 70, "number of expectations that apply here");
    let all = profile("-P345 -v -Rxml testfile.dat testfile2.dat");
    assert_eq!((all.progress, all.verbose, all.xml), (345, true, true));
    assert_eq!(
        all.spans[0].targets.iter().map(|t| t.path.as_str()).collect::<Vec<_>>(),
        ["testfile.dat", "testfile2.dat"]
    );
}

#[test]
fn refusals_of_diskspd_have_a_suggestion() {
    for options in REFUSED {
        let why = wrong(options);
        assert!(why.contains("--> command line:1:"), "{options}: {why}");
    }
    for line in
        ["testfile.dat -r", "testfile.dat testfile2.dat -r", "testfile.dat -r testfile2.dat", "-r", ""]
    {
        assert!(parse_job(line).is_err(), "{line}");
    }
    // A place, the option, and a suggestion.
    let why = wrong("-b4K -t0");
    assert!(
        why.contains("1:6") && why.contains("incorrectly provided option: -t0") && why.contains("at least 1"),
        "{why}"
    );
}

#[test]
fn options_that_linux_lacks_are_refused_by_name() {
    for (options, word) in [
        ("-x", "completion routines"),
        ("-Sr", "-Su to bypass both"),
        ("-ft", "tmpfs"),
        ("-Sm -Nn -w100", "-Nv"),
        ("-Smw", "-Sm with -Nv"),
        ("-ePROCESS", "fathom capture"),
        ("-ysname", "from a script"),
        ("-:1", "no experimental flags"),
        ("-vs", "no such statistics"),
        ("-ag1,2", "lscpu"),
        ("-frs", "-fr or -fs"),
        ("-rs50 -r4k -b64k", "at least the block size"),
        ("-g5 -i5 -j5", "leave them out"),
        ("-d0", "-d1"),
        ("-c0", "-c1G"),
    ] {
        let why = wrong(options);
        assert!(why.contains(word), "{options}: {why}");
    }
    // The error is at the option that causes it.
    for (options, place) in [
        ("-d10 -W90000", "1:6"),
        ("-W5 -d90000", "1:5"),
        ("-d10 -C90000", "1:6"),
        ("-o8 -F2 -O20000", "1:9"),
        ("-F2 -O8 -o20000", "1:9"),
    ] {
        let why = wrong(options);
        assert!(why.contains(&format!("command line:{place}\n")), "{options}: {why}");
    }
    for (path, word) in [("#5", "/dev/sdb"), ("F:", "lsblk"), ("F:\\testfile4.dat", "Windows path")] {
        // The error is at the target.
        let why = refusal_text(parse_job(&format!("-w0 -r first {path}")));
        assert!(why.contains(word) && why.contains("1:14"), "{why}");
    }
}

#[test]
fn each_option_becomes_its_setting() {
    let plain = stream("-n");
    assert_eq!(
        (plain.rw, plain.depth, plain.resolved.workers, plain.create),
        (Some(Rw::Read), Some(2), 1, None)
    );
    assert!(
        plain.resolved.place.cpus.is_empty()
            && !plain.resolved.place.split
            && plain.resolved.each_worker_ns == Some(0)
    );
    let word = |s: &StreamSpec| s.cache.map(model::job::Cache::word);
    for (options, cache, engine) in [
        ("-Sb", "buffered", None),
        ("-Su -o1", "direct", Some("sync")),
        ("-Sh", "direct-dsync", None),
        ("-Sw -w100", "dsync", None),
        ("-Sm -o8", "mmap", Some("mmap")),
    ] {
        let stream = stream(options);
        assert_eq!(
            (word(&stream), stream.engine.map(|e| e.name)),
            (Some(cache), engine.map(str::to_owned)),
            "{options}"
        );
    }
    let mixed = stream("-b8k -r -w30 -t4 -o16 -g100i -I2 -fr");
    assert_eq!(
        (mixed.rw, mixed.mix, mixed.line.align_bytes),
        (Some(Rw::Randrw), Some(Mix::from_percents(70, 0)), 8192)
    );
    assert_eq!(
        (mixed.limit_iops, mixed.resolved.advice),
        (Some(RateLimit::All(400.0)), Some(Advice::Random))
    );
    assert_eq!(mixed.resolved.place.io_priority, Some(IoPriority::BestEffort(7)));
    assert_eq!(stream("-I1").resolved.place.io_priority, Some(IoPriority::Idle));
    assert_eq!(stream("-g1000 -t2").limit_bandwidth, Some(RateLimit::All(2_000_000.0)));
    assert_eq!(
        (stream("-i8 -j5 -t2").burst, stream("-i8 -j5 -t2").think),
        (Some(4), Some(model::job::Think::fixed(5_000_000)))
    );
    assert_eq!(
        (stream("-fs").resolved.advice, stream("-fs -Su").resolved.advice),
        (Some(Advice::Sequential), None)
    );
    assert_eq!(
        (stream("-D250").resolved.each_worker_ns, stream("-D1").resolved.each_worker_ns),
        (Some(250_000_000), Some(1_000_000))
    );
    assert_eq!(
        (stream("-D250").resolved.each_worker_ns, stream("-Sm -Nv -w100").fsync),
        (Some(250_000_000), Some(model::job::Every::writes(1)))
    );
}

#[test]
fn orders_are_those_of_diskspd() {
    assert_eq!((stream("-s128k").steps.stride_bytes, stream("-s").steps.stride_bytes), (131_072, 0));
    let (same, interlocked) = (stream("-t3"), stream("-si -t3"));
    assert_eq!((same.steps.start, interlocked.steps.start), (Start::Same, Start::Interlocked));
    assert_eq!(stream("-t3 -T1m").steps.start, Start::Every(1 << 20));
    assert_eq!((stream("-p -o4").line.times, stream("-p -o1").line.times), (4, 1));
    let runs = stream("-rs30 -w50");
    assert_eq!((runs.random, runs.line.mix_by_run), (Some(Order::Mixed(30.0)), true));
    // Seven of ten operations are sequential.
    let runs = stream("-rs30 -r -rdpct90/10 -w50");
    assert_eq!(runs.shown("run-length").as_deref(), Some("3.3333333333333335"));
    assert!(matches!(runs.random, Some(Order::Zones(_))) && runs.line.mix_by_run);
    assert!(!stream("-r -rdpct90/10").has("run-length"));
    let parts = stream("-r -rdabs90/10G:0/10G:5/20G");
    let words = parts.random.map(|o| o.describe()).unwrap_or_default();
    assert_eq!(words, "zones (90 % to 10 GiB, 0 % to 10 GiB, 5 % to 20 GiB, 5 % to the rest)");
    let region = stream("-B1m:2m -c1g");
    assert_eq!((region.resolved.access.offset_bytes, region.size), (1 << 20, Some(2 << 20)));
    assert_eq!(stream("-B1m -c2m").size, Some(1 << 20), "to the end of the file");
    assert_eq!((stream("-s0").size, stream("-s0").steps.stride_bytes), (Some(65_536), 0), "one place");
}

#[test]
fn data_are_those_of_diskspd() {
    assert!(stream("-w100").counting);
    assert_eq!((stream("-w100 -Z").zeros, stream("-w100 -Z").counting), (true, false));
    let unique = stream("-w100 -Zr");
    assert_eq!((unique.zeros, unique.counting, unique.dedup), (false, false, None));
    let buffer = stream("-w100 -Z20M");
    assert_eq!((buffer.dedup, buffer.dedup_set), (Some(100), Some(20 << 20)));
    assert_eq!(stream("-w100 -Z20M,/etc/hosts").data.as_deref(), Some("/etc/hosts"));
    assert_eq!(stream("-Z20M").dedup, None, "nothing is written");
}

#[test]
fn threads_take_the_cpus_in_turn_over_all_targets() {
    let cpus = |line: &str| {
        let job = parse_job(line).unwrap_or_else(|e| panic!("{e}"));
        job.phases[0].streams.iter().map(|s| s.resolved.place.cpus.clone()).collect::<Vec<_>>()
    };
    assert_eq!(cpus("-t2 a b"), [vec![0, 1, 2], vec![2, 0, 1]]);
    assert_eq!(cpus("-a4,2 a b"), [vec![4, 2], vec![2, 4]]);
    assert_eq!(cpus("-n a"), [Vec::<u32>::new()]);
    let pooled = parse_job("-F3 -o4 -r a b").unwrap_or_else(|e| panic!("{e}"));
    let stream = &pooled.phases[0].streams[0];
    assert_eq!((pooled.phases[0].streams.len(), stream.resolved.workers, stream.target.len()), (1, 3, 2));
    assert_eq!((stream.shown("sharing").as_deref(), stream.depth), (Some("each"), Some(4)));
    let engine = |line: &str| {
        let mut job = parse_job(line).unwrap_or_else(|e| panic!("{e}"));
        job.phases.remove(0).streams.remove(0).engine.map(|engine| engine.name)
    };
    let lines = ["-F1 -o1 -r a", "-F2 -O1 -r a b", "-t2 -o1 -r a b", "-F1 -o1 -r a b"];
    let sync = Some("sync".to_owned());
    assert_eq!(
        lines.map(engine),
        [sync.clone(), sync.clone(), sync, None],
        "two in flight, one on each target"
    );
    let shared = parse_job("-F3 -O5 -r a b").unwrap_or_else(|e| panic!("{e}"));
    let stream = &shared.phases[0].streams[0];
    assert_eq!((stream.shown("sharing").as_deref(), stream.depth), (Some("weighted:1,1"), Some(5)));
    assert_eq!(
        (stream.resolved.place.cpus.clone(), stream.resolved.each_worker_ns),
        (vec![0, 1, 2], Some(0))
    );
}

#[test]
fn likely_mistakes_have_a_warning() {
    let remarks = |options: &str| parse_job(&format!("{options} a")).map(|j| j.remarks).unwrap_or_default();
    assert_eq!(remarks("-t2"), ["WARNING: target access pattern will not be sequential, consider -si"]);
    assert_eq!(remarks("-si"), ["WARNING: single-threaded test, -si ignored"]);
    assert_eq!(
        remarks("-p -o1"),
        ["WARNING: -p does not have effect unless outstanding I/O count (-o) is > 1"]
    );
    assert!(remarks("-l").iter().any(|r| r.contains("huge pages")));
    for quiet in ["-t2 -r", "-t2 -T1m", "-t2 -si", "-t1", "-L -D -P5 -v"] {
        assert_eq!(remarks(quiet), Vec::<String>::new(), "{quiet}");
    }
}

#[test]
fn a_profile_is_printed_without_checks_and_help_lists_every_option() {
    let printed = parse_line("-Rpxml -Sr -x a").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((printed.ask.clone(), printed.profile.xml), (Ask::Profile, true));
    assert_eq!(job(&printed, &[], &|_| Vec::new()).ok(), Some(None), "nothing is measured");
    assert_eq!(parse_line("-Rp a").map(|s| (s.ask, s.profile.xml)).ok(), Some((Ask::Profile, false)));
    let Ok(CommandLine { ask: Ask::Print(help), .. }) = parse_line("-?") else { panic!() };
    for other in ["-h", "--help", "-c1M -? a"] {
        assert!(matches!(parse_line(other), Ok(CommandLine { ask: Ask::Print(same), .. }) if same == help));
    }
    assert!(
        matches!(parse_line("-h a"), Ok(CommandLine { ask: Ask::Measure, .. })),
        "-h is -Sh before a target"
    );
    for option in super::options::OPTIONS {
        assert!(help.contains(&format!("-{}{}", option.name, option.value)), "{}", option.name);
    }
    let all = parse_line("--destroy=/dev/sdx -w100 /dev/sdx").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.destroy, ["/dev/sdx"]);
    assert!(!is_accepted("--destroy") && !is_accepted("--other"));
}
