//! The format `json`: the report as it is. Its names are a contract (format 1), which the schema tells to programs.

use crate::Style;
use model::report::Report;

pub(crate) fn render(report: &Report, _: Style) -> Vec<u8> {
    // A report holds strings, numbers and maps with string keys only, which always have a JSON form.
    let mut bytes = serde_json::to_vec_pretty(report).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The JSON schema (draft 2020-12) of what this format renders.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Report);
    schema.insert("title".into(), "Report of fathom, format 1".into());
    format!("{:#}\n", schema.to_value())
}
