//! Joins the hosts that an MPI launcher started, so that they measure as one.
//!
//! [`Fleet`] is what the rest of fathom sees: one host alone, or several. A measurement calls it at these steps, in the same order on every
//! host:
//!
//! 1. [`join`] checks the launcher and meets the other ranks.
//! 2. [`Fleet::settle`] turns the plans of all hosts into one plan.
//! 3. [`Fleet::common_start`] starts each phase on all hosts at the same time.
//! 4. [`Fleet::merge_run`] merges each run, so that every host decides alike what to measure next.
//! 5. `Fleet::gather` merges the sessions of all hosts on rank 0.
//!
//! Crate `fleet` has the protocol. Without the feature `fleet`, this host is always alone.
#![cfg_attr(
    not(feature = "fleet"),
    allow(
        unused_variables,
        clippy::match_single_binding,
        reason = "a host alone ignores what others would need"
    )
)]

mod launcher;

use crate::failure::Failure;
use crate::live::{HostProgress, ProgressMode};
use crate::request::Request;
#[cfg(feature = "fleet")]
use crate::request::{BenchSpec, JobSource, Work};
use crate::show::Showing;
#[cfg(feature = "fleet")]
use ::fleet::{HostOutcome, Hosts, MergedOutcome};
use analysis::strategy::Summary;
use launcher::Launched;
use model::plan::Planned;
use model::record::{Header, Interval, Run, RunEnd, RunStart};
use model::verification::{HostVerification, State, Verified};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The hosts that participate in a measurement.
#[derive(Clone)]
pub enum Fleet {
    /// Only this host.
    Alone,
    /// Several hosts, which find each other through MPI.
    #[cfg(feature = "fleet")]
    Several(Arc<Hosts>),
}

/// Evaluates one expression for several hosts and another one for a host alone. A build without the feature `fleet` has only the expression
/// for a host alone.
macro_rules! several {
    ($fleet:expr, $hosts:ident => $several:expr, alone => $alone:expr) => {
        match $fleet {
            Self::Alone => $alone,
            #[cfg(feature = "fleet")]
            Self::Several($hosts) => $several,
        }
    };
}

/// Joins the hosts that a launcher started with this one.
///
/// # Errors
/// If the launcher's processes do not find each other, if several hosts cannot measure the request, or if this host is alone and a flag
/// requires several.
pub fn join(request: &Request) -> Result<Fleet, Failure> {
    let launched = launcher::launcher_of_this_process();
    let fleet = match &launched {
        #[cfg(feature = "fleet")]
        Some(launched) if launched.processes != Some(1) => meet(launched, request)?,
        _ => {
            check_launcher(launched.as_ref(), 1)?;
            Fleet::Alone
        }
    };
    let mut streams = request.job.streams();
    let of_several = [
        (
            streams.clone().any(|s| s.shared.is_some() && s.resolved.workers < 2),
            "--shared",
            "divides a file among several workers, and there is only one (--workers 2 makes two)",
        ),
        (streams.any(|s| s.has("shift-hosts")), "--shift-hosts", "needs the files of other hosts"),
        (request.ranks_per_host.is_some(), "--ranks-per-host", "needs several hosts"),
        (!request.hosts.is_empty(), "--hosts", "needs other hosts"),
    ];
    let needs_several = of_several.into_iter().find(|(is_given, ..)| *is_given);
    match (&fleet, needs_several) {
        (Fleet::Alone, Some((_, flag, why))) => Err(Failure::Usage(format!(
            "{flag} {why}: this host measures alone; start fathom with mpirun, or leave {flag} out"
        ))),
        #[cfg(feature = "fleet")]
        (Fleet::Several(hosts), _) => match unsupported(request) {
            Some(why) => Err(hosts.end_all(Failure::Usage(why))),
            None => Ok(fleet),
        },
        (Fleet::Alone, None) => Ok(fleet),
    }
}

/// For commands that work on one host: refuses to run if a launcher started several processes.
///
/// # Errors
/// The reason, and what to type instead.
pub fn alone() -> Result<(), Failure> {
    check_launcher(launcher::launcher_of_this_process().as_ref(), 1)
}

fn check_launcher(launched: Option<&Launched>, world: u32) -> Result<(), Failure> {
    launcher::check(launched, world, cfg!(feature = "fleet")).map_err(|why| {
        // Only the first process reports a problem that all have.
        if launcher::is_first() { Failure::Usage(why) } else { Failure::Elsewhere(2) }
    })
}

/// Finds the other hosts through MPI.
#[cfg(feature = "fleet")]
fn meet(launched: &Launched, request: &Request) -> Result<Fleet, Failure> {
    let hosts = ::fleet::join(::fleet::mpi_network, request.ranks_per_host.unwrap_or(1))?;
    if let Err(why) = check_launcher(Some(launched), hosts.size as u32) {
        hosts.leave();
        return Err(why);
    }
    Ok(if hosts.size > 1 { Fleet::Several(Arc::new(hosts)) } else { Fleet::Alone })
}

