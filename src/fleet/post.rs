//! The post: the one thread of a host that speaks with the others, whatever its measuring threads do meanwhile.
//!
//! For: letters out and in, signs of life both ways, noticing who is silent, and reading clocks: each host reads those right below it in the
//! tree, all of them at the same time, and adds what they have read of those below them. Not for: what letters mean to a measurement
//! ([`super::hosts`]).
//!
//! Open MPI 4 does not come back from a send to a process that is gone, and then nobody is heard any more. So rank 0 sends to whoever was
//! heard just now: it answers signs of life in place of giving its own, and letters to a host that is silent wait until that is heard again.

use super::clock::{self, PINGS, Reading, Readings, SERIES, SHORT_NS};
use super::course::Course;
use super::floors;
use super::letter::{Envelope, Far, Inbox, Letter, Over};
use super::net::Net;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often each host gives a sign of life.
pub(super) const BEAT: Duration = Duration::from_millis(250);
/// How long a host may be silent until letters to it wait: for two signs of life.
const WAITS_AFTER: Duration = BEAT.saturating_mul(2);
/// How long a host may be silent until rank 0 gives it up.
const SILENT_FOR: Duration = Duration::from_secs(3);
/// How long rank 0 may be silent until a host stops its load: it measures for nobody then.
const ORPHAN_AFTER: Duration = Duration::from_millis(900);
/// How often the post looks; while operations are measured seldom enough to take no CPU from them.
const LOOK: Duration = Duration::from_micros(500);
const LOOK_CALMLY: Duration = Duration::from_millis(5);
/// How long it looks without a rest behind a ping: another one follows.
const SPIN: Duration = Duration::from_millis(10);

/// How long an answer to a ping is waited for.
const ANSWER: Duration = Duration::from_millis(50);
/// How long a host is asked that has not answered once: one with more to do than CPUs may be late.
const UNANSWERED: Duration = Duration::from_secs(1);
/// How long hosts below may take to read the clocks below them: one that is lost is known before.
const BELOW: Duration = Duration::from_secs(10);

/// What the post is asked to do.
pub(super) enum Order {
    Send(usize, Letter),
    /// Ask all clocks, and give the readings by rank.
    Clocks(Sender<Vec<Option<Reading>>>),
    /// All is said: leave together with the others.
    Leave,
}

/// What both sides of the post see.
#[derive(Default)]
pub(super) struct Shared {
    over: Mutex<Option<(Over, Instant)>>,
    stop: Mutex<Option<Arc<AtomicBool>>>,
    /// Operations of the run so far, for the signs of life.
    pub(super) operations: AtomicU64,
    /// 99th percentile of their latency in ns; 0 where that is not known.
    pub(super) p99_ns: AtomicU64,
    /// The post would tell a newer one.
    pub(super) wants_p99: AtomicBool,
    /// Whether operations are measured now.
    pub(super) is_measuring: AtomicBool,
    /// Whether this host is under load itself.
    pub(super) is_loaded: AtomicBool,
    /// By rank: when it was last heard, in ns of our clock; 0 of ranks that send no heartbeats here.
    heard_ns: Mutex<Vec<u64>>,
    /// By rank: how far the run under way is there.
    pub(super) course: Mutex<Course>,
    rank: AtomicUsize,
    /// Whether anybody's silence means anything.
    watches: AtomicBool,
    /// When the post looked last, in ns of our clock.
    looked_ns: AtomicU64,
    /// The rank that MPI sends to at this moment, counted from 1; 0 where it does not.
    sends_to: AtomicUsize,
}

impl Shared {
    /// It is over: whoever measures stops. The first reason stays.
    pub(super) fn end(&self, over: Over) {
        let mut known = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| (over, Instant::now()));
        if let Some(stop) = &*self.stop.lock().unwrap_or_else(PoisonError::into_inner) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Gives another reason for the end, since more is known by now. The time of the first one stays; without one it is `ended`.
    pub(super) fn replace_reason(&self, over: Over, ended: Instant) {
        let mut known = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = known.take().map_or(ended, |(_, at)| at);
        *known = Some((over, ended));
    }

