//! B08: polled completions requested from a device queue that does not poll. Compares the engine's options with
//! `queue/io_poll` of the devices below the target.

use crate::checks::prelude::*;

/// Options of io_uring and vsync that request polled completions.
const POLLING: &[&str] = &["iopoll", "hipri"];

pub(super) const CHECK: Check = Check {
    id: CheckId::B08,
    name: "NOT_POLLING",
    belief: "completions were polled, as requested",
    reads: "`queue/io_poll` of every device below the target that has it, and the options of the engine: \
            `iopoll` of io_uring, `hipri` of vsync.",
    formula: formula!(
        "Void if polling was requested and a device reports 0: the kernel then waits for the interrupt \
         without reporting it. The engine refuses such a run beforehand. This check also covers devices \
         below file systems and stacks that the engine cannot query."
    ),
    provoke: "`fathom run --engine io_uring:iopoll --cache direct DIR` on a disk without poll queues is \
              refused with that reason. `fathom run --engine vsync:hipri DIR` on a btrfs of such a disk, \
              which the engine cannot query, makes this check fire.",
    fix: "Omit the option, or give the driver poll queues (`nvme.poll_queues=2` on the kernel command line).",
    accept: "Do not accept it: the number was measured with interrupts.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| polled(Some("0\n"))),
    #[cfg(test)]
    blind: || polled(None),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let option = case.stream.options.keys().find(|o| POLLING.contains(&o.as_str()));
    let Some(option) = option.filter(|_| case.has_storage()) else { return Ok(Answer::DoesNotApply) };
    case.grounded()?;
    let layers = case.places().flat_map(|p| &p.layers).filter(|l| l.queue.contains_key("io_poll"));
    let mut holds = None;
    for layer in layers {
        if layer.queue_number("io_poll")? == 0 {
            return finding!(
                Severity::Void,
                evidence([("io_poll", 0.0)]),
                "Option {option} requests polled completions, but {} completes by interrupt (its \
                 queue/io_poll is 0).",
                layer.name
            );
        }
        holds = Some(Answer::Holds("Completions were polled, as requested.", evidence([("io_poll", 1.0)])));
    }
    holds.ok_or_else(|| {
        format!("option {option} requests polling, but no device below reports whether it polls")
    })
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
