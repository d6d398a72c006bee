//! What two looks at a running machine come to: figures of devices, and what their load is of what was measured.
//!
//! For: formulas over counters, pure. Not for: looking (the crate `machine`), nor for measurements of fathom's own, which are
//! judged from records.

pub mod figures;
pub mod head_room;
