//! Lists: values without repetition or grouped by a key, names joined into text, and nouns that agree with a count.

/// Returns the values in order, without those that are the same as an earlier one.
pub(crate) fn distinct_by<T>(
    values: impl IntoIterator<Item = T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    for value in values {
        if !out.iter().any(|known| is_same(known, &value)) {
            out.push(value);
        }
    }
    out
}

/// Groups values by their keys, in the order in which each key first occurs.
pub(crate) fn grouped<K: PartialEq, V>(values: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut out: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in values {
        match out.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(value),
            None => out.push((key, vec![value])),
        }
    }
    out
}

/// Joins names, with another separator if a name contains a comma.
pub(crate) fn join_names(names: &[String]) -> String {
    names.join(if names.iter().any(|n| n.contains(',')) { "; " } else { ", " })
}

/// Returns the noun for a count: `session` for one, otherwise `sessions`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// Formats a count with its noun: `1 session`, `2 sessions`. `show_counted` also has commas.
pub(crate) fn count_of(count: usize, noun: &str) -> String {
    format!("{count} {}", plural(count, noun))
}
