//! The search over a grid: which cell to measure next, and which one wins.
//!
//! For: a pure fold over what was measured so far, so that replaying it resumes a sweep and judges a record alike. Not for:
//! measuring, nor for the report of it (`crate::sweep`).
//!
//! Cells of one work race. Every cell is measured once (or as often as an exhaustive search says) in random order. Then, in an
//! adaptive search, always the leader or the cell that may beat it by most is measured again, whichever is known worse: the
//! algorithm LUCB of Kalyanakrishnan et al. (ICML 2012) with bounds from the spread of repeats on logarithms. A race is closed
//! when surely no cell is more than 3 % faster than the leader, or when the time is up. What is printed of the winner is
//! measured afterwards: the best of many noisy figures is too good, and fresh runs are not.

use crate::student;
use model::histogram::Histogram;
use model::job::{Job, Kind, Stream};
use model::payload::split_mix;
use model::record::attempts::{self, Attempt};
use model::record::{Record, Run, RunEnd, RunEnding};
use model::sweep::{Grid, SAME, Search as How, Setting};

/// Runs of a winner after it has won, and of whatever it is held against: enough for an interval worth printing.
pub const FRESH: usize = 5;
/// Every so many runs of a work one more is of its reference cell.
pub const REFERENCE_EVERY: usize = 12;
/// Cheaper cells that are tried against a winner, the cheapest first.
const CHEAPER: usize = 3;
/// Runs without which no cell wins: what was seen once may have been lucky once.
const TWICE: usize = 2;
/// Share of the winner's CPU time below which a cell of the same memory is cheaper.
const LESS_CPU: f64 = 0.9;
/// What is supposed of the spread of a cell's runs before any was repeated, and how many repeats that counts for.
const SUPPOSED: (f64, f64) = (0.05, 2.0);
/// Chance at which a cell that is faster than the leader is given up wrongly: one side, once.
const WRONGLY: f64 = 0.01;
/// Degrees of freedom without which nobody knows by how much runs of one cell differ: five runs of one cell have these.
pub const FEWEST_REPEATS: usize = 4;

/// One run of one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Index of its job.
    pub job: usize,
    /// Bytes per second; `None` where the run failed or moved nothing.
    pub bytes_per_s: Option<f64>,
    /// Bytes of a mean operation.
    pub bytes_per_operation: Option<f64>,
    /// CPU time of the workers per byte in ns.
    pub cpu_ns_per_byte: Option<f64>,
    /// Mean and longest latency within the window in ns; `None` where nothing completed there.
    pub latency_ns: Option<(f64, u64)>,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time that it took with everything around it, in ns.
    pub took_ns: u64,
}

impl Sample {
    /// What a run gave: all that was handed over by the time until the last of it completed, the soft limit of CCSIO. So
    /// large operations on slow storage have a rate too, and none is cut at the end of a window. Writes that went to memory
    /// count until the final sync has made them stable.
    pub fn of(index: usize, job: &Job, end: &RunEnd, took_ns: u64) -> Self {
        let streams = || job.phases.iter().flat_map(|p| &p.streams);
        let issued =
            || end.streams.iter().flat_map(|s| s.issued.iter()).filter(|(kind, _)| **kind != Kind::Sync);
        let moved: f64 = issued().map(|(_, i)| i.bytes as f64).sum();
        let operations: f64 = issued().map(|(_, i)| i.ops as f64).sum();
        let wall = end.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
        let waits = streams().any(is_late);
        // Without that sync nobody knows when the bytes were there.
        let sync = if waits { end.sync_ns } else { Some(0) };
        let seconds = sync.map(|sync| (wall as f64 + sync as f64) / 1e9);
        let whole = end.ending == RunEnding::Complete && moved > 0.0;
        let cpu: f64 = end.workers.iter().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
        Self {
            job: index,
            bytes_per_s: seconds.filter(|s| whole && *s > 0.0).map(|s| moved / s),
            bytes_per_operation: (whole && operations > 0.0).then(|| moved / operations),
            cpu_ns_per_byte: (whole && cpu > 0.0).then(|| cpu / moved),
            latency_ns: latency(end).filter(|_| whole),
            written_bytes: end
                .streams
                .iter()
                .filter_map(|s| s.issued.get(&Kind::Write))
                .map(|i| i.bytes)
                .sum(),
            took_ns,
        }
    }
}

