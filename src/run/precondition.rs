//! Preconditioning: writes everything that the jobs touch, from end to end, then runs the writing jobs in rounds until their rates settle.
//!
//! The targets then are in their long-term state. [`crate::plan::settings`] plans the
//! preconditioning; crate `stats` decides whether a rate has settled.

use super::{COLLECT_EVERY, Measurement, interval_ns};
use crate::failure::Failure;
use crate::run::collector::Collector;
use crate::run::stop_rules::{StopRules, latency_violation};
use analysis::strategy::rate;
use engine::workers::Workers;
use model::errno;
use model::job::{Cache, Kind, Phase, StopRule, Stream};
use model::plan::Precondition;
use model::record::{Frame, Preconditioned, Rounds, RunEnd, RunEnding, StreamEnd};
use model::spec::number::MAX_TIME_NS;
use model::units::show_bytes;
use stats::steady_state::is_settled;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Serial number of the first preconditioning phase. It is higher than that of any run, so that no run writes the same data or uses the
/// same offsets.
const FIRST_NUMBER: usize = 1 << 23;

/// Why a step did not finish.
enum EarlyEnd {
    /// The session ends, and keeps its observations.
    Ended(RunEnding),
    /// The measurement cannot continue: the session file or a target cannot be used.
    Failed(Failure),
}

impl From<Failure> for EarlyEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Measurement {
    /// Runs the planned preconditioning and records it. Returns how the session ends if a step fails or is interrupted; otherwise `None`.
    pub(super) fn precondition(&mut self) -> Result<Option<RunEnding>, Failure> {
        let Some(planned) = &self.plan.precondition else { return Ok(None) };
        let mut done = Preconditioned::default();
        match self.fill(planned, &mut done).and_then(|()| self.rounds(planned, &mut done)) {
            Ok(()) => {}
            Err(EarlyEnd::Ended(ending)) => return Ok(Some(ending)),
            Err(EarlyEnd::Failed(failure)) => return Err(failure),
        }
        self.session.append(&Frame::Preconditioned(done))?;
        Ok(None)
    }

    /// Writes everything that the jobs touch, from end to end, as often as planned.
    fn fill(&self, planned: &Precondition, done: &mut Preconditioned) -> Result<(), EarlyEnd> {
        let began = Instant::now();
        for (number, fill) in planned.fills.iter().enumerate() {
            let stream = self.adapt_fill(fill, planned.passes, &mut done.notes)?;
            let bytes = stream.limit.bytes.unwrap_or(0);
            self.live.begin(&format!("preconditioning: writing {} from end to end", show_bytes(bytes)));
            let phase = Phase { warmup_ns: 0, time_ns: MAX_TIME_NS, cooldown_ns: 0, streams: vec![stream] };
            done.filled_bytes += written(&self.run_for_totals(&phase, 0, number)?);
        }
        self.make_writes_stable()?;
        done.filled_ns = began.elapsed().as_nanos() as u64;
        Ok(())
    }

    /// Adapts the planned write stream to the size of the prepared target, and to a target that refuses direct I/O.
    fn adapt_fill(&self, fill: &Stream, passes: u32, notes: &mut Vec<String>) -> Result<Stream, Failure> {
        let mut stream = fill.clone();
        for ready in fill.targets.iter().map(|t| &self.targets[*t]) {
            let span = ready.bytes().saturating_sub(fill.access.offset_bytes).min(fill.access.span_bytes);
            let block = u64::from(fill.access.largest_bytes());
            // A pass ends when no whole block fits any more. The next one begins again at the first byte.
            let pass = span - span % block.max(1);
            stream.limit =
                StopRule { bytes: Some(pass.saturating_mul(u64::from(passes))), ..StopRule::default() };
            if ready.refuses_direct(&self.root, fill.cache)? {
                stream.cache = Cache::Buffered;
                notes.push(
                    "preconditioning wrote through the page cache: the target refuses direct I/O".into(),
                );
            }
        }
        Ok(stream)
    }

