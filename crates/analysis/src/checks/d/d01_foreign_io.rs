//! D01: traffic of others on the disk during the runs.
//!
//! For: what the shared disk did beyond what the kernel charged to us, or beyond what we issued. Not for: neighbours
//! below a virtual disk (D18). Journal and metadata of our own writes are charged to nobody or to the root group, so on
//! write jobs only what exceeds a stated amplification counts.

use crate::case::{Amount, Case, share};
use crate::checks::{Answer, Check, Found, Page, evidence};
use model::Known;
use model::check_id::CheckId;
use model::evidence::BlockFlow;
use model::finding::Severity;
use model::job::Kind;
use model::units::{show_bytes, show_share};

/// Share of the traffic from which it moves the number visibly.
const BIASED_ABOVE: f64 = 0.05;
/// Share from which the number is about the neighbours.
const VOID_ABOVE: f64 = 0.30;
/// Requests per run that are never held against anybody: a journal commit, our own session file, the odd log line.
const FLOOR_IOS: u64 = 48;
/// Bytes per run of the same.
const FLOOR_BYTES: u64 = 1 << 20;
/// Largest operation whose requests are comparable one to one; larger ones are split by the device's limits.
const COUNTED_TO_BYTES: u32 = 64 << 10;
/// Device writes per byte written that ext4 and xfs may need for inodes and journal.
const AMPLIFICATION: f64 = 1.5;
/// File systems whose own writes stay within that.
const MODEST: &[&str] = &["ext4", "ext3", "ext2", "xfs", "vfat", "exfat", "f2fs", "block device"];

pub(super) const CHECK: Check = Check {
    id: CheckId::D01,
    name: "FOREIGN_IO",
    belief: "nobody else used the disk",
    page: Page {
        reads: "`/sys/block/*/stat` of the whole disk at the start and stop of each run; the charges to fathom's own cgroup \
                (`blkio.throttle.io_service_bytes` and `io_serviced`, or `io.stat`); what fathom issued.",
        formula: "Requests and bytes of the disk beyond those charged to fathom (or issued by it, where nothing was charged), as a \
                  share of the larger of what the disk did and what was issued: above 5 % biased, above 30 % void. Per run 48 \
                  requests and 1 MiB are held against nobody: a commit, a log line. Writes may be multiplied by 1.5 for journal \
                  and inodes; synchronous writes and copy-on-write file systems without bound, so there only reads are judged.",
        provoke: "dd if=/dev/vda of=/dev/null iflag=direct bs=1M & fathom run --rw randread .",
        repair: "Stop what else uses the disk (`iotop -o`, `pidstat -d 1`), and measure again. Accept it with `--accept D01` where \
                 the neighbour belongs to what you want to measure.",
    },
    ask: look,
    #[cfg(test)]
    fires: Some(|| crate::forge::Forge { foreign_ios: 9_000, ..crate::forge::Forge::honest() }.record()),
    #[cfg(test)]
    blind: || crate::forge::Forge { stat_unreadable: true, ..crate::forge::Forge::honest() }.record(),
};

/// Whether it finds somebody.
pub(super) fn fires(case: &Case) -> bool {
    matches!(look(case), Ok(Answer::Finding(_)))
}

/// What was ours on the disk, and how that is known.
struct Ours {
    read: Amount,
    write: Amount,
    inferred: bool,
}

fn look(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let Others { read, write, total, inferred } = others(case)?;
    let runs = case.runs.len() as u64;
    let foreign = read.plus(write);
    // Where the page cache answered, the device did next to nothing and any neighbour is most of that; what counts is how
    // much there was beside what was measured.
    let issued = case.issued_total();
    let of_bytes = floored(foreign.bytes, FLOOR_BYTES.saturating_mul(runs), total.bytes.max(issued.bytes));
    let of_ios = if comparable(case) {
        floored(foreign.ops, FLOOR_IOS.saturating_mul(runs), total.ios.max(issued.ops))
    } else {
        0.0
    };
    let worst = of_bytes.max(of_ios);
    let numbers = evidence([
        ("device_bytes", total.bytes as f64),
        ("device_ios", total.ios as f64),
        ("foreign_bytes", foreign.bytes as f64),
        ("foreign_ios", foreign.ops as f64),
        ("foreign_share", worst),
    ]);
    let severity = match worst {
        s if s > VOID_ABOVE => Severity::Void,
        s if s > BIASED_ABOVE => Severity::Biased,
        _ if inferred => {
            return Ok(Answer::Holds(
                "The disk did no more than fathom issued, so nobody else used it (inferred).",
                numbers,
            ));
        }
        _ => return Ok(Answer::Holds("Nobody else used the disk.", numbers)),
    };
    let what = if of_ios > of_bytes { "requests" } else { "traffic" };
    let how = if inferred { " (inferred from what fathom issued)" } else { "" };
    Ok(Answer::Finding(Found {
        severity,
        sentence: format!(
            "{} of the device's {what} during the runs was not fathom's{how}: {} of {}.",
            show_share(worst),
            show_bytes(foreign.bytes),
            show_bytes(total.bytes)
        ),
        cure: "Stop what else uses the disk (iotop, pidstat -d), and measure again.".into(),
        evidence: numbers,
        renames: None,
    }))
}

