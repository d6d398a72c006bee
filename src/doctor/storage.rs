//! The storage below the target: file system, layers, direct I/O, free space; stored data and its pages in memory; queue
//! settings, counters and alignment of the lowest devices; their link and temperature.
//!
//! Devices with equal answers share a line.

use crate::doctor::{Observation, TargetKind, quoted};
use model::Known;
use model::evidence::{Extents, Pages, RAID, TEMPERATURES};
use model::finding::{CheckId, Look, Severity};
use model::machine::{FileSystem, Layer, LayerKind, Place};
use model::units::{GIB, show_bytes, show_count, show_share};
use std::path::Path;

/// Share of a file system that should be free: with less, allocators fragment files, and flash has little spare space (D20).
const FREE_FROM: f64 = 0.1;
/// Mount options that disable flushes.
const NO_BARRIERS: [&str; 3] = ["nobarrier", "barrier=0", "barrier=none"];
/// Names of mdstat for work on an array.
const RAID_WORK: [&str; 4] = ["resync", "recovery", "reshape", "check"];

pub(super) fn check_place(observation: &Observation) -> Vec<Look> {
    let place = observation.place();
    let mut looks = vec![below(place)];
    looks.extend(place.layers.iter().filter(|l| l.kind == LayerKind::Loop).map(backing));
    // Memory always uses the page cache, which is reported already.
    if place.ram.is_none() {
        looks.push(direct(observation));
    }
    looks.extend(place.file_system.as_ref().filter(|_| !place.layers.is_empty()).map(barriers));
    looks.extend(raid(observation));
    if place.file_system.is_some() {
        looks.push(room(observation));
    }
    looks
}

fn below(place: &Place) -> Look {
    const ABOUT: &str = "what is below";
    if let Some(ram) = &place.ram {
        return Look::finding(ABOUT, Severity::Rename, format!("This is memory ({ram}), not storage."))
            .cure("name a directory on a disk; `findmnt -t ext4,xfs,btrfs` lists some")
            .check(CheckId::A11);
    }
    if let Some(why) = &place.blind {
        return Look::unknown(ABOUT, format!("{why}; a number from here cannot be compared with a device"))
            .check(CheckId::A13);
    }
    match place.leaves().map(|l| l.name.as_str()).collect::<Vec<_>>().as_slice() {
        [] => Look::unknown(ABOUT, "no block device was found").check(CheckId::A13),
        names => Look::ok(ABOUT, format!("{} on {}.", place.kind(), names.join(", "))),
    }
}

fn backing(layer: &Layer) -> Look {
    let about = format!("backing of {}", layer.name);
    let file = layer.backing_file.as_deref().unwrap_or("a file");
    match layer.backing_direct {
        Some(true) => Look::ok(&about, format!("{file} is read past the page cache.")),
        Some(false) => Look::finding(
            &about,
            Severity::Rename,
            format!(
                "{} goes through the page cache of {file}, so its speed can be that of memory.",
                layer.name
            ),
        )
        .cure(format!("losetup --direct-io=on /dev/{}", layer.name))
        .check(CheckId::A12),
        None => Look::unknown(
            &about,
            format!("the kernel does not show whether {file} is read past the page cache"),
        ),
    }
}

fn direct(observation: &Observation) -> Look {
    const ABOUT: &str = "direct I/O";
    let place = observation.place();
    if let Some(why) = place.file_system.as_ref().and_then(refusal) {
        let sentence = format!("It goes through the page cache anyway: {why}.");
        return Look::finding(ABOUT, Severity::Rename, sentence)
            .cure("measure on another file system, or name the block device")
            .check(CheckId::A03);
    }
    let witness = observation.witness.as_ref();
    let by = witness.map_or_else(String::new, |(name, _)| format!(", as its file '{name}' shows"));
    match place.direct.or(witness.map(|(_, d)| *d)) {
        Some(d) if d.memory_align == 0 && d.offset_align == 0 => {
            Look::finding(ABOUT, Severity::Rename, format!("It is not supported here{by}."))
                .cure("measure on another file system, or name the block device")
                .check(CheckId::A03)
        }
        Some(d) => Look::ok(
            ABOUT,
            format!("Goes past the page cache, in multiples of {}{by}.", show_bytes(d.offset_align.into())),
        ),
        None if observation.kind == TargetKind::Directory => Look::unknown(
            ABOUT,
            "statx shows it only for files, and for none in this directory; a report of a measurement here will have it",
        )
        .check(CheckId::A03),
        None => Look::unknown(ABOUT, format!("{} does not report it (statx)", place.kind())).check(CheckId::A03),
    }
}

