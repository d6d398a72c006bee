//! Property test: every stream is refused, or its operations stay inside the span, on the grid and within the sizes.

use super::*;
use model::job::{Line, Mix, PerKind, Positions, Strided, ThinkLaw};
use proptest::prelude::*;

/// Sizes: usually a multiple of the unit, in rare cases an arbitrary number.
fn usual_size(unit: u32, most: u32) -> impl Strategy<Value = u32> {
    prop_oneof![200 => (1..=most).prop_map(move |k| k * unit), 1 => 0..100_000_u32, 1 => Just(u32::MAX)]
}

/// Distances: zero or a multiple of the unit, in rare cases an arbitrary number.
fn usual_distance(unit: u32) -> impl Strategy<Value = u64> {
    let multiple = (0..60_u64).prop_map(move |k| k * u64::from(unit));
    prop_oneof![100 => Just(0), 100 => multiple, 1 => 0..1_000_000_u64, 1 => any::<u64>()]
}

fn sizes(unit: u32) -> impl Strategy<Value = Sizes> {
    let size = move || usual_size(unit, 20);
    prop_oneof![
        60 => size().prop_map(Sizes::Fixed),
        20 => (size(), size()).prop_map(|(a, b)| Sizes::Range(a.min(b), a.max(b).saturating_mul(2))),
        20 => prop::collection::vec((size(), 1..5_u32), 1..4).prop_map(Sizes::Split),
        1 => (size(), size()).prop_map(|(a, b)| Sizes::Range(a, b)),
        1 => prop::collection::vec((size(), 0..2_u32), 0..2).prop_map(Sizes::Split),
    ]
}

/// A number that is usually valid: up to `most`.
fn number(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![60 => 0.001..=most, 1 => Just(0.0), 1 => any::<f64>()]
}

fn steps(unit: u32) -> impl Strategy<Value = Steps> {
    let start = prop_oneof![
        Just(Start::Spread),
        Just(Start::Same),
        Just(Start::Interlocked),
        usual_distance(unit).prop_map(Start::Every)
    ];
    (usual_distance(unit), usual_distance(unit), any::<bool>(), start).prop_map(
        |(stride_bytes, hole_bytes, backwards, start)| Steps { stride_bytes, hole_bytes, backwards, start },
    )
}

fn order(unit: u32) -> impl Strategy<Value = Order> {
    let size = prop_oneof![5 => number(40.0).prop_map(ZoneSize::Percent), 1 => usual_distance(unit).prop_map(ZoneSize::Bytes)];
    let zone = (number(100.0), size).prop_map(|(access_percent, size)| Zone { access_percent, size });
    prop_oneof![
        8 => steps(unit).prop_map(Order::Sequential),
        4 => Just(Order::Random),
        2 => Just(Order::Once),
        2 => number(100.0).prop_map(Order::Mixed),
        2 => number(4.0).prop_map(Order::Zipf),
        2 => number(1.0).prop_map(Order::Pareto),
        2 => number(200.0).prop_map(Order::Normal),
        1 => prop::collection::vec(zone, 1..3).prop_map(Order::Zones),
    ]
}

fn line(unit: u32) -> impl Strategy<Value = Line> {
    let mix = prop_oneof![
        Just((100, 0)),
        (0..=100_u8).prop_flat_map(|read| (Just(read), 0..=100 - read)),
        (0..=100_u8, 0..=2_u8)
    ];
    let mix = mix.prop_map(|(read_percent, trim_percent)| Mix::from_percents(read_percent, trim_percent));
    let sizes =
        (sizes(unit), sizes(unit), sizes(unit)).prop_map(|(read, write, trim)| PerKind { read, write, trim });
    let reply = (prop_oneof![3 => Just(0), 1 => usual_size(unit, 20)], any::<bool>());
    let delay = prop_oneof![6 => Just(0), 1 => 1..1000_u64];
    let positions = prop_oneof![3 => Just(Positions::Shared), 1 => Just(Positions::Own)];
    let consecutive = prop_oneof![3 => Just(1), 1 => 0..5_u32];
    let runs = prop_oneof![6 => Just((None, 1)), 1 => (prop::option::of(1.0..9.0_f64), 0..4_u32)];
    let law = prop_oneof![
        3 => Just(ThinkLaw::Fixed),
        1 => Just(ThinkLaw::Exponential),
        1 => (0..1000_u64).prop_map(|median_ns| ThinkLaw::Lognormal { median_ns }),
    ];
    let order = (order(unit), positions, consecutive, runs);
    (0..4_u32, order, mix, sizes, usual_distance(unit), 0..4_u32, (delay, law), reply).prop_map(
        |(weight, order, mix, sizes, align_bytes, burst, (delay_ns, delay_law), reply)| {
            let (order, positions, consecutive, (run_length, interleaved)) = order;
            let (reply_bytes, writes_after_trims) = reply;
            Line {
                weight,
                order,
                positions,
                consecutive,
                run_length,
                interleaved,
                mix,
                sizes,
                align_bytes,
                burst,
                delay_ns,
                delay_law,
                reply_bytes,
                writes_after_trims,
                ..Line::default()
            }
        },
    )
}

fn pace() -> impl Strategy<Value = Pace> {
    let open = |arrivals| number(1e6).prop_map(move |iops| Pace::Open { iops, arrivals });
    prop_oneof![
        6 => Just(Pace::Closed),
        1 => (number(1e6), number(1e9)).prop_map(|(iops, bytes_per_s)| Pace::Limited { iops, bytes_per_s }),
        1 => open(Arrivals::Constant),
        1 => open(Arrivals::Poisson),
        1 => open(Arrivals::Batch { mean: 3.5 }),
        1 => open(Arrivals::OnOff { on_ns: 1000, off_ns: 9000 }),
    ]
}

