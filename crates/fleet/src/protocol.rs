//! One host's side of the protocol: every step of a measurement on several hosts.
//!
//! - Joining: starts the transport thread, and learns the names of all hosts.
//! - Steps: every host sends a message to rank 0, which decides and answers all hosts. The steps settle the plan, collect reasons against
//!   continuing, start a phase, merge a run, and collect a verification.
//! - The end: a failure on one host ends the measurement on all.
//!
//! [`super::transport`] moves the messages, [`super::merge`] adds up the values, and [`super::gather`] collects the reports.

use super::clock::{self, Reading};
use super::settle::settle;
use crate::merge::{MergedSession, Phase, RunParts};
use crate::message::{Agreed, EarlyEnd, Envelope, Hello, Message};
use crate::transport::{Network, Shared, Transport, TransportRequest};
use crate::{membership, merge, settle};
use analysis::strategy::{self, Summary};
use live::HostProgress;
use model::Known;
use model::fleet::{RunIndex, RunOnHosts};
use model::machine::Machine;
use model::plan::{Plan, Planned};
use model::record::{Disturbance, Disturbed, Header, Interval, Run, RunEnd, RunEnding, RunStart};
use model::study::HostSteps;
use model::verification::{HostVerification, State, Verified};
use output::failure::Failure;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nice value of the transport thread, if the kernel allows it: on a busy host, heartbeats must not be late.
const TRANSPORT_NICE: i32 = -10;
/// How often a receiver that waits for a message checks whether the measurement has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// How often rank 0 checks for hung storage while it waits for other hosts.
const HUNG_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long the transport thread may take to leave MPI after all hosts are done.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for messages that are still in transit when the process ends.
const FLUSH_TIME: Duration = Duration::from_millis(30);

/// The connection of this host to all others.
pub struct Hosts {
    /// Rank of this host, from 0.
    pub rank: usize,
    /// Number of hosts.
    pub size: usize,
    /// Names of all hosts, by rank.
    pub(super) names: Vec<String>,
    requests: Sender<TransportRequest>,
    pub(super) shared: Arc<Shared>,
    pub(super) state: Mutex<MeasurementState>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// State that changes during the measurement.
pub(super) struct MeasurementState {
    messages: Receiver<(usize, Envelope)>,
    /// Messages that were received but not read yet, by rank.
    waiting: Vec<VecDeque<Envelope>>,
    /// Rank 0 only: clock readings before the last start, by rank.
    pub(super) readings: Vec<Option<Reading>>,
    /// How late this host began each phase of the current run, in ns.
    pub(super) late_ns: Vec<Option<u64>>,
    /// Rank 0 only: clock readings before each phase of the current run, by rank.
    pub(super) before: Vec<Vec<Option<Reading>>>,
    /// The number of hosts for each job, if not all hosts run each job.
    pub(super) steps: Option<HostSteps>,
    /// Whether the cells of a sweep are measured.
    pub(super) is_sweep: bool,
    /// Number of runs in this host's session that all hosts agreed on.
    pub(super) agreed_runs: usize,
    pub(super) machines: Vec<Machine>,
    /// Rank 0 only: the number of each rank's kernel. Ranks on the same kernel have the same number.
    pub(super) kernels: Vec<Option<u32>>,
    /// Rank 0 only: the session of all hosts.
    pub(super) merged_session: MergedSession,
}

impl MeasurementState {
    /// Remembers the parts of the plan that are needed during the measurement.
    fn remember_plan(&mut self, plan: &Plan) {
        self.steps = plan.study.hosts().cloned();
        self.is_sweep = plan.study.grid().is_some();
    }

