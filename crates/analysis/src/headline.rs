//! The first words of a report: the number that would be quoted, whether it holds, and what limits it.
//!
//! For: which result they are about, by what was asked: one of several jobs, a load curve, or a grid. Not for: the verdict on
//! results ([`crate::verdict`]) and which of them are quoted ([`crate::studies`]), nor what a curve or a grid comes to.

use crate::findings::CaseAnswers;
use crate::verdict::{self, Reasoned};
use crate::{limiter, studies};
use model::finding::Finding;
use model::load::LoadCurve;
use model::record::Record;
use model::report::{Answer, Counts, Headline, Limiter, Measured, Verdict};
use model::study::Studied;
use model::sweep::Sweep;

/// What stands above everything else.
pub(crate) struct First {
    pub(crate) answer: Option<Answer>,
    pub(crate) headline: Headline,
    pub(crate) verdict: Reasoned,
    pub(crate) counts: Counts,
    pub(crate) limiter: Limiter,
}

/// What was measured, and what of the findings acts on numbers.
pub(crate) struct Judged<'r> {
    pub(crate) record: &'r Record,
    pub(crate) answered: &'r [CaseAnswers<'r>],
    pub(crate) results: &'r [Measured],
    pub(crate) acting: &'r [Finding],
}

impl Judged<'_> {
    /// By what was asked.
    pub(crate) fn summarize_study(&self, studied: &Studied) -> First {
        let quoted = studies::quoted(studied, self.results);
        let words = match studied {
            Studied::Limit(curve) => self.of_curve(curve, &quoted),
            Studied::Sweep(grid) => self.of_grid(grid, &quoted),
            Studied::Jobs | Studied::Profile(_) => self.of_jobs(&quoted),
            Studied::Layers(_)
            | Studied::Interfaces(_)
            | Studied::Targets(_)
            | Studied::Hosts(_)
            | Studied::Commands(_) => self.of_results(&quoted),
        };
        First { answer: studies::answer(studied), ..words }
    }

    /// Of jobs without a study. Another result that only other load withholds leaves the session suspect if the headline has a number.
    fn of_jobs(&self, quoted: &[&Measured]) -> First {
        let mut first = self.of_results(quoted);
        let withholds = |r: &&&Measured| r.verdict == Verdict::Invalid;
        let by_others =
            quoted.iter().filter(withholds).all(|r| verdict::is_withheld_by_others(r, self.acting));
        if first.headline.value.is_some() && by_others {
            first.verdict.verdict = first.verdict.verdict.min(Verdict::Suspect);
        }
        first
    }

    /// Of results with a headline that the plan names.
    fn of_results(&self, quoted: &[&Measured]) -> First {
        let headline = verdict::headline(self.record, self.answered, self.results);
        self.concluded(headline, self.of_headline_job(), quoted)
    }

    /// Of a load curve: the load that it rests on.
    fn of_curve(&self, curve: &LoadCurve, quoted: &[&Measured]) -> First {
        let headline = studies::headline_of_curve(self.record, curve, self.answered);
        let first = curve.rests_on.first().and_then(|at| self.results.get(*at));
        let mut words = self.concluded(headline, first, quoted);
        if words.headline.value.is_none() {
            words.verdict = Reasoned::new(Verdict::Invalid, curve.sentence.clone());
            // That each load holds is no comfort where they do not answer.
            words.counts.sentence = None;
        }
        // A load below the capacity is limited by nothing but itself; the closed loop is limited by something.
        First { limiter: limited(self.of_headline_job()), ..words }
    }

    /// Of a grid: the best cell. What is wrong with the others says why they are not quoted.
    fn of_grid(&self, grid: &Sweep, quoted: &[&Measured]) -> First {
        let headline = studies::headline_of_grid(grid, self.results);
        let first = studies::first_of_grid(grid, self.results);
        let mut words = self.concluded(headline, first, quoted);
        if first.is_none() {
            let (verdict, reason) = studies::undecided(grid);
            words.verdict = Reasoned::new(verdict, reason);
        }
        if let (Verdict::Valid, Some(why)) = (words.verdict.verdict, studies::unsteady(grid)) {
            words.verdict = Reasoned::new(Verdict::Suspect, why);
        }
        words
    }

    /// The words about a result, in the company of those that are quoted too.
    fn concluded(&self, headline: Headline, first: Option<&Measured>, quoted: &[&Measured]) -> First {
        let accepted = first.map_or_else(Vec::new, |result| result.accepted.clone());
        First {
            answer: None,
            headline: Headline { accepted, ..headline },
            verdict: verdict::session_verdict(first, quoted, self.acting),
            counts: verdict::counts(quoted, self.acting),
            limiter: limited(first),
        }
    }

    fn of_headline_job(&self) -> Option<&Measured> {
        verdict::headline_result(self.record, self.answered, self.results)
    }
}

fn limited(result: Option<&Measured>) -> Limiter {
    result.map_or_else(limiter::nothing_measured, |r| r.limiter.clone())
}
