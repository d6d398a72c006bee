//! A completion, and how long one is waited for.
//!
//! For: what every asynchronous interface gives back, in the same form. Not for: how each of them gets it.

use std::time::Duration;

/// Longest time a wait stays in the kernel, so that a stop is seen.
pub const WAIT_LIMIT: Duration = Duration::from_millis(100);
/// How long a drop waits for operations in flight before it leaks what they use.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// An operation's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Where the data of its operation are.
    pub slot: u32,
    /// Bytes moved, or minus errno.
    pub result: i32,
}
