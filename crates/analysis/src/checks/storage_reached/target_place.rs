//! Whether the target is where the user thinks it is (A11, A14).
//!
//! A11 finds targets in memory: tmpfs, zram, a RAM disk, or a loop device on one of them. If only some ends of
//! the device chain are memory, it divides the work among the ends and fires if memory served more than a small
//! share. A14 compares the device chain with --expect-device; without that option, it notes overlays, bind
//! mounts and automount points.

use crate::checks::prelude::*;

/// Up to this share of the requests, memory in the device chain is ignored: a few blocks of metadata.
const SERVED_ABOVE: Share = Share(0.01);

pub(super) const RAM_BACKED: Check = Check {
    id: CheckId::A11,
    name: "RAM_BACKED",
    belief: "the target is a storage device",
    reads: "The type of the file system (tmpfs, ramfs, hugetlbfs), and the chain of devices below in /sys: \
            zram, RAM disks, and loop devices on files in memory. The file of a loop device is identified by \
            its device number, so a removed name does not matter. Also the `stat` files of sibling devices \
            in the chain, from start to stop of every run.",
    formula: formula!(
        "Looks for memory at the ends of the chain of devices below each target.\n\
         - Relabelled to memory if the whole chain of a target is memory. With several targets, the \
         finding reports how many are memory.\n\
         - Relabelled if only some ends of the chain are memory, such as those of a RAID over a disk and a \
         RAM disk, and they served more than {SERVED_ABOVE} of the requests. Smaller shares are a few \
         blocks of metadata. If their share is unknown, the result is relabelled too.\n\
         - Not checked if the chain could not be followed to its end and no known end is memory. The \
         result is then suspect.\n\
         - The work is divided from the top down: the share of each layer is split by the requests of the \
         devices directly below it. Requests of other users to a disk further down therefore do not count."
    ),
    provoke: "`fathom run --rw randread --cache buffered /dev/shm`, or `losetup -f --show /dev/shm/IMAGE` \
              and a run on that device.",
    fix: "Name a directory or device on the intended disk (`findmnt -T PATH` shows where a path is).",
    accept: "Accept it if you want to measure memory.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_ram_backed),
    #[cfg(test)]
    fires: Some(|| Fixture { kind: "tmpfs", ram: Some("tmpfs"), ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { nothing_below: true, ..Fixture::honest() }.record(),
};

fn check_ram_backed(case: &Case) -> Known<Answer> {
    if let Some(ram) = case.memory_reason() {
        let all = case.places().count();
        let in_memory = case.places().filter(|place| place.ram.is_some()).count();
        let (sentence, renames) = if in_memory < all {
            (
                format!(
                    "{in_memory} of {all} targets {} memory ({ram}), not a disk, and the number covers all \
                     targets together.",
                    if in_memory == 1 { "is" } else { "are" }
                ),
                Rename::Condition(format!("partly memory ({ram})")),
            )
        } else {
            (format!("This target is memory ({ram}), not a disk."), Rename::Memory(format!("memory ({ram})")))
        };
        return Detail::new(
            Severity::Relabels,
            sentence,
            evidence([("targets_in_memory", in_memory as f64)]),
        )
        .relabelled(renames)
        .found();
    }
    let memory_layers = case.layers(|l| l.below.is_empty() && l.ram.is_some());
    if !memory_layers.is_empty() {
        return partly_memory(case, &memory_layers);
    }
    case.need_resolved_stack()?;
    holds("The target is on a device that is not memory.", evidence([]))
}

/// Returns the answer for a chain in which only some ends are memory.
fn partly_memory(case: &Case, memory_layers: &[&Layer]) -> Known<Answer> {
    let names: Vec<&str> = memory_layers.iter().filter_map(|l| l.ram.as_deref()).collect();
    let names = names.join(", ");
    let finding = |sentence: String, part: &str, numbers| {
        Detail::new(Severity::Relabels, sentence, numbers)
            .relabelled(Rename::Condition(format!("{part} memory ({names})")))
            .found()
    };
    let served = match served(case) {
        Ok(served) => served,
        Err(why) => {
            let sentence = format!(
                "Part of this target is memory ({names}). Its share of the requests is unknown: {why}."
            );
            return finding(sentence, "partly", evidence([]));
        }
    };
    let part = served.iter().filter(|(l, _)| l.ram.is_some()).map(|(_, part)| part).sum();
    let mut numbers = evidence([("memory_share", part)]);
    numbers.extend(served.iter().map(|(l, part)| (format!("{}_share", l.name), *part)));
    if part <= SERVED_ABOVE {
        return holds("Part of the chain is memory, but it served almost no requests.", numbers);
    }
    let each: Vec<String> =
        served.iter().map(|(l, part)| format!("{} {}", l.name, show_share(*part))).collect();
    let sentence =
        format!("Part of this target is memory ({names}), not a disk. Requests served: {}.", each.join(", "));
    finding(sentence, &show_share(part), numbers)
}

/// Returns the share of the work that each end of the chain served. Starts at the top and divides the share of
/// each layer among the layers below in proportion to their requests. Other users of a disk further down
/// therefore do not change the shares.
fn served<'a>(case: &Case<'a>) -> Known<Vec<(&'a Layer, f64)>> {
    let mut ends: Vec<(&Layer, f64)> = case.lowest_layers()?.into_iter().map(|end| (end, 0.0)).collect();
    let mut level = divide_share(case, &case.top_layers()?, 1.0)?;
    // A chain has at most as many levels as layers. The limit ends the loop in a damaged record in which a layer
    // is below itself.
    for _ in case.places().flat_map(|p| &p.layers) {
        let mut next = Vec::new();
        for (layer, part) in level {
            let layers_below = layers_below(case, layer);
            if layers_below.is_empty() {
                add_share(&mut ends, layer, part);
            }
            for (layer, part) in divide_share(case, &layers_below, part)? {
                add_share(&mut next, layer, part);
            }
        }
        level = next;
    }
    Ok(ends)
}

/// Returns the layers directly below `layer`.
fn layers_below<'a>(case: &Case<'a>, layer: &Layer) -> Vec<&'a Layer> {
    let known = |place: &'a Place| {
        let layer = place.layers.iter().find(|l| l.stat_file == layer.stat_file)?;
        Some(layer.below.iter().filter_map(|i| place.layers.get(*i)).collect())
    };
    case.places().find_map(known).unwrap_or_default()
}