/// Returns why the file system ignores `O_DIRECT`.
fn refusal(fs: &FileSystem) -> Option<&'static str> {
    let has = |name: &str| fs.attributes.iter().any(|a| a == name);
    if has("journal_data") || fs.options.split(',').any(|o| o == "data=journal") {
        return Some("its data go through the journal");
    }
    (has("compressed") && fs.kind == "btrfs").then_some("btrfs compresses its data")
}

fn barriers(fs: &FileSystem) -> Look {
    const ABOUT: &str = "flushes";
    match NO_BARRIERS.into_iter().find(|b| fs.options.split(',').any(|o| o == *b)) {
        Some(option) => Look::finding(
            ABOUT,
            Severity::Rename,
            format!(
                "{} is mounted with {option}: a sync sends no flush, so its data are not durable.",
                fs.mount_point
            ),
        )
        .cure(format!("mount -o remount,barrier=1 {}", quoted(Path::new(&fs.mount_point))))
        .check(CheckId::C02),
        None => Look::ok(ABOUT, "No mount option disables them."),
    }
}

/// Work on an array, or a missing member; `None` without an array.
fn raid(observation: &Observation) -> Option<Look> {
    const ABOUT: &str = "software RAID";
    let arrays: Vec<&Layer> =
        observation.place().layers.iter().filter(|l| l.kind == LayerKind::Raid).collect();
    if arrays.is_empty() {
        return None;
    }
    let text = match observation.end.text(RAID) {
        Ok(text) => text,
        Err(why) => return Some(Look::unknown(ABOUT, why).check(CheckId::D23)),
    };
    for array in arrays {
        let begin = format!("{} :", array.name);
        let after = text.lines().skip_while(|l| !l.starts_with(&begin));
        let part: Vec<&str> = after.take_while(|l| !l.trim().is_empty()).collect();
        let is_running = |work: &str| part.iter().any(|l| l.contains(&format!("{work} =")));
        if let Some(work) = RAID_WORK.into_iter().find(|work| is_running(work)) {
            let sentence = format!("{} is busy with a {work}.", array.name);
            let cure = format!("wait for it: mdadm --wait /dev/{}", array.name);
            return Some(Look::finding(ABOUT, Severity::Biased, sentence).cure(cure).check(CheckId::D23));
        }
        let mut values = part.iter().flat_map(|l| l.split_ascii_whitespace());
        if let Some(members) = values.find(|w| is_short_of_members(w)) {
            let sentence = format!("{} lacks a member ({members}).", array.name);
            let cure = format!("mdadm --detail /dev/{}", array.name);
            return Some(Look::finding(ABOUT, Severity::Biased, sentence).cure(cure).check(CheckId::D23));
        }
    }
    Some(Look::ok(ABOUT, "Complete and idle."))
}

/// Whether a word is like `[UU_]`, a letter per member, with a member missing.
fn is_short_of_members(word: &str) -> bool {
    let members = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
    members.is_some_and(|m| m.contains('_') && m.chars().all(|c| c == 'U' || c == '_'))
}

fn room(observation: &Observation) -> Look {
    const ABOUT: &str = "free space";
    let room = match observation.target().and_then(|t| t.room.as_ref()) {
        Some(Ok(room)) if room.total_bytes > 0 => room,
        Some(Err(why)) => return Look::unknown(ABOUT, why).check(CheckId::D20),
        Some(Ok(_)) => return Look::unknown(ABOUT, "this file system reports no size").check(CheckId::D20),
        None => return Look::unknown(ABOUT, "it was not read").check(CheckId::D20),
    };
    let share = room.free_bytes as f64 / room.total_bytes as f64;
    let sentence = format!(
        "{} of {} are free ({}).",
        show_bytes(room.free_bytes),
        show_bytes(room.total_bytes),
        show_share(share)
    );
    if share < FREE_FROM {
        return Look::finding(ABOUT, Severity::Biased, sentence)
            .cure(format!(
                "free some space: `du -xh {} | sort -h | tail` lists the largest directories",
                mount_point(observation)
            ))
            .check(CheckId::D20);
    }
    Look::ok(ABOUT, sentence)
}

fn mount_point(observation: &Observation) -> String {
    let point = observation.place().file_system.as_ref().map_or("/", |f| f.mount_point.as_str());
    quoted(Path::new(point))
}

/// Share of a target in memory from which buffered reads partly measure memory, and from which they measure nothing else
/// (A01).
const CACHED_FROM: f64 = 0.05;
const MOSTLY_CACHED_FROM: f64 = 0.5;
/// Share without data from which reads do not measure the device (A04).
const HOLES_FROM: f64 = 0.001;
/// Share stored encoded, or shared with another file, from which it is reported (A07, A21).
const OTHER_FROM: f64 = 0.01;
/// Extents per GiB from which a sequential read is not sequential. On a spinning disk they take 0.6 s at 10 ms each, next
/// to 5 s for the bytes; on other devices each only costs a request.
const FRAGMENTS_SPINNING: f64 = 64.0;
const FRAGMENTS: f64 = 1024.0;

