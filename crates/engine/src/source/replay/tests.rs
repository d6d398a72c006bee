//! Tests of the source of a replay without a loop: when operations are due, and what is counted if the reader is late.

use super::*;

const READ: Step =
    Step { offset: 0, wait_ns: 0, length: 4096, waits_back: 0, task: 0, file: 0, kind: Kind::Read };

/// Creates a replay of steps whose reader has ended.
fn replay_of_steps(steps: &[Step], depth: u32) -> (Replay, Arc<ReplayCounts>) {
    let (mut to, from) = connect();
    for step in steps {
        assert_eq!(to.send(*step), Sent::InRing);
    }
    drop(to);
    let counts = Arc::<ReplayCounts>::default();
    (Replay::new(from, 4, depth, true, Arc::clone(&counts)), counts)
}

#[track_caller]
fn now(replay: &mut Replay, ns: u64) -> Op {
    match replay.choose(ns) {
        Choice::Now(op, _) => op,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_operation_is_due_after_the_one_that_it_waits_for() {
    let steps = [
        Step { wait_ns: 100, ..READ },
        // This operation is due while the first one is in flight.
        Step { wait_ns: 150, offset: 1, ..READ },
        // Due after the first one, even if the second one is still in flight.
        Step { wait_ns: 30, waits_back: 2, offset: 2, ..READ },
        // An operation of another task, due meanwhile.
        Step { wait_ns: 170, task: 1, offset: 3, ..READ },
    ];
    let (mut replay, counts) = replay_of_steps(&steps, 8);
    assert_eq!(replay.choose(0), Choice::At(100));
    let first = now(&mut replay, 100);
    assert_eq!(replay.choose(120), Choice::At(150));
    let second = now(&mut replay, 160);
    assert_eq!((first.offset, second.offset), (0, 1));
    assert_eq!(now(&mut replay, 180).offset, 3);
    assert_eq!(replay.choose(190), Choice::AfterCompletion, "nothing is due before something completes");
    replay.completed(&first, 1000);
    assert_eq!(replay.choose(1000), Choice::At(1030));
    assert_eq!(now(&mut replay, 1030).offset, 2);
    assert_eq!(replay.choose(1031), Choice::End);
    assert_eq!(counts.totals(), Replayed { is_whole: true, ..Replayed::default() });
}

#[test]
fn waits_are_shortened_by_the_time_outside_the_driver() {
    let after = |wait_ns| Step { wait_ns, waits_back: 1, ..READ };
    let (mut replay, counts) =
        replay_of_steps(&[READ, after(100), after(20), Step { kind: Kind::Sync, ..after(100) }], 8);
    counts.set_outside_driver_ns(Kind::Read, 30);
    let first = now(&mut replay, 0);
    replay.completed(&first, 1000);
    assert_eq!(replay.choose(1000), Choice::At(1070));
    let second = now(&mut replay, 1070);
    replay.completed(&second, 2000);
    // An operation that is due when the completion is seen is not late.
    let Choice::Now(third, due_ns) = replay.choose(2001) else {
        panic!("its wait is shorter than the time outside the driver")
    };
    assert_eq!(due_ns, 2000);
    counts.set_outside_driver_ns(Kind::Read, 0);
    replay.completed(&third, 3000);
    assert_eq!(replay.choose(3000), Choice::At(3090), "the wait makes up for the exceeding 10 ns");
    now(&mut replay, 3090);
}

#[test]
fn only_one_wait_for_an_operation_is_shortened() {
    let after = |wait_ns, waits_back| Step { wait_ns, waits_back, ..READ };
    let (mut replay, counts) = replay_of_steps(&[READ, after(0, 1), after(0, 2), after(100, 1)], 8);
    counts.set_outside_driver_ns(Kind::Read, 30);
    let first = now(&mut replay, 0);
    replay.completed(&first, 1000);
    now(&mut replay, 1000);
    let third = now(&mut replay, 1000);
    replay.completed(&third, 2000);
    assert_eq!(replay.choose(2000), Choice::At(2000 + 100 - 30 - 30));
}

#[test]
fn completions_before_the_next_read_are_remembered() {
    let (mut to, from) = connect();
    assert_eq!(to.send(READ), Sent::InRing);
    let mut replay = Replay::new(from, 1, 8, true, Arc::default());
    let first = now(&mut replay, 0);
    replay.completed(&first, 500);
    assert_eq!(replay.choose(510), Choice::At(510 + POLL_NS), "the reader has not ended");
    assert_eq!(to.send(Step { wait_ns: 40, waits_back: 1, ..READ }), Sent::InRing);
    drop(to);
    assert_eq!(replay.choose(520), Choice::At(540));
    now(&mut replay, 540);
    assert_eq!(replay.choose(541), Choice::End);
}

#[test]
fn late_reads_and_full_depth_are_counted() {
    let (mut to, from) = connect();
    let counts = Arc::<ReplayCounts>::default();
    let mut replay = Replay::new(from, 1, 1, true, Arc::clone(&counts));
    assert_eq!(replay.choose(10), Choice::At(10 + POLL_NS));
    assert_eq!(to.send(Step { wait_ns: 20, ..READ }), Sent::InRing);
    assert_eq!(to.send(Step { wait_ns: 950, ..READ }), Sent::InRing);
    let first = now(&mut replay, 900);
    assert_eq!((counts.totals().starved, counts.totals().starved_ns), (1, 880));
    // The second operation is due at 950, but the only slot is in use until 2000.
    replay.completed(&first, 2000);
    assert_eq!(counts.totals().held_by_depth, 1);
    now(&mut replay, 2000);
    assert_eq!(
        counts.totals(),
        Replayed { starved: 1, starved_ns: 880, held_by_depth: 1, ..Replayed::default() }
    );
}

#[test]
fn a_waiting_task_blocks_others_only_if_the_table_is_full() {
    let (mut to, from) = connect();
    let counts = Arc::<ReplayCounts>::default();
    assert_eq!(to.send(READ), Sent::InRing);
    let mut replay = Replay::new(from, 2, 8, true, Arc::clone(&counts));
    let first = now(&mut replay, 0);
    let send_on = |replay: &mut Replay, to: &mut StepSender, step: Step, count: usize| {
        for _ in 0..count {
            while to.send(step) == Sent::Full {
                replay.take_from_ring(1);
            }
        }
        while replay.take_from_ring(1) > 0 {}
    };
    let waits = Step { waits_back: 1, wait_ns: 5, ..READ };
    send_on(&mut replay, &mut to, waits, TABLE_CAPACITY - 1);
    send_on(&mut replay, &mut to, Step { task: 1, wait_ns: 1, ..READ }, 1);
    assert_eq!(now(&mut replay, 1).at_ns >> NUMBER_BITS, 1);
    send_on(&mut replay, &mut to, waits, 1);
    send_on(&mut replay, &mut to, Step { task: 1, wait_ns: 2, ..READ }, 1);
    assert_eq!(
        replay.choose(100),
        Choice::AfterCompletion,
        "the table is full and its first operation waits"
    );
    replay.completed(&first, 100);
    let second = now(&mut replay, 105);
    assert_eq!(second.at_ns >> NUMBER_BITS, 0);
    assert_eq!(now(&mut replay, 106).at_ns >> NUMBER_BITS, 1);
    assert_eq!((counts.totals().held_by_order, counts.totals().starved), (1, 0));
}

#[test]
fn stamps_reach_back_to_the_limit() {
    let mut steps = vec![READ; REACH as usize - 1];
    steps.push(Step { waits_back: REACH - 1, wait_ns: 7, ..READ });
    let (mut replay, _) = replay_of_steps(&steps, u32::MAX);
    let ops: Vec<Op> = (1..REACH).map(|_| now(&mut replay, 0)).collect();
    assert_eq!(replay.choose(0), Choice::AfterCompletion);
    for op in &ops[1..] {
        replay.completed(op, 10);
    }
    assert_eq!(replay.choose(10), Choice::AfterCompletion);
    replay.completed(&ops[0], 20);
    assert_eq!(replay.choose(20), Choice::At(27));
}

#[test]
fn a_call_contains_only_operations_issued_together_that_are_not_merged() {
    let at = |offset, wait_ns| Step { offset, wait_ns, ..READ };
    let write = |offset, wait_ns| Step { kind: Kind::Write, ..at(offset, wait_ns) };
    let steps = [
        at(0, 0),
        // Adjacent to the first operation: begins where that one ends.
        at(4096, 10),
        // Adjacent to the previous operation, but in the other direction.
        write(8192, 20),
        // Adjacent to the previous operation: ends where that one begins.
        write(4096, 30),
        at(1 << 20, 3_030),
        // This operation was issued later, so it has its own call.
        at(1 << 30, 6_031),
    ];
    let (mut replay, _) = replay_of_steps(&steps, 8);
    let now_ns = 10_000;
    for call in [&steps[..1], &steps[1..3], &steps[3..5], &steps[5..]] {
        replay.begin_call();
        for step in call {
            assert_eq!(now(&mut replay, now_ns).offset, step.offset);
        }
        assert!(matches!(replay.choose(now_ns), Choice::At(at) if at == now_ns) || call[0] == steps[5]);
    }
}
