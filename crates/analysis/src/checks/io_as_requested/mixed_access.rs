//! B19: a file used by direct I/O and through the page cache at the same time. Fires if the target of a direct
//! stream has dirty pages, or if another stream of the phase uses the same target through the page cache.
use crate::checks::prelude::*;
use model::evidence::TargetState;

pub(super) const DIO_MIXED: Check = Check {
    id: CheckId::B19,
    name: "DIO_MIXED",
    belief: "no process used the file through the page cache during direct I/O",
    reads: "Dirty pages of the targets before and after each run (cachestat), and the cache modes of the \
            streams of the same phase.",
    formula: formula!(
        "Any dirty page biases: direct I/O past the page cache makes none, and the kernel must write back and \
         drop such pages before each direct operation on them. If fathom writes the file, its file system may \
         have made a few of them (A02 finds many). Also biased if another stream of the phase uses the same \
         target through the page cache. Does not apply if A02 found that direct I/O itself used the cache."
    ),
    provoke: "`while :; do dd if=/dev/zero of=FILE bs=4k count=64 conv=notrunc; done` and at the same time \
              `fathom run --rw randread --cache direct FILE`.",
    fix: "Stop the other processes that use the file (`fuser -v FILE`), or give each stream of the job its own \
          file.",
    accept: "Accept it if the application does both, such as a database during a backup.",
    applies: |case| case.stream.cache.is_direct() && case.on_device(),
    ask: Ask::Unless(&[CheckId::A02], check_dio_mixed),
    #[cfg(test)]
    fires: Some(|| Fixture { dirty_share: 0.01, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || pages_unknown(),
};

fn check_dio_mixed(case: &Case) -> Known<Answer> {
    if let Some(other) = buffered_sharer(case) {
        let sentence = format!(
            "Another stream of this phase uses the same target with --cache {other}: each makes the kernel \
             write back or drop pages that the other just used."
        );
        return dirty_finding(sentence, 0);
    }
    let (mut dirty, mut completeness) = (0_u64, Ok(()));
    for state in case.states(Moment::Start)?.into_iter().chain(case.states(Moment::Stop)?).flatten() {
        match dirty_bytes(state) {
            Ok(bytes) => dirty = dirty.max(bytes),
            Err(why) => completeness = completeness.and(Err(why)),
        }
    }
    if dirty == 0 {
        completeness?;
        let sentence = "No page of the target was dirty in the page cache before or after the direct I/O.";
        return holds(sentence, evidence([("dirty_bytes", 0.0)]));
    }
    let is_written = case.phase_streams().iter().any(|s| s.changes_targets() && shares_target(case, s));
    let sentence = format!(
        "{} of the target were dirty in the page cache although this job uses direct I/O: another process \
         wrote the file through the cache{}.",
        show_bytes(dirty),
        if is_written { ", or the file system sent some direct writes through it" } else { "" }
    );
    dirty_finding(sentence, dirty)
}

fn dirty_bytes(state: &TargetState) -> Known<u64> {
    let pages = state.pages.as_ref().map_err(Clone::clone)?;
    let dirty = pages.dirty.ok_or("only resident pages could be counted, not dirty ones")?;
    Ok(dirty.saturating_mul(pages.page_bytes))
}

fn dirty_finding(sentence: String, dirty: u64) -> Known<Answer> {
    Detail::new(Severity::Biases, sentence, evidence([("dirty_bytes", dirty as f64)])).found()
}

/// Returns the cache mode of another stream of the phase that uses one of this stream's targets through the page
/// cache.
fn buffered_sharer(case: &Case) -> Option<&'static str> {
    let sharers = case.phase_streams().iter().filter(|s| shares_target(case, s));
    sharers.filter(|s| !s.cache.is_direct() && !s.does_nothing()).map(|s| s.cache.word()).next()
}

fn shares_target(case: &Case, stream: &Stream) -> bool {
    stream.targets.iter().any(|target| case.stream.targets.contains(target))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn pages_unknown() -> model::record::Record {
    let mut record = Fixture::honest().record();
    for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
        state.pages = Err("Operation not permitted (os error 1)".into());
    }
    record
}

#[test]
fn a_few_dirty_pages_bias_and_many_are_left_to_a02() {
    let at = |fixture: Fixture| DIO_MIXED.answer(&fixture.record());
    assert!(matches!(at(Fixture { dirty_share: 0.01, ..Fixture::honest() }), Ok(Answer::Finding(_))));
    assert!(matches!(at(Fixture { cached_share: 0.01, ..Fixture::honest() }), Ok(Answer::Holds(..))));
    assert_eq!(at(Fixture { dirty_share: 0.5, ..Fixture::honest() }), Ok(Answer::DoesNotApply));
    let mut partly_unknown = Fixture { dirty_share: 0.01, ..Fixture::honest() }.record();
    let first = partly_unknown.runs[0].evidence.first_mut().unwrap();
    first.targets[0].pages = Err("Operation not permitted (os error 1)".into());
    assert_eq!(DIO_MIXED.severity(&partly_unknown), Some(Severity::Biases));
}

#[test]
fn dirty_pages_after_direct_writes_may_come_from_the_file_system() {
    let sentence =
        |fixture: Fixture| match DIO_MIXED.answer(&Fixture { dirty_share: 0.01, ..fixture }.record()) {
            Ok(Answer::Finding(f)) => f.sentence,
            other => panic!("{other:?}"),
        };
    let written = sentence(Fixture::honest_write());
    assert!(written.contains("another process") && written.contains("or the file system"), "{written}");
    assert!(!sentence(Fixture::honest()).contains("file system"), "direct reads make no dirty page");
}

#[test]
fn a_buffered_stream_on_the_same_target_is_found() {
    let mut record = Fixture::honest().record();
    let streams = &mut record.header.plan.jobs[0].phases[0].streams;
    let mut other = streams[0].clone();
    other.cache = model::job::Cache::Buffered;
    streams.push(other);
    let Ok(Answer::Finding(f)) = DIO_MIXED.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("--cache buffered"), "{}", f.sentence);
    let mut mincore = Fixture::honest().record();
    for state in mincore.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
        state.pages.as_mut().unwrap().dirty = None;
    }
    assert!(DIO_MIXED.answer(&mincore).is_err_and(|why| why.contains("dirty")));
}
