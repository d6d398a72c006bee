//! A verification as text: the verdict first, then every damage with its place.

use crate::Style;
use crate::page::Page;
use crate::view::verification::{
    damage_items, verdict_on_all_hosts, verification_headline, verification_notes, verification_rates,
};
use model::verification::{Verifications, Verified};
use std::io;

pub(super) fn write_verification(
    all: &Verifications,
    style: Style,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let mut out = Page::new(style);
    if let Some(verified) = all.only() {
        out.paragraph(&verification_headline(verified));
        show_host_details(verified, &mut out);
        return out.write(to);
    }
    out.paragraph(&verdict_on_all_hosts(all));
    for on in &all.hosts {
        let host = format!("{}: ", on.host.as_deref().unwrap_or_default());
        match &on.outcome {
            Ok(verified) => {
                out.prose(&host, "  ", &verification_headline(verified));
                show_host_details(verified, &mut out);
            }
            Err(why) => out.prose(&host, "  ", why),
        }
    }
    out.write(to)
}

/// Prints the facts of a host other than its verdict.
fn show_host_details(verified: &Verified, out: &mut Page) {
    for line in damage_items(verified) {
        out.note(&line);
    }
    for note in verification_notes(verified) {
        out.prose("  Note: ", "    ", &format!("{note}."));
    }
    if let Some(rates) = verification_rates(verified) {
        out.note(&rates);
    }
}
