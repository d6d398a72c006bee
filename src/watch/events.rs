//! The kernel's block events while it is watched: how long requests took, and whose they were.
//!
//! For: what the requests of the topmost devices came to in an interval; what is lost is counted, and makes the figures of that interval
//! unknown. Not for: recording them ([`crate::block_events`]).

use crate::block_events::{BlockEvents, now_ns};
use crate::traced::Traced;
use capture::interval::Interval;
use capture::trace::pairing::PATIENCE_NS;
use machine::processes::Whose;
use model::Known;
use model::units::show_count;
use model::watch::{ProcessRequests, WatchedDevice};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The events of some devices, or why there are none.
pub(super) struct Events {
    /// Whether they are wanted.
    wanted: bool,
    by_thread: bool,
    /// What is recorded, by `major:minor` of what is shown.
    devices: Vec<(String, Traced)>,
    recording: Known<Recording>,
}

/// What is recorded, and what it came to.
struct Recording {
    events: BlockEvents,
    interval: Interval,
    /// When what processes asked for was last told.
    told: Instant,
    losses: Losses,
}

/// Events that the kernel lost.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// In all.
    lost: u64,
    /// Before the interval, and before what processes asked for was last told.
    before: u64,
    before_processes: u64,
    /// Until when a completion may be taken for that of another request.
    unsure_until_ns: u64,
    /// Whether a completion might be taken for that of another request when processes were last told.
    processes_unsure: bool,
}

impl Events {
    /// Where nobody wants them.
    pub(super) fn none() -> Self {
        let recording = Err("block events are not recorded".into());
        Self { wanted: false, by_thread: false, devices: Vec::new(), recording }
    }

    /// Of the devices that are followed later.
    pub(super) fn new(whose: Whose) -> Self {
        let by_thread = matches!(whose, Whose::ThreadsOf(_));
        Self { wanted: true, by_thread, ..Self::none() }
    }

    /// Records these devices from now on; what is to be said of that.
    pub(super) fn follow(&mut self, devices: &[(String, Traced)]) -> Option<String> {
        let is_full = self.recording.as_ref().is_ok_and(|recording| recording.events.is_full());
        if !self.wanted || devices.is_empty() || (self.devices == devices && !is_full) {
            return None;
        }
        let is_first = self.devices.is_empty();
        self.devices = devices.to_vec();
        // The old one goes first: an instance has the name of the process.
        self.recording = Err(String::new());
        self.recording = Recording::begin(devices, self.by_thread);
        match &self.recording {
            Err(why) => {
                self.wanted = false;
                Some(format!(
                    "latency percentiles and the requests of each process are not known, which take the kernel's block events: {why}"
                ))
            }
            Ok(_) if is_first => Some(
                "latencies and requests of processes: by the kernel's block events, which cost about 1 us of a CPU per request; --no-events \
                 leaves them off"
                    .into(),
            ),
            Ok(_) => None,
        }
    }

    /// Takes what was recorded so far.
    pub(super) fn drain(&mut self) {
        if let Ok(recording) = &mut self.recording
            && let Err(why) = recording.drain()
        {
            self.recording = Err(why);
        }
    }

    /// Tells how long the requests of devices took in the interval that ends.
    pub(super) fn tell(&mut self, shown: &mut [WatchedDevice]) {
        if let Ok(recording) = &mut self.recording
            && let Err(why) = recording.end_interval()
        {
            self.recording = Err(why);
        }
        let why = match &mut self.recording {
            // That there are none is said once.
            _ if !self.wanted => return,
            Err(why) => why.clone(),
            Ok(recording) => {
                let unknown = recording.losses.of_interval(now_ns());
                let all = recording.interval.latencies();
                for ((number, _), latencies) in self.devices.iter().zip(all) {
                    let known = unknown.clone().map_or(Ok(latencies), Err);
                    let shown = shown.iter_mut().filter(|device| device.number == *number);
                    shown.for_each(|device| device.latency = Some(known.clone()));
                }
                return;
            }
        };
        let top = |device: &&mut WatchedDevice| device.level == 0;
        shown.iter_mut().filter(top).for_each(|device| device.latency = Some(Err(why.clone())));
    }

    /// What processes asked for since this was last asked; `None` where that is not known.
    pub(super) fn processes(&mut self) -> Option<BTreeMap<u32, ProcessRequests>> {
        let recording = self.recording.as_mut().ok()?;
        let since = std::mem::replace(&mut recording.told, Instant::now());
        let seconds = recording.told.duration_since(since).max(Duration::from_millis(1)).as_secs_f64();
        let processes = recording.interval.processes(seconds);
        recording.losses.processes_are_known(now_ns()).then_some(processes)
    }
}

impl Recording {
    fn begin(devices: &[(String, Traced)], by_thread: bool) -> Known<Self> {
        let traced: Vec<Traced> = devices.iter().map(|(_, of)| of.clone()).collect();
        Ok(Self {
            events: BlockEvents::begin(&traced)?,
            interval: Interval::new(devices.len(), by_thread),
            told: Instant::now(),
            losses: Losses::default(),
        })
    }

    /// Takes what is there.
    fn drain(&mut self) -> Known<()> {
        let (events, interval) = (&mut self.events, &mut self.interval);
        events.drain(&mut |at, row, names| interval.add(at, row, names))?;
        self.losses.see(self.events.lost(), now_ns());
        Ok(())
    }

    /// Takes what is there at the end of an interval, with what the kernel itself counts as lost.
    fn end_interval(&mut self) -> Known<()> {
        self.drain()?;
        self.losses.see(self.events.lost_by_kernel()?, now_ns());
        Ok(())
    }
}

impl Losses {
    /// So many are lost by now.
    fn see(&mut self, lost: u64, now_ns: u64) {
        if lost > self.lost {
            self.lost = lost;
            self.unsure_until_ns = now_ns.saturating_add(PATIENCE_NS);
        }
    }

    /// Why the interval that ends has no figures; the next one begins.
    fn of_interval(&mut self, now_ns: u64) -> Option<String> {
        let lost = self.lost - std::mem::replace(&mut self.before, self.lost);
        if lost > 0 {
            return Some(format!("the kernel's tracer lost {} events", show_count(lost as f64)));
        }
        (now_ns < self.unsure_until_ns).then(|| {
            "the kernel's tracer lost events before, and what was in flight then may be mistaken for other requests".into()
        })
    }

    /// Whether what processes asked for since this was last asked is known: no events were lost, and no completion may be mistaken.
    fn processes_are_known(&mut self, now_ns: u64) -> bool {
        let lost = self.lost - std::mem::replace(&mut self.before_processes, self.lost);
        let was_unsure = std::mem::replace(&mut self.processes_unsure, now_ns < self.unsure_until_ns);
        lost == 0 && !was_unsure && !self.processes_unsure
    }
}

#[test]
fn where_events_were_lost_nothing_is_known_until_nothing_can_be_mistaken() {
    let mut losses = Losses::default();
    losses.see(0, 1);
    assert_eq!(losses.of_interval(2), None);
    assert!(losses.processes_are_known(2));
    losses.see(137, 10);
    let why = losses.of_interval(20).unwrap_or_default();
    assert!(why.contains("lost 137 events"), "{why}");
    let why = losses.of_interval(30).unwrap_or_default();
    assert!(why.contains("may be mistaken"), "{why}");
    assert!(!losses.processes_are_known(30));
    let later = 11 + PATIENCE_NS;
    assert_eq!(losses.of_interval(later), None);
    assert!(!losses.processes_are_known(later), "a part of that time");
    assert!(losses.processes_are_known(later));
}
