//! What came of a verification in Markdown.
//!
//! For: the verdict, then damage and what has to be known beside it. Not for: finding anything out.

use super::code;
use crate::format::Style;
use crate::formats::text::verified::{damage, headline, rates};
use crate::table::escaped;
use crate::verified::notes;
use model::verified::Verified;
use std::io::{self, Write};

pub(super) fn write(of: &Verified, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let words = headline(of);
    let (verdict, rest) = words.split_at(of.verdict().word().len());
    let mut out = format!("**{verdict}**{}\n\n", escaped(rest));
    let notes = notes(of).into_iter().map(|note| format!("{note}."));
    for item in damage(of).into_iter().chain(notes).chain(rates(of)) {
        out += &format!("- {}\n", escaped(&item));
    }
    out += &format!("\nfathom {}, {}\n", of.fathom.version, code(&of.target));
    to.write_all(out.as_bytes())
}
