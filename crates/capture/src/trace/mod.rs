//! The kernel's trace of block I/O: from the pages of its ring buffers to rows.
//!
//! For: reading what the kernel says about its own formats, decoding, ordering, pairing. Not for: files of tracefs.
//! Formats: kernel `Documentation/trace/ring-buffer-map.rst`, `events.rst`, and each event's own `format` file.

pub mod calls;
pub mod command;
pub mod event;
pub mod format;
pub mod merge;
pub mod page;
pub mod pair;
mod slots;

/// Why the kernel's text or bytes are not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Foreign(pub String);
