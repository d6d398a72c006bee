//! Spared: what a call reads or measures, and so never writes over.
//!
//! For: telling such a file under whichever name, by its device and inode. Not for: what else may not be written over
//! ([`crate::output`]).

use machine::file_systems::identities;
use machine::root::Root;
use model::identity::Identity;
use model::job::Data;
use model::machine::Place;
use model::name;
use model::plan::{Plan, Role};
use std::path::Path;

/// What a call reads or measures, by device and inode, and so never writes over.
#[derive(Clone, Debug, Default)]
pub struct Spared {
    files: Vec<(Identity, String)>,
}

impl Spared {
    /// What a plan touches: its targets, what lies below them, and the files that say what is written.
    pub fn from_plan(plan: &Plan, places: &[Place]) -> Self {
        let mut spared = Self::default();
        for target in plan.targets.iter().filter(|t| t.role == Role::File) {
            spared.add(&name::path(&target.path), "a target of this call");
        }
        for layer in places.iter().flat_map(|p| &p.layers) {
            let what = format!("the file behind {}, which is below a target", layer.name);
            if let Some(file) = machine::identity::backing(&Root::real(), &layer.name) {
                spared.files.push((file, what.clone()));
            }
            if let Some(file) = &layer.backing_file {
                spared.add(Path::new(file), &what);
            }
        }
        for stream in plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams) {
            if let Data::File(path) = &stream.data {
                spared.add(Path::new(path), "the content that is written");
            }
        }
        spared
    }

    /// One more; what is not there needs no sparing.
    pub fn add(&mut self, path: &Path, what: &str) {
        if path.metadata().is_ok_and(|facts| facts.is_file()) {
            self.files
                .extend(identities(&Root::real(), path).into_iter().map(|file| (file, what.to_owned())));
        }
    }

    /// What the file at a path is to this call, where it is to be spared.
    pub fn what(&self, path: &Path) -> Option<&str> {
        let all = identities(&Root::real(), path);
        let is_it = |file: &Identity| all.iter().any(|one| one.is_same(file));
        self.files.iter().find(|(file, _)| is_it(file)).map(|(_, what)| what.as_str())
    }
}
