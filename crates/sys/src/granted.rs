//! What the kernel granted of what was asked for when an interface was set up.
//!
//! For: saying in the report what was really in use. Not for: asking.

/// What the kernel was asked for at set-up, and granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Features in use, in words.
    pub used: Vec<String>,
    /// Features refused, with the reason.
    pub fallbacks: Vec<String>,
}
