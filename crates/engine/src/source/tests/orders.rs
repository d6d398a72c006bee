//! Tests of places, directions, sizes and targets.

use super::*;
use crate::source::tests::goodness_of_fit;

#[test]
fn sequential_visits_each_block_in_order_and_wraps() {
    let mut stream = stream(Order::Sequential(Steps::default()));
    stream.workers = 4;
    let ops = taken(&mut *compiled(&stream, &worker_context(1, 4))[0], 250);
    assert_eq!(ops[0].offset, 8192 + 25 * 4096);
    assert!(ops.windows(2).all(|w| w[1].offset == w[0].offset + 4096 || w[1].offset == 8192));
    assert_eq!(ops[75].offset, 8192);
    assert!(ops.iter().all(|o| (o.length, o.kind, o.flags, o.at_ns) == (4096, Kind::Read, 0, 0)));
}

#[test]
fn the_offsets_of_diskspd_are_reproduced() {
    let steps = Steps { stride_bytes: 500, ..Steps::default() };
    let mut stream = endless(Order::Sequential(steps));
    stream.access.offset_bytes = 1000;
    resize(&mut stream, &Sizes::Fixed(1000));
    let mut offsets = |mix, count: usize| -> Vec<u64> {
        // Drawing a mix must not change the offsets.
        stream.access.lines[0].mix = model::job::Mix::from_percents(mix, 0);
        let mut lanes =
            lanes(&stream, &[3000], &[1], &worker_context(0, 1)).unwrap_or_else(|e| panic!("{e}"));
        taken(&mut *lanes[0], count).iter().map(|o| o.offset).collect()
    };
    assert_eq!(offsets(100, 5), [1000, 1500, 2000, 1000, 1500]);
    assert_eq!(offsets(50, 5), [1000, 1500, 2000, 1000, 1500]);
}

#[test]
fn random_places_are_uniform_and_limited_to_the_target() {
    goodness_of_fit::assert_even(&hits(&drawn(&stream(Order::Random), 100_000), 100));
    let mut cut = endless(Order::Random);
    cut.access.offset_bytes = 8192;
    let mut lanes = lanes(&cut, &[8192 + 4096 * 3 + 100], &[512], &worker_context(0, 1))
        .unwrap_or_else(|e| panic!("{e}"));
    goodness_of_fit::assert_even(&hits(&taken(&mut *lanes[0], 10_000), 3));
}

#[test]
fn random_places_of_each_size_are_all_places_where_it_fits() {
    let mut stream = stream(Order::Random);
    resize(&mut stream, &Sizes::Split(vec![(4096, 50), (40_960, 50)]));
    let ops = drawn(&stream, 100_000);
    let with_size = |size| ops.iter().filter(|o| o.length == size).copied().collect::<Vec<_>>();
    goodness_of_fit::assert_even(&hits(&with_size(4096), 100));
    goodness_of_fit::assert_even(&hits(&with_size(40_960), 91));
}

#[test]
fn once_visits_each_block_once_per_pass_over_all_workers() {
    let (stream, stream_state) = (stream(Order::Once), Arc::new(StreamState::new(3)));
    for workers in [1_u32, 3, 7, 100] {
        let mut passes = vec![vec![0_u64; 100]; 3];
        let mut first = Vec::new();
        for worker in 0..workers {
            let context =
                WorkerContext { stream_state: Arc::clone(&stream_state), ..worker_context(worker, workers) };
            let mut source = compiled(&stream, &context).remove(0);
            let own = (worker..100).step_by(workers as usize).count();
            for pass in &mut passes {
                let ops = taken(&mut *source, own);
                hits(&ops, 100).iter().zip(pass).for_each(|(h, p)| *p += h);
                first.push(ops[0].offset);
            }
        }
        assert!(passes.iter().flatten().all(|hits| *hits == 1), "{workers} workers");
        assert!(workers > 1 || (first[0] != first[1] && first[1] != first[2]), "each pass in the same order");
    }
}

