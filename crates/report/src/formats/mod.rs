//! One file per format; the table is in the crate's root.

mod against;
mod api;
mod card;
mod course;
pub(crate) mod csv;
mod iops;
pub(crate) mod json;
mod layers;
mod ledger;
mod limit;
mod pts;
mod runs;
mod sweep;
pub(crate) mod text;
