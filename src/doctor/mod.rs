//! `fathom doctor`: a look at a place before anything is measured there.
//!
//! For: all that can be known beforehand and would spoil a number, each with how to fix it. Not for: measuring, nor for
//! changing anything; the fixes are commands that the reader types.
//!
//! `observation` does all the looking; every other file answers from what was observed, so that its answers can be tested.

mod chain;
mod data;
mod device;
mod health;
mod host;
mod neighbours;
mod observation;
mod rights;

use crate::failure::Failure;
use crate::{stderr, stdout};
use model::diagnosis::{Diagnosis, FORMAT, Group, Look};
use model::units::show_ns;
use observation::Observation;
use report::{Format, Style};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    /// The place.
    pub target: PathBuf,
    /// The format of the answer.
    pub format: &'static Format,
}

/// Looks, and prints what was seen.
///
/// # Errors
/// Where the target cannot be looked at, or is neither a directory, a file nor a block device.
pub fn doctor(request: &Request) -> Result<ExitCode, Failure> {
    if std::io::stderr().is_terminal() {
        stderr::say(&format!(
            "watching for {} what others do ...",
            show_ns(observation::watch_time().as_nanos() as f64)
        ));
    }
    let seen = observation::observe(&request.target)?;
    stdout::report(request.format, &diagnose(seen), Style::default())?;
    Ok(ExitCode::SUCCESS)
}

fn diagnose(seen: Observation) -> Diagnosis {
    let group = |heading: &str, looks: Vec<Look>| Group { heading: heading.into(), looks };
    let mut groups = vec![
        group("Where it is", chain::check_place(&seen)),
        group("What is stored there", data::check_stored_data(&seen)),
        group("The device below", [device::check_device_settings(&seen), health::check_device_health(&seen)].concat()),
        group("The machine", host::check_host(&seen)),
        group("Who else is here", neighbours::check_other_load(&seen)),
        group("What fathom may do here", rights::check_rights(&seen)),
    ];
    if seen.rights.sys_is_read_only {
        let looks = groups.iter_mut().flat_map(|g| &mut g.looks);
        for look in looks.filter(|look| look.cure.contains("/sys/")) {
            look.cure = format!("outside of this container (/sys is read-only here), {}", look.cure);
        }
    }
    Diagnosis {
        format: FORMAT,
        target: seen.path.to_string_lossy().into_owned(),
        chain: seen.place().chain(),
        watched_ms: seen.watched_ns() / 1_000_000,
        groups: groups.into_iter().filter(|g| !g.looks.is_empty()).collect(),
        machine: seen.machine,
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    model::shell::quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use observation::tests::in_order;
    use report::TEXT;

    /// Columns in which none of these sentences is broken.
    const WIDE: usize = 110;

    fn text(diagnosis: &Diagnosis, colour: bool) -> String {
        let shown =
            TEXT.bytes(diagnosis, Style { colour, width: WIDE, ..Style::default() }).unwrap_or_default();
        String::from_utf8(shown).unwrap_or_default()
    }

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(quoted(Path::new("/data/a-b_c.1")), "/data/a-b_c.1");
        assert_eq!(quoted(Path::new("/it's here")), r"'/it'\''s here'");
    }

    #[test]
    fn a_place_in_order_ends_with_nothing_to_do() {
        let mut seen = in_order();
        // The forged machine has no CPU time between its two looks.
        seen.start.files.insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0\n".into()));
        let text = text(&diagnose(seen), false);
        assert!(!text.contains("FINDING") && !text.contains("NOT CHECKED"), "{text}");
        assert!(
            text.ends_with("Before you measure: nothing was found that would change what a number means.\n"),
            "{text}"
        );
    }

    #[test]
    fn a_setting_in_sys_is_advised_for_outside_where_sys_is_read_only() {
        let cures = |sys_is_read_only: bool| -> Vec<String> {
            let mut seen = in_order();
            seen.rights.sys_is_read_only = sys_is_read_only;
            seen.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
            let looks = diagnose(seen).groups.into_iter().flat_map(|g| g.looks);
            looks.map(|look| look.cure).filter(|cure| cure.contains("/sys/")).collect()
        };
        assert!(cures(false).iter().all(|cure| cure.starts_with("as root: ")), "{:?}", cures(false));
        assert!(!cures(true).is_empty());
        assert!(
            cures(true).iter().all(|cure| cure.starts_with("outside of this container")),
            "{:?}",
            cures(true)
        );
    }

    #[test]
    fn what_acts_is_listed_worst_first_and_notes_and_the_unseen_are_counted() {
        let mut seen = in_order();
        seen.machine.virtual_by = Ok(Some("KVM".into()));
        seen.machine.places[0].layers[1].queue.insert("iostats".into(), "0".into());
        seen.end.targets[0].room = None;
        if let Some(Ok(extents)) = &mut seen.end.targets[0].extents {
            extents.hole_bytes = extents.span_bytes;
        }
        let diagnosis = diagnose(seen);
        let plain = text(&diagnosis, false);
        let (_, list) = plain.split_once("Before you measure:\n").unwrap_or_default();
        assert!(list.starts_with("  1. holes (invalidates a number, A04): "), "{list}");
        assert!(list.contains("\n  2. counters of sda (biases it, A13): as root: echo 1"), "{list}");
        // Room, and all that needs counters or CPU time that moves.
        assert!(
            list.ends_with(
                "1 note is worth knowing. 4 things could not be checked and do not count as passed.\n"
            ),
            "{list}"
        );
        assert!(text(&diagnosis, true).contains("\x1b[33mFINDING    \x1b[0m"));
        assert!(plain.lines().all(|l| l.chars().count() <= WIDE), "{plain}");
    }
}
