//! What cannot be said of a replay, whose operations are those of its file.
//!
//! For: refusing what would change nothing of it. Not for: what is in the file, which the plan asks.

use super::super::StreamSpec;
use super::Problem;

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
            ("latency-target", self.latency_target.is_some()),
            ("serialize-overlap", self.serialize_overlap == Some(true)),
        ];
        for (key, _) in paced.into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{{key}}} says when operations are submitted, and {{replay}} has times of its own; type {{pace}} and {{speed}}, or leave {{{key}}} out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
        for (key, _) in self.said_of_operations().into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{{key}}} says which operations there are, and {{replay}} has its own; leave one of them out"
            );
            found.push(Problem::new(&[key, "replay"], message));
        }
    }

    /// Keys about which operations there are, and whether each is said.
    fn said_of_operations(&self) -> [(&'static str, bool); 23] {
        [
            ("rw", self.rw.is_some()),
            ("mix", self.mix.is_some()),
            ("bs", self.bs.is_some()),
            ("align", self.align.is_some()),
            ("random", self.random.is_some()),
            ("stride", self.stride.is_some()),
            ("hole", self.hole.is_some()),
            ("backwards", self.backwards == Some(true)),
            ("start", self.start.is_some()),
            ("positions", self.positions.is_some()),
            ("consecutive", self.consecutive.is_some()),
            ("times", self.times.is_some()),
            ("strided", self.strided.is_some()),
            ("line", !self.lines.is_empty()),
            ("offset", self.offset.is_some()),
            ("size", self.size.is_some()),
            ("sharing", self.sharing.is_some()),
            ("workers", self.workers.is_some_and(|workers| workers > 1)),
            ("fsync", self.fsync.is_some()),
            ("fdatasync", self.fdatasync.is_some()),
            ("sync-file-range", self.sync_file_range.is_some()),
            ("passes", self.passes.is_some()),
            ("verify", self.verify.is_some()),
        ]
    }
}
