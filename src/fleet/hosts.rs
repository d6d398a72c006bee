//! Hosts: one measurement on all of them, from the first word to the last, as each of them sees it.
//!
//! For: joining, letters in and out, and how it ends. Not for: how letters travel ([`super::post`], [`super::tree`]), nor how plans and runs
//! become one ([`super::settle`], [`super::agree`]), nor the merged session ([`super::whole`]).

use super::clock::{self, Reading};
use super::company;
use super::files;
use super::letter::{Envelope, Hello, Letter, Over, Planned};
use super::net::Net;
use super::post::{Order, Post, Shared};
use super::settle::settle;
use super::whole::Whole;
use crate::failure::Failure;
use crate::live::HostRow;
use model::machine::Machine;
use model::plan::Plan;
use model::record::Header;
use model::scaling::HostSteps;
use model::study::Study;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nice value of the thread that gives signs of life, where the kernel allows it: on a host without a CPU to spare it comes first.
const BEFORE_OTHERS: i32 = -10;
/// How often whoever waits for a letter looks whether it is over.
const LOOK: Duration = Duration::from_millis(2);
/// How often rank 0 looks for hosts whose storage does not answer while it waits for them.
const LOOK_FOR_HUNG: Duration = Duration::from_millis(100);
/// How long the post may take to leave together with the others.
const LEAVING: Duration = Duration::from_secs(5);
/// How long a letter takes that is on its way when the process ends, at most.
const FLUSH: Duration = Duration::from_millis(30);

/// All hosts, as one of them sees them.
pub struct Hosts {
    pub(super) rank: usize,
    pub(super) size: usize,
    /// Of all hosts, by rank.
    pub(super) names: Vec<String>,
    orders: Sender<Order>,
    pub(super) shared: Arc<Shared>,
    pub(super) state: Mutex<MeasurementState>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// What changes while it is measured.
pub(super) struct MeasurementState {
    letters: Receiver<(usize, Envelope)>,
    /// Letters that nobody has asked for yet, by rank.
    waiting: Vec<VecDeque<Envelope>>,
    /// The clocks at the last start, by rank.
    pub(super) readings: Vec<Option<Reading>>,
    /// Lateness of the phases of the run under way.
    pub(super) late_ns: Vec<Option<u64>>,
    /// Readings of the clocks before each of them.
    pub(super) before: Vec<Vec<Option<Reading>>>,
    /// How many hosts take part in which job, where not all do.
    pub(super) steps: Option<HostSteps>,
    /// Whether cells of a grid are measured.
    pub(super) is_sweep: bool,
    /// Runs of the own session that were agreed on.
    pub(super) agreed: usize,
    pub(super) machines: Vec<Machine>,
    /// The number of the kernel that each rank runs on; on rank 0.
    pub(super) kernels: Vec<Option<u32>>,
    /// What all hosts came to; on rank 0.
    pub(super) whole: Whole,
}

impl MeasurementState {
    /// What is asked of the plan while it is measured.
    fn follow(&mut self, plan: &Plan) {
        self.steps = if let Study::Hosts(steps) = &plan.study { Some(steps.clone()) } else { None };
        self.is_sweep = plan.study.grid().is_some();
    }