/// The runs of a record that count, in the order of happening; what was interrupted is none.
pub fn samples(record: &Record) -> Vec<Sample> {
    timed(&tries(record))
}

/// One measurement of a cell, which others may have disturbed.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// Which attempt at which run it was.
    pub attempt: Attempt,
    /// What it gave.
    sample: Sample,
    /// When it ended, in ns since the session began.
    until_ns: u64,
}

impl Try {
    /// What a run gave.
    pub fn of(attempt: Attempt, job: &Job, end: &RunEnd) -> Self {
        let wall = end.workers.iter().map(|w| w.wall_ns).max().unwrap_or(0);
        let alone = wall.saturating_add(end.sync_ns.unwrap_or(0));
        Self { attempt, sample: Sample::of(attempt.job, job, end, alone), until_ns: end.at_ns }
    }
}

/// All runs of a record, whether they count or not, in the order of happening; what was interrupted is none.
pub fn tries(record: &Record) -> Vec<Try> {
    let of = |run: &Run| {
        let end = run.end.as_ref().filter(|e| e.ending != RunEnding::Interrupted)?;
        Some(Try::of(run.attempt(), record.header.plan.jobs.get(run.start.job)?, end))
    };
    record.measured().into_iter().filter_map(of).collect()
}

/// The samples that count, each with the time from the one before: what was left out took time too. The first one took what it
/// took itself.
pub(super) fn timed(tries: &[Try]) -> Vec<Sample> {
    let attempts: Vec<Attempt> = tries.iter().map(|t| t.attempt).collect();
    let mut before = None;
    let counting = tries.iter().zip(attempts::counting(&attempts, false)).filter(|(_, counts)| *counts);
    let sample = |(one, _): (&Try, bool)| {
        let took_ns = before.map_or(one.sample.took_ns, |b| one.until_ns.saturating_sub(b));
        before = Some(one.until_ns);
        Sample { took_ns, ..one.sample }
    };
    counting.map(sample).collect()
}

/// Mean and longest latency of all operations but syncs.
fn latency(end: &RunEnd) -> Option<(f64, u64)> {
    let mut all = Histogram::new();
    let kinds = end.streams.iter().flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync);
    kinds.for_each(|(_, k)| all.merge(&k.latency));
    all.mean_ns().zip(all.max_ns())
}

/// Whether completed writes of a stream may still be in memory alone.
fn is_late(stream: &Stream) -> bool {
    stream.access.writes() && !stream.cache.is_direct() && !stream.cache.is_sync()
}

/// What one cell gave so far.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Index of its job.
    pub job: usize,
    /// Bytes of its buffers.
    memory: u64,
    /// Logarithms of its rates while the race was open.
    pub logs: Vec<f64>,
    /// Those after it was closed.
    pub fresh: Vec<f64>,
    /// Bytes of a mean operation in the runs of `logs` and `fresh` each: an access specification draws its sizes.
    drawn: [Vec<f64>; 2],
    /// CPU times per byte of all its runs.
    cpu: Vec<f64>,
    /// A run of it failed, and it is out.
    failed: bool,
}

/// The cells of one work.
#[derive(Clone, Debug)]
pub struct Race {
    /// The work.
    pub work: String,
    /// Its cells.
    pub lanes: Vec<Lane>,
    /// Settings of well-known programs, which are measured when the race is closed.
    pub yardsticks: Vec<Lane>,
    /// How it was decided; `None` while it is open.
    pub closed: Option<Closed>,
}

/// How a race was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Index of the winning lane; `None` where every cell failed.
    pub winner: Option<usize>,
    /// Cheaper lanes that may be as fast, the cheapest first.
    cheaper: Vec<usize>,
}

/// Lanes that cannot be told from the winner, by all of its runs, those that most may beat it first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rivals {
    /// Indices of the lanes that may be faster.
    pub within_noise: Vec<usize>,
    /// How many of them, from the first on, may be more than 3 % faster.
    pub open: usize,
}

