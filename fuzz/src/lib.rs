//! The bodies of the fuzz targets: every parser must answer any input without a panic.
//!
//! The files in `fuzz/fuzz_targets` call them, and `tests/seeds.rs` replays the seeds as plain tests.

use capture::capture_file::{MAGIC, Reader, Writer};
use capture::completeness::completeness;
use capture::fit::{Gathering, Head, Survey};
use capture::foreign::Language;
use capture::profile::Profiler;
use dialect::diskspd::{self, Environment};
use dialect::fio::{self, CommandLine};
use dialect::iometer::{self, Overrides};
use dialect::job;
use machine::file_systems;
use model::captured::{Captured, Ending, FORMAT, Origin, RequestFilter, RowUnit};
use model::evidence::{BlockStat, cgroup_v1, cgroup_v2, meminfo_bytes};
use model::spec::{JobSpec, keys};
use model::verification::State;
use model::{record, units};
use trace::pairing::{Merge, Pairing, Scope};
use trace::row::Names;
use trace::{Decoder, EventKind};

/// Job files and flags: any text is a job without contradictions, or a message with its place.
/// The input is read as a file, and as values of flags with one `key value` per line.
pub fn job(text: &str) {
    match job::parse("job.toml", text, |_| Vec::new()) {
        Ok(job) => {
            assert_eq!(job.check(), []);
            assert!(job.phases.iter().all(|p| !p.streams.is_empty()));
        }
        Err(trouble) => {
            let plain = trouble.to_string();
            assert!(plain.contains("--> job.toml:"), "{plain}");
            assert!(!plain.contains('\u{1b}'), "{plain}");
            assert!(!trouble.coloured().is_empty());
        }
    }
    let mut job = JobSpec::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let Some(key) = keys::find(name) else { continue };
        if let Err(why) = key.parse_into_job(&mut job, [value]) {
            assert!(why.contains("; type"), "{why}");
        }
    }
    for problem in job.check() {
        assert!(!problem.in_flags().contains('{') && !problem.in_toml().contains('{'));
    }
}

/// Job files of fio: any text is a job without contradictions, or a message with its place.
/// The input is read as a file, and as a command line with one word per line.
pub fn fio(text: &str) {
    let words: Vec<String> = text.lines().map(|line| format!("--{line}")).collect();
    for words in [vec!["job.fio".to_owned()], words] {
        match CommandLine::parse(&words, &|_| Ok(text.into())) {
            Ok(line) => read_back_command_line(&line),
            Err(why) => assert!(!why.is_empty() && !why.contains('\u{1b}'), "{why}"),
        }
    }
}

fn read_back_command_line(line: &CommandLine) {
    match fio::read(line, &|_| Vec::new()) {
        Ok(job) => {
            assert_eq!(job.check(), []);
            assert!(job.phases.iter().all(|p| !p.streams.is_empty()));
            assert!(fio::as_one_line(line).is_ok_and(|text| text.starts_with("fio ")));
        }
        Err(trouble) => assert!(!trouble.to_string().contains('\u{1b}'), "{trouble}"),
    }
}

/// Command lines and XML profiles of DISKSPD: any text is a job without contradictions, or a message with its place. A
/// profile that runs can be printed and read again.
/// The input is read as a profile, and as a command line with one word per line.
pub fn diskspd(text: &str) {
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let profile = ["-Xprofile.xml", "first", "second"].map(str::to_owned).to_vec();
    for words in [profile, words] {
        let environment = Environment { read: &|_| Ok(text.into()), clock: 7 };
        let line = match diskspd::CommandLine::parse(&words, &environment) {
            Ok(line) => line,
            Err(trouble) => {
                assert!(!trouble.to_string().contains('\u{1b}'), "{trouble}");
                continue;
            }
        };
        let job = diskspd::job(&line, &[0, 1], &|_| Vec::new());
        if let Ok(Some(job)) = &job {
            assert_eq!(job.check(), []);
            assert!(job.phases.iter().all(|p| !p.streams.is_empty()));
        }
        let mut xml = line.profile.clone();
        xml.xml = true;
        let printed = report::diskspd_profile(&xml);
        let read_back = diskspd::CommandLine::parse(
            &["-Xagain.xml".to_owned()],
            &Environment { read: &|_| Ok(printed.clone()), ..environment },
        );
        if job.is_ok()
            && let Ok(read_back) = read_back
        {
            assert_eq!(read_back.profile.spans.len(), line.profile.spans.len());
        }
    }
}