#[test]
fn mixed_runs_have_geometric_lengths() {
    let mut mixed = endless(Order::Mixed(20.0));
    resize(&mut mixed, &Sizes::Fixed(512));
    let mut lanes =
        lanes(&mixed, &[1 << 40], &[512], &worker_context(0, 1)).unwrap_or_else(|e| panic!("{e}"));
    let ops = taken(&mut *lanes[0], 200_000);
    let (mut lengths, mut run) = (vec![0_u64; 100], 0);
    for pair in ops.windows(2) {
        if pair[1].offset == pair[0].offset + 512 {
            run += 1;
        } else {
            lengths[run] += 1;
            run = 0;
        }
    }
    // Of 2^31 places, a random place is almost never the one after the previous place.
    let chances: Vec<f64> = (0..100).map(|k| 0.8_f64.powi(k) * 0.2).collect();
    goodness_of_fit::assert_fit(&lengths, &chances);
    for (percent, jumps) in [(0.0, 0), (100.0, 9999)] {
        let ops = drawn(&endless(Order::Mixed(percent)), 10_000);
        let seen = ops.windows(2).filter(|w| w[1].offset != (w[0].offset + 4096) % (1 << 20)).count();
        assert!(seen.abs_diff(jumps) < 100, "{percent} %: {seen}");
    }
}

#[test]
fn hot_blocks_are_scattered_and_equal_for_all_workers_and_runs() {
    for order in [Order::Zipf(1.1), Order::Pareto(0.2)] {
        let order_of = |worker, stream_seed: u64| {
            let context = WorkerContext {
                stream_state: Arc::new(StreamState::new(stream_seed)),
                ..worker_context(worker, 4)
            };
            let ops = taken(&mut *compiled(&stream(order.clone()), &context)[0], 300_000);
            let mut blocks: Vec<(u64, usize)> = hits(&ops, 100).into_iter().zip(0..).collect();
            blocks.sort_unstable_by(|a, b| b.cmp(a));
            blocks[..4].iter().map(|b| b.1).collect::<Vec<_>>()
        };
        let hot = order_of(0, 3);
        assert_eq!(hot[..2], order_of(1, 3)[..2]);
        assert_ne!(hot, order_of(0, 4), "another plan has other hot blocks");
        assert!(hot.windows(2).any(|w| w[0].abs_diff(w[1]) > 4), "{hot:?} are neighbours");
    }
}

/// How often each rank was drawn, found by reversing the permutation of a plan with seed 3.
fn ranks(ops: &[Op], blocks: u64, scatter_of: impl Fn(u64) -> u64) -> Vec<u64> {
    let rank_of: HashMap<u64, usize> = (0..blocks).map(|r| (scatter_of(r), r as usize)).collect();
    let mut seen = vec![0; blocks as usize];
    for op in ops {
        seen[rank_of[&((op.offset - 8192) / 4096)]] += 1;
    }
    seen
}

#[test]
fn zipf_and_pareto_follow_their_laws() {
    let key = model::payload::split_mix(StreamState::new(3).seed(0) ^ 0x7363_6174);
    let permutation = crate::source::order::Permutation::new(100, key);
    for theta in [0.0, 0.8, 1.0, 1.5] {
        let seen = ranks(&drawn(&stream(Order::Zipf(theta)), 200_000), 100, |r| permutation.position(r));
        goodness_of_fit::assert_fit(&seen, &(1..=100).map(|k| f64::from(k).powf(-theta)).collect::<Vec<_>>());
    }
    for h in [0.01, 0.1, 0.2, 0.5, 0.9_f64] {
        let ops = drawn(&stream(Order::Pareto(h)), 200_000);
        let seen = ranks(&ops, 100, |r| permutation.position(r));
        // The expected share of operations in the first `part` of the blocks. For the part h it is 1 - h.
        let share = |part: f64| part.powf((1.0 - h).ln() / h.ln());
        assert!((share(h) - (1.0 - h)).abs() < 1e-12);
        let weights: Vec<f64> =
            (0..100).map(|r| share(f64::from(r + 1) / 100.0) - share(f64::from(r) / 100.0)).collect();
        goodness_of_fit::assert_fit(&seen, &weights);
        let hot = seen[..(h * 100.0).round() as usize].iter().sum::<u64>();
        goodness_of_fit::assert_share(hot as usize, 200_000, 1.0 - h);
    }
}

#[test]
fn normal_is_a_bell_of_any_width_around_the_middle() {
    use statrs::distribution::{ContinuousCDF, Normal};
    for percent in [3.0, 20.0, 39.9, 40.0, 100.0, 1e9] {
        let bell = Normal::new(50.0, percent).unwrap_or_else(|e| panic!("{e}"));
        let seen = hits(&drawn(&stream(Order::Normal(percent)), 100_000), 100);
        let weights: Vec<f64> =
            (0..100).map(|b| bell.cdf(f64::from(b + 1)) - bell.cdf(f64::from(b))).collect();
        goodness_of_fit::assert_fit(&seen, &weights);
    }
}

