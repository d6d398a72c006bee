//! The transport thread of a host: sends and receives messages and heartbeats, whatever the measuring threads do.
//!
//! - Heartbeats go both ways between rank 0 and every other host. A host that sends none for 3 s is lost, and the measurement ends.
//! - Clocks: each host reads the clocks of its children in the tree of hosts with pings, and adds the readings that the children report.
//! - Only clock readings use the tree, because each takes up to 120 pings. The children of rank `r` are the 16 ranks from `16 r + 1` on.
//!
//! With Open MPI 4, a send to a process that has ended does not return, and from then on no message is received. Therefore rank 0 sends
//! only to hosts that it has just heard. It answers heartbeats instead of sending its own, and holds messages to a silent host until that
//! host is heard again.

use crate::clock::{self, PINGS, Reading, Readings, SERIES, SHORT_NS};
#[cfg(test)]
use crate::message::PACKET_BYTES;
use crate::message::{EarlyEnd, Envelope, Inbox, LoadProgress, Message};
use crate::progress::RunProgress;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two heartbeats of a host.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// After a host has been silent for this long, two heartbeats are missing. Rank 0 then holds messages to the host until it is heard again.
const HOLD_MESSAGES_AFTER: Duration = HEARTBEAT_INTERVAL.saturating_mul(2);
/// A host that has been silent for this long is lost.
const LOST_HOST_AFTER: Duration = Duration::from_secs(3);
/// After rank 0 has been silent for this long, a host stops its load: rank 0 has probably ended or is paused.
const ORPHAN_AFTER: Duration = Duration::from_millis(900);
/// How often the transport thread polls outside of a measurement.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// How often the transport thread polls during a measurement: less often, to take little CPU time from the load.
const MEASURING_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// After a ping the thread polls continuously for this long, because the next ping follows soon.
const BUSY_POLL_TIME: Duration = Duration::from_millis(10);

/// How long the thread waits for the answer to a ping.
const PING_TIMEOUT: Duration = Duration::from_millis(50);
/// Time limit for the first answer of a host, which may be short of CPU time.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for the children to read the clocks below them. A lost host is noticed earlier.
const CHILD_CLOCKS_TIMEOUT: Duration = Duration::from_secs(10);

/// A request to the transport thread.
pub(super) enum TransportRequest {
    Send(usize, Message),
    /// Read all clocks. The answer has the readings by rank.
    Clocks(Sender<Vec<Option<Reading>>>),
    /// Leave together with the other hosts, after a complete measurement.
    Leave,
}

/// State that the transport thread shares with the measuring threads.
#[derive(Default)]
pub(super) struct Shared {
    early_end: Mutex<Option<(EarlyEnd, Instant)>>,
    stop: Mutex<Option<Arc<AtomicBool>>>,
    /// Completed operations of the current phase, for the next heartbeat.
    pub(super) operations: AtomicU64,
    /// 99th percentile of the latency in ns; 0 if unknown.
    pub(super) p99_ns: AtomicU64,
    /// Whether the measuring thread should compute `p99_ns` again before the next heartbeat.
    pub(super) wants_p99: AtomicBool,
    /// Whether a run is being measured, even if this host has no part in it. The transport thread then polls less often.
    pub(super) is_measuring: AtomicBool,
    /// Whether this host is under load.
    pub(super) is_loaded: AtomicBool,
    /// When each rank was last heard, in ns of this host's clock; 0 for ranks that send no heartbeats to this host.
    heard_ns: Mutex<Vec<u64>>,
    /// The progress of the current run on each host.
    pub(super) progress: Mutex<RunProgress>,
    rank: AtomicUsize,
    /// Whether silent hosts end the measurement. False after the last message.
    detects_silence: AtomicBool,
    /// When the transport thread last polled, in ns of this host's clock.
    polled_ns: AtomicU64,
    /// The rank that an MPI send in progress goes to, plus 1; 0 if no send is in progress.
    sending_to: AtomicUsize,
}

