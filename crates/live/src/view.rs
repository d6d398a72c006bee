//! The views: the thread that draws a measurement and handles keys, and the view of `fathom watch`.
//!
//! The view thread samples counters, draws a copy of the state, then waits for a key, a wake-up or
//! the next draw. It draws at most four times a second and uses at most 1 % of a CPU: after an
//! expensive draw, the next one comes later. But the next draw comes after 5 s at the latest, even
//! if that needs more CPU time. [`DeviceSampler`] reads the kernel's counters and finds the process
//! that moves the most data. `fathom watch` draws without a view thread, once per interval.

use super::draw::draw;
use super::state::{End, State};
use super::terminal;
use crate::display_mode;
use crate::draw::draw_watch;
use crate::progress_line::ProgressLine;
use crate::state::{Sample, WatchState};
use crate::terminal::{Canvas, Key, Keys, Theme};
use analysis::under_way::{ReportedOps, UnfinishedSession};
use machine::processes::{ProcessVisibility, Processes};
use machine::root::Root;
use machine::snapshot::SnapshotReader;
use machine::threads;
use model::Known;
use model::evidence::Snapshot;
use model::machine::Machine;
use model::plan::Plan;
use model::record::RunStart;
use model::watch::Watched;
use output::stderr;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minimum time between two draws.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Minimum time between two samples of the counters.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// Elapsed time per CPU time of the view thread: 100 limits the thread to 1 % of a CPU.
const TIME_PER_CPU_TIME: u32 = 100;
/// Name of the thread. The kernel cuts it after 15 characters.
const NAME: &str = "fathom-live";

/// The view of a measurement.
pub(super) struct View {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that the measuring thread shares with the view thread.
struct Shared {
    state: Mutex<State>,
    /// Samples the devices of the plan.
    sampler: Mutex<Option<DeviceSampler>>,
    /// A run that has begun and was not passed to the sampler yet, with the counters at its start.
    new_run: Mutex<Option<(RunStart, Snapshot)>>,
    /// Messages to print when the normal screen is back.
    pending_messages: Mutex<Vec<String>>,
    /// Whether the user asked to end after the run.
    ends_after_run: AtomicBool,
    /// The stop flag, which a signal sets too.
    stop: Arc<AtomicBool>,
    /// Whether the measurement has ended.
    over: AtomicBool,
    /// Whether the user switched to plain progress.
    plain: AtomicBool,
    /// CPU time of the thread when last read, in user space and in the kernel, in ns.
    used_ns: [AtomicU64; 2],
    /// Wakes the thread.
    wake: OwnedFd,
    line: Arc<ProgressLine>,
    theme: Theme,
}

impl View {
    /// Starts the view thread, which takes the terminal. A signal sets `stop`; `line` is the plain
    /// progress line, which stays hidden while the view is shown.
    ///
    /// # Errors
    /// If the kernel refuses a thread, a signal handler or the descriptor that wakes the thread.
    pub(super) fn start(theme: Theme, line: Arc<ProgressLine>, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            sampler: Mutex::default(),
            new_run: Mutex::default(),
            pending_messages: Mutex::default(),
            ends_after_run: AtomicBool::new(false),
            stop,
            over: AtomicBool::new(false),
            plain: AtomicBool::new(false),
            used_ns: [AtomicU64::new(0), AtomicU64::new(0)],
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            line,
            theme,
        });
        terminal::restore_on_suspend()?;
        let shared_with_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(NAME.into()).spawn(move || {
            let _ = sys::thread::block_signals();
            Drawing::new(&shared_with_thread).run();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Locks the state and lets `change` modify it.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.shared.state));
    }

    /// Sets the sampler for the devices of the plan.
    pub(super) fn set_sampler(&self, sampler: DeviceSampler) {
        *lock(&self.shared.sampler) = Some(sampler);
    }

    /// Begins a run, with the counters at its start.
    pub(super) fn begin_run(&self, start: RunStart, first: Snapshot) {
        *lock(&self.shared.new_run) = Some((start, first));
    }

    /// Shows a lasting message, and prints it as soon as the normal screen is back.
    pub(super) fn say(&self, message: &str) {
        if self.is_plain() {
            self.shared.line.say(message);
        } else {
            lock(&self.shared.pending_messages).push(message.to_owned());
            self.change(|state| state.say(message));
        }
    }

    /// CPU time of the thread in user space and in the kernel, in ns.
    pub(super) fn cpu_ns(&self) -> [u64; 2] {
        self.shared.used_ns.each_ref().map(|ns| ns.load(Ordering::Relaxed))
    }

    /// Whether to end after the current run.
    pub(super) fn ends_after_run(&self) -> bool {
        self.shared.ends_after_run.load(Ordering::Relaxed)
    }

    /// Whether the user has switched to plain progress.
    pub(super) fn is_plain(&self) -> bool {
        self.shared.plain.load(Ordering::SeqCst)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic was already printed.
            let _ = thread.join();
        }
        terminal::restore_for_good();
        self.shared.flush_messages();
        self.shared.line.clear();
    }
}

