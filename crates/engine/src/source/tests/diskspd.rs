//! Offsets as DISKSPD draws them: expectations from DISKSPD's published tests (`UnitTests/IORequestGenerator`, MIT licence), and features
//! that only DISKSPD's language has.

use super::*;
use model::job::Mix;

/// The first offsets of one of several threads: blocks of `block` bytes with a stride, on a file of 3000 bytes.
fn offsets(
    (block, stride): (u32, u64),
    start: Start,
    base: u64,
    (worker, workers): (u32, u32),
    count: usize,
) -> Vec<u64> {
    let steps = Steps { stride_bytes: stride, start, ..Steps::default() };
    let mut stream = endless(Order::Sequential(steps));
    stream.access.offset_bytes = base;
    stream.workers = workers;
    resize(&mut stream, &Sizes::Fixed(block));
    let mut lanes =
        lanes(&stream, &[3000], &[1], &worker_context(worker, workers)).unwrap_or_else(|e| panic!("{e}"));
    taken(&mut *lanes[0], count).iter().map(|op| op.offset).collect()
}

#[test]
fn threads_with_their_own_stride_wrap_to_their_own_places() {
    let thread_offsets = |thread, stride, size| offsets(size, Start::Every(stride), 0, (thread, 4), 7);
    // Test_SequentialWithStrideInterleaved: -c3000 -T250 -s500 -b1000
    assert_eq!(thread_offsets(0, 250, (1000, 500)), [0, 500, 1000, 1500, 2000, 0, 500]);
    assert_eq!(thread_offsets(1, 250, (1000, 500))[..6], [250, 750, 1250, 1750, 250, 750]);
    assert_eq!(thread_offsets(3, 250, (1000, 500))[..6], [750, 1250, 1750, 250, 750, 1250]);
    // Test_SequentialWithStride: -c3000 -T500 -s250 -b1000
    let thread_offsets = |thread| offsets((1000, 250), Start::Every(500), 0, (thread, 2), 16);
    let around = [0, 250, 500, 750, 1000, 1250, 1500, 1750, 2000];
    assert_eq!(thread_offsets(0), [&around[..], &around[..7]].concat());
    assert_eq!(thread_offsets(1), [&around[2..], &around[..]].concat());
    // Test_SequentialWithStrideUneven: -c3000 -T500 -s200 -b200
    let thread_offsets = |thread, count| offsets((200, 200), Start::Every(500), 0, (thread, 2), count);
    let even: Vec<u64> = (0..15).map(|i| i * 200).chain([0, 200, 400]).collect();
    assert_eq!(thread_offsets(0, 18), even);
    let odd: Vec<u64> = (0..12).map(|i| 500 + i * 200).chain([100, 300, 500, 700, 900]).collect();
    assert_eq!(thread_offsets(1, 17), odd);
}

#[test]
fn threads_without_a_stride_begin_at_the_same_place_and_interlocked_ones_share_it() {
    for worker in 0..2 {
        // Test_GetNextFileOffsetSequential, Test_GetThreadBaseFileOffset
        let thread_offsets = offsets((1000, 500), Start::Same, 1000, (worker, 2), 5);
        assert_eq!(thread_offsets, [1000, 1500, 2000, 1000, 1500]);
    }
    // Test_GetNextFileOffsetInterlockedSequential: threads 1, 1, 2, 1, 2
    let steps = Steps { stride_bytes: 500, start: Start::Interlocked, ..Steps::default() };
    let mut stream = endless(Order::Sequential(steps));
    (stream.access.offset_bytes, stream.workers) = (1000, 2);
    resize(&mut stream, &Sizes::Fixed(1000));
    let stream_state = Arc::new(StreamState::new(3));
    let mut both: Vec<_> = (0..2)
        .map(|worker| {
            let context =
                WorkerContext { stream_state: Arc::clone(&stream_state), ..worker_context(worker, 2) };
            lanes(&stream, &[3000], &[1], &context).unwrap_or_else(|e| panic!("{e}")).remove(0)
        })
        .collect();
    let drawn: Vec<u64> =
        [0, 0, 1, 0, 1].map(|thread: usize| taken(&mut *both[thread], 1)[0].offset).to_vec();
    assert_eq!(drawn, [1000, 1500, 2000, 1000, 1500]);
}

