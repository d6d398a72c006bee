//! What is shown while measuring, on standard error.
//!
//! For: a view of the measurement, or progress with the time left, on a terminal; plain lines elsewhere. Not for: results.

mod bar;
mod canvas;
mod draw;
mod keys;
mod left;
mod look;
mod mode;
mod observed;
mod recent;
mod sight;
mod state;
mod terminal;
mod view;
mod watching;

use crate::failure::Failure;
use crate::stderr;
use bar::Bar;
pub use left::Left;
use machine::snapshot::Watch;
use mode::Manner;
pub use mode::Progress;
use model::evidence::Snapshot;
use model::finding::Finding;
use model::machine::Machine;
use model::plan::{Cost, Plan, Strategy};
use model::record::RunStart;
pub(crate) use recent::Recent;
use sight::Sight;
pub(crate) use state::Named;
pub use state::{HostRow, HostState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use view::View;
pub(crate) use watching::{KeyAction, Watching};

/// Somebody who watches, or nobody.
pub struct Live {
    display: Display,
    begun: Instant,
    /// Part of the measurement that is done, in 1/[`WHOLE`]. It never falls, also where runs are added.
    furthest: AtomicU64,
    /// The findings about the runs of each job, for the lines without a view.
    found: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// Steps of the progress of a measurement as a whole.
const WHOLE: u64 = 1000;

enum Display {
    /// A terminal: a view, and the line that is shown instead where that is asked for.
    View(View, Arc<Bar>),
    /// A terminal: one line that changes.
    Bar(Bar),
    /// A file or a pipe: a line per step.
    Lines,
    /// Nobody is told anything.
    Quiet,
}

/// Gives the terminal back, where a view is on it: the process is about to end at once.
pub fn give_back_now() {
    terminal::give_back_for_good();
}

impl Live {
    /// Progress without a view, by where standard error goes.
    pub fn plain(quiet: bool) -> Self {
        Self::on(match mode::plain(quiet) {
            Manner::Quiet => Display::Quiet,
            Manner::Lines => Display::Lines,
            Manner::Bar | Manner::View(_) => Display::Bar(Bar::shown()),
        })
    }

    fn on(display: Display) -> Self {
        Self { display, begun: Instant::now(), furthest: AtomicU64::new(0), found: Mutex::default() }
    }

    /// How far the measurement is, in 1/[`WHOLE`], with `left` to wait.
    fn progress(&self, left: Left) -> u64 {
        let now = progress(self.begun.elapsed(), left.time);
        self.furthest.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Of a measurement that takes so much, as it was wished for. `stop` is what a signal sets.
    ///
    /// # Errors
    /// A usage failure where a view was asked for and there can be none.
    pub fn start(mode: Progress, cost: &Cost, stop: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let look = match mode::choose(mode, cost)? {
            Manner::View(look) => look,
            Manner::Quiet => return Ok(Self::on(Display::Quiet)),
            Manner::Lines => return Ok(Self::on(Display::Lines)),
            Manner::Bar => return Ok(Self::on(Display::Bar(Bar::shown()))),
        };
        let bar = Arc::new(Bar::hidden());
        let view = View::start(look, Arc::clone(&bar), Arc::clone(stop));
        let view =
            view.map_err(|e| Failure::Refused(format!("the view cannot begin: {e}{}", sys::cause(&e))))?;
        Ok(Self::on(Display::View(view, bar)))
    }

    /// Begins a step, with how much there is of it in all and what is left to wait.
    pub fn step(&self, words: &str, left: impl Into<Left>) {
        self.step_of(words, Some(left.into()));
    }

    /// Begins a step of which nobody knows yet how long it takes.
    pub fn begin(&self, words: &str) {
        self.step_of(words, None);
    }

    /// Begins a step, with what is left to wait where that is known.
    pub fn step_of(&self, words: &str, left: Option<Left>) {
        // A step that does not know how long the whole takes leaves the progress as it is.
        let done = left.map_or_else(|| self.furthest.load(Ordering::Relaxed), |left| self.progress(left));
        if let Display::View(view, _) = &self.display {
            view.tell(|state| {
                state.step(words, left);
                state.done = (done, WHOLE);
            });
        }
        match &self.display {
            Display::View(_, bar) => bar.step(words, (done, WHOLE), left),
            Display::Bar(bar) => bar.step(words, (done, WHOLE), left),
            Display::Lines => stderr::say(
                &left.map_or_else(|| words.to_owned(), |left| format!("{words}, {}", left.sentence())),
            ),
            Display::Quiet => {}
        }
    }

    /// Shows what is left to wait of the whole measurement.
    pub fn tick(&self, left: impl Into<Left>) {
        let left = left.into();
        self.show((self.progress(left), WHOLE), left);
    }

    /// Shows how far a step is that does not know how long the whole takes: `done` of `total`, and what is left of the step. Where the
    /// whole is known, the progress of the whole stays.
    pub fn tick_step(&self, done: u64, total: u64, left: impl Into<Left>) {
        let furthest = self.furthest.load(Ordering::Relaxed);
        let shown = if furthest > 0 { (furthest, WHOLE) } else { (done.min(total), total) };
        self.show(shown, left.into());
    }

    fn show(&self, (done, total): (u64, u64), left: Left) {
        if let Display::View(view, _) = &self.display {
            view.tell(|state| state.tick((done, total), left));
        }
        match &self.display {
            Display::View(_, bar) => bar.tick((done, total), left),
            Display::Bar(bar) => bar.tick((done, total), left),
            Display::Lines | Display::Quiet => {}
        }
    }

    /// Says something that stays.
    pub fn say(&self, words: &str) {
        match &self.display {
            Display::View(view, _) => view.say(words),
            Display::Bar(bar) => bar.say(words),
            Display::Lines => stderr::say(words),
            Display::Quiet => {}
        }
    }

    /// Says what is no progress, which nothing keeps away.
    pub fn tell(&self, words: &str) {
        if matches!(self.display, Display::Quiet) { stderr::say(words) } else { self.say(words) }
    }

    /// The view, where one is shown.
    fn view(&self) -> Option<&View> {
        match &self.display {
            Display::View(view, _) => Some(view).filter(|v| !v.is_over()),
            _ => None,
        }
    }

    /// Whether a view is shown, and so whoever measures has to tell more than steps.
    pub fn is_viewed(&self) -> bool {
        self.view().is_some()
    }

    /// Lets a view look at what a plan touches.
    pub(crate) fn look_at(&self, watch: &Watch, plan: &Plan, machine: &Machine) {
        let Some(view) = self.view() else { return };
        view.look_at(Sight::new(watch.clone(), plan, machine));
        // A load curve has as many rows as its search asks for.
        let rows = (!matches!(plan.strategy, Strategy::Limit(_))).then_some(plan.jobs.len());
        view.tell(|state| state.rows_in_all = rows);
    }

    /// A run begins, with the counters at its start; so many operations are to be in flight.
    pub(crate) fn run_begins(&self, start: &RunStart, first: &Snapshot, depth: u64) {
        let Some(view) = self.view() else { return };
        view.begin(start.clone(), first.clone());
        view.tell(|state| state.begin(depth));
    }

    /// What takes the blocks of workers for a view, whose intervals are this long; `None` where nobody looks.
    pub(crate) fn recent(&self, interval_ns: u64) -> Option<Recent> {
        self.view().map(|_| Recent::new(interval_ns))
    }

    /// Shows what was handed in, where it is time to.
    pub(crate) fn pulse(&self, recent: &mut Recent) {
        let Some((view, pulse)) = self.view().zip(recent.take(Instant::now())) else { return };
        view.tell(|state| state.pulse(pulse));
    }

    /// How far each of several hosts is, of many some, and how many there are.
    pub(crate) fn hosts(&self, rows: Vec<HostRow>, all: usize) {
        if let Some(view) = self.view() {
            view.tell(|state| (state.hosts, state.hosts_in_all) = (rows, all));
        }
    }

    /// The workers have ended.
    pub(crate) fn run_rests(&self) {
        if let Some(view) = self.view() {
            view.tell(state::State::rest);
        }
    }

    /// Whether results are shown as they become known.
    pub(crate) fn shows_results(&self) -> bool {
        !matches!(self.display, Display::Quiet)
    }

    /// Shows the result of a run: the row of its job with all runs so far, and the findings about this run. Without a view a line is printed
    /// after the last run of the job.
    pub(crate) fn row(&self, named: Named, findings: Vec<Finding>, is_last: bool) {
        if let Some(view) = self.view() {
            view.tell(|state| state.ended(named, findings));
            return;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let of_job = found.entry(named.name.clone()).or_default();
        of_job.extend(findings.iter().map(|f| format!("{} {}", f.id, f.name)));
        if is_last {
            self.say(&named.line(of_job));
        }
    }

    /// CPU time of a view in user space and in the kernel, in ns; none where there is no view.
    pub(crate) fn cpu_ns(&self) -> [u64; 2] {
        if let Display::View(view, _) = &self.display { view.cpu_ns() } else { [0; 2] }
    }

    /// Whether somebody asked to end after the run.
    pub fn is_enough(&self) -> bool {
        matches!(&self.display, Display::View(view, _) if view.is_enough())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Display::Bar(bar) = &self.display {
            bar.clear();
        }
    }
}

/// The part of a measurement that is done, in 1/[`WHOLE`], after `passed` and with `left` to wait.
fn progress(passed: Duration, left: Duration) -> u64 {
    let whole = passed.as_secs_f64() + left.as_secs_f64();
    if whole > 0.0 { (WHOLE as f64 * passed.as_secs_f64() / whole) as u64 } else { 0 }
}

#[test]
fn progress_never_falls_where_runs_are_added() {
    let live = Live::on(Display::Quiet);
    let seconds = Duration::from_secs;
    assert_eq!((progress(seconds(30), seconds(30)), progress(seconds(0), seconds(0))), (500, 0));
    std::thread::sleep(Duration::from_millis(2));
    let before = live.progress(Duration::from_millis(1).into());
    // Runs are added that are measured again.
    assert!(before > 500 && live.progress(seconds(60).into()) == before);
}
