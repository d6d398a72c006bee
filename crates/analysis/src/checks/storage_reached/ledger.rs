//! Whether the counts of fathom, the kernel and the devices agree (A13, A22, A24).
//!
//! A13 finds counters that could not be read or do not count. It has no finding: its answer "not
//! checked" keeps a result without device counters from being called valid. A22 compares three
//! counts of the same work: what fathom issued, what the kernel charged to its cgroup, and what the
//! devices did. It runs after the checks that explain missing bytes. Extra bytes at the device are
//! left to the checks of other processes (D01) and of the file system (B03, B04). If only the
//! charge is too high, the finding is a note. A24 compares the bytes counted by fathom with the
//! bytes that system calls moved, by the kernel's count. If the engine makes no such calls, A24
//! requires that bytes missing at the device are in the page cache.

use crate::case::ledger::{Refused, why_refused};
use crate::checks::prelude::*;
use crate::figures::kernel_text::{growth_in_run, number_of_key};
use crate::figures::traffic;
use crate::figures::traffic::FLOOR_BYTES;
use model::evidence::{CgroupIo, TargetState};
use model::record::ThreadIo;

/// Checks that decide whether a stream's bytes arrived at the device. If streams share the device, these checks cannot
/// always answer.
const ARRIVED: [CheckId; 3] = [CheckId::A01, CheckId::A02, CheckId::A09];

