//! `fathom limit`: its flags.

use crate::cli::shared_flags::{
    BudgetArgs, FleetArgs, Measuring, ReportArgs, WHAT, check_job, target_parser,
};
use crate::failure::Failure;
use crate::request::{Request, Work};
use crate::show::Showing;
use model::job::Arrivals;
use model::plan::LatencyTarget;
use model::spec::number::time_limit;
use std::path::PathBuf;

/// The latency target: at most one.
#[derive(clap::Args, Debug)]
#[group(multiple = false)]
#[command(next_help_heading = WHAT)]
struct LatencyTargetArgs {
    /// Find the highest rate with a median latency of at most this
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    p50: Option<u64>,
    /// Find the highest rate with a 90th percentile latency of at most this
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    p90: Option<u64>,
    /// Find the highest rate with a 95th percentile latency of at most this
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    p95: Option<u64>,
    /// Find the highest rate with a 99th percentile latency of at most this, such as --p99 1ms
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    p99: Option<u64>,
    /// Find the highest rate with a 99.9th percentile latency of at most this
    #[arg(long = "p99.9", value_name = "DURATION", value_parser = time_limit)]
    p99_9: Option<u64>,
}

/// Find the highest rate that meets a latency target, or measure latency against offered load.
///
/// A closed loop measures the capacity first. Then an open loop offers loads: operations start on schedule however slow the storage is,
/// and latency counts from the scheduled start. With a latency target such as --p99 1ms, bisection finds the highest load that meets it.
/// Without one, or with --curve, the loads are 10, 30, 50, 70, 80, 90 and 95 % of the capacity, and some around the knee. Flags describe
/// the workload as for `fathom run`. Depth and workers apply to the closed loop.
///
/// An existing file or device is only read, unless --destroy names it.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory, file or block device [default: the current directory]
    #[arg(value_parser = target_parser())]
    target: Option<PathBuf>,
    #[command(flatten)]
    latency_target: LatencyTargetArgs,
    /// With a latency target, also measure the curve of latency against load, and its knee; doubles the default --budget
    #[arg(long, help_heading = WHAT)]
    curve: bool,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    fleet: FleetArgs,
    #[command(flatten)]
    report: ReportArgs,
}

impl LatencyTargetArgs {
    /// Returns the latency target. If no latency was typed, the target has none, and the curve
    /// shows p99.
    fn latency_target(&self, arrivals: Option<Arrivals>, curve: bool) -> LatencyTarget {
        let given =
            [(0.5, self.p50), (0.9, self.p90), (0.95, self.p95), (0.99, self.p99), (0.999, self.p99_9)];
        let found = given.into_iter().find(|(_, ns)| ns.is_some());
        let (quantile, latency_ns) = found.unwrap_or((0.99, None));
        let curve = curve || latency_ns.is_none();
        LatencyTarget { quantile, latency_ns, arrivals: arrivals.unwrap_or_default(), curve }
    }
}

impl Args {
    /// Returns the request.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<(Request, Showing), Failure> {
        let mut request = self.measuring.request(Work::Job, self.target);
        // The closed loop and the open loop share one job. Only the open loop has arrivals, so take them out of the job.
        let first = request.job.streams_mut().next();
        let workers = first.as_ref().map_or(1, |s| s.resolved.workers);
        let arrivals = first.and_then(|s| s.arrivals.take());
        if matches!(arrivals, Some(Arrivals::OnOff { .. })) && workers > 1 {
            return Err(Failure::Usage(
                "--arrivals on-off works with a single worker; leave --workers out, or type other --arrivals"
                    .into(),
            ));
        }
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.budget_ns = self.budget.budget;
        request.work = Work::Limit(self.latency_target.latency_target(arrivals, self.curve));
        check_job(&request.job)?;
        Ok((request, self.report.showing()?))
    }
}
