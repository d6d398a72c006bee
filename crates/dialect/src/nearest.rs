//! The known name that is most like a word which is none of them.
//!
//! For: what to type instead of a slip. Not for: the sentence around it.

/// Characters of the longest word that is looked for: a longer one is like none of them, and would take long to compare.
const LONGEST: usize = 64;

/// The name most like a word, where one is at least as like as that (1 is the same).
pub(crate) fn nearest<'n>(
    word: &str,
    names: impl IntoIterator<Item = &'n str>,
    likeness: f64,
) -> Option<&'n str> {
    if word.len() >= LONGEST {
        return None;
    }
    let like = |name: &'n str| (strsim::normalized_damerau_levenshtein(word, name), name);
    let all = names.into_iter().map(like).filter(|(like, _)| *like >= likeness);
    all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

#[test]
fn slips_are_told_from_words_that_are_like_none() {
    let known = ["depth", "batch"];
    assert_eq!(nearest("dephts", known, 0.4), Some("depth"));
    assert_eq!(nearest("cadence", known, 0.6), None);
    assert_eq!(nearest(&"depth".repeat(20), known, 0.0), None);
}
