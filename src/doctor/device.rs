//! The devices at the bottom: how their queues are set, whether they count, and where they begin.
//!
//! For: one line per setting, with all devices that are alike in it. Not for: what they do at this moment.

use super::observation::Observation;
use model::Known;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::finding::Severity;
use model::machine::{Layer, LayerKind};
use model::units::show_bytes;

/// Largest block and deepest queue of the default profile: what is larger or deeper is not usual, what is smaller splits it.
const LARGEST_BYTES: u64 = 1 << 20;
const DEEPEST: u64 = 32;
/// Read-ahead beyond which a buffered read of one block moves a second's worth of a slow disk; the kernel's default is 128 KiB.
const READ_AHEAD_FROM: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;

pub(super) fn check_device_settings(seen: &Observation) -> Vec<Look> {
    let leaves = seen.leaves();
    if leaves.is_empty() || seen.place().ram.is_some() {
        return Vec::new();
    }
    let layers: Vec<&Layer> = seen.place().layers.iter().collect();
    let partitions: Vec<&Layer> = layers.iter().copied().filter(|l| l.kind == LayerKind::Partition).collect();
    let mut looks = each(&layers, counters);
    for ask in [scheduler, read_ahead, largest, queue, write_cache, beginning] {
        looks.extend(each(&leaves, ask));
    }
    looks.extend(each(&partitions, partition));
    looks.extend(each(&leaves, interrupts));
    looks
}

/// Asks each device, and says once what several answer alike. An `@` in a cure stands for their names as a shell expands them.
fn each(layers: &[&Layer], ask: fn(&Layer) -> Look) -> Vec<Look> {
    let mut found: Vec<(Vec<&str>, Look)> = Vec::new();
    for layer in layers {
        let look = ask(layer);
        match found.iter_mut().find(|(_, l)| *l == look) {
            Some((names, _)) => names.push(&layer.name),
            None => found.push((vec![&layer.name], look)),
        }
    }
    let named = |(names, look): (Vec<&str>, Look)| {
        let expanded = match names.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("{{{}}}", several.join(",")),
        };
        Look {
            about: format!("{} of {}", look.about, names.join(", ")),
            cure: look.cure.replace('@', &expanded),
            ..look
        }
    };
    found.into_iter().map(named).collect()
}

fn setting(file: &str, value: &str) -> String {
    format!("as root: echo {value} | tee /sys/block/@/queue/{file}")
}

fn word<'a>(layer: &'a Layer, file: &str) -> Known<&'a str> {
    let text = layer.queue.get(file).ok_or_else(|| format!("there is no queue/{file}"))?;
    Ok(text.trim())
}

fn number(layer: &Layer, file: &str) -> Known<u64> {
    let text = word(layer, file)?;
    text.parse().map_err(|_| format!("queue/{file} is no number: '{text}'"))
}

fn counters(layer: &Layer) -> Look {
    const ABOUT: &str = "counters";
    match layer.blind() {
        Some(_) => Look::finding(
            ABOUT,
            Severity::Biased,
            "They are switched off (queue/iostats is 0), so no number can be compared with the device.",
        )
        .cure(setting("iostats", "1"))
        .check(CheckId::A13),
        None => Look::ok(ABOUT, "The kernel counts what it does."),
    }
}

fn scheduler(layer: &Layer) -> Look {
    const ABOUT: &str = "scheduler";
    let text = match word(layer, "scheduler") {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D22),
    };
    let chosen =
        text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(name, _)| name);
    let several = layer.device_number("mq").is_ok_and(|n| n > 1);
    let sentence = match chosen {
        "bfq" => "bfq idles and shares time out between processes, which costs IOPS.".to_owned(),
        name if name != "none" && several => {
            format!("{name} sorts and holds requests, on a device with several queues of its own.")
        }
        name => return Look::ok(ABOUT, format!("{name}.")),
    };
    let best = if several { "none" } else { "mq-deadline" };
    Look::finding(ABOUT, Severity::Note, sentence).cure(setting("scheduler", best)).check(CheckId::D22)
}

