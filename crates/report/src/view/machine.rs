//! The machine: its block devices, and the diagnosis of a target before a measurement.

use crate::view::lists::{count_of, join_names};
use crate::view::table::{Columns, Table};
use model::Known;
use model::finding::{Diagnosis, DoctorAnswer, Outcome, Severity};
use model::machine::{BlockDevice, Devices, LayerKind, Mounted, Queue};
use model::units::show_bytes;

pub(crate) fn kind_name(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Disk => "disk",
        LayerKind::Partition => "partition",
        LayerKind::Loop => "loop device",
        LayerKind::Zram => "compressed memory",
        LayerKind::Ram => "memory",
        LayerKind::DeviceMapper => "volume",
        LayerKind::Raid => "RAID",
        LayerKind::Virtual => "virtual device",
    }
}

/// Returns a row for each device.
pub(crate) fn device_table(devices: &Devices) -> Table {
    let users = |device: &BlockDevice| {
        let mounted = describe_mounts(&device.mounts).map(|mounts| format!("mounts: {mounts}"));
        [mounted, describe_user(device)].into_iter().flatten().collect::<Vec<_>>().join("; ")
    };
    Columns::new(&devices.devices)
        .text("device", |device| device.name.clone())
        .text("what it is", |device| describe_device(device))
        .text("queue", |device| describe_queue(&device.queue))
        .text("who uses it", |device| users(device))
        .table(&[])
}

/// Returns the size and the kind of a device, and what identifies it.
pub(crate) fn describe_device(device: &BlockDevice) -> String {
    let mut facts = vec![show_bytes(device.bytes), kind_name(device.kind).to_owned()];
    facts.extend(device.label.clone());
    facts.extend(device.start_bytes.map(|at| format!("from {}", show_bytes(at))));
    let is_whole_disk = device.kind != LayerKind::Partition;
    let own = |word: &Option<String>| word.clone().filter(|_| is_whole_disk);
    facts.extend(own(&device.model));
    facts.extend(own(&device.serial).map(|serial| format!("serial {serial}")));
    facts.extend(own(&device.bus).map(|bus| match &device.link {
        Some(link) => format!("{bus} ({link})"),
        None => bus,
    }));
    facts.extend(own(&device.driver).map(|driver| format!("driver {driver}")));
    facts.extend(match &device.queue.rotational {
        Ok(rotates) if device.kind == LayerKind::Disk => {
            Some(if *rotates { "rotating" } else { "not rotating" }.to_owned())
        }
        _ => None,
    });
    facts.extend((device.read_only == Ok(true)).then(|| "read-only".into()));
    facts.extend((is_whole_disk && device.removable == Ok(true)).then(|| "removable".into()));
    facts.join(", ")
}

/// Describes a queue:
/// `4 hardware queues of 256 requests, scheduler none, cache write back, device queue depth 32`.
pub(crate) fn describe_queue(queue: &Queue) -> String {
    let number = |n: &Known<u64>| n.as_ref().map_or_else(|_| "an unknown number of".into(), u64::to_string);
    let queues = match &queue.hardware_queues {
        Ok(1) => "1 hardware queue".to_owned(),
        Ok(n) => format!("{n} hardware queues"),
        Err(_) => "an unknown number of hardware queues".into(),
    };
    let word = |word: &Known<String>| word.clone().unwrap_or_else(|_| "unknown".into());
    let mut text = format!(
        "{queues} of {} requests, scheduler {}, cache {}",
        number(&queue.requests),
        word(&queue.scheduler),
        word(&queue.write_cache)
    );
    if let Ok(depth) = queue.device_depth {
        text += &format!(", device queue depth {depth}");
    }
    if queue.counted == Ok(false) {
        text += ", not counted (iostats is 0)";
    }
    text
}

pub(crate) fn describe_backing(file: &str, direct: Option<bool>) -> String {
    match direct {
        Some(true) => format!("{file}, bypassing the page cache"),
        Some(false) => format!("{file}, through the page cache"),
        None => file.to_owned(),
    }
}

pub(crate) fn describe_mounts(mounts: &Known<Vec<Mounted>>) -> Option<String> {
    match mounts {
        Ok(all) if all.is_empty() => None,
        Ok(all) => {
            let points: Vec<String> =
                all.iter().map(|m| format!("{} as {} ({})", m.point, m.kind, m.options)).collect();
            Some(points.join("; "))
        }
        Err(why) => Some(format!("not known: {why}")),
    }
}

/// Returns the users of a device, unless its mounts already name them.
pub(crate) fn describe_user(device: &BlockDevice) -> Option<String> {
    let mounted = device.mounts.as_ref().is_ok_and(|m| !m.is_empty());
    match &device.used_by {
        Ok(Some(_)) if mounted => None,
        Ok(Some(user)) => Some(user.clone()),
        Ok(None) => Some("by no program".into()),
        Err(why) => Some(format!("by no program that could be seen: {why}")),
    }
}

/// Returns the answer of a check: `OK`, `NOT CHECKED`, or the effect of its finding with its id.
pub(crate) fn describe_answer(answer: &DoctorAnswer) -> String {
    let id = answer.check.map_or_else(String::new, |id| format!(" {id}"));
    match (answer.outcome, answer.severity) {
        (Outcome::Holds, _) => "OK".into(),
        (Outcome::NotChecked, _) => "NOT CHECKED".into(),
        (Outcome::Finding, severity) => format!("{}{id}", severity.unwrap_or(Severity::Note).effect()),
    }
}

/// Counts the answers of a diagnosis: `1 finding, 2 not checked, 14 passed`.
pub(crate) fn count_answers(diagnosis: &Diagnosis) -> String {
    let answers = || diagnosis.groups.iter().flat_map(|g| &g.answers);
    let count = |outcome| answers().filter(|answer| answer.outcome == outcome).count();
    let findings = count_of(count(Outcome::Finding), "finding");
    let (unchecked, passed) = (count(Outcome::NotChecked), count(Outcome::Holds));
    format!("{findings}, {unchecked} not checked, {passed} passed")
}

/// Returns the conclusion of a diagnosis. `problems` names the findings that affect a measurement.
pub(crate) fn conclude_diagnosis(diagnosis: &Diagnosis, problems: &[String]) -> String {
    if !problems.is_empty() {
        return format!(
            "{} would change what a number means: {}.",
            count_of(problems.len(), "thing"),
            join_names(problems)
        );
    }
    let answers = diagnosis.groups.iter().flat_map(|g| &g.answers);
    match answers.filter(|answer| answer.outcome == Outcome::NotChecked).count() {
        0 => {
            "This machine is fit to measure: nothing was found that would change what a number means.".into()
        }
        unchecked => format!(
            "This machine is fit to measure, as far as fathom can tell: it found nothing that would change what a number \
             means, but could not check {}.",
            count_of(unchecked, "thing")
        ),
    }
}

/// Describes the effect of a finding on a measurement; empty for other answers.
pub(crate) fn describe_effect(answer: &DoctorAnswer) -> &'static str {
    match answer.severity {
        Some(Severity::Invalidates) => "invalidates a number",
        Some(Severity::Relabels) => "relabels a number",
        Some(Severity::Biases) => "biases a number",
        Some(Severity::Note) if answer.is_cgroup_limit() => "may limit the rate",
        Some(Severity::Note) => "note",
        None => "",
    }
}

/// Names the check of an observation: `, A04`. Empty without one.
pub(crate) fn check_suffix(answer: &DoctorAnswer) -> String {
    answer.check.map_or_else(String::new, |id| format!(", {id}"))
}