/// Configuration files of Iometer: any text is a job without contradictions, or a message with its place.
pub fn iometer(text: &str) {
    let two = vec!["/first".to_owned(), "/second".to_owned()];
    for targets in [Vec::new(), two] {
        let overrides = Overrides { targets, seconds: Some(1) };
        match iometer::read("test.icf", text, &overrides, &|_| Vec::new()) {
            Ok(job) => {
                assert_eq!(job.check(), []);
                assert!(job.phases.iter().all(|p| !p.streams.is_empty()));
            }
            Err(trouble) => assert!(!trouble.to_string().contains('\u{1b}'), "{trouble}"),
        }
    }
    if let Ok(specs) = iometer::specs("test.icf", text) {
        assert!(specs.iter().all(|spec| spec.lines.iter().map(|l| l.weight).sum::<u32>() == 100));
    }
}

/// Kernel text: block `stat`, `meminfo`, cgroup files. Any text is figures or a reason.
pub fn kernel_text(text: &str) {
    if let Ok(stat) = BlockStat::parse(text) {
        assert_eq!(stat.since(&stat).map(|d| d.total()), Some(BlockStat::default().total()));
    }
    let key = text.split(':').next().unwrap_or_default();
    let _ = meminfo_bytes(text, key);
    let _ = meminfo_bytes(text, "Dirty");
    let _ = (cgroup_v1(text), cgroup_v2(text));
}

/// `/proc/self/mountinfo`: any text is a list of mounts, at most one per line.
pub fn mountinfo(text: &str) {
    let mounts = file_systems::parse(text).len();
    assert!(mounts <= text.lines().count());
}

/// Session files: any bytes are a record or an error, and any record has a report in every format.
/// The input is read as a file, and as lines that get the checksums that no fuzzer would guess.
pub fn session(bytes: &[u8]) {
    check_bytes(bytes);
    let mut file = record::MAGIC.as_bytes().to_vec();
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        file.extend(format!("{:08x} ", crc32fast::hash(line)).bytes());
        file.extend(line);
        file.push(b'\n');
    }
    check_bytes(&file);
}

fn check_bytes(bytes: &[u8]) {
    let Ok(record::Decoded { record, .. }) = record::decode(bytes) else { return };
    let report = analysis::judge(&record, &analysis::Judging::default());
    let _ = analysis::exit_code(&report);
    let style = report::Style {
        ledger: true,
        time_series: true,
        detail: report::Detail::All,
        width: 40,
        ..report::Style::default()
    };
    for (format, _) in report::formats_that_write::<model::report::Report>() {
        assert!(format.bytes(&report, style).is_ok_and(|bytes| !bytes.is_empty()), "{}", format.name);
    }
}

/// Sizes and durations as users type them, and figures as they are shown.
pub fn units(text: &str) {
    match units::parse_bytes(text) {
        Ok(bytes) => {
            let _ = (units::show_bytes(bytes), units::show_block(bytes), units::show_rate(bytes as f64));
            // A number without a unit is in bytes.
            assert_eq!(units::parse_bytes(&bytes.to_string()), Ok(bytes));
        }
        Err(why) => assert!(why.contains("type")),
    }
    match units::parse_duration_ns(text) {
        Ok(ns) => assert!(!units::show_ns(ns as f64).is_empty()),
        Err(why) => assert!(why.contains("type")),
    }
}

/// States of a verification: any text is a state whose arithmetic never overflows, or a message.
pub fn verification(text: &str) {
    let Ok(state) = State::parse(text) else { return };
    let verification = &state.verification;
    for turn in [0, verification.blocks / 2, verification.blocks.saturating_sub(1)] {
        let _ = verification.expected(turn, state.writer_progress);
    }
    let _ = verification.stamp(verification.writes());
    assert!(State::parse(&state.text()).is_ok());
}

