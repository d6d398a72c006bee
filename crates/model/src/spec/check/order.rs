//! Settings about the order of offsets that contradict each other, or that would change nothing.
//!
//! For: what says where the next operation is. Not for: directions, sizes and pace, which stand with the others.

use super::Problem;
use crate::job::{Order, Positions, Sharing, Start};
use crate::spec::StreamSpec;

impl StreamSpec {
    pub(super) fn check_order(&self, found: &mut Vec<Problem>) {
        if !self.lines.is_empty() || !self.turns.is_empty() {
            return;
        }
        let way = self.way();
        if self.random.is_some() && !way.is_random() {
            let message = format!(
                "{{random}} says how random offsets are drawn, and {{rw {}}} is sequential; type {{rw rand{}}}, or leave {{random}} out",
                way.word(),
                way.word()
            );
            found.push(Problem::new(&["random", "rw"], message));
        }
        let sequential = [
            ("stride", self.stride.is_some()),
            ("hole", self.hole.is_some()),
            ("backwards", self.backwards == Some(true)),
            ("start", self.start.is_some()),
        ];
        for (key, _) in sequential.into_iter().filter(|(_, said)| *said && way.is_random()) {
            let plain = way.word().trim_start_matches("rand");
            let message = format!(
                "{{{key}}} is about sequential operations, and {{rw {}}} is random; type {{rw {plain}}}, or leave {{{key}}} out",
                way.word()
            );
            found.push(Problem::new(&[key, "rw"], message));
        }
        let rows = [("consecutive", self.consecutive.is_some()), ("run-length", self.run_length.is_some())];
        for (key, _) in rows.into_iter().filter(|(_, said)| *said && !way.is_random()) {
            let message = format!(
                "{{{key}}} is about random operations, and {{rw {}}} is sequential; type {{rw rand{}}}, or leave {{{key}}} out",
                way.word(),
                way.word()
            );
            found.push(Problem::new(&[key, "rw"], message));
        }
        if self.stride.is_some() && self.hole.is_some() {
            let message = "{stride} and {hole} say the same distance in two ways; type one of them";
            found.push(Problem::new(&["hole", "stride"], message.into()));
        }
        self.check_positions(found);
        self.check_runs(found);
        self.check_interleaved(found);
        if self.times.is_some_and(|times| times > 1) && self.think.is_some() {
            let message = "{times} counts operations on one place, and {burst} counts them between pauses; leave {times} or {think} out";
            found.push(Problem::new(&["times", "think"], message.into()));
        }
        if self.clones.is_some() && self.start.is_some() {
            let message = "{start} says where workers that divide the work begin, and {clones} each do all of it; type one of them";
            found.push(Problem::new(&["start", "clones"], message.into()));
        } else if self.start.is_some() && !way.is_random() && self.workers.unwrap_or(1) < 2 {
            let message = "{start} says where several workers begin, and there is one; type {workers 2} or more, or leave {start} out";
            found.push(Problem::new(&["start", "workers"], message.into()));
        }
    }

    pub(super) fn check_strided(&self, found: &mut Vec<Problem>) {
        if self.strided.is_none() {
            return;
        }
        if self.start.is_some() && self.workers.unwrap_or(1) > 1 {
            let message = "{strided} spreads the workers over its zones, and {start} says where they begin; type one of them";
            found.push(Problem::new(&["strided", "start"], message.into()));
        }
        if self.target.len() > 1 && self.sharing.as_ref().is_some_and(|s| *s != Sharing::Each) {
            let message = "{strided} is about the zones of one target at a time; leave {sharing} out, or type {sharing each}";
            found.push(Problem::new(&["strided", "sharing"], message.into()));
        }
    }