fn read_ahead(layer: &Layer) -> Look {
    const ABOUT: &str = "read-ahead";
    let bytes = match number(layer, "read_ahead_kb") {
        Ok(kib) => kib.saturating_mul(1024),
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::B03),
    };
    let shown = show_bytes(bytes);
    match bytes {
        0 => Look::finding(
            ABOUT,
            Severity::Note,
            "It is off: buffered sequential reads wait for every block. Direct ones are not affected.",
        )
        .cure(setting("read_ahead_kb", "128"))
        .check(CheckId::B03),
        b if b > READ_AHEAD_FROM => {
            let sentence = format!(
                "{shown} are fetched ahead of a buffered reader, needed or not (usual are 128 KiB). Direct reads are not affected."
            );
            Look::finding(ABOUT, Severity::Note, sentence)
                .cure(setting("read_ahead_kb", "128"))
                .check(CheckId::B03)
        }
        _ => Look::ok(ABOUT, format!("{shown}, for buffered reads only.")),
    }
}

fn largest(layer: &Layer) -> Look {
    const ABOUT: &str = "largest request";
    let bytes = match number(layer, "max_sectors_kb") {
        Ok(kib) => kib.saturating_mul(1024),
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::B02),
    };
    if bytes >= LARGEST_BYTES {
        return Look::ok(ABOUT, format!("{}.", show_bytes(bytes)));
    }
    let hardware = number(layer, "max_hw_sectors_kb").unwrap_or(0).saturating_mul(1024);
    let cure = if hardware >= LARGEST_BYTES {
        setting("max_sectors_kb", &(LARGEST_BYTES / 1024).to_string())
    } else {
        "the hardware takes no more; know that a latency of a large block is that of its parts".into()
    };
    let sentence = format!("{}: an operation of 1 MiB becomes several requests.", show_bytes(bytes));
    Look::finding(ABOUT, Severity::Note, sentence).cure(cure).check(CheckId::B02)
}

fn queue(layer: &Layer) -> Look {
    const ABOUT: &str = "queue";
    let requests = match number(layer, "nr_requests") {
        Ok(n) => n,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::B09),
    };
    let queues = layer.device_number("mq");
    let room = requests.saturating_mul(queues.as_ref().map_or(1, |n| (*n).max(1)));
    let sentence = match queues {
        Ok(1) => format!("{requests} requests in its one hardware queue."),
        Ok(n) => format!("{requests} requests in each of {n} hardware queues."),
        // How many there are may be unknown; that there is room in one is not.
        Err(_) => format!("{requests} requests in each hardware queue."),
    };
    if room < DEEPEST {
        return Look::finding(
            ABOUT,
            Severity::Note,
            format!("{sentence} What is deeper waits above the device."),
        )
        .cure(setting("nr_requests", &DEEPEST.to_string()))
        .check(CheckId::B09);
    }
    Look::ok(ABOUT, sentence)
}

fn write_cache(layer: &Layer) -> Look {
    const ABOUT: &str = "write cache";
    match word(layer, "write_cache") {
        Ok("write back") => {
            Look::ok(ABOUT, "The device has a volatile one, by its own word: a sync makes it flush.")
        }
        Ok("write through") => {
            Look::ok(ABOUT, "The kernel believes that it has no volatile one: a sync sends no flush.")
        }
        Ok(other) => Look::unknown(ABOUT, format!("queue/write_cache says '{other}'")).check(CheckId::C01),
        Err(why) => Look::unknown(ABOUT, why).check(CheckId::C01),
    }
}

fn beginning(layer: &Layer) -> Look {
    const ABOUT: &str = "first block";
    match layer.device_number("alignment_offset") {
        Ok(0) => Look::ok(ABOUT, "At a physical block."),
        Ok(bytes) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "{} beside a physical block: aligned writes are not, and have to read first.",
                show_bytes(bytes)
            ),
        )
        .cure("begin partitions at an offset that makes up for it (parted does with `-a optimal`)")
        .check(CheckId::B11),
        Err(why) => Look::unknown(ABOUT, why).check(CheckId::B11),
    }
}

fn partition(layer: &Layer) -> Look {
    const ABOUT: &str = "begin";
    let place = || -> Known<(u64, u64)> {
        let start = layer.device_number("start")?.saturating_mul(SECTOR_BYTES);
        Ok((start, number(layer, "physical_block_size")?))
    };
    match place() {
        Err(why) => Look::unknown(ABOUT, why).check(CheckId::B11),
        Ok((_, 0)) => Look::unknown(ABOUT, "the device tells no physical block size").check(CheckId::B11),
        Ok((start, block)) if !start.is_multiple_of(block) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "The partition begins at {}, inside a physical block of {}: aligned writes have to read first.",
                show_bytes(start),
                show_bytes(block)
            ),
        )
        .cure("make it anew at a multiple of 1 MiB: parted -a optimal")
        .check(CheckId::B11),
        Ok((start, block)) => {
            Look::ok(ABOUT, format!("At {}, a whole number of blocks of {}.", show_bytes(start), show_bytes(block)))
        }
    }
}