    /// Waits a moment for the next letter, and puts it to those of its rank.
    fn take_one(&mut self) -> Result<(), Failure> {
        match self.letters.recv_timeout(LOOK) {
            Ok((from, came)) => {
                if let Some(waiting) = self.waiting.get_mut(from) {
                    waiting.push_back(came);
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Refused("MPI ended before the measurement".into()))
            }
        }
    }
}

impl Hosts {
    /// Joins the others: starts the post, and learns the names of all.
    ///
    /// # Errors
    /// Where they do not fit together.
    pub(super) fn join(
        net: impl FnOnce() -> Result<Box<dyn Net>, String> + Send + 'static,
        (me, ranks_per_host): (Hello, u32),
    ) -> Result<Self, Failure> {
        let (orders, to_post) = channel();
        let (from_post, letters) = channel();
        let (tell, told) = channel();
        let shared = Arc::new(Shared::default());
        let of_post = Arc::clone(&shared);
        let post = move || match net() {
            Ok(net) => {
                // Others take a sign of life that comes late for silence. Who may not go first waits as everybody does.
                let _ = sys::thread::prefer(Some(BEFORE_OTHERS), None);
                let _ = tell.send(Ok((net.rank(), net.size())));
                Post::new(net, to_post, from_post, of_post).carry();
            }
            Err(why) => drop(tell.send(Err(why))),
        };
        let thread = std::thread::Builder::new().name("fathom-fleet".into()).spawn(post);
        let thread = thread.map_err(|e| Failure::Refused(format!("fathom cannot start a thread: {e}")))?;
        let ended = || Failure::Refused("the launcher's MPI ended before it had begun".into());
        let (rank, size) = told.recv().map_err(|_| ended())?.map_err(Failure::Refused)?;
        let state = MeasurementState {
            letters,
            waiting: (0..size).map(|_| VecDeque::new()).collect(),
            readings: Vec::new(),
            late_ns: Vec::new(),
            before: Vec::new(),
            steps: None,
            is_sweep: false,
            agreed: 0,
            machines: Vec::new(),
            kernels: Vec::new(),
            whole: Whole::default(),
        };
        let thread = Mutex::new(Some(thread));
        let mut hosts =
            Self { rank, size, names: Vec::new(), orders, shared, state: Mutex::new(state), thread };
        if size > 1 {
            hosts.names = hosts.meet(me, ranks_per_host)?;
        }
        Ok(hosts)
    }

    /// Learns the names of all hosts, by rank.
    fn meet(&self, me: Hello, ranks_per_host: u32) -> Result<Vec<String>, Failure> {
        if self.rank > 0 {
            self.send(0, Letter::Hello(me));
            return match self.hear(0)? {
                Letter::Welcome(names) => Ok(names),
                other => Err(self.misunderstood(0, &other)),
            };
        }
        let mut all = vec![me];
        for (rank, letter) in self.hear_each()? {
            match letter {
                Letter::Hello(hello) => all.push(hello),
                other => return Err(self.misunderstood(rank, &other)),
            }
        }
        match company::company(&all, ranks_per_host) {
            Ok(names) => {
                self.state().kernels = company::kernels(&all);
                self.send_each(|_| Letter::Welcome(names.clone()));
                Ok(names)
            }
            Err(why) => Err(self.end_all(Failure::Usage(why))),
        }
    }

    /// What this host is to measure, from what it planned on its own.
    ///
    /// # Errors
    /// Why there is nothing to measure, here or on another host.
    pub(super) fn settle(
        &self,
        planned: Result<(Plan, Machine), Failure>,
    ) -> Result<(Plan, Machine), Failure> {
        let (plan, machine) = planned.map_err(|failure| self.end_all(failure))?;
        let own = Planned { plan, machine };
        if self.rank > 0 {
            let mut machine = own.machine.clone();
            self.send(0, Letter::Planned(Box::new(own)));
            return match self.hear(0)? {
                Letter::Settled(plan) => {
                    self.state().follow(&plan);
                    files::places(&plan, &mut machine);
                    Ok((*plan, machine))
                }
                other => Err(self.misunderstood(0, &other)),
            };
        }
        let mut all = vec![own];
        for (rank, letter) in self.hear_each()? {
            match letter {
                Letter::Planned(planned) => all.push(*planned),
                other => return Err(self.misunderstood(rank, &other)),
            }
        }
        let neighbours = company::neighbours(&self.state().kernels);
        let settled =
            settle(&self.names, &neighbours, &all).map_err(|why| self.end_all(Failure::Usage(why)))?;
        self.send_each(|rank| Letter::Settled(Box::new(settled.plans[rank].clone())));
        let mut state = self.state();
        state.whole.differences.extend(settled.differences);
        settled.plans.first().into_iter().for_each(|plan| state.follow(plan));
        all.iter_mut().zip(&settled.plans).for_each(|(own, plan)| files::places(plan, &mut own.machine));
        state.machines = all.iter().map(|p| p.machine.clone()).collect();
        let machine = all.swap_remove(0).machine;
        Ok((settled.plans.into_iter().next().ok_or_else(nothing_settled)?, machine))
    }

