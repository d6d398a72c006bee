//! What came of a verification in Markdown.
//!
//! For: the verdict, then damage and what has to be known beside it. Not for: finding anything out.

use super::code;
use crate::format::Style;
use crate::formats::text::verified::{
    damage_items, verdict_on_all_hosts, verification_headline, verification_rates,
};
use crate::table::escaped;
use crate::verified::verification_notes;
use model::verified::{Verifications, Verified};
use std::io::{self, Write};

pub(super) fn write_verification(all: &Verifications, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let words = all.only().map_or_else(|| verdict_on_all_hosts(all), verification_headline);
    let (verdict, rest) = words.split_at(all.verdict().word().len());
    let mut out = format!("**{verdict}**{}\n\n", escaped(rest));
    if let Some(of) = all.only() {
        out += &host_items(of);
        out += &format!("\nfathom {}, {}\n", all.fathom.version, code(&of.target));
    } else {
        for on in &all.hosts {
            out += &format!("### {}\n\n", escaped(on.host.as_deref().unwrap_or_default()));
            out += &match &on.outcome {
                Ok(of) => format!(
                    "{}, {}\n\n{}\n",
                    escaped(&verification_headline(of)),
                    code(&of.target),
                    host_items(of)
                ),
                Err(why) => format!("{}\n\n", escaped(why)),
            };
        }
        out += &format!("fathom {}\n", all.fathom.version);
    }
    to.write_all(out.as_bytes())
}

/// What there is to know of a host beside its verdict.
fn host_items(of: &Verified) -> String {
    let notes = verification_notes(of).into_iter().map(|note| format!("{note}."));
    let items = damage_items(of).into_iter().chain(notes).chain(verification_rates(of));
    items.fold(String::new(), |out, item| out + "- " + &escaped(&item) + "\n")
}
