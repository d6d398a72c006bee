//! Memory of the machine during the runs (D02, D14, D28).
//!
//! D02 adds up the dirty and writeback pages of the whole machine at the start of each run. D14
//! checks the time that tasks stalled on memory, the pages swapped, and, for buffered writes,
//! whether dirty pages reached the level at which the kernel makes writers wait. D28 finds guests
//! that return free memory to the host. Their page cache must get this memory back when it grows.
//! D28 compares the growth of the page cache with the bytes moved, and the workers' system time
//! per byte with a limit.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{
    MEMORY_PRESSURE_FILE, growth_in_run, number_of_key, path_values, pressure_us,
};
use model::evidence::{BACKLOG_BYTES, PAGE_REPORTING, meminfo_bytes};

pub(super) const DIRTY_BACKLOG: Check = Check {
    id: CheckId::D02,
    name: "DIRTY_BACKLOG",
    belief: "no older data were waiting to be written",
    reads: "`Dirty` and `Writeback` in `/proc/meminfo` at the start of each run, after fathom's own \
            writeback.",
    formula: formula!(
        "Biased if Dirty plus Writeback is above {backlog} at the start of any run: the kernel may write \
         these data during the run. An idle machine usually has less. The limit does not depend on the size \
         of the memory, since the time that the disk needs matters.",
        backlog = show_bytes(BACKLOG_BYTES)
    ),
    provoke: "head -c 256M /dev/zero > /var/tmp/dirty; fathom run /mnt   # with /mnt on another file system \
              than /var/tmp",
    fix: "Wait until the data are written (`sync`), stop background writers, and measure again.",
    accept: "Accept it if these data belong to another disk. `grep -e Dirty -e Writeback /proc/meminfo` \
             shows how much is left.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_dirty_backlog),
    #[cfg(test)]
    fires: Some(|| with_dirt(200 << 10, 0)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence);
        snapshots.for_each(|s| drop(s.files.remove(MEMINFO)));
        record
    },
};

const MEMINFO: &str = "/proc/meminfo";

fn check_dirty_backlog(case: &Case) -> Known<Answer> {
    let mut worst = None;
    for ran in case.runs.iter() {
        let text = ran.snapshot(Moment::Start)?.text(MEMINFO)?;
        let bytes = meminfo_bytes(text, "Dirty")?.saturating_add(meminfo_bytes(text, "Writeback")?);
        worst = worst.max(Some(bytes));
    }
    let bytes = worst.ok_or_else(no_run)?;
    let numbers = evidence([("backlog_bytes", bytes as f64)]);
    if bytes <= BACKLOG_BYTES {
        return holds("Hardly any older data were waiting to be written.", numbers);
    }
    let backlog = show_bytes(bytes);
    finding!(Severity::Biases, numbers, "{backlog} of older data were waiting to be written to a disk.")
}

/// At this share of the time or above, tasks waited for memory long enough to bias the number. A machine with enough
/// memory shows 0, and 1 % can already decide a percentile.
const STALLED_FROM: Share = Share(0.01);
/// At this many swapped pages per second (1 MiB/s) or above, memory is short. Fewer may be old pages that a process
/// touched.
const SWAPPED_PAGES_PER_S: f64 = 256.0;
/// From about this share of the dirty page limit on, the kernel makes writers wait. With its default limits, the share is
/// half way between the background limit and the dirty page limit (mm/page-writeback.c, `dirty_freerun_ceiling`).
const DIRTY_FROM: Share = Share(0.75);

