//! Counters: what the devices, the machine and others did since the last look at a run that goes on.
//!
//! For: the same judgement that is made of a whole run, of a stretch of it: device, pressure, traffic of others. Not for: reading
//! the counters (crate `machine`), nor for a finding, which is made when the run is over.

use crate::case::{self, Case};
use crate::device_series::Course;
use crate::pressure;
use crate::strategy::disturbed::{Foreign, foreign};
use model::Known;
use model::evidence::{Moment, Snapshot};
use model::job::Kind;
use model::machine::Machine;
use model::plan::Plan;
use model::record::{Disturbance, Header, Issued, Record, Run, RunEnd, RunEnding, RunStart, StreamEnd};

/// A session of which one run goes on.
pub struct Going {
    record: Record,
    /// The counters at its start, as far as they are looked at again.
    first: Option<Snapshot>,
    last: Option<Snapshot>,
    /// What others had done by the last look, by disk.
    others: Vec<Foreign>,
}

/// What was counted between two looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The devices that the file systems talk to, or why they were not counted.
    pub device: Known<Device>,
    /// Share of the time in which a task of the machine waited for I/O, for a CPU and for memory, or why that was not counted.
    pub pressure: [Known<f64>; 3],
    /// What others do, where it is enough to disturb a run; or why it cannot be told from what is ours.
    pub others: Known<Option<Disturbance>>,
}

/// What the devices below the targets did.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Their kernel names.
    pub name: String,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean time of a request in ns; `None` where none completed.
    pub latency_ns: Option<f64>,
    /// Mean requests in flight.
    pub in_flight: f64,
}

/// What workers have handed in since the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// Operations of all streams.
    pub ops: u64,
    /// Bytes by kind.
    pub bytes: [u64; Kind::ALL.len()],
}

impl Going {
    /// Of a plan on a machine.
    pub fn new(plan: &Plan, machine: &Machine) -> Self {
        let header = Header {
            format: model::record::FORMAT,
            version: String::new(),
            started: String::new(),
            plan: plan.clone(),
            hosts: vec![machine.clone()],
            clock: model::record::Clock { name: String::new(), reason: None, cost_ps: 0 },
            self_test: model::record::SelfTest::default(),
        };
        Self { record: Record::new(header), first: None, last: None, others: Vec::new() }
    }

    /// A run begins, with the counters at its start.
    pub fn begin(&mut self, start: RunStart, first: Snapshot) {
        let run = Run { start, intervals: Vec::new(), evidence: Vec::new(), end: None, disturbed: None };
        self.record.runs = vec![run];
        (self.first, self.last) = (Some(first.clone()), Some(first));
        self.others.clear();
    }

    /// What was counted since the last look; `None` where no run goes on or no time has passed.
    pub fn sample(&mut self, now: Snapshot, so_far: &SoFar) -> Option<Counted> {
        let (first, last) = (self.first.clone()?, self.last.replace(now.clone())?);
        if now.at_ns <= last.at_ns {
            return None;
        }
        self.between(last, now.clone());
        let (device, pressure) = {
            let case = self.case()?;
            let waited = |file: &str| pressure::waited(&case, file);
            (device(&case), [pressure::IO, pressure::CPU, pressure::MEMORY].map(waited))
        };
        self.between(first, now);
        Some(Counted { device, pressure, others: self.others(so_far) })
    }

    /// Makes the run the one between two looks.
    fn between(&mut self, from: Snapshot, to: Snapshot) {
        let Some(run) = self.record.runs.first_mut() else { return };
        run.evidence =
            vec![Snapshot { moment: Moment::Start, ..from }, Snapshot { moment: Moment::Stop, ..to }];
        let planned = self.record.header.plan.jobs.get(run.start.job);
        let streams = planned.and_then(|j| j.phases.get(run.start.phase)).map_or(0, |p| p.streams.len());
        let streams = (0..streams).map(|stream| StreamEnd { stream, ..StreamEnd::default() }).collect();
        run.end = Some(RunEnd { streams, ..RunEnd::without(RunEnding::Complete) });
    }

