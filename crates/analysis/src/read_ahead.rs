//! Read-ahead: what the kernel reads before anybody asks, and what of it may lie unread when the clock stops.
//!
//! For: how far counts of sequential reads through the page cache may be apart at the edges of a run. Not for: whether reading
//! ahead is too much (B03).

use crate::case::Case;
use model::job::{Advice, Kind, Pattern, Stream};

/// Windows of read-ahead for each file that is read: the one under way and the next.
pub(crate) const WINDOWS: u64 = 2;

/// How many times as far ahead the kernel reads a file of which it was told that it is read in order (`mm/fadvise.c`).
const ADVISED: u64 = 2;

/// The largest read-ahead that the disks are set to, in bytes; 0 where none is known.
pub(crate) fn setting_bytes(case: &Case) -> u64 {
    largest(case, "read_ahead_kb")
}

fn largest(case: &Case, file: &str) -> u64 {
    let layers = case.shared().unwrap_or_default();
    layers.iter().filter_map(|l| l.queue_number(file).ok()).max().unwrap_or(0).saturating_mul(1024)
}

/// Bytes that may be read ahead and not used when a run ends.
pub(crate) fn unread_bytes(case: &Case) -> u64 {
    let streams = case.member_streams();
    let (setting, request) = (setting_bytes(case), largest(case, "max_sectors_kb"));
    let of_stream = |s: &Stream| {
        let lanes = u64::from(s.workers.max(1)).saturating_mul(s.lanes());
        let advised = if s.advice == Some(Advice::Sequential) { ADVISED } else { 1 };
        // A large read makes the window as large as a request may be.
        let window = setting.saturating_mul(advised).max(request);
        WINDOWS.saturating_mul(lanes).saturating_mul(window)
    };
    streams.into_iter().filter(|s| reads_ahead(s)).map(of_stream).fold(0, u64::saturating_add)
}

/// Whether its reads go through the page cache one behind the other.
fn reads_ahead(stream: &Stream) -> bool {
    // An order that is mixed has stretches of it.
    stream.access.pattern() != Some(Pattern::Random)
        && !stream.cache.is_direct()
        && stream.kinds().any(|k| k == Kind::Read)
}

#[test]
fn what_is_told_to_be_read_in_order_is_read_twice_as_far_ahead() {
    let mut record = crate::fixture::Fixture {
        cache: model::job::Cache::Buffered,
        pattern: Pattern::Sequential,
        ..crate::fixture::Fixture::honest()
    }
    .record();
    let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
    queue.insert("read_ahead_kb".into(), "8192\n".into());
    let unread = |record: &model::record::Record| unread_bytes(&crate::case::cases(record)[0]);
    let before = unread(&record);
    record.header.plan.jobs[0].phases[0].streams[0].advice = Some(Advice::Sequential);
    assert!(before > 0 && unread(&record) == ADVISED * before, "{before}");
}
