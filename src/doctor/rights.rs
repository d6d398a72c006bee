//! What fathom may do here, and what it does instead where it may not.
//!
//! For: rights that change a measurement or what can be checked of it. Not for: whether a target may be written; every run
//! decides that anew.

use super::observation::Observation;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::finding::Severity;
use model::units::{GIB, MIB, show_bytes, show_count};
use sys::user::advice;

/// Files that a run opens: one per worker and target, counters, sessions; with 64 workers on a few targets far below.
const FILES_FROM: u64 = 512;
/// Memory of 32 operations of 1 MiB in flight, which io_uring locks for its registered buffers.
const LOCKED_FROM: u64 = 32 * MIB;
/// Limits beyond this are as good as none.
const ENDLESS: u64 = 1024 * GIB;

pub(super) fn check_rights(seen: &Observation) -> Vec<Look> {
    let mut looks = vec![io_uring(seen), cgroup(seen)];
    looks.extend(raw_devices(seen));
    looks.extend([tracing(seen), open_files(seen), locked_memory(seen)]);
    looks
}

fn io_uring(seen: &Observation) -> Look {
    const ABOUT: &str = "io_uring";
    let Err(denied) = &seen.rights.io_uring else { return Look::ok(ABOUT, "Allowed.") };
    let allow =
        seen.rights.io_uring_advice.map_or_else(String::new, |advice| format!("to have it: {advice}; "));
    match &seen.rights.libaio {
        Ok(()) => Look::finding(
            ABOUT,
            Severity::Note,
            format!(
                "It cannot be used: {denied}. fathom uses libaio instead, at the same queue depth. libaio has no trims, \
                 and no queue depth through the page cache."
            ),
        )
        .cure(format!("{allow}to measure the same everywhere: --engine libaio")),
        Err(why) => Look::finding(
            ABOUT,
            Severity::Void,
            format!("It cannot be used: {denied}. libaio, which could replace it, cannot be used either: {why}."),
        )
        .cure(format!("{allow}without it: --engine sync --depth 1, with more --workers")),
    }
}

fn cgroup(seen: &Observation) -> Look {
    const ABOUT: &str = "cgroup of its own";
    match &seen.rights.cgroup {
        Ok(version) => Look::ok(
            ABOUT,
            format!("Can be made (version {version}): the kernel will count fathom's I/O apart."),
        ),
        Err(why) => Look::finding(
            ABOUT,
            Severity::Note,
            format!("Cannot be made: {why}. Traffic of others is told from ours by arithmetic alone."),
        )
        .cure(match seen.machine.user_id {
            0 => advice(0).to_owned(),
            user => format!(
                "{}, or in a cgroup of its own: systemd-run --user --scope -p Delegate=yes fathom ...",
                advice(user)
            ),
        })
        .check(CheckId::D01),
    }
}

fn raw_devices(seen: &Observation) -> Vec<Look> {
    let one = |(name, answer): &(String, Result<(), String>)| {
        let about = format!("raw {name}");
        match answer {
            Ok(()) => Look::ok(&about, "Can be read, so it can be measured beside what is built on it."),
            Err(why) => Look::finding(
                &about,
                Severity::Note,
                format!("Cannot be opened ({why}), so it cannot be measured beside what is built on it."),
            )
            .cure(advice(seen.machine.user_id)),
        }
    };
    seen.rights.devices.iter().map(one).collect()
}

fn tracing(seen: &Observation) -> Look {
    const ABOUT: &str = "tracing";
    match &seen.rights.tracing {
        Ok(()) => Look::ok(ABOUT, "Block requests can be traced with who issued them."),
        Err(why) => Look::finding(ABOUT, Severity::Note, format!("Block requests cannot be traced ({why}). fathom needs no trace; it would name who issued a foreign request."))
            .cure(advice(seen.machine.user_id)),
    }
}