pub(super) fn check_stored_data(observation: &Observation) -> Vec<Look> {
    if observation.kind == TargetKind::Directory {
        return vec![Look::ok(
            "test file",
            "fathom makes one in this directory, writes it completely, evicts it from memory, and removes it at the end.",
        )];
    }
    if observation.bytes == 0 {
        return vec![
            Look::finding("size", Severity::Void, "It is empty.")
                .cure("name a directory, or a file with content"),
        ];
    }
    let Some(target) = observation.target() else { return Vec::new() };
    let mut looks = match &target.pages {
        // Memory is its own cache.
        _ if observation.place().ram.is_some() => Vec::new(),
        Ok(pages) => vec![cached(observation, pages), dirty(observation, pages)],
        Err(why) => vec![Look::unknown("cached", why).check(CheckId::A01)],
    };
    if observation.kind == TargetKind::File {
        match &target.extents {
            Some(Ok(extents)) => looks.extend(stored(observation, extents)),
            Some(Err(why)) => looks.push(Look::unknown("how it is stored", why).check(CheckId::A04)),
            None => looks.push(
                Look::unknown(
                    "how it is stored",
                    "too much of it is still dirty in memory; first type `sync`",
                )
                .check(CheckId::A04),
            ),
        }
    }
    looks
}

fn cached(observation: &Observation, pages: &Pages) -> Look {
    const ABOUT: &str = "cached";
    let bytes = pages.cached.saturating_mul(pages.page_bytes).min(observation.bytes);
    let share = bytes as f64 / observation.bytes as f64;
    let sentence = format!(
        "{} of its {} are in memory ({}).",
        show_bytes(bytes),
        show_bytes(observation.bytes),
        show_share(share)
    );
    if share < CACHED_FROM {
        return Look::ok(ABOUT, sentence);
    }
    let severity = if share < MOSTLY_CACHED_FROM { Severity::Biased } else { Severity::Rename };
    Look::finding(ABOUT, severity, format!("{sentence} Buffered reads of cached data do not reach the device."))
        .cure(format!("dd if={} iflag=nocache count=0 (fathom bench evicts it before each run), or measure with --cache direct", quoted(&observation.path)))
        .check(CheckId::A01)
}

fn dirty(observation: &Observation, pages: &Pages) -> Look {
    const ABOUT: &str = "not written yet";
    match pages.dirty {
        None => {
            Look::unknown(ABOUT, "this kernel does not report dirty pages (no cachestat)").check(CheckId::D02)
        }
        Some(0) => Look::ok(ABOUT, "No page of it is dirty in memory."),
        Some(dirty) => {
            let bytes = show_bytes(dirty.saturating_mul(pages.page_bytes));
            let sentence =
                format!("{bytes} of it are dirty in memory and would be written during a measurement.");
            Look::finding(ABOUT, Severity::Biased, sentence)
                .cure(format!("sync {}", quoted(&observation.path)))
                .check(CheckId::D02)
        }
    }
}

fn stored(observation: &Observation, e: &Extents) -> Vec<Look> {
    let share = |bytes: u64| bytes as f64 / e.span_bytes.max(1) as f64;
    let mut looks = vec![holes(observation, e, share(e.hole_bytes.saturating_add(e.unwritten_bytes)))];
    if e.count == 0 {
        return looks;
    }
    if e.inline_bytes > 0 {
        let sentence =
            format!("{} of it are inside the inode or packed with other files.", show_bytes(e.inline_bytes));
        looks.push(
            Look::finding("inline", Severity::Rename, sentence)
                .cure("measure a file of 1 MiB or more")
                .check(CheckId::A06),
        );
    }
    looks.push(encoding(share(e.encoded_bytes)));
    looks.push(sharing(share(e.shared_bytes)));
    looks.push(fragments(observation, e));
    looks.push(alignment(observation, e));
    looks
}

fn holes(observation: &Observation, e: &Extents, share: f64) -> Look {
    const ABOUT: &str = "holes";
    if share < HOLES_FROM {
        return Look::ok(ABOUT, "Every byte of it was written.");
    }
    let sentence = format!(
        "{} of it was never written ({} of holes, {} only allocated): the kernel returns zeros without reading the device.",
        show_share(share),
        show_bytes(e.hole_bytes),
        show_bytes(e.unwritten_bytes)
    );
    Look::finding(ABOUT, Severity::Void, sentence)
        .cure(format!(
            "name the directory instead, in which fathom makes a test file: fathom bench {}",
            quoted(observation.path.parent().unwrap_or(&observation.path))
        ))
        .check(CheckId::A04)
}

