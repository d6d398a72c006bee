//! The counters of a block device at one moment, with what kernels of different ages have of them.
//!
//! For: a line of `/proc/diskstats` as numbers (kernel `Documentation/admin-guide/iostats.rst`); a field that a kernel lacks is none.
//! Not for: reading the file (the crate `machine`), nor what happened between two moments (the crate `analysis`).

use crate::Known;
use crate::evidence::{BlockFlow, BlockStat, SECTOR_BYTES};

/// Counters since the device is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Requests, bytes, merges and time of reads.
    pub read: BlockFlow,
    /// Requests, bytes, merges and time of writes.
    pub write: BlockFlow,
    /// Requests, bytes, merges and time of discards; `None` before Linux 4.18.
    pub discard: Option<BlockFlow>,
    /// Flushes; `None` before Linux 5.5.
    pub flush: Option<Flushes>,
    /// Requests in flight at the moment of reading.
    pub in_flight: u64,
    /// ms during which any request was in flight.
    pub busy_ms: u64,
    /// ms that requests were in flight, each counted: the integral of the queue.
    pub queue_ms: u64,
}

/// Flushes that a device completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// How many.
    pub ios: u64,
    /// ms that all together took.
    pub ms: u64,
}

/// A line of `/proc/diskstats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskLine<'t> {
    /// `major:minor`.
    pub number: String,
    /// Kernel name.
    pub name: &'t str,
    /// What stands behind it.
    pub counters: DiskCounters,
}

impl DiskCounters {
    /// Reads the fields of a `stat` file, which are those behind the name in `/proc/diskstats`.
    ///
    /// # Errors
    /// What was not a number, or too few of them.
    pub fn parse(text: &str) -> Known<Self> {
        let base = BlockStat::parse(text)?;
        // All of them are numbers, or the line above had said so.
        let more: Vec<u64> = text.split_ascii_whitespace().skip(11).filter_map(|w| w.parse().ok()).collect();
        let discard = match more[..] {
            [ios, merges, sectors, ms, ..] => {
                Some(BlockFlow { ios, merges, bytes: sectors.saturating_mul(SECTOR_BYTES), ms })
            }
            _ => None,
        };
        let flush = match more[..] {
            [_, _, _, _, ios, ms, ..] => Some(Flushes { ios, ms }),
            _ => None,
        };
        Ok(Self {
            read: base.read,
            write: base.write,
            discard,
            flush,
            in_flight: base.in_flight,
            busy_ms: base.busy_ms,
            queue_ms: base.queue_ms,
        })
    }

    /// Whether it has read, written, discarded or flushed anything since it is there.
    pub fn was_used(&self) -> bool {
        let ios = [Some(self.read), Some(self.write), self.discard].into_iter().flatten().map(|f| f.ios);
        ios.chain(self.flush.map(|f| f.ios)).any(|n| n > 0)
    }
}

/// The devices of `/proc/diskstats`, in its order. Lines that are none are left out: a kernel that counts otherwise shows nothing.
pub fn lines(text: &str) -> impl Iterator<Item = DiskLine<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (major, minor): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let name = words.next()?;
        let at = line.find(name)? + name.len();
        // A name of digits alone would be found among the numbers before it; the kernel gives none.
        let counters = DiskCounters::parse(line.get(at..)?).ok()?;
        Some(DiskLine { number: format!("{major}:{minor}"), name, counters })
    })
}

#[test]
fn kernels_of_three_ages_are_read_and_what_they_lack_is_none() {
    let old = "  8       0 sda 10 1 80 5 20 2 160 7 3 44 42\n";
    let with_discards = "8 1 sda1 10 1 80 5 20 2 160 7 3 44 42 4 3 8 9\n";
    let now = "254 0 vda 10 1 80 5 20 2 160 7 3 44 42 4 3 8 9 6 11\n";
    let text = format!("{old}{with_discards}{now}junk\n8 2 sdb 1 x\n");
    let all: Vec<DiskLine<'_>> = lines(&text).collect();
    let names: Vec<(&str, &str)> = all.iter().map(|l| (l.number.as_str(), l.name)).collect();
    assert_eq!(names, [("8:0", "sda"), ("8:1", "sda1"), ("254:0", "vda")]);
    let [a, b, c] = [&all[0].counters, &all[1].counters, &all[2].counters];
    assert_eq!((a.discard, a.flush, b.flush), (None, None, None));
    assert_eq!(b.discard, Some(BlockFlow { ios: 4, merges: 3, bytes: 4096, ms: 9 }));
    assert_eq!(c.flush, Some(Flushes { ios: 6, ms: 11 }));
    assert_eq!((c.read.bytes, c.write.ms, c.in_flight, c.busy_ms, c.queue_ms), (40_960, 7, 3, 44, 42));
    assert!(a.was_used() && !DiskCounters::default().was_used());
}
