//! What the targets hold: how their bytes are stored at a moment, and what single reads of them found.
//!
//! For: evidence about the targets themselves, as far as the record has it. Not for: counters (beside it) nor opinions.

use super::run::{Amount, CaseRun};
use super::{Case, no_run};
use model::Known;
use model::evidence::{BlockStat, Extents, Moment, Probe, Snapshot, TargetState};
use model::job::Kind;
use model::machine::{Layer, Place};

impl<'a> Case<'a> {
    /// The single reads of the stream's own targets, made before the first run.
    ///
    /// # Errors
    /// Why there are none.
    pub fn probes(&self) -> Known<Vec<&'a Probe>> {
        let prepared = self.record.evidence.iter().find(|s| s.moment == Moment::AfterPrepare);
        let prepared = prepared.ok_or("the record has no snapshot from before the runs")?;
        let of = |target: &usize| {
            let probe = prepared.targets.get(*target).and_then(|t| t.probe.as_ref());
            match probe {
                Some(Ok(probe)) => Ok(probe),
                Some(Err(why)) => Err(format!("no blocks were read before the runs: {why}")),
                None => Err("no blocks were read before the runs to see what they hold".to_owned()),
            }
        };
        self.stream.targets.iter().map(of).collect()
    }

    /// How the bytes of the stream's targets were stored after preparation, before the first run.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn extents_before_runs(&self) -> Known<Vec<Extents>> {
        let prepared = self.record.evidence.iter().find(|s| s.moment == Moment::AfterPrepare);
        let prepared = prepared.ok_or("the record has no snapshot from before the runs")?;
        let stored = |target: &usize| match prepared.targets.get(*target).and_then(|t| t.extents.as_ref()) {
            Some(known) => known.clone(),
            None => Err("the extents of the file were not read before the runs".to_owned()),
        };
        self.stream.targets.iter().map(stored).collect()
    }

    /// What the disks did for others while those single reads were made; `None` where that was not counted.
    pub fn beside_probes(&self) -> Option<Amount> {
        let evidence = &self.record.evidence;
        let at = |moment| evidence.iter().find(|s| s.moment == moment);
        // The first is read before the blocks are, the second follows them.
        let (before, after) = (at(Moment::AfterPrepare)?, at(Moment::IdleStart)?);
        let of = |layer: &Layer| BlockStat::between(before, after, &layer.stat_file).map(|s| s.total());
        let mut all = Amount::default();
        for layer in self.shared().ok()? {
            let flow = of(layer).ok()?;
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
    /// Why one of the two is not known.
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
    /// That a run has no such moment, or that it did not look at the targets.
    pub fn states(&self, moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        let touched: Vec<usize> = self.targets.iter().map(|(t, _)| *t).collect();
        self.states_of(&touched, moment)
    }

    /// States of the targets of the stream itself at a moment of each run: what is said of one stream is not about the files of another.
    fn own_states(&self, moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        self.states_of(&self.stream.targets, moment)
    }

    pub(super) fn states_of(&self, targets: &[usize], moment: Moment) -> Known<Vec<Vec<&'a TargetState>>> {
        let of = |ran: &CaseRun<'a>| {
            let snapshot = ran.at(moment)?;
            let states: Option<Vec<_>> = targets.iter().map(|t| snapshot.targets.get(*t)).collect();
            states.ok_or_else(|| "the page cache was not looked at".to_owned())
        };
        if self.runs.is_empty() { Err(no_run()) } else { self.runs.iter().map(of).collect() }
    }

    /// How the bytes of the stream's targets are stored, at the start of each run.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn extents(&self) -> Known<Vec<Extents>> {
        let states = self.own_states(Moment::Start)?;
        let of = |s: &TargetState| match &s.extents {
            Some(known) => known.clone(),
            None => Err("how the file is stored was not looked at".into()),
        };
        states.into_iter().flatten().map(of).collect()
    }

    /// How the bytes of the stream's targets are stored at the end of each run that only read, as far as somebody looked.
    pub fn extents_at_ends(&self) -> Vec<Extents> {
        let states = self.own_states(Moment::Stop).unwrap_or_default();
        states.into_iter().flatten().filter_map(|s| s.extents.as_ref()?.as_ref().ok().copied()).collect()
    }

    /// Dirty bytes that this process dropped before they were written, from the start of each run to its final sync. What others
    /// drop is charged to them.
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

    /// Whether a disk is carried by somebody else's machine, as far as can be seen.
    pub fn is_virtual(&self, layer: &Layer) -> bool {
        let by_driver =
            layer.driver.as_deref().is_some_and(|d| d.starts_with("virtio") || d.starts_with("xen"));
        by_driver || self.machine.is_some_and(|m| matches!(m.virtual_by, Ok(Some(_))))
    }

    /// Bytes that the stream may touch, on all of its targets together: of a file that hosts share, those that are the part of the hosts
    /// whose runs these are.
    pub fn span_bytes(&self) -> u64 {
        let access = &self.stream.access;
        let targets = &self.record.header.plan.targets;
        // A span that is all there is has no number of its own.
        let of = |target: &usize| {
            let there =
                targets.get(*target).map_or(u64::MAX, |t| t.bytes.saturating_sub(access.offset_bytes));
            access.span_bytes.min(there)
        };
        let all = self.stream.targets.iter().map(of).fold(0, u64::saturating_add);
        match (self.stream.shared, &self.record.fleet) {
            (Some(_), None) => {
                let (_, tasks) = self.record.header.plan.tasks(self.at, &self.stream);
                all / (tasks / u64::from(self.stream.workers.max(1))).max(1)
            }
            _ => all,
        }
    }

    /// The most bytes of a kind that the stream itself handed over in one run.
    pub fn largest_run_bytes(&self, kind: Kind) -> u64 {
        let of = |issued: &model::record::Issued| issued.bytes;
        self.runs.iter().filter_map(|r| r.stream.issued.get(&kind).map(of)).max().unwrap_or(0)
    }
}

fn cancelled(snapshot: &Snapshot) -> Known<u64> {
    const FILE: &str = "/proc/self/io";
    let line = snapshot.text(FILE)?.lines().find_map(|l| l.strip_prefix("cancelled_write_bytes:"));
    let number = line.and_then(|words| words.trim().parse().ok());
    number.ok_or_else(|| format!("{FILE} has no count of cancelled writes"))
}