/// The search as far as it came.
#[derive(Debug)]
pub struct Search<'g> {
    grid: &'g Grid,
    /// Times each cell is measured by an exhaustive search.
    runs: usize,
    seed: u64,
    /// One per work, in the order of the grid.
    pub races: Vec<Race>,
    done: usize,
    spent_ns: u64,
}

impl<'g> Search<'g> {
    /// A search of which nothing is done.
    pub fn new(grid: &'g Grid, runs: u32, seed: u64) -> Self {
        let lane = |job: usize| {
            let memory = grid.setting(job).map_or(u64::MAX, Setting::memory_bytes);
            Lane { job, memory, ..Lane::default() }
        };
        let race = |work: String| Race {
            lanes: grid.jobs_of(&work).into_iter().map(lane).collect(),
            yardsticks: grid
                .yardsticks
                .iter()
                .filter(|y| y.setting.work() == work)
                .map(|y| lane(y.job))
                .collect(),
            closed: None,
            work,
        };
        let races = grid.works().into_iter().map(race).collect();
        Self { grid, runs: runs.max(1) as usize, seed, races, done: 0, spent_ns: 0 }
    }

    /// The search after these runs.
    pub fn after(grid: &'g Grid, runs: u32, seed: u64, samples: &[Sample]) -> Self {
        let mut search = Self::new(grid, runs, seed);
        for sample in samples {
            search.take(sample);
        }
        search
    }

    /// Takes a run in.
    pub fn take(&mut self, sample: &Sample) {
        self.done += 1;
        self.spent_ns = self.spent_ns.saturating_add(sample.took_ns);
        for race in &mut self.races {
            let closed = race.closed.is_some();
            let lanes = race.lanes.iter_mut().chain(&mut race.yardsticks);
            if let Some(lane) = lanes.into_iter().find(|l| l.job == sample.job) {
                lane.take(sample, closed);
            }
        }
        for at in 0..self.races.len() {
            if self.races[at].closed.is_none() {
                self.races[at].closed = self.closing(at);
            }
        }
    }

    /// The job to measure next; `None` where nothing is left.
    pub fn next(&self) -> Option<usize> {
        let pick = self.unseen().or_else(|| self.undecided()).or_else(|| self.unproven())?;
        Some(self.due_reference().unwrap_or(pick))
    }

    /// The reference cell of the first work, by which it is seen whether the target changes.
    pub fn reference(&self) -> Option<usize> {
        self.reference_of(self.races.first()?)
    }

    /// A reference cell whose turn it is: each work has its own, since writes repeat themselves less well than reads.
    fn due_reference(&self) -> Option<usize> {
        let due = |race: &Race| {
            let job = self.reference_of(race)?;
            let extra = self.times(job).checked_sub(self.least())?;
            (extra < race.tries() / REFERENCE_EVERY).then_some(job)
        };
        self.races.iter().find_map(due)
    }

    /// The cell of a work that is measured again and again: the one in the middle of the first way through it.
    fn reference_of(&self, race: &Race) -> Option<usize> {
        let lanes = &race.lanes;
        let way = |lane: &Lane| self.grid.setting(lane.job).map(Setting::way);
        let sound = || lanes.iter().filter(|l| !l.failed);
        let first = way(sound().next()?);
        let alike: Vec<&Lane> = sound().filter(|l| way(l) == first).collect();
        alike.get(alike.len() / 2).map(|l| l.job)
    }

    /// How often a job was measured.
    pub fn times(&self, job: usize) -> usize {
        self.lanes().filter(|l| l.job == job).map(Lane::tries).sum()
    }

    /// ns that a run takes with everything around it, where that was never measured yet so long.
    pub(super) fn each_ns(&self, run_ns: u64) -> u64 {
        self.spent_ns.checked_div(self.done as u64).unwrap_or(run_ns)
    }

