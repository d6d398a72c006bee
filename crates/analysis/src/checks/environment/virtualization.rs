//! Virtual machines, clouds and containers: fathom sees nothing below them (D18, D19, D25).
//!
//! D18 notes any hypervisor or driver of virtual disks. D19 looks for a single fall between two flat plateaus
//! of the rate, on disks of clouds that sell bursts. D25 notes targets on an overlay, and facts that the kernel
//! or the container runtime refused to show.

use crate::checks::prelude::*;
use crate::figures::time_series::intervals_of;
use model::evidence::{PRODUCT, VENDOR};
use model::machine::Machine;
use model::record::Interval;

/// Drivers of simulated disks.
const VIRTUAL_DRIVERS: &[&str] =
    &["virtio_blk", "virtio_scsi", "xen_blkfront", "vbd", "hv_storvsc", "vmw_pvscsi"];

pub(super) const VIRTUAL: Check = Check {
    id: CheckId::D18,
    name: "VIRTUAL",
    belief: "fathom sees everything down to the medium",
    reads: "The flag `hypervisor` of `/proc/cpuinfo`, `/sys/hypervisor/type`, vendor and product of \
            `/sys/class/dmi/id/`, and the drivers of the devices below the target.",
    formula: formula!(
        "A note if a hypervisor or a driver of virtual disks is found. There is no threshold: below a \
         virtual disk there may be a cache, limits and neighbours that the guest cannot see, so every \
         number describes the disk as the host serves it at this time."
    ),
    provoke: "`fathom run DIR` in any virtual machine.",
    fix: "",
    accept: "A note needs no --accept, and nothing inside the guest fixes it. Repeat at other times of day \
             to see the effect of neighbours, ask the provider for limits, and state in reports that the \
             disk is virtual.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_virtual),
    #[cfg(test)]
    fires: Some(|| Fixture { virtual_by: Ok(Some("KVM".into())), ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { virtual_by: Err("cpuinfo: not found".into()), ..Fixture::honest() }.record(),
};

fn check_virtual(case: &Case) -> Known<Answer> {
    let Some(hypervisor) = find_hypervisor(case)? else {
        return holds("As far as fathom can see, this is not a virtual machine.", evidence([]));
    };
    finding!(
        Severity::Note,
        evidence([]),
        "The machine or its disk is virtual ({hypervisor}): the host's cache, its limits and its other \
         guests are invisible from here."
    )
}

/// Returns the hypervisor or the driver of virtual disks, or `None` if there is neither.
///
/// # Errors
/// Fails if no driver of virtual disks was found, and it is unknown whether there is a hypervisor.
fn find_hypervisor<'a>(case: &Case<'a>) -> Known<Option<&'a str>> {
    let machine = case.machine.ok_or("the record names no host")?;
    let drivers = case.places().flat_map(|p| &p.layers).filter_map(|l| l.driver.as_deref());
    let driver = drivers.into_iter().find(|d| VIRTUAL_DRIVERS.contains(d));
    match (&machine.virtual_by, driver) {
        (Ok(Some(name)), _) => Ok(Some(name)),
        (_, Some(driver)) => Ok(Some(driver)),
        (Ok(None), None) => Ok(None),
        (Err(why), None) => Err(why.clone()),
    }
}

/// Whether the machine or the disk is known to be virtual.
pub(super) fn is_virtual(case: &Case) -> bool {
    find_hypervisor(case).is_ok_and(|hypervisor| hypervisor.is_some())
}

/// Clouds with burst credits: a part of the vendor, product or model text in lower case, and the name of the cloud.
const CLOUDS: &[(&str, &str)] = &[
    ("amazon elastic block store", "Amazon EBS"),
    ("amazon ec2", "Amazon EC2"),
    ("google", "Google Cloud"),
    ("microsoft corporation virtual machine", "Microsoft Azure"),
    ("msft nvme", "Microsoft Azure"),
    ("alibaba cloud", "Alibaba Cloud"),
];
/// Part of the model text of disks inside the host, which have limits but no credits.
const WITHOUT_CREDIT: &str = "instance storage";
/// A rate that did not fall in this measured time is sustained. The credits of Amazon's gp2 and of Azure's disks last
/// half an hour at full use. The time is twice as long, because a disk with a base rate near its burst rate spends
/// credits more slowly.
const CREDIT_NS: f64 = 3600e9;
/// Maximum rate after a fall, as a share of the rate before it. Base rates are far below burst rates, and noise does
/// not cause a fall of a fifth.
const FALLS_TO: Share = Share(0.8);
/// Maximum variability (standard deviation divided by mean) of the rate after the fall: a cloud's limiter keeps it constant.
const FLAT_AFTER: Share = Share(0.03);
/// Maximum variability of the rate before the fall. It is larger, because the workload may limit that rate.
const FLAT_BEFORE: Share = Share(0.1);
/// Minimum number of intervals on each side of the fall. `find_fall` drops the one next to the fall on each side, so
/// the minimum of a plateau is one less.
const FEWEST_ON_EACH_SIDE: usize = 8;