    /// A session has begun here: rank 0 begins that of all.
    pub(super) fn begin(&self, header: &Header, name: &str, keep: bool) -> Result<(), Failure> {
        if self.rank > 0 {
            return Ok(());
        }
        let state = &mut *self.state();
        let mut header = header.clone();
        if !state.machines.is_empty() {
            // The place of a test file is better known once that is made.
            let own = header.hosts.first().cloned();
            header.hosts = own.into_iter().chain(state.machines.iter().skip(1).cloned()).collect();
        }
        state.whole.begin(header, name, keep)
    }

    /// Number of hosts that take part in a job: those of the first ranks.
    pub(super) fn taking_part(&self, job: usize) -> usize {
        self.state().steps.as_ref().map_or(self.size, |steps| steps.taking_part(job, self.size))
    }

    /// Rank 0: all clocks, read now.
    pub(super) fn clocks(&self) -> Vec<Option<Reading>> {
        let (answer, readings) = channel();
        self.order(Order::Clocks(answer));
        readings.recv().unwrap_or_default()
    }

    /// What this host says of why it is over, in words that name where.
    pub(super) fn over(&self) -> Option<String> {
        let (Over { rank, why, .. }, _) = self.shared.over()?;
        Some(format!("{} {why}", self.name(rank)))
    }