    /// ns that are left, where a run takes so long that was never measured yet.
    pub fn left_ns(&self, run_ns: u64) -> u64 {
        let each = self.each_ns(run_ns);
        let finals = self.races.iter().map(Race::finals).sum::<usize>() as u64;
        match self.grid.search {
            How::Adaptive { budget_ns } => budget_ns.saturating_sub(self.spent_ns).max(each),
            // Cells in order are another fold's ([`super::in_order`]); were they this one's, each would be measured so often.
            How::Exhaustive | How::InOrder(_) => {
                let cells = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed);
                let open: usize = cells.map(|l| self.runs.saturating_sub(l.tries())).sum();
                (open as u64 + finals).saturating_mul(each)
            }
        }
    }

    /// Whether the round of a run is over, so that it may be measured again; once the time is up it is not.
    pub fn may_repeat(&self, repeat: u32) -> bool {
        !self.time_is_up() && self.unseen().is_none_or(|job| self.times(job) as u32 > repeat)
    }

    /// Runs that every cell gets and has not yet.
    pub(super) fn to_come(&self) -> usize {
        let cells = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed);
        cells.map(|l| self.least().saturating_sub(l.tries())).sum()
    }

    /// Where it is, in words.
    pub fn stage(&self) -> String {
        let runs = if self.grid.search == How::Exhaustive { self.runs } else { 1 };
        let cells = || self.races.iter().flat_map(|r| &r.lanes);
        let seen: usize = cells().map(|l| l.tries().min(runs)).sum();
        let all = cells().count() * runs;
        if self.unseen().is_some() {
            return format!("cell {} of {all}", seen + 1);
        }
        match self.races.iter().filter(|r| r.closed.is_none()).count() {
            0 => "the winners once more".into(),
            _ => format!("choosing among {all} cells"),
        }
    }

    /// ns spent.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.races.iter().flat_map(|r| r.lanes.iter().chain(&r.yardsticks))
    }

    /// Runs that every cell gets.
    fn least(&self) -> usize {
        if self.grid.search == How::Exhaustive { self.runs } else { 1 }
    }

    /// A cell that was not measured as often as every cell is, in an order drawn anew for each round.
    fn unseen(&self) -> Option<usize> {
        let cells: Vec<&Lane> = self.races.iter().flat_map(|r| &r.lanes).filter(|l| !l.failed).collect();
        (0..self.least()).find_map(|round| {
            let open = cells.iter().filter(|l| l.tries() <= round);
            open.map(|l| l.job).min_by_key(|job| split_mix(self.seed ^ split_mix((round << 32 | job) as u64)))
        })
    }

    /// The cell that says most about the open race that was given least.
    fn undecided(&self) -> Option<usize> {
        let race = self.races.iter().filter(|r| r.closed.is_none()).min_by_key(|r| r.tries())?;
        let (leader, challenger, _) =
            race.contest().or_else(|| Some((race.leader()?, race.leader()?, 0.0)))?;
        if race.lanes[leader].logs.len() < TWICE {
            return Some(race.lanes[leader].job);
        }
        let spread = Spread::supposed(&race.lanes);
        let unsure = |at: usize| spread.of_mean(&race.lanes[at].logs);
        let at = if unsure(leader) > unsure(challenger) { leader } else { challenger };
        Some(race.lanes[at].job)
    }

    /// Among what is measured when races are closed, the cell that has least of it; ties are drawn.
    fn unproven(&self) -> Option<usize> {
        let mut wanted: Vec<(usize, u64, usize)> = Vec::new();
        for race in &self.races {
            for (lane, want) in race.wanted(self.time_is_up()) {
                if lane.fresh.len() < want && !lane.failed {
                    let begun = (lane.fresh.len() + FRESH).saturating_sub(want);
                    let draw = split_mix(self.seed ^ split_mix((self.done << 32 | lane.job) as u64));
                    wanted.push((begun, draw, lane.job));
                }
            }
        }
        wanted.into_iter().min().map(|(.., job)| job)
    }

    fn time_is_up(&self) -> bool {
        matches!(self.grid.search, How::Adaptive { budget_ns } if self.spent_ns >= budget_ns)
    }

    /// How a race is decided by now; `None` where it is not.
    fn closing(&self, at: usize) -> Option<Closed> {
        let race = &self.races[at];
        let sound = || race.lanes.iter().filter(|l| !l.failed);
        if sound().any(|l| l.logs.len() < self.least()) {
            return None;
        }
        let over = match self.grid.search {
            How::Exhaustive | How::InOrder(_) => true,
            How::Adaptive { budget_ns } => self.spent_ns.saturating_add(self.reserve_ns()) >= budget_ns,
        };
        (over || race.is_decided()).then(|| race.close())
    }

    /// What measuring the winners once more will take.
    fn reserve_ns(&self) -> u64 {
        let each = self.spent_ns / self.done.max(1) as u64;
        let finals: usize = self.races.iter().map(|r| FRESH * (2 + r.yardsticks.len())).sum();
        each.saturating_mul(finals as u64)
    }
}