impl Shared {
    /// Ends the measurement and stops the load. The first reason is kept.
    pub(super) fn end(&self, over: EarlyEnd) {
        let mut known = self.early_end.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| (over, Instant::now()));
        if let Some(stop) = &*self.stop.lock().unwrap_or_else(PoisonError::into_inner) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Replaces the reason of an early end when more is known. Keeps the time of the end; if there is none, sets it to `ended`.
    pub(super) fn replace_reason(&self, over: EarlyEnd, ended: Instant) {
        let mut known = self.early_end.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = known.take().map_or(ended, |(_, at)| at);
        *known = Some((over, ended));
    }

    /// Returns why and when the measurement ended early; `None` if it did not.
    pub(super) fn early_end(&self) -> Option<(EarlyEnd, Instant)> {
        self.early_end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Registers the flag that stops the load. Sets it at once if the measurement has already ended.
    pub(super) fn register_stop(&self, stop: &Arc<AtomicBool>) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(stop));
        if self.early_end().is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the load was stopped, by a signal or because the measurement ended early.
    pub(super) fn is_stopped(&self) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Locks and returns the progress of the current run on all hosts.
    pub(super) fn progress(&self) -> MutexGuard<'_, RunProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress of the load on this host; `None` without load.
    fn load_progress(&self) -> Option<LoadProgress> {
        let p99_ns = Some(self.p99_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0);
        let operations = self.operations.load(Ordering::Relaxed);
        self.is_loaded.load(Ordering::Relaxed).then_some(LoadProgress { operations, p99_ns })
    }

    /// Ends the measurement if a rank has been silent for too long, or if an MPI call does not
    /// return because the other process has ended. Returns the reason, or `None` if this call does
    /// not end the measurement. Both the transport thread and the measuring threads call this.
    pub(super) fn end_if_silent(&self) -> Option<EarlyEnd> {
        let own = self.rank.load(Ordering::Relaxed);
        let patience = if own == 0 { LOST_HOST_AFTER } else { ORPHAN_AFTER };
        if !self.detects_silence.load(Ordering::Relaxed) || self.early_end().is_some() {
            return None;
        }
        let (stall, in_send) = (self.stall(), self.stalled_send().is_some());
        if !in_send && (HEARTBEAT_INTERVAL..=LOST_HOST_AFTER).contains(&stall) {
            // This host was paused, or the transport thread got no CPU time. There may be messages that it has not read yet.
            return None;
        }
        let over = if !in_send && stall > LOST_HOST_AFTER {
            let stall = stall.as_secs_f64();
            let why = if own == 0 {
                format!("does not reach the other hosts: an MPI call has not returned for {stall:.1} s")
            } else {
                format!("cannot be reached: an MPI call has not returned for {stall:.1} s")
            };
            EarlyEnd { rank: 0, why, code: 3, is_silence: false }
        } else {
            let (rank, silent) = self.most_silent(|_| true).filter(|(_, silent)| *silent > patience)?;
            let why = format!("has been silent for {:.1} s", silent.as_secs_f64());
            EarlyEnd { rank, why, code: 3, is_silence: true }
        };
        self.end(over.clone());
        Some(over)
    }

    /// Returns how long ago the transport thread last polled.
    fn stall(&self) -> Duration {
        since(self.polled_ns.load(Ordering::Relaxed))
    }

    /// Returns the receiver of an MPI send that does not return, and how long that has lasted; `None` if that has lasted no longer than
    /// [`HEARTBEAT_INTERVAL`]. During the send this host hears no other host.
    fn stalled_send(&self) -> Option<(usize, Duration)> {
        let rank = self.sending_to.load(Ordering::Relaxed).checked_sub(1)?;
        Some((rank, self.stall())).filter(|(_, stall)| *stall > HEARTBEAT_INTERVAL)
    }

    /// Returns how long each rank that sends heartbeats to this host has been silent.
    pub(super) fn silences(&self) -> Vec<(usize, Duration)> {
        let heard = self.heard_ns.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().enumerate().filter(|(_, at)| **at > 0).map(|(rank, at)| (rank, since(*at))).collect()
    }

