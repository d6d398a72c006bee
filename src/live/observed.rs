//! What `fathom watch` shows on a terminal: the last interval, and the courses of those before.
//!
//! For: plain data that can be drawn. Not for: drawing ([`super::draw`]), nor the terminal ([`super::watching`]).

use super::state::{POINTS_MAX, Points};
use model::watch::{CpuShares, Processes, Watched, WatchedDevice};
use std::collections::BTreeMap;
use std::time::Duration;

/// Remarks that are kept.
const REMARKS_MAX: usize = 8;

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// How long intervals are.
    pub(super) interval: Duration,
    /// When the last one ended; empty before the first.
    pub(super) time: String,
    /// How the CPUs spent the last interval; `None` if that is not known.
    pub(super) cpu: Option<CpuShares>,
    pub(super) devices: Vec<WatchedDevice>,
    /// Requests per second of each device, by its name.
    pub(super) courses: BTreeMap<String, Points>,
    /// Those that were last looked at; `None` before.
    pub(super) processes: Option<Processes>,
    /// What was said, the last of it at the end.
    pub(super) remarks: Vec<String>,
}

impl Observed {
    /// Nothing yet.
    pub(super) fn every(interval: Duration) -> Self {
        Self { interval, ..Self::default() }
    }

    /// The next interval.
    pub(super) fn take(&mut self, watched: &Watched) {
        watched.time.clone_into(&mut self.time);
        self.cpu = watched.cpu;
        self.devices.clone_from(&watched.devices);
        if watched.processes.is_some() {
            self.processes.clone_from(&watched.processes);
        }
        self.remarks.extend(watched.remarks.iter().cloned());
        let more = self.remarks.len().saturating_sub(REMARKS_MAX);
        self.remarks.drain(..more);
        self.courses.retain(|name, _| watched.devices.iter().any(|device| device.name == *name));
        for device in &watched.devices {
            let course = self.courses.entry(device.name.clone()).or_default();
            let rate = device.figures.as_ref().ok();
            course.push_back(rate.map(|figures| figures.read.per_s + figures.write.per_s));
            if course.len() > POINTS_MAX {
                course.pop_front();
            }
        }
    }
}
