//! Progress on standard error while fathom measures: a full-screen view, one line that changes, one line per step, or nothing.
//!
//! [`Live`] receives steps, progress and results from the measurement and passes them to the chosen display.
#![forbid(unsafe_code)]

mod display_mode;
mod draw;
mod progress_line;
mod state;
mod terminal;
mod view;

use analysis::strategy::cost::TimeLeft;
use display_mode::DisplayKind;
pub use display_mode::ProgressMode;
use machine::snapshot::SnapshotReader;
use model::evidence::Snapshot;
use model::finding::Checked;
use model::machine::Machine;
use model::plan::{ExpectedCost, Plan, Strategy};
use model::record::RunStart;
use output::failure::Failure;
use output::stderr;
use progress_line::ProgressLine;
pub use state::{HostProgress, HostState, JobResult, Recent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use view::{DeviceSampler, View};
pub use view::{KeyAction, WatchView};

/// Progress of a measurement, on the chosen display.
pub struct Live {
    display: Display,
    begun: Instant,
    /// The largest completed part of the measurement so far, in 1/[`PROGRESS_UNITS`]. It never falls, even when runs are added.
    progress_max: AtomicU64,
    /// The findings about each job, for displays without a view.
    found: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// Units of the progress of a whole measurement.
const PROGRESS_UNITS: u64 = 1000;

/// How much of a step or of the measurement is complete: `part` of `total`. A `total` of 0 is unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    part: u64,
    total: u64,
}

impl Progress {
    /// Returns the progress of the measurement from its completed part in 1/[`PROGRESS_UNITS`].
    fn of_measurement(part: u64) -> Self {
        Self { part, total: PROGRESS_UNITS }
    }

    /// Returns the completed share, from 0 to 1; `None` if the total is unknown.
    fn share(self) -> Option<f64> {
        (self.total > 0).then(|| self.part.min(self.total) as f64 / self.total as f64)
    }
}

enum Display {
    /// A view on the terminal, and the progress line that replaces the view on request.
    View(View, Arc<ProgressLine>),
    /// A progress line on the terminal.
    ProgressLine(ProgressLine),
    /// One line per step, for a file or a pipe. Of many runs, only some have a line.
    Lines(Mutex<RunLines>),
    /// No output.
    Quiet,
}

/// Chooses the runs that get a line: the first ten, and later each run that begins when the progress has grown by 10 % of the
/// measurement, or five minutes have passed, since the last line.
#[derive(Debug, Default)]
struct RunLines {
    printed: usize,
    /// When the last line was printed, and the progress at that time in 1/[`PROGRESS_UNITS`].
    last: Option<(Instant, u64)>,
}

impl RunLines {
    const FIRST: usize = 10;
    const PROGRESS: u64 = PROGRESS_UNITS / 10;
    /// After this time without a line, the next run gets one: services that run tests end a program that prints nothing for ten minutes.
    const PERIOD: Duration = Duration::from_secs(300);

    /// Whether a run that begins now gets a line. If so, counts the line.
    fn is_due(&mut self, now: Instant, progress: u64) -> bool {
        let is_due = self.printed < Self::FIRST
            || self.last.is_none_or(|(at, before)| {
                progress >= before + Self::PROGRESS || now.saturating_duration_since(at) >= Self::PERIOD
            });
        if is_due {
            self.printed += 1;
            self.last = Some((now, progress));
        }
        is_due
    }
}

/// Restores the terminal before the process exits abruptly.
pub fn restore_terminal() {
    terminal::restore_for_good();
}

impl Live {
    /// Creates a display without a view, as suits standard error.
    pub fn plain(quiet: bool) -> Self {
        Self::without_view(display_mode::plain(quiet))
    }

    /// Creates a display of this kind, with a progress line instead of a view.
    fn without_view(kind: DisplayKind) -> Self {
        Self::on(match kind {
            DisplayKind::Quiet => Display::Quiet,
            DisplayKind::Lines => Display::Lines(Mutex::default()),
            DisplayKind::ProgressLine | DisplayKind::View(_) => Display::ProgressLine(ProgressLine::shown()),
        })
    }

    fn on(display: Display) -> Self {
        Self { display, begun: Instant::now(), progress_max: AtomicU64::new(0), found: Mutex::default() }
    }

    /// Updates and returns the progress, in 1/[`PROGRESS_UNITS`].
    fn update_progress(&self, left: RemainingTime) -> u64 {
        let now = progress(self.begun.elapsed(), left.time);
        self.progress_max.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Starts the display for a measurement of this cost. A signal sets `stop`.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the user asked for a view and a view is impossible. [`Failure::Refused`] if the view cannot start.
    pub fn start(mode: ProgressMode, cost: &ExpectedCost, stop: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let kind = display_mode::choose(mode, cost)?;
        let DisplayKind::View(theme) = kind else { return Ok(Self::without_view(kind)) };
        let line = Arc::new(ProgressLine::hidden());
        let view = View::start(theme, Arc::clone(&line), Arc::clone(stop));
        let view =
            view.map_err(|e| Failure::Refused(format!("the view cannot start: {e}{}", sys::cause(&e))))?;
        Ok(Self::on(Display::View(view, line)))
    }

    /// Begins a step with a known time left.
    pub fn step(&self, name: &str, left: impl Into<RemainingTime>) {
        self.step_of(name, Some(left.into()));
    }

    /// Begins a step with an unknown duration.
    pub fn begin(&self, name: &str) {
        self.step_of(name, None);
    }

    /// Begins a run. As [`Live::step`], but a display of lines prints a line for only some of many runs.
    pub fn step_run(&self, name: &str, left: impl Into<RemainingTime>) {
        let left = left.into();
        if let Display::Lines(lines) = &self.display {
            let progress = self.update_progress(left);
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if !lines.is_due(Instant::now(), progress) {
                return;
            }
        }
        self.step_of(name, Some(left));
    }

    /// Begins a step. `left` is the time left, if known.
    pub fn step_of(&self, name: &str, left: Option<RemainingTime>) {
        // A step without a known duration does not change the overall progress.
        let done =
            left.map_or_else(|| self.progress_max.load(Ordering::Relaxed), |left| self.update_progress(left));
        let done = Progress::of_measurement(done);
        if let Display::View(view, _) = &self.display {
            view.change(|state| {
                state.step(name, left);
                state.done = done;
            });
        }
        match &self.display {
            Display::View(_, line) => line.step(name, done, left),
            Display::ProgressLine(line) => line.step(name, done, left),
            Display::Lines(_) => stderr::print(
                &left.map_or_else(|| name.to_owned(), |left| format!("{name}, {}", left.sentence())),
            ),
            Display::Quiet => {}
        }
    }

    /// Shows the time left and the progress of the whole measurement.
    pub fn tick(&self, left: impl Into<RemainingTime>) {
        let left = left.into();
        self.show(Progress::of_measurement(self.update_progress(left)), left);
    }

    /// Shows the time left of a step, and `done` of `total` as the progress. If the progress of the
    /// whole measurement is known, continues to show that instead.
    pub fn tick_step(&self, done: u64, total: u64, left: impl Into<RemainingTime>) {
        let progress_max = self.progress_max.load(Ordering::Relaxed);
        let shown = if progress_max > 0 {
            Progress::of_measurement(progress_max)
        } else {
            Progress { part: done.min(total), total }
        };
        self.show(shown, left.into());
    }

    fn show(&self, done: Progress, left: RemainingTime) {
        if let Display::View(view, _) = &self.display {
            view.change(|state| state.tick(done, left));
        }
        match &self.display {
            Display::View(_, line) => line.tick(done, left),
            Display::ProgressLine(line) => line.tick(done, left),
            Display::Lines(_) | Display::Quiet => {}
        }
    }

    /// Prints a lasting message, except with `--quiet`.
    pub fn say(&self, message: &str) {
        match &self.display {
            Display::View(view, _) => view.say(message),
            Display::ProgressLine(line) => line.say(message),
            Display::Lines(_) => stderr::print(message),
            Display::Quiet => {}
        }
    }

    /// Prints a lasting message, with `--quiet` too.
    pub fn say_even_if_quiet(&self, message: &str) {
        if matches!(self.display, Display::Quiet) { stderr::print(message) } else { self.say(message) }
    }

    /// Returns the view while it is shown.
    fn view(&self) -> Option<&View> {
        match &self.display {
            Display::View(view, _) => Some(view).filter(|v| !v.is_plain()),
            _ => None,
        }
    }

    /// Returns whether a view is shown. The view needs more data than a progress line.
    pub fn has_view(&self) -> bool {
        self.view().is_some()
    }

    /// Lets the view sample the devices of a plan.
    pub fn watch_devices(&self, snapshots: &SnapshotReader, plan: &Plan, machine: &Machine) {
        let Some(view) = self.view() else { return };
        view.set_sampler(DeviceSampler::new(snapshots.clone(), plan, machine));
        // The number of rows of a load curve is unknown until its search ends.
        let rows = (!matches!(plan.strategy, Strategy::Limit(_))).then_some(plan.jobs.len());
        view.change(|state| state.result_count = rows);
    }

    /// Begins a run. `first` has the counters at the start of the run, and `depth` is its queue depth.
    pub fn begin_run(&self, start: &RunStart, first: &Snapshot, depth: u64) {
        let Some(view) = self.view() else { return };
        view.begin_run(start.clone(), first.clone());
        view.change(|state| state.begin_run(depth));
    }

    /// Returns a collector for the figures of the workers, which hand in a block per `interval_ns`. `None` without a view.
    pub fn collect_recent(&self, interval_ns: u64) -> Option<Recent> {
        self.view().map(|_| Recent::new(interval_ns))
    }

    /// Shows the figures of the workers' most recent intervals if an update is due.
    pub fn show_recent(&self, recent: &mut Recent) {
        let Some((view, figures)) = self.view().zip(recent.take_figures(Instant::now())) else { return };
        view.change(|state| state.show_figures(figures));
    }

    /// Shows the progress of several hosts: `rows` has some of the hosts, `all` is the number of all hosts.
    pub fn show_hosts(&self, rows: Vec<HostProgress>, all: usize) {
        if let Some(view) = self.view() {
            view.change(|state| (state.hosts, state.host_count) = (rows, all));
        }
    }

    /// Shows that no run is active. [`Live::show_result`] shows the run's result later.
    pub fn end_run(&self) {
        if let Some(view) = self.view() {
            view.change(state::State::end_run);
        }
    }

    /// Returns whether this display shows results during the measurement.
    pub fn shows_results(&self) -> bool {
        !matches!(self.display, Display::Quiet)
    }

    /// Shows the result of a run: its job's row over all runs so far, and the findings about this run. A display without a view prints a
    /// line after the last run of the job.
    pub fn show_result(&self, result: JobResult, findings: Vec<Checked>, is_last: bool) {
        if let Some(view) = self.view() {
            view.change(|state| state.show_result(result, findings));
            return;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let of_job = found.entry(result.name.clone()).or_default();
        of_job.extend(findings.iter().map(|f| format!("{} {}", f.id, f.name)));
        if is_last {
            self.say(&result.line(of_job));
        }
    }

    /// Returns the CPU time of the view in user space and in the kernel, in ns; 0 without a view.
    pub fn cpu_ns(&self) -> [u64; 2] {
        if let Display::View(view, _) = &self.display { view.cpu_ns() } else { [0; 2] }
    }

    /// Returns whether the user asked to end after the current run.
    pub fn ends_after_run(&self) -> bool {
        matches!(&self.display, Display::View(view, _) if view.ends_after_run())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Display::ProgressLine(line) = &self.display {
            line.clear();
        }
    }
}

/// Returns the completed part of the measurement, in 1/[`PROGRESS_UNITS`].
fn progress(passed: Duration, left: Duration) -> u64 {
    let whole = passed.as_secs_f64() + left.as_secs_f64();
    if whole > 0.0 { (PROGRESS_UNITS as f64 * passed.as_secs_f64() / whole) as u64 } else { 0 }
}

/// The time left of a step or of the whole measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingTime {
    /// The expected time; the maximum if `at_most`.
    pub time: Duration,
    /// Whether the step or the measurement may end earlier.
    pub at_most: bool,
    /// Whether the time is unknown. Then `time` is only a guess for the progress bar.
    pub is_unknown: bool,
}

impl RemainingTime {
    /// Estimates the time left from the completed part of a step.
    pub fn by(since: Instant, done: u64, total: u64) -> Self {
        let rest = total.saturating_sub(done) as f64 / done.max(1) as f64;
        Duration::try_from_secs_f64(since.elapsed().as_secs_f64() * rest).unwrap_or_default().into()
    }

    /// Returns the time left after `passed` more time.
    #[must_use]
    pub fn after(self, passed: Duration) -> Self {
        Self { time: self.time.saturating_sub(passed), ..self }
    }

    /// Formats the time left: `at most 4 min left`, `130 s left`.
    fn describe(self) -> String {
        if self.is_unknown {
            return "time left unknown".into();
        }
        let at_most = if self.at_most { "at most " } else { "" };
        match self.time.as_secs_f64().ceil() as u64 {
            s if s > 180 => format!("{at_most}{} min left", s.div_ceil(60)),
            s => format!("{at_most}{s} s left"),
        }
    }

    /// Formats the time left: `at most 4 min left`, `about 130 s left`.
    fn sentence(self) -> String {
        if self.at_most || self.is_unknown { self.describe() } else { format!("about {}", self.describe()) }
    }
}

impl From<TimeLeft> for RemainingTime {
    fn from(TimeLeft { ns, at_most, is_unknown }: TimeLeft) -> Self {
        Self { time: Duration::from_nanos(ns), at_most, is_unknown }
    }
}

impl From<Duration> for RemainingTime {
    fn from(time: Duration) -> Self {
        Self { time, at_most: false, is_unknown: false }
    }
}

#[test]
fn progress_never_falls_when_runs_are_added() {
    let live = Live::on(Display::Quiet);
    let seconds = Duration::from_secs;
    assert_eq!((progress(seconds(30), seconds(30)), progress(seconds(0), seconds(0))), (500, 0));
    std::thread::sleep(Duration::from_millis(2));
    let before = live.update_progress(Duration::from_millis(1).into());
    // More runs are planned, so more time is left. The bar does not go back.
    assert!(before > 500 && live.update_progress(seconds(60).into()) == before);
}

#[test]
fn time_left_is_marked_as_at_most() {
    assert_eq!(RemainingTime::from(Duration::from_secs(90)).describe(), "90 s left");
    assert_eq!(RemainingTime::from(Duration::from_millis(129_500)).sentence(), "about 130 s left");
    let left = RemainingTime { at_most: true, ..Duration::from_secs(200).into() };
    assert_eq!([left.describe(), left.sentence()], ["at most 4 min left"; 2]);
    assert_eq!(left.after(Duration::from_secs(300)).describe(), "at most 0 s left");
    let unknown = RemainingTime { is_unknown: true, ..left };
    assert_eq!([unknown.describe(), unknown.sentence()], ["time left unknown"; 2]);
}

#[test]
fn of_many_runs_some_have_a_line() {
    let begun = Instant::now();
    // Runs of 2 s.
    let lines = |runs: u64, work: u64| {
        let mut lines = RunLines::default();
        let is_due = |run: &u64| {
            let passed = Duration::from_secs(2 * run);
            lines.is_due(begun + passed, PROGRESS_UNITS * run / work)
        };
        (0..runs).filter(is_due).collect::<Vec<_>>()
    };
    assert_eq!(lines(10, 10), (0..10).collect::<Vec<_>>());
    assert_eq!(lines(200, 200)[8..], [8, 9, 29, 49, 69, 89, 109, 129, 149, 169, 189]);
    // Without known progress.
    assert_eq!(lines(400, u64::MAX)[8..], [8, 9, 159, 309]);
}
