//! What cannot be said of bursts and the pauses between them.
//!
//! For: `think-spin` and `burst-time` beside other keys. Not for: rates ([`super`]).

use super::super::{Rw, StreamSpec};
use super::Problem;
use crate::job::ThinkLaw;

impl StreamSpec {
    /// What else says when bursts begin.
    fn check_period(&self, found: &mut Vec<Problem>) {
        let others = [
            ("think", self.think.is_some()),
            ("limit-iops", self.limit_iops.is_some()),
            ("limit-bandwidth", self.limit_bandwidth.is_some()),
            ("times", self.times.is_some_and(|times| times > 1)),
        ];
        for (key, _) in others.into_iter().filter(|(_, said)| *said && self.period.is_some()) {
            let message = format!(
                "{{period}} says when bursts begin, and {{{key}}} does not leave it that; leave one of them out"
            );
            found.push(Problem::new(&["period", key], message));
        }
    }

    pub(super) fn check_bursts(&self, found: &mut Vec<Problem>) {
        for (key, said) in [("think-spin", self.think_spin), ("burst-time", self.burst_time)] {
            if said.is_some() && self.think.is_none() {
                let message =
                    format!("{{{key}}} is about a pause; type {{think}} too, or leave {{{key}}} out");
                found.push(Problem::new(&[key], message));
            }
        }
        if self.think_spin.zip(self.think.as_ref()).is_some_and(|(spin, think)| spin > think.mean_ns) {
            let message = "{think-spin} is a part of {think}, and longer; type a shorter one";
            found.push(Problem::new(&["think-spin", "think"], message.into()));
        }
        self.check_period(found);
        if self.burst_time.is_none() {
            return;
        }
        if self.think.as_ref().is_some_and(|think| think.law != ThinkLaw::Fixed) {
            let message = "{burst-time} has pauses of one length; type {think} as a duration, such as 100us";
            found.push(Problem::new(&["think", "burst-time"], message.into()));
        }
        let beside = [
            ("limit-iops", self.limit_iops.is_some()),
            ("limit-bandwidth", self.limit_bandwidth.is_some()),
            ("flow", self.flow.is_some()),
            ("serialize-overlap", self.serialize_overlap == Some(true)),
            ("latency-target", self.latency_target.is_some()),
            ("rw", matches!(self.rw, Some(Rw::Trimwrite | Rw::Randtrimwrite))),
        ];
        for (key, _) in beside.into_iter().filter(|(_, said)| *said) {
            let message = format!(
                "{{{key}}} holds operations back by itself, and {{burst-time}} knows only its own pauses; type {{burst}}, or leave one of them out"
            );
            found.push(Problem::new(&[key, "burst-time"], message));
        }
    }
}
