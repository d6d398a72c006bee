//! B21: trims of ranges that held no blocks. Compares the holes of the file before each run and after its final
//! sync with the bytes trimmed: a trim that adds no hole met one.
//!
//! A trim of a hole frees nothing and reaches no device. The check needs a file that nothing else changes.

use crate::checks::prelude::*;

/// Share of the trimmed bytes in holes above which the rate does not show how fast blocks are freed. The edges of a file
/// stay below it.
const BIASED_ABOVE: Share = Share(0.05);
/// Share of the trimmed bytes in holes at or above which the result is relabelled.
const RENAMED_FROM: Share = Share(0.5);
/// Block size of nearly every file system. A trim of a part of a block zeroes it and frees nothing.
const BLOCK_BYTES: u64 = 4096;

pub(super) const CHECK: Check = Check {
    id: CheckId::B21,
    name: "TRIMS_MET_HOLES",
    belief: "trims freed blocks",
    reads: "The map of the file's extents before each run and after its final sync (FIEMAP), and the bytes \
            that fathom trimmed.",
    formula: formula!(
        "1 - (bytes of holes after - before) / bytes trimmed, over all runs: biased above {BIASED_ABOVE}, \
         relabelled from {RENAMED_FROM}. A trim of a hole frees nothing and reaches no device. Not checked \
         if the job also writes, if several streams or hosts change the file, or if trims are not multiples \
         of {BLOCK_BYTES} bytes, since the file system only zeroes parts of blocks. Does not apply to block \
         devices, which do not show which blocks hold data."
    ),
    provoke: "`fathom run --rw randtrim --size 16m --bs 64k --engine sync --time 3s DIR`: after the first \
              256 trims most blocks are holes.",
    fix: "Trim less than the file holds (`--passes 1 --rw trim`, one run), or use a larger --size.",
    accept: "Accept it if trims of free blocks are part of your workload.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| trimming(0, 10_000)),
    #[cfg(test)]
    blind: || {
        let mut record = trimming(0, 10_000);
        for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
            state.extents = Some(Err("not supported".into()));
        }
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Trim) || !case.has_storage() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let issued = case.issued(Kind::Trim);
    if issued.ops == 0 {
        return Err("no trim completed".into());
    }
    if case.does(Kind::Write) {
        return Err("the job also writes, which fills trimmed blocks again".into());
    }
    let streams = phase_streams(case).len();
    if streams > 1 || case.record.header.plan.part.is_some() || case.record.fleet.is_some() {
        return not_checked(
            "several streams or hosts change the file, and its holes are counted for all of them together",
        );
    }
    let sizes = [case.stream.access.smallest_bytes(), case.stream.access.largest_bytes()].map(u64::from);
    if sizes.iter().chain([&case.stream.access.offset_bytes]).any(|bytes| !bytes.is_multiple_of(BLOCK_BYTES))
    {
        return Err("trims of parts of blocks write zeros and make no holes".into());
    }
    let maps = case.extents_over_runs()?;
    let freed_bytes: u64 =
        maps.iter().map(|(before, after)| after.hole_bytes.saturating_sub(before.hole_bytes)).sum();
    let (freed_bytes, trimmed) = (freed_bytes as f64, issued.bytes as f64);
    let in_holes = (1.0 - share(freed_bytes, trimmed)).max(0.0);
    let numbers =
        evidence([("trimmed_bytes", trimmed), ("freed_bytes", freed_bytes), ("in_holes_share", in_holes)]);
    if in_holes <= BIASED_ABOVE {
        return holds("The trims freed blocks.", numbers);
    }
    let condition = Rename::Condition(format!("{} in holes", show_share(in_holes)));
    detail!(
        if in_holes >= RENAMED_FROM { Severity::Rename } else { Severity::Biased },
        numbers,
        "{} of the trimmed bytes were already holes: {} trims of {} in total freed {}. A trim of a hole \
         frees nothing and reaches no device.",
        show_share(in_holes),
        show_count(issued.ops as f64),
        show_bytes(issued.bytes),
        show_bytes(freed_bytes as u64)
    )
    .relabelled((in_holes >= RENAMED_FROM).then_some(condition))
    .found()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::Moment;

/// Runs of 11,000 trims of 4 KiB; `before` blocks are holes at the start of each run and `after` at its end.
#[cfg(test)]
fn trimming(before: u64, after: u64) -> model::record::Record {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    stream.access.lines[0].mix = model::job::Mix::of_percents(0, 100);
    for run in &mut record.runs {
        for stream in run.end.iter_mut().flat_map(|e| &mut e.streams) {
            let (done, issued) = (stream.kinds.remove(&Kind::Read), stream.issued.remove(&Kind::Read));
            stream.kinds.extend(done.map(|d| (Kind::Trim, d)));
            stream.issued.extend(issued.map(|i| (Kind::Trim, i)));
        }
        let synced = run.evidence.iter().find(|s| s.moment == Moment::Stop).cloned();
        run.evidence.extend(synced.map(|s| model::evidence::Snapshot { moment: Moment::Synced, ..s }));
        let map = run.evidence.iter().find_map(|s| s.targets.first()?.extents.clone());
        for snapshot in &mut run.evidence {
            let holes = if snapshot.moment == Moment::Start { before } else { after };
            for state in &mut snapshot.targets {
                state.extents = map
                    .clone()
                    .map(|map| map.map(|e| model::evidence::Extents { hole_bytes: holes * 4096, ..e }));
            }
        }
    }
    record
}

#[test]
fn trims_of_holes_bias_or_relabel() {
    assert!(
        matches!(CHECK.answer(&trimming(0, 11_000)), Ok(Answer::Holds(..))),
        "{:?}",
        CHECK.answer(&trimming(0, 11_000))
    );
    assert_eq!(CHECK.severity(&trimming(500, 11_000)), None);
    assert_eq!(CHECK.severity(&trimming(2_000, 11_000)), Some(Severity::Biased));
    // All blocks were free before.
    let Ok(Answer::Finding(f)) = CHECK.answer(&trimming(20_000, 20_000)) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Rename);
    assert!(
        f.sentence.starts_with("100 % of the trimmed bytes") && f.sentence.contains("freed 0 B"),
        "{}",
        f.sentence
    );
}

#[test]
fn jobs_with_writes_partial_blocks_or_devices_are_not_checked() {
    let change = |by: &dyn Fn(&mut model::record::Record)| {
        let mut record = trimming(0, 11_000);
        by(&mut record);
        CHECK.answer(&record)
    };
    let writes = change(&|r| {
        r.header.plan.jobs[0].phases[0].streams[0].access.lines[0].mix = model::job::Mix::of_percents(0, 50);
    });
    assert!(writes.is_err_and(|why| why.contains("also writes")));
    let parts = change(&|r| r.header.plan.jobs[0].phases[0].streams[0].access.offset_bytes = 512);
    assert!(parts.is_err_and(|why| why.contains("parts of blocks")));
    let device = change(&|r| r.header.plan.targets[0].role = model::plan::Role::Device);
    assert_eq!(device, Ok(Answer::DoesNotApply));
}