impl Lane {
    fn take(&mut self, sample: &Sample, closed: bool) {
        match sample.bytes_per_s.map(f64::ln).filter(|l| l.is_finite()) {
            Some(log) if closed => self.fresh.push(log),
            Some(log) => self.logs.push(log),
            None => self.failed = true,
        }
        self.drawn[usize::from(closed)].extend(sample.bytes_per_operation.filter(|b| *b > 0.0));
        self.cpu.extend(sample.cpu_ns_per_byte.filter(|c| c.is_finite()));
    }

    fn tries(&self) -> usize {
        self.logs.len() + self.fresh.len() + usize::from(self.failed)
    }

    fn mean(&self) -> f64 {
        mean(&self.logs)
    }

    /// The runs that its figures are told by: fresh ones where it has them all, since it was not chosen for those.
    pub fn told_by(&self) -> &[f64] {
        if self.is_told_by_fresh() { &self.fresh } else { &self.logs }
    }

    fn is_told_by_fresh(&self) -> bool {
        self.fresh.len() >= FRESH || self.logs.is_empty()
    }

    /// Bytes of a mean operation in those runs; `None` where none of them has one.
    pub fn bytes_per_operation(&self) -> Option<f64> {
        let drawn = &self.drawn[usize::from(self.is_told_by_fresh())];
        (!drawn.is_empty()).then(|| mean(drawn))
    }

    /// Mean CPU time per byte in ns; `None` where no run says.
    pub fn cpu_ns_per_byte(&self) -> Option<f64> {
        (!self.cpu.is_empty()).then(|| mean(&self.cpu))
    }

    fn cpu_or_worst(&self) -> f64 {
        self.cpu_ns_per_byte().unwrap_or(f64::INFINITY)
    }
}

impl Race {
    fn tries(&self) -> usize {
        self.lanes.iter().map(Lane::tries).sum()
    }

    /// Lanes that have a rate, with their indices.
    fn running(&self) -> impl Iterator<Item = (usize, &Lane)> {
        self.lanes.iter().enumerate().filter(|(_, l)| !l.failed && !l.logs.is_empty())
    }

    fn leader(&self) -> Option<usize> {
        self.running().max_by(|a, b| a.1.mean().total_cmp(&b.1.mean())).map(|(at, _)| at)
    }

    /// By how much each other lane may at most be faster than one, as a logarithm. Of that one all runs count: those that
    /// chose it alone would flatter it.
    fn gaps(&self, leader: usize, spread: &Spread) -> Vec<(usize, f64)> {
        let best = [self.lanes[leader].logs.as_slice(), &self.lanes[leader].fresh].concat();
        let gap = |lane: &Lane| {
            let error = (spread.of_mean(&lane.logs) + spread.of_mean(&best)).sqrt();
            lane.mean() - mean(&best) + spread.factor * error
        };
        self.running().filter(|(at, _)| *at != leader).map(|(at, lane)| (at, gap(lane))).collect()
    }

    /// The leader, the lane that may beat it by most, and by how much; `None` where there are no two.
    fn contest(&self) -> Option<(usize, usize, f64)> {
        let leader = self.leader()?;
        let (at, gap) = self
            .gaps(leader, &Spread::supposed(&self.lanes))
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((leader, at, gap))
    }

