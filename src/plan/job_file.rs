//! Job files that were named as targets.
//!
//! For: refusing to measure a few bytes of text that were meant to be carried out. Not for: whose job file a text is, nor reading one
//! (crate `dialect`).

use crate::failure::Failure;
use crate::input::{self, Small};
use dialect::{MAX_FILE_BYTES, Tool, of_name, what_language};
use model::name;
use model::units::show_bytes;
use std::path::Path;

/// How names of fio's files end too.
const OF_FIO: &str = "job";

/// Refuses a file that is a job: by what stands in it, or by its name where it is a text. Nobody means to measure its few bytes.
pub(super) fn refuse(said: &Path) -> Result<(), Failure> {
    let Small::Read(content) = input::small(said, MAX_FILE_BYTES as u64) else { return Ok(()) };
    let is_text = std::str::from_utf8(&content).is_ok_and(|text| !text.contains('\0'));
    let Some(tool) = what_language(&content).or_else(|| named(said).filter(|_| is_text)) else {
        return Ok(());
    };
    let name = name::shown(said);
    Err(Failure::Usage(format!(
        "{name} is a job file of {} ({}) and no disk to measure; `fathom run {name}` carries it out",
        tool.word(),
        show_bytes(content.len() as u64)
    )))
}

/// Whose job files have names that end like this one.
fn named(said: &Path) -> Option<Tool> {
    let extension = said.extension()?;
    let of_fio = extension.eq_ignore_ascii_case(OF_FIO).then_some(Tool::Fio);
    of_name(said).map(|language| language.tool).or(of_fio)
}
