//! One file per format; the table is in the crate's root.

pub(crate) mod json;
mod ledger;
pub(crate) mod text;