    /// Runs the writing jobs in rounds until all their rates have settled, or the round limit is reached.
    fn rounds(&self, planned: &Precondition, done: &mut Preconditioned) -> Result<(), EarlyEnd> {
        if planned.jobs.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        done.rounds = planned.jobs.iter().map(|job| Rounds { job: *job, iops: Vec::new() }).collect();
        let mut failed_reads: BTreeMap<i32, u64> = BTreeMap::new();
        for round in 0..planned.rounds_at_most {
            for at in 0..done.rounds.len() {
                let job = done.rounds[at].job;
                let name = &self.plan.jobs[job].name;
                let most = planned.rounds_at_most;
                self.live.step(
                    &format!("preconditioning: round {} of at most {most}  {name}", round + 1),
                    self.remaining(),
                );
                let number = planned.fills.len() + round as usize * planned.jobs.len() + at;
                let mut ends = Vec::new();
                let phases = self.plan.jobs[job].phases.iter().enumerate();
                for (index, phase) in phases.filter(|(_, phase)| !reads_back(phase)) {
                    let streams = self.run_for_totals(phase, index, number)?;
                    for failed in failed_operations_of(&streams).filter(|failed| failed.kind == Kind::Read) {
                        *failed_reads.entry(failed.errno).or_default() += failed.count;
                    }
                    ends.push(RunEnd { streams, ..RunEnd::without(RunEnding::Complete) });
                }
                done.rounds_bytes += ends.iter().map(|e| written(&e.streams)).sum::<u64>();
                done.rounds[at].iops.push(rate(ends.iter()));
            }
            if done.rounds.iter().all(|r| is_settled(&r.iops)) {
                break;
            }
        }
        self.make_writes_stable()?;
        done.rounds_ns = began.elapsed().as_nanos() as u64;
        done.settled = Some(done.rounds.iter().all(|r| is_settled(&r.iops)));
        let failed_reads = failed_reads.into_iter().map(|(errno, count)| FailedOperations {
            kind: Kind::Read,
            errno,
            count,
        });
        done.notes.extend(failed_reads.map(|failed| format!("preconditioning: {}", failed.describe())));
        Ok(())
    }

    /// Runs a phase only for its totals. `index` is its index in the job. No two calls may have the same `index` and `number`.
    fn run_for_totals(&self, phase: &Phase, index: usize, number: usize) -> Result<Vec<StreamEnd>, EarlyEnd> {
        self.targets_may_be_used(phase)?;
        let number = FIRST_NUMBER + number;
        // The index of the job, here 0, matters only for several hosts, which do not precondition.
        let specs = self.specs(None, phase, 0, index, number, number)?;
        let mut workers = Workers::spawn(specs).map_err(|why| failed_ending(&why.sentence))?;
        let mut collector = Collector::new(phase.streams.len(), interval_ns(phase));
        workers.open();
        // Rules that end a stream of the job apply here too.
        let mut stop_rules = StopRules::for_phase(phase);
        let stuck = self.follow_for_totals(&mut workers, &mut stop_rules, &mut collector, phase);
        workers.collect(|id, block| collector.add(id, block));
        let outcomes = workers.finish();
        let failure = stuck.or_else(|| outcomes.iter().find_map(|(_, o)| o.error.clone()));
        for (id, outcome) in &outcomes {
            collector.add_outcome(*id, outcome);
        }
        let streams = collector.finish();
        let failure = failure.or_else(|| failed_changes(&streams));
        match failure.or_else(|| latency_violation(phase, &streams)) {
            Some(why) => Err(failed_ending(&why)),
            None if self.is_stopped() => Err(EarlyEnd::Ended(RunEnding::Interrupted)),
            None => Ok(streams),
        }
    }

    /// Receives the workers' blocks until all workers have ended, and shows progress. Returns why the phase failed: a worker is stuck, or a
    /// stream missed its minimum rate. `None` if it did not fail.
    fn follow_for_totals(
        &self,
        workers: &mut Workers,
        stop_rules: &mut StopRules,
        collector: &mut Collector,
        phase: &Phase,
    ) -> Option<String> {
        let began = Instant::now();
        let mut recent = self.live.collect_recent(collector.interval_ns());
        while !workers.is_done() {
            std::thread::sleep(COLLECT_EVERY);
            workers.collect(|id, block| {
                collector.add(id, block);
                stop_rules.add(id, block);
                if let Some(recent) = &mut recent {
                    recent.add(id, block);
                }
            });
            stop_rules.apply(workers);
            // The time series is not stored.
            let _ = collector.take_intervals(u64::MAX);
            if self.is_stopped() || workers.any_failed() {
                workers.stop();
            }
            if let Some(why) = workers.find_stuck() {
                return Some(why);
            }
            let share = share_done(phase, collector.streams_mut(), began.elapsed());
            let mut left = self.remaining();
            left.time += began.elapsed().mul_f64(1.0 / share.max(1e-6) - 1.0);
            self.live.tick(left);
            if let Some(recent) = &mut recent {
                self.live.show_recent(recent);
            }
        }
        stop_rules.failure()
    }

    /// Makes the writes stable, so that runs begin with nothing left to write back.
    fn make_writes_stable(&self) -> Result<(), EarlyEnd> {
        for (ready, target) in self.targets.iter().zip(&self.plan.targets) {
            if let Some(Err(e)) = ready.handle().map(std::fs::File::sync_data) {
                return Err(failed_ending(&format!("{} could not be synced: {e}", target.path)));
            }
        }
        if let Some((target, errno)) = self.close_errors.take().first() {
            return Err(failed_ending(&format!(
                "closing {} failed with {}",
                self.path_of(*target),
                errno::describe_errno(*errno)
            )));
        }
        Ok(())
    }
}

