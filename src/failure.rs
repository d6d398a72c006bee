//! Failures that end the program without a report, each with its exit code.
//!
//! For: one message for people on standard error. Not for: findings, which are results.

use std::process::ExitCode;

/// Why there is no report.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done by anybody: exit 2.
    Usage(String),
    /// The machine or its owner refuses: exit 3.
    Refused(String),
    /// A signal ended it before anything was measured: exit 130.
    Interrupted,
}

impl Failure {
    /// The message alone.
    pub fn words(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Refused(text) => text,
            Self::Interrupted => "interrupted before anything was measured; nothing is left behind",
        }
    }

    /// Prints the message and gives the exit code.
    pub fn tell(&self) -> ExitCode {
        let code = match self {
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
            Self::Interrupted => 130,
        };
        eprintln!("fathom: {}", self.words());
        ExitCode::from(code)
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
