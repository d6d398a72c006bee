//! Settings about which file is whose that contradict each other, or that would change nothing.
//!
//! For: files of several workers and hosts. Not for: how many hosts there are, which only a launcher knows.

use super::Problem;
use crate::spec::StreamSpec;

impl StreamSpec {
    pub(super) fn check_files(&self, found: &mut Vec<Problem>) {
        let is_own = self.own == Some(true);
        if is_own && self.shared.is_some() {
            let message =
                "{own} is a file for each worker, and {shared} one for all of them; type one of them";
            found.push(Problem::new(&["own", "shared"], message.into()));
        }
        // What says by itself where each worker is.
        let placed = [
            ("clones", self.clones.is_some()),
            ("start", self.start.is_some() && self.shared.is_some()),
            ("strided", self.strided.is_some() && self.shared.is_some()),
            ("stride", self.stride.is_some() && self.shared.is_some()),
            ("hole", self.hole.is_some() && self.shared.is_some()),
            ("create", self.create.is_some() && is_own),
            ("turn", !self.turns.is_empty() && self.shared.is_some()),
        ];
        let files = match (is_own, self.shared) {
            (true, _) => "own",
            (false, Some(_)) => "shared",
            (false, None) => return,
        };
        for (key, _) in placed.into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{{files}}} says which blocks each worker has, and so does {{{key}}}; type one of them"
            );
            found.push(Problem::new(&[files, key], message));
        }
        if self.shared.is_some() && self.target.len() > 1 {
            let message = "{shared} is about one file; name one target";
            found.push(Problem::new(&["shared", "target"], message.into()));
        }
    }
}
