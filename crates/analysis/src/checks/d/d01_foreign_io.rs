//! D01: traffic of others on the disk during the runs.
//!
//! For: how much of what the disks did that was, and what it does to the number. Not for: telling what is theirs ([`crate::traffic`]),
//! nor neighbours below a virtual disk (D18).

use crate::case::{Case, share};
use crate::checks::check::{Answer, Ask, Check, Detail, Evidence, Page, evidence, formula};
use crate::threshold::Share;
use crate::traffic::{self, AMPLIFICATION, FLOOR_BYTES, Traffic};
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::units::{show_bytes, show_share};

/// Share of the traffic from which it moves the number visibly.
const BIASED_ABOVE: Share = Share(0.05);
/// Share from which the number is about the neighbours.
const VOID_ABOVE: Share = Share(0.30);
/// Requests per run that are never counted against anybody, as few bytes are not.
const FLOOR_IOS: u64 = 48;
pub(super) const CHECK: Check = Check {
    id: CheckId::D01,
    name: "FOREIGN_IO",
    belief: "nobody else used the disk",
    page: Page {
        reads: "`/sys/block/*/stat` at the start and stop of each run, of the whole disk and of every disk below it (what a loop device, a \
                volume or an array stands on); the charges to fathom's own cgroup on each (`blkio.throttle.io_service_bytes` \
                and `io_serviced`, or `io.stat`); what fathom issued.",
        formula: formula!(
            "Requests and bytes of a disk beyond those charged to fathom (or issued by it, where nothing was charged), as a \
             share of the larger of what the disk did and what was issued: above {BIASED_ABOVE} biased, above {VOID_ABOVE} \
             void; the worst disk counts. Per run {FLOOR_IOS} requests and {floor} never count: a commit, a log line. Writes \
             may be multiplied by {AMPLIFICATION} for journal and inodes; synchronous writes and copy-on-write file systems \
             without bound, so there only reads are judged. Below a loop device only what is charged tells, and writes are \
             judged where nothing in the session writes, the making of a test file included: what is written back later is \
             charged to nobody. Not checked where writes beyond ours that may be the file system's own are more than \
             {BIASED_ABOVE}, where nothing is charged below a loop device, and below what reads and writes for itself (parity, \
             thin and cached volumes, bcache).",
            floor = show_bytes(FLOOR_BYTES)
        ),
        provoke: "dd if=/dev/vda of=/dev/null iflag=direct bs=1M & fathom run --rw randread .",
        fix: "Stop what else uses the disk (`iotop -o`, `pidstat -d 1`), and measure again.",
        accept: "Accept it where the neighbour belongs to what you want to measure.",
    },
    ask: Ask::Alone(look),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { foreign_ios: 9_000, ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn look(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let mut seen = Vec::new();
    let mut unseen = None;
    for (at, traffic) in traffic::of_others(case).into_iter().enumerate() {
        match traffic {
            Ok(traffic) => seen.push(ForeignIo::new(case, traffic, at > 0)),
            Err(why) => unseen = unseen.or(Some(why)),
        }
    }
    // The topmost of those that are as bad.
    let worst = seen.iter().filter(|one| one.severity().is_some()).min_by_key(|one| one.severity());
    if let Some(found) = worst {
        return Ok(Answer::Finding(found.found()));
    }
    if let Some(why) = unseen {
        return Err(why);
    }
    if let Some(why) = seen.iter().find_map(ForeignIo::unattributed) {
        return Err(why);
    }
    let top = seen.into_iter().next().ok_or_else(crate::case::no_run)?;
    let sentence = if top.traffic.inferred {
        "The disk did no more than fathom issued, so nobody else used it (inferred)."
    } else {
        "Nobody else used the disk."
    };
    Ok(Answer::Holds(sentence, top.numbers()))
}

/// What others did on a disk, beside what was measured.
struct ForeignIo {
    traffic: Traffic,
    below: bool,
    of_bytes: f64,
    of_ios: f64,
    of_unattributed: f64,
}

impl ForeignIo {
    fn new(case: &Case, traffic: Traffic, below: bool) -> Self {
        let runs = case.runs.len() as u64;
        let (foreign, total) = (traffic.all(), traffic.total);
        // Where the page cache answered, the device did next to nothing and any neighbour is most of that; what counts is how
        // much there was beside what was measured.
        let issued = case.issued_total();
        let of_all = |bytes| floored(bytes, FLOOR_BYTES.saturating_mul(runs), total.bytes.max(issued.bytes));
        let (of_bytes, of_unattributed) = (of_all(foreign.bytes), of_all(traffic.unattributed_bytes));
        let of_ios = floored(foreign.ops, FLOOR_IOS.saturating_mul(runs), total.ios.max(issued.ops));
        let of_ios = if traffic::comparable(case) { of_ios } else { 0.0 };
        Self { traffic, below, of_bytes, of_ios, of_unattributed }
    }

    fn share(&self) -> f64 {
        self.of_bytes.max(self.of_ios)
    }

    fn severity(&self) -> Option<Severity> {
        match self.share() {
            s if s > VOID_ABOVE => Some(Severity::Void),
            s if s > BIASED_ABOVE => Some(Severity::Biased),
            _ => None,
        }
    }

    /// Why nobody can tell whether somebody else wrote.
    fn unattributed(&self) -> Option<String> {
        (self.of_unattributed > BIASED_ABOVE.0).then(|| {
            format!(
                "{} wrote {} more than was asked of it: for others, or for the file system and its journal, which the kernel does not \
                 tell apart",
                self.traffic.disks,
                show_bytes(self.traffic.unattributed_bytes)
            )
        })
    }

    fn numbers(&self) -> Evidence {
        let foreign = self.traffic.all();
        evidence([
            ("device_bytes", self.traffic.total.bytes as f64),
            ("device_ios", self.traffic.total.ios as f64),
            ("foreign_bytes", foreign.bytes as f64),
            ("foreign_ios", foreign.ops as f64),
            ("foreign_share", self.share()),
        ])
    }

    fn found(&self) -> Detail {
        let disk = if self.below { &self.traffic.disks } else { "the device" };
        let what = if self.of_ios > self.of_bytes { "requests" } else { "traffic" };
        let how = if self.traffic.inferred { " (inferred from what fathom issued)" } else { "" };
        Detail::new(
            self.severity().unwrap_or(Severity::Note),
            format!(
                "{} of {disk}'s {what} during the runs was not fathom's{how}: {} of {}.",
                show_share(self.share()),
                show_bytes(self.traffic.all().bytes),
                show_bytes(self.traffic.total.bytes)
            ),
            self.numbers(),
        )
    }
}

/// A part of a whole, none where the part is a handful.
fn floored(part: u64, floor: u64, whole: u64) -> f64 {
    if part <= floor { 0.0 } else { share(part as f64, whole as f64) }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn at(foreign_ios: u64) -> Option<Severity> {
    CHECK.severity(&Fixture { foreign_ios, ..Fixture::honest() }.record())
}

#[test]
fn a_handful_is_nobody_some_bias_and_much_voids() {
    assert_eq!(at(40), None);
    assert_eq!(at(400), None, "3.5 %");
    assert_eq!(at(1_500), Some(Severity::Biased));
    assert_eq!(at(9_000), Some(Severity::Void));
}

#[test]
fn without_a_cgroup_it_is_inferred_for_direct_and_not_checked_for_buffered() {
    let without = || Fixture { cgroup: false, ..Fixture::honest() };
    let Ok(Answer::Finding(f)) = CHECK.answer(&Fixture { foreign_ios: 9_000, ..without() }.record()) else {
        panic!("silent")
    };
    assert!(f.sentence.contains("inferred"));
    assert!(matches!(CHECK.answer(&without().record()), Ok(Answer::Holds(..))));
    let buffered = Fixture { cache: model::job::Cache::Buffered, ..without() };
    assert!(CHECK.answer(&buffered.record()).is_err());
}

#[test]
fn a_cgroup_that_does_not_count_is_no_witness() {
    let idle = Fixture { cgroup_counts_nothing: true, ..Fixture::honest() };
    let Ok(Answer::Holds(sentence, _)) = CHECK.answer(&idle.record()) else { panic!("fires") };
    assert!(sentence.contains("inferred"));
}

#[test]
fn the_journal_of_our_own_writes_is_not_foreign() {
    let journal = Fixture { foreign_ios: 4_000, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&journal.record()), None);
    let others = Fixture { foreign_ios: 30_000, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&others.record()), Some(Severity::Void));
}

#[test]
fn others_on_a_disk_below_count_as_much_and_the_topmost_is_named() {
    let sentence = |record| match CHECK.answer(&record) {
        Ok(Answer::Finding(f)) => (f.severity, f.sentence),
        other => panic!("{other:?}"),
    };
    let (severity, both) = sentence(Fixture { foreign_ios: 9_000, ..Fixture::honest_loop() }.record());
    assert!(severity == Severity::Void && both.contains("of the device's traffic"), "{both}");
    let (severity, below) = sentence(traffic::beside(&Fixture::honest_loop(), 0, 9_000));
    assert!(severity == Severity::Void && below.contains("of vda's traffic"), "{below}");
}

#[test]
fn writes_that_may_be_the_file_systems_own_are_nobodys() {
    let of = |fixture: Fixture| CHECK.answer(&fixture.record());
    let journal = of(Fixture { foreign_ios: 4_000, ..Fixture::honest_write() });
    assert!(journal.is_err_and(|why| why.contains("more than was asked of it")));
    assert!(matches!(of(Fixture { foreign_ios: 400, ..Fixture::honest_write() }), Ok(Answer::Holds(..))));
    let stable = Fixture { cache: model::job::Cache::DirectDsync, ..Fixture::honest_write() };
    assert!(of(Fixture { foreign_ios: 30_000, ..stable }).is_err());
    let below = Fixture { leaf_share: Some(1.0), ..Fixture::honest_write() };
    assert!(CHECK.answer(&traffic::beside(&below, 4, 9_000)).is_err_and(|why| why.starts_with("vda wrote")));
    assert!(matches!(of(below), Ok(Answer::Holds(..))));
}
