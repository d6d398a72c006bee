//! The ledger of a case: what fathom issued, what the kernel charged, and what each device completed.
//!
//! The kernel may charge a direct operation twice. io_uring first submits without waiting
//! (`REQ_NOWAIT`). The kernel charges the request to the cgroup (`submit_bio`) before it checks
//! whether the request can pass. If not, the kernel returns the request. An io_uring thread then
//! submits it again with waiting, and it is charged again. Two cases are known, both measured on
//! Linux 6.18 with cgroup v1. The kernel counts for cgroup v2 at the same place.
//!
//! 1. The request is larger than the device accepts and must be split. The charged bytes are exactly twice the completed bytes. The charged
//!    requests are those of the device plus one for each operation.
//! 2. All requests of the device's queue are in use (`nr_requests`). A loop device has 128: up to
//!    128 in flight the charges are exact. With 256 in flight, about every second operation is
//!    charged twice. With `nr_requests` 1024, the charges of 512 in flight are exact. libaio waits
//!    in the call instead, and its charges are exact at any depth.
//!
//! Each operation has at most one refused attempt, so [`Case::own_io`] subtracts at most the issued bytes from the charge. The ledger shows
//! the charge as the kernel counted it, with a remark.

use crate::case::{self, Amount, Case, CaseRun, cgroup_slot, flow_of, requested_depth, share};
use model::Known;
use model::evidence::{BlockFlow, BlockStat, CgroupIo, Moment};
use model::figures::{Account, IoTotals, Ledger, LedgerEntry};
use model::job::{Kind, Stream};
use model::machine::{Layer, Place};
use model::units::show_share;

/// Two counts agree if they differ by no more than this share of the issued bytes: even on a quiet disk, other
/// processes make a few requests. The report shows larger differences, and checks judge them.
const AGREES_WITHIN: f64 = 0.001;

/// Bytes per run that the topmost devices may read as metadata of the file system although no
/// stream reads.
const METADATA_BYTES: u64 = 1 << 20;

/// Returns the ledger of a case; `None` without storage or a complete run.
pub(crate) fn ledger(case: &Case) -> Option<Ledger> {
    if !case.has_storage() || case.runs.is_empty() {
        return None;
    }
    // The ledger shows plain counters, which include all streams that share the devices.
    let case = &case.with_sharers();
    let layers = counted_layers(case);
    Some(Ledger {
        runs: case.runs.len() as u32,
        read: account(case, &layers, Kind::Read),
        write: account(case, &layers, Kind::Write),
    })
}

/// A layer of the stack with its counters.
struct CountedLayer<'a> {
    layer: &'a Layer,
    /// Steps from the top of the stack.
    step: u32,
    until_stop: Known<BlockStat>,
    until_synced: Known<BlockStat>,
    /// Requests in flight at the snapshots.
    in_flight: u64,
}

/// Builds the ledger's account of one direction; `None` without I/O.
fn account(case: &Case, layers: &[CountedLayer], kind: Kind) -> Option<Account> {
    let issued = case.issued(kind);
    if issued.ops == 0 && !has_unrequested_reads(case, layers, kind) {
        return None;
    }
    let largest_bytes = u64::from(case.largest_bytes());
    let charged = charged_to_fathom(case, kind);
    let (difference, word) = compare(issued.bytes, charged.clone().map(|m| m.bytes), 0);
    let word = match why_refused(case, kind).filter(|_| is_charged_twice(case, kind)) {
        Some(Refused::Split) => format!("{word}: operations that had to be split were charged twice"),
        Some(Refused::QueueFull(_)) => {
            format!("{word}: operations that found the device's queue full were charged twice")
        }
        None => word,
    };
    let charged = LedgerEntry {
        name: "fathom's cgroup".into(),
        step: 0,
        counted: charged.ok(),
        with_sync: None,
        difference,
        tolerance_bytes: 0,
        word,
    };
    let entry = |one: &CountedLayer| {
        let (others, counted, in_flight) = step_totals(layers, one, kind);
        let tolerance_bytes = in_flight.saturating_mul(largest_bytes);
        let (difference, word) = compare(issued.bytes, counted, tolerance_bytes);
        let with_sync = one.until_synced.as_ref().ok().filter(|_| kind == Kind::Write);
        LedgerEntry {
            name: one.layer.name.clone(),
            step: one.step,
            counted: one.until_stop.as_ref().ok().map(|s| to_io_totals(flow_of(s, kind))),
            with_sync: with_sync.map(|s| to_io_totals(flow_of(s, kind))),
            difference,
            tolerance_bytes,
            word: if others.is_empty() {
                word
            } else {
                format!("{word}, together with {}", others.join(", "))
            },
        }
    };
    let mut entries: Vec<LedgerEntry> = layers.iter().map(entry).collect();
    if let (true, Err(why)) = (entries.is_empty(), case.top_layers()) {
        let (_, word) = compare(issued.bytes, Err(why), 0);
        entries.push(LedgerEntry {
            name: "device".into(),
            counted: None,
            difference: None,
            word,
            ..charged.clone()
        });
    }
    let issued = IoTotals { ios: issued.ops, bytes: issued.bytes, merges: None, ms: None };
    Some(Account { issued, charged, layers: entries })
}