    /// Waits briefly for the next message, and queues it for its rank.
    fn queue_next_message(&mut self) -> Result<(), Failure> {
        match self.messages.recv_timeout(POLL_INTERVAL) {
            Ok((from, envelope)) => {
                if let Some(waiting) = self.waiting.get_mut(from) {
                    waiting.push_back(envelope);
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Refused("MPI ended while fathom waited for other hosts".into()))
            }
        }
    }
}

impl Hosts {
    /// Starts the transport thread, joins the other hosts and learns their names.
    ///
    /// # Errors
    /// Why the hosts cannot measure together.
    pub(super) fn join(
        net: impl FnOnce() -> Result<Box<dyn Network>, String> + Send + 'static,
        me: Hello,
        ranks_per_host: u32,
    ) -> Result<Self, Failure> {
        let (requests, to_transport) = channel();
        let (from_transport, messages) = channel();
        let (to_caller, joined) = channel();
        let shared = Arc::new(Shared::default());
        let shared_with_transport = Arc::clone(&shared);
        let transport = move || match net() {
            Ok(net) => {
                // If this thread got CPU time late, other hosts would take its late heartbeats for silence. If the kernel denies the
                // priority, it remains normal.
                let _ = sys::thread::prefer(Some(TRANSPORT_NICE), None);
                let _ = to_caller.send(Ok((net.rank(), net.size())));
                Transport::new(net, to_transport, from_transport, shared_with_transport).run();
            }
            Err(why) => drop(to_caller.send(Err(why))),
        };
        let thread = std::thread::Builder::new().name("fathom-fleet".into()).spawn(transport);
        let thread = thread.map_err(|e| Failure::Refused(format!("fathom cannot start a thread: {e}")))?;
        let ended = || Failure::Refused("MPI ended while fathom joined the other hosts".into());
        let (rank, size) = joined.recv().map_err(|_| ended())?.map_err(Failure::Refused)?;
        let state = MeasurementState {
            messages,
            waiting: (0..size).map(|_| VecDeque::new()).collect(),
            readings: Vec::new(),
            late_ns: Vec::new(),
            before: Vec::new(),
            steps: None,
            is_sweep: false,
            agreed_runs: 0,
            machines: Vec::new(),
            kernels: Vec::new(),
            merged_session: MergedSession::default(),
        };
        let thread = Mutex::new(Some(thread));
        let mut hosts =
            Self { rank, size, names: Vec::new(), requests, shared, state: Mutex::new(state), thread };
        if size > 1 {
            hosts.names = hosts.exchange_names(me, ranks_per_host)?;
        }
        Ok(hosts)
    }

    /// Sends this host's name, and returns the names of all hosts by rank.
    fn exchange_names(&self, me: Hello, ranks_per_host: u32) -> Result<Vec<String>, Failure> {
        if self.rank > 0 {
            self.send(0, Message::Hello(me));
            return match self.receive(0)? {
                Message::Welcome(names) => Ok(names),
                other => Err(self.unexpected_message(0, &other)),
            };
        }
        let mut all = vec![me];
        for (rank, message) in self.receive_from_all()? {
            match message {
                Message::Hello(hello) => all.push(hello),
                other => return Err(self.unexpected_message(rank, &other)),
            }
        }
        match membership::host_names(&all, ranks_per_host) {
            Ok(names) => {
                self.state().kernels = membership::kernels(&all);
                self.send_each(|_| Message::Welcome(names.clone()));
                Ok(names)
            }
            Err(why) => Err(self.end_all(Failure::Usage(why))),
        }
    }

    /// Returns the plan that all hosts follow, and this host's machine with the locations of its files.
    ///
    /// # Errors
    /// The failure of this host, or why the hosts cannot measure together.
    pub fn settle(&self, planned: Result<Planned, Failure>) -> Result<Planned, Failure> {
        let own = planned.map_err(|failure| self.end_all(failure))?;
        if self.rank > 0 {
            let mut machine = own.machine.clone();
            self.send(0, Message::Planned(Box::new(own)));
            return match self.receive(0)? {
                Message::Settled(plan) => {
                    self.state().remember_plan(&plan);
                    settle::add_places(&plan, &mut machine);
                    Ok(Planned { plan: *plan, machine })
                }
                other => Err(self.unexpected_message(0, &other)),
            };
        }
        let mut all = vec![own];
        for (rank, message) in self.receive_from_all()? {
            match message {
                Message::Planned(planned) => all.push(*planned),
                other => return Err(self.unexpected_message(rank, &other)),
            }
        }
        let neighbours = membership::neighbours(&self.state().kernels);
        let settled =
            settle(&self.names, &neighbours, &all).map_err(|why| self.end_all(Failure::Usage(why)))?;
        self.send_each(|rank| Message::Settled(Box::new(settled.plans[rank].clone())));
        let mut state = self.state();
        state.merged_session.differences.extend(settled.differences);
        settled.plans.first().into_iter().for_each(|plan| state.remember_plan(plan));
        all.iter_mut().zip(&settled.plans).for_each(|(own, plan)| settle::add_places(plan, &mut own.machine));
        state.machines = all.iter().map(|p| p.machine.clone()).collect();
        let machine = all.swap_remove(0).machine;
        let plan = settled.plans.into_iter().next();
        let plan = plan.ok_or_else(|| Failure::Refused("the hosts sent no plan".into()))?;
        Ok(Planned { plan, machine })
    }

