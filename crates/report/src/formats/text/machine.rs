//! The machine as text: its block devices, and the diagnosis of a target before a measurement.
//!
//! A list of devices has a paragraph for each device. The paragraph of a partition leaves out the
//! queue, which belongs to the disk. If the user names a device, each fact has its own line. A
//! diagnosis begins with its conclusion and the target. The findings follow, worst first, each with its fix, then what could
//! not be checked, and at the end a line for each group with what is fine.

use crate::page::Page;
use crate::view::lists::{grouped, join_names};
use crate::view::machine::{
    check_suffix, conclude_diagnosis, describe_backing, describe_device, describe_effect, describe_mounts,
    describe_queue, describe_user, kind_name,
};
use crate::{Detail, Style};
use model::Known;
use model::finding::{Diagnosis, DoctorAnswer, Outcome};
use model::machine::{BlockDevice, Devices, LayerKind, Queue};
use model::units::{show_block, show_bytes};
use std::io::{self, Write};

/// Indent of the lines of a device.
const INDENT: &str = "    ";
/// Indent of the further lines of a fact.
const CONTINUATION: &str = "      ";

pub(super) fn write_devices(devices: &Devices, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let is_detailed = style.detail == Detail::All;
    for device in &devices.devices {
        if is_detailed {
            show_all_facts(&mut out, device);
        } else {
            show_device(&mut out, device);
        }
    }
    if devices.devices.is_empty() && !is_detailed {
        out.line("The kernel lists no block device with a size.");
    }
    if !devices.empty.is_empty() {
        out.prose("", CONTINUATION, &format!("Without a size: {}", devices.empty.join(", ")));
    }
    out.write(to)
}

fn show_device(out: &mut Page, device: &BlockDevice) {
    let part = device.kind == LayerKind::Partition;
    let name = out.paint(&device.name, "1");
    let first = if part { "  " } else { "" };
    out.prose(&format!("{first}{name}  "), CONTINUATION, &describe_device(device));
    let mut line = |what: &str, text: Option<String>| {
        if let Some(text) = text {
            out.prose(&format!("{INDENT}{what:8}"), CONTINUATION, &text);
        }
    };
    // A partition shares the queue of its disk.
    if !part {
        line("blocks", Some(describe_block_sizes(&device.queue)));
        line("queue", Some(describe_queue(&device.queue)));
    }
    line("file", device.backing_file.as_ref().map(|file| describe_backing(file, device.backing_direct)));
    line("below", (!part && !device.below.is_empty()).then(|| device.below.join(", ")));
    line("holders", (!device.holders.is_empty()).then(|| device.holders.join(", ")));
    line("mounted", describe_mounts(&device.mounts));
    line("used", describe_user(device));
}

