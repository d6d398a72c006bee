//! What cannot be said of a replay, whose operations are those of its file.
//!
//! For: refusing what would change nothing of it. Not for: what is in the file, which the plan asks.

use super::super::StreamSpec;
use super::Problem;
use crate::job::ReplayPace;

impl StreamSpec {
    pub(super) fn check_replay(&self, found: &mut Vec<Problem>) {
        let Some(replay) = &self.replay else { return };
        if replay.file.is_empty() {
            let how = [
                ("pace", replay.pace.is_some()),
                ("speed", replay.speed.is_some()),
                ("replay-scale", replay.changes.divide != 0),
                ("replay-align", replay.changes.align_bytes != 0),
            ];
            let key = how.into_iter().find_map(|(key, said)| said.then_some(key)).unwrap_or("replay-skip");
            let message = format!(
                "{{{key}}} is of a captured load, and none is named; type {{replay FILE}} too, the file that `fathom capture` or another tool wrote, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key], message));
            return;
        }
        let paced = [
            ("rate", self.rate.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("limit-iops", self.limit_iops.is_some()),
            ("limit-bandwidth", self.limit_bandwidth.is_some()),
            ("flow", self.flow.is_some()),
            ("think", self.think.is_some()),
            ("period", self.period.is_some()),
            ("latency-target", self.latency_target.is_some()),
            ("serialize-overlap", self.serialize_overlap == Some(true)),
        ];
        for (key, _) in paced.into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{{key}}} says when operations are submitted, and {{replay}} has times of its own; type {{pace}} and {{speed}}, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
        // fio's `number_ios=0` of a job that another one has ended before it began is none that a user types.
        let ends = [
            ("ops", self.limit.operations.is_some_and(|operations| operations > 0)),
            ("bytes", self.limit.bytes.is_some()),
        ];
        for (key, _) in ends.into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{{key}}} ends a stream, and a captured load is carried out to its end; type {{stop-after 10s}}, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
        if replay.pace == Some(ReplayPace::Fast) && replay.speed.is_some() {
            let message = "{speed} divides the times of a captured load, and {pace fast} has none; leave one of them out";
            found.push(Problem::new(&["speed", "pace"], message.into()));
        }
        let turns = [("turn", !self.turns.is_empty())];
        let said = self.said_of_accesses().into_iter().chain(self.said_around_operations()).chain(turns);
        for (key, _) in said.filter(|(_, said)| *said) {
            let message = format!(
                "{{{key}}} says which operations there are, and {{replay}} has its own; leave one of them out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
    }

    /// Keys about where they are and what comes with them, and whether each is said.
    pub(super) fn said_around_operations(&self) -> [(&'static str, bool); 16] {
        [
            ("strided", self.strided.is_some()),
            ("line", !self.lines.is_empty()),
            ("offset", self.offset.is_some()),
            ("size", self.size.is_some()),
            ("sharing", self.sharing.is_some()),
            ("shared", self.shared.is_some()),
            ("own", self.own == Some(true)),
            ("shift-hosts", self.shift_hosts.is_some()),
            ("workers", self.workers.is_some_and(|workers| workers > 1)),
            ("fsync", self.fsync.is_some()),
            ("fdatasync", self.fdatasync.is_some()),
            ("sync-file-range", self.sync_file_range.is_some()),
            ("passes", self.passes.is_some()),
            ("evict-each-pass", self.evict_each_pass == Some(true)),
            ("verify", self.verify.is_some()),
            ("read-back", self.read_back.is_some()),
        ]
    }
}

/// Keys of a stream that hold for a replay too.
#[cfg(test)]
const HOLD: &[&str] = &[
    "depth",
    "create",
    "replay",
    "pace",
    "speed",
    "replay-scale",
    "replay-align",
    "replay-skip",
    "delay",
    "batch",
    "stop-after",
    "steady-state",
    "min-rate",
    "max-latency",
    "max-errors",
    "ignore-errors",
    "ends-others",
    "compress",
    "dedup",
    "zeros",
    "counting",
    "data",
    "node",
    "memory-nodes",
    "nice",
    "io-priority",
    "op-priority",
    "op-log-interval",
    "engine",
    "cache",
    "advice",
];

#[test]
fn what_changes_nothing_of_a_replay_is_refused() {
    use super::super::keys::{KEYS, Set, example, find};
    let of_streams = KEYS.iter().filter(|key| matches!(key.set, Set::Stream(_) | Set::Switch(_)));
    for key in of_streams {
        let mut job = crate::spec::JobSpec::default();
        for (name, value) in [("replay", "x.log"), (key.name, example(key))] {
            let key = find(name).unwrap_or_else(|| panic!("{name}"));
            key.say(&mut job, [value]).unwrap_or_else(|e| panic!("{e}"));
        }
        let found = job.phases[0].streams[0].check();
        assert_eq!(found.is_empty(), HOLD.contains(&key.name), "{}: {found:?}", key.name);
    }
}
