//! One file per format; the table is in the crate's root.

mod course;
pub(crate) mod json;
mod layers;
mod ledger;
mod sweep;
pub(crate) mod text;
