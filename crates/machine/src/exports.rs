//! Files and devices that the kernel exports to other machines: namespaces of the NVMe target, files of the SCSI target (LIO), and USB mass
//! storage.
//!
//! The kernel itself opens the exported files and devices, so no process shows them. configfs names them. The kernel does not claim
//! these devices, so another program can still open them exclusively. It does claim the devices of LIO's other backends.

use crate::identity;
use crate::root::Root;
use model::Known;
use model::machine::Identity;

/// Where configfs is mounted.
const CONFIGFS: &str = "/sys/kernel/config";

/// A kind of export: the pattern of its directories below configfs, the attribute that names the file or device, and the attribute, if any,
/// that is `0` while the file or device is closed. In the pattern, `*` at the end of a name matches any characters.
const KINDS: [(&str, &str, Option<&str>); 4] = [
    ("nvmet/subsystems/*/namespaces/*", "device_path", Some("enable")),
    ("nvmet/subsystems/*/passthru", "device_path", Some("enable")),
    ("target/core/fileio_*/*", "udev_path", Some("enable")),
    ("usb_gadget/*/functions/mass_storage.*/lun.*", "file", None),
];

/// The kernel modules that export, and the directory below configfs that each makes.
const MODULES: [(&str, &str); 3] =
    [("nvmet", "nvmet"), ("target_core_mod", "target"), ("libcomposite", "usb_gadget")];

/// A file or device that the kernel has open to export it.
pub(crate) struct Export {
    /// Directory of the export in configfs.
    place: String,
    /// The file or device, or why it is unknown.
    opened: Known<Identity>,
}

impl Export {
    /// Completes "the file is ...".
    pub(crate) fn describe(&self) -> String {
        format!("exported to other machines ({})", self.place)
    }
}

/// Returns why exports may be hidden: a kernel module that exports devices is loaded, but configfs is not mounted here. `None` if none are
/// hidden.
pub(crate) fn hidden_exports(root: &Root) -> Option<String> {
    let (module, _) = MODULES.into_iter().find(|(module, dir)| {
        root.has(&format!("/sys/module/{module}")) && !root.has(&format!("{CONFIGFS}/{dir}"))
    })?;
    Some(format!(
        "what the kernel module {module} exports is unknown: no configfs at {CONFIGFS}; to show it in a container, start the \
         container with `-v {CONFIGFS}:{CONFIGFS}:ro`"
    ))
}

/// Returns all exports that configfs shows.
///
/// # Errors
/// Why they cannot be listed.
pub(crate) fn exports(root: &Root) -> Known<Vec<Export>> {
    let mut found = Vec::new();
    for (pattern, name_attribute, enable) in KINDS {
        let mut places = vec![CONFIGFS.to_owned()];
        for part in pattern.split('/') {
            let mut deeper = Vec::new();
            for place in places {
                match part.strip_suffix('*') {
                    Some(start) => deeper.extend(
                        root.list_if_there(&place)?
                            .into_iter()
                            .filter(|name| name.starts_with(start) && root.is_dir(&format!("{place}/{name}")))
                            .map(|name| format!("{place}/{name}")),
                    ),
                    None => deeper.push(format!("{place}/{part}")),
                }
            }
            places = deeper;
        }
        found.extend(places.into_iter().filter_map(|place| export(root, place, name_attribute, enable)));
    }
    Ok(found)
}

/// Reads an export; `None` if it has no file or device open.
fn export(root: &Root, place: String, name_attribute: &str, enable: Option<&str>) -> Option<Export> {
    let read = |attribute: &str| {
        let file = format!("{place}/{attribute}");
        root.read(&file)
            .map(|text| text.trim_end_matches('\n').to_owned())
            .map_err(|why| format!("{file}: {why}"))
    };
    let is_open = enable.map_or(Ok(true), |enable| Ok(read(enable)?.trim() != "0"));
    let name = match is_open {
        Ok(false) => return None,
        Ok(true) => read(name_attribute),
        Err(why) => Err(why),
    };
    if enable.is_none() && name.as_ref().is_ok_and(String::is_empty) {
        return None;
    }
    let opened = name.and_then(|name| {
        // The name of a controller does not show which devices are its namespaces.
        if place.ends_with("/passthru") {
            return Err(format!(
                "the directory shows only the controller {name}, not the devices of its namespaces"
            ));
        }
        identity::from_name(root, &name)
    });
    // The export may have been removed meanwhile.
    (opened.is_ok() || root.has(&place)).then_some(Export { place, opened })
}

/// Returns the export that has this file or device open; `None` if there is none.
pub(crate) fn export_of<'e>(exports: &'e [Export], what: &Identity) -> Option<&'e Export> {
    exports.iter().find(|export| export.opened.as_ref().is_ok_and(|opened| opened.is_same(what)))
}

