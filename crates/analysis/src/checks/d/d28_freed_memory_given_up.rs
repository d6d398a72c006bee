//! D28: a guest that returns its free memory to the host, so that the page cache must get it back during the
//! runs. Compares the growth of the page cache with the bytes moved, and the workers' system time per byte with a
//! limit.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{entries, keyed};
use model::evidence::PAGE_REPORTING;

/// Values of `page_reporting_order` without page reporting: -1, and the largest orders, the initial value in
/// older kernels (mm/page_reporting.c).
const NOT_REPORTING: [i64; 3] = [-1, 11, 10];
/// Share of the moved bytes that went into formerly free memory, above which its price affects the number.
const TAKEN_FROM: Share = Share(0.10);
/// System time per byte above which the host had to provide the memory. Finding a page and copying costs 0.1 to
/// 0.25 ns per byte; 0.8 to 1.9 were measured with memory from the host (KVM, 2 MiB at a time).
const NS_PER_BYTE_FROM: f64 = 0.5;
/// System time of an operation of any size, which is subtracted first.
const PER_OPERATION: Ns = Ns(5_000.0);

pub(super) const CHECK: Check = Check {
    id: CheckId::D28,
    name: "FREED_MEMORY_GIVEN_UP",
    belief: "using free memory costs nothing",
    reads: "`/sys/module/page_reporting/parameters/page_reporting_order`, `nr_file_pages` of `/proc/vmstat` \
            at start and stop of each run, system time of the workers (`getrusage`).",
    formula: formula!(
        "For jobs through the page cache in a guest that reports its free memory to the host (free page \
         reporting of virtio_balloon or hv_balloon). The host takes such memory within seconds, and using it \
         again costs a fault in the host. The growth of the page cache in the runs is compared with the \
         bytes moved. A note from {TAKEN_FROM}. Biased if the workers also spent at least {NS_PER_BYTE_FROM} \
         ns of system time per byte, without {PER_OPERATION} for each operation: then the host's memory was \
         part of the rate. It is an upper bound: the guest does not know which of its free pages the host \
         took."
    ),
    provoke: "In such a guest: `cat FILE > /dev/null; dd if=FILE iflag=nocache count=0; sleep 5; fathom run \
              --rw read --bs 1m --cache buffered --time 400ms --warmup 0s --runs 1 FILE`, and the same \
              without the sleep.",
    fix: "Use --cache direct, which takes no memory. Or measure with memory that the guest has just used. Or \
          disable free page reporting on the host (QEMU: `free-page-reporting=off` of the balloon).",
    accept: "Accept it if your load also starts on such a machine after a pause.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| reading(9, 0.5, 0.9)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture {
            cache: model::job::Cache::Buffered,
            ..crate::fixture::Fixture::honest()
        }
        .record();
        record.header.hosts[0].facts.remove(PAGE_REPORTING);
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() || case.stream.cache.is_direct() {
        return Ok(Answer::DoesNotApply);
    }
    let machine = case.machine.ok_or("the record names no host")?;
    let order = entries(machine.fact(PAGE_REPORTING)?).next().map(|(_, order)| order.parse::<i64>());
    let is_reporting = match order {
        None => false,
        Some(order) => {
            !NOT_REPORTING.contains(&order.map_err(|_| format!("{PAGE_REPORTING} is not a number"))?)
        }
    };
    if !is_reporting {
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
        "The host takes the memory that this guest frees, and gives it back on the next use: {} of the bytes \
         moved ({}) went into memory that had been free",
        show_share(part),
        show_bytes(moved.bytes)
    );
    Ok(Answer::Finding(match spent.filter(|ns| *ns >= NS_PER_BYTE_FROM) {
        Some(ns) => detail!(
            Severity::Biased,
            numbers,
            "{start_of_sentence}, at {ns:.1} ns of system time per byte: with memory that the guest still \
             has, the job is faster."
        ),
        None => detail!(Severity::Note, numbers, "{start_of_sentence}."),
    }))
}

/// Returns the growth of the page cache during a run. These pages were free.
fn taken_bytes(run: &CaseRun) -> Known<u64> {
    let pages = |moment| keyed(run.at(moment)?.text(VMSTAT)?, "nr_file_pages");
    Ok(pages(Moment::Stop)?.saturating_sub(pages(Moment::Start)?).saturating_mul(VMSTAT_PAGE_BYTES))
}

/// Returns the system time of the stream's workers per byte, without the fixed cost of operations, or `None` if
/// unknown.
fn system_ns_per_byte(case: &Case, moved: &Amount) -> Option<f64> {
    let workers = || stream_workers(case);
    let system: f64 = workers().map(|w| w.system_ns as f64).sum();
    let is_known = workers().any(|w| w.wall_ns > 0);
    is_known.then(|| (system - moved.ops as f64 * PER_OPERATION.0).max(0.0) / moved.bytes as f64)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// Buffered reads of 1 MiB with pages reported at `order`. A share of them went into free memory, and the workers
/// were busy for `cpu_share` of the time.
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
    assert_eq!(CHECK.severity(&reading(9, 0.5, 0.9)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&reading(9, 0.5, 0.1)), Some(Severity::Note), "it was still there");
    assert!(matches!(CHECK.answer(&reading(9, 0.05, 0.9)), Ok(Answer::Holds(..))), "pages that were in use");
    for order in NOT_REPORTING {
        assert!(matches!(CHECK.answer(&reading(order, 0.5, 0.9)), Ok(Answer::Holds(..))), "{order}");
    }
}