impl Shared {
    /// Prints the pending messages after the normal screen is back.
    fn flush_messages(&self) {
        for message in lock(&self.pending_messages).drain(..) {
            stderr::print(&message);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of the view thread.
struct Drawing<'a> {
    shared: &'a Shared,
    keys: Option<Keys>,
    canvas: Canvas,
    began: Instant,
    drawn: Option<Instant>,
    sampled_at: Instant,
}

impl<'a> Drawing<'a> {
    fn new(shared: &'a Shared) -> Self {
        let now = Instant::now();
        Self {
            shared,
            keys: Keys::open(),
            canvas: Canvas::default(),
            began: now,
            drawn: None,
            sampled_at: now,
        }
    }

    /// Runs until the measurement ends, the user switches to plain progress, or the terminal is restored for good.
    fn run(&mut self) {
        while !self.shared.over.load(Ordering::SeqCst) && !terminal::is_over() {
            if !terminal::is_taken() && terminal::take(self.keys.as_ref()) {
                self.canvas.forget();
            }
            if Instant::now() >= self.next_draw() {
                self.sample_counters();
                self.draw();
                self.drawn = Some(Instant::now());
            }
            self.wait();
            if self.handle_keys() {
                return self.switch_to_plain();
            }
        }
    }

    /// Publishes the CPU time of this thread, and returns the time of the next draw.
    fn next_draw(&self) -> Instant {
        let used = sys::thread::usage().unwrap_or_default();
        for (published, ns) in self.shared.used_ns.iter().zip([used.user_ns, used.system_ns]) {
            published.store(ns, Ordering::Relaxed);
        }
        draw_time(self.began, self.drawn, Duration::from_nanos(used.user_ns + used.system_ns))
    }

    /// Samples the counters during a run.
    fn sample_counters(&mut self) {
        let mut sampler = lock(&self.shared.sampler);
        let Some(sampler) = sampler.as_mut() else { return };
        if let Some((start, first)) = lock(&self.shared.new_run).take() {
            sampler.begin(start, first);
        }
        let so_far = {
            let state = lock(&self.shared.state);
            if state.run_depth.is_none() || self.sampled_at.elapsed() < SAMPLE_INTERVAL {
                return;
            }
            state.recent.so_far.clone()
        };
        self.sampled_at = Instant::now();
        if let Some(sample) = sampler.sample(&so_far) {
            let mut state = lock(&self.shared.state);
            // The run may have ended during the sample.
            if state.run_depth.is_some() {
                state.sample = Some(sample);
            }
        }
    }

    fn draw(&mut self) {
        // Draws a copy of the state, so that no other thread waits for the drawing.
        let state = lock(&self.shared.state).clone();
        let theme = self.shared.theme;
        self.canvas.draw(|frame| draw(frame, &state, theme));
    }

    /// Waits for a key, a wake-up or the next draw.
    fn wait(&mut self) {
        let left = self.next_draw().saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut files = vec![PollFd::from_borrowed_fd(self.shared.wake.as_fd(), PollFlags::IN)];
        // While another process has the terminal, the keys are for that process.
        let keys = self.keys.as_ref().filter(|_| terminal::is_taken());
        files.extend(keys.map(|keys| PollFd::from_borrowed_fd(keys.file(), PollFlags::IN)));
        let _ = poll(&mut files, Some(&limit));
    }

    /// Handles the typed keys. Returns true if the user switched to plain progress.
    fn handle_keys(&mut self) -> bool {
        for key in terminal::read_keys(&mut self.keys) {
            let mut state = lock(&self.shared.state);
            match key {
                Key::Help => state.help = !state.help,
                Key::Plain => return true,
                Key::End => {
                    state.ask_to_end();
                    match state.end {
                        End::Now => self.shared.stop.store(true, Ordering::Relaxed),
                        _ => self.shared.ends_after_run.store(true, Ordering::Relaxed),
                    }
                }
            }
        }
        false
    }

    fn switch_to_plain(&self) {
        terminal::restore_for_good();
        self.shared.plain.store(true, Ordering::SeqCst);
        self.shared.flush_messages();
        self.shared.line.show();
    }
}

/// Returns the time of the next draw: the first moment at which the CPU time of the view thread (`used`) is at most 1 % of the time since
/// `began`, limited to between [`DRAW_INTERVAL`] and [`DRAW_INTERVAL_MAX`] after the previous draw (`drawn`).
fn draw_time(began: Instant, drawn: Option<Instant>, used: Duration) -> Instant {
    let by_cpu_time = began + used * TIME_PER_CPU_TIME;
    drawn.map_or(began, |at| by_cpu_time.clamp(at + DRAW_INTERVAL, at + DRAW_INTERVAL_MAX))
}

/// Minimum time between two scans of all processes.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time between two draws. A view that does not change for more than this time seems to hang.
pub(super) const DRAW_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Maximum age of a process scan that is compared with the next scan. It is longer than the maximum time between two draws.
const SCAN_AGE_MAX: Duration = Duration::from_secs(2 * DRAW_INTERVAL_MAX.as_secs());
/// Prefix of the names of worker threads. These end with a number. Other threads with this prefix,
/// such as that of the view, are ignored.
const WORKER_NAME_PREFIX: &str = "fathom-";

/// Samples the kernel's counters during a run.
pub(super) struct DeviceSampler {
    snapshots: SnapshotReader,
    root: Root,
    session: UnfinishedSession,
    workers: Option<Known<Workers>>,
    /// The last scan of all processes, and its time.
    last_scan: Option<(Instant, Processes)>,
    busiest_process: Known<String>,
}

/// The workers of the run, with the CPU time of each in ns at the last sample.
struct Workers {
    at: Instant,
    cpu_ns: Vec<(u32, u64)>,
}

impl DeviceSampler {
    /// Prepares sampling for a plan.
    pub(super) fn new(snapshots: SnapshotReader, plan: &Plan, machine: &Machine) -> Self {
        let session = UnfinishedSession::new(plan, machine);
        let busiest_process = Err("processes were not sampled yet".into());
        Self { snapshots, root: Root::real(), session, workers: None, last_scan: None, busiest_process }
    }

    /// Begins a run, with the counters at its start.
    pub(super) fn begin(&mut self, start: RunStart, first: Snapshot) {
        self.session.begin(start, first);
        self.workers = None;
    }

    /// Samples the counters; `None` outside a run, or if no time has passed since the last sample.
    pub(super) fn sample(&mut self, so_far: &ReportedOps) -> Option<Sample> {
        let counted = self.session.sample(self.snapshots.take_for_view(), so_far)?;
        if matches!(counted.others, Ok(Some(_))) {
            self.update_busiest_process();
        }
        Some(Sample {
            counted,
            busiest_worker: self.sample_busiest_worker(),
            busiest_process: self.busiest_process.clone(),
        })
    }

    /// Returns the CPU time of the busiest worker since the last sample, as a share of the elapsed time.
    fn sample_busiest_worker(&mut self) -> Known<f64> {
        let root = &self.root;
        let first = || {
            let ids = threads::numbered(root, WORKER_NAME_PREFIX)?;
            Ok(Workers { at: Instant::now(), cpu_ns: ids.into_iter().map(|id| (id, 0)).collect() })
        };
        let is_first = self.workers.is_none();
        let workers = self.workers.get_or_insert_with(first).as_mut().map_err(|why| why.clone())?;
        let now = Instant::now();
        let passed_ns = now.duration_since(workers.at).as_nanos() as f64;
        workers.at = now;
        let mut most = None;
        for (id, before) in &mut workers.cpu_ns {
            // A worker that has ended uses no CPU.
            let Ok(cpu_ns) = sys::thread::cpu_ns_of(*id) else { continue };
            most = most.max(Some(cpu_ns.saturating_sub(*before)));
            *before = cpu_ns;
        }
        match most {
            Some(ns) if !is_first && passed_ns > 0.0 => Ok(ns as f64 / passed_ns),
            _ => Err("no worker was sampled twice yet".into()),
        }
    }

    /// Finds the process that moves the most data. Scans at most once per second.
    fn update_busiest_process(&mut self) {
        let now = Instant::now();
        let age = self.last_scan.as_ref().map(|(at, _)| now.duration_since(*at));
        if age.is_some_and(|age| age < SCAN_INTERVAL) {
            return;
        }
        let before = self.last_scan.take().filter(|_| age.is_some_and(|age| age < SCAN_AGE_MAX));
        let found = Processes::sample(&self.root);
        self.busiest_process = match (&found, &before) {
            (Err(why), _) => Err(why.clone()),
            (Ok(_), None) => Err("processes were sampled only once".into()),
            (Ok(now), Some((_, before))) => {
                name_busiest_process(now, before, ProcessVisibility::of_this_process(&self.root))
            }
        };
        self.last_scan = found.ok().map(|processes| (now, processes));
    }
}

/// Returns the process that moved the most data between two scans, as `dd (7)`.
fn name_busiest_process(now: &Processes, before: &Processes, visibility: ProcessVisibility) -> Known<String> {
    let busy = now.busy_since(before);
    let most = busy.iter().filter(|b| b.io_bytes.is_some_and(|n| n > 0)).max_by_key(|b| b.io_bytes);
    match most {
        Some(busy) => Ok(format!("{} ({})", busy.name, busy.pid)),
        None => Err(match visibility.explain(now.hidden()) {
            Some(why) => format!("no visible process moves data: {why}"),
            None => "no visible process moves data".into(),
        }),
    }
}

/// The action that the typed keys request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// Continue.
    Nothing,
    /// Stop watching.
    End,
    /// Continue with plain lines.
    Plain,
}

/// The view of `fathom watch`. Dropping it restores the terminal.
pub struct WatchView {
    canvas: Canvas,
    keys: Option<Keys>,
    theme: Theme,
    state: WatchState,
}

impl WatchView {
    /// Starts the view on the terminal; `None` if the terminal is not suitable.
    ///
    /// # Errors
    ///
    /// If the signal handlers cannot be installed.
    pub fn start(interval: Duration) -> io::Result<Option<Self>> {
        let Some(theme) = display_mode::watch_theme() else { return Ok(None) };
        terminal::restore_on_suspend()?;
        let state = WatchState::new(interval);
        let mut view = Self { canvas: Canvas::default(), keys: Keys::open(), theme, state };
        view.take_terminal();
        Ok(Some(view))
    }

