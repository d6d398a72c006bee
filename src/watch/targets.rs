//! Targets that are watched: from what was typed to the block devices below it.
//!
//! The command line has already turned kernel names into paths such as `/dev/vda`. The node may be missing, as in a container: then
//! the kernel's name of the device is enough.

use crate::failure::Failure;
use machine::resolve::{resolve as place_of, resolve_device};
use machine::root::Root;
use model::machine::Place;
use model::name;
use std::path::{Path, PathBuf};

/// What was typed, and where that is.
#[derive(Debug)]
pub(super) struct Target {
    /// As it was typed.
    pub(super) said: PathBuf,
    /// The block devices below it.
    pub(super) place: Place,
}

/// Resolves all of them.
///
/// # Errors
/// For what is not there, and for what is on no block device.
pub(super) fn resolve(root: &Root, said: &[PathBuf]) -> Result<Vec<Target>, Failure> {
    said.iter().map(|said| Ok(Target { said: said.clone(), place: place(root, said)? })).collect()
}

fn place(root: &Root, said: &Path) -> Result<Place, Failure> {
    let without_node = said.strip_prefix("/dev").ok().filter(|_| !said.exists());
    let kernel_name = without_node.and_then(|name| Some(name.to_str()?.replace('/', "!")));
    let found = match kernel_name.and_then(|name| resolve_device(root, &name)) {
        Some(place) => place,
        None if !said.exists() && said.parent() == Some(Path::new("")) => {
            return Err(Failure::Usage(format!(
                "{}: there is no such file, and no block device of that name; `fathom devices` lists them",
                name::shown(said)
            )));
        }
        None => place_of(root, said)?,
    };
    if !found.layers.is_empty() {
        return Ok(found);
    }
    let why = found.ram.as_ref().map(|ram| format!("it is in memory ({ram})")).or(found.blind);
    let why = why.unwrap_or_else(|| "the kernel shows none below it".into());
    Err(Failure::Usage(format!(
        "{} is on no block device that could be watched: {why}; name a disk, or something on one",
        name::shown(said)
    )))
}

impl Target {
    /// `/data: ext4 > loop0 > vda`, and what of that is not known.
    pub(super) fn chain(&self) -> String {
        let mut words = vec![self.place.kind().to_owned()];
        words.extend(self.place.layers.iter().map(|layer| layer.name.clone()));
        let blind = self.place.blind.as_ref().map_or(String::new(), |why| format!("; not known: {why}"));
        format!("{}: {}{blind}", name::shown(&self.said), words.join(" > "))
    }
}

#[test]
fn what_is_on_no_device_and_what_is_not_there_is_refused_in_words() {
    let root = Root::real();
    let why = |path: &str| match place(&root, Path::new(path)) {
        Err(Failure::Usage(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(why("no-such-disk").contains("no block device of that name"));
    assert!(why("/nowhere/at/all").contains("does not exist"));
    assert!(why("/proc/stat").contains("no block device that could be watched"));
}
