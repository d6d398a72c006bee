//! B08: polled completions requested from a device queue that does not poll. Compares the engine's options with
//! `queue/io_poll` of the devices below the target.

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Page, evidence, formula};
use model::Known;
use model::finding::{CheckId, Severity};

/// Options of io_uring and vsync that request polled completions.
const POLLING: &[&str] = &["iopoll", "hipri"];

pub(super) const CHECK: Check = Check {
    id: CheckId::B08,
    name: "NOT_POLLING",
    belief: "completions were polled for, as was asked",
    page: Page {
        reads: "`queue/io_poll` of every device below the target that has it, and the options of the engine: `iopoll` of \
                io_uring, `hipri` of vsync.",
        formula: formula!(
            "Void where polling was asked for and a device says 0: the kernel then waits for the interrupt without reporting \
             it. The engine refuses such a run beforehand; this checks again, at the devices below file systems and stacks \
             that the engine cannot ask."
        ),
        provoke: "`fathom run --engine io_uring:iopoll --cache direct DIR` on a disk without queues for polling is refused with \
                  that reason; `fathom run --engine vsync:hipri DIR` on a btrfs of such a disk, which the engine cannot ask, \
                  is what is left for this check.",
        fix: "Leave the option out, or give the driver queues for polling (`nvme.poll_queues=2` on the kernel's command \
              line).",
        accept: "There is nothing to accept: the number is that of interrupts.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| polled(Some("0\n"))),
    #[cfg(test)]
    blind: || polled(None),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let asked = case.stream.options.keys().find(|o| POLLING.contains(&o.as_str()));
    let Some(option) = asked.filter(|_| case.has_storage()) else { return Ok(Answer::DoesNotApply) };
    case.grounded()?;
    let layers = case.places().flat_map(|p| &p.layers).filter(|l| l.queue.contains_key("io_poll"));
    let mut holds = None;
    for layer in layers {
        if layer.queue_number("io_poll")? == 0 {
            return Ok(Answer::finding(
                Severity::Void,
                format!(
                    "Option {option} asks to poll for completions, and {} completes by interrupt (its queue/io_poll says 0).",
                    layer.name
                ),
                evidence([("io_poll", 0.0)]),
            ));
        }
        holds =
            Some(Answer::Holds("Completions were polled for, as was asked.", evidence([("io_poll", 1.0)])));
    }
    holds.ok_or_else(|| format!("no device below says whether it polls, as option {option} asks"))
}

#[cfg(test)]
fn polled(io_poll: Option<&str>) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    record.header.plan.jobs[0].phases[0].streams[0].options.insert("iopoll".into(), None);
    let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
    queue.remove("io_poll");
    io_poll.map(|text| queue.insert("io_poll".into(), text.into()));
    record
}

#[test]
fn a_polling_queue_holds_and_one_without_polling_is_void() {
    assert!(matches!(CHECK.answer(&polled(Some("1\n"))), Ok(Answer::Holds(..))));
    assert_eq!(CHECK.severity(&polled(Some("0\n"))), Some(Severity::Void));
    assert!(CHECK.answer(&polled(Some("maybe"))).is_err());
    assert!(CHECK.answer(&polled(None)).is_err());
}