/// Whether `kind` is reading and the topmost devices read more than file system metadata. The
/// ledger then has an account of reads even if no stream reads.
fn has_unrequested_reads(case: &Case, layers: &[CountedLayer], kind: Kind) -> bool {
    let tops = layers.iter().filter(|c| c.step == 0).filter_map(|c| c.until_stop.as_ref().ok());
    let done = tops.fold(0_u64, |sum, stat| sum.saturating_add(flow_of(stat, kind).bytes));
    kind == Kind::Read && done > METADATA_BYTES.saturating_mul(case.runs.len() as u64)
}

/// Adds up the layers that together carry all bytes at the level of `one`: all layers at the same
/// distance from the top, and higher layers without layers below them. Returns the names of these
/// layers without `one`, the total bytes, and the requests in flight at the snapshots.
fn step_totals(layers: &[CountedLayer], one: &CountedLayer, kind: Kind) -> (Vec<String>, Known<u64>, u64) {
    let in_cut = |c: &&CountedLayer| c.step == one.step || (c.step < one.step && c.layer.below.is_empty());
    let others = layers.iter().filter(in_cut).filter(|c| c.layer.stat_file != one.layer.stat_file);
    let bytes = layers.iter().filter(in_cut).try_fold(0_u64, |sum, c| {
        let stat = c.until_stop.as_ref().map_err(Clone::clone)?;
        Ok(sum.saturating_add(flow_of(stat, kind).bytes))
    });
    let in_flight = layers.iter().filter(in_cut).fold(0_u64, |sum, c| sum.saturating_add(c.in_flight));
    (others.map(|c| c.layer.name.clone()).collect(), bytes, in_flight)
}

/// Returns the I/O that the kernel charged to fathom.
fn charged_to_fathom(case: &Case, kind: Kind) -> Known<IoTotals> {
    let version = case.machine.and_then(|m| m.cgroup.as_ref().ok()).map(|c| c.version);
    if version == Some(1) && kind == Kind::Write && !case.is_direct() {
        return Err("cgroup v1 charges write-back to the root cgroup".into());
    }
    let own = case.charged()?;
    let slot = cgroup_slot(kind);
    Ok(IoTotals { ios: own.ios[slot], bytes: own.bytes[slot], merges: None, ms: None })
}

/// Whether the charge is larger because the kernel also charged refused attempts.
fn is_charged_twice(case: &Case, kind: Kind) -> bool {
    let twice = case.charged().map_or(0, |counted| charged_twice(case, &counted).bytes[cgroup_slot(kind)]);
    twice as f64 > AGREES_WITHIN * case.issued(kind).bytes as f64
}

/// Returns by how much `counted` differs from `issued`, as a share of `issued` and in words. The share is `None` if the
/// count is unknown, or if bytes were counted although none was issued.
fn compare(issued: u64, counted: Known<u64>, tolerance: u64) -> (Option<f64>, String) {
    let counted = match counted {
        Ok(counted) => counted,
        Err(why) => return (None, format!("not counted: {why}")),
    };
    if issued == 0 && counted > tolerance {
        return (None, "not requested".into());
    }
    let difference = share(counted as f64 - issued as f64, issued as f64);
    let word = if counted.abs_diff(issued) <= tolerance || difference.abs() <= AGREES_WITHIN {
        "agrees".to_owned()
    } else if difference > 0.0 {
        format!("{} more", show_share(difference))
    } else {
        format!("{} less", show_share(-difference))
    };
    (Some(difference), word)
}

fn to_io_totals(flow: BlockFlow) -> IoTotals {
    IoTotals { ios: flow.ios, bytes: flow.bytes, merges: Some(flow.merges), ms: Some(flow.ms) }
}

/// Returns every layer below the targets once, from the top down.
fn counted_layers<'a>(case: &Case<'a>) -> Vec<CountedLayer<'a>> {
    let mut out: Vec<CountedLayer> = Vec::new();
    for place in case.places() {
        for (layer, step) in place.layers.iter().zip(distances_from_top(place)) {
            match out.iter_mut().find(|c| c.layer.stat_file == layer.stat_file) {
                Some(known) => known.step = known.step.max(step),
                None => out.push(count_layer(case, place, layer, step)),
            }
        }
    }
    out.sort_by_key(|c| c.step);
    out
}

