//! The storage below the target: file system, layers, direct I/O, free space; stored data and its pages in memory; counters of all layers;
//! queue settings, alignment, link and temperature of the lowest devices.
//!
//! A `Place` is the stack below the target, a [`DoctorAnswer`] one line of the report. If a check of
//! results (`CheckId`) also works without a measurement, [`Idle`] runs that check. Devices with
//! equal answers share a line.

use crate::doctor::{Observation, fine, name_answer, problem, quote_path};
use analysis::idle::{Idle, severity_of_cached_share};
use model::Known;
use model::evidence::Pages;
use model::finding::{CheckId, DoctorAnswer, Outcome, Severity};
use model::machine::{Layer, LayerKind, Place};
use model::plan::Role;
use model::units::{show_bytes, show_share};

pub(super) fn check_place(observation: &Observation) -> Vec<DoctorAnswer> {
    let (place, idle) = (observation.place(), observation.idle());
    let mut answers = vec![describe_below(place, &idle)];
    answers.extend(place.layers.iter().filter(|l| l.kind == LayerKind::Loop).map(check_backing_file));
    // A file system in memory always uses the page cache, which is reported already.
    if place.ram.is_none() {
        answers
            .extend(idle.answer("direct I/O", CheckId::A03).map(|answer| name_witness(observation, answer)));
        answers.extend(idle.answer("flushes", CheckId::C02));
    }
    answers.extend(idle.answer("remote", CheckId::D24).filter(|answer| answer.outcome == Outcome::Finding));
    answers.extend(idle.answer("software RAID", CheckId::D23));
    answers.extend(idle.answer("free space", CheckId::D20).map(|answer| add_free_space(observation, answer)));
    answers
}

fn describe_below(place: &Place, idle: &Idle) -> DoctorAnswer {
    const ABOUT: &str = "what is below";
    if place.ram.is_some()
        && let Some(memory) = idle.answer(ABOUT, CheckId::A11)
    {
        return memory;
    }
    let why = match &place.unresolved_reason {
        Some(why) => format!("{why}; a number measured here cannot be compared with a device"),
        None => match place.lowest_layers().map(|l| l.name.as_str()).collect::<Vec<_>>().as_slice() {
            [] => "no block device was found".into(),
            names => return DoctorAnswer::ok(ABOUT, format!("{} on {}.", place.kind(), names.join(", "))),
        },
    };
    DoctorAnswer::unknown(ABOUT, why).check(CheckId::A13)
}

fn check_backing_file(layer: &Layer) -> DoctorAnswer {
    let (name, file) = (&layer.name, layer.backing_file.as_deref().unwrap_or("a file"));
    let answer = match layer.backing_direct {
        Some(true) => fine(format!("{file} is read without the page cache.")),
        Some(false) => {
            let sentence =
                format!("{name} goes through the page cache of {file}, so its speed can be that of memory.");
            let fix = format!("losetup --direct-io=on /dev/{name}");
            problem(Severity::Relabels, sentence, fix).map(|answer| answer.check(CheckId::A12))
        }
        None => Err(format!("the kernel does not show whether {file} is read without the page cache")),
    };
    name_answer(&format!("backing of {name}"), None, answer)
}

/// Names the file that decided the answer about direct I/O in a directory, or reports that the directory has no such file.
fn name_witness(observation: &Observation, answer: DoctorAnswer) -> DoctorAnswer {
    let sentence = match &observation.witness {
        Some((name, _)) if answer.outcome == Outcome::Holds => {
            format!("Supported, as the file '{name}' in this directory shows.")
        }
        Some((name, _)) => {
            format!(
                "{}, as the file '{name}' in this directory shows.",
                answer.sentence.trim_end_matches('.')
            )
        }
        None if observation.role == Role::Made && answer.outcome == Outcome::NotChecked => {
            "no file in this directory shows whether direct I/O works here; a measurement reports it".into()
        }
        None => return answer,
    };
    DoctorAnswer { sentence, ..answer }
}

