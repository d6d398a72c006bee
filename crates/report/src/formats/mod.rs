//! One file per format; the table is in the crate's root.

mod api;
mod course;
pub(crate) mod csv;
pub(crate) mod json;
mod layers;
mod ledger;
pub(crate) mod text;