/// Prints every fact of a device. A fact that could not be read has the reason.
fn show_all_facts(out: &mut Page, device: &BlockDevice) {
    const LABEL: usize = 16;
    let queue = &device.queue;
    let name = out.paint(&device.name, "1");
    let kind = kind_name(device.kind);
    out.prose(&format!("{name}  "), CONTINUATION, &format!("{kind}, {}", device.number));
    let mut line = |label: &str, value: String| {
        out.prose(&format!("{INDENT}{label:LABEL$}"), &format!("{INDENT}{:LABEL$}", ""), &value);
    };
    let identity = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not in /sys".into());
    if let Some(label) = &device.label {
        line("volume", label.clone());
    }
    line("capacity", format!("{} ({} bytes)", show_bytes(device.bytes), device.bytes));
    if let Some(disk) = &device.disk {
        let start = device.start_bytes.map_or_else(String::new, |at| format!(", from {}", show_bytes(at)));
        line("part of", format!("{disk}{start}; the next lines describe {disk}"));
    }
    if device.kind == LayerKind::Disk || device.kind == LayerKind::Partition {
        line("vendor", identity(&device.vendor));
        line("model", identity(&device.model));
        line("firmware", identity(&device.firmware));
        line("serial number", identity(&device.serial));
        line("WWN", identity(&device.wwid));
        let bus = identity(&device.bus);
        line("link", device.link.as_ref().map_or(bus.clone(), |link| format!("{bus}, {link}")));
    }
    line("driver", identity(&device.driver));
    line("logical block", known_or_reason(&queue.logical_block_bytes, |b| format!("{b} bytes")));
    line("physical block", known_or_reason(&queue.physical_block_bytes, |b| format!("{b} bytes")));
    let optimal =
        |bytes: &u64| if *bytes == 0 { "the device reports none".into() } else { show_bytes(*bytes) };
    line("optimal request", known_or_reason(&queue.optimal_request_bytes, optimal));
    line("largest request", {
        let now = known_or_reason(&queue.max_request_bytes, |b| {
            format!("{} (max_sectors_kb {})", show_bytes(*b), b / 1024)
        });
        let hardware = queue.max_hardware_request_bytes.as_ref();
        let hardware = hardware.map_or_else(|_| "an unknown size".into(), |b| show_bytes(*b));
        format!("{now}; the hardware takes {hardware}")
    });
    let yes_or_no = |yes: &bool| if *yes { "yes" } else { "no" }.to_owned();
    line("rotational", known_or_reason(&queue.rotational, yes_or_no));
    line("queues", {
        let queues = known_or_reason(&queue.hardware_queues, u64::to_string);
        let requests = known_or_reason(&queue.requests, u64::to_string);
        let depth = queue
            .device_depth
            .as_ref()
            .map_or_else(|_| String::new(), |n| format!("; the device takes {n} at once"));
        format!("{queues}, of {requests} requests each{depth}")
    });
    line("scheduler", known_or_reason(&queue.scheduler, String::clone));
    let cache = |cache: &String| match cache.as_str() {
        "write back" => "write back: a write is stable after a flush".into(),
        "write through" => "write through: a write is stable when it completes".into(),
        other => other.to_owned(),
    };
    line("write cache", known_or_reason(&queue.write_cache, cache));
    let fua = |yes: &bool| if *yes { "yes: single writes can bypass the cache" } else { "no" }.to_owned();
    line("FUA", known_or_reason(&queue.fua, fua));
    let bytes = |bytes: &u64| show_bytes(*bytes);
    let discard = |most: &u64| match most {
        0 => "not supported".into(),
        most => {
            let granularity = known_or_reason(&queue.discard_granularity_bytes, bytes);
            format!("up to {} at once, in steps of {granularity}", show_bytes(*most))
        }
    };
    line("discard", known_or_reason(&queue.max_discard_bytes, discard));
    line("zones", known_or_reason(&queue.zoned, String::clone));
    line("read-ahead", known_or_reason(&queue.read_ahead_bytes, bytes));
    line(
        "counted",
        known_or_reason(&queue.counted, |yes| if *yes { "yes" } else { "no (queue/iostats is 0)" }.into()),
    );
    line("read-only", known_or_reason(&device.read_only, yes_or_no));
    line("removable", known_or_reason(&device.removable, yes_or_no));
    for (label, names) in
        [("on", &device.below), ("partitions", &device.partitions), ("holders", &device.holders)]
    {
        // The line `part of` names the disk.
        let is_named = label == "on" && device.disk.is_some();
        if !is_named && !names.is_empty() {
            line(label, names.join(", "));
        }
    }
    if let Some(file) = &device.backing_file {
        line("file", describe_backing(file, device.backing_direct));
    }
    if let Some(mounts) = describe_mounts(&device.mounts) {
        line("mounted", mounts);
    }
    if let Some(used) = describe_user(device) {
        line("used", used);
    }
    // For virtual disks smartctl has no more facts than /sys.
    let is_drive = ["SATA", "SAS", "NVMe", "USB"]
        .iter()
        .any(|bus| device.bus.as_ref().is_some_and(|b| b.starts_with(bus)));
    if is_drive {
        let path = device.disk.as_ref().unwrap_or(&device.name);
        line(
            "not in /sys",
            format!(
                "rotation rate, form factor, features and health: `smartctl -x /dev/{path}` reads them from the drive"
            ),
        );
    }
}

