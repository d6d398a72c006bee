//! What several checks of the group ask: requests beside operations, and the disks below.
//!
//! For: one reading of the counters for B01, B02 and B14. Not for: bytes that did not arrive (A01, A02) or were not ours (D01).

use crate::case::{Amount, Case, share};
use model::Known;
use model::evidence::BlockFlow;
use model::job::Kind;
use model::machine::{Layer, LayerKind};
use model::units::show_bytes;

/// How near the device's bytes must be to the issued ones for its requests to be ours: a foreign twentieth moves the mean
/// size of a request by no more than that.
pub(super) const SAME_BYTES: f64 = 0.05;
/// Requests and merges per run that are never counted against anybody: a journal's commit, a few lines of a log.
pub(super) const ODD_REQUESTS: u64 = 48;
/// Bytes per run of the same.
pub(super) const ODD_BYTES: u64 = 1 << 20;

/// What the tops of the stack made of all operations of one direction, warm-up and drain included.
pub(super) struct Requests {
    pub(super) kind: Kind,
    pub(super) issued: Amount,
    pub(super) device: BlockFlow,
}

impl Requests {
    /// Operations in each request.
    pub(super) fn ops_per_request(&self) -> f64 {
        share(self.issued.ops as f64, self.device.ios as f64)
    }

    /// Requests for each operation.
    pub(super) fn requests_per_op(&self) -> f64 {
        share(self.device.ios as f64, self.issued.ops as f64)
    }

    /// Mean size of an operation in bytes.
    pub(super) fn op_bytes(&self) -> f64 {
        share(self.issued.bytes as f64, self.issued.ops as f64)
    }

    /// Mean size of a request in bytes.
    pub(super) fn request_bytes(&self) -> f64 {
        share(self.device.bytes as f64, self.device.ios as f64)
    }
}

/// Bytes of a page, as the record has it.
pub(super) fn page_bytes(case: &Case) -> u64 {
    let states = case.states(model::evidence::Moment::Start).unwrap_or_default();
    let pages = states.into_iter().flatten().filter_map(|s| s.pages.as_ref().ok());
    pages.map(|p| p.page_bytes).max().filter(|b| *b > 0).unwrap_or(4096)
}

/// Whether operations begin or end within a page.
pub(super) fn parts_of_pages(case: &Case, page: u64) -> bool {
    let access = &case.stream.access;
    let odd = |bytes: u64| !bytes.is_multiple_of(page);
    let smallest = u64::from(access.smallest_bytes());
    odd(access.offset_bytes) || odd(smallest) || odd(u64::from(access.largest_bytes()))
}

/// Whether requests can be compared with operations at all: through the page cache the kernel makes requests of its own.
pub(super) fn one_to_one(case: &Case) -> bool {
    case.on_device() && case.stream.cache.is_direct() && Kind::MOVING.iter().any(|k| case.does(*k))
}

/// The requests of each direction that is done.
///
/// # Errors
/// Why the device was not counted, or that its requests are not those of the operations.
pub(super) fn requests(case: &Case) -> Known<Vec<Requests>> {
    let all = case.device()?;
    let mut out = Vec::new();
    for (kind, mut device) in [(Kind::Read, all.read), (Kind::Write, all.write)] {
        let issued = case.issued(kind);
        if kind == Kind::Write && all.flushes > 0 {
            // The kernel counts a write with a flush behind it twice, the second time without bytes, however many of them
            // share the flush itself.
            device.ios -= issued.ops.min(device.ios.saturating_sub(issued.ops));
        }
        if issued.ops == 0 {
            continue;
        }
        let apart = (device.bytes as f64 - issued.bytes as f64).abs();
        if apart > SAME_BYTES * issued.bytes as f64 {
            return Err(format!(
                "fathom issued {} of {}s and the device did {}, so its requests are not those of the operations",
                show_bytes(issued.bytes),
                kind.word(),
                show_bytes(device.bytes)
            ));
        }
        out.push(Requests { kind, issued, device });
    }
    if out.is_empty() { Err("no operation completed".into()) } else { Ok(out) }
}

/// Requests of a stream that shares its devices with others, as far as bounds tell: even if every merge were its own, and
/// even if the others had made as few requests as they can.
pub(super) struct AtMost {
    /// Operations in each request.
    pub(super) ops_per_request: f64,
    /// Requests for each operation.
    pub(super) requests_per_op: f64,
    /// Merges, and their share of the stream's operations.
    pub(super) merges: u64,
    pub(super) merged_share: f64,
}

/// The bounds of a stream that shares its devices; `None` where it has them alone.
///
/// # Errors
/// Why they tell nothing: the device was not counted, or the stream's bytes are not known to have reached it.
pub(super) fn at_most(case: &Case) -> Known<Option<AtMost>> {
    let tops = case.tops()?;
    let sharers = case.sharers(&tops);
    if sharers.is_empty() {
        return Ok(None);
    }
    let total = case.counted_together(&tops)?.total();
    for kind in Kind::MOVING {
        let (issued, seen) = (case.issued(kind).bytes as f64, case.at_device(kind)?);
        if (seen.least as f64) < (1.0 - SAME_BYTES) * issued {
            return Err(case.why_shared()?);
        }
    }
    let ops = case.issued_total().ops;
    let direct = case.direct_ops_of_sharers(&tops);
    let own_least = ops.saturating_sub(total.merges);
    let others_least = direct.saturating_sub(total.merges);
    Ok(Some(AtMost {
        ops_per_request: if own_least == 0 { f64::INFINITY } else { share(ops as f64, own_least as f64) },
        requests_per_op: share(total.ios.saturating_sub(others_least) as f64, ops as f64),
        merges: total.merges,
        merged_share: share(total.merges as f64, ops as f64),
    }))
}

/// Disks and loop devices below the targets, each once: the layers that have a queue of their own.
///
/// # Errors
/// That none is known.
pub(super) fn disks<'a>(case: &Case<'a>) -> Known<Vec<&'a Layer>> {
    case.grounded()?;
    let mut out: Vec<&Layer> = Vec::new();
    let has_queue = |l: &&Layer| matches!(l.kind, LayerKind::Disk | LayerKind::Loop);
    for layer in case.places().flat_map(|p| &p.layers).filter(has_queue) {
        if out.iter().all(|l| l.stat_file != layer.stat_file) {
            out.push(layer);
        }
    }
    if out.is_empty() { Err("no disk is known below the target".into()) } else { Ok(out) }
}

/// `vda`, or `vda, vdb`.
pub(super) fn names(layers: &[&Layer]) -> String {
    layers.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The record with this share of the operations merged into their neighbours: fewer requests, merges counted, bytes the same.
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