/// What others did on the disk in all runs of a case together, and what the disk did in all.
pub(crate) struct Others {
    pub(crate) read: Amount,
    pub(crate) write: Amount,
    total: BlockFlow,
    inferred: bool,
}

/// What others did on the shared disks.
///
/// # Errors
/// Why the disks were not counted, or what is ours cannot be told from what is theirs.
pub(crate) fn others(case: &Case) -> Known<Others> {
    let device = case.counted(&case.shared()?)?;
    let ours = ours(case)?;
    Ok(Others {
        read: beyond(device.read, ours.read),
        write: foreign_writes(case, device.write, ours.write),
        total: device.total(),
        inferred: ours.inferred,
    })
}

/// Whether a request of ours is one of the device's, so that those of others can be counted.
pub(crate) fn comparable(case: &Case) -> bool {
    case.stream.access.largest_bytes() <= COUNTED_TO_BYTES
}

/// Whether the file systems write no more of their own than is stated here.
pub(crate) fn is_modest(case: &Case) -> bool {
    case.places().all(|p| MODEST.contains(&p.kind()))
}

fn ours(case: &Case) -> Known<Ours> {
    let issued = (case.issued(Kind::Read), case.issued(Kind::Write));
    match case.own() {
        // Writeback of our pages is charged to the root group in v1, hence the larger of the two.
        Ok(own) => Ok(Ours {
            read: Amount { ops: own.ios[0], bytes: own.bytes[0] },
            write: Amount { ops: own.ios[1].max(issued.1.ops), bytes: own.bytes[1].max(issued.1.bytes) },
            inferred: false,
        }),
        Err(_) if case.stream.cache.is_direct() => {
            Ok(Ours { read: issued.0, write: issued.1, inferred: true })
        }
        Err(why) => Err(format!("buffered I/O cannot be told from that of others: {why}")),
    }
}

/// Writes beyond what ours explain. Synchronous writes and copy-on-write file systems multiply without a bound that
/// could be stated, so there only reads are judged.
fn foreign_writes(case: &Case, device: BlockFlow, ours: Amount) -> Amount {
    if !case.does(Kind::Write) {
        return beyond(device, ours);
    }
    if case.stream.cache.is_sync() || !is_modest(case) {
        return Amount::default();
    }
    let grown = |n: u64| (n as f64 * AMPLIFICATION) as u64;
    beyond(device, Amount { ops: grown(ours.ops), bytes: grown(ours.bytes) })
}

fn beyond(device: BlockFlow, ours: Amount) -> Amount {
    Amount { ops: device.ios.saturating_sub(ours.ops), bytes: device.bytes.saturating_sub(ours.bytes) }
}

/// A part of a whole, none where the part is a handful.
fn floored(part: u64, floor: u64, whole: u64) -> f64 {
    if part <= floor { 0.0 } else { share(part as f64, whole as f64) }
}

#[cfg(test)]
use crate::forge::Forge;

#[cfg(test)]
fn at(foreign_ios: u64) -> Option<Severity> {
    crate::checks::severity(&CHECK, &Forge { foreign_ios, ..Forge::honest() }.record())
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
    let without = || Forge { cgroup: false, ..Forge::honest() };
    let Ok(Answer::Finding(f)) =
        crate::checks::ask_one(&CHECK, &Forge { foreign_ios: 9_000, ..without() }.record())
    else {
        panic!("silent")
    };
    assert!(f.sentence.contains("inferred"));
    assert!(matches!(crate::checks::ask_one(&CHECK, &without().record()), Ok(Answer::Holds(..))));
    let buffered = Forge { cache: model::job::Cache::Buffered, ..without() };
    assert!(crate::checks::ask_one(&CHECK, &buffered.record()).is_err());
}

#[test]
fn a_cgroup_that_does_not_count_is_no_witness() {
    let idle = Forge { cgroup_counts_nothing: true, ..Forge::honest() };
    let Ok(Answer::Holds(sentence, _)) = crate::checks::ask_one(&CHECK, &idle.record()) else {
        panic!("fires")
    };
    assert!(sentence.contains("inferred"));
}

#[test]
fn the_journal_of_our_own_writes_is_not_foreign() {
    let journal = Forge { foreign_ios: 4_000, ..Forge::honest_write() };
    assert_eq!(crate::checks::severity(&CHECK, &journal.record()), None);
    let others = Forge { foreign_ios: 30_000, ..Forge::honest_write() };
    assert_eq!(crate::checks::severity(&CHECK, &others.record()), Some(Severity::Void));
}
