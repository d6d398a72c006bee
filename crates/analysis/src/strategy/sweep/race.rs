//! A race: the cells of one work compared with each other.
//!
//! For: what their runs say, which one wins, and which cannot be told from it. Not for: whose turn it is (`super`).

use super::super::sample::Sample;
use model::measure::Measure;
use model::sweep::SAME;
use stats::student;

/// What is supposed of the noise of a cell's runs before any was repeated, and how many repeats that counts for.
const SUPPOSED: (f64, f64) = (0.05, 2.0);
/// Chance at which a cell that is faster than the leader is given up wrongly: one side, once.
const WRONGLY: f64 = 0.01;
/// Cheaper cells that are tried against a winner, the cheapest first.
const CHEAPER: usize = 3;
/// Runs without which no cell wins: what was seen once may have been lucky once.
pub(super) const TWICE: usize = 2;
/// Share of the winner's CPU time below which a cell of the same memory is cheaper.
const LESS_CPU: f64 = 0.9;
/// Runs of a winner after it has won, and of whatever it is compared with: enough for an interval worth printing.
pub const FRESH: usize = 5;
/// Degrees of freedom without which nobody knows by how much runs of one cell differ: five runs of one cell have these.
pub const FEWEST_REPEATS: usize = 4;

/// What one cell gave so far.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Index of its job.
    pub job: usize,
    /// Bytes of its buffers.
    pub(super) memory: u64,
    /// What its runs are ranked by.
    by: Measure,
    /// Scores of its runs while the race was open: logarithms, the better the higher.
    pub logs: Vec<f64>,
    /// Those after it was closed.
    pub fresh: Vec<f64>,
    /// The runs of `logs` and of `fresh`.
    runs: [Vec<Sample>; 2],
    /// A run of it failed, and it is out.
    pub(super) failed: bool,
}

/// The cells of one work.
#[derive(Clone, Debug)]
pub struct Race {
    /// What its cells have in common and do, as [`Setting::work`](model::sweep::Setting::work) says it.
    pub work: String,
    /// What its cells are ranked by.
    pub by: Measure,
    /// Its cells.
    pub lanes: Vec<Lane>,
    /// Settings of well-known programs, which are measured when the race is closed.
    pub baselines: Vec<Lane>,
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

impl Lane {
    /// A cell of which nothing was measured.
    pub(super) fn new(job: usize, memory: u64, by: Measure) -> Self {
        Self { job, memory, by, ..Self::default() }
    }

    pub(super) fn take(&mut self, sample: &Sample, closed: bool) {
        let Some(score) = sample.score(self.by) else {
            self.failed = true;
            return;
        };
        let scores = if closed { &mut self.fresh } else { &mut self.logs };
        scores.push(score);
        self.runs[usize::from(closed)].push(*sample);
    }

    pub(super) fn tries(&self) -> usize {
        self.logs.len() + self.fresh.len() + usize::from(self.failed)
    }

    fn mean(&self) -> f64 {
        mean(&self.logs)
    }

    /// Scores of the runs that its figures are told by: fresh ones where it has them all, since it was not chosen for those.
    pub fn told_by(&self) -> &[f64] {
        if self.is_told_by_fresh() { &self.fresh } else { &self.logs }
    }

    fn is_told_by_fresh(&self) -> bool {
        self.fresh.len() >= FRESH || self.logs.is_empty()
    }

    /// What its runs are ranked by.
    pub fn by(&self) -> Measure {
        self.by
    }

    /// The runs that its figures are told by.
    pub fn told(&self) -> &[Sample] {
        &self.runs[usize::from(self.is_told_by_fresh())]
    }

    /// Bytes of a mean operation in those runs, since an access specification draws its sizes; `None` where none of them has one.
    pub fn bytes_per_operation(&self) -> Option<f64> {
        mean_of(self.told(), |s| s.bytes_per_operation.filter(|b| *b > 0.0))
    }

    /// Mean CPU time per byte of all its runs in ns; `None` where no run says.
    pub fn cpu_ns_per_byte(&self) -> Option<f64> {
        mean_of(self.runs.iter().flatten(), |s| s.cpu_ns_per_byte.filter(|c| c.is_finite()))
    }

    fn cpu_or_worst(&self) -> f64 {
        self.cpu_ns_per_byte().unwrap_or(f64::INFINITY)
    }
}

impl Race {
    pub(super) fn tries(&self) -> usize {
        self.lanes.iter().map(Lane::tries).sum()
    }

    /// Lanes that have a rate, with their indices.
    fn running(&self) -> impl Iterator<Item = (usize, &Lane)> {
        self.lanes.iter().enumerate().filter(|(_, l)| !l.failed && !l.logs.is_empty())
    }

    pub(super) fn leader(&self) -> Option<usize> {
        self.running().max_by(|a, b| a.1.mean().total_cmp(&b.1.mean())).map(|(at, _)| at)
    }