fn known_or_reason<T>(fact: &Known<T>, show: impl Fn(&T) -> String) -> String {
    fact.as_ref().map_or_else(|why| format!("not known: {why}"), show)
}

/// Describes the sizes of blocks and requests:
/// `512 logical, 4K physical; requests to 1.25 MiB (hardware 2 GiB); read-ahead 128 KiB; discards`.
fn describe_block_sizes(queue: &Queue) -> String {
    let block = |bytes: &Known<u64>| bytes.as_ref().map_or_else(|_| "unknown".into(), |b| show_block(*b));
    let bytes = |bytes: &Known<u64>| bytes.as_ref().map_or_else(|_| "unknown".into(), |b| show_bytes(*b));
    let discards = match &queue.max_discard_bytes {
        Ok(0) => "no discards",
        Ok(_) => "discards",
        Err(_) => "discards unknown",
    };
    format!(
        "{} logical, {} physical; requests to {} (hardware {}); read-ahead {}; {discards}",
        block(&queue.logical_block_bytes),
        block(&queue.physical_block_bytes),
        bytes(&queue.max_request_bytes),
        bytes(&queue.max_hardware_request_bytes),
        bytes(&queue.read_ahead_bytes)
    )
}

/// Answers that differ only in the device that they are about.
struct SameAnswers<'a> {
    /// The first of the answers.
    answer: &'a DoctorAnswer,
    /// The subject without the device.
    subject: &'a str,
    /// The devices; empty if the subject is not a device.
    devices: Vec<String>,
}

impl SameAnswers<'_> {
    /// Whether an answer about another device is the same except for the device. If the check passed, the sentences may differ.
    fn includes(&self, answer: &DoctorAnswer, subject: &str, device: &str) -> bool {
        let Some(first) = self.devices.first() else { return false };
        let is_same = |own: &str, other: &str| own.replace(first, device) == other;
        let own = self.answer;
        subject == self.subject
            && (own.outcome, own.severity, own.check) == (answer.outcome, answer.severity, answer.check)
            && (own.outcome == Outcome::Holds
                || is_same(&own.sentence, &answer.sentence) && is_same(&own.fix, &answer.fix))
    }

    /// Names the subject with all devices: `counters of sda, sdb`.
    fn about(&self) -> String {
        format!("{} {}", self.subject, join_names(&self.devices)).trim_end().to_owned()
    }

    /// Adds the other devices to a text that names the first one.
    fn with_other_devices(&self, text: &str) -> String {
        match self.devices.split_first() {
            Some((first, others)) if !others.is_empty() && text.contains(first.as_str()) => {
                format!("{text} (the same for {})", join_names(others))
            }
            _ => text.to_owned(),
        }
    }

    /// Returns the subject with the effect and the check, and the sentence:
    /// `holes (invalidates a number, A04): Most of the file was never written.`
    fn describe(&self, out: &Page) -> String {
        let effect = format!("({}{})", describe_effect(self.answer), check_suffix(self.answer));
        let about = out.paint(&format!("{} {effect}", self.about()), "33");
        format!("{about}: {}", self.with_other_devices(&self.answer.sentence))
    }
}

/// Merges answers that differ only in their device, in the order of the first of each.
fn merge_devices<'a>(
    answers: impl IntoIterator<Item = &'a DoctorAnswer>,
    devices: &[&str],
) -> Vec<SameAnswers<'a>> {
    let mut all: Vec<SameAnswers> = Vec::new();
    for answer in answers {
        let split = answer.about.rsplit_once(' ').filter(|(_, last)| devices.contains(last));
        let Some((subject, device)) = split else {
            all.push(SameAnswers { answer, subject: &answer.about, devices: Vec::new() });
            continue;
        };
        match all.iter_mut().find(|known| known.includes(answer, subject, device)) {
            Some(known) => known.devices.push(device.to_owned()),
            None => all.push(SameAnswers { answer, subject, devices: vec![device.to_owned()] }),
        }
    }
    all
}