/// The outcome of [`Fleet::common_start`].
#[derive(Debug)]
pub enum CommonStart {
    /// Begin the phase at this time, or at once if no other host participates.
    Begin(Option<Instant>),
    /// A host cannot begin the phase, so no host begins it.
    Refused(String),
}

impl Fleet {
    /// Returns the plan that all hosts follow, from the plan of this host.
    ///
    /// # Errors
    /// Why there is no plan, on this host or another one.
    pub fn settle(&self, planned: Result<Planned, Failure>) -> Result<Planned, Failure> {
        several!(self, hosts => hosts.settle(planned), alone => planned)
    }

    /// Whether this host reports the results.
    pub fn reports_results(&self) -> bool {
        several!(self, hosts => hosts.rank == 0, alone => true)
    }

    /// The name of the host with this rank.
    pub fn name(&self, rank: u32) -> String {
        several!(self, hosts => hosts.name(rank as usize), alone => "this host".into())
    }

    /// Returns how this host shows results: rank 0 as requested, other ranks without progress and output files.
    pub fn showing(&self, showing: Showing) -> Showing {
        if self.reports_results() {
            return showing;
        }
        Showing { watched: ProgressMode::Quiet, outputs: Vec::new(), ..showing }
    }

    /// Waits until every host has made its own files.
    ///
    /// # Errors
    /// If the measurement ended on another host.
    pub fn all_made(&self) -> Result<(), Failure> {
        self.first_reason(None).map(|_| ())
    }

    /// Waits until every host has reached this step. `own` is the reason of this host not to continue. Returns the first reason of any
    /// host, the same on all hosts; `None` if no host has one. With several hosts, the reason begins with the name of its host.
    ///
    /// # Errors
    /// If the measurement ended on another host.
    pub fn first_reason(&self, own: Option<String>) -> Result<Option<String>, Failure> {
        several!(self, hosts => hosts.first_reason(own), alone => Ok(own))
    }

    /// Registers a flag that is set when the measurement ends on another host.
    pub fn register_stop(&self, stop: &Arc<AtomicBool>) {
        several!(self, hosts => hosts.register_stop(stop), alone => {});
    }

    /// Begins the session of all hosts, with this name.
    ///
    /// # Errors
    /// If the session cannot be written.
    pub fn begin(&self, header: &Header, name: &str, keep: bool) -> Result<(), Failure> {
        several!(self, hosts => hosts.begin(header, name, keep), alone => Ok(()))
    }

    /// Waits until all hosts are ready for the phase. Returns its common start, or the reason why
    /// one host cannot begin it. `refused` is the reason of this host.
    ///
    /// # Errors
    /// If the measurement ended early.
    pub fn common_start(&self, start: &RunStart, refused: Option<String>) -> Result<CommonStart, Failure> {
        several!(
            self,
            hosts => Ok(hosts.common_start(start, refused)?.map_or_else(CommonStart::Refused, |at| CommonStart::Begin(Some(at)))),
            alone => Ok(refused.map_or(CommonStart::Begin(None), CommonStart::Refused))
        )
    }

    /// Records a phase that no host began because one host could not.
    ///
    /// # Errors
    /// If the session cannot be written.
    pub fn refused(&self, start: &RunStart, end: &RunEnd) -> Result<(), Failure> {
        several!(self, hosts => hosts.keep_refused(start, end), alone => Ok(()))
    }

    /// Reports the completed operations of the current phase, and from time to time the 99th percentile of their latency in ns. Checks for
    /// unresponsive hosts, and returns reports of hung storage.
    pub fn progress(&self, operations: u64, p99_ns: impl FnOnce() -> Option<u64>) -> Vec<String> {
        several!(self, hosts => hosts.report_progress(operations, p99_ns), alone => Vec::new())
    }

    /// Returns a row of progress for each host, or for the most important of many hosts, and the number of hosts. `None` on a host
    /// that measures alone or does not report.
    pub fn host_progress(&self) -> Option<(Vec<HostProgress>, usize)> {
        several!(self, hosts => self.reports_results().then(|| (hosts.host_progress(), hosts.size)), alone => None)
    }

    /// Reports that the load of a phase has ended on this host. The last of this host's workers
    /// began `late_ns` after the common start.
    pub fn end_phase(&self, late_ns: u64) {
        several!(self, hosts => hosts.end_phase(late_ns), alone => {});
    }

    /// Merges one run of all hosts. On this host, `runs` are the phases of the run,
    /// `interval_series` their time series, and `own` the summary of the run. Returns the merged
    /// summary, by which all hosts decide what to measure next; for a sweep also how the last phase
    /// ended on all hosts. Calls `report` with reports of hung storage while this host waits.
    ///
    /// # Errors
    /// If the measurement ended early.
    pub fn merge_run(
        &self,
        runs: &[Run],
        interval_series: &[Vec<Interval>],
        own: Summary,
        report: impl Fn(&[String]),
    ) -> Result<(Summary, Option<RunEnd>), Failure> {
        several!(self, hosts => hosts.merge_run(runs, interval_series, &own, report), alone => Ok((own, None)))
    }

