//! What came of a verification in Markdown.
//!
//! For: the verdict, then damage and what has to be known beside it. Not for: finding anything out.

use super::code;
use crate::format::Style;
use crate::formats::text::verified::{damage, headline, rates, together};
use crate::table::escaped;
use crate::verified::notes;
use model::verification::{Verifications, Verified};
use std::io::{self, Write};

pub(super) fn write(all: &Verifications, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let words = all.only().map_or_else(|| together(all), headline);
    let (verdict, rest) = words.split_at(all.verdict().word().len());
    let mut out = format!("**{verdict}**{}\n\n", escaped(rest));
    if let Some(of) = all.only() {
        out += &items(of);
        out += &format!("\nfathom {}, {}\n", all.fathom.version, code(&of.target));
    } else {
        for on in &all.hosts {
            out += &format!("### {}\n\n", escaped(on.host.as_deref().unwrap_or_default()));
            out += &match &on.outcome {
                Ok(of) => format!("{}, {}\n\n{}\n", escaped(&headline(of)), code(&of.target), items(of)),
                Err(why) => format!("{}\n\n", escaped(why)),
            };
        }
        out += &format!("fathom {}\n", all.fathom.version);
    }
    to.write_all(out.as_bytes())
}

/// What there is to know of a host beside its verdict.
fn items(of: &Verified) -> String {
    let notes = notes(of).into_iter().map(|note| format!("{note}."));
    let items = damage(of).into_iter().chain(notes).chain(rates(of));
    items.fold(String::new(), |out, item| out + "- " + &escaped(&item) + "\n")
}
