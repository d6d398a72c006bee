//! Runs the checks that need only facts about a target and its idle machine, for `fathom doctor`.
//!
//! Two snapshots with a pause between them become a record of two jobs that did nothing in that time. Both would read and
//! write the whole target: one with direct I/O, the other through the page cache. The checks judge this record.

use crate::case;
use crate::checks::{self, Answer, Answers};
use crate::figures::kernel_text::{busy_ticks, stolen_ticks};
use crate::findings::NEED_NO_RUN;
use model::Known;
use model::evidence::{Extents, Moment, Snapshot};
use model::finding::{CheckId, DoctorAnswer, Outcome};
use model::job::{Access, Cache, Flush, Job, Pattern, Phase, Stream, SyncCall};
use model::machine::Machine;
use model::plan::{MAKING_NS, Plan, Role, Target};
use model::record::{Clock, Header, Record, Run, RunEnd, RunEnding, RunStart, SelfTest, StreamEnd};
use model::study::Study;

pub use crate::checks::{EXPENSIVE_CLOCK_PS, severity_of_cached_share};

/// The cache modes of the two jobs, by their index.
const CACHES: [Cache; 2] = [Cache::Direct, Cache::Buffered];
/// The check that needs the buffered job: read-ahead matters only for reads through the page cache.
const NEEDS_BUFFERED_JOB: CheckId = CheckId::D22;
/// Operation size of the jobs: a multiple of every physical block.
const BLOCK_BYTES: u32 = 1 << 20;

/// A target and its machine, observed twice.
pub struct Idle {
    record: Record,
}

impl Idle {
    /// Creates the record. `machine` has a single place, that of the target. The target has `bytes` bytes. The later
    /// snapshot has the state of the target.
    pub fn new(machine: Machine, role: Role, bytes: u64, [start, end]: [&Snapshot; 2]) -> Self {
        let path = machine.places.first().map(|place| place.path.clone()).unwrap_or_default();
        let mut targets = end.targets.clone();
        if role == Role::Made {
            // The test file does not exist yet, and the extents of a directory mean nothing.
            for target in &mut targets {
                target.extents = Some(Ok(Extents::default()));
            }
        }
        let at = |moment, from: &Snapshot| Snapshot { moment, targets: targets.clone(), ..from.clone() };
        let run = |job| Run {
            start: RunStart {
                job,
                phase: 0,
                repeat: 0,
                attempt: 0,
                offered_iops: None,
                host: 0,
                at_ns: start.at_ns,
                target_bytes: vec![bytes],
            },
            intervals: Vec::new(),
            evidence: vec![at(Moment::Start, start), at(Moment::Stop, end), at(Moment::Synced, end)],
            end: Some(RunEnd {
                at_ns: end.at_ns,
                streams: vec![StreamEnd::default()],
                sync_ns: Some(0),
                ..RunEnd::without(RunEnding::Complete)
            }),
            disturbed: None,
        };
        let plan = plan(target(path, role, bytes), CACHES.map(|cache| job(cache, bytes)).into());
        let evidence = vec![at(Moment::AfterPrepare, end)];
        let runs = (0..CACHES.len()).map(run).collect();
        Self { record: Record { evidence, runs, ..empty_record(plan, machine) } }
    }

    /// Returns the answer of a check, or `None` if the check does not apply to the target.
    pub fn answer(&self, about: &str, id: CheckId) -> Option<DoctorAnswer> {
        let check = checks::all().find(|check| check.id == id)?;
        let mut case =
            case::cases_of_job(&self.record, usize::from(id == NEEDS_BUFFERED_JOB)).into_iter().next()?;
        if NEED_NO_RUN.contains(&id) {
            case = case.with_runs([]);
        }
        let line = match check.ask(&case, &Answers::new()) {
            Ok(Answer::DoesNotApply) => return None,
            Ok(Answer::Holds(sentence, _)) => DoctorAnswer::ok(about, sentence),
            Ok(Answer::Finding(found)) => {
                let fix = as_item(&found.fix.unwrap_or_else(|| check.fix.to_owned()));
                DoctorAnswer::finding(about, found.severity, found.sentence).with_fix(fix)
            }
            Ok(Answer::Undecided(why)) | Err(why) => DoctorAnswer::unknown(about, why),
        };
        Some(if line.outcome == Outcome::Holds { line } else { line.check(id) })
    }

    /// Returns the share of all CPU time that programs of this machine used between the snapshots.
    ///
    /// # Errors
    /// Fails if the kernel does not count it, or no tick passed.
    pub fn used_cpu_share(&self) -> Known<f64> {
        let ticks = |moment| -> Known<([u64; 2], [u64; 2])> {
            let taken = self.record.runs.iter().flat_map(|run| &run.evidence).find(|s| s.moment == moment);
            let snapshot = taken.ok_or("a snapshot of the idle machine is missing")?;
            Ok((busy_ticks(snapshot)?, stolen_ticks(snapshot)?))
        };
        let ((busy_before, stolen_before), (busy, stolen)) = (ticks(Moment::Start)?, ticks(Moment::Stop)?);
        let [busy, all] = [0, 1].map(|i| busy[i].saturating_sub(busy_before[i]));
        let stolen = stolen[0].saturating_sub(stolen_before[0]);
        if all == 0 {
            return Err("/proc/stat did not change".into());
        }
        Ok(busy.saturating_sub(stolen) as f64 / all as f64)
    }
}

/// Returns a job that reads and writes the whole target and makes each write stable.
fn job(cache: Cache, bytes: u64) -> Job {
    let access = Access { span_bytes: bytes, ..Access::plain(Pattern::Sequential, BLOCK_BYTES, 50) };
    let flush = Some(Flush { call: SyncCall::Fdatasync, every: 1, calls: 1, drain: false });
    let stream = Stream { cache, flush, ..Stream::plain(access, 1, 1, "io_uring") };
    let phase = Phase { warmup_ns: 0, time_ns: 0, cooldown_ns: 0, streams: vec![stream] };
    Job { name: cache.word().into(), phases: vec![phase] }
}

/// Writes a fix as an item of a list: `wait until ...`.
fn as_item(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Returns a record without runs, of a plan on a machine.
pub(crate) fn empty_record(plan: Plan, machine: Machine) -> Record {
    Record::new(Header {
        format: model::record::FORMAT,
        version: String::new(),
        started: String::new(),
        plan,
        hosts: vec![machine],
        clock: Clock { name: String::new(), reason: None, cost_ps: 0 },
        self_test: SelfTest::default(),
    })
}

/// Returns a writable target with blocks of 512 bytes.
pub(crate) fn target(path: String, role: Role, bytes: u64) -> Target {
    Target { block_bytes: 512, writable: true, ..Target::new(path, role, bytes) }
}

/// Returns a plan of one run of each job, without a study.
pub(crate) fn plan(target: Target, jobs: Vec<Job>) -> Plan {
    Plan {
        targets: vec![target],
        jobs,
        attempts: 3,
        seed: 1,
        cold: true,
        making_ns: MAKING_NS,
        ..Plan::new(vec!["fathom".into()], "run", Study::Jobs)
    }
}