/// Writes the conclusion, each finding once with its fix, the worst first, then what could not be checked, and a line for each group
/// with what is fine.
pub(super) fn write_diagnosis(diagnosis: &Diagnosis, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let layers = diagnosis.machine.places.iter().flat_map(|place| &place.layers);
    let devices: Vec<&str> = layers.map(|layer| layer.name.as_str()).collect();
    let (problems, notes): (Vec<&DoctorAnswer>, Vec<&DoctorAnswer>) =
        diagnosis.worst_first().into_iter().partition(|answer| answer.affects_measurement());
    let (problems, notes) = (merge_devices(problems, &devices), merge_devices(notes, &devices));
    let names: Vec<String> = problems.iter().map(SameAnswers::about).collect();
    out.paragraph(&conclude_diagnosis(diagnosis, &names));
    out.paragraph(&diagnosis.chain);
    if !problems.is_empty() {
        out.line("");
        out.line("Before you measure:");
    } else if !notes.is_empty() {
        out.line("");
        out.line("Notes:");
    }
    for (at, problem) in problems.iter().enumerate() {
        out.prose(&format!("  {}. ", at + 1), "     ", &problem.describe(&out));
        let fix = match problem.answer.fix.as_str() {
            "" => "no fix is known",
            fix => fix,
        };
        out.prose("     -> ", "        ", &problem.with_other_devices(fix));
    }
    for note in &notes {
        out.prose("  - ", "    ", &note.describe(&out));
        if !note.answer.fix.is_empty() {
            out.prose("    -> ", "       ", &note.with_other_devices(&note.answer.fix));
        }
    }
    let mut answers = diagnosis.groups.iter().flat_map(|group| &group.answers);
    if problems.is_empty() && notes.is_empty() && answers.any(|answer| answer.outcome == Outcome::NotChecked)
    {
        out.line("");
    }
    show_unchecked(&mut out, diagnosis, &devices);
    let mut is_first = true;
    for group in &diagnosis.groups {
        let fine = group.answers.iter().filter(|answer| answer.outcome == Outcome::Holds);
        let names: Vec<String> = merge_devices(fine, &devices).iter().map(SameAnswers::about).collect();
        if names.is_empty() {
            continue;
        }
        if is_first {
            out.line("");
        }
        is_first = false;
        let word = out.paint("OK", "32");
        out.prose(&format!("{word}  "), "    ", &format!("{}: {}", group.heading, join_names(&names)));
    }
    out.write(to)
}

/// Prints what could not be checked: each reason once.
fn show_unchecked(out: &mut Page, diagnosis: &Diagnosis, devices: &[&str]) {
    let answers = diagnosis.groups.iter().flat_map(|group| &group.answers);
    let unchecked: Vec<&DoctorAnswer> =
        answers.filter(|answer| answer.outcome == Outcome::NotChecked).collect();
    match unchecked.len() {
        0 => return,
        1 => out.line("1 thing could not be checked and does not count as passed:"),
        n => out.line(&format!("{n} things could not be checked and do not count as passed:")),
    }
    let merged = merge_devices(unchecked, devices);
    let reason = |same: &SameAnswers| (same.with_other_devices(&same.answer.sentence), same.about());
    for (why, subjects) in grouped(merged.iter().map(reason)) {
        out.prose("  - ", "    ", &format!("{}: {why}", join_names(&subjects)));
    }
}