pub(super) const CLOUD_BURST: Check = Check {
    id: CheckId::D19,
    name: "CLOUD_BURST",
    belief: "the disk can sustain this rate",
    reads: "`/sys/class/dmi/id/sys_vendor` and `product_name`, the models of the disks, and fathom's own \
            rate in each interval of all runs, in order.",
    formula: formula!(
        "Looks for a fall of the rate from one plateau to another on a disk of a cloud that sells bursts.\n\
         - Biased if the second plateau is at {FALLS_TO} of the first or less, and as flat as under a \
         limiter. The variability (standard deviation / mean) is then at most {FLAT_AFTER}, and at most \
         {FLAT_BEFORE} in the first plateau. There are at least {FEWEST_ON_EACH_SIDE} intervals on each \
         side of the fall, of which the nearest belongs to no plateau.\n\
         - Not checked without a fall in less than {credit} minutes of measuring, because the usual \
         credits last for half an hour or longer.\n\
         - Holds on other machines, and on disks inside the host (instance storage).\n\
         - Does not apply to jobs that a rate, pauses or drains hold back.",
        credit = CREDIT_NS / 60e9
    ),
    provoke: "On a small gp2 volume: `fathom run --rw randread --depth 32 --time 40m --runs 1 DIR`. \
              Elsewhere, a limit that is set during a run causes the same fall, but E02 reports it, since \
              no cloud is named. fathom's own tests use made-up records of a cloud instead.",
    fix: "Quote the rate after the fall. Or spend the credits first, and then measure for more than an hour.",
    accept: "Accept it if your load comes in bursts shorter than the credits last.",
    applies: |case| case.on_device(),
    ask: Ask::Alone(check_cloud_burst),
    #[cfg(test)]
    fires: Some(|| fixture("Amazon EC2\n", 3_000, 1_200, 30)),
    #[cfg(test)]
    blind: || fixture("Amazon EC2\n", 3_000, 3_000, 30),
};

/// The index of the interval at which the rate falls, and the rates before and after in operations per second.
struct Fall {
    at: usize,
    before: f64,
    after: f64,
}

fn check_cloud_burst(case: &Case) -> Known<Answer> {
    let Some(cloud) = find_cloud(case)? else {
        return holds("The disk belongs to no cloud that is known for burst credits.", evidence([]));
    };
    // With a schedule or pauses, the job decides the rate, not the disk.
    if !case.stream.submits_without_waiting() {
        return Ok(Answer::DoesNotApply);
    }
    let interval_rates = interval_rates(case);
    let rates: Vec<f64> = interval_rates.iter().map(|row| row.iops).collect();
    let measured = case.window_ns();
    let Some(fall) = find_fall(&rates) else {
        if measured < CREDIT_NS {
            let measured = show_ns(measured);
            return Err(format!(
                "this is a disk of {cloud}, whose burst credits can last longer than the measured {measured}"
            ));
        }
        return holds(
            "The rate did not drop to a lower steady level in an hour of measuring or more.",
            Evidence::new(),
        );
    };
    let ns = measured * fall.at as f64 / rates.len().max(1) as f64;
    // `fall.at` is an index of `rates`, which has one entry for each of these intervals.
    let row = &interval_rates[fall.at];
    finding!(
        Severity::Biases,
        evidence([
            ("before", fall.before),
            ("after", fall.after),
            ("until_ns", ns),
            ("run", f64::from(row.run)),
            ("at_s", row.at_s),
        ]),
        "This disk of {cloud} did {} operations per second for {} and then a steady {}: this looks like the \
         end of burst credits.",
        show_rate(fall.before),
        show_ns(ns),
        show_rate(fall.after)
    )
}

