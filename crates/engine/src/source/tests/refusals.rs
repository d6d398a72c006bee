//! Tests of invalid streams.

use super::*;

/// Returns the message of a refused stream.
fn refused(change: impl FnOnce(&mut Stream)) -> String {
    let mut stream = stream(Order::Random);
    stream.access.lines[0].mix = model::job::Mix::from_percents(50, 0);
    change(&mut stream);
    let count = stream.targets.len();
    match lanes(&stream, &vec![1 << 20; count], &vec![512; count], &worker_context(0, 2)) {
        Ok(_) => panic!("{stream:?} was accepted"),
        Err(why) => why,
    }
}

#[test]
fn invalid_streams_are_refused_with_a_message() {
    type Change = fn(&mut Stream);
    let cases: &[(&str, Change)] = &[
        ("fits into the 0 B", |s| s.access.offset_bytes = 2 << 20),
        ("fits into the", |s| s.access.span_bytes = 4095),
        ("fits into the", |s| s.access.lines[0].reply_bytes = 1 << 20),
        ("an offset of 100 bytes", |s| s.access.offset_bytes = 100),
        ("a size of 1000 bytes", |s| resize(s, &Sizes::Fixed(1000))),
        ("a size of 100 bytes", |s| s.access.lines[0].reply_bytes = 100),
        ("0 bytes", |s| resize(s, &Sizes::Fixed(0))),
        ("widen the range", |s| resize(s, &Sizes::Range(8192, 4096))),
        ("widen the range", |s| resize(s, &Sizes::Range(0, 0))),
        ("weights of sizes", |s| resize(s, &Sizes::Split(vec![]))),
        ("weights of sizes", |s| resize(s, &Sizes::Split(vec![(4096, 0)]))),
        ("weights of the access's lines", |s| s.access.lines.clear()),
        ("weights of the access's lines", |s| s.access.lines[0].weight = 0),
        ("exceed 100 %", |s| s.access.lines[0].mix = model::job::Mix::from_percents(50, 51)),
        ("zipf", |s| s.access.lines[0].order = Order::Zipf(-1.0)),
        ("pareto", |s| s.access.lines[0].order = Order::Pareto(1.0)),
        ("pareto", |s| s.access.lines[0].order = Order::Pareto(f64::NAN)),
        ("normal", |s| s.access.lines[0].order = Order::Normal(0.0)),
        ("% random", |s| s.access.lines[0].order = Order::Mixed(100.1)),
        ("zones' shares", |s| s.access.lines[0].order = Order::Zones(vec![])),
        ("has no block", |s| {
            let zone = |p| Zone { access_percent: 50.0, size: ZoneSize::Percent(p) };
            s.access.lines[0].order = Order::Zones(vec![zone(100.0), zone(10.0)]);
        }),
        ("a size of NaN %", |s| {
            let zone = Zone { access_percent: 100.0, size: ZoneSize::Percent(f64::NAN) };
            s.access.lines[0].order = Order::Zones(vec![zone]);
        }),
        ("separate position for each direction", |s| {
            let line = &mut s.access.lines[0];
            line.order = Order::Sequential(Steps { start: Start::Interlocked, ..Steps::default() });
            line.positions = Positions::Own;
        }),
        ("0 per second", |s| s.pace = Pace::Open { iops: 0.0, arrivals: Arrivals::Poisson }),
        ("-1 per second", |s| s.pace = Pace::Limited { iops: -1.0, bytes_per_s: 0.0 }),
        ("every 0 writes", |s| {
            s.flush = Some(Flush { call: SyncCall::Fsync, every: 0, calls: 1, drain: false });
        }),
        ("2 weights", |s| {
            (s.targets, s.sharing) = (vec![0, 1, 2], Sharing::Weighted(vec![1, 1]));
        }),
        ("weights of the targets", |s| {
            (s.targets, s.sharing) = (vec![0, 1], Sharing::Weighted(vec![0, 0]));
        }),
        ("at least one", |s| s.targets.clear()),
        ("pauses", |s| {
            s.access.lines[0].delay_ns = 1;
            s.pace = Pace::Limited { iops: 1.0, bytes_per_s: 0.0 };
        }),
        ("pauses", |s| {
            s.bursts = Some(model::job::Bursts { time_ns: 1, pause_ns: 1, operations: None });
            s.pace = Pace::Limited { iops: 1.0, bytes_per_s: 0.0 };
        }),
    ];
    for (expected, change) in cases {
        let why = refused(change);
        assert!(why.contains(expected), "{expected:?} is not in {why:?}");
    }
}

#[test]
fn a_worker_without_blocks_is_refused() {
    let stream = stream(Order::Once);
    let context = worker_context(100, 101);
    let why = lanes(&stream, &[1 << 20], &[512], &context).err().unwrap_or_default();
    assert!(why.contains("fewer workers"), "{why}");
    let why = lanes(&stream, &[1 << 20], &[512], &WorkerContext { worker: 3, workers: 3, ..context })
        .err()
        .unwrap_or_default();
    assert!(why.contains("no worker 3"), "{why}");
}
