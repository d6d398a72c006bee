//! Order, size and direction of the requests.

use super::{
    BLOCK, COUNTED, KIB, MIB, Request, TARGET_MIB, assert_even, assert_proportions, assert_share,
    assert_sorted_proportions, by_worker, offsets, on_both, on_device, per_block,
};
use crate::disk::rings_discard;
use crate::trace::Direction;
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeSet;

#[test]
fn sequential_workers_start_at_their_shares_and_wrap_around() {
    on_both(&format!("--rw read --bs 16k --depth 8 --workers 2 --size 8m --ops 1400 {COUNTED}"), |all| {
        assert_eq!(all.len(), 1400);
        for (worker, requests) in by_worker(all).into_values().enumerate() {
            for (i, r) in requests.iter().enumerate() {
                let expected = (worker as u64 * 4 * MIB + i as u64 * 16 * KIB) % (8 * MIB);
                assert_eq!((r.offset, r.bytes), (expected, 16 * KIB), "request {i} of worker {worker}");
            }
        }
    });
}

#[test]
fn sequential_writes_are_contiguous() {
    on_both(&format!("--rw write --destroy TARGET --bs 64k --depth 4 --ops 500 {COUNTED}"), |all| {
        assert_eq!(offsets(all), (0..500).map(|i| i * 64 * KIB).collect::<Vec<_>>());
        assert!(all.iter().all(|r| r.direction == Direction::Write && r.bytes == 64 * KIB));
    });
}

#[test]
fn strides_are_kept() {
    on_both(&format!("--rw read --bs 4k --depth 8 --stride 64k --size 16m --ops 600 {COUNTED}"), |all| {
        assert_eq!(offsets(all), (0..600).map(|i| i % 256 * 64 * KIB).collect::<Vec<_>>());
    });
}

#[test]
fn strides_with_holes_skip_the_holes() {
    on_device(&format!("--rw read --bs 8k --depth 8 --hole 4k --size 12m --ops 1500 {COUNTED}"), |all| {
        assert_eq!(offsets(all), (0..1500).map(|i| i % 1024 * 12 * KIB).collect::<Vec<_>>());
        assert!(all.iter().all(|r| r.bytes == 8 * KIB));
    });
}

#[test]
fn backward_reads_go_from_end_to_start() {
    on_device(&format!("--rw read --bs 16k --depth 8 --backwards --size 8m --ops 700 {COUNTED}"), |all| {
        assert_eq!(offsets(all), (0..700).map(|i| (511 - i % 512) * 16 * KIB).collect::<Vec<_>>());
    });
}

#[test]
fn interlocked_workers_share_blocks_without_overlap() {
    let words = "--rw read --bs 4k --depth 4 --workers 2 --start interlocked --ops 4000";
    on_device(&format!("{words} {COUNTED}"), |all| {
        assert_eq!(by_worker(all).len(), 2);
        let mut sorted = offsets(all);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..4000).map(|i| i * BLOCK).collect::<Vec<_>>());
    });
}

#[test]
fn random_reads_cover_exactly_their_span() {
    on_both(&format!("--rw randread --depth 32 --offset 8m --size 16m --ops 60000 {COUNTED}"), |all| {
        assert_eq!(all.len(), 60_000);
        assert_even(&per_block(all, 8 * MIB..24 * MIB));
        // The step from one draw to the next is evenly distributed, so one draw does not predict the next.
        let steps: Vec<usize> = offsets(all)
            .windows(2)
            .map(|w| ((w[1] + 16 * MIB - w[0]) % (16 * MIB) / (128 * KIB)) as usize)
            .collect();
        let mut counts = vec![0; 128];
        for step in steps {
            counts[step] += 1;
        }
        assert_even(&counts);
    });
}

