//! State files of verified writes. A job that writes with `verify` leaves
//! `local-NAME-N-verify.state`, where N is the number of the clone among the clones of all jobs. A
//! later invocation with `verify_state_load` reads back only as many operations as the file counts.
//! The content is fathom's own text, because fio cannot verify fathom's blocks anyway.

use crate::fio::access::parse_rw;
use crate::fio::job_file::{Environment, Fault, Job};
use crate::fio::streams::verifies;
use model::spec::{PhaseSpec, TypedStream};
use std::collections::BTreeMap;

/// The text before the number of writes.
const BEGIN: &str = "fathom verify state: writes ";
/// Largest size of a state file in bytes.
const MAX_BYTES: usize = 64;

/// The text of a state file that counts this many writes.
pub fn content(writes: u64) -> String {
    format!("{BEGIN}{writes}\n")
}

/// Names the state file of each verifying stream of a phase, but not of streams that only read back. Each stream is one clone.
/// A stream that loads its state file ends after as many operations as the file counts. `job_of_stream` has the index of
/// each stream's job.
pub(super) fn apply(
    jobs: &[Job],
    job_of_stream: &[usize],
    typed: &mut [TypedStream],
    phase: &mut PhaseSpec,
    folder: &str,
    environment: &dyn Environment,
) -> Result<(), Fault> {
    // The number of earlier clones of each job.
    let mut clones: BTreeMap<usize, u32> = BTreeMap::new();
    for ((at, typed), stream) in job_of_stream.iter().zip(typed).zip(&mut phase.streams) {
        let is_from_job = stream.read_back.is_none();
        let Some(job) = jobs.get(*at).filter(|job| is_from_job && verifies(job)) else { continue };
        let before = clones.entry(*at).or_default();
        let (name, number) = (job.name().replace('/', "."), job.threads_before + *before);
        *before += 1;
        let path = format!("{folder}local-{name}-{number}-verify.state");
        if job.on("verify_state_load", false)? {
            let checks = stream.resolved.verify.as_ref().is_some_and(|verify| verify.checks);
            let why = "the job writes its blocks; type verify_only=1, rw=read or randread";
            job.refuse_if(!checks, "verify_state_load", why)?;
            let writes = load(&path, environment).map_err(|why| job.fault("verify_state_load", why))?;
            let most = stream.resolved.limit.operations.unwrap_or(u64::MAX);
            stream.resolved.limit.operations = Some(writes.min(most));
        }
        if parse_rw(job)?.writes() && job.on("verify_state_save", true)? {
            typed.state = Some(path);
        }
    }
    Ok(())
}

/// The number of writes in a state file.
fn load(path: &str, environment: &dyn Environment) -> Result<u64, String> {
    let bytes =
        environment.bytes(path, MAX_BYTES).map_err(|why| format!("{path}: {why}; write the blocks first"))?;
    let text = String::from_utf8_lossy(&bytes);
    let writes = text.strip_prefix(BEGIN).and_then(|number| number.trim_end().parse().ok());
    let why = || format!("{path} counts no writes of fathom; write the blocks with this command first");
    writes.filter(|writes| *writes > 0).ok_or_else(why)
}