pub(super) const MEMORY_PRESSURE: Check = Check {
    id: CheckId::D14,
    name: "MEMORY_PRESSURE",
    belief: "there was enough memory",
    reads: "`/proc/pressure/memory` (`some`, `total`), and `pswpin`, `pswpout`, `pgmajfault`, `nr_dirty`, \
            `nr_writeback` and `nr_dirty_threshold` of `/proc/vmstat`, at start and stop of each run.",
    formula: formula!(
        "Biased if some task waited for memory in at least {STALLED_FROM} of the time, or if at least \
         {SWAPPED_PAGES_PER_S} pages per second were swapped, over all runs. A note if fathom's own writes \
         through the page cache end with dirty pages at {DIRTY_FROM} of their limit or more: there the \
         kernel makes writers wait."
    ),
    provoke: "In a cgroup with less memory than the file: `systemd-run --scope -p MemoryMax=64M fathom run \
              --rw randread --cache mmap --engine mmap --size 1g DIR`.",
    fix: "Stop other users of the memory, make the file smaller, or raise the limit of the cgroup, and \
          measure again.",
    accept: "Accept it if memory is just as short in production.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_memory_pressure),
    #[cfg(test)]
    fires: Some(|| pressed(50_000)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        let files = record.runs.iter_mut().flat_map(|r| &mut r.evidence).map(|s| &mut s.files);
        for file in files {
            file.insert(MEMORY_PRESSURE_FILE.into(), Err("not built into this kernel".into()));
        }
        record
    },
};

fn check_memory_pressure(case: &Case) -> Known<Answer> {
    let active = sum_over_runs(case, CaseRun::active_ns)? as f64;
    let sum = |file: &str, read: &dyn Fn(&str) -> Known<u64>| {
        sum_over_runs(case, |ran| growth_in_run(ran, file, read))
    };
    let stalled_us = sum(MEMORY_PRESSURE_FILE, &|text| pressure_us(text, "some"));
    let swapped = sum(VMSTAT, &|text| {
        Ok(number_of_key(text, "pswpin")?.saturating_add(number_of_key(text, "pswpout")?))
    });
    let faults = sum(VMSTAT, &|text| number_of_key(text, "pgmajfault"));
    let stalled = stalled_us.map(|us| share(us as f64 * 1e3, active));
    let pages_per_s = swapped.clone().map(|pages| share(pages as f64, active / 1e9));
    let known = |count: &Known<u64>| count.as_ref().map_or(f64::NAN, |count| *count as f64);
    let mut numbers = evidence([
        ("active_ns", active),
        ("stalled_share", stalled.clone().unwrap_or(f64::NAN)),
        ("swapped_pages", known(&swapped)),
        ("major_faults", known(&faults)),
    ]);
    let mut causes = Vec::new();
    if let Some(stalled) = stalled.as_ref().ok().copied().filter(|share| *share >= STALLED_FROM) {
        causes.push(format!("tasks waited for memory for {} of the time", show_share(stalled)));
    }
    if let (Ok(rate), Ok(pages)) = (&pages_per_s, &swapped)
        && *rate >= SWAPPED_PAGES_PER_S
    {
        causes.push(format!("{} were swapped", show_bytes(pages.saturating_mul(VMSTAT_PAGE_BYTES))));
    }
    if !causes.is_empty() {
        let causes = causes.join(", and ");
        return finding!(Severity::Biases, numbers, "Memory was short: {causes}.");
    }
    let dirty = dirty_share_of_limit(case)?;
    if let Some(part) = dirty.filter(|part| *part >= DIRTY_FROM) {
        numbers.insert("dirty_share_of_limit".into(), part);
        let fix = "Use --cache direct, or a --time so long that the first writes, which went only to memory, \
                   do not matter.";
        return detail!(
            Severity::Note,
            numbers,
            "Dirty pages reached {} of their limit, where the kernel makes writers wait: the rate mixes \
             memory and the disk.",
            show_share(part)
        )
        .with_fix(fix.to_owned())
        .found();
    }
    stalled?;
    pages_per_s?;
    holds("There was enough memory.", numbers)
}

