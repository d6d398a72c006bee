//! Why workers cannot begin: the reason apart from what to type instead.
//!
//! For: whoever chose the engine reads both; a comparison that tries every engine tells the reason alone, since nobody typed
//! anything there. Not for: operations that fail.

use std::{fmt, io};

/// What to do where an option is refused.
pub(crate) const LEAVE_OUT: &str = "leave the option out";
/// What to do where an interface is refused: every kernel has this one.
pub(crate) const SYNC: &str = "type --engine sync";

/// Why an engine cannot be set up, and what to type instead.
#[derive(Debug)]
struct Refusal {
    reason: String,
    instead: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.instead)
    }
}

impl std::error::Error for Refusal {}

/// An engine's refusal as an error of this kind.
pub(crate) fn refusal(
    kind: io::ErrorKind,
    reason: impl Into<String>,
    instead: impl Into<String>,
) -> io::Error {
    io::Error::new(kind, Refusal { reason: reason.into(), instead: instead.into() })
}

/// Why workers cannot begin.
#[derive(Clone, Debug)]
pub struct CannotBegin {
    /// Which worker, its engine, the reason and what to type instead.
    pub sentence: String,
    /// The reason alone.
    pub reason: String,
}

impl CannotBegin {
    /// For a worker whose engine was not set up.
    pub(crate) fn of_engine(worker: u32, engine: &str, error: &io::Error) -> Self {
        let whole = format!("{error}{}", sys::cause(error));
        let sentence = format!("worker {worker} cannot set up {engine}: {whole}");
        let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>());
        Self { sentence, reason: refusal.map_or(whole, |refusal| refusal.reason.clone()) }
    }
}

impl From<String> for CannotBegin {
    fn from(sentence: String) -> Self {
        Self { reason: sentence.clone(), sentence }
    }
}

impl From<CannotBegin> for String {
    fn from(why: CannotBegin) -> Self {
        why.sentence
    }
}

#[test]
fn the_reason_stands_apart_from_who_met_it_and_from_what_to_type() {
    let error = refusal(io::ErrorKind::Unsupported, "option x: no; none here", "leave the option out");
    let why = CannotBegin::of_engine(3, "vsync", &error);
    assert_eq!(why.sentence, "worker 3 cannot set up vsync: option x: no; none here; leave the option out");
    assert_eq!(why.reason, "option x: no; none here");
    let full = CannotBegin::of_engine(0, "sync", &io::Error::from_raw_os_error(12));
    assert!(full.reason.contains("ulimit -l") && full.sentence.ends_with(&full.reason), "{full:?}");
}
