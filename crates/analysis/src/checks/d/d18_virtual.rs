//! D18: a virtual machine or disk, below which nothing is visible. Notes any hypervisor or driver of virtual
//! disks.

use crate::checks::prelude::*;

/// Drivers of simulated disks.
const VIRTUAL_DRIVERS: &[&str] =
    &["virtio_blk", "virtio_scsi", "xen_blkfront", "vbd", "hv_storvsc", "vmw_pvscsi"];

pub(super) const CHECK: Check = Check {
    id: CheckId::D18,
    name: "VIRTUAL",
    belief: "fathom sees everything down to the medium",
    reads: "The flag `hypervisor` of `/proc/cpuinfo`, `/sys/hypervisor/type`, vendor and product of \
            `/sys/class/dmi/id/`, and the drivers of the devices below the target.",
    formula: formula!(
        "A note if a hypervisor or a driver of virtual disks is found. There is no threshold: below a \
         virtual disk are a cache, limits and neighbours that the guest cannot see, so every number \
         describes the disk as the host serves it at this time."
    ),
    provoke: "`fathom run DIR` in any virtual machine.",
    fix: "",
    accept: "A note needs no --accept, and nothing inside the guest fixes it. Repeat at other times of day \
             to see the effect of neighbours, ask the provider for limits, and state in reports that the \
             disk is virtual.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { virtual_by: Ok(Some("KVM".into())), ..crate::fixture::Fixture::honest() }
            .record()
    }),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture {
            virtual_by: Err("cpuinfo: not found".into()),
            ..crate::fixture::Fixture::honest()
        }
        .record()
    },
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let Some(hypervisor) = virtual_by(case)? else {
        return holds("As far as fathom can see, this is not a virtual machine.", evidence([]));
    };
    finding!(
        Severity::Note,
        evidence([]),
        "This is a virtual machine ({hypervisor}): the host's cache, its limits and its other guests are \
         invisible from here."
    )
}

/// Returns the hypervisor or the driver of virtual disks, or `None` if there is none as far as known.
fn virtual_by<'a>(case: &Case<'a>) -> Known<Option<&'a str>> {
    let machine = case.machine.ok_or("the record names no host")?;
    let drivers = case.places().flat_map(|p| &p.layers).filter_map(|l| l.driver.as_deref());
    let driver = drivers.into_iter().find(|d| VIRTUAL_DRIVERS.contains(d));
    match (&machine.virtual_by, driver) {
        (Ok(Some(name)), _) => Ok(Some(name)),
        (_, Some(driver)) => Ok(Some(driver)),
        (Ok(None), None) => Ok(None),
        (Err(why), None) => Err(why.clone()),
    }
}

/// Whether the machine or the disk is known to be virtual.
pub(super) fn is_virtual(case: &Case) -> bool {
    virtual_by(case).is_ok_and(|hypervisor| hypervisor.is_some())
}

#[test]
fn a_driver_of_virtual_disks_suffices() {
    let unknown = || crate::fixture::Fixture {
        virtual_by: Err("cpuinfo: not found".into()),
        ..crate::fixture::Fixture::honest()
    };
    let mut record = unknown().record();
    record.header.hosts[0].places[0].layers[0].driver = Some("virtio_blk".into());
    assert_eq!(CHECK.severity(&record), Some(Severity::Note));
    record.header.hosts[0].places[0].layers[0].driver = Some("nvme".into());
    assert!(CHECK.answer(&record).is_err());
}