    /// Begins the session of all hosts, on rank 0.
    ///
    /// # Errors
    /// If the session cannot be written.
    pub fn begin(&self, header: &Header, name: &str, keep: bool) -> Result<(), Failure> {
        if self.rank > 0 {
            return Ok(());
        }
        let state = &mut *self.state();
        let mut header = header.clone();
        if !state.machines.is_empty() {
            // The header may have the location of a test file that the plan lacks, because the file exists now.
            let own = header.hosts.first().cloned();
            header.hosts = own.into_iter().chain(state.machines.iter().skip(1).cloned()).collect();
        }
        state.merged_session.begin(header, name, keep)
    }

    /// Returns the number of hosts that run the job. They are the ranks below this number.
    pub(super) fn participants(&self, job: usize) -> usize {
        self.state().steps.as_ref().map_or(self.size, |steps| steps.participants(job, self.size))
    }

    /// Rank 0: reads the clocks of all hosts.
    pub(super) fn read_clocks(&self) -> Vec<Option<Reading>> {
        let (answer, readings) = channel();
        self.request(TransportRequest::Clocks(answer));
        readings.recv().unwrap_or_default()
    }

    /// Registers the flag that stops this host's load. The flag is set when the measurement ends early.
    pub fn register_stop(&self, stop: &Arc<AtomicBool>) {
        self.shared.register_stop(stop);
    }

    /// Reports the completed operations of the current phase, and from time to time the 99th percentile of their latency in ns. Checks
    /// for silent hosts, and returns reports of hung storage.
    pub fn report_progress(&self, operations: u64, p99_ns: impl FnOnce() -> Option<u64>) -> Vec<String> {
        self.shared.operations.store(operations, Ordering::Relaxed);
        if self.shared.wants_p99.swap(false, Ordering::Relaxed) {
            self.shared.p99_ns.store(p99_ns().unwrap_or(0), Ordering::Relaxed);
        }
        self.shared.end_if_silent();
        self.report_hung()
    }

    /// Returns the exit code if the measurement ended early.
    pub fn early_exit_code(&self) -> Option<u8> {
        self.shared.early_end().map(|(over, _)| over.code)
    }

    /// Returns why the measurement ended early, with the name of the host.
    pub fn early_end(&self) -> Option<String> {
        let (EarlyEnd { rank, why, .. }, _) = self.shared.early_end()?;
        Some(format!("{} {why}", self.name(rank)))
    }

