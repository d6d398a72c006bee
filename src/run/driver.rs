//! A replay at the driver: how long its requests take on the device, seen where its capture saw them.
//!
//! For: recording them while the replay runs, and telling the replay how much longer an operation takes to whoever submits it, which its
//! waits are shorter by. Not for: comparing ([`model::replay`]).

use super::Measurement;
use crate::block_events::BlockEvents;
use crate::capture::subject;
use capture::fit::{Figures, Observed};
use capture::row::Task;
use engine::source::replay::Counts;
use engine::spec::WorkerSpec;
use model::captured::Origin;
use model::histogram::Histogram;
use model::job::{Kind, Phase, ReplayPace};
use model::record::{AtDriver, StreamEnd};
use model::units::show_count;
use model::{Known, name};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the buffers are emptied.
const EVERY: Duration = Duration::from_millis(50);
/// How long what is still on its way into the buffers is waited for.
const BEHIND: Duration = Duration::from_millis(5);
/// Operations from which on a median is one.
const ENOUGH: u64 = 20;

/// The requests of a replay that runs.
pub(super) struct Driver {
    recording: Known<Recording>,
    due: Instant,
    /// What is told how long the way to the driver and back takes; none where nothing waits for completions.
    told: Option<Arc<Counts>>,
}

struct Recording {
    events: BlockEvents,
    observed: Observed,
}

impl Driver {
    /// Begins, where the phase is a replay.
    pub(super) fn begin(measurement: &Measurement, phase: &Phase, specs: &[WorkerSpec]) -> Option<Self> {
        let replay = phase.streams.iter().find_map(|stream| stream.replay.as_ref())?;
        let is_dependent = replay.pace == ReplayPace::Dependent;
        let told = specs.iter().find_map(|spec| spec.replay.clone()).filter(|_| is_dependent);
        let reaches_targets = specs.iter().all(|spec| spec.engine.touches_targets());
        let recording = if reaches_targets {
            Recording::begin(measurement, phase)
        } else {
            Err("the engine asks no device for anything".into())
        };
        Some(Self { recording, due: Instant::now() + EVERY, told })
    }

    /// Takes over what was recorded, and compares it with the operations as they were seen above.
    pub(super) fn follow(&mut self, above: &StreamEnd) {
        let Ok(recording) = &mut self.recording else { return };
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + EVERY;
        if let Err(why) = recording.drain() {
            self.recording = Err(why);
            return;
        }
        let Some(counts) = &self.told else { return };
        for (kind, end) in &above.kinds {
            if let Some(ns) = way_ns(&end.latency, recording.observed.latency(*kind)) {
                counts.set_way(*kind, ns);
            }
        }
    }

    /// What it came to.
    pub(super) fn end(self) -> Known<AtDriver> {
        std::thread::sleep(BEHIND);
        self.recording?.end()
    }
}

/// How much longer the median operation takes above than at the driver, in ns.
fn way_ns(above: &Histogram, at_driver: &Histogram) -> Option<u64> {
    let median = |of: &Histogram| of.supported_quantile_ns(0.5).filter(|_| of.count() >= ENOUGH);
    Some(median(above)?.saturating_sub(median(at_driver)?))
}

impl Recording {
    fn begin(measurement: &Measurement, phase: &Phase) -> Known<Self> {
        let [stream] = phase.streams.as_slice() else {
            return Err(
                "other streams run beside it, and the kernel does not say whose requests are whose".into()
            );
        };
        let [target] = stream.targets.as_slice() else { return Err("it has several targets".into()) };
        let path = measurement.plan.targets.get(*target).map(|target| name::path(&target.path));
        let path = path.filter(|path| path.exists()).ok_or("its target is on no device")?;
        let subject = subject::find(&measurement.root, &path).map_err(|why| why.message().to_owned())?;
        let events = BlockEvents::begin(std::slice::from_ref(&subject.traced))?;
        let origin = Origin { unit: subject.traced.unit, ..Origin::default() };
        Ok(Self { events, observed: Observed::new(&origin, 0) })
    }

    fn drain(&mut self) -> Known<()> {
        let (events, observed) = (&mut self.events, &mut self.observed);
        events.drain(&mut |_, row, names| observed.add(std::slice::from_ref(row), names, &is_ours))
    }

    fn end(mut self) -> Known<AtDriver> {
        let (events, observed) = (&mut self.events, &mut self.observed);
        events.end(&mut |_, row, names| observed.add(std::slice::from_ref(row), names, &is_ours))?;
        let lost = events.lost().max(events.lost_by_kernel()?);
        if lost > 0 {
            return Err(format!("the kernel's tracer lost {} events", show_count(lost as f64)));
        }
        let Figures { counts, latencies, depth, .. } = self.observed.finish();
        let kinds = Kind::ALL.into_iter().zip(counts.into_iter().zip(latencies));
        Ok(AtDriver { depth, kinds: kinds.filter(|(_, (count, _))| *count > 0).collect() })
    }
}

/// Whether a task is a worker of this run.
fn is_ours(task: &Task) -> bool {
    is_worker_of(task, std::process::id())
}

/// Whether a task is a worker of the run with this number, or a worker of the kernel that io_uring gave it.
pub(crate) fn is_worker_of(task: &Task, pid: u32) -> bool {
    let number =
        |prefix: &str| task.name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    (number("fathom-") || number("iou-wrk-")) && task.pid.is_none_or(|of| of == pid)
}

#[test]
fn the_way_is_the_difference_of_medians_that_are_known() {
    let of = |ns: u64, count: u64| {
        let mut histogram = Histogram::default();
        (0..count).for_each(|_| histogram.record(ns));
        histogram
    };
    let way = way_ns(&of(120_000, 50), &of(80_000, 50)).unwrap_or_default();
    assert!((39_000..41_000).contains(&way), "{way}");
    // A device behind the clock of the program.
    assert_eq!(way_ns(&of(80_000, 50), &of(120_000, 50)), Some(0));
    assert_eq!(way_ns(&of(120_000, 50), &of(80_000, 19)), None);
}
