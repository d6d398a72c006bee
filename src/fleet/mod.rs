//! Fleets: one host that measures alone, or several that measure as one.
//!
//! For: who else takes part, and what is asked of them: where plans become one ([`Fleet::settle`]), where a measured phase begins
//! ([`Fleet::gate`]), where runs become those of all ([`Fleet::agree`]), where sessions become one ([`Fleet::gather`]). Not for: measuring:
//! whoever does asks the same of one host and of a thousand.

mod agree;
mod clock;
mod company;
mod course;
mod files;
mod floors;
mod gather;
mod guard;
mod host_reports;
mod hosts;
mod letter;
mod merge;
#[cfg(feature = "mpi")]
mod mpi;
mod net;
mod parts;
mod post;
mod reasons;
mod settle;
#[cfg(test)]
mod simulated;
mod start;
mod takes;
#[cfg(test)]
mod tests;
mod tree;
mod verified;
mod whole;

use crate::failure::Failure;
use crate::live::{HostRow, Progress};
use crate::request::Request;
use crate::show::Showing;
use analysis::strategy::Summary;
pub use gather::{Gathered, HostOutcome};
use guard::Launched;
use hosts::Hosts;
use model::machine::Machine;
use model::plan::Plan;
use model::record::{Header, Interval, Run, RunEnd, RunStart};
use model::verification::{OnHost, State, Verified};
pub use start::Gate;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who takes part in a measurement.
#[derive(Clone)]
pub enum Fleet {
    /// This host alone.
    Alone,
    /// Several hosts, which find each other through MPI.
    Mpi(Arc<Hosts>),
}

/// Whether there is anything that could join.
const HAS_MPI: bool = cfg!(feature = "mpi");

/// Joins the hosts that a launcher has started with this one, for what was asked.
///
/// # Errors
/// Where the launcher's processes do not find each other, or what was asked is not measured on several hosts.
pub fn join(request: &Request) -> Result<Fleet, Failure> {
    let launched = guard::of_this_process();
    let fleet = match &launched {
        Some(launched) if HAS_MPI && launched.processes != Some(1) => meet(launched, request)?,
        _ => {
            checked(launched.as_ref(), 1)?;
            Fleet::Alone
        }
    };
    let mut streams = request.job.phases.iter().flat_map(|phase| &phase.streams);
    let of_several = [
        (
            streams.clone().any(|s| s.shared.is_some() && s.workers.unwrap_or(1) < 2),
            "--shared divides a file among several workers, and there is one",
        ),
        (streams.any(|s| s.shift_hosts.is_some()), "--shift-hosts has no other host's file"),
        (request.ranks_per_host.is_some(), "--ranks-per-host changes nothing here"),
        (!request.hosts.is_empty(), "--hosts has no others to measure with"),
    ];
    let said = of_several.into_iter().find_map(|(is_said, what)| is_said.then_some(what));
    match (&fleet, said) {
        (Fleet::Alone, Some(what)) => Err(Failure::Usage(format!(
            "{what}: this host measures alone; start fathom with mpirun, or leave it out"
        ))),
        (Fleet::Mpi(hosts), _) => match takes::refusal(request) {
            Some(why) => Err(hosts.end_all(Failure::Usage(why))),
            None => Ok(fleet),
        },
        (Fleet::Alone, None) => Ok(fleet),
    }
}

/// Refuses what measures on one host alone, where a launcher started several processes.
///
/// # Errors
/// What is wrong, and what to type instead.
pub fn alone() -> Result<(), Failure> {
    checked(guard::of_this_process().as_ref(), 1)
}

fn checked(launched: Option<&Launched>, world: u32) -> Result<(), Failure> {
    guard::check(launched, world, HAS_MPI).map_err(|why| {
        // What is wrong with all of them one of them tells.
        if guard::is_first() { Failure::Usage(why) } else { Failure::Elsewhere(2) }
    })
}

/// Meets the others that a launcher started.
fn meet(launched: &Launched, request: &Request) -> Result<Fleet, Failure> {
    let hosts = Hosts::join(net, (me(), request.ranks_per_host.unwrap_or(1)))?;
    if let Err(why) = checked(Some(launched), hosts.size as u32) {
        hosts.leave();
        return Err(why);
    }
    Ok(if hosts.size > 1 { Fleet::Mpi(Arc::new(hosts)) } else { Fleet::Alone })
}