#[test]
fn once_visits_each_block_once_per_pass() {
    let words = "--rw randread --random once --depth 8 --workers 2 --size 4m --ops 3072";
    on_both(&format!("{words} {COUNTED}"), |all| {
        let workers = by_worker(all);
        let pass = |n: usize| -> Vec<u64> {
            workers.values().flat_map(|w| &w[n * 512..(n + 1) * 512]).map(|r| r.offset).collect()
        };
        for n in 0..3 {
            let mut sorted = pass(n);
            sorted.sort_unstable();
            assert_eq!(sorted, (0..1024).map(|b| b * BLOCK).collect::<Vec<_>>(), "pass {n}");
        }
        assert!(pass(0) != pass(1) && pass(1) != pass(2), "passes differ in their order");
    });
}

#[test]
fn sizes_of_a_range_are_equally_likely() {
    on_device(&format!("--rw randread --bs 4k-64k --depth 8 --ops 8000 {COUNTED}"), |all| {
        assert_eq!(all.len(), 8000);
        let mut counts = [0; 16];
        for r in all {
            assert!(r.bytes.is_multiple_of(BLOCK) && r.bytes <= 64 * KIB, "{r:?}");
            counts[(r.bytes / BLOCK - 1) as usize] += 1;
        }
        assert_even(&counts);
    });
}

#[test]
fn sizes_follow_their_weights() {
    on_device(&format!("--rw randread --bs 4k:60,64k:40 --depth 8 --ops 8000 {COUNTED}"), |all| {
        let of = |bytes: u64| all.iter().filter(|r| r.bytes == bytes).count();
        assert_eq!((of(4 * KIB) + of(64 * KIB), all.len()), (8000, 8000));
        assert_share(of(4 * KIB), 8000, 0.6);
    });
}

#[test]
fn reads_and_writes_have_separate_sizes() {
    on_device(
        &format!("--rw randrw --destroy TARGET --bs read=4k,write=16k --depth 8 --ops 2000 {COUNTED}"),
        |all| {
            for r in all {
                let asked = if r.direction == Direction::Read { 4 * KIB } else { 16 * KIB };
                assert_eq!(r.bytes, asked, "{r:?}");
            }
        },
    );
}

#[test]
fn oversized_operations_arrive_split_and_complete() {
    on_device(&format!("--rw randread --bs 4m --depth 1 --ops 50 {COUNTED}"), |all| {
        assert_eq!(all.iter().map(|r| r.bytes).sum::<u64>(), 50 * 4 * MIB);
        assert!(all.len() > 50, "nothing was split");
        let mut rest = all;
        while let Some(first) = rest.first() {
            assert!(first.offset.is_multiple_of(4 * MIB), "{first:?} does not begin an operation");
            let mut end = first.offset;
            while end < first.offset + 4 * MIB {
                assert_eq!(rest[0].offset, end, "the pieces of an operation are neighbours");
                end += rest[0].bytes;
                rest = &rest[1..];
            }
            assert_eq!(end, first.offset + 4 * MIB);
        }
    });
}

#[test]
fn directions_follow_their_shares() {
    on_both(&format!("--rw randrw --destroy TARGET --mix 70 --depth 8 --ops 10000 {COUNTED}"), |all| {
        assert_share(all.iter().filter(|r| r.direction == Direction::Read).count(), all.len(), 0.7);
        assert_even(
            &per_block(all, 0..TARGET_MIB as u64 * MIB)
                .chunks(16)
                .map(|c| c.iter().sum())
                .collect::<Vec<_>>(),
        );
    });
}

#[test]
fn trims_follow_their_share() {
    let shares = |trim: Direction| {
        move |all: &[Request]| {
            assert_eq!(all.len(), 5000);
            for (direction, part) in [(Direction::Read, 0.6), (Direction::Write, 0.3), (trim, 0.1)] {
                assert_share(all.iter().filter(|r| r.direction == direction).count(), all.len(), part);
            }
            assert!(all.iter().all(|r| r.bytes == BLOCK));
        }
    };
    let words = format!("--rw randrw --destroy TARGET --mix 60/30/10 --ops 5000 {COUNTED}");
    on_device(&format!("{words} --engine sync --depth 1"), shares(Direction::Discard));
    // Before Linux 6.12 a ring can only request zeroes.
    let by_ring = if rings_discard() { Direction::Discard } else { Direction::Zeroes };
    on_device(&format!("{words} --depth 8"), shares(by_ring));
}

