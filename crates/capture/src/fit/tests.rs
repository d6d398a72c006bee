//! Known loads, and the jobs that are fitted to them.

use super::*;
use model::captured::Origin;
use trace::row::{Flags, Names, Row, RowKind, Task};

/// Pseudo-random numbers, the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = model::payload::split_mix(self.0);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }

    /// A lognormal number with this median (normal numbers by Box and Muller, 1958).
    fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let normal =
            (-2.0 * (1.0 - self.next()).ln()).sqrt() * (2.0 * std::f64::consts::PI * self.next()).cos();
        median * (sigma * normal).exp()
    }
}

/// A load whose rows a test adds one by one.
struct Load {
    names: Names,
    rows: Vec<Row>,
    random: Random,
}

impl Load {
    fn new() -> Self {
        Self { names: Names::default(), rows: Vec::new(), random: Random(7) }
    }

    fn task(&mut self, name: &str, tid: u32) -> u32 {
        self.names.task(&Task { tid, pid: Some(tid), name: name.into(), ..Task::default() })
    }

    /// Adds a request that was issued at `at_us` and took `took_us`.
    fn add(&mut self, at_us: f64, letters: &str, sector: u64, sectors: u32, task: u32, took_us: f64) {
        let flags = self.names.flags(&Flags::parse(letters));
        let latency_ns = Some((took_us * 1000.0) as u64);
        self.rows.push(Row {
            issue_ns: (at_us * 1000.0) as u64,
            latency_ns,
            sector,
            sectors,
            flags,
            task,
            queued_ns: None,
        });
    }

    fn flush(&mut self, at_us: f64, task: u32, took_us: f64) {
        let flags = self.names.flags(&Flags { kind: RowKind::RequestedFlush, ..Flags::parse("FWS") });
        let latency_ns = Some((took_us * 1000.0) as u64);
        self.rows.push(Row { issue_ns: (at_us * 1000.0) as u64, latency_ns, flags, task, ..Row::default() });
    }

    fn fitted(mut self) -> Result<String, CannotFit> {
        self.rows.sort_by_key(|row| row.issue_ns);
        let origin = Origin::default();
        let mut survey = Survey::new(&origin);
        self.rows.chunks(1000).for_each(|rows| survey.add(rows, &self.names));
        let mut gathering = Gathering::new(&origin, survey, &self.names)?;
        self.rows.chunks(1000).for_each(|rows| gathering.add(rows, &self.names));
        let head = Head { capture: "x.capture".into(), device: "sda".into(), ..Head::default() };
        Ok(gathering.finish().toml(&head))
    }
}

/// Returns the value of a key in the first stream whose name begins with `stream`.
#[track_caller]
fn value<'t>(job: &'t str, stream: &str, key: &str) -> Option<&'t str> {
    let mut inside = false;
    for line in job.lines() {
        if let Some(name) = line.strip_prefix("name = \"") {
            inside = name.starts_with(stream);
        }
        if let Some(rest) =
            line.strip_prefix(key).and_then(|rest| rest.strip_prefix(" = ")).filter(|_| inside)
        {
            return Some(rest.split("  #").next().unwrap_or(rest).trim().trim_matches('"'));
        }
    }
    None
}

#[track_caller]
fn number(job: &str, stream: &str, key: &str) -> f64 {
    let text = value(job, stream, key).unwrap_or_else(|| panic!("no {key} of {stream}:\n{job}"));
    text.parse().unwrap_or_else(|_| panic!("{key} of {stream} is {text}:\n{job}"))
}

#[track_caller]
fn near(found: f64, truth: f64, share: f64) {
    assert!((found / truth - 1.0).abs() <= share, "{found}, not {truth}");
}

