//! Finds a block device by the name that `lsblk` and `iostat` print: its kernel name (`vda`, `dm-0`) or the name of its volume
//! (`vg-root`).

use crate::root::Root;
use crate::stack;
use std::path::{Component, Path, PathBuf};

/// Where all block devices are listed.
const ALL_NAMES: &str = "/sys/class/block";

/// Returns the kernel name of the device that a word names; `None` for a path, or if no device has that name.
pub fn kernel_name(root: &Root, typed: &Path) -> Option<String> {
    let mut parts = typed.components();
    let (Some(Component::Normal(only)), None) = (parts.next(), parts.next()) else { return None };
    // `./vda` is a path: its only component would be the same.
    let name = typed.to_str().filter(|text| only.to_str() == Some(text))?;
    if stack::number_of(root, name).is_some() {
        return Some(name.to_owned());
    }
    let is_volume = |device: &String| root.word(&format!("{ALL_NAMES}/{device}/dm/name")).as_deref() == Some(name);
    root.list(ALL_NAMES).ok()?.into_iter().find(is_volume)
}

/// Returns the path of its node, `/dev/vda`; `None` also if that node is another device.
pub fn node(root: &Root, typed: &Path) -> Option<PathBuf> {
    let name = kernel_name(root, typed)?;
    // The kernel writes `!` for `/` in names such as cciss/c0d0.
    let node = format!("/dev/{}", name.replace('!', "/"));
    let is_other =
        root.device_number(&node).is_some_and(|number| stack::number_of(root, &name) != Some(number));
    (!is_other).then(|| PathBuf::from(node))
}

/// Returns the kernel name of the block device at a path, symbolic links included; `None` if there is none. A device whose node is
/// missing is found by its name.
pub fn of_node(root: &Root, path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if let Some(number) = root.device_number(text) {
        return stack::name_of(root, &number);
    }
    let name = path.strip_prefix("/dev").ok().filter(|_| !path.exists())?.to_str()?.replace('/', "!");
    kernel_name(root, Path::new(&name))
}

#[test]
fn kernel_names_and_volumes_are_found_and_paths_are_not() {
    use crate::fixture::put;
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for (file, text) in [
        ("vda/dev", "254:0\n"),
        ("dm-0/dev", "253:0\n"),
        ("dm-0/dm/name", "vg-root\n"),
        ("cciss!c0d0/dev", "104:0\n"),
    ] {
        put(dir.path(), &format!("sys/class/block/{file}"), text);
    }
    let root = Root::at(dir.path().to_owned());
    let node = |typed: &str| node(&root, Path::new(typed)).map(|path| path.display().to_string());
    for (typed, expected) in [
        ("vda", Some("/dev/vda")),
        ("dm-0", Some("/dev/dm-0")),
        ("vg-root", Some("/dev/dm-0")),
        ("cciss!c0d0", Some("/dev/cciss/c0d0")),
        ("vdb", None),
        ("./vda", None),
        ("vda/", None),
        ("/vda", None),
        ("..", None),
        (".", None),
        ("", None),
    ] {
        assert_eq!(node(typed).as_deref(), expected, "{typed}");
    }
}