    /// Whether surely no lane is more than 3 % faster than the leader, or none is left that could be.
    fn is_decided(&self) -> bool {
        let Some(leader) = self.leader() else { return true };
        let nearest = self.contest().map_or(f64::NEG_INFINITY, |(.., gap)| gap);
        self.lanes[leader].logs.len() >= TWICE && nearest <= SAME.ln_1p()
    }

    /// Any cell may win, also one that was measured once: its fresh runs tell whether it was only lucky.
    fn close(&self) -> Closed {
        let winner = self.leader();
        Closed { winner, cheaper: winner.map_or_else(Vec::new, |w| self.cheaper(w)) }
    }

    /// The cells that may be as fast as the winner, now that it has fresh runs too; `None` before it was chosen.
    pub fn rivals(&self) -> Option<Rivals> {
        let winner = self.closed.as_ref()?.winner?;
        let mut gaps = self.gaps(winner, &self.noise());
        gaps.retain(|(_, gap)| *gap > 0.0);
        gaps.sort_by(|a, b| b.1.total_cmp(&a.1));
        let open = gaps.iter().take_while(|(_, gap)| *gap > SAME.ln_1p()).count();
        Some(Rivals { within_noise: gaps.into_iter().map(|(at, _)| at).collect(), open })
    }

    /// What it is judged by: what was seen, or where that is too little what is supposed.
    fn noise(&self) -> Spread {
        if self.knows_its_noise() { Spread::seen(&self.lanes) } else { Spread::supposed(&self.lanes) }
    }

    /// Whether enough runs repeat one another to know by how much runs of one cell differ.
    pub fn knows_its_noise(&self) -> bool {
        repeats(&self.lanes).1 >= FEWEST_REPEATS as f64
    }

    /// Lanes that cost less than one and look as fast, the cheapest first.
    fn cheaper(&self, winner: usize) -> Vec<usize> {
        let best = &self.lanes[winner];
        let costs_less = |l: &Lane| {
            l.memory < best.memory
                || (l.memory == best.memory && l.cpu_or_worst() < LESS_CPU * best.cpu_or_worst())
        };
        let near = |l: &Lane| l.mean() >= best.mean() + (1.0 - SAME).ln();
        let mut all: Vec<(usize, &Lane)> = self.running().filter(|(_, l)| costs_less(l) && near(l)).collect();
        all.sort_by(|a, b| a.1.cost().partial_cmp(&b.1.cost()).unwrap_or(std::cmp::Ordering::Equal));
        all.into_iter().take(CHEAPER).map(|(at, _)| at).collect()
    }

    /// By how much runs of one cell differ: the standard deviation of their logarithms, of all cells together; `None` where no
    /// cell was repeated.
    pub fn spread(&self) -> Option<f64> {
        let (squares, degrees) = repeats(&self.lanes);
        (degrees > 0.0).then(|| (squares / degrees).sqrt())
    }

    /// The winner.
    pub fn winner(&self) -> Option<&Lane> {
        self.lanes.get(self.closed.as_ref()?.winner?)
    }

    /// By which factor the winner's fresh runs fell behind those that chose it, as a logarithm, where that is more than 3 % and
    /// more than the luck by which it was chosen: then the target changed. `None` otherwise.
    pub fn fall(&self) -> Option<f64> {
        let winner = self.winner().filter(|w| w.fresh.len() >= FRESH)?;
        let spread = self.noise();
        // The luckiest of all cells was chosen, so it may well fall back as far as the luckiest of so many does.
        let factor = spread.factor_of(self.lanes.len());
        let luck = factor * (spread.of_mean(&winner.logs) + spread.of_mean(&winner.fresh)).sqrt();
        let shift = mean(&winner.fresh) - winner.mean();
        (shift < (1.0 - SAME).ln() && shift < -luck).then_some(shift)
    }

    /// The first cheaper lane that held, once it was measured beside the winner; else the winner. `None` without one.
    pub fn cheapest(&self) -> Option<&Lane> {
        let winner = self.winner()?;
        let cheaper = self.closed.as_ref()?.cheaper.iter().filter_map(|at| self.lanes.get(*at));
        Some(cheaper.take_while(|l| l.is_tried()).find(|l| l.holds_against(winner)).unwrap_or(winner))
    }