/// The value of a key in the `[[stream.turn]]` table with this index, counted over all streams.
#[track_caller]
fn in_turn(job: &str, turn: usize, key: &str) -> f64 {
    let table =
        job.split("[[stream.turn]]\n").nth(turn + 1).unwrap_or_else(|| panic!("no turn {turn}:\n{job}"));
    let line = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    let text = line.unwrap_or_else(|| panic!("no {key}:\n{job}"));
    text.split("  #").next().and_then(|text| text.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Converts a time of a fitted job to us.
fn typed_us(text: &str) -> f64 {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("{text}"));
    match unit {
        "ns" => number / 1000.0,
        "us" => number,
        other => panic!("a time in {other}: {text}"),
    }
}

#[test]
fn poisson_arrivals_in_two_zones_are_recovered() {
    let mut load = Load::new();
    let task = load.task("oltp", 7);
    let mut at = 0.0;
    let span = 1 << 21;
    while at < 20e6 {
        at += load.random.exponential(500.0);
        // Nine tenths of the operations go to the first tenth.
        let hot = load.random.next() < 0.9;
        let place = load.random.next() * if hot { 0.1 } else { 0.9 } + if hot { 0.0 } else { 0.1 };
        let sectors = if load.random.next() < 0.004 { 128 } else { 8 };
        let sector = (place * f64::from(span)) as u64 / 8 * 8;
        load.add(at, "RS", sector, sectors, task, 300.0);
    }
    let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
    near(number(&job, "oltp", "rate"), 2000.0, 0.02);
    assert_eq!(value(&job, "oltp", "arrivals"), Some("poisson"), "{job}");
    assert_eq!(value(&job, "oltp", "rw"), Some("randread"), "{job}");
    let sizes = value(&job, "oltp", "bs").unwrap_or_default();
    let share = sizes.strip_prefix("4k:99.").and_then(|rest| rest.split(',').next()?.parse::<f64>().ok());
    assert!(sizes.contains(",64k:0.") && share.is_some(), "{job}");
    let zones =
        value(&job, "oltp", "random").and_then(|text| text.strip_prefix("zones:")).unwrap_or_default();
    let zones: Vec<(f64, f64)> = zones
        .split(',')
        .filter_map(|zone| zone.split_once('/'))
        .map(|(share, bytes)| {
            (share.parse().unwrap_or(0.0), model::units::parse_bytes(bytes).unwrap_or(0) as f64)
        })
        .collect();
    let (mut bytes, mut operations) = (0.0, 0.0);
    for (share, size) in zones {
        if bytes < 0.099 * f64::from(span) * 512.0 {
            operations += share;
        }
        bytes += size;
    }
    near(operations, 90.0, 0.02);
    near(bytes, f64::from(span) * 512.0, 0.01);
}

#[test]
fn a_closed_loop_is_recovered_with_think_time_and_flushes() {
    let mut load = Load::new();
    let task = load.task("log", 7);
    let (mut at, mut sector) = (0.0, 0);
    let mut thought = 0.0;
    let count = 30_000;
    for write in 0..count {
        let think = load.random.lognormal(400.0, 0.6);
        thought += think;
        at += think;
        load.add(at, "WS", sector, 8, task, 100.0);
        at += 100.0;
        sector += 8;
        if write % 3 == 2 {
            load.flush(at, task, 200.0);
            at += 200.0;
        }
    }
    let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((value(&job, "log", "rw"), value(&job, "log", "depth")), (Some("write"), Some("1")), "{job}");
    near(number(&job, "log", "fdatasync"), 3.0, 0.001);
    let think = value(&job, "log", "think")
        .and_then(|text| text.strip_prefix("lognormal:"))
        .unwrap_or_else(|| panic!("{job}"));
    let ns = |text: &str| text.strip_suffix("ns").and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
    let (median, mean) = think.split_once('/').map_or((0.0, 0.0), |(a, b)| (ns(a), ns(b)));
    // The fit subtracts 10 us, the overhead of any program.
    near(median + 10_000.0, 400_000.0, 0.02);
    near(mean + 10_000.0, 1000.0 * thought / f64::from(count), 0.01);
    assert_eq!(value(&job, "log", "rate"), None, "{job}");
}

#[test]
fn batches_are_recovered_and_flushes_of_others_follow_writes() {
    let mut load = Load::new();
    let (writer, other) = (load.task("writer", 7), load.task("syncer", 8));
    let mut at = 0.0;
    while at < 30e6 {
        at += load.random.exponential(8000.0);
        let mut within = 0.0;
        // The number of writes is geometric with mean 4.
        loop {
            let sector = (load.random.next() * 100_000.0) as u64 * 8;
            load.add(at + within, "W", sector, 8, writer, 50.0);
            within += 1.0;
            if load.random.next() < 0.25 {
                break;
            }
        }
        load.flush(at + 100.0, other, 100.0);
    }
    let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
    near(number(&job, "writer", "rate"), 500.0, 0.08);
    let batch = value(&job, "writer", "arrivals").and_then(|text| text.strip_prefix("batch:"));
    near(batch.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{job}")), 4.0, 0.15);
    near(number(&job, "writer", "fdatasync"), 4.0, 0.05);
    assert_eq!(value(&job, "writer", "batch"), Some("4"), "{job}");
    assert!(job.contains("requested by tasks that write nothing"), "{job}");
}

#[test]
fn a_task_that_does_two_things_in_turn_has_turns() {
    let mut load = Load::new();
    let task = load.task("sqlite", 7);
    let (mut at, mut wal) = (0.0, 0);
    for checkpoint in 0..60_u32 {
        for _ in 0..50 + checkpoint % 3 {
            at += load.random.exponential(300.0);
            load.add(at, "WS", wal % 8000, 80, task, 100.0);
            at += 110.0;
            wal += 80;
            load.flush(at, task, 100.0);
            at += 100.0;
        }
        at += 2000.0;
        for write in 0..400 {
            let sector = (1 << 20) + (load.random.next() * 1e5) as u64 * 8;
            // 100 writes at a time, each 200 us after the previous 100.
            load.add(at + f64::from(write / 100) * 200.0, "W", sector, 8, task, 210.0);
        }
        at += 900.0;
        load.flush(at, task, 500.0);
        at += 500.0;
    }
    let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (value(&job, "sqlite", "depth"), job.matches("[[stream]]").count()),
        (Some("200"), 1),
        "{job}"
    );
    assert_eq!(value(&job, "sqlite", "batch"), Some("100"), "{job}");
    near(in_turn(&job, 0, "ops"), 51.0, 0.02);
    near(in_turn(&job, 1, "ops"), 400.0, 0.001);
    near(in_turn(&job, 0, "fdatasync"), 1.0, 0.001);
    near(in_turn(&job, 1, "fdatasync"), 400.0, 0.001);
    near(in_turn(&job, 1, "burst"), 400.0, 0.001);
    assert!(job.contains("50 to 52 in each") && job.contains("rw = \"randwrite\""), "{job}");
    // The pause before a checkpoint belongs to the checkpoint, not to the commits.
    let table = job.split("[[stream.turn]]\n").nth(2).unwrap_or_default();
    assert!(table.contains("period = \"") && table.contains("of which 2.09 ms are idle"), "{job}");
}

#[test]
fn clocks_and_thinking_are_distinguished_and_runs_are_recovered() {
    let mut load = Load::new();
    let (clocked, reader) = (load.task("clocked", 7), load.task("reader", 8));
    for tick in 0..20_000_u64 {
        let took = 100.0 + 200.0 * load.random.next();
        load.add(tick as f64 * 1000.0, "WS", (1 << 30) + (tick % 997) * 64, 8, clocked, took);
    }
    // Three runs at once, with 5 operations each on average.
    let mut heads = [0_u64; 3];
    let mut at = 0.0;
    while at < 20e6 {
        at += load.random.exponential(400.0);
        let head = (load.random.next() * 3.0) as usize;
        if load.random.next() < 0.2 {
            heads[head] = (load.random.next() * 1e6) as u64 * 64;
        }
        load.add(at, "R", heads[head], 8, reader, 300.0);
        heads[head] += 8;
    }
    let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
    near(number(&job, "clocked", "limit-iops"), 1000.0, 0.01);
    near(number(&job, "reader", "run-length"), 5.0, 0.15);
    assert_eq!(value(&job, "reader", "interleaved"), Some("3"), "{job}");
}

#[test]
fn rare_tasks_are_one_stream_and_late_tasks_start_late() {
    let mut load = Load::new();
    let (main, late) = (load.task("main", 1), load.task("late", 2));
    for at in 0..20_000 {
        let when = f64::from(at) * 500.0 + 400.0 * load.random.next();
        load.add(when, "R", u64::from(at as u32) * 7919 % 50_000 * 8, 8, main, 600.0);
    }
    for at in 0..2000 {
        load.add(6e6 + f64::from(at) * 1000.0, "W", u64::from(at as u32) * 7919 % 50_000 * 8, 8, late, 100.0);
    }
    for rare in 0..5 {
        let task = load.task(&format!("rare{}", ["a", "b", "c", "d", "e"][rare]), 10 + rare as u32);
        (0..20)
            .for_each(|at| load.add(f64::from(at) * 1e5, "R", u64::from(at as u32) * 8000, 8, task, 100.0));
    }
    let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
    assert!(value(&job, "other tasks", "rate").is_some() && job.contains("5 tasks"), "{job}");
    assert_eq!(value(&job, "late", "delay"), Some("6000000us"), "{job}");
    assert_eq!(value(&job, "late", "stop-after").map(|text| text.starts_with("19")), Some(true), "{job}");
}

#[test]
fn a_brief_part_keeps_its_operations_at_any_time() {
    for moment_us in [0.0, 3.0, 5e6, 9.4e6, 9.6e6, 9_998_900.0, 9_999_500.0, 9_999_999.0, 1e7] {
        let mut load = Load::new();
        let (main, brief) = (load.task("main", 1), load.task("brief", 2));
        for at in 0..=2000_u32 {
            load.add(f64::from(at) * 5000.0, "R", u64::from(at) * 7919 % 5000 * 8, 8, main, 60.0);
        }
        for at in 0..100_u32 {
            let when = (moment_us + f64::from(at)).min(1e7);
            load.add(when, "W", u64::from(at) * 7919 % 5000 * 8, 8, brief, 300.0);
        }
        let job = load.fitted().unwrap_or_else(|e| panic!("{e}"));
        let us = |key: &str| value(&job, "brief", key).map(typed_us);
        let time =
            job.lines().find_map(|line| line.strip_prefix("time = ")).map(|text| text.trim_matches('"'));
        let all = time.map_or_else(|| panic!("{job}"), typed_us);
        let active = us("stop-after").unwrap_or(all - us("delay").unwrap_or(0.0));
        let operations = number(&job, "brief", "rate") * active / 1e6;
        assert!((operations / 100.0 - 1.0).abs() < 0.01, "{operations} at {moment_us}:\n{job}");
    }
}

#[test]
fn an_empty_capture_is_an_error() {
    assert_eq!(Load::new().fitted(), Err(CannotFit::Requests));
    let mut flushes = Load::new();
    let task = flushes.task("syncer", 1);
    (0..10).for_each(|at| flushes.flush(f64::from(at) * 1000.0, task, 10.0));
    assert_eq!(flushes.fitted(), Err(CannotFit::Data(10)));
    let mut moment = Load::new();
    let task = moment.task("one", 1);
    moment.add(5.0, "R", 0, 8, task, 0.0);
    assert_eq!(moment.fitted(), Err(CannotFit::Time));
}
