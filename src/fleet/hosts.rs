//! Hosts: one measurement on all of them, from the first word to the last, as each of them sees it.
//!
//! For: what is said at each step, and what rank 0 makes of the answers. Not for: how letters travel ([`super::post`]), nor how plans and
//! runs become one ([`super::settle`], [`super::merge`]), nor the merged session ([`super::whole`]).

use super::clock::{self, Reading};
use super::company;
use super::files;
use super::letter::{Agreed, Hello, Letter, Over, Phase, Planned, Ran};
use super::merge;
use super::net::Net;
use super::post::{Order, Post, Shared};
use super::settle::settle;
use super::whole::Whole;
use crate::failure::Failure;
use analysis::strategy::Summary;
use model::fleet::RunSeen;
use model::machine::Machine;
use model::plan::Plan;
use model::record::disturbed::Disturbed;
use model::record::{Header, Interval, Run, RunEnding, RunStart};
use model::scaling::HostSteps;
use model::study::Study;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
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
    pub(super) state: Mutex<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What changes while it is measured.
pub(super) struct State {
    letters: Receiver<(usize, Letter)>,
    /// Letters that nobody has asked for yet, by rank.
    waiting: Vec<VecDeque<Letter>>,
    /// The clocks at the last start, by rank.
    pub(super) readings: Vec<Option<Reading>>,
    /// Lateness of the phases of the run under way.
    pub(super) late_ns: Vec<Option<u64>>,
    /// Readings of the clocks before each of them.
    pub(super) before: Vec<Vec<Option<Reading>>>,
    /// How many hosts take part in which job, where not all do.
    pub(super) steps: Option<HostSteps>,
    /// Runs of the own session that were agreed on.
    pub(super) agreed: usize,
    pub(super) machines: Vec<Machine>,
    /// The number of the kernel that each rank runs on; on rank 0.
    pub(super) kernels: Vec<Option<u32>>,
    /// What all hosts came to; on rank 0.
    pub(super) whole: Whole,
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
        let state = State {
            letters,
            waiting: (0..size).map(|_| VecDeque::new()).collect(),
            readings: Vec::new(),
            late_ns: Vec::new(),
            before: Vec::new(),
            steps: None,
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
                    self.state().steps = steps(&plan);
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
        state.steps = settled.plans.first().and_then(steps);
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

    /// What a run came to on all hosts, from what it came to here.
    pub(super) fn agree(
        &self,
        (runs, courses): (&[Run], &[Vec<Interval>]),
        own: &Summary,
        tell: impl Fn(&str),
    ) -> Result<Summary, Failure> {
        let by = own.disturbed.as_ref().map_or_else(Vec::new, |d| d.by.clone());
        let ran = self.ran(runs, courses, by);
        self.state().agreed += runs.len();
        // Whoever had no part in it waits for the others, and looks for their letters as seldom as they do.
        let is_idle = ran.phases.is_empty();
        self.shared.is_measuring.store(is_idle, Ordering::Relaxed);
        let agreed = if self.rank > 0 {
            self.send(0, Letter::Ran(Box::new(ran)));
            match self.hear(0)? {
                Letter::Agreed(agreed) => *agreed,
                other => return Err(self.misunderstood(0, &other)),
            }
        } else {
            self.all_agree(ran, own.attempt, tell)?
        };
        self.shared.is_measuring.store(false, Ordering::Relaxed);
        let Agreed { iops, latency, disturbed } = agreed;
        Ok(Summary { iops, latency: Arc::new(latency), disturbed, ..own.clone() })
    }

    /// Runs as they are sent.
    pub(super) fn ran(
        &self,
        runs: &[Run],
        courses: &[Vec<Interval>],
        disturbed: Vec<model::record::disturbed::Disturbance>,
    ) -> Ran {
        let state = self.state();
        let phase = |(at, run): (usize, &Run)| {
            Some(Phase {
                start: run.start.clone(),
                end: run.end.clone()?,
                course: courses.get(at).unwrap_or(&run.intervals).clone(),
                late_ns: state.late_ns.get(at).copied().flatten(),
            })
        };
        Ran { phases: runs.iter().enumerate().filter_map(phase).collect(), disturbed }
    }

    /// Number of hosts that take part in a job: those of the first ranks.
    pub(super) fn taking_part(&self, job: usize) -> usize {
        self.state().steps.as_ref().map_or(self.size, |steps| steps.taking_part(job, self.size))
    }

    /// Rank 0: merges what all came to, keeps it, and tells all.
    fn all_agree(&self, own: Ran, attempt: u32, tell: impl Fn(&str)) -> Result<Agreed, Failure> {
        let mut all = vec![own];
        let heard = (1..self.size).map(|rank| Ok((rank, self.hear_telling(rank, &tell)?)));
        for (rank, letter) in heard.collect::<Result<Vec<_>, Failure>>()? {
            match letter {
                Letter::Ran(ran) => all.push(*ran),
                other => return Err(self.misunderstood(rank, &other)),
            }
        }
        let after = self.clocks();
        let disturbed = merge::disturbed(attempt, all.iter().flat_map(|ran| &ran.disturbed));
        let agreed = self.keep(&all, &after, disturbed)?;
        self.send_each(|_| Letter::Agreed(Box::new(agreed.clone())));
        Ok(agreed)
    }

    /// Rank 0: keeps the phases of a run that all hosts have measured. Those of a host that was lost are missing.
    pub(super) fn keep(
        &self,
        all: &[Ran],
        after: &[Option<Reading>],
        disturbed: Option<Disturbed>,
    ) -> Result<Agreed, Failure> {
        let phases = all.iter().map(|ran| ran.phases.len()).max().unwrap_or(0);
        let job = all.iter().find_map(|ran| Some(ran.phases.first()?.start.job));
        let taking_part = job.map_or(self.size, |job| self.taking_part(job));
        let all = &all[..taking_part.min(all.len())];
        let state = &mut *self.state();
        let mut ends = Vec::new();
        for at in 0..phases {
            let named = self.names.iter().map(String::as_str).zip(all);
            let of_all: Vec<(&str, &Phase)> =
                named.filter_map(|(name, ran)| Some((name, ran.phases.get(at)?))).collect();
            let Some(mut merged) = merge::merge(&of_all) else { continue };
            if of_all.len() < taking_part && merged.end.ending == RunEnding::Complete {
                merged.end.ending = RunEnding::Interrupted;
            }
            let late = all.iter().map(|ran| ran.phases.get(at).and_then(|p| p.late_ns)).collect::<Vec<_>>();
            let RunStart { job, phase, repeat, attempt, .. } = merged.start;
            let before = state.before.get(at).map_or(&[][..], Vec::as_slice);
            state.whole.runs.push(RunSeen {
                which: [job as u32, phase as u32, repeat, attempt],
                common_ns: merged.common_ns,
                longest_ns: merged.longest_ns,
                ..merge::began(&late, before, after)
            });
            ends.push(merged.end.clone());
            state.whole.append(merged.start, merged.end)?;
        }
        if let Some(disturbed) = &disturbed {
            state.whole.append_disturbed(disturbed)?;
        }
        let iops = analysis::strategy::rate(ends.iter());
        Ok(Agreed { iops, latency: merge::latencies(ends.iter()), disturbed })
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

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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

    /// The same while hosts are still under load: those whose storage does not answer are told of meanwhile.
    fn hear_telling(&self, rank: usize, tell: &impl Fn(&str)) -> Result<Letter, Failure> {
        loop {
            self.notice_hung().iter().for_each(|words| tell(words));
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

    /// The same; where there is a time to wait until, that counts, and not whether it is over.
    pub(super) fn hear_until(&self, rank: usize, until: Option<Instant>) -> Result<Letter, Failure> {
        let mut state = self.state();
        loop {
            if let Some(letter) = state.waiting.get_mut(rank).and_then(VecDeque::pop_front) {
                return Ok(letter);
            }
            self.shared.notice_silence();
            match (until, self.shared.over()) {
                (None, Some(_)) => return Err(self.ended()),
                (None, None) if self.shared.is_stopped() => return Err(Failure::Interrupted),
                (Some(until), _) if Instant::now() >= until => return Err(Failure::Interrupted),
                _ => {}
            }
            match state.letters.recv_timeout(LOOK) {
                Ok((from, letter)) => {
                    if let Some(waiting) = state.waiting.get_mut(from) {
                        waiting.push_back(letter);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Refused("MPI ended before the measurement".into()));
                }
            }
        }
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
            other => format!("cannot measure: {}", other.words()),
        };
        let over = Over { rank: self.rank, why, code };
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

/// How many hosts take part in which job, by a plan.
fn steps(plan: &Plan) -> Option<HostSteps> {
    if let Study::Hosts(steps) = &plan.study { Some(steps.clone()) } else { None }
}

fn nothing_settled() -> Failure {
    Failure::Refused("no plan was settled".into())
}
