//! Where the target is: its file system, what is between it and a device, whether direct I/O goes past the cache, and room.
//!
//! For: what the resolved place says. Not for: settings of devices.

use super::observation::{Observation, TargetKind};
use super::quoted;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::finding::Severity;
use model::kernel_files::RAID;
use model::machine::{FileSystem, Layer, LayerKind, Place};
use model::units::{show_bytes, show_share};
use std::path::Path;

/// Share of a file system that must be free: below it allocators scatter, and flash has little room to clean up in (D20).
const FREE_FROM: f64 = 0.1;
/// Options that take flushes away.
const NO_BARRIERS: [&str; 3] = ["nobarrier", "barrier=0", "barrier=none"];
/// What mdstat calls work on an array.
const RAID_WORK: [&str; 4] = ["resync", "recovery", "reshape", "check"];

pub(super) fn check_place(seen: &Observation) -> Vec<Look> {
    let place = seen.place();
    let mut looks = vec![below(place)];
    looks.extend(place.layers.iter().filter(|l| l.kind == LayerKind::Loop).map(backing));
    // Memory has no other way than through the page cache, and that is said already.
    if place.ram.is_none() {
        looks.push(direct(seen));
    }
    looks.extend(place.file_system.as_ref().filter(|_| !place.layers.is_empty()).map(barriers));
    looks.extend(raid(seen));
    if place.file_system.is_some() {
        looks.push(room(seen));
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
        return Look::unknown(
            ABOUT,
            format!("{why}; a number measured here cannot be compared with a device"),
        )
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
                "{} goes through the page cache of {file}, so what looks like a device can be memory.",
                layer.name
            ),
        )
        .cure(format!("losetup --direct-io=on /dev/{}", layer.name))
        .check(CheckId::A12),
        None => Look::unknown(&about, format!("whether {file} is read past the page cache is not shown")),
    }
}

fn direct(seen: &Observation) -> Look {
    const ABOUT: &str = "direct I/O";
    let place = seen.place();
    if let Some(why) = place.file_system.as_ref().and_then(refusal) {
        let sentence = format!("It goes through the page cache all the same: {why}.");
        return Look::finding(ABOUT, Severity::Rename, sentence)
            .cure("measure on a file system without it, or name the block device")
            .check(CheckId::A03);
    }
    let witness = seen.witness.as_ref();
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
        None if seen.kind == TargetKind::Directory => Look::unknown(
            ABOUT,
            "only files tell (statx), and none in this directory does; a report of a measurement here will",
        )
        .check(CheckId::A03),
        None => Look::unknown(ABOUT, format!("{} does not say (statx)", place.kind())).check(CheckId::A03),
    }
}

fn refusal(fs: &FileSystem) -> Option<&'static str> {
    let has = |name: &str| fs.attributes.iter().any(|a| a == name);
    if has("journal_data") || fs.options.split(',').any(|o| o == "data=journal") {
        return Some("data go through the journal");
    }
    (has("compressed") && fs.kind == "btrfs").then_some("btrfs compresses it")
}

fn barriers(fs: &FileSystem) -> Look {
    const ABOUT: &str = "flushes";
    match NO_BARRIERS.into_iter().find(|b| fs.options.split(',').any(|o| o == *b)) {
        Some(option) => Look::finding(
            ABOUT,
            Severity::Rename,
            format!(
                "{} is mounted with {option}: a sync sends no flush, so nothing it returns is durable.",
                fs.mount_point
            ),
        )
        .cure(format!("mount -o remount,barrier=1 {}", quoted(Path::new(&fs.mount_point))))
        .check(CheckId::C02),
        None => Look::ok(ABOUT, "No mount option takes them away."),
    }
}

/// Work on an array, or a missing member; nothing where there is no array.
fn raid(seen: &Observation) -> Option<Look> {
    const ABOUT: &str = "software RAID";
    let arrays: Vec<&Layer> = seen.place().layers.iter().filter(|l| l.kind == LayerKind::Raid).collect();
    if arrays.is_empty() {
        return None;
    }
    let text = match seen.end.text(RAID) {
        Ok(text) => text,
        Err(why) => return Some(Look::unknown(ABOUT, why).check(CheckId::D23)),
    };
    for array in arrays {
        let begin = format!("{} :", array.name);
        let after = text.lines().skip_while(|l| !l.starts_with(&begin));
        let part: Vec<&str> = after.take_while(|l| !l.trim().is_empty()).collect();
        let says = |word: &str| part.iter().any(|l| l.contains(&format!("{word} =")));
        if let Some(work) = RAID_WORK.into_iter().find(|w| says(w)) {
            let sentence = format!("{} is busy with a {work}.", array.name);
            let cure = format!("wait for it: mdadm --wait /dev/{}", array.name);
            return Some(Look::finding(ABOUT, Severity::Biased, sentence).cure(cure).check(CheckId::D23));
        }
        let mut words = part.iter().flat_map(|l| l.split_ascii_whitespace());
        if let Some(members) = words.find(|w| is_short_of_members(w)) {
            let sentence = format!("{} misses a member ({members}).", array.name);
            let cure = format!("mdadm --detail /dev/{}", array.name);
            return Some(Look::finding(ABOUT, Severity::Biased, sentence).cure(cure).check(CheckId::D23));
        }
    }
    Some(Look::ok(ABOUT, "Complete and at rest."))
}