/// Captures, traces of other tools and pages of the kernel's trace: any bytes are rows or a reason, and any rows have a profile.
/// The input is read as a capture file, as blocks after a valid header, as a page, and as a trace of another tool.
pub fn capture(bytes: &[u8]) {
    check_capture(bytes);
    let whole = Writer::new(Vec::new(), &Origin::default());
    let mut file = whole.and_then(|w| w.finish(&Names::default(), &Ending::default())).unwrap_or_default();
    // Keep only the header. Its length follows the letter of its frame.
    let length = file
        .get(MAGIC.len() + 1..MAGIC.len() + 5)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes);
    file.truncate(MAGIC.len() + 9 + length as usize);
    // Frames with checksums that no fuzzer would guess.
    for block in bytes.chunks(512) {
        file.push(b'B');
        file.extend((block.len() as u32).to_le_bytes());
        file.extend(crc32fast::hash(block).to_le_bytes());
        file.extend(block);
    }
    check_capture(&file);
    pages(bytes);
    let Some(language) = Language::detect(bytes) else { return };
    let mut rows = 0_u64;
    let from: Box<dyn std::io::BufRead> = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let converted = language.convert(vec![from], &mut |_, _| {
        rows += 1;
        Ok(())
    });
    match converted {
        Ok((_, ending)) => assert_eq!(ending.rows, rows),
        Err(why) => assert!(!why.to_string().contains('\u{1b}'), "{why}"),
    }
}

fn check_capture(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let mut profiler = Profiler::new(&reader.origin, &RequestFilter::default());
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        profiler.add(rows, names);
    }
    assert_eq!(reader.ending.is_none(), reader.damage.is_some());
    fit(bytes);
    let captured = Captured {
        format: FORMAT,
        file: String::new(),
        completeness: completeness(&reader.origin, reader.ending.as_ref()),
        filter: None,
        profile: profiler.finish(reader.ending.as_ref().map(|ending| ending.duration_ns), &reader.names),
        origin: reader.origin,
        ending: reader.ending,
        damage: reader.damage,
    };
    for (format, _) in report::formats_that_write::<Captured>() {
        let shown = format.bytes(&captured, report::Style { width: 40, ..report::Style::default() });
        assert!(shown.is_ok_and(|bytes| !bytes.is_empty()), "{}", format.name);
    }
}

/// A capture has a valid fitted job, or a reason why not.
fn fit(bytes: &[u8]) {
    let rows = |each: &mut dyn FnMut(&[trace::row::Row], &Names)| {
        let mut reader = Reader::new(bytes).ok()?;
        while reader.block().is_some() {
            let (rows, names) = reader.last();
            each(rows, names);
        }
        Some(reader)
    };
    let Some(first) = Reader::new(bytes).ok() else { return };
    let mut survey = Survey::new(&first.origin);
    let Some(first) = rows(&mut |rows, names| survey.add(rows, names)) else { return };
    let Ok(mut gathering) = Gathering::new(&first.origin, survey, &first.names) else { return };
    rows(&mut |rows, names| gathering.add(rows, names));
    let text = gathering.finish().toml(&Head::default());
    if let Err(trouble) = job::parse("job.toml", &text, |_| Vec::new()) {
        panic!("{trouble}\n{text}");
    }
}

/// Format of a page, as a kernel describes it.
const PAGE: &str = "field: u64 timestamp; offset:0; size:8;\nfield: local_t commit; offset:8; size:8;\nfield: char data; offset:16; size:4080;";
/// Format of an event, as a kernel describes it.
const EVENT: &str = "ID: 1\nfield:unsigned short common_type; offset:0; size:2;\nfield:int common_pid; offset:4; size:4;\nfield:sector_t sector; offset:8; size:8;\nfield:unsigned int nr_sector; offset:16; size:4;\nfield:char rwbs[8]; offset:20; size:8;\nfield:char comm[16]; offset:28; size:16;";

fn pages(bytes: &[u8]) {
    let completed = EVENT
        .replace("ID: 1", "ID: 2")
        .replace("field:char comm", "field:int error; offset:28; size:4;\nfield:char other");
    let asked = EVENT.replace("ID: 1", "ID: 3");
    let formats = [
        (EventKind::Issued, EVENT.into()),
        (EventKind::Completed, completed),
        (EventKind::FlushRequested, asked),
    ];
    let Ok(mut decoder) = Decoder::new(PAGE, &formats) else { panic!("the formats above are valid") };
    let mut merge = Merge::default();
    for page in bytes.chunks(4096) {
        decoder.decode_page(page, &mut |_| (None, false), &mut merge.waiting);
    }
    for unit in [RowUnit::Requests, RowUnit::Bios] {
        let mut pairing = Pairing::new(Scope { unit, span: Some((8, 1 << 40)), start_ns: 7 });
        let (mut rows, mut issued) = (0_u64, 0_u64);
        let events = merge.waiting.clone();
        for event in &events {
            issued += u64::from(event.step != EventKind::Completed);
            pairing.add_event(event, &mut decoder.names, &mut |_| rows += 1);
        }
        pairing.finish(&mut |_| rows += 1);
        assert!(rows <= issued, "{rows} rows of {issued} requests");
    }
}