/// Returns the dirty pages at the stop of a run as a share of their limit, from the run with the highest share. `None` if
/// the stream's writes leave no dirty pages.
fn dirty_share_of_limit(case: &Case) -> Known<Option<f64>> {
    if case.stream.cache.is_direct() || case.stream.cache.is_sync() || !case.does(Kind::Write) {
        return Ok(None);
    }
    let dirty_share_at_stop = |ran: &CaseRun| {
        let text = ran.snapshot(Moment::Stop)?.text(VMSTAT)?;
        let pages = number_of_key(text, "nr_dirty")?.saturating_add(number_of_key(text, "nr_writeback")?);
        Ok(share(pages as f64, number_of_key(text, "nr_dirty_threshold")? as f64))
    };
    let all: Vec<f64> = case.runs.iter().map(dirty_share_at_stop).collect::<Known<_>>()?;
    Ok(all.into_iter().max_by(f64::total_cmp))
}

/// Values of `page_reporting_order` that mean no page reporting: -1, and the initial values of older kernels, which are
/// the largest orders (mm/page_reporting.c).
const NOT_REPORTING: [i64; 3] = [-1, 11, 10];
/// If the page cache grew by at least this share of the moved bytes, getting memory back from the host affects the number.
const TAKEN_FROM: Share = Share(0.10);
/// At this system time per byte or above, the host had to provide the memory. Finding a page and copying
/// costs 0.1 to 0.25 ns per byte; 0.8 to 1.9 were measured with memory from the host (KVM, 2 MiB at a time).
const NS_PER_BYTE_FROM: f64 = 0.5;
/// System time that each operation takes whatever its size. It is subtracted before the time per byte is computed.
const SYSTEM_TIME_PER_OPERATION: Ns = Ns(5_000.0);

pub(super) const FREED_MEMORY_GIVEN_UP: Check = Check {
    id: CheckId::D28,
    name: "FREED_MEMORY_GIVEN_UP",
    belief: "using free memory costs nothing",
    reads: "`/sys/module/page_reporting/parameters/page_reporting_order`, `nr_file_pages` of `/proc/vmstat` \
            at start and stop of each run, system time of the workers (`getrusage`).",
    formula: formula!(
        "Compares the growth of the page cache in the runs with the bytes moved, for jobs through the page \
         cache in a guest that reports its free memory to the host (free page reporting of virtio_balloon \
         or hv_balloon). The host takes such memory within seconds, and using it again costs a fault in \
         the host.\n\
         - Biased if the growth is {TAKEN_FROM} of the bytes or more, and the workers spent at least \
         {NS_PER_BYTE_FROM} ns of system time per byte, without {SYSTEM_TIME_PER_OPERATION} for each \
         operation. The host's memory was then part of the rate.\n\
         - A note if the growth is as large, and the workers spent less.\n\
         - Holds if the guest does not report its free memory.\n\
         - The growth is an upper bound: the guest does not know which of its free pages the host took."
    ),
    provoke: "In such a guest: `cat FILE > /dev/null; dd if=FILE iflag=nocache count=0; sleep 5; fathom run \
              --rw read --bs 1m --cache buffered --time 400ms --warmup 0s --runs 1 FILE`, and the same \
              without the sleep.",
    fix: "Use --cache direct, which takes no memory. Or measure with memory that the guest has just used. Or \
          disable free page reporting on the host (QEMU: `free-page-reporting=off` of the balloon).",
    accept: "Accept it if your load also starts on such a machine after a pause.",
    applies: |case| case.has_storage() && !case.stream.cache.is_direct(),
    ask: Ask::Alone(check_freed_memory_given_up),
    #[cfg(test)]
    fires: Some(|| reading(9, 0.5, 0.9)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() }.record();
        record.header.hosts[0].facts.remove(PAGE_REPORTING);
        record
    },
};