    /// Returns the rank that has been silent for longest, and for how long. If an MPI send does not return, returns the receiver instead.
    /// Considers only ranks for which `is_considered` is true.
    pub(super) fn most_silent(&self, is_considered: impl Fn(usize) -> bool) -> Option<(usize, Duration)> {
        let in_send = self.stalled_send().filter(|(rank, _)| is_considered(*rank));
        let silences = self.silences().into_iter().filter(|(rank, _)| is_considered(*rank));
        in_send.or_else(|| silences.max_by_key(|(_, silent)| *silent))
    }

    /// Returns the other ranks whose silence is at most two heartbeat intervals shorter than `silent`, and for how long each has been
    /// silent. They may have fallen silent before `rank`: heartbeats are [`HEARTBEAT_INTERVAL`] apart, and each may be late by one
    /// interval. Empty while an MPI send does not return, because this host then hears no other host.
    pub(super) fn silent_about_as_long(
        &self,
        rank: usize,
        silent: Duration,
        is_considered: impl Fn(usize) -> bool,
    ) -> Vec<(usize, Duration)> {
        if self.stalled_send().is_some() {
            return Vec::new();
        }
        let others = self.silences().into_iter().filter(|(other, _)| *other != rank && is_considered(*other));
        others.filter(|(_, theirs)| *theirs + 2 * HEARTBEAT_INTERVAL >= silent).collect()
    }
}

/// Returns the time since `at_ns` of this host's clock.
fn since(at_ns: u64) -> Duration {
    Duration::from_nanos(clock::now_ns().saturating_sub(at_ns))
}

/// The state of the transport thread.
pub(super) struct Transport {
    net: Box<dyn Network>,
    requests: Receiver<TransportRequest>,
    messages: Sender<(usize, Envelope)>,
    shared: Arc<Shared>,
    inboxes: Vec<Inbox>,
    /// Messages by rank that are held until the rank is heard again.
    waiting: Vec<VecDeque<Message>>,
    heartbeat_at: Instant,
    /// The thread polls continuously until this time.
    busy_poll_until: Instant,
    /// Number of pings sent.
    pings: u32,
    /// The answer to the last ping; `None` until it has arrived.
    pong: Option<(u32, u64)>,
    /// Number of times that all clocks were read.
    round: u32,
    /// The parent that requested the clocks below this host, and the number of its request.
    clock_request: Option<(usize, u32)>,
    /// The clock readings that children sent, each with the rank of the child and the number of the request.
    child_readings: Vec<(usize, u32, Readings)>,
    /// Whether rank 0 has announced to all hosts that the measurement ended.
    has_announced_end: bool,
}

