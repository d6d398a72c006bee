//! The parts of a check's page, and which of their lines are commands.
//!
//! For: what text and Markdown share. Not for: how a part looks.

use model::check_page::CheckPage;

/// Heading of what makes a check fire: mostly commands.
pub(crate) const TO_FIRE: &str = "To see it fire";

/// The parts of a page that are written, under their headings.
pub(crate) fn page_parts(page: &CheckPage) -> impl Iterator<Item = (&'static str, &str)> {
    let all: [(_, &str); 4] = [
        ("What it reads", page.reads),
        ("Formula", &page.formula),
        (TO_FIRE, page.provoke),
        ("What to do", &page.repair),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty())
}

/// Whether a line is a command to type, which keeps its form: one that is indented, or of [`TO_FIRE`] one that neither ends as a
/// sentence does nor marks its commands itself.
pub(crate) fn is_command(heading: &str, line: &str) -> bool {
    line.starts_with(' ') || (heading == TO_FIRE && !line.ends_with(['.', ':', ';']) && !line.contains('`'))
}
