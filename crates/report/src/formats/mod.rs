//! One file per format; the table is in the crate's root.

mod against;
mod api;
mod card;
mod course;
pub(crate) mod csv;
pub(crate) mod json;
mod layers;
mod ledger;
mod limit;
mod runs;
mod sweep;
pub(crate) mod text;