impl Transport {
    pub(super) fn new(
        net: Box<dyn Network>,
        requests: Receiver<TransportRequest>,
        messages: Sender<(usize, Envelope)>,
        shared: Arc<Shared>,
    ) -> Self {
        let (size, rank, now) = (net.size(), net.rank(), clock::now_ns());
        let hears = |other: usize| if rank == 0 { other != 0 } else { other == 0 };
        let heard = (0..size).map(|other| if hears(other) { now } else { 0 }).collect();
        *shared.progress() = RunProgress::for_hosts(size);
        *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) = heard;
        shared.rank.store(rank, Ordering::Relaxed);
        shared.polled_ns.store(now, Ordering::Relaxed);
        shared.detects_silence.store(true, Ordering::Relaxed);
        let inboxes = (0..size).map(|_| Inbox::default()).collect();
        let waiting = vec![VecDeque::new(); size];
        let now = Instant::now();
        Self {
            net,
            requests,
            messages,
            shared,
            inboxes,
            waiting,
            heartbeat_at: now,
            busy_poll_until: now,
            pings: 0,
            pong: None,
            round: 0,
            clock_request: None,
            child_readings: Vec::new(),
            has_announced_end: false,
        }
    }

    /// Runs until the measuring thread asks to leave or ends.
    pub(super) fn run(mut self) {
        loop {
            // Handle one request per pass of the loop. If there are a thousand messages to send, this host must still receive.
            let request = self.requests.try_recv();
            let has_more = request.is_ok();
            match request {
                Ok(TransportRequest::Send(to, message)) => {
                    self.stop_watching_after(&message);
                    self.send(to, message);
                }
                Ok(TransportRequest::Clocks(answer)) => {
                    let _ = answer.send(self.read_all_clocks());
                }
                Ok(TransportRequest::Leave) => {
                    // No host is lost, so even a host that was silent for a moment receives its messages.
                    (0..self.net.size()).for_each(|rank| self.send_waiting(rank));
                    return self.net.leave();
                }
                Err(TryRecvError::Empty) => {}
                // The measuring thread ended without a request to leave. The other hosts notice the end of the process.
                Err(TryRecvError::Disconnected) => return,
            }
            self.poll();
            if let Some((above, number)) = self.clock_request.take() {
                let readings = self.read_child_clocks(number);
                self.send(above, Message::Clocks(number, readings));
            }
            let is_measuring = self.shared.is_measuring.load(Ordering::Relaxed);
            if !has_more && Instant::now() >= self.busy_poll_until {
                std::thread::sleep(if is_measuring { MEASURING_POLL_INTERVAL } else { POLL_INTERVAL });
            }
        }
    }

    /// Sends a message after the messages that wait for the same receiver. On rank 0 all of them wait while the receiver is silent.
    fn send(&mut self, to: usize, message: Message) {
        let Some(waiting) = self.waiting.get_mut(to) else { return };
        waiting.push_back(message);
        if self.net.rank() > 0 || !self.is_silent(to) {
            self.send_waiting(to);
        }
    }

    /// Returns whether a rank had been silent for [`HOLD_MESSAGES_AFTER`] at the last poll.
    fn is_silent(&self, rank: usize) -> bool {
        let heard = self.shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner);
        let polled_ns = self.shared.polled_ns.load(Ordering::Relaxed);
        let at = heard.get(rank).filter(|at| **at > 0);
        at.is_some_and(|at| u128::from(polled_ns.saturating_sub(*at)) > HOLD_MESSAGES_AFTER.as_nanos())
    }

    fn send_waiting(&mut self, to: usize) {
        while let Some(message) = self.waiting.get_mut(to).and_then(VecDeque::pop_front) {
            let packets = message.packets();
            self.shared.sending_to.store(to + 1, Ordering::Relaxed);
            for packet in &packets {
                self.net.send(to, packet);
            }
            self.shared.sending_to.store(0, Ordering::Relaxed);
        }
    }

    /// Handles received packets, sends heartbeats when due and checks for silent hosts.
    fn poll(&mut self) {
        while let Some((from, packet)) = self.net.receive() {
            self.handle_packet(from, &packet);
        }
        if self.heartbeat_at.elapsed() >= HEARTBEAT_INTERVAL {
            self.heartbeat_at = Instant::now();
            let load = self.shared.load_progress();
            self.shared.wants_p99.store(true, Ordering::Relaxed);
            self.shared.progress().record_heartbeat(self.net.rank(), load, clock::now_ns());
            if self.net.rank() > 0 {
                self.send(0, Message::Heartbeat(load));
            }
        }
        let now = clock::now_ns();
        let since_last_poll =
            Duration::from_nanos(now.saturating_sub(self.shared.polled_ns.swap(now, Ordering::Relaxed)));
        if self.net.rank() == 0 && since_last_poll > ORPHAN_AFTER {
            let why = format!(
                "was paused for {:.1} s, and the other hosts stopped their load",
                since_last_poll.as_secs_f64()
            );
            self.shared.end(EarlyEnd { rank: 0, why, code: 3, is_silence: false });
        }
        self.shared.end_if_silent();
        // Rank 0 informs all hosts why the measurement ended, whichever host noticed it.
        if let Some((over, _)) =
            self.shared.early_end().filter(|_| self.net.rank() == 0 && !self.has_announced_end)
        {
            self.has_announced_end = true;
            (1..self.net.size()).for_each(|rank| self.send(rank, Message::EarlyEnd(over.clone())));
        }
    }

    /// Stops watching for silent hosts after the last message, because a host may leave before its next heartbeat.
    fn stop_watching_after(&self, message: &Message) {
        if matches!(message, Message::Bye) {
            self.shared.detects_silence.store(false, Ordering::Relaxed);
        }
    }

    fn handle_packet(&mut self, from: usize, packet: &[u8]) {
        let heard_ns = clock::now_ns();
        let Some(inbox) = self.inboxes.get_mut(from) else { return };
        // Rank 0 and the other hosts exchange heartbeats. Other pairs of hosts exchange only clock readings, so their silence means
        // nothing.
        let mut heard = self.shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get_mut(from).filter(|at| **at > 0).into_iter().for_each(|at| *at = heard_ns);
        drop(heard);
        let received = match inbox.take(packet) {
            Ok(None) => return,
            Ok(Some(envelope)) if envelope.is_for_transport() => {
                envelope.open().map(|message| (envelope, message))
            }
            Ok(Some(envelope)) => return self.deliver(from, envelope),
            Err(why) => Err(why),
        };
        match received {
            Ok((_, Message::Heartbeat(load))) => {
                self.shared.progress().record_heartbeat(from, load, heard_ns);
                if self.net.rank() == 0 {
                    // Sent after all messages that are held for the rank.
                    self.send(from, Message::Heartbeat(self.shared.load_progress()));
                }
            }
            Ok((_, Message::Ping(number))) => {
                self.send(from, Message::Pong(number, clock::now_ns()));
                self.busy_poll_until = Instant::now() + BUSY_POLL_TIME;
            }
            Ok((_, Message::Pong(number, at_ns))) => self.pong = Some((number, at_ns)),
            Ok((_, Message::AskClocks(number))) => self.clock_request = Some((from, number)),
            Ok((_, Message::Clocks(number, readings))) => self.child_readings.push((from, number, readings)),
            Ok((_, Message::EarlyEnd(over))) => self.shared.end(over),
            Ok((envelope, message)) => {
                self.stop_watching_after(&message);
                self.deliver(from, envelope);
            }
            Err(why) => self.shared.end(EarlyEnd::unreadable(from, &why)),
        }
    }

    /// Hands a message to the measuring thread. That thread may have ended.
    fn deliver(&self, from: usize, envelope: Envelope) {
        let _ = self.messages.send((from, envelope));
    }

    /// Rank 0: reads the clocks of all hosts, by rank; `None` for a clock that could not be read.
    fn read_all_clocks(&mut self) -> Vec<Option<Reading>> {
        self.round = self.round.wrapping_add(1);
        let mut all = vec![None; self.net.size()];
        let own = (self.net.rank(), Reading::OURS);
        for (rank, reading) in self.read_child_clocks(self.round).into_iter().chain([own]) {
            if let Some(place) = all.get_mut(rank) {
                *place = Some(reading);
            }
        }
        all
    }

    /// Reads the clocks of all hosts below this one.
    fn read_child_clocks(&mut self, number: u32) -> Readings {
        let size = self.net.size();
        let below = children(self.net.rank(), size);
        let has_others = |rank: usize| !children(rank, size).is_empty();
        // Meanwhile the children read the clocks below them.
        below
            .clone()
            .filter(|rank| has_others(*rank))
            .for_each(|rank| self.send(rank, Message::AskClocks(number)));
        let read: Readings = below.filter_map(|rank| Some((rank, self.read_clock(rank)?))).collect();
        let until = Instant::now() + CHILD_CLOCKS_TIMEOUT;
        let mut all = read.clone();
        for (rank, reading) in read.into_iter().filter(|(rank, _)| has_others(*rank)) {
            let its = self.wait_for_readings(rank, number, until);
            all.extend(its.into_iter().map(|(lower, its)| (lower, reading.then(its))));
        }
        self.child_readings.clear();
        all
    }

    /// Waits for the readings of a child. Returns no readings if the measurement ends or the deadline passes.
    fn wait_for_readings(&mut self, rank: usize, number: u32, until: Instant) -> Readings {
        loop {
            let is_awaited = |(from, of, _): &(usize, u32, Readings)| (*from, *of) == (rank, number);
            if let Some(at) = self.child_readings.iter().position(is_awaited) {
                return self.child_readings.swap_remove(at).2;
            }
            if self.shared.early_end().is_some() || Instant::now() >= until {
                return Vec::new();
            }
            // Polls without a pause: a parent that reads this clock needs the answer at once.
            self.poll();
            std::thread::yield_now();
        }
    }

    /// Reads a clock by up to [`SERIES`] series of pings, and keeps the reading with the shortest round
    /// trip. `None` without an answer.
    fn read_clock(&mut self, rank: usize) -> Option<Reading> {
        let (mut best, asked) = (None::<Reading>, Instant::now());
        for number in 0..SERIES * PINGS {
            if number % PINGS == 0 && best.is_some_and(|b| b.round_trip_ns <= SHORT_NS) {
                break;
            }
            if let Some(reading) = self.ping(rank) {
                best = Some(reading.better(best));
            } else if best.is_none() && asked.elapsed() > FIRST_ANSWER_TIMEOUT {
                return None;
            }
        }
        best
    }

    fn ping(&mut self, rank: usize) -> Option<Reading> {
        // Each ping has its own number, so that a late answer is not taken for the answer to a later ping.
        self.pings = self.pings.wrapping_add(1);
        let number = self.pings;
        self.pong = None;
        let (sent, sent_ns) = (Instant::now(), clock::now_ns());
        self.send(rank, Message::Ping(number));
        while sent.elapsed() < PING_TIMEOUT {
            self.poll();
            let received_ns = clock::now_ns();
            if let Some((_, remote_ns)) = self.pong.take_if(|(answered, _)| *answered == number) {
                return Some(Reading::from_exchange(sent_ns, remote_ns, received_ns));
            }
        }
        None
    }
}

