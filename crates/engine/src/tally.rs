//! What the loop counts into: blocks of histograms that travel between a worker and the collector.
//!
//! For: counting without locks; each block has one owner at a time. Not for: adding blocks up (the collector does).

use model::histogram::Histogram;
use model::job::Kind;
use model::record::Issued;
use rtrb::{Consumer, Producer, RingBuffer};

/// Blocks that each worker has beside the one it fills. With all of them unread the interval grows instead.
const SPARE_BLOCKS: usize = 3;

/// One kind of operation in one lane and interval.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies of operations that moved all their bytes.
    pub latency: Histogram,
}

/// What a worker saw in one interval.
#[derive(Clone, Debug)]
pub struct Block {
    /// First ns since the worker's start.
    pub start_ns: u64,
    /// Last ns.
    pub end_ns: u64,
    /// Operations in flight times ns.
    pub depth_ns: u64,
    /// Whether it lies in the measured window.
    pub measured: bool,
    /// Per lane, per kind.
    pub lanes: Box<[[Tally; Kind::ALL.len()]]>,
}

impl Block {
    /// An empty block for so many lanes.
    pub fn new(lanes: usize) -> Box<Self> {
        let lanes = (0..lanes).map(|_| Default::default()).collect();
        Box::new(Self { start_ns: 0, end_ns: 0, depth_ns: 0, measured: false, lanes })
    }

    /// Forgets what was counted, keeps the memory.
    pub fn clear(&mut self) {
        self.depth_ns = 0;
        for tally in self.lanes.iter_mut().flatten() {
            tally.bytes = 0;
            tally.latency.clear();
        }
    }
}

/// Totals that no window cuts: all operations of a worker, warm-up and drain included.
pub type Totals = [Issued; Kind::ALL.len()];

/// The worker's end: hands full blocks over and takes empty ones back. Wait-free.
pub struct Port {
    full: Producer<Box<Block>>,
    empty: Consumer<Box<Block>>,
}

/// The collector's end.
pub struct Tap {
    full: Consumer<Box<Block>>,
    empty: Producer<Box<Block>>,
}

/// A connected pair with its spare blocks.
pub fn connect(lanes: usize) -> (Port, Tap) {
    let (full_in, full_out) = RingBuffer::new(SPARE_BLOCKS);
    let (mut empty_in, empty_out) = RingBuffer::new(SPARE_BLOCKS);
    for _ in 0..SPARE_BLOCKS {
        // There are as many places as blocks, here and in `Port::exchange`, so a push always succeeds.
        let _ = empty_in.push(Block::new(lanes));
    }
    (Port { full: full_in, empty: empty_out }, Tap { full: full_out, empty: empty_in })
}

impl Port {
    /// Hands `block` over and puts an empty one in its place. False, with nothing done, where none is spare.
    pub fn exchange(&mut self, block: &mut Box<Block>) -> bool {
        let Ok(mut fresh) = self.empty.pop() else { return false };
        std::mem::swap(block, &mut fresh);
        self.full.push(fresh).is_ok()
    }
}

impl Tap {
    /// Shows every block that has arrived to `look`, and gives it back empty.
    pub fn take(&mut self, mut look: impl FnMut(&Block)) {
        while let Ok(mut block) = self.full.pop() {
            look(&block);
            block.clear();
            let _ = self.empty.push(block);
        }
    }
}

#[test]
fn blocks_travel_and_come_back_empty() {
    let (mut port, mut tap) = connect(1);
    let mut mine = Block::new(1);
    for turn in 0..10_u64 {
        mine.lanes[0][0].latency.record(turn);
        assert!(port.exchange(&mut mine));
        let mut seen = Vec::new();
        tap.take(|b| seen.push(b.lanes[0][0].latency.max_ns()));
        assert_eq!(seen, [Some(turn)]);
    }
    assert!((0..SPARE_BLOCKS).all(|_| port.exchange(&mut mine)));
    assert!(!port.exchange(&mut mine));
}