/// Returns the cloud named by the vendor or product of the machine, or by the model of a disk. `None` if no text names a
/// cloud, or if a disk is instance storage.
///
/// # Errors
/// Fails if vendor or product cannot be read and no other text names a cloud.
fn find_cloud(case: &Case) -> Known<Option<&'static str>> {
    let machine = case.machine.ok_or("the record names no host")?;
    let models = case.places().flat_map(|p| &p.layers).filter_map(|l| l.model.as_deref());
    let models: Vec<String> = models.map(str::to_lowercase).collect();
    if models.iter().any(|m| m.contains(WITHOUT_CREDIT)) {
        return Ok(None);
    }
    let firmware = [machine.fact(VENDOR), machine.fact(PRODUCT)];
    let texts: Vec<&str> = firmware.iter().filter_map(|f| f.as_ref().ok().copied()).collect();
    let texts = format!("{} {}", texts.join(" "), models.join(" ")).to_lowercase();
    if let Some((_, name)) = CLOUDS.iter().find(|(hint, _)| texts.contains(hint)) {
        return Ok(Some(name));
    }
    firmware.into_iter().collect::<Known<Vec<_>>>().map(|_| None)
}

/// The rate of the stream in one interval.
struct IntervalRate {
    /// Operations per second.
    iops: f64,
    /// Index of the run.
    run: u32,
    /// Seconds from the start of the run's first interval to the start of this one.
    at_s: f64,
}

/// Returns the rates of the stream in all intervals of all runs, in order.
fn interval_rates(case: &Case) -> Vec<IntervalRate> {
    let rates_in_run = |ran: &CaseRun| -> Vec<IntervalRate> {
        let from = intervals_of(ran).map(|row| row.start_ns).min().unwrap_or(0);
        let interval_rate = |row: &Interval| {
            let ops: f64 = Kind::MOVING.iter().filter_map(|k| row.cells.get(k)).map(|c| c.ops as f64).sum();
            let iops = ops / ((row.end_ns - row.start_ns) as f64 / 1e9);
            IntervalRate { iops, run: ran.run.start.repeat, at_s: (row.start_ns - from) as f64 / 1e9 }
        };
        intervals_of(ran).map(interval_rate).collect()
    };
    case.runs.iter().flat_map(rates_in_run).collect()
}

/// Finds the interval that divides the rates best into two plateaus. `None` unless both are flat and the second is much
/// lower.
fn find_fall(rates: &[f64]) -> Option<Fall> {
    // Prefix sums, so that trying all intervals takes linear time.
    let mut sums = vec![0.0];
    for rate in rates {
        sums.push(sums.last().copied().unwrap_or(0.0) + rate);
    }
    let total = *sums.last()?;
    let separation = |at: usize| {
        let (count_before, count_after) = (at as f64, (rates.len() - at) as f64);
        let difference = sums[at] / count_before - (total - sums[at]) / count_after;
        difference * difference * count_before * count_after
    };
    let candidates = FEWEST_ON_EACH_SIDE..rates.len().checked_sub(FEWEST_ON_EACH_SIDE)?.saturating_add(1);
    let at = candidates.max_by(|a, b| separation(*a).total_cmp(&separation(*b)))?;
    let (first, second) = rates.split_at(at);
    // The rate may fall within the last interval before `at` or within the one at `at`: neither is part of a plateau.
    let (before, after) =
        (plateau(first.split_last()?.1, FLAT_BEFORE.0)?, plateau(second.split_first()?.1, FLAT_AFTER.0)?);
    (after <= before * FALLS_TO.0).then_some(Fall { at, before, after })
}

/// Returns the mean of the rates if their variability is at most `flat`.
fn plateau(rates: &[f64], flat: f64) -> Option<f64> {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / count;
    (mean > 0.0 && variance.sqrt() <= flat * mean).then_some(mean)
}

/// Error texts of the kernel or a container runtime that refuses to show an existing file.
const REFUSALS: &[&str] = &["permission denied", "operation not permitted", "read-only file system"];
/// Maximum number of names in a sentence.
const MOST_NAMES: usize = 4;

pub(super) const CONTAINER_VIEW: Check = Check {
    id: CheckId::D25,
    name: "CONTAINER_VIEW",
    belief: "fathom sees the whole machine",
    reads: "The file systems of the targets (containers use an overlay), the layer at which fathom lost track \
            of their devices, and the reason for each fact that could not be read (limits, governors, \
            firmware names, fathom's own cgroup).",
    formula: formula!(
        "A note if a target is on an overlay, or if access to a fact was denied (permission denied, not \
         permitted, read-only file system). A file that does not exist is no sign of a container: many machines lack it. The \
         finding lists what fathom could not see; checks that need it answer NOT CHECKED."
    ),
    provoke: "`docker run --rm -v $PWD/fathom:/fathom debian /fathom run --rw randread --size 64m /var/tmp`.",
    fix: "Measure outside the container, or on a volume (`-v /data:/data`) instead of the container's own \
          layers. If access was denied outside a container, run fathom as root.",
    accept: "A note needs no --accept.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_container_view),
    #[cfg(test)]
    fires: Some(|| Fixture { kind: "overlay", ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].facts.clear();
        record
    },
};

