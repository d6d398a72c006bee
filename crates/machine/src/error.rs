//! Why the machine, or its owner, does not allow something: a sentence with cause and cure.

/// Whose fault it is, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The request can be mended by typing something else: exit 2.
    Usage,
    /// The machine refuses: permission, space, a device in use: exit 3.
    Refused,
}

/// An error for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct MachineError {
    class: Class,
    text: String,
}

impl MachineError {
    /// The request can be mended.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { class: Class::Usage, text: text.into() }
    }

    /// The machine refuses.
    pub fn refused(text: impl Into<String>) -> Self {
        Self { class: Class::Refused, text: text.into() }
    }

    /// Whose fault it is.
    pub fn class(&self) -> Class {
        self.class
    }
}