    /// Returns why another host ended the measurement early; `None` if none did.
    pub fn early_end(&self) -> Option<String> {
        several!(self, hosts => hosts.early_end(), alone => None)
    }

    /// Returns the merged session of all hosts on rank 0; `None` on other ranks, and if this host
    /// measured alone.
    ///
    /// # Errors
    /// If another host ended the measurement and reports it, or the session cannot be written.
    #[cfg(feature = "fleet")]
    pub fn gather(&self, seen: &HostOutcome) -> Result<Option<MergedOutcome>, Failure> {
        several!(self, hosts => hosts.gather(seen), alone => Ok(None))
    }

    /// Waits until all hosts have written, and returns the state of the host `shift` ranks after
    /// this one. A host alone, or without `shift`, returns its `own` state at once.
    ///
    /// # Errors
    /// If the measurement ended early.
    pub fn exchange_written(&self, own: State, shift: Option<u32>) -> Result<State, Failure> {
        match (self, shift) {
            #[cfg(feature = "fleet")]
            (Self::Several(hosts), Some(shift)) => hosts.exchange_written(own, shift as usize),
            _ => Ok(own),
        }
    }

    /// The name of the host `shift` ranks after this one; `None` without a shift.
    pub fn shifted_host(&self, shift: Option<u32>) -> Option<String> {
        shift.map(|shift| self.name(self.shifted_rank(shift)))
    }

    /// The rank of the host `shift` ranks after this one. Rank 0 comes after the last rank.
    fn shifted_rank(&self, shift: u32) -> u32 {
        several!(self, hosts => ((hosts.rank + shift as usize) % hosts.size) as u32, alone => 0)
    }

    /// Returns the path of the file `name` of the host `shift` ranks after this one; without `shift`, of this host. With several hosts, the
    /// rank of that host is appended to `name`.
    pub fn file_of(&self, name: &Path, shift: Option<u32>) -> PathBuf {
        if matches!(self, Self::Alone) {
            return name.to_owned();
        }
        let mut name = name.as_os_str().to_owned();
        name.push(format!(".{}", self.shifted_rank(shift.unwrap_or(0))));
        name.into()
    }

    /// Returns the outcome of a verification on each host, or why the host was lost. `None` if another host reports them.
    ///
    /// # Errors
    /// If the measurement ended early, and another host reports it.
    pub fn collect_verified(&self, own: Verified) -> Result<Option<Vec<HostVerification>>, Failure> {
        several!(self, hosts => hosts.collect_verified(own), alone => Ok(Some(vec![HostVerification { host: None, outcome: Ok(own) }])))
    }

    /// The exit code for the reason that ended the measurement early; `None` if it did not end
    /// early.
    pub fn early_exit_code(&self) -> Option<u8> {
        several!(self, hosts => hosts.early_exit_code(), alone => None)
    }

    /// Ends this host's part in the measurement. If `outcome` is a failure, the measurement ends on
    /// all hosts.
    ///
    /// # Errors
    /// The failure in `outcome`; [`Failure::Elsewhere`] on a host that does not report it.
    pub fn leave(&self, outcome: Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
        #[cfg(feature = "fleet")]
        if let Self::Several(hosts) = self {
            let outcome = outcome.map_err(|failure| hosts.end_all(failure));
            hosts.leave();
            return outcome;
        }
        outcome
    }
}

/// Returns why several hosts cannot measure the request; `None` if they can.
#[cfg(feature = "fleet")]
fn unsupported(request: &Request) -> Option<String> {
    let Request { work, job, source, against, .. } = request;
    let what = match work {
        Work::Profile(BenchSpec { quick: true, .. }) => "--quick",
        Work::Profile(BenchSpec { compare: true, .. }) => "--compare",
        Work::Layers => "`fathom layers`",
        Work::Api { .. } => "`fathom api`",
        Work::Profile(_) | Work::Job | Work::Limit(_) | Work::Sweep(_) => match source {
            Some(JobSource::CommandOf(_)) => "the command of another tool",
            _ if against.is_some() => "--against",
            _ if job.op_log.is_some() => "--op-log",
            _ if job.precondition == Some(true) => "--precondition",
            _ if job.settle == Some(true) => "--settle",
            _ => return None,
        },
    };
    let or_leave_out = if what.starts_with("--") { format!(", or leave {what} out") } else { String::new() };
    Some(format!(
        "{what} works on one host only, and the launcher started several processes; start fathom without the launcher{or_leave_out} (several hosts can run `fathom run`, `fathom bench`, `fathom limit`, `fathom sweep` and `fathom verify`)"
    ))
}
