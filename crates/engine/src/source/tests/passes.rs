//! Tests of passes over a file.

use super::{
    Arc, Clones, Op, Order, Steps, Stream, StreamState, WorkerContext, compiled, endless, stream, taken,
    worker_context,
};

/// The first `count` operations of a worker with its files of 1 MiB evicted before each pass.
fn evicted(stream: &Stream, context: &WorkerContext, count: usize) -> Vec<Op> {
    let file = || tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
    let files = stream.targets.iter().map(|_| file()).collect();
    let mut stream_state = StreamState::new(3);
    stream_state.files = Some(files);
    let stream_state = Arc::new(stream_state);
    let stream = Stream { evicts_each_pass: true, ..stream.clone() };
    taken(&mut *compiled(&stream, &WorkerContext { stream_state, ..context.clone() }).remove(0), count)
}

/// Returns the indices of operations before which their file is evicted.
fn borders(ops: &[Op]) -> Vec<usize> {
    (0..ops.len()).filter(|at| ops[*at].flags & Op::EVICTED != 0).collect()
}

#[test]
fn a_file_is_evicted_before_each_further_pass() {
    let sequential = |steps| Order::Sequential(steps);
    let backwards = Steps { backwards: true, ..Steps::default() };
    let two_holes = Steps { hole_bytes: 4096, ..Steps::default() };
    // The span has a hundred blocks. With holes only every second block is used.
    for (order, pass) in [
        (sequential(Steps::default()), 100),
        (sequential(backwards), 100),
        (sequential(two_holes), 50),
        (Order::Once, 100),
        (Order::Random, 100),
    ] {
        let ops = evicted(&stream(order.clone()), &worker_context(0, 1), 350);
        let expected: Vec<usize> = (pass..350).step_by(pass).collect();
        assert_eq!(borders(&ops), expected, "{order:?}");
    }
}

#[test]
fn an_operation_on_the_whole_file_is_a_pass() {
    for backwards in [false, true] {
        let mut whole = endless(Order::Sequential(Steps { backwards, ..Steps::default() }));
        super::resize(&mut whole, &super::Sizes::Fixed(1 << 20));
        assert_eq!(borders(&evicted(&whole, &worker_context(0, 1), 4)), [1, 2, 3]);
    }
}

#[test]
fn workers_that_divide_the_blocks_have_shorter_passes_than_clones() {
    let once = stream(Order::Once);
    assert_eq!(borders(&evicted(&once, &worker_context(1, 4), 80)), [25, 50, 75]);
    let clones = Stream { workers: 4, clones: Some(Clones::Same), ..once };
    assert_eq!(borders(&evicted(&clones, &worker_context(1, 4), 250)), [100, 200]);
    // Each pass begins and ends in the middle of the span, where the worker began.
    let spread = evicted(&stream(Order::Sequential(Steps::default())), &worker_context(1, 2), 260);
    assert_eq!(borders(&spread), [50, 150, 250]);
}

#[test]
fn passes_have_the_length_of_their_file() {
    let mut two = endless(Order::Sequential(Steps::default()));
    two.targets = vec![0, 1];
    two.sharing = model::job::Sharing::RoundRobin;
    let ops = evicted(&two, &worker_context(0, 1), 1100);
    let of_a_megabyte: Vec<usize> = borders(&ops);
    assert_eq!(of_a_megabyte, [512, 513, 1024, 1025]);
    assert_eq!(of_a_megabyte.iter().map(|at| ops[*at].file).collect::<Vec<_>>(), [0, 1, 0, 1]);
}