    /// Why it is over, and since when.
    pub(super) fn over(&self) -> Option<(Over, Instant)> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What stops the load from now on.
    pub(super) fn stops(&self, stop: &Arc<AtomicBool>) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(stop));
        if self.over().is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was asked to stop, by a signal or because it is over.
    pub(super) fn is_stopped(&self) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// How far the run under way is on each host.
    pub(super) fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the load is that goes on here; `None` where none does.
    fn far(&self) -> Option<Far> {
        let p99_ns = Some(self.p99_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0);
        let operations = self.operations.load(Ordering::Relaxed);
        self.is_loaded.load(Ordering::Relaxed).then_some(Far { operations, p99_ns })
    }

    /// Notices that a rank has been silent for too long, or that MPI does not return from a call, as it may if the other side is gone.
    /// The post asks this, and the threads that measure.
    pub(super) fn notice_silence(&self) -> Option<Over> {
        let own = self.rank.load(Ordering::Relaxed);
        let patience = if own == 0 { SILENT_FOR } else { ORPHAN_AFTER };
        if !self.watches.load(Ordering::Relaxed) || self.over().is_some() {
            return None;
        }
        let (stands, in_send) = (self.stands(), self.stands_in_send().is_some());
        if !in_send && (BEAT..=SILENT_FOR).contains(&stands) {
            // This host was paused, or has no CPU for the post: messages may have arrived that it has not read yet.
            return None;
        }
        let over = if !in_send && stands > SILENT_FOR {
            let stands = stands.as_secs_f64();
            let why = if own == 0 {
                format!("does not reach the others: MPI has not come back from a call for {stands:.1} s")
            } else {
                format!("is not heard: MPI has not come back from a call for {stands:.1} s")
            };
            Over { rank: 0, why, code: 3, is_silence: false }
        } else {
            let (rank, silent) = self.most_silent(|_| true).filter(|(_, silent)| *silent > patience)?;
            let why = format!("has been silent for {:.1} s", silent.as_secs_f64());
            Over { rank, why, code: 3, is_silence: true }
        };
        self.end(over.clone());
        Some(over)
    }

    /// How long the post has not looked.
    fn stands(&self) -> Duration {
        since(self.looked_ns.load(Ordering::Relaxed))
    }

    /// The rank that the post stands in a send to, and for how long. Others may speak all the time, and are not heard.
    fn stands_in_send(&self) -> Option<(usize, Duration)> {
        let rank = self.sends_to.load(Ordering::Relaxed).checked_sub(1)?;
        Some((rank, self.stands())).filter(|(_, stands)| *stands > BEAT)
    }

    /// For how long each rank that sends this host heartbeats has been silent.
    pub(super) fn silences(&self) -> Vec<(usize, Duration)> {
        let heard = self.heard_ns.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().enumerate().filter(|(_, at)| **at > 0).map(|(rank, at)| (rank, since(*at))).collect()
    }

    /// The rank that has been silent for longest, and for how long, among those that `counts` is true for.
    pub(super) fn most_silent(&self, counts: impl Fn(usize) -> bool) -> Option<(usize, Duration)> {
        let in_send = self.stands_in_send().filter(|(rank, _)| counts(*rank));
        let silences = self.silences().into_iter().filter(|(rank, _)| counts(*rank));
        in_send.or_else(|| silences.max_by_key(|(_, silent)| *silent))
    }

    /// The other ranks that may have fallen silent before this one, and for how long they have been: heartbeats come a [`BEAT`] apart,
    /// and each may be late by one.
    pub(super) fn as_silent_as(
        &self,
        rank: usize,
        silent: Duration,
        counts: impl Fn(usize) -> bool,
    ) -> Vec<(usize, Duration)> {
        if self.stands_in_send().is_some() {
            return Vec::new();
        }
        let others = self.silences().into_iter().filter(|(other, _)| *other != rank && counts(*other));
        others.filter(|(_, theirs)| *theirs + 2 * BEAT >= silent).collect()
    }
}

/// How long ago a time of our clock in ns was.
fn since(at_ns: u64) -> Duration {
    Duration::from_nanos(clock::now_ns().saturating_sub(at_ns))
}

/// The thread's own side.
pub(super) struct Post {
    net: Box<dyn Net>,
    orders: Receiver<Order>,
    letters: Sender<(usize, Envelope)>,
    shared: Arc<Shared>,
    inboxes: Vec<Inbox>,
    /// By rank: letters that wait until it is heard again.
    waiting: Vec<VecDeque<Letter>>,
    beaten: Instant,
    /// Until when it looks without a rest.
    spin_until: Instant,
    /// Pings that were sent, and the answer to the last one.
    pings: u32,
    pong: Option<(u32, u64)>,
    /// How often the clocks of all were read.
    round: u32,
    /// Who wants the clocks below this host read, and the number of that.
    asked: Option<(usize, u32)>,
    /// What hosts below have read, and the number of that.
    read_below: Vec<(usize, u32, Readings)>,
    /// Whether all were told that it is over.
    has_told: bool,
}

