//! The log of operations: which of them are logged, and that there is a file for it.
//!
//! For: settings that belong together. Not for: keeping the log ([`crate::op_log`]), nor its files (crate `report`).

use super::origins::Origins;
use crate::failure::Failure;
use model::job::Job;
use model::spec::JobSpec;
use model::units::show_ns;

/// The file of the log, with all streams logged where there is one.
///
/// # Errors
/// A usage failure where something is said of a log that nobody asked for.
pub(super) fn plan_op_log(
    spec: &JobSpec,
    jobs: &mut [Job],
    origins: &mut Origins,
) -> Result<Option<String>, Failure> {
    let streams = jobs.iter_mut().flat_map(|job| &mut job.phases).flat_map(|phase| &mut phase.streams);
    let Some(file) = &spec.op_log else {
        let mut streams = streams;
        // What another tool calls its logs has names of their own.
        let lost = streams.find(|s| s.log_interval_ns.is_some()).filter(|_| spec.typed.is_none());
        return lost.map_or(Ok(None), |_| {
            Err(Failure::Usage(
                "--op-log-interval says how finely operations are logged, and no file is named; type --op-log FILE too, or leave it out".into(),
            ))
        });
    };
    origins.note("--op-log", Some(file), |file| (*file).clone());
    for stream in streams {
        let interval = *stream.log_interval_ns.get_or_insert(0);
        origins.note("--op-log-interval", Some(interval).filter(|ns| *ns > 0), |ns| show_ns(*ns as f64));
    }
    Ok(Some(file.clone()))
}
