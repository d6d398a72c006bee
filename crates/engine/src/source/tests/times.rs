//! Tests of syncs and arrival times.

use super::*;
use crate::source::tests::goodness_of_fit;

fn writing(order: Order, pace: Pace) -> Stream {
    let mut stream = stream(order);
    stream.access.lines[0].mix = model::job::Mix::from_percents(0, 0);
    Stream { pace, ..stream }
}

/// Returns the sorted times of a stream with several workers.
fn times(stream: &Stream, workers: u32, count: usize) -> Vec<u64> {
    let lane = |worker| compiled(stream, &worker_context(worker, workers));
    let mut times: Vec<u64> = (0..workers)
        .flat_map(lane)
        .flat_map(|mut source| taken(&mut *source, count))
        .map(|o| {
            assert_eq!(o.flags, Op::AT);
            o.at_ns
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn a_sync_follows_every_nth_write() {
    for (every, drain, flags) in
        [(1, false, 0), (4, false, 0), (3, true, Op::DRAINED), (100, true, Op::DRAINED)]
    {
        let mut stream = writing(Order::Random, Pace::Closed);
        stream.access.lines[0].mix = model::job::Mix::from_percents(30, 0);
        (stream.targets, stream.sharing) = (vec![0, 1], Sharing::Random);
        stream.flush = Some(Flush { call: SyncCall::Fsync, every, calls: 1, drain });
        let ops = drawn(&stream, 20_000);
        let (mut writes, mut file, mut next_flags) = (0, 0, 0);
        for op in &ops {
            if op.kind == Kind::Sync {
                assert_eq!(writes, every);
                assert_eq!(*op, Op { file, kind: Kind::Sync, flags, ..Op::NONE });
                (writes, next_flags) = (0, flags);
            } else {
                assert_ne!(writes, every, "a sync is missing");
                assert_eq!(op.flags, next_flags);
                next_flags = 0;
                if op.kind == Kind::Write {
                    (writes, file) = (writes + 1, op.file);
                }
            }
        }
        let syncs = ops.iter().filter(|o| o.kind == Kind::Sync).count();
        goodness_of_fit::assert_share(syncs * every as usize, 20_000 - syncs, 0.7);
    }
}

#[test]
fn a_stream_without_writes_is_never_flushed() {
    let mut stream = stream(Order::Random);
    stream.flush = Some(Flush { call: SyncCall::Fsync, every: 1, calls: 1, drain: true });
    assert!(drawn(&stream, 1000).iter().all(|o| (o.kind, o.flags) == (Kind::Read, 0)));
}

#[test]
fn constant_arrivals_of_all_workers_stay_evenly_spaced() {
    // The period is 142 857.142857... ns. If each gap were rounded to whole ns, the times would drift.
    let mut stream = stream(Order::Random);
    stream.pace = Pace::Open { iops: 7000.0, arrivals: Arrivals::Constant };
    stream.targets = vec![0, 1];
    for workers in [1, 3] {
        let lanes = 2 * u128::from(workers);
        let times = times(&stream, workers, 100_000);
        for (i, at_ns) in times.iter().enumerate() {
            let exact = i as u128 * 1_000_000_000 / 7000;
            assert!(
                u128::from(*at_ns).abs_diff(exact) <= 1,
                "operation {i} of {lanes} lanes: {at_ns}, not {exact}"
            );
        }
        assert_eq!(times.len() as u128, lanes * 100_000);
    }
}

#[test]
fn poisson_arrivals_of_all_workers_are_one_poisson_process() {
    let mut stream = stream(Order::Random);
    stream.pace = Pace::Open { iops: 50_000.0, arrivals: Arrivals::Poisson };
    stream.targets = vec![0, 1];
    let count = 50_000;
    let times = times(&stream, 2, count);
    // Use only times before the slowest lane's end. After it the stream is incomplete.
    let whole = &times[..4 * count * 9 / 10];
    let mut gaps: Vec<f64> = whole.windows(2).map(|w| (w[1] - w[0]) as f64 / 20_000.0).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
    assert!((mean - 1.0).abs() < 5.0 / n.sqrt(), "mean {mean}");
    // The variance of an exponential sample's variance is 8/n.
    assert!((variance - 1.0).abs() < 5.0 * (8.0 / n).sqrt(), "variance {variance}");
    // Successive gaps are independent.
    let product = gaps.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n;
    assert!(product.abs() < 5.0 / n.sqrt(), "correlation {product}");
    gaps.sort_unstable_by(f64::total_cmp);
    let distance = gaps.iter().enumerate().map(|(i, g)| (i as f64 / n - (1.0 - (-g).exp())).abs());
    let kolmogorov = distance.fold(0.0, f64::max) * n.sqrt();
    // This limit gives one false alarm in a thousand.
    assert!(kolmogorov < 1.95, "Kolmogorov-Smirnov {kolmogorov}");
}

#[test]
fn a_limit_schedules_operations_and_bytes() {
    let limited = |iops, bytes_per_s| writing(Order::Random, Pace::Limited { iops, bytes_per_s });
    let at = |stream: &Stream| drawn(stream, 1000).iter().map(|o| o.at_ns).collect::<Vec<_>>();
    assert_eq!(at(&limited(1000.0, 0.0))[..3], [0, 1_000_000, 2_000_000]);
    assert_eq!(at(&limited(0.0, 4_096_000.0))[999], 999_000_000);
    // The lower of two limits applies.
    assert_eq!(at(&limited(1000.0, 2_048_000.0))[999], 1_998_000_000);
    assert_eq!(at(&limited(1000.0, 1e12))[999], 999_000_000);
    assert!(drawn(&limited(0.0, 0.0), 100).iter().all(|o| o.flags == 0));
    // Each of six lanes gets a sixth.
    let mut shared = limited(600.0, 0.0);
    shared.targets = vec![0, 1];
    let six = times(&shared, 3, 100);
    assert_eq!((six[0], six[599]), (0, 990_000_000));
    // The time of an operation depends on the bytes of all earlier operations.
    let mut sizes = limited(0.0, 1e9);
    resize(&mut sizes, &Sizes::Split(vec![(512, 1), (8192, 1)]));
    let ops = drawn(&sizes, 1000);
    let paid = |i: usize| ops[..i].iter().map(|o| u64::from(o.length)).sum::<u64>();
    assert!(ops.iter().enumerate().all(|(i, o)| o.at_ns == paid(i)));
}

#[test]
fn a_sync_takes_the_time_of_the_write_before_it_and_costs_nothing() {
    for pace in [
        Pace::Open { iops: 1000.0, arrivals: Arrivals::Constant },
        Pace::Open { iops: 1000.0, arrivals: Arrivals::Poisson },
        Pace::Limited { iops: 1000.0, bytes_per_s: 0.0 },
    ] {
        let mut stream = writing(Order::Random, pace);
        stream.flush = Some(Flush { call: SyncCall::Fdatasync, every: 2, calls: 1, drain: true });
        let ops = drawn(&stream, 3000);
        assert!(ops.iter().all(|o| o.flags & Op::AT > 0));
        for three in ops.as_chunks::<3>().0 {
            assert_eq!(three.map(|o| o.kind), [Kind::Write, Kind::Write, Kind::Sync]);
            assert_eq!(three[2].at_ns, three[1].at_ns);
            assert_eq!(three[2].flags, Op::AT | Op::DRAINED);
        }
        let last_ns = ops[2999].at_ns;
        assert!((1.7e9..2.3e9).contains(&(last_ns as f64)), "{pace:?}: {last_ns}");
    }
}

#[test]
fn syncs_after_a_fraction_of_writes_are_evenly_spread() {
    let mut stream = writing(Order::Random, Pace::Closed);
    for (every, calls) in [(29, 10), (3, 10), (7, 2), (5, 1)] {
        stream.flush = Some(Flush { call: SyncCall::Fdatasync, every, calls, drain: false });
        let ops = drawn(&stream, 50_000);
        let (mut writes, mut syncs) = (0_i64, 0_i64);
        for op in &ops {
            if op.kind == Kind::Sync {
                syncs += 1;
            } else {
                writes += 1;
            }
            // Syncs are never early, and at most one write late.
            let due = writes * i64::from(calls) - syncs * i64::from(every);
            assert!((0..i64::from(every + calls)).contains(&due), "{every} {calls}: {writes} {syncs}");
        }
        goodness_of_fit::assert_share(syncs as usize, ops.len(), f64::from(calls) / f64::from(calls + every));
    }
}

/// Returns the index of dispersion of the number of arrivals per interval of `interval_ns`.
fn dispersion(times: &[u64], interval_ns: u64) -> f64 {
    let last = times.last().copied().unwrap_or(0) / interval_ns;
    let mut counts = vec![0.0; last as usize];
    times
        .iter()
        .filter(|at| **at / interval_ns < last)
        .for_each(|at| counts[(at / interval_ns) as usize] += 1.0);
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn bursty_arrivals_have_the_theoretical_rate_and_dispersion() {
    let mut stream = stream(Order::Random);
    let iops = 2000.0;
    let mut at = |arrivals| {
        stream.pace = Pace::Open { iops, arrivals };
        drawn(&stream, 400_000).iter().map(|op| op.at_ns).collect::<Vec<_>>()
    };
    let is = |found: f64, theory: f64, share: f64| {
        assert!((found / theory - 1.0).abs() < share, "{found}, not {theory}");
    };
    let rate = |times: &[u64]| times.len() as f64 / (times[times.len() - 1] as f64 / 1e9);
    // Geometric batches: the dispersion is E B^2 / E B = 2 b - 1 for any interval length.
    let batches = at(Arrivals::Batch { mean: 4.0 });
    is(rate(&batches), iops, 0.03);
    is(dispersion(&batches, 10_000_000), 7.0, 0.05);
    is(dispersion(&batches, 100_000_000), 7.0, 0.1);
    let (on_ns, off_ns) = (5_000_000, 15_000_000);
    let times = at(Arrivals::OnOff { on_ns, off_ns });
    is(rate(&times), iops, 0.05);
    // An interrupted Poisson process: Fischer and Meier-Hellstern (1993).
    let (change, on) = (1.0 / 0.005 + 1.0 / 0.015, 0.25);
    for interval_s in [0.01, 0.1] {
        let x: f64 = change * interval_s;
        let theory = 1.0 + 2.0 * iops * (1.0 - on) / on / change * (1.0 - (1.0 - (-x).exp()) / x);
        is(dispersion(&times, (interval_s * 1e9) as u64), theory, 0.12);
    }
}
