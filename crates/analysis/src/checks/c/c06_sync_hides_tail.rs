//! C06: a final sync that took a large part of the work. Compares the time of the final syncs with the measured
//! time. A09 reports writes that were still in memory.

use crate::checks::prelude::*;

/// Share of the measured time above which the sync belongs to it.
const HIDDEN_ABOVE: Share = Share(0.1);
/// A shorter sync is a journal commit and a flush, which even a spinning disk completes in some turns. Compared
/// with a short run it would seem large.
const FLOOR_NS: f64 = 50e6;

pub(super) const CHECK: Check = Check {
    id: CheckId::C06,
    name: "SYNC_HIDES_TAIL",
    belief: "the work was done when the clock stopped",
    reads: "The time from the last completion of a run to the end of its final sync, by fathom's own clock.",
    formula: formula!(
        "Time of the final syncs / measured time, over all runs: above {HIDDEN_ABOVE}, the rate is off by as \
         much. Syncs below {floor} on average are ignored: that is a commit and a flush. If A09 finds the \
         writes in memory, it reports the rate that includes the sync, and this check is silent.",
        floor = Ns(FLOOR_NS)
    ),
    provoke: "`fathom run --rw write --bs 1m --depth 4 --size 240m --time 400ms --runs 1 /mnt` on a loop \
              device with its image in the page cache (`losetup --direct-io=off`), which behaves like a \
              drive with a large volatile cache.",
    fix: "Quote the rate with the final sync, or measure for longer (--time).",
    accept: "Accept it if your program does not sync either.",
    ask: Ask::After(&[CheckId::A09], evaluate),
    #[cfg(test)]
    fires: Some(|| {
        let sync_ns = Some(300_000_000);
        crate::fixture::Fixture { sync_ns, ..crate::fixture::Fixture::honest_write() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { sync_ns: None, ..crate::fixture::Fixture::honest_write() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.has_storage() || earlier.finds(CheckId::A09) {
        return Ok(Answer::DoesNotApply);
    }
    let mut sync_ns = 0.0;
    for ran in &case.runs {
        sync_ns += ran.end.sync_ns.ok_or("a run has no final sync that succeeded")? as f64;
    }
    let window = case.window_ns();
    if window <= 0.0 {
        return Err("no run has a measured window".into());
    }
    let (part, mean_ns) = (sync_ns / window, sync_ns / case.runs.len().max(1) as f64);
    let bytes = case.in_windows(Kind::Write).bytes as f64;
    let rate = share(bytes, window + sync_ns) * 1e3;
    let numbers = evidence([("final_sync_ns", mean_ns), ("share", part), ("mb_per_s_with_sync", rate)]);
    if part <= HIDDEN_ABOVE || mean_ns < FLOOR_NS {
        return holds("The final sync was short compared with the measured time.", numbers);
    }
    if case.others_write() {
        return not_checked(
            "the final sync covers the writes of all streams, so its time for this stream is unknown",
        );
    }
    finding!(
        Severity::Biased,
        numbers,
        "The final sync took another {} ({} of the measured time). With it, the rate is {} MB/s.",
        show_ns(mean_ns),
        show_share(part),
        show_rate(rate)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn more_than_ten_percent_of_the_time_biases_unless_the_sync_is_short() {
    let at = |ms: u64| {
        CHECK.severity(&Fixture { sync_ns: Some(ms * 1_000_000), ..Fixture::honest_write() }.record())
    };
    assert_eq!((at(95), at(105)), (None, Some(Severity::Biased)));
    // The window of a fixture is at least 1 s, so this record sets its own.
    let mut record = Fixture { sync_ns: Some(40_000_000), ..Fixture::honest_write() }.record();
    for stream in record.runs.iter_mut().filter_map(|r| r.end.as_mut()).flat_map(|e| &mut e.streams) {
        stream.window_ns = 300_000_000;
    }
    assert_eq!(CHECK.severity(&record), None);
}

#[test]
fn it_is_silent_if_a09_fires() {
    let fixture = Fixture { delivered: 0.0, sync_ns: Some(3_000_000_000), ..Fixture::honest_write() };
    assert_eq!(CHECK.answer(&fixture.record()), Ok(Answer::DoesNotApply));
}