    /// Shows an interval.
    pub fn show(&mut self, watched: &Watched) {
        self.state.add_interval(watched);
        self.draw();
    }

    /// Handles the typed keys, and redraws if necessary.
    pub fn handle_keys(&mut self) -> KeyAction {
        if !terminal::is_taken() {
            // The program was stopped and continued.
            self.take_terminal();
        } else if self.canvas.is_resized() {
            self.draw();
        }
        let action = terminal::read_keys(&mut self.keys).into_iter().find_map(|key| match key {
            Key::End => Some(KeyAction::End),
            Key::Plain => Some(KeyAction::Plain),
            Key::Help => None,
        });
        action.unwrap_or(KeyAction::Nothing)
    }

    fn take_terminal(&mut self) {
        if terminal::take(self.keys.as_ref()) {
            self.canvas.forget();
            self.draw();
        }
    }

    fn draw(&mut self) {
        let (state, theme) = (&self.state, self.theme);
        self.canvas.draw(|frame| draw_watch(frame, state, theme));
    }
}

impl Drop for WatchView {
    fn drop(&mut self) {
        terminal::restore_for_good();
    }
}

#[test]
fn draws_are_limited_by_interval_and_cpu_time() {
    let began = Instant::now();
    let ms = Duration::from_millis;
    assert_eq!(draw_time(began, None, ms(0)), began);
    assert_eq!(draw_time(began, Some(began + ms(1_000)), ms(1)), began + ms(1_250));
    assert_eq!(draw_time(began, Some(began + ms(1_000)), ms(50)), began + ms(5_000));
    assert_eq!(
        draw_time(began, Some(began + ms(1_000)), ms(300)),
        began + ms(6_000),
        "the next draw is at most 5 s later"
    );
}
