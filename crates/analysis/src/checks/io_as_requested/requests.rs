//! Whether operations reached the device unchanged: B01 finds merged ones, B02 split ones, and B14 random I/O that is no
//! longer random.
//!
//! Compares the operations with the requests that each device completed; if other streams share the
//! device, the checks decide by bounds. B02 names the queue limit or the file fragments that
//! explain a split. B14 compares the merges of random operations with those that chance makes in
//! the span, and finds a seed that the previous session also used.

use crate::case::{JOINING_ENGINE, whole_disk};
use crate::checks::prelude::*;
use crate::figures::traffic::FLOOR_IOS;
use model::evidence::SECTOR_BYTES;
use model::record::ThreadIo;
use model::units::show_block;

/// The device's requests are fathom's if the device's bytes and the issued bytes differ by no more than this share. A
/// difference of 5 % moves the mean request size by as much.
pub(crate) const SAME_BYTES_WITHIN: f64 = 0.05;

/// Requests that the file system and other programs may add in all runs without a finding.
fn incidental_requests(case: &Case) -> u64 {
    FLOOR_IOS.saturating_mul(case.runs.len() as u64)
}

/// The operations of one direction and the requests of a topmost device, including warm-up and drain. With operations
/// of several sizes on several devices, also those of all devices together.
struct Requests<'a> {
    kind: Kind,
    /// The device; `None` for all devices of the stream together.
    top: Option<&'a Layer>,
    /// Lower and upper bound of the operations at the device. Both are the same for all devices together.
    least_ops: u64,
    most_ops: u64,
    /// Mean bytes of an operation.
    op_bytes: f64,
    device: BlockFlow,
    /// The bytes that may belong to other processes.
    others_bytes: u64,
}

impl Requests<'_> {
    /// Returns the name of the device in a sentence.
    fn name(&self) -> &str {
        self.top.map_or("the device", |top| &top.name)
    }

    /// Returns a lower bound.
    fn ops_per_request(&self) -> f64 {
        share(self.least_ops as f64, self.device.ios as f64)
    }

    /// Returns a lower bound.
    fn requests_per_op(&self) -> f64 {
        share(self.device.ios as f64, self.most_ops as f64)
    }

    /// Returns an upper bound. Includes the requests of other processes.
    fn most_requests_per_op(&self) -> f64 {
        self.device.ios as f64 / self.least_ops as f64
    }

    /// Returns a lower bound of fathom's requests: the bytes beyond the issued ones may all have been one-sector requests of
    /// other processes.
    fn least_own_requests(&self) -> u64 {
        self.device.ios.saturating_sub(self.others_bytes / SECTOR_BYTES)
    }

    /// Returns the number of requests in addition to one for each operation.
    fn extra_requests(&self) -> u64 {
        self.device.ios.saturating_sub(self.most_ops)
    }

    fn own_requests_per_op(&self) -> f64 {
        share(self.least_own_requests() as f64, self.most_ops as f64)
    }

    fn request_bytes(&self) -> f64 {
        share(self.device.bytes as f64, self.device.ios as f64)
    }

    /// Returns why the ratios have different bounds; `None` if they are known.
    fn why_unclear(&self) -> Option<String> {
        let top = self.top.filter(|_| self.least_ops < self.most_ops)?;
        Some(if self.others_bytes > 0 {
            format!(
                "other processes may have moved {} of the bytes of {}, so the number of operations there is \
                 unknown",
                show_bytes(self.others_bytes),
                top.name
            )
        } else {
            format!(
                "operations of several sizes went to several devices, so their number on {} is unknown",
                top.name
            )
        })
    }
}

/// Whether requests can be compared with operations. Through the page cache, the kernel makes its own requests.
fn is_comparable(case: &Case) -> bool {
    case.on_device() && case.stream.cache.is_direct() && Kind::MOVING.iter().any(|k| case.does(*k))
}

/// Returns the requests of each direction of the job on each device, or why they cannot be compared with the operations: the
/// bytes of all devices differ from the issued ones by more than [`SAME_BYTES_WITHIN`], or those of a device may belong to other
/// processes.
///
/// # Errors
/// Fails if a device was not counted.
fn requests_by_kind<'a>(case: &Case<'a>) -> Known<Vec<Known<Requests<'a>>>> {
    let (all, tops) = (case.device_io()?, case.top_layers()?);
    let by_device = if tops.len() > 1 {
        tops.iter().map(|top| Ok((*top, case.layer_io(&[*top])?))).collect::<Known<Vec<_>>>()?
    } else {
        Vec::new()
    };
    let mut out = Vec::new();
    for kind in Kind::MOVING {
        let (device, issued) = (flow_without_flushes(&all, kind, case.issued(kind).ops), case.issued(kind));
        if issued.ops == 0 {
            continue;
        }
        let difference = (device.bytes as f64 - issued.bytes as f64).abs();
        if difference > SAME_BYTES_WITHIN * issued.bytes as f64 {
            out.push(Err(format!(
                "fathom issued {} of {}s, but the device moved {}, so its requests cannot be compared with the \
                 operations",
                show_bytes(issued.bytes),
                kind.word(),
                show_bytes(device.bytes)
            )));
            continue;
        }
        let op_bytes = share(issued.bytes as f64, issued.ops as f64);
        let others_bytes = device.bytes.saturating_sub(issued.bytes);
        let together = Requests {
            kind,
            top: None,
            least_ops: issued.ops,
            most_ops: issued.ops,
            op_bytes,
            device,
            others_bytes,
        };
        // No operation is larger than the largest one, so if the mean is that large, all are.
        let largest = u64::from(case.stream.access.largest_bytes()).max(1);
        let is_one_size = issued.bytes == issued.ops.saturating_mul(largest);
        let smallest = if is_one_size { largest } else { SECTOR_BYTES };
        // The sum of several devices hides a device that merges and another one that splits. If the sum itself is too
        // high, so is one of the devices.
        if by_device.is_empty() || !is_one_size {
            out.push(Ok(together));
        }
        let mut unclear_bytes = 0_u64;
        for (top, stat) in &by_device {
            let bytes = flow_of(stat, kind).bytes;
            if bytes <= others_bytes {
                unclear_bytes = unclear_bytes.saturating_add(bytes);
                continue;
            }
            let (least_ops, most_ops) = ((bytes - others_bytes) / largest, bytes.div_ceil(smallest));
            let device = flow_without_flushes(stat, kind, most_ops);
            out.push(Ok(Requests {
                kind,
                top: Some(*top),
                least_ops,
                most_ops,
                op_bytes,
                device,
                others_bytes,
            }));
        }
        if unclear_bytes as f64 > SAME_BYTES_WITHIN * issued.bytes as f64 {
            out.push(Err(format!(
                "other processes may have moved {} of {}s, all bytes of some devices",
                show_bytes(others_bytes),
                kind.word()
            )));
        }
    }
    Ok(out)
}