/// Sends and receives packets between ranks.
pub trait Network {
    /// The rank of this process.
    fn rank(&self) -> usize;
    /// The number of ranks.
    fn size(&self) -> usize;
    /// Sends a packet of at most `PACKET_BYTES` without waiting for the receiver.
    fn send(&mut self, to: usize, packet: &[u8]);
    /// Returns the next packet that has arrived, with the rank of its sender; `None` if none has.
    fn receive(&mut self) -> Option<(usize, Vec<u8>)>;
    /// Leaves together with all other ranks. Not called if one of them is lost.
    fn leave(self: Box<Self>);
}

/// A network between threads of one process.
#[cfg(test)]
pub(super) struct ThreadNetwork {
    /// Whether a send to a thread that has ended does not return, as with Open MPI 4.
    pub(super) blocks_on_ended: bool,
    /// A period in which nothing is sent or received, as if an MPI call did not return.
    pub(super) pause: Option<[std::time::Instant; 2]>,
    rank: usize,
    to: Vec<std::sync::mpsc::Sender<(usize, Vec<u8>)>>,
    from: std::sync::mpsc::Receiver<(usize, Vec<u8>)>,
}

#[cfg(test)]
impl ThreadNetwork {
    /// Connects `size` ranks.
    pub(super) fn connect(size: usize) -> Vec<Self> {
        let (to, from): (Vec<_>, Vec<_>) = (0..size).map(|_| std::sync::mpsc::channel()).unzip();
        from.into_iter()
            .enumerate()
            .map(|(rank, from)| Self { blocks_on_ended: false, pause: None, rank, to: to.clone(), from })
            .collect()
    }
}

