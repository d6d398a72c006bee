//! The format `json`: the report as it is. Its names are a contract (format 1).

use crate::Style;
use model::report::Report;

pub(crate) fn render(report: &Report, _: Style) -> Vec<u8> {
    // A report holds strings, numbers and maps with string keys only, which always have a JSON form.
    let mut bytes = serde_json::to_vec_pretty(report).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