fn interrupts(layer: &Layer) -> Look {
    const ABOUT: &str = "interrupts";
    match layer.device.get("irq_cpus").map(|c| c.trim()) {
        Some(cpus) if !cpus.is_empty() => Look::ok(
            ABOUT,
            format!(
                "Served by CPU {cpus}; --cpus {cpus} keeps workers beside them, other CPUs leave these to the disk."
            ),
        ),
        _ => Look::unknown(ABOUT, "which CPUs serve them was not seen; /proc/interrupts tells"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use model::finding::Outcome;

    fn answer(seen: &Observation, about: &str) -> Look {
        let look = check_device_settings(seen).into_iter().find(|l| l.about.starts_with(about));
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    /// The answer after the disk's setting was changed; `None` takes the file away.
    fn with(file: &str, value: Option<&str>, about: &str) -> Look {
        let mut seen = in_order();
        let disk = &mut seen.machine.places[0].layers[1];
        let files = if disk.queue.contains_key(file) { &mut disk.queue } else { &mut disk.device };
        match value {
            Some(value) => files.insert(file.into(), format!("{value}\n")),
            None => files.remove(file),
        };
        answer(&seen, about)
    }

    #[test]
    fn a_device_in_order_has_no_finding() {
        let looks = check_device_settings(&in_order());
        assert!(looks.iter().all(|l| l.outcome == Outcome::Holds), "{looks:#?}");
        // A partition and its disk count alike, so they share a line.
        assert_eq!(looks[0].about, "counters of sda1, sda");
    }

    #[test]
    fn settings_are_found_just_beyond_their_threshold_and_missing_ones_are_not_checked() {
        let table = [
            ("scheduler", "none [mq-deadline]", "[none]", "scheduler", CheckId::D22),
            ("read_ahead_kb", "1025", "1024", "read-ahead", CheckId::B03),
            ("read_ahead_kb", "0", "1", "read-ahead", CheckId::B03),
            ("max_sectors_kb", "1023", "1024", "largest request", CheckId::B02),
            ("nr_requests", "7", "8", "queue", CheckId::B09),
            ("alignment_offset", "512", "0", "first block", CheckId::B11),
        ];
        for (file, bad, good, about, id) in table {
            let look = with(file, Some(bad), about);
            assert_eq!((look.outcome, look.check), (Outcome::Finding, Some(id)), "{file} {bad}: {look:?}");
            assert_eq!(with(file, Some(good), about).outcome, Outcome::Holds, "{file} {good}");
            assert_eq!(
                with(file, Some("x y"), about).outcome == Outcome::NotChecked,
                file != "scheduler",
                "{file}"
            );
            assert_eq!(with(file, None, about).outcome, Outcome::NotChecked, "{file}");
        }
        assert_eq!(with("write_cache", Some("write sideways"), "write cache").outcome, Outcome::NotChecked);
        assert_eq!(with("irq_cpus", None, "interrupts").outcome, Outcome::NotChecked);
    }

    #[test]
    fn what_several_devices_answer_alike_is_said_once_and_cured_at_once() {
        let mut seen = in_order();
        let mut disk = seen.machine.places[0].layers[1].clone();
        disk.queue.insert("iostats".into(), "0\n".into());
        let mut other = disk.clone();
        other.name = "sdb".into();
        seen.machine.places[0].layers = vec![disk, other];
        let look = answer(&seen, "counters");
        assert_eq!((look.about.as_str(), look.severity), ("counters of sda, sdb", Some(Severity::Biased)));
        assert_eq!(look.cure, "as root: echo 1 | tee /sys/block/{sda,sdb}/queue/iostats");
    }

    #[test]
    fn a_partition_inside_a_block_is_found() {
        let mut seen = in_order();
        seen.machine.places[0].layers[0].device.insert("start".into(), "63\n".into());
        assert_eq!(answer(&seen, "begin of sda1").check, Some(CheckId::B11));
    }
}
