//! Tests of zones that are used one at a time.

use super::*;
use model::job::{Mix, Strided};

const BLOCK: u64 = 4096;

/// An order in zones, with three numbers of blocks: moved per zone, in a zone, and skipped after it.
fn zoned(order: Order, [bytes, range, skip]: [u64; 3]) -> Stream {
    let mut stream = stream(order);
    let (bytes, range_bytes, skip_bytes) = (bytes * BLOCK, range * BLOCK, skip * BLOCK);
    stream.access.strided = Some(Strided { bytes, range_bytes, skip_bytes });
    stream
}

fn sequential() -> Order {
    Order::Sequential(Steps::default())
}

/// The blocks of operations, relative to byte 8192.
fn blocks(ops: &[Op]) -> Vec<u64> {
    ops.iter().map(|op| (op.offset - 8192) / BLOCK).collect()
}

/// Returns `count` consecutive blocks from each first block.
fn consecutive(firsts: &[u64], count: u64) -> Vec<u64> {
    firsts.iter().flat_map(|first| (0..count).map(move |n| first + n)).collect()
}

#[test]
fn sequential_zones_are_visited_from_their_start() {
    let visited = |zones, count| blocks(&drawn(&zoned(sequential(), zones), count));
    // The ninth zone contains the last four of the hundred blocks.
    let whole_zones = consecutive(&[0, 12, 24, 36, 48, 60, 72, 84], 8);
    assert_eq!(visited([8, 8, 4], 70), [whole_zones, consecutive(&[96], 4), vec![0, 1]].concat());
    assert_eq!(visited([3, 40, 10], 7), [0, 1, 2, 50, 51, 52, 0], "the rest of a zone is skipped");
    assert_eq!(visited([5, 2, 8], 11), [0, 1, 0, 1, 0, 10, 11, 10, 11, 10, 20], "a zone is repeated");
    assert_eq!(visited([1, 100, 0], 3), [0, 0, 0], "one zone");
    let mut several = zoned(sequential(), [8, 8, 4]);
    resize(&mut several, &Sizes::Split(vec![(4096, 1), (8192, 1)]));
    assert!(blocks(&drawn(&several, 500)).iter().all(|block| *block < 92), "the incomplete zone is not used");
    assert!(blocks(&drawn(&zoned(Order::Mixed(0.0), [8, 8, 4]), 500)).iter().all(|block| *block < 92));
}

#[test]
fn random_blocks_stay_in_the_present_zone() {
    for order in [Order::Random, Order::Once, Order::Zipf(1.1), Order::Normal(10.0)] {
        let is_once = order == Order::Once;
        let ops = drawn(&zoned(order, [20, 10, 2]), 8 * 20 + 20);
        for (zone, ops) in ops.chunks_exact(20).enumerate() {
            let first = zone as u64 % 8 * 12;
            assert!(blocks(ops).iter().all(|block| (first..first + 10).contains(block)), "{ops:?}");
            for pass in ops.chunks_exact(10).filter(|_| is_once) {
                let mut pass = blocks(pass);
                pass.sort_unstable();
                assert_eq!(pass, consecutive(&[first], 10));
            }
        }
    }
    // A new zone always begins a new pass, even if the previous zone was left in the middle of a pass.
    for sizes in [Sizes::Fixed(4096), Sizes::Range(2048, 4096)] {
        let mut stream = zoned(Order::Once, [7, 10, 0]);
        resize(&mut stream, &sizes);
        let mut seen: HashMap<(u64, u64), u64> = HashMap::new();
        let (mut zone, mut moved) = (0, 0);
        for op in drawn(&stream, 2000) {
            if moved >= 7 * BLOCK {
                (zone, moved) = (zone + 1, 0);
            }
            moved += u64::from(op.length);
            for piece in (op.offset..op.offset + u64::from(op.length)).step_by(2048) {
                *seen.entry((zone, piece)).or_default() += 1;
            }
        }
        assert!(zone > 100 && seen.values().all(|times| *times == 1));
    }
}