#[cfg(test)]
impl Network for ThreadNetwork {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&mut self, to: usize, packet: &[u8]) {
        assert!(packet.len() <= PACKET_BYTES);
        // A thread that has ended receives nothing any more.
        while self.to[to].send((self.rank, packet.to_vec())).is_err() && self.blocks_on_ended {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let now = std::time::Instant::now();
        if let Some([_, end]) = self.pause.filter(|[begin, end]| (*begin..*end).contains(&now)) {
            std::thread::sleep(end - now);
        }
        self.from.try_recv().ok()
    }

    fn leave(self: Box<Self>) {}
}

/// Children per host in the tree. With this number, three levels below rank 0 contain four thousand hosts.
const FAN_OUT: usize = 16;

/// The parent of a rank other than 0 in the tree.
#[cfg(test)]
fn parent(rank: usize) -> usize {
    rank.saturating_sub(1) / FAN_OUT
}

/// The children of a rank in the tree.
fn children(rank: usize, size: usize) -> Range<usize> {
    let first = rank * FAN_OUT + 1;
    first.min(size)..(first + FAN_OUT).min(size)
}

#[test]
fn hosts_silent_since_nearly_the_same_time_are_all_listed() {
    let now_ns = clock::now_ns();
    let before = |ms: u64| now_ns - ms * 1_000_000;
    let shared = Shared::default();
    shared.polled_ns.store(now_ns, Ordering::Relaxed);
    // Rank 0 does not hear itself. Ranks 1 and 2 fell silent at nearly the same time, and rank 3 still sends.
    *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) =
        vec![0, before(1100), before(1200), before(100)];
    let (rank, silent) = shared.most_silent(|_| true).unwrap_or_default();
    let others = |rank, silent, is_considered: fn(usize) -> bool| -> Vec<usize> {
        shared.silent_about_as_long(rank, silent, is_considered).into_iter().map(|(other, _)| other).collect()
    };
    assert_eq!((rank, others(rank, silent, |_| true)), (2, vec![1]));
    // Only rank 1 has been silent since long before the others.
    assert!(others(1, Duration::from_secs(9), |_| true).is_empty());
    // Rank 1 is excluded.
    assert!(others(rank, silent, |rank| rank != 1).is_empty());
    assert_eq!(shared.most_silent(|rank| rank != 2).map(|(rank, _)| rank), Some(1));
    // While a send does not return, no host is heard.
    shared.polled_ns.store(before(1000), Ordering::Relaxed);
    shared.sending_to.store(1 + 3, Ordering::Relaxed);
    let lost = shared.most_silent(|_| true).map(|(rank, silent)| (rank, silent >= Duration::from_secs(1)));
    assert_eq!((lost, others(3, Duration::from_secs(1), |_| true)), (Some((3, true)), vec![]));
}

