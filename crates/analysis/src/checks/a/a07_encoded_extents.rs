//! A07: files that the file system stores compressed or encrypted. Decides by the extent map (FIEMAP) at the
//! start of each run and, for writes, after its final sync.

use crate::checks::prelude::*;

/// Share above which the bytes on the device are no longer those of the file.
pub(crate) const ENCODED_ABOVE: Share = Share(0.01);

pub(super) const CHECK: Check = Check {
    id: CheckId::A07,
    name: "ENCODED_EXTENTS",
    belief: "the bytes on the disk are the bytes of the file",
    reads: "The extents of the file at the start of each run and after its final sync (FIEMAP): those marked \
            as encoded or encrypted. Also the bytes that fathom issued and the bytes that the device moved.",
    formula: formula!(
        "Bytes in such extents / bytes of the file > {ENCODED_ABOVE}. A smaller share changes no rate by more \
         than the usual variation."
    ),
    provoke: "On btrfs: `btrfs property set DIR compression zstd`, then `fathom run --rw randwrite \
              --compress 50 --cache buffered DIR`.",
    fix: "Measure in a directory without compression and encryption (`btrfs property set DIR compression \
          none`, `chattr -c`).",
    accept: "Accept it if your real data are stored like this and compress as well as the test data \
             (--compress).",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { encoded_share: 1.0, ..crate::fixture::Fixture::honest() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let part = encoded_share(case)?;
    let issued = case.issued_total().bytes;
    let mut numbers = evidence([("encoded_share", part), ("issued_bytes", issued as f64)]);
    if part <= ENCODED_ABOVE {
        let sentence = if part > 0.0 {
            "Almost none of the file is stored compressed or encrypted."
        } else {
            "The file is stored neither compressed nor encrypted."
        };
        return holds(sentence, numbers);
    }
    let mut sentence =
        format!("{} of the file is stored compressed or encrypted, which costs CPU time.", show_share(part));
    if let Ok(device) = case.device() {
        let bytes = device.total().bytes;
        sentence +=
            &format!(" fathom issued {}, and the disk moved {}.", show_bytes(issued), show_bytes(bytes));
        numbers.insert("device_bytes".into(), bytes as f64);
    }
    Detail::new(Severity::Biased, sentence, numbers).found()
}

/// Returns the largest share of encoded bytes before or after any run. Writes may be encoded only afterwards.
fn encoded_share(case: &Case) -> Known<f64> {
    let mut all = case.extents()?;
    if case.does(Kind::Write) {
        all.extend(case.extents_over_runs()?.into_iter().map(|(_, after)| after));
    }
    let encoded_share_of = |e: &Extents| share(e.encoded_bytes as f64, e.span_bytes as f64);
    Ok(all.iter().map(encoded_share_of).fold(0.0, f64::max))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn more_than_one_percent_biases_and_names_the_bytes() {
    let at = |encoded_share| CHECK.answer(&Fixture { encoded_share, ..Fixture::honest() }.record());
    assert!(matches!(at(0.01), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = at(0.02) else { panic!("silent") };
    assert!(f.sentence.contains("the disk moved") && f.severity == Severity::Biased, "{}", f.sentence);
}

#[test]
fn writes_are_checked_after_the_final_sync() {
    use model::evidence::Moment;
    let late = super::extents(&Fixture::honest_write(), |moment, e| {
        if moment == Moment::Synced {
            e.encoded_bytes = e.span_bytes;
        }
    });
    assert_eq!(CHECK.severity(&late), Some(Severity::Biased));
    let mut unseen = Fixture::honest_write().record();
    unseen.runs[0].evidence.retain(|s| s.moment != Moment::Synced);
    assert!(CHECK.answer(&unseen).is_err());
}
