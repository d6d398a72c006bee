//! Growing numbers of hosts: the job that was said, once for each of them.
//!
//! For: `--hosts 1,2,4`. Not for: which hosts there are, which only a launcher knows (`crate::fleet`).

use super::DraftJob;
use super::origins::Origins;
use crate::failure::Failure;
use crate::request::Request;
use model::study::HostSteps;

/// Repeats the job that was said for each number of hosts; `None` where none was said.
///
/// # Errors
/// Where the job has no one rate that could grow.
pub(super) fn steps(
    request: &Request,
    drafts: &mut Vec<DraftJob>,
    origins: &mut Origins,
) -> Result<Option<HostSteps>, Failure> {
    if request.hosts.is_empty() {
        return Ok(None);
    }
    let [job] = drafts.as_slice() else {
        return Err(Failure::Usage("--hosts grows one job; name one".into()));
    };
    let streams: usize = job.phases.iter().map(|(_, streams)| streams.len()).sum();
    if streams != 1 {
        return Err(Failure::Usage(format!(
            "--hosts grows one stream, and {} has {streams}, which would each grow otherwise; measure them one by one",
            job.name
        )));
    }
    let on = |hosts: &u32| DraftJob {
        name: format!("{} on {hosts} {}", job.name, if *hosts == 1 { "host" } else { "hosts" }),
        ..job.clone()
    };
    *drafts = request.hosts.iter().map(on).collect();
    let words: Vec<String> = request.hosts.iter().map(u32::to_string).collect();
    origins.fixed("--hosts", &format!("{}, in turns", words.join(", ")), "command line");
    Ok(Some(HostSteps { hosts: request.hosts.clone() }))
}
