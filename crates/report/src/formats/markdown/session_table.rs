//! A table of sessions in Markdown: what several disks came to, side by side.
//!
//! For: documents and comments. Not for: which sessions are in it.

use crate::format::Style;
use crate::formats::text::session_table::{
    session_remarks, session_table, session_table_foot, session_table_legend,
};
use crate::table::escaped;
use model::session_table::SessionTable;
use std::io::{self, Write};

pub(super) fn write_session_table(sessions: &SessionTable, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = String::new();
    if !sessions.rows.is_empty() {
        let table = session_table(sessions);
        out += &format!("{}\n{}\n", table.markdown(), escaped(&session_table_legend(&table)));
    }
    for words in session_remarks(sessions).into_iter().chain(session_table_foot(sessions)) {
        out += &format!("\n{}\n", escaped(&words));
    }
    to.write_all(out.as_bytes())
}
