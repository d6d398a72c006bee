//! Names in a sentence: few of many.
//!
//! For: hosts that a finding is about. Not for: results, whose names are sentences of their own (`findings::about`).

/// Most names that a sentence has.
const MOST_NAMES: usize = 3;

/// `a`, `a and b`, `a, b, c and 4 more`.
pub(crate) fn names(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] if all.len() <= MOST_NAMES => format!("{} and {last}", rest.join(", ")),
        _ => format!("{} and {} more", all[..MOST_NAMES].join(", "), all.len() - MOST_NAMES),
    }
}

#[test]
fn of_many_hosts_few_are_named() {
    assert_eq!((names(&["a"]), names(&["a", "b", "c"])), ("a".into(), "a, b and c".into()));
    assert_eq!(names(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
}
