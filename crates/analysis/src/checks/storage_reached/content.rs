//! Whether the content of the data makes the work too easy (A05, A08).
//!
//! A05 counts the zero blocks among single reads made before the runs, and subtracts the blocks
//! that earlier phases of the job may have overwritten. A08 compares the measured compressibility
//! and duplicates of written data with limits, and checks whether a layer below is known to
//! compress.

use crate::checks::prelude::*;
use model::job::{Data, Sharing};
use model::record::Written;

/// Above this share of zero blocks, the rate is biased. Databases and virtual disks contain some empty blocks.
const ZEROS_BIASED_ABOVE: Share = Share(0.05);
/// At this share of zero blocks or above, the result is void.
const ZEROS_VOID_FROM: Share = Share(0.5);
/// Fewer sampled blocks than this give no useful share: one block in sixteen is already 6 %.
const FEWEST_BLOCKS: u64 = 16;

pub(super) const ZERO_DATA: Check = Check {
    id: CheckId::A05,
    name: "ZERO_DATA",
    belief: "the blocks that were read hold data",
    reads: "64 single direct reads at random places of the measured region of each target, made before the \
            first run and outside every measured window. Each block is checked completely.",
    formula: formula!(
        "Zero share = sampled blocks that hold only zeros / sampled blocks. If the targets have weights, each \
         block counts with the weight of its target.\n\
         - Invalid if the zero share is {ZEROS_VOID_FROM} or more and the storage can answer zeros without \
         its medium: a block device, an SSD, a virtual disk or an unknown disk. A file on a hard disk is \
         exempt, because a hard disk reads written zeros like any other data.\n\
         - Biased if the zero share is above {ZEROS_BIASED_ABOVE}. Real files have a few empty blocks.\n\
         - Biased, instead of invalid, if the zeros are less than {ZEROS_VOID_FROM} of all targets. \
         Targets that could not be sampled count as data.\n\
         - Not checked with fewer than {FEWEST_BLOCKS} blocks.\n\
         - The blocks are read before the first phase. Earlier phases of the job may then fill a part of \
         the region with other data. This part is subtracted from the zero share, as if these phases wrote \
         no block twice; at most the bytes that they can reach are subtracted. Not checked if at most {ZEROS_BIASED_ABOVE} is left.\n\
         - Not checked, instead of holds, if the job itself trims the region or has written zeros to it.\n\
         - Does not apply if A04 found holes."
    ),
    provoke: "`blkdiscard /dev/sdX` and `fathom run --rw randread /dev/sdX` (on a disk that holds nothing \
              you need), or `dd if=/dev/zero of=FILE bs=1M count=256` and `fathom run --rw randread FILE`.",
    fix: "Name a directory and let fathom make its own test file: on a mounted device, the directory where it is \
          mounted. Or, if the target is not in use and its contents are worthless, write it once with data that \
          are not zeros: `fathom run --rw write --bs 1m --runs 1 --passes 1 --destroy NAME TARGET`.",
    accept: "Accept it if your real data contain as many zeros. fathom does not measure until you accept a finding \
             that invalidates the result.",
    applies: |case| case.does(Kind::Read) && case.on_device(),
    ask: Ask::Unless(&[CheckId::A04], check_zero_data),
    #[cfg(test)]
    fires: Some(|| with_zeros(&Fixture { role: model::plan::Role::Device, ..Fixture::honest() }, 64)),
    #[cfg(test)]
    blind: || super::with_probe(&Fixture::honest(), |p| *p = Err("EINVAL".into())),
};

