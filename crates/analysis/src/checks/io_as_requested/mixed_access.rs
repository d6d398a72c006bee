//! B19: a file used by direct I/O and through the page cache at the same time. Fires if the target of a direct
//! stream has dirty pages, or if another stream of the phase uses the same target through the page cache.
use crate::checks::prelude::*;

pub(super) const DIO_MIXED: Check = Check {
    id: CheckId::B19,
    name: "DIO_MIXED",
    belief: "no process used the file through the page cache during direct I/O",
    reads: "Dirty pages of the targets before and after each run (cachestat), and the cache modes of the \
            streams of the same phase.",
    formula: formula!(
        "Any dirty page biases: direct I/O makes none, and the kernel must write back and drop such pages \
         before each direct operation on them. Also biased if another stream of the phase uses the same \
         target through the page cache. Does not apply if A02 found that direct I/O itself used the cache."
    ),
    provoke: "`while :; do dd if=/dev/zero of=FILE bs=4k count=64 conv=notrunc; done` and at the same time \
              `fathom run --rw randread --cache direct FILE`.",
    fix: "Stop other users of the file (`fuser -v FILE`), or give each stream of the job its own file.",
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
    let mut dirty = 0_u64;
    for moment in [Moment::Start, Moment::Stop] {
        for state in case.states(moment)?.into_iter().flatten() {
            let pages = state.pages.as_ref().map_err(Clone::clone)?;
            let dirty_pages = pages.dirty.ok_or("only resident pages could be counted, not dirty ones")?;
            dirty = dirty.max(dirty_pages.saturating_mul(pages.page_bytes));
        }
    }
    if dirty == 0 {
        let numbers = evidence([("dirty_bytes", 0.0)]);
        return holds("No process used the file through the page cache during direct I/O.", numbers);
    }
    let sentence = format!(
        "{} of the target were dirty in the page cache although this job uses direct I/O: another process \
         wrote the file through the cache.",
        show_bytes(dirty)
    );
    dirty_finding(sentence, dirty)
}

fn dirty_finding(sentence: String, dirty: u64) -> Known<Answer> {
    Detail::new(Severity::Biased, sentence, evidence([("dirty_bytes", dirty as f64)])).found()
}

/// Returns the cache mode of another stream of the phase that uses one of this stream's targets through the page
/// cache.
fn buffered_sharer(case: &Case) -> Option<&'static str> {
    let shares = |s: &&Stream| s.targets.iter().any(|t| case.stream.targets.contains(t));
    case.phase_streams()
        .iter()
        .filter(shares)
        .find(|s| !s.cache.is_direct() && !s.does_nothing())
        .map(|s| s.cache.word())
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
