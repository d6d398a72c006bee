//! fio's terse lines: fields between semicolons, a line for each job.
//!
//! For: versions 2 to 5, each field in its place. Not for: figures ([`super::direction`]).
//! What is not known is an empty field, since what stands behind it must keep its place.

use super::VERSION;
use super::depths::{COLUMNS, Depths};
use super::direction::{Direction, RateSamples};
use super::job::{Group, Job, cpu_percent, disk_totals, jobs, util_percent};
use super::layout::{LatencyShares, TERSE_PERCENTILES};
use model::distribution::Distribution;
use model::fio_layout::FioLayout;
use model::job::Kind;
use model::report::Report;
use std::io::{self, Write};

/// Version from which a line begins with fio's own.
const NAMES_FIO_FROM: u8 = 3;
/// Versions whose lines have trims too.
const WITH_TRIMS: [u8; 3] = [2, 4, 5];
/// Version with samples of operations per second.
const WITH_SAMPLES: u8 = 5;

/// Writes the lines of a version.
pub(super) fn write_terse(report: &Report, version: u8, to: &mut dyn Write) -> io::Result<()> {
    let jobs = jobs(report);
    for job in &jobs {
        let mut fields = vec![version.to_string()];
        if version >= NAMES_FIO_FROM {
            fields.push(VERSION.into());
        }
        // A name with a semicolon would move all fields behind it.
        fields.push(job.name().replace(';', ","));
        fields.push(job.group.to_string());
        fields.push(job.error().to_string());
        let layout = job.layout();
        let told = |word: &str| word != Kind::Trim.word() || WITH_TRIMS.contains(&version);
        for (word, direction) in job.directions().iter().filter(|(word, _)| told(word)) {
            let group = Group::from_jobs(&jobs, job.group, word).unwrap_or_default();
            fields.extend(direction_fields(direction, &group, &layout, version));
        }
        fields.extend(cost_fields(job));
        fields.extend(share_fields(job));
        if version >= NAMES_FIO_FROM {
            fields.extend(disk_fields(&jobs));
        }
        if !layout.description.is_empty() {
            // As in fio, version 2 has it on a line of its own.
            let begin = if version == 2 { "\n" } else { "" };
            if let Some(last) = fields.last_mut() {
                last.push_str(begin);
            }
            fields.push(layout.description);
        }
        writeln!(to, "{}", fields.join(";"))?;
    }
    Ok(())
}

fn direction_fields(of: &Direction, group: &Group, layout: &FioLayout, version: u8) -> Vec<String> {
    let mut out = vec![
        (of.bytes >> 10).to_string(),
        (of.bytes_per_s as u64 >> 10).to_string(),
        (of.iops as u64).to_string(),
        of.runtime_ms.to_string(),
    ];
    out.extend(latency_fields(&Distribution::default()));
    out.extend(latency_fields(&of.clat));
    out.extend(percentile_fields(of, layout));
    out.extend(latency_fields(&of.lat));
    let RateSamples { count, min, max, mean, deviation } = of.bw;
    let share = of.bw.percent_of(group.bytes_per_s);
    out.extend([
        min.to_string(),
        max.to_string(),
        format!("{share:.6}%"),
        format!("{mean:.6}"),
        format!("{deviation:.6}"),
    ]);
    if version == WITH_SAMPLES {
        out.push(count.to_string());
        let RateSamples { count, min, max, mean, deviation } = of.iops_samples;
        out.extend([
            min.to_string(),
            max.to_string(),
            format!("{mean:.6}"),
            format!("{deviation:.6}"),
            count.to_string(),
        ]);
    }
    out
}

/// Least, most, mean and standard deviation in us.
fn latency_fields(of: &Distribution) -> [String; 4] {
    let us = |ns: f64| format!("{:.6}", ns / 1e3);
    [(of.min_ns / 1000).to_string(), (of.max_ns / 1000).to_string(), us(of.mean_ns), us(of.deviation_ns())]
}

/// In us, with the names that fio gives where nothing completed too: of the total latency if it has percentiles.
fn percentile_fields(of: &Direction, layout: &FioLayout) -> Vec<String> {
    let from = if layout.lat_percentiles { &of.lat } else { &of.clat };
    let at = |rank: &f64| format!("{rank:.6}%={}", from.quantile_ns(rank / 100.0).unwrap_or(0) / 1000);
    let has_percentiles = layout.clat_percentiles || layout.lat_percentiles;
    let mut out: Vec<String> = layout.ranks.iter().filter(|_| has_percentiles).map(at).collect();
    out.resize(TERSE_PERCENTILES, "0%=0".into());
    out
}

fn cost_fields(job: &Job) -> [String; 5] {
    let workers = job.costs();
    let [user, system] = cpu_percent(&workers);
    let faults = |at: usize| workers.faults.map_or_else(String::new, |faults| faults[at].to_string());
    let switches = workers.switches.to_string();
    [format!("{user:.6}%"), format!("{system:.6}%"), switches, faults(1), faults(0)]
}

/// Shares by depth, as far as they are known, and by latency in us and ms.
fn share_fields(job: &Job) -> Vec<String> {
    let level = Depths::from_job(job).level;
    let mut out: Vec<String> = (0..COLUMNS)
        .map(|at| level.map_or_else(String::new, |shares| format!("{:.1}%", shares[at])))
        .collect();
    let latencies = job.latencies();
    let LatencyShares { ns, mut us, ms } =
        LatencyShares::from_distributions(&latencies.iter().collect::<Vec<_>>());
    // A line has no column for less than a microsecond.
    us[0] += ns.iter().sum::<f64>();
    out.extend(us.iter().chain(&ms).map(|share| format!("{share:.2}%")));
    out
}

fn disk_fields(jobs: &[Job]) -> Vec<String> {
    let mut out = Vec::new();
    for disk in disk_totals(jobs) {
        let (read, write) = (disk.stat.read, disk.stat.write);
        let util = util_percent(&disk);
        out.push(disk.name);
        out.extend(
            [read.ios, write.ios, read.merges, write.merges, read.ms, write.ms, disk.stat.queue_ms]
                .map(|n| n.to_string()),
        );
        out.push(format!("{util:.2}%"));
    }
    out
}