fn check_container_view(case: &Case) -> Known<Answer> {
    let machine = case.machine.ok_or("the record names no host")?;
    if machine.places.is_empty() {
        return Err("the record does not contain the device chains of the targets".into());
    }
    let overlay = case.places().find(|p| p.kind() == "overlay");
    let refused_facts = list_refused_facts(machine);
    let numbers = evidence([("refused", refused_facts.len() as f64)]);
    if overlay.is_none() && refused_facts.is_empty() {
        if machine.facts.is_empty() {
            return Err("this session contains no facts about the machine".into());
        }
        return holds("No access to facts about the machine was denied.", numbers);
    }
    if let Some(place) = overlay.filter(|place| place.unresolved_reason.is_none() && refused_facts.is_empty())
    {
        return finding!(
            Severity::Note,
            numbers,
            "{} is in an overlay, like the file system of a container. fathom followed the overlay to the \
             device that holds the data.",
            place.path
        );
    }
    let mut sentence = String::from("fathom sees only part of the machine");
    if let Some(place) = overlay {
        sentence += &format!(": {} is on an overlay, as in a container", place.path);
        sentence += &place.unresolved_reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    }
    if !refused_facts.is_empty() {
        let names = refused_facts.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
        let more = refused_facts.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {} more", show_count(more as f64)) } else { String::new() };
        sentence +=
            &format!("{} access to {names}{more} was denied", if overlay.is_some() { ";" } else { ":" });
    }
    Detail::new(Severity::Note, sentence + ".", numbers).found()
}

