//! The same work on growing numbers of hosts: what a plan says of it, and what stands in a report.
//!
//! For: data of the record and of the JSON contract (format 1). Not for: comparing numbers (the crate `analysis`) nor laying them out.

use serde::{Deserialize, Serialize};

/// How many hosts take part in each job of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSteps {
    /// By job, in ascending order: the hosts from the first to this one; the others are idle.
    pub hosts: Vec<u32>,
}

impl HostSteps {
    /// How many of so many hosts take part in a job: those of the first ranks.
    pub fn taking_part(&self, job: usize, all: usize) -> usize {
        self.hosts.get(job).map_or(all, |hosts| all.min(*hosts as usize))
    }

    /// Whether the host of a rank takes part in a job.
    pub fn takes_part(&self, rank: u32, job: usize) -> bool {
        (rank as usize) < self.taking_part(job, usize::MAX)
    }
}

/// The same work on growing numbers of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scaling {
    /// One per number of hosts, in ascending order.
    pub rows: Vec<ScalingRow>,
    /// Where more hosts begin to cost more than they bring; `None` where fewer than two numbers of hosts have a rate.
    pub knee: Option<ScalingKnee>,
}

/// The work on so many hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingRow {
    /// Hosts that took part.
    pub hosts: u32,
    /// Index of its result.
    pub result: usize,
    /// Operations per second of a host, on average; `None` where there is no number.
    pub iops_per_host: Option<f64>,
    /// The rate of all by that of the fewest hosts.
    pub speed_up: Option<f64>,
    /// The rate of a host by that of a host among the fewest: 1 where each brings what the first brought.
    pub efficiency: Option<f64>,
    /// 95 % interval of that, from runs in turns; `None` of the fewest hosts, and with fewer than three runs.
    pub efficiency_interval: Option<[f64; 2]>,
}

/// The number of hosts of greatest power: rate by latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingKnee {
    /// So many.
    pub hosts: u32,
    /// Whether more hosts were measured, which have less power.
    pub reached: bool,
    /// Whether the intervals rule every other number of hosts out.
    pub sure: bool,
}

#[test]
fn the_hosts_from_the_first_take_part() {
    let steps = HostSteps { hosts: vec![1, 2] };
    let part = |rank| [0, 1, 2].map(|job| steps.takes_part(rank, job));
    assert_eq!([0, 1, 2].map(|job| steps.taking_part(job, 4)), [1, 2, 4]);
    assert_eq!((part(0), part(1), part(2)), ([true, true, true], [false, true, true], [false, false, true]));
}