#[test]
fn parallel_operations_visit_each_place_equally_often() {
    // Test_GetNextFileOffsetParallelAsyncIO with three operations in flight: each of the three visits 1000, 1500, 2000, 1000, 1500
    let mut stream = endless(Order::Sequential(Steps { stride_bytes: 500, ..Steps::default() }));
    (stream.access.offset_bytes, stream.access.lines[0].times) = (1000, 3);
    stream.access.lines[0].mix = Mix::from_percents(50, 0);
    resize(&mut stream, &Sizes::Fixed(1000));
    let mut lanes = lanes(&stream, &[3000], &[1], &worker_context(0, 1)).unwrap_or_else(|e| panic!("{e}"));
    let ops = taken(&mut *lanes[0], 3000);
    for (at, op) in ops.iter().enumerate() {
        assert_eq!((op.offset, op.length), (1000 + 500 * (at as u64 / 3 % 3), 1000));
    }
    let writes = ops.iter().filter(|op| op.kind == Kind::Write).count();
    assert!(writes.abs_diff(1500) < 5 * 27, "each draws its direction: {writes}");
}

#[test]
fn runs_between_random_places_have_one_direction() {
    let mut stream = stream(Order::Mixed(20.0));
    (stream.access.lines[0].mix, stream.access.lines[0].mix_by_run) = (Mix::from_percents(50, 0), true);
    let ops = drawn(&stream, 100_000);
    let (mut changes, mut runs) = (0, 0);
    for pair in ops.windows(2) {
        let goes_on = pair[1].offset == pair[0].offset + 4096;
        runs += usize::from(!goes_on);
        changes += usize::from(pair[0].kind != pair[1].kind);
    }
    assert!(changes.abs_diff(runs / 2) < runs / 20, "{changes} changes in {runs} runs");
    let broken =
        ops.windows(2).filter(|p| p[1].offset == p[0].offset + 4096 && p[1].kind != p[0].kind).count();
    assert!(broken < 300, "{broken} of the draws that hit the next place by chance");
    let reads = ops.iter().filter(|op| op.kind == Kind::Read).count();
    assert!(reads.abs_diff(50_000) < 3000, "{reads}");
}

/// Returns the share of operations at each of `blocks` blocks of 4 KiB, in percent.
fn shares(zones: &[(f64, ZoneSize)], blocks: u64) -> Vec<f64> {
    let zones =
        zones.iter().map(|(access_percent, size)| Zone { access_percent: *access_percent, size: *size });
    let stream = endless(Order::Zones(zones.collect()));
    let mut lanes =
        lanes(&stream, &[blocks * 4096], &[1], &worker_context(0, 1)).unwrap_or_else(|e| panic!("{e}"));
    let mut hits = vec![0.0; blocks as usize];
    for op in taken(&mut *lanes[0], 200_000) {
        hits[(op.offset / 4096) as usize] += 100.0 / 200_000.0;
    }
    hits
}

#[test]
fn parts_of_a_target_contain_whole_blocks_and_end_with_it() {
    let percent = |io, part| (io, ZoneSize::Percent(part));
    // Test_ThreadTargetStateEffectiveDistPct: 100 KiB of 4 KiB, 10/10:10/10:0/10:80/70
    let all =
        shares(&[percent(10.0, 10.0), percent(10.0, 10.0), percent(0.0, 10.0), percent(80.0, 70.0)], 25);
    let sum = |from: usize, to: usize| all[from..to].iter().sum::<f64>();
    let parts = [sum(0, 2), sum(2, 5), sum(5, 7), sum(7, 25)];
    for (part, expected) in parts.into_iter().zip([10.0, 10.0, 0.0, 80.0]) {
        assert!((part - expected).abs() < 0.6, "{parts:?}");
    }
    // Test_ThreadTargetStateEffectiveDistAbs: two zones get 10 % each, and 80 % go to a zone beyond the end. So the two zones get all
    // operations.
    let part = |io, blocks: u64| (io, ZoneSize::UpTo(blocks * 4096));
    let all = shares(&[part(10.0, 10), part(10.0, 15), (80.0, ZoneSize::UpTo(u64::MAX))], 25);
    let halves = [all[..10].iter().sum::<f64>(), all[10..].iter().sum()];
    assert!(halves.iter().all(|half| (half - 50.0).abs() < 1.0), "{halves:?}");
    // The end of the target cuts off the second zone.
    let all = shares(&[part(10.0, 10), part(10.0, 20), (80.0, ZoneSize::UpTo(u64::MAX))], 20);
    assert!((all[10..].iter().sum::<f64>() - 50.0).abs() < 1.0, "{all:?}");
    let rest = shares(&[part(50.0, 5), part(0.0, 10), (50.0, ZoneSize::UpTo(u64::MAX))], 20);
    assert!(rest[5..15].iter().all(|s| *s == 0.0) && (rest[15..].iter().sum::<f64>() - 50.0).abs() < 1.0);
}
