//! The sides: several sessions of one configuration as one, and the results that both sides have.
//!
//! For: which is compared with which. Not for: whether that makes sense ([`super::fingerprint`]), nor the numbers.

use model::comparison::{Side, Source};
use model::report::{Measured, Report};

/// A result with the report that it stands in.
#[derive(Clone, Copy, Debug)]
pub(super) struct One<'a> {
    pub(super) report: &'a Report,
    pub(super) result: &'a Measured,
}

/// The same result in every session of a side; never empty.
pub(super) type Pooled<'a> = Vec<One<'a>>;

/// Which is compared with which.
pub(super) struct Paired<'a> {
    pub(super) pairs: Vec<(Pooled<'a>, Pooled<'a>)>,
    pub(super) only_in_a: Vec<String>,
    pub(super) only_in_b: Vec<String>,
}

/// The side as it is shown.
pub(super) fn shown(reports: &[Report]) -> Side {
    let source = |r: &Report| Source {
        session: r.session.clone(),
        title: r.title.clone(),
        started: r.started.clone(),
        verdict: r.verdict,
        judged_by: r.fathom.version.clone(),
    };
    Side { sessions: reports.iter().map(source).collect() }
}

/// Results of the same name, phase and stream. Where each side measured a single thing, these two are meant, whatever they are
/// called: the name of a job says its block size and depth, and what differs is better told than that nothing is the same.
pub(super) fn pair<'a>(a: &'a [Report], b: &'a [Report]) -> Paired<'a> {
    let (a, b) = (pooled(a), pooled(b));
    if let ([_], [_]) = (a.as_slice(), b.as_slice()) {
        return Paired {
            pairs: a.into_iter().zip(b).collect(),
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
        };
    }
    let mut left: Vec<Option<Pooled>> = b.into_iter().map(Some).collect();
    let (mut pairs, mut only_in_a) = (Vec::new(), Vec::new());
    for of_a in a {
        let same = left.iter_mut().find(|of_b| of_b.as_ref().is_some_and(|of_b| key(of_b) == key(&of_a)));
        match same.and_then(Option::take) {
            Some(of_b) => pairs.push((of_a, of_b)),
            None => only_in_a.push(key(&of_a).0.to_owned()),
        }
    }
    let only_in_b = left.into_iter().flatten().map(|of_b| key(&of_b).0.to_owned()).collect();
    Paired { pairs, only_in_a, only_in_b }
}

fn key<'a>(pooled: &Pooled<'a>) -> (&'a str, u32, u32) {
    pooled.first().map_or(("", 0, 0), |one| key_of(one.result))
}

fn key_of(result: &Measured) -> (&str, u32, u32) {
    (&result.name, result.phase, result.stream)
}

/// The results of a side, in the order of its first session; each from all sessions that have it.
fn pooled(reports: &[Report]) -> Vec<Pooled<'_>> {
    let mut all: Vec<Pooled> = Vec::new();
    for report in reports {
        // A session of one result belongs to the one result of the others, as above.
        let single = report.results.len() == 1 && all.len() == 1;
        for result in &report.results {
            let one = One { report, result };
            // Two results of one session stay two, whatever they are called.
            let own = |p: &&mut Pooled| p.iter().all(|o| !std::ptr::eq(o.report, report));
            let same = |p: &&mut Pooled| own(p) && (single || key(p) == key_of(result));
            match all.iter_mut().find(same) {
                Some(pooled) => pooled.push(one),
                None => all.push(vec![one]),
            }
        }
    }
    all
}