/// Adds the free space to an answer without a finding. A finding already contains it.
fn add_free_space(observation: &Observation, answer: DoctorAnswer) -> DoctorAnswer {
    let Some(Ok(room)) = observation.target().and_then(|t| t.room.as_ref()) else { return answer };
    if answer.outcome != Outcome::Holds {
        return answer;
    }
    let (free, total) = (show_bytes(room.free_bytes), show_bytes(room.total_bytes));
    let share = show_share(room.free_bytes as f64 / room.total_bytes as f64);
    DoctorAnswer { sentence: format!("{free} of {total} are free ({share})."), ..answer }
}

/// The subjects that depend on a file's extents, each with its check.
const OF_EXTENTS: [(&str, CheckId); 4] = [
    ("inline", CheckId::A06),
    ("compressed", CheckId::A07),
    ("shared", CheckId::A21),
    ("pieces", CheckId::B15),
];

pub(super) fn check_stored_data(observation: &Observation) -> Vec<DoctorAnswer> {
    // In a directory, a measurement would make its own test file.
    if observation.role == Role::Made {
        return vec![DoctorAnswer::ok(
            "test file",
            "fathom makes a test file in this directory, writes the whole file, evicts it from memory, and removes it at the end.",
        )];
    }
    if observation.bytes == 0 {
        let empty = DoctorAnswer::finding("size", Severity::Invalidates, "The target is empty.");
        return vec![empty.with_fix("name a directory, or a file with content")];
    }
    let Some(target) = observation.target() else { return Vec::new() };
    let mut answers = match &target.pages {
        // A file in memory is its own page cache.
        _ if observation.place().ram.is_some() => Vec::new(),
        Ok(pages) => vec![
            name_answer("cached", Some(CheckId::A01), check_cached(observation, pages)),
            name_answer("not written yet", Some(CheckId::D02), check_dirty(observation, pages)),
        ],
        Err(why) => vec![DoctorAnswer::unknown("cached", why).check(CheckId::A01)],
    };
    if observation.role == Role::File {
        // `observe` reads no extents of a file with more than `MAX_DIRTY_BYTES` dirty bytes.
        let too_dirty = Err("too much of the file is not written yet; first type `sync`".into());
        match target.extents.as_ref().unwrap_or(&too_dirty) {
            Ok(extents) => {
                let idle = observation.idle();
                // A file that is one hole has no extents, only holes.
                let stored = OF_EXTENTS.iter().filter(|_| extents.count > 0);
                let asked = std::iter::once(&("holes", CheckId::A04)).chain(stored);
                answers.extend(asked.filter_map(|(about, id)| idle.answer(about, *id)).map(name_unshared));
            }
            Err(why) => answers.push(DoctorAnswer::unknown("how it is stored", why).check(CheckId::A04)),
        }
    }
    answers
}

/// Replaces the sentence of A21 if it found nothing. Without a run, A21 only shows that no block is shared, not where writes went.
fn name_unshared(answer: DoctorAnswer) -> DoctorAnswer {
    if answer.about == "shared" && answer.outcome == Outcome::Holds {
        return DoctorAnswer::ok("shared", "The file shares no blocks with a copy or a snapshot.");
    }
    answer
}

fn check_cached(observation: &Observation, pages: &Pages) -> Known<DoctorAnswer> {
    let bytes = pages.cached.saturating_mul(pages.page_bytes).min(observation.bytes);
    let share = bytes as f64 / observation.bytes as f64;
    let sentence = format!(
        "{} of the target's {} are in memory ({}).",
        show_bytes(bytes),
        show_bytes(observation.bytes),
        show_share(share)
    );
    let Some(severity) = severity_of_cached_share(share) else { return fine(sentence) };
    let path = quote_path(&observation.path);
    problem(
        severity,
        format!("{sentence} Buffered reads of cached data do not reach the device."),
        format!(
            "dd if={path} iflag=nocache count=0 (`fathom bench` evicts the target before each run), or measure with --cache direct"
        ),
    )
}

fn check_dirty(observation: &Observation, pages: &Pages) -> Known<DoctorAnswer> {
    let dirty = pages.dirty.ok_or("this kernel does not report dirty pages (no cachestat)")?;
    if dirty == 0 {
        return fine("No page of the target is dirty in memory.");
    }
    let bytes = show_bytes(dirty.saturating_mul(pages.page_bytes));
    let sentence =
        format!("{bytes} of the target are dirty in memory; they would be written during a measurement.");
    problem(Severity::Biases, sentence, format!("sync {}", quote_path(&observation.path)))
}

