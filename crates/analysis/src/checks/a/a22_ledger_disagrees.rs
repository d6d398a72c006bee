//! A22: counters that contradict each other without an explanation. Compares three counts of the same work: what
//! fathom issued, what the kernel charged to its cgroup, and what the devices did.
//!
//! Runs after the checks that explain missing bytes. Extra bytes at the device belong to other processes (D01),
//! and extra charged bytes to the file system (B03, B04). If only the charge is too high, the finding is a note.

use crate::case::ledger::{Refused, refused};
use crate::checks::prelude::*;
use crate::figures::traffic;
use crate::figures::traffic::FLOOR_BYTES;
use model::evidence::CgroupIo;

/// Share by which two counts of the same work may differ. On a quiet disk they are equal to the byte.
const WITHIN: Share = Share(0.01);
/// Requests larger than operations by this factor were merged, which B01 reports.
const MERGED_FROM: f64 = 1.5;
/// Checks that explain missing bytes at the device.
const EXPLAIN_MISSING: &[CheckId] = &[
    CheckId::A01,
    CheckId::A02,
    CheckId::A04,
    CheckId::A06,
    CheckId::A07,
    CheckId::A09,
    CheckId::A12,
    CheckId::A18,
];
/// File systems that charge direct writes to the calling process.
const CHARGED_TO_CALLER: &[&str] = &["ext4", "ext3", "ext2", "xfs", "vfat", "exfat", "f2fs", "block device"];

