//! The capture file.
//!
//! For: writing rows as they come, and reading them back as far as they are whole. Not for: what they mean.
//!
//! A line `fathom capture 1`, then frames: a letter (`H` header, `B` block, `E` end), the length of what follows and its CRC-32 as numbers
//! of 32 bits, the lowest byte first, then that. Header and end are JSON. A block has up to [`BLOCK_ROWS`] rows in columns, compressed
//! with LZ4; each is whole in itself, so a file that was cut off is readable up to its last whole block.

pub mod block;
mod frame;
mod reader;
mod varint;
mod writer;

pub use self::block::BLOCK_ROWS;
pub use self::frame::MAGIC;
pub use self::reader::{Reader, Unreadable};
pub use self::writer::Writer;