fn encoding(share: f64) -> Look {
    const ABOUT: &str = "compressed";
    if share < OTHER_FROM {
        return Look::ok(ABOUT, "It is stored neither compressed nor encrypted.");
    }
    let sentence = format!(
        "{} of it is stored compressed or encrypted: the device moves other amounts than the reads.",
        show_share(share)
    );
    Look::finding(ABOUT, Severity::Biased, sentence)
        .cure("name a directory without compression (`chattr +m DIRECTORY` before files are made in it)")
        .check(CheckId::A07)
}

fn sharing(share: f64) -> Look {
    const ABOUT: &str = "shared";
    if share < OTHER_FROM {
        return Look::ok(ABOUT, "It shares no blocks with another file or a snapshot.");
    }
    let sentence = format!(
        "{} of it is shared with a copy or a snapshot: the first write to each block allocates a new one.",
        show_share(share)
    );
    Look::finding(ABOUT, Severity::Biased, sentence)
        .cure("measure an unshared copy: cp --reflink=never FILE COPY")
        .check(CheckId::A21)
}

fn fragments(observation: &Observation, e: &Extents) -> Look {
    const ABOUT: &str = "pieces";
    let per_gib = e.count as f64 * GIB as f64 / e.span_bytes.max(1) as f64;
    let spinning = is_spinning(observation);
    let most = if spinning { FRAGMENTS_SPINNING } else { FRAGMENTS };
    let one = if e.count == 1 { "" } else { "s" };
    let sentence = format!("It is stored in {} piece{one}.", show_count(e.count as f64));
    // A small file in a few pieces is not fragmented, whatever the density.
    if per_gib <= most || e.count as f64 <= most / 16.0 {
        return Look::ok(ABOUT, sentence);
    }
    let severity = if spinning { Severity::Biased } else { Severity::Note };
    Look::finding(
        ABOUT,
        severity,
        format!("{sentence} A sequential read of it is not sequential on the device."),
    )
    .cure(format!("rewrite it: cp --reflink=never {0} {0}.new", quoted(&observation.path)))
    .check(CheckId::B15)
}

/// Whether a device below is a spinning disk. In virtual machines the kernel often reports any disk as rotational.
fn is_spinning(observation: &Observation) -> bool {
    let is_bare_metal = matches!(observation.machine.virtual_by, Ok(None));
    is_bare_metal && observation.leaves().iter().any(|l| l.queue_number("rotational") == Ok(1))
}

fn alignment(observation: &Observation, e: &Extents) -> Look {
    const ABOUT: &str = "place on the device";
    let physical =
        observation.leaves().iter().filter_map(|l| l.queue_number("physical_block_size").ok()).max();
    match (e.physical_align, physical) {
        (Some(align), Some(block)) if align < block => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "Its extents begin at multiples of {}, and the device has blocks of {}.",
                show_bytes(align),
                show_bytes(block)
            ),
        )
        .cure("make the file system with blocks of at least that size: mkfs -b size=4096")
        .check(CheckId::B11),
        (Some(_), Some(block)) => Look::ok(
            ABOUT,
            format!("Its extents begin at whole blocks of the device ({}).", show_bytes(block)),
        ),
        (None, _) => Look::unknown(ABOUT, "the file system does not report the places of its extents")
            .check(CheckId::B11),
        (_, None) => Look::unknown(ABOUT, "no device below reports its block size").check(CheckId::B11),
    }
}

/// Largest block and deepest queue of the default profile. Smaller device limits split or queue it.
const LARGEST_BYTES: u64 = 1 << 20;
const DEEPEST: u64 = 32;
/// Read-ahead from which a buffered read of one block moves a second's worth of a slow disk. The kernel's default is 128
/// KiB.
const READ_AHEAD_FROM: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;

pub(super) fn check_device_settings(observation: &Observation) -> Vec<Look> {
    let leaves = observation.leaves();
    if leaves.is_empty() || observation.place().ram.is_some() {
        return Vec::new();
    }
    let layers: Vec<&Layer> = observation.place().layers.iter().collect();
    let partitions: Vec<&Layer> = layers.iter().copied().filter(|l| l.kind == LayerKind::Partition).collect();
    let mut looks = merge_equal(&layers, counters);
    for ask in [scheduler, read_ahead, largest, queue, write_cache, beginning] {
        looks.extend(merge_equal(&leaves, ask));
    }
    looks.extend(merge_equal(&partitions, partition));
    looks.extend(merge_equal(&leaves, interrupts));
    looks
}

