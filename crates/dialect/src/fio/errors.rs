//! Errors of operations that end a job, and those that it goes on after.
//!
//! For: `continue_on_error` and `ignore_error`. Not for: what becomes of errors, which are counted and told whatever stands there.

use super::access::ParsedRw;
use super::jobs::{Fault, Job};
use model::errno::{by_direction, ignored_errors};
use model::job::{ALL_ERRORS, IgnoredError, Kind};
use model::spec::StreamSpec;

/// Which errors end it; as many as elsewhere where nothing is said.
pub(super) fn errors(job: &Job, way: &ParsedRw, checks: bool, one: &mut StreamSpec) -> Result<(), Fault> {
    let mut ignored = match job.text("continue_on_error") {
        None | Some("none" | "0") => Vec::new(),
        Some(text) => {
            let all = tolerated(job, checks, text)?;
            if way.directions().iter().all(|direction| all.contains(&Kind::ALL[*direction])) {
                one.max_errors = Some(ALL_ERRORS);
            }
            all.into_iter().map(|kind| IgnoredError { kind: Some(kind), errno: None }).collect()
        }
    };
    if one.max_errors == Some(ALL_ERRORS) {
        ignored.clear();
    }
    if let Some(text) = job.text("ignore_error").map(by_direction).filter(|text| !text.is_empty()) {
        ignored.extend(ignored_errors(&text).map_err(|why| job.fault("ignore_error", why))?);
    }
    one.ignored_errors = Some(ignored).filter(|ignored| !ignored.is_empty());
    Ok(())
}

/// Kinds of operations that may all fail.
fn tolerated(job: &Job, checks: bool, text: &str) -> Result<Vec<Kind>, Fault> {
    match text {
        "all" | "io" | "1" | "" => Ok(Kind::ALL.to_vec()),
        "read" => Ok(vec![Kind::Read]),
        // A flush belongs to writes.
        "write" => Ok(vec![Kind::Write, Kind::Sync]),
        // What differs is an error like others here.
        "verify" if checks => Ok(Kind::ALL.to_vec()),
        _ => Err(job.fault(
            "continue_on_error",
            "it is none, read, write, io, all, or verify where something is compared; type one of them",
        )),
    }
}