/// Divides a share among sibling layers by the requests that they completed in the job's directions.
fn divide_share<'a>(case: &Case<'a>, layers: &[&'a Layer], part: f64) -> Known<Vec<(&'a Layer, f64)>> {
    if let [one] = layers {
        return Ok(vec![(one, part)]);
    }
    let requests = |layer: &'a Layer| {
        let done = case.layer_io(&[layer])?;
        let own_kinds = Kind::MOVING.into_iter().filter(|kind| case.does(*kind));
        Ok((layer, own_kinds.map(|kind| flow_of(&done, kind).ios as f64).sum()))
    };
    let counted: Vec<(&Layer, f64)> = layers.iter().map(|l| requests(l)).collect::<Known<_>>()?;
    let all = counted.iter().map(|(_, requests)| requests).sum();
    Ok(counted.into_iter().map(|(layer, requests)| (layer, part * share(requests, all))).collect())
}

/// Adds a share to the share of a layer. Several layers may have the same layer below them.
fn add_share<'a>(to: &mut Vec<(&'a Layer, f64)>, layer: &'a Layer, part: f64) {
    match to.iter_mut().find(|(l, _)| l.stat_file == layer.stat_file) {
        Some((_, has)) => *has += part,
        None => to.push((layer, part)),
    }
}

/// File systems with subvolumes. A mounted subvolume looks like a bind mount, but is not one.
const SUBVOLUMES: &[&str] = &["btrfs", "bcachefs"];

