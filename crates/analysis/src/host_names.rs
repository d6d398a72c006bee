//! Lists host names in a sentence: up to three, and how many more.

/// The most names in a sentence.
const MOST_NAMES: usize = 3;

/// `a`, `a and b`, `a, b, c and 4 more`.
pub(crate) fn names(all: &[&str]) -> String {
    names_of(all, all.len())
}

/// `a`, `a and b`, `a, b, c and 4 more` for `count` names, of which `first` has the first ones.
pub(crate) fn names_of(first: &[&str], count: usize) -> String {
    match first {
        [] => String::new(),
        [one] if count == 1 => (*one).to_owned(),
        [rest @ .., last] if count <= MOST_NAMES && count == first.len() => {
            format!("{} and {last}", rest.join(", "))
        }
        _ => {
            let shown = &first[..first.len().min(MOST_NAMES)];
            format!("{} and {} more", shown.join(", "), count.saturating_sub(shown.len()))
        }
    }
}

#[test]
fn long_lists_of_hosts_are_shortened() {
    assert_eq!((names(&["a"]), names(&["a", "b", "c"])), ("a".into(), "a, b and c".into()));
    assert_eq!(names(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    assert_eq!(names_of(&["a", "b", "c", "d"], 4_000), "a, b, c and 3997 more");
}