/// Largest block of the default profile. A device with a smaller limit splits it.
const LARGEST_BYTES: u64 = 1 << 20;
/// Deepest queue of the default profile. With a smaller limit of the device, requests wait.
const DEEPEST: u64 = 32;

/// Checks the counters of all layers and the settings of the devices at the bottom of the stack,
/// unless the target is memory. Also checks the link and the temperature of these devices.
pub(super) fn check_device(observation: &Observation) -> Vec<DoctorAnswer> {
    let (place, idle) = (observation.place(), observation.idle());
    let leaves: Vec<&Layer> = place.lowest_layers().collect();
    let mut answers = Vec::new();
    if leaves.is_empty() {
        return answers;
    }
    if place.ram.is_none() {
        let layers: Vec<&Layer> = place.layers.iter().collect();
        answers.extend(merge_equal(&layers, "counters", Some(CheckId::A13), check_counters));
        answers.extend(idle.answer("settings", CheckId::D22));
        answers.extend(merge_equal(&leaves, "largest request", Some(CheckId::B02), check_largest_request));
        answers.extend(merge_equal(&leaves, "queue", Some(CheckId::B09), check_queue));
        answers.extend(merge_equal(&leaves, "write cache", Some(CheckId::C01), check_write_cache));
        answers.extend(idle.answer("alignment", CheckId::B11));
        answers.extend(merge_equal(&leaves, "interrupts", None, describe_interrupts));
    }
    answers.extend(idle.answer("link", CheckId::D16));
    answers.extend(idle.answer("temperature", CheckId::D15));
    answers
}

/// Asks about each device, and merges equal answers. `id` is the check of results that answers the same question; `None` without such a
/// check. In the command of a fix, the names of the devices replace `@`, in shell syntax.
fn merge_equal(
    layers: &[&Layer],
    about: &str,
    id: Option<CheckId>,
    ask: fn(&Layer) -> Known<DoctorAnswer>,
) -> Vec<DoctorAnswer> {
    let mut found: Vec<(Vec<&Layer>, DoctorAnswer)> = Vec::new();
    for layer in layers {
        let answer = name_answer(about, id, ask(layer));
        match found.iter_mut().find(|(_, known)| *known == answer) {
            Some((same, _)) => same.push(layer),
            None => found.push((vec![layer], answer)),
        }
    }
    let names = |layers: &[&Layer], separator: &str| {
        layers.iter().map(|layer| layer.name.as_str()).collect::<Vec<_>>().join(separator)
    };
    let merge = |(same, answer): (Vec<&Layer>, DoctorAnswer)| {
        // A partition has no queue of its own.
        let with_queue: Vec<&Layer> =
            same.iter().copied().filter(|layer| layer.kind != LayerKind::Partition).collect();
        let expanded = match with_queue.as_slice() {
            [] => names(&same, ","),
            [one] => one.name.clone(),
            several => format!("{{{}}}", names(several, ",")),
        };
        let about = format!("{} of {}", answer.about, names(&same, ", "));
        DoctorAnswer { about, fix: answer.fix.replace('@', &expanded), ..answer }
    };
    found.into_iter().map(merge).collect()
}

/// Returns the command that changes a setting of a queue. `@` is the placeholder for the names of the devices.
fn setting_command(file: &str, value: &str) -> String {
    format!("as root: echo {value} | tee /sys/block/@/queue/{file}")
}

fn read_word<'a>(layer: &'a Layer, file: &str) -> Known<&'a str> {
    let text = layer.queue.get(file).ok_or_else(|| format!("there is no queue/{file}"))?;
    Ok(text.trim())
}

fn read_number(layer: &Layer, file: &str) -> Known<u64> {
    let text = read_word(layer, file)?;
    text.parse().map_err(|_| format!("queue/{file} is not a number: '{text}'"))
}

fn check_counters(layer: &Layer) -> Known<DoctorAnswer> {
    if layer.counters_off_reason().is_none() {
        return fine("The kernel counts the device's requests.");
    }
    let sentence =
        "The counters are disabled (queue/iostats is 0), so no number can be compared with the device.";
    problem(Severity::Biases, sentence, setting_command("iostats", "1"))
}

