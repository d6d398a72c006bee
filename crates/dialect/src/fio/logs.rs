//! Logs: which files of single operations or of their averages a job of fio's asks for.
//!
//! For: `write_lat_log`, `write_bw_log`, `write_iops_log`, `write_hist_log` and what is said about them. Not for: what stands in the
//! files (crate `report`).

use super::jobs::{Fault, Job};
use model::spec::{LogKind, LogValue, Logs};

/// Options that ask for logs, and the kinds of files that each is.
const LOGS: [(&str, &[LogKind]); 4] = [
    ("write_lat_log", &[LogKind::Lat, LogKind::Slat, LogKind::Clat]),
    ("write_hist_log", &[LogKind::ClatHist]),
    ("write_bw_log", &[LogKind::Bw]),
    ("write_iops_log", &[LogKind::Iops]),
];
/// Kinds that a job may leave out.
const DISABLED: [(&str, LogKind); 3] =
    [("disable_lat", LogKind::Lat), ("disable_slat", LogKind::Slat), ("disable_clat", LogKind::Clat)];
/// The most that columns of a histogram are put together, by powers of two.
const MOST_COARSE: u64 = 6;

/// The logs that a job asks for; `None` where it asks for none.
pub(super) fn logs(job: &Job) -> Result<Option<Logs>, Fault> {
    let mut logs = Logs::default();
    for (option, kinds) in LOGS {
        let Some(prefix) = job.text(option) else { continue };
        let prefix = if prefix.is_empty() { job.name() } else { prefix };
        for kind in kinds {
            let disabled = DISABLED.iter().find(|(_, of)| of == kind);
            if !disabled.map_or(Ok(false), |(switch, _)| job.on(switch, false))? {
                logs.files.push((*kind, prefix.to_owned()));
            }
        }
    }
    if let Some(file) = job.text("write_iolog").filter(|file| !file.is_empty()) {
        logs.files.push((LogKind::Iolog, file.to_owned()));
    }
    let average = job.number("log_avg_msec")?.unwrap_or(0);
    let at_most = |option| Ok(job.number(option)?.map_or(average, |ms| ms.min(average)));
    (logs.latency_ms, logs.bandwidth_ms, logs.iops_ms) =
        (average, at_most("bwavgtime")?, at_most("iopsavgtime")?);
    logs.histogram_ms = job.number("log_hist_msec")?.unwrap_or(0);
    logs.coarseness = match job.number("log_hist_coarseness")?.unwrap_or(0) {
        coarse @ 0..=MOST_COARSE => coarse as u32,
        _ => return Err(job.fault("log_hist_coarseness", "it is 0 to 6; type one of them")),
    };
    logs.value = value(job)?;
    logs.offset = job.on("log_offset", false)?;
    logs.priority = job.on("log_prio", false)?;
    logs.issue_time = job.on("log_issue_time", false)?;
    logs.unix_epoch = job.on("log_unix_epoch", false)? || job.on("log_alternate_epoch", false)?;
    logs.together = !job.on("per_job_logs", true)?;
    if logs.files.iter().any(|(kind, _)| *kind == LogKind::ClatHist) && logs.histogram_ms == 0 {
        // As in fio, which then writes an empty file.
        return Err(job.fault("write_hist_log", "a histogram stands for a time; type log_hist_msec=1000 too"));
    }
    let has_latencies = logs.files.iter().any(|(kind, _)| *kind == LogKind::Lat || *kind == LogKind::Clat);
    if logs.issue_time && !(logs.offset && has_latencies) {
        return Err(job.fault("log_issue_time", "it goes with write_lat_log and log_offset=1; type both too"));
    }
    Ok(Some(logs).filter(|logs| !logs.files.is_empty()))
}

/// What of several latencies a line has.
fn value(job: &Job) -> Result<LogValue, Fault> {
    // The newer name of the two.
    let option = job.last("log_window_value", "log_max_value").unwrap_or("log_window_value");
    match (option, job.text(option)) {
        (_, None) | ("log_window_value", Some("avg")) => Ok(LogValue::Mean),
        ("log_window_value", Some("max")) => Ok(LogValue::Largest),
        ("log_window_value", Some("both")) => Ok(LogValue::Both),
        ("log_window_value", _) => Err(job.fault(option, "it is avg, max or both; type one of them")),
        _ => Ok(if job.on(option, false)? { LogValue::Largest } else { LogValue::Mean }),
    }
}