    /// The case of it whose stream moves data, since devices do not know streams.
    fn case(&self) -> Option<Case<'_>> {
        let start = &self.record.runs.first()?.start;
        let mut cases = case::of_job(&self.record, start.job);
        cases.retain(|c| c.phase == start.phase);
        let moves = cases.iter().position(|c| !c.stream.moves_no_data()).unwrap_or(0);
        (moves < cases.len()).then(|| cases.swap_remove(moves).of_phase())
    }

    /// What others do now: what they had done by this look and not by the one before.
    fn others(&mut self, so_far: &SoFar) -> Known<Option<Disturbance>> {
        if so_far.ops == 0 {
            return Err("no operation was counted yet".into());
        }
        self.issue(so_far)?;
        let case = self.case().ok_or("the run is of no job of the plan")?;
        if !case.on_device() {
            return Ok(None);
        }
        // What is handed in comes later than what is counted, so nothing may be inferred from it.
        case.own()?;
        let (mut all, mut unknown) = (Vec::new(), None);
        for disk in foreign(&case) {
            match disk {
                Ok(disk) => all.push(disk),
                Err(why) => unknown = unknown.or(Some(why)),
            }
        }
        let before = std::mem::replace(&mut self.others, all);
        let now = self.others.iter().find_map(|disk| disk.since(&before).disturbs());
        match (now, unknown) {
            (None, Some(why)) => Err(why),
            (now, _) => Ok(now),
        }
    }

    /// Has the run issued the bytes that were handed in, and as many operations as the devices completed requests: whether
    /// operations were split is told of whole runs alone.
    fn issue(&mut self, so_far: &SoFar) -> Known<()> {
        let (at, device) = {
            let case = self.case().ok_or("the run is of no job of the plan")?;
            if !case.on_device() {
                return Ok(());
            }
            (case.index, case.device()?)
        };
        let ends = self.record.runs.first_mut().and_then(|r| r.end.as_mut());
        let stream = ends.and_then(|e| e.streams.get_mut(at)).ok_or("the run has no such stream")?;
        for (kind, flow) in [(Kind::Read, device.read), (Kind::Write, device.write)] {
            let bytes = so_far.bytes[kind as usize];
            stream.issued.insert(kind, Issued { ops: flow.ios, bytes, ..Issued::default() });
        }
        Ok(())
    }
}

fn device(case: &Case) -> Known<Device> {
    let tops = case.tops()?;
    let run = case.runs.first().ok_or_else(case::no_run)?;
    let done = Course::from_run(run, &tops)?.between(0.0, f64::INFINITY).ok_or("no time has passed")?;
    let names: Vec<&str> = tops.iter().map(|l| l.name.as_str()).collect();
    Ok(Device {
        name: names.join(" and "),
        iops: done.ios / done.seconds,
        bytes_per_s: done.bytes / done.seconds,
        latency_ns: done.latency_ns,
        in_flight: done.in_flight,
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Looks at the one run of a forged record when it is over.
#[cfg(test)]
fn seen(fixture: &Fixture, so_far: &SoFar) -> Counted {
    let mut record = Fixture { runs: 1, ..fixture.clone() }.record();
    crate::pressure::fixture(&mut record, crate::pressure::IO, 0.25);
    let run = record.runs.remove(0);
    let mut going = Going::new(&record.header.plan, &record.header.hosts[0]);
    assert_eq!(going.sample(run.evidence[1].clone(), so_far), None, "no run goes on");
    going.begin(run.start, run.evidence[0].clone());
    assert_eq!(going.sample(run.evidence[0].clone(), so_far), None, "no time has passed");
    let mut now = run.evidence[1].clone();
    now.files.remove(crate::pressure::MEMORY);
    going.sample(now, so_far).unwrap()
}

#[test]
fn a_stretch_of_a_run_is_judged_as_a_whole_one_is() {
    // As in the middle of a run: a tenth of it was handed in.
    let so_far = SoFar { ops: 1_000, bytes: [4_096_000, 0, 0, 0] };
    let counted = seen(&Fixture::honest(), &so_far);
    let device = counted.device.unwrap();
    assert_eq!((device.name.as_str(), device.iops.round() > 9_000.0), ("vda", true), "{device:?}");
    assert!(counted.pressure[0].as_ref().is_ok_and(|s| (s - 0.25).abs() < 1e-3));
    assert!(counted.pressure[2].is_err(), "missing is no zero: {:?}", counted.pressure);
    assert_eq!(counted.others, Ok(None));
    let disturbed = seen(&Fixture { foreign_ios: 5_000, ..Fixture::honest() }, &so_far);
    let words = disturbed.others.unwrap().map(|d| d.describe()).unwrap_or_default();
    assert!(words.contains("of others on vda"), "{words}");
}

#[test]
fn what_is_not_charged_apart_is_not_told_apart() {
    let so_far = SoFar { ops: 1_000, bytes: [4_096_000, 0, 0, 0] };
    let without = seen(&Fixture { cgroup: false, foreign_ios: 5_000, ..Fixture::honest() }, &so_far);
    assert!(without.others.is_err() && without.device.is_ok());
    assert!(
        seen(&Fixture::honest(), &SoFar::default()).others.is_err_and(|why| why.contains("no operation"))
    );
    assert!(seen(&Fixture { stat_unreadable: true, ..Fixture::honest() }, &so_far).device.is_err());
}
