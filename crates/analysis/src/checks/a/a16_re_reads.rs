//! A16: random reads that return to blocks which the same run already read. Computes the expected share of
//! repeats from the order of offsets, the bytes read and the span. Distributions that repeat by design (Zipf,
//! Pareto, normal, zones) are not checked.

use crate::checks::prelude::*;

/// Share of repeats that is harmless: half a pass over the span.
pub(crate) const REPEATS_ABOVE: Share = Share(0.2);

pub(super) const CHECK: Check = Check {
    id: CheckId::A16,
    name: "RE_READS",
    belief: "each read is of a block that the run has not read yet",
    reads: "The bytes that the stream read in its longest run, its span and its order of offsets. No kernel \
            file.",
    formula: formula!(
        "With c = bytes read / span, uniform random offsets repeat in 1 - (1 - e^-c) / c of the reads. An \
         order that visits each block once repeats only after the first pass, in 1 - 1/c. More than \
         {REPEATS_ABOVE} (about half a random pass) is a note for direct I/O, where only invisible caches \
         gain from it, and biased through the page cache, which keeps every block that was read. Does not \
         apply if A01 fires, which reports the share. Zipf, Pareto, normal and zoned offsets repeat by \
         design and are not checked."
    ),
    provoke: "`fathom run --rw randread --size 16m DIR`.",
    fix: "Use a larger --size, a shorter --time, or --random once, which visits every block once per pass.",
    accept: "Accept it if your application reads its data over and over.",
    ask: Ask::After(&[CheckId::A01], evaluate),
    #[cfg(test)]
    fires: Some(|| super::spanning(16 << 20, &crate::fixture::Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        let access = &mut record.header.plan.jobs[0].phases[0].streams[0].access;
        access.lines.push(access.lines[0].clone());
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let repeats_by_design =
        |o: &Order| matches!(o, Order::Zipf(_) | Order::Pareto(_) | Order::Normal(_) | Order::Zones(_));
    // A replay repeats the blocks that its capture repeated.
    let intended =
        case.stream.replay.is_some() || case.stream.access.lines.iter().any(|l| repeats_by_design(&l.order));
    if !case.does(Kind::Read) || !case.on_device() || intended || earlier.finds(CheckId::A01) {
        return Ok(Answer::DoesNotApply);
    }
    let read = case.largest_run_bytes(Kind::Read);
    if read == 0 {
        return Err("no read completed".into());
    }
    let part = super::repeated_share(case, read as f64)?;
    let span = case.span_bytes();
    let numbers = evidence([
        ("read_bytes_of_a_run", read as f64),
        ("span_bytes", span as f64),
        ("expected_repeat_share", part),
    ]);
    if part <= REPEATS_ABOVE {
        return holds("Almost every read was of a block that the run had not read before.", numbers);
    }
    // The page cache keeps the blocks read once, and read-ahead may hide from A01 how many it kept.
    let severity = if case.stream.cache.is_direct() { Severity::Note } else { Severity::Biased };
    finding!(
        severity,
        numbers,
        "About {} of the reads returned to blocks that the run had already read: {} were read from a span of \
         {}.",
        show_share(part),
        show_bytes(read),
        show_bytes(span)
    )
}

#[cfg(test)]
use crate::checks::a::spanning;
#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn more_than_half_a_random_pass_is_a_note() {
    // 45 MB are read in a run.
    let at = |span| CHECK.severity(&spanning(span, &Fixture::honest()));
    assert_eq!(at(100 << 20), None, "19 %");
    assert_eq!(at(90 << 20), Some(Severity::Note), "21 %");
}

#[test]
fn repeats_through_the_page_cache_bias_unless_a01_fires() {
    let buffered = |delivered| {
        let cache = model::job::Cache::Buffered;
        let fixture = Fixture { cache, delivered, ..Fixture::honest() };
        CHECK.answer(&spanning(16 << 20, &fixture))
    };
    assert!(matches!(buffered(1.0), Ok(Answer::Finding(f)) if f.severity == Severity::Biased));
    assert_eq!(buffered(0.2), Ok(Answer::DoesNotApply));
}

#[test]
fn an_order_without_repeats_holds_and_zipf_is_not_checked() {
    let ordered = |order, span| {
        let mut record = spanning(span, &Fixture::honest());
        record.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order = order;
        CHECK.answer(&record)
    };
    assert!(matches!(ordered(Order::Once, 46 << 20), Ok(Answer::Holds(..))));
    assert!(matches!(ordered(Order::Once, 16 << 20), Ok(Answer::Finding(_))));
    assert_eq!(ordered(Order::Zipf(1.1), 16 << 20), Ok(Answer::DoesNotApply));
}