fn check_zero_data(case: &Case) -> Known<Answer> {
    let (probes, completeness) = split_known(case.probes());
    let is_weighted = matches!(case.stream.sharing, Sharing::Weighted(_));
    let shares: BTreeMap<usize, f64> =
        case.stream.targets.iter().copied().zip(case.shares_of_targets()).collect();
    let (mut blocks, mut targets) = (0_u64, Vec::new());
    // The zeros and all blocks, each block with the weight of its target.
    let (mut zeros, mut all) = (0.0, 0.0);
    for (target, probe) in probes {
        let sampled = probe.first_ns.len() as u64;
        blocks = blocks.saturating_add(sampled);
        let weight = if is_weighted { shares[&target] / (sampled.max(1) as f64) } else { 1.0 };
        zeros += weight * probe.zero_blocks as f64;
        all += weight * sampled as f64;
        targets.push(target);
    }
    if blocks < FEWEST_BLOCKS {
        completeness?;
        return Err(format!("too few blocks ({blocks}) were read before the runs to judge the data"));
    }
    let part = share(zeros, all);
    let numbers = evidence([("probed_blocks", blocks as f64), ("zero_share", part)]);
    if part <= ZEROS_BIASED_ABOVE {
        completeness?;
        if case.does(Kind::Trim) || earlier_streams(case).any(|(_, stream)| empties(case, stream, &targets)) {
            return not_checked(
                "trims or zeros of this job may have replaced the data that fathom had read before the runs",
            );
        }
        return holds("The blocks that were read hold data.", numbers);
    }
    let written = written_before(case, &targets);
    let remaining = part - written;
    if remaining <= ZEROS_BIASED_ABOVE.0 {
        return not_checked(
            "an earlier phase of the job may have overwritten the zeros that fathom had read",
        );
    }
    // Targets without a sample may hold data.
    let span_of = |targets: &[usize]| targets.iter().map(|at| case.span_bytes_of(*at) as f64).sum::<f64>();
    let sampled_part = match (completeness.is_ok(), is_weighted) {
        (true, _) => 1.0,
        (false, true) => targets.iter().map(|target| shares[target]).sum(),
        (false, false) => share(span_of(&targets), span_of(&case.stream.targets)),
    };
    let is_void = remaining * sampled_part >= ZEROS_VOID_FROM.0 && zeros_are_free(case);
    let unsampled = match case.stream.targets.len() - targets.len() {
        0 => String::new(),
        count => format!(" Not sampled: {count} of {} targets.", case.stream.targets.len()),
    };
    // A lower bound is rounded down.
    let shown = if written > 0.0 { (remaining * 100.0).floor() / 100.0 } else { remaining };
    finding!(
        if is_void { Severity::Invalidates } else { Severity::Biases },
        numbers,
        "{}{} of {} sampled blocks hold only zeros{}: drives, thin volumes and cloud volumes can answer such \
         reads from their map without reading the medium.{unsampled}",
        if written > 0.0 { "At least " } else { "" },
        show_share(shown),
        show_count(blocks as f64),
        if is_weighted { " (each block with the weight of its target)" } else { "" }
    )
}

/// Returns the streams of all earlier phases of the job, each with the index of its phase and its own index there.
fn earlier_streams<'c>(case: &'c Case) -> impl Iterator<Item = ((usize, usize), &'c Stream)> {
    let earlier = case.job.phases.iter().take(case.phase_index).enumerate();
    earlier.flat_map(|(phase, all)| all.streams.iter().enumerate().map(move |(at, one)| ((phase, at), one)))
}

/// Whether a stream trims, or writes zeros to, bytes that the case reads from these targets.
fn empties(case: &Case, stream: &Stream, targets: &[usize]) -> bool {
    let (theirs, own) = (stream.access.region(), case.stream.access.region());
    let overlaps = theirs.start < own.end && own.start < theirs.end;
    let writes_zeros = stream.data == Data::Zeros && stream.access.writes();
    let trims = stream.kinds().any(|kind| kind == Kind::Trim);
    overlaps && (writes_zeros || trims) && stream.targets.iter().any(|target| targets.contains(target))
}

/// Returns the largest share of the read region of these targets that earlier phases of the job can have filled with
/// data. Assumes that these phases wrote each block once, and only to this region of these targets.
fn written_before(case: &Case, targets: &[usize]) -> f64 {
    let own = case.stream.access.region();
    // The bytes of the read region that a stream of an earlier phase can reach.
    let reached_bytes = |stream: &Stream| {
        let region = stream.access.region();
        let common = region.end.min(own.end).saturating_sub(region.start.max(own.start));
        let shared = stream.targets.iter().filter(|target| targets.contains(target));
        shared.map(|target| common.min(case.span_bytes_of(*target)) as f64).sum::<f64>()
    };
    let written = earlier_streams(case).filter(|(_, stream)| stream.data != Data::Zeros).map(
        |((phase, at), stream)| {
            let runs = case.record.runs.iter();
            let runs = runs.filter(|run| run.start.job == case.job_index && run.start.phase == phase);
            let ends =
                runs.flat_map(|run| &run.end).flat_map(|end| &end.streams).filter(|end| end.stream == at);
            let bytes: f64 =
                ends.filter_map(|end| end.issued.get(&Kind::Write)).map(|i| i.bytes as f64).sum();
            bytes.min(reached_bytes(stream))
        },
    );
    let span_bytes = targets.iter().map(|target| case.span_bytes_of(*target) as f64).sum();
    share(written.sum(), span_bytes)
}

