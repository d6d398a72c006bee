//! A05: reads of blocks that hold only zeros. Counts the zero blocks among the single reads made before the runs,
//! and subtracts the blocks that earlier phases of the job overwrote.

use crate::checks::prelude::*;
use model::job::Data;

/// Share of zeros above which the rate is biased. Databases and virtual disks contain some empty blocks.
const BIASED_ABOVE: Share = Share(0.05);
/// Share of zeros at or above which the result is void.
const VOID_FROM: Share = Share(0.5);
/// Fewest blocks that give a useful share: one in sixteen is 6 %.
const FEWEST_BLOCKS: u64 = 16;

pub(super) const CHECK: Check = Check {
    id: CheckId::A05,
    name: "ZERO_DATA",
    belief: "the blocks that were read hold data",
    reads: "64 single direct reads at random places of each target, made before the first run and outside \
            every measured window. Each block is checked completely.",
    formula: formula!(
        "zero share = blocks that hold only zeros / blocks read. Above {BIASED_ABOVE} the number is biased: \
         real files have a few empty blocks. From {VOID_FROM} on it is void if the storage can answer zeros \
         without its medium: a block device, an SSD or a virtual disk. A hard disk reads written zeros like \
         any other data. Fewer than {FEWEST_BLOCKS} blocks are too few to judge. Data other than zeros that \
         earlier phases of the job wrote to the target are subtracted, as if those phases wrote no block \
         twice."
    ),
    provoke: "`blkdiscard /dev/sdX` and `fathom run --rw randread /dev/sdX` (on a disk that holds nothing \
              you need), or `dd if=/dev/zero of=FILE bs=1M count=256` and `fathom run --rw randread FILE`.",
    fix: "Write the target once with data that are not zeros (`fathom run --rw write --bs 1m --destroy NAME \
          TARGET` over all of it), or name a directory and let fathom make its own test file.",
    accept: "Accept it if your real data contain as many zeros. fathom does not measure until you accept a \
             void finding.",
    ask: Ask::After(&[CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| {
        with_zeros(
            &crate::fixture::Fixture { role: model::plan::Role::Device, ..crate::fixture::Fixture::honest() },
            64,
        )
    }),
    #[cfg(test)]
    blind: || super::probe(&crate::fixture::Fixture::honest(), |p| *p = Err("EINVAL".into())),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() || earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    let (mut blocks, mut zeros) = (0_u64, 0_u64);
    for probe in case.probes()? {
        blocks = blocks.saturating_add(probe.first_ns.len() as u64);
        zeros = zeros.saturating_add(probe.zero_blocks);
    }
    if blocks < FEWEST_BLOCKS {
        return Err(format!("only {blocks} blocks were read before the runs, too few to judge the data"));
    }
    let part = share(zeros as f64, blocks as f64);
    let numbers = evidence([("probed_blocks", blocks as f64), ("zero_share", part)]);
    if part <= BIASED_ABOVE {
        return holds("The blocks that were read hold data.", numbers);
    }
    let written = written_before(case);
    let remaining = part - written;
    if remaining <= BIASED_ABOVE.0 {
        return Err("the zeros were read before an earlier phase of the job wrote to the same target".into());
    }
    finding!(
        if remaining >= VOID_FROM.0 && zeros_are_free(case) { Severity::Void } else { Severity::Biased },
        numbers,
        "{}{} of {} sampled blocks hold only zeros: drives, thin volumes and clouds answer such reads from \
         their map without reading the medium.",
        if written > 0.0 { "At least " } else { "" },
        show_share(remaining),
        show_count(blocks as f64)
    )
}

/// Returns the largest share of the read region that earlier phases of the job can have filled with data. Sums
/// the bytes that they wrote to the same targets and assumes that no block was written twice.
fn written_before(case: &Case) -> f64 {
    let mut bytes = 0_u64;
    for run in case.record.runs.iter().filter(|run| run.start.job == case.at && run.start.phase < case.phase)
    {
        let streams = case.job.phases.get(run.start.phase).map_or(&[][..], |phase| &phase.streams);
        let ends = run.end.iter().flat_map(|end| &end.streams);
        let shares_target =
            |stream: &Stream| stream.targets.iter().any(|target| case.stream.targets.contains(target));
        for (_, end) in
            streams.iter().zip(ends).filter(|(stream, _)| shares_target(stream) && stream.data != Data::Zeros)
        {
            bytes = bytes.saturating_add(end.issued.get(&Kind::Write).map_or(0, |issued| issued.bytes));
        }
    }
    let access = &case.stream.access;
    let region = case.stream.targets.iter().filter_map(|target| {
        let length = case.record.runs.first()?.start.target_bytes.get(*target)?;
        Some(access.span_bytes.min(length.saturating_sub(access.offset_bytes)))
    });
    share(bytes as f64, region.sum::<u64>() as f64)
}

/// Whether the storage may answer zeros without reading the medium: from the map of an SSD or of a virtual disk,
/// or after a discard. Assumed if unknown.
fn zeros_are_free(case: &Case) -> bool {
    let spinning = |leaves: Vec<&model::machine::Layer>| {
        leaves.iter().all(|l| l.queue_number("rotational") == Ok(1) && !case.is_virtual(l))
    };
    case.on_block_devices() || !case.leaves().is_ok_and(spinning)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn with_zeros(fixture: &Fixture, zeros: u64) -> model::record::Record {
    super::probe(fixture, |p| p.as_mut().unwrap().zero_blocks = zeros)
}

#[test]
fn the_share_of_zeros_decides_between_silent_biased_and_void() {
    let at = |zeros| CHECK.severity(&with_zeros(&Fixture::honest(), zeros));
    assert_eq!(at(3), None);
    assert_eq!(at(4), Some(Severity::Biased));
    assert_eq!(at(31), Some(Severity::Biased));
    assert_eq!(at(32), Some(Severity::Void));
}

#[test]
fn zeros_on_a_spinning_disk_only_bias() {
    let mut record = with_zeros(&Fixture::honest(), 64);
    for layer in &mut record.header.hosts[0].places[0].layers {
        layer.queue.insert("rotational".into(), "1\n".into());
    }
    assert_eq!(CHECK.severity(&record), Some(Severity::Biased));
    record.header.hosts[0].virtual_by = Ok(Some("KVM".into()));
    assert_eq!(CHECK.severity(&record), Some(Severity::Void));
}

#[test]
fn few_blocks_are_not_checked_and_holes_are_left_to_a04() {
    let few = super::probe(&Fixture::honest(), |p| p.as_mut().unwrap().first_ns.truncate(15));
    assert!(CHECK.answer(&few).is_err_and(|why| why.contains("only 15")));
    let holes = with_zeros(&Fixture { hole_share: 1.0, ..Fixture::honest() }, 64);
    assert_eq!(CHECK.answer(&holes), Ok(Answer::DoesNotApply));
}

#[test]
fn zeros_that_earlier_phases_may_have_overwritten_are_subtracted() {
    let writing = Fixture::honest_write().record();
    let after_phase = |target: usize, part: f64| {
        let mut record = with_zeros(&Fixture::honest(), 64);
        let mut writer = writing.header.plan.jobs[0].phases[0].clone();
        writer.streams[0].targets = vec![target];
        record.header.plan.jobs[0].phases.insert(0, writer);
        record.runs.iter_mut().for_each(|run| run.start.phase = 1);
        let access = &record.header.plan.jobs[0].phases[1].streams[0].access;
        let region = access.span_bytes.min(record.runs[0].start.target_bytes[0] - access.offset_bytes);
        let mut run = writing.runs[0].clone();
        let issued = run.end.as_mut().and_then(|end| end.streams[0].issued.get_mut(&Kind::Write)).unwrap();
        issued.bytes = (region as f64 * part) as u64;
        record.runs.push(run);
        let reads = crate::case::cases(&record).pop().unwrap_or_else(|| panic!("no case of {target}"));
        let answers = crate::findings::ask_all(&reads);
        answers.into_iter().find(|(check, _)| check.id == CHECK.id).unwrap().1
    };
    for part in [0.96, 1.0, 7.0] {
        assert!(after_phase(0, part).is_err_and(|why| why.contains("an earlier phase")), "{part}");
    }
    let severity = |answer| match answer {
        Ok(Answer::Finding(f)) => Some((f.severity, f.sentence.starts_with("At least"))),
        _ => None,
    };
    assert_eq!(severity(after_phase(0, 0.25)), Some((Severity::Void, true)));
    assert_eq!(severity(after_phase(0, 0.75)), Some((Severity::Biased, true)));
    assert_eq!(severity(after_phase(7, 1.0)), Some((Severity::Void, false)));
}
