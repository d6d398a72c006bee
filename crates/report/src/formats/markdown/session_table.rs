//! A table of sessions in Markdown: what several disks came to, side by side.
//!
//! For: documents and comments. Not for: which sessions are in it.

use crate::format::Style;
use crate::formats::text::session_table::{foot, legend, remarks, table};
use crate::table::escaped;
use model::history::SessionTable;
use std::io::{self, Write};

pub(super) fn write(sessions: &SessionTable, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = String::new();
    if !sessions.rows.is_empty() {
        let table = table(sessions);
        out += &format!("{}\n{}\n", table.markdown(), escaped(&legend(&table)));
    }
    for words in remarks(sessions).into_iter().chain(foot(sessions)) {
        out += &format!("\n{}\n", escaped(&words));
    }
    to.write_all(out.as_bytes())
}