fn check_largest_request(layer: &Layer) -> Known<DoctorAnswer> {
    let bytes = read_number(layer, "max_sectors_kb")?.saturating_mul(1024);
    if bytes >= LARGEST_BYTES {
        return fine(format!("{}.", show_bytes(bytes)));
    }
    let fix = match read_number(layer, "max_hw_sectors_kb") {
        Ok(kib) if kib.saturating_mul(1024) >= LARGEST_BYTES => {
            setting_command("max_sectors_kb", &(LARGEST_BYTES / 1024).to_string())
        }
        Ok(_) => "the limit of the hardware (max_hw_sectors_kb) is below 1 MiB; an operation of 1 MiB ends with the last of its requests"
            .into(),
        Err(why) => format!("whether the hardware allows larger requests is unknown: {why}"),
    };
    let sentence = format!("{}: an operation of 1 MiB becomes several requests.", show_bytes(bytes));
    problem(Severity::Note, sentence, fix)
}

fn check_queue(layer: &Layer) -> Known<DoctorAnswer> {
    let (requests, queues) = (read_number(layer, "nr_requests")?, layer.device_number("mq")?);
    let accepted = layer.accepted_requests()?;
    let mut sentence = match queues {
        1 => format!("{requests} requests in its one hardware queue."),
        n => format!("{requests} requests in each of {n} hardware queues."),
    };
    let in_queues = requests.saturating_mul(queues.max(1));
    if accepted < in_queues {
        sentence += &format!(" The device itself takes {accepted} at once (queue_depth).");
    }
    if accepted >= DEEPEST {
        return fine(sentence);
    }
    let sentence = format!("{sentence} Further requests wait above the device.");
    let fix = if in_queues >= DEEPEST {
        format!(
            "as root, up to what the device supports: echo {DEEPEST} | tee /sys/block/@/device/queue_depth"
        )
    } else {
        setting_command("nr_requests", &DEEPEST.to_string())
    };
    problem(Severity::Note, sentence, fix)
}

fn check_write_cache(layer: &Layer) -> Known<DoctorAnswer> {
    match read_word(layer, "write_cache")? {
        "write back" => fine("The device reports a volatile write cache: a sync flushes the cache."),
        "write through" => fine("The kernel assumes no volatile write cache: a sync sends no flush."),
        other => Err(format!("queue/write_cache is '{other}'")),
    }
}