    pub(super) fn name(&self, rank: usize) -> String {
        self.names.get(rank).cloned().unwrap_or_else(|| format!("rank {rank}"))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, MeasurementState> {
        // Whoever panicked with it left values that are still true.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, order: Order) {
        // A post that has ended is noticed where an answer is waited for.
        let _ = self.orders.send(order);
    }

    pub(super) fn send(&self, to: usize, letter: Letter) {
        self.order(Order::Send(to, letter));
    }

    /// To all others.
    pub(super) fn send_each(&self, letter: impl Fn(usize) -> Letter) {
        (0..self.size).filter(|rank| *rank != self.rank).for_each(|rank| self.send(rank, letter(rank)));
    }

    /// The next letter of a rank.
    pub(super) fn hear(&self, rank: usize) -> Result<Letter, Failure> {
        self.hear_until(rank, None)
    }

    /// The next letter of a rank while hosts are still under load: how far they are, and whose storage does not answer, is told meanwhile.
    pub(super) fn hear_telling(&self, rank: usize, tell: &impl Fn(&[String])) -> Result<Letter, Failure> {
        loop {
            tell(&self.notice_hung());
            match self.hear_until(rank, Some(Instant::now() + LOOK_FOR_HUNG)) {
                Err(Failure::Interrupted) if self.shared.over().is_none() && !self.shared.is_stopped() => {}
                Err(Failure::Interrupted) if self.shared.over().is_some() => return Err(self.ended()),
                heard => return heard,
            }
        }
    }

    /// Rank 0: what is to be told of hosts whose storage does not answer while that of others does; each once.
    pub(super) fn notice_hung(&self) -> Vec<String> {
        if self.rank > 0 {
            return Vec::new();
        }
        self.shared.course().notice(|rank| self.name(rank), clock::now_ns())
    }

    /// Rank 0: a row of each host, as far as it has heard.
    pub(super) fn rows(&self) -> Vec<HostRow> {
        let lost = self.shared.over().filter(|(over, _)| over.code == 3).map(|(over, _)| over.rank);
        self.shared.course().rows(lost, |rank| self.name(rank), clock::now_ns())
    }

    /// The next letter of a rank; an error where none comes until then or, without such a time, before the measurement is over or stopped.
    pub(super) fn hear_until(&self, rank: usize, until: Option<Instant>) -> Result<Letter, Failure> {
        let mut state = self.state();
        loop {
            if let Some(came) = state.waiting.get_mut(rank).and_then(VecDeque::pop_front) {
                return self.opened(rank, &came);
            }
            self.shared.notice_silence();
            match (until, self.shared.over()) {
                (None, Some(_)) => return Err(self.ended()),
                (None, None) if self.shared.is_stopped() => return Err(Failure::Interrupted),
                (Some(until), _) if Instant::now() >= until => return Err(Failure::Interrupted),
                _ => {}
            }
            state.take_one()?;
        }
    }

    /// The next letter of any rank until then; `None` where none comes.
    pub(super) fn hear_any(&self, until: Instant) -> Option<(usize, Letter)> {
        let mut state = self.state();
        loop {
            let first = state
                .waiting
                .iter_mut()
                .enumerate()
                .find_map(|(rank, waiting)| Some((rank, waiting.pop_front()?)));
            if let Some((rank, came)) = first {
                // What cannot be read is as good as what does not come.
                return Some((rank, came.open().unwrap_or(Letter::Bye)));
            }
            if Instant::now() >= until || state.take_one().is_err() {
                return None;
            }
        }
    }

    fn opened(&self, rank: usize, came: &Envelope) -> Result<Letter, Failure> {
        came.open().map_err(|why| {
            self.shared.end(Over::not_understood(rank, &why));
            self.ended()
        })
    }

    /// The next letter of each other rank.
    pub(super) fn hear_each(&self) -> Result<Vec<(usize, Letter)>, Failure> {
        self.hear_first(self.size)
    }

    /// The next letter of each other rank below this one.
    pub(super) fn hear_first(&self, ranks: usize) -> Result<Vec<(usize, Letter)>, Failure> {
        (1..ranks).map(|rank| Ok((rank, self.hear(rank)?))).collect()
    }

    /// The failure of a measurement that is over: rank 0 tells it, and the others leave.
    pub(super) fn ended(&self) -> Failure {
        let Some((over, _)) = self.shared.over() else { return Failure::Interrupted };
        if self.rank > 0 {
            return Failure::Elsewhere(over.code);
        }
        let words = format!("{} {}", self.name(over.rank), over.why);
        match over.code {
            2 => Failure::Usage(words),
            _ => Failure::Refused(words),
        }
    }

    /// Tells all others that it is over because of a failure here.
    pub(super) fn end_all(&self, failure: Failure) -> Failure {
        match (&failure, self.shared.over()) {
            // What was stopped because of another host.
            (Failure::Interrupted, Some(_)) => return self.ended(),
            (Failure::Elsewhere(_), _) | (_, Some(_)) => return failure,
            _ => {}
        }
        let code = failure.code();
        let why = match &failure {
            Failure::Interrupted => "was interrupted".to_owned(),
            other => format!("cannot measure: {}", other.message()),
        };
        let over = Over { rank: self.rank, why, code, is_silence: false };
        self.shared.end(over.clone());
        if self.rank == 0 {
            self.send_each(|_| Letter::Over(over.clone()));
            failure
        } else {
            self.send(0, Letter::Over(over));
            Failure::Elsewhere(code)
        }
    }

    pub(super) fn misunderstood(&self, rank: usize, letter: &Letter) -> Failure {
        // Whoever ended it has left that step.
        if self.shared.over().is_some() {
            return self.ended();
        }
        let words = format!("{letter:?}");
        let what: String = words.chars().take_while(char::is_ascii_alphanumeric).collect();
        let why = format!(
            "{} is not at the same step as {}: it sent {what}",
            self.name(rank),
            self.name(self.rank)
        );
        self.end_all(Failure::Refused(why))
    }

    /// Leaves, together with the others where nobody was lost.
    pub(super) fn leave(&self) {
        if self.rank == 0 {
            self.send_each(|_| Letter::Bye);
        }
        if self.shared.over().is_some() {
            // MPI would wait for whoever is lost; the end of the process ends it too.
            std::thread::sleep(FLUSH);
            return;
        }
        self.order(Order::Leave);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let until = Instant::now() + LEAVING;
        while thread.as_ref().is_some_and(|t| !t.is_finished()) && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

fn nothing_settled() -> Failure {
    Failure::Refused("no plan was settled".into())
}
