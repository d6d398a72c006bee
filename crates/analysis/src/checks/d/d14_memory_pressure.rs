//! D14: a machine that was short of memory while it measured. Checks the time that tasks stalled on memory, the
//! pages swapped, and, for buffered writes, whether dirty pages reached the level at which the kernel makes
//! writers wait.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{grown, keyed, pressure_us};

const PRESSURE: &str = "/proc/pressure/memory";
/// Share of the time in which some task waited for memory. A machine with enough memory shows 0, and 1 % can
/// already decide a percentile.
const STALLED_FROM: Share = Share(0.01);
/// Pages swapped per second above which it is not an old page that a process touched: 1 MiB/s.
const SWAPPED_PAGES_PER_S: f64 = 256.0;
/// Share of the dirty page limit above which the kernel makes writers wait: half way between the background limit
/// and this limit (mm/page-writeback.c, `dirty_freerun_ceiling`).
const DIRTY_FROM: Share = Share(0.75);

pub(super) const CHECK: Check = Check {
    id: CheckId::D14,
    name: "MEMORY_PRESSURE",
    belief: "there was enough memory",
    reads: "`/proc/pressure/memory` (`some`, `total`), and `pswpin`, `pswpout`, `pgmajfault`, `nr_dirty`, \
            `nr_writeback` and `nr_dirty_threshold` of `/proc/vmstat`, at start and stop of each run.",
    formula: formula!(
        "Biased if some task waited for memory in at least {STALLED_FROM} of the time, or if at least \
         {SWAPPED_PAGES_PER_S} pages per second were swapped, over all runs. A note if fathom's own writes \
         through the page cache end with dirty pages above {DIRTY_FROM} of their limit: there the kernel \
         makes writers wait."
    ),
    provoke: "In a cgroup with less memory than the file: `systemd-run --scope -p MemoryMax=64M fathom run \
              --rw randread --cache mmap --engine mmap --size 1g DIR`.",
    fix: "Stop other users of the memory, make the file smaller, or raise the limit of the cgroup, and \
          measure again.",
    accept: "Accept it if the machine that you want to measure is as short of memory.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| pressed(50_000)),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let files = record.runs.iter_mut().flat_map(|r| &mut r.evidence).map(|s| &mut s.files);
        files.for_each(|f| drop(f.insert(PRESSURE.into(), Err("not built into this kernel".into()))));
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let active = sum_over_runs(case, CaseRun::active_ns)? as f64;
    let sum =
        |file: &str, read: &dyn Fn(&str) -> Known<u64>| sum_over_runs(case, |ran| grown(ran, file, read));
    let stalled_us = sum(PRESSURE, &|text| pressure_us(text, "some"));
    let swapped = sum(VMSTAT, &|text| Ok(keyed(text, "pswpin")?.saturating_add(keyed(text, "pswpout")?)));
    let faults = sum(VMSTAT, &|text| keyed(text, "pgmajfault"));
    let stalled = stalled_us.map(|us| share(us as f64 * 1e3, active));
    let pages_per_s = swapped.clone().map(|pages| share(pages as f64, active / 1e9));
    let mut numbers = evidence([("active_ns", active)]);
    numbers.extend(stalled.as_ref().ok().map(|s| ("stalled_share".to_owned(), *s)));
    numbers.extend(swapped.as_ref().ok().map(|p| ("swapped_pages".to_owned(), *p as f64)));
    numbers.extend(faults.ok().map(|f| ("major_faults".to_owned(), f as f64)));
    let mut causes = Vec::new();
    if let Ok(s) = stalled.as_ref().map(|s| *s)
        && s >= STALLED_FROM
    {
        causes.push(format!("tasks waited for memory in {} of the time", show_share(s)));
    }
    if let (Ok(rate), Ok(pages)) = (&pages_per_s, &swapped)
        && *rate >= SWAPPED_PAGES_PER_S
    {
        causes.push(format!("{} were swapped", show_bytes(pages.saturating_mul(VMSTAT_PAGE_BYTES))));
    }
    if !causes.is_empty() {
        return finding!(
            Severity::Biased,
            numbers,
            "The machine was short of memory: {}.",
            causes.join(", and ")
        );
    }
    let dirty = dirty_share_of_limit(case)?;
    if let Some(part) = dirty.filter(|part| *part >= DIRTY_FROM) {
        numbers.insert("dirty_share_of_limit".into(), part);
        let sentence = format!(
            "Dirty pages reached {} of their limit, where the kernel makes writers wait: the rate mixes \
             memory and the disk.",
            show_share(part)
        );
        let cure = "Use --cache direct, or write for so long that the first part does not matter.";
        let found = Detail::new(Severity::Note, sentence, numbers).with_cure(cure.to_owned());
        return Ok(Answer::Finding(found));
    }
    stalled?;
    pages_per_s?;
    holds("There was enough memory.", numbers)
}

/// Returns the highest share of the dirty page limit at the stop of a run, or `None` if the stream's writes leave
/// no dirty pages.
fn dirty_share_of_limit(case: &Case) -> Known<Option<f64>> {
    if case.stream.cache.is_direct() || case.stream.cache.is_sync() || !case.does(Kind::Write) {
        return Ok(None);
    }
    let dirty_share_at_stop = |ran: &CaseRun| {
        let text = ran.at(Moment::Stop)?.text(VMSTAT)?;
        let pages = keyed(text, "nr_dirty")?.saturating_add(keyed(text, "nr_writeback")?);
        Ok(share(pages as f64, keyed(text, "nr_dirty_threshold")? as f64))
    };
    let all: Vec<f64> = case.runs.iter().map(dirty_share_at_stop).collect::<Known<_>>()?;
    Ok(all.into_iter().max_by(f64::total_cmp))
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

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
    at_stop(&Fixture::honest(), PRESSURE, |_| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n"))
}

#[cfg(test)]
fn vmstat(swapped: u64, dirty: u64) -> String {
    format!(
        "nr_dirty {dirty}\nnr_writeback 0\nnr_dirty_threshold 100000\npgmajfault 3\npswpin 0\npswpout {swapped}\n"
    )
}

#[test]
fn waiting_for_memory_for_one_percent_biases() {
    assert_eq!(CHECK.severity(&pressed(12_000)), Some(Severity::Biased));
    assert!(matches!(CHECK.answer(&pressed(8_000)), Ok(Answer::Holds(..))));
}

#[test]
fn swapping_biases_without_pressure_counters() {
    let with = |pages| at_stop(&Fixture::honest(), VMSTAT, |_| vmstat(pages, 0));
    let mut much = with(300);
    assert_eq!(CHECK.severity(&much), Some(Severity::Biased));
    assert!(matches!(CHECK.answer(&with(200)), Ok(Answer::Holds(..))));
    let files = much.runs.iter_mut().flat_map(|r| &mut r.evidence).map(|s| &mut s.files);
    files.for_each(|f| drop(f.remove(PRESSURE)));
    assert_eq!(CHECK.severity(&much), Some(Severity::Biased));
}

#[test]
fn buffered_writes_near_the_dirty_limit_are_a_note() {
    let buffered = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest_write() };
    let with = |fixture: &Fixture, dirty| at_stop(fixture, VMSTAT, |_| vmstat(0, dirty));
    assert_eq!(CHECK.severity(&with(&buffered, 80_000)), Some(Severity::Note));
    assert_eq!(CHECK.severity(&with(&buffered, 70_000)), None);
    assert_eq!(CHECK.severity(&with(&Fixture::honest_write(), 99_000)), None);
}