/// What they speak over.
#[cfg(feature = "mpi")]
fn net() -> Result<Box<dyn net::Net>, String> {
    mpi::Mpi::join().map(|net| Box::new(net) as Box<dyn net::Net>)
}

#[cfg(not(feature = "mpi"))]
fn net() -> Result<Box<dyn net::Net>, String> {
    Err("this fathom was built without MPI".into())
}

/// Who this host is.
fn me() -> letter::Hello {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    letter::Hello { host, boot: boot.trim().to_owned(), version: env!("CARGO_PKG_VERSION").into() }
}

impl Fleet {
    /// The plan that all follow, from what was planned here.
    ///
    /// # Errors
    /// Why there is none, here or on another host.
    pub fn settle(&self, planned: Result<(Plan, Machine), Failure>) -> Result<(Plan, Machine), Failure> {
        match self {
            Self::Alone => planned,
            Self::Mpi(hosts) => hosts.settle(planned),
        }
    }

    /// Whether this host tells what was measured.
    pub fn tells(&self) -> bool {
        match self {
            Self::Alone => true,
            Self::Mpi(hosts) => hosts.rank == 0,
        }
    }

    /// What a host is called, by its rank.
    pub fn name(&self, rank: u32) -> String {
        match self {
            Self::Alone => "this host".into(),
            Self::Mpi(hosts) => hosts.name(rank as usize),
        }
    }

    /// How this host shows what was measured: one of them does.
    pub fn showing(&self, showing: Showing) -> Showing {
        if self.tells() {
            return showing;
        }
        Showing { watched: Progress::Quiet, outputs: Vec::new(), ..showing }
    }

    /// Waits until every host has made the files that are its own to make.
    ///
    /// # Errors
    /// If the measurement ended elsewhere.
    pub fn all_made(&self) -> Result<(), Failure> {
        self.any_reason(None).map(|_| ())
    }

    /// Waits until every host is at this step. Gives the first reason that a host has against going on as planned, the same on all
    /// hosts and, where there are several, after the name of that host.
    ///
    /// # Errors
    /// If the measurement ended elsewhere.
    pub fn any_reason(&self, own: Option<String>) -> Result<Option<String>, Failure> {
        match self {
            Self::Alone => Ok(own),
            Self::Mpi(hosts) => hosts.any_reason(own),
        }
    }

    /// From now on whatever ends the measurement elsewhere sets `stop`.
    pub fn stops(&self, stop: &Arc<AtomicBool>) {
        if let Self::Mpi(hosts) = self {
            hosts.shared.stops(stop);
        }
    }

    /// A session of this name has begun here.
    ///
    /// # Errors
    /// Where the session of all hosts cannot be written.
    pub fn begin(&self, header: &Header, name: &str, keep: bool) -> Result<(), Failure> {
        match self {
            Self::Alone => Ok(()),
            Self::Mpi(hosts) => hosts.begin(header, name, keep),
        }
    }

    /// The start gate: all hosts are ready for this phase, or one of them cannot begin it, with the reason where that is this one.
    ///
    /// # Errors
    /// Where it is over.
    pub fn gate(&self, start: &RunStart, refused: Option<String>) -> Result<Gate, Failure> {
        match self {
            Self::Alone => Ok(refused.map_or(Gate::Begin(None), Gate::Refused)),
            Self::Mpi(hosts) => hosts.gate(start, refused),
        }
    }

    /// Keeps a phase that no host has begun, since one of them could not.
    ///
    /// # Errors
    /// Where the session of all hosts cannot be written.
    pub fn refused(&self, start: &RunStart, end: &RunEnd) -> Result<(), Failure> {
        match self {
            Self::Alone => Ok(()),
            Self::Mpi(hosts) => hosts.keep_refused(start, end),
        }
    }

    /// Operations of the phase under way, so far, and the 99th percentile of their latency in ns, which is asked for now and then; and a look
    /// at whether anybody has fallen silent. Gives what is to be told of hosts whose storage does not answer.
    pub fn progress(&self, operations: u64, p99_ns: impl FnOnce() -> Option<u64>) -> Vec<String> {
        let Self::Mpi(hosts) = self else { return Vec::new() };
        hosts.shared.operations.store(operations, Ordering::Relaxed);
        if hosts.shared.wants_p99.swap(false, Ordering::Relaxed) {
            hosts.shared.p99_ns.store(p99_ns().unwrap_or(0), Ordering::Relaxed);
        }
        hosts.shared.notice_silence();
        hosts.notice_hung()
    }

