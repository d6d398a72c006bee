//! What two results turned out to be: numbers of the same name, or not.
//!
//! For: findings that invalidate or relabel a result, compared with those of the other. Not for: what was asked for
//! ([`super::fingerprint`]).

use super::sides::One;
use model::check_id::CheckId;
use model::comparison::Difference;
use model::finding::{Finding, Outcome, Severity};
use std::collections::BTreeSet;

/// Findings that rename a result by what limited it, or by the depth that was reached: the work is the same, and how it goes
/// may be the very thing that is compared.
const SAME_WORK: &[CheckId] = &[CheckId::B05, CheckId::D05, CheckId::D06, CheckId::D08, CheckId::D11];

/// The aspect under which these stand.
pub(super) const LIMITED_BY: &str = "what limited it";

/// The aspect of renaming findings that make it another measurement.
pub(super) const MEASURED: &str = "what was measured";

/// The aspect of findings that the user accepted.
pub(super) const ACCEPTED: &str = "accepted findings";

/// The difference between two results that rest on different accepted findings.
pub(super) fn acceptance_difference(a: One, b: One) -> Option<Difference> {
    let ids = |one: One| match one.result.accepted.as_slice() {
        [] => "none".to_owned(),
        ids => CheckId::list(ids, ", "),
    };
    let (a, b) = (ids(a), ids(b));
    (a != b).then(|| Difference { aspect: ACCEPTED.into(), a, b, refuses: true })
}

/// The differences that renaming findings make.
pub(super) fn result_differences(a: One, b: One) -> Vec<Difference> {
    let (of_a, of_b) = (renaming(a), renaming(b));
    let only = |x: &BTreeSet<Named>, y: &BTreeSet<Named>, work: bool| -> Vec<Named> {
        x.difference(y).filter(|(id, _)| SAME_WORK.contains(id) == work).cloned().collect()
    };
    let mut out = Vec::new();
    for (aspect, same_work) in [(MEASURED, false), (LIMITED_BY, true)] {
        let (left, right) = (only(&of_a, &of_b, same_work), only(&of_b, &of_a, same_work));
        if left.is_empty() && right.is_empty() {
            continue;
        }
        out.push(Difference {
            aspect: aspect.into(),
            a: describe_results(a, &left),
            b: describe_results(b, &right),
            refuses: !same_work,
        });
    }
    out
}

/// Id and name of a finding.
type Named = (CheckId, String);

fn renaming(one: One) -> BTreeSet<Named> {
    acting(one, Severity::Rename).map(|f| (f.id, f.name.clone())).collect()
}

/// `4K random read, depth 32, page cache (A01 CACHE_SERVED)`.
fn describe_results(one: One, findings: &[Named]) -> String {
    let ids: Vec<String> = findings.iter().map(|(id, name)| format!("{id} {name}")).collect();
    let ids = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(", ")) };
    format!("{}{ids}", one.result.true_name)
}

/// Why a result is no number, where it is none.
pub(super) fn no_number(one: One) -> Option<String> {
    let of = format!("{} ({})", one.result.name, one.report.started);
    if let Some(f) = acting(one, Severity::Void).find(|f| !f.accepted) {
        let (id, sentence) = (f.id, f.sentence.trim_end_matches('.'));
        return Some(format!(
            "{id} {} invalidates {of}: {sentence}; type --accept {id} to compare it all the same",
            f.name
        ));
    }
    if one.result.void {
        return Some(format!("{of} is void"));
    }
    one.result.total.is_none().then(|| format!("{of} has no number: {}", one.report.verdict_reason))
}

fn acting(one: One<'_>, severity: Severity) -> impl Iterator<Item = &Finding> {
    let about = move |f: &&Finding| f.about.contains(&one.result.name);
    let findings = one.report.findings.iter();
    findings.filter(move |f| f.outcome == Outcome::Finding && f.severity == Some(severity)).filter(about)
}
