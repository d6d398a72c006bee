//! Data types of fathom: every value that one stage hands to the next, and the parsers that read numbers from
//! kernel text.
//!
//! No I/O, no processes, no clock. A user's request ([`spec`]) is resolved into a [`plan`] of [`job`]s; running it
//! gives a [`record`]; judging the record gives a [`report`].
#![forbid(unsafe_code)]

/// Declares a struct that is serialized as a list of its values, without field names, to keep files
/// small.
macro_rules! stored_as_list {
    ($(#[$attr:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$attr])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&($(self.$field,)*), to)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let ($($field,)*) = serde::Deserialize::deserialize(from)?;
                Ok(Self { $($field,)* })
            }
        }
    };
}

/// Declares an enum whose values have one word each: the serialized name, which is also printed and typed.
macro_rules! enum_of_words {
    ($(#[$attr:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $word:tt,)* }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $(#[$attr])*
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $value,)* }

        impl $name {
            /// All values with their words.
            pub const WORDS: [(&'static str, Self); [$($word),*].len()] = [$(($word, Self::$value)),*];

            /// Returns the word of the value.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }
        }
    };
}

pub mod captured;
pub mod command;
pub mod comparison;
pub mod diskspd;
pub mod errno;
pub mod evidence;
pub mod figures;
pub mod finding;
pub mod fleet;
pub mod histogram;
pub mod history;
pub mod job;
pub mod machine;
pub mod name;
pub mod payload;
pub mod plan;
pub mod profile;
pub mod record;
pub mod replay;
pub mod report;
pub mod spec;
pub mod stamp;
pub mod study;
pub mod sweep;
pub mod units;
pub mod verdict;
pub mod verification;
pub mod watch;

/// A value, or the reason why it is unknown. An unknown value is never zero.
pub type Known<T> = Result<T, String>;

/// Returns the values in order, each once.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for value in values {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

/// Whether JSON omits a field, because it has its default value.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
