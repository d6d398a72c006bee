//! The catalogue: the page of every check, of results and of comparisons. `fathom explain` and `docs/reference/checks.md` print it.

use crate::checks::{GROUPS, Page};
use crate::compare::checks as compare;
use model::finding::{CheckId, CheckPage};

/// The question of the checks of comparisons.
const OF_COMPARISONS: &str = "May two results be compared?";

/// The pages of every check: those of results, then those of comparisons.
pub fn pages() -> impl Iterator<Item = CheckPage> {
    let results = GROUPS.iter().flat_map(|(group, checks)| checks.iter().map(move |c| (*group, c)));
    let results = results.map(|(group, c)| page(c.id, c.name, group, c.belief, &c.page, true));
    let compared = compare::CHECKS.iter();
    results.chain(compared.map(|c| page(c.id, c.name, OF_COMPARISONS, c.belief, &c.page, c.acceptable)))
}

fn page(
    id: CheckId,
    name: &'static str,
    group: &'static str,
    belief: &'static str,
    of: &Page,
    acceptable: bool,
) -> CheckPage {
    let Page { reads, formula, provoke, fix, accept } = *of;
    let repair = [fix, accept].join(" ").trim().to_owned();
    let accept = acceptable.then(|| format!("--accept {id}"));
    CheckPage { id, name, group, belief, reads, formula: formula(), provoke, repair, accept }
}

#[test]
fn every_id_has_one_check() {
    let page_ids: Vec<CheckId> = pages().map(|c| c.id).collect();
    let ids: std::collections::BTreeSet<CheckId> = page_ids.iter().copied().collect();
    assert_eq!(ids.len(), page_ids.len(), "a check of comparisons has an id of its own");
    assert!(ids.iter().eq(CheckId::ALL), "an id without a check, or a check without an id");
}
