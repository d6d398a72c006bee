//! What was typed in the language of another tool, as far as it says how that tool tells of its results.
//!
//! For: the formats of that tool, which repeat it. Not for: what is done ([`crate::job`]), nor for reading such a language.

use serde::{Deserialize, Serialize};

/// Options with their values, in the order of typing. What was typed without a value is not among them.
pub type Options = Vec<(String, String)>;

/// What was typed of all streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// Options that were typed for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Options,
    /// What was typed of each, by phase and stream.
    pub phases: Vec<Vec<TypedStream>>,
}

/// What was typed of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedStream {
    /// Its own options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Options,
    /// Number of its group.
    pub group: usize,
    /// Whether it is told as one result with the stream before it, where that is of the same group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// Whether its directions are told as one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
}

/// What was typed of one result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedResult {
    /// Options that were typed for all streams.
    pub defaults: Options,
    /// What was typed of its own.
    pub stream: TypedStream,
}

impl Typed {
    /// What was typed of a result.
    pub fn result(&self, phase: usize, stream: usize) -> Option<TypedResult> {
        let stream = self.phases.get(phase)?.get(stream)?.clone();
        Some(TypedResult { defaults: self.defaults.clone(), stream })
    }
}
