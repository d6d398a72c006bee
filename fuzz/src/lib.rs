//! What the fuzz targets do with an input: whatever it is, the parsers answer.
//!
//! For: the targets beside this file, and `tests/seeds.rs`, which replays the seeds as a plain test. Not for: meaning, which unit
//! tests hold.

use dialect::fio::{self, CommandLine};
use dialect::job;
use machine::mountinfo;
use model::evidence::{BlockStat, cgroup_v1, cgroup_v2, meminfo_bytes};
use model::record::frame;
use model::spec::{JobSpec, keys};
use model::units;
use model::verification::State;

/// Job files and flags: any text is a job that contradicts itself nowhere, or a message with its place.
/// The input is a file, and also the values of flags, one `key value` a line.
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
    let mut said = JobSpec::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let Some(key) = keys::find(name) else { continue };
        if let Err(why) = key.say(&mut said, [value]) {
            assert!(why.contains("; type"), "{why}");
        }
    }
    for problem in said.check() {
        assert!(!problem.in_flags().contains('{') && !problem.in_toml().contains('{'));
    }
}

/// Job files of fio's: any text is a job that contradicts itself nowhere, or a message with its place.
/// The input is a file, and also the words of a command line, one a line.
pub fn fio(text: &str) {
    let words: Vec<String> = text.lines().map(|line| format!("--{line}")).collect();
    for words in [vec!["job.fio".to_owned()], words] {
        match CommandLine::of(&words, &|_| Ok(text.into())) {
            Ok(line) => told(&line),
            Err(why) => assert!(!why.is_empty() && !why.contains('\u{1b}'), "{why}"),
        }
    }
}

fn told(line: &CommandLine) {
    match fio::read(line, &|_| Vec::new()) {
        Ok(job) => {
            assert_eq!(job.check(), []);
            assert!(job.phases.iter().all(|p| !p.streams.is_empty()));
            assert!(fio::as_one_line(line).is_ok_and(|text| text.starts_with("fio ")));
        }
        Err(trouble) => assert!(!trouble.to_string().contains('\u{1b}'), "{trouble}"),
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
    let mounts = mountinfo::parse(text).len();
    assert!(mounts <= text.lines().count());
}

/// Session files: any bytes are a record or an error, and any record has a report in every format.
/// The input is a file, and also the lines of one without their checksums, which no fuzzer would guess.
pub fn session(bytes: &[u8]) {
    look(bytes);
    let mut file = frame::MAGIC.as_bytes().to_vec();
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        file.extend(format!("{:08x} ", crc32fast::hash(line)).bytes());
        file.extend(line);
        file.push(b'\n');
    }
    look(&file);
}

fn look(bytes: &[u8]) {
    let Ok((record, _)) = frame::decode(bytes) else { return };
    let report = analysis::judge(&record, &analysis::Judging::default());
    let _ = analysis::exit_code(&report);
    let style = report::Style {
        ledger: true,
        course: true,
        detail: report::Detail::All,
        width: 40,
        ..report::Style::default()
    };
    for (format, _) in report::able::<model::report::Report>() {
        assert!(format.bytes(&report, style).is_ok_and(|bytes| !bytes.is_empty()), "{}", format.name);
    }
}

/// Sizes and durations as people type them, and figures as they are shown.
pub fn units(text: &str) {
    match units::parse_bytes(text) {
        Ok(bytes) => {
            let _ = (units::show_bytes(bytes), units::show_block(bytes), units::show_rate(bytes as f64));
            // A plain number means itself.
            assert_eq!(units::parse_bytes(&bytes.to_string()), Ok(bytes));
        }
        Err(why) => assert!(why.contains("type")),
    }
    match units::parse_duration_ns(text) {
        Ok(ns) => assert!(!units::show_ns(ns as f64).is_empty()),
        Err(why) => assert!(why.contains("type")),
    }
}

/// States of a verification: any text is a state whose arithmetic holds everywhere, or a message.
pub fn verification(text: &str) {
    let Ok(state) = State::parse(text) else { return };
    let verification = &state.verification;
    for turn in [0, verification.blocks / 2, verification.blocks.saturating_sub(1)] {
        let _ = verification.expected(turn, state.mark);
    }
    let _ = verification.stamp(verification.writes());
    assert!(State::parse(&state.text()).is_ok());
}
