//! Stalls: how long tasks of the whole machine waited for something, as the kernel counts it (`/proc/pressure/*`).
//!
//! For: a second witness of waiting. Not for: a first one; these files know no process, and count tasks that sleep for I/O in
//! the kernel, but not those that wait for a program in user space.

use crate::case::{Case, share};
use crate::kernel_text::{grown, pressure_us};
use model::Known;
use model::evidence::Moment;

/// Pressure of block devices and network file systems.
pub(crate) const IO: &str = "/proc/pressure/io";
/// Pressure of CPUs.
pub(crate) const CPU: &str = "/proc/pressure/cpu";
/// Pressure of memory.
pub(crate) const MEMORY: &str = "/proc/pressure/memory";

/// Share of the runs' time in which at least one task of the machine waited for this.
///
/// # Errors
/// Why that was not counted.
pub(crate) fn waited(case: &Case, file: &str) -> Known<f64> {
    let (mut stalled_us, mut passed_ns) = (0.0, 0.0);
    for ran in &case.runs {
        let (start, stop) = (ran.at(Moment::Start)?, ran.at(Moment::Stop)?);
        stalled_us += grown(ran, file, |text| pressure_us(text, "some"))? as f64;
        passed_ns += stop.at_ns.saturating_sub(start.at_ns) as f64;
    }
    if passed_ns > 0.0 {
        Ok(share(stalled_us * 1e3, passed_ns))
    } else {
        Err("no time passed in the runs".into())
    }
}

/// Gives every run of a record this share of waiting.
#[cfg(test)]
pub(crate) fn fixture(record: &mut model::record::Record, file: &str, part: f64) {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let us = (snapshot.at_ns as f64 / 1e3 * part) as u64;
        let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\nfull avg10=0.00 total=0\n");
        snapshot.files.insert(file.into(), Ok(text));
    }
}

#[test]
fn the_share_is_that_of_the_runs_and_missing_is_not_zero() {
    let mut record = crate::fixture::Fixture::honest().record();
    assert_eq!(waited(&crate::case::cases(&record)[0], IO), Ok(0.0));
    fixture(&mut record, IO, 0.25);
    assert!(waited(&crate::case::cases(&record)[0], IO).is_ok_and(|s| (s - 0.25).abs() < 1e-3));
    record.runs[1].evidence[0].files.insert(IO.into(), Ok("some avg10=0.00\n".into()));
    assert!(waited(&crate::case::cases(&record)[0], IO).is_err());
}
