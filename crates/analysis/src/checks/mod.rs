//! The checks: questions asked of every case, one file each.
//!
//! For: the table. Not for: what a check is (`check`), nor merging answers into findings (`findings`).
//! A new check is one file with a `CHECK` and one line below. Ids are those that users look up; they never change.

mod a;
mod b;
mod c;
pub mod check;
mod d;
mod e;
mod f;
#[cfg(test)]
mod several_streams;

use check::Check;

pub(crate) use b::b05_depth_not_reached::one_at_a_time;
pub(crate) use d::d04_io_limit_configured::{Of, hard_limits, most_iops};
pub(crate) use d::d06_cpu_bound::busiest as busiest_worker;
pub(crate) use d::d08_runqueue_wait::waited as waited_for_cpu;
pub(crate) use e::e06_runs_disagree::severity as severity_of_spread;
#[cfg(test)]
pub(crate) use e::shaped;

/// The groups of the catalogue: what each asks, and its checks.
pub(crate) const GROUPS: &[(&str, &[Check])] = &[
    ("Did the I/O reach the device at all?", a::CHECKS),
    ("Was it the I/O you asked for?", b::CHECKS),
    ("Is what was written there after a power cut?", c::CHECKS),
    ("Interference and environment", d::CHECKS),
    ("Time and statistics", e::CHECKS),
    ("Did the hosts measure as one?", f::CHECKS),
];

/// Every check of a result, in the order of the catalogue.
pub fn all() -> impl Iterator<Item = &'static Check> {
    GROUPS.iter().flat_map(|(_, checks)| *checks)
}

#[cfg(test)]
use check::Answer;
#[cfg(test)]
use model::finding::CheckId;

/// Checks that no fixture can reach, and why: hardware that it has not, or an option that nobody asked for. About an honest
/// record they may say that they cannot see, and their own tests show that they hold where they apply.
#[cfg(test)]
const UNREACHED: &[(CheckId, &str)] = &[
    (CheckId::A19, "a drive that shows its link"),
    (CheckId::B08, "polling must be asked for, and needs a disk that polls"),
    (CheckId::B21, "no honest record trims; the tests of that check have one"),
    (CheckId::D15, "a drive that shows its temperature"),
    (CheckId::D16, "a drive that shows its link"),
    (CheckId::D23, "an array of several drives"),
];

#[test]
fn every_check_fires_on_its_fixture_is_silent_on_honest_records_and_not_checked_on_a_blind_one() {
    use crate::fixture::Fixture;
    let read_ahead = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest_sequential() };
    let [read, write, open, sequential, device, read_ahead] = [
        Fixture::honest(),
        Fixture::honest_write(),
        Fixture::honest_open(),
        Fixture::honest_sequential(),
        Fixture::honest_loop(),
        read_ahead,
    ]
    .map(|fixture| fixture.record());
    let plain = f::honest();
    for check in all() {
        let id = check.id;
        let unreached = UNREACHED.iter().any(|(hard, _)| *hard == id);
        let fired = check.fires.map(|fixture| check.answer(&fixture()));
        assert!(
            matches!(fired, Some(Ok(Answer::Finding(_)))) || id == CheckId::A13,
            "{id} does not fire: {fired:?}"
        );
        for (name, honest) in
            [("read", &read), ("write", &write), ("open loop", &open), ("sequential read", &sequential)]
        {
            let answer = check.answer(honest);
            let silent = matches!(answer, Ok(Answer::Holds(..) | Answer::DoesNotApply))
                || (unreached && answer.is_err());
            assert!(silent, "{id} is not silent on the honest {name}: {answer:?}");
        }
        let blind = check.answer(&(check.blind)());
        assert!(blind.is_err(), "{id} does not say that it is blind: {blind:?}");
        // A check that never applies to an honest record proves nothing by being silent on it.
        let holds = |record: &&_| matches!(check.answer(record), Ok(Answer::Holds(..)));
        assert!(
            unreached || [&read, &write, &device, &open, &sequential, &read_ahead, &plain].iter().any(holds),
            "{id} holds on no honest record"
        );
    }
}

#[test]
fn ids_are_sorted_and_names_are_in_capitals() {
    let checks: Vec<&Check> = all().collect();
    assert!(checks.windows(2).all(|w| w[0].id < w[1].id));
    let loud = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    assert!(checks.iter().all(|c| !c.belief.is_empty() && loud(c.name)));
}