/// Whether the storage may answer zeros without reading the medium: from the map of an SSD or of a virtual disk,
/// or after a discard. Assumed if unknown.
fn zeros_are_free(case: &Case) -> bool {
    let spins = |disk: &&Layer| disk.queue_number("rotational") == Ok(1) && !case.is_virtual(disk);
    case.on_block_devices() || !case.lowest_layers().is_ok_and(|disks| disks.iter().all(spins))
}

/// If a compressor can save more than this percentage, the rate is biased. Random data save nothing, and smaller savings make
/// no device noticeably faster.
const COMPRESS_ABOVE: f64 = 10.0;
/// Above this percentage of copies among the 4096 measured blocks, the rate is biased. Fewer copies make no device noticeably
/// faster.
const DEDUP_ABOVE: f64 = 5.0;
/// At this percentage of savings or above, storage that compresses stores almost nothing, as with zeros.
const NOTHING_LEFT: f64 = 95.0;
/// Percentage points by which a measured share may exceed the requested one. The measurement samples 4096 blocks.
const REQUEST_TOLERANCE: f64 = 3.0;
/// File systems that can compress. All but zfs show in a mount option or a file attribute whether they do.
const CAN_COMPRESS: &[&str] = &["btrfs", "bcachefs", "f2fs", "zfs", "ubifs"];

pub(super) const PAYLOAD_TOO_EASY: Check = Check {
    id: CheckId::A08,
    name: "PAYLOAD_TOO_EASY",
    belief: "the content of the data does not matter to the storage",
    reads: "The written data, generated again after the run: 4096 blocks of 4 KiB, measured with an LZ \
            compressor, and how many of them are copies. Also the options and attributes of the file system \
            and the kind of device.",
    formula: formula!(
        "Measures which share of the written data a compressor saves, and which share of the blocks are \
         copies.\n\
         - Invalid if a compressor saves {NOTHING_LEFT} % or more and the storage is known to compress: \
         then almost nothing was stored.\n\
         - Biased if a compressor saves more than {COMPRESS_ABOVE} %, or if more than {DEDUP_ABOVE} % of \
         the blocks are copies. No drive reports whether it compresses.\n\
         - A note, instead of biased, if both are at most {REQUEST_TOLERANCE} percentage points above the \
         shares requested with --compress and --dedup."
    ),
    provoke: "`fathom run --rw randwrite --zeros DIR`. If DIR is on zram, or on btrfs mounted with \
              compress-force, the result is invalid.",
    fix: "Omit --zeros and --data, since fathom's own data are unique and do not compress. Or use --compress \
          and --dedup to imitate your data.",
    accept: "Accept it if your data are as compressible.",
    // Plain memory stores every byte as it is. Compressed memory (zram) does not.
    applies: |case| case.does(Kind::Write) && (case.on_device() || (case.has_storage() && compresses(case))),
    ask: Ask::Alone(check_payload_too_easy),
    #[cfg(test)]
    fires: Some(|| written(&Fixture::honest_write(), Data::Zeros, [100.0, 100.0])),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest_write().record();
        record.runs.iter_mut().for_each(|r| r.end.as_mut().unwrap().streams[0].data = None);
        record
    },
};

fn check_payload_too_easy(case: &Case) -> Known<Answer> {
    let data: Option<Vec<Written>> = case.runs.iter().map(|r| r.stream.data).collect();
    let data = data.filter(|d| !d.is_empty()).ok_or("the content of the written data was not measured")?;
    let compress = data.iter().map(|d| d.compress_percent).fold(0.0, f64::max);
    let dedup = data.iter().map(|d| d.dedup_percent).fold(0.0, f64::max);
    let numbers = evidence([("compress_percent", compress), ("dedup_percent", dedup)]);
    let savings = format!(
        "A compressor saves {} of the written data, and {} of the blocks are copies",
        show_share(compress / 100.0),
        show_share(dedup / 100.0)
    );
    if compress <= COMPRESS_ABOVE && dedup <= DEDUP_ABOVE {
        let sentence = if compress.max(dedup) > 0.0 {
            savings + ": too little to matter."
        } else {
            "The written data can be neither compressed nor deduplicated.".to_owned()
        };
        return holds(sentence, numbers);
    }
    // No layer is known to deduplicate, so copies alone do not show that little was stored.
    let (severity, consequence) = if compress >= NOTHING_LEFT && compresses(case) {
        (Severity::Invalidates, "and this storage compresses: almost nothing was stored")
    } else if is_as_requested(&case.stream.data, compress, dedup) {
        (Severity::Note, "as requested; storage that compresses or deduplicates is faster with such data")
    } else {
        (Severity::Biases, "so storage that compresses or deduplicates looks faster than it is")
    };
    finding!(severity, numbers, "{savings}, {consequence}.")
}