    /// By how much each other lane may at most be faster than one, as a logarithm. Of that one all runs count: those that
    /// chose it alone would flatter it.
    fn gaps(&self, leader: usize, noise: &Noise) -> Vec<(usize, f64)> {
        let best = [self.lanes[leader].logs.as_slice(), &self.lanes[leader].fresh].concat();
        let gap = |lane: &Lane| {
            let error = (noise.of_mean(&lane.logs) + noise.of_mean(&best)).sqrt();
            lane.mean() - mean(&best) + noise.factor * error
        };
        self.running().filter(|(at, _)| *at != leader).map(|(at, lane)| (at, gap(lane))).collect()
    }

    /// The leader, the lane that may beat it by most, and by how much; `None` where there are no two.
    pub(super) fn closest_two(&self) -> Option<(usize, usize, f64)> {
        let leader = self.leader()?;
        let (at, gap) = self
            .gaps(leader, &Noise::supposed(&self.lanes))
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((leader, at, gap))
    }

    /// Whether surely no lane is more than 3 % faster than the leader, or none is left that could be.
    pub(super) fn is_decided(&self) -> bool {
        let Some(leader) = self.leader() else { return true };
        let nearest = self.closest_two().map_or(f64::NEG_INFINITY, |(.., gap)| gap);
        self.lanes[leader].logs.len() >= TWICE && nearest <= SAME.ln_1p()
    }

    /// Any cell may win, also one that was measured once: its fresh runs tell whether it was only lucky.
    pub(super) fn close(&self) -> Closed {
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
    fn noise(&self) -> Noise {
        if self.knows_its_noise() { Noise::seen(&self.lanes) } else { Noise::supposed(&self.lanes) }
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

    /// The lane with the best runs, of those that were decided on.
    pub fn winner(&self) -> Option<&Lane> {
        self.lanes.get(self.closed.as_ref()?.winner?)
    }

    /// By which factor the winner's fresh runs fell behind those that chose it, as a logarithm, where that is more than 3 % and
    /// more than the luck by which it was chosen: then the target changed. `None` otherwise.
    pub fn fall(&self) -> Option<f64> {
        let winner = self.winner().filter(|w| w.fresh.len() >= FRESH)?;
        let noise = self.noise();
        // The luckiest of all cells was chosen, so it may well fall back as far as the luckiest of so many does.
        let factor = noise.factor_of(self.lanes.len());
        let luck = factor * (noise.of_mean(&winner.logs) + noise.of_mean(&winner.fresh)).sqrt();
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
    pub(super) fn wanted(&self, time_is_up: bool) -> Vec<(&Lane, usize)> {
        let Some((closed, winner)) = self.closed.as_ref().zip(self.winner()) else { return Vec::new() };
        let mut out: Vec<(&Lane, usize)> = self.baselines.iter().map(|y| (y, FRESH)).collect();
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
    pub(super) fn finals(&self) -> usize {
        if self.closed.is_none() {
            return FRESH * (2 + self.baselines.len());
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
pub(super) struct Noise {
    /// Variance of a logarithm, of all cells together, and how many repeats were free to differ.
    pooled: f64,
    degrees: f64,
    /// Student's factor for one side.
    factor: f64,
}

impl Noise {
    /// With a guess that repeats correct: for the choice of what to measure next, from the first run on.
    pub(super) fn supposed(lanes: &[Lane]) -> Self {
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
        let noise = Self { pooled: squares / degrees, degrees, factor: f64::INFINITY };
        Self { factor: noise.factor_of(1), ..noise }
    }

    /// Student's factor for one side, where so many cells had the chance.
    fn factor_of(&self, cells: usize) -> f64 {
        let rank = 1.0 - WRONGLY / cells.max(1) as f64;
        student::quantile(rank, self.degrees).unwrap_or(f64::INFINITY)
    }

    /// Variance of the mean of a cell's runs: their own noise counts as far as it has repeats, that of all cells for the rest.
    pub(super) fn of_mean(&self, runs: &[f64]) -> f64 {
        let n = runs.len().max(1) as f64;
        let own = (SUPPOSED.1 * self.pooled + squares(runs)) / (SUPPOSED.1 + n - 1.0);
        own / n
    }
}

/// Squares of what runs differ from the mean of their cell, and how many of them are free to. Runs that chose a winner and those
/// after it are compared with means of their own: the first are flattered by the choice.
fn repeats(lanes: &[Lane]) -> (f64, f64) {
    let groups = || lanes.iter().flat_map(|l| [l.logs.as_slice(), &l.fresh]).filter(|g| g.len() > 1);
    (groups().map(squares).sum(), groups().map(|g| g.len() - 1).sum::<usize>() as f64)
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NEG_INFINITY } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The mean of what those runs have that have it.
fn mean_of<'s>(
    runs: impl IntoIterator<Item = &'s Sample>,
    of: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = runs.into_iter().filter_map(of).collect();
    (!values.is_empty()).then(|| mean(&values))
}

fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum()
}
