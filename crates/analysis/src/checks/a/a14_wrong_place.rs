//! A14: a target on another device than its path suggests. Compares the device chain with --expect-device;
//! without that option, notes overlays, bind mounts and automount points.

use crate::checks::prelude::*;

/// File systems whose subvolumes appear as a mounted directory, which is not a bind mount.
const SUBVOLUMES: &[&str] = &["btrfs", "bcachefs"];

pub(super) const CHECK: Check = Check {
    id: CheckId::A14,
    name: "WRONG_PLACE",
    belief: "the path leads to the intended storage",
    reads: "The chain from the path to the disks: its mount in /proc/self/mountinfo, its file system, and \
            every block device below in /sys. Also --expect-device, after following links such as those in \
            /dev/disk/by-id.",
    formula: formula!(
        "Void if --expect-device names a device that is not in the chain of every target, by its kernel name \
         or serial number. Without that option, any place is accepted, and an overlay, a bind mount or an \
         automount point is a note, because such a path does not show its disk."
    ),
    provoke: "`mkdir /mnt/fast` and `fathom run --rw randread --expect-device nvme1n1 /mnt/fast` with \
              nothing mounted there.",
    fix: "Mount the intended device, or name a directory on it (`findmnt -T PATH` and `lsblk` show where a \
          path is).",
    accept: "Accept the note if you want to measure the overlay or mount.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| expecting("nvme1n1", &crate::fixture::Fixture::honest())),
    #[cfg(test)]
    blind: || {
        let mut record = crate::fixture::Fixture::honest().record();
        record.header.hosts[0].places.clear();
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let expected = case.record.header.plan.expect_device.as_deref();
    let mut detour = None;
    for (_, place) in case.own_places() {
        let place = place.ok_or("the record does not contain the device chain of the target")?;
        match expected {
            Some(name) if !is_on(place, name) => {
                // A chain that could not be followed to its end may still lead to the device.
                return match &place.blind {
                    Some(why) if place.ram.is_none() => {
                        Err(format!("fathom cannot tell whether the target is on {name}: {why}"))
                    }
                    _ => Ok(Answer::Finding(elsewhere(place, name))),
                };
            }
            Some(_) => {}
            None => detour = detour.or_else(|| detour_of(place)),
        }
    }
    if let Some(detour) = detour {
        let cure = "Name the directory itself, or name the intended disk with --expect-device.";
        let found = Detail::new(Severity::Note, detour, evidence([])).with_cure(cure.to_owned());
        return Ok(Answer::Finding(found));
    }
    let sentence = match expected {
        Some(_) => "Every target is on the device named with --expect-device.",
        None => "The path leads directly to a mounted file system or a device.",
    };
    holds(sentence, evidence([]))
}

fn is_on(place: &Place, name: &str) -> bool {
    place.layers.iter().any(|l| l.name == name || l.serial.as_deref().is_some_and(|s| s.trim() == name))
}

fn elsewhere(place: &Place, name: &str) -> Detail {
    let below: Vec<&str> = place.layers.iter().map(|l| l.name.as_str()).collect();
    let actual = match (&place.ram, below.is_empty()) {
        (Some(ram), _) => format!("in memory ({ram})"),
        (None, true) => format!("on {} without a block device", place.kind()),
        (None, false) => format!("on {}", below.join(" on ")),
    };
    let mount = place.file_system.as_ref().map(|fs| format!(", which is mounted at {}", fs.mount_point));
    detail!(
        Severity::Void,
        evidence([]),
        "{} is not on {name}: it is {actual}{}.",
        place.path,
        mount.unwrap_or_default()
    )
}

/// Describes an overlay, bind mount or automount point that the path does not show.
fn detour_of(place: &Place) -> Option<String> {
    let fs = place.file_system.as_ref()?;
    let (path, at) = (&place.path, &fs.mount_point);
    let disks: Vec<&str> = place.leaves().map(|l| l.name.as_str()).collect();
    let on = if disks.is_empty() { String::new() } else { format!(" on {}", disks.join(", ")) };
    match fs.kind.as_str() {
        "overlay" => {
            let data = match (&place.ram, &place.blind) {
                (Some(ram), _) => format!("its data are in memory ({ram})"),
                (None, Some(why)) => format!("the device of its data is unknown: {why}"),
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

#[cfg(test)]
fn expecting(name: &str, fixture: &Fixture) -> model::record::Record {
    let mut record = fixture.record();
    record.header.plan.expect_device = Some(name.into());
    record
}

#[test]
fn any_layer_or_serial_number_of_the_chain_matches() {
    for name in ["loop0", "vda"] {
        let answer = CHECK.answer(&expecting(name, &Fixture::honest_loop()));
        assert!(matches!(answer, Ok(Answer::Holds(..))), "{answer:?}");
    }
    let mut serial = expecting("S123", &Fixture::honest());
    serial.header.hosts[0].places[0].layers[0].serial = Some("S123 ".into());
    assert!(matches!(CHECK.answer(&serial), Ok(Answer::Holds(..))));
    let Ok(Answer::Finding(f)) = CHECK.answer(&expecting("vdb", &Fixture::honest())) else {
        panic!("silent")
    };
    assert!(f.severity == Severity::Void && f.sentence.contains("it is on vda, which is mounted at /"));
}

#[test]
fn an_unknown_chain_is_not_checked_and_memory_is_void() {
    let fuse = expecting("vda", &Fixture { nothing_below: true, ..Fixture::honest() });
    assert!(CHECK.answer(&fuse).is_err());
    let tmpfs = expecting("vdb", &Fixture { ram: Some("tmpfs"), kind: "tmpfs", ..Fixture::honest() });
    assert_eq!(CHECK.severity(&tmpfs), Some(Severity::Void));
}

#[test]
fn detours_are_a_note_and_subvolumes_are_silent() {
    let at = |kind, root: &str| {
        let mut record = Fixture { kind, ..Fixture::honest() }.record();
        let fs = record.header.hosts[0].places[0].file_system.as_mut().unwrap();
        fs.root = root.into();
        CHECK.severity(&record)
    };
    assert_eq!(at("overlay", "/"), Some(Severity::Note));
    let sentence = |change: &dyn Fn(&mut Place)| {
        let mut record = Fixture { kind: "overlay", ..Fixture::honest() }.record();
        change(&mut record.header.hosts[0].places[0]);
        let Ok(Answer::Finding(finding)) = CHECK.answer(&record) else { panic!("silent") };
        finding.sentence
    };
    assert!(sentence(&|_| ()).ends_with("its data are on vda."), "{}", sentence(&|_| ()));
    let unseen = sentence(&|place| place.blind = Some("overlay: a container".into()));
    assert!(unseen.ends_with("the device of its data is unknown: overlay: a container."), "{unseen}");
    assert_eq!(at("autofs", "/"), Some(Severity::Note));
    assert_eq!(at("ext4", "/srv/fast"), Some(Severity::Note));
    assert_eq!(at("btrfs", "/home"), None);
    assert_eq!(at("ext4", ""), None, "old records do not contain the mount root");
}