    /// Directions that are drawn at random places alone.
    fn check_runs(&self, found: &mut Vec<Problem>) {
        if self.mix_by_run != Some(true) {
            return;
        }
        let in_runs =
            matches!(self.random, Some(Order::Mixed(_) | Order::MixedEach(_))) || self.run_length.is_some();
        if !self.way().is_mixed() || !in_runs {
            let message = "{mix-by-run} is about sequential operations between random ones, in several directions; type {rw randrw} and {random mixed:30}, or {run-length 4}, too, or leave it out";
            found.push(Problem::new(&["mix-by-run", "random"], message.into()));
        } else if self.bs.as_ref().is_some_and(|bs| bs.read != bs.write || bs.read.fixed().is_none()) {
            let message =
                "{mix-by-run} needs one size for all operations; type one, or leave {mix-by-run} out";
            found.push(Problem::new(&["mix-by-run", "bs"], message.into()));
        } else if matches!(self.positions, Some(Positions::Own | Positions::OwnRestart)) {
            let message = "{positions own} lets each direction go on by itself, and {mix-by-run} lets none; type one of them";
            found.push(Problem::new(&["mix-by-run", "positions"], message.into()));
        }
    }

    /// Lengths and number of sequential runs.
    fn check_interleaved(&self, found: &mut Vec<Problem>) {
        let mixed = matches!(self.random, Some(Order::Mixed(_) | Order::MixedEach(_)));
        if self.run_length.is_some() {
            let other = match (self.consecutive.is_some(), mixed) {
                (true, _) => Some(("consecutive", "consecutive")),
                (_, true) => Some(("random", "random mixed")),
                _ => None,
            };
            if let Some((key, shown)) = other {
                let message =
                    format!("{{run-length}} and {{{shown}}} both say how long runs are; type one of them");
                found.push(Problem::new(&["run-length", key], message));
            }
            if self.random == Some(Order::Once) {
                let message = "{random once} has each block once, and runs from random offsets on have some twice; type another {random}, or leave {run-length} out";
                found.push(Problem::new(&["run-length", "random"], message.into()));
            }
        }
        if self.interleaved.is_none_or(|n| n < 2) {
            return;
        }
        if self.way().is_random() && !mixed && self.run_length.is_none() {
            let message = "{interleaved} is about sequential runs, and here each operation is at a random offset; type {run-length 8} too, or a sequential {rw}";
            found.push(Problem::new(&["interleaved", "rw"], message.into()));
        }
        let others = [
            ("consecutive", self.consecutive.is_some()),
            ("mix-by-run", self.mix_by_run == Some(true)),
            ("times", self.times.is_some_and(|times| times > 1)),
            ("strided", self.strided.is_some()),
            ("start", self.start.is_some()),
        ];
        for (key, _) in others.into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{interleaved}} has several positions at once, and {{{key}}} is about one; type one of them"
            );
            found.push(Problem::new(&["interleaved", key], message));
        }
    }

    fn check_positions(&self, found: &mut Vec<Problem>) {
        if self.positions.is_none() {
            return;
        }
        let way = self.way();
        if !way.is_mixed() {
            let message = format!(
                "{{positions}} is about several directions, and {{rw {}}} has one; type {{rw rw}}, or leave {{positions}} out",
                way.word()
            );
            found.push(Problem::new(&["positions", "rw"], message));
        } else if way.is_random()
            && !matches!(self.random, Some(Order::Mixed(_) | Order::MixedEach(_)))
            && self.consecutive.unwrap_or(1) < 2
            && self.run_length.is_none()
        {
            let message = "{positions} says where an operation goes on, and here each is at a random offset; type {rw rw} or {consecutive 8}, or leave {positions} out";
            found.push(Problem::new(&["positions", "rw"], message.into()));
        } else if matches!(self.positions, Some(Positions::Own | Positions::OwnRestart))
            && self.start == Some(Start::Interlocked)
        {
            let message = "{start interlocked} has one position for all workers and directions; type another {start}, or {positions shared}";
            found.push(Problem::new(&["positions", "start"], message.into()));
        }
    }
}
