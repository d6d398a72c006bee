//! Forms of a comparison: one file each, and their table.
//!
//! For: a comparison in, bytes out. Not for: reports ([`crate::FORMATS`]), nor deciding anything.

mod markdown;
pub(crate) mod rows;
mod text;

use crate::Style;
use model::comparison::Comparison;

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// What `--format` takes.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Renders a comparison.
    pub render: fn(&Comparison, Style) -> Vec<u8>,
}

impl Form {
    /// Whether programs read it, and text in it is quoted as JSON does.
    pub fn is_json(&self) -> bool {
        self.name == "json"
    }
}

/// Every form there is.
pub const FORMS: &[Form] = &[
    Form { name: "text", about: "answer, table and findings, to read and to paste", render: text::render },
    Form { name: "json", about: "everything, for programs", render: json },
    Form { name: "markdown", about: "answer and table, for a comment on a change", render: markdown::render },
];

/// The form of that name.
pub fn find(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|f| f.name == name)
}

fn json(comparison: &Comparison, _: Style) -> Vec<u8> {
    // Strings, numbers and lists always have a JSON form.
    let mut bytes = serde_json::to_vec_pretty(comparison).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