/// Returns the requests of a direction, which had `ops` operations. The kernel counts a write that is followed by a flush
/// twice, the second time without bytes, even if several writes share the flush. Therefore, leaves out up to one extra
/// request per write.
fn flow_without_flushes(stat: &BlockStat, kind: Kind, ops: u64) -> BlockFlow {
    let mut flow = flow_of(stat, kind);
    if kind == Kind::Write && stat.flushes().ios > 0 {
        flow.ios -= ops.min(flow.ios.saturating_sub(ops));
    }
    flow
}

/// Returns the direction and device with the highest ratio, and why another one cannot be compared.
///
/// # Errors
/// Fails if no direction can be compared.
fn worst_requests<'a>(
    case: &Case<'a>,
    ratio: impl Fn(&Requests<'a>) -> f64,
) -> Known<(Requests<'a>, Known<()>)> {
    let (requests, completeness) = split_known(requests_by_kind(case));
    let worst = requests.into_iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    match worst {
        Some(worst) => Ok((worst, completeness)),
        None => completeness.and(not_checked("no operation completed")),
    }
}

/// Bounds of merging and splitting in one direction, for a stream that shares its devices.
struct SharedBounds {
    kind: Kind,
    op_bytes: f64,
    /// Whether the kernel counted the bytes as submitted by the stream's own workers, so that they are not those of
    /// another process.
    is_counted: bool,
    /// Lower bound: the other streams made as few requests as possible. 0 unless `is_counted`.
    least_ops_per_request: f64,
    /// Upper bound: all merges belong to this stream. Infinite if not every merge is counted.
    most_ops_per_request: f64,
    /// Upper bound: the other streams made as few requests as possible.
    most_requests_per_op: f64,
    /// Merges at the devices.
    merges: u64,
    /// Upper bound: all merges belong to this stream.
    most_merged_share: f64,
}

/// Returns the bounds of each direction of a stream that shares its devices, and why another direction has none. `None` if the
/// stream does not share them.
///
/// # Errors
/// Fails if the device was not counted.
fn shared_bounds(case: &Case) -> Known<Option<(Vec<SharedBounds>, Known<()>)>> {
    let tops = case.top_layers()?;
    if case.sharers(&tops).is_empty() {
        return Ok(None);
    }
    let all = case.top_io_of_all_streams()?;
    let counts_merges = case.submits_each_operation(case.stream_index);
    let bounds_of = |kind: Kind| {
        let (device, issued) = (flow_of(&all, kind), case.issued(kind));
        let has_arrived = |bytes: u64| bytes as f64 >= (1.0 - SAME_BYTES_WITHIN) * issued.bytes as f64;
        if !has_arrived(case.at_device(kind)?.least) {
            return Err(case.why_shared()?);
        }
        let count: fn(&ThreadIo) -> u64 =
            if kind == Kind::Read { |io| io.read_bytes } else { |io| io.write_bytes };
        let is_counted = has_arrived(case.counted_by_workers(case.stream_index, count).least);
        let ops = issued.ops as f64;
        let most_requests = device.ios.saturating_sub(case.least_requests_of_sharers(kind, &tops, &device));
        let least_requests = issued.ops.saturating_sub(device.merges) as f64;
        let has_least = counts_merges && least_requests > 0.0;
        // All merges or all extra requests may be at the device that got the fewest operations.
        let is_one = tops.len() == 1;
        Ok(SharedBounds {
            kind,
            op_bytes: share(issued.bytes as f64, ops),
            is_counted,
            least_ops_per_request: if is_counted { share(ops, most_requests as f64) } else { 0.0 },
            most_ops_per_request: if has_least && (is_one || device.merges == 0) {
                ops / least_requests
            } else {
                f64::INFINITY
            },
            most_requests_per_op: if is_one && most_requests > 0 {
                most_requests as f64 / ops
            } else {
                f64::INFINITY
            },
            merges: device.merges,
            most_merged_share: if is_one || device.merges == 0 { device.merges as f64 / ops } else { 1.0 },
        })
    };
    let kinds = Kind::MOVING.into_iter().filter(|kind| case.issued(*kind).ops > 0);
    let (bounds, completeness) = split_known(Ok(kinds.map(bounds_of).collect()));
    if bounds.is_empty() {
        return completeness.and(not_checked("no operation completed"));
    }
    Ok(Some((bounds, completeness)))
}

/// Returns a lower bound of the requests per operation of a stream that shares its devices. 0 if its operations may not have
/// reached the devices.
///
/// # Errors
/// Fails if the device was not counted, or if the stream's bytes may not have reached it.
pub(super) fn least_shared_requests_per_op(case: &Case) -> Known<f64> {
    let (bounds, completeness) = shared_bounds(case)?.ok_or("no other stream uses the device")?;
    completeness?;
    if bounds.iter().any(|b| !b.is_counted) {
        return Ok(0.0);
    }
    Ok(1.0 / bounds.iter().map(|b| b.most_ops_per_request).fold(1.0, f64::max))
}

/// Above this number of operations per request, the device did not see the requested size. A busy scheduler causes 1.33
/// in any sequential queue: of four operations it merges two with each other, which leaves three requests.
const MERGED_ABOVE: f64 = 1.5;
/// At this number of operations per request or above, most operations share a request.
const MERGED_RELABELLED_FROM: f64 = 2.0;

