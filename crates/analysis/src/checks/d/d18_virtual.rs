//! D18: a virtual disk, below which nothing can be seen from here.
//!
//! For: saying so. Not for: guessing what the host does.

use crate::case::Case;
use crate::checks::{Answer, Check, Found, Page, evidence};
use model::Known;
use model::finding::Severity;

/// Drivers of disks that another machine simulates.
const VIRTUAL_DRIVERS: &[&str] =
    &["virtio_blk", "virtio_scsi", "xen_blkfront", "vbd", "hv_storvsc", "vmw_pvscsi"];

pub(super) const CHECK: Check = Check {
    id: "D18",
    name: "VIRTUAL",
    belief: "everything down to the medium can be seen",
    page: Page::UNWRITTEN,
    ask: look,
    #[cfg(test)]
    fires: Some(|| {
        crate::forge::Forge { virtual_by: Ok(Some("KVM".into())), ..crate::forge::Forge::honest() }.record()
    }),
    #[cfg(test)]
    blind: || {
        crate::forge::Forge { virtual_by: Err("cpuinfo: not found".into()), ..crate::forge::Forge::honest() }
            .record()
    },
};

fn look(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let machine = case.machine.ok_or("the record names no host")?;
    let drivers = case.places().flat_map(|p| &p.layers).filter_map(|l| l.driver.as_deref());
    let driver = drivers.into_iter().find(|d| VIRTUAL_DRIVERS.contains(d));
    let by = match (&machine.virtual_by, driver) {
        (Ok(Some(name)), _) => name.as_str(),
        (_, Some(driver)) => driver,
        (Ok(None), None) => {
            return Ok(Answer::Holds("This is not a virtual machine, as far as can be seen.", evidence([])));
        }
        (Err(why), None) => return Err(why.clone()),
    };
    Ok(Answer::Finding(Found {
        severity: Severity::Note,
        sentence: format!(
            "This is a virtual machine ({by}): the host's cache, its limits and its other guests cannot be seen from here."
        ),
        cure: String::new(),
        evidence: evidence([]),
        renames: None,
    }))
}