#[test]
fn zones_get_their_shares_and_are_uniform_inside() {
    let zone = |access_percent, size| Zone { access_percent, size };
    let percents = [zone(90.0, ZoneSize::Percent(10.0)), zone(10.0, ZoneSize::Percent(90.0))];
    let seen = hits(&drawn(&stream(Order::Zones(percents.to_vec())), 100_000), 100);
    goodness_of_fit::assert_fit(
        &seen,
        &(0..100).map(|b| if b < 10 { 9.0 } else { 1.0 / 9.0 }).collect::<Vec<_>>(),
    );
    let bytes = [
        zone(60.0, ZoneSize::Bytes(5 * 4096)),
        zone(0.0, ZoneSize::Percent(20.0)),
        zone(40.0, ZoneSize::Bytes(u64::MAX)),
    ];
    let seen = hits(&drawn(&stream(Order::Zones(bytes.to_vec())), 100_000), 100);
    let weight = |b| {
        if b < 5 {
            12.0
        } else if b < 25 {
            0.0
        } else {
            40.0 / 75.0
        }
    };
    goodness_of_fit::assert_fit(&seen, &(0..100).map(weight).collect::<Vec<_>>());
    let thirds = vec![zone(100.0 / 3.0, ZoneSize::Percent(100.0 / 3.0)); 3];
    goodness_of_fit::assert_even(&hits(&drawn(&stream(Order::Zones(thirds)), 100_000), 100));
}

#[test]
fn directions_are_drawn_exactly() {
    for order in [Order::Random, Order::Sequential(Steps::default()), Order::Once] {
        for (read_percent, trim_percent) in [(100, 0), (0, 0), (0, 100), (70, 0), (60, 10), (0, 5), (99, 1)] {
            let mut stream = stream(order.clone());
            stream.access.lines[0].mix = model::job::Mix::from_percents(read_percent, trim_percent);
            let seen = counts(drawn(&stream, 100_000).iter().map(|o| o.kind));
            let share = |kind| seen.get(&kind).copied().unwrap_or(0);
            let chance = |percent: u8| f64::from(percent) / 100.0;
            goodness_of_fit::assert_share(share(Kind::Read), 100_000, chance(read_percent));
            goodness_of_fit::assert_share(share(Kind::Trim), 100_000, chance(trim_percent));
            goodness_of_fit::assert_share(
                share(Kind::Write),
                100_000,
                chance(100 - read_percent - trim_percent),
            );
        }
    }
}

#[test]
fn sizes_follow_the_weights_of_their_direction() {
    let mut stream = stream(Order::Random);
    stream.access.lines[0].mix = model::job::Mix::from_percents(50, 0);
    stream.access.lines[0].sizes.read = Sizes::Range(4096, 17_000);
    stream.access.lines[0].sizes.write = Sizes::Split(vec![(512, 25), (8192, 0), (1024, 75)]);
    let ops = drawn(&stream, 200_000);
    let sizes_by_kind = |kind| counts(ops.iter().filter(move |o| o.kind == kind).map(|o| o.length));
    let (reads, writes) = (sizes_by_kind(Kind::Read), sizes_by_kind(Kind::Write));
    let seen: Vec<u64> = (1..=4).map(|k| reads[&(k * 4096)] as u64).collect();
    assert_eq!((reads.len(), writes.len()), (4, 2));
    goodness_of_fit::assert_even(&seen);
    goodness_of_fit::assert_fit(&[writes[&512] as u64, writes[&1024] as u64], &[1.0, 3.0]);
    // A range uses the alignment as its unit, if there is one.
    stream.access.lines[0].align_bytes = 1024;
    stream.access.lines[0].mix = model::job::Mix::from_percents(100, 0);
    let sizes = counts(drawn(&stream, 10_000).iter().map(|o| o.length));
    assert_eq!((sizes.len(), sizes.keys().min(), sizes.keys().max()), (13, Some(&4096), Some(&(16 * 1024))));
}

