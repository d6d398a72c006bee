//! D01: traffic of other processes on the disk during the runs. [`crate::figures::traffic`] decides which requests and
//! bytes are theirs.
//!
//! The share of others is their traffic divided by theirs and fathom's together. Bytes and requests each have a
//! share, and the larger one counts. fathom's traffic is the rest of what the disk did, or what fathom issued if
//! that is more. D18 covers neighbours below a virtual disk.

use super::d04_io_limit_configured as d04;
use crate::checks::prelude::*;
use crate::figures::traffic;
use crate::figures::traffic::{AMPLIFICATION, FLOOR_BYTES, FLOOR_IOS, Traffic};

/// Share of the traffic above which the number is biased.
pub(crate) const BIASED_ABOVE: Share = Share(0.05);
/// Share above which the number mostly depends on the other processes.
const VOID_ABOVE: Share = Share(0.30);
/// Share of the time with a request in flight below which the disk certainly had headroom.
const HEADROOM_BELOW: Share = Share(0.9);
pub(super) const CHECK: Check = Check {
    id: CheckId::D01,
    name: "FOREIGN_IO",
    belief: "no other process used the disk",
    reads: "`/sys/block/*/stat` at the start and stop of each run, of the whole disk and of every disk below \
            it (those of a loop device, a volume or an array). The charges to fathom's own cgroup on each \
            disk (`blkio.throttle.io_service_bytes` and `io_serviced`, or `io.stat`). The bytes and \
            operations that fathom issued.",
    formula: formula!(
        "Requests and bytes of a disk beyond those charged to fathom (or issued by it, if nothing was \
         charged) belong to other processes. Their share is others / (others + fathom), where fathom's part \
         is the rest of the disk's traffic, or what fathom issued if that is more. The larger of both shares \
         counts, on the worst disk: above {BIASED_ABOVE} biased, above {VOID_ABOVE} void. If fathom's rate \
         is the limit of a cgroup (D04), other processes did not reduce it: biased at most, and a note if \
         the disk was busy for less than {HEADROOM_BELOW} of the time. {FLOOR_IOS} requests and {floor} per \
         run are allowed: a commit, a log line. Journal and inodes may multiply writes by {AMPLIFICATION}. \
         Synchronous writes and copy-on-write file systems may multiply them without bound, so there only \
         reads are judged. Below a loop device only charges count, and writes are judged only if the session \
         writes nothing, not even a test file, since later writeback is charged to no process. Not checked \
         if more than {BIASED_ABOVE} are extra writes that may be the file system's own, if nothing is \
         charged below a loop device, and below layers that read and write for themselves (parity, thin and \
         cached volumes, bcache).",
        floor = show_bytes(FLOOR_BYTES)
    ),
    provoke: "dd if=/dev/vda of=/dev/null iflag=direct bs=1M & fathom run --rw randread .",
    fix: "Stop other users of the disk (`iotop -o`, `pidstat -d 1`), and measure again.",
    accept: "Accept it if the neighbour belongs to what you want to measure.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { foreign_ios: 9_000, ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    // Other streams of this job are not other processes.
    let case = &case.with_sharers();
    let mut disks = Vec::new();
    let mut not_counted = None;
    for (at, traffic) in traffic::of_others(case).into_iter().enumerate() {
        match traffic {
            Ok(traffic) => disks.push(ForeignIo::new(case, traffic, at > 0)),
            Err(why) => not_counted = not_counted.or(Some(why)),
        }
    }
    // The first of the worst is the topmost disk.
    let worst = disks.iter().filter(|disk| disk.severity().is_some()).min_by_key(|disk| disk.severity());
    if let Some(worst) = worst {
        return Ok(Answer::Finding(worst.finding()));
    }
    if let Some(why) = not_counted {
        return Err(why);
    }
    if let Some(why) = disks.iter().find_map(ForeignIo::unattributed) {
        return Err(why);
    }
    let top = disks.into_iter().next().ok_or_else(crate::case::no_run)?;
    let sentence = match (top.traffic.all() == Amount::default(), top.traffic.inferred) {
        (true, false) => "No other process used the disk.",
        (true, true) => "The disk did no more than fathom issued, so no other process used it (inferred).",
        (false, false) => "Other processes used the disk too little to matter.",
        (false, true) => {
            "The disk did little more than fathom issued, so other processes used it too little to matter \
             (inferred)."
        }
    };
    holds(sentence, top.numbers())
}

/// Traffic of other processes and of fathom on a disk.
struct ForeignIo {
    traffic: Traffic,
    below: bool,
    /// fathom's requests and bytes.
    own: Amount,
    /// Share of the others. `None` if requests cannot be compared, because large operations are split.
    ios_share: Option<f64>,
    bytes_share: f64,
    unattributed_share: f64,
    /// The share that decides, 0 if the traffic is too small to count.
    deciding_share: f64,
    limited: Option<Limited>,
}

/// Set if fathom's rate is the limit of a cgroup.
#[derive(Clone, Copy)]
struct Limited {
    /// Whether the disk certainly had headroom.
    headroom: bool,
}

