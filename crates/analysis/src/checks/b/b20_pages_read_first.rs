//! B20: buffered writes that made the kernel read first. Compares the bytes read by the device in write-only runs
//! with the bytes written, and names partial page writes as the cause if the plan has them.

use crate::checks::b::{FLOOR_BYTES, has_partial_pages, incidental_bytes, page_bytes};
use crate::checks::prelude::*;

/// Bytes read per byte written above which the rate is biased.
const BIASED_ABOVE: Share = Share(0.05);

pub(super) const CHECK: Check = Check {
    id: CheckId::B20,
    name: "PAGES_READ_FIRST",
    belief: "a write only writes",
    reads: "Reads that the kernel charged to fathom's own cgroup on the disk in runs that only write, \
            otherwise the reads of the device. Also the sizes and offsets of the plan, and the page size.",
    formula: formula!(
        "Bytes read by the device / bytes written > {BIASED_ABOVE}, and more than {odd} per run, which the \
         file system reads for itself. A write to part of a page that is not in memory must read the page \
         first; a write of a whole page reads nothing. The finding names that cause if the plan has sizes or \
         offsets that are not multiples of a page. If the page cache is not emptied between runs (`--cold \
         false`), the reads of the first run, at most the span once, do not count.",
        odd = show_bytes(FLOOR_BYTES)
    ),
    provoke: "`fathom run --rw write --bs 512 --engine sync --cache buffered DIR`: the test file is evicted \
              before each run, so each page is read before its first part is written.",
    fix: "Use a --bs and offsets that are multiples of the page (4k), or write a new file (`--engine \
          sync:new`), whose pages are not read.",
    accept: "Accept it if the application changes parts of old pages.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| with_reads(0.5)),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture {
            stat_unreadable: true,
            cache: model::job::Cache::Buffered,
            ..crate::fixture::Fixture::honest_write()
        }
        .record()
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Write) || case.does(Kind::Read) || !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let written = issued_bytes(case, Kind::Write)?;
    let disks = case.shared()?;
    let is_shared = !case.sharers(&disks).is_empty();
    let incidental = incidental_bytes(case);
    let read = if is_shared {
        // The reads that the stream's own workers submitted.
        let read = case.counted_by_workers(case.index, |io| io.read_bytes);
        let is_small =
            |bytes: u64| share(bytes as f64, written as f64) <= BIASED_ABOVE || bytes <= incidental;
        if is_small(read.least) && !is_small(read.most) {
            return Err(case.why_shared()?);
        }
        read.least
    } else {
        let device = case.device()?.read.bytes;
        case.own().map_or(device, |own| own.bytes[0]).saturating_sub(first_fill_bytes(case))
    };
    let part = share(read as f64, written as f64);
    let numbers = evidence([
        ("written_bytes", written as f64),
        ("read_bytes", read as f64),
        ("read_per_written", part),
    ]);
    if part <= BIASED_ABOVE || read <= incidental {
        return holds("The writes caused no reads.", numbers);
    }
    if !is_shared && case.own().is_err() {
        return Err(format!(
            "the device read {} although the job only writes, and no cgroup shows for which process",
            show_bytes(read)
        ));
    }
    let page = page_bytes(case);
    let (cause, cure) = if !case.stream.cache.is_direct() && has_partial_pages(case, page) {
        (
            format!(
                ": a write to part of a page ({}) that is not in memory must read the page first",
                show_bytes(page)
            ),
            None,
        )
    } else {
        (": the file system read metadata to allocate blocks, or a layer below read blocks to change parts \
          of them".into(), Some(String::new()))
    };
    detail!(
        Severity::Biased,
        numbers,
        "The kernel read {} from the device while fathom only wrote {} ({}){cause}. The rate includes these \
         reads.",
        show_bytes(read),
        show_bytes(written),
        show_share(part)
    )
    .with_cure(cure)
    .found()
}

/// Returns the bytes that the first of several runs read into a page cache that stays between runs, at most the
/// span.
fn first_fill_bytes(case: &Case) -> u64 {
    let first = case.runs.first().filter(|_| !case.record.header.plan.cold && case.runs.len() > 1);
    let read = first.and_then(|ran| Some(ran.counted(&case.tops().ok()?).ok()?.read.bytes));
    read.unwrap_or(0).min(case.span_bytes())
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Buffered writes of 512 B. Every run also reads `part` of their bytes.
#[cfg(test)]
fn with_reads(part: f64) -> model::record::Record {
    with_reads_in_first_runs(u64::MAX, part)
}

/// Buffered writes of 512 B. The first `runs_with_reads` runs also read `part` of their bytes.
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
    let Ok(Answer::Finding(f)) = CHECK.answer(&with_reads(1.0)) else { panic!("silent") };
    assert!(f.sentence.contains("part of a page (4 KiB)"), "{}", f.sentence);
    assert!(matches!(CHECK.answer(&with_reads(0.04)), Ok(Answer::Holds(..))));
    let direct = CHECK.answer(&Fixture::honest_write().record());
    assert!(matches!(direct, Ok(Answer::Holds(..))), "{direct:?}");
}

#[test]
fn the_first_fill_of_a_kept_page_cache_does_not_count() {
    let with_kept_cache = |runs_with_reads, span_bytes: Option<u64>| {
        let mut record = with_reads_in_first_runs(runs_with_reads, 4.0);
        record.header.plan.cold = false;
        if let Some(span_bytes) = span_bytes {
            record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = span_bytes;
        }
        CHECK.severity(&record)
    };
    assert_eq!(with_kept_cache(1, None), None);
    // Reads beyond the span, and reads in later runs, do count.
    assert_eq!(with_kept_cache(1, Some(1 << 20)), Some(Severity::Biased));
    assert_eq!(with_kept_cache(u64::MAX, None), Some(Severity::Biased));
    assert_eq!(
        CHECK.severity(&with_reads_in_first_runs(1, 1.0)),
        Some(Severity::Biased),
        "emptied before each run"
    );
}
