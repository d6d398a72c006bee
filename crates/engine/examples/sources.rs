//! The cost of sources and data in ns per operation and GB/s: `cargo run --release -p fathom-io-engine --example sources`, before and
//! after a change to a source.
#![allow(clippy::print_stdout)]

use engine::source::{LOOK_AHEAD, Op, StreamState, WorkerContext, lanes};
use model::job::{
    Access, Arrivals, Data, Flush, Line, Mix, Order, Pace, PerKind, Sharing, Sizes, Start, Steps, Stream,
    SyncCall, Zone, ZoneSize,
};
use model::payload::Maker;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const REFILLS: usize = 50_000;
const TARGET_BYTES: u64 = 1 << 40;

fn line(order: Order, read_percent: u8) -> Line {
    Line { order, mix: Mix::from_percents(read_percent, 0), ..Line::default() }
}

fn stream(lines: Vec<Line>) -> Stream {
    let access = Access { offset_bytes: 0, span_bytes: u64::MAX, strided: None, lines };
    Stream { sharing: Sharing::RoundRobin, ..Stream::plain(access, 1, 1, "null") }
}

/// Operations of `count` lines with several sizes and directions, aligned, on four targets.
fn iometer(order: &Order, count: usize) -> Stream {
    let sizes = Sizes::Split(vec![(4096, 60), (8192, 30), (65_536, 10)]);
    let weighted = |weight, order: Order| Line {
        weight,
        sizes: PerKind { read: sizes.clone(), write: Sizes::Fixed(4096), trim: Sizes::Fixed(4096) },
        align_bytes: 4096,
        ..line(order, 67)
    };
    let lines = vec![
        weighted(50, order.clone()),
        weighted(30, Order::Random),
        weighted(20, Order::Sequential(Steps::default())),
    ];
    let lines = lines.into_iter().take(count).collect();
    Stream { targets: (0..4).collect(), sharing: Sharing::Weighted(vec![4, 3, 2, 1]), ..stream(lines) }
}

fn cases() -> Vec<(&'static str, Stream)> {
    let plain = |order| stream(vec![line(order, 100)]);
    let sequential = || Order::Sequential(Steps::default());
    let interlocked = Steps { start: Start::Interlocked, ..Steps::default() };
    let zones = [(80.0, 20.0), (20.0, 80.0)]
        .map(|(access_percent, p)| Zone { access_percent, size: ZoneSize::Percent(p) });
    let sized = |order| {
        let mut stream = plain(order);
        stream.access.lines[0].sizes.read = Sizes::Range(4096, 65_536);
        stream
    };
    let paced = |pace| Stream { pace, ..plain(Order::Random) };
    let flush = Some(Flush { call: SyncCall::Fsync, every: 8, calls: 1, drain: true });
    let zipf_of_four =
        Stream { targets: (0..4).collect(), sharing: Sharing::Random, ..plain(Order::Zipf(1.1)) };
    vec![
        ("sequential", plain(sequential())),
        ("sequential 70/30", stream(vec![line(sequential(), 70)])),
        ("sequential, interlocked", Stream { workers: 2, ..plain(Order::Sequential(interlocked)) }),
        ("sequential, sizes 4K-64K", sized(sequential())),
        ("random", plain(Order::Random)),
        ("random 70/30", stream(vec![line(Order::Random, 70)])),
        ("random, sizes 4K-64K", sized(Order::Random)),
        ("random, once", plain(Order::Once)),
        ("half random", plain(Order::Mixed(50.0))),
        ("zipf 0.8", plain(Order::Zipf(0.8))),
        ("zipf 1.1", plain(Order::Zipf(1.1))),
        ("zipf 1.1 of four targets", zipf_of_four),
        ("pareto 0.2", plain(Order::Pareto(0.2))),
        ("normal 10 %", plain(Order::Normal(10.0))),
        ("zones 80/20", plain(Order::Zones(zones.to_vec()))),
        ("random, poisson", paced(Pace::Open { iops: 1e6, arrivals: Arrivals::Poisson })),
        ("random, constant", paced(Pace::Open { iops: 1e6, arrivals: Arrivals::Constant })),
        ("random, limited", paced(Pace::Limited { iops: 1e6, bytes_per_s: 1e9 })),
        ("random write, sync each 8", Stream { flush, ..stream(vec![line(Order::Random, 0)]) }),
        ("iometer, 1 line, 4 targets, zipf", iometer(&Order::Zipf(1.1), 1)),
        ("iometer, 3 lines, 4 targets, zipf", iometer(&Order::Zipf(1.1), 3)),
        (
            "iometer, zipf, poisson",
            Stream {
                pace: Pace::Open { iops: 1e6, arrivals: Arrivals::Poisson },
                ..iometer(&Order::Zipf(1.1), 1)
            },
        ),
    ]
}

fn main() -> Result<(), String> {
    for (name, stream) in cases() {
        let count = stream.targets.len();
        let context = WorkerContext {
            worker: 0,
            workers: stream.workers,
            seed: 1,
            stream_state: Arc::new(StreamState::new(1)),
        };
        let mut source = lanes(&stream, &vec![TARGET_BYTES; count], &vec![512; count], &context)?.remove(0);
        let mut ops = [Op::NONE; LOOK_AHEAD];
        let ahead = source.look_ahead();
        // Keep the fastest of several tries: other work of the machine only makes a try slower.
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..REFILLS {
                source.refill(black_box(&mut ops[..ahead]));
            }
            best = best.min(start.elapsed().as_nanos() as f64 / (REFILLS * ahead) as f64);
        }
        println!("{name:36} {best:6.1} ns per operation");
    }
    for (name, data) in [
        ("unique", Data::default()),
        (
            "half compressible",
            Data::Random {
                compress_percent: 50,
                dedup_percent: 0,
                dedup_set_bytes: None,
                dedup_shared: false,
            },
        ),
        (
            "half copies",
            Data::Random {
                compress_percent: 0,
                dedup_percent: 50,
                dedup_set_bytes: None,
                dedup_shared: false,
            },
        ),
        ("zeros", Data::Zeros),
    ] {
        for block in [4096_usize, 1 << 20] {
            let mut maker = Maker::new(&data, None, 1)?;
            let mut buffer = vec![0_u8; block];
            let writes = (1 << 28) / block;
            let mut best = 0.0_f64;
            for _ in 0..5 {
                let start = Instant::now();
                for _ in 0..writes {
                    maker.fill(black_box(&mut buffer));
                }
                best = best.max((writes * block) as f64 / start.elapsed().as_nanos() as f64);
            }
            println!("{name:20} {block:8} bytes a write {best:6.1} GB/s");
        }
    }
    Ok(())
}
