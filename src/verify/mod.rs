//! Verifying: write, read back, and say what became of every block; also over a crash in between.
//!
//! For: the flow of `fathom verify` from what was said to the exit code, on one host or on several together. Not for: speed, which is
//! measured elsewhere, nor for knowing what must be where (`model::verification`), nor what is wrong with it (`model::stamp`).
//!
//! It is planned like any other workload of random writes, so that it meets the same refusals and the same two locks.

mod request;
mod state;
mod under_way;

use crate::failure::Failure;
use crate::fleet::{self, Fleet};
use crate::output::{self, Replace, Rules};
use crate::plan;
use crate::show::{self, Outlets};
use crate::signals::{self, INTERRUPTED};
use crate::spared::Spared;
use model::job::{Cache, Layout};
use model::machine::Machine;
use model::plan::Plan;
use model::report::Producer;
use model::spec::EngineSpec;
use model::verified::{OnHost, Verdict, Verifications};
use report::{Format, Style};
use request::HostTask;
use std::path::PathBuf;
use std::process::ExitCode;
use under_way::VerifyRun;

/// What the user said.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where.
    pub target: Option<PathBuf>,
    /// What.
    pub task: Task,
    /// Operations in flight.
    pub depth: u32,
    /// What writes and reads back.
    pub engine: Option<EngineSpec>,
    /// What the target is opened with.
    pub cache: Option<Cache>,
    /// Read back without evicting the target.
    pub cached: bool,
    /// The format of the outcome.
    pub format: &'static Format,
    /// Files that it is written to beside standard output.
    pub outputs: Vec<PathBuf>,
    /// What these may replace.
    pub replace: Replace,
    /// No progress.
    pub quiet: bool,
    /// How one file is divided among all hosts; `None` where each has its own.
    pub shared: Option<Layout>,
    /// How many hosts on the one is whose data each reads back; `None` for its own.
    pub shift_hosts: Option<u32>,
    /// Ranks that are allowed on one host.
    pub ranks_per_host: Option<u32>,
}

/// To write and read back, or only to read back.
#[derive(Clone, Debug)]
pub enum Task {
    /// Write and read back.
    Write(ToWrite),
    /// Read back what the state of this file says.
    Check(PathBuf),
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct ToWrite {
    /// Bytes; all there is where nothing was said.
    pub size_bytes: Option<u64>,
    /// First byte.
    pub offset_bytes: Option<u64>,
    /// What one operation writes.
    pub block_bytes: u32,
    /// Times each block is written.
    pub passes: u32,
    /// Time after which nothing more is written.
    pub time_ns: Option<u64>,
    /// Writes after which everything is made stable.
    pub sync_every: u64,
    /// Seed of the orders.
    pub seed: Option<u64>,
    /// Name of what may be overwritten.
    pub destroy: Option<String>,
    /// Paths of what may be written though users of it may be hidden.
    pub unseen_users: Vec<PathBuf>,
    /// Where to keep what a check has to know.
    pub state: Option<PathBuf>,
}

/// Verifies, alone or as one of several hosts, and prints what came of it.
///
/// # Errors
/// Where nothing could be verified: usage, the machine's refusal, or an interruption before anything was written.
pub fn verify(asked: &Options) -> Result<ExitCode, Failure> {
    let fleet = fleet::join(&request::of_hosts(asked))?;
    fleet.leave(verify_in(&fleet, asked))
}

fn verify_in(fleet: &Fleet, asked: &Options) -> Result<ExitCode, Failure> {
    let meant = HostTask::from_options(asked, fleet)?;
    if let (HostTask::Check(state), Fleet::Alone) = (&meant, fleet)
        && let Some(outcome) = under_way::cut_off(asked, state)
    {
        let mut spared = Spared::default();
        spared.add(&request::checked(asked, state), "the target of this call");
        if let Task::Check(file) = &asked.task {
            spared.add(file, "a state of this verification");
        }
        let outlets = show::outlets(&asked.outputs, asked.replace, spared)?;
        return conclude(asked, vec![OnHost { host: None, outcome: Ok(outcome) }], &outlets, fleet);
    }
    let (plan, machine) = fleet.settle(plan::plan(&request::to_request(asked, &meant)))?;
    // What is wrong on all of them one of them tells.
    let told = |why| if fleet.tells() { why } else { Failure::Elsewhere(2) };
    request::refuse_impossible(&plan, &meant, asked).map_err(told)?;
    let outlets = outlets(asked, (&plan, &machine), fleet)?;
    let stop = signals::watch(machine::test_file::remove_all_now)
        .map_err(|e| Failure::Refused(format!("signals cannot be watched: {e}{}", sys::cause(&e))))?;
    // The thread that watches them reads them, so that no I/O call here is interrupted.
    sys::thread::block_signals().map_err(|e| Failure::Refused(format!("signals cannot be blocked: {e}")))?;
    fleet.stops(&stop);
    let mut run = VerifyRun::prepare(asked, (plan, machine), &meant, (stop, fleet))?;
    let outcome = match &meant {
        HostTask::Write(to_write, state) => run.write_and_read(to_write, state.as_deref())?,
        HostTask::Check(state) => run.check(state)?,
    };
    let Some(hosts) = fleet.verified(outcome)? else { return Ok(ExitCode::SUCCESS) };
    conclude(asked, hosts, &outlets, fleet)
}

/// Prints what came of it, and gives the exit code.
fn conclude(
    asked: &Options,
    hosts: Vec<OnHost>,
    outlets: &Outlets,
    fleet: &Fleet,
) -> Result<ExitCode, Failure> {
    let outcome =
        Verifications { fathom: Producer { format: 1, version: env!("CARGO_PKG_VERSION").into() }, hosts };
    show::put(&outcome, (asked.format, Style::default()), outlets, None)?;
    Ok(match outcome.verdict() {
        Verdict::Verified => ExitCode::SUCCESS,
        Verdict::Damaged => ExitCode::from(1),
        Verdict::Interrupted => ExitCode::from(fleet.over_code().unwrap_or(INTERRUPTED)),
    })
}

/// Where the outcome goes beside standard output: one host writes it, and never over a state of this call.
fn outlets(asked: &Options, (plan, machine): (&Plan, &Machine), fleet: &Fleet) -> Result<Outlets, Failure> {
    let outputs = if fleet.tells() { asked.outputs.as_slice() } else { &[] };
    let state = match &asked.task {
        Task::Check(file) => Some(file),
        Task::Write(to_write) => to_write.state.as_ref(),
    };
    let hosts = plan.part.map_or(1, |part| part.hosts);
    let states = state.into_iter().flat_map(|file| (0..hosts).map(|by| fleet.file_of(file, Some(by))));
    let mut spared = Spared::from_plan(plan, &machine.places);
    let mut new = outputs.to_vec();
    for state in states {
        spared.add(&state, "a state of this verification");
        // One that is still to be written is no file yet that could be spared: no two names may lead to it.
        new.extend((!outputs.is_empty() && !state.exists()).then_some(state));
    }
    output::decide_all(&new, &Rules { flag: "-o", spared: spared.clone(), replace: asked.replace })?;
    show::outlets(outputs, asked.replace, spared)
}
