//! F05: hosts that are not alike. Lists differences in kernel, CPUs, memory, file system, mount options and
//! devices.

use super::{fleet, hosts};
use crate::checks::prelude::*;

pub(super) const CHECK: Check = Check {
    id: CheckId::F05,
    name: "HOSTS_DIFFER",
    belief: "all hosts are alike, so one represents the others",
    reads: "The findings of each host when it planned: kernel, CPUs, memory; file system, mount options, \
            device model and size of the targets; the engine and span that it would have chosen.",
    formula: formula!(
        "A note that lists each property that differs between hosts, with the value of each host. The number \
         remains the result of these hosts."
    ),
    provoke: "`mpirun ...` on hosts with different kernels.",
    fix: "Use hosts that are alike, or measure each kind separately.",
    accept: "Accept it if the mixture is your cluster.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        super::with(|f| f.differences.push("the kernel differs between hosts: 6.1 (a); 5.4 (b)".into()))
    }),
    #[cfg(test)]
    blind: || {
        let mut record = super::honest();
        record.header.hosts.clear();
        record
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    let hosts = hosts(case);
    let Some(fleet) = fleet(case).filter(|_| !hosts.is_empty()) else { return Ok(Answer::DoesNotApply) };
    if case.record.header.hosts.len() < hosts.len() {
        return Err("the record does not contain the properties of each host".into());
    }
    let numbers = evidence([("hosts", hosts.len() as f64), ("differences", fleet.differences.len() as f64)]);
    if fleet.differences.is_empty() {
        return holds(
            "Kernel, CPUs, memory, file system, mount options and device are alike on all hosts.",
            numbers,
        );
    }
    finding!(Severity::Note, numbers, "Hosts are not alike: {}.", fleet.differences.join(". "))
}

#[test]
fn every_difference_is_named() {
    let two = super::with(|f| f.differences = vec!["the kernel differs".into(), "memory differs".into()]);
    let Ok(Answer::Finding(found)) = CHECK.answer(&two) else { panic!("silent") };
    assert_eq!(found.sentence, "Hosts are not alike: the kernel differs. memory differs.");
}
