//! The beginning: a session file that is open, targets that are ready, and all that holds for every run.
//!
//! For: what is done once, in the order that leaves nothing behind where it is refused. Not for: the runs.

use super::common::open_others;
use super::supplies::Supplies;
use super::sweep::Earlier;
use super::{Measurement, self_test};
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live::{self, Left, Live, Progress};
use crate::op_log::OpLog;
use crate::session::Session;
use crate::signals;
use crate::target::Ready;
use analysis::cost::{cost, time_left};
use machine::cgroup::{self, OwnCgroup};
use machine::root::Root;
use machine::snapshot::Watch;
use model::Known;
use model::evidence::{Moment, Snapshot};
use model::machine::{LayerKind, Machine};
use model::plan::{Plan, Role};
use model::record::{self, Frame, Header, Record};
use model::units::show_bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::clock::Clock;
use sys::open_file::CloseErrors;

/// Begins a measurement: nothing is left to be done before its runs.
pub(super) fn begin(
    (plan, mut machine): (Plan, Machine),
    earlier: Option<&Earlier>,
    (keep, fleet): (bool, &Fleet),
    mode: Progress,
) -> Result<Measurement, Failure> {
    let root = Root::real();
    // A signal from here on removes the cgroup too.
    let stop = watch_signals()?;
    // Before any worker starts, so that every one is counted.
    let own_cgroup = enter_cgroup(&root, &plan, &machine);
    machine.cgroup = own_cgroup.as_ref().map(OwnCgroup::describe).map_err(Clone::clone);
    fleet.stops(&stop);
    let cost = cost(&plan);
    let live = Live::start(mode, &cost, &stop)?;
    let supplies = Supplies::load(&plan)?;
    let (clock, clock_reason) =
        Clock::calibrate(machine.clocksource.as_deref().is_ok_and(|c| c.trim() == "tsc"));
    // What is gone on with keeps its times, and those of now come after them.
    let passed = earlier.map_or(Duration::ZERO, Earlier::until);
    let epoch = Instant::now().checked_sub(passed).unwrap_or_else(Instant::now);
    let before = Watch::new(root.clone(), &machine, epoch).take(Moment::BeforePrepare, &[], false);

    // Before anything is made or written, so that nothing is measured that nobody can keep.
    let started = jiff::Zoned::now();
    let name = started.strftime("%Y%m%d-%H%M%S").to_string();
    let session = Session::open(&name, keep)?;
    name_leftovers(&plan, &live);
    live.say(&cost.sentence());
    for sentence in analysis::engine_fallbacks(&plan) {
        live.say(&sentence);
    }
    let targets = prepare_targets(&root, &plan, (&stop, &live, Some(time_left(&plan, &[]).into())), fleet)?;
    look_again_at_files(&root, &plan, &targets, &mut machine);
    let watch = Watch::new(root.clone(), &machine, epoch);
    live.look_at(&watch, &plan, &machine);
    let self_test = self_test::run_self_test(&plan, &supplies, clock);
    let header = Header {
        format: record::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: started.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        plan: plan.clone(),
        hosts: vec![machine],
        clock: as_recorded(clock, clock_reason),
        self_test,
    };
    let mut measurement = Measurement {
        plan,
        places: header.hosts.iter().flat_map(|h| h.places.clone()).collect(),
        root,
        watch,
        targets,
        session,
        stop,
        live,
        fleet: fleet.clone(),
        early: None,
        accept: None,
        clock,
        epoch,
        supplies,
        close_errors: CloseErrors::default(),
        op_log: OpLog::default(),
        driver: None,
        written: Vec::new(),
        last: Record::new(header),
        courses: Vec::new(),
        done: Vec::new(),
        left: None,
        refused: Vec::new(),
        busy_host: None,
        _own_cgroup: own_cgroup,
    };
    measurement.begin_session(before)?;
    fleet.begin(&measurement.last.header, &name, keep)?;
    Ok(measurement)
}