#[test]
fn the_halves_of_a_transaction_are_in_one_zone() {
    let mut pairs = zoned(sequential(), [3, 8, 4]);
    pairs.access.lines[0].mix = Mix::from_percents(0, 100);
    pairs.access.lines[0].writes_after_trims = true;
    assert_eq!(blocks(&drawn(&pairs, 8)), [0, 0, 1, 1, 12, 12, 13, 13], "four blocks are moved, not three");
    pairs.access.strided = Some(Strided { bytes: 64 * BLOCK, range_bytes: 8 * BLOCK, skip_bytes: 4 * BLOCK });
    let last = &blocks(&drawn(&pairs, 8 * 64 + 9))[8 * 64..];
    assert_eq!(last, [96, 96, 97, 97, 98, 98, 99, 99, 0], "the last zone ends with the span");
    let mut replies = zoned(Order::Random, [3, 8, 4]);
    replies.access.lines[0].reply_bytes = 4096;
    for (at, zone) in drawn(&replies, 400).chunks_exact(4).enumerate() {
        let first = at as u64 % 8 * 12;
        assert!(blocks(zone).iter().all(|block| (first..first + 8).contains(block)), "{zone:?}");
    }
    let mut rows = zoned(Order::Random, [6, 8, 4]);
    rows.access.lines[0].consecutive = 4;
    let firsts: Vec<u64> = blocks(&drawn(&rows, 6 * 8 * 200)).iter().step_by(6).map(|b| b % 12).collect();
    assert!((0..8).all(|place| firsts.contains(&place)), "a row does not reach into the next zone");
}

#[test]
fn workers_begin_in_different_zones_and_targets_have_separate_ones() {
    let stream = zoned(sequential(), [10, 10, 0]);
    for (worker, first) in [(0, 0), (1, 20), (2, 50), (3, 70)] {
        let ops = taken(&mut *compiled(&stream, &worker_context(worker, 4))[0], 11);
        assert_eq!(blocks(&ops), consecutive(&[first, first + 10], 10)[..11]);
    }
    let two = Stream { targets: vec![0, 1], ..stream };
    for (file, mut lane) in (0..).zip(compiled(&two, &worker_context(0, 1))) {
        let ops = taken(&mut *lane, 20);
        assert!(ops.iter().all(|op| op.file == file));
        assert_eq!(blocks(&ops), consecutive(&[0], 20));
    }
}

#[test]
fn invalid_zones_are_refused() {
    let refused = |bytes: [u64; 3], change: fn(&mut Stream)| {
        let mut stream = zoned(Order::Random, [1, 1, 0]);
        let [bytes, range_bytes, skip_bytes] = bytes;
        stream.access.strided = Some(Strided { bytes, range_bytes, skip_bytes });
        change(&mut stream);
        let count = stream.targets.len();
        let made = lanes(&stream, &vec![1 << 20; count], &vec![512; count], &worker_context(0, 2));
        made.err().unwrap_or_else(|| panic!("{stream:?} was taken"))
    };
    let nothing: fn(&mut Stream) = |_| {};
    assert!(refused([512, 1 << 20, 0], nothing).contains("no zone of 1 MiB"));
    assert!(refused([512, 2048, 0], nothing).contains("no block of 4 KiB fits into the 2 KiB"));
    assert!(refused([512, 4096, 1], nothing).contains("a zone and the gap"));
    let several = refused([4096, 4096, 0], |s| (s.targets, s.sharing) = (vec![0, 1], Sharing::Random));
    assert!(several.contains("--sharing each"), "{several}");
    let shared = refused([4096, 4096, 0], |s| {
        s.access.lines[0].order = Order::Sequential(Steps { start: Start::Interlocked, ..Steps::default() });
    });
    assert!(shared.contains("another --start"), "{shared}");
}

#[test]
fn aligned_blocks_do_not_cross_the_end_of_the_last_zone() {
    const SPAN: u64 = 33 * 4096;
    for align_bytes in [0, 512, 1024, 3584, 4096, 12_288] {
        // The end of the span may cut the last zone anywhere.
        for short in (0..40).map(|n| n * 512) {
            let mut stream = endless(Order::Sequential(Steps::default()));
            resize(&mut stream, &Sizes::Fixed(512));
            stream.access.lines[0].align_bytes = align_bytes;
            stream.access.span_bytes = SPAN - short;
            stream.access.strided = Some(Strided { bytes: 8192, range_bytes: 20_480, skip_bytes: 1024 });
            for op in drawn(&stream, 300) {
                let end = op.offset + u64::from(op.length);
                assert!(end <= SPAN - short, "{op:?} of {} with {align_bytes}", SPAN - short);
            }
        }
    }
}
