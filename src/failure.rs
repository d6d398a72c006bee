//! Failures that end the program without a report, each with its exit code.
//!
//! For: one message for people on standard error. Not for: findings, which are results.

use crate::stderr;
use std::process::ExitCode;
pub(crate) use sys::cause;

/// Why there is no report.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done by anybody: exit 2.
    Usage(String),
    /// What a typed text asks for cannot be done by anybody; the message shows the place in it, on a terminal in colours: exit 2.
    Pointed {
        /// The message.
        plain: String,
        /// The message in colours.
        coloured: String,
    },
    /// The machine or its owner refuses: exit 3.
    Refused(String),
    /// A signal ended it before anything was measured: exit 130.
    Interrupted,
    /// Another process of the same measurement tells why; this one only has the exit code.
    Elsewhere(u8),
}

impl Failure {
    /// The message alone.
    pub fn message(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Refused(text) | Self::Pointed { plain: text, .. } => text,
            Self::Elsewhere(_) => "another host says why",
            Self::Interrupted => "interrupted before anything was measured; nothing is left behind",
        }
    }

    /// The exit code that it asks for.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Pointed { .. } => 2,
            Self::Refused(_) => 3,
            Self::Interrupted => 130,
            Self::Elsewhere(code) => *code,
        }
    }

    /// Prints the message and gives the exit code.
    pub fn tell(&self) -> ExitCode {
        match self {
            Self::Elsewhere(_) => {}
            Self::Pointed { plain, coloured } => {
                stderr::say_coloured(&format!("fathom: {plain}"), &format!("fathom: {coloured}"));
            }
            _ => stderr::say(&format!("fathom: {}", self.message())),
        }
        ExitCode::from(self.code())
    }
}

impl From<machine::error::MachineError> for Failure {
    fn from(error: machine::error::MachineError) -> Self {
        match error.class() {
            machine::error::Class::Usage => Self::Usage(error.to_string()),
            machine::error::Class::Refused => Self::Refused(error.to_string()),
        }
    }
}
