//! A11: a target that is memory.
//!
//! For: tmpfs, zram, ram disks and loop devices on them. Not for: caches in front of storage (A01, A12).

use crate::case::{Case, share};
use crate::checks::{Answer, Ask, Check, Detail, Page, Rename, evidence, formula};
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::job::Kind;
use model::machine::{Layer, Place};
use model::units::show_share;

/// Share of the requests below which a part of the chain that is memory does not count: a few blocks of metadata.
const SERVED_FROM: Share = Share(0.01);

pub(super) const CHECK: Check = Check {
    id: CheckId::A11,
    name: "RAM_BACKED",
    belief: "the target is a storage device",
    page: Page {
        reads: "The type of the file system (tmpfs, ramfs, hugetlbfs), and the chain of devices below in /sys: zram, ram \
                disks, loop devices on files in memory, whose file is told by its device number also where its name was removed; \
                and the `stat` files of devices beside each other in the chain, from start to stop of every run.",
        formula: formula!(
            "Fires where all of the chain is memory; of several targets it tells how many are. Where only some of its ends are, as of a RAID over a disk and a RAM \
             disk, the work is divided from the top down, at each layer by the requests of those that it stands on, so that others' \
             requests to a disk below do not count as ours; and it fires where memory served more than {SERVED_FROM}: below are a \
             few blocks of metadata. Where the chain could not be followed to its end it is not \
             checked, and the result is suspect."
        ),
        provoke: "`fathom run --rw randread --cache buffered /dev/shm`, or `losetup -f --show /dev/shm/IMAGE` and a run on \
                that device.",
        fix: "Name a directory or device on the disk that you mean (`findmnt -T PATH` shows where a path is).",
        accept: "Accept it where memory is what you want to measure.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { kind: "tmpfs", ram: Some("tmpfs"), ..crate::fixture::Fixture::honest() }
            .record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { nothing_below: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    if let Some(ram) = case.ram() {
        let all = case.places().count();
        let in_memory = case.places().filter(|place| place.ram.is_some()).count();
        let (sentence, renames) = if in_memory < all {
            (
                format!(
                    "{in_memory} of {all} targets {} memory ({ram}), not a disk, and the number is of all targets together.",
                    if in_memory == 1 { "is" } else { "are" }
                ),
                Rename::Condition(format!("a part of it memory ({ram})")),
            )
        } else {
            (format!("This target is memory ({ram}), not a disk."), Rename::Memory(format!("memory ({ram})")))
        };
        return Ok(Answer::Finding(Detail {
            severity: Severity::Rename,
            sentence,
            cure: None,
            evidence: evidence([("targets_in_memory", in_memory as f64)]),
            renames: Some(renames),
        }));
    }
    let memory = memory_ends(case);
    if !memory.is_empty() {
        return partly(case, &memory);
    }
    case.grounded()?;
    Ok(Answer::Holds("A device that is not memory lies below the target.", evidence([])))
}

/// Ends of the chain that are memory.
fn memory_ends<'a>(case: &Case<'a>) -> Vec<&'a Layer> {
    let mut out: Vec<&Layer> = Vec::new();
    for layer in case.places().flat_map(Place::leaves).filter(|l| l.ram.is_some()) {
        if out.iter().all(|l| l.stat_file != layer.stat_file) {
            out.push(layer);
        }
    }
    out
}

/// What to say where some ends of the chain are memory and others are not.
fn partly(case: &Case, memory: &[&Layer]) -> Known<Answer> {
    let names: Vec<&str> = memory.iter().filter_map(|l| l.ram.as_deref()).collect();
    let names = names.join(", ");
    let found = |sentence: String, part: &str, numbers| {
        Ok(Answer::Finding(Detail {
            severity: Severity::Rename,
            sentence,
            cure: None,
            evidence: numbers,
            renames: Some(Rename::Condition(format!("{part} of it memory ({names})"))),
        }))
    };
    let served = match served(case) {
        Ok(served) => served,
        Err(why) => {
            let sentence = format!(
                "A part of this target is memory ({names}); how much it served was not counted: {why}."
            );
            return found(sentence, "a part", evidence([]));
        }
    };
    let part = served.iter().filter(|(l, _)| l.ram.is_some()).map(|(_, part)| part).sum();
    let mut numbers = evidence([("memory_share", part)]);
    numbers.extend(served.iter().map(|(l, part)| (format!("{}_share", l.name), *part)));
    if part <= SERVED_FROM {
        return Ok(Answer::Holds("A part of the chain is memory, and it served hardly anything.", numbers));
    }
    let each: Vec<String> =
        served.iter().map(|(l, part)| format!("{} {}", l.name, show_share(*part))).collect();
    let sentence = format!(
        "A part of this target is memory ({names}), not a disk: at the ends of the chain, the requests were served by {}.",
        each.join(", ")
    );
    found(sentence, &show_share(part), numbers)
}

/// The share of the work that each end of the chain served. From the top down: the share of a layer goes to those that it stands on as
/// their requests were to each other, so that what others do on a disk further down is not taken for ours.
fn served<'a>(case: &Case<'a>) -> Known<Vec<(&'a Layer, f64)>> {
    let mut ends: Vec<(&Layer, f64)> = case.leaves()?.into_iter().map(|end| (end, 0.0)).collect();
    let mut level = divided(case, &case.tops()?, 1.0)?;
    // A chain has fewer levels than layers; in a damaged record, where one may stand on itself, that ends it.
    for _ in case.places().flat_map(|p| &p.layers) {
        let mut next = Vec::new();
        for (layer, part) in level {
            let below = below(case, layer);
            if below.is_empty() {
                add(&mut ends, layer, part);
            }
            for (layer, part) in divided(case, &below, part)? {
                add(&mut next, layer, part);
            }
        }
        level = next;
    }
    Ok(ends)
}