impl ForeignIo {
    fn new(case: &Case, traffic: Traffic, below: bool) -> Self {
        let runs = case.runs.len() as u64;
        let (foreign, total, issued) = (traffic.all(), traffic.total, case.issued_total());
        // If the page cache answered, the device did almost nothing, and any neighbour would be most of it.
        let own = Amount {
            ops: total.ios.saturating_sub(foreign.ops).max(issued.ops),
            bytes: total.bytes.saturating_sub(foreign.bytes).max(issued.bytes),
        };
        let share_of = |others: u64, own: u64| share(others as f64, others as f64 + own as f64);
        let ios_share = traffic::comparable(case).then(|| share_of(foreign.ops, own.ops));
        let bytes_share = share_of(foreign.bytes, own.bytes);
        let ios_count = foreign.ops > FLOOR_IOS.saturating_mul(runs);
        let floor = FLOOR_BYTES.saturating_mul(runs);
        let unattributed = traffic.unattributed_bytes;
        Self {
            below,
            own,
            ios_share,
            bytes_share,
            unattributed_share: if unattributed > floor { share_of(unattributed, own.bytes) } else { 0.0 },
            deciding_share: ios_share.filter(|_| ios_count).unwrap_or(0.0).max(if foreign.bytes > floor {
                bytes_share
            } else {
                0.0
            }),
            limited: d04::reached(case).map(|_| Limited { headroom: traffic.busy_share < HEADROOM_BELOW.0 }),
            traffic,
        }
    }

    /// Returns the larger share, and whether it is that of requests.
    fn share(&self) -> (f64, bool) {
        let ios_share = self.ios_share.unwrap_or(0.0);
        if ios_share > self.bytes_share { (ios_share, true) } else { (self.bytes_share, false) }
    }

    fn severity(&self) -> Option<Severity> {
        let severity = match self.deciding_share {
            s if s > VOID_ABOVE => Severity::Void,
            s if s > BIASED_ABOVE => Severity::Biased,
            _ => return None,
        };
        Some(match self.limited {
            Some(Limited { headroom: true }) => Severity::Note,
            Some(Limited { headroom: false }) => Severity::Biased,
            None => severity,
        })
    }

    /// Returns why the writes of other processes cannot be distinguished from the file system's own.
    fn unattributed(&self) -> Option<String> {
        (self.unattributed_share > BIASED_ABOVE.0).then(|| {
            format!(
                "{} wrote {} more than fathom requested: for other processes, or for the file system and its \
                 journal, which the kernel does not distinguish",
                self.traffic.disks,
                show_bytes(self.traffic.unattributed_bytes)
            )
        })
    }

    fn numbers(&self) -> Evidence {
        let foreign = self.traffic.all();
        let mut numbers = evidence([
            ("device_bytes", self.traffic.total.bytes as f64),
            ("device_ios", self.traffic.total.ios as f64),
            ("foreign_bytes", foreign.bytes as f64),
            ("own_bytes", self.own.bytes as f64),
            ("foreign_bytes_share", self.bytes_share),
            ("foreign_share", self.share().0),
        ]);
        if let Some(ios_share) = self.ios_share {
            numbers.insert("foreign_ios".into(), foreign.ops as f64);
            numbers.insert("own_ios".into(), self.own.ops as f64);
            numbers.insert("foreign_ios_share".into(), ios_share);
        }
        numbers
    }

