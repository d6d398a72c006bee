//! One file per format; the table is in the crate's root.

mod course;
pub(crate) mod json;
pub(crate) mod text;