pub(super) const WRONG_PLACE: Check = Check {
    id: CheckId::A14,
    name: "WRONG_PLACE",
    belief: "the path leads to the intended storage",
    reads: "The chain from the path to the disks: its mount in /proc/self/mountinfo, its file system, and \
            every block device below in /sys. Also --expect-device, after following links such as those in \
            /dev/disk/by-id.",
    formula: formula!(
        "Invalid if the chain of any target lacks the device that --expect-device names by its kernel \
         name or serial number. Without that option, any place is accepted, and an overlay, a bind \
         mount or an automount point is a note, because such a path does not show its disk. Not \
         checked if the devices of a target are unknown."
    ),
    provoke: "`mkdir /mnt/fast` and `fathom run --rw randread --expect-device nvme1n1 /mnt/fast` with \
              nothing mounted there.",
    fix: "Mount the intended device, or name a directory on it (`findmnt -T PATH` and `lsblk` show where a \
          path is).",
    accept: "Accept the note if you want to measure the overlay or mount.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_wrong_place),
    #[cfg(test)]
    fires: Some(|| expecting("nvme1n1", &Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        record.header.hosts[0].places.clear();
        record
    },
};

fn check_wrong_place(case: &Case) -> Known<Answer> {
    let expected = case.record.header.plan.expect_device.as_deref();
    let (mut detour, mut completeness) = (None, Ok(()));
    for (_, place) in case.own_places() {
        let Some(place) = place else {
            completeness =
                completeness.and(not_checked("the record does not contain the device chain of the target"));
            continue;
        };
        match (expected, &place.unresolved_reason) {
            (Some(name), _) if is_on(place, name) => {}
            // If a chain could not be followed to its end, it may still lead to the device.
            (Some(name), Some(why)) if place.ram.is_none() => {
                let why = format!("it is unknown whether the target is on {name}: {why}");
                completeness = completeness.and(Err(why));
            }
            (Some(name), _) => return wrong_place_finding(place, name).found(),
            (None, blind) => match (describe_detour(place), blind) {
                (Some(found), _) => detour = detour.or(Some(found)),
                (None, Some(why)) if place.ram.is_none() => {
                    let why = format!("it is unknown where the data of {} are: {why}", place.path);
                    completeness = completeness.and(Err(why));
                }
                _ => {}
            },
        }
    }
    if let Some(detour) = detour {
        let fix = "Name a path directly on the intended disk, or name the disk with --expect-device.";
        let found = Detail::new(Severity::Note, detour, evidence([])).with_fix(fix.to_owned());
        return Ok(Answer::Finding(found));
    }
    completeness?;
    let sentence = match expected {
        Some(_) => "Every target is on the device named with --expect-device.",
        None => "The path leads directly to a mounted file system or a device.",
    };
    holds(sentence, evidence([]))
}

fn is_on(place: &Place, name: &str) -> bool {
    place.layers.iter().any(|l| l.name == name || l.serial.as_deref().is_some_and(|s| s.trim() == name))
}

fn wrong_place_finding(place: &Place, name: &str) -> Detail {
    let below: Vec<&str> = place.layers.iter().map(|l| l.name.as_str()).collect();
    let actual = match (&place.ram, below.is_empty()) {
        (Some(ram), _) => format!("in memory ({ram})"),
        (None, true) => format!("on {} without a block device", place.kind()),
        (None, false) => format!("on {}", below.join(", ")),
    };
    let mount = place.file_system.as_ref().map(|fs| format!(", below the mount point {}", fs.mount_point));
    detail!(
        Severity::Invalidates,
        evidence([]),
        "{} is not on {name}: it is {actual}{}.",
        place.path,
        mount.unwrap_or_default()
    )
}

/// Describes an overlay, bind mount or automount point that the path does not show.
fn describe_detour(place: &Place) -> Option<String> {
    let fs = place.file_system.as_ref()?;
    let (path, at) = (&place.path, &fs.mount_point);
    let disks: Vec<&str> = place.lowest_layers().map(|l| l.name.as_str()).collect();
    let on = if disks.is_empty() { String::new() } else { format!(" on {}", disks.join(", ")) };
    match fs.kind.as_str() {
        "overlay" => {
            let data = match (&place.ram, &place.unresolved_reason) {
                (Some(ram), _) => format!("its data are in memory ({ram})"),
                (None, Some(why)) => format!("the device of its data is unknown: {why}"),
                (None, None) if disks.is_empty() => "the device of its data is unknown".to_owned(),
                (None, None) => format!("its data are{on}"),
            };
            Some(format!(
                "{path} is in an overlay at {at}, whose directories may be on several devices; {data}."
            ))
        }
        "autofs" => Some(format!("{path} is below the automount point {at}, and nothing was mounted there.")),
        kind if fs.root.len() > 1 && !SUBVOLUMES.contains(&kind) => {
            Some(format!("{path} is below a bind mount: {at} shows the directory {} of {kind}{on}.", fs.root))
        }
        _ => None,
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Sends `1 - memory_share` of the requests to a loop device on a disk, and `memory_share` to one on tmpfs.
#[cfg(test)]
fn with_memory_share(memory_share: f64) -> model::record::Record {
    let mut record = Fixture::honest_loop().record();
    let place = &mut record.header.hosts[0].places[0];
    let mut twin = place.layers[0].clone();
    (twin.name, twin.ram, twin.below) = ("loop1".into(), Some("loop1 on tmpfs".into()), Vec::new());
    twin.stat_file = "/sys/block/loop1/stat".into();
    place.layers.push(twin);
    place.tops.push(2);
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let Ok(text) = snapshot.files["/sys/block/loop0/stat"].clone() else { continue };
        let ios: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
        let text = format!("{} 0 8 0 0 0 0 0 0 0 0\n", (ios * memory_share / (1.0 - memory_share)) as u64);
        snapshot.files.insert("/sys/block/loop1/stat".into(), Ok(text));
    }
    record
}

#[test]
fn the_share_of_a_memory_end_is_reported() {
    let Ok(Answer::Finding(f)) = RAM_BACKED.answer(&with_memory_share(0.5)) else { panic!("silent") };
    assert!(f.sentence.contains("loop1 50 %") && f.sentence.contains("vda 50 %"), "{}", f.sentence);
    assert_eq!(f.renames, Some(Rename::Condition("50 % memory (loop1 on tmpfs)".into())));
    assert!(matches!(RAM_BACKED.answer(&with_memory_share(0.005)), Ok(Answer::Holds(..))));
    let mut uncounted = with_memory_share(0.5);
    super::change_snapshots(&mut uncounted, |s| drop(s.files.remove("/sys/block/loop1/stat")));
    let Ok(Answer::Finding(f)) = RAM_BACKED.answer(&uncounted) else { panic!("silent") };
    assert!(f.sentence.contains("is unknown"), "{}", f.sentence);
}

#[test]
fn other_users_of_a_lower_disk_do_not_change_the_share_of_memory() {
    let evidence_of = |record: &model::record::Record| match RAM_BACKED.answer(record) {
        Ok(Answer::Finding(f)) => f.evidence,
        other => panic!("{other:?}"),
    };
    let change = |record: &mut model::record::Record, name: &str, of: &dyn Fn(u64) -> u64| {
        super::change_snapshots(record, |s| {
            let text = s.files[name].clone().unwrap();
            let mut fields: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            fields[0] = of(fields[0].parse().unwrap()).to_string();
            s.files.insert(name.into(), Ok(fields.join(" ")));
        });
    };
    // Another process does a thousand times as much on the disk below the loop device.
    let mut busy_disk = with_memory_share(0.5);
    change(&mut busy_disk, "/sys/block/vda/stat", &|n| n * 1000);
    let shares = evidence_of(&busy_disk);
    assert!((shares["memory_share"] - 0.5).abs() < 0.01, "{shares:?}");
    // A device above both, and a RAM disk that does a third of the work below the loop device: memory serves a
    // half plus a third of the other half.
    let mut deeper = with_memory_share(0.5);
    let place = &mut deeper.header.hosts[0].places[0];
    let mut above = place.layers[0].clone();
    (above.name, above.stat_file) = ("md0".into(), "/sys/block/md0/stat".into());
    above.below = vec![0, 2];
    place.layers.push(above);
    place.tops = vec![3];
    let mut third = place.layers[2].clone();
    (third.name, third.stat_file) = ("ram0".into(), "/sys/block/ram0/stat".into());
    place.layers.push(third);
    place.layers[0].below.push(4);
    super::change_snapshots(&mut deeper, |s| {
        let Ok(disk) = s.files["/sys/block/vda/stat"].clone() else { return };
        s.files.insert("/sys/block/md0/stat".into(), Ok(disk.clone()));
        s.files.insert("/sys/block/ram0/stat".into(), Ok(disk));
    });
    change(&mut deeper, "/sys/block/ram0/stat", &|n| n / 2);
    let shares = evidence_of(&deeper);
    assert!((shares["memory_share"] - (0.5 + 0.5 / 3.0)).abs() < 0.01, "{shares:?}");
    assert!((shares["vda_share"] - 1.0 / 3.0).abs() < 0.01, "{shares:?}");
    // A damaged record in which a layer is below itself does not loop forever.
    deeper.header.hosts[0].places[0].layers[0].below.push(0);
    evidence_of(&deeper);
}

#[cfg(test)]
fn expecting(name: &str, fixture: &Fixture) -> model::record::Record {
    let mut record = fixture.record();
    record.header.plan.expect_device = Some(name.into());
    record
}

#[test]
fn any_layer_or_serial_number_of_the_chain_matches() {
    for name in ["loop0", "vda"] {
        let answer = WRONG_PLACE.answer(&expecting(name, &Fixture::honest_loop()));
        assert!(matches!(answer, Ok(Answer::Holds(..))), "{answer:?}");
    }
    let mut serial = expecting("S123", &Fixture::honest());
    serial.header.hosts[0].places[0].layers[0].serial = Some("S123 ".into());
    assert!(matches!(WRONG_PLACE.answer(&serial), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = WRONG_PLACE.answer(&expecting("vdb", &Fixture::honest())) else {
        panic!("silent")
    };
    assert!(
        f.severity == Severity::Invalidates && f.sentence.contains("it is on vda, below the mount point /")
    );
}

#[test]
fn an_unknown_chain_is_not_checked_and_memory_is_void() {
    let fuse = expecting("vda", &Fixture { nothing_below: true, ..Fixture::honest() });
    assert!(WRONG_PLACE.answer(&fuse).is_err());
    let tmpfs = expecting("vdb", &Fixture { ram: Some("tmpfs"), kind: "tmpfs", ..Fixture::honest() });
    assert_eq!(WRONG_PLACE.severity(&tmpfs), Some(Severity::Invalidates));
}

#[test]
fn a_target_that_is_certainly_elsewhere_is_void_whatever_is_unknown_about_others() {
    let severity = |places: &[Place]| {
        let mut record = expecting("vda", &Fixture::honest());
        let plan = &mut record.header.plan;
        plan.targets = vec![plan.targets[0].clone(); 2];
        plan.jobs[0].phases[0].streams[0].targets = vec![0, 1];
        record.header.hosts[0].places = places.to_vec();
        WRONG_PLACE.answer(&record).map(|answer| match answer {
            Answer::Finding(f) => Some(f.severity),
            _ => None,
        })
    };
    let place = |fixture: &Fixture| fixture.record().header.hosts[0].places[0].clone();
    let right = place(&Fixture::honest());
    let unknown = place(&Fixture { nothing_below: true, ..Fixture::honest() });
    let wrong = place(&Fixture { ram: Some("tmpfs"), nothing_below: true, ..Fixture::honest() });
    for both in [[unknown.clone(), wrong.clone()], [wrong.clone(), unknown.clone()], [right.clone(), wrong]] {
        assert_eq!(severity(&both), Ok(Some(Severity::Invalidates)));
    }
    assert!(severity(&[unknown, right.clone()]).is_err_and(|why| why.contains("it is unknown whether")));
    assert!(severity(&[right]).is_err_and(|why| why.contains("does not contain")));
}

#[test]
fn a_device_whose_path_below_is_unknown_is_not_checked_and_hides_no_detour() {
    let blind =
        |place: &mut Place| place.unresolved_reason = Some("the devices below md0 are unknown".into());
    let mut device = Fixture { role: model::plan::Role::Device, ..Fixture::honest() }.record();
    device.header.hosts[0].places[0].file_system = None;
    assert!(matches!(WRONG_PLACE.answer(&device), Ok(Answer::Holds(..))));
    blind(&mut device.header.hosts[0].places[0]);
    assert!(WRONG_PLACE.answer(&device).is_err_and(|why| why.contains("below md0 are unknown")));
    // The first target is in an overlay. The path of the second is unknown.
    let mut both = Fixture { kind: "overlay", ..Fixture::honest() }.record();
    let plan = &mut both.header.plan;
    plan.targets.push(plan.targets[0].clone());
    plan.jobs[0].phases[0].streams[0].targets = vec![1, 0];
    assert_eq!(WRONG_PLACE.severity(&both), Some(Severity::Note), "the record lacks the second place");
    both.header.hosts[0].places.push(device.header.hosts[0].places[0].clone());
    assert_eq!(WRONG_PLACE.severity(&both), Some(Severity::Note));
}

#[test]
fn detours_are_a_note_and_subvolumes_are_silent() {
    let at = |kind, root: &str| {
        let mut record = Fixture { kind, ..Fixture::honest() }.record();
        let fs = record.header.hosts[0].places[0].file_system.as_mut().unwrap();
        fs.root = root.into();
        WRONG_PLACE.severity(&record)
    };
    assert_eq!(at("overlay", "/"), Some(Severity::Note));
    let sentence = |change: &dyn Fn(&mut Place)| {
        let mut record = Fixture { kind: "overlay", ..Fixture::honest() }.record();
        change(&mut record.header.hosts[0].places[0]);
        let Ok(Answer::Finding(finding)) = WRONG_PLACE.answer(&record) else { panic!("silent") };
        finding.sentence
    };
    assert!(sentence(&|_| ()).ends_with("its data are on vda."), "{}", sentence(&|_| ()));
    let unseen = sentence(&|place| place.unresolved_reason = Some("overlay: a container".into()));
    assert!(unseen.ends_with("the device of its data is unknown: overlay: a container."), "{unseen}");
    let without_disks = sentence(&|place| (place.tops, place.layers) = (Vec::new(), Vec::new()));
    assert!(without_disks.ends_with("; the device of its data is unknown."), "{without_disks}");
    assert_eq!(at("autofs", "/"), Some(Severity::Note));
    assert_eq!(at("ext4", "/srv/fast"), Some(Severity::Note));
    assert_eq!(at("btrfs", "/home"), None);
    assert_eq!(at("ext4", ""), None, "old records do not contain the mount root");
}
