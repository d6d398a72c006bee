//! Entries of a list, for tests of several formats.
//!
//! For: one that says most things. Not for: reports, which are golden files.

use model::entry::Entry;
use model::report::{Ending, Headline, Verdict};

/// A complete session with a suspect headline, of two targets.
pub(crate) fn entry(id: &str) -> Entry {
    Entry {
        id: id.into(),
        started: Some("2026-11-21T16:12:26+01:00".into()),
        verdict: Some(Verdict::Suspect),
        headline: Some(Headline {
            name: "4K random read".into(),
            value: Some(2000.0),
            unit: "IOPS".into(),
            interval: Some([1900.0, 2100.0]),
        }),
        ending: Some(Ending::Complete),
        targets: vec!["/a".into(), "/b".into()],
        ..Entry::default()
    }
}