/// Returns why the file or device of an export is unknown; `None` if all are known.
pub(crate) fn unknown_export(exports: &[Export]) -> Option<String> {
    let (place, why) = exports.iter().find_map(|e| Some((&e.place, e.opened.as_ref().err()?)))?;
    Some(format!("what the kernel exports in {place} is unknown: {why}"))
}

#[test]
fn open_exports_are_found_and_unreadable_ones_are_unknown() {
    use crate::fixture::put;
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let root = Root::at(dir.path().to_owned());
    let is_none = |root: &Root| exports(root).is_ok_and(|all| all.is_empty());
    assert!(is_none(&root));
    let config = |path: &str, text: &str| put(dir.path(), &format!("sys/kernel/config/{path}"), text);
    put(dir.path(), "images/a b", "x");
    put(dir.path(), "sys/class/block/sda/dev", "8:0\n");
    // No open exports: closed ones, a backend that claims its device, and files next to the directories.
    config("nvmet/subsystems/nqn/namespaces/2/device_path", "/dev/sda\n");
    config("nvmet/subsystems/nqn/namespaces/2/enable", "0\n");
    config("nvmet/subsystems/nqn/attr_model", "Linux\n");
    config("target/core/iblock_0/disk/udev_path", "/dev/sda\n");
    config("target/core/iblock_0/disk/enable", "1\n");
    config("target/core/fileio_0/hba_info", "HBA Index: 1\n");
    config("usb_gadget/g/functions/mass_storage.0/lun.0/file", "\n");
    config("usb_gadget/g/functions/mass_storage.0/stall", "1\n");
    assert!(is_none(&root));
    config("nvmet/subsystems/nqn/namespaces/1/device_path", "/dev/sda\n");
    config("nvmet/subsystems/nqn/namespaces/1/enable", "1\n");
    config("target/core/fileio_0/disk/udev_path", "/images/a b\n");
    config("target/core/fileio_0/disk/enable", "1\n");
    let file = identity::from_path(&root.path("/images/a b")).unwrap_or_else(|e| panic!("{e}"));
    let device = identity::from_device_number("8:0".into());
    let names = |what: &Identity| {
        let all = exports(&root).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(unknown_export(&all), None);
        export_of(&all, what).map(Export::describe)
    };
    let at = |place: &str| Some(format!("exported to other machines (/sys/kernel/config/{place})"));
    assert_eq!(names(&device), at("nvmet/subsystems/nqn/namespaces/1"));
    assert_eq!(names(&file), at("target/core/fileio_0/disk"));
    assert_eq!(names(&identity::from_device_number("8:16".into())), None);
    config("target/core/fileio_0/disk/enable", "0\n");
    config("usb_gadget/g/functions/mass_storage.0/lun.0/file", "/images/a b\n");
    assert_eq!(names(&file), at("usb_gadget/g/functions/mass_storage.0/lun.0"));
    for (path, text) in [("device_path", ""), ("device_path", "/gone\n"), ("enable", "")] {
        let unknown = format!("nvmet/subsystems/nqn/namespaces/3/{path}");
        config("nvmet/subsystems/nqn/namespaces/3/device_path", "/dev/sda\n");
        config("nvmet/subsystems/nqn/namespaces/3/enable", "1\n");
        if text.is_empty() {
            std::fs::remove_file(root.path(&format!("{CONFIGFS}/{unknown}")))
                .unwrap_or_else(|e| panic!("{e}"));
        } else {
            config(&unknown, text);
        }
        let all = exports(&root).unwrap_or_else(|why| panic!("{why}"));
        assert!(unknown_export(&all).is_some_and(|why| why.contains("namespaces/3 is unknown")), "{path}");
    }
    // A whole controller is exported.
    config("nvmet/subsystems/nqn/namespaces/3/enable", "0\n");
    config("nvmet/subsystems/nqn/passthru/device_path", "/dev/nvme0\n");
    config("nvmet/subsystems/nqn/passthru/enable", "1\n");
    let why = exports(&root).ok().and_then(|all| unknown_export(&all));
    assert!(why.is_some_and(|why| why.contains("the controller /dev/nvme0, not")));
    // The module is loaded, and this mount namespace has no configfs.
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    put(dir.path(), "sys/module/nvmet/refcnt", "0\n");
    let root = Root::at(dir.path().to_owned());
    assert!(hidden_exports(&root).is_some_and(|why| why.contains("nvmet exports is unknown: no configfs")));
    assert!(is_none(&root));
    put(dir.path(), "sys/kernel/config/nvmet/discovery_nqn", "nqn\n");
    assert_eq!(hidden_exports(&root), None);
    // A file in place of the directory makes listing fail.
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    put(dir.path(), "sys/kernel/config/nvmet/subsystems", "");
    assert!(exports(&Root::at(dir.path().to_owned())).is_err_and(|why| why.contains("nvmet/subsystems: ")));
}