fn open_files(seen: &Observation) -> Look {
    const ABOUT: &str = "open files";
    match seen.rights.open_files {
        Some(most) if most < FILES_FROM => Look::finding(
            ABOUT,
            Severity::Note,
            format!("At most {}: many workers on many targets need more.", show_count(most as f64)),
        )
        .cure(format!("ulimit -n {FILES_FROM}")),
        Some(most) if most < ENDLESS => Look::ok(ABOUT, format!("Up to {}.", show_count(most as f64))),
        _ => Look::ok(ABOUT, "Without limit."),
    }
}

fn locked_memory(seen: &Observation) -> Look {
    const ABOUT: &str = "locked memory";
    match seen.rights.locked_bytes {
        Some(most) if most < LOCKED_FROM && seen.rights.io_uring.is_ok() => Look::finding(
            ABOUT,
            Severity::Note,
            format!(
                "At most {}: io_uring cannot register buffers of {} and takes plain ones, which cost more CPU time.",
                show_bytes(most),
                show_bytes(LOCKED_FROM)
            ),
        )
        .cure("as root: prlimit --memlock=unlimited --pid $$"),
        Some(most) if most < ENDLESS => Look::ok(ABOUT, format!("Up to {}.", show_bytes(most))),
        _ => Look::ok(ABOUT, "Without limit."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use machine::async_io::IoUringDenied;
    use model::finding::Outcome;

    #[test]
    fn who_may_all_is_in_order_and_what_is_refused_is_said_with_its_reason() {
        let mut seen = in_order();
        assert!(check_rights(&seen).iter().all(|l| l.outcome == Outcome::Holds), "{:#?}", check_rights(&seen));
        let rights = &mut seen.rights;
        rights.io_uring = Err(IoUringDenied::Other("reason 1".into()));
        (rights.libaio, rights.cgroup) = (Err("no libaio".into()), Err("reason 2".into()));
        (rights.tracing, rights.devices[0].1) = (Err("reason 3".into()), Err("reason 4".into()));
        (rights.open_files, rights.locked_bytes) = (Some(FILES_FROM - 1), Some(LOCKED_FROM - 1));
        let looks = check_rights(&seen);
        // Only io_uring would lock the memory.
        let (locked, looks): (Vec<Look>, Vec<Look>) =
            looks.into_iter().partition(|l| l.about == "locked memory");
        assert!(locked.iter().all(|l| l.outcome == Outcome::Holds), "{locked:#?}");
        assert!(looks.iter().all(|l| l.outcome == Outcome::Finding && !l.cure.is_empty()), "{looks:#?}");
        for reason in ["reason 1", "reason 2", "reason 3", "reason 4"] {
            assert!(looks.iter().any(|l| l.sentence.contains(reason)), "{reason}");
        }
        let worst = looks.iter().map(|l| l.severity).min().flatten();
        assert_eq!(worst, Some(Severity::Void));
    }

    #[test]
    fn advice_about_io_uring_names_only_what_helps_here() {
        let of = |denied: IoUringDenied, advice: Option<&'static str>| {
            let mut seen = in_order();
            (seen.rights.io_uring, seen.rights.io_uring_advice) = (Err(denied), advice);
            io_uring(&seen)
        };
        let old = of(IoUringDenied::OldKernel("4.19.0".into()), None);
        assert_eq!(old.severity, Some(Severity::Note));
        assert!(!old.cure.contains("sysctl") && old.cure.contains("--engine libaio"), "{old:?}");
        let sysctl = of(IoUringDenied::Sysctl("2".into()), Some("sysctl kernel.io_uring_disabled=0"));
        assert!(sysctl.cure.contains("sysctl kernel.io_uring_disabled=0"), "{sysctl:?}");
        // With io_uring, little memory that may be locked is worth a note.
        let mut seen = in_order();
        seen.rights.locked_bytes = Some(LOCKED_FROM - 1);
        assert_eq!(locked_memory(&seen).outcome, Outcome::Finding);
    }
}