fn check_freed_memory_given_up(case: &Case) -> Known<Answer> {
    let machine = case.machine.ok_or("the record names no host")?;
    let order = path_values(machine.fact(PAGE_REPORTING)?).next().map(|(_, order)| order.parse::<i64>());
    let order = order.transpose().map_err(|_| format!("{PAGE_REPORTING} is not a number"))?;
    if order.is_none_or(|order| NOT_REPORTING.contains(&order)) {
        let sentence = "As far as fathom can see, this machine keeps the memory that it frees.";
        return holds(sentence, evidence([]));
    }
    let taken_bytes = sum_over_runs(case, taken_bytes)?;
    let moved = case.issued_total();
    if moved.bytes == 0 {
        return Err("no byte was read or written".into());
    }
    // The kernel counts the pages of all streams together.
    let part = share(taken_bytes as f64, case.of_phase().issued_total().bytes as f64).min(1.0);
    let mut numbers = evidence([("taken_bytes", taken_bytes as f64), ("moved_bytes", moved.bytes as f64)]);
    if part < TAKEN_FROM {
        return holds("The page cache took almost no memory that had been free.", numbers);
    }
    let spent = system_ns_per_byte(case, &moved);
    numbers.extend(spent.map(|ns| ("system_ns_per_byte".to_owned(), ns)));
    let start_of_sentence = format!(
        "The host takes the memory that this guest frees, and gives it back on the next use. Up to {} of the \
         bytes moved ({}) went into memory that had been free",
        show_share(part),
        show_bytes(moved.bytes)
    );
    Ok(Answer::Finding(match spent.filter(|ns| *ns >= NS_PER_BYTE_FROM) {
        Some(ns) => detail!(
            Severity::Biases,
            numbers,
            "{start_of_sentence}, at {ns:.1} ns of system time per byte: with memory that the guest still \
             has, the job is probably faster."
        ),
        None => detail!(Severity::Note, numbers, "{start_of_sentence}."),
    }))
}

/// Returns the growth of the page cache during a run. These pages were free before.
fn taken_bytes(ran: &CaseRun) -> Known<u64> {
    let pages = |moment| number_of_key(ran.snapshot(moment)?.text(VMSTAT)?, "nr_file_pages");
    Ok(pages(Moment::Stop)?.saturating_sub(pages(Moment::Start)?).saturating_mul(VMSTAT_PAGE_BYTES))
}

/// Returns the system time of the stream's workers per byte, without the fixed cost of operations, or `None` if
/// unknown.
fn system_ns_per_byte(case: &Case, moved: &Amount) -> Option<f64> {
    let system: f64 = case.workers().map(|w| w.system_ns as f64).sum();
    let is_known = case.workers().any(|w| w.wall_ns > 0);
    is_known.then(|| (system - moved.ops as f64 * SYSTEM_TIME_PER_OPERATION.0).max(0.0) / moved.bytes as f64)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// A record with this many KiB of dirty and writeback pages at the start of every run.
#[cfg(test)]
fn with_dirt(dirty: u64, writeback: u64) -> Record {
    let mut record = Fixture::honest().record();
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = format!("MemTotal: 8388608 kB\nDirty: {dirty} kB\nWriteback: {writeback} kB\n");
        snapshot.files.insert(MEMINFO.into(), Ok(text));
    }
    record
}

#[test]
fn dirty_and_writeback_pages_add_up() {
    let at = |dirty, writeback| DIRTY_BACKLOG.severity(&with_dirt(dirty, writeback));
    assert_eq!((at(60 << 10, 0), at(0, 60 << 10)), (None, None));
    assert_eq!(at(40 << 10, 40 << 10), Some(Severity::Biases));
    assert_eq!(at(u64::MAX / 1024, u64::MAX / 1024), Some(Severity::Biases));
}

/// A record in which `file` has the text `text(run)` at the stop of each run.
#[cfg(test)]
fn at_stop(fixture: &Fixture, file: &str, text: impl Fn(u64) -> String) -> Record {
    let mut record = fixture.record();
    for run in &mut record.runs {
        for snapshot in run.evidence.iter_mut().filter(|s| s.moment == Moment::Stop) {
            snapshot.files.insert(file.into(), Ok(text(u64::from(run.start.repeat))));
        }
    }
    record
}

/// A record in which tasks waited `us` us for memory in each second.
#[cfg(test)]
fn pressed(us: u64) -> Record {
    at_stop(&Fixture::honest(), MEMORY_PRESSURE_FILE, |_| {
        format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n")
    })
}

