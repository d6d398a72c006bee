//! Tests of `run-length` and `interleaved`: lengths and number of sequential runs.

use super::*;
use crate::source::tests::goodness_of_fit;

#[test]
fn runs_have_their_mean_length_and_are_interleaved() {
    let mut stream = endless(Order::Random);
    stream.access.span_bytes = 1 << 20;
    (stream.access.lines[0].run_length, stream.access.lines[0].interleaved) = (Some(4.0), 1);
    let ops = drawn(&stream, 100_000);
    let continues = |w: &&[Op]| w[1].offset == w[0].offset + 4096;
    // One random place in 256 is the next place by chance.
    goodness_of_fit::assert_share(
        ops.windows(2).filter(continues).count(),
        ops.len() - 1,
        0.75 * 255.0 / 256.0 + 0.25 / 256.0,
    );
    // Four sequential readers, each in its own part of the span, read every block once.
    let mut files = endless(Order::Sequential(Steps::default()));
    (files.access.span_bytes, files.access.lines[0].interleaved) = (1 << 20, 4);
    let ops = drawn(&files, 40);
    let mut seen = counts(ops.iter().map(|op| op.offset));
    assert!(seen.values().all(|n| *n == 1), "{seen:?}");
    for first in [0, 1 << 18, 2 << 18, 3 << 18] {
        assert!(seen.remove(&first).is_some(), "nothing begins at {first}");
    }
    let reader = |op: &Op| op.offset >> 18;
    goodness_of_fit::assert_share(drawn(&files, 200).iter().filter(|op| reader(op) == 1).count(), 200, 0.25);
    assert!(ops.windows(2).any(|w| reader(&w[0]) != reader(&w[1])), "they alternate");
}
