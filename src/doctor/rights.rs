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

pub(super) fn looks(seen: &Observation) -> Vec<Look> {
    let mut looks = vec![io_uring(seen), cgroup(seen)];
    looks.extend(raw_devices(seen));
    looks.extend([tracing(seen), open_files(seen), locked_memory(seen)]);
    looks
}

fn io_uring(seen: &Observation) -> Look {
    const ABOUT: &str = "io_uring";
    match &seen.rights.io_uring {
        Ok(()) => Look::ok(ABOUT, "Allowed."),
        Err(why) => Look::finding(ABOUT, Severity::Void, format!("The kernel refuses it: {why}."))
            .cure("as root: sysctl kernel.io_uring_disabled=0 (in a container: allow it in the seccomp profile), or measure with --engine libaio"),
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
        Some(most) if most < LOCKED_FROM => Look::finding(
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
    use model::finding::Outcome;

    #[test]
    fn who_may_all_is_in_order_and_what_is_refused_is_said_with_its_reason() {
        let mut seen = in_order();
        assert!(looks(&seen).iter().all(|l| l.outcome == Outcome::Holds), "{:#?}", looks(&seen));
        let rights = &mut seen.rights;
        (rights.io_uring, rights.cgroup) = (Err("reason 1".into()), Err("reason 2".into()));
        (rights.tracing, rights.devices[0].1) = (Err("reason 3".into()), Err("reason 4".into()));
        (rights.open_files, rights.locked_bytes) = (Some(FILES_FROM - 1), Some(LOCKED_FROM - 1));
        let looks = looks(&seen);
        assert!(looks.iter().all(|l| l.outcome == Outcome::Finding && !l.cure.is_empty()), "{looks:#?}");
        for reason in ["reason 1", "reason 2", "reason 3", "reason 4"] {
            assert!(looks.iter().any(|l| l.sentence.contains(reason)), "{reason}");
        }
        let worst = looks.iter().map(|l| l.severity).min().flatten();
        assert_eq!(worst, Some(Severity::Void));
    }
}
