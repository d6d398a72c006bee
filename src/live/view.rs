//! The view: a thread that draws what is told to it, and reads keys.
//!
//! For: when it looks, draws and ends, within a hundredth of a CPU. Not for: what is shown ([`super::state`], [`super::draw`]), nor how
//! the terminal is taken ([`super::terminal`]).

use super::bar::Bar;
use super::canvas::Canvas;
use super::draw::draw;
use super::keys::{Key, Keys};
use super::look::Look;
use super::sight::{LONGEST_REST, Sight};
use super::state::{End, State};
use super::terminal;
use crate::{signals, stderr};
use model::evidence::Snapshot;
use model::record::RunStart;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it draws at most.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// How often it looks at counters at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time per CPU time of this thread: a hundredth of a CPU.
const TIME_PER_CPU_TIME: u32 = 100;
/// Name of the thread, which the kernel cuts off behind 15 characters.
const NAME: &str = "fathom-live";

/// A view on its terminal.
pub(super) struct View {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of the measurement and that of the view have in common.
struct Shared {
    state: Mutex<State>,
    /// What the view may look at.
    sight: Mutex<Option<Sight>>,
    /// A run that has begun and is not looked at yet.
    begun: Mutex<Option<(RunStart, Snapshot)>>,
    /// Said, and not on the first screen yet.
    said: Mutex<Vec<String>>,
    /// Asked to end after the run.
    enough: AtomicBool,
    /// Asked to end at once, as a signal does.
    stop: Arc<AtomicBool>,
    /// The measurement is over.
    over: AtomicBool,
    /// The key for plain progress was typed.
    plain: AtomicBool,
    /// CPU time of its thread in user space and in the kernel, in ns, when it last looked.
    used_ns: [AtomicU64; 2],
    /// Ends a wait of the thread.
    wake: OwnedFd,
    bar: Arc<Bar>,
    look: Look,
}

impl View {
    /// Takes the terminal. `stop` is what a signal sets, and `bar` the plain progress, hidden as long as the view is shown.
    ///
    /// # Errors
    /// Where threads or signals are refused.
    pub(super) fn start(look: Look, bar: Arc<Bar>, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            sight: Mutex::default(),
            begun: Mutex::default(),
            said: Mutex::default(),
            enough: AtomicBool::new(false),
            stop,
            over: AtomicBool::new(false),
            plain: AtomicBool::new(false),
            used_ns: [AtomicU64::new(0), AtomicU64::new(0)],
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            bar,
            look,
        });
        signals::around_stops(terminal::give_back, terminal::lose)?;
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(NAME.into()).spawn(move || {
            let _ = sys::thread::block_signals();
            Drawing::new(&of_thread).run();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes what is shown.
    pub(super) fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.shared.state));
    }

    /// Lets it look at what the plan touches.
    pub(super) fn look_at(&self, sight: Sight) {
        *lock(&self.shared.sight) = Some(sight);
    }

    /// A run begins, with the counters at its start.
    pub(super) fn begin(&self, start: RunStart, first: Snapshot) {
        *lock(&self.shared.begun) = Some((start, first));
    }

    /// Says something that stays, on the first screen as soon as that is shown again.
    pub(super) fn say(&self, words: &str) {
        if self.is_over() {
            self.shared.bar.say(words);
        } else {
            lock(&self.shared.said).push(words.to_owned());
            self.tell(|state| state.say(words));
        }
    }

    /// CPU time that its thread has used, in user space and in the kernel, in ns.
    pub(super) fn cpu_ns(&self) -> [u64; 2] {
        self.shared.used_ns.each_ref().map(|ns| ns.load(Ordering::Relaxed))
    }

    /// Whether it is to end after the run that goes on.
    pub(super) fn is_enough(&self) -> bool {
        self.shared.enough.load(Ordering::Relaxed)
    }

    /// Whether nothing is shown any more but the plain progress.
    pub(super) fn is_over(&self) -> bool {
        self.shared.plain.load(Ordering::SeqCst)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic of it was told where it happened.
            let _ = thread.join();
        }
        terminal::give_back_for_good();
        self.shared.say_all();
        self.shared.bar.clear();
    }
}