impl Post {
    pub(super) fn new(
        net: Box<dyn Net>,
        orders: Receiver<Order>,
        letters: Sender<(usize, Envelope)>,
        shared: Arc<Shared>,
    ) -> Self {
        let (size, rank, now) = (net.size(), net.rank(), clock::now_ns());
        let hears = |other: usize| if rank == 0 { other != 0 } else { other == 0 };
        let heard = (0..size).map(|other| if hears(other) { now } else { 0 }).collect();
        *shared.course() = Course::for_hosts(size);
        *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) = heard;
        shared.rank.store(rank, Ordering::Relaxed);
        shared.looked_ns.store(now, Ordering::Relaxed);
        shared.watches.store(true, Ordering::Relaxed);
        let inboxes = (0..size).map(|_| Inbox::default()).collect();
        let waiting = vec![VecDeque::new(); size];
        let now = Instant::now();
        Self {
            net,
            orders,
            letters,
            shared,
            inboxes,
            waiting,
            beaten: now,
            spin_until: now,
            pings: 0,
            pong: None,
            round: 0,
            asked: None,
            read_below: Vec::new(),
            has_told: false,
        }
    }

    /// Carries letters until all is said.
    pub(super) fn carry(mut self) {
        loop {
            // One at a time: a thousand letters to send must not keep this host from hearing the others.
            let order = self.orders.try_recv();
            let has_more = order.is_ok();
            match order {
                Ok(Order::Send(to, letter)) => {
                    self.watch_no_more_behind(&letter);
                    self.send(to, letter);
                }
                Ok(Order::Clocks(answer)) => {
                    let _ = answer.send(self.clocks());
                }
                Ok(Order::Leave) => {
                    // No host is lost, so one that was silent for a moment still hears it.
                    (0..self.net.size()).for_each(|rank| self.send_waiting(rank));
                    return self.net.leave();
                }
                Err(TryRecvError::Empty) => {}
                // The measurement has ended without a word, which the end of the process tells.
                Err(TryRecvError::Disconnected) => return,
            }
            self.poll();
            if let Some((above, number)) = self.asked.take() {
                let readings = self.clocks_below(number);
                self.send(above, Letter::Clocks(number, readings));
            }
            let calm = self.shared.is_measuring.load(Ordering::Relaxed);
            if !has_more && Instant::now() >= self.spin_until {
                std::thread::sleep(if calm { LOOK_CALMLY } else { LOOK });
            }
        }
    }

    /// Sends a letter, behind those that wait for the same rank. Rank 0 keeps it until a rank that is silent is heard again.
    fn send(&mut self, to: usize, letter: Letter) {
        let Some(waiting) = self.waiting.get_mut(to) else { return };
        waiting.push_back(letter);
        if self.net.rank() > 0 || !self.is_silent(to) {
            self.send_waiting(to);
        }
    }

    /// Whether a rank had said nothing for that long when the post last took what had come.
    fn is_silent(&self, rank: usize) -> bool {
        let heard = self.shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner);
        let looked_ns = self.shared.looked_ns.load(Ordering::Relaxed);
        let at = heard.get(rank).filter(|at| **at > 0);
        at.is_some_and(|at| u128::from(looked_ns.saturating_sub(*at)) > WAITS_AFTER.as_nanos())
    }

    fn send_waiting(&mut self, to: usize) {
        while let Some(letter) = self.waiting.get_mut(to).and_then(VecDeque::pop_front) {
            let packets = letter.packets();
            self.shared.sends_to.store(to + 1, Ordering::Relaxed);
            for packet in &packets {
                self.net.send(to, packet);
            }
            self.shared.sends_to.store(0, Ordering::Relaxed);
        }
    }

    /// Takes what has come, gives a sign of life where it is time, and notices who is silent.
    fn poll(&mut self) {
        while let Some((from, packet)) = self.net.receive() {
            self.take(from, &packet);
        }
        if self.beaten.elapsed() >= BEAT {
            self.beaten = Instant::now();
            let far = self.shared.far();
            self.shared.wants_p99.store(true, Ordering::Relaxed);
            self.shared.course().tell(self.net.rank(), far, clock::now_ns());
            if self.net.rank() > 0 {
                self.send(0, Letter::Beat(far));
            }
        }
        let now = clock::now_ns();
        let still =
            Duration::from_nanos(now.saturating_sub(self.shared.looked_ns.swap(now, Ordering::Relaxed)));
        if self.net.rank() == 0 && still > ORPHAN_AFTER {
            let why =
                format!("stood still for {:.1} s, and the others stopped their load", still.as_secs_f64());
            self.shared.end(Over { rank: 0, why, code: 3, is_silence: false });
        }
        self.shared.notice_silence();
        // Whoever noticed it here, rank 0 tells everybody.
        if let Some((over, _)) = self.shared.over().filter(|_| self.net.rank() == 0 && !self.has_told) {
            self.has_told = true;
            (1..self.net.size()).for_each(|rank| self.send(rank, Letter::Over(over.clone())));
        }
    }

    /// Whoever is let go may be gone before the next sign of life.
    fn watch_no_more_behind(&self, letter: &Letter) {
        if matches!(letter, Letter::Bye) {
            self.shared.watches.store(false, Ordering::Relaxed);
        }
    }

    fn take(&mut self, from: usize, packet: &[u8]) {
        let heard_ns = clock::now_ns();
        let Some(inbox) = self.inboxes.get_mut(from) else { return };
        // Only ranks that send heartbeats here are watched. Neighbours in the tree send a letter now and then, and are silent in between.
        let mut heard = self.shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get_mut(from).filter(|at| **at > 0).into_iter().for_each(|at| *at = heard_ns);
        drop(heard);
        let came = match inbox.take(packet) {
            Ok(None) => return,
            Ok(Some(came)) if came.is_of_post() => came.open().map(|letter| (came, letter)),
            Ok(Some(came)) => return self.hand_on(from, came),
            Err(why) => Err(why),
        };
        match came {
            Ok((_, Letter::Beat(far))) => {
                self.shared.course().tell(from, far, heard_ns);
                if self.net.rank() == 0 {
                    // Behind all letters that wait for it.
                    self.send(from, Letter::Beat(self.shared.far()));
                }
            }
            Ok((_, Letter::Ping(number))) => {
                self.send(from, Letter::Pong(number, clock::now_ns()));
                self.spin_until = Instant::now() + SPIN;
            }
            Ok((_, Letter::Pong(number, at_ns))) => self.pong = Some((number, at_ns)),
            Ok((_, Letter::AskClocks(number))) => self.asked = Some((from, number)),
            Ok((_, Letter::Clocks(number, readings))) => self.read_below.push((from, number, readings)),
            Ok((_, Letter::Over(over))) => self.shared.end(over),
            Ok((came, letter)) => {
                self.watch_no_more_behind(&letter);
                self.hand_on(from, came);
            }
            Err(why) => self.shared.end(Over::not_understood(from, &why)),
        }
    }

    /// To whoever measures. Nobody listens any more where it has ended.
    fn hand_on(&self, from: usize, came: Envelope) {
        let _ = self.letters.send((from, came));
    }

    /// Rank 0: the clocks of all hosts, by rank. `None` of those that nobody could read.
    fn clocks(&mut self) -> Vec<Option<Reading>> {
        self.round = self.round.wrapping_add(1);
        let mut all = vec![None; self.net.size()];
        let own = (self.net.rank(), Reading::OURS);
        for (rank, reading) in self.clocks_below(self.round).into_iter().chain([own]) {
            if let Some(place) = all.get_mut(rank) {
                *place = Some(reading);
            }
        }
        all
    }

    /// The clocks of all hosts below this one.
    fn clocks_below(&mut self, number: u32) -> Readings {
        let size = self.net.size();
        let below = floors::below(self.net.rank(), size);
        let has_others = |rank: usize| !floors::below(rank, size).is_empty();
        // They read theirs while this one reads theirs.
        below
            .clone()
            .filter(|rank| has_others(*rank))
            .for_each(|rank| self.send(rank, Letter::AskClocks(number)));
        let read: Readings = below.filter_map(|rank| Some((rank, self.clock(rank)?))).collect();
        let until = Instant::now() + BELOW;
        let mut all = read.clone();
        for (rank, reading) in read.into_iter().filter(|(rank, _)| has_others(*rank)) {
            let its = self.wait_for_readings(rank, number, until);
            all.extend(its.into_iter().map(|(lower, its)| (lower, reading.then(its))));
        }
        self.read_below.clear();
        all
    }

    /// What a host right below has read; nothing where it is over before, or does not say it in time.
    fn wait_for_readings(&mut self, rank: usize, number: u32, until: Instant) -> Readings {
        loop {
            let has_come = |(from, of, _): &(usize, u32, Readings)| (*from, *of) == (rank, number);
            if let Some(at) = self.read_below.iter().position(has_come) {
                return self.read_below.swap_remove(at).2;
            }
            if self.shared.over().is_some() || Instant::now() >= until {
                return Vec::new();
            }
            // Without a rest: whoever reads this clock meanwhile wants its answer at once.
            self.poll();
            std::thread::yield_now();
        }
    }

    /// Reads a clock: the ping with the shortest round trip, in as many series as it takes. `None` where nobody answers.
    fn clock(&mut self, rank: usize) -> Option<Reading> {
        let (mut best, asked) = (None::<Reading>, Instant::now());
        for number in 0..SERIES * PINGS {
            if number % PINGS == 0 && best.is_some_and(|b| b.round_trip_ns <= SHORT_NS) {
                break;
            }
            if let Some(reading) = self.ping(rank) {
                best = Some(reading.better(best));
            } else if best.is_none() && asked.elapsed() > UNANSWERED {
                return None;
            }
        }
        best
    }

    fn ping(&mut self, rank: usize) -> Option<Reading> {
        // Of its own for each: what answers late is no answer to another one.
        self.pings = self.pings.wrapping_add(1);
        let number = self.pings;
        self.pong = None;
        let (asked, asked_ns) = (Instant::now(), clock::now_ns());
        self.send(rank, Letter::Ping(number));
        while asked.elapsed() < ANSWER {
            self.poll();
            let heard_ns = clock::now_ns();
            if let Some((_, said_ns)) = self.pong.take_if(|(answered, _)| *answered == number) {
                return Some(Reading::from_exchange(asked_ns, said_ns, heard_ns));
            }
        }
        None
    }
}

