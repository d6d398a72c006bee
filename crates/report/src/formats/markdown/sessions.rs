//! A list of sessions in Markdown: a table of what was measured.
//!
//! For: documents and comments. Not for: what is in a session.

use crate::format::Style;
use crate::formats::text::sessions::{list_foot, list_table};
use crate::table::escaped;
use model::entry::Listing;
use std::io::{self, Write};

pub(super) fn write_list(listing: &Listing, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out =
        if listing.entries.is_empty() { String::new() } else { list_table(&listing.entries).markdown() };
    for (entry, why) in listing.entries.iter().filter_map(|e| Some((e, e.problem.as_ref()?))) {
        out += &format!("\n- {}\n", escaped(&format!("{}: {why}", entry.id)));
    }
    for words in list_foot(listing) {
        out += &format!("\n{}\n", escaped(&words));
    }
    to.write_all(out.as_bytes())
}