/// Returns the names of the facts that fathom was not allowed to read.
fn list_refused_facts(machine: &Machine) -> Vec<&str> {
    let refused = |why: &String| {
        let why = why.to_lowercase();
        REFUSALS.iter().any(|r| why.contains(r))
    };
    let facts = machine.facts.iter().filter_map(|(name, f)| Some((name.as_str(), f.as_ref().err()?)));
    let others = [
        ("the size of the memory", machine.memory_bytes.as_ref().err()),
        ("the clock source", machine.clocksource.as_ref().err()),
        ("fathom's own cgroup", machine.cgroup.as_ref().err()),
    ];
    let others = others.into_iter().filter_map(|(name, why)| Some((name, why?)));
    facts.chain(others).filter(|(_, why)| refused(why)).map(|(name, _)| name).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::{LIMITS, SLEEPS};

#[test]
fn a_driver_of_virtual_disks_suffices() {
    let unknown = || Fixture { virtual_by: Err("cpuinfo: not found".into()), ..Fixture::honest() };
    let mut record = unknown().record();
    record.header.hosts[0].places[0].layers[0].driver = Some("virtio_blk".into());
    assert_eq!(VIRTUAL.severity(&record), Some(Severity::Note));
    record.header.hosts[0].places[0].layers[0].driver = Some("nvme".into());
    assert!(VIRTUAL.answer(&record).is_err());
}

#[test]
fn the_interval_of_the_fall_belongs_to_neither_plateau() {
    for between in [1_300.0, 2_000.0, 2_900.0] {
        let rates = [[3_000.0; 20].as_slice(), &[between], &[1_200.0; 19]].concat();
        let fall = find_fall(&rates).unwrap_or_else(|| panic!("no fall with {between} between"));
        assert_eq!((fall.before, fall.after), (3_000.0, 1_200.0));
    }
}

/// One run of 60 intervals of a second on a machine of `vendor`, with `before` operations per second up to
/// interval `until` and `after` from there on.
#[cfg(test)]
fn fixture(vendor: &str, before: u64, after: u64, until: usize) -> model::record::Record {
    let mut record = Fixture { runs: 1, ..Fixture::honest() }.record();
    record.header.hosts[0].facts.insert(VENDOR.into(), Ok(vendor.into()));
    let row = record.runs[0].intervals[0].clone();
    let intervals = (0..60_usize).map(|i| {
        let mut row = row.clone();
        (row.start_ns, row.end_ns) = (i as u64 * 1_000_000_000, (i as u64 + 1) * 1_000_000_000);
        // A little noise, always the same.
        let noise = [0, 7, 3, 11, 5][i % 5];
        row.cells.values_mut().for_each(|c| c.ops = if i < until { before } else { after } + noise);
        row
    });
    record.runs[0].intervals = intervals.collect();
    record
}

#[test]
fn a_fall_between_plateaus_biases_only_on_known_clouds() {
    let Ok(Answer::Finding(found)) = CLOUD_BURST.answer(&fixture("Amazon EC2\n", 3_000, 2_300, 30)) else {
        panic!("23 % less is a fall")
    };
    assert_eq!(
        (found.severity, found.evidence["run"], found.evidence["at_s"]),
        (Severity::Biases, 0.0, 30.0)
    );
    assert!(CLOUD_BURST.answer(&fixture("Amazon EC2\n", 3_000, 2_600, 30)).is_err(), "13 % less is no fall");
    assert!(CLOUD_BURST.answer(&fixture("Amazon EC2\n", 1_200, 3_000, 30)).is_err(), "a rise is none either");
    assert!(matches!(CLOUD_BURST.answer(&fixture("ACME\n", 3_000, 1_200, 30)), Ok(Answer::Holds(..))));
}

#[test]
fn a_rate_that_varies_after_the_fall_is_not_checked() {
    let mut record = fixture("Amazon EC2\n", 3_000, 1_200, 30);
    for row in record.runs[0].intervals.iter_mut().skip(30).step_by(2) {
        row.cells.values_mut().for_each(|c| c.ops += 120);
    }
    assert!(CLOUD_BURST.answer(&record).is_err());
}

#[test]
fn an_hour_without_a_fall_and_instance_storage_hold() {
    let mut record = fixture("Amazon EC2\n", 3_000, 3_000, 30);
    let end = record.runs[0].end.as_mut().unwrap();
    end.streams[0].window_ns = 3_600_000_000_000;
    assert!(matches!(CLOUD_BURST.answer(&record), Ok(Answer::Holds(..))));
    let mut inside = fixture("Amazon EC2\n", 3_000, 1_200, 30);
    inside.header.hosts[0].places[0].layers[0].model = Some("Amazon EC2 NVMe Instance Storage".into());
    assert!(matches!(CLOUD_BURST.answer(&inside), Ok(Answer::Holds(..))));
    let mut unknown = fixture("ACME\n", 3_000, 1_200, 30);
    unknown.header.hosts[0].facts.insert(VENDOR.into(), Err("no such file".into()));
    assert!(CLOUD_BURST.answer(&unknown).is_err());
    unknown.header.hosts[0].places[0].layers[0].model = Some("MSFT NVMe Accelerator v1.0".into());
    assert_eq!(CLOUD_BURST.severity(&unknown), Some(Severity::Biases));
}

#[cfg(test)]
fn refused(names: &[&str], why: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let facts = &mut record.header.hosts[0].facts;
    names.iter().for_each(|name| drop(facts.insert((*name).into(), Err(why.into()))));
    record
}

#[test]
fn refused_facts_are_listed_and_missing_files_are_silent() {
    let denied = refused(&[LIMITS], "Permission denied (os error 13)");
    let Ok(Answer::Finding(f)) = CONTAINER_VIEW.answer(&denied) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Note);
    assert!(f.sentence.ends_with(&format!("machine: access to {LIMITS} was denied.")), "{}", f.sentence);
    assert!(matches!(
        CONTAINER_VIEW.answer(&refused(&[VENDOR, PRODUCT], "no such file")),
        Ok(Answer::Holds(..))
    ));
}

#[test]
fn long_lists_are_cut_and_overlays_name_what_they_hide() {
    let mut record = refused(&[LIMITS, PRODUCT, SLEEPS, VENDOR], "Operation not permitted (os error 1)");
    let machine = &mut record.header.hosts[0];
    machine.cgroup = Err("/sys/fs/cgroup: Read-only file system (os error 30)".into());
    machine.places[0].unresolved_reason = Some("overlay: its directories cannot be seen from here".into());
    machine.places[0].file_system.as_mut().unwrap().kind = "overlay".into();
    let Ok(Answer::Finding(f)) = CONTAINER_VIEW.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("/data is on an overlay, as in a container (overlay: its"), "{}", f.sentence);
    assert!(f.sentence.ends_with(" and 1 more was denied."), "{}", f.sentence);
    // An overlay that fathom followed to its device hides nothing.
    let Ok(Answer::Finding(f)) =
        CONTAINER_VIEW.answer(&Fixture { kind: "overlay", ..Fixture::honest() }.record())
    else {
        panic!("silent")
    };
    assert!(
        f.sentence.contains("/data is in an overlay") && !f.sentence.contains("only part"),
        "{}",
        f.sentence
    );
    let tmpfs = Fixture { kind: "tmpfs", ram: Some("tmpfs"), ..Fixture::honest() };
    assert_eq!(CONTAINER_VIEW.severity(&tmpfs.record()), None);
}