#[cfg(test)]
fn device() -> BlockDevice {
    let unknown = || Err("is not there".to_owned());
    BlockDevice {
        name: "sda".into(),
        number: "8:0".into(),
        kind: LayerKind::Disk,
        label: None,
        bytes: 1 << 40,
        vendor: Some("ATA".into()),
        firmware: Some("SC61".into()),
        wwid: None,
        model: Some("SPINNER 9000".into()),
        serial: Some("S1".into()),
        bus: Some("SATA".into()),
        link: Some("6.0 Gbps".into()),
        driver: Some("sd".into()),
        disk: None,
        start_bytes: None,
        read_only: Ok(false),
        removable: Err("is not there".into()),
        queue: Queue {
            logical_block_bytes: Ok(512),
            physical_block_bytes: Ok(4096),
            max_request_bytes: Ok(1280 << 10),
            max_hardware_request_bytes: unknown(),
            requests: Ok(256),
            hardware_queues: Ok(1),
            device_depth: Ok(32),
            scheduler: Ok("mq-deadline".into()),
            write_cache: Ok("write back".into()),
            fua: Ok(false),
            discard_granularity_bytes: Ok(0),
            optimal_request_bytes: Ok(0),
            zoned: Ok("none".into()),
            rotational: Ok(true),
            read_ahead_bytes: Ok(128 << 10),
            max_discard_bytes: Ok(0),
            counted: Ok(false),
        },
        backing_file: None,
        backing_direct: None,
        below: Vec::new(),
        partitions: vec!["sda1".into()],
        holders: Vec::new(),
        mounts: Ok(Vec::new()),
        used_by: Ok(None),
    }
}

#[test]
fn a_named_device_lists_every_fact_or_the_reason_it_is_missing() {
    let devices = Devices { format: model::machine::FORMAT, devices: vec![device()], empty: Vec::new() };
    let mut out = Vec::new();
    write_devices(&devices, Style { detail: Detail::All, ..Style::default() }, &mut out).unwrap_or_default();
    let text = String::from_utf8(out).unwrap_or_default();
    for line in [
        "sda  disk, 8:0",
        "    capacity        1 TiB (1099511627776 bytes)",
        "    vendor          ATA",
        "    model           SPINNER 9000",
        "    firmware        SC61",
        "    serial number   S1",
        "    WWN             not in /sys",
        "    link            SATA, 6.0 Gbps",
        "    logical block   512 bytes",
        "    physical block  4096 bytes",
        "    largest request 1.25 MiB (max_sectors_kb 1280); the hardware takes an",
        "    rotational      yes",
        "    write cache     write back: a write is stable after a flush",
        "    FUA             no",
        "    discard         not supported",
        "    counted         no (queue/iostats is 0)",
        "    removable       not known: is not there",
        "    used            by no program",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
    assert!(text.contains("`smartctl\n") && text.lines().all(|l| l.len() <= 80), "{text}");
}

#[cfg(test)]
fn text(devices: Vec<BlockDevice>) -> String {
    let devices = Devices { format: model::machine::FORMAT, devices, empty: vec!["loop0".into()] };
    let mut out = Vec::new();
    write_devices(&devices, Style::default(), &mut out).unwrap_or_default();
    String::from_utf8(out).unwrap_or_default()
}

#[test]
fn a_disk_shows_known_and_unknown_facts() {
    let shown = text(vec![device()]);
    for expected in [
        "sda  1 TiB, disk, SPINNER 9000, serial S1, SATA (6.0 Gbps), driver sd, rotating",
        "512 logical, 4K physical; requests to 1.25 MiB (hardware unknown); read-ahead 128 KiB; no discards",
        "1 hardware queue of 256 requests, scheduler mq-deadline, cache write back, device queue depth 32, not counted",
        "by no program",
        "Without a size: loop0",
    ] {
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains(&expected.split_whitespace().collect::<Vec<_>>().join(" ")),
            "{expected}: {shown}"
        );
    }
    assert!(text(Vec::new()).starts_with("The kernel lists no block device"));
}

#[test]
fn a_partition_shows_no_queue_and_an_unknown_user_is_not_no_user() {
    let part = BlockDevice {
        name: "sda1".into(),
        kind: LayerKind::Partition,
        disk: Some("sda".into()),
        start_bytes: Some(1 << 20),
        used_by: Err("/proc/1/fd: permission denied".into()),
        ..device()
    };
    let shown = text(vec![part]);
    assert!(shown.starts_with("  sda1  1 TiB, partition, from 1 MiB\n"), "{shown}");
    assert!(!shown.contains("scheduler") && !shown.contains("by no program\n"), "{shown}");
    assert!(shown.contains("permission denied"), "{shown}");
}

