//! Screens at several sizes, compared with golden files. After an intended change, run
//! `FATHOM_BLESS=1 cargo test -p fathom-io-live` and check `git diff`.

use super::*;
use crate::Progress;
use crate::state::{HostProgress, HostState, JobResult, Rate, RecentFigures, Sample, WatchState};
use analysis::under_way::{CountersBetween, Device, ReportedOps, Row};
use model::finding::{CheckId, Checked, Outcome};
use model::machine::{LayerKind, SameBy};
use model::record::Disturbance;
use model::watch::{
    Call, Conclusion, CpuShares, DeviceInterval, Latencies, Latency, Layout, Load, Open, ProcessCalls,
    ProcessRequests, Processes, Requests, Rule, Watched, WatchedDevice, WatchedProcess,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const PLAIN: Theme = Theme { unicode: false, colours: false };
const FULL: Theme = Theme { unicode: true, colours: true };

fn screen(state: &State, theme: Theme, size: (u16, u16)) -> String {
    painted(size, |frame| draw(frame, state, theme))
}

fn painted((width, height): (u16, u16), paint: impl FnOnce(&mut Frame)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap_or_else(|never| match never {});
    terminal.draw(paint).unwrap_or_else(|never| match never {});
    let cells = &terminal.backend().buffer().content;
    let lines = cells.chunks(width.into()).map(|row| {
        let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// The middle of a run, with all values known.
fn busy() -> State {
    let mut state = State { result_count: Some(8), ..State::default() };
    state.step("run 12 of 40  4K random read, depth 32", None);
    state.say("It takes about 75 s. It writes at most 1 GiB of test files.");
    state.begin_run(32);
    let device = |iops: f64| Device {
        name: "vda".into(),
        iops,
        bytes_per_s: iops * 4096.0,
        latency_ns: Some(387_000.0),
        in_flight: 31.2,
    };
    for at in 0..120_u32 {
        let iops = 60_000.0 + 20_000.0 * (f64::from(at) / 9.0).sin();
        state.sample = Some(Sample {
            counted: CountersBetween {
                device: Ok(device(iops * 0.9)),
                pressure: [Ok(0.96), Ok(0.012), Ok(0.0)],
                others: Ok(Some(Disturbance::ForeignIo {
                    device: "vda".into(),
                    bytes_per_s: 240e6,
                    ios_per_s: Some(1_920.0),
                })),
            },
            busiest_worker: Ok(0.43),
            busiest_process: Ok("dd (4711)".into()),
        });
        state.show_figures(RecentFigures {
            rate: Some(Rate { iops, bytes_per_s: iops * 4096.0, depth: 31.9 }),
            latency_ns: [Some(402_000), Some(1_210_000), Some(42_000_000)],
            is_new: true,
            so_far: ReportedOps::default(),
        });
    }
    let names = ["1M sequential read, depth 8", "1M sequential write, depth 8", "4K random read, depth 32"];
    for (job, name) in names.into_iter().enumerate() {
        let row = Row {
            job,
            offered_iops: None,
            runs: 2,
            iops: Some(1_234.5 * (job + 1) as f64),
            latency_ns: [Some(402_000), (job != 1).then_some(1_210_000), Some(42_000_000)],
        };
        let findings = if job == 2 { vec![holes()] } else { Vec::new() };
        state.show_result(JobResult { name: name.into(), figures: row, op_bytes: Some(4096.0) }, findings);
    }
    state.tick(Progress { part: 4_300, total: 10_000 }, Duration::from_secs(61).into());
    state
}

fn holes() -> Checked {
    Checked {
        id: CheckId::A04,
        name: "HOLES_READ".into(),
        outcome: Outcome::Finding,
        severity: Some(Severity::Invalidates),
        about: vec!["4K random read, depth 32".into()],
        sentence: "100 % of the file are holes, which are read as zeros without any device.".into(),
        fix: String::new(),
        evidence: BTreeMap::new(),
        accepted: false,
    }
}

fn process(name: &str, pid: u32, kernel: bool) -> WatchedProcess {
    WatchedProcess {
        pid,
        tid: None,
        name: name.into(),
        kernel,
        children_of: None,
        read_mb_per_s: 29.0,
        write_mb_per_s: 0.0,
        rchar_mb_per_s: 0.0,
        wchar_mb_per_s: 0.0,
        read_calls_per_s: 0.0,
        write_calls_per_s: 0.0,
        open: Ok(Open { files: 1, direct: true, io_uring: true, ..Open::default() }),
        requests: (!kernel).then(|| ProcessRequests { depth_mean: 3.1, ..ProcessRequests::default() }),
        calls: (!kernel).then(|| ProcessCalls {
            calls: vec![Call { name: "io_uring_enter".into(), count: 1800, per_s: 1800.0 }],
            ..ProcessCalls::default()
        }),
    }
}

/// `fathom watch` of a loop device and the disk below.
fn observed() -> WatchState {
    let requests = |per_s: f64, await_ms| Requests {
        per_s,
        mb_per_s: per_s * 0.004_096,
        mib_per_s: per_s / 256.0,
        request_bytes: Some(4096.0),
        await_ms,
        merged_per_s: 0.0,
        merged_percent: Some(0.0),
    };
    let figures = |per_s| DeviceInterval {
        seconds: 1.0,
        read: requests(per_s, Some(0.42)),
        write: requests(0.0, None),
        discard: None,
        flush: None,
        depth_mean: 3.07,
        in_flight: 3,
        util_percent: 80.0,
    };
    let load = Load {
        at_least_percent: 25.0,
        at_most_percent: Some(40.0),
        not_measured: Vec::new(),
        throttled: false,
        same_by: SameBy::Serial,
        sessions: Vec::new(),
    };
    let read = Latency {
        requests: 7000,
        p50_ms: Some(0.39),
        p99_ms: Some(1.12),
        max_ms: 6.5,
        sequential_percent: None,
        random_bytes: None,
    };
    let conclusion = Conclusion {
        rule: Rule::TwiceDoesNotFit,
        text: "loop1: twice this load would not fit".into(),
        basis: String::new(),
        is_new: true,
    };
    let device = |name: &str, level, figures| WatchedDevice {
        name: name.into(),
        volume: None,
        number: "7:0".into(),
        kind: LayerKind::Loop,
        level,
        below: Vec::new(),
        figures,
        load: (level == 0).then(|| Ok(load.clone())),
        conclusions: (level == 0).then(|| conclusion.clone()).into_iter().collect(),
        counters: None,
        latency: (level == 0).then_some(Ok(Latencies { read: Some(read), ..Latencies::default() })),
    };
    let mut observed = WatchState::new(Duration::from_secs(1));
    for at in 0..120 {
        let rate = 7_000.0 + 2_000.0 * (f64::from(at) / 9.0).sin();
        observed.add_interval(&Watched {
            is_first: at == 0,
            has_headings: false,
            time: "2026-11-23T15:00:00.000+00:00".into(),
            devices: vec![
                device("loop1", 0, Ok(figures(rate))),
                device("vda", 1, Err("the kernel's counter of reads jumped back".into())),
            ],
            cpu: Some(CpuShares {
                user_percent: 12.5,
                nice_percent: 0.0,
                system_percent: 7.5,
                iowait_percent: 30.0,
                steal_percent: 0.0,
                idle_percent: 50.0,
            }),
            layout: Layout::default(),
            processes: (at == 0).then(|| Processes {
                seconds: 1.0,
                listed: vec![process("fio", 15_915, false), process("kworker/u8:4-loop1-and-more", 33, true)],
                unlisted: 3,
                unreadable: 0,
                calls_not_known: None,
            }),
            remarks: if at == 0 { vec!["/data: ext4 > loop1 > vda".into()] } else { Vec::new() },
        });
    }
    observed
}

/// A run without counters.
fn blind() -> State {
    let mut state = busy();
    state.results.clear();
    state.findings.clear();
    state.begin_run(32);
    let why = || "permission denied".to_owned();
    state.sample = Some(Sample {
        counted: CountersBetween {
            device: Err("iostats are switched off on vda".into()),
            pressure: [Err(why()), Err(why()), Err(why())],
            others: Err("the kernel charges nothing to fathom's cgroup on this device".into()),
        },
        busiest_worker: Err(why()),
        busiest_process: Err(why()),
    });
    state
}

#[test]
fn hidden_findings_are_counted_not_their_lines() {
    let mut state = busy();
    for id in [CheckId::A01, CheckId::A02, CheckId::A03] {
        let row = state.results[2].clone();
        state.show_result(row, vec![Checked { id, sentence: "a word and ".repeat(40), ..holes() }]);
    }
    // Four lines are free: two for the finding about holes, one for the first long finding, one for the count.
    let shown = screen(&state, PLAIN, (80, 24));
    assert!(shown.contains("and 2 more findings, in the report"), "{shown}");
}

#[test]
fn a_finding_that_does_not_fit_ends_with_dots() {
    let mut state = busy();
    for id in [CheckId::A01, CheckId::A02] {
        let row = state.results[2].clone();
        state.show_result(row, vec![Checked { id, sentence: "a word and ".repeat(8), ..holes() }]);
    }
    // Of four lines, the finding about holes takes two, and the count one. The next finding needs two lines, but only one is left.
    let shown = screen(&state, PLAIN, (80, 24));
    let line = shown.lines().find(|line| line.starts_with("A01")).unwrap_or_default();
    assert!(line.ends_with(" ..") && shown.contains("and 1 more finding, in the report"), "{shown}");
}

/// The state with `all` hosts: one is lost, one hangs.
fn of_hosts(all: usize) -> State {
    let mut state = busy();
    let host = |rank: usize| HostProgress {
        rank,
        name: format!("node{rank:03}.cluster"),
        iops: (rank > 0).then_some(if rank == 1 { 0.0 } else { 20_000.0 + 100.0 * rank as f64 }),
        p99_ns: (rank != 3).then_some(1_210_000),
        state: match rank {
            0 => HostState::Lost,
            1 => HostState::Hung,
            rank if rank + 1 == all => HostState::Waiting,
            _ => HostState::Measuring,
        },
    };
    (state.hosts, state.host_count) = ((0..all.min(64)).map(host).collect(), all);
    state
}

#[track_caller]
fn hold(name: &str, now: &str) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/draw/golden/{name}.txt"));
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(&kept, now).unwrap_or_else(|e| panic!("{}: {e}", kept.display()));
    }
    let before = std::fs::read_to_string(&kept).unwrap_or_default();
    assert_eq!(now, before, "{} changed", kept.display());
}

#[test]
fn screens_match_golden_files() {
    let help = State { help: true, ..busy() };
    for (size, name) in [((120, 40), "120x40"), ((80, 24), "80x24"), ((40, 12), "40x12")] {
        hold(&format!("busy.{name}"), &screen(&busy(), FULL, size));
        hold(&format!("plain.{name}"), &screen(&busy(), PLAIN, size));
        hold(&format!("blind.{name}"), &screen(&blind(), PLAIN, size));
        hold(&format!("help.{name}"), &screen(&help, PLAIN, size));
        hold(&format!("begin.{name}"), &screen(&State::default(), PLAIN, size));
        hold(&format!("hosts.{name}"), &screen(&of_hosts(4), PLAIN, size));
        hold(&format!("many-hosts.{name}"), &screen(&of_hosts(1_000), PLAIN, size));
    }
}

#[test]
fn watch_screens_match_golden_files() {
    let at = |observed: &WatchState, theme, size| painted(size, |frame| draw_watch(frame, observed, theme));
    for (size, name) in [((120, 40), "120x40"), ((80, 24), "80x24"), ((40, 12), "40x12")] {
        hold(&format!("watch.{name}"), &at(&observed(), FULL, size));
        hold(&format!("watch-plain.{name}"), &at(&observed(), PLAIN, size));
        hold(&format!("watch-begin.{name}"), &at(&WatchState::new(Duration::from_secs(1)), PLAIN, size));
    }
    for width in (1..60).chain([120, 400]) {
        for height in (1..30).chain([100]) {
            at(&observed(), PLAIN, (width, height));
        }
    }
    let mut hostile = observed();
    hostile.devices[0].name = "a\u{1b}[2Jb".into();
    assert!(!at(&hostile, FULL, (80, 24)).contains('\u{1b}'));
}

#[test]
fn unknown_values_are_not_drawn_as_zero() {
    for state in [State::default(), blind()] {
        let shown = screen(&state, PLAIN, (120, 40));
        assert!(!shown.contains("0 IOPS") && !shown.contains(" 0.0") && !shown.contains(" 0 ns"), "{shown}");
    }
}

#[test]
fn drawing_succeeds_at_any_size() {
    for width in (1..60).chain([120, 400]) {
        for height in (1..30).chain([100]) {
            for state in [State::default(), busy(), blind(), of_hosts(300), State { help: true, ..busy() }] {
                screen(&state, PLAIN, (width, height));
            }
        }
    }
}

#[test]
fn hostile_names_are_escaped_and_ascii_screens_contain_only_ascii() {
    let mut state = busy();
    state.step("run 1 of 1  \u{1b}[2J Größe \u{202e}x 日本語", None);
    let plain = screen(&state, PLAIN, (120, 40));
    assert!(plain.is_ascii() && !plain.contains('\u{1b}') && plain.contains("Gr??e"), "{plain}");
    let full = screen(&state, FULL, (120, 40));
    assert!(full.contains("Größe") && !full.contains('\u{1b}') && !full.contains('\u{202e}'), "{full}");
}

#[test]
fn theme_without_colours_draws_none() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap_or_else(|never| match never {});
    let colours = |terminal: &Terminal<TestBackend>| {
        let cells = &terminal.backend().buffer().content;
        cells.iter().filter(|c| c.fg != Color::Reset || c.bg != Color::Reset).count()
    };
    let _ = terminal.draw(|frame| draw(frame, &busy(), PLAIN));
    assert_eq!(colours(&terminal), 0);
    let _ = terminal.draw(|frame| draw(frame, &busy(), FULL));
    assert!(colours(&terminal) > 0);
}

#[test]
fn texts_are_cut_after_words_and_names_anywhere() {
    let text = "reads to 1,000 IOPS";
    let cut: Vec<String> = (0..=text.len()).map(|columns| fit(text, columns)).collect();
    assert_eq!(cut[18..], ["reads to 1,000 ..", text]);
    assert_eq!(cut[16], "reads to ..");
    assert_eq!(cut[8], "reads ..");
    assert_eq!(cut[6], "read..", "the first word does not fit");
    assert!(cut.iter().enumerate().all(|(columns, line)| line.len() <= columns), "{cut:?}");
    assert_eq!(
        [fit_name("RND4K Q1T1 read", 14), fit_name("RND4K Q1T1 write", 14)],
        ["RND4K Q1T1 r..", "RND4K Q1T1 w.."]
    );
}
