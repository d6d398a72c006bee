//! DISKSPD's text and its XML, from results of fathom.
//!
//! For: people and programs that read those. Not for: anything that DISKSPD has no word for but the verdict, which stands in an element
//! of its own, and behind the text. Where fathom has no such figure the element is left out, and the text says N/A: a percentile that too
//! few operations support, a power scheme.
//!
//! What was asked for (`profile_text`, `profile_xml`) stands before what came of it (`text`, `xml`), which is the same for both (`span`
//! with `figures`), and the machine (`system`). Layout: DISKSPD 2.2, `ResultParser`, `XmlResultParser` and their tests (MIT licence).

mod figures;
mod profile_text;
mod profile_xml;
mod span;
mod system;
#[cfg(test)]
mod tests;
mod text;
mod xml;

pub(super) use span::groups;

use crate::format::{Content, Format};
use model::diskspd::Profile;

/// The version whose formats these are, as programs expect it, and its date.
const VERSION: [&str; 2] = ["2.2.0", "2024/6/3"];

/// The name of the format that is its text.
pub const NAME: &str = "diskspd";
/// The name of the format that is its XML.
pub const XML_NAME: &str = "diskspd-xml";

pub(super) static TEXT: Format =
    Format::of_measurements(NAME, "txt", Content::Text, "as DISKSPD prints it", text::write_text);
pub(super) static XML: Format =
    Format::of_measurements(XML_NAME, "xml", Content::Text, "as DISKSPD's XML", |report, _, to| {
        xml::write_xml(report, to)
    });

/// What was asked for, as DISKSPD prints it for `-Rp`.
pub fn profile(profile: &Profile) -> String {
    if profile.xml { profile_xml::profile_xml(profile, 0) } else { profile_text::profile_text(profile) }
}