/// Returns the number of steps from the top to each layer of a place. In `place.layers`, each layer
/// comes before the layers below it.
fn distances_from_top(place: &Place) -> Vec<u32> {
    let mut steps = vec![0_u32; place.layers.len()];
    for (at, layer) in place.layers.iter().enumerate() {
        let next = steps.get(at).map_or(0, |s| s.saturating_add(1));
        for below in layer.below.iter().filter(|b| **b > at) {
            if let Some(step) = steps.get_mut(*below) {
                *step = next.max(*step);
            }
        }
    }
    steps
}

fn count_layer<'a>(case: &Case<'a>, place: &Place, layer: &'a Layer, step: u32) -> CountedLayer<'a> {
    let until = |moment| -> Known<BlockStat> {
        if let Some(why) = case::counters_off_reason(place, layer) {
            return Err(why);
        }
        case.need_run()?;
        case.runs.iter().try_fold(BlockStat::default(), |sum, ran| {
            let one =
                BlockStat::between(ran.snapshot(Moment::Start)?, ran.snapshot(moment)?, &layer.stat_file)?;
            Ok(sum.plus(&one))
        })
    };
    let in_flight = |ran: &CaseRun| -> u64 {
        let at =
            |moment| BlockStat::parse(ran.snapshot(moment)?.text(&layer.stat_file)?).map(|s| s.in_flight);
        [Moment::Start, Moment::Stop].iter().fold(0, |sum, m| sum.saturating_add(at(*m).unwrap_or(0)))
    };
    CountedLayer {
        layer,
        step,
        until_stop: until(Moment::Stop),
        until_synced: until(Moment::Synced),
        in_flight: case.runs.iter().fold(0, |sum, ran| sum.saturating_add(in_flight(ran))),
    }
}

/// Operations are not split if there are at most this many requests for each: one operation in a hundred may cross the
/// border of two extents.
const NOT_SPLIT_UP_TO: f64 = 1.01;

/// The engine that first submits without waiting, and submits a refused operation again with waiting.
const RETRYING_ENGINE: &str = "io_uring";

/// Why the kernel refused an attempt after it had charged the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The operation had to be split.
    Split,
    /// The device's queue was full. It takes this number of requests (`nr_requests`).
    QueueFull(u64),
}

/// Returns why attempts of this kind may have been refused after they were charged. `None` if the
/// kernel cannot have refused any, or if the device's counters or queue size are unknown.
pub(crate) fn why_refused(case: &Case, kind: Kind) -> Option<Refused> {
    if !case.is_direct() || issued_by_retrying(case, kind).ops == 0 {
        return None;
    }
    let done = flow_of(&case.device_io().ok()?, kind);
    if share(done.ios as f64, case.issued(kind).ops as f64) > NOT_SPLIT_UP_TO {
        return Some(Refused::Split);
    }
    let depth: f64 = retrying_streams(case).map(|(_, stream)| requested_depth(stream)).sum();
    let queues = case.shared_layers().ok()?.into_iter().map(|disk| disk.queue_number("nr_requests"));
    let least = queues.filter_map(Result::ok).min()?;
    (depth > least as f64).then_some(Refused::QueueFull(least))
}

/// Returns the streams of the case whose refused attempts are submitted again, with their indices in the phase.
fn retrying_streams<'c>(case: &'c Case) -> impl Iterator<Item = (usize, &'c Stream)> {
    let streams = case.phase_streams().iter().enumerate();
    streams.filter(|(at, stream)| case.has_stream(*at) && repeats_refused(stream))
}

/// Whether the refused attempts of a stream are submitted again.
pub(crate) fn repeats_refused(stream: &Stream) -> bool {
    stream.engine == RETRYING_ENGINE && stream.cache.is_direct()
}

/// Returns the operations of a kind of the streams in [`retrying_streams`].
fn issued_by_retrying(case: &Case, kind: Kind) -> Amount {
    retrying_streams(case).map(|(at, _)| case.issued_by(at, kind)).fold(Amount::default(), Amount::plus)
}