impl Shared {
    /// Says what waits to be said, when the first screen is shown.
    fn say_all(&self) {
        for words in lock(&self.said).drain(..) {
            stderr::say(&words);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread has for itself.
struct Drawing<'a> {
    shared: &'a Shared,
    keys: Option<Keys>,
    canvas: Canvas,
    began: Instant,
    drawn: Option<Instant>,
    looked: Instant,
}

impl<'a> Drawing<'a> {
    fn new(shared: &'a Shared) -> Self {
        let now = Instant::now();
        Self { shared, keys: Keys::open(), canvas: Canvas::default(), began: now, drawn: None, looked: now }
    }

    /// Until the measurement is over, plain progress is asked for, or nobody may draw any more.
    fn run(&mut self) {
        while !self.shared.over.load(Ordering::SeqCst) && !terminal::is_over() {
            if !terminal::is_taken() && terminal::take(self.keys.as_ref()) {
                self.canvas.forget();
            }
            if self.is_due() {
                self.sample_counters();
                self.draw();
                self.drawn = Some(Instant::now());
            }
            self.wait();
            if self.obey() {
                return self.go_plain();
            }
        }
    }

    /// Whether it may look and draw again: not too often, and not with more than its part of a CPU.
    fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }

    fn due(&self) -> Instant {
        let used = sys::thread::usage().unwrap_or_default();
        for (kept, ns) in self.shared.used_ns.iter().zip([used.user_ns, used.system_ns]) {
            kept.store(ns, Ordering::Relaxed);
        }
        due(self.began, self.drawn, Duration::from_nanos(used.user_ns + used.system_ns))
    }

    /// Looks at the counters, where a run goes on.
    fn sample_counters(&mut self) {
        let mut sight = lock(&self.shared.sight);
        let Some(sight) = sight.as_mut() else { return };
        if let Some((start, first)) = lock(&self.shared.begun).take() {
            sight.begin(start, first);
        }
        let so_far = {
            let state = lock(&self.shared.state);
            if state.run.is_none() || self.looked.elapsed() < LOOK_EVERY {
                return;
            }
            state.pulse.so_far.clone()
        };
        self.looked = Instant::now();
        if let Some(seen) = sight.sample(&so_far) {
            let mut state = lock(&self.shared.state);
            // One that ended meanwhile is not seen any more.
            if state.run.is_some() {
                state.seen = Some(seen);
            }
        }
    }

    fn draw(&mut self) {
        // Drawn from a copy, so that nobody waits for it.
        let state = lock(&self.shared.state).clone();
        let look = self.shared.look;
        self.canvas.draw(|frame| draw(frame, &state, look));
    }

    /// Waits until something is typed, it is woken, or it is due.
    fn wait(&mut self) {
        let left = self.due().saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut files = vec![PollFd::from_borrowed_fd(self.shared.wake.as_fd(), PollFlags::IN)];
        // What is typed while somebody else has the terminal is theirs.
        let keys = self.keys.as_ref().filter(|_| terminal::is_taken());
        files.extend(keys.map(|keys| PollFd::from_borrowed_fd(keys.file(), PollFlags::IN)));
        let _ = poll(&mut files, Some(&limit));
    }

    /// Does what was typed. True where the plain progress was asked for.
    fn obey(&mut self) -> bool {
        let Some(keys) = self.keys.as_ref().filter(|_| terminal::is_taken()) else { return false };
        let Some(typed) = keys.read() else {
            // The terminal is gone; what asks again and again would only heat the machine.
            self.keys = None;
            return false;
        };
        for key in typed {
            let mut state = lock(&self.shared.state);
            match key {
                Key::Help => state.help = !state.help,
                Key::Plain => return true,
                Key::End => {
                    state.ask_to_end();
                    match state.end {
                        End::Now => self.shared.stop.store(true, Ordering::Relaxed),
                        _ => self.shared.enough.store(true, Ordering::Relaxed),
                    }
                }
            }
        }
        false
    }

    fn go_plain(&self) {
        terminal::give_back_for_good();
        self.shared.plain.store(true, Ordering::SeqCst);
        self.shared.say_all();
        self.shared.bar.show();
    }
}

/// When it is due: by how often it draws, and by the CPU time that it has used since it began.
fn due(began: Instant, drawn: Option<Instant>, used: Duration) -> Instant {
    let by_cost = began + used * TIME_PER_CPU_TIME;
    drawn.map_or(began, |at| by_cost.clamp(at + DRAW_EVERY, at + LONGEST_REST))
}

#[test]
fn it_draws_four_times_a_second_at_most_and_takes_a_hundredth_of_a_cpu() {
    let began = Instant::now();
    let ms = Duration::from_millis;
    assert_eq!(due(began, None, ms(0)), began);
    assert_eq!(due(began, Some(began + ms(1_000)), ms(1)), began + ms(1_250));
    assert_eq!(due(began, Some(began + ms(1_000)), ms(50)), began + ms(5_000));
    assert_eq!(
        due(began, Some(began + ms(1_000)), ms(300)),
        began + ms(6_000),
        "and stands still for 5 s at most"
    );
}