/// Whether a word is one such as `[UU_]`, a letter per member.
fn is_short_of_members(word: &str) -> bool {
    let members = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
    members.is_some_and(|m| m.contains('_') && m.chars().all(|c| c == 'U' || c == '_'))
}

fn room(seen: &Observation) -> Look {
    const ABOUT: &str = "free space";
    let room = match seen.target().and_then(|t| t.room.as_ref()) {
        Some(Ok(room)) if room.total_bytes > 0 => room,
        Some(Err(why)) => return Look::unknown(ABOUT, why).check(CheckId::D20),
        Some(Ok(_)) => return Look::unknown(ABOUT, "this file system gives no size").check(CheckId::D20),
        None => return Look::unknown(ABOUT, "it was not looked at").check(CheckId::D20),
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
            .cure(format!("make room: `du -xh {} | sort -h | tail`", mount_point(seen)))
            .check(CheckId::D20);
    }
    Look::ok(ABOUT, sentence)
}

fn mount_point(seen: &Observation) -> String {
    let point = seen.place().file_system.as_ref().map_or("/", |f| f.mount_point.as_str());
    quoted(Path::new(point))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use model::diagnosis::Look;
    use model::finding::Outcome;
    use model::machine::DirectIo;

    fn answer(seen: &Observation, about: &str) -> Look {
        let look = check_place(seen).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    #[test]
    fn a_place_in_order_has_no_finding() {
        let looks = check_place(&in_order());
        assert!(looks.iter().all(|l| l.outcome == Outcome::Holds), "{looks:#?}");
        assert_eq!(looks.len(), 4);
    }

    #[test]
    fn memory_a_cached_loop_and_a_data_journal_are_found() {
        let mut seen = in_order();
        seen.machine.places[0].ram = Some("tmpfs".into());
        assert_eq!(answer(&seen, "what is below").check, Some(CheckId::A11));
        let mut seen = in_order();
        let layer = &mut seen.machine.places[0].layers[1];
        (layer.kind, layer.name, layer.backing_direct) = (LayerKind::Loop, "loop3".into(), Some(false));
        let look = answer(&seen, "backing of loop3");
        assert_eq!(
            (look.severity, look.cure.as_str()),
            (Some(Severity::Rename), "losetup --direct-io=on /dev/loop3")
        );
        let mut seen = in_order();
        seen.machine.places[0].file_system.as_mut().unwrap_or_else(|| panic!()).options =
            "rw,data=journal,nobarrier".into();
        assert_eq!(answer(&seen, "direct I/O").check, Some(CheckId::A03));
        assert_eq!(answer(&seen, "flushes").check, Some(CheckId::C02));
    }

    #[test]
    fn a_directory_is_told_by_a_file_in_it_or_not_at_all() {
        let mut seen = in_order();
        (seen.kind, seen.machine.places[0].direct) = (TargetKind::Directory, None);
        assert_eq!(answer(&seen, "direct I/O").outcome, Outcome::NotChecked);
        seen.witness = Some(("old".into(), DirectIo { memory_align: 0, offset_align: 0 }));
        assert_eq!(answer(&seen, "direct I/O").severity, Some(Severity::Rename));
        seen.witness = Some(("old".into(), DirectIo { memory_align: 512, offset_align: 512 }));
        assert!(answer(&seen, "direct I/O").sentence.contains("'old'"));
    }

    #[test]
    fn a_full_file_system_is_found_just_below_a_tenth_and_unknown_is_said() {
        let mut seen = in_order();
        let mut free = |percent: u64| {
            let room = model::evidence::Room { total_bytes: 100, free_bytes: percent };
            seen.end.targets[0].room = Some(Ok(room));
            answer(&seen, "free space").outcome
        };
        assert_eq!((free(10), free(9)), (Outcome::Holds, Outcome::Finding));
        seen.end.targets[0].room = None;
        assert_eq!(answer(&seen, "free space").outcome, Outcome::NotChecked);
    }

    #[test]
    fn an_array_at_work_or_without_a_member_is_found() {
        let mut seen = in_order();
        let layer = &mut seen.machine.places[0].layers[1];
        (layer.kind, layer.name) = (LayerKind::Raid, "md0".into());
        assert_eq!(answer(&seen, "software RAID").outcome, Outcome::NotChecked);
        let mut with = |tail: &str| {
            let text = format!(
                "Personalities : [raid1]\nmd1 : active\n  9 blocks [2/1] [U_]\n\nmd0 : active raid1\n  9 blocks {tail}\n\nunused devices: <none>\n"
            );
            seen.end.files.insert(RAID.into(), Ok(text));
            answer(&seen, "software RAID").outcome
        };
        assert_eq!(with("[2/2] [UU]"), Outcome::Holds);
        assert_eq!(with("[2/1] [U_]\n  bitmap: 0/1 pages [0KB], 65536KB chunk"), Outcome::Finding);
        assert_eq!(with("[2/2] [UU]\n  [=>...]  resync = 12.6% (1/9)"), Outcome::Finding);
    }
}
