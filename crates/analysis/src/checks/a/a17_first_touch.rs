//! A17: blocks whose first read takes a different time than the second. Compares the two lists of direct reads
//! made before the runs with a rank test. Caches below and lazily loaded volumes cause a difference.

use crate::checks::prelude::*;
use crate::figures::traffic::{FLOOR_BYTES, FLOOR_IOS};
use model::evidence::Probe;
use stats::comparison::{Compared, FEWEST, compare};

/// Factor above which the difference is not noise. Other threads on the CPU slow some reads of one list: of 200
/// quiet pairs on a virtual disk, 13 differed by 1.2 with p below 0.01, one by 1.5 (the largest by 1.7), and none
/// by 2. Lazily loaded volumes and caches cause a factor of 3 to 30.
const FACTOR: f64 = 2.0;
/// Largest probability of chance (p) that is accepted.
const CHANCE_BELOW: Share = Share(0.01);

pub(super) const CHECK: Check = Check {
    id: CheckId::A17,
    name: "FIRST_TOUCH",
    belief: "the first read of a block takes as long as later ones",
    reads: "64 single direct reads at random places of each target before the first run: eight blocks, then \
            the same eight again, and so on.",
    formula: formula!(
        "The factor between the first and the second reads is the median over all pairs (Hodges-Lehmann, on \
         logarithms). The probability of chance comes from the Mann-Whitney rank test. Biased if the factor \
         is above {FACTOR} or below 1/{FACTOR} and the probability is below {CHANCE_BELOW}. Smaller factors \
         mostly come from other threads on the CPU: of 200 quiet pairs on a virtual disk the largest was \
         1.7. Fewer than {FEWEST} blocks are not compared. Not checked if the disk did more than \
         {FLOOR_IOS} requests or {bytes} for other processes in that time.",
        bytes = show_bytes(FLOOR_BYTES)
    ),
    provoke: "`fathom run --rw randread /dev/nvme1n1` on a volume that was just restored from a cloud \
              snapshot. Or a loop device with a buffered backing file that was evicted: `losetup \
              --direct-io=off -f --show FILE`.",
    fix: "Read the whole target once first (`fathom run --rw read --bs 1m --ops N TARGET`, or the cloud \
          provider's own initialisation), or measure a span that no cache below can hold.",
    accept: "Accept it if you want to measure first reads.",
    ask: Ask::After(&[CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| with_second_reads(&crate::fixture::Fixture::honest(), 20_000)),
    #[cfg(test)]
    blind: || super::probe(&crate::fixture::Fixture::honest(), |p| *p = Err("EINVAL".into())),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() || earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    let mut worst: Option<(Compared, &Probe)> = None;
    for probe in case.probes()? {
        let both = compare(&probe.first_ns, &probe.again_ns);
        let both =
            both.ok_or_else(|| format!("fewer than {FEWEST} blocks were read twice before the runs"))?;
        if worst.is_none_or(|(w, _)| distance(both) > distance(w)) {
            worst = Some((both, probe));
        }
    }
    let (both, probe) = worst.ok_or("no target was read before the runs")?;
    let (first, again) = (median(&probe.first_ns), median(&probe.again_ns));
    let numbers = evidence([
        ("first_p50_ns", first),
        ("again_p50_ns", again),
        ("again_by_first", both.ratio),
        ("chance", both.p),
    ]);
    if distance(both) <= FACTOR.ln() {
        return holds("The first read of a block took as long as the second.", numbers);
    }
    // A burst by another process slows some reads of one list and not of the other.
    if let Some(others) =
        case.foreign_amount_during_probes().filter(|o| o.ops > FLOOR_IOS || o.bytes > FLOOR_BYTES)
    {
        return Err(format!(
            "other processes made {} requests ({}) on the disk during the sample reads before the runs",
            show_count(others.ops as f64),
            show_bytes(others.bytes)
        ));
    }
    let (factor, why) = if both.ratio < 1.0 {
        (1.0 / both.ratio, "shorter: a layer below caches, or loads blocks only on first access")
    } else {
        (both.ratio, "longer: the storage was busy, or a cache answered the first reads")
    };
    finding!(
        Severity::Biased,
        numbers,
        "The first read of a block took {}, the second {}, {} times {why}.",
        show_ns(first),
        show_ns(again),
        show_rate(factor)
    )
}

/// Returns the absolute logarithm of the factor, or 0 if chance may explain it.
fn distance(both: Compared) -> f64 {
    if both.p < CHANCE_BELOW { both.ratio.ln().abs() } else { 0.0 }
}

fn median(times: &[u64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map_or(0.0, |ns| *ns as f64)
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record whose second reads take about `ns`, and whose first take 80 us.
#[cfg(test)]
fn with_second_reads(fixture: &Fixture, ns: u64) -> model::record::Record {
    super::probe(fixture, |p| {
        for (i, again) in p.as_mut().unwrap().again_ns.iter_mut().enumerate() {
            *again = ns + 10 * (i as u64 % 5);
        }
    })
}

#[test]
fn a_factor_of_two_in_either_direction_biases() {
    let at = |ns| CHECK.severity(&with_second_reads(&Fixture::honest(), ns));
    assert_eq!(at(41_000), None, "1.95 times");
    assert_eq!(at(39_000), Some(Severity::Biased));
    assert_eq!(at(155_000), None);
    assert_eq!(at(165_000), Some(Severity::Biased));
}

#[test]
fn a_burst_by_another_process_is_not_checked() {
    use model::evidence::Moment;
    let with_foreign_reads = |ios: u64| {
        let mut record = with_second_reads(&Fixture::honest(), 20_000);
        let mut idle = record.evidence[0].clone();
        idle.moment = Moment::IdleStart;
        // The disk did no reads before these.
        let text = idle.files["/sys/block/vda/stat"].clone().unwrap();
        let written: Vec<&str> = text.split_ascii_whitespace().skip(4).collect();
        let (requests, sectors) = (128 + ios, (128 + ios) * 8);
        let stat = format!("{requests} 0 {sectors} 40 {}\n", written.join(" "));
        idle.files.insert("/sys/block/vda/stat".into(), Ok(stat));
        record.evidence.push(idle);
        CHECK.answer(&record)
    };
    assert!(matches!(with_foreign_reads(48), Ok(Answer::Finding(_))));
    assert!(with_foreign_reads(49).is_err_and(|why| why.contains("49 requests (196 KiB)")));
}

#[test]
fn a_large_factor_of_few_blocks_may_be_chance() {
    let record_with = |count: usize, slow: usize| {
        super::probe(&Fixture::honest(), move |p| {
            let p = p.as_mut().unwrap();
            p.first_ns = (0..count).map(|i| if i < slow { 900_000 } else { 80_000 }).collect();
            p.again_ns = (0..count).map(|i| 30_000 + i as u64 * 20_000).collect();
        })
    };
    assert_eq!(CHECK.severity(&record_with(8, 5)), None);
    assert!(CHECK.answer(&record_with(7, 7)).is_err_and(|why| why.contains("fewer than 8")));
}
