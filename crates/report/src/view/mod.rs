//! The contents of reports as plain data, which every format renders: tables, sentences, and names with values.
//!
//! One file for each kind of content, independent of formats.

pub(crate) mod captures;
pub(crate) mod comparison;
pub(crate) mod findings;
pub(crate) mod lists;
pub(crate) mod machine;
pub(crate) mod numbers;
pub(crate) mod plan;
pub(crate) mod records;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod sessions;
pub(crate) mod studies;
pub(crate) mod sweep;
pub(crate) mod table;
pub(crate) mod verification;
