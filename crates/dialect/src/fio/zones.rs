//! Zones: those that a job works in one at a time, and what it moves in all.
//!
//! For: `zonemode=strided` with `zonesize`, `zonerange` and `zoneskip`. Not for: zones that a device has, nor those of random offsets
//! ([`super::access`]).

use super::access::ParsedRw;
use super::jobs::{Fault, Job};
use super::options::ZONED;
use model::job::{PerKind, Sizes, Strided};
use model::spec::StreamSpec;

/// Zones of a job; `None` where the region is one.
pub(super) fn strided_zones(
    job: &Job,
    way: &ParsedRw,
    files: u32,
    one: &StreamSpec,
) -> Result<Option<Strided>, Fault> {
    let bytes = job.bytes("zonesize")?.filter(|bytes| *bytes > 0);
    match (job.text("zonemode"), bytes) {
        (None | Some("none"), None) => {
            let alone = ["zonerange", "zoneskip"].into_iter().find(|option| job.text(option).is_some());
            return alone.map_or(Ok(None), |option| {
                Err(job.fault(
                    option,
                    "it is about zones; type zonemode=strided and zonesize too, or leave it out",
                ))
            });
        }
        (Some("none"), Some(_)) => {
            return Err(job.fault("zonesize", "it goes with zonemode=strided; type that, or leave it out"));
        }
        (Some("strided"), None) => {
            return Err(job.fault("zonemode", "it says no size of a zone; type zonesize=256m too"));
        }
        (None | Some("strided"), Some(_)) => {}
        (Some("zbd"), _) => return Err(job.fault("zonemode", ZONED)),
        (Some(_), _) => return Err(job.fault("zonemode", "it is no mode; type none or strided")),
    }
    let bytes = bytes.unwrap_or(0);
    let range_bytes = job.bytes("zonerange")?.filter(|range| *range > 0).unwrap_or(bytes);
    let skip_bytes = job.bytes("zoneskip")?.unwrap_or(0);
    if files > 1 {
        return Err(job.fault(
            "zonesize",
            "of several files fio makes no zones of its own; leave it out, or type one file",
        ));
    }
    if way.has_number() {
        return Err(
            job.fault("rw", "holes, ways backwards and rows do not go with zones; leave the number out")
        );
    }
    if job.text("random_distribution").is_some_and(|law| law != "random") {
        return Err(
            job.fault("random_distribution", "in a zone offsets are uniform; leave it out, or the zones")
        );
    }
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::fixed);
    let cut =
        one.bs.as_ref().into_iter().flat_map(sizes).flatten().any(|size| range_bytes % u64::from(size) > 0);
    if cut {
        let option = if job.text("zonerange").is_some() { "zonerange" } else { "zonesize" };
        return Err(job.fault(option, "an operation would lie in two zones; type a multiple of its size"));
    }
    let both = way.rw.writes_after_trims() || (way.rw.is_mixed() && !way.rw.is_random());
    if both && bytes > range_bytes {
        let why = "fio begins with a zone again when as many bytes were moved as it has, of both directions; type no more than zonerange";
        return Err(job.fault("zonesize", why));
    }
    Ok(Some(Strided { bytes, range_bytes, skip_bytes }))
}

/// The bytes that a job with zones moves: as many as its region has, round after round, or what one
/// round moves where the end of the region cuts a zone off, with which fio ends.
pub(super) fn bytes_in_all(zones: Strided, region_bytes: u64, one: &StreamSpec, pairs: bool) -> u64 {
    let times = if pairs { 2 } else { 1 };
    let size = one.bs.as_ref().and_then(|bs| bs.write.fixed()).map_or(1, u64::from);
    let all = region_bytes / size * size * times;
    if zones.cut_off(region_bytes) == 0 {
        return all;
    }
    let in_order = one.random.is_none();
    let last = if in_order { zones.last_bytes(region_bytes, size, times) } else { 0 };
    if last == zones.moved(size * times) {
        // What is cut off would not have been reached.
        return all;
    }
    let round = zones.whole(region_bytes).saturating_mul(zones.moved(size * times)).saturating_add(last);
    round.min(all)
}