fn describe_interrupts(layer: &Layer) -> Known<DoctorAnswer> {
    let cpus = layer.device.get("irq_cpus").map(|cpus| cpus.trim()).filter(|cpus| !cpus.is_empty());
    let cpus = cpus.ok_or("the CPUs that serve the interrupts are unknown; see /proc/interrupts")?;
    fine(format!(
        "CPUs that serve the interrupts: {cpus}. --cpus {cpus} runs the workers on these CPUs; choose other CPUs to keep the workers off the interrupts."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation_tests::{find_answer, in_order};
    use model::finding::{DoctorAnswer, Outcome};
    use model::machine::DirectIo;

    fn answer_about(observation: &Observation, about: &str) -> DoctorAnswer {
        find_answer(check_place(observation), about)
    }

    #[test]
    fn a_good_place_has_no_finding() {
        let answers = check_place(&in_order());
        assert!(answers.iter().all(|a| a.outcome == Outcome::Holds), "{answers:#?}");
        assert_eq!(answers.len(), 4);
    }

    #[test]
    fn memory_a_cached_loop_and_a_data_journal_are_found() {
        let mut observation = in_order();
        observation.machine.places[0].ram = Some("tmpfs".into());
        assert_eq!(answer_about(&observation, "what is below").check, Some(CheckId::A11));
        let mut observation = in_order();
        let layer = &mut observation.machine.places[0].layers[1];
        (layer.kind, layer.name, layer.backing_direct) = (LayerKind::Loop, "loop3".into(), Some(false));
        let answer = answer_about(&observation, "backing of loop3");
        assert_eq!(
            (answer.severity, answer.fix.as_str()),
            (Some(Severity::Relabels), "losetup --direct-io=on /dev/loop3")
        );
        let mut observation = in_order();
        observation.machine.places[0].file_system.as_mut().unwrap_or_else(|| panic!()).options =
            "rw,data=journal,nobarrier".into();
        assert_eq!(answer_about(&observation, "direct I/O").check, Some(CheckId::A03));
        assert_eq!(answer_about(&observation, "flushes").check, Some(CheckId::C02));
    }

    #[test]
    fn direct_io_of_a_directory_is_read_from_a_file_in_it() {
        let mut observation = in_order();
        (observation.role, observation.machine.places[0].direct) = (Role::Made, None);
        assert_eq!(answer_about(&observation, "direct I/O").outcome, Outcome::NotChecked);
        observation.witness = Some(("old".into(), DirectIo { memory_align: 0, offset_align: 0 }));
        assert_eq!(answer_about(&observation, "direct I/O").severity, Some(Severity::Relabels));
        observation.witness = Some(("old".into(), DirectIo { memory_align: 512, offset_align: 512 }));
        assert!(answer_about(&observation, "direct I/O").sentence.contains("'old'"));
    }

    #[test]
    fn a_file_system_with_less_than_ten_percent_free_is_found() {
        let mut observation = in_order();
        let mut free = |percent: u64| {
            let room = model::evidence::Room { total_bytes: 100, free_bytes: percent };
            observation.end.targets[0].room = Some(Ok(room));
            answer_about(&observation, "free space").outcome
        };
        assert_eq!((free(10), free(9)), (Outcome::Holds, Outcome::Finding));
        observation.end.targets[0].room = None;
        assert_eq!(answer_about(&observation, "free space").outcome, Outcome::NotChecked);
    }

    #[test]
    fn busy_and_degraded_arrays_are_found() {
        let mut observation = in_order();
        let layer = &mut observation.machine.places[0].layers[1];
        (layer.kind, layer.name) = (LayerKind::Raid, "md0".into());
        assert_eq!(answer_about(&observation, "software RAID").outcome, Outcome::NotChecked);
        let mut with = |tail: &str| {
            let text = format!(
                "Personalities : [raid1]\nmd1 : active\n  9 blocks [2/1] [U_]\n\nmd0 : active raid1\n  9 blocks {tail}\n\nunused devices: <none>\n"
            );
            observation.start.files.insert(model::evidence::RAID.into(), Ok(text.clone()));
            observation.end.files.insert(model::evidence::RAID.into(), Ok(text));
            answer_about(&observation, "software RAID").outcome
        };
        assert_eq!(with("[2/2] [UU]"), Outcome::Holds);
        assert_eq!(with("[2/1] [U_]\n  bitmap: 0/1 pages [0KB], 65536KB chunk"), Outcome::Finding);
        assert_eq!(with("[2/2] [UU]\n  [=>...]  resync = 12.6% (1/9)"), Outcome::Finding);
    }
}

#[cfg(test)]
mod data_tests {
    use super::*;
    use crate::doctor::observation_tests::{find_answer, in_order};
    use model::evidence::Extents;
    use model::finding::Outcome;

    fn answer_about(observation: &Observation, about: &str) -> DoctorAnswer {
        find_answer(check_stored_data(observation), about)
    }

    fn extents(observation: &mut Observation) -> &mut Extents {
        match &mut observation.end.targets[0].extents {
            Some(Ok(extents)) => extents,
            _ => panic!("the simulated file has extents"),
        }
    }

    #[test]
    fn a_good_file_has_no_finding() {
        let mut observation = in_order();
        let answers = check_stored_data(&observation);
        assert!(answers.iter().all(|a| a.outcome == Outcome::Holds), "{answers:#?}");
        observation.role = Role::Made;
        assert_eq!(check_stored_data(&observation).len(), 1);
    }

    #[test]
    fn cached_and_dirty_pages_are_rated_by_share() {
        let mut observation = in_order();
        let mut pages = |cached: u64, dirty: Option<u64>| {
            observation.end.targets[0].pages = Ok(Pages { page_bytes: 4096, cached, dirty });
            (
                answer_about(&observation, "cached").severity,
                answer_about(&observation, "not written yet").outcome,
            )
        };
        let all = (1_u64 << 30) / 4096;
        assert_eq!(pages(all / 25, Some(0)), (None, Outcome::Holds));
        assert_eq!(pages(all / 10, Some(1)), (Some(Severity::Biases), Outcome::Finding));
        assert_eq!(pages(all, None), (Some(Severity::Relabels), Outcome::NotChecked));
        observation.end.targets[0].pages = Err("not yours".into());
        assert_eq!(answer_about(&observation, "cached").outcome, Outcome::NotChecked);
    }

    #[test]
    fn holes_and_encoded_extents_are_found() {
        let mut observation = in_order();
        extents(&mut observation).hole_bytes = 1 << 19;
        assert_eq!(answer_about(&observation, "holes").outcome, Outcome::Holds);
        extents(&mut observation).unwritten_bytes = 1 << 20;
        assert_eq!(answer_about(&observation, "holes").severity, Some(Severity::Invalidates));
        (extents(&mut observation).encoded_bytes, extents(&mut observation).shared_bytes) =
            (1 << 24, 1 << 23);
        assert_eq!(answer_about(&observation, "compressed").check, Some(CheckId::A07));
        assert_eq!(answer_about(&observation, "shared").outcome, Outcome::Holds);
        extents(&mut observation).inline_bytes = 1 << 24;
        assert_eq!(answer_about(&observation, "inline").check, Some(CheckId::A06));
        *extents(&mut observation) =
            Extents { span_bytes: 1 << 30, hole_bytes: 1 << 30, ..Extents::default() };
        // A file that is one hole has a single answer about its blocks, and two about its pages.
        assert_eq!(check_stored_data(&observation).len(), 3);
        observation.end.targets[0].extents = None;
        assert_eq!(answer_about(&observation, "how it is stored").outcome, Outcome::NotChecked);
    }

    #[test]
    fn many_extents_are_found() {
        let mut observation = in_order();
        extents(&mut observation).count = 100;
        assert_eq!(answer_about(&observation, "pieces").outcome, Outcome::Holds);
        observation.machine.places[0].layers[1].queue.insert("rotational".into(), "1\n".into());
        assert_eq!(answer_about(&observation, "pieces").severity, Some(Severity::Biases));
        assert_eq!(answer_about(&observation, "pieces").check, Some(CheckId::B15));
    }
}

#[cfg(test)]
mod device_tests {
    use super::*;
    use crate::doctor::observation_tests::{find_answer, in_order};
    use model::finding::Outcome;

    fn answer_about(observation: &Observation, about: &str) -> DoctorAnswer {
        find_answer(check_device(observation), about)
    }

    /// The answer about a subject after the file of a setting of the disk was changed; `None` removes this file.
    fn with(file: &str, value: Option<&str>, about: &str) -> DoctorAnswer {
        let mut observation = in_order();
        let disk = &mut observation.machine.places[0].layers[1];
        let files = if disk.queue.contains_key(file) { &mut disk.queue } else { &mut disk.device };
        match value {
            Some(value) => files.insert(file.into(), format!("{value}\n")),
            None => files.remove(file),
        };
        answer_about(&observation, about)
    }

    #[test]
    fn a_good_device_has_no_finding() {
        let answers = check_device(&in_order());
        assert!(answers.iter().all(|a| a.outcome == Outcome::Holds), "{answers:#?}");
        // A partition and its disk have equal answers, so they share a line.
        assert_eq!(answers[0].about, "counters of sda1, sda");
    }

    #[test]
    fn settings_are_found_beyond_their_threshold() {
        let table = [
            ("scheduler", "none [mq-deadline]", "[none]", "settings", CheckId::D22),
            ("read_ahead_kb", "4096", "128", "settings", CheckId::D22),
            ("max_sectors_kb", "1023", "1024", "largest request", CheckId::B02),
            ("nr_requests", "7", "8", "queue", CheckId::B09),
            ("alignment_offset", "512", "0", "alignment", CheckId::B11),
        ];
        for (file, bad, good, about, id) in table {
            let answer = with(file, Some(bad), about);
            assert_eq!(
                (answer.outcome, answer.check),
                (Outcome::Finding, Some(id)),
                "{file} {bad}: {answer:?}"
            );
            assert_eq!(with(file, Some(good), about).outcome, Outcome::Holds, "{file} {good}");
        }
        for (file, about) in
            [("scheduler", "settings"), ("max_sectors_kb", "largest"), ("nr_requests", "queue")]
        {
            assert_eq!(with(file, None, about).outcome, Outcome::NotChecked, "{file}");
        }
        assert_eq!(with("write_cache", Some("write sideways"), "write cache").outcome, Outcome::NotChecked);
        assert_eq!(with("irq_cpus", None, "interrupts").outcome, Outcome::NotChecked);
    }

    #[test]
    fn equal_answers_of_devices_are_merged() {
        let mut observation = in_order();
        let mut disk = observation.machine.places[0].layers[1].clone();
        disk.queue.insert("iostats".into(), "0\n".into());
        let mut other = disk.clone();
        other.name = "sdb".into();
        observation.machine.places[0].layers = vec![disk, other];
        let answer = answer_about(&observation, "counters");
        assert_eq!(
            (answer.about.as_str(), answer.severity),
            ("counters of sda, sdb", Some(Severity::Biases))
        );
        assert_eq!(answer.fix, "as root: echo 1 | tee /sys/block/{sda,sdb}/queue/iostats");
        // A partition shares the answer of its disk, but has no queue to change.
        let mut observation = in_order();
        for layer in &mut observation.machine.places[0].layers {
            layer.queue.insert("iostats".into(), "0\n".into());
        }
        let answer = answer_about(&observation, "counters");
        assert_eq!(answer.about, "counters of sda1, sda");
        assert_eq!(answer.fix, "as root: echo 1 | tee /sys/block/sda/queue/iostats");
    }

    #[test]
    fn the_queue_is_judged_as_in_a_measurement() {
        // The disk accepts no more than its own queue depth.
        let mut observation = in_order();
        observation.machine.places[0].layers[1].device.insert("device/queue_depth".into(), "1\n".into());
        let answer = answer_about(&observation, "queue");
        assert_eq!((answer.outcome, answer.check), (Outcome::Finding, Some(CheckId::B09)), "{answer:?}");
        assert!(answer.sentence.contains("takes 1 at once (queue_depth)"), "{answer:?}");
        assert!(answer.fix.ends_with("/sys/block/sda/device/queue_depth"), "{answer:?}");
        assert_eq!(with("mq", None, "queue").outcome, Outcome::NotChecked);
    }

    #[test]
    fn an_unknown_limit_of_the_hardware_is_not_blamed() {
        let mut observation = in_order();
        let disk = &mut observation.machine.places[0].layers[1];
        disk.queue.insert("max_sectors_kb".into(), "64".into());
        disk.queue.remove("max_hw_sectors_kb");
        let answer = answer_about(&observation, "largest request");
        assert!(
            answer.fix.starts_with("whether the hardware allows larger requests is unknown: "),
            "{answer:?}"
        );
    }

    #[test]
    fn a_partition_inside_a_block_is_found() {
        let mut observation = in_order();
        observation.machine.places[0].layers[0].device.insert("start".into(), "63\n".into());
        let answer = answer_about(&observation, "alignment");
        assert!(
            answer.check == Some(CheckId::B11) && answer.sentence.contains("sda1 begins at sector 63"),
            "{answer:?}"
        );
    }

    #[test]
    fn a_slow_link_is_found() {
        let mut observation = in_order();
        assert!(check_device(&observation).iter().all(|a| a.outcome == Outcome::Holds));
        let disk = &mut observation.machine.places[0].layers[1];
        for (file, value) in [("current_link_speed", "8.0 GT/s PCIe"), ("max_link_speed", "16.0 GT/s PCIe")] {
            disk.device.insert(file.into(), value.into());
        }
        assert_eq!(answer_about(&observation, "link").check, Some(CheckId::D16));
        observation.machine.places[0].layers[1]
            .device
            .insert("current_link_speed".into(), "16.0 GT/s PCIe".into());
        assert_eq!(answer_about(&observation, "link").outcome, Outcome::Holds);
    }

    #[test]
    fn a_hot_drive_is_found() {
        let mut observation = in_order();
        let mut at = |text: &str| {
            for snapshot in [&mut observation.start, &mut observation.end] {
                snapshot.files.insert(model::evidence::TEMPERATURES.into(), Ok(text.into()));
            }
            answer_about(&observation, "temperature").outcome
        };
        assert_eq!(at("/h/temp1_input: 78000\n/h/temp1_max: 80000\n"), Outcome::Finding);
        assert_eq!(at("/h/temp1_input: 77999\n/h/temp1_max: 80000\n"), Outcome::Holds);
        assert_eq!(at("/h/temp1_input: 78000\n"), Outcome::NotChecked);
    }
}
