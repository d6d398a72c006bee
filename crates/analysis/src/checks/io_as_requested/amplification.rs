//! Whether the device moved more bytes than fathom requested (B03, B04, B20).
//!
//! B03 compares the bytes read that were charged to fathom's cgroup with the bytes issued; if other
//! streams share the disk, it uses the reads that the stream's own workers submitted. B04 compares
//! the bytes issued with the larger of two counts: the bytes charged to fathom, and the device's
//! writes until the end of the final sync, less its idle traffic. The excess is journal, metadata,
//! copies or whole pages. Whole pages are only a note if the job makes each write stable. B20 finds writes that made the kernel
//! read first, and names partial page writes as the cause if the plan has them.

use super::page_bytes;
use crate::case::ledger::repeats_refused;
use crate::case::written_between;
use crate::checks::prelude::*;
use crate::figures::traffic;
use crate::figures::traffic::FLOOR_BYTES;

/// Bytes that the file system and other programs may move in all runs without a finding.
fn incidental_bytes(case: &Case) -> u64 {
    FLOOR_BYTES.saturating_mul(case.runs.len() as u64)
}

/// Whether operations start or end inside a page.
fn has_partial_pages(case: &Case, page: u64) -> bool {
    let access = &case.stream.access;
    let is_partial = |bytes: u64| !bytes.is_multiple_of(page);
    let smallest = u64::from(access.smallest_bytes());
    is_partial(access.offset_bytes) || is_partial(smallest) || is_partial(u64::from(access.largest_bytes()))
}

/// Above this number of bytes read per requested byte, the rate is biased.
const READ_AMPLIFIED_ABOVE: f64 = 1.1;

