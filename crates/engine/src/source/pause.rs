//! Pauses: how long a lane waits before its next burst.
//!
//! For: drawing from the law of a think time. Not for: waiting, which the loop does.

use model::job::{Line, ThinkLaw};
use model::spec::number::MAX_TIME_NS;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Where the pauses of a line come from.
#[derive(Debug)]
pub(super) enum Pause {
    /// Always so many ns.
    Fixed(u64),
    /// Exponential, with this mean in ns.
    Exponential(f64),
    /// With a logarithm that is normal.
    Lognormal(LogNormal<f64>),
    /// Shares from 0 to 1 that are no longer than so many ns; straight between them.
    Quantiles(Vec<(f64, f64)>),
}

impl Pause {
    /// That of a line. Fails where its law means nothing.
    pub(super) fn new(line: &Line) -> Result<Self, String> {
        let mean = line.delay_ns as f64;
        Ok(match &line.delay_law {
            _ if line.delay_ns == 0 => Self::Fixed(0),
            ThinkLaw::Fixed => Self::Fixed(line.delay_ns),
            ThinkLaw::Exponential => Self::Exponential(mean),
            ThinkLaw::Lognormal { median_ns } => {
                let median = *median_ns as f64;
                // The mean of exp(N(m, s)) is exp(m + s^2 / 2), its median exp(m).
                let sigma = (2.0 * (mean / median).ln()).sqrt();
                let law = LogNormal::new(median.ln(), sigma).ok().filter(|_| sigma.is_finite());
                Self::Lognormal(law.ok_or(
                    "pauses are lognormal with a mean that is not above their median; give a larger mean",
                )?)
            }
            ThinkLaw::Quantiles(all) => {
                let rises = all.windows(2).all(|w| w[0].percent <= w[1].percent && w[0].ns <= w[1].ns);
                if all.is_empty() || !rises {
                    return Err("the quantiles of a pause do not rise; give them in order".into());
                }
                Self::Quantiles(all.iter().map(|q| (q.percent / 100.0, q.ns as f64)).collect())
            }
        })
    }

    /// Whether there is none.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Fixed(0))
    }

    /// The next one in ns.
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let ns = match self {
            Self::Fixed(ns) => return *ns,
            Self::Exponential(mean) => mean * Distribution::<f64>::sample(&Exp1, rng),
            Self::Lognormal(law) => law.sample(rng),
            Self::Quantiles(all) => between(all, rng.random()),
        };
        // A day is longer than any run.
        (ns as u64).min(MAX_TIME_NS)
    }
}

/// The time at a share.
fn between(all: &[(f64, f64)], share: f64) -> f64 {
    let behind = all.partition_point(|(at, _)| *at <= share);
    let last = all.last().map_or(0.0, |(_, ns)| *ns);
    let Some((low, from)) = behind.checked_sub(1).and_then(|at| all.get(at)) else {
        return all.first().map_or(0.0, |(_, ns)| *ns);
    };
    all.get(behind).map_or(last, |(high, to)| from + (to - from) * (share - low) / (high - low))
}

#[cfg(test)]
fn drawn(law: ThinkLaw, mean_ns: u64) -> Vec<f64> {
    let mut line = model::job::Access::plain(model::job::Pattern::Random, 4096, 100).lines.remove(0);
    (line.delay_ns, line.delay_law) = (mean_ns, law);
    let pause = Pause::new(&line).unwrap_or_else(|e| panic!("{e}"));
    let mut rng = rand::SeedableRng::seed_from_u64(5);
    let mut all: Vec<f64> = (0..100_000).map(|_| pause.draw(&mut rng) as f64).collect();
    all.sort_unstable_by(f64::total_cmp);
    all
}

#[test]
fn pauses_have_the_mean_and_the_quantiles_that_were_said() {
    use model::job::{Quantile, Think};
    let check = |law: ThinkLaw, mean_ns: u64, quantiles: &[(f64, f64)]| {
        let all = drawn(law.clone(), mean_ns);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean / mean_ns as f64 - 1.0).abs() < 0.05, "{law:?}: mean {mean}");
        for (share, ns) in quantiles {
            let found = all[(share * all.len() as f64) as usize];
            assert!((found / ns - 1.0).abs() < 0.05, "{law:?}: {found} at {share}, not {ns}");
        }
    };
    check(ThinkLaw::Fixed, 5000, &[(0.0, 5000.0), (0.999, 5000.0)]);
    check(ThinkLaw::Exponential, 100_000, &[(0.5, 69_315.0), (0.9, 230_259.0)]);
    check(ThinkLaw::Lognormal { median_ns: 38_000 }, 161_000, &[(0.5, 38_000.0)]);
    let at = |percent, ns| Quantile { percent, ns };
    let think = Think::quantiles(vec![at(0.0, 1000), at(50.0, 2000), at(90.0, 10_000), at(100.0, 100_000)]);
    check(think.law, think.mean_ns, &[(0.25, 1500.0), (0.5, 2000.0), (0.7, 6000.0), (0.95, 55_000.0)]);
    assert!(drawn(ThinkLaw::Fixed, 0).iter().all(|ns| *ns == 0.0));
}
