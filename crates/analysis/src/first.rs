//! The first words of a report: the number that would be quoted, whether it holds, and what limits it.
//!
//! For: which result they are about, by what was asked: one of several jobs, a load curve, or a grid. Not for: the verdict on a
//! result ([`crate::verdict`]), nor what a curve or a grid comes to.

use crate::findings::Answered;
use crate::{limiter, studies, verdict};
use model::finding::Finding;
use model::load::LoadCurve;
use model::record::Record;
use model::report::{Headline, Limiter, Measured, Verdict};
use model::study::Studied;
use model::sweep::Sweep;

/// What stands above everything else.
pub(crate) struct First {
    pub(crate) headline: Headline,
    pub(crate) verdict: Verdict,
    /// Why, in a sentence.
    pub(crate) reason: String,
    /// Which other results do not hold.
    pub(crate) beside: Option<String>,
    pub(crate) limiter: Limiter,
}

impl First {
    /// The words about a result, in the company of those that are quoted too.
    fn about(
        headline: Headline,
        first: Option<&Measured>,
        (verdict, reason): (Verdict, String),
        quoted: &[&Measured],
    ) -> Self {
        Self { headline, verdict, reason, beside: verdict::beside(first, quoted), limiter: limited(first) }
    }
}

/// What was measured, and what of the findings acts on numbers.
pub(crate) struct Seen<'r> {
    pub(crate) record: &'r Record,
    pub(crate) answered: &'r [Answered<'r>],
    pub(crate) results: &'r [Measured],
    pub(crate) acting: &'r [Finding],
}

impl Seen<'_> {
    /// By what was asked.
    pub(crate) fn of(&self, studied: &Studied) -> First {
        let quoted = studies::quoted(studied, self.results);
        match studied {
            Studied::Limit(curve) => self.of_curve(curve, &quoted),
            Studied::Sweep(grid) => self.of_grid(grid, &quoted),
            Studied::Jobs | Studied::Layers(_) | Studied::Interfaces(_) | Studied::Profile(_) => {
                self.of_results(&quoted)
            }
        }
    }

    /// Of jobs that are no more than themselves: about the plan's headline job.
    fn of_results(&self, quoted: &[&Measured]) -> First {
        let headline = verdict::headline(self.record, self.answered, self.results);
        let first = self.of_headline_job();
        let (verdict, reason) = verdict::verdict(first, self.acting);
        First::about(headline, first, (verdict, reason), quoted)
    }

    /// Of a load curve: about the load that it rests on.
    fn of_curve(&self, curve: &LoadCurve, quoted: &[&Measured]) -> First {
        let headline = studies::headline_of_curve(self.record, curve, self.answered);
        let first = curve.rests_on.first().and_then(|at| self.results.get(*at));
        let said = match headline.value {
            Some(_) => verdict::verdict(first, self.acting),
            None => (Verdict::Invalid, curve.sentence.clone()),
        };
        let words = First::about(headline, first, said, quoted);
        // A load below the capacity is limited by nothing but itself; the closed loop is limited by something.
        First { limiter: limited(self.of_headline_job()), ..words }
    }

    /// Of a grid: about the best cell. What is wrong with the others says why they are not quoted.
    fn of_grid(&self, grid: &Sweep, quoted: &[&Measured]) -> First {
        let headline = studies::headline_of_grid(grid, self.results);
        let first = studies::first_of_grid(grid, self.results);
        let mut said = match first {
            Some(_) => verdict::verdict(first, self.acting),
            None => studies::undecided(grid),
        };
        if let (Verdict::Valid, Some(why)) = (said.0, studies::unsteady(grid)) {
            said = (Verdict::Suspect, why);
        }
        First::about(headline, first, said, quoted)
    }

    fn of_headline_job(&self) -> Option<&Measured> {
        verdict::headline_result(self.record, self.answered, self.results)
    }
}

fn limited(result: Option<&Measured>) -> Limiter {
    result.map_or_else(limiter::nothing_measured, |r| r.limiter.clone())
}
