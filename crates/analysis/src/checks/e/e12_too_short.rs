//! E12: measurements too short to include what happens over time. Checks the operations and the length of each
//! window, the total time of all runs, and, for writes to flash drives, the bytes written against the drive's
//! fast cache.

use super::e13_fresh_flash::is_flash;
use crate::checks::prelude::*;
use crate::figures::{LEAST_NS, LEAST_OPS, TICK_NS, TooLittle, WRONG_BY, too_little};

/// Seconds below which periodic work is missed: ext4 commits its journal and the kernel writes back old pages
/// every five seconds.
const SECONDS_FROM: f64 = 5.0;
/// Share of its capacity that a consumer flash drive may use as a fast cache.
const FAST_SHARE: Share = Share(0.10);
/// Largest fast cache of a drive.
const FAST_AT_MOST: u64 = 100_000_000_000;

pub(super) const CHECK: Check = Check {
    id: CheckId::E12,
    name: "TOO_SHORT",
    belief: "the measured rate continues",
    reads: "The lengths of the measured windows of all runs and the bytes written in them. For the drive: \
            `queue/rotational`, its driver and its capacity.",
    formula: formula!(
        "Biased, and without an interval, if the windows contain fewer than {LEAST_OPS} operations on \
         average: a count is off by one operation at the edges of its window, which is {wrong} then. The \
         same if windows that end by the clock are shorter than {least}: the scheduler may delay a worker by \
         a tick, at most {tick}, which is {wrong} then. Runs that are equally short agree, so their \
         variation does not show it. A note if the windows of all runs total less than {SECONDS_FROM} s: \
         journal commits and writeback happen every five seconds. Writes to a flash drive (driver nvme or \
         sd, not rotational, not in a virtual machine) are biased if all runs of the result wrote less than \
         {FAST_SHARE} of its capacity, or {most} GB if that is less: its fast cache (SLC) may have taken all \
         of it. A09 reports writes that memory took.",
        wrong = Share(WRONG_BY),
        least = Ns(LEAST_NS),
        tick = Ns(TICK_NS),
        most = FAST_AT_MOST / 1_000_000_000
    ),
    provoke: "`fathom run --time 1ms --warmup 0 DIR`; `fathom run --time 1s --runs 1 DIR`; `fathom run --rw \
              write --bs 1m --time 5s DIR` on a consumer NVMe drive.",
    fix: "Use a longer --time or more --runs; for sustained writes, a --size and --time beyond the fast \
          cache.",
    accept: "Accept it if your load comes in bursts.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { runs: 2, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { runs: 0, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    case.need_run()?;
    let seconds = case.window_ns() / 1e9;
    let written = case.issued(Kind::Write).bytes;
    let mut numbers = evidence([("seconds", seconds), ("written_bytes", written as f64)]);
    if let Some(shortage) = too_little(case) {
        let (sentence, cure, number) = match shortage {
            TooLittle::Operations(ops) => (
                format!(
                    "A window contains {ops:.1} operations on average: one more or less at its edges is {} \
                     of the rate, so fathom gives no interval.",
                    show_share(1.0 / ops)
                ),
                format!("Use a longer --time: each run needs {LEAST_OPS:.0} operations."),
                ("operations_per_window", ops),
            ),
            TooLittle::Time(ns) => (
                format!(
                    "A window was {} long on average: a scheduler tick, at most 10 ms, is too large a part \
                     of that, so fathom gives no interval.",
                    show_ns(ns)
                ),
                format!("Use a longer --time: at least {}.", show_ns(LEAST_NS)),
                ("window_ns", ns),
            ),
        };
        numbers.insert(number.0.into(), number.1);
        let (severity, cure) = (Severity::Biased, Some(cure));
        return Detail::new(severity, sentence, numbers).with_cure(cure).found();
    }
    if case.does(Kind::Write)
        && let Some(fast) = fast_cache_bytes(case)
        && written < fast
    {
        return finding!(
            Severity::Biased,
            numbers,
            "{} were written in total, and the fast cache of such a drive may hold {}: this may be the speed \
             of that cache alone.",
            show_bytes(written),
            show_bytes(fast)
        );
    }
    // Windows may end some us early.
    if seconds < SECONDS_FROM - 0.05 {
        return finding!(
            Severity::Note,
            numbers,
            "Only {} were measured in total, so periodic work such as a journal commit every \
             five seconds is hardly included.",
            show_seconds(seconds)
        );
    }
    holds("The runs are longer than the period of journal commits and writeback.", numbers)
}

/// Returns the fast cache capacity of the flash drives below, or `None` if there is no such drive or none is
/// known.
fn fast_cache_bytes(case: &Case) -> Option<u64> {
    let leaves = case.leaves().ok()?;
    let is_known = |driver: Option<&str>| matches!(driver, Some("nvme" | "sd"));
    let flash = is_flash(case).ok()? && leaves.iter().all(|l| is_known(l.driver.as_deref()));
    let fast = |bytes: u64| ((bytes as f64 * FAST_SHARE.0) as u64).min(FAST_AT_MOST);
    flash.then(|| leaves.iter().map(|l| fast(l.bytes)).fold(0, u64::saturating_add))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_time_of_all_runs_counts() {
    assert_eq!(CHECK.severity(&Fixture { runs: 5, ..Fixture::honest() }.record()), None);
    assert_eq!(CHECK.severity(&Fixture { runs: 4, ..Fixture::honest() }.record()), Some(Severity::Note));
}

#[test]
fn windows_with_few_operations_bias_and_have_no_interval() {
    let few_ops = Fixture { ops: 1, ..Fixture::honest() }.record();
    let Ok(Answer::Finding(f)) = CHECK.answer(&few_ops) else { panic!("silent") };
    assert!(f.severity == Severity::Biased && f.sentence.contains("100 % of the rate"), "{}", f.sentence);
    let report = crate::judge(&few_ops, &crate::Judging::default());
    assert_eq!((report.headline.interval, report.verdict), (None, model::report::Verdict::Suspect));
    assert!(report.headline.value.is_some());
}

#[test]
fn writes_below_the_fast_cache_of_a_known_drive_bias() {
    let on = |driver: &str, bytes: u64| {
        let mut record = Fixture::honest_write().record();
        let disk = &mut record.header.hosts[0].places[0].layers[0];
        (disk.driver, disk.bytes) = (Some(driver.into()), bytes);
        record
    };
    // 55,000 operations of 4 KiB are 225 MB.
    assert_eq!(CHECK.severity(&on("nvme", 1 << 40)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&on("nvme", 2_000_000_000)), None);
    assert_eq!(CHECK.severity(&on("virtio_blk", 1 << 40)), None);
    let mut guest = on("nvme", 1 << 40);
    guest.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(CHECK.severity(&guest), None);
}
