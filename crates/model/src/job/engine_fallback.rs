//! The record of an engine that replaced the default one because the kernel or a sandbox denies that.

use serde::{Deserialize, Serialize};

/// The engine that a stream would have used, and why it uses another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineFallback {
    /// Name of the default engine.
    pub wanted: String,
    /// What denies it, without a full stop at the end.
    pub cause: String,
}

impl EngineFallback {
    /// The line for reports: which engine could not be used, why, and which one replaced it.
    pub fn sentence(&self, used: &str) -> String {
        format!("cannot use {}: {}; using {used} instead, at the same queue depth", self.wanted, self.cause)
    }
}