#[test]
fn hosts_that_fell_silent_within_two_signs_of_life_are_not_told_apart() {
    let now_ns = clock::now_ns();
    let before = |ms: u64| now_ns - ms * 1_000_000;
    let shared = Shared::default();
    shared.looked_ns.store(now_ns, Ordering::Relaxed);
    // Rank 0 does not hear itself; 1 and 2 fell silent together, 3 still speaks.
    *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) =
        vec![0, before(1100), before(1200), before(100)];
    let (rank, silent) = shared.most_silent(|_| true).unwrap_or_default();
    let others = |rank, silent, counts: fn(usize) -> bool| -> Vec<usize> {
        shared.as_silent_as(rank, silent, counts).into_iter().map(|(other, _)| other).collect()
    };
    assert_eq!((rank, others(rank, silent, |_| true)), (2, vec![1]));
    // Long before the others it is alone.
    assert!(others(1, Duration::from_secs(9), |_| true).is_empty());
    // Only hosts that count.
    assert!(others(rank, silent, |rank| rank != 1).is_empty());
    assert_eq!(shared.most_silent(|rank| rank != 2).map(|(rank, _)| rank), Some(1));
    // Where a send to one does not come back, nobody is heard from then on.
    shared.looked_ns.store(before(1000), Ordering::Relaxed);
    shared.sends_to.store(1 + 3, Ordering::Relaxed);
    let lost = shared.most_silent(|_| true).map(|(rank, silent)| (rank, silent >= Duration::from_secs(1)));
    assert_eq!((lost, others(3, Duration::from_secs(1), |_| true)), (Some((3, true)), vec![]));
}

