//! Prints the tests of a configuration file without running them.
//!
//! Lists the targets with the paths that stand for them, the access specifications, and each test with its workers.

use super::cycle::{Load, cycle_tests};
use super::icf::Icf;
use super::jobs::{name, names, path, workers};
use model::units::show_bytes;

/// The text. `places` stand for the targets, in the order of their first naming.
pub(super) fn explain_tests(icf: &Icf, places: &[String]) -> String {
    let specs = workers(icf).map(|(_, worker)| icf.assigned(worker).len()).max().unwrap_or(0);
    let all: Vec<Vec<Load>> = (0..specs).flat_map(|at| cycle_tests(icf, at)).collect();
    let each = icf.seconds.saturating_add(icf.ramp_seconds);
    let mut out = format!(
        "test type {}: {} tests of {} s after {} s of ramp up, {} s in all\n\nTargets\n",
        icf.cycle.word(),
        all.len(),
        icf.seconds,
        icf.ramp_seconds,
        each.saturating_mul(all.len() as u64)
    );
    for (at, target) in names(icf).iter().enumerate() {
        let place = match places.get(at) {
            Some(place) => place.as_str(),
            None if path(target).starts_with('/') => path(target),
            None => "(no path of Linux; type one for it as a TARGET)",
        };
        out += &format!("  {target} = {place}\n");
    }
    out += "\nAccess specifications\n";
    for spec in &icf.specs {
        out += &format!("  {}\n", spec.name);
        for line in &spec.lines {
            out += &format!(
                "    {} % of the operations: {}, {} % reads, {} % random",
                line.share,
                show_bytes(line.bs.most().into()),
                line.mix.read_percent.get(),
                line.random
            );
            if line.delay > 0 {
                out += &format!(", a pause of {} ms after {} operations", line.delay / 1_000_000, line.burst);
            }
            if line.align > 0 {
                out += &format!(", aligned to {}", show_bytes(line.align));
            }
            if line.reply > 0 {
                out += &format!(", a reply of {}", show_bytes(line.reply.into()));
            }
            out.push('\n');
        }
    }
    for (at, loads) in all.iter().enumerate() {
        out += &format!("\nTest {}\n", at + 1);
        for load in loads {
            let targets: Vec<&str> =
                load.worker.targets.iter().take(load.targets).map(|(target, _)| target.as_str()).collect();
            out += &format!(
                "  {}: {}, {} outstanding on each of {}\n",
                name(icf, load.manager, load.worker),
                load.spec.name,
                load.outstanding,
                targets.join(", ")
            );
        }
    }
    out
}
