//! What is taken: which requests are measured on several hosts.
//!
//! For: saying what is not, before anything is planned. Not for: what one host alone refuses (`crate::plan`), nor what is known of plans
//! only (`super::settle`).

use crate::request::{BenchSpec, JobSource, Request, Work};

/// Why a request is not measured on several hosts; `None` where it is.
pub(super) fn refusal(request: &Request) -> Option<String> {
    let Request { work, job, source, against, .. } = request;
    let what = match work {
        Work::Profile(BenchSpec { quick: true, .. }) => "--quick",
        Work::Profile(BenchSpec { compare: true, .. }) => "--compare",
        Work::Layers => "`fathom layers`",
        Work::Api { .. } => "`fathom api`",
        Work::Profile(_) | Work::Job | Work::Limit(_) | Work::Sweep(_) => match source {
            Some(JobSource::CommandOf(_)) => "the command of another tool",
            _ if against.is_some() => "--against",
            _ if job.op_log.is_some() => "--op-log",
            _ if job.precondition == Some(true) => "--precondition",
            _ if job.settle == Some(true) => "--settle",
            _ => return None,
        },
    };
    Some(format!(
        "{what} is of one host, and several were started; leave it out, or start fathom on one host without the launcher (of several hosts are `fathom run`, `fathom bench`, `fathom limit`, `fathom sweep` and `fathom verify`)"
    ))
}
