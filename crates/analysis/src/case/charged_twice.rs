//! What the kernel charged to fathom's cgroup twice: attempts of direct operations that it charged and then refused.
//!
//! io_uring first submits without waiting (`REQ_NOWAIT`). The kernel charges such a request to the cgroup (`submit_bio`) before it knows
//! whether the request can pass. If it cannot, the kernel gives it back, and a thread of io_uring submits it again, waiting this time,
//! which is charged again. Two cases are known, both measured on Linux 6.18 with cgroup v1; v2 counts at the same place.
//!
//! 1. The request is larger than the device takes and must be split. Bytes charged are exactly twice those done, and requests charged are
//!    those of the device and one more for each operation.
//! 2. All requests of the device's queue are in use (`nr_requests`). A loop device has 128: with 128 in flight or fewer charges are exact,
//!    with 256 about every other operation is charged twice, and with `nr_requests` 1024 charges are exact again at 512. libaio waits in
//!    the call instead, and its charges are exact at any depth.
//!
//! Each operation has at most one refused attempt, so no more is taken off than io_uring issued.

use super::{Case, asked_depth, share};
use model::evidence::CgroupIo;
use model::job::{Kind, Stream};

/// Requests per operation from which operations were split: an operation in a hundred crosses the border of two extents.
const SPLIT_FROM: f64 = 1.01;
/// The engine that submits without waiting and tries again.
const TRIES_AGAIN: &str = "io_uring";

/// Why an attempt was charged and refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The operation had to be split.
    Split,
    /// The device's queue was full. It takes this number of requests (`nr_requests`).
    QueueFull(u64),
}

/// Returns why attempts of this kind may have been refused after they were charged, or `None` if none were.
pub(crate) fn refused(case: &Case, kind: Kind) -> Option<Refused> {
    if !case.is_direct() {
        return None;
    }
    let device = case.device().ok()?;
    let done = if kind == Kind::Write { device.write } else { device.read };
    if share(done.ios as f64, case.issued(kind).ops as f64) > SPLIT_FROM {
        return Some(Refused::Split);
    }
    let depth: f64 = retrying(case).map(asked_depth).sum();
    let queues = case.shared().ok()?.into_iter().map(|disk| disk.queue_number("nr_requests"));
    let least = queues.filter_map(Result::ok).min()?;
    (depth > least as f64).then_some(Refused::QueueFull(least))
}

/// Streams of the phase whose refused attempts are submitted again.
fn retrying<'c>(case: &'c Case) -> impl Iterator<Item = &'c Stream> {
    let phase = case.job.phases.get(case.phase).into_iter();
    phase.flat_map(|phase| &phase.streams).filter(|s| s.engine == TRIES_AGAIN && s.cache.is_direct())
}

/// The part of `counted` that was refused: at most once what was issued, and nothing where no attempt can have been refused.
pub(crate) fn charged_twice(case: &Case, counted: &CgroupIo) -> CgroupIo {
    let mut twice = CgroupIo::default();
    for (slot, kind) in Kind::MOVING.into_iter().enumerate() {
        if refused(case, kind).is_none() {
            continue;
        }
        let issued = case.issued(kind);
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

/// An honest record at this depth on a device with this `nr_requests`, whose operations were charged `times_charged` times.
#[cfg(test)]
pub(crate) fn deep(depth: u32, nr_requests: &str, times_charged: f64) -> model::record::Record {
    let mut record = split(1, times_charged);
    record.header.plan.jobs[0].phases[0].streams[0].depth = depth;
    let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
    queue.insert("nr_requests".into(), nr_requests.into());
    record
}

#[test]
fn attempts_that_met_a_full_queue_count_once_and_a_queue_that_was_never_full_explains_nothing() {
    let issued = 55_000 * 4096;
    assert_eq!(own_bytes(&deep(256, "128", 1.3)), issued);
    assert_eq!(own_bytes(&deep(256, "128", 1.0)), issued);
    assert_eq!(own_bytes(&deep(128, "128", 2.0)), 2 * issued);
    assert_eq!(own_bytes(&deep(256, "1024", 2.0)), 2 * issued);
    let mut waits = deep(256, "128", 2.0);
    waits.header.plan.jobs[0].phases[0].streams[0].engine = "libaio".into();
    assert_eq!(own_bytes(&waits), 2 * issued, "libaio waits in the call");
}