#[test]
fn a_host_whose_own_post_stood_still_does_not_call_rank_0_silent() {
    let now_ns = clock::now_ns();
    let before = |ms: u64| now_ns - ms * 1_000_000;
    let shared = Shared::default();
    shared.rank.store(1, Ordering::Relaxed);
    shared.watches.store(true, Ordering::Relaxed);
    *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) = vec![before(2100), 0];
    // This host was paused: the messages of two seconds have not been read.
    shared.looked_ns.store(before(2000), Ordering::Relaxed);
    assert_eq!(shared.notice_silence(), None);
    // The post has read what there was, and nothing came from rank 0.
    shared.looked_ns.store(now_ns, Ordering::Relaxed);
    assert_eq!(shared.notice_silence().map(|over| over.why).as_deref(), Some("has been silent for 2.1 s"));
}

#[test]
fn mpi_that_does_not_return_ends_the_load_of_a_host_after_a_while() {
    let now_ns = clock::now_ns();
    let shared = Shared::default();
    shared.rank.store(1, Ordering::Relaxed);
    shared.watches.store(true, Ordering::Relaxed);
    let at_ns = now_ns - 3_500_000_000;
    *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) = vec![at_ns, 0];
    shared.looked_ns.store(at_ns, Ordering::Relaxed);
    let over = shared.notice_silence().map(|over| (over.rank, over.why.starts_with("is not heard: MPI")));
    assert_eq!(over, Some((0, true)));
}
