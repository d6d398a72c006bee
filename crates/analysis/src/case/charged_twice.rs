//! What the kernel charged to fathom's cgroup twice.
//!
//! For: attempts of direct operations that were charged as a whole, refused because they had to be split, and charged again in
//! parts. Not for: bytes that were really done, nor for pages (those are charged once).
//!
//! io_uring submits without waiting at first. A request that is larger than the device takes must be split, which a
//! submission that may not wait cannot do: the kernel has charged it by then, gives it back, and a thread of its own submits it
//! again. Measured on Linux 6.18: bytes charged are exactly twice those done, and requests charged are those of the device and one more
//! for each operation.

use super::{Case, share};
use model::evidence::CgroupIo;
use model::job::Kind;

/// Requests per operation from which operations were split: an operation in a hundred crosses the border of two extents.
const SPLIT_FROM: f64 = 1.01;

/// The part of `counted` that no device did: at most once what was issued, and only where operations were split.
pub(crate) fn charged_twice(case: &Case, counted: &CgroupIo) -> CgroupIo {
    let mut twice = CgroupIo::default();
    let Ok(device) = case.device() else { return twice };
    if !case.stream.cache.is_direct() {
        return twice;
    }
    for (slot, (kind, done)) in
        [(Kind::Read, device.read), (Kind::Write, device.write)].into_iter().enumerate()
    {
        let issued = case.issued(kind);
        if share(done.ios as f64, issued.ops as f64) <= SPLIT_FROM {
            continue;
        }
        let bytes = counted.bytes[slot].saturating_sub(issued.bytes).min(issued.bytes);
        let attempts = share(bytes as f64 * issued.ops as f64, issued.bytes as f64);
        (twice.bytes[slot], twice.ios[slot]) = (bytes, attempts as u64);
    }
    twice
}

/// An honest record whose operations became so many requests each, and were charged so many times.
#[cfg(test)]
pub(crate) fn split(requests: u64, times_charged: f64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        for (name, text) in &mut snapshot.files {
            let Ok(text) = text else { continue };
            if name.ends_with("/stat") && name.starts_with("/sys/block") {
                let (ios, rest) = text.split_once(' ').unwrap();
                *text = format!("{} {rest}", ios.parse::<u64>().unwrap() * requests);
            } else if name.ends_with("io_service_bytes") {
                let read = text.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap();
                *text = format!("254:0 Read {}\n254:0 Write 0\n", (read * times_charged) as u64);
            }
        }
    }
    record
}

#[cfg(test)]
fn own_bytes(record: &model::record::Record) -> u64 {
    crate::case::cases(record)[0].own().unwrap().bytes[0]
}

#[test]
fn what_was_split_and_charged_twice_counts_once_and_nothing_else_is_taken_away() {
    let issued = 55_000 * 4096;
    assert_eq!(own_bytes(&split(4, 2.0)), issued);
    assert_eq!(own_bytes(&split(4, 1.0)), issued);
    assert_eq!(own_bytes(&split(4, 3.0)), 2 * issued, "only one attempt is made again");
    assert_eq!(own_bytes(&split(1, 2.0)), 2 * issued, "nothing was split");
    let record = split(4, 2.0);
    let case = &crate::case::cases(&record)[0];
    assert_eq!(case.charged().unwrap().bytes[0], 2 * issued, "as the kernel counts it");
}