/// Whether the measured shares exceed the requested ones by at most [`REQUEST_TOLERANCE`]. False
/// for zeros and for data from a file.
fn is_as_requested(data: &Data, compress: f64, dedup: f64) -> bool {
    let Data::Random { compress_percent, dedup_percent, .. } = data else { return false };
    compress <= f64::from(*compress_percent) + REQUEST_TOLERANCE
        && dedup <= f64::from(*dedup_percent) + REQUEST_TOLERANCE
}

/// Whether a layer below the target is known to compress.
fn compresses(case: &Case) -> bool {
    let by_file_system = |place: &Place| {
        place.file_system.as_ref().is_some_and(|fs| {
            let able = CAN_COMPRESS.contains(&fs.kind.as_str());
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
use model::record::StreamEnd;

#[cfg(test)]
fn with_zeros(fixture: &Fixture, zeros: u64) -> model::record::Record {
    super::with_probe(fixture, |p| p.as_mut().unwrap().zero_blocks = zeros)
}

#[test]
fn the_share_of_zeros_decides_between_silent_biased_and_void() {
    let at = |zeros| ZERO_DATA.severity(&with_zeros(&Fixture::honest(), zeros));
    assert_eq!(at(3), None);
    assert_eq!(at(4), Some(Severity::Biases));
    assert_eq!(at(31), Some(Severity::Biases));
    assert_eq!(at(32), Some(Severity::Invalidates));
}

#[test]
fn zeros_on_a_spinning_disk_only_bias() {
    let mut record = with_zeros(&Fixture::honest(), 64);
    for layer in &mut record.header.hosts[0].places[0].layers {
        layer.queue.insert("rotational".into(), "1\n".into());
    }
    assert_eq!(ZERO_DATA.severity(&record), Some(Severity::Biases));
    record.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(ZERO_DATA.severity(&record), Some(Severity::Invalidates));
}

#[test]
fn zeros_invalidate_only_if_the_targets_without_a_sample_cannot_outweigh_them() {
    let next_to_unsampled = |targets: usize| {
        let mut record = with_zeros(&Fixture::honest(), 64);
        let plan = &mut record.header.plan;
        plan.targets = vec![plan.targets[0].clone(); targets];
        plan.jobs[0].phases[0].streams[0].targets = (0..targets).collect();
        let place = record.header.hosts[0].places[0].clone();
        record.header.hosts[0].places = vec![place; targets];
        let Ok(Answer::Finding(found)) = ZERO_DATA.answer(&record) else { panic!("silent") };
        (found.severity, found.sentence)
    };
    assert_eq!(next_to_unsampled(2).0, Severity::Invalidates, "half of all is zeros");
    let (severity, sentence) = next_to_unsampled(8);
    assert_eq!(severity, Severity::Biases);
    assert!(sentence.contains("Not sampled: 7 of 8 targets."), "{sentence}");
}

#[test]
fn few_blocks_are_not_checked_and_holes_are_left_to_a04() {
    let few = super::with_probe(&Fixture::honest(), |p| p.as_mut().unwrap().first_ns.truncate(15));
    assert!(ZERO_DATA.answer(&few).is_err_and(|why| why.contains("too few blocks (15)")));
    let holes = with_zeros(&Fixture { hole_share: 1.0, ..Fixture::honest() }, 64);
    assert_eq!(ZERO_DATA.answer(&holes), Ok(Answer::DoesNotApply));
}

#[test]
fn blocks_count_with_the_weights_of_their_targets() {
    let at = |weights: Vec<u32>| {
        let mut record = with_zeros(&Fixture::honest(), 0);
        let plan = &mut record.header.plan;
        plan.targets = vec![plan.targets[0].clone(); weights.len()];
        let stream = &mut plan.jobs[0].phases[0].streams[0];
        (stream.targets, stream.sharing) = ((0..weights.len()).collect(), Sharing::Weighted(weights.clone()));
        let places = &mut record.header.hosts[0].places;
        *places = vec![places[0].clone(); weights.len()];
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut record.evidence) {
            snapshot.targets = vec![snapshot.targets[0].clone(); weights.len()];
            if let Some(Ok(probe)) = &mut snapshot.targets[0].probe {
                probe.zero_blocks = 64;
            }
        }
        ZERO_DATA.severity(&record)
    };
    // One of 25 targets has only zeros.
    let weights = |zeros: u32| std::iter::once(zeros).chain([100; 24]).collect::<Vec<u32>>();
    assert_eq!(at(weights(100)), None);
    assert_eq!(at(weights(500)), Some(Severity::Biases));
    assert_eq!(at(weights(1_000_000)), Some(Severity::Invalidates));
}

#[test]
fn writes_of_earlier_phases_to_other_bytes_are_not_subtracted() {
    let writing = Fixture::honest_write().record();
    let sentence = |first_written: u64| {
        let mut record = with_zeros(&Fixture::honest(), 64);
        let mut writer = writing.header.plan.jobs[0].phases[0].clone();
        writer.streams[0].access.offset_bytes = first_written;
        record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 8 << 20;
        record.header.plan.jobs[0].phases.insert(0, writer);
        record.runs.iter_mut().for_each(|run| run.start.phase = 1);
        record.runs.push(writing.runs[0].clone());
        let reads = crate::case::cases(&record).pop().unwrap();
        let answers = crate::findings::ask_all(&reads);
        match answers.into_iter().find(|(check, _)| check.id == ZERO_DATA.id).unwrap().1 {
            Ok(Answer::Finding(f)) => f.sentence,
            other => format!("{other:?}"),
        }
    };
    assert!(sentence(8 << 20).starts_with("100 % of"), "{}", sentence(8 << 20));
    assert!(sentence((8 << 20) - 4096).starts_with("At least 99 % of"), "{}", sentence((8 << 20) - 4096));
    assert!(sentence(0).contains("an earlier phase"), "{}", sentence(0));
}

#[test]
fn zeros_that_the_job_wrote_or_trimmed_itself_hide_behind_no_probe() {
    let writing = Fixture::honest_write().record();
    let after = |change: &dyn Fn(&mut Stream)| {
        let mut record = with_zeros(&Fixture::honest(), 0);
        let mut phase = writing.header.plan.jobs[0].phases[0].clone();
        change(&mut phase.streams[0]);
        record.header.plan.jobs[0].phases.insert(0, phase);
        record.runs.iter_mut().for_each(|run| run.start.phase = 1);
        let reads = crate::case::cases(&record).pop().unwrap();
        let answers = crate::findings::ask_all(&reads);
        answers.into_iter().find(|(check, _)| check.id == ZERO_DATA.id).unwrap().1
    };
    assert!(matches!(after(&|_| ()), Ok(Answer::Holds(..))), "random data");
    assert!(matches!(after(&|s| (s.data, s.targets) = (Data::Zeros, vec![7])), Ok(Answer::Holds(..))));
    assert!(after(&|s| s.data = Data::Zeros).is_err_and(|why| why.contains("trims or zeros")));
    let trims = after(&|s| s.access.lines[0].mix = model::job::Mix::from_percents(0, 100));
    assert!(trims.is_err_and(|why| why.contains("trims or zeros")));
}

#[test]
fn zeros_that_earlier_phases_may_have_overwritten_are_subtracted() {
    let writing = Fixture::honest_write().record();
    let writer_span = std::cell::Cell::new(u64::MAX);
    // The runs may list the streams of a phase in another order than the plan.
    let after_phase_with_idle_stream = |target: usize, part: f64, idle_stream: Option<usize>| {
        let mut record = with_zeros(&Fixture::honest(), 64);
        let mut writer = writing.header.plan.jobs[0].phases[0].clone();
        writer.streams[0].targets = vec![target];
        writer.streams[0].access.span_bytes = writer_span.get();
        record.header.plan.jobs[0].phases.insert(0, writer);
        record.runs.iter_mut().for_each(|run| run.start.phase = 1);
        let access = &record.header.plan.jobs[0].phases[1].streams[0].access;
        let region = access.span_bytes.min(record.runs[0].start.target_bytes[0] - access.offset_bytes);
        let mut run = writing.runs[0].clone();
        let issued = run.end.as_mut().and_then(|end| end.streams[0].issued.get_mut(&Kind::Write)).unwrap();
        issued.bytes = (region as f64 * part) as u64;
        if let Some(target) = idle_stream {
            let streams = &mut record.header.plan.jobs[0].phases[0].streams;
            streams.push(model::job::Stream { targets: vec![target], ..streams[0].clone() });
            let ends = &mut run.end.as_mut().unwrap().streams;
            ends.insert(0, StreamEnd { stream: 1, issued: BTreeMap::new(), ..ends[0].clone() });
        }
        record.runs.push(run);
        let reads = crate::case::cases(&record).pop().unwrap_or_else(|| panic!("no case of {target}"));
        let answers = crate::findings::ask_all(&reads);
        answers.into_iter().find(|(check, _)| check.id == ZERO_DATA.id).unwrap().1
    };
    let after_phase = |target, part| after_phase_with_idle_stream(target, part, None);
    for part in [0.96, 1.0, 7.0] {
        assert!(after_phase(0, part).is_err_and(|why| why.contains("an earlier phase")), "{part}");
    }
    let severity = |answer| match answer {
        Ok(Answer::Finding(f)) => Some((f.severity, f.sentence.starts_with("At least"))),
        _ => None,
    };
    assert_eq!(severity(after_phase(0, 0.25)), Some((Severity::Invalidates, true)));
    assert_eq!(severity(after_phase(0, 0.75)), Some((Severity::Biases, true)));
    assert_eq!(severity(after_phase(7, 1.0)), Some((Severity::Invalidates, false)));
    assert_eq!(severity(after_phase_with_idle_stream(0, 0.25, Some(7))), Some((Severity::Invalidates, true)));
    // The earlier phase writes a sixteenth of the region again and again.
    writer_span.set(64 << 20);
    assert_eq!(severity(after_phase(0, 7.0)), Some((Severity::Invalidates, true)));
    writer_span.set(u64::MAX);
    assert_eq!(severity(after_phase_with_idle_stream(7, 1.0, Some(0))), Some((Severity::Invalidates, false)));
}

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
    let at = |data, shares| PAYLOAD_TOO_EASY.severity(&written(&Fixture::honest_write(), data, shares));
    assert_eq!(at(own(), [10.0, 5.0]), None);
    let sentence = |shares| PAYLOAD_TOO_EASY.sentence(&written(&Fixture::honest_write(), own(), shares));
    assert!(sentence([0.0, 0.0]).contains("neither compressed nor"), "{}", sentence([0.0, 0.0]));
    assert!(sentence([10.0, 0.0]).starts_with("A compressor saves 10 % of"), "{}", sentence([10.0, 0.0]));
    assert!(sentence([0.0, 5.0]).contains("and 5.0 % of the blocks"), "{}", sentence([0.0, 5.0]));
    assert_eq!(at(own(), [10.5, 0.0]), Some(Severity::Biases));
    assert_eq!(at(Data::File("/f".into()), [0.0, 5.5]), Some(Severity::Biases));
    assert_eq!(at(Data::Zeros, [100.0, 100.0]), Some(Severity::Biases));
    let btrfs = Fixture { kind: "btrfs", options: "rw,compress-force=zstd:3", ..Fixture::honest_write() };
    let record = written(&btrfs, Data::Zeros, [100.0, 100.0]);
    assert_eq!(PAYLOAD_TOO_EASY.severity(&record), Some(Severity::Invalidates));
    let copies = written(&btrfs, Data::File("/f".into()), [0.0, 100.0]);
    assert_eq!(PAYLOAD_TOO_EASY.severity(&copies), Some(Severity::Biases), "a compressor stores copies");
}

#[test]
fn requested_shares_are_a_note_and_easier_data_bias() {
    let requested = || Data::Random {
        compress_percent: 50,
        dedup_percent: 0,
        dedup_set_bytes: None,
        dedup_shared: false,
    };
    let at = |shares| PAYLOAD_TOO_EASY.severity(&written(&Fixture::honest_write(), requested(), shares));
    assert_eq!(at([51.0, 1.0]), Some(Severity::Note));
    assert_eq!(at([60.0, 1.0]), Some(Severity::Biases));
}

#[test]
fn plain_memory_does_not_apply_and_zeros_on_zram_are_void() {
    let tmpfs =
        written(&Fixture { ram: Some("tmpfs"), ..Fixture::honest_write() }, Data::Zeros, [100.0, 100.0]);
    assert_eq!(PAYLOAD_TOO_EASY.answer(&tmpfs), Ok(Answer::DoesNotApply));
    let mut zram =
        written(&Fixture { ram: Some("zram0"), ..Fixture::honest_write() }, Data::Zeros, [100.0, 100.0]);
    zram.header.hosts[0].places[0].layers[0].kind = LayerKind::Zram;
    assert_eq!(PAYLOAD_TOO_EASY.severity(&zram), Some(Severity::Invalidates));
}
