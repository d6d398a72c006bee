//! Following a run: what goes on beside its workers until they have ended.
//!
//! For: taking over what they hand in, looking at devices, and telling whoever watches. Not for: what is done with it
//! ([`crate::collector`]), nor for what ends a stream ([`super::ends`]).

use super::ends::Ends;
use super::still::StillWatch;
use super::{COLLECT_EVERY, Measurement};
use crate::collector::Collector;
use crate::failure::Failure;
use engine::workers::Workers;
use model::Known;
use model::evidence::Snapshot;
use model::record::Still;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often device counters are read inside a window.
const EVIDENCE_EVERY: Duration = Duration::from_millis(500);

/// How often the rows of hosts are made where somebody watches.
const SHOW_HOSTS_EVERY: Duration = Duration::from_millis(500);

impl Measurement {
    /// Takes over what workers hand in until all have ended, keeps device counters, and shows how far it is. How a stream goes, and its
    /// end, may end it or all. Gives the reason where one of them is stuck or too slow.
    pub(super) fn follow(
        &mut self,
        (workers, ends): (&mut Workers, &mut Ends),
        collector: &mut Collector,
        mut last: Snapshot,
        (opened, total): (Instant, Duration),
    ) -> Result<(Option<String>, Option<Known<Still>>), Failure> {
        self.early_begins();
        let watch = StillWatch::begin();
        let mut recent = self.live.recent(collector.interval_ns());
        let all = self.left();
        let shown = Cell::new(Instant::now());
        while !workers.is_done() {
            std::thread::sleep(COLLECT_EVERY);
            workers.collect(|who, block| {
                collector.add(who, block);
                ends.add(who, block);
                if let Some(recent) = &mut recent {
                    recent.add(who, block);
                }
            });
            workers.take_logged(|who, operations| self.op_log.take(who, operations));
            ends.act(workers);
            if let (Some(driver), [above]) = (&mut self.driver, collector.streams_mut()) {
                driver.follow(above);
            }
            if self.stopped() || workers.any_failed() || self.op_log.full().is_some() {
                workers.stop();
            }
            if let Some(why) = workers.stuck() {
                return Ok((Some(why), Some(watch.end())));
            }
            let at = opened.elapsed();
            if Duration::from_nanos(self.now_ns() - last.at_ns) >= EVIDENCE_EVERY && at < total {
                self.keep_during(&mut last)?;
                self.keep_rows(collector, at.as_nanos().saturating_sub(1_000_000_000) as u64)?;
            }
            let told = self.fleet.progress(collector.operations(), || collector.p99_ns());
            for words in &told {
                self.live.tell(words);
            }
            self.show_hosts(&shown);
            self.tell_early(collector, at);
            self.live.tick(all.after(at));
            if let Some(recent) = &mut recent {
                self.live.pulse(recent);
            }
        }
        Ok((ends.failure(), Some(watch.end())))
    }

    /// Shows how far each host is, where several measure and somebody watches: not sooner than some time after it was shown last.
    pub(super) fn show_hosts(&self, shown: &Cell<Instant>) {
        if self.live.is_viewed() && shown.get().elapsed() >= SHOW_HOSTS_EVERY {
            shown.set(Instant::now());
            self.fleet.rows().into_iter().for_each(|(rows, all)| self.live.hosts(rows, all));
        }
    }

    /// CPU time of the process in user space and in the kernel, in ns, without that of whoever watches.
    pub(super) fn cpu_ns(&self) -> Option<[u64; 2]> {
        let (all, view) = (sys::thread::usage_of_process().ok()?, self.live.cpu_ns());
        Some([all.user_ns.saturating_sub(view[0]), all.system_ns.saturating_sub(view[1])])
    }
}
