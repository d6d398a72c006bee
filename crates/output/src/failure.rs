//! Failures that end the program without a report, each with its exit code and one message on standard error.

use crate::stderr;
use machine::error::MachineError;
use std::process::ExitCode;
pub use sys::cause;

/// Exit code after any signal that ended the program: 130, which shells use for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Why there is no report.
#[derive(Debug)]
pub enum Failure {
    /// The command is impossible on any machine: exit code 2.
    Usage(String),
    /// Text that the user typed, such as a job file, is invalid: exit code 2. The message quotes
    /// the text and points at the error, in colours on a terminal.
    Pointed {
        /// The message.
        plain: String,
        /// The same message in colours.
        coloured: String,
    },
    /// The machine or its settings do not allow the command: exit code 3.
    Refused(String),
    /// A signal ended the program before it measured anything: exit code 130.
    Interrupted,
    /// Another host prints the reason. This process only sets the exit code.
    Elsewhere(u8),
}

impl Failure {
    /// Returns the message without the prefix `fathom: `.
    pub fn message(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Refused(text) | Self::Pointed { plain: text, .. } => text,
            Self::Elsewhere(_) => "another host prints the reason",
            Self::Interrupted => "interrupted; there is no result",
        }
    }

    /// Returns the exit code, as the variants state.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Pointed { .. } => 2,
            Self::Refused(_) => 3,
            Self::Interrupted => INTERRUPTED,
            Self::Elsewhere(code) => *code,
        }
    }

    /// Prints the message to standard error, except that of [`Self::Elsewhere`]. Returns the exit
    /// code.
    pub fn print(&self) -> ExitCode {
        match self {
            Self::Elsewhere(_) => {}
            Self::Pointed { plain, coloured } => {
                stderr::print_coloured(&format!("fathom: {plain}"), &format!("fathom: {coloured}"));
            }
            _ => stderr::print(&format!("fathom: {}", self.message())),
        }
        ExitCode::from(self.code())
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Usage(why) => Self::Usage(why),
            MachineError::NotNamed(target) => Self::Usage(target.message),
            MachineError::Refused(why) => Self::Refused(why),
        }
    }
}