pub(super) const READ_AMPLIFIED: Check = Check {
    id: CheckId::B03,
    name: "READ_AMPLIFIED",
    belief: "the device read only the requested bytes",
    reads: "Bytes that the kernel charged to fathom's own cgroup on the disk, and fathom's own count of \
            bytes read. Also `queue/read_ahead_kb`. Without a cgroup, the reads of the whole device are \
            counted; if they exceed the request, the check does not answer, since other processes may have \
            caused them.",
    formula: formula!(
        "Bytes read that the kernel charged to fathom / bytes that fathom read.\n\
         - Biased above {READ_AMPLIFIED_ABOVE}.\n\
         - Not checked, instead of biased, if these explain the extra bytes: {odd} per run, which the file \
         system reads for itself, and for sequential buffered reads {windows} windows of read-ahead per \
         worker and run, which were not used when the clock stopped. With --advice sequential, a window is \
         twice as large.\n\
         - Double charges are subtracted, at most the issued bytes. io_uring first submits a direct read \
         without waiting. If the read must be split or the device's queue is full, the kernel refuses this \
         attempt but charges it too.\n\
         - If other streams use the disk at the same time, the reads that the stream's own workers \
         submitted count instead (`read_bytes` in /proc/thread-self/io). Not checked if this count does \
         not decide, or if it is above the limit for a direct stream of io_uring, which may be charged \
         twice.",
        odd = show_bytes(FLOOR_BYTES),
        windows = traffic::READ_AHEAD_WINDOWS
    ),
    provoke: "`fathom run --rw randread --bs 4k --engine mmap --size 512m --warmup 0s --ops 300 DIR`: each \
              fault reads a window around it. `cat /sys/block/DISK/queue/read_ahead_kb` shows how large that \
              is. With more operations the file is in memory, and A01 fires instead.",
    fix: "Use --cache direct, or --engine mmap:random for mappings, or lower \
          /sys/block/DISK/queue/read_ahead_kb.",
    accept: "Accept it if the application reads through the page cache in the same way.",
    applies: |case| case.does(Kind::Read) && case.on_device(),
    ask: Ask::Alone(check_read_amplified),
    #[cfg(test)]
    fires: Some(|| Fixture { delivered: 4.0, ..buffered() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest() }.record(),
};

fn check_read_amplified(case: &Case) -> Known<Answer> {
    let requested = issued_bytes(case, Kind::Read)?;
    if !case.sharers(&case.shared_layers()?).is_empty() {
        return decide_by_workers(case, requested);
    }
    let read = match case.own_io() {
        Ok(own) => own.bytes[0],
        Err(why) => {
            let device = case.device_io()?.read.bytes;
            if device as f64 > READ_AMPLIFIED_ABOVE * requested as f64 {
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
    if ratio <= READ_AMPLIFIED_ABOVE {
        return holds(describe_reads(ratio), numbers);
    }
    if read.saturating_sub(requested) <= allowed_extra_bytes(case) {
        return undecided(
            "read-ahead at the end of the runs from read amplification, because the runs are too short",
        );
    }
    read_ahead_finding(case, "The device read", read, requested, numbers)
}

/// States whether the device read more than the requested bytes. `ratio` is the bytes read per
/// requested byte.
fn describe_reads(ratio: f64) -> &'static str {
    if ratio > 1.0 {
        "The device read little more than the requested bytes."
    } else {
        "The device read only the requested bytes."
    }
}

/// Returns the answer for a stream that shares its disks, from the reads that its own workers submitted.
fn decide_by_workers(case: &Case, requested: u64) -> Known<Answer> {
    let read = case.counted_by_workers(case.stream_index, |io| io.read_bytes);
    let is_within_limit = |bytes: u64| share(bytes as f64, requested as f64) <= READ_AMPLIFIED_ABOVE;
    let numbers = evidence([
        ("read_bytes", requested as f64),
        ("submitted_read_bytes", read.least as f64),
        ("bytes_per_byte_read", share(read.least as f64, requested as f64)),
    ]);
    if is_within_limit(read.most) {
        return holds(describe_reads(share(read.most as f64, requested as f64)), numbers);
    }
    // The kernel counts a direct read twice if it is submitted twice.
    if is_within_limit(read.least)
        || repeats_refused(&case.stream)
        || read.least.saturating_sub(requested) <= allowed_extra_bytes(case)
    {
        return Err(case.why_shared()?);
    }
    let subject = "The workers of this stream made the device read";
    read_ahead_finding(case, subject, read.least, requested, numbers)
}

fn read_ahead_finding(
    case: &Case,
    subject: &str,
    read: u64,
    requested: u64,
    numbers: Evidence,
) -> Known<Answer> {
    let sentence = format!(
        "{subject} {} bytes for each requested byte ({} for {}; read-ahead is up to {}).",
        show_rate(share(read as f64, requested as f64)),
        show_bytes(read),
        show_bytes(requested),
        show_bytes(traffic::read_ahead_setting_bytes(case))
    );
    let only_disk = case.shared_layers().ok().filter(|disks| disks.len() == 1);
    let disk = only_disk.map_or_else(|| "DISK".to_owned(), |disks| layer_names(&disks));
    let fix = READ_AMPLIFIED.fix.replace("DISK", &disk);
    Detail::new(Severity::Biases, sentence, numbers).with_fix(fix).found()
}

/// Returns the extra bytes that are allowed: incidental reads and read-ahead.
fn allowed_extra_bytes(case: &Case) -> u64 {
    FLOOR_BYTES.saturating_add(traffic::unread_bytes(case)).saturating_mul(case.runs.len() as u64)
}

/// Above this number of bytes written per requested byte, the rate is biased. Direct overwrites stay below 1.05 on ext4
/// and xfs. Small writes that are made stable one by one reach 1.7 or more.
const WRITE_AMPLIFIED_ABOVE: f64 = 1.2;

pub(super) const WRITE_AMPLIFIED: Check = Check {
    id: CheckId::B04,
    name: "WRITE_AMPLIFIED",
    belief: "the device wrote little more than the requested bytes",
    reads: "The `stat` file of the disk from the start of a run to the end of its final sync, and during the \
            idle watch. Also the bytes charged to fathom's own cgroup, and fathom's own count of bytes \
            written.",
    formula: formula!(
        "Bytes that the device wrote / bytes that fathom wrote. The first is the larger of two counts: the \
         bytes charged to fathom, and the device's bytes less what it writes in the same time at the rate \
         of the idle watch.\n\
         - Biased above {WRITE_AMPLIFIED_ABOVE}, if the extra bytes are more than {odd} per run. \
         Overwriting stays below 1.05 on ext4 and xfs. Writes of 4 KiB with O_DSYNC reach 1.8, and 2.9 \
         into holes.\n\
         - A note, instead of biased, if the job makes each write stable before the next one, through the \
         page cache, and whole pages explain the bytes within the same limits. The kernel must then write \
         every page that a write touches: sequential writes of 2300 B cost 2.78 bytes for each byte. Every \
         program with this pattern writes these pages, so the rate is that of the job.\n\
         - If other streams write to the device at the same time: holds if all bytes that these streams \
         did not submit are within the limits. Otherwise not checked.\n\
         - Not checked, instead of biased, if D01 could not tell whether other processes used the disk, and \
         no cgroup shows fathom's own writes.\n\
         - Does not apply if D01 found other processes.",
        odd = show_bytes(FLOOR_BYTES)
    ),
    provoke: "`fathom run --rw randwrite --bs 4k --depth 1 --cache direct-dsync DIR`: a journal write \
              follows each write.",
    fix: "To measure the device alone, overwrite an allocated file without syncs, or measure the block \
          device.",
    accept: "Accept it to measure the device with its file system: an application pays this cost too.",
    applies: |case| case.does(Kind::Write) && case.on_device(),
    ask: Ask::After(&[CheckId::D01], check_write_amplified),
    #[cfg(test)]
    fires: Some(|| Fixture { delivered: 1.8, ..synchronous() }.record()),
    #[cfg(test)]
    blind: || Fixture { stat_unreadable: true, ..Fixture::honest_write() }.record(),
};

fn check_write_amplified(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if earlier.finds(CheckId::D01) {
        return Ok(Answer::DoesNotApply);
    }
    let requested = issued_bytes(case, Kind::Write)?;
    let layers = case.shared_layers()?;
    let idle_rate = idle_rate(case, &layers);
    let written_beyond_idle = |ran: &CaseRun| {
        let (start, synced) = (ran.snapshot(Moment::Start)?, ran.snapshot(Moment::Synced)?);
        let ns = synced.at_ns.saturating_sub(start.at_ns) as f64;
        Ok((written_between(&layers, start, synced)? as f64 - ns * idle_rate).max(0.0))
    };
    let device = case.runs.iter().map(written_beyond_idle).sum::<Known<f64>>()?;
    // The charge is a lower bound: cgroup v1 charges the journal to the root group, and the charge
    // is read before the final sync.
    let own = case.own_io().map_or(0.0, |own| own.bytes[1] as f64);
    let most_written = device.max(own);
    let ratio = share(most_written, requested as f64);
    let numbers = evidence([
        ("written_bytes", requested as f64),
        ("device_write_bytes", device),
        ("charged_write_bytes", own),
        ("bytes_per_byte_written", ratio),
    ]);
    let incidental = incidental_bytes(case) as f64;
    let tops = case.top_layers()?;
    if !case.sharers_moving(&tops, Kind::Write).is_empty() {
        // The upper bound assumes that all bytes that other streams did not submit belong to this stream.
        let most = (device - case.submitted_by_sharers(Kind::Write, &tops).least as f64).max(0.0);
        if share(most, requested as f64) > WRITE_AMPLIFIED_ABOVE && most - requested as f64 > incidental {
            return Err(case.why_shared()?);
        }
        let numbers = evidence([("written_bytes", requested as f64), ("device_write_bytes_at_most", most)]);
        return holds("The device wrote little more than the requested bytes.", numbers);
    }
    if ratio <= WRITE_AMPLIFIED_ABOVE || most_written - requested as f64 <= incidental {
        return holds("The device wrote little more than the requested bytes.", numbers);
    }
    // Without charges, the bytes may be of any process, and D01 could not tell.
    if let Err(why) = case.own_io()
        && !earlier.holds(CheckId::D01)
    {
        return Err(format!(
            "the device wrote {} for {} requested, and for which process is unknown: {why}",
            show_bytes(most_written as u64),
            show_bytes(requested)
        ));
    }
    let pages = stable_page_bytes(case, requested);
    let is_explained =
        share(most_written, pages) <= WRITE_AMPLIFIED_ABOVE || most_written - pages <= incidental;
    let (severity, cause) = if is_explained {
        (
            Severity::Note,
            format!(
                "the job makes each write stable, and the page cache writes whole pages of {}, as for any program with this \
                 pattern",
                show_bytes(page_bytes(case))
            ),
        )
    } else {
        (Severity::Biases, cause_of_extra_writes(case))
    };
    finding!(
        severity,
        numbers,
        "The device wrote {} bytes for each requested byte ({} for {}): {cause}.",
        show_rate(ratio),
        show_bytes(most_written as u64),
        show_bytes(requested)
    )
}

/// Returns the bytes of the pages that the writes touch, counted once for each write. Returns `requested` unless the job writes blocks of
/// one size through the page cache and makes each write stable before the next one: only then must the kernel write all these pages.
///
/// A write of `size` bytes touches `(size - step) / page + 1` pages on average, if it begins at each multiple of `step`
/// in the page equally often, and `step` divides `size`. Random writes touch at least `size` rounded up to pages.
fn stable_page_bytes(case: &Case, requested: u64) -> f64 {
    let (stream, page) = (&case.stream, page_bytes(case));
    let flushes_each = stream.flush.is_some_and(|flush| flush.every == 1);
    let is_stable = stream.cache.is_sync() || flushes_each && case.syncs_within_window();
    let size = stream.access.block_bytes().map(u64::from).filter(|size| *size > 0);
    let ([line], Some(size)) = (stream.access.lines.as_slice(), size) else { return requested as f64 };
    if !is_stable || stream.cache.is_direct() || stream.total_depth() != 1 {
        return requested as f64;
    }
    let is_in_order = matches!(&line.order, Order::Sequential(steps) if steps.stride_bytes == 0 && steps.hole_bytes == 0)
        && line.times == 1
        && line.interleaved == 1;
    let touched = if is_in_order {
        size - greatest_common_divisor(size, page) + page
    } else {
        size.next_multiple_of(page)
    };
    requested as f64 * touched as f64 / size as f64
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Describes what may have added the bytes. Only a file system adds a journal, metadata or copies.
fn cause_of_extra_writes(case: &Case) -> String {
    let mut causes = Vec::new();
    let page = page_bytes(case);
    if !case.stream.cache.is_direct() && has_partial_pages(case, page) {
        causes.push(format!(
            "the page cache writes whole pages of {} even if only a part changed",
            show_bytes(page)
        ));
    }
    let mut kinds: Vec<&str> = case.places().filter(|p| p.file_system.is_some()).map(Place::kind).collect();
    kinds.dedup();
    if !kinds.is_empty() {
        causes.push(format!("the result includes journal, metadata or copies of {}", kinds.join(" and ")));
    }
    if causes.is_empty() {
        causes.push(
            "the job uses no file system, so another program or a layer below the device wrote the rest"
                .into(),
        );
    }
    causes.join("; ")
}

/// Returns the bytes per ns that the layers wrote during the idle watch, or 0 if this is unknown. In that case only D01
/// finds writes by other processes.
fn idle_rate(case: &Case, layers: &[&Layer]) -> f64 {
    let at = |moment| case.snapshot_before_runs(moment);
    let (Some(start), Some(end)) = (at(Moment::IdleStart), at(Moment::IdleEnd)) else { return 0.0 };
    let ns = end.at_ns.saturating_sub(start.at_ns) as f64;
    written_between(layers, start, end).map_or(0.0, |bytes| share(bytes as f64, ns))
}

/// Above this number of bytes read per byte written, the rate is biased.
const READ_FIRST_ABOVE: Share = Share(0.05);

pub(super) const PAGES_READ_FIRST: Check = Check {
    id: CheckId::B20,
    name: "PAGES_READ_FIRST",
    belief: "a write only writes",
    reads: "Reads that the kernel charged to fathom's own cgroup on the disk, or the reads of the \
            device if no cgroup counts them. Only for jobs that write and do not read. Also the \
            sizes and offsets of the plan, and the page size.",
    formula: formula!(
        "Bytes that the device read / bytes written. A write to part of a page that is not in memory must \
         read the page first. A write of a whole page reads nothing.\n\
         - Biased if the ratio is above {READ_FIRST_ABOVE} and the device read more than {odd} per run, \
         which the file system may read for itself. The finding names partial pages as the cause if the \
         plan has sizes or offsets that are not multiples of a page.\n\
         - Not checked, instead of biased, if no cgroup counts the reads, since other processes may have \
         caused them.\n\
         - If other streams use the disk at the same time, the reads that the stream's own workers \
         submitted count. Not checked if this count does not decide.\n\
         - If the page cache is not emptied between runs (`--cold false`), the reads of the first run are \
         left out, up to the size of the span.",
        odd = show_bytes(FLOOR_BYTES)
    ),
    provoke: "`fathom run --rw write --bs 512 --engine sync --cache buffered DIR`: the test file is evicted \
              before each run, so each page is read before its first part is written.",
    fix: "Use a --bs and offsets that are multiples of the page (4k), or write a new file (`--engine \
          sync:new`), whose pages are not read.",
    accept: "Accept it if the application changes parts of old pages.",
    applies: |case| case.does(Kind::Write) && !case.does(Kind::Read) && case.on_device(),
    ask: Ask::Alone(check_pages_read_first),
    #[cfg(test)]
    fires: Some(|| with_reads(0.5)),
    #[cfg(test)]
    blind: || {
        Fixture { stat_unreadable: true, cache: model::job::Cache::Buffered, ..Fixture::honest_write() }
            .record()
    },
};

fn check_pages_read_first(case: &Case) -> Known<Answer> {
    let written = issued_bytes(case, Kind::Write)?;
    let disks = case.shared_layers()?;
    let is_shared = !case.sharers(&disks).is_empty();
    let incidental = incidental_bytes(case);
    let read = if is_shared {
        // Use the reads that the stream's own workers submitted.
        let read = case.counted_by_workers(case.stream_index, |io| io.read_bytes);
        let is_small =
            |bytes: u64| share(bytes as f64, written as f64) <= READ_FIRST_ABOVE || bytes <= incidental;
        if is_small(read.least) && !is_small(read.most) {
            return Err(case.why_shared()?);
        }
        read.least
    } else {
        let device = case.device_io()?.read.bytes;
        let own = case.own_io();
        let fill = first_fill_bytes(case, own.is_ok());
        own.map_or(device, |own| own.bytes[0]).saturating_sub(fill)
    };
    let part = share(read as f64, written as f64);
    let numbers = evidence([
        ("written_bytes", written as f64),
        ("read_bytes", read as f64),
        ("read_per_written", part),
    ]);
    if part <= READ_FIRST_ABOVE || read <= incidental {
        let sentence = if read > 0 { "The writes caused few reads." } else { "The writes caused no reads." };
        return holds(sentence, numbers);
    }
    if !is_shared && case.own_io().is_err() {
        return Err(format!(
            "the device read {} although the job only writes, and no cgroup shows for which process",
            show_bytes(read)
        ));
    }
    let page = page_bytes(case);
    let writes_parts = !case.stream.cache.is_direct() && has_partial_pages(case, page);
    let cause = if writes_parts {
        let page = show_bytes(page);
        format!(": a write to part of a page ({page}) that is not in memory must read the page first")
    } else {
        ": probably the file system read metadata to allocate blocks, or a layer below read blocks to change \
         parts of them"
            .into()
    };
    detail!(
        Severity::Biases,
        numbers,
        "The kernel read {} from the device while fathom only wrote {} ({}){cause}. The rate includes these \
         reads.",
        show_bytes(read),
        show_bytes(written),
        show_share(part)
    )
    .with_fix(match writes_parts {
        false => Some(String::new()),
        true if case.on_block_devices() => Some(
            "Use a --bs and offsets that are multiples of the page (4k). An application that writes new files does \
             not read their pages first: for such a job, name a directory on this device."
                .into(),
        ),
        true => None,
    })
    .found()
}

/// Returns the bytes that the first run read to fill the page cache, at most the span: those charged to fathom, or all that the device read
/// if the charges are unknown. 0 if the page cache is emptied between runs, with a single run, or if the first run is not among the runs of
/// the case.
fn first_fill_bytes(case: &Case, is_charged: bool) -> u64 {
    let is_filled = !case.record.header.plan.cold && case.runs.len() > 1;
    let first = case.runs.first().filter(|ran| is_filled && ran.run.start.repeat == 0);
    let read = first.and_then(|ran| {
        if is_charged {
            let cgroup = case.machine?.cgroup.as_ref().ok()?;
            return Some(ran.charged(cgroup, &case.shared_layers().ok()?).ok()?.bytes[0]);
        }
        Some(ran.layer_io(&case.top_layers().ok()?).ok()?.read.bytes)
    });
    read.unwrap_or(0).min(case.span_bytes())
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn buffered() -> Fixture {
    Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() }
}

#[test]
fn twenty_percent_extra_biases_and_nine_percent_is_silent() {
    let at = |delivered| READ_AMPLIFIED.severity(&Fixture { delivered, ..buffered() }.record());
    assert_eq!(at(1.2), Some(Severity::Biases));
    assert_eq!(at(1.09), None);
    let sentence = |delivered| READ_AMPLIFIED.sentence(&Fixture { delivered, ..buffered() }.record());
    assert!(sentence(1.09).contains("little more than the requested"), "{}", sentence(1.09));
    assert!(sentence(1.0).contains("only the requested"), "{}", sentence(1.0));
    let Ok(Answer::Finding(f)) = READ_AMPLIFIED.answer(&Fixture { delivered: 4.0, ..buffered() }.record())
    else {
        panic!("silent")
    };
    assert!(f.sentence.contains("read 4.00 bytes") && f.sentence.contains("128 KiB"), "{}", f.sentence);
}

#[test]
fn read_ahead_at_the_end_of_a_short_run_is_not_checked() {
    let short = |pattern| Fixture { ops: 100, delivered: 1.5, pattern, block_bytes: 8192, ..buffered() };
    assert!(
        READ_AMPLIFIED.answer(&short(Pattern::Sequential).record()).is_err_and(|why| why.contains("short"))
    );
}

#[test]
fn double_charges_do_not_count() {
    let twice = |times| READ_AMPLIFIED.severity(&crate::case::ledger::split(4, times));
    assert_eq!(twice(2.0), None);
    assert_eq!(twice(2.3), Some(Severity::Biases));
}

#[test]
fn the_kernels_count_for_the_workers_decides_unless_reads_may_be_submitted_twice() {
    let answer = |engine| {
        let amplified = Fixture { engine, delivered: 4.0, ..Fixture::honest() };
        let record = crate::fixture::two_streams(&amplified, &Fixture::honest());
        crate::findings::ask_all(&crate::case::cases(&record)[0])
            .into_iter()
            .find(|(c, _)| c.id == CheckId::B03)
    };
    assert!(matches!(answer("io_uring"), Some((_, Err(_)))));
    assert!(
        matches!(answer("libaio"), Some((_, Ok(Answer::Finding(_))))),
        "{:?}",
        answer("libaio").map(|a| a.1)
    );
}

#[test]
fn foreign_reads_do_not_count_and_need_a_cgroup() {
    let foreign = Fixture { foreign_ios: 9_000, ..buffered() };
    assert_eq!(READ_AMPLIFIED.severity(&foreign.record()), None);
    let unknown = Fixture { cgroup: false, ..foreign };
    assert!(READ_AMPLIFIED.answer(&unknown.record()).is_err());
}

/// Synchronous writes, for which D01 cannot separate a journal from other processes.
#[cfg(test)]
fn synchronous() -> Fixture {
    Fixture { cache: model::job::Cache::DirectDsync, ..Fixture::honest_write() }
}

#[test]
fn thirty_percent_extra_biases_and_fifteen_percent_is_silent() {
    let at = |delivered| WRITE_AMPLIFIED.severity(&Fixture { delivered, ..synchronous() }.record());
    assert_eq!(at(1.3), Some(Severity::Biases));
    assert_eq!(at(1.15), None);
    // Neither D01 nor a cgroup shows whose bytes these are.
    let unknown =
        WRITE_AMPLIFIED.answer(&Fixture { delivered: 1.3, cgroup: false, ..synchronous() }.record());
    assert!(unknown.as_ref().is_err_and(|why| why.contains("for which process is unknown")), "{unknown:?}");
}

#[test]
fn the_sentence_names_file_system_and_page_cache_only_where_they_are() {
    use model::job::Cache;
    use model::plan::Role;
    let sentence =
        |fixture: Fixture| match WRITE_AMPLIFIED.answer(&Fixture { delivered: 1.8, ..fixture }.record()) {
            Ok(Answer::Finding(found)) => found.sentence,
            other => panic!("{other:?}"),
        };
    assert!(sentence(synchronous()).contains("copies of ext4"));
    let raw = sentence(Fixture { role: Role::Device, ..synchronous() });
    assert!(!raw.contains("copies") && raw.contains("no file system"), "{raw}");
    let buffered = |role| Fixture { role, block_bytes: 512, cache: Cache::Dsync, ..synchronous() };
    let pages = sentence(buffered(Role::Device));
    assert!(pages.contains("whole pages of 4 KiB") && !pages.contains("copies"), "{pages}");
    let both = sentence(buffered(Role::Made));
    assert!(both.contains("whole pages of 4 KiB") && both.contains("copies of ext4"), "{both}");
}

#[test]
fn whole_pages_that_the_job_makes_stable_are_a_note() {
    use model::job::{Cache, Flush, SyncCall};
    let severity_with = |delivered, block_bytes, cache, every: Option<u32>, call| {
        let fixture = Fixture {
            delivered,
            block_bytes,
            cache,
            depth: 1,
            pattern: Pattern::Sequential,
            ..synchronous()
        };
        let mut record = fixture.record();
        let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
        stream.flush = every.map(|every| Flush { call, every, calls: 1, drain: true });
        WRITE_AMPLIFIED.severity(&record)
    };
    let severity = |delivered, block_bytes, cache, every| {
        severity_with(delivered, block_bytes, cache, every, SyncCall::Fsync)
    };
    let (note, biased) = (Some(Severity::Note), Some(Severity::Biases));
    // A write of 2300 B touches 1.56 pages on average, and a write of 512 B one page.
    assert_eq!(severity(2.78, 2300, Cache::Buffered, Some(1)), note);
    assert_eq!(severity(2.78, 2300, Cache::Dsync, None), note);
    assert_eq!(severity(8.0, 512, Cache::Dsync, None), note);
    // A journal, or another program, wrote more.
    assert_eq!(severity(3.5, 2300, Cache::Buffered, Some(1)), biased);
    // A page that several writes share before a sync is written once.
    assert_eq!(severity(2.78, 2300, Cache::Buffered, Some(4)), biased);
    assert_eq!(severity(2.78, 2300, Cache::Buffered, None), biased);
    let after_each = |call| severity_with(2.78, 2300, Cache::Buffered, Some(1), call);
    assert_eq!(after_each(SyncCall::Fdatasync), note);
    assert_eq!(after_each(SyncCall::SyncFileRange), biased, "nothing is stable");
    // Direct writes, and writes of whole pages, explain no bytes beyond the requested ones.
    assert_eq!(severity(2.0, 4096, Cache::DirectDsync, None), biased);
    assert_eq!(severity(2.0, 4096, Cache::Buffered, Some(1)), biased);
}

#[test]
fn idle_writes_do_not_count() {
    let mut record = Fixture { foreign_ios: 8_800, ..synchronous() }.record();
    assert_eq!(WRITE_AMPLIFIED.severity(&record), Some(Severity::Biases));
    // The disk wrote more while idle: 40 MiB/s. Other processes wrote 34 MiB in the 1.1 s of a run.
    let stat = |bytes: u64| format!("0 0 0 0 0 0 {} 0 0 0 0\n", bytes / 512);
    for (moment, at_ns, bytes) in [(Moment::IdleStart, 0, 0), (Moment::IdleEnd, 1_000_000_000, 40_u64 << 20)]
    {
        let mut snapshot = record.evidence[0].clone();
        (snapshot.moment, snapshot.at_ns) = (moment, at_ns);
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(stat(bytes)));
        record.evidence.push(snapshot);
    }
    assert_eq!(WRITE_AMPLIFIED.severity(&record), None);
}

#[test]
fn it_is_silent_if_d01_found_other_processes() {
    let others = Fixture { foreign_ios: 30_000, ..Fixture::honest_write() };
    assert_eq!(WRITE_AMPLIFIED.answer(&others.record()), Ok(Answer::DoesNotApply));
}

/// Buffered writes of 512 B. Every run also reads `part` times as many bytes as it writes.
#[cfg(test)]
fn with_reads(part: f64) -> model::record::Record {
    with_reads_in_first_runs(u64::MAX, part)
}

/// Buffered writes of 512 B. Each of the first `runs_with_reads` runs also reads `part` times as many bytes as it writes.
#[cfg(test)]
fn with_reads_in_first_runs(runs_with_reads: u64, part: f64) -> model::record::Record {
    let cache = model::job::Cache::Buffered;
    let mut record = Fixture { block_bytes: 512, cache, ..Fixture::honest_write() }.record();
    let (mut runs, bytes) = (0, (11_000.0 * 512.0 * part) as u64);
    for run in &mut record.runs {
        for snapshot in &mut run.evidence {
            let runs = runs + u64::from(snapshot.moment != model::evidence::Moment::Start);
            let done = runs.min(runs_with_reads) * bytes;
            for (name, text) in &mut snapshot.files {
                if name.ends_with("io_service_bytes") {
                    *text = Ok(format!("254:0 Read {done}\n254:0 Write 0\n"));
                } else if name.ends_with("io_serviced") {
                    *text = Ok(format!("254:0 Read {}\n254:0 Write 0\n", done / 4096));
                } else if let (true, Ok(text)) =
                    (name.ends_with("/stat") && name.starts_with("/sys/block"), text)
                {
                    let (_, rest) = text.split_once(' ').unwrap();
                    let (_, rest) = rest.split_once(' ').unwrap();
                    let (_, rest) = rest.split_once(' ').unwrap();
                    *text = format!("{} 0 {} {rest}", done / 4096, done / 512);
                }
            }
        }
        runs += 1;
    }
    record
}

#[test]
fn reads_during_writes_bias_and_name_their_cause() {
    let Ok(Answer::Finding(f)) = PAGES_READ_FIRST.answer(&with_reads(1.0)) else { panic!("silent") };
    assert!(f.sentence.contains("part of a page (4 KiB)"), "{}", f.sentence);
    assert_eq!(PAGES_READ_FIRST.sentence(&with_reads(0.04)), "The writes caused few reads.");
    let direct = PAGES_READ_FIRST.answer(&Fixture::honest_write().record());
    assert!(matches!(direct, Ok(Answer::Holds(..))), "{direct:?}");
}

#[test]
fn reads_of_other_processes_in_the_first_run_hide_no_reads_of_fathom() {
    let mut record = with_reads_in_first_runs(u64::MAX, 0.5);
    record.header.plan.cold = false;
    let mut is_after_start = false;
    for snapshot in record.runs.iter_mut().flat_map(|run| &mut run.evidence) {
        let is_disk = |name: &str| name.starts_with("/sys/block") && name.ends_with("/stat");
        for (_, text) in snapshot.files.iter_mut().filter(|(name, _)| is_after_start && is_disk(name)) {
            let Ok(text) = text else { continue };
            let mut numbers: Vec<u64> = text.split_whitespace().map_while(|n| n.parse().ok()).collect();
            (numbers[0], numbers[2]) = (numbers[0] + 1_000_000, numbers[2] + 8_000_000);
            *text = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        }
        is_after_start = true;
    }
    assert_eq!(PAGES_READ_FIRST.severity(&record), Some(Severity::Biases));
}

#[test]
fn the_first_fill_of_a_kept_page_cache_does_not_count() {
    let with_kept_cache = |runs_with_reads, span_bytes: Option<u64>| {
        let mut record = with_reads_in_first_runs(runs_with_reads, 4.0);
        record.header.plan.cold = false;
        if let Some(span_bytes) = span_bytes {
            record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = span_bytes;
        }
        PAGES_READ_FIRST.severity(&record)
    };
    assert_eq!(with_kept_cache(1, None), None);
    // Reads beyond the span, and reads in later runs, do count.
    assert_eq!(with_kept_cache(1, Some(1 << 20)), Some(Severity::Biases));
    assert_eq!(with_kept_cache(u64::MAX, None), Some(Severity::Biases));
    assert_eq!(
        PAGES_READ_FIRST.severity(&with_reads_in_first_runs(1, 1.0)),
        Some(Severity::Biases),
        "emptied before each run"
    );
}