/// What this layer stands on.
fn below<'a>(case: &Case<'a>, layer: &Layer) -> Vec<&'a Layer> {
    let known = |place: &'a Place| {
        let layer = place.layers.iter().find(|l| l.stat_file == layer.stat_file)?;
        Some(layer.below.iter().filter_map(|i| place.layers.get(*i)).collect())
    };
    case.places().find_map(known).unwrap_or_default()
}

/// A share, divided among layers beside each other by the requests that they completed in the job's directions.
fn divided<'a>(case: &Case<'a>, layers: &[&'a Layer], part: f64) -> Known<Vec<(&'a Layer, f64)>> {
    if let [one] = layers {
        return Ok(vec![(one, part)]);
    }
    let requests = |layer: &'a Layer| {
        let done = case.counted(&[layer])?;
        let flows = [(Kind::Read, done.read), (Kind::Write, done.write)];
        let ours = flows.into_iter().filter(|(kind, _)| case.does(*kind));
        Ok((layer, ours.map(|(_, flow)| flow.ios as f64).sum()))
    };
    let counted: Vec<(&Layer, f64)> = layers.iter().map(|l| requests(l)).collect::<Known<_>>()?;
    let all = counted.iter().map(|(_, requests)| requests).sum();
    Ok(counted.into_iter().map(|(layer, requests)| (layer, part * share(requests, all))).collect())
}

/// Adds a share to that of a layer, which more than one may stand on.
fn add<'a>(to: &mut Vec<(&'a Layer, f64)>, layer: &'a Layer, part: f64) {
    match to.iter_mut().find(|(l, _)| l.stat_file == layer.stat_file) {
        Some((_, has)) => *has += part,
        None => to.push((layer, part)),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Half of the requests to a loop device on a disk, and this share of all to one on memory.
#[cfg(test)]
fn half_in_memory(memory: f64) -> model::record::Record {
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
        let text = format!("{} 0 8 0 0 0 0 0 0 0 0\n", (ios * memory / (1.0 - memory)) as u64);
        snapshot.files.insert("/sys/block/loop1/stat".into(), Ok(text));
    }
    record
}

#[test]
fn an_end_of_the_chain_that_is_memory_is_told_with_its_share() {
    let Ok(Answer::Finding(f)) = CHECK.answer(&half_in_memory(0.5)) else { panic!("silent") };
    assert!(f.sentence.contains("loop1 50 %") && f.sentence.contains("vda 50 %"), "{}", f.sentence);
    assert_eq!(f.renames, Some(Rename::Condition("50 % of it memory (loop1 on tmpfs)".into())));
    assert!(matches!(CHECK.answer(&half_in_memory(0.005)), Ok(Answer::Holds(..))));
    let mut uncounted = half_in_memory(0.5);
    super::snapshots(&mut uncounted, |s| drop(s.files.remove("/sys/block/loop1/stat")));
    let Ok(Answer::Finding(f)) = CHECK.answer(&uncounted) else { panic!("silent") };
    assert!(f.sentence.contains("was not counted"), "{}", f.sentence);
}

#[test]
fn what_others_do_on_a_disk_below_leaves_the_share_of_memory_as_it_is() {
    let evidence_of = |record: &model::record::Record| match CHECK.answer(record) {
        Ok(Answer::Finding(f)) => f.evidence,
        other => panic!("{other:?}"),
    };
    let change = |record: &mut model::record::Record, name: &str, of: &dyn Fn(u64) -> u64| {
        super::snapshots(record, |s| {
            let text = s.files[name].clone().unwrap();
            let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words[0] = of(words[0].parse().unwrap()).to_string();
            s.files.insert(name.into(), Ok(words.join(" ")));
        });
    };
    // On the disk below the loop device a neighbour does a thousand times as much.
    let mut beside = half_in_memory(0.5);
    change(&mut beside, "/sys/block/vda/stat", &|n| n * 1000);
    let seen = evidence_of(&beside);
    assert!((seen["memory_share"] - 0.5).abs() < 0.01, "{seen:?}");
    // Both stand on one more device, and a third of the disk's is memory: two of four parts, and a third of the rest.
    let mut deeper = half_in_memory(0.5);
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
    super::snapshots(&mut deeper, |s| {
        let Ok(disk) = s.files["/sys/block/vda/stat"].clone() else { return };
        s.files.insert("/sys/block/md0/stat".into(), Ok(disk.clone()));
        s.files.insert("/sys/block/ram0/stat".into(), Ok(disk));
    });
    change(&mut deeper, "/sys/block/ram0/stat", &|n| n / 2);
    let seen = evidence_of(&deeper);
    assert!((seen["memory_share"] - (0.5 + 0.5 / 3.0)).abs() < 0.01, "{seen:?}");
    assert!((seen["vda_share"] - 1.0 / 3.0).abs() < 0.01, "{seen:?}");
    // A damaged record, in which a layer stands on itself, ends.
    deeper.header.hosts[0].places[0].layers[0].below.push(0);
    evidence_of(&deeper);
}