#[test]
fn offsets_are_aligned_relative_to_the_span() {
    let mut unaligned = stream(Order::Random);
    resize(&mut unaligned, &Sizes::Fixed(1536));
    for (align_bytes, target_align, grid) in
        [(0, 512, 1536), (0, 1, 1536), (1, 512, 512), (1000, 512, 1024), (0, 1024, 2048)]
    {
        unaligned.access.lines[0].align_bytes = align_bytes;
        resize(&mut unaligned, &Sizes::Fixed(if target_align == 1024 { 2048 } else { 1536 }));
        let mut lanes = lanes(&unaligned, &[1 << 20], &[target_align], &worker_context(0, 1))
            .unwrap_or_else(|e| panic!("{e}"));
        let ops = taken(&mut *lanes[0], 10_000);
        assert!(ops.iter().all(|o| (o.offset - 8192).is_multiple_of(grid)), "{align_bytes} {target_align}");
        let places = counts(ops.iter().map(|o| o.offset)).len() as u64;
        assert!(places > (100 * 4096 - 2048) / grid * 9 / 10, "{places} places only");
    }
}

#[test]
fn lines_are_drawn_by_weight_and_share_one_position() {
    let mut stream = stream(Order::Sequential(Steps::default()));
    let mut random = stream.access.lines[0].clone();
    stream.access.lines[0].weight = 75;
    random.weight = 25;
    random.order = Order::Random;
    random.sizes.read = Sizes::Fixed(8192);
    let mut never = random.clone();
    never.weight = 0;
    never.sizes.read = Sizes::Fixed(1 << 30);
    stream.access.lines.extend([random, never]);
    let ops = drawn(&stream, 100_000);
    goodness_of_fit::assert_share(ops.iter().filter(|o| o.length == 4096).count(), 100_000, 0.75);
    let goes_on = |w: &[Op]| {
        let end = w[0].offset + u64::from(w[0].length);
        w[1].offset == if end == 8192 + 100 * 4096 { 8192 } else { end }
    };
    assert!(ops.windows(2).filter(|w| w[1].length == 4096).all(goes_on));
}

#[test]
fn bursts_begin_with_a_pause_and_keep_their_line() {
    let mut stream = stream(Order::Random);
    let line = &mut stream.access.lines[0];
    (line.weight, line.burst, line.delay_ns) = (50, 5, 1_000_000);
    let mut other = line.clone();
    (other.burst, other.delay_ns, other.sizes.read) = (9, 0, Sizes::Fixed(8192));
    stream.access.lines.push(other);
    let ops = drawn(&stream, 50_000);
    // The end of the sample may cut off the last burst.
    let whole = ops.len() - 5;
    let mut at = 0;
    let mut draws = Vec::new();
    while at < whole {
        let op = ops[at];
        draws.push(op.length);
        if op.length == 4096 {
            assert_eq!((op.flags, op.at_ns), (Op::AFTER, 1_000_000));
            assert!(ops[at + 1..at + 5].iter().all(|o| (o.length, o.flags, o.at_ns) == (4096, 0, 0)));
            at += 5;
        } else {
            assert_eq!((op.flags, op.at_ns), (0, 0));
            at += 1;
        }
    }
    goodness_of_fit::assert_share(draws.iter().filter(|l| **l == 4096).count(), draws.len(), 0.5);
}

#[test]
fn replies_follow_in_the_opposite_direction() {
    let mut stream = stream(Order::Random);
    stream.access.lines[0].mix = model::job::Mix::from_percents(40, 20);
    stream.access.lines[0].reply_bytes = 512;
    let ops = drawn(&stream, 10_000);
    let mut requests = ops.iter().peekable();
    while let Some(request) = requests.next() {
        assert_eq!(request.length, 4096);
        if request.kind == Kind::Trim {
            continue;
        }
        let Some(reply) = requests.next() else { break };
        let opposite = if request.kind == Kind::Read { Kind::Write } else { Kind::Read };
        let end = request.offset + 4096;
        let expected = if end == 8192 + 100 * 4096 { 8192 } else { end };
        assert_eq!((reply.kind, reply.length, reply.offset), (opposite, 512, expected));
    }
}

