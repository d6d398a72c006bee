//! Job files that were named as targets.
//!
//! For: refusing to measure a few bytes of text that were meant to be carried out. Not for: whose job file a text is, nor reading one
//! (crate `dialect`).

use crate::failure::Failure;
use crate::input::{self, Small};
use dialect::{MAX_FILE_BYTES, Tool, of_name, of_tool, what_language};
use model::name;
use model::units::show_bytes;
use std::path::Path;

/// Ends of names of files in which other tools keep their jobs.
const FOREIGN: [(&str, Tool); 4] =
    [("fio", Tool::Fio), ("job", Tool::Fio), ("icf", Tool::Iometer), ("xml", Tool::Diskspd)];

/// Refuses a file that is a job: by what stands in it, or by its name where it is a text. Nobody means to measure its few bytes.
pub(super) fn refuse(said: &Path) -> Result<(), Failure> {
    let Small::Read(content) = input::small(said, MAX_FILE_BYTES as u64) else { return Ok(()) };
    let is_text = std::str::from_utf8(&content).is_ok_and(|text| !text.contains('\0'));
    let Some(tool) = what_language(&content).or_else(|| named(said).filter(|_| is_text)) else {
        return Ok(());
    };
    let name = name::shown(said);
    let instead = match (of_tool(tool), tool) {
        (Some(_), _) => format!("`fathom run {name}` carries it out"),
        (None, Tool::Iometer) => "fathom does not read those; `fathom sweep --preset iometer` has the access specifications that \
                                  come with Iometer, and with --line (docs/jobs.md) any other is written for `fathom run JOB.toml`"
            .into(),
        (None, _) => "fathom does not read those; docs/coming-from.md says what its options are called here, as flags or in a job \
                      of your own for `fathom run JOB.toml`"
            .into(),
    };
    Err(Failure::Usage(format!(
        "{name} is a job file of {} ({}) and no disk to measure; {instead}",
        tool.word(),
        show_bytes(content.len() as u64)
    )))
}

/// Whose job files have names that end like this one.
fn named(said: &Path) -> Option<Tool> {
    let extension = said.extension()?;
    let foreign = FOREIGN.iter().find(|(end, _)| extension.eq_ignore_ascii_case(end)).map(|(_, tool)| *tool);
    of_name(said).map(|language| language.tool).or(foreign)
}