#[test]
fn a_finding_about_several_disks_is_printed_once() -> Result<(), serde_json::Error> {
    use model::finding::{AnswerGroup, CheckId, FORMAT, Severity};
    use model::machine::{Layer, Place};
    let report: model::report::Report =
        serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let layer = |name: &str| Layer { name: name.into(), ..Layer::default() };
    let disks = ["sda", "sdb", "sdc"];
    let place = Place { layers: disks.map(layer).to_vec(), ..Place::default() };
    let uncounted = |disk: &str| {
        DoctorAnswer::finding(&format!("counters of {disk}"), Severity::Biases, "The kernel counts nothing.")
            .with_fix(format!("as root: `echo 1 > /sys/block/{disk}/queue/iostats`"))
            .check(CheckId::A13)
    };
    let denied = |disk: &str| {
        let sentence = format!("/dev/{disk} cannot be opened.");
        DoctorAnswer::finding(&format!("raw {disk}"), Severity::Note, sentence)
    };
    let queue = |disk: &str| DoctorAnswer::ok(&format!("queue of {disk}"), format!("{disk} takes 32."));
    let unknown = |about: &str| DoctorAnswer::unknown(about, "permission denied");
    let answers = vec![
        uncounted("sda"),
        uncounted("sdb"),
        denied("sda"),
        denied("sdc"),
        queue("sda"),
        queue("sdb"),
        unknown("cached"),
        unknown("how it is stored"),
        DoctorAnswer::ok("requests of others", "None."),
    ];
    let diagnosis = Diagnosis {
        format: FORMAT,
        target: "/data".into(),
        chain: "/data (xfs at /data, rw) > md0".into(),
        watched_ms: 3000,
        groups: vec![AnswerGroup { heading: "The device below".into(), answers }],
        machine: model::machine::Machine { places: vec![place], ..report.machine },
    };
    let mut out = Vec::new();
    write_diagnosis(&diagnosis, Style::default(), &mut out).unwrap_or_default();
    let expected = "\
1 thing would change what a number means: counters of sda, sdb.
/data (xfs at /data, rw) > md0

Before you measure:
  1. counters of sda, sdb (biases a number, A13): The kernel counts nothing.
     -> as root: `echo 1 > /sys/block/sda/queue/iostats` (the same for sdb)
  - raw sda, sdc (note): /dev/sda cannot be opened. (the same for sdc)
2 things could not be checked and do not count as passed:
  - cached, how it is stored: permission denied

OK  The device below: queue of sda, sdb; requests of others
";
    assert_eq!(String::from_utf8(out).unwrap_or_default(), expected);
    let answers = [DoctorAnswer::ok("CPU", "Idle."), unknown("cached")];
    let text_of = |answers: &[DoctorAnswer]| {
        let groups = vec![AnswerGroup { heading: "The machine".into(), answers: answers.to_vec() }];
        let mut out = Vec::new();
        let diagnosis = Diagnosis { groups, ..diagnosis.clone() };
        write_diagnosis(&diagnosis, Style { width: 200, ..Style::default() }, &mut out).unwrap_or_default();
        String::from_utf8(out).unwrap_or_default()
    };
    let fit = "This machine is fit to measure: nothing was found that would change what a number means.\n\
               /data (xfs at /data, rw) > md0\n\nOK  The machine: CPU\n";
    assert_eq!(text_of(&answers[..1]), fit);
    let partly = text_of(&answers);
    assert!(partly.starts_with("This machine is fit to measure, as far as fathom can tell: "), "{partly}");
    assert!(partly.contains(", but could not check 1 thing.\n"), "{partly}");
    assert!(
        partly.contains("md0\n\n1 thing could not be checked and does not count as passed:\n"),
        "{partly}"
    );
    Ok(())
}
