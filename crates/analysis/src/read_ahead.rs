//! Read-ahead: what the kernel reads before anybody asks, and what of it may lie unread when the clock stops.
//!
//! For: how far counts of sequential reads through the page cache may be apart at the edges of a run. Not for: whether reading
//! ahead is too much (B03).

use crate::case::Case;
use model::job::{Kind, Pattern, Stream};

/// Windows of read-ahead for each file that is read: the one under way and the next.
pub(crate) const WINDOWS: u64 = 2;

/// The largest read-ahead that the disks are set to, in bytes; 0 where none is known.
pub(crate) fn setting_bytes(case: &Case) -> u64 {
    largest(case, "read_ahead_kb")
}

fn largest(case: &Case, file: &str) -> u64 {
    let layers = case.shared().unwrap_or_default();
    layers.iter().filter_map(|l| l.queue_number(file).ok()).max().unwrap_or(0).saturating_mul(1024)
}

/// Bytes that may be read ahead and not used when a run ends, of all streams of the phase: devices do not know streams.
pub(crate) fn unread_bytes(case: &Case) -> u64 {
    let streams = case.job.phases.get(case.phase).map_or(&[][..], |p| &p.streams);
    let files = streams.iter().filter(|s| reads_ahead(s)).fold(0_u64, |sum, s| {
        let lanes = u64::from(s.workers.max(1)).saturating_mul(s.lanes());
        sum.saturating_add(lanes)
    });
    // A large read makes the window as large as a request may be.
    let window = setting_bytes(case).max(largest(case, "max_sectors_kb"));
    WINDOWS.saturating_mul(files).saturating_mul(window)
}

/// Whether its reads go through the page cache one behind the other.
fn reads_ahead(stream: &Stream) -> bool {
    // An order that is mixed has stretches of it.
    stream.access.pattern() != Some(Pattern::Random)
        && !stream.cache.is_direct()
        && stream.kinds().any(|k| k == Kind::Read)
}
