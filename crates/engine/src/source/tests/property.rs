//! Whatever is asked for is refused, or stays inside its span, on its grid and within its sizes.

use super::*;
use model::job::{Line, Mix, PerKind};
use proptest::prelude::*;

fn sizes() -> impl Strategy<Value = Sizes> {
    let size = || prop_oneof![1..20_000_u32, (1..40_u32).prop_map(|k| k * 512), Just(0), Just(u32::MAX)];
    prop_oneof![
        6 => size().prop_map(Sizes::Fixed),
        2 => (size(), size()).prop_map(|(a, b)| Sizes::Range(a.min(b), a.max(b))),
        1 => (size(), size()).prop_map(|(a, b)| Sizes::Range(a, b)),
        2 => prop::collection::vec((size(), 0..5_u32), 0..4).prop_map(Sizes::Split),
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.0..3.0_f64, 2 => 0.0..150.0_f64, 1 => any::<f64>()]
}

fn far() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 4 => 0..100_000_u64, 2 => (0..50_u64).prop_map(|k| k * 512), 1 => any::<u64>()]
}

fn steps() -> impl Strategy<Value = Steps> {
    let start = prop_oneof![
        Just(Start::Spread),
        Just(Start::Same),
        Just(Start::Interlocked),
        far().prop_map(Start::Every)
    ];
    (far(), far(), any::<bool>(), start).prop_map(|(stride_bytes, hole_bytes, backwards, start)| Steps {
        stride_bytes,
        hole_bytes,
        backwards,
        start,
    })
}

fn order() -> impl Strategy<Value = Order> {
    let size = prop_oneof![number().prop_map(ZoneSize::Percent), far().prop_map(ZoneSize::Bytes)];
    let zone = (number(), size).prop_map(|(access_percent, size)| Zone { access_percent, size });
    prop_oneof![
        4 => steps().prop_map(Order::Sequential),
        2 => Just(Order::Random),
        1 => Just(Order::Once),
        1 => number().prop_map(Order::Mixed),
        1 => number().prop_map(Order::Zipf),
        1 => number().prop_map(|h| Order::Pareto(h / 6.0)),
        1 => number().prop_map(Order::Normal),
        1 => prop::collection::vec(zone, 0..4).prop_map(Order::Zones),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    let mix =
        (0..=100_u8, 0..=40_u8).prop_map(|(read_percent, trim_percent)| Mix { read_percent, trim_percent });
    let sizes = (sizes(), sizes(), sizes()).prop_map(|(read, write, trim)| PerKind { read, write, trim });
    let reply = prop_oneof![3 => Just(0), 1 => 0..5000_u32];
    (0..4_u32, order(), mix, sizes, far(), 0..4_u32, far(), reply).prop_map(
        |(weight, order, mix, sizes, align_bytes, burst, delay_ns, reply_bytes)| Line {
            weight,
            order,
            mix,
            sizes,
            align_bytes,
            burst,
            delay_ns: if delay_ns.is_multiple_of(2) { 0 } else { delay_ns },
            reply_bytes,
        },
    )
}

fn pace() -> impl Strategy<Value = Pace> {
    let open = |arrivals| number().prop_map(move |iops| Pace::Open { iops, arrivals });
    prop_oneof![
        4 => Just(Pace::Closed),
        1 => (number(), number()).prop_map(|(iops, bytes_per_s)| Pace::Limited { iops, bytes_per_s }),
        1 => open(Arrivals::Constant),
        1 => open(Arrivals::Poisson),
    ]
}

fn any_stream() -> impl Strategy<Value = Stream> {
    let sharing = prop_oneof![
        Just(Sharing::Each),
        Just(Sharing::RoundRobin),
        Just(Sharing::Random),
        prop::collection::vec(0..3_u32, 1..4).prop_map(Sharing::Weighted)
    ];
    let lines = prop::collection::vec(line(), 1..4);
    let flush = prop::option::of((0..5_u32, any::<bool>()));
    (far(), prop_oneof![Just(u64::MAX), far()], lines, 1..4_usize, sharing, pace(), flush).prop_map(
        |(offset_bytes, span_bytes, lines, targets, sharing, pace, flush)| Stream {
            access: Access { offset_bytes, span_bytes, lines },
            targets: (0..targets).collect(),
            sharing,
            pace,
            flush: flush.map(|(every, drain)| Flush { call: SyncCall::Fsync, every, drain }),
            ..stream(Order::Random)
        },
    )
}

/// The alignments that lines ask for, from the job alone.
fn grids(stream: &Stream, target_align: u64) -> Vec<u64> {
    let grid = |l: &Line| {
        let align = match (l.align_bytes, &l.order) {
            (0, Order::Sequential(_)) => 1,
            (0, _) => {
                [(Kind::Read, &l.sizes.read), (Kind::Write, &l.sizes.write), (Kind::Trim, &l.sizes.trim)]
                    .iter()
                    .filter(|(k, _)| Line { reply_bytes: 0, ..l.clone() }.does(*k))
                    // Ranges and weights of zero make the smallest size drawn larger; such a line is looked at loosely.
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
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_access_leaves_its_span_or_its_grid(
        stream in any_stream(),
        bytes in prop::collection::vec(prop_oneof![8 => 0..1_000_000_u64, 1 => any::<u64>()], 3),
        aligned in any::<bool>(),
        worker in 0..3_u32,
        seed in any::<u64>(),
    ) {
        let count = stream.targets.len();
        let align = if aligned { 512 } else { 1 };
        let share = Share { worker, workers: 3, seed, common: Arc::new(Common::new(seed)) };
        let Ok(sources) = lanes(&stream, &bytes[..count], &vec![align; count], &share) else { return Ok(()) };
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
                prop_assert!(grids.iter().any(|g| (op.offset - from).is_multiple_of(*g)), "{:?} {:?}", op, grids);
            }
        }
    }
}