    fn finding(&self) -> Detail {
        let disk = if self.below { &self.traffic.disks } else { "the device" };
        let how = if self.traffic.inferred { " (inferred from what fathom issued)" } else { "" };
        let (part, is_requests) = self.share();
        let foreign = self.traffic.all();
        let (others, own) = if is_requests {
            (format!("{} requests", show_count(foreign.ops as f64)), show_count(self.own.ops as f64))
        } else {
            (show_bytes(foreign.bytes), show_bytes(self.own.bytes))
        };
        let limited = match self.limited {
            Some(Limited { headroom: true }) => {
                " A cgroup's limit explains fathom's rate (D04), and the device had headroom: other \
                 processes did not reduce the rate."
            }
            Some(Limited { headroom: false }) => " A cgroup's limit explains fathom's rate (D04).",
            None => "",
        };
        detail!(
            self.severity().unwrap_or(Severity::Note),
            self.numbers(),
            "Other processes used {disk} during the runs{how}: they did {others} and fathom {own}, so their \
             share was {}.{limited}",
            show_share(part)
        )
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn at(foreign_ios: u64) -> Option<Severity> {
    CHECK.severity(&Fixture { foreign_ios, ..Fixture::honest() }.record())
}

#[test]
fn a_few_requests_are_silent_more_bias_and_many_are_void() {
    assert_eq!(at(40), None);
    assert_eq!(at(400), None, "3.5 %");
    assert_eq!(at(1_500), Some(Severity::Biased));
    assert_eq!(at(9_000), Some(Severity::Void));
}

#[test]
fn without_a_cgroup_direct_io_is_inferred_and_buffered_io_is_not_checked() {
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
fn a_cgroup_that_does_not_count_is_ignored() {
    let idle = Fixture { cgroup_counts_nothing: true, ..Fixture::honest() };
    let Ok(Answer::Holds(sentence, _)) = CHECK.answer(&idle.record()) else { panic!("fires") };
    assert!(sentence.contains("inferred"));
}

#[test]
fn the_journal_of_own_writes_is_not_foreign() {
    let journal = Fixture { foreign_ios: 4_000, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&journal.record()), None);
    let others = Fixture { foreign_ios: 30_000, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&others.record()), Some(Severity::Void));
}

#[test]
fn traffic_on_a_lower_disk_counts_and_the_topmost_disk_is_named() {
    let sentence = |record| match CHECK.answer(&record) {
        Ok(Answer::Finding(f)) => (f.severity, f.sentence),
        other => panic!("{other:?}"),
    };
    let (severity, both) = sentence(Fixture { foreign_ios: 9_000, ..Fixture::honest_loop() }.record());
    assert!(severity == Severity::Void && both.contains("used the device during"), "{both}");
    let (severity, below) = sentence(traffic::with_foreign_requests(&Fixture::honest_loop(), 0, 9_000));
    assert!(severity == Severity::Void && below.contains("used vda during"), "{below}");
}

#[test]
fn writes_that_may_belong_to_the_file_system_are_not_checked() {
    let answer_for = |fixture: Fixture| CHECK.answer(&fixture.record());
    let journal = answer_for(Fixture { foreign_ios: 4_000, ..Fixture::honest_write() });
    assert!(journal.is_err_and(|why| why.contains("more than fathom requested")));
    assert!(matches!(
        answer_for(Fixture { foreign_ios: 400, ..Fixture::honest_write() }),
        Ok(Answer::Holds(..))
    ));
    let stable = Fixture { cache: model::job::Cache::DirectDsync, ..Fixture::honest_write() };
    assert!(answer_for(Fixture { foreign_ios: 30_000, ..stable }).is_err());
    let below = Fixture { leaf_share: Some(1.0), ..Fixture::honest_write() };
    assert!(
        CHECK
            .answer(&traffic::with_foreign_requests(&below, 4, 9_000))
            .is_err_and(|why| why.starts_with("vda wrote"))
    );
    assert!(matches!(answer_for(below), Ok(Answer::Holds(..))));
}

/// Returns the figures of a finding or of a belief that holds.
#[cfg(test)]
fn figures(record: &model::record::Record) -> (String, Evidence) {
    match CHECK.answer(record) {
        Ok(Answer::Finding(f)) => (f.sentence, f.evidence),
        Ok(Answer::Holds(sentence, evidence)) => (sentence.to_owned(), evidence),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_shares_follow_from_the_figures() {
    let large = || Fixture { block_bytes: 1 << 20, ..Fixture::honest() };
    let cached = Fixture { delivered: 0.2, foreign_ios: 9_000, ..Fixture::honest() };
    for record in [
        Fixture { foreign_ios: 9_000, ..Fixture::honest() }.record(),
        Fixture { foreign_ios: 40, ..Fixture::honest() }.record(),
        Fixture { foreign_ios: 9_000, cgroup: false, ..Fixture::honest() }.record(),
        Fixture { foreign_ios: 30_000, ..Fixture::honest_write() }.record(),
        Fixture { foreign_ios: 900, ..large() }.record(),
        traffic::with_foreign_requests(&Fixture::honest_loop(), 0, 9_000),
        cached.record(),
    ] {
        let (sentence, e) = figures(&record);
        for unit in ["bytes", "ios"] {
            let Some(part) = e.get(&format!("foreign_{unit}_share")) else { continue };
            let (others, own) = (e[&format!("foreign_{unit}")], e[&format!("own_{unit}")]);
            assert!((part - others / (others + own)).abs() < 1e-9, "{sentence} {e:?}");
            assert!(*part <= e["foreign_share"], "{e:?}");
        }
    }
    let (sentence, e) = figures(&Fixture { foreign_ios: 9_000, ..large() }.record());
    assert!(!e.contains_key("foreign_ios_share") && !sentence.contains("requests"), "{sentence} {e:?}");
}

#[test]
fn others_are_a_note_below_a_reached_limit_with_headroom() {
    let limited = |riops: &str, busy: &str| {
        let mut record = Fixture { foreign_ios: 9_000, ..Fixture::honest() }.record();
        let text = format!("/c/io.max: 254:0 rbps=max wbps=max riops={riops} wiops=max");
        record.header.hosts[0].facts.insert(model::evidence::LIMITS.into(), Ok(text));
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
            let mut fields: Vec<&str> = text.split_ascii_whitespace().collect();
            fields[9] = if snapshot.moment == model::evidence::Moment::Stop { busy } else { "0" };
            *text = fields.join(" ");
        }
        CHECK.severity(&record)
    };
    assert_eq!(limited("10000", "300"), Some(Severity::Note));
    assert_eq!(
        limited("10000", "1100"),
        Some(Severity::Biased),
        "the device may have been busy all the time"
    );
    assert_eq!(limited("50000", "300"), Some(Severity::Void), "the limit was not reached");
}