impl Measurement {
    /// Writes the first frames, once it is known which jobs this machine lets be carried out.
    fn begin_session(&mut self, before: Snapshot) -> Result<(), Failure> {
        self.limit_to_targets();
        self.last.header.self_test.trials = self.hold_trials()?;
        self.size_writes();
        self.last.header.plan.jobs.clone_from(&self.plan.jobs);
        // A headline that this machine refuses is another's.
        self.last.header.plan.headline = self.plan.headline;
        self.session.append(&Frame::Header(Box::new(self.last.header.clone())))?;
        self.session.append(&Frame::Evidence(Box::new(before)))
    }
}

/// The clock of the stamps, and why it is the fall back where it is.
fn as_recorded(clock: Clock, reason: Option<String>) -> record::Clock {
    record::Clock { name: clock.name().into(), reason, cost_ps: clock.cost_ps() }
}

/// Enters a cgroup of its own, whose counters are those of this measurement alone.
fn enter_cgroup(root: &Root, plan: &Plan, machine: &Machine) -> Known<OwnCgroup> {
    if plan.targets.iter().all(|t| t.role == Role::None) {
        return Err("no device is used".into());
    }
    let own = cgroup::enter(root)?;
    let layers = machine.places.iter().flat_map(|p| &p.layers);
    own.count_on(layers.filter(|l| l.kind != LayerKind::Partition).map(|l| l.number.as_str()));
    Ok(own)
}

/// What a signal sets, which leaves nothing behind either where a second one ends the program at once.
fn watch_signals() -> Result<Arc<AtomicBool>, Failure> {
    signals::watch(|| {
        live::give_back_now();
        machine::test_file::remove_all_now();
        cgroup::leave_now();
    })
    .map_err(|e| Failure::Refused(format!("signals cannot be watched: {e}{}", sys::cause(&e))))
}

/// Makes or opens every target of a plan. `left` is told meanwhile, where it is known.
pub(crate) fn prepare_targets(
    root: &Root,
    plan: &Plan,
    (stop, live, left): (&Arc<AtomicBool>, &Live, Option<Left>),
    fleet: &Fleet,
) -> Result<Vec<Ready>, Failure> {
    super::probe::probe(root, plan)?;
    let mut targets = Vec::new();
    for (index, target) in plan.targets.iter().enumerate() {
        let is_made_here = plan.common(index).is_none_or(|common| plan.is_rank(common.maker));
        let making = if target.role == Role::Made && is_made_here { ": making a test file" } else { "" };
        live.step_of(&format!("preparing {}{making}", target.path), left);
        let since = Instant::now();
        let mut progress = |done: u64, total: u64| match left {
            Some(left) => live.tick(left),
            None => live.tick_step(done, total, Left::by(since, done, total)),
        };
        let ready = Ready::prepare(root, plan, index, stop, &mut progress);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        targets.push(ready?);
    }
    open_others(plan, &mut targets, fleet, (stop, live, left))?;
    Ok(targets)
}

/// What killed runs left where this one is about to make a file. It is the user's to remove: it may be evidence.
pub(crate) fn name_leftovers(plan: &Plan, live: &Live) {
    let mut dirs: Vec<&str> =
        plan.targets.iter().filter(|t| t.role == Role::Made).map(|t| t.path.as_str()).collect();
    dirs.dedup();
    for left in dirs.into_iter().flat_map(|dir| machine::leftovers::leftovers(&model::name::path(dir))) {
        let path = model::name::shown(&left.path);
        live.say(&format!(
            "a killed run left {path} ({}); remove it with: rm '{path}'",
            show_bytes(left.bytes)
        ));
    }
}

/// Resolves the open files that fathom made or may write. A file tells more than the directory it is in: how direct I/O works there. And an
/// overlay has copied a file that was opened for writing to its upper directory.
fn look_again_at_files(root: &Root, plan: &Plan, targets: &[Ready], machine: &mut Machine) {
    for ((place, ready), target) in machine.places.iter_mut().zip(targets).zip(&plan.targets) {
        let may_have_moved =
            matches!(target.role, Role::Made | Role::File) && (target.writable || target.create.is_some());
        let Some(handle) = ready.handle().filter(|_| may_have_moved) else { continue };
        if let Ok(found) = machine::resolve::resolve_open(root, handle, &model::name::path(&target.path)) {
            *place = found;
        }
    }
}