pub(super) const CHECK: Check = Check {
    id: CheckId::A22,
    name: "LEDGER_DISAGREES",
    belief: "the counters of fathom, of its cgroup and of the devices agree",
    reads: "Bytes and operations that fathom issued, the `stat` files of the devices, and the io counters of \
            fathom's own cgroup, each from start to stop of every run.",
    formula: formula!(
        "Void if (1) through the page cache, the cgroup was charged more bytes than the disk moved until the \
         final sync, (2) direct operations moved more bytes than the disk, (3) direct operations moved more \
         bytes than the cgroup was charged although the disk moved them, or (4) the disk counted fewer \
         requests and merges than direct operations, each by more than {WITHIN} and the I/O in flight. (4) \
         does not apply if requests are more than {MERGED_FROM} times as large as operations (B01). (1) \
         allows {floor} per run, and for sequential reads through the page cache {windows} windows of \
         read-ahead per worker and run, which are charged but still in flight when the counters are read. \
         Double charges are subtracted first: io_uring first submits without waiting, and the kernel charges \
         this attempt even if it refuses it, because the request must be split (see B03) or because more \
         operations are in flight than the device's queue takes (nr_requests). A note if direct operations \
         were charged more than the device moved, and the device moved everything that fathom issued. On a \
         quiet disk these counts are equal to the byte. Does not apply if A01, A02, A04, A06, A07, A09, A12 \
         or A18 explains missing bytes; extra bytes belong to D01, B03 and B04. If several streams use one \
         device, the sums do not show whose count is wrong, so only the bytes that a stream issued and the \
         kernel's count for its own workers are compared.",
        floor = show_bytes(FLOOR_BYTES),
        windows = traffic::WINDOWS
    ),
    provoke: "No command: the finding means that a counter of the kernel or of fathom is wrong. A session \
              file with 3 % added to the issued bytes shows it.",
    fix: "Measure again. If it happens again, report it as a bug in fathom with the session file and the \
          output of `fathom show FILE --format json`.",
    accept: "Do not use the number.",
    ask: Ask::After(EXPLAIN_MISSING, evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { delivered: 0.97, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let tops = case.tops()?;
    if !case.sharers(&tops).is_empty() {
        return shared(case);
    }
    let ledger = Ledger::from_case(case)?;
    let is_direct = case.stream.cache.is_direct();
    let explained = EXPLAIN_MISSING.iter().any(|id| earlier.finds(*id));
    let missing = if is_direct && !explained { ledger.missing(case) } else { None };
    let charged = ledger.charged_beyond_done();
    // If the device did every direct operation that fathom issued, the result is measured, whatever was charged.
    let only_charged = if is_direct && !explained && missing.is_none() { charged.clone() } else { None };
    let contradiction = if only_charged.is_some() { None } else { charged.or(missing) };
    let mut numbers = evidence([
        ("issued_bytes", case.issued_total().bytes as f64),
        ("device_bytes", Kind::MOVING.iter().map(|k| super::flow(&ledger.device, *k).bytes as f64).sum()),
    ]);
    if let Some(own) = ledger.own {
        numbers.insert("charged_bytes".into(), own.bytes.iter().map(|b| *b as f64).sum());
    }
    let Some(contradiction) = contradiction else {
        if let Some(note) = full_queue(case) {
            numbers.insert("charged_bytes".into(), note.charged_bytes);
            return Detail::new(Severity::Note, note.sentence, numbers).found();
        }
        if let Some(charged) = only_charged {
            return finding!(
                Severity::Note,
                numbers,
                "Only the kernel's charge is too high, and fathom does not know why: {charged}. The counts \
                 of fathom and of the device agree, so the number holds."
            );
        }
        let sentence = match (is_direct, ledger.own) {
            (true, Some(_)) => "The counts of fathom, of its cgroup and of the device agree.",
            (true, None) => "The counts of fathom and of the device agree. The cgroup has no count.",
            (false, Some(_)) => "The device moved all bytes that were charged to fathom.",
            (false, None) => {
                return Err("through the page cache, only the bytes charged to fathom's cgroup can be \
                            compared with the device, and the cgroup has no count"
                    .into());
            }
        };
        return holds(sentence, numbers);
    };
    finding!(
        Severity::Void,
        numbers,
        "Counters disagree, and fathom does not know why: {contradiction}. Do not use this number."
    )
}

/// Charges above the issued bytes, caused by a full device queue.
struct FullQueue {
    sentence: String,
    charged_bytes: f64,
}

/// Returns a note if the kernel charged attempts that found the device's queue full.
fn full_queue(case: &Case) -> Option<FullQueue> {
    let charged = case.charged().ok()?;
    let over = |kind: &Kind| {
        let issued = case.issued(*kind).bytes;
        charged.bytes[slot(*kind)] as f64
            > issued as f64 * (1.0 + WITHIN.0) + (FLOOR_BYTES * case.runs.len() as u64) as f64
    };
    let kind = Kind::MOVING.into_iter().find(over)?;
    let Some(Refused::QueueFull(requests)) = refused(case, kind) else { return None };
    let sentence = format!(
        "The kernel charged {} of {}s to fathom, but fathom issued {}: io_uring first submits without \
         waiting, and the kernel charges this attempt even if it refuses it because the device's queue is \
         full (nr_requests {}, requested depth {}). The device did what fathom issued, so the number holds.",
        show_bytes(charged.bytes[slot(kind)]),
        kind.word(),
        show_bytes(case.issued(kind).bytes),
        show_count(requests as f64),
        show_count(asked_depth(&case.stream)),
    );
    Some(FullQueue { sentence, charged_bytes: charged.bytes.iter().map(|b| *b as f64).sum() })
}

/// Returns the answer for a stream that shares its devices. The sums of all streams do not show whose count is
/// wrong, and a cache that serves another stream explains missing bytes. Therefore only the stream's own
/// submissions are compared.
fn shared(case: &Case) -> Known<Answer> {
    if !case.is_direct() {
        return Err(case.why_shared()?);
    }
    for kind in Kind::MOVING {
        let (issued, seen) = (case.issued(kind).bytes, case.at_device(kind)?);
        if (seen.least as f64) * (1.0 + WITHIN.0) < issued as f64 {
            return Err(case.why_shared()?);
        }
    }
    let numbers = evidence([("issued_bytes", case.issued_total().bytes as f64)]);
    holds("The counts of fathom and of the kernel for the stream's workers agree.", numbers)
}

/// Three counts of the same work, all runs together.
struct Ledger {
    /// Counts of the devices that the file systems use.
    device: model::evidence::BlockStat,
    /// Counts of the whole disks, which the kernel charges to cgroups.
    shared: model::evidence::BlockStat,
    /// Bytes charged to fathom's cgroup, if counted.
    own: Option<CgroupIo>,
    /// Bytes that the whole disks wrote until the final sync. The kernel charges at submission and writes back
    /// later.
    until_synced: u64,
    /// Bytes in flight when the counters were read.
    in_flight: f64,
    /// Bytes that may be charged between the reading of two files, plus read-ahead in flight at the end.
    floor: f64,
}

impl Ledger {
    fn from_case(case: &Case) -> Known<Self> {
        let device = case.device()?;
        let disks = case.shared()?;
        let shared = case.counted(&disks)?;
        let synced =
            case.runs.iter().map(|r| Some(r.counted_until(Moment::Synced, &disks).ok()?.write.bytes));
        let until_synced = if case.stream.cache.is_direct() { None } else { synced.sum::<Option<u64>>() };
        let largest = f64::from(case.stream.access.largest_bytes());
        Ok(Self {
            in_flight: device.in_flight.max(shared.in_flight) as f64 * largest,
            floor: FLOOR_BYTES.saturating_add(traffic::unread_bytes(case)) as f64 * case.runs.len() as f64,
            own: case.own().ok(),
            until_synced: until_synced.unwrap_or(0).max(shared.write.bytes),
            device,
            shared,
        })
    }

    /// Describes charged bytes that the disk never did.
    fn charged_beyond_done(&self) -> Option<String> {
        let own = self.own?;
        Kind::MOVING.into_iter().find_map(|kind| {
            let charged = own.bytes[slot(kind)];
            let done = if kind == Kind::Write { self.until_synced } else { self.shared.read.bytes };
            let most = done as f64 * (1.0 + WITHIN.0) + self.in_flight + self.floor;
            (charged as f64 > most).then(|| {
                format!(
                    "the kernel charged {} of {}s to fathom, but the disk moved {}",
                    show_bytes(charged),
                    kind.word(),
                    show_bytes(done)
                )
            })
        })
    }

    /// Describes direct operations that the disk or the cgroup did not see.
    fn missing(&self, case: &Case) -> Option<String> {
        Kind::MOVING.into_iter().find_map(|kind| {
            let issued = case.issued(kind);
            let done = super::flow(&self.device, kind);
            let below = |seen: u64| seen as f64 * (1.0 + WITHIN.0) + self.in_flight < issued.bytes as f64;
            let start_of_sentence = format!("fathom issued {} of {}s", show_bytes(issued.bytes), kind.word());
            if below(done.bytes) {
                return Some(format!("{start_of_sentence}, but the device moved {}", show_bytes(done.bytes)));
            }
            let charged =
                self.own.filter(|_| kind == Kind::Read || charges_caller(case)).map(|o| o.bytes[slot(kind)]);
            if let Some(charged) = charged.filter(|c| below(*c)) {
                return Some(format!(
                    "{start_of_sentence} and the device moved them, but {} were charged to fathom",
                    show_bytes(charged)
                ));
            }
            self.too_few_requests(issued, done)
        })
    }

    /// Describes operations beyond the requests and merges that the device counted.
    fn too_few_requests(&self, issued: Amount, done: BlockFlow) -> Option<String> {
        let seen = done.ios.saturating_add(done.merges);
        let most = seen as f64 * (1.0 + WITHIN.0) + self.device.in_flight as f64;
        let size = |bytes: u64, count: u64| crate::case::share(bytes as f64, count as f64);
        let merged = size(done.bytes, done.ios) > MERGED_FROM * size(issued.bytes, issued.ops);
        (issued.ops as f64 > most && !merged).then(|| {
            format!(
                "fathom issued {} operations, but the device counted {} requests and merges",
                show_count(issued.ops as f64),
                show_count(seen as f64)
            )
        })
    }
}

/// Whether direct writes are charged to the calling process and not to a thread of the file system.
fn charges_caller(case: &Case) -> bool {
    case.places().all(|p| CHARGED_TO_CALLER.contains(&p.kind()))
}

fn slot(kind: Kind) -> usize {
    usize::from(kind == Kind::Write)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn three_percent_missing_is_void_and_ten_percent_is_left_to_a01() {
    let at = |delivered| CHECK.answer(&Fixture { delivered, ..Fixture::honest() }.record());
    assert!(matches!(at(0.995), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = at(0.97) else { panic!("silent") };
    assert!(f.severity == Severity::Void && f.sentence.contains("fathom issued"), "{}", f.sentence);
    assert!(matches!(at(0.9), Ok(Answer::Holds(..))), "A01 says why");
}

/// A record whose last snapshot charges `read_bytes`.
#[cfg(test)]
fn charged(fixture: &Fixture, read_bytes: u64) -> model::record::Record {
    let mut record = fixture.record();
    let stop = record.runs.last_mut().and_then(|r| r.evidence.last_mut()).unwrap();
    let file = stop.files.keys().find(|f| f.ends_with("io_service_bytes")).unwrap().clone();
    stop.files.insert(file, Ok(format!("254:0 Read {read_bytes}\n254:0 Write 0\nTotal {read_bytes}\n")));
    record
}

#[test]
fn charges_must_match_the_device() {
    let one = Fixture { runs: 1, ..Fixture::honest() };
    let issued = 11_000 * 4096_u64;
    let at = |bytes| CHECK.answer(&charged(&one, bytes));
    assert!(matches!(at(issued), Ok(Answer::Holds(..))));
    assert!(matches!(at(issued - 400_000), Ok(Answer::Holds(..))), "0.9 %");
    assert!(matches!(at(issued + 1_400_000), Ok(Answer::Holds(..))), "1 % and what a log may write");
    let sentence = |answer| if let Ok(Answer::Finding(f)) = answer { f.sentence } else { String::new() };
    assert!(sentence(at(issued * 2)).contains("the kernel charged"));
    assert!(sentence(at(issued / 2)).contains("were charged to fathom"));
}

#[test]
fn double_charges_hold_and_triple_charges_are_a_note() {
    let at = |times| CHECK.answer(&crate::case::ledger::split(4, times));
    assert!(matches!(at(2.0), Ok(Answer::Holds(..))), "{:?}", at(2.0));
    let Ok(Answer::Finding(f)) = at(3.0) else { panic!("silent") };
    assert!(f.severity == Severity::Note && f.sentence.contains("does not know why"), "{}", f.sentence);
}

#[test]
fn charges_of_a_full_queue_are_a_note_and_do_not_hide_missing_bytes() {
    use crate::case::ledger::deep;
    for times in [1.3, 1.9] {
        let Ok(Answer::Finding(f)) = CHECK.answer(&deep(256, "128", times)) else { panic!("silent") };
        assert!(f.severity == Severity::Note && f.sentence.contains("nr_requests 128"), "{}", f.sentence);
    }
    assert!(matches!(CHECK.answer(&deep(256, "128", 1.0)), Ok(Answer::Holds(..))));
    let mut lost_requests = Fixture { delivered: 0.97, ..Fixture::honest() }.record();
    lost_requests.header.plan.jobs[0].phases[0].streams[0].depth = 256;
    let queue = &mut lost_requests.header.hosts[0].places[0].layers[0].queue;
    queue.insert("nr_requests".into(), "128".into());
    assert_eq!(CHECK.severity(&lost_requests), Some(Severity::Void));
}

#[test]
fn a_buffered_charge_that_no_disk_did_is_void() {
    let cache = model::job::Cache::Buffered;
    let record = charged(&Fixture { runs: 1, cache, ..Fixture::honest() }, 2 * 11_000 * 4096);
    assert_eq!(CHECK.severity(&record), Some(Severity::Void));
}

#[test]
fn read_ahead_in_flight_at_the_end_is_accepted() {
    let with = |pattern, ahead: u64| {
        let cache = model::job::Cache::Buffered;
        let fixture = Fixture { runs: 1, cache, pattern, ..Fixture::honest() };
        let mut record = charged(&fixture, 11_000 * 4096 + (ahead << 20));
        let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
        queue.insert("read_ahead_kb".into(), "8192\n".into());
        CHECK.severity(&record)
    };
    assert_eq!(with(model::job::Pattern::Sequential, 8), None);
    assert_eq!(with(model::job::Pattern::Sequential, 20), Some(Severity::Void));
    assert_eq!(with(model::job::Pattern::Random, 8), Some(Severity::Void));
}

#[test]
fn fewer_requests_than_operations_are_void() {
    let with_requests = |merged, merges: u64| {
        let mut record = Fixture { merged, runs: 1, ..Fixture::honest() }.record();
        let stop = record.runs[0].evidence.last_mut().unwrap();
        let text = stop.files.get("/sys/block/vda/stat").unwrap().clone().unwrap();
        let fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        let ios: u64 = fields[0].parse().unwrap();
        let new = format!("{} {merges} {}", ios, fields[2..].join(" "));
        stop.files.insert("/sys/block/vda/stat".into(), Ok(new));
        record
    };
    assert_eq!(CHECK.severity(&with_requests(1, 0)), None);
    // Requests four times as large were merged, which B01 reports.
    assert_eq!(CHECK.severity(&with_requests(4, 0)), None);
    let mut lost_requests = with_requests(1, 0);
    let stop = lost_requests.runs[0].evidence.last_mut().unwrap();
    let text = stop.files["/sys/block/vda/stat"].clone().unwrap();
    let (_, after_ios) = text.split_once(' ').unwrap();
    stop.files.insert("/sys/block/vda/stat".into(), Ok(format!("9000 {after_ios}")));
    assert_eq!(CHECK.severity(&lost_requests), Some(Severity::Void));
}

#[test]
fn without_a_cgroup_only_direct_io_is_checked() {
    let without = || Fixture { cgroup: false, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&without().record()), Ok(Answer::Holds(..))));
    let buffered = Fixture { cache: model::job::Cache::Buffered, ..without() };
    assert!(CHECK.answer(&buffered.record()).is_err());
}

#[test]
fn foreign_traffic_and_compression_are_left_to_other_checks() {
    let foreign = Fixture { foreign_ios: 9_000, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&foreign.record()), Ok(Answer::Holds(..))));
    let encoded = Fixture { encoded_share: 1.0, delivered: 0.97, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&encoded.record()), Ok(Answer::Holds(..))));
}

#[test]
fn writeback_by_the_final_sync_counts() {
    let fixture = Fixture { cache: model::job::Cache::Buffered, runs: 1, ..Fixture::honest_write() };
    let mut record = fixture.record();
    let charged = 1_u64 << 30;
    let evidence = &mut record.runs[0].evidence;
    let stop = evidence.iter_mut().find(|s| s.moment == Moment::Stop).unwrap();
    let file = stop.files.keys().find(|f| f.ends_with("io_service_bytes")).unwrap().clone();
    stop.files.insert(file, Ok(format!("254:0 Read 0\n254:0 Write {charged}\nTotal {charged}\n")));
    let text = stop.files["/sys/block/vda/stat"].clone().unwrap();
    assert_eq!(CHECK.severity(&record), Some(Severity::Void), "never done");
    let synced = record.runs[0].evidence.iter_mut().find(|s| s.moment == Moment::Synced).unwrap();
    let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    fields[6] = (fields[6].parse::<u64>().unwrap() + charged / 512).to_string();
    synced.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
    assert_eq!(CHECK.severity(&record), None, "done late");
}