    /// The name of the host with this rank.
    pub fn name(&self, rank: usize) -> String {
        self.names.get(rank).cloned().unwrap_or_else(|| format!("rank {rank}"))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, MeasurementState> {
        // A panic while the lock was held leaves valid values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, request: TransportRequest) {
        // If the transport thread has ended, the caller notices that while waiting for the answer.
        let _ = self.requests.send(request);
    }

    pub(super) fn send(&self, to: usize, message: Message) {
        self.request(TransportRequest::Send(to, message));
    }

    /// Sends a message to every other host.
    pub(super) fn send_each(&self, message: impl Fn(usize) -> Message) {
        (0..self.size).filter(|rank| *rank != self.rank).for_each(|rank| self.send(rank, message(rank)));
    }

    /// Receives the next message of a rank.
    pub(super) fn receive(&self, rank: usize) -> Result<Message, Failure> {
        self.receive_until(rank, None)
    }

    /// Receives the next message of a rank while hosts are still under load. Meanwhile `report` gets reports of hung storage.
    pub(super) fn receive_while_watching(
        &self,
        rank: usize,
        report: &impl Fn(&[String]),
    ) -> Result<Message, Failure> {
        loop {
            report(&self.report_hung());
            match self.receive_until(rank, Some(Instant::now() + HUNG_CHECK_INTERVAL)) {
                Err(Failure::Interrupted)
                    if self.shared.early_end().is_none() && !self.shared.is_stopped() => {}
                Err(Failure::Interrupted) if self.shared.early_end().is_some() => {
                    return Err(self.early_end_failure());
                }
                received => return received,
            }
        }
    }

    /// Rank 0: returns new reports of hosts whose storage hangs while others continue. Each host is reported once per run.
    fn report_hung(&self) -> Vec<String> {
        if self.rank > 0 {
            return Vec::new();
        }
        self.shared.progress().report_hung(|rank| self.name(rank), clock::now_ns())
    }

    /// Rank 0: returns one row of progress for each host. With many hosts, returns only the first `ROWS_MAX` rows: hosts that need
    /// attention come first.
    pub fn host_progress(&self) -> Vec<HostProgress> {
        let lost = self.shared.early_end().filter(|(over, _)| over.code == 3).map(|(over, _)| over.rank);
        self.shared.progress().host_progress(lost, |rank| self.name(rank), clock::now_ns())
    }

    /// Receives the next message of a rank before `until`. Without a deadline, gives up only if the measurement ends early or is stopped.
    pub(super) fn receive_until(&self, rank: usize, until: Option<Instant>) -> Result<Message, Failure> {
        let mut state = self.state();
        loop {
            if let Some(envelope) = state.waiting.get_mut(rank).and_then(VecDeque::pop_front) {
                return self.open_envelope(rank, &envelope);
            }
            self.shared.end_if_silent();
            match (until, self.shared.early_end()) {
                (None, Some(_)) => return Err(self.early_end_failure()),
                (None, None) if self.shared.is_stopped() => return Err(Failure::Interrupted),
                (Some(until), _) if Instant::now() >= until => return Err(Failure::Interrupted),
                _ => {}
            }
            state.queue_next_message()?;
        }
    }

    /// Receives the next message of any rank; `None` if none has arrived by `until`, or if the transport thread has ended.
    pub(super) fn receive_any(&self, until: Instant) -> Option<(usize, Message)> {
        let mut state = self.state();
        loop {
            let first = state
                .waiting
                .iter_mut()
                .enumerate()
                .find_map(|(rank, waiting)| Some((rank, waiting.pop_front()?)));
            if let Some((rank, envelope)) = first {
                // A message that cannot be decoded is treated like `Bye`.
                return Some((rank, envelope.open().unwrap_or(Message::Bye)));
            }
            if Instant::now() >= until || state.queue_next_message().is_err() {
                return None;
            }
        }
    }

    fn open_envelope(&self, rank: usize, envelope: &Envelope) -> Result<Message, Failure> {
        envelope.open().map_err(|why| {
            self.shared.end(EarlyEnd::unreadable(rank, &why));
            self.early_end_failure()
        })
    }

    /// Receives the next message of every other rank.
    pub(super) fn receive_from_all(&self) -> Result<Vec<(usize, Message)>, Failure> {
        self.receive_from_first(self.size)
    }

    /// Receives the next message of each rank from 1 to `ranks - 1`.
    pub(super) fn receive_from_first(&self, ranks: usize) -> Result<Vec<(usize, Message)>, Failure> {
        (1..ranks).map(|rank| Ok((rank, self.receive(rank)?))).collect()
    }

    /// Returns the failure with which this host leaves after the measurement ended early. Only rank 0's failure has the reason.
    pub(super) fn early_end_failure(&self) -> Failure {
        let Some((over, _)) = self.shared.early_end() else { return Failure::Interrupted };
        if self.rank > 0 {
            return Failure::Elsewhere(over.code);
        }
        let why = format!("{} {}", self.name(over.rank), over.why);
        match over.code {
            2 => Failure::Usage(why),
            _ => Failure::Refused(why),
        }
    }

    /// Ends the measurement on all hosts because of a failure on this host. Returns the failure
    /// with which this host leaves.
    pub fn end_all(&self, failure: Failure) -> Failure {
        match (&failure, self.shared.early_end()) {
            // Another host had already ended the measurement.
            (Failure::Interrupted, Some(_)) => return self.early_end_failure(),
            (Failure::Elsewhere(_), _) | (_, Some(_)) => return failure,
            _ => {}
        }
        let code = failure.code();
        let why = match &failure {
            Failure::Interrupted => "was interrupted".to_owned(),
            other => format!("cannot measure: {}", other.message()),
        };
        let over = EarlyEnd { rank: self.rank, why, code, is_silence: false };
        self.shared.end(over.clone());
        if self.rank == 0 {
            self.send_each(|_| Message::EarlyEnd(over.clone()));
            failure
        } else {
            self.send(0, Message::EarlyEnd(over));
            Failure::Elsewhere(code)
        }
    }

    pub(super) fn unexpected_message(&self, rank: usize, message: &Message) -> Failure {
        // If the measurement ended, the sender may have left this step for that reason.
        if self.shared.early_end().is_some() {
            return self.early_end_failure();
        }
        let debug_text = format!("{message:?}");
        let what: String = debug_text.chars().take_while(char::is_ascii_alphanumeric).collect();
        let why = format!(
            "{} sent {what}, which {} does not expect at this step",
            self.name(rank),
            self.name(self.rank)
        );
        self.end_all(Failure::Refused(why))
    }

    /// Leaves MPI. All hosts leave at the same time, except if the measurement ended early.
    pub fn leave(&self) {
        if self.rank == 0 {
            self.send_each(|_| Message::Bye);
        }
        if self.shared.early_end().is_some() {
            // MPI would wait for the lost host. When this process exits, its MPI ends too.
            std::thread::sleep(FLUSH_TIME);
            return;
        }
        self.request(TransportRequest::Leave);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let until = Instant::now() + LEAVE_TIMEOUT;
        while thread.as_ref().is_some_and(|t| !t.is_finished()) && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Hosts {
    /// Waits until every host is at this step. `own` is this host's reason not to continue. Returns the reason of the lowest rank that has
    /// one, after the name of that host; `None` if no host has a reason.
    ///
    /// # Errors
    /// If the measurement ended early.
    pub fn first_reason(&self, own: Option<String>) -> Result<Option<String>, Failure> {
        if self.rank > 0 {
            self.send(0, Message::Reason(own));
            return match self.receive(0)? {
                Message::Reason(first) => Ok(first),
                other => Err(self.unexpected_message(0, &other)),
            };
        }
        let mut first = own.map(|why| (0, why));
        for (rank, message) in self.receive_from_all()? {
            let Message::Reason(why) = message else { return Err(self.unexpected_message(rank, &message)) };
            first = first.or(why.map(|why| (rank, why)));
        }
        let first = first.map(|(rank, why)| format!("{}: {why}", self.name(rank)));
        self.send_each(|_| Message::Reason(first.clone()));
        Ok(first)
    }
}

/// Time between the choice of the start time and the start. In this time the messages arrive, and every host reads its counters once
/// more.
const START_DELAY_NS: u64 = 100_000_000;

impl Hosts {
    /// Waits until all hosts are ready for a phase, and returns its start time. If one host has a reason not to begin, no host begins,
    /// and all return the reason. `refused` is the reason of this host, if it has one.
    ///
    /// # Errors
    /// If the measurement ended early.
    pub fn common_start(
        &self,
        start: &RunStart,
        refused: Option<String>,
    ) -> Result<Result<Instant, String>, Failure> {
        let index = start.index();
        if start.phase == 0 {
            let mut state = self.state();
            (state.late_ns, state.before) = (Vec::new(), Vec::new());
        }
        let begin_ns = if self.rank > 0 {
            self.send(0, Message::Ready(index, refused));
            match self.receive(0)? {
                Message::Begin(at_ns) => Ok(at_ns),
                Message::Refused(why) => Err(why),
                other => return Err(self.unexpected_message(0, &other)),
            }
        } else {
            self.begin_on_all(index, self.participants(start.job), refused)?
        };
        let begin_ns = match begin_ns {
            Ok(at_ns) => at_ns,
            Err(why) => return Ok(Err(why)),
        };
        self.shared.operations.store(0, Ordering::Relaxed);
        self.shared.p99_ns.store(0, Ordering::Relaxed);
        self.shared.is_measuring.store(true, Ordering::Relaxed);
        self.shared.is_loaded.store(true, Ordering::Relaxed);
        Ok(Ok(clock::instant(begin_ns)))
    }

    /// Rank 0: waits for all participants, reads their clocks and sends each of them the start time by its own clock.
    fn begin_on_all(
        &self,
        index: RunIndex,
        participants: usize,
        refused: Option<String>,
    ) -> Result<Result<u64, String>, Failure> {
        let with_name = |rank, why: String| format!("{}: {why}", self.name(rank));
        let mut refused = refused.map(|why| with_name(0, why));
        for (rank, message) in self.receive_from_first(participants)? {
            match message {
                Message::Ready(its, why) if its == index => {
                    refused = refused.or_else(|| why.map(|why| with_name(rank, why)));
                }
                other => return Err(self.unexpected_message(rank, &other)),
            }
        }
        if let Some(why) = refused {
            (1..participants).for_each(|rank| self.send(rank, Message::Refused(why.clone())));
            return Ok(Err(why));
        }
        let readings = self.read_clocks();
        let begin_ns = clock::now_ns() + START_DELAY_NS;
        self.shared.progress().begin(begin_ns);
        for rank in 1..participants {
            let Some(reading) = readings.get(rank).copied().flatten() else {
                let why = "does not answer when fathom reads its clock".to_owned();
                self.shared.end(EarlyEnd { rank, why, code: 3, is_silence: true });
                return Err(self.early_end_failure());
            };
            self.send(rank, Message::Begin(reading.there(begin_ns)));
        }
        let mut state = self.state();
        state.before.push(readings.clone());
        state.readings = readings;
        Ok(Ok(begin_ns))
    }

    /// Ends a phase on this host. The last worker of the host began `late_ns` after the start time.
    pub fn end_phase(&self, late_ns: u64) {
        self.shared.is_measuring.store(false, Ordering::Relaxed);
        self.shared.is_loaded.store(false, Ordering::Relaxed);
        self.state().late_ns.push(Some(late_ns));
    }
}

impl Hosts {
    /// Waits until all hosts have written their data. Returns the state that another host has written: the one `shift` ranks after this
    /// host. `own` is the state of this host.
    ///
    /// # Errors
    ///
    /// If the measurement ended early.
    pub fn exchange_written(&self, own: State, shift: usize) -> Result<State, Failure> {
        if self.rank > 0 {
            self.send(0, Message::Written(Box::new(own)));
            return match self.receive(0)? {
                Message::Written(theirs) => Ok(*theirs),
                other => Err(self.unexpected_message(0, &other)),
            };
        }
        let mut all = vec![own];
        for (rank, message) in self.receive_from_all()? {
            match message {
                Message::Written(state) => all.push(*state),
                other => return Err(self.unexpected_message(rank, &other)),
            }
        }
        let read_by = |rank: usize| all[(rank + shift) % self.size].clone();
        self.send_each(|rank| Message::Written(Box::new(read_by(rank))));
        Ok(read_by(0))
    }

    /// Collects the outcomes of a verification from all hosts, on rank 0. For a host without a result, the outcome is a
    /// reason: why the host counts as lost, or that it sent none. The other ranks wait for rank 0's report and return
    /// `None`; a host that has lost rank 0 returns its own outcome.
    ///
    /// # Errors
    ///
    /// [`Failure::Elsewhere`] on the other ranks if the measurement ended early.
    pub fn collect_verified(&self, own: Verified) -> Result<Option<Vec<HostVerification>>, Failure> {
        let interrupted = own.is_interrupted();
        // If the measurement has already ended, the other hosts were informed.
        let mut by_signal = interrupted && self.shared.early_end().is_none();
        if self.rank > 0 {
            if by_signal {
                self.end_all(Failure::Interrupted);
            }
            self.send(0, Message::Verified(Box::new(own.clone())));
            self.wait_for_bye();
            if self.has_lost_rank_0() {
                return Ok(Some(vec![self.on_host(self.rank, Some(own))]));
            }
            return self.outcome_reported_by_rank_0(interrupted).map(|()| None);
        }
        let mut all = vec![None; self.size];
        all[0] = Some(own);
        for (rank, of) in all.iter_mut().enumerate().skip(1).filter(|_| !interrupted) {
            match self.receive(rank) {
                Ok(Message::Verified(its)) => *of = Some(*its),
                Ok(other) => drop(self.unexpected_message(rank, &other)),
                Err(Failure::Interrupted) => {
                    by_signal = true;
                    break;
                }
                Err(why) => {
                    self.end_all(why);
                    break;
                }
            }
        }
        if by_signal {
            self.announce_signal();
        }
        let began = Instant::now();
        let after_signal = self.ended_by_signal(by_signal);
        while all.iter().any(Option::is_none) {
            match self
                .receive_any(self.last_messages_deadline(began, after_signal, |rank| all[rank].is_some()))
            {
                Some((rank, Message::Verified(of))) => all[rank] = Some(*of),
                Some(_) => {}
                None => break,
            }
        }
        self.identify_lost_host(began, |rank| all[rank].is_some());
        Ok(Some(all.into_iter().enumerate().map(|(rank, verified)| self.on_host(rank, verified)).collect()))
    }

    fn on_host(&self, rank: usize, verified: Option<Verified>) -> HostVerification {
        let outcome: Known<Verified> = verified.ok_or_else(|| match self.shared.early_end() {
            Some((over, _)) if over.rank == rank => over.why,
            _ => "sent no result".into(),
        });
        HostVerification { host: Some(self.name(rank)), outcome }
    }
}

impl Hosts {
    /// Merges a run over all hosts. Returns the summary of all hosts, and for a sweep also how the run's last phase ended on all hosts.
    /// Calls `report` with reports of hung storage while this host waits.
    ///
    /// # Errors
    ///
    /// If the measurement ended early.
    pub fn merge_run(
        &self,
        runs: &[Run],
        interval_series: &[Vec<Interval>],
        own: &Summary,
        report: impl Fn(&[String]),
    ) -> Result<(Summary, Option<RunEnd>), Failure> {
        let by = own.disturbed.as_ref().map_or_else(Vec::new, |d| d.disturbances.clone());
        let mut own_parts = self.local_run_parts(runs, interval_series, by);
        // A host without work waits for the others. It polls as rarely as they do.
        let is_idle = own_parts.phases.is_empty();
        self.shared.is_measuring.store(is_idle, Ordering::Relaxed);
        let agreed = if self.rank > 0 {
            self.send(0, Message::Times(own_parts.times()));
            match self.receive(0)? {
                Message::Common(common) => own_parts.count_common(interval_series, &common),
                other => return Err(self.unexpected_message(0, &other)),
            }
            self.send(0, Message::RunParts(Box::new(own_parts)));
            match self.receive(0)? {
                Message::Agreed(agreed) => *agreed,
                other => return Err(self.unexpected_message(0, &other)),
            }
        } else {
            let mut times = own_parts.times();
            for rank in 1..self.size {
                match self.receive_while_watching(rank, &report)? {
                    Message::Times(its) => merge::add_times(&mut times, its),
                    other => return Err(self.unexpected_message(rank, &other)),
                }
            }
            let common = merge::common_times(&times);
            self.send_each(|_| Message::Common(common.clone()));
            own_parts.count_common(interval_series, &common);
            for rank in 1..self.size {
                match self.receive_while_watching(rank, &report)? {
                    Message::RunParts(its) => own_parts.add(*its),
                    other => return Err(self.unexpected_message(rank, &other)),
                }
            }
            let agreed = self.all_agree(own_parts, own.attempt)?;
            self.send_each(|_| Message::Agreed(Box::new(agreed.clone())));
            agreed
        };
        self.shared.is_measuring.store(false, Ordering::Relaxed);
        self.state().agreed_runs += runs.len();
        let Agreed { iops, latency, service, disturbed, ended_ns, end } = agreed;
        let (latency, service) = (Arc::new(latency), Arc::new(service));
        Ok((Summary { iops, latency, service, disturbed, ended_ns, ..own.clone() }, end))
    }

    /// The phases and disturbances of this host, ready to be added up.
    pub(super) fn local_run_parts(
        &self,
        runs: &[Run],
        interval_series: &[Vec<Interval>],
        disturbed: Vec<Disturbance>,
    ) -> RunParts {
        let state = self.state();
        let phase = |(at, run): (usize, &Run)| {
            let intervals = interval_series.get(at).unwrap_or(&run.intervals);
            Phase::from_run(self.rank as u32, run, intervals, state.late_ns.get(at).copied().flatten())
        };
        let mut by = Vec::new();
        merge::add_disturbances(&mut by, disturbed);
        RunParts { phases: runs.iter().enumerate().filter_map(phase).collect(), disturbed: by }
    }

    /// Rank 0: appends the merged run to the session of all hosts, and returns the result that all hosts continue with.
    fn all_agree(&self, mut all: RunParts, attempt: u32) -> Result<Agreed, Failure> {
        let after = self.read_clocks();
        let disturbed = merge::disturbed(attempt, std::mem::take(&mut all.disturbed));
        self.keep(all, &after, disturbed)
    }

    /// Rank 0: appends the merged phases of a run to the session of all hosts, except phases that the session already has. Phases of a
    /// lost host are missing.
    pub(super) fn keep(
        &self,
        all: RunParts,
        after: &[Option<Reading>],
        disturbed: Option<Disturbed>,
    ) -> Result<Agreed, Failure> {
        let job = all.phases.first().map(|phase| phase.start.job);
        let participants = job.map_or(self.size, |job| self.participants(job));
        let state = &mut *self.state();
        let mut ends = Vec::new();
        for (at, phase) in all.phases.into_iter().enumerate() {
            let (index, offered_iops) = phase.index_and_load();
            if state
                .merged_session
                .runs
                .iter()
                .any(|run| (run.index, run.offered_iops) == (index, offered_iops))
            {
                continue;
            }
            let mut merged = phase.merged(&self.names);
            if (merged.hosts as usize) < participants && merged.end.ending == RunEnding::Complete {
                merged.end.ending = RunEnding::Interrupted;
            }
            let before = state.before.get(at).map_or(&[][..], Vec::as_slice);
            state.merged_session.runs.push(RunOnHosts {
                index,
                offered_iops,
                common_ns: merged.common_ns,
                longest_ns: merged.longest_ns,
                ..merge::start_spread(&merged.late, participants, before, after)
            });
            ends.push(merged.end.clone());
            state.merged_session.append(merged.start, merged.end)?;
        }
        if let Some(disturbed) = &disturbed {
            state.merged_session.append_disturbed(disturbed)?;
        }
        let iops = strategy::rate(ends.iter());
        let (latency, service) = (strategy::latencies(ends.iter()), strategy::service_times(ends.iter()));
        let ended_ns = ends.iter().map(|end| end.at_ns).max().unwrap_or(0);
        let end = ends.pop().filter(|_| state.is_sweep);
        Ok(Agreed { iops, latency, service, disturbed, ended_ns, end })
    }

    /// Records a run that no host began, because one host could not. Rank 0 appends the run with the reason.
    ///
    /// # Errors
    ///
    /// If the session cannot be written.
    pub fn keep_refused(&self, start: &RunStart, end: &RunEnd) -> Result<(), Failure> {
        let state = &mut *self.state();
        state.agreed_runs += 1;
        if self.rank > 0 {
            return Ok(());
        }
        let (index, offered_iops) = (start.index(), start.offered_iops);
        state.merged_session.runs.push(RunOnHosts { index, offered_iops, ..RunOnHosts::default() });
        state.merged_session.append(start.clone(), end.clone())
    }
}