#[cfg(test)]
fn vmstat(swapped: u64, dirty: u64) -> String {
    format!(
        "nr_dirty {dirty}\nnr_writeback 0\nnr_dirty_threshold 100000\npgmajfault 3\npswpin 0\npswpout {swapped}\n"
    )
}

#[test]
fn waiting_for_memory_for_one_percent_biases() {
    assert_eq!(MEMORY_PRESSURE.severity(&pressed(12_000)), Some(Severity::Biases));
    assert!(matches!(MEMORY_PRESSURE.answer(&pressed(8_000)), Ok(Answer::Holds(..))));
}

#[test]
fn swapping_biases_without_pressure_counters() {
    let with = |pages| at_stop(&Fixture::honest(), VMSTAT, |_| vmstat(pages, 0));
    let mut much = with(300);
    assert_eq!(MEMORY_PRESSURE.severity(&much), Some(Severity::Biases));
    assert!(matches!(MEMORY_PRESSURE.answer(&with(200)), Ok(Answer::Holds(..))));
    let files = much.runs.iter_mut().flat_map(|r| &mut r.evidence).map(|s| &mut s.files);
    files.for_each(|f| drop(f.remove(MEMORY_PRESSURE_FILE)));
    assert_eq!(MEMORY_PRESSURE.severity(&much), Some(Severity::Biases));
}

#[test]
fn buffered_writes_near_the_dirty_limit_are_a_note() {
    let buffered = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest_write() };
    let with = |fixture: &Fixture, dirty| at_stop(fixture, VMSTAT, |_| vmstat(0, dirty));
    assert_eq!(MEMORY_PRESSURE.severity(&with(&buffered, 80_000)), Some(Severity::Note));
    assert_eq!(MEMORY_PRESSURE.severity(&with(&buffered, 70_000)), None);
    assert_eq!(MEMORY_PRESSURE.severity(&with(&Fixture::honest_write(), 99_000)), None);
}

/// Buffered reads of 1 MiB in a guest with this `page_reporting_order`. `share` of them went into free memory, and the
/// workers were busy for `cpu_share` of the time.
#[cfg(test)]
fn reading(order: i64, share: f64, cpu_share: f64) -> Record {
    let fixture = Fixture {
        cache: model::job::Cache::Buffered,
        block_bytes: 1 << 20,
        ops: 300,
        cpu_share,
        ..Fixture::honest()
    };
    let mut record = fixture.record();
    let path = PAGE_REPORTING.replace('*', "page_reporting");
    record.header.hosts[0].facts.insert(PAGE_REPORTING.into(), Ok(format!("{path}: {order}\n")));
    let pages = (share * 330.0 * 256.0) as u64;
    for snapshot in record.runs.iter_mut().flat_map(|run| &mut run.evidence) {
        let cached = if snapshot.moment == Moment::Start { 100_000 } else { 100_000 + pages };
        snapshot.files.insert(VMSTAT.into(), Ok(format!("nr_file_pages {cached}\n")));
    }
    record
}

#[test]
fn memory_from_the_host_biases_if_its_price_shows() {
    assert_eq!(FREED_MEMORY_GIVEN_UP.severity(&reading(9, 0.5, 0.9)), Some(Severity::Biases));
    assert_eq!(
        FREED_MEMORY_GIVEN_UP.severity(&reading(9, 0.5, 0.1)),
        Some(Severity::Note),
        "it was still there"
    );
    assert!(
        matches!(FREED_MEMORY_GIVEN_UP.answer(&reading(9, 0.05, 0.9)), Ok(Answer::Holds(..))),
        "pages that were in use"
    );
    for order in NOT_REPORTING {
        assert!(
            matches!(FREED_MEMORY_GIVEN_UP.answer(&reading(order, 0.5, 0.9)), Ok(Answer::Holds(..))),
            "{order}"
        );
    }
}
