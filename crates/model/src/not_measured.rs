//! What a comparison could not measure, and why.
//!
//! For: the two apart, in a plan and in a report, and several things that one reason keeps from being measured. Not for: finding
//! the reason.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Something that a comparison could not measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotMeasured {
    /// What the table would call it, and what it would do: `vda, 8K random write`. Empty where an old session has no more than a
    /// sentence, which is then the reason.
    pub name: String,
    /// Why, in words.
    pub why: String,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.name.is_empty() { "" } else { ": " };
        write!(f, "{}{between}{}", self.name, self.why)
    }
}

/// Each reason once, with the names of all that it keeps from being measured.
pub fn by_reason(all: &[NotMeasured]) -> Vec<(Vec<&str>, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for NotMeasured { name, why } in all {
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((names, _)) => names.extend(name),
            None => reasons.push((name.into_iter().collect(), why)),
        }
    }
    reasons
}

/// Reads them, and the sentences that sessions had in their place before.
///
/// # Errors
/// What the format refuses.
pub(crate) fn or_sentences<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NotMeasured>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        Apart(NotMeasured),
        Sentence(String),
    }
    let apart = |kept| match kept {
        Kept::Apart(both) => both,
        Kept::Sentence(why) => NotMeasured { name: String::new(), why },
    };
    Ok(Vec::<Kept>::deserialize(from)?.into_iter().map(apart).collect())
}

#[test]
fn each_reason_is_told_once_and_a_sentence_of_an_old_session_by_itself() {
    let of = |name: &str, why: &str| NotMeasured { name: name.into(), why: why.into() };
    let all = [of("a, b: c", "no: it is late"), of("", "d: gone"), of("e", "no: it is late")];
    assert_eq!(by_reason(&all), [(vec!["a, b: c", "e"], "no: it is late"), (vec![], "d: gone")]);
    assert_eq!(all.map(|n| n.to_string()), ["a, b: c: no: it is late", "d: gone", "e: no: it is late"]);
}
