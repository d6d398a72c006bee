//! Jobs that are carried out as another tool would carry them out.
//!
//! For: the request of a command line in that tool's language. Not for: its manners ([`crate::foreign`]).

use crate::allowed;
use crate::request::{JobSource, Request, Work};
use dialect::Tool;
use model::name;
use model::spec::{JobSpec, Rw};
use std::path::{Path, PathBuf};

/// Asks for a job as a tool measures it: once, whatever others do meanwhile. `destroy` names what may be overwritten, with what is allowed
/// beside the command line.
pub(super) fn request(tool: Tool, mut job: JobSpec, mut destroy: Vec<String>, keep: bool) -> Request {
    job.runs = Some(1);
    job.attempts = Some(1);
    destroy.extend(allowed(&job));
    Request {
        command: std::env::args_os().map(name::text).collect(),
        work: Work::Job,
        job,
        source: Some(JobSource::CommandOf(tool)),
        flags: Vec::new(),
        targets: Vec::new(),
        destroy,
        unseen_users: allowed::unseen_users(),
        hook: None,
        against: None,
        fail_if_slower: None,
        keep,
        expect_device: None,
        budget_ns: None,
        ranks_per_host: None,
        hosts: Vec::new(),
    }
}

/// What this job would overwrite of what may be: that may be said for many.
fn allowed(job: &JobSpec) -> Vec<String> {
    let reads = |rw: &Option<Rw>| matches!(rw, Some(Rw::Read | Rw::Randread));
    let streams = job.phases.iter().flat_map(|phase| &phase.streams).filter(|stream| !reads(&stream.rw));
    // The same file may be written down in several ways.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let targets: Vec<PathBuf> =
        streams.flat_map(|stream| &stream.target).map(|target| real(&name::path(target))).collect();
    // A log may name its file by itself.
    let is_any =
        job.phases.iter().flat_map(|phase| &phase.streams).any(|s| s.replay.is_some() && s.target.is_empty());
    let is_target = |path: &Path| is_any || targets.contains(&real(path));
    allowed::paths().into_iter().filter(|path| is_target(path)).map(name::text).collect()
}