fn any_stream(unit: u32) -> impl Strategy<Value = Stream> {
    let sharing = prop_oneof![
        Just(Sharing::Each),
        Just(Sharing::RoundRobin),
        Just(Sharing::Random),
        prop::collection::vec(0..3_u32, 3).prop_map(Sharing::Weighted)
    ];
    let lines = prop::collection::vec(line(unit), 1..4);
    let flush = prop::option::of((
        prop_oneof![30 => 1..9_u32, 1 => Just(0)],
        prop_oneof![5 => Just(1), 1 => 2..9_u32],
        any::<bool>(),
    ));
    let span = prop_oneof![3 => Just(u64::MAX), 1 => usual_size(unit, 400).prop_map(|s| u64::from(s) + 30)];
    let zones = (1..20_u64, 20..40_u64, 0..3_u64).prop_map(move |(bytes, range, skip)| {
        let units = |n: u64| n * u64::from(unit);
        Strided { bytes: units(bytes), range_bytes: units(range), skip_bytes: units(skip) }
    });
    let strided = prop_oneof![7 => Just(None), 1 => zones.prop_map(Some)];
    (usual_distance(unit), (span, strided), lines, 1..4_usize, sharing, pace(), flush).prop_map(
        |(offset_bytes, (span_bytes, strided), lines, targets, mut sharing, pace, flush)| {
            if let Sharing::Weighted(weights) = &mut sharing {
                weights.truncate(targets);
            }
            Stream {
                access: Access { offset_bytes, span_bytes, strided, lines },
                targets: (0..targets).collect(),
                sharing,
                pace,
                flush: flush.map(|(every, calls, drain)| Flush {
                    call: SyncCall::Fsync,
                    every,
                    calls,
                    drain,
                }),
                ..stream(Order::Random)
            }
        },
    )
}

/// A stream, the sizes of its targets, and their alignment.
fn any_case() -> impl Strategy<Value = (Stream, Vec<u64>, u32)> {
    prop_oneof![Just((512, 512)), Just((1, 1)), Just((3, 1)), Just((1000, 8))].prop_flat_map(
        |(unit, align)| {
            let bytes = prop_oneof![
                200 => (50..1000_u64, 0..3_u64).prop_map(move |(k, odd)| k * u64::from(unit) + odd),
                1 => 0..1_000_000_u64,
                1 => any::<u64>()
            ];
            (any_stream(unit), prop::collection::vec(bytes, 3), Just(align))
        },
    )
}

/// The alignments of the lines, computed from the job.
fn grids(stream: &Stream, target_align: u64) -> Vec<u64> {
    let grid = |l: &Line| {
        let align = match (l.align_bytes, &l.order) {
            (0, Order::Sequential(_)) => 1,
            (0, _) => {
                [(Kind::Read, &l.sizes.read), (Kind::Write, &l.sizes.write), (Kind::Trim, &l.sizes.trim)]
                    .iter()
                    .filter(|(k, _)| Line { reply_bytes: 0, writes_after_trims: false, ..l.clone() }.does(*k))
                    // Ranges and zero weights increase the smallest drawn size, so such lines are checked loosely.
                    .map(|(_, s)| if let Sizes::Fixed(size) = s { u64::from(*size) } else { 1 })
                    .min()
                    .unwrap_or(1)
            }
            (align, _) => align,
        };
        align.checked_next_multiple_of(target_align).unwrap_or(u64::MAX)
    };
    stream.access.lines.iter().filter(|l| l.weight > 0).map(grid).collect()
}

proptest! {
    // Refused streams count too, since they must not panic, but most streams must be accepted.
    #![proptest_config(ProptestConfig {
        cases: 2000, max_global_rejects: 4000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_access_leaves_its_span_or_its_grid(
        (stream, bytes, align) in any_case(),
        worker in 0..3_u32,
        seed in any::<u64>(),
    ) {
        let count = stream.targets.len();
        let context = WorkerContext { worker, workers: 3, seed, stream_state: Arc::new(StreamState::new(seed)) };
        let sources = lanes(&stream, &bytes[..count], &vec![align; count], &context);
        prop_assume!(sources.is_ok());
        let sources = sources.unwrap_or_default();
        prop_assert_eq!(sources.len() as u64, stream.lanes());
        let grids = grids(&stream, u64::from(align));
        let largest = stream.access.largest_bytes();
        let (from, span) = (stream.access.offset_bytes, stream.access.span_bytes);
        for (lane, mut source) in sources.into_iter().enumerate() {
            for op in taken(&mut *source, 200) {
                let file = usize::from(op.file);
                prop_assert!(file < count && (stream.sharing != Sharing::Each || file == lane));
                if op.kind == Kind::Sync {
                    prop_assert_eq!((op.offset, op.length), (0, 0));
                    continue;
                }
                prop_assert!(stream.access.kinds().any(|k| k == op.kind));
                prop_assert!(op.length > 0 && op.length <= largest);
                let end = op.offset.checked_add(u64::from(op.length));
                let limit = bytes[file].min(from.saturating_add(span));
                prop_assert!(op.offset >= from && end.is_some_and(|e| e <= limit), "{:?}", op);
                prop_assert!(op.offset.is_multiple_of(u64::from(align)) && op.length.is_multiple_of(align));
                let zones = stream.access.strided;
                let inside = zones.map_or(op.offset - from, |z| (op.offset - from) % z.step_bytes());
                prop_assert!(zones.is_none_or(|z| inside + u64::from(op.length) <= z.range_bytes), "{:?}", op);
                prop_assert!(grids.iter().any(|g| inside.is_multiple_of(*g)), "{:?} {:?}", op, grids);
            }
        }
    }
}
