//! One complete run of a case: what its stream did, and what was counted meanwhile.
//!
//! For: the kernel's text at its moments, and the differences between them. Not for: sums over runs, which are the case's.

use model::Known;
use model::evidence::{BlockStat, CgroupIo, Moment, Snapshot, cgroup_v1, cgroup_v2};
use model::fleet::Part;
use model::job::{Kind, Stream};
use model::machine::{Cgroup, Layer};
use model::record::{Run, RunEnd, StreamEnd};

/// One complete run of a case.
#[derive(Clone, Copy)]
pub struct CaseRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its end.
    pub end: &'a RunEnd,
    /// The end of this case's stream.
    pub stream: &'a StreamEnd,
    /// The streams of its phase, as they were planned.
    planned: &'a [Stream],
    /// Other ranks of the measurement whose requests the counters of this kernel have too.
    neighbours: u32,
}

/// Operations and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Operations.
    pub ops: u64,
    /// Bytes.
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

    /// Whether reads and writes of a stream are those of data.
    fn moves_data(&self, stream: &StreamEnd) -> bool {
        self.planned.get(stream.stream).is_none_or(|planned| !planned.moves_no_data())
    }

    /// The kernel's text at a moment of this run.
    ///
    /// # Errors
    /// That there is none.
    pub fn at(&self, moment: Moment) -> Known<&'a Snapshot> {
        let found = self.run.evidence.iter().find(|s| s.moment == moment);
        found.ok_or_else(|| {
            format!("run {} has no snapshot at its {}", self.run.start.repeat.saturating_add(1), word(moment))
        })
    }

    /// ns in which operations could be in flight between the snapshots at start and stop: from the first worker's first stamp
    /// to the last one's last. Starting and joining threads lies between the snapshots too, and would thin the device's queue.
    ///
    /// # Errors
    /// That no worker says, and a snapshot is missing or no time passed.
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
    /// Why one was not counted.
    pub fn counted(&self, layers: &[&Layer]) -> Known<BlockStat> {
        self.counted_until(Moment::Stop, layers)
    }

    /// What these layers completed from start to `moment`.
    ///
    /// # Errors
    /// Why one was not counted.
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

    /// All operations of a kind that the case's own stream had in this run. Reads and writes without data are none of a device's.
    pub fn issued(&self, kind: Kind) -> Amount {
        self.issued_by(self.stream.stream, kind)
    }

    /// All operations of a kind that one stream of the phase had in this run.
    pub(crate) fn issued_by(&self, stream: usize, kind: Kind) -> Amount {
        let reaches = |s: &&StreamEnd| s.stream == stream && (kind == Kind::Trim || self.moves_data(s));
        let issued = self.end.streams.iter().find(reaches).and_then(|s| s.issued.get(&kind));
        issued.map_or(Amount::default(), |i| Amount { ops: i.ops, bytes: i.bytes })
    }

    /// Whether the case's own operations move data, so that their sizes can be told.
    pub(crate) fn carries_data(&self) -> bool {
        self.moves_data(self.stream)
    }

    /// Operations of the case's own stream, warm-up and drain included.
    pub fn issued_by_stream(&self) -> f64 {
        self.stream.issued.values().map(|i| i.ops as f64).sum()
    }

    /// Operations of a kind within the window, and the bytes that they moved: none without data.
    pub fn in_window(&self, kind: Kind) -> Amount {
        let end = self.stream.kinds.get(&kind);
        end.map_or(Amount::default(), |k| self.amount(k.latency.count(), k.bytes))
    }

    /// Length in ns of the time that rates are of: that in which the load of all hosts ran, where that is another.
    pub(crate) fn rate_ns(&self) -> u64 {
        self.stream.common.as_ref().map_or(self.stream.window_ns, |common| common.window_ns)
    }

    /// What completed in that time.
    pub(crate) fn for_rate(&self, kind: Kind) -> Amount {
        let Some(common) = &self.stream.common else { return self.in_window(kind) };
        common.kinds.get(&kind).map_or(Amount::default(), |[ops, bytes]| self.amount(*ops, *bytes))
    }

    fn amount(&self, ops: u64, bytes: u64) -> Amount {
        Amount { ops, bytes: if self.carries_data() { bytes } else { 0 } }
    }
}

/// The cgroup's count for a device number; `None` where its files do not name it.
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