/// Returns the part of `counted` that the kernel charged for refused attempts: at most the bytes that
/// [`retrying_streams`] issued. Zero if [`why_refused`] finds no reason.
pub(crate) fn charged_twice(case: &Case, counted: &CgroupIo) -> CgroupIo {
    let mut twice = CgroupIo::default();
    for kind in Kind::MOVING {
        if why_refused(case, kind).is_none() {
            continue;
        }
        let (slot, repeatable) = (cgroup_slot(kind), issued_by_retrying(case, kind));
        let bytes = counted.bytes[slot].saturating_sub(case.issued(kind).bytes).min(repeatable.bytes);
        let attempts = share(bytes as f64 * repeatable.ops as f64, repeatable.bytes as f64);
        (twice.bytes[slot], twice.ios[slot]) = (bytes, attempts as u64);
    }
    twice
}

#[cfg(test)]
use crate::fixture::Fixture;

/// An honest record whose operations became `requests` requests each and were charged `times_charged` times.
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
    crate::case::cases(record)[0].own_io().unwrap().bytes[0]
}

#[cfg(test)]
fn ledger_from(record: &model::record::Record) -> Ledger {
    ledger(&case::cases(record)[0]).unwrap()
}

#[test]
fn double_charges_of_split_operations_count_once() {
    let issued = 55_000 * 4096;
    assert_eq!(own_bytes(&split(4, 2.0)), issued);
    assert_eq!(own_bytes(&split(4, 1.0)), issued);
    assert_eq!(own_bytes(&split(4, 3.0)), 2 * issued, "only one attempt is made again");
    assert_eq!(own_bytes(&split(1, 2.0)), 2 * issued, "nothing was split");
    let record = split(4, 2.0);
    let case = &crate::case::cases(&record)[0];
    assert_eq!(case.charged().unwrap().bytes[0], 2 * issued, "as the kernel counts it");
    for engine in ["libaio", "sync"] {
        let mut record = split(4, 2.0);
        record.header.plan.jobs[0].phases[0].streams[0].engine = engine.into();
        assert_eq!(own_bytes(&record), 2 * issued, "{engine} waits in the call");
        let word = ledger_from(&record).read.unwrap().charged.word;
        assert_eq!(word, "100 % more", "{engine}");
    }
}

/// Doubles the bytes that the kernel charged, and sets `nr_requests` of every device to 128.
#[cfg(test)]
fn charge_twice_at_a_short_queue(record: &mut model::record::Record) {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let charges = snapshot.files.iter_mut().filter(|(name, _)| name.ends_with("io_service_bytes"));
        for text in charges.filter_map(|(_, text)| text.as_mut().ok()) {
            let twice = |line: &str| {
                let (key, bytes) = line.rsplit_once(' ').unwrap();
                format!("{key} {}\n", 2 * bytes.parse::<u64>().unwrap())
            };
            *text = text.lines().map(twice).collect();
        }
    }
    for layer in record.header.hosts[0].places.iter_mut().flat_map(|p| &mut p.layers) {
        layer.queue.insert("nr_requests".into(), "128".into());
    }
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
fn double_charges_from_a_full_queue_count_once() {
    let issued = 55_000 * 4096;
    assert_eq!(own_bytes(&deep(256, "128", 1.3)), issued);
    assert_eq!(own_bytes(&deep(256, "128", 1.0)), issued);
    assert_eq!(own_bytes(&deep(128, "128", 2.0)), 2 * issued);
    assert_eq!(own_bytes(&deep(256, "1024", 2.0)), 2 * issued);
    let mut waits = deep(256, "128", 2.0);
    waits.header.plan.jobs[0].phases[0].streams[0].engine = "libaio".into();
    assert_eq!(own_bytes(&waits), 2 * issued, "libaio waits in the call");
    // A deep io_uring stream on another disk does not fill this queue.
    let second = Fixture { depth: 256, ..Fixture::honest() };
    let waiting = Fixture { engine: "libaio", ..Fixture::honest() };
    let mut other_disk = crate::fixture::two_streams_on_two_disks(&waiting, &second);
    charge_twice_at_a_short_queue(&mut other_disk);
    assert_eq!(own_bytes(&other_disk), 2 * issued);
    // On the same disk, only the operations of the io_uring stream can have been charged twice.
    let mut same_disk = crate::fixture::two_streams(&waiting, &second);
    charge_twice_at_a_short_queue(&mut same_disk);
    let both = crate::case::cases(&same_disk)[0].with_sharers();
    assert_eq!(both.own_io().unwrap().bytes[0], 3 * issued);
}

