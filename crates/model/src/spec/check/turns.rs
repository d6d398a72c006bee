//! What cannot be said of turns, or beside them.
//!
//! For: refusing what would change nothing, and what two turns could not both have. Not for: what is said of one, which is checked as if it
//! were all of its stream.

use super::super::{Rw, StreamSpec, TurnSpec};
use super::Problem;
use crate::job::SyncCall;

impl StreamSpec {
    pub(super) fn check_turns(&self, found: &mut Vec<Problem>) {
        if self.turns.is_empty() {
            return;
        }
        if self.turns.len() == 1 {
            let message = "{turn} is there once, and turns follow one another; write a second one, or say its keys of the stream";
            found.push(Problem::new(&["turn"], message.into()));
        }
        let inside = [
            ("think", self.think.is_some()),
            ("period", self.period.is_some()),
            ("burst", self.burst.is_some()),
            ("drain", self.drain.is_some()),
        ];
        let inside = self.said_of_accesses().into_iter().chain(inside);
        let around = [("burst-time", self.burst_time.is_some())];
        let around = self.said_around_operations().into_iter().chain(around);
        // Several targets, and several workers of which each has turns of its own, are a stream's.
        let around = around.filter(|(key, _)| !["sharing", "workers"].contains(key));
        for (key, _) in inside.chain(around).filter(|(_, said)| *said) {
            let message =
                format!("{{{key}}} does not go with {{turn}}; say it in the turns, or leave it out");
            found.push(Problem::new(&[key, "turn"], message));
        }
        let clocks = [
            ("rate", self.rate.is_some()),
            ("limit-iops", self.limit_iops.is_some()),
            ("limit-bandwidth", self.limit_bandwidth.is_some()),
        ];
        let pauses = self.turns.iter().any(|turn| turn.what.think.is_some() || turn.what.period.is_some());
        for (key, _) in clocks.into_iter().filter(|(_, said)| *said && pauses) {
            let message = format!(
                "{{{key}}} says when operations are submitted, and a {{turn}} has pauses of its own; leave {{{key}}} or {{think}} out"
            );
            found.push(Problem::new(&[key, "turn"], message));
        }
        let calls: Vec<SyncCall> = self.turns.iter().filter_map(TurnSpec::call).collect();
        if calls.iter().any(|call| Some(call) != calls.first()) {
            let message = "{turn}: two of them make writes stable by different calls, and a stream has one; type {fsync} or {fdatasync} in both";
            found.push(Problem::new(&["turn"], message.into()));
        }
    }
}

impl TurnSpec {
    /// Everything in it that contradicts itself or would change nothing.
    pub fn check(&self) -> Vec<Problem> {
        let mut found = self.what.check();
        match self.operations {
            None => {
                let message = "a turn does not say its length; type {ops}, such as {ops 8}";
                found.push(Problem::new(&[], message.into()));
            }
            Some(length) if length.writes < length.calls => {
                let message =
                    format!("{{ops {}}} is less than one operation; type 1 or more", length.format_count());
                found.push(Problem::new(&["ops"], message));
            }
            Some(_) => {}
        }
        if let Some(rw @ (Rw::Trimwrite | Rw::Randtrimwrite)) = self.what.rw {
            let message = format!(
                "{{rw {}}} has pairs, which a turn could end between; type another direction, or write two turns",
                rw.word()
            );
            found.push(Problem::new(&["rw"], message));
        }
        found
    }

    /// The call that makes its writes stable.
    fn call(&self) -> Option<SyncCall> {
        let StreamSpec { fsync, fdatasync, sync_file_range, .. } = &self.what;
        let all = [
            (SyncCall::Fsync, fsync),
            (SyncCall::Fdatasync, fdatasync),
            (SyncCall::SyncFileRange, sync_file_range),
        ];
        all.into_iter().find_map(|(call, said)| said.map(|_| call))
    }
}

#[cfg(test)]
fn turn(rw: Rw, length: &str) -> TurnSpec {
    let what = StreamSpec { rw: Some(rw), ..StreamSpec::default() };
    TurnSpec { operations: crate::spec::parsers::every(length).ok(), what }
}

#[test]
fn what_is_said_beside_turns_has_to_make_sense() {
    let turns = || vec![turn(Rw::Write, "8"), turn(Rw::Randread, "2.5")];
    let check = |change: fn(&mut StreamSpec)| {
        let mut stream = StreamSpec { turns: turns(), ..StreamSpec::default() };
        change(&mut stream);
        stream.check().iter().map(Problem::in_toml).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(check(|s| (s.depth, s.workers, s.rate) = (Some(8), Some(2), Some(100.0))), "");
    for (change, word) in [
        ((|s| s.rw = Some(Rw::Read)) as fn(&mut StreamSpec), "`rw` does not go with `turn`"),
        (|s| s.size = Some(4096), "`size` does not go"),
        (|s| s.fsync = Some(crate::job::Every::writes(1)), "`fsync` does not go"),
        (|s| s.passes = Some(2), "`passes` does not go"),
        (|s| s.turns.truncate(1), "there once"),
        (
            |s| {
                s.turns[0].what.think = Some(crate::job::Think::fixed(1000));
                s.limit_iops = Some(crate::spec::rate_limit::RateLimit::All(5.0));
            },
            "pauses of its own",
        ),
        (|s| s.limit_iops = crate::spec::rate_limit::limit_iops("write=5").ok(), "in their order"),
        (
            |s| {
                s.turns[1].what.rw = Some(Rw::Randwrite);
                s.turns[0].what.fsync = Some(crate::job::Every::writes(1));
                s.turns[1].what.fdatasync = Some(crate::job::Every::writes(1));
            },
            "different calls",
        ),
    ] {
        let said = check(change);
        assert!(said.contains(word), "{word}: {said}");
    }
    for (turn, word) in [
        (turn(Rw::Read, "0.5"), "less than one"),
        (turn(Rw::Read, ""), "does not say its length"),
        (turn(Rw::Trimwrite, "4"), "pairs"),
    ] {
        let said: Vec<String> = turn.check().iter().map(Problem::in_toml).collect();
        assert!(said.iter().any(|said| said.contains(word)), "{word}: {said:?}");
    }
}
