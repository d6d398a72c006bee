//! `fathom time`: runs a command of the user and reports what the storage did meanwhile.
//!
//! 1. The plan names the commands. The machine is read once: devices below the files on the command lines, and below the current
//!    directory.
//! 2. The thread that starts the command moves into a cgroup if it has the right, so that the kernel counts the command's I/O separately.
//!    `Runner::run` measures one run.
//! 3. All evidence goes to a session file, and crate `analysis` judges it, as for every other command.
//! 4. A final sync covers every file system, wherever the command wrote. `sync(2)` cannot be interrupted, so a second process of fathom
//!    calls it: when a signal ends the wait, fathom exits at once.
//! 5. The report follows the command's own output on standard error, and the exit code is the command's.
//! 6. During a run, fathom passes signals on to the command.

mod run;

use crate::failure::Failure;
use crate::files::output::ProtectedPaths;
use crate::session::Session;
use crate::show::{self, Showing};
use crate::{signals, stderr, stdout};
use jiff::tz::TimeZone;
use machine::cgroup::{self, OwnCgroup};
use machine::named_files::{self, Named};
use machine::resolve::resolve_another;
use machine::root::Root;
use machine::snapshot::SnapshotReader;
use model::command::{Cold, Command, CommandStudy, Exit, FinalSync};
use model::machine::{LayerKind, Machine, Place};
use model::name;
use model::payload::split_mix;
use model::plan::Plan;
use model::record::{self, Clock, End, Frame, Header, RunEnding, SelfTest};
use model::report::Report;
use model::verdict::Condition;
use report::Style;
pub(crate) use run::{NOT_FOUND, SHELL};
use run::{Run, Runner, Tracing};
use rustix::process::{Pid, getpgid, getpgrp, getsid};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGVTALRM, SIGXCPU,
};
use std::collections::BTreeSet;
use std::io::read_to_string;
use std::path::Path;
use std::process;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Exit code if fathom itself fails. `timeout` and `env` use the same code.
pub const OWN_FAILURE: u8 = 125;

/// The user's request.
#[derive(Debug)]
pub struct Request {
    /// The command or commands, and how to run them.
    pub study: CommandStudy,
    /// Runs of each command.
    pub runs: u32,
    /// Whether to count system calls in the kernel, if permitted.
    pub trace: bool,
    /// Conditions under which the exit code is 1.
    pub fail_if: Vec<Condition>,
    /// Whether the session is kept.
    pub keep: bool,
}

/// Runs the commands and reports. The exit code is that of the command or, if the command succeeded, of the conditions; [`OWN_FAILURE`] if
/// fathom fails.
pub fn time(request: &Request, showing: &Showing) -> ExitCode {
    measure(request, showing).unwrap_or_else(|failure| {
        failure.print();
        ExitCode::from(OWN_FAILURE)
    })
}

/// State shared with the thread that receives signals.
#[derive(Debug, Default)]
struct Signalled {
    /// Process id of the running command; `None` between runs. Locked while a command starts.
    command: Mutex<Option<u32>>,
    /// The last signal that arrived while no command ran, and that ends fathom; 0 if there was none.
    ending: AtomicI32,
}

