//! `fathom doctor`: a look at a place before anything is measured there.
//!
//! For: all that can be known beforehand and would spoil a number, each with what repairs it. Not for: measuring, nor for
//! changing anything; the cures are commands that the reader types.
//!
//! `seen` does all the looking; every other file answers from what was seen, so that its answers can be tested.

mod chain;
mod data;
mod device;
mod health;
mod host;
mod neighbours;
mod rights;
mod seen;
mod show;

use crate::failure::Failure;
use crate::{stderr, stdout};
use model::diagnosis::{Diagnosis, FORMAT, Group, Look};
use seen::Seen;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The place.
    pub target: PathBuf,
    /// JSON instead of text.
    pub json: bool,
}

/// Looks, and prints what was seen.
///
/// # Errors
/// Where the target cannot be looked at, or is neither a directory, a file nor a block device.
pub fn doctor(wish: &Wish) -> Result<ExitCode, Failure> {
    if std::io::stderr().is_terminal() {
        stderr::say(&format!("watching for {} s what others do ...", seen::WATCH.as_secs()));
    }
    let seen = seen::look(&wish.target)?;
    let diagnosis = diagnose(seen);
    if wish.json {
        let text = serde_json::to_string_pretty(&diagnosis);
        let text = text.map_err(|e| Failure::Refused(format!("the diagnosis has no form in JSON: {e}")))?;
        stdout::json(text + "\n")?;
    } else {
        stdout::coloured(&show::text(&diagnosis, false), &show::text(&diagnosis, true))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn diagnose(seen: Seen) -> Diagnosis {
    let group = |heading: &str, looks: Vec<Look>| Group { heading: heading.into(), looks };
    let groups = vec![
        group("Where it is", chain::looks(&seen)),
        group("What is stored there", data::looks(&seen)),
        group("The device below", [device::looks(&seen), health::looks(&seen)].concat()),
        group("The machine", host::looks(&seen)),
        group("Who else is here", neighbours::looks(&seen)),
        group("What fathom may do here", rights::looks(&seen)),
    ];
    Diagnosis {
        format: FORMAT,
        target: seen.path.to_string_lossy().into_owned(),
        chain: seen.place().chain(),
        watched_ms: seen.watched_ns() / 1_000_000,
        groups: groups.into_iter().filter(|g| !g.looks.is_empty()).collect(),
        machine: seen.machine,
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn paths_can_be_pasted_into_a_shell() {
    assert_eq!(quoted(Path::new("/data/a-b_c.1")), "/data/a-b_c.1");
    assert_eq!(quoted(Path::new("/it's here")), r"'/it'\''s here'");
}
