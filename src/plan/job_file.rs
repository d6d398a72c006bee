//! Job files that were named as targets.
//!
//! For: refusing to measure a few bytes of text that were meant to be carried out. Not for: reading job files (crate `dialect`).

use crate::failure::Failure;
use crate::input;
use model::name;
use model::plan::{Role, Target};
use model::units::show_bytes;
use std::path::Path;

/// Extensions of files in which other tools of this trade keep their jobs.
const FOREIGN: [&str; 5] = ["fio", "job", "icf", "ini", "xml"];
/// A larger file is no job, whatever its name.
const MOST_JOB_BYTES: u64 = 1 << 20;

/// Refuses a text that has the name of a job file: nobody means to measure its few bytes.
pub(super) fn refuse(said: &Path, target: &Target) -> Result<(), Failure> {
    let extension =
        said.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).unwrap_or_default();
    let is_text = || input::text(said, MOST_JOB_BYTES).is_ok_and(|text| !text.contains('\0'));
    let ours = dialect::of_name(said).is_some();
    if target.role != Role::File || !(ours || FOREIGN.contains(&extension.as_str())) || !is_text() {
        return Ok(());
    }
    let name = name::shown(said);
    let instead = if ours {
        format!("`fathom run {name}` carries it out")
    } else {
        format!(
            "fathom does not read .{extension} files; write the job in TOML (docs/jobs.md), and type `fathom run JOB.toml`"
        )
    };
    Err(Failure::Usage(format!(
        "{name} is a job file of {} and no disk to measure; {instead}",
        show_bytes(target.bytes)
    )))
}