#[test]
fn issued_charged_and_completed_agree_on_every_layer() {
    let ledger = ledger_from(&Fixture::honest_loop().record());
    let read = ledger.read.unwrap();
    assert_eq!((ledger.runs, ledger.write), (5, None));
    assert_eq!((read.issued.ios, read.issued.bytes), (55_000, 55_000 * 4096));
    assert_eq!((read.charged.word.as_str(), read.charged.counted.unwrap().ios), ("agrees", 55_000));
    let names: Vec<_> = read.layers.iter().map(|e| (e.name.as_str(), e.step, e.word.as_str())).collect();
    assert_eq!(names, [("loop0", 0, "agrees"), ("vda", 1, "agrees")]);
    assert!(read.layers[0].with_sync.is_none() && read.layers[0].counted.unwrap().ms.unwrap() > 0);
}

#[test]
fn missing_counts_are_not_counted_and_never_zero() {
    let read = ledger_from(&Fixture { stat_unreadable: true, cgroup: false, ..Fixture::honest() }.record())
        .read
        .unwrap();
    for entry in read.layers.iter().chain([&read.charged]) {
        assert!(entry.word.starts_with("not counted: "), "{entry:?}");
        assert!(entry.counted.is_none() && entry.difference.is_none());
    }
    let fuse = ledger_from(&Fixture { nothing_below: true, ..Fixture::honest() }.record()).read.unwrap();
    assert!(fuse.layers[0].word.contains("fuse"), "{:?}", fuse.layers);
    let off = ledger_from(&Fixture { iostats_off: true, ..Fixture::honest() }.record()).read.unwrap();
    assert!(off.layers[0].counted.is_none() && off.layers[0].word.contains("iostats"));
}

#[test]
fn differences_are_given_in_percent() {
    let more = ledger_from(&Fixture { foreign_ios: 33, ..Fixture::honest() }.record()).read.unwrap();
    assert_eq!(more.layers[0].word, "0.3 % more");
    assert!((more.layers[0].difference.unwrap() - 0.003).abs() < 1e-6);
    let less = ledger_from(&Fixture { delivered: 0.5, ..Fixture::honest() }.record()).read.unwrap();
    assert_eq!(less.layers[0].word, "50 % less");
    let tiny = ledger_from(&Fixture { foreign_ios: 9, ..Fixture::honest() }.record()).read.unwrap();
    assert_eq!(tiny.layers[0].word, "agrees");
}

#[test]
fn requests_in_flight_at_a_snapshot_are_tolerated() {
    let mut record = Fixture { foreign_ios: 33, ..Fixture::honest() }.record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/vda/stat"].clone().unwrap();
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        fields[8] = "17";
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
    }
    let entry = ledger_from(&record).read.unwrap().layers.remove(0);
    // 17 requests in flight at each of the two snapshots of five runs.
    assert_eq!((entry.tolerance_bytes, entry.word.as_str()), (170 * 4096, "agrees"));
}

#[test]
fn double_charges_are_mentioned_next_to_the_kernels_count() {
    let read = ledger_from(&split(4, 2.0)).read.unwrap();
    assert!(read.charged.word.starts_with("100 % more: operations that"), "{}", read.charged.word);
    assert_eq!(read.charged.counted.unwrap().bytes, 2 * read.issued.bytes);
    assert_eq!(read.layers[0].word, "agrees");
}

#[test]
fn parallel_layers_are_added_up() {
    let mut record = Fixture::honest_loop().record();
    let place = &mut record.header.hosts[0].places[0];
    let twin =
        Layer { name: "vdb".into(), stat_file: "/sys/block/vdb/stat".into(), ..place.layers[1].clone() };
    place.layers.push(twin);
    place.layers[0].below = vec![1, 2];
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/vda/stat"].clone();
        snapshot.files.insert("/sys/block/vdb/stat".into(), text);
    }
    let layers = ledger_from(&record).read.unwrap().layers;
    assert_eq!(layers[1].word, "100 % more, together with vdb");
    assert_eq!((layers[2].step, layers[2].word.as_str()), (1, "100 % more, together with vda"));
}

#[test]
fn writes_are_followed_into_the_final_sync_and_their_charge_needs_direct_io() {
    let write = ledger_from(&Fixture::honest_write().record()).write.unwrap();
    assert_eq!(write.layers[0].with_sync.map(|m| m.ios), Some(55_000));
    assert_eq!(write.charged.word, "agrees");
    let late = Fixture { cache: model::job::Cache::Buffered, delivered: 0.0, ..Fixture::honest_write() };
    let write = ledger_from(&late.record()).write.unwrap();
    assert!(write.charged.word.contains("charges write-back"), "{}", write.charged.word);
    assert_eq!(write.layers[0].word, "100 % less");
}

#[test]
fn without_storage_there_is_no_ledger() {
    let null = Fixture { role: model::plan::Role::None, engine: "null", ..Fixture::honest() }.record();
    assert_eq!(ledger(&case::cases(&null)[0]), None);
}