    /// A row for each host that measures, for whoever watches, of many for some; and how many there are. `None` where this host does not tell.
    pub fn rows(&self) -> Option<(Vec<HostRow>, usize)> {
        let Self::Mpi(hosts) = self else { return None };
        self.tells().then(|| (hosts.rows(), hosts.size))
    }

    /// The load of a phase has ended here, whose last worker began so many ns behind the time of the gate.
    pub fn ended(&self, late_ns: u64) {
        if let Self::Mpi(hosts) = self {
            hosts.ended_phase(late_ns);
        }
    }

    /// What a run came to on all hosts, from its phases here, their courses, and what they came to: what is measured next is decided
    /// by that, and so alike on each. Of a sweep on several with how its last phase ended on all of them. `tell` is called now and then
    /// while others keep this one waiting, with what is to be told of them.
    ///
    /// # Errors
    /// Where it is over.
    pub fn agree(
        &self,
        (runs, courses): (&[Run], &[Vec<Interval>]),
        own: Summary,
        tell: impl Fn(&[String]),
    ) -> Result<(Summary, Option<RunEnd>), Failure> {
        match self {
            Self::Alone => Ok((own, None)),
            Self::Mpi(hosts) => hosts.agree((runs, courses), &own, tell),
        }
    }

    /// Why it is over before its time, where another host ended it.
    pub fn over(&self) -> Option<String> {
        match self {
            Self::Alone => None,
            Self::Mpi(hosts) => hosts.over(),
        }
    }

    /// What was measured on all hosts, in place of what was measured here; none where nothing takes its place.
    ///
    /// # Errors
    /// Where another host ended it, and tells that.
    pub fn gather(&self, seen: &HostOutcome) -> Result<Option<Gathered>, Failure> {
        match self {
            Self::Alone => Ok(None),
            Self::Mpi(hosts) => hosts.gather(seen),
        }
    }

    /// What the host so many behind this one has written, when all have written. `own` is what this one has.
    ///
    /// # Errors
    /// Where it is over before.
    pub fn written(&self, own: State, behind: Option<u32>) -> Result<State, Failure> {
        match (self, behind) {
            (Self::Mpi(hosts), Some(behind)) => hosts.written(own, behind as usize),
            _ => Ok(own),
        }
    }

    /// The name of the host so many behind this one; `None` for this one.
    pub fn host_behind(&self, behind: Option<u32>) -> Option<String> {
        behind.map(|behind| self.name(self.behind(behind)))
    }

    /// The rank of the host so many behind this one.
    fn behind(&self, behind: u32) -> u32 {
        match self {
            Self::Alone => 0,
            Self::Mpi(hosts) => ((hosts.rank + behind as usize) % hosts.size) as u32,
        }
    }

    /// The file of a name that each host has one of, as the host so many behind this one calls its own: its rank stands behind the name.
    pub fn file_of(&self, name: &Path, behind: Option<u32>) -> PathBuf {
        match self {
            Self::Alone => name.to_owned(),
            Self::Mpi(_) => {
                let mut name = name.as_os_str().to_owned();
                name.push(format!(".{}", self.behind(behind.unwrap_or(0))));
                name.into()
            }
        }
    }

    /// What came of a verification on all hosts; of those that are lost, why it is not known. `None` where another host tells it.
    ///
    /// # Errors
    /// Where it ended before its time, which another host tells.
    pub fn verified(&self, own: Verified) -> Result<Option<Vec<OnHost>>, Failure> {
        match self {
            Self::Alone => Ok(Some(vec![OnHost { host: None, outcome: Ok(own) }])),
            Self::Mpi(hosts) => hosts.verified(own),
        }
    }

    /// The exit code that whatever ended it before its time asks for.
    pub fn over_code(&self) -> Option<u8> {
        match self {
            Self::Alone => None,
            Self::Mpi(hosts) => hosts.shared.over().map(|(over, _)| over.code),
        }
    }

    /// Leaves the others with what this host came to; a failure here ends it for all.
    ///
    /// # Errors
    /// The failure that it was given, on the host that tells it.
    pub fn leave(&self, outcome: Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
        let Self::Mpi(hosts) = self else { return outcome };
        let outcome = outcome.map_err(|failure| hosts.end_all(failure));
        hosts.leave();
        outcome
    }
}
