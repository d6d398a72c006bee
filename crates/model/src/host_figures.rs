//! What a host did while a run was measured on it, as it stands in a report.
//!
//! For: data of the JSON contract (format 1). Not for: computing it (the crate `analysis`) nor drawing it.

use serde::{Deserialize, Serialize};

/// What the CPUs and the memory of the host were busy with during a run, warm-up and drain included. Each is a share of the run's time;
/// `None` where it was not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFigures {
    /// CPU time of the worker that used most, as a share of one CPU.
    pub worker_cpu: Option<f64>,
    /// Time in which CPUs worked, as a share of all CPUs' (`/proc/stat`): neither idle nor waiting for I/O.
    pub cpu: Option<f64>,
    /// Time in which some task waited for I/O (`/proc/pressure/io`, `some`).
    pub io_pressure: Option<f64>,
    /// Time in which some task waited for a CPU (`/proc/pressure/cpu`, `some`).
    pub cpu_pressure: Option<f64>,
    /// Time in which some task waited for memory (`/proc/pressure/memory`, `some`).
    pub memory_pressure: Option<f64>,
    /// Time for which a CPU quota paused threads of fathom's cgroup (`cpu.stat`), all of them together: it may be more than 1.
    pub quota_paused: Option<f64>,
}

impl HostFigures {
    /// Whether nothing of it is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