#[test]
fn a_write_of_the_same_bytes_follows_each_trim() {
    for order in [Order::Sequential(Steps::default()), Order::Once, Order::Random] {
        let mut stream = stream(order);
        resize(&mut stream, &Sizes::Range(512, 4096));
        stream.access.lines[0].mix = model::job::Mix::from_percents(20, 80);
        stream.access.lines[0].writes_after_trims = true;
        for (depth, flags) in [(1, 0), (4, Op::PAIR)] {
            stream.depth = depth;
            let ops = drawn(&stream, 10_000);
            let mut halves = ops.iter().filter(|op| op.kind != Kind::Read);
            while let (Some(trim), Some(write)) = (halves.next(), halves.next()) {
                assert_eq!((trim.kind, trim.flags), (Kind::Trim, flags));
                assert_eq!(*write, Op { kind: Kind::Write, ..*trim });
            }
            let pairs = ops.windows(2).filter(|pair| pair[0].kind == Kind::Trim);
            assert!(pairs.clone().all(|pair| pair[1].kind == Kind::Write), "directly after it");
            let mut sizes: Vec<u32> = pairs.map(|pair| pair[1].length).collect();
            sizes.sort_unstable();
            sizes.dedup();
            assert!(sizes.len() == 8, "{sizes:?}");
        }
    }
}

#[test]
fn sequential_requests_continue_after_the_replies() {
    let mut stream = endless(Order::Sequential(Steps::default()));
    stream.access.lines[0].reply_bytes = 512;
    let ops = drawn(&stream, 5);
    assert_eq!(ops.iter().map(|o| o.offset).collect::<Vec<_>>(), [0, 4096, 4608, 8704, 9216]);
    assert_eq!(ops.iter().map(|o| o.length).collect::<Vec<_>>(), [4096, 512, 4096, 512, 4096]);
}

#[test]
fn drawn_sequential_sizes_fill_each_pass() {
    for sizes in [Sizes::Range(512, 16_384), Sizes::Split(vec![(512, 1), (4096, 70), (12_288, 29)])] {
        let mut stream = endless(Order::Sequential(Steps::default()));
        resize(&mut stream, &sizes);
        let lanes_on =
            |bytes| lanes(&stream, &[bytes], &[1], &worker_context(0, 1)).unwrap_or_else(|e| panic!("{e}"));
        let mut at = 0;
        for op in taken(&mut *lanes_on(100 * 512)[0], 10_000) {
            assert_eq!(op.offset, at, "{sizes:?}");
            at = (at + u64::from(op.length)) % (100 * 512);
        }
        // A rest that is smaller than the smallest size is not used.
        let short = taken(&mut *lanes_on(100 * 512 + 100)[0], 10_000);
        assert!(short.iter().all(|op| op.offset + u64::from(op.length) <= 100 * 512));
    }
}

#[test]
fn directions_with_their_own_positions_visit_each_block_in_order() {
    for order in [Order::Sequential(Steps::default()), Order::Mixed(0.0)] {
        let mut stream = stream(order);
        let line = &mut stream.access.lines[0];
        line.mix = model::job::Mix::from_percents(60, 10);
        let firsts = |stream: &Stream, kind: Kind| {
            let ops = drawn(stream, 60);
            let blocks = ops.into_iter().filter(|o| o.kind == kind).map(|o| (o.offset - 8192) / 4096);
            blocks.collect::<Vec<_>>()
        };
        assert_ne!(firsts(&stream, Kind::Write)[..3], [0, 1, 2], "from one position");
        stream.access.lines[0].positions = Positions::Own;
        for kind in [Kind::Read, Kind::Write, Kind::Trim] {
            let blocks = firsts(&stream, kind);
            assert!(blocks.len() > 2 && blocks.iter().enumerate().all(|(i, b)| i as u64 == *b), "{blocks:?}");
        }
        // Each direction restarts at the end on its own.
        let all = hits(&drawn(&stream, 100_000), 100);
        assert!(all.iter().all(|n| n.abs_diff(1000) <= 3), "{all:?}");
    }
}

#[test]
fn rows_begin_at_random_places_and_continue_in_order() {
    let rows = |order: Order| {
        let mut stream = stream(order);
        stream.access.lines[0].consecutive = 4;
        let ops = drawn(&stream, 40_000);
        let blocks: Vec<u64> = ops.iter().map(|o| (o.offset - 8192) / 4096).collect();
        for row in blocks.chunks_exact(4) {
            assert!(row.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 100), "{row:?}");
        }
        blocks.chunks_exact(4).map(|row| row[0]).collect::<Vec<_>>()
    };
    let firsts = rows(Order::Random);
    goodness_of_fit::assert_share(firsts.iter().filter(|b| **b < 50).count(), firsts.len(), 0.5);
    // Each place begins one row in a pass, and each block is part of four rows.
    let mut once = rows(Order::Once)[..100].to_vec();
    once.sort_unstable();
    assert_eq!(once, (0..100).collect::<Vec<_>>());
}