/// Asks each device, and merges equal answers. An `@` in a cure is replaced with their names in shell syntax.
fn merge_equal(layers: &[&Layer], ask: fn(&Layer) -> Look) -> Vec<Look> {
    let mut found: Vec<(Vec<&str>, Look)> = Vec::new();
    for layer in layers {
        let look = ask(layer);
        match found.iter_mut().find(|(_, l)| *l == look) {
            Some((names, _)) => names.push(&layer.name),
            None => found.push((vec![&layer.name], look)),
        }
    }
    let merge = |names: Vec<&str>, look: Look| {
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
    found.into_iter().map(|(names, look)| merge(names, look)).collect()
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
    text.parse().map_err(|_| format!("queue/{file} is not a number: '{text}'"))
}

fn counters(layer: &Layer) -> Look {
    const ABOUT: &str = "counters";
    match layer.blind() {
        Some(_) => Look::finding(
            ABOUT,
            Severity::Biased,
            "They are disabled (queue/iostats is 0), so no number can be compared with the device.",
        )
        .cure(setting("iostats", "1"))
        .check(CheckId::A13),
        None => Look::ok(ABOUT, "The kernel counts its requests."),
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
        "bfq" => "bfq idles and divides time between processes, which costs IOPS.".to_owned(),
        name if name != "none" && several => {
            format!("{name} sorts and holds back requests, although the device has several hardware queues.")
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
            "It is off: buffered sequential reads wait for every block. Direct reads are not affected.",
        )
        .cure(setting("read_ahead_kb", "128"))
        .check(CheckId::B03),
        b if b > READ_AHEAD_FROM => {
            let sentence = format!(
                "{shown} are read ahead of a buffered reader, needed or not (the default is 128 KiB). Direct reads are not affected."
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
        "the hardware allows no more; the latency of a large block is that of all its requests".into()
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
        // The number of hardware queues may be unknown; the room in one is not.
        Err(_) => format!("{requests} requests in each hardware queue."),
    };
    if room < DEEPEST {
        return Look::finding(
            ABOUT,
            Severity::Note,
            format!("{sentence} Further requests wait above the device."),
        )
        .cure(setting("nr_requests", &DEEPEST.to_string()))
        .check(CheckId::B09);
    }
    Look::ok(ABOUT, sentence)
}

fn write_cache(layer: &Layer) -> Look {
    const ABOUT: &str = "write cache";
    match word(layer, "write_cache") {
        Ok("write back") => Look::ok(ABOUT, "The device reports a volatile one: a sync flushes it."),
        Ok("write through") => {
            Look::ok(ABOUT, "The kernel assumes that it has no volatile one: a sync sends no flush.")
        }
        Ok(other) => Look::unknown(ABOUT, format!("queue/write_cache is '{other}'")).check(CheckId::C01),
        Err(why) => Look::unknown(ABOUT, why).check(CheckId::C01),
    }
}

fn beginning(layer: &Layer) -> Look {
    const ABOUT: &str = "first block";
    match layer.device_number("alignment_offset") {
        Ok(0) => Look::ok(ABOUT, "Aligned to physical blocks."),
        Ok(bytes) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "It is {} off a physical block, so aligned writes cover parts of physical blocks, which the drive has to read first.",
                show_bytes(bytes)
            ),
        )
        .cure("begin partitions at an offset that compensates for it (parted does with `-a optimal`)")
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
        Ok((_, 0)) => Look::unknown(ABOUT, "the device reports no physical block size").check(CheckId::B11),
        Ok((start, block)) if !start.is_multiple_of(block) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "The partition begins at {}, inside a physical block of {}: the drive has to read before aligned writes.",
                show_bytes(start),
                show_bytes(block)
            ),
        )
        .cure("make the partition again at a multiple of 1 MiB: parted -a optimal")
        .check(CheckId::B11),
        Ok((start, block)) => {
            Look::ok(ABOUT, format!("At {}, a multiple of the block size of {}.", show_bytes(start), show_bytes(block)))
        }
    }
}

fn interrupts(layer: &Layer) -> Look {
    const ABOUT: &str = "interrupts";
    match layer.device.get("irq_cpus").map(|c| c.trim()) {
        Some(cpus) if !cpus.is_empty() => Look::ok(
            ABOUT,
            format!(
                "CPU {cpus} serves them; --cpus {cpus} runs the workers on the same CPUs, other CPUs avoid sharing them."
            ),
        ),
        _ => Look::unknown(ABOUT, "the CPUs that serve them are unknown; see /proc/interrupts"),
    }
}

/// Thousandths of a degree below a drive's own limit from which it may throttle (D15).
const HOT_WITHIN: i64 = 2000;

pub(super) fn check_device_health(observation: &Observation) -> Vec<Look> {
    let leaves = observation.leaves();
    if leaves.is_empty() || observation.place().ram.is_some() {
        return Vec::new();
    }
    let mut looks: Vec<Look> = leaves.into_iter().filter_map(link).collect();
    looks.push(temperature(observation));
    looks
}

