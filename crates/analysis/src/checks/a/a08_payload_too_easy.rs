//! A08: written data that storage could compress or deduplicate. Compares the measured compressibility and
//! duplicates of the payload with limits, and checks whether a layer below is known to compress.

use crate::checks::prelude::*;
use model::job::Data;
use model::record::Written;

/// Percent that a compressor may save. Random data save nothing, and no device would show a smaller share.
const COMPRESS_ABOVE: f64 = 10.0;
/// Percent of the 4096 measured blocks that may be copies. No device would show a smaller share.
const DEDUP_ABOVE: f64 = 5.0;
/// Percent saved at or above which the storage keeps almost nothing: zeros, or one block repeated.
const NOTHING_LEFT: f64 = 95.0;
/// Percentage points by which the measured share may exceed the requested one. The measurement samples 4096
/// blocks.
const AS_ASKED: f64 = 3.0;
/// File systems that can compress with a mount option.
const COMPRESS_BY_OPTION: &[&str] = &["btrfs", "bcachefs", "f2fs", "zfs", "ubifs"];

pub(super) const CHECK: Check = Check {
    id: CheckId::A08,
    name: "PAYLOAD_TOO_EASY",
    belief: "the content of the data does not matter to the storage",
    reads: "The written data, generated again after the run: 4096 blocks of 4 KiB, measured with an LZ \
            compressor, and how many of them are copies. Also the options and attributes of the file system \
            and the kind of device.",
    formula: formula!(
        "Biased if a compressor saves more than {COMPRESS_ABOVE} % or more than {DEDUP_ABOVE} % of the \
         blocks are copies, since no drive reports whether it compresses. A note if both are at most \
         {AS_ASKED} percentage points above the shares requested with --compress and --dedup. Void if \
         {NOTHING_LEFT} % or more can be saved and the storage is known to compress: then almost nothing was \
         stored."
    ),
    provoke: "`fathom run --rw randwrite --zeros DIR`; for the void finding, DIR on zram or on btrfs mounted \
              with compress-force.",
    fix: "Omit --zeros and --data, since fathom's own data are unique and do not compress. Or use --compress \
          and --dedup to imitate your data.",
    accept: "Accept it if your data are as compressible.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| written(&crate::fixture::Fixture::honest_write(), Data::Zeros, [100.0, 100.0])),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest_write().record();
        record.runs.iter_mut().for_each(|r| r.end.as_mut().unwrap().streams[0].data = None);
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    // Plain memory stores every byte as it is. Compressed memory (zram) does not.
    let plain_memory = case.ram().is_some() && !compresses(case);
    if !case.does(Kind::Write) || !case.has_storage() || plain_memory {
        return Ok(Answer::DoesNotApply);
    }
    let data: Option<Vec<Written>> = case.runs.iter().map(|r| r.stream.data).collect();
    let data = data.filter(|d| !d.is_empty()).ok_or("the content of the written data was not measured")?;
    let compress = data.iter().map(|d| d.compress_percent).fold(0.0, f64::max);
    let dedup = data.iter().map(|d| d.dedup_percent).fold(0.0, f64::max);
    let numbers = evidence([("compress_percent", compress), ("dedup_percent", dedup)]);
    if compress <= COMPRESS_ABOVE && dedup <= DEDUP_ABOVE {
        return holds("The written data can be neither compressed nor deduplicated.", numbers);
    }
    let almost_nothing_stored = compress.max(dedup) >= NOTHING_LEFT;
    let (severity, consequence) = if almost_nothing_stored && compresses(case) {
        (Severity::Void, "and this storage compresses: almost nothing was stored")
    } else if as_asked(&case.stream.data, compress, dedup) {
        (Severity::Note, "as requested; storage that compresses or deduplicates is faster with such data")
    } else {
        (Severity::Biased, "so storage that compresses or deduplicates looks faster than it is")
    };
    finding!(
        severity,
        numbers,
        "A compressor saves {} of the written data, and {} of the blocks are copies, {consequence}.",
        show_share(compress / 100.0),
        show_share(dedup / 100.0)
    )
}

/// Whether the user requested these shares and the data are no easier than requested.
fn as_asked(data: &Data, compress: f64, dedup: f64) -> bool {
    let Data::Random { compress_percent, dedup_percent, .. } = data else { return false };
    compress <= f64::from(*compress_percent) + AS_ASKED && dedup <= f64::from(*dedup_percent) + AS_ASKED
}

/// Whether a layer below the target is known to compress.
fn compresses(case: &Case) -> bool {
    let by_file_system = |place: &Place| {
        place.file_system.as_ref().is_some_and(|fs| {
            let able = COMPRESS_BY_OPTION.contains(&fs.kind.as_str());
            let option =
                fs.options.split([',', ' ']).any(|o| o.starts_with("compress") && !o.ends_with("=no"));
            able && (option || fs.kind == "zfs" || fs.attributes.iter().any(|a| a == "compressed"))
        })
    };
    case.places().any(|p| p.layers.iter().any(|l| l.kind == LayerKind::Zram) || by_file_system(p))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn written(
    fixture: &Fixture,
    data: Data,
    [compress_percent, dedup_percent]: [f64; 2],
) -> model::record::Record {
    let mut record = fixture.record();
    record.header.plan.jobs[0].phases[0].streams[0].data = data;
    for run in &mut record.runs {
        run.end.as_mut().unwrap().streams[0].data = Some(Written { compress_percent, dedup_percent });
    }
    record
}

#[test]
fn small_shares_are_accepted_and_zeros_bias_or_void() {
    let own = || Data::default();
    let at = |data, shares| CHECK.severity(&written(&Fixture::honest_write(), data, shares));
    assert_eq!(at(own(), [10.0, 5.0]), None);
    assert_eq!(at(own(), [10.5, 0.0]), Some(Severity::Biased));
    assert_eq!(at(Data::File("/f".into()), [0.0, 5.5]), Some(Severity::Biased));
    assert_eq!(at(Data::Zeros, [100.0, 100.0]), Some(Severity::Biased));
    let btrfs = Fixture { kind: "btrfs", options: "rw,compress-force=zstd:3", ..Fixture::honest_write() };
    let record = written(&btrfs, Data::Zeros, [100.0, 100.0]);
    assert_eq!(CHECK.severity(&record), Some(Severity::Void));
}

#[test]
fn requested_shares_are_a_note_and_easier_data_bias() {
    let requested = || Data::Random {
        compress_percent: 50,
        dedup_percent: 0,
        dedup_set_bytes: None,
        dedup_shared: false,
    };
    let at = |shares| CHECK.severity(&written(&Fixture::honest_write(), requested(), shares));
    assert_eq!(at([51.0, 1.0]), Some(Severity::Note));
    assert_eq!(at([60.0, 1.0]), Some(Severity::Biased));
}

#[test]
fn plain_memory_is_not_checked_and_zeros_on_zram_are_void() {
    let tmpfs =
        written(&Fixture { ram: Some("tmpfs"), ..Fixture::honest_write() }, Data::Zeros, [100.0, 100.0]);
    assert_eq!(CHECK.answer(&tmpfs), Ok(Answer::DoesNotApply));
    let mut zram =
        written(&Fixture { ram: Some("zram0"), ..Fixture::honest_write() }, Data::Zeros, [100.0, 100.0]);
    zram.header.hosts[0].places[0].layers[0].kind = LayerKind::Zram;
    assert_eq!(CHECK.severity(&zram), Some(Severity::Void));
}