#[test]
fn partly_sequential_access_continues_from_the_last_operation() {
    on_device(&format!("--rw randread --random mixed:30 --depth 8 --ops 20000 {COUNTED}"), |all| {
        let goes_on = |w: &&[Request]| w[1].offset == (w[0].offset + BLOCK) % (TARGET_MIB as u64 * MIB);
        // One random offset in 16,384 is the next block by chance.
        assert_share(all.windows(2).filter(goes_on).count(), all.len() - 1, 0.7 + 0.3 / 16_384.0);
    });
}

#[test]
fn zipf_shares_match_their_ranks_and_persist() {
    let law: Vec<f64> = (1..=4096).map(|k| f64::from(k).powf(-1.1)).collect();
    let words = "--rw randread --random zipf:1.1 --depth 32 --workers 2 --size 16m --ops 40000";
    on_both(&format!("{words} {COUNTED}"), |all| {
        let counts = per_block(all, 0..16 * MIB);
        assert_sorted_proportions(&counts, &law);
        let hot = |requests: &[Request]| -> Vec<usize> {
            let counts = per_block(requests, 0..16 * MIB);
            let mut blocks: Vec<usize> = (0..counts.len()).collect();
            blocks.sort_by_key(|b| std::cmp::Reverse(counts[*b]));
            blocks.truncate(3);
            blocks
        };
        let of_each: BTreeSet<Vec<usize>> =
            by_worker(all).into_values().map(|w| hot(&w.into_iter().cloned().collect::<Vec<_>>())).collect();
        assert_eq!(of_each.len(), 1, "workers agree on what is hot");
        let hottest = hot(all);
        assert!(hottest.windows(2).any(|w| w[0].abs_diff(w[1]) > 1), "ranks are scattered: {hottest:?}");
    });
}

#[test]
fn pareto_directs_four_fifths_to_a_fifth_of_the_blocks() {
    let law: Vec<f64> = {
        let exponent = 0.8_f64.ln() / 0.2_f64.ln();
        let up_to = |k: u32| (f64::from(k) / 4096.0).powf(exponent);
        (0..4096).map(|k| up_to(k + 1) - up_to(k)).collect()
    };
    let words = "--rw randread --random pareto:0.2 --depth 32 --size 16m --ops 40000";
    on_device(&format!("{words} {COUNTED}"), |all| {
        assert_sorted_proportions(&per_block(all, 0..16 * MIB), &law);
    });
}

#[test]
fn normal_distribution_is_centred() {
    let bell = Normal::new(64.0, 12.8).unwrap();
    let law: Vec<f64> = (0..128_u32).map(|c| bell.cdf(f64::from(c + 1)) - bell.cdf(f64::from(c))).collect();
    let words = "--rw randread --random normal:10 --depth 32 --size 16m --ops 40000";
    on_device(&format!("{words} {COUNTED}"), |all| {
        // Join many blocks into one class: the count of a single block would not reveal a bell that is slightly too wide.
        let counts = per_block(all, 0..16 * MIB);
        assert_proportions(&counts.chunks(32).map(|class| class.iter().sum()).collect::<Vec<_>>(), &law);
    });
}

#[test]
fn zones_follow_their_shares_and_are_uniform_inside() {
    let words = "--rw randread --random zones:60/10,30/20,10/70 --depth 32 --size 40m --ops 40000";
    on_device(&format!("{words} {COUNTED}"), |all| {
        let counts = per_block(all, 0..40 * MIB);
        let mut start = 0;
        for (operations, size) in [(0.6, 1024), (0.3, 2048), (0.1, 7168)] {
            let zone = &counts[start..start + size];
            assert_share(zone.iter().sum::<u64>() as usize, all.len(), operations);
            assert_even(&zone.chunks(16).map(|c| c.iter().sum()).collect::<Vec<_>>());
            start += size;
        }
    });
}
