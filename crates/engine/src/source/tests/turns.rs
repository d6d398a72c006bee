//! Tests of several accesses in turn.

use super::*;
use model::job::{ThinkLaw, Turn};

/// The load of a database. Commits are sequential writes with a sync after each; a checkpoint is a burst of random writes and one sync.
fn database() -> Stream {
    let access = |offset_bytes, pattern| {
        let plain = Access::plain(pattern, 4096, 0);
        let mut access = Access { offset_bytes, span_bytes: 1 << 18, ..plain };
        (access.lines[0].delay_ns, access.lines[0].delay_law) = (5000, ThinkLaw::Fixed);
        access
    };
    let flush = |every, calls| Some(Flush { call: SyncCall::Fdatasync, every, calls, drain: true });
    let mut checkpoint = access(1 << 19, Pattern::Random);
    checkpoint.lines[0].burst = 21;
    let commits =
        Turn { operations: 5, turns: 2, access: access(0, Pattern::Sequential), flush: flush(1, 1) };
    let checkpoint = Turn { operations: 20, turns: 1, access: checkpoint, flush: flush(20, 1) };
    let turns = vec![commits, checkpoint];
    let (access, flush) = Turn::summarize(&turns);
    Stream { turns, flush, ..Stream::plain(access, 32, 1, "null") }
}

#[test]
fn turns_follow_each_other_with_their_own_lengths_pauses_and_syncs() {
    let ops = drawn(&database(), 3000);
    let (mut at, mut end, mut commits) = (0, 0, 0);
    for round in 0.. {
        // Turns of 3 and 2 operations alternate, so two turns have 5.
        for _ in 0..if round % 2 == 0 { 3 } else { 2 } {
            let [write, sync] = ops[at..at + 2] else { panic!("two operations") };
            assert_eq!((write.kind, sync.kind), (Kind::Write, Kind::Sync), "at {at}");
            assert_eq!((write.offset, write.at_ns), (end % (1 << 18), 5000), "each continues where it was");
            assert_eq!(
                write.flags & (Op::AFTER | Op::DRAINED),
                Op::AFTER | if at > 0 { Op::DRAINED } else { 0 }
            );
            assert_eq!(sync.flags, Op::DRAINED);
            (at, end, commits) = (at + 2, end + 4096, commits + 1);
        }
        let checkpoint = &ops[at..at + 20];
        assert!(checkpoint.iter().all(|op| op.kind == Kind::Write && op.offset >= 1 << 19), "at {at}");
        assert_eq!((checkpoint[0].flags, checkpoint[0].at_ns), (Op::AFTER | Op::DRAINED, 5000));
        assert!(checkpoint[1..].iter().all(|op| (op.flags, op.at_ns) == (0, 0)), "all at once");
        assert_eq!((ops[at + 20].kind, ops[at + 20].flags), (Kind::Sync, Op::DRAINED));
        at += 21;
        if at + 40 > ops.len() {
            break;
        }
    }
    assert!(commits > 100);
}

#[test]
fn periods_continue_across_turns_by_one_clock() {
    let mut stream = database();
    stream.turns.iter_mut().for_each(|turn| (turn.access.lines[0].by_period, turn.flush) = (true, None));
    stream.turns[1].access.lines[0].burst = 10;
    let mut due = 0;
    for (at, op) in drawn(&stream, 2000).into_iter().enumerate() {
        // A cycle has 45 operations: 3, 20, 2 and 20. Each operation in the turns of 3 and 2 begins a burst. The turns of 20 have two
        // bursts of ten.
        let begins = match at % 45 {
            0..3 | 23..25 => true,
            place @ 3..23 => (place - 3) % 10 == 0,
            place => (place - 25) % 10 == 0,
        };
        if begins {
            due += 5000;
            assert_eq!((op.at_ns, op.flags), (due, Op::AT | Op::DRAINED), "at {at}");
        } else {
            assert_eq!((op.at_ns, op.flags), (0, 0), "at {at}");
        }
    }
}

#[test]
fn invalid_turns_are_refused() {
    let refused = |change: fn(&mut Turn)| {
        let mut stream = database();
        change(&mut stream.turns[0]);
        let lanes = lanes(&stream, &[1 << 30], &[512], &worker_context(0, 1));
        lanes.err().unwrap_or_else(|| panic!("taken"))
    };
    assert!(refused(|turn| turn.operations = 1).contains("no operation"));
    assert!(refused(|turn| turn.turns = 0).contains("no operation"));
    assert!(refused(|turn| turn.access.lines[0].reply_bytes = 512).contains("operations of a pair"));
    let mut paced = database();
    paced.pace = Pace::Limited { iops: 5.0, bytes_per_s: 0.0 };
    assert!(
        lanes(&paced, &[1 << 30], &[512], &worker_context(0, 1)).err().is_some_and(|e| e.contains("pauses"))
    );
}
