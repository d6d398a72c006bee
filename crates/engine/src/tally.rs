//! What the loop counts into: blocks of histograms that travel between a worker and the collector.
//!
//! For: counting without locks; each block has one owner at a time. Not for: adding blocks up (the collector does).

use model::histogram::Histogram;
use model::job::Kind;
use model::record::{Issued, OpenLoop};
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

/// What a worker saw in one interval of the measured window.
#[derive(Clone, Debug)]
pub struct Block {
    /// First ns since the worker's start.
    pub start_ns: u64,
    /// Last ns.
    pub end_ns: u64,
    /// Operations in flight times ns.
    pub depth_ns: u64,
    /// Time inside calls that submitted operations without waiting, ns.
    pub submit: Histogram,
    /// Per lane.
    pub lanes: Box<[LaneTally]>,
}

/// What a lane saw in one interval. Histograms take memory only once something is counted into them.
#[derive(Clone, Debug, Default)]
pub struct LaneTally {
    /// Per kind.
    pub kinds: [Tally; Kind::ALL.len()],
    /// In an open loop: the parts of the latencies, per kind.
    pub open: Option<Box<[OpenLoop; Kind::ALL.len()]>>,
}

impl Block {
    /// An empty block for so many lanes, of an open loop or not.
    pub fn new(lanes: usize, open_loop: bool) -> Box<Self> {
        let lane = |_| LaneTally { open: open_loop.then(Box::default), ..LaneTally::default() };
        let lanes = (0..lanes).map(lane).collect();
        let submit = Histogram::new();
        Box::new(Self { start_ns: 0, end_ns: 0, depth_ns: 0, submit, lanes })
    }

    /// Forgets what was counted, keeps the memory.
    pub fn clear(&mut self) {
        self.depth_ns = 0;
        self.submit.clear();
        for lane in &mut self.lanes {
            for tally in &mut lane.kinds {
                tally.bytes = 0;
                tally.latency.clear();
            }
            for open in lane.open.iter_mut().flat_map(|o| o.iter_mut()) {
                open.service.clear();
                open.lateness.clear();
            }
        }
    }
}

/// Totals that no window cuts: all operations of a worker, warm-up and drain included.
pub type Totals = [Issued; Kind::ALL.len()];

/// The worker's end: gives full blocks away and takes empty ones back. Wait-free.
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
pub fn connect(lanes: usize, open_loop: bool) -> (Port, Tap) {
    let (full_in, full_out) = RingBuffer::new(SPARE_BLOCKS);
    let (mut empty_in, empty_out) = RingBuffer::new(SPARE_BLOCKS);
    for _ in 0..SPARE_BLOCKS {
        // There are as many places as blocks, here and in `Port::exchange`, so a push always succeeds.
        let _ = empty_in.push(Block::new(lanes, open_loop));
    }
    (Port { full: full_in, empty: empty_out }, Tap { full: full_out, empty: empty_in })
}

impl Port {
    /// Whether an exchange will succeed.
    pub fn has_spare(&self) -> bool {
        !self.empty.is_empty()
    }

    /// Gives `block` away and puts an empty one in its place. False, with nothing done, where none is spare.
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
    let (mut port, mut tap) = connect(1, false);
    let mut mine = Block::new(1, false);
    for turn in 0..10_u64 {
        mine.lanes[0].kinds[0].latency.record(turn);
        assert!(port.exchange(&mut mine));
        let mut seen = Vec::new();
        tap.take(|b| seen.push(b.lanes[0].kinds[0].latency.max_ns()));
        assert_eq!(seen, [Some(turn)]);
    }
    assert!((0..SPARE_BLOCKS).all(|_| port.exchange(&mut mine)));
    assert!(!port.exchange(&mut mine));
}