#[test]
fn replies_follow_their_requests_with_separate_positions() {
    let mut stream = endless(Order::Sequential(Steps::default()));
    let line = &mut stream.access.lines[0];
    (line.positions, line.reply_bytes) = (Positions::Own, 512);
    line.mix = model::job::Mix::from_percents(50, 0);
    let mut ends = [0; 3];
    for pair in drawn(&stream, 100).chunks_exact(2) {
        let end = &mut ends[pair[0].kind as usize];
        assert_eq!((pair[0].offset, pair[1].offset), (*end, *end + 4096));
        *end += 4096 + 512;
    }
}

#[test]
fn targets_are_shared_as_requested_and_have_their_own_positions() {
    let mut stream = endless(Order::Sequential(Steps::default()));
    stream.targets = vec![4, 7, 9];
    let files = |sharing: Sharing| -> Vec<Vec<Op>> {
        let stream = Stream { sharing, ..stream.clone() };
        compiled(&stream, &worker_context(0, 1)).iter_mut().map(|l| taken(&mut **l, 60_000)).collect()
    };
    let each = files(Sharing::Each);
    assert_eq!(each.len(), 3);
    assert!(each.iter().enumerate().all(|(i, ops)| ops.iter().all(|o| o.file == i as u16)));
    let turns = files(Sharing::RoundRobin);
    assert!(turns[0].iter().enumerate().all(|(i, o)| o.file == (i % 3) as u16));
    let around = Stream { sharing: Sharing::RoundRobin, ..stream.clone() };
    assert_eq!(
        taken(&mut *compiled(&around, &worker_context(1, 2))[0], 4)
            .iter()
            .map(|o| o.file)
            .collect::<Vec<_>>(),
        [1, 2, 0, 1]
    );
    for (sharing, weights) in
        [(Sharing::Random, [1.0, 1.0, 1.0]), (Sharing::Weighted(vec![1, 0, 3]), [1.0, 0.0, 3.0])]
    {
        let ops = &files(sharing)[0];
        let seen: Vec<u64> = (0..3).map(|f| ops.iter().filter(|o| o.file == f).count() as u64).collect();
        goodness_of_fit::assert_fit(&seen, &weights);
        for file in 0..3 {
            let own: Vec<u64> = ops.iter().filter(|o| o.file == file).map(|o| o.offset).collect();
            assert!(own.windows(2).all(|w| w[1] == (w[0] + 4096) % (1 << 20)));
        }
    }
}

#[test]
fn interlocked_workers_divide_each_target() {
    let steps = Steps { start: Start::Interlocked, ..Steps::default() };
    let mut stream = stream(Order::Sequential(steps));
    (stream.targets, stream.workers) = (vec![0, 1], 4);
    let stream_state = Arc::new(StreamState::new(1));
    let ops = std::thread::scope(|scope| {
        let run = |worker| {
            let context =
                WorkerContext { stream_state: Arc::clone(&stream_state), ..worker_context(worker, 4) };
            let mut sources = compiled(&stream, &context);
            assert!(sources.iter().all(|s| s.look_ahead() == 1));
            scope.spawn(move || sources.iter_mut().flat_map(|s| taken(&mut **s, 500)).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..4).map(run).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap_or_default()).collect::<Vec<Op>>()
    });
    for file in 0..2 {
        let own: Vec<Op> = ops.iter().filter(|o| o.file == file).copied().collect();
        assert_eq!(hits(&own, 100), [20; 100]);
    }
}

#[test]
fn the_same_seeds_give_the_same_operations() {
    for order in [Order::Random, Order::Once, Order::Zipf(1.0), Order::Mixed(50.0)] {
        let mut stream = stream(order);
        stream.access.lines[0].mix = model::job::Mix::from_percents(50, 0);
        assert_eq!(drawn(&stream, 1000), drawn(&stream, 1000));
        let other =
            taken(&mut *compiled(&stream, &WorkerContext { seed: 8, ..worker_context(0, 1) })[0], 1000);
        assert_ne!(drawn(&stream, 1000), other);
    }
}
