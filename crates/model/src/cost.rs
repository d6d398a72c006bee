//! What a measurement takes: its time and what it writes, as far as its plan tells, for whoever has not begun yet.
//!
//! For: the figures, and the one sentence in which every command says them. Not for: adding them up (crate `analysis`), nor for the
//! time that is left while it runs.

use crate::units::{minutes, show_bytes, show_ns};

/// What a measurement takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// ns of the idle watch, of rounds before the first run, and of all runs that end by their time.
    pub time_ns: u64,
    /// Whether it may be over before.
    pub at_most: bool,
    /// Whether runs that others disturb are measured again, which takes and writes more.
    pub again: bool,
    /// Whether there are runs that end by their operations or bytes alone, however long these take.
    pub counted: bool,
    /// Bytes of test files.
    pub made_bytes: u64,
    /// ns after which making them ends with what is there; a little more, since it has to be made stable. 0 if `time_ns` includes
    /// that.
    pub making_ns: u64,
    /// Bytes that are written from end to end before the first run, however long that takes.
    pub filled_bytes: u64,
    /// Most bytes of runs whose operations are limited in number or rate.
    pub bounded_bytes: u64,
    /// ns of runs that write as much as the target takes.
    pub unbounded_ns: u64,
}

impl Cost {
    /// All of it: `It takes about 94 s, and up to 15 s before that to write a test file. It writes 1 GiB of ...`.
    pub fn sentence(&self) -> String {
        format!("It takes {}. It writes {}.", self.time(), self.writes())
    }

    /// `about 94 s, and up to 15 s before that to write a test file`.
    fn time(&self) -> String {
        let word = if self.at_most { "at most" } else { "about" };
        let mut parts = Vec::new();
        if self.time_ns > 0 {
            let more =
                if self.again { " (more if other load disturbs runs, which are then repeated)" } else { "" };
            parts.push(format!("{word} {}{more}", minutes(self.time_ns)));
        }
        if self.counted {
            parts.push("as long as the workloads limited by operations or bytes take".into());
        }
        if self.made_bytes > 0 && self.making_ns > 0 {
            parts.push(format!("up to {} before that to write test files", minutes(self.making_ns)));
        }
        if self.filled_bytes > 0 {
            parts.push("as long as preconditioning takes to write its bytes".into());
        }
        if parts.is_empty() { "no time".into() } else { parts.join(", and ") }
    }

    /// `1 GiB of test files, then as much as the target can write in 35.0 s`.
    fn writes(&self) -> String {
        let mut parts = Vec::new();
        if self.made_bytes > 0 {
            parts.push(format!("at most {} of test files", show_bytes(self.made_bytes)));
        }
        if self.filled_bytes > 0 {
            parts.push(format!("{} to precondition", show_bytes(self.filled_bytes)));
        }
        if self.bounded_bytes > 0 {
            let more = if self.again { ", and again in runs that are measured again" } else { "" };
            parts.push(format!("at most {} in limited runs{more}", show_bytes(self.bounded_bytes)));
        }
        if self.unbounded_ns > 0 {
            let at_most = if self.at_most { "at most " } else { "" };
            parts.push(format!("as much as the target can write in {at_most}{}", time(self.unbounded_ns)));
        }
        if parts.is_empty() { "nothing".into() } else { parts.join(", then ") }
    }
}

/// A time that may be short.
fn time(ns: u64) -> String {
    if ns < 10_000_000_000 { show_ns(ns as f64) } else { minutes(ns) }
}

#[test]
fn what_is_not_done_is_not_said() {
    assert_eq!(Cost::default().sentence(), "It takes no time. It writes nothing.");
    let reads = Cost { time_ns: 9_400_000_000, ..Cost::default() };
    assert_eq!(reads.sentence(), "It takes about 10 s. It writes nothing.");
    let bench = Cost {
        time_ns: 75_000_000_000,
        again: true,
        made_bytes: 1 << 30,
        making_ns: 15_000_000_000,
        unbounded_ns: 35_000_000_000,
        ..Cost::default()
    };
    assert_eq!(
        bench.sentence(),
        "It takes about 75 s (more if other load disturbs runs, which are then repeated), and up to 15 s \
         before that to write test files. It writes at most 1 GiB of test files, then as much as the \
         target can write in 35 s."
    );
    let counted = Cost { counted: true, bounded_bytes: 3 << 20, filled_bytes: 2 << 30, ..Cost::default() };
    assert_eq!(
        counted.sentence(),
        "It takes as long as the workloads limited by operations or bytes take, and as long as \
         preconditioning takes to write its bytes. It writes 2 GiB to precondition, then at most 3 MiB in \
         limited runs."
    );
    let searched =
        Cost { time_ns: 300_000_000_000, at_most: true, unbounded_ns: 5_000_000_000, ..Cost::default() };
    assert_eq!(
        searched.sentence(),
        "It takes at most 5 min. It writes as much as the target can write in at most 5.00 s."
    );
}
