//! B03: more bytes read from the device than fathom requested, mostly by read-ahead. Compares the bytes charged
//! to fathom's cgroup with the bytes issued; if other streams share the disk, uses the reads that the stream's
//! own workers submitted.

use crate::checks::b::FLOOR_BYTES;
use crate::checks::prelude::*;
use crate::figures::traffic;

/// Bytes read per requested byte above which the rate is biased.
const BIASED_ABOVE: f64 = 1.1;

pub(super) const CHECK: Check = Check {
    id: CheckId::B03,
    name: "READ_AMPLIFIED",
    belief: "the device read only the requested bytes",
    reads: "Bytes that the kernel charged to fathom's own cgroup on the disk, and fathom's own count of \
            bytes read. Also `queue/read_ahead_kb`. Without a cgroup, the reads of the whole device are \
            counted; if they exceed the request, the check does not answer, since other processes may have \
            caused them.",
    formula: formula!(
        "Bytes charged / bytes read: biased above {BIASED_ABOVE}. Not counted: {odd} per run, which the file \
         system reads for itself, and for sequential buffered reads {windows} windows of read-ahead per \
         worker and run (twice as large with --advice sequential), which were not used when the clock \
         stopped. The kernel charges io_uring operations twice if they are larger than the disk takes and \
         must be split: once as a whole, refused, and once in parts. If the disk did more requests than \
         there were direct operations, up to the issued bytes are subtracted once. If other streams use the \
         disk at the same time, the reads that the stream's own workers submitted count instead \
         (`read_bytes` in /proc/thread-self/io).",
        odd = show_bytes(FLOOR_BYTES),
        windows = traffic::WINDOWS
    ),
    provoke: "`fathom run --rw randread --bs 4k --engine mmap --size 512m --warmup 0s --ops 300 DIR`: each \
              fault reads a window around it. `cat /sys/block/DISK/queue/read_ahead_kb` shows how large that \
              is. With more operations the file is in memory, and A01 fires instead.",
    fix: "Use --cache direct, or --engine mmap:random for mappings, or lower \
          /sys/block/DISK/queue/read_ahead_kb.",
    accept: "Accept it if the application reads through the page cache in the same way.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { delivered: 4.0, ..buffered() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let requested = issued_bytes(case, Kind::Read)?;
    let shared = !case.sharers(&case.shared()?).is_empty();
    if shared {
        return decide_by_workers(case, requested);
    }
    let read = match case.own() {
        Ok(own) => own.bytes[0],
        Err(why) => {
            let device = case.device()?.read.bytes;
            if device as f64 > BIASED_ABOVE * requested as f64 {
                return Err(format!(
                    "the device read more than requested, and no cgroup shows for which process: {why}"
                ));
            }
            device
        }
    };
    let ratio = share(read as f64, requested as f64);
    let numbers = evidence([
        ("read_bytes", requested as f64),
        ("device_read_bytes", read as f64),
        ("bytes_per_byte_read", ratio),
    ]);
    if ratio <= BIASED_ABOVE {
        return holds("The device read only the requested bytes.", numbers);
    }
    if read.saturating_sub(requested) <= allowed_extra_bytes(case) {
        return not_checked(
            "the run is too short to distinguish read-ahead at its end from read amplification",
        );
    }
    finding(case, "The device read", read, requested, numbers)
}

/// Returns the answer for a stream that shares its disks, from the reads that its own workers submitted.
fn decide_by_workers(case: &Case, requested: u64) -> Known<Answer> {
    let read = case.counted_by_workers(case.index, |io| io.read_bytes);
    let is_within_limit = |bytes: u64| share(bytes as f64, requested as f64) <= BIASED_ABOVE;
    let numbers = evidence([
        ("read_bytes", requested as f64),
        ("submitted_read_bytes", read.least as f64),
        ("bytes_per_byte_read", share(read.least as f64, requested as f64)),
    ]);
    if is_within_limit(read.most) {
        return holds("The device read only the requested bytes.", numbers);
    }
    // A direct read that is submitted twice counts twice.
    if is_within_limit(read.least)
        || case.is_direct()
        || read.least.saturating_sub(requested) <= allowed_extra_bytes(case)
    {
        return Err(case.why_shared()?);
    }
    let subject = "The workers of this stream made the device read";
    finding(case, subject, read.least, requested, numbers)
}

fn finding(case: &Case, subject: &str, read: u64, requested: u64, numbers: Evidence) -> Known<Answer> {
    let sentence = format!(
        "{subject} {} bytes for each requested byte ({} for {}; read-ahead is up to {}).",
        show_rate(share(read as f64, requested as f64)),
        show_bytes(read),
        show_bytes(requested),
        show_bytes(traffic::setting_bytes(case))
    );
    let disks = layer_names(&case.shared().unwrap_or_default());
    let cure = CHECK.fix.replace("DISK", &disks);
    Detail::new(Severity::Biased, sentence, numbers).with_cure(cure).found()
}

/// Returns the extra bytes that are allowed: incidental reads and read-ahead.
fn allowed_extra_bytes(case: &Case) -> u64 {
    FLOOR_BYTES.saturating_add(traffic::unread_bytes(case)).saturating_mul(case.runs.len() as u64)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::job::Pattern;

#[cfg(test)]
fn buffered() -> Fixture {
    Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() }
}

#[test]
fn twenty_percent_extra_biases_and_nine_percent_is_silent() {
    let at = |delivered| CHECK.severity(&Fixture { delivered, ..buffered() }.record());
    assert_eq!(at(1.2), Some(Severity::Biased));
    assert_eq!(at(1.09), None);
    let Ok(Answer::Finding(f)) = CHECK.answer(&Fixture { delivered: 4.0, ..buffered() }.record()) else {
        panic!("silent")
    };
    assert!(f.sentence.contains("read 4.00 bytes") && f.sentence.contains("128 KiB"), "{}", f.sentence);
}

#[test]
fn read_ahead_at_the_end_of_a_short_run_is_not_checked() {
    let short = |pattern| Fixture { ops: 100, delivered: 1.5, pattern, block_bytes: 8192, ..buffered() };
    assert!(CHECK.answer(&short(Pattern::Sequential).record()).is_err_and(|why| why.contains("short")));
}

#[test]
fn double_charges_do_not_count() {
    let twice = |times| CHECK.severity(&crate::case::ledger::split(4, times));
    assert_eq!(twice(2.0), None);
    assert_eq!(twice(2.3), Some(Severity::Biased));
}

#[test]
fn foreign_reads_do_not_count_and_need_a_cgroup() {
    let foreign = Fixture { foreign_ios: 9_000, ..buffered() };
    assert_eq!(CHECK.severity(&foreign.record()), None);
    let unknown = Fixture { cgroup: false, ..foreign };
    assert!(CHECK.answer(&unknown.record()).is_err());
}