impl Signalled {
    fn command(&self) -> MutexGuard<'_, Option<u32>> {
        self.command.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signal that ends fathom, if one arrived.
    fn ending(&self) -> Option<i32> {
        Some(self.ending.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

fn measure(request: &Request, showing: &Showing) -> Result<ExitCode, Failure> {
    let root = Root::real();
    let plan = plan(request);
    // Where SIGCHLD is ignored, the kernel reports neither the end of a child nor its I/O.
    let _ = sys::process::stop_ignoring(SIGCHLD);
    // Read the host and the devices below the files at the same time, because both take equally long.
    let mut named = Vec::new();
    let mut places = Vec::new();
    let mut machine = std::thread::scope(|scope| {
        scope.spawn(|| (named, places) = find_files(&root, &request.study.commands));
        machine::host::read_host(&root)
    });
    machine.places = places;
    let mut protected = ProtectedPaths::default();
    for one in named.iter().flatten() {
        protected.add(&one.path, "a file that the command names");
    }
    let outlets = show::outlets(&showing.outputs, showing.replace, protected)?;
    let signalled = Arc::new(Signalled::default());
    pass_on_signals(&signalled)?;
    let own_cgroup = enter_cgroup(&root, &machine);
    machine.cgroup = own_cgroup.as_ref().map(OwnCgroup::describe).map_err(Clone::clone);

    let started = local_now();
    let epoch = Instant::now();
    let mut session = Session::open(&started.strftime("%Y%m%d-%H%M%S").to_string(), request.keep)?;
    let snapshots = SnapshotReader::new(root.clone(), &machine, epoch);
    session.append(&Frame::Header(Box::new(Header {
        format: record::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: started.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        plan: plan.clone(),
        hosts: vec![machine.clone()],
        clock: Clock { name: "clock_monotonic".into(), reason: None, cost_ps: 0 },
        self_test: SelfTest::default(),
    })))?;
    let tracing = request.trace.then(|| Tracing::new(&machine));
    let tracing = tracing.ok_or_else(|| "--no-trace: system calls were not counted".to_owned());
    let runner = Runner { root, snapshots, machine, epoch, named, signalled, tracing, request };
    let exit = match run_all(&runner, &mut session, plan.seed)? {
        Run::Ended(exit) => exit,
        Run::NotStarted(code) => {
            if session.is_kept() {
                let _ = std::fs::remove_file(session.path());
            }
            return Ok(ExitCode::from(code));
        }
    };
    drop(own_cgroup);
    let file = session.is_kept().then(|| session.path().to_owned());
    let record = session.record()?;
    let report = show::judge(&record, file.as_deref(), model::report::Annotations::default(), showing);
    let style = Style { detail: showing.detail, ..Style::default() };
    stderr::write(&stdout::render_to_fit(showing.format, &report, style, &std::io::stderr())?);
    match show::write_files(&report, showing.format, style, &outlets) {
        // A failed command determines the exit code, even if a file could not be written.
        Err(failure) if !exit.is_success() => {
            failure.print();
            Ok(exit_code(exit, &report))
        }
        printed => printed.map(|()| exit_code(exit, &report)),
    }
}

/// Returns the exit code of the command. If the command succeeded, the conditions decide.
fn exit_code(exit: Exit, report: &Report) -> ExitCode {
    if !exit.is_success() || report.gates.is_empty() {
        return ExitCode::from(exit.code());
    }
    ExitCode::from(analysis::exit_code(report))
}

/// Runs each command as often as requested. Several commands take turns in random order. Stops at the first failure. Returns how the last
/// command ended. If a command cannot be run and there are earlier runs, returns the exit code of that failure, so that the earlier runs
/// are reported.
fn run_all(runner: &Runner, session: &mut Session, seed: u64) -> Result<Run, Failure> {
    let mut exit = Exit::Code(0);
    let mut failure = None;
    let mut random = seed;
    'rounds: for round in 0..runner.request.runs {
        let mut order: Vec<usize> = (0..runner.request.study.commands.len()).collect();
        for at in (1..order.len()).rev() {
            random = split_mix(random);
            order.swap(at, (random % (at as u64 + 1)) as usize);
        }
        for command in order {
            exit = match runner.run(command, round, session) {
                Ok(Run::Ended(exit)) => exit,
                outcome if session.runs() == 0 => return outcome,
                // Report the earlier runs.
                Ok(Run::NotStarted(code)) => {
                    let line = name::quoted(&runner.request.study.commands[command].line);
                    failure = Some(format!("{line} could not be started again"));
                    Exit::Code(code.into())
                }
                Err(why) => {
                    why.print();
                    failure = Some(why.message().to_owned());
                    Exit::Code(OWN_FAILURE.into())
                }
            };
            if !exit.is_success() || runner.signalled.ending().is_some() {
                break 'rounds;
            }
        }
    }
    let signal = runner.signalled.ending();
    let ending = match (failure, signal) {
        (Some(why), _) => RunEnding::Failed(why),
        (None, Some(_)) => RunEnding::Interrupted,
        (None, None) => RunEnding::Complete,
    };
    let notes = session.omitted_note().into_iter().collect();
    session.append(&Frame::End(End { ending, notes, clock_drift_ppm: None }))?;
    Ok(Run::Ended(signal.filter(|_| exit.is_success()).map_or(exit, Exit::Signal)))
}

/// Signals that end fathom between runs and during the final sync. Others, such as `SIGUSR1`, are requests to the command, and have no
/// effect without a command.
const ENDING: [i32; 9] = [SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGTERM, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];

/// Signals that the kernel itself sends to every process of the terminal's foreground group.
const OF_TERMINAL: [i32; 3] = [SIGHUP, SIGINT, SIGQUIT];

/// Passes the signals of other processes on to the running command. The kernel itself sends signals of the terminal to the command. If the
/// command has left fathom's process group, as `timeout` does, fathom passes them on. A command in its own session, as after `setsid`, gets
/// none: it has left the terminal.
///
/// A signal of a process to the whole group reaches the command twice. The kernel does not show whether a signal was for the group or for
/// fathom alone, and a lost signal is worse than one that arrives twice.
fn pass_on_signals(signalled: &Arc<Signalled>) -> Result<(), Failure> {
    let shared = Arc::clone(signalled);
    signals::pass_on(move |signal, is_from_process| match *shared.command() {
        Some(pid) if is_from_process || (OF_TERMINAL.contains(&signal) && has_left_group(pid)) => {
            let _ = sys::process::send(pid, signal);
        }
        None if ENDING.contains(&signal) => shared.ending.store(signal, Ordering::Relaxed),
        _ => {}
    })
}

/// Whether a process is in another process group than fathom, but in the same session.
fn has_left_group(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let is_same_session = matches!((getsid(Some(pid)), getsid(None)), (Ok(its), Ok(own)) if its == own);
    is_same_session && getpgid(Some(pid)).is_ok_and(|group| group != getpgrp())
}

fn enter_cgroup(root: &Root, machine: &Machine) -> model::Known<OwnCgroup> {
    let own = cgroup::enter_with_this_thread(root)?;
    let layers = machine.places.iter().flat_map(|place| &place.layers);
    own.count_on(layers.filter(|l| l.kind != LayerKind::Partition).map(|l| l.number.as_str()));
    Ok(own)
}

fn plan(request: &Request) -> Plan {
    let command = std::env::args_os().map(name::text).collect();
    Plan {
        runs: request.runs,
        fail_if: request.fail_if.clone(),
        seed: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64),
        cold: request.study.cold != Cold::No,
        ..Plan::new(command, "time", request.study.clone().into())
    }
}

/// The words of a command line that may be paths: the arguments of the command, or the words of a shell command.
fn argument_words(command: &Command) -> Vec<String> {
    match command.args.as_slice() {
        [shell, flag, script, ..] if flag == "-c" && shell.ends_with("sh") => {
            let between = |c: char| c.is_whitespace() || "<>|;&()\"'`".contains(c);
            script.split(between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        args => args.iter().skip(1).cloned().collect(),
    }
}

/// Returns the files that each command names, and the places of these files and of the current directory, without duplicates.
fn find_files(root: &Root, commands: &[Command]) -> (Vec<Vec<Named>>, Vec<Place>) {
    let mut places = Vec::new();
    let mut find = |command| named_files::find(root, &argument_words(command), &mut places);
    let named = commands.iter().map(&mut find).collect();
    places.extend(resolve_another(root, Path::new("."), &places));
    let mut seen = BTreeSet::new();
    places.retain(|place| {
        let tops = place.tops.iter().filter_map(|at| Some(place.layers.get(*at)?.name.clone()));
        seen.insert(tops.chain(place.ram.clone()).collect::<Vec<_>>())
    });
    (named, places)
}

/// Now, in the local time zone. `Zoned::now` would take 1 ms, because it lists all time zones of
/// the machine to name the local one.
fn local_now() -> jiff::Zoned {
    let file = std::fs::read("/etc/localtime").ok().filter(|_| std::env::var_os("TZ").is_none());
    let zone = file.and_then(|text| TimeZone::tzif("local", &text).ok());
    jiff::Timestamp::now().to_zoned(zone.unwrap_or_else(TimeZone::system))
}

/// How often to check whether the sync is done.
const POLL: Duration = Duration::from_millis(1);
/// The hidden flag with which fathom calls itself.
const FLAG: &str = "--sync-all";

/// Writes back all dirty data of the machine. Waits until this is done, or a signal arrives.
fn make_stable(signalled: &Signalled) -> FinalSync {
    let child = process::Command::new("/proc/self/exe")
        .args(["time", FLAG])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) => {
            return FinalSync::Failed(format!("the process for the final sync could not be started: {e}"));
        }
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => {
                let text = child.stdout.take().and_then(|text| read_to_string(text).ok());
                let took_ns = text.and_then(|text| text.trim().parse().ok());
                let unknown =
                    || FinalSync::Failed("the process for the final sync did not report its time".into());
                return took_ns.map_or_else(unknown, FinalSync::Done);
            }
            // A signal to the process group ends the other process too.
            Ok(_) if signalled.ending().is_some() => {
                let _ = child.kill();
                return FinalSync::Skipped;
            }
            Ok(Some(status)) => {
                let why = child.stderr.take().and_then(|text| read_to_string(text).ok());
                let why = why.unwrap_or_default().trim().to_owned();
                return FinalSync::Failed(if why.is_empty() { status.to_string() } else { why });
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(e) => return FinalSync::Failed(e.to_string()),
        }
    }
}

/// Writes back all dirty data and prints the duration in ns. The final sync runs fathom with the hidden flag to call this.
pub fn sync_all() -> ExitCode {
    let began = Instant::now();
    rustix::fs::sync();
    let printed = stdout::print_text(&format!("{}\n", began.elapsed().as_nanos()));
    printed.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
