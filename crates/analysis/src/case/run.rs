//! One complete run of a case: what its stream did, what the kernel and the devices counted meanwhile, and how its targets are stored.
//!
//! A run has snapshots at several moments (`Start`, `Stop`, `Synced`, ...). A count is the difference between two of them. The case adds
//! the counts of its runs up.

use crate::case::{Case, no_run};
use model::Known;
use model::evidence::{
    BlockStat, CgroupIo, Extents, Moment, Probe, Snapshot, TargetState, cgroup_v1, cgroup_v2,
};
use model::fleet::Part;
use model::job::{Kind, Stream};
use model::machine::{Cgroup, Layer, Place};
use model::record::{Run, RunEnd, StreamEnd};

/// One complete run of a case.
#[derive(Clone, Copy)]
pub struct CaseRun<'a> {
    /// The run with its snapshots.
    pub run: &'a Run,
    /// How the run ended.
    pub end: &'a RunEnd,
    /// The end of this case's stream.
    pub stream: &'a StreamEnd,
    /// The planned streams of its phase.
    planned: &'a [Stream],
    /// Other ranks of the measurement on this kernel, whose requests its counters include.
    neighbours: u32,
}

/// Operations and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Operations.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { ops: self.ops.saturating_add(other.ops), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl<'a> CaseRun<'a> {
    pub(super) fn new(run: &'a Run, index: usize, planned: &'a [Stream], part: Option<Part>) -> Option<Self> {
        let end = run.end.as_ref()?;
        let stream = end.streams.iter().find(|s| s.stream == index)?;
        Some(Self { run, end, stream, planned, neighbours: part.map_or(0, |part| part.neighbours) })
    }

    /// Whether reads and writes of a stream move data.
    fn moves_data(&self, stream: &StreamEnd) -> bool {
        self.planned.get(stream.stream).is_none_or(|planned| !planned.moves_no_data())
    }

    /// The snapshot at a moment of this run.
    ///
    /// # Errors
    /// If there is none.
    pub fn at(&self, moment: Moment) -> Known<&'a Snapshot> {
        let found = self.run.evidence.iter().find(|s| s.moment == moment);
        found.ok_or_else(|| {
            format!("run {} has no snapshot at its {}", self.run.start.repeat.saturating_add(1), word(moment))
        })
    }

    /// ns in which operations could be in flight between the snapshots at start and stop: from the first worker's first time stamp to the
    /// last worker's last. Starting and joining threads also lies between the snapshots, and would lower the mean depth of the device.
    ///
    /// # Errors
    /// If no worker has times, and a snapshot is missing or no time passed.
    pub fn active_ns(&self) -> Known<u64> {
        let (start, stop) = (self.at(Moment::Start)?, self.at(Moment::Stop)?);
        let passed = stop.at_ns.checked_sub(start.at_ns).filter(|ns| *ns > 0);
        let passed =
            passed.ok_or_else(|| "no time passed between the snapshots at start and stop".to_owned())?;
        let longest = self.end.workers.iter().map(|w| w.wall_ns).max().filter(|ns| *ns > 0);
        Ok(longest.map_or(passed, |ns| ns.min(passed)))
    }

    /// What these layers completed from start to stop.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub fn counted(&self, layers: &[&Layer]) -> Known<BlockStat> {
        self.counted_until(Moment::Stop, layers)
    }

    /// What these layers completed from start to `moment`.
    ///
    /// # Errors
    /// Why a layer was not counted.
    pub(crate) fn counted_until(&self, moment: Moment, layers: &[&Layer]) -> Known<BlockStat> {
        if self.neighbours > 0 {
            return Err(format!(
                "{} other ranks of this measurement run on the same kernel, and its counters have their requests too",
                self.neighbours
            ));
        }
        let (start, stop) = (self.at(Moment::Start)?, self.at(moment)?);
        layers.iter().try_fold(BlockStat::default(), |sum, layer| {
            Ok(sum.plus(&BlockStat::between(start, stop, &layer.stat_file)?))
        })
    }

    /// What was charged to the cgroup on these layers from start to stop.
    pub(super) fn charged(&self, cgroup: &Cgroup, layers: &[&Layer]) -> Known<CgroupIo> {
        let (start, stop) = (self.at(Moment::Start)?, self.at(Moment::Stop)?);
        let mut sum = CgroupIo::default();
        for layer in layers {
            let before = charge(start, cgroup, &layer.number)?.unwrap_or_default();
            let after = charge(stop, cgroup, &layer.number)?
                .ok_or_else(|| format!("the cgroup has no count for {}", layer.name))?;
            for i in [0, 1] {
                let bytes = after.bytes[i].checked_sub(before.bytes[i]);
                let ios = after.ios[i].checked_sub(before.ios[i]);
                let (Some(bytes), Some(ios)) = (bytes, ios) else {
                    return Err("the counters of the cgroup went backwards".into());
                };
                sum.bytes[i] = sum.bytes[i].saturating_add(bytes);
                sum.ios[i] = sum.ios[i].saturating_add(ios);
            }
        }
        Ok(sum)
    }

    /// All operations of a kind of the case's own stream in this run. Reads and writes without data do not count.
    pub fn issued(&self, kind: Kind) -> Amount {
        self.issued_by(self.stream.stream, kind)
    }

    /// All operations of a kind of one stream of the phase in this run.
    pub(crate) fn issued_by(&self, stream: usize, kind: Kind) -> Amount {
        let reaches = |s: &&StreamEnd| s.stream == stream && (kind == Kind::Trim || self.moves_data(s));
        let issued = self.end.streams.iter().find(reaches).and_then(|s| s.issued.get(&kind));
        issued.map_or(Amount::default(), |i| Amount { ops: i.ops, bytes: i.bytes })
    }

    /// Whether the case's own operations move data, so that their sizes are known.
    pub(crate) fn carries_data(&self) -> bool {
        self.moves_data(self.stream)
    }

    /// Operations of the case's own stream, warm-up and drain included.
    pub fn issued_by_stream(&self) -> f64 {
        self.stream.issued.values().map(|i| i.ops as f64).sum()
    }

    /// Operations of a kind within the window, and their bytes, if they move data.
    pub fn in_window(&self, kind: Kind) -> Amount {
        let end = self.stream.kinds.get(&kind);
        end.map_or(Amount::default(), |k| self.amount(k.latency.count(), k.bytes))
    }

    /// Length in ns of the time that rates refer to: the window, or the time in which all hosts had load.
    pub(crate) fn rate_ns(&self) -> u64 {
        self.stream.common.as_ref().map_or(self.stream.window_ns, |common| common.window_ns)
    }

    /// Operations of a kind that completed in that time.
    pub(crate) fn for_rate(&self, kind: Kind) -> Amount {
        let Some(common) = &self.stream.common else { return self.in_window(kind) };
        common.kinds.get(&kind).map_or(Amount::default(), |[ops, bytes]| self.amount(*ops, *bytes))
    }

    fn amount(&self, ops: u64, bytes: u64) -> Amount {
        Amount { ops, bytes: if self.carries_data() { bytes } else { 0 } }
    }
}