fn failed_ending(why: &str) -> EarlyEnd {
    EarlyEnd::Ended(RunEnding::Failed(format!("preconditioning: {why}")))
}

/// Returns whether a phase reads back what the phase before it wrote. Such a phase changes nothing,
/// and ends only when it has read all of these data.
pub(super) fn reads_back(phase: &Phase) -> bool {
    phase.streams.iter().any(|stream| stream.reads_back().is_some())
}

/// Returns the written bytes, including warm-up and drain.
fn written(ends: &[StreamEnd]) -> u64 {
    ends.iter().filter_map(|e| e.issued.get(&Kind::Write)).map(|i| i.bytes).sum()
}

/// Operations of one kind that failed with the same error.
struct FailedOperations {
    kind: Kind,
    errno: i32,
    count: u64,
}

impl FailedOperations {
    /// Returns a phrase such as `3 trims failed with EIO, input/output error`.
    fn describe(&self) -> String {
        let plural = if self.count == 1 { "" } else { "s" };
        let (kind, error) = (self.kind.word(), errno::describe_errno(self.errno));
        format!("{} {kind}{plural} failed with {error}", self.count)
    }
}

/// Returns the failed operations of all streams.
fn failed_operations_of(streams: &[StreamEnd]) -> impl Iterator<Item = FailedOperations> {
    let issued = streams.iter().flat_map(|stream| &stream.issued);
    issued.flat_map(|(kind, issued)| {
        issued.errors.iter().map(|(errno, count)| FailedOperations {
            kind: *kind,
            errno: *errno,
            count: *count,
        })
    })
}

/// Describes the first failed operations other than reads; `None` if there are none. After failed writes, trims or syncs, runs would
/// measure data that preconditioning did not write. Failed reads only become a note.
fn failed_changes(streams: &[StreamEnd]) -> Option<String> {
    failed_operations_of(streams).find(|failed| failed.kind != Kind::Read).map(|failed| failed.describe())
}

/// Progress of a phase from 0 to 1: by time or by the byte limit of a stream, whichever is further.
fn share_done(phase: &Phase, streams: &[StreamEnd], elapsed: Duration) -> f64 {
    let total = (phase.warmup_ns + phase.time_ns + phase.cooldown_ns) as f64;
    let by_time = elapsed.as_nanos() as f64 / total.max(1.0);
    let bytes = |e: &StreamEnd| e.kinds.values().map(|k| k.bytes).sum::<u64>() as f64;
    let limits =
        phase.streams.iter().zip(streams).filter_map(|(s, e)| Some(bytes(e) / s.limit.bytes? as f64));
    limits.fold(by_time, f64::max).clamp(0.0, 1.0)
}

#[test]
fn progress_is_measured_by_the_stop_rule() {
    use model::job::{Access, Pattern};
    use model::record::KindEnd;
    let stream = Stream::plain(Access::plain(Pattern::Sequential, 4096, 0), 1, 1, "sync");
    let mut phase = Phase { warmup_ns: 0, time_ns: 10_000, cooldown_ns: 0, streams: vec![stream] };
    let kinds = [(Kind::Write, KindEnd { bytes: 750, ..KindEnd::default() })].into();
    let ends = [StreamEnd { kinds, ..StreamEnd::default() }];
    let near = |got: f64, known: f64| assert!((got - known).abs() < 1e-9, "{got} {known}");
    near(share_done(&phase, &ends, Duration::from_nanos(2_500)), 0.25);
    phase.streams[0].limit.bytes = Some(1_000);
    near(share_done(&phase, &ends, Duration::from_nanos(2_500)), 0.75);
    near(share_done(&phase, &ends, Duration::from_secs(1)), 1.0);
}

#[test]
fn failed_operations_are_named_by_their_kind() {
    use model::record::Issued;
    let failed = |kind, count| {
        let issued = [(kind, Issued { errors: [(5, count)].into(), ..Issued::default() })].into();
        failed_changes(&[StreamEnd { issued, ..StreamEnd::default() }])
    };
    let described = |text: &str| Some(format!("{text} failed with EIO, input/output error"));
    assert_eq!(failed(Kind::Trim, 1), described("1 trim"));
    assert_eq!(failed(Kind::Trim, 3), described("3 trims"));
    assert_eq!(failed(Kind::Sync, 2), described("2 syncs"));
    assert_eq!(failed(Kind::Write, 2), described("2 writes"));
    assert_eq!(failed(Kind::Read, 2), None, "reads change no data");
}