#[test]
fn a_paused_host_does_not_call_rank_0_silent() {
    let now_ns = clock::now_ns();
    let before = |ms: u64| now_ns - ms * 1_000_000;
    let shared = Shared::default();
    shared.rank.store(1, Ordering::Relaxed);
    shared.detects_silence.store(true, Ordering::Relaxed);
    *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) = vec![before(2100), 0];
    // This host was paused: the messages of two seconds have not been read.
    shared.polled_ns.store(before(2000), Ordering::Relaxed);
    assert_eq!(shared.end_if_silent(), None);
    // The transport thread has read all messages, and none came from rank 0.
    shared.polled_ns.store(now_ns, Ordering::Relaxed);
    assert_eq!(shared.end_if_silent().map(|over| over.why).as_deref(), Some("has been silent for 2.1 s"));
}

#[test]
fn an_mpi_call_that_does_not_return_ends_the_load() {
    let now_ns = clock::now_ns();
    let shared = Shared::default();
    shared.rank.store(1, Ordering::Relaxed);
    shared.detects_silence.store(true, Ordering::Relaxed);
    let at_ns = now_ns - 3_500_000_000;
    *shared.heard_ns.lock().unwrap_or_else(PoisonError::into_inner) = vec![at_ns, 0];
    shared.polled_ns.store(at_ns, Ordering::Relaxed);
    let over =
        shared.end_if_silent().map(|over| (over.rank, over.why.starts_with("cannot be reached: an MPI")));
    assert_eq!(over, Some((0, true)));
}

#[test]
fn tree_contains_every_host_once_in_few_levels() {
    for size in [1, 2, 17, 18, 1_000, 10_000] {
        let mut all: Vec<usize> = (0..size).flat_map(|rank| children(rank, size)).collect();
        assert!((0..size).all(|rank| children(rank, size).all(|lower| parent(lower) == rank)));
        all.sort_unstable();
        assert_eq!(all, (1..size).collect::<Vec<_>>());
        let levels =
            std::iter::successors(Some(size - 1), |rank| (*rank > 0).then(|| parent(*rank))).count() - 1;
        assert!(levels <= 4, "{size} hosts: {levels}");
    }
}