pub(in crate::checks) const COUNTERS_BLIND: Check = Check {
    id: CheckId::A13,
    name: "COUNTERS_BLIND",
    belief: "the kernel counted the device's I/O",
    reads: "The `stat` file and queue/iostats of every device directly below the file system.",
    formula: formula!(
        "Not checked if a counter is missing, unreadable or disabled (queue/iostats is 0), or if no block \
         device is known: FUSE, network file systems, zfs. Also not checked if several streams use one \
         device at the same time and A01, A02 or A09 cannot tell this stream's part. The check has no \
         finding: a number that could not be compared with a device is never called valid."
    ),
    provoke: "`echo 0 > /sys/block/X/queue/iostats` and `fathom run --rw randread DIR` on that disk.",
    fix: "Enable the counters: `echo 1 > /sys/block/X/queue/iostats`. For a network or FUSE file system, \
          also measure on the machine that has the disks.",
    accept: "",
    applies: |case| case.on_device(),
    ask: Ask::After(&ARRIVED, check_counters_blind),
    #[cfg(test)]
    fires: None,
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_counters_blind(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let device = case.top_io_of_all_streams();
    let device = device.map_err(|why| format!("this number could not be compared with the device: {why}"))?;
    if !case.sharers(&case.top_layers()?).is_empty() {
        let unknown = ARRIVED.iter().find_map(|id| earlier.answer(*id)?.as_ref().err());
        if let Some(why) = unknown {
            return Err(format!("this number could not be compared with the device: {why}"));
        }
    }
    let total = device.total();
    let numbers = evidence([("device_bytes", total.bytes as f64), ("device_ios", total.ios as f64)]);
    holds("The kernel counted the device's I/O.", numbers)
}

/// Share by which two counts of the same work may differ. On a quiet disk they are equal to the byte.
const WITHIN: Share = Share(0.01);
/// If requests are larger than operations by more than this factor, operations were merged, which B01 reports.
const MERGED_ABOVE: f64 = 1.5;
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
pub(super) const LEDGER_DISAGREES: Check = Check {
    id: CheckId::A22,
    name: "LEDGER_DISAGREES",
    belief: "the counters of fathom, of its cgroup and of the devices agree",
    reads: "Bytes and operations that fathom issued, the `stat` files of the devices, and the io counters of \
            fathom's own cgroup, each from start to stop of every run.",
    formula: formula!(
        "Compares three counts of the same work: what fathom issued, what the kernel charged to its \
         cgroup, and what the disk moved. Each rule tolerates {WITHIN} and the I/O in flight. On a quiet \
         disk the counts are equal to the byte.\n\
         - Invalid if the cgroup was charged more bytes than the disk moved. Writes through the page cache \
         count until the final sync. This rule also allows {floor} per run, and for sequential reads \
         through the page cache {windows} windows of read-ahead per worker and run: they are charged, but \
         still in flight when the counters are read.\n\
         - Invalid if direct operations moved more bytes than the disk.\n\
         - Invalid if direct operations moved more bytes than the cgroup was charged, although the disk \
         moved them. This rule does not apply to writes on file systems that charge them to their own \
         threads.\n\
         - Invalid if the disk counted fewer requests and merges than direct operations. This rule does \
         not apply if requests are more than {MERGED_ABOVE} times as large as operations (B01).\n\
         - A note, instead of invalid, if only the charge is too high: the operations are direct, and the \
         disk did everything that fathom issued.\n\
         - A note if the device's queue was full (nr_requests) and the kernel therefore charged operations \
         twice. io_uring first submits without waiting, and the kernel also charges attempts that it \
         refuses, because the queue is full or because a request must be split. Such double charges are \
         subtracted first.\n\
         - Only the first rule is checked if A01, A02, A04, A06, A07, A09, A12 or A18 explains missing \
         bytes. D01, B03 and B04 report extra bytes.\n\
         - If several streams use one device, the sums do not show whose count is wrong. The check then \
         compares only the bytes that a direct stream issued with the kernel's count for its own workers. \
         It holds if they agree, and is otherwise not checked.\n\
         - Not checked for I/O through the page cache if the cgroup has no count.",
        floor = show_bytes(FLOOR_BYTES),
        windows = traffic::READ_AHEAD_WINDOWS
    ),
    provoke: "No command: the finding means that a counter of the kernel or of fathom is wrong. A session \
              file with 3 % added to the issued bytes shows it.",
    fix: "Measure again. If it happens again, report it as a bug in fathom with the session file and the \
          output of `fathom show FILE --format json`.",
    accept: "Do not use the number.",
    applies: |case| case.on_device(),
    ask: Ask::After(EXPLAIN_MISSING, check_ledger_disagrees),
    #[cfg(test)]
    fires: Some(|| Fixture { delivered: 0.97, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_ledger_disagrees(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let tops = case.top_layers()?;
    if !case.sharers(&tops).is_empty() {
        return check_own_submissions(case);
    }
    let ledger = Ledger::from_case(case)?;
    let is_direct = case.stream.cache.is_direct();
    let explained = EXPLAIN_MISSING.iter().any(|id| earlier.finds(*id));
    let missing = if is_direct && !explained { ledger.missing(case) } else { None };
    let charged = ledger.describe_excess_charge();
    // If the device did every direct operation that fathom issued, the result is correct, whatever was charged.
    let only_charged = if is_direct && !explained && missing.is_none() { charged.clone() } else { None };
    let contradiction = if only_charged.is_some() { None } else { charged.or(missing) };
    let mut numbers = evidence([
        ("issued_bytes", case.issued_total().bytes as f64),
        ("device_bytes", Kind::MOVING.iter().map(|k| flow_of(&ledger.device, *k).bytes as f64).sum()),
    ]);
    if let Some(own) = ledger.own {
        numbers.insert("charged_bytes".into(), own.bytes.iter().map(|b| *b as f64).sum());
    }
    let Some(contradiction) = contradiction else {
        if let Some(note) = full_queue_note(case, &numbers) {
            return note.found();
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
            (true, Some(_)) => "The counts of fathom, of its cgroup and of the device agree.".to_owned(),
            (true, None) => {
                "The counts of fathom and of the device agree. The cgroup has no count.".to_owned()
            }
            (false, Some(own)) => match ledger.moved_share(&own) {
                part if part < 1.0 => format!(
                    "The device moved {} of the bytes that were charged to fathom, and the rest is within \
                     the tolerance.",
                    show_part(part)
                ),
                _ => "The device moved all bytes that were charged to fathom.".to_owned(),
            },
            (false, None) => {
                return not_checked(
                    "the I/O went through the page cache: only the bytes charged to fathom's cgroup can be \
                     compared with the device's, and the cgroup counted none",
                );
            }
        };
        return holds(sentence, numbers);
    };
    finding!(
        Severity::Invalidates,
        numbers,
        "Counters disagree, and fathom does not know why: {contradiction}. Do not use this number."
    )
}

/// Returns a note with these numbers if the kernel charged attempts that found the device's queue full.
fn full_queue_note(case: &Case, numbers: &Evidence) -> Option<Detail> {
    let charged = case.charged().ok()?;
    let over = |kind: &Kind| {
        let issued = case.issued(*kind).bytes;
        charged.bytes[cgroup_slot(*kind)] as f64
            > issued as f64 * (1.0 + WITHIN.0) + (FLOOR_BYTES * case.runs.len() as u64) as f64
    };
    let kind = Kind::MOVING.into_iter().find(over)?;
    let Some(Refused::QueueFull(requests)) = why_refused(case, kind) else { return None };
    let charged_bytes = charged.bytes.iter().map(|b| *b as f64).sum();
    let mut numbers = numbers.clone();
    numbers.insert("charged_bytes".into(), charged_bytes);
    Some(detail!(
        Severity::Note,
        numbers,
        "The kernel charged {} of {}s to fathom, but fathom issued {}: io_uring first submits without \
         waiting. If the device's queue is full, the kernel refuses this attempt but charges it too \
         (nr_requests {}, requested depth {}). The device did what fathom issued, so the number holds.",
        show_bytes(charged.bytes[cgroup_slot(kind)]),
        kind.word(),
        show_bytes(case.issued(kind).bytes),
        show_count(requests as f64),
        show_count(requested_depth(&case.stream)),
    ))
}

/// Returns the answer for a stream that shares its devices. The sums of all streams do not show whose count is
/// wrong, and a cache that serves another stream explains missing bytes. Therefore only the stream's own
/// submissions are compared.
fn check_own_submissions(case: &Case) -> Known<Answer> {
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
    /// Counts of the whole disks: the kernel charges cgroups for the disk, not for the partition.
    shared: model::evidence::BlockStat,
    /// The charges to fathom's cgroup without double charges, if counted.
    own: Option<CgroupIo>,
    /// Bytes that the whole disks wrote: until the final sync for writes through the page cache,
    /// until the stop for direct writes. The kernel charges a request when it is submitted, and the
    /// disk may complete it after the stop.
    disk_written_bytes: u64,
    /// Upper bound of the bytes in flight when the counters were read.
    in_flight: f64,
    /// Bytes by which counts may differ because the kernel's files are read one after the other, plus read-ahead in
    /// flight at the end.
    floor: f64,
}

impl Ledger {
    fn from_case(case: &Case) -> Known<Self> {
        let device = case.device_io()?;
        let disks = case.shared_layers()?;
        let shared = case.layer_io(&disks)?;
        let synced =
            case.runs.iter().map(|r| Some(r.layer_io_until(Moment::Synced, &disks).ok()?.write.bytes));
        let written_until_sync =
            if case.stream.cache.is_direct() { None } else { synced.sum::<Option<u64>>() };
        let largest = f64::from(case.stream.access.largest_bytes());
        Ok(Self {
            in_flight: device.in_flight.max(shared.in_flight) as f64 * largest,
            floor: FLOOR_BYTES.saturating_add(traffic::unread_bytes(case)) as f64 * case.runs.len() as f64,
            own: case.own_io().ok(),
            disk_written_bytes: written_until_sync.unwrap_or(0).max(shared.write.bytes),
            device,
            shared,
        })
    }

    /// Returns the bytes that the disk moved in one direction; for writes, `disk_written_bytes`.
    fn moved_bytes(&self, kind: Kind) -> u64 {
        if kind == Kind::Write { self.disk_written_bytes } else { self.shared.read.bytes }
    }

    /// Returns the bytes moved by the disk divided by the bytes charged, at most 1: the smaller quotient of the two directions.
    fn moved_share(&self, own: &CgroupIo) -> f64 {
        let charged = |kind: Kind| own.bytes[cgroup_slot(kind)];
        let directions = Kind::MOVING.into_iter().filter(|kind| charged(*kind) > 0);
        let shares = directions.map(|kind| self.moved_bytes(kind) as f64 / charged(kind) as f64);
        shares.fold(1.0, f64::min)
    }

    /// Describes charged bytes that the disk did not move.
    fn describe_excess_charge(&self) -> Option<String> {
        let own = self.own?;
        Kind::MOVING.into_iter().find_map(|kind| {
            let charged = own.bytes[cgroup_slot(kind)];
            let done = self.moved_bytes(kind);
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
            let done = flow_of(&self.device, kind);
            let below = |seen: u64| seen as f64 * (1.0 + WITHIN.0) + self.in_flight < issued.bytes as f64;
            let start_of_sentence = format!("fathom issued {} of {}s", show_bytes(issued.bytes), kind.word());
            if below(done.bytes) {
                return Some(format!("{start_of_sentence}, but the device moved {}", show_bytes(done.bytes)));
            }
            let charged = self
                .own
                .filter(|_| kind == Kind::Read || traffic::has_modest_overhead(case))
                .map(|o| o.bytes[cgroup_slot(kind)]);
            if let Some(charged) = charged.filter(|c| below(*c)) {
                return Some(format!(
                    "{start_of_sentence} and the device moved them, but {} were charged to fathom",
                    show_bytes(charged)
                ));
            }
            self.describe_missing_requests(issued, done)
        })
    }

    /// Describes a shortage: the device counted fewer requests and merges than fathom issued operations. `None` without one.
    fn describe_missing_requests(&self, issued: Amount, done: BlockFlow) -> Option<String> {
        let seen = done.ios.saturating_add(done.merges);
        let most = seen as f64 * (1.0 + WITHIN.0) + self.device.in_flight as f64;
        let size = |bytes: u64, count: u64| share(bytes as f64, count as f64);
        let merged = size(done.bytes, done.ios) > MERGED_ABOVE * size(issued.bytes, issued.ops);
        (issued.ops as f64 > most && !merged).then(|| {
            format!(
                "fathom issued {}, but the device counted {}, including merged ones",
                show_counted(issued.ops, "operation"),
                show_counted(seen, "request")
            )
        })
    }
}

const IO_FILE: &str = "/proc/self/io";
/// Engines that make a read or write system call for every operation. The kernel counts the bytes of these calls. For
/// posixaio, the C library makes the calls in its own threads.
const COUNTED: &[&str] = &["sync", "vsync", "preadv", "rw", "posixaio"];
/// Engines that make the same calls but may answer from a buffer in the process.
const BUFFERED: &[&str] = &["std", "stdio", "fstream"];
/// Share of the bytes that the kernel must have counted if the engine has no buffer. The kernel counts all bytes of the
/// engine, and also fathom's own reads.
const COUNTED_FROM: Share = Share(0.99);
/// Share of the bytes that the kernel must have counted if a buffer in the process may answer. The buffer cannot answer
/// all reads of a much larger region.
const BUFFERED_FROM: Share = Share(0.01);
/// The kernel's count is evidence only if the region is larger than this many buffers.
const MANY_BUFFERS: u64 = 16;
/// Largest default buffer: a block of the file system.
const BUFFER_BYTES: u64 = 64 << 10;
/// Share of the reads that must be missing at the device before pages are checked.
const MISSING_FROM: Share = Share(0.5);
/// Share of the bytes read from memory that must still be cached at the start or end of a run. Other processes may
/// evict most of them, but not all.
const CACHED_FROM: Share = Share(0.01);

pub(super) const UNACCOUNTED: Check = Check {
    id: CheckId::A24,
    name: "UNACCOUNTED",
    belief: "the kernel performed the operations that fathom counted",
    reads: "`rchar` and `wchar` in `/proc/self/io` at start and stop of every run (`/proc/thread-self/io` of \
            the stream's own workers if several streams run), for the engines sync, vsync, preadv, rw, \
            posixaio, std, stdio and fstream. For other engines, or if that file is missing: the target's \
            pages in the page cache and the device's counters.",
    formula: formula!(
        "Compares the bytes that fathom counted with the bytes that system calls moved, by the kernel's \
         count.\n\
         - Invalid if system calls moved less than {COUNTED_FROM} of the bytes that fathom counted: the \
         kernel counts all of them. The limit is {BUFFERED_FROM} if std, stdio or fstream uses its own \
         buffer and the region is larger than {MANY_BUFFERS} buffers.\n\
         - If the kernel's count does not decide, as for other engines: invalid if at least {MISSING_FROM} \
         of the reads through the page cache are missing at the device, and less than {CACHED_FROM} of \
         these bytes are in the page cache both at the start and at the end of the runs. Then no page \
         explains them.\n\
         - The second rule does not apply if A04 found holes, which need no page. Not checked if the order of \
         offsets does not show how many different blocks were read, as for zones and replays.\n\
         - Not checked if other streams run at the same time and the kernel's counts do not show this \
         stream's part."
    ),
    provoke: "A library that answers `aio_read` itself: `LD_PRELOAD=./answers.so fathom run --rw randread \
              --engine posixaio --cache buffered FILE`. fathom's own tests build one.",
    fix: "Check LD_PRELOAD and /etc/ld.so.preload, and anything else between programs and the kernel \
          (`fathom doctor`).",
    accept: "Do not accept it: the kernel did not perform these operations.",
    applies: |case| case.has_storage() && Kind::MOVING.iter().any(|k| case.does(*k)),
    ask: Ask::After(&[CheckId::A04], check_unaccounted),
    #[cfg(test)]
    fires: Some(|| calls([0, 0])),
    #[cfg(test)]
    blind: || {
        let mut record = calls([0, 0]);
        super::change_snapshots(&mut record, |s| {
            s.files.remove(IO_FILE);
            s.targets.clear();
        });
        record
    },
};

fn check_unaccounted(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let Some(least_share) = least_counted_share(case) else { return decide_by_pages(case, earlier) };
    match decide_by_calls(case, least_share) {
        Ok(Answer::Undecided(_)) | Err(_) if case.does(Kind::Read) && case.on_device() => {
            decide_by_pages(case, earlier)
        }
        answer => answer,
    }
}

/// Returns the share of the issued bytes that the kernel must have counted in system calls. `None`
/// if the count proves nothing about the stream's engine.
fn least_counted_share(case: &Case) -> Option<Share> {
    let stream = &case.stream;
    let engine = stream.engine.as_str();
    if COUNTED.contains(&engine) {
        return Some(COUNTED_FROM);
    }
    if !BUFFERED.contains(&engine) {
        return None;
    }
    let buffer_option = stream.options.get("buffer").copied().flatten();
    if engine == "std" && buffer_option.is_none() {
        return Some(COUNTED_FROM);
    }
    let bytes = buffer_option.unwrap_or(0).max(BUFFER_BYTES).saturating_mul(u64::from(stream.workers));
    (case.span_bytes() > MANY_BUFFERS.saturating_mul(bytes)).then_some(BUFFERED_FROM)
}

/// Decides by the kernel's count of bytes that system calls moved. I/O on fathom's own files only increases the count.
fn decide_by_calls(case: &Case, enough_share: Share) -> Known<Answer> {
    let streams = case.phase_streams().len();
    let (mut least_share, mut is_undecided) = (1.0_f64, false);
    for (kind, key) in [(Kind::Read, "rchar:"), (Kind::Write, "wchar:")] {
        let issued = case.issued(kind).bytes;
        let moved = if streams > 1 {
            // The process-wide count includes all streams, so use the count of the stream's own workers.
            let count: fn(&ThreadIo) -> u64 = if kind == Kind::Read { |io| io.rchar } else { |io| io.wchar };
            let own = case.counted_by_workers(case.stream_index, count);
            let enough = |bytes: u64| bytes as f64 >= enough_share.0 * issued as f64;
            is_undecided |= enough(own.most) && !enough(own.least);
            own.most
        } else {
            sum_over_runs(case, |ran| growth_in_run(ran, IO_FILE, |text| number_of_key(text, key)))?
        };
        if (moved as f64) < enough_share.0 * issued as f64 {
            return finding!(
                Severity::Invalidates,
                evidence([("issued_bytes", issued as f64), ("moved_bytes", moved as f64)]),
                "fathom counted {} of {}s, but system calls of this process moved {}: something between \
                 fathom and the kernel answered instead.",
                show_bytes(issued),
                kind.word(),
                show_bytes(moved)
            );
        }
        if issued > 0 {
            least_share = least_share.min(moved as f64 / issued as f64);
        }
    }
    if is_undecided {
        return undecided_by_workers(
            case,
            "how many bytes system calls moved for this stream",
            "other streams ran at the same time, and the kernel counts their system calls together",
        );
    }
    let part = if least_share >= 1.0 { "all".to_owned() } else { show_part(least_share) + " of the" };
    holds(format!("System calls moved {part} bytes that fathom counted."), evidence([]))
}

/// Decides by pages: reads that no device delivered must be in the page cache. Direct reads need no page; A18
/// reports direct reads that are too fast.
fn decide_by_pages(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() || earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    let (read, delivered) = (case.issued(Kind::Read).bytes, case.at_device(Kind::Read)?);
    let missing = read.saturating_sub(delivered.most);
    if share(missing as f64, read as f64) < MISSING_FROM {
        if share(read.saturating_sub(delivered.least) as f64, read as f64) >= MISSING_FROM {
            return undecided_by_sharing(case, "how many of this stream's reads a device delivered");
        }
        return holds("The device or the page cache accounts for the reads.", evidence([]));
    }
    if case.stream.cache.is_direct() {
        return Ok(Answer::DoesNotApply);
    }
    // Only an order that visits all blocks alike shows how many different ones were read.
    super::cacheable::repeated_share(case, read as f64)?;
    let from_memory = missing.min(case.span_bytes());
    let mut most_cached = 0;
    for moment in [Moment::Start, Moment::Stop] {
        for states in case.states(moment)? {
            let cached_bytes =
                |state: &TargetState| state.pages.clone().map(|p| p.cached.saturating_mul(p.page_bytes));
            most_cached = most_cached.max(states.into_iter().map(cached_bytes).sum::<Known<u64>>()?);
        }
    }
    let numbers = evidence([("missing_bytes", missing as f64), ("cached_bytes", most_cached as f64)]);
    if most_cached as f64 >= CACHED_FROM.0 * from_memory as f64 {
        return holds("The device or the page cache accounts for the reads.", numbers);
    }
    finding!(
        Severity::Invalidates,
        numbers,
        "{} of reads reached no device, and the page cache holds only {} of the targets: nothing visible \
         performed these reads.",
        show_bytes(missing),
        show_bytes(most_cached)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn disabled_counters_and_a_stack_without_devices_are_not_checked() {
    let off = COUNTERS_BLIND.answer(&Fixture { iostats_off: true, ..Fixture::honest() }.record());
    assert!(off.is_err_and(|why| why.contains("iostats is 0")));
    let fuse = COUNTERS_BLIND.answer(&Fixture { nothing_below: true, ..Fixture::honest() }.record());
    assert!(fuse.is_err_and(|why| why.contains("fuse")));
}

#[test]
fn a13_does_not_apply_to_memory_and_the_null_engine() {
    let tmpfs = Fixture { ram: Some("tmpfs"), ..Fixture::honest() };
    assert_eq!(COUNTERS_BLIND.answer(&tmpfs.record()), Ok(Answer::DoesNotApply));
    let null = Fixture { role: model::plan::Role::None, engine: "null", ..Fixture::honest() };
    assert_eq!(COUNTERS_BLIND.answer(&null.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn three_percent_missing_is_void_and_ten_percent_is_left_to_a01() {
    let at = |delivered| LEDGER_DISAGREES.answer(&Fixture { delivered, ..Fixture::honest() }.record());
    assert!(matches!(at(0.995), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = at(0.97) else { panic!("silent") };
    assert!(f.severity == Severity::Invalidates && f.sentence.contains("fathom issued"), "{}", f.sentence);
    assert!(matches!(at(0.9), Ok(Answer::Holds(..))), "A01 says why");
}

/// A record in which the kernel has charged `read_bytes` of reads to fathom by the last snapshot.
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
    let at = |bytes| LEDGER_DISAGREES.answer(&charged(&one, bytes));
    assert!(matches!(at(issued), Ok(Answer::Holds(..))));
    assert!(matches!(at(issued - 400_000), Ok(Answer::Holds(..))), "0.9 %");
    assert!(matches!(at(issued + 1_400_000), Ok(Answer::Holds(..))), "1 % and what a log may write");
    let sentence = |answer| if let Ok(Answer::Finding(f)) = answer { f.sentence } else { String::new() };
    assert!(sentence(at(issued * 2)).contains("the kernel charged"));
    assert!(sentence(at(issued / 2)).contains("were charged to fathom"));
}

#[test]
fn double_charges_hold_and_triple_charges_are_a_note() {
    let at = |times| LEDGER_DISAGREES.answer(&crate::case::ledger::split(4, times));
    assert!(matches!(at(2.0), Ok(Answer::Holds(..))), "{:?}", at(2.0));
    let Ok(Answer::Finding(f)) = at(3.0) else { panic!("silent") };
    assert!(f.severity == Severity::Note && f.sentence.contains("does not know why"), "{}", f.sentence);
    let mut waiting = crate::case::ledger::split(4, 2.0);
    waiting.header.plan.jobs[0].phases[0].streams[0].engine = "libaio".into();
    assert_eq!(LEDGER_DISAGREES.severity(&waiting), Some(Severity::Note), "libaio makes no second attempt");
}

#[test]
fn charges_of_a_full_queue_are_a_note_and_do_not_hide_missing_bytes() {
    use crate::case::ledger::deep;
    for times in [1.3, 1.9] {
        let Ok(Answer::Finding(f)) = LEDGER_DISAGREES.answer(&deep(256, "128", times)) else {
            panic!("silent")
        };
        assert!(f.severity == Severity::Note && f.sentence.contains("nr_requests 128"), "{}", f.sentence);
    }
    assert!(matches!(LEDGER_DISAGREES.answer(&deep(256, "128", 1.0)), Ok(Answer::Holds(..))));
    let mut lost_requests = Fixture { delivered: 0.97, ..Fixture::honest() }.record();
    lost_requests.header.plan.jobs[0].phases[0].streams[0].depth = 256;
    let queue = &mut lost_requests.header.hosts[0].places[0].layers[0].queue;
    queue.insert("nr_requests".into(), "128".into());
    assert_eq!(LEDGER_DISAGREES.severity(&lost_requests), Some(Severity::Invalidates));
}

#[test]
fn a_buffered_charge_that_no_disk_did_is_void() {
    let cache = model::job::Cache::Buffered;
    let record = charged(&Fixture { runs: 1, cache, ..Fixture::honest() }, 2 * 11_000 * 4096);
    assert_eq!(LEDGER_DISAGREES.severity(&record), Some(Severity::Invalidates));
}

#[test]
fn beliefs_that_hold_within_a_tolerance_give_the_share() {
    let cache = model::job::Cache::Buffered;
    let issued = 11_000 * 4096_u64;
    let moved = |charged_bytes| {
        let fixture = Fixture { runs: 1, cache, ..Fixture::honest() };
        LEDGER_DISAGREES.sentence(&charged(&fixture, charged_bytes))
    };
    assert_eq!(moved(issued), "The device moved all bytes that were charged to fathom.");
    let within = moved(issued * 1005 / 1000);
    assert!(within.starts_with("The device moved 99.5 % of the bytes"), "{within}");
    let by_calls = |bytes| UNACCOUNTED.sentence(&calls([bytes, 0]));
    assert_eq!(by_calls(issued), "System calls moved all bytes that fathom counted.");
    assert_eq!(by_calls(issued * 995 / 1000), "System calls moved 99.5 % of the bytes that fathom counted.");
}

#[test]
fn read_ahead_in_flight_at_the_end_is_accepted() {
    let with = |pattern, ahead: u64| {
        let cache = model::job::Cache::Buffered;
        let fixture = Fixture { runs: 1, cache, pattern, ..Fixture::honest() };
        let mut record = charged(&fixture, 11_000 * 4096 + (ahead << 20));
        let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
        queue.insert("read_ahead_kb".into(), "8192\n".into());
        LEDGER_DISAGREES.severity(&record)
    };
    assert_eq!(with(model::job::Pattern::Sequential, 8), None);
    assert_eq!(with(model::job::Pattern::Sequential, 20), Some(Severity::Invalidates));
    assert_eq!(with(model::job::Pattern::Random, 8), Some(Severity::Invalidates));
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
    assert_eq!(LEDGER_DISAGREES.severity(&with_requests(1, 0)), None);
    // Requests four times as large were merged, which B01 reports.
    assert_eq!(LEDGER_DISAGREES.severity(&with_requests(4, 0)), None);
    let mut lost_requests = with_requests(1, 0);
    let stop = lost_requests.runs[0].evidence.last_mut().unwrap();
    let text = stop.files["/sys/block/vda/stat"].clone().unwrap();
    let (_, after_ios) = text.split_once(' ').unwrap();
    stop.files.insert("/sys/block/vda/stat".into(), Ok(format!("9000 {after_ios}")));
    assert_eq!(LEDGER_DISAGREES.severity(&lost_requests), Some(Severity::Invalidates));
}

#[test]
fn without_a_cgroup_only_direct_io_is_checked() {
    let without = || Fixture { cgroup: false, ..Fixture::honest() };
    assert!(matches!(LEDGER_DISAGREES.answer(&without().record()), Ok(Answer::Holds(..))));
    let buffered = Fixture { cache: model::job::Cache::Buffered, ..without() };
    assert!(LEDGER_DISAGREES.answer(&buffered.record()).is_err());
}

#[test]
fn foreign_traffic_and_compression_are_left_to_other_checks() {
    let foreign = Fixture { foreign_ios: 9_000, ..Fixture::honest() };
    assert!(matches!(LEDGER_DISAGREES.answer(&foreign.record()), Ok(Answer::Holds(..))));
    let encoded = Fixture { encoded_share: 1.0, delivered: 0.97, ..Fixture::honest() };
    assert!(matches!(LEDGER_DISAGREES.answer(&encoded.record()), Ok(Answer::Holds(..))));
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
    assert_eq!(LEDGER_DISAGREES.severity(&record), Some(Severity::Invalidates), "never done");
    let synced = record.runs[0].evidence.iter_mut().find(|s| s.moment == Moment::Synced).unwrap();
    let mut fields: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    fields[6] = (fields[6].parse::<u64>().unwrap() + charged / 512).to_string();
    synced.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
    assert_eq!(LEDGER_DISAGREES.severity(&record), None, "done late");
}

/// Buffered reads of the engine sync. System calls moved `moved` bytes in each run, and `pages` pages are cached.
#[cfg(test)]
fn calls([moved, pages]: [u64; 2]) -> model::record::Record {
    let cache = model::job::Cache::Buffered;
    let mut record = Fixture { engine: "sync", delivered: 0.0, cache, ..Fixture::honest() }.record();
    super::change_snapshots(&mut record, |s| {
        let moved = if s.moment == Moment::Start { 0 } else { moved };
        s.files.insert(IO_FILE.into(), Ok(format!("rchar: {moved}\nwchar: 0\n")));
        s.targets.iter_mut().filter_map(|t| t.pages.as_mut().ok()).for_each(|p| p.cached = pages);
    });
    record
}

#[test]
fn fewer_bytes_by_system_calls_are_void() {
    let run_bytes = 11_000 * 4096;
    assert_eq!(UNACCOUNTED.severity(&calls([run_bytes, 0])), None);
    assert_eq!(UNACCOUNTED.severity(&calls([run_bytes * 95 / 100, 9_999])), Some(Severity::Invalidates));
}

#[test]
fn a_buffered_engine_needs_only_a_few_system_calls() {
    let at = |engine: &str, buffer: Option<u64>, percent: u64| {
        let mut record = calls([11_000 * 4096 * percent / 100, 10_000]);
        let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
        stream.engine = engine.into();
        stream.options = buffer.map(|bytes| ("buffer".to_owned(), Some(bytes))).into_iter().collect();
        UNACCOUNTED.severity(&record)
    };
    assert_eq!(at("std", None, 95), Some(Severity::Invalidates), "each of its reads is a call");
    assert_eq!((at("stdio", None, 95), at("std", Some(0), 5)), (None, None));
    assert_eq!(
        (at("stdio", None, 0), at("fstream", None, 0)),
        (Some(Severity::Invalidates), Some(Severity::Invalidates))
    );
    assert_eq!(at("stdio", Some(1 << 30), 0), None, "the buffer can hold the whole region");
}

#[test]
fn without_counted_calls_pages_must_explain_missing_bytes() {
    let at = |pages| {
        let mut record = calls([0, pages]);
        record.header.plan.jobs[0].phases[0].streams[0].engine = "io_uring".into();
        UNACCOUNTED.severity(&record)
    };
    assert_eq!(at(10_000), None);
    assert_eq!(at(10), Some(Severity::Invalidates));
    let mut zipf = calls([0, 10]);
    let stream = &mut zipf.header.plan.jobs[0].phases[0].streams[0];
    (stream.engine, stream.access.lines[0].order) = ("io_uring".into(), model::job::Order::Zipf(1.1));
    assert!(UNACCOUNTED.answer(&zipf).is_err(), "a few blocks may have had nearly all reads");
    let cold = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert!(matches!(UNACCOUNTED.answer(&cold.record()), Ok(Answer::Holds(..))));
}

#[test]
fn a_small_cached_file_explains_any_number_of_reads() {
    let at = |pages| {
        let mut record = calls([0, pages]);
        let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
        (stream.engine, stream.access.span_bytes) = ("io_uring".into(), u64::MAX);
        record.header.plan.targets[0].bytes = 1 << 20;
        UNACCOUNTED.severity(&record)
    };
    assert_eq!(at(256), None, "the whole file is cached, so any number of reads can come from memory");
    assert_eq!(at(1), Some(Severity::Invalidates));
}