/// The cgroup's count for a device number; `None` if its files do not have it.
fn charge(snapshot: &Snapshot, cgroup: &Cgroup, number: &str) -> Known<Option<CgroupIo>> {
    let text = |suffix: &str| {
        let file = cgroup.files.iter().find(|f| f.ends_with(suffix));
        snapshot.text(file.ok_or_else(|| format!("the cgroup has no {suffix}"))?)
    };
    if cgroup.version == 2 {
        return Ok(cgroup_v2(text("io.stat")?).get(number).copied());
    }
    let bytes = cgroup_v1(text("io_service_bytes")?).get(number).copied();
    let ios = cgroup_v1(text("io_serviced")?).get(number).copied();
    Ok(bytes.zip(ios).map(|(bytes, ios)| CgroupIo { bytes, ios }))
}

fn word(moment: Moment) -> &'static str {
    match moment {
        Moment::Start => "start",
        Moment::Stop => "stop",
        Moment::Synced => "final sync",
        _ => "preparation",
    }
}

impl<'a> Case<'a> {
    /// The single reads of the stream's targets before the first run.
    ///
    /// # Errors
    /// Why there are none.
    pub fn probes(&self) -> Known<Vec<&'a Probe>> {
        let prepared = self.record.evidence.iter().find(|s| s.moment == Moment::AfterPrepare);
        let prepared = prepared.ok_or("the record has no snapshot from before the runs")?;
        let probe_of = |target: &usize| {
            let probe = prepared.targets.get(*target).and_then(|t| t.probe.as_ref());
            match probe {
                Some(Ok(probe)) => Ok(probe),
                Some(Err(why)) => Err(format!("no blocks were read before the runs: {why}")),
                None => Err("no blocks were read before the runs to see what they hold".to_owned()),
            }
        };
        self.stream.targets.iter().map(probe_of).collect()
    }

    /// How the bytes of the stream's targets were stored after preparation, before the first run.
    ///
    /// # Errors
    /// Why it is unknown.
    pub fn extents_before_runs(&self) -> Known<Vec<Extents>> {
        let prepared = self.record.evidence.iter().find(|s| s.moment == Moment::AfterPrepare);
        let prepared = prepared.ok_or("the record has no snapshot from before the runs")?;
        let stored = |target: &usize| match prepared.targets.get(*target).and_then(|t| t.extents.as_ref()) {
            Some(known) => known.clone(),
            None => Err("the extents of the file were not read before the runs".to_owned()),
        };
        self.stream.targets.iter().map(stored).collect()
    }

    /// Traffic of the disks during these single reads; `None` if it was not counted.
    pub fn beside_probes(&self) -> Option<Amount> {
        let evidence = &self.record.evidence;
        let at = |moment| evidence.iter().find(|s| s.moment == moment);
        // The first snapshot is taken before the reads, the second after them.
        let (before, after) = (at(Moment::AfterPrepare)?, at(Moment::IdleStart)?);
        let traffic_of =
            |layer: &Layer| BlockStat::between(before, after, &layer.stat_file).map(|s| s.total());
        let mut all = Amount::default();
        for layer in self.shared().ok()? {
            let flow = traffic_of(layer).ok()?;
            all = all.plus(Amount { ops: flow.ios, bytes: flow.bytes });
        }
        for probe in before.targets.iter().filter_map(|t| t.probe.as_ref()?.as_ref().ok()) {
            let ops = (probe.first_ns.len() as u64).saturating_add(probe.again_ns.len() as u64);
            all.ops = all.ops.saturating_sub(ops);
            all.bytes = all.bytes.saturating_sub(ops.saturating_mul(probe.block_bytes));
        }
        Some(all)
    }

    /// How the bytes of each target are stored at the start of each run and after its final sync, in pairs.
    ///
    /// # Errors
    /// Why one of the two is unknown.
    pub fn extents_over_runs(&self) -> Known<Vec<(Extents, Extents)>> {
        let pairs = self.states(Moment::Start)?.into_iter().zip(self.states(Moment::Synced)?);
        let targets = pairs.flat_map(|(before, after)| before.into_iter().zip(after));
        let known = |extents: &Option<Known<Extents>>| match extents {
            Some(known) => known.clone(),
            None => Err("how the file is stored was not looked at after the final sync".to_owned()),
        };
        targets.map(|(before, after)| Ok((known(&before.extents)?, known(&after.extents)?))).collect()
    }

    /// States of the targets at a moment of each run.
    ///
    /// # Errors
    /// That a run has no such snapshot, or that it lacks the targets.
    pub fn states(&self, moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        let touched: Vec<usize> = self.targets.iter().map(|(t, _)| *t).collect();
        self.states_of(&touched, moment)
    }

    /// States of the stream's own targets at a moment of each run.
    fn own_states(&self, moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        self.states_of(&self.stream.targets, moment)
    }

    pub(super) fn states_of(&self, targets: &[usize], moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        let states_in = |ran: &CaseRun<'a>| {
            let snapshot = ran.at(moment)?;
            let states: Option<Vec<_>> = targets.iter().map(|t| snapshot.targets.get(*t)).collect();
            states.ok_or_else(|| "the page cache was not looked at".to_owned())
        };
        if self.runs.is_empty() { Err(no_run()) } else { self.runs.iter().map(states_in).collect() }
    }

    /// How the bytes of the stream's targets are stored at the start of each run.
    ///
    /// # Errors
    /// Why it is unknown.
    pub fn extents(&self) -> Known<Vec<Extents>> {
        let states = self.own_states(Moment::Start)?;
        let extents_of = |s: &TargetState| match &s.extents {
            Some(known) => known.clone(),
            None => Err("how the file is stored was not looked at".into()),
        };
        states.into_iter().flatten().map(extents_of).collect()
    }

    /// How the bytes of the stream's targets are stored at the end of each run that only read, as far as known.
    pub fn extents_at_ends(&self) -> Vec<Extents> {
        let states = self.own_states(Moment::Stop).unwrap_or_default();
        states.into_iter().flatten().filter_map(|s| s.extents.as_ref()?.as_ref().ok().copied()).collect()
    }

    /// Dirty bytes that fathom dropped before they were written, from the start of each run to its final sync. Drops of other processes
    /// are charged to those.
    ///
    /// # Errors
    /// Why the kernel's count could not be read.
    pub fn cancelled_bytes(&self) -> Known<u64> {
        if self.others_write() {
            let own = self.counted_by_workers(self.index, |io| io.cancelled_write_bytes);
            if own.is_exact() {
                return Ok(own.least);
            }
        }
        self.over_runs(
            0,
            |ran| {
                let count = |moment| cancelled(ran.at(moment)?);
                let passed = count(Moment::Synced)?.checked_sub(count(Moment::Start)?);
                passed.ok_or_else(|| "/proc/self/io: the count of cancelled writes went backwards".into())
            },
            u64::saturating_add,
        )
    }

    /// Bytes that the tops wrote from the start of each run to its final sync.
    ///
    /// # Errors
    /// Why they were not counted.
    pub fn synced_write_bytes(&self) -> Known<u64> {
        let tops = self.tops()?;
        self.over_runs(
            0,
            |ran| {
                let (start, synced) = (ran.at(Moment::Start)?, ran.at(Moment::Synced)?);
                tops.iter().try_fold(0_u64, |sum, layer| {
                    Ok(sum.saturating_add(BlockStat::between(start, synced, &layer.stat_file)?.write.bytes))
                })
            },
            u64::saturating_add,
        )
    }

    /// The places of the stream's targets with the indices of these in the plan.
    pub fn own_places(&self) -> impl Iterator<Item = (usize, Option<&'a Place>)> {
        let machine = self.machine;
        self.stream.targets.iter().map(move |t| (*t, machine.and_then(|m| m.places.get(*t))))
    }

    /// Whether a disk is virtual, as far as known.
    pub fn is_virtual(&self, layer: &Layer) -> bool {
        let by_driver =
            layer.driver.as_deref().is_some_and(|d| d.starts_with("virtio") || d.starts_with("xen"));
        by_driver || self.machine.is_some_and(|m| matches!(m.virtual_by, Ok(Some(_))))
    }

    /// Bytes of all targets that the stream may touch. Of a file that hosts share, only the part of this host.
    pub fn span_bytes(&self) -> u64 {
        let access = &self.stream.access;
        let targets = &self.record.header.plan.targets;
        // A span of the whole target has no number.
        let span_of = |target: &usize| {
            let there =
                targets.get(*target).map_or(u64::MAX, |t| t.bytes.saturating_sub(access.offset_bytes));
            access.span_bytes.min(there)
        };
        let all = self.stream.targets.iter().map(span_of).fold(0, u64::saturating_add);
        match (self.stream.shared, &self.record.fleet) {
            (Some(_), None) => {
                let (_, tasks) = self.record.header.plan.tasks(self.at, &self.stream);
                all / (tasks / u64::from(self.stream.workers.max(1))).max(1)
            }
            _ => all,
        }
    }

    /// The most bytes of a kind that the stream issued in one run.
    pub fn largest_run_bytes(&self, kind: Kind) -> u64 {
        let issued_bytes = |issued: &model::record::Issued| issued.bytes;
        self.runs.iter().filter_map(|r| r.stream.issued.get(&kind).map(issued_bytes)).max().unwrap_or(0)
    }
}

fn cancelled(snapshot: &Snapshot) -> Known<u64> {
    const FILE: &str = "/proc/self/io";
    let line = snapshot.text(FILE)?.lines().find_map(|l| l.strip_prefix("cancelled_write_bytes:"));
    let number = line.and_then(|words| words.trim().parse().ok());
    number.ok_or_else(|| format!("{FILE} has no count of cancelled writes"))
}