/// Speed and width of the link compared with its maximum; `None` without a link.
fn link(layer: &Layer) -> Option<Look> {
    let about = format!("link of {}", layer.name);
    let file = |name: &str| layer.device.get(name).map(|v| v.trim()).filter(|v| !v.is_empty());
    let pairs = [("current_link_speed", "max_link_speed"), ("current_link_width", "max_link_width")];
    let known: Vec<(&str, &str)> = pairs.iter().filter_map(|(now, most)| file(now).zip(file(most))).collect();
    if known.is_empty() {
        return None;
    }
    if let Some((now, most)) = known.iter().find(|(now, most)| amount(now) < amount(most)) {
        let slow = Look::finding(&about, Severity::Biased, format!("It runs at {now} of {most}."));
        let cure = "reseat the card or move it to another slot; `lspci -vv` shows what both ends support";
        return Some(slow.cure(cure).check(CheckId::D16));
    }
    let words: Vec<&str> = known.iter().map(|(now, _)| *now).collect();
    Some(Look::ok(&about, format!("At its maximum ({}).", words.join(", width "))))
}

/// The leading number of a text such as `8.0 GT/s PCIe`.
fn amount(text: &str) -> f64 {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

fn temperature(observation: &Observation) -> Look {
    const ABOUT: &str = "temperature";
    let text = match observation.end.text(TEMPERATURES) {
        Ok(text) => text,
        Err(why) => return Look::unknown(ABOUT, why).check(CheckId::D15),
    };
    let lines = || text.lines().filter_map(|l| l.rsplit_once(": "));
    let value =
        |path: &str| lines().find(|(p, _)| *p == path).and_then(|(_, v)| v.trim().parse::<i64>().ok());
    let sensors: Vec<(&str, i64)> = lines()
        .filter_map(|(path, now)| Some((path.strip_suffix("_input")?, now.trim().parse::<i64>().ok()?)))
        .collect();
    let limit = |sensor: &str| value(&format!("{sensor}_max")).or_else(|| value(&format!("{sensor}_crit")));
    let known: Vec<(i64, i64)> = sensors.iter().filter_map(|(s, now)| Some((*now, limit(s)?))).collect();
    let hot = known.iter().find(|(now, most)| *now >= most.saturating_sub(HOT_WITHIN));
    match hot {
        _ if known.is_empty() => {
            Look::unknown(ABOUT, "no drive reports its temperature and its limit").check(CheckId::D15)
        }
        Some((now, most)) => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "{} of at most {} degrees Celsius: drives throttle themselves at their limit.",
                now / 1000,
                most / 1000
            ),
        )
        .cure("let the drive cool down, and improve its cooling")
        .check(CheckId::D15),
        None => Look::ok(ABOUT, "Every drive that reports its temperature is below its limit."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation_tests::in_order;
    use model::finding::{Look, Outcome};
    use model::machine::DirectIo;

    fn answer(observation: &Observation, about: &str) -> Look {
        let look = check_place(observation).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    #[test]
    fn a_good_place_has_no_finding() {
        let looks = check_place(&in_order());
        assert!(looks.iter().all(|l| l.outcome == Outcome::Holds), "{looks:#?}");
        assert_eq!(looks.len(), 4);
    }

    #[test]
    fn memory_a_cached_loop_and_a_data_journal_are_found() {
        let mut observation = in_order();
        observation.machine.places[0].ram = Some("tmpfs".into());
        assert_eq!(answer(&observation, "what is below").check, Some(CheckId::A11));
        let mut observation = in_order();
        let layer = &mut observation.machine.places[0].layers[1];
        (layer.kind, layer.name, layer.backing_direct) = (LayerKind::Loop, "loop3".into(), Some(false));
        let look = answer(&observation, "backing of loop3");
        assert_eq!(
            (look.severity, look.cure.as_str()),
            (Some(Severity::Rename), "losetup --direct-io=on /dev/loop3")
        );
        let mut observation = in_order();
        observation.machine.places[0].file_system.as_mut().unwrap_or_else(|| panic!()).options =
            "rw,data=journal,nobarrier".into();
        assert_eq!(answer(&observation, "direct I/O").check, Some(CheckId::A03));
        assert_eq!(answer(&observation, "flushes").check, Some(CheckId::C02));
    }

    #[test]
    fn direct_io_of_a_directory_is_read_from_a_file_in_it() {
        let mut observation = in_order();
        (observation.kind, observation.machine.places[0].direct) = (TargetKind::Directory, None);
        assert_eq!(answer(&observation, "direct I/O").outcome, Outcome::NotChecked);
        observation.witness = Some(("old".into(), DirectIo { memory_align: 0, offset_align: 0 }));
        assert_eq!(answer(&observation, "direct I/O").severity, Some(Severity::Rename));
        observation.witness = Some(("old".into(), DirectIo { memory_align: 512, offset_align: 512 }));
        assert!(answer(&observation, "direct I/O").sentence.contains("'old'"));
    }

    #[test]
    fn a_file_system_with_less_than_ten_percent_free_is_found() {
        let mut observation = in_order();
        let mut free = |percent: u64| {
            let room = model::evidence::Room { total_bytes: 100, free_bytes: percent };
            observation.end.targets[0].room = Some(Ok(room));
            answer(&observation, "free space").outcome
        };
        assert_eq!((free(10), free(9)), (Outcome::Holds, Outcome::Finding));
        observation.end.targets[0].room = None;
        assert_eq!(answer(&observation, "free space").outcome, Outcome::NotChecked);
    }

    #[test]
    fn busy_and_degraded_arrays_are_found() {
        let mut observation = in_order();
        let layer = &mut observation.machine.places[0].layers[1];
        (layer.kind, layer.name) = (LayerKind::Raid, "md0".into());
        assert_eq!(answer(&observation, "software RAID").outcome, Outcome::NotChecked);
        let mut with = |tail: &str| {
            let text = format!(
                "Personalities : [raid1]\nmd1 : active\n  9 blocks [2/1] [U_]\n\nmd0 : active raid1\n  9 blocks {tail}\n\nunused devices: <none>\n"
            );
            observation.end.files.insert(RAID.into(), Ok(text));
            answer(&observation, "software RAID").outcome
        };
        assert_eq!(with("[2/2] [UU]"), Outcome::Holds);
        assert_eq!(with("[2/1] [U_]\n  bitmap: 0/1 pages [0KB], 65536KB chunk"), Outcome::Finding);
        assert_eq!(with("[2/2] [UU]\n  [=>...]  resync = 12.6% (1/9)"), Outcome::Finding);
    }
}

#[cfg(test)]
mod data_tests {
    use super::*;
    use crate::doctor::observation_tests::in_order;
    use model::finding::Outcome;

    fn answer(observation: &Observation, about: &str) -> Look {
        let look = check_stored_data(observation).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    fn extents(observation: &mut Observation) -> &mut Extents {
        match &mut observation.end.targets[0].extents {
            Some(Ok(extents)) => extents,
            _ => panic!("a forged file has extents"),
        }
    }

    #[test]
    fn a_good_file_has_no_finding() {
        let mut observation = in_order();
        assert!(
            check_stored_data(&observation).iter().all(|l| l.outcome == Outcome::Holds),
            "{:#?}",
            check_stored_data(&observation)
        );
        observation.kind = TargetKind::Directory;
        assert_eq!(check_stored_data(&observation).len(), 1);
    }

    #[test]
    fn cached_and_dirty_pages_are_rated_by_share() {
        let mut observation = in_order();
        let mut pages = |cached: u64, dirty: Option<u64>| {
            observation.end.targets[0].pages = Ok(Pages { page_bytes: 4096, cached, dirty });
            (answer(&observation, "cached").severity, answer(&observation, "not written yet").outcome)
        };
        let all = (1_u64 << 30) / 4096;
        assert_eq!(pages(all / 25, Some(0)), (None, Outcome::Holds));
        assert_eq!(pages(all / 10, Some(1)), (Some(Severity::Biased), Outcome::Finding));
        assert_eq!(pages(all, None), (Some(Severity::Rename), Outcome::NotChecked));
        observation.end.targets[0].pages = Err("not yours".into());
        assert_eq!(answer(&observation, "cached").outcome, Outcome::NotChecked);
    }

    #[test]
    fn holes_and_encoded_extents_are_found() {
        let mut observation = in_order();
        extents(&mut observation).hole_bytes = 1 << 19;
        assert_eq!(answer(&observation, "holes").outcome, Outcome::Holds);
        extents(&mut observation).unwritten_bytes = 1 << 20;
        assert_eq!(answer(&observation, "holes").severity, Some(Severity::Void));
        (extents(&mut observation).encoded_bytes, extents(&mut observation).shared_bytes) =
            (1 << 24, 1 << 23);
        assert_eq!(answer(&observation, "compressed").check, Some(CheckId::A07));
        assert_eq!(answer(&observation, "shared").outcome, Outcome::Holds);
        extents(&mut observation).inline_bytes = 1;
        assert_eq!(answer(&observation, "inline").check, Some(CheckId::A06));
        *extents(&mut observation) =
            Extents { span_bytes: 1 << 30, hole_bytes: 1 << 30, ..Extents::default() };
        // An empty file has a single answer.
        assert_eq!(check_stored_data(&observation).len(), 3);
        observation.end.targets[0].extents = None;
        assert_eq!(answer(&observation, "how it is stored").outcome, Outcome::NotChecked);
    }

    #[test]
    fn fragments_matter_on_spinning_disks() {
        let mut observation = in_order();
        extents(&mut observation).count = 100;
        assert_eq!(answer(&observation, "pieces").outcome, Outcome::Holds);
        observation.machine.places[0].layers[1].queue.insert("rotational".into(), "1\n".into());
        assert_eq!(answer(&observation, "pieces").severity, Some(Severity::Biased));
        observation.machine.virtual_by = Ok(Some("KVM".into()));
        assert_eq!(answer(&observation, "pieces").outcome, Outcome::Holds);
        extents(&mut observation).count = 2000;
        assert_eq!(answer(&observation, "pieces").severity, Some(Severity::Note));
    }

    #[test]
    fn extents_across_physical_blocks_are_found() {
        let mut observation = in_order();
        extents(&mut observation).physical_align = Some(1024);
        assert_eq!(answer(&observation, "place on the device").check, Some(CheckId::B11));
        extents(&mut observation).physical_align = None;
        assert_eq!(answer(&observation, "place on the device").outcome, Outcome::NotChecked);
    }
}

#[cfg(test)]
mod device_tests {
    use super::*;
    use crate::doctor::observation_tests::in_order;
    use model::finding::Outcome;

    fn answer(observation: &Observation, about: &str) -> Look {
        let look = check_device_settings(observation).into_iter().find(|l| l.about.starts_with(about));
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    /// The answer after the disk's setting was changed; `None` removes the file.
    fn with(file: &str, value: Option<&str>, about: &str) -> Look {
        let mut observation = in_order();
        let disk = &mut observation.machine.places[0].layers[1];
        let files = if disk.queue.contains_key(file) { &mut disk.queue } else { &mut disk.device };
        match value {
            Some(value) => files.insert(file.into(), format!("{value}\n")),
            None => files.remove(file),
        };
        answer(&observation, about)
    }

    #[test]
    fn a_good_device_has_no_finding() {
        let looks = check_device_settings(&in_order());
        assert!(looks.iter().all(|l| l.outcome == Outcome::Holds), "{looks:#?}");
        // A partition and its disk count alike, so they share a line.
        assert_eq!(looks[0].about, "counters of sda1, sda");
    }

    #[test]
    fn settings_are_found_beyond_their_threshold() {
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
    fn equal_answers_of_devices_are_merged() {
        let mut observation = in_order();
        let mut disk = observation.machine.places[0].layers[1].clone();
        disk.queue.insert("iostats".into(), "0\n".into());
        let mut other = disk.clone();
        other.name = "sdb".into();
        observation.machine.places[0].layers = vec![disk, other];
        let look = answer(&observation, "counters");
        assert_eq!((look.about.as_str(), look.severity), ("counters of sda, sdb", Some(Severity::Biased)));
        assert_eq!(look.cure, "as root: echo 1 | tee /sys/block/{sda,sdb}/queue/iostats");
    }

    #[test]
    fn a_partition_inside_a_block_is_found() {
        let mut observation = in_order();
        observation.machine.places[0].layers[0].device.insert("start".into(), "63\n".into());
        assert_eq!(answer(&observation, "begin of sda1").check, Some(CheckId::B11));
    }
}

#[cfg(test)]
mod health_tests {
    use super::*;
    use crate::doctor::observation_tests::in_order;
    use model::finding::Outcome;

    fn answer(observation: &Observation, about: &str) -> Look {
        let look = check_device_health(observation).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    #[test]
    fn a_slow_link_is_found() {
        let mut observation = in_order();
        assert!(
            check_device_health(&observation)
                .iter()
                .all(|l| l.outcome == Outcome::Holds && !l.about.starts_with("link"))
        );
        let disk = &mut observation.machine.places[0].layers[1];
        for (file, value) in [("current_link_speed", "8.0 GT/s PCIe"), ("max_link_speed", "16.0 GT/s PCIe")] {
            disk.device.insert(file.into(), value.into());
        }
        assert_eq!(answer(&observation, "link of sda").check, Some(CheckId::D16));
        observation.machine.places[0].layers[1]
            .device
            .insert("current_link_speed".into(), "16.0 GT/s PCIe".into());
        assert_eq!(answer(&observation, "link of sda").outcome, Outcome::Holds);
    }

    #[test]
    fn a_hot_drive_is_found() {
        let mut observation = in_order();
        let mut at = |text: &str| {
            observation.end.files.insert(TEMPERATURES.into(), Ok(text.into()));
            answer(&observation, "temperature").outcome
        };
        assert_eq!(at("/h/temp1_input: 78000\n/h/temp1_max: 80000\n"), Outcome::Finding);
        assert_eq!(at("/h/temp1_input: 77999\n/h/temp1_max: 80000\n"), Outcome::Holds);
        assert_eq!(at("/h/temp1_input: 78000\n"), Outcome::NotChecked);
        assert_eq!(
            at("/h/temp1_input: -9223372036854775808\n/h/temp1_max: -9223372036854775808\n"),
            Outcome::Finding
        );
    }
}
