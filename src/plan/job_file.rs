//! Workloads that were named as targets: job files, captures, traces.
//!
//! For: refusing to measure the few bytes of what was meant to be carried out. Not for: whose job file a text is, nor reading one
//! (crate `dialect`), nor the files themselves ([`crate::capture_file`], [`crate::trace`]).

use crate::capture_file::is_capture;
use crate::failure::Failure;
use crate::input::{self, Small};
use crate::trace;
use dialect::{MAX_FILE_BYTES, Tool, of_name, what_language};
use model::name;
use model::units::show_bytes;
use std::path::Path;

/// How names of fio's files end too.
const OF_FIO: &str = "job";

/// Refuses a file that is a workload: by what stands in it, or a text by its name. Nobody means to measure its few bytes.
pub(super) fn refuse(said: &Path) -> Result<(), Failure> {
    let name = name::shown(said);
    let is_no_disk =
        |what: String, then: &str| Failure::Usage(format!("{name} is {what} and no disk to measure; {then}"));
    if is_capture(said) {
        let then = format!("`fathom run {name} TARGET` replays it, `fathom show {name}` shows it");
        return Err(is_no_disk("a capture".into(), &then));
    }
    if let Some(language) = trace::trace_language(said) {
        let then =
            format!("`fathom capture --import {name} -o x.capture` makes a capture of it, to be replayed");
        return Err(is_no_disk(format!("a trace ({})", language.name()), &then));
    }
    let Small::Read(content) = input::small(said, MAX_FILE_BYTES as u64) else { return Ok(()) };
    let is_text = std::str::from_utf8(&content).is_ok_and(|text| !text.contains('\0'));
    let Some(tool) = what_language(&content).or_else(|| named(said).filter(|_| is_text)) else {
        return Ok(());
    };
    let what = format!("a job file of {} ({})", tool.word(), show_bytes(content.len() as u64));
    Err(is_no_disk(what, &format!("`fathom run {name}` carries it out")))
}

/// Whose job files have names that end like this one.
fn named(said: &Path) -> Option<Tool> {
    let extension = said.extension()?;
    let of_fio = extension.eq_ignore_ascii_case(OF_FIO).then_some(Tool::Fio);
    of_name(said).map(|language| language.tool).or(of_fio)
}