    /// Lanes that are measured after the race, with how many fresh runs each has to have.
    fn wanted(&self, time_is_up: bool) -> Vec<(&Lane, usize)> {
        let Some((closed, winner)) = self.closed.as_ref().zip(self.winner()) else { return Vec::new() };
        let mut out: Vec<(&Lane, usize)> = self.yardsticks.iter().map(|y| (y, FRESH)).collect();
        let cheaper = closed.cheaper.iter().filter_map(|at| self.lanes.get(*at)).enumerate();
        // One cheaper cell after another, each with fresh runs of the winner beside it.
        let trying = cheaper.take_while(|(at, _)| *at == 0 || !time_is_up);
        let mut rounds = 1;
        for (at, lane) in trying {
            if !lane.is_tried() {
                out.push((lane, FRESH));
            }
            rounds = at + 1;
            if !lane.is_tried() || lane.holds_against(winner) {
                break;
            }
        }
        out.push((winner, FRESH * rounds));
        out
    }

    /// Runs that are left after the race, as far as that is known.
    fn finals(&self) -> usize {
        if self.closed.is_none() {
            return FRESH * (2 + self.yardsticks.len());
        }
        self.wanted(true).iter().map(|(l, want)| want.saturating_sub(l.fresh.len())).sum()
    }
}

impl Lane {
    fn cost(&self) -> (u64, f64) {
        (self.memory, self.cpu_or_worst())
    }

    /// Whether it has all its fresh runs, or will never have them.
    fn is_tried(&self) -> bool {
        self.failed || self.fresh.len() >= FRESH
    }

    /// Whether its fresh runs are no more than 3 % behind those of the winner.
    fn holds_against(&self, winner: &Self) -> bool {
        !self.failed && mean(&self.fresh) >= mean(&winner.fresh) + (1.0 - SAME).ln()
    }
}

/// How much runs of one cell differ.
struct Spread {
    /// Variance of a logarithm, of all cells together, and how many repeats were free to differ.
    pooled: f64,
    degrees: f64,
    /// Student's factor for one side.
    factor: f64,
}

impl Spread {
    /// With a guess that repeats correct: for the choice of what to measure next, from the first run on.
    fn supposed(lanes: &[Lane]) -> Self {
        let (squares, degrees) = repeats(lanes);
        let (deviation, weight) = SUPPOSED;
        Self::of(weight * deviation * deviation + squares, weight + degrees)
    }

    /// By what repeats say alone: for what is concluded.
    fn seen(lanes: &[Lane]) -> Self {
        let (squares, degrees) = repeats(lanes);
        Self::of(squares, degrees)
    }

    fn of(squares: f64, degrees: f64) -> Self {
        let spread = Self { pooled: squares / degrees, degrees, factor: f64::INFINITY };
        Self { factor: spread.factor_of(1), ..spread }
    }

    /// Student's factor for one side, where so many cells had the chance.
    fn factor_of(&self, cells: usize) -> f64 {
        let rank = 1.0 - WRONGLY / cells.max(1) as f64;
        student::quantile(rank, self.degrees).unwrap_or(f64::INFINITY)
    }

    /// Variance of the mean of a cell's runs: their own spread counts as far as it has repeats, that of all cells for the rest.
    fn of_mean(&self, runs: &[f64]) -> f64 {
        let n = runs.len().max(1) as f64;
        let own = (SUPPOSED.1 * self.pooled + squares(runs)) / (SUPPOSED.1 + n - 1.0);
        own / n
    }
}

/// Squares of what runs differ from the mean of their cell, and how many of them are free to. Runs that chose a winner and those
/// after it are held against means of their own: the first are flattered by the choice.
fn repeats(lanes: &[Lane]) -> (f64, f64) {
    let groups = || lanes.iter().flat_map(|l| [l.logs.as_slice(), &l.fresh]).filter(|g| g.len() > 1);
    (groups().map(squares).sum(), groups().map(|g| g.len() - 1).sum::<usize>() as f64)
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NEG_INFINITY } else { values.iter().sum::<f64>() / values.len() as f64 }
}

fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum()
}

#[cfg(test)]
mod tests;