pub(super) const MERGED: Check = Check {
    id: CheckId::B01,
    name: "MERGED",
    belief: "the device saw operations of the requested size",
    reads: "fathom's own count of operations and bytes submitted, and requests, merges and bytes in the \
            `stat` file of the top device, both from the start of a run to its last completion. Only direct \
            I/O is checked.",
    formula: formula!(
        "Operations / device requests, for each direction and device.\n\
         - With several devices, the operations of a device are its bytes / the size of an operation, and the \
         worst device counts. With operations of several sizes, their number on a device has bounds: a finding \
         or `holds` needs both, or all devices together exceed the limit.\n\
         - Relabelled from {MERGED_RELABELLED_FROM}: most operations share a request.\n\
         - Biased above {MERGED_ABOVE}. Up to that, a scheduler merges a few neighbours in any sequential \
         queue.\n\
         - Not checked if the bytes of the device and of the operations differ by more than {same}, \
         because then they are not the same I/O.\n\
         - Not checked if the device moved more bytes than were issued, and these may be small requests of \
         other processes that hide merges.\n\
         - If other streams use the device at the same time, the ratio has bounds. The lower bound is \
         operations / (device requests - the least possible requests of the other streams), and counts only \
         if the kernel counted the bytes of the stream's own workers. The upper bound is operations / \
         (operations - merges of the device).\n\
         - The least possible requests are the direct operations that are certain to have reached the device - \
         merges. They are 0 for a stream with the engine preadv, which joins operations, or if pages of its \
         file entered the page cache.\n\
         - With other streams: relabelled or biased if the lower bound exceeds the limit, holds if the upper \
         bound is at most {MERGED_ABOVE}, otherwise not checked. There is no upper bound for the engine \
         preadv, with pages in the page cache, or for merges on several devices.",
        same = Share(SAME_BYTES_WITHIN)
    ),
    provoke: "`fathom run --rw read --bs 4k --depth 32 --batch 16 DIR`: sixteen neighbours are submitted in \
              one call, and the kernel makes one request of them.",
    fix: "Submit operations one at a time (`--batch 1`), use the size that the device really got as --bs, or \
          disable merging (`echo 2 > /sys/block/DISK/queue/nomerges`).",
    accept: "Accept it if you want to know what an application with small neighbouring operations gets, \
             merging included.",
    applies: |case| is_comparable(case),
    ask: Ask::Alone(check_merged),
    #[cfg(test)]
    fires: Some(|| Fixture { merged: 4, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_merged(case: &Case) -> Known<Answer> {
    if let Some((bounds, completeness)) = shared_bounds(case)? {
        return check_merged_by_bounds(case, bounds, completeness);
    }
    let (worst, completeness) = worst_requests(case, Requests::ops_per_request)?;
    let numbers = evidence([
        ("ops_per_request", worst.ops_per_request()),
        ("request_bytes_mean", worst.request_bytes()),
        ("operation_bytes_mean", worst.op_bytes),
        ("merges", worst.device.merges as f64),
    ]);
    if worst.ops_per_request() <= MERGED_ABOVE {
        completeness?;
        // The kernel counts its own merges, but not what an engine joins.
        let may_hide_merges = |r: &Requests| {
            let unmerged = r.least_ops.saturating_sub(r.device.merges) as f64;
            let is_unmerged = case.stream.engine != JOINING_ENGINE
                && r.least_ops > 0
                && r.least_ops as f64 <= MERGED_ABOVE * unmerged;
            !is_unmerged && r.most_ops as f64 > MERGED_ABOVE * r.least_own_requests() as f64
        };
        if let Some(hiding) = requests_by_kind(case)?.into_iter().flatten().find(may_hide_merges) {
            return Err(hiding.why_unclear().unwrap_or_else(|| {
                format!(
                    "the device moved {} more than fathom issued, which may be requests of other processes that \
                     hide merges",
                    show_bytes(hiding.others_bytes)
                )
            }));
        }
        return holds("Few or no operations were merged on their way to the device.", numbers);
    }
    let sizes = [worst.op_bytes, worst.request_bytes()];
    merged_finding(case, worst.kind, worst.ops_per_request(), sizes, worst.name(), "", numbers)
}

/// Checks for merges if other streams use the device at the same time.
fn check_merged_by_bounds(case: &Case, bounds: Vec<SharedBounds>, completeness: Known<()>) -> Known<Answer> {
    let most = bounds.iter().map(|b| b.most_ops_per_request).fold(0.0, f64::max);
    if most <= MERGED_ABOVE {
        completeness?;
        let numbers = evidence([("ops_per_request_at_most", most)]);
        return holds("Few or no operations were merged on their way to the device.", numbers);
    }
    let is_certain = |b: &SharedBounds| b.most_ops_per_request.min(b.least_ops_per_request) > MERGED_ABOVE;
    let merged = bounds.into_iter().filter(is_certain);
    let worst = merged.max_by(|a, b| a.least_ops_per_request.total_cmp(&b.least_ops_per_request));
    let Some(worst) = worst else { return Err(case.why_shared()?) };
    let ratio = worst.least_ops_per_request;
    let numbers = evidence([
        ("ops_per_request_at_least", ratio),
        ("operation_bytes_mean", worst.op_bytes),
        ("merges", worst.merges as f64),
    ]);
    // Rounded down, because the size is a lower bound.
    let sizes = [worst.op_bytes, (worst.op_bytes * ratio / 1024.0).floor() * 1024.0];
    merged_finding(case, worst.kind, ratio, sizes, "the device", "at least ", numbers)
}

/// Returns the finding about `ratio` operations per request. `sizes` has the mean bytes of an operation and of a request.
/// `bound` is empty, or `at least ` if the ratio and the size of a request are lower bounds.
fn merged_finding(
    case: &Case,
    kind: Kind,
    ratio: f64,
    sizes: [f64; 2],
    device: &str,
    bound: &str,
    numbers: Evidence,
) -> Known<Answer> {
    let [op_bytes, request_bytes] = sizes.map(round);
    let about = if bound.is_empty() { "~" } else { bound };
    let is_relabelled = ratio >= MERGED_RELABELLED_FROM;
    let only_disk = case.shared_layers().ok().filter(|disks| disks.len() == 1);
    let disk = only_disk.map_or_else(|| "DISK".to_owned(), |disks| layer_names(&disks));
    detail!(
        if is_relabelled { Severity::Relabels } else { Severity::Biases },
        numbers,
        "The job requested operations of {op_bytes}, but {device} got requests of {bound}{request_bytes} on \
         average: {} {bound}{} neighbouring {}s into each.",
        if case.stream.engine == JOINING_ENGINE { "the engine joined" } else { "the kernel merged" },
        show_rate(ratio),
        kind.word()
    )
    .with_fix(if case.stream.engine == JOINING_ENGINE {
        "Submit operations one at a time (`--batch 1`), or use the size that the device really got as --bs."
            .into()
    } else {
        MERGED.fix.replace("DISK", &disk)
    })
    .relabelled(
        is_relabelled.then(|| Rename::Condition(format!("merged to requests of {about}{request_bytes}"))),
    )
    .found()
}

/// Formats a mean size in whole KiB, or in bytes if it is less than half a KiB.
fn round(bytes: f64) -> String {
    let kib = (bytes / 1024.0).round();
    if kib >= 1.0 { show_bytes((kib * 1024.0) as u64) } else { show_bytes(bytes as u64) }
}

/// Above this number of requests per operation, a latency covers a group of requests. One operation in ten may cross a
/// border of an extent or a boundary of the device.
const SPLIT_ABOVE: f64 = 1.1;
/// Replaces [`SPLIT_ABOVE`] if no cause of splitting is known.
const UNEXPLAINED_ABOVE: f64 = 1.5;

pub(super) const SPLIT: Check = Check {
    id: CheckId::B02,
    name: "SPLIT",
    belief: "one operation was one request to the device",
    reads: "fathom's own count of operations, and the requests in the `stat` file of the top device from the \
            start of a run to its last completion. Also `max_sectors_kb` and `max_hw_sectors_kb` of its \
            queue, and the map of the file's extents.",
    formula: formula!(
        "Device requests / operations, for each direction and device.\n\
         - With several devices, the operations of a device are its bytes / the size of an operation, and the \
         worst device counts. With operations of several sizes, their number on a device has bounds: a finding \
         or `holds` needs both, or all devices together exceed the limit.\n\
         - Biased above {SPLIT_ABOVE} if the cause is known: `max_sectors_kb` is smaller than the largest \
         operation, or the file's extents are shorter than ten operations on average. Up to a tenth of the \
         operations may cross a border of longer extents.\n\
         - Biased above {UNEXPLAINED_ABOVE} if no cause is known.\n\
         - If the device moved more bytes than were issued, the extra bytes may be one-sector requests of \
         other processes. As many requests are left out, unless `max_sectors_kb` explains the split.\n\
         - Not checked if the ratio is above {SPLIT_ABOVE} but too low to bias.\n\
         - Not checked if the extra requests may be those of a journal (up to {FLOOR_IOS} per run).\n\
         - Not checked if the bytes of the device and of the operations differ by more than {same}.\n\
         - If other streams use the device at the same time: holds if the ratio is at most {SPLIT_ABOVE} \
         even if these streams made as few requests as possible (see B01). Otherwise not checked. With several \
         devices, not checked.",
        same = Share(SAME_BYTES_WITHIN)
    ),
    provoke: "`echo 256 > /sys/block/DISK/queue/max_sectors_kb`, then `fathom run --rw read --bs 1m DIR`: \
              each operation becomes four requests. On most disks `--bs 8m` is enough without the first \
              command.",
    fix: "Raise queue/max_sectors_kb up to max_hw_sectors_kb, or use a --bs that fits.",
    accept: "The throughput is right with split requests too; latency and depth are those of groups of \
             requests. Accept it if the application works like this.",
    applies: |case| is_comparable(case),
    ask: Ask::Alone(check_split),
    #[cfg(test)]
    fires: Some(|| with_split_requests(Fixture::honest().record(), 4)),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_split(case: &Case) -> Known<Answer> {
    if let Some((bounds, completeness)) = shared_bounds(case)? {
        let most = bounds.iter().map(|b| b.most_requests_per_op).fold(0.0, f64::max);
        if most > SPLIT_ABOVE {
            return Err(case.why_shared()?);
        }
        completeness?;
        let numbers = evidence([("requests_per_op_at_most", most)]);
        return holds("The device got hardly more requests than operations.", numbers);
    }
    let (worst, completeness) = worst_requests(case, Requests::most_requests_per_op)?;
    let numbers = |requests: &Requests| {
        evidence([
            ("requests_per_op", requests.requests_per_op()),
            ("operation_bytes_mean", requests.op_bytes),
            ("request_bytes_mean", requests.request_bytes()),
        ])
    };
    if worst.most_requests_per_op() <= SPLIT_ABOVE {
        completeness?;
        return holds("The device got hardly more requests than operations.", numbers(&worst));
    }
    // A journal or other processes in one direction must not hide a split in the other direction.
    let incidental = incidental_requests(case);
    let is_split = |r: &Requests| r.requests_per_op() > SPLIT_ABOVE && r.extra_requests() > incidental;
    let by_limit = |r: &Requests| split_by_queue_limit(case, r.top);
    let cause_of = |r: &Requests| by_limit(r).or_else(|| split_by_extents(case, r));
    let limit_of = |r: &Requests| if cause_of(r).is_some() { SPLIT_ABOVE } else { UNEXPLAINED_ABOVE };
    let is_found = |r: &Requests| by_limit(r).is_some() || r.own_requests_per_op() > limit_of(r);
    let ratio = |r: &Requests| {
        if by_limit(r).is_some() { r.requests_per_op() } else { r.own_requests_per_op() }
    };
    let split = split_known(requests_by_kind(case)).0.into_iter().filter(is_split);
    let order =
        |a: &Requests, b: &Requests| is_found(a).cmp(&is_found(b)).then(ratio(a).total_cmp(&ratio(b)));
    let Some(split) = split.max_by(order) else {
        let is_unclear = worst.requests_per_op() <= SPLIT_ABOVE;
        let unclear = worst.why_unclear().filter(|_| is_unclear);
        return Err(unclear.unwrap_or_else(|| {
            format!(
                "the device did too few extra requests ({}) to distinguish splitting from a journal; measure for \
                 longer",
                worst.extra_requests()
            )
        }));
    };
    let (worst, per_op, known_cause) = (&split, split.requests_per_op(), cause_of(&split));
    if !is_found(worst) {
        let unexplained = if known_cause.is_none() {
            ", which neither its max_sectors_kb nor the file's extents explain"
        } else {
            ""
        };
        return Err(format!(
            "the device did {} requests for each operation{unexplained}; the extra requests may belong to other \
             processes",
            show_rate(per_op)
        ));
    }
    let (cause, fix) = known_cause.unwrap_or_else(|| {
        let fix = "Check max_segments and chunk_sectors of the device's queue, or use a smaller --bs.";
        (String::new(), fix.into())
    });
    detail!(
        Severity::Biases,
        numbers(worst),
        "Each {} of {} became {} requests to {}{cause}: its latency is that of the group, and the \
         device's queue is deeper than requested.",
        worst.kind.word(),
        show_bytes(worst.op_bytes as u64),
        show_rate(per_op),
        worst.name()
    )
    .with_fix(fix)
    .found()
}

/// Returns the cause and the fix if a queue takes only requests that are smaller than the operations; otherwise `None`.
/// `top` is the device that got the operations, or `None` for any device of the stream.
fn split_by_queue_limit<'a>(case: &Case<'a>, top: Option<&'a Layer>) -> Option<(String, String)> {
    let largest = u64::from(case.stream.access.largest_bytes());
    let disks = match top {
        Some(top) => {
            case.places().find(|p| p.layers.contains(top)).map(|p| whole_disk(p, top)).into_iter().collect()
        }
        None => case.shared_layers().unwrap_or_default(),
    };
    for layer in disks {
        let Ok(limit) = layer.queue_number("max_sectors_kb").map(|kb| kb.saturating_mul(1024)) else {
            continue;
        };
        if limit < largest {
            let hardware = layer.queue_number("max_hw_sectors_kb").map_or(0, |kb| kb.saturating_mul(1024));
            let (name, bs) = (&layer.name, show_block(limit));
            let fix = if hardware > limit {
                format!("Raise /sys/block/{name}/queue/max_sectors_kb, or use --bs {bs} or less.")
            } else {
                format!("Use --bs {bs} or less, which is the largest request of {name}.")
            };
            return Some((format!(" ({name} takes at most {} per request)", show_bytes(limit)), fix));
        }
    }
    None
}

/// Returns the cause and the fix if the file's extents are small; otherwise `None`.
fn split_by_extents(case: &Case, requests: &Requests) -> Option<(String, String)> {
    // One operation in ten crosses a border if a piece is ten operations long.
    let ten_operations_bytes = (requests.op_bytes as u64).saturating_mul(10);
    let has_short_pieces = |e: &Extents| e.count > 1 && e.span_bytes / e.count < ten_operations_bytes;
    split_known(case.extents()).0.iter().any(has_short_pieces).then(|| {
        let fix = "Let fathom make its own file on a file system with more contiguous free space.";
        (" (the file has small extents)".into(), fix.into())
    })
}

/// I/O is random if at most this share of the operations was merged, in addition to merges by chance.
const MERGED_BEYOND_CHANCE: f64 = 0.02;

pub(super) const NOT_RANDOM: Check = Check {
    id: CheckId::B14,
    name: "NOT_RANDOM",
    belief: "random offsets reached the device as random I/O",
    reads: "Merges and requests in the `stat` file of the top device from the start of a run to its last \
            completion, and span, sizes and depth of the plan. These are read only for \
            the orders `uniform` and `once` with direct I/O. If you gave a seed, also the seed, \
            the file and the access settings of the newest stored session of that path.",
    formula: formula!(
        "Merged share = merges / (merges + requests), for each direction and device. Chance explains 2 x \
         depth / blocks of the span: the odds that an operation meets a neighbour among the others in \
         flight.\n\
         - Biased if the merged share is more than {MERGED_BEYOND_CHANCE} above what chance explains, and \
         there were more than {FLOOR_IOS} merges per run, which a journal may cause.\n\
         - Biased if the previous session drew the same offsets: the same seed, file, span, sizes and \
         order. This rule does not apply to the fixed seed of another tool if the page cache was bypassed \
         or emptied, since such tools repeat the seed in each call.\n\
         - Not checked if the bytes of the device and of the operations differ (see B01), or if the merges \
         may belong to other streams that use the device at the same time.\n\
         - Merges are not counted if B01 relabelled the size, or if zones or targets are visited one at a \
         time."
    ),
    provoke: "`fathom run --rw randread --seed 7 FILE`, twice. The part about merges fires only with a \
              layer that sorts and merges writes: chance alone merges no more of fathom's uniform offsets \
              than the formula subtracts. `--random mixed:50` looks similar, but is not checked.",
    fix: "Omit --seed, so that every session draws other offsets. Or measure a larger --size, or without the \
          layer that sorts and merges.",
    accept: "Accept it if you want to measure the same offsets again, or that layer.",
    applies: |_| true,
    ask: Ask::After(&[CheckId::B01], check_not_random),
    #[cfg(test)]
    fires: Some(|| merge_some(Fixture::honest().record(), 0.05)),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_not_random(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if let Some(repeated) = find_repeated_seed(case) {
        return repeated.map(Answer::Finding);
    }
    let lines = &case.stream.access.lines;
    let is_uniform = lines
        .iter()
        .all(|l| matches!(l.order, Order::Random | Order::Once) && l.reply_bytes == 0 && !l.is_in_rows());
    // Within one zone, or while one target of a group has its turn, neighbouring blocks meet more often than in the
    // whole span.
    let is_divided = case.stream.access.strided.is_some() || !case.stream.turns.is_empty();
    if !is_uniform || is_divided || !is_comparable(case) || earlier.relabels(CheckId::B01) {
        return Ok(Answer::DoesNotApply);
    }
    let (chance, incidental) = (odds_of_neighbour(case), incidental_requests(case));
    if let Some((bounds, completeness)) = shared_bounds(case)? {
        let may_be_merged =
            |b: &SharedBounds| b.most_merged_share > MERGED_BEYOND_CHANCE + chance && b.merges > incidental;
        if bounds.iter().any(may_be_merged) {
            return Err(case.why_shared()?);
        }
        completeness?;
        let most = bounds.iter().map(|b| b.most_merged_share).fold(0.0, f64::max);
        let numbers = evidence([("merged_share_at_most", most)]);
        return holds("Random offsets reached the device as random I/O.", numbers);
    }
    let merged = |r: &Requests| share(r.device.merges as f64, r.device.merges as f64 + r.device.ios as f64);
    // A few merges of one direction must not hide those of the other.
    let counted = |r: &Requests| if r.device.merges > incidental { merged(r) } else { 0.0 };
    let (worst, completeness) = worst_requests(case, counted)?;
    let part = merged(&worst);
    let numbers = evidence([
        ("merged_share", part),
        ("merged_by_chance", chance),
        ("merges", worst.device.merges as f64),
    ]);
    if counted(&worst) <= MERGED_BEYOND_CHANCE + chance {
        completeness?;
        return holds("Random offsets reached the device as random I/O.", numbers);
    }
    finding!(
        Severity::Biases,
        numbers,
        "{} of the random {}s were merged with a neighbour ({} merges), but chance merges only {}: the merged \
         operations did not reach the device as random I/O.",
        show_share(part),
        worst.kind.word(),
        show_count(worst.device.merges as f64),
        show_share(chance)
    )
}

/// Returns a finding if the previous session drew its random offsets from the same seed.
fn find_repeated_seed(case: &Case) -> Option<Known<Detail>> {
    let plan = &case.record.header.plan;
    let has_draws = case.stream.access.lines.iter().any(|l| !matches!(l.order, Order::Sequential(_)));
    let is_drawn = has_draws && case.stream.replay.is_none();
    let session = plan.seed_again.as_ref().filter(|_| is_drawn && case.has_storage())?;
    Some(session.clone().map(|session| {
        detail!(
            Severity::Biases,
            evidence([]),
            "Seed {} also drew the offsets of session {session}: a cache that still held those \
             blocks may have answered instead of the device.",
            plan.seed
        )
    }))
}

/// Returns the odds that an operation has a neighbour among the other operations in flight. This is the share that
/// chance merges: the scheduler sees no more operations than those in flight.
fn odds_of_neighbour(case: &Case) -> f64 {
    let span = case.targets().iter().map(|(at, _)| case.span_bytes_of(*at)).min().unwrap_or(0);
    let blocks = span as f64 / f64::from(case.stream.access.largest_bytes().max(1));
    // An unknown span, or one smaller than a block, makes every merge possible.
    if blocks < 1.0 { 1.0 } else { (2.0 * requested_depth(&case.stream) / blocks).min(1.0) }
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record in which `part` of the operations are merged into their neighbours: fewer requests, the same bytes.
#[cfg(test)]
pub(in crate::checks) fn merge_some(mut record: model::record::Record, part: f64) -> model::record::Record {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
        let mut fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
        for first in [0, 4] {
            let merged = (fields[first] as f64 * part) as u64;
            fields[first] -= merged;
            fields[first + 1] = merged;
        }
        *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    }
    record
}

#[test]
fn half_merged_relabels_and_a_quarter_merged_is_silent() {
    let at = |part| MERGED.severity(&merge_some(Fixture::honest().record(), part));
    assert_eq!(at(0.5), Some(Severity::Relabels));
    assert_eq!(at(0.4), Some(Severity::Biases));
    assert_eq!(at(0.25), None);
}

#[test]
fn the_sentence_names_the_engine_or_the_kernel() {
    let sentence_with = |engine| {
        let Ok(Answer::Finding(f)) =
            MERGED.answer(&Fixture { merged: 4, engine, ..Fixture::honest() }.record())
        else {
            panic!("silent")
        };
        f.sentence
    };
    assert!(
        sentence_with("io_uring").contains("the kernel merged 4")
            && sentence_with(JOINING_ENGINE).contains("the engine joined 4")
    );
}

#[test]
fn buffered_operations_do_not_apply_and_foreign_bytes_are_not_checked() {
    let buffered = Fixture { merged: 4, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert_eq!(MERGED.answer(&buffered.record()), Ok(Answer::DoesNotApply));
    let foreign = Fixture { foreign_ios: 9_000, ..Fixture::honest() };
    assert!(MERGED.answer(&foreign.record()).is_err());
}

/// A record with `by` requests in place of each request, and the same bytes.
#[cfg(test)]
fn with_split_requests(mut record: model::record::Record, by: u64) -> model::record::Record {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
        let mut fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
        (fields[0], fields[4]) = (fields[0] * by, fields[4] * by);
        *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    }
    record
}

#[test]
fn the_sentence_names_the_queue_limit_and_the_fix_can_be_typed() {
    let mut record =
        with_split_requests(Fixture { block_bytes: 4 << 20, ops: 200, ..Fixture::honest() }.record(), 4);
    let mut found = |kib: u32| {
        record.header.hosts[0].places[0].layers[0].queue.insert("max_sectors_kb".into(), format!("{kib}\n"));
        let Ok(Answer::Finding(f)) = SPLIT.answer(&record) else { panic!("silent") };
        f
    };
    assert!(found(1280).fix.is_some_and(|fix| fix.contains("--bs 1280K or less")));
    let f = found(1024);
    assert_eq!(f.severity, Severity::Biases);
    assert!(
        f.sentence.contains("4 MiB became 4.00 requests") && f.sentence.contains("vda takes at most 1 MiB"),
        "{}",
        f.sentence
    );
}

#[test]
fn small_requests_of_other_processes_are_neither_a_split_nor_the_absence_of_merges() {
    // 1,000 reads of 1 MiB. For each of them, other processes make ten reads of 4 KiB: 4 % of its bytes.
    let large = Fixture { block_bytes: 1 << 20, ops: 1_000, ..Fixture::honest() };
    let with_others = |foreign_ios: u64| Fixture { foreign_ios, ..large.clone() }.record();
    assert!(SPLIT.answer(&with_others(10_000)).is_err_and(|why| why.contains("other processes")));
    assert!(SPLIT.severity(&with_split_requests(large.clone().record(), 4)).is_some());
    assert_eq!(SPLIT.severity(&with_others(0)), None);
    // Three of four operations are merged.
    assert!(MERGED.severity(&merge_some(with_others(0), 0.75)).is_some());
    assert!(MERGED.answer(&merge_some(with_others(10_000), 750.0 / 11_000.0)).is_err());
    assert!(MERGED.answer(&with_others(10_000)).is_ok_and(|answer| matches!(answer, Answer::Holds(..))));

    // As many writes as reads. `counters` maps the device's read requests to its write requests, write merges and sectors written.
    let with_writes = |mut record: model::record::Record, counters: fn(u64) -> [u64; 3]| {
        for run in &mut record.runs {
            for stream in run.end.iter_mut().flat_map(|end| &mut end.streams) {
                let reads = stream.issued[&Kind::Read].clone();
                stream.issued.insert(Kind::Write, reads);
            }
            for snapshot in &mut run.evidence {
                let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
                let mut fields: Vec<u64> =
                    text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
                let writes = counters(fields[0]);
                fields[4..7].copy_from_slice(&writes);
                *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            }
        }
        record
    };
    // Reads of other processes do not hide that each write became four requests. Of the 11,100 reads of a run (with the
    // warm-up), 1,100 are fathom's.
    let split = SPLIT.answer(&with_writes(with_others(10_000), |reads| {
        let ops = reads * 11 / 111;
        [ops * 4, 0, ops << 11]
    }));
    assert!(matches!(&split, Ok(Answer::Finding(f)) if f.sentence.contains("write")), "{split:?}");
    // Three of four writes were merged, and other processes made small writes. Unmerged reads do not hide that.
    let merged = with_writes(with_others(0), |ops| [ops / 4 + ops, ops * 3 / 4, (ops << 11) + ops * 8]);
    assert!(MERGED.answer(&merged).is_err_and(|why| why.contains("hide merges")));
}

#[test]
fn a_journal_next_to_few_operations_is_not_a_split() {
    // 10 operations of 1 MiB and 40 requests of 4 KiB in each of five runs: the bytes agree within 2 %.
    let few_operations = Fixture { ops: 10, block_bytes: 1 << 20, foreign_ios: 40, ..Fixture::honest() };
    assert!(SPLIT.answer(&few_operations.record()).is_err_and(|why| why.contains("too few")));
    // 100 requests per run: too many for a journal, and no cause that would split.
    let some_foreign = Fixture { ops: 400, foreign_ios: 100, block_bytes: 1 << 20, ..Fixture::honest() };
    assert!(
        SPLIT.answer(&some_foreign.record()).is_err_and(|why| why.contains("may belong to other processes"))
    );
    let little_foreign = Fixture { foreign_ios: 400, ..Fixture::honest() };
    assert!(matches!(SPLIT.answer(&little_foreign.record()), Ok(Answer::Holds(..))));
}

#[test]
fn flushes_after_stable_writes_are_not_a_split() {
    let stable = |flushes: u64| {
        let mut record = Fixture::honest_write().record();
        let mut runs = 0;
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            runs += u64::from(snapshot.moment == model::evidence::Moment::Stop);
            let text = snapshot.files["/sys/block/vda/stat"].clone().unwrap();
            let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
            fields[4] = (fields[4].parse::<u64>().unwrap() + runs * 11_000).to_string();
            fields[15] = (runs * flushes).to_string();
            snapshot.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
        }
        SPLIT.severity(&record)
    };
    assert_eq!(stable(11_000), None);
    assert_eq!(stable(500), None, "500 flushes that 11,000 writes share");
    assert_eq!(stable(0), Some(Severity::Biases));
}

#[test]
fn merged_random_operations_bias_unless_b01_relabels() {
    let at = |part| NOT_RANDOM.severity(&merge_some(Fixture::honest().record(), part));
    assert_eq!(at(0.05), Some(Severity::Biases));
    assert_eq!(at(0.01), None);
    assert_eq!(NOT_RANDOM.answer(&merge_some(Fixture::honest().record(), 0.5)), Ok(Answer::DoesNotApply));
}

#[test]
fn merges_by_chance_and_local_orders_are_accepted() {
    let mut small = merge_some(Fixture::honest().record(), 0.2);
    small.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 1 << 20;
    assert_eq!(NOT_RANDOM.severity(&small), None);
    let bytes = small.header.plan.targets[0].bytes;
    let access = &mut small.header.plan.jobs[0].phases[0].streams[0].access;
    (access.offset_bytes, access.span_bytes) = (bytes - (1 << 20), u64::MAX);
    assert_eq!(NOT_RANDOM.severity(&small), None, "the last mebibyte of the target");
    let mut normal = merge_some(Fixture::honest().record(), 0.2);
    normal.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order = Order::Normal(1.0);
    assert_eq!(NOT_RANDOM.answer(&normal), Ok(Answer::DoesNotApply));
}

#[test]
fn a_few_merges_are_accepted() {
    let few_merges = merge_some(Fixture { ops: 300, ..Fixture::honest_write() }.record(), 0.1);
    assert_eq!(NOT_RANDOM.severity(&few_merges), None);
}

#[test]
fn the_seed_of_the_previous_session_biases_random_orders() {
    let with_previous = |previous: Result<&str, &str>| {
        let mut record = Fixture::honest().record();
        record.header.plan.seed_again = Some(previous.map(Into::into).map_err(Into::into));
        record
    };
    assert_eq!(NOT_RANDOM.severity(&with_previous(Ok("20261121-1"))), Some(Severity::Biases));
    assert!(NOT_RANDOM.answer(&with_previous(Err("it is of a later fathom"))).is_err());
    let mut in_order = with_previous(Ok("20261121-1"));
    in_order.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order =
        Order::Sequential(model::job::Steps::default());
    assert_eq!(NOT_RANDOM.severity(&in_order), None);
}

#[test]
fn a_direction_that_cannot_be_compared_hides_no_finding_about_the_other() {
    let with_foreign_reads = |merged, ios| {
        let fixture = Fixture { merged, pattern: Pattern::Sequential, ..Fixture::honest_write() };
        let mut record = crate::figures::traffic::with_foreign_requests(&fixture, 0, ios);
        for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
            let reads = end.streams[0].issued[&Kind::Write].clone();
            end.streams[0].issued.insert(Kind::Read, reads);
        }
        MERGED.answer(&record)
    };
    assert!(matches!(with_foreign_reads(4, 3), Ok(Answer::Finding(_))), "{:?}", with_foreign_reads(4, 3));
    assert!(with_foreign_reads(1, 3).is_err_and(|why| why.contains("of reads")));
}

/// A record whose runs each read `ops[0]` times and write `ops[1]` times, with these requests and merges of reads and writes.
#[cfg(test)]
fn mixed(ops: [u64; 2], ios: [u64; 2], merges: [u64; 2]) -> model::record::Record {
    let mut record = Fixture { read_percent: 50, ..Fixture::honest() }.record();
    let mut runs = 0;
    for run in &mut record.runs {
        for stream in run.end.iter_mut().flat_map(|end| &mut end.streams) {
            let reads = stream.issued[&Kind::Read].clone();
            for (kind, ops) in Kind::MOVING.into_iter().zip(ops) {
                let issued = model::record::Issued { ops, bytes: ops * 4096, ..reads.clone() };
                stream.issued.insert(kind, issued);
            }
        }
        for snapshot in &mut run.evidence {
            let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
            runs += u64::from(snapshot.moment == model::evidence::Moment::Stop);
            let mut fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
            for (direction, first) in [0, 4].into_iter().enumerate() {
                fields[first] = ios[direction] * runs;
                fields[first + 1] = merges[direction] * runs;
                fields[first + 2] = ops[direction] * 8 * runs;
            }
            *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        }
    }
    record
}

#[test]
fn a_few_odd_requests_of_one_direction_hide_no_finding_about_the_other() {
    let sentence = |check: &Check, record| match check.answer(&record) {
        Ok(Answer::Finding(found)) => found.sentence,
        other => panic!("{other:?}"),
    };
    let merged = sentence(&NOT_RANDOM, mixed([6, 20_000], [4, 15_000], [2, 5_000]));
    assert!(merged.contains("random writes") && merged.contains("25,000 merges"), "{merged}");
    let holds = NOT_RANDOM.answer(&mixed([6, 20_000], [4, 20_000], [2, 0]));
    assert!(matches!(holds, Ok(Answer::Holds(..))), "{holds:?}");
    let split = sentence(&SPLIT, mixed([4, 20_000], [40, 60_000], [0, 0]));
    assert!(split.contains("Each write of 4 KiB became 3.00 requests"), "{split}");
    // The few reads may have been split.
    for writes in [20_000, 21_000] {
        let unclear = SPLIT.answer(&mixed([4, 20_000], [12, writes], [0, 0]));
        assert!(unclear.as_ref().is_err_and(|why| why.contains("too few")), "{unclear:?}");
    }
}

/// A record of reads on two disks. `issued` has the operations of each run and the size in the plan. Each disk has its reads of
/// 4 KiB, requests and merges of each run.
#[cfg(test)]
fn on_two_disks(issued: [u64; 2], disks: [[u64; 3]; 2]) -> model::record::Record {
    let block_bytes = issued[1] as u32;
    let mut record = Fixture { block_bytes, ..Fixture::honest() }.record();
    let place = &mut record.header.hosts[0].places[0];
    let (name, stat_file) = ("vdb".to_owned(), "/sys/block/vdb/stat".to_owned());
    place.layers.push(Layer { name, stat_file, number: "254:16".into(), ..place.layers[0].clone() });
    place.tops.push(1);
    let mut runs = 0;
    for run in &mut record.runs {
        for stream in run.end.iter_mut().flat_map(|end| &mut end.streams) {
            let reads = stream.issued.get_mut(&Kind::Read).unwrap();
            (reads.ops, reads.bytes) = (issued[0], issued[0] * 4096);
        }
        for snapshot in &mut run.evidence {
            runs += u64::from(snapshot.moment == Moment::Stop);
            for (disk, [ops, ios, merges]) in ["vda", "vdb"].iter().zip(disks.map(|d| d.map(|n| n * runs))) {
                let text = format!("{ios} {merges} {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0", ops * 8);
                snapshot.files.insert(format!("/sys/block/{disk}/stat"), Ok(text));
            }
        }
    }
    record
}

#[test]
fn of_several_devices_the_worst_one_counts() {
    let found = |check: &Check, record: &model::record::Record| match check.answer(record) {
        Ok(Answer::Finding(found)) => found.sentence,
        other => panic!("{other:?}"),
    };
    // The first disk merges 7.5 operations into a request, the other one splits each operation. Together they made 0.94
    // requests per operation.
    let disks = [[5_700, 760, 4_940], [4_300, 8_600, 0]];
    let mut record = on_two_disks([10_000, 4096], disks);
    let merged = found(&MERGED, &record);
    assert!(merged.contains("vda got requests of 30 KiB") && merged.contains("merged 7.5"), "{merged}");
    let split = found(&SPLIT, &record);
    assert!(split.contains("became 2.00 requests to vdb: its latency"), "{split}");
    // Only the limit of the disk that splits is a cause.
    for (disk, is_cause) in [(0, false), (1, true)] {
        let layers = &mut record.header.hosts[0].places[0].layers;
        layers.iter_mut().for_each(|l| drop(l.queue.insert("max_sectors_kb".into(), "1280".into())));
        layers[disk].queue.insert("max_sectors_kb".into(), "2".into());
        let sentence = found(&SPLIT, &record);
        assert_eq!(sentence.contains("vdb takes at most 2 KiB"), is_cause, "{sentence}");
        assert!(!sentence.contains("vda takes"), "{sentence}");
    }
    // A hundredth and a half of all reads were merged, but 15 % of those on the second disk.
    let merges = on_two_disks([10_000, 4096], [[9_000, 9_000, 0], [1_000, 850, 150]]);
    assert_eq!(NOT_RANDOM.severity(&merges), Some(Severity::Biases));
    // Equal disks, and a second disk with a few reads of other processes.
    for others in [[4_300, 4_300, 0], [30, 30, 0]] {
        let record = on_two_disks(
            [5_700 + if others[0] > 30 { others[0] } else { 0 }, 4096],
            [[5_700, 5_700, 0], others],
        );
        for check in [&MERGED, &SPLIT, &NOT_RANDOM] {
            assert!(
                matches!(check.answer(&record), Ok(Answer::Holds(..))),
                "{others:?} {:?}",
                check.answer(&record)
            );
        }
    }
    // Other processes may have made nearly all requests to the second disk.
    let foreign = SPLIT.answer(&on_two_disks([10_000, 4096], [[9_970, 9_970, 0], [400, 800, 0]]));
    assert!(foreign.as_ref().is_err_and(|why| why.contains("other processes")), "{foreign:?}");
}

#[test]
fn operations_of_several_sizes_on_several_devices_have_bounds() {
    let of_sizes = |disks| on_two_disks([10_000, 8192], disks);
    let hidden = of_sizes([[5_700, 3_800, 1_900], [4_300, 6_200, 0]]);
    for check in [&MERGED, &SPLIT] {
        let why = check.answer(&hidden);
        assert!(why.as_ref().is_err_and(|why| why.contains("several sizes")), "{why:?}");
    }
    // Without merges, the sizes do not matter. Nor do they if all devices together merge or split.
    let plain = MERGED.answer(&of_sizes([[5_700, 5_700, 0], [4_300, 4_300, 0]]));
    assert!(matches!(plain, Ok(Answer::Holds(..))), "{plain:?}");
    let merged = of_sizes([[5_700, 2_850, 2_850], [4_300, 2_150, 2_150]]);
    assert_eq!(MERGED.severity(&merged), Some(Severity::Relabels));
    let split = of_sizes([[5_700, 11_400, 0], [4_300, 8_600, 0]]);
    assert_eq!(SPLIT.severity(&split), Some(Severity::Biases));
}
